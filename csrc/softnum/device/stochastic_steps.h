/* Numbers rounded stochastically (SN_STOCHASTIC, round.h) to floats with subnormals, in binary32 and in binary64: what
 * kernels for a GPU round products and sums by. A number is rounded up in magnitude if floor(t * 2^r) + R >= 2^r, t
 * being its fraction in last places of the format and R r bits of the word. So its first m + 1 + r bits decide, and
 * it may come truncated, toward zero, to the carrier's.
 *
 * Domain: m + r <= 23 (52); 2^emin normal in the carrier; 2^(emin - m - r) no less than the carrier's least number.
 * Infinities and NaNs of any kind, where it says so. What is too large becomes one magnitude, infinities too, or NaN.
 *
 * From 2^emin on, the places that go are the last 23 - m (52 - m) of the pattern, in all binades: R is added at the
 * first r of them, which carries into the rest as it should, then they are cut. A carry into the exponent is the next
 * binade. Below, 2^emin is added first, toward zero: what is rounded lies in binade emin then, the last places of which
 * are those of the subnormals, with 23 (52) places below 2^emin, m + r at least. Subtracting it again is exact, and a
 * carry to 2^(emin + 1) becomes 2^emin.
 *
 * Infinities keep their pattern (R is cut), and NaNs may lose theirs: the sum with v * 0 makes NaNs of both. Nothing
 * else changes by it, and comparing tells the NaNs from numbers that are not too large. */
#ifndef SOFTNUM_STOCHASTIC_STEPS_H
#define SOFTNUM_STOCHASTIC_STEPS_H

#include "softnum/word/machine.h"

#define P_BITS 32
#define P_M 23
#define P_u sn_u32
#define P_f float
#define P_INFINITY 0x7f800000u
#define P_(name) sn_##name##32
#include "softnum/device/stochastic_body.h"
#undef P_BITS
#undef P_M
#undef P_u
#undef P_f
#undef P_INFINITY
#undef P_

#define P_BITS 64
#define P_M 52
#define P_u sn_u64
#define P_f double
#define P_INFINITY 0x7ff0000000000000u
#define P_(name) sn_##name##64
#include "softnum/device/stochastic_body.h"
#undef P_BITS
#undef P_M
#undef P_u
#undef P_f
#undef P_INFINITY
#undef P_

#endif

/* Functions in binary64 lanes, of one operand or two (two.h): enclosures that decide a result's rounding. Included once
 * per instruction set, by elementwise_*.c.
 *
 * A function f gives (hi, lo, err, scale): |f(x) - (hi + lo) 2^scale| <= err 2^scale, where err = 0 means that hi + lo
 * is exact, and else f(x) is no dyadic number: elementary/unary.h says why none lies on a border. A rounding of
 * precision p looks at no more than the first q = p + 2 bits of a number, p + r + 2 with r random ones, and whether
 * anything follows them (elementwise/operate.h). So where no number of q bits lies within err of hi + lo, or hi + lo is
 * one and the result known to lie on one side of it, or to be it, any number in the same gap is rounded as f(x) is
 * (run.h: SN_(decide)). It is handed on as a code of 48 fraction bits, the last one sticky, and of more exponents than
 * binary64, so that no result under- or overflows before its format says so. q <= 46.
 *
 * Domain: operands of at most 30 bits of significand. Infinities, NaNs and what is less than 2^-300 in magnitude, but
 * for zero, are left to the definition. So is each lane that is not decided.
 *
 * err is no tight bound. u = 2^-53; each function's header has its errors' sum, by the polynomials' bounds that
 * constants.h states and approximations.py proves, with room for the roundings of err itself, of no more than 2 u.
 * SN_MULTIPLY_ADD64 may be rounded once or twice: both are proved. */
#ifndef SOFTNUM_FUNCTIONS_EVALUATE_H
#define SOFTNUM_FUNCTIONS_EVALUATE_H

#include "elementwise/functions/constants.h"
#include "lanes/isa.h"

typedef struct {
    sn_wf hi, lo, err;
    sn_wi scale;
    sn_wu outside; /* all ones: left to the definition */
} SN_(enclosure);

#ifdef SN_FMA64
#define SN_MULTIPLY_ADD64(x, y, z) SN_FMA64(x, y, z)
#else
#define SN_MULTIPLY_ADD64(x, y, z) ((x) * (y) + (z))
#endif

#define SN_FUNCTION_LEAST ((sn_u64)(1023 - 300) << 52)               /* the pattern of 2^-300 */
#define SN_FUNCTION_SPAN (((sn_u64)0x7ff << 52) - SN_FUNCTION_LEAST) /* from there to infinity */
#define SN_SIGN64 0x8000000000000000u
#define SN_TO_INTEGER64 0x1.8p52 /* added to x, it leaves the integer nearest to x in the last places: |x| < 2^51 */

SN_INLINE sn_wf SN_(f64)(double x) { return (sn_wf){0} + x; }
SN_INLINE sn_wf SN_(magnitude64)(sn_wf x) { return (sn_wf)((sn_wu)x & ~SN_SIGN64); }
SN_INLINE sn_wf SN_(with_sign64)(sn_wf x, sn_wu sign) { return (sn_wf)((sn_wu)x ^ sign); }
SN_INLINE sn_wf SN_(either64)(sn_wi mask, sn_wf yes, sn_wf no) { return (sn_wf)SN_SELECT64(mask, yes, no); }
SN_INLINE sn_wf SN_(where64)(sn_wi mask, sn_wf x) { return (sn_wf)((sn_wu)mask & (sn_wu)x); }

/* 2^k, -1022 <= k <= 1023 */
SN_INLINE sn_wf SN_(two_to)(sn_wi k) { return (sn_wf)((sn_wu)(k + 1023) << 52); }

/* c[0] + c[1] x + ... */
SN_INLINE sn_wf SN_(polynomial)(const double *c, int degree, sn_wf x) {
    sn_wf sum = SN_(f64)(c[degree]);
    for (int i = degree - 1; i >= 0; i--)
        sum = SN_MULTIPLY_ADD64(sum, x, SN_(f64)(c[i]));
    return sum;
}

/* a + b, and what it was rounded by (Knuth) */
SN_INLINE sn_wf SN_(two_sum)(sn_wf a, sn_wf b, sn_wf *error) {
    const sn_wf s = a + b, t = s - a;
    *error = (a - (s - t)) + (b - t);
    return s;
}

/* The first 26 bits. */
SN_INLINE sn_wf SN_(head26)(sn_wf x) { return (sn_wf)((sn_wu)x >> 27 << 27); }

/* a b, and what it was rounded by: without an fma but for 2^-103 of it, and exactly if both have no more than 46 bits,
 * since then all terms, and their sums, are multiples of 2^-90 of it that have 53 bits. */
SN_INLINE sn_wf SN_(two_product)(sn_wf a, sn_wf b, sn_wf *error) {
    const sn_wf product = a * b;
#ifdef SN_FMA64
    *error = SN_FMA64(a, b, -product);
#else
    const sn_wf a_head = SN_(head26)(a), a_tail = a - a_head, b_head = SN_(head26)(b), b_tail = b - b_head;
    *error = ((a_head * b_head - product) + a_head * b_tail + a_tail * b_head) + a_tail * b_tail;
#endif
    return product;
}

/* a + b, and what it was rounded by: |a| >= |b|, or a = 0 */
SN_INLINE sn_wf SN_(fast_two_sum)(sn_wf a, sn_wf b, sn_wf *error) {
    const sn_wf s = a + b;
    *error = b - (s - a);
    return s;
}

#endif

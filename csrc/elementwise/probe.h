/* The operations of operations.h, watched: what was exact, where it was cut off, and why it was rounded as it was.
 *
 * probe.c compiles the core's own text with SN_PROBED: what is told is what the one place that rounds (round.h) did,
 * and no second account of it. */
#ifndef SOFTNUM_PROBE_H
#define SOFTNUM_PROBE_H

#include <stddef.h>

#include "softnum/rounding/format.h"

/* One result. The exact one is (-1)^sign * (significand + fraction) * 2^last, where a result is finite and not zero
 * (kind SN_FINITE): guard and round are the first two bits of the fraction, sticky tells whether any bit after them is
 * set. Where kind is SN_ZERO, SN_INF or SN_QUIET_NAN nothing is rounded: all but code, flags and sign are 0.
 *
 * significand: with all bits down to 2^last, modulo 2^64. Where no digit decides anything none is told: in fixed point
 * without wrapping from 2^64 units of the last place on, significand, guard, round, sticky, up and discarded are 0; so
 * are they, but for sticky, of an evaluated result beyond 2^(2^27) or below 2^-(2^27) in its own binade, whose exponent
 * is told as 2^27 or -2^27. softnum/inspect/_probe.pyx holds the same fields in this order. */
typedef struct {
    sn_u64 code, significand;
    sn_i32 exponent, last; /* exponent: of the exact result's leading bit */
    sn_u32 flags;          /* as the operation raises them, SN_NO_CODE and SN_UNDECIDED too */
    sn_u32 discarded;      /* stochastic modes: the first r bits of the fraction */
    sn_u8 kind, sign, guard, round, sticky;
    sn_u8 up;  /* whether the magnitude is rounded up, one unit or (gap) to the smallest value */
    sn_u8 gap; /* below the smallest value, where nothing lies in between: the fraction is one of it, significand 0 */
    sn_u8 events; /* SN_NOTED_OVERFLOW, SN_NOTED_FLUSH (env.h) */
} sn_probe;

/* Operation op of n elements: the operands' codes (of two or three arrays; null where there is no operand), their
 * formats, and the random words, or null. env: the first seven fields of sn_env, in their order. Of a rounding to an
 * integral value the rounding to an integer is told, whose last place is 1, and nothing of its delivery to the format
 * but code, flags and events. */
void sn_probe_codes(int op, const sn_format *operands, const sn_format *out, const sn_i32 env[7], sn_u64 invalid_code,
                    const sn_u64 *const in[3], const sn_u32 *words, size_t n, sn_probe *results);

#endif

/* Rounding binary32 and binary64 patterns to a format, one by one: to the pattern of its value, and to its code. GPU
 * kernels use it; lanes/round.h and lanes/magic.h do the same on vectors of a CPU, and hold the proofs at more length.
 *
 * A format and an environment are an sn_pattern, whose fields are constants where it is used, and fold;
 * dispatch/device.c makes it and keeps to this domain:
 *   - floats of at most 23 (52) fraction bits whose binades, the lowest one too, are normal in the carrier: signed or
 *     not, with or without zero, whatever the lowest binade holds. Where it is normal and there is a zero, not the
 *     stochastic modes; where there is no zero, formats with a NaN; where it holds 0 alone, above the carrier's lowest.
 *   - fixed point that saturates, of at most 23 (52) bits, as the subnormals of a float whose normal numbers begin at
 *     2^integer bits: what lies there saturates, however coarsely it is rounded first.
 *   - every mode; those of a number beyond SN_STOCHASTIC_FLOOR with r < the carrier's bits.
 *   - the canonical NaN alone, results not flushed.
 * Inside it the result is the definition's (round.h). What has no result - a NaN without a code, an infinity in fixed
 * point - becomes what the environment states, and sn_no_result32 and 64 tell.
 *
 * Patterns are 32 or 64 bits: sn_round_pattern32(p, bits, random), sn_code_of_pattern32(p, bits, random), and with 64.
 * random: its low r bits count, in stochastic modes.
 *
 * The other way, sn_pattern_of_code32(r, code) and 64 give the pattern that a code stands for, for formats of that
 * domain, in no environment; of an sn_reading. Bits of a code above the format's are ignored. */
#ifndef SOFTNUM_PATTERNS_H
#define SOFTNUM_PATTERNS_H

#include "softnum/rounding/env.h"
#include "softnum/rounding/format.h"
#include "softnum/word/machine.h"

/* How the modes decide: as SN_FAMILY_* of dispatch/kernels.h. */
enum { SN_TIES_TO_EVEN, SN_TIES_BY_SIGN, SN_DIRECTED, SN_ODD, SN_RANDOM_CARRY, SN_RANDOM_OTHER };
/* How a pattern is rounded: see patterns_body.h. */
enum { SN_WAY_GRID, SN_WAY_IN_PLACE, SN_WAY_MAGIC, SN_WAY_CARRY };
/* How the machine adds. */
enum { SN_ADD_NEAREST, SN_ADD_DOWN, SN_ADD_UP, SN_ADD_ZERO };

/* [2]: of positive and of negative numbers. */
typedef struct {
    sn_i32 way, family, rounding, stochastic_bits;
    sn_i32 negative, constant; /* 0 or 1: (negative & sign) ^ constant decides, of a tie or of anything inexact
                                  (directed), whether it goes up */
    sn_i32 mantissa_bits, biased_emin, lowest;
    sn_i32 is_fixed, has_zero, negative_zero, no_nan, bits;
    sn_u64 sign_mask, code_mask; /* of a code */
    sn_u64 quantum, half_gap;    /* patterns of the smallest value above 0; of its half, if the lowest binade is
                                    normal */
    sn_u64 gap_threshold[2];     /* there: the least pattern that is not rounded to 0 */
    sn_i32 direction, bump;      /* SN_WAY_MAGIC: SN_ADD_*; added to halves of a last place before the cut */
    sn_u64 least, to_constant;   /* there: the least E, in place; from E to C */
    sn_u64
        beyond[2]; /* the least pattern that overflows: rounded, SN_WAY_CARRY; before, SN_WAY_IN_PLACE, SN_WAY_MAGIC */
    sn_i64 limit[2]; /* SN_WAY_GRID: the largest magnitude code; -1: not even 0 */
    sn_u64 value_overflow[2], value_infinity[2], value_nan; /* what these become, as patterns, and as codes */
    sn_u64 code_overflow[2], code_infinity[2], code_nan;
} sn_pattern;

typedef struct {
    sn_i32 mantissa_bits, bits, is_fixed, negative_zero, nan_is_negative_zero, subnormals;
    sn_i64 low;                       /* magnitudes below it are subnormal, or zero */
    sn_i64 max_code, inf_code;        /* magnitudes; inf_code: -1 if there is none */
    sn_u64 sign_mask, magnitude_mask; /* of a code; magnitude_mask with the sign in fixed point */
    sn_u64 rebias;                    /* added to an exponent in place */
    sn_u64 first;                     /* pattern of 2^emin */
} sn_reading;

/* Whether the lowest binade holds no subnormals. */
SN_FN sn_i32 sn_pattern_unusual(const sn_pattern *p) { return p->lowest != SN_LOWEST_SUBNORMAL; }

/* Whether both signs round by one rule, so that magnitudes do. */
SN_FN sn_i32 sn_pattern_by_sign(const sn_pattern *p) {
    return p->negative && (p->family == SN_TIES_BY_SIGN || p->family == SN_DIRECTED);
}

/* Whether what is too large becomes a number or an infinity of its sign. */
SN_FN sn_i32 sn_pattern_symmetric(const sn_pattern *p, sn_u64 sign) {
    return (p->value_overflow[0] ^ p->value_overflow[1]) == sign &&
           (p->value_infinity[0] ^ p->value_infinity[1]) == sign;
}

#define P_BITS 32
#define P_M 23
#define P_u sn_u32
#define P_i sn_i32
#define P_f float
#define P_SIGN 0x80000000u
#define P_INFINITY 0x7f800000u
#define P_NAN 0x7fc00000u
#define P_(name) sn_##name##32
#include "softnum/device/patterns_body.h"

#define P_BITS 64
#define P_M 52
#define P_u sn_u64
#define P_i sn_i64
#define P_f double
#define P_SIGN 0x8000000000000000u
#define P_INFINITY 0x7ff0000000000000u
#define P_NAN 0x7ff8000000000000u
#define P_(name) sn_##name##64
#include "softnum/device/patterns_body.h"

#endif

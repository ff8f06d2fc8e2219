/* The rounding environment of an operation, and the exception flags. Both are arguments; nothing is global. */
#ifndef SOFTNUM_ENV_H
#define SOFTNUM_ENV_H

#include "base.h"

/* softnum/modes.py holds the same numbers. */
enum {
    SN_NEAREST_EVEN = 0,
    SN_NEAREST_AWAY = 1,
    SN_NEAREST_ZERO = 2,
    SN_NEAREST_UP = 3,
    SN_NEAREST_DOWN = 4,
    SN_TOWARD_ZERO = 5,
    SN_AWAY_FROM_ZERO = 6,
    SN_UP = 7,
    SN_DOWN = 8,
    SN_TO_ODD = 9,
    SN_STOCHASTIC = 10,
    SN_STOCHASTIC_FLOOR = 11,
    SN_STOCHASTIC_FAST = 12,
    SN_STOCHASTIC_EVEN = 13,
    SN_STOCHASTIC_ODD = 14,
    SN_ROUNDING_MODES = 15
};

enum { SN_OVERFLOW_INFINITY = 0, SN_OVERFLOW_SATURATE = 1, SN_OVERFLOW_SATURATE_FINITE = 2, SN_OVERFLOW_WRAP = 3 };

enum { SN_TININESS_AFTER = 0, SN_TININESS_BEFORE = 1 };

/* Tiny before rounding (Arm), or after rounding with unbounded exponent (x86). */
enum { SN_FLUSH_NONE = 0, SN_FLUSH_BEFORE = 1, SN_FLUSH_AFTER = 2 };

/* Which NaN an operation delivers: specialize.h. */
enum { SN_NAN_CANONICAL = 0, SN_NAN_X86 = 1, SN_NAN_ARM = 2, SN_NAN_PROFILES = 3 };

/* IEEE 754-2019 clause 7 */
enum { SN_INEXACT = 1, SN_UNDERFLOW = 2, SN_FLAG_OVERFLOW = 4, SN_DIVIDE_BY_ZERO = 8, SN_INVALID = 16 };
/* No exception, but told the same way, with SN_INVALID: the result is sn_env.invalid_code, for want of a NaN. */
enum { SN_NO_CODE = 32 };

typedef struct {
    sn_i32 rounding;        /* SN_NEAREST_EVEN ... */
    sn_i32 overflow;        /* SN_OVERFLOW_* */
    sn_i32 tininess;        /* SN_TININESS_* */
    sn_i32 stochastic_bits; /* r, 0..32, for the stochastic modes; see below */
    sn_i32 flush_inputs;    /* subnormal operands read as zero, sign kept */
    sn_i32 flush_results;   /* SN_FLUSH_*: results that are tiny become zero, sign kept */
    sn_i32 nan;             /* SN_NAN_* */
    sn_u64 invalid_code;    /* what stands for a NaN where the format has none, with INVALID */
} sn_env;
/* With no random bit, r = 0, what is discarded decides alone: SN_STOCHASTIC rounds as SN_TOWARD_ZERO,
 * SN_STOCHASTIC_FLOOR as SN_DOWN, SN_STOCHASTIC_FAST and SN_STOCHASTIC_ODD as SN_NEAREST_AWAY, SN_STOCHASTIC_EVEN as
 * SN_NEAREST_ZERO. What overflows follows the overflow rule and UNDERFLOW is judged before rounding, as for every r. */

#endif

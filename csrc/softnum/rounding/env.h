/* The rounding environment of an operation, and the exception flags. Both are arguments; nothing is global. */
#ifndef SOFTNUM_ENV_H
#define SOFTNUM_ENV_H

#include "softnum/rounding/modes.h"
#include "softnum/word/base.h"

/* SN_NEAREST_EVEN = 0 ..., and how many there are. */
#define SN_MODE_NUMBER(NAME, name, number, family, negative, constant, direction, bump) SN_##NAME = number,
#define SN_MODE_COUNT(NAME, name, number, family, negative, constant, direction, bump) +1
enum { SN_MODES(SN_MODE_NUMBER) SN_ROUNDING_MODES = 0 SN_MODES(SN_MODE_COUNT) };

/* The last: OvfInf of P3109's interim report v3.2.1 (4.9.4), for its formats with infinities alone, where INFINITY is
 * SatNone of v4.0. 4 is no rule of a rounding's: csrc/dpi/softnum_dpi.h has it for fused dot products. */
enum {
    SN_OVERFLOW_INFINITY = 0,
    SN_OVERFLOW_SATURATE = 1,
    SN_OVERFLOW_SATURATE_FINITE = 2,
    SN_OVERFLOW_WRAP = 3,
    SN_OVERFLOW_P3109_V3_2_1 = 5
};

enum { SN_TININESS_AFTER = 0, SN_TININESS_BEFORE = 1 };

/* Tiny before rounding (Arm), or after rounding with unbounded exponent (x86). */
/* Results that are tiny before rounding, after it, or subnormal once they are rounded. */
enum { SN_FLUSH_NONE = 0, SN_FLUSH_BEFORE = 1, SN_FLUSH_AFTER = 2, SN_FLUSH_SUBNORMAL = 3 };

/* Which NaN an operation delivers: specialize.h. */
enum { SN_NAN_CANONICAL = 0, SN_NAN_X86 = 1, SN_NAN_ARM = 2, SN_NAN_PROFILES = 3 };

/* IEEE 754-2019 clause 7 */
enum { SN_INEXACT = 1, SN_UNDERFLOW = 2, SN_FLAG_OVERFLOW = 4, SN_DIVIDE_BY_ZERO = 8, SN_INVALID = 16 };
/* Not an exception, but reported the same way, with SN_INVALID: the format has no NaN, and the result is
 * sn_env.invalid_code. */
enum { SN_NO_CODE = 32 };

/* How a result came to be what it is. csrc/elementwise/probe.c compiles this text with SN_PROBED, to have it noted;
 * everywhere else the functions that note are empty, and sn_env has no place for it. */
typedef struct {
    sn_i32 kind, sign;    /* of the exact result: SN_ZERO, SN_FINITE, SN_INF; not noted of a NaN. The rest if finite */
    sn_i32 exponent;      /* floor(log2(magnitude)); of no use if modular (round.h) */
    sn_i32 last, modular; /* floor counts units of 2^last, and of the smallest value in a gap */
    sn_u64 floor, fraction; /* as sn_cut */
    sn_i32 sticky, up;      /* up: whether the magnitude was rounded up */
    sn_i32 events;          /* SN_NOTED_* */
} sn_note;

enum {
    SN_NOTED_OVERFLOW = 1,
    SN_NOTED_FLUSH = 2, /* a zero for a result that is tiny; what is noted is its rounding with unbounded exponent */
    SN_NOTED_GAP = 4    /* nothing lies between zero and the smallest value, which the result lies below */
};

typedef struct {
    sn_i32 rounding;        /* SN_NEAREST_EVEN ... */
    sn_i32 overflow;        /* SN_OVERFLOW_* */
    sn_i32 tininess;        /* SN_TININESS_* */
    sn_i32 stochastic_bits; /* r, 0..32, for the stochastic modes; see below */
    sn_i32 flush_inputs;    /* subnormal operands read as zero, sign kept */
    sn_i32 flush_results;   /* SN_FLUSH_NONE ...: results that are tiny become zero, sign kept */
    sn_i32 nan;             /* SN_NAN_* */
    sn_u64 invalid_code;    /* what stands for a NaN where the format has none, with INVALID */
#ifdef SN_PROBED
    sn_note *note;
#endif
} sn_env;
/* With no random bit, r = 0, what is discarded decides alone: SN_STOCHASTIC and SN_STOCHASTIC_EQUAL round as
 * SN_TOWARD_ZERO, SN_STOCHASTIC_FLOOR as SN_DOWN, SN_STOCHASTIC_FAST and SN_STOCHASTIC_ODD as SN_NEAREST_AWAY,
 * SN_STOCHASTIC_EVEN as SN_NEAREST_ZERO. What overflows follows the overflow rule and UNDERFLOW is judged before
 * rounding, as for every r. */

SN_FN void sn_note_kind(const sn_env *env, sn_i32 kind, sn_i32 sign) {
#ifdef SN_PROBED
    env->note->kind = kind;
    env->note->sign = sign;
#else
    (void)env, (void)kind, (void)sign;
#endif
}

SN_FN void sn_note_event(const sn_env *env, sn_i32 event) {
#ifdef SN_PROBED
    env->note->events |= event;
#else
    (void)env, (void)event;
#endif
}

#endif

/* The loops over functions of wide operands in lanes: included once per instruction set that has fused multiply-adds
 * and elementwise/short/lanes.h, by elementwise_*.c. */
#ifndef SOFTNUM_FUNCTIONS_WIDE_RUN_H
#define SOFTNUM_FUNCTIONS_WIDE_RUN_H

#include "elementwise/functions/run.h"
#include "elementwise/functions/wide_exponential.h"
#include "elementwise/functions/wide_inverse.h"
#include "elementwise/functions/wide_logarithm.h"
#include "elementwise/functions/wide_normal.h"
#include "elementwise/functions/wide_plane.h"
#include "elementwise/functions/wide_power.h"
#include "elementwise/functions/wide_roots.h"
#include "elementwise/functions/wide_trigonometric.h"
#include "elementwise/short/lanes.h"

/* What results are rounded from, of a block: significands of 64 bits, exponents, and what they are. */
typedef struct {
    sn_u64 sig[SN_WIDE_BLOCK], exp[SN_WIDE_BLOCK], kind[SN_WIDE_BLOCK];
} SN_(wide_results);

enum { SN_WIDE_NEGATIVE = 1, SN_WIDE_ZERO = 2, SN_WIDE_INVALID = 4, SN_WIDE_LEFT = 8 };

/* The significand that stands for what lies between both ends, its exponent, and where it is none. Let s be the sum
 * rounded and e its error. A rounding of p digits looks at the numbers of p + 1 digits; `rest` are the bits of s that
 * such a number lacks, and `halves` says that half of the way to the next one is an end too: p is 53. So e tells the
 * gap where its magnitude is known to lie between 0, if s is an end, and that half, or the whole, way. Next to a power
 * of two the way down is half as long. */
SN_INLINE void SN_(wide_decided)(SN_(enclosure) e, sn_wu rest, int halves, sn_wu *sig, sn_wu *exp, sn_wu *kind) {
    sn_wf error;
    const sn_wf sum = SN_(two_sum)(e.hi, e.lo, &error), size = SN_(magnitude64)(sum), off = SN_(magnitude64)(error);
    const sn_wf err = e.err + SN_(magnitude64)(e.lo) * 0x1p-50;
    const sn_wu bits = (sn_wu)sum, exact = (sn_wu)(e.err == 0.0) & (sn_wu)(error == 0.0);
    const sn_wu inward = (sn_wu)((sn_wi)(bits ^ (sn_wu)error) < 0); /* all ones, and -1 */
    const sn_wf way = SN_(magnitude64)((sn_wf)(bits + (inward | 1)) - sum) * (halves ? 0.5 : 1.0);
    const sn_wu told = exact | ((sn_wu)(off + err < way) & ((sn_wu)((bits & rest) != 0) | (sn_wu)(off > err)));
    const sn_wu there = (bits << 11 | (sn_u64)1 << 63) + ((inward | 1) & ~exact);
    const sn_wu below = (sn_wu)((sn_wi)there >= 0); /* a power of two, and what lies below it */
    *sig = there | below;
    *exp = (bits >> 52 & 0x7ff) - 1023 + (sn_wu)e.scale + below;
    *kind =
        (bits >> 63 & SN_WIDE_NEGATIVE) | ((sn_wu)(size == 0.0) & SN_WIDE_ZERO) | ((~told | e.outside) & SN_WIDE_LEFT);
}

/* As SN_(partial_in_lanes). */
SN_INLINE SN_(enclosure) SN_(wide_partial)(int function, sn_wf x, sn_wu finite, sn_wu *invalid, sn_wu *left) {
    sn_wi at_end;
    double inside;
    const sn_wi within = SN_(in_domain)(function, x, &at_end, &inside);
    *invalid = finite & ~(sn_wu)within;
    *left |= (sn_wu)at_end;
    const sn_wf number = SN_(either64)(within & ~at_end, x, SN_(f64)(inside));
    switch (function) {
    case SN_ELEMENTARY_asin: return SN_(wide_asin)(0, 0, number);
    case SN_ELEMENTARY_asinpi: return SN_(wide_asin)(0, 1, number);
    case SN_ELEMENTARY_acos: return SN_(wide_asin)(1, 0, number);
    case SN_ELEMENTARY_acospi: return SN_(wide_asin)(1, 1, number);
    case SN_ELEMENTARY_atanh: return SN_(wide_atanh)(number);
    case SN_ELEMENTARY_acosh: return SN_(wide_acosh)(number);
    case SN_ELEMENTARY_rsqrt: return SN_(wide_rsqrt)(number);
    case SN_ELEMENTARY_log: return SN_(wide_log)(SN_LOG_E, number);
    case SN_ELEMENTARY_log2: return SN_(wide_log)(SN_LOG_2, number);
    case SN_ELEMENTARY_log10: return SN_(wide_log)(SN_LOG_10, number);
    case SN_ELEMENTARY_log1p: return SN_(wide_log1p)(SN_LOG_E, number);
    case SN_ELEMENTARY_log2p1: return SN_(wide_log1p)(SN_LOG_2, number);
    default: return SN_(wide_log1p)(SN_LOG_10, number);
    }
}

SN_INLINE SN_(enclosure) SN_(wide_enclosure)(int function, sn_wf x, sn_wu finite, sn_wu *invalid, sn_wu *left) {
    switch (function) { /* known where this is inlined */
    case SN_ELEMENTARY_exp: return SN_(wide_exp)(SN_BASE_E, x);
    case SN_ELEMENTARY_exp2: return SN_(wide_exp)(SN_BASE_2, x);
    case SN_ELEMENTARY_exp10: return SN_(wide_exp)(SN_BASE_10, x);
    case SN_ELEMENTARY_expm1: return SN_(wide_expm1)(SN_BASE_E, x);
    case SN_ELEMENTARY_exp2m1: return SN_(wide_expm1)(SN_BASE_2, x);
    case SN_ELEMENTARY_exp10m1: return SN_(wide_expm1)(SN_BASE_10, x);
    case SN_ELEMENTARY_sinh: return SN_(wide_sinh)(1, x);
    case SN_ELEMENTARY_cosh: return SN_(wide_sinh)(0, x);
    case SN_ELEMENTARY_tanh: return SN_(wide_tanh)(x);
    case SN_ELEMENTARY_sigmoid: return SN_(wide_sigmoid)(x);
    case SN_ELEMENTARY_silu: return SN_(wide_silu)(x);
    case SN_ELEMENTARY_softplus: return SN_(wide_softplus)(x);
    case SN_ELEMENTARY_erf: return SN_(wide_erf)(x);
    case SN_ELEMENTARY_gelu: return SN_(wide_gelu)(x);
    case SN_ELEMENTARY_sin: return SN_(wide_trigonometric)(SN_SINE, 0, x);
    case SN_ELEMENTARY_cos: return SN_(wide_trigonometric)(SN_COSINE, 0, x);
    case SN_ELEMENTARY_tan: return SN_(wide_trigonometric)(SN_TANGENT, 0, x);
    case SN_ELEMENTARY_sinpi: return SN_(wide_trigonometric)(SN_SINE, 1, x);
    case SN_ELEMENTARY_cospi: return SN_(wide_trigonometric)(SN_COSINE, 1, x);
    case SN_ELEMENTARY_tanpi: return SN_(wide_trigonometric)(SN_TANGENT, 1, x);
    case SN_ELEMENTARY_atan: return SN_(wide_atan)(0, x);
    case SN_ELEMENTARY_atanpi: return SN_(wide_atan)(1, x);
    case SN_ELEMENTARY_asinh: return SN_(wide_asinh)(x);
    case SN_ELEMENTARY_cbrt: return SN_(wide_cbrt)(x);
    case SN_ELEMENTARY_reciprocal:
        *left |= (sn_wu)(x == 0.0);
        return SN_(wide_reciprocal)(SN_(either64)(x == 0.0, SN_(f64)(1.0), x));
    default: return SN_(wide_partial)(function, x, finite, invalid, left);
    }
}

SN_INLINE SN_(enclosure)
    SN_(wide_enclosure_of_two)(int function, sn_wf x, sn_wf y, sn_wu rest, sn_wu *invalid, sn_wu *left) {
    switch (function) { /* known where this is inlined */
    case SN_ELEMENTARY_hypot: return SN_(wide_hypot)(x, y);
    case SN_ELEMENTARY_atan2: return SN_(wide_atan2)(0, x, y);
    case SN_ELEMENTARY_atan2pi: return SN_(wide_atan2)(1, x, y);
    case SN_ELEMENTARY_logaddexp: return SN_(wide_log_of_sum)(SN_BASE_E, x, y);
    case SN_ELEMENTARY_logaddexp2: return SN_(wide_log_of_sum)(SN_BASE_2, x, y);
    case SN_ELEMENTARY_rootn: return SN_(wide_rootn)(x, y, rest, invalid, left);
    default: return SN_(wide_pow)(function, x, y, rest, invalid, left);
    }
}

/* As in run.h: what waits for one another is ordered by that; and the functions of the longest chains, some 400 to 550
 * instructions a vector, are evaluated for two vectors side by side. Arrays are whole up to SN_WIDE_BLOCK. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("schedule-insns", "sched-pressure")
#endif

/* A vector of operands evaluated. */
typedef struct {
    SN_(enclosure) e;
    sn_wu zero, invalid, left; /* masks, but zero: 1 for -0 */
} SN_(wide_evaluated);

SN_INLINE SN_(wide_evaluated)
    SN_(wide_evaluate)(int function, int operands, const double *const x[2], size_t i, sn_wu rest) {
    SN_(wide_evaluated) v = {.zero = {0}, .invalid = {0}};
    sn_wf number[2];
    sn_wu finite = ~(sn_wu){0};
    for (int k = 0; k < operands; k++) {
        const sn_wf given = sn_load_wf(x[k] + i);
        const sn_wu size = (sn_wu)given & ~SN_SIGN64, within = (sn_wu)(size < (sn_u64)0x7ff << 52);
        number[k] = SN_(where64)((sn_wi)within, given);
        finite &= within;
        if (operands == 1) v.zero = (sn_wu)(size == 0) & (sn_wu)given >> 63;
    }
    v.left = ~finite;
    if (operands == 1)
        v.e = SN_(wide_enclosure)(function, number[0], finite, &v.invalid, &v.left);
    else
        v.e = SN_(wide_enclosure_of_two)(function, number[0], number[1], rest, &v.invalid, &v.left);
    v.invalid &= finite;
    return v;
}

SN_INLINE int SN_(wide_at_once)(int function) {
    return function == SN_ELEMENTARY_gelu || function == SN_ELEMENTARY_logaddexp || function == SN_ELEMENTARY_logaddexp2
               ? SN_AT_ONCE
               : 1;
}

SN_INLINE void SN_(wide_loop)(int function, int operands, const double *const x[2], sn_u64 rest_bits, int halves,
                              SN_(wide_results) * r, size_t n) {
    const sn_wu rest = (sn_wu){0} + rest_bits;
    const int at_once = SN_(wide_at_once)(function); /* known to the compiler */
    for (size_t i = 0; i < n; i += (size_t)at_once * SN_W) {
        SN_(wide_evaluated) v[SN_AT_ONCE];
#pragma GCC unroll 2
        for (int k = 0; k < at_once; k++)
            v[k] = SN_(wide_evaluate)(function, operands, x, i + (size_t)k * SN_W, rest);
#pragma GCC unroll 2
        for (int k = 0; k < at_once; k++) {
            const size_t to = i + (size_t)k * SN_W;
            sn_wu sig, exp, kind;
            SN_(wide_decided)(v[k].e, rest, halves, &sig, &exp, &kind);
            kind |= v[k].zero & (sn_wu)((kind & SN_WIDE_ZERO) != 0); /* a zero of -0 is -0 */
            kind = SN_SELECT64(v[k].invalid, (sn_wu){0} + SN_WIDE_INVALID, kind | (v[k].left & SN_WIDE_LEFT));
            memcpy(r->sig + to, &sig, sizeof sig);
            memcpy(r->exp + to, &exp, sizeof exp);
            memcpy(r->kind + to, &kind, sizeof kind);
        }
    }
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

SN_INLINE void SN_(wide_round)(int usual, const sn_normals *plan, const SN_(wide_results) * r, int width, void *out,
                               sn_u8 *flags, sn_u8 *outside, size_t n) {
    sn_normals t = *plan; /* copies, which out cannot alias */
    sn_env env = *plan->env;
    t.env = &env;
    if (usual) { /* what is_usual has found, as constants */
        t.whole = t.negative_zero = t.has_nan = 1;
        t.is_unsigned = 0;
        env.rounding = SN_NEAREST_EVEN;
        env.tininess = SN_TININESS_AFTER;
    }
    for (size_t i = 0; i < n; i += SN_W) {
        const sn_wu kind = sn_load_wu(r->kind + i), sign = (sn_wu)((kind & SN_WIDE_NEGATIVE) != 0);
        const sn_wu invalid = (sn_wu)((kind & SN_WIDE_INVALID) != 0);
        SN_(unrounded_64)
        x = {sn_load_wu(r->sig + i), sn_load_wu(r->exp + i), sign, (sn_wu)((kind & SN_WIDE_ZERO) != 0), sign};
        sn_wu raised, left = (sn_wu)((kind & SN_WIDE_LEFT) != 0);
        if (!t.has_nan) left |= invalid;
        const sn_wu code =
            SN_SELECT64(invalid, (sn_wu){0} + t.nan_code, SN_(round_normal_64)(&t, &x, (sn_wu){0}, &raised, &left));
        raised = SN_SELECT64(invalid, (sn_wu){0} + (SN_INVALID & t.raises), raised);
        SN_(store64)((char *)out + i * (size_t)width, width, code);
        SN_STORE8_64((char *)flags + i, raised);
        SN_STORE8_64((char *)outside + i, left);
    }
}

static void SN_(wide_function)(const sn_function *p, const sn_normals *plan, const double *const x[2], int width,
                               void *out, sn_u8 *flags, sn_u8 *outside, size_t n) {
    SN_(wide_results) r;
    const sn_u64 rest = ((sn_u64)1 << p->shift) - 1;
    const int halves = plan->mantissa_bits == 52;
#define OF_ONE(name)                                                                                                   \
    case SN_ELEMENTARY_##name: SN_(wide_loop)(SN_ELEMENTARY_##name, 1, x, rest, halves, &r, n); break;
#define OF_TWO(name)                                                                                                   \
    case SN_ELEMENTARY_##name: SN_(wide_loop)(SN_ELEMENTARY_##name, 2, x, rest, halves, &r, n); break;
    switch (p->function) { SN_FUNCTIONS_IN_LANES(OF_ONE) SN_FUNCTIONS_OF_TWO_IN_LANES(OF_TWO) }
#undef OF_ONE
#undef OF_TWO
    if (SN_(is_usual)(plan, 0, 0, 0))
        SN_(wide_round)(1, plan, &r, width, out, flags, outside, n);
    else
        SN_(wide_round)(0, plan, &r, width, out, flags, outside, n);
}

#endif

/* The loop over functions in lanes: included once per instruction set, by elementwise_*.c. */
#ifndef SOFTNUM_FUNCTIONS_RUN_H
#define SOFTNUM_FUNCTIONS_RUN_H

#include "elementwise/functions/exponential.h"
#include "elementwise/functions/inverse.h"
#include "elementwise/functions/logarithm.h"
#include "elementwise/functions/normal.h"
#include "elementwise/functions/roots.h"
#include "elementwise/functions/trigonometric.h"

/* The code of a binary64 number that lies where the result does, and is inexact if that is. */
SN_INLINE sn_wu SN_(code_of)(sn_wu number, sn_wi scale) {
    const sn_wu size = number & ~SN_SIGN64;
    const sn_wu code = (size >> 4 | ((sn_wu)((size & 15) != 0) & 1)) +
                       ((sn_wu)(scale + (SN_FUNCTION_BIAS - 1023)) << SN_FUNCTION_BITS);
    return SN_SELECT64(size == 0, (sn_wu){0}, code) | (number & SN_SIGN64);
}

/* A number with the same digits that stands for it in every format whose values and what decides on them lie well
 * within 2^-1000 .. 2^1000: beyond, all overflow or all are next to nothing. */
SN_INLINE sn_wu SN_(within_binary64)(int scaled, sn_wu number, sn_wi scale) {
    if (!scaled) return number;
    const sn_wu zero = {0}, size = number & ~SN_SIGN64, exponent = size >> 52;
    const sn_vi up = (sn_vi)(exponent + (sn_wu)scale), least = (sn_vi)(zero + 23), most = (sn_vi)(zero + 2023);
    const sn_vi not_below = SN_MAX(up, least);
    const sn_wu moved = number + (((sn_wu)SN_MIN(not_below, most) - exponent) << 52);
    return SN_SELECT64(size == 0, number, moved);
}

/* The sum of an enclosure's numbers, and where it lies near to where roundings change. */
typedef struct {
    sn_wf hi, err, error, size; /* as decide says; a magnitude */
    sn_wu bits, outside;        /* the sum's */
    sn_wu near;
} SN_(sum);

SN_INLINE SN_(sum) SN_(sum_of)(SN_(enclosure) e, sn_wu rest) {
    SN_(sum) s = {.hi = e.hi, .err = e.err, .outside = e.outside};
    const sn_wf sum = SN_(two_sum)(e.hi, e.lo, &s.error);
    s.size = SN_(magnitude64)(sum);
    s.bits = (sn_wu)sum;
    s.near = (sn_wu)(((s.bits + 128) & rest) < 256) | (sn_wu)(e.err * 0x1p47 > s.size);
    return s;
}

/* The numbers that stand for what lies between the ends of some enclosures, but for their scales; outside: where they
 * do not decide. `rest`: the bits that decide nothing. Let s be the sum rounded, in units of its last place, and e its
 * error, of half a unit at most.
 *   - err is 64 units at most, and s is 128 from any number without such bits: it stands for the result. So in most
 * vectors; else, lane by lane:
 *   - err is half a unit at most: so it does, unless it is such a number itself; then e tells on which side the result
 * lies if it exceeds err, and that it is s if both are 0. What is inexact is rounded to odd: that leads from such a
 * number, which is even, into the gap on that side, and no other number out of its own. */
SN_INLINE void SN_(decide)(SN_(sum) * all, int count, sn_wu rest) {
    sn_wu near = all[0].near;
    for (int i = 1; i < count; i++)
        near |= all[i].near;
    if (SN_ANY_GREATER64((sn_wi){0}, (sn_wi)near)) {
#pragma GCC unroll 2
        for (int i = 0; i < count; i++) {
            SN_(sum) *s = all + i;
            const sn_wu inexact = (sn_wu)(((sn_wu)s->err | (sn_wu)s->error << 1) != 0);
            const sn_wu inward = (sn_wu)((sn_wi)(s->bits ^ (sn_wu)s->error) < 0); /* all ones, and -1 */
            const sn_wu open = (sn_wu)((s->bits & rest) == 0) & inexact & (sn_wu)(SN_(magnitude64)(s->error) <= s->err);
            s->outside |= s->near & (open | (sn_wu)(s->err * 0x1p54 > s->size));
            s->bits = (s->bits + (inward & inexact)) | (inexact & 1);
        }
    }
#pragma GCC unroll 2
    for (int i = 0; i < count; i++)
        all[i].bits = SN_SELECT64(all[i].size == 0.0, all[i].hi, all[i].bits); /* a zero with hi's sign */
}

/* Functions whose results have no scale, and lie in 2^-400 .. 2^1000. */
SN_INLINE int SN_(is_scaled)(int function) {
    switch (function) {
    case SN_ELEMENTARY_log:
    case SN_ELEMENTARY_log2:
    case SN_ELEMENTARY_log10:
    case SN_ELEMENTARY_log1p:
    case SN_ELEMENTARY_log2p1:
    case SN_ELEMENTARY_log10p1:
    case SN_ELEMENTARY_sin:
    case SN_ELEMENTARY_cos:
    case SN_ELEMENTARY_tan:
    case SN_ELEMENTARY_sinpi:
    case SN_ELEMENTARY_cospi:
    case SN_ELEMENTARY_tanpi:
    case SN_ELEMENTARY_asin:
    case SN_ELEMENTARY_acos:
    case SN_ELEMENTARY_atan:
    case SN_ELEMENTARY_asinpi:
    case SN_ELEMENTARY_acospi:
    case SN_ELEMENTARY_atanpi:
    case SN_ELEMENTARY_tanh:
    case SN_ELEMENTARY_erf: return 0;
    default: return 1;
    }
}

/* What stands for a number 2^scale, or for what is invalid, as a code or a binary64 number. */
SN_INLINE sn_wu SN_(handed_on)(const sn_function *p, int scaled, sn_wu number, sn_wi scale, sn_wu invalid) {
    const int to_values = p->to_values;
    const sn_wu result = to_values ? SN_(within_binary64)(scaled, number, scale) : SN_(code_of)(number, scale);
    return SN_SELECT64(invalid, (sn_wu){0} + (to_values ? SN_FUNCTION_NAN : SN_FUNCTION_SIGNALING), result);
}

/* Where a function that is not defined everywhere is: between two ends, in magnitude of some; *at_end: those of them
 * that the definition has, such as poles; *inside: a number in between. */
SN_INLINE sn_wi SN_(in_domain)(int function, sn_wf x, sn_wi *at_end, double *inside) {
    *at_end = (sn_wi){0};
    *inside = 0.5;
    switch (function) {
    case SN_ELEMENTARY_asin:
    case SN_ELEMENTARY_asinpi:
    case SN_ELEMENTARY_acos:
    case SN_ELEMENTARY_acospi: return SN_(magnitude64)(x) <= 1.0;
    case SN_ELEMENTARY_atanh: *at_end = SN_(magnitude64)(x) == 1.0; return SN_(magnitude64)(x) <= 1.0;
    case SN_ELEMENTARY_acosh: *inside = 2.0; return x >= 1.0;
    case SN_ELEMENTARY_log1p:
    case SN_ELEMENTARY_log2p1:
    case SN_ELEMENTARY_log10p1: *at_end = x == -1.0; return x >= -1.0;
    default: *at_end = x == 0.0; return x >= 0.0;
    }
}

/* Such a function; *left: what the definition does beside. Other numbers are invalid. */
SN_INLINE SN_(enclosure) SN_(partial_in_lanes)(int function, sn_wf x, sn_wu usual, sn_wu *invalid, sn_wu *left) {
    sn_wi at_end;
    double inside;
    const sn_wi within = SN_(in_domain)(function, x, &at_end, &inside);
    *invalid = usual & ~(sn_wu)within;
    *left |= (sn_wu)at_end | (~usual & ~(sn_wu)within);
    const sn_wf number = SN_(either64)(within & ~at_end, x, SN_(f64)(inside));
    switch (function) {
    case SN_ELEMENTARY_asin: return SN_(asin_in_lanes)(0, 0, number);
    case SN_ELEMENTARY_asinpi: return SN_(asin_in_lanes)(0, 1, number);
    case SN_ELEMENTARY_acos: return SN_(asin_in_lanes)(1, 0, number);
    case SN_ELEMENTARY_acospi: return SN_(asin_in_lanes)(1, 1, number);
    case SN_ELEMENTARY_atanh: return SN_(atanh_in_lanes)(number);
    case SN_ELEMENTARY_acosh: return SN_(acosh_in_lanes)(number);
    case SN_ELEMENTARY_rsqrt: return SN_(rsqrt_in_lanes)(number);
    case SN_ELEMENTARY_log: return SN_(log_in_lanes)(SN_LOG_E, number);
    case SN_ELEMENTARY_log2: return SN_(log_in_lanes)(SN_LOG_2, number);
    case SN_ELEMENTARY_log10: return SN_(log_in_lanes)(SN_LOG_10, number);
    case SN_ELEMENTARY_log1p: return SN_(log1p_in_lanes)(SN_LOG_E, number);
    case SN_ELEMENTARY_log2p1: return SN_(log1p_in_lanes)(SN_LOG_2, number);
    default: return SN_(log1p_in_lanes)(SN_LOG_10, number);
    }
}

/* A vector takes a chain of some 40 instructions that wait for one another, and processors do not look far enough ahead
 * to begin with the next vector meanwhile. So two are evaluated side by side, and GCC, which has no such pass for x86
 * unless told, orders their instructions by what they wait for. Arrays are whole up to a multiple of 16: no more. */
enum { SN_AT_ONCE = 2 };
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("schedule-insns", "sched-pressure")
#endif

/* A vector of operands, and what is known of the function of them. */
typedef struct {
    SN_(enclosure) e;
    sn_wu given, zero, invalid, left; /* patterns; masks, the last of what the definition does */
} SN_(evaluated);

SN_INLINE SN_(evaluated) SN_(evaluate)(int function, const double *x) {
    const sn_wf given = sn_load_wf(x);
    const sn_wu bits = (sn_wu)given, size = bits & ~SN_SIGN64;
    const sn_wu zero = (sn_wu)(size == 0), usual = (sn_wu)((sn_wu)(size - SN_FUNCTION_LEAST) < SN_FUNCTION_SPAN);
    const sn_wf number = SN_(where64)((sn_wi)usual, given);
    SN_(evaluated) v = {.given = bits, .zero = zero, .invalid = {0}, .left = ~(usual | zero)};
    switch (function) { /* known where this is inlined */
    case SN_ELEMENTARY_exp: v.e = SN_(exp_in_lanes)(SN_BASE_E, number); break;
    case SN_ELEMENTARY_exp2: v.e = SN_(exp_in_lanes)(SN_BASE_2, number); break;
    case SN_ELEMENTARY_exp10: v.e = SN_(exp_in_lanes)(SN_BASE_10, number); break;
    case SN_ELEMENTARY_expm1: v.e = SN_(expm1_in_lanes)(SN_BASE_E, number); break;
    case SN_ELEMENTARY_exp2m1: v.e = SN_(expm1_in_lanes)(SN_BASE_2, number); break;
    case SN_ELEMENTARY_exp10m1: v.e = SN_(expm1_in_lanes)(SN_BASE_10, number); break;
    case SN_ELEMENTARY_sinh: v.e = SN_(sinh_in_lanes)(1, number); break;
    case SN_ELEMENTARY_cosh: v.e = SN_(sinh_in_lanes)(0, number); break;
    case SN_ELEMENTARY_tanh: v.e = SN_(tanh_in_lanes)(number); break;
    case SN_ELEMENTARY_sigmoid: v.e = SN_(sigmoid_in_lanes)(0, number); break;
    case SN_ELEMENTARY_silu: v.e = SN_(sigmoid_in_lanes)(1, number); break;
    case SN_ELEMENTARY_erf: v.e = SN_(erf_in_lanes)(number); break;
    case SN_ELEMENTARY_gelu: v.e = SN_(gelu_in_lanes)(number); break;
    case SN_ELEMENTARY_sin: v.e = SN_(trigonometric_in_lanes)(SN_SINE, 0, number); break;
    case SN_ELEMENTARY_cos: v.e = SN_(trigonometric_in_lanes)(SN_COSINE, 0, number); break;
    case SN_ELEMENTARY_tan: v.e = SN_(trigonometric_in_lanes)(SN_TANGENT, 0, number); break;
    case SN_ELEMENTARY_sinpi: v.e = SN_(trigonometric_in_lanes)(SN_SINE, 1, number); break;
    case SN_ELEMENTARY_cospi: v.e = SN_(trigonometric_in_lanes)(SN_COSINE, 1, number); break;
    case SN_ELEMENTARY_tanpi: v.e = SN_(trigonometric_in_lanes)(SN_TANGENT, 1, number); break;
    case SN_ELEMENTARY_cbrt: v.e = SN_(cbrt_in_lanes)(number); break;
    case SN_ELEMENTARY_atan: v.e = SN_(atan_in_lanes)(0, number); break;
    case SN_ELEMENTARY_atanpi: v.e = SN_(atan_in_lanes)(1, number); break;
    case SN_ELEMENTARY_asinh: v.e = SN_(asinh_in_lanes)(number); break;
    case SN_ELEMENTARY_softplus: v.e = SN_(softplus_in_lanes)(number); break;
    case SN_ELEMENTARY_reciprocal:
        v.left = ~usual;
        v.e = SN_(reciprocal_in_lanes)(SN_(either64)((sn_wi)usual, number, SN_(f64)(1.0)));
        break;
    default: v.e = SN_(partial_in_lanes)(function, number, usual, &v.invalid, &v.left);
    }
    return v;
}

SN_INLINE void SN_(function_loop)(int function, const sn_function *p, const double *x, sn_u64 *results, sn_u8 *outside,
                                  size_t n) {
    const sn_wu rest = (sn_wu){0} + (((sn_u64)1 << p->shift) - 1);
    const sn_wu no_nan = (sn_wu){0} - (sn_u64)(p->to_values && p->without_nan);
    for (size_t i = 0; i < n; i += SN_AT_ONCE * SN_W) {
        SN_(evaluated) v[SN_AT_ONCE];
        SN_(sum) sums[SN_AT_ONCE];
#pragma GCC unroll 2
        for (int k = 0; k < SN_AT_ONCE; k++) {
            v[k] = SN_(evaluate)(function, x + i + k * SN_W);
            sums[k] = SN_(sum_of)(v[k].e, rest);
        }
        SN_(decide)(sums, SN_AT_ONCE, rest);
#pragma GCC unroll 2
        for (int k = 0; k < SN_AT_ONCE; k++) {
            sn_wu result = sums[k].bits;
            result |= v[k].zero & (sn_wu)((result & ~SN_SIGN64) == 0) & v[k].given; /* a zero of -0 is -0 */
            result = SN_(handed_on)(p, SN_(is_scaled)(function), result, v[k].e.scale, v[k].invalid);
            const sn_wu left = v[k].left | (sums[k].outside & ~v[k].invalid) | (v[k].invalid & no_nan);
            memcpy(results + i + k * SN_W, &result, sizeof result);
            SN_STORE8_64((char *)outside + i + k * SN_W, left);
        }
    }
}

static void SN_(function)(const sn_function *p, const double *x, sn_u64 *results, sn_u8 *outside, size_t n) {
#define FUNCTION(name)                                                                                                 \
    case SN_ELEMENTARY_##name: SN_(function_loop)(SN_ELEMENTARY_##name, p, x, results, outside, n); break;
    switch (p->function) { SN_FUNCTIONS_IN_LANES(FUNCTION) }
#undef FUNCTION
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

#endif

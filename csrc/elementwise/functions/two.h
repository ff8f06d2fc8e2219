/* The loop over functions of two operands in lanes: included once per instruction set, by elementwise_*.c. */
#ifndef SOFTNUM_FUNCTIONS_TWO_H
#define SOFTNUM_FUNCTIONS_TWO_H

#include "elementwise/functions/plane.h"
#include "elementwise/functions/power.h"
#include "elementwise/functions/run.h"

#if defined(__GNUC__) && !defined(__clang__) /* as in run.h */
#pragma GCC push_options
#pragma GCC optimize("schedule-insns", "sched-pressure")
#endif

SN_INLINE SN_(evaluated) SN_(evaluate_two)(int function, const double *x, const double *y, sn_wu rest) {
    const sn_wf given[2] = {sn_load_wf(x), sn_load_wf(y)};
    sn_wf number[2];
    SN_(evaluated) v = {.invalid = {0}, .left = {0}};
    for (int k = 0; k < 2; k++) {
        const sn_wu size = (sn_wu)given[k] & ~SN_SIGN64;
        const sn_wu within = (sn_wu)(size == 0) | (sn_wu)((sn_wu)(size - SN_FUNCTION_LEAST) < SN_FUNCTION_SPAN);
        number[k] = SN_(where64)((sn_wi)within, given[k]);
        v.left |= ~within;
    }
    const sn_wf a = number[0], b = number[1];
    switch (function) { /* known where this is inlined */
    case SN_ELEMENTARY_hypot: v.e = SN_(hypot_in_lanes)(a, b); break;
    case SN_ELEMENTARY_atan2: v.e = SN_(atan2_in_lanes)(0, a, b); break;
    case SN_ELEMENTARY_atan2pi: v.e = SN_(atan2_in_lanes)(1, a, b); break;
    case SN_ELEMENTARY_logaddexp: v.e = SN_(log_of_sum_in_lanes)(SN_BASE_E, a, b); break;
    case SN_ELEMENTARY_logaddexp2: v.e = SN_(log_of_sum_in_lanes)(SN_BASE_2, a, b); break;
    case SN_ELEMENTARY_rootn: v.e = SN_(rootn_in_lanes)(a, b, rest, &v.invalid, &v.left); break;
    default: v.e = SN_(power_in_lanes)(function, a, b, rest, &v.invalid, &v.left);
    }
    return v;
}

SN_INLINE void SN_(function_of_two_loop)(int function, const sn_function *p, const double *x, const double *y,
                                         sn_u64 *results, sn_u8 *outside, size_t n) {
    const sn_wu rest = (sn_wu){0} + (((sn_u64)1 << p->shift) - 1);
    const sn_wu no_nan = (sn_wu){0} - (sn_u64)(p->to_values && p->without_nan);
    for (size_t i = 0; i < n; i += SN_AT_ONCE * SN_W) {
        SN_(evaluated) v[SN_AT_ONCE];
        SN_(sum) sums[SN_AT_ONCE];
#pragma GCC unroll 2
        for (int k = 0; k < SN_AT_ONCE; k++) {
            v[k] = SN_(evaluate_two)(function, x + i + k * SN_W, y + i + k * SN_W, rest);
            sums[k] = SN_(sum_of)(v[k].e, rest);
        }
        SN_(decide)(sums, SN_AT_ONCE, rest);
#pragma GCC unroll 2
        for (int k = 0; k < SN_AT_ONCE; k++) {
            const sn_wu result = SN_(handed_on)(p, 1, sums[k].bits, v[k].e.scale, v[k].invalid);
            const sn_wu left = v[k].left | (sums[k].outside & ~v[k].invalid) | (v[k].invalid & no_nan);
            memcpy(results + i + k * SN_W, &result, sizeof result);
            SN_STORE8_64((char *)outside + i + k * SN_W, left);
        }
    }
}

static void SN_(function_of_two)(const sn_function *p, const double *x, const double *y, sn_u64 *results,
                                 sn_u8 *outside, size_t n) {
#define FUNCTION(name)                                                                                                 \
    case SN_ELEMENTARY_##name: SN_(function_of_two_loop)(SN_ELEMENTARY_##name, p, x, y, results, outside, n); break;
    switch (p->function) { SN_FUNCTIONS_OF_TWO_IN_LANES(FUNCTION) }
#undef FUNCTION
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

#endif

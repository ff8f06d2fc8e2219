/* The loop over functions of two operands in lanes: included once per instruction set, by elementwise_*.c. */
#ifndef SOFTNUM_FUNCTIONS_TWO_H
#define SOFTNUM_FUNCTIONS_TWO_H

#include "elementwise/functions/plane.h"
#include "elementwise/functions/power.h"
#include "elementwise/functions/run.h"

SN_INLINE void SN_(function_of_two_loop)(int function, const sn_function *p, const double *x, const double *y,
                                         sn_u64 *results, sn_u8 *outside, size_t n) {
    const sn_wu rest = (sn_wu){0} + (((sn_u64)1 << p->shift) - 1);
    const sn_wu no_nan = (sn_wu){0} - (sn_u64)(p->to_values && p->without_nan);
    for (size_t i = 0; i < n; i += SN_W) {
        const sn_wf given[2] = {sn_load_wf(x + i), sn_load_wf(y + i)};
        sn_wf number[2];
        sn_wu undecided, invalid = {0}, left = {0};
        for (int k = 0; k < 2; k++) {
            const sn_wu size = (sn_wu)given[k] & ~SN_SIGN64;
            const sn_wu within = (sn_wu)(size == 0) | (sn_wu)((sn_wu)(size - SN_FUNCTION_LEAST) < SN_FUNCTION_SPAN);
            number[k] = SN_(where64)((sn_wi)within, given[k]);
            left |= ~within;
        }
        const sn_wf a = number[0], b = number[1];
        SN_(enclosure) e;
        switch (function) { /* known where this is inlined */
        case SN_ELEMENTARY_hypot: e = SN_(hypot_in_lanes)(a, b); break;
        case SN_ELEMENTARY_atan2: e = SN_(atan2_in_lanes)(0, a, b); break;
        case SN_ELEMENTARY_atan2pi: e = SN_(atan2_in_lanes)(1, a, b); break;
        case SN_ELEMENTARY_logaddexp: e = SN_(log_of_sum_in_lanes)(SN_BASE_E, a, b); break;
        case SN_ELEMENTARY_logaddexp2: e = SN_(log_of_sum_in_lanes)(SN_BASE_2, a, b); break;
        case SN_ELEMENTARY_rootn: e = SN_(rootn_in_lanes)(a, b, rest, &invalid, &left); break;
        default: e = SN_(power_in_lanes)(function, a, b, rest, &invalid, &left);
        }
        const sn_wu decided = SN_(decided)(e, rest, &undecided);
        const sn_wu result = SN_(handed_on)(p, 1, decided, e.scale, invalid);
        left |= (undecided & ~invalid) | (invalid & no_nan);
        memcpy(results + i, &result, sizeof result);
        SN_STORE8_64((char *)outside + i, left);
    }
}

static void SN_(function_of_two)(const sn_function *p, const double *x, const double *y, sn_u64 *results,
                                 sn_u8 *outside, size_t n) {
#define FUNCTION(name)                                                                                                 \
    case SN_ELEMENTARY_##name: SN_(function_of_two_loop)(SN_ELEMENTARY_##name, p, x, y, results, outside, n); break;
    switch (p->function) { SN_FUNCTIONS_OF_TWO_IN_LANES(FUNCTION) }
#undef FUNCTION
}

#endif

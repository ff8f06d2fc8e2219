/* exp and what is made of it, of wide operands, in lanes (wide.h).
 *
 * As in exponential.h, b^x = 2^k t e^r, n = 16 k + j, t = 2^(j / 16), a pair. r = x - n c, c = log(2) / 16
 * (of 10^x, log10(2) / 16, times log(10)) in three parts: c_high, of 35 bits, and n, of at most 18, make x - n c_high
 * exact: where n is not 0, |x| > 2^-7, so that it is a multiple of 2^-59 below 2^-5.5; the next part's product is exact
 * too. s = e^r - 1 = r (1 + r / 2 + r^2 / 6 + ...). What an exponent in two parts has beyond x, below 2^-42, is added
 * to r.
 *
 * Errors: of r, 2^-102, or where a sum is part of it 2^-92; of s, r^3 / 24 2^-50 of itself, less than 2^-70; of t and
 * sums, 2^-100 where n is not 0. So the power is off by 2^-70 |s| + 2^-98, the latter where n is not 0. s = 0 and j = 0
 * make an exact 2^x; where 10^x may be exact, the definition is asked.
 *
 * e^x - 1 is s where n is 0; else at least 2^-6. sinh and tanh are series below 1/4, of errors below 2^-70; above, sinh
 * loses less than 3 bits. */
#ifndef SOFTNUM_FUNCTIONS_WIDE_EXPONENTIAL_H
#define SOFTNUM_FUNCTIONS_WIDE_EXPONENTIAL_H

#include "elementwise/functions/exponential.h"
#include "elementwise/functions/wide.h"

typedef struct {
    SN_(pair64) power, s; /* in 1 .. 2; e^r - 1 */
    sn_wf err;            /* of the power */
    sn_wi n, k;
} SN_(wide_power);

/* b^(x + low), low only if of_sum; |x| log2(b) <= 11000 */
SN_INLINE SN_(wide_power) SN_(wide_power_of_sum)(int base, int of_sum, sn_wf x, sn_wf low) {
    SN_(wide_power) e;
    const double steps = base == SN_BASE_E    ? SN_FUNCTION_EXP_STEPS
                         : base == SN_BASE_10 ? SN_FUNCTION_EXP10_STEPS
                                              : (double)SN_EXP_STEPS;
    const sn_wf shifted = x * steps + SN_TO_INTEGER64, n = shifted - SN_TO_INTEGER64;
    e.n = (sn_wi)((sn_wu)shifted - (sn_wu)SN_(f64)(SN_TO_INTEGER64));
    SN_(pair64) r;
    if (base == SN_BASE_2) {
        const sn_wf part = x - n * (1.0 / (double)SN_EXP_STEPS);
        r = of_sum ? SN_(pair_multiply)(SN_(exact_sum)(part, low), SN_WIDE_PAIR(LN_2))
                   : SN_(pair_scale)(SN_WIDE_PAIR(LN_2), part);
    } else if (base == SN_BASE_E) {
        r = SN_(exact_sum)(x - n * SN_WIDE_EXP_STEP_HIGH, -n * SN_WIDE_EXP_STEP_LOW);
        r = of_sum ? SN_(exact_sum)(r.hi, r.lo + (low - n * SN_WIDE_EXP_STEP_LEAST))
                   : SN_(ordered_sum)(r.hi, r.lo - n * SN_WIDE_EXP_STEP_LEAST);
    } else {
        r = SN_(exact_sum)(x - n * SN_WIDE_EXP10_STEP_HIGH, -n * SN_WIDE_EXP10_STEP_LOW);
        r = SN_(pair_multiply)(SN_(ordered_sum)(r.hi, r.lo - n * SN_WIDE_EXP10_STEP_LEAST), SN_WIDE_PAIR(LN_10));
    }
    e.s = SN_(pair_multiply)(r, SN_WIDE_SERIES(exp, EXP, r));
    const sn_wu j = (sn_wu)e.n & (SN_EXP_STEPS - 1);
    const SN_(pair64) t = {SN_LOOK_UP16(sn_powers, j), SN_LOOK_UP16(sn_powers_low, j)};
    e.power = SN_(pair_add_less)(t, SN_(pair_multiply)(t, e.s));
    e.err = SN_(magnitude64)(e.s.hi) * 0x1p-70 +
            SN_(where64)(base == SN_BASE_2 ? (sn_wi)(t.lo != 0.0) : (e.n != 0), SN_(f64)(0x1p-98));
    if (of_sum && base == SN_BASE_E) e.err += SN_(where64)(low != 0.0, SN_(f64)(0x1p-90));
    e.k = e.n >> 4;
    return e;
}

SN_INLINE SN_(wide_power) SN_(wide_power_of)(int base, sn_wf x) {
    return SN_(wide_power_of_sum)(base, 0, x, (sn_wf){0});
}

SN_INLINE SN_(enclosure) SN_(wide_exp)(int base, sn_wf operand) {
    const sn_wf x = SN_(limited)(operand, SN_(most_power)(base));
    const SN_(wide_power) e = SN_(wide_power_of)(base, x);
    SN_(enclosure) r = SN_(enclosure_of)(e.power, e.err, e.k);
    if (base == SN_BASE_10) r.outside = SN_(whole_power)(x);
    return SN_(near_constant)(r, x, 0x1p-100, x);
}

/* As expm1_in_lanes: powers of two of more than 2^1000 stand for all. */
SN_INLINE SN_(enclosure) SN_(wide_expm1)(int base, sn_wf operand) {
    const sn_wf x = SN_(limited)(operand, SN_(most_power)(base));
    const sn_wi tiny = SN_(magnitude64)(x) < 0x1p-500;
    const SN_(wide_power) e = SN_(wide_power_of)(base, SN_(either64)(tiny, x * 0x1p400, x));
    const sn_wi up = (sn_wi)SN_SELECT64(e.k > 0, e.k, (sn_wi){0}), most = (sn_wi){0} + 1000, down = e.k - up;
    const sn_wf one = SN_(two_to)(-(sn_wi)SN_SELECT64(up > most, most, up)),
                part = SN_(two_to)((sn_wi)SN_SELECT64(down < -most, -most, down));
    const SN_(pair64) power = {e.power.hi * part, e.power.lo * part};
    const SN_(enclosure) large =
        SN_(enclosure_of)(SN_(pair_add)(power, SN_(pair_of)(-one, (sn_wf){0})), e.err * part, up);
    const SN_(enclosure) small = SN_(enclosure_of)(e.s, SN_(magnitude64)(e.s.hi) * 0x1p-69, tiny & -400);
    SN_(enclosure) r = SN_(enclosure_either)(e.n == 0, small, large);
    if (base == SN_BASE_10) r.outside = SN_(whole_power)(x);
    if (base != SN_BASE_E) return r;
    r = SN_(near_operand)(r, x, 0x1p-54, 1);
    r.lo = SN_(either64)(SN_(magnitude64)(x) < 0x1p-54, SN_(magnitude64)(r.lo), r.lo); /* x^2 / 2 */
    return r;
}

/* x P(x^2) for |x| < 1/4, and a number for the rest. */
SN_INLINE SN_(pair64) SN_(square_of_small)(sn_wf x) {
    const sn_wf a = SN_(either64)((x < 0.25) & (x > 0x1p-100), x, SN_(f64)(0.125));
    return SN_(exact_product)(a, a);
}

/* e^-a and e^a, of 2^-1000 at least; a >= 0 */
SN_INLINE SN_(enclosure) SN_(wide_sinh)(int sine, sn_wf x) {
    const sn_wf a = SN_(limited)(SN_(magnitude64)(x), 7600.0);
    const SN_(wide_power) up = SN_(wide_power_of)(SN_BASE_E, a);
    const SN_(pair64) inverse = SN_(pair_divide)(SN_(pair_of)(SN_(f64)(1.0), (sn_wf){0}), up.power);
    const sn_wi apart = -(up.k + up.k), most = (sn_wi){0} - 1000;
    const sn_wf part = SN_(two_to)((sn_wi)SN_SELECT64(apart < most, most, apart)), minus = sine ? -part : part;
    const SN_(pair64) sum = SN_(pair_add)(up.power, SN_(pair_of)(inverse.hi * minus, inverse.lo * minus));
    const SN_(enclosure) large = SN_(enclosure_of)(sum, up.err + up.err, up.k - 1);
    if (!sine) return SN_(near_constant)(large, x, 0x1p-27, SN_(f64)(1.0));
    const SN_(pair64) square = SN_(square_of_small)(a), small = SN_(pair_scale)(SN_WIDE_SERIES(sinh, SINH, square), a);
    const SN_(enclosure) e = SN_(enclosure_either)(
        a < 0.25, SN_(enclosure_of)(small, SN_(magnitude64)(small.hi) * 0x1p-70, (sn_wi){0}), large);
    return SN_(near_operand)(SN_(enclosure_signed)(e, (sn_wu)x & SN_SIGN64), x, 0x1p-27, 1);
}

/* 1 / (e^a + 1), off by 2^-72 of itself; 0 <= a <= 700 */
SN_INLINE SN_(pair64) SN_(wide_by_power)(sn_wf a) {
    const SN_(wide_power) e = SN_(wide_power_of)(SN_BASE_E, a);
    const sn_wf scale = SN_(two_to)(e.k);
    const SN_(pair64) one = {SN_(f64)(1.0), (sn_wf){0}};
    return SN_(pair_divide)(one, SN_(pair_add)(SN_(pair_of)(e.power.hi * scale, e.power.lo * scale), one));
}

/* 1 - 2 / (e^2a + 1); from a = 100 on the same as there */
SN_INLINE SN_(enclosure) SN_(wide_tanh)(sn_wf x) {
    const sn_wf a = SN_(limited)(SN_(magnitude64)(x), 100.0);
    const sn_wi little = a < 0.25;
    const SN_(pair64) part = SN_(wide_by_power)(SN_(either64)(little, SN_(f64)(1.0), a + a));
    const SN_(pair64) one = {SN_(f64)(1.0), (sn_wf){0}}, twice = {-2.0 * part.hi, -2.0 * part.lo};
    const SN_(enclosure) large = SN_(enclosure_of)(SN_(pair_add)(one, twice), part.hi * 0x1p-70, (sn_wi){0});
    const SN_(pair64) square = SN_(square_of_small)(a), small = SN_(pair_scale)(SN_WIDE_SERIES(tanh, TANH, square), a);
    const SN_(enclosure) e = SN_(enclosure_either)(
        little, SN_(enclosure_of)(small, SN_(magnitude64)(small.hi) * 0x1p-70, (sn_wi){0}), large);
    return SN_(near_operand)(SN_(enclosure_signed)(e, (sn_wu)x & SN_SIGN64), x, 0x1p-27, 0);
}

/* a = |x|, y = e^-a / (1 + e^-a): y, or 1 - y */
SN_INLINE SN_(enclosure) SN_(wide_sigmoid)(sn_wf x) {
    const sn_wf a = SN_(limited)(SN_(magnitude64)(x), 7600.0);
    const SN_(wide_power) e = SN_(wide_power_of)(SN_BASE_E, -a);
    const sn_wi most = (sn_wi){0} - 900;
    const sn_wf scale = SN_(two_to)((sn_wi)SN_SELECT64(e.k < most, most, e.k));
    const SN_(pair64) one = {SN_(f64)(1.0), (sn_wf){0}}, power = {e.power.hi * scale, e.power.lo * scale};
    const SN_(pair64) y = SN_(pair_divide)(e.power, SN_(pair_add)(one, power));
    const SN_(pair64) less = {-y.hi * scale, -y.lo * scale};
    const SN_(enclosure) low = SN_(enclosure_of)(y, y.hi * 0x1p-70, e.k);
    const SN_(enclosure) high = SN_(enclosure_of)(SN_(pair_add)(one, less), y.hi * scale * 0x1p-70, (sn_wi){0});
    const sn_wi tiny = a < 0x1p-60;
    SN_(enclosure) r = SN_(enclosure_either)(x < 0.0, low, high);
    r.hi = SN_(either64)(tiny, SN_(f64)(0.5), r.hi);
    r.lo = SN_(where64)(~tiny, r.lo);
    r.err = SN_(where64)(~tiny, r.err);
    r.scale = (sn_wi)SN_SELECT64(tiny, (sn_wi){0}, r.scale);
    return SN_(near_constant)(r, x, 0x1p-60, x);
}

#endif

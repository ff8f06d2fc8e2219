/* exp, exp2, exp10, what is 1 less, and the functions made of them: in lanes (evaluate.h).
 *
 * b^x = 2^k t (1 + s) with n = 16 k + j the integer nearest to 16 log2(b) x, t = 2^(j / 16) = power + power_low, and
 * 1 + s = e^r, r = (x - n c) log(b), c = log_b(2) / 16, |r| < 2^-5.5. c is c_high, of 35 bits, and c_low: n has at most
 * 18 bits, x - n c_high is exact, being a multiple of 2^-40 where n is not 0 (x has 30 bits and is above 2^-8); for 2^x
 * so is x - n / 16. s = r + r^2 C(r^2) + r^3 S(r^2), the Taylor series of cosh r - 1 and sinh r.
 *
 * Errors: of r, 2^-58 where n is not 0, and 2 u |r| of 2^x and 10^x, whose log(b) is rounded; of s by its evaluation 2
 * u |s|; of t s another u |t s|; of the sum with power_low 2^-53 of |lo|. Altogether below 2^-49 |s| + 2^-40
 * |power_low|, and 2^-55 more where r is reduced inexactly: `slack` is that. s = 0 and power_low = 0 make an exact 2^x.
 */
#ifndef SOFTNUM_FUNCTIONS_EXPONENTIAL_H
#define SOFTNUM_FUNCTIONS_EXPONENTIAL_H

#include "elementwise/functions/evaluate.h"

enum { SN_BASE_E, SN_BASE_2, SN_BASE_10 };

typedef struct {
    sn_wi n;
    sn_wf r, even, odd; /* cosh r - 1, sinh r - r */
} SN_(reduced_power);

typedef struct {
    sn_wf hi, lo, err; /* in 1 .. 2 */
    sn_wi k;
} SN_(power);

/* |x| log2(b) <= 11000 */
SN_INLINE SN_(reduced_power) SN_(reduce_power)(int base, sn_wf x) {
    SN_(reduced_power) p;
    const double steps = base == SN_BASE_E    ? SN_FUNCTION_EXP_STEPS
                         : base == SN_BASE_10 ? SN_FUNCTION_EXP10_STEPS
                                              : (double)SN_EXP_STEPS;
    const sn_wf shifted = x * steps + SN_TO_INTEGER64, n = shifted - SN_TO_INTEGER64;
    p.n = (sn_wi)((sn_wu)shifted - (sn_wu)SN_(f64)(SN_TO_INTEGER64));
    if (base == SN_BASE_2)
        p.r = (x - n * (1.0 / (double)SN_EXP_STEPS)) * SN_FUNCTION_LN_2;
    else if (base == SN_BASE_E)
        p.r = (x - n * SN_FUNCTION_EXP_HIGH) - n * SN_FUNCTION_EXP_LOW;
    else
        p.r = ((x - n * SN_FUNCTION_EXP10_HIGH) - n * SN_FUNCTION_EXP10_LOW) * SN_FUNCTION_EXP10_SCALE;
    const sn_wf square = p.r * p.r;
    p.even = square * SN_(polynomial)(sn_cosh_terms, 2, square);
    p.odd = p.r * (square * SN_(polynomial)(sn_sinh_terms, 2, square));
    return p;
}

SN_INLINE sn_wf SN_(slack)(int base, sn_wi n) {
    return base == SN_BASE_2 ? (sn_wf){0} : SN_(where64)(n != 0, SN_(f64)(0x1p-55));
}

/* b^x of what reduce_power made of x, or b^-x. */
SN_INLINE SN_(power) SN_(power_of)(int base, const SN_(reduced_power) * p, int inverse) {
    SN_(power) e;
    const sn_wi n = inverse ? -p->n : p->n;
    const sn_wu j = (sn_wu)n & (SN_EXP_STEPS - 1);
    const sn_wf low = SN_LOOK_UP16(sn_powers_low, j);
    const sn_wf s = inverse ? (p->even - p->odd) - p->r : p->r + (p->even + p->odd);
    e.hi = SN_LOOK_UP16(sn_powers, j);
    e.lo = SN_MULTIPLY_ADD64(e.hi, s, low);
    e.err = SN_(magnitude64)(s) * 0x1p-49 + SN_(magnitude64)(low) * 0x1p-40 + SN_(slack)(base, n);
    e.k = n >> 4;
    return e;
}

/* x, no larger than where all formats end. */
SN_INLINE sn_wf SN_(limited)(sn_wf x, double most) {
    const sn_wf size = SN_(magnitude64)(x);
    return SN_(with_sign64)(SN_(either64)(size > most, SN_(f64)(most), size), (sn_wu)x & SN_SIGN64);
}

SN_INLINE double SN_(most_power)(int base) { return base == SN_BASE_2 ? 11000.0 : base == SN_BASE_E ? 7600.0 : 3300.0; }

/* Where 10^x may be exact: whole x from 1 on; beyond 22 it has more than 46 bits. */
SN_INLINE sn_wu SN_(whole_power)(sn_wf x) {
    const sn_wf whole = (x + SN_TO_INTEGER64) - SN_TO_INTEGER64;
    return (sn_wu)((whole == x) & (x > 0.0) & (x < 64.0));
}

SN_INLINE SN_(enclosure) SN_(exp_in_lanes)(int base, sn_wf operand) {
    const sn_wf x = SN_(limited)(operand, SN_(most_power)(base));
    const SN_(reduced_power) p = SN_(reduce_power)(base, x);
    const SN_(power) e = SN_(power_of)(base, &p, 0);
    SN_(enclosure) r = {e.hi, e.lo, e.err, e.k, {0}};
    if (base == SN_BASE_10) r.outside = SN_(whole_power)(x);
    return r;
}

/* n = 0: r and what follows it, r being x but for its rounding by log(b). Else 2^k t (1 + s) - 1, times 2^-k for k > 0;
 * 2^200 stands for all greater powers of two, which changes nothing in the first 46 bits, and leaves nothing subnormal,
 * which is slow. What the difference is rounded by is exact, but not the sum that it is part of, unless the power is.
 */
SN_INLINE SN_(enclosure) SN_(expm1_in_lanes)(int base, sn_wf operand) {
    const sn_wf x = SN_(limited)(operand, SN_(most_power)(base));
    const SN_(reduced_power) p = SN_(reduce_power)(base, x);
    const SN_(power) e = SN_(power_of)(base, &p, 0);
    const sn_wi up = (sn_wi)SN_SELECT64(e.k > 0, e.k, (sn_wi){0}), most = (sn_wi){0} + 200;
    const sn_wi down = e.k - up;
    const sn_wf one = SN_(two_to)(-(sn_wi)SN_SELECT64(up > most, most, up)),
                part = SN_(two_to)((sn_wi)SN_SELECT64(down < -most, -most, down));
    const sn_wi small = p.n == 0;
    sn_wf error;
    const sn_wf difference = SN_(two_sum)(e.hi * part, -one, &error), rest = p.even + p.odd;
    const sn_wf small_err =
        SN_(magnitude64)(rest) * 0x1p-49 + (base == SN_BASE_E ? (sn_wf){0} : SN_(magnitude64)(p.r) * 0x1p-51);
    SN_(enclosure)
    r = {SN_(either64)(small, p.r, difference),
         SN_(either64)(small, rest, error + e.lo * part),
         SN_(either64)(small, small_err, e.err * part + SN_(where64)(e.err != 0.0, SN_(magnitude64)(error) * 0x1p-52)),
         (sn_wi)SN_SELECT64(small, (sn_wi){0}, up),
         {0}};
    if (base == SN_BASE_10) r.outside = SN_(whole_power)(x);
    return r;
}

/* (e^a -+ e^-a) / 2, a = |x|; e^-a no less than 2^-200 e^a, as there. n = 0: r + odd, 1 + even. */
SN_INLINE SN_(enclosure) SN_(sinh_in_lanes)(int sine, sn_wf x) {
    const sn_wu sign = (sn_wu)x & SN_SIGN64;
    const sn_wf a = SN_(limited)(SN_(magnitude64)(x), 7600.0);
    const SN_(reduced_power) p = SN_(reduce_power)(SN_BASE_E, a);
    const SN_(power) up = SN_(power_of)(SN_BASE_E, &p, 0), down = SN_(power_of)(SN_BASE_E, &p, 1);
    const sn_wi apart = down.k - up.k, most = (sn_wi){0} - 200, small = p.n == 0;
    const sn_wf part = SN_(two_to)((sn_wi)SN_SELECT64(apart < most, most, apart)), minus = sine ? -part : part;
    sn_wf error;
    const sn_wf hi = SN_(two_sum)(up.hi, down.hi * minus, &error);
    SN_(enclosure) r;
    r.hi = SN_(either64)(small, sine ? p.r : SN_(f64)(1.0), hi);
    r.lo = SN_(either64)(small, sine ? p.odd : p.even, error + (up.lo + down.lo * minus));
    r.err = SN_(either64)(small, SN_(magnitude64)(r.lo) * 0x1p-49, up.err + down.err * part);
    r.scale = (sn_wi)SN_SELECT64(small, (sn_wi){0}, up.k - 1);
    r.outside = (sn_wu){0};
    if (sine) r.hi = SN_(with_sign64)(r.hi, sign), r.lo = SN_(with_sign64)(r.lo, sign);
    return r;
}

/* tanh x - x for |x| < 1/4: error below 2^-50 of it */
SN_INLINE sn_wf SN_(tanh_rest)(sn_wf x) {
    const sn_wf square = x * x;
    return x * (square * SN_(polynomial)(sn_tanh_terms, 9, square));
}

/* 1 / (e^a + 1) for a in 1/2 .. 200: error below 2^-51.1 of it, of 3 roundings and the power's 2^-53.7 */
SN_INLINE sn_wf SN_(one_by_power)(sn_wf a) {
    const SN_(reduced_power) p = SN_(reduce_power)(SN_BASE_E, a);
    const SN_(power) e = SN_(power_of)(SN_BASE_E, &p, 0);
    return 1.0 / ((e.hi + e.lo) * SN_(two_to)(e.k) + 1.0);
}

/* 1 - 2 / (e^2a + 1); from a = 100 on the same as there, in 46 bits */
SN_INLINE SN_(enclosure) SN_(tanh_in_lanes)(sn_wf x) {
    const sn_wu sign = (sn_wu)x & SN_SIGN64;
    const sn_wf a = SN_(limited)(SN_(magnitude64)(x), 100.0);
    const sn_wi small = a < 0.25;
    SN_(enclosure) r;
    r.hi = SN_(with_sign64)(SN_(either64)(small, a, SN_(f64)(1.0)), sign);
    r.lo = SN_(with_sign64)(
        SN_(either64)(small, SN_(tanh_rest)(a), -2.0 * SN_(one_by_power)(SN_(either64)(small, SN_(f64)(1.0), a + a))),
        sign);
    r.err = SN_(magnitude64)(r.lo) * SN_(either64)(small, SN_(f64)(0x1p-48), SN_(f64)(0x1p-50));
    r.scale = (sn_wi){0};
    r.outside = (sn_wu){0};
    return r;
}

/* |x| < 1/2: 1/2 + tanh(x / 2) / 2; above 1 - 1 / (1 + e^x), below 1 / (1 + e^-x), scaled. silu: times x. */
SN_INLINE SN_(enclosure) SN_(sigmoid_in_lanes)(int times_x, sn_wf operand) {
    const sn_wf x = SN_(limited)(operand, 7600.0), size = SN_(magnitude64)(x);
    const sn_wi small = size < 0.5, negative = (x < 0.0) & ~small;
    const sn_wf half = SN_(either64)(small, x * 0.5, (sn_wf){0});
    const sn_wf below = SN_(either64)(small, SN_(f64)(1.0), SN_(limited)(size, 200.0));
    const sn_wf upper = -SN_(one_by_power)(below);
    const SN_(reduced_power) p = SN_(reduce_power)(SN_BASE_E, size);
    const SN_(power) e = SN_(power_of)(SN_BASE_E, &p, 0);
    const sn_wi most = (sn_wi){0} + 1000;
    const sn_wf lower = 1.0 / ((e.hi + e.lo) + SN_(two_to)(-(sn_wi)SN_SELECT64(e.k > most, most, e.k)));
    SN_(enclosure) r;
    r.hi = SN_(either64)(small, SN_(f64)(0.5), SN_(either64)(negative, lower, SN_(f64)(1.0)));
    r.lo = SN_(either64)(small, 0.5 * (half + SN_(tanh_rest)(half)), SN_(where64)(~negative, upper));
    if (times_x) {
        r.hi *= operand;
        r.lo *= operand;
    }
    r.err = SN_(magnitude64)(r.lo) * 0x1p-48 + SN_(where64)(negative, SN_(magnitude64)(r.hi) * 0x1p-49);
    r.scale = (sn_wi)SN_SELECT64(negative, -e.k, (sn_wi){0});
    r.outside = (sn_wu){0};
    return r;
}

#endif

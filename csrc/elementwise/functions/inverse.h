/* atan, asin and acos, also as parts of pi, asinh, acosh, atanh, and softplus: in lanes (evaluate.h).
 *
 * Arcs. atan a = atan(c) + atan(r), r = (a - c) / (1 + c a), c = j / 16; above 1 it is pi / 2 - atan(c) - atan(r), r =
 * (1 - c a) / (a + c). Those differences and sums are exact (a has 30 bits), j is 15 at most, |r| at most 1 / 31; r is
 * off by u |r|, or exact where j is 0 and a below 1. atan r = r + r^3 A(r^2). asin a = a + a^3 S(a^2) up to 1/2; above,
 * with z = (1 - a) / 2, exact, and its root s + s_low, s_low off by 2^-100 s, asin a = pi / 2 - 2 (s + s_low + s z
 * S(z)); and acos x = pi / 2 - asin x. The multiples of pi / 2 and the table of atan(c) are whole multiples of 2^-40
 * and what follows. As parts of pi they are exact, but atan(c), and 1 / pi is 26 bits and what follows, which the first
 * 26 bits of what is added are multiplied by exactly.
 *
 * Errors: of r^3 A and of S's terms 2^-50 of themselves; of r u |r|, and where it is divided by pi 2^-78 |r| more; of
 * sums 2^-90, and of lo its own last rounding.
 *
 * asinh a, from 1/8 on, is log(a + sqrt(a^2 + 1)); acosh x is log(1 + t + sqrt(t (x + 1))), t = x - 1; atanh a, from
 * 1/8 on, half of log(1 + 2 a / (1 - a)): of numbers in two parts each, off by 2^-78 of themselves. From 2^32 on the
 * first two are log(2 a), and off by 2^-65. Below 1/8 a + a^3 P(a^2), whose second term is off by 2^-50 of itself.
 * softplus x = max(x, 0) + log(1 + y), y = e^-|x|, off by 2^-53.5 y; below -36 it is e^x (1 - e^x / 2), but for 2^-100
 * of it. */
#ifndef SOFTNUM_FUNCTIONS_INVERSE_H
#define SOFTNUM_FUNCTIONS_INVERSE_H

#include "elementwise/functions/exponential.h"
#include "elementwise/functions/logarithm.h"

/* x^2 = square + *rest, but for u *rest */
SN_INLINE sn_wf SN_(square_of)(sn_wf x, sn_wf *rest) {
    const sn_wf head = SN_(head26)(x), tail = x - head, square = x * x;
    *rest = ((head * head - square) + 2.0 * head * tail) + tail * tail;
    return square;
}

/* The root of x + low, and what it was rounded by; x > 0. */
SN_INLINE sn_wf SN_(root_of)(sn_wf x, sn_wf low, sn_wf *rest) {
    sn_wf beyond;
    const sn_wf root = SN_SQRT64(x), square = SN_(square_of)(root, &beyond);
    *rest = (((x - square) - beyond) + low) / (root + root);
    return root;
}

/* sign (hi + lo + error): base + base_low + part + rest, or where `minus` less the last two; by pi, if `turns`, of
 * which base is free. part_err: of part and rest. */
SN_INLINE SN_(enclosure)
    SN_(arc)(int turns, sn_wf base, sn_wf base_low, sn_wf part, sn_wf rest, sn_wf part_err, sn_wi minus, sn_wu sign) {
    if (turns) {
        const sn_wf head = SN_(head26)(part), tail = part - head;
        part = head * SN_FUNCTION_PER_PI_HIGH;
        rest = head * SN_FUNCTION_PER_PI_LOW + (tail + rest) * (SN_FUNCTION_PER_PI_HIGH + SN_FUNCTION_PER_PI_LOW);
        part_err = part_err + SN_(magnitude64)(head) * 0x1p-77 + SN_(magnitude64)(rest) * 0x1p-51;
    }
    const sn_wu turned = (sn_wu)minus & SN_SIGN64;
    SN_(enclosure) e;
    sn_wf error;
    e.hi = SN_(two_sum)(base, SN_(with_sign64)(part, turned), &error);
    e.lo = error + (base_low + SN_(with_sign64)(rest, turned));
    e.err = part_err + SN_(where64)(base_low != 0.0, SN_(f64)(0x1p-88)) + SN_(magnitude64)(e.lo) * 0x1p-52;
    e.scale = (sn_wi){0};
    e.outside = (sn_wu){0};
    e.hi = SN_(with_sign64)(e.hi, sign);
    e.lo = SN_(with_sign64)(e.lo, sign);
    return e;
}

/* From 2^100 on it is the same in 46 bits. */
SN_INLINE SN_(enclosure) SN_(atan_in_lanes)(int turns, sn_wf x) {
    const sn_wu sign = (sn_wu)x & SN_SIGN64;
    const sn_wf a = SN_(limited)(SN_(magnitude64)(x), 0x1p100), one = SN_(f64)(1.0);
    const sn_wi above = a > 1.0;
    const sn_wf lesser = SN_(either64)(above, one, a), greater = SN_(either64)(above, a, one);
    const sn_wf ratio = lesser / greater * 16.0;
    const sn_wf shifted = SN_(either64)(ratio > 15.0, SN_(f64)(15.0), ratio) + SN_TO_INTEGER64;
    const sn_wu cell = (sn_wu)shifted - (sn_wu)SN_(f64)(SN_TO_INTEGER64);
    const sn_wf c = (shifted - SN_TO_INTEGER64) * 0x1p-4;
    const sn_wf r = (lesser - c * greater) / (greater + c * lesser), square = r * r;
    const sn_wf rest = r * (square * SN_(polynomial)(sn_atan_terms, 4, square));
    const sn_wf arc = SN_LOOK_UP16(turns ? sn_arcs_pi : sn_arcs, cell);
    const sn_wf arc_low = SN_LOOK_UP16(turns ? sn_arcs_pi_low : sn_arcs_low, cell);
    const sn_wf base = SN_(either64)(above, (turns ? 0.5 : SN_FUNCTION_HALF_PI_HIGH) - arc, arc);
    const sn_wf base_low = SN_(either64)(above, (turns ? 0.0 : SN_FUNCTION_HALF_PI_LOW) - arc_low, arc_low);
    const sn_wi rounded = (sn_wi)(cell != 0) | above;
    const sn_wf err = SN_(magnitude64)(rest) * 0x1p-49 + SN_(where64)(rounded, SN_(magnitude64)(r) * 0x1p-53);
    const sn_wi equal = a == 1.0;
    return SN_(arc)(turns, SN_(either64)(equal, SN_(f64)(turns ? 0.25 : 0.5 * SN_FUNCTION_HALF_PI_HIGH), base),
                    SN_(either64)(equal, SN_(f64)(turns ? 0.0 : 0.5 * SN_FUNCTION_HALF_PI_LOW), base_low),
                    SN_(where64)(~equal, r), SN_(where64)(~equal, rest), SN_(where64)(~equal, err), above, sign);
}

/* asin x, or acos x; |x| <= 1. */
SN_INLINE SN_(enclosure) SN_(asin_in_lanes)(int cosine, int turns, sn_wf x) {
    const sn_wf a = SN_(magnitude64)(x);
    const sn_wi large = a > 0.5, negative = x < 0.0;
    const sn_wf z = SN_(either64)(large, 0.5 - 0.5 * a, a * a);
    sn_wf low;
    const sn_wf root = SN_(root_of)(SN_(either64)(large & (z > 0.0), z, SN_(f64)(1.0)), (sn_wf){0}, &low);
    const sn_wf s = SN_(either64)(large, SN_(where64)(z > 0.0, root), a), s_low = SN_(where64)(large & (z > 0.0), low);
    const sn_wf bend = s * (z * SN_(polynomial)(sn_asin_terms, 12, z));
    const sn_wf twice = SN_(either64)(large, SN_(f64)(2.0), SN_(f64)(1.0));
    const sn_wf part = twice * s, rest = twice * (s_low + bend);
    const sn_wf err = SN_(magnitude64)(twice * bend) * 0x1p-49 + SN_(where64)(large, part * 0x1p-98);
    const double quarter = turns ? 0.5 : SN_FUNCTION_HALF_PI_HIGH, quarter_low = turns ? 0.0 : SN_FUNCTION_HALF_PI_LOW;
    if (!cosine) /* large: pi / 2 - part */
        return SN_(arc)(turns, SN_(where64)(large, SN_(f64)(quarter)), SN_(where64)(large, SN_(f64)(quarter_low)), part,
                        rest, err, large, (sn_wu)x & SN_SIGN64);
    /* pi / 2 -+ part; large: part, or pi - part */
    const sn_wf base = SN_(either64)(large, SN_(where64)(negative, SN_(f64)(2.0 * quarter)), SN_(f64)(quarter));
    const sn_wf base_low =
        SN_(either64)(large, SN_(where64)(negative, SN_(f64)(2.0 * quarter_low)), SN_(f64)(quarter_low));
    return SN_(arc)(turns, base, base_low, part, rest, err, ~(large ^ negative), (sn_wu){0});
}

/* a + a^3 P(a^2) where a < 1/8, else e; of x's sign. */
SN_INLINE SN_(enclosure) SN_(odd_function)(sn_wf x, const double *terms, SN_(enclosure) e, sn_wi scale) {
    const sn_wf a = SN_(magnitude64)(x), square = a * a;
    const sn_wi small = a < 0.125;
    const sn_wu sign = (sn_wu)x & SN_SIGN64;
    const sn_wf rest = a * (square * SN_(polynomial)(terms, 6, square));
    e.hi = SN_(with_sign64)(SN_(either64)(small, a, e.hi), sign);
    e.lo = SN_(with_sign64)(SN_(either64)(small, rest, e.lo), sign);
    e.err = SN_(either64)(small, SN_(magnitude64)(rest) * 0x1p-49, e.err);
    e.scale = (sn_wi)SN_SELECT64(small, (sn_wi){0}, scale);
    return e;
}

SN_INLINE SN_(enclosure) SN_(asinh_in_lanes)(sn_wf x) {
    const sn_wf a = SN_(magnitude64)(x), one = SN_(f64)(1.0);
    const sn_wi large = a >= 0x1p32, small = a < 0.125;
    const sn_wf usual = SN_(either64)(large | small, one, a);
    sn_wf square_low, low, error, root_low;
    const sn_wf square = SN_(square_of)(usual, &square_low);
    const sn_wf sum = SN_(two_sum)(square, one, &low);
    const sn_wf root = SN_(root_of)(sum, low + square_low, &root_low);
    const sn_wf whole = SN_(two_sum)(root, usual, &error);
    SN_(enclosure)
    e = SN_(log_of)(SN_LOG_E, 1, SN_(either64)(large, a, whole), SN_(where64)(~large, error + root_low), large,
                    (sn_wi){0}, (sn_wf){0}, (sn_wf){0});
    e.err += SN_(where64)(large, SN_(f64)(0x1p-64));
    return SN_(odd_function)(x, sn_asinh_terms, e, (sn_wi){0});
}

/* x >= 1 */
SN_INLINE SN_(enclosure) SN_(acosh_in_lanes)(sn_wf x) {
    const sn_wi large = x >= 0x1p32, one = x == 1.0;
    const sn_wf usual = SN_(either64)(large | one, SN_(f64)(2.0), x), t = usual - 1.0, more = usual + 1.0;
    const sn_wf t_head = SN_(head26)(t), t_tail = t - t_head, more_head = SN_(head26)(more),
                more_tail = more - more_head;
    const sn_wf product = t * more;
    const sn_wf product_low =
        ((t_head * more_head - product) + t_head * more_tail + t_tail * more_head) + t_tail * more_tail;
    sn_wf root_low, error, below;
    const sn_wf root = SN_(root_of)(product, product_low, &root_low);
    const sn_wf part = SN_(two_sum)(root, t, &error), part_low = error + root_low; /* 1 less than the argument */
    const sn_wf whole = SN_(two_sum)(SN_(f64)(1.0), part, &below);
    SN_(enclosure)
    e = SN_(log_of)(SN_LOG_E, 1, SN_(either64)(large, x, whole), SN_(where64)(~large, below + part_low), large,
                    (sn_wi)(part < 0x1p-6) & ~large, part, part_low);
    e.err += SN_(magnitude64)(e.hi) * 0x1p-80 + SN_(where64)(large, SN_(f64)(0x1p-64));
    e.hi = SN_(where64)(~one, e.hi); /* an exact 0 */
    e.lo = SN_(where64)(~one, e.lo);
    e.err = SN_(where64)(~one, e.err);
    return e;
}

/* |x| < 1 */
SN_INLINE SN_(enclosure) SN_(atanh_in_lanes)(sn_wf x) {
    const sn_wf size = SN_(magnitude64)(x);
    const sn_wf a = SN_(either64)(size < 0.125, SN_(f64)(0.125), size), less = 1.0 - a, quotient = (a + a) / less;
    const sn_wf head = SN_(head26)(quotient), tail = quotient - head;
    const sn_wf less_head = SN_(head26)(less), less_tail = less - less_head;
    const sn_wf quotient_low =
        ((((a + a) - head * less_head) - head * less_tail) - tail * less_head - tail * less_tail) / less;
    sn_wf below;
    const sn_wf whole = SN_(two_sum)(SN_(f64)(1.0), quotient, &below);
    const SN_(enclosure) e =
        SN_(log_of)(SN_LOG_E, 1, whole, below + quotient_low, (sn_wi){0}, (sn_wi){0}, (sn_wf){0}, (sn_wf){0});
    return SN_(odd_function)(x, sn_atanh_terms, e, (sn_wi){0} - 1);
}

SN_INLINE SN_(enclosure) SN_(softplus_in_lanes)(sn_wf x) {
    const sn_wf size = SN_(limited)(SN_(magnitude64)(x), 7600.0);
    const sn_wi positive = x > 0.0, far = x < -36.0;
    const SN_(reduced_power) p = SN_(reduce_power)(SN_BASE_E, size);
    const SN_(power) power = SN_(power_of)(SN_BASE_E, &p, 1);
    const sn_wi most = (sn_wi){0} - 200; /* in 46 bits the same */
    const sn_wf scale = SN_(two_to)((sn_wi)SN_SELECT64(power.k < most, most, power.k));
    const sn_wf y = power.hi * scale, y_low = power.lo * scale;
    sn_wf part_low, below, error;
    const sn_wf part = SN_(two_sum)(y, y_low, &part_low), whole = SN_(two_sum)(SN_(f64)(1.0), part, &below);
    SN_(enclosure)
    e = SN_(log_of)(SN_LOG_E, 1, whole, below + part_low, (sn_wi){0}, (sn_wi)(part < 0x1p-6), part, part_low);
    const sn_wf hi = SN_(two_sum)(SN_(where64)(positive, x), e.hi, &error);
    e.err += power.err * scale + SN_(magnitude64)(e.lo) * 0x1p-52;
    e.lo += error;
    e.hi = SN_(either64)(far, power.hi, hi);
    e.lo = SN_(either64)(far, power.lo - power.hi * power.hi * (0.5 * scale), e.lo);
    e.err = SN_(either64)(far, power.err + 0x1p-98, e.err);
    e.scale = (sn_wi)SN_SELECT64(far, power.k, (sn_wi){0});
    return e;
}

#endif

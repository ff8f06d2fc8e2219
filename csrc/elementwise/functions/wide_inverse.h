/* atan, asin and acos, also as parts of pi, asinh, acosh, atanh, softplus and silu, of wide operands, in lanes
 * (wide.h).
 *
 * Arcs are those of y / x, pairs of which none is negative: of a and 1, or of a and sqrt((1 - a) (1 + a)). As in
 * inverse.h, the lesser by the greater is near c = j / 16, r = (lesser - c greater) / (greater + c lesser), of |r|
 * below 1 / 31, atan r = r P(r^2), and multiples of pi / 2 are added to c's arc and that, where the lesser is x the
 * difference taken. As parts of pi, atan r is multiplied by 1 / pi and the rest is exact but for c's arc.
 *
 * Errors: of atan r, r^4 / 5 2^-50 of itself, below 2^-70; of r, where j is not 0, 2^-99; of c's arc 2^-93, of pi
 * 2^-104. So 2^-70 of atan r, and 2^-90 where anything inexact is added to it.
 *
 * asinh a, from 1/8 on, is log(a + sqrt(a^2 + 1)), acosh x is log(1 + t + sqrt(t (x + 1))), t = x - 1, atanh a, from
 * 1/8 on, half of log((1 + a) / (1 - a)), of pairs; from 2^64 on the first two are log(2 a), but for 2^-126. Arguments
 * off by 2^-100 of themselves make that error of the logarithm; acosh is 2^-26 at least where it is not 0. Below 1/8 a
 * P(a^2), P's last part below 2^-21 of it, off by 2^-50. softplus x = max(x, 0) + log(1 + y), y = e^-|x|; where y <
 * 2^-24, its logarithm is y (1 - y / 2 + y^2 / 3), but for 2^-74 of it. */
#ifndef SOFTNUM_FUNCTIONS_WIDE_INVERSE_H
#define SOFTNUM_FUNCTIONS_WIDE_INVERSE_H

#include "elementwise/functions/wide_exponential.h"
#include "elementwise/functions/wide_logarithm.h"

/* The arc of y / x or, where `back`, pi less it; by pi, if `turns`. */
SN_INLINE SN_(enclosure) SN_(wide_arc)(int turns, SN_(pair64) y, SN_(pair64) x, sn_wi back) {
    const sn_wi above = y.hi > x.hi;
    const SN_(pair64) lesser = SN_(pair_either)(above, x, y), greater = SN_(pair_either)(above, y, x);
    const sn_wf ratio = lesser.hi / greater.hi * 16.0;
    const sn_wf shifted = SN_(either64)(ratio > 15.0, SN_(f64)(15.0), ratio) + SN_TO_INTEGER64;
    const sn_wu cell = (sn_wu)shifted - (sn_wu)SN_(f64)(SN_TO_INTEGER64);
    const sn_wf c = (shifted - SN_TO_INTEGER64) * 0x1p-4;
    const SN_(pair64) r = SN_(pair_divide)(SN_(pair_add)(lesser, SN_(pair_scale)(greater, -c)),
                                           SN_(pair_add)(greater, SN_(pair_scale)(lesser, c)));
    SN_(pair64) part = SN_(pair_multiply)(r, SN_WIDE_SERIES(atan, ATAN, SN_(pair_multiply)(r, r)));
    if (turns) part = SN_(pair_multiply)(part, SN_WIDE_PAIR(PER_PI));
    SN_(pair64)
    arc = SN_(exact_sum)(SN_LOOK_UP16(turns ? sn_arcs_pi : sn_arcs, cell),
                         SN_LOOK_UP16(turns ? sn_arcs_pi_low : sn_arcs_low, cell));
    /* above: pi / 2 - arc - part; back: pi - arc - part, or pi / 2 + arc + part */
    const sn_wi minus = above ^ back;
    const sn_wf quarters = SN_(either64)(above, SN_(f64)(1.0), SN_(where64)(back, SN_(f64)(2.0)));
    const SN_(pair64) quarter = turns ? SN_(pair_of)(SN_(f64)(0.5), (sn_wf){0}) : SN_WIDE_PAIR(HALF_PI);
    const SN_(pair64) whole = {quarter.hi * quarters, quarter.lo * quarters};
    const sn_wu turned = (sn_wu)minus & SN_SIGN64;
    arc = SN_(pair_of)(SN_(with_sign64)(arc.hi, turned), SN_(with_sign64)(arc.lo, turned));
    part = SN_(pair_of)(SN_(with_sign64)(part.hi, turned), SN_(with_sign64)(part.lo, turned));
    const sn_wi inexact = (sn_wi)(cell != 0) | (turns ? (sn_wi){0} : quarters != 0.0);
    const sn_wf err = SN_(magnitude64)(part.hi) * 0x1p-70 + SN_(where64)(inexact, SN_(f64)(0x1p-90));
    return SN_(enclosure_of)(SN_(pair_add)(SN_(pair_add)(whole, arc), part), err, (sn_wi){0});
}

/* From 2^200 on it is the same; below 2^-500, a / pi of 2^400 a. */
SN_INLINE SN_(enclosure) SN_(wide_atan)(int turns, sn_wf x) {
    const sn_wf a = SN_(limited)(SN_(magnitude64)(x), 0x1p200);
    const sn_wi tiny = a < 0x1p-500;
    SN_(enclosure)
    e = SN_(wide_arc)(turns, SN_(pair_of)(SN_(either64)(tiny, a * 0x1p400, a), (sn_wf){0}),
                      SN_(pair_of)(SN_(f64)(1.0), (sn_wf){0}), (sn_wi){0});
    e.scale = tiny & -400;
    e = SN_(enclosure_signed)(e, (sn_wu)x & SN_SIGN64);
    return turns ? e : SN_(near_operand)(e, x, 0x1p-27, 0);
}

/* asin x, or acos x; |x| <= 1 */
SN_INLINE SN_(enclosure) SN_(wide_asin)(int cosine, int turns, sn_wf x) {
    const sn_wf size = SN_(magnitude64)(x), one = SN_(f64)(1.0);
    const sn_wi tiny = size < 0x1p-500, end = size == 1.0;
    const SN_(pair64) a = {SN_(either64)(tiny, size * 0x1p400, size), (sn_wf){0}};
    const SN_(pair64) square =
        SN_(pair_multiply)(SN_(exact_sum)(one, SN_(either64)(end, one, -a.hi)), SN_(exact_sum)(one, a.hi));
    SN_(pair64) root = SN_(pair_root)(square);
    root = SN_(pair_of)(SN_(where64)(~end, root.hi), SN_(where64)(~end, root.lo));
    if (cosine) {
        const SN_(enclosure) e = SN_(wide_arc)(turns, root, a, x < 0.0);
        return turns ? SN_(near_constant)(e, x, 0x1p-100, -x) : e;
    }
    SN_(enclosure) e = SN_(wide_arc)(turns, a, root, (sn_wi){0});
    e.scale = tiny & -400;
    e = SN_(enclosure_signed)(e, (sn_wu)x & SN_SIGN64);
    return turns ? e : SN_(near_operand)(e, x, 0x1p-27, 1);
}

/* An odd function: a P(a^2), given P, where a = |x| < 1/8, else e; of x's sign. */
SN_INLINE SN_(enclosure) SN_(wide_odd)(sn_wf x, SN_(pair64) series, SN_(enclosure) e, int outward) {
    const sn_wf a = SN_(magnitude64)(x);
    const SN_(pair64) small = SN_(pair_scale)(series, a);
    e = SN_(enclosure_either)(a < 0.125, SN_(enclosure_of)(small, SN_(magnitude64)(small.hi) * 0x1p-70, (sn_wi){0}), e);
    return SN_(near_operand)(SN_(enclosure_signed)(e, (sn_wu)x & SN_SIGN64), x, 0x1p-27, outward);
}

SN_INLINE SN_(pair64) SN_(square_below_eighth)(sn_wf a) {
    const sn_wf number = SN_(either64)((a < 0.125) & (a > 0x1p-100), a, SN_(f64)(0.125));
    return SN_(exact_product)(number, number);
}

SN_INLINE SN_(enclosure) SN_(wide_asinh)(sn_wf x) {
    const sn_wf a = SN_(magnitude64)(x);
    const sn_wi large = a >= 0x1p64, usual = (a >= 0.125) & ~large;
    const SN_(pair64) one = {SN_(f64)(1.0), (sn_wf){0}}, number = {SN_(either64)(usual, a, one.hi), (sn_wf){0}};
    const SN_(pair64) root = SN_(pair_root)(SN_(pair_add)(SN_(exact_product)(number.hi, number.hi), one));
    const SN_(pair64) argument = SN_(pair_either)(large, SN_(pair_of)(a, (sn_wf){0}), SN_(pair_add)(root, number));
    SN_(enclosure) e = SN_(wide_log_of)(SN_LOG_E, argument, large & 1);
    e.err += 0x1p-97;
    const SN_(pair64) square = SN_(square_below_eighth)(a);
    return SN_(wide_odd)(x, SN_WIDE_SERIES(asinh, ASINH, square), e, 0);
}

/* x >= 1 */
SN_INLINE SN_(enclosure) SN_(wide_acosh)(sn_wf x) {
    const sn_wi large = x >= 0x1p64, end = x == 1.0;
    const SN_(pair64) one = {SN_(f64)(1.0), (sn_wf){0}};
    const sn_wf number = SN_(either64)(large | end, SN_(f64)(2.0), x);
    const SN_(pair64) less = SN_(exact_sum)(number, -one.hi), more = SN_(exact_sum)(number, one.hi);
    const SN_(pair64) part = SN_(pair_add)(less, SN_(pair_root)(SN_(pair_multiply)(less, more)));
    const SN_(pair64) argument = SN_(pair_either)(large, SN_(pair_of)(x, (sn_wf){0}), SN_(pair_add)(one, part));
    SN_(enclosure) e = SN_(wide_log_of)(SN_LOG_E, argument, large & 1);
    e.hi = SN_(where64)(~end, e.hi); /* an exact 0 */
    e.lo = SN_(where64)(~end, e.lo);
    e.err = SN_(where64)(~end, e.err + 0x1p-99);
    return e;
}

/* |x| < 1 */
SN_INLINE SN_(enclosure) SN_(wide_atanh)(sn_wf x) {
    const sn_wf size = SN_(magnitude64)(x), a = SN_(either64)(size < 0.125, SN_(f64)(0.125), size), one = SN_(f64)(1.0);
    const SN_(pair64) argument = SN_(pair_divide)(SN_(exact_sum)(one, a), SN_(exact_sum)(one, -a));
    SN_(enclosure) e = SN_(wide_log_of)(SN_LOG_E, argument, (sn_wi){0});
    e.err += 0x1p-97;
    e.scale = (sn_wi){0} - 1;
    const SN_(pair64) square = SN_(square_below_eighth)(size);
    return SN_(wide_odd)(x, SN_WIDE_SERIES(atanh, ATANH, square), e, 1);
}

SN_INLINE SN_(enclosure) SN_(wide_softplus)(sn_wf x) {
    const sn_wf a = SN_(limited)(SN_(magnitude64)(x), 7600.0);
    const SN_(wide_power) power = SN_(wide_power_of)(SN_BASE_E, -a);
    const sn_wi least = (sn_wi){0} - 900;
    const sn_wf scale = SN_(two_to)((sn_wi)SN_SELECT64(power.k < least, least, power.k));
    const SN_(pair64) one = {SN_(f64)(1.0), (sn_wf){0}}, y = {power.power.hi * scale, power.power.lo * scale};
    const SN_(pair64) near_one = SN_(ordered_sum)(one.hi, y.hi * (y.hi * (1.0 / 3) - 0.5));
    const SN_(pair64) least_part = SN_(pair_multiply)(power.power, near_one); /* by 2^k */
    const sn_wi far = y.hi < 0x1p-24;
    const SN_(enclosure) near = SN_(wide_log_of)(SN_LOG_E, SN_(pair_add)(one, y), (sn_wi){0});
    const SN_(pair64) part = SN_(pair_either)(far, SN_(pair_of)(least_part.hi * scale, least_part.lo * scale),
                                              SN_(pair_of)(near.hi, near.lo));
    const sn_wf err = SN_(either64)(far, part.hi * 0x1p-70, near.err + y.hi * 0x1p-73 + 0x1p-97);
    const SN_(pair64) sum = SN_(pair_add)(SN_(pair_of)(x, (sn_wf){0}), part);
    const SN_(enclosure) negative = SN_(enclosure_either)(
        far, SN_(enclosure_of)(least_part, least_part.hi * 0x1p-70, power.k), SN_(enclosure_of)(part, err, (sn_wi){0}));
    return SN_(enclosure_either)(x > 0.0, SN_(enclosure_of)(sum, err, (sn_wi){0}), negative);
}

/* x times sigmoid; below 7600 in magnitude where that is not near 1 */
SN_INLINE SN_(enclosure) SN_(wide_silu)(sn_wf x) {
    const SN_(enclosure) s = SN_(wide_sigmoid)(x);
    sn_wi scale;
    const sn_wf number = SN_(normal_number)(SN_(either64)(x < 0.0, SN_(limited)(x, 7600.0), x), &scale);
    const SN_(pair64) product = SN_(pair_scale)(SN_(pair_of)(s.hi, s.lo), number);
    return SN_(enclosure_of)(product, s.err * SN_(magnitude64)(number), s.scale + scale);
}

#endif

/* hypot, atan2 and atan2pi: in lanes (evaluate.h).
 *
 * hypot. Both operands are divided by a power of two, so that the larger is a in 1 .. 2, and the smaller one b. Squares
 * and their sum are exact as a number and what follows; its root is off by 2^-104 (inverse.h). Where b < 2^-24, it is a
 * + b^2 / 2 a, but for 2^-48 of that, and 2^-60 stands for all that is smaller: a has 30 bits, the result is beside it.
 * Where it has no more than 46 bits, being exact or not: the sum of the squares is a multiple of 2^-102, b being above
 * 2^-22 (from b^2 = (v - a) (v + a), v - a a multiple of 2^-45), and so is its difference from the square of the root,
 * which is nowhere rounded. So the root is exact if what follows it is 0, and b is no less.
 *
 * atan2, of the lesser and the greater magnitude scaled alike: as atan, but that (lesser - c greater) / (greater + c
 * lesser) is a quotient in two parts. Both are exact: where c > 0 the lesser is above 2^-5, and all are multiples of
 * 2^-38. The product of the quotient of 46 bits or fewer and what it was divided by is exact in two parts, and so is
 * what is left, which is a multiple of 2^-76 of it; else its second part is off by 2^-50 of itself and 2^-102 of the
 * first. To that is added 2^-48 of r^3 A(r^2) with its product with the second part, and base's 2^-88 (inverse.h).
 * Operands more than 2^300 apart are left to the definition. */
#ifndef SOFTNUM_FUNCTIONS_PLANE_H
#define SOFTNUM_FUNCTIONS_PLANE_H

#include "elementwise/functions/power.h"

/* The lesser magnitude and the greater one, that scaled to 1 .. 2; the other one likewise, but by no more than 2^-most
 * less. */
typedef struct {
    sn_wf lesser, greater;
    sn_wi scale, apart, swapped; /* the exponent of the greater; how much less the other's is; the second is greater */
} SN_(two_sizes);

SN_INLINE SN_(two_sizes) SN_(scaled_sizes)(sn_wf x, sn_wf y, int most) {
    const sn_wf a = SN_(magnitude64)(x), b = SN_(magnitude64)(y);
    SN_(two_sizes) s;
    s.swapped = b > a;
    const sn_wu greater = SN_SELECT64(s.swapped, b, a), lesser = SN_SELECT64(s.swapped, a, b);
    const sn_wu one = (sn_wu)SN_(f64)(1.0), mask = (sn_wu){0} + 0xfffffffffffffu;
    s.scale = (sn_wi)(greater >> 52) - 1023;
    s.apart = (sn_wi)(greater >> 52) - (sn_wi)(lesser >> 52);
    const sn_wi limit = (sn_wi){0} + most;
    const sn_wu down = SN_SELECT64(s.apart > limit, limit, s.apart);
    s.greater = SN_(where64)((sn_wi)(greater != 0), (sn_wf)((greater & mask) | one));
    s.lesser = SN_(where64)((sn_wi)(lesser != 0), (sn_wf)(((lesser & mask) | one) - (down << 52)));
    return s;
}

SN_INLINE SN_(enclosure) SN_(hypot_in_lanes)(sn_wf x, sn_wf y) {
    const SN_(two_sizes) s = SN_(scaled_sizes)(x, y, 60);
    const sn_wf a = s.greater, b = s.lesser;
    const sn_wi near = b < 0x1p-24;
    sn_wf a_low, b_low, error, beyond;
    const sn_wf a_square = SN_(two_product)(a, a, &a_low), b_square = SN_(two_product)(b, b, &b_low);
    const sn_wf sum = SN_(two_sum)(a_square, b_square, &error), low = error + (a_low + b_low);
    const sn_wf root = SN_SQRT64(sum), square = SN_(two_product)(root, root, &beyond);
    const sn_wf rest = SN_(either64)(near, b_square, ((sum - square) - beyond) + low);
    SN_(enclosure) e;
    e.hi = SN_(either64)(near, a, root);
    e.lo = SN_(where64)(rest != 0.0, rest / (root + root));
    e.err = SN_(either64)(near, e.lo * 0x1p-46, SN_(where64)((rest != 0.0) | (b < 0x1p-22), SN_(f64)(0x1p-100)));
    e.scale = (sn_wi)SN_SELECT64(a == 0.0, (sn_wi){0}, s.scale);
    e.outside = (sn_wu){0};
    return e;
}

/* The angle of (x, y). */
SN_INLINE SN_(enclosure) SN_(atan2_in_lanes)(int turns, sn_wf y, sn_wf x) {
    const SN_(two_sizes) s = SN_(scaled_sizes)(x, y, 300);
    const sn_wf lesser = s.lesser, greater = SN_(either64)(s.greater == 0.0, SN_(f64)(1.0), s.greater);
    const sn_wi above = s.swapped, negative = (sn_wi)((sn_wi)x < 0), minus = above ^ negative;
    const sn_wf ratio = lesser / greater * 16.0;
    const sn_wf shifted = SN_(either64)(ratio > 15.0, SN_(f64)(15.0), ratio) + SN_TO_INTEGER64;
    const sn_wu cell = ((sn_wu)shifted - (sn_wu)SN_(f64)(SN_TO_INTEGER64)) & 15;
    const sn_wf c = (shifted - SN_TO_INTEGER64) * 0x1p-4;
    const sn_wf part = lesser - c * greater, whole = greater + c * lesser, inverse = 1.0 / whole;
    sn_wf back_low;
    const sn_wf r = part / whole, back = SN_(two_product)(r, whole, &back_low);
    const sn_wf r_low = ((part - back) - back_low) * inverse, square = r * r;
    const sn_wf bend = r * (square * SN_(polynomial)(sn_atan_terms, 4, square));
    const sn_wf err = SN_(magnitude64)(bend) * 0x1p-48 +
                      SN_(where64)(r_low != 0.0, SN_(magnitude64)(r_low) * 0x1p-49 + SN_(magnitude64)(r) * 0x1p-102);
    const double half = turns ? 0.5 : SN_FUNCTION_HALF_PI_HIGH, half_low = turns ? 0.0 : SN_FUNCTION_HALF_PI_LOW;
    const sn_wu turned = (sn_wu)minus & SN_SIGN64;
    const sn_wf axis = SN_(either64)(above, SN_(f64)(half), SN_(where64)(negative, SN_(f64)(2.0 * half)));
    const sn_wf axis_low = SN_(either64)(above, SN_(f64)(half_low), SN_(where64)(negative, SN_(f64)(2.0 * half_low)));
    sn_wf base = axis + SN_(with_sign64)(SN_LOOK_UP16(turns ? sn_arcs_pi : sn_arcs, cell), turned);
    sn_wf base_low = axis_low + SN_(with_sign64)(SN_LOOK_UP16(turns ? sn_arcs_pi_low : sn_arcs_low, cell), turned);
    sn_wi usual = (sn_wi){0} - 1;
    if (turns) { /* quarters are exact */
        usual = lesser != greater;
        base = SN_(either64)(usual, base, SN_(either64)(negative, SN_(f64)(0.75), SN_(f64)(0.25)));
        base_low = SN_(where64)(usual, base_low);
    }
    SN_(enclosure)
    e = SN_(arc)(turns, base, base_low, SN_(where64)(usual, r), SN_(where64)(usual, r_low + bend),
                 SN_(where64)(usual, err), minus, (sn_wu)y & SN_SIGN64);
    e.err += SN_(magnitude64)(e.lo) * 0x1p-52;
    e.outside = (sn_wu)(s.greater == 0.0) | (sn_wu)((s.apart > 300) & (lesser != 0.0));
    return e;
}

#endif

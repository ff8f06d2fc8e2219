/* hypot, atan2 and atan2pi of wide operands, in lanes (wide.h).
 *
 * hypot. As in plane.h, a in 1 .. 2 is the larger of both, scaled, and b the smaller. Where b < 2^-28, the result lies
 * beside a, by less than 2^-56. Else both squares are pairs, exactly, and of their sum the first part is a number and
 * its root within half a unit, whose square's distance from it is a number, too; what else there is is added in two
 * sums. Where those are exact, the root is exact if what is left is 0. Else the second part is off by 2^-52 of itself
 * and 2^-104 by what the sums, and the next term of the root, leave.
 *
 * atan2: the arc of the sizes, scaled alike (wide_inverse.h). Of a quotient below 2^-28 that is exact the arc lies
 * beside it, by less than 2^-57 of it. Of operands more than 2^300 apart it is the quotient but for 2^-600 of it, or
 * lies beside a multiple of pi / 2, where less than 2^-300 of it stands for all that is smaller. */
#ifndef SOFTNUM_FUNCTIONS_WIDE_PLANE_H
#define SOFTNUM_FUNCTIONS_WIDE_PLANE_H

#include "elementwise/functions/plane.h"
#include "elementwise/functions/wide_inverse.h"

/* As SN_(scaled_sizes), of subnormal numbers too: by 2^most the lesser is no number, but more than 0 if it is. */
SN_INLINE SN_(two_sizes) SN_(wide_sizes)(sn_wf x, sn_wf y, int most) {
    const sn_wi small = (SN_(magnitude64)(x) < 0x1p-500) & (SN_(magnitude64)(y) < 0x1p-500);
    const sn_wf up = SN_(either64)(small, SN_(f64)(0x1p600), SN_(f64)(1.0));
    SN_(two_sizes) s = SN_(scaled_sizes)(x * up, y * up, most);
    s.scale -= small & 600;
    return s;
}

SN_INLINE SN_(enclosure) SN_(wide_hypot)(sn_wf x, sn_wf y) {
    const SN_(two_sizes) s = SN_(wide_sizes)(x, y, 60);
    const sn_wf a = s.greater, b = s.lesser;
    const sn_wi near = b < 0x1p-28;
    sn_wf beyond, first, second;
    const SN_(pair64) a_square = SN_(exact_product)(a, a), b_square = SN_(exact_product)(b, b);
    const SN_(pair64) sum = SN_(exact_sum)(a_square.hi, b_square.hi);
    const sn_wf root = SN_SQRT64(sum.hi), square = SN_(two_product)(root, root, &beyond);
    const sn_wf low = SN_(two_sum)(a_square.lo, b_square.lo, &first), more = SN_(two_sum)(sum.lo, low, &second);
    const sn_wf rest = ((sum.hi - square) - beyond) + more;
    const sn_wi exact = (rest == 0.0) & (first == 0.0) & (second == 0.0);
    SN_(enclosure) e;
    e.hi = SN_(either64)(near, a, root);
    e.lo = SN_(either64)(near, SN_(where64)(b != 0.0, SN_(f64)(0x1p-80)), SN_(where64)(~exact, rest / (root + root)));
    e.err = SN_(where64)(~near & ~exact, SN_(f64)(0x1p-101));
    e.scale = (sn_wi)SN_SELECT64(a == 0.0, (sn_wi){0}, s.scale);
    e.outside = (sn_wu){0};
    return e;
}

/* The angle of (x, y). */
SN_INLINE SN_(enclosure) SN_(wide_atan2)(int turns, sn_wf y, sn_wf x) {
    const SN_(two_sizes) s = SN_(wide_sizes)(x, y, 300);
    const sn_wi none = s.greater == 0.0, negative = (sn_wi)x < 0, equal = s.lesser == s.greater;
    const sn_wf one = SN_(f64)(1.0), greater = SN_(either64)(none, one, s.greater);
    const SN_(pair64) lesser_pair = {s.lesser, (sn_wf){0}}, greater_pair = {greater, (sn_wf){0}};
    const sn_wi right = ~s.swapped & ~negative & (s.lesser != 0.0); /* y / x is below 1 and above 0 */
    SN_(enclosure)
    e = SN_(wide_arc)(turns, SN_(pair_either)(s.swapped, greater_pair, lesser_pair),
                      SN_(pair_either)(s.swapped, lesser_pair, greater_pair), negative);
    sn_wi scale;
    const sn_wf size = SN_(normal_number)(SN_(either64)(right, SN_(magnitude64)(y), one), &scale);
    const sn_wf number = (sn_wf)(((sn_wu)size & 0xfffffffffffffu) | (sn_wu)one); /* as greater, in 1 .. 2 */
    const sn_wi power = (sn_wi)((sn_wu)size >> 52) - 1023 + scale - s.scale, apart = s.apart > 300;
    SN_(pair64) quotient = SN_(pair_divide)(SN_(pair_of)(number, (sn_wf){0}), greater_pair);
    sn_wi beside = {0};
    if (turns) {
        e.hi = SN_(either64)(equal, SN_(either64)(negative, SN_(f64)(0.75), SN_(f64)(0.25)), e.hi);
        e.lo = SN_(where64)(~equal, e.lo);
        e.err = SN_(where64)(~equal, e.err);
        quotient = SN_(pair_multiply)(quotient, SN_WIDE_PAIR(PER_PI));
    } else {
        beside = right & (s.lesser < greater * 0x1p-28) & (quotient.lo == 0.0);
        quotient.lo = SN_(either64)(beside, quotient.hi * -0x1p-80, quotient.lo);
    }
    e = SN_(enclosure_either)(beside | (right & apart),
                              SN_(enclosure_of)(quotient, SN_(where64)(~beside, quotient.hi * 0x1p-100), power), e);
    e.outside = (sn_wu)none;
    return SN_(enclosure_signed)(e, (sn_wu)y & SN_SIGN64);
}

#endif

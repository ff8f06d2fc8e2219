/* sin, cos and tan, of x and of pi x, of wide operands, in lanes (wide.h).
 *
 * sin r = r S(r^2) and cos r = 1 + r^2 C(r^2) for |r| < pi / 4 (1 + 2^-10). Where |x| is below 0.785, r = x. Above, |x|
 * = M 2^(e - 52) with an integer M below 2^53, and 2^(e - 52) 2 / pi, modulo 4, is in a table: a multiple of 2^-51, one
 * of 2^-104, below 2^-51, and a binary64 number below 2^-104 (Payne and Hanek 1983). M times the first two is exact as
 * pairs, all of whose parts are multiples of 2^-51 but for the last, below 2^-51; integers are taken off exactly and
 * counted, of a product that may exceed 2^51 a multiple of 1024 before. The sum of the fractions of the first three
 * parts is a pair, exactly; the last part, and M times the third number of the table, are rounded by 2^-104 each. r is
 * pi / 2 times that: off by 2^-101 and pairs' 2^-101 |r|.
 *
 * pi x: 2 x less the integer nearest is exact, 0 where the result is exact, or a pole of tan, which the definition has.
 *
 * Errors, beside those of r: of sin r, r^8 / 9! 2^-50 of itself, below 2^-70; of cos r, r^10 / 10! 2^-50, below 2^-72
 * r^2; of tan r, the quotient of both, 2^-69 of itself. That of r makes |r| as much of cos r, up to twice of tan r and
 * 1 / tan^2 r + 1 times of its inverse. */
#ifndef SOFTNUM_FUNCTIONS_WIDE_TRIGONOMETRIC_H
#define SOFTNUM_FUNCTIONS_WIDE_TRIGONOMETRIC_H

#include "elementwise/functions/trigonometric.h"
#include "elementwise/functions/wide.h"

typedef struct {
    SN_(pair64) r;
    sn_wf err;
    sn_wu quadrant;
    sn_wi scale; /* of small angles */
} SN_(wide_angle);

/* a = |x| */
SN_INLINE SN_(wide_angle) SN_(wide_reduce_angle)(sn_wf a) {
    const sn_wi small = a < 0.785, field = (sn_wi)((sn_wu)a >> 52);
    const sn_wu row = (sn_wu)SN_SELECT64(small, (sn_wi){0}, field - (1023 + SN_WIDE_TURN_FIRST));
    const sn_wf whole = (sn_wf)(((sn_wu)a & 0xfffffffffffffu) | (sn_u64)(1023 + 52) << 52); /* M */
    const SN_(pair64) first = SN_(exact_product)(whole, SN_GATHER64(sn_wide_turns, row));
    const SN_(pair64) second = SN_(exact_product)(whole, SN_GATHER64(sn_wide_turns_low, row));
    const sn_wf third = whole * SN_GATHER64(sn_wide_turns_least, row);
    sn_wu count = {0};
    sn_wf part = first.hi - ((first.hi + 0x1.8p62) - 0x1.8p62);
    part = SN_(off_integer)(part, &count) + SN_(off_integer)(first.lo, &count);
    part = SN_(off_integer)(part, &count);
    SN_(pair64) sum = SN_(exact_sum)(part, SN_(off_integer)(second.hi, &count));
    sum.hi = SN_(off_integer)(sum.hi, &count);
    sum = SN_(exact_sum)(sum.hi, sum.lo + (second.lo + third));
    const SN_(pair64) zero = {a, (sn_wf){0}};
    SN_(wide_angle) angle;
    angle.r = SN_(pair_either)(small, zero, SN_(pair_multiply)(sum, SN_WIDE_PAIR(HALF_PI)));
    angle.err = SN_(where64)(~small, SN_(f64)(0x1p-99));
    angle.quadrant = count & ~(sn_wu)small & 3;
    angle.scale = (sn_wi){0};
    return angle;
}

/* Below 2^-500, pi a of 2^400 a. */
SN_INLINE SN_(wide_angle) SN_(wide_reduce_turn)(sn_wf a) {
    const sn_wi tiny = a < 0x1p-500;
    const sn_wf number = SN_(where64)(a < 0x1p53, SN_(either64)(tiny, a * 0x1p400, a)); /* those are even */
    const sn_wf twice = (number - ((number + 0x1.8p54) - 0x1.8p54)) * 2.0;              /* of its rest by 4 */
    sn_wu count = {0};
    SN_(wide_angle) angle;
    angle.r = SN_(pair_scale)(SN_WIDE_PAIR(HALF_PI), SN_(off_integer)(twice, &count));
    angle.err = SN_(magnitude64)(angle.r.hi) * 0x1p-99;
    angle.quadrant = count & 3;
    angle.scale = tiny & -400;
    return angle;
}

SN_INLINE SN_(enclosure) SN_(wide_trigonometric)(int which, int turns, sn_wf x) {
    const sn_wf a = SN_(magnitude64)(x);
    const SN_(wide_angle) angle = turns ? SN_(wide_reduce_turn)(a) : SN_(wide_reduce_angle)(a);
    const SN_(pair64) r = angle.r, one = {SN_(f64)(1.0), (sn_wf){0}};
    const sn_wf size = SN_(magnitude64)(r.hi);
    const sn_wi seen = size >= 0x1p-100; /* elsewhere the square underflows, and adds nothing */
    const SN_(pair64) root = {SN_(where64)(seen, r.hi), SN_(where64)(seen, r.lo)};
    const SN_(pair64) square = SN_(pair_multiply)(root, root);
    const SN_(pair64) sine = SN_(pair_multiply)(r, SN_WIDE_SERIES(sin, SIN, square));
    const SN_(pair64) cosine = SN_(pair_add_less)(one, SN_(pair_multiply)(square, SN_WIDE_SERIES(cos, COS, square)));
    const sn_wi odd = (angle.quadrant & 1) != 0;
    const sn_wu sign_of_x = (sn_wu)x & SN_SIGN64;
    sn_wu sign;
    SN_(enclosure) e;
    if (which == SN_TANGENT) {
        const sn_wi by_zero = odd & (size == 0.0);
        const SN_(pair64) above = SN_(pair_either)(odd, cosine, sine);
        SN_(pair64) below = SN_(pair_either)(odd, sine, cosine);
        below.hi = SN_(either64)(by_zero, SN_(f64)(1.0), below.hi);
        const SN_(pair64) quotient = SN_(pair_divide)(above, below);
        const sn_wf grows =
            SN_(either64)(odd, SN_(magnitude64)(quotient.hi) * SN_(magnitude64)(quotient.hi) + 1.0, SN_(f64)(2.0));
        e = SN_(enclosure_of)(quotient, SN_(magnitude64)(quotient.hi) * 0x1p-69 + angle.err * grows, angle.scale);
        sign = sign_of_x ^ ((sn_wu)odd & SN_SIGN64);
    } else {
        const sn_wi by_sine = which == SN_SINE ? ~odd : odd;
        e = SN_(enclosure_either)(by_sine, SN_(enclosure_of)(sine, size * 0x1p-70 + angle.err, angle.scale),
                                  SN_(enclosure_of)(cosine, square.hi * 0x1p-71 + angle.err * size, (sn_wi){0}));
        if (which == SN_SINE)
            sign = sign_of_x ^ (angle.quadrant & 2) << 62;
        else
            sign = ((angle.quadrant ^ angle.quadrant >> 1) & 1) << 63;
    }
    if (turns) { /* exact zeros, and tan's poles, which the definition has */
        const sn_wu zero = (sn_wu)(r.hi == 0.0);
        if (which == SN_TANGENT) {
            e.outside = zero & (sn_wu)odd;
            sign ^= zero & angle.quadrant << 62;
        } else {
            sign = SN_SELECT64(zero & (sn_wu)(e.hi == 0.0), which == SN_SINE ? sign_of_x : (sn_wu){0}, sign);
        }
    }
    e = SN_(enclosure_signed)(e, sign);
    if (which == SN_COSINE) return SN_(near_constant)(e, x, 0x1p-100, SN_(f64)(-1.0));
    return turns ? e : SN_(near_operand)(e, x, 0x1p-27, which == SN_TANGENT);
}

#endif

/* sin, cos and tan, of x and of pi x: in lanes (evaluate.h).
 *
 * sin r = r + r^3 S(r^2) and cos r = 1 + r^2 C(r^2) for |r| < pi / 4 (1 + 2^-10). Where |x| is below pi / 4, r = x, and
 * hi is exact. Above, |x| = M 2^(e - 29) with an integer M below 2^30, and 2^(e - 29) 2 / pi, modulo 4, is in a table:
 * a multiple of 2^-21, one of 2^-44, below 2^-22, and a binary64 number below 2^-45 (Payne and Hanek 1983). M times the
 * first two is exact, and so are the integers nearest, which are taken off and counted, and what remains; the third
 * product is rounded by 2^-68, and so is the sum, relatively, by u: r is pi / 2 times that, off by 2^-66 + 3 u |r|.
 *
 * pi x: 2 x less the integer nearest is exact; r is off by 2 u |r|, and 0 where the result is exact, or a pole of tan,
 * which is left to the definition. |x| >= 2^30 is an even integer.
 *
 * Errors, beside those of r: of r^3 S and r^2 C, 2^-50 of themselves; tan r = r + (r^3 S - r r^2 C) / (1 + r^2 C):
 * there of one part in three of the difference, 2^-48, and -1 / tan r is off by 2^-49 of itself. That of r makes |r| as
 * much of cos r, and up to twice of tan r. */
#ifndef SOFTNUM_FUNCTIONS_TRIGONOMETRIC_H
#define SOFTNUM_FUNCTIONS_TRIGONOMETRIC_H

#include "elementwise/functions/evaluate.h"

enum { SN_SINE, SN_COSINE, SN_TANGENT };

typedef struct {
    sn_wf r, err;
    sn_wu quadrant, outside;
} SN_(angle);

/* The integer nearest to x is taken off, and added to *count. */
SN_INLINE sn_wf SN_(off_integer)(sn_wf x, sn_wu *count) {
    const sn_wf shifted = x + SN_TO_INTEGER64;
    *count += (sn_wu)shifted;
    return x - (shifted - SN_TO_INTEGER64);
}

/* a = |x| */
SN_INLINE SN_(angle) SN_(reduce_angle)(sn_wf a) {
    SN_(angle) angle;
    const sn_wi small = a < 0.785, field = (sn_wi)((sn_wu)a >> 52);
    const sn_wu row = (sn_wu)SN_SELECT64(small, (sn_wi){0}, field - (1023 + SN_TURN_FIRST));
    const sn_wf whole = (sn_wf)(((sn_wu)a & 0xfffffffffffffu) | (sn_u64)(1023 + 29) << 52); /* M */
    sn_wu count = {0};
    const sn_wf first = SN_(off_integer)(whole * SN_GATHER64(sn_turns, row), &count);
    const sn_wf second = SN_(off_integer)(first + whole * SN_GATHER64(sn_turns_low, row), &count);
    const sn_wf part = second + whole * SN_GATHER64(sn_turns_least, row);
    angle.r = SN_(either64)(small, a, part * SN_FUNCTION_HALF_PI);
    angle.err = SN_(where64)(~small, SN_(magnitude64)(angle.r) * 0x1p-51 + 0x1p-65);
    angle.quadrant = count & ~(sn_wu)small & 3;
    angle.outside = (sn_wu){0};
    return angle;
}

SN_INLINE SN_(angle) SN_(reduce_turn)(sn_wf a) {
    SN_(angle) angle;
    const sn_wi large = a >= 0x1p30;
    sn_wu count = {0};
    const sn_wf part = SN_(off_integer)(SN_(where64)(~large, a + a), &count);
    angle.r = part * SN_FUNCTION_HALF_PI;
    angle.err = SN_(magnitude64)(angle.r) * 0x1p-51;
    angle.quadrant = count & 3;
    angle.outside = (sn_wu){0};
    return angle;
}

SN_INLINE SN_(enclosure) SN_(trigonometric_in_lanes)(int which, int turns, sn_wf x) {
    const sn_wf a = SN_(magnitude64)(x);
    const SN_(angle) angle = turns ? SN_(reduce_turn)(a) : SN_(reduce_angle)(a);
    const sn_wf r = angle.r, square = r * r, size = SN_(magnitude64)(r);
    const sn_wf sine = r * (square * SN_(polynomial)(sn_sin_terms, 6, square));
    const sn_wf cosine = square * SN_(polynomial)(sn_cos_terms, 6, square);
    const sn_wi odd = (angle.quadrant & 1) != 0;
    const sn_wu sign_of_x = (sn_wu)x & SN_SIGN64;
    sn_wu sign;
    SN_(enclosure) e;
    e.scale = (sn_wi){0};
    e.outside = angle.outside;
    if (which == SN_TANGENT) {
        const sn_wf rest = (sine - r * cosine) / (1.0 + cosine);
        const sn_wf inverse = (1.0 + cosine) / (r + sine);
        e.hi = SN_(either64)(odd, inverse, r);
        e.lo = SN_(where64)(~odd, rest);
        e.err = SN_(either64)(odd, SN_(magnitude64)(inverse) * (0x1p-49 + 2.0 * angle.err / size),
                              SN_(magnitude64)(rest) * 0x1p-47 + 2.0 * angle.err);
        sign = sign_of_x ^ ((sn_wu)odd & SN_SIGN64);
    } else {
        const sn_wi by_sine = which == SN_SINE ? ~odd : odd;
        e.hi = SN_(either64)(by_sine, r, SN_(f64)(1.0));
        e.lo = SN_(either64)(by_sine, sine, cosine);
        e.err = SN_(magnitude64)(e.lo) * 0x1p-48 + angle.err * SN_(either64)(by_sine, SN_(f64)(1.0), size);
        if (which == SN_SINE)
            sign = sign_of_x ^ (angle.quadrant & 2) << 62;
        else
            sign = ((angle.quadrant ^ angle.quadrant >> 1) & 1) << 63;
    }
    if (turns) { /* exact zeros, and tan's poles, which the definition has */
        const sn_wu zero = (sn_wu)(r == 0.0);
        if (which == SN_TANGENT) {
            e.outside = zero & (sn_wu)odd;
            sign ^= zero & angle.quadrant << 62;
        } else {
            sign = SN_SELECT64(zero & (sn_wu)(e.hi == 0.0), which == SN_SINE ? sign_of_x : (sn_wu){0}, sign);
        }
    }
    e.hi = SN_(with_sign64)(e.hi, sign);
    e.lo = SN_(with_sign64)(e.lo, sign);
    return e;
}

#endif

/* cbrt, rsqrt and reciprocal: in lanes (evaluate.h).
 *
 * x = 2^k m as of logarithms, r = m c - 1, |r| < 2^-5; (1 / c)^p and the first terms of the binomial series of (1 +
 * r)^p give m^p but for 2^-14, and y is the first bits of that: so few that what they leave, d = m / y^3 - 1, 1 - m y^2
 * or 1 - m y, is exact, or a quotient of an exact number. The binomial series of d is y's factor. d = 0 makes an exact
 * result.
 *
 * Errors: |d| < 2^-9; of the sum of the series, times y, 2^-50 of itself, and less than 2^-70 is left out. */
#ifndef SOFTNUM_FUNCTIONS_ROOTS_H
#define SOFTNUM_FUNCTIONS_ROOTS_H

#include "elementwise/functions/logarithm.h"

/* y (1 + d S(d)), S of `terms`. */
SN_INLINE SN_(enclosure) SN_(corrected)(sn_wf y, sn_wf d, const double *terms, int degree, sn_wi scale, sn_wu sign) {
    SN_(enclosure) e;
    e.hi = SN_(with_sign64)(y, sign);
    e.lo = SN_(with_sign64)(y * (d * SN_(polynomial)(terms, degree, d)), sign);
    e.err = SN_(magnitude64)(e.lo) * 0x1p-49 + SN_(where64)(d != 0.0, SN_(f64)(0x1p-69));
    e.scale = scale;
    e.outside = (sn_wu){0};
    return e;
}

SN_INLINE SN_(enclosure) SN_(cbrt_in_lanes)(sn_wf x) {
    static const double series[] = {1.0 / 3, -1.0 / 9, 5.0 / 81, -10.0 / 243};
    const sn_wf a = SN_(magnitude64)(x);
    const sn_wi zero = a == 0.0;
    const SN_(octave) o = SN_(octave_of)(SN_(either64)(zero, SN_(f64)(1.0), a));
    const sn_wf octave = (sn_wf)((sn_wu)o.k + (sn_wu)SN_(f64)(SN_TO_INTEGER64)) - SN_TO_INTEGER64;
    const sn_wf shifted = octave * (1.0 / 3) + SN_TO_INTEGER64;
    const sn_wi third = (sn_wi)((sn_wu)shifted - (sn_wu)SN_(f64)(SN_TO_INTEGER64));
    const sn_wi over = o.k - (third + third + third); /* -1, 0 or 1 */
    const sn_wf unit = SN_(either64)(over > 0, SN_(f64)(SN_FUNCTION_CBRT_2),
                                     SN_(either64)(over < 0, SN_(f64)(SN_FUNCTION_CBRT_HALF), SN_(f64)(1.0)));
    const sn_wf m = (sn_wf)(o.m + ((sn_wu)over << 52)), r = (sn_wf)o.m * SN_LOOK_UP16(sn_log_inverse, o.cell) - 1.0;
    const sn_wf near =
        SN_LOOK_UP16(sn_log_cbrt, o.cell) * unit * (1.0 + r * (1.0 / 3 - r * (1.0 / 9 - r * (5.0 / 81))));
    const sn_wf y = (sn_wf)(((sn_wu)near + ((sn_u64)1 << 35)) >> 36 << 36), cube = y * y * y; /* 17 bits */
    SN_(enclosure) e = SN_(corrected)(y, (m - cube) / cube, series, 3, third, (sn_wu)x & SN_SIGN64);
    e.hi = SN_(where64)(~zero, e.hi);
    e.lo = SN_(where64)(~zero, e.lo);
    e.err = SN_(where64)(~zero, e.err);
    return e;
}

/* x > 0 */
SN_INLINE SN_(enclosure) SN_(rsqrt_in_lanes)(sn_wf x) {
    static const double series[] = {1.0 / 2, 3.0 / 8, 5.0 / 16, 35.0 / 128, 63.0 / 256, 231.0 / 1024, 429.0 / 2048};
    const SN_(octave) o = SN_(octave_of)(x);
    const sn_wi odd = o.k & 1;
    const sn_wf m = (sn_wf)(o.m + ((sn_wu)odd << 52)), r = (sn_wf)o.m * SN_LOOK_UP16(sn_log_inverse, o.cell) - 1.0;
    const sn_wf unit = SN_(either64)(odd != 0, SN_(f64)(SN_FUNCTION_SQRT_HALF), SN_(f64)(1.0));
    const sn_wf near = SN_LOOK_UP16(sn_log_rsqrt, o.cell) * unit * (1.0 - r * (0.5 - r * (0.375 - r * 0.3125)));
    const sn_wf y = (sn_wf)(((sn_wu)near + ((sn_u64)1 << 41)) >> 42 << 42); /* 11 bits */
    return SN_(corrected)(y, 1.0 - m * (y * y), series, 6, -(o.k >> 1), (sn_wu){0});
}

/* x is not 0 */
SN_INLINE SN_(enclosure) SN_(reciprocal_in_lanes)(sn_wf x) {
    static const double series[] = {1.0, 1.0, 1.0, 1.0, 1.0};
    const SN_(octave) o = SN_(octave_of)(SN_(magnitude64)(x));
    const sn_wf c = SN_LOOK_UP16(sn_log_inverse, o.cell), r = (sn_wf)o.m * c - 1.0;
    const sn_wf y = (sn_wf)(((sn_wu)(c * (1.0 - r * (1.0 - r))) + ((sn_u64)1 << 32)) >> 33 << 33); /* 20 bits */
    return SN_(corrected)(y, 1.0 - (sn_wf)o.m * y, series, 4, -o.k, (sn_wu)x & SN_SIGN64);
}

#endif

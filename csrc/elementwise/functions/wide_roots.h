/* cbrt, rsqrt and reciprocal of wide operands, in lanes (wide.h).
 *
 * As in roots.h, x is a power of two and m, and y near the result, here of 26 bits: then y^2 is a number and y^3, or m
 * y^2, a pair, exactly, and 1 or m less that is off by u of itself: 0 where the result is exact. The binomial series of
 * what that is, relatively, d, is y's factor. 1 / m is the quotient rounded, and d what a fused multiply-add leaves.
 *
 * Errors: of cbrt, |d| < 2^-22; of lo 2^-49 of itself, and d^4 10 / 243 is left out, less than 2^-90; of rsqrt, |d| <
 * 2^-20, of lo the same, and d^4 35 / 128 is left out, less than 2^-80; of reciprocal, d^2, less than 2^-52 of lo. */
#ifndef SOFTNUM_FUNCTIONS_WIDE_ROOTS_H
#define SOFTNUM_FUNCTIONS_WIDE_ROOTS_H

#include "elementwise/functions/wide.h"

SN_INLINE sn_wf SN_(rounded_to_26)(sn_wf x) { return (sn_wf)(((sn_wu)x + ((sn_u64)1 << 26)) >> 27 << 27); }

SN_INLINE SN_(enclosure) SN_(wide_cbrt)(sn_wf x) {
    sn_wi scale; /* a multiple of 3 */
    const sn_wf a = SN_(normal_number)(SN_(magnitude64)(x), &scale);
    const sn_wi zero = a == 0.0;
    const SN_(octave) o = SN_(octave_of)(SN_(either64)(zero, SN_(f64)(1.0), a));
    const sn_wf octave = (sn_wf)((sn_wu)o.k + (sn_wu)SN_(f64)(SN_TO_INTEGER64)) - SN_TO_INTEGER64;
    const sn_wf shifted = octave * (1.0 / 3) + SN_TO_INTEGER64;
    const sn_wi third = (sn_wi)((sn_wu)shifted - (sn_wu)SN_(f64)(SN_TO_INTEGER64));
    const sn_wi over = o.k - (third + third + third); /* -1, 0 or 1 */
    const sn_wf unit = SN_(either64)(over > 0, SN_(f64)(SN_FUNCTION_CBRT_2),
                                     SN_(either64)(over < 0, SN_(f64)(SN_FUNCTION_CBRT_HALF), SN_(f64)(1.0)));
    const sn_wf m = (sn_wf)(o.m + ((sn_wu)over << 52)), r = (sn_wf)o.m * SN_LOOK_UP16(sn_log_inverse, o.cell) - 1.0;
    const sn_wf y = SN_(rounded_to_26)(SN_LOOK_UP16(sn_log_cbrt, o.cell) * unit *
                                       (1.0 + r * (1.0 / 3 - r * (1.0 / 9 - r * (5.0 / 81)))));
    const SN_(pair64) cube = SN_(exact_product)(y * y, y);
    const sn_wf d = ((m - cube.hi) - cube.lo) / cube.hi;
    const sn_wf lo = y * (d * (1.0 / 3 - d * (1.0 / 9 - d * (5.0 / 81))));
    const sn_wf err = SN_(magnitude64)(lo) * 0x1p-49 + SN_(where64)(d != 0.0, SN_(f64)(0x1p-89));
    const sn_wi by = third + ((scale != 0) & -200);
    SN_(enclosure) e = SN_(enclosure_of)(SN_(pair_of)(SN_(where64)(~zero, y), lo), err, by);
    return SN_(enclosure_signed)(e, (sn_wu)x & SN_SIGN64);
}

/* x > 0 */
SN_INLINE SN_(enclosure) SN_(wide_rsqrt)(sn_wf x) {
    sn_wi scale;
    const SN_(octave) o = SN_(octave_of)(SN_(normal_number)(x, &scale));
    const sn_wi odd = o.k & 1;
    const sn_wf m = (sn_wf)(o.m + ((sn_wu)odd << 52)), r = (sn_wf)o.m * SN_LOOK_UP16(sn_log_inverse, o.cell) - 1.0;
    const sn_wf unit = SN_(either64)(odd != 0, SN_(f64)(SN_FUNCTION_SQRT_HALF), SN_(f64)(1.0));
    const sn_wf y =
        SN_(rounded_to_26)(SN_LOOK_UP16(sn_log_rsqrt, o.cell) * unit * (1.0 - r * (0.5 - r * (0.375 - r * 0.3125))));
    const SN_(pair64) one = SN_(exact_product)(y * y, m);
    const sn_wf d = (1.0 - one.hi) - one.lo, lo = y * (d * (0.5 + d * (0.375 + d * 0.3125)));
    const sn_wf err = SN_(magnitude64)(lo) * 0x1p-49 + SN_(where64)(d != 0.0, SN_(f64)(0x1p-79));
    return SN_(enclosure_of)(SN_(pair_of)(y, lo), err, -(o.k >> 1) - (scale >> 1));
}

/* x is not 0 */
SN_INLINE SN_(enclosure) SN_(wide_reciprocal)(sn_wf x) {
    sn_wi scale;
    const SN_(octave) o = SN_(octave_of)(SN_(normal_number)(SN_(magnitude64)(x), &scale));
    const sn_wf m = (sn_wf)o.m, y = 1.0 / m, lo = y * SN_FMA64(-m, y, SN_(f64)(1.0));
    const SN_(enclosure) e = SN_(enclosure_of)(SN_(pair_of)(y, lo), SN_(magnitude64)(lo) * 0x1p-49, -o.k - scale);
    return SN_(enclosure_signed)(e, (sn_wu)x & SN_SIGN64);
}

#endif

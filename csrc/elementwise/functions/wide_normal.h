/* erf of wide operands, in lanes (wide.h).
 *
 * As in normal.h, but c is the multiple of 1 / 64 nearest to a = |x|: erf(a) = erf(c) + h E (1 - c h + rest), h = a -
 * c, rest the sum of T_k / (k + 1) for k = 2 .. SN_WIDE_ERF_TERMS; erf(c), E and the product c h are pairs. From 6 on
 * erf lies between 1 - 2^-55 and 1.
 *
 * Errors: of rest, t = -2 c h and s = -2 h^2, 2^-51 (t^2 + |s|); of the terms left out 2^-68 |h|
 * (wide_approximations.py: prove_erf), beside which E h has a factor 1 - c h of no less than 0.9; of E h 2^-102 of
 * itself and of the sum, where c is not 0, 2^-100. */
#ifndef SOFTNUM_FUNCTIONS_WIDE_NORMAL_H
#define SOFTNUM_FUNCTIONS_WIDE_NORMAL_H

#include "elementwise/functions/wide_exponential.h"

SN_INLINE SN_(enclosure) SN_(wide_erf)(sn_wf x) {
    const double last = (double)SN_WIDE_ERF_CELLS / SN_WIDE_ERF_STEPS;
    const sn_wf size = SN_(magnitude64)(x), a = SN_(limited)(size, last);
    const sn_wf shifted = a * (double)SN_WIDE_ERF_STEPS + SN_TO_INTEGER64;
    const sn_wu cell = (sn_wu)shifted - (sn_wu)SN_(f64)(SN_TO_INTEGER64);
    const sn_wf c = (shifted - SN_TO_INTEGER64) * (1.0 / SN_WIDE_ERF_STEPS), h = a - c;
    const SN_(pair64) bend = SN_(exact_product)(c, h);
    const sn_wf t = -2.0 * bend.hi, s = -2.0 * (h * h);
    sn_wf before = t, term = SN_MULTIPLY_ADD64(t, t, s) * 0.5, rest = term * (1.0 / 3); /* T_1, T_2 */
    for (int k = 2; k < SN_WIDE_ERF_TERMS; k++) {
        const sn_wf next = SN_MULTIPLY_ADD64(t, term, s * before) * (1.0 / (k + 1));
        before = term;
        term = next;
        rest = SN_MULTIPLY_ADD64(next, SN_(f64)(1.0 / (k + 2)), rest);
    }
    const SN_(pair64) near_one = SN_(ordered_sum)(SN_(f64)(1.0), -bend.hi);
    const SN_(pair64) factor = SN_(ordered_sum)(near_one.hi, near_one.lo + (rest - bend.lo));
    sn_wi scale;
    const SN_(pair64) slope = {SN_GATHER64(sn_wide_erf_slopes, cell), SN_GATHER64(sn_wide_erf_slopes_low, cell)};
    const SN_(pair64) value = {SN_GATHER64(sn_wide_erf_values, cell), SN_GATHER64(sn_wide_erf_values_low, cell)};
    const SN_(pair64) part = SN_(pair_multiply)(SN_(pair_scale)(slope, SN_(normal_number)(h, &scale)), factor);
    const sn_wi first = cell == 0;
    scale &= first; /* elsewhere h may be tiny too, and is left so: 2^-52 at least, or 0 */
    const SN_(pair64) sum = SN_(pair_either)(first, part, SN_(pair_add)(value, part));
    const sn_wf err = SN_(magnitude64)(part.hi) * ((t * t - s) * 0x1p-51 + 0x1p-98) +
                      SN_(where64)(~first, SN_(magnitude64)(h) * 0x1p-68 + 0x1p-98);
    SN_(enclosure) e = SN_(enclosure_of)(sum, err, scale);
    const sn_wi large = size >= last;
    e.hi = SN_(either64)(large, SN_(f64)(1.0), e.hi);
    e.lo = SN_(either64)(large, SN_(f64)(-0x1p-60), e.lo);
    e.err = SN_(where64)(~large, e.err);
    return SN_(enclosure_signed)(e, (sn_wu)x & SN_SIGN64);
}

#endif

/* erf and gelu of wide operands, in lanes (wide.h).
 *
 * erf. As in normal.h, but c is the multiple of 1 / 64 nearest to a = |x|: erf(a) = erf(c) + h E (1 - c h + rest), h =
 * a - c, rest the sum of T_k / (k + 1) for k = 2 .. SN_WIDE_ERF_TERMS; erf(c), E and the product c h are pairs. From 6
 * on erf lies between 1 - 2^-55 and 1.
 *
 * Errors: of rest, t = -2 c h and s = -2 h^2, 2^-51 (t^2 + |s|); of the terms left out 2^-68 |h|
 * (wide_approximations.py: prove_erf), beside which E h has a factor 1 - c h of no less than 0.9; of E h 2^-102 of
 * itself and of the sum, where c is not 0, 2^-100.
 *
 * gelu, |x| < 1/2: x / 2 + x^2 (1 + x^2 G(x^2)) / sqrt(2 pi), G's last part below 2^-17.7 at 1/2, and off by 2^-50.
 * Else Phi(-a) = e^(-a^2 / 2) / sqrt(2 pi) M(a), a^2 / 2 a pair, exactly, and M, Mills' ratio, a series about the
 * middle c of the cell that a lies in, of 16 an octave: |h| <= c / 33, h = a - c. From 63 on all are taken for that at
 * 63, below 2^-2800: x - a Phi(-a) stays beside x, and a Phi(-a) is beyond all formats.
 *
 * Errors: of the last part of M, h^4 times a polynomial, 2^-50, where that falls by 2^-5 from one term to the next, and
 * 2^-54 by the terms left out (wide_approximations.py: prove_mills); of pairs 2^-98; of the power as wide_exponential.h
 * has it. */
#ifndef SOFTNUM_FUNCTIONS_WIDE_NORMAL_H
#define SOFTNUM_FUNCTIONS_WIDE_NORMAL_H

#include "elementwise/functions/wide_exponential.h"

SN_INLINE SN_(enclosure) SN_(wide_erf)(sn_wf x) {
    const double last = (double)SN_WIDE_ERF_CELLS / (double)SN_WIDE_ERF_STEPS;
    const sn_wf size = SN_(magnitude64)(x), a = SN_(limited)(size, last);
    const sn_wf shifted = a * (double)SN_WIDE_ERF_STEPS + SN_TO_INTEGER64;
    const sn_wu cell = (sn_wu)shifted - (sn_wu)SN_(f64)(SN_TO_INTEGER64);
    const sn_wf c = (shifted - SN_TO_INTEGER64) * (1.0 / (double)SN_WIDE_ERF_STEPS), h = a - c;
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

/* M(a) of Mills, off by *err; 1/2 <= a <= 63 */
SN_INLINE SN_(pair64) SN_(wide_mills)(sn_wf a, sn_wf *err) {
    enum { BITS = 52 - SN_WIDE_MILLS_BITS };
    const sn_wu cell = ((sn_wu)a - SN_WIDE_MILLS_START) >> BITS;
    const sn_wf c = (sn_wf)(((sn_wu)a >> BITS << BITS) | (sn_u64)1 << (BITS - 1)), h = a - c, square = h * h;
    sn_wf rest = SN_GATHER64(sn_wide_mills_terms[SN_WIDE_MILLS_TERMS - 1], cell);
    for (int k = SN_WIDE_MILLS_TERMS - 2; k >= 0; k--)
        rest = SN_MULTIPLY_ADD64(rest, h, SN_GATHER64(sn_wide_mills_terms[k], cell));
    SN_(pair64) sum = {rest * h, {0}};
    for (int k = SN_WIDE_MILLS_PAIRS - 1; k >= 0; k--) {
        const SN_(pair64) term = {SN_GATHER64(sn_wide_mills_leading[2 * k], cell),
                                  SN_GATHER64(sn_wide_mills_leading[2 * k + 1], cell)};
        sum = SN_(pair_add_less)(term, sum);
        if (k > 0) sum = SN_(pair_scale)(sum, h);
    }
    *err = SN_(magnitude64)(rest) * (square * square) * 0x1p-49 + sum.hi * 0x1p-98;
    return sum;
}

SN_INLINE SN_(enclosure) SN_(wide_gelu)(sn_wf x) {
    const sn_wf size = SN_(magnitude64)(x);
    const sn_wi little = size < 0.5, least = (sn_wi){0} - 900, tiny = size < 0x1p-56;
    sn_wf off;
    const sn_wf a = SN_(either64)(little, SN_(f64)(1.0), SN_(limited)(size, 63.0));
    const SN_(pair64) square = SN_(exact_product)(a, a), ratio = SN_(wide_mills)(a, &off);
    const SN_(wide_power) power = SN_(wide_power_of_sum)(SN_BASE_E, 1, -0.5 * square.hi, -0.5 * square.lo);
    const SN_(pair64) scaled = SN_(pair_scale)(SN_(pair_multiply)(ratio, SN_WIDE_PAIR(NORMAL_PEAK)), a);
    const SN_(pair64) part = SN_(pair_multiply)(power.power, scaled); /* by 2^k */
    const sn_wf part_err = part.hi * (off / ratio.hi + power.err * 1.1 + 0x1p-98);
    const sn_wf unit = SN_(two_to)((sn_wi)SN_SELECT64(power.k < least, least, power.k));
    const SN_(enclosure) low = SN_(enclosure_of)(SN_(pair_negative)(part), part_err, power.k);
    const SN_(enclosure) high =
        SN_(enclosure_of)(SN_(pair_add)(SN_(pair_of)(x, (sn_wf){0}), SN_(pair_of)(part.hi * -unit, part.lo * -unit)),
                          part_err * unit + SN_(where64)(size < 63.0, size * 0x1p-101), (sn_wi){0});
    const sn_wf number = SN_(either64)(little & ~tiny, x, SN_(f64)(0.25));
    const SN_(pair64) t = SN_(exact_product)(number, number), one = {SN_(f64)(1.0), (sn_wf){0}};
    const SN_(pair64) bend = SN_(pair_multiply)(t, SN_WIDE_SERIES(gelu, GELU, t));
    const SN_(pair64) rise =
        SN_(pair_multiply)(SN_(pair_multiply)(t, SN_WIDE_PAIR(NORMAL_PEAK)), SN_(pair_add_less)(one, bend));
    const sn_wf fourth = t.hi * t.hi;
    const SN_(enclosure) middle = SN_(enclosure_of)(
        SN_(pair_add)(SN_(pair_of)(0.5 * number, (sn_wf){0}), rise),
        rise.hi * (fourth * fourth * 0x1p-61 + 0x1p-98) + SN_(magnitude64)(number) * 0x1p-101, (sn_wi){0});
    const sn_wf raised = x * 0x1p200; /* x / 2, and what is above it */
    const SN_(enclosure) near =
        SN_(enclosure_of)(SN_(pair_of)(raised, SN_(magnitude64)(raised) * 0x1p-80), (sn_wf){0}, (sn_wi){0} - 201);
    const SN_(enclosure) far = SN_(enclosure_either)(x < 0.0, low, high);
    return SN_(enclosure_either)(tiny, near, SN_(enclosure_either)(little, middle, far));
}

#endif

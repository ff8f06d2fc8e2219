/* log, log2, log10, and those of 1 + x, of wide operands, in lanes (wide.h).
 *
 * As in logarithm.h, x = 2^k m, c near 1 / m, and log_b(x) = k log_b(2) - log_b(c) + log(1 + r) U, r = m c - 1. The
 * product m c is a pair, of which 1 is taken off exactly; of 1 + x, the sum's error, times 2^-k c, is added to the
 * pair's second part, off by 2^-106. In the cell of 1, c = 1 and r is exact, and k log_b(2) - log_b(c) is 0 where k is,
 * else a multiple of 2^-42, exactly, and what follows it.
 *
 * Errors: of log(1 + r), r^4 / 5 2^-50 of itself, below 2^-71; of the sum, where k or log(c) is not 0, 2^-86, and then
 * the result is 2^-6 at least. Of log2, where r is 0, x is a power of two and the result k; but of 1 + x, where the
 * sum's error may be lost in r. */
#ifndef SOFTNUM_FUNCTIONS_WIDE_LOGARITHM_H
#define SOFTNUM_FUNCTIONS_WIDE_LOGARITHM_H

#include "elementwise/functions/wide.h"

/* log of x 2^power, x.hi > 0 and normal, x.lo off by no more than 2^-105 of x.hi */
SN_INLINE SN_(enclosure) SN_(wide_log_of)(int base, SN_(pair64) x, sn_wi power) {
    const double *const cells = base == SN_LOG_E ? sn_log_cells : base == SN_LOG_2 ? sn_log2_cells : sn_log10_cells;
    const double *const cells_low = base == SN_LOG_E   ? sn_log_cells_low
                                    : base == SN_LOG_2 ? sn_log2_cells_low
                                                       : sn_log10_cells_low;
    const SN_(octave) o = SN_(octave_of)(x.hi);
    const sn_wi past = o.k < -1000, least = (sn_wi){0} - 1000; /* 2^-k, in two steps */
    const sn_wi first = (sn_wi)SN_SELECT64(past, least, o.k);
    const sn_wf low = x.lo * SN_(two_to)(-first) * SN_(two_to)(first - o.k);
    const sn_wf octave = (sn_wf)((sn_wu)(o.k + power) + (sn_wu)SN_(f64)(SN_TO_INTEGER64)) - SN_TO_INTEGER64;
    const sn_wf inverse = SN_LOOK_UP16(sn_log_inverse, o.cell);
    const SN_(pair64) product = SN_(exact_product)((sn_wf)o.m, inverse);
    const SN_(pair64) r = SN_(exact_sum)(product.hi - 1.0, SN_MULTIPLY_ADD64(low, inverse, product.lo));
    const sn_wf exact = octave * SN_LOG_CONSTANT(base, OCTAVE_HIGH) + SN_LOOK_UP16(cells, o.cell);
    const sn_wf rest = octave * SN_LOG_CONSTANT(base, OCTAVE_LOW) + SN_LOOK_UP16(cells_low, o.cell);
    SN_(pair64) bend = SN_(pair_multiply)(r, SN_WIDE_SERIES(log, LOG, r));
    if (base == SN_LOG_2) bend = SN_(pair_multiply)(bend, SN_WIDE_PAIR(LOG2_UNIT));
    if (base == SN_LOG_10) bend = SN_(pair_multiply)(bend, SN_WIDE_PAIR(LOG10_UNIT));
    const SN_(pair64) sum = SN_(exact_sum)(exact, bend.hi);
    const sn_wi rounded = base == SN_LOG_2 ? (exact != 0.0) & ((bend.hi != 0.0) | (x.lo != 0.0)) : exact != 0.0;
    const sn_wf err = SN_(magnitude64)(bend.hi) * 0x1p-70 + SN_(where64)(rounded, SN_(f64)(0x1p-84));
    return SN_(enclosure_of)(SN_(pair_of)(sum.hi, sum.lo + (bend.lo + rest)), err, (sn_wi){0});
}

/* x > 0 */
SN_INLINE SN_(enclosure) SN_(wide_log)(int base, sn_wf x) {
    sn_wi scale;
    const sn_wf number = SN_(normal_number)(x, &scale);
    return SN_(wide_log_of)(base, SN_(pair_of)(number, (sn_wf){0}), scale);
}

/* x > -1. Below 2^-500 log(1 + x) of the other bases is x U, of 2^400 x. */
SN_INLINE SN_(enclosure) SN_(wide_log1p)(int base, sn_wf x) {
    const sn_wi tiny = SN_(magnitude64)(x) < 0x1p-500;
    const sn_wf number = SN_(either64)(tiny, x * 0x1p400, x);
    SN_(enclosure) e = SN_(wide_log_of)(base, SN_(exact_sum)(SN_(f64)(1.0), number), (sn_wi){0});
    e.scale = tiny & -400;
    if (base != SN_LOG_E) return e;
    e = SN_(near_operand)(e, x, 0x1p-54, 1);
    e.lo = SN_(either64)(SN_(magnitude64)(x) < 0x1p-54, -SN_(magnitude64)(e.lo), e.lo); /* - x^2 / 2 */
    return e;
}

#endif

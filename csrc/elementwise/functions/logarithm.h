/* log, log2, log10, and those of 1 + x: in lanes (evaluate.h).
 *
 * x = 2^k m, m in 0.703 .. 1.407, lies in the cell j of the first 4 bits of its pattern less that of the least m; c =
 * 1 / m but for 2^-5, with 9 fraction bits, and 1 in the cell of 1, 1 - 2^-6 .. 1 + 2^-5. r = m c - 1 is exact (x has
 * 30 bits). Then log_b(x) = k log_b(2) - log_b(c) + r U + r^2 U L(r), U = 1 / log(b): k log_b(2) and -log_b(c) are
 * multiples of 2^-42 and less than 2^-42 each, so that the sum of the first of them is exact; U is 13 bits and the
 * rest, so that r times those is exact too; and L(r) = (log(1 + r) - r) / r^2. hi is the sum of what is exact.
 *
 * 1 + x as a sum and its error: m has 53 bits then, of which c takes the first 30 and the others apart; what they and
 * the error add to r is below 2^-28, and rounded by 2^-81. Where |x| < 2^-6, r is x.
 *
 * Errors: of r^2 U L, 2^-50 of itself; of r U_low, below 2^-12 |r U|, 2 u of itself; of what is added to them, below
 * 2^-30, 2^-82; of lo altogether below 2^-48 |r^2 L| + 2^-62 |r|, and 2^-70 where k or log(c) is not 0; but of log2, if
 * r = 0, and then x a power of two, there is none. */
#ifndef SOFTNUM_FUNCTIONS_LOGARITHM_H
#define SOFTNUM_FUNCTIONS_LOGARITHM_H

#include "elementwise/functions/evaluate.h"

enum { SN_LOG_E, SN_LOG_2, SN_LOG_10 };

#define SN_LOG_CONSTANT(base, what)                                                                                    \
    ((base) == SN_LOG_E   ? SN_FUNCTION_LOG_##what                                                                     \
     : (base) == SN_LOG_2 ? SN_FUNCTION_LOG2_##what                                                                    \
                          : SN_FUNCTION_LOG10_##what)

typedef struct {
    sn_wi k;
    sn_wu cell, m; /* a pattern */
} SN_(octave);

/* x = 2^k m, x > 0 */
SN_INLINE SN_(octave) SN_(octave_of)(sn_wf x) {
    const sn_wu past = (sn_wu)x - SN_LOG_START;
    const sn_wi k = (sn_wi)past >> 52;
    return (SN_(octave)){k, past >> 48 & (SN_LOG_CELLS - 1), (sn_wu)x - ((sn_wu)k << 52)};
}

/* log of x, of at most 30 bits (one), or of a sum (two): argument + below, the first being the sum rounded; which is 1
 * + near_one + near_one_low, those less than 2^-6, where `small`; where `doubled`, twice that. */
SN_INLINE SN_(enclosure) SN_(log_of)(int base, int of_sum, sn_wf argument, sn_wf below, sn_wi doubled, sn_wi small,
                                     sn_wf near_one, sn_wf near_one_low) {
    const double *const cells = base == SN_LOG_E ? sn_log_cells : base == SN_LOG_2 ? sn_log2_cells : sn_log10_cells;
    const double *const cells_low = base == SN_LOG_E   ? sn_log_cells_low
                                    : base == SN_LOG_2 ? sn_log2_cells_low
                                                       : sn_log10_cells_low;
    const SN_(octave) o = SN_(octave_of)(argument);
    /* k as a number: |k| < 2^31 stands in the last places of 1.5 2^52 */
    const sn_wf octave = (sn_wf)((sn_wu)(o.k - doubled) + (sn_wu)SN_(f64)(SN_TO_INTEGER64)) - SN_TO_INTEGER64;
    const sn_wf inverse = SN_LOOK_UP16(sn_log_inverse, o.cell);
    sn_wf r, r_low = {0};
    if (of_sum) {
        const sn_wf head = (sn_wf)(o.m >> 23 << 23),
                    back = SN_(two_to)(-(sn_wi)SN_SELECT64(o.k > 900, (sn_wi){0} + 900, o.k));
        r = head * inverse - 1.0;
        r_low = (((sn_wf)o.m - head) + below * back) * inverse;
        r = SN_(either64)(small, near_one, r);
        r_low = SN_(either64)(small, near_one_low, r_low);
    } else {
        r = (sn_wf)o.m * inverse - 1.0;
    }
    const sn_wf exact = SN_(where64)(~small, octave * SN_LOG_CONSTANT(base, OCTAVE_HIGH) + SN_LOOK_UP16(cells, o.cell));
    const sn_wf rest =
        SN_(where64)(~small, octave * SN_LOG_CONSTANT(base, OCTAVE_LOW) + SN_LOOK_UP16(cells_low, o.cell));
    const sn_wf whole = r + r_low, bend = (whole * whole) * SN_(polynomial)(sn_log1p_terms, 8, whole);
    SN_(enclosure) e;
    sn_wf error;
    e.hi = SN_(two_sum)(exact, base == SN_LOG_E ? r : r * SN_LOG_CONSTANT(base, UNIT_HIGH), &error);
    if (base == SN_LOG_E)
        e.lo = (rest + error) + (r_low + bend);
    else
        e.lo = (rest + error) + (whole * SN_LOG_CONSTANT(base, UNIT_LOW) +
                                 (r_low * SN_LOG_CONSTANT(base, UNIT_HIGH) +
                                  bend * (SN_LOG_CONSTANT(base, UNIT_HIGH) + SN_LOG_CONSTANT(base, UNIT_LOW))));
    const sn_wf of_r = SN_(magnitude64)(whole) * (base == SN_LOG_E ? 0x1p-70 : 0x1p-62);
    e.err = SN_(magnitude64)(bend) * 0x1p-47 +
            (base == SN_LOG_E ? SN_(where64)(of_sum ? ~small : (sn_wi){0}, of_r) : of_r) +
            SN_(where64)(base == SN_LOG_2 ? (exact != 0.0) & (whole != 0.0) : exact != 0.0, SN_(f64)(0x1p-68));
    e.scale = (sn_wi){0};
    e.outside = (sn_wu){0};
    return e;
}

SN_INLINE SN_(enclosure) SN_(log_in_lanes)(int base, sn_wf x) {
    return SN_(log_of)(base, 0, x, (sn_wf){0}, (sn_wi){0}, (sn_wi){0}, x, x);
}

SN_INLINE SN_(enclosure) SN_(log1p_in_lanes)(int base, sn_wf x) {
    sn_wf below;
    const sn_wf sum = SN_(two_sum)(SN_(f64)(1.0), x, &below);
    return SN_(log_of)(base, 1, sum, below, (sn_wi){0}, (sn_wi)(SN_(magnitude64)(x) < 0x1p-6), x, (sn_wf){0});
}

#endif

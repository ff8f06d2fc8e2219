/* Functions of operands of up to 53 bits, for results of up to 53: enclosures in pairs of binary64 numbers. Included
 * once per instruction set that has fused multiply-adds.
 *
 * As in evaluate.h, |f(x) - (hi + lo) 2^scale| <= err 2^scale, or hi + lo is exact where err is 0; beside err, lo may
 * be off by 4 u of itself, but for what is exact. There is more room here: f(x) need only lie in the gap that hi + lo
 * lies in, between numbers of 54 bits, so that hi + lo stands for it. `near_operand` makes use of that.
 *
 * Most errors are below 2^-68 of the result: one result in some 2^14 is not decided and left to the definition. Each
 * header has the sum; pairs.h has those of pairs, of less than 2^-102, which are left out where others exceed them 2^20
 * times. Polynomials are of the leading terms of a series, as pairs, and of what follows in binary64: 2^-50 of that
 * last part, by the bounds in wide_constants.h, and by its products.
 *
 * Operands are finite; the definition has infinities and NaNs. */
#ifndef SOFTNUM_FUNCTIONS_WIDE_H
#define SOFTNUM_FUNCTIONS_WIDE_H

#include "elementwise/functions/logarithm.h"
#include "elementwise/functions/pairs.h"
#include "elementwise/functions/wide_constants.h"

#define SN_WIDE_PAIR(name) SN_(pair_of)(SN_(f64)(SN_WIDE_##name##_HIGH), SN_(f64)(SN_WIDE_##name##_LOW))
#define SN_WIDE_SERIES(name, of, x)                                                                                    \
    SN_(pair_polynomial)(sn_wide_##name##_leading, SN_WIDE_##of##_PAIRS,                                               \
                         SN_(polynomial)(sn_wide_##name##_terms, SN_WIDE_##of##_DEGREE, (x).hi), x)

SN_INLINE SN_(enclosure) SN_(enclosure_of)(SN_(pair64) x, sn_wf err, sn_wi scale) {
    return (SN_(enclosure)){x.hi, x.lo, err, scale, {0}};
}

SN_INLINE SN_(enclosure) SN_(enclosure_either)(sn_wi mask, SN_(enclosure) yes, SN_(enclosure) no) {
    return (SN_(enclosure)){SN_(either64)(mask, yes.hi, no.hi), SN_(either64)(mask, yes.lo, no.lo),
                            SN_(either64)(mask, yes.err, no.err), (sn_wi)SN_SELECT64(mask, yes.scale, no.scale),
                            SN_SELECT64(mask, yes.outside, no.outside)};
}

SN_INLINE SN_(enclosure) SN_(enclosure_signed)(SN_(enclosure) e, sn_wu sign) {
    e.hi = SN_(with_sign64)(e.hi, sign);
    e.lo = SN_(with_sign64)(e.lo, sign);
    return e;
}

/* f(x) where |x| < least, and there 0 < |f(x) - x| < 2^-54 |x|, outward or toward zero. f(0) = 0. */
SN_INLINE SN_(enclosure) SN_(near_operand)(SN_(enclosure) e, sn_wf x, double least, int outward) {
    const sn_wi tiny = SN_(magnitude64)(x) < least;
    const sn_wf raised = x * 0x1p200;
    const SN_(enclosure) near =
        SN_(enclosure_of)(SN_(pair_of)(raised, raised * (outward ? 0x1p-80 : -0x1p-80)), (sn_wf){0}, (sn_wi){0} - 200);
    return SN_(enclosure_either)(tiny, near, e);
}

/* 1, 1/2 ... and something of the sign of `beside`, less than 2^-55 of it, where |x| < least and is not 0. */
SN_INLINE SN_(enclosure) SN_(near_constant)(SN_(enclosure) e, sn_wf x, double least, sn_wf beside) {
    const sn_wf size = SN_(magnitude64)(x);
    const sn_wi tiny = (size < least) & (size > 0.0);
    e.lo = SN_(either64)(tiny, SN_(with_sign64)(SN_(f64)(0x1p-150), (sn_wu)beside & SN_SIGN64), e.lo);
    e.err = SN_(where64)(~tiny, e.err);
    return e;
}

/* x = number 2^scale, `number` normal */
SN_INLINE sn_wf SN_(normal_number)(sn_wf x, sn_wi *scale) {
    const sn_wi small = SN_(magnitude64)(x) < 0x1p-500;
    *scale = small & -600;
    return SN_(either64)(small, x * 0x1p600, x);
}

#endif

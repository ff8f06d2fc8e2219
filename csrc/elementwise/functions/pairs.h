/* Arithmetic on pairs: numbers that are the sum of two of binary64, of which the first is the sum rounded. Included
 * once per instruction set that has fused multiply-adds.
 *
 * The algorithms, and the bounds of their relative errors in u^2, u = 2^-53, are those of Joldes, Muller and Popescu,
 * "Tight and Rigorous Error Bounds for Basic Building Blocks of Double-Word Arithmetic", ACM Transactions on
 * Mathematical Software 44 (2017), 15: a sum 3, a product 4, by a number 2, a quotient 15; and of Lefevre, Louvet,
 * Muller, Picot and Rideau, "Accurate Calculation of Euclidean Norms Using Double-Word Arithmetic", there 49 (2023), 1:
 * a root 25/8. So each is off by less than 2^-102 of itself. They hold where nothing under- or overflows: the functions
 * see to that. */
#ifndef SOFTNUM_FUNCTIONS_PAIRS_H
#define SOFTNUM_FUNCTIONS_PAIRS_H

#include "elementwise/functions/evaluate.h"

typedef struct {
    sn_wf hi, lo;
} SN_(pair64);

SN_INLINE SN_(pair64) SN_(pair_of)(sn_wf hi, sn_wf lo) { return (SN_(pair64)){hi, lo}; }

/* a + b; |a| >= |b|, or a = 0 */
SN_INLINE SN_(pair64) SN_(ordered_sum)(sn_wf a, sn_wf b) {
    SN_(pair64) s;
    s.hi = SN_(fast_two_sum)(a, b, &s.lo);
    return s;
}

SN_INLINE SN_(pair64) SN_(exact_sum)(sn_wf a, sn_wf b) {
    SN_(pair64) s;
    s.hi = SN_(two_sum)(a, b, &s.lo);
    return s;
}

SN_INLINE SN_(pair64) SN_(exact_product)(sn_wf a, sn_wf b) {
    SN_(pair64) p;
    p.hi = SN_(two_product)(a, b, &p.lo);
    return p;
}

SN_INLINE SN_(pair64) SN_(pair_negative)(SN_(pair64) x) { return (SN_(pair64)){-x.hi, -x.lo}; }

SN_INLINE SN_(pair64) SN_(pair_add)(SN_(pair64) x, SN_(pair64) y) {
    const SN_(pair64) s = SN_(exact_sum)(x.hi, y.hi), t = SN_(exact_sum)(x.lo, y.lo);
    const SN_(pair64) v = SN_(ordered_sum)(s.hi, s.lo + t.hi);
    return SN_(ordered_sum)(v.hi, t.lo + v.lo);
}

/* x + y of |x| >= 2 |y|, or x = 0: off by less than 4 u^2 of x, and by 2 u of the last part. */
SN_INLINE SN_(pair64) SN_(pair_add_less)(SN_(pair64) x, SN_(pair64) y) {
    const SN_(pair64) s = SN_(ordered_sum)(x.hi, y.hi);
    return SN_(ordered_sum)(s.hi, s.lo + (x.lo + y.lo));
}

SN_INLINE SN_(pair64) SN_(pair_multiply)(SN_(pair64) x, SN_(pair64) y) {
    const SN_(pair64) p = SN_(exact_product)(x.hi, y.hi);
    return SN_(ordered_sum)(p.hi, p.lo + SN_FMA64(x.lo, y.hi, SN_FMA64(x.hi, y.lo, x.lo * y.lo)));
}

SN_INLINE SN_(pair64) SN_(pair_scale)(SN_(pair64) x, sn_wf y) {
    const SN_(pair64) p = SN_(exact_product)(x.hi, y);
    return SN_(ordered_sum)(p.hi, SN_FMA64(x.lo, y, p.lo));
}

SN_INLINE SN_(pair64) SN_(pair_divide)(SN_(pair64) x, SN_(pair64) y) {
    const sn_wf q = x.hi / y.hi;
    const SN_(pair64) r = SN_(pair_scale)(y, q);
    return SN_(ordered_sum)(q, ((x.hi - r.hi) + (x.lo - r.lo)) / y.hi);
}

/* x > 0 */
SN_INLINE SN_(pair64) SN_(pair_root)(SN_(pair64) x) {
    const sn_wf s = SN_SQRT64(x.hi);
    return SN_(ordered_sum)(s, (SN_FMA64(-s, s, x.hi) + x.lo) / (s + s));
}

SN_INLINE SN_(pair64) SN_(pair_either)(sn_wi mask, SN_(pair64) yes, SN_(pair64) no) {
    return (SN_(pair64)){SN_(either64)(mask, yes.hi, no.hi), SN_(either64)(mask, yes.lo, no.lo)};
}

/* c[0] + c[1] x + ... + c[count - 1] x^(count - 1) + x^count tail, each term at most half of what is before it. */
SN_INLINE SN_(pair64) SN_(pair_polynomial)(const double (*c)[2], int count, sn_wf tail, SN_(pair64) x) {
    SN_(pair64) sum = SN_(pair_scale)(x, tail);
    for (int i = count - 1; i > 0; i--)
        sum = SN_(pair_multiply)(x, SN_(pair_add_less)(SN_(pair_of)(SN_(f64)(c[i][0]), SN_(f64)(c[i][1])), sum));
    return SN_(pair_add_less)(SN_(pair_of)(SN_(f64)(c[0][0]), SN_(f64)(c[0][1])), sum);
}

#endif

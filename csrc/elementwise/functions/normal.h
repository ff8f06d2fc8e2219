/* erf and gelu(x) = x Phi(x): in lanes (evaluate.h).
 *
 * erf. Let c be the multiple of 1 / 16 nearest to a = |x|, h = a - c, t = -2 c h and s = -2 h^2. erf(a) = erf(c) + h E
 * (1 + rest), E = 2 / sqrt(pi) e^(-c^2), since e^(-2 c h - h^2), which is to be integrated, is the sum of terms T_k of
 * degree k in h: T_0 = 1, T_(k+1) = (t T_k + s T_(k-1)) / (k + 1). Clenshaw's recurrence sums T_k / (k + 1) for k up to
 * SN_ERF_TERMS. E is 22 bits and what follows: the first times h is exact. From 6 on erf is the same in 46 bits.
 *
 * Errors: of rest, 2^-49 (|t| + |s|), beside the terms left out, which for c > 0 are less than 2^-54 |h| when
 * multiplied by E h (approximations.py: erf_left_out); of E h 2^-71 of itself; of sums 2^-100.
 *
 * gelu, |x| < 1/2: x / 2 + x^2 (1 + x^2 G(x^2)) / sqrt(2 pi). Else Phi(-a) = e^(-a^2 / 2) / sqrt(2 pi) M(a), M Mills'
 * ratio, and M(a) = P(v) / (a + K), v = (a - K) / (a + K). M' = a M - 1, and R = P(v) / (a + K) fulfils R' = a R - 1 +
 * rho, where rho is a polynomial in v. So the difference, which is bounded, is the integral from a to infinity of
 * rho(t) e^((a^2 - t^2) / 2), and |R - M| <= M sup |rho|: that is the bound of P in constants.h. a^2 / 2 is exact in
 * two parts, of products of 15 bits.
 *
 * Errors: of x^2 (1 + ...), 2^-50; of Phi(-a), in u, 2 by P, 16 by its evaluation, 3 by v, and 7 by the rest: 2^-48.1.
 */
#ifndef SOFTNUM_FUNCTIONS_NORMAL_H
#define SOFTNUM_FUNCTIONS_NORMAL_H

#include "elementwise/functions/exponential.h"

SN_INLINE SN_(enclosure) SN_(erf_in_lanes)(sn_wf x) {
    const sn_wu sign = (sn_wu)x & SN_SIGN64;
    const sn_wf a = SN_(limited)(SN_(magnitude64)(x), (double)SN_ERF_CELLS / 16.0);
    const sn_wf shifted = a * 16.0 + SN_TO_INTEGER64;
    const sn_wu cell = (sn_wu)shifted - (sn_wu)SN_(f64)(SN_TO_INTEGER64);
    const sn_wf c = (shifted - SN_TO_INTEGER64) * 0x1p-4, h = a - c, t = -2.0 * (c * h), s = -2.0 * (h * h);
    sn_wf next = {0}, sum = {0}; /* of k + 2, k + 1: by k + 2, k + 1 */
    for (int k = SN_ERF_TERMS; k >= 1; k--) {
        const sn_wf of_k = SN_MULTIPLY_ADD64(t, sum, SN_MULTIPLY_ADD64(s, next, SN_(f64)(1.0 / (k + 1)))) * (1.0 / k);
        next = sum;
        sum = of_k;
    }
    const sn_wf rest = SN_MULTIPLY_ADD64(t, sum, s * next);
    const sn_wf first = SN_GATHER64(sn_erf_slopes, cell) * h, second = SN_GATHER64(sn_erf_slopes_low, cell) * h;
    const sn_wf slope = first + second;
    SN_(enclosure) e;
    sn_wf error;
    e.hi = SN_(two_sum)(SN_GATHER64(sn_erf_values, cell), first, &error);
    e.lo = error + (SN_GATHER64(sn_erf_values_low, cell) + SN_MULTIPLY_ADD64(slope, rest, second));
    e.err = SN_(magnitude64)(slope) * ((SN_(magnitude64)(t) + SN_(magnitude64)(s)) * 0x1p-49 + 0x1p-71) +
            SN_(where64)(cell != 0, SN_(magnitude64)(h) * 0x1p-54 + 0x1p-100);
    e.scale = (sn_wi){0};
    e.outside = (sn_wu){0};
    e.hi = SN_(with_sign64)(e.hi, sign);
    e.lo = SN_(with_sign64)(e.lo, sign);
    return e;
}

/* Phi(-a) 2^-scale, in 1/2 .. 124; what e^(-a^2 / 2) is divided by 2^k for. */
SN_INLINE sn_wf SN_(normal_tail)(sn_wf a, sn_wi *scale) {
    const sn_wf head = (sn_wf)((sn_wu)a >> 38 << 38), tail = a - head;
    sn_wf low;
    const sn_wf y = SN_(two_sum)(0.5 * (head * head), (head + 0.5 * tail) * tail, &low);
    const SN_(reduced_power) p = SN_(reduce_power)(SN_BASE_E, y);
    const SN_(power) e = SN_(power_of)(SN_BASE_E, &p, 1);
    const sn_wf inverse = 1.0 / (a + SN_FUNCTION_MILLS_PLACE), v = (a - SN_FUNCTION_MILLS_PLACE) * inverse;
    const sn_wf power = e.hi + (e.lo - e.hi * low);
    *scale = e.k;
    return (power * (SN_FUNCTION_NORMAL_PEAK * inverse)) * SN_(polynomial)(sn_mills_terms, SN_MILLS_DEGREE, v);
}

SN_INLINE SN_(enclosure) SN_(gelu_in_lanes)(sn_wf x) {
    const sn_wf size = SN_(magnitude64)(x), square = x * x;
    const sn_wi small = size < 0.5, negative = (x < 0.0) & ~small;
    sn_wi scale;
    const sn_wf a = SN_(either64)(small, SN_(f64)(1.0), SN_(limited)(size, 123.0));
    const sn_wf part = a * SN_(normal_tail)(a, &scale);
    const sn_wf rest = (square * SN_FUNCTION_NORMAL_PEAK) *
                       SN_MULTIPLY_ADD64(square, SN_(polynomial)(sn_gelu_terms, 7, square), SN_(f64)(1.0));
    const sn_wi least = (sn_wi){0} - 900;
    SN_(enclosure) e;
    e.hi = SN_(either64)(small, x * 0.5, SN_(either64)(negative, -part, x));
    e.lo = SN_(either64)(small, rest,
                         SN_(where64)(~negative, -part * SN_(two_to)((sn_wi)SN_SELECT64(scale < least, least, scale))));
    e.err = SN_(magnitude64)(e.lo) * 0x1p-48 + SN_(where64)(negative, part * 0x1p-48);
    e.scale = (sn_wi)SN_SELECT64(negative, scale, (sn_wi){0});
    e.outside = (sn_wu){0};
    return e;
}

#endif

/* exp, log, sin, cos, atan and erf of numbers of many words: argument reduction, then a power series.
 *
 * As in big.h every result encloses; what is not known at n words comes out with an error of SN_LOST, and the caller
 * goes on to more words. */
#ifndef SOFTNUM_TRANSCENDENTAL_H
#define SOFTNUM_TRANSCENDENTAL_H

#include "softnum/elementary/big.h"

enum { SN_SERIES_EXP, SN_SERIES_EXPM1, SN_SERIES_SINH, SN_SERIES_SIN, SN_SERIES_COS, SN_SERIES_ATANH, SN_SERIES_ATAN };

/* What the k-th term's recurrence divides by; k > 0. */
SN_FN sn_u64 sn_series_divisor(sn_i32 series, sn_u64 k) {
    switch (series) {
    case SN_SERIES_EXP: return k;
    case SN_SERIES_EXPM1: return k + 1;
    case SN_SERIES_COS: return (2 * k - 1) * (2 * k);
    case SN_SERIES_SINH:
    case SN_SERIES_SIN: return (2 * k) * (2 * k + 1);
    default: return 1;
    }
}

/* The sum of u^k / k!, u^k / (k + 1)!, u^k / (2k + 1)!, (-u)^k / (2k + 1)!, (-u)^k / (2k)!, u^k / (2k + 1) or
 * (-u)^k / (2k + 1) over k >= 0, for 0 <= u < 1, and u <= 1/4 in the last two.
 *
 * In fixed point, 64 n bits of fraction. With d units of error in u, that of a term is at most
 * (e u + d + 2) / divisor + 1 where its predecessor's is e: below d + 4 where all but the first divisor are 2 or more,
 * below 2 d + 4 where u <= 1/4. A term that has become 0 is no larger than its error, and those that follow add up to
 * no more than it. So (terms + 2) (2 d + 6) bounds all of it. */
SN_FN void sn_big_series(sn_big *r, sn_i32 series, const sn_big *u, sn_i32 n) {
    sn_u64 x[SN_BIG_WORDS], term[SN_BIG_WORDS], sum[SN_BIG_WORDS + 1], v[SN_BIG_LONG];
    const sn_i64 shift = -u->exp - 64 * n;
    const sn_i32 odd = series == SN_SERIES_ATANH || series == SN_SERIES_ATAN;
    const sn_i32 alternates = series == SN_SERIES_SIN || series == SN_SERIES_COS || series == SN_SERIES_ATAN;
    if (u->err >= SN_LOST || (!sn_big_is_zero(u, n) && shift < 0)) {
        sn_big_set(r, 0, 1, 0, n);
        r->err = SN_LOST;
        return;
    }
    const sn_i32 words = shift >= 64 * n ? n : (sn_i32)(shift / 64), bits = (sn_i32)(shift % 64);
    for (sn_i32 i = 0; i < n; i++) {
        const sn_u64 low = i + words < n ? u->w[i + words] : 0, high = i + words + 1 < n ? u->w[i + words + 1] : 0;
        x[i] = bits ? low >> bits | high << (64 - bits) : low;
        term[i] = x[i];
        sum[i] = 0;
    }
    sum[n] = 1;
    const sn_u64 of_u = 1 + (words ? u->err != 0 : (u->err >> bits) + (u->err != 0));
    sn_u64 terms = 1;
    for (;; terms++) {
        const sn_u64 divisor = sn_series_divisor(series, terms);
        sn_u64 any = 0, rest = 0, carry = 0;
        sn_i32 top = n - 1;
        if (divisor > 1)
            for (sn_i32 i = n - 1; i >= 0; i--)
                term[i] = rest | term[i] ? sn_u128_divide(sn_u128_make(rest, term[i]), divisor, &rest) : 0;
        for (sn_i32 i = 0; i < n; i++)
            any |= v[i] = term[i];
        if (!any) break;
        rest = 0;
        if (odd)
            for (sn_i32 i = n - 1; i >= 0; i--)
                v[i] = rest | v[i] ? sn_u128_divide(sn_u128_make(rest, v[i]), 2 * terms + 1, &rest) : 0;
        if (alternates && (terms & 1)) {
            for (sn_i32 i = 0; i < n; i++) {
                const sn_u64 difference = sum[i] - v[i], borrow = sum[i] < v[i];
                sum[i] = difference - carry;
                carry = borrow | (difference < carry);
            }
            sum[n] -= carry;
        } else {
            for (sn_i32 i = 0; i < n; i++) {
                const sn_u64 total = sum[i] + v[i];
                const sn_u64 over = total < v[i];
                sum[i] = total + carry;
                carry = over | (sum[i] < total);
            }
            sum[n] += carry;
        }
        while (top > 0 && term[top] == 0)
            top--;
        sn_big_multiply_words(v, term, top + 1, x, n);
        for (sn_i32 i = 0; i < n; i++)
            term[i] = n + i <= n + top ? v[n + i] : 0;
    }
    const sn_u64 err = of_u >= SN_LOST >> 20 ? SN_LOST : (terms + 2) * (2 * of_u + 6);
    sn_big_normalize(r, sum, n + 1, -64 * (sn_i64)n, 0, err, n);
}

/* e^x; where |x| >= 2^38, sn_big_set_far. */
SN_FN void sn_big_exp(sn_big *r, const sn_big *x, sn_i32 n) {
    sn_big t, u;
    if (sn_big_is_zero(x, n) || x->err >= SN_LOST) {
        const sn_u64 err = x->err;
        sn_big_set(r, 0, 1, 0, n);
        r->err = err ? SN_LOST : 0;
        return;
    }
    if (sn_big_top(x, n) >= 38) {
        sn_big_set_far(r, 0, !x->sign, n);
        return;
    }
    sn_big_constant(&t, sn_log2_e, 1, n);
    sn_big_mul(&t, &t, x, n);
    /* x = k log 2 + t, log 2 <= t < 2 log 2, so that nothing cancels; t = x below that */
    const sn_i64 whole = sn_big_floor(&t, n);
    const sn_i64 k = x->sign ? -whole - 2 : whole > 1 ? whole - 1 : 0;
    sn_big_copy(&t, x, n);
    if (k) {
        sn_big_constant(&u, sn_ln_2, 0, n);
        sn_big_mul_word(&u, &u, (sn_u64)(k < 0 ? -k : k), n);
        sn_big_add(&t, x, &u, k > 0, n);
    }
    sn_i32 squarings = n <= 2 ? 7 : n <= 4 ? 9 : n <= 8 ? 12 : n <= 16 ? 16 : 20;
    const sn_i64 small = -sn_big_top(&t, n) - 1; /* t < 2^-small */
    squarings = small >= squarings ? 0 : squarings - (small > 0 ? (sn_i32)small : 0);
    sn_big_scale(&t, -squarings);
    sn_big_series(&u, SN_SERIES_EXP, &t, n);
    for (sn_i32 i = 0; i < squarings; i++)
        sn_big_mul(&u, &u, &u, n);
    sn_big_copy(r, &u, n);
    r->exp += k;
}

/* e^x - 1 for x >= 0 */
SN_FN void sn_big_expm1(sn_big *r, const sn_big *x, sn_i32 n) {
    sn_big t, one;
    if (!sn_big_is_zero(x, n) && sn_big_top(x, n) < -1) {
        sn_big_series(&t, SN_SERIES_EXPM1, x, n);
        sn_big_mul(r, x, &t, n);
        return;
    }
    sn_big_set(&one, 0, 1, 0, n);
    sn_big_exp(&t, x, n);
    sn_big_add(r, &t, &one, 1, n);
}

/* 2 atanh(p / q), for |p / q| <= 1/2, and q > 3/2 unless p is exact */
SN_FN void sn_big_twice_atanh(sn_big *r, const sn_big *p, const sn_big *q, sn_i32 n) {
    sn_big t, u;
    if (sn_big_is_zero(p, n)) { /* below 2 |p| */
        sn_big_copy(r, p, n);
        r->err = sn_big_error(p->err, 1);
        return;
    }
    sn_big_div(&t, p, q, n);
    sn_big_mul(&u, &t, &t, n);
    sn_big_series(&u, SN_SERIES_ATANH, &u, n);
    sn_big_mul(r, &t, &u, n);
    r->exp++;
}

/* log(x) for x > 0: x = m * 2^e, 2/3 < m <= 4/3, and log(m) = 2 atanh((m - 1) / (m + 1)). */
SN_FN void sn_big_log(sn_big *r, const sn_big *x, sn_i32 n) {
    sn_big m, one, p, q;
    sn_i64 e = sn_big_top(x, n);
    if (x->w[n - 1] > 0xaaaaaaaaaaaaaaaau) e++;
    sn_big_copy(&m, x, n);
    m.exp -= e;
    sn_big_set(&one, 0, 1, 0, n);
    sn_big_add(&p, &m, &one, 1, n);
    sn_big_add(&q, &m, &one, 0, n);
    sn_big_twice_atanh(&m, &p, &q, n);
    if (e) {
        sn_big_constant(&p, sn_ln_2, 0, n);
        sn_big_mul_word(&p, &p, (sn_u64)(e < 0 ? -e : e), n);
        sn_big_add(&m, &m, &p, e < 0, n);
    }
    sn_big_copy(r, &m, n);
}

/* log(1 + x) for x > -1 */
SN_FN void sn_big_log1p(sn_big *r, const sn_big *x, sn_i32 n) {
    sn_big t;
    const sn_i64 top = sn_big_top(x, n);
    if (top < -1 || (top < 0 && !x->sign)) { /* log(1 + x) = 2 atanh(x / (2 + x)) */
        sn_big_set(&t, 0, 2, 0, n);
        sn_big_add(&t, &t, x, 0, n);
        sn_big_twice_atanh(r, x, &t, n);
        return;
    }
    sn_big_set(&t, 0, 1, 0, n);
    sn_big_add(&t, &t, x, 0, n);
    sn_big_log(r, &t, n);
}

/* atan(x) for x > 0: of 1 / x beyond 1; below 1/4 by atan(x) = 2 atan(x / (1 + sqrt(1 + x^2))). */
SN_FN void sn_big_atan(sn_big *r, const sn_big *x, sn_i32 n) {
    sn_big t, u, one;
    sn_i32 doublings = 0;
    const sn_i32 inverse = sn_big_top(x, n) >= 0;
    sn_big_set(&one, 0, 1, 0, n);
    if (inverse)
        sn_big_inverse(&t, x, n);
    else
        sn_big_copy(&t, x, n);
    while (sn_big_top(&t, n) >= -2 && t.err < SN_LOST >> 4) {
        sn_big_mul(&u, &t, &t, n);
        sn_big_add(&u, &u, &one, 0, n);
        sn_big_sqrt(&u, &u, n);
        sn_big_add(&u, &u, &one, 0, n);
        sn_big_div(&t, &t, &u, n);
        doublings++;
    }
    sn_big_mul(&u, &t, &t, n);
    sn_big_series(&u, SN_SERIES_ATAN, &u, n);
    sn_big_mul(&t, &t, &u, n);
    t.exp += doublings;
    if (inverse) {
        sn_big_constant(&u, sn_half_pi, 1, n);
        sn_big_add(&t, &u, &t, 1, n);
    }
    sn_big_copy(r, &t, n);
}

/* x = sig * 2^exp > 0 less the multiple of pi / 2 nearest to it; *quadrant: that multiple modulo 4 (Payne and Hanek
 * 1983). Of 2 / pi only those bits are multiplied by sig that make no multiples of 4, and n + 3 words of them. exp <=
 * 33600. */
SN_FN void sn_big_reduce(sn_big *r, sn_i32 *quadrant, sn_u64 sig, sn_i64 exp, sn_i32 n) {
    sn_u64 window[SN_BIG_WORDS], v[SN_BIG_WORDS + 1];
    sn_big half_pi;
    *quadrant = 0;
    if (exp + sn_bit_length(sig) < 0) { /* x < 1/2 */
        sn_big_set(r, 0, sig, exp, n);
        return;
    }
    const sn_i32 count = n + 3;
    const sn_i64 first = exp > 2 ? exp - 2 : 0;
    for (sn_i32 j = 0; j < count; j++) {
        const sn_i64 word = first / 64 + j, bits = first % 64;
        const sn_u64 high = sn_two_over_pi[word];
        window[count - 1 - j] = bits ? high << bits | sn_two_over_pi[word + 1] >> (64 - bits) : high;
    }
    sn_big_multiply_words(v, window, count, &sig, 1);
    const sn_i64 unit = exp - first - 64 * count, point = -unit; /* bits of fraction */
    const sn_i32 at = (sn_i32)(point / 64), bit = (sn_i32)(point % 64);
    sn_u64 whole = 0;
    if (at <= count) whole = v[at] >> bit;
    if (bit && at < count) whole |= v[at + 1] << (64 - bit);
    for (sn_i32 i = at; i <= count; i++)
        v[i] = i == at ? v[i] & (((sn_u64)1 << bit) - 1) : 0;
    const sn_i64 half = point - 1;
    const sn_i32 above = half / 64 <= count && (v[half / 64] >> (half % 64) & 1);
    if (above) { /* 1 - fraction */
        sn_u64 borrow = 0;
        for (sn_i32 i = 0; i <= count; i++) {
            const sn_u64 one = i == at ? (sn_u64)1 << bit : 0, difference = one - v[i];
            const sn_u64 next = (one < v[i]) | (difference < borrow);
            v[i] = difference - borrow;
            borrow = next;
        }
        whole++;
    }
    *quadrant = (sn_i32)(whole & 3);
    sn_big_normalize(r, v, count + 1, unit, above, sig, n); /* 2 / pi is cut off by less than a unit: sig of them */
    sn_big_constant(&half_pi, sn_half_pi, 1, n);
    sn_big_mul(r, r, &half_pi, n);
}

/* sin(x) and cos(x) for |x| <= pi / 4, x not 0; null where not wanted */
SN_FN void sn_big_sin_cos(sn_big *sine, sn_big *cosine, const sn_big *x, sn_i32 n) {
    sn_big u, s;
    sn_big_mul(&u, x, x, n);
    if (cosine) sn_big_series(cosine, SN_SERIES_COS, &u, n);
    if (sine) {
        sn_big_series(&s, SN_SERIES_SIN, &u, n);
        sn_big_mul(sine, x, &s, n);
    }
}

/* erf(z) / (2 / sqrt(pi) * z) = e^-u times the sum of (2u)^k / (1 3 5 ... (2k + 1)), u = z^2 (Abramowitz and
 * Stegun 7.1.6). All terms are positive. From where a term is less than half of the one before, what follows it is less
 * than it. */
SN_FN void sn_big_erf_series(sn_big *r, const sn_big *u, sn_i32 n) {
    sn_big term, sum, twice;
    const sn_i64 size = sn_big_floor(u, n) + 1;
    sn_big_copy(&twice, u, n);
    twice.exp++;
    sn_big_set(&term, 0, 1, 0, n);
    sn_big_set(&sum, 0, 1, 0, n);
    for (sn_i64 k = 1; !sn_big_is_zero(u, n); k++) {
        sn_big_mul(&term, &term, &twice, n);
        sn_big_div_word(&term, &term, (sn_u64)(2 * k + 1), n);
        sn_big_add(&sum, &sum, &term, 0, n);
        if (sum.err >= SN_LOST || (sn_big_top(&term, n) < sum.exp && 2 * k + 3 >= 4 * size)) {
            sum.err += 2;
            break;
        }
    }
    sn_big_copy(&term, u, n);
    term.sign = 1;
    sn_big_exp(&term, &term, n);
    sn_big_mul(r, &sum, &term, n);
}

/* erfc(z) for z = a / sqrt(2) and u = z^2 = a^2 / 2, a > 0. Beyond 64 n bits, e^-u / (sqrt(pi) z) times the sum of
 * (-1)^k 1 3 5 ... (2k - 1) / (2u)^k, whose error is less than the first term left out (7.1.23); else 1 - erf(z), with
 * as many words more as cancel: u < 0.694 * 64 n + 11, so n + 4 at most. */
SN_FN void sn_big_erfc_of_half_square(sn_big *r, const sn_big *a, sn_i32 n) {
    sn_big u, z, t, sum;
    sn_big_mul(&u, a, a, n);
    u.exp--;
    const sn_i64 size = sn_big_floor(&u, n);
    if (size > 45 * n + 10) {
        sn_big_set(&t, 0, 1, 0, n);
        sn_big_set(&sum, 0, 1, 0, n);
        for (sn_i64 k = 1;; k++) {
            sn_big_mul_word(&t, &t, (sn_u64)(2 * k - 1), n);
            sn_big_div(&t, &t, &u, n);
            t.exp--;
            t.sign = (sn_i32)(k & 1);
            if (sn_big_top(&t, n) < sum.exp || k > size) { /* beyond size the terms grow */
                sum.err = k > size ? SN_LOST : sum.err + 1;
                break;
            }
            sn_big_add(&sum, &sum, &t, 0, n);
        }
        sn_big_constant(&z, sn_root_half, 0, n);
        sn_big_mul(&z, &z, a, n);
        z.exp++;
        u.sign = 1;
        sn_big_exp(&t, &u, n);
        sn_big_mul(&t, &t, &sum, n);
        sn_big_constant(&sum, sn_erf_scale, 1, n);
        sn_big_mul(&t, &t, &sum, n);
        sn_big_div(r, &t, &z, n);
        return;
    }
    const sn_i32 wide = n + (sn_i32)((size + 1) * 93 / 4096) + 2;
    sn_big x;
    sn_big_normalize(&x, a->w, n, a->exp, a->sign, a->err, wide);
    sn_big_mul(&u, &x, &x, wide);
    u.exp--;
    sn_big_erf_series(&sum, &u, wide);
    sn_big_constant(&t, sn_erf_scale, 1, wide);
    sn_big_mul(&sum, &sum, &t, wide);
    sn_big_constant(&t, sn_root_half, 0, wide);
    sn_big_mul(&sum, &sum, &t, wide);
    sn_big_mul(&sum, &sum, &x, wide);
    sn_big_set(&t, 0, 1, 0, wide);
    sn_big_add_to(r, &t, &sum, 1, wide, n);
}

#endif

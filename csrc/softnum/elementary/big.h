/* Multi-word real numbers with a bound of their error, in which the elementary functions are evaluated.
 *
 * A sn_big stands for every number within err units of (-1)^sign * W * 2^exp, W being the integer of the n words w, the
 * lowest first, its top bit set unless it is 0. n is an argument: all operands of an operation have it. Each operation
 * encloses: whatever its operands stand for, the result stands for the operation's result. Nothing else needs to know
 * how errors grow; an error that reaches SN_LOST says that nothing is known. */
#ifndef SOFTNUM_BIG_H
#define SOFTNUM_BIG_H

#include "softnum/elementary/constants.h"
#include "softnum/operations/divide.h"

/* Words of the longest number; of a product, a quotient's dividend, and the like. */
enum { SN_BIG_WORDS = SN_CONSTANT_WORDS, SN_BIG_LONG = 2 * SN_BIG_WORDS + 2 };

#define SN_LOST ((sn_u64)1 << 62)

typedef struct {
    sn_i64 exp;
    sn_i32 sign;
    sn_u64 err;
    sn_u64 w[SN_BIG_WORDS];
} sn_big;

/* The exponent of the top bit of a number that is not 0. */
SN_FN sn_i64 sn_big_top(const sn_big *a, sn_i32 n) { return a->exp + 64 * n - 1; }

SN_FN sn_i32 sn_big_is_zero(const sn_big *a, sn_i32 n) { return a->w[n - 1] == 0; }

SN_FN void sn_big_copy(sn_big *r, const sn_big *a, sn_i32 n) {
    r->exp = a->exp;
    r->sign = a->sign;
    r->err = a->err;
    for (sn_i32 i = 0; i < n; i++)
        r->w[i] = a->w[i];
}

/* err * 2^shift, or SN_LOST. */
SN_FN sn_u64 sn_big_error(sn_u64 err, sn_i32 shift) {
    if (err == 0) return 0;
    return err >= SN_LOST || shift > 62 || err >> (62 - shift) ? SN_LOST : err << shift;
}

/* r = the `count` words of v times 2^exp, err in units of 2^exp; count >= 1, whatever lies below n words is cut off. */
SN_FN void sn_big_normalize(sn_big *r, const sn_u64 *v, sn_i32 count, sn_i64 exp, sn_i32 sign, sn_u64 err, sn_i32 n) {
    while (count > 0 && v[count - 1] == 0)
        count--;
    r->sign = sign;
    if (count == 0) {
        for (sn_i32 i = 0; i < n; i++)
            r->w[i] = 0;
        r->exp = exp;
        r->err = err;
        return;
    }
    const sn_i32 left = 64 - sn_bit_length(v[count - 1]), drop = count - n; /* words */
    sn_u64 lost = 0;
    for (sn_i32 i = 0; i < n; i++) {
        const sn_i32 at = i + drop;
        const sn_u64 high = at >= 0 ? v[at] : 0, low = at >= 1 ? v[at - 1] : 0;
        r->w[i] = left ? high << left | low >> (64 - left) : high;
    }
    for (sn_i32 i = 0; i < drop; i++)
        lost |= i == drop - 1 ? v[i] << left : v[i];
    r->exp = exp + 64 * drop - left;
    if (drop <= 0) {
        err = sn_big_error(err, left - 64 * drop);
    } else if (err) { /* err * 2^left / 2^(64 drop), rounded up */
        err = drop > 1 ? 1 : left ? (err >> (64 - left)) + 1 : 1;
    }
    r->err = err + (lost != 0);
}

/* (-1)^sign * sig * 2^exp, exactly. */
SN_FN void sn_big_set(sn_big *r, sn_i32 sign, sn_u64 sig, sn_i64 exp, sn_i32 n) {
    sn_big_normalize(r, &sig, 1, exp, sign, 0, n);
}

/* A number that is farther from 1 than every format's values, in place of one that is farther still: 2^(+-2^40) times
 * digits without a pattern, so that what is made of it by adding 1 or by inversion decides too. */
SN_FN void sn_big_set_far(sn_big *r, sn_i32 sign, sn_i32 large, sn_i32 n) {
    for (sn_i32 i = 0; i < n; i++)
        r->w[i] = 0x9e3779b97f4a7c15u;
    r->sign = sign;
    r->exp = large ? (sn_i64)1 << 40 : -((sn_i64)1 << 40);
    r->err = 0;
}

/* A constant of constants.h: its words, the highest first, and its exponent. */
SN_FN void sn_big_constant(sn_big *r, const sn_u64 *words, sn_i64 exp, sn_i32 n) {
    for (sn_i32 i = 0; i < n; i++)
        r->w[n - 1 - i] = words[i];
    r->sign = 0;
    r->exp = exp - 64 * n;
    r->err = 1;
}

SN_FN sn_i32 sn_big_words_less(const sn_u64 *a, const sn_u64 *b, sn_i32 n) {
    for (sn_i32 i = n - 1; i >= 0; i--)
        if (a[i] != b[i]) return a[i] < b[i];
    return 0;
}

/* a + b, or a - b, to m <= n words: fewer than n where so many cancel that a unit of n words would be lost. */
SN_FN void sn_big_add_to(sn_big *r, const sn_big *a, const sn_big *b, sn_i32 subtract, sn_i32 n, sn_i32 m) {
    sn_u64 v[SN_BIG_WORDS + 1], s[SN_BIG_WORDS];
    sn_i32 sign_b = b->sign ^ subtract;
    const sn_big *x = a, *y = b;
    sn_i32 sign_x = a->sign, sign_y = sign_b;
    if (a->err >= SN_LOST || b->err >= SN_LOST) {
        sn_big_normalize(r, a->w, n, a->exp, a->sign, 0, m);
        r->err = SN_LOST;
        return;
    }
    if (sn_big_is_zero(a, n) || (!sn_big_is_zero(b, n) && a->exp < b->exp)) { /* x: the one with the higher exponent */
        x = b;
        y = a;
        sign_x = sign_b;
        sign_y = a->sign;
    }
    if (sn_big_is_zero(y, n) && y->err == 0) {
        sn_big_normalize(r, x->w, n, x->exp, sign_x, x->err, m);
        return;
    }
    const sn_i64 distance = x->exp - y->exp;
    if (sn_big_is_zero(y, n) || distance >= 64 * n) { /* y: below a unit of x, but for its error */
        sn_u64 more = 1;
        if (distance < 0)
            more = sn_big_error(y->err, distance < -62 ? 63 : (sn_i32)-distance);
        else if (distance < 64)
            more = (y->err >> distance) + 1;
        sn_big_normalize(r, x->w, n, x->exp, sign_x, x->err + 1 + more, m);
        return;
    }
    const sn_i32 words = (sn_i32)(distance / 64), bits = (sn_i32)(distance % 64);
    sn_u64 lost = 0, err = x->err;
    for (sn_i32 i = 0; i < n; i++) {
        const sn_i32 at = i + words;
        const sn_u64 low = at < n ? y->w[at] : 0, high = at + 1 < n ? y->w[at + 1] : 0;
        s[i] = bits ? low >> bits | high << (64 - bits) : low;
    }
    for (sn_i32 i = 0; i < words; i++)
        lost |= y->w[i];
    if (bits) lost |= y->w[words] << (64 - bits);
    if (y->err) err += words ? 1 : (y->err >> bits) + (bits != 0);
    if (sign_x == sign_y) {
        sn_u64 carry = 0;
        for (sn_i32 i = 0; i < n; i++) {
            const sn_u64 sum = x->w[i] + s[i];
            v[i] = sum + carry;
            carry = (sum < s[i]) | (v[i] < sum);
        }
        v[n] = carry;
        sn_big_normalize(r, v, n + 1, x->exp, sign_x, err + (lost != 0), m);
        return;
    }
    const sn_u64 *p = x->w, *q = s;
    sn_i32 sign = sign_x;
    if (sn_big_words_less(p, q, n)) {
        p = s;
        q = x->w;
        sign = sign_y;
    }
    sn_u64 borrow = 0;
    for (sn_i32 i = 0; i < n; i++) {
        const sn_u64 difference = p[i] - q[i];
        v[i] = difference - borrow;
        borrow = (p[i] < q[i]) | (difference < borrow);
    }
    sn_big_normalize(r, v, n, x->exp, sign, err + (lost != 0), m);
}

SN_FN void sn_big_add(sn_big *r, const sn_big *a, const sn_big *b, sn_i32 subtract, sn_i32 n) {
    sn_big_add_to(r, a, b, subtract, n, n);
}

/* v = a * b: n + m words */
SN_FN void sn_big_multiply_words(sn_u64 *v, const sn_u64 *a, sn_i32 n, const sn_u64 *b, sn_i32 m) {
    sn_i32 clear = n + m;
    do
        v[--clear] = 0;
    while (clear > 0);
    for (sn_i32 i = 0; i < n; i++) {
        sn_u64 carry = 0;
        if (a[i] == 0) continue;
        for (sn_i32 j = 0; j < m; j++) {
            sn_u128 t = sn_u128_add(sn_u128_mul(a[i], b[j]), sn_u128_make(0, v[i + j]));
            t = sn_u128_add(t, sn_u128_make(0, carry));
            v[i + j] = t.lo;
            carry = t.hi;
        }
        v[i + m] = carry;
    }
}

/* err * (top + 1) / 2^64, rounded up: what an error of one factor makes of a product whose other factor begins with
 * the word top. */
SN_FN sn_u64 sn_big_scaled(sn_u64 err, sn_u64 top) { return err ? sn_u128_mul(err, top).hi + 2 : 0; }

SN_FN void sn_big_mul(sn_big *r, const sn_big *a, const sn_big *b, sn_i32 n) {
    sn_u64 v[SN_BIG_LONG];
    const sn_i32 sign = a->sign ^ b->sign;
    const sn_i64 exp = a->exp + b->exp + 64 * n;
    const sn_u64 ea = a->err, eb = b->err;
    sn_u64 err = sn_big_scaled(ea, b->w[n - 1]) + sn_big_scaled(eb, a->w[n - 1]) + (ea && eb); /* + ea eb 2^-64n */
    if (ea >= SN_LOST || eb >= SN_LOST) err = SN_LOST;
    sn_big_multiply_words(v, a->w, n, b->w, n);
    sn_u64 lost = 0;
    for (sn_i32 i = 0; i < n; i++)
        lost |= v[i];
    if (v[2 * n - 1] >> 63 || !v[2 * n - 1]) { /* top word 0: a factor was */
        for (sn_i32 i = 0; i < n; i++)
            r->w[i] = v[n + i];
        r->exp = exp;
        r->err = err + (lost != 0);
    } else {
        for (sn_i32 i = 0; i < n; i++)
            r->w[i] = v[n + i] << 1 | v[n + i - 1] >> 63;
        r->exp = exp - 1;
        r->err = sn_big_error(err, 1) + (lost != 0);
    }
    r->sign = sign;
}

/* a * m, m not 0 */
SN_FN void sn_big_mul_word(sn_big *r, const sn_big *a, sn_u64 m, sn_i32 n) {
    sn_u64 v[SN_BIG_WORDS + 1], carry = 0;
    const sn_u64 ea = a->err;
    const sn_i64 exp = a->exp;
    for (sn_i32 i = 0; i < n; i++) {
        const sn_u128 t = sn_u128_add(sn_u128_mul(a->w[i], m), sn_u128_make(0, carry));
        v[i] = t.lo;
        carry = t.hi;
    }
    v[n] = carry;
    sn_big_normalize(r, v, n + 1, exp, a->sign, 0, n);
    if (sn_big_is_zero(r, n) || ea >= SN_LOST) /* an error of 0 does not lie in the last place of a product */
        r->err = ea ? SN_LOST : 0;
    else if (ea)
        r->err += sn_u128_shr(sn_u128_mul(ea, m), (sn_i32)(r->exp - exp)).lo + 1;
}

/* a / d, d not 0. An error of ea becomes ea 2^k / d, 2^k being what the quotient is normalized by, below 2 d. */
SN_FN void sn_big_div_word(sn_big *r, const sn_big *a, sn_u64 d, sn_i32 n) {
    sn_u64 v[SN_BIG_WORDS + 1], rest = 0;
    const sn_u64 ea = a->err;
    const sn_i64 exp = a->exp;
    for (sn_i32 i = n - 1; i >= 0; i--)
        v[i + 1] = sn_u128_divide(sn_u128_make(rest, a->w[i]), d, &rest);
    v[0] = sn_u128_divide(sn_u128_make(rest, 0), d, &rest);
    sn_big_normalize(r, v, n + 1, exp - 64, a->sign, 0, n);
    if (sn_big_is_zero(r, n) || ea >= SN_LOST)
        r->err = ea ? SN_LOST : 0;
    else
        r->err = 1 + (ea ? sn_u128_divide(sn_u128_shl(sn_u128_make(0, ea), (sn_i32)(exp - r->exp)), d, &rest) + 1 : 0);
}

/* v = floor(a * 2^(64 n) / b), n + 1 words, for the n words of a and b, whose top bits are set (Knuth, algorithm D). */
SN_FN void sn_big_divide_words(sn_u64 *v, const sn_u64 *a, const sn_u64 *b, sn_i32 n) {
    sn_u64 u[SN_BIG_LONG];
    for (sn_i32 i = 0; i < n; i++) {
        u[i] = 0;
        u[n + i] = a[i];
    }
    u[2 * n] = 0;
    const sn_u64 top = b[n - 1], next = n > 1 ? b[n - 2] : 0;
    for (sn_i32 j = n; j >= 0; j--) {
        sn_u64 q, rest, carry = 0, borrow = 0;
        sn_i32 fits = 1; /* whether rest is below 2^64 */
        if (u[j + n] >= top) {
            q = ~(sn_u64)0;
            rest = u[j + n - 1] + top;
            fits = rest >= top;
        } else {
            q = sn_u128_divide(sn_u128_make(u[j + n], u[j + n - 1]), top, &rest);
        }
        while (fits && n > 1 && sn_u128_less(sn_u128_make(rest, u[j + n - 2]), sn_u128_mul(q, next))) {
            q--;
            rest += top;
            fits = rest >= top;
        }
        for (sn_i32 i = 0; i < n; i++) {
            const sn_u128 t = sn_u128_add(sn_u128_mul(q, b[i]), sn_u128_make(0, carry));
            const sn_u64 before = u[i + j], difference = before - t.lo;
            carry = t.hi;
            u[i + j] = difference - borrow;
            borrow = (before < t.lo) | (difference < borrow);
        }
        const sn_u64 before = u[j + n], difference = before - carry;
        u[j + n] = difference - borrow;
        if (before < carry || difference < borrow) { /* q was one too large */
            sn_u64 c = 0;
            q--;
            for (sn_i32 i = 0; i < n; i++) {
                const sn_u64 sum = u[i + j] + b[i];
                u[i + j] = sum + c;
                c = (sum < b[i]) | (u[i + j] < sum);
            }
            u[j + n] += c;
        }
        v[j] = q;
    }
}

/* a / b, b not 0. With Q = A 2^64n / B and B >= 2^(64n - 1), |A'/B' - A/B| is at most (ea 2^64n + Q eb) / (B - eb): in
 * units of the result's last place 2 ea + 2 eb, and a little for eb in the divisor. */
SN_FN void sn_big_div(sn_big *r, const sn_big *a, const sn_big *b, sn_i32 n) {
    sn_u64 v[SN_BIG_WORDS + 1];
    sn_u64 err = a->err || b->err ? 2 * (a->err + b->err) + 2 : 0;
    const sn_i32 lost = a->err >= SN_LOST >> 3 || b->err >= SN_LOST >> 3 || sn_big_is_zero(b, n);
    const sn_i32 sign = a->sign ^ b->sign;
    const sn_i64 exp = a->exp - b->exp - 64 * n;
    if (sn_big_is_zero(a, n) || lost) {
        sn_big_copy(r, a, n);
        r->sign = sign;
        r->exp = exp + 64 * n;
        if (lost || a->err) r->err = SN_LOST;
        return;
    }
    sn_big_divide_words(v, a->w, b->w, n);
    sn_big_normalize(r, v, n + 1, exp, sign, 0, n);
    r->err = err + 1;
}

/* 1 / a */
SN_FN void sn_big_inverse(sn_big *r, const sn_big *a, sn_i32 n) {
    sn_big one;
    sn_big_set(&one, 0, 1, 0, n);
    sn_big_div(r, &one, a, n);
}

/* The root of a > 0, by Heron's rule s <- (s + a / s) / 2, which makes of a relative error d one of d^2 / 2: from 2^-30
 * to 2^-64n, below one unit. The last step adds two roundings; a's error counts for half at most. */
SN_FN void sn_big_sqrt(sn_big *r, const sn_big *a, sn_i32 n) {
    sn_big s, q;
    const sn_i64 top = sn_big_top(a, n);
    const sn_i32 odd = (sn_i32)(top & 1); /* a = t * 2^(top - odd), t in [1, 4) */
    if (a->err >= SN_LOST >> 4 || sn_big_is_zero(a, n)) {
        sn_big_copy(r, a, n);
        r->err = SN_LOST;
        return;
    }
    sn_u64 radicand = a->w[n - 1] >> (1 - odd), root = 0, rest = 0; /* t * 2^62 */
    for (sn_i32 i = 0; i < 32; i++) {
        rest = rest << 2 | radicand >> 62;
        radicand <<= 2;
        root <<= 1;
        if (rest > 2 * root) {
            rest -= 2 * root + 1;
            root |= 1;
        }
    }
    sn_big_set(&s, 0, root + 1, (top - odd) / 2 - 31, n);
    for (sn_i32 good = 30; good < 64 * n; good *= 2) {
        sn_big_div(&q, a, &s, n);
        sn_big_add(&s, &s, &q, 0, n);
        s.exp--;
        s.err = 0;
    }
    s.err = a->err + 6;
    sn_big_copy(r, &s, n);
}

/* a * 2^k */
SN_FN void sn_big_scale(sn_big *a, sn_i64 k) { a->exp += k; }

/* floor(|a|), or 2^40 if it is larger; a few units wrong where the error of a is that large. */
SN_FN sn_i64 sn_big_floor(const sn_big *a, sn_i32 n) {
    const sn_i64 top = sn_big_top(a, n);
    if (sn_big_is_zero(a, n) || top < 0) return 0;
    if (top >= 40) return (sn_i64)1 << 40;
    return (sn_i64)(a->w[n - 1] >> (63 - top));
}

#endif

/* Elementary functions, correctly rounded. Contract as in arith.h, with one more outcome: SN_UNDECIDED in *flags.
 *
 * What is exact is found by integer arithmetic, and the roots of rational numbers are computed so. Everything else is
 * enclosed in a sn_big of 2 words, then 4, 8 and 16 (Ziv 1991). Every way to round looks at no more than some bits of
 * the result: the numbers that have them in common make a cell, and an enclosure within one cell decides. sn_round_pack
 * then rounds a point inside of it.
 *
 * A result on the border of a cell would never be decided. There is none: functions.h has the reasons.
 *
 * Arguments so near to a point where the function is exact that the difference is less than a cell (sin x = x - ...)
 * are decided without evaluation: sn_beside. */
#ifndef SOFTNUM_DECIDE_H
#define SOFTNUM_DECIDE_H

#include "softnum/elementary/transcendental.h"
#include "softnum/operations/elementary.h"

/* The exponent of the top bit of a finite number. */
SN_FN sn_i32 sn_top(const sn_number *x) { return x->exp + sn_bit_length(x->sig) - 1; }

/* floor(|x|), or 2^30 if it is larger. */
SN_FN sn_i64 sn_whole(const sn_number *x) {
    const sn_i32 top = sn_top(x);
    if (top < 0) return 0;
    if (top >= 30) return (sn_i64)1 << 30;
    return (sn_i64)(x->exp >= 0 ? x->sig << x->exp : x->sig >> -x->exp);
}

/* |x| 2^up as an integer, *whole modulo 4, and a fraction: what is returned, times 2^-bits. */
SN_FN sn_u64 sn_parts(const sn_number *x, sn_i32 up, sn_i32 *whole, sn_i32 *bits) {
    *whole = *bits = 0;
    const sn_i32 shift = x->exp + up;
    if (shift >= 0) {
        *whole = shift > 1 ? 0 : (sn_i32)((x->sig << shift) & 3);
        return 0;
    }
    *bits = -shift;
    if (*bits >= 64) return x->sig;
    *whole = (sn_i32)(x->sig >> *bits & 3);
    return x->sig & (((sn_u64)1 << *bits) - 1);
}

/* How many bits of a result, from its top one at 2^top down, decide its rounding. Nearest modes look at one below the
 * last, stochastic ones at r + 1; what lies between 0 and a lowest binade that is normal is cut into as many parts. */
SN_FN sn_i64 sn_deciding(const sn_format *f, const sn_env *env, sn_i64 top) {
    const sn_i64 below = sn_is_stochastic(env) ? env->stochastic_bits + 2 : 1;
    if (f->kind == SN_FLOAT) return f->mantissa_bits + 3 + below;
    const sn_i64 bits = top + f->mantissa_bits + 2 + below;
    return bits < 1 ? 1 : bits;
}

/* Any fixed-point result whose deciding bits are more lies out of range. */
enum { SN_MOST_DECIDING = 110 };

SN_FN sn_i32 sn_clamped(sn_i64 exp) {
    const sn_i64 far = (sn_i64)1 << 28;
    return (sn_i32)(exp < -far ? -far : exp > far ? far : exp);
}

/* A point of the cell that holds all that x stands for; 0 if there is none. */
SN_FN sn_i32 sn_decide(const sn_big *x, sn_i32 n, const sn_format *f, const sn_env *env, sn_exact *point) {
    if (x->err >= SN_LOST || sn_big_is_zero(x, n)) return 0;
    sn_i64 bits = sn_deciding(f, env, sn_big_top(x, n));
    if (f->kind == SN_FIXED && bits > SN_MOST_DECIDING && env->overflow != SN_OVERFLOW_WRAP) bits = 2;
    if (bits > 126 || bits > 64 * n - 2) return 0;
    const sn_i32 drop = (sn_i32)(64 * n - bits), words = drop / 64, shift = drop % 64;
    /* x + err and x - err agree above the dropped bits iff these are neither below err nor within err of their end */
    sn_u64 low = x->w[0], carry, same_low = 1, same_high = 1;
    for (sn_i32 i = 1; i <= words; i++) { /* the dropped bits above the lowest word: all 0, all 1? */
        const sn_u64 mask = i < words ? ~(sn_u64)0 : ((sn_u64)1 << shift) - 1;
        same_low &= (x->w[i] & mask) == 0;
        same_high &= (x->w[i] & mask) == mask;
    }
    if (words == 0) {
        const sn_u64 mask = ((sn_u64)1 << shift) - 1;
        low &= mask;
        if (low < x->err || mask - low < x->err) return 0;
    } else {
        if (same_low && low < x->err) return 0;
        carry = low + x->err < low;
        if (same_high && carry) return 0;
    }
    sn_u128 cell = sn_u128_make(0, 0); /* of 126 bits at most: two words, or three begun */
    for (sn_i32 i = n - 1; i >= words; i--)
        cell = sn_u128_add(sn_u128_shl(cell, i == words ? 64 - shift : 64),
                           sn_u128_make(0, x->w[i] >> (i == words ? shift : 0)));
    *point =
        sn_exact_make(x->sign, sn_u128_add(sn_u128_shl(cell, 1), sn_u128_make(0, 1)), sn_clamped(x->exp + drop - 1));
    point->sticky = 1; /* a bit beyond it: inexact even where a fixed-point result is far out of range */
    return 1;
}

/* (-1)^sign * (sig + or - a little) * 2^exp, where the little is less than 2^-need of it, need = sn_need. */
SN_FN sn_exact sn_beside(sn_i32 sign, sn_u64 sig, sn_i32 exp, sn_i32 above) {
    const sn_i32 shift = 126 - sn_bit_length(sig);
    const sn_u128 one = sn_u128_make(0, 1), whole = sn_u128_shl(sn_u128_make(0, sig), shift);
    sn_exact point = sn_exact_make(sign, above ? sn_u128_add(whole, one) : sn_u128_sub(whole, one), exp - shift);
    point.sticky = 1; /* as in sn_decide */
    return point;
}

/* Of what relative size 2^-need a difference from the number x is too small to be seen beside it. */
SN_FN sn_i64 sn_need(const sn_format *f, const sn_env *env, const sn_number *x) {
    const sn_i64 bits = sn_deciding(f, env, sn_top(x)), own = sn_bit_length(x->sig);
    return (bits > own ? bits : own) + 2;
}

/* What the top 126 bits of a root look like: of the number of 256 bits in v (the lowest word first), at least 254 of
 * them in use, times 2^exp, exp even; and whether anything was left out below v. */
SN_FN sn_exact sn_root_of_words(sn_u64 *v, sn_i32 exp, sn_i32 rest_below) {
    sn_u128 root = sn_u128_make(0, 0), rest = root;
    for (sn_i32 i = 0; i < 126; i++) {
        const sn_u64 two = v[3] >> 62;
        v[3] = v[3] << 2 | v[2] >> 62;
        v[2] = v[2] << 2 | v[1] >> 62;
        v[1] = v[1] << 2 | v[0] >> 62;
        v[0] <<= 2;
        rest = sn_u128_add(sn_u128_shl(rest, 2), sn_u128_make(0, two));
        root = sn_u128_shl(root, 1);
        const sn_u128 twice = sn_u128_shl(root, 1);
        if (sn_u128_less(twice, rest)) {
            rest = sn_u128_sub(rest, sn_u128_add(twice, sn_u128_make(0, 1)));
            root.lo |= 1;
        }
    }
    sn_exact r = sn_exact_make(0, root, exp / 2 + 2); /* 252 of 256 bits were taken */
    r.sticky = !sn_u128_is_zero(rest) || (v[0] | v[1] | v[2] | v[3]) != 0 || rest_below;
    return r;
}

/* The same of an integer of `count` words times 2^exp. */
SN_FN sn_exact sn_root_of_integer(const sn_u64 *w, sn_i32 count, sn_i32 exp, sn_i32 rest_below) {
    sn_u64 v[4] = {0, 0, 0, 0};
    while (w[count - 1] == 0)
        count--;
    const sn_i32 length = 64 * (count - 1) + sn_bit_length(w[count - 1]);
    sn_i32 up = 256 - length; /* v = w * 2^up */
    if ((exp - up) & 1) up--;
    for (sn_i32 i = 0; i < count; i++) {
        const sn_i32 at = 64 * i + up; /* where the word's lowest bit goes */
        for (sn_i32 k = 0; k < 4; k++) {
            const sn_i32 by = at - 64 * k;
            if (by > -64 && by < 64) v[k] |= by >= 0 ? w[i] << by : w[i] >> -by;
        }
        if (at < 0) rest_below |= at <= -64 ? w[i] != 0 : (w[i] << (64 + at)) != 0;
    }
    return sn_root_of_words(v, exp - up, rest_below);
}

/* 1 / sqrt(x): the root of floor(2^320 / sig); it is exact for powers of 4 alone, the root of an odd number above 1
 * being no divisor of a power of two. */
SN_FN sn_exact sn_reciprocal_root(const sn_number *x) {
    sn_u64 v[5] = {0, 0, 0, 0, 0}, rest = 1;
    if ((x->sig & (x->sig - 1)) == 0) { /* 1 / sig needs no division */
        v[0] = 1;
        return sn_root_of_integer(v, 1, -x->exp - sn_bit_length(x->sig) + 1, 0);
    }
    for (sn_i32 i = 4; i >= 0; i--)
        v[i] = sn_u128_divide(sn_u128_make(rest, 0), x->sig, &rest);
    return sn_root_of_integer(v, 5, -x->exp - 320, 1);
}

/* sqrt(x^2 + y^2), x the one of the higher top bit, y not beside it: their top bits are less than 64 apart. */
SN_FN sn_exact sn_hypotenuse(const sn_number *x, const sn_number *y) {
    sn_u64 a[4] = {0, 0, 0, 0}, s[8], t[8], carry = 0;
    const sn_i32 exp = x->exp < y->exp ? x->exp : y->exp;
    const sn_number *far = x->exp < y->exp ? y : x, *near = x->exp < y->exp ? x : y;
    const sn_i32 up = far->exp - exp; /* below 128 */
    a[up / 64] = far->sig << (up % 64);
    if (up % 64) a[up / 64 + 1] = far->sig >> (64 - up % 64);
    sn_big_multiply_words(s, a, 4, a, 4);
    sn_big_multiply_words(t, &near->sig, 1, &near->sig, 1);
    for (sn_i32 i = 2; i < 8; i++)
        t[i] = 0;
    for (sn_i32 i = 0; i < 8; i++) {
        const sn_u64 sum = s[i] + t[i], over = sum < t[i];
        s[i] = sum + carry;
        carry = over | (s[i] < sum);
    }
    return sn_root_of_integer(s, 8, 2 * exp, 0);
}

/* x^(1/3) where it is exact: x = m^3 * 2^3k. */
SN_FN sn_i32 sn_cube_root_exact(const sn_number *x, sn_exact *r) {
    sn_u64 sig = x->sig, root = 0;
    sn_i32 exp = x->exp;
    while (!(sig & 1)) {
        sig >>= 1;
        exp++;
    }
    if (exp % 3 || sig >> 63) return 0; /* an odd m^3 of 64 bits: 2642245^3 is the largest, and has 63 or 64 */
    for (sn_i32 i = 20; i >= 0; i--) {
        const sn_u64 trial = root | (sn_u64)1 << i;
        if (trial * trial * trial <= sig) root = trial;
    }
    *r = sn_exact_make(x->sign, sn_u128_make(0, root), exp / 3);
    return root * root * root == sig;
}

/* |x|^y where it is dyadic and has no more than 126 bits, for finite numbers that are not 0. With odd significands m
 * and k, |x| = m 2^a and y = k 2^b:
 * - m = 1: 2^(a y), dyadic iff a y is an integer;
 * - y < 0 and m > 1: a power of 1 / m, not dyadic if rational;
 * - y = k / 2^-b: rational iff m 2^a is a 2^-b-th power, k being odd; then the same for its root and the integer k;
 * - y an integer: m^y has more than 126 bits from y = 80 on, and what has so many lies on no border of a cell. */
SN_FN sn_i32 sn_power_exact(const sn_number *x, const sn_number *y, sn_exact *r) {
    sn_u64 m = x->sig, k = y->sig;
    sn_i32 a = x->exp, b = y->exp;
    while (!(m & 1)) {
        m >>= 1;
        a++;
    }
    while (!(k & 1)) {
        k >>= 1;
        b++;
    }
    if (m == 1) {
        const sn_u64 size = (sn_u64)(a < 0 ? -a : a);
        const sn_i32 down = (a < 0) ^ y->sign;
        sn_i64 exp = 0;
        if (size) {
            sn_i32 even = 0;
            while (!(size >> even & 1))
                even++;
            if (b < 0 && even < -b) return 0;
            exp = (sn_i64)1 << 40;
            if (sn_bit_length(size) + sn_bit_length(k) + b <= 40)
                exp = b >= 0 ? (sn_i64)(size * k << b) : (sn_i64)((size >> -b) * k);
        }
        *r = sn_exact_make(0, sn_u128_make(0, 1), sn_clamped(down ? -exp : exp));
        return 1;
    }
    if (y->sign) return 0;
    for (; b < 0; b++) { /* m^(1/2), again and again; m ends as 1 only if it was */
        sn_u64 root = 0;
        if (a & 1) return 0;
        for (sn_i32 i = 31; i >= 0; i--) {
            const sn_u64 trial = root | (sn_u64)1 << i;
            if (trial * trial <= m) root = trial;
        }
        if (root * root != m) return 0;
        m = root;
        a /= 2;
    }
    if (b > 6 || k > 80 || k << b > 80) return 0;
    sn_u128 power = sn_u128_make(0, 1);
    for (sn_u64 i = 0; i < k << b; i++) {
        if (sn_u128_bit_length(power) + sn_bit_length(m) > 126) return 0;
        power = sn_u128_add(sn_u128_mul(power.lo, m), sn_u128_make(sn_u128_mul(power.hi, m).lo, 0));
    }
    *r = sn_exact_make(0, power, a * (sn_i32)(k << b));
    return 1;
}

/* Whether x is an integer; *odd: an odd one. */
SN_FN sn_i32 sn_is_integer(const sn_number *x, sn_i32 *odd) {
    *odd = 0;
    if (x->kind != SN_FINITE) return x->kind == SN_ZERO;
    sn_i32 low = x->exp;
    for (sn_u64 sig = x->sig; !(sig & 1); sig >>= 1)
        low++;
    *odd = low == 0;
    return low >= 0;
}

/* |x| is 10^k, k > 0 */
SN_FN sn_i32 sn_power_of_ten(const sn_number *x) {
    sn_u64 sig = x->sig;
    sn_i32 exp = x->exp, k = 0;
    while (!(sig & 1)) {
        sig >>= 1;
        exp++;
    }
    while (sig % 5 == 0) {
        sig /= 5;
        k++;
    }
    return sig == 1 && exp == k ? k : 0;
}

/* x compared with 1, in magnitude: -1, 0 or 1. */
SN_FN sn_i32 sn_against_one(const sn_number *x) {
    const sn_i32 top = sn_top(x);
    if (top) return top < 0 ? -1 : 1;
    return (x->sig & (x->sig - 1)) != 0;
}

#endif

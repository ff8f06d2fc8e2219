/* divide, sqrt, remainder. Contract as in arith.h; quotients and roots are computed digit by digit, with a sticky
 * remainder. */
#ifndef SOFTNUM_DIVIDE_H
#define SOFTNUM_DIVIDE_H

#include "softnum/operations/arith.h"

/* floor(n / d) and the rest, for n.hi < d. */
SN_FN sn_u64 sn_u128_divide(sn_u128 n, sn_u64 d, sn_u64 *rest) {
#if SN_NATIVE_128 && defined(__x86_64__)
    sn_u64 q;
    __asm__("divq %[d]" : "=a"(q), "=d"(*rest) : "a"(n.lo), "d"(n.hi), [d] "r"(d) : "cc");
    return q;
#elif SN_NATIVE_128
    sn_u64 q = (sn_u64)(sn_u128_native(n) / d);
    *rest = n.lo - q * d;
    return q;
#else
    sn_u64 q = 0, r = n.hi;
    for (sn_i32 i = 63; i >= 0; i--) {
        sn_u64 carry = r >> 63;
        r = r << 1 | (n.lo >> i & 1);
        q <<= 1;
        if (carry || r >= d) {
            r -= d;
            q |= 1;
        }
    }
    *rest = r;
    return q;
#endif
}

/* rest * 2^bits divided by d, for rest < d and 0 < bits <= 64: the next digits of a quotient. */
SN_FN sn_u64 sn_next_digits(sn_u64 *rest, sn_i32 bits, sn_u64 d) {
    return sn_u128_divide(sn_u128_shl(sn_u128_make(0, *rest), bits), d, rest);
}

/* x / y for finite values that are not zero: 127 bits of quotient or more, or what a fixed-point target sees. */
SN_FN sn_exact sn_quotient(const sn_format *f, const sn_number *x, const sn_number *y) {
    sn_i32 length_x = sn_bit_length(x->sig), length_y = sn_bit_length(y->sig);
    sn_u64 n = x->sig << (64 - length_x), d = y->sig << (64 - length_y), rest, high, low;
    high = sn_u128_divide(sn_u128_make(n >> 1, n << 63), d, &rest);
    low = sn_next_digits(&rest, 64, d);
    sn_exact q = sn_exact_make(x->sign ^ y->sign, sn_u128_make(high, low), x->exp - y->exp + length_x - length_y - 127);
    q.sticky = rest != 0;
    if (f->kind == SN_FIXED && q.exp + sn_u128_bit_length(q.sig) + f->mantissa_bits > 88) {
        q.exp = -f->mantissa_bits - 60;
        q.modular = 1;
        rest = x->sig % y->sig;
        q.sig = sn_u128_make(0, x->sig / y->sig);
        for (sn_i32 left = x->exp - y->exp - q.exp; left > 0; left -= 64) {
            sn_i32 bits = left < 64 ? left : 64;
            q.sig = sn_u128_shl(q.sig, bits);
            q.sig = sn_u128_add(q.sig, sn_u128_make(0, sn_next_digits(&rest, bits, y->sig)));
        }
        q.sticky = rest != 0;
    }
    return q;
}

/* The root of a positive number: as many bits as rounding to f looks at, and a sticky rest. */
SN_FN sn_exact sn_root(const sn_format *f, const sn_env *env, const sn_number *x) {
    sn_i32 length = sn_bit_length(x->sig), exp = x->exp - (64 - length);
    sn_u64 top = x->sig << (64 - length);
    sn_u128 radicand = exp & 1 ? sn_u128_make(top >> 1, top << 63) : sn_u128_make(top, 0);
    exp = (exp & 1 ? exp + 1 : exp) - 64; /* even: the root of radicand * 2^exp, of 64 bits before the point */
    sn_i32 digits = f->mantissa_bits + 3 + (sn_is_stochastic(env) ? 33 : 0);
    if (f->kind == SN_FIXED) digits += exp / 2 + 64;
    digits = digits < 2 ? 2 : digits > 126 ? 126 : digits;
    sn_exact root = sn_exact_make(0, sn_u128_make(0, 0), exp / 2 + 64 - digits);
    sn_u64 q = 0, r = 0;
    sn_i32 i = 0;
    for (; i < digits && i < 60; i++) { /* two digits of the radicand, one of the root */
        r = r << 2 | radicand.hi >> 62;
        radicand = sn_u128_shl(radicand, 2);
        q <<= 1;
        if (r > 2 * q) {
            r -= 2 * q + 1;
            q |= 1;
        }
    }
    sn_u128 rest = sn_u128_make(0, r);
    root.sig.lo = q;
    for (; i < digits; i++) {
        rest = sn_u128_add(sn_u128_shl(rest, 2), sn_u128_make(0, radicand.hi >> 62));
        radicand = sn_u128_shl(radicand, 2);
        root.sig = sn_u128_shl(root.sig, 1);
        sn_u128 twice = sn_u128_shl(root.sig, 1);
        if (sn_u128_less(twice, rest)) {
            rest = sn_u128_sub(rest, sn_u128_add(twice, sn_u128_make(0, 1)));
            root.sig.lo |= 1;
        }
    }
    root.sticky = !sn_u128_is_zero(rest) || !sn_u128_is_zero(radicand);
    return root;
}

SN_FN sn_u64 sn_divide(const sn_format *fa, sn_u64 a, const sn_format *fb, sn_u64 b, const sn_format *fo,
                       const sn_env *env, sn_u32 random, sn_u32 *flags) {
    sn_number x = sn_read(fa, env, a), y = sn_read(fb, env, b);
    if (x.kind >= SN_QUIET_NAN || y.kind >= SN_QUIET_NAN) return sn_propagate_nans(fo, env, &x, &y, flags);
    if (fo->p3109 && y.kind == SN_ZERO) return sn_invalid_result(fo, env, flags);
    if (x.kind == y.kind && x.kind != SN_FINITE) return sn_invalid_result(fo, env, flags); /* 0/0, inf/inf: 7.2 e */
    if (y.kind == SN_ZERO && x.kind == SN_FINITE) sn_raise(fo, SN_DIVIDE_BY_ZERO, flags);  /* 7.3 */
    if (x.kind == SN_INF || y.kind == SN_ZERO) return sn_inf_result(fo, env, x.sign ^ y.sign, flags);
    sn_exact q = sn_exact_make(x.sign ^ y.sign, sn_u128_make(0, 0), 0);
    if (x.kind == SN_FINITE && y.kind == SN_FINITE) q = sn_quotient(fo, &x, &y);
    return sn_round_pack(fo, env, &q, random, flags);
}

SN_FN sn_u64 sn_sqrt(const sn_format *fa, sn_u64 a, const sn_format *fo, const sn_env *env, sn_u32 random,
                     sn_u32 *flags) {
    sn_number x = sn_read(fa, env, a);
    if (x.kind >= SN_QUIET_NAN) return sn_propagate_nan(fo, env, &x, flags);
    if (x.sign && x.kind != SN_ZERO) return sn_invalid_result(fo, env, flags);
    if (x.kind == SN_INF) return sn_inf_result(fo, env, 0, flags);
    sn_exact r = x.kind == SN_ZERO ? sn_exact_of(&x) : sn_root(fo, env, &x);
    return sn_round_pack(fo, env, &r, random, flags);
}

/* IEEE 754-2019 5.3.1: x - y * n with n the integer nearest to x / y, the even one of two. By reduction modulo y, so
 * the distance of the exponents costs time, never width. */
SN_FN sn_u64 sn_remainder(const sn_format *fa, sn_u64 a, const sn_format *fb, sn_u64 b, const sn_format *fo,
                          const sn_env *env, sn_u32 random, sn_u32 *flags) {
    sn_number x = sn_read(fa, env, a), y = sn_read(fb, env, b);
    if (x.kind >= SN_QUIET_NAN || y.kind >= SN_QUIET_NAN) return sn_propagate_nans(fo, env, &x, &y, flags);
    if (x.kind == SN_INF || y.kind == SN_ZERO) return sn_invalid_result(fo, env, flags);
    sn_exact r = sn_exact_of(&x);
    if (x.kind == SN_FINITE && y.kind == SN_FINITE &&
        x.exp + sn_bit_length(x.sig) + 1 >= y.exp + sn_bit_length(y.sig)) { /* else |x| < |y| / 2 */
        sn_u128 divisor = sn_u128_make(0, y.sig);
        sn_u64 rest = x.sig, n = 0;
        if (x.exp < y.exp)
            divisor = sn_u128_shl(divisor, y.exp - x.exp);
        else
            r.exp = y.exp;
        if (!divisor.hi) {
            n = rest / divisor.lo;
            rest %= divisor.lo;
            for (sn_i32 left = x.exp - y.exp; left > 0; left -= 64)
                n = sn_next_digits(&rest, left < 64 ? left : 64, divisor.lo);
        }
        sn_u128 whole = sn_u128_make(0, rest), twice = sn_u128_shl(whole, 1);
        if (sn_u128_less(divisor, twice) || ((n & 1) && !sn_u128_less(twice, divisor))) {
            whole = sn_u128_sub(divisor, whole);
            r.sign = !r.sign;
        }
        r.sig = whole;
        if (sn_u128_is_zero(whole)) r.sign = x.sign;
    }
    return sn_round_pack(fo, env, &r, random, flags);
}

#endif

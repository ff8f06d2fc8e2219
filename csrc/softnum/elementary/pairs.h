/* The elementary functions of two operands: their special values by IEEE 754-2019 9.2.1, exact values, and enclosures.
 */
#ifndef SOFTNUM_PAIRS_H
#define SOFTNUM_PAIRS_H

#include "softnum/elementary/unary.h"

/* sqrt(x^2 + y^2). Of an infinity and anything but a signaling NaN, +infinity (9.2.1). */
SN_FN sn_u64 sn_hypot(const sn_format *fa, sn_u64 a, const sn_format *fb, sn_u64 b, const sn_format *fo,
                      const sn_env *env, sn_u32 random, sn_u32 *flags) {
    sn_number x = sn_read(fa, env, a), y = sn_read(fb, env, b);
    const sn_i32 signals = x.kind == SN_SIGNALING_NAN || y.kind == SN_SIGNALING_NAN;
    const sn_i32 nan = x.kind >= SN_QUIET_NAN || y.kind >= SN_QUIET_NAN;
    if (nan && (signals || fo->p3109 || (x.kind != SN_INF && y.kind != SN_INF)))
        return sn_propagate_nans(fo, env, &x, &y, flags);
    if (x.kind == SN_INF || y.kind == SN_INF) return sn_inf_result(fo, env, 0, flags);
    x.sign = y.sign = 0;
    if (x.kind == SN_ZERO || (y.kind == SN_FINITE && sn_top(&x) < sn_top(&y))) {
        const sn_number t = x;
        x = y;
        y = t;
    }
    sn_exact e = sn_exact_of(&x);
    if (y.kind == SN_ZERO) return sn_round_pack(fo, env, &e, random, flags);
    const sn_i64 apart = sn_top(&x) - sn_top(&y) - 1; /* y < 2^-apart x: x + y^2 / 2x is x + x 2^-(2 apart + 1) */
    if (apart >= 62 || 2 * apart >= sn_need(fo, env, &x)) {
        if (!sn_point_beside(fo, env, &x, 1, &e)) return sn_undecided(flags);
        return sn_round_pack(fo, env, &e, random, flags);
    }
    e = sn_hypotenuse(&x, &y);
    return sn_round_long(&e, fo, env, random, flags);
}

/* x^y of operands one of which is 0 or infinite (9.2.1): SN_AS_ONE, _ZERO, _SIGNED_ZERO, _INF, _IS (a signed infinity),
 * _POLE; the signed ones with x's sign. */
SN_FN sn_i32 sn_special_power(const sn_number *x, const sn_number *y, sn_i32 odd, sn_i32 *pole) {
    *pole = 0;
    if (y->kind == SN_ZERO) return SN_AS_ONE;
    if (y->kind == SN_INF) {
        const sn_i32 size = x->kind == SN_ZERO ? -1 : x->kind == SN_INF ? 1 : sn_against_one(x);
        if (size == 0) return SN_AS_ONE;
        return (size > 0) != y->sign ? SN_AS_INF : SN_AS_ZERO;
    }
    if ((x->kind == SN_ZERO) == y->sign) { /* 0^-y, inf^y */
        *pole = x->kind == SN_ZERO;
        return odd ? SN_AS_IS : SN_AS_INF;
    }
    return odd ? SN_AS_SIGNED_ZERO : SN_AS_ZERO;
}

/* An infinity with a sign that divides by zero, in P3109's formats NaN. */
SN_FN sn_u64 sn_pole(const sn_format *fo, const sn_env *env, sn_i32 sign, sn_u32 *flags) {
    const sn_number x = {SN_ZERO, sign, 0, 0};
    return sn_special(SN_AS_POLE, &x, fo, env, 0, flags);
}

/* e^z for what z encloses, with a sign: 1, and *e, if that is decided. An e^z is no border, but may lie beside 1. */
SN_FN sn_i32 sn_exp_decided(const sn_big *z, sn_i32 sign, sn_i32 n, const sn_format *fo, const sn_env *env,
                            sn_exact *e) {
    sn_big r;
    const sn_number unit = {SN_FINITE, sign, 0, 1};
    if (z->err < SN_LOST && -(sn_big_top(z, n) + 2) >= sn_need(fo, env, &unit)) { /* 1 + z */
        *e = sn_beside(sign, 1, 0, !z->sign);
        return 1;
    }
    sn_big_exp(&r, z, n);
    r.sign = sign;
    return sn_decide(&r, n, fo, env, e);
}

/* Whether x^k, or (1 + x)^k, k an integer, has no bit below the last one of a fixed-point format. */
SN_FN sn_i32 sn_power_on_grid(const sn_format *fo, const sn_number *x, const sn_number *k) {
    sn_i32 a = x->exp;
    for (sn_u64 sig = x->sig; !(sig & 1); sig >>= 1)
        a++;
    return fo->kind == SN_FIXED && !k->sign && (a >= 0 || a * sn_whole(k) >= -fo->mantissa_bits);
}

/* x^y, of integers y (pown), of x >= 0 and without what has no limit (powr) */
SN_FN sn_u64 sn_pow(sn_i32 fn, const sn_format *fa, sn_u64 a, const sn_format *fb, sn_u64 b, const sn_format *fo,
                    const sn_env *env, sn_u32 random, sn_u32 *flags) {
    sn_number x = sn_read(fa, env, a);
    const sn_number y = sn_read(fb, env, b);
    sn_i32 odd, pole;
    sn_exact e = sn_exact_make(0, sn_u128_make(0, 1), 0);
    const sn_i32 of_one = x.kind == SN_FINITE && !x.sign && sn_against_one(&x) == 0;
    const sn_i32 one = fn != SN_ELEMENTARY_powr && ((of_one && fn == SN_ELEMENTARY_pow) || y.kind == SN_ZERO);
    if (x.kind >= SN_QUIET_NAN || y.kind >= SN_QUIET_NAN) {
        const sn_i32 signals = x.kind == SN_SIGNALING_NAN || y.kind == SN_SIGNALING_NAN;
        if (one && !signals && !fo->p3109) return sn_round_pack(fo, env, &e, random, flags);
        return sn_propagate_nans(fo, env, &x, &y, flags);
    }
    const sn_i32 integer = sn_is_integer(&y, &odd);
    if (fn == SN_ELEMENTARY_pown && !integer) return sn_invalid_result(fo, env, flags);
    if (fn == SN_ELEMENTARY_powr) {
        const sn_i32 negative = x.sign && x.kind != SN_ZERO, end = x.kind == SN_ZERO || x.kind == SN_INF;
        if (negative || (end && y.kind == SN_ZERO) || (of_one && y.kind == SN_INF))
            return sn_invalid_result(fo, env, flags);
        x.sign = odd = 0;
    }
    if (x.kind != SN_FINITE || y.kind != SN_FINITE) {
        const sn_i32 special = sn_special_power(&x, &y, odd, &pole);
        if (pole) return sn_pole(fo, env, odd & x.sign, flags);
        if (special == SN_AS_IS) x.kind = SN_INF;
        return sn_special(special, &x, fo, env, random, flags);
    }
    if (x.sign && !integer) return sn_invalid_result(fo, env, flags);
    const sn_i32 sign = x.sign & odd;
    x.sign = 0;
    if (sn_power_exact(&x, &y, &e)) {
        e.sign = sign;
        return sn_round_pack(fo, env, &e, random, flags);
    }
    for (sn_i32 n = 2; n <= 16; n *= 2) {
        sn_big r, z;
        sn_big_set(&r, 0, x.sig, x.exp, n);
        sn_big_log(&r, &r, n);
        sn_big_set(&z, y.sign, y.sig, y.exp, n);
        sn_big_mul(&z, &z, &r, n);
        if (!sn_exp_decided(&z, sign, n, fo, env, &e)) continue;
        if (integer && sn_power_on_grid(fo, &x, &y)) e.sticky = 0; /* too many bits for sn_power_exact */
        return sn_round_pack(fo, env, &e, random, flags);
    }
    return sn_undecided(flags);
}

/* Whether x is below -1. */
SN_FN sn_i32 sn_below_minus_one(const sn_number *x) {
    return x->sign && (x->kind == SN_INF || (x->kind == SN_FINITE && sn_against_one(x) > 0));
}

/* (1 + x)^k for a finite x > -1, where it is dyadic and has no more than 126 bits, k an integer, neither 0: 1 + x = m
 * 2^a with an odd m, of more than 126 bits unless x and its bits lie near 1; then as in sn_power_exact. */
SN_FN sn_i32 sn_compound_exact(const sn_number *x, const sn_number *k, sn_exact *e) {
    sn_i32 a = x->exp;
    sn_u64 sig = x->sig;
    while (!(sig & 1)) {
        sig >>= 1;
        a++;
    }
    if (a < -125 || sn_top(x) > 125) return 0;
    const sn_u128 one = sn_u128_shl(sn_u128_make(0, 1), a < 0 ? -a : 0);
    const sn_u128 term = sn_u128_shl(sn_u128_make(0, sig), a > 0 ? a : 0);
    sn_u128 m = x->sign ? sn_u128_sub(one, term) : sn_u128_add(one, term), power;
    for (a = a < 0 ? a : 0; !(m.lo & 1); a++)
        m = sn_u128_shr(m, 1);
    const sn_i64 times = sn_whole(k);
    if (m.hi == 0 && m.lo == 1) {
        *e = sn_exact_make(0, m, sn_clamped(k->sign ? -a * times : a * times));
        return 1;
    }
    if (k->sign || times > 126) return 0;
    power = m;
    for (sn_i64 i = 1; i < times; i++) {
        if (sn_u128_bit_length(power) + sn_u128_bit_length(m) > 126) return 0;
        const sn_u64 high = power.hi * m.lo + power.lo * m.hi;
        power = sn_u128_add(sn_u128_mul(power.lo, m.lo), sn_u128_make(high, 0));
    }
    *e = sn_exact_make(0, power, a * (sn_i32)times);
    return 1;
}

/* (1 + x)^k for integers k */
SN_FN sn_u64 sn_compound(const sn_format *fa, sn_u64 a, const sn_format *fb, sn_u64 b, const sn_format *fo,
                         const sn_env *env, sn_u32 random, sn_u32 *flags) {
    const sn_number x = sn_read(fa, env, a), k = sn_read(fb, env, b);
    const sn_u128 one = sn_u128_make(0, 1);
    sn_i32 odd;
    sn_exact e = sn_exact_make(0, one, 0);
    if (x.kind >= SN_QUIET_NAN || k.kind >= SN_QUIET_NAN) {
        const sn_i32 is_one = x.kind == SN_QUIET_NAN && k.kind == SN_ZERO && !fo->p3109;
        return is_one ? sn_round_pack(fo, env, &e, random, flags) : sn_propagate_nans(fo, env, &x, &k, flags);
    }
    if (sn_below_minus_one(&x) || !sn_is_integer(&k, &odd)) return sn_invalid_result(fo, env, flags);
    if (x.kind == SN_ZERO || k.kind == SN_ZERO) return sn_round_pack(fo, env, &e, random, flags);
    if (x.kind == SN_INF) return sn_special(k.sign ? SN_AS_ZERO : SN_AS_INF, &x, fo, env, random, flags);
    if (x.sign && sn_against_one(&x) == 0) {
        if (k.sign) return sn_pole(fo, env, 0, flags);
        return sn_special(SN_AS_ZERO, &x, fo, env, random, flags);
    }
    if (sn_compound_exact(&x, &k, &e)) return sn_round_pack(fo, env, &e, random, flags);
    if (sn_top(&x) >= 128 && sn_power_exact(&x, &k, &e)) { /* x^k (1 + k / x); of k >= 2^20 beyond all formats */
        const sn_i32 shift = 126 - sn_u128_bit_length(e.sig);
        e.sig = sn_u128_shl(e.sig, shift);
        e.sig = k.sign ? sn_u128_sub(e.sig, one) : sn_u128_add(e.sig, one);
        e.exp -= shift;
        if (fo->kind == SN_FIXED && env->overflow == SN_OVERFLOW_WRAP && e.exp >= -fo->mantissa_bits)
            return sn_undecided(flags);
        e.sticky = !sn_power_on_grid(fo, &x, &k);
        return sn_round_pack(fo, env, &e, random, flags);
    }
    for (sn_i32 n = 2; n <= 16; n *= 2) {
        sn_big r, z;
        sn_big_set(&r, x.sign, x.sig, x.exp, n);
        sn_big_log1p(&r, &r, n);
        sn_big_set(&z, k.sign, k.sig, k.exp, n);
        sn_big_mul(&z, &z, &r, n);
        if (!sn_exp_decided(&z, 0, n, fo, env, &e)) continue;
        if (sn_power_on_grid(fo, &x, &k)) e.sticky = 0;
        return sn_round_pack(fo, env, &e, random, flags);
    }
    return sn_undecided(flags);
}

/* |x|^(1/k) where it is dyadic, k an integer that is not 0: with an odd significand m and |x| = m 2^a a k-th power, m
 * being 1 if k < 0. An m > 1 of 64 bits is no 64th power. */
SN_FN sn_i32 sn_root_exact(const sn_number *x, const sn_number *k, sn_exact *e) {
    sn_i32 a = x->exp;
    sn_u64 m = x->sig, root = 0;
    while (!(m & 1)) {
        m >>= 1;
        a++;
    }
    const sn_i32 degree = (sn_i32)sn_whole(k); /* or 2^30, which divides no other exponent than 0 */
    if (a % degree || (m > 1 && (k->sign || degree > 63))) return 0;
    for (sn_i32 i = 63 / degree; m > 1 && i >= 0; i--) {
        const sn_u64 trial = root | (sn_u64)1 << i;
        sn_u128 power = sn_u128_make(0, trial);
        for (sn_i32 j = 1; j < degree && !power.hi; j++)
            power = sn_u128_mul(power.lo, trial);
        if (!power.hi && power.lo <= m) root = trial;
    }
    sn_u64 power = 1;
    for (sn_i32 j = 0; j < degree && m > 1; j++)
        power *= root;
    *e = sn_exact_make(0, sn_u128_make(0, m > 1 ? root : 1), k->sign ? -a / degree : a / degree);
    return m == 1 || power == m;
}

/* x^(1/k) for integers k */
SN_FN sn_u64 sn_rootn(const sn_format *fa, sn_u64 a, const sn_format *fb, sn_u64 b, const sn_format *fo,
                      const sn_env *env, sn_u32 random, sn_u32 *flags) {
    const sn_number x = sn_read(fa, env, a), k = sn_read(fb, env, b);
    sn_i32 odd;
    sn_exact e;
    if (x.kind >= SN_QUIET_NAN || k.kind >= SN_QUIET_NAN) return sn_propagate_nans(fo, env, &x, &k, flags);
    if (!sn_is_integer(&k, &odd) || k.kind == SN_ZERO || (x.sign && x.kind != SN_ZERO && !odd))
        return sn_invalid_result(fo, env, flags);
    const sn_number end = {x.kind, x.sign & odd, 0, 0};
    if (x.kind == SN_ZERO && k.sign) return sn_pole(fo, env, end.sign, flags);
    if (x.kind != SN_FINITE)
        return sn_special(x.kind == SN_INF && !k.sign ? SN_AS_IS : SN_AS_SIGNED_ZERO, &end, fo, env, random, flags);
    if (sn_root_exact(&x, &k, &e)) {
        e.sign = x.sign;
        return sn_round_pack(fo, env, &e, random, flags);
    }
    for (sn_i32 n = 2; n <= 16; n *= 2) {
        sn_big r, z;
        sn_big_set(&r, 0, x.sig, x.exp, n);
        sn_big_log(&r, &r, n);
        sn_big_set(&z, k.sign, k.sig, k.exp, n);
        sn_big_div(&z, &r, &z, n);
        if (sn_exp_decided(&z, x.sign, n, fo, env, &e)) return sn_round_pack(fo, env, &e, random, flags);
    }
    return sn_undecided(flags);
}

/* How many quarters of pi the angle of (x, y) is, where that is 0 to 4; -1 elsewhere. */
SN_FN sn_i32 sn_quarters(const sn_number *y, const sn_number *x) {
    const sn_i32 diagonal = y->kind == SN_INF
                                ? x->kind == SN_INF
                                : x->kind == SN_FINITE && y->kind == SN_FINITE && sn_top(x) == sn_top(y) &&
                                      x->sig << (64 - sn_bit_length(x->sig)) == y->sig << (64 - sn_bit_length(y->sig));
    if (diagonal) return x->sign ? 3 : 1;
    if (y->kind == SN_ZERO || x->kind == SN_INF) return x->sign ? 4 : 0;
    return y->kind == SN_INF || x->kind == SN_ZERO ? 2 : -1;
}

/* The angle of (x, y), or its 1 / pi, that has no point beside it: an enclosure. */
SN_FN void sn_big_arc(sn_big *r, const sn_number *y, const sn_number *x, sn_i32 quarters, sn_i32 n) {
    sn_big s, t;
    if (quarters > 0) {
        sn_big_constant(r, sn_half_pi, 0, n);
        sn_big_mul_word(r, r, (sn_u64)quarters, n);
    } else {
        sn_big_set(&s, 0, y->sig, y->exp, n);
        sn_big_set(&t, 0, x->sig, x->exp, n);
        sn_big_div(&s, &s, &t, n);
        sn_big_atan(r, &s, n);
        sn_big_constant(&t, sn_half_pi, 2, n);
        if (x->sign) sn_big_add(r, &t, r, 1, n);
    }
    r->sign = y->sign;
}

/* atan2(y, x) and atan2pi(y, x), y being a and x b. P3109's have no angle of (0, 0) and of two infinities. */
SN_FN sn_u64 sn_arc(sn_i32 fn, const sn_format *fa, sn_u64 a, const sn_format *fb, sn_u64 b, const sn_format *fo,
                    const sn_env *env, sn_u32 random, sn_u32 *flags) {
    const sn_number y = sn_read(fa, env, a), x = sn_read(fb, env, b);
    const sn_i32 turns = fn == SN_ELEMENTARY_atan2pi;
    if (x.kind >= SN_QUIET_NAN || y.kind >= SN_QUIET_NAN) return sn_propagate_nans(fo, env, &y, &x, flags);
    if (fo->p3109 && x.kind == y.kind && x.kind != SN_FINITE) return sn_invalid_result(fo, env, flags);
    const sn_i32 quarters = sn_quarters(&y, &x);
    sn_exact e = sn_exact_make(y.sign, sn_u128_make(0, (sn_u64)quarters), -2);
    if (quarters == 0 || (turns && quarters > 0)) return sn_round_pack(fo, env, &e, random, flags);
    if (quarters < 0) {
        const sn_i32 apart = sn_top(&y) - sn_top(&x); /* 2^(apart - 1) < |y / x| < 2^(apart + 1) */
        sn_number near = {SN_FINITE, y.sign, 0, 1};
        if (!turns && !x.sign && -apart - 1 >= 100) { /* q - q^3 / 3, and q - 2^-64 q no nearer to a border */
            e = sn_quotient(fo, &y, &x);
            if (!e.sticky) e.sig = sn_u128_sub(e.sig, sn_u128_make(0, 1));
            e.sticky = 1;
            return sn_round_pack(fo, env, &e, random, flags);
        }
        const sn_i32 beside_one = turns && x.sign && -apart >= sn_need(fo, env, &near);
        if (!beside_one) near.exp = -1;
        if (beside_one || (turns && apart - 1 >= sn_need(fo, env, &near))) {
            if (!sn_point_beside(fo, env, &near, x.sign && !beside_one, &e)) return sn_undecided(flags);
            return sn_round_pack(fo, env, &e, random, flags);
        }
    }
    for (sn_i32 n = 2; n <= 16; n *= 2) {
        sn_big r;
        sn_big_arc(&r, &y, &x, quarters, n);
        if (turns) sn_big_per_pi(&r, n);
        if (sn_decide(&r, n, fo, env, &e)) return sn_round_pack(fo, env, &e, random, flags);
    }
    return sn_undecided(flags);
}

/* x + log(1 + e^-d), or to base 2, d >= 0. */
SN_FN void sn_big_log_of_sum(sn_big *r, const sn_big *x, const sn_big *d, sn_i32 binary, sn_i32 n) {
    sn_big t, u;
    sn_big_copy(&t, d, n);
    t.sign = 1;
    if (binary) sn_big_times_log(&t, 2, n);
    sn_big_exp(&u, &t, n);
    if (sn_big_is_zero(&t, n) || sn_big_top(&t, n) < 38)
        sn_big_log1p(&t, &u, n);
    else
        sn_big_copy(&t, &u, n);
    if (binary) {
        sn_big_constant(&u, sn_log2_e, 1, n);
        sn_big_mul(&t, &t, &u, n);
    }
    sn_big_add(r, x, &t, 0, n);
}

/* log2(cosh(d log(2) / 2)) for 0 < d < 1, by cosh(2v) = 1 + 2 sinh(v)^2 */
SN_FN void sn_big_log2_cosh(sn_big *r, const sn_big *d, sn_i32 n) {
    sn_big t, u;
    sn_big_copy(&t, d, n);
    sn_big_times_log(&t, 2, n);
    t.exp -= 2;
    sn_big_mul(&t, &t, &t, n);
    sn_big_series(&u, SN_SERIES_SINH, &t, n);
    sn_big_mul(&u, &u, &u, n);
    sn_big_mul(&t, &t, &u, n);
    t.exp++;
    sn_big_log1p(&t, &t, n);
    sn_big_constant(&u, sn_log2_e, 1, n);
    sn_big_mul(r, &t, &u, n);
}

/* log(e^x + e^y), log2(2^x + 2^y). Near x = y the latter is beside 1 + (x + y) / 2. */
SN_FN sn_u64 sn_log_of_sum(sn_i32 fn, const sn_format *fa, sn_u64 a, const sn_format *fb, sn_u64 b, const sn_format *fo,
                           const sn_env *env, sn_u32 random, sn_u32 *flags) {
    sn_number x = sn_read(fa, env, a), y = sn_read(fb, env, b);
    const sn_i32 binary = fn == SN_ELEMENTARY_logaddexp2;
    sn_big p, q, d, r;
    if (x.kind >= SN_QUIET_NAN || y.kind >= SN_QUIET_NAN) return sn_propagate_nans(fo, env, &x, &y, flags);
    if ((x.kind == SN_INF && !x.sign) || (y.kind == SN_INF && !y.sign)) return sn_inf_result(fo, env, 0, flags);
    if (x.kind == SN_INF || y.kind == SN_INF) { /* e^-infinity adds nothing; log(1) is +0 */
        const sn_number *other = x.kind == SN_INF ? &y : &x;
        if (other->kind == SN_INF) return sn_inf_result(fo, env, 1, flags);
        sn_exact e = sn_exact_of(other);
        if (other->kind == SN_ZERO) e.sign = 0;
        return sn_round_pack(fo, env, &e, random, flags);
    }
    sn_big_set(&p, x.sign, x.sig, x.exp, 2);
    sn_big_set(&q, y.sign, y.sig, y.exp, 2);
    sn_big_add(&d, &p, &q, 1, 2);
    if (d.sign && !sn_big_is_zero(&d, 2)) {
        const sn_number t = x;
        x = y;
        y = t;
    }
    for (sn_i32 n = 2; n <= 16; n *= 2) {
        sn_exact e;
        sn_big_set(&p, x.sign, x.sig, x.exp, n);
        sn_big_set(&q, y.sign, y.sig, y.exp, n);
        sn_big_add(&d, &p, &q, 1, n);
        if (sn_big_is_zero(&d, n) && binary) { /* x + 1 */
            e = sn_sum(fo, env, sn_exact_of(&x), sn_exact_make(0, sn_u128_make(0, 1), 0));
            if (sn_u128_is_zero(e.sig) && !e.modular) e.sign = 0;
            return sn_round_pack(fo, env, &e, random, flags);
        }
        if (x.kind == SN_FINITE) {
            /* to x is added less than 1, and less than 2^-d or e^-d, which is below 2^(-23/16 d), times 2 */
            const sn_i64 top = sn_top(&x), need = sn_need(fo, env, &x), whole = sn_big_floor(&d, n);
            const sn_i64 below = binary ? whole : whole + whole * 7 / 16;
            if (top - 2 >= need || below - 2 + (top < 0 ? top : 0) >= need) {
                if (!sn_point_beside(fo, env, &x, !x.sign, &e)) return sn_undecided(flags);
                return sn_round_pack(fo, env, &e, random, flags);
            }
        }
        if (binary && sn_big_top(&d, n) < 0) {
            const sn_number unit = {SN_FINITE, 0, 0, 1};
            sn_big_add(&q, &p, &q, 0, n);
            q.exp--;
            sn_big_log2_cosh(&r, &d, n);
            sn_big_add(&p, &q, &r, 0, n);
            if (p.err < SN_LOST && -(sn_big_top(&p, n) + 2) >= sn_need(fo, env, &unit)) {
                if (!sn_point_beside(fo, env, &unit, !p.sign, &e)) return sn_undecided(flags);
                return sn_round_pack(fo, env, &e, random, flags);
            }
            sn_big_set(&d, 0, 1, 0, n);
            sn_big_add(&q, &q, &d, 0, n);
            sn_big_add(&r, &r, &q, 0, n);
        } else {
            sn_big_log_of_sum(&r, &p, &d, binary, n);
        }
        if (sn_decide(&r, n, fo, env, &e)) return sn_round_pack(fo, env, &e, random, flags);
    }
    return sn_undecided(flags);
}

#endif

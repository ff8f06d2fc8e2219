/* The elementary functions of one operand: special values, exact values, and enclosures of all others (decide.h).
 *
 * Special values are those of IEEE 754-2019 9.2.1, and limits for the functions that it does not have: sigmoid,
 * softplus, erf, gelu(x) = x (1 + erf(x / sqrt(2))) / 2, silu(x) = x sigmoid(x), reciprocal. In P3109's formats 1 / 0
 * is NaN, that of rsqrt too, and every NaN is propagated.
 *
 * No result that is evaluated lies on the border of a cell, since borders are dyadic rationals:
 * - e^x, log x, and what is made of them by rational operations (expm1, log1p, sinh, cosh, tanh, sigmoid, silu,
 * softplus), sin, cos, tan and their inverses are transcendental for algebraic x but 0 (and 1, of log and acos):
 * Lindemann and Weierstrass; see Niven, Irrational Numbers, chapter 9. softplus(x) = y means e^0 + e^x = e^y, likewise
 * impossible.
 * - asinh, acosh and atanh are logarithms of algebraic numbers that are 1 for x = 0 (1, of acosh) alone.
 * - 2^x is irrational unless the dyadic x is an integer; log2 x is irrational unless x is a power of two, for x^b = 2^a
 *   leaves no odd factor; log10 x unless x = 10^k, k >= 0, for x^b = 2^a 5^a means x = 2^k 5^k. 10^x likewise, and what
 *   is 1 from them (exp2m1, exp10m1, log2p1, log10p1).
 * - sin, cos and tan of rational multiples of pi are rational for 0, 1/2, 1 (sin, cos) and 0, 1 (tan) alone (Niven,
 *   Corollary 3.12): of a dyadic x sinpi and cospi where 2x is an integer, tanpi where 4x is. asinpi(1/2) = 1/6 and
 *   acospi(1/2) = 1/3 are rational, but not dyadic.
 * - pow(x, y) with odd significands m of x and k of y = k 2^b: sn_power_exact.
 * - (1 + x)^n and x^(1/n): the same of 1 + x, and of n-th powers (sn_root_exact); 10^x and the like as 2^x.
 * - atan2(y, x) is the arc of an algebraic tangent, 0 for y = 0 alone; atan2pi is rational where |x| = |y|.
 * - log(e^x + e^y) = z means e^x + e^y = e^z, which is impossible (Lindemann and Weierstrass). 2^x + 2^y = 2^z: with
 *   r = 2^(1/b), b the power of two that makes integers of b x, b y and b z, a relation of three powers of r, which are
 *   linearly independent unless their exponents differ by multiples of b; then 1 + 2^k = 2^m, and x = y.
 * - The cube root of a dyadic number that is rational is dyadic: sn_cube_root_exact.
 * - erf(x) and gelu(x) are not known to be irrational. An equality would end as SN_UNDECIDED, not as a wrong result. */
#ifndef SOFTNUM_UNARY_H
#define SOFTNUM_UNARY_H

#include "softnum/elementary/decide.h"
#include "softnum/elementary/enclose.h"

/* What a function does with 0 and with infinities. */
enum {
    SN_AS_IS,   /* the operand itself */
    SN_AS_ZERO, /* +0 */
    SN_AS_ONE,  /* 1 */
    SN_AS_UNIT, /* 1 with the operand's sign */
    SN_AS_HALF, /* 1/2 */
    SN_AS_SIGNED_HALF,
    SN_AS_INF,      /* +infinity */
    SN_AS_POLE,     /* +infinity with the operand's sign, DIVIDE_BY_ZERO */
    SN_AS_LOG_0,    /* -infinity, DIVIDE_BY_ZERO */
    SN_AS_LOG_POLE, /* infinity with the operand's sign, DIVIDE_BY_ZERO */
    SN_AS_SIGNED_ZERO,
    SN_AS_INVALID,
    SN_AS_VALUE /* no special value: evaluated */
};

SN_FN sn_i32 sn_special_of_zero(sn_i32 fn) {
    switch (fn) {
    case SN_ELEMENTARY_exp:
    case SN_ELEMENTARY_exp2:
    case SN_ELEMENTARY_exp10:
    case SN_ELEMENTARY_cosh:
    case SN_ELEMENTARY_cos:
    case SN_ELEMENTARY_cospi: return SN_AS_ONE;
    case SN_ELEMENTARY_log:
    case SN_ELEMENTARY_log2:
    case SN_ELEMENTARY_log10: return SN_AS_LOG_0;
    case SN_ELEMENTARY_acos:
    case SN_ELEMENTARY_softplus: return SN_AS_VALUE;
    case SN_ELEMENTARY_sigmoid:
    case SN_ELEMENTARY_acospi: return SN_AS_HALF;
    case SN_ELEMENTARY_acosh: return SN_AS_INVALID;
    case SN_ELEMENTARY_rsqrt:
    case SN_ELEMENTARY_reciprocal: return SN_AS_POLE;
    default: return SN_AS_IS;
    }
}

SN_FN sn_i32 sn_special_of_inf(sn_i32 fn, sn_i32 sign) {
    switch (fn) {
    case SN_ELEMENTARY_exp:
    case SN_ELEMENTARY_exp2:
    case SN_ELEMENTARY_exp10:
    case SN_ELEMENTARY_softplus: return sign ? SN_AS_ZERO : SN_AS_INF;
    case SN_ELEMENTARY_expm1:
    case SN_ELEMENTARY_exp2m1:
    case SN_ELEMENTARY_exp10m1: return sign ? SN_AS_UNIT : SN_AS_INF;
    case SN_ELEMENTARY_log:
    case SN_ELEMENTARY_log2:
    case SN_ELEMENTARY_log10:
    case SN_ELEMENTARY_log1p:
    case SN_ELEMENTARY_log2p1:
    case SN_ELEMENTARY_log10p1:
    case SN_ELEMENTARY_acosh: return sign ? SN_AS_INVALID : SN_AS_INF;
    case SN_ELEMENTARY_sin:
    case SN_ELEMENTARY_cos:
    case SN_ELEMENTARY_tan:
    case SN_ELEMENTARY_asin:
    case SN_ELEMENTARY_acos:
    case SN_ELEMENTARY_sinpi:
    case SN_ELEMENTARY_cospi:
    case SN_ELEMENTARY_tanpi:
    case SN_ELEMENTARY_asinpi:
    case SN_ELEMENTARY_acospi:
    case SN_ELEMENTARY_atanh: return SN_AS_INVALID;
    case SN_ELEMENTARY_atan: return SN_AS_VALUE;
    case SN_ELEMENTARY_atanpi: return SN_AS_SIGNED_HALF;
    case SN_ELEMENTARY_cosh: return SN_AS_INF;
    case SN_ELEMENTARY_tanh:
    case SN_ELEMENTARY_erf: return SN_AS_UNIT;
    case SN_ELEMENTARY_sigmoid: return sign ? SN_AS_ZERO : SN_AS_ONE;
    case SN_ELEMENTARY_gelu:
    case SN_ELEMENTARY_silu: return sign ? SN_AS_SIGNED_ZERO : SN_AS_INF;
    case SN_ELEMENTARY_rsqrt: return sign ? SN_AS_INVALID : SN_AS_ZERO;
    case SN_ELEMENTARY_reciprocal: return SN_AS_SIGNED_ZERO;
    default: return SN_AS_IS; /* sinh, asinh, cbrt */
    }
}

SN_FN sn_u64 sn_special(sn_i32 special, const sn_number *x, const sn_format *fo, const sn_env *env, sn_u32 random,
                        sn_u32 *flags) {
    sn_exact e = sn_exact_make(x->sign, sn_u128_make(0, 0), 0);
    switch (special) {
    case SN_AS_INVALID: return sn_invalid_result(fo, env, flags);
    case SN_AS_POLE:
        if (fo->p3109) return sn_invalid_result(fo, env, flags);
        sn_raise(fo, SN_DIVIDE_BY_ZERO, flags);
        return sn_inf_result(fo, env, x->sign, flags);
    case SN_AS_LOG_0:
    case SN_AS_LOG_POLE:
        sn_raise(fo, SN_DIVIDE_BY_ZERO, flags);
        return sn_inf_result(fo, env, special == SN_AS_LOG_0 || x->sign, flags);
    case SN_AS_INF: return sn_inf_result(fo, env, 0, flags);
    case SN_AS_IS:
        if (x->kind == SN_INF) return sn_inf_result(fo, env, x->sign, flags);
        break;
    case SN_AS_ZERO: e.sign = 0; break;
    case SN_AS_ONE:
    case SN_AS_HALF:
        e.sign = 0;
        e.sig.lo = 1;
        break;
    case SN_AS_UNIT:
    case SN_AS_SIGNED_HALF: e.sig.lo = 1; break;
    default: break;
    }
    if (special == SN_AS_HALF || special == SN_AS_SIGNED_HALF) e.exp = -1;
    return sn_round_pack(fo, env, &e, random, flags);
}

/* 10^k - minus for k >= 0, minus 0 or 1, where it has no more than 126 bits, or modulo 2^128 where a fixed-point format
 * sees no more of it; else 0. */
SN_FN sn_i32 sn_whole_power_of_ten(const sn_format *fo, const sn_env *env, sn_i64 k, sn_u64 minus, sn_exact *e) {
    const sn_i32 wraps = fo->kind == SN_FIXED && env->overflow == SN_OVERFLOW_WRAP;
    if (k > (minus ? 37 : 54) && !wraps) return 0;
    sn_u128 five = sn_u128_make(0, 1);
    if (k > 128) {
        five.lo = 0;
        k = 0;
    }
    for (sn_i64 i = 0; i < k; i++)
        five = sn_u128_add(sn_u128_shl(five, 2), five);
    *e = sn_exact_make(0, five, (sn_i32)k);
    e->modular = wraps && (k > 37 || five.lo == 0);
    if (minus || e->modular) {
        e->sig = sn_u128_sub(sn_u128_shl(five, (sn_i32)k), sn_u128_make(0, minus));
        e->exp = 0;
    }
    return 1;
}

/* 2^x - 1 for an integer x that is not 0. 126 ones round as any more of them do. */
SN_FN void sn_power_less_one(const sn_format *fo, const sn_env *env, const sn_number *x, sn_exact *e) {
    const sn_i64 whole = sn_whole(x), kept = whole < 126 ? whole : 126;
    *e = sn_exact_make(x->sign, sn_u128_sub(sn_u128_shl(sn_u128_make(0, 1), (sn_i32)kept), sn_u128_make(0, 1)), 0);
    e->exp = x->sign ? (sn_i32)-kept : (sn_i32)(whole - kept) / (whole > ((sn_i64)1 << 28) ? 4 : 1);
    if (e->exp > 0 && fo->kind == SN_FIXED && env->overflow == SN_OVERFLOW_WRAP) {
        *e = sn_exact_make(0, sn_u128_make(~(sn_u64)0, ~(sn_u64)0), 0);
        e->modular = 1;
    }
}

/* sin, cos or tan of pi x where that is rational: of sin and cos the multiples of a half, of tan those of a quarter,
 * its pole apart. */
SN_FN sn_i32 sn_rational_of_turn(sn_i32 fn, const sn_number *x, sn_exact *e) {
    sn_i32 quarter, odd, bits;
    if (sn_parts(x, fn == SN_ELEMENTARY_tanpi ? 2 : 1, &quarter, &bits)) return 0;
    e->sign = x->sign;
    e->sig.lo = 1;
    switch (fn) {
    case SN_ELEMENTARY_sinpi:
        e->sig.lo = (sn_u64)quarter & 1;
        if (quarter == 3) e->sign = !e->sign;
        break;
    case SN_ELEMENTARY_cospi:
        e->sig.lo = !(quarter & 1);
        e->sign = quarter == 2;
        break;
    default:
        if (quarter == 3) e->sign = !e->sign;
        if (quarter == 0) {
            e->sig.lo = 0;
            sn_is_integer(x, &odd);
            e->sign ^= odd;
        }
    }
    return 1;
}

/* log2(1 + x) where 1 + x = 2^k, log10(1 + x) where it is 10^k. */
SN_FN sn_i32 sn_log_of_one_more(sn_i32 fn, const sn_number *x, sn_exact *e) {
    sn_u64 sig = x->sig, power = 10;
    sn_i32 exp = x->exp;
    while (!(sig & 1)) {
        sig >>= 1;
        exp++;
    }
    if (fn == SN_ELEMENTARY_log10p1) { /* 10^k - 1 is odd */
        for (sn_u64 k = 1; exp == 0 && !x->sign && k < 20; k++, power *= 10)
            if (sig == power - 1) e->sig.lo = k;
        return e->sig.lo != 0;
    }
    const sn_i32 ones = sn_bit_length(sig);
    if ((sig & (sig + 1)) || exp != (x->sign ? -ones : 0)) return 0; /* 2^k - 1, or 2^-k - 1 */
    e->sign = x->sign;
    e->sig.lo = (sn_u64)ones;
    return 1;
}

/* tanpi's poles: beside those at 1/2 + an odd integer the signs are the other ones. */
SN_FN sn_i32 sn_pole_of_turn(sn_number *x) {
    sn_i32 halves, bits;
    if (sn_parts(x, 1, &halves, &bits) || !(halves & 1)) return SN_AS_VALUE;
    x->sign ^= halves >> 1;
    return SN_AS_POLE;
}

/* Values that are exact though no operand is special, and roots; 0 if the function has to be evaluated. Invalid
 * operands have been dealt with. */
SN_FN sn_i32 sn_exact_value(sn_i32 fn, const sn_format *fo, const sn_env *env, const sn_number *x, sn_exact *e) {
    sn_i32 odd;
    *e = sn_exact_make(0, sn_u128_make(0, 0), 0);
    switch (fn) {
    case SN_ELEMENTARY_log:
    case SN_ELEMENTARY_acos: return sn_against_one(x) == 0 && !x->sign; /* 0 */
    case SN_ELEMENTARY_exp2:
        if (!sn_is_integer(x, &odd)) return 0;
        *e = sn_exact_make(0, sn_u128_make(0, 1), (sn_i32)(x->sign ? -sn_whole(x) : sn_whole(x)) / 4);
        if (sn_top(x) < 28) e->exp = (sn_i32)(x->sign ? -sn_whole(x) : sn_whole(x));
        return 1;
    case SN_ELEMENTARY_log2:
        if (x->sig & (x->sig - 1)) return 0;
        e->sign = sn_top(x) < 0;
        e->sig.lo = (sn_u64)(e->sign ? -sn_top(x) : sn_top(x));
        if (!e->sig.lo) e->sign = 0;
        return 1;
    case SN_ELEMENTARY_log10: e->sig.lo = (sn_u64)sn_power_of_ten(x); return e->sig.lo != 0 || sn_against_one(x) == 0;
    case SN_ELEMENTARY_acosh: return sn_against_one(x) == 0;
    case SN_ELEMENTARY_exp10:
    case SN_ELEMENTARY_exp10m1:
        if (x->sign || !sn_is_integer(x, &odd)) return 0;
        return sn_whole_power_of_ten(fo, env, sn_whole(x), fn == SN_ELEMENTARY_exp10m1, e);
    case SN_ELEMENTARY_exp2m1:
        if (!sn_is_integer(x, &odd) || (x->sign && sn_whole(x) > 126)) return 0;
        sn_power_less_one(fo, env, x, e);
        return 1;
    case SN_ELEMENTARY_log2p1:
    case SN_ELEMENTARY_log10p1: return sn_log_of_one_more(fn, x, e);
    case SN_ELEMENTARY_sinpi:
    case SN_ELEMENTARY_cospi:
    case SN_ELEMENTARY_tanpi: return sn_rational_of_turn(fn, x, e);
    case SN_ELEMENTARY_asinpi:
    case SN_ELEMENTARY_acospi:
    case SN_ELEMENTARY_atanpi:
        if (sn_against_one(x)) return 0;
        e->sign = x->sign;
        e->sig.lo = 1;
        e->exp = fn == SN_ELEMENTARY_atanpi ? -2 : -1;
        if (fn == SN_ELEMENTARY_acospi) *e = sn_exact_make(0, sn_u128_make(0, (sn_u64)x->sign), 0); /* 0 or 1 */
        return 1;
    case SN_ELEMENTARY_cbrt: return sn_cube_root_exact(x, e);
    case SN_ELEMENTARY_rsqrt: *e = sn_reciprocal_root(x); return 1;
    case SN_ELEMENTARY_reciprocal: {
        const sn_number one = {SN_FINITE, 0, 0, 1};
        *e = sn_quotient(fo, &one, x);
        return 1;
    }
    default: return 0;
    }
}

/* Results that lie beside a number by less than can be seen: sn_beside's arguments, and 1; else 0. */
SN_FN sn_i32 sn_is_beside(sn_i32 fn, const sn_format *fo, const sn_env *env, const sn_number *x, sn_number *near,
                          sn_i32 *above) {
    const sn_i64 below = -(sn_i64)(sn_top(x) + 1), whole = sn_whole(x); /* |x| < 2^-below */
    *near = *x;
    const sn_i64 need = sn_need(fo, env, x);
    *above = 0;
    switch (fn) { /* beside x, for small x */
    case SN_ELEMENTARY_sin:
    case SN_ELEMENTARY_atan:
    case SN_ELEMENTARY_asinh: return 2 * below >= need;
    case SN_ELEMENTARY_tanh:
        if (2 * below >= need) return 1;
        break;
    case SN_ELEMENTARY_tan:
    case SN_ELEMENTARY_asin:
    case SN_ELEMENTARY_sinh:
    case SN_ELEMENTARY_atanh: *above = 1; return 2 * below >= need;
    case SN_ELEMENTARY_log1p: *above = x->sign; return below >= need;
    case SN_ELEMENTARY_expm1:
        *above = !x->sign;
        if (below >= need) return 1;
        break;
    case SN_ELEMENTARY_gelu: /* beside x / 2 */
    case SN_ELEMENTARY_silu:
        *above = !x->sign;
        near->exp--;
        if (below >= need) return 1;
        near->exp++;
        *above = 0;
        if (x->sign) return 0;
        return fn == SN_ELEMENTARY_silu ? whole >= need : whole * whole >= 2 * need; /* x - x e^-x; x - x e^-(x^2/2) */
    case SN_ELEMENTARY_softplus: *above = 1; return !x->sign && whole >= need;       /* x + e^-x */
    default: break;
    }
    near->kind = SN_FINITE;
    near->sign = near->exp = 0;
    near->sig = 1;
    const sn_i64 of_one = sn_need(fo, env, near);
    switch (fn) { /* beside 1 */
    case SN_ELEMENTARY_exp:
    case SN_ELEMENTARY_exp2: *above = !x->sign; return below >= of_one;
    case SN_ELEMENTARY_exp10: *above = !x->sign; return below - 2 >= of_one;
    case SN_ELEMENTARY_cospi: return 2 * below - 3 >= of_one;
    case SN_ELEMENTARY_cosh: *above = 1; return 2 * below >= of_one;
    case SN_ELEMENTARY_cos: return 2 * below >= of_one;
    case SN_ELEMENTARY_expm1:
    case SN_ELEMENTARY_exp2m1:
    case SN_ELEMENTARY_exp10m1: near->sign = 1; return x->sign && whole >= of_one;
    case SN_ELEMENTARY_log2p1: /* of 2^k, beside k */
        near->sig = (sn_u64)(-below - 1);
        if (below >= 0 || (x->sig & (x->sig - 1)) || !near->sig) return 0;
        *above = 1;
        return -below - 2 >= sn_need(fo, env, near);
    case SN_ELEMENTARY_atanpi: /* 1/2 - 1 / (pi x) */
    case SN_ELEMENTARY_acospi: /* 1/2 - x / pi */
        near->exp = -1;
        if (fn == SN_ELEMENTARY_atanpi) {
            near->sign = x->sign;
            return -below - 2 >= sn_need(fo, env, near);
        }
        *above = x->sign;
        return below - 1 >= sn_need(fo, env, near);
    case SN_ELEMENTARY_tanh: near->sign = x->sign; return whole >= of_one;
    case SN_ELEMENTARY_erf: near->sign = x->sign; return whole * whole >= of_one;
    case SN_ELEMENTARY_sigmoid:
        if (!x->sign && whole >= of_one) return 1;
        near->exp = -1;
        *above = !x->sign;
        return below >= of_one;
    default: return 0;
    }
}

/* A point of the cell of a result beside a number; what is out of a fixed-point range comes first. 0: nothing decides.
 */
SN_FN sn_i32 sn_point_beside(const sn_format *fo, const sn_env *env, const sn_number *near, sn_i32 above, sn_exact *e) {
    if (sn_deciding(fo, env, sn_top(near)) > SN_MOST_DECIDING && env->overflow == SN_OVERFLOW_WRAP) return 0;
    *e = sn_beside(near->sign, near->sig, near->exp, above);
    return 1;
}

SN_FN sn_u64 sn_undecided(sn_u32 *flags) {
    *flags |= SN_UNDECIDED;
    return 0;
}

/* A root or a quotient with a rest, of which 126 bits are known. */
SN_FN sn_u64 sn_round_long(const sn_exact *e, const sn_format *fo, const sn_env *env, sn_u32 random, sn_u32 *flags) {
    if (e->sticky && !e->modular && fo->kind == SN_FIXED && env->overflow == SN_OVERFLOW_WRAP &&
        sn_deciding(fo, env, e->exp + sn_u128_bit_length(e->sig) - 1) > 125)
        return sn_undecided(flags);
    return sn_round_pack(fo, env, e, random, flags);
}

/* A function of one operand. */
SN_FN sn_u64 sn_elementary_unary(sn_i32 fn, const sn_format *fa, sn_u64 a, const sn_format *fo, const sn_env *env,
                                 sn_u32 random, sn_u32 *flags) {
    sn_number x = sn_read(fa, env, a);
    if (x.kind >= SN_QUIET_NAN) return sn_propagate_nan(fo, env, &x, flags);
    sn_i32 special = SN_AS_VALUE, odd;
    if (x.kind == SN_ZERO) special = sn_special_of_zero(fn);
    if (x.kind == SN_INF) special = sn_special_of_inf(fn, x.sign);
    if (x.kind == SN_FINITE) {
        const sn_i32 size = sn_against_one(&x);
        const sn_i32 is_log = fn == SN_ELEMENTARY_log || fn == SN_ELEMENTARY_log2 || fn == SN_ELEMENTARY_log10;
        if ((is_log || fn == SN_ELEMENTARY_rsqrt) && x.sign) special = SN_AS_INVALID;
        const sn_i32 of_more = fn == SN_ELEMENTARY_log1p || fn == SN_ELEMENTARY_log2p1 || fn == SN_ELEMENTARY_log10p1;
        const sn_i32 inverse = fn == SN_ELEMENTARY_asin || fn == SN_ELEMENTARY_acos || fn == SN_ELEMENTARY_asinpi ||
                               fn == SN_ELEMENTARY_acospi;
        if (of_more && x.sign && size >= 0) special = size ? SN_AS_INVALID : SN_AS_LOG_0;
        if (inverse && size > 0) special = SN_AS_INVALID;
        if (fn == SN_ELEMENTARY_acosh && (x.sign || size < 0)) special = SN_AS_INVALID;
        if (fn == SN_ELEMENTARY_atanh && size >= 0) special = size ? SN_AS_INVALID : SN_AS_LOG_POLE;
        if (fn == SN_ELEMENTARY_tanpi) special = sn_pole_of_turn(&x);
    }
    if (special != SN_AS_VALUE) return sn_special(special, &x, fo, env, random, flags);
    sn_exact e;
    if (x.kind == SN_FINITE) {
        sn_number near;
        sn_i32 above;
        if (sn_exact_value(fn, fo, env, &x, &e)) return sn_round_long(&e, fo, env, random, flags);
        if (sn_is_beside(fn, fo, env, &x, &near, &above)) {
            if (!sn_point_beside(fo, env, &near, above, &e)) return sn_undecided(flags);
            return sn_round_pack(fo, env, &e, random, flags);
        }
    }
    const sn_i32 of_ten = fn == SN_ELEMENTARY_exp10 || fn == SN_ELEMENTARY_exp10m1;
    for (sn_i32 n = 2; n <= 16; n *= 2) {
        sn_big r;
        sn_enclose(&r, fn, &x, n);
        if (!sn_decide(&r, n, fo, env, &e)) continue;
        if (of_ten && !x.sign && sn_is_integer(&x, &odd))
            e.sticky = 0; /* an integer, of more bits than an sn_exact's */
        return sn_round_pack(fo, env, &e, random, flags);
    }
    return sn_undecided(flags);
}

#endif

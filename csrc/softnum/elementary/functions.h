/* The elementary functions themselves: special values, exact values, and enclosures of all others (decide.h).
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
 * - 2^x is irrational unless the dyadic x is an integer; log2 x is irrational unless x is a power of two, for x^b = 2^a
 *   leaves no odd factor; log10 x unless x = 10^k, k >= 0, for x^b = 2^a 5^a means x = 2^k 5^k.
 * - pow(x, y) with odd significands m of x and k of y = k 2^b: sn_power_exact.
 * - The cube root of a dyadic number that is rational is dyadic: sn_cube_root_exact.
 * - erf(x) and gelu(x) are not known to be irrational. An equality would end as SN_UNDECIDED, not as a wrong result. */
#ifndef SOFTNUM_FUNCTIONS_H
#define SOFTNUM_FUNCTIONS_H

#include "softnum/elementary/decide.h"
#include "softnum/elementary/enclose.h"

/* What a function does with 0 and with infinities. */
enum {
    SN_AS_IS,    /* the operand itself */
    SN_AS_ZERO,  /* +0 */
    SN_AS_ONE,   /* 1 */
    SN_AS_UNIT,  /* 1 with the operand's sign */
    SN_AS_HALF,  /* 1/2 */
    SN_AS_INF,   /* +infinity */
    SN_AS_POLE,  /* +infinity with the operand's sign, DIVIDE_BY_ZERO */
    SN_AS_LOG_0, /* -infinity, DIVIDE_BY_ZERO */
    SN_AS_SIGNED_ZERO,
    SN_AS_INVALID,
    SN_AS_VALUE /* no special value: evaluated */
};

SN_FN sn_i32 sn_special_of_zero(sn_i32 fn) {
    switch (fn) {
    case SN_ELEMENTARY_exp:
    case SN_ELEMENTARY_exp2:
    case SN_ELEMENTARY_cosh:
    case SN_ELEMENTARY_cos: return SN_AS_ONE;
    case SN_ELEMENTARY_log:
    case SN_ELEMENTARY_log2:
    case SN_ELEMENTARY_log10: return SN_AS_LOG_0;
    case SN_ELEMENTARY_acos:
    case SN_ELEMENTARY_softplus: return SN_AS_VALUE;
    case SN_ELEMENTARY_sigmoid: return SN_AS_HALF;
    case SN_ELEMENTARY_rsqrt:
    case SN_ELEMENTARY_reciprocal: return SN_AS_POLE;
    default: return SN_AS_IS;
    }
}

SN_FN sn_i32 sn_special_of_inf(sn_i32 fn, sn_i32 sign) {
    switch (fn) {
    case SN_ELEMENTARY_exp:
    case SN_ELEMENTARY_exp2:
    case SN_ELEMENTARY_softplus: return sign ? SN_AS_ZERO : SN_AS_INF;
    case SN_ELEMENTARY_expm1: return sign ? SN_AS_UNIT : SN_AS_INF;
    case SN_ELEMENTARY_log:
    case SN_ELEMENTARY_log2:
    case SN_ELEMENTARY_log10:
    case SN_ELEMENTARY_log1p: return sign ? SN_AS_INVALID : SN_AS_INF;
    case SN_ELEMENTARY_sin:
    case SN_ELEMENTARY_cos:
    case SN_ELEMENTARY_tan:
    case SN_ELEMENTARY_asin:
    case SN_ELEMENTARY_acos: return SN_AS_INVALID;
    case SN_ELEMENTARY_atan: return SN_AS_VALUE;
    case SN_ELEMENTARY_cosh: return SN_AS_INF;
    case SN_ELEMENTARY_tanh:
    case SN_ELEMENTARY_erf: return SN_AS_UNIT;
    case SN_ELEMENTARY_sigmoid: return sign ? SN_AS_ZERO : SN_AS_ONE;
    case SN_ELEMENTARY_gelu:
    case SN_ELEMENTARY_silu: return sign ? SN_AS_SIGNED_ZERO : SN_AS_INF;
    case SN_ELEMENTARY_rsqrt: return sign ? SN_AS_INVALID : SN_AS_ZERO;
    case SN_ELEMENTARY_reciprocal: return SN_AS_SIGNED_ZERO;
    default: return SN_AS_IS; /* sinh, cbrt */
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
    case SN_AS_LOG_0: sn_raise(fo, SN_DIVIDE_BY_ZERO, flags); return sn_inf_result(fo, env, 1, flags);
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
    case SN_AS_UNIT: e.sig.lo = 1; break;
    default: break;
    }
    if (special == SN_AS_HALF) e.exp = -1;
    return sn_round_pack(fo, env, &e, random, flags);
}

/* Values that are exact though no operand is special, and roots; 0 if the function has to be evaluated. Invalid
 * operands have been dealt with. */
SN_FN sn_i32 sn_exact_value(sn_i32 fn, const sn_format *fo, const sn_number *x, sn_exact *e) {
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
    case SN_ELEMENTARY_atan: return 2 * below >= need;
    case SN_ELEMENTARY_tanh:
        if (2 * below >= need) return 1;
        break;
    case SN_ELEMENTARY_tan:
    case SN_ELEMENTARY_asin:
    case SN_ELEMENTARY_sinh: *above = 1; return 2 * below >= need;
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
    case SN_ELEMENTARY_cosh: *above = 1; return 2 * below >= of_one;
    case SN_ELEMENTARY_cos: return 2 * below >= of_one;
    case SN_ELEMENTARY_expm1: near->sign = 1; return x->sign && whole >= of_one;
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
    const sn_number x = sn_read(fa, env, a);
    if (x.kind >= SN_QUIET_NAN) return sn_propagate_nan(fo, env, &x, flags);
    sn_i32 special = SN_AS_VALUE;
    if (x.kind == SN_ZERO) special = sn_special_of_zero(fn);
    if (x.kind == SN_INF) special = sn_special_of_inf(fn, x.sign);
    if (x.kind == SN_FINITE) {
        const sn_i32 size = sn_against_one(&x);
        const sn_i32 is_log = fn == SN_ELEMENTARY_log || fn == SN_ELEMENTARY_log2 || fn == SN_ELEMENTARY_log10;
        if ((is_log || fn == SN_ELEMENTARY_rsqrt) && x.sign) special = SN_AS_INVALID;
        if (fn == SN_ELEMENTARY_log1p && x.sign && size >= 0) special = size ? SN_AS_INVALID : SN_AS_LOG_0;
        if ((fn == SN_ELEMENTARY_asin || fn == SN_ELEMENTARY_acos) && size > 0) special = SN_AS_INVALID;
    }
    if (special != SN_AS_VALUE) return sn_special(special, &x, fo, env, random, flags);
    sn_exact e;
    if (x.kind == SN_FINITE) {
        sn_number near;
        sn_i32 above;
        if (sn_exact_value(fn, fo, &x, &e)) return sn_round_long(&e, fo, env, random, flags);
        if (sn_is_beside(fn, fo, env, &x, &near, &above)) {
            if (!sn_point_beside(fo, env, &near, above, &e)) return sn_undecided(flags);
            return sn_round_pack(fo, env, &e, random, flags);
        }
    }
    for (sn_i32 n = 2; n <= 16; n *= 2) {
        sn_big r;
        sn_enclose(&r, fn, &x, n);
        if (sn_decide(&r, n, fo, env, &e)) return sn_round_pack(fo, env, &e, random, flags);
    }
    return sn_undecided(flags);
}

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

/* x^y */
SN_FN sn_u64 sn_pow(const sn_format *fa, sn_u64 a, const sn_format *fb, sn_u64 b, const sn_format *fo,
                    const sn_env *env, sn_u32 random, sn_u32 *flags) {
    sn_number x = sn_read(fa, env, a);
    const sn_number y = sn_read(fb, env, b);
    sn_i32 odd, pole;
    sn_exact e = sn_exact_make(0, sn_u128_make(0, 1), 0);
    const sn_i32 one = (x.kind == SN_FINITE && !x.sign && sn_against_one(&x) == 0) || y.kind == SN_ZERO;
    if (x.kind >= SN_QUIET_NAN || y.kind >= SN_QUIET_NAN) {
        const sn_i32 signals = x.kind == SN_SIGNALING_NAN || y.kind == SN_SIGNALING_NAN;
        if (one && !signals && !fo->p3109) return sn_round_pack(fo, env, &e, random, flags);
        return sn_propagate_nans(fo, env, &x, &y, flags);
    }
    const sn_i32 integer = sn_is_integer(&y, &odd);
    if (x.kind != SN_FINITE || y.kind != SN_FINITE) {
        const sn_i32 special = sn_special_power(&x, &y, odd, &pole);
        if (pole && fo->p3109) return sn_invalid_result(fo, env, flags);
        if (pole) sn_raise(fo, SN_DIVIDE_BY_ZERO, flags);
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
        const sn_number unit = {SN_FINITE, sign, 0, 1};
        if (z.err < SN_LOST && -(sn_big_top(&z, n) + 2) >= sn_need(fo, env, &unit)) { /* 1 + z */
            e = sn_beside(sign, 1, 0, !z.sign);
            return sn_round_pack(fo, env, &e, random, flags);
        }
        sn_big_exp(&r, &z, n);
        r.sign = sign;
        if (sn_decide(&r, n, fo, env, &e)) return sn_round_pack(fo, env, &e, random, flags);
    }
    return sn_undecided(flags);
}

/* The function fn (SN_ELEMENTARY_...) of a, and of b if it has two operands. */
SN_FN sn_u64 sn_elementary(sn_i32 fn, const sn_format *fa, sn_u64 a, const sn_format *fb, sn_u64 b, const sn_format *fo,
                           const sn_env *env, sn_u32 random, sn_u32 *flags) {
    if (fn == SN_ELEMENTARY_pow) return sn_pow(fa, a, fb, b, fo, env, random, flags);
    if (fn == SN_ELEMENTARY_hypot) return sn_hypot(fa, a, fb, b, fo, env, random, flags);
    return sn_elementary_unary(fn, fa, a, fo, env, random, flags);
}

#endif

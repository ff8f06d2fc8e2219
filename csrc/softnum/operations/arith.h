/* Operations: unpack, compute exactly, round once. Operands and result may have different formats.
 *
 * Contract of all: a code is read modulo 2^bits of its format; the result is the code of the exactly rounded result in
 * fo; exceptions are OR-ed into *flags; random feeds the stochastic modes. Nothing can fail: an operation without a
 * meaningful result delivers fo's NaN and INVALID (specialize.h). */
#ifndef SOFTNUM_ARITH_H
#define SOFTNUM_ARITH_H

#include "softnum/rounding/round.h"

SN_FN sn_exact sn_exact_make(sn_i32 sign, sn_u128 sig, sn_i32 exp) {
    sn_exact x;
    x.sig = sig;
    x.exp = exp;
    x.sign = sign;
    x.sticky = 0;
    x.modular = 0;
    return x;
}

SN_FN sn_exact sn_exact_of(const sn_number *n) {
    return sn_exact_make(n->sign, sn_u128_make(0, n->kind == SN_ZERO ? 0 : n->sig), n->exp);
}

/* sig * 2^exp in units of 2^unit, modulo 2^128; bits below the unit go to *sticky. */
SN_FN sn_u128 sn_place(const sn_exact *x, sn_i32 unit, sn_i32 *sticky) {
    if (x->exp >= unit) return sn_u128_shl(x->sig, x->exp - unit);
    *sticky |= sn_u128_low_bits(x->sig, unit - x->exp);
    return sn_u128_shr(x->sig, unit - x->exp);
}

/* x + y in units of 2^exp, where |x| >= |y|; modulo 2^128 if modular, else exp is the exponent of x's top bit less 127.
 */
SN_FN sn_exact sn_sum_at(const sn_exact *x, const sn_exact *y, sn_i32 exp, sn_i32 modular) {
    sn_exact s = sn_exact_make(x->sign, x->sig, exp);
    s.modular = modular;
    sn_u128 a = sn_place(x, s.exp, &s.sticky);
    sn_u128 b = sn_place(y, s.exp, &s.sticky);
    if (x->sign == y->sign) {
        s.sig = sn_u128_add(a, b);
        if (!modular && sn_u128_less(s.sig, a)) { /* carry */
            s.sticky |= (sn_i32)(s.sig.lo & 1);
            s.sig = sn_u128_shr(s.sig, 1);
            s.sig.hi |= (sn_u64)1 << 63;
            s.exp++;
        }
        return s;
    }
    s.sig = sn_u128_sub(a, b);
    if (s.sticky) {
        s.sig = sn_u128_sub(s.sig, sn_u128_make(0, 1));
        if (!modular && sn_u128_bit_length(s.sig) < 127) {
            /* y had 128 bits, lay one place lower and lost one: the difference fits, whatever wraps on the way */
            s.sticky = 0;
            s.exp--;
            s.sig = sn_u128_sub(sn_place(x, s.exp, &s.sticky), sn_place(y, s.exp, &s.sticky));
        }
    }
    return s;
}

/* The exact sum of two exact values (without sticky bits), not both zero, with at least 126 bits kept, or as many as
 * the target f can see. A sum that cancels to zero is +0, and -0 in the mode SN_DOWN (6.3). */
SN_FN sn_exact sn_sum(const sn_format *f, const sn_env *env, sn_exact x, sn_exact y) {
    if (sn_u128_is_zero(x.sig)) return y;
    if (sn_u128_is_zero(y.sig)) return x;
    sn_i32 length_x = sn_u128_bit_length(x.sig), length_y = sn_u128_bit_length(y.sig);
    sn_i32 top = x.exp + length_x, top_y = y.exp + length_y;
    sn_u128 aligned_x = sn_u128_shl(x.sig, 128 - length_x), aligned_y = sn_u128_shl(y.sig, 128 - length_y);
    if (top < top_y || (top == top_y && sn_u128_less(aligned_x, aligned_y))) {
        sn_exact t = x;
        x = y;
        y = t;
        top = top_y;
    } else if (top == top_y && x.sign != y.sign && !sn_u128_less(aligned_y, aligned_x)) {
        return sn_exact_make(env->rounding == SN_DOWN, sn_u128_make(0, 0), 0);
    }
    sn_exact s = sn_sum_at(&x, &y, top - 128, 0);
    /* Fixed point sees fixed bits, wherever the highest one is: 2^-60 of its last place and all above, modulo. The sum
     * decides, not its terms: they may lie far beyond the range and cancel. */
    if (f->kind == SN_FIXED && s.exp + sn_u128_bit_length(s.sig) + f->mantissa_bits > 88)
        s = sn_sum_at(&x, &y, -f->mantissa_bits - 60, 1);
    return s;
}

SN_FN sn_exact sn_product(const sn_number *a, const sn_number *b) {
    sn_i32 zero = a->kind == SN_ZERO || b->kind == SN_ZERO;
    return sn_exact_make(a->sign ^ b->sign, zero ? sn_u128_make(0, 0) : sn_u128_mul(a->sig, b->sig), a->exp + b->exp);
}

SN_FN sn_u64 sn_convert(const sn_format *fa, sn_u64 a, const sn_format *fo, const sn_env *env, sn_u32 random,
                        sn_u32 *flags) {
    sn_number x = sn_read(fa, env, a);
    if (x.kind >= SN_QUIET_NAN) return sn_propagate_nan(fo, env, &x, flags);
    if (x.kind == SN_INF) return sn_inf_result(fo, env, x.sign, flags);
    sn_exact e = sn_exact_of(&x);
    return sn_round_pack(fo, env, &e, random, flags);
}

/* x + y with one rounding, neither a NaN: the body of add, fma and every sum. */
SN_FN sn_u64 sn_add_numbers(sn_exact x, sn_i32 x_is_inf, const sn_number *y, const sn_format *fo, const sn_env *env,
                            sn_u32 random, sn_u32 *flags) {
    if (x_is_inf) {
        if (y->kind == SN_INF && x.sign != y->sign) return sn_invalid_result(fo, env, flags);
        return sn_inf_result(fo, env, x.sign, flags);
    }
    if (y->kind == SN_INF) return sn_inf_result(fo, env, y->sign, flags);
    sn_exact e = sn_exact_of(y);
    if (sn_u128_is_zero(x.sig) && sn_u128_is_zero(e.sig)) /* 6.3 */
        e.sign = x.sign == e.sign ? e.sign : env->rounding == SN_DOWN;
    else
        e = sn_sum(fo, env, x, e);
    return sn_round_pack(fo, env, &e, random, flags);
}

SN_FN sn_u64 sn_add_operands(const sn_number *x, const sn_number *y, const sn_format *fo, const sn_env *env,
                             sn_u32 random, sn_u32 *flags) {
    if (x->kind >= SN_QUIET_NAN || y->kind >= SN_QUIET_NAN) return sn_propagate_nans(fo, env, x, y, flags);
    return sn_add_numbers(sn_exact_of(x), x->kind == SN_INF, y, fo, env, random, flags);
}

SN_FN sn_u64 sn_add(const sn_format *fa, sn_u64 a, const sn_format *fb, sn_u64 b, const sn_format *fo,
                    const sn_env *env, sn_u32 random, sn_u32 *flags) {
    sn_number x = sn_read(fa, env, a), y = sn_read(fb, env, b);
    return sn_add_operands(&x, &y, fo, env, random, flags);
}

SN_FN sn_u64 sn_subtract(const sn_format *fa, sn_u64 a, const sn_format *fb, sn_u64 b, const sn_format *fo,
                         const sn_env *env, sn_u32 random, sn_u32 *flags) {
    sn_number x = sn_read(fa, env, a), y = sn_read(fb, env, b);
    if (y.kind < SN_QUIET_NAN) y.sign = !y.sign;
    return sn_add_operands(&x, &y, fo, env, random, flags);
}

SN_FN sn_u64 sn_multiply(const sn_format *fa, sn_u64 a, const sn_format *fb, sn_u64 b, const sn_format *fo,
                         const sn_env *env, sn_u32 random, sn_u32 *flags) {
    sn_number x = sn_read(fa, env, a), y = sn_read(fb, env, b);
    if (x.kind >= SN_QUIET_NAN || y.kind >= SN_QUIET_NAN) return sn_propagate_nans(fo, env, &x, &y, flags);
    if (x.kind == SN_INF || y.kind == SN_INF) {
        if (x.kind == SN_ZERO || y.kind == SN_ZERO) return sn_invalid_result(fo, env, flags);
        return sn_inf_result(fo, env, x.sign ^ y.sign, flags);
    }
    sn_exact e = sn_product(&x, &y);
    return sn_round_pack(fo, env, &e, random, flags);
}

/* a * b + c */
SN_FN sn_u64 sn_fma(const sn_format *fa, sn_u64 a, const sn_format *fb, sn_u64 b, const sn_format *fc, sn_u64 c,
                    const sn_format *fo, const sn_env *env, sn_u32 random, sn_u32 *flags) {
    sn_number x = sn_read(fa, env, a), y = sn_read(fb, env, b), z = sn_read(fc, env, c);
    sn_i32 inf = x.kind == SN_INF || y.kind == SN_INF;
    sn_i32 invalid = inf && (x.kind == SN_ZERO || y.kind == SN_ZERO);
    if (x.kind >= SN_QUIET_NAN || y.kind >= SN_QUIET_NAN || z.kind >= SN_QUIET_NAN) {
        if (invalid && z.kind == SN_QUIET_NAN && env->nan != SN_NAN_X86) return sn_invalid_result(fo, env, flags);
        if (x.kind == SN_SIGNALING_NAN || y.kind == SN_SIGNALING_NAN || z.kind == SN_SIGNALING_NAN)
            sn_raise(fo, SN_INVALID, flags);
        if (env->nan == SN_NAN_ARM) return sn_quiet(fo, env, sn_chosen_nan(env, &z, sn_chosen_nan(env, &x, &y)), flags);
        return sn_quiet(fo, env, sn_chosen_nan(env, sn_chosen_nan(env, &x, &y), &z), flags);
    }
    if (invalid) return sn_invalid_result(fo, env, flags);
    return sn_add_numbers(sn_product(&x, &y), inf, &z, fo, env, random, flags);
}

#endif

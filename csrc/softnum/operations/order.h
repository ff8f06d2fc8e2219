/* Comparison, minimum and maximum, classes, neighbours, signs, exponents. Contract as in arith.h. */
#ifndef SOFTNUM_ORDER_H
#define SOFTNUM_ORDER_H

#include "softnum/operations/arith.h"

enum { SN_LESS = 0, SN_EQUAL = 1, SN_GREATER = 2, SN_UNORDERED = 3 };

/* The magnitudes of two numbers that are not NaN: SN_LESS, SN_EQUAL or SN_GREATER. */
SN_FN sn_i32 sn_compare_magnitudes(const sn_number *x, const sn_number *y) {
    if (x->kind != SN_FINITE || y->kind != SN_FINITE) /* zero < finite < infinite */
        return x->kind == y->kind ? SN_EQUAL : x->kind < y->kind ? SN_LESS : SN_GREATER;
    sn_i32 length_x = sn_bit_length(x->sig), length_y = sn_bit_length(y->sig);
    sn_i32 top_x = x->exp + length_x, top_y = y->exp + length_y;
    if (top_x != top_y) return top_x < top_y ? SN_LESS : SN_GREATER;
    sn_u64 a = x->sig << (64 - length_x), b = y->sig << (64 - length_y);
    return a == b ? SN_EQUAL : a < b ? SN_LESS : SN_GREATER;
}

/* Two numbers that are not NaN; -0 equals +0. */
SN_FN sn_i32 sn_compare_numbers(const sn_number *x, const sn_number *y) {
    if (x->kind == SN_ZERO && y->kind == SN_ZERO) return SN_EQUAL;
    if (x->sign != y->sign) return x->sign ? SN_LESS : SN_GREATER;
    sn_i32 order = sn_compare_magnitudes(x, y);
    return x->sign ? SN_GREATER - order : order;
}

/* IEEE 754-2019 5.11: SN_LESS ... SN_UNORDERED. The quiet predicates raise INVALID for a signaling NaN only. */
SN_FN sn_u64 sn_compare(const sn_format *fa, sn_u64 a, const sn_format *fb, sn_u64 b, const sn_env *env,
                        sn_i32 signaling, sn_u32 *flags) {
    sn_number x = sn_read(fa, env, a), y = sn_read(fb, env, b);
    if (x.kind >= SN_QUIET_NAN || y.kind >= SN_QUIET_NAN) {
        if (signaling || x.kind == SN_SIGNALING_NAN || y.kind == SN_SIGNALING_NAN)
            sn_raise(fa->p3109 ? fb : fa, SN_INVALID, flags);
        return SN_UNORDERED;
    }
    return (sn_u64)sn_compare_numbers(&x, &y);
}

/* IEEE 754-2019 9.6. number: a NaN gives way to a number (minimumNumber), else it wins (minimum). -0 lies below +0. */
SN_FN sn_u64 sn_extremum(const sn_format *fa, sn_u64 a, const sn_format *fb, sn_u64 b, const sn_format *fo,
                         const sn_env *env, sn_i32 maximum, sn_i32 number, sn_u32 random, sn_u32 *flags) {
    sn_number x = sn_read(fa, env, a), y = sn_read(fb, env, b);
    sn_i32 nan_x = x.kind >= SN_QUIET_NAN, nan_y = y.kind >= SN_QUIET_NAN;
    if ((nan_x || nan_y) && (!number || (nan_x && nan_y))) return sn_propagate_nans(fo, env, &x, &y, flags);
    if (x.kind == SN_SIGNALING_NAN || y.kind == SN_SIGNALING_NAN) sn_raise(fo, SN_INVALID, flags);
    sn_i32 first = nan_y;
    if (!nan_x && !nan_y) {
        sn_i32 order = sn_compare_numbers(&x, &y);
        if (order == SN_EQUAL) order = x.sign == y.sign ? SN_EQUAL : x.sign ? SN_LESS : SN_GREATER;
        first = maximum ? order != SN_LESS : order != SN_GREATER;
    }
    const sn_number *chosen = first ? &x : &y;
    if (chosen->kind == SN_INF) return sn_inf_result(fo, env, chosen->sign, flags);
    sn_exact e = sn_exact_of(chosen);
    return sn_round_pack(fo, env, &e, random, flags);
}

/* IEEE 754-2019 5.10, for codes of one format: whether a comes before b or means the same. -NaN < -inf < ... < +inf <
 * +NaN, -0 < +0; among NaNs of one sign the signaling lie nearer to the numbers, then the payload counts. The NaN in
 * -0's code, and P3109's, come first. */
SN_FN sn_u64 sn_total_order(const sn_format *f, sn_u64 a, sn_u64 b) {
    if (f->kind == SN_FIXED || f->nan_is_negative_zero || f->p3109) {
        sn_number x = sn_unpack(f, a), y = sn_unpack(f, b);
        if (x.kind >= SN_QUIET_NAN || y.kind >= SN_QUIET_NAN) return x.kind >= SN_QUIET_NAN;
        return sn_compare_numbers(&x, &y) != SN_GREATER;
    }
    sn_u64 negative_a = a & f->sign_mask, negative_b = b & f->sign_mask;
    a &= f->magnitude_mask;
    b &= f->magnitude_mask;
    if (f->lowest == SN_LOWEST_ZERO) { /* all codes with exponent field 0 are zero */
        a = a >> f->mantissa_bits ? a : 0;
        b = b >> f->mantissa_bits ? b : 0;
    }
    if (!f->negative_zero) { /* both codes of zero mean +0 */
        negative_a = a ? negative_a : 0;
        negative_b = b ? negative_b : 0;
    }
    if (negative_a != negative_b) return negative_a != 0;
    return negative_a ? a >= b : a <= b;
}

/* IEEE 754-2019 5.7.2: signaling NaN 0, quiet NaN 1, then -infinity 2, -normal, -subnormal, -0 5, +0 6, ... +infinity 9
 */
SN_FN sn_u64 sn_classify(const sn_format *f, sn_u64 code) {
    sn_number x = sn_unpack(f, code);
    if (x.kind >= SN_QUIET_NAN) return x.kind == SN_QUIET_NAN;
    sn_u64 size = 0;
    if (x.kind == SN_FINITE) {
        sn_i32 subnormal = f->kind == SN_FLOAT && x.exp + sn_bit_length(x.sig) - 1 < f->emin;
        size = subnormal ? 1 : 2;
    } else if (x.kind == SN_INF) {
        size = 3;
    }
    return x.sign ? 5 - size : 6 + size;
}

/* The magnitude code of the smallest positive value. */
SN_FN sn_u64 sn_least_magnitude(const sn_format *f) {
    if (f->kind == SN_FLOAT && f->lowest == SN_LOWEST_ZERO) return (sn_u64)1 << f->mantissa_bits;
    return f->has_zero ? 1 : 0;
}

/* IEEE 754-2019 5.3.1, in the operand's own format: the neighbour above (down: below). The largest value of a format
 * without infinities, and every bound of fixed point, is its own neighbour. */
SN_FN sn_u64 sn_next(const sn_format *f, sn_u64 code, sn_i32 down, const sn_env *env, sn_u32 *flags) {
    sn_number x = sn_unpack(f, code);
    if (x.kind >= SN_QUIET_NAN) return sn_propagate_nan(f, env, &x, flags);
    code &= f->magnitude_mask | f->sign_mask;
    if (f->kind == SN_FIXED) {
        sn_u64 mask = f->magnitude_mask | f->sign_mask, bound = down ? f->sign_mask : f->max_code;
        return code == bound ? code : (down ? code - 1 : code + 1) & mask;
    }
    sn_u64 magnitude = code & f->magnitude_mask, least = sn_least_magnitude(f);
    if (x.kind == SN_ZERO) {
        if (down && !f->is_signed) return 0;
        return sn_with_sign(f, least, down);
    }
    if (x.sign == down) { /* away from zero */
        if (x.kind == SN_INF) return code;
        if (magnitude == f->max_code) return f->has_inf ? sn_with_sign(f, f->inf_code, x.sign) : code;
        return code + 1;
    }
    if (x.kind == SN_INF) return sn_with_sign(f, f->max_code, x.sign);
    if (magnitude == least) return f->has_zero ? sn_with_sign(f, 0, x.sign) : code;
    return code - 1;
}

/* The sign that copysign copies: of a float the sign bit, whatever the code means. */
SN_FN sn_i32 sn_sign(const sn_format *f, sn_u64 code) { return (code & f->sign_mask) != 0; }

/* IEEE 754-2019 5.5.1: the sign bit alone, no flags, NaNs included. set: the sign to give. The NaN in -0's code stays;
 * a zero that has no -0 is code 0. A negative result in an unsigned float is NaN, in P3109's what it rounds to; fixed
 * point is negated, and may overflow. */
SN_FN sn_u64 sn_set_sign(const sn_format *f, sn_u64 code, sn_i32 set, const sn_env *env, sn_u32 random, sn_u32 *flags) {
    sn_number x = sn_unpack(f, code);
    code &= f->magnitude_mask | f->sign_mask;
    if (f->kind == SN_FIXED) {
        sn_exact e = sn_exact_of(&x);
        e.sign = set;
        return sn_round_pack(f, env, &e, random, flags);
    }
    if (x.kind >= SN_QUIET_NAN) {
        if (f->nan_is_negative_zero || !f->is_signed) return code;
        return (code & f->magnitude_mask) | (set ? f->sign_mask : 0);
    }
    if (!f->is_signed && set && x.kind != SN_ZERO)
        return f->p3109 ? sn_below_zero(f, env, x.kind == SN_INF) : sn_invalid_result(f, env, flags);
    if (!f->negative_zero && x.kind == SN_ZERO) return 0;
    return sn_with_sign(f, code & f->magnitude_mask, set);
}

/* IEEE 754-2019 5.3.3: x * 2^n, rounded once. n is clamped to where every format has overflowed or underflowed. */
SN_FN sn_u64 sn_scalb(const sn_format *fa, sn_u64 a, sn_i64 n, const sn_format *fo, const sn_env *env, sn_u32 random,
                      sn_u32 *flags) {
    const sn_i64 far = (sn_i64)1 << 20;
    sn_number x = sn_read(fa, env, a);
    if (x.kind >= SN_QUIET_NAN) return sn_propagate_nan(fo, env, &x, flags);
    if (x.kind == SN_INF) return sn_inf_result(fo, env, x.sign, flags);
    sn_exact e = sn_exact_of(&x);
    e.exp += (sn_i32)(n < -far ? -far : n > far ? far : n);
    return sn_round_pack(fo, env, &e, random, flags);
}

/* IEEE 754-2019 5.3.3: the exponent of x as a value; logB(0) is -infinity and raises DIVIDE_BY_ZERO. */
SN_FN sn_u64 sn_logb(const sn_format *fa, sn_u64 a, const sn_format *fo, const sn_env *env, sn_u32 random,
                     sn_u32 *flags) {
    sn_number x = sn_read(fa, env, a);
    if (x.kind >= SN_QUIET_NAN) return sn_propagate_nan(fo, env, &x, flags);
    if (x.kind == SN_ZERO) sn_raise(fo, SN_DIVIDE_BY_ZERO, flags);
    if (x.kind != SN_FINITE) return sn_inf_result(fo, env, x.kind == SN_ZERO, flags);
    sn_i32 e = x.exp + sn_bit_length(x.sig) - 1;
    sn_exact value = sn_exact_make(e < 0, sn_u128_make(0, (sn_u64)(e < 0 ? -e : e)), 0);
    return sn_round_pack(fo, env, &value, random, flags);
}

/* IEEE 754-2019 5.9: x rounded to an integer in env's mode, then delivered to fo (exactly, unless fo is narrower). */
SN_FN sn_u64 sn_round_to_integral(const sn_format *fa, sn_u64 a, const sn_format *fo, const sn_env *env, sn_u32 random,
                                  sn_u32 *flags) {
    sn_number x = sn_read(fa, env, a);
    if (x.kind >= SN_QUIET_NAN) return sn_propagate_nan(fo, env, &x, flags);
    if (x.kind == SN_INF) return sn_inf_result(fo, env, x.sign, flags);
    sn_exact e = sn_exact_of(&x);
    if (x.exp < 0) e = sn_to_integer(fo, &e, env, random, flags);
    return sn_round_pack(fo, env, &e, random, flags);
}

/* IEEE 754-2019 5.8: x as an integer, fo being a fixed-point format without fraction. What has no integer there raises
 * INVALID alone: a NaN becomes env->invalid_code, and so does what is out of range, unless env->overflow saturates. */
SN_FN sn_u64 sn_convert_to_integer(const sn_format *fa, sn_u64 a, const sn_format *fo, const sn_env *env, sn_u32 random,
                                   sn_u32 *flags) {
    sn_number x = sn_read(fa, env, a);
    if (x.kind >= SN_QUIET_NAN) return sn_invalid_result(fo, env, flags);
    sn_exact e = sn_exact_of(&x);
    sn_u32 inexact = 0;
    if (x.kind == SN_ZERO) return 0;
    if (x.exp < 0) e = sn_to_integer(fo, &e, env, random, &inexact);
    sn_u64 limit = x.sign ? fo->sign_mask : fo->max_code;
    if (x.kind != SN_INF && e.exp + sn_u128_bit_length(e.sig) <= 64) {
        sn_u64 magnitude = sn_u128_shl(e.sig, e.exp).lo;
        if (magnitude <= limit) {
            sn_raise(fo, inexact, flags);
            return (x.sign ? 0 - magnitude : magnitude) & (fo->magnitude_mask | fo->sign_mask);
        }
    }
    sn_raise(fo, SN_INVALID, flags);
    return env->overflow == SN_OVERFLOW_SATURATE ? limit : env->invalid_code;
}

#endif

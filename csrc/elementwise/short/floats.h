/* The short way of operations on floats, for normal operands and normal results: what nearly all data are. Where it
 * does not apply it says so, and the definition (csrc/softnum/) computes the result.
 *
 * Domain, checked by sn_normals_prepare for the formats and the environment, and for the values as they come: operands
 * have at most 60 fraction bits and the result at most 59; every operand is a normal number; the result, rounded, lies
 * above the lowest binade and does not overflow. Then no flag but INEXACT can arise, and neither flushing, tininess,
 * the overflow rule nor NaN profiles matter.
 *
 * Why it is exact: a result is kept as 64 bits, its leading bit at the top, the lowest one jammed: set if any bit below
 * is. A difference loses at most one leading bit unless the exponents differ by less than two, and then nothing was
 * jammed; with the bit that a sum needs, the jam is bit 2 or below. Rounding to m + 1 bits compares bit 62 - m >= 3,
 * and asks whether any below is set. Stochastic rounding looks at the r bits from there, at the next (gfloat's kinds),
 * and at whether any below is set: r + 4 <= 63 - m.
 */
#ifndef SOFTNUM_SHORT_FLOATS_H
#define SOFTNUM_SHORT_FLOATS_H

#include "elementwise/elementwise.h"

/* (-1)^sign * sig * 2^(exp - 63), the top bit of sig set. */
typedef struct {
    sn_u64 sig;
    sn_i32 exp, sign;
} sn_normal;

/* What a code stands for; returns 0 if it is no normal number. */
SN_ALWAYS int sn_normal_of(const sn_normal_operand *f, sn_u64 code, sn_normal *n) {
    const sn_u64 magnitude = code & f->magnitude_mask;
    n->sign = (code & f->sign_mask) != 0;
    n->sig = magnitude << f->shift | (sn_u64)1 << 63;
    n->exp = (sn_i32)(magnitude >> (63 - f->shift)) + f->base;
    return magnitude - f->first <= f->span;
}

/* sig, its top bit set and its lowest jammed, times 2^(exp - 63), rounded; returns 0 if it is not normal. */
SN_ALWAYS int sn_normal_round(const sn_normals *t, sn_u64 sig, sn_i32 exp, sn_i32 sign, sn_u32 random, sn_u64 *code,
                              sn_u32 *flags) {
    const sn_i32 m = t->mantissa_bits;
    const sn_u64 fraction = sig << m << 1;
    sn_u64 magnitude = (sig >> (63 - m)) + ((sn_u64)(sn_i64)(exp - t->exp_of_zero) << m);
    magnitude += sn_short_rounds_up(t->env, fraction, sign, magnitude & 1, random);
    *code = magnitude | ((0 - (sn_u64)sign) & t->sign_mask);
    *flags = (0 - (sn_u32)(fraction != 0)) & t->inexact;
    return (sn_u32)(exp - t->exp_first) <= t->exp_span && magnitude <= t->max_code && !(sign & t->is_unsigned);
}

SN_ALWAYS int sn_normal_add(const sn_normals *t, sn_normal x, sn_normal y, sn_u32 random, sn_u64 *code, sn_u32 *flags) {
    /* by masks: which is larger, and whether the signs differ, no CPU can foresee */
    sn_i32 swap = 0 - ((x.exp < y.exp) | ((x.exp == y.exp) & (x.sig < y.sig)));
    sn_u64 other = (x.sig ^ y.sig) & (sn_u64)(sn_i64)swap;
    sn_i32 exp = x.exp ^ ((x.exp ^ y.exp) & swap), sign = x.sign ^ ((x.sign ^ y.sign) & swap);
    sn_i32 distance = 2 * exp - x.exp - y.exp;
    sn_u64 a = (x.sig ^ other) >> 1, b = (y.sig ^ other) >> 1, lost = 1;
    if (distance < 63) {
        lost = (b & (((sn_u64)1 << distance) - 1)) != 0;
        b >>= distance;
    } else {
        b = 0;
    }
    b |= lost;
    sn_u64 minus = 0 - (sn_u64)(x.sign ^ y.sign);
    sn_u64 sum = a + ((b ^ minus) - minus);
    if (!sum) return 0;
    sn_i32 zeros = 64 - sn_bit_length(sum);
    return sn_normal_round(t, sum << zeros, exp + 1 - zeros, sign, random, code, flags);
}

/* The product's 128 bits, the top one set; its exponent to *exp. */
SN_ALWAYS sn_u128 sn_normal_product(sn_normal x, sn_normal y, sn_i32 *exp) {
    sn_u128 p = sn_u128_mul(x.sig, y.sig);
    const sn_u64 left = ~p.hi >> 63; /* no carry: by one place */
    *exp = x.exp + y.exp + 1 - (sn_i32)left;
    return sn_u128_make(p.hi << left | (p.lo >> 63 & left), p.lo << left);
}

SN_ALWAYS int sn_normal_multiply(const sn_normals *t, sn_normal x, sn_normal y, sn_u32 random, sn_u64 *code,
                                 sn_u32 *flags) {
    sn_i32 exp;
    sn_u128 p = sn_normal_product(x, y, &exp);
    return sn_normal_round(t, p.hi | (p.lo != 0), exp, x.sign ^ y.sign, random, code, flags);
}

SN_ALWAYS int sn_normal_fma(const sn_normals *t, sn_normal x, sn_normal y, sn_normal z, sn_u32 random, sn_u64 *code,
                            sn_u32 *flags) {
    sn_i32 exp, sign = x.sign ^ y.sign;
    const sn_u128 product = sn_normal_product(x, y, &exp);
    if (t->narrow_product) { /* an operand of a sum like any other */
        const sn_normal whole = {product.hi, exp, sign};
        return sn_normal_add(t, whole, z, random, code, flags);
    }
    sn_u128 a = sn_u128_shr(product, 2), b = sn_u128_make(z.sig >> 2, z.sig << 62);
    const sn_u64 minus = 0 - (sn_u64)(sign ^ z.sign);
    sn_i32 swap = 0 - ((exp < z.exp) | ((exp == z.exp) & sn_u128_less(a, b))), top = exp ^ ((exp ^ z.exp) & swap);
    sn_u64 high = (a.hi ^ b.hi) & (sn_u64)(sn_i64)swap, low = (a.lo ^ b.lo) & (sn_u64)(sn_i64)swap;
    a = sn_u128_make(a.hi ^ high, a.lo ^ low);
    b = sn_u128_make(b.hi ^ high, b.lo ^ low);
    sign ^= (sign ^ z.sign) & swap;
    sn_i32 distance = 2 * top - exp - z.exp;
    sn_u64 lost = (sn_u64)sn_u128_low_bits(b, distance);
    b = sn_u128_shr(b, distance);
    b.lo |= lost;
    a = sn_u128_add(a, sn_u128_sub(sn_u128_make(b.hi ^ minus, b.lo ^ minus), sn_u128_make(minus, minus)));
    sn_i32 length = sn_u128_bit_length(a);
    if (!length) return 0;
    a = sn_u128_shl(a, 128 - length);
    return sn_normal_round(t, a.hi | (a.lo != 0), top + length - 126, sign, random, code, flags);
}

SN_ALWAYS int sn_normal_divide(const sn_normals *t, sn_normal x, sn_normal y, sn_u32 random, sn_u64 *code,
                               sn_u32 *flags) {
    sn_u64 rest, less = x.sig < y.sig;
    sn_u64 q = sn_u128_divide(sn_u128_make(x.sig >> (1 - less), x.sig << 63 & (less - 1)), y.sig, &rest);
    return sn_normal_round(t, q | (rest != 0), x.exp - y.exp - (sn_i32)less, x.sign ^ y.sign, random, code, flags);
}

#if defined(__GNUC__) && SN_NATIVE_128
/* floor(sqrt(n)) for n >= 2^126, and whether there is a rest: an approximation in binary64, corrected in integers. */
SN_ALWAYS sn_u64 sn_normal_isqrt(sn_u128 n, sn_u64 *rest) {
    typedef sn_native_128 u128;
    __extension__ typedef __int128 i128;
    const u128 whole = sn_u128_native(n);
    /* times 2^31.5 * (1 - 2^-50): below 2^63, as casts of more raise the invalid flag, which callers may look at */
    sn_u64 root = (sn_u64)(sn_i64)(__builtin_sqrt((double)(n.hi >> 1)) * 3037000499.976047) << 1;
    i128 left = (i128)(whole - (u128)root * root); /* less than 2^80 in size */
    root += (sn_u64)(sn_i64)((double)(sn_i64)(left >> 20) * 262144.0 / (double)(sn_i64)(root >> 1));
    left = (i128)(whole - (u128)root * root);
    for (; left < 0; left += 2 * (i128)root + 1)
        root--;
    for (; left > 2 * (i128)root; root++)
        left -= 2 * (i128)root + 1;
    *rest = left != 0;
    return root;
}

SN_ALWAYS int sn_normal_sqrt(const sn_normals *t, sn_normal x, sn_u32 random, sn_u64 *code, sn_u32 *flags) {
    sn_u64 rest, odd = (sn_u64)x.exp & 1;
    if (t->narrow_root) { /* 32 bits of root tell all: five more than are kept */
        const sn_u64 n = x.sig >> (1 - odd);
        sn_u64 r = (sn_u64)(sn_i64)__builtin_sqrt(2.0 * (double)(sn_i64)(n >> 1));
        r -= r >> 32;
        r -= r * r > n;
        r += n - r * r > 2 * r;
        rest = (n != r * r) | (x.sig & 1 & (odd ^ 1));
        return !x.sign && sn_normal_round(t, r << 32 | rest, (x.exp - (sn_i32)odd) / 2, 0, random, code, flags);
    }
    sn_u64 root = sn_normal_isqrt(sn_u128_make(x.sig >> (1 - odd), x.sig << 63 & (odd - 1)), &rest);
    return !x.sign && sn_normal_round(t, root | rest, (x.exp - (sn_i32)odd) / 2, 0, random, code, flags);
}
#else
SN_ALWAYS int sn_normal_sqrt(const sn_normals *t, sn_normal x, sn_u32 random, sn_u64 *code, sn_u32 *flags) {
    (void)t, (void)x, (void)random, (void)code, (void)flags;
    return 0;
}
#endif

SN_ALWAYS int sn_short_float_exists(int op) {
    return op == SN_OP_convert || op == SN_OP_add || op == SN_OP_subtract || op == SN_OP_multiply ||
           op == SN_OP_divide || op == SN_OP_fma || op == SN_OP_sqrt;
}

/* An operation by the short way; returns 0, and nothing else, if its operands or its result lie outside the domain. */
SN_ALWAYS int sn_short_float(int op, const sn_normals *t, const sn_u64 *in, sn_u32 random, sn_u64 *code,
                             sn_u32 *flags) {
    sn_normal x, y, z;
    if (!sn_short_float_exists(op) || !sn_normal_of(&t->operand[0], in[0], &x)) return 0;
    if (op == SN_OP_convert) return sn_normal_round(t, x.sig, x.exp, x.sign, random, code, flags);
    if (op == SN_OP_sqrt) return sn_normal_sqrt(t, x, random, code, flags);
    if (!sn_normal_of(&t->operand[1], in[1], &y)) return 0;
    if (op == SN_OP_fma)
        return sn_normal_of(&t->operand[2], in[2], &z) && sn_normal_fma(t, x, y, z, random, code, flags);
    if (op == SN_OP_divide) return sn_normal_divide(t, x, y, random, code, flags);
    if (op == SN_OP_multiply) return sn_normal_multiply(t, x, y, random, code, flags);
    y.sign ^= op == SN_OP_subtract;
    return sn_normal_add(t, x, y, random, code, flags);
}

/* What the lanes need for all that is no normal number: t->whole. Their domain for it: operands and result have
 * subnormals and zero, -0 is a zero or the NaN, NaNs are canonical, and nothing is flushed. */
static inline void sn_normals_whole(int op, const sn_format *operands, const sn_format *out, sn_normals *t) {
    const sn_env *env = t->env;
    t->whole = env->nan == SN_NAN_CANONICAL && !env->flush_inputs && !env->flush_results;
    for (int i = -1; i < sn_operation_operands(op); i++) {
        const sn_format *f = i < 0 ? out : &operands[i];
        t->whole &= f->lowest == SN_LOWEST_SUBNORMAL && f->has_zero &&
                    (!f->is_signed || f->negative_zero || f->nan_is_negative_zero);
    }
    if (!t->whole) return;
    t->emin = out->emin;
    t->exp_first = out->emin; /* the lowest binade is like any other */
    t->exp_span = (sn_u32)(out->emax - out->emin);
    t->negative_zero = out->negative_zero;
    t->has_nan = out->has_nan;
    t->nan_code = out->nan_code;
    t->zero_divides_to_nan = out->p3109;
    t->raises = out->p3109 ? 0 : ~(sn_u32)0;
    t->underflow = t->raises & SN_UNDERFLOW;
    t->overflows = t->raises & (SN_FLAG_OVERFLOW | SN_INEXACT);
    for (int sign = 0; sign < 2; sign++) {
        sn_u32 flags = 0;
        t->overflow[sign] = sn_overflowed(out, env, sign, &flags);
        t->infinity[sign] = sn_inf_result(out, env, sign, &flags);
    }
}

/* Whether lanes of 32 bits leave as much room as those of 64 do. */
static inline int sn_normals_in_32(int op, const sn_format *operands, const sn_format *out, const sn_env *env) {
    int fits = op != SN_OP_divide && op != SN_OP_sqrt && out->mantissa_bits <= 27 && out->bits <= 32 &&
               out->max_code < 0xffffffff &&
               (!sn_is_stochastic(env) || env->stochastic_bits + 4 <= 31 - out->mantissa_bits);
    const int count = sn_operation_operands(op), factors = op == SN_OP_multiply || op == SN_OP_fma;
    for (int k = 0; k < count; k++)
        fits &= operands[k].mantissa_bits <= (factors && k < 2 ? 15 : 28) && operands[k].bits <= 32 &&
                operands[k].max_code < 0xffffffff;
    return fits && (op != SN_OP_fma || operands[0].mantissa_bits + operands[1].mantissa_bits + 2 <= 29);
}

/* The numbers of the short way, if the operation has one and its formats and environment lie in the domain. */
static inline int sn_normals_prepare(int op, const sn_format *operands, const sn_format *out, const sn_env *env,
                                     sn_normals *t) {
    if (!sn_short_float_exists(op) || out->kind != SN_FLOAT || out->mantissa_bits > 59) return 0;
    if (out->max_code == ~(sn_u64)0) return 0; /* what is rounded up beyond it would wrap */
    if (sn_is_stochastic(env) && (env->stochastic_bits < 1 || env->stochastic_bits + 4 > 63 - out->mantissa_bits))
        return 0;
    for (int i = 0; i < sn_operation_operands(op); i++) {
        const sn_format *f = &operands[i];
        if (f->kind != SN_FLOAT || f->mantissa_bits > 60 || f->max_code == ~(sn_u64)0) return 0;
        const sn_u64 first = (sn_u64)1 << f->mantissa_bits;
        if (f->max_code < first) return 0;
        const sn_normal_operand o = {f->magnitude_mask,
                                     f->sign_mask,
                                     first,
                                     f->max_code - first,
                                     63 - f->mantissa_bits,
                                     f->emin - (f->lowest != SN_LOWEST_NORMAL),
                                     f->has_inf ? f->inf_code : ~(sn_u64)0,
                                     f->quiet_bit,
                                     f->nan_is_negative_zero};
        t->operand[i] = o;
    }
    t->env = env;
    t->max_code = out->max_code;
    t->sign_mask = out->sign_mask;
    t->mantissa_bits = out->mantissa_bits;
    t->exp_of_zero = out->emin + (out->lowest == SN_LOWEST_NORMAL);
    t->exp_first = out->emin + 1;
    t->exp_span = (sn_u32)(out->emax - out->emin - 1);
    t->is_unsigned = !out->is_signed;
    t->narrow_product = op == SN_OP_fma && operands[0].mantissa_bits + operands[1].mantissa_bits + 2 <= 61;
    t->narrow_factors =
        (op == SN_OP_fma || op == SN_OP_multiply) && operands[0].mantissa_bits <= 31 && operands[1].mantissa_bits <= 31;
    t->narrow_root = out->mantissa_bits <= 26 && !sn_is_stochastic(env);
    t->in_lanes = sn_modes[env->rounding].family < SN_FAMILY_RANDOM;
    t->in_32 = sn_normals_in_32(op, operands, out, env);
    t->inexact = out->p3109 ? 0 : SN_INEXACT;
    sn_normals_whole(op, operands, out, t);
    return out->emax > out->emin;
}

#endif

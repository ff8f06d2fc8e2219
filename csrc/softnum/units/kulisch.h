/* Exact sums, rounded once: a fixed-point accumulator as wide as all values of the formats need (Kulisch and Miranker
 * 1981, "Computer Arithmetic in Theory and Practice"). The result does not depend on the order of summation.
 *
 * Contract: every product and addend is a multiple of 2^bottom, and the sum fits the words in two's complement; the
 * caller computes both from the formats. A term of trailing zeros below 2^bottom is a multiple of it all the same. */
#ifndef SOFTNUM_KULISCH_H
#define SOFTNUM_KULISCH_H

#include "softnum/operations/arith.h"

/* Enough for products of two binary64 numbers, 2^32 of them: 4229 bits, and for biases some way off the usual one. */
enum { SN_KULISCH_WORDS = 80 };

/* What a sum has met: decides the sign of a zero, and what is no number. */
enum {
    SN_MET_PLUS_ZERO = 1,
    SN_MET_MINUS_ZERO = 2,
    SN_MET_NUMBER = 4,
    SN_MET_PLUS_INF = 8,
    SN_MET_MINUS_INF = 16,
    SN_MET_NAN = 32,
    SN_MET_INVALID = 64 /* a signaling NaN, or infinity times zero */
};

/* (word[0] + word[1] * 2^64 + ...) * 2^bottom, in two's complement. */
typedef struct {
    sn_u64 word[SN_KULISCH_WORDS];
    sn_i32 words, bottom;
    sn_i32 met; /* SN_MET_*, OR-ed */
} sn_kulisch;

/* An empty sum of 1 <= words <= SN_KULISCH_WORDS. */
SN_FN void sn_kulisch_clear(sn_kulisch *k, sn_i32 bottom, sn_i32 words) {
    for (sn_i32 i = 0; i < words; i++)
        k->word[i] = 0;
    k->words = words;
    k->bottom = bottom;
    k->met = 0;
}

/* Add or, if negative, subtract sig * 2^exp. */
SN_FN void sn_kulisch_add_exact(sn_kulisch *k, sn_u128 sig, sn_i32 exp, sn_i32 negative) {
    sn_i32 shift = exp - k->bottom;
    if (shift < 0) { /* only zeros leave */
        sig = sn_u128_shr(sig, -shift);
        shift = 0;
    }
    const sn_i32 first = shift >> 6, bit = shift & 63;
    const sn_u64 part[3] = {sig.lo << bit, bit ? sig.hi << bit | sig.lo >> (64 - bit) : sig.hi,
                            bit ? sig.hi >> (64 - bit) : 0};
    sn_u64 carry = 0;
    for (sn_i32 i = 0; first + i < k->words && (i < 3 || carry); i++) {
        const sn_u64 term = i < 3 ? part[i] : 0, old = k->word[first + i];
        sn_u64 sum = negative ? old - term : old + term;
        const sn_u64 wrapped = negative ? old < term : sum < term;
        k->word[first + i] = negative ? sum - carry : sum + carry;
        carry = wrapped | (negative ? sum < carry : k->word[first + i] < carry);
    }
}

SN_FN sn_i32 sn_kulisch_kind(const sn_number *x) {
    switch (x->kind) {
    case SN_ZERO: return x->sign ? SN_MET_MINUS_ZERO : SN_MET_PLUS_ZERO;
    case SN_FINITE: return SN_MET_NUMBER;
    case SN_INF: return x->sign ? SN_MET_MINUS_INF : SN_MET_PLUS_INF;
    case SN_SIGNALING_NAN: return SN_MET_NAN | SN_MET_INVALID;
    default: return SN_MET_NAN;
    }
}

/* Add x. */
SN_FN void sn_kulisch_add(sn_kulisch *k, const sn_number *x) {
    k->met |= sn_kulisch_kind(x);
    if (x->kind == SN_FINITE) sn_kulisch_add_exact(k, sn_u128_make(0, x->sig), x->exp, x->sign);
}

/* Add x * y. */
SN_FN void sn_kulisch_add_product(sn_kulisch *k, const sn_number *x, const sn_number *y) {
    const sn_i32 sign = x->sign ^ y->sign;
    if (x->kind >= SN_QUIET_NAN || y->kind >= SN_QUIET_NAN) {
        const sn_i32 signals = x->kind == SN_SIGNALING_NAN || y->kind == SN_SIGNALING_NAN;
        k->met |= signals ? SN_MET_NAN | SN_MET_INVALID : SN_MET_NAN;
    } else if (x->kind == SN_INF || y->kind == SN_INF) {
        const sn_i32 infinity = sign ? SN_MET_MINUS_INF : SN_MET_PLUS_INF;
        k->met |= x->kind == SN_ZERO || y->kind == SN_ZERO ? SN_MET_INVALID : infinity;
    } else if (x->kind == SN_ZERO || y->kind == SN_ZERO) {
        k->met |= sign ? SN_MET_MINUS_ZERO : SN_MET_PLUS_ZERO;
    } else {
        k->met |= SN_MET_NUMBER;
        sn_kulisch_add_exact(k, sn_u128_mul(x->sig, y->sig), x->exp + y->exp, sign);
    }
}

/* Bits low ... low + 127 of the accumulator; zeros outside it. */
SN_FN sn_u128 sn_kulisch_window(const sn_kulisch *k, sn_i32 low) {
    const sn_i32 below = low < 0 ? -low : 0;
    const sn_i32 first = (low + below) >> 6, bit = (low + below) & 63;
    sn_u64 word[3];
    for (sn_i32 i = 0; i < 3; i++)
        word[i] = first + i < k->words ? k->word[first + i] : 0;
    sn_u128 window = sn_u128_make(word[1], word[0]);
    if (bit) window = sn_u128_make(word[1] >> bit | word[2] << (64 - bit), word[0] >> bit | word[1] << (64 - bit));
    return sn_u128_shl(window, below);
}

/* Whether one of the low n bits is set. */
SN_FN sn_i32 sn_kulisch_low_bits(const sn_kulisch *k, sn_i32 n) {
    sn_i32 i = 0;
    for (; n >= 64 && i < k->words; n -= 64)
        if (k->word[i++]) return 1;
    return n > 0 && n < 64 && i < k->words && k->word[i] << (64 - n) != 0;
}

/* The sum, not zero, as round_pack takes it for the format f. Makes the accumulator positive. */
SN_FN sn_exact sn_kulisch_value(sn_kulisch *k, const sn_format *f) {
    sn_exact x = sn_exact_make((sn_i32)(k->word[k->words - 1] >> 63), sn_u128_make(0, 0), k->bottom);
    sn_u64 carry = 1;
    for (sn_i32 i = 0; x.sign && i < k->words; i++) {
        k->word[i] = ~k->word[i] + carry;
        carry = carry && k->word[i] == 0;
    }
    sn_i32 top = k->words;
    while (top > 0 && k->word[top - 1] == 0)
        top--;
    top = 64 * (top - 1) + sn_bit_length(k->word[top - 1]);
    sn_i32 low = top > 128 ? top - 128 : 0;
    /* as sn_sum: fixed point sees 2^-60 of its last place and all above, modulo, if the sum lies far beyond its range
     */
    if (f->kind == SN_FIXED && k->bottom + top + f->mantissa_bits > 88) {
        x.modular = 1;
        low = -f->mantissa_bits - 60 - k->bottom;
    }
    x.sig = sn_kulisch_window(k, low);
    x.sticky = sn_kulisch_low_bits(k, low);
    x.exp = k->bottom + low;
    return x;
}

/* The sum rounded once into the format f; the accumulator is used up. Any NaN, infinity times zero and infinities of
 * both signs give the canonical NaN (INVALID as for fma, but infinities that a NaN accompanies are not looked at), an
 * infinity gives itself. A zero: the sign that all terms have, if they are zeros of one sign; else +0, and -0 in the
 * mode SN_DOWN (IEEE 754-2019 6.3). */
SN_FN sn_u64 sn_kulisch_round(sn_kulisch *k, const sn_format *f, const sn_env *env, sn_u32 random, sn_u32 *flags) {
    const sn_i32 infinities = k->met & (SN_MET_PLUS_INF | SN_MET_MINUS_INF), nan = k->met & SN_MET_NAN;
    if ((k->met & SN_MET_INVALID) || (infinities == (SN_MET_PLUS_INF | SN_MET_MINUS_INF) && !nan))
        return sn_invalid_result(f, env, flags);
    if (nan) return f->has_nan ? f->nan_code : sn_invalid_result(f, env, flags);
    if (infinities) return sn_inf_result(f, env, infinities == SN_MET_MINUS_INF, flags);
    if (!sn_kulisch_low_bits(k, 64 * k->words)) {
        const sn_i32 all_minus = k->met == SN_MET_MINUS_ZERO, all_plus = k->met == SN_MET_PLUS_ZERO;
        const sn_i32 negative = all_minus || (!all_plus && env->rounding == SN_DOWN);
        const sn_exact zero = sn_exact_make(negative, sn_u128_make(0, 0), 0);
        return sn_round_pack(f, env, &zero, random, flags);
    }
    const sn_exact x = sn_kulisch_value(k, f);
    return sn_round_pack(f, env, &x, random, flags);
}

#endif

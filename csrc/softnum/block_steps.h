/* The steps of dot products of block formats by the definition (csrc/block.c has them for whole matrices), one output
 * at a time: acc = R(acc + [R_product](sum of the block * (scale_a * scale_b))).
 *
 * Contract of exact sums: as kulisch.h; `bottom` and `words` hold scaled sums and the accumulator, `plain` the last bit
 * of products of elements. Products of two elements, and of two scales, have 64 bits at most. */
#ifndef SOFTNUM_BLOCK_STEPS_H
#define SOFTNUM_BLOCK_STEPS_H

#include "device.h"
#include "kulisch.h"

/* A number times scales: exact, or a zero, an infinity or nothing: of kind SN_QUIET_NAN, or SN_SIGNALING_NAN where it
 * came of numbers or of a signaling NaN. */
typedef struct {
    sn_exact exact;
    sn_i32 kind;
} sn_scaled;

/* Where the sum of a block is made; number: whether the scales are one. */
typedef struct {
    sn_kulisch sum;
    sn_number scale;
    sn_i32 number;
} sn_block_sum;

/* What a sum of blocks is rounded by; product: null if a scaled sum stays exact. */
typedef struct {
    const sn_format *product, *accumulator;
    const sn_env *product_env, *sum_env;
} sn_block_rounding;

SN_FN sn_i32 sn_kind_of_product(const sn_number *x, const sn_number *y) {
    const sn_i32 larger = x->kind > y->kind ? x->kind : y->kind;
    if (larger <= SN_FINITE) return x->kind == SN_ZERO || y->kind == SN_ZERO ? SN_ZERO : SN_FINITE;
    return larger == SN_INF && (x->kind == SN_ZERO || y->kind == SN_ZERO) ? SN_SIGNALING_NAN : larger;
}

SN_FN sn_number sn_scale_of(const sn_number *x, const sn_number *y) {
    sn_number s;
    s.kind = sn_kind_of_product(x, y);
    s.sign = x->sign ^ y->sign;
    s.exp = x->exp + y->exp;
    s.sig = s.kind == SN_FINITE ? x->sig * y->sig : 0;
    return s;
}

SN_FN sn_number sn_one(void) {
    sn_number one;
    one.kind = SN_FINITE;
    one.sign = one.exp = 0;
    one.sig = 1;
    return one;
}

SN_FN sn_scaled sn_scaled_of(const sn_number *x, const sn_number *scale) {
    sn_scaled t;
    t.kind = sn_kind_of_product(x, scale);
    t.exact = sn_exact_make(x->sign ^ scale->sign, sn_u128_make(0, 0), 0);
    if (t.kind == SN_FINITE)
        t.exact = sn_exact_make(t.exact.sign, sn_u128_mul(x->sig, scale->sig), x->exp + scale->exp);
    return t;
}

SN_FN sn_u64 sn_nan_of_kind(const sn_format *f, const sn_env *env, sn_i32 kind, sn_u32 *flags) {
    if (kind == SN_SIGNALING_NAN) sn_raise(f, SN_INVALID, flags);
    return f->has_nan ? f->nan_code : sn_invalid_result(f, env, flags);
}

SN_FN sn_u64 sn_scaled_rounded(const sn_scaled *t, const sn_format *f, const sn_env *env, sn_u32 word, sn_u32 *flags) {
    if (t->kind >= SN_QUIET_NAN) return sn_nan_of_kind(f, env, t->kind, flags);
    if (t->kind == SN_INF) return sn_inf_result(f, env, t->exact.sign, flags);
    return sn_round_pack(f, env, &t->exact, word, flags);
}

SN_FN sn_u64 sn_scaled_added(const sn_scaled *t, const sn_number *y, const sn_format *f, const sn_env *env, sn_u32 word,
                             sn_u32 *flags) {
    if (t->kind >= SN_QUIET_NAN || y->kind >= SN_QUIET_NAN)
        return sn_nan_of_kind(f, env, t->kind > y->kind ? t->kind : y->kind, flags);
    return sn_add_numbers(t->exact, t->kind == SN_INF, y, f, env, word, flags);
}

/* A scaled sum, or what it is first rounded to, added to the running sum. */
SN_FN sn_u64 sn_block_term(const sn_block_rounding *r, sn_scaled t, const sn_number *old, sn_u32 first, sn_u32 second,
                           sn_u32 *product_flags, sn_u32 *flags) {
    if (r->product) {
        const sn_number one = sn_one();
        const sn_u64 code = sn_scaled_rounded(&t, r->product, r->product_env, first, product_flags);
        const sn_number p = sn_unpack(r->product, code);
        t = sn_scaled_of(&p, &one);
    }
    return sn_scaled_added(&t, old, r->accumulator, r->sum_env, second, flags);
}

/* An empty sum of a block of these scales. */
SN_FN void sn_block_begin(sn_block_sum *s, const sn_number *x, const sn_number *y, sn_i32 bottom, sn_i32 plain,
                          sn_i32 words) {
    s->scale = sn_scale_of(x, y);
    s->number = s->scale.kind == SN_FINITE;
    sn_kulisch_clear(&s->sum, s->number ? bottom : plain, words);
}

/* One product of elements, scaled where the scales are a number. */
SN_FN void sn_block_product(sn_block_sum *s, const sn_number *x, const sn_number *y) {
    const sn_i32 sign = s->number ? s->scale.sign : 0;
    if (x->kind != SN_FINITE || y->kind != SN_FINITE) {
        sn_number z = *x;
        z.sign ^= sign;
        sn_kulisch_add_product(&s->sum, &z, y);
        return;
    }
    s->sum.met |= SN_MET_NUMBER;
    sn_kulisch_add_exact(&s->sum, sn_u128_mul(x->sig * y->sig, s->number ? s->scale.sig : 1),
                         x->exp + y->exp + (s->number ? s->scale.exp : 0), x->sign ^ y->sign ^ sign);
}

/* What an exact sum of a block is: its kind and sign. Its number stays in the accumulator. */
SN_FN sn_number sn_block_kind(const sn_kulisch *sum) {
    sn_number s;
    const sn_i32 infinities = sum->met & (SN_MET_PLUS_INF | SN_MET_MINUS_INF), nan = sum->met & SN_MET_NAN;
    s.kind = SN_FINITE;
    s.sign = s.exp = 0;
    s.sig = 1; /* of a number that meets an infinite scale */
    if ((sum->met & SN_MET_INVALID) || (!nan && infinities == (SN_MET_PLUS_INF | SN_MET_MINUS_INF)))
        s.kind = SN_SIGNALING_NAN;
    else if (nan)
        s.kind = SN_QUIET_NAN;
    else if (infinities) {
        s.kind = SN_INF;
        s.sign = infinities == SN_MET_MINUS_INF;
    } else if (!sn_kulisch_low_bits(sum, 64 * sum->words))
        s.kind = SN_ZERO;
    else
        s.sign = (sn_i32)(sum->word[sum->words - 1] >> 63);
    return s;
}

/* The running sum after a block; the block's sum is used up. */
SN_FN sn_u64 sn_block_end(sn_block_sum *s, const sn_block_rounding *r, sn_u64 acc, sn_u32 first, sn_u32 second,
                          sn_u32 *product_flags, sn_u32 *flags) {
    const sn_number old = sn_unpack(r->accumulator, acc), one = sn_one(), kind = sn_block_kind(&s->sum);
    if (kind.kind == SN_FINITE && s->number) {
        s->sum.met = SN_MET_NUMBER;
        if (r->product) {
            const sn_u64 code = sn_kulisch_round(&s->sum, r->product, r->product_env, first, product_flags);
            const sn_number p = sn_unpack(r->product, code);
            const sn_scaled t = sn_scaled_of(&p, &one);
            return sn_scaled_added(&t, &old, r->accumulator, r->sum_env, second, flags);
        }
        sn_kulisch_add(&s->sum, &old);
        return sn_kulisch_round(&s->sum, r->accumulator, r->sum_env, second, flags);
    }
    sn_scaled t = sn_scaled_of(&kind, &s->scale);
    if (s->number && t.kind < SN_QUIET_NAN) t.exact.sign = kind.kind == SN_INF ? kind.sign : s->scale.sign;
    return sn_block_term(r, t, &old, first, second, product_flags, flags);
}

#endif

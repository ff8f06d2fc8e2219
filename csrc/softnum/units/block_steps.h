/* The steps of dot products of block formats by the definition, one output at a time, on a CPU and on a GPU: acc =
 * R(acc + [R_product](sum of the block * (scale_a * scale_b))).
 *
 * Contract of exact sums: as kulisch.h; `bottom` and `words` hold scaled sums and the accumulator, `plain` the last bit
 * of products of elements. Products of two elements, and of two scales, have 64 bits at most. */
#ifndef SOFTNUM_BLOCK_STEPS_H
#define SOFTNUM_BLOCK_STEPS_H

#include "softnum/units/terms.h"

/* Where the sum of a block is made; number: whether the scales are one. */
typedef struct {
    sn_kulisch sum;
    sn_number scale;
    sn_i32 number;
} sn_block_sum;

/* Formats, environments and sinks of the roundings of a sum of blocks; product: null if a scaled sum stays exact. */
typedef struct {
    const sn_format *product, *accumulator;
    const sn_env *product_env, *sum_env;
    sn_told *of_products, *of_sums;
} sn_block_rounding;

/* The product of two scales. */
SN_FN sn_number sn_scale_of(const sn_number *x, const sn_number *y) {
    sn_number s;
    s.kind = sn_kind_of_product(x, y);
    s.sign = x->sign ^ y->sign;
    s.exp = x->exp + y->exp;
    s.sig = s.kind == SN_FINITE ? x->sig * y->sig : 0;
    return s;
}

/* A scaled sum, or what it is first rounded to, added to the running sum; words: the product's and the sum's. */
SN_FN sn_u64 sn_block_term(const sn_block_rounding *r, sn_term t, const sn_number *old, const sn_u32 words[2]) {
    if (r->product) {
        const sn_u64 code = sn_term_round(&t, r->product, r->product_env, words[0], r->of_products);
        const sn_number p = sn_unpack(r->product, code);
        t = sn_term_of(&p);
    }
    return sn_term_add(&t, old, r->accumulator, r->sum_env, words[1], r->of_sums);
}

/* The running sum after s, the sum of a block of these scales. */
SN_FN sn_u64 sn_block_scaled(const sn_block_rounding *r, const sn_number *s, const sn_number *x, const sn_number *y,
                             sn_u64 acc, const sn_u32 words[2]) {
    const sn_number scale = sn_scale_of(x, y), old = sn_unpack(r->accumulator, acc);
    return sn_block_term(r, sn_term_of_product(s, &scale), &old, words);
}

/* R(c + acc * (x * y)), x and y being the arrays' scales; without c R(acc * (x * y)). */
SN_FN sn_u64 sn_tensor_scaled(const sn_format *f, const sn_env *env, sn_u64 acc, const sn_number *x, const sn_number *y,
                              const sn_u64 *c, sn_u32 word, sn_told *told) {
    const sn_number scale = sn_scale_of(x, y), s = sn_unpack(f, acc);
    const sn_term t = sn_term_of_product(&s, &scale);
    if (!c) return sn_term_round(&t, f, env, word, told);
    const sn_number z = sn_unpack(f, *c);
    return sn_term_add(&t, &z, f, env, word, told);
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
SN_FN sn_u64 sn_block_end(sn_block_sum *s, const sn_block_rounding *r, sn_u64 acc, const sn_u32 words[2]) {
    const sn_number old = sn_unpack(r->accumulator, acc), kind = sn_block_kind(&s->sum);
    if (kind.kind == SN_FINITE && s->number) {
        s->sum.met = SN_MET_NUMBER;
        if (r->product) {
            const sn_u64 code = sn_sum_round(&s->sum, r->product, r->product_env, words[0], r->of_products);
            const sn_number p = sn_unpack(r->product, code);
            const sn_term t = sn_term_of(&p);
            return sn_term_add(&t, &old, r->accumulator, r->sum_env, words[1], r->of_sums);
        }
        sn_kulisch_add(&s->sum, &old);
        return sn_sum_round(&s->sum, r->accumulator, r->sum_env, words[1], r->of_sums);
    }
    sn_term t = sn_term_of_product(&kind, &s->scale);
    if (s->number && t.kind < SN_QUIET_NAN) t.exact.sign = kind.kind == SN_INF ? kind.sign : s->scale.sign;
    return sn_block_term(r, t, &old, words);
}

#endif

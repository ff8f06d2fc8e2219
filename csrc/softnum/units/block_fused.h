/* The fused dot-product-add of tensor cores whose operands are blocks with scales, on codes. One step takes `terms`
 * products of elements and the accumulator C, as softnum/units/fused.h has it, but that a term is
 *   - group = 1: a product of two elements and the two scales of their blocks; its exponent is the sum of the four;
 *   - group > 1: the exact sum S of so many products, times the two scales. It counts with the sum of the scales'
 *     exponents, S being part of the significand, also where S is zero.
 * Of a scale the sign counts for nothing. A scale has no infinity; a NaN makes NaN of its block's products, and a zero
 * has its exponent as other zeros have theirs. A group lies within one block.
 * Source: MMA-Sim (arXiv 2511.10909). */
#ifndef SOFTNUM_BLOCK_FUSED_H
#define SOFTNUM_BLOCK_FUSED_H

#include "softnum/units/block_steps.h"
#include "softnum/units/fused.h"

/* Contract: products of two elements, and of two scales, have 64 bits at most; `plain` is the last bit of products of
 * elements; exact sums, scaled and aligned, stay below 2^126 of their units. */
typedef struct {
    sn_fused_unit fused; /* a and b: of the elements; no other output, no order, C a term */
    sn_format scale_a, scale_b;
    sn_i32 group, block, plain;
} sn_block_fused_unit;

/* The operands of one output: codes, the strides apart; as many scales as blocks. */
typedef struct {
    const sn_u64 *a, *b, *scale_a, *scale_b;
    sn_i64 stride_a, stride_b, stride_scale_a, stride_scale_b, length;
} sn_block_fused_operands;

/* The scales of the block that k lies in, and what they make together. */
typedef struct {
    sn_number x, y;
    sn_i32 nan, zero;
    sn_i32 exponent, counts; /* counts: whether the exponent takes part in M */
} sn_block_fused_scale;

SN_FN sn_block_fused_scale sn_block_fused_scale_at(const sn_block_fused_unit *u, const sn_block_fused_operands *o,
                                                   sn_i64 k) {
    const sn_i64 j = k / u->block;
    sn_block_fused_scale s;
    s.x = sn_unpack(&u->scale_a, o->scale_a[j * o->stride_scale_a]);
    s.y = sn_unpack(&u->scale_b, o->scale_b[j * o->stride_scale_b]);
    s.nan = s.x.kind >= SN_QUIET_NAN || s.y.kind >= SN_QUIET_NAN;
    s.zero = s.x.kind == SN_ZERO || s.y.kind == SN_ZERO;
    s.counts = !s.nan && (!s.zero || u->fused.zero_exponent != SN_FUSED_NO_FLOOR);
    s.exponent = 0;
    if (s.counts)
        s.exponent = sn_fused_exponent(&u->fused, &u->scale_a, &s.x) + sn_fused_exponent(&u->fused, &u->scale_b, &s.y);
    return s;
}

/* Notes a product's special values; whether there are any. */
SN_FN sn_i32 sn_block_fused_special(const sn_number *p, const sn_number *q, const sn_block_fused_scale *s,
                                    sn_fused_kinds *kinds) {
    if (p->kind < SN_INF && q->kind < SN_INF && !s->nan) return 0;
    sn_fused_note_nan(kinds, p);
    sn_fused_note_nan(kinds, q);
    sn_fused_note_nan(kinds, &s->x);
    sn_fused_note_nan(kinds, &s->y);
    if (s->nan || p->kind >= SN_QUIET_NAN || q->kind >= SN_QUIET_NAN) return 1;
    if (p->kind == SN_ZERO || q->kind == SN_ZERO || s->zero)
        kinds->invalid = 1;
    else
        sn_fused_note_infinity(kinds, p->sign ^ q->sign);
    return 1;
}

/* Whether the product at k is a term that counts; notes what it is. */
SN_FN sn_i32 sn_block_fused_product(const sn_block_fused_unit *u, const sn_block_fused_operands *o, sn_i64 k,
                                    sn_fused_kinds *kinds, sn_fused_term *term) {
    const sn_fused_unit *f = &u->fused;
    const sn_block_fused_scale s = sn_block_fused_scale_at(u, o, k);
    const sn_number p = sn_unpack(&f->a, o->a[k * o->stride_a]), q = sn_unpack(&f->b, o->b[k * o->stride_b]);
    if (sn_block_fused_special(&p, &q, &s, kinds)) return 0;
    const sn_i32 zero = p.kind == SN_ZERO || q.kind == SN_ZERO || s.zero;
    if (zero && f->zero_exponent == SN_FUSED_NO_FLOOR) return 0;
    term->exponent = sn_fused_exponent(f, &f->a, &p) + sn_fused_exponent(f, &f->b, &q) + s.exponent;
    sn_fused_note_exponent(kinds, term->exponent);
    if (zero) return 0;
    term->sig = sn_u128_mul(p.sig * q.sig, s.x.sig * s.y.sig);
    term->exp = p.exp + q.exp + s.x.exp + s.y.exp;
    term->sign = p.sign ^ q.sign;
    return 1;
}

/* The same of the group of products from k on. */
SN_FN sn_i32 sn_block_fused_group(const sn_block_fused_unit *u, const sn_block_fused_operands *o, sn_i64 k,
                                  sn_fused_kinds *kinds, sn_fused_term *term) {
    const sn_fused_unit *f = &u->fused;
    const sn_block_fused_scale s = sn_block_fused_scale_at(u, o, k);
    const sn_i64 end = k + u->group < o->length ? k + u->group : o->length;
    sn_u128 sums[2] = {sn_u128_make(0, 0), sn_u128_make(0, 0)};
    sn_i32 special = 0;
    for (; k < end; k++) {
        const sn_number p = sn_unpack(&f->a, o->a[k * o->stride_a]), q = sn_unpack(&f->b, o->b[k * o->stride_b]);
        if (sn_block_fused_special(&p, &q, &s, kinds)) {
            special = 1;
            continue;
        }
        if (p.kind == SN_ZERO || q.kind == SN_ZERO || s.zero) continue;
        const sn_u128 sig = sn_u128_mul(p.sig * q.sig, s.x.sig * s.y.sig);
        const sn_i32 sign = p.sign ^ q.sign;
        sums[sign] = sn_u128_add(sums[sign], sn_u128_shl(sig, p.exp + q.exp - u->plain));
    }
    if (special || !s.counts) return 0;
    term->exponent = s.exponent;
    sn_fused_note_exponent(kinds, term->exponent);
    term->sign = sn_u128_less(sums[0], sums[1]);
    term->sig = term->sign ? sn_u128_sub(sums[1], sums[0]) : sn_u128_sub(sums[0], sums[1]);
    term->exp = u->plain + s.x.exp + s.y.exp;
    return !sn_u128_is_zero(term->sig);
}

SN_FN sn_i32 sn_block_fused_term(const sn_block_fused_unit *u, const sn_block_fused_operands *o, sn_i64 k,
                                 sn_fused_kinds *kinds, sn_fused_term *term) {
    return u->group == 1 ? sn_block_fused_product(u, o, k, kinds, term) : sn_block_fused_group(u, o, k, kinds, term);
}

/* The sum of one step: of the products from k = first on, and of c, a code of the accumulator. What lies past the end
 * takes no part. */
SN_FN sn_fused_sum sn_block_fused_sum(const sn_block_fused_unit *u, const sn_block_fused_operands *o, sn_i64 first,
                                      sn_u64 c) {
    const sn_fused_unit *f = &u->fused;
    const sn_i64 end = first + f->terms < o->length ? first + f->terms : o->length;
    sn_fused_sum s;
    sn_fused_kinds kinds = {0, 0, 0, {0, 0}, 0, 0};
    sn_fused_term term, addend;
    s.positive = s.negative = sn_u128_make(0, 0);
    s.unit = s.cut = 0;
    const sn_number z = sn_unpack(&f->accumulator, c);
    const sn_i32 with_c = sn_fused_addend(f, &z, &kinds, &addend);
    for (sn_i64 k = first; k < end; k += u->group)
        sn_block_fused_term(u, o, k, &kinds, &term);
    s.kinds = kinds;
    if (kinds.nan || kinds.invalid || kinds.infinite[0] || kinds.infinite[1] || !kinds.any) return s;

    s.unit = (kinds.largest > f->min_exponent ? kinds.largest : f->min_exponent) - f->fraction_bits;
    if (with_c) sn_fused_add(&s, &addend);
    for (sn_i64 k = first; k < end; k += u->group)
        if (sn_block_fused_term(u, o, k, &kinds, &term)) sn_fused_add(&s, &term);
    return s;
}

/* What the sum becomes by the step from k = first on; told: what that came to, but which rounding it was. */
SN_FN sn_u64 sn_block_fused_step(const sn_block_fused_unit *u, const sn_block_fused_operands *o, sn_i64 first,
                                 sn_u64 sum, sn_fused_told *told) {
    const sn_fused_unit *f = &u->fused;
    sn_fused_sum s = sn_block_fused_sum(u, o, first, sum);
    told->raised = 0;
    sum = sn_fused_round(f, &s, &f->accumulator, &f->sum_env, &told->raised);
    told->cut = s.cut;
    told->infinite = s.kinds.infinite[0] || s.kinds.infinite[1];
    told->which = SN_FUSED_TO_ACCUMULATOR;
    return sum;
}

#endif

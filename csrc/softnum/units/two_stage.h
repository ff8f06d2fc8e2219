/* A dot-product-add in two stages, on codes, as AMD's CDNA3 has it. One step takes `terms` products and C:
 *   - the products are exact, not normalised, with exponents as in softnum/units/fused.h; those of position t belong to
 * stream t mod `interleave`;
 *   - in each stream, M_s is the largest exponent, and each product is cut off, toward zero, at fraction_bits bits
 * below M_s; what is left is added exactly. With several streams, M is the largest M_s, and the streams' sums are
 * aligned to multiples of 2^(M - fraction_bits) and added: S. Of one stream S is its sum, and M its M_s;
 *   - N is the larger of M and C's exponent. S is aligned to a multiple of 2^(N - sum_fraction_bits), C to one of 2^(N
 * - c_fraction_bits), or to 0 if its exponent is below N - c_reach; both are added exactly;
 *   - that sum is rounded once. A sum of zero is +0; what rounds to zero keeps its sign.
 * To align is to round down, or toward zero. Longer sums chain steps: the result of one is the C of the next.
 * Source: MMA-Sim (arXiv 2511.10909). */
#ifndef SOFTNUM_TWO_STAGE_H
#define SOFTNUM_TWO_STAGE_H

#include "softnum/units/fused.h"

enum { SN_TWO_STAGE_STREAMS = 8, SN_TWO_STAGE_NO_LIMIT = 1 << 30 };

typedef struct {
    sn_fused_unit fused; /* formats, terms, fraction_bits of products, zero_exponent, sum_env; no order, no output */
    sn_i32 sum_fraction_bits, c_fraction_bits;
    sn_i32 interleave;    /* streams */
    sn_i32 down;          /* aligned down; else toward zero */
    sn_i32 c_reach;       /* or -1: C always counts */
    sn_i32 product_limit; /* a finite product of 2^this or more makes the result infinite */
} sn_two_stage_unit;

/* (-1)^sign * size in some unit. */
typedef struct {
    sn_u128 size;
    sn_i32 sign;
} sn_two_stage_part;

/* x in units 2^below times as large, rounded down or toward zero; *cut: whether bits were lost. */
SN_FN sn_two_stage_part sn_two_stage_aligned(sn_two_stage_part x, sn_i32 below, sn_i32 down, sn_i32 *cut) {
    const sn_i32 lost = sn_u128_low_bits(x.size, below);
    x.size = below <= 0 ? sn_u128_shl(x.size, -below) : sn_u128_shr(x.size, below);
    if (lost && down && x.sign) x.size = sn_u128_add(x.size, sn_u128_make(0, 1));
    *cut |= lost;
    return x;
}

/* x + y, in one unit. */
SN_FN sn_two_stage_part sn_two_stage_added(sn_two_stage_part x, sn_two_stage_part y) {
    if (x.sign == y.sign) {
        x.size = sn_u128_add(x.size, y.size);
    } else if (sn_u128_less(x.size, y.size)) {
        y.size = sn_u128_sub(y.size, x.size);
        return y;
    } else {
        x.size = sn_u128_sub(x.size, y.size);
    }
    return x;
}

/* What the products of a stream are, and their sum in units of 2^(largest - fraction_bits). */
typedef struct {
    sn_fused_kinds kinds;
    sn_two_stage_part sum;
} sn_two_stage_stream;

SN_FN void sn_two_stage_clear(sn_fused_kinds *kinds) {
    kinds->nan = kinds->signaling = kinds->invalid = kinds->infinite[0] = kinds->infinite[1] = 0;
    kinds->any = kinds->largest = 0;
}

/* The products of one stream noted; beyond: whether some were too large, of each sign. */
SN_FN void sn_two_stage_note(const sn_two_stage_unit *w, const sn_u64 *a, sn_i64 stride_a, const sn_u64 *b,
                             sn_i64 stride_b, sn_i64 length, sn_i64 first, sn_i32 stream, sn_fused_kinds *kinds,
                             sn_i32 beyond[2]) {
    const sn_fused_unit *u = &w->fused;
    sn_fused_term term;
    sn_two_stage_clear(kinds);
    for (sn_i32 t = stream; t < u->terms && first + t < length; t += w->interleave) {
        const sn_i64 k = first + t;
        sn_number x = sn_unpack(&u->a, a[k * stride_a]), y = sn_unpack(&u->b, b[k * stride_b]);
        if (sn_fused_product(u, &x, &y, kinds, &term) &&
            term.exp + sn_u128_bit_length(term.sig) - 1 >= w->product_limit)
            beyond[term.sign] = 1;
    }
}

/* The sum of one stream, whose largest exponent is known. */
SN_FN sn_two_stage_part sn_two_stage_sum(const sn_two_stage_unit *w, const sn_u64 *a, sn_i64 stride_a, const sn_u64 *b,
                                         sn_i64 stride_b, sn_i64 length, sn_i64 first, sn_i32 stream, sn_i32 largest,
                                         sn_i32 *cut) {
    const sn_fused_unit *u = &w->fused;
    sn_fused_term term;
    sn_fused_kinds kinds;
    sn_two_stage_part sum;
    sum.size = sn_u128_make(0, 0);
    sum.sign = 0;
    sn_two_stage_clear(&kinds);
    for (sn_i32 t = stream; t < u->terms && first + t < length; t += w->interleave) {
        const sn_i64 k = first + t;
        sn_number x = sn_unpack(&u->a, a[k * stride_a]), y = sn_unpack(&u->b, b[k * stride_b]);
        if (!sn_fused_product(u, &x, &y, &kinds, &term)) continue;
        sn_two_stage_part p;
        p.size = term.sig;
        p.sign = term.sign;
        sum = sn_two_stage_added(sum, sn_two_stage_aligned(p, largest - u->fraction_bits - term.exp, 0, cut));
    }
    return sum;
}

/* One step from c, a code of the accumulator; infinite: whether a term was. */
SN_FN sn_u64 sn_two_stage_step(const sn_two_stage_unit *w, const sn_u64 *a, sn_i64 stride_a, const sn_u64 *b,
                               sn_i64 stride_b, sn_i64 length, sn_i64 first, sn_u64 c, sn_u32 *flags,
                               sn_i32 *infinite) {
    const sn_fused_unit *u = &w->fused;
    const sn_format *f = &u->accumulator;
    sn_two_stage_stream streams[SN_TWO_STAGE_STREAMS];
    sn_fused_kinds all;
    sn_fused_term addend;
    sn_i32 beyond[2] = {0, 0}, any = 0, largest = 0, cut = 0;
    sn_number z = sn_unpack(f, c);
    sn_two_stage_clear(&all);
    addend.sig = sn_u128_make(0, 0);
    addend.exp = addend.exponent = addend.sign = 0;
    const sn_i32 with_c = sn_fused_addend(u, &z, &all, &addend);
    for (sn_i32 s = 0; s < w->interleave; s++) {
        sn_fused_kinds *kinds = &streams[s].kinds;
        sn_two_stage_note(w, a, stride_a, b, stride_b, length, first, s, kinds, beyond);
        all.nan |= kinds->nan;
        all.signaling |= kinds->signaling;
        all.invalid |= kinds->invalid;
        all.infinite[0] |= kinds->infinite[0];
        all.infinite[1] |= kinds->infinite[1];
        if (kinds->any && (!any || kinds->largest > largest)) largest = kinds->largest;
        any |= kinds->any;
    }
    *infinite = all.infinite[0] || all.infinite[1];
    sn_u64 code;
    if (sn_fused_special(&all, f, &u->sum_env, flags, &code)) return code;
    if (beyond[0] && beyond[1]) return sn_invalid_result(f, &u->sum_env, flags);
    if (beyond[0] || beyond[1]) {
        sn_raise(f, SN_FLAG_OVERFLOW | SN_INEXACT, flags);
        return sn_inf_result(f, &u->sum_env, beyond[1], flags);
    }
    if (!any && !all.any) return 0;

    sn_two_stage_part sum, own;
    sum.size = own.size = sn_u128_make(0, 0);
    sum.sign = own.sign = 0;
    for (sn_i32 s = 0; s < w->interleave; s++) {
        const sn_fused_kinds *kinds = &streams[s].kinds;
        if (!kinds->any) continue;
        own = sn_two_stage_sum(w, a, stride_a, b, stride_b, length, first, s, kinds->largest, &cut);
        sum = sn_two_stage_added(sum, sn_two_stage_aligned(own, largest - kinds->largest, w->down, &cut));
    }
    const sn_i32 top = any && (!all.any || largest > all.largest) ? largest : all.largest;
    const sn_i32 sum_unit = top - w->sum_fraction_bits, c_unit = top - w->c_fraction_bits;
    const sn_i32 unit = sum_unit < c_unit ? sum_unit : c_unit;
    sum = sn_two_stage_aligned(sum, sum_unit - (largest - u->fraction_bits), w->down, &cut);
    sum.size = sn_u128_shl(sum.size, sum_unit - unit);
    if (with_c && w->c_reach >= 0 && addend.exponent < top - w->c_reach) {
        cut = 1;
    } else if (with_c) {
        own.size = addend.sig;
        own.sign = addend.sign;
        own = sn_two_stage_aligned(own, c_unit - addend.exp, w->down, &cut);
        own.size = sn_u128_shl(own.size, c_unit - unit);
        sum = sn_two_stage_added(sum, own);
    }
    if (cut) sn_raise(f, SN_INEXACT, flags);
    if (sn_u128_is_zero(sum.size)) return 0;
    sn_exact x = sn_exact_make(sum.sign, sum.size, unit);
    return sn_round_pack(f, &u->sum_env, &x, 0, flags);
}

/* Number of steps of a sum of length products. */
SN_FN sn_i64 sn_two_stage_steps(const sn_two_stage_unit *w, sn_i64 length) {
    return (length + w->fused.terms - 1) / w->fused.terms;
}

#endif

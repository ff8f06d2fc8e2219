/* Dot products of groups, on codes: each group of `terms` products becomes a partial sum S, and S is added to the
 * accumulator with one rounding. S is exact, or bulk-normalized as the RISC-V Bulk Normalization Algorithm has it:
 *   - the reference exponent of a product is the sum of its factors' exponents, a subnormal's being its format's
 *     lowest; M is the largest among the products that are not zero;
 *   - each product is brought to a multiple of 2^(M - fraction_bits), its magnitude rounded to odd ("jammed");
 *   - what is left is added exactly. A sum of zero is +0.
 * Or it is made of roundings to the format `partial`: of each product, and of each addition of one to those before it.
 * S is then rounded to `partial`, or, not rounded, added as it is. What is too large for a rounding to odd is infinite,
 * where it would else be the largest number, unless it is to saturate. Products may count times a power of two.
 *
 * A sum of products starts from +0, or with `first_term` from its first term: then products that are all -0 add up to
 * -0. A group that is shorter than `terms` has products that are +0 besides.
 * Sources: RISC-V Instruction Set Manual, volume I, "RISC-V Bulk Normalization Algorithm" (src/unpriv/rvbna.adoc), its
 * words, with the pseudocode's masks as its pull request 3244 corrects them; Arm Architecture Reference Manual (DDI
 * 0487), J1.3.3, BFDotAdd and FP8DotAddFP.
 *
 * Contract: accumulator and partial are signed and raise flags (sn_let_raise); both environments read and overflow
 * alike; sums that are rounded product by product have a rounding of partial sums. fraction_bits + 2, and a bit for
 * each doubling of the terms, are at most 126. The accumulator of exact sums: kulisch.h. */
#ifndef SOFTNUM_GROUPED_H
#define SOFTNUM_GROUPED_H

#include "softnum/units/fused.h"
#include "softnum/units/terms.h"

typedef struct {
    sn_fused_unit products; /* what a product asks of a unit: its formats a and b, and that zeros do not count */
    sn_format accumulator, partial;
    sn_env sum_env, partial_env;
    sn_i32 terms;
    sn_i32 fraction_bits; /* of bulk-normalized sums, below M; SN_GROUPED_EXACT, SN_GROUPED_STEPS: others */
    sn_i32 rounded;       /* whether S is rounded to partial */
    sn_i32 first_term;    /* whether sums start from their first term, and not from +0 */
    sn_i32 scale;         /* products count times 2^scale */
    sn_i32 bottom, words; /* of the exact sum */
} sn_grouped_unit;

enum { SN_GROUPED_EXACT = -1, SN_GROUPED_STEPS = -2 };

enum { SN_GROUPED_PARTIAL, SN_GROUPED_SUM, SN_GROUPED_TALLIES };

/* A product's magnitude in units of 2^s->unit, rounded to odd, added to the sum. */
SN_FN void sn_grouped_jam(sn_fused_sum *s, const sn_fused_term *term) {
    sn_fused_term odd = *term;
    const sn_i32 below = s->unit - term->exp;
    if (below > 0) {
        const sn_i32 lost = sn_u128_low_bits(term->sig, below) != 0;
        odd.sig = sn_u128_shr(term->sig, below);
        odd.sig.lo |= (sn_u64)lost;
        odd.exp = s->unit;
    }
    sn_fused_add(s, &odd);
}

/* The bulk-normalized sum of the products k = first ... last - 1. Infinities of both signs are an invalid operation
 * beside a NaN too. */
SN_FN sn_term sn_grouped_bulk(const sn_grouped_unit *u, const sn_u64 *a, sn_i64 stride_a, const sn_u64 *b,
                              sn_i64 stride_b, sn_i64 first, sn_i64 last) {
    sn_fused_sum s;
    sn_fused_kinds kinds;
    sn_fused_term term;
    sn_term total;
    kinds.nan = kinds.signaling = kinds.invalid = kinds.infinite[0] = kinds.infinite[1] = kinds.any = kinds.largest = 0;
    for (sn_i64 k = first; k < last; k++) {
        sn_number x = sn_read(&u->products.a, &u->sum_env, a[k * stride_a]);
        sn_number y = sn_read(&u->products.b, &u->sum_env, b[k * stride_b]);
        sn_fused_product(&u->products, &x, &y, &kinds, &term);
    }
    total.exact = sn_exact_make(0, sn_u128_make(0, 0), 0);
    total.kind = SN_ZERO;
    if (kinds.invalid || kinds.signaling || (kinds.infinite[0] && kinds.infinite[1])) {
        total.kind = SN_SIGNALING_NAN;
    } else if (kinds.nan) {
        total.kind = SN_QUIET_NAN;
    } else if (kinds.infinite[0] || kinds.infinite[1]) {
        total.kind = SN_INF;
        total.exact.sign = kinds.infinite[1];
    }
    if (total.kind != SN_ZERO || !kinds.any) return total;

    s.kinds = kinds;
    s.positive = s.negative = sn_u128_make(0, 0);
    s.cut = 0;
    s.unit = kinds.largest - u->fraction_bits;
    for (sn_i64 k = first; k < last; k++) {
        sn_number x = sn_read(&u->products.a, &u->sum_env, a[k * stride_a]);
        sn_number y = sn_read(&u->products.b, &u->sum_env, b[k * stride_b]);
        if (sn_fused_product(&u->products, &x, &y, &kinds, &term)) sn_grouped_jam(&s, &term);
    }
    const sn_i32 sign = sn_u128_less(s.positive, s.negative);
    const sn_u128 sum = sign ? sn_u128_sub(s.negative, s.positive) : sn_u128_sub(s.positive, s.negative);
    if (sn_u128_is_zero(sum)) return total;
    total.exact = sn_exact_make(sign, sum, s.unit + u->scale);
    total.kind = SN_FINITE;
    return total;
}

/* The code that a rounding gave; an infinity where it was to odd, and overflowed, and nothing saturates. */
SN_FN sn_u64 sn_grouped_limit(const sn_format *f, const sn_env *env, sn_u64 code, sn_u32 raised) {
    if (env->rounding != SN_TO_ODD || !(raised & SN_FLAG_OVERFLOW) || !f->has_inf) return code;
    if (env->overflow != SN_OVERFLOW_INFINITY) return code;
    return sn_with_sign(f, f->inf_code, sn_unpack(f, code).sign);
}

/* A term added to a partial sum, and the sum rounded. */
SN_FN sn_u64 sn_grouped_partial(const sn_grouped_unit *u, const sn_term *term, sn_u64 sum, sn_told *told) {
    const sn_number before = sn_read(&u->partial, &u->partial_env, sum);
    sn_u32 raised = 0;
    sn_u64 code = sn_term_sum_code(term, &before, &u->partial, &u->partial_env, 0, &raised);
    code = sn_grouped_limit(&u->partial, &u->partial_env, code, raised);
    sn_tell(told, &u->partial, &u->partial_env, code, raised, term->kind == SN_INF || before.kind == SN_INF);
    return code;
}

/* The partial sum of the products k = first ... last - 1, each rounded, and each sum. */
SN_FN sn_u64 sn_grouped_steps(const sn_grouped_unit *u, const sn_u64 *a, sn_i64 stride_a, const sn_u64 *b,
                              sn_i64 stride_b, sn_i64 first, sn_i64 last, sn_told *told) {
    const sn_format *fs = &u->partial;
    const sn_number plus_zero = sn_unpack(fs, 0);
    const sn_term zero = sn_term_of(&plus_zero);
    sn_told nothing = sn_told_nothing(NULL);
    sn_u64 sum = 0;
    for (sn_i64 k = first; k < last; k++) {
        const sn_number x = sn_read(&u->products.a, &u->sum_env, a[k * stride_a]);
        const sn_number y = sn_read(&u->products.b, &u->sum_env, b[k * stride_b]);
        sn_term term = sn_term_of_product(&x, &y);
        sn_u32 raised = 0;
        term.exact.exp += u->scale;
        sn_u64 code = sn_term_code(&term, fs, &u->partial_env, 0, &raised);
        code = sn_grouped_limit(fs, &u->partial_env, code, raised);
        sn_tell(told, fs, &u->partial_env, code, raised, term.kind == SN_INF);
        const sn_number rounded = sn_read(fs, &u->partial_env, code);
        term = sn_term_of(&rounded);
        sum = k == first && u->first_term ? code : sn_grouped_partial(u, &term, sum, told);
    }
    return last - first < u->terms ? sn_grouped_partial(u, &zero, sum, &nothing) : sum;
}

/* The accumulator after the group of the products k = first ... last - 1, from acc. told: of the partial sums, and of
 * the additions. */
SN_FN sn_u64 sn_grouped_step(const sn_grouped_unit *u, const sn_u64 *a, sn_i64 stride_a, const sn_u64 *b,
                             sn_i64 stride_b, sn_i64 first, sn_i64 last, sn_u64 acc, sn_told told[SN_GROUPED_TALLIES]) {
    const sn_format *fs = &u->partial, *fo = &u->accumulator;
    const sn_number y = sn_read(fo, &u->sum_env, acc);
    sn_u64 code;
    sn_u32 raised = 0;
    sn_i32 infinite = 0;
    if (u->fraction_bits == SN_GROUPED_STEPS) {
        code = sn_grouped_steps(u, a, stride_a, b, stride_b, first, last, &told[SN_GROUPED_PARTIAL]);
    } else if (u->fraction_bits == SN_GROUPED_EXACT) {
        sn_kulisch sum;
        sn_kulisch_clear(&sum, u->bottom, u->words);
        if (!u->first_term || last - first < u->terms) sum.met = SN_MET_PLUS_ZERO;
        for (sn_i64 k = first; k < last; k++) {
            sn_number v = sn_read(&u->products.a, &u->sum_env, a[k * stride_a]);
            const sn_number w = sn_read(&u->products.b, &u->sum_env, b[k * stride_b]);
            v.exp += u->scale;
            sn_kulisch_add_product(&sum, &v, &w);
        }
        if (!u->rounded) {
            sn_kulisch_add(&sum, &y);
            infinite = (sum.met & (SN_MET_PLUS_INF | SN_MET_MINUS_INF)) != 0;
            code = sn_grouped_limit(fo, &u->sum_env, sn_kulisch_round(&sum, fo, &u->sum_env, 0, &raised), raised);
            sn_tell(&told[SN_GROUPED_SUM], fo, &u->sum_env, code, raised, infinite);
            return code;
        }
        infinite = (sum.met & (SN_MET_PLUS_INF | SN_MET_MINUS_INF)) != 0;
        code = sn_kulisch_round(&sum, fs, &u->partial_env, 0, &raised);
    } else {
        const sn_term s = sn_grouped_bulk(u, a, stride_a, b, stride_b, first, last);
        infinite = s.kind == SN_INF;
        if (!u->rounded) {
            code = sn_term_sum_code(&s, &y, fo, &u->sum_env, 0, &raised);
            code = sn_grouped_limit(fo, &u->sum_env, code, raised);
            sn_tell(&told[SN_GROUPED_SUM], fo, &u->sum_env, code, raised, infinite || y.kind == SN_INF);
            return code;
        }
        code = sn_term_code(&s, fs, &u->partial_env, 0, &raised);
    }
    if (u->fraction_bits != SN_GROUPED_STEPS) {
        code = sn_grouped_limit(fs, &u->partial_env, code, raised);
        sn_tell(&told[SN_GROUPED_PARTIAL], fs, &u->partial_env, code, raised, infinite);
    }
    const sn_number s = sn_read(fs, &u->partial_env, code);
    const sn_term t = sn_term_of(&s);
    raised = 0;
    code = sn_term_sum_code(&t, &y, fo, &u->sum_env, 0, &raised);
    code = sn_grouped_limit(fo, &u->sum_env, code, raised);
    sn_tell(&told[SN_GROUPED_SUM], fo, &u->sum_env, code, raised, s.kind == SN_INF || y.kind == SN_INF);
    return code;
}

#endif

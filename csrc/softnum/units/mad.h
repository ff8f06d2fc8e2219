/* Multiply-add units, acc = round(acc + round(a * b)), on encodings: with partial accumulators ("lanes"), chunks,
 * compensation and random words, as softnum/mac/mad.py defines them. This is the plain definition of one sum;
 * products/gemm/gemm.c has the same steps for tiles of outputs. */
#ifndef SOFTNUM_MAD_H
#define SOFTNUM_MAD_H

#include "softnum/units/terms.h"
#include "softnum/word/source.h"

enum { SN_MAX_LANES = 1024 };

/* How lanes are added: ((l0 + l1) + l2) ...; neighbours, level by level; the sums of two halves.
 * softnum/mac/mad.py says it in full, and holds the same names in this order. */
enum { SN_REDUCTION_SEQUENTIAL = 0, SN_REDUCTION_TREE = 1, SN_REDUCTION_PAIRWISE = 2 };

/* NaNs are canonical, whatever the environments' profiles. */
typedef struct {
    sn_format operand_a, operand_b, product, accumulator, outer;
    sn_env product_env, sum_env, outer_env;
    sn_i32 fused;         /* one rounding a step: no product format */
    sn_i32 two_roundings; /* both product and sum are stochastic */
    sn_i64 chunk;         /* 0: one sum */
    sn_i32 lanes;         /* 1 to SN_MAX_LANES */
    sn_i32 reduction;     /* SN_REDUCTION_* */
    sn_i32 compensated;   /* running sums carry a compensation (Kahan); their rounding is not stochastic */
    sn_i32 positive;      /* a, b and C are read as +0 where they are subnormal or zero: the caller does it */
    sn_u32 key[2], key2[2];
    sn_u32 batch;
    sn_source random; /* not SN_SOURCE_GIVEN, for there are sn_product_codes.words */
} sn_mad_unit;

/* What the tallies of a definition count: products; terms added to a running sum; the three roundings more of a
 * compensated one; additions of lanes; sums of chunks added. softnum/mac/mad.py names them in this order. */
enum { SN_TALLY_PRODUCT, SN_TALLY_SUM, SN_TALLY_COMPENSATION, SN_TALLY_LANES, SN_TALLY_OUTER, SN_MAD_TALLIES };

/* One sum under way. sums, errors: codes of lanes + 1 slots; slot 0 is for C in the reduction of lanes. */
typedef struct {
    const sn_mad_unit *u;
    sn_u64 *sums, *errors;
    sn_told *told, outer_rest; /* the last: of a compensated outer sum's roundings but the sum itself */
    sn_i64 step;               /* the next addition of lanes or chunks */
} sn_mad_sum;

/* The random word of a rounding of step k of output (0, 0), which is 0: of the product, 1: of the sum. */
SN_FN sn_u32 sn_mad_word(const sn_mad_unit *u, sn_i64 step, sn_i32 which) {
    const sn_i32 random = sn_is_stochastic(&u->sum_env) || (!u->fused && sn_is_stochastic(&u->product_env));
    const sn_i32 wide = u->two_roundings && (u->sum_env.stochastic_bits > 16 || u->product_env.stochastic_bits > 16);
    if (!random) return 0;
    const sn_source_step at = sn_source_at(&u->random, (sn_u64)step);
    sn_u32 words[2];
    sn_source_draw(&u->random, &at, 0, 0, u->batch, u->key, u->key2, u->two_roundings, wide, words);
    return words[which];
}

/* Step k, into the sum of a lane. */
SN_FN void sn_mad_step(sn_mad_sum *m, sn_u64 a, sn_u64 b, sn_i64 k, sn_i64 lane) {
    const sn_mad_unit *u = m->u;
    const sn_number x = sn_read(&u->operand_a, &u->product_env, a), y = sn_read(&u->operand_b, &u->product_env, b);
    sn_term p = sn_term_of_product(&x, &y);
    if (!u->fused) {
        const sn_u64 code =
            sn_term_round(&p, &u->product, &u->product_env, sn_mad_word(u, k, 0), &m->told[SN_TALLY_PRODUCT]);
        const sn_number rounded = sn_read(&u->product, &u->sum_env, code);
        p = sn_term_of(&rounded);
    }
    m->sums[lane + 1] =
        sn_term_into(&p, m->sums[lane + 1], u->compensated ? &m->errors[lane + 1] : NULL, &u->accumulator, &u->sum_env,
                     sn_mad_word(u, k, 1), &m->told[SN_TALLY_SUM], &m->told[SN_TALLY_COMPENSATION]);
}

/* Slot i becomes slot i + slot j. */
SN_FN void sn_mad_join(sn_mad_sum *m, sn_i64 i, sn_i64 j) {
    const sn_mad_unit *u = m->u;
    const sn_number x = sn_read(&u->accumulator, &u->sum_env, m->sums[i]);
    const sn_term left = sn_term_of(&x);
    m->sums[i] = sn_term_into(&left, m->sums[j], NULL, &u->accumulator, &u->sum_env, sn_mad_word(u, m->step, 1),
                              &m->told[SN_TALLY_LANES], NULL);
    m->step++;
}

/* The sum of both halves of n slots, the first half being the larger one of an odd count. */
SN_FN void sn_mad_join_halves(sn_mad_sum *m, sn_i64 first, sn_i64 n) { /* NOLINT(misc-no-recursion): ten levels */
    const sn_i64 half = (n + 1) / 2;
    if (n < 2) return;
    sn_mad_join_halves(m, first, half);
    sn_mad_join_halves(m, first + half, n - half);
    sn_mad_join(m, first, first + half);
}

/* n slots from the first on become one number, in the first. */
SN_FN void sn_mad_reduce(sn_mad_sum *m, sn_i64 first, sn_i64 n) {
    if (m->u->reduction == SN_REDUCTION_TREE) {
        for (sn_i64 stride = 1; stride < n; stride *= 2)
            for (sn_i64 i = 0; i + stride < n; i += 2 * stride)
                sn_mad_join(m, first + i, first + i + stride);
    } else if (m->u->reduction == SN_REDUCTION_PAIRWISE) {
        sn_mad_join_halves(m, first, n);
    } else {
        for (sn_i64 i = 1; i < n; i++)
            sn_mad_join(m, first, first + i);
    }
}

/* The dot product of a and b from c, or with_c 0 from +0. room: of 2 * (lanes + 1) codes. told: SN_MAD_TALLIES of them,
 * begun. */
SN_FN sn_u64 sn_mad_dot(const sn_mad_unit *u, const sn_u64 *a, const sn_u64 *b, sn_i64 length, sn_i32 with_c, sn_u64 c,
                        sn_u64 *room, sn_told *told) {
    const sn_i64 lanes = u->lanes, chunk = u->chunk ? u->chunk : length;
    const sn_i64 first = !u->chunk && lanes > 1 && with_c ? 0 : 1; /* C takes part in the reduction of lanes */
    sn_u64 outer = with_c ? c : 0, outer_error = 0;
    sn_mad_sum m;
    m.u = u;
    m.sums = room;
    m.errors = room + lanes + 1;
    m.told = told;
    m.outer_rest = told[SN_TALLY_COMPENSATION];
    m.step = length;
    for (sn_i64 start = 0; start < length; start += chunk) {
        const sn_i64 count = length - start < chunk ? length - start : chunk;
        for (sn_i64 i = 1; i <= lanes; i++)
            m.sums[i] = m.errors[i] = 0;
        if (!u->chunk) m.sums[first] = outer;
        for (sn_i64 k = 0; k < count; k++)
            sn_mad_step(&m, a[start + k], b[start + k], start + k, k % lanes);
        sn_mad_reduce(&m, first, lanes + 1 - first);
        if (!u->chunk) return m.sums[first];
        const sn_number x = sn_read(&u->accumulator, &u->outer_env, m.sums[1]);
        const sn_term part = sn_term_of(&x);
        outer = sn_term_into(&part, outer, u->compensated ? &outer_error : NULL, &u->outer, &u->outer_env,
                             sn_mad_word(u, m.step, 1), &told[SN_TALLY_OUTER], &m.outer_rest);
        m.step++;
    }
    told[SN_TALLY_OUTER].flags |= m.outer_rest.flags;
    return outer;
}

#endif

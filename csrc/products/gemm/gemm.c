#include "products/gemm/gemm.h"

#include <string.h>

#include "elementwise/short/sum.h"
#include "softnum/units/terms.h"

SN_DISPATCH(const sn_gemm_kernels, sn_gemm_kernels)

/* ---- the definition ----------------------------------------------------------------------------------------------
 * Outputs are computed by blocks of rows and columns, step by step: each operand is decoded once for all of a block,
 * and the sums of a block, which do not wait for each other, overlap in the processor. A block's size changes no bit: a
 * step of an output reads nothing but its own sums, its operands and its random words. */

enum {
    BLOCK_COLUMNS = 16,
    BLOCK_OUTPUTS = 128,
    BLOCK_SUMS = 4 * SN_MAX_LANES /* of all lanes of all outputs of a block */
};

typedef struct {
    const sn_mad_unit *u;
    const sn_product_codes *g;
    ptrdiff_t row, column, rows, columns; /* of the block; column counts from g->n0 on */
    ptrdiff_t outputs, steps;
    ptrdiff_t step;      /* the next addition of lanes or chunks */
    ptrdiff_t drawn;     /* the Philox counter's first word + 1, of which `words` holds the words */
    sn_i32 random, wide; /* whether there are random words; whether the sum's are of a second key */
    sn_told told[SN_MAD_TALLIES], outer_rest; /* the last: of a compensated outer sum's roundings but the sum itself */
    sn_u32 words[2][BLOCK_OUTPUTS][4];
    sn_u32 states[BLOCK_OUTPUTS]; /* of LFSRs after the steps that `words` are of */
    /* codes, [slot][output]: slot 0 is for C in the reduction of lanes, lane i is slot i + 1 */
    sn_u64 sums[BLOCK_SUMS + BLOCK_OUTPUTS], errors[BLOCK_SUMS + BLOCK_OUTPUTS];
    sn_u64 outer[BLOCK_OUTPUTS], outer_errors[BLOCK_OUTPUTS];
} block;

/* The words of four steps of an output's LFSR; power: what takes its first state there, 0 where it is. */
static sn_philox_words shifted(block *b, ptrdiff_t o, sn_u32 column, sn_u32 row, sn_u32 power) {
    const sn_mad_unit *u = b->u;
    sn_philox_words w;
    if (power)
        b->states[o] = sn_lfsr_product(&u->random, power, sn_lfsr_start(&u->random, column, row, u->batch, u->key));
    for (int i = 0; i < 4; i++)
        w.w[i] = sn_lfsr_step(&u->random, &b->states[o]);
    return w;
}

/* Have the words of a step ready that come of a key but not as sn_words_of_steps makes them. */
static void draw_other(block *b, ptrdiff_t step, int goes_on) {
    const sn_mad_unit *u = b->u;
    const sn_source *s = &u->random;
    const int lfsr = s->kind == SN_SOURCE_LFSR, half = sn_source_half(s);
    const sn_u32 power = lfsr && !goes_on ? sn_lfsr_power(s, (sn_u64)(step / 4) * 4) : 0;
    for (ptrdiff_t o = 0; o < b->outputs; o++) {
        const sn_u32 row = (sn_u32)(b->row + o / b->columns);
        const sn_u32 column = (sn_u32)(b->g->n0 + b->column + o % b->columns);
        const sn_philox_words w = lfsr ? shifted(b, o, column, row, power)
                                       : sn_source_philox(s, (sn_u32)(step / 4), column, row, u->batch, u->key);
        for (int i = 0; i < 4; i++) {
            b->words[0][o][i] = w.w[i];
            b->words[1][o][i] = u->two_roundings ? w.w[i] >> half : w.w[i];
        }
    }
}

/* Have the keyed words of a step ready; four steps share a draw. */
static void draw(block *b, ptrdiff_t step) {
    if (!b->random || b->g->words || b->drawn == step / 4 + 1) return;
    const sn_source *s = &b->u->random;
    const int goes_on = b->drawn && b->drawn == step / 4;
    b->drawn = step / 4 + 1;
    if (s->kind != SN_SOURCE_PHILOX || s->seven || s->shared) {
        draw_other(b, step, goes_on);
        return;
    }
    for (ptrdiff_t o = 0; o < b->outputs; o++) {
        const sn_u32 row = (sn_u32)(b->row + o / b->columns);
        const sn_u32 column = (sn_u32)(b->g->n0 + b->column + o % b->columns);
        const sn_mad_unit *u = b->u;
        const sn_step_words w =
            sn_words_of_steps((sn_u32)(step / 4), column, row, u->batch, u->key, u->key2, u->two_roundings, b->wide);
        memcpy(b->words[0][o], w.product.w, sizeof w.product.w);
        memcpy(b->words[1][o], w.sum.w, sizeof w.sum.w);
    }
}

/* The random word of one rounding of output o; which 0: product, 1: sum. */
static sn_u32 word_of(const block *b, ptrdiff_t o, ptrdiff_t step, int which) {
    if (!b->random) return 0;
    if (!b->g->words) return b->words[which][o][step % 4];
    const ptrdiff_t row = b->row + o / b->columns, column = b->g->n0 + b->column + o % b->columns;
    return b->g->words[((row * b->g->n_total + column) * b->steps + step) * 2 + which];
}

/* The code of a product in its own format. */
static sn_u64 round_product(block *b, const sn_term *p, ptrdiff_t o, ptrdiff_t k) {
    const sn_format *f = &b->u->product;
    const sn_env *env = &b->u->product_env;
    const sn_u32 word = word_of(b, o, k, 0);
    sn_told *told = &b->told[SN_TALLY_PRODUCT];
    sn_u64 code;
    if (p->kind == SN_FINITE && !told->tally && sn_short_round(&p->exact, f, env, word, &code)) return code;
    return sn_term_round(p, f, env, word, told);
}

/* sn_term_into, once: it is long, and loops whose short way is quick are better off without it. */
static SN_NOINLINE sn_u64 accumulate(const sn_term *p, sn_u64 sum, sn_u64 *error, const sn_format *f, const sn_env *env,
                                     sn_u32 word, sn_told *told, sn_told *rest) {
    return sn_term_into(p, sum, error, f, env, word, told, rest);
}

/* Step k of all outputs of the block, into the sums of one lane. */
static void multiply_add(block *b, ptrdiff_t k, ptrdiff_t lane) {
    const sn_mad_unit *u = b->u;
    const sn_env *env = &u->product_env; /* which reads a and b, also where no product is rounded */
    const sn_format *f = &u->accumulator;
    sn_told *told = &b->told[SN_TALLY_SUM], *rest = &b->told[SN_TALLY_COMPENSATION];
    const int short_way = !u->compensated && !told->tally, random = b->random;
    sn_u64 *sums = b->sums + (lane + 1) * b->outputs, *errors = b->errors + (lane + 1) * b->outputs;
    sn_number y[BLOCK_COLUMNS];
    for (ptrdiff_t j = 0; j < b->columns; j++)
        y[j] = sn_read(&u->operand_b, env, b->g->b[k * b->g->ldb + b->column + j]);
    draw(b, k);
    for (ptrdiff_t i = 0, o = 0; i < b->rows; i++) {
        const sn_number x = sn_read(&u->operand_a, env, b->g->a[(b->row + i) * b->g->lda + k]);
        for (ptrdiff_t j = 0; j < b->columns; j++, o++) {
            sn_term p = sn_term_of_product(&x, &y[j]);
            if (!u->fused) {
                const sn_number rounded = sn_read(&u->product, &u->sum_env, round_product(b, &p, o, k));
                p = sn_term_of(&rounded);
            }
            const sn_u32 word = random ? word_of(b, o, k, 1) : 0;
            if (short_way && p.kind == SN_FINITE && sn_short_add(&p.exact, f, &u->sum_env, word, &sums[o])) continue;
            sums[o] = accumulate(&p, sums[o], u->compensated ? &errors[o] : NULL, f, &u->sum_env, word, told, rest);
        }
    }
}

/* Slot i becomes slot i + slot j. */
static void join(block *b, ptrdiff_t i, ptrdiff_t j) {
    const sn_format *f = &b->u->accumulator;
    const sn_env *env = &b->u->sum_env;
    draw(b, b->step);
    for (ptrdiff_t o = 0; o < b->outputs; o++) {
        sn_u64 *sum = &b->sums[i * b->outputs + o];
        const sn_number x = sn_read(f, env, *sum);
        const sn_term left = sn_term_of(&x);
        *sum = accumulate(&left, b->sums[j * b->outputs + o], NULL, f, env, word_of(b, o, b->step, 1),
                          &b->told[SN_TALLY_LANES], NULL);
    }
    b->step++;
}

/* The sum of both halves of n slots, the first half being the larger one of an odd count. */
static void join_halves(block *b, ptrdiff_t first, ptrdiff_t n) { /* NOLINT(misc-no-recursion): ten levels at most */
    if (n < 2) return;
    const ptrdiff_t half = (n + 1) / 2;
    join_halves(b, first, half);
    join_halves(b, first + half, n - half);
    join(b, first, first + half);
}

/* n slots from the first on become one number, in the first. */
static void reduce(block *b, ptrdiff_t first, ptrdiff_t n) {
    switch (b->u->reduction) {
    case SN_REDUCTION_TREE:
        for (ptrdiff_t stride = 1; stride < n; stride *= 2)
            for (ptrdiff_t i = 0; i + stride < n; i += 2 * stride)
                join(b, first + i, first + i + stride);
        return;
    case SN_REDUCTION_PAIRWISE: join_halves(b, first, n); return;
    default:
        for (ptrdiff_t i = 1; i < n; i++)
            join(b, first, first + i);
    }
}

/* The block's outputs, into b->outer. */
static void compute(block *b) {
    const sn_mad_unit *u = b->u;
    const ptrdiff_t lanes = (ptrdiff_t)u->lanes, chunk = u->chunk ? (ptrdiff_t)u->chunk : b->g->k;
    const ptrdiff_t outputs = b->outputs;
    const int with_c = !u->chunk && lanes > 1 && b->g->c; /* C takes part in the reduction of lanes */
    b->step = b->g->k;
    b->drawn = 0;
    memset(b->outer_errors, 0, sizeof b->outer_errors);
    for (ptrdiff_t o = 0; o < outputs; o++)
        b->outer[o] = b->g->c ? b->g->c[(b->row + o / b->columns) * b->g->ldc + b->column + o % b->columns] : 0;
    for (ptrdiff_t start = 0; start < b->g->k; start += chunk) {
        const ptrdiff_t length = b->g->k - start < chunk ? b->g->k - start : chunk;
        memset(b->sums + outputs, 0, (size_t)(lanes * outputs) * sizeof *b->sums);
        memset(b->errors + outputs, 0, (size_t)(lanes * outputs) * sizeof *b->errors);
        if (!u->chunk) memcpy(b->sums + (with_c ? 0 : outputs), b->outer, (size_t)outputs * sizeof *b->sums);
        for (ptrdiff_t k = 0, lane = 0; k < length; k++) {
            multiply_add(b, start + k, lane);
            lane = lane + 1 < lanes ? lane + 1 : 0;
        }
        reduce(b, with_c ? 0 : 1, lanes + with_c);
        const sn_u64 *sums = b->sums + (with_c ? 0 : outputs);
        if (!u->chunk) {
            memcpy(b->outer, sums, (size_t)outputs * sizeof *sums);
            return;
        }
        draw(b, b->step);
        for (ptrdiff_t o = 0; o < outputs; o++) {
            const sn_number x = sn_read(&u->accumulator, &u->outer_env, sums[o]);
            const sn_term part = sn_term_of(&x);
            b->outer[o] =
                accumulate(&part, b->outer[o], u->compensated ? &b->outer_errors[o] : NULL, &u->outer, &u->outer_env,
                           word_of(b, o, b->step, 1), &b->told[SN_TALLY_OUTER], &b->outer_rest);
        }
        b->step++;
    }
}

sn_u32 sn_gemm_definition(const sn_mad_unit *u, const sn_product_codes *g) {
    block b;
    sn_mad_unit telling;
    if (g->tallies) { /* formats that raise no flags raise them here, for the tallies alone */
        telling = *u;
        sn_let_raise(&telling.product), sn_let_raise(&telling.accumulator), sn_let_raise(&telling.outer);
        u = &telling;
    }
    const ptrdiff_t lanes = (ptrdiff_t)u->lanes;
    const ptrdiff_t most = BLOCK_SUMS / lanes < BLOCK_OUTPUTS ? BLOCK_SUMS / lanes : BLOCK_OUTPUTS;
    const ptrdiff_t columns = most < BLOCK_COLUMNS ? most : BLOCK_COLUMNS, rows = most / columns;
    b.u = u;
    b.g = g;
    for (int i = 0; i < SN_MAD_TALLIES; i++)
        b.told[i] = sn_told_nothing(g->tallies ? &g->tallies[i] : NULL);
    b.outer_rest = b.told[SN_TALLY_COMPENSATION];
    b.random = sn_is_stochastic(&u->sum_env) || (!u->fused && sn_is_stochastic(&u->product_env));
    b.wide = u->two_roundings && (u->sum_env.stochastic_bits > 16 || u->product_env.stochastic_bits > 16);
    b.steps = g->k;
    if (u->chunk && g->k)
        b.steps += ((g->k - 1) / (ptrdiff_t)u->chunk + 1) * lanes;
    else if (g->k)
        b.steps += lanes - 1 + (lanes > 1 && g->c);
    for (b.row = g->m0; b.row < g->m1; b.row += rows)
        for (b.column = 0; b.column < g->n; b.column += columns) {
            b.rows = g->m1 - b.row < rows ? g->m1 - b.row : rows;
            b.columns = g->n - b.column < columns ? g->n - b.column : columns;
            b.outputs = b.rows * b.columns;
            compute(&b);
            for (ptrdiff_t o = 0; o < b.outputs; o++)
                g->out[(b.row + o / b.columns) * g->ldo + b.column + o % b.columns] = b.outer[o];
        }
    const sn_u32 sums = sn_told_no_code(&b.told[SN_TALLY_SUM]) | sn_told_no_code(&b.told[SN_TALLY_COMPENSATION]) |
                        sn_told_no_code(&b.told[SN_TALLY_LANES]);
    const sn_u32 outer = sn_told_no_code(&b.told[SN_TALLY_OUTER]) | sn_told_no_code(&b.outer_rest);
    return sn_told_no_code(&b.told[SN_TALLY_PRODUCT]) | sums << 1 | outer << 2;
}

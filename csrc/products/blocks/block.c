#include "products/blocks/block.h"

extern const sn_block_kernels sn_block_kernels_portable, sn_block_kernels_avx2, sn_block_kernels_avx512;

const sn_block_kernels *sn_block_kernels_for(int isa) {
    switch (isa) {
    case SN_ISA_PORTABLE: return &sn_block_kernels_portable;
#if defined(__x86_64__)
    case SN_ISA_AVX2: return &sn_block_kernels_avx2;
    case SN_ISA_AVX512: return &sn_block_kernels_avx512;
#endif
    default: return NULL;
    }
}

void sn_block_words(const sn_u32 key[2], const sn_u32 key2[2], sn_u32 batch, ptrdiff_t row, ptrdiff_t column,
                    ptrdiff_t step, int two_roundings, int wide, sn_u32 words[2]) {
    const sn_step_words w =
        sn_words_of_steps((sn_u32)(step / 4), (sn_u32)column, (sn_u32)row, batch, key, key2, two_roundings, wide);
    words[0] = w.product.w[step % 4];
    words[1] = w.sum.w[step % 4];
}

static void words_of(const sn_block_unit *u, const sn_block_part *g, ptrdiff_t i, ptrdiff_t j, ptrdiff_t step,
                     sn_u32 words[2]) {
    const int product = u->rounds_product && sn_is_stochastic(&u->product_env), sum = sn_is_stochastic(&u->sum_env);
    words[0] = words[1] = 0;
    if (!product && !sum) return;
    if (g->words) {
        const sn_u32 *w = g->words + ((i * g->n + j) * g->steps + step) * 2;
        words[0] = w[0];
        words[1] = w[1];
        return;
    }
    const int wide = u->product_env.stochastic_bits > 16 || u->sum_env.stochastic_bits > 16;
    sn_block_words(u->key, u->key2, u->batch, g->m0 + i, g->n0 + j, step, product && sum, wide, words);
}

/* One output's step where sums of blocks are exact. */
static sn_u64 add_exact(const sn_block_unit *u, const sn_block_part *g, const sn_block_rounding *r, ptrdiff_t i,
                        ptrdiff_t j, const sn_number *x, const sn_number *y, const sn_u32 words[2]) {
    sn_block_sum sum;
    sn_block_begin(&sum, x, y, u->bottom, u->plain, u->words);
    for (ptrdiff_t k = 0; k < g->k; k++) {
        const sn_number p = sn_unpack(&u->element_a, g->a[i * g->k + k]);
        const sn_number q = sn_unpack(&u->element_b, g->b[k * g->n + j]);
        sn_block_product(&sum, &p, &q);
    }
    return sn_block_end(&sum, r, g->out[i * g->n + j], words);
}

static sn_u64 add_sum(const sn_block_unit *u, const sn_block_part *g, const sn_block_rounding *r, ptrdiff_t at,
                      const sn_number *x, const sn_number *y, const sn_u32 words[2]) {
    const sn_number s = sn_unpack(&u->inner, g->sums[at]);
    return sn_block_scaled(r, &s, x, y, g->out[at], words);
}

/* The unit, whose formats raise flags even if they are P3109's where there are tallies to be told; and whom to tell. */
static sn_block_unit telling(const sn_block_unit *unit, const sn_block_part *g, sn_told told[SN_BLOCK_TALLIES]) {
    sn_block_unit u = *unit;
    if (g->tallies) u.product.p3109 = u.accumulator.p3109 = 0;
    for (int i = 0; i < SN_BLOCK_TALLIES; i++)
        told[i] = sn_told_nothing(g->tallies ? &g->tallies[i] : NULL);
    return u;
}

sn_u32 sn_block_add(const sn_block_unit *unit, const sn_block_part *g, ptrdiff_t step) {
    sn_told told[SN_BLOCK_TALLIES];
    const sn_block_unit whole = telling(unit, g, told), *u = &whole;
    const sn_block_rounding r = {u->rounds_product ? &u->product : NULL,
                                 &u->accumulator,
                                 &u->product_env,
                                 &u->sum_env,
                                 &told[SN_TALLY_SCALED],
                                 &told[SN_TALLY_BLOCKS]};
    sn_u32 words[2];
    for (ptrdiff_t i = 0; i < g->rows; i++) {
        const sn_number x = sn_unpack(&u->scale_a, g->scale_a[i]);
        for (ptrdiff_t j = 0; j < g->n; j++) {
            const sn_number y = sn_unpack(&u->scale_b, g->scale_b[j]);
            words_of(u, g, i, j, step, words);
            g->out[i * g->n + j] =
                u->exact ? add_exact(u, g, &r, i, j, &x, &y, words) : add_sum(u, g, &r, i * g->n + j, &x, &y, words);
        }
    }
    return sn_told_no_code(&told[SN_TALLY_SCALED]) | sn_told_no_code(&told[SN_TALLY_BLOCKS]) << 1;
}

sn_u32 sn_block_finish(const sn_block_unit *unit, const sn_block_part *g, ptrdiff_t step) {
    sn_told told[SN_BLOCK_TALLIES];
    const sn_block_unit whole = telling(unit, g, told), *u = &whole;
    sn_u32 words[2];
    for (ptrdiff_t i = 0; i < g->rows; i++)
        for (ptrdiff_t j = 0; j < g->n; j++) {
            const ptrdiff_t at = i * g->n + j;
            words_of(u, g, i, j, step, words);
            g->out[at] = sn_tensor_scaled(&u->accumulator, &u->sum_env, g->out[at], &u->tensor_a, &u->tensor_b,
                                          g->c ? &g->c[at] : NULL, words[1], &told[SN_TALLY_TENSOR]);
        }
    return sn_told_no_code(&told[SN_TALLY_TENSOR]) << 1;
}

sn_u32 sn_block_word(const sn_block_fast *u, ptrdiff_t row, ptrdiff_t column, ptrdiff_t step, int which) {
    const int wide = u->product.stochastic_bits > 16 || u->sum.stochastic_bits > 16;
    sn_u32 words[2];
    sn_block_words(u->key, u->key2, u->batch, row, column, step, u->two_roundings, wide, words);
    return words[which];
}

#include "gemm.h"

extern const sn_gemm_kernels sn_gemm_kernels_portable, sn_gemm_kernels_avx2, sn_gemm_kernels_avx512;

const sn_gemm_kernels *sn_gemm_kernels_for(int isa) {
    switch (isa) {
    case SN_ISA_PORTABLE: return &sn_gemm_kernels_portable;
#if defined(__x86_64__)
    case SN_ISA_AVX2: return &sn_gemm_kernels_avx2;
    case SN_ISA_AVX512: return &sn_gemm_kernels_avx512;
#endif
    default: return NULL;
    }
}

/* The random word of step k of one rounding; which 0: product, 1: sum. */
static sn_u32 step_word(const sn_mad_unit *u, const sn_gemm_codes *g, ptrdiff_t row, ptrdiff_t column, sn_u64 k,
                        ptrdiff_t steps, int which) {
    if (g->words) return g->words[(((row * g->n_total + column) * steps) + (ptrdiff_t)k) * 2 + which];
    int wide = u->two_roundings && (u->sum_env.stochastic_bits > 16 || u->product_env.stochastic_bits > 16);
    const sn_u32 *key = which && wide ? u->key2 : u->key;
    sn_philox_words p = sn_philox((sn_u32)(k / 4), (sn_u32)column, (sn_u32)row, u->batch, key[0], key[1]);
    return which && u->two_roundings && !wide ? p.w[k % 4] >> 16 : p.w[k % 4];
}

sn_u32 sn_gemm_definition(const sn_mad_unit *u, const sn_gemm_codes *g) {
    sn_u32 product_flags = 0, sum_flags = 0, outer_flags = 0;
    const sn_format *fs = &u->accumulator, *fo = u->chunk ? &u->outer : &u->accumulator;
    const int random_product = !u->fused && sn_is_stochastic(&u->product_env),
              random_sum = sn_is_stochastic(&u->sum_env);
    const ptrdiff_t chunks = u->chunk && g->k ? (g->k - 1) / (ptrdiff_t)u->chunk + 1 : 0, steps = g->k + chunks;
    for (ptrdiff_t row = g->m0; row < g->m1; row++)
        for (ptrdiff_t j = 0; j < g->n; j++) {
            const ptrdiff_t column = g->n0 + j;
            sn_u64 outer = g->c ? g->c[row * g->ldc + j] : 0, acc = u->chunk ? 0 : outer;
            sn_u64 left = (sn_u64)u->chunk, reduction = (sn_u64)g->k;
            for (ptrdiff_t k = 0; k < g->k; k++) {
                sn_u64 x = g->a[row * g->lda + k], y = g->b[k * g->ldb + j];
                sn_u32 word = random_sum ? step_word(u, g, row, column, (sn_u64)k, steps, 1) : 0;
                if (u->fused) {
                    acc = sn_fma(&u->operand_a, x, &u->operand_b, y, fs, acc, fs, &u->sum_env, word, &sum_flags);
                } else {
                    sn_u32 first = random_product ? step_word(u, g, row, column, (sn_u64)k, steps, 0) : 0;
                    sn_u64 p = sn_multiply(&u->operand_a, x, &u->operand_b, y, &u->product, &u->product_env, first,
                                           &product_flags);
                    acc = sn_add(fs, acc, &u->product, p, fs, &u->sum_env, word, &sum_flags);
                }
                if (u->chunk && (--left == 0 || k == g->k - 1)) {
                    word = random_sum ? step_word(u, g, row, column, reduction, steps, 1) : 0;
                    outer = sn_add(fo, outer, fs, acc, fo, &u->outer_env, word, &outer_flags);
                    acc = 0;
                    reduction++;
                    left = (sn_u64)u->chunk;
                }
            }
            g->out[row * g->ldo + j] = u->chunk ? outer : acc;
        }
    return (sn_u32)((product_flags & SN_NO_CODE) != 0) | (sn_u32)((sum_flags & SN_NO_CODE) != 0) << 1 |
           (sn_u32)((outer_flags & SN_NO_CODE) != 0) << 2;
}

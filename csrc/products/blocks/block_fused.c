#include "products/blocks/block_fused.h"

sn_u32 sn_block_fused_definition(const sn_block_fused *unit, const sn_block_fused_codes *part) {
    const sn_product_codes *g = &part->codes;
    sn_block_fused u = *unit;
    sn_format *acc = &u.unit.fused.accumulator;
    sn_told told[SN_BLOCK_FUSED_TALLIES];
    if (g->tallies) sn_let_raise(acc);
    for (int i = 0; i < SN_BLOCK_FUSED_TALLIES; i++)
        told[i] = sn_told_nothing(g->tallies ? &g->tallies[i] : NULL);
    const int last = u.tensor && g->k > 0;
    for (ptrdiff_t row = g->m0; row < g->m1; row++)
        for (ptrdiff_t j = 0; j < g->n; j++) {
            const sn_block_fused_operands o = {
                g->a + row * g->lda, g->b + j, part->scale_a + row * part->lds_a, part->scale_b + j, 1, g->ldb, 1,
                part->lds_b,         g->k};
            const sn_u64 *c = g->c ? &g->c[row * g->ldc + j] : NULL;
            sn_u64 sum = c && !last ? *c : 0;
            for (ptrdiff_t k = 0; k < g->k; k += u.unit.fused.terms) {
                sn_fused_told t;
                sum = sn_block_fused_step(&u.unit, &o, k, sum, &t);
                sn_tell(&told[SN_BLOCK_FUSED_STEPS], acc, &u.unit.fused.sum_env, sum, t.raised, t.infinite);
            }
            if (last)
                sum = sn_tensor_scaled(acc, &u.tensor_env, sum, &u.tensor_a, &u.tensor_b, c, 0,
                                       &told[SN_BLOCK_FUSED_TENSOR]);
            g->out[row * g->ldo + j] = sum;
        }
    return sn_told_no_code(&told[SN_BLOCK_FUSED_STEPS]) | sn_told_no_code(&told[SN_BLOCK_FUSED_TENSOR]);
}

#include "exact.h"

sn_u32 sn_exact_definition(const sn_exact_unit *u, const sn_exact_codes *g) {
    const int random = sn_is_stochastic(&u->env);
    sn_u32 flags = 0;
    for (ptrdiff_t row = g->m0; row < g->m1; row++)
        for (ptrdiff_t j = 0; j < g->n; j++) {
            const ptrdiff_t column = g->n0 + j;
            const sn_u64 start = g->c ? g->c[row * g->ldc + j] : 0;
            sn_u64 *out = g->out + row * g->ldo + j;
            if (g->k == 0) {
                *out = start;
                continue;
            }
            sn_kulisch sum;
            sn_kulisch_clear(&sum, u->bottom, u->words);
            const sn_number c = sn_unpack(&u->accumulator, start);
            sn_kulisch_add(&sum, &c);
            for (ptrdiff_t k = 0; k < g->k; k++) {
                const sn_number x = sn_unpack(&u->operand_a, g->a[row * g->lda + k]);
                const sn_number y = sn_unpack(&u->operand_b, g->b[k * g->ldb + j]);
                sn_kulisch_add_product(&sum, &x, &y);
            }
            sn_u32 word = 0;
            if (random && g->words)
                word = g->words[(row * g->n_total + column) * 2 + 1];
            else if (random)
                word = sn_philox(0, (sn_u32)column, (sn_u32)row, u->batch, u->key[0], u->key[1]).w[0];
            *out = sn_kulisch_round(&sum, &u->accumulator, &u->env, word, &flags);
        }
    return (flags & SN_NO_CODE) != 0;
}

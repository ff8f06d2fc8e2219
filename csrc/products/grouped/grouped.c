#include "products/grouped/grouped.h"

#include <string.h>

#include "dispatch/facts.h"

sn_u32 sn_grouped_definition(const sn_grouped_unit *u, const sn_product_codes *g) {
    sn_told told[SN_GROUPED_TALLIES];
    for (int i = 0; i < SN_GROUPED_TALLIES; i++)
        told[i] = sn_told_nothing(g->tallies ? &g->tallies[i] : NULL);
    for (ptrdiff_t row = g->m0; row < g->m1; row++)
        for (ptrdiff_t j = 0; j < g->n; j++) {
            const sn_u64 *a = g->a + row * g->lda, *b = g->b + j;
            sn_u64 acc = g->c ? g->c[row * g->ldc + j] : 0;
            for (ptrdiff_t first = 0; first < g->k; first += u->terms) {
                const ptrdiff_t last = g->k - first < u->terms ? g->k : first + u->terms;
                acc = sn_grouped_step(u, a, 1, b, g->ldb, first, last, acc, told);
            }
            g->out[row * g->ldo + j] = acc;
        }
    return sn_told_no_code(&told[SN_GROUPED_SUM]) | sn_told_no_code(&told[SN_GROUPED_PARTIAL]) << 1;
}

extern void sn_grouped_portable(const sn_grouped_plan *p, const sn_fused_values *g);
extern void sn_grouped_avx2(const sn_grouped_plan *p, const sn_fused_values *g);
extern void sn_grouped_avx512(const sn_grouped_plan *p, const sn_fused_values *g);

sn_grouped_kernel sn_grouped_kernel_for(int isa) {
    switch (isa) {
    case SN_ISA_PORTABLE: return sn_grouped_portable;
#if defined(__x86_64__)
    case SN_ISA_AVX2: return sn_grouped_avx2;
    case SN_ISA_AVX512: return sn_grouped_avx512;
#endif
    default: return NULL;
    }
}

/* ---- the fast path ------------------------------------------------------------------------------------------------
 */

enum { MOST_TERMS = 64 };

int sn_grouped_path(const sn_grouped_unit *u, sn_grouped_plan *p) {
    const sn_format *a = &u->products.a, *b = &u->products.b;
    const sn_i32 F = u->fraction_bits, mode = u->sum_env.rounding;
    if (F < 0 || F > 29 || u->terms > MOST_TERMS || !u->rounded || u->partial_env.rounding != SN_TO_ODD) return 0;
    if (mode != SN_TO_ODD && mode != SN_NEAREST_EVEN) return 0;
    if (memcmp(&u->accumulator, &sn_binary32, sizeof(sn_format)) != 0) return 0;
    if (memcmp(&u->partial, &sn_binary32, sizeof(sn_format)) != 0) return 0;
    if (!sn_fused_is_usual(a) || !sn_fused_is_usual(b)) return 0;
    if (sn_facts_of(a).precision + sn_facts_of(b).precision > 24) return 0;
    memset(p, 0, sizeof *p);
    p->unit = *u;
    p->packing.unit.terms = p->packing.unit.period = u->terms;
    p->packing.least_a = a->emin + 127;
    p->packing.least_b = b->emin + 127;
    p->packing.low = F - 124;
    p->packing.high = 125;
    p->packing.floor = p->packing.low + 127;
    p->packing.zero_a = p->packing.zero_b = 0x8000u;
    p->wide = (sn_i64)u->terms << (F + 2) > (sn_i64)1 << 31;
    return 1;
}

float sn_grouped_value(const sn_grouped_plan *p, const sn_fused_values *g, ptrdiff_t row, ptrdiff_t column) {
    const sn_grouped_unit *u = &p->unit;
    const float *a = g->a + row * g->lda, *b = g->b + column, start = g->c ? g->c[row * g->ldc + column] : 0;
    int lost = start != start; /* NaNs stay */
    for (ptrdiff_t k = 0; k < g->k && !lost; k++)
        lost = a[k] != a[k] || b[k * g->ldb] != b[k * g->ldb];
    if (lost) return __builtin_nanf("");
    sn_u64 x[MOST_TERMS], y[MOST_TERMS], acc = sn_fused_code(&u->accumulator, start);
    sn_told told[SN_GROUPED_TALLIES] = {sn_told_nothing(NULL), sn_told_nothing(NULL)};
    for (ptrdiff_t first = 0; first < g->k; first += u->terms) {
        const ptrdiff_t count = g->k - first < u->terms ? g->k - first : u->terms;
        for (ptrdiff_t k = 0; k < count; k++) {
            x[k] = sn_fused_code(&u->products.a, a[first + k]);
            y[k] = sn_fused_code(&u->products.b, b[(first + k) * g->ldb]);
        }
        acc = sn_grouped_step(u, x, 1, y, 1, 0, count, acc, told);
    }
    const sn_u32 bits = (sn_u32)acc;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

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

SN_DISPATCH(sn_grouped_kernel, sn_grouped_kernel)

/* ---- the fast path ------------------------------------------------------------------------------------------------
 */

enum { MOST_TERMS = 64, FARTHEST = 1 << 14 };

static int is_binary32(const sn_format *f) { return memcmp(f, &sn_binary32, sizeof *f) == 0; }

/* Whether nothing is flushed, and what is too large is infinite. */
static int is_plain(const sn_env *env) {
    return !env->flush_inputs && env->flush_results == SN_FLUSH_NONE && env->overflow == SN_OVERFLOW_INFINITY;
}

static int bulk_path(const sn_grouped_unit *u, sn_grouped_plan *p) {
    const sn_i32 F = u->fraction_bits, mode = u->sum_env.rounding;
    if (F > 29 || !u->rounded || u->partial_env.rounding != SN_TO_ODD || u->scale) return 0;
    if (mode != SN_TO_ODD && mode != SN_NEAREST_EVEN) return 0;
    if (!is_binary32(&u->accumulator) || !is_binary32(&u->partial) || !is_plain(&u->sum_env)) return 0;
    p->packing.low = F - 124;
    p->packing.high = 125;
    p->packing.floor = p->packing.low + 127;
    p->reach = 127 + F;
    if ((sn_i64)u->terms << (F + 2) > (sn_i64)1 << 31) p->how |= SN_GROUPS_LONG;
    if (mode == SN_TO_ODD) p->how |= SN_GROUPS_ODD;
    return 1;
}

/* fraction: fraction bits of a product. */
static int steps_path(const sn_grouped_unit *u, sn_grouped_plan *p, sn_i32 fraction) {
    if (u->partial_env.rounding != SN_TO_ODD || u->sum_env.rounding != SN_TO_ODD || u->scale) return 0;
    if (!is_binary32(&u->accumulator) || !is_binary32(&u->partial)) return 0;
    if (!u->sum_env.flush_inputs || u->sum_env.flush_results == SN_FLUSH_NONE) return 0;
    if (u->sum_env.overflow != SN_OVERFLOW_INFINITY) return 0;
    if (u->products.a.emin != -126 || u->products.b.emin != -126) return 0;
    p->how = SN_GROUPS_STEPS;
    p->packing.least_a = p->packing.least_b = 0;
    p->packing.low = fraction - 126;
    p->packing.high = 126 - sn_bit_length((sn_u64)u->terms - 1);
    p->least_operand = -126;
    p->least_start = 0x1p-103f;
    p->most_bits--; /* what overflows may have become the largest number */
    return 1;
}

static int exact_path(const sn_grouped_unit *u, sn_grouped_plan *p, sn_i32 fraction) {
    const sn_format *acc = &u->accumulator;
    const sn_i32 narrow = !is_binary32(acc), m = acc->mantissa_bits;
    if (u->sum_env.rounding != SN_NEAREST_EVEN || !is_plain(&u->sum_env)) return 0;
    p->packing.low = fraction - 149;
    p->packing.high = 125;
    if (!narrow && !u->scale && (u->terms == 1 || (u->terms == 2 && u->rounded))) {
        if (u->rounded && (!is_binary32(&u->partial) || u->partial_env.rounding != SN_NEAREST_EVEN)) return 0;
        p->how = SN_GROUPS_FUSED;
        return 1;
    }
    if (u->rounded) return 0;
    if (narrow &&
        (!sn_fused_is_usual(acc) || m < 1 || m > 21 || !acc->negative_zero || !acc->has_nan || acc->emax > 90))
        return 0;
    p->constant = 0x1.8p0 * (double)((sn_u64)1 << ((u->terms == 1 && !u->scale ? 23 : 52) - m));
    if (narrow && u->terms == 1 && !u->scale) {
        p->how = SN_GROUPS_NARROW;
        p->packing.high = 90;
        return 1;
    }
    p->how = narrow ? SN_GROUPS_WIDE_NARROW : SN_GROUPS_WIDE;
    p->reach = 51 - fraction - sn_bit_length((sn_u64)u->terms - 1);
    return p->reach >= 0;
}

int sn_grouped_path(const sn_grouped_unit *u, sn_grouped_plan *p) {
    const sn_format *a = &u->products.a, *b = &u->products.b;
    if (u->terms > MOST_TERMS || !sn_fused_is_usual(a) || !sn_fused_is_usual(b)) return 0;
    if (sn_facts_of(a).precision + sn_facts_of(b).precision > 24) return 0;
    memset(p, 0, sizeof *p);
    p->unit = *u;
    p->packing.unit.terms = p->packing.unit.period = u->terms;
    p->packing.least_a = a->emin + 127;
    p->packing.least_b = b->emin + 127;
    p->packing.zero_a = p->packing.zero_b = 0x8000u;
    p->reach = FARTHEST;
    p->least_operand = -FARTHEST;
    const sn_u64 scale = (sn_u64)(u->scale + 1023) << 52;
    memcpy(&p->scale, &scale, sizeof scale);
    p->most_bits = (sn_u32)sn_pattern_of(&sn_binary32, &u->accumulator, u->accumulator.max_code);
    p->most_bits64 = sn_pattern_of(&sn_binary64, &u->accumulator, u->accumulator.max_code);
    const sn_i32 fraction = a->mantissa_bits + b->mantissa_bits;
    if (u->fraction_bits == SN_GROUPED_STEPS) return steps_path(u, p, fraction);
    if (u->fraction_bits == SN_GROUPED_EXACT) return exact_path(u, p, fraction);
    return bulk_path(u, p);
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
    const sn_env env = {0};
    sn_u32 flags = 0;
    const sn_u32 bits = (sn_u32)sn_convert(&u->accumulator, acc, &sn_binary32, &env, 0, &flags);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

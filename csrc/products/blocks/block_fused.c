#include "products/blocks/block_fused.h"

#include <string.h>

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

SN_DISPATCH(sn_block_fused_kernel, sn_block_fused_kernel)

enum { LEAST_POWER = -400 };

/* 2^e, e within binary64's normal exponents. */
static double power_of(sn_i32 e) {
    const sn_u64 bits = (sn_u64)(e + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The number of bits of n - 1: n is at most 2^this. */
static sn_i32 log_of(sn_i32 n) { return n > 1 ? sn_bit_length((sn_u64)n - 1) : 0; }

int sn_block_fused_path(const sn_block_fused_unit *u, sn_block_fused_plan *p) {
    const sn_fused_unit *f = &u->fused;
    const sn_facts a = sn_facts_of(&f->a), b = sn_facts_of(&f->b), x = sn_facts_of(&u->scale_a),
                   y = sn_facts_of(&u->scale_b);
    const sn_i32 groups = f->terms / u->group, cut = f->truncate_fraction;
    const sn_i32 end = sn_end_of(&f->a) + sn_end_of(&f->b) + log_of(u->group), bits = end - (a.last + b.last);
    if (u->group == 1 || groups > SN_BLOCK_GROUPS || !f->always_infinity) return 0;
    if (memcmp(&f->accumulator, &sn_binary32, sizeof sn_binary32) != 0 || f->sum_env.rounding != SN_TOWARD_ZERO)
        return 0;
    if (bits > 24 || !sn_fits(a, 32) || !sn_fits(b, 32)) return 0; /* sums are exact in binary32 */
    if (bits + x.precision + y.precision > 53 || !sn_fits(x, 32) || !sn_fits(y, 32)) return 0;
    /* a term's significands of both scales are below 4, and C's below 2; one bit for their sum */
    if (end + 2 + f->fraction_bits + log_of(groups) + 1 > 50 || f->fraction_bits + 2 > 50) return 0;
    if (f->zero_exponent != SN_FUSED_NO_FLOOR && f->zero_exponent < LEAST_POWER / 2) return 0;
    if (f->min_exponent > -LEAST_POWER) return 0;
    memset(p, 0, sizeof *p);
    p->unit = *u;
    p->powers = x.precision == 1 && y.precision == 1 && !u->scale_a.has_zero && !u->scale_b.has_zero;
    p->floor_power = power_of(f->min_exponent > LEAST_POWER ? f->min_exponent : LEAST_POWER);
    p->zero_power = f->zero_exponent == SN_FUSED_NO_FLOOR ? 0 : power_of(f->zero_exponent);
    p->keep = cut >= 0 && cut < 52 ? ~(((sn_u64)1 << (52 - cut)) - 1) : ~(sn_u64)0;
    return 1;
}

#include "products/fused/fused.h"

#include <string.h>

#include "dispatch/facts.h"

/* In both definitions, formats that raise no flags do raise them if tallies count them. */
sn_u32 sn_fused_definition(const sn_fused_unit *unit, const sn_product_codes *g) {
    sn_fused_unit u = *unit;
    if (g->tallies) sn_let_raise(&u.accumulator), sn_let_raise(&u.output);
    const sn_i64 roundings = sn_fused_roundings(&u, g->k);
    const sn_env *const envs[] = {&u.sum_env, &u.output_env, &u.after_env};
    sn_told told[SN_FUSED_TALLIES];
    for (int i = 0; i < SN_FUSED_TALLIES; i++)
        told[i] = sn_told_nothing(g->tallies ? &g->tallies[i] : NULL);
    if (u.same_output) told[SN_FUSED_TO_OUTPUT].tally = told[SN_FUSED_TO_ACCUMULATOR].tally;
    for (ptrdiff_t row = g->m0; row < g->m1; row++)
        for (ptrdiff_t j = 0; j < g->n; j++) {
            const sn_u64 *a = g->a + row * g->lda, *b = g->b + j, c = g->c ? g->c[row * g->ldc + j] : 0;
            sn_u64 sum = sn_fused_start(&u, g->k, c);
            for (sn_i64 i = 0; i < roundings; i++) {
                sn_fused_told t;
                sum = sn_fused_next(&u, a, 1, b, g->ldb, g->k, i, sum, c, &t);
                sn_tell(&told[t.which], t.which == SN_FUSED_TO_ACCUMULATOR ? &u.accumulator : &u.output, envs[t.which],
                        sum, t.raised, t.infinite);
            }
            g->out[row * g->ldo + j] = sum;
        }
    const sn_u32 output = sn_told_no_code(&told[SN_FUSED_TO_OUTPUT]) | sn_told_no_code(&told[SN_FUSED_C_ADDED]);
    return sn_told_no_code(&told[SN_FUSED_TO_ACCUMULATOR]) | output << 1;
}

sn_u32 sn_chain_definition(const sn_chain_unit *unit, const sn_product_codes *g) {
    sn_chain_unit u = *unit;
    if (g->tallies) sn_let_raise(&u.accumulator);
    const sn_i64 steps = sn_chain_steps(&u, g->k);
    sn_told told = sn_told_nothing(g->tallies);
    for (ptrdiff_t row = g->m0; row < g->m1; row++)
        for (ptrdiff_t j = 0; j < g->n; j++) {
            const sn_u64 *a = g->a + row * g->lda, *b = g->b + j;
            sn_u64 sum = g->c ? g->c[row * g->ldc + j] : 0;
            for (sn_i64 i = 0; i < steps; i++) {
                sn_u32 raised = 0;
                sn_i32 infinite = 0;
                sum = sn_chain_step(&u, a, 1, b, g->ldb, g->k, i, sum, &raised, told.tally ? &infinite : NULL);
                sn_tell(&told, &u.accumulator, &u.env, sum, raised, infinite);
            }
            g->out[row * g->ldo + j] = sum;
        }
    return sn_told_no_code(&told);
}

sn_u32 sn_two_stage_definition(const sn_two_stage_unit *unit, const sn_product_codes *g) {
    sn_two_stage_unit w = *unit;
    const sn_format *f = &w.fused.accumulator;
    if (g->tallies) sn_let_raise(&w.fused.accumulator);
    const sn_i64 steps = sn_two_stage_steps(&w, g->k);
    sn_told told = sn_told_nothing(g->tallies);
    for (ptrdiff_t row = g->m0; row < g->m1; row++)
        for (ptrdiff_t j = 0; j < g->n; j++) {
            const sn_u64 *a = g->a + row * g->lda, *b = g->b + j;
            sn_u64 sum = g->c ? g->c[row * g->ldc + j] : 0;
            for (sn_i64 i = 0; i < steps; i++) {
                sn_u32 raised = 0;
                sn_i32 infinite = 0;
                sum = sn_two_stage_step(&w, a, 1, b, g->ldb, g->k, i * w.fused.terms, sum, &raised, &infinite);
                sn_tell(&told, f, &w.fused.sum_env, sum, raised, infinite);
            }
            g->out[row * g->ldo + j] = sum;
        }
    return sn_told_no_code(&told);
}

SN_DISPATCH(sn_fused_kernel, sn_fused_kernel)

/* ---- the fast path ------------------------------------------------------------------------------------------------
 */

enum { DEEPEST = 128 }; /* the longest period that products/fused/body.h packs */

int sn_fused_is_usual(const sn_format *f) {
    return f->lowest == SN_LOWEST_SUBNORMAL && f->emin >= -126 && sn_fits(sn_facts_of(f), 32);
}

static int can_be_special(const sn_format *f) { return f->has_nan || f->has_inf; }

int sn_fused_path(const sn_fused_unit *u, sn_fused_plan *p) {
    const sn_format *acc = &u->accumulator;
    const sn_i32 F = u->fraction_bits, m = acc->mantissa_bits, nearest = u->sum_env.rounding == SN_NEAREST_EVEN;
    const sn_i32 cut = u->truncate_fraction, low = F - 124, high = nearest ? 90 : 125;
    const sn_i32 zero = u->zero_exponent < -252 ? SN_FUSED_NO_FLOOR : u->zero_exponent; /* + 127 lies below low */
    sn_i32 floor = u->min_exponent > low ? u->min_exponent : low;
    if (zero > floor) floor = zero; /* C, zero or not, has that exponent at least */
    if (!u->same_output || u->period > DEEPEST || !sn_fused_is_usual(&u->a) || !sn_fused_is_usual(&u->b) ||
        !sn_fused_is_usual(acc))
        return 0;
    if (sn_facts_of(&u->a).precision + sn_facts_of(&u->b).precision > 24 || F > 29 || floor > high) return 0;
    if (!acc->has_nan && (can_be_special(&u->a) || can_be_special(&u->b) || can_be_special(acc)))
        return 0; /* a result without a code is an error, which only the definition tells */
    if (nearest) {
        if (cut >= 0 || m < 1 || m > 21 || !acc->is_signed || !acc->negative_zero || acc->emax > 90) return 0;
        if (u->c_after && m > 10) return 0;
    } else if (u->sum_env.rounding != SN_TOWARD_ZERO || memcmp(acc, &sn_binary32, sizeof *acc) != 0) {
        return 0;
    }
    memset(p, 0, sizeof *p);
    p->unit = *u;
    p->least_a = u->a.emin + 127;
    p->least_b = u->b.emin + 127;
    p->least_c = acc->emin + 127;
    p->floor = floor + 127;
    p->low = low;
    /* -2^15 stays below everything when another exponent is added with saturation */
    p->zero_a = zero == SN_FUSED_NO_FLOOR ? 0x8000u : (sn_u32)(zero + 127) << 7 & 0xffffu;
    p->zero_b = zero == SN_FUSED_NO_FLOOR ? 0x8000u : (sn_u32)zero << 7 & 0xffffu;
    p->high = high;
    p->nearest = nearest;
    /* terms products below 2^(F + 2), and a C below 2^(F + 1) */
    p->may_carry = ((sn_i64)u->terms << (F + 2)) + ((sn_i64)1 << (F + 1)) > (sn_i64)1 << 31;
    p->group = (sn_i32)1 << (29 - F);
    p->keep = cut >= 0 && cut < 23 ? 0xffffffffu << (23 - cut) : 0xffffffffu;
    p->to_constant = (sn_u32)(23 - m) << 23 | 0x400000u;
    p->bounded = !nearest && u->a.emax + u->b.emax <= 64; /* products below 2^67 with their unnormalised digit */
    const sn_u32 limit = (sn_u32)sn_pattern_of(&sn_binary32, acc, acc->max_code);
    memcpy(&p->limit, &limit, sizeof limit);
    p->least_start = 0x1p-101f;
    p->most_start = p->bounded ? 0x1p100f : p->limit;
    return 1;
}

int sn_two_stage_path(const sn_two_stage_unit *w, sn_fused_plan *p) {
    const sn_fused_unit *u = &w->fused;
    const sn_i32 F = u->fraction_bits, sum = w->sum_fraction_bits, c = w->c_fraction_bits;
    const sn_i32 zero = u->zero_exponent < -252 ? SN_FUSED_NO_FLOOR : u->zero_exponent, most = sum > c ? sum : c;
    if (!sn_fused_is_usual(&u->a) || !sn_fused_is_usual(&u->b) ||
        memcmp(&u->accumulator, &sn_binary32, sizeof sn_binary32) != 0)
        return 0;
    if (u->sum_env.rounding != SN_NEAREST_EVEN || u->sum_env.overflow != SN_OVERFLOW_INFINITY) return 0;
    if (u->terms > DEEPEST || (zero != SN_FUSED_NO_FLOOR && zero != sn_binary32.emin)) return 0;
    if (sn_facts_of(&u->a).precision + sn_facts_of(&u->b).precision > 24 || !w->down || w->interleave > 2) return 0;
    if (F > 29 || (sn_i64)u->terms << (F + 2) > (sn_i64)1 << 31 || w->product_limit < 127) return 0;
    if (most > 40 || most < F || most + 31 - F > 50) return 0;
    memset(p, 0, sizeof *p);
    p->unit = *u;
    p->stages = *w;
    if (w->c_reach < 0) p->stages.c_reach = 1 << 16;
    p->two_stage = 1;
    p->least_a = u->a.emin + 127;
    p->least_b = u->b.emin + 127;
    p->zero_a = zero == SN_FUSED_NO_FLOOR ? 0x8000u : (sn_u32)(zero + 127) << 7 & 0xffffu;
    p->zero_b = zero == SN_FUSED_NO_FLOOR ? 0x8000u : (sn_u32)zero << 7 & 0xffffu;
    p->low = F - 124;
    p->high = 124; /* products below 2^126 */
    p->keep = 0xffffffffu;
    p->most_start = 0x1.fffffep127f;
    return 1;
}

/* Shifts of up to this many binades keep the elements' carriers normal numbers: products/fused/body.h. */
enum { ELEMENTS_LAST = -26, ELEMENTS_TOP = 26, LEAST_ZERO = -150 };

int sn_fused_path_of_blocks(const sn_block_fused_unit *u, sn_fused_plan *p) {
    const sn_fused_unit *f = &u->fused;
    const sn_facts a = sn_facts_of(&f->a), b = sn_facts_of(&f->b);
    if (u->group != 1 || !sn_fused_path(f, p) || p->nearest) return 0;
    if (u->scale_a.mantissa_bits || u->scale_a.has_zero || u->scale_b.mantissa_bits || u->scale_b.has_zero) return 0;
    if (a.last < ELEMENTS_LAST || b.last < ELEMENTS_LAST || a.top > ELEMENTS_TOP || b.top > ELEMENTS_TOP) return 0;
    if (f->zero_exponent != SN_FUSED_NO_FLOOR && f->zero_exponent < LEAST_ZERO) return 0;
    p->bounded = 0; /* scales may make products as large as there are */
    p->most_start = p->limit;
    p->blocks = u;
    return 1;
}

sn_u64 sn_fused_code(const sn_format *f, float x) {
    sn_env env = {0};
    sn_u32 bits, flags = 0;
    memcpy(&bits, &x, sizeof bits);
    return sn_convert(&sn_binary32, bits, f, &env, 0, &flags); /* exact: the operands were checked */
}

enum { SN_FUSED_PIECE = 128 };

/* The code of a scale of this exponent. */
static sn_u64 scale_of(const sn_format *f, sn_i32 shift) {
    sn_env env = {0};
    sn_u32 flags = 0;
    if (shift == SN_FUSED_NAN_SHIFT) return f->nan_code;
    return sn_convert(&sn_binary64, (sn_u64)(shift + 1023) << 52, f, &env, 0, &flags); /* exact */
}

/* sn_fused_value of operands with scales, whose blocks lie within a step or the other way round. */
static float value_of_blocks(const sn_fused_plan *p, const sn_fused_values *g, ptrdiff_t row, ptrdiff_t column) {
    const sn_fused_unit *u = &p->unit;
    const float *a = g->a + row * g->lda, *b = g->b + column;
    const sn_i32 *shift_a = g->shift_a + row * g->lds_a, *shift_b = g->shift_b + column;
    sn_u64 x[SN_FUSED_PIECE], y[SN_FUSED_PIECE], sx[SN_FUSED_PIECE], sy[SN_FUSED_PIECE];
    sn_u64 sum = g->c ? sn_fused_code(&u->accumulator, g->c[row * g->ldc + column]) : 0;
    sn_block_fused_unit each = *p->blocks;
    each.block = 1; /* of the scales below there is one for each product */
    for (ptrdiff_t k0 = 0; k0 < g->k; k0 += u->terms) {
        const ptrdiff_t length = g->k - k0 < u->terms ? g->k - k0 : u->terms;
        for (ptrdiff_t k = 0; k < length; k++) {
            const ptrdiff_t block = (k0 + k) / p->blocks->block;
            x[k] = sn_fused_code(&u->a, a[k0 + k]);
            y[k] = sn_fused_code(&u->b, b[(k0 + k) * g->ldb]);
            sx[k] = scale_of(&p->blocks->scale_a, shift_a[block]);
            sy[k] = scale_of(&p->blocks->scale_b, shift_b[block * g->lds_b]);
        }
        const sn_block_fused_operands o = {x, y, sx, sy, 1, 1, 1, 1, length};
        sn_fused_told told;
        sum = sn_block_fused_step(&each, &o, 0, sum, &told);
    }
    sn_env env = {0};
    sn_u32 flags = 0;
    const sn_u32 bits = (sn_u32)sn_convert(&u->accumulator, sum, &sn_binary32, &env, 0, &flags);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float sn_fused_value(const sn_fused_plan *p, const sn_fused_values *g, ptrdiff_t row, ptrdiff_t column) {
    const sn_fused_unit *u = &p->unit;
    const float *a = g->a + row * g->lda, *b = g->b + column;
    /* a NaN stays one, and the plan has units alone whose accumulator then has a NaN */
    int lost = g->c && g->c[row * g->ldc + column] != g->c[row * g->ldc + column];
    for (ptrdiff_t k = 0; k < g->k && !lost; k++)
        lost = a[k] != a[k] || b[k * g->ldb] != b[k * g->ldb];
    if (lost) return __builtin_nanf("");
    if (p->blocks) return value_of_blocks(p, g, row, column);
    const ptrdiff_t piece = SN_FUSED_PIECE / u->period * u->period; /* whole periods: the plan has them this short */
    sn_u64 x[SN_FUSED_PIECE], y[SN_FUSED_PIECE];
    sn_u32 flags = 0, bits;
    sn_i32 told;
    sn_u64 c = g->c ? sn_fused_code(&u->accumulator, g->c[row * g->ldc + column]) : 0, sum = u->c_after ? 0 : c;
    for (ptrdiff_t k0 = 0; k0 < g->k; k0 += piece) {
        ptrdiff_t length = g->k - k0 < piece ? g->k - k0 : piece;
        for (ptrdiff_t k = 0; k < length; k++) {
            x[k] = sn_fused_code(&u->a, a[k0 + k]);
            y[k] = sn_fused_code(&u->b, b[(k0 + k) * g->ldb]);
        }
        for (sn_i64 step = 0; step < sn_fused_steps(u, length); step++)
            sum = p->two_stage ? sn_two_stage_step(&p->stages, x, 1, y, 1, length, step * u->terms, sum, &flags, &told)
                               : sn_fused_step(u, x, 1, y, 1, length, step * u->terms, sum, &u->accumulator,
                                               &u->sum_env, &flags);
    }
    if (u->c_after) sum = g->k ? sn_add(&u->accumulator, sum, &u->output, c, &u->output, &u->after_env, 0, &flags) : c;
    sn_env env = {0};
    bits = (sn_u32)sn_convert(&u->accumulator, sum, &sn_binary32, &env, 0, &flags);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

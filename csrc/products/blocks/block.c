#include "products/blocks/block.h"

#include <string.h>

SN_DISPATCH(const sn_block_kernels, sn_block_kernels)

static void words_of(const sn_block_unit *u, const sn_block_part *g, ptrdiff_t i, ptrdiff_t j, const sn_source_step *at,
                     sn_u32 words[2]) {
    const int product = u->rounds_product && sn_is_stochastic(&u->product_env), sum = sn_is_stochastic(&u->sum_env);
    words[0] = words[1] = 0;
    if (!product && !sum) return;
    if (g->words) {
        const sn_u32 *w = g->words + ((i * g->n + j) * g->steps + (ptrdiff_t)at->number) * 2;
        words[0] = w[0];
        words[1] = w[1];
        return;
    }
    const int wide = u->product_env.stochastic_bits > 16 || u->sum_env.stochastic_bits > 16;
    sn_source_draw(&u->random, at, (sn_u32)(g->n0 + j), (sn_u32)(g->m0 + i), u->batch, u->key, u->key2, product && sum,
                   wide, words);
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
    if (g->tallies) sn_let_raise(&u.product), sn_let_raise(&u.accumulator);
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
    const sn_source_step at = sn_source_at(&u->random, (sn_u64)step);
    sn_u32 words[2];
    for (ptrdiff_t i = 0; i < g->rows; i++) {
        const sn_number x = sn_unpack(&u->scale_a, g->scale_a[i]);
        for (ptrdiff_t j = 0; j < g->n; j++) {
            const sn_number y = sn_unpack(&u->scale_b, g->scale_b[j]);
            words_of(u, g, i, j, &at, words);
            g->out[i * g->n + j] =
                u->exact ? add_exact(u, g, &r, i, j, &x, &y, words) : add_sum(u, g, &r, i * g->n + j, &x, &y, words);
        }
    }
    return sn_told_no_code(&told[SN_TALLY_SCALED]) | sn_told_no_code(&told[SN_TALLY_BLOCKS]) << 1;
}

sn_u32 sn_block_finish(const sn_block_unit *unit, const sn_block_part *g, ptrdiff_t step) {
    sn_told told[SN_BLOCK_TALLIES];
    const sn_block_unit whole = telling(unit, g, told), *u = &whole;
    const sn_source_step at = sn_source_at(&u->random, (sn_u64)step);
    sn_u32 words[2];
    for (ptrdiff_t i = 0; i < g->rows; i++)
        for (ptrdiff_t j = 0; j < g->n; j++) {
            const ptrdiff_t o = i * g->n + j;
            words_of(u, g, i, j, &at, words);
            g->out[o] = sn_tensor_scaled(&u->accumulator, &u->sum_env, g->out[o], &u->tensor_a, &u->tensor_b,
                                         g->c ? &g->c[o] : NULL, words[1], &told[SN_TALLY_TENSOR]);
        }
    return sn_told_no_code(&told[SN_TALLY_TENSOR]) << 1;
}

void sn_block_words(const sn_block_fast *u, ptrdiff_t row, ptrdiff_t column, ptrdiff_t step, int which, sn_u32 *words) {
    const int wide = u->product.stochastic_bits > 16 || u->sum.stochastic_bits > 16;
    const sn_source_step at = sn_source_at(&u->random, (sn_u64)step);
    for (ptrdiff_t j = 0; j < SN_BLOCK_TILE; j++) {
        sn_u32 both[2];
        sn_source_draw(&u->random, &at, (sn_u32)(column + j), (sn_u32)row, u->batch, u->key, u->key2, u->two_roundings,
                       wide, both);
        words[j] = both[which];
    }
}

/* ---- which path --------------------------------------------------------------------------------------------------
 */

/* By how many bits a product with values of the format may be longer than its other factor. */
static sn_i32 longer_by(const sn_format *f) {
    const sn_i32 precision = sn_facts_of(f).precision;
    return precision == 1 ? 0 : precision;
}

/* Whether what is exact, or rounded to odd, is rounded to the format in binary64. */
static int rounds(const sn_format *f, const sn_env *env, sn_rounding *r) {
    const sn_facts x = sn_facts_of(f);
    const sn_i32 seen = sn_is_stochastic(env) ? env->stochastic_bits + 1 : 2;
    if (!sn_fits(x, 64) || (f->kind == SN_FLOAT && f->lowest != SN_LOWEST_SUBNORMAL)) return 0;
    if (x.precision + seen > 52 || (f->has_inf && !f->has_nan)) return 0;
    return sn_rounding_prepare(f, env, 64, r);
}

int sn_block_path(const sn_block_unit *u, sn_block_inner inner, int tensor_scales, sn_block_fast *fast) {
    const sn_format *acc = &u->accumulator, *product = u->rounds_product ? &u->product : acc;
    const sn_env *product_env = u->rounds_product ? &u->product_env : &u->sum_env;
    const sn_facts a = sn_facts_of(&u->element_a), b = sn_facts_of(&u->element_b), x = sn_facts_of(&u->scale_a),
                   y = sn_facts_of(&u->scale_b), sums = sn_facts_of(&u->inner);
    const sn_i32 longer = longer_by(&u->scale_a) + longer_by(&u->scale_b), last = x.last + y.last,
                 end = sn_end_of(&u->scale_a) + sn_end_of(&u->scale_b);
    const sn_i32 last_sum = u->exact ? a.last + b.last : sums.last,
                 end_sum = u->exact ? sn_end_of(&u->element_a) + sn_end_of(&u->element_b) : sn_end_of(&u->inner);
    const int no_nan = !acc->has_nan || !product->has_nan;
    memset(fast, 0, sizeof *fast);
    if (u->exact && (!sn_fits(a, 64) || !sn_fits(b, 64))) return 0;
    if (!u->exact && (!inner.fast || !sn_fits(sums, 64) || sums.precision + longer > 53)) return 0;
    if (!u->exact && no_nan && inner.specials) return 0;
    if (u->sum_env.rounding == SN_DOWN) return 0; /* a sum that cancels is -0 */
    if (!rounds(acc, &u->sum_env, &fast->sum) || !rounds(product, product_env, &fast->product)) return 0;
    if (!acc->has_nan && u->rounds_product && (product->has_nan || product->has_inf))
        return 0; /* a product that overflows has no code: only the definition tells */
    if (tensor_scales && sn_facts_of(acc).precision > 24) return 0;
    if ((last_sum < 0 ? last_sum : 0) + last < -900 || (end_sum > 0 ? end_sum : 0) + 32 + end > 900) return 0;
    if (longer > 53) return 0;
    fast->random = u->random;
    fast->rounds_product = u->rounds_product;
    fast->two_roundings = u->rounds_product && sn_is_stochastic(product_env) && sn_is_stochastic(&u->sum_env);
    fast->stochastic = sn_is_stochastic(&u->sum_env) || (u->rounds_product && sn_is_stochastic(product_env));
    fast->checked = last >= -149 && end <= 128;
    fast->finite = no_nan && (a.specials || b.specials || x.specials || y.specials);
    fast->how = SN_BLOCK_GENERAL;
    if (memcmp(acc, &sn_binary32, sizeof *acc) == 0 && u->sum_env.rounding == SN_NEAREST_EVEN &&
        u->sum_env.overflow == SN_OVERFLOW_INFINITY) {
        const int scales = sn_fits(x, 32) && sn_fits(y, 32) && x.precision + y.precision <= 24;
        fast->how = u->exact && !u->rounds_product && scales ? SN_BLOCK_FMA : SN_BLOCK_BINARY32;
    }
    return 1;
}

/* Every block's number of products is at most 2^this. */
static sn_i32 log_of(ptrdiff_t size) {
    sn_i32 log = 0;
    while (((ptrdiff_t)1 << log) < size)
        log++;
    return log > 0 ? log : 1;
}

int sn_block_narrow(const sn_block_unit *u, ptrdiff_t size) {
    const sn_facts a = sn_facts_of(&u->element_a), b = sn_facts_of(&u->element_b);
    const sn_i32 end = sn_end_of(&u->element_a) + sn_end_of(&u->element_b);
    return end - (a.last + b.last) + log_of(size) <= 24 && sn_fits(a, 32) && sn_fits(b, 32);
}

/* *last and *end of the values of a format in a range. */
static void span_of(const sn_format *f, const sn_range *range, sn_i32 *last, sn_i32 *end) {
    *last = *end = 0;
    if (range->least > range->largest) return;
    *last = sn_last_in(sn_facts_of(f), *range);
    *end = sn_end_in(*range) < sn_end_of(f) ? sn_end_in(*range) : sn_end_of(f);
}

int sn_block_split(const sn_block_unit *u, ptrdiff_t size, const sn_range *elements, int infinite, double *magic) {
    const sn_format *formats[] = {&u->element_a, &u->element_b};
    const sn_i32 longer = longer_by(&u->scale_a) + longer_by(&u->scale_b), log = log_of(size);
    sn_i32 last = 0, end = 0;
    for (int i = 0; i < 2; i++) {
        sn_i32 own_last = sn_facts_of(formats[i]).last, own_end = sn_end_of(formats[i]);
        if (elements) span_of(formats[i], &elements[i], &own_last, &own_end);
        last += own_last;
        end += own_end;
    }
    *magic = 0;
    if (end - last + log <= 53 - longer) return 1;
    if (!elements || end - last + 2 * log > 103 || longer || u->rounds_product || infinite) return 0;
    const sn_u64 pattern = (sn_u64)(1023 + 52 + end + log - 51) << 52 | (sn_u64)1 << 51; /* 1.5 * 2^(52 + g) */
    memcpy(magic, &pattern, sizeof *magic);
    return 1;
}

int sn_block_scales_fit(const sn_block_unit *u, const sn_range scales[2]) {
    sn_i32 last[2], end[2];
    for (int i = 0; i < 2; i++) {
        if (scales[i].least > scales[i].largest) return 1;
        span_of(i ? &u->scale_b : &u->scale_a, &scales[i], &last[i], &end[i]);
    }
    const int powers =
        longer_by(&u->scale_a) + longer_by(&u->scale_b) == 0; /* of two, below which an end lies by one */
    return last[0] + last[1] >= -149 && end[0] + end[1] - powers <= 128;
}

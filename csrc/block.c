#include "block.h"

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

/* A number times scales: exact, or a zero, an infinity or nothing: of kind SN_QUIET_NAN, or SN_SIGNALING_NAN where it
 * came of numbers or of a signaling NaN, and raises INVALID. */
typedef struct {
    sn_exact exact;
    sn_i32 kind;
} term;

void sn_block_words(const sn_u32 key[2], const sn_u32 key2[2], sn_u32 batch, ptrdiff_t row, ptrdiff_t column,
                    ptrdiff_t step, int two_roundings, int wide, sn_u32 words[2]) {
    const sn_u32 counter = (sn_u32)(step / 4);
    const sn_philox_words w = sn_philox(counter, (sn_u32)column, (sn_u32)row, batch, key[0], key[1]);
    words[0] = words[1] = w.w[step % 4];
    if (!two_roundings) return;
    words[1] >>= 16;
    if (wide) words[1] = sn_philox(counter, (sn_u32)column, (sn_u32)row, batch, key2[0], key2[1]).w[step % 4];
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

static sn_i32 kind_of_product(const sn_number *x, const sn_number *y) {
    const sn_i32 larger = x->kind > y->kind ? x->kind : y->kind;
    if (larger <= SN_FINITE) return x->kind == SN_ZERO || y->kind == SN_ZERO ? SN_ZERO : SN_FINITE;
    return larger == SN_INF && (x->kind == SN_ZERO || y->kind == SN_ZERO) ? SN_SIGNALING_NAN : larger;
}

/* The product of two scales: of at most 64 bits, which the caller knows from the formats. */
static sn_number scale_of(const sn_number *x, const sn_number *y) {
    sn_number s = {SN_FINITE, x->sign ^ y->sign, x->exp + y->exp, 0};
    s.kind = kind_of_product(x, y);
    if (s.kind == SN_FINITE) s.sig = x->sig * y->sig;
    return s;
}

static term scaled(const sn_number *x, const sn_number *scale) {
    term t;
    t.kind = kind_of_product(x, scale);
    t.exact = sn_exact_make(x->sign ^ scale->sign, sn_u128_make(0, 0), 0);
    if (t.kind == SN_FINITE)
        t.exact = sn_exact_make(t.exact.sign, sn_u128_mul(x->sig, scale->sig), x->exp + scale->exp);
    return t;
}

/* What a NaN of that kind becomes. */
static sn_u64 nan_in(const sn_format *f, const sn_env *env, sn_i32 kind, sn_u32 *flags) {
    if (kind == SN_SIGNALING_NAN) sn_raise(f, SN_INVALID, flags);
    return f->has_nan ? f->nan_code : sn_invalid_result(f, env, flags);
}

static sn_u64 rounded(const term *t, const sn_format *f, const sn_env *env, sn_u32 word, sn_told *told) {
    sn_u32 raised = 0;
    sn_u64 code;
    if (t->kind >= SN_QUIET_NAN)
        code = nan_in(f, env, t->kind, &raised);
    else if (t->kind == SN_INF)
        code = sn_inf_result(f, env, t->exact.sign, &raised);
    else
        code = sn_round_pack(f, env, &t->exact, word, &raised);
    sn_tell(told, f, env, code, raised, t->kind == SN_INF);
    return code;
}

static sn_u64 added(const term *t, const sn_number *y, const sn_format *f, const sn_env *env, sn_u32 word,
                    sn_told *told) {
    sn_u32 raised = 0;
    sn_u64 code;
    if (t->kind >= SN_QUIET_NAN || y->kind >= SN_QUIET_NAN)
        code = nan_in(f, env, t->kind > y->kind ? t->kind : y->kind, &raised);
    else
        code = sn_add_numbers(t->exact, t->kind == SN_INF, y, f, env, word, &raised);
    sn_tell(told, f, env, code, raised, t->kind == SN_INF || y->kind == SN_INF);
    return code;
}

/* An exact sum that is a number, rounded. */
static sn_u64 summed(sn_kulisch *sum, const sn_format *f, const sn_env *env, sn_u32 word, sn_told *told) {
    const sn_i32 infinite = (sum->met & (SN_MET_PLUS_INF | SN_MET_MINUS_INF)) != 0;
    sn_u32 raised = 0;
    const sn_u64 code = sn_kulisch_round(sum, f, env, word, &raised);
    sn_tell(told, f, env, code, raised, infinite);
    return code;
}

/* The exact sum of a block's products times sig * 2^exp. */
static void sum_of_block(const sn_block_unit *u, const sn_block_part *g, ptrdiff_t i, ptrdiff_t j, sn_u64 sig,
                         sn_i32 exp, sn_i32 sign, sn_kulisch *sum) {
    for (ptrdiff_t k = 0; k < g->k; k++) {
        const sn_number x = sn_unpack(&u->element_a, g->a[i * g->k + k]);
        const sn_number y = sn_unpack(&u->element_b, g->b[k * g->n + j]);
        if (x.kind != SN_FINITE || y.kind != SN_FINITE) {
            sn_number z = x;
            z.sign ^= sign;
            sn_kulisch_add_product(sum, &z, &y);
            continue;
        }
        sum->met |= SN_MET_NUMBER;
        sn_kulisch_add_exact(sum, sn_u128_mul(x.sig * y.sig, sig), x.exp + y.exp + exp, x.sign ^ y.sign ^ sign);
    }
}

/* What an exact sum of a block is: its kind and sign. Its number stays in the accumulator. */
static sn_number kind_of_sum(const sn_kulisch *sum) {
    sn_number s = {SN_FINITE, 0, 0, 0};
    const sn_i32 infinities = sum->met & (SN_MET_PLUS_INF | SN_MET_MINUS_INF), nan = sum->met & SN_MET_NAN;
    if ((sum->met & SN_MET_INVALID) || (!nan && infinities == (SN_MET_PLUS_INF | SN_MET_MINUS_INF)))
        s.kind = SN_SIGNALING_NAN;
    else if (nan)
        s.kind = SN_QUIET_NAN;
    else if (infinities) {
        s.kind = SN_INF;
        s.sign = infinities == SN_MET_MINUS_INF;
    } else if (!sn_kulisch_low_bits(sum, 64 * sum->words))
        s.kind = SN_ZERO;
    else
        s.sign = (sn_i32)(sum->word[sum->words - 1] >> 63);
    return s;
}

/* A term, or what it is first rounded to, added to the running sum. */
static sn_u64 add_term(const sn_block_unit *u, term t, const sn_number *old, const sn_u32 words[2],
                       sn_told told[SN_BLOCK_TALLIES]) {
    if (u->rounds_product) {
        const sn_number one = {SN_FINITE, 0, 0, 1};
        const sn_number p =
            sn_unpack(&u->product, rounded(&t, &u->product, &u->product_env, words[0], &told[SN_TALLY_SCALED]));
        t = scaled(&p, &one);
    }
    return added(&t, old, &u->accumulator, &u->sum_env, words[1], &told[SN_TALLY_BLOCKS]);
}

/* One output's step where sums of blocks are exact. */
static sn_u64 add_exact(const sn_block_unit *u, const sn_block_part *g, ptrdiff_t i, ptrdiff_t j,
                        const sn_number *scale, const sn_u32 words[2], sn_told told[SN_BLOCK_TALLIES]) {
    const sn_number old = sn_unpack(&u->accumulator, g->out[i * g->n + j]), one = {SN_FINITE, 0, 0, 1};
    const int number = scale->kind == SN_FINITE;
    sn_kulisch sum;
    sn_kulisch_clear(&sum, number ? u->bottom : u->plain, u->words);
    sum_of_block(u, g, i, j, number ? scale->sig : 1, number ? scale->exp : 0, number ? scale->sign : 0, &sum);
    sn_number kind = kind_of_sum(&sum);
    if (kind.kind == SN_FINITE && number) {
        sum.met = SN_MET_NUMBER;
        if (u->rounds_product) {
            const sn_u64 code = summed(&sum, &u->product, &u->product_env, words[0], &told[SN_TALLY_SCALED]);
            const sn_number p = sn_unpack(&u->product, code);
            const term t = scaled(&p, &one);
            return added(&t, &old, &u->accumulator, &u->sum_env, words[1], &told[SN_TALLY_BLOCKS]);
        }
        sn_kulisch_add(&sum, &old);
        return summed(&sum, &u->accumulator, &u->sum_env, words[1], &told[SN_TALLY_BLOCKS]);
    }
    kind.sig = 1; /* of a number that meets an infinite scale */
    term t = scaled(&kind, scale);
    if (number && t.kind < SN_QUIET_NAN) t.exact.sign = kind.kind == SN_INF ? kind.sign : scale->sign;
    return add_term(u, t, &old, words, told);
}

static sn_u64 add_sum(const sn_block_unit *u, const sn_block_part *g, ptrdiff_t at, const sn_number *scale,
                      const sn_u32 words[2], sn_told told[SN_BLOCK_TALLIES]) {
    const sn_number s = sn_unpack(&u->inner, g->sums[at]), old = sn_unpack(&u->accumulator, g->out[at]);
    return add_term(u, scaled(&s, scale), &old, words, told);
}

/* The unit, whose formats raise flags even if they are P3109's where there are tallies to be told; and whom to tell. */
static sn_block_unit telling(const sn_block_unit *unit, const sn_block_part *g, sn_told told[SN_BLOCK_TALLIES]) {
    sn_block_unit u = *unit;
    if (g->tallies) u.product.p3109 = u.accumulator.p3109 = 0;
    for (int i = 0; i < SN_BLOCK_TALLIES; i++) {
        told[i].flags = 0;
        told[i].tally = g->tallies ? &g->tallies[i] : NULL;
    }
    return u;
}

sn_u32 sn_block_add(const sn_block_unit *unit, const sn_block_part *g, ptrdiff_t step) {
    sn_told told[SN_BLOCK_TALLIES];
    const sn_block_unit whole = telling(unit, g, told), *u = &whole;
    sn_u32 words[2];
    for (ptrdiff_t i = 0; i < g->rows; i++) {
        const sn_number x = sn_unpack(&u->scale_a, g->scale_a[i]);
        for (ptrdiff_t j = 0; j < g->n; j++) {
            const sn_number y = sn_unpack(&u->scale_b, g->scale_b[j]), scale = scale_of(&x, &y);
            words_of(u, g, i, j, step, words);
            g->out[i * g->n + j] = u->exact ? add_exact(u, g, i, j, &scale, words, told)
                                            : add_sum(u, g, i * g->n + j, &scale, words, told);
        }
    }
    return (sn_u32)((told[SN_TALLY_SCALED].flags & SN_NO_CODE) != 0) |
           (sn_u32)((told[SN_TALLY_BLOCKS].flags & SN_NO_CODE) != 0) << 1;
}

sn_u32 sn_block_finish(const sn_block_unit *unit, const sn_block_part *g, ptrdiff_t step) {
    sn_told all[SN_BLOCK_TALLIES], *told = &all[SN_TALLY_TENSOR];
    const sn_block_unit whole = telling(unit, g, all), *u = &whole;
    const sn_number scale = scale_of(&u->tensor_a, &u->tensor_b);
    sn_u32 words[2];
    for (ptrdiff_t i = 0; i < g->rows; i++)
        for (ptrdiff_t j = 0; j < g->n; j++) {
            const ptrdiff_t at = i * g->n + j;
            const sn_number x = sn_unpack(&u->accumulator, g->out[at]);
            const term t = scaled(&x, &scale);
            words_of(u, g, i, j, step, words);
            if (g->c) {
                const sn_number c = sn_unpack(&u->accumulator, g->c[at]);
                g->out[at] = added(&t, &c, &u->accumulator, &u->sum_env, words[1], told);
            } else {
                g->out[at] = rounded(&t, &u->accumulator, &u->sum_env, words[1], told);
            }
        }
    return (sn_u32)((told->flags & SN_NO_CODE) != 0) << 1;
}

sn_u32 sn_block_word(const sn_block_fast *u, ptrdiff_t row, ptrdiff_t column, ptrdiff_t step, int which) {
    const int wide = u->product.stochastic_bits > 16 || u->sum.stochastic_bits > 16;
    sn_u32 words[2];
    sn_block_words(u->key, u->key2, u->batch, row, column, step, u->two_roundings, wide, words);
    return words[which];
}

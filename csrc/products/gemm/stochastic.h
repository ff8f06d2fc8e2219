/* GEMM in binary32, sums rounded stochastically: included by products/gemm/body.h, once per instruction set. The CPU
 * rounds toward zero meanwhile (sn_fp_round).
 *
 * Domain: products exact in binary32, or rounded stochastically too; m + 1 + r <= 24 for the sums, m + r <= 20 for
 * products; with two roundings r <= 16, so that one word serves both; no sum reaches 2^128; 2^(emin - m - r) >= 2^-149.
 * The decision is floor(t * 2^r) + R >= 2^r, t the fraction beyond m bits: it needs the exact sum's first m + 1 + r
 * bits, and truncated to 24 bits a sum has them.
 *
 * Anywhere: round_to_value32 (lanes/round.h), about 20 instructions. Where nothing overflows (products/gemm/bounds.h,
 * rounding away from zero) and addends are multiples of the sum's last place, no start being -0 (SN_BARE in
 * products/gemm/micro.h: sums below 2^emin are then values of the format, with no fraction at all, and no zero is -0):
 *   - sums: the pattern, R added at the first r of the 23 - m places to be cut, cut. A carry is the next binade. 6
 *     instructions (fma or add, 3 for R, of AVX-512 2, add, and).
 *   - products: with E at least emin, |p| + C for C = 1.5 * 2^(E + 23 - m - r) has |p| in units of 2^(E - m - r) in its
 *     low bits, truncated; there R is added and r bits are cut; subtracting C is exact. 10 instructions (mul, and, and,
 *     max, fma, and, add, and, fma, and the sign). It stays in C's binade for m + r <= 20.
 * With the words (products/gemm/random.h, 23) that makes 28 instructions for a vector of 16 products, AVX-512, or 38
 * with rounded products; two begin per cycle, and sgemm needs 1. Measured for 512^3 on a Zen 4, products exact: 18.6
 * cycles. */

typedef struct {
    sn_u32 take, low_bits; /* how far R's place in the word is shifted left, then right; r bits */
    sn_u32 right;
    sn_u32 cut; /* mask of the places that go */
} SN_(random_places);

/* Where R goes in a pattern cut to m bits. */
SN_INLINE SN_(random_places) SN_(places)(const sn_rounding *r, int from) {
    const sn_u32 bits = (sn_u32)r->stochastic_bits, drop = 23 - (sn_u32)r->mantissa_bits;
    const SN_(random_places) p = {drop - bits, (1u << bits) - 1, (sn_u32)from, (1u << drop) - 1};
    return p;
}

SN_INLINE sn_vf SN_(stochastic_sum)(const SN_(random_places) * p, sn_vf v, sn_vu word) {
    const sn_vu zero = {0};
#ifdef SN_EITHER_WAY32
    const sn_vu random = SN_EITHER_WAY32(word, zero + (p->take - p->right)) & (p->low_bits << p->take);
#else
    const sn_vu random = SN_LEFT32(SN_RIGHT32(word, zero + p->right) & p->low_bits, zero + p->take);
#endif
    return (sn_vf)(((sn_vu)v + random) & ~(zero + p->cut));
}

SN_INLINE sn_vf SN_(stochastic_product)(const sn_round32 *r, sn_u32 low_bits, sn_vf v, sn_vu word) {
    const sn_vu zero = {0}, magnitude = (sn_vu)v & 0x7fffffff;
    const sn_vf scale = (sn_vf)zero + r->scale;
    const sn_vf e = (sn_vf)SN_MAX((sn_vi)(magnitude & 0x7f800000), (sn_vi)zero + (sn_i32)r->emin);
    const sn_vu whole = (sn_vu)SN_MULTIPLY_ADD(e, scale, (sn_vf)magnitude) + (word & low_bits);
    const sn_vf rounded = SN_SUBTRACT_PRODUCT(e, scale, (sn_vf)(whole & ~(zero + low_bits)));
    return SN_OR_MASKED(rounded, v, zero + 0x80000000u);
}

SN_INLINE sn_vf SN_(stochastic_anywhere)(const sn_rounding *r, sn_vf v, sn_vu word) {
    return (sn_vf)SN_(round_to_value32)(r, SN_FAMILY_STOCHASTIC, 0, (sn_vu)v, word);
}

/* Where a row's words come from: memory, any source's; or what the compiler weaves into the sums: Philox of 10 rounds,
 * a word a step; of 7, and two steps to a word; LFSRs that move once a step; bits that are given, of 8 or 16 a step. */
enum {
    SN_WORDS_STORED,
    SN_WORDS_PHILOX,
    SN_WORDS_SEVEN,
    SN_WORDS_SEVEN_SHARED,
    SN_WORDS_LFSR,
    SN_WORDS_GIVEN8,
    SN_WORDS_GIVEN16
};

SN_INLINE int SN_(words_from)(const sn_source *s) {
    switch (s->kind) {
    case SN_SOURCE_LFSR: return s->shifts == 1 ? SN_WORDS_LFSR : SN_WORDS_STORED;
    case SN_SOURCE_GIVEN: return s->width == 8 ? SN_WORDS_GIVEN8 : s->width == 16 ? SN_WORDS_GIVEN16 : SN_WORDS_STORED;
    default: break;
    }
    if (!s->seven) return s->shared ? SN_WORDS_STORED : SN_WORDS_PHILOX;
    return s->shared > 1 ? SN_WORDS_STORED : s->shared ? SN_WORDS_SEVEN_SHARED : SN_WORDS_SEVEN;
}

/* One row of a panel; source (SN_WORDS_*), bare and product are known to the compiler. SN_WORDS_SEVEN and what follows
 * are for bare sums of exact products alone, and whole panels. */
SN_INLINE void SN_(stochastic_row)(const sn_gemm_unit *u, const sn_gemm_args *g, int vectors, int source, int bare,
                                   int product, const SN_(keys) * keys, ptrdiff_t row, ptrdiff_t column) {
    const float *a = (const float *)g->a + row * g->lda, *panel = g->panel;
    const ptrdiff_t left = g->n - column, valid = left < SN_PANEL ? left : SN_PANEL;
    const int from = u->two_roundings ? sn_source_half(&u->random) : 0;
    const ptrdiff_t count = vectors * SN_V;
    const sn_u64 steps = SN_(steps_of)(u, g);
    const int counted = source == SN_WORDS_PHILOX || source == SN_WORDS_SEVEN || source == SN_WORDS_SEVEN_SHARED;
    const int rounds = source == SN_WORDS_PHILOX ? 10 : 7, shared = source == SN_WORDS_SEVEN_SHARED;
    const int given = source == SN_WORDS_GIVEN8 ? 1 : source == SN_WORDS_GIVEN16 ? 2 : 0; /* bytes */
    /* steps of a counter: its words and the sums that take them overlap in the processor */
    const ptrdiff_t group = counted                             ? (ptrdiff_t)4 << shared
                            : u->random.kind == SN_SOURCE_GIVEN ? SN_GROUP
                                                                : (ptrdiff_t)4 << u->random.shared;
    /* copies, which stored words cannot alias */
    const sn_source random = u->random;
    const sn_round32 product32 = u->product32;
    const sn_rounding product64 = u->product64, sum64 = u->sum64, outer64 = u->outer64;
    const ptrdiff_t k_end = g->k, chunk = (ptrdiff_t)u->chunk;
    const SN_(random_places) places = SN_(places)(&u->sum64, from);
    const sn_u32 low_bits = (1u << u->sum64.stochastic_bits) - 1;
    float edge[SN_PANEL] = {0};
    sn_u32 words[SN_GROUP][SN_PANEL] __attribute__((aligned(64))); /* a vector in one cache line */
    sn_u32 reductions[SN_GROUP][SN_PANEL] __attribute__((aligned(64)));
    sn_vf acc[SN_PANEL / SN_V];
    SN_(stream) stream, outer_stream;
    SN_(begun) begun[SN_PANEL / SN_V][2]; /* of this function alone, as the states are: no call knows of them */
    sn_vu states[SN_PANEL / SN_V];
    if (counted)
        SN_(begin_words)(g, count, row, column, keys, begun);
    else
        SN_(begin_stream)(&stream, u, g, count, row, column, 0, keys);
    for (int v = 0; v < vectors && source == SN_WORDS_LFSR; v++)
        states[v] = stream.states[v];
    sn_u64 reduction = (sn_u64)g->k;
    if (u->chunk) SN_(begin_stream)(&outer_stream, u, g, count, row, column, reduction / SN_GROUP * SN_GROUP, keys);
    if (g->c) memcpy(edge, (const float *)g->c + row * g->ldc + column, (size_t)valid * sizeof(float));
    for (int v = 0; v < vectors; v++)
        acc[v] = u->chunk ? (sn_vf){0} : sn_load_vf(edge + v * SN_V);
    ptrdiff_t rest = (ptrdiff_t)u->chunk;
    for (ptrdiff_t k = 0; k < k_end; k++) {
        const ptrdiff_t at = k & (group - 1);
        const char *bits = given ? (const char *)g->words + row * g->ldw[0] + k * g->ldw[1] + column * given : NULL;
        SN_(random_places) here = places;
        if (shared) here.right += (sn_u32)(at & 1) * 16;
        if (given && k + SN_AHEAD < k_end) SN_PREFETCH(bits + SN_AHEAD * g->ldw[1]);
        if (counted && at == 0)
            SN_(philox_rounds)(u, begun, count, rounds, row, (sn_u32)(k / 4 >> shared), keys, words);
        if (source == SN_WORDS_STORED && at == 0)
            SN_(stream_words)(&stream, (sn_u64)k, (sn_u64)k_end, (int)group, words);
        const sn_vf x = SN_(broadcast)(a[k]);
        SN_UNROLL
        for (int v = 0; v < vectors; v++) {
            const sn_vf y = sn_load_vf(panel + k * SN_PANEL + v * SN_V);
            const sn_vu word = source == SN_WORDS_LFSR      ? ~states[v]
                               : source == SN_WORDS_GIVEN8  ? SN_LOAD8_32(bits + v * SN_V)
                               : source == SN_WORDS_GIVEN16 ? SN_LOAD16_32(bits + 2 * v * SN_V)
                                                            : sn_load_words32(words[at >> shared] + v * SN_V);
            if (source == SN_WORDS_LFSR) states[v] = SN_(moved)(&random, states[v]);
            sn_vf sum;
            if (!product)
                sum = SN_MULTIPLY_ADD(x, y, acc[v]);
            else if (bare)
                sum = acc[v] + SN_(stochastic_product)(&product32, low_bits, x * y, word);
            else
                sum = acc[v] + SN_(stochastic_anywhere)(&product64, x * y, word);
            acc[v] = bare ? SN_(stochastic_sum)(&here, sum, word)
                          : SN_(stochastic_anywhere)(&sum64, sum, word >> (sn_u32)from);
        }
        if (chunk && (--rest == 0 || k == k_end - 1)) {
            const int fresh = reduction == (sn_u64)g->k;
            if (fresh || reduction % SN_GROUP == 0)
                SN_(stream_words)(&outer_stream, reduction / SN_GROUP * SN_GROUP, steps, SN_GROUP, reductions);
            for (int v = 0; v < vectors; v++) {
                const sn_vu word = sn_load_words32(reductions[reduction % SN_GROUP] + v * SN_V) >> (sn_u32)from;
                const sn_vf outer = SN_(stochastic_anywhere)(&outer64, sn_load_vf(edge + v * SN_V) + acc[v], word);
                memcpy(edge + v * SN_V, &outer, sizeof outer);
                acc[v] = (sn_vf){0};
            }
            reduction++;
            rest = chunk;
        }
    }
    for (int v = 0; v < vectors && !u->chunk; v++)
        memcpy(edge + v * SN_V, &acc[v], sizeof acc[v]);
    for (int v = 0; v < vectors; v++) {
        const sn_vf result = sn_load_vf(edge + v * SN_V);
        const sn_vu canonical = SN_SELECT32(result != result, (sn_vu){0} + 0x7fc00000u, result);
        memcpy(edge + v * SN_V, &canonical, sizeof canonical);
    }
    memcpy((float *)g->out + row * g->ldo + column, edge, (size_t)valid * sizeof(float));
}

SN_INLINE void SN_(stochastic_rows)(const sn_gemm_unit *u, const sn_gemm_args *g, int rows, int bare, int product,
                                    ptrdiff_t row, ptrdiff_t column) {
    const int wide = g->n - column > SN_GEMM_LANES, whole = g->n - column >= SN_PANEL && bare && !product;
    const int source = SN_(words_from)(&u->random);
    SN_(keys) keys;
    SN_(widen_key)(u->key, SN_(rounds_of)(u), &keys);
    sn_fp_round(SN_FP_ZERO);
    for (ptrdiff_t i = row; i < row + rows; i++) {
        if (!wide && source == SN_WORDS_PHILOX)
            SN_(stochastic_row)(u, g, SN_GEMM_LANES / SN_V, SN_WORDS_PHILOX, bare, product, &keys, i, column);
        else if (!wide)
            SN_(stochastic_row)(u, g, SN_GEMM_LANES / SN_V, SN_WORDS_STORED, bare, product, &keys, i, column);
        else if (source == SN_WORDS_PHILOX)
            SN_(stochastic_row)(u, g, SN_PANEL / SN_V, SN_WORDS_PHILOX, bare, product, &keys, i, column);
        else if (source == SN_WORDS_LFSR && bare && !product) /* with products, more constants than registers */
            SN_(stochastic_row)(u, g, SN_PANEL / SN_V, SN_WORDS_LFSR, bare, product, &keys, i, column);
        else if (source == SN_WORDS_SEVEN && whole)
            SN_(stochastic_row)(u, g, SN_PANEL / SN_V, SN_WORDS_SEVEN, bare, product, &keys, i, column);
        else if (source == SN_WORDS_SEVEN_SHARED && whole)
            SN_(stochastic_row)(u, g, SN_PANEL / SN_V, SN_WORDS_SEVEN_SHARED, bare, product, &keys, i, column);
        else if (source == SN_WORDS_GIVEN8 && whole)
            SN_(stochastic_row)(u, g, SN_PANEL / SN_V, SN_WORDS_GIVEN8, bare, product, &keys, i, column);
        else if (source == SN_WORDS_GIVEN16 && whole)
            SN_(stochastic_row)(u, g, SN_PANEL / SN_V, SN_WORDS_GIVEN16, bare, product, &keys, i, column);
        else
            SN_(stochastic_row)(u, g, SN_PANEL / SN_V, SN_WORDS_STORED, bare, product, &keys, i, column);
    }
    sn_fp_round(SN_FP_NEAREST);
}

#define SN_STOCHASTIC32(name, bare, product)                                                                           \
    static void SN_(name##_block)(const sn_gemm_unit *u, const sn_gemm_args *g, ptrdiff_t row, ptrdiff_t column) {     \
        SN_(stochastic_rows)(u, g, SN_BLOCK_ROWS, bare, product, row, column);                                         \
    }                                                                                                                  \
    static void SN_(name##_single)(const sn_gemm_unit *u, const sn_gemm_args *g, ptrdiff_t row, ptrdiff_t column) {    \
        SN_(stochastic_rows)(u, g, 1, bare, product, row, column);                                                     \
    }                                                                                                                  \
    static const SN_(rows32) SN_(name) = {SN_(name##_block), SN_(name##_single)};

SN_STOCHASTIC32(stochastic_bare, 1, 0)
SN_STOCHASTIC32(stochastic_any, 0, 0)
SN_STOCHASTIC32(stochastic_product_bare, 1, 1)
SN_STOCHASTIC32(stochastic_product_any, 0, 1)

/* GEMM in binary64, one row x a tile of columns at a time: included by products/gemm/body.h, once per instruction set.
 *
 * Each rounding nearest even or stochastic. Domain: product exact in binary64; precision m + 1 + r <= 52.
 *   The sum is rounded to odd in binary64 (from the exact error of the addition, Knuth's TwoSum), which keeps every
 * later decision right: nearest for m + 1 + 2 <= 53 (Boldo and Melquiond 2008), and floor(t * 2^r) for m + 1 + r <= 52.
 *
 * Where nothing overflows (products/gemm/bounds.h), sums are stochastic, addends are multiples of the sum's last place
 * and no start is -0, sums and products are rounded as in products/gemm/stochastic.h, by an addition to the pattern,
 * while the CPU rounds toward zero (`bare`): a truncated sum has the 53 bits that floor(t * 2^r) asks for. Products: m
 * + r <= 49.
 *
 * Instructions for 16 products, AVX-512, both roundings stochastic with r > 16: 54 for two words
 * (products/gemm/random.h), and 2 x 20 in vectors of 8: 94, of which two begin per cycle: 47 sgemms. Anywhere: twice
 * about 14 for the odd sum and 2 x 35 for two roundings, 220 in all.
 */

enum { SN_TILE64 = SN_PANEL };

/* v: exact, or rounded to odd. */
SN_INLINE sn_wf SN_(round64)(const sn_rounding *r, int mode, sn_wf v, sn_wu random) {
    const int family = mode == SN_NEAREST_EVEN ? SN_FAMILY_EVEN : SN_FAMILY_STOCHASTIC;
    return (sn_wf)SN_(round_to_value64)(r, family, 0, (sn_wu)v, random);
}

/* v + R, where R's places end with the last of those that go, cut. */
SN_INLINE sn_wf SN_(stochastic_sum64)(const sn_rounding *r, sn_wf v, sn_wu word) {
    const sn_i32 drop = 52 - r->mantissa_bits;
    const sn_u64 low_bits = ((sn_u64)1 << r->stochastic_bits) - 1, cut = ((sn_u64)1 << drop) - 1;
    return (sn_wf)(((sn_wu)v + ((word & low_bits) << (drop - r->stochastic_bits))) & ~cut);
}

/* |v| + C for C = 1.5 * 2^(E + 52 - m - r) has |v| in units of 2^(E - m - r) in its low bits, truncated. */
SN_INLINE sn_wf SN_(stochastic_product64)(const sn_rounding *r, sn_wf v, sn_wu word) {
    const sn_wu zero = {0}, magnitude = (sn_wu)v & 0x7fffffffffffffffu;
    const sn_u64 low_bits = ((sn_u64)1 << r->stochastic_bits) - 1;
    const sn_u64 places = (sn_u64)(52 - r->mantissa_bits - r->stochastic_bits);
    const sn_wi least = (sn_wi)zero + ((sn_i64)r->biased_emin << 52);
    const sn_wu e = (sn_wu)SN_MAX64((sn_wi)(magnitude & 0x7ff0000000000000u), least);
    const sn_wf constant = (sn_wf)(e + ((places << 52) | 0x8000000000000u));
    const sn_wu whole = (sn_wu)((sn_wf)magnitude + constant) + (word & low_bits);
    return (sn_wf)((sn_wu)((sn_wf)(whole & ~low_bits) - constant) | ((sn_wu)v & 0x8000000000000000u));
}

/* bare, product and sum_stochastic are known to the compiler. */
SN_INLINE void SN_(tile64)(const sn_gemm_unit *u, const sn_gemm_args *g, int tile, int bare, int product,
                           int sum_stochastic, ptrdiff_t row, ptrdiff_t column) {
    const double *a = (const double *)g->a + row * g->lda;
    const double *b = (const double *)g->b + column;
    const sn_rounding rp = u->product64, rs = u->sum64, ro = u->outer64;
    const int chunked = u->chunk != 0, random = product == SN_PRODUCT_STOCHASTIC || sum_stochastic;
    /* with two stochastic roundings the sum takes the upper half of the word, or a word of its own if r > 16 */
    const int second = random && u->two_roundings && (rs.stochastic_bits > 16 || rp.stochastic_bits > 16);
    const int sum_shift = u->two_roundings && !second ? sn_source_half(&u->random) : 0;
    const sn_u64 steps = SN_(steps_of)(u, g);
    const int vectors = tile / SN_W, sum_mode = sum_stochastic ? SN_STOCHASTIC : SN_NEAREST_EVEN;
    ptrdiff_t valid = g->n - column < tile ? g->n - column : tile;
    sn_wf acc[SN_TILE64 / SN_W], outer[SN_TILE64 / SN_W];
    double edge[SN_TILE64] = {0};
    SN_(keys) keys[2];
    SN_(widen_key)(u->key, SN_(rounds_of)(u), &keys[0]);
    SN_(widen_key)(u->key2, SN_(rounds_of)(u), &keys[1]);
    SN_(stream) streams[2], outer_stream; /* of products and sums; of additions of chunks */
    sn_u64 reduction = (sn_u64)g->k;
    for (int i = 0; i <= second && random; i++)
        SN_(begin_stream)(&streams[i], u, g, tile, row, column, 0, &keys[i]);
    if (chunked && sum_stochastic)
        SN_(begin_stream)(&outer_stream, u, g, tile, row, column, reduction / SN_GROUP * SN_GROUP, &keys[second]);
    sn_u32 words[SN_GROUP][SN_PANEL] __attribute__((aligned(64)));
    sn_u32 words2[SN_GROUP][SN_PANEL] __attribute__((aligned(64)));
    sn_u32 reductions[SN_GROUP][SN_PANEL] __attribute__((aligned(64)));
    if (g->c) memcpy(edge, (const double *)g->c + row * g->ldc + column, (size_t)valid * sizeof(double));
    for (int v = 0; v < vectors; v++) {
        outer[v] = sn_load_wf(edge + v * SN_W);
        acc[v] = chunked ? (sn_wf){0} : outer[v];
    }
    ptrdiff_t left = u->chunk;
    for (ptrdiff_t k = 0; k < g->k; k++) {
        const double *y = b + k * g->ldb;
        if (random && k % SN_GROUP == 0) {
            SN_(stream_words)(&streams[0], (sn_u64)k, (sn_u64)g->k, SN_GROUP, words);
            if (second) SN_(stream_words)(&streams[1], (sn_u64)k, (sn_u64)g->k, SN_GROUP, words2);
        }
        const sn_u32 *w = words[k % SN_GROUP], *w2 = second ? words2[k % SN_GROUP] : words[k % SN_GROUP];
        for (int v = 0; v < vectors; v++) {
            sn_wf p = sn_load_wf(y + v * SN_W) * a[k];
            if (product == SN_PRODUCT_NEAREST) p = SN_(round64)(&rp, SN_NEAREST_EVEN, p, (sn_wu){0});
            if (product == SN_PRODUCT_STOCHASTIC) {
                const sn_wu word = sn_load_words64(w + v * SN_W);
                p = bare ? SN_(stochastic_product64)(&rp, p, word) : SN_(round64)(&rp, SN_STOCHASTIC, p, word);
            }
            sn_wu word = {0};
            if (sum_stochastic) word = sn_load_words64(w2 + v * SN_W) >> sum_shift;
            acc[v] = bare ? SN_(stochastic_sum64)(&rs, acc[v] + p, word)
                          : SN_(round64)(&rs, sum_mode, SN_(add_odd)(acc[v], p), word);
        }
        if (chunked && (--left == 0 || k == g->k - 1)) {
            const int fresh = reduction == (sn_u64)g->k;
            if (sum_stochastic && (fresh || reduction % SN_GROUP == 0))
                SN_(stream_words)(&outer_stream, reduction / SN_GROUP * SN_GROUP, steps, SN_GROUP, reductions);
            for (int v = 0; v < vectors; v++) {
                sn_wu word = {0};
                if (sum_stochastic) word = sn_load_words64(reductions[reduction % SN_GROUP] + v * SN_W) >> sum_shift;
                outer[v] = SN_(round64)(&ro, sum_mode, bare ? outer[v] + acc[v] : SN_(add_odd)(outer[v], acc[v]), word);
                acc[v] = (sn_wf){0};
            }
            reduction++;
            left = u->chunk;
        }
    }
    for (int v = 0; v < vectors; v++) {
        sn_wf result = chunked ? outer[v] : acc[v];
        sn_wu canonical = SN_SELECT64(result != result, (sn_wu){0} + 0x7ff8000000000000u, result);
        memcpy(edge + v * SN_W, &canonical, sizeof canonical);
    }
    memcpy((double *)g->out + row * g->ldo + column, edge, (size_t)valid * sizeof(double));
}

SN_INLINE void SN_(column64)(const sn_gemm_unit *u, const sn_gemm_args *g, int bare, int product, int sum_stochastic,
                             ptrdiff_t column) {
    if (bare) sn_fp_round(SN_FP_ZERO);
    for (ptrdiff_t row = g->m0; row < g->m1; row++) {
        if (g->n - column > SN_GEMM_LANES)
            SN_(tile64)(u, g, SN_TILE64, bare, product, sum_stochastic, row, column);
        else
            SN_(tile64)(u, g, SN_GEMM_LANES, bare, product, sum_stochastic, row, column);
    }
    if (bare) sn_fp_round(SN_FP_NEAREST);
}

SN_INLINE void SN_(columns64)(const sn_gemm_unit *u, const sn_gemm_args *g, int product, int sum_stochastic) {
    const double *a = (const double *)g->a, *b = (const double *)g->b;
    sn_safety safety = {u, 0, g->k, -1, 0x1p1023};
    int bare = sum_stochastic && u->exact_below && !sn_has_negative_zero(g, sizeof(double));
    double largest_a = 0;
    if (bare) {
        largest_a = sn_largest64(a + g->m0 * g->lda, g->m1 - g->m0, g->k, g->lda);
        if (g->c) safety.start = sn_largest64((const double *)g->c + g->m0 * g->ldc, g->m1 - g->m0, g->n, g->ldc);
        bare = safety.start <= 0x1p1000;
    }
    for (ptrdiff_t column = 0; column < g->n;) {
        const ptrdiff_t width = g->n - column > SN_GEMM_LANES ? SN_TILE64 : SN_GEMM_LANES,
                        valid = g->n - column < width ? g->n - column : width;
        if (bare && product != SN_PRODUCT_NEAREST &&
            sn_is_safe(&safety, largest_a, sn_largest64(b + column, g->k, valid, g->ldb)))
            SN_(column64)(u, g, 1, product, sum_stochastic, column);
        else
            SN_(column64)(u, g, 0, product, sum_stochastic, column);
        column += width;
    }
}

static void SN_(gemm64)(const sn_gemm_unit *u, const sn_gemm_args *g) {
    if (u->path == SN_PATH_IEEE) {
        SN_(ieee_gemm64)(u, g);
        return;
    }
    if (u->lanes.ready) {
        SN_(lanes_gemm64)(u, g);
        return;
    }
    int stochastic = u->sum64.rounding == SN_STOCHASTIC;
    switch (u->product) {
    case SN_PRODUCT_NEAREST:
        stochastic ? SN_(columns64)(u, g, SN_PRODUCT_NEAREST, 1) : SN_(columns64)(u, g, SN_PRODUCT_NEAREST, 0);
        break;
    case SN_PRODUCT_STOCHASTIC:
        stochastic ? SN_(columns64)(u, g, SN_PRODUCT_STOCHASTIC, 1) : SN_(columns64)(u, g, SN_PRODUCT_STOCHASTIC, 0);
        break;
    default: stochastic ? SN_(columns64)(u, g, SN_PRODUCT_EXACT, 1) : SN_(columns64)(u, g, SN_PRODUCT_EXACT, 0);
    }
}

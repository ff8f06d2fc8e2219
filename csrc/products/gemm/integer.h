/* GEMM in integers: fixed point whose products and sums need no rounding. Included by products/gemm/body.h, once per
 * instruction set.
 *
 * Domain: operands, as integers of their last place, in 16 bits; the accumulator has at least the products' fraction
 * bits (`shift` more) and at most 32 bits in all. Then every sum is exact but for overflow.
 *   - wrap: each step is modulo 2^bits, so the whole sum is, and sums modulo 2^32 do. The multiply-add of pairs wraps
 *     only for two products of -2^15 * -2^15, to 2^31 modulo 2^32: right too.
 *   - saturate, where K * largest a * largest b, with C, lies within the accumulator and 32 bits: nothing saturates.
 *   - saturate elsewhere (`careful`): step by step, in 64 bits.
 * Chunks, in the same format, change the last of these alone.
 * Instructions for a vector of 16 products, AVX-512, of which two begin per cycle: 1 (multiply-add of 32 16-bit pairs,
 * add); sgemm needs 1. Measured for 512^3: 1.0 sgemm, 1.4 with the operands' conversion. */

#ifndef SN_PAIRS
#define SN_PAIRS sn_vi
#define SN_ADD_PAIRS(acc, a, b) (acc) = (sn_vi)((sn_vu)(acc) + (sn_vu)SN_MULTIPLY_PAIRS(a, b))
#define SN_STORE_PAIRS(to, acc) memcpy(to, acc, sizeof to)
#endif

/* b's rows 2k and 2k + 1 side by side, 32 columns. */
SN_INLINE void SN_(pack_integers)(const sn_gemm_integers *g, ptrdiff_t column) {
    const ptrdiff_t left = g->n - column, width = left < SN_PANEL ? left : SN_PANEL;
    if (width < SN_PANEL) memset(g->panel, 0, (size_t)(g->k / 2 * SN_PANEL) * sizeof *g->panel);
    for (ptrdiff_t k = 0; k < g->k; k += 2) {
        const sn_i16 *even = g->b + k * g->ldb + column, *odd = even + g->ldb;
        sn_i32 *to = g->panel + k / 2 * SN_PANEL;
        for (ptrdiff_t j = 0; j < width; j++)
            to[j] = (sn_i32)((sn_u32)(even[j] & 0xffff) | (sn_u32)(odd[j] & 0xffff) << 16);
    }
}

/* The value of a sum. */
SN_INLINE double SN_(integer_value)(const sn_gemm_integers *g, sn_i64 sum, ptrdiff_t row, ptrdiff_t column) {
    sn_u64 code = (sn_u64)sum << g->shift;
    if (g->c) code += (sn_u64)(sn_i64)(g->c[row * g->ldc + column] / g->scale);
    const int drop = 64 - g->bits;
    const double value = g->is_signed ? (double)((sn_i64)(code << drop) >> drop) : (double)(code << drop >> drop);
    return value * g->scale;
}

SN_INLINE void SN_(integer_block)(const sn_gemm_integers *g, int rows, ptrdiff_t row, ptrdiff_t column, ptrdiff_t at) {
    const sn_i16 *a = g->a + row * g->lda;
    SN_PAIRS acc[SN_BLOCK_ROWS][SN_BLOCK_VECTORS];
    SN_UNROLL
    for (int i = 0; i < rows; i++) {
        SN_UNROLL
        for (int v = 0; v < SN_BLOCK_VECTORS; v++)
            acc[i][v] = (SN_PAIRS){0};
    }
    for (ptrdiff_t k = 0; k < g->k; k += 2) {
        sn_vi y[SN_BLOCK_VECTORS];
        SN_UNROLL
        for (int v = 0; v < SN_BLOCK_VECTORS; v++)
            memcpy(&y[v], g->panel + k / 2 * SN_PANEL + at + v * SN_V, sizeof y[v]);
        SN_UNROLL
        for (int i = 0; i < rows; i++) {
            sn_i32 pair;
            memcpy(&pair, a + i * g->lda + k, sizeof pair);
            const sn_vi x = (sn_vi){0} + pair;
            SN_UNROLL
            for (int v = 0; v < SN_BLOCK_VECTORS; v++)
                SN_ADD_PAIRS(acc[i][v], x, y[v]);
        }
    }
    for (int i = 0; i < rows; i++) {
        sn_i32 sums[SN_BLOCK_VECTORS * SN_V];
        SN_STORE_PAIRS(sums, acc[i]);
        const ptrdiff_t left = g->n - column - at, width = SN_BLOCK_VECTORS * SN_V;
        for (ptrdiff_t j = 0; j < (left < width ? left : width); j++)
            g->out[(row + i) * g->ldo + column + at + j] = SN_(integer_value)(g, sums[j], row + i, column + at + j);
    }
}

SN_INLINE sn_i64 SN_(within)(const sn_gemm_integers *g, sn_i64 sum) {
    return sum < g->least ? g->least : sum > g->most ? g->most : sum;
}

static void SN_(integers)(const sn_gemm_integers *g) {
    for (ptrdiff_t column = 0; column < g->n && !g->careful; column += SN_PANEL) {
        const ptrdiff_t left = g->n - column, end = left < SN_PANEL ? left : SN_PANEL;
        SN_(pack_integers)(g, column);
        for (ptrdiff_t row = 0; row < g->m;) {
            const int whole = g->m - row >= SN_BLOCK_ROWS;
            for (ptrdiff_t at = 0; at < end; at += SN_BLOCK_VECTORS * SN_V) {
                if (whole)
                    SN_(integer_block)(g, SN_BLOCK_ROWS, row, column, at);
                else
                    SN_(integer_block)(g, 1, row, column, at);
            }
            row += whole ? SN_BLOCK_ROWS : 1;
        }
    }
    for (ptrdiff_t row = 0; row < g->m && g->careful; row++)
        for (ptrdiff_t j = 0; j < g->n; j++) {
            sn_i64 total = g->c ? (sn_i64)(g->c[row * g->ldc + j] / g->scale) : 0;
            for (ptrdiff_t first = 0; first < g->k;) {
                const ptrdiff_t last = g->chunk && g->k - first > g->chunk ? first + (ptrdiff_t)g->chunk : g->k;
                sn_i64 sum = g->chunk ? 0 : total;
                for (; first < last; first++) {
                    const sn_i64 product = (sn_i64)g->a[row * g->lda + first] * g->b[first * g->ldb + j];
                    sum = SN_(within)(g, sum + product * ((sn_i64)1 << g->shift));
                }
                total = g->chunk ? SN_(within)(g, total + sum) : sum;
            }
            g->out[row * g->ldo + j] = (double)total * g->scale;
        }
}

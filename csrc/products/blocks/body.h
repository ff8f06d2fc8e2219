/* Products of block formats over carriers: included once per instruction set, by targets/dots.h.
 *
 * Sums of blocks (block_gemm). All products of elements are multiples of 2^last and below 2^top in magnitude, and a
 * block has at most 2^L of them. Where top - last + L <= 24, every partial sum is exact in binary32; where it is <= 53,
 * in binary64; and then the order of summation, and whether the CPU fuses, changes nothing. Where top - last + 2L <=
 * 103 a product is split in two on a fixed grid, as products/exact/body.h has it: with M = 1.5 * 2^(52 + g), g = top +
 * L - 51, both sums are exact, and the second is at most 2^(g - 1 + L). A sum that is zero is +0, as the definition has
 * it: x - x, +0 + -0 and M - M are. Infinities and NaN among the elements make the sum what the definition makes it.
 *
 * The outer sum. The scales' product XY is exact in binary64 (in binary32 for SN_BLOCK_FMA: the caller looked at the
 * scales), and so is S * XY: precision of S + precision of both scales <= 53, all exponents far from binary64's ends.
 *   - SN_BLOCK_FMA: S in binary32, one rounding to nearest even by the CPU: fma(S, XY, acc).
 *   - else acc + S * XY is rounded to odd in binary64, which keeps the later decision right (lanes.h): to binary32, by
 *     the CPU's conversion (24 + 2 <= 53; its subnormals too: they are multiples of 2^-149, and the odd bit lies
 * lower); to any format of sn_rounding's domain with m + 1 + 2 <= 52, stochastic m + 1 + r + 1 <= 52. Not in the mode
 *     SN_DOWN, in which a sum that cancels is -0.
 *   - a sum in two pieces is a sum of three numbers: a + b + c to odd as th + odd(tl + ul), (uh, ul) the exact sum of
 *     the pieces, (th, tl) that of acc and uh (Boldo and Melquiond 2008): where tl + ul is not a binary64 number, th is
 *     larger than it, so that th + (tl + ul) and th + odd(tl + ul) lie between the same neighbours.
 *   - a scaled sum that is rounded first (rounds_product) is exact before, in one piece.
 * Tensor scales: acc * T, T of 48 bits, is acc * T1 + acc * T2, both exact for an acc of at most 24 bits; with C it is
 * a sum of three numbers. */
#ifndef SOFTNUM_BLOCK_BODY_H
#define SOFTNUM_BLOCK_BODY_H

#include "lanes/lanes.h"
#include "products/blocks/block.h"

#if defined(__clang__)
#define SN_BLOCK_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SN_BLOCK_UNROLL _Pragma("GCC unroll 16")
#endif

typedef float sn_hf __attribute__((vector_size(SN_BYTES / 2)));

#ifndef SN_TO_BINARY32
#define SN_TO_BINARY32(x) __builtin_convertvector(__builtin_convertvector(x, sn_hf), sn_wf)
#endif

#ifndef SN_ADD_PRODUCT_ODD
#define SN_ADD_PRODUCT_ODD(x, y, z) SN_(add_odd)(z, (x) * (y))
#endif

/* A number in every lane: as bits, for 0 + x is an addition. */
SN_INLINE sn_wf SN_(in_all64)(double x) {
    sn_u64 bits;
    memcpy(&bits, &x, sizeof bits);
    return (sn_wf)((sn_wu){0} + bits);
}

SN_INLINE sn_vf SN_(in_all32)(float x) {
    sn_u32 bits;
    memcpy(&bits, &x, sizeof bits);
    return (sn_vf)((sn_vu){0} + bits);
}

/* As many sums as fit the registers. */
enum {
    SN_BLOCK_ROWS = SN_REGISTERS == 32 ? 6 : 2,
    SN_BLOCK_ROWS32 = SN_REGISTERS == 32 ? 12
    : SN_BYTES == 32                     ? 4
                                         : 2,
    SN_BLOCK_COLUMNS = SN_BYTES == 64 ? 32
    : SN_BYTES == 32                  ? 16
                                      : 8, /* at once, of a tile */
    SN_BLOCK_MOST = SN_BLOCK_ROWS32
};

typedef struct {
    double sums[SN_BLOCK_MOST][SN_BLOCK_TILE], rest[SN_BLOCK_MOST][SN_BLOCK_TILE];
    float sums32[SN_BLOCK_MOST][SN_BLOCK_TILE], acc32[SN_BLOCK_MOST][SN_BLOCK_TILE];
    double acc[SN_BLOCK_MOST][SN_BLOCK_TILE];
} SN_(block_tile);

SN_INLINE void SN_(block_sums64)(SN_(block_tile) * t, int rows, int split, double magic, const double *a, ptrdiff_t lda,
                                 const double *b, ptrdiff_t k) {
    enum { VECTORS = SN_BLOCK_COLUMNS / SN_W };
    for (int first = 0; first < SN_BLOCK_TILE; first += SN_BLOCK_COLUMNS) {
        sn_wf acc[SN_BLOCK_ROWS][VECTORS], low[SN_BLOCK_ROWS][VECTORS];
        SN_BLOCK_UNROLL
        for (int r = 0; r < rows; r++) {
            SN_BLOCK_UNROLL
            for (int v = 0; v < VECTORS; v++) {
                acc[r][v] = (sn_wf){0} + (split ? magic : 0);
                low[r][v] = (sn_wf){0};
            }
        }
        for (ptrdiff_t i = 0; i < k; i++) {
            sn_wf y[VECTORS];
            SN_BLOCK_UNROLL
            for (int v = 0; v < VECTORS; v++)
                y[v] = sn_load_wf(b + i * SN_BLOCK_TILE + first + v * SN_W);
            SN_BLOCK_UNROLL
            for (int r = 0; r < rows; r++) {
                const sn_wf x = SN_(in_all64)(a[r * lda + i]);
                SN_BLOCK_UNROLL
                for (int v = 0; v < VECTORS; v++) {
                    const sn_wf sum = SN_EXACT_FMA64(x, y[v], acc[r][v]);
                    if (split) low[r][v] = low[r][v] + SN_EXACT_FMS64(x, y[v], sum - acc[r][v]);
                    acc[r][v] = sum;
                }
            }
        }
        SN_BLOCK_UNROLL
        for (int r = 0; r < rows; r++) {
            SN_BLOCK_UNROLL
            for (int v = 0; v < VECTORS; v++) {
                const sn_wf x = split ? acc[r][v] - magic : acc[r][v];
                memcpy(&t->sums[r][first + v * SN_W], &x, sizeof x);
                if (split) memcpy(&t->rest[r][first + v * SN_W], &low[r][v], sizeof x);
            }
        }
    }
}

SN_INLINE void SN_(block_sums32)(SN_(block_tile) * t, int rows, const float *a, ptrdiff_t lda, const float *b,
                                 ptrdiff_t k) {
    enum { VECTORS = SN_BLOCK_COLUMNS / SN_V };
    for (int first = 0; first < SN_BLOCK_TILE; first += SN_BLOCK_COLUMNS) {
        sn_vf acc[SN_BLOCK_ROWS32][VECTORS];
        SN_BLOCK_UNROLL
        for (int r = 0; r < rows; r++) {
            SN_BLOCK_UNROLL
            for (int v = 0; v < VECTORS; v++)
                acc[r][v] = (sn_vf){0};
        }
        for (ptrdiff_t i = 0; i < k; i++) {
            sn_vf y[VECTORS];
            SN_BLOCK_UNROLL
            for (int v = 0; v < VECTORS; v++)
                y[v] = sn_load_vf(b + i * SN_BLOCK_TILE + first + v * SN_V);
            SN_BLOCK_UNROLL
            for (int r = 0; r < rows; r++) {
                const sn_vf x = SN_(in_all32)(a[r * lda + i]);
                SN_BLOCK_UNROLL
                for (int v = 0; v < VECTORS; v++)
                    acc[r][v] = SN_MULTIPLY_ADD(x, y[v], acc[r][v]);
            }
        }
        SN_BLOCK_UNROLL
        for (int r = 0; r < rows; r++) {
            SN_BLOCK_UNROLL
            for (int v = 0; v < VECTORS; v++)
                memcpy(&t->sums32[r][first + v * SN_V], &acc[r][v], sizeof acc[r][v]);
        }
    }
}

/* The sums of one block; row after row where there are fewer than fit. */
static SN_NOINLINE void SN_(block_sums)(const sn_block_fast *u, SN_(block_tile) * t, int rows, double magic,
                                        const void *a, ptrdiff_t lda, const void *b, ptrdiff_t k) {
    const double *x = (const double *)a, *y = (const double *)b;
    if (!u->wide) {
        if (rows == SN_BLOCK_ROWS32) {
            SN_(block_sums32)(t, SN_BLOCK_ROWS32, (const float *)a, lda, (const float *)b, k);
            return;
        }
        for (int r = rows; r-- > 0;) { /* the first row last: it is where each lands */
            SN_(block_sums32)(t, 1, (const float *)a + r * lda, lda, (const float *)b, k);
            if (r) memcpy(t->sums32[r], t->sums32[0], sizeof t->sums32[0]);
        }
        return;
    }
    if (rows == SN_BLOCK_ROWS) {
        if (magic != 0)
            SN_(block_sums64)(t, SN_BLOCK_ROWS, 1, magic, x, lda, y, k);
        else
            SN_(block_sums64)(t, SN_BLOCK_ROWS, 0, 0, x, lda, y, k);
        return;
    }
    for (int r = rows; r-- > 0;) {
        if (magic != 0)
            SN_(block_sums64)(t, 1, 1, magic, x + r * lda, lda, y, k);
        else
            SN_(block_sums64)(t, 1, 0, 0, x + r * lda, lda, y, k);
        if (r) {
            memcpy(t->sums[r], t->sums[0], sizeof t->sums[0]);
            memcpy(t->rest[r], t->rest[0], sizeof t->rest[0]);
        }
    }
}

/* ---- rounding ------------------------------------------------------------------------------------------------------
 */

/* a + b + c rounded to odd. */
SN_INLINE sn_wf SN_(add_three)(sn_wf a, sn_wf b, sn_wf c) {
    const sn_wf uh = b + c, d = uh - b, ul = (b - (uh - d)) + (c - d);
    const sn_wf th = a + uh, e = th - a, tl = (a - (th - e)) + (uh - e);
    const sn_wu special = (sn_wu)(((sn_wu)th & 0x7ff0000000000000u) == 0x7ff0000000000000u);
    return (sn_wf)SN_SELECT64(special, th, SN_(add_odd)(th, SN_(add_odd)(tl, ul)));
}

SN_INLINE void SN_(block_round_as)(const sn_rounding *r, int family, double *x, const sn_u32 *words, int n) {
    for (int j = 0; j < n; j += SN_W) {
        const sn_wu random = family >= SN_FAMILY_STOCHASTIC ? sn_load_words64(words + j) : (sn_wu){0};
        const sn_wu y = SN_(round_to_value64)(r, family, 0, sn_load_wu(x + j), random);
        memcpy(x + j, &y, sizeof y);
    }
}

/* n values, a multiple of a vector, exact or rounded to odd, to a format. */
static SN_NOINLINE void SN_(block_round)(const sn_rounding *r, double *x, const sn_u32 *words, int n) {
    switch (r->family) {
    case SN_FAMILY_EVEN: SN_(block_round_as)(r, SN_FAMILY_EVEN, x, words, n); break;
    case SN_FAMILY_NEAREST: SN_(block_round_as)(r, SN_FAMILY_NEAREST, x, words, n); break;
    case SN_FAMILY_DIRECTED: SN_(block_round_as)(r, SN_FAMILY_DIRECTED, x, words, n); break;
    case SN_FAMILY_ODD: SN_(block_round_as)(r, SN_FAMILY_ODD, x, words, n); break;
    case SN_FAMILY_STOCHASTIC: SN_(block_round_as)(r, SN_FAMILY_STOCHASTIC, x, words, n); break;
    default: SN_(block_round_as)(r, SN_FAMILY_RANDOM, x, words, n);
    }
}

static void SN_(block_words)(const sn_block_fast *u, ptrdiff_t row, ptrdiff_t column, ptrdiff_t step, int which,
                             sn_u32 *words) {
    if (u->stochastic)
        sn_block_words(u, row, column, step, which, words);
    else
        memset(words, 0, SN_BLOCK_TILE * sizeof *words);
}

/* One row of a tile: acc = R(acc + [R_product]((sums + rest) * (x * y))). */
SN_INLINE void SN_(block_add)(const sn_block_fast *u, double *acc, const double *sums, const double *rest, double x,
                              const double *y, ptrdiff_t row, ptrdiff_t column, ptrdiff_t step) {
    double p[SN_BLOCK_TILE];
    sn_u32 words[SN_BLOCK_TILE];
    if (u->rounds_product) {
        for (int j = 0; j < SN_BLOCK_TILE; j++)
            p[j] = sums[j] * (x * y[j]);
        SN_(block_words)(u, row, column, step, 0, words);
        SN_(block_round)(&u->product, p, words, SN_BLOCK_TILE);
    }
    for (int j = 0; j < SN_BLOCK_TILE; j += SN_W) {
        const sn_wf scale = sn_load_wf(y + j) * x, old = sn_load_wf(acc + j);
        sn_wf s;
        if (u->rounds_product)
            s = SN_(add_odd)(old, sn_load_wf(p + j));
        else if (rest)
            s = SN_(add_three)(old, sn_load_wf(sums + j) * scale, sn_load_wf(rest + j) * scale);
        else
            s = SN_ADD_PRODUCT_ODD(sn_load_wf(sums + j), scale, old);
        if (u->how != SN_BLOCK_GENERAL) s = SN_TO_BINARY32(s);
        memcpy(acc + j, &s, sizeof s);
    }
    if (u->how == SN_BLOCK_GENERAL) {
        SN_(block_words)(u, row, column, step, 1, words);
        SN_(block_round)(&u->sum, acc, words, SN_BLOCK_TILE);
    }
}

SN_INLINE void SN_(block_add32)(float *acc, const float *sums, double x, const double *y) {
    for (int j = 0; j < SN_BLOCK_TILE; j += SN_V) {
        sn_hf half[2];
        sn_vf scale, s;
        half[0] = __builtin_convertvector(sn_load_wf(y + j) * x, sn_hf);
        half[1] = __builtin_convertvector(sn_load_wf(y + j + SN_W) * x, sn_hf);
        memcpy(&scale, half, sizeof scale);
        s = SN_FMA(sn_load_vf(sums + j), scale, sn_load_vf(acc + j));
        memcpy(acc + j, &s, sizeof s);
    }
}

/* ---- the three kernels ---------------------------------------------------------------------------------------------
 */

/* Rows of n of doubles, or floats, as rows of a tile, filled up with zeros. */
static void SN_(block_pack)(void *to, const void *from, ptrdiff_t rows, ptrdiff_t stride, ptrdiff_t valid,
                            size_t size) {
    const size_t used = (size_t)valid * size, all = SN_BLOCK_TILE * size;
    for (ptrdiff_t i = 0; i < rows; i++) {
        char *row = (char *)to + (size_t)i * all;
        memcpy(row, (const char *)from + (size_t)(i * stride) * size, used);
        memset(row + used, 0, all - used);
    }
}

/* One part of the rows of a tile, all of k. */
static void SN_(block_rows)(const sn_block_fast *u, const sn_block_values *g, const void *b, const double *y,
                            ptrdiff_t row, int rows, ptrdiff_t column, ptrdiff_t valid) {
    const size_t size = u->wide ? sizeof(double) : sizeof(float), bytes = (size_t)valid * sizeof(double);
    SN_(block_tile) t;
    for (int r = 0; r < rows; r++) {
        memset(t.acc[r], 0, sizeof t.acc[r]);
        if (g->c) memcpy(t.acc[r], g->c + (row + r) * g->n + column, bytes);
        for (int j = 0; j < SN_BLOCK_TILE; j++)
            t.acc32[r][j] = (float)t.acc[r][j];
    }
    for (ptrdiff_t block = 0, k = 0; block < g->blocks; block++, k += g->size) {
        const ptrdiff_t length = g->k - k < g->size ? g->k - k : g->size;
        const char *x = (const char *)g->a + (size_t)(row * g->k + k) * size;
        SN_(block_sums)(u, &t, rows, g->magic, x, g->k, (const char *)b + (size_t)(k * SN_BLOCK_TILE) * size, length);
        for (int r = 0; r < rows; r++) {
            const double *scales = y + block * SN_BLOCK_TILE, scale = g->scale_a[(row + r) * g->blocks + block];
            if (u->how == SN_BLOCK_FMA) {
                SN_(block_add32)(t.acc32[r], t.sums32[r], scale, scales);
                continue;
            }
            if (!u->wide)
                for (int j = 0; j < SN_BLOCK_TILE; j++)
                    t.sums[r][j] = t.sums32[r][j];
            SN_(block_add)(u, t.acc[r], t.sums[r], g->magic != 0 ? t.rest[r] : NULL, scale, scales, g->m0 + row + r,
                           g->n0 + column, g->k + block);
        }
    }
    for (int r = 0; r < rows; r++) {
        if (u->how == SN_BLOCK_FMA)
            for (int j = 0; j < SN_BLOCK_TILE; j++)
                t.acc[r][j] = t.acc32[r][j];
        memcpy(g->out + (row + r) * g->n + column, t.acc[r], bytes);
    }
}

static void SN_(block_gemm)(const sn_block_fast *u, const sn_block_values *g) {
    const size_t size = u->wide ? sizeof(double) : sizeof(float);
    const int most = u->wide ? SN_BLOCK_ROWS : SN_BLOCK_ROWS32;
    double *y = g->room, *b = y + g->blocks * SN_BLOCK_TILE;
    for (ptrdiff_t column = 0; column < g->n; column += SN_BLOCK_TILE) {
        const ptrdiff_t valid = g->n - column < SN_BLOCK_TILE ? g->n - column : SN_BLOCK_TILE;
        SN_(block_pack)(y, g->scale_b + column, g->blocks, g->n_total, valid, sizeof *y);
        SN_(block_pack)(b, (const char *)g->b + (size_t)column * size, g->k, g->n_total, valid, size);
        for (ptrdiff_t row = 0; row < g->rows; row += most) {
            const int rows = (int)(g->rows - row < most ? g->rows - row : most);
            SN_(block_rows)(u, g, b, y, row, rows, column, valid);
        }
    }
}

static void SN_(block_outer)(const sn_block_fast *u, const sn_block_values *g, const void *sums, ptrdiff_t block,
                             ptrdiff_t step) {
    for (ptrdiff_t row = 0; row < g->rows; row++)
        for (ptrdiff_t column = 0; column < g->n; column += SN_BLOCK_TILE) {
            const ptrdiff_t valid = g->n - column < SN_BLOCK_TILE ? g->n - column : SN_BLOCK_TILE;
            const ptrdiff_t at = row * g->n + column;
            double acc[SN_BLOCK_TILE] = {0}, s[SN_BLOCK_TILE] = {0}, y[SN_BLOCK_TILE] = {0};
            memcpy(acc, g->out + at, (size_t)valid * sizeof *acc);
            memcpy(y, g->scale_b + block * g->n_total + column, (size_t)valid * sizeof *y);
            if (u->wide)
                memcpy(s, (const double *)sums + at, (size_t)valid * sizeof *s);
            else
                for (ptrdiff_t j = 0; j < valid; j++)
                    s[j] = ((const float *)sums)[at + j];
            SN_(block_add)(u, acc, s, NULL, g->scale_a[row * g->blocks + block], y, g->m0 + row, g->n0 + column, step);
            memcpy(g->out + at, acc, (size_t)valid * sizeof *acc);
        }
}

static void SN_(block_finish)(const sn_block_fast *u, const sn_block_values *g, double tensor, ptrdiff_t step) {
    sn_u64 bits;
    double high;
    memcpy(&bits, &tensor, sizeof bits);
    bits &= ~(sn_u64)0x1fffffff; /* 24 bits of 53 */
    memcpy(&high, &bits, sizeof high);
    const double low = tensor - high;
    for (ptrdiff_t row = 0; row < g->rows; row++)
        for (ptrdiff_t column = 0; column < g->n; column += SN_BLOCK_TILE) {
            const ptrdiff_t valid = g->n - column < SN_BLOCK_TILE ? g->n - column : SN_BLOCK_TILE;
            const ptrdiff_t at = row * g->n + column;
            double acc[SN_BLOCK_TILE] = {0}, c[SN_BLOCK_TILE] = {0};
            sn_u32 words[SN_BLOCK_TILE];
            memcpy(acc, g->out + at, (size_t)valid * sizeof *acc);
            if (g->c) memcpy(c, g->c + at, (size_t)valid * sizeof *c);
            for (int j = 0; j < SN_BLOCK_TILE; j += SN_W) {
                const sn_wf x = sn_load_wf(acc + j), p = x * high, q = x * low;
                sn_wf s = g->c ? SN_(add_three)(sn_load_wf(c + j), p, q) : SN_(add_odd)(p, q);
                const sn_wi special = ((sn_wu)x & 0x7ff0000000000000u) == 0x7ff0000000000000u;
                const sn_wi zero = (sn_wi)(x == 0);
                const sn_wf plain =
                    g->c ? sn_load_wf(c + j) + x : x; /* infinity * 0 has no part in it, nor a sign lost */
                s = (sn_wf)SN_SELECT64(special | zero, plain, s);
                if (u->how != SN_BLOCK_GENERAL) s = SN_TO_BINARY32(s);
                memcpy(acc + j, &s, sizeof s);
            }
            if (u->how == SN_BLOCK_GENERAL) {
                SN_(block_words)(u, g->m0 + row, g->n0 + column, step, 1, words);
                SN_(block_round)(&u->sum, acc, words, SN_BLOCK_TILE);
            }
            memcpy(g->out + at, acc, (size_t)valid * sizeof *acc);
        }
}

#endif

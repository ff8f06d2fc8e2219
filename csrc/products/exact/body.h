/* Exact sums of products over binary64 carriers: included once per instruction set, by targets/dots.h.
 *
 * Products are exact in binary64. Each is split into one to three pieces, on fixed grids, and each piece is added to a
 * sum of its own, in which nothing is ever rounded; what the sums come to is rounded once.
 *
 * Let all products (and C, if it goes along) be multiples of 2^last and below 2^top in magnitude, and let n = 2^L terms
 * be added. With M = 1.5 * 2^(52 + g), an accumulator that starts from M and moves by at most 2^(51 + g) stays where
 * binary64's last place is 2^g, so adding p to it adds t = p rounded to a multiple of 2^g, and t = (M + p) - M is
 * exact. 2^top is such a multiple, so |t| <= 2^top, and L + top <= 51 + g keeps the accumulator there: g = top + L
 * - 51. The rest p - t is exact (a multiple of p's last bit, no larger than 2^(g-1) and, unless t = 0, than p), and at
 * most 2^(g - 1): the next piece, split by a grid of its own, is g' = g - 1 + L - 51. The last piece is not split but
 * added: its sum, at most 2^(g - 1 + L), a multiple of 2^last, is exact, and below 2^51 units, if g - 1 + L - last
 * <= 51. So one piece takes top - last + L <= 51, two top - last + 2L <= 103, three top - last + 3L <= 155. Longer sums
 * are emptied after 2^L terms into integers (units of the grids; below 2^51 each time), and these are added up by the
 * wide accumulator of the definition (kulisch.h), as a C is whose range does not fit in.
 *
 * last and top come from the operands as they are: the least and the largest magnitude, and the formats' precision.
 * Where the pieces do not reach (S > 140), the definition computes every element.
 *
 * The sum of the last block's pieces is rounded to odd in binary64 (lanes.h), which keeps every later decision right:
 * m + 1 + 2 <= 52, stochastic m + 1 + r + 1 <= 52; three pieces by two exact additions, whose error is smaller than the
 * last place of what they are added to. Zeros whose sign the sum does not tell (a C, or the mode SN_DOWN), and
 * infinities and NaN, which make the last piece's sum NaN, are computed by the definition. */
#ifndef SOFTNUM_EXACT_BODY_H
#define SOFTNUM_EXACT_BODY_H

#include "lanes/lanes.h"
#include "products/exact/exact.h"

/* As many sums as fit the registers: 16 vectors of 32 registers, 8 of 16. */
enum { SN_EXACT_VECTORS = 2, SN_EXACT_TILE = SN_EXACT_VECTORS * SN_W, SN_EXACT_ROWS = SN_REGISTERS == 32 ? 4 : 2 };

typedef struct {
    double part[3][SN_EXACT_ROWS][SN_EXACT_TILE]; /* the pieces' sums, the last in part[pieces - 1] */
} SN_(exact_sums);

SN_INLINE void SN_(exact_scan)(sn_range *range, const double *x, ptrdiff_t n) {
    const sn_wu zero = {0}, infinite = zero + 0x7ff0000000000000u;
    sn_wi least = (sn_wi)infinite, largest = (sn_wi)zero;
    ptrdiff_t i = 0;
    for (; i + SN_W <= n; i += SN_W) {
        const sn_wu u = sn_load_wu(x + i) & 0x7fffffffffffffffu;
        largest = SN_MAX64(largest, (sn_wi)(u & (sn_wu)((sn_wi)u < (sn_wi)infinite)));
        least = (sn_wi)SN_SELECT64(((sn_wi)u < least) & (sn_wi)(u != 0), u, least);
    }
    for (int lane = 0; lane < SN_W; lane++) {
        if ((sn_u64)least[lane] < range->least) range->least = (sn_u64)least[lane];
        if ((sn_u64)largest[lane] > range->largest) range->largest = (sn_u64)largest[lane];
    }
    for (; i < n; i++) {
        sn_u64 u;
        memcpy(&u, x + i, sizeof u);
        u &= 0x7fffffffffffffffu;
        if (u && u < range->least) range->least = u;
        if (u < 0x7ff0000000000000u && u > range->largest) range->largest = u;
    }
}

/* One term in all its pieces: x * y, or x if only that. */
SN_INLINE void SN_(exact_step)(sn_wf *acc, int stride, int pieces, int product, sn_wf x, sn_wf y) {
    sn_wf *last = acc + stride * (pieces - 1);
    if (pieces == 1) {
        *last = product ? SN_EXACT_FMA64(x, y, *last) : *last + x;
        return;
    }
    sn_wf sum = product ? SN_EXACT_FMA64(x, y, *acc) : *acc + x, t = sum - *acc;
    *acc = sum;
    sn_wf rest = product ? SN_EXACT_FMS64(x, y, t) : x - t;
    if (pieces == 3) {
        sn_wf *middle = acc + stride;
        sum = *middle + rest;
        t = sum - *middle;
        *middle = sum;
        rest = rest - t;
    }
    *last = *last + rest;
}

/* rows x SN_EXACT_TILE sums over k of a[row, k] * b[k], b packed; c: rows of SN_EXACT_TILE, or null. */
SN_INLINE void SN_(exact_tile)(const sn_exact_split *s, int pieces, int rows, const double *a, ptrdiff_t lda,
                               const double *b, ptrdiff_t k, const double *c, SN_(exact_sums) * sums) {
    sn_wf acc[3][SN_EXACT_ROWS][SN_EXACT_VECTORS];
    for (int i = 0; i < pieces; i++)
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < SN_EXACT_VECTORS; v++)
                acc[i][r][v] = (sn_wf){0} + (i < pieces - 1 ? s->magic[i] : 0);
    enum { STRIDE = SN_EXACT_ROWS * SN_EXACT_VECTORS };
    if (c)
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < SN_EXACT_VECTORS; v++) {
                const sn_wf x = sn_load_wf(c + r * SN_EXACT_TILE + v * SN_W);
                SN_(exact_step)(&acc[0][r][v], STRIDE, pieces, 0, x, x);
            }
    for (ptrdiff_t i = 0; i < k; i++) {
        sn_wf y[SN_EXACT_VECTORS];
        for (int v = 0; v < SN_EXACT_VECTORS; v++)
            y[v] = sn_load_wf(b + i * SN_EXACT_TILE + v * SN_W);
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < SN_EXACT_VECTORS; v++)
                SN_(exact_step)(&acc[0][r][v], STRIDE, pieces, 1, (sn_wf){0} + a[r * lda + i], y[v]);
    }
    for (int i = 0; i < pieces; i++)
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < SN_EXACT_VECTORS; v++) {
                const sn_wf x = i < pieces - 1 ? acc[i][r][v] - s->magic[i] : acc[i][r][v];
                memcpy(&sums->part[i][r][v * SN_W], &x, sizeof x);
            }
}

static SN_NOINLINE void SN_(exact_rows)(const sn_exact_split *s, const double *a, ptrdiff_t lda, const double *b,
                                        ptrdiff_t k, const double *c, int rows, SN_(exact_sums) * sums) {
    const int whole = rows == SN_EXACT_ROWS;
    for (int r = 0; r < (whole ? 1 : rows); r++) {
        const double *row = a + r * lda, *start = c ? c + r * SN_EXACT_TILE : NULL;
        SN_(exact_sums) one, *to = whole ? sums : &one;
        switch (s->pieces * 2 + whole) {
        case 2: SN_(exact_tile)(s, 1, 1, row, lda, b, k, start, to); break;
        case 3: SN_(exact_tile)(s, 1, SN_EXACT_ROWS, row, lda, b, k, start, to); break;
        case 4: SN_(exact_tile)(s, 2, 1, row, lda, b, k, start, to); break;
        case 5: SN_(exact_tile)(s, 2, SN_EXACT_ROWS, row, lda, b, k, start, to); break;
        case 6: SN_(exact_tile)(s, 3, 1, row, lda, b, k, start, to); break;
        default: SN_(exact_tile)(s, 3, SN_EXACT_ROWS, row, lda, b, k, start, to);
        }
        if (!whole)
            for (int i = 0; i < s->pieces; i++)
                memcpy(sums->part[i][r], one.part[i][0], sizeof one.part[i][0]);
    }
}

/* The sum of the pieces, rounded to odd. */
SN_INLINE sn_wf SN_(exact_total)(int pieces, const SN_(exact_sums) * sums, int r, int v) {
    const sn_wf first = sn_load_wf(&sums->part[0][r][v * SN_W]);
    if (pieces == 1) return first;
    const sn_wf second = sn_load_wf(&sums->part[1][r][v * SN_W]);
    if (pieces == 2) return SN_(add_odd)(first, second);
    const sn_wf third = sn_load_wf(&sums->part[2][r][v * SN_W]);
    const sn_wf m = second + third, d = m - second, e = (second - (m - d)) + (third - d);
    const sn_wf h = first + m, f = h - first, rest = (first - (h - f)) + (m - f);
    return SN_(add_odd)(h, SN_(add_odd)(rest, e));
}

SN_INLINE void SN_(exact_round_as)(const sn_rounding *r, int family, int unusual, const double *x, const sn_u32 *words,
                                   double *out) {
    for (int v = 0; v < SN_EXACT_VECTORS; v++) {
        const sn_wu random = family >= SN_FAMILY_STOCHASTIC ? sn_load_words64(words + v * SN_W) : (sn_wu){0};
        const sn_wu y = SN_(round_to_value64)(r, family, unusual, sn_load_wu(x + v * SN_W), random);
        memcpy(out + v * SN_W, &y, sizeof y);
    }
}

/* SN_EXACT_TILE values, exact or rounded to odd, in the accumulator's format. */
static SN_NOINLINE void SN_(exact_round)(const sn_rounding *r, const double *x, const sn_u32 *words, double *out) {
    if (r->unusual) {
        switch (r->family) {
        case SN_FAMILY_EVEN: SN_(exact_round_as)(r, SN_FAMILY_EVEN, 1, x, words, out); break;
        case SN_FAMILY_NEAREST: SN_(exact_round_as)(r, SN_FAMILY_NEAREST, 1, x, words, out); break;
        case SN_FAMILY_DIRECTED: SN_(exact_round_as)(r, SN_FAMILY_DIRECTED, 1, x, words, out); break;
        case SN_FAMILY_ODD: SN_(exact_round_as)(r, SN_FAMILY_ODD, 1, x, words, out); break;
        case SN_FAMILY_STOCHASTIC: SN_(exact_round_as)(r, SN_FAMILY_STOCHASTIC, 1, x, words, out); break;
        default: SN_(exact_round_as)(r, SN_FAMILY_RANDOM, 1, x, words, out);
        }
        return;
    }
    switch (r->family) {
    case SN_FAMILY_EVEN: SN_(exact_round_as)(r, SN_FAMILY_EVEN, 0, x, words, out); break;
    case SN_FAMILY_NEAREST: SN_(exact_round_as)(r, SN_FAMILY_NEAREST, 0, x, words, out); break;
    case SN_FAMILY_DIRECTED: SN_(exact_round_as)(r, SN_FAMILY_DIRECTED, 0, x, words, out); break;
    case SN_FAMILY_ODD: SN_(exact_round_as)(r, SN_FAMILY_ODD, 0, x, words, out); break;
    case SN_FAMILY_STOCHASTIC: SN_(exact_round_as)(r, SN_FAMILY_STOCHASTIC, 0, x, words, out); break;
    default: SN_(exact_round_as)(r, SN_FAMILY_RANDOM, 0, x, words, out);
    }
}

/* One block of terms, and C among them or none: rounded here. */
static void SN_(exact_finish)(const sn_exact_fast *u, const sn_exact_args *g, const sn_exact_split *s,
                              const SN_(exact_sums) * sums, int rows, ptrdiff_t row, ptrdiff_t column, int valid) {
    const int random = sn_is_stochastic(&u->unit.env), signs = g->c || u->unit.env.rounding == SN_DOWN;
    for (int r = 0; r < rows; r++) {
        double x[SN_EXACT_TILE], y[SN_EXACT_TILE];
        sn_u32 words[SN_EXACT_TILE] = {0};
        for (int v = 0; v < SN_EXACT_VECTORS; v++) {
            const sn_wf total = SN_(exact_total)(s->pieces, sums, r, v);
            memcpy(x + v * SN_W, &total, sizeof total);
        }
        for (int j = 0; random && j < SN_EXACT_TILE; j++)
            words[j] = sn_exact_word(&u->unit, row + r, g->n0 + column + j);
        SN_(exact_round)(&u->rounding, x, words, y);
        for (int j = 0; j < valid; j++)
            if (!(x[j] - x[j] == 0) || (signs && x[j] == 0)) y[j] = sn_exact_slow(u, g, row + r, column + j);
        memcpy(g->out + (row + r) * g->ldo + column, y, (size_t)valid * sizeof *y);
    }
}

/* Several blocks, or a C whose range is another: through integers. */
static void SN_(exact_long)(const sn_exact_fast *u, const sn_exact_args *g, const sn_exact_split *s, const double *b,
                            const double *c, int rows, ptrdiff_t row, ptrdiff_t column, int valid) {
    enum { COUNT = SN_EXACT_ROWS * SN_EXACT_TILE };
    sn_i64 count[3][COUNT] = {{0}};
    int bad[COUNT] = {0};
    const sn_i64 *const counts[3] = {count[0], count[1], count[2]};
    double unit[3];
    for (int i = 0; i < s->pieces; i++) {
        const sn_u64 bits = (sn_u64)(1023 - s->grid[i]) << 52;
        memcpy(&unit[i], &bits, sizeof bits);
    }
    for (ptrdiff_t k = 0; k < g->k;) {
        const ptrdiff_t room = s->block - (c && k == 0), take = g->k - k < room ? g->k - k : room;
        SN_(exact_sums) sums;
        SN_(exact_rows)(s, g->a + row * g->lda + k, g->lda, b + k * SN_EXACT_TILE, take, k ? NULL : c, rows, &sums);
        for (int r = 0; r < rows; r++)
            for (int j = 0; j < SN_EXACT_TILE; j++) {
                const int at = r * SN_EXACT_TILE + j;
                const double end = sums.part[s->pieces - 1][r][j];
                bad[at] |= !(end - end == 0);
                for (int i = 0; i < s->pieces && !bad[at]; i++)
                    count[i][at] += (sn_i64)(sums.part[i][r][j] * unit[i]);
            }
        k += take;
    }
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < valid; j++) {
            const int at = r * SN_EXACT_TILE + j;
            g->out[(row + r) * g->ldo + column + j] =
                bad[at] ? sn_exact_slow(u, g, row + r, column + j)
                        : sn_exact_of_counts(u, g, s, counts, at, row + r, column + j);
        }
}

static void SN_(exact_columns)(const sn_exact_fast *u, const sn_exact_args *g, const sn_exact_split *s) {
    const int absorbed = g->c && s->with_c;
    const int simple = g->k + absorbed <= s->block && (!g->c || absorbed);
    for (ptrdiff_t column = 0; column < g->n; column += SN_EXACT_TILE) {
        const double *b = g->packed + column * g->k;
        const int valid = (int)(g->n - column < SN_EXACT_TILE ? g->n - column : SN_EXACT_TILE);
        for (ptrdiff_t row = g->m0; row < g->m1; row += SN_EXACT_ROWS) {
            const int rows = (int)(g->m1 - row < SN_EXACT_ROWS ? g->m1 - row : SN_EXACT_ROWS);
            double start[SN_EXACT_ROWS * SN_EXACT_TILE] = {0};
            for (int r = 0; absorbed && r < rows; r++)
                memcpy(start + r * SN_EXACT_TILE, g->c + (row + r) * g->ldc + column, (size_t)valid * sizeof *start);
            if (!simple) {
                SN_(exact_long)(u, g, s, b, absorbed ? start : NULL, rows, row, column, valid);
                continue;
            }
            SN_(exact_sums) sums;
            SN_(exact_rows)(s, g->a + row * g->lda, g->lda, b, g->k, absorbed ? start : NULL, rows, &sums);
            SN_(exact_finish)(u, g, s, &sums, rows, row, column, valid);
        }
    }
}

static void SN_(exact_gemm)(const sn_exact_fast *u, const sn_exact_args *g) {
    sn_range range[3] = {{0x7ff0000000000000u, 0}, {0x7ff0000000000000u, 0}, {0x7ff0000000000000u, 0}};
    for (ptrdiff_t column = 0; column < g->n; column += SN_EXACT_TILE) {
        double *b = g->packed + column * g->k;
        const ptrdiff_t valid = g->n - column < SN_EXACT_TILE ? g->n - column : SN_EXACT_TILE;
        for (ptrdiff_t k = 0; k < g->k; k++) {
            double *to = b + k * SN_EXACT_TILE;
            memcpy(to, g->b + k * g->ldb + column, (size_t)valid * sizeof *to);
            memset(to + valid, 0, (size_t)(SN_EXACT_TILE - valid) * sizeof *to);
        }
        SN_(exact_scan)(&range[1], b, g->k * SN_EXACT_TILE);
    }
    for (ptrdiff_t row = g->m0; row < g->m1; row++) {
        SN_(exact_scan)(&range[0], g->a + row * g->lda, g->k);
        if (g->c) SN_(exact_scan)(&range[2], g->c + row * g->ldc, g->n);
    }
    const sn_exact_split s = sn_exact_split_for(u, range, g->k, g->c != NULL);
    if (s.pieces) {
        SN_(exact_columns)(u, g, &s);
        return;
    }
    for (ptrdiff_t row = g->m0; row < g->m1; row++)
        for (ptrdiff_t j = 0; j < g->n; j++)
            g->out[row * g->ldo + j] = sn_exact_slow(u, g, row, j);
}

#endif

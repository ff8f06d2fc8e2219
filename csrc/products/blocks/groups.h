/* Fused sums of groups of block formats over carriers: included once per instruction set, by targets/dots.h, after
 * products/blocks/body.h, whose sums of blocks are those of the groups.
 *
 * Domain, checked by sn_block_fused_path; all of it is exact, and nothing is left to the definition:
 *   - sums S of a group are exact in binary32 (body.h says when), S * (X * Y) in binary64;
 *   - the powers of two that terms count with lie within 2^-400 and 2^400, so that M may be kept at -400 or above: no
 *     term that counts has less;
 *   - a term times 2^(F - M) is below 2^50: cut off toward zero it is an integer of binary64, and so is the sum;
 *   - the accumulator is binary32, sums are rounded toward zero and become infinite where they are too large.
 * Infinities and NaNs take their way through the arithmetic of binary64, which is theirs: an infinite C makes a scale
 * 2^(F - M) that cuts all numbers to zero. */
#ifndef SOFTNUM_BLOCK_GROUPS_H
#define SOFTNUM_BLOCK_GROUPS_H

#include "products/blocks/block_fused.h"

/* x, of a magnitude below 2^51, an infinity or a NaN, without its fraction. */
#ifndef SN_TRUNCATE64
SN_INLINE sn_wf SN_(truncate64)(sn_wf x) {
    const sn_wf magic = SN_(in_all64)(0x1.8p52), near = (x + magic) - magic;
    const sn_wu sign = (sn_wu)x & 0x8000000000000000u;
    const sn_wi beyond = ((sn_wi)near & 0x7fffffffffffffff) > ((sn_wi)x & 0x7fffffffffffffff);
    return near - (sn_wf)(((sn_wu)SN_(in_all64)(1.0) | sign) & (sn_wu)beyond);
}
#define SN_TRUNCATE64(x) SN_(truncate64)(x)
#endif

/* x in binary32, cut to the bits of keep and toward zero; too large: infinite; +0 for -0. */
SN_INLINE sn_wf SN_(cut_to_binary32)(sn_wf x, sn_u64 keep) {
    const sn_wu bits = (sn_wu)x & keep, size = bits & 0x7fffffffffffffffu, sign = bits ^ size;
    const sn_wf tiny = SN_TRUNCATE64((sn_wf)bits * SN_(in_all64)(0x1p149)) * SN_(in_all64)(0x1p-149);
    const sn_wi small = (sn_wi)
        size<(sn_wi)SN_(in_all64)(0x1p-126), large = (sn_wi)size >= (sn_wi)SN_(in_all64)(0x1p128), nan = (sn_wi)size>(
            sn_wi) SN_(in_all64)(__builtin_inf());
    sn_wu out = SN_SELECT64(small, (sn_wu)tiny, bits & ~(sn_u64)0x1fffffff);
    out = SN_SELECT64(large, sign | (sn_wu)SN_(in_all64)(__builtin_inf()), out);
    out = SN_SELECT64(nan, bits, out);
    return (sn_wf)out + SN_(in_all64)(0.0);
}

typedef float SN_(group_sums)[SN_BLOCK_MOST][SN_BLOCK_TILE];

/* One step of one row of a tile. x, px: the scales of a and their powers of two, for each group; y, py: the same of b,
 * rows of the tile. */
SN_INLINE void SN_(group_step)(const sn_block_fused_plan *p, int powers, int count, double *acc,
                               const SN_(group_sums) * sums, int row, const double *x, const double *px,
                               const double *const *y, const double *const *py) {
    const sn_wi zero_c = (sn_wi)SN_(in_all64)(p->zero_power), floor = (sn_wi)SN_(in_all64)(p->floor_power),
                least_c = (sn_wi)SN_(in_all64)(0x1p-126);
    const sn_u64 bits = (sn_u64)p->unit.fused.fraction_bits << 52;
    for (int j = 0; j < SN_BLOCK_TILE; j += SN_W) {
        const sn_wf c = sn_load_wf(acc + j);
        sn_wf term[SN_BLOCK_GROUPS];
        sn_wi largest = (sn_wi)((sn_wu)c & 0x7ff0000000000000u);
        largest = SN_MAX64(largest, least_c);
        largest = (sn_wi)SN_SELECT64((sn_wi)((sn_wu)c << 1) == 0, (sn_wu)zero_c, (sn_wu)largest);
        largest = SN_MAX64(largest, floor);
        SN_BLOCK_UNROLL
        for (int i = 0; i < count; i++) {
            const float *s = sums[i][row] + j;
            sn_hf half;
            memcpy(&half, s, sizeof half);
            const sn_wf power = sn_load_wf(py[i] + j) * px[i];
            term[i] = __builtin_convertvector(half, sn_wf) * (powers ? power : sn_load_wf(y[i] + j) * x[i]);
            largest = SN_MAX64(largest, (sn_wi)power);
        }
        /* 2^(F - M) and 2^(M - F), from the exponent field of 2^M */
        const sn_wf scale = (sn_wf)(((sn_u64)2046 << 52) + bits - (sn_wu)largest),
                    back = (sn_wf)((sn_wu)largest - bits);
        sn_wf total = SN_TRUNCATE64(c * scale);
        SN_BLOCK_UNROLL
        for (int i = 0; i < count; i++)
            total = total + SN_TRUNCATE64(term[i] * scale);
        const sn_wf out = SN_(cut_to_binary32)(total * back, p->keep);
        memcpy(acc + j, &out, sizeof out);
    }
}

/* Rows of a tile, all of k. */
static void SN_(group_rows)(const sn_block_fused_plan *p, const sn_block_fused_values *g, const float *b,
                            const double *y, const double *py, ptrdiff_t row, int rows, ptrdiff_t column,
                            ptrdiff_t valid) {
    const ptrdiff_t group = p->unit.group, terms = p->unit.fused.terms;
    const sn_block_fast narrow = {0};
    SN_(block_tile) t;
    SN_(group_sums) sums[SN_BLOCK_GROUPS];
    double acc[SN_BLOCK_MOST][SN_BLOCK_TILE] = {{0}};
    for (int r = 0; r < rows && g->c; r++)
        for (ptrdiff_t j = 0; j < valid; j++)
            acc[r][j] = g->c[(row + r) * g->n + column + j];
    for (ptrdiff_t first = 0; first < g->k; first += terms) {
        const ptrdiff_t end = first + terms < g->k ? first + terms : g->k;
        const double *of_b[SN_BLOCK_GROUPS], *powers_b[SN_BLOCK_GROUPS];
        ptrdiff_t block[SN_BLOCK_GROUPS];
        int count = 0;
        for (ptrdiff_t k = first; k < end; k += group, count++) {
            const ptrdiff_t length = end - k < group ? end - k : group;
            SN_(block_sums)(&narrow, &t, rows, 0, g->a + (row * g->k + k), g->k, b + k * SN_BLOCK_TILE, length);
            memcpy(sums[count], t.sums32, (size_t)rows * sizeof t.sums32[0]);
            block[count] = k / p->unit.block;
            of_b[count] = y + block[count] * SN_BLOCK_TILE;
            powers_b[count] = py + block[count] * SN_BLOCK_TILE;
        }
        for (int r = 0; r < rows; r++) {
            double x[SN_BLOCK_GROUPS], px[SN_BLOCK_GROUPS];
            for (int i = 0; i < count; i++) {
                x[i] = g->scale_a[(row + r) * g->blocks + block[i]];
                px[i] = g->power_a[(row + r) * g->blocks + block[i]];
            }
            if (count == 4 && p->powers)
                SN_(group_step)(p, 1, 4, acc[r], sums, r, x, px, of_b, powers_b);
            else if (count == 4)
                SN_(group_step)(p, 0, 4, acc[r], sums, r, x, px, of_b, powers_b);
            else
                SN_(group_step)(p, 0, count, acc[r], sums, r, x, px, of_b, powers_b);
        }
    }
    for (int r = 0; r < rows; r++)
        for (ptrdiff_t j = 0; j < valid; j++)
            g->out[(row + r) * g->n + column + j] = (float)acc[r][j];
}

static void SN_(block_fused_groups)(const sn_block_fused_plan *p, const sn_block_fused_values *g) {
    double *y = g->room, *py = p->powers ? y : y + g->blocks * SN_BLOCK_TILE;
    float *b = (float *)(void *)(py + g->blocks * SN_BLOCK_TILE);
    for (ptrdiff_t column = 0; column < g->n; column += SN_BLOCK_TILE) {
        const ptrdiff_t valid = g->n - column < SN_BLOCK_TILE ? g->n - column : SN_BLOCK_TILE;
        SN_(block_pack)(y, g->scale_b + column, g->blocks, g->n_total, valid, sizeof *y);
        if (!p->powers) SN_(block_pack)(py, g->power_b + column, g->blocks, g->n_total, valid, sizeof *py);
        SN_(block_pack)(b, g->b + column, g->k, g->n_total, valid, sizeof *b);
        for (ptrdiff_t row = 0; row < g->rows; row += SN_BLOCK_ROWS32) {
            const int rows = (int)(g->rows - row < SN_BLOCK_ROWS32 ? g->rows - row : SN_BLOCK_ROWS32);
            SN_(group_rows)(p, g, b, y, py, row, rows, column, valid);
        }
    }
}

#endif

/* Dot products of groups over binary32 carriers: included once per instruction set, by targets/dots.h after
 * products/fused/body.h, whose packed operands these are. What is said here is of bulk-normalized sums; of others,
 * products/grouped/plain.h.
 *
 * A group, for SN_V columns at once: p = a * b in binary32; M by the maximum of exponents in int16; each p times 2^(F -
 * M), a multiple of its own last bit, becomes the int32 below it, odd where that lost anything: as the integers above
 * and below differ by 1, their difference's last bit is OR-ed in, which rounds the magnitude to odd. Sums of up to 31
 * bits are int32; longer ones are int32 modulo 2^32, with the sum of the terms' high halves beside them, which says the
 * rest: two binary32 numbers, of the sum's bits from 2^16 on and of those below. The sum of two is rounded to odd by
 * its error (Knuth, TAOCP 2, 4.2.2; Boldo and Melquiond 2008), or is the odd one of it rounded down and up.
 *
 * Domain, checked by sn_grouped_path:
 *   - p(a) + p(b) <= 24, exponents of operands as binary32's or narrower;
 *   - partial sums and accumulator are binary32's; partial sums are rounded to odd, sums to odd or to nearest even;
 *   - F <= 29: a product is below 2^(F + 2) <= 2^31 units; so terms <= 64.
 * Domain, checked here, block by block; what lies outside goes to the definition, an element at a time:
 *   - operands and C are finite, and so is each sum, as rounded to nearest: else there is an infinity or a NaN from
 * then on;
 *   - exponents of products that are not zero within [F - 124, 125]. So M is at least F - 124 (a lower one, of zeros
 *     alone, is kept there), a partial sum is a multiple of 2^-124, and scales are normal numbers;
 *   - M is at most 127 + F (reach) above a product's exponent: times 2^(F - M) it is a multiple of 2^-149, and not
 * lost. */
#ifndef SOFTNUM_GROUPED_BODY_H
#define SOFTNUM_GROUPED_BODY_H

#include "products/grouped/grouped.h"

#ifndef SN_JAM
/* x, below 2^31 in magnitude: the integer below, its last bit set where that is another number. */
SN_INLINE sn_vu SN_(jam)(sn_vf x) {
    const sn_vi whole = SN_(to_int)(x);
    const sn_vf back = __builtin_convertvector(whole, sn_vf); /* x itself from 2^23 on */
    return (sn_vu)(whole + (back > x)) | ((sn_vu)(back != x) & 1u);
}
#define SN_JAM(x) SN_(jam)(x)
#endif

#ifndef SN_ODD_SUM
/* x + y rounded to odd: to nearest, and a step back where that went to an even number. What overflows is the largest
 * number, infinite or a NaN. */
SN_INLINE sn_vf SN_(odd_sum)(sn_vf x, sn_vf y) {
    const sn_vf sum = x + y, moved = sum - x, error = (x - (sum - moved)) + (y - moved);
    const sn_vi bits = (sn_vi)sum, step = ((bits ^ (sn_vi)error) >> 31) | 1;
    return (sn_vf)(bits + (step & (error != 0) & ((bits & 1) - 1)));
}
#define SN_ODD_SUM(x, y) SN_(odd_sum)(x, y)
#endif

/* The groups of a packed block for SN_ROWS rows; sums: what was summed before, and after. wide: sums of groups may have
 * more than 32 bits. */
SN_INLINE void SN_(groups)(const sn_grouped_plan *p, int wide, int odd, int depth, const sn_fused_rows *rows,
                           const sn_fused_columns *columns, float sums[SN_ROWS][SN_STRIP]) {
    const int terms = p->unit.terms;
    const sn_u32 bits = (sn_u32)p->unit.fraction_bits << 23;
    sn_vf acc[SN_ROWS][2];
    sn_vi worst[SN_ROWS][2]; /* the largest magnitude */
    for (int r = 0; r < SN_ROWS; r++)
        for (int v = 0; v < 2; v++) {
            acc[r][v] = sn_load_vf(sums[r] + v * SN_V);
            worst[r][v] = (sn_vi)((sn_vu)acc[r][v] & 0x7fffffffu);
        }
    for (int k = 0; k < depth; k += terms) {
        sn_vh largest[SN_ROWS];
        sn_vf scale[SN_ROWS][2];
        sn_vu sum[SN_ROWS][2];
        sn_vi high[SN_ROWS][2];
        SN_(largest)(rows, columns, k, k + terms, 1, (short)(p->packing.floor << 7), largest);
        for (int r = 0; r < SN_ROWS; r++)
            for (int v = 0; v < 2; v++) {
                scale[r][v] = (sn_vf)((254u << 23) + bits - (sn_vu)SN_(exponent_field)(largest[r], v));
                sum[r][v] = (sn_vu){0};
                high[r][v] = (sn_vi){0};
            }
        for (int t = k; t < k + terms; t++) {
            const sn_vf y[2] = {sn_load_vf(columns->value[t]), sn_load_vf(columns->value[t] + SN_V)};
            for (int r = 0; r < SN_ROWS; r++) {
                const sn_vf x = SN_(all)(rows->value[r][t]);
                for (int v = 0; v < 2; v++) {
                    const sn_vu term = SN_JAM(x * y[v] * scale[r][v]);
                    sum[r][v] += term;
                    if (wide) high[r][v] += (sn_vi)term >> 16;
                }
            }
        }
        for (int r = 0; r < SN_ROWS; r++)
            for (int v = 0; v < 2; v++) {
                sn_vf whole;
                if (wide) {
                    const sn_vu low = sum[r][v] - ((sn_vu)high[r][v] << 16);
                    const sn_vi above = high[r][v] + (sn_vi)(low >> 16), below = (sn_vi)(low & 0xffffu);
                    whole = SN_ODD_SUM(__builtin_convertvector(above, sn_vf) * 65536.0f,
                                       __builtin_convertvector(below, sn_vf));
                } else {
                    whole = SN_TO_FLOAT_ODD((sn_vi)sum[r][v]);
                }
                whole *= (sn_vf)((254u << 23) - (sn_vu)scale[r][v]); /* 2^(M - F) */
                acc[r][v] = odd ? SN_ODD_SUM(acc[r][v], whole) : acc[r][v] + whole;
                worst[r][v] = SN_MAX(worst[r][v], (sn_vi)((sn_vu)acc[r][v] & 0x7fffffffu));
            }
    }
    for (int r = 0; r < SN_ROWS; r++)
        for (int v = 0; v < 2; v++) {
            /* what overflows may have become the largest number */
            const sn_vu marked = SN_SELECT32(worst[r][v] > 0x7f7ffffe, (sn_vu){0} + 0x7fc00000u, acc[r][v]);
            memcpy(sums[r] + v * SN_V, &marked, sizeof marked);
        }
}

#include "products/grouped/plain.h"

/* As SN_(mark): where operands are too small, or exponents of products too far apart in a block; of wide sums, where a
 * product itself lies too far below the largest that the block may have. */
SN_INLINE void SN_(mark_groups)(const sn_grouped_plan *p, int wide, int depth, const sn_fused_rows *rows,
                                const sn_fused_columns *columns, float sums[SN_ROWS][SN_STRIP]) {
    for (int r = 0; r < SN_ROWS; r++) {
        const sn_i32 most = rows->most[r] + columns->most;
        const int apart = most - rows->least[r] - columns->least > p->reach;
        if (apart && wide)
            SN_(mark_small_products)(most - p->reach, depth, rows->value[r], columns, sums[r]);
        else if (apart || rows->least[r] < p->least_operand || columns->least < p->least_operand)
            for (int i = 0; i < SN_STRIP; i++)
                sums[r][i] = __builtin_nanf("");
    }
}

/* Marks what sums must not start from. */
SN_INLINE void SN_(mark_starts)(const sn_grouped_plan *p, float *x, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++)
        if (x[i] != 0 && __builtin_fabsf(x[i]) < p->least_start) x[i] = __builtin_nanf("");
}

SN_INLINE void SN_(group_strips)(const sn_grouped_plan *p, const sn_fused_values *g, int how) {
    const ptrdiff_t step = SN_DEPTH / p->unit.terms * p->unit.terms;
    const ptrdiff_t length = (g->k + p->unit.terms - 1) / p->unit.terms * p->unit.terms;
    sn_fused_columns columns __attribute__((aligned(64)));
    sn_fused_rows rows[SN_BLOCK / SN_ROWS] __attribute__((aligned(64)));
    float sums[SN_ROWS][SN_STRIP] __attribute__((aligned(64))) = {{0}};
    ptrdiff_t where[SN_DEPTH];
    for (ptrdiff_t block = g->m0; block < g->m1; block += SN_BLOCK) {
        const ptrdiff_t height = g->m1 - block < SN_BLOCK ? g->m1 - block : SN_BLOCK;
        for (ptrdiff_t r = block; r < block + height; r++)
            if (g->c)
                memcpy(g->out + r * g->ldo, g->c + r * g->ldc, (size_t)g->n * sizeof(float));
            else
                memset(g->out + r * g->ldo, 0, (size_t)g->n * sizeof(float));
        for (ptrdiff_t r = block; g->c && p->least_start > 0 && r < block + height; r++)
            SN_(mark_starts)(p, g->out + r * g->ldo, g->n);
        for (ptrdiff_t k = 0; k < length; k += step) {
            const int depth = (int)(length - k < step ? length - k : step);
            for (int j = 0; j < depth; j++)
                where[j] = k + j < g->k ? k + j : -1;
            for (ptrdiff_t r = 0; r < height; r += SN_ROWS)
                SN_(pack_rows)(&p->packing, g, 0, where, depth, block + r, height - r, &rows[r / SN_ROWS]);
            for (ptrdiff_t column = 0; column < g->n; column += SN_STRIP) {
                const ptrdiff_t valid = g->n - column < SN_STRIP ? g->n - column : SN_STRIP;
                SN_(pack_columns)(&p->packing, g, 0, where, depth, column, &columns);
                for (ptrdiff_t r = 0; r < height; r += SN_ROWS) {
                    const ptrdiff_t count = height - r < SN_ROWS ? height - r : SN_ROWS;
                    float *out = g->out + (block + r) * g->ldo + column;
                    for (ptrdiff_t i = 0; i < count; i++)
                        memcpy(sums[i], out + i * g->ldo, (size_t)valid * sizeof(float));
                    const sn_fused_rows *these = &rows[r / SN_ROWS];
                    if (how == SN_GROUPS_WIDE || how == SN_GROUPS_WIDE_NARROW)
                        SN_(wide_groups)(p, how == SN_GROUPS_WIDE_NARROW, depth, these, &columns, sums);
                    else if (how >= SN_GROUPS_STEPS)
                        SN_(plain_groups)(p, how, depth, these, &columns, sums);
                    else
                        SN_(groups)(p, how & SN_GROUPS_LONG, how & SN_GROUPS_ODD, depth, these, &columns, sums);
                    SN_(mark)(&p->packing, these, &columns, sums);
                    SN_(mark_groups)(p, how == SN_GROUPS_WIDE || how == SN_GROUPS_WIDE_NARROW, depth, these, &columns,
                                     sums);
                    for (ptrdiff_t i = 0; i < count; i++)
                        memcpy(out + i * g->ldo, sums[i], (size_t)valid * sizeof(float));
                }
            }
        }
        for (ptrdiff_t r = block; r < block + height; r++) {
            float *out = g->out + r * g->ldo;
            if (!SN_(has_nan)(out, g->n)) continue;
            for (ptrdiff_t i = 0; i < g->n; i++)
                if (out[i] != out[i]) out[i] = sn_grouped_value(p, g, r, i);
        }
    }
}

static void SN_(grouped_kernel)(const sn_grouped_plan *p, const sn_fused_values *g) {
    switch (p->how) {
    case SN_GROUPS_BULK: SN_(group_strips)(p, g, SN_GROUPS_BULK); break;
    case SN_GROUPS_LONG: SN_(group_strips)(p, g, SN_GROUPS_LONG); break;
    case SN_GROUPS_ODD: SN_(group_strips)(p, g, SN_GROUPS_ODD); break;
    case SN_GROUPS_LONG | SN_GROUPS_ODD: SN_(group_strips)(p, g, SN_GROUPS_LONG | SN_GROUPS_ODD); break;
    case SN_GROUPS_STEPS: SN_(group_strips)(p, g, SN_GROUPS_STEPS); break;
    case SN_GROUPS_FUSED: SN_(group_strips)(p, g, SN_GROUPS_FUSED); break;
    case SN_GROUPS_NARROW: SN_(group_strips)(p, g, SN_GROUPS_NARROW); break;
    case SN_GROUPS_WIDE: SN_(group_strips)(p, g, SN_GROUPS_WIDE); break;
    default: SN_(group_strips)(p, g, SN_GROUPS_WIDE_NARROW);
    }
}

#endif

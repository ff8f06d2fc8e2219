/* Sums of groups that a CPU's own operations make up, over binary32 carriers: included once per instruction set, after
 * products/grouped/body.h, whose loops over packed operands call them.
 *
 * SN_GROUPS_STEPS: each product is rounded to odd in binary32, so are their sums, in turn, and the sum of that and the
 *   accumulator; subnormal numbers are zeros. Products are exact, their sum is SN_ODD_SUM's.
 * SN_GROUPS_FUSED: up to two products, exact in binary32; their sum, and its sum with the accumulator, round to
 * nearest. SN_GROUPS_NARROW: one product, exact in binary32, and the accumulator: the sum is rounded to odd, and then
 * to nearest in the accumulator's format, of at most 22 bits (Boldo and Melquiond 2008). SN_GROUPS_WIDE: sums of
 * products are exact in binary64; each is added to the accumulator, rounded to odd in binary64, and then to nearest.
 *
 * Domain, checked by sn_grouped_path:
 *   - p(a) + p(b) <= 24, exponents of operands as binary32's or narrower; operands and accumulator have subnormals;
 *   - STEPS: operands have binary32's exponents, and all is flushed; STEPS and FUSED: partial sums and accumulator are
 *     binary32's.
 * Domain, checked here, block by block; what lies outside goes to the definition, an element at a time:
 *   - operands are finite; sums too, but of FUSED: there an overflow is an infinity that IEEE 754 goes on with; of
 * STEPS they are below the largest number;
 *   - exponents of products that are not zero within [low, high]: low, where their last bits are 2^-149 or above, and
 * of STEPS 2^-126, as then all sums are multiples of that and none is subnormal, if C is one too (least_start), and no
 *     operand is subnormal (least_operand); high, where a group's sum stays below 2^128;
 *   - WIDE: exponents of products that are not zero at most `reach` below the largest possible in the block: then a
 * group's sum has no more than 53 bits. */
#ifndef SOFTNUM_GROUPED_PLAIN_H
#define SOFTNUM_GROUPED_PLAIN_H

#include "products/grouped/grouped.h"

typedef float sn_half_vf __attribute__((vector_size(SN_BYTES / 2))); /* as many as a vector has of binary64 */

SN_INLINE sn_wf SN_(wide_load)(const float *p) {
    sn_half_vf half;
    memcpy(&half, p, sizeof half);
    return __builtin_convertvector(half, sn_wf);
}

SN_INLINE void SN_(wide_store)(float *p, sn_wf x) {
    const sn_half_vf half = __builtin_convertvector(x, sn_half_vf);
    memcpy(p, &half, sizeof half);
}

SN_INLINE sn_wf SN_(wide_all)(double x) {
    sn_u64 bits;
    memcpy(&bits, &x, sizeof bits);
    return (sn_wf)((sn_wu){0} + bits); /* -0 too */
}

#ifndef SN_ODD_SUM64
/* As SN_ODD_SUM, in binary64. */
SN_INLINE sn_wf SN_(odd_sum64)(sn_wf x, sn_wf y) {
    const sn_wf sum = x + y, moved = sum - x, error = (x - (sum - moved)) + (y - moved);
    const sn_wi bits = (sn_wi)sum, step = ((bits ^ (sn_wi)error) >> 63) | 1;
    return (sn_wf)(bits + (step & (error != 0) & ((bits & 1) - 1)));
}
#define SN_ODD_SUM64(x, y) SN_(odd_sum64)(x, y)
#endif

/* x to nearest, in the accumulator's format, what is too large being some number above its largest: by the constant
 * that leaves the right places. */
SN_INLINE sn_vf SN_(narrow)(const sn_grouped_plan *p, sn_vf x) {
    const sn_vi top = SN_MAX((sn_vi)x & 0x7f800000, (sn_vi){0} + ((p->unit.accumulator.emin + 127) << 23));
    const sn_vf constant = (sn_vf)top * (float)p->constant;
    return (sn_vf)((sn_vu)((x + constant) - constant) | ((sn_vu)x & 0x80000000u)); /* a zero keeps its sign */
}

SN_INLINE sn_wf SN_(narrow64)(const sn_grouped_plan *p, sn_wf x) {
    const sn_wi field = (sn_wi)((sn_wu)x & 0x7ff0000000000000u);
    const sn_wi top = SN_MAX64(field, (sn_wi){0} + ((sn_i64)(p->unit.accumulator.emin + 1023) << 52));
    const sn_wf constant = (sn_wf)top * p->constant;
    return (sn_wf)((sn_wu)((x + constant) - constant) | ((sn_wu)x & 0x8000000000000000u));
}

/* The groups of a packed block, as SN_(groups); in binary32. */
SN_INLINE void SN_(plain_groups)(const sn_grouped_plan *p, int how, int depth, const sn_fused_rows *rows,
                                 const sn_fused_columns *columns, float sums[SN_ROWS][SN_STRIP]) {
    const int terms = p->unit.terms;
    const sn_vf none = SN_(all)(p->unit.first_term ? -0.0f : 0.0f); /* -0 + x is x */
    const sn_u32 to_top = 0x80000000u - 1 - p->most_bits; /* beyond the largest magnitude the top bit is set */
    sn_vf acc[SN_ROWS][2];
    sn_vu beyond[SN_ROWS][2];
    for (int r = 0; r < SN_ROWS; r++)
        for (int v = 0; v < 2; v++) {
            acc[r][v] = sn_load_vf(sums[r] + v * SN_V);
            beyond[r][v] = ((sn_vu)acc[r][v] & 0x7fffffffu) + to_top;
        }
    for (int k = 0; k < depth; k += terms) {
        sn_vf sum[SN_ROWS][2];
        for (int r = 0; r < SN_ROWS; r++)
            sum[r][0] = sum[r][1] = none;
        for (int t = k; t < k + terms; t++) {
            const sn_vf y[2] = {sn_load_vf(columns->value[t]), sn_load_vf(columns->value[t] + SN_V)};
            for (int r = 0; r < SN_ROWS; r++) {
                const sn_vf x = SN_(all)(rows->value[r][t]);
                for (int v = 0; v < 2; v++) {
                    const sn_vf product = x * y[v];
                    if (how == SN_GROUPS_STEPS && t > k)
                        sum[r][v] = SN_ODD_SUM(sum[r][v], product);
                    else
                        sum[r][v] += product;
                }
            }
        }
        for (int r = 0; r < SN_ROWS; r++)
            for (int v = 0; v < 2; v++) {
                if (how == SN_GROUPS_FUSED) {
                    acc[r][v] += sum[r][v];
                    continue;
                }
                acc[r][v] = SN_ODD_SUM(acc[r][v], sum[r][v]);
                if (how == SN_GROUPS_NARROW) acc[r][v] = SN_(narrow)(p, acc[r][v]);
                beyond[r][v] |= ((sn_vu)acc[r][v] & 0x7fffffffu) + to_top;
            }
    }
    for (int r = 0; r < SN_ROWS; r++)
        for (int v = 0; v < 2; v++) {
            sn_vu marked = (sn_vu)acc[r][v];
            if (how != SN_GROUPS_FUSED) marked = SN_SELECT32((sn_vi)beyond[r][v] < 0, (sn_vu){0} + 0x7fc00000u, marked);
            memcpy(sums[r] + v * SN_V, &marked, sizeof marked);
        }
}

/* The same in binary64. */
SN_INLINE void SN_(wide_groups)(const sn_grouped_plan *p, int narrow, int depth, const sn_fused_rows *rows,
                                const sn_fused_columns *columns, float sums[SN_ROWS][SN_STRIP]) {
    enum { PARTS = SN_V / SN_W };
    const int terms = p->unit.terms;
    const sn_wf none = SN_(wide_all)(p->unit.first_term ? -0.0 : 0.0);
    double a[SN_ROWS][SN_DEPTH];
    for (int r = 0; r < SN_ROWS; r++)
        for (int k = 0; k < depth; k++)
            a[r][k] = (double)rows->value[r][k] * p->scale;
    const sn_u64 to_top = ((sn_u64)1 << 63) - 1 - p->most_bits64;
    for (int v = 0; v < 2; v++) {
        sn_wf acc[SN_ROWS][PARTS];
        sn_wu beyond[SN_ROWS][PARTS];
        for (int r = 0; r < SN_ROWS; r++)
            for (int i = 0; i < PARTS; i++) {
                acc[r][i] = SN_(wide_load)(sums[r] + v * SN_V + i * SN_W);
                beyond[r][i] = ((sn_wu)acc[r][i] & 0x7fffffffffffffffu) + to_top;
            }
        for (int k = 0; k < depth; k += terms) {
            sn_wf sum[SN_ROWS][PARTS];
            for (int r = 0; r < SN_ROWS; r++)
                for (int i = 0; i < PARTS; i++)
                    sum[r][i] = none;
            for (int t = k; t < k + terms; t++)
                for (int i = 0; i < PARTS; i++) {
                    const sn_wf y = SN_(wide_load)(columns->value[t] + v * SN_V + i * SN_W);
                    for (int r = 0; r < SN_ROWS; r++) {
                        const sn_wf x = SN_(wide_all)(a[r][t]);
                        sum[r][i] = SN_EXACT_FMA64(x, y, sum[r][i]);
                    }
                }
            for (int r = 0; r < SN_ROWS; r++)
                for (int i = 0; i < PARTS; i++) {
                    acc[r][i] = SN_ODD_SUM64(acc[r][i], sum[r][i]);
                    if (narrow)
                        acc[r][i] = SN_(narrow64)(p, acc[r][i]);
                    else
                        acc[r][i] = __builtin_convertvector(__builtin_convertvector(acc[r][i], sn_half_vf), sn_wf);
                    beyond[r][i] |= ((sn_wu)acc[r][i] & 0x7fffffffffffffffu) + to_top;
                }
        }
        for (int r = 0; r < SN_ROWS; r++)
            for (int i = 0; i < PARTS; i++) {
                const sn_wu nan = (sn_wu){0} + 0x7ff8000000000000u;
                const sn_wu marked = SN_SELECT64((sn_wi)beyond[r][i] < 0, nan, acc[r][i]);
                SN_(wide_store)(sums[r] + v * SN_V + i * SN_W, (sn_wf)marked);
            }
    }
}

/* Where a product of the row that is not zero may have an exponent, the sum of its operands', below `exponent`: such a
 * product is below 2^(exponent + 1). */
SN_INLINE void SN_(mark_small_products)(sn_i32 exponent, int depth, const float *row, const sn_fused_columns *columns,
                                        float sums[SN_STRIP]) {
    const sn_i32 e = exponent + 1; /* 2^e in binary32, below the largest product */
    const sn_i32 bound = e >= -126 ? (e + 127) << 23 : e >= -149 ? 1 << (e + 149) : 0;
    for (int v = 0; v < 2; v++) {
        sn_vi least = (sn_vi){0} + 0x7fffffff;
        for (int k = 0; k < depth; k++) {
            const sn_vf product = SN_(all)(row[k]) * sn_load_vf(columns->value[k] + v * SN_V);
            least = SN_MIN(least, (sn_vi)(((sn_vu)product - 1) & 0x7fffffffu)); /* zeros come last */
        }
        const sn_vu marked = SN_SELECT32(least < bound - 1, (sn_vu){0} + 0x7fc00000u, sn_load_vf(sums + v * SN_V));
        memcpy(sums + v * SN_V, &marked, sizeof marked);
    }
}

#endif

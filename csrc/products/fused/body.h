/* The fused dot-product-add over binary32 carriers: included once per instruction set, by targets/dots.h.
 *
 * A step, for SN_V columns at once: p = a * b in binary32; M by the maximum of exponents in int16; each p times 2^(F -
 * M), converted to int32, which cuts it off toward zero; an int32 sum; one rounding; times 2^(M - F).
 *
 * Domain, checked by sn_fused_path:
 *   - p(a) + p(b) <= 24, exponents of operands as binary32's or narrower, products below 4 in significand;
 *   - group * 2^(F + 2) <= 2^31: the sum of so many products is an int32 (strictly below: a significand is below 2).
 *     With C and the other groups it may pass 2^31 if may_carry: such lanes are left to the definition;
 *   - accumulator and output are one format: binary32 rounded toward zero (after the cut to fewer bits, if any), or a
 *     float of at most 22 bits, with subnormals, rounded to nearest even.
 *   - the accumulator has a NaN, or nothing can come to one.
 * Domain, checked here, block by block; what lies outside goes to the definition, an element at a time:
 *   - operands, C and sums are finite; sums within the accumulator's range;
 *   - exponents of products that are not zero within [F - 124, high]. Then all that is aligned is a multiple of
 *     2^(M - F) >= 2^-124 once M is kept at F - 124 or above. That floor changes nothing: below it only C is not zero,
 * a multiple of 2^-124 that then has no bits to lose; so C must start as one (least_start). Hence products are exact in
 * binary32 (last bits above 2^-149), scales are normal numbers, and so are sums other than zero: multiplying by 2^(M -
 * F) is exact, or overflows, which the next step's M or the end shows.
 *   - nearest: the int32 becomes a binary32 rounded to odd, of 24 >= p + 2 bits, and only that is rounded to p bits
 *     (Boldo and Melquiond 2008), by the magic constant of products/gemm/body.h.
 * Zeros that count have at most the exponent of the accumulator's subnormals, and at most 0. So C, zero or not, has
 * that exponent or more, which the plan's floor of M says; the zeros that fill up a step have less; and beside an
 * operand below 2^128 they make M 127 at most, whose scales are normal numbers. A lane that left the domain holds a NaN
 * until the end.
 *
 * Operands with scales (plan->blocks), powers of two: what is packed is the element times its scale, and the exponent
 * of the element plus the scale's. Elements have last bits of 2^-26 or above and lie below 2^27, and scales within
 * 2^-SN_MOST_SHIFT and 2^SN_MOST_SHIFT (where elements are not zero, or zeros count), so that carriers are normal
 * numbers and packed exponents fit: all above holds of them, a counting zero's exponent being at most -126 + 2 *
 * SN_MOST_SHIFT + 26. */
#ifndef SOFTNUM_FUSED_BODY_H
#define SOFTNUM_FUSED_BODY_H

#include "lanes/isa.h"
#include "products/fused/fused.h"

typedef short sn_vh __attribute__((vector_size(SN_BYTES)));
typedef unsigned short sn_vuh __attribute__((vector_size(SN_BYTES)));

#ifndef SN_ADD16
/* a + b; -2^15 where that is lower. */
SN_INLINE sn_vh SN_(add16)(sn_vh a, sn_vh b) {
    sn_vh sum = (sn_vh)((sn_vuh)a + (sn_vuh)b), below = (a & b & ~sum) < 0;
    return (sum & ~below) | (below & (short)-32768);
}
#define SN_ADD16(a, b) SN_(add16)(a, b)
#endif

enum {
    SN_STRIP = 2 * SN_V,     /* columns at a time: a vector of int16 */
    SN_DEPTH = 128,          /* k at a time: what is packed stays in the first cache */
    SN_ROWS = SN_FUSED_ROWS, /* rows at a time */
    SN_BLOCK = 128,          /* rows that share packed columns */
    SN_MOST_SHIFT = 96,
    SN_NO_EXPONENT = -4096 /* of a zero: never the largest */
};

enum { SN_SUMS_TO_ZERO, SN_SUMS_TO_NEAREST, SN_SUMS_IN_STAGES };

typedef struct {
    float value[SN_DEPTH][SN_STRIP];
    sn_u32 exponent[SN_DEPTH][SN_V]; /* of columns i (low half) and SN_V + i, as SN_(packed_exponents) has them */
    sn_u32 bad[SN_STRIP];            /* all ones: an infinity or NaN in the column */
    sn_i32 least, most, any_bad;     /* exponents that occur; whether a column is bad */
} sn_fused_columns;

typedef struct {
    float value[SN_ROWS][SN_DEPTH];
    sn_u32 exponent[SN_ROWS][SN_DEPTH]; /* biased by 127, in both halves */
    sn_i32 bad[SN_ROWS], least[SN_ROWS], most[SN_ROWS];
} sn_fused_rows;

/* Exponents, not biased, of carriers; SN_NO_EXPONENT for zeros. */
SN_INLINE sn_vi SN_(exponents)(sn_vu bits, sn_i32 least_biased) {
    const sn_vi zero = {0};
    sn_vi e = (sn_vi)((bits << 1) >> 24);
    e = SN_MAX(e, zero + least_biased) - 127;
    return (sn_vi)SN_SELECT32((bits << 1) == 0, zero + SN_NO_EXPONENT, e);
}

/* Exponents as int16: 128 times the exponent, so that what is above the low half of a word is a binary32's exponent
 * field; for zeros the plan's. */
SN_INLINE sn_vu SN_(packed_exponents)(sn_vi e, sn_i32 bias, sn_vu of_zeros) {
    return SN_SELECT32(e == SN_NO_EXPONENT, of_zeros, (sn_vu)(e + bias) << 7) & 0xffffu;
}

/* Elements with scales 2^shift: what they count with, their carriers, and what zeros count with; all ones where that is
 * none of the domain. */
typedef struct {
    sn_vf value;
    sn_vi exponent;
    sn_vu of_zeros, bad;
} SN_(scaled);

SN_INLINE SN_(scaled) SN_(scale)(sn_vf value, sn_vi e, sn_vi shift, sn_u32 of_zeros) {
    SN_(scaled) s;
    const sn_vi zero = e == SN_NO_EXPONENT,
                inside = SN_MAX(SN_MIN(shift, (sn_vi){0} + SN_MOST_SHIFT), (sn_vi){0} - SN_MOST_SHIFT);
    const sn_vi counts = of_zeros == 0x8000u ? ~zero : ~(sn_vi){0};
    s.bad = (sn_vu)((e == 128) | (shift == SN_FUSED_NAN_SHIFT) | ((inside != shift) & counts));
    s.value = value * (sn_vf)((sn_vu)(inside + 127) << 23);
    s.exponent = (sn_vi)SN_SELECT32(zero | (e == 128), (sn_vu){0} + (sn_u32)SN_NO_EXPONENT, (sn_vu)(e + inside));
    s.of_zeros = (sn_vu){0} + of_zeros;
    if (of_zeros != 0x8000u) s.of_zeros += (sn_vu)inside << 7;
    return s;
}

SN_INLINE sn_i32 SN_(least)(sn_vi v) {
    sn_i32 r = v[0];
    for (int i = 1; i < SN_V; i++)
        r = v[i] < r ? v[i] : r;
    return r;
}

SN_INLINE sn_i32 SN_(most)(sn_vi v) {
    sn_i32 r = v[0];
    for (int i = 1; i < SN_V; i++)
        r = v[i] > r ? v[i] : r;
    return r;
}

/* where[j]: the k of position j; -1 past the end. */
SN_INLINE void SN_(pack_columns)(const sn_fused_plan *p, const sn_fused_values *g, int blocks, const ptrdiff_t *where,
                                 int depth, ptrdiff_t column, sn_fused_columns *pack) {
    const sn_vi zero = {0};
    const ptrdiff_t valid = g->n - column < SN_STRIP ? g->n - column : SN_STRIP;
    sn_vi least = zero + 4096, most = zero + SN_NO_EXPONENT;
    sn_vu bad[2] = {{0}, {0}};
    sn_i32 shift[SN_STRIP] = {0};
    ptrdiff_t block = -1;
    for (int j = 0; j < depth; j++) {
        float *row = pack->value[j];
        if (where[j] < 0 || valid < SN_STRIP) memset(row, 0, SN_STRIP * sizeof(float));
        if (where[j] >= 0) memcpy(row, g->b + where[j] * g->ldb + column, (size_t)valid * sizeof(float));
        if (blocks && where[j] >= 0 && where[j] / p->blocks->block != block) {
            block = where[j] / p->blocks->block;
            memcpy(shift, g->shift_b + block * g->lds_b + column, (size_t)valid * sizeof *shift);
        }
        sn_vu halves[2];
        for (int v = 0; v < 2; v++) {
            sn_vu bits = sn_load_words32((const sn_u32 *)(const void *)(row + v * SN_V)), of_zeros = {0};
            sn_vi e = SN_(exponents)(bits, p->least_b);
            of_zeros += p->zero_b;
            if (blocks && where[j] >= 0) {
                const sn_vi by = (sn_vi)sn_load_words32((const sn_u32 *)(const void *)(shift + v * SN_V));
                const SN_(scaled) s = SN_(scale)((sn_vf)bits, e, by, p->zero_b);
                memcpy(row + v * SN_V, &s.value, sizeof s.value);
                e = s.exponent;
                of_zeros = s.of_zeros;
                bad[v] |= s.bad;
            } else {
                bad[v] |= (sn_vu)(e == 128);
            }
            least = SN_MIN(least, (sn_vi)SN_SELECT32(e == SN_NO_EXPONENT, zero + 4096, e));
            most = SN_MAX(most, e);
            halves[v] = SN_(packed_exponents)(e, 0, of_zeros);
        }
        halves[0] |= halves[1] << 16;
        memcpy(pack->exponent[j], &halves[0], sizeof halves[0]);
    }
    memcpy(pack->bad, bad, sizeof bad);
    pack->least = SN_(least)(least);
    pack->most = SN_(most)(most);
    pack->any_bad = SN_(least)((sn_vi)(bad[0] | bad[1])) != 0;
}

SN_INLINE void SN_(pack_rows)(const sn_fused_plan *p, const sn_fused_values *g, int blocks, const ptrdiff_t *where,
                              int depth, ptrdiff_t row, ptrdiff_t rows, sn_fused_rows *pack) {
    const sn_vi zero = {0};
    for (int r = 0; r < SN_ROWS; r++) {
        float *to = pack->value[r];
        sn_i32 shift[SN_DEPTH] = {0};
        if (r >= rows) {
            memset(to, 0, sizeof pack->value[r]);
        } else if (!p->unit.order && where[depth - 1] >= 0) {
            memcpy(to, g->a + (row + r) * g->lda + where[0], (size_t)depth * sizeof(float));
        } else {
            for (int j = 0; j < depth; j++)
                to[j] = where[j] < 0 ? 0 : g->a[(row + r) * g->lda + where[j]];
        }
        for (int j = depth; j < SN_DEPTH; j++)
            to[j] = 0;
        for (int j = 0; blocks && r < rows && j < depth; j++)
            if (where[j] >= 0) shift[j] = g->shift_a[(row + r) * g->lds_a + where[j] / p->blocks->block];
        sn_vi least = zero + 4096, most = zero + SN_NO_EXPONENT;
        sn_vu bad = {0};
        for (int j = 0; j < SN_DEPTH; j += SN_V) {
            sn_vu bits = sn_load_words32((const sn_u32 *)(const void *)(to + j)), of_zeros = {0};
            sn_vi e = SN_(exponents)(bits, p->least_a);
            of_zeros += p->zero_a;
            if (blocks) {
                const sn_vi by = (sn_vi)sn_load_words32((const sn_u32 *)(const void *)(shift + j));
                const SN_(scaled) s = SN_(scale)((sn_vf)bits, e, by, p->zero_a);
                memcpy(to + j, &s.value, sizeof s.value);
                e = s.exponent;
                of_zeros = s.of_zeros;
                bad |= s.bad;
            } else {
                bad |= (sn_vu)(e == 128);
            }
            least = SN_MIN(least, (sn_vi)SN_SELECT32(e == SN_NO_EXPONENT, zero + 4096, e));
            most = SN_MAX(most, e);
            sn_vu biased = SN_(packed_exponents)(e, 127, of_zeros);
            biased |= biased << 16;
            memcpy(pack->exponent[r] + j, &biased, sizeof biased);
        }
        pack->least[r] = SN_(least)(least);
        pack->most[r] = SN_(most)(most);
        pack->bad[r] = SN_(least)((sn_vi)bad) != 0;
        if (pack->bad[r]) memset(to, 0, sizeof pack->value[r]); /* its results are the definition's */
    }
}

SN_INLINE sn_vf SN_(all)(float x) {
    sn_u32 bits;
    memcpy(&bits, &x, sizeof bits);
    return (sn_vf)((sn_vu){0} + bits);
}

SN_INLINE sn_vi SN_(to_int)(sn_vf x) { return __builtin_convertvector(x, sn_vi); }

#ifndef SN_TO_FLOAT
/* x in binary32, rounded toward zero: to nearest, and a step back where that went away from zero. */
SN_INLINE sn_vf SN_(to_float)(sn_vi x) {
#if !defined(__x86_64__)
    x = SN_MIN(x, (sn_vi){0} + 0x7fffff80); /* what is above becomes that, and on no way 2^31, which is no int32 */
#endif
    sn_vf f = __builtin_convertvector(x, sn_vf);
    sn_vi sign = x >> 31, beyond = (sn_vi)((sn_vu)SN_(to_int)(f) - (sn_vu)x); /* 2^31 becomes -2^31: right, modulo */
    return (sn_vf)((sn_vi)f + ((beyond ^ sign) > sign));
}
#define SN_TO_FLOAT(x) SN_(to_float)(x)
#endif

#ifndef SN_TO_FLOAT_ODD
/* x in binary32, rounded to odd. */
SN_INLINE sn_vf SN_(to_float_odd)(sn_vi x) {
    const sn_vf f = SN_TO_FLOAT(x);
    return (sn_vf)((sn_vu)f | ((sn_vu)(SN_(to_int)(f) != x) & 1u));
}
#define SN_TO_FLOAT_ODD(x) SN_(to_float_odd)(x)
#endif

/* One rounding of sums in units of 2^(M - F); scale = 2^(M - F). */
SN_INLINE sn_vf SN_(round_sum)(const sn_fused_plan *p, int nearest, int cut, sn_vi sum, sn_vf scale) {
    if (!nearest) {
        const sn_vf f = SN_TO_FLOAT(sum);
        return (cut ? (sn_vf)((sn_vu)f & p->keep) : f) * scale;
    }
    sn_vf x = SN_TO_FLOAT_ODD(sum) * scale;
    sn_vi e = (sn_vi)((sn_vu)x & 0x7f800000u);
    e = SN_MAX(e, (sn_vi){0} + (p->least_c << 23));
    sn_vf c = (sn_vf)((sn_vu)e + p->to_constant);
    return (x + c) - c; /* what rounds to zero is +0 */
}

/* The largest exponents, as packed, among products first, first + step, ... before end; at least `least`. */
SN_INLINE void SN_(largest)(const sn_fused_rows *rows, const sn_fused_columns *columns, int first, int end, int step,
                            short least, sn_vh largest[SN_ROWS]) {
    for (int r = 0; r < SN_ROWS; r++)
        largest[r] = (sn_vh){0} + least;
    for (int t = first; t < end; t += step) {
        sn_vh e;
        memcpy(&e, columns->exponent[t], sizeof e);
        for (int r = 0; r < SN_ROWS; r++)
            largest[r] = SN_MAX16(largest[r], SN_ADD16(e, (sn_vh)((sn_vu){0} + rows->exponent[r][t])));
    }
}

/* Those of one half of the columns, as exponent fields of binary32. */
SN_INLINE sn_vi SN_(exponent_field)(sn_vh largest, int half) {
    return (sn_vi)(half ? (sn_vu)largest & 0xffff0000u : (sn_vu)largest << 16);
}

/* The same products, times scale, cut off to integers and added to sum. */
SN_INLINE void SN_(add_aligned)(const sn_fused_rows *rows, const sn_fused_columns *columns, int first, int end,
                                int step, sn_vf scale[SN_ROWS][2], sn_vu sum[SN_ROWS][2]) {
    for (int t = first; t < end; t += step) {
        const sn_vf y0 = sn_load_vf(columns->value[t]), y1 = sn_load_vf(columns->value[t] + SN_V);
        for (int r = 0; r < SN_ROWS; r++) {
            const sn_vf x = SN_(all)(rows->value[r][t]);
            sum[r][0] += (sn_vu)SN_(to_int)(x * y0 * scale[r][0]);
            sum[r][1] += (sn_vu)SN_(to_int)(x * y1 * scale[r][1]);
        }
    }
}

/* The steps of a packed block for SN_ROWS rows; sums: what was summed before, and after. Of the kinds of units, bounded
 * are those whose sums cannot overflow. */
SN_INLINE void SN_(steps)(const sn_fused_plan *p, int nearest, int may_carry, int cut, int bounded, int depth,
                          const sn_fused_rows *rows, const sn_fused_columns *columns, float sums[SN_ROWS][SN_STRIP]) {
    const sn_vi zero = {0}, least_c = zero + (p->least_c << 23);
    const sn_u32 bits = (sn_u32)p->unit.fraction_bits << 23;
    const int terms = p->unit.terms, group = may_carry && p->may_carry ? p->group : terms;
    sn_i32 limit;
    memcpy(&limit, &p->limit, sizeof limit);
    sn_vf acc[SN_ROWS][2];
    sn_vi worst[SN_ROWS][2]; /* the largest M, as a binary32's exponent field; nearest: the largest magnitude */
    sn_vu carried[SN_ROWS][2];
    for (int r = 0; r < SN_ROWS; r++)
        for (int v = 0; v < 2; v++) {
            acc[r][v] = sn_load_vf(sums[r] + v * SN_V);
            worst[r][v] = (sn_vi)((sn_vu)acc[r][v] & 0x7fffffffu);
            carried[r][v] = (sn_vu){0};
        }
    for (int k = 0; k < depth; k += terms) {
        sn_vh largest[SN_ROWS];
        sn_vf scale[SN_ROWS][2];
        sn_vu total[SN_ROWS][2];
        SN_(largest)(rows, columns, k, k + terms, 1, (short)(p->floor << 7), largest);
        for (int r = 0; r < SN_ROWS; r++)
            for (int v = 0; v < 2; v++) {
                sn_vi m = SN_(exponent_field)(largest[r], v);
                sn_vi own = (sn_vi)((sn_vu)acc[r][v] & 0x7f800000u);
                if (nearest) own = SN_MAX(own, least_c) & (((sn_vi)acc[r][v] & 0x7fffffff) != 0);
                m = SN_MAX(m, own);
                if (!nearest && !bounded) worst[r][v] = SN_MAX(worst[r][v], m);
                scale[r][v] = (sn_vf)((254u << 23) + bits - (sn_vu)m);
                total[r][v] = (sn_vu)SN_(to_int)(acc[r][v] * scale[r][v]);
            }
        for (int first = k; first < k + terms; first += group) {
            const int end = may_carry && first + group < k + terms ? first + group : k + terms;
            sn_vu sum[SN_ROWS][2];
            for (int r = 0; r < SN_ROWS; r++)
                for (int v = 0; v < 2; v++)
                    sum[r][v] = may_carry ? (sn_vu){0} : total[r][v];
            SN_(add_aligned)(rows, columns, first, end, 1, scale, sum);
            for (int r = 0; r < SN_ROWS; r++)
                for (int v = 0; v < 2; v++) {
                    if (may_carry) {
                        const sn_vu before = total[r][v];
                        total[r][v] += sum[r][v];
                        carried[r][v] |= (total[r][v] ^ before) & (total[r][v] ^ sum[r][v]);
                    } else {
                        total[r][v] = sum[r][v];
                    }
                }
        }
        for (int r = 0; r < SN_ROWS; r++)
            for (int v = 0; v < 2; v++) {
                /* the exponent of 2^(M - F) from that of 2^(F - M) */
                const sn_vf back = (sn_vf)((254u << 23) - (sn_vu)scale[r][v]);
                acc[r][v] = SN_(round_sum)(p, nearest, cut, (sn_vi)total[r][v], back);
                if (nearest) worst[r][v] = SN_MAX(worst[r][v], (sn_vi)((sn_vu)acc[r][v] & 0x7fffffffu));
            }
    }
    for (int r = 0; r < SN_ROWS; r++)
        for (int v = 0; v < 2; v++) {
            sn_vi bad = (sn_vi)((sn_vu)acc[r][v] & 0x7fffffffu) > limit;
            bad |= worst[r][v] > (nearest || bounded ? limit : (254 << 23) - 1);
            if (may_carry) bad |= (sn_vi)carried[r][v] < 0;
            sn_vu marked = SN_SELECT32(bad, (sn_vu){0} + 0x7fc00000u, acc[r][v]);
            memcpy(sums[r] + v * SN_V, &marked, sizeof marked);
        }
}

#include "products/fused/stages.h"

SN_INLINE void SN_(mark)(const sn_fused_plan *p, const sn_fused_rows *rows, const sn_fused_columns *columns,
                         float sums[SN_ROWS][SN_STRIP]) {
    for (int r = 0; r < SN_ROWS; r++) {
        const int out = rows->bad[r] || rows->least[r] + columns->least < p->low ||
                        (rows->most[r] > SN_NO_EXPONENT && columns->most > SN_NO_EXPONENT &&
                         rows->most[r] + columns->most > p->high);
        if (!out && !columns->any_bad) continue;
        for (int i = 0; i < SN_STRIP; i++)
            if (out || columns->bad[i]) sums[r][i] = __builtin_nanf("");
    }
}

/* What the sums of a row start from, in the place of its results; a NaN where C lies outside the domain. */
SN_INLINE void SN_(start)(const sn_fused_plan *p, const sn_fused_values *g, ptrdiff_t row) {
    float *sums = g->out + row * g->ldo;
    for (ptrdiff_t i = 0; i < g->n; i++) {
        const float c = g->c && !p->unit.c_after ? g->c[row * g->ldc + i] : 0, size = __builtin_fabsf(c);
        sums[i] = !(size <= p->most_start) || (size < p->least_start && size != 0) ? __builtin_nanf("") : c;
    }
}

/* C added after, in the accumulator's format: exact in binary32, or rounded there as p(accumulator) <= 11 allows. */
SN_INLINE float SN_(with_c)(const sn_fused_plan *p, float sum, float c) {
    float x = sum + c;
    if (!p->nearest) return x;
    sn_u32 bits, e;
    memcpy(&bits, &x, sizeof bits);
    e = bits & 0x7f800000u;
    if (e < (sn_u32)p->least_c << 23) e = (sn_u32)p->least_c << 23;
    e += p->to_constant;
    float constant;
    memcpy(&constant, &e, sizeof constant);
    return (x + constant) - constant; /* a step's result is not -0, and the sum of two numbers does not round to 0 */
}

/* Whether there is a NaN among n numbers. */
SN_INLINE int SN_(has_nan)(const float *x, ptrdiff_t n) {
    sn_vi found = {0};
    ptrdiff_t i = 0;
    for (; i + SN_V <= n; i += SN_V) {
        const sn_vf v = sn_load_vf(x + i);
        found |= v != v;
    }
    sn_i32 any = 0;
    for (int j = 0; j < SN_V; j++)
        any |= found[j];
    for (; i < n; i++)
        any |= x[i] != x[i];
    return any != 0;
}

/* The results of a row from its sums, in their place. */
SN_INLINE void SN_(finish)(const sn_fused_plan *p, const sn_fused_values *g, ptrdiff_t row) {
    float *out = g->out + row * g->ldo;
    if (!p->unit.c_after && !SN_(has_nan)(out, g->n)) return;
    for (ptrdiff_t i = 0; i < g->n; i++) {
        float x = out[i];
        if (p->unit.c_after && g->k == 0) x = __builtin_nanf(""); /* C itself, -0 too */
        if (p->unit.c_after && x == x) {
            x = SN_(with_c)(p, x, g->c ? g->c[row * g->ldc + i] : 0);
            if (!(__builtin_fabsf(x) <= p->limit)) x = __builtin_nanf("");
        }
        out[i] = x == x ? x : sn_fused_value(p, g, row, i);
    }
}

/* The steps of a packed block for some rows and a strip of columns, on the sums in their place. kind: an SN_SUMS_...;
 * in two stages may_carry says that there are two streams, and cut that C has a reach. */
SN_INLINE void SN_(rows_of_strip)(const sn_fused_plan *p, const sn_fused_values *g, int kind, int may_carry, int cut,
                                  int bounded, int depth, const sn_fused_rows *rows, const sn_fused_columns *columns,
                                  ptrdiff_t row, ptrdiff_t count, ptrdiff_t column) {
    const ptrdiff_t valid = g->n - column < SN_STRIP ? g->n - column : SN_STRIP;
    float sums[SN_ROWS][SN_STRIP] __attribute__((aligned(64))) = {{0}};
    float *out = g->out + row * g->ldo + column;
    for (ptrdiff_t r = 0; r < count; r++)
        memcpy(sums[r], out + r * g->ldo, (size_t)valid * sizeof(float));
    if (kind == SN_SUMS_IN_STAGES)
        SN_(stage_steps)(p, may_carry ? 2 : 1, cut, depth, rows, columns, sums);
    else
        SN_(steps)(p, kind == SN_SUMS_TO_NEAREST, may_carry, cut, bounded, depth, rows, columns, sums);
    SN_(mark)(p, rows, columns, sums);
    for (ptrdiff_t r = 0; r < count; r++)
        memcpy(out + r * g->ldo, sums[r], (size_t)valid * sizeof(float));
}

SN_INLINE void SN_(strips)(const sn_fused_plan *p, const sn_fused_values *g, int kind, int may_carry, int cut,
                           int bounded, int blocks) {
    const ptrdiff_t step = SN_DEPTH / p->unit.period * p->unit.period;
    const ptrdiff_t length = (g->k + p->unit.period - 1) / p->unit.period * p->unit.period;
    sn_fused_columns columns __attribute__((aligned(64)));
    sn_fused_rows rows[SN_BLOCK / SN_ROWS] __attribute__((aligned(64)));
    ptrdiff_t where[SN_DEPTH];
    for (ptrdiff_t block = g->m0; block < g->m1; block += SN_BLOCK) {
        const ptrdiff_t height = g->m1 - block < SN_BLOCK ? g->m1 - block : SN_BLOCK;
        for (ptrdiff_t r = 0; r < height; r++)
            SN_(start)(p, g, block + r);
        for (ptrdiff_t k = 0; k < length; k += step) {
            const int depth = (int)(length - k < step ? length - k : step);
            for (int j = 0; j < depth; j++) {
                where[j] = sn_fused_k(&p->unit, k + j);
                if (where[j] >= g->k) where[j] = -1;
            }
            for (ptrdiff_t r = 0; r < height; r += SN_ROWS)
                SN_(pack_rows)(p, g, blocks, where, depth, block + r, height - r, &rows[r / SN_ROWS]);
            for (ptrdiff_t column = 0; column < g->n; column += SN_STRIP) {
                SN_(pack_columns)(p, g, blocks, where, depth, column, &columns);
                for (ptrdiff_t r = 0; r < height; r += SN_ROWS)
                    SN_(rows_of_strip)(p, g, kind, may_carry, cut, bounded, depth, &rows[r / SN_ROWS], &columns,
                                       block + r, height - r < SN_ROWS ? height - r : SN_ROWS, column);
            }
        }
        for (ptrdiff_t r = 0; r < height; r++)
            SN_(finish)(p, g, block + r);
    }
}

static void SN_(fused_kernel)(const sn_fused_plan *p, const sn_fused_values *g) {
    const int cut = p->keep != 0xffffffffu, stages = SN_SUMS_IN_STAGES;
    if (p->two_stage)
        p->stages.interleave == 2 ? SN_(strips)(p, g, stages, 1, 1, 0, 0) : SN_(strips)(p, g, stages, 0, 1, 0, 0);
    else if (p->blocks)
        cut ? SN_(strips)(p, g, 0, 1, 1, 0, 1) : SN_(strips)(p, g, 0, 1, 0, 0, 1);
    else if (p->nearest)
        p->may_carry ? SN_(strips)(p, g, 1, 1, 0, 0, 0) : SN_(strips)(p, g, 1, 0, 0, 0, 0);
    else if (p->bounded && !p->may_carry)
        cut ? SN_(strips)(p, g, 0, 0, 1, 1, 0) : SN_(strips)(p, g, 0, 0, 0, 1, 0);
    else if (p->bounded && !cut)
        SN_(strips)(p, g, 0, 1, 0, 1, 0);
    else if (!p->may_carry && !cut)
        SN_(strips)(p, g, 0, 0, 0, 0, 0);
    else
        SN_(strips)(p, g, 0, 1, 1, 0, 0); /* any */
}

#endif

/* The fused dot-product-add in binary32, a block of outputs to a thread: what GPU kernels run for units in the domain
 * of csrc/products/fused/body.h, whose proof this is. The CPU's text goes by vectors and looks at the ranges of
 * operands; here each output watches its own steps.
 *
 * A step: M by the maximum of the products' exponents and C's; each product a * b, exact in binary32, times 2^(F - M),
 * converted to an integer, which cuts it off toward zero; a sum of integers; one rounding; times 2^(M - F).
 *
 * Domain of the unit, checked by sn_fused_path: p(a) + p(b) <= 24, F <= 29, one format for
 * accumulator and output, which is binary32 rounded toward zero (after a cut to fewer bits, if any) or a float of at
 * most 22 bits with subnormals, rounded to nearest even. Sums of `group` products are below 2^31; with `wide` the sums
 * of all and of C are 64-bit integers.
 *
 * What leaves the domain is a NaN from then on, and computed by the definition in the end:
 *   - C must be 0 or within [least_start, most_start];
 *   - M must be `most` at most, so that no scale leaves binary32's normal numbers and, toward zero, no sum overflows
 *     unseen. Infinities and NaN have an exponent far above it, also beside a zero, and so has a NaN that C has become;
 *   - M must be `low` = F - 124 at least in a step with products that are not zero. Then what is added are multiples of
 *     2^(M - F) >= 2^-124. A product below binary32's last place, 2^-149, is rounded to one below 2^-124 all the same,
 *     and cut to 0 as it should be. In a step whose products are all zeros M is kept at F - 124 as well: C is a
 * multiple of 2^-124 then, and loses nothing by that;
 *   - sums must stay within the accumulator's range.
 * Nearest even: the integer becomes a binary32 rounded to odd, of 24 >= p + 2 bits, and only that is rounded to p bits
 * (Boldo and Melquiond 2008), by adding and subtracting 1.5 * 2^(E + 23 - m). */
#ifndef SOFTNUM_FUSED_STEPS_H
#define SOFTNUM_FUSED_STEPS_H

#include "softnum/word/machine.h"
#include "softnum/word/vectors.h"

/* Exponents of a zero that takes no part in M, and of an infinity or NaN: far below and above all others, in sums of
 * two of them too. */
enum { SN_FUSED32_ZERO = -(1 << 24), SN_FUSED32_SPECIAL = 1 << 26 };

/* The bias of products' exponents and of M, above 2 * 126, so that those of numbers are not negative: half of it, and a
 * bit more, in a's exponents, the rest in b's. */
enum { SN_FUSED32_BIAS = 383, SN_FUSED32_BIAS_A = 192, SN_FUSED32_BIAS_B = SN_FUSED32_BIAS - SN_FUSED32_BIAS_A };

/* Facts of a unit; floor, low and most are biased by SN_FUSED32_BIAS, least_c as binary32's. */
typedef struct {
    sn_i32 terms, fraction_bits;
    sn_i32 floor;   /* of M: at least F - 124 */
    sn_i32 low;     /* F - 124 */
    sn_i32 most;    /* of M */
    sn_i32 least_c; /* the exponent of the accumulator's subnormals */
    sn_i32 nearest, wide, group;
    sn_i32 watch_low;   /* whether products can take M below `low` */
    sn_u32 keep;        /* toward zero: the bits of a binary32 that are kept */
    sn_u32 to_constant; /* nearest: what makes 1.5 * 2^(E + 23 - m) of E, added to its field */
    float limit;        /* the accumulator's largest value */
    float least_start, most_start;
} sn_fused32;

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
SN_FN float sn_of_integer64_toward_zero(sn_i64 x) { return __ll2float_rz(x); }
#else
SN_FN float sn_of_integer64_toward_zero(sn_i64 x) {
    sn_u64 magnitude = x < 0 ? 0 - (sn_u64)x : (sn_u64)x;
    const sn_i32 drop = sn_bit_length(magnitude) - 24;
    if (drop > 0) magnitude = magnitude >> drop << drop;
    return x < 0 ? -(float)magnitude : (float)magnitude;
}
#endif

/* The exponent of a carrier, plus bias; least: that of its format's subnormals, biased by 127; zero: what a zero has.
 */
SN_FN sn_i32 sn_fused32_exponent(float x, sn_i32 least, sn_i32 zero, sn_i32 bias) {
    const sn_u32 magnitude = sn_bits32(x) & 0x7fffffffu;
    const sn_i32 e = (sn_i32)(magnitude >> 23);
    if (magnitude == 0) return zero;
    if (e == 255) return SN_FUSED32_SPECIAL;
    return (e > least ? e : least) - 127 + bias;
}

/* Where a sum starts: C, or a NaN. */
SN_FN float sn_fused32_start(const sn_fused32 *p, float c) {
    const float size = sn_float32(sn_bits32(c) & 0x7fffffffu);
    return size <= p->most_start && (size >= p->least_start || size == 0) ? c : sn_float32(0x7fc00000u);
}

/* Whether a sum is in the domain. */
SN_FN sn_i32 sn_fused32_stayed(const sn_fused32 *p, float sum) {
    return (sn_bits32(sum) & 0x7fffffffu) <= sn_bits32(p->limit);
}

/* x rounded to nearest even, to +0 where to zero; in its range, or larger than that. */
SN_FN float sn_fused32_nearest(const sn_fused32 *p, float x) {
    const sn_u32 field = sn_bits32(x) & 0x7f800000u;
    const float c = sn_float32(sn_maximum_u32(field, (sn_u32)p->least_c << 23) + p->to_constant);
    return sn_subtract32(sn_add32(x, c), c);
}

/* sum / scale rounded; scale: 2^(F - M). */
SN_FN float sn_fused32_round(const sn_fused32 *p, sn_i64 sum, float scale) {
    const float back = sn_float32((254u << 23) - sn_bits32(scale));
    const float f = p->wide ? sn_of_integer64_toward_zero(sum) : sn_of_integer32_toward_zero((sn_i32)sum);
    if (!p->nearest) return sn_multiply32(sn_float32(sn_bits32(f) & p->keep), back);
    const sn_i32 same = p->wide ? (sn_i64)f == sum : sn_truncate32(f) == (sn_i32)sum;
    return sn_fused32_nearest(p, sn_multiply32(sn_float32(sn_bits32(f) | (same ? 0u : 1u)), back));
}

/* Whole steps, `depth` products long, of a block of sums. Elements of a and b: their values and exponents (b's biased
 * by 0, a's by 127), k by k, `stride` apart; those of the block's rows and columns are next to each other, from a
 * multiple of 16 bytes on. */
SN_FN void sn_fused32_steps(const sn_fused32 *p, const float *a, const sn_i32 *exponent_a, const float *b,
                            const sn_i32 *exponent_b, sn_i32 stride, sn_i32 depth, float *sums) {
    for (sn_i32 k = 0; k < depth; k += p->terms) {
        sn_i32 m[SN_BLOCK];
        sn_i64 total[SN_BLOCK];
        float scale[SN_BLOCK]; /* 2^(F - M); 0: what leaves the domain */
        SN_UNROLL
        for (sn_i32 i = 0; i < SN_BLOCK; i++)
            m[i] = 2 * SN_FUSED32_ZERO;
        SN_UNROLL_2
        for (sn_i32 t = k; t < k + p->terms; t++) {
            const sn_four_integers x = sn_four_integers_at(exponent_a + t * stride);
            const sn_four_integers y = sn_four_integers_at(exponent_b + t * stride);
            const sn_i32 of_row[SN_SIDE] = {x.x, x.y, x.z, x.w};
            const sn_i32 of_column[SN_SIDE] = {y.x, y.y, y.z, y.w};
            SN_UNROLL
            for (sn_i32 i = 0; i < SN_BLOCK; i++)
                m[i] = sn_maximum32(m[i], of_row[i / SN_SIDE] + of_column[i % SN_SIDE]);
        }
        SN_UNROLL
        for (sn_i32 i = 0; i < SN_BLOCK; i++) {
            const sn_u32 magnitude = sn_bits32(sums[i]) & 0x7fffffffu;
            sn_i32 own = (sn_i32)(magnitude >> 23) + SN_FUSED32_BIAS - 127;
            if (p->nearest) own = magnitude ? sn_maximum32(own, p->least_c + SN_FUSED32_BIAS - 127) : 0;
            /* as unsigned, what a step without products has for M is larger than all */
            const sn_i32 low = p->watch_low && sn_maximum_u32((sn_u32)m[i], (sn_u32)own) < (sn_u32)p->low;
            m[i] = sn_maximum32(m[i], sn_maximum32(own, p->floor));
            const sn_u32 field = (sn_u32)(127 + SN_FUSED32_BIAS + p->fraction_bits - m[i]) << 23;
            scale[i] = sn_float32(low || m[i] > p->most ? 0 : field);
            total[i] = 0;
        }
        for (sn_i32 first = k; first < k + p->terms; first += p->group) {
            const sn_i32 end = first + p->group < k + p->terms ? first + p->group : k + p->terms;
            sn_u32 sum[SN_BLOCK];
            SN_UNROLL
            for (sn_i32 i = 0; i < SN_BLOCK; i++)
                sum[i] = 0;
            SN_UNROLL_2
            for (sn_i32 t = first; t < end; t++) {
                const sn_four_floats x = sn_four_floats_at(a + t * stride), y = sn_four_floats_at(b + t * stride);
                const float row[SN_SIDE] = {x.x, x.y, x.z, x.w};
                const float column[SN_SIDE] = {y.x, y.y, y.z, y.w};
                SN_UNROLL
                for (sn_i32 i = 0; i < SN_BLOCK; i++) {
                    const float product = sn_multiply32(row[i / SN_SIDE], column[i % SN_SIDE]);
                    sum[i] += (sn_u32)sn_truncate32(sn_multiply32(product, scale[i]));
                }
            }
            SN_UNROLL
            for (sn_i32 i = 0; i < SN_BLOCK; i++)
                total[i] += (sn_i32)sum[i];
        }
        SN_UNROLL
        for (sn_i32 i = 0; i < SN_BLOCK; i++) {
            const sn_i64 all = total[i] + sn_truncate32(sn_multiply32(sums[i], scale[i]));
            const float sum = sn_fused32_round(p, all, scale[i]);
            const sn_i32 stayed = sn_bits32(scale[i]) && (!p->nearest || sn_fused32_stayed(p, sum));
            sums[i] = stayed ? sum : sn_float32(0x7fc00000u);
        }
    }
}

/* C added after, in the accumulator's format: exact in binary32, or rounded there as p <= 11 allows. */
SN_FN float sn_fused32_with_c(const sn_fused32 *p, float sum, float c) {
    const float x = sn_add32(sum, c);
    return p->nearest ? sn_fused32_nearest(p, x) : x;
}

#endif

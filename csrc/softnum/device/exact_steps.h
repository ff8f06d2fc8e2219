/* Sums of products that nothing is lost of, in integers of 64 bits, a block of outputs to a thread: what GPU kernels
 * run for ExactDotUnits of operands with a narrow range.
 *
 * An operand is an integer times 2^last, last being the exponent of its format's last place. It is cut into one or two
 * pieces: low is what lies below 2^width, high the rest over 2^width, each with the operand's sign. A sum of products
 * of pieces is an integer: that of low times low, of the mixed ones together, of high times high.
 *
 * Domain, checked by the caller: pieces are 2^30 at most in magnitude, and K times twice the largest product of two
 * pieces is 2^62 at most. So no sum leaves 64 bits; what they come to is added up and rounded by the definition
 * (kulisch.h). Infinities and NaN have no pieces; rows and columns that hold one are the definition's. */
#ifndef SOFTNUM_EXACT_STEPS_H
#define SOFTNUM_EXACT_STEPS_H

#include "softnum/rounding/format.h"
#include "softnum/word/vectors.h"

/* The integer that a code of the format stands for, in units of 2^last, without its sign; 0 for what is no number. */
SN_FN sn_u64 sn_exact64_magnitude(const sn_format *f, sn_u64 code, sn_i32 last) {
    const sn_number x = sn_unpack(f, code);
    return x.kind == SN_FINITE ? x.sig << (x.exp - last) : 0;
}

SN_FN sn_i32 sn_exact64_special(const sn_format *f, sn_u64 code) { return sn_unpack(f, code).kind >= SN_INF; }

/* Its pieces; width 0: there is but one, the low. */
SN_FN sn_i32 sn_exact64_low(const sn_format *f, sn_u64 code, sn_i32 last, sn_i32 width) {
    const sn_u64 magnitude = sn_exact64_magnitude(f, code, last);
    const sn_i32 low = (sn_i32)(width ? magnitude & (((sn_u64)1 << width) - 1) : magnitude);
    return sn_unpack(f, code).sign ? -low : low;
}

SN_FN sn_i32 sn_exact64_high(const sn_format *f, sn_u64 code, sn_i32 last, sn_i32 width) {
    const sn_i32 high = (sn_i32)(sn_exact64_magnitude(f, code, last) >> width);
    return sn_unpack(f, code).sign ? -high : high;
}

/* A block's products of `depth` elements of one piece each: sums[i] += a * b. Elements k by k, `stride` apart; those of
 * the block's rows and columns are next to each other, from a multiple of 16 bytes on. */
SN_FN void sn_exact64_add(const sn_i32 *a, const sn_i32 *b, sn_i32 stride, sn_i32 depth, sn_i64 *sums) {
    SN_UNROLL_2
    for (sn_i32 k = 0; k < depth; k++) {
        const sn_four_integers x = sn_four_integers_at(a + k * stride), y = sn_four_integers_at(b + k * stride);
        const sn_i32 row[SN_SIDE] = {x.x, x.y, x.z, x.w}, column[SN_SIDE] = {y.x, y.y, y.z, y.w};
        SN_UNROLL
        for (sn_i32 i = 0; i < SN_BLOCK; i++)
            sums[i] += (sn_i64)row[i / SN_SIDE] * column[i % SN_SIDE];
    }
}

/* The same of elements of two pieces: of a (both), of b, or of both. */
SN_FN void sn_exact64_add_pieces(const sn_i32 *a, const sn_i32 *high_a, const sn_i32 *b, const sn_i32 *high_b,
                                 sn_i32 two_a, sn_i32 two_b, sn_i32 stride, sn_i32 depth, sn_i64 *low, sn_i64 *mixed,
                                 sn_i64 *high) {
    for (sn_i32 k = 0; k < depth; k++) {
        const sn_four_integers x = sn_four_integers_at(a + k * stride), y = sn_four_integers_at(b + k * stride);
        const sn_four_integers p = sn_four_integers_at((two_a ? high_a : a) + k * stride);
        const sn_four_integers q = sn_four_integers_at((two_b ? high_b : b) + k * stride);
        const sn_i32 row[SN_SIDE] = {x.x, x.y, x.z, x.w}, column[SN_SIDE] = {y.x, y.y, y.z, y.w};
        const sn_i32 top_row[SN_SIDE] = {p.x, p.y, p.z, p.w}, top_column[SN_SIDE] = {q.x, q.y, q.z, q.w};
        SN_UNROLL
        for (sn_i32 i = 0; i < SN_BLOCK; i++) {
            const sn_i32 r = i / SN_SIDE, c = i % SN_SIDE;
            low[i] += (sn_i64)row[r] * column[c];
            if (two_a) mixed[i] += (sn_i64)top_row[r] * column[c];
            if (two_b) mixed[i] += (sn_i64)row[r] * top_column[c];
            if (two_a && two_b) high[i] += (sn_i64)top_row[r] * top_column[c];
        }
    }
}

#endif

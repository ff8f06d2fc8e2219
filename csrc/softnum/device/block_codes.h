/* Rounding to block formats: the scale of a block from its largest magnitude, elements from quotients by the scale, and
 * values from products with it. GPU kernels use it; softnum/block_codes.py does the same on arrays of the host.
 *
 * A factor is what a block's elements are multiplied with, its scale times that of the array: binary64, positive. */
#ifndef SOFTNUM_BLOCK_CODES_H
#define SOFTNUM_BLOCK_CODES_H

#include "softnum/word/machine.h"

/* 2^e in binary64, -1074 <= e <= 1023. */
SN_FN sn_u64 sn_power64(sn_i32 e) { return e < -1022 ? (sn_u64)1 << (e + 1074) : (sn_u64)(e + 1023) << 52; }

/* 2^e in binary32, -127 <= e <= 127. */
SN_FN sn_u32 sn_power32(sn_i32 e) { return e < -126 ? 0x00400000u : (sn_u32)(e + 127) << 23; }

/* The exponent of a block's scale that is a power of two, in low .. high: floor(log2 x) less that of the largest
 * element, and one more where the fraction of x, in units of 2^-52, reaches `up`. x: of binary64, positive, finite; of
 * binary32's range if `narrow`, so that it is no subnormal number. */
SN_FN sn_i32 sn_scale_exponent(sn_u64 x, sn_i32 narrow, sn_u64 up, sn_i32 largest, sn_i32 low, sn_i32 high) {
    const sn_u64 one = (sn_u64)1 << 52;
    sn_i32 e = (sn_i32)(x >> 52) - 1023;
    sn_u64 fraction = x & (one - 1);
    if (!narrow && e == -1023) {
        const sn_i32 shift = 53 - sn_bit_length(fraction);
        e = -1022 - shift;
        fraction = fraction << shift & (one - 1);
    }
    e += (fraction >= up) - largest;
    return e < low ? low : e > high ? high : e;
}

/* ---- elements ------------------------------------------------------------------------------------------------------
 *
 * A pattern that rounds to the element as the exact x / factor does, in every mode; x is finite.
 *
 * By a power of two, 2^-127 <= factor <= 2^127: the machine's product with the inverse is the quotient, or lies below
 * the normal numbers. There all magnitudes but 0 round alike, if elements are multiples of 2^-92 (of binary32; 2^-900
 * of binary64): they lie below a step's part in 2^34, so that no random bits, 32 at most, nor a tie see them. Set to
 * odd they stay different from 0. No quotient overflows: scales of the format reach 1, or follow x. */
SN_FN sn_u32 sn_over_power32(sn_u32 x, sn_u64 factor) {
    const sn_u32 inverse = sn_power32(1023 - (sn_i32)(factor >> 52));
    const sn_u32 q = sn_bits32(sn_multiply32(sn_float32(x), sn_float32(inverse)));
    return (q & 0x7f800000u) == 0 && (x & 0x7fffffffu) != 0 ? q | 1u : q;
}

SN_FN sn_u64 sn_over_power64(sn_u64 x, sn_u64 factor) {
    const sn_u64 inverse = 0x7fe0000000000000u - factor;
    const sn_u64 q = sn_bits64(sn_multiply64(sn_float64(x), sn_float64(inverse)));
    return (q & 0x7ff0000000000000u) == 0 && (x & 0x7fffffffffffffffu) != 0 ? q | 1u : q;
}

/* By a factor of at most 28 bits, from 2^-300 on, for elements that are multiples of 2^-640, below 2^901, and modes
 * that look at 52 bits of them at most: the quotient rounded to odd in binary64. Of the machine's quotient q = h + i +
 * j, cut after 25 and 39 bits, the products with the factor are exact, and so are the differences: x - h * factor has
 * at most 31 bits, for it is i + j and half a last place of q, times the factor, in units of 2^-53 of x or larger; less
 * i * factor it has at most 30. Below 2^-650 all magnitudes but 0 round alike; above it the last bit of a product is
 * 2^-1030 or more. */
SN_FN sn_u64 sn_quotient_odd(sn_u64 x, sn_u64 factor) {
    const sn_u64 u = x & 0x7fffffffffffffffu, sign = x ^ u;
    const double y = sn_float64(factor), quotient = sn_divide64(sn_float64(u), y);
    const sn_u64 q = sn_bits64(quotient);
    if (q >= 0x7ff0000000000000u) return sign | 0x7fefffffffffffffu;
    if (q < (sn_u64)(1023 - 650) << 52) return sign | q | (u != 0);
    const double h = sn_float64(q & ~(sn_u64)0xfffffff), cut = sn_float64(q & ~(sn_u64)0x3fff);
    const double i = sn_subtract64(cut, h), j = sn_subtract64(quotient, cut);
    const double first = sn_subtract64(sn_float64(u), sn_multiply64(h, y));
    const double rest = sn_subtract64(first, sn_multiply64(i, y)), last = sn_multiply64(j, y);
    if (last < rest) return sign | q | 1u;
    return sign | (last > rest && !(q & 1u) ? q - 1 : q);
}

/* ---- values: *status gets a bit where the carrier lacks the product -------------------------------------------------
 */

/* v * 2^e, for factors as in sn_over_power32, or NaN. What is inexact is subnormal, or infinite: dividing gives another
 * number back. */
SN_FN sn_u32 sn_times_power32(sn_u32 v, sn_u64 factor, sn_u32 bit, sn_u32 *status) {
    const sn_i32 e = (sn_i32)(factor >> 52) - 1023;
    if ((v & 0x7fffffffu) > 0x7f800000u || (factor & 0x7fffffffffffffffu) > 0x7ff0000000000000u) return 0x7fc00000u;
    const float product = sn_multiply32(sn_float32(v), sn_float32(sn_power32(e)));
    if (sn_bits32(sn_multiply32(product, sn_float32(sn_power32(-e)))) != v) *status |= bit;
    return sn_bits32(product);
}

/* v * factor, which is exact, and may be NaN. */
SN_FN sn_u64 sn_times64(sn_u64 v, sn_u64 factor) {
    const sn_u64 product = sn_bits64(sn_multiply64(sn_float64(v), sn_float64(factor)));
    return (product & 0x7fffffffffffffffu) > 0x7ff0000000000000u ? 0x7ff8000000000000u : product;
}

/* x in binary32. */
SN_FN sn_u32 sn_narrowed(sn_u64 x, sn_u32 bit, sn_u32 *status) {
    if ((x & 0x7fffffffffffffffu) > 0x7ff0000000000000u) return 0x7fc00000u;
    const float narrow = sn_narrow(sn_float64(x));
    if (sn_bits64(sn_widen(narrow)) != x) *status |= bit;
    return sn_bits32(narrow);
}

#endif

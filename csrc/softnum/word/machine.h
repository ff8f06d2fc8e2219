/* The machine's binary32 and binary64, as GPU kernels use them: every operation names its rounding, so that no compiler
 * contracts a multiplication and an addition into one rounding. On a GPU they are intrinsics; elsewhere, where this
 * text runs in Numba's simulator, C, compiled with -ffp-contract=off in the default environment (nearest even,
 * subnormals kept).
 *
 * No function here rounds to a format of softnum's: what includes this header does, and states its domain. */
#ifndef SOFTNUM_MACHINE_H
#define SOFTNUM_MACHINE_H

#include "softnum/word/base.h"

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)

SN_FN sn_u32 sn_bits32(float x) { return __float_as_uint(x); }
SN_FN float sn_float32(sn_u32 bits) { return __uint_as_float(bits); }
SN_FN sn_u64 sn_bits64(double x) { return (sn_u64)__double_as_longlong(x); }
SN_FN double sn_float64(sn_u64 bits) { return __longlong_as_double((sn_i64)bits); }

SN_FN float sn_add32(float x, float y) { return __fadd_rn(x, y); }
SN_FN float sn_subtract32(float x, float y) { return __fsub_rn(x, y); }
SN_FN float sn_multiply32(float x, float y) { return __fmul_rn(x, y); }
/* x * y + z where x * y is exact: one instruction or two, the same bits. */
SN_FN float sn_multiply_add32(float x, float y, float z) { return __fmaf_rn(x, y, z); }
/* x * y + z, rounded once. */
SN_FN float sn_fma32(float x, float y, float z) { return __fmaf_rn(x, y, z); }
SN_FN double sn_add64(double x, double y) { return __dadd_rn(x, y); }
SN_FN double sn_subtract64(double x, double y) { return __dsub_rn(x, y); }
SN_FN double sn_multiply64(double x, double y) { return __dmul_rn(x, y); }
SN_FN double sn_multiply_add64(double x, double y, double z) { return __fma_rn(x, y, z); }
SN_FN float sn_magnitude32(float x) { return fabsf(x); } /* a part of the next instruction */
SN_FN double sn_magnitude64(double x) { return fabs(x); }
/* x + y rounded down, up and toward zero, where no sum of numbers overflows and, down, none is 0. */
SN_FN float sn_add_down32(float x, float y) { return __fadd_rd(x, y); }
SN_FN float sn_add_up32(float x, float y) { return __fadd_ru(x, y); }
SN_FN float sn_add_zero32(float x, float y) { return __fadd_rz(x, y); }
SN_FN double sn_add_down64(double x, double y) { return __dadd_rd(x, y); }
SN_FN double sn_add_up64(double x, double y) { return __dadd_ru(x, y); }
SN_FN double sn_add_zero64(double x, double y) { return __dadd_rz(x, y); }
SN_FN double sn_divide64(double x, double y) { return __ddiv_rn(x, y); }
SN_FN double sn_root64(double x) { return __dsqrt_rn(x); }
SN_FN double sn_widen(float x) { return (double)x; }
SN_FN float sn_narrow(double x) { return __double2float_rn(x); }
/* Toward zero; |x| < 2^31. */
SN_FN sn_i32 sn_truncate32(float x) { return __float2int_rz(x); }
SN_FN float sn_of_integer32(sn_i32 x) { return __int2float_rn(x); }
SN_FN float sn_of_integer32_toward_zero(sn_i32 x) { return __int2float_rz(x); }

#else

typedef union {
    float f;
    sn_u32 u;
} sn_pun32;

typedef union {
    double f;
    sn_u64 u;
} sn_pun64;

SN_FN sn_u32 sn_bits32(float x) {
    sn_pun32 p;
    p.f = x;
    return p.u;
}

SN_FN float sn_float32(sn_u32 bits) {
    sn_pun32 p;
    p.u = bits;
    return p.f;
}

SN_FN sn_u64 sn_bits64(double x) {
    sn_pun64 p;
    p.f = x;
    return p.u;
}

SN_FN double sn_float64(sn_u64 bits) {
    sn_pun64 p;
    p.u = bits;
    return p.f;
}

SN_FN float sn_add32(float x, float y) { return x + y; }
SN_FN float sn_subtract32(float x, float y) { return x - y; }
SN_FN float sn_multiply32(float x, float y) { return x * y; }
SN_FN float sn_multiply_add32(float x, float y, float z) { return x * y + z; }
SN_FN double sn_add64(double x, double y) { return x + y; }
SN_FN double sn_subtract64(double x, double y) { return x - y; }
SN_FN double sn_multiply64(double x, double y) { return x * y; }
SN_FN double sn_multiply_add64(double x, double y, double z) { return x * y + z; }
SN_FN float sn_magnitude32(float x) { return sn_float32(sn_bits32(x) & 0x7fffffffu); }
SN_FN double sn_magnitude64(double x) { return sn_float64(sn_bits64(x) & 0x7fffffffffffffffu); }
SN_FN double sn_divide64(double x, double y) { return x / y; }
SN_FN double sn_widen(float x) { return (double)x; }
SN_FN float sn_narrow(double x) { return (float)x; }
SN_FN sn_i32 sn_truncate32(float x) { return (sn_i32)x; }
SN_FN float sn_of_integer32(sn_i32 x) { return (float)x; }

/* What is added to the bits of a sum s, rounded to nearest, to round it down, up or toward zero: the error, TwoSum's,
 * says on which side of s the exact sum lies. */
SN_FN sn_i32 sn_step_of32(float x, float y, float s, sn_i32 down, sn_i32 up) {
    const float t = s - x, error = (x - (s - t)) + (y - t);
    if (s < 0) return error < 0 ? down : error > 0 ? -up : 0;
    return error < 0 ? -down : error > 0 ? up : 0;
}

SN_FN sn_i32 sn_step_of64(double x, double y, double s, sn_i32 down, sn_i32 up) {
    const double t = s - x, error = (x - (s - t)) + (y - t);
    if (s < 0) return error < 0 ? down : error > 0 ? -up : 0;
    return error < 0 ? -down : error > 0 ? up : 0;
}

SN_FN float sn_stepped32(float x, float y, sn_i32 down, sn_i32 up) {
    const float s = x + y;
    return sn_float32(sn_bits32(s) + (sn_u32)sn_step_of32(x, y, s, down, up));
}

SN_FN double sn_stepped64(double x, double y, sn_i32 down, sn_i32 up) {
    const double s = x + y;
    return sn_float64(sn_bits64(s) + (sn_u64)sn_step_of64(x, y, s, down, up));
}

SN_FN float sn_add_down32(float x, float y) { return sn_stepped32(x, y, 1, 0); }
SN_FN float sn_add_up32(float x, float y) { return sn_stepped32(x, y, 0, 1); }
SN_FN float sn_add_zero32(float x, float y) { return sn_stepped32(x, y, x + y > 0, x + y < 0); }
SN_FN double sn_add_down64(double x, double y) { return sn_stepped64(x, y, 1, 0); }
SN_FN double sn_add_up64(double x, double y) { return sn_stepped64(x, y, 0, 1); }
SN_FN double sn_add_zero64(double x, double y) { return sn_stepped64(x, y, x + y > 0, x + y < 0); }

SN_FN float sn_of_integer32_toward_zero(sn_i32 x) {
    sn_i64 magnitude = x < 0 ? -(sn_i64)x : x;
    sn_i32 drop = sn_bit_length((sn_u64)magnitude) - 24;
    if (drop > 0) magnitude = magnitude >> drop << drop;
    return (float)(x < 0 ? -magnitude : magnitude);
}

#endif

/* ---- rounding to odd: the exact result where it is a number of the format, else the neighbour with an odd last bit -
 */

/* x + y, in binary64. Knuth's TwoSum gives the error exactly unless the sum overflows; where it does not round to 0 of
 * an infinite or NaN sum, the error is NaN, and compares false. */
SN_FN double sn_add_odd64(double x, double y) {
    const double s = sn_add64(x, y), t = sn_subtract64(s, x);
    const double error = sn_add64(sn_subtract64(x, sn_subtract64(s, t)), sn_subtract64(y, t));
    sn_u64 bits = sn_bits64(s);
    if ((error < 0 || error > 0) && (bits & 0x7ff0000000000000u) != 0x7ff0000000000000u) {
        const sn_u64 beyond = (bits ^ sn_bits64(error)) >> 63; /* the exact sum is smaller in magnitude */
        bits = (bits - beyond) | 1u;
    }
    return sn_float64(bits);
}

/* The same, where no sum of numbers overflows. */
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
SN_FN double sn_sum_odd64(double x, double y) {
    const double lower = __dadd_rd(x, y), upper = __dadd_ru(x, y); /* of a sum 0: -0 and 0; of others, one is odd */
    return sn_bits64(lower) & 1u ? lower : upper;
}
#else
SN_FN double sn_sum_odd64(double x, double y) { return sn_add_odd64(x, y); }
#endif

/* x * y + z in binary32. A sum of zeros of two signs is -0 if `down`, else +0. Past the largest number: that, which is
 * odd. */
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
SN_FN float sn_fma_odd32(float x, float y, float z, sn_i32 down) {
    const sn_u32 lower = sn_bits32(__fmaf_rd(x, y, z)), upper = sn_bits32(__fmaf_ru(x, y, z));
    if (down) return sn_float32(upper & 1u ? upper : lower);
    return sn_float32(lower & 1u ? lower : upper);
}
#else
SN_FN float sn_fma_odd32(float x, float y, float z, sn_i32 down) {
    const double product = (double)x * (double)y, w = sn_add_odd64(product, (double)z);
    const float near = (float)w;
    const double back = (double)near;
    sn_u32 bits = sn_bits32(near);
    if (back < w || back > w) { /* w lies between two neighbours, one of them `near`: the odd one */
        const sn_i32 beyond = (back < 0 ? -back : back) > (w < 0 ? -w : w);
        if (!(bits & 1u)) bits += beyond ? ~(sn_u32)0 : 1u;
    } else if (down && w == 0) {
        bits = (sn_u32)((sn_bits64(product) | sn_bits64((double)z)) >> 63) << 31;
    }
    return sn_float32(bits);
}

/* The exact product in binary64, the sum rounded to odd there, and one rounding. */
SN_FN float sn_fma32(float x, float y, float z) { return (float)sn_add_odd64((double)x * (double)y, (double)z); }

SN_FN double sn_root64(double x) {
    /* Newton's method in integers: the largest r with r * r <= significand, and a correct last bit */
    sn_u64 bits = sn_bits64(x), m, r = 0;
    sn_i32 e;
    if (!(x > 0) || bits == 0x7ff0000000000000u) {
        if (x < 0) return sn_float64(0x7ff8000000000000u);
        return x;
    }
    e = (sn_i32)(bits >> 52);
    m = bits & 0xfffffffffffffu;
    if (e)
        m |= (sn_u64)1 << 52;
    else
        e = 1;
    while (!(m >> 52)) {
        m <<= 1;
        e--;
    }
    e -= 1075; /* x = m * 2^e */
    if (e & 1) {
        m <<= 1;
        e--;
    }
    /* r = floor(sqrt(m * 2^54)), 54 bits: bit by bit on 128-bit squares */
    sn_u128 target = sn_u128_shl(sn_u128_make(0, m), 54);
    for (sn_i32 bit = 53; bit >= 0; bit--) {
        const sn_u64 t = r | (sn_u64)1 << bit;
        if (!sn_u128_less(target, sn_u128_mul(t, t))) r = t;
    }
    const sn_i32 inexact = sn_u128_less(sn_u128_mul(r, r), target);
    const sn_u64 rounded = (r >> 1) + ((r & 1) & (sn_u64)(inexact | (sn_i32)((r >> 1) & 1)));
    return sn_float64(((sn_u64)(e / 2 - 26 + 1075) << 52) + (rounded - ((sn_u64)1 << 52)));
}
#endif

#endif

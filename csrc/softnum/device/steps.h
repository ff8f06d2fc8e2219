/* Steps of products of matrices in the machine's floats, one by one: what kernels for a GPU make their sums of. The
 * CPU's vectors do the same (products/gemm/micro.h, products/gemm/odd.h, products/gemm/stochastic.h,
 * products/gemm/wide.h), and hold the proofs at more length; products/gemm/paths.c finds a unit's path and its level.
 *
 * Domains. Everywhere: operands exact in the carrier; a product exact in it, or rounded as the unit says.
 *
 * Magic: binary32's sum of accumulator and addend, rounded again to nearest even: right for p(accumulator) <= 11 and an
 * addend of no more bits (Figueroa 1995). With C = K * 2^E, K = 1.5 * 2^(23 - m) and 2^E the binade of v, but at least
 * the format's lowest, v + C has v in the format's last places, rounded; subtracting C is exact. E is clamped to
 * emax + 1, so that C is finite, and what lies beyond the largest value is replaced. `signed`: nothing overflows
 * (infinities and NaNs do not arise). `bare`: also, every addend is a multiple of the sum's last place and no start is
 * -0; then sums below the lowest binade are values as they are, no sum is -0, and the sign of a rounded product's zero
 * does not matter.
 *
 * Fixed: fixed point that saturates; all numbers, in last places, below 2^22.
 *
 * Odd: the sum rounded to odd in binary32, then in any mode to m + 3 <= 24 bits (patterns.h).
 *
 * Stochastic: the sum truncated to 24 bits, m + 1 + r of which decide, by stochastic_steps.h, and so a product that is
 * rounded first. `tested`: every addend is a multiple of the sum's last place and no start is -0; then so is every sum,
 * and none is -0. `bare`: also, nothing overflows.
 *
 * Wide: the sum in binary64, rounded to odd and then to nearest even (as by `magic`; in fixed point, by patterns.h), or
 * truncated and then stochastically, to m + 1 + r <= 52 bits. */
#ifndef SOFTNUM_STEPS_H
#define SOFTNUM_STEPS_H

#include "softnum/device/patterns.h"
#include "softnum/device/stochastic_steps.h"
#include "softnum/word/machine.h"
#include "softnum/word/philox.h"

/* As sn_round32 in csrc/dispatch/kernels.h, by the same names; limits are magnitudes. symmetric: there is -0, and
 * limits and what replaces what lies beyond them differ by their sign alone, or are NaNs. */
typedef struct {
    sn_u32 emin, emax, sign_of_zero;
    sn_i32 symmetric;
    float scale, limit[2], overflow[2];
} sn_magic;

SN_FN float sn_magic_at(float e, float scale, float v) {
    return sn_multiply_add32(e, -scale, sn_multiply_add32(e, scale, v));
}

SN_FN sn_u32 sn_binade(float v) { return sn_bits32(v) & 0x7f800000u; }

SN_FN float sn_magic_bare(const sn_magic *r, float v) { return sn_magic_at(sn_float32(sn_binade(v)), r->scale, v); }

/* A product: not below emin, but without the sign of its zero. */
SN_FN float sn_magic_product_bare(const sn_magic *r, float v) {
    const sn_u32 e = sn_binade(v);
    return sn_magic_at(sn_float32(e > r->emin ? e : r->emin), r->scale, v);
}

SN_FN float sn_magic_signed(const sn_magic *r, float v) {
    return sn_float32(sn_bits32(sn_magic_product_bare(r, v)) | (sn_bits32(v) & r->sign_of_zero));
}

SN_FN float sn_magic_full(const sn_magic *r, float v) {
    sn_u32 e = sn_binade(v);
    e = e > r->emin ? e : r->emin;
    e = e < r->emax ? e : r->emax;
    float rounded = sn_magic_at(sn_float32(e), r->scale, v);
    if (r->symmetric) { /* rounded has the sign of v, or is +0 */
        if (sn_magnitude32(rounded) > r->limit[0]) rounded = sn_magnitude32(r->overflow[0]);
        return sn_float32(sn_bits32(rounded) | (sn_bits32(v) & 0x80000000u));
    }
    rounded = sn_float32(sn_bits32(rounded) | (sn_bits32(v) & r->sign_of_zero));
    if (rounded > r->limit[0]) rounded = r->overflow[0];
    if (rounded < -r->limit[1]) rounded = r->overflow[1];
    return rounded;
}

/* To fixed point: C is `scale` itself; no NaN, no -0 comes out. */
SN_FN float sn_round_to_fixed(const sn_magic *r, float v) {
    const float rounded = sn_subtract32(sn_add32(v, r->scale), r->scale);
    const float lower = rounded < r->limit[0] ? rounded : r->limit[0];
    return lower > -r->limit[1] ? lower : -r->limit[1];
}

/* ---- stochastic ------------------------------------------------------------------------------------------------- */

/* x * y + z, the product exact, rounded toward zero; below 2^128. */
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
SN_FN float sn_fma_zero32(float x, float y, float z) { return __fmaf_rz(x, y, z); }
#else
SN_FN float sn_fma_zero32(float x, float y, float z) {
    const double sum = sn_add_odd64((double)x * (double)y, (double)z);
    const float near = (float)sum;
    const double back = (double)near;
    if (back < 0 ? back < sum : back > sum) return sn_float32(sn_bits32(near) - 1u);
    return near;
}
#endif

/* ---- binary64 --------------------------------------------------------------------------------------------------- */

/* To nearest even, as sn_magic_full: |v| + C for C = 2^(52 - m) * 1.5 * 2^E. m <= 49, and C is finite up to emax + 1.
 */
SN_FN double sn_nearest64(const sn_target64 *p, double v) {
    const sn_u32 top = 0x7ff00000u, emin = (sn_u32)(sn_bits64(p->normal) >> 32);
    const sn_u32 emax = ((sn_u32)(sn_bits64(p->limit) >> 32) & top) + 0x100000u;
    sn_u32 e = (sn_u32)(sn_bits64(v) >> 32) & top;
    e = e > emin ? e : emin;
    e = (e < emax ? e : emax) + ((sn_u32)(52 - p->mantissa_bits) << 20) + 0x80000u;
    const double c = sn_float64((sn_u64)e << 32);
    double rounded = sn_subtract64(sn_add64(sn_magnitude64(v), c), c);
    if (!(rounded <= p->limit)) rounded = sn_target_beyond64(p, v);
    return sn_target_signed64(p, rounded, v);
}

/* ---- what enters and leaves ------------------------------------------------------------------------------------- */

SN_FN float sn_canonical32(float v) { return v >= 0 || v <= 0 ? v : sn_float32(0x7fc00000u); }
SN_FN double sn_canonical64(double v) { return v >= 0 || v <= 0 ? v : sn_float64(0x7ff8000000000000u); }

/* The low bits of a code as an integer. */
SN_FN sn_i64 sn_integer_of_code(sn_u64 code, sn_i32 bits, sn_i32 is_signed) {
    const sn_i32 drop = 64 - bits;
    return is_signed ? (sn_i64)(code << drop) >> drop : (sn_i64)(code << drop >> drop);
}

/* A sum step by step: saturated. */
SN_FN sn_i64 sn_saturated(sn_i64 sum, sn_i64 least, sn_i64 most) {
    sum = sum > least ? sum : least;
    return sum < most ? sum : most;
}

#endif

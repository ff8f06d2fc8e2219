/* Operations on codes in binary64 lanes: decoded, computed exactly or rounded to odd, rounded once more to the result's
 * format, encoded. Included once per instruction set, by targets/values.h.
 *
 * Why that is exact. Let p be the result's precision and r the random bits of a stochastic mode, else 0. A value
 * rounded to odd at q bits (the exact value where it has q bits, else the neighbour whose last bit is 1) lies strictly
 * between the same neighbours among the multiples of two of its last places as the exact one, or is it. All that a
 * rounding to p bits asks is how the exact value lies to multiples of 2^-(r + 1) of the result's last place; below the
 * result's lowest binade that place is coarser still. So p + r + 2 <= q suffices in every mode (Boldo and Melquiond
 * 2008 for nearest).
 *   - convert: exact. Operands lie in sn_decoding's domain, the result in sn_rounding's.
 *   - add, subtract: q = 53. The error of the rounded sum is a binary64 number (TwoSum, Knuth), its sign says on which
 *     side the exact sum lies. No operand exceeds 2^1000; sums in binary64's subnormals are exact.
 *   - multiply: exact: both precisions together at most 53 bits, the last places' product >= 2^-1074, the tops' <
 * 2^1000.
 *   - fma: an exact product, then as add.
 *   - divide: q = 53. With the divisor of at most 26 bits and quotient Q = H + L, H its first 26 bits and L the rest,
 *     H * b and L * b are exact; so is a - H * b (it cancels to at most 53 bits above the last place of H * b), and the
 *     remainder after L * b, below half a place of Q times b. Its sign over b's says on which side the quotient lies.
 *   - sqrt: q = 50: the root with its last three bits cut off, S = H + L of 25 bits each: H * H, 2 * H * L and L * L
 * are exact, and each difference cancels in the same way. The operand has at most 50 bits. For divide and sqrt all
 * values of the operands lie within 2^-400 .. 2^400, so that nothing under- or overflows. Zeros: the hardware's signs
 * are those of IEEE 754 6.3, apart from x - x, which is -0 rounding down. NaN results are the canonical NaN; without a
 * NaN in the result's format, only operations that cannot give one (kernels.c). No flags: who asks for them gets the
 * definition. */
#ifndef SOFTNUM_OPERATE_BODY_H
#define SOFTNUM_OPERATE_BODY_H

#include "elementwise/quantize.h"

/* value, or the odd neighbour toward the exact one, if the finite value is not exact: error has its error's sign. */
SN_INLINE sn_wf SN_(to_odd)(sn_wf value, sn_wf error, sn_wu sign_of_unit) {
    sn_wu bits = (sn_wu)value, error_bits = (sn_wu)error;
    sn_wi finite = (bits & 0x7ff0000000000000u) != 0x7ff0000000000000u, some = (bits << 1) != 0;
    sn_wi inexact = ((error_bits << 1) != 0) & finite & some;
    sn_wu beyond = (bits ^ error_bits ^ sign_of_unit) >> 63; /* the exact value is smaller in magnitude */
    return (sn_wf)SN_SELECT64(inexact, (bits - beyond) | 1u, bits);
}

SN_INLINE sn_wf SN_(head)(sn_wf x, int cut) { return (sn_wf)((sn_wu)x >> cut << cut); }

SN_INLINE sn_wf SN_(divide_odd)(sn_wf a, sn_wf b) {
    sn_wf q = a / b, high = SN_(head)(q, 27), low = q - high;
    sn_wf rest = (a - high * b) - low * b;
    return SN_(to_odd)(q, rest, (sn_wu)b);
}

SN_INLINE sn_wf SN_(sqrt_odd)(sn_wf a) {
    sn_wf s = SN_(head)(SN_SQRT64(a), 3), high = SN_(head)(s, 28), low = s - high;
    sn_wf rest = ((a - high * high) - (high + high) * low) - low * low;
    return SN_(to_odd)(s, rest, (sn_wu){0});
}

/* a + b rounded to odd; x - x is -0 if down. */
SN_INLINE sn_wf SN_(sum_odd)(sn_wf a, sn_wf b, int down) {
    sn_wf s = SN_(add_odd)(a, b);
    if (!down) return s;
    sn_wu signs = ((sn_wu)a | (sn_wu)b) & 0x8000000000000000u;
    return (sn_wf)SN_SELECT64(s == 0, signs, s);
}

SN_INLINE void SN_(operate_block)(const sn_lanes *p, double *a, const double *b, const double *c, size_t n) {
    const int down = p->down;
#define EACH(expression)                                                                                               \
    for (size_t i = 0; i < n; i += SN_W) {                                                                             \
        sn_wf x = sn_load_wf(a + i), y = sn_load_wf(b + i), z = sn_load_wf(c + i), result = (expression);              \
        (void)x, (void)y, (void)z;                                                                                     \
        memcpy(a + i, &result, sizeof result);                                                                         \
    }                                                                                                                  \
    break
    switch (p->operation) {
    case SN_LANES_ADD: EACH(SN_(sum_odd)(x, y, down));
    case SN_LANES_SUBTRACT: EACH(SN_(sum_odd)(x, (sn_wf)((sn_wu)y ^ 0x8000000000000000u), down));
    case SN_LANES_MULTIPLY: EACH(x * y);
    case SN_LANES_FMA: EACH(SN_(sum_odd)(x * y, z, down));
    case SN_LANES_DIVIDE: EACH(SN_(divide_odd)(x, y));
    case SN_LANES_SQRT: EACH(SN_(sqrt_odd)(x));
    default: break;
    }
#undef EACH
}

static void SN_(operate)(const sn_lanes *p, const void *const in[3], int width, void *out, size_t n,
                         const sn_u32 *words) {
    double lanes[3][SN_BLOCK];
    for (size_t i = 0; i < n; i += SN_BLOCK) {
        const size_t take = n - i < SN_BLOCK ? n - i : SN_BLOCK, whole = (take + SN_W - 1) / SN_W * SN_W;
        const sn_random_source random = {words ? words + i : NULL, {0, 0}, 0};
        for (int k = 0; k < p->operands; k++) {
            SN_(decode64)(&p->in[k], (const char *)in[k] + i * (size_t)width, width, lanes[k], take);
            memset(lanes[k] + take, 0, (whole - take) * sizeof(double));
        }
        SN_(operate_block)(p, lanes[0], lanes[p->operands > 1], lanes[p->operands > 2 ? 2 : 0], whole);
        SN_(encode64)(&p->out, lanes[0], (char *)out + i * (size_t)width, width, take, &random);
    }
}

#endif

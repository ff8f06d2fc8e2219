#include "elementwise/scale.h"

#include <string.h>

#include "dispatch/kernels.h"

enum { SN_SCALE_LANES = 64 };

static float power_of_two(sn_i32 exponent) { /* -127 .. 127 */
    const sn_u32 bits = exponent >= -126 ? (sn_u32)(exponent + 127) << 23 : (sn_u32)1 << (149 + exponent);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The exponent of a block's scale, from the pattern of its largest magnitude, which is finite. */
static sn_i32 exponent_of(const sn_scaling *s, sn_i32 largest) {
    float x;
    sn_u64 bits;
    if (largest == 0) return s->low;
    memcpy(&x, &largest, sizeof x);
    const double wide = (double)x; /* normal */
    memcpy(&bits, &wide, sizeof bits);
    sn_i32 exponent = (sn_i32)(bits >> 52) - 1022 + s->shift;
    bits = (bits & 0xfffffffffffffu) | (sn_u64)1022 << 52;
    double fraction;
    memcpy(&fraction, &bits, sizeof fraction);
    exponent += fraction > s->above || fraction >= s->from;
    exponent = exponent < s->low ? s->low : exponent;
    return exponent > s->high ? s->high : exponent;
}

static sn_i32 magnitude(float x) {
    sn_i32 bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x7fffffff;
}

/* Blocks side by side, of `rows` rows of `lanes` numbers; returns the largest pattern. */
static sn_i32 scale_block(const sn_scaling *s, const float *x, float *q, sn_u8 *scales, size_t rows, size_t lanes) {
    sn_i32 largest[SN_SCALE_LANES] = {0}, all = 0;
    float inverse[SN_SCALE_LANES];
    for (size_t j = 0; j < rows; j++)
        for (size_t i = 0; i < lanes; i++) {
            const sn_i32 size = magnitude(x[j * s->inner + i]);
            largest[i] = size > largest[i] ? size : largest[i];
        }
    for (size_t i = 0; i < lanes; i++) {
        all = largest[i] > all ? largest[i] : all;
        const sn_i32 exponent = largest[i] < 0x7f800000 ? exponent_of(s, largest[i]) : s->low;
        inverse[i] = power_of_two(-exponent);
        scales[i] = (sn_u8)(exponent - s->low);
    }
    for (size_t j = 0; j < rows; j++)
        for (size_t i = 0; i < lanes; i++)
            q[j * s->inner + i] = x[j * s->inner + i] * inverse[i];
    return all;
}

/* The same of numbers side by side. */
static sn_i32 scale_run(const sn_scaling *s, const float *x, float *q, sn_u8 *scale, size_t n) {
    sn_i32 largest = 0;
    for (size_t i = 0; i < n; i++) {
        const sn_i32 size = magnitude(x[i]);
        largest = size > largest ? size : largest;
    }
    const sn_i32 exponent = largest < 0x7f800000 ? exponent_of(s, largest) : s->low;
    const float inverse = power_of_two(-exponent);
    for (size_t i = 0; i < n; i++)
        q[i] = x[i] * inverse;
    *scale = (sn_u8)(exponent - s->low);
    return largest;
}

int sn_scale_blocks(const sn_scaling *s, const float *x, float *q, sn_u8 *scales) {
    sn_i32 largest = 0;
    const sn_u64 saved = sn_fp_enter();
    for (size_t o = 0; o < s->outer; o++, x += s->length * s->inner, q += s->length * s->inner)
        for (size_t first = 0; first < s->length; first += s->size) {
            const size_t rows = s->length - first < s->size ? s->length - first : s->size;
            for (size_t i = 0; i < s->inner; i += SN_SCALE_LANES) {
                const size_t lanes = s->inner - i < SN_SCALE_LANES ? s->inner - i : SN_SCALE_LANES;
                const size_t at = i + first * s->inner;
                const sn_i32 most = s->inner == 1 ? scale_run(s, x + at, q + at, scales, rows)
                                                  : scale_block(s, x + at, q + at, scales, rows, lanes);
                largest = most > largest ? most : largest;
                scales += lanes;
            }
        }
    sn_fp_leave(saved);
    return largest >= 0x7f800000;
}

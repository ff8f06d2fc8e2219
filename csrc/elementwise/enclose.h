/* exp, sigmoid and tanh of binary32 numbers in nearest even, where an enclosure in binary64 decides the rounding. The
 * steps are those of train/engine/enclosures.py, which proves their bound; so is every number that they make. Included
 * once per instruction set, by elementwise_*.c. */
#ifndef SOFTNUM_ENCLOSE_BODY_H
#define SOFTNUM_ENCLOSE_BODY_H

#include "lanes/isa.h"

/* (e^x - 1, 2^k) with e^x = e^r * 2^k; x within 2^7. */
SN_INLINE sn_wf SN_(powers)(sn_wf x, sn_wf *scale) {
    static const double terms[] = {
        1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
        1.0 / 720,        1.0 / 120,       1.0 / 24,       1.0 / 6,       1.0 / 2,      1.0};
    const sn_wf magic = (sn_wf){0} + 0x1.8p52, shifted = x * 1.4426950408889634 + magic, k = shifted - magic;
    sn_wf r = x - k * 0.6931471803691238;
    r = r - k * 1.9082149292705877e-10;
    sn_wf total = (sn_wf){0} + terms[0];
    for (int i = 1; i < 13; i++)
        total = total * r + terms[i];
    *scale = (sn_wf)(((sn_wu)shifted - (sn_wu)magic + 1023) << 52);
    return total * r;
}

SN_INLINE sn_wf SN_(enclosed)(int function, sn_wf x) {
    const sn_wu sign = (sn_wu)x & 0x8000000000000000u;
    const sn_wf size = (sn_wf)((sn_wu)x ^ sign), one = (sn_wf){0} + 1.0;
    sn_wf scale, less;
    if (function == SN_ENCLOSED_EXP) {
        less = SN_(powers)(x, &scale);
        return (one + less) * scale;
    }
    if (function == SN_ENCLOSED_SIGMOID) {
        less = SN_(powers)(-size, &scale);
        const sn_wf power = (one + less) * scale;
        return (sn_wf)SN_SELECT64(x < 0.0, power, one) / (one + power);
    }
    less = SN_(powers)(-2.0 * size, &scale);
    less = less * scale + (scale - one);
    return (sn_wf)(((sn_wu)(less / (less + 2.0)) & 0x7fffffffffffffffu) | sign);
}

static size_t SN_(enclose)(int function, const float *x, float *out, sn_u8 *undecided, size_t n) {
    size_t left = 0;
    double lanes[256];
    for (size_t i = 0; i < n; i += 256) {
        const size_t take = n - i < 256 ? n - i : 256;
        for (size_t j = 0; j < take; j++) {
            const int near = __builtin_fabsf(x[i + j]) <= 80.0f;
            lanes[j] = near ? (double)x[i + j] : 0.0;
            undecided[i + j] = (sn_u8)!near;
        }
        for (size_t j = take; j < 256 && j % SN_W; j++)
            lanes[j] = 0.0;
        for (size_t j = 0; j < take; j += SN_W) {
            const sn_wf y = sn_load_wf(lanes + j);
            const sn_wf value = function == SN_ENCLOSED_EXP       ? SN_(enclosed)(SN_ENCLOSED_EXP, y)
                                : function == SN_ENCLOSED_SIGMOID ? SN_(enclosed)(SN_ENCLOSED_SIGMOID, y)
                                                                  : SN_(enclosed)(SN_ENCLOSED_TANH, y);
            memcpy(lanes + j, &value, sizeof value);
        }
        for (size_t j = 0; j < take; j++) {
            const float low = (float)(lanes[j] * (1.0 - 0x1p-47)), high = (float)(lanes[j] * (1.0 + 0x1p-47));
            out[i + j] = low;
            undecided[i + j] |= low != high;
            left += undecided[i + j];
        }
    }
    return left;
}

#endif

/* exp, sigmoid, tanh, erf and gelu of binary32 numbers in nearest even, where an enclosure in binary64 decides the
 * rounding. The steps are those of train/engine/enclosures.py, which proves their bounds; so is every number that they
 * make. Included once per instruction set, by elementwise_*.c. */
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

/* The sum of a^n / (1 * 3 * ... * (2 n + 1)), n below 64, for a in 0..36: four sums over every fourth n. */
SN_INLINE sn_wf SN_(odd_series)(sn_wf a) {
    static const double terms[16][4] = {
        {1.0, 0.3333333333333333, 0.06666666666666667, 0.009523809523809525},
        {0.0010582010582010583, 9.62000962000962e-05, 7.4000074000074e-06, 4.9333382666716e-07},
        {2.901963686277412e-08, 1.5273493085670588e-09, 7.273091945557423e-11, 3.1622138893727926e-12},
        {1.264885555749117e-13, 4.684761317589322e-15, 1.6154349370997664e-16, 5.211080442257311e-18},
        {1.5791152855325184e-19, 4.5117579586643385e-21, 1.2193940428822536e-22, 3.1266513920057783e-24},
        {7.625979004892143e-26, 1.7734834895098008e-27, 3.9410744211328905e-29, 8.38526472581466e-31},
        {1.7112785154723796e-32, 3.3554480695536855e-34, 6.33103409349752e-36, 1.1510971079086399e-37},
        {2.019468610366035e-39, 3.4228281531627713e-41, 5.611193693709461e-43, 8.906656656681684e-45},
        {1.3702548702587206e-46, 2.04515652277421e-48, 2.9639949605423333e-50, 4.174640789496244e-52},
        {5.718686013008554e-54, 7.624914684011405e-56, 9.902486602612214e-58, 1.2534793167863561e-59},
        {1.5475053293658718e-61, 1.8644642522480384e-63, 2.1934873555859273e-65, 2.521249834006813e-67},
        {2.832864982030127e-69, 3.1130384417913484e-71, 3.347353163216504e-73, 3.5235296454910565e-75},
        {3.6325047891660376e-77, 3.6691967567333716e-79, 3.632868075973635e-81, 3.527056384440423e-83},
        {3.359101318514688e-85, 3.139347026649241e-87, 2.8801348868341663e-89, 2.5947161142650147e-91},
        {2.296208950677004e-93, 1.996703435371308e-95, 1.7065841327959897e-97, 1.4341043132739408e-99},
        {1.1852101762594553e-101, 9.635855091540287e-104, 7.708684073232229e-106, 6.069829978923015e-108},
    };
    const sn_wf square = a * a, fourth = square * square;
    sn_wf sums[4];
    for (int k = 0; k < 4; k++)
        sums[k] = (sn_wf){0} + terms[15][k];
    for (int i = 14; i >= 0; i--)
        for (int k = 0; k < 4; k++)
            sums[k] = sums[k] * fourth + terms[i][k];
    return (sums[0] + a * sums[1]) + square * (sums[2] + a * sums[3]);
}

/* The ends of erf, for x within 4.2, or of gelu, for x within 6. */
SN_INLINE sn_wf SN_(normal_ends)(int function, sn_wf x, sn_wf *high) {
    const sn_wf size = (sn_wf)((sn_wu)x & 0x7fffffffffffffffu), square = x * x, one = (sn_wf){0} + 1.0;
    sn_wf scale;
    if (function == SN_ENCLOSED_ERF) {
        const sn_wf less = SN_(powers)(-square, &scale);
        const sn_wf value = x * ((one + less) * scale) * SN_(odd_series)(square + square) * 1.1283791670955126;
        *high = value * (1.0 + 0x1p-44);
        return value * (1.0 - 0x1p-44);
    }
    const sn_wf less = SN_(powers)(-0.5 * square, &scale);
    const sn_wf part = size * ((one + less) * scale) * SN_(odd_series)(square) * 0.3989422804014327;
    const sn_wf value = x * (sn_wf)SN_SELECT64(x < 0.0, 0.5 - part, 0.5 + part), radius = size * 0x1p-44;
    *high = value + radius;
    return value - radius;
}

static size_t SN_(enclose_normal)(int function, const float *x, float *out, sn_u8 *undecided, size_t n) {
    const float least = function == SN_ENCLOSED_ERF ? -4.2f : -6.0f, most = -least;
    size_t left = 0;
    double low[256], high[256];
    for (size_t i = 0; i < n; i += 256) {
        const size_t take = n - i < 256 ? n - i : 256;
        for (size_t j = 0; j < take; j++)
            low[j] = x[i + j] >= least && x[i + j] <= most ? (double)x[i + j] : 0.0;
        for (size_t j = take; j < 256 && j % SN_W; j++)
            low[j] = 0.0;
        for (size_t j = 0; j < take; j += SN_W) {
            sn_wf above;
            const sn_wf y = sn_load_wf(low + j), below = function == SN_ENCLOSED_ERF
                                                             ? SN_(normal_ends)(SN_ENCLOSED_ERF, y, &above)
                                                             : SN_(normal_ends)(SN_ENCLOSED_GELU, y, &above);
            memcpy(low + j, &below, sizeof below);
            memcpy(high + j, &above, sizeof above);
        }
        for (size_t j = 0; j < take; j++) {
            const float value = x[i + j];
            const int within = value >= least && value <= most;
            const int beyond =
                function == SN_ENCLOSED_ERF ? !within && value == value : value > most && value <= 0x1.fffffep127f;
            if (beyond && function == SN_ENCLOSED_ERF) {
                low[j] = value < 0.0f ? 0x1p-28 - 1.0 : 1.0 - 0x1p-28;
                high[j] = value < 0.0f ? -1.0 : 1.0;
            } else if (beyond) {
                low[j] = value * (1.0 - 0x1p-29);
                high[j] = value;
            }
            out[i + j] = (float)low[j];
            undecided[i + j] = (sn_u8)(!(within || beyond) || out[i + j] != (float)high[j]);
            left += undecided[i + j];
        }
    }
    return left;
}

static size_t SN_(enclose)(int function, const float *x, float *out, sn_u8 *undecided, size_t n) {
    if (function == SN_ENCLOSED_ERF || function == SN_ENCLOSED_GELU)
        return SN_(enclose_normal)(function, x, out, undecided, n);
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

/* Rounding in lanes of 32 and 64 bits; the loops over arrays too where SN_WITH_LOOPS is defined. */
#ifndef SOFTNUM_LANES_H
#define SOFTNUM_LANES_H

#include "lanes/isa.h"

#define L_BITS 32
#include "lanes/round.h"
#define L_BITS 64
#include "lanes/round.h"

/* a + b, rounded to odd: the exact sum where it is a binary64 number, else the neighbour with an odd last bit. */
SN_INLINE sn_wf SN_(add_odd)(sn_wf a, sn_wf b) {
    sn_wf s = a + b, t = s - a;
    sn_wf error = (a - (s - t)) + (b - t);
    sn_wu bits = (sn_wu)s, error_bits = (sn_wu)error;
    sn_wi inexact = ((error_bits << 1) != 0) & ((bits & 0x7ff0000000000000u) != 0x7ff0000000000000u);
    sn_wu beyond = (bits ^ error_bits) >> 63; /* the exact sum is smaller in magnitude: step back to truncate */
    return (sn_wf)SN_SELECT64(inexact, (bits - beyond) | 1u, bits);
}

/* Lanes i .. i + SN_W. */
SN_INLINE sn_wf SN_(widened)(sn_vf x, int i) {
    sn_wf w;
    for (int j = 0; j < SN_W; j++)
        w[j] = (double)x[i + j];
    return w;
}

/* The fma of CPUs without one: the exact product, a sum rounded to odd, one rounding to nearest. */
SN_INLINE sn_vf SN_(fma)(sn_vf x, sn_vf y, sn_vf z) {
    sn_vf out;
    for (int i = 0; i < SN_V; i += SN_W) {
        const sn_wf w = SN_(add_odd)(SN_(widened)(x, i) * SN_(widened)(y, i), SN_(widened)(z, i));
        for (int j = 0; j < SN_W; j++)
            out[i + j] = (float)w[j];
    }
    return out;
}

#endif

/* Rounding in lanes of 32 and 64 bits; the loops over arrays too where SN_WITH_LOOPS is defined. */
#ifndef SOFTNUM_LANES_H
#define SOFTNUM_LANES_H

#include "isa.h"

#define L_BITS 32
#include "round_lanes.h"
#define L_BITS 64
#include "round_lanes.h"

/* a + b, rounded to odd: the exact sum where it is a binary64 number, else the neighbour with an odd last bit. */
SN_INLINE sn_wf SN_(add_odd)(sn_wf a, sn_wf b) {
    sn_wf s = a + b, t = s - a;
    sn_wf error = (a - (s - t)) + (b - t);
    sn_wu bits = (sn_wu)s, error_bits = (sn_wu)error;
    sn_wi inexact = ((error_bits << 1) != 0) & ((bits & 0x7ff0000000000000u) != 0x7ff0000000000000u);
    sn_wu beyond = (bits ^ error_bits) >> 63; /* the exact sum is smaller in magnitude: step back to truncate */
    return (sn_wf)SN_SELECT64(inexact, (bits - beyond) | 1u, bits);
}

#endif

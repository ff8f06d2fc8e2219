/* x * y + z rounded to odd in binary32: the exact result where it is a binary32 number, else the neighbour with an odd
 * last bit.
 *
 * Rounded down and up, a number gives itself twice, or two neighbours, one of which is odd: that one. Zeros of two
 * signs (x - x) are a pair of even patterns: the upper, +0, is IEEE 754's in all modes but down, where it is the lower.
 * A product is x * y + -0, where the upper is always right. Past the largest binary32 number, which is odd, the pair is
 * that number and infinity. AVX-512 rounds an instruction as it says; with AVX2 the CPU rounds down meanwhile, between
 * SN_ODD_ENTER and SN_ODD_LEAVE, and -(-x * y - z) is rounded up; elsewhere the sum is rounded to odd in binary64
 * first. */
#ifndef SOFTNUM_LANES_ODD_H
#define SOFTNUM_LANES_ODD_H

#include "lanes/lanes.h"

#ifndef SN_FMA_BOTH
/* (float)w has one of the two neighbours of w: the odd one. */
SN_INLINE sn_vf SN_(fma_odd)(sn_vf x, sn_vf y, sn_vf z, int down) {
    sn_vf out;
    for (int i = 0; i < SN_V; i += SN_W) {
        const sn_wf product = SN_(widened)(x, i) * SN_(widened)(y, i), c = SN_(widened)(z, i);
        const sn_wf w = SN_(add_odd)(product, c);
        for (int j = 0; j < SN_W; j++) {
            const float near = (float)w[j];
            const double back = (double)near;
            sn_u32 bits;
            memcpy(&bits, &near, sizeof bits);
            if (back < w[j] || back > w[j]) {
                const int beyond = (back < 0 ? -back : back) > (w[j] < 0 ? -w[j] : w[j]);
                if (!(bits & 1)) bits += beyond ? ~(sn_u32)0 : 1u;
            } else if (down && w[j] == 0) {
                bits = (sn_u32)((((sn_wu)product)[j] | ((sn_wu)c)[j]) >> 63) << 31;
            }
            memcpy((char *)&out + (i + j) * (int)sizeof bits, &bits, sizeof bits);
        }
    }
    return out;
}
#else
SN_INLINE sn_vf SN_(fma_odd)(sn_vf x, sn_vf y, sn_vf z, int down) {
    sn_vf lower, upper;
    SN_FMA_BOTH(x, y, z, &lower, &upper);
    return down ? SN_WHERE_ODD(upper, upper, lower) : SN_WHERE_ODD(lower, lower, upper);
}
#endif

#ifndef SN_ODD_ENTER
#define SN_ODD_ENTER()
#define SN_ODD_LEAVE()
#endif

#endif

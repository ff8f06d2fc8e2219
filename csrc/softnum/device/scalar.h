/* Operations on single numbers, as users' functions call them on a GPU (kernels/device/scalar_functions.py): by the
 * definition, or, where Python says so, computed in binary64, rounded there to odd, and rounded once (patterns.h).
 *
 * Domain of the latter: operands are any binary32 numbers, of which products are exact in binary64 and sums do not
 * overflow; the format, its smallest subnormal too, and the r bits of a stochastic mode leave two bits of binary64 at
 * least: what lies between two numbers that the rounding tells apart stays there (kernels/rounding.py cites the proof).
 * Not the mode SN_DOWN for sums: its exact zero is -0, and the machine's +0. Operands of binary64 are added in this way
 * if what overflows is rounded as an infinity is. */
#ifndef SOFTNUM_SCALAR_H
#define SOFTNUM_SCALAR_H

#include "softnum/device/device.h"
#include "softnum/device/patterns.h"

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define SN_TABLE static __device__ const
#else
#define SN_TABLE static const
#endif

/* The result z of an operation on binary32 numbers, exact or rounded to odd, in a format that binary32 holds. A NaN
 * where the format has no code. */
SN_FN float sn_settled32(const sn_pattern *p, double z, sn_u32 random) {
    const sn_u64 bits = sn_bits64(z);
    if (sn_no_result64(p, bits)) return sn_float32(0x7fc00000u);
    return sn_narrow(sn_float64(sn_round_pattern64(p, bits, random)));
}

/* The same in binary64. */
SN_FN double sn_settled64(const sn_pattern *p, double z, sn_u32 random) {
    const sn_u64 bits = sn_bits64(z);
    if (sn_no_result64(p, bits)) return sn_float64(0x7ff8000000000000u);
    return sn_float64(sn_round_pattern64(p, bits, random));
}

#endif

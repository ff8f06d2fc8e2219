/* functions.h for kernels, where each function stays one: a device's linker inlines what it is given, and so makes of
 * tanh(x) + exp(-x) hundreds of copies of a product of long numbers, in minutes and gigabytes. The calls cost little
 * beside the loops that they go to. What was included before this file stays as it is. */
#ifndef SOFTNUM_DEVICE_FUNCTIONS_H
#define SOFTNUM_DEVICE_FUNCTIONS_H

#include "softnum/device/device.h"

#if defined(__CUDACC_RTC__)
#undef SN_FN
#define SN_FN static __device__ __noinline__

SN_FN sn_u64 sn_round_pack_once(const sn_format *f, const sn_env *env, const sn_exact *x, sn_u32 random,
                                sn_u32 *flags) {
    return sn_round_pack(f, env, x, random, flags);
}

SN_FN sn_u64 sn_u128_divide_once(sn_u128 n, sn_u64 d, sn_u64 *rest) { return sn_u128_divide(n, d, rest); }

#define sn_round_pack sn_round_pack_once
#define sn_u128_divide sn_u128_divide_once
#endif

#include "softnum/elementary/functions.h"

#if defined(__CUDACC_RTC__)
#undef sn_round_pack
#undef sn_u128_divide
#undef SN_FN
#define SN_FN static __device__ inline
#endif

#endif

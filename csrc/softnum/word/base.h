/* Integer types, the function prefix, and 128-bit integers, in the common subset of C11 and C++17.
 *
 * NVRTC compiles this text as device code and has no <stdint.h>, no __int128 and no __builtin_clz, so the core defines
 * its own. Define SN_FN in front of the first include to change how functions are declared. */
#ifndef SOFTNUM_BASE_H
#define SOFTNUM_BASE_H

#if defined(__CUDACC_RTC__)
typedef unsigned char sn_u8;
typedef unsigned short sn_u16;
typedef unsigned int sn_u32;
typedef unsigned long long sn_u64;
typedef int sn_i32;
typedef long long sn_i64;
#else
#include <stdint.h>
typedef uint8_t sn_u8;
typedef uint16_t sn_u16;
typedef uint32_t sn_u32;
typedef uint64_t sn_u64;
typedef int32_t sn_i32;
typedef int64_t sn_i64;
#endif

#ifndef SN_FN
#if defined(__CUDACC__)
#define SN_FN static __device__ inline
#else
#define SN_FN static inline
#endif
#endif

/* What a kernel's entry functions begin with. */
#ifndef SN_ENTRY
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define SN_ENTRY extern "C" __device__
#elif defined(__cplusplus)
#define SN_ENTRY extern "C"
#else
#define SN_ENTRY extern
#endif
#endif

/* For loops whose constants must fold, and for what must stay out of them. */
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define SN_ALWAYS static __device__ __forceinline__
#define SN_NOINLINE
#elif defined(__GNUC__)
#define SN_ALWAYS static inline __attribute__((always_inline))
#define SN_NOINLINE __attribute__((noinline))
#else
#define SN_ALWAYS static inline
#define SN_NOINLINE
#endif

#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__) && defined(__SIZEOF_INT128__)
#define SN_NATIVE_128 1
#else
#define SN_NATIVE_128 0
#endif

typedef struct {
    sn_u64 hi, lo;
} sn_u128;

/* Number of bits up to the highest set one; 0 for 0. */
SN_FN sn_i32 sn_bit_length(sn_u64 x) {
#if defined(__GNUC__) && !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
    return x ? 64 - __builtin_clzll(x) : 0;
#else
    sn_i32 n = 0;
    for (sn_i32 step = 32; step; step >>= 1)
        if (x >> step) {
            x >>= step;
            n += step;
        }
    return x ? n + 1 : 0;
#endif
}

SN_FN sn_u128 sn_u128_make(sn_u64 hi, sn_u64 lo) {
    sn_u128 r;
    r.hi = hi;
    r.lo = lo;
    return r;
}

SN_FN sn_i32 sn_u128_is_zero(sn_u128 a) { return (a.hi | a.lo) == 0; }

SN_FN sn_i32 sn_u128_less(sn_u128 a, sn_u128 b) { return a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo); }

SN_FN sn_i32 sn_u128_bit_length(sn_u128 a) { return a.hi ? 64 + sn_bit_length(a.hi) : sn_bit_length(a.lo); }

/* a + b modulo 2^128. */
SN_FN sn_u128 sn_u128_add(sn_u128 a, sn_u128 b) {
    sn_u64 lo = a.lo + b.lo;
    return sn_u128_make(a.hi + b.hi + (lo < a.lo), lo);
}

/* a - b modulo 2^128. */
SN_FN sn_u128 sn_u128_sub(sn_u128 a, sn_u128 b) { return sn_u128_make(a.hi - b.hi - (a.lo < b.lo), a.lo - b.lo); }

#if SN_NATIVE_128
__extension__ typedef unsigned __int128 sn_native_128;

SN_FN sn_native_128 sn_u128_native(sn_u128 a) { return (sn_native_128)a.hi << 64 | a.lo; }

SN_FN sn_u128 sn_u128_of_native(sn_native_128 a) { return sn_u128_make((sn_u64)(a >> 64), (sn_u64)a); }
#endif

/* a * 2^n modulo 2^128, any n >= 0. */
SN_FN sn_u128 sn_u128_shl(sn_u128 a, sn_i32 n) {
    if (n >= 128) return sn_u128_make(0, 0);
#if SN_NATIVE_128
    return sn_u128_of_native(sn_u128_native(a) << n);
#else
    if (n >= 64) return sn_u128_make(a.lo << (n - 64), 0);
    if (n == 0) return a;
    return sn_u128_make((a.hi << n) | (a.lo >> (64 - n)), a.lo << n);
#endif
}

/* floor(a / 2^n), any n >= 0. */
SN_FN sn_u128 sn_u128_shr(sn_u128 a, sn_i32 n) {
    if (n >= 128) return sn_u128_make(0, 0);
#if SN_NATIVE_128
    return sn_u128_of_native(sn_u128_native(a) >> n);
#else
    if (n >= 64) return sn_u128_make(0, a.hi >> (n - 64));
    if (n == 0) return a;
    return sn_u128_make(a.hi >> n, (a.lo >> n) | (a.hi << (64 - n)));
#endif
}

/* Whether any of the low n bits of a is set, any n. */
SN_FN sn_i32 sn_u128_low_bits(sn_u128 a, sn_i32 n) {
    if (n <= 0) return 0;
    if (n >= 128) return !sn_u128_is_zero(a);
    return !sn_u128_is_zero(sn_u128_shl(a, 128 - n));
}

/* The full product of two 64-bit integers. */
SN_FN sn_u128 sn_u128_mul(sn_u64 a, sn_u64 b) {
#if SN_NATIVE_128
    return sn_u128_of_native((sn_native_128)a * b);
#else
    sn_u64 a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
    sn_u64 low = a0 * b0, mid = a1 * b0 + (low >> 32), mid2 = a0 * b1 + (mid & 0xffffffffu);
    return sn_u128_make(a1 * b1 + (mid >> 32) + (mid2 >> 32), (mid2 << 32) | (low & 0xffffffffu));
#endif
}

#endif

/* The fast paths for CPUs with AVX-512 F, BW, DQ and VL. */
#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,bmi,bmi2,lzcnt,avx512f,avx512bw,avx512dq,avx512vl"))),    \
                             apply_to = function)
#else
#pragma GCC target("avx2,fma,bmi,bmi2,lzcnt,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#endif
#define SN_(name) name##_avx512
#define SN_BYTES 64
#define SN_FMA(x, y, z) (sn_vf) _mm512_fmadd_ps((__m512)(x), (__m512)(y), (__m512)(z))
#define SN_MAX(a, b) (sn_vi) _mm512_max_epi32((__m512i)(a), (__m512i)(b))
#define SN_MIN(a, b) (sn_vi) _mm512_min_epi32((__m512i)(a), (__m512i)(b))
#define SN_WHERE_GREATER(a, b, yes, no)                                                                                \
    (sn_vf) _mm512_mask_blend_ps(_mm512_cmp_ps_mask((__m512)(a), (__m512)(b), _CMP_GT_OQ), (__m512)(no), (__m512)(yes))
#define SN_ANY(mask) (_mm512_test_epi32_mask((__m512i)(mask), (__m512i)(mask)) != 0)
#include "gemm_body.h"

extern const sn_kernels sn_kernels_avx512;
const sn_kernels sn_kernels_avx512 = {"avx512", SN_(quantize32), SN_(quantize64), SN_(gemm32), SN_(gemm64)};
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int sn_no_avx512; /* ISO C wants a declaration */
#endif

/* The fast paths for CPUs with AVX2 and FMA. */
#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,bmi,bmi2,lzcnt"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,bmi,bmi2,lzcnt")
#endif
#define SN_(name) name##_avx2
#define SN_BYTES 32
#define SN_FMA(x, y, z) (sn_vf) _mm256_fmadd_ps((__m256)(x), (__m256)(y), (__m256)(z))
#define SN_MAX(a, b) (sn_vi) _mm256_max_epi32((__m256i)(a), (__m256i)(b))
#define SN_MIN(a, b) (sn_vi) _mm256_min_epi32((__m256i)(a), (__m256i)(b))
#define SN_WHERE_GREATER(a, b, yes, no)                                                                                \
    (sn_vf) _mm256_blendv_ps((__m256)(no), (__m256)(yes), _mm256_cmp_ps((__m256)(a), (__m256)(b), _CMP_GT_OQ))
#define SN_ANY(mask) (_mm256_movemask_epi8((__m256i)(mask)) != 0)
#include "gemm_body.h"

extern const sn_kernels sn_kernels_avx2;
const sn_kernels sn_kernels_avx2 = {"avx2", SN_(quantize32), SN_(quantize64), SN_(gemm32), SN_(gemm64)};
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int sn_no_avx2; /* ISO C wants a declaration */
#endif

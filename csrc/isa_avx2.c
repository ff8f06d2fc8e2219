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
#define SN_FMA(x, y, z) (sn_vf)_mm256_fmadd_ps((__m256)(x), (__m256)(y), (__m256)(z))
#include "gemm_body.h"
#include "isa.h"
#include "quantize_body.h"

extern const sn_kernels sn_kernels_avx2;
const sn_kernels sn_kernels_avx2 = {"avx2", SN_(quantize32), SN_(gemm32), SN_(gemm64)};
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int sn_no_avx2; /* ISO C wants a declaration */
#endif

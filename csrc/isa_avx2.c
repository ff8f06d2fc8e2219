/* The fast paths for CPUs with AVX2 and FMA. */
#include <string.h>

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,bmi,bmi2,lzcnt"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,bmi,bmi2,lzcnt")
#endif
#include "isa.h"
#define SN_(name) name##_avx2
#define SN_FMA(x, y, z) __builtin_fmaf(x, y, z)
#include "quantize_body.h"
#include "gemm_body.h"

const sn_kernels sn_kernels_avx2 = {"avx2", SN_(quantize32), SN_(gemm32), SN_(gemm64)};
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int sn_no_avx2; /* ISO C wants a declaration */
#endif

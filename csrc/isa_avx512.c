/* The fast paths for CPUs with AVX-512 F, BW, DQ and VL. */
#include <string.h>

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,bmi,bmi2,lzcnt,avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,bmi,bmi2,lzcnt,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#endif
#include "isa.h"
#define SN_(name) name##_avx512
#define SN_FMA(x, y, z) __builtin_fmaf(x, y, z)
#include "quantize_body.h"
#include "gemm_body.h"

const sn_kernels sn_kernels_avx512 = {"avx512", SN_(quantize32), SN_(gemm32), SN_(gemm64)};
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int sn_no_avx512; /* ISO C wants a declaration */
#endif

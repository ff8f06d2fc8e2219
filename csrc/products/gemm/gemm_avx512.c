/* GEMM for CPUs with AVX-512 F, BW, CD, DQ and VL. */
#if defined(__x86_64__)
#include "lanes/avx512.h"

#include "products/gemm/body.h"

extern const sn_gemm_kernels sn_gemm_kernels_avx512;
const sn_gemm_kernels sn_gemm_kernels_avx512 = {SN_(gemm32), SN_(gemm64), SN_(integers)};
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int sn_no_gemm_avx512; /* ISO C wants a declaration */
#endif

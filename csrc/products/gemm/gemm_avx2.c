/* GEMM for CPUs with AVX2 and FMA. */
#if defined(__x86_64__)
#include "lanes/avx2.h"

#include "products/gemm/body.h"

extern const sn_gemm_kernels sn_gemm_kernels_avx2;
const sn_gemm_kernels sn_gemm_kernels_avx2 = {SN_(gemm32), SN_(gemm64), SN_(integers)};
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int sn_no_gemm_avx2; /* ISO C wants a declaration */
#endif

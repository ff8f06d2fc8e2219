/* Exact sums for CPUs with AVX-512 F, BW, CD, DQ and VL. */
#if defined(__x86_64__)
#include "lanes/avx512.h"

#define SN_FMA64(x, y, z) (sn_wf) _mm512_fmadd_pd((__m512d)(x), (__m512d)(y), (__m512d)(z))
#define SN_FMS64(x, y, z) (sn_wf) _mm512_fmsub_pd((__m512d)(x), (__m512d)(y), (__m512d)(z))
#include "products/exact/body.h"

extern const sn_exact_kernels sn_exact_kernels_avx512;
const sn_exact_kernels sn_exact_kernels_avx512 = {SN_(exact_gemm)};
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int sn_no_exact_avx512; /* ISO C wants a declaration */
#endif

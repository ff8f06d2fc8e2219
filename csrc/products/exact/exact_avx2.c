/* Exact sums for CPUs with AVX2 and FMA. */
#if defined(__x86_64__)
#include "lanes/avx2.h"

#define SN_FMA64(x, y, z) (sn_wf) _mm256_fmadd_pd((__m256d)(x), (__m256d)(y), (__m256d)(z))
#define SN_FMS64(x, y, z) (sn_wf) _mm256_fmsub_pd((__m256d)(x), (__m256d)(y), (__m256d)(z))
#include "products/exact/body.h"

extern const sn_exact_kernels sn_exact_kernels_avx2;
const sn_exact_kernels sn_exact_kernels_avx2 = {SN_(exact_gemm)};
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int sn_no_exact_avx2; /* ISO C wants a declaration */
#endif

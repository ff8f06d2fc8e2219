/* Products of block formats for CPUs with AVX2 and FMA. */
#if defined(__x86_64__)
#include "lanes/avx2.h"

#define SN_FMA64(x, y, z) (sn_wf) _mm256_fmadd_pd((__m256d)(x), (__m256d)(y), (__m256d)(z))
#define SN_FMS64(x, y, z) (sn_wf) _mm256_fmsub_pd((__m256d)(x), (__m256d)(y), (__m256d)(z))
#include "products/blocks/body.h"

extern const sn_block_kernels sn_block_kernels_avx2;
const sn_block_kernels sn_block_kernels_avx2 = {SN_(block_gemm), SN_(block_outer), SN_(block_finish)};
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int sn_no_block_avx2; /* ISO C wants a declaration */
#endif

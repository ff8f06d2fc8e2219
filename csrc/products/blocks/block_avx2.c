/* Products of block formats for CPUs with AVX2 and FMA. */
#if defined(__x86_64__)
#include "lanes/avx2.h"

#define SN_FMA64(x, y, z) (sn_wf) _mm256_fmadd_pd((__m256d)(x), (__m256d)(y), (__m256d)(z))
#define SN_FMS64(x, y, z) (sn_wf) _mm256_fmsub_pd((__m256d)(x), (__m256d)(y), (__m256d)(z))
#define SN_TRUNCATE64(x) (sn_wf) _mm256_round_pd((__m256d)(x), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
#include "products/blocks/body.h"
#include "products/blocks/groups.h"

extern const sn_block_kernels sn_block_kernels_avx2;
const sn_block_kernels sn_block_kernels_avx2 = {SN_(block_gemm), SN_(block_outer), SN_(block_finish)};

extern void sn_block_fused_avx2(const sn_block_fused_plan *p, const sn_block_fused_values *g);
void sn_block_fused_avx2(const sn_block_fused_plan *p, const sn_block_fused_values *g) {
    SN_(block_fused_groups)(p, g);
}
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int sn_no_block_avx2; /* ISO C wants a declaration */
#endif

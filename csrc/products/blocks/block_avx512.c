/* Products of block formats for CPUs with AVX-512 F, BW, CD, DQ and VL. */
#if defined(__x86_64__)
#include "lanes/avx512.h"

#define SN_FMA64(x, y, z) (sn_wf) _mm512_fmadd_pd((__m512d)(x), (__m512d)(y), (__m512d)(z))
#define SN_FMS64(x, y, z) (sn_wf) _mm512_fmsub_pd((__m512d)(x), (__m512d)(y), (__m512d)(z))
#define SN_TO_BINARY32(x) (sn_wf) _mm512_cvtps_pd(_mm512_cvtpd_ps((__m512d)(x))) /* compilers split the vector */
/* z + x * y, the product exact, rounded to odd: rounded down and up it is one number, or two neighbours, of which one
 * is odd; two zeros of which the upper is +0. */
#define SN_ADD_PRODUCT_ODD(x, y, z)                                                                                    \
    (sn_wf) _mm512_mask_blend_pd(                                                                                      \
        _mm512_test_epi64_mask((__m512i)SN_FMA64_TO(x, y, z, _MM_FROUND_TO_NEG_INF), _mm512_set1_epi64(1)),            \
        SN_FMA64_TO(x, y, z, _MM_FROUND_TO_POS_INF), SN_FMA64_TO(x, y, z, _MM_FROUND_TO_NEG_INF))
#define SN_FMA64_TO(x, y, z, mode)                                                                                     \
    _mm512_fmadd_round_pd((__m512d)(x), (__m512d)(y), (__m512d)(z), (mode) | _MM_FROUND_NO_EXC)
#define SN_TRUNCATE64(x) (sn_wf) _mm512_roundscale_pd((__m512d)(x), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
#include "products/blocks/body.h"
#include "products/blocks/groups.h"

extern const sn_block_kernels sn_block_kernels_avx512;
const sn_block_kernels sn_block_kernels_avx512 = {SN_(block_gemm), SN_(block_outer), SN_(block_finish)};

extern void sn_block_fused_avx512(const sn_block_fused_plan *p, const sn_block_fused_values *g);
void sn_block_fused_avx512(const sn_block_fused_plan *p, const sn_block_fused_values *g) {
    SN_(block_fused_groups)(p, g);
}
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int sn_no_block_avx512; /* ISO C wants a declaration */
#endif

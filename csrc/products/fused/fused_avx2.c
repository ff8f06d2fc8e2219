/* The fused dot-product-add for CPUs with AVX2 and FMA. */
#if defined(__x86_64__)
#include "lanes/avx2.h"

#define SN_FUSED_ROWS 2
#define SN_MAX16(a, b) (sn_vh) _mm256_max_epi16((__m256i)(a), (__m256i)(b))
#define SN_ADD16(a, b) (sn_vh) _mm256_adds_epi16((__m256i)(a), (__m256i)(b))
#include "products/fused/body.h"

#define SN_JAM(x) SN_(jam)(x)
SN_INLINE sn_vu SN_(jam)(sn_vf x) {
    const __m256 below = _mm256_floor_ps((__m256)x);
    return (sn_vu)_mm256_cvttps_epi32(below) | ((sn_vu)((sn_vf)below != x) & 1u);
}
#include "products/grouped/body.h"

extern void sn_fused_avx2(const sn_fused_plan *p, const sn_fused_values *g);
void sn_fused_avx2(const sn_fused_plan *p, const sn_fused_values *g) { SN_(fused_kernel)(p, g); }

extern void sn_grouped_avx2(const sn_grouped_plan *p, const sn_fused_values *g);
void sn_grouped_avx2(const sn_grouped_plan *p, const sn_fused_values *g) { SN_(grouped_kernel)(p, g); }
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int sn_no_fused_avx2; /* ISO C wants a declaration */
#endif

/* Products of matrices by exact, blocked and fused sums, for CPUs with AVX2 and FMA. */
#if defined(__x86_64__)
#include "lanes/avx2.h"

#define SN_FUSED_ROWS 2
#define SN_MAX16(a, b) (sn_vh) _mm256_max_epi16((__m256i)(a), (__m256i)(b))
#define SN_ADD16(a, b) (sn_vh) _mm256_adds_epi16((__m256i)(a), (__m256i)(b))
#define SN_JAM(x) SN_(jam)(x)
SN_INLINE sn_vu SN_(jam)(sn_vf x) {
    const __m256 below = _mm256_floor_ps((__m256)x);
    return (sn_vu)_mm256_cvttps_epi32(below) | ((sn_vu)((sn_vf)below != x) & 1u);
}
#define SN_TRUNCATE64(x) (sn_wf) _mm256_round_pd((__m256d)(x), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)

#include "targets/dots.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int sn_no_dots_avx2; /* ISO C wants a declaration */
#endif

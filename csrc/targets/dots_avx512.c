/* Products of matrices by exact, blocked and fused sums, for CPUs with AVX-512 F, BW, CD, DQ and VL. */
#if defined(__x86_64__)
#include "lanes/avx512.h"

#define SN_FUSED_ROWS 4
#define SN_MAX16(a, b) (sn_vh) _mm512_max_epi16((__m512i)(a), (__m512i)(b))
#define SN_TO_FLOAT(x) (sn_vf) _mm512_cvt_roundepi32_ps((__m512i)(x), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
#define SN_ADD16(a, b) (sn_vh) _mm512_adds_epi16((__m512i)(a), (__m512i)(b))
#define SN_DOWN64(x, k)                                                                                                \
    (sn_wf)(_mm512_add_round_pd((__m512d)(x), (__m512d)(k), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC) - (__m512d)(k))
#define SN_JAM(x) SN_(jam)(x)
SN_INLINE sn_vu SN_(jam)(sn_vf x) {
    const __m512i below = _mm512_cvt_roundps_epi32((__m512)x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    const __m512i above = _mm512_cvt_roundps_epi32((__m512)x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
    return (sn_vu)_mm512_ternarylogic_epi32(below, above, _mm512_set1_epi32(1), 0xf8); /* below | (above & 1) */
}
#define SN_ODD_SUM(x, y) SN_(odd_sum)((__m512)(x), (__m512)(y))
SN_INLINE sn_vf SN_(odd_sum)(__m512 x, __m512 y) {
    const __m512 lower = _mm512_add_round_ps(x, y, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    return SN_WHERE_ODD(lower, lower, _mm512_add_round_ps(x, y, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC));
}
#define SN_ODD_SUM64(x, y) SN_(odd_sum64)((__m512d)(x), (__m512d)(y))
SN_INLINE sn_wf SN_(odd_sum64)(__m512d x, __m512d y) {
    const __m512d lower = _mm512_add_round_pd(x, y, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    const __m512d upper = _mm512_add_round_pd(x, y, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
    return (sn_wf)_mm512_mask_blend_pd(_mm512_test_epi64_mask((__m512i)lower, _mm512_set1_epi64(1)), upper, lower);
}
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

#include "targets/dots.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int sn_no_dots_avx512; /* ISO C wants a declaration */
#endif

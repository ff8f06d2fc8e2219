/* Products of matrices under multiply-add units, for CPUs with AVX-512 F, BW, CD, DQ and VL. */
#if defined(__x86_64__)
#include "lanes/avx512.h"

/* What products/tapered/regimes.h is made of: the entry of each lane's last four bits, v + 1 where it has the bit,
 * v - w where x is not 0, else 0; x, a number, no larger, no smaller in magnitude. */
#define SN_LOOK_UP16_32(table, index)                                                                                  \
    (sn_vu) _mm512_permutexvar_epi32((__m512i)(index), _mm512_loadu_si512((const void *)(table)))
#define SN_ONE_MORE_IF32(v, x, bit)                                                                                    \
    (sn_vu) _mm512_mask_add_epi32((__m512i)(v), _mm512_test_epi32_mask((__m512i)(x), (__m512i)(bit)), (__m512i)(v),    \
                                  _mm512_set1_epi32(1))
#define SN_LESS_UNLESS_ZERO(v, w, x)                                                                                   \
    (sn_vu) _mm512_maskz_sub_epi32(_mm512_test_epi32_mask((__m512i)(x), _mm512_set1_epi32(0x7fffffff)), (__m512i)(v),  \
                                   (__m512i)(w))
#define SN_NO_LARGER(x, most) (sn_vf) _mm512_range_ps((__m512)(x), (__m512)(most), 2)    /* of magnitudes, min */
#define SN_NO_SMALLER(x, least) (sn_vf) _mm512_range_ps((__m512)(x), (__m512)(least), 3) /* max */
#define SN_TABLE_GATHERS

#include "targets/gemm.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int sn_no_gemm_avx512; /* ISO C wants a declaration */
#endif

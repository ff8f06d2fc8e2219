/* The vocabulary of isa.h for CPUs with AVX-512 F, BW, CD, DQ and VL. */
#ifndef SOFTNUM_ISA_AVX512_H
#define SOFTNUM_ISA_AVX512_H

#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(                                                                                          \
    __attribute__((target("avx2,fma,bmi,bmi2,lzcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512cd"))),                    \
    apply_to = function)
#else
#pragma GCC target("avx2,fma,bmi,bmi2,lzcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512cd,prefer-vector-width=512")
#endif
#define SN_(name) name##_avx512
#define SN_NAME "avx512"
#define SN_BYTES 64
#define SN_REGISTERS 32
#define SN_FMA(x, y, z) (sn_vf) _mm512_fmadd_ps((__m512)(x), (__m512)(y), (__m512)(z))
#define SN_MULTIPLY_ADD SN_FMA
#define SN_FMA64(x, y, z) (sn_wf) _mm512_fmadd_pd((__m512d)(x), (__m512d)(y), (__m512d)(z))
#define SN_FMS64(x, y, z) (sn_wf) _mm512_fmsub_pd((__m512d)(x), (__m512d)(y), (__m512d)(z))
#define SN_SUBTRACT_PRODUCT(x, y, z) (sn_vf) _mm512_fnmadd_ps((__m512)(x), (__m512)(y), (__m512)(z))
#define SN_OR_MASKED(a, b, mask) (sn_vf) _mm512_ternarylogic_epi32((__m512i)(a), (__m512i)(b), (__m512i)(mask), 0xf8)
#define SN_LARGER_MAGNITUDE(a, b) (sn_vf) _mm512_range_ps((__m512)(a), (__m512)(b), 3) /* 3: of magnitudes, max */
#define SN_FMA_ODD /* each instruction says how it rounds */
#define SN_FMA_BOTH(x, y, z, lower, upper)                                                                             \
    do {                                                                                                               \
        *(lower) = (sn_vf)_mm512_fmadd_round_ps((__m512)(x), (__m512)(y), (__m512)(z),                                 \
                                                _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);                            \
        *(upper) = (sn_vf)_mm512_fmadd_round_ps((__m512)(x), (__m512)(y), (__m512)(z),                                 \
                                                _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);                            \
    } while (0)
#define SN_FMA_BOTH64(x, y, z, lower, upper)                                                                           \
    do {                                                                                                               \
        *(lower) = (sn_wf)_mm512_fmadd_round_pd((__m512d)(x), (__m512d)(y), (__m512d)(z),                              \
                                                _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);                            \
        *(upper) = (sn_wf)_mm512_fmadd_round_pd((__m512d)(x), (__m512d)(y), (__m512d)(z),                              \
                                                _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);                            \
    } while (0)
#define SN_WHERE_ODD64(v, yes, no)                                                                                     \
    (sn_wf) _mm512_mask_blend_pd(_mm512_test_epi64_mask((__m512i)(v), _mm512_set1_epi64(1)), (__m512d)(no),            \
                                 (__m512d)(yes))
#define SN_WHERE_ODD(v, yes, no)                                                                                       \
    (sn_vf)                                                                                                            \
        _mm512_mask_blend_ps(_mm512_test_epi32_mask((__m512i)(v), _mm512_set1_epi32(1)), (__m512)(no), (__m512)(yes))
#define SN_MULTIPLY_PAIRS(a, b) (sn_vi) _mm512_madd_epi16((__m512i)(a), (__m512i)(b))
#define SN_CLAMP(v, least, most) (sn_vf) _mm512_max_ps(_mm512_min_ps((__m512)(v), (__m512)(most)), (__m512)(least))
#define SN_MAX(a, b) (sn_vi) _mm512_max_epi32((__m512i)(a), (__m512i)(b))
#define SN_MIN(a, b) (sn_vi) _mm512_min_epi32((__m512i)(a), (__m512i)(b))
#define SN_WHERE_GREATER(a, b, yes, no)                                                                                \
    (sn_vf) _mm512_mask_blend_ps(_mm512_cmp_ps_mask((__m512)(a), (__m512)(b), _CMP_GT_OQ), (__m512)(no), (__m512)(yes))
#define SN_LEFT32(a, n) (sn_vu) _mm512_sllv_epi32((__m512i)(a), (__m512i)(n))
#define SN_RIGHT32(a, n) (sn_vu) _mm512_srlv_epi32((__m512i)(a), (__m512i)(n))
#define SN_XOR_WHERE32(a, state, bit, b) /* a ^ b where the state has the bit, else a */                               \
    (sn_vu) _mm512_mask_xor_epi32((__m512i)(a), _mm512_test_epi32_mask((__m512i)(state), (__m512i)(bit)),              \
                                  (__m512i)(a), (__m512i)(b))
#define SN_EITHER_WAY32(a, n) (sn_vu) _mm512_rolv_epi32((__m512i)(a), (__m512i)(n))
#define SN_LEFT64(a, n) (sn_wu) _mm512_sllv_epi64((__m512i)(a), (__m512i)(n))
#define SN_RIGHT64(a, n) (sn_wu) _mm512_srlv_epi64((__m512i)(a), (__m512i)(n))
#define SN_ANY_GREATER32(a, b) (_mm512_cmpgt_epi32_mask((__m512i)(a), (__m512i)(b)) != 0)
#define SN_ANY_GREATER64(a, b) (_mm512_cmpgt_epi64_mask((__m512i)(a), (__m512i)(b)) != 0)
#define SN_MULTIPLY32(a, b) (sn_wu) _mm512_mul_epu32((__m512i)(a), (__m512i)(b))
#define SN_HIGH32(a) (sn_wu) _mm512_shuffle_epi32((__m512i)(a), 0xf5)
#define SN_EVEN_LANES(a, b) (sn_wu) _mm512_unpacklo_epi64((__m512i)(a), (__m512i)(b))
#define SN_ODD_LANES(a, b) (sn_wu) _mm512_unpackhi_epi64((__m512i)(a), (__m512i)(b))
#define SN_XOR3(a, b, c) (sn_wu) _mm512_ternarylogic_epi64((__m512i)(a), (__m512i)(b), (__m512i)(c), 0x96)
#define SN_JOIN_LOW32(a, b) SN_JOIN_HALVES(a, b, 0)
#define SN_JOIN_HIGH32(a, b) SN_JOIN_HALVES(a, b, 1)
#define SN_JOIN_HALVES(a, b, half)                                                                                     \
    (sn_wu) _mm512_permutex2var_epi32((__m512i)(a),                                                                    \
                                      _mm512_set_epi32(30 + half, 14 + half, 28 + half, 12 + half, 26 + half,          \
                                                       10 + half, 24 + half, 8 + half, 22 + half, 6 + half, 20 + half, \
                                                       4 + half, 18 + half, 2 + half, 16 + half, half),                \
                                      (__m512i)(b))
#define SN_LEADING_ZEROS32(a) (sn_vu) _mm512_lzcnt_epi32((__m512i)(a))
#define SN_LEADING_ZEROS64(a) (sn_wu) _mm512_lzcnt_epi64((__m512i)(a))
#define SN_LOOK_UP16(table, index)                                                                                     \
    (sn_wf) _mm512_permutex2var_pd(_mm512_loadu_pd(table), (__m512i)(index), _mm512_loadu_pd((table) + 8))
#define SN_GATHER64(table, index) (sn_wf) _mm512_i64gather_pd((__m512i)(index), table, 8)
#define SN_SQRT64(a) (sn_wf) _mm512_sqrt_pd((__m512d)(a))
#define SN_128(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define SN_256(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define SN_LOAD8_32(p) (sn_vu) _mm512_cvtepu8_epi32(SN_128(p))
#define SN_LOAD16_32(p) (sn_vu) _mm512_cvtepu16_epi32(SN_256(p))
#define SN_LOAD8_64(p) (sn_wu) _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(const void *)(p)))
#define SN_LOAD16_64(p) (sn_wu) _mm512_cvtepu16_epi64(SN_128(p))
#define SN_LOAD32_64(p) (sn_wu) _mm512_cvtepu32_epi64(SN_256(p))
#define SN_STORE8_32(p, v) _mm_storeu_si128((__m128i *)(void *)(p), _mm512_cvtepi32_epi8((__m512i)(v)))
#define SN_STORE16_32(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), _mm512_cvtepi32_epi16((__m512i)(v)))
#define SN_STORE8_64(p, v) _mm_storel_epi64((__m128i *)(void *)(p), _mm512_cvtepi64_epi8((__m512i)(v)))
#define SN_STORE16_64(p, v) _mm_storeu_si128((__m128i *)(void *)(p), _mm512_cvtepi64_epi16((__m512i)(v)))
#define SN_STORE32_64(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), _mm512_cvtepi64_epi32((__m512i)(v)))
#define SN_STREAM(p, v) _mm512_stream_si512((__m512i *)(void *)(p), (__m512i)(v))
#define SN_STREAM_END _mm_sfence
#include "lanes/isa.h"

#endif

/* The vocabulary of isa.h for CPUs with AVX2 and FMA. */
#ifndef SOFTNUM_ISA_AVX2_H
#define SOFTNUM_ISA_AVX2_H

#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,bmi,bmi2,lzcnt"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,bmi,bmi2,lzcnt")
#endif
#define SN_(name) name##_avx2
#define SN_NAME "avx2"
#define SN_BYTES 32
#define SN_REGISTERS 16
#define SN_FMA(x, y, z) (sn_vf) _mm256_fmadd_ps((__m256)(x), (__m256)(y), (__m256)(z))
#define SN_MULTIPLY_ADD SN_FMA
#define SN_FMA64(x, y, z) (sn_wf) _mm256_fmadd_pd((__m256d)(x), (__m256d)(y), (__m256d)(z))
#define SN_FMS64(x, y, z) (sn_wf) _mm256_fmsub_pd((__m256d)(x), (__m256d)(y), (__m256d)(z))
#define SN_SUBTRACT_PRODUCT(x, y, z) (sn_vf) _mm256_fnmadd_ps((__m256)(x), (__m256)(y), (__m256)(z))
#define SN_OR_MASKED(a, b, mask) (sn_vf)((sn_vu)(a) | ((sn_vu)(b) & (sn_vu)(mask)))
#define SN_ODD_ENTER() sn_fp_round(SN_FP_DOWN)
#define SN_ODD_LEAVE() sn_fp_round(SN_FP_NEAREST)
#define SN_FMA_BOTH(x, y, z, lower, upper)                                                                             \
    do {                                                                                                               \
        *(lower) = (sn_vf)_mm256_fmadd_ps((__m256)(x), (__m256)(y), (__m256)(z));                                      \
        *(upper) = (sn_vf)((sn_vu)_mm256_fnmsub_ps((__m256)(x), (__m256)(y), (__m256)(z)) ^ 0x80000000u);              \
    } while (0)
#define SN_FMA_BOTH64(x, y, z, lower, upper)                                                                           \
    do {                                                                                                               \
        *(lower) = (sn_wf)_mm256_fmadd_pd((__m256d)(x), (__m256d)(y), (__m256d)(z));                                   \
        *(upper) = (sn_wf)((sn_wu)_mm256_fnmsub_pd((__m256d)(x), (__m256d)(y), (__m256d)(z)) ^ 0x8000000000000000u);   \
    } while (0)
#define SN_WHERE_ODD64(v, yes, no) (sn_wf) _mm256_blendv_pd((__m256d)(no), (__m256d)(yes), (__m256d)((sn_wu)(v) << 63))
#define SN_WHERE_ODD(v, yes, no) (sn_vf) _mm256_blendv_ps((__m256)(no), (__m256)(yes), (__m256)((sn_vu)(v) << 31))
#define SN_MULTIPLY_PAIRS(a, b) (sn_vi) _mm256_madd_epi16((__m256i)(a), (__m256i)(b))
#define SN_CLAMP(v, least, most) (sn_vf) _mm256_max_ps(_mm256_min_ps((__m256)(v), (__m256)(most)), (__m256)(least))
#define SN_MAX(a, b) (sn_vi) _mm256_max_epi32((__m256i)(a), (__m256i)(b))
#define SN_MIN(a, b) (sn_vi) _mm256_min_epi32((__m256i)(a), (__m256i)(b))
#define SN_WHERE_GREATER(a, b, yes, no)                                                                                \
    (sn_vf) _mm256_blendv_ps((__m256)(no), (__m256)(yes), _mm256_cmp_ps((__m256)(a), (__m256)(b), _CMP_GT_OQ))
#define SN_LEFT32(a, n) (sn_vu) _mm256_sllv_epi32((__m256i)(a), (__m256i)(n))
#define SN_RIGHT32(a, n) (sn_vu) _mm256_srlv_epi32((__m256i)(a), (__m256i)(n))
#define SN_LEFT64(a, n) (sn_wu) _mm256_sllv_epi64((__m256i)(a), (__m256i)(n))
#define SN_RIGHT64(a, n) (sn_wu) _mm256_srlv_epi64((__m256i)(a), (__m256i)(n))
#define SN_ANY_GREATER32(a, b) (_mm256_movemask_epi8(_mm256_cmpgt_epi32((__m256i)(a), (__m256i)(b))) != 0)
#define SN_ANY_GREATER64(a, b) (_mm256_movemask_epi8(_mm256_cmpgt_epi64((__m256i)(a), (__m256i)(b))) != 0)
#define SN_MULTIPLY32(a, b) (sn_wu) _mm256_mul_epu32((__m256i)(a), (__m256i)(b))
#define SN_HIGH32(a) (sn_wu) _mm256_shuffle_epi32((__m256i)(a), 0xf5)
#define SN_EVEN_LANES(a, b) (sn_wu) _mm256_unpacklo_epi64((__m256i)(a), (__m256i)(b))
#define SN_ODD_LANES(a, b) (sn_wu) _mm256_unpackhi_epi64((__m256i)(a), (__m256i)(b))
#define SN_XOR3(a, b, c) ((a) ^ (b) ^ (c))
#define SN_JOIN_LOW32(a, b) (sn_wu) _mm256_blend_epi32((__m256i)(a), (__m256i)((b) << 32), 0xaa)
#define SN_JOIN_HIGH32(a, b) (sn_wu) _mm256_blend_epi32((__m256i)SN_HIGH32(a), (__m256i)(b), 0xaa)
#define SN_LOOK_UP16 SN_GATHER64
#define SN_GATHER64(table, index) (sn_wf) _mm256_i64gather_pd(table, (__m256i)(index), 8)
#define SN_SQRT64(a) (sn_wf) _mm256_sqrt_pd((__m256d)(a))
#define SN_128(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define SN_64(p) _mm_loadl_epi64((const __m128i *)(const void *)(p))
#define SN_LOAD8_32(p) (sn_vu) _mm256_cvtepu8_epi32(SN_64(p))
#define SN_LOAD16_32(p) (sn_vu) _mm256_cvtepu16_epi32(SN_128(p))
#define SN_LOAD8_64(p) (sn_wu) _mm256_cvtepu8_epi64(_mm_loadu_si32(p))
#define SN_LOAD16_64(p) (sn_wu) _mm256_cvtepu16_epi64(SN_64(p))
#define SN_LOAD32_64(p) (sn_wu) _mm256_cvtepu32_epi64(SN_128(p))
/* the wanted bytes to the front of each half, then the halves' fronts together */
#define SN_PICK(v, size, step)                                                                                         \
    _mm256_shuffle_epi8((__m256i)(v), _mm256_broadcastsi128_si256(SN_128(sn_pick_##size##_##step)))
#define SN_JOIN(v, order) _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(v, order))
#define SN_FRONTS _mm256_setr_epi32(0, 4, 1, 5, 0, 0, 0, 0)
#define SN_STORE8_32(p, v) _mm_storel_epi64((__m128i *)(void *)(p), SN_JOIN(SN_PICK(v, 1, 4), SN_FRONTS))
#define SN_STORE16_32(p, v)                                                                                            \
    _mm_storeu_si128((__m128i *)(void *)(p), SN_JOIN(SN_PICK(v, 2, 4), _mm256_setr_epi32(0, 1, 4, 5, 0, 0, 0, 0)))
#define SN_STORE8_64(p, v) _mm_storeu_si32(p, _mm_shufflelo_epi16(SN_JOIN(SN_PICK(v, 1, 8), SN_FRONTS), 0xf8))
#define SN_STORE16_64(p, v) _mm_storel_epi64((__m128i *)(void *)(p), SN_JOIN(SN_PICK(v, 2, 8), SN_FRONTS))
#define SN_STORE32_64(p, v)                                                                                            \
    _mm_storeu_si128((__m128i *)(void *)(p), SN_JOIN((__m256i)(v), _mm256_setr_epi32(0, 2, 4, 6, 0, 0, 0, 0)))
static const signed char sn_pick_1_4[16] = {0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
static const signed char sn_pick_2_4[16] = {0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1};
static const signed char sn_pick_1_8[16] = {0, 8, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
static const signed char sn_pick_2_8[16] = {0, 1, 8, 9, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
#define SN_STREAM(p, v) _mm256_stream_si256((__m256i *)(void *)(p), (__m256i)(v))
#define SN_STREAM_END _mm_sfence
#include "lanes/isa.h"

#endif

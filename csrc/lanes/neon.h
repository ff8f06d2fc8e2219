/* The vocabulary of isa.h for Arm's 64-bit processors: all of them have NEON, with fused multiply-adds. */
#ifndef SOFTNUM_ISA_NEON_H
#define SOFTNUM_ISA_NEON_H

#include <arm_neon.h>
#define SN_(name) name##_neon
#define SN_NAME "neon"
#define SN_BYTES 16
#define SN_REGISTERS 32
#define SN_F32(a) ((float32x4_t)(a))
#define SN_F64(a) ((float64x2_t)(a))
#define SN_U32(a) ((uint32x4_t)(a))
#define SN_U64(a) ((uint64x2_t)(a))
#define SN_S32(a) ((int32x4_t)(a))
#define SN_FMA(x, y, z) (sn_vf) vfmaq_f32(SN_F32(z), SN_F32(x), SN_F32(y))
#define SN_MULTIPLY_ADD SN_FMA
#define SN_FMA64(x, y, z) (sn_wf) vfmaq_f64(SN_F64(z), SN_F64(x), SN_F64(y))
#define SN_FMS64(x, y, z) (sn_wf)(-vfmsq_f64(SN_F64(z), SN_F64(x), SN_F64(y))) /* which signs of 0 do not matter to */
#define SN_SUBTRACT_PRODUCT(x, y, z) (sn_vf) vfmsq_f32(SN_F32(z), SN_F32(x), SN_F32(y))
#define SN_OR_MASKED(a, b, mask) (sn_vf) vbslq_u32(SN_U32(mask), SN_U32(b), SN_U32(a))
#define SN_ODD_ENTER() sn_fp_round(SN_FP_DOWN)
#define SN_ODD_LEAVE() sn_fp_round(SN_FP_NEAREST)
/* Signs are changed as bits: to a compiler -(-z - x * y) is z + x * y. */
#define SN_FMA_BOTH(x, y, z, lower, upper)                                                                             \
    do {                                                                                                               \
        *(lower) = SN_FMA(x, y, z);                                                                                    \
        *(upper) = (sn_vf)((sn_vu)SN_SUBTRACT_PRODUCT(x, y, (sn_vu)(z) ^ 0x80000000u) ^ 0x80000000u);                  \
    } while (0)
#define SN_FMA_BOTH64(x, y, z, lower, upper)                                                                           \
    do {                                                                                                               \
        *(lower) = SN_FMA64(x, y, z);                                                                                  \
        *(upper) = (sn_wf)((sn_wu)(sn_wf)vfmsq_f64(SN_F64((sn_wu)(z) ^ 0x8000000000000000u), SN_F64(x), SN_F64(y)) ^   \
                           0x8000000000000000u);                                                                       \
    } while (0)
#define SN_WHERE_ODD64(v, yes, no) (sn_wf) vbslq_u64(vtstq_u64(SN_U64(v), vdupq_n_u64(1)), SN_U64(yes), SN_U64(no))
#define SN_WHERE_ODD(v, yes, no) (sn_vf) vbslq_u32(vtstq_u32(SN_U32(v), vdupq_n_u32(1)), SN_U32(yes), SN_U32(no))
/* two lanes' products each, side by side */
#define SN_PAIRS int32x4x2_t
#define SN_ADD_PAIRS(acc, a, b)                                                                                        \
    do {                                                                                                               \
        (acc).val[0] = vmlal_s16((acc).val[0], vget_low_s16((int16x8_t)(a)), vget_low_s16((int16x8_t)(b)));            \
        (acc).val[1] = vmlal_high_s16((acc).val[1], (int16x8_t)(a), (int16x8_t)(b));                                   \
    } while (0)
#define SN_STORE_PAIRS(to, acc)                                                                                        \
    for (size_t v = 0; v < sizeof(acc) / sizeof(*(acc)); v++)                                                          \
    vst1q_s32((to) + 4 * v, vpaddq_s32((acc)[v].val[0], (acc)[v].val[1]))
#define SN_CLAMP(v, least, most) (sn_vf) vmaxq_f32(vminq_f32(SN_F32(v), SN_F32(most)), SN_F32(least))
#define SN_MAX(a, b) (sn_vi) vmaxq_s32(SN_S32(a), SN_S32(b))
#define SN_MIN(a, b) (sn_vi) vminq_s32(SN_S32(a), SN_S32(b))
#define SN_SELECT32(mask, yes, no) (sn_vu) vbslq_u32(SN_U32(mask), SN_U32(yes), SN_U32(no))
#define SN_SELECT64(mask, yes, no) (sn_wu) vbslq_u64(SN_U64(mask), SN_U64(yes), SN_U64(no))
#define SN_WHERE_GREATER(a, b, yes, no) (sn_vf) vbslq_u32(vcgtq_f32(SN_F32(a), SN_F32(b)), SN_U32(yes), SN_U32(no))
/* An instruction shifts by the lowest byte of a lane, to the right where that is negative: n as an unsigned number, but
 * no more than the lane has places. */
#define SN_PLACES(n, most) vminq_u32(SN_U32(n), vdupq_n_u32(most))
#define SN_LEFT32(a, n) (sn_vu) vshlq_u32(SN_U32(a), (int32x4_t)SN_PLACES(n, 32))
#define SN_RIGHT32(a, n) (sn_vu) vshlq_u32(SN_U32(a), vnegq_s32((int32x4_t)SN_PLACES(n, 32)))
#define SN_LEFT64(a, n) (sn_wu) vshlq_u64(SN_U64(a), (int64x2_t)SN_PLACES(n, 64))
#define SN_RIGHT64(a, n) (sn_wu) vshlq_u64(SN_U64(a), (int64x2_t)vnegq_s8((int8x16_t)SN_PLACES(n, 64)))
#define SN_EITHER_WAY32(a, n) (sn_vu) vshlq_u32(SN_U32(a), SN_S32(n))
#define SN_ANY_GREATER32(a, b) (vmaxvq_u32(SN_U32((sn_vi)(a) > (sn_vi)(b))) != 0)
#define SN_ANY_GREATER64(a, b) (vmaxvq_u32(SN_U32((sn_wi)(a) > (sn_wi)(b))) != 0)
#define SN_MULTIPLY32(a, b) (sn_wu) vmull_u32(vmovn_u64(SN_U64(a)), vmovn_u64(SN_U64(b)))
#define SN_HIGH32(a) (sn_wu) vshrq_n_u64(SN_U64(a), 32)
#define SN_EVEN_LANES(a, b) (sn_wu) vzip1q_u64(SN_U64(a), SN_U64(b))
#define SN_ODD_LANES(a, b) (sn_wu) vzip2q_u64(SN_U64(a), SN_U64(b))
#define SN_XOR3(a, b, c) ((a) ^ (b) ^ (c))
#define SN_JOIN_LOW32(a, b) (sn_wu) vtrn1q_u32(SN_U32(a), SN_U32(b))
#define SN_JOIN_HIGH32(a, b) (sn_wu) vtrn2q_u32(SN_U32(a), SN_U32(b))
#define SN_LEADING_ZEROS32(a) (sn_vu) vclzq_u32(SN_U32(a))
/* There are no gathers, and a table of 16 takes two look-ups by bytes, in four registers each: loads are as quick. */
#define SN_LOOK_UP16 SN_GATHER64
#define SN_GATHER64(table, index)                                                                                      \
    (sn_wf) vld1q_lane_f64(&(table)[(index)[1]], vdupq_lane_f64(vld1_f64(&(table)[(index)[0]]), 0), 1)
#define SN_SQRT64(a) (sn_wf) vsqrtq_f64(SN_F64(a))
#define SN_STREAM(p, v) memcpy(p, &(v), sizeof(v)) /* lines that are written whole are not read first anyway */
#define SN_STREAM_END() ((void)0)
#include "lanes/isa.h"

/* The codes of a few bytes, repeated in every lane: byte selection needs those of one lane. */
SN_INLINE uint8x16_t SN_(load2)(const char *p) {
    sn_u16 codes;
    memcpy(&codes, p, sizeof codes);
    return (uint8x16_t)vdupq_n_u16(codes);
}

SN_INLINE uint8x16_t SN_(load4)(const char *p) {
    sn_u32 codes;
    memcpy(&codes, p, sizeof codes);
    return (uint8x16_t)vdupq_n_u32(codes);
}

SN_INLINE uint8x8_t SN_(load8)(const char *p) {
    uint8x8_t codes;
    memcpy(&codes, p, sizeof codes);
    return codes;
}

SN_INLINE void SN_(store2)(char *p, uint8x16_t v) {
    const sn_u16 codes = vgetq_lane_u16((uint16x8_t)v, 0);
    memcpy(p, &codes, sizeof codes);
}

SN_INLINE void SN_(store4)(char *p, uint8x16_t v) {
    const sn_u32 codes = vgetq_lane_u32((uint32x4_t)v, 0);
    memcpy(p, &codes, sizeof codes);
}

/* Bytes of a vector put in their places; 255: 0. */
#define SN_PICK(v, ...) vqtbl1q_u8((uint8x16_t)(v), (uint8x16_t){__VA_ARGS__})
#define SN_255_3 255, 255, 255
#define SN_255_6 SN_255_3, SN_255_3
#define SN_LOAD8_32(p) (sn_vu) SN_PICK(SN_(load4)(p), 0, SN_255_3, 1, SN_255_3, 2, SN_255_3, 3, SN_255_3)
#define SN_LOAD16_32(p) (sn_vu) vmovl_u16((uint16x4_t)SN_(load8)(p))
#define SN_LOAD8_64(p) (sn_wu) SN_PICK(SN_(load2)(p), 0, SN_255_6, 255, 1, SN_255_6, 255)
#define SN_LOAD16_64(p) (sn_wu) SN_PICK(SN_(load4)(p), 0, 1, SN_255_6, 2, 3, SN_255_6)
#define SN_LOAD32_64(p) (sn_wu) vmovl_u32((uint32x2_t)SN_(load8)(p))
#define SN_STORE8_32(p, v) SN_(store4)(p, SN_PICK(v, 0, 4, 8, 12))
#define SN_STORE16_32(p, v) vst1_u8((sn_u8 *)(p), (uint8x8_t)vmovn_u32((uint32x4_t)(v)))
#define SN_STORE8_64(p, v) SN_(store2)(p, SN_PICK(v, 0, 8))
#define SN_STORE16_64(p, v) SN_(store4)(p, SN_PICK(v, 0, 1, 8, 9))
#define SN_STORE32_64(p, v) vst1_u8((sn_u8 *)(p), (uint8x8_t)vmovn_u64((uint64x2_t)(v)))

#endif

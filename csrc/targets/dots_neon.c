/* Products of matrices by exact, blocked and fused sums, for CPUs with NEON. */
#if defined(__aarch64__)
#include "lanes/neon.h"

#define SN_FUSED_ROWS 4
#define SN_MAX16(a, b) (sn_vh) vmaxq_s16((int16x8_t)(a), (int16x8_t)(b))
#define SN_ADD16(a, b) (sn_vh) vqaddq_s16((int16x8_t)(a), (int16x8_t)(b))
#define SN_TO_FLOAT(x) SN_(to_zero)((int32x4_t)(x))
/* To nearest, and a step back where that is larger in magnitude, of which 2^31 is an unsigned number. */
SN_INLINE float32x4_t SN_(to_zero)(int32x4_t x) {
    const float32x4_t f = vcvtq_f32_s32(x);
    const uint32x4_t beyond = vcgtq_u32(vcvtq_u32_f32(vabsq_f32(f)), (uint32x4_t)vabsq_s32(x));
    return (float32x4_t)((uint32x4_t)f + beyond);
}
/* By the conversion of binary64 that rounds to odd. */
#define SN_TO_FLOAT_ODD(x) SN_(to_odd)((int32x4_t)(x))
SN_INLINE float32x4_t SN_(to_odd)(int32x4_t x) {
    const float64x2_t low = vcvtq_f64_s64(vmovl_s32(vget_low_s32(x))), high = vcvtq_f64_s64(vmovl_high_s32(x));
    return vcvtx_high_f32_f64(vcvtx_f32_f64(low), high);
}
#define SN_JAM(x) SN_(jam)((float32x4_t)(x))
SN_INLINE sn_vu SN_(jam)(float32x4_t x) {
    return (sn_vu)vcvtmq_s32_f32(x) | ((sn_vu)vcvtpq_s32_f32(x) & 1u); /* the integers below and above */
}
#define SN_TRUNCATE64(x) (sn_wf) vrndq_f64(SN_F64(x))

#include "targets/dots.h"
#else
typedef int sn_no_dots_neon; /* ISO C wants a declaration */
#endif

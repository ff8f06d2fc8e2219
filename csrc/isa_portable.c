/* The fast paths for any CPU. */
#define SN_(name) name##_portable
#define SN_BYTES 16
#define SN_FMA(x, y, z) SN_(fma)(x, y, z)
#define SN_MAX(a, b) (sn_vi) SN_SELECT32((a) > (b), a, b)
#define SN_MIN(a, b) (sn_vi) SN_SELECT32((a) < (b), a, b)
#define SN_WHERE_GREATER(a, b, yes, no) (sn_vf) SN_SELECT32((a) > (b), yes, no)
#define SN_ANY(mask) SN_(any)((sn_vi)(mask))
#include "gemm_body.h"

extern const sn_kernels sn_kernels_portable;
const sn_kernels sn_kernels_portable = {"portable", SN_(quantize32), SN_(quantize64), SN_(gemm32), SN_(gemm64)};

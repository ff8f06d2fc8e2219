/* The fast paths for any CPU. */
#include <string.h>

#include "isa.h"
#define SN_(name) name##_portable
#define SN_FMA(x, y, z) (float)SN_(add_odd)((double)(x) * (double)(y), (double)(z))
#include "quantize_body.h"
#include "gemm_body.h"

const sn_kernels sn_kernels_portable = {"portable", SN_(quantize32), SN_(gemm32), SN_(gemm64)};

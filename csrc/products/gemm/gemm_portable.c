/* GEMM for any CPU. */
#include "lanes/portable.h"

#include "products/gemm/body.h"

extern const sn_gemm_kernels sn_gemm_kernels_portable;
const sn_gemm_kernels sn_gemm_kernels_portable = {SN_(gemm32), SN_(gemm64), SN_(integers)};

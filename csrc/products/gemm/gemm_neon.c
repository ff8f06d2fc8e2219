/* GEMM for CPUs with NEON. */
#if defined(__aarch64__)
#include "lanes/neon.h"

#include "products/gemm/body.h"

extern const sn_gemm_kernels sn_gemm_kernels_neon;
const sn_gemm_kernels sn_gemm_kernels_neon = {SN_(gemm32), SN_(gemm64), SN_(integers)};
#else
typedef int sn_no_gemm_neon; /* ISO C wants a declaration */
#endif

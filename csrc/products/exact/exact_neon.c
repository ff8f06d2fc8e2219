/* Exact sums for CPUs with NEON. */
#if defined(__aarch64__)
#include "lanes/neon.h"

#include "products/exact/body.h"

extern const sn_exact_kernels sn_exact_kernels_neon;
const sn_exact_kernels sn_exact_kernels_neon = {SN_(exact_gemm)};
#else
typedef int sn_no_exact_neon; /* ISO C wants a declaration */
#endif

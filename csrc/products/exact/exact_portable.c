/* Exact sums for any CPU. A product is exact, so that a CPU without fma loses nothing. */
#include "lanes/portable.h"

#define SN_FMA64(x, y, z) ((x) * (y) + (z))
#define SN_FMS64(x, y, z) ((x) * (y) - (z))
#include "products/exact/body.h"

extern const sn_exact_kernels sn_exact_kernels_portable;
const sn_exact_kernels sn_exact_kernels_portable = {SN_(exact_gemm)};

/* Drawing operands on CPUs with AVX2 and FMA. */
#if defined(__x86_64__)
#include "lanes/avx2.h"

#include "draw/body.h"

extern const sn_draw_kernels sn_draw_kernels_avx2;
const sn_draw_kernels sn_draw_kernels_avx2 = SN_DRAW_KERNELS;
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int sn_no_draw_avx2; /* ISO C wants a declaration */
#endif

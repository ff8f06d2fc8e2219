/* Drawing operands on CPUs with AVX-512 F, BW, CD, DQ and VL. */
#if defined(__x86_64__)
#include "lanes/avx512.h"

#include "draw/body.h"

extern const sn_draw_kernels sn_draw_kernels_avx512;
const sn_draw_kernels sn_draw_kernels_avx512 = SN_DRAW_KERNELS;
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int sn_no_draw_avx512; /* ISO C wants a declaration */
#endif

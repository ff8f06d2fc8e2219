/* Drawing operands on CPUs with NEON. */
#if defined(__aarch64__)
#include "lanes/neon.h"

#include "draw/body.h"

extern const sn_draw_kernels sn_draw_kernels_neon;
const sn_draw_kernels sn_draw_kernels_neon = SN_DRAW_KERNELS;
#else
typedef int sn_no_draw_neon; /* ISO C wants a declaration */
#endif

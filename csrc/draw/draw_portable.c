/* Drawing operands on any CPU. */
#include "lanes/portable.h"

#include "draw/body.h"

extern const sn_draw_kernels sn_draw_kernels_portable;
const sn_draw_kernels sn_draw_kernels_portable = SN_DRAW_KERNELS;

/* Products of block formats for any CPU. A product is exact, so that a CPU without fma loses nothing. */
#include "lanes/portable.h"

#define SN_FMA64(x, y, z) ((x) * (y) + (z))
#define SN_FMS64(x, y, z) ((x) * (y) - (z))
#include "products/blocks/body.h"
#include "products/blocks/groups.h"

extern const sn_block_kernels sn_block_kernels_portable;
const sn_block_kernels sn_block_kernels_portable = {SN_(block_gemm), SN_(block_outer), SN_(block_finish)};

extern void sn_block_fused_portable(const sn_block_fused_plan *p, const sn_block_fused_values *g);
void sn_block_fused_portable(const sn_block_fused_plan *p, const sn_block_fused_values *g) {
    SN_(block_fused_groups)(p, g);
}

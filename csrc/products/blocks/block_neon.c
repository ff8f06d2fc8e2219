/* Products of block formats for CPUs with NEON. */
#if defined(__aarch64__)
#include "lanes/neon.h"

#define SN_TRUNCATE64(x) (sn_wf) vrndq_f64(SN_F64(x))
#include "products/blocks/body.h"
#include "products/blocks/groups.h"

extern const sn_block_kernels sn_block_kernels_neon;
const sn_block_kernels sn_block_kernels_neon = {SN_(block_gemm), SN_(block_outer), SN_(block_finish)};

extern void sn_block_fused_neon(const sn_block_fused_plan *p, const sn_block_fused_values *g);
void sn_block_fused_neon(const sn_block_fused_plan *p, const sn_block_fused_values *g) {
    SN_(block_fused_groups)(p, g);
}
#else
typedef int sn_no_block_neon; /* ISO C wants a declaration */
#endif

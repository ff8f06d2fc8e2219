/* Products of matrices by exact sums, sums of blocks, fused and grouped sums: all that targets/dots_*.c compile, once
 * per instruction set. */
#ifndef SOFTNUM_TARGETS_DOTS_H
#define SOFTNUM_TARGETS_DOTS_H

#include "products/blocks/body.h"
#include "products/blocks/groups.h"
#include "products/exact/body.h"
#include "products/fused/body.h"
#include "products/grouped/body.h"

SN_TARGET(const sn_block_kernels, sn_block_kernels) = {SN_(block_gemm), SN_(block_outer), SN_(block_finish)};
SN_TARGET(const sn_exact_kernels, sn_exact_kernels) = {SN_(exact_gemm)};
SN_TARGET(sn_block_fused_kernel, sn_block_fused_kernel);
void SN_(sn_block_fused_kernel)(const sn_block_fused_plan *p, const sn_block_fused_values *g) {
    SN_(block_fused_groups)(p, g);
}
SN_TARGET(sn_fused_kernel, sn_fused_kernel);
void SN_(sn_fused_kernel)(const sn_fused_plan *p, const sn_fused_values *g) { SN_(fused_kernel)(p, g); }
SN_TARGET(sn_grouped_kernel, sn_grouped_kernel);
void SN_(sn_grouped_kernel)(const sn_grouped_plan *p, const sn_fused_values *g) { SN_(grouped_kernel)(p, g); }

#endif

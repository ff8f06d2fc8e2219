/* Products of matrices of block formats under a fused dot-product unit: the definition over codes, and fast paths over
 * carriers. */
#ifndef SOFTNUM_BLOCK_FUSED_ENGINE_H
#define SOFTNUM_BLOCK_FUSED_ENGINE_H

#include "products/blocks/block.h"
#include "products/codes.h"
#include "softnum/units/block_fused.h"

typedef struct {
    sn_block_fused_unit unit;
    sn_env tensor_env; /* of the step of the arrays' scales */
    sn_i32 tensor;     /* whether there is one, which adds C, no start of the sum then */
    sn_number tensor_a, tensor_b;
} sn_block_fused;

/* A part of a product as products/codes.h has it, and the scales: those of row 0, and of the part's first column. */
typedef struct {
    sn_product_codes codes;
    const sn_u64 *scale_a, *scale_b; /* rows of blocks, lds_a apart; blocks of columns, lds_b apart */
    ptrdiff_t lds_a, lds_b;
} sn_block_fused_codes;

/* What the tallies count: steps; what is scaled by the arrays' own scales. Bits that are cut off before do not make a
 * rounding inexact. */
enum { SN_BLOCK_FUSED_STEPS, SN_BLOCK_FUSED_TENSOR, SN_BLOCK_FUSED_TALLIES };

/* Nothing here is random. Returns 1 if a NaN had no code. */
sn_u32 sn_block_fused_definition(const sn_block_fused *u, const sn_block_fused_codes *g);

#endif

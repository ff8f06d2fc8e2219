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

/* ---- the fast path of groups, on carriers: products/blocks/groups.h states its domain
 * -----------------------------------
 */

enum { SN_BLOCK_GROUPS = 8 }; /* of a step, at most */

typedef struct {
    sn_block_fused_unit unit;
    sn_i32 powers;      /* scales are powers of two, which count with themselves */
    double floor_power; /* 2^(the least M) */
    double zero_power;  /* what a C of zero counts with; 0: it does not */
    sn_u64 keep;        /* the bits of a binary64 that a sum is cut to before it is rounded */
} sn_block_fused_plan;

/* The fast path of a unit into *p; 0 if it has none. */
int sn_block_fused_path(const sn_block_fused_unit *u, sn_block_fused_plan *p);

/* A part of a product, dense but for b and the scales of b, whose rows lie n_total apart; values, of scales magnitudes.
 * power_a, power_b: the powers of two that scales count with, 0 of one that does not, anything of a NaN; not read if
 * p->powers, but for power_a. */
typedef struct {
    const float *a, *b;              /* rows x k and k x n */
    const double *scale_a, *power_a; /* rows x blocks */
    const double *scale_b, *power_b; /* blocks x n */
    const float *c;                  /* rows x n, or null */
    float *out;                      /* rows x n */
    double *room;                    /* for (k + 2 * blocks) * SN_BLOCK_TILE values */
    ptrdiff_t rows, n, n_total, k, blocks;
} sn_block_fused_values;

typedef void sn_block_fused_kernel(const sn_block_fused_plan *p, const sn_block_fused_values *g);

/* That of an instruction set (SN_ISA_*); null if this build has none for it. */
sn_block_fused_kernel *sn_block_fused_kernel_for(int isa);

#endif

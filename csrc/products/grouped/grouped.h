/* Products of matrices under a unit that sums groups: the definition over codes (softnum/units/grouped.h), and fast
 * paths over binary32 carriers, one for each instruction set (products/grouped/body.h states their domain). */
#ifndef SOFTNUM_GROUPED_ENGINE_H
#define SOFTNUM_GROUPED_ENGINE_H

#include "products/codes.h"
#include "products/fused/fused.h"
#include "softnum/units/grouped.h"

/* Nothing here is random. Tallies: of partial sums, and of the additions to the accumulator. Returns a bit for each
 * rounding that met a NaN without a code in its format: 1 accumulator, 2 partial. */
sn_u32 sn_grouped_definition(const sn_grouped_unit *u, const sn_product_codes *g);

typedef struct {
    sn_grouped_unit unit;
    sn_fused_plan packing; /* what packed operands ask of a plan */
    sn_i32 wide;           /* sums of groups may have more than 32 bits */
} sn_grouped_plan;

/* The fast path of a unit into *p; 0 if it has none. */
int sn_grouped_path(const sn_grouped_unit *u, sn_grouped_plan *p);

typedef void (*sn_grouped_kernel)(const sn_grouped_plan *p, const sn_fused_values *g);

/* That of an instruction set (SN_ISA_*); null if this build has none for it. */
sn_grouped_kernel sn_grouped_kernel_for(int isa);

/* One element by the definition: what the fast paths leave. */
float sn_grouped_value(const sn_grouped_plan *p, const sn_fused_values *g, ptrdiff_t row, ptrdiff_t column);

#endif

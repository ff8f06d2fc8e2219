/* Products of matrices under a unit that sums groups: the definition over codes (softnum/units/grouped.h), and fast
 * paths over binary32 carriers, one for each instruction set (products/grouped/body.h and plain.h state their domain).
 */
#ifndef SOFTNUM_GROUPED_ENGINE_H
#define SOFTNUM_GROUPED_ENGINE_H

#include "products/codes.h"
#include "products/fused/fused.h"
#include "softnum/units/grouped.h"

/* Nothing here is random. Tallies: of partial sums, and of the additions to the accumulator. Returns a bit for each
 * rounding that met a NaN without a code in its format: 1 accumulator, 2 partial. */
sn_u32 sn_grouped_definition(const sn_grouped_unit *u, const sn_product_codes *g);

/* How a fast path computes. Bulk-normalized sums: LONG, of groups whose sums may have more than 32 bits; ODD, added to
 * odd. Others: plain.h. */
enum {
    SN_GROUPS_BULK = 0,
    SN_GROUPS_LONG = 1,
    SN_GROUPS_ODD = 2,
    SN_GROUPS_STEPS = 4,
    SN_GROUPS_FUSED,
    SN_GROUPS_NARROW,
    SN_GROUPS_WIDE,
    SN_GROUPS_WIDE_NARROW /* the accumulator is not binary32 */
};

typedef struct {
    sn_grouped_unit unit;
    sn_fused_plan packing; /* what packed operands ask of a plan */
    sn_i32 how;            /* SN_GROUPS_* */
    sn_i32 reach;          /* how far apart the exponents of products may lie */
    sn_i32 least_operand;  /* the exponent of operands that are not zero */
    sn_u32 most_bits;      /* the largest magnitude of sums, as binary32 */
    sn_u64 most_bits64;    /* and as binary64 */
    float least_start;     /* what a C other than 0 is at least; 0 where any will do */
    double scale;          /* what products are multiplied by */
    double constant;       /* times a power of two, what rounds by addition to that power's last place */
} sn_grouped_plan;

/* The fast path of a unit into *p; 0 if it has none. */
int sn_grouped_path(const sn_grouped_unit *u, sn_grouped_plan *p);

typedef void sn_grouped_kernel(const sn_grouped_plan *p, const sn_fused_values *g);

/* That of an instruction set (SN_ISA_*); null if this build has none for it. */
sn_grouped_kernel *sn_grouped_kernel_for(int isa);

/* One element by the definition: what the fast paths leave. */
float sn_grouped_value(const sn_grouped_plan *p, const sn_fused_values *g, ptrdiff_t row, ptrdiff_t column);

#endif

/* Products of matrices under a fused dot-product unit: the definition over codes (softnum/units/fused.h), and fast
 * paths over binary32 carriers, one for each instruction set (products/fused/body.h states their domain). */
#ifndef SOFTNUM_FUSED_ENGINE_H
#define SOFTNUM_FUSED_ENGINE_H

#include <stddef.h>

#include "dispatch/kernels.h"
#include "products/codes.h"
#include "softnum/units/block_fused.h"
#include "softnum/units/chain.h"
#include "softnum/units/fused.h"
#include "softnum/units/two_stage.h"

/* What the tallies of a definition count: steps, the last one too if its format is the accumulator; what is rounded
 * into another output; additions of C after. Bits that are cut off before do not make a rounding inexact. */
enum { SN_FUSED_TALLIES = 3 }; /* SN_FUSED_TO_ACCUMULATOR ... */

/* Nothing here is random. Returns a bit for each rounding that met a NaN without a code in its format: 1 accumulator, 2
 * output. */
sn_u32 sn_fused_definition(const sn_fused_unit *u, const sn_product_codes *g);

/* The same for a chain of fused multiply-adds, whose one tally is of them all; 1 if a NaN had no code. */
sn_u32 sn_chain_definition(const sn_chain_unit *u, const sn_product_codes *g);

/* The same for a dot-product-add in two stages. */
sn_u32 sn_two_stage_definition(const sn_two_stage_unit *w, const sn_product_codes *g);

/* What the fast path knows of a unit whose accumulator is its output. Exponents are biased by 127. */
typedef struct {
    sn_fused_unit unit;
    sn_i32 least_a, least_b, least_c; /* exponents that subnormals have */
    sn_i32 floor;                     /* of M */
    sn_u32 zero_a, zero_b;            /* exponents of zeros, as products/fused/body.h packs them */
    sn_i32 low, high;                 /* what products' exponents must keep within, not biased */
    sn_i32 nearest;                   /* sums are rounded to nearest even; else toward zero, to binary32 */
    sn_i32 may_carry;                 /* products and C may add up to 2^31 */
    sn_i32 group;                     /* then: as many products as cannot */
    sn_u32 keep;                      /* toward zero: the bits of a binary32 that are kept */
    sn_u32 to_constant;               /* nearest: what added to the exponent field of x makes 1.5 * 2^(E + 23 - m) */
    sn_i32 bounded;                   /* sums cannot overflow */
    float limit;                      /* the accumulator's largest value */
    float most_start;                 /* C must be no larger, in magnitude */
    float least_start;                /* C must be zero or no smaller, in magnitude */
    sn_i32 two_stage;                 /* the unit is `stages`, whose fused part is `unit` */
    sn_two_stage_unit stages;
    const sn_block_fused_unit
        *blocks; /* null, or the unit whose operands have scales: powers of two, sn_fused_values */
} sn_fused_plan;

/* The fast path of a unit into *p; 0 if it has none: the domain that products/fused/body.h states. */
int sn_fused_path(const sn_fused_unit *u, sn_fused_plan *p);

/* The same of a unit in two stages (products/fused/stages.h). */
int sn_two_stage_path(const sn_two_stage_unit *w, sn_fused_plan *p);

/* The same of a unit of block formats, each of whose products is a term; the plan keeps the pointer. */
int sn_fused_path_of_blocks(const sn_block_fused_unit *u, sn_fused_plan *p);

/* As sn_product_codes, on float32 carriers; NaNs out are canonical. With a plan of blocks: elements, and the exponents
 * of their scales, which are powers of two, or SN_FUSED_NAN_SHIFT of one that is NaN. */
enum { SN_FUSED_NAN_SHIFT = 16384 };
typedef struct {
    const float *a, *b, *c;
    float *out;
    ptrdiff_t lda, ldb, ldc, ldo;
    ptrdiff_t m0, m1, n, k;
    const sn_i32 *shift_a, *shift_b; /* rows of blocks, and blocks of columns, as codes of scales lie */
    ptrdiff_t lds_a, lds_b;
} sn_fused_values;

typedef void sn_fused_kernel(const sn_fused_plan *p, const sn_fused_values *g);

/* That of an instruction set (SN_ISA_*); null if this build has none for it. */
sn_fused_kernel *sn_fused_kernel_for(int isa);

/* Whether packed operands may have a format: exponents as binary32's or narrower, and subnormals. */
int sn_fused_is_usual(const sn_format *f);

/* The code of a carrier that is a value of the format. */
sn_u64 sn_fused_code(const sn_format *f, float x);

/* One element by the definition: what the fast paths leave. */
float sn_fused_value(const sn_fused_plan *p, const sn_fused_values *g, ptrdiff_t row, ptrdiff_t column);

#endif

/* Units that were named when the library was built (`softnum rtl build --unit NAME=UNIT`). Internal. */
#ifndef SOFTNUM_DPI_BUILT_H
#define SOFTNUM_DPI_BUILT_H

#include "names.h"

#include <stddef.h>

#include "softnum/units/block_fused.h"
#include "softnum/units/block_steps.h"
#include "softnum/units/chain.h"
#include "softnum/units/fused.h"
#include "softnum/units/grouped.h"
#include "softnum/units/mad.h"
#include "softnum/units/two_stage.h"

enum {
    SOFTNUM_MAD,
    SOFTNUM_FUSED,
    SOFTNUM_CHAIN,
    SOFTNUM_GROUPED,
    SOFTNUM_TWO_STAGE,
    SOFTNUM_EXACT,
    SOFTNUM_BLOCK,
    SOFTNUM_BLOCK_FUSED
};

/* A sum of exact products, rounded once: softnum/units/kulisch.h. */
typedef struct {
    sn_format accumulator;
    sn_env env;
    sn_i32 bottom, words;
    sn_source random;
} softnum_exact_unit;

/* Sums of blocks, scaled and added: softnum/units/block_steps.h. */
typedef struct {
    sn_format inner_format, product, accumulator;
    sn_env product_env, sum_env;
    sn_i32 inner; /* the number of the unit that sums a block's products; -1: they are added exactly */
    sn_i32 rounds_product, bottom, plain, words;
    sn_source random;
} softnum_block_unit;

/* A unit: its kind, the formats of a, b and c, and what the definition of that kind takes. */
typedef struct {
    sn_i32 kind;
    sn_format a, b, c;
    /* of a or b that is a table of values: the binary64 of each code, and the bits of a code; a or b is binary64 then
     */
    const sn_u64 *table_a, *table_b;
    sn_i32 table_bits_a, table_bits_b;
    /* of blocks: the formats of their scales, and of those of arrays, where `tensors` has bit 0 for a's, 1 for b's;
     * elements of a block, 0: all that there are; how the last step rounds */
    sn_format scale_a, scale_b, tensor_a, tensor_b;
    sn_i32 tensors, block;
    sn_env tensor_env;
    union {
        sn_mad_unit mad;
        sn_fused_unit fused;
        sn_chain_unit chain;
        sn_grouped_unit grouped;
        sn_two_stage_unit two_stage;
        softnum_exact_unit exact;
        softnum_block_unit block;
        sn_block_fused_unit block_fused;
    } of;
} softnum_built;

/* Their names, a null pointer after the last, and unit number i; behind those with names, units of blocks have theirs.
 */
extern const char *const softnum_built_names[];
void softnum_built_fill(sn_u64 i, softnum_built *unit);

/* The source of a unit's random bits, or null. */
const sn_source *softnum_built_source(const softnum_built *u);

/* Whether a unit takes the seed and the stream: of an LFSR that is numbered its number, below 2^32, and 0; else a
 * message. */
int softnum_built_seed(const char *who, const softnum_built *u, sn_u64 seed, sn_u64 stream);

/* Unit number `handle` into *u; 0 if there is none. */
int softnum_built_unit(sn_u64 handle, softnum_built *u);

/* A dot product of a unit of elements, and what it raised. */
sn_u64 softnum_built_dot(softnum_built *u, sn_u64 *a, sn_u64 *b, sn_i64 length, sn_i32 with_c, sn_u64 c, sn_u64 seed,
                         sn_u64 stream, sn_u32 *raised);

/* Whether c is a code of the unit's C, and `length` elements of a and b fit into words; else a message. */
int softnum_built_fits(const char *who, const softnum_built *u, sn_u64 length, sn_u64 with_c, sn_u64 c);

#endif

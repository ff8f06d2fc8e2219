/* Units that were named when the library was built (`softnum rtl build --unit NAME=UNIT`). Not for users. */
#ifndef SOFTNUM_DPI_BUILT_H
#define SOFTNUM_DPI_BUILT_H

#include "names.h"

#include <stddef.h>

#include "softnum/units/chain.h"
#include "softnum/units/fused.h"
#include "softnum/units/grouped.h"
#include "softnum/units/mad.h"
#include "softnum/units/two_stage.h"

enum { SOFTNUM_MAD, SOFTNUM_FUSED, SOFTNUM_CHAIN, SOFTNUM_GROUPED, SOFTNUM_TWO_STAGE, SOFTNUM_EXACT };

/* A sum of exact products, rounded once: softnum/units/kulisch.h. */
typedef struct {
    sn_format accumulator;
    sn_env env;
    sn_i32 bottom, words;
} softnum_exact_unit;

/* A unit: its kind, the formats of a, b and c, and what the definition of that kind takes. */
typedef struct {
    sn_i32 kind;
    sn_format a, b, c;
    union {
        sn_mad_unit mad;
        sn_fused_unit fused;
        sn_chain_unit chain;
        sn_grouped_unit grouped;
        sn_two_stage_unit two_stage;
        softnum_exact_unit exact;
    } of;
} softnum_built;

/* Their names, a null pointer after the last, and unit number i. */
extern const char *const softnum_built_names[];
void softnum_built_fill(sn_u64 i, softnum_built *unit);

#endif

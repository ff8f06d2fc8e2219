/* A part of one product of matrices as codes of 64 bits: what every unit's definition takes.
 *
 * out[m, n] for m in [m0, m1), n in [0, n) from a[m, k], b[k, n] and c[m, n]; c null: from +0. K = 0 gives c, or +0.
 * The pointers are those of row 0, and of the part's first column, which is column n0 of the whole product: n0 and
 * n_total matter to random words alone. words: null, or uint32 [m, n, steps, 2] for one batch element of the whole,
 * each unit saying what its steps are; without them stochastic units take those of their key. tallies: null, or those
 * to add to, one for each kind of rounding that the unit has; they change nothing else. */
#ifndef SOFTNUM_CODES_H
#define SOFTNUM_CODES_H

#include <stddef.h>

#include "softnum/units/tally.h"
#include "softnum/word/base.h"

typedef struct {
    const sn_u64 *a, *b, *c;
    sn_u64 *out;
    const sn_u32 *words;
    sn_tally *tallies;
    ptrdiff_t lda, ldb, ldc, ldo; /* in elements */
    ptrdiff_t m0, m1, n, k, n_total, n0;
} sn_product_codes;

#endif

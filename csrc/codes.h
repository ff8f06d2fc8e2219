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

#include "softnum/softnum.h"

/* How many roundings of one kind there were, and what came of them. What overflowed or was infinite and is a finite
 * number all the same has saturated, unless it wrapped around. In formats that raise no flags the same is counted.
 * softnum/statistics.py holds the same names in this order. */
typedef struct {
    sn_u64 roundings, inexact, underflowed, overflowed, saturated, invalid;
} sn_tally;

/* What roundings of one kind have raised; their tally, or null. */
typedef struct {
    sn_u32 flags;
    sn_tally *tally;
} sn_told;

/* A result, a code of f, and what its rounding raised. infinite: whether an operand was. */
static inline void sn_tell(sn_told *t, const sn_format *f, const sn_env *env, sn_u64 code, sn_u32 raised,
                           sn_i32 infinite) {
    t->flags |= raised;
    if (!t->tally) return;
    const sn_i32 beyond = infinite || (raised & SN_FLAG_OVERFLOW) != 0;
    t->tally->roundings++;
    t->tally->inexact += (raised & SN_INEXACT) != 0;
    t->tally->underflowed += (raised & SN_UNDERFLOW) != 0;
    t->tally->overflowed += (raised & SN_FLAG_OVERFLOW) != 0;
    t->tally->saturated += beyond && env->overflow != SN_OVERFLOW_WRAP && sn_unpack(f, code).kind <= SN_FINITE;
    t->tally->invalid += (raised & SN_INVALID) != 0;
}

typedef struct {
    const sn_u64 *a, *b, *c;
    sn_u64 *out;
    const sn_u32 *words;
    sn_tally *tallies;
    ptrdiff_t lda, ldb, ldc, ldo; /* in elements */
    ptrdiff_t m0, m1, n, k, n_total, n0;
} sn_product_codes;

#endif

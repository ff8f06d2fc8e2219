/* Products of matrices under the exact dot-product unit: one rounding of each exact sum. The definition over codes, and
 * a fast path over carriers, one per instruction set, which states its domain (exact_body.h) and equals the definition
 * bit for bit inside it. */
#ifndef SOFTNUM_EXACT_H
#define SOFTNUM_EXACT_H

#include "kernels.h"
#include "softnum/kulisch.h"

typedef struct {
    sn_format operand_a, operand_b, accumulator;
    sn_env env;
    sn_i32 bottom, words; /* of the accumulator: kulisch.h */
    sn_u32 key[2];        /* the Philox key of domain 1 */
    sn_u32 batch;
} sn_exact_unit;

/* out[m, n] = round(c[m, n] + sum over k of a[m, k] * b[k, n]) for m in [m0, m1), n in [0, n), on codes of 64 bits. c
 * null: from +0. n0 is added to the column in the Philox counters. With k = 0 the result is c. words: null, or uint32
 * [m, n, 1, 2] for one batch element, of which the second is taken; without words the unit's random word of an output
 * is word 0 of counter (0, column, row, batch). Returns 1 if a result is a NaN that the accumulator has no code for. */
typedef struct {
    const sn_u64 *a, *b, *c;
    sn_u64 *out;
    const sn_u32 *words;
    ptrdiff_t lda, ldb, ldc, ldo;
    ptrdiff_t m0, m1, n, k, n_total, n0;
} sn_exact_codes;

sn_u32 sn_exact_definition(const sn_exact_unit *u, const sn_exact_codes *g);

#endif

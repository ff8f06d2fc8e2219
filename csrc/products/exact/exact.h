/* Products of matrices under the exact dot-product unit: one rounding of each exact sum. The definition over codes, and
 * a fast path over carriers, one per instruction set, which states its domain (products/exact/body.h) and equals the
 * definition bit for bit inside it. */
#ifndef SOFTNUM_EXACT_H
#define SOFTNUM_EXACT_H

#include "dispatch/facts.h"
#include "dispatch/kernels.h"
#include "products/codes.h"
#include "softnum/units/kulisch.h"
#include "softnum/word/source.h"

typedef struct {
    sn_format operand_a, operand_b, accumulator;
    sn_env env;
    sn_i32 bottom, words; /* of the accumulator: kulisch.h */
    sn_u32 key[2];        /* the Philox key of domain 1 */
    sn_u32 batch;
    sn_source random; /* not SN_SOURCE_GIVEN, for there are sn_product_codes.words */
} sn_exact_unit;

/* out[m, n] = round(c[m, n] + sum over k of a[m, k] * b[k, n]). A sum has one step, and takes the second of its random
 * words; with a key, the source's of step 0. Its one tally is of these roundings. Returns 1 if a
 * result is a NaN that the accumulator has no code for. */
sn_u32 sn_exact_definition(const sn_exact_unit *u, const sn_product_codes *g);

/* ---- the fast path, on binary64 carriers --------------------------------------------------------------------------
 */

typedef struct {
    sn_exact_unit unit;
    sn_rounding rounding; /* of the accumulator's format, from binary64 */
    sn_facts facts[3];    /* of the values of a, b and c */
} sn_exact_fast;

/* The fast path of a unit into *fast; 0 if it has none: the domain that products/exact/body.h states. a, b: the
 * operands' values, which may be fewer than their formats'. */
int sn_exact_path(const sn_exact_unit *u, sn_facts a, sn_facts b, sn_exact_fast *fast);

/* As sn_product_codes, on values; b need not be padded. packed: room for k * (n rounded up to SN_EXACT_ROOM) values. */
enum { SN_EXACT_ROOM = 16 };

typedef struct {
    const double *a, *b, *c;
    double *out, *packed;
    ptrdiff_t lda, ldb, ldc, ldo;
    ptrdiff_t m0, m1, n, k, n0;
} sn_exact_args;

typedef struct {
    void (*gemm)(const sn_exact_fast *u, const sn_exact_args *g);
} sn_exact_kernels;

/* That of an instruction set (SN_ISA_*); null if this build has none for it. */
const sn_exact_kernels *sn_exact_kernels_for(int isa);

/* How products are split (products/exact/body.h): into `pieces` sums of up to `block` terms each; 0 pieces: not at all.
 */
typedef struct {
    sn_i32 pieces;
    sn_i32 grid[3];  /* exponents of the pieces' last places, the coarsest first */
    double magic[2]; /* 1.5 * 2^(52 + grid) of all but the last */
    ptrdiff_t block;
    sn_i32 with_c; /* C is a term like the products */
} sn_exact_split;

/* The split for operands in these ranges. c: its range, or null. */
sn_exact_split sn_exact_split_for(const sn_exact_fast *u, const sn_range range[3], ptrdiff_t k, int has_c);

/* Element (row, column j of the block) by the wide accumulator, from the operands. */
double sn_exact_slow(const sn_exact_fast *u, const sn_exact_args *g, ptrdiff_t row, ptrdiff_t j);

/* The same from the sum of count[i] * 2^(grid[i]), and C unless it is a term among them. */
double sn_exact_of_counts(const sn_exact_fast *u, const sn_exact_args *g, const sn_exact_split *s,
                          const sn_i64 *const count[3], ptrdiff_t at, ptrdiff_t row, ptrdiff_t j);

/* The random word of an output. */
sn_u32 sn_exact_word(const sn_exact_unit *u, ptrdiff_t row, ptrdiff_t column);

#endif

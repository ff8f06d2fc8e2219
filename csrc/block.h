/* Products of matrices of block formats: the sum of each block of products, times the product of the two blocks'
 * scales, into an outer sum. The sums of blocks are another unit's (their codes come in), or exact (computed here). */
#ifndef SOFTNUM_BLOCK_H
#define SOFTNUM_BLOCK_H

#include "codes.h"
#include "kernels.h"
#include "softnum/kulisch.h"

typedef struct {
    sn_format element_a, element_b, scale_a, scale_b;
    sn_format inner, product, accumulator; /* inner: of the blocks' sums; product: of a scaled sum */
    sn_env product_env, sum_env;
    sn_i32 exact;                /* no inner unit: sums of blocks are exact */
    sn_i32 rounds_product;       /* a scaled sum is rounded before it is added */
    sn_i32 bottom, plain, words; /* of exact sums, with and without scales: kulisch.h */
    sn_number tensor_a, tensor_b;
    sn_u32 key[2], key2[2]; /* Philox keys of domains 1 and 2 */
    sn_u32 batch;
} sn_block_unit;

/* A part of a product, all of it dense: out has rows of n codes of the accumulator. */
typedef struct {
    const sn_u64 *sums;              /* of one block: rows x n codes of u->inner; not read if u->exact */
    const sn_u64 *a, *b;             /* of one block: rows x k and k x n codes; read if u->exact */
    const sn_u64 *scale_a, *scale_b; /* rows and n codes */
    const sn_u64 *c;                 /* rows x n codes, or null; read by sn_block_finish alone */
    sn_u64 *out;
    const sn_u32 *words; /* null, or rows x n x steps x 2 */
    ptrdiff_t rows, n, k, steps;
    ptrdiff_t m0, n0; /* what the part begins with in the whole product: matters to random words alone */
} sn_block_part;

/* out = R(out + [R_product](sum of the block * (scale_a * scale_b))), whose random words are those of the step. A zero
 * sum of a block that is exact is +0. Returns a bit for each rounding that met a NaN without a code: 1 product, 2 sum.
 */
sn_u32 sn_block_add(const sn_block_unit *u, const sn_block_part *g, ptrdiff_t step);

/* out = R(c + out * (tensor_a * tensor_b)), without c R(out * (tensor_a * tensor_b)). */
sn_u32 sn_block_finish(const sn_block_unit *u, const sn_block_part *g, ptrdiff_t step);

/* The (product, sum) words of a step of an output; wide: one of a unit's two roundings takes more than 16 bits. */
void sn_block_words(const sn_u32 key[2], const sn_u32 key2[2], sn_u32 batch, ptrdiff_t row, ptrdiff_t column,
                    ptrdiff_t step, int two_roundings, int wide, sn_u32 words[2]);

#endif

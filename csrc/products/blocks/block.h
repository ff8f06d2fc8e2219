/* Products of matrices of block formats: the sum of each block of products, times the product of the two blocks'
 * scales, into an outer sum. The sums of blocks are another unit's (their codes come in), or exact (computed here). */
#ifndef SOFTNUM_BLOCK_H
#define SOFTNUM_BLOCK_H

#include "dispatch/facts.h"
#include "dispatch/kernels.h"
#include "products/codes.h"
#include "softnum/units/block_steps.h"
#include "softnum/word/source.h"

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
    sn_source random; /* not SN_SOURCE_GIVEN, for there are sn_block_part.words */
} sn_block_unit;

/* A part of a product, all of it dense: out has rows of n codes of the accumulator. */
typedef struct {
    const sn_u64 *sums;              /* of one block: rows x n codes of u->inner; not read if u->exact */
    const sn_u64 *a, *b;             /* of one block: rows x k and k x n codes; read if u->exact */
    const sn_u64 *scale_a, *scale_b; /* rows and n codes */
    const sn_u64 *c;                 /* rows x n codes, or null; read by sn_block_finish alone */
    sn_u64 *out;
    const sn_u32 *words; /* null, or rows x n x steps x 2 */
    sn_tally *tallies;   /* null, or SN_BLOCK_TALLIES of them to add to (codes.h) */
    ptrdiff_t rows, n, k, steps;
    ptrdiff_t m0, n0; /* what the part begins with in the whole product: matters to random words alone */
} sn_block_part;

/* What the tallies count: scaled sums; additions of blocks; what is scaled by the arrays' own scales. */
enum { SN_TALLY_SCALED, SN_TALLY_BLOCKS, SN_TALLY_TENSOR, SN_BLOCK_TALLIES };

/* out = R(out + [R_product](sum of the block * (scale_a * scale_b))), whose random words are those of the step. A zero
 * sum of a block that is exact is +0. Returns a bit for each rounding that met a NaN without a code: 1 product, 2 sum.
 */
sn_u32 sn_block_add(const sn_block_unit *u, const sn_block_part *g, ptrdiff_t step);

/* out = R(c + out * (tensor_a * tensor_b)), without c R(out * (tensor_a * tensor_b)). */
sn_u32 sn_block_finish(const sn_block_unit *u, const sn_block_part *g, ptrdiff_t step);

/* ---- the fast path, on carriers: products/blocks/body.h states its domain
 * -----------------------------------------------------
 */

/* How a block enters the outer sum: by the CPU's fma in binary32; by a sum rounded to odd in binary64, which becomes
 * binary32, or any format. */
enum { SN_BLOCK_FMA = 0, SN_BLOCK_BINARY32 = 1, SN_BLOCK_GENERAL = 2 };

typedef struct {
    sn_i32 how, wide; /* wide: sums of blocks in binary64 */
    sn_i32 checked;   /* SN_BLOCK_FMA: products of any two scales are binary32 numbers */
    sn_i32 finite;    /* for finite operands alone: a result without a code is an error, which the definition tells */
    sn_i32 rounds_product, two_roundings, stochastic;
    sn_rounding product, sum;
    sn_u32 key[2], key2[2];
    sn_u32 batch;
    sn_source random;
} sn_block_fast;

/* What is known of an inner unit, besides the format of its results. */
typedef struct {
    sn_i32 fast;     /* it has an engine on carriers, and is not stochastic */
    sn_i32 specials; /* a format that it rounds to has infinities or NaNs */
} sn_block_inner;

/* The fast path of a unit into *fast, but keys and batch; 0 if it has none. */
int sn_block_path(const sn_block_unit *u, sn_block_inner inner, int tensor_scales, sn_block_fast *fast);

/* Of exact sums of blocks of up to `size` products: whether binary32 holds them all. */
int sn_block_narrow(const sn_block_unit *u, ptrdiff_t size);

/* Whether binary64 does, *magic 0, or products are split, *magic the M of that. elements: what there is in the
 * operands, or null: for all values of the formats; infinite: an infinity among them. */
int sn_block_split(const sn_block_unit *u, ptrdiff_t size, const sn_range *elements, int infinite, double *magic);

/* Whether products of any two scales in these ranges are binary32 numbers. */
int sn_block_scales_fit(const sn_block_unit *u, const sn_range scales[2]);

/* A part of a product, dense but for b and scale_b, whose rows lie n_total apart; values. */
typedef struct {
    const void *a, *b;               /* rows x k and k x n: double if wide, else float */
    const double *scale_a, *scale_b; /* rows x blocks and blocks x n */
    const double *c;                 /* rows x n, or null */
    double *out;                     /* rows x n */
    double *room;                    /* for (k + blocks) * SN_BLOCK_TILE values */
    ptrdiff_t rows, n, n_total, k, size, blocks;
    ptrdiff_t m0, n0; /* what the part begins with in the whole product: matters to random words alone */
    double magic;     /* 0, or M of products split in two */
} sn_block_values;

enum { SN_BLOCK_TILE = 32 };

typedef struct {
    /* The whole part, sums of blocks being exact. */
    void (*gemm)(const sn_block_fast *u, const sn_block_values *g);
    /* One block into g->out: sums, rows x n, double if u->wide. step: whose random words its roundings take. */
    void (*outer)(const sn_block_fast *u, const sn_block_values *g, const void *sums, ptrdiff_t block, ptrdiff_t step);
    /* g->out = R(g->out * tensor [+ g->c]). */
    void (*finish)(const sn_block_fast *u, const sn_block_values *g, double tensor, ptrdiff_t step);
} sn_block_kernels;

/* Those of an instruction set (SN_ISA_*); null if this build has none for it. */
const sn_block_kernels *sn_block_kernels_for(int isa);

/* The random words of a rounding of SN_BLOCK_TILE outputs from one on; which 0: product, 1: sum. */
void sn_block_words(const sn_block_fast *u, ptrdiff_t row, ptrdiff_t column, ptrdiff_t step, int which, sn_u32 *words);

#endif

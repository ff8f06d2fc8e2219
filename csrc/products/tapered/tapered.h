/* Sums of products that are rounded to posits and linear takums, over values in carriers. */
#ifndef SOFTNUM_TAPERED_SUMS_H
#define SOFTNUM_TAPERED_SUMS_H

#include <stddef.h>

#include "dispatch/kernels.h"
#include "softnum/rounding/tapered.h"

/* Columns of b that are computed together at the most, and that `edge` has room for. */
enum { SN_TAPERED_COLUMNS = 64 };

/* acc = R(acc + P(a * b)) for k = 0, 1, ..., K - 1; R rounds to `sum`; P to `product`, or not at all where its bits are
 * 0. Domain: products/tapered/body.h. */
typedef struct {
    sn_tapered sum, product;
    sn_i32 carrier;    /* bits of a, b, acc and edge: 32, or 64 */
    const void *a, *b; /* values: [m][k], [k][n] */
    void *acc;         /* values: [m][n]: where the sums begin, and what they become; every NaN is NaR */
    void *edge;        /* room for k rows of SN_TAPERED_COLUMNS values */
    ptrdiff_t a_row, a_step, b_step, acc_row; /* elements from row to row, and from k to k */
    ptrdiff_t m, n, k;
} sn_tapered_sums;

/* By the instructions of an SN_ISA_*, which do not matter to the result. */
typedef void sn_tapered_kernel(const sn_tapered_sums *s);
sn_tapered_kernel *sn_tapered_kernel_for(int isa);

/* A format prepared for lanes of 32 or 64 bits. */
typedef struct {
    sn_i32 takum;
    sn_u64 least, most; /* patterns of the smallest value, and of the last number of the carrier below the largest */
    sn_u64 rebias;      /* added to a pattern: below 2^shift of it is what a regime is followed by */
    sn_i32 shift, offset, cut;
} sn_tapered_lanes;

sn_tapered_lanes sn_tapered_prepare(const sn_tapered *f, int carrier);

#endif

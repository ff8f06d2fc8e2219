/* Operations on values held in binary32, over arrays; the paths and their domains are in carried.c, the loops of an
 * instruction set in carry.h. */
#ifndef SOFTNUM_CARRIED_H
#define SOFTNUM_CARRIED_H

#include "dispatch/kernels.h"
#include "elementwise/elementwise.h"

enum { SN_CARRIED_DIMS = 8 };

/* The operands, broadcast to dims: strides in elements, 0 where an operand repeats. */
typedef struct {
    int ndim;
    size_t dims[SN_CARRIED_DIMS];
    const float *x[3];
    ptrdiff_t strides[3][SN_CARRIED_DIMS];
} sn_carried_arrays;

/* Prepare operation op (SN_OP_...); in: as many formats as it has operands. Returns 0 outside the domain. */
int sn_carried_prepare(int op, const sn_format *in, const sn_format *out, const sn_env *env, sn_carried *p);

/* Elements first .. stop of the results, in C order, to those of out; first is a multiple of 4 * SN_WORD_BLOCKS. 1: one
 * had no result. */
int sn_carried_run(const sn_kernels *run, const sn_carried *p, const sn_carried_arrays *arrays, float *out,
                   size_t first, size_t stop, const sn_random_source *random);

/* The sums of a table's columns as a tree, for an addition whose random words do not matter; 1: one had no result.
 * scratch: sn_tree_scratch floats. */
int sn_tree_run(const sn_kernels *run, const sn_carried *p, const sn_table *t, float *out, float *scratch);
size_t sn_tree_scratch(size_t rows);

#endif

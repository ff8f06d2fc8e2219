/* Copies of arrays of any strides, as convolutions unfold their images. */
#ifndef SOFTNUM_COPY_H
#define SOFTNUM_COPY_H

#include <stddef.h>

enum { SN_COPY_DIMS = 8 };

/* An axis of both arrays: its length, and how many elements apart its places lie. */
typedef struct {
    size_t length;
    ptrdiff_t in, out;
} sn_copy_axis;

/* out[...] = in[...], elements of 1, 2, 4 or 8 bytes that do not overlap; up to SN_COPY_DIMS axes, in any order. */
void sn_copy(const void *in, void *out, int width, int ndim, const sn_copy_axis *axes);

#endif

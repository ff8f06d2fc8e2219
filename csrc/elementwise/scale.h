/* Numbers over the scales of their blocks, which are powers of two: how block formats are encoded. */
#ifndef SOFTNUM_SCALE_H
#define SOFTNUM_SCALE_H

#include <stddef.h>

#include "softnum/word/base.h"

/* An array (outer, length, inner) in blocks of `size` along its second axis, the last of each row shorter. The exponent
 * of a scale is that of the largest magnitude, fraction * 2^e with 1/2 <= fraction < 1, as e + shift, and one more
 * where the fraction lies above `above` or is at least `from`; between low and high, and low for a block of zeros. */
typedef struct {
    size_t outer, length, inner, size;
    sn_i32 shift, low, high;
    double above, from;
} sn_scaling;

/* q = x / scale as binary32 rounds it; scales: exponents less low. 1: an element is infinite or NaN. 2^-low and 2^-high
 * are binary32 numbers, 2^-low a finite one or 2^127 * 2. */
int sn_scale_blocks(const sn_scaling *s, const float *x, float *q, sn_u8 *scales);

#endif

/* Arrays of codes of posits and linear takums to numbers of binary64, given by their bits, and back. */
#ifndef SOFTNUM_ELEMENTWISE_TAPERED_H
#define SOFTNUM_ELEMENTWISE_TAPERED_H

#include <stddef.h>

#include "softnum/rounding/tapered.h"

/* width: bytes of a code, 1, 2 or 4; codes have no bits above their format's. */
void sn_tapered_values(const sn_tapered *f, const void *codes, int width, sn_u64 *numbers, ptrdiff_t n);
void sn_tapered_codes(const sn_tapered *f, const sn_u64 *numbers, void *codes, int width, ptrdiff_t n);

#endif

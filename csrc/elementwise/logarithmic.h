/* Arrays of operands of operations on logarithmic numbers. */
#ifndef SOFTNUM_ELEMENTWISE_LOGARITHMIC_H
#define SOFTNUM_ELEMENTWISE_LOGARITHMIC_H

#include <stddef.h>

#include "softnum/elementary/logarithmic.h"

/* out[i] of codes of the operands, which are as many as the operation has; codes that none is made of are 0. Of
 * binary64 they are its bits. Returns how many results are known, from the first on: all but where one is not decided.
 */
ptrdiff_t sn_log_apply(const sn_log_call *c, int operands, const sn_u64 *const *codes, sn_u64 *out, ptrdiff_t n);

#endif

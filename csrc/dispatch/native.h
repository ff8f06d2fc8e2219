/* How a caller in C reaches what lies in an extension module: by addresses that Python hands it (the properties
 * `native` of softnum's bindings). softnum.jax's handlers are such callers; they run without Python. `data` is the
 * second address of a pair, and lives as long as the Python object it came from. */
#ifndef SOFTNUM_NATIVE_H
#define SOFTNUM_NATIVE_H

#include <stddef.h>

#include "softnum/word/base.h"

/* What a call met: SN_NATIVE_NO_CODE, a NaN (in fixed point an infinity, too) that a format lacks. */
enum { SN_NATIVE_DONE, SN_NATIVE_NO_CODE, SN_NATIVE_NO_MEMORY };

/* n carriers, float or double, to as many values, or of double to codes of 64 bits; key: words of the domain
 * SN_DOMAIN_ELEMENTWISE, not looked at unless the rounding is stochastic. x and out may be the same array of carriers.
 */
typedef int sn_native_rounding(const void *data, const void *x, void *out, size_t n, const sn_u32 key[2]);

/* n codes of 64 bits to double. */
typedef int sn_native_decoding(const void *data, const void *codes, void *out, size_t n);

/* Rows m0 to m1 of one product of contiguous matrices, on carriers or on codes of 64 bits, as the engine has them; the
 * pointers are those of row 0; c null: from +0. Of carriers b's rows are padded with zeros to a multiple of
 * SN_NATIVE_LANES columns, ldb. batch: the number of the product. Keys: words of the domains SN_DOMAIN_MATMUL and
 * SN_DOMAIN_MATMUL_SECOND, not looked at unless the unit is stochastic. */
enum { SN_NATIVE_LANES = 16 };
typedef struct {
    const void *a, *b, *c;
    void *out;
    ptrdiff_t lda, ldb, ldc, ldo, m0, m1, n, k;
    sn_u32 key[2], key2[2], batch;
} sn_native_product;
typedef int sn_native_engine(const void *data, const sn_native_product *p);

#endif

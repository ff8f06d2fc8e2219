/* A chain of fused multiply-adds, acc = round(acc + a * b), whose products are taken in an order of their own, a period
 * at a time. The environment may flush subnormal inputs and tiny results, as instructions of CPUs do. */
#ifndef SOFTNUM_CHAIN_H
#define SOFTNUM_CHAIN_H

#include "arith.h"

typedef struct {
    sn_format a, b, accumulator;
    sn_env env;
    sn_i32 period;
    const sn_i32 *order; /* of the k in a period; null: as they come */
} sn_chain_unit;

/* The dot product of a and b, codes that lie the strides apart, from c. The last period is filled up with zeros: code 0
 * must be one in both operands' formats. */
SN_FN sn_u64 sn_chain_dot(const sn_chain_unit *u, const sn_u64 *a, sn_i64 stride_a, const sn_u64 *b, sn_i64 stride_b,
                          sn_i64 length, sn_u64 c, sn_u32 *flags) {
    sn_i64 filled = (length + u->period - 1) / u->period * u->period;
    for (sn_i64 position = 0; position < filled; position++) {
        sn_i64 k = u->order ? position / u->period * u->period + u->order[position % u->period] : position;
        sn_u64 x = k < length ? a[k * stride_a] : 0, y = k < length ? b[k * stride_b] : 0;
        c = sn_fma(&u->a, x, &u->b, y, &u->accumulator, c, &u->accumulator, &u->env, 0, flags);
    }
    return c;
}

#endif

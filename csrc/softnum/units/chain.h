/* A chain of fused multiply-adds, acc = round(acc + a * b), whose products are added in a stated order, a period at a
 * time. The environment may flush subnormal inputs and tiny results, as instructions of CPUs do. */
#ifndef SOFTNUM_CHAIN_H
#define SOFTNUM_CHAIN_H

#include "softnum/operations/arith.h"

typedef struct {
    sn_format a, b, accumulator;
    sn_env env;
    sn_i32 period;
    const sn_i32 *order; /* of the k in a period; null: as they come */
} sn_chain_unit;

/* The number of multiply-adds of a sum of length products: the last period is filled up with zeros. */
SN_FN sn_i64 sn_chain_steps(const sn_chain_unit *u, sn_i64 length) {
    return (length + u->period - 1) / u->period * u->period;
}

/* What c becomes by the multiply-add at a position. a and b: codes that lie the strides apart; code 0 must be a zero in
 * both their formats. infinite: null, or whether an operand was. */
SN_FN sn_u64 sn_chain_step(const sn_chain_unit *u, const sn_u64 *a, sn_i64 stride_a, const sn_u64 *b, sn_i64 stride_b,
                           sn_i64 length, sn_i64 position, sn_u64 c, sn_u32 *flags, sn_i32 *infinite) {
    const sn_i64 k = u->order ? position / u->period * u->period + u->order[position % u->period] : position;
    const sn_u64 x = k < length ? a[k * stride_a] : 0, y = k < length ? b[k * stride_b] : 0;
    if (infinite)
        *infinite = sn_unpack(&u->a, x).kind == SN_INF || sn_unpack(&u->b, y).kind == SN_INF ||
                    sn_unpack(&u->accumulator, c).kind == SN_INF;
    return sn_fma(&u->a, x, &u->b, y, &u->accumulator, c, &u->accumulator, &u->env, 0, flags);
}

/* The dot product of a and b from c. */
SN_FN sn_u64 sn_chain_dot(const sn_chain_unit *u, const sn_u64 *a, sn_i64 stride_a, const sn_u64 *b, sn_i64 stride_b,
                          sn_i64 length, sn_u64 c, sn_u32 *flags) {
    const sn_i64 steps = sn_chain_steps(u, length);
    for (sn_i64 i = 0; i < steps; i++)
        c = sn_chain_step(u, a, stride_a, b, stride_b, length, i, c, flags, 0);
    return c;
}

#endif

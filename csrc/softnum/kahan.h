/* Compensated sums by the definition, as csrc/gemm.c has them: to add p to a running sum with a compensation e, both of
 * the format f, is y = R(p - e), t = R(sum + y), e = R(R(t - sum) - y), sum = t. */
#ifndef SOFTNUM_KAHAN_H
#define SOFTNUM_KAHAN_H

#include "arith.h"

/* R(a * b - e), one rounding: fma, but for the sign of e, which a format without signs has too. */
SN_FN sn_u64 sn_product_less(const sn_format *fa, sn_u64 a, const sn_format *fb, sn_u64 b, const sn_format *fe,
                             sn_u64 e, const sn_format *f, const sn_env *env, sn_u32 *flags) {
    const sn_number x = sn_read(fa, env, a), y = sn_read(fb, env, b);
    sn_number z = sn_read(fe, env, e);
    const sn_i32 inf = x.kind == SN_INF || y.kind == SN_INF;
    if (x.kind >= SN_QUIET_NAN || y.kind >= SN_QUIET_NAN || z.kind >= SN_QUIET_NAN)
        return sn_propagate_nans(f, env, x.kind >= SN_QUIET_NAN ? &x : &y, &z, flags);
    if (inf && (x.kind == SN_ZERO || y.kind == SN_ZERO)) return sn_invalid_result(f, env, flags);
    z.sign = !z.sign;
    return sn_add_numbers(sn_product(&x, &y), inf, &z, f, env, 0, flags);
}

/* The sum after y, which is R(p - *error); *error becomes the new compensation. */
SN_FN sn_u64 sn_kahan(const sn_format *f, const sn_env *env, sn_u64 sum, sn_u64 y, sn_u64 *error, sn_u32 *flags) {
    const sn_u64 t = sn_add(f, sum, f, y, f, env, 0, flags);
    const sn_u64 moved = sn_subtract(f, t, f, sum, f, env, 0, flags);
    *error = sn_subtract(f, moved, f, y, f, env, 0, flags);
    return t;
}

#endif

/* What IEEE 754-2019 leaves to the implementation, all in one place.
 *
 * - The NaN that an operation delivers (6.2.3 recommends propagation, does not require it): the format's canonical NaN,
 *   sign 0 and quiet bit only, as RISC-V and the default of Berkeley SoftFloat's RISC-V target do.
 * - Tininess (7.5): an argument, sn_env.tininess; tests and Python default to after rounding.
 * - fma(0, inf, quiet NaN) (7.2 d): raises INVALID.
 * - A NaN or infinity in a target without one (clause 5.8 for integers): INVALID and code 0; the caller decides. */
#ifndef SOFTNUM_SPECIALIZE_H
#define SOFTNUM_SPECIALIZE_H

#include "env.h"
#include "format.h"

SN_FN sn_u64 sn_nan_result(const sn_format *f, sn_u32 *flags) {
    if (f->has_nan) return f->nan_code;
    *flags |= SN_INVALID;
    return 0;
}

/* INVALID and the NaN that stands for it. */
SN_FN sn_u64 sn_invalid_result(const sn_format *f, sn_u32 *flags) {
    *flags |= SN_INVALID;
    return sn_nan_result(f, flags);
}

/* NaN in, NaN out: INVALID if any operand signals. */
SN_FN sn_u64 sn_propagate_nan(const sn_format *f, sn_i32 any_signaling, sn_u32 *flags) {
    if (any_signaling) *flags |= SN_INVALID;
    return sn_nan_result(f, flags);
}

SN_FN sn_u64 sn_propagate_nans(const sn_format *f, const sn_number *x, const sn_number *y, sn_u32 *flags) {
    return sn_propagate_nan(f, x->kind == SN_SIGNALING_NAN || y->kind == SN_SIGNALING_NAN, flags);
}

/* An operand: its code unpacked, a subnormal one read as zero if the environment says so. */
SN_FN sn_number sn_read(const sn_format *f, const sn_env *env, sn_u64 code) {
    sn_number n = sn_unpack(f, code);
    if (env->flush_inputs && n.kind == SN_FINITE && f->kind == SN_FLOAT && f->lowest == SN_LOWEST_SUBNORMAL &&
        n.sig >> f->mantissa_bits == 0) {
        n.kind = SN_ZERO;
        n.sig = 0;
        n.sign &= f->negative_zero;
    }
    return n;
}

/* The code of +-magnitude; sign ignored for zero without -0, negative results of unsigned formats become 0. */
SN_FN sn_u64 sn_with_sign(const sn_format *f, sn_u64 magnitude, sn_i32 sign) {
    if (!sign) return magnitude;
    if (!f->is_signed) return 0;
    if (magnitude == 0 && !f->negative_zero) return 0;
    return magnitude | f->sign_mask;
}

/* The result of an operation that is exactly +-infinity. */
SN_FN sn_u64 sn_inf_result(const sn_format *f, const sn_env *env, sn_i32 sign, sn_u32 *flags) {
    if (f->kind == SN_FIXED) {
        *flags |= SN_INVALID;
        return 0;
    }
    if (sign && !f->has_zero) return sn_invalid_result(f, flags);
    if (sign && !f->is_signed) return 0;
    if (env->overflow != SN_OVERFLOW_SATURATE && f->has_inf) return sn_with_sign(f, f->inf_code, sign);
    if (env->overflow == SN_OVERFLOW_INFINITY && f->has_nan && !f->saturating) return f->nan_code;
    return sn_with_sign(f, f->max_code, sign);
}

#endif

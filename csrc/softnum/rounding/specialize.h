/* What IEEE 754-2019 leaves to the implementation, all in one place.
 *
 * - The NaN that an operation delivers (6.2.3 recommends propagation, does not require it): sn_env.nan.
 *   SN_NAN_CANONICAL: the format's canonical NaN, sign 0 and quiet bit only, as RISC-V does, Arm with FPCR.DN = 1, and
 *   Berkeley SoftFloat's RISC-V target.
 *   SN_NAN_X86: the first operand that is a NaN, made quiet (SSE, AVX, FMA3: Intel SDM volume 1, 4.8.3.5 and 14.5.2);
 *   where no operand is one, the canonical NaN with the sign bit set.
 *   SN_NAN_ARM: the first operand that is a signaling NaN, else the first that is a NaN, made quiet; the addend of fma
 *   goes first (Arm ARM, FPProcessNaNs and FPProcessNaNs3); where no operand is one, the canonical NaN.
 *   A NaN keeps its sign and the leading bits of its fraction in another format.
 * - fma(0, inf, quiet NaN) (7.2 c): INVALID and the NaN of no operand; SN_NAN_X86: the quiet NaN, no flag.
 * - Tininess (7.5): an argument, sn_env.tininess; tests and Python default to after rounding.
 * - A NaN in a target without one, and an infinity in fixed point: INVALID and sn_env.invalid_code.
 * - IEEE P3109 formats (sn_format.p3109) raise no flags, and saturate by v4.0 of its interim report (4.7.5),
 *   under SN_OVERFLOW_P3109_V3_2_1 by that version's (4.9.4). */
#ifndef SOFTNUM_SPECIALIZE_H
#define SOFTNUM_SPECIALIZE_H

#include "softnum/rounding/env.h"
#include "softnum/rounding/format.h"

/* Raise exceptions for a result in format f. */
SN_FN void sn_raise(const sn_format *f, sn_u32 exceptions, sn_u32 *flags) {
    if (f->p3109 != SN_P3109) *flags |= exceptions;
}

/* INVALID, and the NaN that stands for it. */
SN_FN sn_u64 sn_invalid_result(const sn_format *f, const sn_env *env, sn_u32 *flags) {
    sn_raise(f, SN_INVALID, flags);
    if (!f->has_nan) {
        *flags |= SN_NO_CODE;
        return env->invalid_code;
    }
    return env->nan == SN_NAN_X86 && !f->nan_is_negative_zero ? f->nan_code | f->sign_mask : f->nan_code;
}

/* The NaN x in format f, quiet. */
SN_FN sn_u64 sn_quiet(const sn_format *f, const sn_env *env, const sn_number *x, sn_u32 *flags) {
    if (!f->has_nan) return sn_invalid_result(f, env, flags);
    if (env->nan == SN_NAN_CANONICAL || f->nan_is_negative_zero) return f->nan_code;
    sn_u64 code = f->nan_code | (x->sign ? f->sign_mask : 0);
    return sn_one_nan(f) ? code : code | x->sig >> (64 - f->mantissa_bits);
}

/* NaN in, NaN out; INVALID if it signals. */
SN_FN sn_u64 sn_propagate_nan(const sn_format *f, const sn_env *env, const sn_number *x, sn_u32 *flags) {
    if (x->kind == SN_SIGNALING_NAN) sn_raise(f, SN_INVALID, flags);
    return sn_quiet(f, env, x, flags);
}

/* The operand whose NaN is propagated, one of them being a NaN. */
SN_FN const sn_number *sn_chosen_nan(const sn_env *env, const sn_number *x, const sn_number *y) {
    if (env->nan == SN_NAN_ARM && y->kind == SN_SIGNALING_NAN && x->kind != SN_SIGNALING_NAN) return y;
    return x->kind >= SN_QUIET_NAN ? x : y;
}

/* The same for two operands. */
SN_FN sn_u64 sn_propagate_nans(const sn_format *f, const sn_env *env, const sn_number *x, const sn_number *y,
                               sn_u32 *flags) {
    if (x->kind == SN_SIGNALING_NAN || y->kind == SN_SIGNALING_NAN) sn_raise(f, SN_INVALID, flags);
    return sn_quiet(f, env, sn_chosen_nan(env, x, y), flags);
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

/* What a negative number, or -infinity, becomes in a format without signs: 0. Of P3109's, where nothing saturates, NaN:
 * v4.0, 4.7.5, SatNone; modes that go toward zero from below give 0 for what is finite. By v3.2.1 0 under every rule.
 */
SN_FN sn_u64 sn_below_zero(const sn_format *f, const sn_env *env, sn_i32 infinite) {
    const sn_i32 upward = env->rounding == SN_TOWARD_ZERO || env->rounding == SN_UP;
    return f->p3109 && env->overflow == SN_OVERFLOW_INFINITY && (infinite || !upward) ? f->nan_code : 0;
}

/* The code of +-magnitude; sign ignored for zero without -0; negative results of unsigned formats become 0. */
SN_FN sn_u64 sn_with_sign(const sn_format *f, sn_u64 magnitude, sn_i32 sign) {
    if (!sign) return magnitude;
    if (!f->is_signed) return 0;
    if (magnitude == 0 && !f->negative_zero) return 0;
    return magnitude | f->sign_mask;
}

/* The result of an operation that is exactly +-infinity. */
SN_FN sn_u64 sn_inf_result(const sn_format *f, const sn_env *env, sn_i32 sign, sn_u32 *flags) {
    sn_note_kind(env, SN_INF, sign);
    if (f->kind == SN_FIXED || (sign && !f->has_zero)) return sn_invalid_result(f, env, flags);
    if (sign && !f->is_signed) return sn_below_zero(f, env, 1);
    if (env->overflow != SN_OVERFLOW_SATURATE && f->has_inf) return sn_with_sign(f, f->inf_code, sign);
    if (env->overflow == SN_OVERFLOW_INFINITY && f->has_nan && !f->saturating) return f->nan_code;
    return sn_with_sign(f, f->max_code, sign);
}

#endif

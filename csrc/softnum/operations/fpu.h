/* Behaviour of FPU instructions that is not an IEEE 754 operation, built from those operations. Contract as in
 * arith.h.
 *
 * Sources: IEEE Std 754-2008 5.3.1; RISC-V Instruction Set Manual, volume I (20240411), chapter "F"; Arm Architecture
 * Reference Manual (DDI 0487), FMIN, FMINNM, FPToFixed; Intel SDM, volume 2, MINSS, CVTSS2SI; PTX ISA 8.5, cvt and min.
 * softnum/vectors/plans/fpu.py states the same rules for vectors; a test compares the two. */
#ifndef SOFTNUM_FPU_H
#define SOFTNUM_FPU_H

#include "softnum/operations/order.h"

/* Whose rule minimum and maximum follow. */
enum {
    SN_MINMAX_IEEE2019 = 0,
    SN_MINMAX_IEEE2008 = 1,
    SN_MINMAX_RISCV = 2,
    SN_MINMAX_ARM = 3,
    SN_MINMAX_X86 = 4,
    SN_MINMAX_CUDA = 5,
    SN_MINMAX_RULES = 6
};

/* sn_extremum by a rule, for codes of one float format. number: minimum_number, maximum_number. x86's MINSS delivers b
 * as it stands where either is NaN or both are zeros, and raises INVALID for every NaN; operands that are read as zeros
 * are delivered as such. */
SN_FN sn_u64 sn_extremum_by(sn_i32 rule, const sn_format *f, sn_u64 a, sn_u64 b, const sn_env *env, sn_i32 maximum,
                            sn_i32 number, sn_u32 random, sn_u32 *flags) {
    sn_number x = sn_read(f, env, a), y = sn_read(f, env, b);
    if (rule == SN_MINMAX_X86) {
        if (x.kind == SN_ZERO) a = x.sign ? f->sign_mask : 0;
        if (y.kind == SN_ZERO) b = y.sign ? f->sign_mask : 0;
        if (x.kind >= SN_QUIET_NAN || y.kind >= SN_QUIET_NAN) {
            sn_raise(f, SN_INVALID, flags);
            return b;
        }
        return sn_compare_numbers(&x, &y) == (maximum ? SN_GREATER : SN_LESS) ? a : b;
    }
    if (rule == SN_MINMAX_RISCV || rule == SN_MINMAX_CUDA) number = 1;
    if (rule == SN_MINMAX_IEEE2008 || (rule == SN_MINMAX_ARM && number))
        number = x.kind != SN_SIGNALING_NAN && y.kind != SN_SIGNALING_NAN;
    return sn_extremum(f, a, f, b, f, env, maximum, number, random, flags);
}

/* A code with the other sign, for fmsub, fnmadd and fnmsub, of a format with a negative for each value. x86's VFNMADD
 * delivers a NaN with the sign that it has; Arm's FNMADD negates whatever the operand is (FPNeg). */
SN_FN sn_u64 sn_negated_operand(const sn_format *f, sn_u64 code, const sn_env *env) {
    sn_u32 none = 0;
    if (env->nan == SN_NAN_X86 && sn_unpack(f, code).kind >= SN_QUIET_NAN) return code;
    return sn_set_sign(f, code, !sn_sign(f, code), env, 0, &none);
}

/* What an invalid conversion to an integer gives: the nearest bound, and for NaN the highest (RISC-V), 0 (Arm), or of
 * binary64 or to 64 bits the top bit alone (PTX); the top bit alone, or all ones of an unsigned type, for all (x86). */
enum { SN_INTEGER_RISCV = 1, SN_INTEGER_ARM = 2, SN_INTEGER_X86 = 3, SN_INTEGER_CUDA = 4, SN_INTEGER_RULES = 5 };

/* sn_convert_to_integer by a rule. silent: what is no integer raises nothing (IEEE 754-2019 5.8, without Exact). */
SN_FN sn_u64 sn_to_integer_by(sn_i32 rule, const sn_format *fa, sn_u64 a, const sn_format *fo, const sn_env *env,
                              sn_i32 silent, sn_u32 random, sn_u32 *flags) {
    const sn_u64 top = (sn_u64)1 << (fo->bits - 1), highest = fo->is_signed ? top - 1 : fo->max_code;
    const sn_i32 binary64 = fa->kind == SN_FLOAT && fa->bits == 64 && fa->mantissa_bits == 52 && fa->emax == 1023 &&
                            fa->has_inf && fa->lowest == SN_LOWEST_SUBNORMAL;
    const sn_i32 wide = binary64 || fo->bits == 64;
    sn_env e = *env;
    sn_u32 raised = 0;
    e.overflow = rule == SN_INTEGER_X86 ? SN_OVERFLOW_WRAP : SN_OVERFLOW_SATURATE;
    e.invalid_code = rule == SN_INTEGER_RISCV            ? highest
                     : rule == SN_INTEGER_X86            ? (fo->is_signed ? top : fo->max_code)
                     : (rule == SN_INTEGER_CUDA && wide) ? top
                                                         : 0;
    const sn_u64 result = sn_convert_to_integer(fa, a, fo, &e, random, &raised);
    *flags |= silent ? raised & ~(sn_u32)SN_INEXACT : raised;
    return result;
}

/* RISC-V's FCLASS: a bit for each class, 0 -infinity, 1 -normal, 2 -subnormal, 3 -0, 4 +0 ... 7 +infinity, 8 signaling
 * NaN, 9 quiet NaN. */
SN_FN sn_u64 sn_class_mask(const sn_format *f, sn_u64 code) { return (sn_u64)1 << ((sn_classify(f, code) + 8) % 10); }

/* The one NaN of GPUs' results: all ones but the sign (PTX ISA, canonical NaN), of formats up to 32 bits with NaNs like
 * IEEE 754's or OCP's; 0 where no manual states one. */
SN_FN sn_u64 sn_cuda_nan(const sn_format *f) {
    const sn_i32 stated =
        f->kind == SN_FLOAT && f->has_nan && !f->nan_is_negative_zero && f->is_signed && f->bits <= 32;
    return stated ? f->magnitude_mask : 0;
}

#endif

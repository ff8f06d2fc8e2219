/* Compatibility of formats and rounding environments: the overflow rules of a format, and the requirements of single
 * operations. Callers word their own errors. */
#ifndef SOFTNUM_SUITS_H
#define SOFTNUM_SUITS_H

#include <string.h>

#include "softnum/operations/operations.h"

/* Whether a format has a rule, SN_OVERFLOW_*. */
SN_FN int sn_knows_overflow(const sn_format *f, sn_i32 overflow) {
    switch (overflow) {
    case SN_OVERFLOW_SATURATE:
    case SN_OVERFLOW_SATURATE_FINITE: return 1;
    case SN_OVERFLOW_INFINITY: return f->kind != SN_FIXED;
    case SN_OVERFLOW_WRAP: return f->kind == SN_FIXED;
    default: return overflow == SN_OVERFLOW_P3109_V3_2_1 && f->p3109 && f->has_inf;
    }
}

SN_FN sn_i32 sn_default_overflow(const sn_format *f) {
    return f->kind == SN_FIXED ? SN_OVERFLOW_SATURATE : SN_OVERFLOW_INFINITY;
}

/* Why an operation has no result in a format: it is in the format of a; codes of one format alone are compared; it is
 * an integer that saturates; more bits of a root wrap than the core keeps, 126; angles are not reduced from so far. */
enum { SN_SUITS, SN_ASKS_OWN_FORMAT, SN_ASKS_ONE_FORMAT, SN_ASKS_INTEGER, SN_ASKS_FEWER_BITS, SN_ASKS_SMALLER_ANGLES };

/* Whether an operation's result is in the format of its first operand. */
SN_FN int sn_keeps_format(int op) {
    return op == SN_OP_next_up || op == SN_OP_next_down || op == SN_OP_negate || op == SN_OP_absolute ||
           op == SN_OP_copysign;
}

/* in: as many formats as operation op has operands. */
SN_FN int sn_operation_suits(int op, const sn_format *in, const sn_format *out, const sn_env *env) {
    if (sn_keeps_format(op) && memcmp(&in[0], out, sizeof *out) != 0) return SN_ASKS_OWN_FORMAT;
    if (op == SN_OP_total_order && memcmp(&in[0], &in[1], sizeof *in) != 0) return SN_ASKS_ONE_FORMAT;
    if (op == SN_OP_to_integer && (out->kind != SN_FIXED || out->mantissa_bits || env->overflow == SN_OVERFLOW_WRAP))
        return SN_ASKS_INTEGER;
    if (op == SN_OP_sqrt && env->overflow == SN_OVERFLOW_WRAP) {
        const sn_i32 whole =
            in->kind == SN_FLOAT ? in->emax / 2 + 1 : (in->bits - in->mantissa_bits - in->is_signed + 1) / 2;
        const sn_i32 deciding = sn_is_stochastic(env) ? env->stochastic_bits + 1 : 2;
        if (whole + out->mantissa_bits + deciding > 126) return SN_ASKS_FEWER_BITS;
    }
    if ((op == SN_OP_sin || op == SN_OP_cos || op == SN_OP_tan) && in->kind == SN_FLOAT &&
        in->emax > SN_TRIGONOMETRIC_EMAX)
        return SN_ASKS_SMALLER_ANGLES;
    return SN_SUITS;
}

#endif

#include "instructions.h"

#include <stddef.h>

#include "softnum/elementary/functions.h"

int softnum_take_rules(const char *who, sn_u64 *mode, softnum_rules *r) {
    r->minmax = (int)(*mode >> SOFTNUM_MINMAX_SHIFT) & 7;
    r->integer = (int)(*mode >> SOFTNUM_INTEGER_SHIFT) & 7;
    r->mask = (*mode & SOFTNUM_CLASS_MASK) != 0;
    r->silent = (*mode & SOFTNUM_SILENT) != 0;
    r->cuda = ((*mode >> SOFTNUM_NAN_SHIFT) & 15) == SN_NAN_PROFILES;
    if (r->minmax >= SN_MINMAX_RULES || r->integer >= SN_INTEGER_RULES) {
        softnum_error(NULL, "%s: 0x%llx is no mode: OR one SN_ rounding mode with SOFTNUM_ options", who,
                      (unsigned long long)*mode);
        return 0;
    }
    *mode &= ~((sn_u64)255 << SOFTNUM_MINMAX_SHIFT);
    if (r->cuda) *mode &= ~((sn_u64)15 << SOFTNUM_NAN_SHIFT);
    return 1;
}

int softnum_operation_of(int op) {
    switch (op) {
    case SOFTNUM_OP_from_integer: return SN_OP_convert;
    case SOFTNUM_OP_compare_equal:
    case SOFTNUM_OP_compare_less:
    case SOFTNUM_OP_compare_less_equal: return SN_OP_compare;
    case SOFTNUM_OP_compare_equal_signaling:
    case SOFTNUM_OP_compare_less_signaling:
    case SOFTNUM_OP_compare_less_equal_signaling: return SN_OP_compare_signaling;
    case SOFTNUM_OP_sign_copy:
    case SOFTNUM_OP_sign_negate:
    case SOFTNUM_OP_sign_xor: return SN_OP_copysign;
    case SOFTNUM_OP_fmsub:
    case SOFTNUM_OP_fnmadd:
    case SOFTNUM_OP_fnmsub: return SN_OP_fma;
    default: return op;
    }
}

static int is_fused(int op) { return op == SOFTNUM_OP_fmsub || op == SOFTNUM_OP_fnmadd || op == SOFTNUM_OP_fnmsub; }
static int is_extremum(int op) { return op >= SN_OP_minimum && op <= SN_OP_maximum_number; }

/* Whether every value has its negative, -0 that of a zero whose sign the result could show. */
static int has_negatives(const sn_format *f, const sn_format *out) {
    return f->kind == SN_FLOAT && f->is_signed && (f->negative_zero || out->kind == SN_FIXED || !out->negative_zero);
}

int softnum_instruction_suits(int op, const char *who, const sn_format *in, const sn_format *out, const sn_u32 *field,
                              sn_u32 to, const softnum_rules *r) {
    char name[16];
    sn_tapered t;
    softnum_name(field[0], name);
    if (op == SOFTNUM_OP_from_integer &&
        (in->kind != SN_FIXED || in->mantissa_bits || in->bits < 8 || in->bits & (in->bits - 1))) {
        softnum_error(NULL, "%s: the operand is an integer: state i8->OUT ... u64->OUT; got %s", who, name);
        return 0;
    }
    if (op == SOFTNUM_OP_sign_copy || op == SOFTNUM_OP_sign_negate || op == SOFTNUM_OP_sign_xor) {
        if (field[0] != field[1] || in->kind != SN_FLOAT || !in->is_signed || softnum_fill_tapered(field[0], &t)) {
            softnum_error(NULL, "%s is of floats of one format with a sign bit, not of %s", who, name);
            return 0;
        }
    }
    for (int i = 0; is_fused(op) && i < 3; i++)
        if (!softnum_fill_tapered(field[i], &t) && !has_negatives(&in[i], out)) {
            softnum_name(field[i], name);
            softnum_error(NULL, "%s negates terms: %s has not the negative of each value, and of zero", who, name);
            return 0;
        }
    if (is_extremum(op) && r->minmax) {
        if (field[0] != to || field[1] != to || out->kind != SN_FLOAT || softnum_fill_tapered(to, &t)) {
            softnum_error(NULL, "%s: SOFTNUM_MINMAX_ rules are of floats of one format, not of %s", who, name);
            return 0;
        }
        if (r->minmax == SN_MINMAX_X86 && (op == SN_OP_minimum_number || op == SN_OP_maximum_number)) {
            softnum_error(NULL, "%s: x86's MINSS is softnum_minimum; state another SOFTNUM_MINMAX_ rule", who);
            return 0;
        }
    }
    return 1;
}

int softnum_makes_codes(int op) {
    return op != SN_OP_to_integer && op != SN_OP_compare && op != SN_OP_compare_signaling && op != SN_OP_total_order &&
           op != SN_OP_classify && op != SN_OP_negate && op != SN_OP_absolute && op != SN_OP_copysign &&
           op != SN_OP_next_up && op != SN_OP_next_down;
}

void softnum_into_operation(int op, const sn_format *in, const sn_env *env, sn_u64 *codes) {
    if (op == SOFTNUM_OP_sign_negate) codes[1] ^= in[1].sign_mask;
    if (op == SOFTNUM_OP_sign_xor) codes[1] ^= codes[0] & in[0].sign_mask;
    if (op == SOFTNUM_OP_fnmadd || op == SOFTNUM_OP_fnmsub) codes[0] = sn_negated_operand(&in[0], codes[0], env);
    if (op == SOFTNUM_OP_fnmadd || op == SOFTNUM_OP_fmsub) codes[2] = sn_negated_operand(&in[2], codes[2], env);
}

sn_u64 softnum_out_of_operation(int op, sn_u64 result) {
    switch (op) {
    case SOFTNUM_OP_compare_equal:
    case SOFTNUM_OP_compare_equal_signaling: return result == SN_EQUAL;
    case SOFTNUM_OP_compare_less:
    case SOFTNUM_OP_compare_less_signaling: return result == SN_LESS;
    case SOFTNUM_OP_compare_less_equal:
    case SOFTNUM_OP_compare_less_equal_signaling: return result == SN_LESS || result == SN_EQUAL;
    default: return result;
    }
}

sn_u64 softnum_computed(int op, const sn_format *in, const sn_u64 *codes, const sn_format *out, const sn_env *env,
                        const softnum_rules *r, sn_u32 random, sn_u32 *raised) {
    sn_u64 result;
    if (is_extremum(op) && r->minmax) {
        result =
            sn_extremum_by(r->minmax, out, codes[0], codes[1], env, op == SN_OP_maximum || op == SN_OP_maximum_number,
                           op == SN_OP_minimum_number || op == SN_OP_maximum_number, random, raised);
    } else if (op == SN_OP_to_integer && r->integer) {
        result = sn_to_integer_by(r->integer, &in[0], codes[0], out, env, 0, random, raised);
    } else if (op == SN_OP_classify && r->mask) {
        result = sn_class_mask(&in[0], codes[0]);
    } else if (op < SN_OP_exp) {
        result = sn_operate(op, in, codes, out, env, random, raised);
    } else {
        result = sn_elementary(op - SN_OP_exp, &in[0], codes[0], &in[1], codes[1], out, env, random, raised);
    }
    if (r->silent && (op == SN_OP_to_integer || op == SN_OP_round_to_integral)) *raised &= ~(sn_u32)SN_INEXACT;
    if (r->cuda && softnum_makes_codes(op) && sn_unpack(out, result).kind >= SN_QUIET_NAN) return sn_cuda_nan(out);
    return result;
}

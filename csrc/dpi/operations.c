/* The operations, by the contract of softnum_dpi.h: what cannot be computed is an error, never a guess. */
#include "instructions.h"

#include <stddef.h>

#include "softnum/word/philox.h"

#include <string.h>

sn_u64 softnum_no_handle(const char *who, sn_u64 formats, sn_u64 *flags) {
    sn_tapered t;
    if (formats == SOFTNUM_NO_HANDLE)
        return softnum_error(flags, "%s: softnum_format did not know the format; its result was not looked at", who);
    for (int shift = 0; shift < 64; shift += 16)
        if (softnum_fill_tapered(softnum_field(formats, shift), &t))
            return softnum_error(flags, "%s takes no posits and takums", who);
    return softnum_error(flags, "%s: 0x%llx is no handle of softnum_format", who, (unsigned long long)formats);
}

int softnum_env(const char *who, sn_u64 mode, const sn_format *f, sn_u32 field, sn_env *env) {
    const sn_u32 rule = (mode >> SOFTNUM_OVERFLOW_SHIFT) & 15, r = (mode >> SOFTNUM_BITS_SHIFT) & 255;
    char name[16];
    memset(env, 0, sizeof *env);
    env->rounding = (sn_i32)(mode & 255);
    env->overflow = rule ? (sn_i32)rule - 1 : sn_default_overflow(f);
    env->tininess = mode & SOFTNUM_TININESS_BEFORE ? SN_TININESS_BEFORE : SN_TININESS_AFTER;
    env->flush_inputs = (mode & SOFTNUM_FLUSH_INPUTS) != 0;
    env->flush_results = (mode >> SOFTNUM_FLUSH_SHIFT) & 3;
    env->nan = (mode >> SOFTNUM_NAN_SHIFT) & 15;
    env->stochastic_bits = r && sn_is_stochastic(env) ? (sn_i32)r : 32;
    if (mode >> 32 || ((mode >> 20) & 15) || env->rounding >= SN_ROUNDING_MODES ||
        (env->overflow > SN_OVERFLOW_WRAP && env->overflow != SN_OVERFLOW_P3109_V3_2_1) ||
        env->nan >= SN_NAN_PROFILES || r > 32) {
        softnum_error(NULL, "%s: 0x%llx is no mode: OR one SN_ rounding mode with SOFTNUM_ options", who,
                      (unsigned long long)mode);
        return 0;
    }
    softnum_name(field, name);
    if (sn_knows_overflow(f, env->overflow)) return 1;
    if (env->overflow == SN_OVERFLOW_WRAP)
        softnum_error(NULL, "%s: SN_OVERFLOW_WRAP is for fixed point; %s is a float format", who, name);
    else if (env->overflow == SN_OVERFLOW_INFINITY)
        softnum_error(NULL, "%s: SN_OVERFLOW_INFINITY is for floats; %s has no infinity", who, name);
    else
        softnum_error(NULL, "%s: SN_OVERFLOW_P3109_V3_2_1 is for P3109's formats with infinities; %s is none%s", who,
                      name, f->p3109 ? ", and has SN_OVERFLOW_SATURATE in version 3.2.1" : "");
    return 0;
}

int softnum_fits(const char *who, const char *what, sn_u64 code, const sn_format *f, sn_u32 field) {
    char name[16];
    if ((code & ~(f->magnitude_mask | f->sign_mask)) == 0) return 1;
    softnum_name(field, name);
    softnum_error(NULL, "%s: %s = 0x%llx is no code of %s, which has %d bits", who, what, (unsigned long long)code,
                  name, (int)f->bits);
    return 0;
}

/* What operation op asks of its formats and mode beyond what all do; 0, with a message, where that does not hold. */
static int suits(int op, const char *who, const sn_format *in, const sn_format *out, const sn_u32 *field, sn_u32 to,
                 const sn_env *env) {
    char name[16], other[16];
    softnum_name(field[0], name);
    softnum_name(to, other);
    /* by their fields: posits, takums and formats with names of users' are others than what they are computed in */
    const int asked = sn_keeps_format(op) && field[0] != to             ? SN_ASKS_OWN_FORMAT
                      : op == SN_OP_total_order && field[0] != field[1] ? SN_ASKS_ONE_FORMAT
                                                                        : sn_operation_suits(op, in, out, env);
    switch (asked) {
    case SN_ASKS_OWN_FORMAT:
        softnum_error(NULL, "%s: the result is in the format of a, %s, not %s; convert it", who, name, other);
        return 0;
    case SN_ASKS_ONE_FORMAT:
        softnum_error(NULL, "%s: codes of one format have a total order, not of two", who);
        return 0;
    case SN_ASKS_INTEGER:
        softnum_error(NULL,
                      "%s: the result is an integer that saturates: state a format qI.0 or uqI.0, and no wrap; "
                      "got %s",
                      who, other);
        return 0;
    case SN_ASKS_FEWER_BITS:
        softnum_error(NULL, "%s: roots of %s have more bits in %s than can be wrapped exactly; saturate", who, name,
                      other);
        return 0;
    case SN_ASKS_SMALLER_ANGLES:
        softnum_error(NULL, "%s: values of %s reach 2**%d, and angles are reduced up to 2**%d", who, name,
                      (int)in->emax, (int)SN_TRIGONOMETRIC_EMAX);
        return 0;
    default: return 1;
    }
}

/* An operand's format as the core computes with it, and its code there: those of posits and takums in binary64. */
static int read_operand(const char *who, const char *what, sn_u32 field, sn_u64 *code, sn_format *f, sn_tapered *t) {
    char name[16];
    if (softnum_fill(field, f)) return softnum_fits(who, what, *code, f, field) ? 1 : -1;
    if (!softnum_fill_tapered(field, t)) return 0;
    if (*code >> t->bits) {
        softnum_name(field, name);
        softnum_error(NULL, "%s: %s = 0x%llx is no code of %s, which has %d bits", who, what, (unsigned long long)*code,
                      name, (int)t->bits);
        return -1;
    }
    softnum_fill(SOFTNUM_BINARY64, f);
    *code = sn_tapered_value(t, *code);
    return 1;
}

/* What two's complement says by itself, of posits and takums of one format: neighbours and order, NaR the least. */
static int of_integers(int op, const sn_tapered *t, const sn_u64 *code, sn_u64 *result) {
    const sn_u64 nar = sn_tapered_nar(t), a = code[0] ^ nar, b = code[1] ^ nar;
    switch (op) {
    case SN_OP_next_up: *result = (code[0] + 1) & (2 * nar - 1); return 1;
    case SN_OP_next_down: *result = (code[0] - 1) & (2 * nar - 1); return 1;
    case SN_OP_total_order: *result = a <= b; return 1;
    default: return 0;
    }
}

/* How two posits or takums lie to each other of which one is NaR. */
static sn_u64 order_of_nar(const sn_tapered *t, const sn_u64 *code) {
    const int a = code[0] == sn_tapered_nar(&t[0]), b = code[1] == sn_tapered_nar(&t[1]);
    return a == b ? SN_EQUAL : a ? SN_LESS : SN_GREATER;
}

static sn_u64 operate(int instruction, int operands, const char *who, const sn_u64 *given, sn_u64 formats, sn_u64 mode,
                      sn_u64 random, sn_u64 *flags) {
    static const char *const names[] = {"a", "b", "c"};
    const int op = softnum_operation_of(instruction);
    softnum_rules r;
    const sn_u32 to = softnum_field(formats, SOFTNUM_OUT);
    const int named = op == SN_OP_scalb ? 1 : operands;
    sn_u32 field[3] = {softnum_field(formats, SOFTNUM_A), softnum_field(formats, SOFTNUM_B),
                       softnum_field(formats, SOFTNUM_C_FIELD)};
    sn_format in[3], out;
    sn_tapered target, of[3];
    sn_env env;
    sn_u64 codes[3] = {0, 0, 0}, result;
    sn_u32 raised = 0;
    const int tapered = softnum_fill_tapered(to, &target);
    if (!softnum_fill(tapered ? (sn_u32)SOFTNUM_BINARY64 : to, &out)) return softnum_no_handle(who, formats, flags);
    for (int i = named; i < 3; i++)
        if (field[i])
            return softnum_error(flags, "%s has %d operand%s of a format, and the handle says that of more", who, named,
                                 named == 1 ? "" : "s");
    for (int i = 0; i < named; i++) {
        if (!field[i]) field[i] = i ? field[0] : to;
        codes[i] = given[i];
        const int read = read_operand(who, names[i], field[i], &codes[i], &in[i], &of[i]);
        if (read == 0) return softnum_no_handle(who, formats, flags);
        if (read < 0) return softnum_error_again(flags);
    }
    if (op == SN_OP_scalb) { /* beyond 32 bits every format has overflowed or underflowed */
        const sn_i64 n = (sn_i64)given[1], most = 0x7fffffff;
        softnum_fill(SOFTNUM_INTEGER, &in[1]);
        codes[1] = (sn_u32)(n > most ? most : n < -most ? -most : n);
    }
    if (!softnum_take_rules(who, &mode, &r) || !softnum_env(who, mode, &out, to, &env) ||
        !suits(op, who, in, &out, field, to, &env) ||
        !softnum_instruction_suits(instruction, who, in, &out, field, to, &r))
        return softnum_error_again(flags);
    if (r.cuda && softnum_makes_codes(op) && !tapered && out.has_nan && !sn_cuda_nan(&out)) {
        char name[16];
        softnum_name(to, name);
        return softnum_error(flags, "%s: no manual states the NaN that GPUs deliver in %s; leave SOFTNUM_NAN_CUDA out",
                             who, name);
    }
    if (tapered && (op == SN_OP_round_to_integral ? mode & ~(sn_u64)255 : mode))
        return softnum_error(flags, "%s: posits and takums round to nearest, ties to even, and in no other mode", who);
    const int first = softnum_fill_tapered(field[0], &of[0]);
    const int both = first && named == 2 && softnum_fill_tapered(field[1], &of[1]);
    if (first && (named < 2 || field[1] == field[0]) && of_integers(op, &of[0], given, &result)) return result;
    if (both && (op == SN_OP_compare || op == SN_OP_compare_signaling) &&
        (given[0] == sn_tapered_nar(&of[0]) || given[1] == sn_tapered_nar(&of[1])))
        return softnum_out_of_operation(instruction, order_of_nar(of, given));
    if (instruction == SOFTNUM_OP_sign_xor && !(codes[1] & in[1].sign_mask)) return codes[0];
    softnum_into_operation(instruction, in, &env, codes);
    if (tapered && op != SN_OP_round_to_integral) env.rounding = SN_TO_ODD;
    result =
        softnum_out_of_operation(instruction, softnum_computed(op, in, codes, &out, &env, &r, (sn_u32)random, &raised));
    if (raised & SN_UNDECIDED)
        return softnum_error(flags, "%s: too many bits lie before the last one of a result that wraps; saturate", who);
    if (tapered && op != SN_OP_classify && op != SN_OP_compare && op != SN_OP_compare_signaling)
        return sn_tapered_round(&target, result);
    *flags |= raised & SOFTNUM_EXCEPTIONS;
    return result;
}

#define GIVEN_1 {a, 0, 0}
#define GIVEN_2 {a, b, 0}
#define GIVEN_3 {a, b, c}
#define OPERATION(name, operands)                                                                                      \
    sn_u64 softnum_dpi_##name(SOFTNUM_DPI_TAKES_##operands, sn_u64 formats, sn_u64 mode, sn_u64 random,                \
                              sn_u64 *flags) {                                                                         \
        const sn_u64 given[3] = GIVEN_##operands;                                                                      \
        return operate(SN_OP_##name, operands, "softnum_" #name, given, formats, mode, random, flags);                 \
    }
SN_OPERATIONS(OPERATION)
#define INSTRUCTION(name, operands)                                                                                    \
    sn_u64 softnum_dpi_##name(SOFTNUM_DPI_TAKES_##operands, sn_u64 formats, sn_u64 mode, sn_u64 random,                \
                              sn_u64 *flags) {                                                                         \
        const sn_u64 given[3] = GIVEN_##operands;                                                                      \
        return operate(SOFTNUM_OP_##name, operands, "softnum_" #name, given, formats, mode, random, flags);            \
    }
SOFTNUM_INSTRUCTIONS(INSTRUCTION)

sn_u64 softnum_dpi_random(sn_u64 seed, sn_u64 stream, sn_u64 index) {
    const sn_philox_words key = sn_philox_key(seed, stream, SN_DOMAIN_ELEMENTWISE);
    const sn_u64 block = index / 4;
    return sn_philox((sn_u32)block, (sn_u32)(block >> 32), 0, 0, key.w[0], key.w[1]).w[index % 4];
}

double softnum_dpi_to_real(sn_u64 code, sn_u64 formats, sn_u64 *flags) {
    sn_format f, binary64;
    sn_env env;
    sn_u32 raised = 0;
    double value = 0;
    sn_tapered t;
    const sn_u32 field = softnum_field(formats, SOFTNUM_OUT);
    const int read = read_operand("softnum_to_real", "code", field, &code, &f, &t);
    softnum_fill(SOFTNUM_BINARY64, &binary64);
    if (read == 0)
        softnum_no_handle("softnum_to_real", formats, flags);
    else if (read < 0)
        softnum_error_again(flags);
    else {
        softnum_env("softnum_to_real", SN_NEAREST_EVEN, &binary64, SOFTNUM_BINARY64, &env);
        const sn_u64 bits = sn_convert(&f, code, &binary64, &env, 0, &raised);
        memcpy(&value, &bits, sizeof value);
        *flags |= raised & SOFTNUM_EXCEPTIONS;
    }
    return value;
}

sn_u64 softnum_dpi_from_real(double value, sn_u64 formats, sn_u64 mode, sn_u64 random, sn_u64 *flags) {
    sn_u64 bits;
    memcpy(&bits, &value, sizeof bits);
    const sn_u64 to = softnum_field(formats, SOFTNUM_OUT);
    return operate(SN_OP_convert, 1, "softnum_from_real", &bits, to | (sn_u32)SOFTNUM_BINARY64 << SOFTNUM_A, mode,
                   random, flags);
}

/* softnum.h: operations on codes, by the loops of elementwise/elementwise.h, whose table has one context here. */
#include <stdlib.h>
#include <string.h>

#include "library/objects.h"
#include "softnum/operations/suits.h"

enum { BLOCK = 4 * SN_WORD_BLOCKS };

const char *softnum_operation_name(size_t i, int32_t *operands) {
    if (i >= SN_OPERATION_COUNT) return NULL;
    if (operands) *operands = sn_operation_operands((int)i);
    return sn_operation_name((int)i);
}

static softnum_status refuse(const softnum_operation *o, const char *name, softnum_why *why) {
    sn_format in[3];
    for (int i = 0; i < 3; i++)
        in[i] = o->operand[i].core;
    switch (sn_operation_suits(o->op, in, &o->result.core, &o->context.env)) {
    case SN_ASKS_OWN_FORMAT:
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT,
                            "softnum_operation_new: the result of %s is in the format of a, %s, not %s", name,
                            o->operand[0].name, o->result.name);
    case SN_ASKS_ONE_FORMAT:
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT,
                            "softnum_operation_new: codes of one format have a total order, not of %s and %s",
                            o->operand[0].name, o->operand[1].name);
    case SN_ASKS_INTEGER:
        return softnum_fail(
            why, SOFTNUM_BAD_ARGUMENT,
            "softnum_operation_new: the result of %s is an integer that saturates: state a format qI.0 or "
            "uqI.0, and no wrap; got %s",
            name, o->result.name);
    case SN_ASKS_FEWER_BITS:
        return softnum_fail(
            why, SOFTNUM_BAD_ARGUMENT,
            "softnum_operation_new: roots of %s have more bits in %s than can be wrapped exactly; saturate",
            o->operand[0].name, o->result.name);
    case SN_ASKS_SMALLER_ANGLES:
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT,
                            "softnum_operation_new: values of %s reach 2**%d, and angles are reduced up to 2**%d",
                            o->operand[0].name, (int)o->operand[0].core.emax, (int)SN_TRIGONOMETRIC_EMAX);
    default: break;
    }
    if (o->op == SN_OP_scalb && (o->operand[1].core.kind != SN_FIXED || o->operand[1].core.mantissa_bits))
        return softnum_fail(
            why, SOFTNUM_BAD_ARGUMENT,
            "softnum_operation_new: the second operand of scalb is an integer: state a format qI.0, not %s",
            o->operand[1].name);
    return SOFTNUM_OK;
}

static softnum_status prepare(softnum_operation *o, const char *name, const softnum_rules *rules, softnum_why *why) {
    softnum_status status = softnum_fill_env("softnum_operation_new", rules, &o->result, 0, &o->context.env, why);
    if (status != SOFTNUM_OK || (status = refuse(o, name, why)) != SOFTNUM_OK) return status;
    o->context.out = o->result.core;
    o->width = (int)o->result.bytes;
    for (int i = 0; i < o->operands; i++) {
        o->context.operand[i] = o->operand[i].core;
        if ((int)o->operand[i].bytes > o->width) o->width = (int)o->operand[i].bytes;
    }
    const sn_u64 saved = sn_fp_enter();
    sn_prepare_context(o->op, &o->context);
    if (sn_operation_lanes(o->op, &o->context, &o->lanes)) o->context.lanes = &o->lanes;
    sn_fp_leave(saved);
    o->contexts[0] = &o->context;
    o->table.contexts = o->contexts;
    o->table.count = 1;
    o->table.kernels = o->result.kernels;
    return SOFTNUM_OK;
}

softnum_status softnum_operation_new(const char *name, const softnum_format *const *operands,
                                     const softnum_format *result, const softnum_rules *rules,
                                     softnum_operation **operation, softnum_why *why) {
    softnum_status status;
    int op = 0;
    if (!operation) return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, "softnum_operation_new: operation is null");
    *operation = NULL;
    if (!name || !operands || !result)
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, "softnum_operation_new: name, operands or result is null");
    while (op < SN_OPERATION_COUNT && strcmp(name, sn_operation_name(op)) != 0)
        op++;
    if (op == SN_OPERATION_COUNT)
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT,
                            "softnum_operation_new: unknown operation '%.40s'; softnum_operation_name lists them",
                            name);
    softnum_operation *o = softnum_new(sizeof *o, why, &status);
    if (!o) return status;
    o->op = op;
    o->operands = sn_operation_operands(op);
    o->result = *result;
    for (int i = 0; i < o->operands && status == SOFTNUM_OK; i++) {
        if (operands[i])
            o->operand[i] = *operands[i];
        else
            status =
                softnum_fail(why, SOFTNUM_BAD_ARGUMENT,
                             "softnum_operation_new: %s has %d operands, and format %d is null", name, o->operands, i);
    }
    if (status == SOFTNUM_OK) status = prepare(o, name, rules, why);
    if (status == SOFTNUM_OK)
        *operation = o;
    else
        free(o);
    return status;
}

void softnum_operation_free(softnum_operation *operation) { free(operation); }

/* A block's arrays, where they do not stand as the loop takes them. */
typedef struct {
    sn_u64 codes[3][BLOCK], results[BLOCK];
    sn_u32 words[BLOCK];
    sn_u8 flags[BLOCK];
} block;

/* n codes of one width as codes of another. */
static void recode(void *out, int to, const void *in, int from, size_t n) {
    for (size_t i = 0; i < n; i++)
        sn_store_code((char *)out + i * (size_t)to, to, sn_load_code((const char *)in + i * (size_t)from, from));
}

/* Whether a result may be one that a status tells of. */
static int may_fail(const softnum_operation *o) { return o->op >= SN_OP_exp || !o->result.core.has_nan; }

/* Elements i ... i + n - 1, at most BLOCK where arrays are copied; the OR of the flags, those of a status among them.
 */
static sn_u32 run(const softnum_operation *o, const void *const *in, void *out, uint8_t *flags, size_t i, size_t n,
                  const softnum_random *random, block *b) {
    const int k = o->operands, stochastic = sn_is_stochastic(&o->context.env);
    const sn_loop_data data = {(sn_context_table *)(uintptr_t)&o->table, /* which loops do not write to */
                               flags         ? SN_ALL_FLAGS
                               : may_fail(o) ? SN_RARE_FLAGS
                                             : SN_NO_FLAGS};
    sn_u64 handle = 0;
    char *args[7] = {NULL};
    ptrdiff_t steps[7] = {0};
    const ptrdiff_t count = (ptrdiff_t)n;
    sn_u32 met = 0;
    for (int j = 0; j < k; j++) {
        const size_t bytes = o->operand[j].bytes;
        args[j] = (char *)(uintptr_t)in[j] + i * bytes;
        steps[j] = o->width;
        if ((int)bytes == o->width) continue;
        recode(b->codes[j], o->width, args[j], (int)bytes, n);
        args[j] = (char *)b->codes[j];
    }
    b->words[0] = 0;
    if (stochastic) softnum_fill_words(random, i, b->words, n);
    args[k] = (char *)b->words;
    steps[k] = stochastic ? 4 : 0;
    args[k + 1] = (char *)&handle;
    char *const target = (char *)out + i * o->result.bytes, *const raised =
                                                                flags ? (char *)flags + i : (char *)b->flags;
    args[k + 2] = (int)o->result.bytes == o->width ? target : (char *)b->results;
    steps[k + 2] = o->width;
    args[k + 3] = raised;
    steps[k + 3] = 1;
    sn_loop_for(o->op, o->width)(args, &count, steps, (void *)(uintptr_t)&data);
    if (args[k + 2] != target) recode(target, (int)o->result.bytes, b->results, o->width, n);
    for (size_t j = 0; data.with_flags && j < n; j++)
        met |= (sn_u8)raised[j];
    return met;
}

/* Whether the loop takes a call's arrays as they are. */
static int in_one(const softnum_operation *o, const uint8_t *flags) {
    int same = (int)o->result.bytes == o->width;
    for (int j = 0; j < o->operands; j++)
        same &= (int)o->operand[j].bytes == o->width;
    return same && !sn_is_stochastic(&o->context.env) && (flags || !may_fail(o));
}

softnum_status softnum_operate(const softnum_operation *operation, const void *const *in, void *out, uint8_t *flags,
                               size_t n, const softnum_random *random, softnum_why *why) {
    static const char *const names[] = {"in[0]", "in[1]", "in[2]"};
    const softnum_operation *o = operation;
    softnum_status status;
    block b;
    sn_u32 met = 0;
    if (!o || !in || (n && !out))
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, "softnum_operate: the operation, in or out is null");
    for (int j = 0; j < o->operands; j++)
        if (n && !in[j]) return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, "softnum_operate: %s is null", names[j]);
    status = softnum_check_random("softnum_operate", sn_is_stochastic(&o->context.env), random, why);
    for (int j = 0; j < o->operands && status == SOFTNUM_OK; j++)
        status = softnum_check_codes("softnum_operate", names[j], &o->operand[j], in[j], n, 0, why);
    if (status != SOFTNUM_OK) return status;
    const size_t most = in_one(o, flags) ? n : BLOCK;
    for (size_t i = 0; i < n; i += most)
        met |= run(o, in, out, flags, i, n - i < most ? n - i : most, random, &b);
    if (met & SN_UNDECIDED)
        return softnum_fail(why, SOFTNUM_UNDECIDED,
                            "softnum_operate: too many bits lie before the last one of a result that wraps; saturate");
    if (met & SN_NO_CODE)
        return softnum_fail(why, SOFTNUM_NO_CODE,
                            "softnum_operate: a result is NaN%s, and %s has no code for it; code 0x%llx stands there "
                            "(invalid_code)",
                            o->result.core.kind == SN_FIXED ? " or infinite" : "", o->result.name,
                            (unsigned long long)o->context.env.invalid_code);
    return SOFTNUM_OK;
}

#include "short_fixed.h"
#include "short_floats.h"

#include <string.h>

SN_ALWAYS sn_u64 apply(int op, const sn_context *x, const sn_u64 *in, sn_u32 random, sn_u32 *flags) {
    const sn_format *f = x->operand;
    const sn_format *g = f + 1, *o = &x->out;
    const sn_env *e = &x->env;
    const sn_u64 a = in[0], b = in[1];
    switch (op) {
    case SN_OP_convert: return sn_convert(f, a, o, e, random, flags);
    case SN_OP_add: return sn_add(f, a, g, b, o, e, random, flags);
    case SN_OP_subtract: return sn_subtract(f, a, g, b, o, e, random, flags);
    case SN_OP_multiply: return sn_multiply(f, a, g, b, o, e, random, flags);
    case SN_OP_fma: return sn_fma(f, a, g, b, f + 2, in[2], o, e, random, flags);
    case SN_OP_divide: return sn_divide(f, a, g, b, o, e, random, flags);
    case SN_OP_remainder: return sn_remainder(f, a, g, b, o, e, random, flags);
    case SN_OP_sqrt: return sn_sqrt(f, a, o, e, random, flags);
    case SN_OP_round_to_integral: return sn_round_to_integral(f, a, o, e, random, flags);
    case SN_OP_to_integer: return sn_convert_to_integer(f, a, o, e, random, flags);
    case SN_OP_minimum: return sn_extremum(f, a, g, b, o, e, 0, 0, random, flags);
    case SN_OP_maximum: return sn_extremum(f, a, g, b, o, e, 1, 0, random, flags);
    case SN_OP_minimum_number: return sn_extremum(f, a, g, b, o, e, 0, 1, random, flags);
    case SN_OP_maximum_number: return sn_extremum(f, a, g, b, o, e, 1, 1, random, flags);
    case SN_OP_scalb: {
        sn_number n = sn_unpack(g, b); /* an integer format */
        sn_i64 size = n.kind == SN_ZERO ? 0 : (sn_i64)(n.sig > 0x7fffffff ? 0x7fffffff : n.sig);
        return sn_scalb(f, a, n.sign ? -size : size, o, e, random, flags);
    }
    case SN_OP_logb: return sn_logb(f, a, o, e, random, flags);
    case SN_OP_next_up: return sn_next(f, a, 0, e, flags);
    case SN_OP_next_down: return sn_next(f, a, 1, e, flags);
    case SN_OP_negate: return sn_set_sign(f, a, !sn_sign(f, a), e, random, flags);
    case SN_OP_absolute: return sn_set_sign(f, a, 0, e, random, flags);
    case SN_OP_copysign: return sn_set_sign(f, a, sn_sign(g, b), e, random, flags);
    case SN_OP_compare: return sn_compare(f, a, g, b, e, 0, flags);
    case SN_OP_compare_signaling: return sn_compare(f, a, g, b, e, 1, flags);
    case SN_OP_total_order: return sn_total_order(f, a, b);
    case SN_OP_classify: return sn_classify(f, a);
    default: return sn_elementary_code(op - SN_OP_exp, x, in, random, flags);
    }
}

/* The definition of each operation, apart from the loops, which are one for each width. */
typedef sn_u64 definition(const sn_context *context, const sn_u64 *in, sn_u32 random, sn_u32 *flags);
#define DEFINITION(name, operands)                                                                                     \
    static SN_NOINLINE sn_u64 define_##name(const sn_context *x, const sn_u64 *in, sn_u32 random, sn_u32 *flags) {     \
        return apply(SN_OP_##name, x, in, random, flags);                                                              \
    }
SN_OPERATIONS(DEFINITION)

SN_ALWAYS void body(int op, int operands, definition *define, int width, char **args, ptrdiff_t n,
                    const ptrdiff_t *steps, const sn_loop_data *d) {
    char *random = args[operands], *handle = args[operands + 1], *out = args[operands + 2];
    char *flags_out = d->with_flags ? args[operands + 3] : NULL;
    const ptrdiff_t flags_step = d->with_flags ? steps[operands + 3] : 0, random_step = steps[operands],
                    out_step = steps[operands + 2];
    const char *p[3] = {args[0], operands > 1 ? args[1] : NULL, operands > 2 ? args[2] : NULL};
    const sn_context *context = NULL;
    sn_normals normals;
    sn_fixed_plan fixed;
    int short_way = 0;
    memset(&normals, 0, sizeof normals);
    memset(&fixed, 0, sizeof fixed);
    for (ptrdiff_t i = 0; i < n; i++) {
        if (i == 0 || steps[operands + 1] != 0) {
            sn_u64 h = sn_load_code(handle, 8);
            context = h < d->table->count ? d->table->contexts[h] : NULL;
            if (!context) d->table->bad_handle = 1;
            short_way = context ? context->short_way : SN_NO_SHORT_WAY;
            if (short_way) { /* copies, which out cannot alias */
                normals = context->normals;
                fixed = context->fixed;
            }
            handle += steps[operands + 1];
        }
        sn_u64 in[3] = {0, 0, 0}, code = 0;
        sn_u32 flags = 0;
        for (int k = 0; k < operands; k++)
            in[k] = sn_load_code(p[k] + i * steps[k], width);
        const sn_u32 word = (sn_u32)sn_load_code(random + i * random_step, 4);
        if (!(short_way == SN_NORMALS && sn_short_float_exists(op) &&
              sn_short_float(op, &normals, in, word, &code, &flags)) &&
            !(short_way == SN_FIXED_POINT && sn_short_fixed_exists(op) &&
              sn_short_fixed(op, &fixed, in, word, &code, &flags))) {
            flags = context ? 0 : 0xff;
            if (context) code = define(context, in, word, &flags);
        }
        sn_store_code(out + i * out_step, width, code);
        if (flags_out) *(sn_u8 *)(flags_out + i * flags_step) = (sn_u8)flags;
    }
}

#define LOOP(name, operands, width)                                                                                    \
    static void loop_##name##_##width(char **args, const ptrdiff_t *count, const ptrdiff_t *steps, void *data) {       \
        if (sn_fast_loop(SN_OP_##name, width, args, count[0], steps, data)) return;                                    \
        body(SN_OP_##name, operands, define_##name, width, args, count[0], steps, data);                               \
    }
#define LOOPS(name, operands)                                                                                          \
    LOOP(name, operands, 1) LOOP(name, operands, 2) LOOP(name, operands, 4) LOOP(name, operands, 8)
SN_OPERATIONS(LOOPS)

sn_loop *sn_loop_for(int op, int width) {
    static sn_loop *const loops[SN_OPERATION_COUNT][4] = {
#define ENTRY(name, operands) {loop_##name##_1, loop_##name##_2, loop_##name##_4, loop_##name##_8},
        SN_OPERATIONS(ENTRY)
#undef ENTRY
    };
    if (op < 0 || op >= SN_OPERATION_COUNT) return NULL;
    switch (width) {
    case 1: return loops[op][0];
    case 2: return loops[op][1];
    case 4: return loops[op][2];
    case 8: return loops[op][3];
    default: return NULL;
    }
}

const char *sn_operation_name(int op) {
    static const char *const names[] = {
#define ENTRY(name, operands) #name,
        SN_OPERATIONS(ENTRY)
#undef ENTRY
    };
    return names[op];
}

int sn_operation_operands(int op) {
    static const int counts[] = {
#define ENTRY(name, operands) operands,
        SN_OPERATIONS(ENTRY)
#undef ENTRY
    };
    return counts[op];
}

void sn_prepare_context(int op, sn_context *context) {
    const sn_format *operands = context->operand, *out = &context->out;
    context->short_way = sn_normals_prepare(op, operands, out, &context->env, &context->normals) ? SN_NORMALS
                         : sn_fixed_prepare(op, operands, out, &context->env, &context->fixed)   ? SN_FIXED_POINT
                                                                                                 : SN_NO_SHORT_WAY;
}

sn_u64 sn_define(int op, const sn_context *context, const sn_u64 *in, sn_u32 random, sn_u32 *flags) {
    return apply(op, context, in, random, flags);
}

#include "elementwise/functions/functions.h"
#include "elementwise/short/fixed.h"
#include "elementwise/short/floats.h"

#include <string.h>

SN_ALWAYS sn_u64 apply(int op, const sn_context *x, const sn_u64 *in, sn_u32 random, sn_u32 *flags) {
    if (op >= SN_OP_exp) return sn_elementary_code(op - SN_OP_exp, x, in, random, flags);
    return sn_operate(op, x->operand, in, &x->out, &x->env, random, flags);
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
            context = sn_context_of(d->table, sn_load_code(handle, 8));
            if (!context) __atomic_store_n(&d->table->bad_handle, 1, __ATOMIC_RELAXED);
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
    if (op >= SN_OP_exp) {
        const int there =
            sn_function_prepare(op - SN_OP_exp, operands, out, &context->env, &context->function, &context->normals);
        context->short_way = there ? SN_IN_LANES : SN_NO_SHORT_WAY;
        return;
    }
    context->short_way = sn_normals_prepare(op, operands, out, &context->env, &context->normals) ? SN_NORMALS
                         : sn_fixed_prepare(op, operands, out, &context->env, &context->fixed)   ? SN_FIXED_POINT
                                                                                                 : SN_NO_SHORT_WAY;
}

sn_u64 sn_define(int op, const sn_context *context, const sn_u64 *in, sn_u32 random, sn_u32 *flags) {
    return apply(op, context, in, random, flags);
}

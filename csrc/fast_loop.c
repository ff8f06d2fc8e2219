/* Loops over codes by table and by vectors. Tables are filled by the definition; the vectors' domain is stated in
 * operate_body.h. */
#include <string.h>

#include "elementwise.h"

size_t sn_table_size(int op, const sn_context *context) {
    const sn_i32 a = context->operand[0].bits, b = context->operand[1].bits;
    switch (sn_operation_operands(op)) {
    case 1: return a <= 16 ? (size_t)1 << a : 0;
    case 2: return a <= 8 && b <= 8 && context->out.bits <= 8 ? 65536 : 0;
    default: return 0;
    }
}

sn_u32 sn_fill_table(int op, const sn_context *context, int width, void *table, sn_u8 *flags) {
    const int two = sn_operation_operands(op) == 2;
    const size_t size = sn_table_size(op, context);
    sn_u32 all = 0;
    for (size_t i = 0; i < size; i++) {
        const sn_u64 in[3] = {two ? i >> 8 : i, i & 0xff, 0};
        sn_u32 raised = 0;
        sn_u64 code = sn_define(op, context, in, 0, &raised);
        switch (width) {
        case 1: ((sn_u8 *)table)[i] = (sn_u8)code; break;
        case 2: ((sn_u16 *)table)[i] = (sn_u16)code; break;
        default: ((sn_u32 *)table)[i] = (sn_u32)code;
        }
        flags[i] = (sn_u8)raised;
        all |= raised;
    }
    return all;
}

int sn_operation_lanes(int op, const sn_context *context, sn_lanes *p) {
    int lanes;
    switch (op) {
    case SN_OP_convert: lanes = SN_LANES_CONVERT; break;
    case SN_OP_add: lanes = SN_LANES_ADD; break;
    case SN_OP_subtract: lanes = SN_LANES_SUBTRACT; break;
    case SN_OP_multiply: lanes = SN_LANES_MULTIPLY; break;
    case SN_OP_fma: lanes = SN_LANES_FMA; break;
    case SN_OP_divide: lanes = SN_LANES_DIVIDE; break;
    case SN_OP_sqrt: lanes = SN_LANES_SQRT; break;
    default: return 0;
    }
    return sn_lanes_prepare(lanes, context->operand, &context->out, &context->env, p);
}

/* out[i] = table[index of i]: known types and contiguous arrays make the loop that 8-bit arithmetic lives in. */
#define LOOK_UP(name, code, entry)                                                                                     \
    static void name(int two, sn_u32 mask, char **args, ptrdiff_t n, const ptrdiff_t *steps, const entry *table,       \
                     char *out, ptrdiff_t step) {                                                                      \
        const char *a = args[0], *b = args[1];                                                                         \
        if (two && steps[0] == 1 && steps[1] == 1 && step == 1) {                                                      \
            for (ptrdiff_t i = 0; i < n; i++)                                                                          \
                ((entry *)(void *)out)[i] = table[(sn_u32)((const sn_u8 *)a)[i] << 8 | ((const sn_u8 *)b)[i]];         \
        } else if (two) {                                                                                              \
            for (ptrdiff_t i = 0; i < n; i++)                                                                          \
                *(entry *)(void *)(out + i * step) =                                                                   \
                    table[(sn_u32) * (const sn_u8 *)(a + i * steps[0]) << 8 | *(const sn_u8 *)(b + i * steps[1])];     \
        } else if (steps[0] == sizeof(code) && step == sizeof(entry)) {                                                \
            for (ptrdiff_t i = 0; i < n; i++)                                                                          \
                ((entry *)(void *)out)[i] = table[((const code *)(const void *)a)[i] & mask];                          \
        } else {                                                                                                       \
            for (ptrdiff_t i = 0; i < n; i++)                                                                          \
                *(entry *)(void *)(out + i * step) = table[*(const code *)(const void *)(a + i * steps[0]) & mask];    \
        }                                                                                                              \
    }
LOOK_UP(look_up_8, sn_u8, sn_u8)
LOOK_UP(look_up_16, sn_u16, sn_u16)
LOOK_UP(look_up_32, sn_u32, sn_u32)
LOOK_UP(look_up_flags_16, sn_u16, sn_u8)
LOOK_UP(look_up_flags_32, sn_u32, sn_u8)

static void by_table(const sn_context *x, int operands, int width, char **args, ptrdiff_t n, const ptrdiff_t *steps,
                     int with_flags) {
    const int two = operands == 2;
    const sn_u32 mask = (sn_u32)(x->operand[0].magnitude_mask | x->operand[0].sign_mask);
    char *const out = args[operands + 2];
    const ptrdiff_t step = steps[operands + 2];
    if (with_flags) { /* first: the result may lie where an operand does */
        char *const flags = args[operands + 3];
        const ptrdiff_t flags_step = steps[operands + 3];
        if (width == 1) look_up_8(two, mask, args, n, steps, x->table_flags, flags, flags_step);
        if (width == 2) look_up_flags_16(two, mask, args, n, steps, x->table_flags, flags, flags_step);
        if (width == 4) look_up_flags_32(two, mask, args, n, steps, x->table_flags, flags, flags_step);
    }
    if (width == 1) look_up_8(two, mask, args, n, steps, (const sn_u8 *)x->table, out, step);
    if (width == 2) look_up_16(two, mask, args, n, steps, (const sn_u16 *)x->table, out, step);
    if (width == 4) look_up_32(two, mask, args, n, steps, (const sn_u32 *)x->table, out, step);
}

/* n elements of `width` bytes that lie `from` and `to` bytes apart. */
static void copy_strided(char *out, ptrdiff_t to, const char *in, ptrdiff_t from, int width, size_t n) {
    for (size_t i = 0; i < n; i++)
        memcpy(out + (ptrdiff_t)i * to, in + (ptrdiff_t)i * from, (size_t)width);
}

enum { BLOCK = 4 * SN_WORD_BLOCKS };

static void by_lanes(const sn_context *x, const sn_kernels *run, int operands, int width, char **args, ptrdiff_t n,
                     const ptrdiff_t *steps) {
    sn_u64 gathered[3][BLOCK], scattered[BLOCK];
    sn_u32 words[BLOCK];
    const sn_u64 saved = sn_fp_enter();
    const ptrdiff_t out_step = steps[operands + 2], word_step = steps[operands];
    for (ptrdiff_t i = 0; i < n; i += BLOCK) {
        const size_t take = n - i < BLOCK ? (size_t)(n - i) : (size_t)BLOCK;
        const void *in[3] = {NULL, NULL, NULL};
        const sn_u32 *w = NULL;
        for (int k = 0; k < operands; k++) {
            in[k] = args[k] + i * steps[k];
            if (steps[k] == width) continue;
            if (i == 0 || steps[k] != 0)
                copy_strided((char *)gathered[k], width, args[k] + i * steps[k], steps[k], width, take);
            in[k] = gathered[k];
        }
        if (x->lanes->stochastic) {
            w = (const sn_u32 *)(const void *)(args[operands] + i * word_step);
            if (word_step != 4) {
                copy_strided((char *)words, 4, args[operands] + i * word_step, word_step, 4, take);
                w = words;
            }
        }
        char *const out = args[operands + 2] + i * out_step;
        run->operate(x->lanes, in, width, out_step == width ? out : (char *)scattered, take, w);
        if (out_step != width) copy_strided(out, out_step, (const char *)scattered, width, width, take);
    }
    sn_fp_leave(saved);
}

int sn_fast_loop(int operands, int width, char **args, ptrdiff_t n, const ptrdiff_t *steps, const sn_loop_data *d) {
    if (n == 0 || steps[operands + 1] != 0) return 0; /* one handle for all */
    sn_u64 h;
    memcpy(&h, args[operands + 1], sizeof h);
    if (h >= d->table->count) return 0;
    const sn_context *const x = d->table->contexts[h];
    if (x->table && x->table_width == width) {
        by_table(x, operands, width, args, n, steps, d->with_flags);
        return 1;
    }
    if (d->with_flags || !x->lanes || !d->table->kernels || n < 8) return 0;
    by_lanes(x, d->table->kernels, operands, width, args, n, steps);
    return 1;
}

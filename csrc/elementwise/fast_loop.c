/* Loops over codes by table and by vectors. Tables are filled by the definition; the vectors' domain is stated in
 * elementwise/operate.h. */
#include <string.h>

#include "elementwise/elementwise.h"
#include "elementwise/functions/functions.h"

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

int sn_lanes_operation(int op) {
    switch (op) {
    case SN_OP_convert: return SN_LANES_CONVERT;
    case SN_OP_add: return SN_LANES_ADD;
    case SN_OP_subtract: return SN_LANES_SUBTRACT;
    case SN_OP_multiply: return SN_LANES_MULTIPLY;
    case SN_OP_fma: return SN_LANES_FMA;
    case SN_OP_divide: return SN_LANES_DIVIDE;
    case SN_OP_sqrt: return SN_LANES_SQRT;
    default: return -1;
    }
}

int sn_operation_lanes(int op, const sn_context *context, sn_lanes *p) {
    const int lanes = sn_lanes_operation(op);
    return lanes >= 0 && sn_lanes_prepare(lanes, context->operand, &context->out, &context->env, p);
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
static void copy_strided(void *out, ptrdiff_t to, const void *in, ptrdiff_t from, int width, size_t n) {
    char *p = out;
    const char *q = in;
    if (to == width && from == width)
        memcpy(out, in, n * (size_t)width);
    else
        for (size_t i = 0; i < n; i++, p += to, q += from)
            memcpy(p, q, (size_t)width);
}

enum { BLOCK = 4 * SN_WORD_BLOCKS };

/* A block of the loop's arrays, contiguous; whole blocks, so that vectors may read on behind what is there. */
typedef struct {
    sn_u64 codes[3][BLOCK], results[BLOCK];
    sn_u32 words[BLOCK];
    sn_u8 flags[BLOCK], outside[BLOCK];
} scratch;

/* Elements i .. i + take of one argument: where they stand, if they stand as wanted, or in `room`. */
static const void *block_of(const char *arg, ptrdiff_t step, int width, ptrdiff_t i, size_t take, void *room) {
    if (step == width && take == BLOCK) return arg + i * step;
    if (i == 0 || step != 0 || take != BLOCK) copy_strided(room, width, arg + i * step, step, width, take);
    return room;
}

/* Elements i .. i + take of all operands, and of their random words, if any; returns those. */
static const sn_u32 *load_block(const void *in[3], int operands, int random, int width, char **args,
                                const ptrdiff_t *steps, ptrdiff_t i, size_t take, scratch *s) {
    for (int k = 0; k < 3; k++)
        in[k] = k < operands ? block_of(args[k], steps[k], width, i, take, s->codes[k]) : NULL;
    return random ? block_of(args[operands], steps[operands], 4, i, take, s->words) : NULL;
}

static void by_lanes(const sn_context *x, const sn_kernels *run, int operands, int width, char **args, ptrdiff_t n,
                     const ptrdiff_t *steps) {
    scratch s;
    const sn_u64 saved = sn_fp_enter();
    const ptrdiff_t out_step = steps[operands + 2];
    for (ptrdiff_t i = 0; i < n; i += BLOCK) {
        const size_t take = n - i < BLOCK ? (size_t)(n - i) : (size_t)BLOCK;
        const void *in[3];
        const sn_u32 *words = load_block(in, operands, x->lanes->stochastic, width, args, steps, i, take, &s);
        char *const out = args[operands + 2] + i * out_step;
        run->operate(x->lanes, in, width, out_step == width ? out : (char *)s.results, take, words);
        if (out_step != width) copy_strided(out, out_step, (const char *)s.results, width, width, take);
    }
    sn_fp_leave(saved);
}

/* One element of a block by the definition. */
static void define_one(int op, const sn_context *x, const void *const *in, int width, const sn_u32 *words, size_t i,
                       scratch *s) {
    sn_u64 codes[3] = {0, 0, 0};
    sn_u32 flags = 0;
    for (int k = 0; k < sn_operation_operands(op); k++)
        codes[k] = sn_load_code((const char *)in[k] + i * (size_t)width, width);
    const sn_u64 code = sn_define(op, x, codes, words ? words[i] : 0, &flags);
    sn_store_code((char *)s->results + i * (size_t)width, width, code);
    s->flags[i] = (sn_u8)flags;
}

/* What the definition does of a block, into s->results; at[...]: where, in order. Returns how many. */
static size_t define_rest(int op, const sn_context *x, const void *const *in, int width, const sn_u32 *words,
                          size_t take, scratch *s, sn_u8 *at) {
    size_t some = 0;
    for (size_t j = 0; j < take; j += 8) {
        sn_u64 any;
        memcpy(&any, s->outside + j, 8);
        for (size_t k = j; any && k < j + 8 && k < take; k++)
            if (s->outside[k]) {
                define_one(op, x, in, width, words, k, s);
                at[some++] = (sn_u8)k;
            }
    }
    return some;
}

static void by_short_lanes(int op, const sn_context *x, const sn_kernels *run, int operands, int width, char **args,
                           ptrdiff_t n, const ptrdiff_t *steps, int with_flags) {
    scratch s;
    sn_u8 at[BLOCK];
    memset(&s, 0, sizeof s);
    const sn_u64 saved = sn_fp_enter();
    for (ptrdiff_t i = 0; i < n; i += BLOCK) {
        const size_t take = n - i < BLOCK ? (size_t)(n - i) : (size_t)BLOCK;
        const void *in[3];
        const sn_u32 *words = load_block(in, operands, sn_is_stochastic(&x->env), width, args, steps, i, take, &s);
        run->short_floats(sn_lanes_operation(op), &x->normals, in, width, s.results, s.flags, s.outside, take, words);
        define_rest(op, x, in, width, words, take, &s, at);
        copy_strided(args[operands + 2] + i * steps[operands + 2], steps[operands + 2], (const char *)s.results, width,
                     width, take);
        if (with_flags)
            copy_strided(args[operands + 3] + i * steps[operands + 3], steps[operands + 3], (const char *)s.flags, 1, 1,
                         take);
    }
    sn_fp_leave(saved);
}

static void narrow(void *out, int width, const sn_u64 *codes, size_t n) {
    switch (width) {
    case 1:
        for (size_t i = 0; i < n; i++)
            ((sn_u8 *)out)[i] = (sn_u8)codes[i];
        break;
    case 2:
        for (size_t i = 0; i < n; i++)
            ((sn_u16 *)out)[i] = (sn_u16)codes[i];
        break;
    case 4:
        for (size_t i = 0; i < n; i++)
            ((sn_u32 *)out)[i] = (sn_u32)codes[i];
        break;
    default: memcpy(out, codes, n * sizeof *codes);
    }
}

/* What overflows is left to the definition: its code does not tell whether the result is a multiple of the step. */
static void convert_each(const sn_context *x, sn_u64 *codes, sn_u8 *flags, sn_u8 *outside, size_t n,
                         const sn_u32 *words, int with_flags) {
    for (size_t i = 0; i < n; i++) {
        sn_u32 raised = 0;
        if (outside[i]) continue;
        codes[i] = sn_convert(&sn_function_format, codes[i], &x->out, &x->env, words ? words[i] : 0, &raised);
        flags[i] = (sn_u8)raised;
        if (with_flags && (raised & SN_FLAG_OVERFLOW)) outside[i] = 1;
    }
}

static void run_function(const sn_kernels *run, int operands, const sn_function *function, double numbers[2][BLOCK],
                         sn_u64 *results, sn_u8 *outside, size_t n) {
    if (operands == 1)
        run->function(function, numbers[0], results, outside, n);
    else
        run->function_of_two(function, numbers[0], numbers[1], results, outside, n);
}

/* As by_short_lanes, of a function: its operands as binary64 numbers, its results as such numbers too or, where flags
 * are asked for, as codes of a wider format, converted; of wide operands, as codes. */
static void by_function(int op, const sn_context *x, const sn_kernels *run, int operands, int width, char **args,
                        ptrdiff_t n, const ptrdiff_t *steps, int with_flags) {
    scratch s;
    double numbers[2][BLOCK], values[BLOCK];
    sn_u64 between[BLOCK];
    sn_u8 undecided[BLOCK], at[BLOCK];
    sn_function function = x->function;
    function.to_values = function.to_values && with_flags != SN_ALL_FLAGS;
    const ptrdiff_t out_step = steps[operands + 2], flags_step = with_flags ? steps[operands + 3] : 0;
    memset(&s, 0, sizeof s);
    memset(numbers, 0, sizeof numbers);
    const sn_u64 saved = sn_fp_enter();
    for (ptrdiff_t i = 0; i < n; i += BLOCK) {
        const size_t take = n - i < BLOCK ? (size_t)(n - i) : (size_t)BLOCK;
        const void *in[3], *const results[3] = {between, NULL, NULL};
        char *const out = args[operands + 2] + i * out_step;
        char *const flags = with_flags ? args[operands + 3] + i * flags_step : NULL;
        const sn_u32 *words = load_block(in, operands, sn_is_stochastic(&x->env), width, args, steps, i, take, &s);
        for (int k = 0; k < operands; k++)
            run->decode64(&function.in[k], in[k], width, numbers[k], take);
        if (function.to_values) { /* the result may lie where the operand does: first what is read from there */
            const sn_random_source random = {words, {0, 0}, 0};
            run_function(run, operands, &function, numbers, (sn_u64 *)(void *)values, s.outside, take);
            const size_t some = define_rest(op, x, in, width, words, take, &s, at);
            char *const to = out_step == width ? out : (char *)between;
            run->encode64(&function.out, values, to, width, take, &random);
            for (size_t j = 0; j < some; j++)
                memcpy(to + at[j] * width, (const char *)s.results + at[j] * width, (size_t)width);
            if (to != out) copy_strided(out, out_step, to, width, width, take);
            if (flags) copy_strided(flags, flags_step, (const char *)s.flags, 1, 1, take);
            for (size_t j = 0; j < some; j++)
                s.flags[at[j]] = 0; /* those of elements in lanes stay 0 */
            continue;
        }
        if (function.wide) {
            const double *const given[2] = {numbers[0], numbers[1]};
            run->wide_function(&function, &x->normals, given, width, s.results, s.flags, s.outside, take);
        } else {
            run_function(run, operands, &function, numbers, between, undecided, take);
            if (function.by_one)
                convert_each(x, between, s.flags, undecided, take, words, with_flags);
            else
                run->short_floats(SN_LANES_CONVERT, &x->normals, results, 8, between, s.flags, s.outside, take, words);
            narrow(s.results, width, between, take);
            for (size_t j = 0; j < take; j++)
                s.outside[j] = undecided[j] | (function.by_one ? 0 : s.outside[j]);
        }
        define_rest(op, x, in, width, words, take, &s, at);
        copy_strided(out, out_step, (const char *)s.results, width, width, take);
        if (flags) copy_strided(flags, flags_step, (const char *)s.flags, 1, 1, take);
    }
    sn_fp_leave(saved);
}

int sn_fast_loop(int op, int width, char **args, ptrdiff_t n, const ptrdiff_t *steps, const sn_loop_data *d) {
    const int operands = sn_operation_operands(op);
    if (n == 0 || steps[operands + 1] != 0) return 0; /* one handle for all */
    sn_u64 h;
    memcpy(&h, args[operands + 1], sizeof h);
    const sn_context *const x = sn_context_of(d->table, h);
    const sn_kernels *const run = sn_kernels_of(d->table);
    if (!x) return 0;
    if (sn_table_of(x) && x->table_width == width) {
        by_table(x, operands, width, args, n, steps, d->with_flags);
        return 1;
    }
    if (!run || n < 8) return 0;
    if (x->lanes && !d->with_flags) {
        by_lanes(x, run, operands, width, args, n, steps);
        return 1;
    }
    if (x->short_way == SN_IN_LANES && (x->function.wide ? run->wide_function != NULL : run->short_floats != NULL)) {
        by_function(op, x, run, operands, width, args, n, steps, d->with_flags);
        return 1;
    }
    if (x->short_way != SN_NORMALS || !x->normals.in_lanes || !run->short_floats) return 0;
    by_short_lanes(op, x, run, operands, width, args, n, steps, d->with_flags);
    return 1;
}

/* Loops over arrays of codes, array conversion and the words of stochastic rounding: each element as it is alone,
 * whatever the width, the strides, the handles and the table; and nothing beyond the arrays touched. */
#include "fuzz.h"

enum { LONGEST = 300, FRESH = 32, CONTEXTS = 3 };

/* A ufunc's operand or result: count elements of size bytes, stride bytes apart, in a buffer of just that span. */
typedef struct {
    char *buffer, *first;
    ptrdiff_t stride;
} strided;

static void put(char *p, int size, sn_u64 value) { memcpy(p, &value, (size_t)size); } /* little-endian, as the CPUs */

static sn_u64 get(const char *p, int size) {
    sn_u64 value = 0;
    memcpy(&value, p, (size_t)size);
    return value;
}

static strided take_strided(fuzz_input *in, size_t count, int size, int broadcast) {
    static const int steps[] = {1, 1, 2, -1, 5, -3};
    const int which = fuzz_choose(in, broadcast ? 8 : 6);
    const ptrdiff_t step = which < 6 ? steps[which] : 0;
    const size_t span = count ? (size_t)(step < 0 ? -step : step) * (count - 1) + 1 : 0;
    strided s = {fuzz_buffer(span, (size_t)size), NULL, step * size};
    memset(s.buffer, 0x5a, span * (size_t)size);
    s.first = s.buffer + (step < 0 && count ? -s.stride * (ptrdiff_t)(count - 1) : 0);
    return s;
}

static char *at(const strided *s, size_t i) { return s->first + s->stride * (ptrdiff_t)i; }

static int width_of(int bits) { return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8; }

void fuzz_loops(fuzz_input *in) {
    const int op = fuzz_choose(in, SN_OPERATION_COUNT), operands = sn_operation_operands(op);
    const int width = 1 << fuzz_choose(in, 4), with_flags = fuzz_choose(in, 2);
    const size_t count = (size_t)fuzz_choose(in, fuzz_choose(in, 4) ? 41 : LONGEST + 1);
    static sn_u32 lookup[65536];
    static sn_u8 lookup_flags[65536];
    static sn_lanes lanes[CONTEXTS];
    fuzz_trial trials[CONTEXTS];
    sn_context *contexts[CONTEXTS];
    const int table_wanted = width < 8 && fuzz_choose(in, 16) == 15;
    for (int c = 0; c < CONTEXTS; c++) {
        fuzz_trial *t = &trials[c];
        memset(t, 0, sizeof *t);
        t->op = op;
        for (int k = 0; k < 3; k++)
            t->context.operand[k] = fuzz_take_format(in, 8 * width);
        if (op == SN_OP_scalb) t->context.operand[1] = fuzz_fixed(width == 8 ? 32 : 8 * width, 0, 1);
        if (op == SN_OP_total_order) t->context.operand[1] = t->context.operand[0];
        t->context.out = fuzz_choose(in, 2) ? t->context.operand[0] : fuzz_take_format(in, 8 * width);
        if (op == SN_OP_to_integer) t->context.out = fuzz_fixed(8 * width, 0, fuzz_choose(in, 2));
        t->context.env = fuzz_take_env(in, &t->context.out);
        if (table_wanted && sn_is_stochastic(&t->context.env)) t->context.env.rounding = SN_NEAREST_EVEN;
        contexts[c] = &t->context;
        const int ways = fuzz_choose(in, 4);
        if (ways & 1) sn_prepare_context(op, contexts[c]);
        if (ways & 2 && sn_operation_lanes(op, contexts[c], &lanes[c])) t->context.lanes = &lanes[c];
    }
    const int tabulated = table_wanted && sn_table_size(op, contexts[0]);
    if (tabulated) {
        sn_fill_table(op, contexts[0], width, lookup, lookup_flags);
        trials[0].context.table = lookup;
        trials[0].context.table_flags = lookup_flags;
        trials[0].context.table_width = width;
    }

    strided args[7];
    int sizes[7], n = 0;
    for (int k = 0; k < operands; k++)
        sizes[n++] = width;
    sizes[n++] = 4;
    sizes[n++] = 8;
    sizes[n++] = width;
    if (with_flags) sizes[n++] = 1;
    char *pointers[7];
    ptrdiff_t steps[7];
    const int out = operands + 2, in_place = fuzz_choose(in, 4) == 0;
    for (int k = 0; k < n; k++) {
        args[k] = take_strided(in, count, sizes[k], k < out && !(in_place && k == 0));
        if (k == out && in_place) {
            free(args[k].buffer);
            args[k] = args[0];
        }
        pointers[k] = args[k].first;
        steps[k] = args[k].stride;
    }
    /* the operands, and what is to come of them */
    int strange = 0;
    fuzz_result want[LONGEST];
    for (size_t i = 0; i < count; i++) {
        if (i >= FRESH) { /* long arrays say what they said, in another order */
            for (int k = 0; k <= operands; k++)
                memmove(at(&args[k], i), at(&args[k], (i * 7 + (size_t)k * 5) % FRESH), (size_t)sizes[k]);
        } else {
            for (int k = 0; k < operands; k++)
                if (i == 0 || steps[k]) put(at(&args[k], i), width, fuzz_take_code(in, &trials[0].context.operand[k]));
            if (i == 0 || steps[operands]) put(at(&args[operands], i), 4, fuzz_take(in, 4));
        }
        if (i == 0 || steps[operands + 1]) {
            const int handle = tabulated ? 0 : fuzz_choose(in, 64) % (CONTEXTS + (i % 8 == 7)); /* rarely a wrong one */
            put(at(&args[operands + 1], i), 8, handle == CONTEXTS ? fuzz_take(in, 8) | CONTEXTS : (sn_u64)handle);
        }
        const sn_u64 handle = get(at(&args[operands + 1], i), 8);
        want[i].code = 0;
        want[i].flags = 0xff;
        if (handle >= CONTEXTS) {
            strange = 1;
            continue;
        }
        fuzz_trial t = trials[handle];
        for (int k = 0; k < operands; k++)
            t.code[k] = get(at(&args[k], i), width);
        t.word = (sn_u32)get(at(&args[operands], i), 4);
        want[i] = fuzz_evaluate(&t);
    }
    sn_context_table table = {contexts, CONTEXTS, 0, sn_kernels_for(fuzz_choose(in, sn_detect_isa() + 1))};
    sn_loop_data data = {&table, with_flags};
    const ptrdiff_t length = (ptrdiff_t)count;
    sn_loop_for(op, width)(pointers, &length, steps, &data);
    FUZZ_EXPECT(&trials[0], table.bad_handle == strange);
    for (size_t i = 0; i < count; i++) {
        const sn_u64 handle = get(at(&args[operands + 1], i), 8);
        fuzz_trial t = trials[handle < CONTEXTS ? handle : 0]; /* to report */
        for (int k = in_place; k < operands; k++)
            t.code[k] = get(at(&args[k], i), width);
        FUZZ_EXPECT(&t, get(at(&args[out], i), width) == want[i].code);
        if (with_flags) FUZZ_EXPECT(&t, get(at(&args[out + 1], i), 1) == want[i].flags);
    }
    for (int k = 0; k < n; k++)
        if (!(k == out && in_place)) free(args[k].buffer);
}

static void check_convert_array(fuzz_input *in) {
    fuzz_trial t;
    memset(&t, 0, sizeof t);
    t.op = SN_OP_convert;
    sn_format *f = &t.context.operand[0], *fo = &t.context.out;
    *f = fuzz_take_format(in, 64);
    *fo = fuzz_take_format(in, 64);
    t.context.env = fuzz_take_env(in, fo);
    const int in_width = width_of(f->bits), out_width = width_of(fo->bits);
    const size_t n = (size_t)fuzz_choose(in, LONGEST + 1);
    char *x = fuzz_buffer(n, (size_t)in_width), *out = fuzz_buffer(n, (size_t)out_width);
    for (size_t i = 0; i < n; i++)
        put(x + i * (size_t)in_width, in_width, fuzz_take_code(in, f));
    const sn_u32 got = sn_convert_array(f, x, in_width, fo, &t.context.env, out, out_width, n);
    sn_u32 flags = 0;
    for (size_t i = 0; i < n; i++) {
        t.code[0] = get(x + i * (size_t)in_width, in_width);
        const fuzz_result want = fuzz_evaluate(&t);
        FUZZ_EXPECT(&t, get(out + i * (size_t)out_width, out_width) == want.code);
        flags |= want.flags;
    }
    FUZZ_EXPECT(&t, got == flags);
    free(x);
    free(out);
}

static void check_words(fuzz_input *in) {
    const sn_u64 seed = fuzz_take(in, 8), stream = fuzz_take(in, 8), block = 4 * SN_WORD_BLOCKS;
    const sn_philox_words key = sn_philox_key(seed, stream, SN_DOMAIN_ELEMENTWISE);
    const sn_random_source source = {
        NULL, {key.w[0], key.w[1]}, (fuzz_take(in, 8) >> fuzz_choose(in, 64)) / block * block};
    const size_t n = (size_t)fuzz_choose(in, 3 * (int)block);
    for (int isa = 0; isa <= sn_detect_isa(); isa++) {
        sn_u32 *words = fuzz_buffer(n, sizeof *words);
        sn_kernels_for(isa)->words(&source, words, n);
        for (size_t i = 0; i < n && source.first + i >= source.first; i++) {
            const sn_u64 at = source.first + i, counter = at / 4;
            const sn_philox_words w = sn_philox((sn_u32)counter, (sn_u32)(counter >> 32), 0, 0, key.w[0], key.w[1]);
            FUZZ_EXPECT(NULL, words[i] == w.w[at % 4]);
        }
        free(words);
    }
}

void fuzz_arrays(fuzz_input *in) {
    if (fuzz_choose(in, 4))
        check_convert_array(in);
    else
        check_words(in);
}

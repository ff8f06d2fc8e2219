/* That every instruction set gives the portable texts' bits, where the fuzz driver does not compare it with the
 * definition: operations on values, sums as trees, functions, drawing, block formats, groups. A line for
 * each kind says the digest of its results: the same on every processor (test_isas.txt). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/draw.h"
#include "elementwise/carried.h"
#include "elementwise/functions/functions.h"
#include "products/blocks/block_fused.h"
#include "products/grouped/grouped.h"
#include "tests/formats.h"

static sn_u64 state, digest, compared, different;

static sn_u32 next(void) {
    const sn_philox_words w = sn_philox((sn_u32)state, (sn_u32)(state >> 32), 0, 0, 2026, 11);
    state++;
    return w.w[0];
}

/* Of one instruction set, after the portable results: FNV-1a of these, and what differs. */
static void take(int isa, const void *got, const void *want, size_t bytes) {
    const unsigned char *p = got, *q = want;
    for (size_t i = 0; i < bytes && isa == SN_ISA_PORTABLE; i++)
        digest = (digest ^ q[i]) * 0x100000001b3u;
    for (size_t i = 0; i < bytes; i++)
        different += p[i] != q[i];
    compared += bytes;
}

static void begin(void) {
    state = 1;
    digest = 0xcbf29ce484222325u;
    compared = different = 0;
}

static int failures;

static void end(const char *name) {
    printf("%-16s %016llx\n", name, (unsigned long long)digest);
    if (different || !compared) {
        fprintf(stderr, "%s: %llu of %llu bytes differ from the portable ones\n", name, (unsigned long long)different,
                (unsigned long long)compared);
        failures++;
    }
}

#define EACH_ISA(isa) for (int isa = SN_ISA_PORTABLE; isa <= sn_detect_isa(); isa++)

static sn_env mode(int rounding) {
    sn_env e = {rounding, SN_OVERFLOW_INFINITY, SN_TININESS_AFTER, 8, 0, 0, SN_NAN_CANONICAL, 0};
    return e;
}

/* Values of random codes; finite: of no others. */
static void values(const sn_format *f, float *x, size_t n, int finite) {
    sn_decoding d;
    if (!sn_decoding_prepare(f, 32, &d)) abort();
    for (size_t i = 0; i < n; i++) {
        sn_u32 code;
        do
            code = next() & (sn_u32)(f->sign_mask | f->magnitude_mask);
        while (finite && (code & f->magnitude_mask) > f->max_code);
        sn_kernels_for(SN_ISA_PORTABLE)->decode32(&d, &code, 4, &x[i], 1);
    }
}

static void wide_values(const sn_format *f, double *x, size_t n, int finite) {
    for (size_t i = 0; i < n; i++) {
        float value;
        values(f, &value, 1, finite);
        x[i] = (double)value;
    }
}

/* ---- elementwise ------------------------------------------------------------------------------------------------- */

enum { N = 8 * SN_WORD_BLOCKS };

static void test_carried(void) {
    static const int operations[] = {SN_OP_add, SN_OP_subtract, SN_OP_multiply, SN_OP_divide, SN_OP_sqrt, SN_OP_fma};
    const sn_format formats[] = {ieee(4, 3), ieee(5, 10), ieee(8, 7), ieee(8, 23)};
    static float in[3][N], got[N], want[N];
    int prepared = 0;
    begin();
    for (int trial = 0; trial < 600; trial++) {
        const sn_format f = formats[trial % 4], three[3] = {f, f, formats[next() % 4]};
        const sn_env env = mode((int)(next() % SN_ROUNDING_MODES));
        sn_carried p;
        if (!sn_carried_prepare(operations[trial / 4 % 6], three, &formats[next() % 4], &env, &p)) continue;
        prepared++;
        for (int k = 0; k < 3; k++)
            values(&three[k], in[k], N, 0);
        const float *const operands[3] = {in[0], in[1], in[2]};
        const sn_random_source random = {NULL, {next(), next()}, 0};
        const int reported = sn_kernels_for(SN_ISA_PORTABLE)->carried(&p, operands, want, N, &random);
        EACH_ISA(isa) {
            const int told = sn_kernels_for(isa)->carried(&p, operands, got, N, &random);
            take(isa, got, want, sizeof got);
            take(isa, &told, &reported, sizeof told);
        }
    }
    compared = prepared > 300 ? compared : 0;
    end("carried");
}

static void test_trees(void) {
    const sn_format f = ieee(8, 23), narrow = ieee(5, 10), three[3] = {f, f, f}, halves[3] = {narrow, narrow, narrow};
    enum { ROWS = 77, COLUMNS = 70 };
    static float x[ROWS * COLUMNS], got[COLUMNS], want[COLUMNS];
    float *scratch = malloc(sn_tree_scratch(ROWS) * sizeof *scratch);
    begin();
    for (int trial = 0; trial < 40; trial++) {
        const sn_env env = mode(trial / 2 % 10);
        sn_carried p;
        if (!sn_carried_prepare(SN_OP_add, trial & 1 ? halves : three, trial & 1 ? &narrow : &f, &env, &p)) continue;
        values(&narrow, x, ROWS * COLUMNS, trial < 20);
        const sn_table t = {x, ROWS, COLUMNS, ROWS, 0, COLUMNS, 1};
        const int reported = sn_tree_run(sn_kernels_for(SN_ISA_PORTABLE), &p, &t, want, scratch);
        EACH_ISA(isa) {
            const int told = sn_tree_run(sn_kernels_for(isa), &p, &t, got, scratch);
            take(isa, got, want, sizeof got);
            take(isa, &told, &reported, sizeof told);
        }
    }
    free(scratch);
    end("trees");
}

/* Where neither leaves the element undecided: the bits that decide a rounding to binary32, and whether any follows. An
 * fma encloses more closely. */
static void test_functions(void) {
#define NUMBER(name) SN_ELEMENTARY_##name,
    static const int functions[] = {SN_FUNCTIONS_IN_LANES(NUMBER)};
#undef NUMBER
    enum { FUNCTIONS = sizeof functions / sizeof *functions, SHIFT = 53 - 26 };
    const sn_u64 of_codes = ((sn_u64)1 << (SHIFT - (52 - SN_FUNCTION_BITS))) - 1, of_values = ((sn_u64)1 << SHIFT) - 1;
    static float values_of[N];
    static double x[N];
    static sn_u64 got[N], want[N];
    static sn_u8 left[N], given_up[N];
    const sn_format f = ieee(8, 23), near = ieee(4, 3);
    sn_u64 decided = 0, all = 0;
    begin();
    for (int trial = 0; trial < 6 * FUNCTIONS; trial++) {
        const sn_function p = {.function = functions[trial / 6], .shift = SHIFT, .to_values = trial / 3 % 2};
        const sn_u64 rest = p.to_values ? of_values : of_codes;
        values(trial % 3 ? &near : &f, values_of, N, 0);
        for (int i = 0; i < N; i++)
            x[i] = (double)(values_of[i] * (1 + (float)(next() & 0xffff) * (trial % 3 == 1 ? 0x1p-20f : 0.0f)));
        sn_kernels_for(SN_ISA_PORTABLE)->function(&p, x, want, given_up, N);
        EACH_ISA(isa) {
            sn_kernels_for(isa)->function(&p, x, got, left, N);
            for (int i = 0; i < N; i++) {
                all++;
                if (left[i] || given_up[i]) continue;
                decided++;
                const sn_u64 here = (got[i] & ~rest) | ((got[i] & rest) != 0),
                             there = (want[i] & ~rest) | ((want[i] & rest) != 0);
                take(isa, &here, &there, sizeof here);
            }
        }
    }
    compared = decided * 3 > all * 2 ? compared : 0;
    end("functions");
}

/* The same of two operands: also of small integers and halves, of which many results are exact, and none is left to
 * the definition. */
static void test_functions_of_two(void) {
#define NUMBER(name) SN_ELEMENTARY_##name,
    static const int functions[] = {SN_FUNCTIONS_OF_TWO_IN_LANES(NUMBER)};
#undef NUMBER
    enum { FUNCTIONS = sizeof functions / sizeof *functions, SHIFT = 53 - 26 };
    const sn_u64 of_codes = ((sn_u64)1 << (SHIFT - (52 - SN_FUNCTION_BITS))) - 1, of_values = ((sn_u64)1 << SHIFT) - 1;
    static float values_of[2][N];
    static double x[2][N];
    static sn_u64 got[N], want[N];
    static sn_u8 left[N], given_up[N];
    const sn_format f = ieee(8, 23), near = ieee(4, 3);
    sn_u64 decided = 0, all = 0, simple_left = 0;
    begin();
    for (int trial = 0; trial < 8 * FUNCTIONS; trial++) {
        const sn_function p = {.function = functions[trial / 8], .shift = SHIFT, .to_values = trial / 4 % 2};
        const sn_u64 rest = p.to_values ? of_values : of_codes;
        for (int k = 0; k < 2; k++) {
            const int kind = trial % 4;
            values(kind == 0 ? &f : &near, values_of[k], N, 0);
            for (int i = 0; i < N; i++)
                x[k][i] =
                    kind == 3
                        ? 0.5 * (double)(1 + next() % 12)
                        : (double)(values_of[k][i] * (1 + (float)(next() & 0xffff) * (kind == 1 ? 0x1p-20f : 0.0f)));
        }
        sn_kernels_for(SN_ISA_PORTABLE)->function_of_two(&p, x[0], x[1], want, given_up, N);
        EACH_ISA(isa) {
            sn_kernels_for(isa)->function_of_two(&p, x[0], x[1], got, left, N);
            for (int i = 0; i < N; i++) {
                all++;
                simple_left += trial % 4 == 3 && left[i];
                if (left[i] || given_up[i]) continue;
                decided++;
                const sn_u64 here = (got[i] & ~rest) | ((got[i] & rest) != 0),
                             there = (want[i] & ~rest) | ((want[i] & rest) != 0);
                take(isa, &here, &there, sizeof here);
            }
        }
    }
    compared = decided * 3 > all * 2 && !simple_left ? compared : 0;
    end("functions of two");
}

/* Those of wide operands have no portable text, and are the same numbers on each processor that has an fma. */
static void test_wide_functions(void) {
#define NUMBER(name) SN_ELEMENTARY_##name,
    static const int functions[] = {SN_FUNCTIONS_IN_LANES(NUMBER) SN_FUNCTIONS_OF_TWO_IN_LANES(NUMBER)};
#undef NUMBER
    enum { FUNCTIONS = sizeof functions / sizeof *functions };
    static double x[2][SN_WIDE_BLOCK];
    const double *const given[2] = {x[0], x[1]};
    static sn_u64 got[SN_WIDE_BLOCK], want[SN_WIDE_BLOCK];
    static sn_u8 flags[SN_WIDE_BLOCK], raised[SN_WIDE_BLOCK], left[SN_WIDE_BLOCK], given_up[SN_WIDE_BLOCK];
    begin();
    for (int trial = 0; trial < 4 * FUNCTIONS; trial++) {
        const sn_env env = mode(trial % 10);
        const sn_format in[2] = {sn_binary64, sn_binary64};
        sn_function p;
        sn_normals to_out;
        if (!sn_function_prepare(functions[trial / 4], in, &sn_binary64, &env, &p, &to_out) || !p.wide) abort();
        for (int i = 0; i < 2 * SN_WIDE_BLOCK; i++) {
            const sn_u64 high = next(), code = high << 32 | next();
            double *const to = &x[i % 2][i / 2];
            memcpy(to, &code, sizeof code);
            if (trial % 4) *to = (double)(sn_i64)code * (trial % 4 == 1 ? 0x1p-60 : 0x1p-64);
            if (trial % 4 == 3) *to = 0.5 * (double)(int)(code % 25) - 6.0; /* of which many results are exact */
        }
        int first = SN_ISA_PORTABLE;
        EACH_ISA(isa) {
            const sn_kernels *const run = sn_kernels_for(isa);
            if (!run->wide_function) continue;
            if (!first) {
                first = isa;
                run->wide_function(&p, &to_out, given, 8, want, raised, given_up, SN_WIDE_BLOCK);
            }
            run->wide_function(&p, &to_out, given, 8, got, flags, left, SN_WIDE_BLOCK);
            for (int i = 0; i < SN_WIDE_BLOCK; i++) {
                const int as = isa == first ? SN_ISA_PORTABLE : isa;
                take(as, &left[i], &given_up[i], 1);
                if (given_up[i]) continue;
                take(as, &got[i], &want[i], sizeof *got);
                take(as, &flags[i], &raised[i], 1);
            }
        }
    }
    end("wide functions");
}

static void test_drawing(void) {
    enum { ROWS = 3, COLUMNS = 61 };
    static sn_u64 words[ROWS * COLUMNS], choices[ROWS * COLUMNS], got[ROWS * COLUMNS], want[ROWS * COLUMNS], table[20];
    begin();
    for (sn_u64 i = 0; i < 20; i++)
        table[i] = i * i * 0x10001;
    for (int kind = SN_DRAW_UNIFORM; kind <= SN_DRAW_EXPONENT; kind++)
        for (int trial = 0; trial < 10; trial++) {
            const int fixed_point = kind == SN_DRAW_SIGNED || kind == SN_DRAW_UNSIGNED;
            const sn_draw_rule rule = {kind,
                                       fixed_point ? 40 : 23,
                                       0xffffffffu,
                                       254,
                                       1 + trial,
                                       100,
                                       20,
                                       30,
                                       0x80000000u,
                                       (sn_u64)(trial & 1),
                                       next(),
                                       (sn_u64)(trial % 3),
                                       trial & 4 ? 3 : 0,
                                       table};
            sn_draw_kernels_for(SN_ISA_PORTABLE)->words(next(), words, ROWS * COLUMNS);
            sn_draw_kernels_for(SN_ISA_PORTABLE)->words(next(), choices, ROWS * COLUMNS);
            for (int i = 0; i < ROWS * COLUMNS; i++)
                want[i] = next();
            sn_u64 before[ROWS * COLUMNS];
            memcpy(before, want, sizeof want);
            const sn_draw_array w = {words, COLUMNS}, c = {choices, COLUMNS}, to = {got, COLUMNS},
                                first = {want, COLUMNS};
            sn_draw_kernels_for(SN_ISA_PORTABLE)->apply(&rule, ROWS, COLUMNS, w, c, first);
            EACH_ISA(isa) {
                memcpy(got, before, sizeof got);
                sn_draw_kernels_for(isa)->apply(&rule, ROWS, COLUMNS, w, c, to);
                take(isa, got, want, sizeof got);
                sn_u64 more[7], same[7];
                sn_draw_kernels_for(SN_ISA_PORTABLE)->words(rule.salt, same, 7);
                sn_draw_kernels_for(isa)->words(rule.salt, more, 7);
                take(isa, more, same, sizeof more);
            }
        }
    for (int width = 1; width <= 8; width *= 2) {
        enum { GROUPS = 7, DEALT = ROWS * GROUPS * SN_DRAW_GROUP };
        static sn_u64 dealt[DEALT], first[DEALT], second[DEALT];
        const sn_i64 order[GROUPS] = {3, 0, 6, 1, 5, 2, 4};
        sn_draw_kernels_for(SN_ISA_PORTABLE)->words(7, dealt, DEALT);
        memset(first, 0, sizeof first);
        sn_draw_kernels_for(SN_ISA_PORTABLE)->deal(dealt, ROWS, GROUPS, order, first, width);
        EACH_ISA(isa) {
            memset(second, 0, sizeof second);
            sn_draw_kernels_for(isa)->deal(dealt, ROWS, GROUPS, order, second, width);
            take(isa, second, first, sizeof first);
        }
    }
    end("drawing");
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

enum { M = 7, COLUMNS = 43, K = 96, BLOCK = 16, BLOCKS = K / BLOCK };

static void test_blocks(void) {
    static float a[M * K], b[K * COLUMNS];
    static double wide_a[M * K], wide_b[K * COLUMNS], x[M * BLOCKS], y[BLOCKS * COLUMNS], c[M * COLUMNS];
    static double got[M * COLUMNS], want[M * COLUMNS], room[(K + BLOCKS) * SN_BLOCK_TILE];
    const sn_format elements[] = {ieee(2, 1), ieee(4, 3), ieee(5, 10)}, scale = ieee(4, 3), single = ieee(8, 23),
                    half = ieee(5, 10);
    int ways = 0, wide = 0;
    begin();
    for (int trial = 0; trial < 60; trial++) {
        sn_block_unit u;
        sn_block_fast fast;
        sn_block_values g;
        double magic = 0;
        memset(&u, 0, sizeof u);
        u.element_a = u.element_b = elements[trial % 3];
        u.scale_a = u.scale_b = scale;
        u.inner = single;
        u.product = u.accumulator = trial % 4 < 2 ? single : half;
        u.product_env = mode(trial % 4 == 3 ? SN_STOCHASTIC : SN_NEAREST_EVEN);
        u.sum_env = mode(trial % 4 == 0 ? SN_NEAREST_EVEN : trial % 4 == 3 ? SN_STOCHASTIC : SN_UP);
        u.exact = 1;
        u.rounds_product = trial % 4 == 3;
        if (!sn_block_path(&u, (sn_block_inner){1, 1}, 1, &fast)) continue;
        fast.wide = !sn_block_narrow(&u, BLOCK);
        if (fast.wide && !sn_block_split(&u, BLOCK, NULL, 1, &magic)) continue;
        fast.key[0] = next(), fast.key[1] = next(), fast.key2[0] = next(), fast.key2[1] = next();
        if (fast.wide && fast.how == SN_BLOCK_FMA) fast.how = SN_BLOCK_BINARY32;
        ways |= 1 << fast.how;
        sn_block_fast last = fast;
        last.wide = 1;
        if (last.how == SN_BLOCK_FMA) last.how = SN_BLOCK_BINARY32;
        wide |= 1 << fast.wide;
        values(&u.element_a, a, M * K, trial % 5 || fast.finite);
        values(&u.element_b, b, K * COLUMNS, trial % 5 || fast.finite);
        for (int i = 0; i < M * K; i++)
            wide_a[i] = (double)a[i];
        for (int i = 0; i < K * COLUMNS; i++)
            wide_b[i] = (double)b[i];
        wide_values(&scale, x, M * BLOCKS, 1);
        wide_values(&scale, y, BLOCKS * COLUMNS, 1);
        wide_values(&half, c, M * COLUMNS, 1);
        memset(&g, 0, sizeof g);
        g.a = fast.wide ? (void *)wide_a : (void *)a;
        g.b = fast.wide ? (void *)wide_b : (void *)b;
        g.scale_a = x, g.scale_b = y, g.c = c, g.room = room;
        g.rows = M, g.n = g.n_total = COLUMNS, g.k = K, g.size = BLOCK, g.blocks = BLOCKS, g.magic = magic;
        EACH_ISA(isa) {
            g.out = isa == SN_ISA_PORTABLE ? want : got;
            memset(g.out, 0, sizeof got);
            const sn_u64 saved = sn_fp_enter();
            sn_block_kernels_for(isa)->gemm(&fast, &g);
            sn_block_kernels_for(isa)->finish(&last, &g, 0x1.8p-3, BLOCKS);
            sn_fp_leave(saved);
            for (int i = 0; i < M * COLUMNS; i++) /* what stands for a NaN is the processor's */
                if (g.out[i] != g.out[i]) g.out[i] = -1.25;
            take(isa, g.out, want, sizeof want);
        }
    }
    if (ways != 7 || wide != 3) compared = 0;
    end("blocks");
}

static void test_block_groups(void) {
    static float a[M * K], b[K * COLUMNS], c[M * COLUMNS], got[M * COLUMNS], want[M * COLUMNS];
    static double x[M * BLOCKS], px[M * BLOCKS], y[BLOCKS * COLUMNS], py[BLOCKS * COLUMNS];
    static double room[(K + 2 * BLOCKS) * SN_BLOCK_TILE];
    const sn_format scale = ieee(4, 3), single = ieee(8, 23);
    int planned = 0;
    begin();
    for (int trial = 0; trial < 40; trial++) {
        sn_block_fused_unit u;
        sn_block_fused_plan p;
        memset(&u, 0, sizeof u);
        u.fused.a = u.fused.b = ieee(2, 1 + trial % 2);
        u.fused.accumulator = u.fused.output = single;
        u.fused.sum_env = u.fused.output_env = u.fused.after_env = mode(SN_TOWARD_ZERO);
        u.fused.terms = u.fused.period = BLOCK << trial % 3;
        u.fused.fraction_bits = 20 + trial % 8;
        u.fused.min_exponent = u.fused.zero_exponent = SN_FUSED_NO_FLOOR;
        u.fused.truncate_fraction = trial % 5 ? -1 : 13;
        u.fused.always_infinity = u.fused.same_output = 1;
        u.scale_a = u.scale_b = scale;
        u.group = u.block = BLOCK;
        if (!sn_block_fused_path(&u, &p)) continue;
        planned++;
        values(&u.fused.a, a, M * K, trial % 4);
        values(&u.fused.b, b, K * COLUMNS, 1);
        values(&single, c, M * COLUMNS, trial % 4);
        wide_values(&scale, x, M * BLOCKS, 1);
        wide_values(&scale, y, BLOCKS * COLUMNS, 1);
        for (int i = 0; i < BLOCKS * COLUMNS; i++) { /* of magnitudes */
            y[i] = y[i] < 0 ? -y[i] : y[i];
            sn_u64 bits;
            memcpy(&bits, &y[i], sizeof bits);
            bits &= 0x7ff0000000000000u;
            memcpy(&py[i], &bits, sizeof bits);
        }
        for (int i = 0; i < M * BLOCKS; i++) {
            x[i] = x[i] < 0 ? -x[i] : x[i];
            sn_u64 bits;
            memcpy(&bits, &x[i], sizeof bits);
            bits &= 0x7ff0000000000000u;
            memcpy(&px[i], &bits, sizeof bits);
        }
        sn_block_fused_values g = {a, b, x, px, y, py, c, NULL, room, M, COLUMNS, COLUMNS, K, BLOCKS};
        EACH_ISA(isa) {
            g.out = isa == SN_ISA_PORTABLE ? want : got;
            const sn_u64 saved = sn_fp_enter();
            sn_block_fused_kernel_for(isa)(&p, &g);
            sn_fp_leave(saved);
            for (int i = 0; i < M * COLUMNS; i++)
                if (g.out[i] != g.out[i]) g.out[i] = -1.25f;
            take(isa, g.out, want, sizeof want);
        }
    }
    if (planned < 30) compared = 0;
    end("block groups");
}

static void test_groups(void) {
    static float a[M * K], b[K * COLUMNS], c[M * COLUMNS], got[M * COLUMNS], want[M * COLUMNS];
    const sn_format single = ieee(8, 23), half = ieee(5, 10), eight = ieee(4, 3), bfloat = ieee(8, 7);
    int hows = 0;
    begin();
    for (int trial = 0; trial < 90; trial++) {
        const int kind = trial % 9;
        sn_grouped_unit u;
        sn_grouped_plan p;
        memset(&u, 0, sizeof u);
        u.products.a = u.products.b = kind == 4 ? bfloat : kind & 1 ? half : eight;
        u.products.min_exponent = u.products.zero_exponent = SN_FUSED_NO_FLOOR;
        u.accumulator = kind == 6 || kind == 8 ? half : single;
        u.partial = single;
        u.partial_env = u.sum_env = mode(SN_NEAREST_EVEN);
        u.terms = kind == 6 ? 1 : kind == 5 ? 2 : 1 << (1 + trial / 9 % 4);
        u.rounded = kind < 6;
        u.fraction_bits = kind < 4 ? (kind < 2 ? 24 : 29) : kind == 4 ? SN_GROUPED_STEPS : SN_GROUPED_EXACT;
        if (kind < 5) u.partial_env = mode(SN_TO_ODD);
        if (kind == 4 || kind == 1 || kind == 2) u.sum_env = mode(SN_TO_ODD);
        if (kind == 4) {
            u.sum_env.flush_inputs = 1;
            u.sum_env.flush_results = u.partial_env.flush_results = SN_FLUSH_BEFORE;
            u.partial_env.flush_inputs = 1;
        }
        u.bottom = -170;
        u.words = 6;
        if (!sn_grouped_path(&u, &p)) continue;
        hows |= 1 << p.how;
        values(&u.products.a, a, M * K, trial % 6);
        values(&u.products.b, b, K * COLUMNS, 1);
        values(kind == 6 || kind == 8 ? &half : kind == 4 ? &bfloat : &single, c, M * COLUMNS, trial % 6);
        if (kind != 6 && kind != 8 && trial % 2)
            for (int i = 0; i < M * COLUMNS; i++)
                c[i] = (float)(next() & 0xffffff) * 0x1p-20f; /* near the products */
        sn_fused_values g = {a, b, c, NULL, K, COLUMNS, COLUMNS, COLUMNS, 0, M, COLUMNS, K, NULL, NULL, 0, 0};
        EACH_ISA(isa) {
            g.out = isa == SN_ISA_PORTABLE ? want : got;
            const sn_u64 saved = sn_fp_enter();
            sn_grouped_kernel_for(isa)(&p, &g);
            sn_fp_leave(saved);
            take(isa, g.out, want, sizeof want);
        }
    }
    if (hows != (1 << 9) - 1) {
        fprintf(stderr, "groups: ways %x\n", (unsigned)hows);
        compared = 0;
    }
    end("groups");
}

int main(void) {
    test_carried();
    test_trees();
    test_functions();
    test_functions_of_two();
    test_wide_functions();
    test_drawing();
    test_blocks();
    test_block_groups();
    test_groups();
    return failures != 0;
}

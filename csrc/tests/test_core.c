/* The core on its own, without Python: known answers, IEEE arithmetic against this CPU's own, properties of round_pack
 * over whole small formats. Built plain and under ASan and UBSan: make test-c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/kernels.h"
#include "elementwise/elementwise.h"
#include "elementwise/probe.h"
#include "elementwise/short/sum.h"
#include "products/exact/exact.h"
#include "products/fused/fused.h"
#include "products/gemm/gemm.h"
#include "tests/formats.h"

static int failures, checks;

#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        checks++;                                                                                                      \
        if (!(condition)) {                                                                                            \
            if (failures++ < 20) {                                                                                     \
                printf("%s:%d: ", __FILE__, __LINE__);                                                                 \
                printf(__VA_ARGS__);                                                                                   \
                printf("\n");                                                                                          \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

static sn_env mode(int rounding) {
    sn_env e = {rounding, SN_OVERFLOW_INFINITY, SN_TININESS_AFTER, 8, 0, 0, SN_NAN_CANONICAL, 0};
    return e;
}

static sn_u64 state = 1;
static sn_u64 next(void) {
    sn_philox_words w = sn_philox((sn_u32)state, (sn_u32)(state >> 32), 0, 0, 2026, 7);
    state++;
    return (sn_u64)w.w[0] << 32 | w.w[1];
}

/* Patterns where things happen: a random sign, an exponent from an interesting place, a fraction of few or many bits.
 */
static sn_u32 edge32(void) {
    sn_u64 r = next();
    static const sn_u32 exponents[] = {0, 1, 2, 23, 24, 25, 100, 126, 127, 128, 150, 151, 253, 254, 255};
    sn_u32 e = (r & 3) ? exponents[(r >> 2) % 15] : (sn_u32)(r >> 8) & 255;
    sn_u32 m = (sn_u32)(r >> 32) & 0x7fffff;
    switch ((r >> 20) & 3) {
    case 0: m = (sn_u32)1 << (m % 23); break;
    case 1: m = 0x7fffff ^ ((sn_u32)1 << (m % 23)); break;
    case 2: m = m & 1 ? 0 : 0x7fffff; break;
    default: break;
    }
    return (sn_u32)(r >> 63) << 31 | e << 23 | m;
}

static float as_float(sn_u32 bits) {
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

static sn_u32 bits_of(float f) {
    sn_u32 bits;
    memcpy(&bits, &f, 4);
    return bits;
}

static int same32(sn_u64 got, float want) {
    sn_u32 w = bits_of(want);
    return (w & 0x7fffffff) > 0x7f800000 ? got == 0x7fc00000 : got == w;
}

static void test_philox(void) {
    sn_philox_words w = sn_philox(0, 0, 0, 0, 0, 0);
    CHECK(w.w[0] == 0x6627e8d5 && w.w[1] == 0xe169c58d && w.w[2] == 0xbc57ac4c && w.w[3] == 0x9b00dbd8,
          "Philox of zeros");
    w = sn_philox(~0u, ~0u, ~0u, ~0u, ~0u, ~0u);
    CHECK(w.w[0] == 0x408f276d && w.w[1] == 0x41c83b0e && w.w[2] == 0xa20bc7c6 && w.w[3] == 0x6d5451fd,
          "Philox of ones");
}

static void test_binary32_against_cpu(void) {
    const sn_format f = ieee(8, 23);
    const sn_env rne = mode(SN_NEAREST_EVEN);
    sn_u64 saved = sn_fp_enter();
    for (int i = 0; i < 300000; i++) {
        sn_u32 a = edge32(), b = edge32(), flags = 0;
        volatile float x = as_float(a), y = as_float(b), sum = x + y, difference = x - y, product = x * y;
        CHECK(same32(sn_add(&f, a, &f, b, &f, &rne, 0, &flags), sum), "%08x + %08x", a, b);
        CHECK(same32(sn_subtract(&f, a, &f, b, &f, &rne, 0, &flags), difference), "%08x - %08x", a, b);
        CHECK(same32(sn_multiply(&f, a, &f, b, &f, &rne, 0, &flags), product), "%08x * %08x", a, b);
        /* fma(a, 1, b) is a + b, fma(a, b, -0) is a * b */
        sn_u64 one = 0x3f800000, zero = 0x80000000;
        CHECK(same32(sn_fma(&f, a, &f, one, &f, b, &f, &rne, 0, &flags), sum), "fma(%08x, 1, %08x)", a, b);
        CHECK(product != product || product == 0 ||
                  same32(sn_fma(&f, a, &f, b, &f, zero, &f, &rne, 0, &flags), product),
              "fma(%08x, %08x, -0)", a, b);
    }
    sn_fp_leave(saved);
}

static void test_convert_round_trip(void) {
    const sn_format wide = ieee(11, 52), narrow[] = {ieee(5, 2), ieee(4, 3), ieee(5, 10), ieee(8, 7), ieee(8, 23)};
    for (size_t k = 0; k < sizeof narrow / sizeof *narrow; k++)
        for (sn_u64 i = 0; i < 65536; i++) {
            sn_u64 code = narrow[k].bits > 16 ? next() & 0xffffffff : i & ((1u << narrow[k].bits) - 1);
            for (int r = 0; r < SN_ROUNDING_MODES; r++) {
                sn_env env = mode(r);
                sn_u32 flags = 0;
                sn_u64 up = sn_convert(&narrow[k], code, &wide, &env, 0xffffffff, &flags);
                sn_u64 back = sn_convert(&wide, up, &narrow[k], &env, 0xffffffff, &flags);
                sn_number n = sn_unpack(&narrow[k], code);
                CHECK(n.kind >= SN_QUIET_NAN ? back == narrow[k].nan_code : back == code && flags == 0,
                      "format %zu, code %llx came back as %llx", k, (unsigned long long)code, (unsigned long long)back);
            }
        }
}

/* All neighbours of all pairs of a small format: directed modes bracket, nearest chooses one of the two. */
static void test_modes_bracket(void) {
    const sn_format f = ieee(4, 3), exact = ieee(11, 52);
    for (sn_u64 a = 0; a < 256; a++)
        for (sn_u64 b = 0; b < 256; b++) {
            sn_u32 flags = 0;
            sn_env rdn = mode(SN_DOWN), rup = mode(SN_UP), rtz = mode(SN_TOWARD_ZERO), raz = mode(SN_AWAY_FROM_ZERO);
            sn_u64 p = sn_multiply(&f, a, &f, b, &exact, &rdn, 0, &flags); /* exact in binary64 */
            if (sn_unpack(&exact, p).kind != SN_FINITE) continue;
            CHECK(flags == 0, "product of codes not exact in binary64");
            sn_u64 down = sn_convert(&exact, p, &f, &rdn, 0, &flags), up = sn_convert(&exact, p, &f, &rup, 0, &flags);
            sn_u64 zero = sn_convert(&exact, p, &f, &rtz, 0, &flags), away = sn_convert(&exact, p, &f, &raz, 0, &flags);
            int negative = (p >> 63) != 0;
            CHECK(zero == (negative ? up : down) && away == (negative ? down : up), "%llx * %llx",
                  (unsigned long long)a, (unsigned long long)b);
            CHECK(away - zero <= 1, "neighbours differ by more than a code");
            for (int r = 0; r < SN_ROUNDING_MODES; r++) {
                sn_env env = mode(r);
                sn_u64 got = sn_multiply(&f, a, &f, b, &f, &env, (sn_u32)next(), &flags);
                CHECK(got == zero || got == away, "mode %d gave neither neighbour", r);
            }
        }
}

static void test_stochastic_counts(void) {
    /* 1 + t/256 of an ulp of e5m2, r = 8: exactly t of the 256 random words round up */
    const sn_format f = ieee(5, 2);
    sn_env env = mode(SN_STOCHASTIC);
    for (sn_u64 t = 0; t < 256; t++) {
        sn_exact x = sn_exact_make(0, sn_u128_make(0, (4 << 8) + t), -10);
        sn_u64 ups = 0;
        for (sn_u32 r = 0; r < 256; r++) {
            sn_u32 flags = 0;
            ups += sn_round_pack(&f, &env, &x, r | 0xabc00, &flags) == 0x3d;
        }
        CHECK(ups == t, "t = %llu: %llu of 256 rounded up", (unsigned long long)t, (unsigned long long)ups);
    }
}

/* r = 0: no random bit, and each mode is one of the others (env.h). */
static void test_no_random_bits(void) {
    static const int same[][2] = {{SN_STOCHASTIC, SN_TOWARD_ZERO},       {SN_STOCHASTIC_FLOOR, SN_DOWN},
                                  {SN_STOCHASTIC_FAST, SN_NEAREST_AWAY}, {SN_STOCHASTIC_EVEN, SN_NEAREST_ZERO},
                                  {SN_STOCHASTIC_ODD, SN_NEAREST_AWAY},  {SN_STOCHASTIC_EQUAL, SN_TOWARD_ZERO}};
    const sn_format wide = ieee(5, 10), targets[] = {ieee(4, 3), ieee(5, 2), ieee(8, 7), fixed(9, 3)};
    for (size_t k = 0; k < sizeof targets / sizeof *targets; k++)
        for (size_t i = 0; i < sizeof same / sizeof *same; i++)
            for (sn_u64 code = 0; code < 65536; code++) {
                sn_env none = mode(same[i][0]), plain = mode(same[i][1]);
                sn_u32 flags = 0, plain_flags = 0;
                none.stochastic_bits = 0;
                none.overflow = plain.overflow = SN_OVERFLOW_SATURATE;
                const sn_u64 got = sn_convert(&wide, code, &targets[k], &none, (sn_u32)next(), &flags);
                const sn_u64 want = sn_convert(&wide, code, &targets[k], &plain, 0, &plain_flags);
                CHECK(got == want && ((flags ^ plain_flags) & ~(sn_u32)SN_UNDERFLOW) == 0,
                      "mode %d without random bits, format %zu: %04llx becomes %llx (%x), not %llx (%x)", same[i][0], k,
                      (unsigned long long)code, (unsigned long long)got, flags, (unsigned long long)want, plain_flags);
            }
    sn_env env = mode(SN_STOCHASTIC);
    sn_rounding q;
    env.stochastic_bits = 0;
    CHECK(!sn_rounding_prepare(&targets[0], &env, 32, &q), "the vector kernels leave r = 0 to the definition");
}

static void test_fixed(void) {
    const sn_format q44 = fixed(4, 4), q163 = fixed(1, 63), q640 = fixed(64, 0);
    sn_env env = mode(SN_NEAREST_EVEN);
    sn_u32 flags = 0;
    env.overflow = SN_OVERFLOW_SATURATE;
    CHECK(sn_multiply(&q44, 0x18, &q44, 0x18, &q44, &env, 0, &flags) == 0x24 && flags == 0, "1.5 * 1.5 in q4.4");
    CHECK(sn_add(&q44, 0x7f, &q44, 0x01, &q44, &env, 0, &flags) == 0x7f && flags == SN_FLAG_OVERFLOW, "saturation");
    env.overflow = SN_OVERFLOW_WRAP;
    CHECK(sn_add(&q44, 0x7f, &q44, 0x01, &q44, &env, 0, &flags) == 0x80, "wrap");
    for (int i = 0; i < 100000; i++) { /* against 64-bit two's complement: a * b + c modulo 2^64 */
        sn_u64 a = next(), b = next(), c = next();
        CHECK(sn_fma(&q640, a, &q640, b, &q640, c, &q640, &env, 0, &flags) == a * b + c, "q64.0 fma");
        /* the integer part is far beyond q1.63: modulo, only the product's bits and c's lowest remain */
        sn_u64 got = sn_fma(&q163, a, &q163, b, &q640, c, &q163, &env, 0, &flags);
        sn_u64 product = sn_multiply(&q163, a, &q163, b, &q163, &env, 0, &flags);
        CHECK(got == product + (c << 63), "q1.63 * q1.63 + q64.0 modulo: %016llx", (unsigned long long)got);
    }
}

static void test_signed_zero_and_invalid(void) {
    const sn_format f = ieee(5, 10);
    sn_env rne = mode(SN_NEAREST_EVEN), rdn = mode(SN_DOWN);
    sn_u32 flags = 0;
    CHECK(sn_add(&f, 0x3c00, &f, 0xbc00, &f, &rne, 0, &flags) == 0, "1 - 1 is +0");
    CHECK(sn_add(&f, 0x3c00, &f, 0xbc00, &f, &rdn, 0, &flags) == 0x8000, "1 - 1 is -0 rounding down");
    CHECK(flags == 0, "both exact");
    CHECK(sn_fma(&f, 0x7c00, &f, 0, &f, 0x7e00, &f, &rne, 0, &flags) == 0x7e00 && flags == SN_INVALID, "inf * 0 + NaN");
    flags = 0;
    CHECK(sn_add(&f, 0x7c00, &f, 0xfc00, &f, &rne, 0, &flags) == 0x7e00 && flags == SN_INVALID, "inf - inf");
    flags = 0;
    CHECK(sn_add(&f, 0x7c01, &f, 0, &f, &rne, 0, &flags) == 0x7e00 && flags == SN_INVALID, "signaling NaN");
    flags = 0;
    CHECK(sn_add(&f, 0x7e01, &f, 0, &f, &rne, 0, &flags) == 0x7e00 && flags == 0, "quiet NaN");
}

/* Every fast quantiser, encoder and decoder of this CPU against the definition, in every mode, at every length around a
 * vector's. */
static void test_quantize_kernels(void) {
    const sn_format b32 = ieee(8, 23),
                    targets[] = {ieee(5, 2), ieee(8, 7), ieee(5, 10), ieee(6, 9), ieee(2, 1), ieee(8, 23)};
    enum { N = 4096 };
    float *x = malloc(N * sizeof *x), *out = malloc(N * sizeof *out), *back = malloc(N * sizeof *back);
    sn_u32 *words = malloc(N * sizeof *words), *codes = malloc(N * sizeof *codes);
    for (int i = 0; i < N; i++) {
        x[i] = as_float(edge32());
        words[i] = (sn_u32)next();
    }
    for (int isa = 0; isa <= sn_detect_isa(); isa++)
        for (size_t k = 0; k < sizeof targets / sizeof *targets; k++)
            for (int r = 0; r < SN_ROUNDING_MODES; r++) {
                const sn_random_source random = {words, {0, 0}, 0};
                sn_env env = mode(r), exact = mode(SN_TOWARD_ZERO);
                sn_rounding q;
                sn_decoding d;
                CHECK(sn_rounding_prepare(&targets[k], &env, 32, &q), "format %zu lies in the domain", k);
                CHECK(sn_decoding_prepare(&targets[k], 32, &d), "format %zu lies in the domain", k);
                for (size_t n = 0; n <= N; n += n < 70 ? 1 : N - 70) {
                    sn_kernels_for(isa)->quantize32(&q, x, out, n, &random);
                    sn_kernels_for(isa)->encode32(&q, x, codes, 4, n, &random);
                    sn_kernels_for(isa)->decode32(&d, codes, 4, back, n);
                    for (size_t i = 0; i < n; i++) {
                        sn_u32 flags = 0;
                        sn_u64 code = sn_convert(&b32, bits_of(x[i]), &targets[k], &env, words[i], &flags);
                        sn_u64 want = sn_convert(&targets[k], code, &b32, &exact, 0, &flags);
                        CHECK(bits_of(out[i]) == want, "%s, mode %d, format %zu: %08x -> %08x, not %08llx",
                              sn_kernels_for(isa)->name, r, k, bits_of(x[i]), bits_of(out[i]),
                              (unsigned long long)want);
                        CHECK(codes[i] == code && bits_of(back[i]) == want,
                              "%s, mode %d, format %zu: code %08x of %08x", sn_kernels_for(isa)->name, r, k, codes[i],
                              bits_of(x[i]));
                    }
                }
            }
    free(x);
    free(out);
    free(back);
    free(words);
    free(codes);
}

static void test_loops(void) {
    sn_context context;
    memset(&context, 0, sizeof context);
    context.operand[0] = context.operand[1] = context.out = ieee(4, 3);
    context.env = mode(SN_NEAREST_EVEN);
    sn_context *contexts[] = {&context};
    sn_context_table table = {contexts, 1, 0, NULL};
    sn_loop_data plain = {&table, 0}, flagged = {&table, 1};
    sn_u8 a[300], b[300], out[300], flags[300], lookup[300], looked_up[300], *entries = malloc(2 * 65536);
    sn_u32 random = 0;
    sn_u64 handle = 0, wrong = 7;
    for (int i = 0; i < 300; i++) {
        a[i] = (sn_u8)next();
        b[i] = (sn_u8)next();
    }
    char *args[] = {(char *)a, (char *)b, (char *)&random, (char *)&handle, (char *)out, (char *)flags};
    const ptrdiff_t n = 300, steps[] = {1, 1, 0, 0, 1, 1};
    sn_loop_for(SN_OP_add, 1)(args, &n, steps, &flagged);
    CHECK(sn_table_size(SN_OP_add, &context) == 65536, "a table of all pairs");
    sn_fill_table(SN_OP_add, &context, 1, entries, entries + 65536);
    context.table = entries;
    context.table_flags = entries + 65536;
    context.table_width = 1;
    args[4] = (char *)lookup;
    args[5] = (char *)looked_up;
    sn_loop_for(SN_OP_add, 1)(args, &n, steps, &flagged);
    CHECK(memcmp(out, lookup, 300) == 0 && memcmp(flags, looked_up, 300) == 0, "the table equals the definition");
    memset(lookup, 0, 300);
    sn_loop_for(SN_OP_add, 1)(args, &n, steps, &plain);
    CHECK(memcmp(out, lookup, 300) == 0, "without flags too");
    args[5] = (char *)flags;
    args[3] = (char *)&wrong;
    sn_loop_for(SN_OP_add, 1)(args, &n, steps, &flagged);
    CHECK(table.bad_handle && flags[0] == 0xff, "a handle out of range is noticed");
    CHECK(sn_loop_for(SN_OP_add, 3) == NULL && sn_loop_for(-1, 1) == NULL, "no such loop");
    free(entries);
}

/* A code whose exponent lies near the middle, or near an end, or anywhere, and whose fraction is special or random. */
static sn_u64 edge_code(const sn_format *f) {
    if (f->kind == SN_FIXED) {
        sn_u64 r = next(), any = next() >> (64 - f->bits);
        sn_u64 edge = (r & 8    ? f->max_code
                       : r & 16 ? f->sign_mask
                                : (sn_u64)1 << (f->mantissa_bits % f->bits)) +
                      (r >> 8 & 3) - 2;
        return (r & 3 ? any : r & 4 ? any & 0xff : edge) & (f->magnitude_mask | f->sign_mask);
    }
    sn_u64 r = next(), ones = ((sn_u64)1 << f->mantissa_bits) - 1, fraction = next() & ones;
    sn_i32 fields = f->emax - f->emin + 1, field = fields / 2;
    switch (r & 7) {
    case 0: field = (sn_i32)((r >> 8) % (sn_u64)(fields + 2)); break;
    case 1: field = (sn_i32)((r >> 8) % 5); break;
    case 2: field = fields - (sn_i32)((r >> 8) % 5); break;
    default: field += (sn_i32)((r >> 8) % 9) - 4 + (r & 8 ? f->mantissa_bits : 0); break;
    }
    switch (r >> 4 & 3) {
    case 0: fraction = ones & ~((sn_u64)0xff >> (r >> 40 & 7)); break;
    case 1: fraction &= 7; break;
    default: break;
    }
    sn_u64 magnitude = (sn_u64)(field < 0 ? 0 : field) << f->mantissa_bits | fraction;
    return (magnitude & f->magnitude_mask) | (r >> 63 ? f->sign_mask : 0);
}

/* elementwise/short/floats.h and elementwise/short/lanes.h against the definition: the same loop, with the short ways
 * allowed and not. */
static void test_short_way(void) {
    const sn_format formats[] = {fixed(4, 4), fixed(16, 16), fixed(1, 63), fixed(62, 0), fixed(2, 60), fixed(31, 30),
                                 ieee(8, 23), ieee(11, 52),  ieee(5, 10),  ieee(8, 7),   ieee(4, 3),   ieee(15, 48),
                                 ieee(8, 30), ieee(5, 58),   ieee(3, 60),  ieee(2, 61),  ieee(5, 1)};
    enum { COUNT = sizeof formats / sizeof *formats, FIXED = 6, N = 64 };
    const int operations[] = {SN_OP_convert, SN_OP_add, SN_OP_subtract, SN_OP_multiply,
                              SN_OP_divide,  SN_OP_fma, SN_OP_sqrt};
    sn_context context;
    sn_context *contexts[] = {&context};
    sn_context_table table = {contexts, 1, 0, NULL};
    sn_loop_data data = {&table, 1};
    sn_u64 handle = 0, in[3][N], got[N], want[N];
    sn_u8 got_flags[N], want_flags[N];
    sn_u32 words[N];
    int taken[3] = {0, 0, 0};
    for (int round = 0; round < 16000; round++) {
        const int op = operations[round % 7], operands = sn_operation_operands(op);
        sn_u64 r = next();
        memset(&context, 0, sizeof context);
        const int fixed_only = r >> 7 & 1, first = fixed_only ? 0 : FIXED, count = fixed_only ? FIXED : COUNT - FIXED;
        for (int k = 0; k < operands; k++)
            context.operand[k] = formats[first + (int)((r >> (r >> 6 & 1 ? 8 : 12 + 5 * k)) % (sn_u64)count)];
        context.out = formats[first + (int)((r >> (r >> 30 & 1 ? 8 : 32)) % (sn_u64)count)];
        context.env = mode((int)((r >> 40) % SN_ROUNDING_MODES));
        context.env.stochastic_bits = (sn_i32)((r >> 48 & 0xff) % 33);
        context.env.tininess = (sn_i32)(r >> 60 & 1);
        context.env.overflow = (sn_i32)((r >> 56) % 3) + fixed_only;
        if (fixed_only && r >> 61 & 1) { /* an unsigned result */
            context.out.magnitude_mask |= context.out.sign_mask;
            context.out.max_code = context.out.magnitude_mask;
            context.out.is_signed = 0;
            context.out.sign_mask = 0;
        } else if (r >> 61 & 1) { /* an unsigned result, a lowest binade of its own */
            context.out.is_signed = 0;
            context.out.sign_mask = 0;
            context.out.lowest = SN_LOWEST_NORMAL;
        }
        for (int i = 0; i < N; i++) {
            for (int k = 0; k < operands; k++)
                in[k][i] = edge_code(&context.operand[k]);
            words[i] = (sn_u32)next();
        }
        char *args[7];
        ptrdiff_t steps[7], n = N;
        int j = 0;
        for (; j < operands; j++) {
            args[j] = (char *)in[j];
            steps[j] = 8;
        }
        args[j] = (char *)words;
        steps[j++] = 4;
        args[j] = (char *)&handle;
        steps[j++] = 0;
        args[j] = (char *)got;
        steps[j] = 8;
        args[j + 1] = (char *)got_flags;
        steps[j + 1] = 1;
        sn_prepare_context(op, &context);
        const int short_way = context.short_way;
        taken[short_way]++;
        n = N - (int)(r >> 44 & 15);
        context.short_way = SN_NO_SHORT_WAY;
        table.kernels = NULL;
        args[j] = (char *)want;
        args[j + 1] = (char *)want_flags;
        sn_loop_for(op, 8)(args, &n, steps, &data);
        context.short_way = short_way;
        args[j] = (char *)got;
        args[j + 1] = (char *)got_flags;
        for (int isa = -1; isa <= sn_detect_isa(); isa++) {
            table.kernels = isa < 0 ? NULL : sn_kernels_for(isa);
            memset(got, 0, sizeof got);
            memset(got_flags, 0, sizeof got_flags);
            sn_loop_for(op, 8)(args, &n, steps, &data);
            for (int i = 0; i < n; i++)
                CHECK(got[i] == want[i] && got_flags[i] == want_flags[i],
                      "%s, %s, mode %d, r = %d, %d and %d -> %d bits of fraction: %llx, %llx gives %llx (%d), not %llx "
                      "(%d)",
                      sn_operation_name(op), isa < 0 ? "one by one" : table.kernels->name, context.env.rounding,
                      context.env.stochastic_bits, context.operand[0].mantissa_bits, context.operand[1].mantissa_bits,
                      context.out.mantissa_bits, (unsigned long long)in[0][i], (unsigned long long)in[1][i],
                      (unsigned long long)got[i], got_flags[i], (unsigned long long)want[i], want_flags[i]);
        }
    }
    CHECK(taken[SN_NORMALS] > 3000 && taken[SN_FIXED_POINT] > 1000, "the short ways were taken in %d and %d rounds",
          taken[SN_NORMALS], taken[SN_FIXED_POINT]);
}

/* A term of up to 124 bits for a sum with x: far from it, near it, or next to what cancels it. */
static sn_exact edge_term(const sn_number *x) {
    const sn_u64 r = next();
    const sn_i32 length = 1 + (sn_i32)((r >> 8) % 124), high = length > 64 ? length - 64 : 0;
    sn_u128 sig = sn_u128_make(high ? next() >> (64 - high) : 0, next() >> (length < 64 ? 64 - length : 0));
    if (r & 1) sig.lo &= ~(sn_u64)0 << (r >> 16 & 63);                                                   /* few bits */
    if (r & 2) sig = sn_u128_sub(sn_u128_shl(sn_u128_make(0, 1), length), sn_u128_make(0, r >> 24 & 1)); /* 2^n (- 1) */
    const sn_i32 range = r & 4 ? 3 : r & 8 ? 70 : 300;
    sn_i32 exp =
        x->exp + sn_bit_length(x->sig) - sn_u128_bit_length(sig) + (sn_i32)((r >> 32) % (sn_u64)range) - range / 2;
    if ((r >> 60) == 0) { /* -x, or nearly */
        sig = sn_u128_shl(sn_u128_make(0, x->sig), 60);
        if (r & 16) sig = sn_u128_sub(sig, sn_u128_make(0, (r >> 24 & 3) - 1));
        exp = x->exp - 60;
    }
    return sn_exact_make((sn_i32)(r >> 5 & 1), sig, exp);
}

/* elementwise/short/sum.h against the core, in all modes. */
static void test_short_sum(void) {
    const sn_format formats[] = {ieee(8, 23), ieee(11, 52), ieee(5, 10), ieee(8, 7),  ieee(4, 3), ieee(15, 48),
                                 ieee(8, 30), ieee(5, 58),  ieee(3, 60), ieee(2, 61), ieee(5, 1), ieee(6, 9)};
    enum { COUNT = sizeof formats / sizeof *formats };
    int sums = 0, products = 0;
    for (int i = 0; i < 600000; i++) {
        const sn_u64 r = next();
        sn_format f = formats[r % COUNT];
        if ((r >> 8 & 15) == 0) f.lowest = SN_LOWEST_NORMAL;
        if ((r >> 12 & 15) == 0) f.is_signed = f.negative_zero = 0, f.sign_mask = 0;
        sn_env env = mode((int)(r >> 16 & 0xff) % SN_ROUNDING_MODES);
        env.stochastic_bits = 1 + (sn_i32)(r >> 24 & 31);
        const sn_u64 code = edge_code(&f);
        const sn_number x = sn_unpack(&f, code);
        if (x.kind >= SN_QUIET_NAN || x.kind == SN_ZERO || x.kind == SN_INF) continue;
        const sn_exact p = edge_term(&x);
        const sn_u32 word = (sn_u32)next();
        sn_u32 flags = 0;
        sn_u64 got = code;
        if (sn_short_add(&p, &f, &env, word, &got)) {
            const sn_u64 want = sn_add_numbers(p, 0, &x, &f, &env, word, &flags);
            sums++;
            CHECK(got == want, "mode %d, r = %d, %d bits of fraction: %llx + %s%llx%016llx * 2^%d gives %llx, not %llx",
                  env.rounding, env.stochastic_bits, f.mantissa_bits, (unsigned long long)code, p.sign ? "-" : "",
                  (unsigned long long)p.sig.hi, (unsigned long long)p.sig.lo, p.exp, (unsigned long long)got,
                  (unsigned long long)want);
        }
        if (sn_short_round(&p, &f, &env, word, &got)) {
            const sn_u64 want = sn_round_pack(&f, &env, &p, word, &flags);
            products++;
            CHECK(got == want, "mode %d, r = %d, %d bits of fraction: %s%llx%016llx * 2^%d becomes %llx, not %llx",
                  env.rounding, env.stochastic_bits, f.mantissa_bits, p.sign ? "-" : "", (unsigned long long)p.sig.hi,
                  (unsigned long long)p.sig.lo, p.exp, (unsigned long long)got, (unsigned long long)want);
        }
    }
    CHECK(sums > 300000 && products > 100000, "the short way was taken for %d sums and %d products", sums, products);
}

static int is_tally(const sn_tally *t, sn_u64 roundings, sn_u64 inexact, sn_u64 underflowed, sn_u64 overflowed,
                    sn_u64 saturated, sn_u64 invalid) {
    return t->roundings == roundings && t->inexact == inexact && t->underflowed == underflowed &&
           t->overflowed == overflowed && t->saturated == saturated && t->invalid == invalid;
}

/* Sums whose roundings are counted by hand; and counting changes no result. */
static void test_tallies(void) {
    const sn_format f = ieee(4, 3);
    const sn_u64 six = 0x4c, least = 1, inf = f.inf_code;
    sn_u64 a[40], b[40], c = 0, out[2];
    sn_tally t[SN_MAD_TALLIES];
    sn_product_codes g;
    sn_mad_unit u;
    memset(&g, 0, sizeof g);
    memset(&u, 0, sizeof u);
    u.operand_a = u.operand_b = u.product = u.accumulator = u.outer = f;
    u.product_env = u.sum_env = u.outer_env = mode(SN_NEAREST_EVEN);
    u.product_env.overflow = u.sum_env.overflow = u.outer_env.overflow = SN_OVERFLOW_SATURATE;
    u.lanes = 1;
    g.a = a;
    g.b = b;
    g.out = &out[0];
    g.lda = 40;
    g.ldb = g.ldc = g.ldo = g.n = g.n_total = g.m1 = 1;
    g.k = 40;
    for (int i = 0; i < 40; i++)
        a[i] = b[i] = six;
    sn_gemm_definition(&u, &g);
    g.out = &out[1];
    g.tallies = memset(t, 0, sizeof t);
    sn_gemm_definition(&u, &g);
    /* 36, 72, 112, 144, 176, 208, 240: every sum after these seven saturates */
    CHECK(out[0] == f.max_code && out[1] == out[0], "saturated sums give %llx and %llx", (unsigned long long)out[0],
          (unsigned long long)out[1]);
    CHECK(is_tally(&t[SN_TALLY_PRODUCT], 40, 0, 0, 0, 0, 0), "36 is exact");
    CHECK(is_tally(&t[SN_TALLY_SUM], 40, 38, 0, 33, 33, 0), "%llu inexact, %llu overflowed, %llu saturated",
          (unsigned long long)t[SN_TALLY_SUM].inexact, (unsigned long long)t[SN_TALLY_SUM].overflowed,
          (unsigned long long)t[SN_TALLY_SUM].saturated);
    CHECK(is_tally(&t[SN_TALLY_OUTER], 0, 0, 0, 0, 0, 0) && t[SN_TALLY_LANES].roundings == 0, "one lane, one sum");

    /* a tiny product; an infinity, which saturates; 0 * inf */
    a[0] = b[0] = least;
    a[1] = inf;
    a[2] = inf;
    b[2] = 0;
    g.k = 3;
    memset(t, 0, sizeof t);
    u.product.p3109 = 1; /* raises no flags, and is counted all the same */
    sn_gemm_definition(&u, &g);
    CHECK(is_tally(&t[SN_TALLY_PRODUCT], 3, 1, 1, 0, 1, 1) && out[1] == f.nan_code, "special products");
    CHECK(is_tally(&t[SN_TALLY_SUM], 3, 0, 0, 0, 0, 0), "their sums");

    /* one rounding a dot product; C given */
    sn_exact_unit e;
    memset(&e, 0, sizeof e);
    e.operand_a = e.operand_b = e.accumulator = f;
    e.env = mode(SN_TOWARD_ZERO);
    e.bottom = -18;
    e.words = 2;
    c = f.max_code;
    g.c = &c;
    g.k = 1;
    a[0] = b[0] = six;
    memset(t, 0, sizeof t);
    sn_exact_definition(&e, &g);
    CHECK(is_tally(t, 1, 1, 0, 1, 1, 0) && out[1] == f.max_code, "an exact sum toward zero");

    /* what the alignment cuts off makes no rounding inexact */
    sn_fused_unit v;
    memset(&v, 0, sizeof v);
    v.a = v.b = v.accumulator = v.output = f;
    v.sum_env = v.output_env = v.after_env = mode(SN_TOWARD_ZERO);
    v.terms = v.period = 2;
    v.fraction_bits = 3;
    v.min_exponent = v.zero_exponent = SN_FUSED_NO_FLOOR;
    v.truncate_fraction = -1;
    v.same_output = 1;
    sn_u32 sum_flags = 0, output_flags = 0;
    g.c = NULL;
    g.k = 2;
    a[1] = b[1] = 0x30; /* 1/2 * 1/2 against 36: below 2^(5 - 3) */
    memset(t, 0, sizeof t);
    sn_fused_definition(&v, &g);
    const sn_u64 dot = sn_fused_dot(&v, a, 1, b, 1, 2, 0, &sum_flags, &output_flags);
    CHECK(is_tally(t, 1, 0, 0, 0, 0, 0) && out[1] == dot && output_flags == SN_INEXACT, "a fused step");
    sn_chain_unit w;
    memset(&w, 0, sizeof w);
    w.a = w.b = w.accumulator = f;
    w.env = mode(SN_NEAREST_EVEN);
    w.period = 3; /* a multiply-add of zeros fills it up */
    memset(t, 0, sizeof t);
    sn_chain_definition(&w, &g);
    CHECK(is_tally(t, 3, 1, 0, 0, 0, 0), "a chain");
}

/* Whatever is told of a rounding makes its result: (significand + up) * 2^last. And it is the operation's own. */
static void test_probe(void) {
    int told = 0;
    for (int i = 0; i < 20000; i++) {
        const sn_u64 r = next();
        const sn_format f = r & 1 ? ieee(8, 23) : r & 2 ? ieee(4, 3) : fixed(9, 7);
        const int ops[] = {SN_OP_add, SN_OP_multiply, SN_OP_divide, SN_OP_subtract, SN_OP_sqrt, SN_OP_exp};
        const int op = ops[(r >> 8) % (f.kind == SN_FIXED ? 4 : 6)];
        const sn_format operands[3] = {f, f, f};
        sn_env env = mode((int)(r >> 16 & 0xff) % SN_ROUNDING_MODES);
        if (f.kind == SN_FIXED) env.overflow = SN_OVERFLOW_SATURATE;
        const sn_i32 fields[7] = {env.rounding, env.overflow, env.tininess, env.stochastic_bits, 0, 0, 0};
        const sn_u64 mask = f.sign_mask | f.magnitude_mask;
        const sn_u64 in[2] = {(f.bits == 32 ? edge32() : next()) & mask, (f.bits == 32 ? edge32() : next()) & mask};
        const sn_u64 *const columns[3] = {&in[0], &in[1], NULL};
        const sn_u32 word = (sn_u32)next();
        sn_u32 flags = 0;
        sn_u64 want;
        sn_probe p;
        sn_context context;
        memset(&context, 0, sizeof context);
        context.operand[0] = context.operand[1] = context.out = f;
        context.env = env;
        want = sn_define(op, &context, in, word, &flags);
        sn_probe_codes(op, operands, &f, fields, 0, columns, &word, 1, &p);
        CHECK(p.code == want && p.flags == flags, "operation %d of %llx, %llx: %llx, not %llx", op,
              (unsigned long long)in[0], (unsigned long long)in[1], (unsigned long long)p.code,
              (unsigned long long)want);
        CHECK(((flags & SN_INEXACT) != 0) == ((p.guard | p.round | p.sticky | (p.events & 1)) != 0) ||
                  f.kind == SN_FIXED,
              "operation %d of %llx, %llx: inexact", op, (unsigned long long)in[0], (unsigned long long)in[1]);
        if (p.kind != SN_FINITE || p.events) continue;
        const sn_number x = sn_unpack(&f, p.code);
        sn_u64 sig = p.significand + p.up, got = x.kind == SN_FINITE ? x.sig : 0;
        sn_i32 exp = p.last;
        for (; got && x.exp < exp; exp--)
            sig <<= 1;
        for (sn_i32 e = x.exp; got && e > exp; e--)
            got <<= 1;
        told++;
        CHECK(sig == got && (!got || p.sign == x.sign), "operation %d of %llx, %llx in mode %d is told as %llx * 2^%d",
              op, (unsigned long long)in[0], (unsigned long long)in[1], env.rounding, (unsigned long long)p.significand,
              p.last);
    }
    CHECK(told > 8000, "%d roundings were told", told);
}

/* What lies between the two leaves no exception behind, for NumPy would report it. */
static void test_fp_environment(void) {
    const sn_u64 before = sn_fp_enter();
    volatile float zero = 0, quotient = 1 / zero;
    sn_fp_round(SN_FP_UP);
    quotient += 0x1p-149f;
    sn_fp_leave(before);
    const sn_u64 after = sn_fp_enter();
    sn_fp_leave(after);
    CHECK(quotient > 0 && after == before, "the floating-point environment was %llx and is %llx",
          (unsigned long long)before, (unsigned long long)after);
}

int main(void) {
    test_fp_environment();
    test_philox();
    test_binary32_against_cpu();
    test_convert_round_trip();
    test_modes_bracket();
    test_stochastic_counts();
    test_no_random_bits();
    test_fixed();
    test_signed_zero_and_invalid();
    test_quantize_kernels();
    test_loops();
    test_short_way();
    test_short_sum();
    test_tallies();
    test_probe();
    printf("%d passed, %d failed\n", checks - failures, failures);
    return failures != 0;
}

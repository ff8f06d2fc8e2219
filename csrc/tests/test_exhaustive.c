/* Every operation for all operands of small formats, in all rounding modes: the functions of csrc/dpi, and the headers
 * in csrc/softnum by themselves, which must agree in result and flags. To be compiled with sanitizers (`make
 * ubsan-exhaustive`), so that undefined behaviour that some operands reach is found.
 *
 * All pairs of 8 bits, all triples of up to 6; of e4m3fn all triples to nearest even. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dpi/names.h"
#include "softnum/elementary/functions.h"
#include "softnum/units/fused.h"

typedef sn_u64 of_one(sn_u64, sn_u64, sn_u64, sn_u64, sn_u64 *);
typedef sn_u64 of_two(sn_u64, sn_u64, sn_u64, sn_u64, sn_u64, sn_u64 *);
typedef sn_u64 of_three(sn_u64, sn_u64, sn_u64, sn_u64, sn_u64, sn_u64, sn_u64 *);

#define POINTER_1(name) {#name, 1, softnum_dpi_##name, 0, 0}
#define POINTER_2(name) {#name, 2, 0, softnum_dpi_##name, 0}
#define POINTER_3(name) {#name, 3, 0, 0, softnum_dpi_##name}
#define POINTER(name, operands) POINTER_##operands(name),
static const struct {
    const char *name;
    int operands;
    of_one *one;
    of_two *two;
    of_three *three;
} functions[] = {SN_OPERATIONS(POINTER)};

/* What modes are OR-ed with: each choice of each option is there. */
static const sn_u64 environments[] = {
    0,
    (1 + SN_OVERFLOW_SATURATE) << SOFTNUM_OVERFLOW_SHIFT | SOFTNUM_TININESS_BEFORE | SOFTNUM_FLUSH_INPUTS |
        SN_FLUSH_BEFORE << SOFTNUM_FLUSH_SHIFT | SN_NAN_X86 << SOFTNUM_NAN_SHIFT | (sn_u64)8 << SOFTNUM_BITS_SHIFT,
    (1 + SN_OVERFLOW_SATURATE_FINITE) << SOFTNUM_OVERFLOW_SHIFT | SN_FLUSH_AFTER << SOFTNUM_FLUSH_SHIFT |
        SN_NAN_ARM << SOFTNUM_NAN_SHIFT | (sn_u64)1 << SOFTNUM_BITS_SHIFT,
    SOFTNUM_TININESS_BEFORE | SN_FLUSH_SUBNORMAL << SOFTNUM_FLUSH_SHIFT | (sn_u64)31 << SOFTNUM_BITS_SHIFT,
};
enum { ENVIRONMENTS = sizeof environments / sizeof environments[0] };

static const char *const of_8_bits[] = {"e4m3fn",  "e5m2",        "e4m3",        "e3m4", "e4m3fnuz", "binary8p4se",
                                        "e8m0fnu", "binary8p3uf", "binary8p4sf", "q4.4", "uq8.0",    "posit8"};
static const char *const of_6_bits[] = {"e3m2fn",     "e2m3fn", "binary6p3se", "q3.3",
                                        "posit6_es1", "e2m1fn", "binary5p2uf"};
static const char *const of_4_bits[] = {"e2m1fn", "binary4p2sf", "q2.2"};
#define COUNT(list) (int)(sizeof(list) / sizeof((list)[0]))

static sn_u64 calls, total, refused;

static void fail(const char *text, ...) {
    va_list arguments;
    va_start(arguments, text);
    vfprintf(stderr, text, arguments);
    va_end(arguments);
    exit(1);
}

static sn_u64 handle_of(const char *text) {
    const sn_u64 handle = softnum_dpi_format(text);
    if (handle == SOFTNUM_NO_HANDLE) fail("%s: %s\n", text, softnum_dpi_message());
    return handle;
}

static void done(const char *what, const char *format) {
    printf("%-28s %-28s %12llu\n", what, format, (unsigned long long)calls);
    fflush(stdout);
    total += calls;
    calls = 0;
}

static sn_u64 call(int op, const sn_u64 *in, sn_u64 handle, sn_u64 mode, sn_u64 random, sn_u64 *flags) {
    switch (functions[op].operands) {
    case 1: return functions[op].one(in[0], handle, mode, random, flags);
    case 2: return functions[op].two(in[0], in[1], handle, mode, random, flags);
    default: return functions[op].three(in[0], in[1], in[2], handle, mode, random, flags);
    }
}

/* The formats of a handle as the headers take them; 0 if one is a posit or takum, whose codes they do not take. */
static int fill_all(sn_u64 handle, sn_format *in, sn_format *out) {
    const sn_u32 to = softnum_field(handle, SOFTNUM_OUT);
    sn_u32 before = softnum_field(handle, SOFTNUM_A) ? softnum_field(handle, SOFTNUM_A) : to;
    if (!softnum_fill(to, out)) return 0;
    for (int i = 0; i < 3; i++) {
        const sn_u32 own = softnum_field(handle, SOFTNUM_A + 16 * i);
        before = own ? own : before;
        if (!softnum_fill(before, &in[i])) return 0;
    }
    return 1;
}

/* One operation in one mode, for operands of so many bits each (0: there is none). */
static void each(int op, const char *text, sn_u64 mode, const int *bits) {
    const sn_u64 handle = handle_of(text), width = softnum_dpi_bits(handle);
    const int sum = bits[0] + bits[1] + bits[2];
    sn_format in[3], out;
    sn_env env;
    const int headers = fill_all(handle, in, &out);
    if (headers && !softnum_env("test", mode, &out, softnum_field(handle, SOFTNUM_OUT), &env)) {
        refused++;
        return;
    }
    for (sn_u64 n = 0; n < (sn_u64)1 << sum; n++) {
        sn_u64 code[3] = {n & (((sn_u64)1 << bits[0]) - 1), n >> bits[0] & (((sn_u64)1 << bits[1]) - 1),
                          n >> (bits[0] + bits[1])};
        const sn_u32 random = (sn_u32)(n * 0x9e3779b97f4a7c15u >> 32);
        sn_u64 flags = 0;
        if (op == SN_OP_scalb) code[1] = (sn_u64)0 - ((sn_u64)1 << bits[1] >> 1) + code[1];
        const sn_u64 got = call(op, code, handle, mode, random, &flags);
        if (flags & SOFTNUM_ERROR) { /* a question about formats and modes, not about codes */
            if (n) fail("%s %s: %s\n", functions[op].name, text, softnum_dpi_message());
            refused++;
            return;
        }
        calls++;
        if (width < 64 && got >> width && op != SN_OP_compare && op != SN_OP_compare_signaling && op != SN_OP_classify)
            fail("%s %s: %llx is no code\n", functions[op].name, text, (unsigned long long)got);
        if (!headers) continue;
        sn_u32 raised = 0;
        if (op == SN_OP_scalb) softnum_fill(SOFTNUM_INTEGER, &in[1]);
        code[1] &= op == SN_OP_scalb ? 0xffffffff : ~(sn_u64)0;
        const sn_u64 want = op < SN_OP_exp ? sn_operate(op, in, code, &out, &env, random, &raised)
                                           : sn_elementary(op - SN_OP_exp, &in[0], code[0], &in[1], code[1], &out, &env,
                                                           random, &raised);
        if (got != want || flags != (raised & SOFTNUM_EXCEPTIONS))
            fail("%s %s mode %llx: %llx %llx %llx gives %llx flags %llx, by the header %llx flags %x\n",
                 functions[op].name, text, (unsigned long long)mode, (unsigned long long)code[0],
                 (unsigned long long)code[1], (unsigned long long)code[2], (unsigned long long)got,
                 (unsigned long long)flags, (unsigned long long)want, (unsigned)raised);
    }
}

static int rounds(int op) {
    return op < SN_OP_next_up || op == SN_OP_negate || op == SN_OP_absolute || op >= SN_OP_exp;
}

static void every_mode(int op, const char *text, int a, int b, int c) {
    const int bits[3] = {a, b, c};
    for (int e = 0; e < ENVIRONMENTS; e++)
        for (sn_u64 rounding = 0; rounding < (rounds(op) ? SN_ROUNDING_MODES : 1); rounding++)
            each(op, text, environments[e] | rounding, bits);
}

static int width_of(const char *text) { return (int)softnum_dpi_bits(handle_of(text)); }

static void arithmetic(void) {
    for (int i = 0; i < COUNT(of_8_bits) + COUNT(of_6_bits); i++) {
        const char *text = i < COUNT(of_8_bits) ? of_8_bits[i] : of_6_bits[i - COUNT(of_8_bits)];
        const int bits = width_of(text);
        for (int op = 0; op < SN_OP_exp; op++) {
            if (functions[op].operands == 3 && bits > 6) continue;
            every_mode(op, text, bits, functions[op].operands > 1 ? bits : 0, functions[op].operands > 2 ? bits : 0);
        }
        done("arithmetic", text);
    }
    const int bits[3] = {8, 8, 8};
    each(SN_OP_fma, "e4m3fn", SN_NEAREST_EVEN, bits);
    done("fma, nearest_even", "e4m3fn");
}

static void functions_of_real_numbers(void) {
    for (int i = 0; i < COUNT(of_8_bits) + COUNT(of_6_bits); i++) {
        const char *text = i < COUNT(of_8_bits) ? of_8_bits[i] : of_6_bits[i - COUNT(of_8_bits)];
        for (int op = SN_OP_exp; op < SN_OPERATION_COUNT; op++)
            if (functions[op].operands == 1) every_mode(op, text, width_of(text), 0, 0);
        done("functions of one operand", text);
    }
    for (int i = 0; i < COUNT(of_4_bits); i++) {
        for (int op = SN_OP_exp; op < SN_OPERATION_COUNT; op++)
            if (functions[op].operands == 2) every_mode(op, of_4_bits[i], 4, 4, 0);
        done("functions of two operands", of_4_bits[i]);
    }
}

static void between_formats(void) {
    static const char *const wider[] = {"binary16", "bfloat16", "binary64", "q32.0", "uq64.0", "q1.63", "posit16"};
    char text[64];
    for (int i = 0; i < COUNT(of_8_bits); i++)
        for (int k = 0; k < COUNT(of_8_bits) + COUNT(of_6_bits) + COUNT(wider); k++) {
            const int j = k - COUNT(of_8_bits), l = j - COUNT(of_6_bits);
            const char *to = j < 0 ? of_8_bits[k] : l < 0 ? of_6_bits[j] : wider[l];
            snprintf(text, sizeof text, "%s->%s", of_8_bits[i], to);
            every_mode(SN_OP_convert, text, 8, 0, 0);
            every_mode(SN_OP_round_to_integral, text, 8, 0, 0);
            every_mode(SN_OP_to_integer, text, 8, 0, 0);
            every_mode(SN_OP_logb, text, 8, 0, 0);
        }
    for (int l = 0; l < 2; l++)
        for (int k = 0; k < COUNT(of_8_bits); k++) {
            snprintf(text, sizeof text, "%s->%s", wider[l], of_8_bits[k]);
            every_mode(SN_OP_convert, text, 16, 0, 0);
        }
    done("conversions", "all to all, from 16 bits");
    static const char *const mixed[] = {"e4m3fn,e5m2->binary16", "e5m2,binary8p3uf->e4m3fn", "q4.4,e4m3->q4.4",
                                        "e8m0fnu,e3m4->bfloat16", "e5m2,q4.4->posit8"};
    for (int i = 0; i < COUNT(mixed); i++) {
        for (int op = 0; op < SN_OP_exp; op++)
            if (functions[op].operands == 2 && op != SN_OP_scalb) every_mode(op, mixed[i], 8, 8, 0);
        done("mixed formats", mixed[i]);
    }
}

/* Words of two elements of four bits, one of six. */
static void units(void) {
    static const char *const steps[] = {"e2m1fn,e2m1fn,e3m2fn->e3m2fn", "e2m1fn,e2m1fn->binary6p3se",
                                        "q2.2,q2.2->q3.3"};
    for (int i = 0; i < COUNT(steps); i++) {
        const sn_u64 handle = handle_of(steps[i]);
        for (sn_u64 mode = 0; mode < SN_ROUNDING_MODES; mode++)
            for (sn_u64 product = 0; product < SN_ROUNDING_MODES; product++)
                for (sn_u64 n = 0; n < 1 << 14; n++) {
                    sn_u64 flags = 0;
                    softnum_dpi_mac(n >> 8, n & 15, n >> 4 & 15, handle, mode, product, n * 0x9e3779b97f4a7c15u,
                                    &flags);
                    if (flags & SOFTNUM_ERROR) fail("mac: %s\n", softnum_dpi_message());
                    calls++;
                }
        done("mac", steps[i]);
    }
    const sn_u64 handle = handle_of("e2m1fn,e2m1fn->e2m1fn");
    for (sn_u64 mode = 0; mode < SN_ROUNDING_MODES; mode++)
        for (sn_u64 n = 0; n < 1 << 20; n++) {
            const sn_u32 a = (sn_u32)n & 255, b = (sn_u32)(n >> 8) & 255;
            sn_u64 flags = 0;
            softnum_dpi_exact_dot(&a, &b, 2, n >> 16, handle, mode, n * 0x9e3779b97f4a7c15u >> 32, &flags);
            for (sn_u64 fraction = 0; fraction < 24 && mode < SN_STOCHASTIC && (n & 15) < 4; fraction += 8)
                softnum_dpi_fused_dot(&a, &b, 2, n >> 16, handle, mode, 1 + (n >> 4 & 1), fraction,
                                      fraction ? SN_FUSED_NO_FLOOR : -4, fraction == 8 ? 3 : -1, n >> 5 & 1, &flags);
            if (flags & SOFTNUM_ERROR) fail("dot: %s\n", softnum_dpi_message());
            calls++;
        }
    done("exact and fused dot", "e2m1fn, two terms");
}

int main(void) {
    arithmetic();
    functions_of_real_numbers();
    between_formats();
    units();
    printf("%llu calls; %llu modes that a format or operation does not take\n", (unsigned long long)total,
           (unsigned long long)refused);
    return 0;
}

/* Carriers to a format's values and codes, and codes to carriers: every instruction set of this CPU against sn_convert,
 * bit for bit. */
#include "fuzz.h"

enum { LONGEST = 600 }; /* beyond two blocks of random words */

static int bits_of_carrier;

static sn_u64 get(const char *p, size_t i) {
    sn_u64 value = 0;
    memcpy(&value, p + i * (size_t)bits_of_carrier / 8, (size_t)bits_of_carrier / 8);
    return value;
}

/* A carrier's pattern: any, one of its own edges, or one near a value of the format or the middle of two. */
static sn_u64 take_pattern(fuzz_input *in, const sn_format *carrier, const sn_format *f) {
    const int how = fuzz_choose(in, 4);
    if (how == 0) return fuzz_take_code(in, carrier);
    const sn_env env = fuzz_plain_env(SN_NEAREST_EVEN);
    sn_u32 flags = 0;
    const sn_u64 code = fuzz_take_code(in, f) & fuzz_mask(f);
    const sn_u64 x = sn_convert(f, code, carrier, &env, 0, &flags);
    if (how == 1 || fuzz_is_nan(f, code)) return x;
    const sn_u64 y = sn_convert(f, (code + 1) & fuzz_mask(f), carrier, &env, 0, &flags);
    const sn_u64 middle = how == 2 || fuzz_is_nan(carrier, y) ? x : x + (y - x) / 2;
    return (middle + (sn_u64)fuzz_choose(in, 16) - 8) & fuzz_mask(carrier);
}

static void report(const fuzz_trial *t, const char *isa, const char *what, size_t i, size_t n, sn_u64 got,
                   sn_u64 want) {
    if (got == want) return;
    fprintf(stderr, "%s, %s, element %zu of %zu: %llx became %llx, not %llx\n", isa, what, i, n,
            (unsigned long long)t->code[0], (unsigned long long)got, (unsigned long long)want);
    FUZZ_EXPECT(t, got == want);
}

static sn_u64 get_code(const char *p, int width, size_t i) {
    sn_u64 code = 0;
    memcpy(&code, p + i * (size_t)width, (size_t)width);
    return code;
}

static int take_width(fuzz_input *in, const sn_format *f) {
    const int least = f->bits <= 8 ? 0 : f->bits <= 16 ? 1 : f->bits <= 32 ? 2 : 3;
    const int most = bits_of_carrier == 32 ? 2 : 3; /* lanes of 32 bits meet no codes of 64 */
    return 1 << (least < most ? least + fuzz_choose(in, most - least + 1) : least);
}

static void check_decode(fuzz_input *in, const sn_format *f, const sn_format *carrier) {
    const sn_env exact = fuzz_plain_env(SN_TOWARD_ZERO);
    const int width = take_width(in, f), size = bits_of_carrier / 8;
    const size_t n = (size_t)fuzz_choose(in, 80), shift = fuzz_choose(in, 4) == 3;
    sn_decoding d;
    if (!sn_decoding_prepare(f, bits_of_carrier, &d)) return;
    fuzz_trial t;
    memset(&t, 0, sizeof t);
    t.op = SN_OP_convert;
    t.context.operand[0] = *f;
    t.context.out = *carrier;
    t.context.env = exact;
    char *codes = (char *)fuzz_buffer(n * (size_t)width + shift, 1) + shift;
    for (size_t i = 0; i < n; i++) {
        const sn_u64 code = fuzz_take_code(in, f);
        memcpy(codes + i * (size_t)width, &code, (size_t)width);
    }
    for (int isa = 0; isa <= sn_detect_isa(); isa++) {
        const sn_kernels *k = sn_kernels_for(isa);
        char *out = (char *)fuzz_buffer(n * (size_t)size + shift, 1) + shift;
        if (size == 8)
            k->decode64(&d, codes, width, (double *)(void *)out, n);
        else
            k->decode32(&d, codes, width, (float *)(void *)out, n);
        for (size_t i = 0; i < n; i++) {
            t.code[0] = get_code(codes, width, i);
            const fuzz_result want = fuzz_evaluate(&t);
            FUZZ_EXPECT(&t, !(want.flags & ~(sn_u32)SN_INVALID)); /* the domain: values are exact in the carrier */
            report(&t, k->name, "decode", i, n, get(out, i), want.code);
        }
        free(out - shift);
    }
    free(codes - shift);
}

void fuzz_quantize(fuzz_input *in) {
    const int wide = fuzz_choose(in, 2), misaligned = fuzz_choose(in, 4) == 3, in_place = fuzz_choose(in, 4) == 3;
    const sn_format carrier = wide ? fuzz_float(11, 52, 1023) : fuzz_float(8, 23, 127);
    const sn_env exact = fuzz_plain_env(SN_TOWARD_ZERO);
    fuzz_trial t;
    sn_rounding r, widened;
    memset(&t, 0, sizeof t);
    bits_of_carrier = wide ? 64 : 32;
    t.op = SN_OP_convert;
    sn_format *f = &t.context.out;
    t.context.operand[0] = carrier;
    *f = fuzz_take_format(in, fuzz_choose(in, 2) ? 16 : 64);
    if (fuzz_choose(in, 4) == 3) {
        check_decode(in, f, &carrier);
        return;
    }
    t.context.env = fuzz_take_env(in, f);
    t.context.env.flush_inputs = 0;
    const int values = sn_rounding_prepare(f, &t.context.env, bits_of_carrier, &r);
    const int widens = !wide && sn_rounding_prepare(f, &t.context.env, 64, &widened);
    if (!values && !widens) return;

    const int few = fuzz_choose(in, 8), size = bits_of_carrier / 8, width = take_width(in, f);
    const size_t n = (size_t)(few ? fuzz_choose(in, 80) : fuzz_choose(in, LONGEST + 1)), shift = misaligned ? 1 : 0;
    const sn_u64 seed = fuzz_take(in, 1), stream = fuzz_take(in, 1);
    const int keyed = sn_is_stochastic(&t.context.env) && fuzz_choose(in, 2);
    const sn_philox_words key = sn_philox_key(seed, stream, SN_DOMAIN_ELEMENTWISE);
    char *x = (char *)fuzz_buffer(n * (size_t)size + shift, 1) + shift;
    sn_u32 *words = fuzz_buffer(n, sizeof *words);
    sn_u64 *want = fuzz_buffer(n, sizeof *want), *want_code = fuzz_buffer(n, sizeof *want_code);
    int any_lost = 0;
    for (size_t i = 0; i < n; i++) {
        const sn_philox_words w = sn_philox((sn_u32)(i / 4), 0, 0, 0, key.w[0], key.w[1]);
        words[i] = !keyed && i < 32 ? (sn_u32)fuzz_take(in, 4) : w.w[i % 4];
        if (i < 64)
            t.code[0] = take_pattern(in, &carrier, f);
        else
            t.code[0] = get(x, i * 7 % 64);
        t.word = words[i];
        memcpy(x + i * (size_t)size, &t.code[0], (size_t)size);
        const fuzz_result result = fuzz_evaluate(&t);
        sn_u32 flags = 0;
        want[i] = sn_convert(f, result.code, &carrier, &exact, 0, &flags);
        want_code[i] = result.code;
        FUZZ_EXPECT(&t, !values || !(flags & SN_INEXACT)); /* the domain: values are exact in the carrier */
        any_lost |= (result.flags & SN_NO_CODE) != 0;
    }
    const sn_random_source random = {keyed ? NULL : words, {key.w[0], key.w[1]}, 0};
    for (int isa = 0; isa <= sn_detect_isa(); isa++) {
        const sn_kernels *k = sn_kernels_for(isa);
        char *source = x, *out = (char *)fuzz_buffer(n * (size_t)size + shift, 1) + shift;
        char *codes = (char *)fuzz_buffer(n * (size_t)width + shift, 1) + shift;
        if (in_place) {
            memcpy(out, x, n * (size_t)size);
            source = out;
        }
        const float *x32 = (const float *)(const void *)x, *source32 = (const float *)(const void *)source;
        const double *x64 = (const double *)(const void *)x, *source64 = (const double *)(const void *)source;
        const sn_u64 saved = sn_fp_enter();
        int bad = any_lost, bad_codes = any_lost, bad_widened = any_lost;
        if (values) {
            bad_codes =
                wide ? k->encode64(&r, x64, codes, width, n, &random) : k->encode32(&r, x32, codes, width, n, &random);
            for (size_t i = 0; i < n; i++) {
                t.code[0] = get(x, i);
                t.word = words[i];
                report(&t, k->name, "encode", i, n, get_code(codes, width, i), want_code[i]);
            }
            bad = wide ? k->quantize64(&r, source64, (double *)(void *)out, n, &random)
                       : k->quantize32(&r, source32, (float *)(void *)out, n, &random);
        }
        if (widens) {
            bad_widened = k->encode_widened(&widened, x32, codes, width, n, &random);
            for (size_t i = 0; i < n; i++) {
                t.code[0] = get(x, i);
                t.word = words[i];
                report(&t, k->name, "encode_widened", i, n, get_code(codes, width, i), want_code[i]);
            }
        }
        sn_fp_leave(saved);
        if (bad != any_lost || bad_codes != any_lost || bad_widened != any_lost)
            fprintf(stderr, "%s, %zu elements: lost %d; quantize says %d, encode %d, encode_widened %d\n", k->name, n,
                    any_lost, bad, bad_codes, bad_widened);
        FUZZ_EXPECT(&t, bad == any_lost && bad_codes == any_lost && bad_widened == any_lost);
        for (size_t i = 0; values && i < n; i++) {
            t.code[0] = get(x, i);
            t.word = words[i];
            report(&t, k->name, "quantize", i, n, get(out, i), want[i]);
        }
        free(out - shift);
        free(codes - shift);
    }
    free(x - shift);
    free(words);
    free(want);
    free(want_code);
}

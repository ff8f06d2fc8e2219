/* Rounding carriers to a format's values and codes, and decoding: every instruction set of this CPU against sn_convert,
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

void fuzz_quantize(fuzz_input *in) {
    const int wide = fuzz_choose(in, 2), misaligned = fuzz_choose(in, 4) == 0, in_place = fuzz_choose(in, 4) == 0;
    const sn_format carrier = wide ? fuzz_float(11, 52, 1023) : fuzz_float(8, 23, 127);
    const sn_env exact = fuzz_plain_env(SN_TOWARD_ZERO);
    fuzz_trial t;
    sn_rounding r;
    memset(&t, 0, sizeof t);
    bits_of_carrier = wide ? 64 : 32;
    t.op = SN_OP_convert;
    sn_format *f = &t.context.out;
    t.context.operand[0] = carrier;
    *f = fuzz_take_format(in, fuzz_choose(in, 2) ? 16 : 64);
    t.context.env = fuzz_take_env(in, f);
    t.context.env.flush_inputs = t.context.env.flush_results = 0;
    t.context.env.nan = SN_NAN_CANONICAL;
    if (!sn_rounding_prepare(f, &t.context.env, bits_of_carrier, &r)) return;

    const int few = fuzz_choose(in, 8), size = bits_of_carrier / 8;
    const size_t n = (size_t)(few ? fuzz_choose(in, 80) : fuzz_choose(in, LONGEST + 1)), shift = misaligned ? 1 : 0;
    const sn_u64 seed = fuzz_take(in, 1), stream = fuzz_take(in, 1);
    const int keyed = sn_is_stochastic(&t.context.env) && fuzz_choose(in, 2);
    char *x = (char *)fuzz_buffer(n * (size_t)size + shift, 1) + shift;
    sn_u32 *words = fuzz_buffer(n, sizeof *words);
    sn_u64 *want = fuzz_buffer(n, sizeof *want), *want_code = fuzz_buffer(n, sizeof *want_code);
    const int width = f->bits <= 8 ? 1 : f->bits <= 16 ? 2 : f->bits <= 32 ? 4 : 8;
    char *codes = fuzz_buffer(n, (size_t)width), *back = fuzz_buffer(n, (size_t)size);
    sn_decoding d;
    FUZZ_EXPECT(NULL, sn_decoding_prepare(f, bits_of_carrier, &d));
    int any_lost = 0;
    const sn_philox_words key = sn_philox_key(seed, stream, SN_DOMAIN_ELEMENTWISE);
    const sn_random_source from_key = {NULL, {key.w[0], key.w[1]}, 0}, from_words = {words, {0, 0}, 0};
    const sn_random_source *const random = keyed ? &from_key : &from_words;
    sn_kernels_for(SN_ISA_PORTABLE)->words(&from_key, words, n);
    for (size_t i = 0; i < n; i++) {
        if (!keyed && i < 32) words[i] = (sn_u32)fuzz_take(in, 4);
        t.code[0] = take_pattern(in, &carrier, f);
        t.word = words[i];
        memcpy(x + i * (size_t)size, &t.code[0], (size_t)size);
        const fuzz_result result = fuzz_evaluate(&t);
        sn_u32 flags = 0;
        want_code[i] = result.code;
        want[i] = sn_convert(f, result.code, &carrier, &exact, 0, &flags);
        FUZZ_EXPECT(&t, !(flags & SN_INEXACT)); /* the domain: values are exact in the carrier */
        any_lost |= (result.flags & SN_INVALID) && !f->has_nan;
    }
    for (int isa = 0; isa <= sn_detect_isa(); isa++) {
        const sn_kernels *k = sn_kernels_for(isa);
        char *source = x, *out = (char *)fuzz_buffer(n * (size_t)size + shift, 1) + shift;
        if (in_place) {
            memcpy(out, x, n * (size_t)size);
            source = out;
        }
        const sn_u64 saved = sn_fp_enter();
        const double *x64 = (const double *)(const void *)source;
        const float *x32 = (const float *)(const void *)source;
        const int bad_code =
            wide ? k->encode64(&r, x64, codes, width, n, random) : k->encode32(&r, x32, codes, width, n, random);
        const int bad = wide ? k->quantize64(&r, x64, (double *)(void *)out, n, random)
                             : k->quantize32(&r, x32, (float *)(void *)out, n, random);
        if (wide)
            k->decode64(&d, codes, width, (double *)(void *)back, n);
        else
            k->decode32(&d, codes, width, (float *)(void *)back, n);
        sn_fp_leave(saved);
        FUZZ_EXPECT(&t, bad == any_lost && bad_code == any_lost);
        for (size_t i = 0; i < n; i++) {
            t.code[0] = get(x, i);
            t.word = words[i];
            sn_u64 code = 0;
            memcpy(&code, codes + i * (size_t)width, (size_t)width);
            FUZZ_EXPECT(&t, code == want_code[i] && get(back, i) == want[i]);
            if (get(out, i) == want[i]) continue;
            fprintf(stderr, "%s, element %zu of %zu: %llx became %llx, not %llx\n", k->name, i, n,
                    (unsigned long long)t.code[0], (unsigned long long)get(out, i), (unsigned long long)want[i]);
            FUZZ_EXPECT(&t, get(out, i) == want[i]);
        }
        free(out - shift);
    }
    free(x - shift);
    free(words);
    free(want);
    free(want_code);
    free(codes);
    free(back);
}

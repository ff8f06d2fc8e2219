/* softnum.h: values in and out. Lanes where they apply (dispatch/kernels.h), else the definition, element by element.
 */
#include <stdlib.h>
#include <string.h>

#include "library/objects.h"
#include "softnum/operations/arith.h"

enum { BLOCK = 4 * SN_WORD_BLOCKS };

void softnum_fill_rounder(const softnum_format *f, const sn_env *env, softnum_rounder *r) {
    r->format = *f;
    r->env = *env;
    const sn_u64 saved = sn_fp_enter();
    for (int i = 0; i < 2; i++)
        r->rounds[i] = f->kernels && sn_rounding_prepare(&f->core, env, 32 << i, &r->rounding[i]);
    sn_fp_leave(saved);
    r->widens = !r->rounds[0] && r->rounds[1];
}

softnum_status softnum_rounder_new(const softnum_format *format, const softnum_rules *rules, softnum_rounder **rounder,
                                   softnum_why *why) {
    sn_env env;
    softnum_status status;
    if (!rounder) return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, "softnum_rounder_new: rounder is null");
    *rounder = NULL;
    if (!format) return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, "softnum_rounder_new: format is null");
    if ((status = softnum_fill_env("softnum_rounder_new", rules, format, 0, &env, why)) != SOFTNUM_OK) return status;
    softnum_rounder *r = softnum_new(sizeof *r, why, &status);
    if (!r) return status;
    softnum_fill_rounder(format, &env, r);
    *rounder = r;
    return SOFTNUM_OK;
}

void softnum_rounder_free(softnum_rounder *rounder) { free(rounder); }

/* ---- random words ------------------------------------------------------------------------------------------------ */

softnum_status softnum_check_random(const char *who, int stochastic, const softnum_random *random, softnum_why *why) {
    if (!stochastic) return SOFTNUM_OK;
    if (!random) return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, "%s: rounding is stochastic, and random is null", who);
    if (random->size != sizeof *random)
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, "%s: the size of random is not as SOFTNUM_RANDOM_INIT sets it",
                            who);
    return SOFTNUM_OK;
}

void softnum_random_words(uint64_t seed, uint64_t stream, uint64_t first, uint32_t *words, size_t n) {
    const sn_philox_words key = sn_philox_key(seed, stream, SN_DOMAIN_ELEMENTWISE);
    sn_philox_words w = {{0, 0, 0, 0}};
    for (size_t i = 0; i < n; i++) {
        const sn_u64 at = first + i, block = at / 4;
        if (i == 0 || at % 4 == 0) w = sn_philox((sn_u32)block, (sn_u32)(block >> 32), 0, 0, key.w[0], key.w[1]);
        words[i] = w.w[at % 4];
    }
}

void softnum_fill_words(const softnum_random *random, size_t i, sn_u32 *words, size_t n) {
    if (random->words)
        memcpy(words, random->words + i, n * sizeof *words);
    else
        softnum_random_words(random->seed, random->stream, random->first + i, words, n);
}

/* ---- rounding ---------------------------------------------------------------------------------------------------- */

/* How a call rounds: from carriers of 32 << wide bits, to values or codes, or both; flags, or null. */
typedef struct {
    const softnum_rounder *r;
    int wide;
    const char *x;
    char *values, *codes;
    uint8_t *flags;
} call;

static size_t carrier_bytes(const call *c) { return c->wide ? 8 : 4; }

/* Elements i ... i + n - 1, n at most BLOCK where words are given; 1: one has no code. */
static int by_lanes(const call *c, size_t i, size_t n, const sn_random_source *random) {
    const sn_kernels *k = c->r->format.kernels;
    const char *x = c->x + i * carrier_bytes(c);
    if (c->values) {
        char *out = c->values + i * carrier_bytes(c);
        return c->wide ? k->quantize64(&c->r->rounding[1], (const void *)x, (void *)out, n, random)
                       : k->quantize32(&c->r->rounding[0], (const void *)x, (void *)out, n, random);
    }
    const int width = (int)c->r->format.bytes;
    char *codes = c->codes + i * c->r->format.bytes;
    if (c->wide) return k->encode64(&c->r->rounding[1], (const void *)x, codes, width, n, random);
    return c->r->widens ? k->encode_widened(&c->r->rounding[1], (const void *)x, codes, width, n, random)
                        : k->encode32(&c->r->rounding[0], (const void *)x, codes, width, n, random);
}

/* The OR of the flags of elements i ... i + n - 1; *inexact: a value is not the carrier's, and nothing there is. */
static sn_u32 by_definition(const call *c, size_t i, size_t n, const sn_u32 *words, int *inexact) {
    static const sn_env exactly = {
        SN_NEAREST_EVEN, SN_OVERFLOW_INFINITY, SN_TININESS_AFTER, 32, 0, 0, SN_NAN_CANONICAL, 0};
    const sn_format *carrier = c->wide ? &sn_binary64 : &sn_binary32;
    const int size = (int)carrier_bytes(c);
    sn_u32 all = 0;
    for (size_t j = i; j < i + n; j++) {
        sn_u32 flags = 0, lost = 0;
        const sn_u64 code = sn_convert(carrier, sn_load_code(c->x + j * (size_t)size, size), &c->r->format.core,
                                       &c->r->env, words ? words[j - i] : 0, &flags);
        if (c->codes) sn_store_code(c->codes + j * c->r->format.bytes, (int)c->r->format.bytes, code);
        if (c->values) {
            const sn_u64 value = sn_convert(&c->r->format.core, code, carrier, &exactly, 0, &lost);
            sn_store_code(c->values + j * (size_t)size, size, value);
            if (lost & ~(sn_u32)SN_INVALID) *inexact = 1;
        }
        if (c->flags) c->flags[j] = (uint8_t)flags;
        all |= flags;
    }
    return all;
}

static softnum_status round_all(const char *who, const call *c, size_t n, const softnum_random *random,
                                softnum_why *why) {
    if (!c->r || (n && (!c->x || (!c->values && !c->codes))))
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, "%s: the rounder, x or the result is null", who);
    const int stochastic = sn_is_stochastic(&c->r->env);
    const softnum_status status = softnum_check_random(who, stochastic, random, why);
    if (status != SOFTNUM_OK) return status;
    const int lanes = !c->flags && (c->r->rounds[c->wide] || (!c->values && c->r->widens));
    const int in_one = !stochastic || random->words || random->first % BLOCK == 0;
    sn_random_source source = {NULL, {0, 0}, 0};
    sn_u32 words[BLOCK], met = 0;
    int inexact = 0;
    const sn_u64 saved = sn_fp_enter();
    if (lanes && in_one) {
        if (stochastic) {
            const sn_philox_words key = sn_philox_key(random->seed, random->stream, SN_DOMAIN_ELEMENTWISE);
            source.words = random->words;
            source.key[0] = key.w[0];
            source.key[1] = key.w[1];
            source.first = random->first;
        }
        if (by_lanes(c, 0, n, &source)) met = SN_NO_CODE;
    } else {
        for (size_t i = 0; i < n && !inexact; i += BLOCK) {
            const size_t take = n - i < BLOCK ? n - i : BLOCK;
            if (stochastic) softnum_fill_words(random, i, words, take);
            source.words = words;
            if (lanes)
                met |= by_lanes(c, i, take, &source) ? (sn_u32)SN_NO_CODE : 0;
            else
                met |= by_definition(c, i, take, stochastic ? words : NULL, &inexact);
        }
    }
    sn_fp_leave(saved);
    if (inexact)
        return softnum_fail(why, SOFTNUM_NOT_EXACT, "%s: binary%d does not hold a value of %s; %s", who,
                            c->wide ? 64 : 32, c->r->format.name, c->wide ? "encode" : "take binary64, or encode");
    /* lanes tell of no code alone, which the definition flags; a NaN that a number stands for is no error of lanes */
    if (met & SN_NO_CODE)
        return softnum_fail(why, SOFTNUM_NO_CODE,
                            "%s: a value is NaN%s, and %s has no code for it; code 0x%llx stands there (invalid_code)",
                            who, c->r->format.core.kind == SN_FIXED ? " or infinite" : "", c->r->format.name,
                            (unsigned long long)c->r->env.invalid_code);
    return SOFTNUM_OK;
}

softnum_status softnum_quantize_f32(const softnum_rounder *rounder, const float *x, float *out, size_t n,
                                    const softnum_random *random, softnum_why *why) {
    const call c = {rounder, 0, (const char *)x, (char *)out, NULL, NULL};
    return round_all("softnum_quantize_f32", &c, n, random, why);
}

softnum_status softnum_quantize_f64(const softnum_rounder *rounder, const double *x, double *out, size_t n,
                                    const softnum_random *random, softnum_why *why) {
    const call c = {rounder, 1, (const char *)x, (char *)out, NULL, NULL};
    return round_all("softnum_quantize_f64", &c, n, random, why);
}

softnum_status softnum_encode_f32(const softnum_rounder *rounder, const float *x, void *codes, uint8_t *flags, size_t n,
                                  const softnum_random *random, softnum_why *why) {
    const call c = {rounder, 0, (const char *)x, NULL, codes, flags};
    return round_all("softnum_encode_f32", &c, n, random, why);
}

softnum_status softnum_encode_f64(const softnum_rounder *rounder, const double *x, void *codes, uint8_t *flags,
                                  size_t n, const softnum_random *random, softnum_why *why) {
    const call c = {rounder, 1, (const char *)x, NULL, codes, flags};
    return round_all("softnum_encode_f64", &c, n, random, why);
}

/* ---- decoding ---------------------------------------------------------------------------------------------------- */

static softnum_status decode(const char *who, const softnum_format *f, const void *codes, void *out, int wide, size_t n,
                             softnum_why *why) {
    const sn_format *carrier = wide ? &sn_binary64 : &sn_binary32;
    const sn_env exactly = {SN_NEAREST_EVEN, SN_OVERFLOW_INFINITY, SN_TININESS_AFTER, 32, 0, 0, SN_NAN_CANONICAL, 0};
    if (!f || (n && (!codes || !out)))
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, "%s: the format, codes or the result is null", who);
    const softnum_status status = softnum_check_codes(who, "codes", f, codes, n, 0, why);
    if (status != SOFTNUM_OK) return status;
    if (f->decodes[wide]) {
        const sn_u64 saved = sn_fp_enter();
        if (wide)
            f->kernels->decode64(&f->decoding[1], codes, (int)f->bytes, out, n);
        else
            f->kernels->decode32(&f->decoding[0], codes, (int)f->bytes, out, n);
        sn_fp_leave(saved);
        return SOFTNUM_OK;
    }
    if (sn_convert_array(&f->core, codes, (int)f->bytes, carrier, &exactly, out, wide ? 8 : 4, n) & ~(sn_u32)SN_INVALID)
        return softnum_fail(why, SOFTNUM_NOT_EXACT, "%s: binary%d does not hold a value of %s%s", who, wide ? 64 : 32,
                            f->name, wide ? "" : "; decode to binary64");
    return SOFTNUM_OK;
}

softnum_status softnum_decode_f32(const softnum_format *format, const void *codes, float *out, size_t n,
                                  softnum_why *why) {
    return decode("softnum_decode_f32", format, codes, out, 0, n, why);
}

softnum_status softnum_decode_f64(const softnum_format *format, const void *codes, double *out, size_t n,
                                  softnum_why *why) {
    return decode("softnum_decode_f64", format, codes, out, 1, n, why);
}

/* The explorer of formats: facts, codes, neighbours, a stretch of the number line, and all roundings of a number. */
#include "playground.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "softnum/operations/order.h"
#include "softnum/operations/suits.h"
#include "softnum/rounding/names.h"

enum { BESIDE = 6, TABLE_BITS = 8 };

static const sn_env USUAL = {SN_NEAREST_EVEN, SN_OVERFLOW_INFINITY, SN_TININESS_AFTER, 32, 0, 0, SN_NAN_CANONICAL, 0};

/* Numbers with commas between them, exactly n; 0 with an error. */
static int read_numbers(const char *what, const char *text, size_t n, int32_t *values) {
    char part[24];
    for (size_t i = 0; i < n; i++) {
        const size_t length = strcspn(text, ",");
        long long v;
        if (length >= sizeof part || (i + 1 < n) != (text[length] == ','))
            return pg_fail("%s: %d numbers with commas between them are needed", what, (int)n);
        memcpy(part, text, length);
        part[length] = 0;
        if (!pg_integer(what, part, INT32_MIN, INT32_MAX, &v)) return 0;
        values[i] = (int32_t)v;
        text += length + 1;
    }
    return 1;
}

static softnum_format *make_format(const char *text) {
    softnum_format *f = NULL;
    softnum_why why = {""};
    int32_t v[10];
    if (!strncmp(text, "float:", 6)) {
        if (!read_numbers("float", text + 6, 10, v)) return NULL;
        const softnum_float facts = {sizeof facts, v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9]};
        softnum_format_float(&facts, &f, &why);
    } else if (!strncmp(text, "fixed:", 6)) {
        if (!read_numbers("fixed", text + 6, 3, v)) return NULL;
        softnum_format_fixed(v[0], v[1], v[2], &f, &why);
    } else {
        softnum_format_named(text, &f, &why);
    }
    if (!f) pg_fail("%s", why.text);
    return f;
}

const softnum_format *pg_format(const char *text) {
    typedef struct entry {
        struct entry *next;
        softnum_format *format;
        char text[96];
    } entry;
    static entry *kept; /* as long as the page: whoever holds one may ask for others */
    if (strlen(text) >= sizeof kept->text) {
        pg_fail("'%.40s...' is no format", text);
        return NULL;
    }
    for (entry *e = kept; e; e = e->next)
        if (!strcmp(e->text, text)) return e->format;
    softnum_format *f = make_format(text);
    entry *e = f ? malloc(sizeof *e) : NULL;
    if (!e) {
        if (f) pg_fail("no memory for another format");
        softnum_format_free(f);
        return NULL;
    }
    strcpy(e->text, text);
    e->format = f;
    e->next = kept;
    kept = e;
    return f;
}

int pg_rules(const char *text, softnum_rules *rules) {
    int32_t v[5];
    *rules = (softnum_rules)SOFTNUM_RULES_INIT;
    if (!*text) return 1;
    if (!read_numbers("rules", text, 5, v)) return 0;
    rules->rounding = v[0];
    rules->overflow = v[1];
    rules->stochastic_bits = v[2];
    rules->tiny_before = v[3];
    rules->flush_results = v[4];
    return 1;
}

void pg_put_flags(sn_u32 flags) {
    static const char *const names[] = {"inexact", "underflow", "overflow", "divide by zero", "invalid", "no code"};
    pg_put("\"flags\":[");
    for (int i = 0, any = 0; i < 6; i++)
        if (flags >> i & 1) pg_put("%s\"%s\"", any++ ? "," : "", names[i]);
    pg_put("]");
}

static sn_u64 mask_of(const sn_format *f) { return f->magnitude_mask | f->sign_mask; }

static int read_code(const sn_format *f, const char *text, sn_u64 *code) {
    if (!pg_hex("code", text, code)) return 0;
    if (*code & ~mask_of(f))
        return pg_fail("code 0x%llx has bits above the format's width of %d", (unsigned long long)*code, (int)f->bits);
    return 1;
}

/* ---- facts ------------------------------------------------------------------------------------------------------- */

static void put_named(const char *name, const sn_format *f, sn_u64 code) {
    pg_put(",\"%s\":{", name);
    pg_put_code(f, code);
    pg_put("}");
}

int pg_answer_format(const pg_request *r) {
    const softnum_format *format = pg_format(r->line[1]);
    if (!format) return 0;
    const sn_format *f = &format->core;
    const sn_i32 exponent = f->kind == SN_FLOAT ? f->bits - f->mantissa_bits - (f->is_signed != 0) : 0;
    pg_put("{\"name\":");
    pg_put_string(format->name);
    pg_put(",\"family\":\"%s\",\"bits\":%d,\"signed\":%s,\"exponent_bits\":%d,\"fraction_bits\":%d",
           f->kind == SN_FLOAT ? "float" : "fixed", (int)f->bits, f->is_signed ? "true" : "false", (int)exponent,
           (int)f->mantissa_bits);
    if (f->kind == SN_FLOAT) pg_put(",\"emin\":%d,\"emax\":%d", (int)f->emin, (int)f->emax);
    pg_put(",\"zero\":%s,\"negative_zero\":%s,\"infinities\":%s,\"nan\":%s,\"subnormals\":%s,\"p3109\":%s",
           f->has_zero ? "true" : "false", f->negative_zero ? "true" : "false", f->has_inf ? "true" : "false",
           f->has_nan ? "true" : "false",
           f->kind == SN_FLOAT && f->lowest == SN_LOWEST_SUBNORMAL && f->mantissa_bits ? "true" : "false",
           f->p3109 ? "true" : "false");
    pg_put(",\"overflow\":[");
    for (int rule = 0, any = 0; rule <= SN_OVERFLOW_P3109_V3_2_1; rule++)
        if (sn_knows_overflow(f, rule)) pg_put("%s%d", any++ ? "," : "", rule + 1);
    pg_put("],\"default_overflow\":%d", (int)sn_default_overflow(f) + 1);
    pg_put(",\"groups\":["); /* of the bits of a code, from the left */
    if (f->is_signed) pg_put("[\"sign\",1],");
    if (f->kind == SN_FIXED)
        pg_put("[\"%s\",%d]]", "integer", (int)f->bits - (f->is_signed != 0));
    else if (f->mantissa_bits)
        pg_put("[\"exponent\",%d],[\"fraction\",%d]]", (int)exponent, (int)f->mantissa_bits);
    else
        pg_put("[\"exponent\",%d]]", (int)exponent);
    put_named("largest", f, f->max_code);
    const sn_u64 least = f->has_zero ? sn_next(f, 0, 0, &USUAL, &(sn_u32){0}) : 0;
    put_named("least", f, least);
    if (f->has_inf) put_named("infinity", f, f->inf_code);
    if (f->has_nan) put_named("canonical_nan", f, f->nan_code);
    sn_u32 flags = 0;
    const pg_number one = {SN_FINITE, {{0, 1}, 0, 0, 0, 0}};
    put_named("one", f, pg_round(f, &USUAL, &one, 0, &flags));
    pg_put("}");
    return 1;
}

/* ---- a code ------------------------------------------------------------------------------------------------------ */

/* A number over 2^up, in binary64: for places on a line alone. */
static double place_of(const sn_number *x, sn_i32 up) {
    const double size = x->kind == SN_FINITE ? ldexp((double)x->sig, x->exp - up) : 0;
    return x->sign ? -size : size;
}

static int is_number(const sn_format *f, sn_u64 code) { return sn_unpack(f, code).kind < SN_INF; }

/* The number beside a code, or the code itself where there is none. */
static sn_u64 beside(const sn_format *f, sn_u64 code, int down) {
    sn_u32 flags = 0;
    const sn_u64 next = sn_next(f, code, down, &USUAL, &flags);
    return is_number(f, next) ? next : code;
}

static void put_line(const sn_format *f, sn_u64 code, const pg_number *typed) {
    sn_u64 at[2 * BESIDE + 1];
    size_t n = 0, here = 0;
    sn_u64 low = code, high = code;
    for (int i = 0; i < BESIDE; i++)
        low = beside(f, low, 1);
    for (int i = 0; i < BESIDE; i++)
        high = beside(f, high, 0);
    for (sn_u64 c = low; n < sizeof at / sizeof at[0]; c = beside(f, c, 0)) {
        if (c == code || (sn_unpack(f, c).kind == SN_ZERO && sn_unpack(f, code).kind == SN_ZERO)) here = n;
        at[n++] = c;
        if (c == high) break;
    }
    sn_number first = sn_unpack(f, at[0]), last = sn_unpack(f, at[n - 1]);
    sn_i32 up = -65536;
    const sn_number *ends[] = {&first, &last};
    for (int i = 0; i < 2; i++)
        if (ends[i]->kind == SN_FINITE && ends[i]->exp + sn_bit_length(ends[i]->sig) > up)
            up = ends[i]->exp + sn_bit_length(ends[i]->sig);
    const double from = place_of(&first, up), length = place_of(&last, up) - from;
    pg_put(",\"here\":%d,\"line\":[", (int)here);
    for (size_t i = 0; i < n; i++) {
        const sn_number x = sn_unpack(f, at[i]);
        pg_put("%s{\"at\":%.6f,", i ? "," : "", length > 0 ? (place_of(&x, up) - from) / length : 0.5);
        pg_put_code(f, at[i]);
        pg_put("}");
    }
    pg_put("]");
    if (!typed || typed->kind > SN_FINITE || !(length > 0)) return;
    double x = ldexp((double)typed->exact.sig.hi, typed->exact.exp + 64 - up) +
               ldexp((double)typed->exact.sig.lo, typed->exact.exp - up);
    x = ((typed->exact.sign ? -x : x) - from) / length;
    if (x >= 0 && x <= 1) pg_put(",\"typed\":%.6f", x);
}

int pg_answer_code(const pg_request *r) {
    const softnum_format *format = pg_format(r->line[1]);
    sn_u64 code;
    long long flip = -1;
    if (!format || !read_code(&format->core, r->line[2], &code)) return 0;
    const sn_format *f = &format->core;
    if (*r->line[3] && !pg_integer("bit", r->line[3], 0, f->bits - 1, &flip)) return 0;
    if (flip >= 0) code ^= (sn_u64)1 << (f->bits - 1 - flip); /* counted from the left */
    pg_put("{");
    pg_put_code(f, code);
    const sn_number x = sn_unpack(f, code);
    if (x.kind <= SN_INF) {
        sn_u32 flags = 0;
        put_named("down", f, sn_next(f, code, 1, &USUAL, &flags));
        put_named("up", f, sn_next(f, code, 0, &USUAL, &flags));
    }
    if (x.kind < SN_INF) put_line(f, code, NULL);
    pg_put("}");
    return 1;
}

int pg_answer_table(const pg_request *r) {
    const softnum_format *format = pg_format(r->line[1]);
    if (!format) return 0;
    const sn_format *f = &format->core;
    if (f->bits > TABLE_BITS)
        return pg_fail("%s has %d bits; all codes are shown up to %d", format->name, (int)f->bits, TABLE_BITS);
    pg_put("[");
    for (sn_u64 code = 0; code <= mask_of(f); code++) {
        pg_put("%s{", code ? "," : "");
        pg_put_code(f, code);
        pg_put("}");
    }
    pg_put("]");
    return 1;
}

/* ---- roundings --------------------------------------------------------------------------------------------------- */

#define NAME(NAME, name, number, family, negative, constant, direction, bump) #name,
static const char *const MODES[] = {SN_MODES(NAME)};

/* Of 2^r random words, how many round to each of the two codes: for up to 12 bits. */
static void put_chances(const sn_format *f, const sn_env *env, const pg_number *x) {
    if (!sn_is_stochastic(env) || env->stochastic_bits > 12) return;
    const sn_u32 words = (sn_u32)1 << env->stochastic_bits;
    sn_u64 codes[2] = {0, 0};
    sn_u32 counts[2] = {0, 0}, flags = 0;
    for (sn_u32 word = 0; word < words; word++) {
        const sn_u64 code = pg_round(f, env, x, word, &flags);
        const int second = counts[0] && code != codes[0];
        codes[second] = code;
        counts[second]++;
    }
    pg_put(",\"words\":%u,\"outcomes\":[", (unsigned)words);
    for (int i = 0; i < 2 && counts[i]; i++) {
        pg_put("%s{\"count\":%u,", i ? "," : "", (unsigned)counts[i]);
        pg_put_code(f, codes[i]);
        pg_put("}");
    }
    pg_put("]");
}

int pg_answer_rounded(const pg_request *r) {
    const softnum_format *format = pg_format(r->line[1]);
    softnum_rules rules;
    softnum_why why = {""};
    sn_env env;
    pg_number x;
    sn_u64 word = 0;
    if (!format || !pg_read(r->line[2], &x) || !pg_rules(r->line[3], &rules)) return 0;
    if (*r->line[4] && !pg_hex("random word", r->line[4], &word)) return 0;
    if (word >> 32) return pg_fail("random word: 0x%llx has more than 32 bits", (unsigned long long)word);
    const sn_format *f = &format->core;
    sn_u64 nearest = 0;
    pg_put("{\"modes\":[");
    for (int mode = 0; mode < SN_ROUNDING_MODES; mode++) {
        sn_u32 flags = 0;
        rules.rounding = mode;
        if (softnum_fill_env("rounding", &rules, format, 0, &env, &why) != SOFTNUM_OK) return pg_fail("%s", why.text);
        if (env.overflow == SN_OVERFLOW_WRAP && x.exact.sticky && x.exact.exp > -f->mantissa_bits)
            return pg_fail("'%.60s' has more digits than can be wrapped exactly: saturate", r->line[2]);
        const sn_u64 code = pg_round(f, &env, &x, (sn_u32)word, &flags);
        if (!mode) nearest = code;
        pg_put("%s{\"mode\":\"%s\",", mode ? "," : "", MODES[mode]);
        pg_put_code(f, code);
        pg_put(",");
        pg_put_flags(flags);
        put_chances(f, &env, &x);
        pg_put("}");
    }
    pg_put("]");
    if (is_number(f, nearest)) put_line(f, nearest, &x);
    pg_put("}");
    return 1;
}

/* The lab of units: one sum of products under a unit, step by step, and numbers drawn for it. */
#include "playground.h"

#include <stdlib.h>
#include <string.h>

#include "softnum/operations/suits.h"

enum { KEPT = 128, TEXT = 400, DRAWN = 12 };

/* A member of softnum_unit_facts or softnum_rules by its name. */
static int32_t *number_named(const char *name, softnum_unit_facts *u, softnum_rules *r) {
    const struct {
        const char *name;
        int32_t *number;
    } all[] = {
        {"kind", &u->kind},
        {"rounding", &r->rounding},
        {"overflow", &r->overflow},
        {"stochastic_bits", &r->stochastic_bits},
        {"flush_inputs", &r->flush_inputs},
        {"flush_results", &r->flush_results},
        {"product_rounding", &u->product_rounding},
        {"lanes", &u->lanes},
        {"reduction", &u->reduction},
        {"compensated", &u->compensated},
        {"terms", &u->terms},
        {"fraction_bits", &u->fraction_bits},
        {"min_exponent", &u->min_exponent},
        {"zero_exponent", &u->zero_exponent},
        {"truncate_fraction", &u->truncate_fraction},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (!strcmp(all[i].name, name)) return all[i].number;
    return NULL;
}

static int set(const char *name, const char *value, softnum_unit_facts *u, softnum_rules *r) {
    static const char *const formats[] = {"a", "b", "accumulator", "result", "product"};
    const softnum_format **places[] = {&u->a, &u->b, &u->accumulator, &u->result, &u->product};
    long long v;
    for (int i = 0; i < 5; i++)
        if (!strcmp(name, formats[i])) return (*places[i] = pg_format(value)) != NULL;
    if (!strcmp(name, "chunk")) {
        if (!pg_integer(name, value, 0, 1LL << 32, &v)) return 0;
        u->chunk = v;
        return 1;
    }
    int32_t *number = number_named(name, u, r);
    if (!number) return pg_fail("a unit has no '%.40s'", name);
    if (!pg_integer(name, value, INT32_MIN, INT32_MAX, &v)) return 0;
    *number = (int32_t)v;
    return 1;
}

static softnum_unit *make_unit(const char *text) {
    softnum_unit_facts facts = SOFTNUM_UNIT_INIT(0);
    softnum_rules rules = SOFTNUM_RULES_INIT;
    softnum_unit *u = NULL;
    softnum_why why = {""};
    char copy[TEXT], *p = copy;
    strcpy(copy, text);
    while (*p) {
        char *name = p, *end = p + strcspn(p, ";"), *value = strchr(p, '=');
        p = *end ? end + 1 : end;
        *end = 0;
        if (!value || value > end) {
            pg_fail("a unit is name=value;name=value..., got '%.40s'", name);
            return NULL;
        }
        *value++ = 0;
        if (!set(name, value, &facts, &rules)) return NULL;
    }
    facts.rules = &rules;
    if (softnum_unit_new(&facts, &u, &why) != SOFTNUM_OK) pg_fail("%s", why.text);
    return u;
}

const softnum_unit *pg_unit(const char *text) {
    static struct {
        char text[TEXT];
        softnum_unit *unit;
    } kept[KEPT];
    static size_t next;
    if (strlen(text) >= TEXT) {
        pg_fail("'%.40s...' is no unit", text);
        return NULL;
    }
    for (size_t i = 0; i < KEPT; i++)
        if (kept[i].unit && !strcmp(kept[i].text, text)) return kept[i].unit;
    softnum_unit *u = make_unit(text);
    if (!u) return NULL;
    softnum_unit_free(kept[next].unit);
    strcpy(kept[next].text, text);
    kept[next].unit = u;
    next = (next + 1) % KEPT;
    return u;
}

/* ---- one sum ----------------------------------------------------------------------------------------------------- */

static const sn_env EXACTLY = {SN_NEAREST_EVEN, SN_OVERFLOW_INFINITY, SN_TININESS_AFTER, 32, 0, 0, SN_NAN_CANONICAL, 0};

static sn_u64 rounded(const softnum_format *f, const pg_number *x, sn_u32 *flags) {
    sn_env env = EXACTLY;
    env.overflow = sn_default_overflow(&f->core);
    return pg_round(&f->core, &env, x, 0, flags);
}

/* Numbers with spaces or commas between them as codes of a format, to the nearest; how many, or -1 with an error. */
static int read_codes(const char *what, const char *text, const softnum_format *f, sn_u64 *codes, int *inexact) {
    static char part[2100];
    int n = 0;
    for (text += strspn(text, " ,"); *text; text += strspn(text, " ,")) {
        const size_t length = strcspn(text, " ,");
        pg_number x;
        sn_u32 flags = 0;
        if (n == PG_NUMBERS || length >= sizeof part) {
            pg_fail("%s has at most %d numbers", what, PG_NUMBERS);
            return -1;
        }
        memcpy(part, text, length);
        part[length] = 0;
        if (!pg_read(part, &x)) return -1;
        codes[n++] = rounded(f, &x, &flags);
        if (flags & SN_NO_CODE) {
            pg_fail("%s: %.40s has no code in %s", what, part, f->name);
            return -1;
        }
        *inexact |= (flags & ~(sn_u32)SN_UNDERFLOW) != 0;
        text += length;
    }
    return n;
}

static void pack(const softnum_format *f, const sn_u64 *codes, size_t n, void *out) {
    for (size_t i = 0; i < n; i++)
        sn_store_code((char *)out + i * f->bytes, (int)f->bytes, codes[i]);
}

static sn_u64 code_at(const softnum_format *f, const void *codes, size_t i) {
    return sn_load_code((const char *)codes + i * f->bytes, (int)f->bytes);
}

static void put_codes(const char *name, const softnum_format *f, const sn_u64 *codes, int n) {
    pg_put("\"%s\":[", name);
    for (int i = 0; i < n; i++) {
        pg_put("%s{", i ? "," : "");
        pg_put_code(&f->core, codes[i]);
        pg_put("}");
    }
    pg_put("],");
}

/* The sum without error, rounded once to the result's format, or null. */
static softnum_unit *exact_unit(const softnum_unit *u) {
    softnum_unit_facts facts = SOFTNUM_UNIT_INIT(SOFTNUM_UNIT_EXACT);
    softnum_unit *made = NULL;
    facts.a = &u->a;
    facts.b = &u->b;
    facts.accumulator = &u->result;
    if (softnum_unit_new(&facts, &made, NULL) != SOFTNUM_OK) return NULL;
    return made;
}

/* Whether the target, as typed, is what a code stands for. */
static int is_target(const softnum_format *f, const char *text, sn_u64 code, int *is) {
    pg_number x;
    sn_u64 stated;
    *is = 0;
    if (*text == '#') {
        if (!pg_hex("code of the result", text + 1, &stated)) return 0;
        *is = stated == code;
        return 1;
    }
    if (!pg_read(text, &x)) return 0;
    sn_u32 flags = 0;
    const sn_number number = sn_unpack(&f->core, code);
    if (x.kind == SN_QUIET_NAN || number.kind >= SN_QUIET_NAN) {
        *is = x.kind == SN_QUIET_NAN && number.kind >= SN_QUIET_NAN;
        return 1;
    }
    const int zeros = x.kind == SN_ZERO && number.kind == SN_ZERO;
    *is = (rounded(f, &x, &flags) == code && !flags && (x.kind == SN_INF) == (number.kind == SN_INF)) ||
          (zeros && x.exact.sign == number.sign);
    return 1;
}

static void put_trace(const softnum_unit *u, const softnum_product *p, const sn_u64 *a, const sn_u64 *b, int k) {
    static sn_u64 partial[PG_NUMBERS];
    const sn_format *product = &sn_binary64;
    softnum_trace(u, p, partial, NULL); /* whose only error now is that of the result: a NaN without a code */
    pg_put(",\"trace\":[");
    for (int i = 0; i < k; i++) {
        sn_u32 flags = 0;
        const sn_u64 code = sn_multiply(&u->a.core, a[i], &u->b.core, b[i], product, &EXACTLY, 0, &flags);
        pg_put("%s{\"product\":{", i ? "," : "");
        pg_put_value(product, code);
        pg_put(",\"exact\":%s},", flags & (SN_INEXACT | SN_FLAG_OVERFLOW) ? "false" : "true");
        pg_put_code(&u->result.core, code_at(&u->result, partial, (size_t)i));
        pg_put("}");
    }
    pg_put("]");
}

int pg_answer_dot(const pg_request *r) {
    static sn_u64 a[PG_NUMBERS], b[PG_NUMBERS], packed[3][PG_NUMBERS], c[PG_NUMBERS];
    const softnum_unit *u = pg_unit(r->line[1]);
    sn_u64 out = 0, best = 0;
    int inexact = 0, is = 0;
    if (!u) return 0;
    const int k = read_codes("a", r->line[2], &u->a, a, &inexact);
    const int kb = k < 0 ? -1 : read_codes("b", r->line[3], &u->b, b, &inexact);
    const int with_c = kb < 0 ? -1 : read_codes("c", r->line[4], &u->c, c, &inexact);
    if (with_c < 0) return 0;
    if (k != kb || !k) return pg_fail("a has %d numbers and b %d: as many are needed, at least one", k, kb);
    if (with_c > 1) return pg_fail("c is one number, or none, got %d", with_c);
    pack(&u->a, a, (size_t)k, packed[0]);
    pack(&u->b, b, (size_t)k, packed[1]);
    pack(&u->c, c, (size_t)with_c, packed[2]);
    softnum_product p = SOFTNUM_PRODUCT_INIT(1, 1, (size_t)k);
    softnum_why why = {""};
    p.a = packed[0];
    p.b = packed[1];
    p.c = with_c ? packed[2] : NULL;
    p.out = &out;
    if (softnum_gemm(u, &p, &why) != SOFTNUM_OK) return pg_fail("%s", why.text);
    const sn_u64 code = code_at(&u->result, &out, 0);
    if (*r->line[5] && !is_target(&u->result, r->line[5], code, &is)) return 0;
    pg_put("{");
    put_codes("a", &u->a, a, k);
    put_codes("b", &u->b, b, k);
    put_codes("c", &u->c, c, with_c);
    pg_put("\"inexact\":%s,\"target\":%s,\"format\":", inexact ? "true" : "false", is ? "true" : "false");
    pg_put_string(u->result.name);
    pg_put(",\"result\":{");
    pg_put_code(&u->result.core, code);
    pg_put("}");
    softnum_unit *exact = exact_unit(u);
    p.out = &best;
    /* C in another format than the result's: the exact unit would read it wrongly */
    const int comparable = exact && (!with_c || !memcmp(&u->c.core, &u->result.core, sizeof u->c.core));
    if (comparable && softnum_gemm(exact, &p, NULL) == SOFTNUM_OK) {
        pg_put(",\"exact\":{");
        pg_put_code(&u->result.core, code_at(&u->result, &best, 0));
        pg_put("},\"is_exact\":%s", code_at(&u->result, &best, 0) == code ? "true" : "false");
    }
    softnum_unit_free(exact);
    p.out = &out;
    if (!strcmp(r->line[6], "trace")) put_trace(u, &p, a, b, k);
    pg_put("}");
    return 1;
}

/* ---- numbers drawn ----------------------------------------------------------------------------------------------- */

const char *const pg_distributions[] = {"uniform", "bell", "positive", "wide", "outliers", NULL};

int pg_distribution(const char *name) {
    for (int i = 0; pg_distributions[i]; i++)
        if (!strcmp(pg_distributions[i], name)) return i;
    pg_fail("unknown distribution '%.40s': uniform, bell, positive, wide or outliers", name);
    return -1;
}

/* Each is exact in binary64, so that the same words give the same numbers everywhere. */
void pg_fill(int distribution, sn_u64 seed, sn_u64 stream, double *x, size_t n) {
    sn_u32 w[DRAWN];
    for (size_t i = 0; i < n; i++) {
        softnum_random_words(seed, stream, DRAWN * i, w, DRAWN);
        sn_u64 sum = 0;
        for (int j = 0; j < DRAWN; j++)
            sum += w[j];
        const double bell = ((double)sum - 6 * 0x1p32) * 0x1p-32; /* variance 1 */
        const double uniform = ((double)w[0] - 0x1p31) * 0x1p-31;
        switch (distribution) {
        case 0: x[i] = uniform; break;
        case 1: x[i] = bell; break;
        case 2: x[i] = (double)w[0] * 0x1p-32; break;
        case 3: { /* exponents from -8 to 7 */
            double v = uniform < 0 ? -1 - (double)w[1] * 0x1p-32 : 1 + (double)w[1] * 0x1p-32;
            for (sn_u32 e = w[2] % 16; e > 8; e--)
                v *= 2;
            for (sn_u32 e = w[2] % 16; e < 8; e++)
                v /= 2;
            x[i] = v;
            break;
        }
        default: x[i] = w[1] % 64 ? bell : 32 * bell; break;
        }
    }
}

int pg_answer_draw(const pg_request *r) {
    static double x[PG_NUMBERS];
    static sn_u64 codes[PG_NUMBERS];
    long long n, seed;
    const int distribution = pg_distribution(r->line[2]);
    if (distribution < 0 || !pg_integer("how many", r->line[1], 1, PG_NUMBERS, &n) ||
        !pg_integer("seed", r->line[3], 0, 1LL << 53, &seed))
        return 0;
    const softnum_format *f = pg_format(*r->line[4] ? r->line[4] : "bfloat16");
    if (!f) return 0;
    pg_put("{");
    for (int part = 0; part < 3; part++) {
        const size_t count = part == 2 ? 1 : (size_t)n;
        pg_fill(distribution, (sn_u64)seed, (sn_u64)part, x, count);
        pg_put("%s\"%c\":[", part ? "," : "", "abc"[part]);
        for (size_t i = 0; i < count; i++) {
            sn_u32 flags = 0;
            sn_u64 bits;
            memcpy(&bits, &x[i], sizeof bits);
            codes[i] = sn_convert(&sn_binary64, bits, &f->core, &EXACTLY, 0, &flags);
            pg_put("%s{", i ? "," : "");
            pg_put_value(&f->core, codes[i]);
            pg_put("}");
        }
        pg_put("]");
    }
    pg_put("}");
    return 1;
}

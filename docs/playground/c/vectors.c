/* The lab of vectors: operands, results and flags of an operation, as a vector file of softnum's. */
#include "playground.h"

#include <stdlib.h>
#include <string.h>

#include "softnum/operations/suits.h"

enum { EDGES = 24, MOST_VECTORS = 65536, BLOCK = 256 };

#define NAME(NAME, name, number, family, negative, constant, direction, bump) #name,
static const char *const MODES[] = {SN_MODES(NAME)};
static const char *const OVERFLOWS[] = {"", "infinity", "saturate", "saturate_finite", "wrap", "", "p3109_v3_2_1"};

int pg_answer_operations(const pg_request *r) {
    int32_t operands;
    const char *name;
    (void)r;
    pg_put("{");
    for (size_t i = 0; (name = softnum_operation_name(i, &operands)); i++)
        pg_put("%s\"%s\":%d", i ? "," : "", name, (int)operands);
    pg_put("}");
    return 1;
}

static int operands_of(const char *wanted) {
    int32_t operands;
    const char *name;
    for (size_t i = 0; (name = softnum_operation_name(i, &operands)); i++)
        if (!strcmp(name, wanted)) return (int)operands;
    return pg_fail("unknown operation '%.40s'", wanted);
}

static sn_u64 mask_of(const sn_format *f) { return f->magnitude_mask | f->sign_mask; }

/* Codes at the ends of what a format has: zeros, ones, the least and the largest, infinities, NaNs. */
static size_t edges_of(const sn_format *f, sn_u64 *codes) {
    const sn_u64 hidden = f->kind == SN_FLOAT ? (sn_u64)1 << f->mantissa_bits : 1;
    const sn_env env = {SN_NEAREST_EVEN, SN_OVERFLOW_SATURATE, SN_TININESS_AFTER, 32, 0, 0, SN_NAN_CANONICAL, 0};
    const pg_number one = {SN_FINITE, {{0, 1}, 0, 0, 0, 0}};
    sn_u32 flags = 0;
    const sn_u64 unit = pg_round(f, &env, &one, 0, &flags);
    const sn_u64 magnitudes[] = {0,        1,        hidden - 1,  hidden,          hidden + 1,  unit,
                                 unit + 1, unit - 1, f->max_code, f->max_code - 1, f->inf_code, f->nan_code};
    size_t n = 0;
    for (size_t i = 0; i < sizeof magnitudes / sizeof magnitudes[0]; i++) {
        codes[n++] = magnitudes[i] & mask_of(f);
        codes[n++] = (magnitudes[i] ^ f->sign_mask) & mask_of(f);
    }
    return n;
}

typedef struct {
    const softnum_format *in, *out;
    const softnum_operation *operation;
    int operands;
    sn_u64 seed, count;
    int exhaustive;
} plan;

/* Operand j of vector i: all codes in order; or an edge, half of the time, else any code. */
static sn_u64 operand_of(const plan *p, const sn_u64 *edges, size_t n, sn_u64 i, int j) {
    const sn_format *f = &p->in->core;
    sn_u32 w[4];
    if (p->exhaustive) return i >> (f->bits * (p->operands - 1 - j)) & mask_of(f);
    softnum_random_words(p->seed, (sn_u64)j, 4 * i, w, 4);
    if (w[0] & 1) return edges[w[1] % n];
    return ((sn_u64)w[2] << 32 | w[3]) & mask_of(f);
}

static int put_vectors(const plan *p) {
    static sn_u64 in[3][BLOCK], out[BLOCK];
    static sn_u8 flags[BLOCK];
    const void *arrays[] = {in[0], in[1], in[2]};
    const int digits = (int)(p->in->core.bits + 3) / 4, result = (int)(p->out->core.bits + 3) / 4;
    sn_u64 edges[EDGES];
    softnum_why why = {""};
    const size_t n = edges_of(&p->in->core, edges);
    for (sn_u64 i = 0; i < p->count; i += BLOCK) {
        const size_t take = p->count - i < BLOCK ? (size_t)(p->count - i) : BLOCK;
        for (int j = 0; j < p->operands; j++)
            for (size_t k = 0; k < take; k++)
                sn_store_code((char *)in[j] + k * p->in->bytes, (int)p->in->bytes, operand_of(p, edges, n, i + k, j));
        const softnum_status s = softnum_operate(p->operation, arrays, out, flags, take, NULL, &why);
        if (s != SOFTNUM_OK && s != SOFTNUM_NO_CODE) return pg_fail("%s", why.text);
        for (size_t k = 0; k < take; k++) {
            for (int j = 0; j < p->operands; j++)
                pg_put("%0*llX ", digits,
                       (unsigned long long)sn_load_code((char *)in[j] + k * p->in->bytes, (int)p->in->bytes));
            pg_put("%0*llX %02X\n", result,
                   (unsigned long long)sn_load_code((char *)out + k * p->out->bytes, (int)p->out->bytes),
                   (unsigned)flags[k] & 31);
        }
    }
    return 1;
}

static void put_header(const plan *p, const char *name, const softnum_rules *rules, const sn_env *env) {
    pg_put("# softnum vectors 1\n# op: %s\n# format: %s\n# result_format: %s\n", name, p->in->name, p->out->name);
    pg_put("# rounding: %s\n# overflow: %s\n# tininess: %s\n# nan: canonical\n# flush: none\n# columns:",
           MODES[rules->rounding], OVERFLOWS[env->overflow + 1], rules->tiny_before ? "before" : "after");
    for (int j = 0; j < p->operands; j++)
        pg_put(" %c:%d", "abc"[j], (int)p->in->core.bits);
    pg_put(" result:%d flags:5\n# method: %s\n# vectors: %llu\n# seed: %llu\n# version: %s\n", (int)p->out->core.bits,
           p->exhaustive ? "exhaustive" : "edges and random", (unsigned long long)p->count, (unsigned long long)p->seed,
           SOFTNUM_VERSION);
}

int pg_answer_vectors(const pg_request *r) {
    plan p = {pg_format(r->line[2]), pg_format(*r->line[3] ? r->line[3] : r->line[2]), NULL, 0, 0, 0, 0};
    softnum_rules rules;
    softnum_why why = {""};
    softnum_operation *operation = NULL;
    sn_env env;
    long long count, seed;
    if (!p.in || !p.out || !(p.operands = operands_of(r->line[1])) || !pg_rules(r->line[4], &rules) ||
        !pg_integer("how many", r->line[5], 0, MOST_VECTORS, &count) ||
        !pg_integer("seed", r->line[6], 0, 1LL << 53, &seed))
        return 0;
    if (rules.rounding >= SOFTNUM_STOCHASTIC)
        return pg_fail("stochastic modes take a column of random bits: softnum vectors generate writes it");
    const softnum_format *formats[] = {p.in, p.in, p.in};
    if (softnum_fill_env("vectors", &rules, p.out, 0, &env, &why) != SOFTNUM_OK ||
        softnum_operation_new(r->line[1], formats, p.out, &rules, &operation, &why) != SOFTNUM_OK)
        return pg_fail("%s", why.text);
    p.operation = operation;
    p.seed = (sn_u64)seed;
    p.exhaustive = !count;
    p.count = (sn_u64)count;
    int done = 1;
    if (!count && p.in->core.bits * p.operands > 16)
        done = pg_fail("all combinations of %d operands of %d bits are more than %d: say how many", p.operands,
                       (int)p.in->core.bits, MOST_VECTORS);
    if (done && !count) p.count = (sn_u64)1 << (p.in->core.bits * p.operands);
    if (done) put_header(&p, r->line[1], &rules, &env);
    done = done && put_vectors(&p);
    softnum_operation_free(operation);
    return done;
}

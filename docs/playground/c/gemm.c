/* The lab of errors: a product of drawn matrices under a unit, against the exact sums, as a histogram. */
#include "playground.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "softnum/operations/suits.h"

enum { LEAST = -64, MOST = 8, PRODUCTS = 1 << 23 };

typedef struct {
    const softnum_unit *u;
    size_t m, n, k;
    void *a, *b, *out;
    double *drawn, *exact, *got;
} job;

/* Numbers of a distribution as codes of an operand's format, to the nearest; 0 if one has no code. */
static int draw(const softnum_format *f, int distribution, sn_u64 seed, sn_u64 stream, size_t n, double *x,
                void *codes) {
    sn_env env = {SN_NEAREST_EVEN, SN_OVERFLOW_INFINITY, SN_TININESS_AFTER, 32, 0, 0, SN_NAN_CANONICAL, 0};
    sn_u32 flags = 0;
    env.overflow = sn_default_overflow(&f->core);
    pg_fill(distribution, seed, stream, x, n);
    for (size_t i = 0; i < n; i++) {
        sn_u64 bits;
        memcpy(&bits, &x[i], sizeof bits);
        sn_store_code((char *)codes + i * f->bytes, (int)f->bytes,
                      sn_convert(&sn_binary64, bits, &f->core, &env, 0, &flags));
    }
    return !(flags & SN_NO_CODE);
}

/* The product under a unit, its codes as values; the unit's result is no wider than binary64. */
static int multiply(const job *j, const softnum_unit *u, double *values) {
    softnum_why why = {""};
    softnum_product p = SOFTNUM_PRODUCT_INIT(j->m, j->n, j->k);
    p.a = j->a;
    p.b = j->b;
    p.out = j->out;
    if (softnum_gemm(u, &p, &why) != SOFTNUM_OK ||
        softnum_decode_f64(&u->result, j->out, values, j->m * j->n, &why) != SOFTNUM_OK)
        return pg_fail("%s", why.text);
    return 1;
}

static int multiply_exactly(const job *j) {
    softnum_unit_facts facts = SOFTNUM_UNIT_INIT(SOFTNUM_UNIT_EXACT);
    softnum_why why = {""};
    softnum_unit *exact = NULL;
    facts.a = &j->u->a;
    facts.b = &j->u->b;
    facts.accumulator = pg_format("binary64");
    if (softnum_unit_new(&facts, &exact, &why) != SOFTNUM_OK) return pg_fail("%s", why.text);
    const int done = multiply(j, exact, j->exact);
    softnum_unit_free(exact);
    return done;
}

static void put_errors(const job *j) {
    size_t bins[MOST - LEAST + 1] = {0}, none = 0, special = 0, counted = 0, most = 0;
    double sum = 0, bias = 0, largest = 0;
    int least = MOST, last = LEAST;
    for (size_t i = 0; i < j->m * j->n; i++) {
        const double e = j->exact[i], error = (j->got[i] - e) / fabs(e);
        if (j->got[i] == e) {
            none++;
            counted++;
        } else if (!isfinite(error)) {
            special++;
        } else {
            int exponent;
            frexp(fabs(error), &exponent); /* 2^(exponent - 1) <= error < 2^exponent */
            const int bin = exponent - 1 < LEAST ? LEAST : exponent - 1 > MOST ? MOST : exponent - 1;
            bins[bin - LEAST]++;
            counted++;
            sum += fabs(error);
            bias += error;
            if (fabs(error) > largest) largest = fabs(error);
        }
    }
    for (int bin = LEAST; bin <= MOST; bin++) {
        const size_t count = bins[bin - LEAST];
        if (count && bin < least) least = bin;
        if (count) last = bin;
        if (count > most) most = count;
    }
    pg_put("{\"results\":%zu,\"exact\":%zu,\"special\":%zu", j->m * j->n, none, special);
    if (counted)
        pg_put(",\"mean\":\"%.17g\",\"bias\":\"%.17g\",\"largest\":\"%.17g\",\"short\":[\"%.3g\",\"%.3g\",\"%.3g\"]",
               sum / (double)counted, bias / (double)counted, largest, sum / (double)counted, bias / (double)counted,
               largest);
    pg_put(",\"bins\":[");
    for (int bin = least; bin <= last; bin++)
        pg_put("%s{\"exponent\":%d,\"count\":%zu,\"height\":%.6f}", bin > least ? "," : "", bin, bins[bin - LEAST],
               (double)bins[bin - LEAST] / (double)most);
    pg_put("]}");
}

int pg_answer_gemm(const pg_request *r) {
    job j = {pg_unit(r->line[1]), 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL};
    long long m, n, k, seed;
    if (!j.u || !pg_integer("rows", r->line[2], 1, 512, &m) || !pg_integer("columns", r->line[3], 1, 512, &n) ||
        !pg_integer("products of a sum", r->line[4], 1, 65536, &k) ||
        !pg_integer("seed", r->line[6], 0, 1LL << 53, &seed))
        return 0;
    const int distribution = pg_distribution(r->line[5]);
    if (distribution < 0) return 0;
    if (m * n * k > PRODUCTS)
        return pg_fail("%lld x %lld x %lld is more than %d products: take fewer rows, columns or products of a sum", m,
                       k, n, (int)PRODUCTS);
    j.m = (size_t)m;
    j.n = (size_t)n;
    j.k = (size_t)k;
    const size_t results = j.m * j.n, operands = j.m > j.n ? j.m * j.k : j.n * j.k;
    j.a = malloc(j.m * j.k * j.u->a.bytes);
    j.b = malloc(j.k * j.n * j.u->b.bytes);
    j.out = malloc(results * 8);
    j.drawn = malloc(operands * sizeof(double));
    j.exact = malloc(results * sizeof(double));
    j.got = malloc(results * sizeof(double));
    int done = j.a && j.b && j.out && j.drawn && j.exact && j.got;
    if (!done) pg_fail("no memory for these matrices: take smaller ones");
    if (done && !(draw(&j.u->a, distribution, (sn_u64)seed, 0, j.m * j.k, j.drawn, j.a) &&
                  draw(&j.u->b, distribution, (sn_u64)seed, 1, j.k * j.n, j.drawn, j.b)))
        done = pg_fail("a number that was drawn has no code in %s or %s", j.u->a.name, j.u->b.name);
    done = done && multiply(&j, j.u, j.got) && multiply_exactly(&j);
    if (done) put_errors(&j);
    free(j.a);
    free(j.b);
    free(j.out);
    free(j.drawn);
    free(j.exact);
    free(j.got);
    return done;
}

/* The definition of MadUnit, with lanes, reductions, chunks and compensation, against a plain loop over single
 * operations: an element at a time, in the order that softnum.MadUnit's documentation states. */
#include "products.h"
#include "products/gemm/gemm.h"

enum { HIGHEST = 9, LARGEST = 24, DEEPEST = 24, MOST_LANES = 40 };

static sn_env take_env(fuzz_input *in, const sn_format *f, int rounding, int r) {
    sn_env env = fuzz_plain_env(rounding);
    const int rule = fuzz_choose(in, 6);
    env.overflow = fuzz_overflow(f, rule % 3, rule > 2);
    if (sn_is_stochastic(&env)) env.stochastic_bits = r;
    return env;
}

static sn_mad_unit take_unit(fuzz_input *in) {
    sn_mad_unit d;
    memset(&d, 0, sizeof d);
    const int shape = fuzz_choose(in, 256), more = fuzz_choose(in, 256), r = 1 + fuzz_choose(in, 32);
    d.operand_a = fuzz_take_format(in, shape & 1 ? 16 : 64);
    d.operand_b = shape & 2 ? d.operand_a : fuzz_take_format(in, 16);
    d.accumulator = fuzz_take_sum(in, 64, 15);
    d.fused = !(shape & 4);
    d.product = shape & 8 ? d.accumulator : fuzz_take_sum(in, 64, 15);
    d.chunk = shape & 16 ? 1 + fuzz_choose(in, 9) : 0;
    d.outer = d.chunk && (shape & 32) ? fuzz_take_sum(in, 64, 15) : d.accumulator;
    d.compensated = (shape & 0xc0) == 0xc0;
    d.lanes = more & 1 ? 1 : 1 + fuzz_choose(in, more & 2 ? 4 : MOST_LANES);
    d.reduction = (more >> 2) % 3;
    const int modes = d.compensated ? SN_STOCHASTIC : SN_ROUNDING_MODES;
    const int sum_mode = more & 0x40 ? fuzz_choose(in, modes) : SN_NEAREST_EVEN;
    const int product_mode = more & 0x80 ? fuzz_choose(in, SN_ROUNDING_MODES) : sum_mode;
    d.product_env = take_env(in, &d.product, product_mode, r);
    d.sum_env = take_env(in, &d.accumulator, sum_mode, r);
    d.outer_env = take_env(in, &d.outer, sum_mode, r);
    d.two_roundings = !d.fused && sn_is_stochastic(&d.product_env) && sn_is_stochastic(&d.sum_env);
    const sn_u64 seed = fuzz_take(in, 2);
    memcpy(d.key, sn_philox_key(seed, 0, SN_DOMAIN_MATMUL).w, sizeof d.key);
    memcpy(d.key2, sn_philox_key(seed, 0, SN_DOMAIN_MATMUL_SECOND).w, sizeof d.key2);
    d.batch = (sn_u32)fuzz_choose(in, 3);
    return d;
}

/* ---- the plain loop ---------------------------------------------------------------------------------------------- */

typedef struct {
    const sn_mad_unit *d;
    const fuzz_product *p;
    size_t row, column, step; /* step: of the next addition of lanes or chunks */
    sn_u32 flags[3];          /* product, sum, outer sum */
} plain;

enum { PRODUCT, SUM };

/* What softnum promises of random words: word k mod 4 of counter (k div 4, n, m, batch); where product and sum are both
 * random, the product has the low bits and the sum those from 16 on, or a word of the second key. */
static sn_u32 word_of(const plain *x, size_t step, int which) {
    const sn_mad_unit *d = x->d;
    if (x->p->words) return x->p->words[((x->row * x->p->n + x->column) * x->p->steps + step) * 2 + (size_t)which];
    const int second = which == SUM && d->two_roundings, long_words = d->sum_env.stochastic_bits > 16;
    const sn_u32 *key = second && long_words ? d->key2 : d->key;
    const sn_u32 word =
        sn_philox((sn_u32)(step / 4), (sn_u32)x->column, (sn_u32)x->row, d->batch, key[0], key[1]).w[step % 4];
    return second && !long_words ? word >> 16 : word;
}

/* A number's negation, exact in a format with a bit more. */
static sn_u64 negated(const sn_format *f, sn_u64 code, sn_format *wider) {
    const sn_env env = fuzz_plain_env(SN_TOWARD_ZERO);
    sn_u32 flags = 0;
    if (fuzz_is_fixed(f)) {
        *wider = fuzz_fixed(f->bits + 1 - f->mantissa_bits, f->mantissa_bits, 1);
        return sn_subtract(f, 0, f, code, wider, &env, 0, &flags);
    }
    *wider = fuzz_float(15, f->mantissa_bits ? f->mantissa_bits : 1, 1 - f->emin);
    const sn_u64 same = sn_convert(f, code, wider, &env, 0, &flags);
    FUZZ_EXPECT(NULL, !(flags & SN_INEXACT));
    return same ^ wider->sign_mask;
}

/* Whether it is, within 64 bits. */
static int negates(const sn_format *f) {
    return fuzz_is_fixed(f) ? f->bits < 64 : f->mantissa_bits <= 48 && f->emax - f->emin < 32000;
}

typedef struct {
    sn_u64 sum, error;
} running;

/* A product (a code of f, or the factors' a * b if that is null) into a running sum of format o. */
static void accumulate(plain *x, running *s, const sn_format *f, sn_u64 a, sn_u64 b, const sn_format *o,
                       const sn_env *env, sn_u32 word, sn_u32 *flags) {
    const sn_mad_unit *d = x->d;
    const sn_format *fa = &d->operand_a, *fb = &d->operand_b;
    if (!d->compensated) {
        s->sum =
            f ? sn_add(f, a, o, s->sum, o, env, word, flags) : sn_fma(fa, a, fb, b, o, s->sum, o, env, word, flags);
        return;
    }
    sn_u64 y;
    if (f) {
        y = sn_subtract(f, a, o, s->error, o, env, 0, flags);
    } else {
        sn_format wider;
        const sn_u64 minus = negated(o, s->error, &wider);
        y = sn_fma(fa, a, fb, b, &wider, minus, o, env, 0, flags);
    }
    const sn_u64 t = sn_add(o, s->sum, o, y, o, env, 0, flags);
    const sn_u64 moved = sn_subtract(o, t, o, s->sum, o, env, 0, flags);
    s->error = sn_subtract(o, moved, o, y, o, env, 0, flags);
    s->sum = t;
}

static void step(plain *x, running *s, size_t k) {
    const sn_mad_unit *d = x->d;
    const sn_u64 a = x->p->a[x->row * x->p->k + k], b = x->p->b[k * x->p->n + x->column];
    const sn_u32 word = word_of(x, k, SUM);
    if (d->fused) {
        accumulate(x, s, NULL, a, b, &d->accumulator, &d->sum_env, word, &x->flags[1]);
        return;
    }
    const sn_u64 product = sn_multiply(&d->operand_a, a, &d->operand_b, b, &d->product, &d->product_env,
                                       word_of(x, k, PRODUCT), &x->flags[0]);
    accumulate(x, s, &d->product, product, 0, &d->accumulator, &d->sum_env, word, &x->flags[1]);
}

static sn_u64 plus(plain *x, sn_u64 a, sn_u64 b) {
    const sn_format *f = &x->d->accumulator;
    return sn_add(f, a, f, b, f, &x->d->sum_env, word_of(x, x->step++, SUM), &x->flags[1]);
}

static sn_u64 pairwise(plain *x, const sn_u64 *v, size_t n) { /* NOLINT(misc-no-recursion) */
    if (n == 1) return v[0];
    const sn_u64 left = pairwise(x, v, n - n / 2), right = pairwise(x, v + n - n / 2, n / 2);
    return plus(x, left, right);
}

static sn_u64 reduced(plain *x, sn_u64 *v, size_t n) {
    if (x->d->reduction == SN_REDUCTION_PAIRWISE) return pairwise(x, v, n);
    if (x->d->reduction == SN_REDUCTION_TREE) {
        while (n > 1) {
            for (size_t i = 0; i < n / 2; i++)
                v[i] = plus(x, v[2 * i], v[2 * i + 1]);
            if (n % 2) v[n / 2] = v[n - 1];
            n = n / 2 + n % 2;
        }
        return v[0];
    }
    sn_u64 sum = v[0];
    for (size_t i = 1; i < n; i++)
        sum = plus(x, sum, v[i]);
    return sum;
}

/* The sum of the products from k0 on, in lanes, the first of which starts from `start`. */
static sn_u64 sum_of(plain *x, size_t k0, size_t k1, sn_u64 start, const sn_u64 *c) {
    const size_t lanes = (size_t)x->d->lanes;
    running lane[MOST_LANES] = {{0, 0}};
    sn_u64 v[MOST_LANES + 1];
    size_t n = 0;
    lane[0].sum = start;
    for (size_t k = k0; k < k1; k++)
        step(x, &lane[(k - k0) % lanes], k);
    if (c) v[n++] = *c;
    for (size_t i = 0; i < lanes; i++)
        v[n++] = lane[i].sum;
    return reduced(x, v, n);
}

static sn_u64 element(plain *x) {
    const sn_mad_unit *d = x->d;
    const size_t k = x->p->k, chunk = (size_t)d->chunk;
    const sn_u64 *c = x->p->c ? &x->p->c[x->row * x->p->n + x->column] : NULL;
    const sn_u64 start = c ? *c : 0;
    x->step = k;
    if (k == 0) return start;
    if (!chunk) return d->lanes == 1 ? sum_of(x, 0, k, start, NULL) : sum_of(x, 0, k, 0, c);
    running outer = {start, 0};
    for (size_t k0 = 0; k0 < k; k0 += chunk) {
        const sn_u64 part = sum_of(x, k0, k - k0 < chunk ? k : k0 + chunk, 0, NULL);
        accumulate(x, &outer, &d->accumulator, part, 0, &d->outer, &d->outer_env, word_of(x, x->step++, SUM),
                   &x->flags[2]);
    }
    return outer.sum;
}

/* ---- the check --------------------------------------------------------------------------------------------------- */

static sn_u32 define(const void *unit, const sn_product_codes *g) { return sn_gemm_definition(unit, g); }

void fuzz_mad(fuzz_input *in) {
    const sn_mad_unit d = take_unit(in);
    if (d.compensated && d.fused && !negates(&d.accumulator)) return;
    fuzz_product p = {.fa = &d.operand_a, .fb = &d.operand_b, .fc = &d.outer, .fo = &d.outer};
    fuzz_take_product(in, &p, HIGHEST, LARGEST, DEEPEST, 0);
    const int random = sn_is_stochastic(&d.sum_env) || (!d.fused && sn_is_stochastic(&d.product_env));
    const size_t chunks = d.chunk ? (p.k + (size_t)d.chunk - 1) / (size_t)d.chunk : 1, lanes = (size_t)d.lanes;
    const size_t additions = d.chunk ? chunks * lanes : lanes - 1 + (lanes > 1 && p.c);
    if (random && p.k && fuzz_choose(in, 2)) fuzz_take_words(in, &p, p.k + additions);
    const sn_u32 lost = fuzz_define(&p, define, &d);
    plain x = {&d, &p, 0, 0, 0, {0, 0, 0}};
    const fuzz_trial t = fuzz_trial_of(&p, &d.sum_env);
    for (x.row = 0; x.row < p.m; x.row++)
        for (x.column = 0; x.column < p.n; x.column++) {
            const sn_u64 want = element(&x), got = p.out[x.row * p.n + x.column];
            if (p.k) FUZZ_EXPECT(&t, x.step == p.k + additions);
            if (got == want) continue;
            fprintf(
                stderr,
                "fused %d, chunk %lld, %d lanes, reduction %d, compensated %d, modes %d %d, words %d, c %d: element "
                "(%zu, %zu) of %zu x %zu, k %zu, is %llx, not %llx\n",
                d.fused, (long long)d.chunk, d.lanes, d.reduction, d.compensated, d.product_env.rounding,
                d.sum_env.rounding, p.words != NULL, p.c != NULL, x.row, x.column, p.m, p.n, p.k,
                (unsigned long long)got, (unsigned long long)want);
            fuzz_fail(__FILE__, __LINE__, &t, "the definition is the plain loop");
        }
    sn_u32 want_lost = 0;
    for (int i = 0; i < 3; i++)
        want_lost |= (sn_u32)((x.flags[i] & SN_NO_CODE) != 0) << i;
    FUZZ_EXPECT(&t, lost == want_lost);
    fuzz_free_product(&p);
}

/* GEMM on carriers, on every instruction set, against the definition on codes. The units are those that softnum.plan
 * sends to the fast paths: what follows says their domains a second time, condition by condition. */
#include "products/gemm/gemm.h"
#include "products.h"

enum { HIGHEST = 9, LARGEST = 70, DEEPEST = 20 };

static int is_wrap(const sn_env *env) { return env->overflow == SN_OVERFLOW_WRAP; }

static float as_float(const sn_format *f, sn_u64 code) {
    const sn_u32 bits = (sn_u32)fuzz_to_carrier(f, code, 32);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static int larger(int a, int b) { return a > b ? a : b; }
static int smaller(int a, int b) { return a < b ? a : b; }

static int rounds_here(const sn_format *f, const sn_env *env, int specials) {
    if (fuzz_is_fixed(f)) return !is_wrap(env) && !specials;
    if (!f->is_signed || f->lowest != SN_LOWEST_SUBNORMAL || f->mantissa_bits < 1) return 0;
    if (env->overflow == SN_OVERFLOW_SATURATE_FINITE && f->has_inf) return 0;
    return f->has_nan || !(specials || f->has_inf);
}

static float power_of_two(int e) {
    const sn_u32 bits = (sn_u32)(e + 127) << 23;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static int round32_of(const sn_format *f, const sn_env *env, fuzz_facts addend, int biggest_sum, sn_round32 *r) {
    if (env->rounding != SN_NEAREST_EVEN || !rounds_here(f, env, addend.specials)) return 0;
    memset(r, 0, sizeof *r);
    const int m = f->mantissa_bits;
    if (fuzz_is_fixed(f)) {
        if (biggest_sum + 1 + m > 22 || biggest_sum + 1 - smaller(addend.last, -m) > 24) return 0;
        if (23 - m < -126 || 23 - m > 127) return 0;
        r->emin = r->emax = 127u << 23;
        r->scale = 1.5f * power_of_two(23 - m);
    } else {
        if (f->emax + 24 - m > 127 || f->emin < -126 || !fuzz_fits(f, 32)) return 0;
        r->emin = (sn_u32)(f->emin + 127) << 23;
        r->emax = (sn_u32)(f->emax + 128) << 23;
        r->mantissa_bits = m;
        r->scale = 1.5f * power_of_two(23 - m);
        r->bound = as_float(f, f->max_code);
        r->sign_of_zero = f->negative_zero ? 0x80000000u : 0;
    }
    for (int sign = 0; sign < 2; sign++) {
        sn_u32 flags = 0;
        const sn_u64 lowest = fuzz_is_fixed(f) ? f->sign_mask : f->max_code | f->sign_mask;
        const float end = as_float(f, sign ? lowest : f->max_code);
        r->limit[sign] = sign ? -end : end;
        r->overflow[sign] = fuzz_is_fixed(f) ? end : as_float(f, sn_overflowed(f, env, sign, &flags));
    }
    return 1;
}

static int round64_of(const sn_format *f, const sn_env *env, int specials, sn_rounding *r) {
    if ((env->rounding != SN_NEAREST_EVEN && env->rounding != SN_STOCHASTIC) || !rounds_here(f, env, specials))
        return 0;
    const int m = fuzz_is_fixed(f) ? f->bits : f->mantissa_bits;
    if (m + 1 + (env->rounding == SN_STOCHASTIC ? env->stochastic_bits : 2) > 52 || !fuzz_fits(f, 64)) return 0;
    if (!fuzz_is_fixed(f) && (f->emax > 1000 || f->emin < -1022)) return 0;
    FUZZ_EXPECT(NULL, sn_rounding_prepare(f, env, 64, r));
    return 1;
}

/* Patterns that hold `extra` bits more than the format, rounded by integer arithmetic. */
static int patterns32_of(const sn_format *f, const sn_env *env, int specials, int extra, sn_rounding *r) {
    if (!rounds_here(f, env, specials) || !fuzz_fits(f, 32)) return 0;
    if (fuzz_is_fixed(f)) {
        if (f->bits + 1 + extra > 24 || f->mantissa_bits > 147 - extra || f->bits - f->mantissa_bits > 127) return 0;
    } else if (f->mantissa_bits + 1 + extra > 24 || f->emin < -126 || f->emin - f->mantissa_bits < -149 + extra) {
        return 0;
    }
    FUZZ_EXPECT(NULL, sn_rounding_prepare(f, env, 32, r));
    return 1;
}

static void bound32_of(const sn_format *f, int places, sn_round32 *r) {
    memset(r, 0, sizeof *r);
    const float most = as_float(f, f->max_code);
    r->emin = (sn_u32)(f->emin + 127) << 23;
    r->sign_of_zero = f->negative_zero ? 0x80000000u : 0;
    r->mantissa_bits = f->mantissa_bits;
    r->scale = 1.5f * power_of_two(23 - f->mantissa_bits - places);
    r->bound = most < power_of_two(103 + f->mantissa_bits) ? most : power_of_two(103 + f->mantissa_bits);
}

static int odd_of(const sn_mad_unit *d, fuzz_facts product, fuzz_facts addend, sn_gemm_unit *u) {
    if (!fuzz_fits(&d->operand_a, 32) || !fuzz_fits(&d->operand_b, 32)) return 0;
    if (sn_is_stochastic(&d->sum_env) || (!d->fused && sn_is_stochastic(&d->product_env))) return 0;
    if (!d->fused && !patterns32_of(&d->product, &d->product_env, product.specials, 2, &u->product64)) return 0;
    const fuzz_facts sum = fuzz_facts_of(&d->accumulator);
    if (!patterns32_of(&d->accumulator, &d->sum_env, addend.specials, 2, &u->sum64)) return 0;
    if (!patterns32_of(&d->outer, &d->outer_env, sum.specials, 2, &u->outer64)) return 0;
    u->path = SN_PATH_ODD;
    u->product = d->fused ? SN_PRODUCT_EXACT : SN_PRODUCT_NEAREST;
    if (d->fused && d->sum_env.rounding == SN_NEAREST_EVEN && !fuzz_is_fixed(&d->accumulator) &&
        !fuzz_is_fixed(&d->outer)) {
        bound32_of(&d->accumulator, 0, &u->sum32);
        bound32_of(&d->outer, 0, &u->outer32);
    }
    return 1;
}

static int stochastic_of(const sn_mad_unit *d, fuzz_facts product, fuzz_facts addend, sn_gemm_unit *u) {
    const fuzz_facts sum = fuzz_facts_of(&d->accumulator), outer = fuzz_facts_of(&d->outer);
    const int r = d->sum_env.stochastic_bits;
    if (!fuzz_fits(&d->operand_a, 32) || !fuzz_fits(&d->operand_b, 32) || d->sum_env.rounding != SN_STOCHASTIC)
        return 0;
    if (product.precision > 24 || product.last < -149 || product.top > 126) return 0;
    if (fuzz_is_fixed(&d->accumulator) || fuzz_is_fixed(&d->outer) || (!d->fused && fuzz_is_fixed(&d->product)))
        return 0;
    if (!d->fused && (d->product_env.rounding != SN_STOCHASTIC || r > 16 || d->product.mantissa_bits + r > 20))
        return 0;
    if (!d->fused && !patterns32_of(&d->product, &d->product_env, product.specials, r, &u->product64)) return 0;
    if (!patterns32_of(&d->accumulator, &d->sum_env, addend.specials, r, &u->sum64)) return 0;
    if (!patterns32_of(&d->outer, &d->outer_env, sum.specials, r, &u->outer64)) return 0;
    if (larger(larger(sum.top, outer.top), addend.top) + 1 > 126) return 0;
    u->path = SN_PATH_STOCHASTIC;
    u->product = d->fused ? SN_PRODUCT_EXACT : SN_PRODUCT_STOCHASTIC;
    u->two_roundings = !d->fused;
    u->exact_below = addend.last >= sum.last && sum.last >= outer.last;
    if (!d->fused) bound32_of(&d->product, r, &u->product32);
    bound32_of(&d->accumulator, 0, &u->sum32);
    bound32_of(&d->outer, 0, &u->outer32);
    return 1;
}

static int has_bound(const sn_format *f) {
    return !fuzz_is_fixed(f) && f->emin >= -126 && f->emax <= 127 && f->mantissa_bits <= 23;
}

/* Sums and products in binary64 that one addition rounds, where none overflows. */
static void bare64_of(const sn_mad_unit *d, fuzz_facts product, fuzz_facts addend, sn_gemm_unit *u) {
    const fuzz_facts sum = fuzz_facts_of(&d->accumulator), outer = fuzz_facts_of(&d->outer);
    if (d->sum_env.rounding != SN_STOCHASTIC || u->product == SN_PRODUCT_NEAREST || product.last < -1000) return;
    if (!has_bound(&d->accumulator) || !has_bound(&d->outer) || (!d->fused && !has_bound(&d->product))) return;
    if (!d->fused && d->product.mantissa_bits + d->sum_env.stochastic_bits > 49) return;
    if (addend.last < sum.last || sum.last < outer.last) return;
    u->exact_below = 1;
    if (!d->fused) bound32_of(&d->product, 0, &u->product32);
    bound32_of(&d->accumulator, 0, &u->sum32);
    bound32_of(&d->outer, 0, &u->outer32);
}

static int is_binary32(const sn_format *f, const sn_env *env) {
    const sn_format b = fuzz_carrier(32);
    return memcmp(f, &b, sizeof b) == 0 && env->rounding == SN_NEAREST_EVEN && env->overflow == SN_OVERFLOW_INFINITY;
}

/* The carrier's bits (32 or 64) of the unit's fast path, prepared in *u; 0 if it has none. */
static int plan(const sn_mad_unit *d, sn_gemm_unit *u) {
    const fuzz_facts a = fuzz_facts_of(&d->operand_a), b = fuzz_facts_of(&d->operand_b),
                     sum = fuzz_facts_of(&d->accumulator);
    const fuzz_facts product = {a.precision + b.precision, a.last + b.last, a.top + b.top + 1,
                                a.specials || b.specials};
    const fuzz_facts addend = d->fused ? product : fuzz_facts_of(&d->product);
    memset(u, 0, sizeof *u);
    u->chunk = d->chunk;
    const int narrow = fuzz_fits(&d->operand_a, 32) && fuzz_fits(&d->operand_b, 32);
    const int exact32 = product.precision <= 24 && product.last >= -149 && product.top <= 127;
    if (narrow && is_binary32(&d->accumulator, &d->sum_env) && is_binary32(&d->outer, &d->outer_env) &&
        (d->fused || is_binary32(&d->product, &d->product_env))) {
        u->path = SN_PATH_NATIVE;
        u->product = !d->fused ? SN_PRODUCT_NEAREST : exact32 ? SN_PRODUCT_EXACT : SN_PRODUCT_FUSED;
        return 32;
    }
    const int outer_top = larger(sum.top, fuzz_facts_of(&d->outer).top) + 1;
    if (narrow && exact32 &&
        (d->fused || round32_of(&d->product, &d->product_env, product, product.top, &u->product32)) &&
        round32_of(&d->accumulator, &d->sum_env, addend, larger(sum.top, addend.top) + 1, &u->sum32) &&
        round32_of(&d->outer, &d->outer_env, sum, outer_top, &u->outer32) &&
        (fuzz_is_fixed(&d->accumulator) || (addend.precision <= sum.precision && sum.precision <= 11)) &&
        (fuzz_is_fixed(&d->outer) ||
         (sum.precision <= d->outer.mantissa_bits + 1 && d->outer.mantissa_bits + 1 <= 11))) {
        const int fixed =
            fuzz_is_fixed(&d->accumulator) + fuzz_is_fixed(&d->outer) + (d->fused ? 0 : fuzz_is_fixed(&d->product));
        u->product = d->fused ? SN_PRODUCT_EXACT : SN_PRODUCT_NEAREST;
        u->path = fixed == 2 && d->fused ? SN_PATH_FIXED : fixed ? SN_PATH_MIXED : SN_PATH_MAGIC;
        u->exact_below = !fixed && addend.last >= sum.last && sum.last >= fuzz_facts_of(&d->outer).last &&
                         (d->fused || product.precision + d->product.mantissa_bits <= 22);
        return 32;
    }
    memset(&u->product32, 0, sizeof u->product32); /* what the conditions above left */
    memset(&u->sum32, 0, sizeof u->sum32);
    memset(&u->outer32, 0, sizeof u->outer32);
    if (odd_of(d, product, addend, u) || stochastic_of(d, product, addend, u)) return 32;
    if (!fuzz_fits(&d->operand_a, 64) || !fuzz_fits(&d->operand_b, 64)) return 0;
    if (product.precision > 53 || product.last < -1074 || product.top > 1000) return 0;
    if (!d->fused && !round64_of(&d->product, &d->product_env, product.specials, &u->product64)) return 0;
    if (!round64_of(&d->accumulator, &d->sum_env, addend.specials, &u->sum64)) return 0;
    if (!round64_of(&d->outer, &d->outer_env, sum.specials, &u->outer64)) return 0;
    u->product = d->fused                                   ? SN_PRODUCT_EXACT
                 : d->product_env.rounding == SN_STOCHASTIC ? SN_PRODUCT_STOCHASTIC
                                                            : SN_PRODUCT_NEAREST;
    u->two_roundings = u->product == SN_PRODUCT_STOCHASTIC && d->sum_env.rounding == SN_STOCHASTIC;
    u->path = SN_PATH_WIDE;
    bare64_of(d, product, addend, u);
    return 64;
}

static sn_env env_for(const sn_format *f, int rounding, int overflow, int stochastic_bits) {
    sn_env env = fuzz_plain_env(rounding);
    env.overflow = fuzz_is_fixed(f) ? (overflow ? overflow : SN_OVERFLOW_SATURATE) : overflow % 3;
    if (sn_is_stochastic(&env)) env.stochastic_bits = stochastic_bits;
    return env;
}

static sn_mad_unit take_unit(fuzz_input *in) {
    sn_mad_unit d;
    memset(&d, 0, sizeof d);
    const int shape = fuzz_choose(in, 256);
    d.operand_a = fuzz_take_format(in, shape & 1 ? 8 : 16);
    d.operand_b = shape & 2 ? d.operand_a : fuzz_take_format(in, 16);
    d.accumulator = fuzz_take_sum(in, 64, 15);
    d.fused = !(shape & 4);
    d.lanes = 1;
    d.product = shape & 8 ? d.accumulator : fuzz_take_sum(in, 64, 15);
    d.chunk = shape & 16 ? 1 + fuzz_choose(in, 9) : 0;
    d.outer = d.chunk && (shape & 32) ? fuzz_take_sum(in, 64, 15) : d.accumulator;
    const int more = fuzz_choose(in, 256), r = 1 + fuzz_choose(in, 32), overflow = more >> 2 & 3;
    const int plain = more & 16 ? (more >> 5) + 3 * (more & 4) / 4 : SN_NEAREST_EVEN; /* any of the first ten */
    const int sum_mode = more & 1            ? SN_STOCHASTIC
                         : plain > SN_TO_ODD ? SN_NEAREST_EVEN
                                             : plain,
              product_mode = more & 2 ? SN_STOCHASTIC : sum_mode;
    d.product_env = env_for(&d.product, product_mode, overflow, r);
    d.sum_env = env_for(&d.accumulator, sum_mode, overflow, r);
    d.outer_env = env_for(&d.outer, sum_mode, overflow, r);
    d.two_roundings = !d.fused && product_mode == SN_STOCHASTIC && sum_mode == SN_STOCHASTIC;
    const sn_u64 seed = fuzz_take(in, 2);
    memcpy(d.key, sn_philox_key(seed, 0, SN_DOMAIN_MATMUL).w, sizeof d.key);
    memcpy(d.key2, sn_philox_key(seed, 0, SN_DOMAIN_MATMUL_SECOND).w, sizeof d.key2);
    d.batch = (sn_u32)fuzz_choose(in, 3);
    return d;
}

static sn_u32 define(const void *unit, const sn_product_codes *g) { return sn_gemm_definition(unit, g); }

/* Part of the product on an instruction set. */
static void run(const fuzz_product *p, const sn_mad_unit *d, const sn_gemm_unit *u, int bits, fuzz_part part, int isa) {
    const fuzz_part rows = {part.m0, part.m1, 0, p->k}, columns = {0, p->k, part.n0, part.n1};
    const size_t n = part.n1 - part.n0, width = (n + SN_GEMM_LANES - 1) / SN_GEMM_LANES * SN_GEMM_LANES;
    const fuzz_block a = fuzz_values(p->fa, p->a, p->k, rows, p->k + p->gap, 0, bits);
    const fuzz_block b = fuzz_values(p->fb, p->b, p->n, columns, width + p->gap, width - n, bits);
    const fuzz_block out = fuzz_room(part.m0, part.m1 - part.m0, n, n + p->gap, 0, (size_t)bits / 8);
    fuzz_block c = {NULL, NULL, 0, 0, 0, 0};
    if (p->c) c = fuzz_values(p->fc, p->c, p->n, part, n + 2 * p->gap, 0, bits);
    sn_gemm_args g;
    memset(&g, 0, sizeof g);
    g.a = a.origin;
    g.b = b.origin;
    g.c = c.origin;
    g.out = out.origin;
    g.panel = fuzz_buffer(p->k * SN_PANEL, sizeof *g.panel);
    g.lda = (ptrdiff_t)a.ld;
    g.ldb = (ptrdiff_t)b.ld;
    g.ldc = (ptrdiff_t)c.ld;
    g.ldo = (ptrdiff_t)out.ld;
    g.m0 = (ptrdiff_t)part.m0;
    g.m1 = (ptrdiff_t)part.m1;
    g.n = (ptrdiff_t)n;
    g.k = (ptrdiff_t)p->k;
    g.n0 = (ptrdiff_t)part.n0;
    const sn_u64 saved = sn_fp_enter();
    (bits == 32 ? sn_gemm_kernels_for(isa)->gemm32 : sn_gemm_kernels_for(isa)->gemm64)(u, &g);
    sn_fp_leave(saved);
    const fuzz_trial t = fuzz_trial_of(p, &d->sum_env);
    char what[100];
    snprintf(what, sizeof what, "%s gemm%d, path %d, fused %d, chunk %lld, product mode %d", sn_kernels_for(isa)->name,
             bits, u->path, d->fused, (long long)d->chunk, d->product_env.rounding);
    fuzz_compare(p, part, &out, bits, what, &t);
    free(a.buffer);
    free(b.buffer);
    free(c.buffer);
    free(out.buffer);
    free(g.panel);
}

void fuzz_gemm(fuzz_input *in) {
    const sn_mad_unit d = take_unit(in);
    sn_gemm_unit u;
    const int bits = plan(&d, &u);
    if (!bits) return;
    memcpy(u.key, d.key, sizeof u.key);
    memcpy(u.key2, d.key2, sizeof u.key2);
    u.batch = d.batch;
    fuzz_product p = {.fa = &d.operand_a, .fb = &d.operand_b, .fc = &d.outer, .fo = &d.outer};
    fuzz_take_product(in, &p, HIGHEST, LARGEST, DEEPEST, 1);
    fuzz_define(&p, define, &d);
    for (int isa = 0; isa <= sn_detect_isa(); isa++)
        for (int which = 0; which < FUZZ_PARTS; which++) {
            const fuzz_part part = fuzz_part_of(&p, which);
            if (part.m0 < part.m1 && part.n0 < part.n1) run(&p, &d, &u, bits, part, isa);
        }
    fuzz_free_product(&p);
}

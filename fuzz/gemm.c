/* GEMM on carriers, on every instruction set, against the definition on codes, for the units that sn_gemm_path sends
 * there. */
#include "products/gemm/gemm.h"
#include "products.h"

enum { HIGHEST = 9, LARGEST = 70, DEEPEST = 20 };

static sn_env env_for(const sn_format *f, int rounding, int overflow, int stochastic_bits) {
    sn_env env = fuzz_plain_env(rounding);
    env.overflow =
        fuzz_is_fixed(f) ? (overflow ? overflow : SN_OVERFLOW_SATURATE) : fuzz_overflow(f, overflow % 3, overflow == 3);
    if (sn_is_stochastic(&env)) env.stochastic_bits = stochastic_bits;
    return env;
}

/* A unit of the CPU's own operations: lanes, and subnormals that become zeros. */
static void take_hardware(fuzz_input *in, sn_mad_unit *d) {
    const int how = fuzz_choose(in, 256);
    const sn_format f = fuzz_carrier(how & 1 ? 64 : 32);
    sn_env env = fuzz_plain_env(SN_NEAREST_EVEN);
    env.flush_inputs = how >> 1 & 1;
    env.flush_results = how >> 2 & 3;
    d->product = d->accumulator = d->outer = f;
    d->product_env = d->sum_env = d->outer_env = env;
    d->two_roundings = 0;
    if (how & 16) d->operand_a = fuzz_carrier(32);
    d->lanes = 1 + fuzz_choose(in, 6);
    d->reduction = how >> 5 & 3 ? (how >> 5 & 3) - 1 : SN_REDUCTION_TREE;
    if (how & 128) d->chunk = d->lanes;
}

/* Lanes, a compensation, and subnormals that become zeros, of any formats. */
static void take_order(fuzz_input *in, sn_mad_unit *d) {
    const int how = fuzz_choose(in, 256);
    sn_env *const envs[] = {&d->product_env, &d->sum_env, &d->outer_env};
    for (int i = 0; i < 3; i++) {
        envs[i]->flush_inputs = how & 1;
        envs[i]->flush_results = how >> 1 & 3;
    }
    d->compensated = (how >> 3 & 1) && !sn_is_stochastic(&d->sum_env);
    d->lanes = 1 + (how >> 4 & 3);
    d->reduction = how >> 6 & 3 ? (how >> 6 & 3) - 1 : SN_REDUCTION_TREE;
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
    const int special = fuzz_choose(in, 4);
    if (special == 0) take_hardware(in, &d);
    if (special == 1) take_order(in, &d);
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
    g.lda = (ptrdiff_t)a.ld;
    g.ldb = (ptrdiff_t)b.ld;
    g.ldc = (ptrdiff_t)c.ld;
    g.ldo = (ptrdiff_t)out.ld;
    g.m0 = (ptrdiff_t)part.m0;
    g.m1 = (ptrdiff_t)part.m1;
    g.n = (ptrdiff_t)n;
    g.k = (ptrdiff_t)p->k;
    g.n0 = (ptrdiff_t)part.n0;
    g.panel = fuzz_buffer(sn_gemm_room(u, &g, bits), 1);
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
    const int counting = fuzz_choose(in, 8) == 0; /* by the path that can count, without counting */
    const int bits = sn_gemm_path(&d, sn_facts_of(&d.operand_a), sn_facts_of(&d.operand_b), counting, &u);
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

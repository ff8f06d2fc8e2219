/* GEMM on carriers, on every instruction set, against the definition on codes. The units are those that softnum.plan
 * sends to the fast paths: what follows says their domains a second time, condition by condition. */
#include "gemm.h"
#include "fuzz.h"

enum { LARGEST = 70, DEEPEST = 20 };

static int is_wrap(const sn_env *env) { return env->overflow == SN_OVERFLOW_WRAP; }

static int is_fixed(const sn_format *f) { return f->kind == SN_FIXED; }

/* All values are integers of at most precision bits times a power of two, multiples of 2^last, below 2^(top + 1). */
typedef struct {
    int precision, last, top, specials;
} facts;

static facts facts_of(const sn_format *f) {
    if (is_fixed(f)) {
        const facts x = {f->bits, -f->mantissa_bits, f->bits - f->mantissa_bits - !f->is_signed, 0};
        return x;
    }
    const facts x = {f->mantissa_bits + 1, f->emin - f->mantissa_bits, f->emax, f->has_nan || f->has_inf};
    return x;
}

static int fits(const sn_format *f, int carrier_bits) {
    const facts x = facts_of(f);
    return carrier_bits == 32 ? x.precision <= 24 && x.last >= -149 && x.top <= 127
                              : x.precision <= 53 && x.last >= -1074 && x.top <= 1023;
}

static sn_format carrier_of(int bits) { return bits == 32 ? fuzz_float(8, 23, 127) : fuzz_float(11, 52, 1023); }

static sn_u64 to_carrier(const sn_format *f, sn_u64 code, int bits) {
    const sn_format carrier = carrier_of(bits);
    const sn_env env = fuzz_plain_env(SN_TOWARD_ZERO);
    sn_u32 flags = 0;
    return sn_convert(f, code, &carrier, &env, 0, &flags);
}

static float as_float(const sn_format *f, sn_u64 code) {
    const sn_u32 bits = (sn_u32)to_carrier(f, code, 32);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static int larger(int a, int b) { return a > b ? a : b; }
static int smaller(int a, int b) { return a < b ? a : b; }

static int rounds_here(const sn_format *f, const sn_env *env, int specials) {
    if (is_fixed(f)) return !is_wrap(env) && !specials;
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

static int round32_of(const sn_format *f, const sn_env *env, facts addend, int biggest_sum, sn_round32 *r) {
    if (env->rounding != SN_NEAREST_EVEN || !rounds_here(f, env, addend.specials)) return 0;
    memset(r, 0, sizeof *r);
    const int m = f->mantissa_bits;
    if (is_fixed(f)) {
        if (biggest_sum + 1 + m > 22 || biggest_sum + 1 - smaller(addend.last, -m) > 24) return 0;
        if (23 - m < -126 || 23 - m > 127) return 0;
        r->emin = r->emax = 127u << 23;
        r->scale = 1.5f * power_of_two(23 - m);
    } else {
        if (f->emax + 24 - m > 127 || f->emin < -126 || !fits(f, 32)) return 0;
        r->emin = (sn_u32)(f->emin + 127) << 23;
        r->emax = (sn_u32)(f->emax + 128) << 23;
        r->mantissa_bits = m;
        r->scale = 1.5f * power_of_two(23 - m);
        r->bound = as_float(f, f->max_code);
        r->sign_of_zero = f->negative_zero ? 0x80000000u : 0;
    }
    for (int sign = 0; sign < 2; sign++) {
        sn_u32 flags = 0;
        const sn_u64 lowest = is_fixed(f) ? f->sign_mask : f->max_code | f->sign_mask;
        const float end = as_float(f, sign ? lowest : f->max_code);
        r->limit[sign] = sign ? -end : end;
        r->overflow[sign] = is_fixed(f) ? end : as_float(f, sn_overflowed(f, env, sign, &flags));
    }
    return 1;
}

static int round64_of(const sn_format *f, const sn_env *env, int specials, sn_rounding *r) {
    if ((env->rounding != SN_NEAREST_EVEN && env->rounding != SN_STOCHASTIC) || !rounds_here(f, env, specials))
        return 0;
    const int m = is_fixed(f) ? f->bits : f->mantissa_bits;
    if (m + 1 + (env->rounding == SN_STOCHASTIC ? env->stochastic_bits : 2) > 52 || !fits(f, 64)) return 0;
    if (!is_fixed(f) && (f->emax > 1000 || f->emin < -1022)) return 0;
    FUZZ_EXPECT(NULL, sn_rounding_prepare(f, env, 64, r));
    return 1;
}

/* Patterns that hold `extra` bits more than the format, rounded by integer arithmetic. */
static int patterns32_of(const sn_format *f, const sn_env *env, int specials, int extra, sn_rounding *r) {
    if (!rounds_here(f, env, specials) || !fits(f, 32)) return 0;
    if (is_fixed(f)) {
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

static int odd_of(const sn_mad_unit *d, facts product, facts addend, sn_gemm_unit *u) {
    if (!fits(&d->operand_a, 32) || !fits(&d->operand_b, 32)) return 0;
    if (sn_is_stochastic(&d->sum_env) || (!d->fused && sn_is_stochastic(&d->product_env))) return 0;
    if (!d->fused && !patterns32_of(&d->product, &d->product_env, product.specials, 2, &u->product64)) return 0;
    const facts sum = facts_of(&d->accumulator);
    if (!patterns32_of(&d->accumulator, &d->sum_env, addend.specials, 2, &u->sum64)) return 0;
    if (!patterns32_of(&d->outer, &d->outer_env, sum.specials, 2, &u->outer64)) return 0;
    u->path = SN_PATH_ODD;
    u->product = d->fused ? SN_PRODUCT_EXACT : SN_PRODUCT_NEAREST;
    if (d->fused && d->sum_env.rounding == SN_NEAREST_EVEN && !is_fixed(&d->accumulator) && !is_fixed(&d->outer)) {
        bound32_of(&d->accumulator, 0, &u->sum32);
        bound32_of(&d->outer, 0, &u->outer32);
    }
    return 1;
}

static int stochastic_of(const sn_mad_unit *d, facts product, facts addend, sn_gemm_unit *u) {
    const facts sum = facts_of(&d->accumulator), outer = facts_of(&d->outer);
    const int r = d->sum_env.stochastic_bits;
    if (!fits(&d->operand_a, 32) || !fits(&d->operand_b, 32) || d->sum_env.rounding != SN_STOCHASTIC) return 0;
    if (product.precision > 24 || product.last < -149 || product.top > 126) return 0;
    if (is_fixed(&d->accumulator) || is_fixed(&d->outer) || (!d->fused && is_fixed(&d->product))) return 0;
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

static int is_binary32(const sn_format *f, const sn_env *env) {
    const sn_format b = carrier_of(32);
    return memcmp(f, &b, sizeof b) == 0 && env->rounding == SN_NEAREST_EVEN && env->overflow == SN_OVERFLOW_INFINITY;
}

/* The carrier's bits (32 or 64) of the unit's fast path, prepared in *u; 0 if it has none. */
static int plan(const sn_mad_unit *d, sn_gemm_unit *u) {
    const facts a = facts_of(&d->operand_a), b = facts_of(&d->operand_b), sum = facts_of(&d->accumulator);
    const facts product = {a.precision + b.precision, a.last + b.last, a.top + b.top + 1, a.specials || b.specials};
    const facts addend = d->fused ? product : facts_of(&d->product);
    memset(u, 0, sizeof *u);
    u->chunk = d->chunk;
    const int narrow = fits(&d->operand_a, 32) && fits(&d->operand_b, 32);
    const int exact32 = product.precision <= 24 && product.last >= -149 && product.top <= 127;
    if (narrow && is_binary32(&d->accumulator, &d->sum_env) && is_binary32(&d->outer, &d->outer_env) &&
        (d->fused || is_binary32(&d->product, &d->product_env))) {
        u->path = SN_PATH_NATIVE;
        u->product = !d->fused ? SN_PRODUCT_NEAREST : exact32 ? SN_PRODUCT_EXACT : SN_PRODUCT_FUSED;
        return 32;
    }
    const int outer_top = larger(sum.top, facts_of(&d->outer).top) + 1;
    if (narrow && exact32 &&
        (d->fused || round32_of(&d->product, &d->product_env, product, product.top, &u->product32)) &&
        round32_of(&d->accumulator, &d->sum_env, addend, larger(sum.top, addend.top) + 1, &u->sum32) &&
        round32_of(&d->outer, &d->outer_env, sum, outer_top, &u->outer32) &&
        (is_fixed(&d->accumulator) || (addend.precision <= sum.precision && sum.precision <= 11)) &&
        (is_fixed(&d->outer) || (sum.precision <= d->outer.mantissa_bits + 1 && d->outer.mantissa_bits + 1 <= 11))) {
        const int fixed = is_fixed(&d->accumulator) + is_fixed(&d->outer) + (d->fused ? 0 : is_fixed(&d->product));
        u->product = d->fused ? SN_PRODUCT_EXACT : SN_PRODUCT_NEAREST;
        u->path = fixed == 2 && d->fused ? SN_PATH_FIXED : fixed ? SN_PATH_MIXED : SN_PATH_MAGIC;
        u->exact_below = !fixed && addend.last >= sum.last && sum.last >= facts_of(&d->outer).last &&
                         (d->fused || product.precision + d->product.mantissa_bits <= 22);
        return 32;
    }
    memset(&u->product32, 0, sizeof u->product32); /* what the conditions above left */
    memset(&u->sum32, 0, sizeof u->sum32);
    memset(&u->outer32, 0, sizeof u->outer32);
    if (odd_of(d, product, addend, u) || stochastic_of(d, product, addend, u)) return 32;
    if (!fits(&d->operand_a, 64) || !fits(&d->operand_b, 64)) return 0;
    if (product.precision > 53 || product.last < -1074 || product.top > 1000) return 0;
    if (!d->fused && !round64_of(&d->product, &d->product_env, product.specials, &u->product64)) return 0;
    if (!round64_of(&d->accumulator, &d->sum_env, addend.specials, &u->sum64)) return 0;
    if (!round64_of(&d->outer, &d->outer_env, sum.specials, &u->outer64)) return 0;
    u->product = d->fused                                   ? SN_PRODUCT_EXACT
                 : d->product_env.rounding == SN_STOCHASTIC ? SN_PRODUCT_STOCHASTIC
                                                            : SN_PRODUCT_NEAREST;
    u->two_roundings = u->product == SN_PRODUCT_STOCHASTIC && d->sum_env.rounding == SN_STOCHASTIC;
    return 64;
}

static sn_format take_sum_format(fuzz_input *in) {
    const int which = fuzz_choose(in, 8);
    sn_format f = which == 0  ? carrier_of(32)
                  : which < 4 ? fuzz_take_format(in, 16)
                  : which < 6 ? fuzz_take_format(in, 64)
                              : fuzz_float(4 + which % 2 * 2, 4 + fuzz_choose(in, 7), 15);
    return f.has_zero ? f : carrier_of(32);
}

static sn_env env_for(const sn_format *f, int rounding, int overflow, int stochastic_bits) {
    sn_env env = fuzz_plain_env(rounding);
    env.overflow = is_fixed(f) ? (overflow ? overflow : SN_OVERFLOW_SATURATE) : overflow % 3;
    if (sn_is_stochastic(&env)) env.stochastic_bits = stochastic_bits;
    return env;
}

static sn_mad_unit take_unit(fuzz_input *in) {
    sn_mad_unit d;
    memset(&d, 0, sizeof d);
    const int shape = fuzz_choose(in, 256);
    d.operand_a = fuzz_take_format(in, shape & 1 ? 8 : 16);
    d.operand_b = shape & 2 ? d.operand_a : fuzz_take_format(in, 16);
    d.accumulator = take_sum_format(in);
    d.fused = !(shape & 4);
    d.lanes = 1;
    d.product = shape & 8 ? d.accumulator : take_sum_format(in);
    d.chunk = shape & 16 ? 1 + fuzz_choose(in, 9) : 0;
    d.outer = d.chunk && (shape & 32) ? take_sum_format(in) : d.accumulator;
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

/* A matrix of codes, and of their carriers in rows of ld elements. NaNs are quiet: carriers cannot say more. */
typedef struct {
    sn_u64 *codes;
    char *carriers;
} matrix;

static matrix take_matrix(fuzz_input *in, const sn_format *f, size_t rows, size_t columns, size_t ld, int bits) {
    matrix x = {fuzz_buffer(rows * columns, sizeof *x.codes), fuzz_buffer(rows * ld, (size_t)bits / 8)};
    memset(x.carriers, 0, rows * ld * (size_t)bits / 8);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) {
            sn_u64 code = fuzz_take_code(in, f) & fuzz_mask(f);
            if (fuzz_is_nan(f, code)) code = f->nan_code;
            const sn_u64 pattern = to_carrier(f, code, bits);
            x.codes[i * columns + j] = code;
            memcpy(x.carriers + (i * ld + j) * (size_t)bits / 8, &pattern, (size_t)bits / 8);
        }
    return x;
}

static void free_matrix(matrix x) {
    free(x.codes);
    free(x.carriers);
}

static void report(const char *isa, size_t i, size_t j, sn_u64 got, sn_u64 want, const sn_mad_unit *d) {
    fuzz_trial t; /* as an fma, to have the formats printed */
    memset(&t, 0, sizeof t);
    t.op = SN_OP_fma;
    t.context.operand[0] = d->operand_a;
    t.context.operand[1] = d->operand_b;
    t.context.operand[2] = d->fused ? d->accumulator : d->product;
    t.context.out = d->outer;
    t.context.env = d->sum_env;
    fprintf(stderr, "%s gemm, fused %d, chunk %lld, product mode %d: [%zu, %zu] is %llx, not %llx\n", isa, d->fused,
            (long long)d->chunk, d->product_env.rounding, i, j, (unsigned long long)got, (unsigned long long)want);
    fuzz_fail(__FILE__, __LINE__, &t, "gemm as the definition");
}

void fuzz_gemm(fuzz_input *in) {
    const sn_mad_unit d = take_unit(in);
    sn_gemm_unit u;
    const int bits = plan(&d, &u);
    if (!bits) return;
    memcpy(u.key, d.key, sizeof u.key);
    memcpy(u.key2, d.key2, sizeof u.key2);
    u.batch = d.batch;
    const size_t m = 1 + (size_t)fuzz_choose(in, 3), k = (size_t)fuzz_choose(in, DEEPEST), size = (size_t)bits / 8;
    const size_t n = 1 + (size_t)fuzz_choose(in, fuzz_choose(in, 4) ? 20 : LARGEST);
    const size_t ldb = (n + SN_GEMM_LANES - 1) / SN_GEMM_LANES * SN_GEMM_LANES;
    const int with_c = fuzz_choose(in, 2);
    const matrix a = take_matrix(in, &d.operand_a, m, k, k, bits), b = take_matrix(in, &d.operand_b, k, n, ldb, bits);
    const matrix c = take_matrix(in, &d.outer, m, n, n, bits);
    sn_u64 *want = fuzz_buffer(m * n, sizeof *want);
    float *panel = fuzz_buffer(k * SN_PANEL, sizeof *panel);
    sn_product_codes codes;
    memset(&codes, 0, sizeof codes);
    codes.a = a.codes;
    codes.b = b.codes;
    codes.c = with_c ? c.codes : NULL;
    codes.out = want;
    codes.lda = (ptrdiff_t)k;
    codes.ldb = codes.ldc = codes.ldo = codes.n = codes.n_total = (ptrdiff_t)n;
    codes.m1 = (ptrdiff_t)m;
    codes.k = (ptrdiff_t)k;
    sn_gemm_definition(&d, &codes);
    for (int isa = 0; isa <= sn_detect_isa(); isa++) {
        char *out = fuzz_buffer(m * n, size);
        for (size_t n0 = 0; n0 < n; n0 += 64) { /* blocks of columns, as threads get them */
            sn_gemm_args g;
            memset(&g, 0, sizeof g);
            g.a = a.carriers;
            g.b = b.carriers + n0 * size;
            g.c = with_c ? c.carriers + n0 * size : NULL;
            g.out = out + n0 * size;
            g.panel = panel;
            g.lda = (ptrdiff_t)k;
            g.ldb = (ptrdiff_t)ldb;
            g.ldc = g.ldo = (ptrdiff_t)n;
            g.m1 = (ptrdiff_t)m;
            g.n = (ptrdiff_t)(n - n0 < 64 ? n - n0 : 64);
            g.k = (ptrdiff_t)k;
            g.n0 = (ptrdiff_t)n0;
            const sn_u64 saved = sn_fp_enter();
            (bits == 32 ? sn_gemm_kernels_for(isa)->gemm32 : sn_gemm_kernels_for(isa)->gemm64)(&u, &g);
            sn_fp_leave(saved);
        }
        for (size_t i = 0; i < m * n; i++) {
            sn_u64 got = 0, expected = to_carrier(&d.outer, want[i], bits);
            memcpy(&got, out + i * size, size);
            if (got != expected) report(sn_kernels_for(isa)->name, i / n, i % n, got, expected, &d);
        }
        free(out);
    }
    free_matrix(a);
    free_matrix(b);
    free_matrix(c);
    free(want);
    free(panel);
}

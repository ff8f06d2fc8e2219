/* Fused dot-product units: the definition against integers of 62 bits, which two conversions align and round; fast
 * paths on every instruction set against the definition; chains of fused multiply-adds against single ones. */
#include "products/fused/fused.h"
#include "products.h"

enum { HIGHEST = 9, LARGEST = 70, DEEPEST = 40, MOST_PERIOD = 24 };

static sn_i32 order[MOST_PERIOD];

/* A period of P products, a multiple of step; in the order that they come (null), or another. */
static const sn_i32 *take_order(fuzz_input *in, int step, sn_i32 *period) {
    const int most = MOST_PERIOD / step;
    *period = step;
    if (most == 0 || fuzz_choose(in, 2)) return NULL;
    *period = step * (1 + fuzz_choose(in, most));
    for (int i = 0; i < *period; i++) { /* Fisher and Yates */
        const int j = fuzz_choose(in, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    return order;
}

static sn_env take_env(int rounding, int overflow) {
    sn_env env = fuzz_plain_env(rounding);
    env.overflow = overflow;
    return env;
}

static int same_format(const sn_format *f, const sn_format *g) { return memcmp(f, g, sizeof *f) == 0; }

/* As FusedDotUnit has them; half of them near those with a fast path. */
static sn_fused_unit take_unit(fuzz_input *in) {
    sn_fused_unit u;
    memset(&u, 0, sizeof u);
    const int shape = fuzz_choose(in, 256), more = fuzz_choose(in, 256), fast = shape & 1;
    u.a = fuzz_take_float(in, fast ? 16 : 64, 15);
    u.b = shape & 2 ? u.a : fuzz_take_float(in, fast ? 16 : 64, 15);
    u.accumulator = shape & 4 ? fuzz_carrier(32) : fuzz_take_float(in, fast ? 22 : 64, 15);
    u.output = shape & 8 || fast ? u.accumulator : fuzz_take_float(in, 64, 15);
    const int usual = u.accumulator.mantissa_bits == 23 ? SN_TOWARD_ZERO : SN_NEAREST_EVEN;
    const int rounding = fast ? usual : fuzz_choose(in, SN_STOCHASTIC), overflow = more % 3;
    u.always_infinity = (shape & 0x30) == 0x30;
    const int older = !u.always_infinity && (more & 0x80), rule = u.always_infinity ? SN_OVERFLOW_INFINITY : overflow;
    u.sum_env = take_env(rounding, fuzz_overflow(&u.accumulator, rule, older));
    u.output_env = take_env(rounding, fuzz_overflow(&u.output, rule, older));
    u.after_env = take_env(SN_NEAREST_EVEN, u.output_env.overflow);
    const int few = fuzz_choose(in, 8);
    u.terms = few < 6 ? 1 + fuzz_choose(in, 16) : few == 6 ? 32 : 1 + fuzz_choose(in, 130);
    u.fraction_bits = fuzz_choose(in, fast ? 30 : SN_FUSED_FRACTION_BITS + 1);
    u.min_exponent = SN_FUSED_NO_FLOOR;
    if ((more & 0x18) == 0x18) u.min_exponent = (fuzz_choose(in, 512) - 256) * (more & 0x20 ? 1 : 256);
    u.zero_exponent = SN_FUSED_NO_FLOOR;
    if ((more & 3) == 3) /* as softnum.FusedDotUnit takes it */
        u.zero_exponent =
            (u.accumulator.emin < 0 ? u.accumulator.emin : 0) - (fuzz_choose(in, 2) ? fuzz_choose(in, 300) : 0);
    u.truncate_fraction = (more & 0x40) && !(fast && usual == SN_NEAREST_EVEN) ? fuzz_choose(in, 128) : -1;
    u.c_after = (shape & 0xc0) == 0xc0;
    u.same_output = same_format(&u.output, &u.accumulator);
    u.order = take_order(in, u.terms, &u.period);
    return u;
}

/* ---- the definition once more ------------------------------------------------------------------------------------ */

/* What M is among: a product's exponent is the sum of its factors', and of a C its own. */
typedef struct {
    int any, largest, nan, infinite[2];
} kinds;

static void note(kinds *x, int kind, int sign, int exponent) {
    x->nan |= kind == FUZZ_NAN;
    if (kind == FUZZ_INF) x->infinite[sign] = 1;
    if (kind == FUZZ_FINITE && (!x->any || exponent > x->largest)) x->largest = exponent;
    x->any |= kind == FUZZ_FINITE;
}

static sn_i64 signed_integer(sn_u64 code) {
    const sn_i64 n = (sn_i64)(code & ~((sn_u64)1 << 63));
    return code >> 63 ? -n : n;
}

static sn_u64 special(const kinds *x, const sn_format *fo, const sn_env *env, sn_u32 *flags) {
    const sn_format wide = fuzz_integers(0);
    const int nan = x->nan || (x->infinite[0] && x->infinite[1]);
    const sn_u64 sign = x->infinite[1] ? wide.sign_mask : 0;
    return sn_convert(&wide, nan ? wide.nan_code : wide.inf_code | sign, fo, env, 0, flags);
}

/* Whether a sum rounds beyond the largest value. P3109 formats raise no flags; the facts are the same. */
static int overflows(const sn_format *wide, sn_u64 code, const sn_format *fo, const sn_env *env) {
    sn_format telling = *fo;
    sn_u32 flags = 0;
    telling.p3109 = 0;
    sn_convert(wide, code, &telling, env, 0, &flags);
    return (flags & SN_FLAG_OVERFLOW) != 0;
}

/* One step; positions from first on. The caller has seen to it that sums stay below 2^62. */
static sn_u64 step(const sn_fused_unit *u, const sn_u64 *a, const sn_u64 *b, size_t stride, size_t length, size_t first,
                   sn_u64 c, const sn_format *fo, const sn_env *env, sn_u32 *flags) {
    const sn_env cut = fuzz_plain_env(SN_TOWARD_ZERO);
    const fuzz_number z = fuzz_decode(&u->accumulator, c);
    kinds x = {0, 0, 0, {0, 0}};
    size_t at[256];
    for (int t = 0; t < u->terms; t++) {
        const size_t position = first + (size_t)t, period = (size_t)u->period;
        at[t] = u->order ? position - position % period + (size_t)u->order[position % period] : position;
        if (at[t] >= length) continue;
        const fuzz_number p = fuzz_decode(&u->a, a[at[t]]), q = fuzz_decode(&u->b, b[at[t] * stride]);
        const int zero = p.kind == FUZZ_ZERO || q.kind == FUZZ_ZERO, more = p.kind > q.kind ? p.kind : q.kind;
        const int counts = u->zero_exponent != SN_FUSED_NO_FLOOR && more <= FUZZ_FINITE;
        const int of_p = p.kind == FUZZ_ZERO ? u->zero_exponent : p.exponent;
        const int of_q = q.kind == FUZZ_ZERO ? u->zero_exponent : q.exponent;
        note(&x,
             more == FUZZ_INF && zero      ? FUZZ_NAN
             : counts                      ? FUZZ_FINITE
             : zero && more == FUZZ_FINITE ? FUZZ_ZERO
                                           : more,
             p.sign ^ q.sign, counts ? of_p + of_q : p.exponent + q.exponent);
    }
    const int of_c = z.kind == FUZZ_ZERO && u->zero_exponent != SN_FUSED_NO_FLOOR;
    note(&x, of_c ? FUZZ_FINITE : z.kind, z.sign, of_c ? u->zero_exponent : z.exponent);
    if (x.nan || x.infinite[0] || x.infinite[1]) return special(&x, fo, env, flags);
    if (!x.any) return 0;

    const int m = x.largest > u->min_exponent ? x.largest : u->min_exponent;
    const sn_format wide = fuzz_integers(m - u->fraction_bits);
    sn_u32 ignored = 0;
    sn_i64 sum = signed_integer(sn_convert(&u->accumulator, c, &wide, &cut, 0, &ignored));
    for (int t = 0; t < u->terms; t++)
        if (at[t] < length)
            sum += signed_integer(sn_multiply(&u->a, a[at[t]], &u->b, b[at[t] * stride], &wide, &cut, 0, &ignored));
    if (sum == 0) return 0;
    sn_u64 size = sum < 0 ? 0 - (sn_u64)sum : (sn_u64)sum;
    FUZZ_EXPECT(NULL, size >> 62 == 0);
    const int kept = u->truncate_fraction;
    for (int bit = 0; kept >= 0 && kept < 62 && size >> bit >> kept > 1; bit++)
        size &= ~((sn_u64)1 << bit);
    const sn_u64 code = size | (sum < 0 ? wide.sign_mask : 0);
    if (u->always_infinity && fo->has_inf && overflows(&wide, code, fo, env)) {
        kinds infinite = {0, 0, 0, {sum > 0, sum < 0}};
        return special(&infinite, fo, env, flags);
    }
    const sn_u64 rounded = sn_convert(&wide, code, fo, env, 0, flags);
    return fuzz_decode(fo, rounded).kind == FUZZ_ZERO ? 0 : rounded;
}

static sn_u64 element(const sn_fused_unit *u, const fuzz_product *p, size_t row, size_t column, sn_u32 *lost) {
    const sn_u64 c = p->c ? p->c[row * p->n + column] : 0;
    const size_t periods = (p->k + (size_t)u->period - 1) / (size_t)u->period;
    const size_t steps = periods * (size_t)u->period / (size_t)u->terms;
    sn_u32 flags[2] = {0, 0};
    sn_u64 sum = u->c_after ? 0 : c;
    if (steps == 0 && (u->c_after || u->same_output)) return c;
    if (steps == 0) sum = sn_convert(&u->accumulator, c, &u->output, &u->output_env, 0, &flags[1]);
    for (size_t i = 0; i < steps; i++) {
        const int last = i + 1 == steps && !u->c_after;
        sum = step(u, p->a + row * p->k, p->b + column, p->n, p->k, i * (size_t)u->terms, sum,
                   last ? &u->output : &u->accumulator, last ? &u->output_env : &u->sum_env, &flags[last]);
    }
    if (u->c_after && steps) sum = sn_add(&u->accumulator, sum, &u->output, c, &u->output, &u->after_env, 0, &flags[1]);
    *lost |= (sn_u32)((flags[0] & SN_NO_CODE) != 0) | (sn_u32)((flags[1] & SN_NO_CODE) != 0) << 1;
    return sum;
}

static sn_u32 define(const void *unit, const sn_product_codes *g) { return sn_fused_definition(unit, g); }

static void fail(const sn_fused_unit *u, const fuzz_product *p, size_t i, sn_u64 want, const char *what) {
    const fuzz_trial t = fuzz_trial_of(p, &u->sum_env);
    fprintf(
        stderr,
        "%d terms, F %d, least M %d, truncated %d, always infinite %d, c after %d (given %d), period %d (order %d), "
        "k %zu: element %zu is %llx, not %llx\n",
        u->terms, u->fraction_bits, u->min_exponent, u->truncate_fraction, u->always_infinity, u->c_after, p->c != NULL,
        u->period, u->order != NULL, p->k, i, (unsigned long long)p->out[i], (unsigned long long)want);
    fuzz_fail(__FILE__, __LINE__, &t, what);
}

/* Terms within a step in the reverse order: the same bits, for any F. */
static void check_order(const sn_fused_unit *u, const fuzz_product *p) {
    sn_u64 x[DEEPEST], y[DEEPEST];
    if (u->order) return;
    for (size_t i = 0; i < p->m * p->n && i < 4; i++) {
        sn_u32 ignored = 0;
        const size_t row = i / p->n, column = i % p->n, terms = (size_t)u->terms;
        for (size_t k = 0; k < p->k; k++) {
            const size_t first = k / terms * terms, end = first + terms < p->k ? first + terms : p->k;
            x[first + end - 1 - k] = p->a[row * p->k + k];
            y[first + end - 1 - k] = p->b[k * p->n + column];
        }
        const sn_u64 c = p->c ? p->c[i] : 0;
        const sn_u64 want = sn_fused_dot(u, x, 1, y, 1, (sn_i64)p->k, c, &ignored, &ignored);
        if (want != p->out[i]) fail(u, p, i, want, "the order of a step's terms does not matter");
    }
}

/* ---- the fast paths ---------------------------------------------------------------------------------------------- */

static void run(const fuzz_product *p, const sn_fused_plan *plan, fuzz_part part, int isa) {
    const fuzz_part rows = {part.m0, part.m1, 0, p->k}, columns = {0, p->k, part.n0, part.n1};
    const size_t n = part.n1 - part.n0;
    const fuzz_block a = fuzz_values(p->fa, p->a, p->k, rows, p->k + p->gap, 0, 32);
    const fuzz_block b = fuzz_values(p->fb, p->b, p->n, columns, n + p->gap, 0, 32);
    const fuzz_block out = fuzz_room(part.m0, part.m1 - part.m0, n, n + p->gap, 0, sizeof(float));
    fuzz_block c = {NULL, NULL, 0, 0, 0, 0};
    if (p->c) c = fuzz_values(p->fc, p->c, p->n, part, n + 2 * p->gap, 0, 32);
    sn_fused_values g;
    memset(&g, 0, sizeof g);
    g.a = (const float *)(const void *)a.origin;
    g.b = (const float *)(const void *)b.origin;
    g.c = (const float *)(const void *)c.origin;
    g.out = (float *)(void *)out.origin;
    g.lda = (ptrdiff_t)a.ld;
    g.ldb = (ptrdiff_t)b.ld;
    g.ldc = (ptrdiff_t)c.ld;
    g.ldo = (ptrdiff_t)out.ld;
    g.m0 = (ptrdiff_t)part.m0;
    g.m1 = (ptrdiff_t)part.m1;
    g.n = (ptrdiff_t)n;
    g.k = (ptrdiff_t)p->k;
    const sn_u64 saved = sn_fp_enter();
    sn_fused_kernel_for(isa)(plan, &g);
    sn_fp_leave(saved);
    const sn_fused_unit *u = &plan->unit;
    const fuzz_trial t = fuzz_trial_of(p, &u->sum_env);
    char what[200];
    snprintf(what, sizeof what,
             "%s fused, %d terms, F %d, least M %d, truncated %d, always infinite %d, c after %d, period %d",
             sn_kernels_for(isa)->name, u->terms, u->fraction_bits, u->min_exponent, u->truncate_fraction,
             u->always_infinity, u->c_after, u->period);
    fuzz_compare(p, part, &out, 32, what, &t);
    free(a.buffer);
    free(b.buffer);
    free(c.buffer);
    free(out.buffer);
}

void fuzz_fused(fuzz_input *in) {
    const sn_fused_unit u = take_unit(in);
    sn_fused_plan fast;
    const int planned = sn_fused_path(&u, &fast), deep = planned && fuzz_choose(in, 16) == 15;
    fuzz_product p = {.fa = &u.a, .fb = &u.b, .fc = u.c_after ? &u.output : &u.accumulator, .fo = &u.output};
    fuzz_take_product(in, &p, HIGHEST, deep ? 3 : LARGEST, deep ? 300 : DEEPEST, planned);
    const sn_u32 lost = fuzz_define(&p, define, &u);
    /* terms * 2^(F + 2) and C's 2^(F + 1) stay below 2^62 */
    if (u.fraction_bits <= 50 && u.terms <= 256) {
        sn_u32 want_lost = 0;
        for (size_t i = 0; i < p.m * p.n; i++) {
            const sn_u64 want = element(&u, &p, i / p.n, i % p.n, &want_lost);
            if (want != p.out[i]) fail(&u, &p, i, want, "the definition is the sum of aligned integers");
        }
        FUZZ_EXPECT(NULL, lost == want_lost);
    }
    if (p.k <= DEEPEST) check_order(&u, &p);
    for (int isa = 0; planned && isa <= sn_detect_isa(); isa++)
        for (int which = 0; which < FUZZ_PARTS; which++) {
            const fuzz_part part = fuzz_part_of(&p, which);
            if (part.m0 < part.m1 && part.n0 < part.n1) run(&p, &fast, part, isa);
        }
    fuzz_free_product(&p);
}

/* ---- two stages -------------------------------------------------------------------------------------------------- */

static sn_two_stage_unit take_stages(fuzz_input *in) {
    sn_two_stage_unit w;
    memset(&w, 0, sizeof w);
    sn_fused_unit *u = &w.fused;
    const int shape = fuzz_choose(in, 256), more = fuzz_choose(in, 256), fast = shape & 1;
    u->a = fuzz_take_float(in, fast ? 16 : 64, 15);
    u->b = shape & 2 ? u->a : fuzz_take_float(in, fast ? 16 : 64, 15);
    u->accumulator = u->output = shape & 4 || fast ? fuzz_carrier(32) : fuzz_take_float(in, 64, 15);
    u->sum_env = take_env(fast ? SN_NEAREST_EVEN : fuzz_choose(in, SN_STOCHASTIC),
                          fast ? SN_OVERFLOW_INFINITY : fuzz_choose(in, 3));
    w.interleave = 1 + (fast ? fuzz_choose(in, 2) : fuzz_choose(in, SN_TWO_STAGE_STREAMS));
    u->terms = u->period = w.interleave * (1 + fuzz_choose(in, 9));
    const int limit = fast ? 30 : SN_FUSED_FRACTION_BITS + 1;
    u->fraction_bits = fuzz_choose(in, limit);
    w.sum_fraction_bits = fuzz_choose(in, fast ? 40 : limit);
    w.c_fraction_bits = fuzz_choose(in, fast ? 40 : limit);
    u->min_exponent = u->zero_exponent = SN_FUSED_NO_FLOOR;
    if (shape & 8) u->zero_exponent = u->accumulator.emin < 0 ? u->accumulator.emin : 0;
    u->truncate_fraction = -1;
    u->same_output = 1;
    w.down = fast || (more & 1);
    w.c_reach = more & 2 ? fuzz_choose(in, 40) : -1;
    w.product_limit = more & 4 ? (fast ? 127 : -64) + fuzz_choose(in, 128) : SN_TWO_STAGE_NO_LIMIT;
    return w;
}

/* n * 2^-below, rounded down or toward zero. */
static sn_i64 shifted(sn_i64 n, int below, int down) {
    if (below <= 0) return n * ((sn_i64)1 << -below);
    const int far = below > 62 ? 62 : below;
    const sn_i64 floor = n >= 0 ? n >> far : -(-n >> far) - ((-n & (((sn_i64)1 << far) - 1)) != 0);
    return !down && n < 0 ? -(-n >> far) : floor;
}

/* One step; the caller has seen to it that sums stay below 2^62. */
static sn_u64 stages_step(const sn_two_stage_unit *w, const sn_u64 *a, const sn_u64 *b, size_t stride, size_t length,
                          size_t first, sn_u64 c, sn_u32 *flags) {
    const sn_fused_unit *u = &w->fused;
    const sn_format *f = &u->accumulator;
    const sn_env cut = fuzz_plain_env(SN_TOWARD_ZERO), down = fuzz_plain_env(w->down ? SN_DOWN : SN_TOWARD_ZERO);
    const fuzz_number z = fuzz_decode(f, c);
    const int counts = u->zero_exponent != SN_FUSED_NO_FLOOR;
    kinds streams[SN_TWO_STAGE_STREAMS], all = {0, 0, 0, {0, 0}}, x = {0, 0, 0, {0, 0}};
    sn_i64 sums[SN_TWO_STAGE_STREAMS] = {0};
    sn_u32 ignored = 0;
    int beyond[2] = {0, 0};
    memset(streams, 0, sizeof streams);
    const size_t end = first + (size_t)u->terms < length ? first + (size_t)u->terms : length;
    for (size_t k = first; k < end; k++) {
        const fuzz_number p = fuzz_decode(&u->a, a[k]), q = fuzz_decode(&u->b, b[k * stride]);
        const int zero = p.kind == FUZZ_ZERO || q.kind == FUZZ_ZERO, more = p.kind > q.kind ? p.kind : q.kind;
        const int of_p = p.kind == FUZZ_ZERO ? u->zero_exponent : p.exponent;
        const int of_q = q.kind == FUZZ_ZERO ? u->zero_exponent : q.exponent;
        const int kind = more == FUZZ_INF && zero ? FUZZ_NAN
                         : more > FUZZ_FINITE     ? more
                         : zero && !counts        ? FUZZ_ZERO
                                                  : FUZZ_FINITE;
        note(&streams[(k - first) % (size_t)w->interleave], kind, p.sign ^ q.sign, of_p + of_q);
        note(&all, kind, p.sign ^ q.sign, of_p + of_q);
        if (more == FUZZ_FINITE && !zero && w->product_limit != SN_TWO_STAGE_NO_LIMIT) {
            const sn_format units = fuzz_integers(w->product_limit);
            const sn_u64 size = sn_multiply(&u->a, a[k], &u->b, b[k * stride], &units, &cut, 0, &ignored);
            if (signed_integer(size) != 0) beyond[p.sign ^ q.sign] = 1;
        }
    }
    x = all;
    note(&x, z.kind == FUZZ_ZERO && counts ? FUZZ_FINITE : z.kind, z.sign,
         z.kind == FUZZ_ZERO ? u->zero_exponent : z.exponent);
    if (x.nan || x.infinite[0] || x.infinite[1]) return special(&x, f, &u->sum_env, flags);
    if (beyond[0] || beyond[1]) {
        const kinds infinite = {0, 0, 0, {beyond[0], beyond[1]}};
        return special(&infinite, f, &u->sum_env, flags);
    }
    if (!x.any) return 0;
    sn_i64 sum = 0;
    for (int s = 0; s < w->interleave; s++) {
        if (!streams[s].any) continue;
        const sn_format units = fuzz_integers(streams[s].largest - u->fraction_bits);
        for (size_t k = first + (size_t)s; k < end; k += (size_t)w->interleave)
            sums[s] += signed_integer(sn_multiply(&u->a, a[k], &u->b, b[k * stride], &units, &cut, 0, &ignored));
        sum += shifted(sums[s], all.largest - streams[s].largest, w->down);
    }
    const int n = x.largest,
              most = w->sum_fraction_bits > w->c_fraction_bits ? w->sum_fraction_bits : w->c_fraction_bits;
    if (all.any) sum = shifted(sum, n - w->sum_fraction_bits - (all.largest - u->fraction_bits), w->down);
    sum *= (sn_i64)1 << (most - w->sum_fraction_bits);
    const int of_c = z.kind == FUZZ_ZERO ? n : z.exponent;
    if (w->c_reach < 0 || of_c >= n - w->c_reach) {
        const sn_format units = fuzz_integers(n - w->c_fraction_bits);
        sum +=
            signed_integer(sn_convert(f, c, &units, &down, 0, &ignored)) * ((sn_i64)1 << (most - w->c_fraction_bits));
    }
    if (sum == 0) return 0;
    const sn_format wide = fuzz_integers(n - most);
    return sn_convert(&wide, (sum < 0 ? 0 - (sn_u64)sum : (sn_u64)sum) | (sum < 0 ? wide.sign_mask : 0), f, &u->sum_env,
                      0, flags);
}

static sn_u32 define_stages(const void *unit, const sn_product_codes *g) { return sn_two_stage_definition(unit, g); }

void fuzz_two_stage(fuzz_input *in) {
    const sn_two_stage_unit w = take_stages(in);
    const sn_fused_unit *u = &w.fused;
    sn_fused_plan fast;
    const int planned = sn_two_stage_path(&w, &fast), deep = planned && fuzz_choose(in, 16) == 15;
    fuzz_product p = {.fa = &u->a, .fb = &u->b, .fc = &u->accumulator, .fo = &u->accumulator};
    fuzz_take_product(in, &p, HIGHEST, deep ? 3 : LARGEST, deep ? 300 : DEEPEST, planned);
    fuzz_define(&p, define_stages, &w);
    if (u->fraction_bits <= 40 && w.sum_fraction_bits <= 50 && w.c_fraction_bits <= 50) {
        for (size_t i = 0; i < p.m * p.n; i++) {
            sn_u64 want = p.c ? p.c[i] : 0;
            sn_u32 flags = 0;
            for (size_t first = 0; first < p.k; first += (size_t)u->terms)
                want = stages_step(&w, p.a + i / p.n * p.k, p.b + i % p.n, p.n, p.k, first, want, &flags);
            if (want != p.out[i]) fail(u, &p, i, want, "the definition is the sum of integers that were rounded down");
        }
    }
    for (int isa = 0; planned && isa <= sn_detect_isa(); isa++)
        for (int which = 0; which < FUZZ_PARTS; which++) {
            const fuzz_part part = fuzz_part_of(&p, which);
            if (part.m0 < part.m1 && part.n0 < part.n1) run(&p, &fast, part, isa);
        }
    fuzz_free_product(&p);
}

/* ---- chains ------------------------------------------------------------------------------------------------------ */

static sn_u32 define_chain(const void *unit, const sn_product_codes *g) { return sn_chain_definition(unit, g); }

void fuzz_chain(fuzz_input *in) {
    sn_chain_unit u;
    memset(&u, 0, sizeof u);
    const int how = fuzz_choose(in, 256);
    u.a = fuzz_take_float(in, 64, 15);
    u.b = how & 1 ? u.a : fuzz_take_float(in, 64, 15);
    u.accumulator = fuzz_take_float(in, 64, 15);
    u.env = take_env((how >> 4) % SN_STOCHASTIC, fuzz_choose(in, 3));
    u.env.flush_inputs = how >> 1 & 1;
    u.env.flush_results = how >> 2 & 3;
    u.order = take_order(in, 1, &u.period);
    fuzz_product p = {.fa = &u.a, .fb = &u.b, .fc = &u.accumulator, .fo = &u.accumulator};
    fuzz_take_product(in, &p, 4, 9, DEEPEST, 0);
    const sn_u32 lost = fuzz_define(&p, define_chain, &u);
    sn_u32 flags = 0;
    for (size_t i = 0; i < p.m * p.n; i++) {
        fuzz_trial t = fuzz_trial_of(&p, &u.env);
        sn_u64 sum = p.c ? p.c[i] : 0;
        for (size_t base = 0; base < p.k; base += (size_t)u.period)
            for (int j = 0; j < u.period; j++) {
                const size_t k = base + (size_t)(u.order ? u.order[j] : j);
                t.code[0] = k < p.k ? p.a[i / p.n * p.k + k] : 0;
                t.code[1] = k < p.k ? p.b[k * p.n + i % p.n] : 0;
                t.code[2] = sum;
                const fuzz_result r = fuzz_evaluate_short(&t);
                sum = r.code;
                flags |= r.flags;
            }
        FUZZ_EXPECT(&t, p.out[i] == sum);
    }
    FUZZ_EXPECT(NULL, (lost != 0) == ((flags & SN_NO_CODE) != 0));
    fuzz_free_product(&p);
}

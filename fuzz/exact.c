/* Exact sums: the definition against a sum in digits of 32 bits, rounded by a conversion, and against fma; fast paths
 * on every instruction set against the definition. */
#include "products/exact/exact.h"
#include "products.h"

enum { HIGHEST = 9, LARGEST = 40, DEEPEST = 24, DIGITS = 2 * SN_KULISCH_WORDS + 8, MOST_EXPONENT_BITS = 11 };

/* ---- units ------------------------------------------------------------------------------------------------------- */

/* All values are multiples of 2^last and at most 2^top in magnitude. */
static void span_of(const sn_format *f, int *last, int *top) {
    const sn_facts x = sn_facts_of(f);
    *last = x.last;
    *top = fuzz_is_fixed(f) ? f->bits - f->mantissa_bits - f->is_signed : x.top + 1;
}

static sn_format take_operand(fuzz_input *in) {
    const sn_format f = fuzz_take_format(in, 64);
    return fuzz_is_fixed(&f) || f.bits - f.is_signed - f.mantissa_bits <= MOST_EXPONENT_BITS ? f : fuzz_carrier(32);
}

/* 0 where the accumulator would be too wide. */
static int take_unit(fuzz_input *in, sn_exact_unit *u) {
    memset(u, 0, sizeof *u);
    const int shape = fuzz_choose(in, 256);
    u->operand_a = shape & 1 ? fuzz_take_float(in, 16, MOST_EXPONENT_BITS) : take_operand(in);
    u->operand_b = shape & 2 ? u->operand_a : take_operand(in);
    u->accumulator = shape & 4 ? fuzz_carrier(shape & 8 ? 32 : 64) : fuzz_take_sum(in, 64, MOST_EXPONENT_BITS);
    if ((shape & 0x60) == 0x60) { /* products and a result of many digits: no bit that a split loses goes unseen */
        u->operand_a = u->operand_b = fuzz_float(4 + fuzz_choose(in, 3), 20 + fuzz_choose(in, 6), 15);
        u->accumulator = fuzz_float(8, 38 + fuzz_choose(in, 12), 127);
    }
    u->env = fuzz_plain_env(shape & 16 ? SN_NEAREST_EVEN : fuzz_choose(in, SN_ROUNDING_MODES));
    const int rule = fuzz_choose(in, 6);
    u->env.overflow = fuzz_overflow(&u->accumulator, rule % 3, rule > 2);
    if (sn_is_stochastic(&u->env)) u->env.stochastic_bits = 1 + fuzz_choose(in, 32);
    int last[3], top[3];
    span_of(&u->operand_a, &last[0], &top[0]);
    span_of(&u->operand_b, &last[1], &top[1]);
    span_of(&u->accumulator, &last[2], &top[2]);
    const int low = last[0] + last[1], high = top[0] + top[1];
    u->bottom = low < last[2] ? low : last[2];
    const int width = (high > top[2] ? high : top[2]) + 32 - u->bottom + 1;
    if (width > 64 * SN_KULISCH_WORDS) return 0;
    u->words = (width + 63) / 64;
    const sn_u64 seed = fuzz_take(in, 2);
    memcpy(u->key, sn_philox_key(seed, 0, SN_DOMAIN_MATMUL).w, sizeof u->key);
    u->batch = (sn_u32)fuzz_choose(in, 3);
    return 1;
}

/* ---- the definition once more ------------------------------------------------------------------------------------ */

/* digit[0] + digit[1] * 2^32 + ..., in units of 2^bottom; digits carry when all is added. */
typedef struct {
    sn_i64 digit[DIGITS];
    int bottom, nan, infinite[2], zero[2], number;
} sum;

static void add_digits(sum *s, sn_u64 sig, int exp, int sign) {
    FUZZ_EXPECT(NULL, exp >= s->bottom);
    const int at = (exp - s->bottom) / 32, bit = (exp - s->bottom) % 32;
    const sn_u64 part[3] = {sig << bit & 0xffffffffu, sig >> (32 - bit) & 0xffffffffu, bit ? sig >> (64 - bit) : 0};
    for (int i = 0; i < 3; i++)
        s->digit[at + i] += sign ? -(sn_i64)part[i] : (sn_i64)part[i];
}

static void add_term(sum *s, const fuzz_number *x, const fuzz_number *y) {
    const int sign = x->sign ^ y->sign;
    s->nan |= x->kind == FUZZ_NAN || y->kind == FUZZ_NAN;
    if (x->kind == FUZZ_NAN || y->kind == FUZZ_NAN) return;
    if (x->kind == FUZZ_INF || y->kind == FUZZ_INF) {
        if (x->kind == FUZZ_ZERO || y->kind == FUZZ_ZERO)
            s->nan = 1;
        else
            s->infinite[sign] = 1;
        return;
    }
    if (x->kind == FUZZ_ZERO || y->kind == FUZZ_ZERO) {
        s->zero[sign] = 1;
        return;
    }
    s->number = 1;
    const sn_u64 low = x->sig & 0xffffffffu, high = x->sig >> 32;
    const int exp = x->exp + y->exp;
    add_digits(s, low * (y->sig & 0xffffffffu), exp, sign);
    if (y->sig >> 32) add_digits(s, low * (y->sig >> 32), exp + 32, sign);
    if (high) add_digits(s, high * (y->sig & 0xffffffffu), exp + 32, sign);
    if (high && y->sig >> 32) add_digits(s, high * (y->sig >> 32), exp + 64, sign);
}

static void carry(sum *s) {
    for (int i = 0; i + 1 < DIGITS; i++) {
        const sn_i64 low = s->digit[i] & 0xffffffff;
        s->digit[i + 1] += (s->digit[i] - low) / ((sn_i64)1 << 32);
        s->digit[i] = low;
    }
}

/* Rounded: from the first 61 bits, the last of which is set if anything follows (rounding to odd). *known: whether
 * that says what the format's rounding wants to know. */
static sn_u64 rounded(sum *s, const sn_exact_unit *u, sn_u32 word, int *known, sn_u32 *flags) {
    const sn_format *f = &u->accumulator, integers = fuzz_integers(0);
    const int nan = s->nan || (s->infinite[0] && s->infinite[1]);
    *known = 1;
    if (nan) return sn_convert(&integers, integers.nan_code, f, &u->env, word, flags);
    if (s->infinite[0] || s->infinite[1]) {
        const sn_u64 sign = s->infinite[1] ? integers.sign_mask : 0;
        return sn_convert(&integers, integers.inf_code | sign, f, &u->env, word, flags);
    }
    carry(s);
    const int negative = s->digit[DIGITS - 1] < 0;
    for (int i = 0; negative && i < DIGITS; i++)
        s->digit[i] = -s->digit[i];
    if (negative) carry(s);
    int top = DIGITS - 1;
    while (top >= 0 && !s->digit[top])
        top--;
    if (top < 0) {
        const int minus = s->zero[0] != s->zero[1] && !s->number ? s->zero[1] : u->env.rounding == SN_DOWN;
        return sn_convert(&integers, minus ? integers.sign_mask : 0, f, &u->env, word, flags);
    }
    sn_u64 size = 0;
    int exp = s->bottom + 32 * (top + 1), beyond = 0;
    for (int bit = 32 * (top + 1) - 1; bit >= 0; bit--) {
        const sn_u64 next = (sn_u64)s->digit[bit / 32] >> bit % 32 & 1;
        if (size >> 60) {
            beyond |= next != 0;
        } else {
            size = size << 1 | next;
            exp--;
        }
    }
    const int digits = fuzz_is_fixed(f) ? f->bits : f->mantissa_bits + 1;
    const int seen = digits + (sn_is_stochastic(&u->env) ? u->env.stochastic_bits + 1 : 1);
    if (beyond && (seen > 59 || u->env.overflow == SN_OVERFLOW_WRAP)) *known = 0;
    /* a float's lowest binade that holds no subnormals divides its gap anew: more bits than that matter there */
    if (beyond && !fuzz_is_fixed(f) && f->lowest == SN_LOWEST_NORMAL) *known = 0;
    const sn_format wide = fuzz_integers(exp);
    const sn_u64 code = size | (sn_u64)beyond | (negative ? wide.sign_mask : 0);
    return sn_convert(&wide, code, f, &u->env, word, flags);
}

static void fail(const sn_exact_unit *u, const fuzz_product *p, size_t i, sn_u64 want, const char *what) {
    const fuzz_trial t = fuzz_trial_of(p, &u->env);
    fprintf(stderr, "exact sum from 2^%d, %d words, k %zu, c %d: element %zu of %zu x %zu is %llx, not %llx\n",
            u->bottom, u->words, p->k, p->c != NULL, i, p->m, p->n, (unsigned long long)p->out[i],
            (unsigned long long)want);
    fuzz_fail(__FILE__, __LINE__, &t, what);
}

static sn_u32 word_of(const sn_exact_unit *u, const fuzz_product *p, size_t i) {
    if (p->words) return p->words[2 * i + 1];
    return sn_philox(0, (sn_u32)(i % p->n), (sn_u32)(i / p->n), u->batch, u->key[0], u->key[1]).w[0];
}

static void check_sum(const sn_exact_unit *u, const fuzz_product *p, sn_u32 lost) {
    sn_u32 flags = 0;
    int all = 1;
    for (size_t i = 0; i < p->m * p->n; i++) {
        sum s;
        memset(&s, 0, sizeof s);
        s.bottom = u->bottom;
        const fuzz_number one = {1, FUZZ_FINITE, 0, 0, 0}, c = fuzz_decode(&u->accumulator, p->c ? p->c[i] : 0);
        add_term(&s, &c, &one);
        for (size_t k = 0; k < p->k; k++) {
            const fuzz_number x = fuzz_decode(&u->operand_a, p->a[i / p->n * p->k + k]);
            const fuzz_number y = fuzz_decode(&u->operand_b, p->b[k * p->n + i % p->n]);
            add_term(&s, &x, &y);
        }
        int known = 1;
        sn_u64 want = p->c ? p->c[i] : 0;
        if (p->k) want = rounded(&s, u, word_of(u, p, i), &known, &flags);
        if (known && want != p->out[i]) fail(u, p, i, want, "the definition is the sum of all digits");
        all &= known;
    }
    if (all) FUZZ_EXPECT(NULL, (lost != 0) == ((flags & SN_NO_CODE) != 0));
}

/* A sum of one product, for any format: fma. */
static void check_single(const sn_exact_unit *u, const fuzz_product *p) {
    const sn_format *f = &u->accumulator;
    for (size_t i = 0; p->k == 1 && i < p->m * p->n; i++) {
        sn_u32 flags = 0;
        const sn_u64 want = sn_fma(&u->operand_a, p->a[i / p->n], &u->operand_b, p->b[i % p->n], f, p->c ? p->c[i] : 0,
                                   f, &u->env, word_of(u, p, i), &flags);
        if (want != p->out[i]) fail(u, p, i, want, "a sum of one product is an fma");
    }
}

static sn_u32 define(const void *unit, const sn_product_codes *g) { return sn_exact_definition(unit, g); }

/* Products in the reverse order, and each twice with either sign in between, for any format: the same bits. */
static void check_order(const sn_exact_unit *u, const fuzz_product *p) {
    const int negates = !fuzz_is_fixed(&u->operand_a) && u->operand_a.is_signed && u->operand_a.negative_zero;
    const size_t times = negates ? 3 : 1, k = p->k * times;
    sn_u64 a[3 * DEEPEST], b[3 * DEEPEST], out;
    for (size_t i = 0; i < p->m * p->n && i < 3; i++) {
        int numbers = p->k != 0;
        for (size_t j = 0; j < k; j++) {
            const sn_u64 x = p->a[i / p->n * p->k + j % p->k];
            const fuzz_number number = fuzz_decode(&u->operand_a, x);
            numbers &= number.kind == FUZZ_FINITE || (number.kind == FUZZ_ZERO && times == 1);
            a[k - 1 - j] = x ^ (j / p->k == 1 ? u->operand_a.sign_mask : 0);
            b[k - 1 - j] = p->b[j % p->k * p->n + i % p->n];
            const int kind = fuzz_decode(&u->operand_b, b[k - 1 - j]).kind;
            numbers &= kind == FUZZ_FINITE || (kind == FUZZ_ZERO && times == 1);
        }
        if (times == 3 && !numbers) continue; /* -inf + inf, and zeros' signs */
        sn_product_codes g;
        memset(&g, 0, sizeof g);
        sn_u32 words[2] = {0, word_of(u, p, i)};
        g.a = a;
        g.b = b;
        g.c = p->c ? p->c + i : NULL;
        g.out = &out;
        g.words = words;
        g.lda = (ptrdiff_t)k;
        g.ldb = g.ldc = g.ldo = g.n = g.n_total = g.m1 = 1;
        g.k = (ptrdiff_t)k;
        sn_exact_definition(u, &g);
        if (out != p->out[i]) fail(u, p, i, out, "the order of terms does not matter, and opposite ones cancel");
    }
}

/* ---- the fast path ----------------------------------------------------------------------------------------------- */

static void run(const fuzz_product *p, const sn_exact_fast *fast, fuzz_part part, int isa) {
    const fuzz_part rows = {part.m0, part.m1, 0, p->k}, columns = {0, p->k, part.n0, part.n1};
    const size_t n = part.n1 - part.n0, room = (n + SN_EXACT_ROOM - 1) / SN_EXACT_ROOM * SN_EXACT_ROOM;
    const fuzz_block a = fuzz_values(p->fa, p->a, p->k, rows, p->k + p->gap, 0, 64);
    const fuzz_block b = fuzz_values(p->fb, p->b, p->n, columns, n + p->gap, 0, 64);
    const fuzz_block out = fuzz_room(part.m0, part.m1 - part.m0, n, n + p->gap, 0, sizeof(double));
    fuzz_block c = {NULL, NULL, 0, 0, 0, 0};
    if (p->c) c = fuzz_values(p->fc, p->c, p->n, part, n + 2 * p->gap, 0, 64);
    sn_exact_args g;
    memset(&g, 0, sizeof g);
    g.a = (const double *)(const void *)a.origin;
    g.b = (const double *)(const void *)b.origin;
    g.c = (const double *)(const void *)c.origin;
    g.out = (double *)(void *)out.origin;
    g.packed = fuzz_buffer(p->k * room, sizeof *g.packed);
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
    sn_exact_kernels_for(isa)->gemm(fast, &g);
    sn_fp_leave(saved);
    const fuzz_trial t = fuzz_trial_of(p, &fast->unit.env);
    fuzz_compare(p, part, &out, 64, sn_kernels_for(isa)->name, &t);
    free(a.buffer);
    free(b.buffer);
    free(c.buffer);
    free(out.buffer);
    free(g.packed);
}

void fuzz_exact(fuzz_input *in) {
    sn_exact_unit u;
    sn_exact_fast fast;
    if (!take_unit(in, &u)) return;
    const int planned = sn_exact_path(&u, sn_facts_of(&u.operand_a), sn_facts_of(&u.operand_b), &fast);
    const int deep = planned && fuzz_choose(in, 6) == 5; /* blocks of 2^5 to 2^19 terms */
    fuzz_product p = {.fa = &u.operand_a, .fb = &u.operand_b, .fc = &u.accumulator, .fo = &u.accumulator};
    fuzz_take_product(in, &p, deep ? 2 : HIGHEST, deep ? 3 : LARGEST, deep ? 600 : DEEPEST, planned);
    if (!planned && sn_is_stochastic(&u.env) && fuzz_choose(in, 2)) fuzz_take_words(in, &p, 1);
    const sn_u32 lost = fuzz_define(&p, define, &u);
    check_sum(&u, &p, lost);
    check_single(&u, &p);
    if (p.k <= DEEPEST) check_order(&u, &p);
    for (int isa = 0; planned && p.k && isa <= sn_detect_isa(); isa++) /* K = 0: _exact.pyx copies C */
        for (int which = 0; which < FUZZ_PARTS; which++) {
            const fuzz_part part = fuzz_part_of(&p, which);
            if (part.m0 < part.m1 && part.n0 < part.n1) run(&p, &fast, part, isa);
        }
    fuzz_free_product(&p);
}

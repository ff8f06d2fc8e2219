/* GEMM in integers, on every instruction set, against the definition on codes. The units are those that
 * sn_integer_path sends there: fixed point whose products need no rounding. */
#include "products.h"
#include "products/gemm/gemm.h"

enum { HIGHEST = 9, LARGEST = 70, DEEPEST = 20 };

static sn_format take_operand(fuzz_input *in) {
    const int is_signed = fuzz_choose(in, 4) != 0, most = is_signed ? 16 : 15, least = 1 + is_signed;
    const int bits = fuzz_choose(in, 2) ? most : least + fuzz_choose(in, most - least + 1);
    const int fraction = fuzz_take_fraction(in, bits);
    return fuzz_fixed(bits - fraction, fraction, is_signed);
}

/* One rounding, none of which happens; 0 if no accumulator holds the products' last place. */
static int take_unit(fuzz_input *in, sn_mad_unit *d) {
    memset(d, 0, sizeof *d);
    d->operand_a = take_operand(in);
    d->operand_b = fuzz_choose(in, 2) ? take_operand(in) : d->operand_a;
    const int products = d->operand_a.mantissa_bits + d->operand_b.mantissa_bits;
    const int both_unsigned = !d->operand_a.is_signed && !d->operand_b.is_signed;
    const int is_signed = fuzz_choose(in, 4) != 0, wrap = fuzz_choose(in, 2);
    const int fraction = products + (fuzz_choose(in, 2) ? 0 : fuzz_choose(in, 17));
    const int least = fraction > 1 + is_signed ? fraction : 1 + is_signed;
    if (least > 32 || fraction < -63 || (!is_signed && !both_unsigned && !wrap)) return 0;
    const int bits = fuzz_choose(in, 2) ? 32 : least + fuzz_choose(in, 33 - least);
    d->accumulator = d->outer = fuzz_fixed(bits - fraction, fraction, is_signed);
    d->sum_env = fuzz_plain_env(fuzz_choose(in, SN_STOCHASTIC));
    d->sum_env.overflow = wrap ? SN_OVERFLOW_WRAP : SN_OVERFLOW_SATURATE + fuzz_choose(in, 2);
    d->product_env = d->outer_env = d->sum_env;
    d->fused = d->lanes = 1;
    return 1;
}

static sn_i64 integer_of(const sn_format *f, sn_u64 code) {
    const sn_i64 n = (sn_i64)code;
    return f->is_signed && code >> (f->bits - 1) ? n - ((sn_i64)1 << f->bits) : n;
}

/* The integers of a part, and the largest magnitude among them. */
static sn_i64 integers(const fuzz_block *to, const sn_format *f, const sn_u64 *codes, size_t width, fuzz_part part) {
    sn_i64 largest = 0;
    memset(to->buffer, 0, ((to->rows ? to->rows - 1 : 0) * to->ld + to->columns) * to->size * (to->rows != 0));
    for (size_t i = part.m0; i < part.m1; i++)
        for (size_t j = part.n0; j < part.n1; j++) {
            const sn_i64 n = integer_of(f, codes[i * width + j]);
            const sn_i16 small = (sn_i16)n;
            FUZZ_EXPECT(NULL, small == n);
            if (to->size) memcpy(fuzz_at(to, i - part.m0, j - part.n0), &small, sizeof small);
            if (largest < (n < 0 ? -n : n)) largest = n < 0 ? -n : n;
        }
    return largest;
}

static void run(const fuzz_product *p, const sn_mad_unit *d, fuzz_part part, int isa, int careful) {
    const sn_format *f = &d->accumulator;
    const size_t even = p->k + p->k % 2, m = part.m1 - part.m0, n = part.n1 - part.n0;
    const fuzz_part rows = {part.m0, part.m1, 0, p->k}, columns = {0, p->k, part.n0, part.n1};
    const fuzz_block a = fuzz_room(0, m, even, even + p->gap, 0, sizeof(sn_i16));
    const fuzz_block b = fuzz_room(0, even, n, n + p->gap, 0, sizeof(sn_i16));
    const fuzz_block out = fuzz_room(0, m, n, n + p->gap, 0, sizeof(double));
    fuzz_block c = {NULL, NULL, 0, 0, 0, 0};
    const sn_i64 largest_a = integers(&a, p->fa, p->a, p->k, rows);
    const sn_i64 largest_b = integers(&b, p->fb, p->b, p->n, columns);
    sn_i64 largest_c = 0;
    sn_gemm_integers g;
    FUZZ_EXPECT(NULL, sn_integer_path(d, &g));
    if (p->c) {
        c = fuzz_values(p->fc, p->c, p->n, part, n + 2 * p->gap, 0, 64);
        for (size_t i = part.m0; i < part.m1; i++)
            for (size_t j = part.n0; j < part.n1; j++) {
                const sn_i64 x = integer_of(f, p->c[i * p->n + j]);
                if (largest_c < (x < 0 ? -x : x)) largest_c = x < 0 ? -x : x;
            }
    }
    g.careful = !sn_integers_fit(&g, (ptrdiff_t)p->k, (double)largest_a, (double)largest_b, (double)largest_c) ||
                (careful && !g.wraps);
    g.a = (const sn_i16 *)(const void *)a.buffer;
    g.b = (const sn_i16 *)(const void *)b.buffer;
    g.c = p->c ? (const double *)(const void *)c.buffer : NULL;
    g.out = (double *)(void *)out.buffer;
    g.panel = fuzz_buffer((even / 2 ? even / 2 : 1) * SN_PANEL, sizeof *g.panel);
    g.lda = (ptrdiff_t)a.ld;
    g.ldb = (ptrdiff_t)b.ld;
    g.ldc = (ptrdiff_t)c.ld;
    g.ldo = (ptrdiff_t)out.ld;
    g.m = (ptrdiff_t)m;
    g.n = (ptrdiff_t)n;
    g.k = (ptrdiff_t)even;
    const sn_u64 saved = sn_fp_enter();
    sn_gemm_kernels_for(isa)->integers(&g);
    sn_fp_leave(saved);
    const fuzz_trial t = fuzz_trial_of(p, &d->sum_env);
    char what[80];
    snprintf(what, sizeof what, "%s integers, careful %d, shift %d", sn_kernels_for(isa)->name, g.careful, g.shift);
    fuzz_compare(p, part, &out, 64, what, &t);
    free(a.buffer);
    free(b.buffer);
    free(c.buffer);
    free(out.buffer);
    free(g.panel);
}

static sn_u32 define(const void *unit, const sn_product_codes *g) { return sn_gemm_definition(unit, g); }

void fuzz_integer(fuzz_input *in) {
    sn_mad_unit d;
    if (!take_unit(in, &d)) return;
    const int careful = fuzz_choose(in, 4) == 3;
    fuzz_product p = {.fa = &d.operand_a, .fb = &d.operand_b, .fc = &d.outer, .fo = &d.outer};
    fuzz_take_product(in, &p, HIGHEST, LARGEST, DEEPEST, 1);
    fuzz_define(&p, define, &d);
    for (int isa = 0; isa <= sn_detect_isa(); isa++)
        for (int which = 0; which < FUZZ_PARTS; which++) {
            const fuzz_part part = fuzz_part_of(&p, which);
            if (part.m0 < part.m1 && part.n0 < part.n1) run(&p, &d, part, isa, careful);
        }
    fuzz_free_product(&p);
}

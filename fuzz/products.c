#include "products.h"

/* ---- formats ----------------------------------------------------------------------------------------------------- */

int fuzz_is_fixed(const sn_format *f) { return f->kind == SN_FIXED; }

sn_format fuzz_carrier(int bits) { return bits == 32 ? fuzz_float(8, 23, 127) : fuzz_float(11, 52, 1023); }

sn_u64 fuzz_to_carrier(const sn_format *f, sn_u64 code, int bits) {
    const sn_format carrier = fuzz_carrier(bits);
    const sn_env env = fuzz_plain_env(SN_TOWARD_ZERO);
    sn_u32 flags = 0;
    return sn_convert(f, code, &carrier, &env, 0, &flags);
}

static int exponent_bits(const sn_format *f) { return f->bits - f->is_signed - f->mantissa_bits; }

sn_format fuzz_take_float(fuzz_input *in, int max_bits, int max_exponent_bits) {
    const sn_format f = fuzz_take_format(in, max_bits);
    if (!fuzz_is_fixed(&f) && f.has_zero && exponent_bits(&f) <= max_exponent_bits) return f;
    const int e = 2 + f.bits % 7;
    return fuzz_float(e, 1 + (f.mantissa_bits & 127) % 10, (1 << (e - 1)) - 1);
}

sn_format fuzz_take_sum(fuzz_input *in, int max_bits, int max_exponent_bits) {
    const int which = fuzz_choose(in, 8);
    if (which == 0) return fuzz_carrier(32);
    if (which >= 6) return fuzz_float(4 + which % 2 * 2, 4 + fuzz_choose(in, 7), 15);
    const sn_format f = fuzz_take_format(in, which < 4 && max_bits > 16 ? 16 : max_bits);
    const int wide = !fuzz_is_fixed(&f) && exponent_bits(&f) > max_exponent_bits;
    return f.has_zero && !wide ? f : fuzz_carrier(32);
}

fuzz_number fuzz_decode(const sn_format *f, sn_u64 code) {
    fuzz_number x = {0, FUZZ_ZERO, 0, 0, 0};
    const int m = f->mantissa_bits;
    code &= fuzz_mask(f);
    x.sign = f->is_signed && code >> (f->bits - 1);
    if (fuzz_is_fixed(f)) {
        x.sig = x.sign ? fuzz_mask(f) - code + 1 : code;
        x.exp = x.exponent = -m;
        x.kind = x.sig ? FUZZ_FINITE : FUZZ_ZERO;
        return x;
    }
    const sn_u64 magnitude = code & ~((sn_u64)f->is_signed << (f->bits - 1));
    const int field = (int)(magnitude >> m);
    x.kind = FUZZ_FINITE;
    if (f->nan_is_negative_zero && x.sign && !magnitude) x.kind = FUZZ_NAN;
    if (f->has_nan && !f->nan_is_negative_zero && magnitude >= f->nan_first) x.kind = FUZZ_NAN;
    if (f->has_inf && magnitude == f->inf_code) x.kind = FUZZ_INF;
    if (x.kind != FUZZ_FINITE) return x;
    const sn_u64 one = (sn_u64)1 << m, fraction = magnitude % one;
    switch (f->lowest) {
    case SN_LOWEST_NORMAL:
        x.sig = magnitude || !f->has_zero ? one + fraction : 0;
        x.exponent = f->emin + field;
        break;
    case SN_LOWEST_ZERO:
        x.sig = field ? one + fraction : 0;
        x.exponent = f->emin + field - 1;
        break;
    default: x.sig = field ? one + fraction : fraction; x.exponent = f->emin + (field ? field - 1 : 0);
    }
    x.exp = x.exponent - m;
    if (!x.sig) {
        x.kind = FUZZ_ZERO;
        x.sign = x.sign && f->negative_zero;
    }
    return x;
}

sn_format fuzz_integers(int last) { return fuzz_float(2, 61, -60 - last); }

sn_u64 fuzz_integer_code(sn_i64 n) { return n < 0 ? (sn_u64)1 << 63 | (0 - (sn_u64)n) : (sn_u64)n; }

/* ---- matrices ---------------------------------------------------------------------------------------------------- */

/* The input says up to 32 codes, of any exponent, or of some that lie together, or nearly the same large significands,
 * whose sums carry; the others are drawn from these. */
static sn_u64 *take_codes(fuzz_input *in, const sn_format *f, size_t count, int quiet) {
    sn_u64 *codes = fuzz_buffer(count, sizeof *codes);
    const int how = fuzz_choose(in, 256), together = how & 1, m = f->mantissa_bits < 0 ? f->bits : f->mantissa_bits;
    const int room = m < 61 ? m + 3 : 64;
    const size_t pool = (size_t)(how & 2 ? 4 : 32);
    const sn_u64 any = room < 64 ? ((sn_u64)1 << room) - 1 : ~(sn_u64)0, close = how & 8 ? 3 : any;
    const sn_u64 ones = how & 16 ? any >> 3 : 0, base = fuzz_take_code(in, f) | ones;
    sn_u32 mix = (sn_u32)how + 1;
    for (size_t i = 0; i < count; i++) {
        const sn_u64 sign = how & 4 && (mix >> 31 || i < pool) ? f->sign_mask : 0;
        sn_u64 code;
        if (i >= pool) {
            mix = mix * 1664525u + 1013904223u;
            code = codes[(mix >> 16) % pool] ^ sign;
        } else if (together) {
            code =
                base ^ (fuzz_take(in, how & 8 ? 1 : (room + 7) / 8) & close) ^ (sign && fuzz_choose(in, 2) ? sign : 0);
        } else {
            code = fuzz_take_code(in, f);
        }
        code &= fuzz_mask(f);
        codes[i] = quiet && fuzz_is_nan(f, code) ? f->nan_code : code;
    }
    return codes;
}

void fuzz_take_product(fuzz_input *in, fuzz_product *p, size_t m, size_t n, size_t k, int quiet) {
    const int shape = fuzz_choose(in, 256), big = fuzz_choose(in, 8); /* most are small: more of them */
    const size_t limits[3] = {big < 6 && m > 3 ? 3 : m,
                              big < 6 && n > 6     ? 6
                              : big == 6 && n > 20 ? 20
                                                   : n,
                              big < 6 && k > 8 && k <= 40 ? 8 : k};
    p->m = 1 + (size_t)fuzz_choose(in, (int)limits[0]);
    p->n = 1 + (size_t)fuzz_choose(in, (int)limits[1]);
    p->k = (size_t)fuzz_choose(in, (int)limits[2] + 1);
    p->row_cut = shape & 1 ? p->m : (size_t)fuzz_choose(in, (int)p->m + 1);
    p->column_cut = shape & 2 ? p->n : (size_t)fuzz_choose(in, (int)p->n + 1);
    p->gap = shape & 4 ? 0 : (size_t)(shape >> 4 & 3);
    p->a = take_codes(in, p->fa, p->m * p->k, quiet);
    p->b = take_codes(in, p->fb, p->k * p->n, quiet);
    p->c = shape & 8 ? take_codes(in, p->fc, p->m * p->n, quiet) : NULL;
    p->out = fuzz_buffer(p->m * p->n, sizeof *p->out);
    p->words = NULL;
    p->steps = 0;
}

void fuzz_take_words(fuzz_input *in, fuzz_product *p, size_t steps) {
    const size_t count = p->m * p->n * steps * 2;
    sn_u32 mix = (sn_u32)fuzz_take(in, 4);
    p->steps = steps;
    p->words = fuzz_buffer(count, sizeof *p->words);
    for (size_t i = 0; i < count; i++) {
        mix = mix * 1664525u + 1013904223u;
        p->words[i] = mix ^ mix >> 15;
    }
}

void fuzz_free_product(fuzz_product *p) {
    free(p->a);
    free(p->b);
    free(p->c);
    free(p->out);
    free(p->words);
}

fuzz_part fuzz_part_of(const fuzz_product *p, int which) {
    const fuzz_part part = {which & 1 ? p->row_cut : 0, which & 1 ? p->m : p->row_cut, which & 2 ? p->column_cut : 0,
                            which & 2 ? p->n : p->column_cut};
    return part;
}

/* Only the block's own elements may be touched: what lies in front of them is an address, not an object. */
static char *before(char *p, size_t bytes) { return (char *)((uintptr_t)p - bytes); }

fuzz_block fuzz_room(size_t first, size_t rows, size_t columns, size_t ld, size_t padding, size_t size) {
    const size_t count = rows ? (rows - 1) * ld + columns + padding : 0;
    fuzz_block b = {fuzz_buffer(count, size), NULL, ld, rows, columns, size};
    memset(b.buffer, 0xa5, count * size);
    b.origin = before(b.buffer, first * ld * size);
    return b;
}

void *fuzz_at(const fuzz_block *b, size_t row, size_t column) { return b->buffer + (row * b->ld + column) * b->size; }

int fuzz_gaps_kept(const fuzz_block *b) {
    for (size_t row = 0; row + 1 < b->rows; row++) {
        const sn_u8 *gap = fuzz_at(b, row, b->columns);
        for (size_t i = 0; i < (b->ld - b->columns) * b->size; i++)
            if (gap[i] != 0xa5) return 0;
    }
    return 1;
}

static fuzz_block codes_of(const sn_u64 *codes, size_t width, fuzz_part part, size_t gap) {
    const size_t rows = part.m1 - part.m0, columns = part.n1 - part.n0;
    const fuzz_block b = fuzz_room(part.m0, rows, columns, columns + gap, 0, sizeof *codes);
    for (size_t i = 0; i < rows && columns; i++)
        memcpy(fuzz_at(&b, i, 0), codes + (part.m0 + i) * width + part.n0, columns * sizeof *codes);
    return b;
}

sn_u32 fuzz_define(fuzz_product *p, fuzz_definition *define, const void *unit) {
    sn_u32 lost = 0;
    for (int which = 0; which < FUZZ_PARTS; which++) {
        const fuzz_part part = fuzz_part_of(p, which), rows = {part.m0, part.m1, 0, p->k},
                        columns = {0, p->k, part.n0, part.n1};
        if (part.m0 == part.m1 || part.n0 == part.n1) continue;
        const fuzz_block a = codes_of(p->a, p->k, rows, p->gap), b = codes_of(p->b, p->n, columns, p->gap + 1);
        const fuzz_block out =
            fuzz_room(part.m0, part.m1 - part.m0, part.n1 - part.n0, part.n1 - part.n0 + p->gap, 0, sizeof(sn_u64));
        fuzz_block c = {NULL, NULL, 0, 0, 0, 0};
        if (p->c) c = codes_of(p->c, p->n, part, p->gap + 2);
        sn_product_codes g;
        memset(&g, 0, sizeof g);
        g.a = (const sn_u64 *)(const void *)a.origin;
        g.b = (const sn_u64 *)(const void *)b.origin;
        g.c = (const sn_u64 *)(const void *)c.origin;
        g.out = (sn_u64 *)(void *)out.origin;
        g.words = p->words;
        g.lda = (ptrdiff_t)a.ld;
        g.ldb = (ptrdiff_t)b.ld;
        g.ldc = (ptrdiff_t)c.ld;
        g.ldo = (ptrdiff_t)out.ld;
        g.m0 = (ptrdiff_t)part.m0;
        g.m1 = (ptrdiff_t)part.m1;
        g.n = (ptrdiff_t)(part.n1 - part.n0);
        g.n0 = (ptrdiff_t)part.n0;
        g.n_total = (ptrdiff_t)p->n;
        g.k = (ptrdiff_t)p->k;
        lost |= define(unit, &g);
        FUZZ_EXPECT(NULL, fuzz_gaps_kept(&out));
        for (size_t i = 0; i < out.rows; i++)
            memcpy(p->out + (part.m0 + i) * p->n + part.n0, fuzz_at(&out, i, 0), out.columns * sizeof(sn_u64));
        free(a.buffer);
        free(b.buffer);
        free(c.buffer);
        free(out.buffer);
    }
    return lost;
}

fuzz_block fuzz_values(const sn_format *f, const sn_u64 *codes, size_t width, fuzz_part part, size_t ld, size_t padding,
                       int bits) {
    const size_t rows = part.m1 - part.m0, columns = part.n1 - part.n0;
    const fuzz_block b = fuzz_room(part.m0, rows, columns, ld, padding, (size_t)bits / 8);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < columns; j++) {
            const sn_u64 x = fuzz_to_carrier(f, codes[(part.m0 + i) * width + part.n0 + j], bits);
            memcpy(fuzz_at(&b, i, j), &x, b.size);
        }
        memset(fuzz_at(&b, i, columns), 0, (i + 1 < rows ? ld - columns : padding) * b.size);
    }
    return b;
}

void fuzz_compare(const fuzz_product *p, fuzz_part part, const fuzz_block *out, int bits, const char *what,
                  const fuzz_trial *t) {
    for (size_t i = 0; i < out->rows; i++)
        for (size_t j = 0; j < out->columns; j++) {
            const size_t row = part.m0 + i, column = part.n0 + j;
            const sn_u64 want = fuzz_to_carrier(p->fo, p->out[row * p->n + column], bits);
            sn_u64 got = 0;
            memcpy(&got, fuzz_at(out, i, j), out->size);
            if (got == want) continue;
            fprintf(stderr, "%s: element (%zu, %zu) of %zu x %zu, k %zu, c %d, is %llx, not %llx\n", what, row, column,
                    p->m, p->n, p->k, p->c != NULL, (unsigned long long)got, (unsigned long long)want);
            fuzz_fail(__FILE__, __LINE__, t, "the fast path's result is the definition's");
        }
    FUZZ_EXPECT(t, fuzz_gaps_kept(out));
}

fuzz_trial fuzz_trial_of(const fuzz_product *p, const sn_env *env) {
    fuzz_trial t;
    memset(&t, 0, sizeof t);
    t.op = SN_OP_fma;
    t.context.operand[0] = *p->fa;
    t.context.operand[1] = *p->fb;
    t.context.operand[2] = *p->fc;
    t.context.out = *p->fo;
    t.context.env = *env;
    return t;
}

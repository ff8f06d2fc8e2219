/* Sums in posits and takums over values, on every instruction set, against sums of single numbers, rounded to odd in
 * binary64 and then by their bit string. */
#include "products/tapered/tapered.h"
#include "fuzz.h"
#include "softnum/word/machine.h"

enum { HIGHEST = 5, WIDEST = 70, DEEPEST = 12 };

/* Of the domain of products/tapered/body.h, for a carrier. */
static sn_tapered take_format(fuzz_input *in, int carrier) {
    sn_tapered f = {0, 0, 0};
    f.takum = carrier == 64 && fuzz_choose(in, 2);
    f.es = f.takum ? 0 : fuzz_choose(in, carrier == 64 ? SN_TAPERED_MOST_ES + 1 : 4);
    const int least = f.takum ? 6 : SN_TAPERED_LEAST;
    int most = f.takum ? 30 : 26 + f.es;        /* products have 52 bits */
    if (carrier == 32) most = (74 >> f.es) + 2; /* products are multiples of 2^-148 */
    if (carrier == 32 && most > 24 + f.es) most = 24 + f.es;
    if (most > SN_TAPERED_MOST) most = SN_TAPERED_MOST;
    f.bits = least + fuzz_choose(in, most - least + 1);
    return f;
}

static sn_u64 take_code(fuzz_input *in, const sn_tapered *f) {
    const int how = fuzz_choose(in, 8);
    const sn_u64 nar = sn_tapered_nar(f), mask = 2 * nar - 1;
    if (how < 4) return fuzz_take(in, 4) & mask;
    if (how < 6) return ((nar >> 1) + (sn_u64)fuzz_choose(in, 16) - 8) & mask; /* beside 1 */
    return (nar * (sn_u64)(how - 6) + (sn_u64)fuzz_choose(in, 8) - 4) & mask;  /* beside 0 and NaR */
}

static double number_of(sn_u64 bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static sn_u64 bits_of(double x) {
    sn_u64 bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* One number of the carrier. */
static void put(char *at, int carrier, double x) {
    const float single = (float)x;
    if (carrier == 64)
        memcpy(at, &x, sizeof x);
    else
        memcpy(at, &single, sizeof single);
}

static double get(const char *at, int carrier) {
    double x;
    float single;
    if (carrier == 64) {
        memcpy(&x, at, sizeof x);
        return x;
    }
    memcpy(&single, at, sizeof single);
    return (double)single;
}

/* Numbers of rows x columns, gap more between rows, in a buffer of their exact size. */
static char *numbers(const double *x, size_t rows, size_t columns, size_t gap, int carrier) {
    const size_t size = (size_t)carrier / 8, count = rows && columns ? (rows - 1) * (columns + gap) + columns : 0;
    char *to = fuzz_buffer(count, size);
    memset(to, 0xa5, count * size);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            put(to + (i * (columns + gap) + j) * size, carrier, x[i * columns + j]);
    return to;
}

void fuzz_tapered(fuzz_input *in) {
    const int carrier = fuzz_choose(in, 2) ? 32 : 64, rounded = fuzz_choose(in, 2), alike = fuzz_choose(in, 2);
    const sn_tapered sum = take_format(in, carrier),
                     product = rounded ? take_format(in, carrier) : (sn_tapered){0, 0, 0};
    const sn_tapered fa = alike ? sum : take_format(in, carrier), fb = alike ? sum : take_format(in, carrier);
    const size_t m = 1 + (size_t)fuzz_choose(in, HIGHEST), n = 1 + (size_t)fuzz_choose(in, WIDEST);
    const size_t k = 1 + (size_t)fuzz_choose(in, DEEPEST), gap = (size_t)fuzz_choose(in, 3);
    double *a = fuzz_buffer(m * k, sizeof *a), *b = fuzz_buffer(k * n, sizeof *b), *c = fuzz_buffer(m * n, sizeof *c);
    sn_u32 mix = (sn_u32)fuzz_take(in, 4);
    double pool[3][8];
    for (int i = 0; i < 8; i++) {
        pool[0][i] = number_of(sn_tapered_value(&fa, take_code(in, &fa)));
        pool[1][i] = number_of(sn_tapered_value(&fb, take_code(in, &fb)));
        pool[2][i] = number_of(sn_tapered_value(&sum, take_code(in, &sum)));
    }
    for (size_t i = 0; i < m * k + k * n + m * n; i++) {
        mix = mix * 1664525u + 1013904223u;
        const size_t which = mix >> 29, after_a = i - m * k, after_b = after_a - k * n;
        if (i < m * k)
            a[i] = pool[0][which];
        else if (after_a < k * n)
            b[after_a] = pool[1][which];
        else
            c[after_b] = pool[2][which];
    }

    double *want = fuzz_buffer(m * n, sizeof *want);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double acc = c[i * n + j];
            for (size_t l = 0; l < k; l++) {
                double p = a[i * k + l] * b[l * n + j];
                if (rounded) p = number_of(sn_tapered_value(&product, sn_tapered_round(&product, bits_of(p))));
                acc = number_of(sn_tapered_value(&sum, sn_tapered_round(&sum, bits_of(sn_add_odd64(acc, p)))));
            }
            want[i * n + j] = acc;
        }

    for (int isa = 0; isa <= sn_detect_isa(); isa++) {
        char *x = numbers(a, m, k, gap, carrier), *y = numbers(b, k, n, gap, carrier),
             *z = numbers(c, m, n, gap, carrier);
        char *edge = fuzz_buffer(k * SN_TAPERED_COLUMNS, (size_t)carrier / 8);
        const sn_tapered_sums s = {sum,
                                   product,
                                   carrier,
                                   x,
                                   y,
                                   z,
                                   edge,
                                   (ptrdiff_t)(k + gap),
                                   1,
                                   (ptrdiff_t)(n + gap),
                                   (ptrdiff_t)(n + gap),
                                   (ptrdiff_t)m,
                                   (ptrdiff_t)n,
                                   (ptrdiff_t)k};
        const sn_u64 saved = sn_fp_enter();
        sn_tapered_kernel_for(isa)(&s);
        sn_fp_leave(saved);
        for (size_t i = 0; i < m; i++)
            for (size_t j = 0; j < n; j++) {
                const double got = get(z + (i * (n + gap) + j) * (size_t)carrier / 8, carrier), right = want[i * n + j];
                if (got == right || (got != got && right != right)) continue;
                fprintf(stderr,
                        "isa %d, carrier %d: sum {%d, %d, %d}, product {%d, %d, %d}, element (%zu, %zu) of %zu x %zu, "
                        "k %zu, is %a, not %a\n",
                        isa, carrier, sum.bits, sum.takum, sum.es, product.bits, product.takum, product.es, i, j, m, n,
                        k, got, right);
                fuzz_fail(__FILE__, __LINE__, NULL, "sums in lanes are those of single numbers");
            }
        free(x);
        free(y);
        free(z);
        free(edge);
    }
    free(a);
    free(b);
    free(c);
    free(want);
}

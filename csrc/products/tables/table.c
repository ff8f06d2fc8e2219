#include "products/tables/table.h"

extern void sn_table_gemm_avx512(const sn_table_sums *s);

void sn_table_look_up(const sn_u8 *table, ptrdiff_t columns, const sn_u8 *a, const sn_u8 *b, sn_u8 *out, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = table[a[i] * columns + b[i]];
}

/* Sums that go on side by side: a look-up waits for its own sum's last one only. */
enum { SIDE_BY_SIDE = 8 };

static void some_sums(const sn_table_sums *s, ptrdiff_t row, ptrdiff_t column, int count) {
    sn_u8 *acc = s->acc + row * s->acc_row + column;
    const sn_u8 *a = s->a + row * s->a_row, *b = s->b + column;
    sn_u32 sums[SIDE_BY_SIDE];
    for (int j = 0; j < count; j++)
        sums[j] = acc[j];
    for (ptrdiff_t k = 0; k < s->k; k++, a += s->a_step, b += s->b_step) {
        const sn_u32 *products = s->product + *a * s->b_codes;
        for (int j = 0; j < count; j++)
            sums[j] = s->sum[products[b[j]] + sums[j]];
    }
    for (int j = 0; j < count; j++)
        acc[j] = (sn_u8)sums[j];
}

static void portable(const sn_table_sums *s) {
    for (ptrdiff_t column = 0; column < s->n; column += SIDE_BY_SIDE)
        for (ptrdiff_t row = 0; row < s->m; row++) {
            if (s->n - column >= SIDE_BY_SIDE)
                some_sums(s, row, column, SIDE_BY_SIDE); /* a count that the compiler knows */
            else
                some_sums(s, row, column, (int)(s->n - column));
        }
}

void sn_table_gemm(int isa, const sn_table_sums *s) {
#if defined(__x86_64__)
    if (isa == SN_ISA_AVX512) { /* the gathers of AVX2 are no faster than loads */
        sn_table_gemm_avx512(s);
        return;
    }
#endif
    (void)isa;
    portable(s);
}

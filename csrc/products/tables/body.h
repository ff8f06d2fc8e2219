/* Sums by look-up tables: included once per instruction set whose gathers are no faster than loads, by
 * targets/gemm.h. */
#ifndef SOFTNUM_TABLE_BODY_H
#define SOFTNUM_TABLE_BODY_H

#include "products/tables/table.h"

/* Sums that go on side by side: a look-up waits for its own sum's last one only. */
enum { SN_TABLE_SUMS = 8 };

static void SN_(table_sums)(const sn_table_sums *s, ptrdiff_t row, ptrdiff_t column, int count) {
    sn_u8 *acc = s->acc + row * s->acc_row + column;
    const sn_u8 *a = s->a + row * s->a_row, *b = s->b + column;
    sn_u32 sums[SN_TABLE_SUMS];
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

static void SN_(table_gemm)(const sn_table_sums *s) {
    for (ptrdiff_t column = 0; column < s->n; column += SN_TABLE_SUMS)
        for (ptrdiff_t row = 0; row < s->m; row++) {
            if (s->n - column >= SN_TABLE_SUMS)
                SN_(table_sums)(s, row, column, SN_TABLE_SUMS); /* a count that the compiler knows */
            else
                SN_(table_sums)(s, row, column, (int)(s->n - column));
        }
}

#endif

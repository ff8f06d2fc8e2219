/* Arithmetic by look-up tables, for formats whose codes are few: softnum.formats.custom makes the tables. */
#ifndef SOFTNUM_TABLE_H
#define SOFTNUM_TABLE_H

#include <stddef.h>

#include "dispatch/kernels.h"

typedef unsigned char sn_u8;

/* out[i] = table[a[i]][b[i]] for i in [0, n), in rows of `columns` entries; every index lies in the table. */
void sn_table_look_up(const sn_u8 *table, ptrdiff_t columns, const sn_u8 *a, const sn_u8 *b, sn_u8 *out, ptrdiff_t n);

/* Sums of products, each a chain of look-ups: acc = sum[product[a][b] + acc] for k = 0, 1, ..., K - 1. An entry of
 * product is where the row of its product begins in sum, which holds a row for each product that occurs and in it the
 * result for each code of the accumulator. sum has SN_TABLE_SLACK bytes more than entries: vectors are read from it. */
enum { SN_TABLE_SLACK = 3 };

typedef struct {
    const sn_u32 *product; /* [code of a][code of b], in rows of b_codes entries */
    const sn_u8 *sum;
    const sn_u8 *a, *b; /* codes: [m][k], [k][n] */
    sn_u8 *acc;         /* codes: [m][n]: where the sums begin, and what they become */
    ptrdiff_t b_codes;
    ptrdiff_t a_row, a_step, b_step, acc_row; /* elements from row to row, and from k to k */
    ptrdiff_t m, n, k;
} sn_table_sums;

/* By the instructions of an SN_ISA_*; look-ups are exact, so that they do not matter to the result. */
typedef void sn_table_kernel(const sn_table_sums *s);
sn_table_kernel *sn_table_kernel_for(int isa);

#endif

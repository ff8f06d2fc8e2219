#include "products/tables/table.h"

SN_DISPATCH(sn_table_kernel, sn_table_kernel)

void sn_table_look_up(const sn_u8 *table, ptrdiff_t columns, const sn_u8 *a, const sn_u8 *b, sn_u8 *out, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = table[a[i] * columns + b[i]];
}

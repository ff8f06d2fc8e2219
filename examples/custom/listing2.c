/* A multiply-add unit that takes four products at a time: each is rounded to (1, 5, 2), as softnum's own multiplication
 * rounds. The constant is what softnum.c_text.format_constant("e5m2", "e5m2") gives. */
#include "softnum/softnum.h"

typedef struct {
    uint s : 1;
    uint e : 5;
    uint m : 2;
} new_fp;

static const sn_format e5m2 = {
    SN_FLOAT,            /* kind */
    8,                   /* bits */
    1,                   /* is_signed */
    2,                   /* mantissa_bits */
    -14,                 /* emin */
    15,                  /* emax */
    SN_LOWEST_SUBNORMAL, /* lowest */
    1,                   /* has_zero */
    1,                   /* negative_zero */
    1,                   /* has_inf */
    1,                   /* has_nan */
    0,                   /* nan_is_negative_zero */
    0x2ull,              /* quiet_bit */
    0x7bull,             /* max_code */
    0x7cull,             /* inf_code */
    0x7dull,             /* nan_first */
    0x7eull,             /* nan_code */
    0x7full,             /* magnitude_mask */
    0x80ull,             /* sign_mask */
    0,                   /* saturating */
    0,                   /* p3109 */
};

static sn_u64 code(new_fp x) { return (sn_u64)(x.s << 7 | x.e << 2 | x.m); }

static new_fp multiply(new_fp a, new_fp b) {
    const sn_env nearest_even = {0};
    sn_u32 flags = 0;
    const sn_u64 c = sn_multiply(&e5m2, code(a), &e5m2, code(b), &e5m2, &nearest_even, 0, &flags);
    new_fp product;
    product.s = (uint)(c >> 7) & 1;
    product.e = (uint)(c >> 2) & 31;
    product.m = (uint)c & 3;
    return product;
}

new_fp4 mad(new_fp4 a, new_fp4 b) {
    new_fp4 products;
    products.x = multiply(a.x, b.x);
    products.y = multiply(a.y, b.y);
    products.z = multiply(a.z, b.z);
    products.w = multiply(a.w, b.w);
    return products;
}

/* The loop of products/tapered/body.h in one carrier, of T_BITS bits. */

#if T_BITS == 32
#define T_F float
#define T_V sn_vf
#define T_U sn_vu
#define T_I sn_vi
#define T_u sn_u32
#define T_M 23
#define T_BIAS 127
#define T_N SN_V
#define T_LEFT SN_LEFT32
#define T_RIGHT SN_RIGHT32
#define T_MAX SN_MAX
#define T_MIN SN_MIN
#define T_SELECT SN_SELECT32
#define SN_T(name) SN_(name##32)
#else
#define T_F double
#define T_V sn_wf
#define T_U sn_wu
#define T_I sn_wi
#define T_u sn_u64
#define T_M 52
#define T_BIAS 1023
#define T_N SN_W
#define T_LEFT SN_LEFT64
#define T_RIGHT SN_RIGHT64
#define T_MAX SN_MAX64
#define T_MIN(a, b) (sn_wi) SN_SELECT64((a) < (b), a, b)
#define T_SELECT SN_SELECT64
#define SN_T(name) SN_(name##64)
#endif
#define T_SIGN ((T_u)1 << (T_BITS - 1))
#define T_INFINITY ((T_u)(2 * T_BIAS + 1) << T_M)

/* v, exact or rounded to odd, to a value of the format; takum is known to the compiler. */
SN_INLINE T_V SN_T(tapered)(const sn_tapered_lanes *t, int takum, T_V v) {
    const T_U zero = {0}, one = zero + 1, bits = (T_U)v, given = bits & ~T_SIGN;
    const T_I most = (T_I)(zero + (T_u)t->most), least = (T_I)(zero + (T_u)t->least);
    T_I magnitude = T_MIN((T_I)given, most);
    magnitude = T_MAX(magnitude, least);
    T_U pattern = (T_U)magnitude + (T_u)t->rebias, back = zero + (T_u)t->rebias, cut;
    if (takum) {
        const T_I up = magnitude >= (T_I)(zero + ((T_u)T_BIAS << T_M));
        const T_U nearer = T_SELECT(up, one << T_M, zero - (one << T_M)); /* e + 1, or e - 1 */
        const T_U p = ((((T_U)magnitude >> T_M) - (T_u)T_BIAS) ^ ~(T_U)up) + 1;
        /* of a number below 2^T_M, set behind that: its own exponent */
        const T_U scale = zero + ((T_u)(T_BIAS + T_M) << T_M);
        const T_U r = ((T_U)((T_V)(scale | p) - (T_V)scale) >> T_M) - (T_u)T_BIAS;
        pattern += nearer, back += nearer;
        cut = r + (T_u)t->cut;
    } else {
        const T_I k = (T_I)(pattern >> t->shift) - (T_I)(zero + (T_u)t->offset);
        cut = (T_U)(k ^ (T_I)(k < 0)) + (T_u)t->cut;
    }
    const T_U unit = T_LEFT(one, cut), odd = T_RIGHT(pattern, cut) & 1;
    pattern = (pattern + (unit >> 1) + odd - 1) & (zero - unit);
    T_U rounded = (pattern - back) | (bits & T_SIGN);
    rounded &= (T_U)(given != 0);
    return (T_V)T_SELECT((T_I)given >= (T_I)(zero + T_INFINITY), zero + (T_INFINITY | T_INFINITY >> 1), rounded);
}

SN_INLINE void SN_T(tapered_row)(const sn_tapered_sums *s, const sn_tapered_lanes *sum, const sn_tapered_lanes *product,
                                 int takum, int of_product, int vectors, const T_F *a, const T_F *b, ptrdiff_t b_step,
                                 T_F *acc) {
    T_V sums[SN_SIDE_BY_SIDE];
    for (int v = 0; v < vectors; v++)
        memcpy(&sums[v], acc + v * T_N, sizeof sums[v]);
    for (ptrdiff_t k = 0; k < s->k; k++, a += s->a_step, b += b_step) {
        const T_V x = (T_V){0} + *a;
        for (int v = 0; v < vectors; v++) {
            T_V y;
            memcpy(&y, b + v * T_N, sizeof y);
            if (of_product >= 0) {
                y = SN_T(tapered)(product, of_product, SN_T(product_odd)(x, y));
                sums[v] = SN_T(tapered)(sum, takum, SN_T(sum_odd)(y, (T_V){0} + 1, sums[v]));
            } else {
                sums[v] = SN_T(tapered)(sum, takum, SN_T(sum_odd)(x, y, sums[v]));
            }
        }
    }
    for (int v = 0; v < vectors; v++)
        memcpy(acc + v * T_N, &sums[v], sizeof sums[v]);
}

/* A panel of columns, all rows of a. */
SN_INLINE void SN_T(tapered_panel)(const sn_tapered_sums *s, int takum, int of_product, int vectors, ptrdiff_t column) {
    const sn_tapered_lanes sum = sn_tapered_prepare(&s->sum, T_BITS);
    const sn_tapered_lanes product = of_product >= 0 ? sn_tapered_prepare(&s->product, T_BITS) : sum;
    const ptrdiff_t width = (ptrdiff_t)vectors * T_N, valid = s->n - column < width ? s->n - column : width;
    const T_F *b = (const T_F *)s->b + column;
    ptrdiff_t b_step = s->b_step;
    if (valid < width) { /* whole vectors are read */
        T_F *edge = s->edge;
        for (ptrdiff_t k = 0; k < s->k; k++) {
            memset(edge + k * width, 0, (size_t)width * sizeof(T_F));
            memcpy(edge + k * width, b + k * b_step, (size_t)valid * sizeof(T_F));
        }
        b = edge, b_step = width;
    }
    for (ptrdiff_t row = 0; row < s->m; row++) {
        T_F *acc = (T_F *)s->acc + row * s->acc_row + column, sums[SN_TAPERED_COLUMNS] = {0};
        memcpy(sums, acc, (size_t)valid * sizeof(T_F));
        SN_T(tapered_row)(s, &sum, &product, takum, of_product, vectors, (const T_F *)s->a + row * s->a_row, b, b_step,
                          sums);
        memcpy(acc, sums, (size_t)valid * sizeof(T_F));
    }
}

SN_INLINE void SN_T(tapered_columns)(const sn_tapered_sums *s, int takum, int of_product) {
    for (ptrdiff_t column = 0; column < s->n;) {
        const int vectors = s->n - column > T_N ? SN_SIDE_BY_SIDE : 1;
        if (vectors == 1)
            SN_T(tapered_panel)(s, takum, of_product, 1, column);
        else
            SN_T(tapered_panel)(s, takum, of_product, SN_SIDE_BY_SIDE, column);
        column += (ptrdiff_t)vectors * T_N;
    }
}

/* of_product: that the product is not rounded (-1), or to a posit (0), or to a takum (1). */
static void SN_T(tapered_gemm)(const sn_tapered_sums *s) {
    switch (s->sum.takum * 3 + (s->product.bits ? 1 + s->product.takum : 0)) {
    case 0: SN_T(tapered_columns)(s, 0, -1); break;
    case 1: SN_T(tapered_columns)(s, 0, 0); break;
    case 2: SN_T(tapered_columns)(s, 0, 1); break;
    case 3: SN_T(tapered_columns)(s, 1, -1); break;
    case 4: SN_T(tapered_columns)(s, 1, 0); break;
    default: SN_T(tapered_columns)(s, 1, 1);
    }
}

#undef T_F
#undef T_V
#undef T_U
#undef T_I
#undef T_u
#undef T_M
#undef T_BIAS
#undef T_N
#undef T_LEFT
#undef T_RIGHT
#undef T_MAX
#undef T_MIN
#undef T_SELECT
#undef SN_T
#undef T_SIGN
#undef T_INFINITY
#undef T_BITS

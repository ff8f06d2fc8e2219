/* GEMM in binary32, any deterministic rounding: included by products/gemm/body.h, once per instruction set.
 *
 * Each product and sum is rounded to odd in binary32 first, then as the unit says, by integer arithmetic on patterns
 * (round_to_value32 in lanes/round.h). Domain: operands exact in binary32, m + 3 <= 24, last places at least 2^-147:
 * the odd number then lies on the same side of every value and every midpoint of the format as the exact one, and is
 * one of them only if the exact one is (Boldo and Melquiond 2008), in every mode.
 *
 * Round to odd: lanes/odd.h.
 *
 * Instructions for a vector of 16 products, AVX-512: 4 for the odd sum (2 fma, test, select) and about 18 to round it.
 */

SN_INLINE sn_vf SN_(round_any)(const sn_rounding *r, int family, sn_vf v) {
    switch (family) {
    case SN_FAMILY_EVEN: return (sn_vf)SN_(round_to_value32)(r, SN_FAMILY_EVEN, 0, (sn_vu)v, (sn_vu){0});
    case SN_FAMILY_NEAREST: return (sn_vf)SN_(round_to_value32)(r, SN_FAMILY_NEAREST, 0, (sn_vu)v, (sn_vu){0});
    case SN_FAMILY_DIRECTED: return (sn_vf)SN_(round_to_value32)(r, SN_FAMILY_DIRECTED, 0, (sn_vu)v, (sn_vu){0});
    default: return (sn_vf)SN_(round_to_value32)(r, SN_FAMILY_ODD, 0, (sn_vu)v, (sn_vu){0});
    }
}

/* One row of a panel; the family of the sums is known to the compiler. */
SN_INLINE void SN_(odd_row)(const sn_gemm_unit *u, const sn_gemm_args *g, int family, ptrdiff_t row, ptrdiff_t column) {
    const float *a = (const float *)g->a + row * g->lda, *panel = g->panel;
    const ptrdiff_t left = g->n - column, valid = left < SN_PANEL ? left : SN_PANEL;
    const int vectors = (int)((valid + SN_V - 1) / SN_V), down = u->sum64.rounding == SN_DOWN;
    const sn_vf one = SN_(broadcast)(1), minus_zero = SN_(broadcast)(-0.f);
    float edge[SN_PANEL] = {0};
    sn_vf acc[SN_PANEL / SN_V];
    if (g->c) memcpy(edge, (const float *)g->c + row * g->ldc + column, (size_t)valid * sizeof(float));
    for (int v = 0; v < vectors; v++)
        acc[v] = u->chunk ? (sn_vf){0} : sn_load_vf(edge + v * SN_V);
    ptrdiff_t rest = (ptrdiff_t)u->chunk;
    for (ptrdiff_t k = 0; k < g->k; k++) {
        const sn_vf x = SN_(broadcast)(a[k]);
        for (int v = 0; v < vectors; v++) {
            const sn_vf y = sn_load_vf(panel + k * SN_PANEL + v * SN_V);
            sn_vf sum;
            if (u->product == SN_PRODUCT_EXACT) {
                sum = SN_(fma_odd)(x, y, acc[v], down);
            } else {
                const sn_vf p = SN_(fma_odd)(x, y, minus_zero, 0);
                sum = SN_(fma_odd)(SN_(round_any)(&u->product64, u->product64.family, p), one, acc[v], down);
            }
            acc[v] = SN_(round_any)(&u->sum64, family, sum);
        }
        if (u->chunk && (--rest == 0 || k == g->k - 1)) {
            for (int v = 0; v < vectors; v++) {
                const sn_vf sum = SN_(fma_odd)(acc[v], one, sn_load_vf(edge + v * SN_V), down);
                const sn_vf outer = SN_(round_any)(&u->outer64, family, sum);
                memcpy(edge + v * SN_V, &outer, sizeof outer);
                acc[v] = (sn_vf){0};
            }
            rest = (ptrdiff_t)u->chunk;
        }
    }
    for (int v = 0; v < vectors && !u->chunk; v++)
        memcpy(edge + v * SN_V, &acc[v], sizeof acc[v]);
    for (int v = 0; v < vectors; v++) {
        const sn_vu result = sn_load_words32((const sn_u32 *)(const void *)(edge + v * SN_V));
        const sn_vu canonical =
            SN_SELECT32((sn_vi)(result & 0x7fffffff) > 0x7f800000, (sn_vu){0} + 0x7fc00000u, result);
        memcpy(edge + v * SN_V, &canonical, sizeof canonical);
    }
    memcpy((float *)g->out + row * g->ldo + column, edge, (size_t)valid * sizeof(float));
}

static void SN_(odd_single)(const sn_gemm_unit *u, const sn_gemm_args *g, ptrdiff_t row, ptrdiff_t column) {
    SN_ODD_ENTER();
    switch (u->sum64.family) {
    case SN_FAMILY_EVEN: SN_(odd_row)(u, g, SN_FAMILY_EVEN, row, column); break;
    case SN_FAMILY_NEAREST: SN_(odd_row)(u, g, SN_FAMILY_NEAREST, row, column); break;
    case SN_FAMILY_DIRECTED: SN_(odd_row)(u, g, SN_FAMILY_DIRECTED, row, column); break;
    default: SN_(odd_row)(u, g, SN_FAMILY_ODD, row, column);
    }
    SN_ODD_LEAVE();
}

static void SN_(odd_block)(const sn_gemm_unit *u, const sn_gemm_args *g, ptrdiff_t row, ptrdiff_t column) {
    for (ptrdiff_t i = row; i < row + SN_BLOCK_ROWS; i++)
        SN_(odd_single)(u, g, i, column);
}

static const SN_(rows32) SN_(odd_any) = {SN_(odd_block), SN_(odd_single)};

#ifdef SN_FMA_ODD
SN_ROWS32(odd_signed, SN_STEP_ODD, SN_SIGNED)
#endif

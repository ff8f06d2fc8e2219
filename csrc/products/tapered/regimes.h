/* The loop of products/tapered/body.h for posits of at most 16 regimes, in binary32. */
#ifndef SN_TAPERED_REGIMES_H
#define SN_TAPERED_REGIMES_H

enum { SN_REGIMES = 16 };

/* Regimes go from 2 - bits to bits - 2; four bits of them lie below the sign. */
static inline int sn_has_few_regimes(const sn_tapered *f) {
    return !f->takum && 2 * f->bits - 3 <= SN_REGIMES && f->es <= 4;
}

/* By the last four bits of a regime: one in the last place that stays, half of it less one, and what stays. */
typedef struct {
    sn_u32 unit[SN_REGIMES], below_half[SN_REGIMES], kept[SN_REGIMES];
    float least, most;
    sn_u32 rebias;
    sn_i32 shift;
} SN_(regimes);

static void SN_(prepare_regimes)(const sn_tapered *f, SN_(regimes) * r) {
    const sn_tapered_lanes t = sn_tapered_prepare(f, 32);
    const sn_u32 least = (sn_u32)t.least, most = (sn_u32)t.most;
    memset(r, 0, sizeof *r);
    r->shift = t.shift;
    r->rebias = (sn_u32)t.rebias;
    memcpy(&r->least, &least, sizeof least);
    memcpy(&r->most, &most, sizeof most);
    for (sn_i32 k = 2 - f->bits; k <= f->bits - 2; k++) {
        const sn_i32 cut = (k < 0 ? ~k : k) + t.cut, i = (k + t.offset) & (SN_REGIMES - 1);
        r->unit[i] = (sn_u32)1 << cut;
        r->below_half[i] = (r->unit[i] >> 1) - 1;
        r->kept[i] = 0 - r->unit[i];
    }
}

/* As SN_(tapered32), of numbers. */
SN_INLINE sn_vf SN_(round_regime)(const SN_(regimes) * r, sn_vf v) {
    const sn_vf within = SN_NO_LARGER(v, (sn_vf){0} + r->most), number = SN_NO_SMALLER(within, (sn_vf){0} + r->least);
    const sn_vu rebias = (sn_vu){0} + r->rebias, pattern = (sn_vu)number + rebias, regime = pattern >> r->shift;
    const sn_vu unit = SN_LOOK_UP16_32(r->unit, regime), below_half = SN_LOOK_UP16_32(r->below_half, regime);
    const sn_vu sum = pattern + below_half, rounded = SN_ONE_MORE_IF32(sum, pattern, unit);
    const sn_vu kept = rounded & SN_LOOK_UP16_32(r->kept, regime);
    return (sn_vf)SN_LESS_UNLESS_ZERO(kept, rebias, v);
}

SN_INLINE void SN_(regimes_row)(const sn_tapered_sums *s, const SN_(regimes) * sum, const SN_(regimes) * product,
                                int of_product, int vectors, const float *a, const float *b, ptrdiff_t b_step,
                                const sn_vf *nar, float *acc) {
    sn_vf sums[SN_SIDE_BY_SIDE], poison = {0}; /* NaN of NaR */
    for (int v = 0; v < vectors; v++)
        memcpy(&sums[v], acc + v * SN_V, sizeof sums[v]);
    sn_vf given[SN_SIDE_BY_SIDE];
    memcpy(given, sums, sizeof given);
    for (ptrdiff_t k = 0; k < s->k; k++, a += s->a_step, b += b_step) {
        const sn_vf x = (sn_vf){0} + *a;
        poison = SN_FMA(x, (sn_vf){0}, poison);
        for (int v = 0; v < vectors; v++) {
            sn_vf y;
            memcpy(&y, b + v * SN_V, sizeof y);
            if (of_product) {
                y = SN_(round_regime)(product, SN_(product_odd32)(x, y));
                sums[v] = SN_(round_regime)(sum, SN_(sum_odd32)(y, (sn_vf){0} + 1, sums[v]));
            } else {
                sums[v] = SN_(round_regime)(sum, SN_(sum_odd32)(x, y, sums[v]));
            }
        }
    }
    for (int v = 0; v < vectors; v++) {
        const sn_vf some = (poison + nar[v]) + given[v] * 0.0f,
                    result = (sn_vf)SN_SELECT32(some != some, some, sums[v]);
        memcpy(acc + v * SN_V, &result, sizeof result);
    }
}

SN_INLINE void SN_(regimes_panel)(const sn_tapered_sums *s, const SN_(regimes) * sum, const SN_(regimes) * product,
                                  int of_product, int vectors, ptrdiff_t column) {
    const ptrdiff_t width = (ptrdiff_t)vectors * SN_V, valid = s->n - column < width ? s->n - column : width;
    sn_vf nar[SN_SIDE_BY_SIDE] = {{0}};
    float *packed = s->edge;
    for (ptrdiff_t k = 0; k < s->k; k++) {
        memset(packed + k * width, 0, (size_t)width * sizeof *packed);
        memcpy(packed + k * width, (const float *)s->b + k * s->b_step + column, (size_t)valid * sizeof *packed);
        for (int v = 0; v < vectors; v++) {
            sn_vf y;
            memcpy(&y, packed + k * width + v * SN_V, sizeof y);
            nar[v] += y * 0.0f;
        }
    }
    for (ptrdiff_t row = 0; row < s->m; row++) {
        float *acc = (float *)s->acc + row * s->acc_row + column, sums[SN_TAPERED_COLUMNS] = {0};
        memcpy(sums, acc, (size_t)valid * sizeof *acc);
        SN_(regimes_row)(s, sum, product, of_product, vectors, (const float *)s->a + row * s->a_row, packed, width, nar,
                         sums);
        memcpy(acc, sums, (size_t)valid * sizeof *acc);
    }
}

static void SN_(regimes_gemm)(const sn_tapered_sums *s) {
    SN_(regimes) sum, product;
    const int of_product = s->product.bits != 0;
    SN_(prepare_regimes)(&s->sum, &sum);
    SN_(prepare_regimes)(of_product ? &s->product : &s->sum, &product);
    for (ptrdiff_t column = 0; column < s->n;) {
        const int vectors = s->n - column > SN_V ? SN_SIDE_BY_SIDE : 1;
        if (vectors == 1)
            SN_(regimes_panel)(s, &sum, &product, of_product, 1, column);
        else if (of_product)
            SN_(regimes_panel)(s, &sum, &product, 1, SN_SIDE_BY_SIDE, column);
        else
            SN_(regimes_panel)(s, &sum, &product, 0, SN_SIDE_BY_SIDE, column);
        column += (ptrdiff_t)vectors * SN_V;
    }
}

#endif

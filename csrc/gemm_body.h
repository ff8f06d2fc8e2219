/* GEMM over carriers: included once per instruction set, by isa_*.c. k runs in order for each output, so the tile sizes
 * below never change a bit.
 *
 * gemm32 (product exact or rounded to nearest even; sum rounded to nearest even). Domain, checked by the caller:
 *   - p(accumulator) <= 11, and the addend's precision (exact product: p(a) + p(b); rounded: p(product)) is no larger.
 *     Then an addition rounded to binary32 and then to p bits equals one rounded once: were the binary32 sum a midpoint
 *     that the exact sum is not, the operands would span more than 24 bits, but both have at most p <= 11
 *     (Figueroa 1995: 24 >= 2p + 2), and neither is itself a midpoint. Sums in binary32's subnormals are exact.
 *   - a product is exact in binary32: p(a) + p(b) <= 24, lowest bits >= 2^-149, below 2^128;
 *   - emax(accumulator) + 24 - m <= 127, for the constant C to exist.
 *   - fixed point: products and sums, as integers of their last place, below 2^22.
 *   - native: binary32 accumulator, one hardware rounding; products exact, or rounded to binary32, or fused.
 * gemm64 (each rounding nearest even or stochastic). Domain: product exact in binary64; precision m + 1 + r <= 52.
 *   The sum is rounded to odd in binary64 (from the exact error of the addition, Knuth's TwoSum), which keeps every
 * later decision right: nearest for m + 1 + 2 <= 53 (Boldo and Melquiond 2008), and floor(t * 2^r) for m + 1 + r <= 52.
 */
#ifndef SOFTNUM_GEMM_BODY_H
#define SOFTNUM_GEMM_BODY_H

#include "gemm.h"
#include "lanes.h"

enum { SN_TILE32 = 64, SN_TILE64 = 32 };

/* x in every lane, -0 and NaN bits included. */
SN_INLINE sn_vf SN_(broadcast)(float x) {
    sn_u32 bits;
    memcpy(&bits, &x, 4);
    return (sn_vf)((sn_vu){0} + bits);
}

/* The fma of CPUs without one: the exact product, a sum rounded to odd, one rounding to nearest. */
SN_INLINE sn_vf SN_(fma)(sn_vf x, sn_vf y, sn_vf z) {
    sn_vf out;
    for (int i = 0; i < SN_V; i += SN_W) {
        sn_wf a, b, c;
        for (int j = 0; j < SN_W; j++) {
            a[j] = (double)x[i + j];
            b[j] = (double)y[i + j];
            c[j] = (double)z[i + j];
        }
        a = SN_(add_odd)(a * b, c);
        for (int j = 0; j < SN_W; j++)
            out[i + j] = (float)a[j];
    }
    return out;
}

SN_INLINE sn_vf SN_(round32)(const sn_round32 *r, sn_vf v) {
    const sn_vf zero = {0};
    sn_vi bits = (sn_vi)v, e = bits & 0x7f800000;
    e = SN_MAX(e, (sn_vi)zero + (sn_i32)r->emin);
    e = SN_MIN(e, (sn_vi)zero + (sn_i32)r->emax);
    sn_vf c = (sn_vf)(e + (sn_i32)r->to_constant);
    sn_vf rounded = (sn_vf)((sn_vu)((v + c) - c) | ((sn_vu)bits & r->sign_of_zero));
    rounded = SN_WHERE_GREATER(rounded, zero + r->limit[0], zero + r->overflow[0], rounded);
    return SN_WHERE_GREATER(zero - r->limit[1], rounded, zero + r->overflow[1], rounded);
}

SN_INLINE void SN_(tile32)(const sn_gemm_unit *u, const sn_gemm_args *g, int tile, int product, int native, int fma,
                           int chunked, ptrdiff_t row, ptrdiff_t column) {
    const float *a = (const float *)g->a + row * g->lda;
    const float *b = (const float *)g->b + column;
    const sn_round32 rp = u->product32, rs = u->sum32, ro = u->outer32;
    const int vectors = tile / SN_V;
    ptrdiff_t valid = g->n - column < tile ? g->n - column : tile;
    sn_vf acc[SN_TILE32 / SN_V], outer[SN_TILE32 / SN_V];
    float edge[SN_TILE32] = {0};
    if (g->c) memcpy(edge, (const float *)g->c + row * g->ldc + column, (size_t)valid * sizeof(float));
    for (int v = 0; v < vectors; v++) {
        outer[v] = sn_load_vf(edge + v * SN_V);
        acc[v] = chunked ? (sn_vf){0} : outer[v];
    }
    ptrdiff_t left = u->chunk;
    for (ptrdiff_t k = 0; k < g->k; k++) {
        const sn_vf x = SN_(broadcast)(a[k]);
        const float *y = b + k * g->ldb;
        for (int v = 0; v < vectors; v++) {
            sn_vf factor = sn_load_vf(y + v * SN_V);
            if (fma) {
                acc[v] = SN_FMA(x, factor, acc[v]);
                continue;
            }
            sn_vf p = x * factor;
            if (product == SN_PRODUCT_NEAREST) p = SN_(round32)(&rp, p);
            acc[v] = native ? acc[v] + p : SN_(round32)(&rs, acc[v] + p);
        }
        if (chunked && (--left == 0 || k == g->k - 1)) {
            for (int v = 0; v < vectors; v++) {
                outer[v] = native ? outer[v] + acc[v] : SN_(round32)(&ro, outer[v] + acc[v]);
                acc[v] = (sn_vf){0};
            }
            left = u->chunk;
        }
    }
    for (int v = 0; v < vectors; v++) {
        sn_vf result = chunked ? outer[v] : acc[v];
        sn_vu canonical = SN_SELECT32(result != result, (sn_vu){0} + 0x7fc00000u, result);
        memcpy(edge + v * SN_V, &canonical, sizeof canonical);
    }
    memcpy((float *)g->out + row * g->ldo + column, edge, (size_t)valid * sizeof(float));
}

SN_INLINE void SN_(columns32)(const sn_gemm_unit *u, const sn_gemm_args *g, int product, int native, int fma,
                              int chunked) {
    for (ptrdiff_t column = 0; column < g->n;) {
        int wide = g->n - column > SN_TILE32 - SN_GEMM_LANES;
        for (ptrdiff_t row = g->m0; row < g->m1; row++) {
            if (wide)
                SN_(tile32)(u, g, SN_TILE32, product, native, fma, chunked, row, column);
            else
                SN_(tile32)(u, g, SN_GEMM_LANES, product, native, fma, chunked, row, column);
        }
        column += wide ? SN_TILE32 : SN_GEMM_LANES;
    }
}

static void SN_(gemm32)(const sn_gemm_unit *u, const sn_gemm_args *g) {
    if (u->native && u->fused_multiply_add)
        u->chunk ? SN_(columns32)(u, g, 0, 1, 1, 1) : SN_(columns32)(u, g, 0, 1, 1, 0);
    else if (u->native)
        u->chunk ? SN_(columns32)(u, g, 0, 1, 0, 1) : SN_(columns32)(u, g, 0, 1, 0, 0);
    else if (u->product == SN_PRODUCT_NEAREST)
        u->chunk ? SN_(columns32)(u, g, SN_PRODUCT_NEAREST, 0, 0, 1)
                 : SN_(columns32)(u, g, SN_PRODUCT_NEAREST, 0, 0, 0);
    else
        u->chunk ? SN_(columns32)(u, g, 0, 0, 0, 1) : SN_(columns32)(u, g, 0, 0, 0, 0);
}

/* v: exact, or rounded to odd. */
SN_INLINE sn_wf SN_(round64)(const sn_rounding *r, int mode, sn_wf v, sn_wu random) {
    const int family = mode == SN_NEAREST_EVEN ? SN_FAMILY_EVEN : SN_FAMILY_STOCHASTIC;
    return (sn_wf)SN_(round_to_value64)(r, family, 0, (sn_wu)v, random);
}

SN_INLINE void SN_(words64)(const sn_gemm_unit *u, const sn_gemm_args *g, int tile, ptrdiff_t row, ptrdiff_t column,
                            sn_u64 step, int second, sn_u32 words[4][SN_TILE64]) {
    const sn_u32 *key = second ? u->key2 : u->key;
    const sn_u32 c0 = (sn_u32)(step / 4), c1 = (sn_u32)(g->n0 + column), c2 = (sn_u32)row, k0 = key[0], k1 = key[1];
    for (int j = 0; j < tile; j++) {
        sn_philox_words p = sn_philox(c0, c1 + (sn_u32)j, c2, u->batch, k0, k1);
        words[0][j] = p.w[0];
        words[1][j] = p.w[1];
        words[2][j] = p.w[2];
        words[3][j] = p.w[3];
    }
}

SN_INLINE void SN_(tile64)(const sn_gemm_unit *u, const sn_gemm_args *g, int tile, int product, int sum_stochastic,
                           ptrdiff_t row, ptrdiff_t column) {
    const double *a = (const double *)g->a + row * g->lda;
    const double *b = (const double *)g->b + column;
    const sn_rounding rp = u->product64, rs = u->sum64, ro = u->outer64;
    const int chunked = u->chunk != 0, random = product == SN_PRODUCT_STOCHASTIC || sum_stochastic;
    /* with two stochastic roundings the sum takes the upper half of the word, or a word of its own if r > 16 */
    const int second = u->two_roundings && (rs.stochastic_bits > 16 || rp.stochastic_bits > 16);
    const int sum_shift = u->two_roundings && !second ? 16 : 0;
    const int vectors = tile / SN_W, sum_mode = sum_stochastic ? SN_STOCHASTIC : SN_NEAREST_EVEN;
    ptrdiff_t valid = g->n - column < tile ? g->n - column : tile;
    sn_wf acc[SN_TILE64 / SN_W], outer[SN_TILE64 / SN_W];
    double edge[SN_TILE64] = {0};
    sn_u32 words[4][SN_TILE64], words2[4][SN_TILE64];
    if (g->c) memcpy(edge, (const double *)g->c + row * g->ldc + column, (size_t)valid * sizeof(double));
    for (int v = 0; v < vectors; v++) {
        outer[v] = sn_load_wf(edge + v * SN_W);
        acc[v] = chunked ? (sn_wf){0} : outer[v];
    }
    ptrdiff_t left = u->chunk;
    sn_u64 reduction = (sn_u64)g->k;
    for (ptrdiff_t k = 0; k < g->k; k++) {
        const double *y = b + k * g->ldb;
        if (random && k % 4 == 0) {
            SN_(words64)(u, g, tile, row, column, (sn_u64)k, 0, words);
            if (second) SN_(words64)(u, g, tile, row, column, (sn_u64)k, 1, words2);
        }
        const sn_u32 *w = words[k % 4], *w2 = second ? words2[k % 4] : words[k % 4];
        for (int v = 0; v < vectors; v++) {
            sn_wf p = sn_load_wf(y + v * SN_W) * a[k];
            if (product == SN_PRODUCT_NEAREST) p = SN_(round64)(&rp, SN_NEAREST_EVEN, p, (sn_wu){0});
            if (product == SN_PRODUCT_STOCHASTIC)
                p = SN_(round64)(&rp, SN_STOCHASTIC, p, sn_load_words64(w + v * SN_W));
            sn_wu word = {0};
            if (sum_stochastic) word = sn_load_words64(w2 + v * SN_W) >> sum_shift;
            acc[v] = SN_(round64)(&rs, sum_mode, SN_(add_odd)(acc[v], p), word);
        }
        if (chunked && (--left == 0 || k == g->k - 1)) {
            if (sum_stochastic) SN_(words64)(u, g, tile, row, column, reduction, second, words2);
            for (int v = 0; v < vectors; v++) {
                sn_wu word = {0};
                if (sum_stochastic) word = sn_load_words64(words2[reduction % 4] + v * SN_W) >> sum_shift;
                outer[v] = SN_(round64)(&ro, sum_mode, SN_(add_odd)(outer[v], acc[v]), word);
                acc[v] = (sn_wf){0};
            }
            reduction++;
            left = u->chunk;
            if (second && (k + 1) % 4 != 0) SN_(words64)(u, g, tile, row, column, (sn_u64)(k + 1), 1, words2);
        }
    }
    for (int v = 0; v < vectors; v++) {
        sn_wf result = chunked ? outer[v] : acc[v];
        sn_wu canonical = SN_SELECT64(result != result, (sn_wu){0} + 0x7ff8000000000000u, result);
        memcpy(edge + v * SN_W, &canonical, sizeof canonical);
    }
    memcpy((double *)g->out + row * g->ldo + column, edge, (size_t)valid * sizeof(double));
}

SN_INLINE void SN_(columns64)(const sn_gemm_unit *u, const sn_gemm_args *g, int product, int sum_stochastic) {
    for (ptrdiff_t column = 0; column < g->n;) {
        int wide = g->n - column > SN_GEMM_LANES;
        for (ptrdiff_t row = g->m0; row < g->m1; row++) {
            if (wide)
                SN_(tile64)(u, g, SN_TILE64, product, sum_stochastic, row, column);
            else
                SN_(tile64)(u, g, SN_GEMM_LANES, product, sum_stochastic, row, column);
        }
        column += wide ? SN_TILE64 : SN_GEMM_LANES;
    }
}

static void SN_(gemm64)(const sn_gemm_unit *u, const sn_gemm_args *g) {
    int stochastic = u->sum64.rounding == SN_STOCHASTIC;
    switch (u->product) {
    case SN_PRODUCT_NEAREST:
        stochastic ? SN_(columns64)(u, g, SN_PRODUCT_NEAREST, 1) : SN_(columns64)(u, g, SN_PRODUCT_NEAREST, 0);
        break;
    case SN_PRODUCT_STOCHASTIC:
        stochastic ? SN_(columns64)(u, g, SN_PRODUCT_STOCHASTIC, 1) : SN_(columns64)(u, g, SN_PRODUCT_STOCHASTIC, 0);
        break;
    default: stochastic ? SN_(columns64)(u, g, SN_PRODUCT_EXACT, 1) : SN_(columns64)(u, g, SN_PRODUCT_EXACT, 0);
    }
}

#endif

/* GEMM over carriers: included once per instruction set, by gemm_*.c. Each path's domain and proof stand in its file.
 * k runs in order for each output, so tiles never change a bit. */
#ifndef SOFTNUM_GEMM_BODY_H
#define SOFTNUM_GEMM_BODY_H

#include "lanes/lanes.h"
#include "products/gemm/bounds.h"
#include "products/gemm/gemm.h"

enum { SN_BLOCK_ROWS = 4, SN_BLOCK_VECTORS = 2 };

#include "products/gemm/micro.h"
#include "products/gemm/odd.h"
#include "products/gemm/random.h"
#include "products/gemm/stochastic.h"

SN_INLINE sn_u32 SN_(largest_lane)(sn_vi v) {
    sn_u32 most = 0;
    for (int i = 0; i < SN_V; i++)
        most = most > (sn_u32)v[i] ? most : (sn_u32)v[i];
    return most;
}

/* The largest pattern of a magnitude in rows of a matrix. */
static sn_u32 SN_(largest)(const float *x, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t ld) {
    sn_vi most = {0};
    sn_u32 rest = 0;
    for (ptrdiff_t i = 0; i < rows; i++) {
        ptrdiff_t j = 0;
        for (; j + SN_V <= columns; j += SN_V)
            most = SN_MAX(most, (sn_vi)sn_load_vf(x + i * ld + j) & 0x7fffffff);
        for (; j < columns; j++) {
            sn_u32 bits;
            memcpy(&bits, x + i * ld + j, sizeof bits);
            bits &= 0x7fffffff;
            rest = rest > bits ? rest : bits;
        }
    }
    const sn_u32 found = SN_(largest_lane)(most);
    return found > rest ? found : rest;
}

/* Copies a panel of b, up to SN_PANEL columns from `column` on, to g->panel; the largest pattern of its magnitudes. */
static sn_u32 SN_(pack32)(const sn_gemm_args *g, ptrdiff_t column) {
    const float *b = (const float *)g->b + column;
    const ptrdiff_t left = (g->n - column + SN_GEMM_LANES - 1) / SN_GEMM_LANES * SN_GEMM_LANES,
                    width = left < SN_PANEL ? left : SN_PANEL;
    float *panel = g->panel;
    sn_vi most = {0};
    for (ptrdiff_t k = 0; k < g->k; k++)
        for (ptrdiff_t j = 0; j < width; j += SN_V) {
            const sn_vf v = sn_load_vf(b + k * g->ldb + j);
            most = SN_MAX(most, (sn_vi)v & 0x7fffffff);
            memcpy(panel + k * SN_PANEL + j, &v, sizeof v);
        }
    return SN_(largest_lane)(most);
}

/* The ways to compute a unit's blocks: where nothing overflows, and anywhere. */
static void SN_(choose32)(const sn_gemm_unit *u, const sn_gemm_args *g, const SN_(rows32) * *safe,
                          const SN_(rows32) * *any) {
    const int level = sn_safe_level(u, u->exact_below && sn_has_negative_zero(g, sizeof(float))),
              bare = level == SN_LEVEL_BARE;
    *safe = NULL;
    switch (u->path) {
    case SN_PATH_NATIVE:
        *any = u->product == SN_PRODUCT_EXACT     ? &SN_(sum)
               : u->product == SN_PRODUCT_NEAREST ? &SN_(sum_rounded)
                                                  : &SN_(sum_fma);
        return;
    case SN_PATH_ODD: *any = &SN_(odd_any);
#ifdef SN_FMA_ODD
        if (level == SN_LEVEL_SIGNED) *safe = &SN_(odd_signed);
#endif
        return;
    case SN_PATH_STOCHASTIC:
        if (u->product == SN_PRODUCT_STOCHASTIC) {
            *any = &SN_(stochastic_product_any);
            if (bare) *safe = &SN_(stochastic_product_bare);
        } else {
            *any = &SN_(stochastic_any);
            if (bare) *safe = &SN_(stochastic_bare);
        }
        return;
    case SN_PATH_FIXED: *any = &SN_(fixed); return;
    default: *any = u->product == SN_PRODUCT_NEAREST ? &SN_(product_full) : &SN_(magic_full);
    }
    if (u->path == SN_PATH_MIXED) return;
    if (u->product == SN_PRODUCT_NEAREST)
        *safe = bare ? &SN_(product_bare) : &SN_(product_signed);
    else
        *safe = bare ? &SN_(magic_bare) : &SN_(magic_signed);
}

static void SN_(gemm32)(const sn_gemm_unit *u, const sn_gemm_args *g) {
    const SN_(rows32) * safe, *any;
    SN_(choose32)(u, g, &safe, &any);
    const float *a = g->a;
    sn_safety safety = {u, 0, g->k, -1, 0x1p1023};
    double largest_a = 0;
    if (safe) {
        largest_a = sn_of_pattern32(SN_(largest)(a + g->m0 * g->lda, g->m1 - g->m0, g->k, g->lda));
        const sn_u32 start = g->c ? SN_(largest)((const float *)g->c + g->m0 * g->ldc, g->m1 - g->m0, g->n, g->ldc) : 0;
        if (start >= 0x7f800000)
            safe = NULL;
        else
            safety.start = sn_of_pattern32(start);
    }
    for (ptrdiff_t column = 0; column < g->n; column += SN_PANEL) {
        const double largest_b = sn_of_pattern32(SN_(pack32)(g, column));
        const int all_safe = safe && sn_is_safe(&safety, largest_a, largest_b);
        for (ptrdiff_t row = g->m0; row < g->m1;) {
            const ptrdiff_t rows = g->m1 - row < SN_BLOCK_ROWS ? 1 : SN_BLOCK_ROWS;
            const SN_(rows32) *way = any;
            if (all_safe ||
                (safe &&
                 sn_is_safe(&safety, sn_of_pattern32(SN_(largest)(a + row * g->lda, rows, g->k, g->lda)), largest_b)))
                way = safe;
            (rows == 1 ? way->single : way->block)(u, g, row, column);
            row += rows;
        }
    }
}

#include "products/gemm/integer.h"
#include "products/gemm/wide.h"

#endif

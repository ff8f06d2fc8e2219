/* GEMM over carriers: included once per instruction set, by gemm_*.c. Each path's domain and proof stand in its file.
 * k runs in order for each output, so tiles never change a bit. */
#ifndef SOFTNUM_GEMM_BODY_H
#define SOFTNUM_GEMM_BODY_H

#include "lanes/lanes.h"
#include "lanes/odd.h"
#include "products/gemm/bounds.h"
#include "products/gemm/gemm.h"

enum { SN_BLOCK_ROWS = 4, SN_BLOCK_VECTORS = 2 };

#include "products/gemm/micro.h"
#include "products/gemm/odd.h"
#include "products/gemm/random.h"
#include "products/gemm/stochastic.h"

/* Patterns of magnitudes: the largest, and the least that is not zero's (all ones: there is none). */
typedef struct {
    sn_vi most, least;
} SN_(lanes_range);
typedef struct {
    sn_u32 most, least;
} SN_(range);

enum { SN_NO_LEAST = 0x7fffffff };

SN_INLINE void SN_(note)(SN_(lanes_range) * r, sn_vf v) {
    const sn_vi magnitude = (sn_vi)v & 0x7fffffff;
    r->most = SN_MAX(r->most, magnitude);
    r->least = SN_MIN(r->least, (sn_vi)SN_SELECT32(magnitude == 0, (sn_vi){0} + SN_NO_LEAST, magnitude));
}

SN_INLINE SN_(range) SN_(range_of)(const SN_(lanes_range) * r) {
    SN_(range) found = {0, SN_NO_LEAST};
    for (int i = 0; i < SN_V; i++) {
        found.most = found.most > (sn_u32)r->most[i] ? found.most : (sn_u32)r->most[i];
        found.least = found.least < (sn_u32)r->least[i] ? found.least : (sn_u32)r->least[i];
    }
    return found;
}

/* Of the magnitudes in rows of a matrix. */
static SN_(range) SN_(range32)(const float *x, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t ld) {
    SN_(lanes_range) lanes = {{0}, (sn_vi){0} + SN_NO_LEAST};
    for (ptrdiff_t i = 0; i < rows; i++) {
        ptrdiff_t j = 0;
        for (; j + SN_V <= columns; j += SN_V)
            SN_(note)(&lanes, sn_load_vf(x + i * ld + j));
        float rest[SN_V] = {0};
        if (j < columns) {
            memcpy(rest, x + i * ld + j, (size_t)(columns - j) * sizeof(float));
            SN_(note)(&lanes, sn_load_vf(rest));
        }
    }
    return SN_(range_of)(&lanes);
}

/* Copies a panel of b, up to SN_PANEL columns from `column` on, to g->panel; of its magnitudes. */
static SN_(range) SN_(pack32)(const sn_gemm_args *g, ptrdiff_t column) {
    const float *b = (const float *)g->b + column;
    const ptrdiff_t left = (g->n - column + SN_GEMM_LANES - 1) / SN_GEMM_LANES * SN_GEMM_LANES,
                    width = left < SN_PANEL ? left : SN_PANEL;
    float *panel = g->panel;
    SN_(lanes_range) lanes = {{0}, (sn_vi){0} + SN_NO_LEAST};
    for (ptrdiff_t k = 0; k < g->k; k++)
        for (ptrdiff_t j = 0; j < width; j += SN_V) {
            const sn_vf v = sn_load_vf(b + k * g->ldb + j);
            SN_(note)(&lanes, v);
            memcpy(panel + k * SN_PANEL + j, &v, sizeof v);
        }
    return SN_(range_of)(&lanes);
}

/* The ways to compute a unit's blocks: anywhere; where nothing overflows; and where addends are multiples of the sum's
 * last place too (exact). NULL: none of its own. */
typedef struct {
    const SN_(rows32) * any, *safe, *exact;
} SN_(ways);

static SN_(ways) SN_(choose32)(const sn_gemm_unit *u, const sn_gemm_args *g) {
    const int from_below = (u->exact_below || u->may_be_exact_below) && !sn_has_negative_zero(g, sizeof(float));
    SN_(ways) w = {NULL, NULL, NULL};
    switch (u->path) {
    case SN_PATH_NATIVE:
        w.any = u->product == SN_PRODUCT_EXACT     ? &SN_(sum)
                : u->product == SN_PRODUCT_NEAREST ? &SN_(sum_rounded)
                                                   : &SN_(sum_fma);
        return w;
    case SN_PATH_ODD: w.any = &SN_(odd_any);
#ifdef SN_FMA_ODD
        if (u->sum32.bound > 0) w.safe = w.exact = &SN_(odd_signed);
#endif
        return w;
    case SN_PATH_STOCHASTIC: {
        const int product = u->product == SN_PRODUCT_STOCHASTIC;
        w.any = w.safe = product ? &SN_(stochastic_product_any) : &SN_(stochastic_any);
        w.exact = !from_below ? w.any : product ? &SN_(stochastic_product_bare) : &SN_(stochastic_bare);
        return w;
    }
    case SN_PATH_FIXED: w.any = &SN_(fixed); return w;
    default: break;
    }
    const int product = u->product == SN_PRODUCT_NEAREST;
    w.any = product ? &SN_(product_full) : &SN_(magic_full);
    if (u->path == SN_PATH_MIXED) return w;
    w.safe = product ? &SN_(product_signed) : &SN_(magic_signed);
    w.exact = !from_below ? w.safe : product ? &SN_(product_bare) : &SN_(magic_bare);
    return w;
}

#ifdef SN_FMA64
#define SN_MULTIPLY_ADD64 SN_FMA64
#else
/* x * y + z, by the definition where compilers have no instruction for it. */
static SN_NOINLINE sn_wf SN_(fma64)(sn_wf x, sn_wf y, sn_wf z) {
    sn_wf out;
    for (int i = 0; i < SN_W; i++) {
#ifdef __FP_FAST_FMA
        out[i] = __builtin_fma(x[i], y[i], z[i]);
#else
        const sn_format *f = &sn_binary64;
        const sn_env nearest = {0};
        sn_u32 flags = 0;
        out[i] = sn_of_bits(sn_fma(f, ((sn_wu)x)[i], f, ((sn_wu)y)[i], f, ((sn_wu)z)[i], f, &nearest, 0, &flags));
#endif
    }
    return out;
}
#define SN_FMA64(x, y, z) SN_(fma64)(x, y, z)
#define SN_MULTIPLY_ADD64(x, y, z) ((z) + (x) * (y))
#endif

#define E_BITS 32
#include "products/gemm/ieee.h"
#define E_BITS 64
#include "products/gemm/ieee.h"

#include "products/gemm/lanes.h"

static void SN_(gemm32)(const sn_gemm_unit *u, const sn_gemm_args *g) {
    if (u->path == SN_PATH_IEEE) {
        SN_(ieee_gemm32)(u, g);
        return;
    }
#ifdef SN_FMA_ODD
    const int in_lanes = u->lanes.ready && !(u->sum32.bound > 0);
#else
    const int in_lanes = u->lanes.ready;
#endif
    if (in_lanes) {
        SN_(lanes_gemm32)(u, g);
        return;
    }
    SN_(ways) ways = SN_(choose32)(u, g);
    const float *a = g->a;
    const int tells = ways.exact != ways.safe;
    sn_safety safety = {u, 0, g->k, -1, 0x1p1023};
    SN_(range) of_a = {0, 0};
    if (ways.safe) {
        of_a = SN_(range32)(a + g->m0 * g->lda, g->m1 - g->m0, g->k, g->lda);
        const sn_u32 start =
            g->c ? SN_(range32)((const float *)g->c + g->m0 * g->ldc, g->m1 - g->m0, g->n, g->ldc).most : 0;
        if (start >= 0x7f800000)
            ways.safe = NULL;
        else
            safety.start = sn_of_pattern32(start);
    }
    for (ptrdiff_t column = 0; column < g->n; column += SN_PANEL) {
        const SN_(range) of_b = SN_(pack32)(g, column);
        const double largest_b = sn_of_pattern32(of_b.most);
        const int all_safe = ways.safe && sn_is_safe(&safety, sn_of_pattern32(of_a.most), largest_b),
                  all_exact = tells && sn_is_exact_below(u, of_a.least, of_b.least);
        for (ptrdiff_t row = g->m0; row < g->m1;) {
            const ptrdiff_t rows = g->m1 - row < SN_BLOCK_ROWS ? 1 : SN_BLOCK_ROWS;
            int safe = all_safe, exact = all_exact;
            if (ways.safe && !(safe && (exact || !tells))) {
                const SN_(range) own = SN_(range32)(a + row * g->lda, rows, g->k, g->lda);
                safe = safe || sn_is_safe(&safety, sn_of_pattern32(own.most), largest_b);
                exact = tells && sn_is_exact_below(u, own.least, of_b.least);
            }
            const SN_(rows32) *way = !safe ? ways.any : exact ? ways.exact : ways.safe;
            (rows == 1 ? way->single : way->block)(u, g, row, column);
            row += rows;
        }
    }
}

#include "products/gemm/integer.h"
#include "products/gemm/wide.h"

#endif

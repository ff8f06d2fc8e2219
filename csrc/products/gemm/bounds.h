/* How large sums can get: what lets a tile go without a test for overflow. Scalar, the same on every instruction set.
 *
 * Rounding is monotone and, in the nearest modes, symmetric about 0. So if no product of a tile exceeds P, and no start
 * exceeds S, the sums of the tile stay within S_0 = S, S_(k+1) = R(S_k + P). sn_sum_bound follows that recurrence in
 * binary64 with every step rounded up: the addition by a factor that covers its own rounding, R as ties away from zero,
 * which no nearest mode exceeds, or away from zero for the stochastic ones. Below the smallest normal, where last
 * places are of another size, the bound starts at the smallest normal. The recurrence ends early where S + P rounds to
 * S. */
#ifndef SOFTNUM_GEMM_BOUNDS_H
#define SOFTNUM_GEMM_BOUNDS_H

#include <string.h>

#include "products/gemm/gemm.h"

static inline sn_u64 sn_bits_of(double x) {
    sn_u64 u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline double sn_of_bits(sn_u64 u) {
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* A magnitude; infinity for a NaN. */
static inline double sn_of_pattern32(sn_u32 u) {
    float x;
    u = u < 0x7f800000 ? u : 0x7f800000;
    memcpy(&x, &u, sizeof x);
    return (double)x;
}

/* x > 0 to m fraction bits, ties, or anything (`up`), up. */
static inline double sn_round_up_ties(double x, int m, int up) {
    const sn_u64 half = (sn_u64)1 << (51 - m);
    return sn_of_bits((sn_bits_of(x) + (up ? 2 * half - 1 : half)) & ~(2 * half - 1));
}

/* The largest magnitude in rows of a matrix; infinity if there is a NaN. */
static inline double sn_largest64(const double *x, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t ld) {
    const sn_u64 infinity = 0x7ff0000000000000u;
    sn_u64 most = 0;
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t j = 0; j < columns; j++) {
            const sn_u64 u = sn_bits_of(x[i * ld + j]) & 0x7fffffffffffffffu;
            most = most > u ? most : u;
        }
    return sn_of_bits(most < infinity ? most : infinity);
}

/* Whether a start is -0; size: of the carriers, in bytes. */
static inline int sn_has_negative_zero(const sn_gemm_args *g, size_t size) {
    for (ptrdiff_t i = g->m0; g->c && i < g->m1; i++)
        for (ptrdiff_t j = 0; j < g->n; j++) {
            const char *p = (const char *)g->c + (i * g->ldc + j) * (ptrdiff_t)size;
            sn_u32 low = 0;
            sn_u64 u = 0;
            if (size == sizeof low) {
                memcpy(&low, p, sizeof low);
                u = (sn_u64)low << 32;
            } else {
                memcpy(&u, p, sizeof u);
            }
            if (u == (sn_u64)1 << 63) return 1;
        }
    return 0;
}

static inline double sn_larger(double x, double y) { return x > y ? x : y; }

/* No sum of n addends of at most `addend` from a start of at most `start` exceeds the result, if that is finite. */
static inline double sn_sum_bound(const sn_round32 *r, double start, double addend, ptrdiff_t n, int up) {
    double sum = sn_larger(start, sn_of_pattern32(r->emin));
    for (ptrdiff_t k = 0; k < n; k++) {
        const double next = sn_round_up_ties((sum + addend) * (1 + 0x1p-50), r->mantissa_bits, up);
        if (next == sum || next > (double)r->bound) return next;
        sum = next;
    }
    return sum;
}

/* What is known of a call's products: below `good` no sum overflows, from `bad` on one might. */
typedef struct {
    const sn_gemm_unit *u;
    double start;
    ptrdiff_t k;
    double good, bad;
} sn_safety;

/* Whether no rounding of a tile can overflow whose operands are at most x and y; infinity stands for NaN too. */
static inline int sn_is_safe(sn_safety *s, double x, double y) {
    if (!(x <= 0x1p500 && y <= 0x1p500)) return 0;
    const sn_gemm_unit *u = s->u;
    const double exact = x * y;
    double product = exact;
    if (product <= s->good) return 1;
    if (product >= s->bad) return 0;
    const int up = u->path == SN_PATH_STOCHASTIC || u->path == SN_PATH_WIDE;
    int safe = 1;
    if (u->product != SN_PRODUCT_EXACT) {
        product =
            sn_round_up_ties(sn_larger(exact, sn_of_pattern32(u->product32.emin)), u->product32.mantissa_bits, up);
        safe = product <= (double)u->product32.bound;
    }
    const ptrdiff_t length = u->chunk && u->chunk < s->k ? (ptrdiff_t)u->chunk : s->k;
    double sum = safe ? sn_sum_bound(&u->sum32, u->chunk ? 0 : s->start, product, length, up) : 0;
    safe = safe && sum <= (double)u->sum32.bound;
    if (safe && u->chunk) {
        const ptrdiff_t chunks = s->k ? (s->k - 1) / (ptrdiff_t)u->chunk + 1 : 0;
        safe = sn_sum_bound(&u->outer32, s->start, sum, chunks, up) <= (double)u->outer32.bound;
    }
    if (safe)
        s->good = exact;
    else
        s->bad = exact;
    return safe;
}

/* The exponent of a last place that numbers of an operand (0: a, 1: b) are multiples of, the least magnitude of which,
 * zeros aside, is this pattern. */
static inline sn_i32 sn_last_place(const sn_gemm_unit *u, int operand, sn_u32 least) {
    const sn_i32 last = (sn_i32)(least >> 23) - 126 - u->precision[operand];
    return last > u->last[operand] ? last : u->last[operand];
}

/* Whether products of such operands are multiples of the sum's last place. */
static inline int sn_is_exact_below(const sn_gemm_unit *u, sn_u32 least_a, sn_u32 least_b) {
    return u->exact_below ||
           (u->may_be_exact_below && sn_last_place(u, 0, least_a) + sn_last_place(u, 1, least_b) >= u->sum_last);
}

/* The level (SN_LEVEL_*) of a product of which no sum overflows; negative_zero: a start is -0. */
static inline int sn_safe_level(const sn_gemm_unit *u, int negative_zero) {
    const int bare = u->exact_below && !negative_zero;
    if (u->path == SN_PATH_MAGIC) return bare ? SN_LEVEL_BARE : SN_LEVEL_SIGNED;
    if (u->path == SN_PATH_STOCHASTIC) return bare ? SN_LEVEL_BARE : SN_LEVEL_FULL;
    return u->path == SN_PATH_ODD && u->sum32.bound > 0 ? SN_LEVEL_SIGNED : SN_LEVEL_FULL;
}

#endif

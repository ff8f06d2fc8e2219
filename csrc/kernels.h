/* Fast paths over arrays of values ("carriers"), one set per instruction set. Each states its domain; inside it the
 * result equals the definition (arith.h) bit for bit, on every instruction set. */
#ifndef SOFTNUM_KERNELS_H
#define SOFTNUM_KERNELS_H

#include <stddef.h>

#include "softnum/softnum.h"

/* ---- rounding carriers to a format ------------------------------------------------------------------------------- */

/* A format and an environment, prepared for rounding binary32 or binary64 patterns in integer arithmetic. Domain:
 * signed formats whose every value is exact in the carrier, and
 *   - floats with subnormals, 1 <= m <= 23 (52 in binary64), whose normal numbers are normal in the carrier;
 *   - fixed point that saturates, with integer and fraction bits together at most 23 (52).
 * All rounding modes. Fixed point is treated as the subnormals of a float whose normal numbers begin at 2^integer bits:
 * what lies there saturates, however coarsely it is rounded first. */
typedef struct {
    sn_i32 mantissa_bits, biased_emin;
    sn_i32 rounding, stochastic_bits;
    sn_i32 no_nan, no_infinity; /* a NaN, an infinity has no result: reported */
    sn_u64 quantum;             /* pattern of 2^(emin - m) */
    sn_u64 limit[2];            /* patterns of the largest, and of minus the lowest value */
    sn_u64 least_limit;         /* the smaller of the two */
    sn_u64 overflow[2];         /* what a finite value beyond it becomes: [positive, negative] */
    sn_u64 infinity[2];         /* what an infinity becomes */
    sn_u64 nan;                 /* what a NaN becomes */
    sn_u64 sign_of_zero;        /* the pattern of -0 if the format has it */
} sn_rounding;

/* Prepare for carriers of 32 or 64 bits; returns 0 if the format or the overflow rule lies outside the domain. */
int sn_rounding_prepare(const sn_format *f, const sn_env *env, int carrier_bits, sn_rounding *r);

/* ---- GEMM -------------------------------------------------------------------------------------------------------- */

enum { SN_PRODUCT_EXACT = 0, SN_PRODUCT_NEAREST = 1, SN_PRODUCT_STOCHASTIC = 2 };

/* Rounding to nearest even in binary32 by the magic constant: with C = 1.5 * 2^(E + 23 - m), (x + C) - C.
 * E = the exponent of x within [emin, emax + 1]. */
typedef struct {
    sn_u32 emin, emax;   /* those limits, as exponent fields in place (biased, << 23) */
    sn_u32 to_constant;  /* what added to the exponent field makes C: (23 - m) << 23 | 0x400000 */
    sn_u32 sign_of_zero; /* 0x80000000 if there is -0 */
    float limit[2];      /* largest, and minus the lowest, value */
    float overflow[2];   /* what replaces values beyond: [positive, negative] */
} sn_round32;

typedef struct {
    sn_i32 product;            /* SN_PRODUCT_* */
    sn_i32 native;             /* sn_gemm32: the accumulator is binary32, rounded by the hardware's own add */
    sn_i32 fused_multiply_add; /* native, and the product needs the hardware's fma */
    sn_i64 chunk;              /* 0: one sum */
    sn_round32 product32, sum32, outer32;
    sn_rounding product64, sum64, outer64;
    sn_u32 key[2], key2[2]; /* Philox keys of domains 1 and 2 */
    sn_i32 two_roundings;   /* both product and sum are stochastic */
    sn_u32 batch;
} sn_gemm_unit;

/* out[m, n] = the unit's sum over k of a[m, k] * b[k, n], starting from c[m, n] (or +0), for m in [m0, m1), n in [0,
 * n). b has rows of ldb >= n rounded up to SN_GEMM_LANES elements, of which those from n on are 0. n0 is added to the
 * column and nothing to the row index in the Philox counters. Canonical NaNs out. */
enum { SN_GEMM_LANES = 16 };

typedef struct {
    const void *a, *b, *c; /* float (sn_gemm32) or double (sn_gemm64) */
    void *out;
    ptrdiff_t lda, ldb, ldc, ldo; /* in elements */
    ptrdiff_t m0, m1, n, k, n0;
} sn_gemm_args;

typedef struct {
    const char *name;
    /* out[i] = x[i] rounded to the format; words: random words or null (then from key, element index i); returns 1 if
     * an element had no result. x and out may be the same array. */
    int (*quantize32)(const sn_rounding *r, const float *x, float *out, size_t n, const sn_u32 *words,
                      const sn_u32 key[2]);
    int (*quantize64)(const sn_rounding *r, const double *x, double *out, size_t n, const sn_u32 *words,
                      const sn_u32 key[2]);
    void (*gemm32)(const sn_gemm_unit *u, const sn_gemm_args *g);
    void (*gemm64)(const sn_gemm_unit *u, const sn_gemm_args *g);
} sn_kernels;

enum { SN_ISA_PORTABLE = 0, SN_ISA_AVX2 = 1, SN_ISA_AVX512 = 2 };

/* The best instruction set that this CPU and its operating system run. */
int sn_detect_isa(void);

/* Its kernels; null if this build has none for it. The caller makes sure that the CPU can run them. */
const sn_kernels *sn_kernels_for(int isa);

/* The floating-point environment: save, set to nearest even without flush-to-zero and denormals-are-zero; restore. */
sn_u64 sn_fp_enter(void);
void sn_fp_leave(sn_u64 saved);

/* ---- the definition, for what no fast path covers ------------------------------------------------------------------
 */

typedef struct {
    sn_format operand_a, operand_b, product, accumulator, outer;
    sn_env product_env, sum_env, outer_env;
    sn_i32 fused;         /* one rounding a step: no product format */
    sn_i32 two_roundings; /* both product and sum are stochastic */
    sn_i64 chunk;
    sn_u32 key[2], key2[2];
    sn_u32 batch;
} sn_mad_unit;

/* As sn_gemm_args, on codes of 64 bits; words: null, or uint32 [m, n, steps, 2] for one batch element, with steps
 * = k + number of chunks. Returns a bit for each rounding
 * that met a NaN without a code in its format: 1 product, 2 sum, 4 outer sum. */
typedef struct {
    const sn_u64 *a, *b, *c;
    sn_u64 *out;
    const sn_u32 *words;
    ptrdiff_t lda, ldb, ldc, ldo;
    ptrdiff_t m0, m1, n, k, n_total, n0;
} sn_gemm_codes;

sn_u32 sn_gemm_definition(const sn_mad_unit *u, const sn_gemm_codes *g);

/* Convert n codes (widths in bytes: 1, 2, 4, 8) from one format to another; returns the OR of all flags. */
sn_u32 sn_convert_array(const sn_format *from, const void *in, int in_width, const sn_format *to, const sn_env *env,
                        void *out, int out_width, size_t n);

#endif

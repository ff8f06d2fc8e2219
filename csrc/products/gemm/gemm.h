/* Products of matrices under a unit: fast paths over carriers, one set per instruction set, and the definition over
 * codes. Each fast path states its domain (products/gemm/body.h); inside it the result equals the definition bit for
 * bit. */
#ifndef SOFTNUM_GEMM_H
#define SOFTNUM_GEMM_H

#include "dispatch/facts.h"
#include "dispatch/kernels.h"
#include "products/codes.h"
#include "softnum/units/chain.h"
#include "softnum/units/mad.h"

/* ---- fast paths -------------------------------------------------------------------------------------------------- */

/* How gemm32 computes; the domains: products/gemm/micro.h, odd.h, stochastic.h, ieee.h and lanes.h there. */
enum {
    SN_PATH_MAGIC = 0,
    SN_PATH_MIXED = 1,
    SN_PATH_FIXED = 2,
    SN_PATH_NATIVE = 3,
    SN_PATH_ODD = 4,
    SN_PATH_STOCHASTIC = 5,
    SN_PATH_WIDE = 6,
    SN_PATH_IEEE = 7,
    SN_PATH_LANES = 8
};

/* SN_PRODUCT_FUSED: native, and the product is not exact in binary32: one rounding by the hardware's fma. */
enum { SN_PRODUCT_EXACT = 0, SN_PRODUCT_NEAREST = 1, SN_PRODUCT_STOCHASTIC = 2, SN_PRODUCT_FUSED = 3 };

/* Rounding to nearest even in binary32 by the magic constant. */
typedef struct {
    sn_u32 emin, emax;    /* limits of the exponent E, as patterns of 2^E */
    sn_u32 sign_of_zero;  /* 0x80000000 if there is -0 */
    sn_i32 mantissa_bits; /* m */
    float scale;          /* C / 2^E: 1.5 * 2^(23 - m); in fixed point C itself; stochastic: 1.5 * 2^(23 - m - r) */
    float bound; /* what no sum of a tile may exceed for the rounding to do without tests (products/gemm/bounds.h); 0 */
    float limit[2];    /* largest, and minus the lowest, value */
    float overflow[2]; /* what replaces values beyond: [positive, negative] */
} sn_round32;

/* Where subnormals become zeros (products/gemm/ieee.h): nowhere; sums as they are read; results; results, those marked
 * that may have been tiny and are not subnormal; results, tininess decided. */
enum { SN_ZEROS_NOWHERE, SN_ZEROS_READ, SN_ZEROS_WRITTEN, SN_ZEROS_MARKED, SN_ZEROS_DECIDED };

/* What SN_PATH_IEEE knows more. */
typedef struct {
    sn_i32 lanes, reduction; /* as in sn_mad_unit */
    sn_i32 each;             /* a chunk has as many products as lanes, added as a tree: 2 or 4; else 0 */
    sn_i32 flush;            /* SN_ZEROS_* */
    sn_i32 before;           /* SN_ZEROS_MARKED: tininess is judged before the rounding */
    sn_i32 reads, positive;  /* what is subnormal of C is a zero of its sign; what is, or is zero, is +0 */
    sn_i32 signs[2];         /* of a and b: zeros keep their sign */
    sn_u64 least[2];         /* patterns of the carrier: magnitudes of a and b below become zeros */
    sn_i32 period;           /* of the order of k; the last period is filled up with zeros */
    const sn_i32 *order;     /* null: as they come */
} sn_ieee;

/* How the short way of SN_PATH_LANES decides: the last bit kept, or the sign, changes what is added before the cut; the
 * last bit kept is set where anything is cut off. */
enum { SN_ADDS_BY_PARITY, SN_ADDS_BY_SIGN, SN_SETS_LAST };

/* What it adds: how many places are cut off; their mask; the last place kept; what is added before; what more, if
 * negative. */
typedef struct {
    sn_i32 adds, places; /* SN_ADDS_* */
    sn_u64 cut, last, addend, if_negative;
} sn_short_rounding;

/* A rounding of SN_PATH_LANES (products/gemm/lanes.h). */
typedef struct {
    sn_rounding any; /* of the carrier; flushed results aside */
    /* the short way: of magnitudes whose patterns, and offset, are at most `most` as signed numbers */
    sn_u64 offset;
    sn_i64 most;
    sn_short_rounding cut, below; /* of these; in the binade below 2^emin, as if the exponent had no bound */
    sn_i32 short_way;             /* whether there is one */
    sn_i32 flush, before;         /* SN_FLUSH_*; tininess is judged before rounding */
    sn_u32 no_code;               /* 0, or a bit for NaN, which has no code: as sn_gemm_definition returns it */
    sn_u64 least_read;            /* magnitudes below are zeros where they are read */
    sn_u64 least_normal;          /* the pattern of 2^emin; 0: there is nothing tiny */
    /* fixed point that saturates: the pattern of M, or 0 for others; its ends, and what is added, in quarters of the
     * last place, as two's complement (products/gemm/lanes_body.h) */
    sn_u64 magic;
    sn_i64 ends[2];
    sn_short_rounding quarters;
} sn_lane_rounding;

/* What SN_PATH_LANES knows more. */
typedef struct {
    sn_lane_rounding product, sum, outer;
    sn_i32 ready;       /* the rest is set, also where another path is named: what it can do slower */
    sn_i32 exact;       /* products are exact in the carrier */
    sn_i32 native;      /* all roundings are the CPU's, in the carrier to nearest even */
    sn_i32 compensated; /* as in sn_mad_unit */
    sn_i32 down;        /* x - x is -0 */
    sn_u64 least_c;     /* the pattern of a magnitude of C, below which it is +0 */
} sn_lanes_unit;

typedef struct {
    sn_i32 path;               /* SN_PATH_*; sn_gemm64 computes carriers of 64 bits, sn_gemm32 the others */
    sn_i32 product;            /* SN_PRODUCT_* */
    sn_i32 exact_below;        /* addends are multiples of the sum's last place, chunks' sums of the outer sum's */
    sn_i32 may_be_exact_below; /* no, but of most operands they are: of these precisions and last places */
    sn_i32 precision[2], last[2], sum_last;
    sn_i64 chunk; /* 0: one sum */
    sn_round32 product32, sum32, outer32;
    sn_rounding product64, sum64, outer64; /* gemm64; prepared for 32 bits: SN_PATH_ODD, SN_PATH_STOCHASTIC */
    sn_u32 key[2], key2[2];                /* Philox keys of domains 1 and 2 */
    sn_i32 two_roundings;                  /* both product and sum are stochastic */
    sn_u32 batch;
    sn_source random;
    sn_ieee ieee;
    sn_lanes_unit lanes; /* and of ieee lanes, reduction, positive, signs, least, period and order */
} sn_gemm_unit;

/* out[m, n] = the unit's sum over k of a[m, k] * b[k, n], starting from c[m, n] (or +0), for m in [m0, m1), n in [0,
 * n). b has rows of ldb >= n rounded up to SN_GEMM_LANES elements, of which those from n on are 0. n0 is added to the
 * column and nothing to the row index in the Philox counters. Canonical NaNs out.
 * panel: room of sn_gemm_room bytes, in which a part of b is laid out; 64-byte alignment is fastest.
 */
enum { SN_GEMM_LANES = 16, SN_PANEL = 32, SN_IEEE_ROWS = 4, SN_LANES_ROWS = 4 };

typedef struct {
    const void *a, *b, *c; /* float (sn_gemm32) or double (sn_gemm64) */
    void *out;
    float *panel;
    ptrdiff_t lda, ldb, ldc, ldo; /* in elements */
    ptrdiff_t m0, m1, n, k, n0;
    const void *words; /* SN_SOURCE_GIVEN: integers of 8, 16 or 32 bits, whose rows and steps lie ldw[0] and ldw[1]
                        * bytes apart; those of row 0, step 0 and out's first column */
    ptrdiff_t ldw[2];
    sn_tally *tallies; /* null, or SN_MAD_TALLIES of them to add to, of a path that counts */
    sn_u32 *no_code;   /* null, or what the bits of sn_gemm_definition are added to: of SN_PATH_LANES */
} sn_gemm_args;

/* The bytes that g->panel must have; bits: of the carriers. */
size_t sn_gemm_room(const sn_gemm_unit *u, const sn_gemm_args *g, int bits);

typedef short sn_i16;

/* Fixed point without rounding: products/gemm/integer.h. a, b: integers of the operands' last places; k is even, the
 * last row of b 0 where K is odd; panel: k / 2 rows of SN_PANEL integers. c and out: values. */
typedef struct {
    const sn_i16 *a, *b;
    const double *c;
    double *out;
    sn_i32 *panel;
    ptrdiff_t lda, ldb, ldc, ldo, m, n, k;
    sn_i32 fraction_a, fraction_b; /* bits after the point of the operands */
    sn_i32 shift, bits, is_signed; /* from products to the accumulator; of the accumulator */
    sn_i32 wraps;
    sn_i32 careful; /* saturate after each step */
    sn_i64 chunk;   /* products that are summed from 0, before that is added; 0: none are */
    sn_i64 least, most;
    double scale; /* the accumulator's last place */
} sn_gemm_integers;

typedef struct {
    void (*gemm32)(const sn_gemm_unit *u, const sn_gemm_args *g);
    void (*gemm64)(const sn_gemm_unit *u, const sn_gemm_args *g);
    void (*integers)(const sn_gemm_integers *g);
} sn_gemm_kernels;

/* Those of an instruction set (SN_ISA_*); null if this build has none for it. */
const sn_gemm_kernels *sn_gemm_kernels_for(int isa);

/* ---- the definition, for what no fast path covers ------------------------------------------------------------------
 */

/* The random words of a sum have a step for each k and then for each addition of lanes and chunks, in the order of
 * their execution. Returns a bit for each rounding that met a NaN without a code in its format: 1 product, 2 sum, 4
 * outer sum.
 */
sn_u32 sn_gemm_definition(const sn_mad_unit *u, const sn_product_codes *g);

/* ---- which path computes a unit, on the CPU and in text for devices: products/gemm/paths.c ------------------------
 */

/* The fast path of a unit into *g, but keys and batch: returns the bits of its carriers, 32 or 64; 0 if it has none. a,
 * b: the operands' values, which may be fewer than their formats'. counting: the path that can count its roundings. */
int sn_gemm_path(const sn_mad_unit *u, sn_facts a, sn_facts b, int counting, sn_gemm_unit *g);

/* The same of a chain, whose order must outlive *g. */
int sn_chain_path(const sn_chain_unit *u, sn_facts a, sn_facts b, int counting, sn_gemm_unit *g);

/* How much of a rounding a product can do without (softnum/device/steps.h). */
enum { SN_LEVEL_FULL, SN_LEVEL_TESTED, SN_LEVEL_SIGNED, SN_LEVEL_BARE };

/* That of a whole product. largest: magnitudes in a, b and C, infinity if there is a NaN; negative_zero: in C. */
int sn_gemm_level(const sn_gemm_unit *u, ptrdiff_t k, const double largest[3], int negative_zero);

/* The path in integers of a unit into *g, but the operands; 0 if it has none. */
int sn_integer_path(const sn_mad_unit *u, sn_gemm_integers *g);

/* Whether sums may go without a test: they wrap, or k products of integers up to a and b, from one up to c, lie within
 * the accumulator and 32 bits. */
int sn_integers_fit(const sn_gemm_integers *g, ptrdiff_t k, double a, double b, double c);

#endif

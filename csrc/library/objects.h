/* What the objects of softnum.h are, and what its functions share. */
#ifndef SOFTNUM_LIBRARY_OBJECTS_H
#define SOFTNUM_LIBRARY_OBJECTS_H

#include "softnum.h"

#include "dispatch/kernels.h"
#include "elementwise/elementwise.h"
#include "products/exact/exact.h"
#include "products/fused/fused.h"
#include "products/gemm/gemm.h"

struct softnum_format {
    sn_format core;
    size_t bytes;            /* of a code */
    sn_decoding decoding[2]; /* to binary32, to binary64 */
    int decodes[2];          /* whether there is one */
    int isa;                 /* what runs results of it */
    const sn_kernels *kernels;
    char name[32];
};

struct softnum_rounder {
    softnum_format format;
    sn_env env;
    sn_rounding rounding[2]; /* from binary32, from binary64 */
    int rounds[2];           /* whether there is one */
    int widens;              /* whether codes of binary32 carriers are made in binary64 */
};

struct softnum_operation {
    softnum_format operand[3], result;
    sn_context context;
    sn_lanes lanes;
    sn_context *contexts[1]; /* a table of one */
    sn_context_table table;
    int op, operands, width; /* the largest bytes of a code */
};

struct softnum_unit {
    int kind;
    softnum_format a, b, c, result;
    int stochastic;
    int bits;                /* of the fast path's carriers; 0: there is none */
    softnum_rounder encoder; /* from those carriers to the result */
    union {
        struct {
            sn_mad_unit unit;
            sn_gemm_unit fast;
        } mad;
        struct {
            sn_exact_unit unit;
            sn_exact_fast fast;
        } exact;
        struct {
            sn_fused_unit unit;
            sn_fused_plan fast;
        } fused;
    } of;
};

/* Leave a text, if there is room for one, and return the status. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
softnum_status softnum_fail(softnum_why *why, softnum_status status, const char *text, ...);

/* Memory of a pointer's type, all zeros; or null, and *status and the text say so. */
void *softnum_new(size_t bytes, softnum_why *why, softnum_status *status);

/* The core's environment for results in a format; rules: or null. foreign: whether a rule of overflow that the format
 * lacks leaves it its own. */
softnum_status softnum_fill_env(const char *who, const softnum_rules *rules, const softnum_format *f, int foreign,
                                sn_env *env, softnum_why *why);

/* A rounder into *r, by the core's environment. */
void softnum_fill_rounder(const softnum_format *f, const sn_env *env, softnum_rounder *r);

/* The key of elementwise random words for elements from *random on; stochastic: whether any are needed. */
softnum_status softnum_check_random(const char *who, int stochastic, const softnum_random *random, softnum_why *why);

/* Words of elements i ... i + n - 1 of an array. */
void softnum_fill_words(const softnum_random *random, size_t i, sn_u32 *words, size_t n);

/* SOFTNUM_BAD_CODE if one of n codes, `stride` elements from the first of each row of `columns`, is none of the
 * format's. */
softnum_status softnum_check_codes(const char *who, const char *what, const softnum_format *f, const void *codes,
                                   size_t n, size_t first, softnum_why *why);

#endif

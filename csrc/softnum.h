/* softnum as a C library: number formats and their arithmetic over arrays, with the bits of the Python package softnum.
 *
 * - A function that can fail returns a softnum_status; where `why` is not null, an error leaves a text there that names
 *   the value, the limit and the way out. What should have been made is null then, and results mean nothing, but with
 *   SOFTNUM_NO_CODE they are all there.
 * - Nothing is global, no thread is started, no file or variable of the environment is read. Objects do not change once
 *   they are made, and hold copies of what they are made from: any number of threads may use one.
 * - Codes of a format take softnum_format_bytes bytes each (1, 2, 4 or 8), aligned, in this machine's byte order, zeros
 *   above the format's width. Arrays are contiguous, and may be null where n is 0.
 * - Results depend on no instruction set (the best is chosen when an object is made), on no cut of an array into calls,
 *   and not on the caller's floating-point environment, which is left as it was.
 * - Structs begin with their size, set by SOFTNUM_..._INIT, so that later versions can add fields. */
#ifndef SOFTNUM_H
#define SOFTNUM_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SOFTNUM_API __attribute__((visibility("default")))
#else
#define SOFTNUM_API
#endif
#ifdef __cplusplus
extern "C" {
#endif

#define SOFTNUM_VERSION "0.1.0"
SOFTNUM_API const char *softnum_version(void); /* of the library that is linked */
typedef enum {
    SOFTNUM_OK = 0,
    SOFTNUM_BAD_ARGUMENT = 1, /* a null pointer, an unknown name, a number or a combination out of range */
    SOFTNUM_BAD_CODE = 2,     /* bits above the format's width */
    SOFTNUM_NO_CODE = 3,      /* a NaN, of fixed point an infinity too, without a code: invalid_code stands there */
    SOFTNUM_NOT_EXACT = 4,    /* the type of the result does not hold a value */
    SOFTNUM_UNDECIDED = 5,    /* a function whose result wraps needs too many bits */
    SOFTNUM_NO_MEMORY = 6
} softnum_status;
SOFTNUM_API const char *softnum_status_text(softnum_status status); /* a few words; never null */

typedef struct {
    char text[256];
} softnum_why;
typedef struct softnum_format softnum_format;
typedef struct softnum_rounder softnum_rounder;
typedef struct softnum_operation softnum_operation;
typedef struct softnum_unit softnum_unit;

/* ---- formats ----------------------------------------------------------------------------------------------------- */
/* By name, in any case: binary16, bfloat16, e4m3fn ..., eXmY, qI.F, uqI.F, binaryKpP{s,u}{e,f}, i8 to u64. */
SOFTNUM_API softnum_status softnum_format_named(const char *name, softnum_format **format, softnum_why *why);

/* A float by its parameters; SOFTNUM_FLOAT_INIT(e, m): as IEEE 754 would have e exponent and m fraction bits. */
enum { SOFTNUM_NANS_AS_IEEE, SOFTNUM_NAN_IS_ALL_ONES, SOFTNUM_NAN_IS_MINUS_ZERO, SOFTNUM_NO_NANS };
enum { SOFTNUM_FIELD_0_SUBNORMAL, SOFTNUM_FIELD_0_NORMAL, SOFTNUM_FIELD_0_ZERO };
typedef struct {
    size_t size;
    int32_t exponent_bits, mantissa_bits, bias; /* 1 to 15 (16 without a fraction); 0 to 61; -65536 to 65536 */
    int32_t is_signed, nans, infinities, negative_zero, has_zero;
    int32_t field_0;    /* what exponent field 0 means */
    int32_t saturating; /* what is too large becomes the largest value, never NaN */
} softnum_float;
#define SOFTNUM_FLOAT_INIT(e, m) {sizeof(softnum_float), (e), (m), (1 << ((e) - 1)) - 1, 1, 0, 1, 1, 1, 0, 0}
SOFTNUM_API softnum_status softnum_format_float(const softnum_float *facts, softnum_format **format, softnum_why *why);

/* Fixed point of 1 to 64 bits; each part from -63 to 64, and the sign is one of the integer bits. */
SOFTNUM_API softnum_status softnum_format_fixed(int32_t integer_bits, int32_t fraction_bits, int32_t is_signed,
                                                softnum_format **format, softnum_why *why);
/* The same, on "portable", "avx2", "avx512" or "neon" as far as the CPU has it: what is made for results of it runs so.
 */
SOFTNUM_API softnum_status softnum_format_on(const softnum_format *format, const char *instruction_set,
                                             softnum_format **on, softnum_why *why);
SOFTNUM_API void softnum_format_free(softnum_format *format); /* each _free takes null, too */
SOFTNUM_API int32_t softnum_format_bits(const softnum_format *format);
SOFTNUM_API size_t softnum_format_bytes(const softnum_format *format);

/* ---- rounding ---------------------------------------------------------------------------------------------------- */
enum { SOFTNUM_NEAREST_EVEN, SOFTNUM_NEAREST_AWAY, SOFTNUM_NEAREST_ZERO, SOFTNUM_NEAREST_UP, SOFTNUM_NEAREST_DOWN };
enum { SOFTNUM_TOWARD_ZERO = 5, SOFTNUM_AWAY_FROM_ZERO, SOFTNUM_UP, SOFTNUM_DOWN, SOFTNUM_TO_ODD };
enum { SOFTNUM_STOCHASTIC = 10, SOFTNUM_STOCHASTIC_FLOOR, SOFTNUM_STOCHASTIC_FAST, SOFTNUM_STOCHASTIC_EVEN };
enum { SOFTNUM_STOCHASTIC_ODD = 14, SOFTNUM_STOCHASTIC_EQUAL };
/* The default is infinity of floats, saturate of fixed point. Wrap is of fixed point; the last of fused units; P3109's
 * older rule of its formats with infinities. */
enum { SOFTNUM_OVERFLOW_DEFAULT, SOFTNUM_OVERFLOW_INFINITY, SOFTNUM_OVERFLOW_SATURATE };
enum { SOFTNUM_OVERFLOW_SATURATE_FINITE = 3, SOFTNUM_OVERFLOW_WRAP, SOFTNUM_OVERFLOW_P3109_V3_2_1 = 6 };
enum { SOFTNUM_OVERFLOW_INFINITE_IN_EVERY_MODE = 5 };
enum { SOFTNUM_FLUSH_NONE, SOFTNUM_FLUSH_BEFORE, SOFTNUM_FLUSH_AFTER, SOFTNUM_FLUSH_SUBNORMAL };
enum { SOFTNUM_NAN_CANONICAL, SOFTNUM_NAN_X86, SOFTNUM_NAN_ARM };
typedef struct {
    size_t size;
    int32_t rounding, overflow;
    int32_t stochastic_bits; /* r of the stochastic modes, 1 to 32 */
    int32_t tiny_before;     /* UNDERFLOW is judged before rounding, not after */
    int32_t flush_inputs;    /* subnormal operands read as zero, sign kept */
    int32_t flush_results;   /* what is tiny before or after rounding, or subnormal then, becomes zero, sign kept */
    int32_t nan;             /* which NaN operations deliver */
    uint64_t invalid_code;   /* what stands for a NaN where the result's format has none */
} softnum_rules;
#define SOFTNUM_RULES_INIT {sizeof(softnum_rules), 0, 0, 32, 0, 0, 0, 0, 0}

/* The random words of a stochastic mode, else not looked at and null if you like: element i of an array takes words[i],
 * or where words is null word first + i of (seed, stream), as with Python's key=(seed, stream). */
typedef struct {
    size_t size;
    uint64_t seed, stream, first;
    const uint32_t *words;
} softnum_random;
#define SOFTNUM_RANDOM_INIT(seed) {sizeof(softnum_random), (seed), 0, 0, NULL}
SOFTNUM_API void softnum_random_words(uint64_t seed, uint64_t stream, uint64_t first, uint32_t *words, size_t n);

/* Exceptions (IEEE 754-2019 clause 7), a byte for each element; the last two mean what their statuses do. */
enum { SOFTNUM_FLAG_INEXACT = 1, SOFTNUM_FLAG_UNDERFLOW = 2, SOFTNUM_FLAG_OVERFLOW = 4 };
enum { SOFTNUM_FLAG_DIVIDE_BY_ZERO = 8, SOFTNUM_FLAG_INVALID = 16 };
enum { SOFTNUM_FLAG_NO_CODE = 32, SOFTNUM_FLAG_UNDECIDED = 64 };

/* ---- values ------------------------------------------------------------------------------------------------------ */
SOFTNUM_API softnum_status softnum_rounder_new(const softnum_format *format, const softnum_rules *rules_or_null,
                                               softnum_rounder **rounder, softnum_why *why);
SOFTNUM_API void softnum_rounder_free(softnum_rounder *rounder);
/* out[i] = x[i] rounded to the format; NaNs are canonical; out may be x. SOFTNUM_NOT_EXACT where the type does not hold
 * a result: take double, or encode. */
SOFTNUM_API softnum_status softnum_quantize_f32(const softnum_rounder *rounder, const float *x, float *out, size_t n,
                                                const softnum_random *random, softnum_why *why);
SOFTNUM_API softnum_status softnum_quantize_f64(const softnum_rounder *rounder, const double *x, double *out, size_t n,
                                                const softnum_random *random, softnum_why *why);
/* codes[i] = the code of x[i] rounded to the format; flags: null, or n bytes. */
SOFTNUM_API softnum_status softnum_encode_f32(const softnum_rounder *rounder, const float *x, void *codes,
                                              uint8_t *flags, size_t n, const softnum_random *random, softnum_why *why);
SOFTNUM_API softnum_status softnum_encode_f64(const softnum_rounder *rounder, const double *x, void *codes,
                                              uint8_t *flags, size_t n, const softnum_random *random, softnum_why *why);
/* out[i] = the value of codes[i]; SOFTNUM_NOT_EXACT where the type does not hold it. */
SOFTNUM_API softnum_status softnum_decode_f32(const softnum_format *format, const void *codes, float *out, size_t n,
                                              softnum_why *why);
SOFTNUM_API softnum_status softnum_decode_f64(const softnum_format *format, const void *codes, double *out, size_t n,
                                              softnum_why *why);

/* ---- operations -------------------------------------------------------------------------------------------------- */
/* The name of operation i ("convert", "add", "fma", "compare", "exp" ...) and its operands; null behind the last. */
SOFTNUM_API const char *softnum_operation_name(size_t i, int32_t *operands);
/* operands: a format for each; results are rounded once. The second operand of scalb is of a format qI.0. */
SOFTNUM_API softnum_status softnum_operation_new(const char *name, const softnum_format *const *operands,
                                                 const softnum_format *result, const softnum_rules *rules_or_null,
                                                 softnum_operation **operation, softnum_why *why);
SOFTNUM_API void softnum_operation_free(softnum_operation *operation);
/* out[i] = the operation of codes in[0][i], in[1][i] ..., a code; flags: null, or n bytes. out may be an operand whose
 * codes take as many bytes. Of compare: 0 less, 1 equal, 2 greater, 3 unordered. */
SOFTNUM_API softnum_status softnum_operate(const softnum_operation *operation, const void *const *in, void *out,
                                           uint8_t *flags, size_t n, const softnum_random *random, softnum_why *why);

/* ---- products of matrices ---------------------------------------------------------------------------------------- */
/* Multiply-add, acc = round(acc + round(a * b)); the exact sum, rounded once; the dot-product-add of tensor cores. They
 * are Python's MadUnit, ExactDotUnit and FusedDotUnit, whose documentation defines them. */
enum { SOFTNUM_UNIT_MAD, SOFTNUM_UNIT_EXACT, SOFTNUM_UNIT_FUSED };
enum { SOFTNUM_REDUCE_IN_ORDER, SOFTNUM_REDUCE_AS_TREE, SOFTNUM_REDUCE_BY_HALVES };
#define SOFTNUM_NONE INT32_MIN
typedef struct {
    size_t size;
    int32_t kind;                      /* SOFTNUM_UNIT_... */
    const softnum_format *a, *b;       /* of the factors */
    const softnum_format *accumulator; /* of sums, and of C and the result but for the next */
    const softnum_format *result;      /* null; or mad: of the sum of chunks, and C; fused: of the last step */
    const softnum_rules *rules;        /* null, or of sums; what else is rounded goes by it as far as its format can */
    const softnum_format
        *product; /* mad: null, or what products are rounded to; the mode, or NONE: that of the rules */
    int32_t product_rounding;
    int32_t lanes, reduction, compensated; /* mad: 1 to 1024; SOFTNUM_REDUCE_...; whether sums are Kahan's */
    int64_t chunk;                         /* mad: products of a partial sum; 0: all */
    int32_t terms, fraction_bits; /* fused: products of a step; bits kept below the largest exponent, 0 to 100 */
    int32_t min_exponent, zero_exponent, truncate_fraction; /* fused: or NONE */
} softnum_unit_facts;
/* clang-format off */
#define SOFTNUM_UNIT_INIT(kind) \
    {sizeof(softnum_unit_facts), (kind), NULL, NULL, NULL, NULL, NULL, NULL, SOFTNUM_NONE, 1, 0, 0, 0, 1, 23, \
     SOFTNUM_NONE, SOFTNUM_NONE, SOFTNUM_NONE}
/* clang-format on */
SOFTNUM_API softnum_status softnum_unit_new(const softnum_unit_facts *facts, softnum_unit **unit, softnum_why *why);
SOFTNUM_API void softnum_unit_free(softnum_unit *unit);

/* out[m, n] = the unit's sum over k of a[m, k] * b[k, n] from c[m, n], or where c is null +0; all of them codes. */
typedef struct {
    size_t size;
    size_t m, n, k; /* each below 2^32 */
    const void *a, *b, *c;
    void *out;                               /* overlaps no operand */
    size_t lda, ldb, ldc, ldo;               /* elements from row to row; 0: contiguous */
    uint64_t seed, stream;                   /* of a stochastic unit, as Python's key= */
    uint32_t batch, first_row, first_column; /* of a part of a larger product, whose random words it takes */
} softnum_product;
#define SOFTNUM_PRODUCT_INIT(m, n, k)                                                                                  \
    {sizeof(softnum_product), m, n, k, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0}
SOFTNUM_API softnum_status softnum_gemm(const softnum_unit *unit, const softnum_product *product, softnum_why *why);
/* partial[i] = what the unit gives of the first i + 1 products of one row and one column, codes of the result; the time
 * grows as k squared. The product's out is not looked at. */
SOFTNUM_API softnum_status softnum_trace(const softnum_unit *unit, const softnum_product *product, void *partial,
                                         softnum_why *why);

#ifdef __cplusplus
}
#endif
#endif

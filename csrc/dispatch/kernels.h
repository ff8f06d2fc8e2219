/* Fast paths over arrays of values ("carriers"), one set per instruction set. Each states its domain; inside it the
 * result equals the definition (arith.h) bit for bit, on every instruction set. */
#ifndef SOFTNUM_KERNELS_H
#define SOFTNUM_KERNELS_H

#include <stddef.h>

#include "softnum/operations/elementary.h"
#include "softnum/rounding/env.h"
#include "softnum/rounding/format.h"
#include "softnum/word/philox.h"

/* A code of `width` bytes (1, 2, 4 or 8). */
static inline sn_u64 sn_load_code(const void *p, int width) {
    switch (width) {
    case 1: return *(const sn_u8 *)p;
    case 2: return *(const sn_u16 *)p;
    case 4: return *(const sn_u32 *)p;
    default: return *(const sn_u64 *)p;
    }
}

static inline void sn_store_code(void *p, int width, sn_u64 code) {
    switch (width) {
    case 1: *(sn_u8 *)p = (sn_u8)code; break;
    case 2: *(sn_u16 *)p = (sn_u16)code; break;
    case 4: *(sn_u32 *)p = (sn_u32)code; break;
    default: *(sn_u64 *)p = code;
    }
}

/* ---- carriers and codes ------------------------------------------------------------------------------------------ */

/* What a finite value beyond the largest, an infinity and a NaN become; [positive, negative]. */
typedef struct {
    sn_u64 overflow[2], infinity[2], nan;
} sn_outcomes;

/* How the lanes decide; each is a loop of its own. */
enum {
    SN_FAMILY_EVEN,
    SN_FAMILY_NEAREST,
    SN_FAMILY_DIRECTED,
    SN_FAMILY_ODD,
    SN_FAMILY_STOCHASTIC,
    SN_FAMILY_RANDOM,
    SN_FAMILY_NONE /* not in lanes */
};
#define SN_BY_SIGN(family) ((family) == SN_FAMILY_NEAREST || (family) == SN_FAMILY_DIRECTED) /* if negative is 1 */

/* How the CPU rounds. */
enum { SN_FP_NEAREST, SN_FP_DOWN, SN_FP_UP, SN_FP_ZERO };

/* What fast paths know of the rounding modes, by their numbers (rounding/modes.h). */
typedef struct {
    const char *name;
    sn_i32 family;                              /* SN_FAMILY_* */
    sn_i32 negative, constant, direction, bump; /* as in sn_rounding */
} sn_mode;
extern const sn_mode sn_modes[SN_ROUNDING_MODES];

/* A format and an environment, prepared for rounding binary32 or binary64 patterns in integer arithmetic, to patterns
 * or to codes. Domain:
 *   - floats of at most 23 (52) fraction bits whose binades, the lowest one too, are normal in the carrier: signed or
 *     not, with or without zero, whatever the lowest binade holds. Where it is normal and there is a zero, not the
 *     stochastic modes; where there is no zero, formats with a NaN; where it holds 0 alone, above the carrier's lowest.
 *   - fixed point that saturates, with integer and fraction bits together at most 23 (52).
 * Fixed point is treated as the subnormals of a float whose normal numbers begin at 2^integer bits: what lies there
 * saturates, however coarsely it is rounded first.
 * The modes of a number beyond SN_STOCHASTIC_FLOOR look at bit r + 1: r <= 31 in binary32. */
typedef struct {
    sn_i32 mantissa_bits, biased_emin;
    sn_i32 rounding, stochastic_bits;
    sn_i32 family;              /* SN_FAMILY_* */
    sn_i32 negative, constant;  /* 0 or 1: (negative & sign) ^ constant decides, of a tie (nearest) or of anything
                                   inexact (directed), whether it goes up */
    sn_i32 unusual;             /* the lowest binade holds no subnormals */
    sn_i32 no_nan, no_infinity; /* a NaN, an infinity has no result: reported */
    sn_i32 lowest, has_zero, fixed;
    sn_u64 quantum;              /* pattern of the smallest value above 0 */
    sn_u64 half_gap;             /* pattern of its half, where the lowest binade is normal */
    sn_u64 gap_threshold[2];     /* there: the least pattern that is not rounded to 0, of each sign */
    sn_i64 easy;                 /* the largest pattern in the domain of either short way, or -1 */
    sn_i64 last;                 /* the largest whose code either finds, which is past the limits, or -1 */
    sn_u64 below_one;            /* round_in_place: mask of the places cut off; or 0, and lanes/magic.h it is */
    sn_u64 least, to_constant;   /* of its E, in place; from E to C */
    sn_i32 direction, bump;      /* SN_FP_*; added to halves of a last place before the cut */
    sn_u64 sign_of_zero;         /* the pattern of -0 if the format has it */
    sn_u64 sign_mask, code_mask; /* of a code */
    sn_i32 bits, negative_zero;
    sn_i64 limit[2];           /* the largest magnitude code of each sign; -1: not even 0 */
    sn_i64 least_limit;        /* the smaller of the two */
    sn_outcomes values, codes; /* as patterns, as codes */
} sn_rounding;

/* The carriers as formats. */
extern const sn_format sn_binary32, sn_binary64;

/* Prepare for carriers of 32 or 64 bits; returns 0 if the format or the environment lies outside the domain. */
int sn_rounding_prepare(const sn_format *f, const sn_env *env, int carrier_bits, sn_rounding *r);

/* Stochastic rounding where the lowest binade is normal: whether a magnitude, u as a pattern of the carrier of M
 * fraction bits, between 0 and the smallest value becomes that value; else 0. */
sn_i32 sn_leaves_gap(const sn_rounding *r, sn_u64 u, sn_i32 M, sn_i32 sign, sn_u32 random);

/* A format prepared for decoding to binary32 or binary64 patterns. Domain: as sn_rounding's, in any environment. */
typedef struct {
    sn_i32 bits, fixed, negative_zero, nan_is_negative_zero, subnormals;
    sn_i32 shift;                     /* from a code's fraction to the carrier's */
    sn_i64 low;                       /* magnitudes below it are subnormal, or zero */
    sn_i64 max_code, inf_code;        /* inf_code: -1 if there is none */
    sn_u64 sign_mask, magnitude_mask; /* of a code; magnitude_mask with the sign in fixed point */
    sn_u64 rebias;                    /* added to an exponent in place */
    sn_u64 first;                     /* pattern of 2^emin */
    sn_u64 nan;                       /* the carrier's */
} sn_decoding;

int sn_decoding_prepare(const sn_format *f, int carrier_bits, sn_decoding *d);

/* The random words of elements 0, 1 ... of an array: words[i], or if that is null word first + i of the key; first is a
 * multiple of 4 * SN_WORD_BLOCKS. */
enum { SN_WORD_BLOCKS = 64 };
typedef struct {
    const sn_u32 *words;
    sn_u32 key[2];
    sn_u64 first;
} sn_random_source;

/* ---- operations on codes ------------------------------------------------------------------------------------------
 */

enum {
    SN_LANES_CONVERT,
    SN_LANES_ADD,
    SN_LANES_SUBTRACT,
    SN_LANES_MULTIPLY,
    SN_LANES_FMA,
    SN_LANES_DIVIDE,
    SN_LANES_SQRT
};

/* An operation prepared for binary64 lanes; the domain and its proof: elementwise/operate.h. */
typedef struct {
    sn_i32 operation, operands; /* SN_LANES_* */
    sn_i32 down;                /* x - x is -0 */
    sn_i32 stochastic;          /* words are needed */
    sn_decoding in[3];
    sn_rounding out;
} sn_lanes;

/* Returns 0 if formats or environment lie outside the domain. in: as many formats as the operation has operands. */
int sn_lanes_prepare(int operation, const sn_format *in, const sn_format *out, const sn_env *env, sn_lanes *p);

/* What elementwise/short/floats.h goes by: of an operand, the codes of its normal numbers, first .. first + span. */
typedef struct {
    sn_u64 magnitude_mask, sign_mask, first, span;
    sn_i32 shift, base;         /* exponent of a code = field + base */
    sn_u64 inf_code, quiet_bit; /* of a magnitude, all ones if there is none; 0: every NaN is quiet */
    sn_i32 nan_is_negative_zero;
} sn_normal_operand;

typedef struct {
    sn_normal_operand operand[3];
    const sn_env *env;
    sn_u64 max_code, sign_mask;
    sn_i32 mantissa_bits, exp_of_zero, exp_first, is_unsigned, narrow_root, narrow_product, narrow_factors;
    sn_i32 in_lanes; /* the rounding is one of elementwise/short/lanes.h */
    sn_i32 in_32;    /* lanes of 32 bits are enough */
    sn_i32 whole;    /* so is what is no normal number; then the rest matters: */
    sn_i32 emin, negative_zero, has_nan, zero_divides_to_nan;
    sn_u64 nan_code, overflow[2], infinity[2];              /* of each sign */
    sn_u32 exp_span, inexact, underflow, overflows, raises; /* flags: those, and all that the format raises */
} sn_normals;

/* ---- functions --------------------------------------------------------------------------------------------------- */

/* Of one operand; of two. */
#define SN_FUNCTIONS_IN_LANES(X)                                                                                       \
    X(exp)                                                                                                             \
    X(exp2)                                                                                                            \
    X(exp10)                                                                                                           \
    X(expm1)                                                                                                           \
    X(exp2m1)                                                                                                          \
    X(exp10m1)                                                                                                         \
    X(sinh)                                                                                                            \
    X(cosh)                                                                                                            \
    X(tanh)                                                                                                            \
    X(sigmoid)                                                                                                         \
    X(silu)                                                                                                            \
    X(softplus)                                                                                                        \
    X(erf)                                                                                                             \
    X(log)                                                                                                             \
    X(log2)                                                                                                            \
    X(log10)                                                                                                           \
    X(log1p)                                                                                                           \
    X(log2p1)                                                                                                          \
    X(log10p1)                                                                                                         \
    X(sin)                                                                                                             \
    X(cos)                                                                                                             \
    X(tan)                                                                                                             \
    X(sinpi)                                                                                                           \
    X(cospi)                                                                                                           \
    X(tanpi)                                                                                                           \
    X(asin)                                                                                                            \
    X(acos)                                                                                                            \
    X(atan)                                                                                                            \
    X(asinpi)                                                                                                          \
    X(acospi)                                                                                                          \
    X(atanpi)                                                                                                          \
    X(asinh)                                                                                                           \
    X(acosh)                                                                                                           \
    X(atanh)                                                                                                           \
    X(cbrt)                                                                                                            \
    X(rsqrt)                                                                                                           \
    X(reciprocal)                                                                                                      \
    X(gelu)

#define SN_FUNCTIONS_OF_TWO_IN_LANES(X)                                                                                \
    X(pow)                                                                                                             \
    X(powr)                                                                                                            \
    X(pown)                                                                                                            \
    X(rootn)                                                                                                           \
    X(compound)                                                                                                        \
    X(hypot)                                                                                                           \
    X(atan2)                                                                                                           \
    X(atan2pi)                                                                                                         \
    X(logaddexp)                                                                                                       \
    X(logaddexp2)

enum { SN_WIDE_BLOCK = 4 * SN_WORD_BLOCKS }; /* elements of a call, at most */

/* What the others give: codes of a format of SN_FUNCTION_BITS fraction bits that has more exponents than binary64. */
enum { SN_FUNCTION_BITS = 48, SN_FUNCTION_BIAS = 16383 };
#define SN_FUNCTION_SIGNALING (((sn_u64)0x7fff << SN_FUNCTION_BITS) + 1) /* of what is invalid */
#define SN_FUNCTION_NAN ((sn_u64)0x7ff8 << 48)                           /* as a binary64 number */

/* A function prepared for binary64 lanes; the domain and its proof: elementwise/functions/evaluate.h. */
typedef struct {
    sn_i32 function, shift; /* SN_ELEMENTARY_*; bits of a binary64 number that decide nothing */
    sn_i32 by_one;          /* codes are converted one by one: to fixed point */
    sn_i32 to_values;       /* results are binary64 numbers that round as they do by `out`: without flags */
    sn_i32 without_nan;     /* of these, what is invalid is left to the definition */
    sn_i32 wide;            /* by wide_function */
    sn_decoding in[2];
    sn_rounding out;
} sn_function;

/* ---- operations on values ---------------------------------------------------------------------------------------- */

enum { SN_CARRIED_OWN, SN_CARRIED_SINGLE, SN_CARRIED_DOUBLE }; /* elementwise/carried.c */

typedef struct {
    sn_i32 way, operation, operands; /* SN_CARRIED_*, SN_LANES_* */
    sn_rounding out;                 /* of SN_CARRIED_SINGLE, from binary32 */
    sn_lanes wide;                   /* of SN_CARRIED_DOUBLE; down of all */
} sn_carried;

/* Floats of a part of a tree of sums, that stay near; of a row of it, at most. */
enum { SN_TREE = 4096, SN_TREE_WIDTH = 128 };

/* Columns of carriers: row r begins at x + r / inner_rows * outer + r % inner_rows * inner. */
typedef struct {
    const float *x;
    size_t rows, columns, inner_rows, outer, inner, column;
} sn_table;

typedef struct {
    const char *name;
    /* out[i] = x[i] rounded to the format; returns 1 if an element had no result. x and out may be the same array. */
    int (*quantize32)(const sn_rounding *r, const float *x, float *out, size_t n, const sn_random_source *random);
    int (*quantize64)(const sn_rounding *r, const double *x, double *out, size_t n, const sn_random_source *random);
    /* The same to codes of 1, 2, 4 or 8 bytes, at least as wide as the format. widened: floats, for an r prepared for
     * binary64, in which they are exact. */
    int (*encode32)(const sn_rounding *r, const float *x, void *codes, int width, size_t n,
                    const sn_random_source *random);
    int (*encode64)(const sn_rounding *r, const double *x, void *codes, int width, size_t n,
                    const sn_random_source *random);
    int (*encode_widened)(const sn_rounding *r, const float *x, void *codes, int width, size_t n,
                          const sn_random_source *random);
    /* Codes to values; bits of a code above the format's are ignored. */
    void (*decode32)(const sn_decoding *d, const void *codes, int width, float *out, size_t n);
    void (*decode64)(const sn_decoding *d, const void *codes, int width, double *out, size_t n);
    /* out[i] = the operation on in[0][i] ...; all codes are of `width` bytes; words: one for each element, or null. out
     * may be one of the operands. */
    void (*operate)(const sn_lanes *p, const void *const in[3], int width, void *out, size_t n, const sn_u32 *words);
    /* The same by the short way of floats (elementwise/short/lanes.h), SN_LANES_*, with flags; where outside[i] is set,
     * the rest of element i means nothing. Null where one by one is quicker. Every array is read and written up to the
     * next multiple of 16 elements. */
    void (*short_floats)(int operation, const sn_normals *plan, const void *const in[3], int width, void *out,
                         sn_u8 *flags, sn_u8 *outside, size_t n, const sn_u32 *words);
    /* results[i] = a code, of the format that SN_FUNCTION_BITS states, or the pattern of a binary64 number (to_values)
     * that rounds as the function of x[i] does; where outside[i] is set it means nothing. Every array is read and
     * written up to the next multiple of 16 elements. */
    void (*function)(const sn_function *p, const double *x, sn_u64 *results, sn_u8 *outside, size_t n);
    /* The same of x[i] and y[i]. */
    void (*function_of_two)(const sn_function *p, const double *x, const double *y, sn_u64 *results, sn_u8 *outside,
                            size_t n);
    /* out[i] = the operation on values, n of them, at most 8 * SN_WORD_BLOCKS; 1: one had no result. All three pointers
     * can be read. */
    int (*carried)(const sn_carried *p, const float *const in[3], float *out, size_t n, const sn_random_source *random);
    /* out[i] = the sum of column i, as a tree (elementwise/carried.h), by an addition that is not stochastic; 1: one
     * had no result. scratch: sn_tree_scratch floats. */
    int (*tree)(const sn_carried *p, const sn_table *t, float *out, float *scratch);
    /* words[i] = word i of the key */
    void (*words)(const sn_random_source *random, sn_u32 *words, size_t n);
    /* out[i] = the code of `width` bytes of the function of x[0][i], and x[1][i] if it has two operands, n <=
     * SN_WIDE_BLOCK, with flags, as short_floats. Null where one by one is quicker. */
    void (*wide_function)(const sn_function *p, const sn_normals *plan, const double *const x[2], int width, void *out,
                          sn_u8 *flags, sn_u8 *outside, size_t n);
} sn_kernels;

/* Each processor's own, slowest first. */
enum { SN_ISA_PORTABLE = 0, SN_ISA_AVX2 = 1, SN_ISA_AVX512 = 2, SN_ISA_NEON = 1 };

/* Whether this build has kernels at all. On WebAssembly, where a CPU's rounding cannot be set and a page is to load
 * quickly, the definitions do everything. */
#if defined(__wasm__)
#define SN_KERNELS_BUILT 0
#else
#define SN_KERNELS_BUILT 1
#endif

/* Defines name##_for(isa): what this build has under that name for an instruction set (SN_TARGET, lanes/isa.h); null if
 * it has nothing for that one. */
#if defined(__x86_64__)
#define SN_DISPATCH(type, name)                                                                                        \
    extern type name##_portable, name##_avx2, name##_avx512;                                                           \
    type *name##_for(int isa) {                                                                                        \
        return isa == SN_ISA_AVX512     ? &name##_avx512                                                               \
               : isa == SN_ISA_AVX2     ? &name##_avx2                                                                 \
               : isa == SN_ISA_PORTABLE ? &name##_portable                                                             \
                                        : NULL;                                                                        \
    }
#elif defined(__aarch64__)
#define SN_DISPATCH(type, name)                                                                                        \
    extern type name##_portable, name##_neon;                                                                          \
    type *name##_for(int isa) {                                                                                        \
        return isa == SN_ISA_NEON ? &name##_neon : isa == SN_ISA_PORTABLE ? &name##_portable : NULL;                   \
    }
#elif !SN_KERNELS_BUILT
#define SN_DISPATCH(type, name)                                                                                        \
    type *name##_for(int isa) { return (void)isa, (type *)NULL; }
#else
#define SN_DISPATCH(type, name)                                                                                        \
    extern type name##_portable;                                                                                       \
    type *name##_for(int isa) { return isa == SN_ISA_PORTABLE ? &name##_portable : NULL; }
#endif

/* The best instruction set that this CPU and its operating system run. */
int sn_detect_isa(void);

/* Its kernels; null if this build has none for it. The caller makes sure that the CPU can run them. */
const sn_kernels *sn_kernels_for(int isa);

/* The floating-point environment: save, set to nearest even without flush-to-zero and denormals-are-zero; restore. */
sn_u64 sn_fp_enter(void);
void sn_fp_leave(sn_u64 saved);

/* Whether it is what sn_fp_enter sets, as far as results depend on it. */
int sn_fp_is_plain(void);

/* Between the two: how the CPU rounds, SN_FP_*. */
void sn_fp_round(int direction);

/* out[i] = table[codes[i]]; entries of 4 or 8 bytes, codes of 1 or 2. */
void sn_look_up(const void *table, int entry, const void *codes, int width, void *out, size_t n);

/* Convert n codes (widths in bytes: 1, 2, 4, 8) from one format to another; returns the OR of all flags. */
sn_u32 sn_convert_array(const sn_format *from, const void *in, int in_width, const sn_format *to, const sn_env *env,
                        void *out, int out_width, size_t n);

#endif

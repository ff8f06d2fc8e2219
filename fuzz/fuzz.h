/* What the parts of the fuzz target share: bytes read as formats, environments and codes, and the way a find is
 * reported. Every input means something: what is not valid is bent until it is, what is missing reads as 0. */
#ifndef SOFTNUM_FUZZ_H
#define SOFTNUM_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/kernels.h"
#include "elementwise/elementwise.h"

typedef struct {
    const sn_u8 *data;
    size_t size;
} fuzz_input;

/* One operation on one set of codes, with all that its result depends on. */
typedef struct {
    int op;
    sn_context context;
    sn_u64 code[3];
    sn_u32 word;
} fuzz_trial;

typedef struct {
    sn_u64 code;
    sn_u32 flags;
} fuzz_result;

/* ---- reading the input ------------------------------------------------------------------------------------------- */

sn_u64 fuzz_take(fuzz_input *in, int bytes);
int fuzz_choose(fuzz_input *in, int n); /* 0..n-1, n <= 65536 */

/* A format that softnum.formats would make, of at most max_bits (2 to 64). */
/* Bits after the point of fixed point: inside of the code mostly, else wherever a name has them. */
int fuzz_take_fraction(fuzz_input *in, int bits);
sn_format fuzz_take_format(fuzz_input *in, int max_bits);
sn_format fuzz_float(int exponent_bits, int mantissa_bits, int bias); /* as IEEE 754's, with another bias */
sn_format fuzz_fixed(int integer_bits, int fraction_bits, int is_signed);
sn_env fuzz_take_env(fuzz_input *in, const sn_format *out);
/* A rule for results in f, of three; older: for formats of P3109 with infinities that of its older draft, instead of
 * the first. */
sn_i32 fuzz_overflow(const sn_format *f, int rule, int older);
sn_env fuzz_plain_env(int rounding); /* for exact results, and for rounding to odd */

/* A code, often one where something happens; now and then with bits set above the format's. */
sn_u64 fuzz_take_code(fuzz_input *in, const sn_format *f);

/* count elements of size bytes in a buffer with not one byte more, so that a sanitizer sees what runs over. */
void *fuzz_buffer(size_t count, size_t size);

/* ---- judging ----------------------------------------------------------------------------------------------------- */

/* Through the loop for 64-bit codes, with flags: by the definition; by the short way, where there is one. */
fuzz_result fuzz_evaluate(const fuzz_trial *t);
fuzz_result fuzz_evaluate_short(const fuzz_trial *t);

/* The code by an instruction set's vectors; 0 where they have no domain. */
int fuzz_evaluate_lanes(const fuzz_trial *t, int isa, sn_u64 *code);

sn_u64 fuzz_mask(const sn_format *f); /* the bits of a code */
int fuzz_is_nan(const sn_format *f, sn_u64 code);
int fuzz_order(const sn_format *f, sn_u64 a, const sn_format *g, sn_u64 b); /* SN_LESS ... */

/* Print the trial (or null) and what is wrong, and abort. */
_Noreturn void fuzz_fail(const char *where, int line, const fuzz_trial *t, const char *condition);

#define FUZZ_EXPECT(t, condition) ((condition) ? (void)0 : fuzz_fail(__FILE__, __LINE__, t, #condition))

/* ---- the checks ---------------------------------------------------------------------------------------------------
 */

void fuzz_operation(fuzz_input *in); /* one result: its range, its rounding, its relation to other operations */
void fuzz_loops(fuzz_input *in);     /* arrays of codes: widths, strides, tables, handles */
void fuzz_arrays(fuzz_input *in);    /* convert arrays and random words */
void fuzz_quantize(fuzz_input *in);  /* quantize32 and quantize64 of every instruction set against sn_convert */
void fuzz_gemm(fuzz_input *in);      /* gemm32 and gemm64 of every instruction set against sn_gemm_definition */
void fuzz_integer(fuzz_input *in);   /* the same for fixed point without rounding */
void fuzz_mad(fuzz_input *in);       /* sn_gemm_definition against a plain loop over single operations */
void fuzz_fused(fuzz_input *in);     /* fused units: fast paths, and the definition against integers */
void fuzz_two_stage(fuzz_input *in); /* units in two stages: the same */
void fuzz_chain(fuzz_input *in);     /* sn_chain_definition against single fused multiply-adds */
void fuzz_exact(fuzz_input *in);     /* exact sums: fast paths, and the definition against a sum in digits */
void fuzz_tapered(fuzz_input *in);   /* sums in posits and takums over values, against single numbers */

int LLVMFuzzerTestOneInput(const sn_u8 *data, size_t size);

#endif

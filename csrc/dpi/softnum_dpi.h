/* softnum as the reference model inside a simulator: functions on 64-bit integers, for SystemVerilog's DPI-C and for
 * VPI. softnum_pkg.sv imports them; softnum_vpi.c makes system functions of them; C may call them, too.
 *
 * formats: a handle of softnum_dpi_format, the same in every process: four fields of 16 bits, from the lowest the
 * result's format and those of operands a, b and c. A field of 0 stands for the one before it.
 * mode: SOFTNUM_* below, OR-ed. The rounding mode's number alone means the defaults of Python's softnum.
 * random: the random word of a stochastic mode, in the low 32 bits; else not looked at.
 * flags: exceptions are OR-ed into *flags: inexact 1, underflow 2, overflow 4, division by zero 8, invalid 16.
 *
 * A result that is NaN in a format without NaN is code 0 with the flag invalid, as in the files of `softnum vectors`.
 * What has no answer (a handle that is none, a mode that a format does not know, a code with bits above its format's)
 * sets SOFTNUM_ERROR in *flags and returns all ones; softnum_dpi_message says what is wrong. Nothing else is kept from
 * one call to the next, but formats that softnum_dpi_define named; the message is the calling thread's own. */
#ifndef SOFTNUM_DPI_H
#define SOFTNUM_DPI_H

#include "softnum/operations/operations.h"

#ifdef __cplusplus
#define SOFTNUM_C extern "C"
#else
#define SOFTNUM_C extern
#endif
#if defined(__GNUC__)
#define SOFTNUM_DPI SOFTNUM_C __attribute__((visibility("default")))
#else
#define SOFTNUM_DPI SOFTNUM_C
#endif

#define SOFTNUM_ERROR ((sn_u64)1 << 63)
#define SOFTNUM_NO_HANDLE (~(sn_u64)0)

/* mode: the rounding mode in bits 0-7 (SN_NEAREST_EVEN ..., softnum/rounding/env.h), and */
enum {
    SOFTNUM_OVERFLOW_SHIFT = 8, /* bits 8-11: 0 the format's default, else 1 + SN_OVERFLOW_... */
    SOFTNUM_OVERFLOW_ALWAYS_INFINITY = 5 << SOFTNUM_OVERFLOW_SHIFT, /* of a fused dot product */
    SOFTNUM_TININESS_BEFORE = 1 << 12,
    SOFTNUM_FLUSH_INPUTS = 1 << 13,
    SOFTNUM_FLUSH_SHIFT = 14, /* bits 14-15: SN_FLUSH_..., of results */
    SOFTNUM_NAN_SHIFT = 16,   /* bits 16-19: SN_NAN_..., or 3: the one NaN of GPUs (fpu.h, sn_cuda_nan) */
    SOFTNUM_NAN_CUDA = 3 << SOFTNUM_NAN_SHIFT,
    SOFTNUM_BITS_SHIFT = 24, /* bits 24-31: r of the stochastic modes, 1 to 32; 0 stands for 32 */
    SOFTNUM_MINMAX_SHIFT =
        32, /* bits 32-34: SN_MINMAX_... (softnum/operations/fpu.h), of minimum, maximum and those of numbers */
    SOFTNUM_INTEGER_SHIFT = 35 /* bits 35-37: SN_INTEGER_..., of to_integer; 0 is SN_INTEGER_ARM */
};
#define SOFTNUM_CLASS_MASK ((sn_u64)1 << 38) /* classify gives RISC-V's mask of ten bits */
#define SOFTNUM_SILENT ((sn_u64)1 << 39)     /* to_integer and round_to_integral raise no INEXACT */
/* Bits 32-39 are looked at by the operations that they are of, and by no other operation; units have none of them. */

/* The handle of a text "OUT", "IN->OUT", "A,B->OUT" or "A,B,C->OUT" of format names: those of softnum.format, that is
 * registered ones, eXmY, qI.F, uqI.F and binaryKpP{s,u}{e,f}; i8, i16, i32, i64 and u8 ... u64, short for q8.0 ...
 * uq64.0; and those of softnum_dpi_define. SOFTNUM_NO_HANDLE where there is no such format.
 * Results in posits and linear takums (positN, positN_esE, takum_linearN) take the mode SN_NEAREST_EVEN alone and raise
 * no flags; NaR compares as the least. softnum_dpi_fused_dot does not take them. */
SOFTNUM_DPI sn_u64 softnum_dpi_format(const char *text);
/* softnum_dpi_define's facts: where the NaNs lie, and what a float format like IEEE 754's has that this one lacks. */
enum {
    SOFTNUM_NANS_ALL_ONES = 1,      /* one magnitude, all ones */
    SOFTNUM_NANS_NEGATIVE_ZERO = 2, /* one, in the code of -0 */
    SOFTNUM_NANS_NONE = 3,
    SOFTNUM_NO_INFINITIES = 1 << 2,
    SOFTNUM_NO_NEGATIVE_ZERO = 1 << 3,
    SOFTNUM_UNSIGNED = 1 << 4,
    SOFTNUM_NO_ZERO = 1 << 5,
    SOFTNUM_LOWEST_NORMAL = 1 << 6, /* exponent field 0 means normal numbers; */
    SOFTNUM_LOWEST_ZERO = 2 << 6,   /* or zero alone, that is no subnormals */
    SOFTNUM_SATURATING = 1 << 8     /* what is too large is the largest value, never NaN */
};
/* A name of its own for a float format of these widths, bias and facts, known to softnum_dpi_format from now on, in
 * this process; its handle, which is this process's too. The name is of 1 to 15 letters, digits and _, a letter first,
 * in either case, and means no other format; the same facts may be given to it again. SOFTNUM_NO_HANDLE where there is
 * no such format, as of softnum.FloatFormat, or there are SOFTNUM_DEFINED_MOST. */
enum { SOFTNUM_DEFINED_MOST = 256 };
SOFTNUM_DPI sn_u64 softnum_dpi_define(const char *name, sn_u64 exponent_bits, sn_u64 mantissa_bits, sn_i64 bias,
                                      sn_u64 facts);
/* Width of a code of the result's format; 0 of no handle. */
SOFTNUM_DPI sn_u64 softnum_dpi_bits(sn_u64 formats);
/* What is wrong with the last call that had no answer. */
SOFTNUM_DPI const char *softnum_dpi_message(void);
/* The fields of the format's sn_format, in their order, for tests: returns their number; 0 of posits and takums. */
SOFTNUM_DPI sn_u64 softnum_dpi_facts(sn_u64 formats, sn_u64 *facts);

/* The random word that softnum's key=(seed, stream) gives element `index` of an operation. */
SOFTNUM_DPI sn_u64 softnum_dpi_random(sn_u64 seed, sn_u64 stream, sn_u64 index);

/* The value of a code, rounded to binary64: inexact in *flags where that does not hold it. */
SOFTNUM_DPI double softnum_dpi_to_real(sn_u64 code, sn_u64 formats, sn_u64 *flags);
/* The code of a value, rounded once. */
SOFTNUM_DPI sn_u64 softnum_dpi_from_real(double value, sn_u64 formats, sn_u64 mode, sn_u64 random, sn_u64 *flags);

/* Instructions of floating-point units that are made of these operations: name, number of operands.
 * - from_integer: convert, whose operand is an integer, of the formats i8 ... u64 (q8.0 ... uq64.0).
 * - compare_*: 1 where it is so. equal, less and less_equal raise INVALID for a signaling NaN, _signaling for any.
 * - sign_copy, sign_negate, sign_xor: a with b's sign, the other one, the exclusive or of both; no flags.
 * - fmsub a * b - c, fnmadd -(a * b) - c, fnmsub -(a * b) + c, as RISC-V has the names; rounded once. */
#define SOFTNUM_INSTRUCTIONS(X)                                                                                        \
    X(from_integer, 1)                                                                                                 \
    X(compare_equal, 2)                                                                                                \
    X(compare_less, 2)                                                                                                 \
    X(compare_less_equal, 2)                                                                                           \
    X(compare_equal_signaling, 2)                                                                                      \
    X(compare_less_signaling, 2)                                                                                       \
    X(compare_less_equal_signaling, 2)                                                                                 \
    X(sign_copy, 2)                                                                                                    \
    X(sign_negate, 2)                                                                                                  \
    X(sign_xor, 2)                                                                                                     \
    X(fmsub, 3)                                                                                                        \
    X(fnmadd, 3)                                                                                                       \
    X(fnmsub, 3)

/* The operations of softnum (docs: c-api), an argument for each operand: softnum_dpi_add(a, b, formats, ...).
 * - The second operand of scalb is a signed integer, whatever the handle says of b.
 * - compare, compare_signaling: SN_LESS 0, SN_EQUAL 1, SN_GREATER 2, SN_UNORDERED 3. classify: 0 to 9, in the order of
 *   softnum.ops.CLASSES. total_order: 0 or 1.
 * - to_integer: the result is fixed point without fraction; out of range is the nearest bound, NaN 0, both INVALID,
 *   unless the mode states another rule. */
#define SOFTNUM_DPI_TAKES_1 sn_u64 a
#define SOFTNUM_DPI_TAKES_2 sn_u64 a, sn_u64 b
#define SOFTNUM_DPI_TAKES_3 sn_u64 a, sn_u64 b, sn_u64 c
#define SOFTNUM_DPI_PROTOTYPE(name, operands)                                                                          \
    SOFTNUM_DPI sn_u64 softnum_dpi_##name(SOFTNUM_DPI_TAKES_##operands, sn_u64 formats, sn_u64 mode, sn_u64 random,    \
                                          sn_u64 *flags);
SN_OPERATIONS(SOFTNUM_DPI_PROTOTYPE)
SOFTNUM_INSTRUCTIONS(SOFTNUM_DPI_PROTOTYPE)

/* One step of a MadUnit: acc + a * b in the result's format. The handle's c is the product's format; without one the
 * product is exact, and there is one rounding. mode: of the sum; product_mode: of the product. random: the product's
 * word in the low half, the sum's in the high half (one rounding: the sum's). An overflow rule that only the other of
 * the two formats knows leaves a format its default. */
SOFTNUM_DPI sn_u64 softnum_dpi_mac(sn_u64 acc, sn_u64 a, sn_u64 b, sn_u64 formats, sn_u64 mode, sn_u64 product_mode,
                                   sn_u64 random, sn_u64 *flags);

enum { SOFTNUM_WORD_BITS = 4096 };
/* Dot products of `length` elements. Words of elements, as in vector files: element 0 in the lowest bits, each as wide
 * as its format, SOFTNUM_WORD_BITS in all, as SystemVerilog's bit [4095:0]. */

/* ExactDotUnit: c and all products, exactly added and rounded once. random: the low 32 bits. */
SOFTNUM_DPI sn_u64 softnum_dpi_exact_dot(const sn_u32 *a, const sn_u32 *b, sn_u64 length, sn_u64 c, sn_u64 formats,
                                         sn_u64 mode, sn_u64 random, sn_u64 *flags);
/* FusedDotUnit(terms, fraction_bits, ...), the handle's c being the accumulator (else it is the result's format).
 * min_exponent: SN_FUSED_NO_FLOOR for none; truncate_fraction: -1 for none; c_after: 1 if C is added after the steps,
 * to nearest even. An overflow rule that one of accumulator and result does not know leaves that one its default. */
SOFTNUM_DPI sn_u64 softnum_dpi_fused_dot(const sn_u32 *a, const sn_u32 *b, sn_u64 length, sn_u64 c, sn_u64 formats,
                                         sn_u64 mode, sn_u64 terms, sn_u64 fraction_bits, sn_i64 min_exponent,
                                         sn_i64 truncate_fraction, sn_u64 c_after, sn_u64 *flags);

/* The handle of a unit that the library was built with, by its name: softnum rtl build --unit NAME=UNIT. It stands for
 * all of a unit's parameters. SOFTNUM_NO_HANDLE where there is none of that name. */
SOFTNUM_DPI sn_u64 softnum_dpi_unit(const char *name);
/* softnum.dot(a, b, unit, c, key=(seed, stream)): a dot product of such a unit. with_c 0: from +0; then c is not looked
 * at. seed and stream matter to stochastic units alone. */
SOFTNUM_DPI sn_u64 softnum_dpi_dot(const sn_u32 *a, const sn_u32 *b, sn_u64 length, sn_u64 c, sn_u64 with_c,
                                   sn_u64 unit, sn_u64 seed, sn_u64 stream, sn_u64 *flags);
/* The same of a unit of blocks: words of scales, too, the first block's in the lowest bits; tensor_a and tensor_b are
 * codes of the scales of arrays, not looked at where an operand's format has none. */
SOFTNUM_DPI sn_u64 softnum_dpi_block_dot(const sn_u32 *a, const sn_u32 *b, const sn_u32 *scale_a, const sn_u32 *scale_b,
                                         sn_u64 length, sn_u64 c, sn_u64 with_c, sn_u64 unit, sn_u64 seed,
                                         sn_u64 stream, sn_u64 tensor_a, sn_u64 tensor_b, sn_u64 *flags);

#endif

/* The short way of operations on floats (elementwise/short/floats.h: the domain, and why a jammed 64-bit significand is
 * enough) in lanes of 64 bits, flags included. A lane whose operands or result lie outside the domain is marked, and
 * the caller computes it by the definition. Included once per instruction set, by targets/values.h. Not the stochastic
 * modes of other projects: sn_normals.in_lanes says so.
 *
 * Where sn_normals.whole says so (sn_normals_whole states it), the domain holds all operands and results, but NaN for
 * formats without one and negative results for unsigned formats. Vectors of normal numbers alone skip what that takes:
 *   - a subnormal operand is a normal one of a lower exponent; a zero has no digits and an exponent so low that a sum
 *     with any other number is that number;
 *   - a result below emin is shifted to emin's last place and jammed once more, which is as exact: the rounding bits
 *     move up, the jam stays below them. Whether it is tiny after rounding (IEEE 754-2019 7.5) the first rounding has
 *     told, whose exponent was unbounded;
 *   - infinities, NaNs, x / 0 and the roots of negative numbers are selected by what the operands are.
 *
 * All of this holds in lanes of 32 bits as well, each number of bits less by 32: sn_normals.in_32 has the formats whose
 * significands leave as much room there, products of factors of at most 15 fraction bits included.
 *
 * Quotients and roots come in two steps of 32 and of 32 or 30 bits, each estimated in binary64 from below. With
 * operands of at most 60 fraction bits, divided by 4, every integer that is converted is below 2^62 and rounded once;
 * an estimate, of two or three roundings, is off by less than 2^-50 of itself, so by less than 2^-17 in units of its
 * last place. Lowered by 1/2 + 2^-10 and rounded to an integer it lies below the exact quotient, by at most 1 + 2^-8.
 * What remains is then exact in 64 bits, whatever wraps on the way, not negative, and at the end one step too large at
 * most. A root of 62 bits and a jam in the 64th leave bit 62 - m >= 3 and all above it exact. */
#ifndef SOFTNUM_SHORT_LANES_H
#define SOFTNUM_SHORT_LANES_H

#include "elementwise/quantize.h"

#define SN_LOWERED (0.5 + 0x1p-10)
#define SN_NOWHERE ((sn_u64)0 - (1 << 20)) /* an exponent below those of all numbers and products */

/* Integers, rounded once: their halves stand in the last places of 2^52 and 2^84. */
SN_INLINE sn_wf SN_(to_double)(sn_wu n) {
    const sn_wf high = (sn_wf)(n >> 32 | 0x4530000000000000u) - (0x1p84 + 0x1p52);
    return high + (sn_wf)((n & 0xffffffffu) | 0x4330000000000000u);
}

/* The nearest integer, for 0 <= x < 2^51. */
SN_INLINE sn_wu SN_(to_integer)(sn_wf x) { return (sn_wu)(x + 0x1p52) & 0xfffffffffffffu; }

/* What the usual formats of a width have. */
#define SN_NARROW_FACTORS(op, width) (((op) == SN_LANES_MULTIPLY || (op) == SN_LANES_FMA) && (width) <= 4)
#define SN_NARROW_PRODUCT(op, width) ((op) == SN_LANES_FMA && (width) <= 4)

#define N_BITS 64
#include "lanes/normal.h"
#define N_BITS 32
#include "lanes/normal.h"

/* Whether the plan is what most are, with factors and their product narrow or not. */
SN_INLINE int SN_(is_usual)(const sn_normals *t, int operands, int narrow_factors, int narrow_product) {
    int usual = t->whole && t->env->rounding == SN_NEAREST_EVEN && t->env->tininess == SN_TININESS_AFTER &&
                !t->is_unsigned && t->negative_zero && t->has_nan && !t->zero_divides_to_nan &&
                t->narrow_factors == narrow_factors && t->narrow_product == narrow_product;
    for (int k = 0; k < operands; k++)
        usual &= !t->operand[k].nan_is_negative_zero;
    return usual;
}

typedef void SN_(short_loop)(const sn_normals *plan, const void *const in[3], void *out, sn_u8 *flags, sn_u8 *outside,
                             size_t n, const sn_u32 *words);

SN_INLINE void SN_(short_run)(int op, int operands, int width, int usual, const sn_normals *plan,
                              const void *const in[3], void *out, sn_u8 *flags, sn_u8 *outside, size_t n,
                              const sn_u32 *words) {
    if (width <= 4 && op != SN_LANES_DIVIDE && op != SN_LANES_SQRT && plan->in_32)
        SN_(run_32)(op, operands, width, usual, plan, in, out, flags, outside, n, words);
    else
        SN_(run_64)(op, operands, width, usual, plan, in, out, flags, outside, n, words);
}

#define SHORT_LOOP(name, operands, width)                                                                              \
    static void SN_(short_##name##_##width)(const sn_normals *plan, const void *const in[3], void *out, sn_u8 *flags,  \
                                            sn_u8 *outside, size_t n, const sn_u32 *words) {                           \
        if (SN_(is_usual)(plan, operands, SN_NARROW_FACTORS(SN_LANES_##name, width),                                   \
                          SN_NARROW_PRODUCT(SN_LANES_##name, width)))                                                  \
            SN_(short_run)(SN_LANES_##name, operands, width, 1, plan, in, out, flags, outside, n, words);              \
        else                                                                                                           \
            SN_(short_run)(SN_LANES_##name, operands, width, 0, plan, in, out, flags, outside, n, words);              \
    }
#define SHORT_LOOPS(name, operands)                                                                                    \
    SHORT_LOOP(name, operands, 1)                                                                                      \
    SHORT_LOOP(name, operands, 2) SHORT_LOOP(name, operands, 4) SHORT_LOOP(name, operands, 8)
SHORT_LOOPS(CONVERT, 1)
SHORT_LOOPS(ADD, 2)
SHORT_LOOPS(SUBTRACT, 2)
SHORT_LOOPS(MULTIPLY, 2)
SHORT_LOOPS(FMA, 3)
SHORT_LOOPS(DIVIDE, 2)
SHORT_LOOPS(SQRT, 1)

static void SN_(short_floats)(int operation, const sn_normals *plan, const void *const in[3], int width, void *out,
                              sn_u8 *flags, sn_u8 *outside, size_t n, const sn_u32 *words) {
#define ENTRY(name)                                                                                                    \
    [SN_LANES_##name] = {SN_(short_##name##_1), SN_(short_##name##_2), SN_(short_##name##_4), SN_(short_##name##_8)}
    static SN_(short_loop) *const loops[][4] = {ENTRY(CONVERT), ENTRY(ADD),    ENTRY(SUBTRACT), ENTRY(MULTIPLY),
                                                ENTRY(FMA),     ENTRY(DIVIDE), ENTRY(SQRT)};
#undef ENTRY
    loops[operation][width == 1 ? 0 : width == 2 ? 1 : width == 4 ? 2 : 3](plan, in, out, flags, outside, n, words);
}

#endif

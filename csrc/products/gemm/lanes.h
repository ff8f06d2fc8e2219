/* GEMM by the definition, in lanes of 64 bits: a step of SN_W outputs at a time, any deterministic rounding, in lanes,
 * chunks and compensated, with zeros for what is subnormal, and with counts of what roundings come to. Included by
 * products/gemm/body.h, once per instruction set.
 *
 * A step is x * y + z rounded to odd in the carrier (lanes/odd.h), and then as the unit says. The carrier is binary32
 * where it holds all formats, else binary64. Domain, checked by products/gemm/paths.c for each of the formats of
 * products, sums and the outer sum: precision p + 2 <= 24 (53), and the carrier's least number is at most a quarter of
 * its last place. Then the odd number lies on the same side of every value and every midpoint of the format as the
 * exact one, and is one of them only if the exact one is (Boldo and Melquiond 2008), in every mode; and its rounding is
 * inexact or tiny if and only if the exact number's is, 2^emin being an even number of the carrier too. Past the
 * carrier's largest number, an odd one, it is that number. Operands are exact in the carrier, nothing wraps around. A
 * NaN (in fixed point an infinity) in a format that has no code for it is told to the caller, who raises what the
 * definition does.
 *
 * To round: magnitudes from 2^emin (or the least value, where there are no subnormals) to the largest value have the
 * same places cut off, by the short way, an addition and a mask; so have zeros, if there is -0. Where a vector has
 * others (subnormals, what overflows, infinities, NaNs) all of it goes by round_to_value of lanes/round.h, out of the
 * loop, and so do all of unsigned floats. What is tiny and flushed becomes a zero there. "Tiny after rounding" is the
 * short way's rounding in the binade below 2^emin, without a bound of the exponent. Fixed point that saturates has a
 * short way of its own, by an addition that moves its last place to one of the carrier's; where it wraps around, and
 * beside floats, it goes by that function.
 *
 * Counting (in binary64; formats with signs and subnormals whose largest binade is not binary64's, or fixed point of
 * addends of at most 52 bits): a vector of counters for each of sn_tally's; inexact are the lanes where rounding
 * changed something. Carriers hold no signaling NaN.
 *
 * Where all formats are the carrier's and round to nearest even, the CPU's operations are the roundings (`native`).
 *
 * Instructions for a vector of 16 (8) products, AVX-512, of which two begin per cycle: fused 4 for the odd sum (2 fma,
 * test, select), 4 to tell the short way, 5 to round; a load and a store of the sum, which stay in the nearest cache,
 * as lanes do. Measured for 256^3 beside sgemm, in sgemms: fused 6 (14), with rounded products 11 (22), compensated 5
 * roundings 60 (120); counted, in binary64, 24, 36 and 140. */

enum { SN_COUNTS = 5 }; /* sn_tally's, but for roundings */
enum { SN_INEXACT_COUNT, SN_UNDERFLOWED_COUNT, SN_OVERFLOWED_COUNT, SN_SATURATED_COUNT, SN_INVALID_COUNT };

/* x * y + z rounded to odd in binary64, as lanes/odd.h does in binary32. exact: x * y is, and no sum reaches the end of
 * binary64's range; else, where the CPU has no fma, the neighbours come from the scalar one. */
#ifdef SN_FMA_BOTH64
SN_INLINE sn_wf SN_(fma_odd64)(sn_wf x, sn_wf y, sn_wf z, int exact, int down) {
    sn_wf lower, upper;
    (void)exact;
    SN_FMA_BOTH64(x, y, z, &lower, &upper);
    return down ? SN_WHERE_ODD64(upper, upper, lower) : SN_WHERE_ODD64(lower, lower, upper);
}
#else
static SN_NOINLINE sn_wf SN_(fma_odd64_defined)(sn_wf x, sn_wf y, sn_wf z, int down) {
    sn_wu out;
    for (int i = 0; i < SN_W; i++) {
        const sn_format *f = &sn_binary64;
        const sn_env downward = {.rounding = SN_DOWN}, upward = {.rounding = SN_UP};
        const sn_u64 a = ((sn_wu)x)[i], b = ((sn_wu)y)[i], c = ((sn_wu)z)[i];
        sn_u32 flags = 0;
        const sn_u64 lower = sn_fma(f, a, f, b, f, c, f, &downward, 0, &flags),
                     upper = sn_fma(f, a, f, b, f, c, f, &upward, 0, &flags), first = down ? upper : lower;
        out[i] = first & 1 ? first : down ? lower : upper;
    }
    return (sn_wf)out;
}

SN_INLINE sn_wf SN_(fma_odd64)(sn_wf x, sn_wf y, sn_wf z, int exact, int down) {
    if (!exact) return SN_(fma_odd64_defined)(x, y, z, down);
    const sn_wf product = x * y, sum = SN_(add_odd)(product, z);
    const sn_wu zero = (sn_wu)(sum == 0.0), negative = ((sn_wu)product | (sn_wu)z) & 0x8000000000000000u;
    return down ? (sn_wf)SN_SELECT64(zero, negative, (sn_wu)sum) : sum;
}
#endif

#define H_BITS 32
#include "products/gemm/lanes_body.h"
#define H_BITS 64
#include "products/gemm/lanes_body.h"

/* A short way to the sum that most steps of the definition take: a float with a normal result, of a normal number and a
 * finite term that is not zero. Any number of bits, any rounding; about a third of the instructions, and few branches
 * that data decide. What lies outside says so, and goes through sn_read and sn_add_numbers.
 *
 * Why it is the same: both terms stand in a window of 126 bits, the larger one at its top. A term has at most 124 bits,
 * so that bits fall off below the window only if the terms' top bits lie at least three places apart; then nothing much
 * cancels, and the difference keeps at least 124 bits above what fell off. A rounding looks at 62 + 1 + 33 bits at
 * most, and at whether any other is set. Exponents from emin + 1 to emax - 1 leave out what the lowest binade, gaps,
 * flushing and overflow want to know; a carry out of the highest of them is the smallest number of the binade of emax.
 */
#ifndef SOFTNUM_SHORT_SUM_H
#define SOFTNUM_SHORT_SUM_H

#include "softnum/softnum.h"

/* (-1)^sign * (sig + s) * 2^(e - 127), 0 < s < 1 if sticky, bit 127 of sig set: rounded, if its exponent lies inside.
 */
SN_ALWAYS sn_i32 sn_round_inside(const sn_format *f, const sn_env *env, sn_u128 sig, sn_i32 sticky, sn_i32 e,
                                 sn_i32 sign, sn_u32 random, sn_u64 *code) {
    const sn_i32 m = f->mantissa_bits;
    if (e <= f->emin || e >= f->emax || (!f->is_signed && sign)) return 0;
    sn_cut c;
    c.floor = sig.hi >> (63 - m);
    c.fraction = sig.hi << (m + 1) | sig.lo >> (63 - m);
    c.sticky = sticky | (sig.lo << (m + 1) != 0);
    sn_u64 magnitude = c.floor + ((sn_u64)(e - f->emin - (f->lowest == SN_LOWEST_NORMAL)) << m);
    magnitude += (sn_u64)sn_rounds_up(env, c, sign, (sn_i32)(magnitude & 1), random);
    *code = magnitude | (f->sign_mask & (0 - (sn_u64)sign));
    return 1;
}

/* The term (exact, not zero) rounded to a float. */
SN_ALWAYS sn_i32 sn_short_round(const sn_exact *p, const sn_format *f, const sn_env *env, sn_u32 random, sn_u64 *code) {
    const sn_i32 length = sn_u128_bit_length(p->sig);
    if (f->kind != SN_FLOAT || length == 0) return 0;
    return sn_round_inside(f, env, sn_u128_shl(p->sig, 128 - length), 0, p->exp + length - 1, p->sign, random, code);
}

/* The term (exact, not zero) + the number of a code, both of f's kind of sum; *code becomes the rounded sum. */
SN_ALWAYS sn_i32 sn_short_add(const sn_exact *p, const sn_format *f, const sn_env *env, sn_u32 random, sn_u64 *code) {
    if (f->kind != SN_FLOAT) return 0;
    const sn_i32 m = f->mantissa_bits;
    const sn_u64 hidden = (sn_u64)1 << m, magnitude = *code & f->magnitude_mask;
    const sn_i32 length = sn_u128_bit_length(p->sig);
    if (length == 0 || length > 124 || magnitude - hidden > f->max_code - hidden) return 0;

    /* both with their top bits at bit 125; top: the exponent of the top bit + 1 */
    sn_u128 x = sn_u128_make(((magnitude & (hidden - 1)) | hidden) << (61 - m), 0);
    sn_u128 y = sn_u128_shl(p->sig, 126 - length);
    sn_i32 sign = (*code & f->sign_mask) != 0, other = p->sign;
    sn_i32 top = f->emin + (sn_i32)(magnitude >> m) + (f->lowest == SN_LOWEST_NORMAL);
    sn_i32 distance = top - (p->exp + length);

    /* x is the larger one, or lies in the same binade; masks, where a branch would be a coin's toss */
    const sn_i32 swap = -(distance < 0);
    const sn_u64 both = (sn_u64)(sn_i64)swap, hi = (x.hi ^ y.hi) & both, lo = (x.lo ^ y.lo) & both;
    x = sn_u128_make(x.hi ^ hi, x.lo ^ lo);
    y = sn_u128_make(y.hi ^ hi, y.lo ^ lo);
    top -= distance & swap;
    distance = (distance ^ swap) - swap;
    const sn_i32 differ = sign ^ other;
    sign ^= differ & swap;
    if (distance > 127) distance = 127;
    const sn_u128 placed = sn_u128_shr(y, distance), back = sn_u128_shl(placed, distance);
    const sn_i32 sticky = ((back.hi ^ y.hi) | (back.lo ^ y.lo)) != 0;

    /* x + y, or x - y as x + ~y + 1, less one more if y goes on below the window */
    const sn_u64 minus = 0 - (sn_u64)differ;
    sn_u128 sum = sn_u128_add(x, sn_u128_make(placed.hi ^ minus, placed.lo ^ minus));
    sum = sn_u128_add(sum, sn_u128_make(0, (sn_u64)(differ & (sticky ^ 1))));
    const sn_u64 negative = 0 - (sum.hi >> 63); /* in one binade, y may have been the larger one */
    sum = sn_u128_add(sn_u128_make(sum.hi ^ negative, sum.lo ^ negative), sn_u128_make(0, negative & 1));
    sign ^= (sn_i32)(negative & 1);
    const sn_i32 kept = sn_u128_bit_length(sum);
    if (kept == 0) return 0;
    return sn_round_inside(f, env, sn_u128_shl(sum, 128 - kept), sticky, top - 127 + kept, sign, random, code);
}

#endif

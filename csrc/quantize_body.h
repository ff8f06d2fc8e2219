/* Quantising binary32 values in integer arithmetic: included once per instruction set, by isa_*.c.
 *
 * Bit patterns of binary32 magnitudes are ordered as the values, and the target's grid is a subset of binary32's: so
 * truncation clears the lowest s bits of the pattern, and rounding up adds 2^s, whatever binade that leads to. Below
 * the target's normal numbers s grows by the distance; from s = 24 on, the only grid points are 0 and the quantum. */
#ifndef SOFTNUM_QUANTIZE_BODY_H
#define SOFTNUM_QUANTIZE_BODY_H

#include "isa.h"

enum { SN_WORD_BLOCKS = 64 };

/* As sn_rounds_up in round.h, as a mask. fraction: floor(t * 2^32); lost: not 0 if more bits follow; odd: a mask. */
SN_INLINE sn_vi SN_(rounds_up)(int mode, sn_vu fraction, sn_vu lost, sn_vi odd, sn_vu sign, sn_vu random, int r) {
    sn_vi centred = (sn_vi)(fraction ^ 0x80000000u); /* against half, as a signed number */
    sn_vi negative = (sn_vi)sign < 0, above = centred > 0, tie = centred == 0, inexact = (fraction | lost) != 0;
    switch (mode) {
    case SN_NEAREST_EVEN: return above | (tie & odd);
    case SN_NEAREST_AWAY: return above | tie;
    case SN_NEAREST_ZERO: return above;
    case SN_NEAREST_UP: return above | (tie & ~negative);
    case SN_NEAREST_DOWN: return above | (tie & negative);
    case SN_AWAY_FROM_ZERO: return inexact;
    case SN_UP: return inexact & ~negative;
    case SN_DOWN: return inexact & negative;
    case SN_TO_ODD: return inexact & ~odd;
    case SN_STOCHASTIC:
    case SN_STOCHASTIC_FLOOR: {
        sn_u32 low = 0xffffffffu >> (r - 1) >> 1; /* what r bits do not see */
        sn_vu t = fraction & ~low, sum = t + (random << (32 - r));
        sn_vi carry = sum < t;
        if (mode == SN_STOCHASTIC_FLOOR) {
            /* a negative number is -ceil(t * 2^r) + R: its magnitude goes up where that stays below zero */
            sn_vu low_random = random << (32 - r);
            sn_vi more = ((fraction & low) | lost) != 0, down = (t > low_random) | ((t == low_random) & more);
            carry = (carry & ~negative) | (down & negative);
        }
        return carry;
    }
    default: return centred ^ centred; /* SN_TOWARD_ZERO */
    }
}

SN_INLINE sn_vu SN_(quantize_bits)(const sn_quantize32 *q, int mode, sn_vu bits, sn_vu random) {
    sn_vu sign = bits & 0x80000000u, u = bits ^ sign;
    sn_vi negative = (sn_vi)sign < 0, field = (sn_vi)(u >> 23), subnormal = field == 0;
    sn_vu sig = (u & 0x7fffffu) | (~(sn_vu)subnormal & 0x800000u);
    sn_vi below = q->biased_emin - (field - subnormal);
    sn_vi s = (23 - q->mantissa_bits) + (below & (below > 0));
    s = (sn_vi)SN_SELECT32(s > 63, s ^ s ^ 63, s);
    sn_vi left = 32 - s, right = s - 32, near = s < 24;
    left = left & (left > 0) & (s > 0);
    right = right & (right > 0);
    sn_vu fraction = (sig << left >> right) & (sn_vu)(s > 0); /* s = 0: nothing lies below */
    sn_vu lost = sig & (sn_vu)(s > 32);                       /* some bit of it is */
    sn_vi cut = (sn_vi)SN_SELECT32(near, s, s ^ s ^ 23);
    sn_vu one = (sn_vu)((cut ^ cut) + 1) << cut;
    sn_vu unit = SN_SELECT32(near, one, (one ^ one) + q->quantum);
    sn_vu base = u & (0u - one) & (sn_vu)near;
    sn_vi odd = -(sn_vi)((sig >> cut) & 1u) & near;
    sn_vi up = SN_(rounds_up)(mode, fraction, lost, odd, sign, random, q->stochastic_bits);
    sn_vu result = base + (unit & (sn_vu)up);
    sn_vu out = result | (sign & ((sn_vu)(result != 0) | q->sign_of_zero));
    sn_vu overflow = SN_SELECT32(negative, (sign ^ sign) + q->overflow[1], (sign ^ sign) + q->overflow[0]);
    sn_vu infinity = SN_SELECT32(negative, (sign ^ sign) + q->infinity[1], (sign ^ sign) + q->infinity[0]);
    out = SN_SELECT32((sn_vi)result > (sn_i32)q->max, overflow, out);
    out = SN_SELECT32((sn_vi)u == 0x7f800000, infinity, out);
    return SN_SELECT32((sn_vi)u > 0x7f800000, (sign ^ sign) + q->nan, out);
}

SN_INLINE int SN_(quantize_mode)(const sn_quantize32 *q, int mode, const float *x, float *out, size_t n,
                                 const sn_u32 *words) {
    const int random = mode == SN_STOCHASTIC || mode == SN_STOCHASTIC_FLOOR;
    const sn_quantize32 local = *q; /* out cannot alias it: the loop's invariants stay in registers */
    sn_vi bad = {0};
    for (size_t i = 0; i < n; i += SN_V) {
        size_t take = n - i < SN_V ? n - i : SN_V;
        sn_vu bits = {0}, word = {0};
        if (take == SN_V) {
            memcpy(&bits, x + i, sizeof bits);
            if (random) memcpy(&word, words + i, sizeof word);
        } else {
            memcpy(&bits, x + i, 4 * take);
            if (random) memcpy(&word, words + i, 4 * take);
        }
        sn_vu result = SN_(quantize_bits)(&local, mode, bits, word);
        bad |= (sn_vi)(bits & 0x7fffffffu) > 0x7f800000;
        if (take == SN_V)
            memcpy(out + i, &result, sizeof result);
        else
            memcpy(out + i, &result, 4 * take);
    }
    sn_i32 any = 0;
    for (int i = 0; i < SN_V; i++)
        any |= bad[i];
    return any != 0 && q->no_nan;
}

/* words[4 * i + lane] of counters block + i */
SN_INLINE void SN_(words_block)(sn_u64 block, sn_u32 k0, sn_u32 k1, sn_u32 *words) {
    sn_u32 w[4][SN_WORD_BLOCKS];
    for (int i = 0; i < SN_WORD_BLOCKS; i++) {
        sn_u64 counter = block + (sn_u64)i;
        sn_philox_words p = sn_philox((sn_u32)counter, (sn_u32)(counter >> 32), 0, 0, k0, k1);
        w[0][i] = p.w[0];
        w[1][i] = p.w[1];
        w[2][i] = p.w[2];
        w[3][i] = p.w[3];
    }
    for (int i = 0; i < SN_WORD_BLOCKS; i++)
        for (int lane = 0; lane < 4; lane++)
            words[4 * i + lane] = w[lane][i];
}

static int SN_(quantize32)(const sn_quantize32 *q, const float *x, float *out, size_t n, const sn_u32 *words,
                           const sn_u32 key[2], sn_u64 start) {
#define MODE(m)                                                                                                        \
    case m: return SN_(quantize_mode)(q, m, x, out, n, words)
    switch (q->rounding) {
        MODE(SN_NEAREST_EVEN);
        MODE(SN_NEAREST_AWAY);
        MODE(SN_NEAREST_ZERO);
        MODE(SN_NEAREST_UP);
        MODE(SN_NEAREST_DOWN);
        MODE(SN_AWAY_FROM_ZERO);
        MODE(SN_UP);
        MODE(SN_DOWN);
        MODE(SN_TO_ODD);
    case SN_STOCHASTIC:
    case SN_STOCHASTIC_FLOOR: {
        int bad = 0;
        sn_u32 buffer[4 * SN_WORD_BLOCKS];
        for (size_t i = 0; i < n;) {
            const sn_u32 *w = words ? words + i : buffer;
            size_t skip = (size_t)((start + i) % 4), take = 4 * SN_WORD_BLOCKS;
            if (!words) {
                SN_(words_block)((start + i) / 4, key[0], key[1], buffer);
                w += skip;
                take -= skip;
            }
            if (take > n - i) take = n - i;
            bad |= q->rounding == SN_STOCHASTIC ? SN_(quantize_mode)(q, SN_STOCHASTIC, x + i, out + i, take, w)
                                                : SN_(quantize_mode)(q, SN_STOCHASTIC_FLOOR, x + i, out + i, take, w);
            i += take;
        }
        return bad;
    }
    default: return SN_(quantize_mode)(q, SN_TOWARD_ZERO, x, out, n, NULL);
    }
#undef MODE
}

#endif

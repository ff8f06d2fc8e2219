/* Quantising binary32 values in integer arithmetic: included once per instruction set, by isa_*.c.
 *
 * Bit patterns of binary32 magnitudes are ordered as the values, and the target's grid is a subset of binary32's: so
 * truncation clears the lowest s bits of the pattern, and rounding up adds 2^s, whatever binade that leads to. Below the
 * target's normal numbers s grows by the distance; from s = 24 on, the only grid points are 0 and the quantum. */

/* What lies below the cut, as floor(fraction * 2^32), is compared; the patterns are those of sn_rounds_up. */
SN_INLINE sn_u32 SN_(rounds_up)(int mode, sn_u32 fraction, sn_u32 lost, sn_u32 odd, sn_u32 sign, sn_u32 random, int r) {
    const sn_u32 half = 0x80000000u;
    sn_u32 negative = sign >> 31, inexact = (fraction | lost) != 0;
    switch (mode) {
    case SN_NEAREST_EVEN: return (fraction > half) | ((fraction == half) & odd);
    case SN_NEAREST_AWAY: return fraction >= half;
    case SN_NEAREST_ZERO: return fraction > half;
    case SN_NEAREST_UP: return (fraction > half) | ((fraction == half) & (negative ^ 1));
    case SN_NEAREST_DOWN: return (fraction > half) | ((fraction == half) & negative);
    case SN_AWAY_FROM_ZERO: return inexact;
    case SN_UP: return inexact & (negative ^ 1);
    case SN_DOWN: return inexact & negative;
    case SN_TO_ODD: return inexact & (odd ^ 1);
    case SN_STOCHASTIC: {
        sn_u32 t = fraction & (0xffffffffu << (32 - r)), add = random << (32 - r);
        return (sn_u32)(t + add) < t; /* carry out of 2^32 */
    }
    case SN_STOCHASTIC_FLOOR: {
        sn_u32 low = 0xffffffffu >> (r - 1) >> 1, t = fraction & ~low, add = random << (32 - r);
        sn_u32 sum = t + add, more = negative & (((fraction & low) | lost) != 0);
        /* a negative magnitude's ceiling: one more unit of 2^-r, which may carry as well */
        sn_u32 step = more << (32 - r);
        return (sum < t) | ((sn_u32)(sum + step) < sum);
    }
    default: return 0;
    }
}

SN_INLINE sn_u32 SN_(quantize_bits)(const sn_quantize32 *q, int mode, sn_u32 bits, sn_u32 random) {
    sn_u32 sign = bits & 0x80000000u, u = bits ^ sign;
    sn_u32 field = u >> 23;
    sn_u32 sig = (u & 0x7fffffu) | (field ? 0x800000u : 0);
    sn_i32 e = (sn_i32)(field ? field : 1);
    sn_i32 below = q->biased_emin - e;
    sn_i32 s = 23 - q->mantissa_bits + (below > 0 ? below : 0);
    s = s < 63 ? s : 63;
    sn_u32 left = s ? sig << ((32 - s) & 31) : 0;
    sn_u32 fraction = s == 32 ? sig : s < 32 ? left : sig >> ((s - 32) & 31);
    sn_u32 lost = s > 32 ? sig : 0; /* some bit is */
    sn_i32 cut = s < 24 ? s : 23;
    sn_u32 unit = s < 24 ? (sn_u32)1 << cut : q->quantum;
    sn_u32 base = s < 24 ? u & ~(((sn_u32)1 << cut) - 1) : 0;
    sn_u32 odd = s < 24 ? (sig >> cut) & 1 : 0;
    sn_u32 up = SN_(rounds_up)(mode, fraction, lost, odd, sign, random, q->stochastic_bits);
    sn_u32 result = base + (up ? unit : 0);
    sn_u32 kept_sign = result ? sign : sign & q->sign_of_zero;
    sn_u32 out = result > q->max ? (sign ? q->overflow[1] : q->overflow[0]) : result | kept_sign;
    out = u == 0x7f800000u ? (sign ? q->infinity[1] : q->infinity[0]) : out;
    return u > 0x7f800000u ? q->nan : out;
}

SN_INLINE int SN_(quantize_mode)(const sn_quantize32 *q, int mode, const float *x, float *out, size_t n,
                                 const sn_u32 *words) {
    sn_u32 bad = 0;
    const sn_quantize32 local = *q; /* out cannot alias it: the loop's invariants stay in registers */
    for (size_t i = 0; i < n; i++) {
        sn_u32 bits, result;
        memcpy(&bits, x + i, 4);
        result = SN_(quantize_bits)(&local, mode, bits, words ? words[i] : 0);
        bad |= (bits & 0x7fffffffu) > 0x7f800000u;
        memcpy(out + i, &result, 4);
    }
    return (bad != 0) & (q->no_nan != 0);
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
        for (int lane = 0; lane < 4; lane++) words[4 * i + lane] = w[lane][i];
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

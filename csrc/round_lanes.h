/* Rounding carriers to a format, and quantising arrays of them: included by quantize_body.h once for binary32 (L_BITS
 * 32) and once for binary64 (L_BITS 64), for each instruction set.
 *
 * Integer arithmetic on bit patterns: patterns of magnitudes are ordered as the values, and the target's grid is a
 * subset of the carrier's, so truncation clears the lowest s bits of the pattern, and rounding up adds 2^s, whatever
 * binade that leads to. Below the target's normal numbers s grows by the distance; beyond the carrier's fraction, the
 * only grid points left are 0 and the quantum. */

#if L_BITS == 32
#define L_F float
#define L_U sn_vu
#define L_I sn_vi
#define L_u sn_u32
#define L_i sn_i32
#define L_M 23
#define L_FAR 63
#define L_N SN_V
#define L_SIGN 0x80000000u
#define L_HIDDEN 0x800000u
#define L_INFINITY 0x7f800000
#define L_SELECT SN_SELECT32
#define L_WORDS sn_load_words32
#define SN_L(name) SN_(name##32)
#else
#define L_F double
#define L_U sn_wu
#define L_I sn_wi
#define L_u sn_u64
#define L_i sn_i64
#define L_M 52
#define L_FAR 127
#define L_N SN_W
#define L_SIGN 0x8000000000000000u
#define L_HIDDEN 0x10000000000000u
#define L_INFINITY 0x7ff0000000000000
#define L_SELECT SN_SELECT64
#define L_WORDS sn_load_words64
#define SN_L(name) SN_(name##64)
#endif

/* As sn_rounds_up in round.h, as a mask. fraction: floor(t * 2^L_BITS); lost: not 0 if more bits follow; odd: a mask.
 */
SN_INLINE L_I SN_L(rounds_up)(int mode, L_U fraction, L_U lost, L_I odd, L_U sign, L_U random, int r) {
    L_I centred = (L_I)(fraction ^ L_SIGN); /* against half, as a signed number */
    L_I negative = (L_I)sign < 0, above = centred > 0, tie = centred == 0, inexact = (fraction | lost) != 0;
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
        L_u low = (L_u) ~(L_u)0 >> (r - 1) >> 1; /* what r bits do not see */
        L_U t = fraction & ~low, word = random << (L_BITS - r);
        L_I carry = t + word < t;
        if (mode == SN_STOCHASTIC_FLOOR) { /* a negative magnitude -t rounds up if word < ceil(t) */
            L_I more = ((fraction & low) | lost) != 0;
            carry = (L_I)L_SELECT(negative, (word < t) | ((word == t) & more), carry);
        }
        return carry;
    }
    default: return centred ^ centred; /* SN_TOWARD_ZERO */
    }
}

/* The pattern of the rounded value. mode is r->rounding, known to the compiler. random: the low r bits count. */
SN_INLINE L_U SN_L(round_bits)(const sn_rounding *r, int mode, L_U bits, L_U random) {
    const L_U zero = {0};
    L_U sign = bits & L_SIGN, u = bits ^ sign;
    L_I negative = (L_I)sign < 0, field = (L_I)(u >> L_M), subnormal = field == 0;
    L_U sig = (u & (L_HIDDEN - 1)) | (~(L_U)subnormal & L_HIDDEN);
    L_I below = (L_i)r->biased_emin - (field - subnormal);
    L_I s = (L_i)(L_M - r->mantissa_bits) + (below & (below > 0));
    s = (L_I)L_SELECT(s > L_FAR, zero + L_FAR, s); /* further down the fraction is below 2^-L_BITS and not seen */
    L_I left = L_BITS - s, right = s - L_BITS, near = s <= L_M, some = s > 0;
    left = left & (left > 0) & some;
    right = right & (right > 0);
    L_U fraction = (sig << left >> right) & (L_U)some;
    L_U lost = sig & (L_U)(s > L_BITS); /* some bit of it is */
    L_I cut = (L_I)L_SELECT(near, s, zero + L_M);
    L_U one = (zero + 1u) << cut;
    L_U unit = L_SELECT(near, one, zero + (L_u)r->quantum);
    L_U base = u & (0u - one) & (L_U)near;
    L_I odd = -(L_I)((sig >> cut) & 1u) & near;
    L_I up = SN_L(rounds_up)(mode, fraction, lost, odd, sign, random, r->stochastic_bits);
    L_U result = base + (unit & (L_U)up);
    L_U out = result | (sign & ((L_U)(result != 0) | (L_u)r->sign_of_zero));
    /* rare: a lane overflows, or is infinite or NaN */
    if (SN_ANY(((L_I)result > (L_i)r->least_limit) | ((L_I)u >= L_INFINITY))) {
        L_U limit = L_SELECT(negative, zero + (L_u)r->limit[1], zero + (L_u)r->limit[0]);
        L_U overflow = L_SELECT(negative, zero + (L_u)r->overflow[1], zero + (L_u)r->overflow[0]);
        L_U infinity = L_SELECT(negative, zero + (L_u)r->infinity[1], zero + (L_u)r->infinity[0]);
        out = L_SELECT((L_I)result > (L_I)limit, overflow, out);
        out = L_SELECT((L_I)u == L_INFINITY, infinity, out);
        out = L_SELECT((L_I)u > L_INFINITY, zero + (L_u)r->nan, out);
    }
    return out;
}

SN_INLINE int SN_L(quantize_mode)(const sn_rounding *r, int mode, const L_F *x, L_F *out, size_t n,
                                  const sn_u32 *words) {
    const int random = mode == SN_STOCHASTIC || mode == SN_STOCHASTIC_FLOOR;
    const sn_rounding local = *r; /* out cannot alias it: the loop's invariants stay in registers */
    const size_t whole = n - n % L_N;
    L_I nan = {0}, infinity = {0};
    L_U bits, word = {0}, result;
    for (size_t i = 0; i < whole; i += L_N) {
        __builtin_prefetch(x + i + 1024 / sizeof *x); /* a kilobyte ahead: more than the window of execution reaches */
        memcpy(&bits, x + i, sizeof bits);
        if (random) word = L_WORDS(words + i);
        result = SN_L(round_bits)(&local, mode, bits, word);
        nan |= (L_I)(bits & ~L_SIGN) > L_INFINITY;
        infinity |= (L_I)(bits & ~L_SIGN) == L_INFINITY;
        memcpy(out + i, &result, sizeof result);
    }
    if (whole < n) {
        L_F edge[L_N] = {0};
        sn_u32 edge_words[L_N] = {0};
        memcpy(edge, x + whole, (n - whole) * sizeof *x);
        if (random) memcpy(edge_words, words + whole, (n - whole) * sizeof *words);
        memcpy(&bits, edge, sizeof bits);
        if (random) word = L_WORDS(edge_words);
        result = SN_L(round_bits)(&local, mode, bits, word);
        nan |= (L_I)(bits & ~L_SIGN) > L_INFINITY;
        infinity |= (L_I)(bits & ~L_SIGN) == L_INFINITY;
        memcpy(out + whole, &result, (n - whole) * sizeof *out);
    }
    L_i any_nan = 0, any_infinity = 0;
    for (int i = 0; i < L_N; i++) {
        any_nan |= nan[i];
        any_infinity |= infinity[i];
    }
    return (any_nan != 0 && r->no_nan) || (any_infinity != 0 && r->no_infinity);
}

static int SN_L(quantize)(const sn_rounding *r, const L_F *x, L_F *out, size_t n, const sn_u32 *words,
                          const sn_u32 key[2]) {
#define MODE(m)                                                                                                        \
    case m: return SN_L(quantize_mode)(r, m, x, out, n, words)
    switch (r->rounding) {
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
        for (size_t i = 0; i < n; i += 4 * SN_WORD_BLOCKS) {
            const size_t take = n - i < 4 * SN_WORD_BLOCKS ? n - i : 4 * SN_WORD_BLOCKS;
            const sn_u32 *w = words ? words + i : buffer;
            if (!words) SN_(words_block)(i / 4, key[0], key[1], buffer);
            bad |= r->rounding == SN_STOCHASTIC ? SN_L(quantize_mode)(r, SN_STOCHASTIC, x + i, out + i, take, w)
                                                : SN_L(quantize_mode)(r, SN_STOCHASTIC_FLOOR, x + i, out + i, take, w);
        }
        return bad;
    }
    default: return SN_L(quantize_mode)(r, SN_TOWARD_ZERO, x, out, n, words);
    }
#undef MODE
}

#undef L_F
#undef L_U
#undef L_I
#undef L_u
#undef L_i
#undef L_M
#undef L_FAR
#undef L_N
#undef L_SIGN
#undef L_HIDDEN
#undef L_INFINITY
#undef L_SELECT
#undef L_WORDS
#undef SN_L
#undef L_BITS

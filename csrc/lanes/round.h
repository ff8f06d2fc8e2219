/* Rounding carriers to a format, to its values and to its codes, and decoding: included by elementwise/quantize.h once
 * for binary32 (L_BITS 32) and once for binary64 (L_BITS 64), for each instruction set.
 *
 * Integer arithmetic on bit patterns. Let u be a magnitude's pattern, M the carrier's fraction bits, m the format's,
 * and e the exponent field, but at least 1 and at most the one that the format's lowest binade has. Then
 *
 *     w = u - ((e - 1) << M)    s = M - m + (lowest field - e)    code = w / 2^s, rounded
 *
 * is the format's magnitude code in all its binades: above the lowest e is constant, w is u with the format's bias, and
 * s drops M - m bits; below, w is the significand as an integer (the carrier's subnormals included), and s grows with
 * the distance. A carry into the next binade is the next code. Above 2^M the last places of u and of w are the same, so
 * (code << s) + (u - w) is the pattern again wherever s <= M; further down, codes are 0 and 1. Deterministic modes add
 * 2^s - 1, its half, or half of 2^s - to w and cut; a w below 2^(M + 1) has no bit in common with any s > M + 1, so s
 * need not exceed M + 2. Stochastic ones add the random bits to the fraction, aligned to its places, or, where s is
 * larger, to its first L_BITS places.
 *
 * That is for every x. For most there is a shorter way in deterministic modes: where the binades are the carrier's own
 * s is constant and w is u, and elsewhere the carrier's addition can round (lanes/magic.h). */

#if L_BITS == 32
#define L_F float
#define L_V sn_vf
#define L_MAX SN_MAX
#define L_U sn_vu
#define L_I sn_vi
#define L_u sn_u32
#define L_i sn_i32
#define L_M 23
#define L_N SN_V
#define L_SIGN 0x80000000u
#define L_HIDDEN 0x800000u
#define L_LEFT SN_LEFT32
#define L_RIGHT SN_RIGHT32
#define L_ANY_GREATER SN_ANY_GREATER32
#define L_INFINITY 0x7f800000
#define L_SELECT SN_SELECT32
#define L_WORDS sn_load_words32
#define L_LOAD(bits) SN_LOAD##bits##_32
#define L_STORE(bits) SN_STORE##bits##_32
#define SN_L(name) SN_(name##32)
#else
#define L_F double
#define L_V sn_wf
#define L_MAX SN_MAX64
#define L_U sn_wu
#define L_I sn_wi
#define L_u sn_u64
#define L_i sn_i64
#define L_M 52
#define L_N SN_W
#define L_SIGN 0x8000000000000000u
#define L_HIDDEN 0x10000000000000u
#define L_LEFT SN_LEFT64
#define L_RIGHT SN_RIGHT64
#define L_ANY_GREATER SN_ANY_GREATER64
#define L_INFINITY 0x7ff0000000000000
#define L_SELECT SN_SELECT64
#define L_WORDS sn_load_words64
#define L_LOAD(bits) SN_LOAD##bits##_64
#define L_STORE(bits) SN_STORE##bits##_64
#define SN_L(name) SN_(name##64)
#endif

/* A vector's codes, the low bytes of its lanes. */
SN_INLINE void SN_L(store)(char *codes, int width, L_U v) {
    switch (width) {
    case 1: L_STORE(8)(codes, v); break;
    case 2: L_STORE(16)(codes, v); break;
    case 4: L_STORE(32)(codes, v); break;
    default: L_STORE(64)(codes, v);
    }
}

SN_INLINE L_U SN_L(load)(const char *codes, int width) {
    switch (width) {
    case 1: return L_LOAD(8)(codes);
    case 2: return L_LOAD(16)(codes);
    case 4: return L_LOAD(32)(codes);
    default: return L_LOAD(64)(codes);
    }
}

typedef struct {
    L_U u, w, sign, code; /* magnitude; w; 1 if negative; magnitude code */
    L_I s, gap;           /* s; a mask: between 0 and the smallest value, where the lowest binade is normal */
} SN_L(rounded);

/* Whether the random word carries the fraction of w / 2^s over, as a mask: sn_carries in round.h. */
SN_INLINE L_I SN_L(carries)(const sn_rounding *r, int family, L_U w, L_I s, L_U sign, L_U random) {
    const L_I past = s - L_BITS;
    L_U t = L_LEFT(w, 0 - past) | L_RIGHT(w, past), word = random << (L_BITS - r->stochastic_bits);
    if (family == SN_FAMILY_STOCHASTIC) return (L_I)(t + word < t);
    L_U lost = (w ^ L_LEFT(t, past)) & (L_U)(past > 0);
    if (r->rounding == SN_STOCHASTIC_FLOOR) {
        L_I more = (word < t) | ((word == t) & (lost != 0));
        return (L_I)L_SELECT(sign != 0, more, t + word < t);
    }
    if (r->rounding == SN_STOCHASTIC_EQUAL) return (L_I)((t | lost) != 0) & ((L_I)word >> (L_BITS - 1));
    L_U half = word | (L_u)1 << (L_BITS - r->stochastic_bits - 1), sum = t + half;
    L_I carry = (L_I)(sum < t), beyond = (L_I)((sum | lost) != 0), odd = (L_I)((random & 1u) != 0);
    if (r->rounding == SN_STOCHASTIC_FAST) return carry;
    return carry & (beyond | (r->rounding == SN_STOCHASTIC_ODD ? odd : ~odd));
}

/* The bit that decides. odd: 1 if the last bit kept is; sign: 1 if negative. */
SN_INLINE L_U SN_L(deciding_bit)(const sn_rounding *r, int family, L_U odd, L_U sign) {
    if (family == SN_FAMILY_EVEN) return odd;
    if (family == SN_FAMILY_ODD) return odd ^ 1u;
    return (sign & (L_u)r->negative) ^ (L_u)r->constant;
}

/* What is added before the last places are cut, whose mask is below_one. */
SN_INLINE L_U SN_L(addend)(int family, L_U bit, L_U below_one) {
    const int directed = family == SN_FAMILY_DIRECTED || family == SN_FAMILY_ODD;
    return directed ? below_one & (0u - bit) : (below_one + bit) >> 1;
}

/* Stochastic rounding where the lowest binade is normal: codes of what lies between 0 and the smallest value, by the
 * definition. */
static void SN_L(round_gap)(const sn_rounding *r, SN_L(rounded) * x, L_U random) {
    for (int i = 0; i < L_N; i++)
        if (x->gap[i] && x->u[i])
            x->code[i] = (L_u)sn_leaves_gap(r, x->u[i], L_M, (sn_i32)x->sign[i], (sn_u32)random[i]);
}

/* family and unusual are r's, known to the compiler. random: the low r bits count. */
SN_INLINE SN_L(rounded) SN_L(to_grid)(const sn_rounding *r, int family, int unusual, L_U bits, L_U random) {
    const L_U zero = {0};
    SN_L(rounded) x;
    const int normal = unusual && r->lowest == SN_LOWEST_NORMAL;
    x.u = bits & ~L_SIGN;
    x.sign = bits >> (L_BITS - 1);
    if (normal && !r->has_zero) { /* all that lies below the smallest value becomes it; -0 too */
        x.sign &= (L_U)(x.u != 0);
        x.u = L_SELECT(x.u < (L_u)r->quantum, zero + (L_u)r->quantum, x.u);
    }
    const L_I first = (L_I)zero + r->biased_emin;
    const sn_vi one = (sn_vi)(zero + 1u), field = (sn_vi)(x.u >> L_M), at_least_one = SN_MAX(field, one);
    const L_I e = (L_I)SN_MIN(at_least_one, (sn_vi)first);
    x.w = x.u - ((L_U)(e - 1) << L_M);
    x.s = first - e + (L_i)(L_M - r->mantissa_bits);
    if (normal) x.w -= L_HIDDEN;
    if (unusual && r->lowest == SN_LOWEST_ZERO) x.s += (e < first) & (L_i)r->mantissa_bits;
    x.gap = normal ? x.u < (L_u)r->quantum : (L_I)zero;
    if (family == SN_FAMILY_STOCHASTIC && !L_ANY_GREATER(x.s, (L_I)zero + (L_BITS - 1))) {
        const L_U aligned = L_RIGHT(random << (L_BITS - r->stochastic_bits), L_BITS - x.s);
        x.code = L_RIGHT(x.w + aligned, x.s);
    } else if (family == SN_FAMILY_STOCHASTIC || family == SN_FAMILY_RANDOM) {
        x.code = L_RIGHT(x.w, x.s) - (L_U)SN_L(carries)(r, family, x.w, x.s, x.sign, random);
    } else {
        x.s = (L_I)SN_MIN((sn_vi)x.s, (sn_vi)(zero + (L_u)(L_M + 2)));
        const int directed = family == SN_FAMILY_DIRECTED || family == SN_FAMILY_ODD;
        L_U below_one = L_LEFT(zero + 1u, x.s) - 1u, odd = L_RIGHT(x.w, x.s) & 1u;
        if (normal) odd &= ~(L_U)x.gap; /* 0 is even */
        const L_U bit = SN_L(deciding_bit)(r, family, odd, x.sign);
        x.code = L_RIGHT(x.w + SN_L(addend)(family, bit, below_one), x.s);
        if (normal && r->has_zero) {
            L_I above = x.u > (L_u)r->half_gap, tie = x.u == (L_u)r->half_gap, up = -(L_I)bit;
            up = directed ? up & (x.u != 0) : above | (tie & up);
            x.code = L_SELECT(x.gap, (L_U)up & 1u, x.code);
        }
    }
    if (normal && r->has_zero && family >= SN_FAMILY_STOCHASTIC) {
        x.code &= ~(L_U)x.gap;
        if (L_ANY_GREATER((L_I)(x.u & (L_U)x.gap), (L_I)zero)) SN_L(round_gap)(r, &x, random);
    }
    return x;
}

/* out, but for the rare lane that overflows, or is infinite or NaN. */
SN_INLINE L_U SN_L(outcome)(const sn_rounding *r, const sn_outcomes *o, const SN_L(rounded) * x, L_U out) {
    const L_U zero = {0};
    if (L_ANY_GREATER((L_I)x->code, (L_I)zero + (L_i)r->least_limit)) {
        L_I negative = x->sign != 0;
        L_U limit = L_SELECT(negative, zero + (L_u)r->limit[1], zero + (L_u)r->limit[0]);
        L_U overflow = L_SELECT(negative, zero + (L_u)o->overflow[1], zero + (L_u)o->overflow[0]);
        L_U infinity = L_SELECT(negative, zero + (L_u)o->infinity[1], zero + (L_u)o->infinity[0]);
        out = L_SELECT((L_I)x->code > (L_I)limit, overflow, out);
        out = L_SELECT((L_I)x->u == L_INFINITY, infinity, out);
        out = L_SELECT((L_I)x->u > L_INFINITY, zero + (L_u)o->nan, out);
    }
    return out;
}

/* Where the format's binades are the carrier's, s is the same everywhere and w is u: u rounded, not cut yet. */
SN_INLINE L_U SN_L(round_in_place)(const sn_rounding *r, int family, L_U bits) {
    const L_U u = bits & ~L_SIGN, below_one = (L_U){0} + (L_u)r->below_one;
    const L_U odd = (u >> (L_M - r->mantissa_bits)) & 1u;
    return u + SN_L(addend)(family, SN_L(deciding_bit)(r, family, odd, bits >> (L_BITS - 1)), below_one);
}

#include "lanes/magic.h"

/* The pattern of a magnitude's pattern and the sign of another. */
SN_INLINE L_U SN_L(value_with_sign)(const sn_rounding *r, L_U magnitude, L_U bits) {
    const L_U sign = bits & L_SIGN;
    return magnitude | (r->sign_of_zero ? sign : sign & (L_U)(magnitude != 0));
}

/* The pattern of the value that to_grid found. */
SN_INLINE L_U SN_L(value_of)(const sn_rounding *r, int unusual, const SN_L(rounded) * x) {
    const L_U zero = {0};
    L_U result = L_LEFT(x->code, x->s) + (x->u - x->w);
    if (unusual || L_ANY_GREATER(x->s, (L_I)zero + L_M)) {
        L_I far = (x->s > L_M) | x->gap;
        result = L_SELECT(far, (zero + (L_u)r->quantum) & (L_U)(x->code != 0), result);
    }
    return SN_L(outcome)(r, &r->values, x, SN_L(value_with_sign)(r, result, x->sign << (L_BITS - 1)));
}

/* The pattern of the rounded value. */
SN_INLINE L_U SN_L(round_to_value)(const sn_rounding *r, int family, int unusual, L_U bits, L_U random) {
    const SN_L(rounded) x = SN_L(to_grid)(r, family, unusual, bits, random);
    return SN_L(value_of)(r, unusual, &x);
}

/* The code of a magnitude code and the sign of a pattern. */
SN_INLINE L_U SN_L(code_with_sign)(const sn_rounding *r, L_U code, L_U bits) {
    const L_U sign = (bits >> (L_BITS - r->bits)) & (L_u)r->sign_mask;
    if (!r->fixed) return code | (r->negative_zero ? sign : sign & (L_U)(code != 0));
    const L_I negative = (L_I)bits >> (L_BITS - 1);
    return ((code ^ (L_U)negative) - (L_U)negative) & (L_u)r->code_mask;
}

/* Its code. */
SN_INLINE L_U SN_L(round_to_code)(const sn_rounding *r, int family, int unusual, L_U bits, L_U random) {
    const SN_L(rounded) x = SN_L(to_grid)(r, family, unusual, bits, random);
    L_U code = x.code;
    if (unusual && r->lowest == SN_LOWEST_ZERO)
        code = L_SELECT(x.s > (L_i)(L_M - r->mantissa_bits), code << r->mantissa_bits, code);
    return SN_L(outcome)(r, &r->codes, &x, SN_L(code_with_sign)(r, code, x.sign << (L_BITS - 1)));
}

#ifdef SN_WITH_LOOPS
#include "lanes/convert.h"
#endif

#undef L_F
#undef L_U
#undef L_I
#undef L_u
#undef L_i
#undef L_M
#undef L_LEFT
#undef L_RIGHT
#undef L_ANY_GREATER
#undef L_V
#undef L_MAX
#undef L_LOOP
#undef L_LOOPS
#undef L_ENTRY
#undef L_N
#undef L_SIGN
#undef L_HIDDEN
#undef L_INFINITY
#undef L_SELECT
#undef L_WORDS
#undef L_LOAD
#undef L_STORE
#undef SN_L
#undef L_BITS

/* Included by patterns.h for each carrier: P_BITS 32 and 64. Let u be a magnitude's pattern, M the carrier's fraction
 * bits and m the format's.
 *
 * SN_WAY_IN_PLACE, deterministic modes: the format's binades are the carrier's, m < M. The last M - m places of u are
 * rounded; a carry is the next binade.
 *
 * SN_WAY_MAGIC, deterministic modes: with E the exponent of x, but at least that of the lowest binade, and C =
 * 1.5 * 2^(E + M - m), the last place of x + C is the format's at x, for either sign of x (m <= M - 2). So the addition
 * rounds x, as it is told to, and subtracting C is exact. Ties that do not go to even: with C half as large x + C is x
 * in halves of the last place, truncated or rounded up, and an integer addition and a cut decide. To odd: truncated,
 * and the last bit is set where that was inexact. m >= 1 where the last bit matters. Only for x below `beyond`, where
 * C is finite; the smallest value is normal in the carrier. Where the lowest binade is normal, what lies between 0 and
 * the smallest value is compared with a threshold.
 *
 * SN_WAY_GRID, all of the domain: with e the exponent field, but at least 1 and at most the one that the format's
 * lowest binade has, w = u - ((e - 1) << M)    s = M - m + (lowest field - e)    code = w / 2^s, rounded is the
 * magnitude code in all binades of the format. Below 2^M u and w have the same last places, so (code << s) + (u - w) is
 * the pattern of the value wherever s <= M; further down, codes are 0 and 1. Deterministic modes add 2^s - 1, or its
 * half, or half of 2^s, to w and cut; a w below 2^(M + 1) has no bit in common with an s > M + 1. Stochastic ones add
 * the random bits to the fraction, aligned to its places, or, where s is larger, to its first P_BITS places.
 *
 * SN_WAY_CARRY, SN_STOCHASTIC with subnormals: the same, where s <= M done to u itself, since a carry into the next
 * binade doubles the last place there too; above, w < 2^(M + 1) is a fraction alone, of which the first P_BITS places
 * are compared. What has been rounded past `beyond` overflows.
 *
 * Overflow in the other ways, where `beyond` says so: every finite x from it on rounds past the largest value in a
 * deterministic mode, and no other x. */

/* The bit that decides. odd: the last bit kept; sign: 1 if negative. */
SN_FN P_u P_(deciding_bit)(const sn_pattern *p, P_u odd, P_u sign) {
    if (p->family == SN_TIES_TO_EVEN) return odd;
    if (p->family == SN_ODD) return odd ^ 1u;
    return (sign & (P_u)p->negative) ^ (P_u)p->constant;
}

/* What is added before the places of the mask below_one are cut. */
SN_FN P_u P_(addend)(const sn_pattern *p, P_u bit, P_u below_one) {
    return p->family == SN_DIRECTED || p->family == SN_ODD ? below_one & (0u - bit) : (below_one + bit) >> 1;
}

/* ---- in place: u rounded, not cut yet ---- */

SN_FN P_u P_(in_place)(const sn_pattern *p, P_u bits) {
    const P_u u = bits & ~P_SIGN, below_one = ((P_u)1 << (P_M - p->mantissa_bits)) - 1;
    const P_u odd = (u >> (P_M - p->mantissa_bits)) & 1u;
    return u + P_(addend)(p, P_(deciding_bit)(p, odd, bits >> (P_BITS - 1)), below_one);
}

/* ---- magic ---- */

SN_FN P_f P_(add_to)(sn_i32 direction, P_f x, P_f y) {
    if (direction == SN_ADD_NEAREST) return P_(add)(x, y);
    if (direction == SN_ADD_DOWN) return P_(add_down)(x, y);
    return direction == SN_ADD_UP ? P_(add_up)(x, y) : P_(add_zero)(x, y);
}

/* x in last places + C, and C, as patterns; E in place. */
typedef struct {
    P_u whole, part, exponent;
} P_(magic);

SN_FN P_(magic) P_(add_magic)(const sn_pattern *p, P_u bits) {
    P_(magic) x;
    const P_u u = bits & ~P_SIGN, least = (P_u)p->least;
    x.exponent = (u > least ? u : least) & P_INFINITY;
    x.part = x.exponent + (P_u)p->to_constant;
    x.whole = P_(bits)(P_(add_to)(p->direction, P_(float)(sn_pattern_by_sign(p) ? bits : u), P_(float)(x.part)));
    if (p->family == SN_TIES_BY_SIGN) x.whole = (x.whole + (P_u)p->bump) & ~(P_u)1;
    if (p->family == SN_ODD) x.whole |= (P_u)(P_(bits)(P_(subtract)(P_(float)(x.whole), P_(float)(x.part))) != u) & 1u;
    return x;
}

/* Whether what lies in the gap below the smallest value rounds to it. */
SN_FN sn_i32 P_(leaves_gap)(const sn_pattern *p, P_u bits) {
    const P_u threshold = (P_u)(bits >> (P_BITS - 1) ? p->gap_threshold[1] : p->gap_threshold[0]);
    return (bits & ~P_SIGN) >= threshold;
}

SN_FN P_u P_(magic_value)(const sn_pattern *p, P_u bits) {
    const P_(magic) x = P_(add_magic)(p, bits);
    const P_u out = P_(bits)(P_(subtract)(P_(float)(x.whole), P_(float)(x.part))) & ~P_SIGN;
    if (sn_pattern_unusual(p) && (bits & ~P_SIGN) < (P_u)p->quantum)
        return P_(leaves_gap)(p, bits) ? (P_u)p->quantum : 0;
    return out;
}

SN_FN P_u P_(magic_code)(const sn_pattern *p, P_u bits) {
    const P_(magic) x = P_(add_magic)(p, bits);
    P_u code = x.whole - x.part;
    if (sn_pattern_by_sign(p) && bits >> (P_BITS - 1)) code = 0u - code;
    if (p->family == SN_TIES_BY_SIGN) code >>= 1;
    code += (x.exponent - (P_u)p->least) >> (P_M - p->mantissa_bits);
    if (sn_pattern_unusual(p)) {
        if ((bits & ~P_SIGN) < (P_u)p->quantum) return (P_u)P_(leaves_gap)(p, bits);
        code -= (P_u)1 << p->mantissa_bits;
    }
    return code;
}

/* ---- grid ---- */

typedef struct {
    P_u u, w, sign, code; /* magnitude; w; 1 if negative; magnitude code */
    sn_i32 s, gap;        /* s; whether it lies between 0 and the smallest value, where the lowest binade is normal */
} P_(grid);

/* Whether the random word carries the fraction of w / 2^s over: sn_carries in round.h. s >= 0. */
SN_FN P_u P_(random_carries)(const sn_pattern *p, P_u w, sn_i32 s, P_u sign, P_u random) {
    const sn_i32 past = s > P_BITS + P_M + 2 ? P_M + 2 : s - P_BITS; /* w has no bit that far */
    const P_u t = past >= 0 ? w >> past : s ? w << -past : 0, word = random << (P_BITS - p->stochastic_bits);
    if (p->family == SN_RANDOM_CARRY) return t + word < t;
    const sn_i32 lost = past > 0 && t << past != w;
    if (p->rounding == SN_STOCHASTIC_FLOOR) {
        if (sign) return word < t || (word == t && lost);
        return t + word < t;
    }
    if (p->rounding == SN_STOCHASTIC_EQUAL) return (t != 0 || lost) ? word >> (P_BITS - 1) : 0;
    const P_u half = word | (P_u)1 << (P_BITS - p->stochastic_bits - 1), sum = t + half;
    const P_u carry = sum < t, beyond = sum != 0 || lost, odd = random & 1u;
    if (p->rounding == SN_STOCHASTIC_FAST) return carry;
    return carry & (beyond | (p->rounding == SN_STOCHASTIC_ODD ? odd : odd ^ 1u));
}

SN_FN P_(grid) P_(to_grid)(const sn_pattern *p, P_u bits, sn_u32 random) {
    P_(grid) x;
    const sn_i32 normal = p->lowest == SN_LOWEST_NORMAL;
    x.u = bits & ~P_SIGN;
    x.sign = bits >> (P_BITS - 1);
    if (normal && !p->has_zero) { /* all that lies below the smallest value becomes it; -0 too */
        x.sign &= (P_u)(x.u != 0);
        if (x.u < (P_u)p->quantum) x.u = (P_u)p->quantum;
    }
    sn_i32 e = (sn_i32)(x.u >> P_M);
    e = e < 1 ? 1 : e;
    e = e > p->biased_emin ? p->biased_emin : e;
    x.w = x.u - ((P_u)(e - 1) << P_M);
    x.s = p->biased_emin - e + (P_M - p->mantissa_bits);
    if (normal) x.w -= (P_u)1 << P_M;
    if (p->lowest == SN_LOWEST_ZERO && e < p->biased_emin) x.s += p->mantissa_bits;
    x.gap = normal && x.u < (P_u)p->quantum;
    if (p->family == SN_RANDOM_CARRY && x.s < P_BITS) {
        const P_u word = (P_u)random << (P_BITS - p->stochastic_bits);
        x.code = (x.w + (x.s ? word >> (P_BITS - x.s) : 0)) >> x.s;
    } else if (p->family >= SN_RANDOM_CARRY) {
        x.code = (x.s < P_BITS ? x.w >> x.s : 0) + P_(random_carries)(p, x.w, x.s, x.sign, random);
    } else {
        x.s = x.s > P_M + 2 ? P_M + 2 : x.s;
        const P_u below_one = ((P_u)1 << x.s) - 1;
        P_u odd = (x.w >> x.s) & 1u;
        if (x.gap) odd = 0; /* 0 is even */
        const P_u bit = P_(deciding_bit)(p, odd, x.sign);
        x.code = (x.w + P_(addend)(p, bit, below_one)) >> x.s;
        if (x.gap && p->has_zero) {
            const sn_i32 inexact = bit && x.u != 0;
            const sn_i32 near = x.u > (P_u)p->half_gap || (x.u == (P_u)p->half_gap && bit);
            x.code = (P_u)(p->family == SN_DIRECTED || p->family == SN_ODD ? inexact : near);
        }
    }
    return x;
}

SN_FN P_u P_(grid_value)(const sn_pattern *p, const P_(grid) * x) {
    if (x->s > P_M || x->gap) return x->code ? (P_u)p->quantum : 0;
    return (x->code << x->s) + (x->u - x->w);
}

SN_FN P_u P_(grid_code)(const sn_pattern *p, const P_(grid) * x) {
    const sn_i32 steps = p->lowest == SN_LOWEST_ZERO && x->s > P_M - p->mantissa_bits;
    return steps ? x->code << p->mantissa_bits : x->code;
}

/* ---- carry ---- */

/* s and w, and what is added to w (to u) before it is cut, if s <= M. */
typedef struct {
    P_u u, w, word, aligned;
    sn_i32 s;
} P_(carry);

SN_FN P_(carry) P_(add_carry)(const sn_pattern *p, P_u bits, sn_u32 random) {
    P_(carry) x;
    x.u = bits & ~P_SIGN;
    sn_i32 e = (sn_i32)(x.u >> P_M);
    e = e < 1 ? 1 : e;
    e = e > p->biased_emin ? p->biased_emin : e;
    x.w = x.u - ((P_u)(e - 1) << P_M);
    x.s = p->biased_emin - e + (P_M - p->mantissa_bits);
    x.word = (P_u)random << (P_BITS - p->stochastic_bits);
    const sn_i32 s = x.s > P_M ? P_M : x.s;
    x.aligned = p->mantissa_bits == P_M && s == 0 ? 0 : x.word >> (P_BITS - s);
    return x;
}

/* Whether there is an s > M, and then whether the word carries. */
SN_FN sn_i32 P_(has_far)(const sn_pattern *p) { return p->biased_emin - 1 > p->mantissa_bits; }

SN_FN P_u P_(far_carry)(const P_(carry) * x) {
    const sn_i32 past = x->s - (P_M + 1);
    const P_u t = past < P_BITS ? x->w << (P_BITS - P_M - 1) >> (past & (P_BITS - 1)) : 0;
    return t + x->word < t;
}

SN_FN P_u P_(carry_value)(const sn_pattern *p, P_u bits, sn_u32 random) {
    const P_(carry) x = P_(add_carry)(p, bits, random);
    const P_u near = (x.u + x.aligned) & (~(P_u)0 << (x.s > P_M ? P_M : x.s));
    if (!P_(has_far)(p) || x.s <= P_M) return near;
    return P_(far_carry)(&x) ? (P_u)p->quantum : 0;
}

SN_FN P_u P_(carry_code)(const sn_pattern *p, P_u bits, sn_u32 random) {
    const P_(carry) x = P_(add_carry)(p, bits, random);
    if (!P_(has_far)(p) || x.s <= P_M) return (x.w + x.aligned) >> (x.s > P_M ? P_M : x.s);
    return P_(far_carry)(&x);
}

/* ---- outcomes ---- */

/* What is beyond the largest value becomes: of overflow, infinity and NaN the one that the pattern u says. */
SN_FN P_u P_(outcome)(P_u u, P_u overflow, P_u infinity, P_u nan) {
    return u > P_INFINITY ? nan : u == P_INFINITY ? infinity : overflow;
}

/* The pattern of a magnitude's pattern with a sign. */
SN_FN P_u P_(value_with_sign)(const sn_pattern *p, P_u magnitude, P_u sign) {
    if (!p->negative_zero && magnitude == 0) return 0;
    return magnitude | sign << (P_BITS - 1);
}

/* The code of a magnitude code with a sign. */
SN_FN P_u P_(code_with_sign)(const sn_pattern *p, P_u code, P_u sign) {
    if (p->is_fixed) return ((code ^ (0u - sign)) + sign) & (P_u)p->code_mask;
    if (!p->negative_zero && code == 0) return 0;
    return code | (sign ? (P_u)p->sign_mask : 0);
}

/* Whether a pattern has no result: the format lacks a NaN or, fixed point, an infinity. */
SN_FN sn_i32 P_(no_result)(const sn_pattern *p, P_u bits) {
    const P_u u = bits & ~P_SIGN;
    return p->is_fixed ? u >= P_INFINITY : p->no_nan && u > P_INFINITY;
}

/* The pattern of the rounded value. */
SN_FN P_u P_(round_pattern)(const sn_pattern *p, P_u bits, sn_u32 random) {
    P_u out, sign = bits >> (P_BITS - 1), u = bits & ~P_SIGN;
    sn_i32 over;
    if (p->way == SN_WAY_GRID) {
        const P_(grid) x = P_(to_grid)(p, bits, random);
        out = P_(grid_value)(p, &x);
        u = x.u;
        sign = x.sign;
        over = (P_i)x.code > (P_i)(sign ? p->limit[1] : p->limit[0]);
    } else if (p->way == SN_WAY_CARRY) {
        out = P_(carry_value)(p, bits, random);
        over = out >= (P_u)(sign ? p->beyond[1] : p->beyond[0]);
    } else {
        out = p->way == SN_WAY_MAGIC ? P_(magic_value)(p, bits)
                                     : P_(in_place)(p, bits) & ~(((P_u)1 << (P_M - p->mantissa_bits)) - 1);
        over = u >= (P_u)(sign ? p->beyond[1] : p->beyond[0]);
    }
    if (sn_pattern_symmetric(p, P_SIGN)) { /* no branch: the magnitude, its sign, and NaN */
        const sn_u64 above = u == P_INFINITY ? p->value_infinity[0] : p->value_overflow[0];
        out = P_(value_with_sign)(p, over ? (P_u)above : out, sign);
        return u > P_INFINITY ? (P_u)p->value_nan : out;
    }
    out = P_(value_with_sign)(p, out, sign);
    if (over)
        out = sign ? P_(outcome)(u, (P_u)p->value_overflow[1], (P_u)p->value_infinity[1], (P_u)p->value_nan)
                   : P_(outcome)(u, (P_u)p->value_overflow[0], (P_u)p->value_infinity[0], (P_u)p->value_nan);
    return out;
}

/* Its code. */
SN_FN P_u P_(code_of_pattern)(const sn_pattern *p, P_u bits, sn_u32 random) {
    P_u out, sign = bits >> (P_BITS - 1), u = bits & ~P_SIGN;
    sn_i32 over;
    if (p->way == SN_WAY_GRID) {
        const P_(grid) x = P_(to_grid)(p, bits, random);
        out = P_(grid_code)(p, &x);
        u = x.u;
        sign = x.sign;
        over = (P_i)x.code > (P_i)(sign ? p->limit[1] : p->limit[0]);
    } else if (p->way == SN_WAY_CARRY) {
        out = P_(carry_code)(p, bits, random);
        over = (P_i)out > (P_i)(sign ? p->limit[1] : p->limit[0]);
    } else {
        out = p->way == SN_WAY_MAGIC ? P_(magic_code)(p, bits) : P_(in_place)(p, bits) >> (P_M - p->mantissa_bits);
        over = u >= (P_u)(sign ? p->beyond[1] : p->beyond[0]);
    }
    out = P_(code_with_sign)(p, out, sign);
    if (over)
        out = sign ? P_(outcome)(u, (P_u)p->code_overflow[1], (P_u)p->code_infinity[1], (P_u)p->code_nan)
                   : P_(outcome)(u, (P_u)p->code_overflow[0], (P_u)p->code_infinity[0], (P_u)p->code_nan);
    return out;
}

/* ---- codes ---- */

/* The pattern that a code stands for. A subnormal number is computed as the fraction of a number in the binade above,
 * less that binade's first, which is exact. */
SN_FN P_u P_(pattern_of_code)(const sn_reading *r, P_u code) {
    const P_u negative = (code & (P_u)r->sign_mask) != 0;
    P_u magnitude = code & (P_u)r->magnitude_mask;
    if (r->is_fixed) magnitude = ((magnitude ^ (0u - negative)) + negative) & (P_u)r->magnitude_mask;
    P_u u = (magnitude << (P_M - r->mantissa_bits)) + (P_u)r->rebias;
    if ((P_i)magnitude < (P_i)r->low) {
        const P_f above = P_(float)(u + ((P_u)1 << P_M));
        u = r->subnormals ? P_(bits)(P_(subtract)(above, P_(float)((P_u)r->first))) : 0;
    }
    P_u out = u | (r->negative_zero || u != 0 ? negative << (P_BITS - 1) : 0);
    if ((P_i)magnitude > (P_i)r->max_code)
        out = (P_i)magnitude == (P_i)r->inf_code ? P_INFINITY | negative << (P_BITS - 1) : P_NAN;
    if (r->nan_is_negative_zero && magnitude == 0 && negative) out = P_NAN;
    return out;
}

#undef P_BITS
#undef P_M
#undef P_u
#undef P_i
#undef P_f
#undef P_SIGN
#undef P_INFINITY
#undef P_NAN
#undef P_

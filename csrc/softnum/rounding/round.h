/* round_pack: the definition of rounding. Every other rounding, those of the fast paths included, is compared with it
 * bit for bit by the tests. */
#ifndef SOFTNUM_ROUND_H
#define SOFTNUM_ROUND_H

#include "softnum/rounding/specialize.h"

/* An exact value: (-1)^sign * (sig + s) * 2^exp with s = 0, or 0 < s < 1 if sticky. Sticky implies a sig of at least
 * 126 bits, or modular. If modular, the target is fixed point, the value lies far beyond its range, and sig holds the
 * magnitude modulo 2^128. */
typedef struct {
    sn_u128 sig;
    sn_i32 exp, sign, sticky, modular;
} sn_exact;

/* A magnitude in units of 2^q: its floor modulo 2^64, the first 64 bits of its fraction, and whether more follow. */
typedef struct {
    sn_u64 floor, fraction;
    sn_i32 sticky;
} sn_cut;

SN_FN sn_cut sn_cut_at(const sn_exact *x, sn_i32 q) {
    sn_cut c;
    sn_i32 shift = q - x->exp;
    c.sticky = x->sticky;
    c.fraction = 0;
    if (shift <= 0) {
        c.floor = sn_u128_shl(x->sig, -shift).lo;
        return c;
    }
    c.floor = sn_u128_shr(x->sig, shift).lo;
    if (shift >= 64) {
        c.fraction = sn_u128_shr(x->sig, shift - 64).lo;
        c.sticky |= sn_u128_low_bits(x->sig, shift - 64);
    } else {
        c.fraction = x->sig.lo << (64 - shift);
    }
    return c;
}

/* Note a cut at 2^last, and whether it rounds up (sn_note, env.h). */
SN_FN void sn_note_cut(const sn_env *env, const sn_exact *x, sn_cut c, sn_i32 last, sn_i32 up) {
#ifdef SN_PROBED
    sn_note *n = env->note;
    sn_note_kind(env, SN_FINITE, x->sign);
    n->exponent = x->exp + sn_u128_bit_length(x->sig) - 1;
    n->last = last;
    n->modular = x->modular;
    n->floor = c.floor;
    n->fraction = c.fraction;
    n->sticky = c.sticky;
    n->up = up;
#else
    (void)env, (void)x, (void)c, (void)last, (void)up;
#endif
}

/* Where the lowest binade is normal, no value lies between 0 and the smallest, (2^m + 1) * 2^(emin - m). For x below
 * it: x in units of that gap, by long division. */
SN_FN sn_cut sn_cut_in_gap(const sn_exact *x, const sn_format *f) {
    sn_cut c;
    sn_u128 gap = sn_u128_make(((sn_u64)1 << f->mantissa_bits) + 1, 0);
    sn_i32 shift = x->exp - (f->emin - f->mantissa_bits - 64);
    sn_u128 rest = shift >= 0 ? sn_u128_shl(x->sig, shift) : sn_u128_shr(x->sig, -shift);
    c.floor = 0;
    c.fraction = 0;
    c.sticky = x->sticky | sn_u128_low_bits(x->sig, -shift);
    for (sn_i32 i = 0; i < 64; i++) {
        rest = sn_u128_shl(rest, 1);
        c.fraction <<= 1;
        if (!sn_u128_less(rest, gap)) {
            rest = sn_u128_sub(rest, gap);
            c.fraction |= 1;
        }
    }
    c.sticky |= !sn_u128_is_zero(rest);
    return c;
}

SN_FN sn_i32 sn_is_stochastic(const sn_env *env) { return env->rounding >= SN_STOCHASTIC; }

/* Stochastic rounding: whether r random bits, 0 <= r <= 32, added to r bits t of the fraction, carry. The modes differ
 * in what becomes of the bits below t: cut off, or (gfloat's kinds) rounded into t with ties up, to even, or to odd; or
 * the first random bit decides, whatever the fraction. */
SN_FN sn_i32 sn_carries(const sn_env *env, sn_cut c, sn_i32 sign, sn_u32 random) {
    const sn_u64 half = (sn_u64)1 << 63, one = (sn_u64)1 << env->stochastic_bits;
    sn_u64 t = c.fraction >> 1 >> (63 - env->stochastic_bits), rest = c.fraction << env->stochastic_bits;
    random &= (sn_u32)(one - 1);
    switch (env->rounding) {
    case SN_STOCHASTIC_FLOOR: /* floors in two's complement: a negative number is -ceil(t) + R, below zero or not */
        if (sign) return t + (rest != 0 || c.sticky) > random;
        break;
    case SN_STOCHASTIC_EQUAL: return (c.fraction != 0 || c.sticky) && 2 * (sn_u64)random >= one;
    case SN_STOCHASTIC_FAST: t += rest >= half; break;
    case SN_STOCHASTIC_EVEN: t += rest > half || (rest == half && (c.sticky || (t & 1))); break;
    case SN_STOCHASTIC_ODD: t += rest > half || (rest == half && (c.sticky || !(t & 1))); break;
    default: break;
    }
    return t + random >= one;
}

/* Whether the magnitude rounds up. odd: the lowest bit of the code that truncation gives. */
SN_FN sn_i32 sn_rounds_up(const sn_env *env, sn_cut c, sn_i32 sign, sn_i32 odd, sn_u32 random) {
    const sn_u64 half = (sn_u64)1 << 63;
    sn_i32 inexact = c.fraction != 0 || c.sticky;
    sn_i32 above = (c.fraction > half) | ((c.fraction == half) & (c.sticky != 0)); /* no branches that data decide */
    sn_i32 tie = (c.fraction == half) & (c.sticky == 0);
    switch (env->rounding) {
    case SN_NEAREST_EVEN: return above | (tie & odd);
    case SN_NEAREST_AWAY: return above || tie;
    case SN_NEAREST_ZERO: return above;
    case SN_NEAREST_UP: return above || (tie && !sign);
    case SN_NEAREST_DOWN: return above || (tie && sign);
    case SN_AWAY_FROM_ZERO: return inexact;
    case SN_UP: return inexact && !sign;
    case SN_DOWN: return inexact && sign;
    case SN_TO_ODD: return inexact && !odd;
    default: return sn_is_stochastic(env) && sn_carries(env, c, sign, random); /* SN_TOWARD_ZERO */
    }
}

/* IEEE 754-2019 7.4, and the overflow rules of formats and modes that it does not know. */
SN_FN sn_u64 sn_overflowed(const sn_format *f, const sn_env *env, sn_i32 sign, sn_u32 *flags) {
    sn_i32 mode = env->rounding;
    sn_note_event(env, SN_NOTED_OVERFLOW);
    sn_raise(f, SN_FLAG_OVERFLOW | SN_INEXACT, flags);
    if (sign && !f->is_signed) return sn_below_zero(f, env, 0);
    /* the largest value of a signed format of P3109's with infinities is even, and infinity the odd one (v4.0, 4.7.5);
     * by v3.2.1 rounding to odd goes to infinity in the unsigned ones, too */
    const sn_i32 v3 = env->overflow == SN_OVERFLOW_P3109_V3_2_1;
    const sn_i32 odd_infinity = f->p3109 && f->has_inf && (f->is_signed || v3);
    if (mode == SN_TOWARD_ZERO || (mode == SN_TO_ODD && !odd_infinity) || (mode == SN_UP && sign) ||
        (mode == SN_DOWN && !sign) || (env->overflow != SN_OVERFLOW_INFINITY && !v3))
        return sn_with_sign(f, f->max_code, sign);
    if (f->has_inf) return sn_with_sign(f, f->inf_code, sign);
    return f->has_nan && !f->saturating ? f->nan_code : sn_with_sign(f, f->max_code, sign);
}

SN_FN sn_u64 sn_round_float(const sn_format *f, const sn_env *env, const sn_exact *x, sn_u32 random, sn_u32 *flags) {
    const sn_i32 m = f->mantissa_bits;
    const sn_u64 hidden = (sn_u64)1 << m;
    if (sn_u128_is_zero(x->sig)) {
        sn_note_kind(env, SN_ZERO, x->sign);
        if (!f->has_zero) sn_raise(f, SN_INEXACT | SN_UNDERFLOW, flags);
        return sn_with_sign(f, 0, x->sign);
    }
    if (x->sign && !f->has_zero) return sn_invalid_result(f, env, flags);
    sn_i32 e = x->exp + sn_u128_bit_length(x->sig) - 1;
    sn_i32 below = e < f->emin;

    /* on the grid with unbounded exponent; code = floor in units of the last place + what the exponent field adds */
    sn_cut c = sn_cut_at(x, e - m);
    sn_u64 code = c.floor + ((sn_u64)(sn_i64)(e - f->emin - (f->lowest == SN_LOWEST_NORMAL)) << m);
    sn_i32 up = sn_rounds_up(env, c, x->sign, (sn_i32)(code & 1), random);
    sn_u64 step = 1;
    sn_note_cut(env, x, c, e - m, up);
    if (e > f->emax) return sn_overflowed(f, env, x->sign, flags);
    if (below && !f->has_zero) { /* nothing lies below the smallest normal, code 0 */
        sn_note_cut(env, x, sn_cut_at(x, f->emin), f->emin, 1);
        sn_note_event(env, SN_NOTED_GAP);
        sn_raise(f, SN_INEXACT | SN_UNDERFLOW, flags);
        return 0;
    }

    sn_i32 gap = f->lowest == SN_LOWEST_NORMAL && f->has_zero && (below || (e == f->emin && c.floor == hidden));
    sn_i32 tiny = below || gap;
    if (tiny) {
        /* rounded with unbounded exponent, up to the smallest normal; a stochastic result is judged before rounding */
        sn_i32 grown = up && !sn_is_stochastic(env) && (gap ? !below : e == f->emin - 1 && c.floor == 2 * hidden - 1);
        tiny = env->tininess == SN_TININESS_BEFORE || !grown; /* 7.5 */
        if (env->flush_results && env->flush_results != SN_FLUSH_SUBNORMAL) {
            if (env->flush_results == SN_FLUSH_BEFORE || !grown) {
                sn_note_event(env, SN_NOTED_FLUSH);
                sn_raise(f, SN_INEXACT | SN_UNDERFLOW, flags);
                return sn_with_sign(f, 0, x->sign);
            }
            if (code + 1 > f->max_code) return sn_overflowed(f, env, x->sign, flags); /* all numbers are subnormal */
            sn_raise(f, tiny ? SN_INEXACT | SN_UNDERFLOW : SN_INEXACT, flags);
            return x->sign && !f->is_signed ? sn_below_zero(f, env, 0) : sn_with_sign(f, code + 1, x->sign);
        }
        const sn_i32 one_step = gap || f->lowest == SN_LOWEST_ZERO, last = one_step ? f->emin : f->emin - m;
        c = gap ? sn_cut_in_gap(x, f) : sn_cut_at(x, last);
        if (one_step) sn_note_event(env, SN_NOTED_GAP);
        if (f->lowest == SN_LOWEST_ZERO) step = hidden;
        code = c.floor;
        up = sn_rounds_up(env, c, x->sign, (sn_i32)(code & 1), random);
        sn_note_cut(env, x, c, last, up);
    }
    if (up) code += step;
    if (code > f->max_code || (up && code < step)) /* beyond 64 bits, in an unsigned format of 64 */
        return sn_overflowed(f, env, x->sign, flags);
    if (env->flush_results == SN_FLUSH_SUBNORMAL && code && code < hidden && f->lowest == SN_LOWEST_SUBNORMAL) {
        sn_note_event(env, SN_NOTED_FLUSH);
        sn_raise(f, SN_INEXACT | SN_UNDERFLOW, flags);
        return sn_with_sign(f, 0, x->sign);
    }
    if (c.fraction || c.sticky) sn_raise(f, tiny ? SN_INEXACT | SN_UNDERFLOW : SN_INEXACT, flags);
    if (code && x->sign && !f->is_signed) return sn_below_zero(f, env, 0);
    return sn_with_sign(f, code, x->sign);
}

SN_FN sn_u64 sn_round_fixed(const sn_format *f, const sn_env *env, const sn_exact *x, sn_u32 random, sn_u32 *flags) {
    if (sn_u128_is_zero(x->sig) && !x->modular) {
        sn_note_kind(env, SN_ZERO, x->sign);
        return 0;
    }
    const sn_i32 q = -f->mantissa_bits;
    sn_i32 out = x->modular || x->exp + sn_u128_bit_length(x->sig) - q > 64;
    sn_cut c = sn_cut_at(x, q);
    sn_u64 magnitude = c.floor;
    const sn_i32 up = sn_rounds_up(env, c, x->sign, (sn_i32)(magnitude & 1), random);
    sn_note_cut(env, x, c, q, up);
    if (up && ++magnitude == 0) out = 1;
    if (c.fraction || c.sticky) sn_raise(f, SN_INEXACT, flags);
    sn_u64 limit = x->sign ? f->sign_mask : f->max_code;
    sn_u64 mask = f->magnitude_mask | f->sign_mask;
    if (out || magnitude > limit) {
        sn_note_event(env, SN_NOTED_OVERFLOW);
        sn_raise(f, SN_FLAG_OVERFLOW, flags);
        if (env->overflow != SN_OVERFLOW_WRAP) magnitude = limit;
    }
    return (x->sign ? 0 - magnitude : magnitude) & mask;
}

/* The integer that x rounds to; INEXACT (for a result in format f) if it is another number. For values below 2^64. */
SN_FN sn_exact sn_to_integer(const sn_format *f, const sn_exact *x, const sn_env *env, sn_u32 random, sn_u32 *flags) {
    sn_cut c = sn_cut_at(x, 0);
    sn_exact n = *x;
    const sn_i32 up = sn_rounds_up(env, c, x->sign, (sn_i32)(c.floor & 1), random);
    sn_note_cut(env, x, c, 0, up);
    c.floor += (sn_u64)up;
    if (c.fraction || c.sticky) sn_raise(f, SN_INEXACT, flags);
    n.sig.hi = 0;
    n.sig.lo = c.floor;
    n.exp = 0;
    n.sticky = 0;
    return n;
}

/* Round the exact value once into the format and OR the exceptions into *flags. Cannot fail: overflow follows env, and
 * a value without a code (a negative one in e8m0) is INVALID. random: its low env->stochastic_bits bits are used by the
 * stochastic modes only. The sign of a zero is x->sign where the format has -0. */
SN_FN sn_u64 sn_round_pack(const sn_format *f, const sn_env *env, const sn_exact *x, sn_u32 random, sn_u32 *flags) {
    return f->kind == SN_FIXED ? sn_round_fixed(f, env, x, random, flags) : sn_round_float(f, env, x, random, flags);
}

#endif

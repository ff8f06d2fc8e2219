/* The short way of operations on floats (short_floats.h: the domain, and why a jammed 64-bit significand is enough) in
 * lanes of 64 bits, flags included. A lane whose operands or result lie outside the domain is marked, and the caller
 * computes it by the definition. Included once per instruction set, by isa_*.c. Not the stochastic modes of other
 * projects: sn_normals.in_lanes says so.
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
 * Quotients and roots come in two steps of 32 and of 32 or 30 bits, each estimated in binary64 from below. With
 * operands of at most 60 fraction bits, divided by 4, every integer that is converted is below 2^62 and rounded once;
 * an estimate, of two or three roundings, is off by less than 2^-50 of itself, so by less than 2^-17 in units of its
 * last place. Lowered by 1/2 + 2^-10 and rounded to an integer it lies below the exact quotient, by at most 1 + 2^-8.
 * What remains is then exact in 64 bits, whatever wraps on the way, not negative, and at the end one step too large at
 * most. A root of 62 bits and a jam in the 64th leave bit 62 - m >= 3 and all above it exact. */
#ifndef SOFTNUM_SHORT_LANES_H
#define SOFTNUM_SHORT_LANES_H

#include "quantize_body.h"

/* As sn_normal, for all lanes; a sign is a mask. */
typedef struct {
    sn_wu sig, exp, sign;
} SN_(normal);

/* What an operand is, as masks; of none: finite and not 0. */
typedef struct {
    sn_wu zero, infinite, nan, signaling;
} SN_(kinds);

/* What a lane's result is rounded from; zero: it is exactly that, and has this sign. */
typedef struct {
    sn_wu sig, exp, sign, zero, sign_of_zero;
} SN_(unrounded);

/* What it is instead, by the kinds of the operands. */
typedef struct {
    sn_wu nan, invalid, infinite, sign, by_zero;
} SN_(special);

typedef struct {
    sn_wu hi, lo;
} SN_(pair);

#define SN_TOP64 0x8000000000000000u
#define SN_LOWERED (0.5 + 0x1p-10)
#define SN_NOWHERE ((sn_u64)0 - (1 << 20)) /* an exponent below those of all numbers and products */

/* Integers, rounded once: their halves stand in the last places of 2^52 and 2^84. */
SN_INLINE sn_wf SN_(to_double)(sn_wu n) {
    const sn_wf high = (sn_wf)(n >> 32 | 0x4530000000000000u) - (0x1p84 + 0x1p52);
    return high + (sn_wf)((n & 0xffffffffu) | 0x4330000000000000u);
}

/* The nearest integer, for 0 <= x < 2^51. */
SN_INLINE sn_wu SN_(to_integer)(sn_wf x) { return (sn_wu)(x + 0x1p52) & 0xfffffffffffffu; }

/* Zeros above the top bit; anything for 0. */
SN_INLINE sn_wu SN_(leading_zeros)(sn_wu n) {
#if defined(SN_LEADING_ZEROS64)
    return SN_LEADING_ZEROS64(n);
#else
    /* without the bit after the top one no rounding carries; the exponent of 2^63 is 1086 */
    return 1086 - ((sn_wu)SN_(to_double)(n & ~(n >> 1)) >> 52);
#endif
}

SN_INLINE sn_wu SN_(jam)(sn_wu any) { return (sn_wu)(any != 0) & 1; }

SN_INLINE sn_wu SN_(is_set)(sn_wu code, sn_u64 mask) { return (sn_wu)((code & mask) != 0); }

SN_INLINE int SN_(any_set)(sn_wu mask) { return SN_ANY_GREATER64((sn_wi){0}, (sn_wi)mask); }

/* low, high: what lies below the normal numbers, or above. */
SN_INLINE SN_(normal) SN_(read_normal)(const sn_normal_operand *f, sn_wu code, sn_wu *low, sn_wu *high) {
    SN_(normal) n;
    const sn_wu magnitude = code & f->magnitude_mask;
    n.sign = SN_(is_set)(code, f->sign_mask);
    n.sig = magnitude << f->shift | SN_TOP64;
    n.exp = (magnitude >> (63 - f->shift)) + (sn_u64)(sn_i64)f->base;
    *low |= (sn_wu)(magnitude < f->first);
    *high |= (sn_wu)(magnitude > f->first + f->span);
    return n;
}

/* A subnormal number becomes a normal one, a zero one of no digits, far below all others. Returns where -0 is a NaN. */
SN_INLINE sn_wu SN_(normalise)(const sn_normal_operand *f, SN_(normal) * n) {
    const sn_wu low = (sn_wu)(n->exp == (sn_u64)(sn_i64)f->base), sig = n->sig ^ (low & SN_TOP64),
                zeros = SN_(leading_zeros)(sig), zero = (sn_wu)(sig == 0), exp = n->exp + 1 - zeros;
    n->sig = SN_SELECT64(low, SN_LEFT64(sig, zeros), sig);
    n->exp = SN_SELECT64(zero, (sn_wu){0} + SN_NOWHERE, SN_SELECT64(low, exp, n->exp));
    return f->nan_is_negative_zero ? zero & n->sign : (sn_wu){0};
}

SN_INLINE SN_(kinds) SN_(kinds_of)(const sn_normal_operand *f, sn_wu code, const SN_(normal) * n) {
    SN_(kinds) k;
    const sn_wu magnitude = code & f->magnitude_mask;
    k.zero = (sn_wu)(n->sig == 0);
    k.infinite = (sn_wu)(magnitude == f->inf_code);
    k.nan = (sn_wu)(magnitude > f->first + f->span) & ~k.infinite;
    k.signaling = f->quiet_bit ? k.nan & ~SN_(is_set)(code, f->quiet_bit) : (sn_wu){0};
    if (f->nan_is_negative_zero) {
        k.nan |= k.zero & n->sign;
        k.zero &= ~n->sign;
    }
    return k;
}

/* All ones where the magnitude goes up; a rule of its own for each mode, as sn_rounds_up. */
SN_INLINE sn_wu SN_(goes_up)(const sn_env *env, sn_wu fraction, sn_wu sign, sn_wu odd, sn_wu words) {
    if (env->rounding == SN_NEAREST_EVEN) return (sn_wu)(fraction + (SN_TOP64 - 1 - odd) < fraction); /* odd: -1 */
    const sn_wu above = (sn_wu)(fraction > SN_TOP64), tie = (sn_wu)(fraction == SN_TOP64),
                inexact = (sn_wu)(fraction != 0);
    switch (env->rounding) {
    case SN_NEAREST_AWAY: return above | tie;
    case SN_NEAREST_ZERO: return above;
    case SN_NEAREST_UP: return above | (tie & ~sign);
    case SN_NEAREST_DOWN: return above | (tie & sign);
    case SN_AWAY_FROM_ZERO: return inexact;
    case SN_UP: return inexact & ~sign;
    case SN_DOWN: return inexact & sign;
    case SN_TO_ODD: return inexact & ~odd;
    case SN_STOCHASTIC: {
        const sn_i32 r = env->stochastic_bits;
        const sn_u64 one = (sn_u64)1 << r;
        return (sn_wu)((fraction >> (64 - r)) + (words & (one - 1)) >= one);
    }
    default: return (sn_wu){0}; /* SN_TOWARD_ZERO */
    }
}

/* Zeros, and what lies below emin: shifted to its last place, the digits below cut off and jammed. Returns where the
 * result is tiny: rounded with unbounded exponent, if that is the rule. */
SN_INLINE sn_wu SN_(place_low)(const sn_normals *t, SN_(unrounded) * x, sn_wu words) {
    const sn_i32 m = t->mantissa_bits;
    const sn_u64 emin = (sn_u64)(sn_i64)t->emin, ones = ((sn_u64)2 << m) - 1;
    x->sign = SN_SELECT64(x->zero, x->sign_of_zero, x->sign);
    x->exp = SN_SELECT64(x->zero, (sn_wu){0} + emin, x->exp);
    const sn_wu low = (sn_wu)((sn_wi)x->exp < (sn_wi)((sn_wu){0} + emin)), sig = x->sig & ~x->zero;
    sn_wu tiny = low;
    if (t->env->tininess == SN_TININESS_AFTER && t->env->rounding != SN_STOCHASTIC) {
        const sn_wu close = (sn_wu)(x->exp == emin - 1) & (sn_wu)(sig >> (63 - m) == ones);
        const sn_u64 odd = 0 - ((ones - (ones >> 1) - 1) & 1); /* the code of 2^emin less one, by truncation */
        if (SN_(any_set)(close)) tiny &= ~(close & SN_(goes_up)(t->env, sig << m << 1, x->sign, (sn_wu){0} + odd, words));
    }
    const sn_wu shift = (emin - x->exp) & low, placed = SN_RIGHT64(sig, shift);
    x->sig = placed | SN_(jam)(SN_LEFT64(placed, shift) ^ sig);
    x->exp = SN_SELECT64(low, (sn_wu){0} + emin, x->exp);
    return tiny;
}

/* Codes of the rounded results, and their flags. */
SN_INLINE sn_wu SN_(round_normal)(const sn_normals *t, SN_(unrounded) * x, sn_wu words, sn_wu *raised,
                                  sn_wu *outside) {
    const sn_i32 m = t->mantissa_bits;
    sn_wu tiny = {0};
    const sn_wu low = x->zero | (sn_wu)((sn_wi)x->exp < (sn_wi)((sn_wu){0} + (sn_u64)(sn_i64)t->exp_first));
    if (!t->whole)
        *outside |= low;
    else if (SN_(any_set)(low))
        tiny = SN_(place_low)(t, x, words);
    const sn_wu fraction = x->sig << m << 1, inexact = (sn_wu)(fraction != 0);
    sn_wu magnitude = (x->sig >> (63 - m)) + ((x->exp - (sn_u64)(sn_i64)t->exp_of_zero) << m);
    magnitude -= SN_(goes_up)(t->env, fraction, x->sign, 0 - (magnitude & 1), words);
    *raised = inexact & t->inexact;
    *raised |= inexact & tiny & t->underflow;
    sn_wu signs = x->sign & t->sign_mask;
    if (!t->negative_zero) signs &= (sn_wu)(magnitude != 0);
    if (t->is_unsigned) *outside |= x->sign;
    const sn_wu code = magnitude | signs,
                over = (sn_wu)((sn_wi)(x->exp - (sn_u64)(sn_i64)t->exp_first) > (sn_i64)t->exp_span) |
                       (sn_wu)(magnitude > t->max_code);
    if (!t->whole)
        *outside |= over;
    else if (SN_(any_set)(over)) {
        *raised = SN_SELECT64(over, (sn_wu){0} + t->overflows, *raised);
        return SN_SELECT64(over, SN_SELECT64(x->sign, (sn_wu){0} + t->overflow[1], (sn_wu){0} + t->overflow[0]), code);
    }
    return code;
}

/* ---- 128 bits -----------------------------------------------------------------------------------------------------
 */

SN_INLINE SN_(pair) SN_(multiply_full)(sn_wu a, sn_wu b) {
    const sn_wu a1 = a >> 32, b1 = b >> 32, low = SN_MULTIPLY32(a, b);
    const sn_wu mid = SN_MULTIPLY32(a1, b) + (low >> 32), mid2 = SN_MULTIPLY32(a, b1) + (mid & 0xffffffffu);
    const SN_(pair) p = {SN_MULTIPLY32(a1, b1) + (mid >> 32) + (mid2 >> 32), mid2 << 32 | (low & 0xffffffffu)};
    return p;
}

/* a * b modulo 2^64, for b below 2^33 at the most */
SN_INLINE sn_wu SN_(multiply_low)(sn_wu a, sn_wu b) {
    return SN_MULTIPLY32(a, b) + ((SN_MULTIPLY32(a >> 32, b) + SN_MULTIPLY32(a, b >> 32)) << 32);
}

/* Top bit set, or 0. */
SN_INLINE SN_(pair) SN_(product)(const sn_normals *t, SN_(normal) x, SN_(normal) y, sn_wu *exp) {
    SN_(pair) p = {SN_MULTIPLY32(x.sig >> 32, y.sig >> 32), {0}};
    if (!t->narrow_factors) p = SN_(multiply_full)(x.sig, y.sig);
    const sn_wu left = ~p.hi >> 63; /* no carry: by one place */
    *exp = x.exp + y.exp + 1 - left;
    p.hi = SN_SELECT64(0 - left, p.hi << 1 | p.lo >> 63, p.hi);
    p.lo += p.lo & (0 - left);
    return p;
}

/* ---- operations ----------------------------------------------------------------------------------------------------
 */

/* The sign of x + y = 0. */
SN_INLINE sn_wu SN_(sign_of_zero)(const sn_normals *t, sn_wu x, sn_wu y) {
    return t->env->rounding == SN_DOWN ? x | y : x & y;
}

SN_INLINE SN_(unrounded) SN_(normal_add)(const sn_normals *t, SN_(normal) x, SN_(normal) y) {
    const sn_wu swap = (sn_wu)((sn_wi)x.exp < (sn_wi)y.exp) | ((sn_wu)(x.exp == y.exp) & (sn_wu)(x.sig < y.sig));
    const sn_wu other = (x.sig ^ y.sig) & swap, exp = SN_SELECT64(swap, y.exp, x.exp);
    const sn_wu distance = exp + exp - x.exp - y.exp, sign = SN_SELECT64(swap, y.sign, x.sign);
    const sn_wu a = (x.sig ^ other) >> 1, b = (y.sig ^ other) >> 1, placed = SN_RIGHT64(b, distance);
    const sn_wu jammed = placed | SN_(jam)(SN_LEFT64(placed, distance) ^ b), minus = x.sign ^ y.sign;
    const sn_wu sum = a + ((jammed ^ minus) - minus), zeros = SN_(leading_zeros)(sum);
    const SN_(unrounded) s = {SN_LEFT64(sum, zeros), exp + 1 - zeros, sign, (sn_wu)(sum == 0),
                              SN_(sign_of_zero)(t, x.sign, y.sign)};
    return s;
}

SN_INLINE SN_(unrounded) SN_(normal_multiply)(const sn_normals *t, SN_(normal) x, SN_(normal) y) {
    sn_wu exp;
    const SN_(pair) p = SN_(product)(t, x, y, &exp);
    const sn_wu sign = x.sign ^ y.sign;
    const SN_(unrounded) s = {p.hi | SN_(jam)(p.lo), exp, sign, (sn_wu)(p.hi == 0), sign};
    return s;
}

SN_INLINE SN_(unrounded)
    SN_(normal_fma)(const sn_normals *t, SN_(normal) x, SN_(normal) y, SN_(normal) z) {
    sn_wu exp;
    const SN_(pair) p = SN_(product)(t, x, y, &exp);
    const sn_wu sign = x.sign ^ y.sign;
    if (t->narrow_product) {
        const SN_(normal) whole = {p.hi, exp, sign};
        return SN_(normal_add)(t, whole, z);
    }
    SN_(pair) a = {p.hi >> 2, p.hi << 62 | p.lo >> 2}, b = {z.sig >> 2, z.sig << 62};
    const sn_wu less = (sn_wu)(a.hi < b.hi) | ((sn_wu)(a.hi == b.hi) & (sn_wu)(a.lo < b.lo));
    const sn_wu swap = (sn_wu)((sn_wi)exp < (sn_wi)z.exp) | ((sn_wu)(exp == z.exp) & less);
    const sn_wu high = (a.hi ^ b.hi) & swap, low = (a.lo ^ b.lo) & swap, top = SN_SELECT64(swap, z.exp, exp);
    a.hi ^= high, a.lo ^= low, b.hi ^= high, b.lo ^= low;

    /* b, shifted and jammed; its top bit is 125, so that at 127 all is lost */
    sn_wu d = top + top - exp - z.exp;
    d = SN_SELECT64(d < 127, d, (sn_wu){0} + 127);
    const sn_wu back = 64 - d, beyond = d - 64;
    const sn_wu lost = SN_LEFT64(b.lo, back) | SN_LEFT64(b.hi, back + 64) | (b.lo & (sn_wu)(d > 64));
    b.lo = SN_RIGHT64(b.lo, d) | SN_LEFT64(b.hi, back) | SN_RIGHT64(b.hi, beyond) | SN_(jam)(lost);
    b.hi = SN_RIGHT64(b.hi, d);

    /* a + b or a + ~b + 1 */
    const sn_wu minus = sign ^ z.sign, lo = (b.lo ^ minus) - minus;
    const sn_wu hi = (b.hi ^ minus) - (minus & (sn_wu)(lo == 0));
    SN_(pair) s = {a.hi + hi, a.lo + lo};
    s.hi -= (sn_wu)(s.lo < lo);

    const sn_wu upper = (sn_wu)(s.hi == 0);
    s.hi = SN_SELECT64(upper, s.lo, s.hi);
    s.lo &= ~upper;
    const sn_wu zeros = SN_(leading_zeros)(s.hi), rest = SN_LEFT64(s.lo, zeros);
    const SN_(unrounded)
        r = {SN_LEFT64(s.hi, zeros) | SN_RIGHT64(s.lo, 64 - zeros) | SN_(jam)(rest), top + 2 - zeros - (upper & 64),
             SN_SELECT64(swap, z.sign, sign), (sn_wu)(s.hi == 0), SN_(sign_of_zero)(t, sign, z.sign)};
    return r;
}

SN_INLINE SN_(unrounded) SN_(normal_divide)(SN_(normal) x, SN_(normal) y) {
    const sn_wu less = (sn_wu)(x.sig < y.sig), divisor = y.sig >> 2;
    const sn_wu dividend = SN_SELECT64(less, x.sig, x.sig >> 1) >> 2; /* below the divisor, by at most one place */
    const sn_wf scale = 0x1p32 / SN_(to_double)(divisor);
    const sn_wu first = SN_(to_integer)(SN_(to_double)(dividend) * scale - SN_LOWERED);
    sn_wu rest = (dividend << 32) - SN_(multiply_low)(divisor, first);
    const sn_wu second = SN_(to_integer)(SN_(to_double)(rest) * scale - SN_LOWERED);
    rest = (rest << 32) - SN_(multiply_low)(divisor, second);
    const sn_wu one = (sn_wu)(rest >= divisor);
    rest -= divisor & one;
    const sn_wu sign = x.sign ^ y.sign;
    const SN_(unrounded) s = {((first << 32) + second - one) | SN_(jam)(rest), x.exp - y.exp + less, sign, {0}, sign};
    return s;
}

SN_INLINE SN_(unrounded) SN_(normal_sqrt)(SN_(normal) x) {
    const sn_wu odd = x.exp & 1, n = SN_SELECT64(0 - odd, x.sig, x.sig >> 1);
    const sn_wf root = 2 * SN_SQRT64(SN_(to_double)(n >> 2));
    const sn_wu first = SN_(to_integer)(root - SN_LOWERED), rest = n - SN_MULTIPLY32(first, first);
    const sn_wu second = SN_(to_integer)(SN_(to_double)(rest) * 0x1p30 / (root + SN_(to_double)(first)) - SN_LOWERED);
    sn_wu whole = (first << 30) + second;
    sn_wu left = (((rest << 30) - 2 * SN_MULTIPLY32(first, second)) << 30) - SN_MULTIPLY32(second, second);
    const sn_wu one = (sn_wu)(left > 2 * whole);
    left -= (2 * whole + 1) & one;
    whole -= one;
    const SN_(unrounded) s = {whole << 2 | SN_(jam)(left), (sn_wu)((sn_wi)(x.exp - odd) >> 1), {0},
                              (sn_wu)(x.sig == 0), x.sign};
    return s;
}

/* ---- NaN, infinities, and quotients and roots of zeros ------------------------------------------------------------
 */

/* inf - inf, or infinite; x is a product or an operand. */
SN_INLINE void SN_(add_infinities)(SN_(special) * s, sn_wu x, sn_wu x_sign, sn_wu y, sn_wu y_sign) {
    s->invalid |= x & y & (x_sign ^ y_sign) & ~s->nan;
    s->infinite = x | y;
    s->sign = SN_SELECT64(x, x_sign, y_sign);
}

/* What the operands' kinds decide, as arith.h and divide.h do; r: a quotient that is 0. */
SN_INLINE SN_(special) SN_(decide)(const sn_normals *t, int op, int operands, const SN_(normal) * x,
                                   const SN_(kinds) * k, SN_(unrounded) * r) {
    SN_(special) s = {{0}, {0}, {0}, {0}, {0}};
    for (int i = 0; i < operands; i++) {
        s.nan |= k[i].nan;
        s.invalid |= k[i].signaling;
    }
    switch (op) {
    case SN_LANES_ADD:
    case SN_LANES_SUBTRACT: SN_(add_infinities)(&s, k[0].infinite, x[0].sign, k[1].infinite, x[1].sign); break;
    case SN_LANES_MULTIPLY:
    case SN_LANES_FMA: {
        const sn_wu infinite = k[0].infinite | k[1].infinite, sign = x[0].sign ^ x[1].sign;
        s.invalid |= infinite & (k[0].zero | k[1].zero);
        SN_(add_infinities)(&s, infinite & ~(k[0].nan | k[1].nan), sign, operands > 2 ? k[2].infinite : (sn_wu){0},
                            operands > 2 ? x[2].sign : sign);
        break;
    }
    case SN_LANES_DIVIDE:
        s.invalid |= (k[0].zero & k[1].zero) | (k[0].infinite & k[1].infinite);
        if (t->zero_divides_to_nan) s.invalid |= k[1].zero;
        s.by_zero = k[1].zero & ~(k[0].infinite | k[0].zero | k[0].nan);
        s.infinite = k[0].infinite | k[1].zero;
        s.sign = x[0].sign ^ x[1].sign;
        r->zero = k[0].zero | k[1].infinite;
        break;
    case SN_LANES_SQRT:
        s.invalid |= x[0].sign & ~(k[0].zero | k[0].nan);
        s.infinite = k[0].infinite;
        break;
    default: /* SN_LANES_CONVERT */
        s.infinite = k[0].infinite;
        s.sign = x[0].sign;
    }
    s.nan |= s.invalid;
    return s;
}

/* ---- loops --------------------------------------------------------------------------------------------------------
 */

typedef void SN_(short_loop)(const sn_normals *plan, const void *const in[3], void *out, sn_u8 *flags, sn_u8 *outside,
                             size_t n, const sn_u32 *words);

/* What the usual formats of a width have. */
#define SN_NARROW_FACTORS(op, width) (((op) == SN_LANES_MULTIPLY || (op) == SN_LANES_FMA) && (width) <= 4)
#define SN_NARROW_PRODUCT(op, width) ((op) == SN_LANES_FMA && (width) <= 4)

/* Whether the plan is what most are, with factors and their product narrow or not. */
SN_INLINE int SN_(is_usual)(const sn_normals *t, int operands, int narrow_factors, int narrow_product) {
    int usual = t->whole && t->env->rounding == SN_NEAREST_EVEN && t->env->tininess == SN_TININESS_AFTER &&
                !t->is_unsigned && t->negative_zero && t->has_nan && !t->zero_divides_to_nan &&
                t->narrow_factors == narrow_factors && t->narrow_product == narrow_product;
    for (int k = 0; k < operands; k++)
        usual &= !t->operand[k].nan_is_negative_zero;
    return usual;
}

SN_INLINE void SN_(short_run)(int op, int operands, int width, int usual, const sn_normals *plan,
                              const void *const in[3], void *out, sn_u8 *flags, sn_u8 *outside, size_t n,
                              const sn_u32 *words) {
    sn_normals t = *plan; /* copies, which out cannot alias */
    sn_env env = *plan->env;
    t.env = &env;
    if (usual) { /* what is_usual has found, as constants */
        t.whole = t.negative_zero = t.has_nan = 1;
        t.is_unsigned = t.zero_divides_to_nan = 0;
        t.narrow_factors = SN_NARROW_FACTORS(op, width);
        t.narrow_product = SN_NARROW_PRODUCT(op, width);
        env.rounding = SN_NEAREST_EVEN;
        env.tininess = SN_TININESS_AFTER;
        for (int k = 0; k < operands; k++)
            t.operand[k].nan_is_negative_zero = 0;
        words = NULL;
    }
    for (size_t i = 0; i < n; i += SN_W) {
        SN_(normal) x[3];
        SN_(kinds) kinds[3];
        SN_(unrounded) r;
        SN_(special) s;
        sn_wu low = {0}, high = {0}, left = {0}, raised;
        for (int k = 0; k < operands; k++)
            x[k] = SN_(read_normal)(&t.operand[k], SN_(load64)((const char *)in[k] + i * (size_t)width, width), &low,
                                    &high);
        if (op == SN_LANES_SQRT) high |= x[0].sign;
        if (op == SN_LANES_DIVIDE) high |= low; /* x / 0 */
        if (!t.whole)
            left = low | high;
        else if (SN_(any_set)(low))
            for (int k = 0; k < operands; k++)
                high |= SN_(normalise)(&t.operand[k], &x[k]);
        const int special = t.whole && SN_(any_set)(high);
        if (special)
            for (int k = 0; k < operands; k++)
                kinds[k] = SN_(kinds_of)(&t.operand[k],
                                         SN_(load64)((const char *)in[k] + i * (size_t)width, width), &x[k]);
        switch (op) {
        case SN_LANES_SUBTRACT: x[1].sign = ~x[1].sign; /* fall through */
        case SN_LANES_ADD: r = SN_(normal_add)(&t, x[0], x[1]); break;
        case SN_LANES_MULTIPLY: r = SN_(normal_multiply)(&t, x[0], x[1]); break;
        case SN_LANES_FMA: r = SN_(normal_fma)(&t, x[0], x[1], x[2]); break;
        case SN_LANES_DIVIDE: r = SN_(normal_divide)(x[0], x[1]); break;
        case SN_LANES_SQRT: r = SN_(normal_sqrt)(x[0]); break;
        default:
            r.sig = x[0].sig, r.exp = x[0].exp, r.sign = r.sign_of_zero = x[0].sign, r.zero = (sn_wu)(x[0].sig == 0);
        }
        if (special) s = SN_(decide)(&t, op, operands, x, kinds, &r);
        sn_wu code = SN_(round_normal)(&t, &r, words ? sn_load_words64(words + i) : (sn_wu){0}, &raised, &left);
        if (special) {
            const sn_wu none = (sn_wu){0}, infinity = SN_SELECT64(s.sign, none + t.infinity[1], none + t.infinity[0]);
            code = SN_SELECT64(s.nan, none + t.nan_code, SN_SELECT64(s.infinite, infinity, code));
            raised &= ~(s.nan | s.infinite);
            raised |= ((s.invalid & SN_INVALID) | (s.by_zero & SN_DIVIDE_BY_ZERO)) & t.raises;
            if (!t.has_nan) left |= s.nan;
        }
        SN_(store64)((char *)out + i * (size_t)width, width, code);
        SN_STORE8_64((char *)flags + i, raised);
        SN_STORE8_64((char *)outside + i, left);
    }
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

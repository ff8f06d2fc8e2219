/* Operations on floats in lanes of N_BITS bits, 32 or 64; elementwise/short/lanes.h says why they are exact, and
 * includes this twice.
 */
#if N_BITS == 64
#define N_(name) SN_(name##_64)
#define N_U sn_wu
#define N_I sn_wi
#define N_u sn_u64
#define N_i sn_i64
#define N_COUNT SN_W
#define N_SELECT SN_SELECT64
#define N_LEFT SN_LEFT64
#define N_RIGHT SN_RIGHT64
#define N_ANY_GREATER SN_ANY_GREATER64
#define N_LEADING_ZEROS SN_LEADING_ZEROS64
#define N_LOAD SN_(load64)
#define N_STORE SN_(store64)
#define N_STORE8 SN_STORE8_64
#define N_WORDS sn_load_words64
#define N_TOP_PRODUCT(a, b) SN_MULTIPLY32((a) >> 32, (b) >> 32)
#else
#define N_(name) SN_(name##_32)
#define N_U sn_vu
#define N_I sn_vi
#define N_u sn_u32
#define N_i sn_i32
#define N_COUNT SN_V
#define N_SELECT SN_SELECT32
#define N_LEFT SN_LEFT32
#define N_RIGHT SN_RIGHT32
#define N_ANY_GREATER SN_ANY_GREATER32
#define N_LEADING_ZEROS SN_LEADING_ZEROS32
#define N_LOAD SN_(load32)
#define N_STORE SN_(store32)
#define N_STORE8 SN_STORE8_32
#define N_WORDS sn_load_words32
#define N_TOP_PRODUCT(a, b) (((a) >> 16) * ((b) >> 16))
#endif
#define N_TOP ((N_u)1 << (N_BITS - 1))
#define N_SHIFT(f) ((f)->shift - (64 - N_BITS)) /* from a code's fraction to a significand's */

/* As sn_normal, for all lanes; a sign is a mask. */
typedef struct {
    N_U sig, exp, sign;
} N_(normal);

/* What an operand is, as masks; of none: finite and not 0. */
typedef struct {
    N_U zero, infinite, nan, signaling;
} N_(kinds);

/* What a lane's result is rounded from; zero: it is exactly that, and has this sign. */
typedef struct {
    N_U sig, exp, sign, zero, sign_of_zero;
} N_(unrounded);

/* What it is instead, by the kinds of the operands. */
typedef struct {
    N_U nan, invalid, infinite, sign, by_zero;
} N_(special);

/* Zeros above the top bit; as many as there are bits, or more, for 0. */
SN_INLINE N_U N_(leading_zeros)(N_U n) {
#if defined(SN_LEADING_ZEROS64) || (defined(SN_LEADING_ZEROS32) && N_BITS == 32)
    return N_LEADING_ZEROS(n);
#elif N_BITS == 64
    /* without the bit after the top one no rounding carries; the exponent of 2^63 is 1086 */
    return 1086 - ((N_U)SN_(to_double)(n & ~(n >> 1)) >> 52);
#else
    const N_U kept = n & ~(n >> 1);
    const sn_vf high = __builtin_convertvector((N_I)(kept >> 16), sn_vf),
                low = __builtin_convertvector((N_I)(kept & 0xffff), sn_vf);
    return 158 - ((N_U)(high * 0x1p16f + low) >> 23);
#endif
}

SN_INLINE N_U N_(jam)(N_U any) { return (N_U)(any != 0) & 1; }

SN_INLINE N_U N_(is_set)(N_U code, N_u mask) { return (N_U)((code & mask) != 0); }

SN_INLINE int N_(any_set)(N_U mask) { return N_ANY_GREATER((N_I){0}, (N_I)mask); }

/* low, high: what lies below the normal numbers, or above. */
SN_INLINE N_(normal) N_(read_normal)(const sn_normal_operand *f, N_U code, N_U *low, N_U *high) {
    N_(normal) n;
    const N_U magnitude = code & (N_u)f->magnitude_mask;
    n.sign = N_(is_set)(code, (N_u)f->sign_mask);
    n.sig = magnitude << N_SHIFT(f) | N_TOP;
    n.exp = (magnitude >> (N_BITS - 1 - N_SHIFT(f))) + (N_u)f->base;
    *low |= (N_U)(magnitude < (N_u)f->first);
    *high |= (N_U)(magnitude > (N_u)(f->first + f->span));
    return n;
}

/* A subnormal number becomes a normal one, a zero one of no digits, far below all others. Returns where -0 is a NaN. */
SN_INLINE N_U N_(normalise)(const sn_normal_operand *f, N_(normal) * n) {
    const N_U low = (N_U)(n->exp == (N_u)f->base), sig = n->sig ^ (low & N_TOP), zeros = N_(leading_zeros)(sig),
              zero = (N_U)(sig == 0), exp = n->exp + 1 - zeros;
    n->sig = N_SELECT(low, N_LEFT(sig, zeros), sig);
    n->exp = N_SELECT(zero, (N_U){0} + (N_u)SN_NOWHERE, N_SELECT(low, exp, n->exp));
    return f->nan_is_negative_zero ? zero & n->sign : (N_U){0};
}

SN_INLINE N_(kinds) N_(kinds_of)(const sn_normal_operand *f, N_U code, const N_(normal) * n) {
    N_(kinds) k;
    const N_U magnitude = code & (N_u)f->magnitude_mask;
    k.zero = (N_U)(n->sig == 0);
    k.infinite = (N_U)(magnitude == (N_u)f->inf_code);
    k.nan = (N_U)(magnitude > (N_u)(f->first + f->span)) & ~k.infinite;
    k.signaling = f->quiet_bit ? k.nan & ~N_(is_set)(code, (N_u)f->quiet_bit) : (N_U){0};
    if (f->nan_is_negative_zero) {
        k.nan |= k.zero & n->sign;
        k.zero &= ~n->sign;
    }
    return k;
}

/* All ones where the magnitude goes up; a rule of its own for each mode, as sn_rounds_up. */
SN_INLINE N_U N_(goes_up)(const sn_env *env, N_U fraction, N_U sign, N_U odd, N_U words) {
    if (env->rounding == SN_NEAREST_EVEN) return (N_U)(fraction + (N_TOP - 1 - odd) < fraction); /* odd: -1 */
    const N_U above = (N_U)(fraction > N_TOP), tie = (N_U)(fraction == N_TOP), inexact = (N_U)(fraction != 0);
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
        const N_u one = (N_u)1 << r;
        return (N_U)((fraction >> (N_BITS - r)) + (words & (one - 1)) >= one);
    }
    default: return (N_U){0}; /* SN_TOWARD_ZERO */
    }
}

/* Zeros, and what lies below emin: shifted to its last place, the digits below cut off and jammed. Returns where the
 * result is tiny: rounded with unbounded exponent, if that is the rule. */
SN_INLINE N_U N_(place_low)(const sn_normals *t, N_(unrounded) * x, N_U words) {
    const sn_i32 m = t->mantissa_bits;
    const N_u emin = (N_u)t->emin, ones = ((N_u)2 << m) - 1;
    x->sign = N_SELECT(x->zero, x->sign_of_zero, x->sign);
    x->exp = N_SELECT(x->zero, (N_U){0} + emin, x->exp);
    const N_U low = (N_U)((N_I)x->exp < (N_I)((N_U){0} + emin)), sig = x->sig & ~x->zero;
    N_U tiny = low;
    if (t->env->tininess == SN_TININESS_AFTER && t->env->rounding != SN_STOCHASTIC) {
        const N_U close = (N_U)(x->exp == emin - 1) & (N_U)(sig >> (N_BITS - 1 - m) == ones);
        const N_u odd = 0 - ((ones - (ones >> 1) - 1) & 1); /* the code of 2^emin less one, by truncation */
        if (N_(any_set)(close)) tiny &= ~(close & N_(goes_up)(t->env, sig << m << 1, x->sign, (N_U){0} + odd, words));
    }
    const N_U shift = (emin - x->exp) & low, placed = N_RIGHT(sig, shift);
    x->sig = placed | N_(jam)(N_LEFT(placed, shift) ^ sig);
    x->exp = N_SELECT(low, (N_U){0} + emin, x->exp);
    return tiny;
}

/* Codes of the rounded results, and their flags. */
SN_INLINE N_U N_(round_normal)(const sn_normals *t, N_(unrounded) * x, N_U words, N_U *raised, N_U *outside) {
    const sn_i32 m = t->mantissa_bits;
    N_U tiny = {0};
    const N_U low = x->zero | (N_U)((N_I)x->exp < (N_I)((N_U){0} + (N_u)t->exp_first));
    if (!t->whole)
        *outside |= low;
    else if (N_(any_set)(low))
        tiny = N_(place_low)(t, x, words);
    const N_U fraction = x->sig << m << 1, inexact = (N_U)(fraction != 0);
    N_U magnitude = (x->sig >> (N_BITS - 1 - m)) + ((x->exp - (N_u)t->exp_of_zero) << m);
    magnitude -= N_(goes_up)(t->env, fraction, x->sign, 0 - (magnitude & 1), words);
    *raised = inexact & (N_u)t->inexact;
    *raised |= inexact & tiny & (N_u)t->underflow;
    N_U signs = x->sign & (N_u)t->sign_mask;
    if (!t->negative_zero) signs &= (N_U)(magnitude != 0);
    if (t->is_unsigned) *outside |= x->sign;
    const N_U code = magnitude | signs,
              over = (N_U)((N_I)(x->exp - (N_u)t->exp_first) > (N_i)t->exp_span) | (N_U)(magnitude > (N_u)t->max_code);
    if (!t->whole)
        *outside |= over;
    else if (N_(any_set)(over)) {
        *raised = N_SELECT(over, (N_U){0} + (N_u)t->overflows, *raised);
        return N_SELECT(over, N_SELECT(x->sign, (N_U){0} + (N_u)t->overflow[1], (N_U){0} + (N_u)t->overflow[0]), code);
    }
    return code;
}

/* ---- operations ----------------------------------------------------------------------------------------------------
 */

/* The sign of x + y = 0. */
SN_INLINE N_U N_(sign_of_zero)(const sn_normals *t, N_U x, N_U y) {
    return t->env->rounding == SN_DOWN ? x | y : x & y;
}

SN_INLINE N_(unrounded) N_(normal_add)(const sn_normals *t, N_(normal) x, N_(normal) y) {
    const N_U swap = (N_U)((N_I)x.exp < (N_I)y.exp) | ((N_U)(x.exp == y.exp) & (N_U)(x.sig < y.sig));
    const N_U other = (x.sig ^ y.sig) & swap, exp = N_SELECT(swap, y.exp, x.exp);
    const N_U distance = exp + exp - x.exp - y.exp, sign = N_SELECT(swap, y.sign, x.sign);
    const N_U a = (x.sig ^ other) >> 1, b = (y.sig ^ other) >> 1, placed = N_RIGHT(b, distance);
    const N_U jammed = placed | N_(jam)(N_LEFT(placed, distance) ^ b), minus = x.sign ^ y.sign;
    const N_U sum = a + ((jammed ^ minus) - minus), zeros = N_(leading_zeros)(sum);
    const N_(unrounded)
        s = {N_LEFT(sum, zeros), exp + 1 - zeros, sign, (N_U)(sum == 0), N_(sign_of_zero)(t, x.sign, y.sign)};
    return s;
}

/* Of numbers whose significands fill less than half a lane. */
SN_INLINE N_(unrounded) N_(narrow_multiply)(N_(normal) x, N_(normal) y) {
    const N_U p = N_TOP_PRODUCT(x.sig, y.sig), left = ~p >> (N_BITS - 1),
              sign = x.sign ^ y.sign; /* no carry: one place */
    const N_(unrounded) s = {p << left, x.exp + y.exp + 1 - left, sign, (N_U)(p == 0), sign};
    return s;
}

/* And whose product is an operand of a sum like any other. */
SN_INLINE N_(unrounded) N_(narrow_fma)(const sn_normals *t, N_(normal) x, N_(normal) y, N_(normal) z) {
    const N_(unrounded) p = N_(narrow_multiply)(x, y);
    const N_(normal) product = {p.sig, p.exp, p.sign};
    return N_(normal_add)(t, product, z);
}

#if N_BITS == 64
#include "lanes/wide.h"
#endif

SN_INLINE N_(unrounded) N_(computed)(const sn_normals *t, int op, const N_(normal) * x) {
#if N_BITS == 64
    if (op == SN_LANES_DIVIDE) return N_(normal_divide)(x[0], x[1]);
    if (op == SN_LANES_SQRT) return N_(normal_sqrt)(x[0]);
    if (op == SN_LANES_MULTIPLY && !t->narrow_factors) return N_(wide_multiply)(x[0], x[1]);
    if (op == SN_LANES_FMA && !(t->narrow_factors && t->narrow_product)) return N_(wide_fma)(t, x[0], x[1], x[2]);
#endif
    if (op == SN_LANES_MULTIPLY) return N_(narrow_multiply)(x[0], x[1]);
    if (op == SN_LANES_FMA) return N_(narrow_fma)(t, x[0], x[1], x[2]);
    if (op != SN_LANES_CONVERT) return N_(normal_add)(t, x[0], x[1]);
    const N_(unrounded) same = {x[0].sig, x[0].exp, x[0].sign, (N_U)(x[0].sig == 0), x[0].sign};
    return same;
}

/* ---- NaN, infinities, and quotients and roots of zeros ------------------------------------------------------------
 */

/* inf - inf, or infinite; x is a product or an operand. */
SN_INLINE void N_(add_infinities)(N_(special) * s, N_U x, N_U x_sign, N_U y, N_U y_sign) {
    s->invalid |= x & y & (x_sign ^ y_sign) & ~s->nan;
    s->infinite = x | y;
    s->sign = N_SELECT(x, x_sign, y_sign);
}

/* What the operands' kinds decide, as arith.h and divide.h do; r: a quotient that is 0. */
SN_INLINE N_(special) N_(decide)(const sn_normals *t, int op, int operands, const N_(normal) * x, const N_(kinds) * k,
                                 N_(unrounded) * r) {
    N_(special) s = {{0}, {0}, {0}, {0}, {0}};
    for (int i = 0; i < operands; i++) {
        s.nan |= k[i].nan;
        s.invalid |= k[i].signaling;
    }
    switch (op) {
    case SN_LANES_ADD:
    case SN_LANES_SUBTRACT: N_(add_infinities)(&s, k[0].infinite, x[0].sign, k[1].infinite, x[1].sign); break;
    case SN_LANES_MULTIPLY:
    case SN_LANES_FMA: {
        const N_U infinite = k[0].infinite | k[1].infinite, sign = x[0].sign ^ x[1].sign;
        s.invalid |= infinite & (k[0].zero | k[1].zero);
        N_(add_infinities)(&s, infinite & ~(k[0].nan | k[1].nan), sign, operands > 2 ? k[2].infinite : (N_U){0},
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
    default: /* SN_LANES_CONVERT */ s.infinite = k[0].infinite; s.sign = x[0].sign;
    }
    s.nan |= s.invalid;
    return s;
}

SN_INLINE void N_(run)(int op, int operands, int width, int usual, const sn_normals *plan, const void *const in[3],
                       void *out, sn_u8 *flags, sn_u8 *outside, size_t n, const sn_u32 *words) {
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
    for (size_t i = 0; i < n; i += N_COUNT) {
        N_(normal) x[3];
        N_(kinds) kinds[3];
        N_(unrounded) r;
        N_(special) s;
        N_U low = {0}, high = {0}, left = {0}, raised;
        for (int k = 0; k < operands; k++)
            x[k] = N_(read_normal)(&t.operand[k], N_LOAD((const char *)in[k] + i * (size_t)width, width), &low, &high);
        if (op == SN_LANES_SQRT) high |= x[0].sign;
        if (op == SN_LANES_DIVIDE) high |= low; /* x / 0 */
        if (!t.whole)
            left = low | high;
        else if (N_(any_set)(low))
            for (int k = 0; k < operands; k++)
                high |= N_(normalise)(&t.operand[k], &x[k]);
        const int special = t.whole && N_(any_set)(high);
        if (special)
            for (int k = 0; k < operands; k++)
                kinds[k] = N_(kinds_of)(&t.operand[k], N_LOAD((const char *)in[k] + i * (size_t)width, width), &x[k]);
        if (op == SN_LANES_SUBTRACT) x[1].sign = ~x[1].sign;
        r = N_(computed)(&t, op, x);
        if (special) s = N_(decide)(&t, op, operands, x, kinds, &r);
        N_U code = N_(round_normal)(&t, &r, words ? N_WORDS(words + i) : (N_U){0}, &raised, &left);
        if (special) {
            const N_U none = (N_U){0},
                      infinity = N_SELECT(s.sign, none + (N_u)t.infinity[1], none + (N_u)t.infinity[0]);
            code = N_SELECT(s.nan, none + (N_u)t.nan_code, N_SELECT(s.infinite, infinity, code));
            raised &= ~(s.nan | s.infinite);
            raised |= ((s.invalid & SN_INVALID) | (s.by_zero & SN_DIVIDE_BY_ZERO)) & t.raises;
            if (!t.has_nan) left |= s.nan;
        }
        N_STORE((char *)out + i * (size_t)width, width, code);
        N_STORE8((char *)flags + i, raised);
        N_STORE8((char *)outside + i, left);
    }
}

#undef N_
#undef N_U
#undef N_I
#undef N_u
#undef N_i
#undef N_COUNT
#undef N_SELECT
#undef N_LEFT
#undef N_RIGHT
#undef N_ANY_GREATER
#undef N_LEADING_ZEROS
#undef N_LOAD
#undef N_STORE
#undef N_STORE8
#undef N_WORDS
#undef N_TOP_PRODUCT
#undef N_TOP
#undef N_SHIFT
#undef N_BITS

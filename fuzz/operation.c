/* One operation: that its result is a code of its format, rounded as the mode says, and agrees with other operations.
 *
 * The judge of roundings works in a wide format W (15 exponent bits, 49 of precision, centred on the result's range):
 * the operation rounded to odd into W stands for the exact result wherever 2 bits more than the result's, or r + 2 more
 * in the stochastic modes, are kept (Boldo and Melquiond 2008). From there on only comparisons and exact sums are
 * used: the two neighbours of W's value, the middle of them, the point from which a random word rounds up. */
#include "fuzz.h"

enum { WIDE_EXPONENT = 15, WIDE_MANTISSA = 48 };

static const sn_u64 wide_sign = (sn_u64)1 << (WIDE_EXPONENT + WIDE_MANTISSA);

static sn_format wide_for(const sn_format *f) {
    const int centre = f->kind == SN_FIXED ? 0 : (f->emin + f->emax) / 2;
    return fuzz_float(WIDE_EXPONENT, WIDE_MANTISSA, (1 << (WIDE_EXPONENT - 1)) - 1 - centre);
}

/* Whether a value of W, rounded to odd, still decides every rounding to the trial's result. */
static int wide_is_enough(const fuzz_trial *t) {
    const sn_format *f = &t->context.out;
    const int bits = f->kind == SN_FIXED ? f->bits : f->mantissa_bits + 1;
    const int more = sn_is_stochastic(&t->context.env) ? t->context.env.stochastic_bits + 2 : 2;
    return bits + more <= WIDE_MANTISSA && (f->kind == SN_FIXED || f->emax - f->emin < 30000);
}

static int is_comparison(int op) {
    return op == SN_OP_compare || op == SN_OP_compare_signaling || op == SN_OP_total_order || op == SN_OP_classify;
}

/* What works on the code alone: the result has the operand's format, and the mode plays no part. */
static int is_code_operation(int op) {
    return op == SN_OP_next_up || op == SN_OP_next_down || op == SN_OP_negate || op == SN_OP_absolute ||
           op == SN_OP_copysign;
}

static int any_nan(const fuzz_trial *t) {
    for (int k = 0; k < sn_operation_operands(t->op); k++)
        if (fuzz_is_nan(&t->context.operand[k], t->code[k])) return 1;
    return 0;
}

static int same(fuzz_result x, fuzz_result y) { return x.code == y.code && x.flags == y.flags; }

/* The trial with another operation, its operands from the given places. */
static fuzz_trial with(const fuzz_trial *t, int op, int first, int second) {
    fuzz_trial u = *t;
    const int from[2] = {first, second};
    u.op = op;
    for (int k = 0; k < 2; k++) {
        u.code[k] = t->code[from[k]];
        u.context.operand[k] = t->context.operand[from[k]];
    }
    return u;
}

static fuzz_trial with_operand(fuzz_trial t, int place, sn_format f, sn_u64 code) {
    t.context.operand[place] = f;
    t.code[place] = code;
    return t;
}

/* ---- the range of results ------------------------------------------------------------------------------------------
 */

static void check_range(const fuzz_trial *t, fuzz_result r) {
    const sn_format *f = &t->context.out;
    FUZZ_EXPECT(t, r.flags <= (0x1f | SN_NO_CODE));
    FUZZ_EXPECT(t, !(r.flags & SN_NO_CODE) || ((r.flags & SN_INVALID) && r.code == t->context.env.invalid_code));
    if (is_comparison(t->op)) {
        FUZZ_EXPECT(t, r.code <= (t->op == SN_OP_classify ? 9u : t->op == SN_OP_total_order ? 1u : 3u));
        FUZZ_EXPECT(t, !(r.flags & ~(sn_u32)SN_INVALID));
        return;
    }
    FUZZ_EXPECT(t, !(r.code & ~fuzz_mask(f)));
    FUZZ_EXPECT(t, !f->p3109 || r.flags == 0);
    if (f->kind == SN_FLOAT) FUZZ_EXPECT(t, !(r.flags & SN_FLAG_OVERFLOW) || (r.flags & SN_INEXACT));
    FUZZ_EXPECT(t, !(r.flags & SN_UNDERFLOW) || (r.flags & SN_INEXACT));
    if (t->op != SN_OP_minimum_number && t->op != SN_OP_maximum_number) /* these look away from a signaling NaN */
        FUZZ_EXPECT(t, !(r.flags & SN_INVALID) || !(r.flags & (SN_FLAG_OVERFLOW | SN_UNDERFLOW)));
    if (f->kind == SN_FIXED || is_code_operation(t->op)) return;
    const sn_u64 magnitude = r.code & f->magnitude_mask;
    if (fuzz_is_nan(f, r.code))
        FUZZ_EXPECT(t, f->quiet_bit == 0 || (r.code & f->quiet_bit));
    else if (magnitude == 0)
        FUZZ_EXPECT(t, r.code == 0 || f->negative_zero);
    else if (f->lowest == SN_LOWEST_ZERO)
        FUZZ_EXPECT(t, magnitude >> f->mantissa_bits);
}

/* Bits above a format's are ignored; equal trials have equal results. */
static void check_clean(const fuzz_trial *t, fuzz_result r) {
    fuzz_trial clean = *t;
    for (int k = 0; k < 3; k++)
        clean.code[k] &= fuzz_mask(&t->context.operand[k]);
    FUZZ_EXPECT(t, same(fuzz_evaluate(&clean), r));
    if (!sn_is_stochastic(&t->context.env)) {
        clean.word = ~clean.word;
        FUZZ_EXPECT(t, same(fuzz_evaluate(&clean), r));
    } else if (t->context.env.stochastic_bits < 32) {
        clean.word ^= ~(sn_u32)0 << t->context.env.stochastic_bits;
        FUZZ_EXPECT(t, same(fuzz_evaluate(&clean), r));
    }
}

/* ---- NaN -----------------------------------------------------------------------------------------------------------
 */

static int has_one_nan(const sn_format *f) { return f->nan_is_negative_zero || f->nan_first == f->magnitude_mask; }

/* A NaN's code of format g as one of f: quiet, its sign and the leading bits of its fraction kept. */
static sn_u64 quiet_nan(const sn_format *f, const sn_format *g, sn_u64 code) {
    const int up = f->mantissa_bits - g->mantissa_bits;
    const sn_u64 fraction = has_one_nan(g) ? 0 : code & (((sn_u64)1 << g->mantissa_bits) - 1);
    if (f->nan_is_negative_zero) return f->nan_code;
    const sn_u64 sign = !g->nan_is_negative_zero && (code & g->sign_mask) ? f->sign_mask : 0;
    if (has_one_nan(f)) return f->nan_code | sign;
    return f->nan_code | sign | (up > 0 ? fraction << up : fraction >> -up);
}

/* The NaN that the profile gives where an operation's result is NaN; *silent: x86's fma(0, inf, quiet NaN). */
static sn_u64 nan_of(const fuzz_trial *t, fuzz_result canonical, int *silent) {
    const sn_format *f = &t->context.out, *g = t->context.operand;
    const int arm = t->context.env.nan == SN_NAN_ARM, fma = t->op == SN_OP_fma, count = sn_operation_operands(t->op);
    const int number = t->op == SN_OP_minimum_number || t->op == SN_OP_maximum_number;
    const sn_u64 none = arm || f->nan_is_negative_zero ? f->nan_code : f->nan_code | f->sign_mask;
    int chosen = -1, nans = 0;
    sn_number x[3];
    for (int i = 0; i < count; i++) {
        const int k = arm && fma ? (i + 2) % 3 : i; /* the addend first */
        x[k] = sn_read(&g[k], &t->context.env, t->code[k]);
        if (x[k].kind < SN_QUIET_NAN) continue;
        if (nans++ == 0 || (arm && x[chosen].kind == SN_QUIET_NAN && x[k].kind == SN_SIGNALING_NAN)) chosen = k;
    }
    *silent = 0;
    if (fma && nans == 1 && x[2].kind == SN_QUIET_NAN &&
        ((x[0].kind == SN_INF && x[1].kind == SN_ZERO) || (x[0].kind == SN_ZERO && x[1].kind == SN_INF))) {
        if (arm) return none;
        *silent = 1;
    }
    if (nans == 0 || (number && nans == 1)) return nans == 0 && (canonical.flags & SN_INVALID) ? none : f->nan_code;
    return quiet_nan(f, &g[chosen], t->code[chosen]);
}

/* The profiles differ in which NaN it is, and in one flag. */
static void check_nan(const fuzz_trial *t, fuzz_result r) {
    const sn_format *f = &t->context.out;
    fuzz_trial canonical = *t;
    canonical.context.env.nan = SN_NAN_CANONICAL;
    fuzz_result want = fuzz_evaluate(&canonical);
    if (!f->has_nan && t->op != SN_OP_to_integer && t->op != SN_OP_minimum_number && t->op != SN_OP_maximum_number &&
        !is_comparison(t->op))
        FUZZ_EXPECT(t, !(want.flags & SN_INVALID) == !(want.flags & SN_NO_CODE));
    if (t->context.env.nan != SN_NAN_CANONICAL && !is_comparison(t->op) && t->op != SN_OP_negate &&
        t->op != SN_OP_absolute && t->op != SN_OP_copysign && f->has_nan && fuzz_is_nan(f, want.code)) {
        int silent;
        FUZZ_EXPECT(&canonical, want.code == f->nan_code);
        want.code = nan_of(t, want, &silent);
        if (silent) want.flags = 0;
    }
    FUZZ_EXPECT(t, same(r, want));
}

/* ---- rounding ------------------------------------------------------------------------------------------------------
 */

/* A code's magnitude in W, exactly. */
static sn_u64 wide_magnitude(const fuzz_trial *t, const sn_format *wide, const sn_format *f, sn_u64 code) {
    const sn_env env = fuzz_plain_env(SN_TO_ODD);
    sn_u32 flags = 0;
    sn_u64 out = sn_convert(f, code, wide, &env, 0, &flags);
    FUZZ_EXPECT(t, flags == 0);
    return out & ~wide_sign;
}

/* a + b (subtract: a - b) in W, exactly. */
static sn_u64 wide_sum(const fuzz_trial *t, const sn_format *wide, sn_u64 a, sn_u64 b, int subtract) {
    const sn_env env = fuzz_plain_env(SN_TO_ODD);
    sn_u32 flags = 0;
    sn_u64 out = (subtract ? sn_subtract : sn_add)(wide, a, wide, b, wide, &env, 0, &flags);
    FUZZ_EXPECT(t, flags == 0);
    return out;
}

/* a * n * 2^-shift in W, exactly. */
static sn_u64 wide_times(const fuzz_trial *t, const sn_format *wide, sn_u64 a, sn_u64 n, int shift) {
    const sn_format integer = fuzz_fixed(64, 0, 0);
    const sn_env env = fuzz_plain_env(SN_TO_ODD);
    sn_u32 flags = 0;
    sn_u64 out = sn_multiply(wide, a, &integer, n, wide, &env, 0, &flags);
    out = sn_scalb(wide, out, -shift, wide, &env, 0, &flags);
    FUZZ_EXPECT(t, flags == 0);
    return out;
}

/* Whether magnitude x, strictly between the neighbours low and high, rounds to high. All in W. Stochastic: with t = (x
 * - low) / (high - low), N = 2^r and K = N - R, the modes ask whether the integer t * N rounds to is K or more. */
static int should_round_up(const fuzz_trial *t, const sn_format *wide, sn_u64 x, sn_u64 low, sn_u64 high, int sign,
                           int odd) {
    const sn_env *env = &t->context.env;
    const int r = env->stochastic_bits;
    const sn_u64 gap = wide_sum(t, wide, high, low, 1);
    const sn_u64 middle = wide_times(t, wide, wide_sum(t, wide, high, low, 0), 1, 1);
    const int above = x > middle, tie = x == middle; /* W's magnitudes are ordered as their codes */
    switch (env->rounding) {
    case SN_NEAREST_EVEN: return above || (tie && odd);
    case SN_NEAREST_AWAY: return above || tie;
    case SN_NEAREST_ZERO: return above;
    case SN_NEAREST_UP: return above || (tie && !sign);
    case SN_NEAREST_DOWN: return above || (tie && sign);
    case SN_TOWARD_ZERO: return 0;
    case SN_AWAY_FROM_ZERO: return 1;
    case SN_UP: return !sign;
    case SN_DOWN: return sign;
    case SN_TO_ODD: return !odd;
    default: break;
    }
    if (!sn_is_stochastic(env)) return -1; /* a mode that this judge does not know */
    const sn_u64 random = t->word & ~(sn_u32)0 >> (32 - r), least = ((sn_u64)1 << r) - random; /* K */
    const sn_u64 whole = wide_sum(t, wide, low, wide_times(t, wide, gap, least, r), 0);
    const sn_u64 half = wide_sum(t, wide, low, wide_times(t, wide, gap, 2 * least - 1, r + 1), 0);
    switch (env->rounding) {
    case SN_STOCHASTIC: return x >= whole;
    case SN_STOCHASTIC_FLOOR:
        return sign ? x > wide_sum(t, wide, low, wide_times(t, wide, gap, random, r), 0) : x >= whole;
    case SN_STOCHASTIC_FAST: return x >= half;
    case SN_STOCHASTIC_EVEN: return x > half || (x == half && least % 2 == 0);
    case SN_STOCHASTIC_EQUAL: return r > 0 && random >> (r - 1) != 0;
    case SN_STOCHASTIC_ODD: return x > half || (x == half && least % 2 == 1);
    default: return -1;
    }
}

/* r against the value x of W that it was rounded from. */
static void check_rounding(const fuzz_trial *t, fuzz_result r, const sn_format *wide, sn_u64 x) {
    const sn_format *f = &t->context.out;
    const int sign = (x & wide_sign) != 0, silent = f->p3109, order = fuzz_order(f, r.code, wide, x);
    const sn_number n = sn_unpack(wide, x);
    if (order == SN_EQUAL) {
        FUZZ_EXPECT(t, !(r.flags & SN_INEXACT));
        return;
    }
    FUZZ_EXPECT(t, silent || (r.flags & SN_INEXACT));
    if (f->kind == SN_FLOAT && !silent) { /* 7.5 */
        const int exponent = n.exp + sn_bit_length(n.sig) - 1, gap = f->lowest == SN_LOWEST_NORMAL;
        if (exponent >= f->emin + gap) FUZZ_EXPECT(t, !(r.flags & SN_UNDERFLOW));
        if (exponent < f->emin - 1) FUZZ_EXPECT(t, r.flags & SN_UNDERFLOW);
    }
    sn_u32 flags = 0;
    const int truncated = order == (sign ? SN_GREATER : SN_LESS);
    const sn_u64 other = sn_next(f, r.code, order == SN_GREATER, &t->context.env, &flags);
    FUZZ_EXPECT(t, fuzz_order(f, other, wide, x) == (order == SN_LESS ? SN_GREATER : SN_LESS));
    const sn_u64 low_code = truncated ? r.code : other, high_code = truncated ? other : r.code;
    const int up = should_round_up(t, wide, x & ~wide_sign, wide_magnitude(t, wide, f, low_code),
                                   wide_magnitude(t, wide, f, high_code), sign, (int)(low_code & 1));
    FUZZ_EXPECT(t, up < 0 || up != truncated);
}

/* IEEE 754-2019 5.8, against the rounded value in W and the bounds. */
static void check_to_integer(const fuzz_trial *t, fuzz_result r) {
    const sn_format *f = &t->context.operand[0], *fo = &t->context.out, wide = wide_for(fo);
    const sn_env *env = &t->context.env;
    const sn_number n = sn_read(f, env, t->code[0]);
    if (f->kind == SN_FLOAT && (f->mantissa_bits > WIDE_MANTISSA || f->emin < -16000 || f->emax > 16000)) return;
    if (f->kind == SN_FIXED && f->bits > WIDE_MANTISSA) return;
    sn_env to_integer = *env;
    to_integer.overflow = SN_OVERFLOW_INFINITY;
    sn_u32 flags = 0;
    const sn_u64 x = sn_round_to_integral(f, t->code[0], &wide, &to_integer, t->word, &flags);
    const int below = fuzz_order(&wide, x, fo, fo->sign_mask) == SN_LESS;
    const int above = fuzz_order(&wide, x, fo, fo->max_code) == SN_GREATER;
    if (n.kind < SN_QUIET_NAN && !below && !above) {
        FUZZ_EXPECT(t, fuzz_order(&wide, x, fo, r.code) == SN_EQUAL && r.flags == (flags & SN_INEXACT));
        return;
    }
    const int to_bound = n.kind < SN_QUIET_NAN && env->overflow == SN_OVERFLOW_SATURATE;
    FUZZ_EXPECT(t, (r.flags & ~(sn_u32)SN_NO_CODE) == SN_INVALID);
    FUZZ_EXPECT(t, r.code == (to_bound ? (below ? fo->sign_mask : fo->max_code) : env->invalid_code));
}

/* The operation rounded to odd into W, and from there to its result, is the operation. */
static void check_through_wide(const fuzz_trial *t, fuzz_result r) {
    const sn_format *f = &t->context.out, wide = wide_for(f);
    if (t->op == SN_OP_round_to_integral || !wide_is_enough(t)) return;
    const int silent = f->p3109;
    fuzz_trial first = *t;
    first.context.out = wide;
    first.context.env = fuzz_plain_env(SN_TO_ODD);
    first.context.env.flush_inputs = t->context.env.flush_inputs;
    const fuzz_result x = fuzz_evaluate(&first);
    if (x.flags & SN_UNDECIDED) return;
    if (silent && t->op >= SN_OP_exp && fuzz_is_nan(f, r.code)) return; /* P3109: poles are NaN */
    if (silent && t->op == SN_OP_divide &&
        sn_read(&t->context.operand[1], &t->context.env, t->code[1]).kind == SN_ZERO) {
        FUZZ_EXPECT(t, r.code == f->nan_code);
        return;
    }
    sn_env env = t->context.env;
    env.flush_inputs = 0;
    fuzz_result want = {0, x.flags & (SN_INVALID | SN_DIVIDE_BY_ZERO)};
    want.code = sn_convert(&wide, x.code, f, &env, t->word, &want.flags);
    if (silent) want.flags = r.flags;
    if (f->kind == SN_FIXED && (r.flags & SN_FLAG_OVERFLOW)) { /* W does not see so far down */
        want.flags = (want.flags & ~(sn_u32)SN_INEXACT) | (r.flags & SN_INEXACT);
        if (env.overflow == SN_OVERFLOW_WRAP) want.code = r.code;
    }
    const sn_number n = sn_unpack(&wide, x.code);
    if (n.kind == SN_ZERO && env.rounding == SN_DOWN) { /* the sign of a sum that cancels */
        FUZZ_EXPECT(t, fuzz_order(f, r.code, f, want.code) == SN_EQUAL);
        want.code = r.code;
    }
    FUZZ_EXPECT(t, same(want, r));

    /* within the range, and of a sign that the result has: look at the neighbours */
    if (n.kind != SN_FINITE || env.flush_results || (r.flags & (SN_FLAG_OVERFLOW | SN_INVALID))) return;
    if (n.sign && !f->is_signed) return;
    const sn_u64 limit = n.sign ? (f->kind == SN_FIXED ? f->sign_mask : f->max_code | f->sign_mask) : f->max_code;
    if (fuzz_order(&wide, x.code, f, limit) == (n.sign ? SN_LESS : SN_GREATER)) return;
    if (!f->has_zero && fuzz_order(&wide, x.code, f, 0) == SN_LESS) return;
    check_rounding(t, r, &wide, x.code);
}

/* Rounded down <= rounded <= rounded up, and all the same where it is exact. */
static void check_bracket(const fuzz_trial *t, fuzz_result r) {
    const sn_format *f = &t->context.out;
    fuzz_trial down = *t, up = *t;
    down.context.env.rounding = SN_DOWN;
    up.context.env.rounding = SN_UP;
    const fuzz_result low = fuzz_evaluate(&down), high = fuzz_evaluate(&up);
    if ((low.flags | high.flags) & SN_UNDECIDED) return;
    if (((r.flags | low.flags | high.flags) & SN_INVALID) || t->context.env.overflow == SN_OVERFLOW_WRAP) return;
    if (fuzz_is_nan(f, r.code) || fuzz_is_nan(f, low.code) || fuzz_is_nan(f, high.code)) return;
    FUZZ_EXPECT(t, fuzz_order(f, low.code, f, r.code) != SN_GREATER);
    FUZZ_EXPECT(t, fuzz_order(f, r.code, f, high.code) != SN_GREATER);
    if (!f->p3109 && !(r.flags & (SN_INEXACT | SN_FLAG_OVERFLOW)))
        FUZZ_EXPECT(t, fuzz_order(f, low.code, f, high.code) == SN_EQUAL);
}

/* ---- one operation and another -------------------------------------------------------------------------------------
 */

static void check_swapped(const fuzz_trial *t, fuzz_result r) {
    fuzz_trial swapped = with(t, t->op, 1, 0);
    FUZZ_EXPECT(t, same(fuzz_evaluate(&swapped), r));
}

/* x - y = x + -y, where the sign is a bit. */
static void check_subtract(const fuzz_trial *t, fuzz_result r) {
    const sn_format *f = &t->context.operand[1];
    if (f->kind == SN_FIXED || !f->negative_zero || fuzz_is_nan(f, t->code[1])) return;
    fuzz_trial sum = with(t, SN_OP_add, 0, 1);
    sum.code[1] ^= f->sign_mask;
    FUZZ_EXPECT(t, same(fuzz_evaluate(&sum), r));
}

/* a * 1 + c = a + c; a * b + 0 = a * b, the zero having the sign that a sum with it keeps. */
static void check_fma(const fuzz_trial *t) {
    const sn_format integer = fuzz_fixed(2, 0, 1), single = fuzz_float(8, 23, 127);
    const fuzz_trial times_one = with_operand(*t, 1, integer, 1), sum = with(t, SN_OP_add, 0, 2);
    FUZZ_EXPECT(&times_one, same(fuzz_evaluate(&times_one), fuzz_evaluate(&sum)));
    const sn_u64 zero = t->context.env.rounding == SN_DOWN ? 0 : single.sign_mask;
    const fuzz_trial plus_zero = with_operand(*t, 2, single, zero), product = with(t, SN_OP_multiply, 0, 1);
    FUZZ_EXPECT(&plus_zero, same(fuzz_evaluate(&plus_zero), fuzz_evaluate(&product)));
}

/* The sign of r * b - a, exactly: SN_LESS if negative. All in W but b. */
static int residual(const sn_format *wide, sn_u64 r, const sn_format *fb, sn_u64 b, const sn_format *fa, sn_u64 a) {
    const sn_env env = fuzz_plain_env(SN_TO_ODD);
    const sn_format one_bit = fuzz_fixed(2, 0, 1);
    sn_u32 flags = 0;
    const sn_u64 minus = sn_multiply(fa, a, &one_bit, 3, wide, &env, 0, &flags), zero = 0;
    if (flags) return SN_UNORDERED;
    const sn_u64 rest = sn_fma(wide, r, fb, b, wide, minus, wide, &env, 0, &flags); /* odd: of the right sign */
    return fuzz_order(wide, rest, wide, zero);
}

/* A quotient or a root, rounded to odd in W: exact, or strictly between the neighbours that multiplication tells. */
static void check_inverse(const fuzz_trial *t) {
    const sn_format wide = wide_for(&t->context.out), *fa = &t->context.operand[0];
    fuzz_trial u = *t;
    u.context.out = wide;
    u.context.env = fuzz_plain_env(SN_TO_ODD);
    const fuzz_result q = fuzz_evaluate(&u);
    const sn_number n = sn_unpack(&wide, q.code);
    if (n.kind != SN_FINITE || n.sig >> WIDE_MANTISSA == 0 || (q.flags & SN_FLAG_OVERFLOW)) return;
    const int divide = t->op == SN_OP_divide;
    const sn_format *fb = divide ? &t->context.operand[1] : &wide;
    const sn_u64 near[3] = {q.code - 1, q.code, q.code + 1};
    int order[3];
    for (int k = 0; k < 3; k++) {
        order[k] = residual(&wide, near[k], fb, divide ? t->code[1] : near[k], fa, t->code[0]);
        if (order[k] == SN_UNORDERED) return;
    }
    if (!(q.flags & SN_INEXACT))
        FUZZ_EXPECT(t, order[1] == SN_EQUAL);
    else
        FUZZ_EXPECT(t, order[0] != SN_EQUAL && order[2] == SN_GREATER - order[0]);
}

/* IEEE 754-2019 5.3.1: at most half the divisor, exact in the operands' own format, and a whole number of divisors off.
 */
static void check_remainder(const fuzz_trial *t, fuzz_result r) {
    const sn_format *f = &t->context.out, *fb = &t->context.operand[1];
    const sn_format wide = wide_for(f);
    const sn_env env = fuzz_plain_env(SN_TO_ODD);
    if ((r.flags & (SN_INEXACT | SN_FLAG_OVERFLOW | SN_INVALID)) || fuzz_is_nan(f, r.code) || !f->is_signed) return;
    if (f->p3109 || sn_unpack(fb, t->code[1]).kind != SN_FINITE || t->context.env.flush_inputs || !wide_is_enough(t))
        return;
    sn_u32 flags = 0;
    sn_u64 twice = sn_scalb(f, r.code, 1, &wide, &env, 0, &flags) & ~wide_sign;
    sn_u64 divisor = sn_convert(fb, t->code[1], &wide, &env, 0, &flags) & ~wide_sign;
    if (!flags) FUZZ_EXPECT(t, twice <= divisor);
    sn_u64 whole = sn_subtract(&t->context.operand[0], t->code[0], f, r.code, &wide, &env, 0, &flags);
    sn_u64 n = sn_divide(&wide, whole, fb, t->code[1], &wide, &env, 0, &flags);
    if (flags) return;
    (void)sn_round_to_integral(&wide, n, &wide, &env, 0, &flags);
    FUZZ_EXPECT(t, !(flags & SN_INEXACT));
}

/* A sum or product that is exact in W can be taken back. */
static void check_taken_back(const fuzz_trial *t) {
    const sn_format wide = wide_for(&t->context.out), *fa = &t->context.operand[0], *fb = &t->context.operand[1];
    fuzz_trial u = *t;
    u.context.out = wide;
    u.context.env = fuzz_plain_env(SN_TO_ODD);
    const fuzz_result x = fuzz_evaluate(&u);
    if (x.flags || sn_unpack(&wide, x.code).kind != SN_FINITE || sn_unpack(fb, t->code[1]).kind != SN_FINITE) return;
    sn_u32 flags = 0;
    sn_u64 back =
        (t->op == SN_OP_add ? sn_subtract : sn_divide)(&wide, x.code, fb, t->code[1], &wide, &u.context.env, 0, &flags);
    FUZZ_EXPECT(t, flags || fuzz_order(&wide, back, fa, t->code[0]) == SN_EQUAL);
}

static void check_extremum(const fuzz_trial *t, fuzz_result r) {
    const fuzz_trial first = with(t, SN_OP_convert, 0, 1), second = with(t, SN_OP_convert, 1, 0);
    check_swapped(t, r);
    if (any_nan(t) || t->context.env.flush_inputs) return;
    const int order = fuzz_order(&t->context.operand[0], t->code[0], &t->context.operand[1], t->code[1]);
    const int maximum = t->op == SN_OP_maximum || t->op == SN_OP_maximum_number;
    const fuzz_result a = fuzz_evaluate(&first), b = fuzz_evaluate(&second);
    if (order == SN_EQUAL)
        FUZZ_EXPECT(t, same(r, a) || same(r, b));
    else
        FUZZ_EXPECT(t, same(r, (order == SN_GREATER) == maximum ? a : b));
}

static void check_convert(const fuzz_trial *t, fuzz_result r) {
    const sn_format *f = &t->context.operand[0], *fo = &t->context.out;
    const sn_env *env = &t->context.env;
    const sn_u64 clean = t->code[0] & fuzz_mask(f);
    fuzz_trial scaled = with_operand(*t, 1, fuzz_fixed(32, 0, 1), 0),
               by_one = with_operand(*t, 1, fuzz_fixed(2, 0, 1), 1);
    scaled.op = SN_OP_scalb;
    FUZZ_EXPECT(t, same(fuzz_evaluate(&scaled), r));
    by_one.op = SN_OP_divide;
    FUZZ_EXPECT(t, same(fuzz_evaluate(&by_one), r));

    /* to its own format: the same code, but for what means the same zero */
    fuzz_trial own = *t;
    own.context.out = *f;
    if (f->kind == SN_FIXED && !env->overflow) own.context.env.overflow = SN_OVERFLOW_SATURATE;
    if (f->kind == SN_FLOAT && env->overflow == SN_OVERFLOW_WRAP) own.context.env.overflow = SN_OVERFLOW_INFINITY;
    const sn_number n = sn_unpack(f, t->code[0]);
    if (n.kind <= SN_FINITE && !env->flush_inputs && !env->flush_results) {
        const fuzz_result same_code = fuzz_evaluate(&own);
        const sn_u64 zero = n.sign && f->negative_zero ? f->sign_mask : 0;
        FUZZ_EXPECT(&own, same_code.flags == 0 && same_code.code == (n.kind == SN_ZERO ? zero : clean));
    }
    /* monotone */
    const fuzz_trial second = with_operand(*t, 0, *f, t->code[1]);
    const fuzz_result s = fuzz_evaluate(&second);
    if (((r.flags | s.flags) & SN_INVALID) || env->overflow == SN_OVERFLOW_WRAP) return;
    const int before = fuzz_order(f, t->code[0], f, t->code[1]), after = fuzz_order(fo, r.code, fo, s.code);
    if (env->flush_inputs || before == SN_UNORDERED || after == SN_UNORDERED) return;
    FUZZ_EXPECT(t, before == SN_EQUAL ? after == SN_EQUAL : after == before || after == SN_EQUAL);
}

static void check_round_to_integral(const fuzz_trial *t, fuzz_result r) {
    const sn_format *f = &t->context.out;
    const int same_format = memcmp(f, &t->context.operand[0], sizeof *f) == 0;
    if (!same_format || f->p3109 || (f->kind == SN_FLOAT && f->lowest != SN_LOWEST_SUBNORMAL)) return;
    if (sn_unpack(f, t->code[0]).kind > SN_FINITE || (r.flags & SN_FLAG_OVERFLOW)) return;
    if (t->context.env.flush_results || t->context.env.flush_inputs) return;
    const fuzz_trial again = with_operand(*t, 0, *f, r.code);
    const fuzz_result s = fuzz_evaluate(&again);
    FUZZ_EXPECT(t, s.code == r.code && s.flags == 0);
    const sn_number n = sn_unpack(f, r.code);
    if (n.kind == SN_FINITE && n.exp < 0) FUZZ_EXPECT(t, n.exp > -64 && !(n.sig << (64 + n.exp)));
}

static void check_next(const fuzz_trial *t, fuzz_result r) {
    const sn_format *f = &t->context.out;
    fuzz_trial back = with_operand(*t, 0, *f, r.code);
    if (any_nan(t)) return;
    FUZZ_EXPECT(t, r.flags == 0);
    const int order = fuzz_order(f, t->code[0], f, r.code);
    if (order == SN_EQUAL) return;
    FUZZ_EXPECT(t, order == (t->op == SN_OP_next_up ? SN_LESS : SN_GREATER));
    back.op = t->op == SN_OP_next_up ? SN_OP_next_down : SN_OP_next_up;
    FUZZ_EXPECT(t, fuzz_order(f, fuzz_evaluate(&back).code, f, t->code[0]) == SN_EQUAL);
}

static void check_sign(const fuzz_trial *t, fuzz_result r) {
    const sn_format *f = &t->context.out;
    if (f->kind == SN_FIXED || !f->is_signed) return;
    FUZZ_EXPECT(t, r.flags == 0);
    const sn_u64 clean = t->code[0] & fuzz_mask(f);
    if (sn_unpack(f, clean).kind == SN_ZERO && !f->negative_zero) {
        FUZZ_EXPECT(t, r.code == 0);
        return;
    }
    FUZZ_EXPECT(t, (r.code & f->magnitude_mask) == (clean & f->magnitude_mask));
    fuzz_trial again = with_operand(*t, 0, *f, r.code);
    const sn_u64 twice = fuzz_evaluate(&again).code;
    if (t->op != SN_OP_negate)
        FUZZ_EXPECT(t, twice == r.code);
    else
        FUZZ_EXPECT(t, twice == clean);
}

static void check_compare(const fuzz_trial *t, fuzz_result r) {
    fuzz_trial swapped = with(t, t->op, 1, 0), signaling = *t;
    const fuzz_result s = fuzz_evaluate(&swapped);
    FUZZ_EXPECT(t, s.flags == r.flags && s.code == (r.code == SN_UNORDERED ? SN_UNORDERED : SN_GREATER - r.code));
    FUZZ_EXPECT(t, (r.code == SN_UNORDERED) == any_nan(t));
    signaling.op = SN_OP_compare_signaling;
    FUZZ_EXPECT(t, fuzz_evaluate(&signaling).code == r.code);
}

static void check_total_order(const fuzz_trial *t, fuzz_result r) {
    const sn_format *f = &t->context.operand[0];
    fuzz_trial swapped = with(t, t->op, 1, 0), second = with(t, t->op, 1, 2), ends = with(t, t->op, 0, 2);
    const int order = fuzz_order(f, t->code[0], f, t->code[1]);
    FUZZ_EXPECT(t, r.code || fuzz_evaluate(&swapped).code);
    FUZZ_EXPECT(t, order != SN_LESS || r.code);
    FUZZ_EXPECT(t, order != SN_GREATER || !r.code);
    if (r.code && fuzz_evaluate(&second).code) FUZZ_EXPECT(t, fuzz_evaluate(&ends).code);
}

static void check_identities(const fuzz_trial *t, fuzz_result r) {
    switch (t->op) {
    case SN_OP_convert: check_convert(t, r); break;
    case SN_OP_add:
    case SN_OP_multiply:
        check_swapped(t, r);
        check_taken_back(t);
        break;
    case SN_OP_subtract: check_subtract(t, r); break;
    case SN_OP_fma:
        check_swapped(t, r);
        check_fma(t);
        break;
    case SN_OP_divide:
    case SN_OP_sqrt: check_inverse(t); break;
    case SN_OP_remainder: check_remainder(t, r); break;
    case SN_OP_to_integer: check_to_integer(t, r); break;
    case SN_OP_round_to_integral: check_round_to_integral(t, r); break;
    case SN_OP_minimum:
    case SN_OP_maximum:
    case SN_OP_minimum_number:
    case SN_OP_maximum_number: check_extremum(t, r); break;
    case SN_OP_next_up:
    case SN_OP_next_down: check_next(t, r); break;
    case SN_OP_negate:
    case SN_OP_absolute:
    case SN_OP_copysign: check_sign(t, r); break;
    case SN_OP_compare: check_compare(t, r); break;
    case SN_OP_total_order: check_total_order(t, r); break;
    default: break;
    }
}

void fuzz_operation(fuzz_input *in) {
    fuzz_trial t;
    memset(&t, 0, sizeof t);
    t.op = fuzz_choose(in, SN_OPERATION_COUNT);
    const int mixed = fuzz_choose(in, 4), max_bits = mixed & 1 ? 64 : 16;
    sn_format *f = t.context.operand;
    f[0] = f[1] = f[2] = t.context.out = fuzz_take_format(in, max_bits);
    if (mixed >= 2) {
        f[1] = fuzz_take_format(in, max_bits);
        f[2] = fuzz_take_format(in, max_bits);
        t.context.out = fuzz_take_format(in, max_bits);
    }
    if (t.op == SN_OP_scalb) f[1] = fuzz_fixed(32, 0, 1);
    if (t.op == SN_OP_total_order) f[1] = f[2] = f[0];
    if (t.op == SN_OP_to_integer) t.context.out = fuzz_fixed(2 + fuzz_choose(in, 63), 0, fuzz_choose(in, 2));
    if (is_code_operation(t.op)) t.context.out = f[0];
    t.context.env = fuzz_take_env(in, &t.context.out);
    t.word = (sn_u32)fuzz_take(in, 4);
    for (int k = 0; k < 3; k++)
        t.code[k] = fuzz_take_code(in, &f[k]);

    fuzz_result r = fuzz_evaluate(&t);
    if (r.flags & SN_UNDECIDED) { /* functions of numbers beyond the table of 2 / pi; wrapping far out of range */
        FUZZ_EXPECT(&t, t.op >= SN_OP_exp);
        return;
    }
    FUZZ_EXPECT(&t, same(fuzz_evaluate_short(&t), r));
    for (int isa = 0; isa <= sn_detect_isa(); isa++) {
        sn_u64 code;
        if (!fuzz_evaluate_lanes(&t, isa, &code)) break;
        FUZZ_EXPECT(&t, code == r.code);
    }
    check_range(&t, r);
    check_clean(&t, r);
    check_nan(&t, r);
    t.context.env.nan = SN_NAN_CANONICAL; /* one NaN is as good as another from here on */
    r = fuzz_evaluate(&t);
    if (!is_comparison(t.op) && !is_code_operation(t.op) && t.op != SN_OP_to_integer) {
        check_through_wide(&t, r);
        check_bracket(&t, r);
    }
    check_identities(&t, r);
}

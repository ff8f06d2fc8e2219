/* Logarithmic numbers, correctly rounded: takums (Hunhold 2024) and lnsI.F, and binary64 beside them.
 *
 * A logarithmic number is 0, NaN or (-1)^sign b^L, b = sqrt(e) of a takum and 2 of an lns, L of some fraction bits.
 * Real numbers round in the logarithm: L is cut to the format's bits, to nearest, a tie to the even code. So products,
 * quotients and roots are integer arithmetic on L. All else is enclosed (big.h) in 2 words, then 4 ... 32, until what
 * decides the rounding of L is known.
 *
 * An operand is a term sig 2^two e^(root / 2), sig odd. Terms of different (two modulo 1, root) are linearly
 * independent over the rationals: e^x and e^y are for different algebraic x and y, over the algebraic numbers
 * (Lindemann and Weierstrass), and powers of 2^(1/2^k) below 2 over the rationals. So a sum of two such terms is no
 * rational number and no power of b that L could be rounded at, and the enclosures of it decide; sums of like terms are
 * one term. The logarithm of a term is rational only if nothing but a power of b is left of it. Of functions other than
 * exp, exp2 and pow it is not known for every operand that no result lies on a border; one that did would come out as
 * SN_UNDECIDED. */
#ifndef SOFTNUM_LOGARITHMIC_H
#define SOFTNUM_LOGARITHMIC_H

#include "softnum/elementary/functions.h"
#include "softnum/rounding/tapered.h"

enum { SN_LOG_NUMBER, SN_LOG_TAKUM, SN_LOG_LNS };

typedef struct {
    sn_i32 kind;     /* SN_LOG_NUMBER: binary64; SN_LOG_TAKUM; SN_LOG_LNS */
    sn_i32 bits;     /* of a code, 3 to 32 */
    sn_i32 fraction; /* of an lns: bits of L behind the point, 0 to 30 */
} sn_logarithmic;

enum {
    SN_LOG_CONVERT,
    SN_LOG_ADD,
    SN_LOG_SUBTRACT,
    SN_LOG_MULTIPLY,
    SN_LOG_DIVIDE,
    SN_LOG_FMA,
    SN_LOG_SQRT,
    SN_LOG_LOGB,
    SN_LOG_HYPOT,
    SN_LOG_POW,
    SN_LOG_FUNCTION
};

/* (-1)^sign sig 2^two e^(root / 2), two and root in units of 2^-32, sig odd. */
typedef struct {
    sn_i32 kind, sign; /* SN_ZERO, SN_FINITE, SN_INF or SN_QUIET_NAN */
    sn_u64 sig;
    sn_i64 two, root;
} sn_term;

/* An operation: its operands' formats, the result's, and how binary64 rounds if that is binary64. */
typedef struct {
    sn_i32 op, fn; /* SN_LOG_*; SN_ELEMENTARY_* of SN_LOG_FUNCTION */
    sn_logarithmic operand[3], out;
    const sn_format *binary64;
    sn_env env;
} sn_log_call;

enum { SN_LOG_WORDS = 32, SN_LOG_ONE = 36 }; /* the most words; L is cut in units of 2^-36 */

/* A logarithm L: its floor in units of 2^-36, within 2^20 of 0, and whether more follows. */
typedef struct {
    sn_i64 floor;
    sn_i32 sticky;
} sn_log_cut;

/* -- codes and terms ------------------------------------------------------------------------------------------------
 */
SN_FN sn_u64 sn_log_nan(const sn_logarithmic *f) {
    return f->kind == SN_LOG_TAKUM ? (sn_u64)1 << (f->bits - 1) : (sn_u64)3 << (f->bits - 2);
}

SN_FN sn_u64 sn_log_zero(const sn_logarithmic *f) { return f->kind == SN_LOG_TAKUM ? 0 : (sn_u64)1 << (f->bits - 2); }

SN_FN sn_term sn_term_of(const sn_logarithmic *f, sn_u64 code) {
    sn_term t = {SN_FINITE, 0, 1, 0, 0};
    if (f->kind == SN_LOG_LNS) {
        const sn_u64 sign = (sn_u64)1 << (f->bits - 1), least = sign >> 1, field = code & (sign - 1);
        t.sign = (code & sign) != 0;
        if (field == least) {
            t.kind = t.sign ? SN_QUIET_NAN : SN_ZERO;
            t.sign = 0;
        }
        t.two = ((sn_i64)(field ^ least) - (sn_i64)least) * ((sn_i64)1 << (32 - f->fraction));
        return t;
    }
    const sn_tapered takum = {f->bits, 1, 0};
    const sn_u64 number = f->kind == SN_LOG_TAKUM ? sn_tapered_value(&takum, code) : code;
    const sn_i32 field = (sn_i32)(number >> 52) & 2047;
    t.sign = (sn_i32)(number >> 63);
    t.sig = number << 12 >> 12;
    if (field == 2047) {
        t.kind = t.sig ? SN_QUIET_NAN : SN_INF;
    } else if (field == 0 && t.sig == 0) {
        t.kind = SN_ZERO;
    } else if (f->kind == SN_LOG_TAKUM) { /* that of the linear takum 2^c (1 + m) is c + m */
        t.root = (sn_i64)(field - 1023) * ((sn_i64)1 << 32) + (sn_i64)(t.sig >> 20);
        t.sig = 1;
    } else {
        sn_i32 exp = (field ? field : 1) - 1075;
        if (field) t.sig |= (sn_u64)1 << 52;
        for (; !(t.sig & 1); t.sig >>= 1)
            exp++;
        t.two = (sn_i64)exp * ((sn_i64)1 << 32);
    }
    return t;
}

SN_FN sn_i32 sn_term_is_rational(const sn_term *t) { return t->root == 0 && (t->two & 0xffffffff) == 0; }

/* The number that a rational term is. Of others one of the same sign that is finite and no integer, where only that
 * matters. */
SN_FN sn_number sn_number_of_term(const sn_term *t) {
    sn_number x = {t->kind, t->sign, -1, 3};
    if (t->kind == SN_FINITE && sn_term_is_rational(t)) {
        x.sig = t->sig;
        x.exp = (sn_i32)(t->two >> 32);
    }
    return x;
}

/* The code of a number that is rational, in binary64: of those above, and what they become by special values. */
SN_FN sn_u64 sn_code_of_number(const sn_log_call *c, const sn_number *x) {
    sn_u32 flags = 0;
    if (x->kind >= SN_QUIET_NAN) return c->binary64->nan_code;
    if (x->kind == SN_INF) return (sn_u64)x->sign << 63 | c->binary64->inf_code;
    const sn_exact e = sn_exact_of(x);
    return sn_round_pack(c->binary64, &c->env, &e, 0, &flags);
}

/* -- enclosures -----------------------------------------------------------------------------------------------------
 */
/* m 2^exp times log(2) */
SN_FN void sn_big_times_ln_2(sn_big *r, sn_i64 m, sn_i64 exp, sn_i32 n) {
    sn_big_constant(r, sn_ln_2, 0, n);
    sn_big_mul_word(r, r, (sn_u64)(m < 0 ? -m : m), n);
    r->exp += exp;
    r->sign = m < 0;
}

SN_FN void sn_big_set_integer(sn_big *r, sn_i64 m, sn_i64 exp, sn_i32 n) {
    sn_big_set(r, m < 0, (sn_u64)(m < 0 ? -m : m), exp, n);
}

SN_FN void sn_term_enclose(sn_big *r, const sn_term *t, sn_i32 n) {
    const sn_i64 whole = t->two >> 32, rest = t->two & 0xffffffff;
    sn_big x, u;
    sn_big_set(r, 0, t->sig, whole, n);
    if (rest || t->root) {
        sn_big_set_integer(&x, t->root, -33, n);
        if (rest) {
            sn_big_times_ln_2(&u, rest, -32, n);
            sn_big_add(&x, &x, &u, 0, n);
        }
        sn_big_exp(&x, &x, n);
        sn_big_mul(r, r, &x, n);
    }
    r->sign = t->sign;
}

/* The same with an error of a unit or two: of a word more, cut off. */
SN_FN void sn_term_enclose_closely(sn_big *r, const sn_term *t, sn_i32 n) {
    sn_big x;
    sn_term_enclose(&x, t, n + 1);
    sn_big_normalize(r, x.w, n + 1, x.exp, x.sign, x.err, n);
}

/* A logarithm to the base e in the format's, in which L is. */
SN_FN void sn_big_to_base(sn_big *r, const sn_logarithmic *f, sn_i32 n) {
    sn_big u;
    if (f->kind == SN_LOG_TAKUM) {
        r->exp++;
        return;
    }
    sn_big_constant(&u, sn_log2_e, 1, n);
    sn_big_mul(r, r, &u, n);
}

/* Whether L of a term is nothing but two, or root: *own. */
SN_FN sn_i32 sn_term_log_is_exact(const sn_term *t, const sn_logarithmic *f, sn_i64 *own) {
    *own = f->kind == SN_LOG_TAKUM ? t->root : t->two;
    return t->sig == 1 && (f->kind == SN_LOG_TAKUM ? t->two : t->root) == 0;
}

/* x + y, of n + 1 words each, in n: one word may cancel. */
SN_FN void sn_big_add_closely(sn_big *r, const sn_big *x, const sn_big *y, sn_i32 subtract, sn_i32 n) {
    sn_big_add_to(r, x, y, subtract, n + 1, n);
}

/* L of the magnitude of a term. */
SN_FN void sn_term_log(sn_big *r, const sn_term *t, const sn_logarithmic *f, sn_i32 n) {
    sn_big x, u;
    sn_i64 own;
    if (sn_term_log_is_exact(t, f, &own)) {
        sn_big_set_integer(r, own, -32, n);
        return;
    }
    if (sn_term_is_rational(t)) { /* log m + e log 2 of m near 1 */
        sn_big_set(&x, 0, t->sig, t->two >> 32, n);
        sn_big_log(r, &x, n);
        sn_big_to_base(r, f, n);
        return;
    }
    sn_big_set(&x, 0, 0, 0, n + 1);
    if (t->sig != 1) {
        sn_big_set(&u, 0, t->sig, 0, n + 1);
        sn_big_log(&x, &u, n + 1);
    }
    if (f->kind == SN_LOG_TAKUM ? t->two : t->root) {
        if (f->kind == SN_LOG_TAKUM)
            sn_big_times_ln_2(&u, t->two, -32, n + 1);
        else
            sn_big_set_integer(&u, t->root, -33, n + 1);
        sn_big_add(&x, &x, &u, 0, n + 1);
    }
    sn_big_to_base(&x, f, n + 1);
    sn_big_set_integer(&u, own, -32, n + 1);
    sn_big_add_closely(r, &x, &u, 0, n);
}

/* The cut of an irrational L; 0 if an enclosure does not decide it. */
SN_FN sn_i32 sn_big_cut(const sn_big *x, sn_i32 n, sn_log_cut *cut) {
    const sn_format cells = {.kind = SN_FIXED, .mantissa_bits = SN_LOG_ONE - 2};
    const sn_env nearest = {0};
    sn_exact point;
    cut->sticky = 1;
    if (x->err < SN_LOST && !sn_big_is_zero(x, n) && sn_big_top(x, n) > 20) {
        cut->floor = (sn_i64)1 << (SN_LOG_ONE + 20);
        if (x->sign) cut->floor = -cut->floor;
        return 1;
    }
    if (!sn_decide(x, n, &cells, &nearest, &point)) return 0;
    const sn_i64 floor = (sn_i64)sn_cut_at(&point, -SN_LOG_ONE).floor;
    cut->floor = point.sign ? -floor - 1 : floor;
    return 1;
}

/* The cut of L of an irrational number; 0 if an enclosure does not decide it. Of 2^e (1 + p), p small, L is that of 2^e
 * and a little, which would have lost its digits in words as many as those of the number. */
SN_FN sn_i32 sn_big_cut_of_log(const sn_big *x, const sn_logarithmic *f, sn_i32 n, sn_log_cut *cut) {
    sn_big m, one, p, r;
    if (x->err >= SN_LOST || sn_big_is_zero(x, n)) return 0;
    const sn_i32 words = n;
    if (x->err >> 16 && n > 2) n--; /* a large error is cut off with the last word */
    sn_big_normalize(&m, x->w, words, x->exp, 0, x->err, n);
    const sn_i64 e = sn_big_top(&m, n) + (m.w[n - 1] > 0xaaaaaaaaaaaaaaaau);
    m.exp -= e;
    sn_big_set(&one, 0, 1, 0, n);
    sn_big_add_to(&p, &m, &one, 1, n, 2);
    if (p.err >= SN_LOST || sn_big_is_zero(&p, 2)) return 0;
    if (sn_big_top(&p, 2) >= -16) {
        m.exp += e;
        sn_big_log(&r, &m, n);
        sn_big_to_base(&r, f, n);
        return sn_big_cut(&r, n, cut);
    }
    if (sn_big_top(&p, 2) >= -62) { /* what cancels in m - 1 fits in a word */
        if (n < 4) return 0;
        sn_big_add_to(&p, &m, &one, 1, n, n - 1);
        sn_big_log1p(&r, &p, n - 1);
        if (e) {
            sn_big_times_ln_2(&p, e, 0, n - 1);
            sn_big_add(&r, &r, &p, 0, n - 1);
        }
        sn_big_to_base(&r, f, n - 1);
        return sn_big_cut(&r, n - 1, cut);
    }
    if (e == 0 || f->kind == SN_LOG_LNS) {
        const sn_i64 whole = e > 1 << 20 ? 1 << 20 : e < -(1 << 20) ? -(1 << 20) : e;
        cut->floor = whole * ((sn_i64)1 << SN_LOG_ONE) - p.sign;
        cut->sticky = 1;
        return 1;
    }
    sn_big_times_ln_2(&r, e, 0, 2);
    sn_big_add(&r, &r, &p, 0, 2); /* log(1 + p) is p but for p^2, less than 2^-124 */
    r.err += 16;
    sn_big_to_base(&r, f, 2);
    return sn_big_cut(&r, 2, cut);
}

/* -- results --------------------------------------------------------------------------------------------------------
 */
/* The code of (-1)^sign b^L. */
SN_FN sn_u64 sn_log_round(const sn_logarithmic *f, sn_i32 sign, sn_log_cut cut) {
    if (f->kind == SN_LOG_TAKUM) {
        const sn_tapered takum = {f->bits, 1, 0};
        const sn_i64 whole = cut.floor >> SN_LOG_ONE, c = whole < -300 ? -300 : whole > 300 ? 300 : whole;
        const sn_u64 rest = (sn_u64)cut.floor & (((sn_u64)1 << SN_LOG_ONE) - 1);
        return sn_tapered_round(&takum, (sn_u64)sign << 63 | (sn_u64)(c + 1023) << 52 | rest << (52 - SN_LOG_ONE) |
                                            (sn_u64)cut.sticky);
    }
    const sn_i64 least = -((sn_i64)1 << (f->bits - 2)), half = (sn_i64)1 << (SN_LOG_ONE - 1 - f->fraction);
    const sn_i64 rest = cut.floor & (2 * half - 1);
    sn_i64 field = cut.floor >> (SN_LOG_ONE - f->fraction);
    field += rest > half || (rest == half && (cut.sticky || (field & 1)));
    if (field <= least) return sn_log_zero(f);
    if (field > -least - 1) field = -least - 1;
    return (sn_u64)sign << (f->bits - 1) | ((sn_u64)field & (((sn_u64)1 << (f->bits - 1)) - 1));
}

/* What a number of binary64 without a logarithm becomes: 0, an infinity or NaN. */
SN_FN sn_u64 sn_log_special(const sn_log_call *c, sn_u64 number) {
    if (c->out.kind == SN_LOG_NUMBER) return number;
    return number << 1 ? sn_log_nan(&c->out) : sn_log_zero(&c->out);
}

SN_FN sn_u64 sn_log_no_real(const sn_log_call *c) { return sn_log_special(c, c->binary64->nan_code); }

/* A term to the power numerator / denominator, of which binary64 knows only 1, and the sign given. */
SN_FN sn_u64 sn_log_power(const sn_log_call *c, const sn_term *t, sn_i32 numerator, sn_i32 denominator, sn_i32 sign,
                          sn_u32 *flags) {
    sn_big r;
    sn_i64 own;
    if (c->out.kind == SN_LOG_NUMBER) {
        sn_exact e;
        if (sn_term_is_rational(t)) {
            e = sn_exact_make(sign, sn_u128_make(0, t->sig), (sn_i32)(t->two >> 32));
            return sn_round_pack(c->binary64, &c->env, &e, 0, flags);
        }
        for (sn_i32 n = 2; n <= SN_LOG_WORDS; n *= 2) {
            sn_term_enclose(&r, t, n);
            r.sign = sign;
            if (sn_decide(&r, n, c->binary64, &c->env, &e)) return sn_round_pack(c->binary64, &c->env, &e, 0, flags);
        }
        return sn_undecided(flags);
    }
    sn_log_cut cut;
    if (sn_term_log_is_exact(t, &c->out, &own)) {
        const sn_i64 scaled = own * 16 * numerator, rest = scaled % denominator;
        cut.floor = scaled / denominator - (rest < 0);
        cut.sticky = rest != 0;
        return sn_log_round(&c->out, sign, cut);
    }
    for (sn_i32 n = 2; n <= SN_LOG_WORDS; n *= 2) {
        sn_term_log(&r, t, &c->out, n);
        r.sign ^= numerator < 0;
        if (denominator > 1) sn_big_div_word(&r, &r, (sn_u64)denominator, n);
        if (sn_big_cut(&r, n, &cut)) return sn_log_round(&c->out, sign, cut);
    }
    return sn_undecided(flags);
}

SN_FN sn_u64 sn_log_finish(const sn_log_call *c, const sn_term *t, sn_u32 *flags) {
    return sn_log_power(c, t, 1, 1, t->sign, flags);
}

/* x + y as one term, of terms alike; 0 if they are none, or the sum has too many bits. */
SN_FN sn_i32 sn_like_terms(const sn_term *x, const sn_term *y, sn_term *sum) {
    const sn_term *high = x->two >= y->two ? x : y, *low = x->two >= y->two ? y : x;
    const sn_i64 apart = high->two - low->two, shift = apart >> 32;
    if (x->root != y->root || (apart & 0xffffffff) || shift + sn_bit_length(high->sig) > 126) return 0;
    const sn_u128 a = sn_u128_shl(sn_u128_make(0, high->sig), (sn_i32)shift), b = sn_u128_make(0, low->sig);
    *sum = *low;
    sn_u128 s;
    if (high->sign == low->sign) {
        s = sn_u128_add(a, b);
    } else if (sn_u128_less(a, b)) {
        s = sn_u128_sub(b, a);
    } else {
        s = sn_u128_sub(a, b);
        sum->sign = high->sign;
    }
    if (sn_u128_is_zero(s)) {
        sum->kind = SN_ZERO;
        return 1;
    }
    for (; !(s.lo & 1); s = sn_u128_shr(s, 1))
        sum->two += (sn_i64)1 << 32;
    sum->sig = s.lo;
    return s.hi == 0;
}

/* The cut of L of x + y, |x| > |y|; of powers of the bases by the smaller one's share in the larger. */
SN_FN sn_i32 sn_cut_of_sum(const sn_term *x, const sn_term *y, sn_i32 root, const sn_logarithmic *f, sn_i32 n,
                           sn_log_cut *cut) {
    sn_big u, v;
    if (x->sig == 1 && y->sig == 1) {
        const sn_term ratio = {SN_FINITE, y->sign ^ x->sign, 1, y->two - x->two, y->root - x->root};
        sn_i64 own;
        sn_term_enclose_closely(&u, &ratio, n + 2);
        if (sn_big_top(&u, n + 2) < -44 && sn_term_log_is_exact(x, f, &own)) { /* its logarithm is less than a unit */
            cut->floor = (root ? 8 : 16) * own - u.sign;
            cut->sticky = 1;
            return 1;
        }
        if (sn_big_top(&u, n + 2) < -1) {
            sn_big_normalize(&u, u.w, n + 2, u.exp, u.sign, u.err, n + 1);
            sn_big_log1p(&u, &u, n + 1);
        } else {
            sn_big_set(&v, 0, 1, 0, n + 2);
            sn_big_add_closely(&u, &v, &u, 0, n + 1);
            sn_big_log(&u, &u, n + 1);
        }
        sn_big_to_base(&u, f, n + 1);
        sn_term_log(&v, x, f, n + 1);
        sn_big_add_closely(&u, &u, &v, 0, n);
        u.exp -= root;
        return sn_big_cut(&u, n, cut);
    }
    sn_term_enclose_closely(&u, x, n + 1);
    sn_term_enclose_closely(&v, y, n + 1);
    sn_big_add_closely(&u, &u, &v, 0, n);
    return sn_big_cut_of_log(&u, f, n, cut);
}

/* Whether |x| > |y|, for terms of different forms, by enclosures; -1 if the enclosures do not decide it. */
SN_FN sn_i32 sn_term_is_larger(const sn_term *x, const sn_term *y) {
    sn_big u, v;
    for (sn_i32 n = 2; n <= SN_LOG_WORDS; n *= 2) {
        if (x->sig == 1 && y->sig == 1) { /* (two_x - two_y) log 2 + (root_x - root_y) / 2 > 0 */
            sn_big_times_ln_2(&u, x->two - y->two, -32, n + 1);
            sn_big_set_integer(&v, x->root - y->root, -33, n + 1);
            if (x->two == y->two) return !v.sign;
            sn_big_add_closely(&u, &u, &v, 0, n);
        } else {
            sn_term_enclose_closely(&u, x, n + 1);
            sn_term_enclose_closely(&v, y, n + 1);
            u.sign = v.sign = 0;
            sn_big_add_closely(&u, &u, &v, 1, n);
        }
        if (!sn_big_is_zero(&u, n) && u.err < SN_LOST) return !u.sign;
    }
    return -1;
}

/* x + y, or its root. */
SN_FN sn_u64 sn_log_sum(const sn_log_call *c, const sn_term *x, const sn_term *y, sn_i32 root, sn_u32 *flags) {
    sn_term sum;
    sn_big r, u;
    sn_exact e;
    sn_log_cut cut;
    const sn_i32 number = c->out.kind == SN_LOG_NUMBER;
    if (number && sn_term_is_rational(x) && sn_term_is_rational(y) && !root) {
        const sn_number a = sn_number_of_term(x), b = sn_number_of_term(y);
        return sn_add_numbers(sn_exact_of(&a), 0, &b, c->binary64, &c->env, 0, flags);
    }
    if (sn_like_terms(x, y, &sum)) {
        if (sum.kind == SN_ZERO) return number ? (sn_u64)(c->env.rounding == SN_DOWN) << 63 : sn_log_zero(&c->out);
        if (number ? !root : sum.sig == 1) return sn_log_power(c, &sum, 1, 1 + root, sum.sign, flags);
        if (number && (sum.sig == 1 || sum.sig == 9)) { /* the only squares of the form 2^k + 1 and 1 */
            sum.sig = sum.sig == 9 ? 3 : 1;
            sum.two /= 2;
            sum.root /= 2;
            return sn_log_finish(c, &sum, flags);
        }
    }
    const sn_i32 larger = sn_term_is_larger(x, y);
    const sn_term *high = larger ? x : y, *low = larger ? y : x;
    if (larger < 0 && x->sign != y->sign) return sn_undecided(flags);
    for (sn_i32 n = 2; n <= SN_LOG_WORDS; n *= 2) {
        if (number) {
            sn_term_enclose_closely(&r, high, n + 1);
            sn_term_enclose_closely(&u, low, n + 1);
            sn_big_add_closely(&r, &r, &u, 0, n);
            if (root) sn_big_sqrt(&r, &r, n);
            if (sn_decide(&r, n, c->binary64, &c->env, &e)) return sn_round_pack(c->binary64, &c->env, &e, 0, flags);
        } else if (sn_cut_of_sum(high, low, root, &c->out, n, &cut)) {
            return sn_log_round(&c->out, high->sign, cut);
        }
    }
    return sn_undecided(flags);
}

/* x * y or x / y, of finite terms, one of them without a significand; the divisor has none. */
SN_FN sn_term sn_term_product(const sn_term *x, const sn_term *y, sn_i32 divide) {
    sn_term t = {SN_FINITE, x->sign ^ y->sign, x->sig * y->sig, x->two, x->root};
    t.two += divide ? -y->two : y->two;
    t.root += divide ? -y->root : y->root;
    return t;
}

/* An operation with an operand that is 0, infinite or NaN and a result of that kind: the core's, of numbers alike. */
SN_FN sn_u64 sn_log_of_specials(const sn_log_call *c, const sn_term *t, sn_u32 *flags) {
    const sn_format *f = c->binary64;
    sn_u64 x[3] = {0, 0, 0};
    for (sn_i32 i = 0; i < (c->op == SN_LOG_FMA ? 3 : 2); i++) {
        const sn_number number = sn_number_of_term(&t[i]);
        x[i] = sn_code_of_number(c, &number);
    }
    switch (c->op) {
    case SN_LOG_ADD: return sn_log_special(c, sn_add(f, x[0], f, x[1], f, &c->env, 0, flags));
    case SN_LOG_SUBTRACT: return sn_log_special(c, sn_subtract(f, x[0], f, x[1], f, &c->env, 0, flags));
    case SN_LOG_MULTIPLY: return sn_log_special(c, sn_multiply(f, x[0], f, x[1], f, &c->env, 0, flags));
    case SN_LOG_DIVIDE: return sn_log_special(c, sn_divide(f, x[0], f, x[1], f, &c->env, 0, flags));
    default: return sn_log_special(c, sn_fma(f, x[0], f, x[1], f, x[2], f, &c->env, 0, flags));
    }
}

/* -- functions ------------------------------------------------------------------------------------------------------
 */
/* sin, cos and tan of x not 0: x 2 / pi less the nearest integer, times pi / 2. Returns the words of *r, fewer than n
 * by as many as the integer has; 0 if too few are left. */
SN_FN sn_i32 sn_log_trigonometric(sn_big *r, sn_i32 fn, const sn_big *x, sn_i32 n) {
    sn_big t, s, c;
    sn_big_constant(&t, sn_two_over_pi, 0, n);
    sn_big_mul(&t, &t, x, n);
    const sn_i64 point = -t.exp; /* bits of fraction */
    sn_i32 quadrant = 0, above = 0, m = n;
    if (point < 1 || t.err >= SN_LOST) return 0;
    if (point <= 64 * n) {
        const sn_i32 at = (sn_i32)(point / 64), bit = (sn_i32)(point % 64);
        sn_u64 v[SN_BIG_WORDS], borrow = 0;
        if (at < n) quadrant = (sn_i32)(t.w[at] >> bit & 3);
        if (bit == 63 && at + 1 < n) quadrant |= (sn_i32)(t.w[at + 1] & 1) << 1;
        above = (sn_i32)(t.w[(point - 1) / 64] >> ((point - 1) % 64) & 1);
        for (sn_i32 i = 0; i < n; i++)
            v[i] = i < at ? t.w[i] : i == at ? t.w[i] & (((sn_u64)1 << bit) - 1) : 0;
        if (above) { /* 1 - fraction */
            for (sn_i32 i = 0; i < n; i++) {
                const sn_u64 one = i == at ? (sn_u64)1 << bit : 0, difference = one - v[i];
                const sn_u64 next = (one < v[i]) | (difference < borrow);
                v[i] = difference - borrow;
                borrow = next;
            }
            quadrant = (quadrant + 1) & 3;
        }
        for (m = n; m > 0 && v[m - 1] == 0;)
            m--;
        const sn_i32 words = m; /* that are not 0; a large error is cut off with the last */
        if (m && (m < n || sn_bit_length(v[m - 1]) < 48)) m--;
        if (m < 2) return 0;
        sn_big_normalize(&t, v, words, t.exp, above, t.err, m);
    }
    if (sn_big_is_zero(&t, m)) return 0;
    sn_big_constant(&s, sn_half_pi, 1, m);
    t.sign = above;
    sn_big_mul(&t, &t, &s, m);
    sn_big_sin_cos(&s, &c, &t, m);
    const sn_i32 odd = quadrant & 1, wants_sine = (fn == SN_ELEMENTARY_sin) != odd;
    if (fn == SN_ELEMENTARY_tan) {
        sn_big_div(r, odd ? &c : &s, odd ? &s : &c, m);
        r->sign ^= x->sign ^ odd;
        return m;
    }
    sn_big_copy(r, wants_sine ? &s : &c, m);
    r->sign ^= fn == SN_ELEMENTARY_sin ? x->sign ^ quadrant >> 1 : (quadrant ^ quadrant >> 1) & 1;
    return m;
}

/* x Phi(x) for an x that is not exact. A relative error of x becomes one that is 1 + |x| phi / Phi < x^2 + 2 times as
 * large, less than 2^13 above -64; below, e^-(2^11) is as good as e^-(2^40). */
SN_FN void sn_log_gelu(sn_big *r, const sn_big *x, sn_i32 n) {
    sn_big exact;
    if (x->sign && sn_big_top(x, n) >= 6) {
        sn_big_set_far(r, 1, 0, n);
        return;
    }
    sn_big_copy(&exact, x, n);
    exact.err = 0;
    sn_big_gelu(r, &exact, n);
    r->err = r->err >= SN_LOST || x->err >> 40 ? SN_LOST : r->err + (x->err << 15);
}

/* The functions of enclose.h of an irrational number in their domain; the words of *r, 0 if there is no
 * enclosure. */
SN_FN sn_i32 sn_log_enclose(sn_big *r, sn_i32 fn, const sn_big *x, sn_i32 n) {
    sn_big a, t, one;
    sn_big_copy(&a, x, n);
    a.sign = 0;
    sn_big_set(&one, 0, 1, 0, n);
    switch (fn) {
    case SN_ELEMENTARY_exp: sn_big_exp(r, x, n); return n;
    case SN_ELEMENTARY_exp2:
        sn_big_constant(&t, sn_ln_2, 0, n);
        sn_big_mul(&t, &t, x, n);
        sn_big_exp(r, &t, n);
        return n;
    case SN_ELEMENTARY_expm1:
        sn_big_expm1(r, &a, n);
        if (!x->sign) return n;
        sn_big_add(&t, r, &one, 0, n);
        sn_big_div(r, r, &t, n);
        r->sign = 1;
        return n;
    case SN_ELEMENTARY_log: sn_big_log(r, x, n); return n;
    case SN_ELEMENTARY_log2:
    case SN_ELEMENTARY_log10:
        sn_big_log(&a, x, n);
        if (fn == SN_ELEMENTARY_log2)
            sn_big_constant(&t, sn_log2_e, 1, n);
        else
            sn_big_constant(&t, sn_log10_e, -1, n);
        sn_big_mul(r, &a, &t, n);
        return n;
    case SN_ELEMENTARY_log1p: sn_big_log1p(r, x, n); return n;
    case SN_ELEMENTARY_sin:
    case SN_ELEMENTARY_cos:
    case SN_ELEMENTARY_tan: return sn_log_trigonometric(r, fn, x, n);
    case SN_ELEMENTARY_asin:
    case SN_ELEMENTARY_acos: /* by the atan of a / sqrt(1 - a^2), or of sqrt((1 - x) / (1 + x)) */
        sn_big_from_one(&t, fn == SN_ELEMENTARY_asin ? &a : x, fn == SN_ELEMENTARY_acos, n);
        if (sn_big_is_zero(&t, n) || t.err >= SN_LOST) break;
        sn_big_sqrt(&t, &t, n);
        if (fn == SN_ELEMENTARY_asin) sn_big_div(&t, &a, &t, n);
        if (sn_big_is_zero(&t, n) || t.err >= SN_LOST) break;
        sn_big_atan(r, &t, n);
        r->exp += fn == SN_ELEMENTARY_acos;
        r->sign = fn == SN_ELEMENTARY_asin && x->sign;
        return n;
    case SN_ELEMENTARY_atan:
        sn_big_atan(r, &a, n);
        r->sign = x->sign;
        return n;
    case SN_ELEMENTARY_sinh:
        if (sn_big_top(&a, n) < 0) {
            sn_big_mul(&t, &a, &a, n);
            sn_big_series(&t, SN_SERIES_SINH, &t, n);
            sn_big_mul(r, x, &t, n);
            return n;
        }
        sn_big_exp(&t, &a, n);
        sn_big_inverse(&a, &t, n);
        sn_big_add(r, &t, &a, 1, n);
        r->exp--;
        r->sign = x->sign;
        return n;
    case SN_ELEMENTARY_cosh:
        sn_big_exp(&t, &a, n);
        sn_big_inverse(&a, &t, n);
        sn_big_add(r, &t, &a, 0, n);
        r->exp--;
        return n;
    case SN_ELEMENTARY_tanh:
        a.exp++;
        sn_big_expm1(&t, &a, n);
        sn_big_set(&one, 0, 2, 0, n);
        sn_big_add(&one, &one, &t, 0, n);
        sn_big_div(r, &t, &one, n);
        r->sign = x->sign;
        return n;
    case SN_ELEMENTARY_sigmoid:
    case SN_ELEMENTARY_silu:
        sn_big_copy(&t, x, n);
        t.sign = !x->sign;
        sn_big_exp(&t, &t, n);
        sn_big_add(&t, &t, &one, 0, n);
        sn_big_div(r, fn == SN_ELEMENTARY_silu ? &a : &one, &t, n);
        if (fn == SN_ELEMENTARY_silu) r->sign = x->sign;
        return n;
    case SN_ELEMENTARY_softplus:
        sn_big_copy(&t, &a, n);
        t.sign = 1;
        sn_big_exp(&t, &t, n);
        sn_big_log1p(&t, &t, n);
        if (x->sign)
            sn_big_copy(r, &t, n);
        else
            sn_big_add(r, x, &t, 0, n);
        return n;
    case SN_ELEMENTARY_erf:
        sn_big_mul(&t, &a, &a, n);
        sn_big_erf_series(&a, &t, n);
        sn_big_constant(&t, sn_erf_scale, 1, n);
        sn_big_mul(&t, &t, x, n);
        sn_big_mul(r, &a, &t, n);
        return n;
    case SN_ELEMENTARY_gelu: sn_log_gelu(r, x, n); return n;
    case SN_ELEMENTARY_cbrt:
        sn_big_log(&t, &a, n);
        sn_big_div_word(&t, &t, 3, n);
        sn_big_exp(r, &t, n);
        r->sign = x->sign;
        return n;
    default: return 0;
    }
    return 0;
}

/* Where a function of x, |x| >= 2^8 or less, is a number but for less than e^-127 of it: that number, and to which side
 * the magnitude lies. */
SN_FN sn_i32 sn_log_is_beside(sn_i32 fn, const sn_term *x, sn_term *near, sn_i32 *above) {
    const sn_i64 least = fn == SN_ELEMENTARY_erf || fn == SN_ELEMENTARY_gelu ? 4 : 8;
    const sn_term far = {SN_FINITE, 0, 1, least * ((sn_i64)1 << 32), 0}, one = {SN_FINITE, x->sign, 1, 0, 0};
    *above = fn == SN_ELEMENTARY_softplus;
    *near = one;
    switch (fn) {
    case SN_ELEMENTARY_tanh:
    case SN_ELEMENTARY_erf: break;
    case SN_ELEMENTARY_expm1:
        if (!x->sign) return 0;
        break;
    case SN_ELEMENTARY_sigmoid:
        if (x->sign) return 0;
        break;
    case SN_ELEMENTARY_softplus:
    case SN_ELEMENTARY_gelu:
    case SN_ELEMENTARY_silu:
        if (x->sign) return 0;
        *near = *x;
        break;
    default: return 0;
    }
    return !(x->sig == 1 && x->two == far.two && x->root == 0) && sn_term_is_larger(x, &far);
}

/* A number that lies beside a term by less than e^-127 = 2^-183 of it. */
SN_FN sn_u64 sn_log_beside(const sn_log_call *c, const sn_term *near, sn_i32 above, sn_u32 *flags) {
    sn_log_cut cut;
    sn_big r;
    sn_exact e;
    sn_i64 own;
    if (c->out.kind == SN_LOG_NUMBER && sn_term_is_rational(near)) {
        e = sn_beside(near->sign, near->sig, (sn_i32)(near->two >> 32), above);
        return sn_round_pack(c->binary64, &c->env, &e, 0, flags);
    }
    if (c->out.kind != SN_LOG_NUMBER && sn_term_log_is_exact(near, &c->out, &own)) {
        cut.floor = own * 16 - !above;
        cut.sticky = 1;
        return sn_log_round(&c->out, near->sign, cut);
    }
    if (c->out.kind == SN_LOG_NUMBER) { /* of 2 words 2^-183 is no unit */
        sn_term_enclose(&r, near, 2);
        r.err++;
        if (sn_decide(&r, 2, c->binary64, &c->env, &e)) return sn_round_pack(c->binary64, &c->env, &e, 0, flags);
    } else {
        sn_term_log(&r, near, &c->out, 2);
        r.err++;
        if (sn_big_cut(&r, 2, &cut)) return sn_log_round(&c->out, near->sign, cut);
    }
    return sn_undecided(flags);
}

/* e^x or 2^x in a logarithmic format: L is a multiple of x. */
SN_FN sn_u64 sn_log_exponential(const sn_log_call *c, const sn_term *x, sn_u32 *flags) {
    const sn_i32 natural = c->fn == SN_ELEMENTARY_exp, takum = c->out.kind == SN_LOG_TAKUM;
    sn_log_cut cut;
    sn_big r;
    if (natural == takum && sn_term_is_rational(x)) {
        const sn_i64 shift = (x->two >> 32) + takum + SN_LOG_ONE, top = shift + sn_bit_length(x->sig);
        cut.sticky = 0;
        if (top > 60) {
            cut.floor = (sn_i64)1 << 60;
        } else if (shift >= 0) {
            cut.floor = (sn_i64)(x->sig << shift);
        } else {
            cut.floor = shift > -64 ? (sn_i64)(x->sig >> -shift) : 0;
            cut.sticky = 1; /* sig is odd */
        }
        if (x->sign) cut.floor = -cut.floor - cut.sticky;
        return sn_log_round(&c->out, 0, cut);
    }
    for (sn_i32 n = 2; n <= SN_LOG_WORDS; n *= 2) {
        sn_big u;
        sn_term_enclose(&r, x, n);
        if (natural != takum) {
            sn_big_constant(&u, natural ? sn_log2_e : sn_ln_2, natural, n);
            sn_big_mul(&r, &r, &u, n);
        }
        r.exp += takum;
        if (sn_big_cut(&r, n, &cut)) return sn_log_round(&c->out, 0, cut);
    }
    return sn_undecided(flags);
}

/* A rational number's function where binary64 knows it exactly, or a special value; 1 and *result if so. */
SN_FN sn_i32 sn_log_exact_function(const sn_log_call *c, const sn_term *x, sn_u64 *result, sn_u32 *flags) {
    const sn_logarithmic number = {SN_LOG_NUMBER, 64, 0};
    const sn_number operand = sn_number_of_term(x);
    sn_u32 raised = 0;
    const sn_u64 z = sn_elementary(c->fn, c->binary64, sn_code_of_number(c, &operand), c->binary64, 0, c->binary64,
                                   &c->env, 0, &raised);
    const sn_term t = sn_term_of(&number, z);
    if (c->out.kind == SN_LOG_NUMBER) {
        *result = z;
        *flags |= raised & SN_UNDECIDED;
        return 1;
    }
    if (raised & (SN_INEXACT | SN_UNDECIDED)) return 0;
    *result = t.kind == SN_FINITE ? sn_log_finish(c, &t, flags) : sn_log_special(c, z);
    return 1;
}

SN_FN sn_u64 sn_log_function(const sn_log_call *c, const sn_term *x, sn_u32 *flags) {
    const sn_i32 fn = c->fn, number = c->out.kind == SN_LOG_NUMBER, rational = sn_term_is_rational(x);
    const sn_term one = {SN_FINITE, 0, 1, 0, 0};
    sn_u64 result;
    sn_term near;
    sn_i32 above;
    if (x->kind != SN_FINITE || (number && rational)) {
        if (sn_log_exact_function(c, x, &result, flags)) return result;
    } else {
        const sn_i32 beyond_one = !(x->sig == 1 && x->two == 0 && x->root == 0) && sn_term_is_larger(x, &one);
        if (x->sign && (fn == SN_ELEMENTARY_log || fn == SN_ELEMENTARY_log2 || fn == SN_ELEMENTARY_log10 ||
                        fn == SN_ELEMENTARY_rsqrt || (fn == SN_ELEMENTARY_log1p && beyond_one)))
            return sn_log_no_real(c);
        if ((fn == SN_ELEMENTARY_asin || fn == SN_ELEMENTARY_acos) && beyond_one) return sn_log_no_real(c);
        if (!number) {
            if (fn == SN_ELEMENTARY_rsqrt) return sn_log_power(c, x, -1, 2, 0, flags);
            if (fn == SN_ELEMENTARY_reciprocal) return sn_log_power(c, x, -1, 1, x->sign, flags);
            if (fn == SN_ELEMENTARY_cbrt) return sn_log_power(c, x, 1, 3, x->sign, flags);
            if (fn == SN_ELEMENTARY_exp || fn == SN_ELEMENTARY_exp2) return sn_log_exponential(c, x, flags);
        } else if (fn == SN_ELEMENTARY_rsqrt || fn == SN_ELEMENTARY_reciprocal) {
            sn_term t = *x;
            t.two = -t.two / (1 + (fn == SN_ELEMENTARY_rsqrt));
            t.root = -t.root / (1 + (fn == SN_ELEMENTARY_rsqrt));
            return sn_log_finish(c, &t, flags);
        }
        if (rational && sn_log_exact_function(c, x, &result, flags)) return result;
        if (fn == SN_ELEMENTARY_log && x->sig == 1 && x->two == 0) { /* root / 2 */
            sn_term t = {SN_FINITE, x->root < 0, (sn_u64)(x->root < 0 ? -x->root : x->root), -33 * ((sn_i64)1 << 32),
                         0};
            for (; !(t.sig & 1); t.sig >>= 1)
                t.two += (sn_i64)1 << 32;
            return sn_log_finish(c, &t, flags);
        }
        if (fn == SN_ELEMENTARY_log2 && x->sig == 1 && x->root == 0) {
            sn_term t = {SN_FINITE, x->two < 0, (sn_u64)(x->two < 0 ? -x->two : x->two), -32 * ((sn_i64)1 << 32), 0};
            for (; !(t.sig & 1); t.sig >>= 1)
                t.two += (sn_i64)1 << 32;
            return sn_log_finish(c, &t, flags);
        }
    }
    if (x->kind == SN_FINITE && sn_log_is_beside(fn, x, &near, &above)) return sn_log_beside(c, &near, above, flags);
    const sn_number operand = sn_number_of_term(x);
    const sn_i32 most = fn == SN_ELEMENTARY_gelu ? 16 : SN_LOG_WORDS; /* erfc needs more words than its result has */
    for (sn_i32 n = 2; n <= most; n *= 2) {
        sn_big r, u;
        sn_exact e;
        sn_log_cut cut;
        sn_i32 m = n;
        if (rational || x->kind != SN_FINITE) {
            sn_enclose(&r, fn, &operand, n);
        } else {
            sn_term_enclose_closely(&u, x, n);
            m = sn_log_enclose(&r, fn, &u, n);
        }
        if (m < 2) continue;
        if (number) {
            if (sn_decide(&r, m, c->binary64, &c->env, &e)) return sn_round_pack(c->binary64, &c->env, &e, 0, flags);
        } else if (sn_big_cut_of_log(&r, &c->out, m, &cut)) {
            return sn_log_round(&c->out, r.sign, cut);
        }
    }
    return sn_undecided(flags);
}

/* -- operations -----------------------------------------------------------------------------------------------------
 */
/* floor(log2(|x|)), as a number. */
SN_FN sn_u64 sn_log_exponent(const sn_log_call *c, const sn_term *x, sn_u32 *flags) {
    const sn_logarithmic two = {SN_LOG_LNS, 32, 0};
    sn_log_cut cut;
    sn_big r;
    sn_i64 exponent;
    if (x->kind != SN_FINITE) {
        if (x->kind == SN_ZERO) return sn_log_special(c, (sn_u64)1 << 63 | c->binary64->inf_code);
        return sn_log_special(c, x->kind == SN_INF ? c->binary64->inf_code : c->binary64->nan_code);
    }
    if (x->root == 0) {
        exponent = (x->two >> 32) + sn_bit_length(x->sig) - 1;
    } else {
        sn_i32 n = 2;
        for (; n <= SN_LOG_WORDS; n *= 2) {
            sn_term_log(&r, x, &two, n);
            if (sn_big_cut(&r, n, &cut)) break;
        }
        if (n > SN_LOG_WORDS) return sn_undecided(flags);
        exponent = cut.floor >> SN_LOG_ONE;
    }
    if (exponent == 0) return sn_log_special(c, 0);
    sn_term t = {SN_FINITE, exponent < 0, (sn_u64)(exponent < 0 ? -exponent : exponent), 0, 0};
    for (; !(t.sig & 1); t.sig >>= 1)
        t.two += (sn_i64)1 << 32;
    return sn_log_finish(c, &t, flags);
}

/* sqrt(x^2 + y^2) of logarithmic numbers. */
SN_FN sn_u64 sn_log_hypot(const sn_log_call *c, const sn_term *x, const sn_term *y, sn_u32 *flags) {
    if (x->kind == SN_QUIET_NAN || y->kind == SN_QUIET_NAN) return sn_log_no_real(c);
    sn_term a = *x, b = *y;
    a.sign = b.sign = 0;
    if (a.kind == SN_ZERO && b.kind == SN_ZERO) return sn_log_special(c, 0);
    if (a.kind == SN_ZERO || b.kind == SN_ZERO) return sn_log_finish(c, a.kind == SN_ZERO ? &b : &a, flags);
    a.two *= 2;
    a.root *= 2;
    b.two *= 2;
    b.root *= 2;
    return sn_log_sum(c, &a, &b, 1, flags);
}

/* x^y of logarithmic numbers, into a format whose base is x's. */
SN_FN sn_u64 sn_log_pow(const sn_log_call *c, const sn_term *x, const sn_term *y, sn_u32 *flags) {
    const sn_number number_x = sn_number_of_term(x), number_y = sn_number_of_term(y);
    const sn_i32 integer = y->kind == SN_FINITE && sn_term_is_rational(y) && y->two >= 0;
    const sn_i32 odd = integer && y->two == 0; /* y is (-1)^s 2^k, or irrational */
    const sn_i64 own = c->out.kind == SN_LOG_TAKUM ? x->root : x->two;
    sn_log_cut cut;
    sn_big r, u;
    if (x->kind != SN_FINITE || y->kind != SN_FINITE || own == 0) {
        const sn_u64 z = sn_pow(SN_ELEMENTARY_pow, c->binary64, sn_code_of_number(c, &number_x), c->binary64,
                                sn_code_of_number(c, &number_y), c->binary64, &c->env, 0, flags);
        const sn_logarithmic number = {SN_LOG_NUMBER, 64, 0};
        const sn_term t = sn_term_of(&number, z);
        *flags = 0;
        return t.kind == SN_FINITE ? sn_log_finish(c, &t, flags) : sn_log_special(c, z); /* 1, 0 or no number */
    }
    if (x->sign && !integer) return sn_log_no_real(c);
    if (sn_term_is_rational(y)) { /* L 2^k */
        const sn_i64 k = (y->two >> 32) + SN_LOG_ONE - 32;
        const sn_u64 size = (sn_u64)(own < 0 ? -own : own);
        if (k > 62 - sn_bit_length(size)) {
            cut.floor = (sn_i64)1 << 60;
            cut.sticky = 0;
        } else if (k >= 0) {
            cut.floor = (sn_i64)(size << k);
            cut.sticky = 0;
        } else {
            cut.floor = k > -64 ? (sn_i64)(size >> -k) : 0;
            cut.sticky = k <= -64 || (size & (((sn_u64)1 << -k) - 1)) != 0;
        }
        if ((own < 0) != y->sign) cut.floor = -cut.floor - cut.sticky;
        return sn_log_round(&c->out, x->sign & odd, cut);
    }
    for (sn_i32 n = 2; n <= SN_LOG_WORDS; n *= 2) {
        sn_term_enclose(&r, y, n);
        sn_big_set_integer(&u, own, -32, n);
        sn_big_mul(&r, &r, &u, n);
        if (sn_big_cut(&r, n, &cut)) return sn_log_round(&c->out, 0, cut);
    }
    return sn_undecided(flags);
}

/* The result's code, of binary64 its bits. Numbers of binary64 may be one factor, a dividend, an addend, or the operand
 * of conversions, roots, logb and functions; hypot and pow take none. *flags: SN_UNDECIDED, and then nothing. */
SN_FN sn_u64 sn_log_operate(const sn_log_call *c, sn_u64 a, sn_u64 b, sn_u64 d, sn_u32 *flags) {
    sn_term t[3];
    t[0] = sn_term_of(&c->operand[0], a);
    t[1] = sn_term_of(&c->operand[1], b);
    t[2] = sn_term_of(&c->operand[2], d);
    const sn_i32 both = t[0].kind == SN_FINITE && t[1].kind == SN_FINITE;
    switch (c->op) {
    case SN_LOG_CONVERT:
        if (t[0].kind != SN_FINITE) {
            const sn_number x = sn_number_of_term(&t[0]);
            return sn_log_special(c, sn_code_of_number(c, &x));
        }
        return sn_log_finish(c, &t[0], flags);
    case SN_LOG_MULTIPLY:
    case SN_LOG_DIVIDE:
        if (!both) return sn_log_of_specials(c, t, flags);
        t[0] = sn_term_product(&t[0], &t[1], c->op == SN_LOG_DIVIDE);
        return sn_log_finish(c, &t[0], flags);
    case SN_LOG_FMA:
        if (both) {
            t[0] = sn_term_product(&t[0], &t[1], 0);
            if (t[2].kind == SN_ZERO) return sn_log_finish(c, &t[0], flags);
            if (t[2].kind == SN_FINITE) return sn_log_sum(c, &t[0], &t[2], 0, flags);
        } else if (t[0].kind <= SN_FINITE && t[1].kind <= SN_FINITE && t[2].kind == SN_FINITE) {
            return sn_log_finish(c, &t[2], flags);
        }
        return sn_log_of_specials(c, t, flags);
    case SN_LOG_ADD:
    case SN_LOG_SUBTRACT:
        if (t[0].kind > SN_FINITE || t[1].kind > SN_FINITE || (t[0].kind == SN_ZERO && t[1].kind == SN_ZERO))
            return sn_log_of_specials(c, t, flags);
        t[1].sign ^= c->op == SN_LOG_SUBTRACT;
        if (!both) return sn_log_finish(c, t[0].kind == SN_ZERO ? &t[1] : &t[0], flags);
        return sn_log_sum(c, &t[0], &t[1], 0, flags);
    case SN_LOG_SQRT:
        if (t[0].kind != SN_FINITE || t[0].sign) {
            const sn_number x = sn_number_of_term(&t[0]);
            return sn_log_special(c, sn_sqrt(c->binary64, sn_code_of_number(c, &x), c->binary64, &c->env, 0, flags));
        }
        if (c->out.kind != SN_LOG_NUMBER) return sn_log_power(c, &t[0], 1, 2, 0, flags);
        t[0].two /= 2;
        t[0].root /= 2;
        return sn_log_finish(c, &t[0], flags);
    case SN_LOG_LOGB: return sn_log_exponent(c, &t[0], flags);
    case SN_LOG_HYPOT: return sn_log_hypot(c, &t[0], &t[1], flags);
    case SN_LOG_POW: return sn_log_pow(c, &t[0], &t[1], flags);
    default: return sn_log_function(c, &t[0], flags);
    }
}

#endif

/* The fused dot-product-add of tensor cores, on codes. One step takes `terms` products and the accumulator C:
 *   - a product is exact: significands multiplied, not normalised, exponents added; a subnormal operand has its
 * format's lowest exponent and a significand below 1, and so has C;
 *   - M is the largest exponent among the terms, C included, and at least min_exponent. Terms that are zero take no
 * part in it; or, with a zero_exponent, a zero counts with that exponent as any number does with its own;
 *   - each term is cut off, toward zero, at fraction_bits bits below M; what is left is added exactly;
 *   - a sum of zero is +0; any other may be cut to truncate_fraction bits of its own exponent, and is rounded once;
 *     what rounds to zero is +0 too.
 * Longer sums chain steps: the result of one is the C of the next. Parameters of real hardware: softnum/mac/machines.
 * Sources: Khattak and Mikaitis (arXiv 2512.07004); MMA-Sim (arXiv 2511.10909). */
#ifndef SOFTNUM_FUSED_H
#define SOFTNUM_FUSED_H

#include "softnum/operations/arith.h"

/* Limits that keep sums below 2^126: fraction bits + 2, and a bit for each doubling of the terms. */
enum { SN_FUSED_FRACTION_BITS = 100, SN_FUSED_TERMS = 1 << 20, SN_FUSED_NO_FLOOR = -(1 << 30) };

typedef struct {
    sn_format a, b, accumulator, output;
    sn_env sum_env, output_env, after_env; /* into the accumulator; into the output by the last step; C added after */
    sn_i32 terms, fraction_bits;
    sn_i32 min_exponent;      /* of M, or SN_FUSED_NO_FLOOR */
    sn_i32 zero_exponent;     /* of operands and C that are zero, or SN_FUSED_NO_FLOOR: they take no part in M */
    sn_i32 truncate_fraction; /* fraction bits a sum is cut to before it is rounded; -1: all stay */
    sn_i32 always_infinity;   /* sums that are too large become infinite in every mode */
    sn_i32 c_after;           /* C is no term: it is added to the last step's result, in the output format */
    sn_i32 same_output;       /* the output is the accumulator: a sum of nothing is C as it is */
    sn_i32 period;            /* a multiple of terms: the steps take each period's k in the order below */
    const sn_i32 *order;      /* null: as they come */
} sn_fused_unit;

/* A term of a sum: (-1)^sign * sig * 2^exp, its leading bit or, unnormalised, the one before or after it, worth
 * 2^exponent. */
typedef struct {
    sn_u128 sig;
    sn_i32 exp, exponent, sign;
} sn_fused_term;

/* What the special values among the terms come to, and the largest exponent of the others. */
typedef struct {
    sn_i32 nan, signaling, invalid, infinite[2]; /* infinite: of each sign */
    sn_i32 any, largest;
} sn_fused_kinds;

/* The sum of a step's terms, aligned: positive - negative, in units of 2^unit; cut: whether bits were cut off. */
typedef struct {
    sn_fused_kinds kinds;
    sn_u128 positive, negative;
    sn_i32 unit, cut;
} sn_fused_sum;

/* The report of one rounding of a dot product: the flags it raised itself, whether bits had been cut off before,
 * whether a term was infinite; and which it was. */
enum { SN_FUSED_TO_ACCUMULATOR, SN_FUSED_TO_OUTPUT, SN_FUSED_C_ADDED };
typedef struct {
    sn_u32 raised;
    sn_i32 cut, infinite, which;
} sn_fused_told;

SN_FN void sn_fused_note_infinity(sn_fused_kinds *kinds, sn_i32 sign) {
    if (sign)
        kinds->infinite[1] = 1;
    else
        kinds->infinite[0] = 1;
}

SN_FN void sn_fused_note_exponent(sn_fused_kinds *kinds, sn_i32 exponent) {
    if (!kinds->any || exponent > kinds->largest) kinds->largest = exponent;
    kinds->any = 1;
}

SN_FN void sn_fused_note_nan(sn_fused_kinds *kinds, const sn_number *x) {
    kinds->nan |= x->kind >= SN_QUIET_NAN;
    kinds->signaling |= x->kind == SN_SIGNALING_NAN;
}

/* The exponent that a finite number counts with, where zeros do. */
SN_FN sn_i32 sn_fused_exponent(const sn_fused_unit *u, const sn_format *f, const sn_number *x) {
    return x->kind == SN_ZERO ? u->zero_exponent : x->exp + f->mantissa_bits;
}

/* Whether x * y is a term that counts; notes what it is. */
SN_FN sn_i32 sn_fused_product(const sn_fused_unit *u, const sn_number *x, const sn_number *y, sn_fused_kinds *kinds,
                              sn_fused_term *term) {
    if (x->kind >= SN_INF || y->kind >= SN_INF) {
        sn_fused_note_nan(kinds, x);
        sn_fused_note_nan(kinds, y);
        if (x->kind >= SN_QUIET_NAN || y->kind >= SN_QUIET_NAN) return 0;
        if (x->kind == SN_ZERO || y->kind == SN_ZERO)
            kinds->invalid = 1;
        else
            sn_fused_note_infinity(kinds, x->sign ^ y->sign);
        return 0;
    }
    if (x->kind == SN_ZERO || y->kind == SN_ZERO) {
        if (u->zero_exponent != SN_FUSED_NO_FLOOR)
            sn_fused_note_exponent(kinds, sn_fused_exponent(u, &u->a, x) + sn_fused_exponent(u, &u->b, y));
        return 0;
    }
    term->sig = sn_u128_mul(x->sig, y->sig);
    term->exp = x->exp + y->exp;
    term->exponent = term->exp + u->a.mantissa_bits + u->b.mantissa_bits;
    term->sign = x->sign ^ y->sign;
    sn_fused_note_exponent(kinds, term->exponent);
    return 1;
}

/* The same for C. */
SN_FN sn_i32 sn_fused_addend(const sn_fused_unit *u, const sn_number *c, sn_fused_kinds *kinds, sn_fused_term *term) {
    const sn_format *f = &u->accumulator;
    if (c->kind >= SN_INF) {
        sn_fused_note_nan(kinds, c);
        if (c->kind == SN_INF) sn_fused_note_infinity(kinds, c->sign);
        return 0;
    }
    if (c->kind == SN_ZERO) {
        if (u->zero_exponent != SN_FUSED_NO_FLOOR) sn_fused_note_exponent(kinds, u->zero_exponent);
        return 0;
    }
    term->sig = sn_u128_make(0, c->sig);
    term->exp = c->exp;
    term->exponent = c->exp + f->mantissa_bits;
    term->sign = c->sign;
    sn_fused_note_exponent(kinds, term->exponent);
    return 1;
}

/* A term added to the sum, cut off at its unit. */
SN_FN void sn_fused_add(sn_fused_sum *s, const sn_fused_term *term) {
    const sn_i32 below = s->unit - term->exp;
    const sn_u128 aligned = below <= 0 ? sn_u128_shl(term->sig, -below) : sn_u128_shr(term->sig, below);
    s->cut |= sn_u128_low_bits(term->sig, below);
    if (term->sign)
        s->negative = sn_u128_add(s->negative, aligned);
    else
        s->positive = sn_u128_add(s->positive, aligned);
}

/* Whether special values among the terms decide the result, and which it is. */
SN_FN sn_i32 sn_fused_special(const sn_fused_kinds *kinds, const sn_format *fo, const sn_env *env, sn_u32 *flags,
                              sn_u64 *code) {
    if (kinds->signaling) sn_raise(fo, SN_INVALID, flags);
    if (kinds->invalid || (!kinds->nan && kinds->infinite[0] && kinds->infinite[1]))
        *code = sn_invalid_result(fo, env, flags);
    else if (kinds->nan)
        *code = fo->has_nan ? fo->nan_code : sn_invalid_result(fo, env, flags);
    else if (kinds->infinite[0] || kinds->infinite[1])
        *code = sn_inf_result(fo, env, kinds->infinite[1], flags);
    else
        return 0;
    return 1;
}

/* The sum, cut and rounded into fo. */
SN_FN sn_u64 sn_fused_round(const sn_fused_unit *u, sn_fused_sum *s, const sn_format *fo, const sn_env *env,
                            sn_u32 *flags) {
    sn_u64 special;
    if (sn_fused_special(&s->kinds, fo, env, flags, &special)) return special;
    sn_i32 sign = sn_u128_less(s->positive, s->negative);
    sn_u128 sum = sign ? sn_u128_sub(s->negative, s->positive) : sn_u128_sub(s->positive, s->negative);
    if (sn_u128_is_zero(sum)) return 0;
    sn_i32 excess = u->truncate_fraction < 0 ? 0 : sn_u128_bit_length(sum) - 1 - u->truncate_fraction;
    if (excess > 0) {
        s->cut |= sn_u128_low_bits(sum, excess);
        sum = sn_u128_shl(sn_u128_shr(sum, excess), excess);
    }
    sn_exact x = sn_exact_make(sign, sum, s->unit);
    sn_u32 raised = 0;
    sn_u64 code = sn_round_pack(fo, env, &x, 0, &raised);
    *flags |= raised;
    if (u->always_infinity && fo->has_inf) {
        if (fo->p3109 == SN_P3109) { /* raises no flags: asked of a format that does */
            sn_format telling = *fo;
            sn_let_raise(&telling);
            sn_round_pack(&telling, env, &x, 0, &raised);
        }
        if (raised & SN_FLAG_OVERFLOW)
            return sign && !fo->is_signed ? sn_below_zero(fo, env, 1) : sn_with_sign(fo, fo->inf_code, sign);
    }
    return sign && sn_unpack(fo, code).kind == SN_ZERO ? 0 : code;
}

/* The k of a position in the order of summation. */
SN_FN sn_i64 sn_fused_k(const sn_fused_unit *u, sn_i64 position) {
    return u->order ? position / u->period * u->period + u->order[position % u->period] : position;
}

/* The sum of one step: of the terms at positions first, first + 1, ... and of c, a code of the accumulator. Elements
 * from k = length on count as zero. a and b: codes, the strides apart. */
SN_FN sn_fused_sum sn_fused_sum_of(const sn_fused_unit *u, const sn_u64 *a, sn_i64 stride_a, const sn_u64 *b,
                                   sn_i64 stride_b, sn_i64 length, sn_i64 first, sn_u64 c) {
    sn_fused_sum s;
    sn_fused_kinds kinds;
    sn_fused_term term, addend;
    kinds.nan = kinds.signaling = kinds.invalid = kinds.infinite[0] = kinds.infinite[1] = kinds.any = kinds.largest = 0;
    s.positive = s.negative = sn_u128_make(0, 0);
    s.unit = s.cut = 0;
    sn_number z = sn_unpack(&u->accumulator, c);
    sn_i32 with_c = sn_fused_addend(u, &z, &kinds, &addend);
    for (sn_i32 t = 0; t < u->terms; t++) {
        sn_i64 k = sn_fused_k(u, first + t);
        if (k >= length) continue;
        sn_number x = sn_unpack(&u->a, a[k * stride_a]), y = sn_unpack(&u->b, b[k * stride_b]);
        sn_fused_product(u, &x, &y, &kinds, &term);
    }
    s.kinds = kinds;
    if (kinds.nan || kinds.invalid || kinds.infinite[0] || kinds.infinite[1] || !kinds.any) return s;

    s.unit = (kinds.largest > u->min_exponent ? kinds.largest : u->min_exponent) - u->fraction_bits;
    if (with_c) sn_fused_add(&s, &addend);
    for (sn_i32 t = 0; t < u->terms; t++) {
        sn_i64 k = sn_fused_k(u, first + t);
        if (k >= length) continue;
        sn_number x = sn_unpack(&u->a, a[k * stride_a]), y = sn_unpack(&u->b, b[k * stride_b]);
        if (sn_fused_product(u, &x, &y, &kinds, &term)) sn_fused_add(&s, &term);
    }
    return s;
}

/* One step, its sum rounded into fo; bits that are cut off raise INEXACT too. */
SN_FN sn_u64 sn_fused_step(const sn_fused_unit *u, const sn_u64 *a, sn_i64 stride_a, const sn_u64 *b, sn_i64 stride_b,
                           sn_i64 length, sn_i64 first, sn_u64 c, const sn_format *fo, const sn_env *env,
                           sn_u32 *flags) {
    sn_fused_sum s = sn_fused_sum_of(u, a, stride_a, b, stride_b, length, first, c);
    const sn_u64 code = sn_fused_round(u, &s, fo, env, flags);
    if (s.cut) sn_raise(fo, SN_INEXACT, flags);
    return code;
}

/* Number of steps of a sum of length products: whole periods. */
SN_FN sn_i64 sn_fused_steps(const sn_fused_unit *u, sn_i64 length) {
    return (length + u->period - 1) / u->period * (u->period / u->terms);
}

/* Number of roundings of a sum of length products: its steps, and C's addition; of a sum of nothing, into another
 * output, one. */
SN_FN sn_i64 sn_fused_roundings(const sn_fused_unit *u, sn_i64 length) {
    if (length == 0) return !u->c_after && !u->same_output;
    return sn_fused_steps(u, length) + (u->c_after != 0);
}

/* Where the sum starts. */
SN_FN sn_u64 sn_fused_start(const sn_fused_unit *u, sn_i64 length, sn_u64 c) {
    return u->c_after && length > 0 ? 0 : c;
}

/* What the sum becomes by rounding i of them, in their order. */
SN_FN sn_u64 sn_fused_next(const sn_fused_unit *u, const sn_u64 *a, sn_i64 stride_a, const sn_u64 *b, sn_i64 stride_b,
                           sn_i64 length, sn_i64 i, sn_u64 sum, sn_u64 c, sn_fused_told *told) {
    const sn_i64 steps = sn_fused_steps(u, length);
    told->raised = 0;
    told->cut = 0;
    if (i < steps) {
        const sn_i32 last = i == steps - 1 && !u->c_after;
        sn_fused_sum s = sn_fused_sum_of(u, a, stride_a, b, stride_b, length, i * u->terms, sum);
        sum = sn_fused_round(u, &s, last ? &u->output : &u->accumulator, last ? &u->output_env : &u->sum_env,
                             &told->raised);
        told->cut = s.cut;
        told->infinite = s.kinds.infinite[0] || s.kinds.infinite[1];
        told->which = last ? SN_FUSED_TO_OUTPUT : SN_FUSED_TO_ACCUMULATOR;
        return sum;
    }
    told->infinite = sn_unpack(&u->accumulator, sum).kind == SN_INF;
    told->which = SN_FUSED_TO_OUTPUT;
    if (steps == 0) return sn_convert(&u->accumulator, sum, &u->output, &u->output_env, 0, &told->raised);
    told->infinite |= sn_unpack(&u->output, c).kind == SN_INF;
    told->which = SN_FUSED_C_ADDED;
    return sn_add(&u->accumulator, sum, &u->output, c, &u->output, &u->after_env, 0, &told->raised);
}

/* The dot product of a and b, from c: a code of the accumulator, or of the output if C is added after. The result is a
 * code of the output. sum_flags: of roundings into the accumulator; output_flags: into the output. */
SN_FN sn_u64 sn_fused_dot(const sn_fused_unit *u, const sn_u64 *a, sn_i64 stride_a, const sn_u64 *b, sn_i64 stride_b,
                          sn_i64 length, sn_u64 c, sn_u32 *sum_flags, sn_u32 *output_flags) {
    const sn_i64 roundings = sn_fused_roundings(u, length);
    sn_u64 sum = sn_fused_start(u, length, c);
    for (sn_i64 i = 0; i < roundings; i++) {
        sn_fused_told told;
        sum = sn_fused_next(u, a, stride_a, b, stride_b, length, i, sum, c, &told);
        const sn_i32 inside = told.which == SN_FUSED_TO_ACCUMULATOR;
        sn_u32 *flags = inside ? sum_flags : output_flags;
        *flags |= told.raised;
        if (told.cut) sn_raise(inside ? &u->accumulator : &u->output, SN_INEXACT, flags);
    }
    return sum;
}

#endif

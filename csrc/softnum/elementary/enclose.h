/* Enclosures of the elementary functions of one operand, in forms that do not cancel (big.h: what an enclosure is). */
#ifndef SOFTNUM_ENCLOSE_H
#define SOFTNUM_ENCLOSE_H

#include "softnum/elementary/decide.h"

/* pi |x| less the multiple of pi / 2 nearest to it; *quadrant: that multiple modulo 4. 2x is no integer. */
SN_FN void sn_big_reduce_turn(sn_big *r, sn_i32 *quadrant, const sn_number *x, sn_i32 n) {
    sn_big half_pi;
    sn_i32 bits;
    sn_u64 part = sn_parts(x, 1, quadrant, &bits);
    const sn_i32 above = bits <= 64 && part >> (bits - 1) != 0; /* the fraction is 1/2 or more: less 1 */
    if (above) {
        part = (bits < 64 ? (sn_u64)1 << bits : 0) - part;
        *quadrant = (*quadrant + 1) & 3;
    }
    sn_big_set(r, above, part, -(sn_i64)bits, n);
    sn_big_constant(&half_pi, sn_half_pi, 1, n);
    sn_big_mul(r, r, &half_pi, n);
}

/* sin, cos and tan, of x and of pi x */
SN_FN void sn_big_trigonometric(sn_big *r, sn_i32 fn, const sn_number *x, sn_i32 n) {
    sn_big t, s, c;
    sn_i32 quadrant;
    const sn_i32 turns = fn >= SN_ELEMENTARY_sinpi;
    if (!turns && x->exp > SN_TRIGONOMETRIC_EMAX) { /* beyond the table of 2 / pi */
        sn_big_set(r, 0, 1, 0, n);
        r->err = SN_LOST;
        return;
    }
    if (turns)
        sn_big_reduce_turn(&t, &quadrant, x, n);
    else
        sn_big_reduce(&t, &quadrant, x->sig, x->exp, n);
    const sn_i32 odd = quadrant & 1;
    if (sn_big_is_zero(&t, n)) {
        sn_big_set(r, 0, 1, 0, n);
        r->err = SN_LOST;
        return;
    }
    const sn_i32 sine = fn == SN_ELEMENTARY_sin || fn == SN_ELEMENTARY_sinpi, wants_sine = sine != odd;
    if (fn == SN_ELEMENTARY_tan || fn == SN_ELEMENTARY_tanpi) {
        sn_big_sin_cos(&s, &c, &t, n);
        sn_big_div(r, odd ? &c : &s, odd ? &s : &c, n);
        r->sign ^= x->sign ^ odd;
        return;
    }
    sn_big_sin_cos(wants_sine ? r : &s, wants_sine ? &s : r, &t, n);
    if (sine)
        r->sign ^= x->sign ^ (quadrant >> 1);
    else
        r->sign ^= (quadrant ^ quadrant >> 1) & 1; /* cos: - in quadrants 1 and 2 */
}

/* acosh(x) for x > 1 */
SN_FN void sn_big_acosh(sn_big *r, const sn_big *x, sn_i32 n) {
    sn_big s, t, one;
    sn_big_set(&one, 0, 1, 0, n);
    sn_big_add(&t, x, &one, 1, n);
    sn_big_add(&s, x, &one, 0, n);
    sn_big_mul(&s, &s, &t, n);
    sn_big_sqrt(&s, &s, n);       /* sqrt(x^2 - 1) */
    if (sn_big_top(&t, n) < -2) { /* x < 5/4: log(1 + (x - 1 + s)) */
        sn_big_add(&t, &t, &s, 0, n);
        sn_big_log1p(r, &t, n);
        return;
    }
    sn_big_add(&s, &s, x, 0, n); /* log(2x) + log(1 - 1 / (2x (x + s))) */
    sn_big_copy(&t, x, n);
    t.exp++;
    sn_big_mul(&s, &s, &t, n);
    sn_big_inverse(&s, &s, n);
    s.sign = 1;
    sn_big_log1p(&s, &s, n);
    sn_big_log(r, &t, n);
    sn_big_add(r, r, &s, 0, n);
}

/* asinh(a) for a > 0 */
SN_FN void sn_big_asinh(sn_big *r, const sn_big *a, sn_i32 n) {
    sn_big s, t, one;
    sn_big_set(&one, 0, 1, 0, n);
    sn_big_mul(&t, a, a, n);
    sn_big_add(&s, &t, &one, 0, n);
    sn_big_sqrt(&s, &s, n);
    if (sn_big_top(a, n) < -1) { /* log(1 + (a + a^2 / (1 + sqrt(1 + a^2)))) */
        sn_big_add(&s, &s, &one, 0, n);
        sn_big_div(&t, &t, &s, n);
        sn_big_add(&t, &t, a, 0, n);
        sn_big_log1p(r, &t, n);
        return;
    }
    sn_big_add(&s, &s, a, 0, n); /* log(2a) + log(1 + 1 / (2a (a + sqrt(1 + a^2)))), 2a >= 1 */
    sn_big_copy(&t, a, n);
    t.exp++;
    sn_big_mul(&s, &s, &t, n);
    sn_big_inverse(&s, &s, n);
    sn_big_log1p(&s, &s, n);
    sn_big_log(r, &t, n);
    sn_big_add(r, r, &s, 0, n);
}

/* 2 atanh(a) for an exact 0 < a < 1 */
SN_FN void sn_big_double_atanh(sn_big *r, const sn_big *a, sn_i32 n) {
    sn_big s, t, one;
    sn_big_set(&one, 0, 1, 0, n);
    if (sn_big_top(a, n) < -1) {
        sn_big_twice_atanh(r, a, &one, n);
        return;
    }
    sn_big_add(&s, &one, a, 0, n);
    sn_big_add(&t, &one, a, 1, n);
    sn_big_log(&s, &s, n);
    sn_big_log(&t, &t, n);
    sn_big_add(r, &s, &t, 1, n);
}

/* r / pi */
SN_FN void sn_big_per_pi(sn_big *r, sn_i32 n) {
    sn_big t;
    sn_big_constant(&t, sn_two_over_pi, 0, n);
    sn_big_mul(r, r, &t, n);
    r->exp--;
}

/* r log(base), base 2 or 10 */
SN_FN void sn_big_times_log(sn_big *r, sn_i32 base, sn_i32 n) {
    sn_big t;
    if (base == 10) {
        sn_big_constant(&t, sn_log10_e, -1, n);
        sn_big_inverse(&t, &t, n);
    } else {
        sn_big_constant(&t, sn_ln_2, 0, n);
    }
    sn_big_mul(r, r, &t, n);
}

/* (1 - x) / (1 + x), or (1 - x) (1 + x), for |x| < 1 */
SN_FN void sn_big_from_one(sn_big *r, const sn_big *x, sn_i32 divide, sn_i32 n) {
    sn_big one, up;
    sn_big_set(&one, 0, 1, 0, n);
    sn_big_add(&up, &one, x, 0, n);
    sn_big_add(r, &one, x, 1, n);
    if (divide)
        sn_big_div(r, r, &up, n);
    else
        sn_big_mul(r, r, &up, n);
}

/* x Phi(x), Phi the normal distribution: by erfc in the tail, where 1 + erf would cancel. */
SN_FN void sn_big_gelu(sn_big *r, const sn_big *x, sn_i32 n) {
    sn_big a, t, one;
    sn_big_copy(&a, x, n);
    a.sign = 0;
    sn_big_erfc_of_half_square(&t, &a, n);
    if (!x->sign) { /* 2 - erfc */
        sn_big_set(&one, 0, 2, 0, n);
        sn_big_add(&t, &one, &t, 1, n);
    }
    sn_big_mul(r, x, &t, n);
    r->exp--;
}

/* An enclosure of a function of one finite operand at n words. */
SN_FN void sn_enclose(sn_big *r, sn_i32 fn, const sn_number *operand, sn_i32 n) {
    sn_big x, a, t, one;
    if (operand->kind == SN_FINITE)
        sn_big_set(&x, operand->sign, operand->sig, operand->exp, n);
    else
        sn_big_set(&x, operand->sign, 0, 0, n);
    if (fn == SN_ELEMENTARY_exp2 || fn == SN_ELEMENTARY_exp2m1) sn_big_times_log(&x, 2, n);
    if (fn == SN_ELEMENTARY_exp10 || fn == SN_ELEMENTARY_exp10m1) sn_big_times_log(&x, 10, n);
    sn_big_copy(&a, &x, n);
    a.sign = 0;
    sn_big_set(&one, 0, 1, 0, n);
    const sn_i32 huge = operand->kind == SN_FINITE && sn_top(operand) >= 38;
    switch (fn) {
    case SN_ELEMENTARY_exp:
    case SN_ELEMENTARY_exp2:
    case SN_ELEMENTARY_exp10: sn_big_exp(r, &x, n); return;
    case SN_ELEMENTARY_expm1:
    case SN_ELEMENTARY_exp2m1:
    case SN_ELEMENTARY_exp10m1:
        if (!x.sign || sn_big_top(&a, n) < -1) {
            sn_big_expm1(r, &a, n);
            if (!x.sign) return;
            sn_big_add(&t, r, &one, 0, n);
            sn_big_div(r, r, &t, n); /* e^-a - 1 = -(e^a - 1) / e^a */
        } else {
            sn_big_exp(&t, &x, n);
            sn_big_add(r, &one, &t, 1, n);
        }
        r->sign = 1;
        return;
    case SN_ELEMENTARY_log: sn_big_log(r, &x, n); return;
    case SN_ELEMENTARY_log2:
    case SN_ELEMENTARY_log10:
        sn_big_log(&a, &x, n);
        if (fn == SN_ELEMENTARY_log2)
            sn_big_constant(&t, sn_log2_e, 1, n);
        else
            sn_big_constant(&t, sn_log10_e, -1, n);
        sn_big_mul(r, &a, &t, n);
        return;
    case SN_ELEMENTARY_log1p: sn_big_log1p(r, &x, n); return;
    case SN_ELEMENTARY_log2p1:
    case SN_ELEMENTARY_log10p1:
        sn_big_log1p(&a, &x, n);
        if (fn == SN_ELEMENTARY_log2p1)
            sn_big_constant(&t, sn_log2_e, 1, n);
        else
            sn_big_constant(&t, sn_log10_e, -1, n);
        sn_big_mul(r, &a, &t, n);
        return;
    case SN_ELEMENTARY_sin:
    case SN_ELEMENTARY_cos:
    case SN_ELEMENTARY_tan:
    case SN_ELEMENTARY_sinpi:
    case SN_ELEMENTARY_cospi:
    case SN_ELEMENTARY_tanpi: sn_big_trigonometric(r, fn, operand, n); return;
    case SN_ELEMENTARY_asin:
    case SN_ELEMENTARY_asinpi:
        sn_big_from_one(&t, &a, 0, n);
        if (sn_big_is_zero(&t, n)) { /* asin(1) */
            sn_big_constant(r, sn_half_pi, 1, n);
        } else {
            sn_big_sqrt(&t, &t, n);
            sn_big_div(&t, &a, &t, n);
            sn_big_atan(r, &t, n);
        }
        r->sign = x.sign;
        if (fn == SN_ELEMENTARY_asinpi) sn_big_per_pi(r, n);
        return;
    case SN_ELEMENTARY_acos:
    case SN_ELEMENTARY_acospi: /* 2 atan(sqrt((1 - x) / (1 + x))) */
        if (sn_big_is_zero(&x, n) || (x.sign && sn_against_one(operand) == 0)) {
            sn_big_constant(r, sn_half_pi, sn_big_is_zero(&x, n) ? 1 : 2, n);
            return;
        }
        sn_big_from_one(&t, &x, 1, n);
        sn_big_sqrt(&t, &t, n);
        sn_big_atan(r, &t, n);
        r->exp++;
        if (fn == SN_ELEMENTARY_acospi) sn_big_per_pi(r, n);
        return;
    case SN_ELEMENTARY_atan:
    case SN_ELEMENTARY_atanpi:
        if (operand->kind == SN_INF)
            sn_big_constant(r, sn_half_pi, 1, n);
        else
            sn_big_atan(r, &a, n);
        r->sign = x.sign;
        if (fn == SN_ELEMENTARY_atanpi) sn_big_per_pi(r, n);
        return;
    case SN_ELEMENTARY_asinh:
        sn_big_asinh(r, &a, n);
        r->sign = x.sign;
        return;
    case SN_ELEMENTARY_acosh: sn_big_acosh(r, &x, n); return;
    case SN_ELEMENTARY_atanh:
        sn_big_double_atanh(r, &a, n);
        r->exp--;
        r->sign = x.sign;
        return;
    case SN_ELEMENTARY_sinh:
        if (sn_big_top(&a, n) < 0) {
            sn_big_mul(&t, &a, &a, n);
            sn_big_series(&t, SN_SERIES_SINH, &t, n);
            sn_big_mul(r, &x, &t, n);
            return;
        }
        sn_big_exp(&t, &a, n);
        sn_big_inverse(&a, &t, n);
        sn_big_add(r, &t, &a, 1, n);
        r->exp--;
        r->sign = x.sign;
        return;
    case SN_ELEMENTARY_cosh:
        sn_big_exp(&t, &a, n);
        sn_big_inverse(&a, &t, n);
        sn_big_add(r, &t, &a, 0, n);
        r->exp--;
        return;
    case SN_ELEMENTARY_tanh: /* (e^2a - 1) / (e^2a + 1) */
        a.exp++;
        sn_big_expm1(&t, &a, n);
        sn_big_set(&one, 0, 2, 0, n);
        sn_big_add(&one, &one, &t, 0, n);
        sn_big_div(r, &t, &one, n);
        r->sign = x.sign;
        return;
    case SN_ELEMENTARY_sigmoid:
    case SN_ELEMENTARY_silu:
        x.sign = !x.sign;
        sn_big_exp(&t, &x, n);
        sn_big_add(&t, &t, &one, 0, n);
        sn_big_div(r, fn == SN_ELEMENTARY_silu ? &a : &one, &t, n);
        if (fn == SN_ELEMENTARY_silu) r->sign = operand->sign;
        return;
    case SN_ELEMENTARY_softplus:
        if (x.sign || sn_big_is_zero(&x, n)) {
            sn_big_exp(&t, &x, n);
            if (huge)
                sn_big_copy(r, &t, n);
            else
                sn_big_log1p(r, &t, n);
            return;
        }
        sn_big_copy(&t, &x, n);
        t.sign = 1;
        sn_big_exp(&t, &t, n);
        sn_big_log1p(&t, &t, n);
        sn_big_add(r, &x, &t, 0, n);
        return;
    case SN_ELEMENTARY_erf:
        if (huge) break;
        sn_big_mul(&t, &a, &a, n);
        sn_big_erf_series(&a, &t, n);
        sn_big_constant(&t, sn_erf_scale, 1, n);
        sn_big_mul(&t, &t, &x, n);
        sn_big_mul(r, &a, &t, n);
        return;
    case SN_ELEMENTARY_gelu:
        if (sn_top(operand) >= 20) { /* e^-(2^38): as good as e^-(2^40) */
            if (!x.sign) break;
            sn_big_set_far(r, 1, 0, n);
            return;
        }
        sn_big_gelu(r, &x, n);
        return;
    case SN_ELEMENTARY_cbrt: /* e^(log(a) / 3) */
        sn_big_log(&t, &a, n);
        sn_big_div_word(&t, &t, 3, n);
        sn_big_exp(r, &t, n);
        r->sign = x.sign;
        return;
    default: break;
    }
    sn_big_set(r, 0, 1, 0, n);
    r->err = SN_LOST;
}

#endif

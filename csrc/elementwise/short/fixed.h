/* The short way of operations on fixed point: convert, add, subtract and multiply in 64 bits, or 128 for products.
 *
 * Domain, checked by sn_fixed_prepare: operands of at most 62 bits, aligned to their finer last place in at most 62
 * bits, that lie at most 63 places below the result's last place, or above it by so little that the result has at most
 * 62 bits. Then nothing is lost before the one rounding: the bits below the result's last place are the whole fraction.
 * Values: a product whose integer part exceeds 64 bits is left to the definition. */
#ifndef SOFTNUM_SHORT_FIXED_H
#define SOFTNUM_SHORT_FIXED_H

#include <string.h>

#include "elementwise/elementwise.h"

SN_ALWAYS int sn_short_fixed_exists(int op) {
    return op == SN_OP_convert || op == SN_OP_add || op == SN_OP_subtract || op == SN_OP_multiply;
}

/* The number that a code is, in units of its last place. */
SN_ALWAYS sn_i64 sn_fixed_of(const sn_fixed_operand *f, sn_u64 code) {
    sn_u64 bits = code & f->mask;
    return (sn_i64)((bits ^ f->sign_mask) - f->sign_mask);
}

SN_ALWAYS int sn_short_fixed(int op, const sn_fixed_plan *t, const sn_u64 *in, sn_u32 random, sn_u64 *code,
                             sn_u32 *flags) {
    sn_i64 x = sn_fixed_of(&t->operand[0], in[0]), y = 0;
    sn_u128 size = {0, 0};
    sn_i32 sign;
    if (op != SN_OP_convert) y = sn_fixed_of(&t->operand[1], in[1]);
    if (op == SN_OP_multiply) {
        size = sn_u128_mul((sn_u64)(x < 0 ? -x : x), (sn_u64)(y < 0 ? -y : y));
        sign = (x < 0) ^ (y < 0);
    } else {
        x = (sn_i64)((sn_u64)x << t->operand[0].align);
        y = (sn_i64)((sn_u64)y << t->operand[1].align);
        x = op == SN_OP_subtract ? x - y : x + y;
        sign = x < 0;
        size.lo = (sn_u64)(x < 0 ? -x : x);
    }
    sn_u64 floor = size.lo << t->left, fraction = 0;
    if (t->right) {
        fraction = size.lo << (64 - t->right);
        floor = size.lo >> t->right | size.hi << (64 - t->right);
        size.hi >>= t->right;
    }
    if (size.hi) return 0;
    const sn_u64 up = sn_short_rounds_up(t->env, fraction, sign, floor & 1, random);
    floor += up;
    if (up && !floor) return 0;
    *flags = fraction ? SN_INEXACT : 0;
    const sn_u64 limit = sign ? t->lowest : t->highest;
    if (floor > limit) {
        *flags |= SN_FLAG_OVERFLOW;
        if (t->env->overflow != SN_OVERFLOW_WRAP) floor = limit;
    }
    *code = (sign ? 0 - floor : floor) & t->mask;
    return 1;
}

/* The numbers of the short way, if the operation has one and its formats lie in the domain. */
static inline int sn_fixed_prepare(int op, const sn_format *operands, const sn_format *out, const sn_env *env,
                                   sn_fixed_plan *t) {
    if (!sn_short_fixed_exists(op)) return 0;
    const int count = sn_operation_operands(op);
    sn_i32 last = 0, length = 0; /* of the exact result: its last place, as bits after the point, and its bits */
    if (out->kind != SN_FIXED) return 0;
    for (int i = 0; i < count; i++) {
        if (operands[i].kind != SN_FIXED || operands[i].bits > 62) return 0;
        if (op == SN_OP_multiply)
            last += operands[i].mantissa_bits;
        else if (i == 0 || operands[i].mantissa_bits > last)
            last = operands[i].mantissa_bits;
    }
    memset(t, 0, sizeof *t);
    for (int i = 0; i < count; i++) {
        const sn_format *f = &operands[i];
        t->operand[i].mask = f->magnitude_mask | f->sign_mask;
        t->operand[i].sign_mask = f->sign_mask;
        if (op == SN_OP_multiply) {
            length += f->bits;
        } else {
            t->operand[i].align = last - f->mantissa_bits;
            if (f->bits + t->operand[i].align > 62) return 0;
            if (f->bits + t->operand[i].align >= length) length = f->bits + t->operand[i].align + (count > 1);
        }
    }
    const sn_i32 right = last - out->mantissa_bits;
    if (right > 63 || (right < 0 && length - right > 62)) return 0;
    t->right = right > 0 ? right : 0;
    t->left = right < 0 ? -right : 0;
    t->env = env;
    t->mask = out->magnitude_mask | out->sign_mask;
    t->highest = out->max_code;
    t->lowest = out->sign_mask;
    return 1;
}

#endif

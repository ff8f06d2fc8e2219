/* Posits (Standard for Posit Arithmetic, 2022) and linear takums (Hunhold 2024): decoding to binary64, and rounding of
 * binary64 numbers to them.
 *
 * binary64 holds every value. It holds what decides a rounding too: a number that is not exact there rounds as the
 * same number rounded to odd (SN_TO_ODD). So operations are those of binary64, rounded to odd, and this. */
#ifndef SOFTNUM_TAPERED_H
#define SOFTNUM_TAPERED_H

#include "softnum/word/base.h"

enum { SN_TAPERED_LEAST = 3, SN_TAPERED_MOST = 32, SN_TAPERED_MOST_ES = 5 };

typedef struct {
    sn_i32 bits;  /* of a code, SN_TAPERED_LEAST to SN_TAPERED_MOST */
    sn_i32 takum; /* 1: a linear takum; 0: a posit with es bits of exponent, up to SN_TAPERED_MOST_ES */
    sn_i32 es;
} sn_tapered;

/* The one NaN, the sign bit alone. */
SN_FN sn_u64 sn_tapered_nar(const sn_tapered *f) { return (sn_u64)1 << (f->bits - 1); }

/* The bits of binary64 of a code below 2^bits; NaR is the quiet NaN. */
SN_FN sn_u64 sn_tapered_value(const sn_tapered *f, sn_u64 code) {
    const sn_u64 nar = sn_tapered_nar(f), negative = code > nar;
    const sn_i32 length = f->bits - 1;
    sn_u64 rest = negative ? 2 * nar - code : code;
    sn_i32 scale, left;
    if (code == 0) return 0;
    if (code == nar) return (sn_u64)0x7ff8 << 48;
    if (f->takum) { /* in 43 bits, which hold the longest characteristic of any width */
        rest <<= 43 - length;
        const sn_i32 up = (sn_i32)(rest >> 42), field = (sn_i32)(rest >> 39) & 7, r = up ? field : 7 - field;
        left = 39 - r;
        scale = (sn_i32)(rest >> left) & ((1 << r) - 1);
        scale += up ? (1 << r) - 1 : 1 - (2 << r);
    } else { /* in 31 bits of regime and es of exponent, which may be cut off */
        const sn_i32 ones = (sn_i32)(rest >> (length - 1));
        const sn_i32 run = length - sn_bit_length(ones ? rest ^ (nar - 1) : rest);
        left = length - 1 - run > 0 ? length - 1 - run : 0;
        rest = (rest & (((sn_u64)1 << left) - 1)) << f->es;
        scale = (ones ? run - 1 : -run) * (1 << f->es) + (sn_i32)(rest >> left);
    }
    rest &= ((sn_u64)1 << left) - 1;
    return negative << 63 | (sn_u64)(scale + 1023) << 52 | rest << (52 - left);
}

/* The code that a number of binary64 rounds to, given by its bits: to nearest on the bit string, a tie to the even
 * code; 0 from 0 alone; NaR from NaNs and infinities. */
SN_FN sn_u64 sn_tapered_round(const sn_tapered *f, sn_u64 number) {
    const sn_u64 nar = sn_tapered_nar(f), magnitude = number & ~((sn_u64)1 << 63), fraction = number << 12 >> 12;
    const sn_i32 length = f->bits - 1, exponent = (sn_i32)(magnitude >> 52) - 1023;
    sn_u64 head = 0, tail, code;
    sn_i32 cut; /* how many of the tail's bits, behind the head's, are cut off */
    if (magnitude == 0) return 0;
    if (exponent == 1024) return nar;
    if (f->takum) {
        const sn_i32 up = exponent >= 0, e = exponent < -255 ? -255 : exponent > 254 ? 254 : exponent;
        const sn_i32 r = sn_bit_length((sn_u64)(up ? e + 1 : -e)) - 1;
        const sn_i32 field = e - (up ? (1 << r) - 1 : 1 - (2 << r));
        tail = ((sn_u64)(up ? 8 + r : 7 - r) << r | (sn_u64)field) << 52 | fraction;
        cut = 4 + r + 52 - length;
        if (e != exponent) tail = up ? ~(sn_u64)0 >> (8 - r) : 0; /* beyond the ends */
    } else {
        const sn_i32 most = f->bits - 2, step = 1 << f->es;
        const sn_i32 regime = (exponent + 2048 * step) / step - 2048; /* the floor of the quotient */
        if (regime >= most || regime < -most) {
            code = regime >= most ? nar - 1 : 1;
            return number >> 63 ? 2 * nar - code : code;
        }
        const sn_i32 run = regime >= 0 ? regime + 2 : 1 - regime;
        head = (regime >= 0 ? ((sn_u64)1 << (regime + 2)) - 2 : 1) << (length - run);
        tail = (sn_u64)(exponent - regime * step) << 52 | fraction;
        cut = f->es + 52 - (length - run);
    }
    const sn_u64 half = (sn_u64)1 << (cut - 1), below = tail & (2 * half - 1);
    code = head | tail >> cut;
    code += below > half || (below == half && (code & 1));
    code = code < 1 ? 1 : code > nar - 1 ? nar - 1 : code;
    return number >> 63 ? 2 * nar - code : code;
}

#endif

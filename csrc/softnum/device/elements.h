/* What a kernel of an operator of the Tile language calls beside the core: random words, order, whole numbers. A thread
 * makes one element of a result; what it reads, and where from, is in an array of numbers. */
#ifndef SOFTNUM_ELEMENTS_H
#define SOFTNUM_ELEMENTS_H

#include "softnum/device/device.h"

/* The random word of element i of an elementwise operation under a key: its words, the first one low. */
SN_FN sn_u32 sn_element_word(sn_i64 i, sn_i64 key) {
    const sn_u64 block = (sn_u64)i >> 2;
    const sn_philox_words p =
        sn_philox((sn_u32)block, (sn_u32)(block >> 32), 0, 0, (sn_u32)key, (sn_u32)((sn_u64)key >> 32));
    const sn_u32 low = i & 1 ? p.w[1] : p.w[0], high = i & 1 ? p.w[3] : p.w[2];
    return i & 2 ? high : low;
}

/* An integer that lies as a code does in the total order of its format, each code's its own. */
SN_FN sn_u64 sn_order_key(const sn_format *f, sn_u64 code) {
    const sn_u64 mask = f->bits == 64 ? ~(sn_u64)0 : ((sn_u64)1 << f->bits) - 1, sign = (sn_u64)1 << (f->bits - 1);
    if (f->kind == SN_FIXED) return f->is_signed ? code ^ sign : code;
    if (!f->is_signed) return f->p3109 ? (code + 1) & mask : code;
    if (!(code & sign)) return code | sign;
    return f->nan_is_negative_zero ? (0 - code) & (sign - 1) : mask - code;
}

SN_FN sn_i32 sn_is_nan(const sn_format *f, sn_u64 code) { return sn_unpack(f, code).kind >= SN_QUIET_NAN; }

/* The extreme of a term and what was the extreme so far: IEEE 754-2019's maximum (or minimum), in their own format. A
 * NaN stays. */
SN_FN sn_u64 sn_extreme_of(const sn_format *f, sn_u64 found, sn_u64 term, sn_i32 largest) {
    if (sn_is_nan(f, found)) return found;
    if (sn_is_nan(f, term)) return f->nan_code;
    const sn_u64 a = sn_order_key(f, found), b = sn_order_key(f, term);
    return (largest ? b > a : b < a) ? term : found;
}

/* The whole number that a code stands for, if it lies in [0, bound); else -1. */
SN_FN sn_i64 sn_place_of(const sn_format *f, sn_u64 code, sn_i64 bound) {
    const sn_number x = sn_unpack(f, code);
    if (x.kind == SN_ZERO) return bound > 0 ? 0 : -1;
    if (x.kind != SN_FINITE || x.sign) return -1;
    const sn_i32 length = sn_bit_length(x.sig);
    if (x.exp + length > 62 || x.exp + length < 1) return -1; /* beyond all bounds; a fraction */
    const sn_u64 whole = x.exp < 0 ? x.sig >> -x.exp : x.sig << x.exp;
    if (x.exp < 0 && whole << -x.exp != x.sig) return -1;
    return (sn_i64)whole < bound ? (sn_i64)whole : -1;
}

#endif

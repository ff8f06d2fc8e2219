/* A format is data: a struct of parameters that one generic body of code reads. */
#ifndef SOFTNUM_FORMAT_H
#define SOFTNUM_FORMAT_H

#include "softnum/word/base.h"

enum { SN_FLOAT = 0, SN_FIXED = 1 };
enum { SN_LOWEST_SUBNORMAL = 0, SN_LOWEST_NORMAL = 1, SN_LOWEST_ZERO = 2 };
enum { SN_P3109 = 1, SN_P3109_TELLING = 2 }; /* a format of IEEE P3109's; one that raises flags, for tallies */

typedef struct {
    sn_i32 kind;          /* SN_FLOAT or SN_FIXED */
    sn_i32 bits;          /* width of a code, 1..64 */
    sn_i32 is_signed;     /* sign bit, or two's complement */
    sn_i32 mantissa_bits; /* stored fraction bits, 0..61; fixed: bits after the point, -63..64 */
    sn_i32 emin, emax;    /* exponent of the lowest normal binade; of the largest finite value */
    sn_i32 lowest;        /* SN_LOWEST_*: what exponent field 0 means */
    sn_i32 has_zero, negative_zero, has_inf;
    sn_i32 has_nan;
    sn_i32 nan_is_negative_zero;          /* the only NaN is nan_code; else every magnitude >= nan_first is one */
    sn_u64 quiet_bit;                     /* a NaN without this bit signals; 0: all NaNs are quiet */
    sn_u64 max_code, inf_code, nan_first; /* magnitude codes */
    sn_u64 nan_code;                      /* the canonical NaN, a whole code */
    sn_u64 magnitude_mask, sign_mask;     /* of a code; sign_mask 0 if unsigned */
    sn_i32 saturating;                    /* what is too large becomes the largest value, never NaN */
    sn_i32 p3109;                         /* SN_P3109: no flags, x / 0 is NaN, P3109's overflow */
} sn_format;

/* The format, but that it raises flags even if it is one of P3109's. */
SN_FN void sn_let_raise(sn_format *f) {
    if (f->p3109) f->p3109 = SN_P3109_TELLING;
}

enum { SN_ZERO = 0, SN_FINITE = 1, SN_INF = 2, SN_QUIET_NAN = 3, SN_SIGNALING_NAN = 4 };

/* A decoded code: (-1)^sign * sig * 2^exp where kind is SN_FINITE (sig not 0). Of a NaN, sig is the fraction, its quiet
 * bit at the top; the quiet bit alone where a format has one NaN for each sign, or one. */
typedef struct {
    sn_i32 kind, sign, exp;
    sn_u64 sig;
} sn_number;

/* Whether the NaNs of the format have one magnitude: no payload. */
SN_FN sn_i32 sn_one_nan(const sn_format *f) { return f->nan_is_negative_zero || f->nan_first == f->magnitude_mask; }

/* What a code of the format stands for. Bits of the code above the format's width are ignored. */
SN_FN sn_number sn_unpack(const sn_format *f, sn_u64 code) {
    sn_number n;
    n.exp = -f->mantissa_bits;
    if (f->kind == SN_FIXED) {
        sn_u64 mask = f->magnitude_mask | f->sign_mask;
        n.sign = (code & f->sign_mask) != 0;
        n.sig = (n.sign ? 0 - code : code) & mask;
        n.kind = n.sig ? SN_FINITE : SN_ZERO;
        return n;
    }
    sn_u64 magnitude = code & f->magnitude_mask;
    sn_u64 hidden = (sn_u64)1 << f->mantissa_bits;
    n.sign = (code & f->sign_mask) != 0;
    n.sig = 0;
    if (f->has_nan && (f->nan_is_negative_zero ? (magnitude == 0 && n.sign) : magnitude >= f->nan_first)) {
        n.kind = (f->quiet_bit && !(code & f->quiet_bit)) ? SN_SIGNALING_NAN : SN_QUIET_NAN;
        n.sig = sn_one_nan(f) ? (sn_u64)1 << 63 : magnitude << (64 - f->mantissa_bits);
        if (f->nan_is_negative_zero) n.sign = 0;
        return n;
    }
    if (f->has_inf && magnitude == f->inf_code) {
        n.kind = SN_INF;
        return n;
    }
    sn_i32 field = (sn_i32)(magnitude >> f->mantissa_bits);
    n.kind = SN_FINITE;
    n.sig = magnitude & (hidden - 1);
    if (f->lowest == SN_LOWEST_NORMAL) {
        n.exp += f->emin + field;
        if (magnitude == 0 && f->has_zero) {
            n.kind = SN_ZERO;
            n.sign &= f->negative_zero;
        } else {
            n.sig |= hidden;
        }
    } else if (field) {
        n.exp += f->emin + field - 1;
        n.sig |= hidden;
    } else {
        n.exp += f->emin;
        if (f->lowest == SN_LOWEST_ZERO) n.sig = 0;
        if (n.sig == 0) {
            n.kind = SN_ZERO;
            n.sign &= f->negative_zero;
        }
    }
    return n;
}

#endif

/* Formats that the C tests make, without Python. */
#ifndef SOFTNUM_TESTS_FORMATS_H
#define SOFTNUM_TESTS_FORMATS_H

#include <string.h>

#include "softnum/softnum.h"

/* As IEEE 754 would have it: e bits of exponent, m of the fraction. */
static inline sn_format ieee(int e, int m) {
    sn_format f;
    memset(&f, 0, sizeof f);
    f.kind = SN_FLOAT;
    f.bits = 1 + e + m;
    f.is_signed = f.has_zero = f.negative_zero = f.has_inf = f.has_nan = 1;
    f.mantissa_bits = m;
    f.emax = (1 << (e - 1)) - 1;
    f.emin = 1 - f.emax;
    f.lowest = SN_LOWEST_SUBNORMAL;
    f.sign_mask = (sn_u64)1 << (e + m);
    f.magnitude_mask = f.sign_mask - 1;
    f.inf_code = (((sn_u64)1 << e) - 1) << m;
    f.max_code = f.inf_code - 1;
    f.nan_first = f.inf_code + 1;
    f.nan_code = f.inf_code | (sn_u64)1 << (m - 1);
    f.quiet_bit = m >= 2 ? (sn_u64)1 << (m - 1) : 0;
    return f;
}

static inline sn_format fixed(int integer, int fraction) {
    sn_format f;
    memset(&f, 0, sizeof f);
    f.kind = SN_FIXED;
    f.bits = integer + fraction;
    f.is_signed = f.has_zero = 1;
    f.mantissa_bits = fraction;
    f.sign_mask = (sn_u64)1 << (f.bits - 1);
    f.magnitude_mask = f.sign_mask - 1;
    f.max_code = f.magnitude_mask;
    return f;
}

#endif

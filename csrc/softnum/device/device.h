/* What kernels on a GPU call: compositions of the core over values in carriers. A carrier is binary32 or binary64,
 * given by its bits, so that no float register and no contraction of a multiplication and an addition is ever involved.
 *
 * A kernel's source is this text and a few entry functions with scalar arguments (structs and vectors by value do not
 * survive the C calling convention of every caller). Formats are constants there, and fold. */
#ifndef SOFTNUM_DEVICE_H
#define SOFTNUM_DEVICE_H

#include "softnum/softnum.h"
#include "softnum/units/terms.h"

/* Why a value could not be delivered; OR-ed. */
enum { SN_STATUS_NO_CODE = 1, SN_STATUS_NOT_EXACT = 2 };

/* The bits in a carrier of what a code stands for. *status gets SN_STATUS_NOT_EXACT if the carrier lacks the value. */
SN_FN sn_u64 sn_carrier_of(const sn_format *f, sn_u64 code, const sn_format *carrier, sn_u32 *status) {
    const sn_env env = {SN_NEAREST_EVEN, SN_OVERFLOW_INFINITY, SN_TININESS_AFTER, 32, 0, 0, SN_NAN_CANONICAL, 0};
    sn_u32 flags = 0;
    sn_u64 bits = sn_convert(f, code, carrier, &env, 0, &flags);
    if (flags & ~(sn_u32)SN_INVALID) *status |= SN_STATUS_NOT_EXACT; /* a signaling NaN is a value too */
    return bits;
}

/* A carrier's value rounded to a format, in the carrier again. *status gets SN_STATUS_NO_CODE if the format has no code
 * for it. */
SN_FN sn_u64 sn_carrier_round(const sn_format *carrier, sn_u64 bits, const sn_format *f, const sn_env *env,
                              sn_u32 random, sn_u32 *status) {
    sn_u32 flags = 0;
    sn_u64 code = sn_convert(carrier, bits, f, env, random, &flags);
    if (flags & SN_NO_CODE) *status |= SN_STATUS_NO_CODE;
    return sn_carrier_of(f, code, carrier, status);
}

/* The code of a carrier's value. *status gets SN_STATUS_NOT_EXACT unless it is a value of the format; -0 may lose its
 * sign, and a NaN its payload. */
SN_FN sn_u64 sn_carrier_code(const sn_format *carrier, sn_u64 bits, const sn_format *f, sn_u32 *status) {
    const sn_env env = {SN_NEAREST_EVEN,
                        f->kind == SN_FIXED ? SN_OVERFLOW_SATURATE : SN_OVERFLOW_INFINITY,
                        SN_TININESS_AFTER,
                        32,
                        0,
                        0,
                        SN_NAN_CANONICAL,
                        0};
    sn_u32 flags = 0, inexact = 0;
    sn_u64 code = sn_convert(carrier, bits, f, &env, 0, &flags);
    sn_number before = sn_unpack(carrier, bits);
    sn_number after = sn_unpack(carrier, sn_carrier_of(f, code, carrier, &inexact));
    sn_i32 same =
        before.kind == after.kind && before.sign == after.sign && before.exp == after.exp && before.sig == after.sig;
    if (before.kind == SN_ZERO) same = after.kind == SN_ZERO;
    if (before.kind >= SN_QUIET_NAN) same = after.kind >= SN_QUIET_NAN;
    if (!same || inexact || (flags & SN_NO_CODE)) *status |= SN_STATUS_NOT_EXACT;
    return code;
}

#endif

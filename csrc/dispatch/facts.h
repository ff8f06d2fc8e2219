/* What a proof needs of a format's values. */
#ifndef SOFTNUM_FACTS_H
#define SOFTNUM_FACTS_H

#include "softnum/rounding/format.h"

/* All values are integers of at most `precision` bits times a power of two, multiples of 2^last, and below 2^(top + 1)
 * in magnitude; specials: or infinities or NaNs. */
typedef struct {
    sn_i32 precision, last, top, specials;
} sn_facts;

/* The exponent of a power of two that no magnitude exceeds: fixed point's lowest value is one. */
static inline sn_i32 sn_end_of(const sn_format *f) {
    return f->kind == SN_FIXED ? f->bits - f->mantissa_bits - !!f->is_signed : f->emax + 1;
}

/* The least and the largest pattern of a carrier's finite magnitudes other than 0; least > largest if there is none. */
typedef struct {
    sn_u64 least, largest;
} sn_range;

/* Of values in a range of binary64 that is not empty: the last place that all of them share; the exponent of a power of
 * two above them. */
static inline sn_i32 sn_last_in(sn_facts x, sn_range range) {
    const sn_i32 binade = range.least >> 52 ? (sn_i32)(range.least >> 52) - 1023 : -1074;
    return binade - x.precision + 1 > x.last ? binade - x.precision + 1 : x.last;
}

static inline sn_i32 sn_end_in(sn_range range) { return (sn_i32)(range.largest >> 52) - 1022; }

/* The carrier's pattern of a code's value, which it holds (prepare.c). */
sn_u64 sn_pattern_of(const sn_format *carrier, const sn_format *f, sn_u64 code);

static inline sn_facts sn_facts_of(const sn_format *f) {
    const sn_facts fixed = {f->bits, -f->mantissa_bits, f->bits - f->mantissa_bits - !f->is_signed, 0},
                   number = {f->mantissa_bits + 1, f->emin - f->mantissa_bits, f->emax, f->has_nan || f->has_inf};
    return f->kind == SN_FIXED ? fixed : number;
}

static inline sn_facts sn_facts_of_product(sn_facts a, sn_facts b) {
    const sn_facts product = {a.precision + b.precision, a.last + b.last, a.top + b.top + 1, a.specials || b.specials};
    return product;
}

/* Whether binary32 or binary64 holds every value. */
static inline int sn_fits(sn_facts x, int carrier_bits) {
    return carrier_bits == 32 ? x.precision <= 24 && x.last >= -149 && x.top <= 127
                              : x.precision <= 53 && x.last >= -1074 && x.top <= 1023;
}

#endif

/* pow, powr, pown, rootn, compound, logaddexp and logaddexp2 of wide operands, in lanes (wide.h), by logarithms and
 * powers that are pairs.
 *
 * log2 x = k - log2(c) + log2(1 + r), of the 128 cells of power.h: |r| < 2^-7.6, r = m c - 1 a pair, exactly, or of a
 * sum, off by 2^-105; where x = 1 + y, |y| < 2^-8, r is y. log(1 + r) is off by r^5 / 5 2^-49, which is 2^-82 of it or,
 * where anything is added, 2^-89 beside a sum of 2^-8.5 at least; the second part of log2(c) is off by 2^-95, sums by
 * 2^-95. So log2 x is off by 2^-80 of itself, and exact where r is 0: then x is a power of two.
 *
 * x^y = 2^z, z = y log2 |x|, off by 2^-79 of itself, less than 2^-68.9 below 1100; beyond, all powers over- or
 * underflow. A root divides instead. Which are exact is found as in power.h. What is below 2^-200 in y, but not 0, and
 * above 2^400, stands for all of that: the logarithm is 2^-53 at least if it is not 0, so that the power lies beside 1,
 * or beyond all formats. (1 + x)^y is the definition's where x is less than 2^-380, and y not.
 *
 * log(e^a + e^b) = m + log(1 + y), y = e^-d, m the larger, d the difference as a sum and its error. y is off by 2^-75
 * of itself, and so is, at most, the logarithm, beside 2^-80 of itself. Powers of less than 2^-900 are taken for that,
 * which changes nothing where |m| is above 2^-800. log2(2^a + 2^b) lies beside 1 where a and b are below 2^-54
 * (power.h): on the side of a + b, or above where that is 0 and they are not. */
#ifndef SOFTNUM_FUNCTIONS_WIDE_POWER_H
#define SOFTNUM_FUNCTIONS_WIDE_POWER_H

#include "elementwise/functions/power.h"
#include "elementwise/functions/wide_exponential.h"

/* log2 of x 2^power, x.hi > 0, no less than 2^-500; of_sum: x is a pair, or 1 + near where `small`; *exact: it is k. */
SN_INLINE SN_(pair64)
    SN_(wide_log2)(int of_sum, SN_(pair64) x, sn_wi power, sn_wi small, SN_(pair64) near, sn_wi *exact) {
    const sn_wu past = (sn_wu)x.hi - SN_FINE_START, cell = past >> 45 & (SN_FINE_CELLS - 1);
    const sn_wi k = (sn_wi)past >> 52;
    const sn_wf m = (sn_wf)((sn_wu)x.hi - ((sn_wu)k << 52)), inverse = SN_GATHER64(sn_fine_inverse, cell);
    const SN_(pair64) product = SN_(exact_product)(m, inverse);
    sn_wf whole = SN_(number_of)(k + power) + SN_GATHER64(sn_fine_cells, cell),
          rest = SN_GATHER64(sn_fine_cells_low, cell);
    SN_(pair64) r;
    if (of_sum) {
        const sn_wi most = (sn_wi){0} + 900; /* x.lo is next to nothing beyond */
        const sn_wf low = x.lo * SN_(two_to)(-(sn_wi)SN_SELECT64(k > most, most, k));
        r = SN_(exact_sum)(product.hi - 1.0, SN_FMA64(low, inverse, product.lo));
        r = SN_(pair_either)(small, near, r);
        whole = SN_(where64)(~small, whole);
        rest = SN_(where64)(~small, rest);
    } else {
        r = SN_(exact_sum)(product.hi - 1.0, product.lo);
    }
    *exact = r.hi == 0.0;
    const SN_(pair64) bend = SN_(pair_multiply)(r, SN_WIDE_SERIES(fine_log, FINE_LOG, r));
    const SN_(pair64) part = SN_(pair_multiply)(bend, SN_WIDE_PAIR(LOG2_UNIT)), sum = SN_(exact_sum)(whole, part.hi);
    return SN_(exact_sum)(sum.hi, sum.lo + (rest + part.lo));
}

/* 2^z, z off by err; *to: what it was limited to. */
SN_INLINE SN_(enclosure) SN_(wide_power_of_pair)(SN_(pair64) z, sn_wf err, sn_wf *to) {
    const sn_wi far = SN_(magnitude64)(z.hi) > 11000.0;
    *to = SN_(limited)(z.hi, 11000.0);
    const SN_(wide_power) e = SN_(wide_power_of_sum)(SN_BASE_2, 1, *to, SN_(where64)(~far, z.lo));
    const SN_(enclosure) r = SN_(enclosure_of)(e.power, e.err + SN_(where64)(~far, err + err), e.k);
    return SN_(near_constant)(r, *to, 0x1p-100, *to);
}

/* A factor of a logarithm: see above. */
SN_INLINE sn_wf SN_(wide_factor)(sn_wf y) {
    const sn_wf least = SN_(with_sign64)(SN_(f64)(0x1p-200), (sn_wu)y & SN_SIGN64);
    return SN_(limited)(SN_(either64)((SN_(magnitude64)(y) < 0x1p-200) & (y != 0.0), least, y), 0x1p400);
}

/* x^y, powr, pown; (1 + x)^y: as SN_(power_in_lanes). */
SN_INLINE SN_(enclosure) SN_(wide_pow)(int function, sn_wf x, sn_wf y, sn_wu rest, sn_wu *invalid, sn_wu *left) {
    const int more = function == SN_ELEMENTARY_compound;
    sn_wi odd, zero = {0}, exact, plain;
    const sn_wi whole = SN_(is_whole)(y, &odd);
    SN_(pair64) log;
    sn_wf base;
    if (more) {
        const sn_wf size = SN_(magnitude64)(x);
        *invalid = (sn_wu)(~whole | (x < -1.0));
        *left |= (sn_wu)((x == -1.0) | ((size < 0x1p-380) & (x != 0.0) & (SN_(magnitude64)(y) > 0x1p200)));
        const sn_wf least = SN_(with_sign64)(SN_(f64)(0x1p-380), (sn_wu)x & SN_SIGN64);
        const sn_wf number = SN_(where64)(x > -1.0, SN_(either64)((size < 0x1p-380) & (x != 0.0), least, x));
        const SN_(pair64) sum = SN_(exact_sum)(SN_(f64)(1.0), number), near = {number, (sn_wf){0}};
        log = SN_(wide_log2)(1, sum, (sn_wi){0}, SN_(magnitude64)(number) < 0x1p-8, near, &exact);
        base = sum.hi;
        plain = sum.lo == 0.0;
    } else {
        sn_wi scale;
        *invalid = SN_(not_a_power)(function, x, whole);
        zero = x == 0.0;
        *left |= (sn_wu)(zero & (y <= 0.0));
        base = SN_(normal_number)(SN_(either64)(zero, SN_(f64)(1.0), SN_(magnitude64)(x)), &scale);
        const SN_(pair64) number = {base, (sn_wf){0}};
        log = SN_(wide_log2)(0, number, scale, (sn_wi){0}, number, &exact);
        plain = scale == 0;
    }
    sn_wf to;
    const SN_(pair64) z = SN_(pair_scale)(log, SN_(wide_factor)(y));
    SN_(enclosure) e = SN_(wide_power_of_pair)(z, SN_(where64)(~exact, SN_(magnitude64)(z.hi) * 0x1p-79), &to);
    SN_(settle_power)(&e, rest, base, SN_(where64)(plain, y), to); /* else base has too many bits, or is another one */
    return more ? e : SN_(signed_power)(function, e, x, odd, zero);
}

SN_INLINE SN_(enclosure) SN_(wide_rootn)(sn_wf x, sn_wf k, sn_wu rest, sn_wu *invalid, sn_wu *left) {
    sn_wi odd, scale, exact;
    sn_wf to;
    const sn_wi whole = SN_(is_whole)(k, &odd), none = k == 0.0, zero = x == 0.0;
    *invalid = (sn_wu)(~whole | none | ((x < 0.0) & ~odd));
    *left |= (sn_wu)zero;
    const sn_wf size = SN_(normal_number)(SN_(either64)(zero, SN_(f64)(1.0), SN_(magnitude64)(x)), &scale);
    const sn_wf degree = SN_(either64)(none, SN_(f64)(1.0), SN_(limited)(k, 0x1p300)); /* beyond, it is beside 1 too */
    const SN_(pair64) number = {size, (sn_wf){0}}, log = SN_(wide_log2)(0, number, scale, (sn_wi){0}, number, &exact);
    const SN_(pair64) z = SN_(pair_divide)(log, SN_(pair_of)(degree, (sn_wf){0}));
    const sn_wi rounded = ~exact | (z.lo != 0.0);
    SN_(enclosure) e = SN_(wide_power_of_pair)(z, SN_(where64)(rounded, SN_(magnitude64)(z.hi) * 0x1p-79), &to);
    SN_(settle_root)(&e, rest, size, SN_(where64)(scale == 0, degree));
    return SN_(enclosure_signed)(e, (sn_wu)x & SN_SIGN64);
}

/* log(e^a + e^b), log2(2^a + 2^b) */
SN_INLINE SN_(enclosure) SN_(wide_log_of_sum)(int base, sn_wf a, sn_wf b) {
    const sn_wi less = a < b;
    const sn_wf m = SN_(either64)(less, b, a), other = SN_(either64)(less, a, b);
    const double most = base == SN_BASE_E ? 7600.0 : 11000.0;
    const SN_(pair64) apart = SN_(exact_sum)(other, -m);
    const sn_wi far = apart.hi < -most, least = (sn_wi){0} - 900;
    const SN_(wide_power) power =
        SN_(wide_power_of_sum)(base, 1, SN_(either64)(far, SN_(f64)(-most), apart.hi), SN_(where64)(~far, apart.lo));
    const sn_wf unit = SN_(two_to)((sn_wi)SN_SELECT64(power.k < least, least, power.k));
    const SN_(pair64) y = {power.power.hi * unit, power.power.lo * unit}, one = {SN_(f64)(1.0), (sn_wf){0}};
    sn_wi exact;
    SN_(pair64) log = SN_(wide_log2)(1, SN_(pair_add)(one, y), (sn_wi){0}, y.hi < 0x1p-8, y, &exact);
    if (base == SN_BASE_E) log = SN_(pair_multiply)(log, SN_WIDE_PAIR(LN_2));
    const SN_(pair64) part = SN_(exact_sum)(m, log.hi);
    const sn_wf rest = part.lo + log.lo, inexact = SN_(where64)(~exact, log.hi * 0x1p-79) + power.err * unit * 1.5;
    const SN_(pair64) sum = SN_(exact_sum)(part.hi, rest);
    const sn_wf err = inexact + SN_(where64)(base == SN_BASE_E ? (sn_wi){0} - 1 : ~exact,
                                             SN_(magnitude64)(rest) * 0x1p-51 + log.hi * 0x1p-101);
    SN_(enclosure) e = SN_(enclosure_of)(sum, err, (sn_wi){0});
    const sn_wi small = (SN_(magnitude64)(m) < 0x1p-500) & (m != 0.0) & far; /* m, and less than 2^-10900 */
    const sn_wf raised = m * 0x1p200;
    e = SN_(enclosure_either)(
        small,
        SN_(enclosure_of)(SN_(pair_of)(raised, SN_(magnitude64)(raised) * 0x1p-80), (sn_wf){0}, (sn_wi){0} - 200), e);
    e.outside = (sn_wu)((SN_(magnitude64)(m) < 0x1p-800) & (power.k < least) & ~small);
    if (base == SN_BASE_2) { /* beside 1 */
        const sn_wi tiny = (SN_(magnitude64)(a) < 0x1p-54) & (SN_(magnitude64)(b) < 0x1p-54);
        const sn_wf both = a + b, beside = SN_(either64)(both == 0.0, SN_(magnitude64)(a), both);
        const sn_wf near = SN_(with_sign64)(SN_(f64)(0x1p-80), (sn_wu)beside & SN_SIGN64);
        e = SN_(enclosure_either)(
            tiny, SN_(enclosure_of)(SN_(pair_of)(one.hi, SN_(where64)(beside != 0.0, near)), (sn_wf){0}, (sn_wi){0}),
            e);
    }
    return e;
}

#endif

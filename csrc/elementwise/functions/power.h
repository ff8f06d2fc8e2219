/* pow, powr, pown, rootn, compound, logaddexp and logaddexp2: in lanes (evaluate.h), by logarithms and powers in two
 * parts.
 *
 * log2 x = k + log2(1 / c) + log2(1 + r), as in logarithm.h, of 128 cells: |r| < 2^-7.7, and r is exact; of a sum it is
 * r + r_low, r_low off by 2 u of itself. The logarithm of 1 + r + r_low is w + w_low, where w is r - r^2 / 2 rounded,
 * and w_low has what w lacks: what both were rounded by, r_low - r r_low - r_low^2 / 2, and r^3 M(r). 1 / log(2) is a
 * pair, and so is its product with w. k and the first part of log2(1 / c) are multiples of 2^-42, and so is their sum.
 * r is 0 only where x is a power of two, and c = 1: then log2 x = k, and err is 0.
 *
 * Errors, in u: of r^3 M itself 7 (3 of M's evaluation, 1 of the polynomial, 3 of products), of the sums that it is
 * part of another 8, times 1.45: below 2^-48 of it; of r_low 2 itself, and 8 of sums, times 1.45: below 2^-48 of it; of
 * w: the second part of 1 / log(2), products in two parts, and r^2's, below 2^-100 of w; and of the second parts of
 * what is below 2^-42, 2^-92. So the logarithm is off by 2^-71 at most, and by 2^-64 of itself.
 *
 * 2^z, z in two parts: as in exponential.h, but r = (z - n / 16) log(2) is a pair, and so is t r; what is added to
 * them, t (cosh r - 1 + sinh r - r), is below 2^-10.9 and off by 2^-48 of itself, r_low r of it included. The second
 * part is rounded by 2^-51 of itself. e^x: r, too, is a pair, off by 2^-77.
 *
 * x^y: z = y log2 |x|, the product of y and a pair. What is added to z's error is 2^-51 of its second part, before that
 * is normalized, and 2^-103 of it. x^y is exact where y is an integer and x an odd number of less than 2^(53 / y), but
 * for a power of two, or the square, or fourth power, of such numbers with 2 y and 4 y; then the sum of both parts,
 * rounded, is it, for that is off by less than half a unit. Of what is exact the rest has more than 53 bits, is a
 * higher power's root (the definition has those), or a power of a power of two, of which all errors are 0.
 *
 * x^(1/k): z = log2 |x| / k, off by 2^-50 of the second part. It is exact where the k-th power of the sum of both parts
 * is |x|, and has no more than 53 bits. (1 + x)^k as x^y, of 1 + x as a sum and its error.
 *
 * log(e^a + e^b) = m + log(1 + e^-d), m the larger, d = |a - b| as a sum and its error; e^-d is off by 2^-60 of itself,
 * and so, at most, is the logarithm. Where they cancel so that too few bits are left, nothing is decided. Powers of
 * less than 2^-900 are taken for that, which changes no result that m is part of. log2(2^a + 2^b) is 1 + (a + b) / 2
 * + log(2) / 8 (a - b)^2, but for (a - b)^4: of a and b below 2^-54 the square is below 2^-22 of a + b, which, of
 * numbers of 30 bits, is at least 2^-30 of the larger, or 0. */
#ifndef SOFTNUM_FUNCTIONS_POWER_H
#define SOFTNUM_FUNCTIONS_POWER_H

#include "elementwise/functions/inverse.h"

typedef struct {
    sn_wf hi, lo, err;
} SN_(long_number);

SN_INLINE sn_wf SN_(number_of)(sn_wi k) { /* |k| < 2^31 */
    return (sn_wf)((sn_wu)k + (sn_wu)SN_(f64)(SN_TO_INTEGER64)) - SN_TO_INTEGER64;
}

/* log2 of x, of at most 30 bits, or of a sum (of_sum): x + below, x being the sum rounded, which is 1 + near + near_low
 * where `small`: |near| < 2^-8. */
SN_INLINE SN_(long_number) SN_(long_log2)(int of_sum, sn_wf x, sn_wf below, sn_wi small, sn_wf near, sn_wf near_low) {
    const sn_wu past = (sn_wu)x - SN_FINE_START, cell = past >> 45 & (SN_FINE_CELLS - 1);
    const sn_wi k = (sn_wi)past >> 52;
    const sn_wf m = (sn_wf)((sn_wu)x - ((sn_wu)k << 52)), inverse = SN_GATHER64(sn_fine_inverse, cell);
    sn_wf whole = SN_(number_of)(k) + SN_GATHER64(sn_fine_cells, cell), rest = SN_GATHER64(sn_fine_cells_low, cell);
    sn_wf r, r_low = {0};
    if (of_sum) {
        const sn_wi most = (sn_wi){0} + 900;
        const sn_wf head = (sn_wf)((sn_wu)m >> 23 << 23), back = SN_(two_to)(-(sn_wi)SN_SELECT64(k > most, most, k));
        r = SN_(either64)(small, near, head * inverse - 1.0);
        r_low = SN_(either64)(small, near_low, ((m - head) + below * back) * inverse);
        whole = SN_(where64)(~small, whole);
        rest = SN_(where64)(~small, rest);
    } else {
        r = m * inverse - 1.0;
    }
    sn_wf square_low, w_low, low, error;
    const sn_wf square = SN_(two_product)(r, r, &square_low), argument = of_sum ? r + r_low : r;
    const sn_wf whole_square = of_sum ? argument * argument : square;
    const sn_wf cubic = argument * (whole_square * SN_(polynomial)(sn_log_cubic_terms, 5, argument));
    const sn_wf w = SN_(fast_two_sum)(r, -0.5 * square, &w_low);
    if (of_sum)
        w_low += r_low + (cubic - (0.5 * square_low + r_low * (r + 0.5 * r_low)));
    else
        w_low += cubic - 0.5 * square_low;
    const sn_wf part = SN_(two_product)(w, SN_(f64)(SN_FUNCTION_PER_LN_2), &low);
    low += SN_MULTIPLY_ADD64(w, SN_(f64)(SN_FUNCTION_PER_LN_2_LOW), w_low * SN_FUNCTION_PER_LN_2);
    SN_(long_number) e;
    e.hi = SN_(two_sum)(whole, part, &error);
    e.lo = (error + rest) + low;
    const sn_wi inexact = of_sum ? (argument != 0.0) : (r != 0.0);
    e.err = (SN_(magnitude64)(cubic) + SN_(magnitude64)(r_low)) * 0x1p-48 + SN_(magnitude64)(w) * 0x1p-100 +
            SN_(where64)(inexact & (whole != 0.0), SN_(f64)(0x1p-92));
    return e;
}

/* 2^(x + low), or e^(x + low), as hi + lo in 1 .. 2 but for 2^-4, and 2^*scale: |x| log2(b) <= 11000, low is x's
 * rounding at the most, and off by what is not known here. */
SN_INLINE SN_(long_number) SN_(long_power)(int base, sn_wf x, sn_wf low, sn_wi *scale) {
    const double steps = base == SN_BASE_E ? SN_FUNCTION_EXP_STEPS : (double)SN_EXP_STEPS;
    const sn_wf shifted = x * steps + SN_TO_INTEGER64, n = shifted - SN_TO_INTEGER64;
    const sn_wi count = (sn_wi)((sn_wu)shifted - (sn_wu)SN_(f64)(SN_TO_INTEGER64));
    sn_wf product, product_low, r_low;
    if (base == SN_BASE_E) {
        product = SN_(two_sum)(x - n * SN_FUNCTION_EXP_HIGH, -n * SN_FUNCTION_EXP_LOW, &product_low);
        product_low += low;
    } else {
        const sn_wf part = x - n * (1.0 / (double)SN_EXP_STEPS);
        product = SN_(two_product)(part, SN_(f64)(SN_FUNCTION_LN_2), &product_low);
        product_low += SN_MULTIPLY_ADD64(part, SN_(f64)(SN_FUNCTION_LN_2_LOW), low * SN_FUNCTION_LN_2);
    }
    const sn_wf r = SN_(two_sum)(product, product_low, &r_low); /* low may be more than r's rounding */
    const sn_wf square = r * r;
    const sn_wf bend =
        square * SN_(polynomial)(sn_cosh_terms, 2, square) + r * (square * SN_(polynomial)(sn_sinh_terms, 2, square));
    const sn_wu j = (sn_wu)count & (SN_EXP_STEPS - 1);
    const sn_wf t = SN_LOOK_UP16(sn_powers, j), t_low = SN_LOOK_UP16(sn_powers_low, j);
    SN_(long_number) e;
    sn_wf error, part_low;
    const sn_wf part = SN_(two_product)(t, r, &part_low);
    e.hi = SN_(fast_two_sum)(t, part, &error);
    e.lo = error + SN_MULTIPLY_ADD64(t, bend + r_low, part_low + SN_MULTIPLY_ADD64(t_low, r + bend, t_low));
    e.err = (SN_(magnitude64)(bend) + SN_(magnitude64)(e.lo) * 0x1p-4) * 0x1p-47 + SN_(magnitude64)(r) * 0x1p-99 +
            SN_(magnitude64)(t_low) * 0x1p-50;
    if (base == SN_BASE_E) e.err += SN_(where64)(count != 0, SN_(f64)(0x1p-76));
    *scale = count >> 4;
    return e;
}

/* 2^z, z = (hi + lo) but for err; *z what it was normalized and limited to. */
SN_INLINE SN_(enclosure) SN_(power_of_long)(sn_wf hi, sn_wf lo, sn_wf err, sn_wf *z) {
    sn_wf low;
    const sn_wf sum = SN_(fast_two_sum)(hi, lo, &low);
    const sn_wi far = SN_(magnitude64)(sum) > 11000.0;
    *z = SN_(limited)(sum, 11000.0);
    SN_(enclosure) e;
    const SN_(long_number) power = SN_(long_power)(SN_BASE_2, *z, SN_(where64)(~far, low), &e.scale);
    e.hi = power.hi;
    e.lo = power.lo;
    e.err = power.err + SN_(where64)(~far, err + err);
    e.outside = (sn_wu){0};
    return e;
}

/* Whether y is an integer; *odd: an odd one. */
SN_INLINE sn_wi SN_(is_whole)(sn_wf y, sn_wi *odd) {
    const sn_wf size = SN_(magnitude64)(y), shifted = size + 0x1p52;
    const sn_wi large = size >= 0x1p52, whole = large | ((shifted - 0x1p52) == size);
    *odd = whole & (((sn_wi)SN_SELECT64(large, size, shifted) & 1) != 0) & (size < 0x1p53);
    return whole;
}

/* The exponent of the last bit that is set, of a normal number above 0. */
SN_INLINE sn_wi SN_(last_exponent)(sn_wf x) {
    const sn_wu bits = (sn_wu)x, sig = (bits & 0xfffffffffffffu) | 0x10000000000000u, last = sig & (0 - sig);
    const sn_wf number = (sn_wf)(last + 0x4330000000000000u) - 0x1p52; /* 2^52 + last, or 2^53 */
    return (sn_wi)(bits >> 52) - 52 - 1023 + ((sn_wi)((sn_wu)number >> 52) - 1023);
}

/* Where the sum has no bits of `rest` and is not told from what it stands for: whether it is worth to look. */
SN_INLINE sn_wi SN_(in_doubt)(const SN_(enclosure) * e, sn_wu rest, sn_wf *sum) {
    sn_wf error;
    *sum = SN_(two_sum)(e->hi, e->lo, &error);
    return ((sn_wi)((sn_wu)*sum & rest) == 0) & (SN_(magnitude64)(error) <= e->err) & (e->err != 0.0) &
           (e->err * 0x1p54 < *sum);
}

/* *e is the sum, exactly. */
SN_INLINE void SN_(settle)(SN_(enclosure) * e, sn_wi exact, sn_wf sum) {
    e->hi = SN_(either64)(exact, sum, e->hi);
    e->lo = SN_(where64)(~exact, e->lo);
    e->err = SN_(where64)(~exact, e->err);
}

/* The exact ones of x^y = 2^z, x > 0: see above. */
SN_INLINE void SN_(settle_power)(SN_(enclosure) * e, sn_wu rest, sn_wf x, sn_wf y, sn_wf z) {
    sn_wf sum;
    sn_wi doubt = SN_(in_doubt)(e, rest, &sum), exact = {0};
    if (!SN_ANY_GREATER64((sn_wi){0}, doubt)) return;
    for (int i = 0; i < 3; i++) {
        sn_wi odd;
        const sn_wi whole = SN_(is_whole)(y, &odd) & (y > 0.0) & (y < 64.0);
        const sn_wf bits = z - SN_(where64)(whole, y) * SN_(number_of)(SN_(last_exponent)(x));
        exact |= doubt & whole & (bits < 52.5);
        const sn_wf root = SN_SQRT64(x);
        doubt &= (sn_wi)((sn_wu)root << 37 == 0) & (root * root == x);
        x = root;
        y = y + y;
    }
    SN_(settle)(e, exact, sum);
}

/* The exact ones of x^(1/k) = 2^z, x > 0, k an integer. */
SN_INLINE void SN_(settle_root)(SN_(enclosure) * e, sn_wu rest, sn_wf x, sn_wf k) {
    sn_wf sum;
    const sn_wi usual = (k >= 1.0) & (k < 32.0), doubt = SN_(in_doubt)(e, rest, &sum) & usual;
    if (!SN_ANY_GREATER64((sn_wi){0}, doubt)) return;
    const sn_wi count = (sn_wi)((sn_wu)(SN_(where64)(usual, k) + SN_TO_INTEGER64) - (sn_wu)SN_(f64)(SN_TO_INTEGER64));
    sn_wf power = SN_(f64)(1.0), square = sum;
    for (int bit = 0; bit < 5; bit++) {
        power *= SN_(either64)(((count >> bit) & 1) != 0, square, SN_(f64)(1.0));
        square *= square;
    }
    const sn_wi width = (sn_wi)((sn_wu)sum >> 52) - 1023 + 1 - SN_(last_exponent)(sum);
    const sn_wf scaled = (sn_wf)((sn_wu)x - ((sn_wu)(count * e->scale) << 52));
    SN_(settle)(e, doubt & (count * width <= 53) & (power == scaled), sum);
}

/* Where x^y, powr or pown is invalid. */
SN_INLINE sn_wu SN_(not_a_power)(int function, sn_wf x, sn_wi whole) {
    const sn_wi negative = x < 0.0;
    return (sn_wu)(function == SN_ELEMENTARY_pow    ? negative & ~whole
                   : function == SN_ELEMENTARY_pown ? ~whole
                                                    : negative);
}

/* |x|^y as x^y: with x's sign where y is odd, and 0 of 0. */
SN_INLINE SN_(enclosure) SN_(signed_power)(int function, SN_(enclosure) e, sn_wf x, sn_wi odd, sn_wi zero) {
    const sn_wu sign = function == SN_ELEMENTARY_powr ? (sn_wu){0} : (sn_wu)x & SN_SIGN64 & (sn_wu)odd;
    e.hi = SN_(with_sign64)(SN_(where64)(~zero, e.hi), sign);
    e.lo = SN_(with_sign64)(SN_(where64)(~zero, e.lo), sign);
    e.err = SN_(where64)(~zero, e.err);
    return e;
}

/* x^y, powr, pown; (1 + x)^y: what is invalid; *left: what is the definition's. */
SN_INLINE SN_(enclosure) SN_(power_in_lanes)(int function, sn_wf x, sn_wf y, sn_wu rest, sn_wu *invalid, sn_wu *left) {
    const int more = function == SN_ELEMENTARY_compound;
    sn_wi odd, zero = {0};
    const sn_wi whole = SN_(is_whole)(y, &odd);
    sn_wf base, below = {0};
    SN_(long_number) log;
    if (more) {
        const sn_wi within = x > -1.0;
        const sn_wf number = SN_(where64)(within, x);
        *invalid = (sn_wu)(~whole | (x < -1.0));
        *left |= (sn_wu)(x == -1.0);
        base = SN_(two_sum)(SN_(f64)(1.0), number, &below);
        log = SN_(long_log2)(1, base, below, SN_(magnitude64)(number) < 0x1p-8, number, (sn_wf){0});
    } else {
        *invalid = SN_(not_a_power)(function, x, whole);
        zero = x == 0.0;
        *left |= (sn_wu)(zero & (y <= 0.0));
        base = SN_(either64)(zero, SN_(f64)(1.0), SN_(magnitude64)(x));
        log = SN_(long_log2)(0, base, below, zero, base, base);
    }
    const sn_wf times = SN_(limited)(y, 0x1p400); /* beyond all formats, but of 1 */
    sn_wf product_low, z;
    const sn_wf product = SN_(two_product)(times, log.hi, &product_low), low = times * log.lo + product_low;
    const sn_wf err =
        SN_(magnitude64)(times) * log.err +
        SN_(where64)(log.err != 0.0, SN_(magnitude64)(low) * 0x1p-51 + SN_(magnitude64)(product) * 0x1p-103);
    SN_(enclosure) e = SN_(power_of_long)(product, low, err, &z);
    SN_(settle_power)(&e, rest, base, SN_(where64)(below == 0.0, y), z); /* else base has too many bits */
    return more ? e : SN_(signed_power)(function, e, x, odd, zero);
}

SN_INLINE SN_(enclosure) SN_(rootn_in_lanes)(sn_wf x, sn_wf k, sn_wu rest, sn_wu *invalid, sn_wu *left) {
    sn_wi odd;
    const sn_wi whole = SN_(is_whole)(k, &odd), none = k == 0.0, zero = x == 0.0;
    *invalid = (sn_wu)(~whole | none | ((x < 0.0) & ~odd));
    *left |= (sn_wu)zero;
    const sn_wf size = SN_(either64)(zero, SN_(f64)(1.0), SN_(magnitude64)(x));
    const sn_wf degree = SN_(either64)(none, SN_(f64)(1.0), SN_(limited)(k, 0x1p300)); /* beyond, it is beside 1 too */
    const SN_(long_number) log = SN_(long_log2)(0, size, (sn_wf){0}, zero, size, size);
    sn_wf back_low, z;
    const sn_wf quotient = log.hi / degree, back = SN_(two_product)(quotient, degree, &back_low);
    const sn_wf low = (((log.hi - back) - back_low) + log.lo) / degree;
    const sn_wf err = log.err / SN_(magnitude64)(degree) + SN_(magnitude64)(low) * 0x1p-50 +
                      SN_(where64)((log.err != 0.0) | (low != 0.0), SN_(magnitude64)(quotient) * 0x1p-103);
    SN_(enclosure) e = SN_(power_of_long)(quotient, low, err, &z);
    SN_(settle_root)(&e, rest, size, degree);
    e.hi = SN_(with_sign64)(e.hi, (sn_wu)x & SN_SIGN64);
    e.lo = SN_(with_sign64)(e.lo, (sn_wu)x & SN_SIGN64);
    return e;
}

/* log(e^a + e^b), log2(2^a + 2^b) */
SN_INLINE SN_(enclosure) SN_(log_of_sum_in_lanes)(int base, sn_wf a, sn_wf b) {
    const sn_wi less = a < b;
    const sn_wf m = SN_(either64)(less, b, a), other = SN_(either64)(less, a, b);
    const double most = base == SN_BASE_E ? 7600.0 : 11000.0;
    sn_wf apart_low, y_low, below, low, error;
    const sn_wf apart = SN_(two_sum)(other, -m, &apart_low);
    const sn_wi far = apart < -most;
    sn_wi scale;
    const SN_(long_number) power =
        SN_(long_power)(base, SN_(either64)(far, SN_(f64)(-most), apart), SN_(where64)(~far, apart_low), &scale);
    const sn_wi least = (sn_wi){0} - 900;
    const sn_wf unit = SN_(two_to)((sn_wi)SN_SELECT64(scale < least, least, scale));
    const sn_wf y = SN_(fast_two_sum)(power.hi * unit, power.lo * unit, &y_low);
    const sn_wf sum = SN_(two_sum)(SN_(f64)(1.0), y, &below);
    SN_(long_number) log = SN_(long_log2)(1, sum, below + y_low, y < 0x1p-8, y, y_low);
    if (base == SN_BASE_E) {
        const sn_wf part = SN_(two_product)(log.hi, SN_(f64)(SN_FUNCTION_LN_2), &low);
        low += SN_MULTIPLY_ADD64(log.hi, SN_(f64)(SN_FUNCTION_LN_2_LOW), log.lo * SN_FUNCTION_LN_2);
        log.err += SN_(magnitude64)(part) * 0x1p-101 + SN_(magnitude64)(low) * 0x1p-50;
        log.hi = part;
        log.lo = low;
    }
    SN_(enclosure) e;
    e.hi = SN_(two_sum)(m, log.hi, &error);
    e.lo = error + log.lo;
    const sn_wf err = log.err + power.err * unit * 1.5;
    e.err = err + SN_(where64)(err != 0.0, SN_(magnitude64)(e.lo) * 0x1p-52);
    e.scale = (sn_wi){0};
    e.outside = (sn_wu)((m == 0.0) & (scale < least));
    if (base == SN_BASE_2) { /* beside 1 */
        const sn_wi tiny = (SN_(magnitude64)(a) < 0x1p-54) & (SN_(magnitude64)(b) < 0x1p-54), equal = a == b;
        const sn_wf both = 0.5 * (a + b), beside = SN_(either64)(both == 0.0, (0.5 * SN_FUNCTION_LN_2) * (a * a), both);
        e.hi = SN_(either64)(tiny, SN_(f64)(1.0), e.hi);
        e.lo = SN_(either64)(tiny, beside, e.lo);
        e.err = SN_(either64)(tiny, SN_(where64)(~equal, SN_(magnitude64)(beside) * 0.5), e.err);
    }
    return e;
}

#endif

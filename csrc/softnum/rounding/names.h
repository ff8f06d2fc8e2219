/* Formats by name: those of softnum.format, whose facts a test compares with these (tests/rtl/test_dpi.py), and floats
 * by their parameters.
 *
 * A name stands for a field of 16 bits that spells the format out, so that no table of handles is needed:
 *   0                         none
 *   0000 0xxx xxxx xxxx       1 + index of a registered format
 *   0000 1xxx xxxx xxxx       none; csrc/dpi has users' names there
 *   0001 t00e eebb bbbb       posit or (t) linear takum: es, bits
 *   001y yyyy yyyy yyyy       eXmY: X << 6 | Y
 *   01kk kkkk pppp ppss       P3109: K - 1, P - 1, unsigned, finite
 *   1uii iiii ifff ffff       fixed point: unsigned, I, F, each modulo 128, from -63 to 64 */
#ifndef SOFTNUM_NAMES_H
#define SOFTNUM_NAMES_H

#include <stddef.h>
#include <string.h>

#include "softnum/rounding/format.h"
#include "softnum/rounding/tapered.h"

enum { SN_NANS_IEEE, SN_NANS_ALL_ONES, SN_NANS_NEGATIVE_ZERO, SN_NANS_NONE };

/* A float format's facts, as of softnum.FloatFormat. */
typedef struct {
    const char *name;
    sn_i32 exponent_bits, mantissa_bits, bias, is_signed, nan_codes, infinities, negative_zero, has_zero, lowest,
        saturating;
} sn_float_facts;

static const sn_float_facts sn_registered[] = {
    {"binary16", 5, 10, 15, 1, SN_NANS_IEEE, 1, 1, 1, SN_LOWEST_SUBNORMAL, 0},
    {"binary32", 8, 23, 127, 1, SN_NANS_IEEE, 1, 1, 1, SN_LOWEST_SUBNORMAL, 0},
    {"binary64", 11, 52, 1023, 1, SN_NANS_IEEE, 1, 1, 1, SN_LOWEST_SUBNORMAL, 0},
    {"bfloat16", 8, 7, 127, 1, SN_NANS_IEEE, 1, 1, 1, SN_LOWEST_SUBNORMAL, 0},
    {"tf32", 8, 10, 127, 1, SN_NANS_IEEE, 1, 1, 1, SN_LOWEST_SUBNORMAL, 0},
    {"e5m2", 5, 2, 15, 1, SN_NANS_IEEE, 1, 1, 1, SN_LOWEST_SUBNORMAL, 0},
    {"e4m3", 4, 3, 7, 1, SN_NANS_IEEE, 1, 1, 1, SN_LOWEST_SUBNORMAL, 0},
    {"e3m4", 3, 4, 3, 1, SN_NANS_IEEE, 1, 1, 1, SN_LOWEST_SUBNORMAL, 0},
    {"e4m3fn", 4, 3, 7, 1, SN_NANS_ALL_ONES, 0, 1, 1, SN_LOWEST_SUBNORMAL, 0},
    {"e4m3fnuz", 4, 3, 8, 1, SN_NANS_NEGATIVE_ZERO, 0, 0, 1, SN_LOWEST_SUBNORMAL, 0},
    {"e5m2fnuz", 5, 2, 16, 1, SN_NANS_NEGATIVE_ZERO, 0, 0, 1, SN_LOWEST_SUBNORMAL, 0},
    {"e4m3b11fnuz", 4, 3, 11, 1, SN_NANS_NEGATIVE_ZERO, 0, 0, 1, SN_LOWEST_SUBNORMAL, 0},
    {"e8m0fnu", 8, 0, 127, 0, SN_NANS_ALL_ONES, 0, 0, 0, SN_LOWEST_NORMAL, 0},
    {"e3m2fn", 3, 2, 3, 1, SN_NANS_NONE, 0, 1, 1, SN_LOWEST_SUBNORMAL, 0},
    {"e2m3fn", 2, 3, 1, 1, SN_NANS_NONE, 0, 1, 1, SN_LOWEST_SUBNORMAL, 0},
    {"e2m1fn", 2, 1, 1, 1, SN_NANS_NONE, 0, 1, 1, SN_LOWEST_SUBNORMAL, 0},
    {"dlfloat16", 6, 9, 31, 1, SN_NANS_ALL_ONES, 0, 1, 1, SN_LOWEST_NORMAL, 0},
};
enum {
    SN_NAMES_REGISTERED = sizeof(sn_registered) / sizeof(sn_registered[0]),
    SN_NAMES_TAKUM = 1 << 11,
    SN_NAMES_TAPERED = 1 << 12,
    SN_NAMES_FLOAT = 1 << 13,
    SN_NAMES_P3109 = 1 << 14,
    SN_NAMES_FIXED = 1 << 15
};

SN_FN sn_u64 sn_names_ones(sn_i32 bits) { return bits ? ~(sn_u64)0 >> (64 - bits) : 0; }

SN_FN void sn_fill_width(sn_format *f, sn_i32 bits, sn_i32 is_signed) {
    memset(f, 0, sizeof *f);
    f->bits = bits;
    f->is_signed = is_signed;
    f->has_zero = 1;
    f->sign_mask = is_signed ? (sn_u64)1 << (bits - 1) : 0;
    f->magnitude_mask = sn_names_ones(bits - is_signed);
}

/* As FloatFormat checks and derives them. */
SN_FN int sn_fill_facts(const sn_float_facts *x, sn_format *f) {
    const sn_i32 e = x->exponent_bits, m = x->mantissa_bits, bits = e + m + x->is_signed;
    if (e < 1 || e > 15 + (m == 0) || m < 0 || m > 61 || bits > 64 || (m == 0 && x->nan_codes == SN_NANS_IEEE))
        return 0;
    sn_fill_width(f, bits, x->is_signed);
    const sn_u64 top = f->magnitude_mask, hidden = (sn_u64)1 << m;
    f->kind = SN_FLOAT;
    f->mantissa_bits = m;
    f->lowest = x->lowest;
    f->has_zero = x->has_zero;
    f->negative_zero = x->negative_zero;
    f->saturating = x->saturating;
    f->has_inf = x->infinities;
    f->has_nan = x->nan_codes != SN_NANS_NONE;
    f->nan_is_negative_zero = x->nan_codes == SN_NANS_NEGATIVE_ZERO;
    if (f->has_inf)
        f->inf_code = x->nan_codes == SN_NANS_IEEE ? top + 1 - hidden : top - (x->nan_codes == SN_NANS_ALL_ONES);
    f->max_code = f->has_inf ? f->inf_code - 1 : top - (x->nan_codes == SN_NANS_ALL_ONES);
    if (x->nan_codes == SN_NANS_IEEE) {
        f->nan_first = f->inf_code + 1;
        f->nan_code = f->inf_code + (hidden >> 1);
        if (m >= 2) f->quiet_bit = hidden >> 1;
    } else if (f->has_nan) {
        f->nan_first = top;
        f->nan_code = f->nan_is_negative_zero ? f->sign_mask : top;
    }
    f->emin = (x->lowest == SN_LOWEST_NORMAL ? 0 : 1) - x->bias;
    f->emax = (sn_i32)(f->max_code >> m) - x->bias;
    f->p3109 =
        x->nan_codes == (x->is_signed ? SN_NANS_NEGATIVE_ZERO : SN_NANS_ALL_ONES) && (f->has_inf || f->saturating);
    const sn_u64 least = x->lowest == SN_LOWEST_ZERO ? hidden : x->has_zero || x->lowest != SN_LOWEST_NORMAL;
    return f->max_code >= least;
}

SN_FN int sn_fill_p3109(sn_i32 k, sn_i32 p, sn_i32 is_unsigned, sn_i32 finite, sn_format *f) {
    const sn_i32 e = k - p + is_unsigned;
    if (k < 3 || k > 64 || p < 1 || p > k - !is_unsigned || e < 1 || e > 15 + (p == 1)) return 0;
    const sn_float_facts x = {
        "",      e, p - 1, 1 << (e - 1),        !is_unsigned, is_unsigned ? SN_NANS_ALL_ONES : SN_NANS_NEGATIVE_ZERO,
        !finite, 0, 1,     SN_LOWEST_SUBNORMAL, finite};
    return sn_fill_facts(&x, f);
}

/* What contradicts itself in a definition, as FloatFormat says it; NULL if nothing does. */
SN_FN const char *sn_facts_contradiction(const sn_float_facts *x) {
    if (x->nan_codes == SN_NANS_IEEE && !x->infinities) return "NaNs like IEEE 754's imply infinities";
    if (x->nan_codes == SN_NANS_IEEE && !x->mantissa_bits)
        return "without a fraction NaNs like IEEE 754's have no code";
    if (x->nan_codes == SN_NANS_NEGATIVE_ZERO && !x->is_signed) return "a NaN in the code of -0 needs a sign";
    if (!x->has_zero && (x->lowest != SN_LOWEST_NORMAL || x->is_signed))
        return "a format without zero is unsigned, and its lowest numbers are normal";
    if (x->saturating && x->infinities) return "what saturates has no infinities";
    return NULL;
}

/* A number from -63 to 64 in seven bits. */
SN_FN sn_i32 sn_names_places(sn_u32 bits) { return bits > 64 ? (sn_i32)bits - 128 : (sn_i32)bits; }

/* The format of a field; 0 if the field stands for none, or for a posit or takum. */
SN_FN int sn_fill_named(sn_u32 field, sn_format *f) {
    if (field & SN_NAMES_FIXED) {
        const sn_i32 whole = sn_names_places((field >> 7) & 127), fraction = sn_names_places(field & 127),
                     is_signed = !(field & SN_NAMES_P3109);
        if (whole + fraction > 64 || whole + fraction < 1 + is_signed) return 0;
        sn_fill_width(f, whole + fraction, is_signed);
        f->kind = SN_FIXED;
        f->mantissa_bits = fraction;
        f->max_code = f->magnitude_mask;
        return 1;
    }
    if (field & SN_NAMES_P3109)
        return sn_fill_p3109((sn_i32)((field >> 8) & 63) + 1, (sn_i32)((field >> 2) & 63) + 1, (field >> 1) & 1,
                             field & 1, f);
    if (field & SN_NAMES_FLOAT) {
        const sn_i32 e = (field >> 6) & 127, m = field & 63;
        if (e < 1 || e > 15 + (m == 0)) return 0;
        const sn_float_facts x = {"", e, m, (1 << (e - 1)) - 1, 1, SN_NANS_IEEE, 1, 1, 1, SN_LOWEST_SUBNORMAL, 0};
        return sn_fill_facts(&x, f);
    }
    return field >= 1 && field <= SN_NAMES_REGISTERED && sn_fill_facts(&sn_registered[field - 1], f);
}

/* The same of a posit or a linear takum. */
SN_FN int sn_fill_named_tapered(sn_u32 field, sn_tapered *f) {
    if ((field & ~(sn_u32)(SN_NAMES_TAKUM | 511)) != SN_NAMES_TAPERED) return 0;
    f->takum = (field & SN_NAMES_TAKUM) != 0;
    f->bits = field & 63;
    f->es = (field >> 6) & 7;
    return f->bits >= SN_TAPERED_LEAST && f->bits <= SN_TAPERED_MOST && f->es <= (f->takum ? 0 : SN_TAPERED_MOST_ES);
}

/* A number of one or two digits at *p, which moves on; -1 if there is none. */
SN_FN sn_i32 sn_names_number(const char **p) {
    sn_i32 value = -1;
    for (int i = 0; i < 2 && **p >= '0' && **p <= '9'; i++, ++*p)
        value = (value < 0 ? 0 : 10 * value) + (**p - '0');
    return value;
}

/* The same with a sign, modulo 128; -1 if it is none from -63 to 64. */
SN_FN sn_i32 sn_names_places_of(const char **p) {
    const sn_i32 minus = **p == '-';
    *p += minus;
    const sn_i32 x = sn_names_number(p);
    return x < 0 || x > 64 - minus ? -1 : minus ? -x & 127 : x;
}

/* Whether *p goes on with the text, over which it moves. */
SN_FN int sn_names_over(const char **p, const char *text) {
    const size_t n = strlen(text);
    if (strncmp(*p, text, n)) return 0;
    *p += n;
    return 1;
}

/* The field of i8 ... u64; 0 of other names. */
SN_FN sn_u32 sn_names_integer(const char *name) {
    static const char *const widths[] = {"8", "16", "32", "64"};
    for (sn_u32 i = 0; (name[0] == 'i' || name[0] == 'u') && i < 4; i++)
        if (!strcmp(name + 1, widths[i]))
            return SN_NAMES_FIXED | (name[0] == 'u' ? SN_NAMES_P3109 : 0) | (8u << i) << 7;
    return 0;
}

/* The field of a name in lower case; 0 if it is none. */
SN_FN sn_u32 sn_named_field(const char *name) {
    sn_format f;
    sn_tapered t;
    const char *p = name;
    sn_i32 x, y;
    sn_u32 field = 0;
    for (sn_u32 i = 0; i < SN_NAMES_REGISTERED; i++)
        if (!strcmp(name, sn_registered[i].name)) return i + 1;
    if ((field = sn_names_integer(name)) != 0) return field;
    if (sn_names_over(&p, "posit") || sn_names_over(&p, "takum_linear")) {
        const int takum = name[0] == 't';
        if ((x = sn_names_number(&p)) < 0 || x > 63) return 0;
        y = takum ? 0 : 2;
        if (!takum && sn_names_over(&p, "_es") && ((y = sn_names_number(&p)) < 0 || y > 7 || p[-2] != 's')) return 0;
        field = (sn_u32)(SN_NAMES_TAPERED | (takum ? SN_NAMES_TAKUM : 0) | y << 6 | x);
        return *p == 0 && sn_fill_named_tapered(field, &t) ? field : 0;
    }
    if (sn_names_over(&p, "e")) {
        if ((x = sn_names_number(&p)) < 0 || !sn_names_over(&p, "m") || (y = sn_names_number(&p)) < 0 || y > 61)
            return 0;
        field = SN_NAMES_FLOAT | (sn_u32)(x << 6) | (sn_u32)y;
    } else if (sn_names_over(&p, "binary")) {
        if ((x = sn_names_number(&p)) < 1 || x > 64 || !sn_names_over(&p, "p") || (y = sn_names_number(&p)) < 1 ||
            y > 64)
            return 0;
        field = SN_NAMES_P3109 | (sn_u32)(x - 1) << 8 | (sn_u32)(y - 1) << 2;
        field |= sn_names_over(&p, "u") ? 2 : sn_names_over(&p, "s") ? 0 : SN_NAMES_FIXED;
        field |= sn_names_over(&p, "f") ? 1 : sn_names_over(&p, "e") ? 0 : SN_NAMES_FIXED;
        if (field & SN_NAMES_FIXED) return 0;
    } else {
        field = sn_names_over(&p, "u") ? SN_NAMES_FIXED | SN_NAMES_P3109 : SN_NAMES_FIXED;
        if (!sn_names_over(&p, "q") || (x = sn_names_places_of(&p)) < 0 || !sn_names_over(&p, ".") ||
            (y = sn_names_places_of(&p)) < 0)
            return 0;
        field |= (sn_u32)(x << 7) | (sn_u32)y;
    }
    return *p == 0 && sn_fill_named(field, &f) ? field : 0;
}

#endif

/* Names of formats: those of softnum.format, whose facts a test compares with these (tests/rtl/test_dpi.py).
 *
 * A field of a handle, 16 bits, spells the format out, so that handles need no table and are the same everywhere:
 *   0                         the one before it
 *   0000 0xxx xxxx xxxx       1 + index of a registered format
 *   0000 1xxx xxxx xxxx       index of one that softnum_dpi_define named: of this process alone
 *   0001 t00e eebb bbbb       posit or (t) linear takum: es, bits
 *   001y yyyy yyyy yyyy       eXmY: X << 6 | Y
 *   01kk kkkk pppp ppss       P3109: K - 1, P - 1, unsigned, finite
 *   1uii iiii ifff ffff       fixed point: unsigned, I, F, each modulo 128, from -63 to 64 */
#include "names.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const softnum_facts registered[] = {
    {"binary16", 5, 10, 15, 1, NAN_IEEE, 1, 1, 1, SN_LOWEST_SUBNORMAL, 0},
    {"binary32", 8, 23, 127, 1, NAN_IEEE, 1, 1, 1, SN_LOWEST_SUBNORMAL, 0},
    {"binary64", 11, 52, 1023, 1, NAN_IEEE, 1, 1, 1, SN_LOWEST_SUBNORMAL, 0},
    {"bfloat16", 8, 7, 127, 1, NAN_IEEE, 1, 1, 1, SN_LOWEST_SUBNORMAL, 0},
    {"tf32", 8, 10, 127, 1, NAN_IEEE, 1, 1, 1, SN_LOWEST_SUBNORMAL, 0},
    {"e5m2", 5, 2, 15, 1, NAN_IEEE, 1, 1, 1, SN_LOWEST_SUBNORMAL, 0},
    {"e4m3", 4, 3, 7, 1, NAN_IEEE, 1, 1, 1, SN_LOWEST_SUBNORMAL, 0},
    {"e3m4", 3, 4, 3, 1, NAN_IEEE, 1, 1, 1, SN_LOWEST_SUBNORMAL, 0},
    {"e4m3fn", 4, 3, 7, 1, NAN_ALL_ONES, 0, 1, 1, SN_LOWEST_SUBNORMAL, 0},
    {"e4m3fnuz", 4, 3, 8, 1, NAN_NEGATIVE_ZERO, 0, 0, 1, SN_LOWEST_SUBNORMAL, 0},
    {"e5m2fnuz", 5, 2, 16, 1, NAN_NEGATIVE_ZERO, 0, 0, 1, SN_LOWEST_SUBNORMAL, 0},
    {"e4m3b11fnuz", 4, 3, 11, 1, NAN_NEGATIVE_ZERO, 0, 0, 1, SN_LOWEST_SUBNORMAL, 0},
    {"e8m0fnu", 8, 0, 127, 0, NAN_ALL_ONES, 0, 0, 0, SN_LOWEST_NORMAL, 0},
    {"e3m2fn", 3, 2, 3, 1, NAN_NONE, 0, 1, 1, SN_LOWEST_SUBNORMAL, 0},
    {"e2m3fn", 2, 3, 1, 1, NAN_NONE, 0, 1, 1, SN_LOWEST_SUBNORMAL, 0},
    {"e2m1fn", 2, 1, 1, 1, NAN_NONE, 0, 1, 1, SN_LOWEST_SUBNORMAL, 0},
    {"dlfloat16", 6, 9, 31, 1, NAN_ALL_ONES, 0, 1, 1, SN_LOWEST_NORMAL, 0},
};
enum {
    REGISTERED = sizeof(registered) / sizeof(registered[0]),
    TAKUM = 1 << 11,
    TAPERED = 1 << 12,
    FLOAT = 1 << 13,
    P3109 = 1 << 14,
    FIXED = 1 << 15
};

static sn_u64 ones(sn_i32 bits) { return bits ? ~(sn_u64)0 >> (64 - bits) : 0; }

static void fill_width(sn_format *f, sn_i32 bits, sn_i32 is_signed) {
    memset(f, 0, sizeof *f);
    f->bits = bits;
    f->is_signed = is_signed;
    f->has_zero = 1;
    f->sign_mask = is_signed ? (sn_u64)1 << (bits - 1) : 0;
    f->magnitude_mask = ones(bits - is_signed);
}

/* As FloatFormat checks and derives them. */
int softnum_fill_facts(const softnum_facts *x, sn_format *f) {
    const sn_i32 e = x->exponent_bits, m = x->mantissa_bits, bits = e + m + x->is_signed;
    if (e < 1 || e > 15 + (m == 0) || m < 0 || m > 61 || bits > 64 || (m == 0 && x->nan_codes == NAN_IEEE)) return 0;
    fill_width(f, bits, x->is_signed);
    const sn_u64 top = f->magnitude_mask, hidden = (sn_u64)1 << m;
    f->kind = SN_FLOAT;
    f->mantissa_bits = m;
    f->lowest = x->lowest;
    f->has_zero = x->has_zero;
    f->negative_zero = x->negative_zero;
    f->saturating = x->saturating;
    f->has_inf = x->infinities;
    f->has_nan = x->nan_codes != NAN_NONE;
    f->nan_is_negative_zero = x->nan_codes == NAN_NEGATIVE_ZERO;
    if (f->has_inf) f->inf_code = x->nan_codes == NAN_IEEE ? top + 1 - hidden : top - (x->nan_codes == NAN_ALL_ONES);
    f->max_code = f->has_inf ? f->inf_code - 1 : top - (x->nan_codes == NAN_ALL_ONES);
    if (x->nan_codes == NAN_IEEE) {
        f->nan_first = f->inf_code + 1;
        f->nan_code = f->inf_code + (hidden >> 1);
        if (m >= 2) f->quiet_bit = hidden >> 1;
    } else if (f->has_nan) {
        f->nan_first = top;
        f->nan_code = f->nan_is_negative_zero ? f->sign_mask : top;
    }
    f->emin = (x->lowest == SN_LOWEST_NORMAL ? 0 : 1) - x->bias;
    f->emax = (sn_i32)(f->max_code >> m) - x->bias;
    f->p3109 = x->nan_codes == (x->is_signed ? NAN_NEGATIVE_ZERO : NAN_ALL_ONES) && (f->has_inf || f->saturating);
    const sn_u64 least = x->lowest == SN_LOWEST_ZERO ? hidden : x->has_zero || x->lowest != SN_LOWEST_NORMAL;
    return f->max_code >= least;
}

static int fill_p3109(sn_i32 k, sn_i32 p, sn_i32 is_unsigned, sn_i32 finite, sn_format *f) {
    const sn_i32 e = k - p + is_unsigned;
    if (k < 3 || k > 64 || p < 1 || p > k - !is_unsigned || e < 1 || e > 15 + (p == 1)) return 0;
    const softnum_facts x = {
        "",      e, p - 1, 1 << (e - 1),        !is_unsigned, is_unsigned ? NAN_ALL_ONES : NAN_NEGATIVE_ZERO,
        !finite, 0, 1,     SN_LOWEST_SUBNORMAL, finite};
    return softnum_fill_facts(&x, f);
}

/* A number from -63 to 64 in seven bits. */
static sn_i32 places(sn_u32 bits) { return bits > 64 ? (sn_i32)bits - 128 : (sn_i32)bits; }

int softnum_fill(sn_u32 field, sn_format *f) {
    if (field & FIXED) {
        const sn_i32 whole = places((field >> 7) & 127), fraction = places(field & 127), is_signed = !(field & P3109);
        if (whole + fraction > 64 || whole + fraction < 1 + is_signed) return 0;
        fill_width(f, whole + fraction, is_signed);
        f->kind = SN_FIXED;
        f->mantissa_bits = fraction;
        f->max_code = f->magnitude_mask;
        return 1;
    }
    if (field & P3109)
        return fill_p3109((sn_i32)((field >> 8) & 63) + 1, (sn_i32)((field >> 2) & 63) + 1, (field >> 1) & 1, field & 1,
                          f);
    if (field & FLOAT) {
        const sn_i32 e = (field >> 6) & 127, m = field & 63;
        if (e < 1 || e > 15 + (m == 0)) return 0;
        const softnum_facts x = {"", e, m, (1 << (e - 1)) - 1, 1, NAN_IEEE, 1, 1, 1, SN_LOWEST_SUBNORMAL, 0};
        return softnum_fill_facts(&x, f);
    }
    if ((field & ~(sn_u32)(SOFTNUM_DEFINED - 1)) == SOFTNUM_DEFINED) return softnum_fill_defined(field, f, NULL);
    return field >= 1 && field <= REGISTERED && softnum_fill_facts(&registered[field - 1], f);
}

int softnum_fill_tapered(sn_u32 field, sn_tapered *f) {
    if ((field & ~(sn_u32)(TAKUM | 511)) != TAPERED) return 0;
    f->takum = (field & TAKUM) != 0;
    f->bits = field & 63;
    f->es = (field >> 6) & 7;
    return f->bits >= SN_TAPERED_LEAST && f->bits <= SN_TAPERED_MOST && f->es <= (f->takum ? 0 : SN_TAPERED_MOST_ES);
}

void softnum_name(sn_u32 field, char *text) {
    sn_format f;
    sn_tapered t;
    if (softnum_fill_tapered(field, &t))
        snprintf(text, 16, t.takum ? "takum_linear%d" : t.es == 2 ? "posit%d" : "posit%d_es%d", (int)t.bits, (int)t.es);
    else if (!softnum_fill(field, &f))
        snprintf(text, 16, "(none)");
    else if (field & FIXED)
        snprintf(text, 16, "%sq%d.%d", field & P3109 ? "u" : "", (int)places((field >> 7) & 127),
                 (int)places(field & 127));
    else if (field & P3109)
        snprintf(text, 16, "binary%up%u%c%c", ((field >> 8) & 63) + 1, ((field >> 2) & 63) + 1, field & 2 ? 'u' : 's',
                 field & 1 ? 'f' : 'e');
    else if (field & FLOAT)
        snprintf(text, 16, "e%um%u", (field >> 6) & 127, field & 63);
    else if (field & SOFTNUM_DEFINED)
        softnum_fill_defined(field, &f, text);
    else
        snprintf(text, 16, "%s", registered[field - 1].name);
}

/* A number of one or two digits at *p, which moves on; -1 if there is none. */
static sn_i32 number(const char **p) {
    sn_i32 value = -1;
    for (int i = 0; i < 2 && **p >= '0' && **p <= '9'; i++, ++*p)
        value = (value < 0 ? 0 : 10 * value) + (**p - '0');
    return value;
}

/* The same with a sign, modulo 128; -1 if it is none from -63 to 64. */
static sn_i32 places_of(const char **p) {
    const sn_i32 minus = **p == '-';
    *p += minus;
    const sn_i32 x = number(p);
    return x < 0 || x > 64 - minus ? -1 : minus ? -x & 127 : x;
}

/* Whether *p goes on with the text, over which it moves. */
static int over(const char **p, const char *text) {
    const size_t n = strlen(text);
    if (strncmp(*p, text, n)) return 0;
    *p += n;
    return 1;
}

/* The field of i8 ... u64; 0 of other names. */
static sn_u32 integer_field(const char *name) {
    static const char *const widths[] = {"8", "16", "32", "64"};
    for (sn_u32 i = 0; (name[0] == 'i' || name[0] == 'u') && i < 4; i++)
        if (!strcmp(name + 1, widths[i])) return FIXED | (name[0] == 'u' ? P3109 : 0) | (8u << i) << 7;
    return 0;
}

/* The field of a name in lower case; 0 if it is none. */
sn_u32 softnum_field_of(const char *name) {
    sn_format f;
    sn_tapered t;
    const char *p = name;
    sn_i32 x, y;
    sn_u32 field = 0;
    for (sn_u32 i = 0; i < REGISTERED; i++)
        if (!strcmp(name, registered[i].name)) return i + 1;
    if ((field = integer_field(name)) != 0 || (field = softnum_defined_field(name)) != 0) return field;
    if (over(&p, "posit") || over(&p, "takum_linear")) {
        const int takum = name[0] == 't';
        if ((x = number(&p)) < 0 || x > 63) return 0;
        y = takum ? 0 : 2;
        if (!takum && over(&p, "_es") && ((y = number(&p)) < 0 || y > 7 || p[-2] != 's')) return 0;
        field = (sn_u32)(TAPERED | (takum ? TAKUM : 0) | y << 6 | x);
        return *p == 0 && softnum_fill_tapered(field, &t) ? field : 0;
    }
    if (over(&p, "e")) {
        if ((x = number(&p)) < 0 || !over(&p, "m") || (y = number(&p)) < 0 || y > 61) return 0;
        field = FLOAT | (sn_u32)(x << 6) | (sn_u32)y;
    } else if (over(&p, "binary")) {
        if ((x = number(&p)) < 1 || x > 64 || !over(&p, "p") || (y = number(&p)) < 1 || y > 64) return 0;
        field = P3109 | (sn_u32)(x - 1) << 8 | (sn_u32)(y - 1) << 2;
        field |= over(&p, "u") ? 2 : over(&p, "s") ? 0 : FIXED;
        field |= over(&p, "f") ? 1 : over(&p, "e") ? 0 : FIXED;
        if (field & FIXED) return 0;
    } else {
        field = over(&p, "u") ? FIXED | P3109 : FIXED;
        if (!over(&p, "q") || (x = places_of(&p)) < 0 || !over(&p, ".") || (y = places_of(&p)) < 0) return 0;
        field |= (sn_u32)(x << 7) | (sn_u32)y;
    }
    return *p == 0 && softnum_fill(field, &f) ? field : 0;
}

#if defined(__cplusplus)
static thread_local char message[512] = "no error";
#else
static _Thread_local char message[512] = "no error";
#endif

const char *softnum_dpi_message(void) { return message; }

sn_u64 softnum_error(sn_u64 *flags, const char *text, ...) {
    va_list arguments;
    va_start(arguments, text);
    vsnprintf(message, sizeof message, text, arguments);
    va_end(arguments);
    if (flags) *flags |= SOFTNUM_ERROR;
    return ~(sn_u64)0;
}

static sn_u64 unknown(const char *name) {
    char known[384] = "";
    size_t n = 0;
    for (sn_u32 i = 0; i < REGISTERED && n < sizeof known; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", registered[i].name);
    return softnum_error(
        NULL,
        "unknown format '%.40s' (registered names: %s; or eXmY, qI.F, uqI.F, binaryKpP{s,u}{e,f}, positN, positN_esE, "
        "takum_linearN, i8 to u64)",
        name, known);
}

/* The next name in the text, without blanks and in lower case; 0 if it is empty or too long. */
static int next_name(const char **p, char *name, size_t room) {
    size_t n = 0;
    while (**p == ' ')
        ++*p;
    for (; **p && **p != ',' && strncmp(*p, "->", 2) && n + 1 < room; ++*p)
        name[n++] = **p >= 'A' && **p <= 'Z' ? (char)(**p + 'a' - 'A') : **p;
    while (n && name[n - 1] == ' ')
        n--;
    name[n] = 0;
    return n > 0 && (**p == 0 || **p == ',' || !strncmp(*p, "->", 2));
}

sn_u64 softnum_dpi_format(const char *text) {
    sn_u32 field[4] = {0, 0, 0, 0};
    char name[48];
    int count = 0, result = 0;
    const char *p = text ? text : "";
    for (;;) {
        if (count == 4 || !next_name(&p, name, sizeof name))
            return softnum_error(NULL, "format '%.80s': state OUT, IN->OUT, A,B->OUT or A,B,C->OUT", text ? text : "");
        if ((field[count] = softnum_field_of(name)) == 0) return unknown(name);
        count++;
        if (*p == 0) break;
        if (result || (count == 3 && *p == ','))
            return softnum_error(NULL, "format '%.80s': state OUT, IN->OUT, A,B->OUT or A,B,C->OUT", text);
        result = *p == '-';
        p += result ? 2 : 1;
    }
    if (!result) {
        for (int i = 1; i < count; i++)
            if (field[i] != field[0])
                return softnum_error(NULL, "format '%.80s': the operands' formats differ; state the result's after ->",
                                     text);
        return field[0];
    }
    sn_u64 handle = field[count - 1];
    for (int i = 0; i + 1 < count; i++)
        handle |= (sn_u64)field[i] << (16 * (i + 1));
    return handle;
}

sn_u64 softnum_dpi_bits(sn_u64 formats) {
    sn_format f;
    sn_tapered t;
    const sn_u32 field = softnum_field(formats, SOFTNUM_OUT);
    return softnum_fill(field, &f) ? (sn_u64)f.bits : softnum_fill_tapered(field, &t) ? (sn_u64)t.bits : 0;
}

sn_u64 softnum_dpi_facts(sn_u64 formats, sn_u64 *facts_out) {
    sn_format f;
    if (!softnum_fill(softnum_field(formats, SOFTNUM_OUT), &f)) return 0;
    const sn_u64 all[] = {
        (sn_u64)f.kind,
        (sn_u64)f.bits,
        (sn_u64)f.is_signed,
        (sn_u64)f.mantissa_bits,
        (sn_u64)(sn_i64)f.emin,
        (sn_u64)(sn_i64)f.emax,
        (sn_u64)f.lowest,
        (sn_u64)f.has_zero,
        (sn_u64)f.negative_zero,
        (sn_u64)f.has_inf,
        (sn_u64)f.has_nan,
        (sn_u64)f.nan_is_negative_zero,
        f.quiet_bit,
        f.max_code,
        f.inf_code,
        f.nan_first,
        f.nan_code,
        f.magnitude_mask,
        f.sign_mask,
        (sn_u64)f.saturating,
        (sn_u64)f.p3109,
    };
    memcpy(facts_out, all, sizeof all);
    return sizeof all / sizeof all[0];
}

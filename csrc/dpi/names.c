/* Handles of formats, and messages. softnum/rounding/names.h spells a format out in a field; 0000 1xxx xxxx xxxx is the
 * index of one that softnum_dpi_define named, which is of this process alone. */
#include "names.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int softnum_fill(sn_u32 field, sn_format *f) {
    if ((field & ~(sn_u32)(SOFTNUM_DEFINED - 1)) == SOFTNUM_DEFINED) return softnum_fill_defined(field, f, NULL);
    return sn_fill_named(field, f);
}

int softnum_fill_tapered(sn_u32 field, sn_tapered *f) { return sn_fill_named_tapered(field, f); }

void softnum_name(sn_u32 field, char *text) {
    sn_format f;
    sn_tapered t;
    if (softnum_fill_tapered(field, &t))
        snprintf(text, 16, t.takum ? "takum_linear%d" : t.es == 2 ? "posit%d" : "posit%d_es%d", (int)t.bits, (int)t.es);
    else if (!softnum_fill(field, &f))
        snprintf(text, 16, "(none)");
    else if (field & SN_NAMES_FIXED)
        snprintf(text, 16, "%sq%d.%d", field & SN_NAMES_P3109 ? "u" : "", (int)sn_names_places((field >> 7) & 127),
                 (int)sn_names_places(field & 127));
    else if (field & SN_NAMES_P3109)
        snprintf(text, 16, "binary%up%u%c%c", ((field >> 8) & 63) + 1, ((field >> 2) & 63) + 1, field & 2 ? 'u' : 's',
                 field & 1 ? 'f' : 'e');
    else if (field & SN_NAMES_FLOAT)
        snprintf(text, 16, "e%um%u", (field >> 6) & 127, field & 63);
    else if (field & SOFTNUM_DEFINED)
        softnum_fill_defined(field, &f, text);
    else
        snprintf(text, 16, "%s", sn_registered[field - 1].name);
}

sn_u32 softnum_field_of(const char *name) {
    const sn_u32 field = sn_named_field(name);
    return field ? field : softnum_defined_field(name);
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
    for (sn_u32 i = 0; i < SN_NAMES_REGISTERED && n < sizeof known; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", sn_registered[i].name);
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

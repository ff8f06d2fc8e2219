/* Handles of formats, and error reporting. Internal; users include softnum_dpi.h. */
#ifndef SOFTNUM_DPI_NAMES_H
#define SOFTNUM_DPI_NAMES_H

#include "softnum/operations/fpu.h"
#include "softnum/operations/suits.h"
#include "softnum/rounding/names.h"
#include "softnum_dpi.h"

/* Fields of a handle. */
enum { SOFTNUM_OUT = 0, SOFTNUM_A = 16, SOFTNUM_B = 32, SOFTNUM_C_FIELD = 48 };

SN_FN sn_u32 softnum_field(sn_u64 formats, int shift) { return (sn_u32)(formats >> shift) & 0xffff; }

/* The fields of binary64 and of q32.0; the exceptions, without what else the core says by flags. */
enum { SOFTNUM_BINARY64 = 3, SOFTNUM_INTEGER = 1 << 15 | 32 << 7, SOFTNUM_EXCEPTIONS = 31 };

/* The format of a field of a handle; 0 if the field stands for none. */
int softnum_fill(sn_u32 field, sn_format *f);

/* The field of a name in lower case; 0 if it is none. */
sn_u32 softnum_field_of(const char *name);

/* Formats that softnum_dpi_define named: their fields, from this one on; that of a name, 0 of others; the format of
 * such a field, and its name into text, if there is one: 0 if it is not defined. */
enum { SOFTNUM_DEFINED = 1 << 11 };
sn_u32 softnum_defined_field(const char *name);
int softnum_fill_defined(sn_u32 field, sn_format *f, char *text);

/* The same of a posit or a linear takum, which softnum_fill knows nothing of. */
int softnum_fill_tapered(sn_u32 field, sn_tapered *f);

/* The name of a field's format, into text of at least 16 characters. */
void softnum_name(sn_u32 field, char *text);

/* Keep a message, and return all ones; *flags, if there is one, gets SOFTNUM_ERROR. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
sn_u64 softnum_error(sn_u64 *flags, const char *text, ...);

/* For an error whose message is there. */
SN_FN sn_u64 softnum_error_again(sn_u64 *flags) {
    *flags |= SOFTNUM_ERROR;
    return ~(sn_u64)0;
}

/* Element i of a word of elements. */
sn_u64 softnum_element(const sn_u32 *word, sn_u64 i, sn_i32 bits);

/* The environment of a mode for a result in the format f; 0, with a message, where there is none. */
int softnum_env(const char *who, sn_u64 mode, const sn_format *f, sn_u32 field, sn_env *env);

/* The message for a handle that is none. */
sn_u64 softnum_no_handle(const char *who, sn_u64 formats, sn_u64 *flags);

/* Whether the code fits the format; else a message. */
int softnum_fits(const char *who, const char *what, sn_u64 code, const sn_format *f, sn_u32 field);

#endif

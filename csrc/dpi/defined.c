/* Formats that users define by name: softnum_dpi_define. */
#include "names.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#if defined(__cplusplus)
#include <atomic>
typedef std::atomic<sn_u32> counter;
#else
#include <stdatomic.h>
typedef _Atomic sn_u32 counter;
#endif

/* Formats with names of their users', in the order of their definitions. What lies below the count never changes; who
 * adds one holds the lock. */
static struct {
    char name[16];
    sn_float_facts of;
    sn_format format;
} defined[SOFTNUM_DEFINED_MOST];
static counter defined_count, defined_lock;

sn_u32 softnum_defined_field(const char *name) {
    const sn_u32 count = atomic_load(&defined_count);
    for (sn_u32 i = 0; i < count; i++)
        if (!strcmp(name, defined[i].name)) return SOFTNUM_DEFINED | i;
    return 0;
}

int softnum_fill_defined(sn_u32 field, sn_format *f, char *text) {
    const sn_u32 i = field & (SOFTNUM_DEFINED - 1);
    if (i >= atomic_load(&defined_count)) return 0;
    *f = defined[i].format;
    if (text) memcpy(text, defined[i].name, sizeof defined[i].name);
    return 1;
}

static int same_facts(const sn_float_facts *x, const sn_float_facts *y) {
    return x->exponent_bits == y->exponent_bits && x->mantissa_bits == y->mantissa_bits && x->bias == y->bias &&
           x->is_signed == y->is_signed && x->nan_codes == y->nan_codes && x->infinities == y->infinities &&
           x->negative_zero == y->negative_zero && x->has_zero == y->has_zero && x->lowest == y->lowest &&
           x->saturating == y->saturating;
}

/* A name in lower case; 0 if it is none. */
static int own_name(const char *given, char name[16]) {
    size_t n = 0;
    for (; given && given[n] && n < 15; n++) {
        const char c = given[n] >= 'A' && given[n] <= 'Z' ? (char)(given[n] + 'a' - 'A') : given[n];
        if (!((c >= 'a' && c <= 'z') || (n && ((c >= '0' && c <= '9') || c == '_')))) return 0;
        name[n] = c;
    }
    name[n] = 0;
    return n > 0 && !given[n];
}

/* With the lock: the format's field, new or known. */
static sn_u64 add_definition(const char *name, const sn_float_facts *x, const sn_format *f) {
    const sn_u32 known = softnum_field_of(name), count = atomic_load(&defined_count);
    if (known && (known & ~(sn_u32)(SOFTNUM_DEFINED - 1)) == SOFTNUM_DEFINED &&
        same_facts(x, &defined[known & (SOFTNUM_DEFINED - 1)].of))
        return known;
    if (known) return softnum_error(NULL, "softnum_define: '%s' names another format already; take another name", name);
    if (count == SOFTNUM_DEFINED_MOST)
        return softnum_error(NULL, "softnum_define: %d formats are defined already, and no more can be",
                             (int)SOFTNUM_DEFINED_MOST);
    memcpy(defined[count].name, name, sizeof defined[count].name);
    defined[count].of = *x;
    defined[count].of.name = defined[count].name;
    defined[count].format = *f;
    atomic_store(&defined_count, count + 1);
    return SOFTNUM_DEFINED | count;
}

sn_u64 softnum_dpi_define(const char *given, sn_u64 exponent_bits, sn_u64 mantissa_bits, sn_i64 bias, sn_u64 traits) {
    char name[16] = "";
    sn_float_facts x;
    sn_format f;
    if (!own_name(given, name))
        return softnum_error(NULL, "softnum_define: '%.40s' is no name: 1 to 15 letters, digits and _, a letter first",
                             given ? given : "");
    if (exponent_bits < 1 || exponent_bits > 16 || mantissa_bits > 61 || bias > 1 << 16 || bias < -(1 << 16) ||
        traits >> 9 || ((traits >> 6) & 3) == 3)
        return softnum_error(
            NULL,
            "softnum_define: %s has exponent bits from 1 to 15 (16 without a fraction), 0 to 61 mantissa "
            "bits, a bias from -65536 to 65536, and facts of SOFTNUM_NANS_ALL_ONES and so on",
            name);
    x.name = name;
    x.exponent_bits = (sn_i32)exponent_bits;
    x.mantissa_bits = (sn_i32)mantissa_bits;
    x.bias = (sn_i32)bias;
    x.nan_codes = (sn_i32)(traits & 3); /* SN_NANS_IEEE ... */
    x.is_signed = !(traits & SOFTNUM_UNSIGNED);
    x.infinities = !(traits & SOFTNUM_NO_INFINITIES);
    x.negative_zero = x.is_signed && x.nan_codes != SN_NANS_NEGATIVE_ZERO && !(traits & SOFTNUM_NO_NEGATIVE_ZERO);
    x.has_zero = !(traits & SOFTNUM_NO_ZERO);
    x.lowest = (sn_i32)((traits >> 6) & 3); /* SN_LOWEST_SUBNORMAL ... */
    x.saturating = (traits & SOFTNUM_SATURATING) != 0;
    const char *wrong = sn_facts_contradiction(&x);
    if (wrong) return softnum_error(NULL, "softnum_define: %s: %s", name, wrong);
    if (!sn_fill_facts(&x, &f))
        return softnum_error(
            NULL,
            "softnum_define: %s has more than 64 bits, 16 exponent bits with a fraction, or no value but "
            "zero",
            name);
    while (atomic_exchange(&defined_lock, 1u))
        ;
    const sn_u64 field = add_definition(name, &x, &f);
    atomic_store(&defined_lock, 0u);
    return field;
}

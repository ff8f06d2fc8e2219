/* softnum.h: errors, formats and rules. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library/objects.h"
#include "softnum/operations/suits.h"
#include "softnum/rounding/names.h"

#define SAME(NAME, name, number, family, negative, constant, direction, bump)                                          \
    _Static_assert((int)SOFTNUM_##NAME == (int)SN_##NAME, #name);
SN_MODES(SAME)
_Static_assert((int)SOFTNUM_OVERFLOW_INFINITY == SN_OVERFLOW_INFINITY + 1 &&
                   (int)SOFTNUM_OVERFLOW_P3109_V3_2_1 == SN_OVERFLOW_P3109_V3_2_1 + 1,
               "rules of overflow are the core's, plus one");
_Static_assert((int)SOFTNUM_FLUSH_SUBNORMAL == SN_FLUSH_SUBNORMAL && (int)SOFTNUM_NAN_ARM == SN_NAN_ARM &&
                   (int)SOFTNUM_FLAG_NO_CODE == SN_NO_CODE && (int)SOFTNUM_FLAG_UNDECIDED == SN_UNDECIDED &&
                   (int)SOFTNUM_NO_NANS == SN_NANS_NONE && (int)SOFTNUM_FIELD_0_ZERO == SN_LOWEST_ZERO,
               "the rest is the core's");

const char *softnum_version(void) { return SOFTNUM_VERSION; }

const char *softnum_status_text(softnum_status status) {
    switch (status) {
    case SOFTNUM_OK: return "no error";
    case SOFTNUM_BAD_ARGUMENT: return "an argument is out of range, or unknown";
    case SOFTNUM_BAD_CODE: return "a code has bits above its format's width";
    case SOFTNUM_NO_CODE: return "a result is NaN, and its format has no code for it";
    case SOFTNUM_NOT_EXACT: return "a value is not exact in the type of the result";
    case SOFTNUM_UNDECIDED: return "too many bits lie before the last one of a result that wraps";
    case SOFTNUM_NO_MEMORY: return "out of memory";
    default: return "no status of softnum's";
    }
}

softnum_status softnum_fail(softnum_why *why, softnum_status status, const char *text, ...) {
    if (why) {
        va_list arguments;
        va_start(arguments, text);
        vsnprintf(why->text, sizeof why->text, text, arguments);
        va_end(arguments);
    }
    return status;
}

void *softnum_new(size_t bytes, softnum_why *why, softnum_status *status) {
    void *p = calloc(1, bytes);
    *status = p ? SOFTNUM_OK : softnum_fail(why, SOFTNUM_NO_MEMORY, "no memory for an object of %zu bytes", bytes);
    return p;
}

/* The format of facts that were checked, named in errors. */
static softnum_status make_format(const sn_format *core, const char *name, softnum_format **format, softnum_why *why) {
    softnum_status status;
    softnum_format *f = softnum_new(sizeof *f, why, &status);
    if (!f) return status;
    f->core = *core;
    f->bytes = core->bits <= 8 ? 1 : core->bits <= 16 ? 2 : core->bits <= 32 ? 4 : 8;
    f->isa = sn_detect_isa();
    f->kernels = sn_kernels_for(f->isa);
    for (int i = 0; i < 2; i++)
        f->decodes[i] = f->kernels && sn_decoding_prepare(&f->core, 32 << i, &f->decoding[i]);
    snprintf(f->name, sizeof f->name, "%s", name);
    *format = f;
    return SOFTNUM_OK;
}

softnum_status softnum_format_named(const char *name, softnum_format **format, softnum_why *why) {
    char lower[32] = "";
    sn_format core;
    sn_tapered tapered;
    size_t n = 0;
    if (!format) return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, "softnum_format_named: format is null");
    *format = NULL;
    if (!name) return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, "softnum_format_named: name is null");
    for (; name[n] && n + 1 < sizeof lower; n++)
        lower[n] = name[n] >= 'A' && name[n] <= 'Z' ? (char)(name[n] + 'a' - 'A') : name[n];
    const sn_u32 field = name[n] ? 0 : sn_named_field(lower);
    if (field && sn_fill_named_tapered(field, &tapered))
        return softnum_fail(
            why, SOFTNUM_BAD_ARGUMENT,
            "softnum_format_named: %s is a posit or takum, which this library does not compute in; state "
            "a float or fixed point",
            lower);
    if (!field || !sn_fill_named(field, &core))
        return softnum_fail(
            why, SOFTNUM_BAD_ARGUMENT,
            "softnum_format_named: unknown format '%.31s'; known are binary16, bfloat16, e4m3fn and other "
            "registered ones, and eXmY, qI.F, uqI.F, binaryKpP{s,u}{e,f}, i8 to u64",
            name);
    return make_format(&core, lower, format, why);
}

softnum_status softnum_format_float(const softnum_float *p, softnum_format **format, softnum_why *why) {
    char name[32];
    sn_format core;
    if (!format) return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, "softnum_format_float: format is null");
    *format = NULL;
    if (!p || p->size != sizeof *p)
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT,
                            "softnum_format_float: facts are null, or their size is not as SOFTNUM_FLOAT_INIT sets it");
    if (p->exponent_bits < 1 || p->exponent_bits > 16 || p->mantissa_bits < 0 || p->mantissa_bits > 61 ||
        p->bias < -65536 || p->bias > 65536)
        return softnum_fail(
            why, SOFTNUM_BAD_ARGUMENT,
            "softnum_format_float: %d exponent bits, %d fraction bits and bias %d; they are from 1 to 15 "
            "(16 without a fraction), 0 to 61, and -65536 to 65536",
            (int)p->exponent_bits, (int)p->mantissa_bits, (int)p->bias);
    if ((p->is_signed | p->infinities | p->negative_zero | p->has_zero | p->saturating) & ~1 || p->nans < 0 ||
        p->nans > SOFTNUM_NO_NANS || p->field_0 < 0 || p->field_0 > SOFTNUM_FIELD_0_ZERO)
        return softnum_fail(
            why, SOFTNUM_BAD_ARGUMENT,
            "softnum_format_float: is_signed, infinities, negative_zero, has_zero and saturating are 0 or "
            "1, nans 0 to 3, field_0 0 to 2");
    snprintf(name, sizeof name, "e%dm%d (by facts)", (int)p->exponent_bits, (int)p->mantissa_bits);
    const sn_float_facts x = {name,          p->exponent_bits, p->mantissa_bits, p->bias,    p->is_signed, p->nans,
                              p->infinities, p->negative_zero, p->has_zero,      p->field_0, p->saturating};
    const char *wrong = sn_facts_contradiction(&x);
    if (!wrong && p->negative_zero && (!p->is_signed || p->nans == SOFTNUM_NAN_IS_MINUS_ZERO))
        wrong = "-0 needs a sign, and its code for itself";
    if (wrong) return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, "softnum_format_float: %s: %s", name, wrong);
    if (!sn_fill_facts(&x, &core))
        return softnum_fail(
            why, SOFTNUM_BAD_ARGUMENT,
            "softnum_format_float: %s has more than 64 bits, 16 exponent bits with a fraction, or no value "
            "but zero",
            name);
    return make_format(&core, name, format, why);
}

softnum_status softnum_format_fixed(int32_t integer_bits, int32_t fraction_bits, int32_t is_signed,
                                    softnum_format **format, softnum_why *why) {
    char name[32];
    if (!format) return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, "softnum_format_fixed: format is null");
    *format = NULL;
    if (integer_bits < -63 || integer_bits > 64 || fraction_bits < -63 || fraction_bits > 64 || (is_signed & ~1) ||
        integer_bits + fraction_bits < 1 + is_signed || integer_bits + fraction_bits > 64)
        return softnum_fail(
            why, SOFTNUM_BAD_ARGUMENT,
            "softnum_format_fixed: %d integer and %d fraction bits, is_signed %d; each part is from -63 to "
            "64, both together 1 (with a sign 2) to 64, is_signed 0 or 1",
            (int)integer_bits, (int)fraction_bits, (int)is_signed);
    snprintf(name, sizeof name, "%sq%d.%d", is_signed ? "" : "u", (int)integer_bits, (int)fraction_bits);
    return softnum_format_named(name, format, why);
}

softnum_status softnum_format_on(const softnum_format *format, const char *instruction_set, softnum_format **on,
                                 softnum_why *why) {
    softnum_status status;
    if (!on) return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, "softnum_format_on: on is null");
    *on = NULL;
    if (!format || !instruction_set)
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, "softnum_format_on: format or instruction_set is null");
    for (int isa = sn_detect_isa(); isa >= SN_ISA_PORTABLE; isa--) {
        const sn_kernels *kernels = sn_kernels_for(isa);
        if (!kernels || strcmp(kernels->name, instruction_set) != 0) continue;
        softnum_format *f = softnum_new(sizeof *f, why, &status);
        if (!f) return status;
        *f = *format;
        f->isa = isa;
        f->kernels = kernels;
        *on = f;
        return SOFTNUM_OK;
    }
    const sn_kernels *best = sn_kernels_for(sn_detect_isa());
    return softnum_fail(why, SOFTNUM_BAD_ARGUMENT,
                        "softnum_format_on: this CPU or build does not run '%.20s'; the best that it runs is %s",
                        instruction_set, best ? best->name : "the definition");
}

void softnum_format_free(softnum_format *format) { free(format); }
int32_t softnum_format_bits(const softnum_format *format) { return format ? format->core.bits : 0; }
size_t softnum_format_bytes(const softnum_format *format) { return format ? format->bytes : 0; }

softnum_status softnum_fill_env(const char *who, const softnum_rules *rules, const softnum_format *f, int foreign,
                                sn_env *env, softnum_why *why) {
    static const softnum_rules usual = SOFTNUM_RULES_INIT;
    const softnum_rules *r = rules ? rules : &usual;
    if (r->size != sizeof *r)
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, "%s: the rules' size is not as SOFTNUM_RULES_INIT sets it", who);
    if (r->rounding < 0 || r->rounding >= SN_ROUNDING_MODES || r->overflow < 0 ||
        r->overflow > SOFTNUM_OVERFLOW_P3109_V3_2_1 || r->flush_results < 0 ||
        r->flush_results > SOFTNUM_FLUSH_SUBNORMAL || r->nan < 0 || r->nan >= SN_NAN_PROFILES ||
        ((r->tiny_before | r->flush_inputs) & ~1))
        return softnum_fail(
            why, SOFTNUM_BAD_ARGUMENT,
            "%s: rounding %d, overflow %d, flush_results %d, nan %d, tiny_before %d and flush_inputs %d: "
            "one is not among those that softnum.h lists",
            who, (int)r->rounding, (int)r->overflow, (int)r->flush_results, (int)r->nan, (int)r->tiny_before,
            (int)r->flush_inputs);
    memset(env, 0, sizeof *env);
    env->rounding = r->rounding;
    env->tininess = r->tiny_before;
    env->flush_inputs = r->flush_inputs;
    env->flush_results = r->flush_results;
    env->nan = r->nan;
    env->invalid_code = r->invalid_code;
    env->stochastic_bits = sn_is_stochastic(env) ? r->stochastic_bits : 32;
    if (env->stochastic_bits < 1 || env->stochastic_bits > 32)
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, "%s: stochastic_bits is from 1 to 32, got %d", who,
                            (int)r->stochastic_bits);
    env->overflow = r->overflow == SOFTNUM_OVERFLOW_DEFAULT ? sn_default_overflow(&f->core) : r->overflow - 1;
    if (!sn_knows_overflow(&f->core, env->overflow)) {
        if (!foreign)
            return softnum_fail(
                why, SOFTNUM_BAD_ARGUMENT,
                "%s: %s has no rule of overflow number %d: infinity is for floats, wrap for fixed point, "
                "the older P3109 rule for its formats with infinities",
                who, f->name, (int)r->overflow);
        env->overflow = sn_default_overflow(&f->core);
    }
    if (r->invalid_code & ~(f->core.magnitude_mask | f->core.sign_mask))
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, "%s: invalid_code 0x%llx is no code of %s, which has %d bits",
                            who, (unsigned long long)r->invalid_code, f->name, (int)f->core.bits);
    return SOFTNUM_OK;
}

softnum_status softnum_check_codes(const char *who, const char *what, const softnum_format *f, const void *codes,
                                   size_t n, size_t first, softnum_why *why) {
    const sn_u64 most = f->core.magnitude_mask | f->core.sign_mask;
    sn_u64 met = 0;
    if (most == ~(sn_u64)0 >> (64 - 8 * f->bytes)) return SOFTNUM_OK;
    for (size_t i = 0; i < n; i++) /* one loop a width, without tests, for the compiler's vectors */
        met |= sn_load_code((const char *)codes + i * f->bytes, (int)f->bytes);
    if (!(met & ~most)) return SOFTNUM_OK;
    size_t i = 0;
    while (!((met = sn_load_code((const char *)codes + i * f->bytes, (int)f->bytes)) & ~most))
        i++;
    return softnum_fail(why, SOFTNUM_BAD_CODE, "%s: element %zu of %s, 0x%llx, is no code of %s, which has %d bits",
                        who, first + i, what, (unsigned long long)met, f->name, (int)f->core.bits);
}

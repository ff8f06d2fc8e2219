/* Units of sums of products, by softnum_dpi.h's contract: steps of a MadUnit, ExactDotUnit and FusedDotUnit. */
#include "names.h"

#include <stddef.h>

#include "softnum/units/fused.h"
#include "softnum/units/kulisch.h"

/* Formats of a sum of products: a and b, the third of the handle (product or accumulator; kind of a result if absent),
 * the result. */
typedef struct {
    sn_format a, b, third, out; /* binary64 in place of posits and takums */
    sn_u32 field[4];
    int has_third, tapered[4];
    sn_tapered of[4];
} sum_formats;

enum { A, B, THIRD, OUT };

static int read_formats(const char *who, sn_u64 formats, int knows_tapered, sum_formats *s, sn_u64 *flags) {
    const int shifts[4] = {SOFTNUM_A, SOFTNUM_B, SOFTNUM_C_FIELD, SOFTNUM_OUT};
    for (int i = 0; i < 4; i++)
        s->field[i] = softnum_field(formats, shifts[i]);
    s->has_third = s->field[2] != 0;
    if (!s->field[0]) s->field[0] = s->field[3];
    if (!s->field[1]) s->field[1] = s->field[0];
    if (!s->field[2]) s->field[2] = s->field[3];
    sn_format *const filled[4] = {&s->a, &s->b, &s->third, &s->out};
    for (int i = 0; i < 4; i++) {
        s->tapered[i] = knows_tapered && softnum_fill_tapered(s->field[i], &s->of[i]);
        if (!softnum_fill(s->tapered[i] ? (sn_u32)SOFTNUM_BINARY64 : s->field[i], filled[i])) {
            softnum_no_handle(who, formats, flags);
            return 0;
        }
    }
    return 1;
}

/* Width of a code of format i, of which f is the core's. */
static sn_i32 width_of(const sum_formats *s, int i, const sn_format *f) {
    return s->tapered[i] ? s->of[i].bits : f->bits;
}

/* A code of format i as the core knows it, and a result of the core's as a code. */
static sn_u64 into_core(const sum_formats *s, int i, sn_u64 code) {
    return s->tapered[i] ? sn_tapered_value(&s->of[i], code) : code;
}
static sn_u64 out_of_core(const sum_formats *s, int i, sn_u64 code) {
    return s->tapered[i] ? sn_tapered_round(&s->of[i], code) : code;
}

/* Whether a code fits format i; else a message. */
static int code_fits(const char *who, const char *what, sn_u64 code, const sum_formats *s, int i, const sn_format *f) {
    char name[16];
    if (!s->tapered[i]) return softnum_fits(who, what, code, f, s->field[i]);
    if (!(code >> s->of[i].bits)) return 1;
    softnum_name(s->field[i], name);
    softnum_error(NULL, "%s: %s = 0x%llx is no code of %s, which has %d bits", who, what, (unsigned long long)code,
                  name, (int)s->of[i].bits);
    return 0;
}

/* Whether sums can start from zero in a format. */
static int has_zero(const char *who, const sn_format *f, sn_u32 field) {
    char name[16];
    if (f->has_zero) return 1;
    softnum_name(field, name);
    softnum_error(NULL, "%s: %s has no zero to start a sum from", who, name);
    return 0;
}

/* As softnum_env; a rule of overflow that only the unit's other format knows leaves this one its default. */
static int own_env(const char *who, sn_u64 mode, const sn_format *f, const sn_format *other, sn_u32 field,
                   sn_env *env) {
    const sn_i32 rule = (sn_i32)((mode >> SOFTNUM_OVERFLOW_SHIFT) & 15) - 1;
    const int foreign = rule >= 0 && !sn_knows_overflow(f, rule) && sn_knows_overflow(other, rule);
    return softnum_env(who, foreign ? mode & ~((sn_u64)15 << SOFTNUM_OVERFLOW_SHIFT) : mode, f, field, env);
}

/* As own_env, of results in format i: posits and takums have one mode. */
static int env_of(const char *who, sn_u64 mode, const sum_formats *s, int i, const sn_format *f, const sn_format *other,
                  sn_env *env) {
    if (!own_env(who, mode, f, other, s->field[i], env)) return 0;
    if (!s->tapered[i]) return 1;
    env->rounding = SN_TO_ODD;
    if (mode == SN_NEAREST_EVEN) return 1;
    softnum_error(NULL, "%s: posits and takums round to nearest, ties to even, and in no other mode", who);
    return 0;
}

sn_u64 softnum_dpi_mac(sn_u64 acc, sn_u64 a, sn_u64 b, sn_u64 formats, sn_u64 mode, sn_u64 product_mode, sn_u64 random,
                       sn_u64 *flags) {
    static const char who[] = "softnum_mac";
    sum_formats s;
    sn_env sum, product;
    sn_u32 raised = 0;
    sn_u32 of_product = 0;
    if (!read_formats(who, formats, 1, &s, flags)) return ~(sn_u64)0;
    if (!code_fits(who, "acc", acc, &s, OUT, &s.out) || !code_fits(who, "a", a, &s, A, &s.a) ||
        !code_fits(who, "b", b, &s, B, &s.b) || !has_zero(who, &s.out, s.field[3]) ||
        !has_zero(who, &s.third, s.field[2]) || !env_of(who, mode, &s, OUT, &s.out, &s.third, &sum))
        return softnum_error_again(flags);
    acc = into_core(&s, OUT, acc);
    a = into_core(&s, A, a);
    b = into_core(&s, B, b);
    if (s.has_third) {
        if (!env_of(who, product_mode, &s, THIRD, &s.third, &s.out, &product)) return softnum_error_again(flags);
        sn_u64 p = sn_multiply(&s.a, a, &s.b, b, &s.third, &product, (sn_u32)random, &of_product);
        p = into_core(&s, THIRD, out_of_core(&s, THIRD, p));
        acc = sn_add(&s.out, acc, &s.third, p, &s.out, &sum, (sn_u32)(random >> 32), &raised);
    } else {
        acc = sn_fma(&s.a, a, &s.b, b, &s.out, acc, &s.out, &sum, (sn_u32)(random >> 32), &raised);
    }
    raised = (s.tapered[OUT] ? 0 : raised) | (s.tapered[THIRD] ? 0 : of_product);
    *flags |= raised & SOFTNUM_EXCEPTIONS;
    return out_of_core(&s, OUT, acc);
}

sn_u64 softnum_element(const sn_u32 *word, sn_u64 i, sn_i32 bits) {
    const sn_u64 at = i * (sn_u64)bits, first = at / 32, last = (at + (sn_u64)bits - 1) / 32;
    sn_u128 window = sn_u128_make(0, 0);
    for (sn_u64 k = last + 1; k-- > first;)
        window = sn_u128_add(sn_u128_shl(window, 32), sn_u128_make(0, word[k]));
    return sn_u128_shr(window, (sn_i32)(at % 32)).lo & (~(sn_u64)0 >> (64 - bits));
}

static int known_length(const char *who, sn_u64 length, const sum_formats *s) {
    const sn_i32 of_a = width_of(s, A, &s->a), of_b = width_of(s, B, &s->b), bits = of_a > of_b ? of_a : of_b;
    if (length <= (sn_u64)(SOFTNUM_WORD_BITS / bits)) return 1;
    softnum_error(NULL, "%s: %llu elements of %d bits are more than a word's %d bits; chain calls by c", who,
                  (unsigned long long)length, (int)bits, (int)SOFTNUM_WORD_BITS);
    return 0;
}

/* Exponents as of softnum.exact.span: all values are multiples of 2^last and below, or at, 2^top. */
static void span(const sn_format *f, sn_i32 *last, sn_i32 *top) {
    *last = f->kind == SN_FIXED ? -f->mantissa_bits : f->emin - f->mantissa_bits;
    *top = f->kind == SN_FIXED ? f->bits - f->mantissa_bits - f->is_signed : f->emax + 1;
}

sn_u64 softnum_dpi_exact_dot(const sn_u32 *a, const sn_u32 *b, sn_u64 length, sn_u64 c, sn_u64 formats, sn_u64 mode,
                             sn_u64 random, sn_u64 *flags) {
    static const char who[] = "softnum_exact_dot";
    sum_formats s;
    sn_env env;
    sn_kulisch sum;
    sn_u32 raised = 0;
    sn_i32 last_a, top_a, last_b, top_b, last_c, top_c;
    if (!read_formats(who, formats, 1, &s, flags)) return ~(sn_u64)0;
    if (s.has_third && s.field[2] != s.field[3])
        return softnum_error(flags, "%s: c is of the result's format; state A,B->OUT", who);
    if (!known_length(who, length, &s) || !code_fits(who, "c", c, &s, OUT, &s.out) ||
        !has_zero(who, &s.out, s.field[3]) || !env_of(who, mode, &s, OUT, &s.out, &s.out, &env))
        return softnum_error_again(flags);
    span(&s.a, &last_a, &top_a);
    span(&s.b, &last_b, &top_b);
    span(&s.out, &last_c, &top_c);
    const sn_i32 bottom = last_a + last_b < last_c ? last_a + last_b : last_c;
    const sn_i32 top = top_a + top_b > top_c ? top_a + top_b : top_c, words = (top + 32 - bottom + 1 + 63) / 64;
    if (words > SN_KULISCH_WORDS)
        return softnum_error(flags, "%s: an exact sum of these formats takes more than %d bits; use a narrower format",
                             who, 64 * SN_KULISCH_WORDS);
    if (length == 0) return c;
    sn_kulisch_clear(&sum, bottom, words);
    const sn_number start = sn_unpack(&s.out, into_core(&s, OUT, c));
    const sn_i32 of_a = width_of(&s, A, &s.a), of_b = width_of(&s, B, &s.b);
    sn_kulisch_add(&sum, &start);
    for (sn_u64 k = 0; k < length; k++) {
        const sn_number x = sn_unpack(&s.a, into_core(&s, A, softnum_element(a, k, of_a)));
        const sn_number y = sn_unpack(&s.b, into_core(&s, B, softnum_element(b, k, of_b)));
        sn_kulisch_add_product(&sum, &x, &y);
    }
    const sn_u64 result = sn_kulisch_round(&sum, &s.out, &env, (sn_u32)random, &raised);
    if (!s.tapered[OUT]) *flags |= raised & SOFTNUM_EXCEPTIONS;
    return out_of_core(&s, OUT, result);
}

sn_u64 softnum_dpi_fused_dot(const sn_u32 *a, const sn_u32 *b, sn_u64 length, sn_u64 c, sn_u64 formats, sn_u64 mode,
                             sn_u64 terms, sn_u64 fraction_bits, sn_i64 min_exponent, sn_i64 truncate_fraction,
                             sn_u64 c_after, sn_u64 *flags) {
    static const char who[] = "softnum_fused_dot";
    const sn_u64 always = (sn_u64)15 << SOFTNUM_OVERFLOW_SHIFT;
    sn_u64 x[SOFTNUM_WORD_BITS], y[SOFTNUM_WORD_BITS];
    sum_formats s;
    sn_fused_unit u;
    sn_u32 raised = 0;
    if (!read_formats(who, formats, 0, &s, flags)) return ~(sn_u64)0;
    const sn_format *of_c = c_after ? &s.out : &s.third;
    if (s.a.kind == SN_FIXED || s.b.kind == SN_FIXED || s.third.kind == SN_FIXED || s.out.kind == SN_FIXED)
        return softnum_error(flags, "%s: all formats must be floats", who);
    if (terms < 1 || terms > SN_FUSED_TERMS || fraction_bits > SN_FUSED_FRACTION_BITS || min_exponent > 1 << 16 ||
        (min_exponent < -(1 << 16) && min_exponent != SN_FUSED_NO_FLOOR) || truncate_fraction < -1 ||
        truncate_fraction > 127 || c_after > 1)
        return softnum_error(flags,
                             "%s: terms lie in 1..%d, fraction_bits in 0..%d, min_exponent in -65536..65536 or is "
                             "SN_FUSED_NO_FLOOR, truncate_fraction in -1..127, c_after in 0..1",
                             who, (int)SN_FUSED_TERMS, (int)SN_FUSED_FRACTION_BITS);
    u.always_infinity = (mode & always) == SOFTNUM_OVERFLOW_ALWAYS_INFINITY;
    if (u.always_infinity) mode &= ~always;
    if (!known_length(who, length, &s) || !softnum_fits(who, "c", c, of_c, s.field[c_after ? 3 : 2]) ||
        !has_zero(who, &s.a, s.field[0]) || !has_zero(who, &s.b, s.field[1]) || !has_zero(who, &s.third, s.field[2]) ||
        !has_zero(who, &s.out, s.field[3]) || !own_env(who, mode, &s.third, &s.out, s.field[2], &u.sum_env) ||
        !own_env(who, mode, &s.out, &s.third, s.field[3], &u.output_env))
        return softnum_error_again(flags);
    if (sn_is_stochastic(&u.sum_env))
        return softnum_error(flags, "%s: this unit rounds in a mode that is not stochastic", who);
    if (u.sum_env.tininess || u.sum_env.flush_inputs || u.sum_env.flush_results || u.sum_env.nan)
        return softnum_error(flags, "%s: this unit knows of the mode only the rounding and the overflow rule", who);
    u.a = s.a;
    u.b = s.b;
    u.accumulator = s.third;
    u.output = s.out;
    u.after_env = u.output_env;
    u.after_env.rounding = SN_NEAREST_EVEN;
    u.terms = u.period = (sn_i32)terms;
    u.fraction_bits = (sn_i32)fraction_bits;
    u.min_exponent = (sn_i32)min_exponent;
    u.zero_exponent = SN_FUSED_NO_FLOOR;
    u.truncate_fraction = (sn_i32)truncate_fraction;
    u.c_after = (sn_i32)c_after;
    u.same_output = s.field[2] == s.field[3];
    u.order = 0;
    for (sn_u64 k = 0; k < length; k++) {
        x[k] = softnum_element(a, k, s.a.bits);
        y[k] = softnum_element(b, k, s.b.bits);
    }
    const sn_u64 result = sn_fused_dot(&u, x, 1, y, 1, (sn_i64)length, c, &raised, &raised);
    *flags |= raised & SOFTNUM_EXCEPTIONS;
    return result;
}

/* Units of sums of products, by softnum_dpi.h's contract: steps of a MadUnit, ExactDotUnit and FusedDotUnit. */
#include "names.h"

#include <stddef.h>

#include "softnum/units/fused.h"
#include "softnum/units/kulisch.h"

/* Formats of a sum of products: a and b, the third of the handle (product or accumulator; kind of a result if absent),
 * the result. */
typedef struct {
    sn_format a, b, third, out;
    sn_u32 field[4];
    int has_third;
} sum_formats;

static int read_formats(const char *who, sn_u64 formats, sum_formats *s, sn_u64 *flags) {
    const int shifts[4] = {SOFTNUM_A, SOFTNUM_B, SOFTNUM_C_FIELD, SOFTNUM_OUT};
    for (int i = 0; i < 4; i++)
        s->field[i] = softnum_field(formats, shifts[i]);
    s->has_third = s->field[2] != 0;
    if (!s->field[0]) s->field[0] = s->field[3];
    if (!s->field[1]) s->field[1] = s->field[0];
    if (!s->field[2]) s->field[2] = s->field[3];
    if (softnum_fill(s->field[0], &s->a) && softnum_fill(s->field[1], &s->b) && softnum_fill(s->field[2], &s->third) &&
        softnum_fill(s->field[3], &s->out))
        return 1;
    softnum_no_handle(who, formats, flags);
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

/* As softnum_env; a rule of overflow that this kind of format does not know leaves it its default. */
static int own_env(const char *who, sn_u64 mode, const sn_format *f, sn_u32 field, sn_env *env) {
    const sn_u64 rule = (mode >> SOFTNUM_OVERFLOW_SHIFT) & 15;
    const sn_u64 foreign = f->kind == SN_FIXED ? SN_OVERFLOW_INFINITY + 1 : SN_OVERFLOW_WRAP + 1;
    return softnum_env(who, rule == foreign ? mode & ~((sn_u64)15 << SOFTNUM_OVERFLOW_SHIFT) : mode, f, field, env);
}

sn_u64 softnum_dpi_mac(sn_u64 acc, sn_u64 a, sn_u64 b, sn_u64 formats, sn_u64 mode, sn_u64 product_mode, sn_u64 random,
                       sn_u64 *flags) {
    static const char who[] = "softnum_mac";
    sum_formats s;
    sn_env sum, product;
    sn_u32 raised = 0;
    if (!read_formats(who, formats, &s, flags)) return ~(sn_u64)0;
    if (!softnum_fits(who, "acc", acc, &s.out, s.field[3]) || !softnum_fits(who, "a", a, &s.a, s.field[0]) ||
        !softnum_fits(who, "b", b, &s.b, s.field[1]) || !has_zero(who, &s.out, s.field[3]) ||
        !has_zero(who, &s.third, s.field[2]) || !own_env(who, mode, &s.out, s.field[3], &sum))
        return softnum_error_again(flags);
    if (s.has_third) {
        if (!own_env(who, product_mode, &s.third, s.field[2], &product)) return softnum_error_again(flags);
        const sn_u64 p = sn_multiply(&s.a, a, &s.b, b, &s.third, &product, (sn_u32)random, &raised);
        acc = sn_add(&s.out, acc, &s.third, p, &s.out, &sum, (sn_u32)(random >> 32), &raised);
    } else {
        acc = sn_fma(&s.a, a, &s.b, b, &s.out, acc, &s.out, &sum, (sn_u32)(random >> 32), &raised);
    }
    *flags |= raised & SOFTNUM_EXCEPTIONS;
    return acc;
}

/* Element i of a word of elements. */
static sn_u64 element(const sn_u32 *word, sn_u64 i, sn_i32 bits) {
    const sn_u64 at = i * (sn_u64)bits, first = at / 32, last = (at + (sn_u64)bits - 1) / 32;
    sn_u128 window = sn_u128_make(0, 0);
    for (sn_u64 k = last + 1; k-- > first;)
        window = sn_u128_add(sn_u128_shl(window, 32), sn_u128_make(0, word[k]));
    return sn_u128_shr(window, (sn_i32)(at % 32)).lo & (~(sn_u64)0 >> (64 - bits));
}

static int known_length(const char *who, sn_u64 length, const sum_formats *s) {
    const sn_i32 bits = s->a.bits > s->b.bits ? s->a.bits : s->b.bits;
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
    if (!read_formats(who, formats, &s, flags)) return ~(sn_u64)0;
    if (s.has_third && s.field[2] != s.field[3])
        return softnum_error(flags, "%s: c is of the result's format; state A,B->OUT", who);
    if (!known_length(who, length, &s) || !softnum_fits(who, "c", c, &s.out, s.field[3]) ||
        !has_zero(who, &s.out, s.field[3]) || !softnum_env(who, mode, &s.out, s.field[3], &env))
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
    const sn_number start = sn_unpack(&s.out, c);
    sn_kulisch_add(&sum, &start);
    for (sn_u64 k = 0; k < length; k++) {
        const sn_number x = sn_unpack(&s.a, element(a, k, s.a.bits)), y = sn_unpack(&s.b, element(b, k, s.b.bits));
        sn_kulisch_add_product(&sum, &x, &y);
    }
    const sn_u64 result = sn_kulisch_round(&sum, &s.out, &env, (sn_u32)random, &raised);
    *flags |= raised & SOFTNUM_EXCEPTIONS;
    return result;
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
    if (!read_formats(who, formats, &s, flags)) return ~(sn_u64)0;
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
        !has_zero(who, &s.out, s.field[3]) || !softnum_env(who, mode, &s.third, s.field[2], &u.sum_env) ||
        !softnum_env(who, mode, &s.out, s.field[3], &u.output_env))
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
    u.truncate_fraction = (sn_i32)truncate_fraction;
    u.c_after = (sn_i32)c_after;
    u.same_output = s.field[2] == s.field[3];
    u.order = 0;
    for (sn_u64 k = 0; k < length; k++) {
        x[k] = element(a, k, s.a.bits);
        y[k] = element(b, k, s.b.bits);
    }
    const sn_u64 result = sn_fused_dot(&u, x, 1, y, 1, (sn_i64)length, c, &raised, &raised);
    *flags |= raised & SOFTNUM_EXCEPTIONS;
    return result;
}

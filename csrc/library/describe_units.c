/* softnum.h: units, checked and made ready. */
#include <stdlib.h>
#include <string.h>

#include "library/objects.h"
#include "softnum/operations/suits.h"

#define WHO "softnum_unit_new"

static softnum_status check_format(const softnum_format *f, const char *what, int sums, int floats, softnum_why *why) {
    if (!f) return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, WHO ": %s is null: state a format", what);
    if (sums && !f->core.has_zero)
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, WHO ": %s, %s, has no zero to start a sum from", what, f->name);
    if (floats && f->core.kind != SN_FLOAT)
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, WHO ": %s must be a float format for a fused unit, not %s", what,
                            f->name);
    return SOFTNUM_OK;
}

static softnum_status check_number(const char *what, sn_i64 value, sn_i64 least, sn_i64 most, softnum_why *why) {
    if (value >= least && value <= most) return SOFTNUM_OK;
    return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, WHO ": %s is from %lld to %lld, got %lld", what, (long long)least,
                        (long long)most, (long long)value);
}

/* The environment of a rounding to a format; mode: or SOFTNUM_NONE, that of the rules. */
static softnum_status unit_env(const softnum_rules *rules, const softnum_format *f, int32_t mode, int foreign,
                               sn_env *env, softnum_why *why) {
    softnum_rules r = SOFTNUM_RULES_INIT;
    if (rules) r = *rules;
    if (r.size == sizeof r && (r.tiny_before || r.nan || r.invalid_code))
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT,
                            WHO
                            ": units judge tininess after rounding, deliver canonical NaNs and have no invalid_code: "
                            "leave tiny_before, nan and invalid_code 0");
    if (mode != SOFTNUM_NONE) r.rounding = mode;
    return softnum_fill_env(WHO, &r, f, foreign, env, why);
}

static softnum_status make_mad(const softnum_unit_facts *p, softnum_unit *u, softnum_why *why) {
    sn_mad_unit *m = &u->of.mad.unit;
    const softnum_format *outer = p->result ? p->result : p->accumulator, *product = p->product;
    const int32_t rule = p->rules ? p->rules->overflow : 0;
    softnum_status s;
    if ((s = check_number("lanes", p->lanes, 1, SN_MAX_LANES, why)) != SOFTNUM_OK ||
        (s = check_number("reduction", p->reduction, 0, SOFTNUM_REDUCE_BY_HALVES, why)) != SOFTNUM_OK ||
        (s = check_number("compensated", p->compensated, 0, 1, why)) != SOFTNUM_OK ||
        (s = check_number("chunk", p->chunk, 0, (sn_i64)1 << 32, why)) != SOFTNUM_OK ||
        (s = check_format(outer, "result", 1, 0, why)) != SOFTNUM_OK ||
        (product && (s = check_format(product, "product", 1, 0, why)) != SOFTNUM_OK))
        return s;
    if (p->result && !p->chunk)
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT,
                            WHO ": a multiply-add unit's result is of the sum of chunks: state "
                                "chunk, or no result");
    if (!product && p->product_rounding != SOFTNUM_NONE)
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, WHO ": product_rounding needs product, the format to round to");
    const int known = sn_knows_overflow(&p->accumulator->core, rule - 1) || sn_knows_overflow(&outer->core, rule - 1) ||
                      (product && sn_knows_overflow(&product->core, rule - 1));
    m->operand_a = u->a.core;
    m->operand_b = u->b.core;
    m->fused = !product;
    if (product) m->product = product->core;
    m->accumulator = p->accumulator->core;
    m->outer = outer->core;
    if ((s = unit_env(p->rules, product ? product : p->accumulator, p->product_rounding, known, &m->product_env,
                      why)) != SOFTNUM_OK ||
        (s = unit_env(p->rules, p->accumulator, SOFTNUM_NONE, known, &m->sum_env, why)) != SOFTNUM_OK ||
        (s = unit_env(p->rules, outer, SOFTNUM_NONE, known, &m->outer_env, why)) != SOFTNUM_OK)
        return s;
    if (p->compensated && sn_is_stochastic(&m->sum_env))
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT,
                            WHO ": compensated sums round four times a step, for which there are "
                                "no random words; take a mode that is not stochastic");
    const int product_stochastic = product && sn_is_stochastic(&m->product_env);
    m->two_roundings = product_stochastic && sn_is_stochastic(&m->sum_env);
    m->chunk = p->chunk;
    m->lanes = p->lanes;
    m->reduction = p->reduction;
    m->compensated = p->compensated;
    u->stochastic = product_stochastic || sn_is_stochastic(&m->sum_env);
    u->c = u->result = *outer;
    u->bits = sn_gemm_path(m, sn_facts_of(&m->operand_a), sn_facts_of(&m->operand_b), 0, &u->of.mad.fast);
    return SOFTNUM_OK;
}

static softnum_status make_exact(const softnum_unit_facts *p, softnum_unit *u, softnum_why *why) {
    sn_exact_unit *x = &u->of.exact.unit;
    const softnum_status s = unit_env(p->rules, p->accumulator, SOFTNUM_NONE, 0, &x->env, why);
    if (s != SOFTNUM_OK) return s;
    if (p->result || (p->rules && (p->rules->flush_inputs || p->rules->flush_results)))
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT,
                            WHO ": an exact unit's result is in the accumulator's format, and "
                                "nothing is flushed");
    x->operand_a = u->a.core;
    x->operand_b = u->b.core;
    x->accumulator = p->accumulator->core;
    const sn_facts a = sn_facts_of(&x->operand_a), b = sn_facts_of(&x->operand_b), c = sn_facts_of(&x->accumulator);
    const sn_i32 top = sn_end_of(&x->operand_a) + sn_end_of(&x->operand_b), top_c = sn_end_of(&x->accumulator);
    x->bottom = a.last + b.last < c.last ? a.last + b.last : c.last;
    x->words = ((top > top_c ? top : top_c) + 32 - x->bottom + 1 + 63) / 64; /* C and 2^32 - 1 products */
    if (x->words > SN_KULISCH_WORDS)
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT,
                            WHO ": the exact sum would take %d bits, and an accumulator has up to "
                                "%d: take narrower formats, or a multiply-add unit",
                            (int)(64 * x->words), 64 * SN_KULISCH_WORDS);
    u->stochastic = sn_is_stochastic(&x->env);
    u->c = u->result = *p->accumulator;
    u->bits = sn_exact_path(x, a, b, &u->of.exact.fast) ? 64 : 0;
    return SOFTNUM_OK;
}

static softnum_status make_fused(const softnum_unit_facts *p, softnum_unit *u, softnum_why *why) {
    sn_fused_unit *x = &u->of.fused.unit;
    const softnum_format *output = p->result ? p->result : p->accumulator;
    const sn_i32 most = p->accumulator->core.emin < 0 ? p->accumulator->core.emin : 0;
    softnum_rules rules = SOFTNUM_RULES_INIT, after;
    softnum_status s;
    if (p->rules) rules = *p->rules;
    if ((s = check_number("terms", p->terms, 1, SN_FUSED_TERMS, why)) != SOFTNUM_OK ||
        (s = check_number("fraction_bits", p->fraction_bits, 0, SN_FUSED_FRACTION_BITS, why)) != SOFTNUM_OK ||
        (p->min_exponent != SOFTNUM_NONE &&
         (s = check_number("min_exponent", p->min_exponent, -65536, 65536, why)) != SOFTNUM_OK) ||
        (p->zero_exponent != SOFTNUM_NONE &&
         (s = check_number("zero_exponent", p->zero_exponent, -65536, most, why)) != SOFTNUM_OK) ||
        (p->truncate_fraction != SOFTNUM_NONE &&
         (s = check_number("truncate_fraction", p->truncate_fraction, 0, 127, why)) != SOFTNUM_OK) ||
        (s = check_format(output, "result", 1, 1, why)) != SOFTNUM_OK ||
        (s = check_format(p->accumulator, "accumulator", 1, 1, why)) != SOFTNUM_OK ||
        (s = check_format(p->a, "a", 1, 1, why)) != SOFTNUM_OK ||
        (s = check_format(p->b, "b", 1, 1, why)) != SOFTNUM_OK)
        return s;
    x->always_infinity = rules.size == sizeof rules && rules.overflow == SOFTNUM_OVERFLOW_INFINITE_IN_EVERY_MODE;
    if (x->always_infinity) rules.overflow = SOFTNUM_OVERFLOW_DEFAULT;
    const int known = sn_knows_overflow(&p->accumulator->core, rules.overflow - 1) ||
                      sn_knows_overflow(&output->core, rules.overflow - 1);
    if ((s = unit_env(&rules, p->accumulator, SOFTNUM_NONE, known, &x->sum_env, why)) != SOFTNUM_OK ||
        (s = unit_env(&rules, output, SOFTNUM_NONE, known, &x->output_env, why)) != SOFTNUM_OK)
        return s;
    if (sn_is_stochastic(&x->sum_env) || rules.flush_inputs || rules.flush_results)
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT,
                            WHO ": a fused unit rounds in a mode that is not stochastic, and "
                                "flushes nothing");
    after = rules;
    after.rounding = SOFTNUM_NEAREST_EVEN;
    if ((s = unit_env(&after, output, SOFTNUM_NONE, known, &x->after_env, why)) != SOFTNUM_OK) return s;
    x->a = u->a.core;
    x->b = u->b.core;
    x->accumulator = p->accumulator->core;
    x->output = output->core;
    x->terms = x->period = p->terms;
    x->fraction_bits = p->fraction_bits;
    x->min_exponent = p->min_exponent == SOFTNUM_NONE ? SN_FUSED_NO_FLOOR : p->min_exponent;
    x->zero_exponent = p->zero_exponent == SOFTNUM_NONE ? SN_FUSED_NO_FLOOR : p->zero_exponent;
    x->truncate_fraction = p->truncate_fraction == SOFTNUM_NONE ? -1 : p->truncate_fraction;
    x->same_output = !memcmp(&x->accumulator, &x->output, sizeof x->output);
    u->c = *p->accumulator;
    u->result = *output;
    u->bits = sn_fused_path(x, &u->of.fused.fast) ? 32 : 0;
    return SOFTNUM_OK;
}

/* The fast path's results are encoded: exactly, if the format is one of its lanes; else there is none. */
static void keep_fast_path(softnum_unit *u) {
    sn_env env = {SN_NEAREST_EVEN, SN_OVERFLOW_INFINITY, SN_TININESS_AFTER, 32, 0, 0, SN_NAN_CANONICAL, 0};
    const int wide = u->bits == 64;
    if (!u->bits) return;
    env.overflow = sn_default_overflow(&u->result.core);
    softnum_fill_rounder(&u->result, &env, &u->encoder);
    if (!u->encoder.rounds[wide] || !u->a.decodes[wide] || !u->b.decodes[wide] || !u->c.decodes[wide]) u->bits = 0;
}

softnum_status softnum_unit_new(const softnum_unit_facts *p, softnum_unit **unit, softnum_why *why) {
    softnum_status s;
    if (!unit) return softnum_fail(why, SOFTNUM_BAD_ARGUMENT, WHO ": unit is null");
    *unit = NULL;
    if (!p || p->size != sizeof *p)
        return softnum_fail(why, SOFTNUM_BAD_ARGUMENT,
                            WHO ": facts are null, or their size is not as SOFTNUM_UNIT_INIT sets it");
    if ((s = check_format(p->a, "a", 0, 0, why)) != SOFTNUM_OK ||
        (s = check_format(p->b, "b", 0, 0, why)) != SOFTNUM_OK ||
        (s = check_format(p->accumulator, "accumulator", 1, 0, why)) != SOFTNUM_OK ||
        (s = check_number("kind", p->kind, SOFTNUM_UNIT_MAD, SOFTNUM_UNIT_FUSED, why)) != SOFTNUM_OK)
        return s;
    softnum_unit *u = softnum_new(sizeof *u, why, &s);
    if (!u) return s;
    u->kind = p->kind;
    u->a = *p->a;
    u->b = *p->b;
    const sn_u64 saved = sn_fp_enter(); /* paths are chosen by numbers in float */
    s = p->kind == SOFTNUM_UNIT_MAD     ? make_mad(p, u, why)
        : p->kind == SOFTNUM_UNIT_EXACT ? make_exact(p, u, why)
                                        : make_fused(p, u, why);
    if (s == SOFTNUM_OK) keep_fast_path(u);
    sn_fp_leave(saved);
    if (s != SOFTNUM_OK) {
        free(u);
        return s;
    }
    *unit = u;
    return SOFTNUM_OK;
}

void softnum_unit_free(softnum_unit *unit) { free(unit); }

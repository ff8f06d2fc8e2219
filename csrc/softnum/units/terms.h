/* Sums term by term by the definition, for all units whose sums are rounded step by step, on a CPU and on a GPU: a term
 * is exact, and what it becomes, rounded or added, is rounded once.
 *
 * Contract: as arith.h; NaNs are canonical (env->nan is SN_NAN_CANONICAL), so that a term does not say which NaN it is.
 */
#ifndef SOFTNUM_TERMS_H
#define SOFTNUM_TERMS_H

#include "softnum/units/kulisch.h"
#include "softnum/units/tally.h"

/* A number or a product that was not rounded: exact.sign, and of kind SN_FINITE the rest. inf * 0 raises INVALID as a
 * signaling NaN does, and is of kind SN_SIGNALING_NAN. */
typedef struct {
    sn_exact exact;
    sn_i32 kind;
} sn_term;

SN_FN sn_term sn_term_of(const sn_number *x) {
    sn_term t;
    t.exact = sn_exact_of(x);
    t.kind = x->kind;
    return t;
}

SN_FN sn_i32 sn_kind_of_product(const sn_number *x, const sn_number *y) {
    const sn_i32 larger = x->kind > y->kind ? x->kind : y->kind, zero = x->kind == SN_ZERO || y->kind == SN_ZERO;
    if (!zero) return larger;
    return larger <= SN_FINITE ? SN_ZERO : larger == SN_INF ? SN_SIGNALING_NAN : larger;
}

SN_ALWAYS sn_term sn_term_of_product(const sn_number *x, const sn_number *y) {
    sn_term t;
    if (x->kind == SN_FINITE && y->kind == SN_FINITE) {
        t.exact = sn_exact_make(x->sign ^ y->sign, sn_u128_mul(x->sig, y->sig), x->exp + y->exp);
        t.kind = SN_FINITE;
        return t;
    }
    t.exact = sn_product(x, y); /* of what is no number, its sign matters */
    t.kind = sn_kind_of_product(x, y);
    return t;
}

SN_FN sn_u64 sn_nan_of_kind(const sn_format *f, const sn_env *env, sn_i32 kind, sn_u32 *flags) {
    if (kind == SN_SIGNALING_NAN) sn_raise(f, SN_INVALID, flags);
    return f->has_nan ? f->nan_code : sn_invalid_result(f, env, flags);
}

/* The code of a term. */
SN_FN sn_u64 sn_term_code(const sn_term *t, const sn_format *f, const sn_env *env, sn_u32 word, sn_u32 *raised) {
    if (t->kind >= SN_QUIET_NAN) return sn_nan_of_kind(f, env, t->kind, raised);
    if (t->kind == SN_INF) return sn_inf_result(f, env, t->exact.sign, raised);
    return sn_round_pack(f, env, &t->exact, word, raised);
}

/* That of a term + y. */
SN_FN sn_u64 sn_term_sum_code(const sn_term *t, const sn_number *y, const sn_format *f, const sn_env *env, sn_u32 word,
                              sn_u32 *raised) {
    if (t->kind >= SN_QUIET_NAN || y->kind >= SN_QUIET_NAN)
        return sn_nan_of_kind(f, env, t->kind > y->kind ? t->kind : y->kind, raised);
    return sn_add_numbers(t->exact, t->kind == SN_INF, y, f, env, word, raised);
}

/* The two, with their flags reported. */
SN_FN sn_u64 sn_term_round(const sn_term *t, const sn_format *f, const sn_env *env, sn_u32 word, sn_told *told) {
    sn_u32 raised = 0;
    const sn_u64 code = sn_term_code(t, f, env, word, &raised);
    sn_tell(told, f, env, code, raised, t->kind == SN_INF);
    return code;
}

SN_FN sn_u64 sn_term_add(const sn_term *t, const sn_number *y, const sn_format *f, const sn_env *env, sn_u32 word,
                         sn_told *told) {
    sn_u32 raised = 0;
    const sn_u64 code = sn_term_sum_code(t, y, f, env, word, &raised);
    sn_tell(told, f, env, code, raised, t->kind == SN_INF || y->kind == SN_INF);
    return code;
}

/* That of a term - y. */
SN_FN sn_u64 sn_term_subtract(const sn_term *t, sn_number y, const sn_format *f, const sn_env *env, sn_told *told) {
    y.sign = !y.sign; /* which a format without signs has too */
    return sn_term_add(t, &y, f, env, 0, told);
}

/* The running sum after a term p; error: its compensation, which becomes the new one, or null. Both are codes of f.
 * Compensated (Kahan): y = R(p - e), t = R(sum + y), e = R(R(t - sum) - y), sum = t. told: of t; rest: of the other
 * roundings. */
SN_ALWAYS sn_u64 sn_term_into(const sn_term *p, sn_u64 sum, sn_u64 *error, const sn_format *f, const sn_env *env,
                              sn_u32 word, sn_told *told, sn_told *rest) {
    const sn_number old = sn_read(f, env, sum);
    if (!error) return sn_term_add(p, &old, f, env, word, told);
    const sn_number y = sn_read(f, env, sn_term_subtract(p, sn_read(f, env, *error), f, env, rest));
    const sn_term y_term = sn_term_of(&y);
    sum = sn_term_add(&y_term, &old, f, env, 0, told);
    const sn_number t = sn_read(f, env, sum);
    const sn_term t_term = sn_term_of(&t);
    const sn_number moved = sn_read(f, env, sn_term_subtract(&t_term, old, f, env, rest));
    const sn_term moved_term = sn_term_of(&moved);
    *error = sn_term_subtract(&moved_term, y, f, env, rest);
    return sum;
}

/* The code of an exact sum, which is used up. */
SN_FN sn_u64 sn_sum_round(sn_kulisch *sum, const sn_format *f, const sn_env *env, sn_u32 word, sn_told *told) {
    const sn_i32 infinite = (sum->met & (SN_MET_PLUS_INF | SN_MET_MINUS_INF)) != 0;
    sn_u32 raised = 0;
    const sn_u64 code = sn_kulisch_round(sum, f, env, word, &raised);
    sn_tell(told, f, env, code, raised, infinite);
    return code;
}

#endif

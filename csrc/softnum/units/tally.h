/* Sinks for the exception flags of roundings, and counters of them. */
#ifndef SOFTNUM_TALLY_H
#define SOFTNUM_TALLY_H

#include "softnum/rounding/env.h"
#include "softnum/rounding/format.h"

/* How many roundings of one kind there were, and what came of them. What overflowed or was infinite and is a finite
 * number all the same has saturated, unless it wrapped around. In formats that raise no flags the same is counted.
 * softnum/statistics.py holds the same names in this order. */
typedef struct {
    sn_u64 roundings, inexact, underflowed, overflowed, saturated, invalid;
} sn_tally;

/* What roundings of one kind have raised; their tally, or null. */
typedef struct {
    sn_u32 flags;
    sn_tally *tally;
} sn_told;

/* Nothing yet. */
SN_FN sn_told sn_told_nothing(sn_tally *tally) {
    sn_told t;
    t.flags = 0;
    t.tally = tally;
    return t;
}

/* A result, a code of f, and what its rounding raised. infinite: whether an operand was. */
SN_FN void sn_tell(sn_told *t, const sn_format *f, const sn_env *env, sn_u64 code, sn_u32 raised, sn_i32 infinite) {
    t->flags |= raised;
    if (!t->tally) return;
    const sn_i32 beyond = infinite || (raised & SN_FLAG_OVERFLOW) != 0;
    t->tally->roundings++;
    t->tally->inexact += (raised & SN_INEXACT) != 0;
    t->tally->underflowed += (raised & SN_UNDERFLOW) != 0;
    t->tally->overflowed += (raised & SN_FLAG_OVERFLOW) != 0;
    t->tally->saturated += beyond && env->overflow != SN_OVERFLOW_WRAP && sn_unpack(f, code).kind <= SN_FINITE;
    t->tally->invalid += (raised & SN_INVALID) != 0;
}

/* Whether a result was a NaN that its format has no code for. */
SN_FN sn_u32 sn_told_no_code(const sn_told *t) { return (t->flags & SN_NO_CODE) != 0; }

#endif

/* The elementary functions: of one operand (unary.h, which says why all are decided), and of two (pairs.h). */
#ifndef SOFTNUM_FUNCTIONS_H
#define SOFTNUM_FUNCTIONS_H

#include "softnum/elementary/pairs.h"

/* The function fn (SN_ELEMENTARY_...) of a, and of b if it has two operands. */
SN_FN sn_u64 sn_elementary(sn_i32 fn, const sn_format *fa, sn_u64 a, const sn_format *fb, sn_u64 b, const sn_format *fo,
                           const sn_env *env, sn_u32 random, sn_u32 *flags) {
    switch (fn) {
    case SN_ELEMENTARY_hypot: return sn_hypot(fa, a, fb, b, fo, env, random, flags);
    case SN_ELEMENTARY_pow:
    case SN_ELEMENTARY_pown:
    case SN_ELEMENTARY_powr: return sn_pow(fn, fa, a, fb, b, fo, env, random, flags);
    case SN_ELEMENTARY_compound: return sn_compound(fa, a, fb, b, fo, env, random, flags);
    case SN_ELEMENTARY_rootn: return sn_rootn(fa, a, fb, b, fo, env, random, flags);
    case SN_ELEMENTARY_atan2:
    case SN_ELEMENTARY_atan2pi: return sn_arc(fn, fa, a, fb, b, fo, env, random, flags);
    case SN_ELEMENTARY_logaddexp:
    case SN_ELEMENTARY_logaddexp2: return sn_log_of_sum(fn, fa, a, fb, b, fo, env, random, flags);
    default: break;
    }
    return sn_elementary_unary(fn, fa, a, fo, env, random, flags);
}

#endif

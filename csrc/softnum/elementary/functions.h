/* The elementary functions: special values, exact values, and enclosures of all others, of one operand (unary.h) and
 * of two (pairs.h).
 *
 * Special values are those of IEEE 754-2019 9.2.1, and limits for the functions that it does not have: sigmoid,
 * softplus, erf, gelu(x) = x (1 + erf(x / sqrt(2))) / 2, silu(x) = x sigmoid(x), reciprocal. In P3109's formats 1 / 0
 * is NaN, that of rsqrt too, and every NaN is propagated.
 *
 * No result that is evaluated lies on the border of a cell, since borders are dyadic rationals:
 * - e^x, log x, and what is made of them by rational operations (expm1, log1p, sinh, cosh, tanh, sigmoid, silu,
 * softplus), sin, cos, tan and their inverses are transcendental for algebraic x but 0 (and 1, of log and acos):
 * Lindemann and Weierstrass; see Niven, Irrational Numbers, chapter 9. softplus(x) = y means e^0 + e^x = e^y, likewise
 * impossible.
 * - asinh, acosh and atanh are logarithms of algebraic numbers that are 1 for x = 0 (1, of acosh) alone.
 * - 2^x is irrational unless the dyadic x is an integer; log2 x is irrational unless x is a power of two, for x^b = 2^a
 *   leaves no odd factor; log10 x unless x = 10^k, k >= 0, for x^b = 2^a 5^a means x = 2^k 5^k. 10^x likewise, and what
 *   is 1 from them (exp2m1, exp10m1, log2p1, log10p1).
 * - sin, cos and tan of rational multiples of pi are rational for 0, 1/2, 1 (sin, cos) and 0, 1 (tan) alone (Niven,
 *   Corollary 3.12): of a dyadic x sinpi and cospi where 2x is an integer, tanpi where 4x is. asinpi(1/2) = 1/6 and
 *   acospi(1/2) = 1/3 are rational, but not dyadic.
 * - pow(x, y) with odd significands m of x and k of y = k 2^b: sn_power_exact.
 * - (1 + x)^n and x^(1/n): the same of 1 + x, and of n-th powers (sn_root_exact); 10^x and the like as 2^x.
 * - atan2(y, x) is the arc of an algebraic tangent, 0 for y = 0 alone; atan2pi is rational where |x| = |y|.
 * - log(e^x + e^y) = z means e^x + e^y = e^z, which is impossible (Lindemann and Weierstrass). 2^x + 2^y = 2^z: with
 *   r = 2^(1/b), b the power of two that makes integers of b x, b y and b z, a relation of three powers of r, which are
 *   linearly independent unless their exponents differ by multiples of b; then 1 + 2^k = 2^m, and x = y.
 * - The cube root of a dyadic number that is rational is dyadic: sn_cube_root_exact.
 * - erf(x) and gelu(x) are not known to be irrational. An equality would end as SN_UNDECIDED, not as a wrong result. */
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

/* Rounding by the magic constant, in the carrier's own additions: included by lanes/round.h, for each carrier and each
 * instruction set.
 *
 * With E = the exponent of x, but at least that of the format's lowest binade, and C = 1.5 * 2^(E + M - m), x + C lies
 * in the binade of C for either sign of x, since |x| < 2^(E + 1) <= C / 3 for m <= M - 2. Its last place is the
 * format's at x, so the addition itself rounds x, in the mode that the FP environment is set to (sn_fp_round), and its
 * last bits are x in the format's last places: the code, once (E - emin) * 2^m is added. Subtracting C is exact.
 *   - even, directed: |x| + C in the mode, or x + C where the sign of x decides.
 *   - the other nearest modes: with C half as large, x + C is x in halves of the last place, truncated or rounded up;
 *     from there an integer addition and a cut decide ties (m <= M - 3).
 *   - to_odd: truncated; the last bit is set where that was inexact.
 * Domain: m >= 1 where even and odd matter, since with m = 0 that is a matter of the exponent; x up to r->easy, the
 * largest value or the largest for which C is finite, and for its code up to r->last (lanes/convert.h); what lies above
 * takes the other way. Where the lowest binade is normal, what lies between 0 and the smallest value is compared with a
 * threshold. Formats whose smallest value is subnormal in the carrier take the other way too, since x + C - C may be:
 * as exact, but a hundred times slower on some CPUs. */

typedef struct {
    L_U whole, part; /* x in last places + C, as a pattern; and C */
    L_U exponent;    /* E, in place */
} SN_L(magic);

/* by_sign: r->negative, known to the compiler. */
SN_INLINE SN_L(magic) SN_L(add_magic)(const sn_rounding *r, int family, int by_sign, L_U bits) {
    const L_U zero = {0};
    SN_L(magic) x;
    const L_U u = bits & ~L_SIGN;
    x.exponent = (L_U)L_MAX((L_I)u, (L_I)zero + (L_i)r->least) & (zero + L_INFINITY);
    x.part = x.exponent + (L_u)r->to_constant;
    x.whole = (L_U)((L_V)(by_sign ? bits : u) + (L_V)x.part);
    if (family == SN_FAMILY_NEAREST) x.whole = (x.whole + (L_u)r->bump) & ~(zero + 1u);
    if (family == SN_FAMILY_ODD) x.whole |= (L_U)((L_V)x.whole - (L_V)x.part != (L_V)u) & 1u;
    return x;
}

/* Whether what lies in the gap below the smallest value rounds to it. */
SN_INLINE L_I SN_L(leaves_gap)(const sn_rounding *r, int family, int by_sign, L_U bits) {
    const L_U zero = {0};
    if (family == SN_FAMILY_DIRECTED && by_sign) /* whatever is not 0, on one side */
        return (L_I)(bits ^ (zero + (r->constant ? 0 : L_SIGN))) > (L_I)zero;
    L_U threshold = zero + (L_u)r->gap_threshold[0];
    if (by_sign) threshold = L_SELECT((L_I)bits < 0, zero + (L_u)r->gap_threshold[1], threshold);
    return (L_I)(bits & ~L_SIGN) >= (L_I)threshold;
}

/* The magnitude of the rounded value, as a pattern. */
SN_INLINE L_U SN_L(magic_value)(const sn_rounding *r, int family, int by_sign, int unusual, L_U bits) {
    const L_U zero = {0};
    const SN_L(magic) x = SN_L(add_magic)(r, family, by_sign, bits);
    L_U out = (L_U)((L_V)x.whole - (L_V)x.part) & ~L_SIGN;
    if (unusual) {
        const L_I gap = (L_I)(bits & ~L_SIGN) < (L_I)zero + (L_i)r->quantum;
        out = L_SELECT(gap, (zero + (L_u)r->quantum) & (L_U)SN_L(leaves_gap)(r, family, by_sign, bits), out);
    }
    return out;
}

/* Its magnitude code. */
SN_INLINE L_U SN_L(magic_code)(const sn_rounding *r, int family, int by_sign, int unusual, L_U bits) {
    const L_U zero = {0};
    const SN_L(magic) x = SN_L(add_magic)(r, family, by_sign, bits);
    const L_I places = (L_I)(x.whole - x.part);
    L_U code = (L_U)places;
    if (by_sign) code = (L_U)L_MAX(places, -places);
    if (family == SN_FAMILY_NEAREST) code >>= 1;
    code += L_RIGHT(x.exponent - (L_u)r->least, zero + (L_u)(L_M - r->mantissa_bits));
    if (unusual) { /* in the gap the first is at most 1, and 0 where the second is; above it at least 1 */
        const L_I left = (L_I)SN_L(leaves_gap)(r, family, by_sign, bits) & 1;
        code = (L_U)L_MAX((L_I)(code - ((L_u)1 << r->mantissa_bits)), left);
    }
    return code;
}

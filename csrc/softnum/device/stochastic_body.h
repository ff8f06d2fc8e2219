/* Included by stochastic_steps.h for each carrier: P_BITS 32 and 64. */

/* A format and an environment; constants, which fold. */
typedef struct {
    sn_i32 mantissa_bits, stochastic_bits, negative_zero;
    P_f normal;   /* 2^emin */
    P_f limit;    /* the largest value */
    P_f overflow; /* a magnitude: what lies beyond it becomes, and infinities */
} P_(target);

/* R added at the first of the places that are cut. */
SN_FN P_u P_(random_cut)(const P_(target) * p, P_u bits, sn_u32 word) {
    const sn_i32 drop = P_M - p->mantissa_bits, r = p->stochastic_bits;
    const P_u random = (P_u)word & (((P_u)1 << r) - 1);
    return (bits + (random << (drop - r))) & ~(((P_u)1 << drop) - 1);
}

/* What v becomes that is too large, or infinite, or a NaN. */
SN_FN P_f P_(target_beyond)(const P_(target) * p, P_f v) {
    if (P_(bits)(p->overflow) >= P_INFINITY) return P_(multiply)(v, p->overflow);
    if (v != v) return v;
    return P_(float)(P_(bits)(p->overflow) | (P_(bits)(v) >> (P_BITS - 1)) << (P_BITS - 1));
}

/* From 2^emin on, or a multiple of the last place below it, but not -0; nothing is too large. */
SN_FN P_f P_(stochastic_bare)(const P_(target) * p, P_f v, sn_u32 word) {
    return P_(float)(P_(random_cut)(p, P_(bits)(v), word));
}

/* The same of anything that may be too large, infinite or a NaN. */
SN_FN P_f P_(stochastic_tested)(const P_(target) * p, P_f v, sn_u32 word) {
    const P_f rounded = P_(multiply_add)(v, 0, P_(stochastic_bare)(p, v, word));
    return P_(magnitude)(rounded) <= p->limit ? rounded : P_(target_beyond)(p, v);
}

/* A magnitude, of any size. */
SN_FN P_f P_(stochastic_size)(const P_(target) * p, P_f size, sn_u32 word) {
    const P_f below = size < p->normal ? p->normal : 0;
    return P_(subtract)(P_(float)(P_(random_cut)(p, P_(bits)(P_(add_zero)(size, below)), word)), below);
}

/* With the sign of v; where there is no -0, +0. */
SN_FN P_f P_(target_signed)(const P_(target) * p, P_f size, P_f v) {
    const P_f out = P_(float)(P_(bits)(size) | (P_(bits)(v) >> (P_BITS - 1)) << (P_BITS - 1));
    return p->negative_zero ? out : P_(add)(out, 0);
}

/* Of any size, but nothing is too large. */
SN_FN P_f P_(stochastic_finite)(const P_(target) * p, P_f v, sn_u32 word) {
    return P_(target_signed)(p, P_(stochastic_size)(p, P_(magnitude)(v), word), v);
}

/* Anything. */
SN_FN P_f P_(stochastic_full)(const P_(target) * p, P_f v, sn_u32 word) {
    P_f rounded = P_(multiply_add)(v, 0, P_(stochastic_size)(p, P_(magnitude)(v), word));
    if (!(rounded <= p->limit)) rounded = P_(target_beyond)(p, v);
    return P_(target_signed)(p, rounded, v);
}

#include <string.h>

#include "dispatch/facts.h"
#include "dispatch/kernels.h"
#include "softnum/operations/arith.h"

const sn_format sn_binary32 = {
    .kind = SN_FLOAT,
    .bits = 32,
    .is_signed = 1,
    .mantissa_bits = 23,
    .emin = -126,
    .emax = 127,
    .lowest = SN_LOWEST_SUBNORMAL,
    .has_zero = 1,
    .negative_zero = 1,
    .has_inf = 1,
    .has_nan = 1,
    .quiet_bit = 0x400000,
    .max_code = 0x7f7fffff,
    .inf_code = 0x7f800000,
    .nan_first = 0x7f800001,
    .nan_code = 0x7fc00000,
    .magnitude_mask = 0x7fffffff,
    .sign_mask = 0x80000000,
};

const sn_format sn_binary64 = {
    .kind = SN_FLOAT,
    .bits = 64,
    .is_signed = 1,
    .mantissa_bits = 52,
    .emin = -1022,
    .emax = 1023,
    .lowest = SN_LOWEST_SUBNORMAL,
    .has_zero = 1,
    .negative_zero = 1,
    .has_inf = 1,
    .has_nan = 1,
    .quiet_bit = 0x8000000000000,
    .max_code = 0x7fefffffffffffff,
    .inf_code = 0x7ff0000000000000,
    .nan_first = 0x7ff0000000000001,
    .nan_code = 0x7ff8000000000000,
    .magnitude_mask = 0x7fffffffffffffff,
    .sign_mask = 0x8000000000000000,
};

sn_u64 sn_pattern_of(const sn_format *carrier, const sn_format *f, sn_u64 code) {
    const sn_env env = {SN_TOWARD_ZERO, SN_OVERFLOW_INFINITY, SN_TININESS_AFTER, 1, 0, 0, SN_NAN_CANONICAL, 0};
    sn_u32 flags = 0;
    return sn_convert(f, code, carrier, &env, 0, &flags);
}

/* Whether the format's values are values of the carrier, as the domains in kernels.h say; then *emin and *m are the
 * lowest binade's exponent and the fraction bits of the float that fixed point is treated as. */
static int fits(const sn_format *f, const sn_format *carrier, sn_i32 *emin, sn_i32 *m) {
    const sn_i32 fixed = f->kind == SN_FIXED;
    *emin = fixed ? f->bits - f->mantissa_bits : f->emin;
    *m = fixed ? f->bits : f->mantissa_bits;
    if (f->bits > carrier->bits || *m > carrier->mantissa_bits) return 0;
    return *emin >= carrier->emin && (fixed ? *emin : f->emax) <= carrier->emax;
}

#define MODE(NAME, name, number, family, negative, constant, direction, bump)                                          \
    {#name, SN_FAMILY_##family, negative, constant, SN_FP_##direction, bump},
const sn_mode sn_modes[SN_ROUNDING_MODES] = {SN_MODES(MODE)};

/* What the short ways of lanes/round.h need; the rest of r is set. */
static void set_short_way(sn_rounding *r, const sn_format *f, const sn_format *carrier) {
    const sn_i32 M = carrier->mantissa_bits, bias = carrier->emax;
    const sn_i32 up = M - r->mantissa_bits - (r->family == SN_FAMILY_NEAREST); /* from E to the exponent of C */
    const sn_i64 largest = (sn_i64)sn_pattern_of(carrier, f, f->max_code);
    r->easy = r->last = -1;
    r->below_one = 0;
    r->direction = SN_FP_NEAREST;
    if (r->family >= SN_FAMILY_STOCHASTIC || !f->is_signed || !r->has_zero || r->lowest == SN_LOWEST_ZERO) return;
    if (r->biased_emin == 1 && r->mantissa_bits < M && !r->unusual) {
        r->below_one = ((sn_u64)1 << (M - r->mantissa_bits)) - 1;
        r->easy = largest;
        r->last = (sn_i64)(2 * bias + 1) << M; /* infinity, which is cut to itself */
        return;
    }
    if (up < 2 || r->biased_emin + up > 2 * bias || r->quantum >> M == 0) return;
    if (r->mantissa_bits == 0 && (r->family == SN_FAMILY_EVEN || r->family == SN_FAMILY_ODD))
        return;                                                 /* the last bit of the code is the exponent's */
    const sn_i64 last = ((sn_i64)(2 * bias - up + 1) << M) - 1; /* C is finite up to there */
    r->easy = largest < last ? largest : last;
    const sn_i64 code = (last - ((sn_i64)(r->biased_emin - 1) << M)) >> (M - r->mantissa_bits);
    if (code > r->limit[0] && code > r->limit[1]) r->last = last;
    r->least = (sn_u64)r->biased_emin << M;
    r->to_constant = (sn_u64)up << M | (sn_u64)1 << (M - 1);
    r->direction = sn_modes[r->rounding].direction;
    r->bump = sn_modes[r->rounding].bump;
}

int sn_rounding_prepare(const sn_format *f, const sn_env *env, int carrier_bits, sn_rounding *r) {
    const sn_format *carrier = carrier_bits == 32 ? &sn_binary32 : &sn_binary64;
    const sn_i32 fixed = f->kind == SN_FIXED;
    sn_i32 emin, m;
    if (env->nan != SN_NAN_CANONICAL || env->flush_results || !fits(f, carrier, &emin, &m)) return 0;
    if (sn_modes[env->rounding].family == SN_FAMILY_NONE) return 0;
    if (fixed && env->overflow == SN_OVERFLOW_WRAP) return 0;
    if (sn_is_stochastic(env) && env->stochastic_bits < 1) return 0;
    if (sn_is_stochastic(env) && env->rounding > SN_STOCHASTIC_FLOOR && env->stochastic_bits == carrier_bits) return 0;
    if (!fixed && f->lowest == SN_LOWEST_ZERO && emin == carrier->emin)
        return 0; /* the carrier's subnormals round too */
    if (!fixed && f->lowest == SN_LOWEST_NORMAL && (f->has_zero ? emin < carrier->emin + 1 : !f->has_nan)) return 0;
    r->mantissa_bits = m;
    r->biased_emin = emin + carrier->emax;
    r->rounding = env->rounding;
    r->stochastic_bits = env->stochastic_bits;
    r->family = sn_modes[r->rounding].family;
    r->negative = sn_modes[r->rounding].negative;
    r->constant = sn_modes[r->rounding].constant;
    r->lowest = fixed ? SN_LOWEST_SUBNORMAL : f->lowest;
    r->unusual = r->lowest != SN_LOWEST_SUBNORMAL;
    r->has_zero = fixed || f->has_zero;
    r->fixed = fixed;
    r->no_nan = !f->has_nan;
    r->no_infinity = fixed;
    const sn_u64 least = !r->has_zero ? 0 : r->lowest == SN_LOWEST_ZERO ? (sn_u64)1 << m : 1;
    r->quantum = sn_pattern_of(carrier, f, least);
    r->half_gap = r->lowest == SN_LOWEST_NORMAL && r->has_zero ? r->quantum - ((sn_u64)1 << carrier->mantissa_bits) : 0;
    for (int sign = 0; sign < 2; sign++) {
        const int goes_up = (r->negative & sign) ^ r->constant; /* a tie (nearest), anything inexact (directed) */
        r->gap_threshold[sign] = r->family == SN_FAMILY_DIRECTED ? goes_up ? 1 : r->quantum
                                 : r->family == SN_FAMILY_ODD    ? 1
                                                                 : r->half_gap + !goes_up;
    }
    r->sign_of_zero = f->negative_zero ? carrier->sign_mask : 0;
    r->sign_mask = f->sign_mask;
    r->code_mask = f->magnitude_mask | f->sign_mask;
    r->bits = f->bits;
    r->negative_zero = f->negative_zero;
    r->codes.nan = f->has_nan ? f->nan_code : env->invalid_code;
    r->values.nan = sn_pattern_of(carrier, f, r->codes.nan);
    for (int sign = 0; sign < 2; sign++) {
        sn_u32 flags = 0;
        const int nothing = sign && !f->is_signed; /* no number there but 0 */
        const sn_u64 most = nothing ? 0 : fixed ? (sign ? f->sign_mask : f->max_code) : f->max_code;
        const sn_u64 limit = sign ? fixed ? most : most | f->sign_mask : most; /* as a code */
        const sn_u64 overflow = !r->has_zero && sign ? f->nan_code
                                : fixed              ? limit
                                                     : sn_overflowed(f, env, sign, &flags);
        const sn_u64 infinity = sn_inf_result(f, env, sign, &flags);
        r->limit[sign] = !r->has_zero && sign ? -1 : (sn_i64)most;
        r->codes.overflow[sign] = overflow;
        r->codes.infinity[sign] = infinity;
        r->values.overflow[sign] = sn_pattern_of(carrier, f, overflow);
        r->values.infinity[sign] = sn_pattern_of(carrier, f, infinity);
    }
    r->least_limit = r->limit[0] < r->limit[1] ? r->limit[0] : r->limit[1];
    set_short_way(r, f, carrier);
    return 1;
}

sn_i32 sn_leaves_gap(const sn_rounding *r, sn_u64 u, sn_i32 M, sn_i32 sign, sn_u32 random) {
    const sn_i32 field = (sn_i32)(u >> M), bias = M == 23 ? sn_binary32.emax : sn_binary64.emax;
    const sn_u64 hidden = (sn_u64)1 << M;
    const sn_env env = {.rounding = r->rounding, .stochastic_bits = r->stochastic_bits};
    const sn_format f = {.mantissa_bits = r->mantissa_bits, .emin = r->biased_emin - bias};
    const sn_exact x = {.sig = sn_u128_make(0, (u & (hidden - 1)) | (field ? hidden : 0)),
                        .exp = (field ? field : 1) - bias - M,
                        .sign = sign};
    return sn_carries(&env, sn_cut_in_gap(&x, &f), sign, random);
}

int sn_decoding_prepare(const sn_format *f, int carrier_bits, sn_decoding *d) {
    const sn_format *carrier = carrier_bits == 32 ? &sn_binary32 : &sn_binary64;
    const sn_i32 fixed = f->kind == SN_FIXED, above = !fixed && f->lowest == SN_LOWEST_NORMAL;
    sn_i32 emin, m;
    if (!fits(f, carrier, &emin, &m)) return 0;
    d->bits = f->bits;
    d->fixed = fixed;
    d->negative_zero = f->negative_zero;
    d->nan_is_negative_zero = f->nan_is_negative_zero;
    d->subnormals = fixed || f->lowest == SN_LOWEST_SUBNORMAL;
    d->shift = carrier->mantissa_bits - m;
    d->low = above ? f->has_zero : (sn_i64)1 << m;
    d->max_code = (sn_i64)(fixed ? f->magnitude_mask | f->sign_mask : f->max_code);
    d->inf_code = f->has_inf ? (sn_i64)f->inf_code : -1;
    d->sign_mask = f->sign_mask;
    d->magnitude_mask = fixed ? f->magnitude_mask | f->sign_mask : f->magnitude_mask;
    const sn_u64 biased = (sn_u64)(emin + carrier->emax);
    d->rebias = (biased - !above) << carrier->mantissa_bits;
    d->first = biased << carrier->mantissa_bits;
    d->nan = carrier->nan_code;
    return 1;
}

int sn_lanes_prepare(int operation, const sn_format *in, const sn_format *out, const sn_env *env, sn_lanes *p) {
    static const sn_i32 operands[] = {1, 2, 2, 2, 3, 2, 1};
    const int product = operation == SN_LANES_MULTIPLY || operation == SN_LANES_FMA,
              rational = operation == SN_LANES_DIVIDE || operation == SN_LANES_SQRT;
    const sn_i32 seen = sn_facts_of(out).precision + 2 + (sn_is_stochastic(env) ? env->stochastic_bits : 0);
    memset(p, 0, sizeof *p);
    p->operation = operation;
    p->operands = operands[operation];
    p->down = env->rounding == SN_DOWN;
    p->stochastic = sn_is_stochastic(env);
    if (env->flush_inputs || !sn_rounding_prepare(out, env, 64, &p->out)) return 0;
    sn_i32 specials = rational; /* 0 / 0, the root of -1 */
    for (int k = 0; k < p->operands; k++) {
        if (!sn_decoding_prepare(&in[k], 64, &p->in[k])) return 0;
        const sn_facts x = sn_facts_of(&in[k]);
        specials |= in[k].has_nan | in[k].has_inf;
        if (operation != SN_LANES_CONVERT && x.top > 1000) return 0;
        if (rational && (x.last < -400 || x.top > 400)) return 0;
    }
    if (specials && !out->has_nan) return 0;
    if (operation == SN_LANES_DIVIDE && (out->p3109 || sn_facts_of(&in[1]).precision > 26))
        return 0; /* there x / 0 is NaN */
    if (operation == SN_LANES_SQRT && (sn_facts_of(&in[0]).precision > 50 || seen > 50)) return 0;
    if (product) {
        const sn_facts x = sn_facts_of(&in[0]), y = sn_facts_of(&in[1]);
        if (x.precision + y.precision > 53 || x.last + y.last < -1074 || x.top + y.top + 2 > 1000) return 0;
    }
    return operation == SN_LANES_CONVERT || operation == SN_LANES_MULTIPLY || seen <= 53;
}

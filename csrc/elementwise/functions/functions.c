#include "elementwise/functions/functions.h"

#include "dispatch/facts.h"
#include "elementwise/short/floats.h"

enum { MOST_DIGITS = 30, MOST_DECIDING = 46 };

static const sn_format between = {
    .kind = SN_FLOAT,
    .bits = 64,
    .is_signed = 1,
    .mantissa_bits = SN_FUNCTION_BITS,
    .emin = 1 - SN_FUNCTION_BIAS,
    .emax = SN_FUNCTION_BIAS,
    .lowest = SN_LOWEST_SUBNORMAL,
    .has_zero = 1,
    .negative_zero = 1,
    .has_inf = 1,
    .has_nan = 1,
    .quiet_bit = (sn_u64)1 << (SN_FUNCTION_BITS - 1),
    .sign_mask = (sn_u64)1 << 63,
    .magnitude_mask = ~(sn_u64)0 >> 1,
    .max_code = ((sn_u64)0x7fff << SN_FUNCTION_BITS) - 1,
    .nan_first = ((sn_u64)0x7fff << SN_FUNCTION_BITS) + 1,
    .inf_code = (sn_u64)0x7fff << SN_FUNCTION_BITS,
    .nan_code = (sn_u64)0x7fff << SN_FUNCTION_BITS | (sn_u64)1 << (SN_FUNCTION_BITS - 1),
};

static int is_in_lanes(int fn) {
#define CASE(name) case SN_ELEMENTARY_##name:
    switch (fn) {
        SN_FUNCTIONS_IN_LANES(CASE)
        return 1;
    default: return 0;
    }
#undef CASE
}

int sn_function_prepare(int fn, const sn_format *in, const sn_format *out, const sn_env *env, sn_function *p,
                        sn_normals *to_out) {
    if (!is_in_lanes(fn)) return 0;
    if (in->kind != SN_FLOAT || out->kind != SN_FLOAT || in->mantissa_bits + 1 > MOST_DIGITS) return 0;
    const sn_i32 deciding = out->mantissa_bits + 3 + (sn_is_stochastic(env) ? env->stochastic_bits : 0);
    if (deciding > MOST_DECIDING || !sn_decoding_prepare(in, 64, &p->in)) return 0;
    const sn_format operands[3] = {between, between, between};
    if (!sn_normals_prepare(SN_OP_convert, operands, out, env, to_out) || !to_out->in_lanes || !to_out->whole) return 0;
    p->function = fn;
    p->shift = 53 - deciding;
    return 1;
}

#include "elementwise/functions/functions.h"

#include "dispatch/facts.h"
#include "elementwise/short/floats.h"

enum { MOST_DIGITS = 30, MOST_DECIDING = 46, FARTHEST = 900, MOST_EXPONENT = 10900 };
enum { MOST_WIDE_DIGITS = 53, MOST_WIDE_EXPONENT = 1100 };

const sn_format sn_function_format = {
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

/* How many operands of a function are in lanes; 0: it is not. */
static int operands_in_lanes(int fn) {
#define CASE(name) case SN_ELEMENTARY_##name:
    switch (fn) {
        SN_FUNCTIONS_IN_LANES(CASE)
        return 1;
        SN_FUNCTIONS_OF_TWO_IN_LANES(CASE)
        return 2;
    default: return 0;
    }
#undef CASE
}

/* The same of operands or results that are wider. The exponents of results are those of binary64, or little more:
 * powers are evaluated to where all of them over- or underflow. */
static int prepare_wide(int operands, const sn_format *in, const sn_format *out, const sn_env *env, sn_function *p) {
    const sn_i32 digits = sn_facts_of(out).precision;
    if (p->by_one || sn_is_stochastic(env) || digits > MOST_WIDE_DIGITS) return 0;
    for (int k = 0; k < operands; k++)
        if (sn_facts_of(&in[k]).precision > MOST_WIDE_DIGITS) return 0;
    if (out->emax > MOST_WIDE_EXPONENT || out->emin < -MOST_WIDE_EXPONENT) return 0;
    p->wide = 1;
    p->shift = digits < MOST_WIDE_DIGITS ? MOST_WIDE_DIGITS - 1 - digits : 0;
    return 1;
}

int sn_function_prepare(int fn, const sn_format *in, const sn_format *out, const sn_env *env, sn_function *p,
                        sn_normals *to_out) {
    const int operands = operands_in_lanes(fn);
    if (!operands) return 0;
    p->by_one = out->kind == SN_FIXED;
    if (env->flush_inputs || env->flush_results || (p->by_one && env->overflow == SN_OVERFLOW_WRAP)) return 0;
    if (!p->by_one && (out->emax > MOST_EXPONENT || out->emin < -MOST_EXPONENT)) return 0; /* powers end at 2^10900 */
    const sn_facts results = sn_facts_of(out);
    const sn_i32 deciding = results.precision + 2 + (sn_is_stochastic(env) ? env->stochastic_bits : 0);
    int wide = deciding > MOST_DECIDING;
    for (int k = 0; k < operands; k++)
        wide |= sn_facts_of(&in[k]).precision > MOST_DIGITS;
    p->wide = 0;
    p->shift = 53 - deciding;
    if (wide && !prepare_wide(operands, in, out, env, p)) return 0;
    if (sn_is_stochastic(env) && env->rounding != SN_STOCHASTIC) return 0;
    for (int k = 0; k < operands; k++)
        if (!sn_decoding_prepare(&in[k], 64, &p->in[k])) return 0;
    const sn_format between[3] = {sn_function_format, sn_function_format, sn_function_format};
    if (!p->by_one &&
        (!sn_normals_prepare(SN_OP_convert, between, out, env, to_out) || !to_out->in_lanes || !to_out->whole))
        return 0;
    p->to_values =
        !p->wide && results.last >= -FARTHEST && results.top <= FARTHEST && sn_rounding_prepare(out, env, 64, &p->out);
    p->without_nan = !out->has_nan;
    p->function = fn;
    return 1;
}

#include "dispatch/device.h"

#include <string.h>

#include "dispatch/facts.h"

static sn_u64 magnitude(const sn_format *carrier, const sn_format *f, sn_u64 code) {
    return sn_pattern_of(carrier, f, code) & carrier->magnitude_mask;
}

static sn_i32 way_of(const sn_rounding *r, const sn_format *f, sn_u64 largest) {
    if (r->below_one) return SN_WAY_IN_PLACE;
    if (r->easy == (sn_i64)largest && (r->fixed || f->max_code >> f->mantissa_bits)) return SN_WAY_MAGIC;
    if (r->family == SN_FAMILY_STOCHASTIC && r->lowest == SN_LOWEST_SUBNORMAL && r->has_zero &&
        (r->fixed || f->is_signed))
        return SN_WAY_CARRY; /* below zero, what is not rounded to it may be NaN */
    return SN_WAY_GRID;
}

/* The least pattern of a sign that overflows. */
static sn_u64 beyond(const sn_rounding *r, const sn_format *f, const sn_format *carrier, int sign) {
    if (sign && !f->is_signed) return 1; /* no number there but 0 */
    const sn_u64 last = magnitude(carrier, f, r->fixed && sign ? f->sign_mask : f->max_code);
    if (r->fixed || r->family >= SN_FAMILY_DIRECTED) return last + 1; /* what is rounded to fixed point's bound is it */
    const int goes_up =
        r->family == SN_FAMILY_EVEN ? (int)(f->max_code & 1) : (int)((r->negative & sign) ^ r->constant);
    return last + ((sn_u64)1 << (carrier->mantissa_bits - r->mantissa_bits) >> 1) + !goes_up;
}

int sn_pattern_prepare(const sn_format *f, const sn_env *env, int carrier_bits, sn_pattern *p) {
    const sn_format *carrier = carrier_bits == 32 ? &sn_binary32 : &sn_binary64;
    sn_rounding r;
    if (env->flush_inputs || !sn_rounding_prepare(f, env, carrier_bits, &r)) return 0;
    if (r.lowest == SN_LOWEST_NORMAL && r.has_zero && r.family >= SN_FAMILY_STOCHASTIC) return 0;
    memset(p, 0, sizeof *p);
    p->way = way_of(&r, f, magnitude(carrier, f, f->max_code));
    p->family = r.family;
    p->rounding = r.rounding;
    p->stochastic_bits = r.stochastic_bits;
    p->negative = r.negative;
    p->constant = r.constant;
    p->mantissa_bits = r.mantissa_bits;
    p->biased_emin = r.biased_emin;
    p->lowest = r.lowest;
    p->is_fixed = r.fixed;
    p->has_zero = r.has_zero;
    p->negative_zero = r.negative_zero;
    p->no_nan = r.no_nan;
    p->bits = r.bits;
    p->sign_mask = r.sign_mask;
    p->code_mask = r.code_mask;
    p->quantum = r.quantum;
    p->half_gap = r.half_gap;
    p->direction = sn_modes[r.rounding].direction;
    p->bump = sn_modes[r.rounding].bump;
    p->least = (sn_u64)r.biased_emin << carrier->mantissa_bits;
    p->to_constant = p->way == SN_WAY_MAGIC ? r.to_constant : 0;
    p->value_nan = r.values.nan;
    p->code_nan = r.codes.nan;
    for (int sign = 0; sign < 2; sign++) {
        p->gap_threshold[sign] = r.gap_threshold[sign];
        p->beyond[sign] = p->way == SN_WAY_GRID ? 0 : beyond(&r, f, carrier, sign);
        p->limit[sign] = r.limit[sign];
        p->value_overflow[sign] = r.values.overflow[sign];
        p->value_infinity[sign] = r.values.infinity[sign];
        p->code_overflow[sign] = r.codes.overflow[sign];
        p->code_infinity[sign] = r.codes.infinity[sign];
    }
    return 1;
}

int sn_reading_prepare(const sn_format *f, int carrier_bits, sn_reading *r) {
    sn_decoding d;
    if (!sn_decoding_prepare(f, carrier_bits, &d)) return 0;
    memset(r, 0, sizeof *r);
    r->mantissa_bits = (carrier_bits == 32 ? sn_binary32 : sn_binary64).mantissa_bits - d.shift;
    r->bits = d.bits;
    r->is_fixed = d.fixed;
    r->negative_zero = d.negative_zero;
    r->nan_is_negative_zero = d.nan_is_negative_zero;
    r->subnormals = d.subnormals;
    r->low = d.low;
    r->max_code = d.max_code;
    r->inf_code = d.inf_code;
    r->sign_mask = d.sign_mask;
    r->magnitude_mask = d.magnitude_mask;
    r->rebias = d.rebias;
    r->first = d.first;
    return 1;
}

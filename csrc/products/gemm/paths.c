/* Which path computes a unit's products, and why it may: a condition for each line of the paths' domains. */
#include <string.h>

#include "products/gemm/bounds.h"
#include "products/gemm/gemm.h"
#include "softnum/operations/arith.h"

static int larger(int a, int b) { return a > b ? a : b; }
static int smaller(int a, int b) { return a < b ? a : b; }

static int is_fixed(const sn_format *f) { return f->kind == SN_FIXED; }

static float power_of_two(int e) { return (float)sn_of_bits((sn_u64)(e + 1023) << 52); }

/* A code's value in binary32, which holds it. */
static float value_of(const sn_format *f, sn_u64 code) {
    const sn_u32 bits = (sn_u32)sn_pattern_of(&sn_binary32, f, code);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- single roundings --------------------------------------------------------------------------------------------
 * Whether a format and an environment lie in a way's domain; then the way's numbers are in *r. */

/* What every way asks: a usual float, or saturating fixed point fed finite values. */
static int rounds_here(const sn_format *f, const sn_env *env, int specials) {
    if (sn_modes[env->rounding].family == SN_FAMILY_NONE) return 0;
    if (is_fixed(f)) return env->overflow != SN_OVERFLOW_WRAP && !specials;
    if (!f->is_signed || f->lowest != SN_LOWEST_SUBNORMAL || f->mantissa_bits < 1) return 0;
    if (env->overflow == SN_OVERFLOW_SATURATE_FINITE && f->has_inf) return 0;
    return f->has_nan || !(specials || f->has_inf); /* inf - inf must have a result */
}

/* The magic constant in binary32 for what lies below 2^(biggest_sum + 1). */
static int magic32(const sn_format *f, const sn_env *env, sn_facts addend, int biggest_sum, sn_round32 *r) {
    if (env->rounding != SN_NEAREST_EVEN || !rounds_here(f, env, addend.specials)) return 0;
    const int m = f->mantissa_bits;
    memset(r, 0, sizeof *r);
    if (is_fixed(f)) {
        /* integers of the last place below 2^22: then |v| stays inside the constant's binade, and sums are exact */
        if (biggest_sum + 1 + m > 22 || biggest_sum + 1 - smaller(addend.last, -m) > 24) return 0;
        if (23 - m < -126 || 23 - m > 127) return 0;
        r->emin = r->emax = 127u << 23; /* of a clamped exponent: 2^0 */
        r->scale = 1.5f * power_of_two(23 - m);
    } else {
        if (f->emax + 24 - m > 127 || f->emin < -126 || !sn_fits(sn_facts_of(f), 32)) return 0;
        r->emin = (sn_u32)(f->emin + 127) << 23;
        r->emax = (sn_u32)(f->emax + 128) << 23;
        r->sign_of_zero = f->negative_zero ? 0x80000000u : 0;
        r->mantissa_bits = m;
        r->scale = 1.5f * power_of_two(23 - m);
        r->bound = value_of(f, f->max_code);
    }
    for (int sign = 0; sign < 2; sign++) {
        sn_u32 flags = 0;
        const sn_u64 lowest = is_fixed(f) ? f->sign_mask : f->max_code | f->sign_mask;
        const float end = value_of(f, sign ? lowest : f->max_code);
        r->limit[sign] = sign ? -end : end;
        r->overflow[sign] = is_fixed(f) ? end : value_of(f, sn_overflowed(f, env, sign, &flags));
    }
    return 1;
}

/* The numbers of sums that products/gemm/bounds.h keeps in range; C in steps of 2^-places of a last place. */
static void bound32(const sn_format *f, int places, sn_round32 *r) {
    const int m = f->mantissa_bits;
    const float most = value_of(f, f->max_code), finite = power_of_two(103 + m); /* C is finite up to there */
    memset(r, 0, sizeof *r);
    r->emin = (sn_u32)(f->emin + 127) << 23;
    r->sign_of_zero = f->negative_zero ? 0x80000000u : 0;
    r->mantissa_bits = m;
    r->scale = 1.5f * power_of_two(23 - m - places);
    r->bound = most < finite ? most : finite;
}

/* binary32 patterns that hold `extra` bits more than the format, by lanes/round.h. */
static int patterns32(const sn_format *f, const sn_env *env, int specials, int extra, sn_rounding *r) {
    const sn_facts x = sn_facts_of(f);
    if (!rounds_here(f, env, specials) || !sn_fits(x, 32)) return 0;
    if (is_fixed(f)) {
        if (f->bits + 1 + extra > 24 || f->mantissa_bits > 147 - extra || f->bits - f->mantissa_bits > 127) return 0;
    } else if (x.precision + extra > 24 || f->emin < -126) { /* so that the last of them is 2^-149 or above */
        return 0;
    }
    return sn_rounding_prepare(f, env, 32, r);
}

static int patterns64(const sn_format *f, const sn_env *env, int specials, sn_rounding *r) {
    const int randomly = env->rounding == SN_STOCHASTIC, m = is_fixed(f) ? f->bits : f->mantissa_bits;
    if ((env->rounding != SN_NEAREST_EVEN && !randomly) || !rounds_here(f, env, specials)) return 0;
    if (m + 1 + (randomly ? env->stochastic_bits : 2) > 52 || !sn_fits(sn_facts_of(f), 64)) return 0;
    if (!is_fixed(f) && (f->emax > 1000 || f->emin < -1022)) return 0;
    return sn_rounding_prepare(f, env, 64, r);
}

/* ---- the paths ---------------------------------------------------------------------------------------------------
 */

/* A unit, and what is known of the values that its roundings are given. */
typedef struct {
    const sn_mad_unit *unit;
    sn_facts a, b, product, addend, sum, outer; /* addend: the product, rounded if it is */
} described;

static int operands_fit(const described *d, int carrier_bits) {
    return sn_fits(d->a, carrier_bits) && sn_fits(d->b, carrier_bits);
}

static int has_fixed(const sn_mad_unit *u) {
    return is_fixed(&u->accumulator) || is_fixed(&u->outer) || (!u->fused && is_fixed(&u->product));
}

/* Whether addends are multiples of the sum's last place, and chunks' sums of the outer sum's. */
static int nothing_below(const described *d) { return d->addend.last >= d->sum.last && d->sum.last >= d->outer.last; }

/* Whether a rounding is what the CPU's operations do in this format. */
static int is_carrier(const sn_format *f, const sn_env *env, const sn_format *carrier) {
    return memcmp(f, carrier, sizeof *f) == 0 && env->rounding == SN_NEAREST_EVEN &&
           env->overflow == SN_OVERFLOW_INFINITY;
}

static int is_binary32(const sn_format *f, const sn_env *env) { return is_carrier(f, env, &sn_binary32); }

/* The zeros that an operand's values become: below the least normal number of its format, if it has others and the
 * unit reads operands so. */
static void zeros_of(const sn_format *f, const sn_format *carrier, int reads, int which, sn_ieee *e) {
    const int subnormals = f->kind == SN_FLOAT && f->lowest == SN_LOWEST_SUBNORMAL && f->mantissa_bits > 0 &&
                           sn_fits(sn_facts_of(f), carrier->bits); /* custom values, in binary64, are normal there */
    e->signs[which] = !e->positive && f->negative_zero;
    if (reads || e->positive)
        e->least[which] = subnormals ? sn_pattern_of(carrier, f, (sn_u64)1 << f->mantissa_bits) : (sn_u64)e->positive;
}

/* ---- the definition in lanes --------------------------------------------------------------------------------------
 */

static int has_subnormals(const sn_format *f) {
    return f->kind == SN_FLOAT && f->lowest == SN_LOWEST_SUBNORMAL && f->mantissa_bits > 0;
}

/* The pattern of the least normal number of a format that has subnormals. */
static sn_u64 least_normal(const sn_format *f, const sn_format *carrier) {
    return sn_pattern_of(carrier, f, (sn_u64)1 << f->mantissa_bits);
}

/* What the short way adds, by the mode: a half of the last place kept, or a bit less, or all that is cut off. */
static sn_short_rounding short_rounding(const sn_env *env, int places) {
    const sn_mode *mode = &sn_modes[env->rounding];
    const int nearest = mode->family == SN_FAMILY_NEAREST;
    sn_short_rounding s;
    s.places = places;
    s.last = (sn_u64)1 << places;
    s.cut = s.last - 1;
    const sn_u64 half = s.last >> 1, low = nearest ? half - 1 : 0, high = nearest ? half : s.cut;
    s.adds = mode->family == SN_FAMILY_EVEN  ? SN_ADDS_BY_PARITY
             : mode->family == SN_FAMILY_ODD ? SN_SETS_LAST
                                             : SN_ADDS_BY_SIGN;
    s.addend = mode->family == SN_FAMILY_EVEN ? half - 1 : mode->constant ? high : low;
    s.if_negative = !mode->negative ? 0 : mode->constant ? low - high : high - low;
    return s;
}

static void set_short(const sn_format *f, const sn_env *env, const sn_format *carrier, sn_lane_rounding *r) {
    const int M = carrier->mantissa_bits, lowest = f->emin == carrier->emin;
    const sn_u64 end = carrier->sign_mask,
                 least = f->lowest == SN_LOWEST_NORMAL ? r->any.quantum : (sn_u64)(f->emin + carrier->emax) << M;
    r->cut = short_rounding(env, M - f->mantissa_bits);
    r->below = short_rounding(env, M - f->mantissa_bits - lowest); /* the carrier's subnormals have its last place */
    /* least to the largest value are from the least signed number on */
    r->offset = end - least;
    r->short_way = f->is_signed && f->mantissa_bits > 0 && f->emin <= f->emax;
    if (r->short_way) r->most = (sn_i64)(sn_pattern_of(carrier, f, f->max_code) - least) - (sn_i64)(end - 1) - 1;
}

/* The short way of fixed point that saturates: of integers of quarters of its last place. */
static void set_quarters(const sn_format *f, const sn_env *env, const sn_format *carrier, sn_lane_rounding *r) {
    const int M = carrier->mantissa_bits, field = carrier->emax + M - 2 - f->mantissa_bits;
    const sn_u64 range = f->is_signed ? f->sign_mask : (sn_u64)1 << f->bits;
    if (env->overflow != SN_OVERFLOW_SATURATE || f->bits > M - 5 || field < 1 || field > 2 * carrier->emax) return;
    r->magic = (sn_u64)field << M | (sn_u64)1 << (M - 1);
    r->ends[0] = f->is_signed ? -4 * (sn_i64)range : 0;
    r->ends[1] = 4 * (sn_i64)(range - 1);
    r->quarters = short_rounding(env, 2);
    if (r->quarters.adds != SN_ADDS_BY_SIGN) return;
    /* -n quarters go where n do, downward: what is added to n is missing to 3 */
    const sn_i64 negative = (sn_i64)(r->quarters.addend + r->quarters.if_negative);
    r->quarters.if_negative = (sn_u64)(3 - negative - (sn_i64)r->quarters.addend);
}

/* addend: what is added in this rounding, or rounded; bit: for a NaN without a code. */
static int lane_rounding(const sn_format *f, const sn_env *env, sn_facts addend, int counting, const sn_format *carrier,
                         sn_u32 bit, sn_lane_rounding *r) {
    sn_env plain = *env;
    plain.flush_results = plain.flush_inputs = 0;
    if (sn_is_stochastic(env) || !sn_rounding_prepare(f, &plain, carrier->bits, &r->any)) return 0;
    if (r->any.mantissa_bits + 2 > carrier->mantissa_bits) return 0;
    r->before = env->tininess == SN_TININESS_BEFORE;
    r->no_code = f->has_nan ? 0 : bit;
    if (is_fixed(f)) {
        set_quarters(f, env, carrier, r);
        return !counting || addend.precision <= carrier->mantissa_bits;
    }
    set_short(f, env, carrier, r);
    if (has_subnormals(f)) {
        r->least_normal = least_normal(f, carrier);
        if (env->flush_inputs) r->least_read = r->least_normal;
    }
    r->flush = env->flush_results;
    if (!r->flush && !counting) return 1;
    if (counting && f->emax == carrier->emax) return 0; /* beyond its end all numbers are one, no larger than this */
    return r->short_way && r->least_normal && f->mantissa_bits + 3 <= carrier->mantissa_bits;
}

/* Everything of SN_PATH_LANES but the path; 0 if that is not for the unit. */
static int lanes_of(const described *d, int counting, const sn_format *carrier, sn_gemm_unit *g) {
    const sn_mad_unit *u = d->unit;
    sn_lanes_unit *l = &g->lanes;
    sn_ieee *e = &g->ieee;
    memset(l, 0, sizeof *l);
    memset(e, 0, sizeof *e);
    if (!operands_fit(d, carrier->bits)) return 0;
    l->native = !counting && is_carrier(&u->accumulator, &u->sum_env, carrier) &&
                is_carrier(&u->outer, &u->outer_env, carrier) &&
                (u->fused || is_carrier(&u->product, &u->product_env, carrier)) && !u->sum_env.flush_results &&
                !u->sum_env.flush_inputs;
    if (l->native) {
        l->outer.any.sign_of_zero = carrier->sign_mask;
    } else {
        if (!u->fused && !lane_rounding(&u->product, &u->product_env, d->product, counting, carrier, 1, &l->product))
            return 0;
        if (!lane_rounding(&u->accumulator, &u->sum_env, d->addend, counting, carrier, 2, &l->sum)) return 0;
        if (!lane_rounding(&u->outer, &u->outer_env, d->sum, counting, carrier, 4, &l->outer)) return 0;
        l->product.least_read = u->sum_env.flush_inputs ? l->product.least_normal : 0; /* as an operand of the sum */
    }
    l->exact = sn_fits(d->product, carrier->bits);
    if (carrier->bits == 64)
        l->exact = l->exact && d->product.top <= 1000 && d->sum.top <= 1000 && d->outer.top <= 1000;
    l->compensated = u->compensated;
    l->down = u->sum_env.rounding == SN_DOWN;
    l->least_c = !u->positive ? 0 : has_subnormals(&u->outer) ? least_normal(&u->outer, carrier) : 1;
    e->lanes = u->lanes;
    e->reduction = u->reduction;
    e->positive = u->positive;
    zeros_of(&u->operand_a, carrier, u->product_env.flush_inputs, 0, e);
    zeros_of(&u->operand_b, carrier, u->product_env.flush_inputs, 1, e);
    for (int i = 0; i < 2; i++)
        if (!e->signs[i] && !e->least[i]) e->least[i] = 1; /* -0 is +0 */
    e->period = 1;
    g->product = u->fused ? SN_PRODUCT_EXACT : SN_PRODUCT_NEAREST;
    return l->ready = 1;
}

static int in_lanes(const described *d, sn_gemm_unit *g) {
    g->path = SN_PATH_LANES;
    return lanes_of(d, 0, &sn_binary32, g) ? 32 : lanes_of(d, 0, &sn_binary64, g) ? 64 : 0;
}

/* ---- the others ---------------------------------------------------------------------------------------------------
 */

static int exact_in_32(const described *d) { return sn_fits(d->product, 32); }

static int native(const described *d, sn_gemm_unit *g) {
    const sn_mad_unit *u = d->unit;
    if (!is_binary32(&u->accumulator, &u->sum_env) || !is_binary32(&u->outer, &u->outer_env)) return 0;
    if (!operands_fit(d, 32) || (!u->fused && !is_binary32(&u->product, &u->product_env))) return 0;
    g->path = SN_PATH_NATIVE;
    g->product = !u->fused        ? SN_PRODUCT_NEAREST /* the hardware's multiplication is the product's rounding */
                 : exact_in_32(d) ? SN_PRODUCT_EXACT
                                  : SN_PRODUCT_FUSED;
    return 32;
}

/* Whether a term is added to a float's values with a sum that binary32 holds. */
static int adds_exactly(const sn_format *f, sn_facts term, sn_facts sum) {
    return is_fixed(f) || (term.precision <= sum.precision && sum.precision <= 11);
}

/* Of most operands, where not of all, products are multiples of the sum's last place: what tells of which. */
static void exact_for_some(const described *d, sn_gemm_unit *g) {
    g->may_be_exact_below = d->unit->fused && d->sum.last >= d->outer.last;
    g->precision[0] = d->a.precision;
    g->precision[1] = d->b.precision;
    g->last[0] = d->a.last;
    g->last[1] = d->b.last;
    g->sum_last = d->sum.last;
}

static int magic(const described *d, sn_gemm_unit *g) {
    const sn_mad_unit *u = d->unit;
    const int top = larger(d->sum.top, d->addend.top) + 1, outer_top = larger(d->sum.top, d->outer.top) + 1;
    if (!operands_fit(d, 32) || !exact_in_32(d)) return 0;
    if (!u->fused && !magic32(&u->product, &u->product_env, d->product, d->product.top, &g->product32)) return 0;
    if (!magic32(&u->accumulator, &u->sum_env, d->addend, top, &g->sum32)) return 0;
    if (!magic32(&u->outer, &u->outer_env, d->sum, outer_top, &g->outer32)) return 0;
    if (!adds_exactly(&u->accumulator, d->addend, d->sum) || !adds_exactly(&u->outer, d->sum, d->outer)) return 0;
    g->product = u->fused ? SN_PRODUCT_EXACT : SN_PRODUCT_NEAREST;
    g->path = !has_fixed(u)                                                  ? SN_PATH_MAGIC
              : u->fused && is_fixed(&u->accumulator) && is_fixed(&u->outer) ? SN_PATH_FIXED
                                                                             : SN_PATH_MIXED;
    g->exact_below = g->path == SN_PATH_MAGIC && nothing_below(d) &&
                     (u->fused || d->product.precision + u->product.mantissa_bits <= 22);
    if (g->path == SN_PATH_MAGIC) exact_for_some(d, g);
    return 32;
}

static int odd(const described *d, sn_gemm_unit *g) {
    const sn_mad_unit *u = d->unit;
    if (!operands_fit(d, 32) || sn_is_stochastic(&u->product_env)) return 0;
    if (sn_is_stochastic(&u->sum_env) || sn_is_stochastic(&u->outer_env)) return 0;
    if (!u->fused && !patterns32(&u->product, &u->product_env, d->product.specials, 2, &g->product64)) return 0;
    if (!patterns32(&u->accumulator, &u->sum_env, d->addend.specials, 2, &g->sum64)) return 0;
    if (!patterns32(&u->outer, &u->outer_env, d->sum.specials, 2, &g->outer64)) return 0;
    g->path = SN_PATH_ODD;
    g->product = u->fused ? SN_PRODUCT_EXACT : SN_PRODUCT_NEAREST;
    if (u->fused && u->sum_env.rounding == SN_NEAREST_EVEN && !has_fixed(u)) {
        bound32(&u->accumulator, 0, &g->sum32);
        bound32(&u->outer, 0, &g->outer32);
    }
    lanes_of(d, 0, &sn_binary32, g);
    return 32;
}

static int stochastic(const described *d, sn_gemm_unit *g) {
    const sn_mad_unit *u = d->unit;
    const int r = u->sum_env.stochastic_bits;
    if (!operands_fit(d, 32) || !exact_in_32(d) || d->product.top > 126) return 0;
    if (u->sum_env.rounding != SN_STOCHASTIC || has_fixed(u)) return 0;
    if (!u->fused) {
        if (u->product_env.rounding != SN_STOCHASTIC || r > 16 || u->product.mantissa_bits + r > 20) return 0;
        if (!patterns32(&u->product, &u->product_env, d->product.specials, r, &g->product64)) return 0;
    }
    if (!patterns32(&u->accumulator, &u->sum_env, d->addend.specials, r, &g->sum64)) return 0;
    if (!patterns32(&u->outer, &u->outer_env, d->sum.specials, r, &g->outer64)) return 0;
    if (larger(larger(d->sum.top, d->outer.top), d->addend.top) + 1 > 126) return 0;
    g->path = SN_PATH_STOCHASTIC;
    g->product = u->fused ? SN_PRODUCT_EXACT : SN_PRODUCT_STOCHASTIC;
    g->two_roundings = !u->fused;
    g->exact_below = nothing_below(d);
    exact_for_some(d, g);
    if (!u->fused) bound32(&u->product, r, &g->product32);
    bound32(&u->accumulator, 0, &g->sum32);
    bound32(&u->outer, 0, &g->outer32);
    return 32;
}

/* Whether bounds, which are binary32 numbers, tell when sums of this format overflow. */
static int has_bound(const sn_format *f) { return f->emin >= -126 && f->emax <= 127 && f->mantissa_bits <= 23; }

/* Where none overflows, sums and products in binary64 that one addition rounds. */
static void bare64(const described *d, sn_gemm_unit *g) {
    const sn_mad_unit *u = d->unit;
    if (u->sum_env.rounding != SN_STOCHASTIC || g->product == SN_PRODUCT_NEAREST || has_fixed(u)) return;
    if (!has_bound(&u->accumulator) || !has_bound(&u->outer) || (!u->fused && !has_bound(&u->product))) return;
    if (!u->fused && u->product.mantissa_bits + u->sum_env.stochastic_bits > 49) return;
    if (d->product.last < -1000 || !nothing_below(d)) return;
    g->exact_below = 1;
    if (!u->fused) bound32(&u->product, 0, &g->product32);
    bound32(&u->accumulator, 0, &g->sum32);
    bound32(&u->outer, 0, &g->outer32);
}

static int wide(const described *d, sn_gemm_unit *g) {
    const sn_mad_unit *u = d->unit;
    if (!operands_fit(d, 64)) return 0;
    if (d->product.precision > 53 || d->product.last < -1074 || d->product.top > 1000) return 0;
    if (!u->fused && !patterns64(&u->product, &u->product_env, d->product.specials, &g->product64)) return 0;
    if (!patterns64(&u->accumulator, &u->sum_env, d->addend.specials, &g->sum64)) return 0;
    if (!patterns64(&u->outer, &u->outer_env, d->sum.specials, &g->outer64)) return 0;
    g->path = SN_PATH_WIDE;
    g->product = u->fused                                   ? SN_PRODUCT_EXACT
                 : u->product_env.rounding == SN_STOCHASTIC ? SN_PRODUCT_STOCHASTIC
                                                            : SN_PRODUCT_NEAREST;
    g->two_roundings = g->product == SN_PRODUCT_STOCHASTIC && u->sum_env.rounding == SN_STOCHASTIC;
    bare64(d, g);
    if (g->product != SN_PRODUCT_STOCHASTIC && u->sum_env.rounding != SN_STOCHASTIC) lanes_of(d, 0, &sn_binary64, g);
    return 64;
}

static int flushes_alike(const sn_env *x, const sn_env *y) {
    return x->flush_inputs == y->flush_inputs && x->flush_results == y->flush_results;
}

static int ieee(const described *d, sn_gemm_unit *g) {
    const sn_mad_unit *u = d->unit;
    const sn_format *f = u->accumulator.bits == 64 ? &sn_binary64 : &sn_binary32;
    const int bits = f->bits, exact = sn_fits(d->product, bits), results = u->sum_env.flush_results;
    if (!is_carrier(&u->accumulator, &u->sum_env, f) || !is_carrier(&u->outer, &u->outer_env, f)) return 0;
    if (!operands_fit(d, bits) || !flushes_alike(&u->sum_env, &u->outer_env)) return 0;
    if (!u->fused && !(is_carrier(&u->product, &u->product_env, f) && flushes_alike(&u->sum_env, &u->product_env)))
        return 0;
    sn_ieee *e = &g->ieee;
    e->lanes = u->lanes;
    e->reduction = u->reduction;
    e->reads = u->sum_env.flush_inputs;
    e->positive = u->positive;
    e->before = results == SN_FLUSH_BEFORE;
    e->flush = SN_ZEROS_MARKED;
    if (!results)
        e->flush = e->reads ? SN_ZEROS_READ : SN_ZEROS_NOWHERE;
    else if (results == SN_FLUSH_SUBNORMAL || exact)
        e->flush = SN_ZEROS_WRITTEN;
    if (e->flush == SN_ZEROS_MARKED && bits == 64) return 0;
    const int tree = u->lanes == 2 || (u->lanes == 4 && u->reduction != SN_REDUCTION_SEQUENTIAL);
    if (u->fused && tree && u->chunk == u->lanes && (e->flush == SN_ZEROS_NOWHERE || e->flush == SN_ZEROS_WRITTEN))
        e->each = u->lanes;
    zeros_of(&u->operand_a, f, u->product_env.flush_inputs, 0, e); /* sums alone may be read as zeros */
    zeros_of(&u->operand_b, f, u->product_env.flush_inputs, 1, e);
    e->period = e->each ? e->each : 1;
    g->path = SN_PATH_IEEE;
    g->product = !u->fused ? SN_PRODUCT_NEAREST : exact ? SN_PRODUCT_EXACT : SN_PRODUCT_FUSED;
    g->precision[0] = d->a.precision;
    g->precision[1] = d->b.precision;
    g->last[0] = d->a.last;
    g->last[1] = d->b.last;
    return bits;
}

static described describe(const sn_mad_unit *u, sn_facts a, sn_facts b) {
    described d = {u, a, b, sn_facts_of_product(a, b), {0}, sn_facts_of(&u->accumulator), sn_facts_of(&u->outer)};
    d.addend = u->fused ? d.product : sn_facts_of(&u->product);
    return d;
}

/* ordered: products come in an order of their own, which the last two paths alone know; the last one compensation too.
 */
static int path_of(const sn_mad_unit *u, sn_facts a, sn_facts b, int ordered, sn_gemm_unit *g) {
    static int (*const paths[])(const described *, sn_gemm_unit *) = {native, magic, odd,     stochastic,
                                                                      wide,   ieee,  in_lanes};
    enum { PATHS = sizeof paths / sizeof *paths };
    const described d = describe(u, a, b);
    const int flushes =
        u->product_env.flush_inputs || u->sum_env.flush_inputs || u->sum_env.flush_results || u->positive;
    for (size_t i = u->compensated ? PATHS - 1 : u->lanes > 1 || flushes || ordered ? PATHS - 2 : 0; i < PATHS; i++) {
        memset(g, 0, sizeof *g);
        g->chunk = u->chunk;
        g->random = u->random;
        const int bits = paths[i](&d, g);
        if (bits) return bits;
    }
    return 0;
}

static int path_for_counts(const sn_mad_unit *u, sn_facts a, sn_facts b, sn_gemm_unit *g) {
    const described d = describe(u, a, b);
    memset(g, 0, sizeof *g);
    g->chunk = u->chunk;
    g->path = SN_PATH_LANES;
    return lanes_of(&d, 1, &sn_binary64, g) ? 64 : 0;
}

int sn_gemm_path(const sn_mad_unit *u, sn_facts a, sn_facts b, int counting, sn_gemm_unit *g) {
    return counting ? path_for_counts(u, a, b, g) : path_of(u, a, b, 0, g);
}

int sn_chain_path(const sn_chain_unit *u, sn_facts a, sn_facts b, int counting, sn_gemm_unit *g) {
    sn_mad_unit d;
    memset(&d, 0, sizeof d);
    d.operand_a = u->a;
    d.operand_b = u->b;
    d.product = d.accumulator = d.outer = u->accumulator;
    d.product_env = d.sum_env = d.outer_env = u->env;
    d.fused = d.lanes = 1;
    const int bits = counting ? path_for_counts(&d, a, b, g) : path_of(&d, a, b, u->order != NULL, g);
    if (!bits || !u->order) return bits;
    g->ieee.period = u->period;
    g->ieee.order = u->order;
    return bits;
}

size_t sn_gemm_room(const sn_gemm_unit *u, const sn_gemm_args *g, int bits) {
    const size_t size = (size_t)bits / 8;
    if (u->path != SN_PATH_IEEE && !u->lanes.ready) return (size_t)g->k * SN_PANEL * size;
    const size_t period = (size_t)u->ieee.period, length = ((size_t)g->k + period - 1) / period * period;
    size_t sums = SN_IEEE_ROWS * ((size_t)u->ieee.lanes + 1) * SN_PANEL;
    if (u->lanes.ready)
        sums = SN_LANES_ROWS * (((size_t)u->ieee.lanes + 1) * (u->lanes.compensated ? 2 : 1) + 2) * SN_PANEL;
    return (length * SN_PANEL + sums + (size_t)(g->m1 - g->m0) * length) * size;
}

int sn_gemm_level(const sn_gemm_unit *u, ptrdiff_t k, const double largest[3], int negative_zero) {
    const int level = sn_safe_level(u, negative_zero);
    sn_safety safety = {u, largest[2], k, -1, 0x1p1023};
    if (level != SN_LEVEL_FULL && largest[2] <= 0x1p500 && sn_is_safe(&safety, largest[0], largest[1])) return level;
    return u->path == SN_PATH_STOCHASTIC && u->exact_below && !negative_zero ? SN_LEVEL_TESTED : SN_LEVEL_FULL;
}

/* ---- fixed point without rounding --------------------------------------------------------------------------------
 */

int sn_integer_path(const sn_mad_unit *u, sn_gemm_integers *g) {
    const sn_format *a = &u->operand_a, *b = &u->operand_b, *f = &u->accumulator;
    const int wraps = u->sum_env.overflow == SN_OVERFLOW_WRAP;
    memset(g, 0, sizeof *g);
    if (u->lanes > 1 || u->compensated || !u->fused || sn_is_stochastic(&u->sum_env)) return 0;
    if (u->chunk && (memcmp(&u->outer, f, sizeof *f) != 0 || u->outer_env.overflow != u->sum_env.overflow)) return 0;
    if (!is_fixed(a) || !is_fixed(b) || !is_fixed(f) || f->bits > 32) return 0;
    if (a->bits > 15 + !!a->is_signed || b->bits > 15 + !!b->is_signed) return 0;
    const sn_i32 shift = f->mantissa_bits - a->mantissa_bits - b->mantissa_bits;
    if (shift < 0 || shift > 16) return 0;
    const sn_i32 fractions[] = {a->mantissa_bits, b->mantissa_bits, f->mantissa_bits};
    for (int i = 0; i < 3; i++)
        if (fractions[i] < -64 || fractions[i] > 64) return 0;
    if (!f->is_signed && (a->is_signed || b->is_signed) && !wraps) return 0;
    g->fraction_a = a->mantissa_bits;
    g->fraction_b = b->mantissa_bits;
    g->shift = shift;
    g->bits = f->bits;
    g->is_signed = f->is_signed;
    g->wraps = wraps;
    g->chunk = u->chunk;
    g->least = f->is_signed ? -((sn_i64)1 << (f->bits - 1)) : 0;
    g->most = ((sn_i64)1 << (f->bits - !!f->is_signed)) - 1;
    g->scale = sn_of_bits((sn_u64)(1023 - f->mantissa_bits) << 52);
    return 1;
}

int sn_integers_fit(const sn_gemm_integers *g, ptrdiff_t k, double a, double b, double c) {
    const double products = (double)k * a * b, total = products * (double)((sn_i64)1 << g->shift) + c;
    if (g->wraps) return 1;
    return products < 0x1p31 && total <= (double)g->most && (!g->is_signed || total <= -(double)g->least);
}

/* The entry of the fuzz target, and what fuzz.h declares of reading and judging. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const sn_u8 *data, size_t size) {
    /* by what an input costs: microseconds for one operation, a quarter of a millisecond for what handles arrays */
    static void (*const checks[])(fuzz_input *) = {
        fuzz_operation, fuzz_operation, fuzz_operation, fuzz_operation, fuzz_operation, fuzz_operation, fuzz_operation,
        fuzz_loops,     fuzz_loops,     fuzz_arrays,    fuzz_arrays,    fuzz_arrays,    fuzz_quantize,  fuzz_quantize,
        fuzz_quantize,  fuzz_gemm,      fuzz_gemm,      fuzz_gemm,      fuzz_mad,       fuzz_chain,     fuzz_integer,
        fuzz_fused,     fuzz_exact,     fuzz_tapered,   fuzz_two_stage};
    fuzz_input in = {data, size};
    checks[fuzz_choose(&in, sizeof checks / sizeof *checks)](&in);
    return 0;
}

/* ---- reading the input ------------------------------------------------------------------------------------------- */

sn_u64 fuzz_take(fuzz_input *in, int bytes) {
    sn_u64 value = 0;
    for (int i = 0; i < bytes && in->size; i++, in->size--)
        value |= (sn_u64)*in->data++ << 8 * i;
    return value;
}

int fuzz_choose(fuzz_input *in, int n) { return (int)(fuzz_take(in, n > 256 ? 2 : 1) % (sn_u64)n); }

static void set_masks(sn_format *f) {
    const sn_u64 all = ~(sn_u64)0 >> (64 - f->bits);
    f->sign_mask = f->is_signed ? (sn_u64)1 << (f->bits - 1) : 0;
    f->magnitude_mask = all & ~f->sign_mask;
}

sn_format fuzz_fixed(int integer_bits, int fraction_bits, int is_signed) {
    sn_format f;
    memset(&f, 0, sizeof f);
    f.kind = SN_FIXED;
    f.bits = integer_bits + fraction_bits;
    f.is_signed = is_signed;
    f.has_zero = 1;
    f.mantissa_bits = fraction_bits;
    set_masks(&f);
    f.max_code = f.magnitude_mask;
    return f;
}

enum { NAN_IEEE, NAN_ALL_ONES, NAN_NEGATIVE_ZERO, NAN_NONE };

/* As FloatFormat and _core.fill_format; 0 if the facts leave no finite value but zero. */
static int make_float(sn_format *f, int e, int m, int bias, int nan_codes) {
    f->kind = SN_FLOAT;
    f->bits = e + m + f->is_signed;
    f->mantissa_bits = m;
    set_masks(f);
    const sn_u64 top = f->magnitude_mask;
    f->has_nan = nan_codes != NAN_NONE;
    f->nan_is_negative_zero = nan_codes == NAN_NEGATIVE_ZERO;
    f->inf_code = nan_codes == NAN_IEEE ? top >> m << m : top - (nan_codes == NAN_ALL_ONES);
    f->max_code = f->has_inf ? f->inf_code - 1 : f->inf_code;
    if (!f->has_inf) f->inf_code = 0;
    if (f->has_nan) {
        f->nan_first = nan_codes == NAN_IEEE ? f->inf_code + 1 : top;
        f->nan_code = nan_codes == NAN_ALL_ONES ? top : f->sign_mask;
        if (nan_codes == NAN_IEEE) f->nan_code = f->inf_code | (sn_u64)1 << (m - 1);
        if (nan_codes == NAN_IEEE && m >= 2) f->quiet_bit = (sn_u64)1 << (m - 1);
    }
    f->emin = (f->lowest != SN_LOWEST_NORMAL) - bias;
    f->emax = (sn_i32)(f->max_code >> m) - bias;
    f->p3109 = (f->has_inf || f->saturating) && nan_codes == (f->is_signed ? NAN_NEGATIVE_ZERO : NAN_ALL_ONES);
    return f->max_code <= top && f->max_code >= (f->lowest == SN_LOWEST_ZERO ? (sn_u64)1 << m : (sn_u64)f->has_zero);
}

sn_format fuzz_float(int exponent_bits, int mantissa_bits, int bias) {
    sn_format f;
    memset(&f, 0, sizeof f);
    f.is_signed = f.has_zero = f.negative_zero = f.has_inf = 1;
    make_float(&f, exponent_bits, mantissa_bits, bias, NAN_IEEE);
    return f;
}

static sn_format take_float(fuzz_input *in, int max_bits) {
    const int facts = fuzz_choose(in, 256), usual = facts & 1, is_signed = usual || (facts & 6);
    const int room = max_bits - is_signed < 15 ? max_bits - is_signed : 15, e = 1 + fuzz_choose(in, room);
    const int left = max_bits - is_signed - e < 61 ? max_bits - is_signed - e : 61, m = fuzz_choose(in, left + 1);
    int bias = (1 << (e - 1)) - 1;
    if (usual && m) {
        if (facts & 2) bias += fuzz_choose(in, 65536) - 32768;
        return fuzz_float(e, m, bias);
    }
    const int more = fuzz_choose(in, 256);
    int nan_codes = more & 3;
    sn_format f;
    memset(&f, 0, sizeof f);
    f.is_signed = is_signed;
    f.lowest = (facts >> 3) % 3;
    f.has_zero = is_signed || f.lowest != SN_LOWEST_NORMAL || (facts & 64);
    if (nan_codes == NAN_NEGATIVE_ZERO && !is_signed) nan_codes = NAN_ALL_ONES;
    if (nan_codes == NAN_IEEE && m == 0) nan_codes = NAN_NONE;
    f.negative_zero = is_signed && nan_codes != NAN_NEGATIVE_ZERO && (more & 4);
    f.has_inf = nan_codes == NAN_IEEE || (more & 8);
    f.saturating = !f.has_inf && (more & 16);
    if (more & 32) bias += fuzz_choose(in, 256) - 128;
    if ((more & 0xc0) == 0xc0) bias = fuzz_choose(in, 65536) * 2 - 65536;
    if (make_float(&f, e, m, bias, nan_codes)) return f;
    f.has_inf = 0;
    make_float(&f, e, m, bias, NAN_NONE);
    return f;
}

int fuzz_take_fraction(fuzz_input *in, int bits) {
    return fuzz_choose(in, 4) ? fuzz_choose(in, bits + 1) : bits - 64 + fuzz_choose(in, 129 - bits);
}

sn_format fuzz_take_format(fuzz_input *in, int max_bits) {
    const int kind = fuzz_choose(in, 8);
    if (kind >= 2) return take_float(in, kind >= 5 || max_bits < 16 ? max_bits : 16);
    const int is_signed = fuzz_choose(in, 4) != 0, least = 1 + is_signed;
    const int bits = least + fuzz_choose(in, max_bits - least + 1), fraction = fuzz_take_fraction(in, bits);
    return fuzz_fixed(bits - fraction, fraction, is_signed);
}

sn_env fuzz_plain_env(int rounding) {
    sn_env env;
    memset(&env, 0, sizeof env);
    env.rounding = rounding;
    env.overflow = SN_OVERFLOW_INFINITY;
    env.tininess = SN_TININESS_AFTER;
    env.stochastic_bits = 32;
    return env;
}

sn_i32 fuzz_overflow(const sn_format *f, int rule, int older) {
    if (f->kind == SN_FIXED) return rule + 1;
    return f->p3109 && f->has_inf && rule == SN_OVERFLOW_INFINITY && older ? SN_OVERFLOW_P3109_V3_2_1 : rule;
}

sn_env fuzz_take_env(fuzz_input *in, const sn_format *out) {
    sn_env env = fuzz_plain_env(fuzz_choose(in, SN_ROUNDING_MODES));
    const int more = fuzz_choose(in, 256);
    env.overflow = fuzz_overflow(out, more % 3, more & 2);
    env.tininess = more >> 2 & 1;
    env.flush_inputs = (more >> 3 & 3) == 3;
    if (more >> 7) env.flush_results = more >> 5 & 3;
    if (sn_is_stochastic(&env)) env.stochastic_bits = 1 + fuzz_choose(in, 32);
    if (more % 5 == 0) env.nan = fuzz_choose(in, SN_NAN_PROFILES);
    if (more % 7 == 0 && !out->has_nan) { /* a number's own code: zero may have others */
        const sn_env plain = fuzz_plain_env(SN_TOWARD_ZERO);
        sn_u32 flags = 0;
        env.invalid_code = sn_convert(out, fuzz_take_code(in, out), out, &plain, 0, &flags);
    }
    return env;
}

sn_u64 fuzz_take_code(fuzz_input *in, const sn_format *f) {
    const int how = fuzz_choose(in, 256), width = (f->bits + 7) / 8;
    const sn_i32 m = f->mantissa_bits;
    const sn_u64 hidden = m >= 0 && m < 64 ? (sn_u64)1 << m : 0;
    const sn_u64 edges[] = {
        0, 1, hidden, f->max_code, f->inf_code, f->nan_code, f->quiet_bit, f->magnitude_mask, f->sign_mask >> 1};
    sn_u64 code;
    switch (how & 3) {
    case 0: code = fuzz_take(in, width); break;
    case 1: code = edges[fuzz_choose(in, sizeof edges / sizeof *edges)] + (sn_u64)(fuzz_choose(in, 16) - 8); break;
    case 2: code = (fuzz_take(in, 2) << (m & 63)) + (sn_u64)fuzz_choose(in, 8) - 4; break;
    default: code = fuzz_take(in, 2) << fuzz_choose(in, 64); /* few bits set */
    }
    if (how & 4) code ^= f->sign_mask;
    return (how & 0xf8) == 0xf8 ? code ^ fuzz_take(in, 1) << 56 : code & fuzz_mask(f);
}

void *fuzz_buffer(size_t count, size_t size) {
    void *p = malloc(count * size);
    if (!p) abort();
    return p;
}

/* ---- judging ----------------------------------------------------------------------------------------------------- */

static fuzz_result evaluate(const fuzz_trial *t, int short_way) {
    fuzz_result r = {0, 0};
    sn_context context = t->context, *contexts[] = {&context};
    context.short_way = SN_NO_SHORT_WAY;
    context.table = NULL;
    context.lanes = NULL;
    if (short_way) sn_prepare_context(t->op, &context);
    sn_context_table table = {contexts, 1, 0, NULL};
    sn_loop_data data = {&table, 1};
    sn_u64 code[3] = {t->code[0], t->code[1], t->code[2]}, handle = 0;
    sn_u32 word = t->word;
    sn_u8 flags = 0;
    char *args[7];
    int n = 0;
    for (int k = 0; k < sn_operation_operands(t->op); k++)
        args[n++] = (char *)&code[k];
    args[n++] = (char *)&word;
    args[n++] = (char *)&handle;
    args[n++] = (char *)&r.code;
    args[n++] = (char *)&flags;
    const ptrdiff_t count = 1, steps[7] = {0};
    sn_loop_for(t->op, 8)(args, &count, steps, &data);
    r.flags = flags;
    return r;
}

fuzz_result fuzz_evaluate(const fuzz_trial *t) { return evaluate(t, 0); }

fuzz_result fuzz_evaluate_short(const fuzz_trial *t) { return evaluate(t, 1); }

int fuzz_evaluate_lanes(const fuzz_trial *t, int isa, sn_u64 *code) {
    sn_lanes lanes;
    if (!sn_operation_lanes(t->op, &t->context, &lanes)) return 0;
    const void *const in[3] = {&t->code[0], &t->code[1], &t->code[2]};
    const sn_u64 saved = sn_fp_enter();
    sn_kernels_for(isa)->operate(&lanes, in, 8, code, 1, &t->word);
    sn_fp_leave(saved);
    return 1;
}

sn_u64 fuzz_mask(const sn_format *f) { return f->magnitude_mask | f->sign_mask; }

int fuzz_is_nan(const sn_format *f, sn_u64 code) { return sn_unpack(f, code).kind >= SN_QUIET_NAN; }

int fuzz_order(const sn_format *f, sn_u64 a, const sn_format *g, sn_u64 b) {
    const sn_env env = fuzz_plain_env(SN_TOWARD_ZERO);
    sn_u32 flags = 0;
    return (int)sn_compare(f, a, g, b, &env, 0, &flags);
}

static void print_format(const char *what, const sn_format *f) {
    if (f->kind == SN_FIXED)
        fprintf(stderr, "  %s: %s fixed point, %d bits, %d of them fraction\n", what,
                f->is_signed ? "signed" : "unsigned", f->bits, f->mantissa_bits);
    else
        fprintf(stderr,
                "  %s: %d bits, m %d, emin %d, emax %d, signed %d, lowest %d, zero %d, -0 %d, inf %d (%llx), max %llx, "
                "nan %d (%llx, from %llx, -0's %d), saturating %d, p3109 %d\n",
                what, f->bits, f->mantissa_bits, f->emin, f->emax, f->is_signed, f->lowest, f->has_zero,
                f->negative_zero, f->has_inf, (unsigned long long)f->inf_code, (unsigned long long)f->max_code,
                f->has_nan, (unsigned long long)f->nan_code, (unsigned long long)f->nan_first, f->nan_is_negative_zero,
                f->saturating, f->p3109);
}

_Noreturn void fuzz_fail(const char *where, int line, const fuzz_trial *t, const char *condition) {
    fprintf(stderr, "%s:%d: not so: %s\n", where, line, condition);
    if (t) {
        static const char *const names[] = {"a", "b", "c"};
        const sn_env *e = &t->context.env;
        fuzz_result r = fuzz_evaluate(t);
        fprintf(stderr,
                "  %s, mode %d (r %d), overflow %d, tininess %d, flush %d %d, nan %d, invalid %llx, word %08x\n",
                sn_operation_name(t->op), e->rounding, e->stochastic_bits, e->overflow, e->tininess, e->flush_inputs,
                e->flush_results, e->nan, (unsigned long long)e->invalid_code, t->word);
        for (int k = 0; k < sn_operation_operands(t->op); k++) {
            fprintf(stderr, "  %s = %llx\n", names[k], (unsigned long long)t->code[k]);
            print_format(names[k], &t->context.operand[k]);
        }
        print_format("result", &t->context.out);
        fprintf(stderr, "  definition: %llx, flags %02x", (unsigned long long)r.code, r.flags);
        r = fuzz_evaluate_short(t);
        fprintf(stderr, "; short way: %llx, flags %02x\n", (unsigned long long)r.code, r.flags);
    }
    abort();
}

#include "kernels.h"

extern const sn_kernels sn_kernels_portable, sn_kernels_avx2, sn_kernels_avx512;

#if defined(__x86_64__)
#include <immintrin.h>
#endif

int sn_detect_isa(void) {
#if defined(__x86_64__)
    __builtin_cpu_init(); /* asks cpuid, and the operating system by xgetbv */
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2"))
        return SN_ISA_PORTABLE;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return SN_ISA_AVX512;
    return SN_ISA_AVX2;
#else
    return SN_ISA_PORTABLE;
#endif
}

const sn_kernels *sn_kernels_for(int isa) {
    switch (isa) {
    case SN_ISA_PORTABLE: return &sn_kernels_portable;
#if defined(__x86_64__)
    case SN_ISA_AVX2: return &sn_kernels_avx2;
    case SN_ISA_AVX512: return &sn_kernels_avx512;
#endif
    default: return NULL;
    }
}

#if defined(__x86_64__)
sn_u64 sn_fp_enter(void) {
    sn_u32 saved = _mm_getcsr();
    _mm_setcsr(0x1f80); /* all exceptions masked, nearest even, neither FTZ nor DAZ */
    return saved;
}
void sn_fp_leave(sn_u64 saved) { _mm_setcsr((sn_u32)saved); }
#elif defined(__aarch64__)
sn_u64 sn_fp_enter(void) {
    sn_u64 saved, plain = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved));
    __asm__ volatile("msr fpcr, %0" : : "r"(plain));
    return saved;
}
void sn_fp_leave(sn_u64 saved) { __asm__ volatile("msr fpcr, %0" : : "r"(saved)); }
#else
#error "softnum: say here how this CPU's floating-point environment is saved, set to nearest even and restored"
#endif

static const sn_format binary32 = {
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

static const sn_format binary64 = {
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

/* The carrier's pattern of a code's value. */
static sn_u64 pattern(const sn_format *carrier, const sn_format *f, sn_u64 code) {
    const sn_env env = {SN_TOWARD_ZERO, SN_OVERFLOW_INFINITY, SN_TININESS_AFTER, 1, 0, 0, SN_NAN_CANONICAL, 0};
    sn_u32 flags = 0;
    return sn_convert(f, code, carrier, &env, 0, &flags);
}

int sn_rounding_prepare(const sn_format *f, const sn_env *env, int carrier_bits, sn_rounding *r) {
    const sn_format *carrier = carrier_bits == 32 ? &binary32 : &binary64;
    const sn_i32 bias = carrier->emax, fixed = f->kind == SN_FIXED;
    if (env->rounding > SN_STOCHASTIC_FLOOR) return 0;
    const sn_i32 emin = fixed ? f->bits - f->mantissa_bits : f->emin, m = fixed ? f->bits : f->mantissa_bits;
    if (m < 1 || m > carrier->mantissa_bits || emin - m < carrier->emin - carrier->mantissa_bits) return 0;
    if (fixed) {
        if (env->overflow == SN_OVERFLOW_WRAP) return 0;
    } else if (!f->is_signed || f->lowest != SN_LOWEST_SUBNORMAL || f->emax > carrier->emax || emin < carrier->emin) {
        return 0; /* emin: normal numbers that the carrier holds as subnormals have their first bit anywhere */
    }
    r->mantissa_bits = m;
    r->biased_emin = emin + bias;
    r->rounding = env->rounding;
    r->stochastic_bits = env->stochastic_bits;
    r->no_nan = !f->has_nan;
    r->no_infinity = fixed;
    r->quantum = pattern(carrier, f, 1);
    r->nan = f->has_nan ? carrier->nan_code : pattern(carrier, f, env->invalid_code);
    r->sign_of_zero = f->negative_zero ? carrier->sign_mask : 0;
    for (int sign = 0; sign < 2; sign++) {
        sn_u32 flags = 0;
        sn_u64 lowest = fixed ? f->sign_mask : f->max_code | f->sign_mask; /* unsigned: 0 */
        r->limit[sign] = pattern(carrier, f, sign ? lowest : f->max_code) & carrier->magnitude_mask;
        r->overflow[sign] = fixed ? pattern(carrier, f, sign ? lowest : f->max_code)
                                  : pattern(carrier, f, sn_overflowed(f, env, sign, &flags));
        r->infinity[sign] = pattern(carrier, f, sn_inf_result(f, env, sign, &flags));
    }
    r->least_limit = r->limit[0] < r->limit[1] ? r->limit[0] : r->limit[1];
    return 1;
}

static sn_u64 load(const void *p, int width, size_t i) {
    switch (width) {
    case 1: return ((const sn_u8 *)p)[i];
    case 2: return ((const sn_u16 *)p)[i];
    case 4: return ((const sn_u32 *)p)[i];
    default: return ((const sn_u64 *)p)[i];
    }
}

sn_u32 sn_convert_array(const sn_format *from, const void *in, int in_width, const sn_format *to, const sn_env *env,
                        void *out, int out_width, size_t n) {
    sn_u32 flags = 0;
    for (size_t i = 0; i < n; i++) {
        sn_u64 code = sn_convert(from, load(in, in_width, i), to, env, 0, &flags);
        switch (out_width) {
        case 1: ((sn_u8 *)out)[i] = (sn_u8)code; break;
        case 2: ((sn_u16 *)out)[i] = (sn_u16)code; break;
        case 4: ((sn_u32 *)out)[i] = (sn_u32)code; break;
        default: ((sn_u64 *)out)[i] = code;
        }
    }
    return flags;
}

/* The random word of step k of one rounding; which 0: product, 1: sum. */
static sn_u32 step_word(const sn_mad_unit *u, const sn_gemm_codes *g, ptrdiff_t row, ptrdiff_t column, sn_u64 k,
                        ptrdiff_t steps, int which) {
    if (g->words) return g->words[(((row * g->n_total + column) * steps) + (ptrdiff_t)k) * 2 + which];
    int wide = u->two_roundings && (u->sum_env.stochastic_bits > 16 || u->product_env.stochastic_bits > 16);
    const sn_u32 *key = which && wide ? u->key2 : u->key;
    sn_philox_words p = sn_philox((sn_u32)(k / 4), (sn_u32)column, (sn_u32)row, u->batch, key[0], key[1]);
    return which && u->two_roundings && !wide ? p.w[k % 4] >> 16 : p.w[k % 4];
}

sn_u32 sn_gemm_definition(const sn_mad_unit *u, const sn_gemm_codes *g) {
    sn_u32 product_flags = 0, sum_flags = 0, outer_flags = 0;
    const sn_format *fs = &u->accumulator, *fo = u->chunk ? &u->outer : &u->accumulator;
    const int random_product = !u->fused && sn_is_stochastic(&u->product_env),
              random_sum = sn_is_stochastic(&u->sum_env);
    const ptrdiff_t chunks = u->chunk && g->k ? (g->k - 1) / (ptrdiff_t)u->chunk + 1 : 0, steps = g->k + chunks;
    for (ptrdiff_t row = g->m0; row < g->m1; row++)
        for (ptrdiff_t j = 0; j < g->n; j++) {
            const ptrdiff_t column = g->n0 + j;
            sn_u64 outer = g->c ? g->c[row * g->ldc + j] : 0, acc = u->chunk ? 0 : outer;
            sn_u64 left = (sn_u64)u->chunk, reduction = (sn_u64)g->k;
            for (ptrdiff_t k = 0; k < g->k; k++) {
                sn_u64 x = g->a[row * g->lda + k], y = g->b[k * g->ldb + j];
                sn_u32 word = random_sum ? step_word(u, g, row, column, (sn_u64)k, steps, 1) : 0;
                if (u->fused) {
                    acc = sn_fma(&u->operand_a, x, &u->operand_b, y, fs, acc, fs, &u->sum_env, word, &sum_flags);
                } else {
                    sn_u32 first = random_product ? step_word(u, g, row, column, (sn_u64)k, steps, 0) : 0;
                    sn_u64 p = sn_multiply(&u->operand_a, x, &u->operand_b, y, &u->product, &u->product_env, first,
                                           &product_flags);
                    acc = sn_add(fs, acc, &u->product, p, fs, &u->sum_env, word, &sum_flags);
                }
                if (u->chunk && (--left == 0 || k == g->k - 1)) {
                    word = random_sum ? step_word(u, g, row, column, reduction, steps, 1) : 0;
                    outer = sn_add(fo, outer, fs, acc, fo, &u->outer_env, word, &outer_flags);
                    acc = 0;
                    reduction++;
                    left = (sn_u64)u->chunk;
                }
            }
            g->out[row * g->ldo + j] = u->chunk ? outer : acc;
        }
    return (sn_u32)((product_flags & SN_INVALID) && !u->product.has_nan) << 0 |
           (sn_u32)((sum_flags & SN_INVALID) && !fs->has_nan) << 1 |
           (sn_u32)((outer_flags & SN_INVALID) && !fo->has_nan) << 2;
}

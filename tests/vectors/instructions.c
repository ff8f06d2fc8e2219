/* Scalar floating-point instructions of x86-64, aarch64 and riscv64 on bit patterns, as witnesses for tests.

   Standard input: jobs, each a name of 32 bytes, the control register (u64), the number of rows (u64), and the rows,
   three operands (u64) each. Standard output: for each row the result and the status register (u64 both), which is
   cleared before each row. With the argument "list": the names that this CPU has. Inline assembly, so that no compiler
   folds instructions or exchanges their operands. */

#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t (*instruction)(uint64_t a, uint64_t b, uint64_t c);

#define INSTRUCTION(name, ...)                                                                                         \
    static uint64_t name(uint64_t a, uint64_t b, uint64_t c) {                                                         \
        uint64_t r = 0;                                                                                                \
        __asm__ volatile(LOAD __VA_ARGS__ : "=&r"(r) : "r"(a), "r"(b), "r"(c) : CLOBBERED);                            \
        return r;                                                                                                      \
    }

#if defined(__x86_64__)

#include <immintrin.h>
#define LOAD "movq %1, %%xmm0\n movq %2, %%xmm1\n movq %3, %%xmm2\n xorl %k0, %k0\n"
#define CLOBBERED "xmm0", "xmm1", "xmm2", "rax", "cc"
#define STORE "\n movq %%xmm0, %0"
#define OF_WIDTH(w, s)                                                                                                 \
    INSTRUCTION(add_##w, "add" s " %%xmm1, %%xmm0" STORE)                                                              \
    INSTRUCTION(subtract_##w, "sub" s " %%xmm1, %%xmm0" STORE)                                                         \
    INSTRUCTION(multiply_##w, "mul" s " %%xmm1, %%xmm0" STORE)                                                         \
    INSTRUCTION(divide_##w, "div" s " %%xmm1, %%xmm0" STORE)                                                           \
    INSTRUCTION(sqrt_##w, "sqrt" s " %%xmm0, %%xmm0" STORE)                                                            \
    INSTRUCTION(minimum_##w, "min" s " %%xmm1, %%xmm0" STORE)                                                          \
    INSTRUCTION(maximum_##w, "max" s " %%xmm1, %%xmm0" STORE)                                                          \
    INSTRUCTION(round_to_integral_##w, "round" s " $4, %%xmm0, %%xmm0" STORE)                                          \
    INSTRUCTION(round_to_integral_silent_##w, "round" s " $12, %%xmm0, %%xmm0" STORE)                                  \
    INSTRUCTION(to_integer_##w##_i32, "cvt" s "2si %%xmm0, %k0")                                                       \
    INSTRUCTION(to_integer_##w##_i64, "cvt" s "2si %%xmm0, %q0")                                                       \
    INSTRUCTION(truncate_##w##_i32, "cvtt" s "2si %%xmm0, %k0")                                                        \
    INSTRUCTION(truncate_##w##_i64, "cvtt" s "2si %%xmm0, %q0")                                                        \
    INSTRUCTION(from_integer_i32_##w, "cvtsi2" s "l %k1, %%xmm0" STORE)                                                \
    INSTRUCTION(from_integer_i64_##w, "cvtsi2" s "q %q1, %%xmm0" STORE)                                                \
    INSTRUCTION(compare_quiet_equal_##w,                                                                               \
                "ucomi" s " %%xmm1, %%xmm0\n sete %%al\n setnp %%ah\n andb %%ah, %%al\n movzbl %%al, %k0")             \
    INSTRUCTION(compare_quiet_less_##w, "ucomi" s " %%xmm0, %%xmm1\n seta %%al\n movzbl %%al, %k0")                    \
    INSTRUCTION(compare_quiet_less_equal_##w, "ucomi" s " %%xmm0, %%xmm1\n setae %%al\n movzbl %%al, %k0")             \
    INSTRUCTION(compare_signaling_equal_##w,                                                                           \
                "comi" s " %%xmm1, %%xmm0\n sete %%al\n setnp %%ah\n andb %%ah, %%al\n movzbl %%al, %k0")              \
    INSTRUCTION(compare_signaling_less_##w, "comi" s " %%xmm0, %%xmm1\n seta %%al\n movzbl %%al, %k0")                 \
    INSTRUCTION(compare_signaling_less_equal_##w, "comi" s " %%xmm0, %%xmm1\n setae %%al\n movzbl %%al, %k0")          \
    INSTRUCTION(fma_##w, "vfmadd231" s " %%xmm1, %%xmm0, %%xmm2\n movq %%xmm2, %0")                                    \
    INSTRUCTION(fmsub_##w, "vfmsub231" s " %%xmm1, %%xmm0, %%xmm2\n movq %%xmm2, %0")                                  \
    INSTRUCTION(fnmsub_##w, "vfnmadd231" s " %%xmm1, %%xmm0, %%xmm2\n movq %%xmm2, %0")                                \
    INSTRUCTION(fnmadd_##w, "vfnmsub231" s " %%xmm1, %%xmm0, %%xmm2\n movq %%xmm2, %0")
OF_WIDTH(32, "ss")
OF_WIDTH(64, "sd")
INSTRUCTION(convert_32_64, "cvtss2sd %%xmm0, %%xmm0" STORE)
INSTRUCTION(convert_64_32, "cvtsd2ss %%xmm0, %%xmm0" STORE)
INSTRUCTION(convert_32_16, "vcvtps2ph $4, %%xmm0, %%xmm0" STORE)
INSTRUCTION(convert_16_32, "vcvtph2ps %%xmm0, %%xmm0" STORE)

static void control(uint64_t word) { _mm_setcsr((unsigned)word); }
static uint64_t status(void) { return _mm_getcsr() & 0x3f; }
static int has(const char *name) {
    if (strstr(name, "convert_32_16") || strstr(name, "convert_16_32")) return __builtin_cpu_supports("f16c") != 0;
    if (!strncmp(name, "fm", 2) || !strncmp(name, "fn", 2)) return __builtin_cpu_supports("fma") != 0;
    return 1;
}

#define NAMES(w)                                                                                                       \
    N(add_##w)                                                                                                         \
    N(subtract_##w) N(multiply_##w) N(divide_##w) N(sqrt_##w) N(minimum_##w) N(maximum_##w) N(round_to_integral_##w)   \
        N(round_to_integral_silent_##w) N(to_integer_##w##_i32) N(to_integer_##w##_i64) N(truncate_##w##_i32)          \
            N(truncate_##w##_i64) N(from_integer_i32_##w) N(from_integer_i64_##w) N(compare_quiet_equal_##w)           \
                N(compare_quiet_less_##w) N(compare_quiet_less_equal_##w) N(compare_signaling_equal_##w)               \
                    N(compare_signaling_less_##w) N(compare_signaling_less_equal_##w) N(fma_##w) N(fmsub_##w)          \
                        N(fnmsub_##w) N(fnmadd_##w)
#define ALL NAMES(32) NAMES(64) N(convert_32_64) N(convert_64_32) N(convert_32_16) N(convert_16_32)

#elif defined(__aarch64__)

#define LOAD "fmov d0, %1\n fmov d1, %2\n fmov d2, %3\n"
#define CLOBBERED "v0", "v1", "v2", "cc"
#define STORE "\n fmov %0, d0"
#define TO_INTEGERS(w, r, how)                                                                                         \
    INSTRUCTION(to_integer_##how##_##w##_i32, "fcvt" #how "s %w0, " r "0")                                             \
    INSTRUCTION(to_integer_##how##_##w##_u32, "fcvt" #how "u %w0, " r "0")                                             \
    INSTRUCTION(to_integer_##how##_##w##_i64, "fcvt" #how "s %x0, " r "0")                                             \
    INSTRUCTION(to_integer_##how##_##w##_u64, "fcvt" #how "u %x0, " r "0")
#define TWO(name, insn, r) INSTRUCTION(name, insn " " r "0, " r "0, " r "1" STORE)
#define THREE(name, insn, r) INSTRUCTION(name, insn " " r "0, " r "0, " r "1, " r "2" STORE)
#define COMPARES(kind, insn, w, r)                                                                                     \
    INSTRUCTION(compare_##kind##_equal_##w, insn " " r "0, " r "1\n cset %w0, eq")                                     \
    INSTRUCTION(compare_##kind##_less_##w, insn " " r "0, " r "1\n cset %w0, mi")                                      \
    INSTRUCTION(compare_##kind##_less_equal_##w, insn " " r "0, " r "1\n cset %w0, ls")
#define OF_WIDTH(w, r)                                                                                                 \
    TWO(add_##w, "fadd", r)                                                                                            \
    TWO(subtract_##w, "fsub", r) TWO(multiply_##w, "fmul", r) TWO(divide_##w, "fdiv", r) TWO(minimum_##w, "fmin", r)   \
        TWO(maximum_##w, "fmax", r) TWO(minimum_number_##w, "fminnm", r) TWO(maximum_number_##w, "fmaxnm", r)          \
            THREE(fma_##w, "fmadd", r) THREE(fnmsub_##w, "fmsub", r) THREE(fnmadd_##w, "fnmadd", r)                    \
                THREE(fmsub_##w, "fnmsub", r) INSTRUCTION(sqrt_##w, "fsqrt " r "0, " r "0" STORE)                      \
                    INSTRUCTION(round_to_integral_##w, "frintx " r "0, " r "0" STORE)                                  \
                        INSTRUCTION(round_to_integral_silent_##w, "frinti " r "0, " r "0" STORE)                       \
                            INSTRUCTION(from_integer_i32_##w, "scvtf " r "0, %w1" STORE)                               \
                                INSTRUCTION(from_integer_u32_##w, "ucvtf " r "0, %w1" STORE)                           \
                                    INSTRUCTION(from_integer_i64_##w, "scvtf " r "0, %x1" STORE)                       \
                                        INSTRUCTION(from_integer_u64_##w, "ucvtf " r "0, %x1" STORE)                   \
                                            COMPARES(quiet, "fcmp", w, r) COMPARES(signaling, "fcmpe", w, r)           \
                                                TO_INTEGERS(w, r, n) TO_INTEGERS(w, r, a) TO_INTEGERS(w, r, z)         \
                                                    TO_INTEGERS(w, r, p) TO_INTEGERS(w, r, m)
OF_WIDTH(16, "h")
OF_WIDTH(32, "s")
OF_WIDTH(64, "d")
INSTRUCTION(convert_32_64, "fcvt d0, s0" STORE)
INSTRUCTION(convert_64_32, "fcvt s0, d0" STORE)
INSTRUCTION(convert_32_16, "fcvt h0, s0" STORE)
INSTRUCTION(convert_16_32, "fcvt s0, h0" STORE)
INSTRUCTION(convert_64_16, "fcvt h0, d0" STORE)
INSTRUCTION(convert_16_64, "fcvt d0, h0" STORE)

static void control(uint64_t word) { __asm__ volatile("msr fpcr, %0\n msr fpsr, xzr" : : "r"(word)); }
static uint64_t status(void) {
    uint64_t word;
    __asm__ volatile("mrs %0, fpsr" : "=r"(word));
    return word & 0x9f;
}
static int has(const char *name) { return name != 0; }

#define TO_NAMES(w, how)                                                                                               \
    N(to_integer_##how##_##w##_i32)                                                                                    \
    N(to_integer_##how##_##w##_u32) N(to_integer_##how##_##w##_i64) N(to_integer_##how##_##w##_u64)
#define NAMES(w)                                                                                                       \
    N(add_##w)                                                                                                         \
    N(subtract_##w) N(multiply_##w) N(divide_##w) N(sqrt_##w) N(minimum_##w) N(maximum_##w) N(minimum_number_##w)      \
        N(maximum_number_##w) N(fma_##w) N(fmsub_##w) N(fnmsub_##w) N(fnmadd_##w) N(round_to_integral_##w)             \
            N(round_to_integral_silent_##w) N(from_integer_i32_##w) N(from_integer_u32_##w) N(from_integer_i64_##w)    \
                N(from_integer_u64_##w) N(compare_quiet_equal_##w) N(compare_quiet_less_##w)                           \
                    N(compare_quiet_less_equal_##w) N(compare_signaling_equal_##w) N(compare_signaling_less_##w)       \
                        N(compare_signaling_less_equal_##w) TO_NAMES(w, n) TO_NAMES(w, a) TO_NAMES(w, z)               \
                            TO_NAMES(w, p) TO_NAMES(w, m)
#define ALL                                                                                                            \
    NAMES(16)                                                                                                          \
    NAMES(32) NAMES(64) N(convert_32_64) N(convert_64_32) N(convert_32_16) N(convert_16_32) N(convert_64_16)           \
        N(convert_16_64)

#elif defined(__riscv) && __riscv_xlen == 64

#define LOAD "fmv.d.x ft0, %1\n fmv.d.x ft1, %2\n fmv.d.x ft2, %3\n"
#define CLOBBERED "ft0", "ft1", "ft2"
#define STORE "\n fmv.x.d %0, ft0"
#define OF_WIDTH(w, s)                                                                                                 \
    INSTRUCTION(add_##w, "fadd." s " ft0, ft0, ft1" STORE)                                                             \
    INSTRUCTION(subtract_##w, "fsub." s " ft0, ft0, ft1" STORE) INSTRUCTION(                                           \
        multiply_##w, "fmul." s " ft0, ft0, ft1" STORE) INSTRUCTION(divide_##w, "fdiv." s " ft0, ft0, ft1" STORE)      \
        INSTRUCTION(sqrt_##w, "fsqrt." s " ft0, ft0" STORE) INSTRUCTION(minimum_##w, "fmin." s " ft0, ft0, ft1" STORE) \
            INSTRUCTION(maximum_##w,                                                                                   \
                        "fmax." s " ft0, ft0, ft1" STORE) INSTRUCTION(fma_##w, "fmadd." s " ft0, ft0, ft1, ft2" STORE) \
                INSTRUCTION(fmsub_##w, "fmsub." s " ft0, ft0, ft1, ft2" STORE)                                         \
                    INSTRUCTION(fnmadd_##w, "fnmadd." s " ft0, ft0, ft1, ft2" STORE)                                   \
                        INSTRUCTION(fnmsub_##w, "fnmsub." s " ft0, ft0, ft1, ft2" STORE)                               \
                            INSTRUCTION(sign_copy_##w, "fsgnj." s " ft0, ft0, ft1" STORE)                              \
                                INSTRUCTION(sign_negate_##w, "fsgnjn." s " ft0, ft0, ft1" STORE)                       \
                                    INSTRUCTION(sign_xor_##w, "fsgnjx." s " ft0, ft0, ft1" STORE) INSTRUCTION(         \
                                        classify_##w, "fclass." s " %0, ft0") INSTRUCTION(compare_quiet_equal_##w,     \
                                                                                          "feq." s " %0, ft0, ft1")    \
                                        INSTRUCTION(compare_signaling_less_##w, "flt." s " %0, ft0, ft1")              \
                                            INSTRUCTION(compare_signaling_less_equal_##w, "fle." s " %0, ft0, ft1")    \
                                                INSTRUCTION(to_integer_##w##_i32, "fcvt.w." s " %0, ft0, dyn")         \
                                                    INSTRUCTION(to_integer_##w##_u32, "fcvt.wu." s " %0, ft0, dyn")    \
                                                        INSTRUCTION(to_integer_##w##_i64, "fcvt.l." s " %0, ft0, dyn") \
                                                            INSTRUCTION(to_integer_##w##_u64,                          \
                                                                        "fcvt.lu." s " %0, ft0, dyn")                  \
                                                                INSTRUCTION(from_integer_i32_##w,                      \
                                                                            "fcvt." s ".w ft0, %1" STORE)              \
                                                                    INSTRUCTION(from_integer_u32_##w,                  \
                                                                                "fcvt." s ".wu ft0, %1" STORE)         \
                                                                        INSTRUCTION(from_integer_i64_##w,              \
                                                                                    "fcvt." s ".l ft0, %1" STORE)      \
                                                                            INSTRUCTION(from_integer_u64_##w,          \
                                                                                        "fcvt." s ".lu ft0, %1" STORE)
OF_WIDTH(32, "s")
OF_WIDTH(64, "d")
INSTRUCTION(convert_32_64, "fcvt.d.s ft0, ft0" STORE)
INSTRUCTION(convert_64_32, "fcvt.s.d ft0, ft0" STORE)

static void control(uint64_t word) { __asm__ volatile("csrw fcsr, %0" : : "r"(word)); }
static uint64_t status(void) {
    uint64_t word;
    __asm__ volatile("csrr %0, fflags" : "=r"(word));
    return word;
}
static int has(const char *name) { return name != 0; }

#define NAMES(w)                                                                                                       \
    N(add_##w)                                                                                                         \
    N(subtract_##w) N(multiply_##w) N(divide_##w) N(sqrt_##w) N(minimum_##w) N(maximum_##w) N(fma_##w) N(fmsub_##w)    \
        N(fnmadd_##w) N(fnmsub_##w) N(sign_copy_##w) N(sign_negate_##w) N(sign_xor_##w) N(classify_##w)                \
            N(compare_quiet_equal_##w) N(compare_signaling_less_##w) N(compare_signaling_less_equal_##w)               \
                N(to_integer_##w##_i32) N(to_integer_##w##_u32) N(to_integer_##w##_i64) N(to_integer_##w##_u64)        \
                    N(from_integer_i32_##w) N(from_integer_u32_##w) N(from_integer_i64_##w) N(from_integer_u64_##w)
#define ALL NAMES(32) NAMES(64) N(convert_32_64) N(convert_64_32)

#endif

static const struct {
    const char *name;
    instruction run;
} TABLE[] = {
#define N(name) {#name, name},
    ALL
#undef N
};

int main(int count, char **arguments) {
    struct {
        char name[32];
        uint64_t word, rows;
    } job;
    const unsigned size = sizeof TABLE / sizeof TABLE[0];
    if (count > 1 && !strcmp(arguments[1], "list")) {
        for (unsigned i = 0; i < size; i++)
            if (has(TABLE[i].name)) puts(TABLE[i].name);
        return 0;
    }
    while (fread(&job, sizeof job, 1, stdin) == 1) {
        instruction run = 0;
        for (unsigned i = 0; i < size; i++)
            if (!strncmp(TABLE[i].name, job.name, sizeof job.name)) run = TABLE[i].run;
        if (!run) return 2;
        for (uint64_t i = 0; i < job.rows; i++) {
            uint64_t row[3], out[2];
            if (fread(row, sizeof row, 1, stdin) != 1) return 3;
            control(job.word);
            out[0] = run(row[0], row[1], row[2]);
            out[1] = status();
            if (fwrite(out, sizeof out, 1, stdout) != 1) return 4;
        }
    }
    return 0;
}

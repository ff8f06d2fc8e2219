#include "dispatch/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

int sn_detect_isa(void) {
#if defined(__x86_64__)
    __builtin_cpu_init(); /* asks cpuid, and the operating system by xgetbv */
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2"))
        return SN_ISA_PORTABLE;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
        return SN_ISA_AVX512;
    return SN_ISA_AVX2;
#elif defined(__aarch64__)
    return SN_ISA_NEON; /* all of them have it */
#else
    return SN_ISA_PORTABLE;
#endif
}

#if defined(__x86_64__)
sn_u64 sn_fp_enter(void) {
    sn_u32 saved = _mm_getcsr();
    _mm_setcsr(0x1f80); /* all exceptions masked, nearest even, neither FTZ nor DAZ */
    return saved;
}
void sn_fp_leave(sn_u64 saved) { _mm_setcsr((sn_u32)saved); }
int sn_fp_is_plain(void) { return !(_mm_getcsr() & 0xe040); } /* the direction, FTZ, DAZ */
void sn_fp_round(int direction) { _mm_setcsr(0x1f80 | (sn_u32)direction << 13); }
#elif defined(__aarch64__)
sn_u64 sn_fp_enter(void) {
    sn_u64 control, status, plain = 0; /* 32 bits each; x86 has both in one word */
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("mrs %0, fpsr" : "=r"(status));
    __asm__ volatile("msr fpcr, %0" : : "r"(plain));
    return status << 32 | (control & 0xffffffffu);
}
void sn_fp_leave(sn_u64 saved) {
    __asm__ volatile("msr fpcr, %0" : : "r"(saved & 0xffffffffu));
    __asm__ volatile("msr fpsr, %0" : : "r"(saved >> 32));
}
int sn_fp_is_plain(void) {
    sn_u64 now;
    __asm__ volatile("mrs %0, fpcr" : "=r"(now));
    return !(now & (15u << 22 | 1u << 19)); /* the direction, FZ, DN; FZ16 */
}
void sn_fp_round(int direction) {
    static const sn_u64 modes[] = {[SN_FP_NEAREST] = 0, [SN_FP_DOWN] = 2, [SN_FP_UP] = 1, [SN_FP_ZERO] = 3};
    __asm__ volatile("msr fpcr, %0" : : "r"(modes[direction] << 22));
}
#elif defined(__wasm__) /* always nearest even, subnormals kept, no flags; no kernel is built that would set it */
sn_u64 sn_fp_enter(void) { return 0; }
void sn_fp_leave(sn_u64 saved) { (void)saved; }
int sn_fp_is_plain(void) { return 1; }
void sn_fp_round(int direction) { (void)direction; }
#else
#error "softnum: say here how this CPU's floating-point environment is saved, set to nearest even and restored"
#endif

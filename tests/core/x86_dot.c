/* The CPU's own dot-product instructions, one lane of sixteen for each element: a helper of test_x86_dot.py. */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

int has_bf16(void) { return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512f"); }
int has_vnni(void) { return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512f"); }

/* out[i] = c[i] + a[2i] * b[2i] + a[2i + 1] * b[2i + 1] as VDPBF16PS has it; n a multiple of 16. mxcsr: in force. */
__attribute__((target("avx512f,avx512bf16"))) void dot_bf16(long n, unsigned mxcsr, const uint16_t *a,
                                                            const uint16_t *b, const float *c, float *out) {
    unsigned saved = _mm_getcsr();
    _mm_setcsr(mxcsr);
    for (long i = 0; i < n; i += 16) {
        __m512i x = _mm512_loadu_si512(a + 2 * i), y = _mm512_loadu_si512(b + 2 * i);
        __m512bh p, q;
        memcpy(&p, &x, sizeof p);
        memcpy(&q, &y, sizeof q);
        _mm512_storeu_ps(out + i, _mm512_dpbf16_ps(_mm512_loadu_ps(c + i), p, q));
    }
    _mm_setcsr(saved);
}

/* out[i] = c[i] + the four products a[4i + j] * b[4i + j], a unsigned, b signed: VPDPBUSD. */
__attribute__((target("avx512f,avx512vnni"))) void dot_int8(long n, const uint8_t *a, const int8_t *b, const int32_t *c,
                                                            int32_t *out) {
    for (long i = 0; i < n; i += 16) {
        __m512i x = _mm512_loadu_si512(a + 4 * i), y = _mm512_loadu_si512(b + 4 * i);
        _mm512_storeu_si512(out + i, _mm512_dpbusd_epi32(_mm512_loadu_si512(c + i), x, y));
    }
}

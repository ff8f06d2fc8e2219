/* The scalar operations of an x86-64 CPU on bit patterns, with the flags that they raise, as a witness for tests.
   Inline assembly, so that no compiler folds them or exchanges their operands. */

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

enum {
    ADD,
    SUBTRACT,
    MULTIPLY,
    DIVIDE,
    SQRT,
    FMA_132,
    FMA_213,
    FMA_231,
    CONVERT,
    TO_INT32,
    TO_INT64,
    TO_UINT32,
    TO_UINT64
};

int has_fma(void) { return __builtin_cpu_supports("fma") != 0; }
int has_avx512(void) { return __builtin_cpu_supports("avx512f") != 0; }

/* x, y, z are an instruction's operands 1, 2, 3 as Intel writes them; the result is in x. */
#define OPERATE(suffix)                                                                                                \
    switch (operation) {                                                                                               \
    case ADD: __asm__ volatile("add" suffix " %1, %0" : "+x"(x) : "x"(y)); break;                                      \
    case SUBTRACT: __asm__ volatile("sub" suffix " %1, %0" : "+x"(x) : "x"(y)); break;                                 \
    case MULTIPLY: __asm__ volatile("mul" suffix " %1, %0" : "+x"(x) : "x"(y)); break;                                 \
    case DIVIDE: __asm__ volatile("div" suffix " %1, %0" : "+x"(x) : "x"(y)); break;                                   \
    case SQRT: __asm__ volatile("sqrt" suffix " %0, %0" : "+x"(x)); break;                                             \
    case FMA_132: __asm__ volatile("vfmadd132" suffix " %2, %1, %0" : "+x"(x) : "x"(y), "x"(z)); break;                \
    case FMA_213: __asm__ volatile("vfmadd213" suffix " %2, %1, %0" : "+x"(x) : "x"(y), "x"(z)); break;                \
    case FMA_231: __asm__ volatile("vfmadd231" suffix " %2, %1, %0" : "+x"(x) : "x"(y), "x"(z)); break;                \
    case TO_INT32: __asm__ volatile("cvt" suffix "2si %1, %k0" : "=r"(integer) : "x"(x)); return integer & 0xffffffff; \
    case TO_INT64: __asm__ volatile("cvt" suffix "2si %1, %q0" : "=r"(integer) : "x"(x)); return integer;              \
    case TO_UINT32:                                                                                                    \
        __asm__ volatile("vcvt" suffix "2usi %1, %k0" : "=r"(integer) : "x"(x));                                       \
        return integer & 0xffffffff;                                                                                   \
    case TO_UINT64: __asm__ volatile("vcvt" suffix "2usi %1, %q0" : "=r"(integer) : "x"(x)); return integer;           \
    default: break;                                                                                                    \
    }

static uint64_t on_singles(int operation, const uint64_t operands[3]) {
    float x, y, z;
    double wide;
    uint64_t integer;
    uint32_t bits;
    memcpy(&x, operands, sizeof x); /* the low half, as x86 is little-endian */
    memcpy(&y, operands + 1, sizeof y);
    memcpy(&z, operands + 2, sizeof z);
    if (operation == CONVERT) {
        __asm__ volatile("cvtss2sd %1, %0" : "=x"(wide) : "x"(x));
        memcpy(&integer, &wide, sizeof integer);
        return integer;
    }
    OPERATE("ss")
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static uint64_t on_doubles(int operation, const uint64_t operands[3]) {
    double x, y, z;
    float narrow;
    uint64_t integer;
    uint32_t bits;
    memcpy(&x, operands, sizeof x);
    memcpy(&y, operands + 1, sizeof y);
    memcpy(&z, operands + 2, sizeof z);
    if (operation == CONVERT) {
        __asm__ volatile("cvtsd2ss %1, %0" : "=x"(narrow) : "x"(x));
        memcpy(&bits, &narrow, sizeof bits);
        return bits;
    }
    OPERATE("sd")
    memcpy(&integer, &x, sizeof integer);
    return integer;
}

/* n triples of operands in; n results and n times the flags of MXCSR out */
void run(int operation, int doubles, long n, const uint64_t *operands, uint64_t *results, uint32_t *flags) {
    unsigned before = _mm_getcsr();
    for (long i = 0; i < n; i++) {
        _mm_setcsr(0x1f80); /* to nearest, everything masked, no flag raised yet */
        results[i] = (doubles ? on_doubles : on_singles)(operation, operands + 3 * i);
        flags[i] = _mm_getcsr() & 0x3f;
    }
    _mm_setcsr(before);
}

/* The operations of x87 on 80-bit codes, with the flags that they raise, as a witness for tests. Inline assembly, so
   that no compiler folds them or exchanges their operands. */

#include <stdint.h>
#include <string.h>

enum { ADD, SUBTRACT, MULTIPLY, DIVIDE, SQRT, REMAINDER, ROUND_TO_INTEGRAL, COMPARE, TO_DOUBLE, TO_INT64 };

/* control: the rounding control, 0 to 3, to nearest, down, up, toward zero; precision: 0 (24 bits), 2 (53) or 3 (64).
   Codes are pairs of words, the low one first. Returns the exceptions of the status word, or of a comparison also its
   condition codes. */
int x87_operate(int operation, int control, int precision, const uint64_t a[2], const uint64_t b[2], uint64_t out[2]) {
    uint16_t word = (uint16_t)(0x3f | precision << 8 | control << 10), status = 0, old;
    unsigned char x[16], y[16], z[16] = {0};
    double wide;
    int64_t integer;
    memcpy(x, a, 16);
    memcpy(y, b, 16);
    __asm__ volatile("fnstcw %0" : "=m"(old));
    __asm__ volatile("fninit; fldcw %0" : : "m"(word));
#define TWO(text)                                                                                                      \
    __asm__ volatile("fldt %2; fldt %3; " text "; fnstsw %1; fstpt %0" : "=m"(z), "=a"(status) : "m"(x), "m"(y))
#define ONE(text) __asm__ volatile("fldt %2; " text "; fnstsw %1; fstpt %0" : "=m"(z), "=a"(status) : "m"(x))
    switch (operation) {
    case ADD: TWO("faddp %%st, %%st(1)"); break;
    case SUBTRACT: TWO("fsubrp %%st, %%st(1)"); break;
    case MULTIPLY: TWO("fmulp %%st, %%st(1)"); break;
    case DIVIDE: TWO("fdivrp %%st, %%st(1)"); break;
    case SQRT: ONE("fsqrt"); break;
    case REMAINDER: /* b first, so that a is on top; again while the reduction is incomplete (C2) */
        __asm__ volatile(
            "fldt %3; fldt %2; 1: fprem1; fnstsw %%ax; testb $4, %%ah; jnz 1b; fnstsw %1; fstpt %0; fstp %%st(0)"
            : "=m"(z), "=a"(status)
            : "m"(x), "m"(y));
        break;
    case ROUND_TO_INTEGRAL: ONE("frndint"); break;
    case COMPARE: __asm__ volatile("fldt %2; fldt %1; fucompp; fnstsw %0" : "=a"(status) : "m"(x), "m"(y)); break;
    case TO_DOUBLE:
        __asm__ volatile("fldt %2; fstpl %0; fnstsw %1" : "=m"(wide), "=a"(status) : "m"(x));
        memcpy(z, &wide, 8);
        break;
    default:
        __asm__ volatile("fldt %2; fistpll %0; fnstsw %1" : "=m"(integer), "=a"(status) : "m"(x));
        memcpy(z, &integer, 8);
        break;
    }
    __asm__ volatile("fninit; fldcw %0" : : "m"(old));
    memcpy(out, z, 16);
    return status & (operation == COMPARE ? 0x453f : 0x3f);
}

void x87_each(int operation, int control, int precision, long n, const uint64_t *a, const uint64_t *b, uint64_t *out,
              uint16_t *status) {
    for (long i = 0; i < n; i++)
        status[i] = (uint16_t)x87_operate(operation, control, precision, a + 2 * i, b + 2 * i, out + 2 * i);
}

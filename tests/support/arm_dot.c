/* Runs BFDOT and BFMMLA on rows from standard input: C (binary32), four bfloat16 of a, four of b, 20 bytes a row.
 * Writes, for each, BFDOT of the first two, and BFMMLA's first element: two codes of binary32. The argument is FPCR, in
 * hexadecimal; exit code 3: it does not keep what was written to it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint32_t c;
    uint16_t a[4], b[4];
} row;

int main(int argc, char **argv) {
    const uint64_t wanted = argc > 1 ? strtoull(argv[1], NULL, 16) : 0;
    uint64_t got, plain = 0;
    __asm__ volatile("msr fpcr, %1\n\tmrs %0, fpcr" : "=r"(got) : "r"(wanted));
    __asm__ volatile("msr fpcr, %0" : : "r"(plain));
    if (got != wanted) return 3;
    row r;
    while (fread(&r, sizeof r, 1, stdin) == 1) {
        uint32_t dot[4] = {r.c}, product[4] = {r.c};
        uint16_t a[8] = {0}, b[8] = {0};
        memcpy(a, r.a, sizeof r.a);
        memcpy(b, r.b, sizeof r.b);
        __asm__ volatile("msr fpcr, %4\n\t"
                         "ldr q1, [%2]\n\tldr q2, [%3]\n\t"
                         "ldr q0, [%0]\n\tbfdot v0.4s, v1.8h, v2.8h\n\tstr q0, [%0]\n\t"
                         "ldr q0, [%1]\n\tbfmmla v0.4s, v1.8h, v2.8h\n\tstr q0, [%1]\n\t"
                         "msr fpcr, %5"
                         :
                         : "r"(dot), "r"(product), "r"(a), "r"(b), "r"(wanted), "r"(plain)
                         : "v0", "v1", "v2", "memory");
        fwrite(dot, 4, 1, stdout);
        fwrite(product, 4, 1, stdout);
    }
    return 0;
}

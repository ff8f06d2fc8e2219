/* Formats, operations and a product of matrices from C. In the checkout's root:
 *
 *     make lib
 *     cc -std=c11 examples/c/softnum_example.c -o example $(PKG_CONFIG_PATH=build/clib pkg-config --cflags --libs
 * softnum) LD_LIBRARY_PATH=build/clib ./example */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "softnum.h"

static softnum_why why;

/* Every call can fail; here that ends the program. */
static void check(softnum_status status) {
    if (status == SOFTNUM_OK) return;
    fprintf(stderr, "%s: %s\n", softnum_status_text(status), why.text);
    exit(1);
}

int main(void) {
    softnum_format *e4m3fn, *e6m9, *binary32;
    check(softnum_format_named("e4m3fn", &e4m3fn, &why));
    check(softnum_format_named("e6m9", &e6m9, &why));
    check(softnum_format_named("binary32", &binary32, &why));

    /* values to codes, saturating, with the exceptions of each */
    softnum_rules saturate = SOFTNUM_RULES_INIT;
    saturate.overflow = SOFTNUM_OVERFLOW_SATURATE;
    softnum_rounder *rounder;
    check(softnum_rounder_new(e4m3fn, &saturate, &rounder, &why));
    const float x[5] = {0.1f, 1.5f, 300, -1e9f, NAN};
    uint8_t codes[5], flags[5];
    check(softnum_encode_f32(rounder, x, codes, flags, 5, NULL, &why));
    printf("e4m3fn codes: %02x %02x %02x %02x %02x\n", codes[0], codes[1], codes[2], codes[3], codes[4]);
    printf("flags: %d %d %d %d %d\n", flags[0], flags[1], flags[2], flags[3], flags[4]);

    /* stochastic rounding: the bits of element i are those of the key, whatever the call that it is in */
    softnum_rules stochastic = SOFTNUM_RULES_INIT;
    stochastic.rounding = SOFTNUM_STOCHASTIC;
    softnum_rounder *by_chance;
    check(softnum_rounder_new(e4m3fn, &stochastic, &by_chance, &why));
    const softnum_random key = SOFTNUM_RANDOM_INIT(7);
    const float tenth[6] = {0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f};
    float rounded[6];
    check(softnum_quantize_f32(by_chance, tenth, rounded, 6, &key, &why));
    printf("0.1, six times: %g %g %g %g %g %g\n", (double)rounded[0], (double)rounded[1], (double)rounded[2],
           (double)rounded[3], (double)rounded[4], (double)rounded[5]);

    /* an operation on codes: fma of two e4m3fn and a binary32 into binary32 */
    const softnum_format *const operands[3] = {e4m3fn, e4m3fn, binary32};
    softnum_operation *fma;
    check(softnum_operation_new("fma", operands, binary32, NULL, &fma, &why));
    const uint32_t one = 0x3f800000;
    uint32_t sum;
    const void *const in[3] = {&codes[1], &codes[1], &one};
    check(softnum_operate(fma, in, &sum, NULL, 1, NULL, &why));
    printf("1.5 * 1.5 + 1 = %08x\n", (unsigned)sum);

    /* a product of matrices (1, 8) x (8, 2), in chunks of 4 that are summed in binary32 */
    softnum_unit_facts facts = SOFTNUM_UNIT_INIT(SOFTNUM_UNIT_MAD);
    facts.a = facts.b = e4m3fn;
    facts.accumulator = e6m9;
    facts.result = binary32;
    facts.chunk = 4;
    softnum_unit *unit;
    check(softnum_unit_new(&facts, &unit, &why));
    float values[8 + 16];
    uint8_t matrices[8 + 16];
    for (int i = 0; i < 8; i++)
        values[i] = (float)i / 4;
    for (int i = 0; i < 16; i++)
        values[8 + i] = (float)i / 8;
    check(softnum_encode_f32(rounder, values, matrices, NULL, 24, NULL, &why));
    uint32_t result[2];
    softnum_product product = SOFTNUM_PRODUCT_INIT(1, 2, 8);
    product.a = matrices;
    product.b = matrices + 8;
    product.out = result;
    check(softnum_gemm(unit, &product, &why));
    float numbers[2];
    check(softnum_decode_f32(binary32, result, numbers, 2, &why));
    printf("product: %g %g\n", (double)numbers[0], (double)numbers[1]);

    /* what cannot be done is told */
    softnum_format *none;
    if (softnum_format_named("e99m2", &none, &why) == SOFTNUM_BAD_ARGUMENT) printf("%.45s ...\n", why.text);

    softnum_unit_free(unit);
    softnum_operation_free(fma);
    softnum_rounder_free(by_chance);
    softnum_rounder_free(rounder);
    softnum_format_free(binary32);
    softnum_format_free(e6m9);
    softnum_format_free(e4m3fn);
    return 0;
}

#include "draw/draw.h"

#include "dispatch/kernels.h"

SN_DISPATCH(const sn_draw_kernels, sn_draw_kernels)

void sn_draw_block(const sn_draw_kernels *run, const sn_draw_step *steps, int count, sn_u64 base, int operands,
                   ptrdiff_t rows, sn_u64 *choices, sn_u64 *codes) {
    sn_u64 words[SN_DRAW_OPERANDS][SN_DRAW_ROWS * SN_DRAW_SLOTS];
    for (ptrdiff_t row = 0; row < rows; row += SN_DRAW_ROWS) {
        const ptrdiff_t here = rows - row < SN_DRAW_ROWS ? rows - row : SN_DRAW_ROWS, at = row * SN_DRAW_SLOTS;
        const size_t n = (size_t)(here * SN_DRAW_SLOTS);
        for (int k = 0; k <= operands; k++)
            run->words(base + (sn_u64)(k * rows * SN_DRAW_SLOTS + at) * SN_DRAW_ODD,
                       k < operands ? words[k] : choices + at, n);
        for (int i = 0; i < count; i++) {
            const sn_draw_step *const s = &steps[i];
            const sn_draw_array in = {words[s->operand] + s->first, SN_DRAW_SLOTS},
                                choice = {choices + at + s->first, SN_DRAW_SLOTS},
                                out = {codes + s->operand * rows * SN_DRAW_SLOTS + at + s->first, SN_DRAW_SLOTS};
            run->apply(s->rule, here, s->columns, in, choice, out);
        }
    }
}

SN_ALWAYS void crossed(int count, const sn_u64 *const *tables, const sn_u64 *sizes, const sn_u64 *first,
                       const sn_u64 *stride, sn_u64 *const *out, size_t n) {
    sn_u64 digits[SN_DRAW_TABLES];
    for (int k = 0; k < count; k++)
        digits[k] = first[k];
    for (size_t i = 0; i < n; i++) {
        sn_u64 carry = 0;
        for (int k = count - 1; k >= 0; k--) {
            out[k][i] = tables[k][digits[k]];
            const sn_u64 next = digits[k] + stride[k] + carry; /* what the first digit carries is a whole round */
            carry = next >= sizes[k];
            digits[k] = next - (sizes[k] & (0 - carry));
        }
    }
}

void sn_draw_crossed(int count, const sn_u64 *const *tables, const sn_u64 *sizes, const sn_u64 *first,
                     const sn_u64 *stride, sn_u64 *const *out, size_t n) {
    switch (count) { /* digits in registers */
    case 1: crossed(1, tables, sizes, first, stride, out, n); break;
    case 2: crossed(2, tables, sizes, first, stride, out, n); break;
    case 3: crossed(3, tables, sizes, first, stride, out, n); break;
    default: break;
    }
}

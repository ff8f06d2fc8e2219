#include "draw.h"

#include "kernels.h"

extern const sn_draw_kernels sn_draw_kernels_portable, sn_draw_kernels_avx2, sn_draw_kernels_avx512;

const sn_draw_kernels *sn_draw_kernels_for(int isa) {
    switch (isa) {
    case SN_ISA_PORTABLE: return &sn_draw_kernels_portable;
#if defined(__x86_64__)
    case SN_ISA_AVX2: return &sn_draw_kernels_avx2;
    case SN_ISA_AVX512: return &sn_draw_kernels_avx512;
#endif
    default: return NULL;
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

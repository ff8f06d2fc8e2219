/* Sums by look-up tables, by the gathers of AVX-512: included by targets/gemm.h. */
#ifndef SOFTNUM_TABLE_GATHERS_H
#define SOFTNUM_TABLE_GATHERS_H

#include "products/tables/table.h"

enum { SN_TABLE_SUMS = 16, SN_TABLE_VECTORS = 4 };

/* `vectors` times 16 columns of a row, the last 16 of them under a mask. */
static inline __attribute__((always_inline)) void SN_(table_sums)(const sn_table_sums *s, ptrdiff_t row,
                                                                  ptrdiff_t column, int vectors, __mmask16 last) {
    sn_u8 *acc = s->acc + row * s->acc_row + column;
    const sn_u8 *a = s->a + row * s->a_row, *b = s->b + column;
    const __m512i byte = _mm512_set1_epi32(255);
    __m512i sums[SN_TABLE_VECTORS];
    for (int v = 0; v < vectors; v++)
        sums[v] = _mm512_cvtepu8_epi32(
            _mm_maskz_loadu_epi8(v == vectors - 1 ? last : (__mmask16)0xffff, acc + (ptrdiff_t)v * SN_TABLE_SUMS));
    for (ptrdiff_t k = 0; k < s->k; k++, a += s->a_step, b += s->b_step) {
        const sn_u32 *products = s->product + *a * s->b_codes;
        for (int v = 0; v < vectors; v++) {
            const __m128i codes =
                _mm_maskz_loadu_epi8(v == vectors - 1 ? last : (__mmask16)0xffff, b + (ptrdiff_t)v * SN_TABLE_SUMS);
            const __m512i rows = _mm512_i32gather_epi32(_mm512_cvtepu8_epi32(codes), products, 4);
            sums[v] = _mm512_and_si512(byte, _mm512_i32gather_epi32(_mm512_add_epi32(rows, sums[v]), s->sum, 1));
        }
    }
    for (int v = 0; v < vectors; v++)
        _mm_mask_storeu_epi8(acc + (ptrdiff_t)v * SN_TABLE_SUMS, v == vectors - 1 ? last : (__mmask16)0xffff,
                             _mm512_cvtepi32_epi8(sums[v]));
}

static void SN_(table_gemm)(const sn_table_sums *s) {
    for (ptrdiff_t column = 0; column < s->n;) {
        const ptrdiff_t left = s->n - column;
        const int whole = left >= SN_TABLE_SUMS * SN_TABLE_VECTORS;
        const __mmask16 last = (__mmask16)(left >= SN_TABLE_SUMS ? 0xffff : (1u << left) - 1);
        for (ptrdiff_t row = 0; row < s->m; row++) {
            if (whole)
                SN_(table_sums)(s, row, column, SN_TABLE_VECTORS, 0xffff);
            else
                SN_(table_sums)(s, row, column, 1, last);
        }
        column += whole ? SN_TABLE_SUMS * SN_TABLE_VECTORS : SN_TABLE_SUMS;
    }
}

#endif

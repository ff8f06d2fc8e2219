/* The dot-product-add in two stages over binary32 carriers (softnum/units/two_stage.h): part of products/fused/body.h,
 * whose packing, and whose products, it has. Domain, checked by sn_two_stage_path, besides what stands there:
 *   - sums are rounded down where they are aligned, in one stream or two;
 *   - terms * 2^(F + 2) <= 2^31: all sums of products are int32;
 *   - the accumulator is binary32, to nearest even, overflowing to infinity; zeros count with its lowest exponent or
 * not at all; products of 2^126 or more go to the definition, so that no limit of products is met here. M is kept at F
 * - 124 or above for the products alone, of which there are none but zeros where it is lower.
 *
 * The second stage is computed in binary64. A sum of products is below 2^(31 - F + M), C below 2^(N + 1), and what they
 * are rounded down to are multiples of 2^(N - most), most being the larger number of fraction bits: as most + 31 - F <=
 * 50, their sum is exact. Its conversion to binary32 is the one rounding; an infinity stays one, as all products are
 * finite. */
typedef sn_i32 sn_ih __attribute__((vector_size(SN_BYTES / 2)));
typedef float sn_fh __attribute__((vector_size(SN_BYTES / 2)));

#ifndef SN_DOWN64
/* The largest multiple of the last place of k that is no larger than x; k is 1.5 times a power of two, and x below a
 * third of it in magnitude, or infinite, or a NaN. */
SN_INLINE sn_wf SN_(down64)(sn_wf x, sn_wf k) {
    const sn_wf near = (x + k) - k, place = (sn_wf)(((sn_wu)k & (0x7ffull << 52)) - (52ull << 52));
    return near - (sn_wf)((sn_wi)place & (near > x));
}
#define SN_DOWN64(x, k) SN_(down64)(x, k)
#endif

/* Numbers of binary64 by the high halves of their patterns. */
SN_INLINE sn_wf SN_(of_high)(sn_ih high) { return (sn_wf)(__builtin_convertvector(high, sn_wi) << 32); }

/* The second stage of half a vector: sums in units that `unit` has, and c; magic, magic_c: 1.5 * 2^52 times what they
 * are rounded to multiples of. */
SN_INLINE sn_fh SN_(second_stage)(sn_ih sum, sn_fh c, sn_ih unit, sn_ih magic, double magic_c) {
    const sn_wf s = __builtin_convertvector(sum, sn_wf) * SN_(of_high)(unit), k = SN_(of_high)(magic);
    return __builtin_convertvector(SN_DOWN64(s, k) + SN_DOWN64(__builtin_convertvector(c, sn_wf), k * magic_c), sn_fh);
}

/* The steps of a packed block, as SN_(steps). */
SN_INLINE void SN_(stage_steps)(const sn_fused_plan *p, int streams, int reach, int depth, const sn_fused_rows *rows,
                                const sn_fused_columns *columns, float sums[SN_ROWS][SN_STRIP]) {
    const sn_two_stage_unit *w = &p->stages;
    const sn_vi zero = {0}, lowest = zero + p->low;
    const int terms = w->fused.terms, bits = w->fused.fraction_bits, finer = w->sum_fraction_bits - w->c_fraction_bits;
    const double magic_c = finer >= 0 ? (double)(1ull << finer) : 1.0 / (double)(1ull << -finer);
    sn_vf acc[SN_ROWS][2];
    for (int r = 0; r < SN_ROWS; r++)
        for (int v = 0; v < 2; v++)
            acc[r][v] = sn_load_vf(sums[r] + v * SN_V);
    for (int k = 0; k < depth; k += terms) {
        sn_vi m[2][SN_ROWS][2], total[2][SN_ROWS][2];
        for (int s = 0; s < streams; s++) {
            sn_vh largest[SN_ROWS];
            sn_vf scale[SN_ROWS][2];
            sn_vu sum[SN_ROWS][2];
            SN_(largest)(rows, columns, k + s, k + terms, streams, -32768, largest);
            for (int r = 0; r < SN_ROWS; r++)
                for (int v = 0; v < 2; v++) {
                    m[s][r][v] = (SN_(exponent_field)(largest[r], v) >> 23) - 127;
                    scale[r][v] = (sn_vf)((sn_vu)(bits + 127 - SN_MAX(m[s][r][v], lowest)) << 23);
                    sum[r][v] = (sn_vu){0};
                }
            SN_(add_aligned)(rows, columns, k + s, k + terms, streams, scale, sum);
            for (int r = 0; r < SN_ROWS; r++)
                for (int v = 0; v < 2; v++)
                    total[s][r][v] = (sn_vi)sum[r][v];
        }
        for (int r = 0; r < SN_ROWS; r++)
            for (int v = 0; v < 2; v++) {
                sn_vi top = m[0][r][v], sum = total[0][r][v];
                if (streams == 2) {
                    const sn_vi other = m[1][r][v];
                    top = SN_MAX(top, other);
                    sum >>= SN_MIN(top - m[0][r][v], zero + 31);
                    const sn_vi second = total[1][r][v] >> SN_MIN(top - other, zero + 31);
                    sum = (sn_vi)((sn_vu)sum + (sn_vu)second); /* lanes out of the domain wrap around */
                }
                sn_vi own = ((sn_vi)((sn_vu)acc[r][v] & 0x7f800000u) >> 23) - 127;
                own = SN_MAX(own, zero - 126);
                if (w->fused.zero_exponent == SN_FUSED_NO_FLOOR)
                    own = (sn_vi)SN_SELECT32((sn_vu)acc[r][v] << 1 == 0, zero - 512, own); /* of a zero: below all */
                const sn_vi n = SN_MAX(top, own);
                sn_vf c = acc[r][v];
                if (reach) c = (sn_vf)((sn_vi)c & (own >= n - w->c_reach));
                const sn_vi unit = (top + (1023 - bits)) << 20;
                const sn_vi magic = ((n + (1023 + 52 - w->sum_fraction_bits)) << 20) + 0x80000;
                sn_ih halves[3][2];
                sn_fh starts[2], ends[2];
                memcpy(halves[0], &sum, sizeof sum);
                memcpy(halves[1], &unit, sizeof unit);
                memcpy(halves[2], &magic, sizeof magic);
                memcpy(starts, &c, sizeof c);
                for (int h = 0; h < 2; h++)
                    ends[h] = SN_(second_stage)(halves[0][h], starts[h], halves[1][h], halves[2][h], magic_c);
                memcpy(&acc[r][v], ends, sizeof ends);
            }
    }
    for (int r = 0; r < SN_ROWS; r++)
        for (int v = 0; v < 2; v++)
            memcpy(sums[r] + v * SN_V, &acc[r][v], sizeof acc[r][v]);
}

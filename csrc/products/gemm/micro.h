/* GEMM in binary32, each step rounded to nearest even: blocks of rows x vectors whose accumulators stay in registers.
 * Included by products/gemm/body.h, once per instruction set. k runs in order for each output, so a block's shape never
 * changes a bit.
 *
 * Steps, and their domains, checked by products/gemm/paths.c:
 *   - magic: the binary32 sum of accumulator and addend (the exact product, or a rounded one), rounded again.
 *     p(accumulator) <= 11, and the addend's precision (exact product: p(a) + p(b); rounded: p(product)) is no larger.
 *     Then an addition rounded to binary32 and then to p bits equals one rounded once: were the binary32 sum a midpoint
 *     that the exact sum is not, the operands would span more than 24 bits, but both have at most p <= 11
 *     (Figueroa 1995: 24 >= 2p + 2), and neither is itself a midpoint. Sums in binary32's subnormals are exact.
 *     A product is exact in binary32: p(a) + p(b) <= 24, lowest bits >= 2^-149, below 2^128. So the fused
 *     multiply-add of the CPU, or a multiplication and an addition where it has none, give the same.
 *   - fixed: saturating fixed point. Products and sums, as integers of their last place, below 2^22; sums exact.
 *   - odd (AVX-512): x * y + acc rounded to odd in binary32, then to m bits: right wherever m + 3 <= 24 and the
 * format's last place is at least 2^-147 (Boldo and Melquiond 2008). Rounded down and up, a sum gives the same number,
 * or two neighbours, one of which is odd: that one. A pair of equal even numbers is 0 with two signs at most: the
 * upper.
 *   - sum: binary32 accumulator, one rounding by the CPU; the product is exact, or rounded to binary32, or fused.
 *
 * Rounding to m bits (round32). Let 2^E be the binade of v, but at least emin's, and C = K * 2^E, K = 1.5 * 2^(23 - m).
 * v + C lies in the binade of C, whose last place is 2^(E - m): the addition rounds v to nearest even, and subtracting
 * C is exact. fma(2^E, K, v) is that addition with no constant to assemble, since 2^E * K is exact. SN_FULL clamps E to
 * emax + 1 as well, and puts what an overflow becomes in its place: emax + 24 - m <= 127. SN_SIGNED does without: by
 * products/gemm/bounds.h nothing overflows, and C is finite.
 *
 * SN_BARE: w - (w - v), w = 2^s * v by an addition to its exponent, s = 23 - m >= m + 3. Let v > 0 and u = 2^(E - m). w
 * is a multiple of u, w - v at most 2^(E + s + 1), so w - v is rounded to a multiple of u, and w minus that is the
 * multiple of u next to v; in a tie v / u is a half, w / u = 2^s * v / u even, and so the even one of both. If w - v is
 * below 2^(E + s), it is rounded to a multiple of u / 2; but then v < 2^E * (1 + 2 / 2^s) is nearer to 2^E than u / 4.
 * It has no emin, and no sign of zeros. Its domain: every addend is a multiple of the sum's last place (`exact_below`,
 * of the unit or of a block's operands), and no start is -0. Then all sums are such multiples, and below 2^emin they
 * are values of the format: whatever finer place E calls for, v stays as it is (of 0, and of binary32's subnormals, w
 * is another number that is multiple enough). Nothing but 0 becomes 0, and a sum that starts from +0 is never -0: to
 * nearest, x + y is -0 only if both are.
 * So products that lost the sign of their zero (they are rounded with emin, without the sign) change no sum: +0 + -0
 * and +0 + +0 are +0.
 *   There a product v of P = p(a) + p(b) bits needs no mask either, where a CPU gives the larger of two magnitudes with
 *   the sign of the first: with M = that of v and 2^emin, C = 2^(23 - m) * M has v's sign, so v + C is on the far side
 * of C's lower end, and below its upper one: M <= (2 - 2^(1 - P)) * 2^E, and v / C = 2^(m - 23) < 2^-P for P + m <= 22,
 *   which `exact_below` promises. C is an even multiple of 2^(E - m), so ties go to even.
 *
 * Instructions for a vector of 16 products, AVX-512, of which two begin per cycle (ports 0 and 5); sgemm needs 1:
 *   sum 1; fixed 5; magic bare 4 (fma, add, 2 subtractions), signed 6, full 11; product too: bare 8 (mul, range, 2 fma
 * for it, add, add, 2 subtractions); odd signed 9. Loads (a broadcast for each row, vectors of b for each block) take
 * other ports. A step's latency is 13 cycles (magic): 8 accumulators at 2 cycles each cover it. Measured for 512^3
 * beside sgemm, which itself is close to one instruction a vector, in sgemms: sum 1.7 (8 accumulators just cover the
 * latency of an addition), fixed 5.3, signed 6.6, full 10.8: a tenth from the limit of the ports. On a Zen 4, whose
 * additions take other ports than multiplications, bare takes 0.7 of signed's time. */

enum { SN_BARE, SN_SIGNED, SN_FULL };
enum {
    SN_STEP_MAGIC,
    SN_STEP_MAGIC_PRODUCT,
    SN_STEP_FIXED,
    SN_STEP_ODD,
    SN_STEP_SUM,
    SN_STEP_SUM_ROUNDED,
    SN_STEP_FMA
};

#if defined(__clang__)
#define SN_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SN_UNROLL _Pragma("GCC unroll 8")
#endif

/* x in every lane, -0 and NaN bits included. */
SN_INLINE sn_vf SN_(broadcast)(float x) {
    sn_u32 bits;
    memcpy(&bits, &x, 4);
    return (sn_vf)((sn_vu){0} + bits);
}

SN_INLINE sn_vf SN_(round32)(const sn_round32 *r, int level, sn_vf v) {
    const sn_vi zero = {0};
    if (level == SN_BARE) {
        const sn_vf wide = (sn_vf)((sn_vi)v + ((23 - r->mantissa_bits) << 23));
        return wide - (wide - v);
    }
    const sn_vf scale = (sn_vf){0} + r->scale;
    sn_vi e = (sn_vi)v & 0x7f800000;
    e = SN_MAX(e, zero + (sn_i32)r->emin);
    if (level == SN_FULL) e = SN_MIN(e, zero + (sn_i32)r->emax);
    const sn_vf whole = SN_MULTIPLY_ADD((sn_vf)e, scale, v);
    sn_vf rounded = SN_SUBTRACT_PRODUCT((sn_vf)e, scale, whole);
    rounded = SN_OR_MASKED(rounded, v, (sn_vu)zero + r->sign_of_zero);
    if (level == SN_SIGNED) return rounded;
    rounded = SN_WHERE_GREATER(rounded, (sn_vf)zero + r->limit[0], (sn_vf)zero + r->overflow[0], rounded);
    return SN_WHERE_GREATER((sn_vf)zero - r->limit[1], rounded, (sn_vf)zero + r->overflow[1], rounded);
}

/* Rounded products may lose the sign of their zero, but not what lies below emin. */
SN_INLINE sn_vf SN_(round_product32)(const sn_round32 *r, int level, sn_vf v) {
    if (level != SN_BARE) return SN_(round32)(r, level, v);
#ifdef SN_LARGER_MAGNITUDE
    const sn_vf power = (sn_vf){0} + r->scale * (2.f / 3), e = SN_LARGER_MAGNITUDE(v, (sn_vf)((sn_vu){0} + r->emin));
    return SN_SUBTRACT_PRODUCT(e, power, SN_MULTIPLY_ADD(e, power, v));
#else
    const sn_vf scale = (sn_vf){0} + r->scale;
    const sn_vi e = SN_MAX((sn_vi)v & 0x7f800000, (sn_vi){0} + (sn_i32)r->emin);
    return SN_SUBTRACT_PRODUCT((sn_vf)e, scale, SN_MULTIPLY_ADD((sn_vf)e, scale, v));
#endif
}

/* To a fixed-point format: C is `scale` itself. */
SN_INLINE sn_vf SN_(round_fixed)(const sn_round32 *r, sn_vf v) {
    const sn_vf zero = {0}, c = zero + r->scale;
    return SN_CLAMP((v + c) - c, zero - r->limit[1], zero + r->limit[0]);
}

SN_INLINE sn_vf SN_(step32)(const sn_gemm_unit *u, int step, int level, sn_vf x, sn_vf y, sn_vf acc) {
    switch (step) {
    case SN_STEP_MAGIC: return SN_(round32)(&u->sum32, level, SN_MULTIPLY_ADD(x, y, acc));
    case SN_STEP_MAGIC_PRODUCT:
        return SN_(round32)(&u->sum32, level, acc + SN_(round_product32)(&u->product32, level, x * y));
    case SN_STEP_FIXED: return SN_(round_fixed)(&u->sum32, SN_MULTIPLY_ADD(x, y, acc));
#ifdef SN_FMA_ODD
    case SN_STEP_ODD: return SN_(round32)(&u->sum32, level, SN_(fma_odd)(x, y, acc, 0));
#endif
    case SN_STEP_SUM: return SN_MULTIPLY_ADD(x, y, acc);
    case SN_STEP_SUM_ROUNDED: return acc + x * y;
    default: return SN_FMA(x, y, acc);
    }
}

/* The sum of chunks: their precision is no larger than the outer sum's. */
SN_INLINE sn_vf SN_(outer32)(const sn_gemm_unit *u, int step, int level, sn_vf outer, sn_vf acc) {
    if (step >= SN_STEP_SUM) return outer + acc;
    if (step == SN_STEP_FIXED) return SN_(round_fixed)(&u->outer32, outer + acc);
#ifdef SN_FMA_ODD
    if (step == SN_STEP_ODD) return SN_(round32)(&u->outer32, level, SN_(fma_odd)(acc, SN_(broadcast)(1), outer, 0));
#endif
    return SN_(round32)(&u->outer32, level, outer + acc);
}

/* One block: rows x vectors, at `column` of the panel b. step and level are known to the compiler. */
SN_INLINE void SN_(block32)(const sn_gemm_unit *u, const sn_gemm_args *g, const float *b, int rows, int vectors,
                            int step, int level, ptrdiff_t row, ptrdiff_t column) {
    const ptrdiff_t width = vectors * SN_V, left = g->n - column, valid = left < width ? left : width;
    const ptrdiff_t lda = g->lda;
    const float *a = (const float *)g->a + row * lda;
    float edge[SN_BLOCK_ROWS][SN_PANEL] = {{0}};
    sn_vf acc[SN_BLOCK_ROWS][SN_BLOCK_VECTORS];
    SN_UNROLL
    for (int i = 0; i < rows; i++) {
        if (g->c) memcpy(edge[i], (const float *)g->c + (row + i) * g->ldc + column, (size_t)valid * sizeof(float));
        SN_UNROLL
        for (int v = 0; v < vectors; v++)
            acc[i][v] = u->chunk ? (sn_vf){0} : sn_load_vf(edge[i] + v * SN_V);
    }
    const ptrdiff_t length = u->chunk ? (ptrdiff_t)u->chunk : g->k;
    for (ptrdiff_t k = 0; k < g->k;) {
        const ptrdiff_t end = g->k - k < length ? g->k : k + length;
        for (; k < end; k++) {
            sn_vf y[SN_BLOCK_VECTORS];
            SN_UNROLL
            for (int v = 0; v < vectors; v++)
                y[v] = sn_load_vf(b + k * SN_PANEL + v * SN_V);
            SN_UNROLL
            for (int i = 0; i < rows; i++) {
                const sn_vf x = SN_(broadcast)(a[i * lda + k]);
                SN_UNROLL
                for (int v = 0; v < vectors; v++)
                    acc[i][v] = SN_(step32)(u, step, level, x, y[v], acc[i][v]);
            }
        }
        if (!u->chunk) break;
        SN_UNROLL
        for (int i = 0; i < rows; i++) {
            SN_UNROLL
            for (int v = 0; v < vectors; v++) {
                const sn_vf outer = SN_(outer32)(u, step, level, sn_load_vf(edge[i] + v * SN_V), acc[i][v]);
                memcpy(edge[i] + v * SN_V, &outer, sizeof outer);
                acc[i][v] = (sn_vf){0};
            }
        }
    }
    SN_UNROLL
    for (int i = 0; i < rows; i++) {
        SN_UNROLL
        for (int v = 0; v < vectors; v++) {
            const sn_vf result = u->chunk ? sn_load_vf(edge[i] + v * SN_V) : acc[i][v];
            const sn_vu canonical = SN_SELECT32(result != result, (sn_vu){0} + 0x7fc00000u, result);
            memcpy(edge[i] + v * SN_V, &canonical, sizeof canonical);
        }
        memcpy((float *)g->out + (row + i) * g->ldo + column, edge[i], (size_t)valid * sizeof(float));
    }
}

/* Some rows of the panel that begins at `column`. */
SN_INLINE void SN_(panel32)(const sn_gemm_unit *u, const sn_gemm_args *g, int rows, int step, int level, ptrdiff_t row,
                            ptrdiff_t column) {
    const ptrdiff_t left = g->n - column, end = left < SN_PANEL ? left : SN_PANEL;
    const float *panel = g->panel;
    for (ptrdiff_t j = 0; j < end; j += SN_BLOCK_VECTORS * SN_V) {
        if (end - j > SN_V)
            SN_(block32)(u, g, panel + j, rows, SN_BLOCK_VECTORS, step, level, row, column + j);
        else
            SN_(block32)(u, g, panel + j, rows, 1, step, level, row, column + j);
    }
}

/* How the rows of one panel are computed: SN_BLOCK_ROWS of them, or one. */
typedef struct {
    void (*block)(const sn_gemm_unit *u, const sn_gemm_args *g, ptrdiff_t row, ptrdiff_t column);
    void (*single)(const sn_gemm_unit *u, const sn_gemm_args *g, ptrdiff_t row, ptrdiff_t column);
} SN_(rows32);

#define SN_ROWS32(name, step, level)                                                                                   \
    static void SN_(name##_block)(const sn_gemm_unit *u, const sn_gemm_args *g, ptrdiff_t row, ptrdiff_t column) {     \
        SN_(panel32)(u, g, SN_BLOCK_ROWS, step, level, row, column);                                                   \
    }                                                                                                                  \
    static void SN_(name##_single)(const sn_gemm_unit *u, const sn_gemm_args *g, ptrdiff_t row, ptrdiff_t column) {    \
        SN_(panel32)(u, g, 1, step, level, row, column);                                                               \
    }                                                                                                                  \
    static const SN_(rows32) SN_(name) = {SN_(name##_block), SN_(name##_single)};

SN_ROWS32(magic_bare, SN_STEP_MAGIC, SN_BARE)
SN_ROWS32(magic_signed, SN_STEP_MAGIC, SN_SIGNED)
SN_ROWS32(magic_full, SN_STEP_MAGIC, SN_FULL)
SN_ROWS32(product_bare, SN_STEP_MAGIC_PRODUCT, SN_BARE)
SN_ROWS32(product_signed, SN_STEP_MAGIC_PRODUCT, SN_SIGNED)
SN_ROWS32(product_full, SN_STEP_MAGIC_PRODUCT, SN_FULL)
SN_ROWS32(fixed, SN_STEP_FIXED, SN_FULL)
SN_ROWS32(sum, SN_STEP_SUM, SN_FULL)
SN_ROWS32(sum_rounded, SN_STEP_SUM_ROUNDED, SN_FULL)
SN_ROWS32(sum_fma, SN_STEP_FMA, SN_FULL)

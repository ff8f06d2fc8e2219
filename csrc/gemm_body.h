/* GEMM over carriers: included once per instruction set, by isa_*.c. k runs in order for each output, so the tile sizes
 * below never change a bit.
 *
 * gemm32 (product exact or rounded to nearest even; sum rounded to nearest even). Domain, checked by the caller:
 *   - p(accumulator) <= 11, and the addend's precision (exact product: p(a) + p(b); rounded: p(product)) is no larger.
 *     Then an addition rounded to binary32 and then to p bits equals one rounded once: were the binary32 sum a midpoint
 *     that the exact sum is not, the operands would span more than 24 bits, but both have at most p <= 11
 *     (Figueroa 1995: 24 >= 2p + 2), and neither is itself a midpoint. Sums in binary32's subnormals are exact.
 *   - a product is exact in binary32: p(a) + p(b) <= 24, lowest bits >= 2^-149, below 2^128;
 *   - emax(accumulator) + 24 - m <= 127, for the constant C to exist.
 *   - fixed point: products and sums, as integers of their last place, below 2^22.
 *   - native: binary32 accumulator, one hardware rounding; products exact, or rounded to binary32, or fused.
 * gemm64 (each rounding nearest even or stochastic). Domain: product exact in binary64; precision m + 1 + r <= 52.
 *   The sum is rounded to odd in binary64 (from the exact error of the addition, Knuth's TwoSum), which keeps every later
 *   decision right: nearest for m + 1 + 2 <= 53 (Boldo and Melquiond 2008), and floor(t * 2^r) for m + 1 + r <= 52. */

enum { SN_TILE32 = 64, SN_TILE64 = 32 };

/* a + b, rounded to odd: the exact sum where it is a binary64 number, else the neighbour with an odd last bit. */
SN_INLINE double SN_(add_odd)(double a, double b) {
    double s = a + b, t = s - a;
    double error = (a - (s - t)) + (b - t);
    sn_u64 bits, error_bits;
    memcpy(&bits, &s, 8);
    memcpy(&error_bits, &error, 8);
    sn_u64 inexact = (error_bits << 1) != 0 && (bits & 0x7ff0000000000000u) != 0x7ff0000000000000u;
    sn_u64 beyond = (bits ^ error_bits) >> 63; /* the exact sum is smaller in magnitude: step back to truncate */
    sn_u64 odd = (bits - beyond) | 1;
    bits = inexact ? odd : bits;
    memcpy(&s, &bits, 8);
    return s;
}

SN_INLINE float SN_(round32)(const sn_round32 *r, float v) {
    sn_u32 bits, e, c_bits, out_bits;
    float c, rounded;
    memcpy(&bits, &v, 4);
    e = bits & 0x7f800000u;
    e = e > r->emin ? e : r->emin;
    e = e < r->emax ? e : r->emax;
    c_bits = e + r->to_constant;
    memcpy(&c, &c_bits, 4);
    rounded = (v + c) - c;
    memcpy(&out_bits, &rounded, 4);
    out_bits |= bits & r->sign_of_zero;
    memcpy(&rounded, &out_bits, 4);
    rounded = rounded > r->limit[0] ? r->overflow[0] : rounded;
    return rounded < -r->limit[1] ? r->overflow[1] : rounded;
}

SN_INLINE void SN_(tile32)(const sn_gemm_unit *u, const sn_gemm_args *g, int tile, int product, int native, int fma,
                           int chunked, ptrdiff_t row, ptrdiff_t column) {
    const float *a = (const float *)g->a + row * g->lda;
    const float *b = (const float *)g->b + column;
    const sn_round32 rp = u->product32, rs = u->sum32, ro = u->outer32;
    ptrdiff_t valid = g->n - column < tile ? g->n - column : tile;
    float acc[SN_TILE32], outer[SN_TILE32];
    for (int j = 0; j < tile; j++) acc[j] = outer[j] = 0;
    if (g->c)
        for (ptrdiff_t j = 0; j < valid; j++) acc[j] = outer[j] = ((const float *)g->c)[row * g->ldc + column + j];
    if (chunked)
        for (int j = 0; j < tile; j++) acc[j] = 0;
    ptrdiff_t left = u->chunk;
    for (ptrdiff_t k = 0; k < g->k; k++) {
        const float x = a[k];
        const float *y = b + k * g->ldb;
        for (int j = 0; j < tile; j++) {
            if (fma) {
                acc[j] = SN_FMA(x, y[j], acc[j]);
                continue;
            }
            float p = x * y[j];
            if (product == SN_PRODUCT_NEAREST && !native) p = SN_(round32)(&rp, p);
            float v = acc[j] + p;
            acc[j] = native ? v : SN_(round32)(&rs, v);
        }
        if (chunked && (--left == 0 || k == g->k - 1)) {
            for (int j = 0; j < tile; j++) {
                float v = outer[j] + acc[j];
                outer[j] = native ? v : SN_(round32)(&ro, v);
                acc[j] = 0;
            }
            left = u->chunk;
        }
    }
    float *out = (float *)g->out + row * g->ldo + column;
    for (ptrdiff_t j = 0; j < valid; j++) {
        float v = chunked ? outer[j] : acc[j];
        const sn_u32 nan = 0x7fc00000u;
        if (v != v) memcpy(&v, &nan, 4);
        out[j] = v;
    }
}

SN_INLINE void SN_(columns32)(const sn_gemm_unit *u, const sn_gemm_args *g, int product, int native, int fma,
                              int chunked) {
    for (ptrdiff_t column = 0; column < g->n;) {
        int wide = g->n - column > SN_TILE32 - SN_GEMM_LANES;
        for (ptrdiff_t row = g->m0; row < g->m1; row++) {
            if (wide)
                SN_(tile32)(u, g, SN_TILE32, product, native, fma, chunked, row, column);
            else
                SN_(tile32)(u, g, SN_GEMM_LANES, product, native, fma, chunked, row, column);
        }
        column += wide ? SN_TILE32 : SN_GEMM_LANES;
    }
}

static void SN_(gemm32)(const sn_gemm_unit *u, const sn_gemm_args *g) {
    int nearest = u->product == SN_PRODUCT_NEAREST;
    if (u->native && u->fused_multiply_add)
        u->chunk ? SN_(columns32)(u, g, 0, 1, 1, 1) : SN_(columns32)(u, g, 0, 1, 1, 0);
    else if (u->native)
        u->chunk ? SN_(columns32)(u, g, 0, 1, 0, 1) : SN_(columns32)(u, g, 0, 1, 0, 0);
    else if (nearest)
        u->chunk ? SN_(columns32)(u, g, SN_PRODUCT_NEAREST, 0, 0, 1) : SN_(columns32)(u, g, SN_PRODUCT_NEAREST, 0, 0, 0);
    else
        u->chunk ? SN_(columns32)(u, g, 0, 0, 0, 1) : SN_(columns32)(u, g, 0, 0, 0, 0);
}

/* v: exact, or rounded to odd. random: the low r bits count. As quantize_bits, in 64 bits. */
SN_INLINE double SN_(round64)(const sn_round64 *r, int stochastic, double v, sn_u32 random) {
    sn_u64 bits, result, up;
    memcpy(&bits, &v, 8);
    sn_u64 sign = bits & 0x8000000000000000u, u = bits ^ sign;
    sn_i64 e = (sn_i64)(u >> 52);
    sn_u64 sig = (u & 0xfffffffffffffu) | (e ? 0x10000000000000u : 0);
    e = e ? e : 1;
    sn_i64 below = r->biased_emin - e;
    sn_i64 s = 52 - r->mantissa_bits + (below > 0 ? below : 0);
    s = s < 127 ? s : 127; /* s >= 1; further down the fraction is below 2^-64 */
    sn_u64 fraction = s < 64 ? sig << ((64 - s) & 63) : sig >> ((s - 64) & 63);
    sn_u64 unit = s < 53 ? (sn_u64)1 << (s < 53 ? s : 52) : r->quantum;
    sn_u64 base = s < 53 ? u & ~(unit - 1) : 0;
    sn_u64 odd = s < 53 ? (sig >> (s & 63)) & 1 : 0;
    if (stochastic) {
        int shift = 64 - r->stochastic_bits;
        sn_u64 t = fraction >> shift << shift, add = (sn_u64)random << shift;
        up = (sn_u64)(t + add) < t;
    } else {
        const sn_u64 half = 0x8000000000000000u;
        up = (fraction > half) | ((fraction == half) & odd);
    }
    result = base + (up ? unit : 0);
    sn_u64 kept_sign = result ? sign : sign & r->sign_of_zero;
    sn_u64 limit = sign ? r->limit[1] : r->limit[0];
    sn_u64 out = (sn_i64)result > (sn_i64)limit ? (sign ? r->overflow[1] : r->overflow[0]) : result | kept_sign;
    out = (sn_i64)u > 0x7ff0000000000000 ? bits : out; /* NaN stays */
    memcpy(&v, &out, 8);
    return v;
}

SN_INLINE void SN_(words64)(const sn_gemm_unit *u, const sn_gemm_args *g, int tile, ptrdiff_t row, ptrdiff_t column,
                            sn_u64 step, int second, sn_u32 words[4][SN_TILE64]) {
    const sn_u32 *key = second ? u->key2 : u->key;
    for (int j = 0; j < tile; j++) {
        sn_philox_words p = sn_philox((sn_u32)(step / 4), (sn_u32)(g->n0 + column + j), (sn_u32)row, u->batch, key[0], key[1]);
        words[0][j] = p.w[0];
        words[1][j] = p.w[1];
        words[2][j] = p.w[2];
        words[3][j] = p.w[3];
    }
}

SN_INLINE void SN_(tile64)(const sn_gemm_unit *u, const sn_gemm_args *g, int tile, int product, int sum_stochastic,
                           ptrdiff_t row, ptrdiff_t column) {
    const double *a = (const double *)g->a + row * g->lda;
    const double *b = (const double *)g->b + column;
    const sn_round64 rp = u->product64, rs = u->sum64, ro = u->outer64;
    const int chunked = u->chunk != 0, random = product == SN_PRODUCT_STOCHASTIC || sum_stochastic;
    /* with two stochastic roundings the sum takes the upper half of the word, or a word of its own if r > 16 */
    const int wide = u->two_roundings && (rs.stochastic_bits > 16 || rp.stochastic_bits > 16);
    const int sum_shift = u->two_roundings && !wide ? 16 : 0;
    ptrdiff_t valid = g->n - column < tile ? g->n - column : tile;
    double acc[SN_TILE64], outer[SN_TILE64];
    sn_u32 words[4][SN_TILE64], words2[4][SN_TILE64];
    for (int j = 0; j < tile; j++) acc[j] = outer[j] = 0;
    if (g->c)
        for (ptrdiff_t j = 0; j < valid; j++) acc[j] = outer[j] = ((const double *)g->c)[row * g->ldc + column + j];
    if (chunked)
        for (int j = 0; j < tile; j++) acc[j] = 0;
    ptrdiff_t left = u->chunk;
    sn_u64 reduction = (sn_u64)g->k;
    for (ptrdiff_t k = 0; k < g->k; k++) {
        const double x = a[k];
        const double *y = b + k * g->ldb;
        if (random && k % 4 == 0) {
            SN_(words64)(u, g, tile, row, column, (sn_u64)k, 0, words);
            if (wide) SN_(words64)(u, g, tile, row, column, (sn_u64)k, 1, words2);
        }
        const sn_u32 *w = words[k % 4], *w2 = wide ? words2[k % 4] : words[k % 4];
        for (int j = 0; j < tile; j++) {
            double p = x * y[j];
            if (product == SN_PRODUCT_NEAREST) p = SN_(round64)(&rp, 0, p, 0);
            if (product == SN_PRODUCT_STOCHASTIC) p = SN_(round64)(&rp, 1, p, w[j]);
            double v = SN_(add_odd)(acc[j], p);
            acc[j] = SN_(round64)(&rs, sum_stochastic, v, sum_stochastic ? w2[j] >> sum_shift : 0);
        }
        if (chunked && (--left == 0 || k == g->k - 1)) {
            if (sum_stochastic) SN_(words64)(u, g, tile, row, column, reduction, wide, words2);
            for (int j = 0; j < tile; j++) {
                sn_u32 word = sum_stochastic ? words2[reduction % 4][j] >> sum_shift : 0;
                outer[j] = SN_(round64)(&ro, sum_stochastic, SN_(add_odd)(outer[j], acc[j]), word);
                acc[j] = 0;
            }
            reduction++;
            left = u->chunk;
            if (wide && (k + 1) % 4 != 0) SN_(words64)(u, g, tile, row, column, (sn_u64)(k + 1), 1, words2);
        }
    }
    double *out = (double *)g->out + row * g->ldo + column;
    for (ptrdiff_t j = 0; j < valid; j++) {
        double v = chunked ? outer[j] : acc[j];
        const sn_u64 nan = 0x7ff8000000000000u;
        if (v != v) memcpy(&v, &nan, 8);
        out[j] = v;
    }
}

SN_INLINE void SN_(columns64)(const sn_gemm_unit *u, const sn_gemm_args *g, int product, int sum_stochastic) {
    for (ptrdiff_t column = 0; column < g->n;) {
        int wide = g->n - column > SN_GEMM_LANES;
        for (ptrdiff_t row = g->m0; row < g->m1; row++) {
            if (wide)
                SN_(tile64)(u, g, SN_TILE64, product, sum_stochastic, row, column);
            else
                SN_(tile64)(u, g, SN_GEMM_LANES, product, sum_stochastic, row, column);
        }
        column += wide ? SN_TILE64 : SN_GEMM_LANES;
    }
}

static void SN_(gemm64)(const sn_gemm_unit *u, const sn_gemm_args *g) {
    int stochastic = u->sum64.stochastic;
    switch (u->product) {
    case SN_PRODUCT_NEAREST:
        stochastic ? SN_(columns64)(u, g, SN_PRODUCT_NEAREST, 1) : SN_(columns64)(u, g, SN_PRODUCT_NEAREST, 0);
        break;
    case SN_PRODUCT_STOCHASTIC:
        stochastic ? SN_(columns64)(u, g, SN_PRODUCT_STOCHASTIC, 1) : SN_(columns64)(u, g, SN_PRODUCT_STOCHASTIC, 0);
        break;
    default: stochastic ? SN_(columns64)(u, g, SN_PRODUCT_EXACT, 1) : SN_(columns64)(u, g, SN_PRODUCT_EXACT, 0);
    }
}

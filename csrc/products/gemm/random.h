/* The random words of GEMM, counters in lanes: included by products/gemm/body.h, once per instruction set.
 *
 * Word k mod 4 of Philox counter (k div 4, n, m, batch) for a run of columns n. A vector holds one counter in each
 * 64-bit lane, of which the low half counts; one vector for even columns, one for odd ones. Only n differs between
 * lanes, so in the first three rounds most of the four numbers are the same everywhere: scalars; and the first product
 * of vectors is that of a row and a column, whatever k is. For 16 words, AVX-512: 25 instructions (2 x 46 for 64 words,
 * of which a round takes 2 multiplications, 2 shuffles and 2 exclusive ors, and 8 to join the halves). */

typedef struct {
    sn_wu c0, c1, c2, c3;
} SN_(counters);

SN_INLINE sn_u32 SN_(high_product)(sn_u32 x, sn_u32 y) { return (sn_u32)((sn_u64)x * y >> 32); }

/* A key, and those of rounds 3 on in every lane. */
typedef struct {
    sn_u32 first[2];
    sn_wu later[10][2];
} SN_(keys);

#define SN_PHILOX_0 0x9E3779B9u
#define SN_PHILOX_1 0xBB67AE85u

SN_INLINE void SN_(widen_key)(const sn_u32 key[2], SN_(keys) * keys) {
    keys->first[0] = key[0];
    keys->first[1] = key[1];
    for (sn_u32 round = 0; round < 10; round++) {
        keys->later[round][0] = (sn_wu){0} + (sn_u64)(key[0] + round * SN_PHILOX_0);
        keys->later[round][1] = (sn_wu){0} + (sn_u64)(key[1] + round * SN_PHILOX_1);
    }
}

#define SN_PHILOX_M0 0xD2511F53u
#define SN_PHILOX_M1 0xCD9E8D57u

/* What round 1 multiplies c0 to, low and high half: of a row and columns. */
typedef struct {
    sn_wu low, high;
} SN_(begun);

SN_INLINE SN_(begun) SN_(begin_columns)(sn_wu columns, sn_u32 c2, const SN_(keys) * keys) {
    SN_(begun) b;
    b.low = SN_MULTIPLY32(columns ^ (sn_u64)(SN_(high_product)(SN_PHILOX_M1, c2) ^ keys->first[0]),
                          (sn_wu){0} + SN_PHILOX_M0);
    b.high = SN_HIGH32(b.low);
    return b;
}

SN_INLINE SN_(counters)
    SN_(philox_columns)(sn_u32 c0, const SN_(begun) * begun, sn_u32 c2, sn_u32 c3, const SN_(keys) * keys) {
    const sn_u32 m0 = SN_PHILOX_M0, m1 = SN_PHILOX_M1, w0 = SN_PHILOX_0, w1 = SN_PHILOX_1;
    sn_u32 k0 = keys->first[0], k1 = keys->first[1];
    const sn_wu zero = {0}, wide0 = zero + m0, wide1 = zero + m1;
    SN_(counters) c;
    /* round 0: c0, c2, c3 are scalars before it; c1, c2, c3 after it */
    sn_u32 s1 = m1 * c2, s2 = SN_(high_product)(m0, c0) ^ c3 ^ k1, s3 = m0 * c0;
    k0 += w0;
    k1 += w1;
    /* round 1: c0, c1 are scalars after it */
    c.c2 = begun->high ^ (sn_u64)(s3 ^ k1);
    c.c3 = begun->low;
    const sn_u32 s0 = SN_(high_product)(m1, s2) ^ s1 ^ k0;
    s1 = m1 * s2;
    k0 += w0;
    k1 += w1;
    /* round 2: c3 is one after it */
    const sn_wu p1 = SN_MULTIPLY32(c.c2, wide1);
    c.c0 = SN_HIGH32(p1) ^ (sn_u64)(s1 ^ k0);
    c.c1 = p1;
    c.c2 = c.c3 ^ (sn_u64)(SN_(high_product)(m0, s0) ^ k1);
    c.c3 = zero + (sn_u64)(m0 * s0);
    for (int round = 3; round < 10; round++) {
        const sn_wu q0 = SN_MULTIPLY32(c.c0, wide0), q1 = SN_MULTIPLY32(c.c2, wide1);
        c.c0 = SN_XOR3(SN_HIGH32(q1), c.c1, keys->later[round][0]);
        c.c2 = SN_XOR3(SN_HIGH32(q0), c.c3, keys->later[round][1]);
        c.c1 = q1;
        c.c3 = q0;
    }
    return c;
}

SN_INLINE void SN_(join_words)(sn_u32 *words, sn_wu even, sn_wu odd) {
    const sn_wu both = SN_JOIN32(even, odd << 32);
    memcpy(words, &both, sizeof both);
}

/* What the words of a row and `count` columns from `column` on begin with; count: a multiple of SN_V. */
SN_INLINE void SN_(begin_words)(const sn_gemm_args *g, ptrdiff_t count, ptrdiff_t row, ptrdiff_t column,
                                const SN_(keys) * keys, SN_(begun) begun[SN_PANEL / SN_V][2]) {
    sn_wu lanes; /* 0, 2, 4 ...: a constant */
    for (int i = 0; i < SN_W; i++)
        lanes[i] = 2 * (sn_u64)i;
    for (ptrdiff_t j = 0; j < count; j += SN_V) {
        const sn_wu even = lanes + (sn_u64)(g->n0 + column + j);
        begun[j / SN_V][0] = SN_(begin_columns)(even, (sn_u32)row, keys);
        begun[j / SN_V][1] = SN_(begin_columns)(even + 1, (sn_u32)row, keys);
    }
}

/* words[i][j]: the word of step 4 * (step div 4) + i and column j from where they begin, for j < count, a multiple of
 * SN_V. */
SN_INLINE void SN_(gemm_words)(const sn_gemm_unit *u, const SN_(begun) begun[SN_PANEL / SN_V][2], ptrdiff_t count,
                               ptrdiff_t row, sn_u64 step, const SN_(keys) * keys, sn_u32 words[4][SN_PANEL]) {
    const sn_u32 c0 = (sn_u32)(step / 4), c2 = (sn_u32)row;
    for (ptrdiff_t j = 0; j < count; j += SN_V) {
        const SN_(counters) a = SN_(philox_columns)(c0, &begun[j / SN_V][0], c2, u->batch, keys),
                            b = SN_(philox_columns)(c0, &begun[j / SN_V][1], c2, u->batch, keys);
        SN_(join_words)(words[0] + j, a.c0, b.c0);
        SN_(join_words)(words[1] + j, a.c1, b.c1);
        SN_(join_words)(words[2] + j, a.c2, b.c2);
        SN_(join_words)(words[3] + j, a.c3, b.c3);
    }
}

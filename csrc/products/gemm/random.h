/* The random words of GEMM, counters in lanes: included by products/gemm/body.h, once per instruction set.
 *
 * Word k mod 4 of Philox counter (k div 4, n, m, batch) for a run of columns n. A vector holds one counter in each
 * 64-bit lane, of which the low half counts; one vector for even columns, one for odd ones. Only n differs between
 * lanes, so in the first three rounds most of the four numbers are the same everywhere: scalars; and the first product
 * of vectors is that of a row and a column, whatever k is. The last round's products are joined, even and odd columns,
 * before they become words. For 16 words, AVX-512: 23 instructions (92 for 64 words; a round of them takes 4
 * multiplications, 4 shuffles and 4 exclusive ors, the last 4, 6 and 2). A round of a vector waits for the one before:
 * those of all vectors of a run go side by side. */

/* Vectors of counters that go side by side: as many as the registers hold. */
enum { SN_STREAMS = SN_REGISTERS == 32 ? 4 : 2 };

typedef struct {
    sn_wu c0, c1, c2, c3;
} SN_(counters);

SN_INLINE sn_u32 SN_(high_product)(sn_u32 x, sn_u32 y) { return (sn_u32)((sn_u64)x * y >> 32); }

/* A key, and those of rounds in every lane; last: of round 9, in both halves of each. */
typedef struct {
    sn_u32 first[2];
    sn_wu later[10][2], last[2];
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
    for (int i = 0; i < 2; i++)
        keys->last[i] = keys->later[9][i] | keys->later[9][i] << 32;
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

/* The counters of a row after round 2; those of its columns after round 1. */
SN_INLINE SN_(counters)
    SN_(philox_begun)(sn_u32 c0, const SN_(begun) * begun, sn_u32 c2, sn_u32 c3, const SN_(keys) * keys) {
    const sn_u32 m0 = SN_PHILOX_M0, m1 = SN_PHILOX_M1, w0 = SN_PHILOX_0, w1 = SN_PHILOX_1;
    sn_u32 k0 = keys->first[0], k1 = keys->first[1];
    const sn_wu zero = {0};
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
    const sn_wu p1 = SN_MULTIPLY32(c.c2, zero + m1);
    c.c0 = SN_HIGH32(p1) ^ (sn_u64)(s1 ^ k0);
    c.c1 = p1;
    c.c2 = c.c3 ^ (sn_u64)(SN_(high_product)(m0, s0) ^ k1);
    c.c3 = zero + (sn_u64)(m0 * s0);
    return c;
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

/* The words that the last round makes of the counters of even and odd columns. */
SN_INLINE void SN_(last_words)(const SN_(counters) * even, const SN_(counters) * odd, const SN_(keys) * keys,
                               ptrdiff_t j, sn_u32 words[4][SN_PANEL]) {
    const sn_wu m0 = (sn_wu){0} + SN_PHILOX_M0, m1 = (sn_wu){0} + SN_PHILOX_M1;
    const sn_wu p0 = SN_MULTIPLY32(even->c0, m0), q0 = SN_MULTIPLY32(odd->c0, m0);
    const sn_wu p1 = SN_MULTIPLY32(even->c2, m1), q1 = SN_MULTIPLY32(odd->c2, m1);
    const sn_wu w[4] = {
        SN_XOR3(SN_JOIN_HIGH32(p1, q1), SN_JOIN_LOW32(even->c1, odd->c1), keys->last[0]), SN_JOIN_LOW32(p1, q1),
        SN_XOR3(SN_JOIN_HIGH32(p0, q0), SN_JOIN_LOW32(even->c3, odd->c3), keys->last[1]), SN_JOIN_LOW32(p0, q0)};
    for (int i = 0; i < 4; i++)
        memcpy(words[i] + j, &w[i], sizeof w[i]);
}

/* The words of `streams` vectors of counters, known to the compiler, from column j of where they begin on. */
SN_INLINE void SN_(words_of_streams)(const sn_gemm_unit *u, const SN_(begun) * begun, int streams, sn_u32 c0, sn_u32 c2,
                                     const SN_(keys) * keys, ptrdiff_t j, sn_u32 words[4][SN_PANEL]) {
    const sn_wu m0 = (sn_wu){0} + SN_PHILOX_M0, m1 = (sn_wu){0} + SN_PHILOX_M1;
    SN_(counters) c[SN_STREAMS];
    SN_UNROLL
    for (int s = 0; s < streams; s++)
        c[s] = SN_(philox_begun)(c0, &begun[s], c2, u->batch, keys);
    SN_UNROLL
    for (int round = 3; round < 9; round++) {
        SN_UNROLL
        for (int s = 0; s < streams; s++) {
            const sn_wu q0 = SN_MULTIPLY32(c[s].c0, m0), q1 = SN_MULTIPLY32(c[s].c2, m1);
            c[s].c0 = SN_XOR3(SN_HIGH32(q1), c[s].c1, keys->later[round][0]);
            c[s].c2 = SN_XOR3(SN_HIGH32(q0), c[s].c3, keys->later[round][1]);
            c[s].c1 = q1;
            c[s].c3 = q0;
        }
    }
    SN_UNROLL
    for (int s = 0; s < streams; s += 2)
        SN_(last_words)(&c[s], &c[s + 1], keys, j + s / 2 * SN_V, words);
}

/* words[i][j]: the word of step 4 * (step div 4) + i and column j from where they begin, for j < count, a multiple of
 * SN_V. */
SN_INLINE void SN_(gemm_words)(const sn_gemm_unit *u, const SN_(begun) begun[SN_PANEL / SN_V][2], ptrdiff_t count,
                               ptrdiff_t row, sn_u64 step, const SN_(keys) * keys, sn_u32 words[4][SN_PANEL]) {
    enum { COLUMNS = SN_STREAMS / 2 * SN_V };
    const sn_u32 c0 = (sn_u32)(step / 4), c2 = (sn_u32)row;
    ptrdiff_t j = 0;
    for (; j + COLUMNS <= count; j += COLUMNS)
        SN_(words_of_streams)(u, begun[j / SN_V], SN_STREAMS, c0, c2, keys, j, words);
    for (; j < count; j += SN_V)
        SN_(words_of_streams)(u, begun[j / SN_V], 2, c0, c2, keys, j, words);
}

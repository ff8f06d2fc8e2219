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

/* A key, and those of rounds in every lane; last: of the last round, in both halves of each. */
typedef struct {
    sn_u32 first[2];
    sn_wu later[10][2], last[2];
} SN_(keys);

#define SN_PHILOX_0 0x9E3779B9u
#define SN_PHILOX_1 0xBB67AE85u

SN_INLINE void SN_(widen_key)(const sn_u32 key[2], int rounds, SN_(keys) * keys) {
    keys->first[0] = key[0];
    keys->first[1] = key[1];
    for (sn_u32 round = 0; round < 10; round++) {
        keys->later[round][0] = (sn_wu){0} + (sn_u64)(key[0] + round * SN_PHILOX_0);
        keys->later[round][1] = (sn_wu){0} + (sn_u64)(key[1] + round * SN_PHILOX_1);
    }
    for (int i = 0; i < 2; i++)
        keys->last[i] = keys->later[rounds - 1][i] | keys->later[rounds - 1][i] << 32;
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

/* The words of `streams` vectors of counters after `rounds`, both known to the compiler, from column j of where they
 * begin on. */
SN_INLINE void SN_(words_of_streams)(const sn_gemm_unit *u, const SN_(begun) * begun, int streams, int rounds,
                                     sn_u32 c0, sn_u32 c2, const SN_(keys) * keys, ptrdiff_t j,
                                     sn_u32 words[4][SN_PANEL]) {
    const sn_wu m0 = (sn_wu){0} + SN_PHILOX_M0, m1 = (sn_wu){0} + SN_PHILOX_M1;
    SN_(counters) c[SN_STREAMS];
    SN_UNROLL
    for (int s = 0; s < streams; s++)
        c[s] = SN_(philox_begun)(c0, &begun[s], c2, u->batch, keys);
    SN_UNROLL
    for (int round = 3; round < rounds - 1; round++) {
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

/* ---- all sources -------------------------------------------------------------------------------------------------
 * LFSRs: a move is 3 instructions for a vector of 16 (test, shift, exclusive or where a bit left), a word one more.
 * Steps that share a word: a shift each. */

#if defined(__GNUC__)
#define SN_PREFETCH(p) __builtin_prefetch(p)
#else
#define SN_PREFETCH(p) (void)(p)
#endif
enum { SN_AHEAD = 16 }; /* steps */

/* The words of a row's steps, SN_GROUP of them at a time: 16, which have no word together with others. */
enum { SN_GROUP = 16 };

typedef struct {
    const sn_gemm_unit *u;
    const sn_gemm_args *g;
    const SN_(keys) * keys;
    ptrdiff_t count, row, column; /* count: SN_PANEL or SN_GEMM_LANES */
    SN_(begun) begun[SN_PANEL / SN_V][2];
    sn_vu states[SN_PANEL / SN_V]; /* of LFSRs, before the next four steps */
    sn_u32 moved[32];              /* what a step makes of each bit of a state that leaves, the lowest first */
} SN_(stream);

SN_INLINE int SN_(rounds_of)(const sn_gemm_unit *u) { return u->random.seven ? 7 : 10; }

/* a, but a ^ b in lanes whose state has the bit. */
SN_INLINE sn_vu SN_(xor_where)(sn_vu a, sn_vu state, sn_u32 bit, sn_u32 b) {
    const sn_vu zero = {0};
#ifdef SN_XOR_WHERE32
    return SN_XOR_WHERE32(a, state, zero + bit, zero + b);
#else
    return a ^ SN_SELECT32((state & bit) != 0, zero + b, zero);
#endif
}

SN_INLINE sn_vu SN_(moved)(const sn_source *s, sn_vu state) { return SN_(xor_where)(state >> 1, state, 1, s->taps); }

/* A step of several moves: those bits of a state that leave, each for itself, do not wait for each other. */
SN_INLINE sn_vu SN_(moved_far)(const sn_source *s, const sn_u32 moved[32], sn_vu state) {
    const sn_vu zero = {0};
    const sn_i32 leave = s->shifts < s->width ? s->shifts : s->width;
    sn_vu next = leave < 32 ? state >> (sn_u32)leave : zero, other = zero;
    for (sn_i32 i = 0; i + 1 < leave; i += 2) {
        next = SN_(xor_where)(next, state, 1u << i, moved[i]);
        other = SN_(xor_where)(other, state, 2u << i, moved[i + 1]);
    }
    if (leave & 1) next = SN_(xor_where)(next, state, 1u << (leave - 1), moved[leave - 1]);
    return next ^ other;
}

SN_INLINE void SN_(philox_rounds)(const sn_gemm_unit *u, const SN_(begun) begun[SN_PANEL / SN_V][2], ptrdiff_t count,
                                  int rounds, ptrdiff_t row, sn_u32 c0, const SN_(keys) * keys,
                                  sn_u32 words[4][SN_PANEL]) {
    enum { COLUMNS = SN_STREAMS / 2 * SN_V };
    const sn_u32 c2 = (sn_u32)row;
    ptrdiff_t j = 0;
    for (; j + COLUMNS <= count; j += COLUMNS)
        SN_(words_of_streams)(u, begun[j / SN_V], SN_STREAMS, rounds, c0, c2, keys, j, words);
    for (; j < count; j += SN_V)
        SN_(words_of_streams)(u, begun[j / SN_V], 2, rounds, c0, c2, keys, j, words);
}

/* words[i][j]: word i of the counter c0 of column j from where they begin, for j < count, a multiple of SN_V. */
SN_INLINE void SN_(philox_words)(const SN_(stream) * w, ptrdiff_t count, sn_u32 c0, sn_u32 words[4][SN_PANEL]) {
    if (w->u->random.seven)
        SN_(philox_rounds)(w->u, w->begun, count, 7, w->row, c0, w->keys, words);
    else
        SN_(philox_rounds)(w->u, w->begun, count, 10, w->row, c0, w->keys, words);
}

/* The states of LFSRs before step `step`. */
static SN_NOINLINE void SN_(begin_states)(SN_(stream) * w, sn_u64 step) {
    const sn_source *s = &w->u->random;
    const sn_u32 power = sn_lfsr_power(s, step);
    const sn_vu zero = {0}, ones = zero + sn_lfsr_ones(s);
    sn_u32 words[4][SN_PANEL];
    SN_(philox_rounds)(w->u, w->begun, w->count, 10, w->row, 0, w->keys, words);
    for (sn_i32 i = 0; i < s->width; i++) {
        w->moved[i] = 1u << i;
        for (sn_i32 n = 0; n < s->shifts; n++)
            w->moved[i] = sn_lfsr_moved(s, w->moved[i]);
    }
    for (ptrdiff_t j = 0; j < w->count; j++)
        if (s->hart) words[0][j] = ~(w->u->key[0] + (sn_u32)(w->g->n0 + w->column + j));
    for (ptrdiff_t j = 0; j < w->count; j += SN_V) {
        sn_vu state = sn_load_words32(words[0] + j) & ones, product = zero;
        if (!s->hart) state = SN_SELECT32(state == 0, ones, state);
        for (sn_i32 i = 0; i < s->width && step; i++)
            product = SN_(moved)(s, product) ^ (state & (zero - (power >> i & 1)));
        w->states[j / SN_V] = step ? product : state;
    }
}

/* Begin a row's words, of `count` columns from `column` on; step: the first, a multiple of SN_GROUP. */
SN_INLINE void SN_(begin_stream)(SN_(stream) * w, const sn_gemm_unit *u, const sn_gemm_args *g, ptrdiff_t count,
                                 ptrdiff_t row, ptrdiff_t column, sn_u64 step, const SN_(keys) * keys) {
    w->u = u;
    w->g = g;
    w->keys = keys;
    w->count = count;
    w->row = row;
    w->column = column;
    if (u->random.kind != SN_SOURCE_GIVEN) SN_(begin_words)(g, count, row, column, keys, w->begun);
    if (u->random.kind == SN_SOURCE_LFSR) SN_(begin_states)(w, step);
}

SN_INLINE void SN_(lfsr_words)(SN_(stream) * w, ptrdiff_t count, int n, sn_u32 words[SN_GROUP][SN_PANEL]) {
    const sn_source s = w->u->random;
    const sn_vu ones = (sn_vu){0} + sn_lfsr_ones(&s);
    for (ptrdiff_t j = 0; j < count; j += SN_V) {
        sn_vu state = w->states[j / SN_V];
        for (int i = 0; i < n; i++) {
            const sn_vu word = ~state & ones;
            memcpy(words[i] + j, &word, sizeof word);
            state = s.shifts == 1 ? SN_(moved)(&s, state) : SN_(moved_far)(&s, w->moved, state);
        }
        w->states[j / SN_V] = state;
    }
}

/* n integers of `width` bytes. */
SN_INLINE void SN_(given_columns)(const char *from, int width, ptrdiff_t n, sn_u32 *to) {
    char rest[4 * SN_V] = {0};
    for (ptrdiff_t j = 0; j < n; j += SN_V) {
        const char *at = from + width * j;
        if (j + SN_V > n) {
            memcpy(rest, at, (size_t)(width * (n - j)));
            at = rest;
        }
        const sn_vu v = width == 1 ? SN_LOAD8_32(at) : width == 2 ? SN_LOAD16_32(at) : SN_LOAD32_32(at);
        memcpy(to + j, &v, sizeof v);
    }
}

/* end: the step that no more words are asked for from on. */
SN_INLINE void SN_(given_words)(const SN_(stream) * w, ptrdiff_t count, sn_u64 step, sn_u64 end, int n,
                                sn_u32 words[SN_GROUP][SN_PANEL]) {
    const sn_gemm_args *g = w->g;
    const int width = (int)w->u->random.width / 8;
    const ptrdiff_t left = g->n - w->column, columns = left < count ? left : count;
    for (int i = 0; i < n; i++) { /* rows lie far apart: what is read next is asked for */
        const char *from =
            (const char *)g->words + w->row * g->ldw[0] + (ptrdiff_t)(step + (sn_u64)i) * g->ldw[1] + w->column * width;
        if (step + (sn_u64)i + SN_AHEAD < end) SN_PREFETCH(from + SN_AHEAD * g->ldw[1]);
        switch (width) {
        case 1: SN_(given_columns)(from, 1, columns, words[i]); break;
        case 2: SN_(given_columns)(from, 2, columns, words[i]); break;
        default: SN_(given_columns)(from, 4, columns, words[i]);
        }
    }
}

SN_INLINE void SN_(shared_words)(const SN_(stream) * w, ptrdiff_t count, sn_u64 step, int n,
                                 sn_u32 words[SN_GROUP][SN_PANEL]) {
    const sn_i32 shared = w->u->random.shared, each = 1 << shared;
    sn_u32 block[4][SN_PANEL] __attribute__((aligned(64)));
    for (sn_i32 i = 0; i < n; i++) {
        const sn_i32 at = i & (4 * each - 1);
        if (at == 0) SN_(philox_words)(w, count, (sn_u32)((step + (sn_u64)i) / 4 >> shared), block);
        const sn_u32 *from = block[at >> shared], shift = (sn_u32)((at & (each - 1)) * (32 >> shared));
        for (ptrdiff_t j = 0; j < count; j += SN_V) {
            const sn_vu word = sn_load_words32(from + j) >> shift;
            memcpy(words[i] + j, &word, sizeof word);
        }
    }
}

SN_INLINE void SN_(words_of_columns)(SN_(stream) * w, ptrdiff_t count, sn_u64 step, sn_u64 end, int n,
                                     sn_u32 words[SN_GROUP][SN_PANEL]) {
    const sn_source *s = &w->u->random;
    if (s->kind == SN_SOURCE_LFSR)
        SN_(lfsr_words)(w, count, n, words);
    else if (s->kind == SN_SOURCE_GIVEN)
        SN_(given_words)(w, count, step, end, n, words);
    else if (s->shared)
        SN_(shared_words)(w, count, step, n, words);
    else
        for (int i = 0; i < n; i += 4)
            SN_(philox_words)(w, count, (sn_u32)((step + (sn_u64)i) / 4), words + i);
}

/* words[i][j]: the word of step `step` + i, before `end`, and column j of w->count, for i < group, which is SN_GROUP or
 * what one counter makes. step: a multiple of it, by which LFSRs then have moved on. */
static SN_NOINLINE void SN_(stream_words)(SN_(stream) * w, sn_u64 step, sn_u64 end, int group,
                                          sn_u32 words[SN_GROUP][SN_PANEL]) {
    const int n = end - step < (sn_u64)group ? (int)(end - step) : group;
    if (w->count == SN_PANEL) /* known to the compiler */
        SN_(words_of_columns)(w, SN_PANEL, step, end, n, words);
    else
        SN_(words_of_columns)(w, SN_GEMM_LANES, step, end, n, words);
}

/* The number of a row's steps: products, and additions of chunks. */
SN_INLINE sn_u64 SN_(steps_of)(const sn_gemm_unit *u, const sn_gemm_args *g) {
    const sn_u64 k = (sn_u64)g->k, chunk = (sn_u64)u->chunk;
    return k + (chunk && k ? (k - 1) / chunk + 1 : 0);
}

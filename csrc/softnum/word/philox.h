/* Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): a counter in, four random words
 * out. Which random word rounds an element depends on its index only, never on ISA, tile, thread or device. */
#ifndef SOFTNUM_PHILOX_H
#define SOFTNUM_PHILOX_H

#include "softnum/word/base.h"

enum { SN_DOMAIN_ELEMENTWISE = 0, SN_DOMAIN_MATMUL = 1, SN_DOMAIN_MATMUL_SECOND = 2, SN_DOMAIN_SUM = 3 };

typedef struct {
    sn_u32 w[4];
} sn_philox_words;

/* With another number of rounds. */
SN_FN sn_philox_words sn_philox_rounds(sn_u32 c0, sn_u32 c1, sn_u32 c2, sn_u32 c3, sn_u32 k0, sn_u32 k1,
                                       sn_i32 rounds) {
    for (sn_i32 round = 0; round < rounds; round++) {
        sn_u64 p0 = (sn_u64)0xD2511F53u * c0, p1 = (sn_u64)0xCD9E8D57u * c2;
        c0 = (sn_u32)(p1 >> 32) ^ c1 ^ k0;
        c1 = (sn_u32)p1;
        c2 = (sn_u32)(p0 >> 32) ^ c3 ^ k1;
        c3 = (sn_u32)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    sn_philox_words r;
    r.w[0] = c0;
    r.w[1] = c1;
    r.w[2] = c2;
    r.w[3] = c3;
    return r;
}

SN_FN sn_philox_words sn_philox(sn_u32 c0, sn_u32 c1, sn_u32 c2, sn_u32 c3, sn_u32 k0, sn_u32 k1) {
    return sn_philox_rounds(c0, c1, c2, c3, k0, k1, 10);
}

/* The key words of a (seed, stream) in a domain: the first two words of w. */
SN_FN sn_philox_words sn_philox_key(sn_u64 seed, sn_u64 stream, sn_u32 domain) {
    return sn_philox((sn_u32)stream, (sn_u32)(stream >> 32), domain, 0, (sn_u32)seed, (sn_u32)(seed >> 32));
}

/* Those of four steps of a product of matrices: step k's is w[k % 4]. */
typedef struct {
    sn_philox_words product, sum;
} sn_step_words;

/* Steps 4 * counter on, of output (row, column). key, key2: of the domains SN_DOMAIN_MATMUL and
 * SN_DOMAIN_MATMUL_SECOND. two_roundings: they share a word, of which the sum gets the upper half; or, wide, it has one
 * of the second key. */
SN_FN sn_step_words sn_words_of_steps(sn_u32 counter, sn_u32 column, sn_u32 row, sn_u32 batch, const sn_u32 key[2],
                                      const sn_u32 key2[2], sn_i32 two_roundings, sn_i32 wide) {
    sn_step_words s;
    s.product = s.sum = sn_philox(counter, column, row, batch, key[0], key[1]);
    if (!two_roundings) return s;
    if (wide) {
        s.sum = sn_philox(counter, column, row, batch, key2[0], key2[1]);
        return s;
    }
    for (sn_i32 i = 0; i < 4; i++)
        s.sum.w[i] >>= 16;
    return s;
}

#endif

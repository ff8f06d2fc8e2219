/* Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): a counter in, four random words
 * out. What a random word rounds depends on the element's index alone, never on ISA, tile, thread or device. */
#ifndef SOFTNUM_PHILOX_H
#define SOFTNUM_PHILOX_H

#include "base.h"

enum { SN_DOMAIN_ELEMENTWISE = 0, SN_DOMAIN_MATMUL = 1, SN_DOMAIN_MATMUL_SECOND = 2, SN_DOMAIN_SUM = 3 };

typedef struct {
    sn_u32 w[4];
} sn_philox_words;

SN_FN sn_philox_words sn_philox(sn_u32 c0, sn_u32 c1, sn_u32 c2, sn_u32 c3, sn_u32 k0, sn_u32 k1) {
    for (sn_i32 round = 0; round < 10; round++) {
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

/* The key words of a (seed, stream) in a domain: the first two words of w. */
SN_FN sn_philox_words sn_philox_key(sn_u64 seed, sn_u64 stream, sn_u32 domain) {
    return sn_philox((sn_u32)stream, (sn_u32)(stream >> 32), domain, 0, (sn_u32)seed, (sn_u32)(seed >> 32));
}

#endif

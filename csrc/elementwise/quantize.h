/* Rounding and quantising, in binary32 and binary64 carriers: included once per instruction set, by targets/values.h.
 */
#ifndef SOFTNUM_QUANTIZE_BODY_H
#define SOFTNUM_QUANTIZE_BODY_H

#include "lanes/isa.h"

enum { SN_BLOCK = 4 * SN_WORD_BLOCKS };

/* SN_BLOCK words of counters block, block + 1 ...; in a vector of counters the even lanes come first, so that pairs of
 * results interleave in their order. */
SN_INLINE void SN_(philox_block)(sn_u64 block, sn_u32 k0, sn_u32 k1, sn_u32 *words) {
    sn_wu lane;
    for (int i = 0; i < SN_W; i++)
        lane[i] = (sn_u64)(i / 2 + i % 2 * (SN_W / 2));
    for (int i = 0; i < SN_WORD_BLOCKS; i += SN_W) {
        sn_wu c0 = lane + (block + (sn_u64)i), c1 = c0 >> 32, c2 = {0}, c3 = {0}; /* 32 low bits of each lane count */
        sn_u32 key0 = k0, key1 = k1;
        for (int round = 0; round < 10; round++) {
            sn_wu p0 = SN_MULTIPLY32(c0, (sn_wu){0} + 0xD2511F53u), p1 = SN_MULTIPLY32(c2, (sn_wu){0} + 0xCD9E8D57u);
            c0 = SN_HIGH32(p1) ^ c1 ^ (sn_u64)key0;
            c2 = SN_HIGH32(p0) ^ c3 ^ (sn_u64)key1;
            c1 = p1;
            c3 = p0;
            key0 += 0x9E3779B9u;
            key1 += 0xBB67AE85u;
        }
        sn_wu first = (c0 & 0xffffffffu) | c1 << 32, second = (c2 & 0xffffffffu) | c3 << 32;
        sn_wu even = SN_EVEN_LANES(first, second), odd = SN_ODD_LANES(first, second);
        memcpy(words + 4 * i, &even, sizeof even);
        memcpy(words + 4 * i + 2 * SN_W, &odd, sizeof odd);
    }
}

/* The words of elements i .. i + SN_BLOCK - 1, in the caller's array or in buffer. */
SN_INLINE const sn_u32 *SN_(block_words)(const sn_random_source *random, size_t i, sn_u32 *buffer) {
    if (random->words) return random->words + i;
    SN_(philox_block)((random->first + i) / 4, random->key[0], random->key[1], buffer);
    return buffer;
}

static void SN_(words)(const sn_random_source *random, sn_u32 *words, size_t n) {
    sn_u32 buffer[SN_BLOCK];
    for (size_t i = 0; i < n; i += SN_BLOCK) {
        const size_t take = n - i < SN_BLOCK ? n - i : SN_BLOCK;
        if (take == SN_BLOCK)
            SN_(philox_block)((random->first + i) / 4, random->key[0], random->key[1], words + i);
        else
            memcpy(words + i, SN_(block_words)(random, i, buffer), take * sizeof *words);
    }
}

#define SN_WITH_LOOPS
#include "lanes/lanes.h"

static int SN_(encode_widened)(const sn_rounding *r, const float *x, void *codes, int width, size_t n,
                               const sn_random_source *random) {
    int bad = 0;
    double wide[SN_BLOCK];
    sn_random_source source = *random;
    for (size_t i = 0; i < n; i += SN_BLOCK) {
        const size_t take = n - i < SN_BLOCK ? n - i : SN_BLOCK;
        for (size_t k = 0; k < take; k++) {
            float narrow; /* x need not be aligned */
            memcpy(&narrow, x + i + k, sizeof narrow);
            wide[k] = (double)narrow;
        }
        if (random->words) source.words = random->words + i;
        source.first = random->first + i;
        bad |= SN_(encode64)(r, wide, (char *)codes + i * (size_t)width, width, take, &source);
    }
    return bad;
}

#endif

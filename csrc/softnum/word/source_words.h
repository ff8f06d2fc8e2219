/* The random words of elementwise operations under sources other than Philox4x32-10 (softnum/arrays/sources.py). */
#ifndef SOFTNUM_SOURCE_WORDS_H
#define SOFTNUM_SOURCE_WORDS_H

#include "softnum/word/source.h"

/* Those of n elements from `first` on: of one LFSR for all of them, or of Philox's counters (i div 4, 0, 0). key: the
 * words of (seed, stream) in the elementwise domain; of a hart, its number. */
SN_FN void sn_source_words(const sn_source *s, const sn_u32 key[2], sn_u64 first, sn_u32 *out, sn_u64 n) {
    if (s->kind == SN_SOURCE_LFSR) {
        sn_u32 state = sn_lfsr_product(s, sn_lfsr_start(s, 0, 0, 0, key), sn_lfsr_power(s, first));
        for (sn_u64 i = 0; i < n; i++)
            out[i] = sn_lfsr_step(s, &state);
        return;
    }
    const sn_i32 each = 1 << s->shared, bits = 32 >> s->shared; /* elements and bits of a word */
    const sn_u32 mask = 0xffffffffu >> (32 - bits);
    sn_philox_words block = {{0}};
    for (sn_u64 i = 0; i < n; i++) {
        const sn_u64 element = first + i, word = element >> s->shared, counter = word / 4;
        if (i == 0 || (element & (sn_u64)(4 * each - 1)) == 0)
            block = sn_philox_rounds((sn_u32)counter, (sn_u32)(counter >> 32), 0, 0, key[0], key[1], s->seven ? 7 : 10);
        out[i] = block.w[word % 4] >> (sn_i32)(element & (sn_u64)(each - 1)) * bits & mask;
    }
}

/* A block of 256 threads of Transformer Engine's casts to NVFP4 has a tile of 128 x 128, a thread 16 neighbours of a
 * row at a time, and those of the rows 32, 64 and 96 below with its next counters. */
enum { SN_CAST_TILE = 128, SN_CAST_THREADS = 256, SN_CAST_NEIGHBOURS = 16, SN_CAST_ROWS = 32 };

/* Those of up to SN_CAST_NEIGHBOURS elements of a row from column `start` on, a multiple of these; a byte each. */
SN_FN void sn_cast_words(sn_i32 rounds, sn_u64 seed, sn_u64 offset, sn_u64 row, sn_u64 start, sn_u64 columns,
                         sn_u32 *out) {
    const sn_u64 across = SN_CAST_TILE / SN_CAST_NEIGHBOURS, tiles = (columns + SN_CAST_TILE - 1) / SN_CAST_TILE;
    const sn_u64 counter = offset + row % SN_CAST_TILE / SN_CAST_ROWS;
    const sn_u64 thread = row % SN_CAST_ROWS * across + start % SN_CAST_TILE / SN_CAST_NEIGHBOURS;
    const sn_u64 sequence = thread + (start / SN_CAST_TILE + row / SN_CAST_TILE * tiles) * SN_CAST_THREADS;
    const sn_philox_words block =
        sn_philox_rounds((sn_u32)counter, (sn_u32)(counter >> 32), (sn_u32)sequence, (sn_u32)(sequence >> 32),
                         (sn_u32)seed, (sn_u32)(seed >> 32), rounds);
    for (sn_u64 i = 0; i < SN_CAST_NEIGHBOURS && start + i < columns; i++)
        out[i] = block.w[i / 4] >> i % 4 * 8 & 0xffu;
}

#endif

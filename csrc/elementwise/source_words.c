#include "elementwise/source_words.h"

static void words_of_lfsr(const sn_source *s, const sn_u32 key[2], sn_u64 first, sn_u32 *out, size_t n) {
    sn_u32 state = sn_lfsr_product(s, sn_lfsr_start(s, 0, 0, 0, key), sn_lfsr_power(s, first));
    for (size_t i = 0; i < n; i++)
        out[i] = sn_lfsr_step(s, &state);
}

void sn_source_words(const sn_source *s, const sn_u32 key[2], sn_u64 first, sn_u32 *out, size_t n) {
    if (s->kind == SN_SOURCE_LFSR) {
        words_of_lfsr(s, key, first, out, n);
        return;
    }
    const sn_i32 each = 1 << s->shared, bits = 32 >> s->shared; /* elements and bits of a word */
    const sn_u32 mask = 0xffffffffu >> (32 - bits);
    sn_philox_words block = {{0}};
    for (size_t i = 0; i < n; i++) {
        const sn_u64 element = first + i, word = element >> s->shared, counter = word / 4;
        if (i == 0 || (element & (sn_u64)(4 * each - 1)) == 0)
            block = sn_philox_rounds((sn_u32)counter, (sn_u32)(counter >> 32), 0, 0, key[0], key[1], s->seven ? 7 : 10);
        out[i] = block.w[word % 4] >> (sn_i32)(element & (sn_u64)(each - 1)) * bits & mask;
    }
}

/* A block of 256 threads casts a tile of 128 x 128, a thread 16 neighbours of a row at a time, and those of the rows
 * 32, 64 and 96 below with its next counters. */
enum { TILE = 128, THREADS = 256, NEIGHBOURS = 16, ROWS_AT_ONCE = 32 };

void sn_cast_words(sn_i32 rounds, sn_u64 seed, sn_u64 offset, size_t rows, size_t columns, sn_u32 *out) {
    const size_t across = TILE / NEIGHBOURS, tiles = (columns + TILE - 1) / TILE;
    for (size_t row = 0; row < rows; row++) {
        const sn_u64 counter = offset + row % TILE / ROWS_AT_ONCE;
        for (size_t start = 0; start < columns; start += NEIGHBOURS) {
            const size_t thread = row % ROWS_AT_ONCE * across + start % TILE / NEIGHBOURS;
            const sn_u64 sequence = thread + (start / TILE + row / TILE * tiles) * (sn_u64)THREADS;
            const sn_philox_words block =
                sn_philox_rounds((sn_u32)counter, (sn_u32)(counter >> 32), (sn_u32)sequence, (sn_u32)(sequence >> 32),
                                 (sn_u32)seed, (sn_u32)(seed >> 32), rounds);
            for (size_t i = 0; i < NEIGHBOURS && start + i < columns; i++)
                *out++ = block.w[i / 4] >> i % 4 * 8 & 0xffu;
        }
    }
}

/* Where the random bits of a product's steps come from (softnum/arrays/sources.py names the sources). Zeros: a word of
 * Philox4x32-10 for each step.
 *
 * A step's own bits are the low ones of what is called its word here. Where product and sum both round stochastically,
 * the sum's begin in the middle of them. */
#ifndef SOFTNUM_SOURCE_H
#define SOFTNUM_SOURCE_H

#include "softnum/word/philox.h"

enum { SN_SOURCE_PHILOX = 0, SN_SOURCE_LFSR = 1, SN_SOURCE_GIVEN = 2 };

typedef struct {
    sn_i32 kind;   /* SN_SOURCE_* */
    sn_i32 seven;  /* Philox of 7 rounds, not 10 */
    sn_i32 shared; /* 2 to this power are the steps that share a word of Philox */
    sn_i32 width;  /* of an LFSR's state, or of what is given for a step, in bits */
    sn_i32 shifts; /* of an LFSR, for a step */
    sn_i32 hart;   /* LFSRs of columns begin with the complements of key[0], key[0] + 1 ... */
    sn_u32 taps;
} sn_source;

/* Where the sum's bits begin in a step's. */
SN_FN sn_i32 sn_source_half(const sn_source *s) { return s->kind == SN_SOURCE_PHILOX ? 16 >> s->shared : s->width / 2; }

SN_FN sn_u32 sn_lfsr_ones(const sn_source *s) { return 0xffffffffu >> (32 - s->width); }

SN_FN sn_u32 sn_lfsr_moved(const sn_source *s, sn_u32 state) { return state >> 1 ^ (s->taps & (0u - (state & 1u))); }

/* States are polynomials, the highest bit that of x^0, and a move is a multiplication by x: their product. */
SN_FN sn_u32 sn_lfsr_product(const sn_source *s, sn_u32 x, sn_u32 y) {
    sn_u32 product = 0;
    for (sn_i32 i = 0; i < s->width; i++)
        product = sn_lfsr_moved(s, product) ^ (y & (0u - (x >> i & 1u)));
    return product;
}

/* What `steps` steps multiply a state by. */
SN_FN sn_u32 sn_lfsr_power(const sn_source *s, sn_u64 steps) {
    const sn_u32 one = (sn_u32)1 << (s->width - 1);
    sn_u32 power = one, square = sn_lfsr_moved(s, one);
    for (sn_u64 n = steps * (sn_u64)s->shifts; n; n >>= 1) {
        if (n & 1) power = sn_lfsr_product(s, power, square);
        square = sn_lfsr_product(s, square, square);
    }
    return power;
}

/* The first state of the LFSR of an output. */
SN_FN sn_u32 sn_lfsr_start(const sn_source *s, sn_u32 column, sn_u32 row, sn_u32 batch, const sn_u32 key[2]) {
    const sn_u32 ones = sn_lfsr_ones(s);
    if (s->hart) return ~(key[0] + column) & ones;
    const sn_u32 state = sn_philox(0, column, row, batch, key[0], key[1]).w[0] & ones;
    return state ? state : ones;
}

/* The word of a state, which moves on for a step. */
SN_FN sn_u32 sn_lfsr_step(const sn_source *s, sn_u32 *state) {
    const sn_u32 word = ~*state & sn_lfsr_ones(s);
    for (sn_i32 i = 0; i < s->shifts; i++)
        *state = sn_lfsr_moved(s, *state);
    return word;
}

/* The words of steps 4 * four to 4 * four + 3 under a key: those of Philox. */
SN_FN sn_philox_words sn_source_philox(const sn_source *s, sn_u32 four, sn_u32 column, sn_u32 row, sn_u32 batch,
                                       const sn_u32 key[2]) {
    const sn_i32 each = 1 << s->shared, bits = 32 >> s->shared; /* steps and bits of a word */
    const sn_philox_words block =
        sn_philox_rounds(four >> s->shared, column, row, batch, key[0], key[1], s->seven ? 7 : 10);
    if (each == 1) return block;
    sn_philox_words w;
    for (sn_i32 i = 0; i < 4; i++) {
        const sn_i32 step = (sn_i32)(four & (sn_u32)(each - 1)) * 4 + i;
        w.w[i] = block.w[step >> s->shared] >> (step & (each - 1)) * bits;
    }
    return w;
}

/* A step of a product; power: what takes the first states of LFSRs to it. */
typedef struct {
    sn_u64 number;
    sn_u32 power;
} sn_source_step;

SN_FN sn_source_step sn_source_at(const sn_source *s, sn_u64 number) {
    sn_source_step at;
    at.number = number;
    at.power = s->kind == SN_SOURCE_LFSR ? sn_lfsr_power(s, number) : 0;
    return at;
}

/* The words of a step's product and sum, of output (row, column); the last four arguments as sn_words_of_steps takes
 * them. */
SN_FN void sn_source_draw(const sn_source *s, const sn_source_step *at, sn_u32 column, sn_u32 row, sn_u32 batch,
                          const sn_u32 key[2], const sn_u32 key2[2], sn_i32 two_roundings, sn_i32 wide,
                          sn_u32 words[2]) {
    const sn_u32 four = (sn_u32)(at->number / 4), i = (sn_u32)(at->number % 4);
    if (s->kind == SN_SOURCE_PHILOX && !s->seven && !s->shared) {
        const sn_step_words w = sn_words_of_steps(four, column, row, batch, key, key2, two_roundings, wide);
        words[0] = w.product.w[i];
        words[1] = w.sum.w[i];
        return;
    }
    if (s->kind == SN_SOURCE_LFSR) {
        sn_u32 state = sn_lfsr_product(s, at->power, sn_lfsr_start(s, column, row, batch, key));
        words[0] = sn_lfsr_step(s, &state);
    } else {
        words[0] = sn_source_philox(s, four, column, row, batch, key).w[i];
    }
    words[1] = two_roundings ? words[0] >> sn_source_half(s) : words[0];
}

#endif

/* Rounding and quantising, in binary32 and binary64 carriers: included once per instruction set, by isa_*.c. */
#ifndef SOFTNUM_QUANTIZE_BODY_H
#define SOFTNUM_QUANTIZE_BODY_H

#include "isa.h"

enum { SN_WORD_BLOCKS = 64 };

/* words[4 * i + lane] of counters block + i */
SN_INLINE void SN_(words_block)(sn_u64 block, sn_u32 k0, sn_u32 k1, sn_u32 *words) {
    sn_u32 w[4][SN_WORD_BLOCKS];
    for (int i = 0; i < SN_WORD_BLOCKS; i++) {
        sn_u64 counter = block + (sn_u64)i;
        sn_philox_words p = sn_philox((sn_u32)counter, (sn_u32)(counter >> 32), 0, 0, k0, k1);
        w[0][i] = p.w[0];
        w[1][i] = p.w[1];
        w[2][i] = p.w[2];
        w[3][i] = p.w[3];
    }
    for (int i = 0; i < SN_WORD_BLOCKS; i++)
        for (int lane = 0; lane < 4; lane++)
            words[4 * i + lane] = w[lane][i];
}

#define L_BITS 32
#include "round_lanes.h"
#define L_BITS 64
#include "round_lanes.h"

#endif

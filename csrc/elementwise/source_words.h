/* The random words of elementwise operations under sources other than Philox4x32-10 (softnum/arrays/sources.py). */
#ifndef SOFTNUM_SOURCE_WORDS_H
#define SOFTNUM_SOURCE_WORDS_H

#include <stddef.h>

#include "softnum/word/source.h"

/* Those of elements first, first + 1 ...: of one LFSR for all of them, or of Philox's counters (i div 4, 0, 0). key:
 * the words of (seed, stream) in the elementwise domain; of a hart, its number. */
void sn_source_words(const sn_source *s, const sn_u32 key[2], sn_u64 first, sn_u32 *out, size_t n);

/* Those of all elements of a matrix that Transformer Engine casts to NVFP4, a byte each. */
void sn_cast_words(sn_i32 rounds, sn_u64 seed, sn_u64 offset, size_t rows, size_t columns, sn_u32 *out);

#endif

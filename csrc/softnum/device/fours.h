/* Four neighbouring elements at a time, as elementwise kernels read and write them: the numbers of one Philox counter.
 *
 * wide: whether `from` (`to`) is aligned to four elements, but to 16 bytes at most; then a GPU moves them in one
 * instruction, or two for elements of 8 bytes. count: how many there are, 1 to 4; the rest is read as the first, and
 * not written. */
#ifndef SOFTNUM_FOURS_H
#define SOFTNUM_FOURS_H

#include "softnum/word/philox.h"

#if defined(__CUDACC_RTC__)
#define SN_FOURS_LOAD(kind)                                                                                            \
    if (wide && count == 4) {                                                                                          \
        const kind x = *(const kind *)from;                                                                            \
        v[0] = x.x, v[1] = x.y, v[2] = x.z, v[3] = x.w;                                                                \
        return;                                                                                                        \
    }
#define SN_FOURS_STORE(kind, element)                                                                                  \
    if (wide && count == 4) {                                                                                          \
        kind x;                                                                                                        \
        x.x = (element)v[0], x.y = (element)v[1], x.z = (element)v[2], x.w = (element)v[3];                            \
        *(kind *)to = x;                                                                                               \
        return;                                                                                                        \
    }
#define SN_FOURS_LOAD64                                                                                                \
    if (wide && count == 4) {                                                                                          \
        const ulonglong2 x = *(const ulonglong2 *)from, y = *(const ulonglong2 *)(from + 2);                           \
        v[0] = x.x, v[1] = x.y, v[2] = y.x, v[3] = y.y;                                                                \
        return;                                                                                                        \
    }
#define SN_FOURS_STORE64                                                                                               \
    if (wide && count == 4) {                                                                                          \
        ulonglong2 x, y;                                                                                               \
        x.x = v[0], x.y = v[1], y.x = v[2], y.y = v[3];                                                                \
        *(ulonglong2 *)to = x;                                                                                         \
        *(ulonglong2 *)(to + 2) = y;                                                                                   \
        return;                                                                                                        \
    }
#else
#define SN_FOURS_LOAD(kind) (void)wide;
#define SN_FOURS_STORE(kind, element) (void)wide;
#define SN_FOURS_LOAD64 (void)wide;
#define SN_FOURS_STORE64 (void)wide;
#endif

SN_FN void sn_load_four8(const sn_u8 *from, sn_i32 count, sn_i32 wide, sn_u64 *v) {
    SN_FOURS_LOAD(uchar4)
    for (sn_i32 i = 0; i < 4; i++)
        v[i] = from[i < count ? i : 0];
}

SN_FN void sn_load_four16(const sn_u16 *from, sn_i32 count, sn_i32 wide, sn_u64 *v) {
    SN_FOURS_LOAD(ushort4)
    for (sn_i32 i = 0; i < 4; i++)
        v[i] = from[i < count ? i : 0];
}

SN_FN void sn_load_four32(const sn_u32 *from, sn_i32 count, sn_i32 wide, sn_u64 *v) {
    SN_FOURS_LOAD(uint4)
    for (sn_i32 i = 0; i < 4; i++)
        v[i] = from[i < count ? i : 0];
}

SN_FN void sn_load_four64(const sn_u64 *from, sn_i32 count, sn_i32 wide, sn_u64 *v) {
    SN_FOURS_LOAD64
    for (sn_i32 i = 0; i < 4; i++)
        v[i] = from[i < count ? i : 0];
}

SN_FN void sn_store_four8(sn_u8 *to, sn_i32 count, sn_i32 wide, const sn_u64 *v) {
    SN_FOURS_STORE(uchar4, sn_u8)
    for (sn_i32 i = 0; i < 4; i++)
        if (i < count) to[i] = (sn_u8)v[i];
}

SN_FN void sn_store_four16(sn_u16 *to, sn_i32 count, sn_i32 wide, const sn_u64 *v) {
    SN_FOURS_STORE(ushort4, sn_u16)
    for (sn_i32 i = 0; i < 4; i++)
        if (i < count) to[i] = (sn_u16)v[i];
}

SN_FN void sn_store_four32(sn_u32 *to, sn_i32 count, sn_i32 wide, const sn_u64 *v) {
    SN_FOURS_STORE(uint4, sn_u32)
    for (sn_i32 i = 0; i < 4; i++)
        if (i < count) to[i] = (sn_u32)v[i];
}

SN_FN void sn_store_four64(sn_u64 *to, sn_i32 count, sn_i32 wide, const sn_u64 *v) {
    SN_FOURS_STORE64
    for (sn_i32 i = 0; i < 4; i++)
        if (i < count) to[i] = v[i];
}

/* The random words of elements 4 * block .. 4 * block + 3 of an elementwise operation. */
SN_FN void sn_four_words(sn_u64 block, sn_u32 key0, sn_u32 key1, sn_u64 *v) {
    const sn_philox_words p = sn_philox((sn_u32)block, (sn_u32)(block >> 32), 0, 0, key0, key1);
    for (sn_i32 i = 0; i < 4; i++)
        v[i] = p.w[i];
}

#undef SN_FOURS_LOAD
#undef SN_FOURS_STORE
#undef SN_FOURS_LOAD64
#undef SN_FOURS_STORE64

#endif

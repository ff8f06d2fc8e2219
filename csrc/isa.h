/* The vocabulary that the isa_*.c share: one body, written in the compiler's vector types, compiled per instruction
 * set. Before including this, an isa_*.c defines SN_(name), which gives a function its suffix, SN_BYTES, the width of a
 * vector, and the few operations that vector types lack or compile badly:
 *   SN_FMA(x, y, z)                  x * y + z in binary32, rounded once
 *   SN_MAX(a, b), SN_MIN(a, b)       of signed 32-bit integers
 *   SN_WHERE_GREATER(a, b, yes, no)  yes where a > b (false for NaN), else no, in binary32
 *   SN_ANY(mask)                     whether a lane of the mask is set
 * A comparison of vectors is a mask, all ones or 0. */
#ifndef SOFTNUM_ISA_H
#define SOFTNUM_ISA_H

#include <string.h>

#include "kernels.h"

#define SN_INLINE static inline __attribute__((always_inline))

typedef float sn_vf __attribute__((vector_size(SN_BYTES)));
typedef sn_u32 sn_vu __attribute__((vector_size(SN_BYTES)));
typedef sn_i32 sn_vi __attribute__((vector_size(SN_BYTES)));
typedef double sn_wf __attribute__((vector_size(SN_BYTES)));
typedef sn_u64 sn_wu __attribute__((vector_size(SN_BYTES)));
typedef sn_i64 sn_wi __attribute__((vector_size(SN_BYTES)));
typedef sn_u32 sn_half __attribute__((vector_size(SN_BYTES / 2)));

enum { SN_V = SN_BYTES / 4, SN_W = SN_BYTES / 8 };

#define SN_SELECT32(mask, yes, no) (((sn_vu)(mask) & (sn_vu)(yes)) | (~(sn_vu)(mask) & (sn_vu)(no)))
#define SN_SELECT64(mask, yes, no) (((sn_wu)(mask) & (sn_wu)(yes)) | (~(sn_wu)(mask) & (sn_wu)(no)))

/* SN_ANY for CPUs of which no more is known. */
SN_INLINE int SN_(any)(sn_vi mask) {
    sn_i32 any = 0;
    for (int i = 0; i < SN_V; i++)
        any |= mask[i];
    return any != 0;
}

SN_INLINE sn_vf sn_load_vf(const float *p) {
    sn_vf v;
    memcpy(&v, p, sizeof v);
    return v;
}

SN_INLINE sn_wf sn_load_wf(const double *p) {
    sn_wf v;
    memcpy(&v, p, sizeof v);
    return v;
}

SN_INLINE sn_vu sn_load_words32(const sn_u32 *p) {
    sn_vu v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* SN_W random words, widened to 64 bits. */
SN_INLINE sn_wu sn_load_words64(const sn_u32 *p) {
    sn_half v;
    memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, sn_wu);
}

#endif

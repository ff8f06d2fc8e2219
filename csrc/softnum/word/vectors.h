/* Blocks of outputs that GPU kernels keep in registers, and loads of four numbers at a time; plain C elsewhere, where
 * this text runs in Numba's simulator. */
#ifndef SOFTNUM_VECTORS_H
#define SOFTNUM_VECTORS_H

#include "softnum/word/base.h"

/* A thread's block: so many rows and as many columns. */
enum { SN_SIDE = 4, SN_BLOCK = SN_SIDE * SN_SIDE };

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define SN_UNROLL _Pragma("unroll")
#define SN_UNROLL_2 _Pragma("unroll 2")
typedef float4 sn_four_floats;
typedef int4 sn_four_integers;

/* From a multiple of 16 bytes. */
SN_FN sn_four_floats sn_four_floats_at(const float *from) { return *(const float4 *)from; }
SN_FN sn_four_integers sn_four_integers_at(const sn_i32 *from) { return *(const int4 *)from; }
SN_FN sn_i32 sn_maximum32(sn_i32 x, sn_i32 y) { return max(x, y); }
SN_FN sn_u32 sn_maximum_u32(sn_u32 x, sn_u32 y) { return max(x, y); }
#else
#define SN_UNROLL
#define SN_UNROLL_2
typedef struct {
    float x, y, z, w;
} sn_four_floats;
typedef struct {
    sn_i32 x, y, z, w;
} sn_four_integers;

SN_FN sn_four_floats sn_four_floats_at(const float *from) {
    sn_four_floats v;
    v.x = from[0];
    v.y = from[1];
    v.z = from[2];
    v.w = from[3];
    return v;
}

SN_FN sn_four_integers sn_four_integers_at(const sn_i32 *from) {
    sn_four_integers v;
    v.x = from[0];
    v.y = from[1];
    v.z = from[2];
    v.w = from[3];
    return v;
}

SN_FN sn_i32 sn_maximum32(sn_i32 x, sn_i32 y) { return x > y ? x : y; }
SN_FN sn_u32 sn_maximum_u32(sn_u32 x, sn_u32 y) { return x > y ? x : y; }
#endif

#endif

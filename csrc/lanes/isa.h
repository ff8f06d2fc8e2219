/* The operations that the bodies compiled by targets/ are written in, with the compiler's vector types. Before
 * including this, the header of an instruction set (lanes/avx2.h ...) defines SN_(name), which gives a function its
 * suffix, SN_NAME, its name, SN_BYTES, the width of a vector, SN_REGISTERS, how many there are, and the few operations
 * that vector types lack or compile badly:
 *   SN_FMA(x, y, z)                  x * y + z in binary32, rounded once
 *   SN_FMA64(x, y, z), SN_FMS64(x, y, z)
 *                                    the same in binary64, and x * y - z; only where the CPU has them
 *   SN_MULTIPLY_ADD(x, y, z), SN_SUBTRACT_PRODUCT(x, y, z)
 *                                    z + x * y, z - x * y in binary32, where x * y is exact
 *   SN_FMA_BOTH(x, y, z, lower, upper), SN_ODD_ENTER(), SN_ODD_LEAVE()
 *                                    x * y + z rounded down and up, between the other two; where there is an fma
 *   SN_WHERE_ODD(v, yes, no)         yes where the last bit of v is set; there too
 *   SN_FMA_BOTH64, SN_WHERE_ODD64    the same in binary64
 *   SN_LARGER_MAGNITUDE(a, b)        the larger magnitude, with the sign of a; only where the CPU has it
 *   SN_OR_MASKED(a, b, mask)         a | (b & mask), where a has no bit of the mask that b lacks, or is a NaN
 *   SN_CLAMP(v, least, most)         v, a number, within these limits
 *   SN_MULTIPLY_PAIRS(a, b)          in 32-bit lanes, the sum of the products of their signed 16-bit halves; or a type
 *                                    SN_PAIRS of its own, SN_ADD_PAIRS(acc, a, b), which adds such sums to one, and
 *                                    SN_STORE_PAIRS(to, acc), what an array of them comes to
 *   SN_SELECT32(mask, yes, no), SN_SELECT64(mask, yes, no)
 *                                    by lanes, or by bits: where isa.h's is no operation
 *   SN_XOR3(a, b, c)                 a ^ b ^ c
 *   SN_XOR_WHERE32(a, state, bit, b) a ^ b in lanes whose state has the bit, else a; only where the CPU has it
 *   SN_JOIN_LOW32(a, b), SN_JOIN_HIGH32(a, b)
 *                                    the low, or high, halves of 64-bit lanes: a0 b0 a1 b1 ...
 *   SN_MAX(a, b), SN_MIN(a, b)       of signed 32-bit integers
 *   SN_WHERE_GREATER(a, b, yes, no)  yes where a > b (false for NaN), else no, in binary32
 *   SN_LEFT32(a, n), SN_RIGHT32, SN_LEFT64, SN_RIGHT64
 *                                    a shifted by n, lane by lane; 0 where n, as an unsigned number, is too large;
 *                                    -2^31 < n < 2^31
 *   SN_EITHER_WAY32(a, n)            a shifted to the left by n, or to the right by -n, -32 < n < 32; what fills up is
 *                                    anything; only where that is one operation
 *   SN_LEADING_ZEROS32(a), SN_LEADING_ZEROS64(a)
 *                                    32, or 64, of 0; only where the CPU has it
 *   SN_ANY_GREATER32(a, b), SN_ANY_GREATER64(a, b)
 *                                    whether a > b in a lane, as signed integers
 *   SN_MULTIPLY32(a, b)              the product of the low halves of 64-bit lanes
 *   SN_HIGH32(a)                     the high halves of 64-bit lanes in the low ones' place, anything above
 *   SN_EVEN_LANES(a, b), SN_ODD_LANES(a, b)
 *                                    a0 b0 a2 b2 ..., a1 b1 a3 b3 ... of 64-bit lanes
 *   SN_GATHER64(table, index)       doubles of a table, by the 64-bit lanes of index
 *   SN_LOOK_UP16(table, index)      the same, of a table of 16
 *   SN_SQRT64(a)                     the root in binary64
 *   SN_LOAD8_32(p) ..., SN_STORE8_32(p, v) ...
 *                                    codes of 8, 16, 32 or 64 bits in lanes of 32 or 64
 *   SN_STREAM(p, v), SN_STREAM_END() a vector stored past the caches, p a multiple of SN_BYTES; after the last one
 *
 * A comparison of vectors is a mask, all ones or 0. */
#ifndef SOFTNUM_ISA_H
#define SOFTNUM_ISA_H

#include <string.h>

#include "dispatch/kernels.h"

#define SN_INLINE static inline __attribute__((always_inline))

typedef float sn_vf __attribute__((vector_size(SN_BYTES)));
typedef sn_u32 sn_vu __attribute__((vector_size(SN_BYTES)));
typedef sn_i32 sn_vi __attribute__((vector_size(SN_BYTES)));
typedef double sn_wf __attribute__((vector_size(SN_BYTES)));
typedef sn_u64 sn_wu __attribute__((vector_size(SN_BYTES)));
typedef sn_i64 sn_wi __attribute__((vector_size(SN_BYTES)));
typedef sn_u32 sn_half __attribute__((vector_size(SN_BYTES / 2)));

enum { SN_V = SN_BYTES / 4, SN_W = SN_BYTES / 8 };
enum { SN_LONG = 1 << 24 }; /* bytes of results that are more than a core keeps near */

/* What this instruction set has under a name that SN_DISPATCH gives one for each. */
#define SN_TARGET(type, name)                                                                                          \
    extern type SN_(name);                                                                                             \
    type SN_(name)

#ifndef SN_SELECT32
#define SN_SELECT32(mask, yes, no) (((sn_vu)(mask) & (sn_vu)(yes)) | (~(sn_vu)(mask) & (sn_vu)(no)))
#define SN_SELECT64(mask, yes, no) (((sn_wu)(mask) & (sn_wu)(yes)) | (~(sn_wu)(mask) & (sn_wu)(no)))
#endif
/* The same where x * y is exact: then a CPU without them loses nothing. */
#ifdef SN_FMA64
#define SN_EXACT_FMA64(x, y, z) SN_FMA64(x, y, z)
#define SN_EXACT_FMS64(x, y, z) SN_FMS64(x, y, z)
#else
#define SN_EXACT_FMA64(x, y, z) ((x) * (y) + (z))
#define SN_EXACT_FMS64(x, y, z) ((x) * (y) - (z))
#endif
#define SN_MAX64(a, b) (sn_wi) SN_SELECT64((a) > (b), a, b)

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

#define SN_LOAD32_32(p) sn_load_words32((const sn_u32 *)(const void *)(p))
#define SN_STORE32_32(p, v) memcpy(p, &(v), sizeof(v))
#define SN_STORE64_64 SN_STORE32_32
/* codes of 64 bits never meet lanes of 32 */
#define SN_LOAD64_32 SN_LOAD32_32
#define SN_STORE64_32 SN_STORE32_32

SN_INLINE sn_wu sn_load_wu(const void *p) {
    sn_wu v;
    memcpy(&v, p, sizeof v);
    return v;
}
#define SN_LOAD64_64 sn_load_wu

/* SN_W random words, widened to 64 bits. */
SN_INLINE sn_wu sn_load_words64(const sn_u32 *p) {
    sn_half v;
    memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, sn_wu);
}

#endif

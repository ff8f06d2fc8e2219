/* The vocabulary that the isa_*.c share: one body, compiled per instruction set by target attributes, vectorised by the
 * compiler. SN_(name) gives a function its suffix; SN_FMA(x, y, z) is x * y + z rounded once in binary32. */
#ifndef SOFTNUM_ISA_H
#define SOFTNUM_ISA_H

#include "kernels.h"

#define SN_INLINE static inline __attribute__((always_inline))
#define SN_WORD_BLOCKS 64

extern const sn_kernels sn_kernels_portable, sn_kernels_avx2, sn_kernels_avx512;

#endif

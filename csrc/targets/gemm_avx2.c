/* Products of matrices under multiply-add units, for CPUs with AVX2 and FMA. */
#if defined(__x86_64__)
#include "lanes/avx2.h"

#include "targets/gemm.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int sn_no_gemm_avx2; /* ISO C wants a declaration */
#endif

/* Operations on values and codes, for CPUs with AVX-512 F, BW, CD, DQ and VL. */
#if defined(__x86_64__)
#include "lanes/avx512.h"

#include "targets/values.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int sn_no_values_avx512; /* ISO C wants a declaration */
#endif

/* Operations on values and codes, for CPUs with AVX2 and FMA. */
#if defined(__x86_64__)
#include "lanes/avx2.h"

#include "targets/values.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int sn_no_values_avx2; /* ISO C wants a declaration */
#endif

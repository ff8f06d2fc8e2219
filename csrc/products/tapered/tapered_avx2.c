/* Sums rounded to posits and linear takums, with AVX2. */
#if defined(__x86_64__)
#include "lanes/avx2.h"

#include "products/tapered/body.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int sn_no_tapered_avx2; /* ISO C wants a declaration */
#endif

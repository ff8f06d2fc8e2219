/* Products of matrices under multiply-add units, for CPUs with NEON. */
#if defined(__aarch64__)
#include "lanes/neon.h"

#include "targets/gemm.h"
#else
typedef int sn_no_gemm_neon; /* ISO C wants a declaration */
#endif

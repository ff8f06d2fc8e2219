/* Operations on values and codes, for CPUs with NEON. */
#if defined(__aarch64__)
#include "lanes/neon.h"

#include "targets/values.h"
#else
typedef int sn_no_values_neon; /* ISO C wants a declaration */
#endif

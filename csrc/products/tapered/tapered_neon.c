/* Sums rounded to posits and linear takums, with NEON. */
#if defined(__aarch64__)
#include "lanes/neon.h"

#include "products/tapered/body.h"
#else
typedef int sn_no_tapered_neon; /* ISO C wants a declaration */
#endif

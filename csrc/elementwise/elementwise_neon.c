/* The fast paths for CPUs with NEON. */
#if defined(__aarch64__)
#include "lanes/neon.h"

#include "elementwise/carry.h"
#include "elementwise/functions/run.h"
#include "elementwise/functions/two.h"
#include "elementwise/functions/wide_run.h"
#include "elementwise/short/lanes.h"

extern const sn_kernels sn_kernels_neon;
const sn_kernels sn_kernels_neon = {"neon",        SN_(quantize32),     SN_(quantize64), SN_(encode32),
                                    SN_(encode64), SN_(encode_widened), SN_(decode32),   SN_(decode64),
                                    SN_(operate),  SN_(short_floats),   SN_(function),   SN_(function_of_two),
                                    SN_(carried),  SN_(tree),           SN_(words),      SN_(wide_function)};
#else
typedef int sn_no_neon; /* ISO C wants a declaration */
#endif

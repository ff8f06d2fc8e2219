/* The fast paths for CPUs with AVX2 and FMA. */
#if defined(__x86_64__)
#include "lanes/avx2.h"

#include "elementwise/carry.h"
#include "elementwise/functions/run.h"
#include "elementwise/functions/two.h"
#include "elementwise/functions/wide_run.h"
#include "elementwise/short/lanes.h"

extern const sn_kernels sn_kernels_avx2;
const sn_kernels sn_kernels_avx2 = {"avx2",        SN_(quantize32),     SN_(quantize64), SN_(encode32),
                                    SN_(encode64), SN_(encode_widened), SN_(decode32),   SN_(decode64),
                                    SN_(operate),  SN_(short_floats),   SN_(function),   SN_(function_of_two),
                                    SN_(carried),  SN_(tree),           SN_(words),      SN_(wide_function)};
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int sn_no_avx2; /* ISO C wants a declaration */
#endif

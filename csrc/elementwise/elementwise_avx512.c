/* The fast paths for CPUs with AVX-512 F, BW, CD, DQ and VL. */
#if defined(__x86_64__)
#include "lanes/avx512.h"

#include "elementwise/carry.h"
#include "elementwise/functions/run.h"
#include "elementwise/functions/two.h"
#include "elementwise/functions/wide_run.h"
#include "elementwise/short/lanes.h"

extern const sn_kernels sn_kernels_avx512;
const sn_kernels sn_kernels_avx512 = {"avx512",      SN_(quantize32),     SN_(quantize64), SN_(encode32),
                                      SN_(encode64), SN_(encode_widened), SN_(decode32),   SN_(decode64),
                                      SN_(operate),  SN_(short_floats),   SN_(function),   SN_(function_of_two),
                                      SN_(carried),  SN_(tree),           SN_(words),      SN_(wide_function)};
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int sn_no_avx512; /* ISO C wants a declaration */
#endif

/* The fast paths for any CPU. */
#include "lanes/portable.h"

#include "elementwise/carry.h"
#include "elementwise/functions/run.h"
#include "elementwise/functions/two.h"

extern const sn_kernels sn_kernels_portable;
const sn_kernels sn_kernels_portable = {
    "portable",    SN_(quantize32), SN_(quantize64), SN_(encode32), SN_(encode64), SN_(encode_widened),
    SN_(decode32), SN_(decode64),   SN_(operate),    NULL,          SN_(function), SN_(function_of_two),
    SN_(carried),  SN_(tree),       SN_(words),      NULL};

/* Operations on values and codes, and drawing: all that targets/values_*.c compile, once per instruction set. */
#ifndef SOFTNUM_TARGETS_VALUES_H
#define SOFTNUM_TARGETS_VALUES_H

#include "draw/body.h"
#include "elementwise/carry.h"
#include "elementwise/functions/run.h"
#include "elementwise/functions/two.h"

/* Where vectors are the compiler's alone, one element at a time is quicker. */
#ifdef SN_ONE_BY_ONE
#define SN_SHORT_FLOATS NULL
#define SN_WIDE_FUNCTION NULL
#else
#include "elementwise/functions/wide_run.h"
#include "elementwise/short/lanes.h"
#define SN_SHORT_FLOATS SN_(short_floats)
#define SN_WIDE_FUNCTION SN_(wide_function)
#endif

SN_TARGET(const sn_kernels, sn_kernels) = {SN_NAME,       SN_(quantize32),     SN_(quantize64), SN_(encode32),
                                           SN_(encode64), SN_(encode_widened), SN_(decode32),   SN_(decode64),
                                           SN_(operate),  SN_SHORT_FLOATS,     SN_(function),   SN_(function_of_two),
                                           SN_(carried),  SN_(tree),           SN_(words),      SN_WIDE_FUNCTION};

SN_TARGET(const sn_draw_kernels, sn_draw_kernels) = {SN_(draw_words), SN_(draw_apply), SN_(deal)};

#endif

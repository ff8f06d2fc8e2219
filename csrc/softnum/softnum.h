/* softnum's arithmetic core: every operation in every format, exactly rounded. Header only, C11 or C++17, no Python, no
 * libm, no allocation, no globals; also compiled as CUDA device code. See arith.h for the operations' contract. */
#ifndef SOFTNUM_SOFTNUM_H
#define SOFTNUM_SOFTNUM_H

#include "softnum/operations/arith.h"
#include "softnum/operations/divide.h"
#include "softnum/operations/fpu.h"
#include "softnum/operations/order.h"
#include "softnum/units/chain.h"
#include "softnum/units/fused.h"
#include "softnum/units/kulisch.h"
#include "softnum/word/philox.h"

#endif

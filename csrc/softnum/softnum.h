/* softnum's arithmetic core: every operation in every format, exactly rounded. Header only, C11 or C++17, no Python, no
 * libm, no allocation, no globals; also compiled as CUDA device code. See arith.h for the operations' contract. */
#ifndef SOFTNUM_SOFTNUM_H
#define SOFTNUM_SOFTNUM_H

#include "arith.h"
#include "chain.h"
#include "divide.h"
#include "fused.h"
#include "kulisch.h"
#include "order.h"
#include "philox.h"

#endif

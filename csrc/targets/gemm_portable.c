/* Products of matrices under multiply-add units, for any CPU. */
#include "lanes/portable.h"

#include "targets/gemm.h"

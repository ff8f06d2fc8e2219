/* Products of matrices by exact, blocked and fused sums, for any CPU. */
#include "lanes/portable.h"

#define SN_FUSED_ROWS 2
#define SN_MAX16(a, b) (((a) & ((a) > (b))) | ((b) & ~((a) > (b))))

#include "targets/dots.h"

/* The 16-bit format of Wang et al. (2018) that sums are kept in: a sign, 6 exponent and 9 mantissa bits. softnum has it
 * built in as e6m9. */
typedef struct {
    uint s : 1;
    uint e : 6;
    uint m : 9;
} new_fp;

enum { E = 6, M = 9 };
#include "small_float.h"

/* The 8-bit format of Wang et al. (Training Deep Neural Networks with 8-bit Floating Point Numbers, NeurIPS 2018), a
 * sign, 5 exponent and 2 mantissa bits, declared as in the listing of the divide-and-conquer paper. softnum has it
 * built in as e5m2; here it is written as a user would write a format that softnum has not. */
typedef struct {
    uint s : 1;
    uint e : 5;
    uint m : 2;
} new_fp;
new_fp convert(float f);
float as_float(new_fp nf);
new_fp add(new_fp a, new_fp b);
new_fp log(new_fp a);

enum { E = 5, M = 2 };
#include "small_float.h"

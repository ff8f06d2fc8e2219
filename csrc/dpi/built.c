/* No units. `softnum rtl build --unit` replaces this file. */
#include "built.h"

const char *const softnum_built_names[] = {NULL};

void softnum_built_fill(sn_u64 i, softnum_built *unit) {
    (void)i;
    (void)unit;
}

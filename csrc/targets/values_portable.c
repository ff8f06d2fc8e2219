/* Operations on values and codes, for any CPU. */
#include "lanes/portable.h"

#include "targets/values.h"

/* Sums rounded to posits and linear takums, for any CPU. */
#include "lanes/portable.h"

#include "products/tapered/body.h"

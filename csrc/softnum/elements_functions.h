/* elements.h, and the elementary functions, which are long. */
#ifndef SOFTNUM_ELEMENTS_FUNCTIONS_H
#define SOFTNUM_ELEMENTS_FUNCTIONS_H

#include "elements.h"
#include "functions.h"

#endif

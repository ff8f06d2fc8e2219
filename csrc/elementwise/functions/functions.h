/* The list of functions in SIMD lanes, with the formats they support and the format of their results. */
#ifndef SOFTNUM_FUNCTIONS_IN_LANES_H
#define SOFTNUM_FUNCTIONS_IN_LANES_H

#include "elementwise/elementwise.h"

extern const sn_format sn_function_format;

/* Prepare function fn (SN_ELEMENTARY_*) of one operand or two, in[0] and in[1], its results as codes or, where they
 * need not be, as binary64 numbers (to_values); 0 if it, a format or the environment lies outside the domain
 * (elementwise/functions/evaluate.h). */
int sn_function_prepare(int fn, const sn_format *in, const sn_format *out, const sn_env *env, sn_function *p,
                        sn_normals *to_out);

#endif

/* The elementary functions. They are long and elementwise.c has many loops, so they are compiled once, here. */
#include "elementwise/elementwise.h"

#include "softnum/elementary/functions.h"

sn_u64 sn_elementary_code(int fn, const sn_context *x, const sn_u64 *in, sn_u32 random, sn_u32 *flags) {
    return sn_elementary(fn, &x->operand[0], in[0], &x->operand[1], in[1], &x->out, &x->env, random, flags);
}

/* The list of operations, and dispatch by number. Elementary functions are numbered with the rest; functions.h computes
 * them and is long: include it only where they are needed. */
#ifndef SOFTNUM_OPERATIONS_H
#define SOFTNUM_OPERATIONS_H

#include "softnum/operations/divide.h"
#include "softnum/operations/elementary.h"
#include "softnum/operations/order.h"

/* name, number of operands */
#define SN_ARITHMETIC(X)                                                                                               \
    X(convert, 1)                                                                                                      \
    X(add, 2)                                                                                                          \
    X(subtract, 2)                                                                                                     \
    X(multiply, 2)                                                                                                     \
    X(fma, 3)                                                                                                          \
    X(divide, 2)                                                                                                       \
    X(remainder, 2)                                                                                                    \
    X(sqrt, 1)                                                                                                         \
    X(round_to_integral, 1)                                                                                            \
    X(to_integer, 1)                                                                                                   \
    X(minimum, 2)                                                                                                      \
    X(maximum, 2)                                                                                                      \
    X(minimum_number, 2)                                                                                               \
    X(maximum_number, 2)                                                                                               \
    X(scalb, 2)                                                                                                        \
    X(logb, 1)                                                                                                         \
    X(next_up, 1)                                                                                                      \
    X(next_down, 1)                                                                                                    \
    X(negate, 1)                                                                                                       \
    X(absolute, 1)                                                                                                     \
    X(copysign, 2)                                                                                                     \
    X(compare, 2)                                                                                                      \
    X(compare_signaling, 2)                                                                                            \
    X(total_order, 2)                                                                                                  \
    X(classify, 1)

#define SN_OPERATIONS(X) SN_ARITHMETIC(X) SN_ELEMENTARY(X)

enum {
#define SN_OPERATION_ID(name, operands) SN_OP_##name,
    SN_OPERATIONS(SN_OPERATION_ID)
#undef SN_OPERATION_ID
        SN_OPERATION_COUNT
};

/* Operation op < SN_OP_exp of the codes in, as many as it has operands and at least two, in the formats at f; fo, env,
 * random and flags as in arith.h. The second operand of scalb is an integer in a fixed-point format without fraction.
 */
SN_ALWAYS sn_u64 sn_operate(int op, const sn_format *f, const sn_u64 *in, const sn_format *o, const sn_env *e,
                            sn_u32 random, sn_u32 *flags) {
    const sn_format *g = f + 1;
    const sn_u64 a = in[0], b = in[1];
    switch (op) {
    case SN_OP_convert: return sn_convert(f, a, o, e, random, flags);
    case SN_OP_add: return sn_add(f, a, g, b, o, e, random, flags);
    case SN_OP_subtract: return sn_subtract(f, a, g, b, o, e, random, flags);
    case SN_OP_multiply: return sn_multiply(f, a, g, b, o, e, random, flags);
    case SN_OP_fma: return sn_fma(f, a, g, b, f + 2, in[2], o, e, random, flags);
    case SN_OP_divide: return sn_divide(f, a, g, b, o, e, random, flags);
    case SN_OP_remainder: return sn_remainder(f, a, g, b, o, e, random, flags);
    case SN_OP_sqrt: return sn_sqrt(f, a, o, e, random, flags);
    case SN_OP_round_to_integral: return sn_round_to_integral(f, a, o, e, random, flags);
    case SN_OP_to_integer: return sn_convert_to_integer(f, a, o, e, random, flags);
    case SN_OP_minimum: return sn_extremum(f, a, g, b, o, e, 0, 0, random, flags);
    case SN_OP_maximum: return sn_extremum(f, a, g, b, o, e, 1, 0, random, flags);
    case SN_OP_minimum_number: return sn_extremum(f, a, g, b, o, e, 0, 1, random, flags);
    case SN_OP_maximum_number: return sn_extremum(f, a, g, b, o, e, 1, 1, random, flags);
    case SN_OP_scalb: {
        sn_number n = sn_unpack(g, b);
        sn_i64 size = n.kind == SN_ZERO ? 0 : (sn_i64)(n.sig > 0x7fffffff ? 0x7fffffff : n.sig);
        return sn_scalb(f, a, n.sign ? -size : size, o, e, random, flags);
    }
    case SN_OP_logb: return sn_logb(f, a, o, e, random, flags);
    case SN_OP_next_up: return sn_next(f, a, 0, e, flags);
    case SN_OP_next_down: return sn_next(f, a, 1, e, flags);
    case SN_OP_negate: return sn_set_sign(f, a, !sn_sign(f, a), e, random, flags);
    case SN_OP_absolute: return sn_set_sign(f, a, 0, e, random, flags);
    case SN_OP_copysign: return sn_set_sign(f, a, sn_sign(g, b), e, random, flags);
    case SN_OP_compare: return sn_compare(f, a, g, b, e, 0, flags);
    case SN_OP_compare_signaling: return sn_compare(f, a, g, b, e, 1, flags);
    case SN_OP_total_order: return sn_total_order(f, a, b);
    case SN_OP_classify:
    default: return sn_classify(f, a);
    }
}

#endif

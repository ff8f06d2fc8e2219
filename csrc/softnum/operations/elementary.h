/* The list of elementary functions. functions.h computes them. */
#ifndef SOFTNUM_ELEMENTARY_H
#define SOFTNUM_ELEMENTARY_H

/* name, number of operands */
#define SN_ELEMENTARY(X)                                                                                               \
    X(exp, 1)                                                                                                          \
    X(exp2, 1)                                                                                                         \
    X(expm1, 1)                                                                                                        \
    X(log, 1)                                                                                                          \
    X(log2, 1)                                                                                                         \
    X(log10, 1)                                                                                                        \
    X(log1p, 1)                                                                                                        \
    X(sin, 1)                                                                                                          \
    X(cos, 1)                                                                                                          \
    X(tan, 1)                                                                                                          \
    X(asin, 1)                                                                                                         \
    X(acos, 1)                                                                                                         \
    X(atan, 1)                                                                                                         \
    X(sinh, 1)                                                                                                         \
    X(cosh, 1)                                                                                                         \
    X(tanh, 1)                                                                                                         \
    X(sigmoid, 1)                                                                                                      \
    X(softplus, 1)                                                                                                     \
    X(erf, 1)                                                                                                          \
    X(gelu, 1)                                                                                                         \
    X(silu, 1)                                                                                                         \
    X(rsqrt, 1)                                                                                                        \
    X(reciprocal, 1)                                                                                                   \
    X(cbrt, 1)                                                                                                         \
    X(pow, 2)                                                                                                          \
    X(hypot, 2)                                                                                                        \
    X(asinh, 1)                                                                                                        \
    X(acosh, 1)                                                                                                        \
    X(atanh, 1)                                                                                                        \
    X(sinpi, 1)                                                                                                        \
    X(cospi, 1)                                                                                                        \
    X(tanpi, 1)                                                                                                        \
    X(asinpi, 1)                                                                                                       \
    X(acospi, 1)                                                                                                       \
    X(atanpi, 1)                                                                                                       \
    X(exp10, 1)                                                                                                        \
    X(exp2m1, 1)                                                                                                       \
    X(exp10m1, 1)                                                                                                      \
    X(log2p1, 1)                                                                                                       \
    X(log10p1, 1)                                                                                                      \
    X(atan2, 2)                                                                                                        \
    X(atan2pi, 2)                                                                                                      \
    X(logaddexp, 2)                                                                                                    \
    X(logaddexp2, 2)                                                                                                   \
    X(compound, 2)                                                                                                     \
    X(rootn, 2)                                                                                                        \
    X(pown, 2)                                                                                                         \
    X(powr, 2)

enum {
#define SN_ELEMENTARY_ID(name, operands) SN_ELEMENTARY_##name,
    SN_ELEMENTARY(SN_ELEMENTARY_ID)
#undef SN_ELEMENTARY_ID
        SN_ELEMENTARY_COUNT
};

/* In *flags: the result could not be decided, and the code means nothing. For overflow = SN_OVERFLOW_WRAP where more
 * than 126 bits lie before the result's last one; else it has not been seen. */
enum { SN_UNDECIDED = 64 };

/* The highest exponent of an operand of sin, cos and tan: as far as the table of 2 / pi goes. */
enum { SN_TRIGONOMETRIC_EMAX = 33000 };

#endif

/* The rounding modes: X(NAME, name, number, family, negative, constant, direction, bump).
 *
 * Name and number are public. The other columns are for fast paths (explained in dispatch/kernels.h); modes of the
 * family NONE are always rounded by the definition. */
#ifndef SOFTNUM_MODES_H
#define SOFTNUM_MODES_H

#define SN_MODES(X)                                                                                                    \
    X(NEAREST_EVEN, nearest_even, 0, EVEN, 0, 0, NEAREST, 0)                                                           \
    X(NEAREST_AWAY, nearest_away, 1, NEAREST, 0, 1, ZERO, 1)                                                           \
    X(NEAREST_ZERO, nearest_zero, 2, NEAREST, 0, 0, UP, 0)                                                             \
    X(NEAREST_UP, nearest_up, 3, NEAREST, 1, 1, DOWN, 1)                                                               \
    X(NEAREST_DOWN, nearest_down, 4, NEAREST, 1, 0, UP, 0)                                                             \
    X(TOWARD_ZERO, toward_zero, 5, DIRECTED, 0, 0, ZERO, 0)                                                            \
    X(AWAY_FROM_ZERO, away_from_zero, 6, DIRECTED, 0, 1, UP, 0)                                                        \
    X(UP, up, 7, DIRECTED, 1, 1, UP, 0)                                                                                \
    X(DOWN, down, 8, DIRECTED, 1, 0, DOWN, 0)                                                                          \
    X(TO_ODD, to_odd, 9, ODD, 0, 0, ZERO, 0)                                                                           \
    X(STOCHASTIC, stochastic, 10, STOCHASTIC, 0, 0, NEAREST, 0)                                                        \
    X(STOCHASTIC_FLOOR, stochastic_floor, 11, RANDOM, 0, 0, NEAREST, 0)                                                \
    X(STOCHASTIC_FAST, stochastic_fast, 12, RANDOM, 0, 0, NEAREST, 0)                                                  \
    X(STOCHASTIC_EVEN, stochastic_even, 13, RANDOM, 0, 0, NEAREST, 0)                                                  \
    X(STOCHASTIC_ODD, stochastic_odd, 14, RANDOM, 0, 0, NEAREST, 0)                                                    \
    X(STOCHASTIC_EQUAL, stochastic_equal, 15, RANDOM, 0, 0, NEAREST, 0)

#endif

"""What an elementary function's exact result is, from MPFR: a rational number that rounds as it does, in every mode.

MPFR's value rounded toward zero to 200 bits, where it is inexact, says between which neighbours of 200 bits the result
lies; the middle between these rounds as the result does, for no mode looks at more than some 110 bits. The functions
that MPFR lacks are bounded from their parts at more bits.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache, partial

import gmpy2
from gmpy2 import mpfr

from softnum.reference.elementary import delivered

BITS = 200
WIDE = 1600
FAR = 20000  # beyond 2**FAR all results round alike, and below 2**-FAR
INEXACT = Fraction(1, 2**100)  # so that even a large number in fixed point is inexact
RANGE = {"emin": -(2**61), "emax": 2**61}

UNARY = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "sigmoid", "softplus", "erf", "gelu", "silu", "rsqrt", "reciprocal", "cbrt",
)  # fmt: skip
BINARY = ("pow", "hypot")


def number(x: Fraction) -> mpfr:
    """The dyadic number x, exactly."""
    with gmpy2.context(precision=max(x.numerator.bit_length(), 2), **RANGE):
        return gmpy2.div_2exp(mpfr(x.numerator), x.denominator.bit_length() - 1)


def fraction(v: mpfr) -> Fraction:
    mantissa, exponent = v.as_mantissa_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def magnitude(v: mpfr, inexact: bool) -> Fraction:
    """What stands for a positive result that is v when rounded toward zero to 200 bits."""
    if gmpy2.is_infinite(v) or (not gmpy2.is_zero(v) and gmpy2.get_exp(v) > FAR):
        return 2 ** (FAR + 1) + (INEXACT if inexact else 0)
    if gmpy2.is_zero(v) or gmpy2.get_exp(v) < -FAR:
        return Fraction(0) if gmpy2.is_zero(v) and not inexact else Fraction(1, 2 ** (FAR + 1))
    if not inexact:
        return fraction(v)
    return fraction(v) + min(INEXACT, Fraction(2) ** (int(gmpy2.get_exp(v)) - BITS - 1))


def by_mpfr(function, *operands) -> Fraction:
    """A function that MPFR rounds correctly."""
    with gmpy2.context(precision=BITS, round=gmpy2.RoundToZero, **RANGE) as context:
        context.clear_flags()
        v = function(*operands)
        inexact = context.inexact
        found = magnitude(abs(v), inexact)
    return -found if gmpy2.is_signed(v) else found


def bounded(v: mpfr, bits: int = 1500) -> Fraction:
    """What stands for a positive result that differs from v by less than 2^-bits of it."""
    if gmpy2.is_zero(v) or gmpy2.get_exp(v) < -FAR:
        return Fraction(1, 2 ** (FAR + 1))
    unit = Fraction(2) ** (int(gmpy2.get_exp(v)) - BITS)
    low, high = (fraction(v) * (1 + s * Fraction(1, 2**bits)) // unit for s in (-1, 1))
    assert low == high, "more bits"
    return low * unit + min(INEXACT, unit / 2)


ABOVE, BELOW = 1 + Fraction(1, 2 ** (BITS + 1)), 1 - Fraction(1, 2 ** (BITS + 1))


def by_parts(name: str, x: Fraction) -> Fraction:
    """sigmoid, softplus, silu, gelu, of 1600 bits and positive terms, where they do not lie beside 1 or x."""
    sign, v = (1 if x > 0 else -1), number(x)
    if x > (20 if name == "gelu" else 300):
        return {"sigmoid": BELOW, "softplus": x * ABOVE}.get(name, x * BELOW)
    if abs(x) < Fraction(1, 2**500):
        if name == "softplus":
            return by_mpfr(gmpy2.log, mpfr(2))
        near = Fraction(1, 2) if name == "sigmoid" else x / 2
        return near * (ABOVE if x > 0 else BELOW)
    if name == "gelu":
        if x < -170:  # e^-(x^2 / 2)
            return -Fraction(1, 2 ** (FAR + 1))
        with gmpy2.context(precision=900, **RANGE):
            return sign * bounded(abs(v) * gmpy2.erfc(-v / gmpy2.sqrt(mpfr(2))) / 2, 800)
    with gmpy2.context(precision=WIDE, **RANGE):
        if name == "softplus":
            return bounded(gmpy2.log1p(gmpy2.exp(v)))
        found = bounded((abs(v) if name == "silu" else 1) / (1 + gmpy2.exp(-v)))
        return sign * found if name == "silu" else found


@lru_cache(maxsize=1 << 17)
def exact(name: str, *x: Fraction) -> Fraction:
    """What `softnum.reference.elementary.real` is, from MPFR."""
    if name == "half_pi":
        with gmpy2.context(precision=BITS, round=gmpy2.RoundToZero):
            return magnitude(gmpy2.const_pi() / 2, True)
    if name == "exp2" and x[0].denominator == 1:
        return Fraction(2) ** max(-FAR, min(x[0].numerator, FAR))
    if name == "reciprocal":
        return 1 / x[0]
    if name in ("sigmoid", "softplus", "silu", "gelu"):
        return by_parts(name, x[0]) if x[0] else by_mpfr(gmpy2.log, mpfr(2))
    operands = [number(v) for v in x]
    if name == "pow":
        return by_mpfr(lambda a, b: a**b, *operands)
    return by_mpfr(gmpy2.rec_sqrt if name == "rsqrt" else getattr(gmpy2, name), *operands)


#: (code, flags) of an elementary function: MPFR's number between the reference's special values and its rounding
expected = partial(delivered, number=exact)

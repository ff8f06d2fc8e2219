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
    "cosh", "tanh", "sigmoid", "softplus", "erf", "gelu", "silu", "rsqrt", "reciprocal", "cbrt", "asinh", "acosh",
    "atanh",
)  # fmt: skip
BINARY = ("pow", "hypot", "atan2")
# Those that gmpy2 lacks; and 10^x, of which 53 bits do not tell that it is an integer.
MORE_UNARY = (
    "exp10", "sinpi", "cospi", "tanpi", "asinpi", "acospi", "atanpi", "exp2m1", "exp10m1", "log2p1", "log10p1",
)  # fmt: skip
MORE_BINARY = ("atan2pi", "logaddexp", "logaddexp2", "compound", "rootn", "pown", "powr")
TWO = BINARY + MORE_BINARY


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


def is_power(x: Fraction, base: int) -> int | None:
    """k where x = base^k, an integer of 0 or more, or for base 2 any; else None."""
    if base == 2 and 0 < x < 1:
        k = is_power(1 / x, 2)
        return None if k is None else -k
    k, power = 0, 1
    while power < x and k < 20000:
        k, power = k + 1, power * base
    return k if power == x else None


def turned(name: str, x: Fraction) -> Fraction:
    """sinpi, cospi, tanpi: of x less the nearest integer, as sine or cosine of what is no more than 1/4 in size."""
    n = round(x)
    r = abs(x - n)
    side, turn = (1 if x > n else -1), (-1 if n % 2 else 1)
    exchanged = r > Fraction(1, 4)
    angle = Fraction(1, 2) - r if exchanged else r
    sine, cosine, tangent = Fraction(0), Fraction(1), Fraction(0)
    if angle:
        with gmpy2.context(precision=WIDE, **RANGE):
            v = number(angle) * gmpy2.const_pi()
            sine = bounded(gmpy2.sin(v))
            cosine = BELOW if angle < Fraction(1, 2**500) else bounded(gmpy2.cos(v))
            tangent = 1 if angle == Fraction(1, 4) else bounded(1 / gmpy2.tan(v) if exchanged else gmpy2.tan(v))
    if exchanged:
        sine, cosine = cosine, sine
    return {"sinpi": side * turn * sine, "cospi": turn * cosine, "tanpi": side * tangent}[name]


def per_pi(name: str, *x: Fraction) -> Fraction:
    """asinpi, acospi, atanpi, atan2pi: what is rational, what lies beside that, and the others by MPFR's quotient."""
    tiny = Fraction(1, 2**500)
    if name == "atan2pi":
        ratio = abs(x[0] / x[1])
        if ratio == 1:
            found = Fraction(1, 4) if x[1] > 0 else Fraction(3, 4)
        elif ratio * tiny > 1:
            found = (BELOW if x[1] > 0 else ABOVE) / 2
        elif x[1] < 0 and ratio < tiny:
            found = BELOW
        else:
            with gmpy2.context(precision=WIDE, **RANGE):
                found = bounded(gmpy2.atan2(number(abs(x[0])), number(x[1])) / gmpy2.const_pi())
        return found if x[0] > 0 else -found
    v, sign = x[0], 1 if x[0] > 0 else -1
    if name == "atanpi" and abs(v) * tiny > 1:
        return sign * BELOW / 2
    if name == "atanpi" and abs(v) == 1:
        return v / 4
    if name == "acospi" and abs(v) < tiny:
        return (BELOW if v > 0 else ABOVE if v < 0 else 1) * Fraction(1, 2)
    if name != "atanpi" and abs(v) in (Fraction(1, 2), 1):
        of_sine = sign * (Fraction(1, 2) if abs(v) == 1 else Fraction(1, 6))
        return of_sine if name == "asinpi" else Fraction(1, 2) - of_sine
    with gmpy2.context(precision=WIDE, **RANGE):
        found = getattr(gmpy2, name[:-2])(number(v if name == "acospi" else abs(v))) / gmpy2.const_pi()
        return bounded(found) if name == "acospi" else sign * bounded(found)


def less_one(name: str, x: Fraction) -> Fraction:
    """exp2m1 and exp10m1."""
    base = 2 if name == "exp2m1" else 10
    if x.denominator == 1:
        return Fraction(base) ** max(-FAR, min(x.numerator, FAR)) - 1
    if x < -FAR:
        return -BELOW
    if x > FAR:
        return 2**FAR + INEXACT
    with gmpy2.context(precision=WIDE, **RANGE):
        v = gmpy2.expm1(number(x) * gmpy2.log(mpfr(base)))
        if x < -300:
            return -BELOW
        return bounded(abs(v)) * (1 if x > 0 else -1)


def log_of_more(name: str, x: Fraction) -> Fraction:
    """log2p1 and log10p1."""
    base = 2 if name == "log2p1" else 10
    k = is_power(1 + x, base)
    if k is not None:
        return Fraction(k)
    k = is_power(x, base)
    if base == 2 and x > 2**500 and k is not None:
        return k * ABOVE
    with gmpy2.context(precision=WIDE, **RANGE):
        v = gmpy2.log1p(number(x)) / gmpy2.log(mpfr(base))
        return bounded(abs(v)) * (1 if x > 0 else -1)


def of_sum(name: str, x: Fraction, y: Fraction) -> Fraction:
    """logaddexp and logaddexp2, by as many bits as small operands and what cancels need."""
    high, low = max(x, y), min(x, y)
    if name == "logaddexp2" and x == y:
        return x + 1
    size = max(abs(high).denominator.bit_length(), abs(low).denominator.bit_length())
    if high and high - low > 600 + 2 * size:
        return high * (ABOVE if high > 0 else BELOW)
    with gmpy2.context(precision=WIDE + 4 * size, **RANGE):
        a, d = number(high), number(low - high)
        if name == "logaddexp":
            v = a + gmpy2.log1p(gmpy2.exp(d))
        else:
            v = a + gmpy2.log1p(gmpy2.exp2(d)) / gmpy2.log(mpfr(2))
        return bounded(abs(v), 1200 + 4 * size) * (-1 if v < 0 else 1)


def powers(name: str, x: Fraction, n: Fraction) -> Fraction:
    """compound and rootn, of an integer n."""
    n = n.numerator
    if name == "rootn":
        sign, a = (-1 if x < 0 else 1), number(abs(x))
        if abs(n) >> 60:
            if abs(x) == 1:
                return Fraction(sign)
            with gmpy2.context(precision=WIDE, **RANGE):
                z = gmpy2.log(a) / n
                near = (ABOVE if z > 0 else BELOW) if abs(z) < mpfr(2) ** -500 else bounded(gmpy2.exp(z), 900)
                return sign * near
        root = by_mpfr(lambda v: gmpy2.rootn(v, abs(n)), a)
        if n > 0:
            return sign * root
        if root.denominator & (root.denominator - 1) == 0 and root ** min(abs(n), 300) == abs(x):
            return sign / root
        with gmpy2.context(precision=WIDE, **RANGE):
            return sign * bounded(1 / gmpy2.rootn(a, -n))
    base = 1 + x
    k = is_power(base, 2)
    if k is not None:
        return Fraction(2) ** max(-FAR, min(k * n, FAR))
    if base.numerator.bit_length() * abs(n) < 60000 or (0 < n and base.numerator.bit_length() * n < 200000):
        return base**n
    with gmpy2.context(precision=WIDE, **RANGE):
        z = number(Fraction(n)) * gmpy2.log1p(number(x))
        if abs(z) < mpfr(2) ** -500:
            return ABOVE if z > 0 else BELOW
        if z < -FAR:
            return Fraction(1, 2 ** (FAR + 1))
        if z > FAR:  # a whole number of whole ones
            return 2**FAR + (0 if n > 0 and x.denominator == 1 else INEXACT)
        return bounded(gmpy2.exp(z), 1000)


@lru_cache(maxsize=1 << 17)
def exact(name: str, *x: Fraction) -> Fraction:
    """What `softnum.reference.elementary.real` is, from MPFR."""
    if name == "quarters":
        with gmpy2.context(precision=BITS, round=gmpy2.RoundToZero):
            return magnitude(abs(x[0].numerator) * gmpy2.const_pi(BITS + 10) / 4, True) * (1 if x[0] > 0 else -1)
    if name in ("sinpi", "cospi", "tanpi"):
        return turned(name, x[0])
    if name in ("asinpi", "acospi", "atanpi", "atan2pi"):
        return per_pi(name, *x)
    if name in ("exp2m1", "exp10m1"):
        return less_one(name, x[0])
    if name in ("log2p1", "log10p1"):
        return log_of_more(name, x[0])
    if name in ("logaddexp", "logaddexp2"):
        return of_sum(name, *x)
    if name in ("compound", "rootn"):
        return powers(name, *x)
    if name in ("exp10", "exp2") and x[0].denominator == 1 and x[0] >= 0:
        return Fraction(2 if name == "exp2" else 10) ** min(x[0].numerator, FAR)
    if name == "exp2" and x[0].denominator == 1:
        return Fraction(2) ** max(-FAR, min(x[0].numerator, FAR))
    if name == "reciprocal":
        return 1 / x[0]
    if name in ("sigmoid", "softplus", "silu", "gelu"):
        return by_parts(name, x[0]) if x[0] else by_mpfr(gmpy2.log, mpfr(2))
    operands = [number(v) for v in x]
    if name in ("pow", "pown", "powr"):
        if x[1].denominator == 1 and x[1] > 0 and x[0].numerator.bit_length() * x[1] < 60000:
            return x[0] ** x[1].numerator
        return by_mpfr(lambda a, b: a**b, *operands)
    return by_mpfr(gmpy2.rec_sqrt if name == "rsqrt" else getattr(gmpy2, name), *operands)


#: (code, flags) of an elementary function: MPFR's number between the reference's special values and its rounding
expected = partial(delivered, number=exact)

"""Quotients, roots and integers as circuits: exact, but that what lies below all points of rounding is one bit."""

from __future__ import annotations

from softnum.reference.facts import FixedFacts, FloatFacts
from softnum.vectors.formal.circuit import Bits, Circuit
from softnum.vectors.formal.numbers import Exact, Number, exact_value

__all__ = ["exact_quotient", "exact_root", "integral"]


def _precision(fmt: FloatFacts | FixedFacts) -> int:
    """Bits behind the leading one that a rounding looks at one by one: the fraction, the first that goes, and one that
    tells the middle of a gap from its sides."""
    return fmt.mantissa_bits + 2


def exact_quotient(c: Circuit, x: Number, y: Number, fmt: FloatFacts | FixedFacts) -> Exact:
    """x / y of finite numbers, y not zero: its last bit says whether anything lies below the others."""
    n, d = x.significand, y.significand
    if isinstance(fmt, FixedFacts):  # all places of the result, and one more
        more = max(1 + fmt.fraction_bits + x.unit + x.most - y.unit, 1)
    else:
        more = d.width + _precision(fmt)
    width = max(n.width + more, d.width)
    n, d = n.placed(more).extended(width), d.extended(width)
    quotient = n // d
    rest = n != quotient * d
    most = x.most + y.most
    places = max(y.most.bit_length(), x.shift.width, y.shift.width) + 1
    shift = x.shift.extended(places) + (c.const(y.most, places) - y.shift.extended(places))
    digits = c.concat(quotient, rest)
    magnitude = digits.extended(digits.width + most) << shift.sized(min(places, digits.width + most))
    return Exact(x.sign ^ y.sign, magnitude, x.unit - y.unit - more - y.most - 1)


def exact_root(c: Circuit, x: Number, fmt: FloatFacts | FixedFacts) -> Exact:
    """The root of a finite number that is not negative: its last bit says whether anything lies below the others."""
    value = exact_value(c, x)
    unit = value.unit
    if isinstance(fmt, FixedFacts):
        finest = -fmt.fraction_bits - 1
    else:  # the root of the smallest number has as many bits as a rounding looks at
        finest = unit // 2 - _precision(fmt)
    finest = min(finest, unit // 2)
    radicand = value.magnitude.placed(unit - 2 * finest)
    root, rest = _root(c, radicand)
    return Exact(x.sign, c.concat(root, rest.any()), finest - 1)


def _root(c: Circuit, radicand: Bits) -> tuple[Bits, Bits]:
    """The root's integer and what is left, digit by digit: two digits of the radicand give one."""
    radicand = radicand.extended(radicand.width + radicand.width % 2)
    size = radicand.width // 2
    root, rest = c.const(0, size), c.const(0, size + 2)
    for i in range(size - 1, -1, -1):
        rest = c.concat(rest[:size], radicand[2 * i : 2 * i + 2])
        trial = c.concat(root, c.const(1, 2))
        fits = ~(rest < trial)
        rest = c.ite(fits, rest - trial, rest)
        root = c.concat(root[: size - 1], fits) if size > 1 else fits
    return root, rest


def integral(c: Circuit, x: Number) -> tuple[Exact, Bits, Bits]:
    """A finite number cut to an integer, whether half or more was cut off, and whether more than that or less.

    Examples
    --------
    The codes of 0.5, 1.5 and 3:

    >>> from softnum.reference.facts import format_of
    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> from softnum.vectors.formal.numbers import decode
    >>> c = Circuit()
    >>> whole, half, rest = integral(c, decode(c, c.input("code", 4), format_of("e2m1fn")))
    >>> c.output("whole", whole.magnitude)
    >>> c.output("half", half)
    >>> [found.tolist() for found in evaluate(c, {"code": [1, 3, 5]}).values()]
    [[0, 1, 3], [1, 1, 0]]
    """
    value = exact_value(c, x)
    none = c.const(0, 1)
    if value.unit >= 0:
        return value, none, none
    places = -value.unit
    magnitude = value.magnitude.extended(places + 1)
    whole = Exact(x.sign, magnitude[places:], 0)
    return whole, magnitude[places - 1], magnitude[: places - 1].any() if places > 1 else none

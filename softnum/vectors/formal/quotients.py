"""Quotients, roots and integers as circuits: exact, but that what lies below all points of rounding is one bit."""

from __future__ import annotations

from softnum.reference.facts import FixedFacts, FloatFacts, Format
from softnum.vectors.formal.circuit import Bits, Circuit
from softnum.vectors.formal.numbers import Exact, Number, exact_value
from softnum.vectors.formal.rounding import Environment, Lost, cut
from softnum.vectors.formal.value_tables import ValueFacts

__all__ = ["exact_quotient", "exact_remainder", "exact_root", "integral"]


def _precision(fmt: Format, env: Environment) -> int:
    """Bits behind the leading one that a rounding looks at one by one: the fraction, the first that goes (in a
    stochastic mode r more), and one that tells the middle of a gap from its sides."""
    fraction = fmt.mantissa_bits if isinstance(fmt, FloatFacts) else fmt.bits
    return fraction + 2 + env.random_bits


def exact_quotient(c: Circuit, x: Number, y: Number, fmt: Format, env: Environment) -> Exact:
    """x / y of finite numbers, y not zero: its last bit says whether anything lies below the others."""
    n, d = x.significand, y.significand
    if isinstance(fmt, (FixedFacts, ValueFacts)):  # all places of the result, and one more
        more = max(1 + fmt.fraction_bits + x.unit + x.most - y.unit, 1) + env.random_bits
    else:
        more = d.width + _precision(fmt, env)
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


def exact_remainder(c: Circuit, x: Number, y: Number) -> Exact:
    """x - y * n of finite numbers, y not zero, n the integer nearest to x / y, the even one of two; 0 has x's sign."""
    a, b = exact_value(c, x), exact_value(c, y)
    unit = min(a.unit, b.unit)
    n, d = a.magnitude.placed(a.unit - unit), b.magnitude.placed(b.unit - unit)
    width = max(n.width, d.width) + 1
    n, d = n.extended(width), d.extended(width)
    quotient = n // d
    rest = n - quotient * d
    twice = c.concat(rest[: width - 1], c.const(0, 1))
    beyond = (d < twice) | ((twice == d) & quotient[0])
    magnitude = c.ite(beyond, d - rest, rest)
    return Exact(x.sign ^ (beyond & magnitude.any()), magnitude, unit)


def exact_root(c: Circuit, x: Number, fmt: Format, env: Environment) -> Exact:
    """The root of a finite number that is not negative: its last bit says whether anything lies below the others."""
    value = exact_value(c, x)
    unit = value.unit
    if isinstance(fmt, (FixedFacts, ValueFacts)):
        finest = -fmt.fraction_bits - 1 - env.random_bits
    else:  # the root of the smallest number has as many bits as a rounding looks at
        finest = unit // 2 - _precision(fmt, env)
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


def integral(c: Circuit, x: Number) -> tuple[Exact, Lost]:
    """A finite number cut to an integer, and what was cut off.

    Examples
    --------
    The codes of 0.5, 1.5 and 3:

    >>> from softnum.reference.facts import format_of
    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> from softnum.vectors.formal.decoding import decode
    >>> c = Circuit()
    >>> whole, lost = integral(c, decode(c, c.input("code", 4), format_of("e2m1fn")))
    >>> c.output("whole", whole.magnitude)
    >>> c.output("half", lost.half)
    >>> [found.tolist() for found in evaluate(c, {"code": [1, 3, 5]}).values()]
    [[0, 1, 3], [1, 1, 0]]
    """
    value = exact_value(c, x)
    kept, lost = cut(c, value.magnitude, max(-value.unit, 0))
    return Exact(x.sign, kept, max(value.unit, 0)), lost

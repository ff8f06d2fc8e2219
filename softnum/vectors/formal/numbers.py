"""Numbers as circuits, and their exact sums and products.

A magnitude is an integer wide enough for all that an operation can give, in units of a power of two.
"""

from __future__ import annotations

from typing import NamedTuple

from softnum.vectors.formal.circuit import Bits, Circuit

__all__ = ["Exact", "Number", "exact_product", "exact_sum", "exact_value", "leading_one"]


class Number(NamedTuple):
    """A decoded operand: (-1)**sign * significand * 2**(unit + shift) unless it is NaN or infinite.

    ``most`` is the largest shift of a finite number. Of a NaN, ``payload`` is the fraction, the quiet bit first.
    """

    nan: Bits
    signaling: Bits
    infinite: Bits
    sign: Bits
    significand: Bits
    shift: Bits
    most: int
    unit: int
    payload: Bits

    @property
    def zero(self) -> Bits:
        """Whether it is +0 or -0."""
        return ~self.nan & ~self.infinite & ~self.significand.any()

    @property
    def finite(self) -> Bits:
        """Whether it is a finite number other than zero."""
        return ~self.nan & ~self.infinite & self.significand.any()


class Exact(NamedTuple):
    """(-1)**sign * magnitude * 2**unit."""

    sign: Bits
    magnitude: Bits
    unit: int


def _shifted(c: Circuit, significand: Bits, shift: Bits, most: int) -> Bits:
    width = significand.width + most
    return significand if most == 0 else significand.extended(width) << shift.sized(min(shift.width, width))


def exact_value(c: Circuit, x: Number) -> Exact:
    """The value of a number that is finite."""
    return Exact(x.sign, _shifted(c, x.significand, x.shift, x.most), x.unit)


def exact_product(c: Circuit, x: Number, y: Number) -> Exact:
    """The product of two finite numbers."""
    width = x.significand.width + y.significand.width
    product = x.significand.extended(width) * y.significand.extended(width)
    most = x.most + y.most
    places = max(x.shift.width, y.shift.width) + 1
    shift = x.shift.extended(places) + y.shift.extended(places)
    return Exact(x.sign ^ y.sign, _shifted(c, product, shift, most), x.unit + y.unit)


def exact_sum(c: Circuit, x: Exact, y: Exact, down: bool) -> Exact:
    """The sum; a zero of terms of opposite signs is +0, and -0 where it rounds down (IEEE 754-2019, 6.3)."""
    unit = min(x.unit, y.unit)
    a, b = x.magnitude.placed(x.unit - unit), y.magnitude.placed(y.unit - unit)
    width = max(a.width, b.width) + 1
    a, b = a.extended(width), b.extended(width)
    less, equal_signs = a < b, ~(x.sign ^ y.sign)
    more, fewer = c.ite(less, b, a), c.ite(less, a, b)
    magnitude = more + c.ite(equal_signs, fewer, c.const(0, width) - fewer)
    sign = c.ite(less, y.sign, x.sign)
    cancelled = ~equal_signs & ~magnitude.any()
    return Exact(c.ite(cancelled, c.const(int(down), 1), sign), magnitude, unit)


def leading_one(c: Circuit, x: Bits) -> Bits:
    """The place of the highest 1, from 0; 0 of zero.

    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> c = Circuit()
    >>> c.output("place", leading_one(c, c.input("x", 4)))
    >>> evaluate(c, {"x": [0, 1, 6, 8]})["place"].tolist()
    [0, 0, 2, 3]
    """
    size = (x.width - 1).bit_length()
    if not size:
        return c.const(0, 1)
    x, digits = x.extended(1 << size), []
    for k in range(size - 1, -1, -1):
        high, low = x[1 << k :], x[: 1 << k]
        digits.append(high.any())
        x = c.ite(digits[-1], high, low)
    return c.concat(*digits)

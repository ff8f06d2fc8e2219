"""What codes mean, and exact sums and products, as circuits: IEEE 754-2019, clause 3.4, by a format's facts.

The definition, and no fast path: a magnitude is an integer wide enough for all that an operation can give, in units of
a power of two, and is cut once. `softnum.reference` says the same of one number at a time; the facts are its.
"""

from __future__ import annotations

from typing import NamedTuple

from softnum.reference.facts import FixedFacts, FloatFacts
from softnum.vectors.formal.circuit import Bits, Circuit

__all__ = ["Exact", "Number", "decode", "exact_product", "exact_sum", "exact_value", "leading_one"]


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


def decode(c: Circuit, code: Bits, fmt: FloatFacts | FixedFacts) -> Number:
    """What a code of the format stands for.

    Examples
    --------
    The codes of 0.5, -1 and 6, in halves:

    >>> from softnum.reference.facts import format_of
    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> c = Circuit()
    >>> value = exact_value(c, decode(c, c.input("code", 4), format_of("e2m1fn")))
    >>> c.output("sign", value.sign)
    >>> c.output("magnitude", value.magnitude)
    >>> value.unit, [found.tolist() for found in evaluate(c, {"code": [0x1, 0xA, 0x7]}).values()]
    (-1, [[0, 1, 0], [1, 2, 12]])
    """
    none, no_payload = c.const(0, 1), c.const(1, 1)
    if isinstance(fmt, FixedFacts):
        sign = code[fmt.bits - 1] if fmt.signed else none
        magnitude = c.ite(sign, c.const(0, fmt.bits) - code, code)
        return Number(none, none, none, sign, magnitude, none, 0, -fmt.fraction_bits, no_payload)
    e, m = fmt.exponent_bits, fmt.mantissa_bits
    magnitude, field = code[: e + m], code[m : m + e]
    sign = code[e + m] if fmt.signed else none
    nan = signaling = none
    payload = no_payload
    if fmt.nan_codes == "ieee":
        nan, payload = magnitude > fmt.inf_code, code[:m]
        signaling = nan & ~code[m - 1] if m >= 2 else none
    elif fmt.nan_codes == "all_ones":
        nan = magnitude == fmt.nan_code
    elif fmt.nan_codes == "negative_zero":
        nan = code == fmt.nan_code
        sign = sign & ~nan
    infinite = none if fmt.inf_code is None else magnitude == fmt.inf_code
    if fmt.lowest_binade == "normal":
        hidden, shift = (magnitude.any() if fmt.has_zero else c.const(1, 1)), field
    else:
        hidden = field.any()
        shift = field - hidden.extended(e)
    significand = c.concat(hidden, code[:m] if m else None)
    if fmt.lowest_binade == "zero":
        significand = c.ite(hidden, significand, 0)
    if not fmt.negative_zero:
        sign = sign & (significand.any() | infinite | nan)
    most = (fmt.max_code >> m) - (fmt.lowest_binade != "normal")
    return Number(nan, signaling, infinite, sign, significand, shift, max(most, 0), fmt.emin - m, payload)


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
    """The place of the highest 1, from 0; 0 of zero."""
    size = (x.width - 1).bit_length()
    if not size:
        return c.const(0, 1)
    x, digits = x.extended(1 << size), []
    for k in range(size - 1, -1, -1):
        high, low = x[1 << k :], x[: 1 << k]
        digits.append(high.any())
        x = c.ite(digits[-1], high, low)
    return c.concat(*digits)

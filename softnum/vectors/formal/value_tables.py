"""Formats that are a table of values, as circuits: code i stands for a value, and a number rounds to a neighbour.

By `softnum.CustomFormat.from_table`: a tie in nearest_even goes to the upper neighbour if its code is even, else to the
lower; what lies beyond the ends becomes the value there, and an infinity NaN where there is one and nothing saturates.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from softnum.vectors.formal.circuit import Bits, Circuit
from softnum.vectors.formal.numbers import Exact, Number

__all__ = ["MOST_VALUE_BITS", "ValueFacts", "next_value", "rounded_to_value", "table_of", "value_number"]

#: Codes of more bits, and tables whose values have more places in all, have no circuit.
MOST_VALUE_BITS, _MOST_PLACES = 10, 512

#: mode -> whether what a positive number decides goes to the upper neighbour, and of a negative number
_UPPER = {
    "nearest_away": (True, False), "nearest_zero": (False, True), "nearest_up": (True, True),
    "nearest_down": (False, False), "up": (True, True), "down": (False, False), "toward_zero": (False, True),
    "away_from_zero": (True, False),
}  # fmt: skip


def table_of(c: Circuit, index: Bits, values: list[int], width: int) -> Bits:
    """The entry of a table that a number says, as a tree of choices by its bits, the highest first.

    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> c = Circuit()
    >>> c.output("square", table_of(c, c.input("x", 2), [0, 1, 4, 9], 4))
    >>> evaluate(c, {"x": [3, 0, 2]})["square"].tolist()
    [9, 0, 4]
    """
    row = [c.const(value, width) for value in values]
    for i in range(index.width):
        bit = index[i]
        row = [c.ite(bit, row[k + 1], row[k]) for k in range(0, len(row), 2)]
    return row[0]


@dataclass(frozen=True)
class ValueFacts:
    """The values of a table's codes; None is NaN. What else a format is asked of is what follows from them.

    >>> facts = ValueFacts((Fraction(0), Fraction(3, 2), None, Fraction(-1)))
    >>> facts.bits, facts.unit, facts.nan_code, facts.ascending
    (2, -1, 2, (3, 0, 1))
    """

    values: tuple[Fraction | None, ...]

    kind = "table"
    nan_codes = "negative_zero"  # one NaN is delivered, whatever the profile
    has_zero = signed = silent = True
    infinities = negative_zero = saturating = explicit_bit = p3109 = False

    @cached_property
    def bits(self) -> int:
        """Width of a code."""
        return (len(self.values) - 1).bit_length()

    @cached_property
    def nan_code(self) -> int | None:
        """The first code of NaN."""
        return self.values.index(None) if None in self.values else None

    @property
    def has_nan(self) -> bool:
        """Whether some code is NaN."""
        return self.nan_code is not None

    @property
    def invalid_code(self) -> int:
        """The code of a result that has no value: NaN's, or that of 0; ValueError where there is neither."""
        if None not in self.values and 0 not in self.values:
            raise ValueError("a table with neither NaN nor 0 has no code for a result that is NaN; add one of them")
        return self.values.index(None if self.has_nan else Fraction(0))

    @cached_property
    def unit(self) -> int:
        """Exponent of the last place that a value has."""
        return -max(v.denominator.bit_length() - 1 for v in self.values if v is not None)

    @property
    def fraction_bits(self) -> int:
        """Places behind the point that the middle of two neighbours has."""
        return 1 - self.unit

    @cached_property
    def multiples(self) -> tuple[int | None, ...]:
        """The values in units of that place."""
        return tuple(None if v is None else int(v / Fraction(2) ** self.unit) for v in self.values)

    @cached_property
    def places(self) -> int:
        """Bits of the largest of these."""
        return max(max(abs(n).bit_length() for n in self.multiples if n is not None), 1)

    @cached_property
    def ascending(self) -> tuple[int, ...]:
        """Codes of the numbers in the order of their values."""
        return tuple(sorted((i for i, n in enumerate(self.multiples) if n is not None), key=self.multiples.__getitem__))

    def end(self, negative: bool) -> int:
        """The code of the lowest value, or of the largest."""
        return self.ascending[0 if negative else -1]

    def check(self, name: str) -> None:
        """ValueError where a circuit would be too large."""
        if self.bits > MOST_VALUE_BITS or self.places > _MOST_PLACES:
            raise ValueError(
                f"{name} has no circuit: a table of values has one of at most {MOST_VALUE_BITS} bits and values of "
                f"{_MOST_PLACES} places, not of {self.bits} and {self.places}; prove it by exhaustion"
            )


def value_number(c: Circuit, code: Bits, fmt: ValueFacts) -> Number:
    """What a code stands for.

    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> c = Circuit()
    >>> x = value_number(c, c.input("code", 2), ValueFacts((Fraction(0), Fraction(3, 2), None, Fraction(-1))))
    >>> for name in ("nan", "sign", "significand"):
    ...     c.output(name, getattr(x, name))
    >>> [found.tolist() for found in evaluate(c, {"code": [1, 2, 3]}).values()], x.unit
    ([[0, 1, 0], [0, 0, 1], [3, 0, 2]], -1)
    """
    none = c.const(0, 1)
    numbers = [0 if n is None else n for n in fmt.multiples]
    nan = table_of(c, code, [int(n is None) for n in fmt.multiples], 1)
    sign = table_of(c, code, [int(n < 0) for n in numbers], 1)
    significand = table_of(c, code, [abs(n) for n in numbers], fmt.places)
    return Number(nan, none, none, sign, significand, none, 0, fmt.unit, c.const(1, 1))


def rounded_to_value(c: Circuit, x: Exact, fmt: ValueFacts, rounding: str) -> Bits:
    """The code that a number rounds to, in a nearest or directed mode.

    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> c, fmt = Circuit(), ValueFacts((Fraction(0), Fraction(3, 2), None, Fraction(-1)))
    >>> x = Exact(c.input("sign", 1), c.input("quarters", 4), -2)
    >>> c.output("code", rounded_to_value(c, x, fmt, "nearest_even"))
    >>> evaluate(c, {"sign": [0, 0, 1, 1], "quarters": [3, 4, 2, 3]})["code"].tolist()  # 0.75 and -0.5 are ties
    [0, 1, 0, 3]
    """
    unit = min(x.unit, fmt.unit - 1)
    magnitude = x.magnitude.placed(x.unit - unit)
    width = max(magnitude.width, fmt.places + fmt.unit - unit) + 2
    middle = 1 << (width - 1)  # where zero lies among numbers without a sign
    magnitude = magnitude.extended(width)
    place = c.ite(x.sign, c.const(middle, width) - magnitude, magnitude + middle)
    negative = place < middle
    at = [middle + (fmt.multiples[code] << (fmt.unit - unit)) for code in fmt.ascending]
    code = c.const(fmt.ascending[0], fmt.bits)
    for low, high, above in zip(at, at[1:], fmt.ascending[1:], strict=False):
        if rounding == "nearest_even":
            goes = ~(place < (low + high) // 2) if above % 2 == 0 else place > (low + high) // 2
        else:
            of_positive, of_negative = _UPPER[rounding]
            bounds = ((low + high) // 2,) * 2 if rounding.startswith("nearest") else (low, high)
            sides = [place > bounds[0] if upper else ~(place < bounds[1]) for upper in (True, False)]
            if rounding.startswith("nearest"):
                sides.reverse()  # a tie that goes to the upper one begins at the middle, another behind it
            first, second = (sides[0 if upper else 1] for upper in (of_negative, of_positive))
            goes = c.ite(negative, first, second)
        code = c.ite(goes, above, code)
    return code


def next_value(c: Circuit, code: Bits, down: bool, fmt: ValueFacts) -> Bits:
    """The code of the next value above, or below; the last one and NaNs stay.

    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> c = Circuit()
    >>> fmt = ValueFacts((Fraction(0), Fraction(3, 2), None, Fraction(-1)))
    >>> c.output("up", next_value(c, c.input("code", 2), False, fmt))
    >>> evaluate(c, {"code": [0, 1, 2, 3]})["up"].tolist()
    [1, 1, 2, 0]
    """
    after = list(range(len(fmt.values)))
    order = fmt.ascending[::-1] if down else fmt.ascending
    for this, following in pairwise(order):
        after[this] = following
    return table_of(c, code, after, fmt.bits)

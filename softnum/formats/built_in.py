"""Formats that softnum makes of functions of its own: posits, takums and other logarithmic numbers.

Such a format is known by its name. It has one rounding and raises no flags; numbers beyond its ends become the values
there, infinities its NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softnum.formats.base import AnyFormat
from softnum.formats.custom.formats import CustomFormat
from softnum.formats.custom.primitives import Primitives
from softnum.formats.modes import rounding_name

__all__ = ["BuiltInFormat", "width_of"]

_LEAST_BITS, _MOST_BITS = 3, 32


def width_of(what: str, bits: object) -> int:
    """bits as an int; TypeError or ValueError unless it is an integer in 3..32."""
    if isinstance(bits, bool) or not isinstance(bits, Integral):
        raise TypeError(f"{what}: bits must be an integer, got {bits!r}")
    if not _LEAST_BITS <= bits <= _MOST_BITS:
        raise ValueError(f"{what}: bits must lie in {_LEAST_BITS}..{_MOST_BITS}, got {bits}")
    return int(bits)


class BuiltInFormat(CustomFormat):
    """What these formats have in common. A class of them says what its codes are (``max_code``, ``smallest_code``,
    ``order_keys`` ...), `what_rounds` and, where it is more than the width, what makes the format."""

    what_rounds: str  # to nearest, a tie to the even one

    #: numbers beyond the ends become the values there, infinities NaN
    overflow_rules: tuple[str, ...] = ("saturate_finite",)
    has_exceptions = False
    has_nan = has_zero = signed = has_neighbours = True
    infinities = negative_zero = False

    def _value(self, code: int) -> float:
        return float(self._functions.as_float(np.array([code]))[0])

    @property
    def max(self) -> float:
        """Largest value; an irrational one rounded to binary64."""
        return self._value(self.max_code)

    @property
    def min(self) -> float:
        """Lowest value, -max."""
        return -self.max

    @property
    def smallest(self) -> float:
        """Smallest positive value; an irrational one rounded to binary64."""
        return self._value(self.smallest_code)

    @property
    def primitives(self) -> Primitives:
        """That of all primitives none is the user's."""
        return Primitives(dict.fromkeys(super().primitives, "derived"))

    def check_modes(self, rounding: str, overflow: str | None) -> None:
        """ValueError for every mode but nearest_even, and for every overflow rule but saturate_finite."""
        if rounding_name(rounding) != "nearest_even":
            raise ValueError(
                f"{self} is defined to round {self.what_rounds} to nearest, ties to even, only; leave "
                f"rounding={rounding!r} out, or round to a float format first"
            )
        if overflow not in (None, *self.overflow_rules):
            self.refuse_overflow(overflow)

    def infinities_saturate(self, overflow: str | None) -> bool:
        """False: they are NaN."""
        return False

    def refuse_overflow(self, rule: str) -> None:
        """ValueError for an overflow rule."""
        raise ValueError(
            f"{self} has no overflow: numbers beyond its range become {self.max:g} or {self.min:g}, and infinities "
            f"{self.class_names[0]}; leave overflow={rule!r} out"
        )

    @property
    def order(self) -> np.ndarray:
        """Each code's place in the total order, of up to 16 bits."""
        self._known("the order of codes")
        return self.order_keys(np.arange(1 << self.bits).astype(self.storage_dtype))

    def in_order(self, a: ArrayLike, b: ArrayLike) -> np.ndarray:
        """Whether a comes before b or is the same."""
        return self.order_keys(np.asarray(a)) <= self.order_keys(np.asarray(b))

    # -- in records and files ------------------------------------------------------------------------------------------
    label: Callable[..., str]
    own_widths: Callable[..., dict[str, int]]
    label, own_widths = AnyFormat.label, AnyFormat.own_widths

    def summary(self, source: str) -> dict[str, Any]:
        """Name and width, for a record: the name says which format it is."""
        return {"format": str(self), "bits": self.bits}

    @property
    def _made_of(self) -> tuple[int, ...]:
        """The arguments that make the format."""
        return (self.bits,)

    def to_data(self) -> dict[str, Any]:
        """All that makes the format, as plain data."""
        return {"kind": self.kind, "bits": self.bits}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> BuiltInFormat:
        """The format that `to_data` described, but for its kind."""
        return cls(**data)

    @property
    def described(self) -> str:
        """What errors call the format."""
        return self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(str, self._made_of))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._made_of

"""What every format answers, whatever kind it is of; a kind that has another answer says so itself."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from softnum.formats.codec import Arithmetic, Codec
from softnum.formats.facts import Facts

__all__ = ["AnyFormat", "SingleFormat", "format_of_data"]

_SAVED: dict[str, type[AnyFormat]] = {}


class AnyFormat:
    """A format of any kind. saved_as: the kind that its plain data state, and that is made of them again."""

    codec: ClassVar[Codec]
    array_class: ClassVar[type]  # what holds arrays of codes
    arithmetic: ClassVar[Arithmetic]
    nan_is_least = False  # whether a NaN is equal to itself and below all numbers, and not unordered
    rounds_as_odd = False  # whether any number rounds to it as that number rounded to odd in binary64 does
    bit_strings: tuple[int, bool, int] | None = None  # (bits, whether a takum, es), where its bit strings are rounded
    values_are_exact = True  # whether values are rational numbers, which decoding gives; those of logarithms are not
    has_exceptions = True  # whether operations raise flags, and round in modes
    spare_bits = 0  # of a significand, that values exact in a float type need not leave
    explicit_bit = False  # whether codes store the first bit of a significand
    has_fields = False  # whether codes are a sign if there is one, exponent and fraction, as of IEEE 754
    leads = False  # whether its arithmetic computes operations that it has part in, whatever the result's format is

    def __init_subclass__(cls, saved_as: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if saved_as is not None:
            _SAVED[saved_as] = cls

    def contains(self, other: object) -> bool | None:
        """Whether every finite value of another format is one of this; None where the facts alone do not tell."""
        if self == other:
            return True
        return None if other.element is other else False  # of blocks, codes are multiplied, not values

    def refuse_overflow(self, rule: str) -> None:
        """ValueError for an overflow rule, in the format's own words if it has some."""

    def label(self, source: str) -> str:
        """What a record calls it that found it under `source`: by its own name, which says what it is."""
        return str(self)

    def own_widths(self, source: str) -> dict[str, int]:
        """The width of a format that only the file of `source` knows, by its name there; {} of others."""
        return {}

    def to_data(self) -> dict[str, Any]:
        """All that makes the format, as plain data: what `softnum.save` writes and `format_of_data` reads."""
        raise NotImplementedError

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> AnyFormat:
        """The format that `to_data` described, but for its kind."""
        return cls(**data)


class SingleFormat(AnyFormat):
    """A format whose codes stand for a value each."""

    @property
    def element(self) -> Any:
        """The format of an element's code: the format itself."""
        return self

    def stored(self, numbers: ArrayLike) -> np.ndarray:
        """Integers that are codes as the array that holds codes."""
        return np.asarray(numbers, self.storage_dtype)

    @property
    def bits_per_value(self) -> int:
        """Bits that an element of an array takes."""
        return self.bits

    @property
    def value_facts(self) -> Facts:
        """What a proof needs of the values."""
        return Facts(*self.carrier_facts, self.has_nan or self.infinities)

    def scale_rule(self, rule: str | None) -> None:
        """How the scale of a block is chosen; ValueError for a rule, as there are no scales."""
        if rule is not None:
            raise ValueError(f"scale_rule={rule!r} is for block formats; {self} has no scales: leave it out")

    def summary(self, source: str) -> dict[str, Any]:
        """Name, width, and what else says which format it is, for a record that found it under `source`."""
        return {"format": str(self), "bits": self.bits}


def format_of_data(data: dict[str, Any]) -> AnyFormat:
    """The format that its `to_data` described; KeyError for a kind that there is none of."""
    data = dict(data)
    return _SAVED[data.pop("kind")].from_data(data)

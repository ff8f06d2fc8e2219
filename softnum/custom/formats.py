"""Formats of the user's own making. Today: a format that is a table of values."""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from numbers import Rational, Real

import numpy as np

from softnum import _core

__all__ = ["CustomFormat"]


class CustomFormat:
    """A format of up to 16 bits that is defined by its values alone: posit, logarithmic, NF4, anything.

    Make one with `from_table`. It works in `quantize`, `encode` and `decode`, and as the operand of a unit. A value
    rounds to one of its two neighbours in the table: a tie in nearest_even goes to the upper one if its code is even,
    else to the lower one; toward_zero takes the neighbour on zero's side, away_from_zero the other. Values beyond the
    largest or lowest one become that one (saturation); a NaN needs a NaN in the table.

    Examples
    --------
    >>> import softnum as sn
    >>> ternary = sn.CustomFormat.from_table([0.0, 1.0, float("nan"), -1.0], name="ternary")
    >>> sn.quantize([0.4, 0.6, -7.0], ternary)
    array([ 0.,  1., -1.])
    """

    kind = "table"
    infinities = False
    negative_zero = False

    def __init__(self, values: tuple[float, ...], name: str) -> None:
        self._values = values
        self.name = name

    @classmethod
    def from_table(cls, values, *, name: str = "table") -> CustomFormat:
        """The format in which code i stands for ``values[i]``.

        Parameters
        ----------
        values : sequence of float, length 2**bits with 1 <= bits <= 16
            Finite values, each once, in any order; NaN may stand for any number of codes (the first is the canonical).
        name : str

        Returns
        -------
        CustomFormat

        Raises
        ------
        ValueError
            If the length is no power of two up to 65536, a value is infinite or occurs twice, or all are NaN.

        Examples
        --------
        >>> import softnum as sn
        >>> sn.CustomFormat.from_table([0.0, 1.0, 2.0, 4.0], name="pow2").bits
        2
        """
        values = list(values)
        with _core.PlainEnvironment():
            table = tuple(float(v) if v != 0 else 0.0 for v in values)  # one zero, without sign
            for given, value in zip(values, table, strict=True):
                if given == given and given != value:
                    raise ValueError(f"from_table: {given!r} is not exact in binary64; round it first")
        n = len(table)
        if n < 2 or n > 65536 or n & (n - 1):
            raise ValueError(f"from_table takes 2**bits values with 1 <= bits <= 16, got {n}")
        finite = [v for v in table if v == v]
        if not finite:
            raise ValueError("from_table: all values are NaN")
        if any(abs(v) == float("inf") for v in finite):
            raise ValueError("from_table takes finite values and NaN; a table has no infinity")
        if len(set(finite)) != len(finite):
            twice = next(v for i, v in enumerate(finite) if v in finite[:i])
            raise ValueError(f"from_table: the value {twice!r} occurs more than once")
        return cls(tuple(float("nan") if v != v else v for v in table), name)

    # -- facts ---------------------------------------------------------------------------------------------------------
    @property
    def values(self) -> tuple[float, ...]:
        """The table: code i stands for ``values[i]``."""
        return self._values

    @cached_property
    def bits(self) -> int:
        """Width of a code in bits."""
        return (len(self._values) - 1).bit_length()

    @cached_property
    def storage_dtype(self) -> np.dtype:
        """The NumPy type of an array of codes."""
        return np.dtype(np.uint8 if self.bits <= 8 else np.uint16)

    @cached_property
    def has_nan(self) -> bool:
        """Whether some code is NaN."""
        return bool(np.isnan(self._table).any())

    @property
    def signed(self) -> bool:
        """Whether a value is negative."""
        return self.min < 0

    @property
    def max(self) -> float:
        """Largest value."""
        return float(self._sorted[-1])

    @property
    def min(self) -> float:
        """Lowest value."""
        return float(self._sorted[0])

    @cached_property
    def _table(self) -> np.ndarray:
        return np.array(self._values)

    @cached_property
    def _codes(self) -> np.ndarray:
        """Codes of the finite values, in ascending order of value."""
        order = np.argsort(self._table, kind="stable")
        return order[: np.count_nonzero(~np.isnan(self._table))].astype(self.storage_dtype)

    @cached_property
    def _sorted(self) -> np.ndarray:
        return self._table[self._codes]

    @cached_property
    def carrier_facts(self) -> tuple[int, int, int]:
        """(precision, lowest exponent of a last bit, highest exponent) that hold for all values."""
        precision, lowest, highest = 1, 0, None
        for value in (Fraction(v) for v in self._sorted if v != 0):
            top, bottom = abs(value.numerator), value.denominator
            zeros = (top & -top).bit_length() - 1
            last = zeros - (bottom.bit_length() - 1)
            precision = max(precision, (top >> zeros).bit_length())
            lowest = last if highest is None else min(lowest, last)
            exponent = last + (top >> zeros).bit_length() - 1
            highest = exponent if highest is None else max(highest, exponent)
        return precision, lowest, highest or 0

    # -- rounding ------------------------------------------------------------------------------------------------------
    def encode(self, x, rounding: str, overflow, words, stochastic_bits: int) -> np.ndarray:
        """Codes of the values x (exact in float64) in a nearest or directed mode."""
        if rounding.startswith("stochastic") or rounding == "to_odd":
            raise ValueError(
                f"rounding={rounding!r} is not defined for the value table {self}; use a nearest or directed mode"
            )
        if overflow not in (None, "saturate", "saturate_finite"):
            raise ValueError(f"the value table {self} saturates; overflow={overflow!r} is not defined for it")
        x = np.asarray(x)
        if x.dtype.kind == "O":
            return self._encode_exactly(x, rounding)
        if x.dtype.kind not in "fiub" or x.dtype.itemsize > 8:
            raise TypeError(f"{self} encodes arrays of float or integer values, got {x.dtype}")
        wide = x.astype(np.float64)
        if x.dtype.kind in "iu" and x.dtype.itemsize == 8 and not np.array_equal(wide.astype(object), x.astype(object)):
            raise ValueError("an integer beyond 2**53 is not exact in float64")
        nan = np.isnan(wide)
        if nan.any() and not self.has_nan:
            raise ValueError(f"encode: a value is NaN, and {self} has no code for it")
        table = self._sorted
        above = np.clip(np.searchsorted(table, wide, side="left"), 0, len(table) - 1)
        exact = (table[above] == wide) | (wide > table[-1]) | (wide < table[0])
        below = np.where(exact, above, above - 1)
        middle, error = (column[np.minimum(below, len(column) - 1)] for column in self._midpoints)
        side = np.where(wide == middle, error, np.where(wide > middle, 1, -1))
        code = np.asarray(self._codes[np.where(self._upper(wide < 0, side, above, rounding) & ~exact, above, below)])
        if nan.any():
            code[nan] = np.flatnonzero(np.isnan(self._table))[0]
        return code.astype(self.storage_dtype)

    def _encode_exactly(self, x, rounding: str) -> np.ndarray:
        """Codes of Python numbers, the Fractions among them too long for binary64."""
        code = np.empty(x.shape, self.storage_dtype)
        table = [Fraction(v) for v in self._sorted]
        for index, value in np.ndenumerate(x):
            if not isinstance(value, Real):
                raise TypeError(f"encode takes real numbers (int, float, Fraction), got {value!r}")
            if not isinstance(value, Rational):  # NaN and infinities are floats
                code[index] = self.encode(np.float64(value), rounding, None, None, 0)
                continue
            above = min(bisect_left(table, value), len(table) - 1)
            upper = above == 0 or value >= table[above]
            if not upper:
                double = 2 * Fraction(value)
                ends = table[above - 1] + table[above]
                side = (double > ends) - (double < ends)
                upper = self._upper(np.array(value < 0), np.array(side), np.array(above), rounding)
            code[index] = self._codes[above if upper else above - 1]
        return code

    def _upper(self, negative, side, above, rounding: str) -> np.ndarray:
        """Whether a number rounds to the upper of its neighbours; side: the sign of its distance to their middle."""
        match rounding:
            case "up":
                return np.ones_like(negative)
            case "down":
                return np.zeros_like(negative)
            case "toward_zero":
                return negative
            case "away_from_zero":
                return ~negative
        tie = {
            "nearest_even": (self._codes[above] & 1) == 0,
            "nearest_away": ~negative,
            "nearest_zero": negative,
            "nearest_up": np.ones_like(negative),
            "nearest_down": np.zeros_like(negative),
        }[rounding]
        return (side > 0) | ((side == 0) & tie)

    @cached_property
    def _midpoints(self) -> tuple[np.ndarray, np.ndarray]:
        """Halfway between neighbours in binary64, and the sign of its error: so ties are told from near-ties."""
        values = [Fraction(v) for v in self._sorted]
        exact = [(low + high) / 2 for low, high in pairwise(values)] or [Fraction(0)]
        middle = [float(m) for m in exact]
        error = [(Fraction(m) > e) - (Fraction(m) < e) for m, e in zip(middle, exact, strict=True)]
        return np.array(middle), np.array(error)

    def decode(self, codes, dtype) -> np.ndarray:
        """The values of codes, exact in dtype."""
        values = np.asarray(self._table[codes])
        with np.errstate(over="ignore"):
            narrow = values.astype(dtype)
        if not np.array_equal(narrow.astype(np.float64), values, equal_nan=True):
            raise ValueError(f"a value of {self} is not exact in {np.dtype(dtype)} (use a wider type)")
        return narrow

    def quantize(self, x, rounding: str, overflow, words, stochastic_bits: int) -> np.ndarray:
        """Values of the format nearest to x, in x's float type."""
        return self.decode(self.encode(x, rounding, overflow, words, stochastic_bits), x.dtype)

    # -- identity ------------------------------------------------------------------------------------------------------
    def _key(self) -> bytes:
        return self._table.tobytes()

    def __eq__(self, other) -> bool:
        return isinstance(other, CustomFormat) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        if self.bits > 4:
            return f"<CustomFormat {self.name}: {len(self._values)} values from {self.min!r} to {self.max!r}>"
        return f"CustomFormat.from_table({list(self._values)!r}, name={self.name!r})"

    def __reduce__(self):
        return CustomFormat, (self._values, self.name)

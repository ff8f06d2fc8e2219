"""Formats of up to 16 bits as tables of their values: what a value rounds to, and which code stands for it."""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from numbers import Rational, Real

import numpy as np

from softnum.formats.modes import family, goes_up

__all__ = ["ValueTable", "narrowed"]

_WORTH = 4096  # elements, from which rounding float32 by their leading bits is worth its table


class ValueTable:
    """The values of a format's codes, and rounding to the nearest of them.

    Of several codes of one value the lowest is taken; zero and infinities with either sign are values of their own. An
    infinity that is none of them is NaN, if there is one, unless it saturates; else it is the value at that end.

    Parameters
    ----------
    values : ndarray of float64, shape (2**bits,)
        Code i stands for ``values[i]``.
    name : str
        What errors call the format.
    storage : dtype
        Of the codes.
    between : ndarray of float64, optional
        Where rounding to nearest goes over from each of the finite values, in ascending order, to the next. Default:
        halfway between them.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.formats.custom.rounding import ValueTable
    >>> table = ValueTable(np.array([0.0, 1.0, 2.0, -1.0]), "mine", np.uint8)
    >>> table.encode(np.array([0.5, 0.6, 7.0]), "nearest_even")
    array([0, 1, 2], dtype=uint8)
    """

    def __init__(self, values: np.ndarray, name: str, storage, between: np.ndarray | None = None) -> None:
        self.values, self.name, self.storage, self._between = values, name, np.dtype(storage), between
        self.values.flags.writeable = False
        self._cells_of, self._in_types = {}, {}
        first = self._first_code
        self.nan_code, self.minus_zero = first(np.isnan(values)), first((values == 0) & np.signbit(values))
        self.infinity, self.minus_infinity = first(values == np.inf), first(values == -np.inf)
        finite = np.flatnonzero(np.isfinite(values))
        plus = finite[np.lexsort((finite, np.signbit(values[finite]), values[finite]))]  # +0 before -0, low codes first
        distinct = np.ones(len(plus), bool)
        distinct[1:] = values[plus[1:]] != values[plus[:-1]]
        #: Codes of the finite values, each once, in ascending order of value.
        self.codes = plus[distinct].astype(self.storage)
        self.sorted = values[self.codes]

    @staticmethod
    def _first_code(where: np.ndarray) -> int | None:
        found = np.flatnonzero(where)
        return int(found[0]) if len(found) else None

    # -- rounding ------------------------------------------------------------------------------------------------------
    def encode(self, x, rounding: str, instead: int | None = None, saturates: bool = False) -> np.ndarray:
        """Codes of the values x, exact in float64 or objects, in a nearest or directed mode.

        instead: the code of a NaN where the table has none; None: that is a ValueError. saturates: whether an infinity
        that the table lacks is the value at that end, and not NaN.
        """
        if np.asarray(x).dtype.kind == "O":
            return self._round_exactly(np.asarray(x), rounding, instead, saturates)
        codes, lost = self.rounded(x, rounding, saturates)
        if lost is not None and lost.any():
            if instead is not None:
                return np.where(lost, self.storage.type(instead), codes)
            raise ValueError(f"encode: a value is NaN, and {self.name} has no code for it")
        return codes

    def rounded(self, x, rounding: str, saturates: bool = False) -> tuple[np.ndarray, np.ndarray | None]:
        """(codes, where a NaN has none or None) of numbers that float64 holds"""
        x = np.asarray(x)
        if x.dtype != np.float32 or x.size < _WORTH:
            return self._round(x, rounding, saturates)
        codes, lost, split = self._cells(rounding, saturates)
        cell = x.view(np.uint32) >> np.uint32(16)
        found, missing = codes[cell], None if lost is None else lost[cell]
        rest = split[cell]
        found[rest], without = self._round(x[rest], rounding, saturates)
        if missing is not None:
            missing[rest] = without
        return found, missing

    def _cells(self, rounding: str, saturates: bool):
        """(code, whether it has none or None, whether it depends on the rest) for the leading 16 bits of a float32.

        Rounding is monotonic: where it makes one code of the first and the last number with the same leading bits, it
        makes it of those between.
        """
        key = rounding, saturates
        if key not in self._cells_of:
            first = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
            patterns = (first, first | np.uint32(0xFFFF))
            ends = [self._round(pattern.view(np.float32), rounding, saturates) for pattern in patterns]
            (codes, lost), (last, lost_last) = ends
            split = codes != last
            if lost is not None:
                split |= lost != lost_last
            self._cells_of[key] = codes, lost, split
        return self._cells_of[key]

    def _round(self, x, rounding: str, saturates: bool) -> tuple[np.ndarray, np.ndarray | None]:
        if x.dtype.kind not in "fiub" or x.dtype.itemsize > 8:
            raise TypeError(f"{self.name} encodes arrays of float or integer values, got {x.dtype}")
        wide = _widened(x)
        if x.dtype.kind in "iu" and x.dtype.itemsize == 8 and not np.array_equal(wide.astype(object), x.astype(object)):
            raise ValueError("an integer beyond 2**53 is not exact in float64")
        table = self.sorted
        above = np.clip(np.searchsorted(table, wide, side="left"), 0, len(table) - 1)
        exact = (table[above] == wide) | (wide > table[-1]) | (wide < table[0])
        below = np.where(exact, above, above - 1)
        middle, error = (column[np.minimum(below, len(column) - 1)] for column in self._midpoints)
        side = np.where(wide == middle, error, np.where(wide > middle, 1, -1))
        code = np.asarray(self.codes[np.where(self._upper(wide < 0, side, above, rounding) & ~exact, above, below)])
        if self.minus_zero is not None:
            code[np.signbit(wide) & (self.values[code] == 0)] = self.minus_zero
        for limit, special in ((np.inf, self.infinity), (-np.inf, self.minus_infinity)):
            special = self.nan_code if special is None and not saturates else special
            if special is not None:
                code[wide == limit] = special
        nan = np.isnan(wide)
        if self.nan_code is not None:
            code[nan] = self.nan_code
            return code, None
        return code, nan

    def _round_exactly(self, x, rounding: str, instead: int | None, saturates: bool) -> np.ndarray:
        """Codes of Python numbers, the Fractions among them too long for binary64."""
        code = np.empty(x.shape, self.storage)
        table = [Fraction(v) for v in self.sorted]
        for index, value in np.ndenumerate(x):
            if not isinstance(value, Real):
                raise TypeError(f"encode takes real numbers (int, float, Fraction), got {value!r}")
            if not isinstance(value, Rational):  # NaN, infinities and -0 are floats
                code[index] = self.encode(np.float64(value), rounding, instead, saturates)
                continue
            above = min(bisect_left(table, value), len(table) - 1)
            upper = above == 0 or value >= table[above]
            if not upper:
                middle = self._exact_midpoints[above - 1]
                side = (value > middle) - (value < middle)
                upper = self._upper(np.array(value < 0), np.array(side), np.array(above), rounding)
            found = self.codes[above if upper else above - 1]
            to_minus_zero = value < 0 and self.values[found] == 0 and self.minus_zero is not None
            code[index] = self.minus_zero if to_minus_zero else found
        return code

    def _upper(self, negative, side, above, rounding: str) -> np.ndarray:
        """Whether a number rounds to the upper of its neighbours; side: the sign of its distance from between them."""
        if rounding == "nearest_even":
            tie = (self.codes[above] & 1) == 0
        else:
            tie = np.where(negative, not goes_up(rounding, 1), goes_up(rounding, 0))
            if family(rounding) == "directed":
                return tie
        return (side > 0) | ((side == 0) & tie)

    @cached_property
    def _exact_midpoints(self) -> list[Fraction]:
        """Where rounding to nearest goes over from one value to the next."""
        if self._between is not None:
            return [Fraction(m) for m in self._between]
        values = [Fraction(v) for v in self.sorted]
        return [(low + high) / 2 for low, high in pairwise(values)]

    @cached_property
    def _midpoints(self) -> tuple[np.ndarray, np.ndarray]:
        """The points between neighbours in binary64, and the sign of their error: so ties are told from near-ties."""
        if self._between is not None:
            return self._between, np.zeros(len(self._between), np.int64)
        exact = self._exact_midpoints or [Fraction(0)]
        middle = [float(m) for m in exact]
        error = [(Fraction(m) > e) - (Fraction(m) < e) for m, e in zip(middle, exact, strict=True)]
        return np.array(middle), np.array(error)

    # -- facts ---------------------------------------------------------------------------------------------------------
    def in_type(self, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray | None]:
        """(the values in a float type, which of them are not exact in it, or None)"""
        if dtype not in self._in_types:
            narrow, inexact = narrowed(self.values, dtype)
            self._in_types[dtype] = narrow, inexact if inexact.any() else None
        return self._in_types[dtype]

    @cached_property
    def carrier_facts(self) -> tuple[int, int, int]:
        """(precision, lowest exponent of a last bit, highest exponent) that hold for all values."""
        mantissa, exponent = np.frexp(np.abs(self.sorted[self.sorted != 0]))
        if not len(mantissa):
            return 1, 0, 0
        whole = np.ldexp(mantissa, 53).astype(np.int64)
        zeros = np.frexp((whole & -whole).astype(np.float64))[1] - 1
        return 53 - int(zeros.min()), int((exponent - 53 + zeros).min()), int(exponent.max()) - 1

    @cached_property
    def _deciding(self) -> dict[bool, tuple[np.ndarray, np.ndarray]]:
        """The points that decide a rounding, to nearest (True) or directed: the largest float64 below or at each, and
        the least above or at it, in ascending order."""
        found = {}
        for nearest, points in ((True, self._exact_midpoints), (False, [Fraction(v) for v in self.sorted])):
            low = np.array([float(p) for p in points], np.float64)
            high = low.copy()
            for i, (about, point) in enumerate(zip(low.tolist(), points, strict=True)):
                if Fraction(about) < point:
                    high[i] = np.nextafter(about, np.inf)
                elif Fraction(about) > point:
                    low[i] = np.nextafter(about, -np.inf)
            found[nearest] = low, high
        return found

    def undecided(self, z: np.ndarray, rounding: str) -> np.ndarray:
        """Where inexact numbers, rounded to odd in float64, may round to the table otherwise than before.

        Such a z has an odd last bit and stands for any number between its neighbours; the rounding is known unless a
        point that decides it lies there.
        """
        low, high = self._deciding[rounding.startswith("nearest")]
        inexact = np.isfinite(z) & (z.view(np.uint64) & np.uint64(1) == 1)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            below, above = np.nextafter(z, -np.inf), np.nextafter(z, np.inf)
        return inexact & (np.searchsorted(low, above, "left") > np.searchsorted(high, below, "right"))

    # -- codes of values that are known to be in the table -------------------------------------------------------------
    @cached_property
    def _every(self) -> tuple[np.ndarray, np.ndarray]:
        """(the values but NaN and -0 in ascending order, their codes)"""
        ends = [(v, c) for v, c in ((-np.inf, self.minus_infinity), (np.inf, self.infinity)) if c is not None]
        values = np.concatenate([self.sorted, [v for v, _ in ends]])
        codes = np.concatenate([self.codes, np.array([c for _, c in ends], self.storage)])
        order = np.argsort(values, kind="stable")
        return values[order], codes[order]

    @cached_property
    def _by_leading_bits(self) -> tuple[np.ndarray, np.ndarray] | None:
        """`find` by the leading 16 bits of a float32, if no value has more: (codes, where a value is none)"""
        narrow, inexact = self.in_type(np.dtype(np.float32))
        if inexact is not None or (narrow.view(np.uint32) & 0xFFFF).any():
            return None
        return self._find((np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)).view(np.float32))

    def find(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(the codes of float values, where a value is none of the table's; the lowest code of each value)"""
        leading = self._by_leading_bits if x.dtype == np.float32 and x.size >= _WORTH else None
        if leading is None:
            return self._find(x)
        pattern = x.view(np.uint32)
        cell = pattern >> np.uint32(16)
        found, missing = leading[0][cell], leading[1][cell] | ((pattern & np.uint32(0xFFFF)) != 0)
        return self._with_nan(x, found, missing)

    def _find(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, codes = self._every
        x = _widened(x)
        at = np.minimum(np.searchsorted(values, x), len(values) - 1)
        found, missing = np.asarray(codes[at]), np.asarray(values[at] != x)
        if self.minus_zero is not None:
            found[(x == 0) & np.signbit(x)] = self.minus_zero
        return self._with_nan(x, found, missing)

    def _with_nan(self, x, found, missing) -> tuple[np.ndarray, np.ndarray]:
        if self.nan_code is not None:
            nan = np.isnan(x)
            found[nan], missing[nan] = self.nan_code, False
        return found, missing

    @cached_property
    def order(self) -> np.ndarray:
        """For each code its place in the total order: by value, -0 below +0, NaNs last, and by code among equals."""
        codes = np.arange(len(self.values))
        nan = np.isnan(self.values)
        values = np.where(nan, 0.0, self.values)
        place = np.empty(len(codes), self.storage)
        place[np.lexsort((codes, ~np.signbit(values), values, nan))] = codes
        return place


def narrowed(values: np.ndarray, dtype) -> tuple[np.ndarray, np.ndarray]:
    """(float64 values in another float type, which of them are not exact in it)"""
    with np.errstate(over="ignore", under="ignore"):
        narrow = values.astype(dtype)
    return narrow, (narrow != values) & ~np.isnan(values)


def _widened(x: np.ndarray) -> np.ndarray:
    """x in float64; signaling NaNs are only NaNs."""
    with np.errstate(invalid="ignore"):
        return x.astype(np.float64)

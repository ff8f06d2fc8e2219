"""Posits and linear takums: formats whose codes are two's complement, and whose exponents take more bits far from 1.

Of both, a positive code is a bit string that goes on with zeros, a longer string is a finer number, and rounding cuts
the string of a number off: to nearest, a tie to the even code. No number but 0 becomes 0, and none becomes NaR, "not a
real", the code of the sign bit alone, which stands for every NaN and infinity.

Sources: Standard for Posit Arithmetic (2022); Hunhold 2024, "Beating Posits at Their Own Game: Takum Arithmetic"
(arXiv 2404.18603), linear takums as of Hunhold 2024 (arXiv 2408.10594).
"""

from __future__ import annotations

import re
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from softnum.formats.built_in import BuiltInFormat, width_of
from softnum.formats.codes import BitStringCodes
from softnum.formats.custom.primitives import storage_of
from softnum.formats.names import register_family
from softnum.runtime import _tables
from softnum.runtime.plain import plain

__all__ = ["PositFormat", "TakumLinearFormat", "TaperedFormat"]

_TABULATED, _SHORT = 16, 8  # bits of a code
_MOST_ES = 5  # so that all values of 32 bits, and half-way points, are values of binary64


class _Strings:
    """The bit strings of one format: what `CustomFormat` takes of a format's functions."""

    language = "strings"
    operations: tuple[str, ...] = ()
    values_are = "double"
    convert_takes: np.dtype = np.dtype(np.float64)

    def __init__(self, bits: int, takum: bool, es: int = 0) -> None:
        self.bits: int = bits
        self.storage: np.dtype = storage_of(bits)
        self.takum: bool = takum
        self.es: int = es
        self.key: tuple[int, bool, int] = bits, takum, es

    def as_float(self, codes: ArrayLike) -> np.ndarray:
        """The values of codes, float64."""
        codes = np.asarray(codes, self.storage, order="C")
        values = np.empty(codes.shape, np.float64)
        _tables.tapered_values(self.key, codes, values)
        return values

    def convert(self, values: ArrayLike) -> np.ndarray:
        """The codes that float64 values round to."""
        values = np.asarray(values, np.float64, order="C")
        codes = np.empty(values.shape, self.storage)
        _tables.tapered_codes(self.key, values, codes)
        return codes

    def between(self) -> np.ndarray:
        """Where rounding goes over from each value to the next, in ascending order: a string that is a bit longer."""
        longer = _Strings(self.bits + 1, self.takum, self.es)
        points = longer.as_float(2 * np.arange(1, (1 << (self.bits - 1)) - 1) + 1)
        return np.concatenate([-points[::-1], [0.0, 0.0], points])

    def partly(self, name: str, *operands: ArrayLike) -> tuple[np.ndarray, None]:
        """(codes of values, None)"""
        return self.convert(*operands), None


class TaperedFormat(BitStringCodes, BuiltInFormat):
    """What posits and linear takums have in common: `PositFormat`, `TakumLinearFormat`."""

    #: what decides a rounding has 32 bits at most, within the range of binary64
    rounds_as_odd = True
    what_rounds = "its bit string"

    def __init__(self, strings: _Strings, name: str, kind: str) -> None:
        self._set(strings, name, kind, strings.between() if strings.bits <= _TABULATED else None)

    @property
    def bit_strings(self) -> tuple[int, bool, int]:
        """(bits, whether a takum, es)"""
        return self._functions.key

    @property
    def precision(self) -> int:
        """Most bits of a significand, the hidden one included: that of numbers beside 1."""
        return self.carrier_facts[0]

    def encode(
        self, x: ArrayLike, rounding: str = "nearest_even", overflow: str | None = None, instead: int | None = None
    ) -> np.ndarray:
        """Codes of the values x (numbers of any kind, taken exactly)."""
        x = np.asarray(x)
        if self.bits <= _SHORT and x.dtype == np.float32:  # by their leading bits
            self.check_modes(rounding, overflow)
            return self._table.encode(x, "nearest_even")
        return super().encode(x, rounding, overflow, instead)

    def decode(self, codes: ArrayLike, dtype: DTypeLike) -> np.ndarray:
        """The values of codes, exact in dtype."""
        if self._table is None and np.dtype(dtype) == np.float64:  # which holds them all
            return self._functions.as_float(codes)
        return super().decode(codes, dtype)

    @plain
    def find(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(codes of float values that are the format's, where one is not)"""
        if self.bits <= _SHORT and x.dtype == np.float32:  # by their leading bits
            return super().find(x)
        wide = np.asarray(x, np.float64)
        codes = self._functions.convert(wide)
        return codes, (self._functions.as_float(codes) != wide) & ~np.isnan(wide)


class PositFormat(TaperedFormat, saved_as="posit"):
    """A posit of the Posit Standard (2022): sign, regime, exponent, fraction; ``softnum.format("posit16")``.

    Its codes are two's complement: negation is that of integers, and integers compare as values do. Code 0 is 0, the
    sign bit alone is NaR ("not a real"), which decodes to NaN, and which every NaN and infinity, 1 / 0 and sqrt(-1)
    become. NaR is equal to itself and less than every number. Numbers round on the bit string, to nearest and a tie to
    the even code; those beyond the ends become the largest and the lowest value, and no number but 0 becomes 0.
    ``rounding=``, ``overflow=`` and ``return_flags=`` are refused: posits have one rounding and no exceptions.

    Parameters
    ----------
    bits : int
        Width of a code, 3 to 32.
    es : int
        Bits of exponent, 0 to 5. The standard has 2.

    Raises
    ------
    ValueError
        If a width is out of range.

    Examples
    --------
    >>> import softnum as sn
    >>> posit8 = sn.PositFormat(8)
    >>> posit8 == sn.format("posit8"), sn.PositFormat(8, es=0).name
    (True, 'posit8_es0')
    >>> sn.array([3.14159, 1e-9, 1e9], posit8)
    Array([3.25000000e+00, 5.96046448e-08, 1.67772160e+07], posit8)
    >>> sn.array([1.0, -1.0], posit8) / sn.array([0.0, 3.0], posit8)
    Array([     nan, -0.34375], posit8)
    """

    def __init__(self, bits: int, es: int = 2) -> None:
        bits = width_of("PositFormat", bits)
        if isinstance(es, bool) or not isinstance(es, Integral):
            raise TypeError(f"PositFormat: es must be an integer, got {es!r}")
        if not 0 <= es <= _MOST_ES:
            raise ValueError(f"PositFormat: es must lie in 0..{_MOST_ES}, got {es}")
        #: Bits of exponent.
        self.es: int = int(es)
        super().__init__(_Strings(bits, False, self.es), f"posit{bits}" + (f"_es{es}" if es != 2 else ""), "posit")

    def _fields(self, rest: str) -> list[tuple[str, int]]:
        """(name, width) of what comes after the sign and before the fraction."""
        run = len(rest) - len(rest.lstrip(rest[0]))
        return [("regime", run + 1), ("exponent", self.es)]

    @property
    def _made_of(self) -> tuple[int, ...]:
        return (self.bits,) if self.es == 2 else (self.bits, self.es)

    @property
    def carrier_facts(self) -> tuple[int, int, int]:
        """(precision, lowest exponent of a last bit, highest exponent) that hold for all values."""
        top = (self.bits - 2) << self.es
        return max(self.bits - 2 - self.es, 1), -top, top

    def to_data(self) -> dict[str, Any]:
        """All that makes the format, as plain data."""
        return {**super().to_data(), "es": self.es}


class TakumLinearFormat(TaperedFormat, saved_as="takum_linear"):
    """A linear takum (Hunhold 2024): ``softnum.format("takum_linear16")``.

    After the sign come a direction bit D, three bits of regime, so many bits of characteristic c as they say (r, or
    7 - r below 1), and a fraction f; a positive code is ``2**c * (1 + f)``, with c from -255 to 254, and a bit string
    that ends early goes on with zeros. Negation, order, NaR, rounding and what is refused are as in `PositFormat`.

    Parameters
    ----------
    bits : int
        Width of a code, 3 to 32; from 12 on all have the same range.

    Raises
    ------
    ValueError
        If the width is out of range.

    Examples
    --------
    >>> import softnum as sn
    >>> takum = sn.TakumLinearFormat(16)
    >>> takum == sn.format("takum_linear16")
    True
    >>> sn.array([3.14159, 1e-99, -1e99], takum)
    Array([ 3.14062500e+00,  1.83518582e-77, -5.60867932e+76], takum_linear16)
    """

    def __init__(self, bits: int) -> None:
        bits = width_of("TakumLinearFormat", bits)
        super().__init__(_Strings(bits, True), f"takum_linear{bits}", "takum_linear")

    @property
    def carrier_facts(self) -> tuple[int, int, int]:
        """(precision, lowest exponent of a last bit, highest exponent) that hold for all values."""
        if self._table is not None:
            return self._table.carrier_facts
        return self.bits - 4, -255 - (self.bits - 12), 254


def _posit_of(bits: str, es: str | None) -> PositFormat:
    return PositFormat(int(bits)) if es is None else PositFormat(int(bits), int(es))


register_family(re.compile(r"posit(\d{1,2})(?:_es(\d))?"), _posit_of)
register_family(re.compile(r"takum_linear(\d{1,2})"), lambda bits: TakumLinearFormat(int(bits)))

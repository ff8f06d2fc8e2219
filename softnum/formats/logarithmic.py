"""Logarithmic numbers: takums and lnsI.F, a sign and a logarithm of the magnitude that has some bits of fraction.

Their values are irrational but for a few: they cannot be written in binary. Decoding rounds them, and what needs exact
values refuses them. What is computed is the real number all the same: products, quotients and roots by integer
arithmetic on logarithms, everything else by enclosures in more and more digits until they decide
(csrc/softnum/elementary/logarithmic.h).

Real numbers round in the logarithm, to nearest, a tie to the even code: of a takum by its bit string, as its definition
says, of an lns by the field of its logarithm.

Sources: Hunhold 2024, "Beating Posits at Their Own Game: Takum Arithmetic" (arXiv 2404.18603), with libtakum 1.0.1; the
codes, NaN and underflow of lnsI.F are those of Universal's lns<I + F + 1, F>, which saturates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from softnum.formats.base import AnyFormat
from softnum.formats.built_in import BuiltInFormat, width_of
from softnum.formats.codes import BitStringCodes, TwosComplementCodes
from softnum.formats.custom.formats import CustomFormat
from softnum.formats.custom.primitives import storage_of
from softnum.formats.custom.rounding import ValueTable
from softnum.formats.modes import ROUNDING_MODES
from softnum.formats.names import register_family
from softnum.formats.operation_names import USER_OPERANDS
from softnum.runtime import _tables
from softnum.runtime.threads import for_ranges

__all__ = ["LnsFormat", "LogarithmicFormat", "TakumFormat"]

_MOST_INTEGER_BITS = 10  # of an lns, so that binary64 has normal numbers in the places of all values
_MOST_NUMBER_BITS = 53  # of numbers of other formats beside logarithmic ones, which binary64 holds
_GRAIN = 2048  # results for each thread
_MOST_DIGITS = 5000  # of decimal fractions, for numbers that binary64 does not hold
_BINARY64 = (_tables.BINARY64, 64, 0)
_SIGN = np.uint64(1 << 63)
_OF_NUMBERS = ("add", "subtract", "scalb", "convert", "sqrt")  # whose operands may all be of other formats
_NOT_OWN = ("remainder", "round_to_integral")
_STEPS = {"next_up": 1, "next_down": -1}


class _Logarithms:
    """The codes of one format: what `CustomFormat` takes of a format's functions."""

    language = "logarithms"
    operations = tuple(name for name in USER_OPERANDS if name not in _NOT_OWN)
    values_are = "double"
    convert_takes = np.dtype(np.float64)

    def __init__(self, kind: int, bits: int, fraction: int = 0) -> None:
        self.bits, self.storage = bits, storage_of(bits)
        self.key = kind, bits, fraction

    def as_float(self, codes, rounding: str = "nearest_even") -> np.ndarray:
        """The values of codes, rounded to float64."""
        return compute("convert", (self.key,), _BINARY64, [codes], rounding).view(np.float64)

    def convert(self, values) -> np.ndarray:
        """The codes that float64 values round to."""
        values = np.asarray(values, np.float64, order="C")
        return compute("convert", (_BINARY64,), self.key, [values.view(np.uint64)]).astype(self.storage)

    def partly(self, name: str, *operands) -> tuple[np.ndarray, None]:
        """(codes of values, None)"""
        return self.convert(*operands), None


def compute(name: str, keys: Any, out_key: Any, codes: ArrayLike, rounding: str = "nearest_even") -> np.ndarray:
    """The codes of results, uint64: of floats in binary64, rounded in this mode.

    Parameters
    ----------
    name : str
        An operation of `softnum.runtime._tables.LOGARITHMIC` or an elementary function.
    keys, out_key : tuple
        (kind, bits, fraction bits) of the operands' formats and the result's, those of `_Logarithms` or of binary64.
    codes : sequence of arrays of unsigned integers
        Broadcast against each other.

    Raises
    ------
    ArithmeticError
        If a result lies so close to a point where rounding goes over that 2048 bits do not tell; none is known.
    """
    shape = np.broadcast_shapes(*(np.shape(x) for x in codes))
    given = tuple(np.broadcast_to(x, shape).astype(np.uint64).ravel() for x in codes)
    out = np.empty(given[0].size, np.uint64)
    mode = ROUNDING_MODES[rounding]

    def run(start, stop):
        known = _tables.logarithmic(
            name, tuple(keys), out_key, mode, tuple(x[start:stop] for x in given), out[start:stop]
        )
        if known < stop - start:
            codes = ", ".join(f"{int(x[start + known]):#x}" for x in given)
            raise ArithmeticError(f"{name} of {codes}: the rounding is not decided with 2048 bits")

    for_ranges(out.size, run, None, _GRAIN)
    return out.reshape(shape)


class _Table(ValueTable):
    """The values of up to 16 bits, rounded to float64, and where rounding goes over between them.

    points: those places, the nearest float64 below each that is irrational.
    """

    def __init__(self, fmt: LogarithmicFormat, points: np.ndarray) -> None:
        codes = np.arange(1 << fmt.bits).astype(fmt.storage_dtype)
        self._odd = fmt.core_values(codes)
        super().__init__(fmt._functions.as_float(codes), fmt.name, fmt.storage_dtype, points)

    @cached_property
    def _midpoints(self) -> tuple[np.ndarray, np.ndarray]:
        return self._between, np.full(len(self._between), -1)

    def in_type(self, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray | None]:
        """(the values rounded to a float type, which of them are not told apart there, or None)"""
        if dtype not in self._in_types:
            narrow = self.values if dtype == np.float64 else _narrowed(self._odd, dtype)
            codes = np.arange(len(narrow)).astype(self.storage)
            lost = ~_kept(narrow, codes, lambda x: self._round(x, "nearest_even", False)[0])
            self._in_types[dtype] = narrow, lost if lost.any() else None
        return self._in_types[dtype]

    def _find(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        narrow, lost = self.in_type(x.dtype)
        codes = self._round(x, "nearest_even", False)[0]
        missing = narrow[codes] != x
        if lost is not None:
            missing |= lost[codes]
        return self._with_nan(x, codes, missing)

    @property
    def _by_leading_bits(self) -> None:
        return None


def _narrowed(odd: np.ndarray, dtype) -> np.ndarray:
    """Values rounded to odd in float64 in a narrower type: rounded once."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return odd.astype(dtype)


def _kept(narrow: np.ndarray, codes: np.ndarray, encode) -> np.ndarray:
    """Where a value rounded to a float type is a normal number, 0 or NaN, and rounds to the code that it came from."""
    size = np.abs(narrow)
    normal = (size >= np.finfo(narrow.dtype).tiny) & np.isfinite(size) | (size == 0)
    return np.isnan(narrow) | (normal & (encode(narrow) == codes))


class LogarithmicFormat(BuiltInFormat):
    """What takums and lnsI.F have in common: `TakumFormat`, `LnsFormat`."""

    #: values are irrational: decoding rounds them, and exact sums refuse them
    values_are_exact = False
    what_rounds = "logarithms"
    precision = None  # values have no last bit

    def _of(self, functions: _Logarithms, name: str, kind: str) -> None:
        self._functions, self._tables = functions, {}
        self.name: str = name
        self.kind: str = kind
        self.lost = "NaN"
        self.bits: int = functions.bits
        self.storage_dtype: np.dtype = functions.storage

    @cached_property
    def _table(self) -> _Table | None:
        return _Table(self, self._points()) if self.bits <= 16 else None

    @property
    def carrier_facts(self) -> tuple[int, int, int]:
        """(precision, lowest exponent of a last bit, highest exponent) of the values rounded to binary64."""
        low, high = (int(np.frexp(x)[1]) - 1 for x in (self.smallest, self.max))
        return 53, low - 52, high

    # -- operations ----------------------------------------------------------------------------------------------------
    def has_own(self, name: str, formats: Sequence[AnyFormat]) -> bool:
        """Whether an operation on operands of these formats is computed on their logarithms; ValueError where it is
        not, and cannot be derived from values."""
        if name == "round_to_integral":
            return False
        check_operands(name, formats, self)
        return True

    def own(self, name: str, formats: Sequence[AnyFormat], codes: ArrayLike) -> np.ndarray:
        """The results of such an operation."""
        codes = [np.asarray(c) for c in codes]
        if name in _STEPS:
            return self.stepped(codes[0], _STEPS[name])
        if name in ("negate", "absolute", "copysign"):
            negative = self.sign_bits(codes[0])
            wanted = ~negative if name == "negate" else self.sign_bits(codes[1]) if name == "copysign" else False
            return np.where(negative != wanted, self.negated(codes[0]), codes[0]).astype(self.storage_dtype)
        if name.startswith(("minimum", "maximum")):
            return self._chosen(name, *np.broadcast_arrays(*codes))
        if name == "convert" and formats[0].values_are_exact and formats[0].value_facts.precision > _MOST_NUMBER_BITS:
            return self.encode(formats[0].codec.decode(codes[0], formats[0], object))
        found = compute(*logarithms_of(name, formats, codes, self._functions.key))
        return found.astype(self.storage_dtype)

    def _chosen(self, name: str, a, b) -> np.ndarray:
        first = (self.value_keys(a) <= self.value_keys(b)) == name.startswith("minimum")
        chosen = np.where(first, a, b)
        x, y = self.is_nan(a), self.is_nan(b)
        if name.endswith("number"):
            return np.where(x, b, np.where(y, a, chosen))
        return np.where(x, a, np.where(y, b, chosen))

    # -- values to codes and back --------------------------------------------------------------------------------------
    def core_values(self, codes: ArrayLike) -> np.ndarray:
        """The values rounded to odd in float64: to fewer bits they round, and by such numbers they lie, as those."""
        return self._functions.as_float(codes, "to_odd")

    def encode(
        self, x: ArrayLike, rounding: str = "nearest_even", overflow: str | None = None, instead: int | None = None
    ) -> np.ndarray:
        """Codes of the values x (numbers of any kind, taken exactly)."""
        self.check_modes(rounding, overflow)
        x = np.asarray(x)
        if x.dtype.kind not in "fiubO":
            raise TypeError(f"{self.name} encodes arrays of numbers, got {x.dtype}")
        if x.dtype.kind == "O" or (x.dtype.kind in "iu" and x.dtype.itemsize == 8):
            z = self.for_convert(x)
            return self._of_odd(x, z)
        if self._table is not None:
            return self._table.encode(x, "nearest_even")
        with np.errstate(invalid="ignore"):
            return self._functions.convert(x)

    def _of_odd(self, x, z) -> np.ndarray:
        """Codes of exact numbers, and what they are rounded to odd in float64."""
        with np.errstate(all="ignore"):
            low, high = (self._functions.convert(np.nextafter(z, end)) for end in (-np.inf, np.inf))
        codes = self._functions.convert(z)
        for at in map(tuple, np.argwhere((low != high) & np.isfinite(z))):
            if Fraction(x[at]) != Fraction(float(z[at])):
                codes[at] = self._of_fraction(Fraction(x[at]))
        return codes

    def _of_fraction(self, x: Fraction) -> int:
        """The code of a number that binary64 does not tell from a point where rounding goes over: by logarithms in more
        and more decimal digits, until both ends of what they may be have one code."""
        from decimal import Context, Decimal, localcontext

        digits = 40
        while digits <= _MOST_DIGITS:
            with localcontext(Context(prec=digits, Emin=-(10**8), Emax=10**8)):
                log = (Decimal(abs(x.numerator)).ln() - Decimal(x.denominator).ln()) * self._of_logarithm(Decimal)
                error = (abs(log) + 3000) * Decimal(10) ** (3 - digits)
                ends = [self._of_log(Fraction(log + e)) for e in (-error, error)]
            if ends[0] == ends[1]:
                return int(self.negated(np.array(ends[0], self.storage_dtype))) if x < 0 else ends[0]
            digits *= 2
        raise ArithmeticError(f"{x} in {self}: the rounding is not decided with {_MOST_DIGITS} digits")

    def _of_log(self, log: Fraction) -> int:
        """The code of the positive number whose logarithm in the format's base is given."""
        number = CustomFormat.for_convert(self, np.array([log / self._per_exponential], object))
        name = self._exponential
        return int(compute(name, (_BINARY64,), self._functions.key, [number.view(np.uint64)])[0])

    def decode(self, codes: ArrayLike, dtype: DTypeLike) -> np.ndarray:
        """The values of codes, rounded to dtype; ValueError for one that is not told from its neighbours there."""
        dtype = np.dtype(dtype)
        if self._table is not None:
            return super().decode(codes, dtype)
        if dtype == np.float64:
            return self._functions.as_float(codes)
        codes = np.asarray(codes)
        narrow = _narrowed(self.core_values(codes), dtype)
        if not _kept(narrow, codes, self._functions.convert).all():
            raise ValueError(self._narrow.format(self, dtype))
        return narrow

    #: what is said of a value that a float type has no number for
    _narrow = "a value of {} is not told from its neighbours in {}, or beyond its numbers (use a wider type)"

    def exact_number(self, code: int) -> Fraction | float:
        """The value of a code, which is 0, NaN or rational; ValueError of others."""
        (odd,) = self.core_values(np.array([code])).tolist()
        if odd != odd:
            return odd
        (up,) = self._functions.as_float(np.array([code]), "up").tolist()
        (down,) = self._functions.as_float(np.array([code]), "down").tolist()
        if up != down:
            raise ValueError(
                f"the value of code {code:#x} of {self} is irrational, {odd!r}...: no float is exact (decode rounds it "
                "to float64)"
            )
        return Fraction(odd)

    def find(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(codes of float values that are the format's, rounded to that type, and where one is not)"""
        if self._table is not None:
            return self._table.find(x)
        with np.errstate(invalid="ignore"):
            codes = self._functions.convert(x)
        values = (
            _narrowed(self.core_values(codes), x.dtype) if x.dtype != np.float64 else self._functions.as_float(codes)
        )
        return codes, (values != x) & ~(np.isnan(values) & np.isnan(x))


def check_operands(name: str, formats: Sequence[AnyFormat], out: np.ndarray | None) -> None:
    """ValueError unless an operation is defined for operands of these formats, some of them logarithmic, or the result.

    Numbers of other formats may be operands of add, subtract and fma, dividends, one factor, and what is converted; a
    product of two of them, into a logarithmic format, must have 63 bits.
    """
    numbers = [f for f in formats if f.values_are_exact]
    if name in _NOT_OWN:
        raise ValueError(f"{name} is not defined for logarithmic numbers ({_first(formats, out)}); decode them first")
    if numbers and name in ("multiply", "fma"):
        factors = [f for f in formats[:2] if f.values_are_exact]
        if len(factors) == 2 and sum(f.value_facts.precision for f in factors) > 63:
            raise ValueError(
                f"{name}: the product of {factors[0]} and {factors[1]} has more than 63 bits, too many to be rounded "
                f"to {out}; convert the operands first"
            )
    elif numbers and name not in _OF_NUMBERS and (name != "divide" or formats[1].values_are_exact):
        raise ValueError(
            f"{name} of {' and '.join(map(str, formats))} is not defined into {out}; convert the operands first"
        )
    wide = next((f for f in numbers if f.value_facts.precision > _MOST_NUMBER_BITS), None)
    if wide is not None and name != "convert":
        raise ValueError(
            f"{name}: numbers of {wide} have more than {_MOST_NUMBER_BITS} bits, the limit of operands beside "
            "logarithmic numbers; convert them first"
        )
    if name in ("pow", "hypot", "cbrt") and any(type(f) is not type(out) for f in formats):
        raise ValueError(
            f"{name} of {_first(formats, out)} can only be rounded to formats of its own base, and {out} is not one; "
            "convert the result"
        )


def _first(formats, out):
    return next((f for f in (*formats, out) if not f.values_are_exact), out)


def logarithms_of(
    name: str, formats: Sequence[AnyFormat], codes: ArrayLike, out_key: Any, rounding: str = "nearest_even"
) -> tuple[Any, ...]:
    """The arguments of `compute` for an operation on codes of formats of either kind."""
    if name == "scalb":  # times 2^n, which is a number; beyond 1000 no value of either kind is left
        n = np.clip(np.asarray(codes[1]).astype(np.uint32).view(np.int32), -1000, 1000)
        keys, given = _of_numbers(formats[:1], codes[:1])
        return "multiply", (*keys, _BINARY64), out_key, [*given, np.ldexp(1.0, n).view(np.uint64)], rounding
    keys, given = _of_numbers(formats, codes)
    return name, keys, out_key, given, rounding


def _of_numbers(formats, codes) -> tuple[tuple, list]:
    keys = tuple(_BINARY64 if f.values_are_exact else f._functions.key for f in formats)
    given = []
    for f, c in zip(formats, codes, strict=True):
        if f.values_are_exact:
            c = np.ascontiguousarray(f.codec.decode(c, f, np.float64)).view(np.uint64).reshape(np.shape(c))
        given.append(c)
    return keys, given


def products_of(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """A number for each pair of codes of two formats of one kind, the same one where their product is the same."""
    if type(a) is not type(b):
        raise ValueError(f"products of {a} and {b} are not sums of two logarithms of one base")
    codes = [np.arange(1 << f.bits).astype(f.storage_dtype) for f in (a, b)]
    logs = [f.logarithms(c) for f, c in zip((a, b), codes, strict=True)]
    signs, zero, nan = (
        [method(f, c) for f, c in zip((a, b), codes, strict=True)]
        for method in (lambda f, c: f.sign_bits(c), lambda f, c: f.is_zero(c), lambda f, c: f.is_nan(c))
    )
    sums = (logs[0][:, None] + logs[1]) * 2 + (signs[0][:, None] ^ signs[1])
    found = np.where(nan[0][:, None] | nan[1], -1 << 61, np.where(zero[0][:, None] | zero[1], 1 << 61, sums))
    return found.ravel()


class TakumFormat(BitStringCodes, LogarithmicFormat, saved_as="takum"):
    """A takum of N bits (Hunhold 2024), logarithmic: ``softnum.format("takum16")``.

    After the sign come a direction bit D, three bits of regime, so many bits of characteristic c as they say, and a
    fraction m, as in a `TakumLinearFormat`; a positive code is ``sqrt(e)**(c + m)``. Negation, order and NaR are as in
    `PositFormat`. All values but 0, 1 and -1 are irrational: decoding rounds them.

    Parameters
    ----------
    bits : int
        Width of a code, 3 to 32.

    Raises
    ------
    ValueError
        If the width is out of range.

    Examples
    --------
    >>> import softnum as sn
    >>> takum = sn.TakumFormat(8)
    >>> takum == sn.format("takum8")
    True
    >>> a = sn.array([1.0, 2.0, -3.0], takum)
    >>> a
    Array([ 1.        ,  2.11700002, -3.08021685], takum8)
    >>> a * a
    Array([1.        , 4.48168907, 9.48773584], takum8)
    """

    _exponential, _per_exponential = "exp", 2

    def __init__(self, bits: int) -> None:
        bits = width_of("TakumFormat", bits)
        self._of(_Logarithms(_tables.TAKUM, bits), f"takum{bits}", "takum")

    @staticmethod
    def _of_logarithm(decimal):
        return decimal(2)

    def logarithms(self, codes: np.ndarray) -> np.ndarray:
        """The logarithms of magnitudes, int64 in units of 2**-32; of no meaning for 0 and NaR."""
        number = np.empty(codes.shape, np.float64)
        _tables.tapered_values((self.bits, True, 0), codes, number)  # 2**c (1 + m)
        bits = number.view(np.int64) & ((1 << 63) - 1)
        return (bits >> 20) - (1023 << 32)

    def _points(self) -> np.ndarray:
        longer = _Logarithms(_tables.TAKUM, self.bits + 1)
        codes = 2 * np.arange(1, self.max_code) + 1
        points = longer.as_float(np.concatenate([(4 << (self.bits - 1)) - codes[::-1], codes]), "down")
        return np.insert(points, len(codes), [0.0, 0.0])

    def negated(self, codes: np.ndarray) -> np.ndarray:
        """The codes of the negative values."""
        return (-codes.astype(np.int64) & (2 * self.nan_code - 1)).astype(self.storage_dtype)


class LnsFormat(LogarithmicFormat, saved_as="lns"):
    """Sign and logarithm: ``softnum.format("lns4.3")``, of 1 + 4 + 3 bits.

    After the sign comes log2 of the magnitude, in two's complement with I bits before the point, the sign among them,
    and F behind it. The lowest logarithm, -2**(I - 1), is reserved: its code is 0 with the sign bit clear, and NaN with
    it set. Logarithms round to nearest, a tie to the even code; those that round to the lowest or lie below it become
    0, those beyond the highest the highest. Infinities, 1 / 0 and sqrt(-1) are NaN. Values but 0 and powers of two are
    irrational: decoding rounds them.

    Parameters
    ----------
    integer_bits, fraction_bits : int
        I, from 1 to 10, and F, from 0; 1 + I + F lies in 3..32.

    Raises
    ------
    ValueError
        If a width is out of range.

    Examples
    --------
    >>> import softnum as sn
    >>> lns = sn.LnsFormat(4, 3)
    >>> lns == sn.format("lns4.3"), lns.max, lns.smallest
    (True, 234.75303506039583, 0.004259795830723663)
    >>> a = sn.array([1.0, 2.0, -3.0, 1e-3], lns)
    >>> a
    Array([ 1.        ,  2.        , -3.08442165,  0.        ], lns4.3)
    >>> a * a
    Array([1.        , 4.        , 9.51365692, 0.        ], lns4.3)
    """

    _exponential, _per_exponential = "exp2", 1

    def __init__(self, integer_bits: int, fraction_bits: int) -> None:
        name = f"lns{integer_bits}.{fraction_bits}"
        width_of(name, 1 + integer_bits + fraction_bits)
        if not 1 <= integer_bits <= _MOST_INTEGER_BITS or fraction_bits < 0:
            raise ValueError(
                f"{name}: a logarithm has 1 to {_MOST_INTEGER_BITS} bits before the point, including its sign, and 0 "
                "or more after it"
            )
        #: Bits of the logarithm before the point, its sign among them, and behind it.
        self.integer_bits: int = int(integer_bits)
        self.fraction_bits: int = int(fraction_bits)
        bits = 1 + self.integer_bits + self.fraction_bits
        self._of(_Logarithms(_tables.LNS, bits, self.fraction_bits), name, "lns")

    @property
    def nan_code(self) -> int:
        """The code of NaN: the lowest logarithm, with the sign bit."""
        return 3 << (self.bits - 2)

    @property
    def zero_code(self) -> int:
        """The code of 0: the lowest logarithm."""
        return 1 << (self.bits - 2)

    @property
    def max_code(self) -> int:
        """The code of the largest value."""
        return self.zero_code - 1

    @property
    def smallest_code(self) -> int:
        """The code of the smallest positive value."""
        return self.zero_code + 1

    @staticmethod
    def _of_logarithm(decimal):
        return 1 / decimal(2).ln()

    def logarithms(self, codes: np.ndarray) -> np.ndarray:
        """The logarithms of magnitudes, int64 in units of 2**-32; of no meaning for 0 and NaN."""
        field = codes.astype(np.int64) & (2 * self.zero_code - 1)
        return ((field ^ self.zero_code) - self.zero_code) << (32 - self.fraction_bits)

    def _points(self) -> np.ndarray:
        finer = _Logarithms(_tables.LNS, self.bits + 1, self.fraction_bits + 1)
        fields = 2 * np.arange(1 - self.zero_code, self.zero_code) - 1 & (2 << (self.bits - 1)) - 1
        points = np.concatenate([fields[::-1] | 2 << (self.bits - 1), fields])
        return finer.as_float(points, "down")

    # -- codes ---------------------------------------------------------------------------------------------------------
    def negated(self, codes: np.ndarray) -> np.ndarray:
        """The codes of the negative values."""
        return np.where(codes & self.max_code | ~codes & self.zero_code, codes ^ (2 * self.zero_code), codes).astype(
            self.storage_dtype
        )

    def _places(self, codes: np.ndarray) -> np.ndarray:
        """int64 that lie as the values do; of NaN above all."""
        size = (codes.astype(np.int64) ^ self.zero_code) & (2 * self.zero_code - 1)  # 0 of zero, then by logarithm
        place = np.where(codes >> (self.bits - 1), -size, size)
        return np.where(self.is_nan(codes), 2 * self.zero_code, place)

    def sign_and_size(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(where the sign bit is set, the magnitudes in the order of their values, from 0)"""
        kind = codes.dtype.type
        sign = codes >> kind(self.bits - 1) != 0
        return sign, (codes & kind(2 * self.zero_code - 1)) ^ kind(self.zero_code)

    def order_keys(self, codes: np.ndarray) -> np.ndarray:
        """Unsigned integers that lie as the codes do in the total order, each code's its own, NaN last."""
        return (self._places(np.asarray(codes)) + 2 * self.zero_code - 1).astype(self.storage_dtype)

    def value_keys(self, codes: np.ndarray) -> np.ndarray:
        """uint64 that lie as the values do; of no meaning for NaN."""
        return (self._places(codes) + 2 * self.zero_code).astype(np.uint64)

    def is_nan(self, codes: np.ndarray) -> np.ndarray:
        """Which codes are NaN."""
        return np.asarray(codes) == self.nan_code

    def is_zero(self, codes: np.ndarray) -> np.ndarray:
        """Which codes are 0."""
        return np.asarray(codes) == self.zero_code

    is_infinite: Callable[..., np.ndarray] = TwosComplementCodes.is_infinite
    is_subnormal: Callable[..., np.ndarray] = TwosComplementCodes.is_infinite
    limit_codes: Callable[..., dict[str, int]] = TwosComplementCodes.limit_codes

    class_names: tuple[str, ...] = ("NaN", "lowest", "negative", "zero", "positive", "highest")

    def class_numbers(self, codes: np.ndarray) -> np.ndarray:
        """The class of each code, as a number into ``class_names`` (int64)."""
        place, end = self._places(codes), 2 * self.zero_code - 1
        ends = np.where(place == -end, 1, np.where(place == end, 5, 3 + np.sign(place)))
        return np.where(self.is_nan(codes), 0, ends)

    def sign_bits(self, codes: np.ndarray) -> np.ndarray:
        """Where a value is negative."""
        codes = np.asarray(codes)
        return (codes >> (self.bits - 1) != 0) & ~self.is_nan(codes)

    def stepped(self, codes: np.ndarray, step: int) -> np.ndarray:
        """The codes of the next values above (step 1) or below (-1); the ends and NaN are their own."""
        codes = np.asarray(codes)
        end = 2 * self.zero_code - 1
        place = np.clip(self._places(codes) + step, -end, end)
        found = (np.abs(place) ^ self.zero_code) | (place < 0).astype(np.int64) << (self.bits - 1)
        return np.where(self.is_nan(codes), codes, found).astype(self.storage_dtype)

    def fields(self, code: int) -> list[tuple[str, str]]:
        """The bits of a code in fields, as (name, bits): sign and logarithm, with the point where it lies."""
        bits = f"{int(code):0{self.bits}b}"
        whole, rest = bits[1 : 1 + self.integer_bits], bits[1 + self.integer_bits :]
        return [("sign", bits[0]), ("logarithm", f"{whole}.{rest}" if rest else whole)]

    @property
    def _made_of(self) -> tuple[int, int]:
        return self.integer_bits, self.fraction_bits

    def to_data(self) -> dict[str, Any]:
        """All that makes the format, as plain data."""
        return {"kind": self.kind, "integer_bits": self.integer_bits, "fraction_bits": self.fraction_bits}


register_family(re.compile(r"takum(\d{1,2})"), lambda bits: TakumFormat(int(bits)))
register_family(re.compile(r"lns(\d{1,2})\.(\d{1,2})"), lambda i, f: LnsFormat(int(i), int(f)))

"""Formats whose codes take two words: floats of more than 64 bits, x87's, fixed point of up to 128.

They are computed in Python integers, by `softnum.wide`: exactly as the others, with every mode and flag, and slowly.

Sources: IEEE Std 754-2019, 3.4 (binary128); Intel 64 and IA-32 Software Developer's Manual, volume 1, 4.2.2 and 8.2.2
(x87's 80-bit format, its pseudo-denormals and unsupported encodings).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, wraps
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from softnum.formats.codes import FixedCodes, FloatCodes
from softnum.formats.scalar import MAX_BITS, MAX_EXPONENT_BITS, MAX_PRECISION, FixedFormat, FloatFormat, exact_number

__all__ = [
    "MAX_WIDE_BITS", "TWO_WORDS", "Wide", "WideFixedFormat", "WideFloatFormat", "integers", "is_wide", "two_words",
]  # fmt: skip

MAX_WIDE_BITS = 128
#: what holds a code: fields "high" and "low" of 64 bits, which sort as the codes do
TWO_WORDS = np.dtype([("high", np.uint64), ("low", np.uint64)])
_LOW = (1 << 64) - 1


def integers(codes: ArrayLike) -> np.ndarray:
    """Codes of two words as Python integers, which are taken as they are.

    >>> integers(np.array([(1, 2)], TWO_WORDS))
    array([18446744073709551618], dtype=object)
    """
    codes = np.asarray(codes)
    if codes.dtype != TWO_WORDS:
        return codes
    out = np.empty(codes.shape, object)
    out[...] = codes["high"].astype(object) << 64 | codes["low"].astype(object)
    return out


def two_words(numbers: Any) -> np.ndarray:
    """Integers from 0 to 2**128 - 1 as codes of two words.

    >>> two_words([2**64 + 2])
    array([(1, 2)], dtype=[('high', '<u8'), ('low', '<u8')])
    """
    numbers = np.asarray(numbers, object)
    out = np.empty(numbers.shape, TWO_WORDS)
    out["high"], out["low"] = numbers >> 64, numbers & _LOW
    return out


def is_wide(exponent_bits: int, mantissa_bits: int) -> bool:
    """Whether a signed float of these widths is beyond `FloatFormat`.

    >>> is_wide(15, 48), is_wide(11, 62)
    (False, True)
    """
    return 1 + exponent_bits + mantissa_bits > MAX_BITS or mantissa_bits >= MAX_PRECISION


def _of_integers(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method of codes of any shape: of a function of a row of Python integers."""

    @wraps(function)
    def method(self, codes):
        numbers = integers(codes)
        found = function(self, numbers.reshape(-1))
        if isinstance(found, tuple):
            return tuple(part.reshape(numbers.shape) for part in found)
        return found.reshape(numbers.shape)

    return method


class Wide:
    """What `WideFloatFormat` and `WideFixedFormat` have in common: codes of two words."""

    leads = True
    storage_dtype = TWO_WORDS

    def stored(self, numbers: Any) -> np.ndarray:
        """Integers that are codes as the array that holds codes."""
        return two_words(numbers)

    def code_array(self, codes: np.ndarray, what: str) -> np.ndarray:
        """Codes of two words, or integers, as codes of two words; ValueError if one does not fit the format's bits."""
        if codes.dtype == TWO_WORDS:
            if self.bits < MAX_WIDE_BITS and codes.size:
                above = np.asarray(integers(codes) >> self.bits).astype(bool)
                if above.any():
                    self._refuse(integers(codes[above])[0], what)
            return codes
        numbers = codes.astype(object)
        for number in numbers.flat:
            if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
                raise TypeError(
                    f"{what} of {self} are integers or pairs of words ({TWO_WORDS}), got {codes.dtype}; to convert "
                    "numbers, use softnum.encode (encodings) or softnum.array (an Array)"
                )
            if not 0 <= number < 1 << self.bits:
                self._refuse(number, what)
        return two_words(numbers)

    def _refuse(self, code: int, what: str):
        raise ValueError(f"{what}: {int(code):#x} is no code of {self}, which has {self.bits} bits")

    @property
    def described(self) -> str:
        """What errors call the format: by its name, and what it is not for."""
        return (
            f"{self}, whose codes of {self.bits} bits are computed in Python integers, by the operations on codes and "
            "on Arrays alone (softnum.add, softnum.fma, ...); convert to a format of up to 64 bits"
        )

    def check_modes(self, rounding: str, overflow: str | None) -> None:
        """ValueError: in units sums and products are of other formats."""
        raise ValueError(f"units do not compute sums and products in {self.described}")

    def sign_text(self, code: str) -> None:
        """No text in C tells the signs of codes."""


@dataclass(frozen=True, init=False, repr=False)
class WideFloatFormat(Wide, FloatFormat, saved_as="wide_float"):
    """An IEEE-like float of up to 128 bits whose codes take two words: ``binary128``, ``x87_extended``, ``e15m80``.

    Codes are NumPy arrays of `softnum.formats.wide.TWO_WORDS`, or integers where codes are given. All that rounds is
    computed in Python integers. Units of matrix products, kernels and training take formats of up to 64 bits.

    Parameters
    ----------
    exponent_bits : int
        1 to 15.
    mantissa_bits : int
        Width of the stored fraction, so that a code has more than 64 bits, or the precision is more than 62.
    explicit_bit : bool
        Whether the significand's first bit is stored, between exponent and fraction, as in x87's format. A code that
        has this bit and exponent field 0 is a pseudo-denormal, of the value with field 1; one without it and another
        field is unsupported: an operation on it is invalid, as on a signaling NaN. No result is such a code.
    name : str, optional

    Raises
    ------
    ValueError
        If a width is out of range.

    Examples
    --------
    >>> import softnum as sn
    >>> f = sn.format("binary128")
    >>> f, f.bits, f.emax, f == sn.format("e15m112")
    (WideFloatFormat(15, 112, name='binary128'), 128, 16383, True)
    >>> a = sn.array(["0.1"], f)
    >>> a.codes
    array([(4610447528529861017, 11068046444225730970)],
          dtype=[('high', '<u8'), ('low', '<u8')])
    >>> print(sn.convert(a * a, None, "binary64"))
    Array([0.01], binary64)
    """

    explicit_bit: bool

    def __init__(
        self, exponent_bits: int, mantissa_bits: int, *, explicit_bit: bool = False, name: str | None = None
    ) -> None:
        e, m, explicit = int(exponent_bits), int(mantissa_bits), bool(explicit_bit)
        if not 1 <= e <= MAX_EXPONENT_BITS:
            raise ValueError(f"exponent_bits must lie in 1..{MAX_EXPONENT_BITS}, got {e}")
        if not explicit and not is_wide(e, m):
            raise ValueError(f"a float of {1 + e + m} bits is not wide; write softnum.FloatFormat({e}, {m})")
        if explicit and m < 1:
            raise ValueError(f"mantissa_bits must be 1 or more, got {m}")
        if 1 + e + m + explicit > MAX_WIDE_BITS:
            raise ValueError(f"a code has at most {MAX_WIDE_BITS} bits, got {1 + e + m + explicit}")
        facts = dict(
            exponent_bits=e, mantissa_bits=m, bias=(1 << (e - 1)) - 1, signed=True, nan_codes="ieee", infinities=True,
            negative_zero=True, has_zero=True, lowest_binade="subnormal", saturating=False, explicit_bit=explicit,
            name=name or f"e{e}m{m}" + "_explicit" * explicit,
        )  # fmt: skip
        for key, value in facts.items():
            object.__setattr__(self, key, value)

    @cached_property
    def bits(self) -> int:
        """Width of a code in bits."""
        return 1 + self.exponent_bits + self.explicit_bit + self.mantissa_bits

    # -- where the codes lie ------------------------------------------------------------------------------------------
    def _stored(self, magnitude: int) -> int:
        """A magnitude code with the significand's first bit, where that is stored."""
        if not self.explicit_bit:
            return magnitude
        field, fraction = divmod(magnitude, 1 << self.mantissa_bits)
        return (2 * field + (field > 0)) << self.mantissa_bits | fraction

    @cached_property
    def implied_format(self) -> WideFloatFormat | FloatFormat:
        """The format of the same numbers whose codes leave the significand's first bit out."""
        made = WideFloatFormat if is_wide(self.exponent_bits, self.mantissa_bits) else FloatFormat
        return made(self.exponent_bits, self.mantissa_bits) if self.explicit_bit else self

    def from_implied(self, code: int) -> int:
        """The code of what a code of `implied_format` stands for.

        >>> import softnum as sn
        >>> hex(sn.format("x87_extended").from_implied(0x3FFF << 63))  # 1
        '0x3fff8000000000000000'
        """
        sign, magnitude = divmod(code, 1 << (self.exponent_bits + self.mantissa_bits))
        return sign << (self.bits - 1) | self._stored(magnitude)

    @property
    def _infinity(self) -> int:
        return ((1 << self.exponent_bits) - 1) << self.mantissa_bits

    @property
    def inf_code(self) -> int:
        """Magnitude code of infinity."""
        return self._stored(self._infinity)

    @property
    def max_code(self) -> int:
        """Magnitude code of the largest finite value."""
        return self._stored(self._infinity - 1)

    @property
    def nan_code(self) -> int:
        """The canonical NaN's code (positive, quiet bit only)."""
        return self._stored(self._infinity | 1 << (self.mantissa_bits - 1))

    @property
    def emax(self) -> int:
        """Exponent of the largest finite value."""
        return (self._infinity - 1 >> self.mantissa_bits) - self.bias

    @cached_property
    def max(self) -> float | Fraction:
        """Largest finite value: a float where binary64 holds it, else a Fraction."""
        field, fraction = divmod(self._infinity - 1, 1 << self.mantissa_bits)
        significand = fraction + ((field > 0) << self.mantissa_bits)
        return exact_number(significand * Fraction(2) ** (max(field, 1) - self.bias - self.mantissa_bits))

    # -- what codes say ------------------------------------------------------------------------------------------------
    sign_bits: ClassVar[Callable[..., np.ndarray]]
    magnitudes: ClassVar[Callable[..., np.ndarray]]
    sign_and_size: ClassVar[Callable[..., tuple[np.ndarray, np.ndarray]]]
    is_zero: ClassVar[Callable[..., np.ndarray]]
    is_infinite: ClassVar[Callable[..., np.ndarray]]
    is_subnormal: ClassVar[Callable[..., np.ndarray]]
    sign_bits, magnitudes, sign_and_size, is_zero, is_infinite, is_subnormal = (
        _of_integers(vars(FloatCodes)[name])
        for name in ("sign_bits", "magnitudes", "sign_and_size", "is_zero", "is_infinite", "is_subnormal")
    )

    @_of_integers
    def exponent_fields(self, codes: np.ndarray) -> np.ndarray:
        """The exponent fields of codes, as int64."""
        return (codes >> (self.mantissa_bits + self.explicit_bit) & ((1 << self.exponent_bits) - 1)).astype(np.int64)

    @_of_integers
    def is_unsupported(self, codes: np.ndarray) -> np.ndarray:
        """Which codes are encodings that x87 does not support: without the significand's first bit where it must be."""
        first = (codes >> self.mantissa_bits & 1).astype(bool)
        return (self.exponent_fields(codes) != 0) & ~first & self.explicit_bit

    @_of_integers
    def is_nan(self, codes: np.ndarray) -> np.ndarray:
        """Which codes are NaN, those that are not supported among them."""
        return (self.magnitudes(codes) > self.inf_code).astype(bool) | self.is_unsupported(codes)

    def _implied(self, codes: np.ndarray) -> np.ndarray:
        """Magnitudes in the order of the values, of which a number's neighbour is one more."""
        magnitudes = self.magnitudes(codes)
        if not self.explicit_bit:
            return magnitudes
        fields = self.exponent_fields(codes).astype(object)
        return magnitudes - np.where(fields == 0, 0, (fields + 1) << self.mantissa_bits)

    @_of_integers
    def value_keys(self, codes: np.ndarray) -> np.ndarray:
        """Integers that lie as the values do, one for both zeros; of no meaning for NaNs."""
        magnitudes = self._implied(codes)
        return np.where(self.sign_bits(codes), -magnitudes, magnitudes)

    @_of_integers
    def order_keys(self, codes: np.ndarray) -> np.ndarray:
        """Integers that lie as the codes do in the total order, each code's its own."""
        magnitudes = self.magnitudes(codes)
        # a pseudo-denormal goes before the number of its value, what is unsupported behind the numbers
        pseudo = (self.exponent_fields(codes) == 0) & (magnitudes >> self.mantissa_bits == 1) & self.explicit_bit
        keys = np.where(self.is_nan(codes), magnitudes + (2 << self.bits), 2 * self._implied(codes) + ~pseudo)
        return np.where(self.sign_bits(codes), -1 - keys, keys)

    def limit_codes(self) -> dict[str, int]:
        """The magnitude codes at the limits, by what they are."""
        found = {
            "smallest value": 1, "largest subnormal": (1 << self.mantissa_bits) - 1,
            "smallest normal": 1 << self.mantissa_bits, "beside the largest": self._infinity - 2,
            "largest value": self._infinity - 1,
        }  # fmt: skip
        return {what: self._stored(code) for what, code in found.items()}

    def fields(self, code: int) -> list[tuple[str, str]]:
        """The bits of a code in fields, as (name, bits): sign, exponent, the first bit if it is stored, fraction."""
        bits, e = f"{int(code):0{self.bits}b}", self.exponent_bits
        parts = [("sign", bits[:1]), ("exponent", bits[1 : 1 + e])]
        if self.explicit_bit:
            parts.append(("integer", bits[1 + e]))
        return [*parts, ("fraction", bits[1 + e + self.explicit_bit :])]

    # -- in records and files ------------------------------------------------------------------------------------------
    def to_data(self) -> dict[str, Any]:
        """All that makes the format, as plain data."""
        names = ("exponent_bits", "mantissa_bits", "explicit_bit", "name")
        return {"kind": "wide_float", **{name: getattr(self, name) for name in names}}

    def __repr__(self) -> str:
        explicit = ", explicit_bit=True" * self.explicit_bit
        return f"WideFloatFormat({self.exponent_bits}, {self.mantissa_bits}{explicit}, name={self.name!r})"

    def __hash__(self) -> int:
        return FloatFormat.__hash__(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_float, (self.exponent_bits, self.mantissa_bits, self.explicit_bit, self.name)


def _rebuild_float(exponent_bits: int, mantissa_bits: int, explicit_bit: bool, name: str) -> WideFloatFormat:
    return WideFloatFormat(exponent_bits, mantissa_bits, explicit_bit=explicit_bit, name=name)


class WideFixedFormat(Wide, FixedFormat, saved_as="wide_fixed"):
    """Fixed point of 65 to 128 bits, whose codes take two words: ``q100.20``, ``uq128.0``. See `WideFloatFormat`.

    Parameters
    ----------
    integer_bits, fraction_bits : int
        Bits before and after the point, the sign bit included; together 65 to 128.
    signed : bool
        Two's complement if true.

    Raises
    ------
    ValueError
        If a width is out of range.

    Examples
    --------
    >>> import softnum as sn
    >>> a = sn.array(["1e22", "-1/3"], "q80.40")
    >>> a + a
    Array([ 2.00000000e+22, -6.66666667e-01], q80.40)
    """

    def __init__(self, integer_bits: int, fraction_bits: int, *, signed: bool = True) -> None:
        i, f = int(integer_bits), int(fraction_bits)
        if i < 0 or f < 0:
            raise ValueError(
                f"fixed point of more than {MAX_BITS} bits needs 0 or more bits on both sides of the point, got {i}, "
                f"{f}"
            )
        if not MAX_BITS < i + f <= MAX_WIDE_BITS:
            raise ValueError(
                f"integer_bits + fraction_bits must lie in {MAX_BITS + 1}..{MAX_WIDE_BITS} (softnum.FixedFormat: in "
                f"1..{MAX_BITS}), got {i + f}"
            )
        for key, value in (("integer_bits", i), ("fraction_bits", f), ("signed", bool(signed))):
            object.__setattr__(self, key, value)

    order_keys: ClassVar[Callable[..., np.ndarray]]
    sign_and_size: ClassVar[Callable[..., tuple[np.ndarray, np.ndarray]]]
    is_zero: ClassVar[Callable[..., np.ndarray]]
    class_numbers: ClassVar[Callable[..., np.ndarray]]
    sign_bits: ClassVar[Callable[..., np.ndarray]]
    order_keys, sign_and_size, is_zero, class_numbers, sign_bits = (
        _of_integers(inspect.getattr_static(FixedCodes, name))
        for name in ("order_keys", "sign_and_size", "is_zero", "class_numbers", "sign_bits")
    )
    value_keys = order_keys

    def to_data(self) -> dict[str, Any]:
        """All that makes the format, as plain data."""
        return {**super().to_data(), "kind": "wide_fixed"}

    def __repr__(self) -> str:
        return f"Wide{super().__repr__()}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_fixed, (self.integer_bits, self.fraction_bits, self.signed)


def _rebuild_fixed(integer_bits: int, fraction_bits: int, signed: bool) -> WideFixedFormat:
    return WideFixedFormat(integer_bits, fraction_bits, signed=signed)

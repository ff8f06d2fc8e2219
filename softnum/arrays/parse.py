"""Numbers without loss: what a text says, and any real number as a significand and an exponent."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from numbers import Rational

import numpy as np

__all__ = ["as_exact", "numbers_of", "python_number", "python_numbers", "same_numbers"]

_HEXADECIMAL = re.compile(r"([+-]?)0x([0-9a-f]*)(?:\.([0-9a-f]*))?(?:p([+-]?[0-9]+))?", re.IGNORECASE)
_EXPONENT = re.compile(r"e([+-]?[\d_]+)$", re.IGNORECASE)


def same_numbers(x, wide) -> bool:
    """Whether integers or objects equal their float64 values (NumPy would compare them as float64)."""
    return all(v == float(w) or v != v for v, w in zip(x.ravel().tolist(), wide.flat, strict=True))


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _exponent(digits: str, text: str) -> int:
    """The number that the digits say; ValueError where it makes a number of more than some megabits."""
    size = digits.lstrip("+-").replace("_", "").lstrip("0")
    if len(size) > 7 or int(size or 0) > 10**6:
        raise ValueError(f"encode: the exponent of {_shown(text)} is outside -1000000..1000000")
    return -int(size or 0) if digits.startswith("-") else int(size or 0)


def _number_of(text: str) -> Fraction | float:
    """What a text says, exactly; a float for infinities, NaN and -0."""
    stripped = text.strip()
    match = _HEXADECIMAL.fullmatch(stripped)
    if match and (match[2] or match[3]):
        sign, whole, part, exponent = match[1], match[2], match[3] or "", _exponent(match[4] or "", text)
        number = Fraction(int(whole + part, 16)) * Fraction(2) ** (exponent - 4 * len(part))
        return -number if sign == "-" and number else -0.0 if sign == "-" else number
    if stripped.lower().lstrip("+-") in ("inf", "infinity", "nan") and stripped[1] not in "+-":
        return float(stripped)
    if match := _EXPONENT.search(stripped):
        _exponent(match[1], text)
    try:
        number = Fraction(stripped)
    except (ValueError, ZeroDivisionError):  # also Python's, of more than 4300 digits
        raise ValueError(
            f"encode: {_shown(text)} is not a number; write a decimal of up to 4300 digits, a ratio, a hexadecimal "
            "like 0x1.8p3, inf or nan"
        ) from None
    return -0.0 if not number and stripped.startswith("-") else number


def numbers_of(x: np.ndarray) -> np.ndarray:
    out = np.empty(x.shape, object)
    for index, text in np.ndenumerate(x):
        out[index] = _number_of(str(text))
    return out


def python_number(value):
    """A number of NumPy's or a Decimal as Python's int, float or Fraction, exactly; others as they are.

    >>> from decimal import Decimal
    >>> python_number(np.longdouble(0.5)), python_number(Decimal("0.1")), python_number(Decimal("-0"))
    (Fraction(1, 2), Fraction(1, 10), -0.0)
    """
    if not isinstance(value, (np.longdouble, Decimal)):
        return value.item() if isinstance(value, np.generic) else value
    if value and (value.is_finite() if isinstance(value, Decimal) else np.isfinite(value)):
        return Fraction(*value.as_integer_ratio())
    return float(value)


def python_numbers(x: np.ndarray) -> np.ndarray:
    """`python_number` of each element."""
    out = np.empty(x.shape, object)
    for index, value in np.ndenumerate(x):
        out[index] = python_number(value)
    return out


def as_exact(value, fmt, wrap) -> tuple[int, int, int, int]:
    """(sign, significand, exponent, sticky) of a finite real number, with at least 126 bits where it is inexact.

    Of fixed point a number that rounds alike, with the same flags but OVERFLOW if it wraps.
    """
    value = python_number(value)
    if isinstance(value, float):
        value = Fraction(value)
    elif not isinstance(value, Rational):
        raise TypeError(f"encode takes real numbers (int, float, Fraction), got {value!r}")
    sign, magnitude = int(value < 0), abs(value)
    if fmt.wrap_bits is not None and (limit := Fraction(2) ** fmt.wrap_bits) <= magnitude:
        magnitude = magnitude % limit + (0 if wrap else limit)  # of what lies above, one bit says enough
    top, bottom = magnitude.numerator, magnitude.denominator
    shift = max(0, 127 + bottom.bit_length() - top.bit_length()) if bottom & (bottom - 1) else bottom.bit_length() - 1
    significand, rest = divmod(top << shift, bottom)
    excess = max(0, significand.bit_length() - 128)
    sticky = int(rest != 0 or significand & ((1 << excess) - 1) != 0)
    return sign, significand >> excess, excess - shift, sticky

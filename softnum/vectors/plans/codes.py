"""What codes stand for: as text, their exponents, and how many places lie between two."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from softnum.vectors.plans.own import decoded

if TYPE_CHECKING:
    from softnum.formats.base import AnyFormat

__all__ = ["bits_text", "distance", "exponents", "is_nan", "value_text"]


def value_text(code: int, fmt: AnyFormat) -> str:
    """The value of a code in decimal: exact where binary64 holds it (``repr``), else to its power of two; an irrational
    one rounded to binary64.

    >>> import softnum as sn
    >>> from softnum.vectors.plans.codes import value_text
    >>> value_text(0x3D, sn.format("e5m2")), value_text(0xFC, sn.format("e5m2"))
    ('1.25', '-inf')
    """
    if not fmt.values_are_exact:
        return repr(float(fmt.decode(np.array(code, fmt.storage_dtype), np.float64)))
    value = decoded(code, fmt)
    sign = "-" if value.sign else ""
    if value.kind != "finite":
        return ("signaling nan" if value.signaling else "nan") if value.kind == "nan" else f"{sign}inf"
    exact = Fraction(value.numerator, value.denominator)
    with contextlib.suppress(OverflowError):
        if Fraction(float(exact)) == exact:
            return f"{sign}{float(exact)!r}"
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    return f"{sign}~2**{exponent}"


def bits_text(code: int, fmt: AnyFormat) -> str:
    """The bits of a code in groups: sign|exponent|significand, or integer.fraction of fixed point.

    >>> import softnum as sn
    >>> from softnum.vectors.plans.codes import bits_text
    >>> bits_text(0xBD, sn.format("e5m2")), bits_text(0x18, sn.format("q4.4"))
    ('1|01111|01', '0001.1000')
    """
    return "|".join(bits for _, bits in fmt.fields(code))


def exponents(codes: np.ndarray, fmt: AnyFormat) -> np.ndarray:
    """Exponents of normal numbers of a float format; of others what the same field would mean.

    >>> import numpy as np, softnum as sn
    >>> from softnum.vectors.plans.codes import exponents
    >>> exponents(np.array([0x3C, 0xC0], np.uint8), sn.format("e5m2"))
    array([0, 1])
    """
    return fmt.exponent_fields(codes) - fmt.bias


def is_nan(codes: np.ndarray, fmt: AnyFormat) -> np.ndarray:
    """Which codes are NaN."""
    return fmt.is_nan(codes)


def distance(x: np.ndarray, y: np.ndarray, fmt: AnyFormat) -> np.ndarray:
    """How many codes lie from x to y in the order of their values; of no meaning where one is NaN.

    >>> import numpy as np, softnum as sn
    >>> from softnum.vectors.plans.codes import distance
    >>> distance(np.array([0x3C, 0x81], np.uint8), np.array([0x3D, 0x01], np.uint8), sn.format("e5m2"))
    array([1, 2], dtype=uint64)
    """
    first, second = fmt.value_keys(x), fmt.value_keys(y)
    return np.where(first > second, first - second, second - first)

"""What codes stand for, as arrays: NaN, zero, infinite, class, exponent, and how many places lie between two."""

from __future__ import annotations

import contextlib
from fractions import Fraction

import numpy as np

from softnum import reference
from softnum.ops import arithmetic

__all__ = [
    "bits_text", "class_names", "class_numbers", "distance", "exponent_fields", "exponents", "is_infinite", "is_nan",
    "is_subnormal", "is_zero", "magnitudes", "value_text",
]  # fmt: skip

_U = np.uint64
_FIXED_CLASSES = ("lowest", "negative", "zero", "positive", "highest")


def value_text(code: int, fmt) -> str:
    """The value of a code in decimal: exact where binary64 holds it (``repr``), else to its power of two.

    >>> import softnum as sn
    >>> from softnum.vectors.plans.codes import value_text
    >>> value_text(0x3D, sn.format("e5m2")), value_text(0xFC, sn.format("e5m2"))
    ('1.25', '-inf')
    """
    value = reference.decode(int(code), fmt)
    sign = "-" if value.sign else ""
    if value.kind != "finite":
        return ("signaling nan" if value.signaling else "nan") if value.kind == "nan" else f"{sign}inf"
    exact = Fraction(value.numerator, value.denominator)
    with contextlib.suppress(OverflowError):
        if Fraction(float(exact)) == exact:
            return f"{sign}{float(exact)!r}"
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    return f"{sign}~2**{exponent}"


def bits_text(code: int, fmt) -> str:
    """The bits of a code in groups: sign|exponent|significand, or integer.fraction of fixed point.

    >>> import softnum as sn
    >>> from softnum.vectors.plans.codes import bits_text
    >>> bits_text(0xBD, sn.format("e5m2")), bits_text(0x18, sn.format("q4.4"))
    ('1|01111|01', '0001.1000')
    """
    bits = f"{int(code):0{fmt.bits}b}"
    if fmt.kind == "fixed":
        whole, rest = bits[: fmt.integer_bits], bits[fmt.integer_bits :]
        return f"{whole}.{rest}" if rest and whole else whole or f".{rest}"
    sign, rest = (bits[:1], bits[1:]) if fmt.signed else ("", bits)
    parts = [sign, rest[: fmt.exponent_bits], rest[fmt.exponent_bits :]]
    return "|".join(part for part in parts if part)


def magnitudes(codes: np.ndarray, fmt) -> np.ndarray:
    """The codes of a float format without their sign bits."""
    return codes & codes.dtype.type((1 << (fmt.bits - fmt.signed)) - 1)


def exponent_fields(codes: np.ndarray, fmt) -> np.ndarray:
    """The exponent fields of codes of a float format, as int64."""
    field = codes.astype(_U, copy=False) >> _U(fmt.mantissa_bits) & _U((1 << fmt.exponent_bits) - 1)
    return field.astype(np.int64)


def exponents(codes: np.ndarray, fmt) -> np.ndarray:
    """Exponents of normal numbers of a float format; of others what the same field would mean.

    >>> import numpy as np, softnum as sn
    >>> from softnum.vectors.plans.codes import exponents
    >>> exponents(np.array([0x3C, 0xC0], np.uint8), sn.format("e5m2"))
    array([0, 1])
    """
    return exponent_fields(codes, fmt) - fmt.bias


def class_names(fmt) -> tuple[str, ...]:
    """The names of a format's classes: IEEE 754's ten; of fixed point five."""
    return _FIXED_CLASSES if fmt.kind == "fixed" else arithmetic.CLASSES


def class_numbers(codes: np.ndarray, fmt) -> np.ndarray:
    """The class of each code, as a number into `class_names` (int64).

    >>> import numpy as np, softnum as sn
    >>> from softnum.vectors.plans.codes import class_names, class_numbers
    >>> fmt = sn.format("q2.2")
    >>> [class_names(fmt)[i] for i in class_numbers(np.array([8, 15, 0, 1, 7], np.uint8), fmt)]
    ['lowest', 'negative', 'zero', 'positive', 'highest']
    """
    if fmt.kind != "fixed":
        return np.asarray(arithmetic.classify(codes, fmt)).astype(np.int64)
    top = 1 << (fmt.bits - 1)
    lowest, highest = (top, top - 1) if fmt.signed else (0, 2 * top - 1)
    negative = (codes & codes.dtype.type(top)) != 0 if fmt.signed else np.zeros(codes.shape, bool)
    kind = np.where(codes == 0, 2, np.where(negative, 1, 3))
    return np.where(codes == highest, 4, np.where((codes == lowest) & (codes != 0), 0, kind))


def is_nan(codes: np.ndarray, fmt) -> np.ndarray:
    """Which codes are NaN."""
    if not fmt.has_nan:
        return np.zeros(codes.shape, bool)
    if fmt.nan_codes == "negative_zero":
        return codes == fmt.nan_code
    magnitude = magnitudes(codes, fmt)
    return magnitude > fmt.inf_code if fmt.nan_codes == "ieee" else magnitude == fmt.nan_code


def is_zero(codes: np.ndarray, fmt) -> np.ndarray:
    """Which codes are +0 or -0."""
    if fmt.kind == "fixed":
        return codes == 0
    if not fmt.has_zero:
        return np.zeros(codes.shape, bool)
    magnitude = magnitudes(codes, fmt)
    zero = magnitude < (1 << fmt.mantissa_bits if fmt.lowest_binade == "zero" else 1)
    return zero & ~is_nan(codes, fmt)


def is_infinite(codes: np.ndarray, fmt) -> np.ndarray:
    """Which codes are infinities."""
    if not fmt.infinities:
        return np.zeros(codes.shape, bool)
    return magnitudes(codes, fmt) == fmt.inf_code


def is_subnormal(codes: np.ndarray, fmt) -> np.ndarray:
    """Which codes are subnormal numbers."""
    if fmt.kind == "fixed" or fmt.lowest_binade != "subnormal":
        return np.zeros(codes.shape, bool)
    magnitude = magnitudes(codes, fmt)
    return (magnitude > 0) & (magnitude < 1 << fmt.mantissa_bits)


def distance(x: np.ndarray, y: np.ndarray, fmt) -> np.ndarray:
    """How many codes lie from x to y in the order of their values; of no meaning where one is NaN.

    >>> import numpy as np, softnum as sn
    >>> from softnum.vectors.plans.codes import distance
    >>> distance(np.array([0x3C, 0x81], np.uint8), np.array([0x3D, 0x01], np.uint8), sn.format("e5m2"))
    array([1, 2], dtype=uint64)
    """
    first, second = _ordered(x, fmt), _ordered(y, fmt)
    return np.where(first > second, first - second, second - first)


def _ordered(codes: np.ndarray, fmt) -> np.ndarray:
    """Unsigned numbers in the order of the values; the two zeros are one."""
    codes = codes.astype(_U)
    if not fmt.signed:
        return codes
    top = _U(1 << (fmt.bits - 1))
    if fmt.kind == "fixed":
        return codes ^ top
    magnitude = codes & (top - _U(1))
    return np.where(codes & top != 0, top - magnitude, top + magnitude)

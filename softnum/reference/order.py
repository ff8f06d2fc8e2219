"""The order of values, and the operations on signs and codes: what rounds nothing.

Source: IEEE Std 754-2019, clauses 5.3.1 (nextUp), 5.5.1 (sign operations), 5.7.2 (class), 5.10 (totalOrder), 5.11
(comparisons), 9.6 (minimum and maximum).
"""

from __future__ import annotations

from operator import index
from typing import Any

from softnum.reference.facts import FloatFacts, Format, format_of
from softnum.reference.nans import INVALID_RESULT, nan_of
from softnum.reference.operations import is_zero, prepare
from softnum.reference.rounding import FLAGS, INVALID, Environment, below_zero, deliver, environment_of, with_sign
from softnum.reference.rules import Flags
from softnum.reference.values import Value, decode, flushed, implied_magnitude, is_subnormal, stored_code

__all__ = [
    "CLASSES", "absolute", "classify", "compare", "copysign", "maximum", "maximum_number", "minimum", "minimum_number",
    "negate", "next_down", "next_up", "total_order",
]  # fmt: skip


# -- minimum and maximum: they choose a value, which is then delivered -------------------------------------------------
def minimum(
    a: int, b: int, fmt: Format | str, *, out_fmt: Format | str | None = None, **environment: Any
) -> tuple[int, Flags]:
    """The smaller of two codes' values, -0 below +0; NaN if either is one. Parameters, result and errors as in `add`.

    >>> from softnum import reference as ref
    >>> ref.minimum(0x80, 0x00, "e5m2"), ref.minimum(0x3C, 0x7E, "e5m2")
    ((128, <Flags: 0>), (126, <Flags: 0>))
    """
    return _choose(a, b, fmt, out_fmt, environment, wanted=-1, number=False)


def maximum(
    a: int, b: int, fmt: Format | str, *, out_fmt: Format | str | None = None, **environment: Any
) -> tuple[int, Flags]:
    """The larger of two codes' values, +0 above -0; NaN if either is one. The rest as in `add`.

    >>> from softnum import reference as ref
    >>> ref.maximum(0x80, 0x00, "e5m2")
    (0, <Flags: 0>)
    """
    return _choose(a, b, fmt, out_fmt, environment, wanted=1, number=False)


def minimum_number(
    a: int, b: int, fmt: Format | str, *, out_fmt: Format | str | None = None, **environment: Any
) -> tuple[int, Flags]:
    """As `minimum`, but of a NaN and a number it is the number. A signaling NaN raises INVALID all the same.

    >>> from softnum import reference as ref
    >>> ref.minimum_number(0x3C, 0x7E, "e5m2"), ref.minimum_number(0x3C, 0x7D, "e5m2")
    ((60, <Flags: 0>), (60, <Flags.INVALID: 16>))
    """
    return _choose(a, b, fmt, out_fmt, environment, wanted=-1, number=True)


def maximum_number(
    a: int, b: int, fmt: Format | str, *, out_fmt: Format | str | None = None, **environment: Any
) -> tuple[int, Flags]:
    """As `maximum`, but of a NaN and a number it is the number. A signaling NaN raises INVALID all the same.

    >>> from softnum import reference as ref
    >>> ref.maximum_number(0xFC, 0x7E, "e5m2")  # of -infinity and a NaN
    (252, <Flags: 0>)
    """
    return _choose(a, b, fmt, out_fmt, environment, wanted=1, number=True)


def _choose(
    a: int, b: int, fmt, out_fmt, environment: dict[str, Any], *, wanted: int, number: bool
) -> tuple[int, Flags]:
    (x, y), out_fmt, env = prepare((a, b), fmt, out_fmt, environment)
    if x.kind == "nan" or y.kind == "nan":
        nan = nan_of(env.nan, x, y)
        numbers = [v for v in (x, y) if v.kind != "nan"] if number else []
        return deliver(numbers[0] if numbers else nan, out_fmt, env, INVALID if nan.signaling else 0)
    order = _compare(x, y) or (y.sign - x.sign)  # equal ones differ at most in the sign of zero
    return deliver(x if order == wanted else y, out_fmt, env)


def _compare(x: Value, y: Value) -> int:
    """The sign of x - y, for numbers."""
    x_rank, y_rank = ((1 - 2 * v.sign if v.kind == "inf" else 0) for v in (x, y))
    if x_rank == y_rank == 0:
        left, right = x.numerator * y.denominator, y.numerator * x.denominator
        x_rank, y_rank = (-left if x.sign else left), (-right if y.sign else right)
    return (x_rank > y_rank) - (x_rank < y_rank)


# -- comparison --------------------------------------------------------------------------------------------------------
def compare(a: int, b: int, fmt: Format | str, kind: str = "quiet", *, flush_inputs: bool = False) -> tuple[int, Flags]:
    """Compare the values of two codes, whose formats may differ.

    Parameters
    ----------
    a, b : int
        Codes.
    fmt : format, or a pair of formats
    kind : {"quiet", "signaling"}
        Whether any NaN raises INVALID ("signaling"), or only a signaling one.
    flush_inputs : bool
        As in `add`.

    Returns
    -------
    order : int
        -1, 0 or 1 for less, equal or greater; 2 for unordered: an operand is NaN. -0 equals +0.
    flags : Flags
        None between two formats of P3109.

    Raises
    ------
    ValueError
        For an unknown kind, or a code out of range.

    Examples
    --------
    >>> from softnum import reference as ref
    >>> ref.compare(0x3C, 0x10, ("e5m2", "q4.4")), ref.compare(0x3C, 0x7E, "e5m2", "signaling")
    ((0, <Flags: 0>), (2, <Flags.INVALID: 16>))
    """
    if kind not in ("quiet", "signaling"):
        raise ValueError(f"kind must be 'quiet' or 'signaling', got {kind!r}")
    formats = tuple(map(format_of, fmt)) if isinstance(fmt, (tuple, list)) else (format_of(fmt),) * 2
    if len(formats) != 2:
        raise ValueError(f"2 operands need one format or 2, got {len(formats)}")
    x, y = decode(a, formats[0]), decode(b, formats[1])
    if flush_inputs:
        x, y = flushed(x, a, formats[0]), flushed(y, b, formats[1])
    if x.kind == "nan" or y.kind == "nan":
        invalid = kind == "signaling" or x.signaling or y.signaling
        return 2, FLAGS[INVALID if invalid and not (formats[0].p3109 and formats[1].p3109) else 0]
    return _compare(x, y), FLAGS[0]


def total_order(a: int, b: int, fmt: Format | str) -> bool:
    """Whether ``a`` comes before ``b`` or with it in the total order of a format's codes.

    The order is that of values with -0 below +0. NaNs lie outside: with the sign bit set below -infinity, else above
    +infinity; and among themselves, signaling ones nearer to the numbers, then smaller payloads (IEEE 754-2019 clause
    5.10). A NaN in the place of -0 has the sign bit set, and the NaN of a P3109 format comes first of all. Codes of one
    value, which only a format without subnormals or without -0 has, come with each other. No flags.

    >>> from softnum import reference as ref
    >>> ref.total_order(0x80, 0x00, "e5m2"), ref.total_order(0x00, 0x80, "e5m2"), ref.total_order(0xFF, 0xFC, "e5m2")
    (True, False, True)
    """
    fmt = format_of(fmt)
    x, y = decode(a, fmt), decode(b, fmt)
    left, right = _nan_rank(a, x, fmt), _nan_rank(b, y, fmt)
    if left or right:
        return left <= right
    return (_compare(x, y) or y.sign - x.sign) <= 0


def _nan_rank(code: int, x: Value, fmt: Format) -> int:
    """0 for a number; for a NaN, its place above (positive) or below (negative) all numbers.

    Among "ieee" NaNs the quiet bit leads the payload, so that the magnitude codes are in the order wanted.
    """
    if x.kind != "nan":
        return 0
    rank = 1 + _magnitude_code(code, fmt)
    return -rank if fmt.p3109 or _sign_bit(code, fmt) else rank


# -- classes -----------------------------------------------------------------------------------------------------------
CLASSES = (
    "signalingNaN", "quietNaN", "negativeInfinity", "negativeNormal", "negativeSubnormal", "negativeZero",
    "positiveZero", "positiveSubnormal", "positiveNormal", "positiveInfinity",
)  # fmt: skip


def classify(code: int, fmt: Format | str) -> int:
    """The class of a code, as an index of ``CLASSES``: the ten classes of IEEE 754-2019 clause 5.7.2 by its names.

    Fixed point has zero and normals. No flags.

    >>> from softnum import reference as ref
    >>> [ref.CLASSES[ref.classify(code, "e5m2")] for code in (0x80, 0x01, 0x7D)]
    ['negativeZero', 'positiveSubnormal', 'signalingNaN']
    """
    fmt = format_of(fmt)
    x = decode(code, fmt)
    if x.kind == "nan":
        return 0 if x.signaling else 1
    if x.kind == "inf":
        distance = 3
    elif is_zero(x):
        distance = 0
    else:
        distance = 1 if is_subnormal(code, fmt) else 2
    return 5 - distance if x.sign else 6 + distance


# -- neighbours --------------------------------------------------------------------------------------------------------
def next_up(code: int, fmt: Format | str, *, nan: str = "canonical") -> tuple[int, Flags]:
    """The least value of a format that is greater than a code's value.

    Parameters
    ----------
    code : int
    fmt : FloatFormat, FixedFormat or str
    nan : str
        As in `round_value`.

    Returns
    -------
    code : int
        Above the negative number nearest to zero it is -0 where there is one, else +0. The greatest value stays: an
        infinity, or the largest number where there is none. A NaN becomes the profile's.
    flags : Flags
        INVALID for a signaling NaN.

    Raises
    ------
    ValueError
        If the code is out of range.

    Notes
    -----
    IEEE 754-2019 clause 5.3.1.

    Examples
    --------
    >>> from softnum import reference as ref
    >>> ref.next_up(0x00, "e5m2"), ref.next_up(0x81, "e5m2"), ref.next_up(0x7B, "e5m2")
    ((1, <Flags: 0>), (128, <Flags: 0>), (124, <Flags: 0>))
    """
    return _next(code, fmt, 1, nan)


def next_down(code: int, fmt: Format | str, *, nan: str = "canonical") -> tuple[int, Flags]:
    """The greatest value of a format that is less than a code's value: ``-next_up(-x)``. The rest as in `next_up`.

    >>> from softnum import reference as ref
    >>> ref.next_down(0x00, "e5m2"), ref.next_down(0x01, "e5m2"), ref.next_down(0x00, "e8m0fnu")
    ((129, <Flags: 0>), (0, <Flags: 0>), (0, <Flags: 0>))
    """
    return _next(code, fmt, -1, nan)


def _next(code: int, fmt: Format | str, step: int, nan: str) -> tuple[int, Flags]:
    fmt, code = format_of(fmt), index(code)
    x = decode(code, fmt)
    if fmt.kind == "fixed":
        integer = -x.numerator if x.sign else x.numerator
        integer = max(fmt.lowest, min(integer + step, fmt.max_code))
        return integer & ((1 << fmt.bits) - 1), FLAGS[0]
    if x.kind == "nan":
        return deliver(x, fmt, environment_of(fmt, nan=nan))

    # Count the values: 0 for zero, 1 for the smallest above it, ...; the codes of magnitudes are in this order.
    top = fmt.inf_code if fmt.infinities else fmt.max_code
    if not fmt.has_zero:
        return max(0, min(code + step, top)), FLAGS[0]
    place = 0 if is_zero(x) else implied_magnitude(code, fmt) - fmt.least_code + 1
    place = (-place if x.sign else place) + step
    highest = top - fmt.least_code + 1
    place = max(-highest if fmt.signed else 0, min(place, highest))
    magnitude = abs(place) + fmt.least_code - 1 if place else 0
    return stored_code(with_sign(int(place < 0 or (place == 0 and x.sign)), magnitude, fmt), fmt), FLAGS[0]


# -- signs -------------------------------------------------------------------------------------------------------------
def negate(
    code: int,
    fmt: Format | str,
    overflow: str | None = None,
    *,
    invalid: str | None = None,
    rounding: str = "nearest_even",
) -> tuple[int, Flags]:
    """Reverse a code's sign.

    Parameters
    ----------
    code : int
    fmt : FloatFormat, FixedFormat or str
    overflow : str, optional
        For fixed point: what becomes of ``-(-2**(integer_bits - 1))``, and of what an unsigned format lacks.
    invalid : int, float or Fraction, optional
        As in `round_value`.
    rounding : str
        Of unsigned formats of P3109, where a mode may go to 0.

    Returns
    -------
    code : int
        Signed floats: only the sign bit changes, in a NaN too, and no flag is raised; where there is no -0, a zero is
        code 0, and a NaN in the place of -0 stays. Unsigned floats: a NaN and zero stay; other values have no negative,
        which is INVALID, but in formats of P3109 what a negative number rounds to: NaN or 0. Fixed point: the exact
        negative, under ``overflow``.
    flags : Flags

    Raises
    ------
    ValueError
        If the code is out of range.

    Notes
    -----
    IEEE 754-2019 clause 5.5.1.

    Examples
    --------
    >>> from softnum import reference as ref
    >>> ref.negate(0xFF, "e5m2"), ref.negate(0x80, "e4m3fnuz"), ref.negate(0x80, "q4.4")
    ((127, <Flags: 0>), (128, <Flags: 0>), (127, <Flags.OVERFLOW: 4>))
    """
    fmt = format_of(fmt)
    x = decode(code, fmt)
    negative = x.sign if fmt.kind == "fixed" else _sign_bit(code, fmt)
    env = environment_of(fmt, rounding, overflow, random_bits=0, invalid=invalid)  # which decide nothing here
    return _with_sign_of(1 - negative, code, x, fmt, env)


def absolute(
    code: int, fmt: Format | str, overflow: str | None = None, *, invalid: str | None = None
) -> tuple[int, Flags]:
    """Clear a code's sign. Parameters, result and errors as in `negate`.

    >>> from softnum import reference as ref
    >>> ref.absolute(0xFD, "e5m2"), ref.absolute(0xF8, "q4.4")
    ((125, <Flags: 0>), (8, <Flags: 0>))
    """
    fmt = format_of(fmt)
    env = environment_of(fmt, overflow=overflow, invalid=invalid)
    return _with_sign_of(0, code, decode(code, fmt), fmt, env)


def copysign(
    a: int,
    b: int,
    fmt: Format | str,
    overflow: str | None = None,
    *,
    invalid: str | None = None,
    rounding: str = "nearest_even",
) -> tuple[int, Flags]:
    """Give code ``a`` the sign of code ``b``; the result is in ``a``'s format. The rest as in `negate`.

    The sign of a signed float, even of a NaN, is its sign bit. ``fmt`` may be a pair of formats.

    >>> from softnum import reference as ref
    >>> ref.copysign(0x7E, 0x80, "e5m2"), ref.copysign(0x10, 0xFF, "q4.4")
    ((254, <Flags: 0>), (240, <Flags: 0>))
    """
    formats = tuple(map(format_of, fmt)) if isinstance(fmt, (tuple, list)) else (format_of(fmt),) * 2
    if len(formats) != 2:
        raise ValueError(f"2 operands need one format or 2, got {len(formats)}")
    x, y = decode(a, formats[0]), decode(b, formats[1])
    negative = y.sign if formats[1].kind == "fixed" else _sign_bit(b, formats[1])
    env = environment_of(formats[0], rounding, overflow, random_bits=0, invalid=invalid)  # as in negate
    return _with_sign_of(negative, a, x, formats[0], env)


def _with_sign_of(negative: int, code: int, x: Value, fmt: Format, env: Environment) -> tuple[int, Flags]:
    code = index(code)
    if fmt.kind == "fixed":
        return deliver(Value("finite", negative, x.numerator, x.denominator), fmt, env)
    if not fmt.signed:
        if is_zero(x):
            return 0, FLAGS[0]
        if not negative or x.kind == "nan":
            return code, FLAGS[0]
        if fmt.p3109:
            return below_zero(fmt, env, x.kind == "inf"), FLAGS[0]
        return deliver(INVALID_RESULT, fmt, env)
    if not fmt.negative_zero and (is_zero(x) or code == fmt.nan_code == 1 << (fmt.bits - 1)):
        return (0 if is_zero(x) else code), FLAGS[0]
    return _magnitude_code(code, fmt) | negative << (fmt.bits - 1), FLAGS[0]


def _magnitude_code(code: int, fmt: FloatFacts) -> int:
    return index(code) & ((1 << (fmt.bits - fmt.signed)) - 1)


def _sign_bit(code: int, fmt: FloatFacts) -> int:
    return index(code) >> (fmt.bits - 1) if fmt.signed else 0

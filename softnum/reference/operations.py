"""The operations that round: an exact result, then one delivery."""

from __future__ import annotations

import math
from numbers import Rational, Real

from softnum.formats import Format
from softnum.formats import format as format_of
from softnum.modes import Flags
from softnum.reference.rounding import Environment, deliver, environment_of
from softnum.reference.values import Value, decode


def encode(x: float | Rational, fmt: Format | str, **environment) -> tuple[int, Flags]:
    """Round a number to a code.

    Parameters
    ----------
    x : int, float or Fraction
        The exact value; a float may also be -0, an infinity or a (quiet) NaN.
    fmt : FloatFormat, FixedFormat or str
    **environment
        The keywords of `round_value`.

    Returns
    -------
    code : int
    flags : Flags

    Raises
    ------
    TypeError
        If ``x`` is no number.

    Examples
    --------
    >>> from softnum import reference as ref
    >>> ref.encode(-0.0, "e5m2")
    (128, <Flags: 0>)
    >>> ref.encode(float("nan"), "q4.4")
    (0, <Flags.INVALID: 16>)
    """
    fmt = format_of(fmt)
    if isinstance(x, bool) or not isinstance(x, Real):
        raise TypeError(f"encode needs an int, float or Fraction, got {x!r}")
    if isinstance(x, Rational):
        value = Value("finite", int(x < 0), abs(int(x.numerator)), int(x.denominator))
    else:
        x = float(x)
        if math.isnan(x):
            value = Value("nan")
        else:
            sign = int(math.copysign(1.0, x) < 0)
            value = Value("inf", sign) if math.isinf(x) else Value("finite", sign, *abs(x).as_integer_ratio())
    return deliver(value, fmt, environment_of(fmt, **environment))


def convert(code: int, from_fmt: Format | str, to_fmt: Format | str, **environment) -> tuple[int, Flags]:
    """Convert a code to another format, with one rounding. Keywords as in `round_value`; returns (code, flags).

    >>> from softnum import reference as ref
    >>> ref.convert(0x7C, "e5m2", "e4m3fn")  # an infinity, where there is none
    (127, <Flags: 0>)
    """
    to_fmt = format_of(to_fmt)
    return deliver(decode(code, from_fmt), to_fmt, environment_of(to_fmt, **environment))


def add(a: int, b: int, fmt, *, out_fmt: Format | str | None = None, **environment) -> tuple[int, Flags]:
    """Add two codes: the exact sum, rounded once.

    Parameters
    ----------
    a, b : int
        Codes.
    fmt : format, or a pair of formats, one per operand
    out_fmt : format, optional
        The format of the result; needed where the operands' formats differ.
    **environment
        The keywords of `round_value`.

    Returns
    -------
    code : int
    flags : Flags

    Raises
    ------
    ValueError
        If the operands' formats differ and ``out_fmt`` is missing, or a code is out of range.

    Notes
    -----
    IEEE 754-2019 clauses 5.4.1, 6.3 (an exact zero sum of opposite signs is +0, or -0 when rounding down) and 7.2.

    Examples
    --------
    >>> from softnum import reference as ref
    >>> ref.add(0x3C, 0xBC, "e5m2", rounding="down")
    (128, <Flags: 0>)
    """
    (x, y), out_fmt, env = _prepare((a, b), fmt, out_fmt, environment)
    return deliver(_sum(x, y, env.rounding), out_fmt, env)


def subtract(a: int, b: int, fmt, *, out_fmt: Format | str | None = None, **environment) -> tuple[int, Flags]:
    """Subtract two codes: ``a + (-b)`` exactly, rounded once. Parameters, result and errors as in `add`.

    >>> from softnum import reference as ref
    >>> ref.subtract(0x3C, 0x3C, "e5m2")
    (0, <Flags: 0>)
    """
    (x, y), out_fmt, env = _prepare((a, b), fmt, out_fmt, environment)
    minus_y = Value(y.kind, 1 - y.sign, y.numerator, y.denominator, y.signaling)
    return deliver(_sum(x, minus_y, env.rounding), out_fmt, env)


def multiply(a: int, b: int, fmt, *, out_fmt: Format | str | None = None, **environment) -> tuple[int, Flags]:
    """Multiply two codes: the exact product, rounded once. Parameters, result and errors as in `add`.

    >>> from softnum import reference as ref
    >>> ref.multiply(0x7C, 0x00, "e5m2")  # infinity times zero
    (126, <Flags.INVALID: 16>)
    """
    (x, y), out_fmt, env = _prepare((a, b), fmt, out_fmt, environment)
    return deliver(_product(x, y), out_fmt, env)


def fma(a: int, b: int, c: int, fmt, *, out_fmt: Format | str | None = None, **environment) -> tuple[int, Flags]:
    """Return ``a * b + c`` with one rounding; ``fmt`` is one format or three. The rest as in `add`.

    Infinity times zero is INVALID whatever ``c`` is, a quiet NaN included (IEEE 754-2019 clause 7.2 leaves that open).

    >>> from softnum import reference as ref
    >>> ref.fma(0x3C, 0x40, 0xC0, "e5m2")  # 1 * 2 - 2
    (0, <Flags: 0>)
    """
    (x, y, z), out_fmt, env = _prepare((a, b, c), fmt, out_fmt, environment)
    return deliver(_sum(_product(x, y), z, env.rounding), out_fmt, env)


INVALID_RESULT = Value("nan", signaling=True)


def _prepare(codes: tuple, fmt, out_fmt, environment: dict) -> tuple[list[Value], Format, Environment]:
    formats = tuple(map(format_of, fmt)) if isinstance(fmt, (tuple, list)) else (format_of(fmt),) * len(codes)
    if len(formats) != len(codes):
        raise ValueError(f"{len(codes)} operands need one format or {len(codes)}, got {len(formats)}")
    if out_fmt is None:
        out_fmt = formats[0]
        if any(other is not out_fmt and other != out_fmt for other in formats):
            raise ValueError(f"operands of different formats ({', '.join(map(str, formats))}) need out_fmt=")
    out_fmt = format_of(out_fmt)
    return [decode(c, f) for c, f in zip(codes, formats, strict=True)], out_fmt, environment_of(out_fmt, **environment)


def _product(x: Value, y: Value) -> Value:
    if x.kind == "nan" or y.kind == "nan":
        return Value("nan", signaling=x.signaling or y.signaling)
    sign = x.sign ^ y.sign
    if x.kind == "finite" and y.kind == "finite":
        return Value("finite", sign, x.numerator * y.numerator, x.denominator * y.denominator)
    for factor in (x, y):
        if factor.kind == "finite" and factor.numerator == 0:
            return INVALID_RESULT
    return Value("inf", sign)


def _sum(x: Value, y: Value, rounding: str) -> Value:
    if x.kind == "nan" or y.kind == "nan":
        return Value("nan", signaling=x.signaling or y.signaling)
    if x.kind == "inf":
        return INVALID_RESULT if y.kind == "inf" and x.sign != y.sign else x
    if y.kind == "inf":
        return y
    left, right = x.numerator * y.denominator, y.numerator * x.denominator
    total = (-left if x.sign else left) + (-right if y.sign else right)
    if total:
        return Value("finite", int(total < 0), abs(total), x.denominator * y.denominator)
    return Value("finite", x.sign if x.sign == y.sign else int(rounding == "down"))

"""The operations that round: an exact result, then one delivery.

Source: IEEE Std 754-2019, clauses 5.3 and 5.4 (operations), 6 (infinities, NaNs, sign of zero), 7 (exceptions).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Rational
from operator import index
from typing import Any

from softnum.reference.facts import Format, TaperedFacts, format_of
from softnum.reference.nans import INVALID_RESULT, nan_of, nan_of_fma
from softnum.reference.rounding import (
    DIVIDE_BY_ZERO,
    INEXACT,
    Environment,
    deliver,
    environment_of,
    floor_log2,
    goes_up,
)
from softnum.reference.rules import Flags
from softnum.reference.values import Value, decode, flushed, value_of

__all__ = [
    "add", "convert", "divide", "encode", "fma", "logb", "multiply", "remainder", "round_to_integral", "scalb", "sqrt",
    "subtract",
]  # fmt: skip


def encode(x: float | Rational, fmt: Format | str, **environment: Any) -> tuple[int, Flags]:
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
    ValueError
        As in `round_value`.

    Examples
    --------
    >>> from softnum import reference as ref
    >>> ref.encode(-0.0, "e5m2")
    (128, <Flags: 0>)
    >>> ref.encode(float("nan"), "q4.4")
    (0, <Flags.INVALID: 16>)
    """
    fmt = format_of(fmt)
    return deliver(value_of(x), fmt, environment_of(fmt, **environment))


def convert(code: int, from_fmt: Format | str, to_fmt: Format | str, **environment: Any) -> tuple[int, Flags]:
    """Convert a code to another format, with one rounding. Keywords as in `add`; returns (code, flags).

    >>> from softnum import reference as ref
    >>> ref.convert(0x7C, "e5m2", "e4m3fn")  # an infinity, where there is none
    (127, <Flags: 0>)
    """
    (x,), to_fmt, env = prepare((code,), from_fmt, to_fmt, environment)
    return deliver(x, to_fmt, env)


def add(
    a: int, b: int, fmt: Format | str, *, out_fmt: Format | str | None = None, **environment: Any
) -> tuple[int, Flags]:
    """Add two codes: the exact sum, rounded once.

    Parameters
    ----------
    a, b : int
        Codes.
    fmt : format, or a pair of formats, one per operand
    out_fmt : format, optional
        The format of the result; needed where the operands' formats differ.
    **environment
        The keywords of `round_value`, and ``flush_inputs=True`` to read subnormal operands as zeros, their sign kept
        where the operand's format has -0.

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
    (x, y), out_fmt, env = prepare((a, b), fmt, out_fmt, environment)
    return deliver(exact_sum(x, y, env), out_fmt, env)


def subtract(
    a: int, b: int, fmt: Format | str, *, out_fmt: Format | str | None = None, **environment: Any
) -> tuple[int, Flags]:
    """Subtract two codes: ``a + (-b)`` exactly, rounded once. Parameters, result and errors as in `add`.

    A NaN is not negated: ``a - NaN`` keeps the NaN's sign, where a profile keeps signs.

    >>> from softnum import reference as ref
    >>> ref.subtract(0x3C, 0x3C, "e5m2")
    (0, <Flags: 0>)
    """
    (x, y), out_fmt, env = prepare((a, b), fmt, out_fmt, environment)
    return deliver(exact_sum(x, negated(y), env), out_fmt, env)


def multiply(
    a: int, b: int, fmt: Format | str, *, out_fmt: Format | str | None = None, **environment: Any
) -> tuple[int, Flags]:
    """Multiply two codes: the exact product, rounded once. Parameters, result and errors as in `add`.

    >>> from softnum import reference as ref
    >>> ref.multiply(0x7C, 0x00, "e5m2")  # infinity times zero
    (126, <Flags.INVALID: 16>)
    """
    (x, y), out_fmt, env = prepare((a, b), fmt, out_fmt, environment)
    return deliver(exact_product(x, y, env), out_fmt, env)


def fma(
    a: int, b: int, c: int, fmt: Format | str, *, out_fmt: Format | str | None = None, **environment: Any
) -> tuple[int, Flags]:
    """Return ``a * b + c`` with one rounding; ``fmt`` is one format or three. The rest as in `add`.

    Infinity times zero is INVALID whatever ``c`` is, a quiet NaN included, but on x86, where that NaN is the result
    and no flag is raised (IEEE 754-2019 clause 7.2 leaves that open).

    >>> from softnum import reference as ref
    >>> ref.fma(0x3C, 0x40, 0xC0, "e5m2")  # 1 * 2 - 2
    (0, <Flags: 0>)
    """
    (x, y, z), out_fmt, env = prepare((a, b, c), fmt, out_fmt, environment)
    return deliver(exact_fma(x, y, z, env), out_fmt, env)


def divide(
    a: int, b: int, fmt: Format | str, *, out_fmt: Format | str | None = None, **environment: Any
) -> tuple[int, Flags]:
    """Divide two codes: the exact quotient, rounded once. Parameters, result and errors as in `add`.

    A finite value other than zero over zero is an exact infinity and DIVIDE_BY_ZERO; a format of the result that holds
    no infinity meets it as it meets others: fixed point adds INVALID. Zero over zero and infinity over infinity are
    INVALID. Where the result is of a P3109 format, anything over zero is NaN.

    >>> from softnum import reference as ref
    >>> ref.divide(0x3C, 0x80, "e5m2")  # 1 / -0
    (252, <Flags.DIVIDE_BY_ZERO: 8>)
    >>> ref.divide(0x10, 0x30, "q4.4")  # 1 / 3
    (5, <Flags.INEXACT: 1>)
    """
    (x, y), out_fmt, env = prepare((a, b), fmt, out_fmt, environment)
    sign = x.sign ^ y.sign
    if x.kind == "nan" or y.kind == "nan":
        return deliver(nan_of(env.nan, x, y), out_fmt, env)
    if (x.kind == "inf" and y.kind == "inf") or (is_zero(x) and is_zero(y)):
        return deliver(INVALID_RESULT, out_fmt, env)
    if is_zero(y) and out_fmt.p3109:
        return deliver(INVALID_RESULT, out_fmt, env)
    if is_zero(y):
        return deliver(Value("inf", sign), out_fmt, env, 0 if x.kind == "inf" else DIVIDE_BY_ZERO)
    if x.kind == "inf":
        return deliver(Value("inf", sign), out_fmt, env)
    if y.kind == "inf":
        return deliver(Value("finite", sign), out_fmt, env)
    quotient = Value("finite", sign, x.numerator * y.denominator, x.denominator * y.numerator)
    return deliver(quotient, out_fmt, env)


def remainder(
    a: int, b: int, fmt: Format | str, *, out_fmt: Format | str | None = None, **environment: Any
) -> tuple[int, Flags]:
    """Return ``x - y * n``, n the integer nearest ``x / y``, the even one of two. The rest as in `add`.

    The remainder of equal floats' formats is exact. A zero has the sign of ``x``; ``x`` infinite or ``y`` zero is
    INVALID; ``y`` infinite leaves a finite ``x`` (IEEE 754-2019 clause 5.3.1).

    >>> from softnum import reference as ref
    >>> code, flags = ref.remainder(0x45, 0x42, "e5m2")  # 5 - 3 * 2
    >>> ref.to_fraction(code, "e5m2"), flags
    (Fraction(-1, 1), <Flags: 0>)
    """
    (x, y), out_fmt, env = prepare((a, b), fmt, out_fmt, environment)
    if x.kind == "nan" or y.kind == "nan":
        return deliver(nan_of(env.nan, x, y), out_fmt, env)
    if x.kind == "inf" or is_zero(y):
        return deliver(INVALID_RESULT, out_fmt, env)
    if y.kind == "inf":
        return deliver(x, out_fmt, env)
    modulus = y.numerator * x.denominator
    quotient, rest = divmod(x.numerator * y.denominator, modulus)
    sign = x.sign
    if 2 * rest > modulus or (2 * rest == modulus and quotient & 1):
        sign, rest = 1 - sign, modulus - rest
    return deliver(Value("finite", sign, rest, x.denominator * y.denominator), out_fmt, env)


def sqrt(a: int, fmt: Format | str, *, out_fmt: Format | str | None = None, **environment: Any) -> tuple[int, Flags]:
    """The square root of a code, rounded once. Keywords, result and errors as in `add`.

    The root of -0 is -0; of anything else below zero, INVALID.

    >>> from softnum import reference as ref
    >>> ref.sqrt(0x40, "e5m2")  # sqrt(2) = 1.41..., between 1.25 and 1.5
    (62, <Flags.INEXACT: 1>)
    """
    (x,), out_fmt, env = prepare((a,), fmt, out_fmt, environment)
    if x.kind == "finite" and x.numerator and not x.sign:
        x = _root(x, out_fmt, env)
    elif x.kind != "nan" and x.sign and not is_zero(x):
        x = INVALID_RESULT
    return deliver(x, out_fmt, env)


def _root(x: Value, fmt: Format | str, env: Environment) -> Value:
    """A rational number that rounds to ``fmt`` exactly as the square root s of a positive ``x``; s itself if dyadic.

    A rounding asks of a magnitude only how it compares with certain points: powers of two up to itself, points of the
    grid, the middles between those, and, for r random bits, 2**r-ths of a gap and the middles between these. All are
    multiples of the step 2**-k that is 2**-(r + 1) of the quantum: of fixed point's, or of the unbounded grid's,
    2**(floor(log2 s) - m). The gaps of a float below its normals, where floor(log2 s) <= emin, are integer multiples of
    2**(emin - m), so of that quantum. With t = floor(s * 2**k), either s is t steps, or s lies between t and t + 1
    steps. None of those points lies inside this interval, so its middle compares with all of them as s does.
    """
    fmt = format_of(fmt)
    if fmt.kind == "fixed":
        quantum = -fmt.fraction_bits
    else:
        fraction_bits = fmt.bits if isinstance(fmt, TaperedFacts) else fmt.mantissa_bits  # at most
        quantum = floor_log2(x.numerator, x.denominator) // 2 - fraction_bits
    k = max(0, env.stochastic_bits + 1 - quantum)
    scaled = x.numerator << 2 * k
    steps = math.isqrt(scaled // x.denominator)  # an integer t is at most sqrt(y) iff it is at most sqrt(floor(y))
    if steps * steps * x.denominator == scaled:
        return Value("finite", 0, steps, 1 << k)
    return Value("finite", 0, 2 * steps + 1, 2 << k)


def round_to_integral(
    a: int, fmt: Format | str, *, out_fmt: Format | str | None = None, **environment: Any
) -> tuple[int, Flags]:
    """Round a code to an integer in the mode; "even" and "odd" mean the integer. The rest as in `add`.

    A zero keeps the sign of ``x``. An integer other than ``x`` raises INEXACT. It is rounded again, in the same mode
    and with the same random bits, only if the result's format does not hold it.

    >>> from softnum import reference as ref
    >>> code, flags = ref.round_to_integral(0x41, "e5m2")  # 2.5
    >>> ref.to_fraction(code, "e5m2"), flags
    (Fraction(2, 1), <Flags.INEXACT: 1>)
    """
    (x,), out_fmt, env = prepare((a,), fmt, out_fmt, environment)
    if x.kind != "finite":
        return deliver(x, out_fmt, env)
    integer, rest = divmod(x.numerator, x.denominator)
    integer += goes_up(x.sign, integer & 1, rest, x.denominator, env)
    return deliver(Value("finite", x.sign, integer), out_fmt, env, INEXACT if rest else 0)


# Every value of a format lies well within 2**+-2**17, and so do all points where a rounding's answer changes: beyond
# this, a larger n changes nothing.
_LARGEST_SCALE = 1 << 18


def scalb(
    a: int, n: int, fmt: Format | str, *, out_fmt: Format | str | None = None, **environment: Any
) -> tuple[int, Flags]:
    """Return ``x * 2**n``, rounded once; ``n`` is any int. The rest as in `add`.

    >>> from softnum import reference as ref
    >>> ref.scalb(0x3C, -17, "e5m2", rounding="up")
    (1, <Flags.INEXACT|UNDERFLOW: 3>)
    """
    (x,), out_fmt, env = prepare((a,), fmt, out_fmt, environment)
    n = max(-_LARGEST_SCALE, min(index(n), _LARGEST_SCALE))
    if x.kind == "finite":
        x = Value("finite", x.sign, x.numerator << max(n, 0), x.denominator << max(-n, 0))
    return deliver(x, out_fmt, env)


def logb(a: int, fmt: Format | str, *, out_fmt: Format | str | None = None, **environment: Any) -> tuple[int, Flags]:
    """Return ``floor(log2 |x|)``, an integer, rounded to the result's format. The rest as in `add`.

    Of zero it is minus infinity and DIVIDE_BY_ZERO, of an infinity plus infinity (IEEE 754-2019 clause 5.3.3).

    >>> from softnum import reference as ref
    >>> code, flags = ref.logb(0x01, "e5m2")  # 2**-16
    >>> ref.to_fraction(code, "e5m2"), flags
    (Fraction(-16, 1), <Flags: 0>)
    """
    (x,), out_fmt, env = prepare((a,), fmt, out_fmt, environment)
    if is_zero(x):
        return deliver(Value("inf", 1), out_fmt, env, DIVIDE_BY_ZERO)
    if x.kind == "inf":
        return deliver(Value("inf"), out_fmt, env)
    if x.kind == "nan":
        return deliver(x, out_fmt, env)
    exponent = floor_log2(x.numerator, x.denominator)
    return deliver(Value("finite", int(exponent < 0), abs(exponent)), out_fmt, env)


def is_zero(x: Value) -> bool:
    """Whether a value is +0 or -0."""
    return x.kind == "finite" and x.numerator == 0


def prepare(
    codes: tuple[Any, ...],
    fmt: Format | str | Sequence[Format | str],
    out_fmt: Format | str | None,
    environment: dict[str, Any],
) -> tuple[list[Value], Format, Environment]:
    """The operands' values, the format of the result, and the environment."""
    formats = tuple(map(format_of, fmt)) if isinstance(fmt, (tuple, list)) else (format_of(fmt),) * len(codes)
    if len(formats) != len(codes):
        raise ValueError(f"{len(codes)} operands need one format or {len(codes)}, got {len(formats)}")
    if out_fmt is None:
        out_fmt = formats[0]
        if any(other is not out_fmt and other != out_fmt for other in formats):
            raise ValueError(f"operands of different formats ({', '.join(map(str, formats))}) need out_fmt=")
    out_fmt = format_of(out_fmt)
    values = [decode(c, f) for c, f in zip(codes, formats, strict=True)]
    if environment.pop("flush_inputs", False):
        values = [flushed(x, c, f) for x, c, f in zip(values, codes, formats, strict=True)]
    return values, out_fmt, environment_of(out_fmt, **environment)


def exact_fma(x: Value, y: Value, z: Value, env: Environment) -> Value:
    """``x * y + z``, or what stands for it."""
    product = exact_product(x, y, env)
    if "nan" in (x.kind, y.kind, z.kind):
        return nan_of_fma(env.nan, x, y, z, product is INVALID_RESULT)
    return exact_sum(product, z, env)


def exact_product(x: Value, y: Value, env: Environment) -> Value:
    """``x * y``, or what stands for it."""
    if x.kind == "nan" or y.kind == "nan":
        return nan_of(env.nan, x, y)
    sign = x.sign ^ y.sign
    if x.kind == "finite" and y.kind == "finite":
        return Value("finite", sign, x.numerator * y.numerator, x.denominator * y.denominator)
    return INVALID_RESULT if is_zero(x) or is_zero(y) else Value("inf", sign)


def negated(x: Value) -> Value:
    """``-x``; a NaN is not negated."""
    return x if x.kind == "nan" else x._replace(sign=1 - x.sign)


def exact_sum(x: Value, y: Value, env: Environment) -> Value:
    """``x + y``, or what stands for it; an exact zero of opposite signs is +0, or -0 when rounding down."""
    if x.kind == "invalid":
        return x
    if x.kind == "nan" or y.kind == "nan":
        return nan_of(env.nan, x, y)
    if x.kind == "inf":
        return INVALID_RESULT if y.kind == "inf" and x.sign != y.sign else x
    if y.kind == "inf":
        return y
    left, right = x.numerator * y.denominator, y.numerator * x.denominator
    total = (-left if x.sign else left) + (-right if y.sign else right)
    if total:
        return Value("finite", int(total < 0), abs(total), x.denominator * y.denominator)
    return Value("finite", x.sign if x.sign == y.sign else int(env.rounding == "down"))

"""Integers out of formats and into them, shifts of fixed point, and errors counted in ulps.

Sources: IEEE Std 754-2019, clauses 5.4.1 (convertFromInt), 5.8 (convertToInteger) and 7.2 (what is invalid there);
RISC-V Unprivileged ISA, "F" extension (FCVT); Arm Architecture Reference Manual, pseudocode FPToFixed; Intel 64 and
IA-32 Software Developer's Manual, CVTSS2SI and VCVTSS2USI (the integer indefinite).
"""

from __future__ import annotations

from fractions import Fraction
from numbers import Integral, Rational
from operator import index
from typing import Any

from softnum.reference.facts import FixedFacts, Format, format_of
from softnum.reference.operations import encode, scalb
from softnum.reference.rounding import FLAGS, INEXACT, INVALID, environment_of, floor_log2, goes_up
from softnum.reference.rules import Flags
from softnum.reference.values import Value, decode, flushed, value_of


def to_integer(
    code: int,
    fmt: Format | str,
    bits: int,
    signed: bool,
    *,
    rounding: str = "nearest_even",
    invalid: str | int = "riscv",
    exact: bool = True,
    random_bits: int | None = None,
    stochastic_bits: int = 32,
    flush_inputs: bool = False,
) -> tuple[int, Flags]:
    """Round a code to an integer of a type.

    Parameters
    ----------
    code : int
    fmt : FloatFormat, FixedFormat or str
    bits, signed : int, bool
        The type: 2 to 64 bits (1 to 64 if unsigned), two's complement if signed.
    rounding, random_bits, stochastic_bits, flush_inputs
        As in `add`; "even" and "odd" mean the integer.
    invalid : {"riscv", "arm", "x86"} or int
        What NaN, infinities and values that round to an integer beyond the type become. "riscv": the nearest integer of
        the type, and the largest for NaN. "arm": likewise, and 0 for NaN. "x86": the lowest integer of a signed type,
        the largest of an unsigned one. An integer of the type: this one.
    exact : bool
        Whether a value that is no integer raises INEXACT.

    Returns
    -------
    integer : int
    flags : Flags
        INVALID alone, or INEXACT, or none.

    Raises
    ------
    ValueError
        If the code is out of range, for an unknown rule, or an integer that the type does not have.

    Notes
    -----
    IEEE 754-2019 clauses 5.8 and 7.2.

    Examples
    --------
    >>> from softnum import reference as ref
    >>> ref.to_integer(0x41, "e5m2", 8, True), ref.to_integer(0x7E, "e5m2", 8, True)  # 2.5 and NaN
    ((2, <Flags.INEXACT: 1>), (127, <Flags.INVALID: 16>))
    """
    fmt, kind = format_of(fmt), FixedFacts(index(bits), 0, bool(signed))
    env = environment_of(kind, rounding, None, stochastic_bits, random_bits)
    lowest, highest = kind.lowest, kind.max_code
    instead = _invalid_integers(invalid, signed, lowest, highest)
    x = decode(code, fmt)
    if flush_inputs:
        x = flushed(x, code, fmt)
    if x.kind == "nan":
        return instead["nan"], FLAGS[INVALID]
    if x.kind == "finite":
        integer, rest = divmod(x.numerator, x.denominator)
        integer += goes_up(x.sign, integer & 1, rest, x.denominator, env)
        integer = -integer if x.sign else integer
        if lowest <= integer <= highest:
            return integer, FLAGS[INEXACT if rest and exact else 0]
    return instead["low" if x.sign else "high"], FLAGS[INVALID]


def _invalid_integers(rule: str | int, signed: bool, lowest: int, highest: int) -> dict[str, int]:
    """What is delivered for a NaN, and for what is too low and too high."""
    if isinstance(rule, Integral) and not isinstance(rule, bool):
        if not lowest <= rule <= highest:
            raise ValueError(f"invalid={rule} does not lie in {lowest}..{highest}")
        return dict.fromkeys(("nan", "low", "high"), int(rule))
    if rule == "riscv":
        return {"nan": highest, "low": lowest, "high": highest}
    if rule == "arm":
        return {"nan": 0, "low": lowest, "high": highest}
    if rule == "x86":
        return dict.fromkeys(("nan", "low", "high"), lowest if signed else highest)
    raise ValueError(f"invalid must be 'riscv', 'arm', 'x86' or an integer, got {rule!r}")


def from_integer(x: int, out_fmt: Format | str, **environment: Any) -> tuple[int, Flags]:
    """Round an integer to a code. Keywords, result and errors as in `encode`; 0 becomes +0.

    >>> from softnum import reference as ref
    >>> ref.from_integer(9, "e5m2"), ref.from_integer(-300, "q8.0")
    ((72, <Flags.INEXACT: 1>), (128, <Flags.OVERFLOW: 4>))
    """
    if isinstance(x, bool) or not isinstance(x, Integral):
        raise TypeError(f"from_integer needs an int, got {x!r}")
    return encode(x, out_fmt, **environment)


def shift(a: int, n: int, fmt: Format | str, *, rounding: str = "down", **environment: Any) -> tuple[int, Flags]:
    """Return ``a * 2**n`` in fixed point, rounded once; "down" drops what leaves at the right. The rest as in `scalb`.

    >>> from softnum import reference as ref
    >>> ref.shift(0xFB, -1, "q4.4"), ref.shift(0x50, 1, "q4.4"), ref.shift(0x50, 1, "q4.4", overflow="wrap")
    ((253, <Flags.INEXACT: 1>), (127, <Flags.OVERFLOW: 4>), (160, <Flags.OVERFLOW: 4>))
    """
    if format_of(fmt).kind != "fixed":
        raise ValueError(f"shift is for fixed point; {fmt} is a float format (scalb)")
    return scalb(a, n, fmt, rounding=rounding, **environment)


def ulp_error(a: int, exact: float | Rational, fmt: Format | str) -> Fraction | float:
    """How far a code's value lies from an exact value, in units in the last place.

    Parameters
    ----------
    a : int
        A code: the result that is judged.
    exact : int, float or Fraction
    fmt : FloatFormat, FixedFormat or str

    Returns
    -------
    Fraction, or a float if one of the two is not finite
        ``(value - exact) / ulp``. The ulp is the distance of neighbouring values in the binade of ``abs(exact)``, as if
        exponents went on above the largest; below the smallest normal, and for 0, that of the lowest binade; in fixed
        point, ``2**-fraction_bits``. Of two equal infinities it is 0, of an infinity and another value an infinity, of
        a NaN NaN.

    Raises
    ------
    ValueError
        If the code is out of range.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from softnum import reference as ref
    >>> ref.ulp_error(0x35, Fraction(1, 3), "e5m2")  # 0.3125, where values are 0.0625 apart
    Fraction(-1, 3)
    """
    fmt = format_of(fmt)
    x, y = decode(a, fmt), value_of(exact)
    if x.kind == "nan" or y.kind == "nan":
        return float("nan")
    if x.kind == "inf" or y.kind == "inf":
        return _infinite(x) - _infinite(y) if x[:2] != y[:2] else 0.0
    if fmt.kind == "fixed":
        quantum = -fmt.fraction_bits
    else:
        exponent = floor_log2(y.numerator, y.denominator) if y.numerator else fmt.emin
        quantum = max(exponent, fmt.emin) - fmt.mantissa_bits
    return (x.fraction - y.fraction) / Fraction(2) ** quantum


def _infinite(x: Value) -> float:
    return 0.0 if x.kind == "finite" else float("-inf") if x.sign else float("inf")

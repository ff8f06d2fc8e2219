"""Block formats: scales and elements of a block, by Fractions. Of a block format only the facts are used.

Sources: OCP Microscaling Formats (MX) Specification v1.0, clause 6.3; arXiv 2506.08027 (rceil); arXiv 2509.25149
(nvfp4); torchao's ScaleCalculationMode (floor, ceil, even, rceil).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from softnum.reference.facts import BlockFacts, Format, block_format_of
from softnum.reference.rounding import deliver, environment_of, floor_log2, round_value
from softnum.reference.rules import checked
from softnum.reference.values import Value, decode, value_of

__all__ = ["SCALE_RULES", "block_scale", "decode_block", "encode_block", "tensor_scale"]

SCALE_RULES = ("floor", "ceil", "even", "nearest", "rceil", "max")


def _log2(x: Fraction) -> int:
    return floor_log2(x.numerator, x.denominator)


def _largest(fmt: Format) -> Fraction:
    return decode(fmt.max_code, fmt).fraction


def _least(fmt: Format) -> Fraction:
    return decode(fmt.least_code, fmt).fraction


def _clamped(code: int, fmt: Format) -> int:
    """A scale that is not zero."""
    value = decode(code, fmt)
    return fmt.least_code if value.kind == "finite" and value.fraction == 0 else code


def block_scale(
    values: Sequence[Any], fmt: BlockFacts | str, *, scale_rule: str | None = None, tensor_scale: Fraction | int = 1
) -> int | None:
    """The code of the scale of a block.

    Parameters
    ----------
    values : sequence of int, float or Fraction
        The block.
    fmt : BlockFormat or str
    scale_rule : str, optional
        One of `SCALE_RULES`; by default "floor" for scales without a fraction, else "max".
    tensor_scale : Fraction
        The scale of the array.

    Returns
    -------
    int or None
        None: a value is infinite or NaN, and the scale has no NaN.

    Examples
    --------
    >>> import softnum as sn
    >>> from softnum import reference as ref
    >>> ref.block_scale([7.99], sn.format("mxfp4")), ref.block_scale([7.99], sn.format("mxfp4"), scale_rule="even")
    (127, 128)
    """
    fmt = block_format_of(fmt)
    scale = fmt.scale
    xs = [value_of(v) for v in values]
    if any(x.kind != "finite" for x in xs):
        return scale.nan_code if scale.has_nan else None
    amax = max(abs(x.fraction) for x in xs)
    if amax == 0:
        return scale.least_code
    if scale_rule is None:
        powers = scale.kind == "float" and not scale.mantissa_bits and fmt.tensor_scale is None
        scale_rule = "floor" if powers else "max"
    checked("scale rule", scale_rule, SCALE_RULES)
    most = _largest(fmt.element)
    if scale_rule in ("max", "rceil"):
        rounding = "nearest_even" if scale_rule == "max" else "up"
        exact = amax / (most * tensor_scale)
        return _clamped(round_value(exact, 0, scale, rounding=rounding, overflow="saturate")[0], scale)
    below = _log2(amax)
    significand = amax / Fraction(2) ** below
    if scale_rule == "ceil":
        below += significand > 1
    elif scale_rule == "nearest":
        below += 2 - significand <= significand - 1
    elif scale_rule == "even":
        spacing = _spacing_below(most, fmt.element) / Fraction(2) ** _log2(most)
        below += round(significand / spacing) * spacing >= 2  # Python's round is to nearest even
    wanted = Fraction(2) ** (below - _log2(most))
    largest = Fraction(2) ** _log2(_largest(scale))
    return round_value(min(max(wanted, _least(scale)), largest), 0, scale)[0]


def _spacing_below(most: Fraction, element: Format) -> Fraction:
    """The distance of the values in the binade of the largest."""
    if element.kind == "fixed":
        return Fraction(2) ** -element.fraction_bits
    return Fraction(2) ** (_log2(most) - element.mantissa_bits)


def tensor_scale(values: Sequence[Any], fmt: BlockFacts | str) -> Fraction:
    """The scale of an array whose blocks of finite values hold these: the largest becomes the largest product.

    >>> import softnum as sn
    >>> tensor_scale([1.0, -6.0 * 448.0 * 4], sn.format("nvfp4"))
    Fraction(4, 1)
    """
    fmt = block_format_of(fmt)
    amax = max((abs(Fraction(v)) for v in values), default=Fraction(0))
    if amax == 0:
        return Fraction(1)
    exact = amax / (_largest(fmt.element) * _largest(fmt.scale))
    code, _ = round_value(exact, 0, fmt.tensor_scale, overflow="saturate")
    value = decode(code, fmt.tensor_scale).fraction
    return value or _least(fmt.tensor_scale)


def encode_block(
    values: Sequence[Any],
    fmt: BlockFacts | str,
    *,
    scale_rule: str | None = None,
    tensor_scale: Fraction | int = 1,
    rounding: str = "nearest_even",
    overflow: str | None = "saturate",
    stochastic_bits: int = 32,
    random_bits: Sequence[int] | None = None,
    symmetric: bool = False,
) -> tuple[list[int], int | None]:
    """(codes of the elements, code of the scale) of one block: each value by the scale, exactly, rounded once.

    Parameters as `block_scale` and `round_value` have them; random_bits: a word for each value.

    >>> import softnum as sn
    >>> from softnum import reference as ref
    >>> ref.encode_block([1.0, 3.3, -20.0], sn.format("mxfp4"))
    ([0, 2, 14], 129)
    """
    fmt = block_format_of(fmt)
    element = fmt.element
    code = block_scale(values, fmt, scale_rule=scale_rule, tensor_scale=tensor_scale)
    if code is None:
        return [], None
    scale = decode(code, fmt.scale)
    codes = []
    for i, v in enumerate(values):
        x = value_of(v)
        word = None if random_bits is None else random_bits[i]
        env = environment_of(element, rounding, overflow, stochastic_bits, word)
        if scale.kind == "nan":
            quotient = Value("nan", 0, 1, 2)
        else:
            exact = abs(x.fraction) / (scale.fraction * tensor_scale)
            quotient = Value("finite", x.sign, exact.numerator, exact.denominator)
        result, _ = deliver(quotient, element, env)
        if symmetric and result == 1 << (element.bits - 1):
            result += 1
        codes.append(result)
    return codes, code


def decode_block(
    codes: Sequence[int], scale: int, fmt: BlockFacts | str, *, tensor_scale: Fraction | int = 1
) -> list[Value]:
    """The values of a block: element times scale (times the array's), exactly.

    >>> import softnum as sn
    >>> from softnum import reference as ref
    >>> [v.fraction for v in ref.decode_block([0, 2, 14], 129, sn.format("mxfp4"))]
    [Fraction(0, 1), Fraction(4, 1), Fraction(-16, 1)]
    """
    fmt = block_format_of(fmt)
    factor = decode(scale, fmt.scale)
    return [scaled(decode(code, fmt.element), factor, tensor_scale) for code in codes]


def scaled(x: Value, *factors: Value) -> Value:
    """A value times scales (`Value` or Fraction); a NaN makes NaN, and so does infinity times zero."""
    for factor in factors:
        y = factor if isinstance(factor, Value) else value_of(Fraction(factor))
        if "nan" in (x.kind, y.kind):
            return Value("nan", 0, 1, 2)
        sign = x.sign ^ y.sign
        if "inf" in (x.kind, y.kind):
            zero = any(v.kind == "finite" and v.numerator == 0 for v in (x, y))
            x = Value("nan", 0, 1, 2) if zero else Value("inf", sign)
        else:
            x = Value("finite", sign, x.numerator * y.numerator, x.denominator * y.denominator)
    return x

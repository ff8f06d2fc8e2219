"""Numbers of the caller's as codes, and codes as numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from softnum.arrays.checks import float_array
from softnum.arrays.container import Array
from softnum.inspect.permitted.freedom import Freedom
from softnum.inspect.steps.step import number
from softnum.inspect.trace import codes_of
from softnum.mac.products.operands import checked_operand
from softnum.reference.facts import format_of
from softnum.reference.rounding import deliver, environment_of
from softnum.reference.values import decode, value_of

__all__ = ["codes_of_dot", "given_code", "number_of", "operand_codes"]


def number_of(code: int, fmt):
    """A code's value: a float, or a Fraction where no float64 holds it.

    >>> import softnum as sn
    >>> from softnum.inspect.permitted.operands import number_of
    >>> number_of(0x80, sn.format("e5m2")), number_of(0x3d, sn.format("e5m2"))
    (-0.0, 1.25)
    """
    value = number(decode(code, format_of(fmt)))
    if isinstance(value, str):
        return float(value)
    try:
        return float(value) if Fraction(float(value)) == value else value
    except OverflowError:
        return value


def operand_codes(x, fmt, what: str, ndim: tuple[int, ...]) -> tuple[list[int], tuple[int, ...]]:
    """The codes of an operand, flat, and its shape."""
    x = x if isinstance(x, Array) else float_array(x, "permitted")
    if x.ndim not in ndim:
        wanted = " or ".join(map(str, ndim))
        raise ValueError(f"permitted: {what} has {x.ndim} dimensions (shape {x.shape}); it takes {wanted}")
    shape = x.shape
    return codes_of(checked_operand(x.reshape(-1), fmt, what, "permitted"), fmt), shape


def codes_of_dot(a, b, c, freedom: Freedom) -> tuple[list[int], list[int], int | None]:
    """Codes of the operands of one dot product."""
    (a, _), (b, _) = operand_codes(a, freedom.operand[0], "a", (1,)), operand_codes(b, freedom.operand[1], "b", (1,))
    if len(a) != len(b):
        raise ValueError(f"permitted: a has {len(a)} elements, b has {len(b)}")
    if c is not None:
        (c,), _ = operand_codes(c if isinstance(c, Array) else np.asarray(c), freedom.accumulator, "c", (0, 1))
    return a, b, c


def given_code(x, fmt) -> tuple[int | None, object]:
    """The code of a given result, any NaN as the canonical one, and its value; None where the format lacks it."""
    own = format_of(fmt)
    if isinstance(x, Array):
        value = decode(int(x.codes.reshape(-1)[0]), format_of(x.format))
        shown = number_of(int(x.codes.reshape(-1)[0]), x.format)
    else:
        value, shown = value_of(float(x)), float(x)
    if value.kind == "nan":
        return (own.nan_code if own.has_nan else None), shown
    code, _ = deliver(value, own, environment_of(own))
    back = decode(code, own)
    same = (back.kind, back.sign) == (value.kind, value.sign)
    return (code if same and (value.kind != "finite" or back.fraction == value.fraction) else None), shown

"""Operations that choose one of their operands, which is then rounded: by magnitude, finite ones first, within bounds.

Source: IEEE P3109, interim report v4.0, 4.11.2 to 4.11.4; the first four are IEEE 754-2019's, clause 9.6, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softnum.arrays.container import Array
from softnum.formats.annotations import FormatLike, Formats
from softnum.formats.checks import check_not_custom
from softnum.formats.modes import Flags
from softnum.ops.arithmetic import classify, compare, convert
from softnum.ops.operation import described
from softnum.ops.signatures import Binary
from softnum.runtime import gateway

__all__ = [
    "clamp", "maximum_finite", "maximum_magnitude", "maximum_magnitude_number", "minimum_finite", "minimum_magnitude",
    "minimum_magnitude_number",
]  # fmt: skip

_SIGNALING = 0  # of `softnum.ops.CLASSES`

_OPTIONS = """
    fmt : format or str, or a tuple of them, optional
        The operands', if they are codes; floats.
    out_fmt : format or str, optional
        The result's; needed where the operands' formats differ.
    return_flags : bool
        Whether to return (result, flags).
    **options
        rounding, overflow, key ... of the rounding to `out_fmt`, as in `softnum.convert`.

    Returns
    -------
    ndarray of codes, or Array if the operands are Arrays; with `return_flags`, a pair

    Raises
    ------
    ValueError
        If a format is no float, or formats are missing or differ without `out_fmt`, or a result has no code.
"""


def _chosen(name: str, operands, fmt, out_fmt, return_flags: bool, options: dict, choose: Callable):
    """The operand of the number that `choose` gives, rounded; len(operands) for NaN of none."""
    if any(map(gateway.is_device_array, operands)) or any(
        isinstance(x, Array) and gateway.is_device_array(x.codes) for x in operands
    ):
        gateway.refuse_device(name)
    rounding, overflow = options.get("rounding", "nearest_even"), options.get("overflow")
    codes, formats, out_fmt, as_array = described(
        name, operands, fmt, out_fmt, rounding, overflow, options.get("stochastic_bits", 32)
    )
    for each in (*formats, out_fmt):
        check_not_custom(each, f"{name} is for floats, not for {{}}")
        if each.kind != "float":
            raise ValueError(f"{name} is defined for floats; {each} is fixed point")
    codes = np.broadcast_arrays(*codes)
    which = choose(codes, formats)
    each = [convert(c, f, out_fmt, return_flags=True, **options) for c, f in zip(codes, formats, strict=True)]
    result = np.choose(np.minimum(which, len(each) - 1), [r for r, _ in each])
    flags = np.choose(np.minimum(which, len(each) - 1), [f for _, f in each])
    for code, f in zip(codes, formats, strict=True):  # IEEE 754-2019 9.6: whichever operand is chosen
        flags = np.where(classify(code, f) == _SIGNALING, flags | np.uint8(Flags.INVALID), flags)
    none = which == len(each)
    if none.any():
        if not out_fmt.has_nan:
            raise ValueError(f"{name}: {np.count_nonzero(none)} results are NaN, which {out_fmt} cannot encode")
        result = np.where(none, result.dtype.type(out_fmt.nan_code), result)
        flags = np.where(none, np.uint8(Flags.INVALID), flags)
    flags = np.zeros_like(flags) if out_fmt.p3109 else flags
    result = Array._of(result, out_fmt) if as_array else result
    return (result, flags) if return_flags else result


def _nan_first(nans, other: np.ndarray) -> np.ndarray:
    """The first NaN of two, else the other choice."""
    return np.where(nans[0], 0, np.where(nans[1], 1, other))


def _nan_last(nans, other: np.ndarray) -> np.ndarray:
    """The one that is no NaN, else the other choice."""
    return np.where(nans[0], 1, np.where(nans[1], 0, other))


def _nans(codes, formats) -> list[np.ndarray]:
    return [f.is_nan(c) for c, f in zip(codes, formats, strict=True)]


def _by_magnitude(codes, formats, greatest: bool) -> np.ndarray:
    """0 or 1: whose magnitude is less, or greater; of equal ones, the negative or the positive number."""
    order = compare(*(f.magnitudes(c) for c, f in zip(codes, formats, strict=True)), tuple(formats))
    return _second(order, codes, formats, greatest)


def _by_value(codes, formats, greatest: bool) -> np.ndarray:
    return _second(compare(*codes, tuple(formats)), codes, formats, greatest)


def _second(order: np.ndarray, codes, formats, greatest: bool) -> np.ndarray:
    """0 or 1 by an order; of what is equal in it, the negative one is the lesser."""
    negative = [f.sign_bits(c) for c, f in zip(codes, formats, strict=True)]
    second = (order < 0) | ((order == 0) & negative[0]) if greatest else (order == 1) | ((order == 0) & negative[1])
    return second.astype(np.int64)


def _finite_first(codes, formats, greatest: bool) -> np.ndarray:
    infinite = [f.is_infinite(c) for c, f in zip(codes, formats, strict=True)]
    alone = infinite[0] != infinite[1]
    return np.where(alone, infinite[0].astype(np.int64), _by_value(codes, formats, greatest))


def _of_two(name: str, text: str, example: str, place: str, nan: Callable, rule: Callable, greatest: bool) -> Binary:
    def operation(
        a: ArrayLike, b: ArrayLike, fmt: Formats | None = None, *, out_fmt: FormatLike | None = None,
        return_flags: bool = False, **options: Any,
    ) -> Any:  # fmt: skip
        def choose(codes, formats):
            return nan(_nans(codes, formats), rule(codes, formats, greatest))

        return _chosen(name, (a, b), fmt, out_fmt, return_flags, options, choose)

    operation.__name__ = operation.__qualname__ = name
    operation.__doc__ = f"""{text}

    Parameters
    ----------
    a, b : Array, or array_like of codes (then with `fmt`){_OPTIONS}
    Examples
    --------
    >>> import softnum as sn
    {example}

    Source: {place}.
    """
    return operation


_9_6 = "IEEE 754-2019 clause 9.6; IEEE P3109 v4.0, 4.11.2"
minimum_magnitude: Binary = _of_two(
    "minimum_magnitude",
    "The operand of lesser magnitude, of equal ones the lesser; NaN if either is NaN.",
    '>>> sn.ops.minimum_magnitude(sn.array([-1.0, 3.0], "e5m2"), sn.array([2.0, -3.0], "e5m2"))\n'
    "    Array([-1., -3.], e5m2)",
    _9_6, _nan_first, _by_magnitude, False,
)  # fmt: skip
maximum_magnitude: Binary = _of_two(
    "maximum_magnitude",
    "The operand of greater magnitude, of equal ones the greater; NaN if either is NaN.",
    '>>> sn.ops.maximum_magnitude(sn.array([-4.0, 3.0], "e5m2"), sn.array([2.0, -3.0], "e5m2"))\n'
    "    Array([-4.,  3.], e5m2)",
    _9_6, _nan_first, _by_magnitude, True,
)  # fmt: skip
minimum_magnitude_number: Binary = _of_two(
    "minimum_magnitude_number",
    "The operand of lesser magnitude; a NaN gives way to a number.",
    '>>> sn.ops.minimum_magnitude_number(sn.array(-4.0, "e5m2"), sn.array(float("nan"), "e5m2"))\n    Array(-4., e5m2)',
    _9_6, _nan_last, _by_magnitude, False,
)  # fmt: skip
maximum_magnitude_number: Binary = _of_two(
    "maximum_magnitude_number",
    "The operand of greater magnitude; a NaN gives way to a number.",
    '>>> sn.ops.maximum_magnitude_number(sn.array(-4.0, "e5m2"), sn.array(2.0, "e5m2"))\n    Array(-4., e5m2)',
    _9_6, _nan_last, _by_magnitude, True,
)  # fmt: skip
_4_11_3 = "IEEE P3109 v4.0, 4.11.3"
minimum_finite: Binary = _of_two(
    "minimum_finite",
    "The lesser operand; an infinity gives way to what is finite, and a NaN to both.",
    '>>> sn.ops.minimum_finite(sn.array(2.0, "e5m2"), sn.array(float("-inf"), "e5m2"))\n    Array(2., e5m2)',
    _4_11_3, _nan_last, _finite_first, False,
)  # fmt: skip
maximum_finite: Binary = _of_two(
    "maximum_finite",
    "The greater operand; an infinity gives way to what is finite, and a NaN to both.",
    '>>> sn.ops.maximum_finite(sn.array(2.0, "e5m2"), sn.array(float("inf"), "e5m2"))\n    Array(2., e5m2)',
    _4_11_3, _nan_last, _finite_first, True,
)  # fmt: skip


def clamp(
    x: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    fmt: Formats | None = None,
    *,
    out_fmt: FormatLike | None = None,
    return_flags: bool = False,
    **options: Any,
) -> Any:
    def choose(codes, formats):
        order = lambda i, j: compare(codes[i], codes[j], (formats[i], formats[j]))  # noqa: E731
        inside = np.where(order(0, 1) != 1, 1, np.where(order(0, 2) == -1, 0, 2))
        inside = np.where(order(1, 2) == 1, 3, inside)
        nans = _nans(codes, formats)
        return np.where(nans[0], 0, np.where(nans[1], 1, np.where(nans[2], 2, inside)))

    return _chosen("clamp", (x, low, high), fmt, out_fmt, return_flags, options, choose)


clamp.__doc__ = f"""x, or the bound that it lies beyond; NaN if an operand is NaN, or low above high.

    Parameters
    ----------
    x, low, high : Array, or array_like of codes (then with `fmt`){_OPTIONS}
    Examples
    --------
    >>> import softnum as sn
    >>> x = sn.array([-7.0, 0.5, 9.0], "e5m2")
    >>> sn.ops.clamp(x, sn.array(-1.0, "e5m2"), sn.array(6.0, "e5m2"))
    Array([-1. ,  0.5,  6. ], e5m2)

    Source: IEEE P3109 v4.0, 4.11.4.
    """

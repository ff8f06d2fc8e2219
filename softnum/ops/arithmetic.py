"""Operations on codes and on `Array`: each computes the exact result and rounds it once (`softnum.ops.operation`).

One table, `OPERATIONS`, lists them: the ufuncs of the core, the operators of `Array` and the tests go by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softnum.arrays.container import OPERATIONS, Array
from softnum.formats.annotations import FormatLike, Formats
from softnum.formats.names import format
from softnum.formats.operation_names import CODE_OPERANDS, ELEMENTARY, OPERANDS
from softnum.formats.scalar import FixedFormat, FloatFormat
from softnum.ops.operation import OPTIONS, RETURNS, apply, rounded
from softnum.ops.signatures import Binary, Ternary, Unary
from softnum.runtime import gateway

__all__ = [
    "absolute", "add", "classify", "compare", "convert", "copysign", "divide", "fma", "logb", "maximum",
    "maximum_number", "minimum", "minimum_number", "multiply", "negate", "next_down", "next_up", "remainder",
    "round_to_integral", "scalb", "sqrt", "subtract", "total_order",
]  # fmt: skip

#: The classes of IEEE 754-2019 5.7.2, by the numbers that `classify` returns.
CLASSES = FloatFormat.class_names

add: Binary = rounded(
    "add",
    2,
    "The exactly rounded ``a + b``.",
    "clauses 5.4.1, 6 and 7",
    '>>> sn.add([0x3c], [0x3d], "e5m2", return_flags=True)\n    (array([64], dtype=uint8), array([1], dtype=uint8))',
)
subtract: Binary = rounded(
    "subtract",
    2,
    "The exactly rounded ``a - b``.",
    "clauses 5.4.1, 6 and 7",
    '>>> sn.subtract(sn.array(1.0, "e4m3fn"), sn.array(0.75, "e4m3fn"))\n    Array(0.25, e4m3fn)',
)
multiply: Binary = rounded(
    "multiply",
    2,
    "The exactly rounded ``a * b``.",
    "clauses 5.4.1, 6 and 7",
    '>>> sn.multiply([0x18], [0x18], "q4.4")  # 1.5 * 1.5\n    array([36], dtype=uint8)',
)
divide: Binary = rounded(
    "divide",
    2,
    "The exactly rounded ``a / b``; x / 0 raises DIVIDE_BY_ZERO.",
    "clauses 5.4.1, 7.2 and 7.3",
    '>>> sn.divide(sn.array(1.0, "binary16"), sn.array(3.0, "binary16"))\n    Array(0.33325195, binary16)',
)
remainder: Binary = rounded(
    "remainder",
    2,
    "``a - b * n`` with n the integer nearest to a / b, ties to even.",
    "clause 5.3.1",
    '>>> sn.remainder(sn.array(5.0, "e4m3fn"), sn.array(3.0, "e4m3fn"))\n    Array(-1., e4m3fn)',
)
sqrt: Unary = rounded(
    "sqrt",
    1,
    "The exactly rounded square root; of a negative number, NaN and INVALID.",
    "clause 5.4.1",
    '>>> sn.sqrt(sn.array([2.0, 9.0], "bfloat16"))\n    Array([1.4140625, 3.       ], bfloat16)',
)
fma: Ternary = rounded(
    "fma",
    3,
    "The exactly rounded ``a * b + c``, with one rounding.",
    "clauses 5.4.1 and 7.2 c",
    '>>> one, tiny = sn.array(1.0, "binary16"), sn.array(2.0**-11, "binary16")\n    '
    ""
    '>>> sn.fma(one, one, tiny, rounding="up")\n    '
    ""
    "Array(1.00097656, binary16)",
)
round_to_integral: Unary = rounded(
    "round_to_integral",
    1,
    "a rounded to an integer in the given mode; INEXACT if it was none.",
    "clause 5.9",
    '>>> sn.ops.round_to_integral(sn.array([2.5, -0.25], "e5m2"))\n    Array([ 2., -0.], e5m2)',
)
minimum: Binary = rounded(
    "minimum",
    2,
    "The lesser operand; NaN if either is NaN, and -0 below +0.",
    "clause 9.6",
    '>>> sn.minimum(sn.array([1.0, 2.0], "e5m2"), sn.array([3.0, float("nan")], "e5m2"))\n    Array([ 1., nan], e5m2)',
)
maximum: Binary = rounded(
    "maximum",
    2,
    "The greater operand; NaN if either is NaN, and -0 below +0.",
    "clause 9.6",
    '>>> sn.maximum(sn.array(1.0, "e5m2"), sn.array(3.0, "e5m2"))\n    Array(3., e5m2)',
)
minimum_number: Binary = rounded(
    "minimum_number",
    2,
    "The lesser operand; a NaN gives way to a number.",
    "clause 9.6",
    '>>> sn.ops.minimum_number(sn.array(2.0, "e5m2"), sn.array(float("nan"), "e5m2"))\n    Array(2., e5m2)',
)
maximum_number: Binary = rounded(
    "maximum_number",
    2,
    "The greater operand; a NaN gives way to a number.",
    "clause 9.6",
    '>>> sn.ops.maximum_number(sn.array(2.0, "e5m2"), sn.array(float("nan"), "e5m2"))\n    Array(2., e5m2)',
)
logb: Unary = rounded(
    "logb",
    1,
    "The exponent of a, floor(log2(abs(a))), as a value; logb(0) is -infinity and raises DIVIDE_BY_ZERO.",
    "clause 5.3.3",
    '>>> sn.ops.logb(sn.array([0.75, 6.0], "e4m3fn"))\n    Array([-1.,  2.], e4m3fn)',
)
next_up: Unary = rounded(
    "next_up",
    1,
    "The least value above a, in a's own format.",
    "clause 5.3.1",
    '>>> sn.next_up(sn.array([1.0, 0.0], "e5m2"))\n    Array([1.25000000e+00, 1.52587891e-05], e5m2)',
)
next_down: Unary = rounded(
    "next_down",
    1,
    "The greatest value below a, in a's own format.",
    "clause 5.3.1",
    '>>> sn.next_down(sn.array(1.0, "e5m2"))\n    Array(0.875, e5m2)',
)
negate: Unary = rounded(
    "negate",
    1,
    "The negative of a: flips the sign bit and raises no flags; in fixed point, -a.",
    "clause 5.5.1",
    '>>> sn.negate([0x80], "q4.4", return_flags=True)  # -(-8) saturates\n    '
    "(array([127], dtype=uint8), array([4], dtype=uint8))",
)
absolute: Unary = rounded(
    "absolute",
    1,
    "The magnitude of a: clears the sign bit and raises no flags; in fixed point, abs(a).",
    "clause 5.5.1",
    '>>> sn.absolute(sn.array([-1.5, 2.0], "e5m2"))\n    Array([1.5, 2. ], e5m2)',
)
copysign: Binary = rounded(
    "copysign",
    2,
    "a with the sign of b: a matter of the sign bit, without flags.",
    "clause 5.5.1",
    '>>> sn.ops.copysign(sn.array(1.5, "e5m2"), sn.array(-0.0, "e5m2"))\n    Array(-1.5, e5m2)',
)


def convert(a: ArrayLike, from_fmt: FormatLike | None = None, to_fmt: FormatLike | None = None, **options: Any) -> Any:
    if isinstance(a, Array) and from_fmt is not None:
        target = str(from_fmt if to_fmt is None else to_fmt)
        raise ValueError(
            f"convert: a is an Array and carries its format, {a.format}; leave from_fmt={str(from_fmt)!r} out and give "
            f"the target: convert(a, to_fmt={target!r}) or a.astype({target!r})"
        )
    if to_fmt is None:
        raise ValueError("convert: give the target format as to_fmt=")
    if "out_fmt" in options:
        raise TypeError("convert: the target is to_fmt=, not out_fmt=")
    return apply("convert", (a,), from_fmt, out_fmt=to_fmt, **options)


convert.__doc__ = f"""Convert encodings of one format to another, rounding each value once.

    Parameters
    ----------
    a : Array, or array_like of codes (then with `from_fmt`)
    from_fmt : format or str
        The format of the encodings; leave it out if a is an Array, and give the target as ``to_fmt=``.
    to_fmt : format or str
        The result's format.{OPTIONS}{RETURNS}
    Examples
    --------
    >>> import softnum as sn
    >>> sn.convert([0x4048f5c3], "binary32", "bfloat16")  # 3.14
    array([16457], dtype=uint16)
    >>> sn.convert(sn.array(3.14, "binary32"), to_fmt="bfloat16")
    Array(3.140625, bfloat16)

    Source: IEEE 754-2019 clause 5.4.2.
    """


def scalb(a: ArrayLike, n: ArrayLike, fmt: Formats | None = None, **options: Any) -> Any:
    if gateway.is_device_array(a) or gateway.is_device_array(n):
        return gateway.on_device("scalb", a, n, fmt=fmt, **options)
    n = np.asarray(n)
    if n.dtype.kind not in "iu":
        raise TypeError(f"scalb: n must be integers, got an array of {n.dtype}")
    clamped = np.clip(n, -(2**31), 2**31 - 1).astype(np.int32)  # beyond, every format has overflowed or underflowed
    return apply("scalb", (a,), fmt, extra=((clamped.view(np.uint32), FixedFormat(32, 0)),), **options)


scalb.__doc__ = f"""The exactly rounded ``a * 2**n``.

    Parameters
    ----------
    a : Array, or array_like of codes (then with `fmt`)
    n : array_like of integers
        Broadcast against a.
    fmt : format or str
        The operand's format, if it is codes.
    out_fmt : format or str, optional
        The result's format.{OPTIONS}{RETURNS}
    Examples
    --------
    >>> import softnum as sn
    >>> sn.ops.scalb(sn.array(1.5, "e5m2"), [3, -20])
    Array([12.,  0.], e5m2)

    Source: IEEE 754-2019 clause 5.3.3.
    """


def compare(
    a: ArrayLike,
    b: ArrayLike,
    fmt: Formats | None = None,
    *,
    signaling: bool = False,
    return_flags: bool = False,
    flush_inputs: bool = False,
) -> Any:
    """Compare a with b: -1 less, 0 equal, 1 greater, 2 unordered (a NaN).

    The NaR of posits and takums is not treated as a NaN: it compares equal to NaR and less than every number.

    Parameters
    ----------
    a, b : Array, or array_like of codes (then with `fmt`)
        Their formats may differ: the exact values are compared.
    fmt : format or str, or a pair of them
    signaling : bool
        Whether every NaN raises INVALID, not only a signaling one.
    return_flags : bool
        Whether to return (result, flags).
    flush_inputs : bool
        Whether subnormal operands read as zero.

    Returns
    -------
    ndarray of int8; with `return_flags`, a pair

    Raises
    ------
    ValueError
        If formats are missing or a code does not fit its format.

    Examples
    --------
    >>> import softnum as sn
    >>> sn.compare(sn.array([1.0, -0.0, float("nan")], "e5m2"), sn.array([2.0, 0.0, 1.0], "e5m2"))
    array([-1,  0,  2], dtype=int8)

    Source: IEEE 754-2019 clause 5.11.
    """
    formats = _formats_of(a, b, fmt)
    least = bool(formats) and all(f.nan_is_least for f in formats)  # nothing is unordered, so that nothing signals
    name = "compare_signaling" if signaling and not least else "compare"
    result = apply(  # of 8 bits, so that operands of 8 bits are looked up in a table
        name, (a, b), fmt, out_fmt="e5m2", return_flags=return_flags, flush_inputs=flush_inputs, codes_out=False
    )
    if any(map(gateway.is_device_array, (a, b))):
        return result
    codes, flags = result if return_flags else (result, None)
    result = codes.astype(np.int8) - np.int8(1)
    if least and (result == 2).any():
        x, y = (_codes_of(x) == f.nan_code for x, f in zip((a, b), formats, strict=True))
        result = np.where(result == 2, y.astype(np.int8) - x.astype(np.int8), result)
    return (result, flags) if return_flags else result


def _codes_of(x) -> np.ndarray:
    return x.codes if isinstance(x, Array) else np.asarray(x)


def _formats_of(a, b, fmt) -> tuple:
    """The formats of two operands; () where they are not given, which `apply` says."""
    if isinstance(a, Array) and isinstance(b, Array):
        return a.format, b.format
    return () if fmt is None else tuple(map(format, fmt if isinstance(fmt, tuple) else (fmt, fmt)))


def total_order(a: ArrayLike, b: ArrayLike, fmt: Formats | None = None) -> np.ndarray:
    """Whether a comes before b, or is the same, in the total order of all codes of a format.

    -NaN < -infinity < ... < -0 < +0 < ... < +infinity < +NaN; the NaN in -0's code comes first.

    Parameters
    ----------
    a, b : Array, or array_like of codes (then with `fmt`)
    fmt : format or str

    Returns
    -------
    ndarray of bool

    Raises
    ------
    ValueError
        If the formats differ.

    Examples
    --------
    >>> import softnum as sn
    >>> sn.ops.total_order(sn.array([-0.0, 0.0], "e5m2"), sn.array([0.0, -0.0], "e5m2"))
    array([ True, False])

    Source: IEEE 754-2019 clause 5.10.
    """
    result = apply("total_order", (a, b), fmt, codes_out=False)
    return result if gateway.is_device_array(result) else result.astype(bool)


def classify(a: ArrayLike, fmt: Formats | None = None) -> np.ndarray:
    """The class of each code: an index into ``softnum.ops.CLASSES``, from 0 signalingNaN to 9 positiveInfinity.

    Parameters
    ----------
    a : Array, or array_like of codes (then with `fmt`)
    fmt : format or str

    Returns
    -------
    ndarray of uint8

    Raises
    ------
    ValueError
        If a code does not fit its format.

    Examples
    --------
    >>> import softnum as sn
    >>> [sn.ops.CLASSES[i] for i in sn.classify([0x00, 0x01, 0x3c, 0xfc], "e5m2")]
    ['positiveZero', 'positiveSubnormal', 'positiveNormal', 'negativeInfinity']

    Source: IEEE 754-2019 clause 5.7.2.
    """
    result = apply("classify", (a,), fmt, codes_out=False)
    return result if gateway.is_device_array(result) else result.astype(np.uint8)


#: name of a ufunc of the core -> (the function, number of operands); `softnum.ops.elementary` adds its functions
OPERATIONS.update({name: (globals()[name], count) for name, count in OPERANDS.items() if name not in ELEMENTARY})

#: those of them that take codes alone and give codes: what test vectors are made of
CODE_OPERATIONS: dict[str, tuple[Callable[..., Any], int]] = {
    name: entry for name, entry in OPERATIONS.items() if name in CODE_OPERANDS
}

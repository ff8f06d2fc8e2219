"""Scaled and block operations: of numbers that each, or each block of which, have a factor in a format of its own.

Source: IEEE P3109, interim report v4.0, clause 5. What an element stands for, the product of factor and code, is exact
in a format of 64 bits. A result over a result's factor is rounded to odd there before the division: the border b
between two codes compares with the quotient as b times the factor with the result, and such products have fewer bits.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np

from softnum.arrays.container import Array
from softnum.arrays.conversion import decode, encode
from softnum.formats.aliases import operation_alias
from softnum.formats.annotations import FormatLike
from softnum.formats.blocks import format as format_of
from softnum.formats.modes import rounding_name
from softnum.formats.operation_names import CODE_OPERANDS
from softnum.formats.scalar import FloatFormat
from softnum.ops import choices
from softnum.ops.arithmetic import OPERATIONS, absolute, convert, divide, multiply

__all__ = ["block_by_maximum", "block_reduction", "scaled_operation"]

_WIDE = FloatFormat(15, 48, specials="p3109")
_MOST_BITS, _MOST_EXPONENT = _WIDE.precision, 8000
_CHOSEN = {name: getattr(choices, name) for name in choices.__all__}
_OPERANDS = CODE_OPERANDS | dict.fromkeys(_CHOSEN, 2) | {"clamp": 3, "faa": 3, "convert": 1}
#: which give a code of their operand's format
_SIGNS = {"convert": lambda x: x} | {name: OPERATIONS[name][0] for name in ("negate", "absolute", "copysign")}
_NOT_THESE = ("next_up", "next_down", "round_to_integral", "logb", "remainder")


def _scalar(fmt, what: str):
    fmt = format_of(fmt)
    if getattr(fmt, "kind", None) != "float":
        raise ValueError(f"{what} {fmt}: scaled operations are defined for floating-point formats")
    if max(abs(fmt.emin - fmt.mantissa_bits), abs(fmt.emax)) > _MOST_EXPONENT:
        raise ValueError(
            f"{what} {fmt}: its values exceed 2**{_MOST_EXPONENT} or 2**-{_MOST_EXPONENT}, the limits of scaled "
            "operations; multiply by the scale first"
        )
    return fmt


def _factor(scale, like) -> Array:
    """A factor for each element of an Array: one for each block along the last axis if it has an axis less."""
    if not isinstance(scale, Array):
        raise TypeError(f"a scale must be an Array, got {type(scale).__name__}; convert it with softnum.array")
    if scale.ndim == len(like) - 1:
        scale = scale[..., np.newaxis]
    return scale


def _value(operand) -> Array:
    """What an operand stands for, exactly: an Array, or a pair of scale and Array."""
    scale, x = operand if isinstance(operand, tuple) and len(operand) == 2 else (None, operand)
    if not isinstance(x, Array):
        raise TypeError(f"an operand must be an Array or a pair (scale, Array), got {type(operand).__name__}")
    _scalar(x.format, "an operand's format")
    if scale is None:
        return convert(x, to_fmt=_WIDE)
    scale = _factor(scale, x.shape)
    bits = _scalar(scale.format, "a scale's format").precision + x.format.precision
    if bits > _MOST_BITS:
        raise ValueError(
            f"{scale.format} times {x.format}: products have up to {bits} bits, and scaled operations keep {_MOST_BITS}"
        )
    return multiply(scale, x, out_fmt=_WIDE)


def _named(name: str) -> str:
    """softnum's name of an operation, which may be P3109's, with "Scaled" or "Block" before it."""
    own = re.sub(r"^(Scaled|Block)(?=[A-Z])", "", name)
    found = operation_alias(own)
    if found not in _OPERANDS:
        found = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", own).lower()
    if found not in _OPERANDS or found in _NOT_THESE:
        raise ValueError(f"unknown scaled operation {name!r}")
    return found


def _signs(z: Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(-1, 0 or 1; whether infinite; whether NaN) of wide codes."""
    size = z.codes & np.uint64(_WIDE.nan_code - 1)
    nan = z.codes == _WIDE.nan_code
    return np.where(z.codes > _WIDE.nan_code, -1, size != 0), (size == _WIDE.inf_code) & ~nan, nan


def _over(z: Array, scale: Array, out_fmt, options) -> Array:
    """z over a scale, rounded: 0 where that is 0, a sign where it is infinite (5.1.2)."""
    z, scale = np.broadcast_arrays(z, convert(scale, to_fmt=_WIDE))
    codes = divide(z, scale, out_fmt=out_fmt, **options).codes
    (sign, _, nan), (factor, endless, no_factor) = _signs(z), _signs(scale)
    apart = (endless | (factor == 0)) & ~nan & ~no_factor
    codes = np.where(apart, encode(np.where(endless, sign * factor, 0).astype(np.float64), out_fmt, **options), codes)
    return Array(codes.astype(out_fmt.storage_dtype), out_fmt)


def scaled_operation(
    name: str, *operands: Any, out_fmt: FormatLike, scale: Array | None = None, **options: Any
) -> Array:
    """An operation on numbers with factors, rounded once: ScaledAdd, BlockExp, ConvertFromBlock ... of IEEE P3109.

    Parameters
    ----------
    name : str
        An operation of codes of this package or P3109's name of it, "Scaled" or "Block" before it or not; "faa" is the
        exact sum of three, "convert" the number itself.
    *operands : pairs (scale, x) of Arrays, or Arrays
        x has floats or floats of P3109. A scale has x's shape, or broadcasts to it: a factor for each element; with an
        axis less than x it has a factor for each block, along x's last axis. An Array alone is not scaled.
    out_fmt : format or str
        Of the result's elements.
    scale : Array, optional
        The result's factor, as the operands': the result stands for the exact result over it. Where it is 0, the result
        is 0; where it is infinite, the sign.
    **options
        rounding, overflow, stochastic_bits, random_bits, key ... of the one rounding, as in `softnum.convert`.

    Returns
    -------
    Array
        The elements, of `out_fmt`.

    Raises
    ------
    ValueError
        If the operation is unknown or takes another number of operands, a scale and an operand have more than 49 bits
        together, a result's format, random bits and scale have more than 46, or a format's exponents go beyond 8000.
    TypeError
        If an operand is no Array.

    Notes
    -----
    Source: IEEE P3109, interim report v4.0, 5.2 to 5.5. The factors and all that is computed follow its rules for
    special values, also of formats that are not P3109's: there is one zero, and 0 * infinity is NaN.

    Examples
    --------
    >>> import softnum as sn
    >>> two = sn.array(2.0, "binary8p1uf")
    >>> x, y = sn.array([1.5, -3.0], "binary8p4se"), sn.array([0.25, 8.0], "binary8p4se")
    >>> sn.ops.scaled_operation("ScaledMultiply", (two, x), (two, y), out_fmt="binary8p3se")
    Array([  1.5, -96. ], binary8p3se)
    >>> sn.ops.scaled_operation("BlockAdd", (two, x), (two, y), scale=two, out_fmt="binary8p3se")
    Array([1.75, 5.  ], binary8p3se)
    """
    name, out_fmt = _named(name), _scalar(out_fmt, "the result's format")
    if len(operands) != _OPERANDS[name]:
        raise ValueError(f"{name} takes {_OPERANDS[name]} operands, got {len(operands)}")
    values = [_value(operand) for operand in operands]
    if name == "faa":
        return _sums(np.broadcast_arrays(*values), scale, out_fmt, options)
    last = {"out_fmt": out_fmt} | options if scale is None else {
        "out_fmt": _WIDE, "rounding": "to_odd", "overflow": "saturate_finite",
    }  # fmt: skip
    if name in _SIGNS:
        z = _SIGNS[name](*values)
        z = convert(z, to_fmt=out_fmt, **options) if scale is None else z
    else:
        z = (_CHOSEN.get(name) or OPERATIONS[name][0])(*values, **last)
    if scale is None:
        return z
    scale = _factor(scale, z.shape)
    random = options.get("stochastic_bits") or 32
    bits = 0 if not rounding_name(options.get("rounding", "nearest_even")).startswith("stochastic") else random
    bits += out_fmt.precision + _scalar(scale.format, "a scale's format").precision
    if bits > _MOST_BITS - 3:
        raise ValueError(
            f"{out_fmt} over {scale.format}: {bits} bits decide the rounding, and scaled operations keep "
            f"{_MOST_BITS - 3}"
        )
    return _over(z, scale, out_fmt, options)


def _reals(values: Array) -> np.ndarray:
    """Fractions, and floats where there is no number."""
    return decode(values.codes, values.format, object)


def _added(terms) -> Fraction | float:
    """The exact sum of closed extended reals."""
    ends = {float(x) for x in terms if isinstance(x, float) and not np.isfinite(x)}
    if ends:
        return ends.pop() if len(ends) == 1 else float("nan")
    return sum(map(Fraction, terms), Fraction(0))


def _multiplied(terms) -> Fraction | float:
    product = Fraction(1)
    ends = [x for x in terms if isinstance(x, float) and not np.isfinite(x)]
    for x in terms:
        product *= 1 if isinstance(x, float) and not np.isfinite(x) else Fraction(x)
    if not ends:
        return product
    for end in ends:
        product = end * ((product > 0) - (product < 0)) if product == product else product
    return product if product else float("nan")


def _sums(values, scale, out_fmt, options) -> Array:
    sums = np.empty(values[0].shape, object)
    parts = [_reals(v) for v in values]
    scales = None if scale is None else np.broadcast_to(_reals(_factor(scale, sums.shape)), sums.shape)
    for index in np.ndindex(sums.shape):
        z = _added([p[index] for p in parts])
        if scales is not None:
            z = _exact_over(z, scales[index])
        sums[index] = z
    return Array(encode(sums, out_fmt, **options), out_fmt)


def _exact_over(z, s):
    if z != z or s != s:
        return float("nan")
    if s == 0:
        return Fraction(0)
    sign = (z > 0) - (z < 0)
    if isinstance(s, float) and np.isinf(s):
        return Fraction(sign if s > 0 else -sign)
    if isinstance(z, float) and np.isinf(z):
        return z if s > 0 else -z
    return Fraction(z) / Fraction(s)


def block_reduction(name: str, *blocks: Any, out_fmt: FormatLike, **options: Any) -> Array:
    """A sum, product or dot product of the elements of blocks, exact and rounded once, along the last axis.

    Parameters
    ----------
    name : {"add", "multiply", "dot"}
        Or P3109's: BlockReduceAdd, BlockReduceMultiply, BlockDotProduct.
    *blocks : pairs (scale, x) of Arrays, or Arrays
        As in `scaled_operation`; two for "dot".
    out_fmt : format or str
    **options
        As in `scaled_operation`.

    Returns
    -------
    Array
        One number for each block.

    Raises
    ------
    ValueError, TypeError
        As `scaled_operation`.

    Notes
    -----
    Source: IEEE P3109, interim report v4.0, 5.3. In Python's fractions: `softnum.sum` and `softnum.matmul` under a
    `softnum.ExactDotUnit` are fast, without scales.

    Examples
    --------
    >>> import softnum as sn
    >>> scale, x = sn.array([2.0, 0.5], "binary8p1uf"), sn.array([[1.0, 3.0], [4.0, -1.0]], "binary8p4se")
    >>> sn.ops.block_reduction("BlockReduceAdd", (scale, x), out_fmt="binary8p3se")
    Array([8. , 1.5], binary8p3se)
    >>> sn.ops.block_reduction("dot", (scale, x), (scale, x), out_fmt="binary8p3se")
    Array([40.,  4.], binary8p3se)
    """
    kinds = {"blockreduceadd": "add", "blockreducemultiply": "multiply", "blockdotproduct": "dot"}
    kind = kinds.get(name.lower(), name.lower())
    if kind not in ("add", "multiply", "dot"):
        raise ValueError(f"unknown reduction {name!r} (known: add, multiply, dot)")
    if len(blocks) != 1 + (kind == "dot"):
        raise ValueError(f"{kind} takes {1 + (kind == 'dot')} blocks, got {len(blocks)}")
    out_fmt = _scalar(out_fmt, "the result's format")
    values = [_reals(_value(block)) for block in blocks]
    if values[0].ndim == 0:
        raise ValueError("a block needs an axis, which a scalar does not have; reshape it to (1,)")
    if kind == "dot":
        values = list(np.broadcast_arrays(*values))
    results = np.empty(values[0].shape[:-1], object)
    for index in np.ndindex(results.shape):
        rows = [v[index].tolist() for v in values]
        terms = rows[0] if kind != "dot" else [_multiplied(pair) for pair in zip(*rows, strict=True)]
        results[index] = _multiplied(terms) if kind == "multiply" else _added(terms)
    return Array(encode(results, out_fmt, **options), out_fmt)


def block_by_maximum(
    x: Array,
    fmt: FormatLike,
    scale_fmt: FormatLike,
    *,
    scale_rounding: str = "nearest_even",
    scale_overflow: str | None = None,
    **options: Any,
) -> tuple[Array, Array]:
    """Blocks along the last axis, scaled by their largest finite magnitude: ConvertToBlockMaxAbsFinite of IEEE P3109.

    Parameters
    ----------
    x : Array
    fmt : format or str
        Of the elements.
    scale_fmt : format or str
        Of the factors.
    scale_rounding, scale_overflow
        Of the factors.
    **options
        Of the elements' rounding, as in `scaled_operation`.

    Returns
    -------
    (Array, Array)
        The factors, one for each block, and the elements. A block without a finite number has the factor infinity
        or, of NaNs alone, NaN.

    Raises
    ------
    ValueError, TypeError
        As `scaled_operation`.

    Notes
    -----
    Source: IEEE P3109, interim report v4.0, 5.2.3.

    Examples
    --------
    >>> import softnum as sn
    >>> x = sn.array([[0.3125, -5.0], [64.0, 20.0]], "binary8p4se")
    >>> sn.ops.block_by_maximum(x, "binary8p4se", "binary8p1uf", scale_rounding="up")
    (Array([ 8., 64.], binary8p1uf), Array([[ 0.0390625, -0.625    ],
           [ 1.       ,  0.3125   ]], binary8p4se))
    """
    if not isinstance(x, Array) or x.ndim == 0:
        raise TypeError("x must be an Array with at least one axis, along which its blocks are formed")
    size = absolute(x).codes
    finite, endless = size <= x.format.max_code, size == (x.format.inf_code if x.format.infinities else -1)
    rank = np.where(finite, size.astype(np.int64), -1)
    at = np.where(finite.any(-1), rank.argmax(-1), endless.argmax(-1))
    most = np.take_along_axis(size, at[..., np.newaxis], -1)[..., 0]
    scale_fmt = _scalar(scale_fmt, "a scale's format")
    largest = Array(most, x.format)
    scale = convert(largest, to_fmt=scale_fmt, rounding=scale_rounding, overflow=scale_overflow)
    return scale, scaled_operation("convert", x, scale=scale, out_fmt=fmt, **options)

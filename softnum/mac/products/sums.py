"""sum under a unit: its adder alone, in a stated order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softnum.arrays.checks import check_axis, float_array
from softnum.arrays.container import Array
from softnum.formats.annotations import FormatLike, Key
from softnum.mac.family import family_of
from softnum.mac.mad import Unit
from softnum.mac.products.matrices import matmul_by_unit
from softnum.mac.products.operands import checked_operand, random_words_of
from softnum.mac.statistics import Tallies
from softnum.runtime import _core, gateway

__all__ = ["addend_formats", "adder_of", "axes_of", "no_format", "sum"]

_DOMAIN = 3


def adder_of(unit: Unit, fmt: FormatLike):
    """The unit whose dot product with ones is the sum of values of fmt under the unit."""
    adder = family_of(unit).adder
    if adder is None:
        raise TypeError(f"sum: {type(unit).__name__} has no adder of its own")
    return adder(unit, fmt)


def addend_formats(unit: Unit) -> list[Any]:
    """What the addends may be values of: the accumulator's format, the result's, the operands'; of a unit that has no
    adder but its dot product, the operands'."""
    formats = []
    sums = () if family_of(unit).adds_operands else (getattr(unit, "accumulator", None), unit.result)
    for fmt in (*sums, *unit.operand):
        if fmt is not None and fmt not in formats:
            formats.append(fmt)
    return formats


def _addends(x, unit):
    """(values, format): x as values of the first of the formats that has them all."""
    formats = addend_formats(unit)
    if isinstance(x, Array):
        if x.format not in formats:
            raise no_format(unit, x.format)
        return checked_operand(x, x.format, "x", "sum", unit.on_codes), x.format
    x = float_array(x, "sum")
    reason = None
    for fmt in formats:
        try:
            return checked_operand(x, fmt, "x", "sum"), fmt
        except ValueError as error:
            reason = reason or error
    raise no_format(unit, reason) from None


def no_format(unit: Unit, of) -> ValueError:
    """What is raised for addends that the unit does not add; of: the format of an Array, or what was wrong with the
    values in the first of the unit's formats."""
    formats = addend_formats(unit)
    names = ", ".join(str(fmt) for fmt in formats)
    if not isinstance(of, ValueError):
        return ValueError(f"sum: x is an Array of {of}, but the unit adds values of {names}")
    if len(formats) == 1:
        return of
    return ValueError(f"{of}; no other format of the unit ({names}) has all the values either")


def axes_of(axis: int | None, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, tuple) else (axis,)
    axes = [check_axis("sum", a, ndim) for a in given]
    if len(set(axes)) != len(axes):
        raise ValueError(f"sum: an axis occurs twice in {axis}")
    return tuple(sorted(axes))


def sum(
    x: ArrayLike,
    unit: Any,
    axis: int | tuple[int, ...] | None = None,
    *,
    keepdims: bool = False,
    key: Key | None = None,
    random_bits: ArrayLike | None = None,
    threads: int | None = None,
    return_stats: bool = False,
) -> Any:
    """The sum of values with every addition and rounding as in the unit's adder.

    Parameters
    ----------
    x : array_like of float32 or float64, or Array, any shape
        Values of the accumulator's format, or all of them of one of the operands' formats (checked; of a FusedDotUnit,
        FmaChainUnit or GroupedDotUnit the operands' alone). What is added is the value, so that it does not matter
        which format it is read in. A CUDA array is summed on its device, to the same bits.
    unit : Unit
        MadUnit: ``acc = R(acc + x)`` from +0; the product and its rounding are left out, chunks and lanes are not.
        CustomMadUnit: likewise, if its function is a product. ExactDotUnit: the exact sum, rounded once. FusedDotUnit,
        FmaChainUnit, GroupedDotUnit: the dot product of ones with x.
    axis : int or tuple of ints, optional
        The axes summed over; None: all. The order of summation is the C order of these axes, the last one fastest,
        whatever the order in the tuple and the layout in memory.
    keepdims : bool
        Whether to keep the axes, with length 1.
    key : int, (int, int) or Stream, optional
        Seed, or (seed, stream); needed if and only if the unit rounds its sum stochastically. Addition k of the output
        with C-order index n takes word ``k mod 4`` of Philox counter (k div 4, n, 0, 0), of domain 3.
    random_bits : ndarray of uint32, shape (output's shape, steps), optional
        The random words themselves instead of a key; ``steps = unit.steps(K)`` for sums of K values.
    threads : int, optional
        Default: as many as pay. The result does not depend on it.

    return_stats : bool
        As in `matmul`: whether to return (result, stats).

    Returns
    -------
    numpy scalar or ndarray, or an Array; with `return_stats`, a pair; of a CUDA array one of its library, also of no
    dimensions
        float32 if that holds every value of the result's format, else float64, else an Array. An empty sum is +0.

    Raises
    ------
    ValueError
        If an element is no value of the formats, an axis is wrong, a key is missing, or a result has no code.
    TypeError
        If x is no array of numbers, or the unit has no adder; on a GPU also if there is no kernel, or the roundings are
        to be counted.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> x = np.full((2, 40), 1, np.float32)
    >>> sn.sum(x, sn.MadUnit("e6m3", operand="e5m2"), axis=1)  # 16 + 1 rounds back
    array([16., 16.], dtype=float32)
    >>> sn.sum(x, sn.ExactDotUnit("e6m3", operand="e5m2"))
    np.float32(80.0)
    """
    if not isinstance(unit, Unit) or family_of(unit).of_blocks:
        raise TypeError(f"sum: the unit must be one of softnum's (MadUnit ..., or sn.unit(name)), got {unit!r}")
    if gateway.is_device_array(x):
        gateway.check_host_only("sum", threads=threads, return_stats=return_stats)
        return gateway.on_device("sum", x, unit, axis, keepdims=keepdims, key=key, random_bits=random_bits)
    with _core.PlainEnvironment():
        return _sum(x, unit, axis, keepdims, key, random_bits, threads, Tallies() if return_stats else None)


def _sum(x, unit, axis, keepdims, key, random_bits, threads, tallies):
    values, fmt = _addends(x, unit)
    data = values.codes if isinstance(values, Array) else values
    axes = axes_of(axis, data.ndim)
    kept = tuple(a for a in range(data.ndim) if a not in axes)
    shape = tuple(data.shape[a] for a in kept)
    k = int(np.prod([data.shape[a] for a in axes], dtype=np.int64))
    outputs = int(np.prod(shape, dtype=np.int64))
    columns = data.transpose(*axes, *kept).reshape(k, outputs)

    adder = adder_of(unit, fmt)
    words = None
    if adder.stochastic and random_bits is not None:
        words = np.asarray(random_bits)
        want = (*shape, adder.steps(k))
        if words.dtype != np.uint32 or words.shape != want:
            raise ValueError(
                f"sum: random_bits must be uint32 of shape {want}, got {words.dtype} of shape {words.shape}"
            )
        words = np.repeat(words.reshape(1, outputs, -1, 1), 2, axis=3)
    elif adder.stochastic:
        random_words_of(adder, key, None, (1, outputs), k, caller="sum")  # says what is missing
    operand = Array(columns, fmt) if isinstance(values, Array) else columns
    result = matmul_by_unit(
        np.ones((1, k), np.float32), operand, adder, None, key, words, threads, None, (_DOMAIN, _DOMAIN), "sum", tallies
    )
    final = tuple(1 if a in axes else data.shape[a] for a in range(data.ndim)) if keepdims else shape
    if isinstance(result, Array):
        result = Array(result.codes.reshape(final), result.format)
    else:
        result = result.reshape(final)[()]
    return result if tallies is None else (result, tallies.stats(adder))

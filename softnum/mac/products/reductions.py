"""NumPy's names of sums on `softnum.Array`, under the unit that is stated for them: `unit_of_sums`.

Importing this module puts them into the table of NumPy's functions (`softnum.ops.numpy_functions`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from math import prod
from typing import Any

import numpy as np

from softnum.arrays.container import FUNCTIONS, UFUNCS, Array, array, as_operand
from softnum.arrays.refusals import refusal
from softnum.formats.names import format
from softnum.mac.exact import ExactDotUnit, exact
from softnum.mac.family import family_of
from softnum.mac.mad import Unit
from softnum.mac.presets import unit_of
from softnum.mac.products.matrices import matmul
from softnum.mac.products.sums import sum as sum_by_unit
from softnum.ops.arithmetic import divide, multiply
from softnum.ops.numpy_ufuncs import first_format

__all__ = ["unit_of_sums"]

_STATED: ContextVar = ContextVar("softnum.unit_of_sums", default=None)


def unit_of_sums(unit: Any) -> AbstractContextManager[None]:
    """A context manager: inside it, NumPy's sums and products of Arrays use this unit.

    ``a @ b``, ``a.sum()``, `numpy.sum`, `mean`, `dot`, `matmul`, `vecdot`, `inner`, `tensordot`, `trace`, `cumsum` and
    their like: order, accumulator and rounding are those of `softnum.sum` and `softnum.matmul` with the unit, and the
    result is an Array of the unit's result format. A mean is the sum, divided by the count with one more rounding, to
    nearest even. Element k of a cumulative sum is the sum of the first k + 1 elements. The unit applies to the current
    thread and task only (a context variable); an inner ``with`` overrides an outer one.

    Parameters
    ----------
    unit : Unit, or the name of a preset (`softnum.units`), or ``softnum.exact``
        Without random numbers: those of each sum are the caller's to count, so a stochastic unit goes to `softnum.sum`
        and `softnum.matmul` with ``key=``. ``softnum.exact`` is the exact sum, rounded once to the operands' format: an
        `ExactDotUnit` of it.

    Raises
    ------
    TypeError
        If it is not a unit, or one for block formats.
    ValueError
        If the unit is stochastic, or there is no preset of this name.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> a = sn.array([[1.0, 2.5], [0.125, 16.0]], "e4m3fn")
    >>> with sn.unit_of_sums(sn.exact):
    ...     np.sum(a), a.mean(axis=0), a @ a
    (Array(20., e4m3fn), Array([0.5625, 9.    ], e4m3fn), Array([[  1.25,  44.  ],
           [  2.  , 256.  ]], e4m3fn))
    >>> with sn.unit_of_sums(sn.MadUnit("binary32", operand="e4m3fn")):
    ...     np.cumsum(a)
    Array([ 1.   ,  3.5  ,  3.625, 19.625], binary32)
    """
    if unit is not exact:
        unit = unit_of(unit)
        if family_of(unit).of_blocks:
            raise TypeError(f"unit_of_sums: {type(unit).__name__} is for BlockArrays; use softnum.matmul")
        if unit.stochastic:
            raise ValueError(
                "unit_of_sums: the unit rounds stochastically, and each sum needs a key of its own: softnum.sum, "
                "softnum.dot or softnum.matmul with key="
            )
    return _stated(unit)


@contextmanager
def _stated(unit) -> Iterator[None]:
    token = _STATED.set(unit)
    try:
        yield
    finally:
        _STATED.reset(token)


def _unit(what: str, *arrays: Array) -> Unit:
    """The unit that is stated, for operands of these formats."""
    unit = _STATED.get()
    if unit is None:
        raise refusal(f"numpy.{what}")
    if unit is not exact:
        return unit
    fmt = arrays[0].format
    if any(a.format != fmt for a in arrays):
        names = ", ".join(str(a.format) for a in arrays)
        raise ValueError(f"{what}: the formats differ ({names}); softnum.ExactDotUnit states the result's")
    return ExactDotUnit(fmt, operand=fmt)


def _operands(what: str, *inputs) -> tuple[list[Array], Unit]:
    if not any(isinstance(x, Array) for x in inputs):
        raise refusal(f"numpy.{what} with out")
    fmt = first_format(inputs)
    arrays = [as_operand(x, fmt) for x in inputs]
    return arrays, _unit(what, *arrays)


def _as_array(values, unit: Unit) -> Array:
    return values if isinstance(values, Array) else array(values, unit.result)


# -- sums ----------------------------------------------------------------------------------------------------------
def _summed(what: str, a, axis, keepdims=False):
    unit = _unit(what, a)
    return _as_array(sum_by_unit(a, unit, axis, keepdims=keepdims), unit)


def _sum(a, axis=None, *, keepdims=False):
    return _summed("sum", a, axis, keepdims)


def _mean(a, axis=None, *, keepdims=False):
    total = _summed("mean", a, axis, keepdims)
    return _divided(total, _count(a, axis))


def _nansum(a, axis=None, *, keepdims=False):
    return _summed("nansum", _without_nan(a), axis, keepdims)


def _nanmean(a, axis=None, *, keepdims=False):
    counts = np.count_nonzero(~np.isnan(a), axis, keepdims=keepdims)
    return _divided(_summed("nanmean", _without_nan(a), axis, keepdims), counts)


def _without_nan(a):
    nan = np.isnan(a)
    return np.where(nan, 0, a) if nan.any() else a


def _count(a, axis) -> int:
    axes = range(a.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    count = prod(a.shape[d] for d in axes)
    if not count:
        raise ValueError(f"mean: an empty Array, of shape {a.shape}, has none")
    return count


def _divided(total: Array, counts) -> Array:
    fmt = format("uq64.0")
    return divide(total, Array._of(np.asarray(counts, fmt.storage_dtype), fmt), out_fmt=total.format)


def _cumsum(a, axis=None):
    unit = _unit("cumsum", a)
    if axis is None:
        a, axis = a.ravel(), 0
    lines = np.moveaxis(a, axis, -1)
    sums = [_as_array(sum_by_unit(lines[..., : k + 1], unit, -1), unit) for k in range(lines.shape[-1])]
    if not sums:
        return Array._of(np.zeros(a.shape, unit.result.storage_dtype), unit.result)
    return np.moveaxis(np.stack(sums, -1), -1, axis)


def _cumulative_sum(x, *, axis=None, include_initial=False):
    if axis is None:
        if x.ndim != 1:
            raise ValueError("cumulative_sum: state axis= of an Array of several dimensions")
        axis = 0
    sums = _cumsum(x, axis)
    if not include_initial:
        return sums
    shape = list(sums.shape)
    shape[axis] = 1
    return np.concatenate([np.zeros_like(sums, shape=tuple(shape)), sums], axis)


def _trace(a, offset=0, axis1=0, axis2=1):
    return _summed("trace", np.diagonal(a, offset, axis1, axis2), -1)


# -- products ------------------------------------------------------------------------------------------------------
def _matmul(a, b):
    (a, b), unit = _operands("matmul", a, b)
    if not a.ndim or not b.ndim:
        raise ValueError("matmul: an Array without dimensions is not a matrix; to multiply numbers write a * b")
    left, right = a[None] if a.ndim == 1 else a, b[:, None] if b.ndim == 1 else b
    found = _as_array(matmul(left, right, unit), unit)
    if a.ndim == 1:
        found = found[..., 0, :]
    return found[..., 0] if b.ndim == 1 else found


def _vecdot(x1, x2, axis=-1):
    (x1, x2), unit = _operands("vecdot", x1, x2)
    x1, x2 = np.moveaxis(x1, axis, -1), np.moveaxis(x2, axis, -1)
    if x1.shape[-1] != x2.shape[-1]:
        raise ValueError(f"vecdot: {x1.shape[-1]} and {x2.shape[-1]} elements along the axis")
    return _as_array(matmul(x1[..., None, :], x2[..., None], unit), unit)[..., 0, 0]


def _tensordot(a, b, axes=2):
    (a, b), unit = _operands("tensordot", a, b)
    if isinstance(axes, int):
        axes = range(a.ndim - axes, a.ndim), range(axes)
    of_a, of_b = ([axis] if isinstance(axis, int) else list(axis) for axis in axes)
    of_a, of_b = [axis % a.ndim for axis in of_a], [axis % b.ndim for axis in of_b]
    sizes = [a.shape[i] for i in of_a]
    if sizes != [b.shape[i] for i in of_b]:
        raise ValueError(
            f"tensordot: the axes that are summed over have {sizes} and {[b.shape[i] for i in of_b]} elements"
        )
    rest_a, rest_b = ([i for i in range(x.ndim) if i not in of] for x, of in ((a, of_a), (b, of_b)))
    shapes = tuple(a.shape[i] for i in rest_a), tuple(b.shape[i] for i in rest_b)
    k = prod(sizes)
    left = a.transpose(*rest_a, *of_a).reshape(prod(shapes[0]), k)
    right = b.transpose(*of_b, *rest_b).reshape(k, prod(shapes[1]))
    return _as_array(matmul(left, right, unit), unit).reshape(shapes[0] + shapes[1])


def _dot(a, b):
    (a, b), _ = _operands("dot", a, b)
    if not a.ndim or not b.ndim:
        return multiply(a, b)
    return _tensordot(a, b, (-1, -1 if b.ndim == 1 else -2))


def _inner(a, b):
    (a, b), _ = _operands("inner", a, b)
    return _tensordot(a, b, (-1, -1)) if a.ndim and b.ndim else multiply(a, b)


def _vdot(a, b):
    (a, b), _ = _operands("vdot", a, b)
    return _vecdot(a.ravel(), b.ravel())


def _matvec(x1, x2):
    (x1, x2), _ = _operands("matvec", x1, x2)
    return _matmul(x1, x2[..., None])[..., 0]


def _vecmat(x1, x2):
    (x1, x2), _ = _operands("vecmat", x1, x2)
    return _matmul(x1[..., None, :], x2)[..., 0, :]


FUNCTIONS |= {
    np.cumsum: _cumsum,
    np.cumulative_sum: _cumulative_sum,
    np.dot: _dot,
    np.inner: _inner,
    np.linalg.matmul: _matmul,
    np.linalg.tensordot: _tensordot,
    np.linalg.vecdot: _vecdot,
    np.mean: _mean,
    np.nanmean: _nanmean,
    np.nansum: _nansum,
    np.sum: _sum,
    np.tensordot: _tensordot,
    np.trace: _trace,
    np.vdot: _vdot,
}
UFUNCS |= {"matmul": _matmul, "matvec": _matvec, "vecdot": _vecdot, "vecmat": _vecmat}

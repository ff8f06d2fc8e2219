"""NumPy's functions on `softnum.Array`: one table, `FUNCTIONS`; whatever is not in it raises TypeError.

Sorting goes by the total order of the format's codes (`softnum.total_order`): -NaN < -infinity < ... < -0 < +0 < ... <
+infinity < +NaN, in the fnuz formats and in P3109's the NaN first; custom formats have their NaNs last. min and max
are IEEE 754-2019's minimum and maximum over an axis: a NaN wins, as its canonical code, and -0 lies below +0; argmin
and argmax name the first NaN, if there is one. There are no sums: their order and accumulator are the user's to state.

>>> import numpy as np, softnum as sn
>>> a = sn.array([3.0, -0.5, 0.0], "e4m3fn")
>>> np.sort(a), np.where(a < 0, 0, a), np.concatenate([a, a[:1]])
(Array([-0.5,  0. ,  3. ], e4m3fn), Array([3., 0., 0.], e4m3fn), Array([ 3. , -0.5,  0. ,  3. ], e4m3fn))
"""

from __future__ import annotations

import numpy as np

from softnum.arrays.container import FUNCTIONS, PREDICATES, Array, as_operand
from softnum.ops.arithmetic import CLASSES, classify, maximum, minimum

__all__ = ["FUNCTIONS", "isfinite", "isinf", "isnan", "order_keys", "signbit"]

_FIRST_NUMBER = CLASSES.index("negativeInfinity")
_INFINITE = (CLASSES.index("negativeInfinity"), CLASSES.index("positiveInfinity"))


# -- predicates ----------------------------------------------------------------------------------------------------
def isnan(a: Array) -> np.ndarray:
    """Where a is NaN.

    >>> import softnum as sn
    >>> isnan(sn.array([1.0, float("nan")], "e5m2"))
    array([False,  True])
    """
    return classify(a) < _FIRST_NUMBER


def isinf(a: Array) -> np.ndarray:
    """Where a is infinite.

    >>> import softnum as sn
    >>> isinf(sn.array([1.0, float("inf")], "e5m2"))
    array([False,  True])
    """
    classes = classify(a)
    return (classes == _INFINITE[0]) | (classes == _INFINITE[1])


def isfinite(a: Array) -> np.ndarray:
    """Where a is a finite number.

    >>> import softnum as sn
    >>> isfinite(sn.array([1.0, float("inf")], "e5m2"))
    array([ True, False])
    """
    return ~(isnan(a) | isinf(a))


def signbit(a: Array) -> np.ndarray:
    """Where a's sign is minus, that of -0 and NaN included; a NaN in -0's code has none.

    >>> import softnum as sn
    >>> signbit(sn.array([1.0, -0.0], "e5m2"))
    array([False,  True])
    """
    return a.format.sign_bits(a.codes)


# -- order ---------------------------------------------------------------------------------------------------------
def order_keys(a: Array) -> np.ndarray:
    """Unsigned integers that lie as the codes do in the total order, each code's its own.

    >>> import softnum as sn
    >>> order_keys(sn.array([-1.0, -0.0, 0.0, 1.0], "e5m2"))
    array([ 67, 127, 128, 188], dtype=uint8)
    """
    return a.format.order_keys(a.codes)


def _sort(a, axis=-1, kind=None, order=None, *, stable=None):
    if axis is None:
        a, axis = a.ravel(), -1
    keys = order_keys(a)
    if a.size >= 1 << a.format.bits:  # many times faster: the sorted keys tell their codes
        every = Array._of(np.arange(1 << a.format.bits, dtype=a.codes.dtype), a.format)
        code_of_key = np.argsort(order_keys(every)).astype(a.codes.dtype)
        return Array._of(code_of_key[np.sort(keys, axis, "stable")], a.format)
    return Array._of(np.take_along_axis(a.codes, np.argsort(keys, axis, "stable"), axis), a.format)


def _argsort(a, axis=-1, kind=None, order=None, *, stable=None):
    return np.argsort(order_keys(a), axis, "stable")


def _searchsorted(a, v, side="left", sorter=None):
    v = as_operand(v, a.format)
    _same_format("searchsorted", (a, v))
    return np.searchsorted(order_keys(a), order_keys(v), side, sorter)


def _extreme_index(name: str):
    def function(a, axis=None, *, keepdims=False):
        nan, keys = isnan(a), order_keys(a)
        found = getattr(np, name)(keys, axis, keepdims=True)
        found = np.where(nan.any(axis, keepdims=True), np.argmax(nan, axis, keepdims=True), found)
        return found if keepdims else found.squeeze(axis)[()]

    return function


def _extreme(name: str):
    index = _extreme_index(name)

    def function(a, axis=None, *, keepdims=False):
        if isinstance(axis, tuple):
            axes = {d % a.ndim for d in axis}
            rest = [d for d in range(a.ndim) if d not in axes]
            found = function(a.transpose(*rest, *sorted(axes)).reshape(*(a.shape[d] for d in rest), -1), -1)
            return np.expand_dims(found, tuple(sorted(axes))) if keepdims else found
        flat, along = (a.ravel(), 0) if axis is None else (a, axis)
        at = index(flat, along, keepdims=True)
        codes = np.take_along_axis(flat.codes, at, along)
        if a.format.has_nan:
            nan = np.take_along_axis(isnan(flat), at, along)
            codes = np.where(nan, as_operand(float("nan"), a.format).codes, codes)
        if axis is None:
            return Array._of(codes.reshape((1,) * a.ndim if keepdims else ()), a.format)
        return Array._of(codes if keepdims else codes.squeeze(along), a.format)

    return function


# -- elements moved, joined and made -------------------------------------------------------------------------------
def _same_format(what: str, arrays) -> object:
    formats = [a.format if isinstance(a, Array) else None for a in arrays]
    if None in formats:
        raise TypeError(
            f"{what}: Array and {type(arrays[formats.index(None)]).__name__} do not mix; make Arrays of all"
        )
    if any(f != formats[0] for f in formats):
        raise ValueError(f"{what}: the formats differ ({', '.join(map(str, formats))}); convert with .astype")
    return formats[0]


def _moved(function):
    def apply(a, *args, **kwargs):
        if "out" in kwargs:
            raise TypeError(f"numpy.{function.__name__} with out is not defined for softnum.Array")
        result = function(a.codes, *args, **kwargs)
        if isinstance(result, (list, tuple)):
            return type(result)(Array._of(codes, a.format) for codes in result)
        return Array._of(result, a.format)

    return apply


def _joined(function):
    def apply(arrays, axis=None):
        fmt = _same_format(function.__name__, arrays := list(arrays))
        extra = {} if axis is None and function is not np.concatenate else {"axis": axis}
        return Array._of(function([a.codes for a in arrays], **extra), fmt)

    return apply


def _concatenate(arrays, axis=0):
    return _joined(np.concatenate)(arrays, axis)


def _broadcast_arrays(*arrays):
    fmt = _same_format("broadcast_arrays", arrays)
    return tuple(Array._of(codes, fmt) for codes in np.broadcast_arrays(*(a.codes for a in arrays)))


def _where(condition, x, y):
    if isinstance(condition, Array):
        raise TypeError("where: the condition is an array of bool; compare the Array with something")
    fmt = next(v.format for v in (x, y) if isinstance(v, Array))
    x, y = as_operand(x, fmt), as_operand(y, fmt)
    return Array._of(np.where(condition, x.codes, y.codes), _same_format("where", (x, y)))


def _full_like(a, fill_value, *, shape=None):
    value = as_operand(fill_value, a.format)
    return Array._of(np.full_like(a.codes, value.codes, shape=shape), _same_format("full_like", (a, value)))


def _copyto(dst, src, *, where=True):
    if not isinstance(dst, Array):
        raise TypeError("copyto: an Array does not go into an ndarray; take np.asarray(a) or .codes")
    src = as_operand(src, dst.format)
    _same_format("copyto", (dst, src))
    np.copyto(dst.codes, src.codes, where=where)


def _array_equal(a1, a2, equal_nan=False):
    if not (isinstance(a1, Array) and isinstance(a2, Array)) or a1.shape != a2.shape:
        return False
    same = a1 == a2
    return bool((same | (isnan(a1) & isnan(a2)) if equal_nan else same).all())


def _clip(a, a_min=None, a_max=None):
    a = a if a_min is None else maximum(a, as_operand(a_min, a.format))
    return a if a_max is None else minimum(a, as_operand(a_max, a.format))


FUNCTIONS |= {
    **{
        f: _moved(f)
        for f in (
            np.array_split, np.atleast_1d, np.atleast_2d, np.atleast_3d, np.broadcast_to, np.copy, np.delete,
            np.diagonal, np.expand_dims, np.flip, np.fliplr, np.flipud, np.moveaxis, np.ravel, np.repeat, np.reshape,
            np.roll, np.rollaxis, np.rot90, np.split, np.squeeze, np.swapaxes, np.take, np.take_along_axis, np.tile,
            np.transpose,
        )
    },
    **{f: _joined(f) for f in (np.column_stack, np.dstack, np.hstack, np.stack, np.vstack)},
    np.argmax: _extreme_index("argmax"),
    np.argmin: _extreme_index("argmin"),
    np.argsort: _argsort,
    np.array_equal: _array_equal,
    np.broadcast_arrays: _broadcast_arrays,
    np.clip: _clip,
    np.concatenate: _concatenate,
    np.copyto: _copyto,
    np.empty_like: lambda a, *, shape=None: Array._of(np.zeros_like(a.codes, shape=shape), a.format),
    np.full_like: _full_like,
    np.max: _extreme("argmax"),
    np.min: _extreme("argmin"),
    np.ndim: lambda a: a.ndim,
    np.ones_like: lambda a, *, shape=None: _full_like(a, 1, shape=shape),
    np.searchsorted: _searchsorted,
    np.shape: lambda a: a.shape,
    np.size: lambda a, axis=None: np.size(a.codes, axis),
    np.sort: _sort,
    np.where: _where,
    np.zeros_like: lambda a, *, shape=None: _full_like(a, 0, shape=shape),
}  # fmt: skip
PREDICATES |= {"isfinite": isfinite, "isinf": isinf, "isnan": isnan, "signbit": signbit}

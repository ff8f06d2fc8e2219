"""NumPy's functions on `softnum.Array`: one table, `FUNCTIONS`; whatever is not in it raises TypeError.

What moves elements, orders and compares them is exact. What computes (`numpy.diff`, `numpy.median`, ...) rounds each
result once to the format, to nearest even; `numpy.isclose` decides on the exact values.

Sorting goes by the total order of the format's codes (`softnum.ops.total_order`): -NaN < -infinity < ... < -0 < +0
< ... < +infinity < +NaN, in the fnuz formats and in P3109's the NaN first; custom formats have their NaNs last. min and
max are IEEE 754-2019's minimum and maximum over an axis: a NaN wins, as its canonical code, and -0 lies below +0;
argmin and argmax name the first NaN, if there is one.

>>> import numpy as np, softnum as sn
>>> a = sn.array([3.0, -0.5, 0.0], "e4m3fn")
>>> np.sort(a), np.where(a < 0, 0, a), np.concatenate([a, a[:1]])
(Array([-0.5,  0. ,  3. ], e4m3fn), Array([3., 0., 0.], e4m3fn), Array([ 3. , -0.5,  0. ,  3. ], e4m3fn))
"""

from __future__ import annotations

import numpy as np

from softnum.arrays.container import FUNCTIONS, PREDICATES, Array, as_operand
from softnum.arrays.refusals import refusal
from softnum.arrays.text import text_of
from softnum.ops.arithmetic import CLASSES, classify
from softnum.ops.numpy_ufuncs import first_array, first_format, truth

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
    (a, v), _ = _of_one_format("searchsorted", (a, v))
    return np.searchsorted(order_keys(a), order_keys(v), side, sorter)


def _extreme_index(name: str):
    def function(a, axis=None, *, keepdims=False):
        if not (a.size if axis is None else a.shape[axis]):
            raise ValueError(f"{name}: not defined for an empty Array, of shape {a.shape}")
        nan, keys = isnan(a), order_keys(a)
        found = getattr(np, f"arg{name}")(keys, axis, keepdims=True)
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
def _of_one_format(what: str, arrays) -> tuple:
    """(Arrays, their format) of Arrays and of what is exact in their format."""
    arrays = tuple(arrays)
    fmt = first_format(arrays)
    arrays = tuple(as_operand(a, fmt) for a in arrays)
    if any(a.format != fmt for a in arrays):
        raise ValueError(
            f"{what}: the formats differ ({', '.join(str(a.format) for a in arrays)}); convert with .astype"
        )
    return arrays, fmt


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
        arrays, fmt = _of_one_format(function.__name__, arrays)
        extra = {} if axis is None and function is not np.concatenate else {"axis": axis}
        return Array._of(function([a.codes for a in arrays], **extra), fmt)

    return apply


def _concatenate(arrays, axis=0):
    return _joined(np.concatenate)(arrays, axis)


def _broadcast_arrays(*arrays):
    formats = [a.format if isinstance(a, Array) else None for a in arrays]
    arrays = np.broadcast_arrays(*(a.codes if isinstance(a, Array) else a for a in arrays))
    return tuple(a if fmt is None else Array._of(a, fmt) for a, fmt in zip(arrays, formats, strict=True))


def _where(condition, *choices):
    if not choices:
        return truth(condition).nonzero()
    if isinstance(condition, Array):
        raise TypeError("where: the condition must be an array of bool; compare the Array with something")
    (x, y), fmt = _of_one_format("where", choices)
    return Array._of(np.where(condition, x.codes, y.codes), fmt)


def _select(condlist, choicelist, default=0):
    choices, fmt = _of_one_format("select", (*choicelist, default))
    *choices, default = (c.codes for c in choices)
    return Array._of(np.select(condlist, choices, default), fmt)


def _full_like(a, fill_value, dtype=None, *, shape=None, device=None):
    if dtype is not None or device is not None:
        shape = a.shape if shape is None else shape
        return a.__array_namespace__().full(shape, fill_value, dtype=dtype or a.format, device=device)
    (a, value), fmt = _of_one_format("full_like", (a, fill_value))
    return Array._of(np.full_like(a.codes, value.codes, shape=shape), fmt)


def _filled_like(value):
    return lambda a, dtype=None, **options: _full_like(a, value, dtype, **options)


def _meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    grids = np.meshgrid(
        *(x.codes if isinstance(x, Array) else x for x in xi), copy=copy, sparse=sparse, indexing=indexing
    )
    return tuple(Array._of(grid, x.format) if isinstance(x, Array) else grid for grid, x in zip(grids, xi, strict=True))


def _put(function, at: int):
    """A function that writes into its first argument; its argument `at` are the values."""

    def apply(a, *args, **kwargs):
        if not isinstance(a, Array):
            raise TypeError(
                f"{function.__name__}: an Array cannot be written into an ndarray; use np.asarray(a, np.float64) or "
                "a.codes"
            )
        (a, values), _ = _of_one_format(function.__name__, (a, args[at - 1]))
        function(a.codes, *args[: at - 1], values.codes, *args[at:], **kwargs)

    return apply


def _insert(arr, obj, values, axis=None):
    (arr, values), fmt = _of_one_format("insert", (arr, values))
    return Array._of(np.insert(arr.codes, obj, values.codes, axis), fmt)


def _append(arr, values, axis=None):
    (arr, values), fmt = _of_one_format("append", (arr, values))
    return Array._of(np.append(arr.codes, values.codes, axis), fmt)


_PADDED = ("constant", "edge", "empty", "reflect", "symmetric", "wrap")


def _pad(array, pad_width, mode="constant", *, constant_values=0, reflect_type="even"):
    if mode not in _PADDED or reflect_type != "even":
        what = mode if isinstance(mode, str) and mode not in _PADDED else f"reflect_type={reflect_type!r}"
        raise refusal(f"numpy.pad with {what}", way_out=f"it computes elements; these modes only copy them: {_PADDED}")
    more = {"constant_values": as_operand(constant_values, array.format).codes} if mode == "constant" else {}
    return Array._of(np.pad(array.codes, pad_width, mode, **more), array.format)


def _triangle(function):
    def apply(m, k=0):
        return _where(function(np.ones(m.shape[-2:], bool), k), m, 0)

    return apply


def _diag(v, k=0):
    if v.ndim != 1:
        return Array._of(np.diag(v.codes, k), v.format)
    n = v.size + abs(k)
    found = _full_like(v, 0, shape=(n, n))
    np.fill_diagonal(found.codes[max(-k, 0) :, max(k, 0) :], v.codes)
    return found


def _trim_zeros(filt, trim="fb"):
    at = np.flatnonzero(truth(filt))
    first = at[0] if at.size and "f" in trim.lower() else 0 if at.size else filt.size
    last = at[-1] + 1 if at.size and "b" in trim.lower() else filt.size
    return filt[first:last]


def _copyto(dst, src, *, where=True):
    if not isinstance(dst, Array):
        raise TypeError("copyto: an Array cannot be copied into an ndarray; copy np.asarray(a, np.float64) or a.codes")
    (dst, src), _ = _of_one_format("copyto", (dst, src))
    np.copyto(dst.codes, src.codes, where=where)


def _result_type(*arrays_and_dtypes):
    return first_array(arrays_and_dtypes).__array_namespace__().result_type(*arrays_and_dtypes)


def _by_truth(function):
    """A function of where elements are not zero."""
    return lambda a, *args, **kwargs: function(truth(a), *args, **kwargs)


def _of_codes(function):
    """A function that tells of arrays what does not depend on their values."""
    return lambda *arrays, **kwargs: function(*(a.codes if isinstance(a, Array) else a for a in arrays), **kwargs)


FUNCTIONS |= {
    **{
        f: _moved(f)
        for f in (
            np.array_split, np.atleast_1d, np.atleast_2d, np.atleast_3d, np.broadcast_to, np.copy, np.delete,
            np.diagonal, np.dsplit, np.expand_dims, np.flip, np.fliplr, np.flipud, np.hsplit, np.linalg.diagonal,
            np.linalg.matrix_transpose, np.matrix_transpose, np.moveaxis, np.ravel, np.repeat, np.reshape, np.resize,
            np.roll, np.rollaxis, np.rot90, np.split, np.squeeze, np.swapaxes, np.take, np.take_along_axis, np.tile,
            np.transpose, np.unstack, np.vsplit,
        )
    },
    **{f: _joined(f) for f in (np.column_stack, np.dstack, np.hstack, np.stack, np.vstack)},
    **{f: _by_truth(f) for f in (np.all, np.any, np.argwhere, np.count_nonzero, np.flatnonzero, np.nonzero)},
    **{f: _of_codes(f) for f in (np.may_share_memory, np.shape, np.shares_memory, np.size)},
    np.append: _append,
    np.argmax: _extreme_index("max"),
    np.argmin: _extreme_index("min"),
    np.argpartition: lambda a, kth, axis=-1: _argsort(a, axis),
    np.argsort: _argsort,
    np.array2string: lambda a: text_of(a.codes, a.format),
    np.array_repr: repr,
    np.array_str: str,
    np.astype: lambda x, dtype, /, *, copy=True: x.astype(dtype),
    np.broadcast_arrays: _broadcast_arrays,
    np.compress: lambda condition, a, axis=None: Array._of(np.compress(condition, a.codes, axis), a.format),
    np.concatenate: _concatenate,
    np.copyto: _copyto,
    np.diag: _diag,
    np.diagflat: lambda v, k=0: _diag(v.ravel(), k),
    np.empty_like: lambda a, dtype=None, *, shape=None, device=None: (
        _full_like(a, 0, dtype, shape=shape, device=device)
        if dtype is not None or device is not None
        else Array._of(np.zeros_like(a.codes, shape=shape), a.format)
    ),
    np.extract: lambda condition, arr: Array._of(np.extract(condition, arr.codes), arr.format),
    np.fill_diagonal: _put(np.fill_diagonal, 1),
    np.full_like: _full_like,
    np.insert: _insert,
    np.max: _extreme("max"),
    np.min: _extreme("min"),
    np.meshgrid: _meshgrid,
    np.ndim: lambda a: a.ndim,
    np.ones_like: _filled_like(1),
    np.pad: _pad,
    np.partition: lambda a, kth, axis=-1: _sort(a, axis),
    np.place: _put(np.place, 2),
    np.put: _put(np.put, 2),
    np.put_along_axis: _put(np.put_along_axis, 2),
    np.putmask: _put(np.putmask, 2),
    np.result_type: _result_type,
    np.searchsorted: _searchsorted,
    np.select: _select,
    np.sort: _sort,
    np.tril: _triangle(np.tril),
    np.trim_zeros: _trim_zeros,
    np.triu: _triangle(np.triu),
    np.where: _where,
    np.zeros_like: _filled_like(0),
}  # fmt: skip
PREDICATES |= {"isfinite": isfinite, "isinf": isinf, "isnan": isnan, "signbit": signbit}

"""The Array API standard's functions for `softnum.Array`: what ``a.__array_namespace__()`` returns.

Data types are formats (`softnum.format`) beside NumPy's bool and integers, whose arrays are NumPy's: results of
comparisons, indices, counts. ``float32`` and ``float64`` are binary32 and binary64. What makes arrays of a format
(`asarray`, `full`, ...) takes values that are exact in it; `softnum.array` rounds. All other functions are NumPy's,
which come to `softnum.ops.numpy_functions`: what the standard has and softnum has not raises TypeError, and names the
way out.

>>> import softnum as sn
>>> a = sn.array([1.0, 2.5, -3.0], "e4m3fn")
>>> xp = a.__array_namespace__()
>>> xp.max(a), xp.asarray([0.5, 2.0], dtype=a.dtype), xp.isdtype(a.dtype, "real floating")
(Array(2.5, e4m3fn), Array([0.5, 2. ], e4m3fn), True)
>>> xp.finfo(a.dtype)  # doctest: +ELLIPSIS
FormatFacts(bits=8, eps=0.125, max=448.0, min=-448.0, smallest_normal=0.015625, dtype=...)
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from softnum.arrays.container import Array, array, as_operand
from softnum.formats.base import AnyFormat
from softnum.formats.names import format
from softnum.ops.integers import to_integer
from softnum.ops.numpy_functions import order_keys
from softnum.ops.numpy_ufuncs import truth

__array_api_version__ = "2024.12"

__all__ = [
    "arange",
    "argsort",
    "asarray",
    "astype",
    "broadcast_arrays",
    "can_cast",
    "clip",
    "empty",
    "empty_like",
    "eye",
    "finfo",
    "float32",
    "float64",
    "from_dlpack",
    "full",
    "full_like",
    "iinfo",
    "isdtype",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "result_type",
    "sort",
    "zeros",
    "zeros_like",
]

float32, float64 = format("binary32"), format("binary64")
_FLOATING = ("real floating", "numeric")
_FORMATS = {np.dtype(np.float32): float32, np.dtype(np.float64): float64}


def __getattr__(name: str):
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(np, name)


def _known(dtype):
    """A format, or NumPy's bool, integers and complex numbers."""
    if dtype is None or isinstance(dtype, AnyFormat):
        return dtype
    if isinstance(dtype, str):
        return format(dtype)
    dtype = np.dtype(dtype)
    return dtype if dtype.kind in "biuc" else format(dtype)


def _made(values, dtype, device=None):
    if device not in (None, "cpu"):
        raise ValueError(f"an Array made here lies on the host, device='cpu', not {device!r}")
    fmt = _known(dtype)
    if fmt is None:
        fmt = _FORMATS.get(values.dtype, values.dtype)
    return as_operand(values, fmt) if isinstance(fmt, AnyFormat) else values.astype(fmt, copy=False)


# -- arrays made ---------------------------------------------------------------------------------------------------
def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """An Array of a format, of values that are exact in it, or an ndarray of bool or integers."""
    dtype = _known(dtype)
    if isinstance(obj, Array):
        if dtype is not None and dtype != obj.format:
            raise ValueError(f"asarray: the Array is one of {obj.format}; .astype({str(dtype)!r}) converts")
        return obj.copy() if copy else obj
    values = np.array(obj) if copy else np.asarray(obj)
    if copy is False and (isinstance(dtype, AnyFormat) or values.dtype.kind == "f"):
        raise ValueError("asarray: encoding these values needs a copy; leave copy=False out")
    return _made(values, dtype, device)


def from_dlpack(x, /, *, device=None, copy=None):
    """An Array of binary16, binary32 or binary64 in another library's memory, or an ndarray of bool or integers.

    >>> import numpy as np
    >>> from_dlpack(np.array([0.5, 3.0], np.float16))
    Array([0.5, 3. ], binary16)
    """
    if device not in (None, "cpu"):
        raise ValueError(f"from_dlpack: an Array made here lies on the host, device='cpu', not {device!r}")
    given = {name: value for name, value in (("device", device), ("copy", copy)) if value is not None}
    values = np.from_dlpack(x, **given)
    return Array(values) if values.dtype.kind == "f" else values


def full(shape, fill_value, *, dtype=None, device=None):
    """An array of one value."""
    return _made(np.full(shape, fill_value), dtype, device)


def zeros(shape, *, dtype=float64, device=None):
    """An array of zeros."""
    return _made(np.zeros(shape), dtype, device)


def ones(shape, *, dtype=float64, device=None):
    """An array of ones."""
    return _made(np.ones(shape), dtype, device)


def empty(shape, *, dtype=float64, device=None):
    """An array of any values: zeros."""
    return _made(np.zeros(shape), dtype, device)


def eye(n_rows, n_cols=None, /, *, k=0, dtype=float64, device=None):
    """Ones on a diagonal, zeros elsewhere."""
    return _made(np.eye(n_rows, n_cols, k=k), dtype, device)


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """``start + i * step`` below stop, exact in the format."""
    start, stop = (0, start) if stop is None else (start, stop)
    return _made(np.arange(start, stop, step), dtype, device)


def linspace(start, stop, /, num, *, dtype=float64, device=None, endpoint=True):
    """Values at even distances, each rounded once to the format."""
    fmt = _known(dtype)
    if not isinstance(fmt, AnyFormat):
        return _made(np.linspace(start, stop, num, endpoint=endpoint), fmt, device)
    start, stop = Fraction(start), Fraction(stop)
    step = (stop - start) / max(num - 1 if endpoint else num, 1)
    values = np.empty(num, object)
    values[...] = [start + i * step for i in range(num)]
    return array(values, fmt)


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """An array of one value, of the shape and, unless stated, the type of x."""
    return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype, device=device)


def zeros_like(x, /, *, dtype=None, device=None):
    """Zeros, as `full_like`."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x, /, *, dtype=None, device=None):
    """Ones, as `full_like`."""
    return full_like(x, 1, dtype=dtype, device=device)


def empty_like(x, /, *, dtype=None, device=None):
    """Any values, zeros, as `full_like`."""
    return full_like(x, 0, dtype=dtype, device=device)


def broadcast_arrays(*arrays):
    """Arrays of one shape, in a list."""
    return list(np.broadcast_arrays(*arrays))


def meshgrid(*arrays, indexing="xy"):
    """Coordinates of a grid, in a list."""
    return list(np.meshgrid(*arrays, indexing=indexing))


def _type_of(x):
    """The type of an array, or a type."""
    return x.dtype if isinstance(x, (Array, np.ndarray, np.generic)) else x


# -- data types ----------------------------------------------------------------------------------------------------
class FormatFacts(NamedTuple):
    """A format's facts by the standard's names; the format itself has them and more."""

    bits: int
    eps: object
    max: object
    min: object
    smallest_normal: object
    dtype: object


def finfo(type, /) -> FormatFacts:
    """A format's facts, given the format or an Array; of a complex type NumPy's."""
    fmt = _known(_type_of(type))
    if isinstance(fmt, np.dtype) and fmt.kind == "c":
        return np.finfo(fmt)
    if not isinstance(fmt, AnyFormat):
        raise TypeError(f"finfo needs a format or an Array, got {type!r}")
    smallest = fmt.smallest_normal if hasattr(fmt, "smallest_normal") else fmt.epsilon
    return FormatFacts(fmt.bits, fmt.epsilon, fmt.max, fmt.min, smallest, fmt)


def astype(x, dtype, /, *, copy=True, device=None):
    """x of another type: rounded once to a format; toward zero to integers, which must be in their range."""
    dtype = _known(dtype)
    if isinstance(dtype, AnyFormat):
        return x if not copy and getattr(x, "dtype", None) == dtype else array(x, dtype)
    if not isinstance(x, Array):
        return x.astype(dtype, copy=copy)
    if dtype.kind == "b":
        return truth(x)
    if dtype.kind == "c":
        return np.asarray(x, np.float64).astype(dtype)
    return to_integer(x, dtype=dtype, rounding="toward_zero")


def iinfo(type, /):
    """NumPy's facts of an integer type, or of an array of one."""
    return np.iinfo(_type_of(type))


def isdtype(dtype, kind) -> bool:
    """Whether a data type is of a kind of the standard, or one of several; formats are real floating ones."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(dtype, AnyFormat):
        return np.isdtype(dtype, tuple(k for k in kinds if not isinstance(k, AnyFormat)))
    return any(dtype == k if isinstance(k, AnyFormat) else k in _FLOATING for k in kinds)


def result_type(*arrays_and_dtypes):
    """The one data type of all; Python's numbers take it. TypeError where they differ."""
    types = [
        x if isinstance(x, AnyFormat) else getattr(x, "dtype", x)
        for x in arrays_and_dtypes
        if not isinstance(x, (int, float)) or isinstance(x, bool)
    ]
    formats = [t for t in types if isinstance(t, AnyFormat)]
    if not formats:
        return np.result_type(*arrays_and_dtypes)
    if any(t != formats[0] for t in types):
        raise TypeError(f"{', '.join(map(str, types))} have no common type: convert with .astype")
    return formats[0]


def can_cast(from_, to, /) -> bool:
    """Whether every value of a format is one of another's."""
    from_, to = (_known(x.dtype if isinstance(x, Array) else x) for x in (from_, to))
    if not isinstance(from_, AnyFormat) or not isinstance(to, AnyFormat):
        return not isinstance(from_, AnyFormat) and not isinstance(to, AnyFormat) and np.can_cast(from_, to)
    return bool(to.contains(from_))


# -- order ---------------------------------------------------------------------------------------------------------
def argsort(x, /, *, axis=-1, descending=False, stable=True):
    """Indices that sort x, equal elements in their order; Arrays by the total order of their format."""
    keys = order_keys(x) if isinstance(x, Array) else x
    if not descending:
        return np.argsort(keys, axis, stable=True)
    return keys.shape[axis] - 1 - np.flip(np.argsort(np.flip(keys, axis), axis, stable=True), axis)


def sort(x, /, *, axis=-1, descending=False, stable=True):
    """x sorted; Arrays by the total order of their format."""
    return np.flip(np.sort(x, axis), axis) if descending else np.sort(x, axis)


def clip(x, /, min=None, max=None):
    """x, or the bound that it lies beyond."""
    return np.clip(x, min, max)


# -- what there is -------------------------------------------------------------------------------------------------
class _Info:
    """What the standard asks of `__array_namespace_info__`: NumPy's answers, but for the types that are formats."""

    def __getattr__(self, name):
        return getattr(np.__array_namespace_info__(), name)

    def default_dtypes(self, *, device=None):
        return np.__array_namespace_info__().default_dtypes(device=device) | {"real floating": float64}

    def dtypes(self, *, device=None, kind=None):
        known = np.__array_namespace_info__().dtypes(device=device, kind=kind)
        return {name: _FORMATS.get(dtype, dtype) for name, dtype in known.items()}


def __array_namespace_info__():
    """The standard's inspection of the namespace."""
    return _Info()

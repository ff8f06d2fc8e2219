"""Arrays that stay on the device, and moving their elements: copies between any strides, and rows by their numbers.

What a view of a NumPy array is, NumPy says: a view is taken of a layout without elements, and a kernel copies between
the strides that came of it. Elements are moved as bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from softnum.kernels.device.elementwise.computations import Computation
from softnum.kernels.device.elementwise.deferred import Pending, Step, placement
from softnum.kernels.device.elementwise.maps import MAPS, map_computation, taken_numbers
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime.copies import copy_kernel, fill_kernel, merged, rows_kernel, run
from softnum.kernels.device.runtime.strides import contiguous

__all__ = [
    "DeviceArray", "arrays_in", "broadcast", "concatenated", "copied", "deferred", "filled", "mapped",
    "moved", "of_tiles", "put", "rows_put", "rows_taken", "upload",
]  # fmt: skip


class DeviceArray:
    """An array in C order on the device. It computes nothing, and becomes a NumPy array by `host` alone.

    Parameters
    ----------
    flat : Numba device array (n,), or Pending
        The elements, or what computes them when they are read.
    shape : tuple of int
        Of n elements.
    format : Format, optional
        One that all elements are known to be values of, as softnum writes them: rounding to it changes no bit.
    """

    __slots__ = ("_flat", "format", "shape")

    def __init__(self, flat, shape, format=None) -> None:
        self._flat, self.shape, self.format = flat, tuple(int(n) for n in shape), format

    @classmethod
    def of(cls, x, shape=None) -> DeviceArray:
        """A Numba device array of any shape and strides, in another shape if one is given; strides cost a copy."""
        return cls(contiguous(x).reshape((x.size,)), x.shape if shape is None else shape)

    @property
    def flat(self):
        """The elements, as Numba's array of one dimension."""
        return self._flat.flat if isinstance(self._flat, Pending) else self._flat

    @property
    def dtype(self) -> np.dtype:
        """The elements' type."""
        return self._flat.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def T(self) -> DeviceArray:
        """The elements with the axes in reverse order: a copy, but of less than two."""
        return moved(self, lambda a: a.T)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DeviceArray({self.dtype}, {self.shape})"

    def __array__(self, *_, **__):
        raise TypeError(f"{self!r} lies on the device; copy it to the host first: x.host()")

    def __invert__(self) -> DeviceArray:
        """Where a mask is not."""
        if self.dtype != bool:
            raise TypeError(f"~ takes a mask, got {self!r}")
        return mapped("not", self)

    @property
    def numba(self):
        """Numba's array in this shape, which knows the format of its values; of no dimensions, one element."""
        array = self.flat.reshape(self.shape or (1,)) if self.size else _cuda.empty(self.shape, self.dtype)
        array.values_of = self.format
        return array

    def reshape(self, shape) -> DeviceArray:
        """The same memory in another shape, one of whose sizes may be -1."""
        return DeviceArray(self._flat, _layout(self.shape, self.dtype)[0].reshape(shape).shape, self.format)

    def view(self, dtype) -> DeviceArray:
        """The same bits as another type of the same size."""
        return DeviceArray(self.flat.view(np.dtype(dtype)), self.shape)

    def host(self) -> np.ndarray:
        """A copy on the host."""
        if self.size == 0:
            return np.empty(self.shape, self.dtype)
        return _cuda.to_host(self.flat).reshape(self.shape)


def arrays_in(parts) -> list[DeviceArray]:
    """The arrays on the device among arguments, and in lists and tuples among them."""
    found = []
    for part in parts:
        if isinstance(part, DeviceArray):
            found.append(part)
        elif isinstance(part, (list, tuple)):
            found += arrays_in(part)
    return found


def upload(x) -> DeviceArray:
    """A copy on the device of an array of the host."""
    x = np.ascontiguousarray(x) if np.ndim(x) else np.asarray(x)
    return DeviceArray(_cuda.to_device(x.reshape(-1)), x.shape)


def empty(shape, dtype) -> DeviceArray:
    """An array that is not initialised."""
    return DeviceArray(_cuda.empty((prod(shape),), dtype), shape)


def deferred(computation: Computation, operands, shape, dtype, key=None) -> DeviceArray:
    """What a computation makes of each element, when it is read.

    Parameters
    ----------
    computation : Computation
        One that `can_wait`.
    operands : sequence of DeviceArray or int
        Arrays that broadcast to the shape; the bits of a number.
    shape, dtype
        Of the result.
    key : (int, int), optional
        Of the random words of an `softnum.kernels.device.elementwise.Words`.
    """
    size, given = prod(shape), []
    for x in operands:
        if isinstance(x, int):
            given.append(("number", x, ()))
            continue
        place = (1, size) if x.size == size else placement(x.shape, shape)
        if place is None:
            x, place = broadcast(x, shape), (1, size)
        what = "whole" if place == (1, size) else "single" if place == (1, 1) else "spread"
        given.append((what, x._flat, place if what == "spread" else ()))
    return DeviceArray(Pending(Step(computation, given, dtype, size, key)), shape)


_SAME = Computation(("uint32",), "uint32", "out = in0;")


def of_tiles(numbers: DeviceArray, shape, block: tuple[int | None, int | None]) -> DeviceArray:
    """The number of each element's tile, when it is read: an array that broadcasts to a shape.

    Parameters
    ----------
    numbers : DeviceArray (..., tiles of rows, tiles of columns)
        Of 4 bytes each; of tiles of all matrices, or one number.
    shape
        Of matrices (..., rows, columns).
    block : (int or None, int or None)
        Rows and columns of a tile, None for all; those at an edge are cut off.
    """
    if numbers.size == 1:
        return numbers.reshape((1,) * len(shape))
    sizes = [part or max(size, 1) for part, size in zip(block, shape[-2:], strict=True)]
    given = [("tiled", numbers._flat, (*shape[-2:], *sizes))]
    return DeviceArray(Pending(Step(_SAME, given, numbers.dtype, prod(shape))), shape)


def _scalar(x) -> int:
    """A number of a NumPy type as its bits, a Python integer as it is."""
    return x if isinstance(x, int) else int(np.asarray(x).reshape(1).view(f"u{np.asarray(x).itemsize}")[0])


def mapped(operation: str, *arrays: DeviceArray, s=0, t=0) -> DeviceArray:
    """An operation on every element, when it is read.

    Parameters
    ----------
    operation : str
        "add", "multiply" (rounded to the carrier), "negate", "positive_part" (+0 for what is not above 0; NaN stays),
        "clamp" (to s..t), "cut" (to s..t; of NaN and of -0 +0), "where_positive" (y where x is above 0, else +0),
        "where_equal" (y where the number x is s, else +0), "choose" (y where x, else z), "choose_or" (y where x, else
        s), "not" of a mask; "below" (a mask: whether the magnitude is below s); "widen" and "narrow" between binary32
        and binary64; "divide" by s, in binary64.
    *arrays : DeviceArray
        Of one shape, or that broadcast to one; masks are of type bool.
    s, t : int or NumPy scalar
        Of the carrier's type (of "divide", binary64), or an integer.

    Returns
    -------
    DeviceArray
    """
    kinds, result, _ = MAPS[operation]
    shape = np.broadcast_shapes(*(x.shape for x in arrays))
    carriers = {x.dtype for x, kind in zip(arrays, kinds, strict=True) if kind == "c"} or {np.dtype(np.float32)}
    if len(carriers) > 1 or not carriers <= {np.dtype(np.float32), np.dtype(np.float64)}:
        raise TypeError(f"{operation} takes arrays of one carrier, float32 or float64, got {arrays}")
    (carrier,) = carriers
    dtype = {"c": carrier, "w": np.float64, "n": np.float32, "m": np.bool_}[result]
    numbers = ({"s": s, "t": t}[name] for name in taken_numbers(operation))
    widths = [8 * x.dtype.itemsize for x, kind in zip(arrays, kinds, strict=True) if kind == "i"]
    computation = map_computation(operation, 8 * carrier.itemsize, *widths)
    return deferred(computation, (*arrays, *map(_scalar, numbers)), shape, dtype)


# ---- copies --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _layout(shape: tuple[int, ...], dtype) -> tuple[np.ndarray, tuple[int, ...], int]:
    """A NumPy array in C order that has no elements, so that only views may be taken of it; its strides in elements,
    and its address."""
    strides = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
    whole = as_strided(np.empty(1, dtype), shape, tuple(n * dtype.itemsize for n in strides), writeable=True)
    return whole, strides, whole.__array_interface__["data"][0]


def _viewed(x: DeviceArray, view: Callable | None) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """(shape, strides, start) of a view, in elements."""
    whole, strides, address = _layout(x.shape, x.dtype)
    if view is None:
        return x.shape, strides, 0
    part, size = view(whole), x.dtype.itemsize
    start = part.__array_interface__["data"][0] - address
    return part.shape, tuple(n // size for n in part.strides), start // size


def _copy(source: DeviceArray, from_view: Callable | None, target: DeviceArray, to_view: Callable | None) -> None:
    shape, from_strides, from_start = _viewed(source, from_view)
    to_shape, to_strides, to_start = _viewed(target, to_view)
    if shape != to_shape:
        raise ValueError(f"elements of shape {shape} cannot be put in the place of shape {to_shape}")
    sizes, first, second = zip(*merged(shape, from_strides, to_strides), strict=True)
    run(
        copy_kernel(len(sizes)), prod(shape), _bits(source), _bits(target), prod(shape), sizes, first, second,
        from_start, to_start,
    )  # fmt: skip


def _bits(x: DeviceArray):
    return _cuda.bits(x.flat)


def moved(x: DeviceArray, view: Callable) -> DeviceArray:
    """An array of the elements of a view of x: x's own memory where they lie in order there, else a copy.

    Parameters
    ----------
    x : DeviceArray
    view : callable
        Takes a NumPy array of x's shape and returns a view of it (a slice, a transposition, a broadcast); it must not
        read or write elements.
    """
    shape, strides, start = _viewed(x, view)
    size = prod(shape)
    if size and merged(shape, strides, strides) == [(size, 1, 1)]:
        return DeviceArray(x._flat if size == x.size else x.flat[start : start + size], shape)
    result = empty(shape, x.dtype)
    _copy(x, view, result, None)
    return result


def copied(x: DeviceArray) -> DeviceArray:
    """A copy of x, to be written to."""
    result = empty(x.shape, x.dtype)
    _copy(x, None, result, None)
    return result


def put(target: DeviceArray, view: Callable, x: DeviceArray) -> None:
    """Write x's elements to the places of a view (`moved`) of target, in its shape."""
    _copy(x, None, target, view)


def broadcast(x: DeviceArray, shape) -> DeviceArray:
    """x in a shape that it broadcasts to; x itself if it has that shape."""
    return x if x.shape == tuple(shape) else moved(x, lambda a: np.broadcast_to(a, shape))


def concatenated(parts: list[DeviceArray], axis: int) -> DeviceArray:
    """Arrays of one type, one after the other along an axis."""
    first = parts[0]
    axis %= first.ndim
    total = sum(part.shape[axis] for part in parts)
    result, start = empty((*first.shape[:axis], total, *first.shape[axis + 1 :]), first.dtype), 0
    for part in parts:
        index = (slice(None),) * axis + (slice(start, start + part.shape[axis]),)
        put(result, lambda a, index=index: a[index], part)
        start += part.shape[axis]
    return result


def filled(shape, dtype, value) -> DeviceArray:
    """An array of one value."""
    result = empty(shape, dtype)
    bits = _bits(result)
    run(fill_kernel(), result.size, bits, result.size, np.asarray(value, dtype).reshape(1).view(bits.dtype)[0])
    return result


# ---- rows ------------------------------------------------------------------------------------------------------------


def _numbers(rows, count: int) -> np.ndarray:
    """Numbers of rows as NumPy understands them; IndexError for those of none."""
    return np.arange(count, dtype=np.int64)[rows]


def rows_taken(x: DeviceArray, rows) -> DeviceArray:
    """x[rows] for an array of row numbers on the host."""
    numbers = _numbers(rows, len(x))
    result = empty((*numbers.shape, *x.shape[1:]), x.dtype)
    _rows(False, x, result, numbers)
    return result


def rows_put(target: DeviceArray, rows, x: DeviceArray) -> None:
    """target[rows] = x for an array of row numbers on the host, all different; x of the right shape."""
    numbers = _numbers(rows, len(target))
    if x.shape != (*numbers.shape, *target.shape[1:]):
        raise ValueError(f"{numbers.shape} rows of an array of shape {target.shape} cannot be those of {x.shape}")
    _rows(True, x, target, numbers)


def _rows(scatter: bool, source: DeviceArray, target: DeviceArray, numbers) -> None:
    moving = source if scatter else target
    if moving.size:
        numbers = _cuda.to_device(numbers.reshape(-1))
        width = moving.size // numbers.size
        run(rows_kernel(scatter), moving.size, _bits(source), _bits(target), numbers, width, moving.size)

"""Arrays of carriers on a GPU: made, moved, chosen, compared, to the bits of `softnum.train.engine.arrays`."""

from __future__ import annotations

import functools
import math
from types import GeneratorType

import numpy as np
from numpy.lib.stride_tricks import as_strided

from softnum.kernels.device.elementwise import selection
from softnum.kernels.device.runtime import _cuda, movement
from softnum.kernels.device.runtime.movement import DeviceArray, arrays_in, mapped, moved, put, upload
from softnum.mac.products.unfold import Shape
from softnum.train.engine.arrays import Arrays, places
from softnum.train.engine.binary64 import host
from softnum.train.engine.initial import DOMAIN_DROPOUT

__all__ = ["CudaArrays", "on_device"]


def _of_either(method):
    """A method that moves or chooses elements: of NumPy arrays alone it is that of `Arrays`."""
    of_host = getattr(Arrays, method.__name__)

    @functools.wraps(method)
    def wrapped(self, *arguments, **options):
        arguments = [list(part) if isinstance(part, GeneratorType) else part for part in arguments]
        return (method if arrays_in(arguments) else of_host)(self, *arguments, **options)

    return wrapped


def _moving(method):
    """As `_of_either`, where no number is made but +0: a format of all the numbers stays that of the results."""
    either = _of_either(method)

    @functools.wraps(method)
    def wrapped(self, *arguments, **options):
        arguments = [list(part) if isinstance(part, GeneratorType) else part for part in arguments]
        result = either(self, *arguments, **options)
        formats = {getattr(x, "format", None) for x in _arrays(arguments) if x.dtype == self.dtype}
        if len(formats) == 1:
            for x in arrays_in([result]):
                if x.dtype == self.dtype:
                    (x.format,) = formats
        return result

    return wrapped


def _arrays(parts) -> list:
    """The arrays among arguments, wherever they lie, and in lists among them."""
    nested = (_arrays(part) if isinstance(part, (list, tuple)) else [part] for part in parts)
    return [x for each in nested for x in each if isinstance(x, (DeviceArray, np.ndarray))]


def on_device(x) -> DeviceArray:
    """An array on the device: itself, or a copy of NumPy's."""
    return x if isinstance(x, DeviceArray) else upload(x)


@_cuda.kept
def _ones(size: int, dtype):
    """So many ones, which nothing writes to."""
    return movement.filled((size,), dtype, 1).flat


class CudaArrays(Arrays):
    """`softnum.train.engine.arrays.Arrays` on a GPU; what is given NumPy's arrays alone is done there."""

    def array(self, x):
        return upload(super().array(x))

    def double(self, x):
        if isinstance(x, DeviceArray):
            return x if x.dtype == np.float64 else mapped("widen", x)
        return super().double(x)

    def zeros(self, shape):
        return movement.filled(shape, self.dtype, 0)

    def ones(self, shape):
        return DeviceArray(_ones(math.prod(shape), self.dtype), shape)

    @_moving
    def patches(self, x, shape: Shape):
        top, left = shape.padding
        padded = movement.filled(
            (*x.shape[:2], *(n + 2 * p for n, p in zip(shape.size, shape.padding, strict=True))), x.dtype, 0
        )
        put(padded, lambda a: a[:, :, top : top + shape.size[0], left : left + shape.size[1]], x)
        return _unfolded(padded, shape, shape.result, (0, 0), shape.stride, shape.dilation)

    @_moving
    def sources(self, dy, shape: Shape):
        first = [max(0, d * (k - 1) - p) for d, k, p in zip(shape.dilation, shape.kernel, shape.padding, strict=True)]
        ends = [
            b + max((m - 1) * t + 1, n + p)
            for b, m, t, n, p in zip(first, shape.result, shape.stride, shape.size, shape.padding, strict=True)
        ]
        spread = movement.filled((*dy.shape[:2], *ends), dy.dtype, 0)
        (top, left), (down, right) = first, shape.stride
        put(spread, lambda a: a[:, :, top:, left:][:, :, ::down, ::right][:, :, : dy.shape[2], : dy.shape[3]], dy)
        start = [b + p for b, p in zip(first, shape.padding, strict=True)]
        back = [-d for d in shape.dilation]
        return _unfolded(spread, shape, shape.size, start, (1, 1), back)

    @_moving
    def transpose(self, x):
        return moved(x, lambda a: a.T)

    @_moving
    def permute(self, x, axes: tuple[int, ...]):
        return moved(x, lambda a: a.transpose(axes))

    @_moving
    def expand(self, x, shape):
        return moved(x, lambda a: np.broadcast_to(a, shape))

    @_moving
    def reshape(self, x, shape):
        return x.reshape(shape)

    @_of_either
    def add(self, a, b):
        return mapped("add", on_device(a), on_device(b))

    @_moving
    def part(self, x, rows: slice, columns: slice):
        return moved(x, lambda a: a[rows, columns])

    @_moving
    def place(self, x, shape, rows: slice, columns: slice):
        result = movement.filled(shape, x.dtype, 0)
        put(result, lambda a: a[rows, columns], x)
        return result

    @_moving
    def steps(self, x, steps: int):
        return moved(x.reshape((len(x), steps, -1)), lambda a: a.swapaxes(0, 1)).reshape((steps * len(x), -1))

    @_moving
    def pixels(self, x):
        return moved(x, lambda a: a.transpose(0, 2, 3, 1)).reshape((-1, x.shape[1]))

    @_moving
    def neighbours(self, x):
        half, rest = len(x) // 2, x.shape[1:]
        pairs = moved(x, lambda a: a[: 2 * half].reshape(half, 2, *rest).swapaxes(0, 1))
        size = half * math.prod(rest)
        parts = (pairs.flat[at : at + size] if size else pairs.flat for at in (0, size))
        first, second = (DeviceArray(part, (half, *rest)) for part in parts)
        return first, second, moved(x, lambda a: a[2 * half :])

    @_moving
    def join(self, first, second):
        return movement.concatenated([on_device(first), on_device(second)], 0) if len(second) else first

    @_of_either
    def negate(self, x):
        return mapped("negate", x)

    @_moving
    def concatenate(self, parts, axis: int):
        return movement.concatenated([on_device(part) for part in parts], axis)

    @_moving
    def split(self, x, sizes, axis: int):
        ends = np.cumsum(sizes)
        return [
            moved(x, lambda a, part=slice(int(end - size), int(end)): a.swapaxes(0, axis)[part].swapaxes(0, axis))
            for size, end in zip(sizes, ends, strict=True)
        ]

    @_moving
    def put(self, x, rows, values):
        result = movement.copied(on_device(x))
        movement.rows_put(result, rows, on_device(values))
        return result

    @_moving
    def put_rows(self, x, rows, count: int):
        result = movement.filled((count, *x.shape[1:]), x.dtype, 0)
        movement.rows_put(result, rows, x)
        return result

    @_moving
    def windows(self, x, window: tuple[int, int], stride: tuple[int, int]):
        sizes = [(n - w) // t + 1 for n, w, t in zip(x.shape[2:], window, stride, strict=True)]

        def view(a):
            n, c, y, z = a.strides
            strides = (y, z, n, c, y * stride[0], z * stride[1])
            return as_strided(a, (*window, *a.shape[:2], *sizes), strides)

        return moved(x, view).reshape((math.prod(window), *x.shape[:2], *sizes))

    @_moving
    def from_windows(self, parts, shape, window: tuple[int, int], stride: tuple[int, int], *, first: int = 0):
        parts, (rows, columns) = list(parts), window
        if first == 0 and stride == window and _is_tiled(parts, shape, window):  # as an average's gradient is
            tiles = (*parts[0].shape[:3], rows, parts[0].shape[3], columns)
            return moved(parts[0], lambda a: np.broadcast_to(a[:, :, :, None, :, None], tiles)).reshape(shape)
        result = movement.filled(shape, self.dtype, 0)
        for place, part in zip(places(shape, window, stride)[first:], parts, strict=False):
            put(result, lambda a, place=place: a[place], part)
        return result

    @_moving
    def largest(self, parts):
        if not isinstance(parts, DeviceArray):
            parts = movement.concatenated([on_device(part).reshape((1, *part.shape)) for part in parts], 0)
        return selection.largest(parts)

    @_moving
    def where_equal(self, chosen, place: int, x):
        return mapped("where_equal", on_device(chosen), on_device(x), s=place)

    @_of_either
    def choose(self, mask, x, instead):
        x = on_device(x)
        if np.ndim(instead):
            return mapped("choose", on_device(mask), x, on_device(instead))
        result = mapped("choose_or", on_device(mask), x, s=np.asarray(instead, x.dtype))
        result.format = x.format if instead == 0 and not math.copysign(1, instead) < 0 else None
        return result

    def kept(self, shape, rate: float, key: tuple[int, int]):
        """Which elements a dropout keeps (`Arrays.kept`), drawn on the device."""
        seed, stream = key
        return selection.drawn(shape, stream, (seed, DOMAIN_DROPOUT << 32), math.ceil(rate * 2.0**64))

    @_of_either
    def kept_of_tensor(self, x, count: int):
        return selection.largest_of_all(x, count)

    @_of_either
    def kept_of_groups(self, x, count: int, size: int, axis: int):
        """Which are the ``count`` elements of largest magnitude of each ``size`` side by side along an axis."""
        return selection.largest_of_groups(x, count, size, axis)

    @_moving
    def positive_part(self, x):
        return mapped("positive_part", x)

    @_of_either
    def sign(self, x):
        ones = on_device(self.ones(x.shape))
        above, below = (self.where_positive(part, ones) for part in (x, self.negate(x)))
        unit = self.clamp(x, 1.0)  # of NaN the difference to itself is NaN, of all else it is +0
        return self.add(self.add(above, self.negate(below)), self.add(unit, self.negate(unit)))

    @_moving
    def where_positive(self, condition, x):
        return mapped("where_positive", on_device(condition), on_device(x))

    @_of_either
    def divide(self, x, divisor: float):
        return x if divisor == 1.0 else mapped("divide", x, s=np.float64(divisor))

    @_of_either
    def all_finite(self, x) -> bool:
        return selection.all_finite(x)

    @_of_either
    def clamp(self, x, limit: float):
        limit = self.constant(limit)
        return mapped("clamp", x, s=-limit, t=limit)

    def argmax(self, x):
        """Per row, the index of the largest element; the first among equals. On the host, of a copy."""
        return super().argmax(host(x))

    @_moving
    def take(self, x, rows):
        return movement.rows_taken(x, rows)


def _is_tiled(parts, shape, window: tuple[int, int]) -> bool:
    """Whether windows side by side cover images of a shape, each with one array in all its places."""
    sizes = tuple(n * m for n, m in zip(parts[0].shape[2:], window, strict=True)) if parts else ()
    same = len(parts) == math.prod(window) and all(part is parts[0] for part in parts)
    return same and isinstance(parts[0], DeviceArray) and sizes == tuple(shape[2:])


def _unfolded(images: DeviceArray, shape: Shape, rows, start, step, spread) -> DeviceArray:
    """(groups, M, K): for each of rows x columns places, `step` apart from start on, kernel places `spread` apart."""
    own = images.shape[1] // shape.groups
    n = len(images)

    def view(a):
        image, channel, y, z = a.strides
        strides = (own * channel, image, y * step[0], z * step[1], channel, y * spread[0], z * spread[1])
        return as_strided(a[:, :, start[0] :, start[1] :], (shape.groups, n, *rows, own, *shape.kernel), strides)

    return moved(images, view).reshape((shape.groups, n * math.prod(rows), own * math.prod(shape.kernel)))

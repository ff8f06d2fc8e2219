"""The backend that keeps its arrays on a GPU, in kernels that give the bits of `NumpyBackend`.

What comes from the host (a batch, initial weights, a checkpoint) stays there while it is only moved, and goes up where
it is first rounded or multiplied. Weights, activations, gradients and states stay on the device. What comes down:

- the outputs of a batch, to a loss (``softnum.train.binary64``) or an evaluation, and arrays whose norm is asked for:
  these are computed by NumPy for every backend;
- operands of what no kernel computes. `CudaBackend.host_copies` counts them.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections import Counter
from types import GeneratorType

import numpy as np
from numpy.lib.stride_tricks import as_strided

import softnum as sn
from softnum.backend import NoKernel, has_kernel, refuse_device
from softnum.kernels.device import _cuda, carriers, movement, quantize, selection
from softnum.kernels.device.deferred import can_wait, compute_all
from softnum.kernels.device.movement import DeviceArray, arrays_in, moved, put, upload
from softnum.kernels.device.selection import mapped
from softnum.threads import threads_by_default
from softnum.train.arrays import places
from softnum.train.backend import NumpyBackend, block_ones, odd_is_exact, rounding_of
from softnum.train.binary64 import host
from softnum.train.initial import DOMAIN_DROPOUT
from softnum.unfold import Shape

__all__ = ["CudaBackend"]

_WIDE = sn.format("binary64")


def _of_either(method):
    """A method that moves or chooses elements: of NumPy arrays alone it is that of `NumpyBackend`."""
    of_host = getattr(NumpyBackend, method.__name__)

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


def _known(x: DeviceArray, fmt) -> DeviceArray:
    """x, which softnum made of values of a format. What moving puts between them is +0, which a format may lack."""
    if fmt.kind == "fixed" or (fmt.kind == "float" and fmt.has_zero):
        x.format = fmt
    return x


def _is_rounded(x: DeviceArray, role) -> bool:
    """Whether rounding as a role says is known to change nothing; that to saturate would change infinities."""
    return x.format == role.format and (role.format.kind == "fixed" or role.overflow != "saturate")


def _up(x) -> DeviceArray:
    """An array on the device: itself, or a copy of NumPy's."""
    return x if isinstance(x, DeviceArray) else upload(x)


def _given(arrays) -> tuple:
    """Arrays as softnum's functions take them on the device."""
    return tuple(_up(x).numba for x in arrays)


def _operand(x):
    """A factor as softnum's products take it on the device: carriers, or blocks."""
    return x if isinstance(x, sn.BlockArray) else x.numba


@_cuda.kept
def _block_ones(shape: tuple[int, int], fmt) -> sn.BlockArray:
    """`NumpyBackend.block_ones` on the device."""
    x = block_ones(shape, fmt)
    codes, scales = (upload(part).numba for part in (x.codes, x.scales))
    return sn.BlockArray(codes, scales, fmt, x.axis, x.tensor_scale)


@_cuda.kept
def _ones(size: int, dtype):
    """So many ones, which nothing writes to."""
    return movement.filled((size,), dtype, 1).flat


def _down(part):
    """What the host takes instead of an argument."""
    if isinstance(part, (list, tuple)):
        return type(part)(_down(each) for each in part)
    if isinstance(part, sn.BlockArray):
        return part.copy_to_host()
    return part.host() if isinstance(part, DeviceArray) else part


class CudaBackend(NumpyBackend):
    """Arrays on a GPU (`DeviceArray`), or in Numba's simulator of one; the methods of `NumpyBackend`, and its bits.

    What is inherited computes by the other methods, or on the host.

    Parameters
    ----------
    dtype : numpy dtype
        The carrier: float32, or float64 where a format needs it.
    threads : int
        Of what is computed on the host.

    Attributes
    ----------
    host_copies : collections.Counter
        Method -> how many arrays it copied to the host because no kernel computes it: what formats, units and
        operators there are without a kernel.
    """

    def __init__(self, dtype=np.float32, *, threads: int = 1) -> None:
        super().__init__(dtype, threads=threads)
        self.host_copies: Counter[str] = Counter()

    def finish(self) -> None:
        """Return when all that was begun is done."""
        compute_all()
        _cuda.synchronize(_cuda.stream())

    # -- the design's arithmetic -------------------------------------------------------------------------------------
    def quantize(self, x, role, key):
        x = _up(x)
        if x.dtype == self.dtype and (role.format == self._own_format or _is_rounded(x, role)):
            return x
        if x.dtype == np.float64 != self.dtype and role.format.kind == "float" and role.format.has_nan:
            options = rounding_of(role, key)
            result = carriers.deferred("convert", [x], (_WIDE,), role.format, to=self.dtype, **options)
            return _known(result, role.format)
        if not isinstance(role.format, sn.CustomFormat):
            computation, words = quantize.prepared(role.format, x.dtype.name, **rounding_of(role, key))
            if can_wait(computation):
                x = movement.deferred(computation, [x], x.shape, x.dtype, words.key if words.kind else None)
                return _known(self._carried(x), role.format)
        x = self._softnum("quantize", (x,), role.format, shape=x.shape, **rounding_of(role, key))
        return _known(self._carried(x), role.format)

    def quantize_blocks(self, x, role, axis: int, key):
        options = {"axis": axis, "scale_rule": role.scale_rule, **rounding_of(role, key)}
        return sn.array(_up(x).numba, role.format, **options)

    def block_ones(self, shape: tuple[int, int], fmt):
        return _block_ones(shape, fmt)

    def matmul(self, a, b, unit, c, key):
        """(..., M, K) @ (..., K, N) in a unit, on carriers or BlockArrays.

        c is None or the accumulator's initial value, broadcast to (..., M, N).
        """
        if not isinstance(a, sn.BlockArray):
            a, b = _up(a), _up(b)
        start = None if c is None else movement.broadcast(_up(c), (*a.shape[:-1], b.shape[-1])).numba
        try:
            result = DeviceArray.of(_called("matmul", _operand(a), _operand(b), unit, start, key=key))
            return _known(self._carried(result), unit.result)
        except NoKernel:
            return _up(self._on_host("matmul", a, b, unit, c, key))

    def convolve(self, key: str, a, b, unit, c, words_key, geometry: dict):
        """One of a convolution's three products in a unit, on carriers (`NumpyBackend.convolve`)."""
        product = {
            "forward": "conv2d", "backward_data": "conv2d_backward_data", "backward_weight": "conv2d_backward_weight",
        }[key]  # fmt: skip
        a, b, c = (None if x is None else _up(x) for x in (a, b, c))
        start = None if c is None else c.numba
        try:
            result = _called(product, a.numba, b.numba, unit, c=start, key=words_key, **geometry)
        except NoKernel:
            return _up(self._on_host("convolve", key, a, b, unit, c, words_key, geometry))
        return _known(self._carried(DeviceArray.of(result)), unit.result)

    def operate(self, operation: str, operands, role, key):
        operands = [_up(x) for x in operands]
        if operation in carriers.OPERATIONS:
            if isinstance(role.format, sn.CustomFormat):
                operands = [self._rounded(x, role.format) for x in operands]
                formats = (self._own_format,) * len(operands)
            else:
                formats = (role.format,) * len(operands)
            with contextlib.suppress(NoKernel):
                return _known(self._computed(operation, operands, formats, role, key), role.format)
        codes = [self._codes(x, role.format) for x in operands]
        return _known(self._operated(operation, codes, role.format, role, key), role.format)

    def total(self, x, role, keys):
        x = _up(x)
        if isinstance(role.format, sn.CustomFormat):
            return super().total(x, role, keys)
        keys = [key if role.stochastic else None for key in keys]
        options = {name: option for name, option in rounding_of(role, None).items() if name != "key"}
        result = carriers.total(x, role.format, keys, **options)
        result.format = x.format if x.format == role.format else None  # an odd one waits, as it is
        return result

    def run_operator(self, operator, operands, options):
        with contextlib.suppress(NoKernel):
            return DeviceArray.of(operator(*_given(operands), **options))
        return _up(self._on_host("run_operator", operator, operands, options))

    def run_operator_backward(self, operator, operands, results, gradients, options):
        try:
            parts = operator.backward(_given(operands), _given(results), _given(gradients), **options)
            return tuple(None if part is None else DeviceArray.of(part) for part in parts)
        except NoKernel:
            parts = self._on_host("run_operator_backward", operator, operands, results, gradients, options)
            return tuple(None if part is None else _up(part) for part in parts)

    def compute(self, operation: str, operands, role, key):
        operands = [_up(x) if isinstance(x, DeviceArray) or np.ndim(x) else self.dtype.type(x) for x in operands]
        formats = (self._own_format,) * len(operands)
        if operation in carriers.OPERATIONS:
            with contextlib.suppress(NoKernel):
                return _known(self._computed(operation, operands, formats, role, key), role.format)
        operands = [x if isinstance(x, DeviceArray) else self._number(x) for x in operands]
        codes = [self._codes(x, self._own_format) for x in operands]
        return _known(self._operated(operation, codes, formats, role, key, out_fmt=role.format), role.format)

    def _computed(self, operation: str, operands, formats, role, key):
        """An operation on carriers of formats, rounded once as a role says; NoKernel if none computes it."""
        if not any(isinstance(x, DeviceArray) for x in operands):
            operands = [self._number(x) for x in operands]
        if not isinstance(role.format, sn.CustomFormat):
            return carriers.deferred(operation, operands, formats, role.format, **rounding_of(role, key))
        if not odd_is_exact(role):
            raise NoKernel(f"{operation}: no kernel rounds to {role.format}")
        odd = carriers.deferred(operation, operands, formats, _WIDE, rounding="to_odd", to=np.float64)
        return self.quantize(odd, role, key)

    def _number(self, x) -> DeviceArray:
        """A number as an array, which is made once: rates and other constants come again in every iteration."""
        return DeviceArray(_cuda.constant(np.full(1, x, self.dtype)), ())

    def _rounded(self, x: DeviceArray, fmt) -> DeviceArray:
        """Values of a format, of which none changes, or the nearest ones."""
        return self._carried(self._softnum("quantize", (x,), fmt, shape=x.shape))

    # -- softnum's functions, on the device where they have a kernel ---------------------------------------------------
    def _codes(self, x: DeviceArray, fmt) -> DeviceArray:
        if fmt == self._own_format:
            return x.view(f"uint{8 * self.dtype.itemsize}")
        return self._softnum("encode", (x,), fmt, shape=x.shape)

    def _operated(self, operation: str, codes, formats, role, key, **options):
        """The values of an operation's result, from codes to codes of a role's format."""
        shape = np.broadcast_shapes(*(x.shape for x in codes))
        result = self._softnum(operation, codes, formats, shape=shape, **options, **rounding_of(role, key))
        if role.format == self._own_format:
            return result.view(self.dtype)
        return self._softnum("decode", (result,), role.format, self.dtype, shape=shape)

    def _softnum(self, name: str, arrays, *arguments, shape, **options):
        """A function of softnum of arrays on the device; the result has a shape."""
        with contextlib.suppress(NoKernel):
            return DeviceArray.of(_called(name, *(x.numba for x in arrays), *arguments, **options), shape)
        self.host_copies[name] += len(arrays)
        with threads_by_default(self.threads):
            result = getattr(sn, name)(*(x.host() for x in arrays), *arguments, **options)
        return upload(np.asarray(result).reshape(shape))

    def _on_host(self, name: str, *arguments):
        """A method of `NumpyBackend` on copies of what lies on the device."""
        self.host_copies[name] += len(arrays_in(arguments)) + sum(isinstance(x, sn.BlockArray) for x in arguments)
        return getattr(NumpyBackend, name)(self, *(_down(part) for part in arguments))

    def _carried(self, x: DeviceArray) -> DeviceArray:
        """x, values that the carrier holds, as carriers."""
        if x.dtype == self.dtype:
            return x
        return mapped("narrow" if self.dtype == np.float32 else "widen", x)

    # -- exact, or IEEE-determined, on carriers ------------------------------------------------------------------------
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
    def reshape(self, x, shape):
        return x.reshape(shape)

    @_of_either
    def add(self, a, b):
        return mapped("add", _up(a), _up(b))

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
        return movement.concatenated([_up(first), _up(second)], 0) if len(second) else first

    @_of_either
    def negate(self, x):
        return mapped("negate", x)

    @_moving
    def concatenate(self, parts, axis: int):
        return movement.concatenated([_up(part) for part in parts], axis)

    @_moving
    def split(self, x, sizes, axis: int):
        ends = np.cumsum(sizes)
        return [
            moved(x, lambda a, part=slice(int(end - size), int(end)): a.swapaxes(0, axis)[part].swapaxes(0, axis))
            for size, end in zip(sizes, ends, strict=True)
        ]

    @_moving
    def put(self, x, rows, values):
        result = movement.copied(_up(x))
        movement.rows_put(result, rows, _up(values))
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
            parts = movement.concatenated([_up(part).reshape((1, *part.shape)) for part in parts], 0)
        return selection.largest(parts)

    @_moving
    def where_equal(self, chosen, place: int, x):
        return mapped("where_equal", _up(chosen), _up(x), s=place)

    @_of_either
    def choose(self, mask, x, instead):
        x = _up(x)
        if np.ndim(instead):
            return mapped("choose", _up(mask), x, _up(instead))
        result = mapped("choose_or", _up(mask), x, s=np.asarray(instead, x.dtype))
        result.format = x.format if instead == 0 and not math.copysign(1, instead) < 0 else None
        return result

    def kept(self, shape, rate: float, key: tuple[int, int]):
        """Which elements a dropout keeps (`NumpyBackend.kept`), drawn on the device."""
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

    @_moving
    def where_positive(self, condition, x):
        return mapped("where_positive", _up(condition), _up(x))

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


def _called(name: str, *arguments, **options):
    """A function of softnum, on arrays of the device; NoKernel if it takes none."""
    if not has_kernel(name):
        refuse_device(name)
    return getattr(sn, name)(*arguments, **options)


def _unfolded(images: DeviceArray, shape: Shape, rows, start, step, spread) -> DeviceArray:
    """(groups, M, K): for each of rows x columns places, `step` apart from start on, kernel places `spread` apart."""
    own = images.shape[1] // shape.groups
    n = len(images)

    def view(a):
        image, channel, y, z = a.strides
        strides = (own * channel, image, y * step[0], z * step[1], channel, y * spread[0], z * spread[1])
        return as_strided(a[:, :, start[0] :, start[1] :], (shape.groups, n, *rows, own, *shape.kernel), strides)

    return moved(images, view).reshape((shape.groups, n * math.prod(rows), own * math.prod(shape.kernel)))

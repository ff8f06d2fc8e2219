"""The backend that keeps its arrays on a GPU, in kernels that give the bits of `NumpyBackend`.

What comes from the host (a batch, initial weights, a checkpoint) stays there while it is only moved, and goes up where
it is first rounded or multiplied. Weights, activations, gradients and states stay on the device. What comes down:

- the outputs of a batch, to a loss (``softnum.train.engine.binary64``) or an evaluation, and arrays whose norm is asked
  for: these are computed by NumPy for every backend;
- operands of what no kernel computes. `CudaBackend.host_copies` counts them.
"""

from __future__ import annotations

import contextlib
from collections import Counter

import numpy as np

from softnum.arrays.blocks import BlockArray
from softnum.arrays.container import array
from softnum.arrays.environment import SourceKey
from softnum.formats.blocks import format
from softnum.formats.dispatch import of_format
from softnum.kernels.device.elementwise import carriers, conversion
from softnum.kernels.device.elementwise.deferred import can_wait, compute_all
from softnum.kernels.device.runtime import _cuda, movement
from softnum.kernels.device.runtime.movement import DeviceArray, arrays_in, mapped, upload
from softnum.runtime.gateway import NoKernel, has_kernel, refuse_device
from softnum.runtime.threads import threads_by_default
from softnum.train.designs.convolutions import Convolution
from softnum.train.engine.arithmetic import FUNCTIONS, PRODUCTS
from softnum.train.engine.backend import (
    NumpyBackend,
    as_rows,
    block_ones,
    block_options,
    by_levels,
    odd_is_exact,
    rounding_of,
)
from softnum.train.engine.cuda_arrays import CudaArrays, on_device
from softnum.train.engine.cuda_scales import CudaScales

__all__ = ["CudaBackend"]

_WIDE = format("binary64")


def _known(x: DeviceArray, fmt) -> DeviceArray:
    """x, which softnum made of values of a format. What moving puts between them is +0, which a format may lack."""
    if _keeps(fmt):
        x.format = fmt
    return x


@of_format
def _keeps(fmt) -> bool:
    """Whether rounding a format's values, or +0, to it is known to change nothing."""
    return fmt.has_zero


@_keeps.custom
def _may_change(fmt) -> bool:
    return False


def _is_rounded(x: DeviceArray, role) -> bool:
    """Whether rounding as a role says is known to change nothing; that to saturate would change infinities."""
    return x.format == role.format and not (role.overflow == "saturate" and role.format.infinities)


# ---- what differs by a role's format ---------------------------------------------------------------------------------
@of_format
def _deferred(fmt, backend, x: DeviceArray, role, key) -> DeviceArray | None:
    """x rounded as a role says when it is first read; None where that cannot wait."""
    options = rounding_of(role, key)
    if isinstance(options["key"], SourceKey):  # whose words are an array's
        return None
    if x.dtype == np.float64 != backend.dtype and fmt.has_nan:
        return carriers.deferred("convert", [x], (_WIDE,), fmt, to=backend.dtype, **options)
    computation, words = conversion.prepared(fmt, x.dtype.name, **options)
    if not can_wait(computation):
        return None
    return backend._carried(movement.deferred(computation, [x], x.shape, x.dtype, words.key if words.kind else None))


@_deferred.custom
def _not_deferred(fmt, backend, x: DeviceArray, role, key) -> None:
    return None


@of_format
def _taken(fmt, backend, operands) -> tuple:
    """(operands of an operation on carriers, their formats)"""
    return operands, (fmt,) * len(operands)


@_taken.custom
def _taken_rounded(fmt, backend, operands) -> tuple:
    return [backend._rounded(x, fmt) for x in operands], (backend._own_format,) * len(operands)


@of_format
def _total(fmt, backend, x: DeviceArray, role, keys) -> DeviceArray:
    """`CudaBackend.total` of the first axis of an array on the device."""
    keys = [rounding_of(role, key)["key"] for key in keys]
    options = {name: option for name, option in rounding_of(role, None).items() if name != "key"}
    result = carriers.total(x, fmt, keys, **options)
    result.format = x.format if x.format == fmt else None  # an odd one waits, as it is
    return result


@_total.custom
def _total_by_levels(fmt, backend, x: DeviceArray, role, keys):
    return by_levels(backend, x, role, keys, "rows")


@of_format
def _computed(fmt, backend, operation: str, operands, formats, role, key) -> DeviceArray:
    """An operation on carriers of formats, rounded once as a role says; NoKernel if none computes it."""
    return carriers.deferred(operation, operands, formats, fmt, **rounding_of(role, key))


@_computed.custom
def _computed_by_odd(fmt, backend, operation: str, operands, formats, role, key) -> DeviceArray:
    if not odd_is_exact(role):
        raise NoKernel(f"{operation}: no kernel rounds to {fmt}")
    odd = carriers.deferred(operation, operands, formats, _WIDE, rounding="to_odd", to=np.float64)
    return backend.quantize(odd, role, key)


def _given(arrays) -> tuple:
    """Arrays as softnum's functions take them on the device."""
    return tuple(on_device(x).numba for x in arrays)


def _operand(x):
    """A factor as softnum's products take it on the device: carriers, or blocks."""
    return x if isinstance(x, BlockArray) else x.numba


@_cuda.kept
def _block_ones(shape: tuple[int, int], fmt) -> BlockArray:
    """`NumpyBackend.block_ones` on the device."""
    x = block_ones(shape, fmt)
    codes, scales = (upload(part).numba for part in (x.codes, x.scales))
    return BlockArray(codes, scales, fmt, x.axis, x.tensor_scale)


def _down(part):
    """What the host takes instead of an argument."""
    if isinstance(part, (list, tuple)):
        return getattr(type(part), "_make", type(part))(_down(each) for each in part)
    if isinstance(part, BlockArray):
        return part.copy_to_host()
    return part.host() if isinstance(part, DeviceArray) else part


class CudaBackend(CudaScales, CudaArrays, NumpyBackend):
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
    def check_room(self, elements: int, what: str, way: str) -> None:
        """Nothing: arrays are in the device's memory, whose own allocator tells what it lacks."""

    def quantize(self, x, role, key):
        x = on_device(x)
        if x.dtype == self.dtype and (role.format == self._own_format or _is_rounded(x, role)):
            return x
        result = _deferred(role.format, self, x, role, key)
        if result is None:
            x = self._softnum("quantize", (x,), role.format, shape=x.shape, **rounding_of(role, key))
            result = self._carried(x)
        return _known(result, role.format)

    def quantize_blocks(self, x, role, axis: int, key, largest=None):
        return array(on_device(x).numba, role.format, axis=axis, **block_options(role, key, largest))

    def quantize_flat(self, x, role, key):
        if not role.block:
            return self.quantize(x, role, key)
        x = on_device(x)
        options = {"axis": -1, **block_options(role, key)}
        return self._carried(self._softnum("quantize", (x.reshape((x.size,)),), role.format, shape=x.shape, **options))

    def block_ones(self, shape: tuple[int, int], fmt):
        return _block_ones(shape, fmt)

    def matmul(self, a, b, unit, c, key):
        """(..., M, K) @ (..., K, N) in a unit, on carriers or BlockArrays.

        c is None or the accumulator's initial value, broadcast to (..., M, N).
        """
        if not isinstance(a, BlockArray):
            a, b = (self._carried(on_device(x)) for x in (a, b))
        start = None if c is None else movement.broadcast(on_device(c), (*a.shape[:-1], b.shape[-1])).numba
        try:
            result = DeviceArray.of(self._kernel_of("matmul", _operand(a), _operand(b), unit, start, key=key))
            return _known(self._carried(result), unit.result)
        except NoKernel:
            return on_device(self._on_host("matmul", a, b, unit, c, key))

    def convolve(self, key: str, a, b, unit, c, words_key, geometry: dict, by: Convolution | None = None):
        """One of a convolution's three products in a unit, on carriers (`NumpyBackend.convolve`)."""
        a, b, c = (None if x is None else on_device(x) for x in (a, b, c))
        if by is not None:
            return on_device(self._on_host("convolve", key, a, b, unit, c, words_key, geometry, by))
        start = None if c is None else c.numba
        try:
            result = self._kernel_of(PRODUCTS[key], a.numba, b.numba, unit, c=start, key=words_key, **geometry)
        except NoKernel:
            return on_device(self._on_host("convolve", key, a, b, unit, c, words_key, geometry))
        return _known(self._carried(DeviceArray.of(result)), unit.result)

    def operate(self, operation: str, operands, role, key):
        operands = [on_device(x) for x in operands]
        if operation in carriers.OPERATIONS:
            operands, formats = _taken(role.format, self, operands)
            with contextlib.suppress(NoKernel):
                return _known(self._computed(operation, operands, formats, role, key), role.format)
        codes = [self._codes(x, role.format) for x in operands]
        return _known(self._operated(operation, codes, role.format, role, key), role.format)

    def total(self, x, role, keys, axes: str = "rows"):
        return _total(role.format, self, on_device(as_rows(self, x, axes)), role, keys)

    def run_operator(self, operator, operands, options):
        with contextlib.suppress(NoKernel):
            return DeviceArray.of(operator(*_given(operands), **options))
        return on_device(self._on_host("run_operator", operator, operands, options))

    def run_operator_backward(self, operator, operands, results, gradients, options):
        try:
            parts = operator.backward(_given(operands), _given(results), _given(gradients), **options)
            return tuple(None if part is None else DeviceArray.of(part) for part in parts)
        except NoKernel:
            parts = self._on_host("run_operator_backward", operator, operands, results, gradients, options)
            return tuple(None if part is None else on_device(part) for part in parts)

    def compute(self, operation: str, operands, role, key):
        operands = [on_device(x) if isinstance(x, DeviceArray) or np.ndim(x) else self.dtype.type(x) for x in operands]
        formats = (self._own_format,) * len(operands)
        if operation in carriers.OPERATIONS:
            with contextlib.suppress(NoKernel):
                return _known(self._computed(operation, operands, formats, role, key), role.format)
        operands = [x if isinstance(x, DeviceArray) else self._number(x) for x in operands]
        codes = [self._codes(x, self._own_format) for x in operands]
        return _known(self._operated(operation, codes, formats, role, key, out_fmt=role.format), role.format)

    def _computed(self, operation: str, operands, formats, role, key):
        if not any(isinstance(x, DeviceArray) for x in operands):
            operands = [self._number(x) for x in operands]
        return _computed(role.format, self, operation, operands, formats, role, key)

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
            return DeviceArray.of(self._kernel_of(name, *(x.numba for x in arrays), *arguments, **options), shape)
        self.host_copies[name] += len(arrays)
        with threads_by_default(self.threads):
            result = FUNCTIONS[name](*(x.host() for x in arrays), *arguments, **options)
        return upload(np.asarray(result).reshape(shape))

    def _kernel_of(self, name: str, *arguments, **options):
        """A function of softnum, on arrays of the device; NoKernel if it takes none."""
        if not has_kernel(name):
            refuse_device(name)
        return FUNCTIONS[name](*arguments, **options)

    def _on_host(self, name: str, *arguments):
        """A method of `NumpyBackend` on copies of what lies on the device."""
        self.host_copies[name] += len(arrays_in(arguments)) + sum(isinstance(x, BlockArray) for x in arguments)
        return getattr(NumpyBackend, name)(self, *(_down(part) for part in arguments))

    def _carried(self, x: DeviceArray) -> DeviceArray:
        """x, values that the carrier holds, as carriers."""
        if x.dtype == self.dtype:
            return x
        return mapped("narrow" if self.dtype == np.float32 else "widen", x)

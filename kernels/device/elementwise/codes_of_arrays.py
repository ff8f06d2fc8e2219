"""`softnum.Array`s of device codes: the check that they are codes of the format, and copies."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import as_strided

from softnum.arrays.container import Array
from softnum.kernels.device.runtime import _cuda, strides
from softnum.kernels.device.runtime._cuda import cuda
from softnum.kernels.device.runtime.copies import grid
from softnum.kernels.device.runtime.dlpack import packed
from softnum.kernels.device.runtime.strides import contiguous, dense
from softnum.runtime.gateway import NoKernel, is_device_array, refuse_device

__all__ = ["check_codes", "copy", "copy_to_host", "examples", "moved", "put"]


@lru_cache(maxsize=4)
def largest_kernel(kind: str):
    """The kernel ``(codes, largest)``: the largest of unsigned integers, in largest[0], which starts from 0."""

    @cuda.jit
    def kernel(codes, largest):
        top = np.uint64(0)
        for i in range(cuda.grid(1), codes.size, cuda.gridsize(1)):
            code = np.uint64(codes[i])
            if code > top:
                top = code
        if top > 0:
            cuda.atomic.max(largest, 0, top)

    return kernel


def check_codes(codes, fmt, what: str = "codes"):
    """The codes: TypeError for another type than the format's, ValueError if one does not fit the format's bits."""
    want = np.dtype(fmt.storage_dtype)
    if codes.dtype != want:
        raise TypeError(f"{what} of {fmt} on a GPU must be an array of {want}, got {codes.dtype}")
    if codes.size and fmt.bits < 8 * want.itemsize:
        largest = _cuda.filled(1, np.uint64, 0)
        memory = dense(codes)[0]
        _cuda.launch(largest_kernel(want.name), *grid(memory.size), memory, largest)
        top = int(_cuda.to_host(largest)[0])
        if top >> fmt.bits:
            raise ValueError(f"{what}: {top} is no code of {fmt}, which has {fmt.bits} bits")
    return codes


def copy(codes):
    """The codes once more, on the device, in C order."""
    out = _cuda.empty(tuple(codes.shape), codes.dtype)
    strides.copy(codes, out)
    return out


def put(a: Array, out) -> None:
    """Write the codes of an Array, or of a number of the host, into an array of a shape that they broadcast to."""
    codes = a.codes if is_device_array(a) else _cuda.to_device(a.codes)
    if np.broadcast_shapes(tuple(codes.shape), tuple(out.shape)) != tuple(out.shape):
        raise ValueError(f"codes of shape {tuple(codes.shape)} do not broadcast to {tuple(out.shape)}")
    strides.copy(codes, out)


def copy_to_host(codes) -> np.ndarray:
    """The codes on the host."""
    return _cuda.to_host(contiguous(codes)) if codes.size else np.empty(tuple(codes.shape), codes.dtype)


def moved(a: Array, name: str, arguments: tuple, options: dict) -> Array:
    """An Array by ndarray's method of a name that moves elements: a view; reshaped, of what is not in C order, a copy.

    Raises
    ------
    NoKernel
        For take and repeat.
    """
    codes, steps = a.codes, a.codes.strides
    if name in ("take", "repeat"):
        refuse_device(f"Array.{name}")
    if name in ("reshape", "ravel", "flatten"):
        if options.get("order", "C") != "C" or (name != "reshape" and arguments not in ((), ("C",))):
            raise NoKernel(f"Array.{name}: CUDA arrays are reshaped in C order alone; transpose before and after")
        codes = copy(codes) if name == "flatten" else contiguous(codes)
        name, steps = name.replace("flatten", "ravel"), packed(codes.shape, codes.dtype.itemsize)
    # of this array no element is looked at: in C order every shape is a view, and so are axes in another order
    layout = as_strided(np.empty(1, codes.dtype), tuple(codes.shape), tuple(steps))
    layout = getattr(layout, name)(*arguments, **options)
    return Array._of(strides.strided(codes, layout.shape, layout.strides), a.format)


def examples():
    """Kernels for the link check."""
    from numba import types

    for kind in ("uint8", "uint64"):
        array = types.Array(_cuda.scalar_type(kind), 1, "C")
        yield f"largest of {kind}", largest_kernel(kind), (array, types.Array(types.uint64, 1, "C")), True

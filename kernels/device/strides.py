"""Arrays of any strides: their memory as one dimension, and packed copies."""

from __future__ import annotations

import numpy as np

from softnum.kernels.device import _cuda
from softnum.kernels.device.dlpack import Memory, packed
from softnum.kernels.device.movement import copy_kernel, run

__all__ = ["contiguous", "dense", "flat", "place_of", "transposed"]


def flat(x):
    """An array's memory: (an array of one dimension, where x's first element is, x's strides in elements).

    Raises ValueError for strides that are no multiples of an element.
    """
    itemsize = x.dtype.itemsize
    strides, shape = tuple(int(s) for s in x.strides), tuple(x.shape)
    if any(s % itemsize and n > 1 for s, n in zip(strides, shape, strict=True)):
        raise ValueError(f"an array of {x.dtype} with strides {strides} (bytes) is not aligned; copy it first")
    strides = tuple(s // itemsize for s in strides)
    if x.size == 0:
        return _cuda.empty(0, x.dtype), 0, strides
    spans = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    below = -sum(s for s in spans if s < 0)
    length = below + sum(s for s in spans if s > 0) + 1
    if _cuda.is_contiguous(x):
        return x.reshape(x.size), 0, strides
    return _whole(x, below, length), below, strides


def _whole(x, below: int, length: int):
    """The `length` elements of memory of which x's first is number `below`."""
    if _cuda.SIMULATOR:
        start = x._ary[tuple(slice(None, None, -1 if s < 0 else 1) for s in x.strides)]
        memory = np.lib.stride_tricks.as_strided(start, (length,), (x.dtype.itemsize,))
        return type(x)(memory, stream=x.stream)
    itemsize = x.dtype.itemsize
    device = (0, _cuda.device_index())
    memory = Memory(_cuda.address_of(x) - below * itemsize, (length,), (itemsize,), x.dtype, device, False)
    return _cuda.adopt(memory, x, "x")


def _merged(shape, strides):
    """The dimensions with those of one element left out, and with neighbours that one stride steps through as one."""
    merged = []
    for n, s in zip(shape, strides, strict=True):
        if n == 1:
            continue
        if merged and merged[-1][1] == n * s:
            merged[-1] = (merged[-1][0] * n, s)
        else:
            merged.append((n, s))
    return merged or [(1, 0)]


def contiguous(x):
    """x in C order: itself, or a packed copy, by a kernel."""
    if _cuda.is_contiguous(x):
        return x
    out = _cuda.empty(tuple(x.shape), x.dtype)
    if out.size:
        memory, first, strides = flat(x)
        sizes, steps = zip(*_merged(tuple(x.shape), strides), strict=True)
        run(
            copy_kernel(len(sizes)), out.size, _cuda.bits(memory), _cuda.bits(out).reshape(out.size), out.size, sizes,
            steps, packed(sizes, 1), first, 0,
        )  # fmt: skip
    return out


def dense(x):
    """`flat` of x if it fills its memory, in whatever order, else of a packed copy of x.

    Dimensions of stride 0, in which one element stands for many, fill it too.
    """
    x = x if _is_dense(x) else contiguous(x)
    return flat(x)


def _is_dense(x) -> bool:
    if x.size == 0 or _cuda.is_contiguous(x):
        return True
    expected = x.dtype.itemsize
    for s, n in sorted((abs(s), n) for s, n in zip(x.strides, x.shape, strict=True) if n > 1 and s):
        if s != expected:
            return False
        expected *= n
    return True


def place_of(at: int, shape, strides) -> list[int]:
    """Where the element at an index of `dense` memory stands in the array (the first of those that it stands for)."""
    where = [0] * len(shape)
    for d in sorted(range(len(shape)), key=lambda d: -abs(strides[d])):
        if shape[d] > 1 and strides[d]:
            i, at = divmod(at, abs(strides[d]))
            where[d] = int(i if strides[d] > 0 else shape[d] - 1 - i)
    return where


def transposed(x, axes):
    """A view of x with its dimensions in another order."""
    axes = tuple(axes)
    if _cuda.SIMULATOR:
        return x.transpose(axes)
    shape, strides = (tuple(t[a] for a in axes) for t in (x.shape, x.strides))
    device = (0, _cuda.device_index())
    return _cuda.adopt(Memory(_cuda.address_of(x), shape, strides, x.dtype, device, False), x, "x")

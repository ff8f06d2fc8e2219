"""Arrays of any strides: their memory as one dimension, and packed copies."""

from __future__ import annotations

from itertools import pairwise
from math import prod

import numpy as np

from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime.copies import copy_kernel, merged, run
from softnum.kernels.device.runtime.dlpack import Memory

__all__ = [
    "broadcast", "contiguous", "copy", "dense", "flat", "is_dense", "one_step", "overlap", "overlaps_itself", "packed",
    "place_of", "strided", "transposed",
]  # fmt: skip


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


def copy(x, out) -> None:
    """Copy x into out, of the same type and of a shape that x broadcasts to; each of any strides, by a kernel."""
    if not out.size:
        return
    shape = tuple(int(n) for n in out.shape)
    source, first, steps = flat(x)
    target, start, to = flat(out)
    steps = [0 if n == 1 else s for s, n in zip(steps, x.shape, strict=True)]
    sizes, steps, to = zip(*merged(shape, [0] * (len(to) - len(steps)) + steps, to), strict=True)
    arrays = _cuda.bits(source), _cuda.bits(target)
    run(copy_kernel(len(sizes)), prod(shape), *arrays, prod(shape), sizes, steps, to, first, start)


def packed(x, shape):
    """x broadcast to a shape, in C order: x itself where it is that, else a copy."""
    if tuple(x.shape) == tuple(shape) and _cuda.is_contiguous(x):
        return x
    out = _cuda.empty(tuple(shape), x.dtype)
    copy(x, out)
    return out


def contiguous(x):
    """x in C order: itself, or a packed copy."""
    return packed(x, x.shape)


def dense(x):
    """`flat` of x if it fills its memory, in whatever order, else of a packed copy of x.

    Dimensions of stride 0, in which one element stands for many, fill it too.
    """
    x = x if is_dense(x) else contiguous(x)
    return flat(x)


def is_dense(x) -> bool:
    """Whether an array fills its memory, in whatever order."""
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


def strided(x, shape, strides):
    """A view of x's memory, from its first element on: of a shape, with strides in bytes."""
    if _cuda.SIMULATOR:
        return type(x)(np.lib.stride_tricks.as_strided(x._ary, shape, strides), stream=x.stream)
    device = (0, _cuda.device_index())
    return _cuda.adopt(Memory(_cuda.address_of(x), tuple(shape), tuple(strides), x.dtype, device, False), x, "x")


def broadcast(x, shape):
    """A view of x in a shape that it broadcasts to."""
    strides = [0 if n == 1 else s for s, n in zip(x.strides, x.shape, strict=True)]
    return strided(x, tuple(shape), (*[0] * (len(shape) - len(strides)), *strides))


def overlap(x, y) -> bool:
    """Whether two arrays may have memory in common."""
    if not (x.size and y.size):
        return False
    (low, high), (start, end) = map(_extent, (x, y))
    return low < end and start < high


def overlaps_itself(x) -> bool:
    """Whether several elements of an array may lie in one place."""
    reach = x.dtype.itemsize
    for s, n in sorted((abs(s), n) for s, n in zip(x.strides, x.shape, strict=True) if n > 1):
        if s < reach:
            return x.size > 0
        reach += (n - 1) * s
    return False


def _extent(x) -> tuple[int, int]:
    spans = [(n - 1) * s for n, s in zip(x.shape, x.strides, strict=True)]
    at = _cuda.address_of(x)
    return at + sum(s for s in spans if s < 0), at + sum(s for s in spans if s > 0) + x.dtype.itemsize


def transposed(x, axes):
    """A view of x with its dimensions in another order."""
    return strided(x, [x.shape[a] for a in axes], [x.strides[a] for a in axes])


def one_step(sizes, strides) -> int | None:
    """The stride that goes through all elements of some axes in C order, or None."""
    left = [(n, s) for n, s in zip(sizes, strides, strict=True) if n != 1]
    for (_, outer), (n, inner) in pairwise(left):
        if outer != n * inner:
            return None
    return left[-1][1] if left else 0

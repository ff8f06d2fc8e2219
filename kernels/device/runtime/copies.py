"""Kernels that move elements: copies between any strides, of one value, and of rows by their numbers."""

from __future__ import annotations

from functools import lru_cache

from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import cuda

__all__ = ["copy_kernel", "examples", "fill_kernel", "grid", "merged", "rows_kernel", "run"]


def grid(count: int) -> tuple[int, int]:
    """Blocks and threads for a loop over so many elements; the simulator's threads are slow to start."""
    return (1, 2) if _cuda.SIMULATOR else (min(-(-count // _cuda.THREADS), 2**31 - 1), _cuda.THREADS)


def run(kernel, count: int, *arguments) -> None:
    """Launch a kernel that loops over so many elements, if there are any."""
    if count:
        _cuda.launch(kernel, *grid(count), *arguments)


@lru_cache(maxsize=16)
def copy_kernel(rank: int):
    """The kernel ``(source, target, count, sizes, from_strides, to_strides, from_start, to_start)``.

    sizes and strides, in elements: tuples of ``rank`` integers.
    """

    @cuda.jit
    def kernel(source, target, count, sizes, from_strides, to_strides, from_start, to_start):
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            rest, at, to = i, from_start, to_start
            for k in range(rank):
                axis = rank - 1 - k
                above = rest // sizes[axis]
                place = rest - above * sizes[axis]
                at += place * from_strides[axis]
                to += place * to_strides[axis]
                rest = above
            target[to] = source[at]

    return kernel


@lru_cache(maxsize=2)
def fill_kernel():
    """The kernel ``(target, count, value)``."""

    @cuda.jit
    def kernel(target, count, value):
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            target[i] = value

    return kernel


@lru_cache(maxsize=4)
def rows_kernel(scatter: bool):
    """The kernel ``(source, target, rows, width, count)``: rows of so many elements, by their numbers in one of both.

    Row i of target is row rows[i] of source, or with scatter row rows[i] of target is row i of source.
    """

    @cuda.jit
    def kernel(source, target, rows, width, count):
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            row = i // width
            column = i - row * width
            if scatter:
                target[rows[row] * width + column] = source[i]
            else:
                target[i] = source[rows[row] * width + column]

    return kernel


def merged(shape, first, second) -> list[tuple[int, int, int]]:
    """(size, stride, stride) of each dimension; those that run on in both arrays are one, those of one element none."""
    found: list[tuple[int, int, int]] = []
    for n, a, b in zip(shape, first, second, strict=True):
        if n == 1:
            continue
        if found and found[-1][1] == n * a and found[-1][2] == n * b:
            found[-1] = (found[-1][0] * n, a, b)
        else:
            found.append((n, a, b))
    return found or [(1, 1, 1)]


def examples():
    """(name, kernel, types of its arguments) of some kernels."""
    from numba import types

    i64 = types.int64
    flat = types.Array(types.uint32, 1, "C")
    for rank in (1, 6):
        sizes = types.UniTuple(i64, rank)
        yield f"copy of {rank}", copy_kernel(rank), (flat, flat, i64, sizes, sizes, sizes, i64, i64)
    yield "fill", fill_kernel(), (flat, i64, types.uint32)
    for scatter in (False, True):
        yield f"rows {scatter}", rows_kernel(scatter), (flat, flat, types.Array(i64, 1, "C"), i64, i64)

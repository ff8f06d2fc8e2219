"""Loops over elements, and copies of them between any strides."""

from __future__ import annotations

from functools import lru_cache

from softnum.kernels.device import _cuda
from softnum.kernels.device._cuda import cuda

__all__ = ["copy_kernel", "grid", "merged", "run"]


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

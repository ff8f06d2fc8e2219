"""Tiles of a and b in shared memory: which thread of a block reads which elements, whatever the layout."""

from __future__ import annotations

import numpy as np

from softnum.kernels.device.products.layouts import loader
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import cuda

__all__ = ["ALIGNMENT", "BLOCK", "SIDE", "stager"]

SIDE, BLOCK = 4, 16  # of a thread's block of outputs: as in csrc/softnum/word/vectors.h
ALIGNMENT = None if _cuda.SIMULATOR else 16  # of shared arrays that are read by four elements
_STRIDED = ("rows", "columns", "matrix")


def stager(layout: str, kind: str, of_a: bool, tile: int, depth: int, threads: int, put, clear, period: int = 0):
    """The device function that fills a tile, `depth` long in k and `tile` wide, rows of it tile + 4 apart.

    Parameters
    ----------
    layout, kind : str
        Of the operand, and the type of its elements.
    of_a : bool
        Whether it is a, whose rows are the products', or b, whose columns are.
    put, clear : device functions
        ``put(one, two, marks, at, r, x)`` puts element x at a place of the tile, which is that of row or column r of
        it; ``clear(one, two, at)`` is for places outside the matrix.
    period : int
        Of the order of k; 0 for none.

    Returns
    -------
    device function
        ``stage(flat, geometry, order, batch, first, left, start, length, one, two, marks)``: first is the row or
        column of the tile's first, left how many there are from there on, start its first k of length.
    """
    load = loader(layout, kind)
    # matrices of two strides are indexed here, without a look at their geometry for each element
    strided, by_k = layout in _STRIDED, of_a and layout == "rows"
    by_n = not of_a and layout == "rows"
    stride = tile + 4
    # threads next to each other read elements next to each other: a's along k, b's along n
    wide = min(depth if of_a else tile, threads)
    lanes = threads // wide
    long, short = (depth, tile) if of_a else (tile, depth)  # along the neighbours, and across
    times, moves = -(-long // wide), -(-short // lanes)
    exact = threads % wide == short % lanes == long % wide == 0

    @cuda.jit(device=True)
    def stage_a(flat, geometry, order, batch, first, left, start, length, one, two, marks):
        thread = cuda.threadIdx.x
        t0, r0 = thread % wide, thread // wide
        base = row_step = k_step = 0
        if strided:
            base = geometry[2 + batch] + (first + r0) * geometry[0]
            row_step, k_step = geometry[0] * lanes, geometry[1]
        for j in range(times):
            t = t0 + j * wide
            k = start + t
            if period > 0:
                k = k // period * period + order[k % period]
            for i in range(moves):
                r = r0 + i * lanes
                if exact or (r < tile and t < depth and r0 < lanes):
                    at = np.uint32(t * stride + r)
                    if r < left and k < length:
                        if strided:
                            x = flat[np.uint64(base + i * row_step + (k if by_k else k * k_step))]
                        else:
                            x = load(flat, geometry, batch, first + r, k)
                        put(one, two, marks, at, r, x)
                    else:
                        clear(one, two, at)

    @cuda.jit(device=True)
    def stage_b(flat, geometry, order, batch, first, left, start, length, one, two, marks):
        thread = cuda.threadIdx.x
        t0, r0 = thread // wide, thread % wide
        base = row_step = k_step = 0
        if strided:
            base = geometry[2 + batch] + (first + r0) * (1 if by_n else geometry[1])
            k_step, row_step = geometry[0], wide if by_n else geometry[1] * wide
        for j in range(times):
            r = r0 + j * wide
            for i in range(moves):
                t = t0 + i * lanes
                k = start + t
                if period > 0:
                    k = k // period * period + order[k % period]
                if exact or (r < tile and t < depth and t0 < lanes):
                    at = np.uint32(t * stride + r)
                    if r < left and k < length:
                        if strided:
                            x = flat[np.uint64(base + k * k_step + j * row_step)]
                        else:
                            x = load(flat, geometry, batch, k, first + r)
                        put(one, two, marks, at, r, x)
                    else:
                        clear(one, two, at)

    return stage_a if of_a else stage_b

"""Tiles of matrices that have a scale each: their largest magnitudes, and sums of products scaled and added."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from softnum.formats.names import format
from softnum.kernels.device.elementwise.maps import HEADER
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import cuda
from softnum.kernels.device.runtime.copies import run
from softnum.kernels.device.runtime.movement import DeviceArray, empty, filled
from softnum.kernels.device.runtime.source import Entry, Library
from softnum.runtime import _core

__all__ = ["Scales", "add_scaled", "examples", "magnitudes", "moments"]

_LANES = 8  # threads that read neighbours, 32 bytes of them
_PIECE, _WIDEST = 1024, 256  # elements of a tile that so many threads read; columns of them


# ---- the largest magnitudes ------------------------------------------------------------------------------------------
@lru_cache(maxsize=2)
def magnitude_kernel():
    """The kernel ``(x, found, count, lanes, matrix, tile, tiles, piece, pieces)``: patterns of magnitudes, as integers.

    matrix, tile, piece: rows and columns; tiles: how many there are in a matrix, down and across; pieces: in a tile. A
    thread reads every ``lanes``-th column of a piece. found: 0 before.
    """

    @cuda.jit
    def kernel(x, found, count, lanes, matrix, tile, tiles, piece, pieces):
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            rest = i // lanes
            lane = i - rest * lanes
            above = rest // pieces[1]
            across = rest - above * pieces[1]
            rest = above // tiles[1]
            left = above - rest * tiles[1]
            above = rest // pieces[0]
            down = rest - above * pieces[0]
            number = above // tiles[0]
            top = above - number * tiles[0]
            row = top * tile[0] + down * piece[0]
            column = left * tile[1] + across * piece[1]
            last = min(row + piece[0], (top + 1) * tile[0], matrix[0])
            end = min(column + piece[1], (left + 1) * tile[1], matrix[1])
            largest = np.uint32(0)
            for r in range(row, last):
                start = (number * matrix[0] + r) * matrix[1]
                for c in range(start + column + lane, start + end, lanes):
                    largest = max(largest, x[c] & np.uint32(0x7FFFFFFF))
            at = above * tiles[1] + left
            if largest > found[at]:  # few of many threads need the atomic operation
                cuda.atomic.max(found, at, largest)

    return kernel


def magnitudes(x: DeviceArray, block: tuple[int | None, int | None]) -> DeviceArray:
    """The largest magnitude of each tile of matrices (..., rows, columns), 0 of none; a NaN if one is.

    block: rows and columns of a tile, None for all.
    """
    matrix = x.shape[-2:]
    tile = tuple(part or max(size, 1) for part, size in zip(block, matrix, strict=True))
    tiles = tuple(1 if part is None else -(-size // part) for part, size in zip(block, matrix, strict=True))
    width = min(tile[1], _WIDEST, max(matrix[1], 1))
    piece = min(tile[0], max(1, _PIECE // width)), width
    pieces = tuple(-(-min(t, max(m, 1)) // p) for t, m, p in zip(tile, matrix, piece, strict=True))
    lanes = _LANES if width >= _LANES else 1
    found = filled((*x.shape[:-2], *tiles), np.uint32, 0)
    if x.size:
        count = found.size * prod(pieces) * lanes
        numbers = (_sizes(part) for part in (matrix, tile, tiles, piece, pieces))
        run(magnitude_kernel(), count, _cuda.bits(x.flat), found.flat, np.int64(count), np.int64(lanes), *numbers)
    return found.view(np.float32)


def _sizes(numbers) -> tuple:
    return tuple(map(np.int64, numbers))


# ---- sums of blocks --------------------------------------------------------------------------------------------------
_MOMENTS = (
    Entry("sum", "float64", (("float64", "sum"), ("float32", "x")), "return sn_add64(sum, sn_widen(x));"),
    Entry(
        "squares", "float64", (("float64", "sum"), ("float32", "x")),
        "return sn_add64(sum, sn_multiply64(sn_widen(x), sn_widen(x)));",
    ),
)  # fmt: skip


@lru_cache(maxsize=2)
def moment_kernel():
    """The kernel ``(x, sums, squares, count, columns, size, blocks)``: so many blocks of a row."""
    bound = _cuda.bind(Library("", _MOMENTS, HEADER))
    add, add_square = bound.sum, bound.squares

    @cuda.jit
    def kernel(x, sums, squares, count, columns, size, blocks):
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            row = i // blocks
            first = (i - row * blocks) * size
            total, square = np.float64(0), np.float64(0)
            for column in range(first, min(first + size, columns)):
                total = add(total, x[row * columns + column])
                square = add_square(square, x[row * columns + column])
            sums[i] = total
            squares[i] = square

    return kernel


def moments(x: DeviceArray, size: int) -> tuple[DeviceArray, DeviceArray]:
    """The sum of each ``size`` neighbours of a row of float32 numbers, and of their squares, from first to last, in
    binary64."""
    blocks = -(-x.shape[-1] // size)
    sums, squares = (empty((*x.shape[:-1], blocks), np.float64) for _ in range(2))
    sizes = map(np.int64, (sums.size, x.shape[-1], size, blocks))
    run(moment_kernel(), sums.size, x.flat, sums.flat, squares.flat, *sizes)
    return sums, squares


# ---- sums of products ------------------------------------------------------------------------------------------------
_STEPS = {
    "a": "sn_fma32(sn_multiply32(p, a), b, y)",
    "b": "sn_fma32(sn_multiply32(p, b), a, y)",
    "both": "sn_fma32(p, sn_multiply32(a, b), y)",
}


def _step(order: str, promoted: bool):
    """One sum, scaled and added: bits (p, a, b, y) to those of the next y; promoted: p is added to +0 first."""
    lines = [f"const float {name} = sn_float32({name}_bits);" for name in "aby"]
    lines.append(f"const float p = {'sn_add32(sn_float32(p_bits), 0.0f)' if promoted else 'sn_float32(p_bits)'};")
    nan = _core.format_facts(format("binary32"))["nan_code"]
    lines.append(f"const sn_u32 next = sn_bits32({_STEPS[order]});")
    lines.append(f"return (next & 0x7fffffffu) > 0x7f800000u ? {nan:#x}u : next;")
    arguments = tuple(("uint32", f"{name}_bits") for name in "paby")
    return _cuda.bind(Library("", (Entry("step", "uint32", arguments, "\n".join(lines)),), HEADER)).step


@lru_cache(maxsize=8)
def sum_kernel(order: str, promoted: bool):
    """The kernel ``(sums, a, b, y, count, blocks, begins, place, shape, of_a, of_b)``.

    sums: of each of the blocks, one after the other; place: where the first begins, and how long they are, along K;
    shape: rows and columns of a matrix; of_a, of_b: rows of a tile, its length along K, tiles along K, tiles of a
    matrix or 0; begins: whether y is to be taken for +0.
    """
    step = _step(order, promoted)

    @cuda.jit
    def kernel(sums, a, b, y, count, blocks, begins, place, shape, of_a, of_b):
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            row = i // shape[1]
            column = i - row * shape[1]
            matrix = row // shape[0]
            in_a = matrix * of_a[3] + (row - matrix * shape[0]) // of_a[0] * of_a[2]
            in_b = matrix * of_b[3] + column // of_b[0] * of_b[2]
            total = np.uint32(0) if begins else y[i]
            for block in range(blocks):
                k = place[0] + block * place[1]
                total = step(sums[block * count + i], a[in_a + k // of_a[1]], b[in_b + k // of_b[1]], total)
            y[i] = total

    return kernel


class Scales(NamedTuple):
    """An operand's scales (..., tiles of rows, tiles of K), of all matrices or of one for all, and a tile's sizes."""

    scales: DeviceArray
    rows: int
    length: int

    def numbers(self) -> tuple:
        """As `sum_kernel` takes them."""
        down, across = self.scales.shape[-2:]
        return _sizes((self.rows, self.length, across, down * across if self.scales.size > down * across else 0))


def add_scaled(
    y: DeviceArray, sums: DeviceArray, a: Scales, b: Scales, order: str, first: int, size: int, *, begins: bool,
    promoted: bool,
) -> None:  # fmt: skip
    """Scale sums of some blocks of K, and add them to y, one after the other, each operation rounded to binary32.

    Parameters
    ----------
    y : DeviceArray (..., M, N)
        Is written to.
    sums : DeviceArray (blocks, ..., M, N)
    a, b : Scales
    order : {"a", "b", "both"}
        fma(p * a, b, y), fma(p * b, a, y) or fma(p, a * b, y).
    first, size : int
        Where the first block begins along K, and how long blocks are.
    begins : bool
        Whether y holds nothing yet.
    promoted : bool
        Whether each sum is added to +0 first, of which -0 becomes +0.
    """
    arrays = (_cuda.bits(x.flat) for x in (sums, a.scales, b.scales, y))
    place, shape = _sizes((first, size)), _sizes(y.shape[-2:])
    counts = np.int64(y.size), np.int64(len(sums)), np.bool_(begins)
    run(sum_kernel(order, promoted), y.size, *arrays, *counts, place, shape, a.numbers(), b.numbers())


def examples():
    """Kernels for the link check: (name, kernel, types of its arguments)."""
    from numba import types

    i64, flat = types.int64, types.Array(types.uint32, 1, "C")
    pair, four = types.UniTuple(i64, 2), types.UniTuple(i64, 4)
    yield "magnitudes", magnitude_kernel(), (flat, flat, i64, i64, *[pair] * 5)
    single, double = (types.Array(kind, 1, "C") for kind in (types.float32, types.float64))
    yield "sums of blocks", moment_kernel(), (single, double, double, i64, i64, i64, i64)
    for order in _STEPS:
        kinds = (flat, flat, flat, flat, i64, i64, types.boolean, pair, pair, four, four)
        yield f"scaled sums {order}", sum_kernel(order, order == "a"), kinds

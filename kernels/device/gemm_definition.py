"""Any MadUnit of one lane without compensation, by the definition on codes: one thread to an output element."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softnum.kernels.device import _cuda
from softnum.kernels.device._cuda import cuda
from softnum.kernels.device.entries import shares_word, two_roundings, unit_library
from softnum.kernels.device.layouts import index_of, loader
from softnum.kernels.device.problem import Problem, stand_in, to_codes
from softnum.kernels.device.quantize import FROM_ARRAY, FROM_KEY, NO_WORDS
from softnum.units import MadUnit

__all__ = ["DefinitionEngine", "definition_kernel", "examples", "kernels_of", "may_fail"]

# side of a block's tile of outputs, a multiple of 4 (of the steps of a Philox counter)
TILE = 4 if _cuda.SIMULATOR else 16


@lru_cache(maxsize=256)
def definition_kernel(unit, carrier: str, words: int, has_c: bool, fails: bool, tile: int, layouts):
    """The kernel of one unit: the sum over k in order, tiles of a and b in shared memory.

    layouts: of a, b, c and out. The arguments are those of `Problem`: codes a, b and c and their geometries; counters;
    random words; the Philox keys of domains 1 and 2; out, bits of the carrier, and its geometry; status; batches, M, N
    and K.
    """
    f = _cuda.bind(unit_library(unit, carrier))
    step, step_invalid, outer_add, outer_invalid, value = f.step, f.step_invalid, f.outer, f.outer_invalid, f.value
    half0, half1, first_of, second_of = f.half0, f.half1, f.first, f.second
    second_key = two_roundings(unit) and not shares_word(unit)
    chunk = unit.chunk or 0
    type_a, type_b = (_cuda.scalar_type(o.storage_dtype) for o in unit.operand)
    formats = (*unit.operand, unit.c_format)
    load_a, load_b, load_c = (loader(x, f.storage_dtype.name) for x, f in zip(layouts, formats, strict=False))
    at_out = index_of(layouts[3])

    @cuda.jit
    def kernel(
        a, b, c, geometry_a, geometry_b, geometry_c, counters, random, key0, key1, key2, key3, out, geometry_out,
        status, batches, rows, columns, depth,
    ):  # fmt: skip
        tile_a = cuda.shared.array((tile, tile), type_a)
        tile_b = cuda.shared.array((tile, tile), type_b)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        across = (columns + tile - 1) // tile
        m = cuda.blockIdx.x // across * tile + y
        n = cuda.blockIdx.x % across * tile + x
        inside = m < rows and n < columns
        for batch in range(cuda.blockIdx.y, batches, cuda.gridDim.y):
            counter_m, counter_n, counter_batch = counters[batch, 0] + m, counters[batch, 1] + n, counters[batch, 2]
            outer = np.uint64(0)
            if has_c and inside:
                outer = np.uint64(load_c(c, geometry_c, batch, m, n))
            acc = np.uint64(0)
            if chunk == 0:
                acc = outer
            left = chunk
            reduction = depth
            bad = np.uint32(0)
            for start in range(0, depth, tile):
                if m < rows and start + x < depth:
                    tile_a[y, x] = load_a(a, geometry_a, batch, m, start + x)
                if start + y < depth and n < columns:
                    tile_b[y, x] = load_b(b, geometry_b, batch, start + y, n)
                cuda.syncthreads()
                if inside:
                    low = high = low2 = high2 = np.uint64(0)
                    for i in range(min(tile, depth - start)):
                        k = start + i
                        first = second = np.uint32(0)
                        if words == FROM_KEY:
                            if i % 4 == 0:
                                low = half0(k // 4, counter_n, counter_m, counter_batch, key0, key1)
                                high = half1(k // 4, counter_n, counter_m, counter_batch, key0, key1)
                                low2, high2 = low, high
                                if second_key:
                                    low2 = half0(k // 4, counter_n, counter_m, counter_batch, key2, key3)
                                    high2 = half1(k // 4, counter_n, counter_m, counter_batch, key2, key3)
                            first = first_of(low, high, k)
                            second = second_of(low2, high2, k)
                        elif words == FROM_ARRAY:
                            first = random[batch, m, n, k, 0]
                            second = random[batch, m, n, k, 1]
                        code_a, code_b = tile_a[y, i], tile_b[i, x]
                        if fails:
                            bad |= step_invalid(acc, code_a, code_b, first, second)
                        acc = step(acc, code_a, code_b, first, second)
                        if chunk > 0:
                            left -= 1
                            if left == 0 or k == depth - 1:
                                w = np.uint32(0)
                                if words == FROM_KEY:
                                    r0, r1 = key0, key1
                                    if second_key:
                                        r0, r1 = key2, key3
                                    w = second_of(
                                        half0(reduction // 4, counter_n, counter_m, counter_batch, r0, r1),
                                        half1(reduction // 4, counter_n, counter_m, counter_batch, r0, r1),
                                        reduction,
                                    )
                                elif words == FROM_ARRAY:
                                    w = random[batch, m, n, reduction, 1]
                                if fails:
                                    bad |= outer_invalid(outer, acc, w)
                                outer = outer_add(outer, acc, w)
                                acc = np.uint64(0)
                                left = chunk
                                reduction += 1
                cuda.syncthreads()
            if inside:
                out[at_out(geometry_out, batch, m, n)] = value(outer if chunk > 0 else acc)
                for i in range(3):
                    if bad >> np.uint32(i) & np.uint32(1):
                        status[i] = 1

    return kernel


def may_fail(unit) -> bool:
    """Whether a sum can meet a NaN or an infinity that one of the unit's formats has no code for."""
    formats = [f for f in (unit.product, unit.accumulator, unit.outer) if f is not None]
    special = any(f.has_nan or getattr(f, "infinities", False) for f in (*unit.operand, *formats))
    return special and not all(f.has_nan for f in formats)


class DefinitionEngine:
    """Computes any problem of a unit of one lane without compensation, in the unit's own formats."""

    def __init__(self, unit) -> None:
        self.unit = unit

    @staticmethod
    def kernels_of(unit):
        return kernels_of(unit)

    def run(self, problem: Problem) -> None:
        p, unit = problem, self.unit
        a, b = to_codes(p.a, unit.operand[0]), to_codes(p.b, unit.operand[1])
        c = stand_in(unit.c_format.storage_dtype) if p.c is None else to_codes(p.c, unit.c_format)
        kernel = definition_kernel(
            unit, p.out.flat.dtype.name, p.words, p.c is not None, may_fail(unit), TILE,
            (a.layout, b.layout, c.layout, p.out.layout),
        )  # fmt: skip
        grid = (-(-p.m // TILE) * -(-p.n // TILE), min(p.batches, _cuda.MAX_GRID_Y))
        _cuda.launch(
            kernel, grid, (TILE, TILE), a.flat, b.flat, c.flat, a.geometry, b.geometry, c.geometry, p.counters,
            p.random, *(np.uint32(v) for v in p.keys), _cuda.bits(p.out.flat), p.out.geometry, p.status, p.batches,
            p.m, p.n, p.k,
        )  # fmt: skip


def kernels_of(unit):
    """(name, kernel, types of its arguments) of what computes float32 matrices without c, words from a key."""
    words = FROM_KEY if unit.stochastic else NO_WORDS
    kernel = definition_kernel(unit, "float32", words, False, may_fail(unit), 16, ("rows", "rows", "matrix", "rows"))
    yield f"definition {unit}", kernel, _types(unit.operand, unit.c_format)


def examples():
    """`kernels_of` representative units, which are linked without a GPU."""
    for unit in (
        MadUnit("e6m9", operand="e5m2", chunk=64),
        MadUnit("e6m9", operand="e5m2", product="e5m2", rounding="stochastic", stochastic_bits=12),
    ):
        yield from kernels_of(unit)


def _types(operands, c_format):
    """Numba's types of the kernel's arguments, for float32 results."""
    from numba import types

    def array(kind, dimensions=1):
        return types.Array(kind, dimensions, "C")

    codes = [array(_cuda.scalar_type(f.storage_dtype)) for f in (*operands, c_format)]
    numbers, u32, i64 = array(types.int64), types.uint32, types.int64
    return (
        *codes, numbers, numbers, numbers, array(i64, 2), array(u32, 5), u32, u32, u32, u32, array(u32), numbers,
        array(u32), i64, i64, i64, i64,
    )  # fmt: skip

"""Fused dot-product units and chains of fused multiply-adds on CUDA arrays.

Units in the domain of device/fused_steps.h: a tile of a and b in shared memory, values and exponents, and a block
of 4 x 4 outputs to a thread. An output that leaves the domain is computed again by the definition, in a second kernel.
All other units: by the definition on codes, one thread to an output.
"""

# Instructions a product of the machine code for sm_90 (a tile's loads, its steps and their roundings), and what 132
# multiprocessors at 1.98 GHz (H100 SXM, H200) issue of them at most, 4 x 32 lanes a clock. Conversions to integers, one
# a product and two a step, would limit at 16 lanes a clock. Predicted, not measured.
#
#   unit                   instructions a product   by issue      by conversions
#   nvidia_v100_fp16       10.5                     3.2 TMAC/s    2.8
#   nvidia_a100_bf16        8.8                     3.8           3.3
#   nvidia_h100_fp16        7.7                     4.3           3.7
#   nvidia_h100_e4m3_mma    8.8                     3.8           3.5

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softnum.formats.facts import fits
from softnum.kernels.device.products.entries import operand_library
from softnum.kernels.device.products.fused_text import STATE, chain_library, fast_library, fused_library
from softnum.kernels.device.products.layouts import index_of, loader
from softnum.kernels.device.products.problem import Problem, all_values, stand_in, to_codes
from softnum.kernels.device.products.tiles import ALIGNMENT, BLOCK, SIDE, stager
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import cuda, ffi
from softnum.mac.fused import FmaChainUnit, FusedDotUnit
from softnum.mac.presets import unit as preset
from softnum.mac.products.engines import fast_of

__all__ = ["ChainEngine", "FusedEngine", "definition_kernel", "examples", "fast_kernel", "kernels_of", "tile_of"]

# outputs of a block of the definition, a side
TILE = 4 if _cuda.SIMULATOR else 16


def tile_of(unit, simulated: bool = _cuda.SIMULATOR) -> tuple[int, int]:
    """(side of a block's tile of outputs, its depth: whole steps), as shared memory has room for."""
    depth = unit.terms * max(1, 16 // unit.terms)
    if simulated:
        return 2 * SIDE, depth
    return (64 if depth <= 32 else 32 if depth <= 64 else 16), depth


@_cuda.kept
def _order(k_order: tuple[int, ...] | None):
    """The order of k in a period, on the device."""
    return _cuda.to_device(np.array(k_order or range(1), np.int32))


def _putters(exponent):
    """The device functions ``put`` and ``clear`` of `stager`: values, and their exponents."""

    @cuda.jit(device=True)
    def put(values, exponents, marks, at, r, x):
        value = np.float32(x)  # exact: a value of the operand's format
        values[at] = value
        exponents[at] = exponent(value)

    @cuda.jit(device=True)
    def clear(values, exponents, at):
        values[at] = np.float32(0)
        exponents[at] = exponent(np.float32(0))

    return put, clear


@lru_cache(maxsize=256)
def fast_kernel(unit, layouts, types, has_c: bool, tile: int, depth_of_tile: int):
    """The kernel of a unit with a fast path; layouts and types: of a, b and c; out: floats in layouts[3].

    Its arguments: a, b, c and their geometries; the order of k; out and its geometry; left, uint32, a bit for each
    output of each thread: those that the definition must compute; batches, M, N, K.
    """
    stride = tile + 4
    f = _cuda.bind(fast_library(unit, stride))
    begin, steps, finish = f.begin, f.steps, f.finish
    load_c, at_out = loader(layouts[2], types[2]), index_of(layouts[3])
    across, block, side = tile // SIDE, BLOCK, SIDE
    threads, room = across * across, stride * depth_of_tile
    period, after = unit.period, unit.c == "after"
    shape, order_of = (tile, depth_of_tile, threads), period if unit.k_order else 0
    stage_a = stager(layouts[0], types[0], True, *shape, *_putters(f.exponent_a), order_of)
    stage_b = stager(layouts[1], types[1], False, *shape, *_putters(f.exponent_b), order_of)
    everything = np.uint32((1 << BLOCK) - 1)
    alignment = ALIGNMENT

    @_cuda.jit_for(threads, 512 // max(threads, 32))
    def kernel(
        a, b, c, geometry_a, geometry_b, geometry_c, order, out, geometry_out, left, batches, rows, columns, depth
    ):
        values_a = cuda.shared.array(room, np.float32, alignment)
        values_b = cuda.shared.array(room, np.float32, alignment)
        exponents_a = cuda.shared.array(room, np.int32, alignment)
        exponents_b = cuda.shared.array(room, np.int32, alignment)
        sums = cuda.local.array(block, np.float32)
        addends = cuda.local.array(block, np.float32)  # C that is added after
        thread = cuda.threadIdx.x
        blocks_across = (columns + tile - 1) // tile
        m0, n0 = cuda.blockIdx.x // blocks_across * tile, cuda.blockIdx.x % blocks_across * tile
        row, column = thread // across * side, thread % across * side
        length = (depth + period - 1) // period * period
        for batch in range(cuda.blockIdx.y, batches, cuda.gridDim.y):
            for i in range(block):
                x = np.float32(0)
                if has_c:
                    m, n = m0 + row + i // side, n0 + column + i % side
                    if m < rows and n < columns:
                        x = np.float32(load_c(c, geometry_c, batch, m, n))
                sums[i] = np.float32(0) if after else x
                addends[i] = x
            begin(ffi.from_buffer(sums))
            for start in range(0, length, depth_of_tile):
                stage_a(a, geometry_a, order, batch, m0, rows - m0, start, depth, values_a, exponents_a, exponents_a)
                stage_b(b, geometry_b, order, batch, n0, columns - n0, start, depth, values_b, exponents_b, exponents_b)
                cuda.syncthreads()
                steps(
                    ffi.from_buffer(values_a), ffi.from_buffer(exponents_a), ffi.from_buffer(values_b),
                    ffi.from_buffer(exponents_b), row, column, min(depth_of_tile, length - start),
                    ffi.from_buffer(sums),
                )  # fmt: skip
                cuda.syncthreads()
            marked = finish(ffi.from_buffer(sums), ffi.from_buffer(addends))
            if after and depth == 0:  # C itself
                marked = everything
            for i in range(block):
                m, n = m0 + row + i // side, n0 + column + i % side
                if m < rows and n < columns and (marked >> np.uint32(i)) & np.uint32(1) == 0:
                    out[at_out(geometry_out, batch, m, n)] = sums[i]
            left[(batch * cuda.gridDim.x + cuda.blockIdx.x) * threads + thread] = marked

    return kernel


@lru_cache(maxsize=256)
def _coder(fmt, carrier: str | None):
    """A device function from what an operand holds to its code: of a carrier's bits, or None for a code already."""
    if carrier is not None:
        return _cuda.bind(operand_library(fmt, carrier)).code

    @cuda.jit(device=True)
    def same(x):
        return np.uint64(x)

    return same


def _fused_element(unit, carrier, layouts, types, carriers):
    """The device function ``(a, b, geometries, order, sum, batch, m, n, depth)``: (code, formats that had no code)."""
    f = _cuda.bind(fused_library(unit, carrier))
    reset, begin, note, align, add, rounded = f.reset, f.begin, f.note, f.align, f.add, f.round
    after, convert, lost = f.after, f.convert, f.lost
    load_a, load_b = (loader(*x) for x in zip(layouts[:2], types[:2], strict=True))
    code_a, code_b = (_coder(*x) for x in zip(unit.operand, carriers[:2], strict=True))
    ordered, period, terms, words = unit.k_order is not None, unit.period, unit.terms, STATE
    c_after, same_output = unit.c == "after", unit.result == unit.accumulator

    @cuda.jit(device=True)
    def element(a, b, geometry_a, geometry_b, order, c, batch, m, n, depth):
        state = cuda.local.array(words, np.uint64)
        reset(ffi.from_buffer(state))
        length = (depth + period - 1) // period * period
        code = c
        if c_after and depth > 0:
            code = np.uint64(0)
        for first in range(0, length, terms):
            begin(ffi.from_buffer(state), code)
            for phase in range(2):
                if phase == 1 and align(ffi.from_buffer(state)) == 0:
                    break
                for t in range(terms):
                    k = first + t
                    if ordered:
                        k = k // period * period + order[k % period]
                    if k < depth:
                        x = code_a(load_a(a, geometry_a, batch, m, k))
                        y = code_b(load_b(b, geometry_b, batch, k, n))
                        if phase == 0:
                            note(ffi.from_buffer(state), x, y)
                        else:
                            add(ffi.from_buffer(state), x, y)
            last = np.uint32(1) if first + terms >= length and not c_after else np.uint32(0)
            code = rounded(ffi.from_buffer(state), last)
        if depth == 0 and not c_after and not same_output:
            code = convert(ffi.from_buffer(state), code)
        if depth > 0 and c_after:
            code = after(ffi.from_buffer(state), code, c)
        return code, lost(ffi.from_buffer(state))

    return element, f.value


def _chain_element(unit, carrier, layouts, types, carriers):
    """The same of a chain of fused multiply-adds."""
    f = _cuda.bind(chain_library(unit, carrier))
    step, step_lost = f.step, f.step_lost
    load_a, load_b = (loader(*x) for x in zip(layouts[:2], types[:2], strict=True))
    code_a, code_b = (_coder(*x) for x in zip(unit.operand, carriers[:2], strict=True))
    ordered, period, fails = unit.k_order is not None, unit.period, not unit.accumulator.has_nan

    @cuda.jit(device=True)
    def element(a, b, geometry_a, geometry_b, order, c, batch, m, n, depth):
        code, lost = c, np.uint32(0)
        for position in range((depth + period - 1) // period * period):
            k = position
            if ordered:
                k = k // period * period + order[k % period]
            x = y = np.uint64(0)  # what the last period is filled up with
            if k < depth:
                x = code_a(load_a(a, geometry_a, batch, m, k))
                y = code_b(load_b(b, geometry_b, batch, k, n))
            if fails:
                lost |= step_lost(code, x, y)
            code = step(code, x, y)
        return code, lost

    return element, f.value


@lru_cache(maxsize=256)
def definition_kernel(unit, carrier: str, layouts, types, carriers, has_c: bool, marked: tuple[int, int] | None):
    """The definition's kernel; layouts: of a, b, c and out; types: of a, b and c; carriers: theirs, or None for codes.

    marked: None, or the tile and depth of the `fast_kernel` whose outputs it completes. The arguments: a, b, c and
    their geometries; the order of k; out, bits of the carrier, and its geometry; left, as fast_kernel has it; status;
    batches, M, N, K.
    """
    make = _fused_element if isinstance(unit, FusedDotUnit) else _chain_element
    element, value = make(unit, carrier, layouts, types, carriers)
    load_c, code_c = loader(layouts[2], types[2]), _coder(unit.c_format, carriers[2])
    at_out = index_of(layouts[3])
    tile, side, kinds = TILE, SIDE, len(unit.rounded_to)
    fast_tile = marked[0] if marked else 0
    across = fast_tile // SIDE
    threads = across * across

    @cuda.jit
    def kernel(
        a, b, c, geometry_a, geometry_b, geometry_c, order, out, geometry_out, left, status, batches, rows, columns,
        depth,
    ):  # fmt: skip
        blocks_across = (columns + tile - 1) // tile
        m = cuda.blockIdx.x // blocks_across * tile + cuda.threadIdx.y
        n = cuda.blockIdx.x % blocks_across * tile + cuda.threadIdx.x
        if m < rows and n < columns:
            for batch in range(cuda.blockIdx.y, batches, cuda.gridDim.y):
                wanted = np.uint32(1)
                if fast_tile > 0:
                    tiles_across = (columns + fast_tile - 1) // fast_tile
                    tiles = tiles_across * ((rows + fast_tile - 1) // fast_tile)
                    y, x = m % fast_tile, n % fast_tile
                    at = (batch * tiles + m // fast_tile * tiles_across + n // fast_tile) * threads
                    bit = np.uint32(y % side * side + x % side)
                    wanted = (left[at + y // side * across + x // side] >> bit) & np.uint32(1)
                if wanted != 0:
                    start = np.uint64(0)
                    if has_c:
                        start = np.uint64(code_c(load_c(c, geometry_c, batch, m, n)))
                    code, lost = element(a, b, geometry_a, geometry_b, order, start, batch, m, n, depth)
                    out[at_out(geometry_out, batch, m, n)] = value(code)
                    for i in range(kinds):
                        if (lost >> np.uint32(i)) & np.uint32(1) != 0:
                            status[i] = 1

    return kernel


def _names(arrays) -> tuple[str, ...]:
    return tuple(x.dtype.name for x in arrays)


def _launch_definition(kernel, problem: Problem, arrays, operands, left) -> None:
    p = problem
    grid = (-(-p.m // TILE) * -(-p.n // TILE), min(p.batches, _cuda.MAX_GRID_Y))
    _cuda.launch(
        kernel, grid, (TILE, TILE), *arrays, *(x.geometry for x in operands), _order(p.unit.k_order),
        _cuda.bits(p.out.flat), p.out.geometry, left, p.status, p.batches, p.m, p.n, p.k,
    )  # fmt: skip


def _by_definition(problem: Problem) -> None:
    p, unit = problem, problem.unit
    a, b = to_codes(p.a, unit.operand[0]), to_codes(p.b, unit.operand[1])
    c = stand_in(unit.c_format.storage_dtype) if p.c is None else to_codes(p.c, unit.c_format)
    operands = a, b, c
    arrays = [x.flat for x in operands]
    kernel = definition_kernel(
        unit, p.out.flat.dtype.name, p.layouts(operands), _names(arrays), (None, None, None), p.c is not None, None
    )
    _launch_definition(kernel, p, arrays, operands, _cuda.filled(1, np.uint32, 0))


class ChainEngine:
    """Computes chains of fused multiply-adds."""

    def __init__(self, unit: FmaChainUnit) -> None:
        self.unit = unit

    tells = False

    @staticmethod
    def kernels_of(unit):
        return kernels_of(unit)

    def run(self, problem: Problem) -> None:
        _by_definition(problem)


class FusedEngine:
    """Computes fused dot products: in blocks of binary32 where that is a fast path, else by the definition."""

    def __init__(self, unit: FusedDotUnit) -> None:
        self.unit = unit
        self.ways = {}  # what of a problem decides -> its two kernels

    tells = False

    @staticmethod
    def kernels_of(unit):
        return kernels_of(unit)

    def run(self, problem: Problem) -> None:
        p, unit = problem, self.unit
        if fast_of(unit) is None:
            _by_definition(p)
            return
        operands = [x for x, _ in all_values(p.given, "float32", sizes=False)]
        operands += [] if p.c else [stand_in(np.float32)]
        tile, depth = tile_of(unit)
        across = tile // SIDE
        blocks = -(-p.m // tile) * -(-p.n // tile)
        left = _cuda.empty(blocks * p.batches * across * across, np.uint32)
        arrays = [x.flat for x in operands]
        patterns = [_cuda.bits(x) for x in arrays]
        decides = p.layouts(operands), *(x.dtype for x in arrays), p.out.flat.dtype, p.c is None
        if decides not in self.ways:
            names, out, has_c = _names(arrays), p.out.flat.dtype.name, p.c is not None
            self.ways[decides] = (
                fast_kernel(unit, decides[0], names, has_c, tile, depth),
                definition_kernel(unit, out, decides[0], _names(patterns), names, has_c, (tile, depth)),
            )
        fast, definition = self.ways[decides]
        _cuda.launch(
            fast, (blocks, min(p.batches, _cuda.MAX_GRID_Y)), across * across, *arrays,
            *(x.geometry for x in operands), _order(unit.k_order), p.out.flat, p.out.geometry, left, p.batches, p.m,
            p.n, p.k,
        )  # fmt: skip
        _launch_definition(definition, p, patterns, operands, left)


def kernels_of(unit):
    """(name, kernel, types of its arguments[, fast]) of what computes float32 matrices without c."""
    from numba import types

    def array(kind):
        return types.Array(kind, 1, "C")

    f32, u32, i32, i64 = types.float32, types.uint32, types.int32, types.int64
    layouts, geometries, sizes = ("rows", "rows", "matrix", "rows"), (array(i64),) * 3, (i64,) * 4
    marked = None
    carrier = "float32" if fits(unit.result, np.float32) else "float64"
    if isinstance(unit, FusedDotUnit) and fast_of(unit) is not None:
        marked = tile_of(unit, simulated=False)
        kernel = fast_kernel(unit, layouts, ("float32",) * 3, False, *marked)
        floats = (array(f32),) * 3
        yield (
            f"fused {unit}",
            kernel,
            (*floats, *geometries, array(i32), array(f32), array(i64), array(u32), *sizes),
            True,
        )
    names = tuple("uint32" if marked else f.storage_dtype.name for f in (*unit.operand, unit.c_format))
    carriers = ("float32",) * 3 if marked else (None,) * 3
    kernel = definition_kernel(unit, carrier, layouts, names, carriers, False, marked)
    operands = tuple(array(_cuda.scalar_type(name)) for name in names)
    bits = array(_cuda.scalar_type(carrier.replace("float", "uint")))
    yield (
        f"definition {unit}", kernel,
        (*operands, *geometries, array(i32), bits, array(i64), array(u32), array(u32), *sizes),
    )  # fmt: skip


def examples():
    """`kernels_of` representative units, which are linked without a GPU."""
    for name in ("nvidia_v100_fp16", "nvidia_h100_fp16", "nvidia_h100_e4m3_mma", "nvidia_a100_bf16", "x86_avx512_bf16"):
        yield from kernels_of(preset(name))
    yield from kernels_of(FusedDotUnit(3, 30, "binary32", operand="binary16", output="binary16"))

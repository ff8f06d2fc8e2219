"""Products of MadUnits that have a fast path: blocks of results in registers, tiles of a and b in shared memory.

Every thread has some results of a block; what it computes them by is C (steps.py). Order and rounding of a sum are the
unit's, whatever the block: k runs in order, and the last, ragged part of it takes no more steps than there are.

Instructions of a step in the machine code for sm_90 (nvdisasm), with their share of loads and loops: all of them, of
which 4 x 32 lanes begin in a cycle; those of the integer and comparison pipe (64 lanes); multiplications of integers
(64). The limit that follows for an H200 (132 multiprocessors, 1.98 GHz), in TMAC/s: a prediction, not a measurement.

    unit                                       level    block  registers   all  integer  imad  limit
    binary32 (a plain float32 product)         full     8 x 8        158   1.6      0.2   0.1   20
    e5m2, product e5m2 -> e6m9                 full     8 x 4         96  18.9     10.3   0.2    1.6
                                               signed   8 x 8        195  12.6      6.2   0.1    2.7
                                               bare     8 x 8        193   9.6      3.2   0.1    3.5
    e5m2 -> e6m9                               full     8 x 4         95   9.8      5.3   0.2    3.2
                                               signed   8 x 8        162   6.6      3.2   0.1    5.1
                                               bare     8 x 8        165   4.5      1.2   0.1    7.4
    e5m2 -> e6m9, stochastic, r = 12           full     4 x 4        168  22.6     10.8   6.1    1.5
                                               tested   4 x 4        168  17.6      7.8   6.1    1.9
                                               bare     4 x 4        170  14.6      6.8   6.1    2.3
    e5m2, product e5m2 -> e6m9, stochastic     full     4 x 4        171  36.1     17.8   7.1    0.9
                                               tested   4 x 4        168  31.1     14.8   7.1    1.1
                                               bare     4 x 4        167  25.1     12.8   7.1    1.3
    e5m2 -> e6m9, stochastic, r = 32           full     4 x 2        164  26        9     7      1.3
    e5m2, product e5m2 -> e6m9, r = 20         full     4 x 2        254  56       24    16      0.6
    the product alone stochastic, r = 12       full     4 x 2        166  45       21     9      0.7
    e5m2 -> e6m9, to odd                       full     8 x 4        154  23.1     17.5   0.2    1.0
    q4.4 -> q8.8                               careful  4 x 4         96  14.2      8.5   4.2    2.0
                                               plain    8 x 8        167   1.6      0.2   1.1   15
    q3.3 -> q6.4                               full     8 x 4        108   5.9      2.3   0.2    5.7
    binary32 -> e10m40 (7 in binary64)         full     4 x 4        104  20.5     11.4   0.3    1.5
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softnum.formats.facts import fits
from softnum.kernels.device.products.layouts import along_rows, index_of, loader
from softnum.kernels.device.products.mad.fast_entries import Block, steps_library
from softnum.kernels.device.products.mad.steps import Steps, steps_of
from softnum.kernels.device.products.problem import Operand, Problem, Seen, all_values, stand_in
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import cuda, ffi
from softnum.mac.mad import MadUnit
from softnum.mac.products.engines import fast_of

__all__ = ["BlocksEngine", "block_of", "blocks_kernel", "examples", "kernels_of", "takes"]

_ALIGNMENT = None if _cuda.SIMULATOR else 16
_MOST_WAYS = 1000
_ENOUGH_BLOCKS = 128  # about as many as a large GPU has multiprocessors


def _mover(entries, block: Block, of_a: bool, layout: str, given: str, four: bool, kind):
    """(how many elements of a tile of a, or of b, a thread moves; the device functions ``bring`` and ``put``).

    ``bring(flat, geometry, batch, first, extent, k, depth, mine)`` takes them to a thread's own array, zeros from
    outside the matrix: first is the row or column of the tile's first of extent, k its first of depth.
    ``put(mine, tile, at)`` takes them on to shared memory, to a tile that begins at a place.
    """
    load, index, zero = loader(layout, given), index_of(layout), kind(0)
    enter, fetch = (entries.enter_a, entries.fetch_a) if of_a else (entries.enter_b, entries.fetch_b)
    wide, pitch = (block.m, block.pitch_a) if of_a else (block.n, block.pitch_b)
    depth_of_tile, threads, width = block.depth, block.threads, 4 if four else 1
    # neighbouring threads load neighbours in memory: across k (rows of a, columns of b), or along it
    across = along_rows(layout) == of_a
    groups = (wide if across else depth_of_tile) // width
    moves, next_in_tile = -(-wide * depth_of_tile // threads // width), 1 if across else pitch

    @cuda.jit(device=True)
    def place(number):
        if across:
            return number % groups * width, number // groups
        return number // groups, number % groups * width

    @cuda.jit(device=True)
    def bring(flat, geometry, batch, first, extent, k0, depth, mine):
        for i in range(moves):
            r, k = place(cuda.threadIdx.x + i * threads)
            inside = k < depth_of_tile and r < wide and first + r < extent and k0 + k < depth
            row, column = (first + r, k0 + k) if of_a else (k0 + k, first + r)
            for j in range(width):
                mine[i * width + j] = zero
            if inside and width == 4:
                fetch(ffi.from_buffer(flat), index(geometry, batch, row, column), ffi.from_buffer(mine), i * 4)
            elif inside:
                mine[i] = enter(load(flat, geometry, batch, row, column))

    @cuda.jit(device=True)
    def put(mine, tile, at):
        for i in range(moves):
            r, k = place(cuda.threadIdx.x + i * threads)
            if k < depth_of_tile and r < wide:  # a last round may have too many threads
                for j in range(width):
                    tile[at + k * pitch + r + j * next_in_tile] = mine[i * width + j]

    return moves * width, bring, put


@lru_cache(maxsize=256)
def blocks_kernel(steps: Steps, block: Block, layouts: tuple, given: tuple, fours: tuple, out: str, has_c: bool):
    """The kernel of one way to compute a unit.

    layouts: of a, b, c and out; given: types of the elements of a, b and c; fours: whether neighbours in a, in b come
    by four, aligned (`_fours`); out: the results' type. Its arguments are those of `Problem`: a, b, c, their
    geometries, counters, four key words, out, its geometry, batches, M, N, K.
    """
    f = _cuda.bind(steps_library(steps, block, given, out))
    compute, enter_c, leave, clear, to_spare, of_spare = f.compute, f.enter_c, f.leave, f.clear, f.to_spare, f.of_spare
    load_c, at_out = loader(layouts[2], given[2]), index_of(layouts[3])
    words, chunk, late, alignment = steps.words, steps.chunk > 0, steps.late, _ALIGNMENT
    kind = _cuda.scalar_type(steps.kind)
    zero = np.dtype(steps.kind).type(0)
    # constants: the sizes of local arrays must be known
    columns, group, depth_of_tile = block.columns, block.group, block.depth
    threads, threads_n, size, outer_size = block.threads, block.threads_n, block.size, block.size if chunk else 1
    block_m, block_n = block.m, block.n
    tile_a, tile_b = block.depth * block.pitch_a, block.depth * block.pitch_b
    slots, turns = block.slots, block.size // block.slots
    shared_a, shared_b = max(2 * tile_a, slots * threads), 2 * tile_b
    size_a, bring_a, put_a = _mover(f, block, True, layouts[0], given[0], fours[0], zero.dtype.type)
    size_b, bring_b, put_b = _mover(f, block, False, layouts[1], given[1], fours[1], zero.dtype.type)
    step_m, step_n = block.threads_m * group, block.threads_n * group

    @cuda.jit
    def kernel(
        a, b, c, geometry_a, geometry_b, geometry_c, counters, key0, key1, key2, key3, results, geometry_out, batches,
        m_all, n_all, depth,
    ):  # fmt: skip
        in_a = cuda.shared.array(shared_a, kind, alignment)
        in_b = cuda.shared.array(shared_b, kind, alignment)
        acc = cuda.local.array(size, kind)
        outer = cuda.local.array(outer_size, kind)
        next_a = cuda.local.array(size_a, kind)
        next_b = cuda.local.array(size_b, kind)
        thread = cuda.threadIdx.x
        x, y = thread % threads_n, thread // threads_n
        across = (n_all + block_n - 1) // block_n
        first_m = cuda.blockIdx.x // across * block_m
        first_n = cuda.blockIdx.x % across * block_n
        m, n = first_m + y * group, first_n + x * group
        for batch in range(cuda.blockIdx.y, batches, cuda.gridDim.y):
            clear(ffi.from_buffer(acc))
            if chunk:
                clear(ffi.from_buffer(outer))
            if has_c and not late:
                for turn in range(turns):
                    for slot in range(slots):
                        i, j = (turn * slots + slot) // columns, (turn * slots + slot) % columns
                        row, column = m + i // group * step_m + i % group, n + j // group * step_n + j % group
                        start = zero
                        if row < m_all and column < n_all:
                            start = enter_c(load_c(c, geometry_c, batch, row, column))
                        in_a[slot * threads + thread] = start
                    of_spare(ffi.from_buffer(outer if chunk else acc), ffi.from_buffer(in_a), thread, threads, turn)
            cuda.syncthreads()
            for tile in range(-1, (depth + depth_of_tile - 1) // depth_of_tile):
                k0 = tile * depth_of_tile
                k1 = k0 + depth_of_tile
                if k1 < depth:  # the next tile is on its way while this one is computed
                    bring_a(a, geometry_a, batch, first_m, m_all, k1, depth, next_a)
                    bring_b(b, geometry_b, batch, first_n, n_all, k1, depth, next_b)
                if tile >= 0:
                    half = tile % 2
                    if words:
                        compute(
                            ffi.from_buffer(acc), ffi.from_buffer(outer), ffi.from_buffer(in_a),
                            half * tile_a + y * group, ffi.from_buffer(in_b), half * tile_b + x * group, k0,
                            min(depth_of_tile, depth - k0), depth, counters[batch, 1] + n, counters[batch, 0] + m,
                            counters[batch, 2], key0, key1, key2, key3,
                        )  # fmt: skip
                    else:
                        compute(
                            ffi.from_buffer(acc), ffi.from_buffer(outer), ffi.from_buffer(in_a),
                            half * tile_a + y * group, ffi.from_buffer(in_b), half * tile_b + x * group, k0,
                            min(depth_of_tile, depth - k0), depth,
                        )  # fmt: skip
                if k1 < depth:
                    half = (tile + 1) % 2
                    put_a(next_a, in_a, half * tile_a)
                    put_b(next_b, in_b, half * tile_b)
                cuda.syncthreads()
            for turn in range(turns):
                to_spare(ffi.from_buffer(outer if chunk else acc), ffi.from_buffer(in_a), thread, threads, turn)
                for slot in range(slots):
                    i, j = (turn * slots + slot) // columns, (turn * slots + slot) % columns
                    row, column = m + i // group * step_m + i % group, n + j // group * step_n + j % group
                    if row < m_all and column < n_all:
                        start = zero
                        if has_c and late:
                            start = enter_c(load_c(c, geometry_c, batch, row, column))
                        value = leave(in_a[slot * threads + thread], start)
                        results[at_out(geometry_out, batch, row, column)] = value

    return kernel


def block_of(steps: Steps, m: int, n: int, batches: int) -> Block:
    """The shape of blocks for a product: as large as registers allow, and so many that a GPU has work."""
    side, depth = (2, 4) if _cuda.SIMULATOR else (16, 16)
    if min(m, n) <= 2:  # a thread for each result
        threads = (1, side * side) if m <= n else (side * side, 1)
        return Block(*threads, 1, 1, 1, depth if _cuda.SIMULATOR else depth // 2)  # of shared memory there is 48 KiB
    if _cuda.SIMULATOR:
        return Block(side, side, 4, 2, 2, depth)
    native = fast_of(steps.unit).path == "native"
    light = native or steps.level in ("signed", "bare", "plain")
    if steps.words:
        shapes = [(4, 4), (4, 2)] if steps.kind == "float32" and not steps.chunk else [(4, 2)]
    elif steps.kind in ("float64", "int64") or (steps.chunk and not light):
        shapes = [(4, 4)]
    else:
        shapes = [(8, 8), (8, 4), (4, 4)] if light and not steps.chunk else [(8, 4), (4, 4)]
    for rows, columns in shapes:
        block = Block(side, side, rows, columns, min(columns, 4), depth)
        if -(-m // block.m) * -(-n // block.n) * batches >= _ENOUGH_BLOCKS:
            return block
    return Block(side, side, 2, 2, 2, depth)


def _fours(x: Operand, along: str, extent: int, k: int) -> bool:
    """Whether an operand can be read by four neighbours, which lie along k, or (in the layout `along`) across it."""
    if x.numbers is None or x.layout not in ("rows", "columns"):
        return False
    neighbours = extent if x.layout == along else k
    in_fours = neighbours % 4 == 0 and _in_fours(x.numbers.tobytes(), 1 if x.layout == "rows" else 0)
    return in_fours and _cuda.address_of(x.flat) % 16 == 0


@lru_cache(maxsize=512)
def _in_fours(numbers: bytes, unit_stride: int) -> bool:
    """Whether the numbers of a geometry are multiples of four, but for the stride that is 1."""
    return not (np.delete(np.frombuffer(numbers, np.int64), unit_stride) % 4).any()


class BlocksEngine:
    """Computes any problem of a unit that has a fast path, words from a key."""

    def __init__(self, unit) -> None:
        self.unit = unit
        self.gemm = fast_of(unit)
        self.ways = {}  # what of a problem decides -> (kernel, grid, threads)

    tells = False

    @staticmethod
    def kernels_of(unit):
        return kernels_of(unit)

    def run(self, problem: Problem) -> None:
        p, unit, gemm = problem, self.unit, self.gemm
        kind = "float64" if gemm.wide else "float32"
        given = [(p.a, unit.operand[0]), (p.b, unit.operand[1])] + ([(p.c, unit.c_format)] if p.c else [])
        values = all_values(given, kind, sizes=gemm.path == "integers" or len(gemm.levels) > 1)
        (a, seen_a), (b, seen_b), (c, seen_c) = values if p.c else (*values, (stand_in(kind), Seen()))
        largest = seen_a.largest, seen_b.largest, seen_c.largest
        if gemm.path == "integers":
            level = {"careful": not gemm.fits(p.k, largest)}
        else:
            level = {"level": gemm.level(p.k, largest, seen_c.negative_zero)}
        fours = _fours(a, "columns", p.m, p.k), _fours(b, "rows", p.n, p.k)
        layouts = a.layout, b.layout, c.layout, p.out.layout
        types = a.flat.dtype, b.flat.dtype, c.flat.dtype, p.out.flat.dtype
        decides = p.m, p.n, p.batches, p.c is None, fours, layouts, types, *level.values()
        way = self.ways.get(decides)
        if way is None:
            steps = steps_of(unit, **level)
            block = block_of(steps, p.m, p.n, p.batches)
            *given, out = (x.name for x in types)
            kernel = blocks_kernel(steps, block, layouts, tuple(given), fours, out, p.c is not None)
            grid = (-(-p.m // block.m) * -(-p.n // block.n), min(p.batches, _cuda.MAX_GRID_Y))
            if len(self.ways) > _MOST_WAYS:
                self.ways.clear()
            way = self.ways[decides] = kernel, grid, block.threads
        kernel, grid, threads = way
        _cuda.launch(
            kernel, grid, threads, a.flat, b.flat, c.flat, a.geometry, b.geometry, c.geometry, p.counters,
            *(np.uint32(v) for v in p.keys), p.out.flat, p.out.geometry, p.batches, p.m, p.n, p.k,
        )  # fmt: skip


def takes(unit) -> bool:
    """Whether a MadUnit has a fast path here."""
    return not unit.on_codes and steps_of(unit) is not None


def kernels_of(unit):
    """(name, kernel, types of its arguments, True: it is fast) of the ways to compute contiguous matrices without c."""
    from numba import types

    def array(kind, dimensions=1):
        return types.Array(kind, dimensions, "C")

    gemm = fast_of(unit)
    integers = gemm.path == "integers"
    carrier = "float64" if gemm.wide and not integers else "float32"
    out = "float32" if fits(unit.result, np.float32) else "float64"
    values, u32, i64 = array(_cuda.scalar_type(carrier)), types.uint32, types.int64
    arguments = (
        values, values, values, array(i64), array(i64), array(i64), array(i64, 2), u32, u32, u32, u32,
        array(_cuda.scalar_type(out)), array(i64), i64, i64, i64, i64,
    )  # fmt: skip
    ways = (
        [steps_of(unit, careful=careful) for careful in (True, False)]
        if integers
        else [steps_of(unit, level) for level in gemm.levels]
    )
    for steps in dict.fromkeys(ways):
        block = block_of(steps, 4096, 4096, 1)
        kernel = blocks_kernel(steps, block, ("rows",) * 4, (carrier,) * 3, (True, True), out, False)
        yield f"blocks, {steps.level}: {unit}", kernel, arguments, True


def examples():
    """`kernels_of` a unit of each path."""
    for unit in (
        MadUnit("e6m9", operand="e5m2", product="e5m2"),
        MadUnit("e6m9", operand="e5m2"),
        MadUnit("q8.8", operand="q4.4"),
        MadUnit("binary32", operand="bfloat16", chunk=64),
        MadUnit("e6m9", operand="e5m2", rounding="toward_zero"),
        MadUnit("e6m9", operand="e5m2", rounding="stochastic", stochastic_bits=12),
        MadUnit("e10m40", operand="binary32"),
    ):
        yield from kernels_of(unit)

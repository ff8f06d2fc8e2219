"""MadUnits that compute in custom formats, by look-up tables (`softnum.kernels.device.products.mad.sum_tables`).

Two kernels: sums in any order of lanes and chunks over tables of any size (sums.py); and, for one lane, tiles of a and
b in shared memory beside tables that fit there. The latter's inner loop takes 105 instructions for 16 multiply-adds
(sm_90, 8 bits), 32 of them look-ups in shared memory: of a product's row and of a sum. In a warp all threads have the
same a, so that a product's bytes lie in 256 that follow each other: no bank of shared memory has more than two words of
them, and the look-up takes two cycles; that of 32 sums with nothing in common takes 3.5 on the average (the fullest of
32 banks that are hit 32 times at random). An H200 (132 multiprocessors, 1.98 GHz) then makes 132 * 1.98e9 * 32 / 5.5 =
1.5e12 multiply-adds a second at the most (by the issue of instructions 5.1e12): a prediction, not measured.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softnum.formats.c_text import environment_text, format_text
from softnum.formats.custom import CustomFormat
from softnum.formats.dispatch import of_format
from softnum.formats.facts import fits
from softnum.formats.names import format
from softnum.kernels.device.elementwise.conversion import NO_WORDS
from softnum.kernels.device.products.entries import value_body
from softnum.kernels.device.products.layouts import index_of, loader
from softnum.kernels.device.products.mad.sum_tables import NO_ROW, SumTables, tables_of
from softnum.kernels.device.products.order import Steps, Tables, kernel_types, run_sums, sums_kernel
from softnum.kernels.device.products.problem import Problem, coded_operands, formats_of
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import cuda, ffi
from softnum.kernels.device.runtime.source import Entry, Library
from softnum.mac.mad import MadUnit
from softnum.mac.products.custom.codes import zero_code

__all__ = ["TableEngine", "examples", "kernels_of", "shared_kernel"]

_U8, _U32, _U64 = np.uint8, np.uint32, np.uint64
_ROWS = ("rows",) * 4

# of shared_kernel: outputs of a block (rows, columns), of a thread, products of a tile; of large results, small ones
_TILES = ((4, 6, 2, 2, 4), (4, 2, 2, 1, 4)) if _cuda.SIMULATOR else ((64, 128, 4, 4, 16), (32, 32, 4, 4, 16))
_PAD = 4  # bytes, so that rows of a tile begin in different banks


def _carrier(unit) -> str:
    return next(d for d in ("float32", "float64") if fits(unit.outer, d))


@of_format
def _core_text(fmt, name: str, env) -> str:
    """The constants of a format in which the core adds; empty where it does not."""
    return format_text(name, fmt) + environment_text(f"{name}_env", env)


@_core_text.custom
def _no_text(fmt, name: str, env) -> str:
    return ""


@lru_cache(maxsize=64)
def _definition(unit) -> Library:
    """The entries ``add(acc, bits, lost)`` and ``outer(outer, bits, lost)`` of values in binary64, ``join(x, y, lost)``
    and ``value(code)``, for formats of softnum's own."""
    carrier = _carrier(unit)
    _, sum_env, outer_env = unit.environments
    constants, entries = format_text("_wide", format("binary64")), []
    u64 = "uint64"

    def adds(name: str, fmt, env, other: str, bit: int):
        return Entry(
            name, u64, ((u64, "x"), (u64, "y"), (f"{u64}*", "lost")),
            f"const sn_format f = {fmt}(), g = {other}();\nconst sn_env env = {env}();\nsn_u32 flags = 0;\n"
            "const sn_u64 code = sn_add(&f, x, &g, y, &f, &env, 0, &flags);\n"
            f"*lost |= flags & SN_NO_CODE ? {bit} : 0;\nreturn code;",
        )  # fmt: skip

    sums, outers = _core_text(unit.accumulator, "_sum", sum_env), _core_text(unit.outer, "_out", outer_env)
    if sums:
        constants += sums
        entries += [adds("add", "_sum", "_sum_env", "_wide", 2), adds("join", "_sum", "_sum_env", "_sum", 2)]
    if outers:
        kind = {"float32": "uint32", "float64": u64}[carrier]
        constants += outers + format_text("_carrier", format({"float32": "binary32"}.get(carrier, "binary64")))
        entries.append(adds("outer", "_out", "_out_env", "_wide", 4))
        entries.append(Entry("value", kind, ((u64, "code"),), value_body(kind)))
        if sums:
            entries.append(adds("outer_of_codes", "_out", "_out_env", "_sum", 4))
    return Library(constants, tuple(entries))


def _looked_up(at: int, bits: int, lost: int):
    """The device function ``(cells, x, y, state)``: the cell [x, y] of a part of cells."""
    at, bits, lost = _U64(at), _U64(bits), _U64(lost)

    @cuda.jit(device=True)
    def look_up(cells, x, y, state):
        found = cells[at + (_U64(x) << bits | y)]
        if found < 0:
            state[0] |= lost
            return y
        return _U64(found)

    return look_up


def _value(unit, tables: SumTables, f):
    """The device function that makes a result's bits of a sum."""
    if tables.results_at < 0:
        of_code = f.value
        return cuda.jit(device=True)(lambda rows, cells, values, code, state: of_code(code))
    kind = {"float32": np.uint32, "float64": np.uint64}[_carrier(unit)]
    return cuda.jit(device=True)(lambda rows, cells, values, code, state: kind(values[code]))


def _outer(unit, tables: SumTables, f):
    if not unit.chunk:
        return cuda.jit(device=True)(lambda rows, cells, values, total, part, word, state: part)
    if tables.outers_at >= 0:
        cell = _looked_up(tables.outers_at, unit.accumulator.bits, 4)

        @cuda.jit(device=True)
        def outer(rows, cells, values, total, part, word, state):
            return cell(cells, total, part, state)

    elif tables.by_table:
        add, at = f.outer, _U64(tables.addends_at)

        @cuda.jit(device=True)
        def outer(rows, cells, values, total, part, word, state):
            return add(total, values[at + part], ffi.from_buffer(state))

    else:
        add_codes = f.outer_of_codes

        @cuda.jit(device=True)
        def outer(rows, cells, values, total, part, word, state):
            return add_codes(total, part, ffi.from_buffer(state))

    return outer


@lru_cache(maxsize=64)
def _steps(unit) -> Steps:
    """The steps of sums over tables."""
    tables, f = tables_of(unit), _cuda.bind(_definition(unit))
    bits_b, no_row = _U64(unit.operand[1].bits), _U32(NO_ROW)
    if tables.by_table:
        bits = unit.accumulator.bits
        cell, joined = _looked_up(0, bits, 2), _looked_up(tables.joins_at, bits, 2)

        @cuda.jit(device=True)
        def added(cells, values, acc, row, state):
            return cell(cells, row, acc, state)

        @cuda.jit(device=True)
        def join(rows, cells, values, x, y, word, state):
            return joined(cells, x, y, state)

    else:
        add, add_codes, at = f.add, f.join, _U64(tables.addends_at)

        @cuda.jit(device=True)
        def added(cells, values, acc, row, state):
            return add(acc, values[at + _U64(row)], ffi.from_buffer(state))

        @cuda.jit(device=True)
        def join(rows, cells, values, x, y, word, state):
            return add_codes(x, y, ffi.from_buffer(state))

    @cuda.jit(device=True)
    def step(rows, cells, values, acc, a, b, first, second, state):
        row = rows[_U64(a) << bits_b | _U64(b)]
        if row == no_row:
            state[0] |= _U64(1)
            return acc
        return added(cells, values, acc, row, state)

    start = cuda.jit(device=True)(lambda code: _U64(code))
    zero, outer_zero = _U64(zero_code(unit.accumulator)), _U64(zero_code(unit.outer))
    return Steps(np.uint64, zero, outer_zero, step, join, _outer(unit, tables, f), start, _value(unit, tables, f))


@lru_cache(maxsize=64)
def _kernel(unit, has_c: bool, layouts):
    formats = formats_of(unit)
    types = tuple(f.storage_dtype.name for f in formats)
    return sums_kernel(_steps(unit), unit, NO_WORDS, has_c, layouts, types, tuple(map(zero_code, formats)))


# ---- tables in shared memory -----------------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def _in_shared(unit) -> np.ndarray | None:
    """Bytes for shared memory, in groups of 16: products' rows, then sums; None where codes lack or a byte holds no
    operand, or no row."""
    tables = tables_of(unit)
    if unit.lanes > 1 or not tables.by_table or (unit.chunk and tables.outers_at < 0):
        return None
    if max(f.bits for f in unit.operand) > 8:
        return None
    if (tables.cells < 0).any() or (tables.rows > 255).any():
        return None
    found = np.concatenate([tables.rows.ravel().astype(np.uint8), tables.cells[: tables.sums].astype(np.uint8)])
    return np.append(found, np.zeros(-len(found) % 16, np.uint8))


@lru_cache(maxsize=64)
def _look_ups(bits_a: int, bits_b: int, bits: int, height: int, width: int) -> Library:
    """Entries ``mads(tables, a, at_a, b, at_b, acc)``, the next product of height x width sums, whose codes are in acc,
    and ``copy(from, to, first, count, step)``, of every step-th of so many groups of 16 bytes."""
    arguments = (
        ("uint8*", "tables"), ("uint8*", "a"), ("uint32", "at_a"), ("uint8*", "b"), ("uint32", "at_b"),
        ("uint32*", "acc"),
    )  # fmt: skip
    body = f"""
a += at_a;
b += at_b;
const sn_u8 *sums = tables + {1 << (bits_a + bits_b)};
for (sn_i32 i = 0; i < {height}; i++)
    for (sn_i32 j = 0; j < {width}; j++) {{
        const sn_u32 row = tables[(sn_u32)a[i] << {bits_b} | b[j]];
        acc[{width} * i + j] = sums[row << {bits} | acc[{width} * i + j]];
    }}
"""
    copied = ("uint32", "first"), ("uint32", "count"), ("uint32", "step")
    copy = """
for (sn_u32 i = first; i < count; i += step) {
#if defined(__CUDACC_RTC__)
    ((uint4 *)to)[i] = ((const uint4 *)from)[i];
#else
    for (sn_u32 j = 16 * i; j < 16 * i + 16; j++)
        to[j] = from[j];
#endif
}
"""
    entries = (
        Entry("mads", "void", arguments, body),
        Entry("copy", "void", (("uint8*", "from"), ("uint8*", "to"), *copied), copy),
    )
    return Library("", entries, "softnum/word/base.h")


@lru_cache(maxsize=64)
def shared_kernel(unit, has_c: bool, layouts, tile=_TILES[0]):
    """The kernel of a unit of one lane whose tables lie in shared memory.

    Its arguments: codes a, b and c, their geometries, out and its geometry, the bytes of tables (`_in_shared`), which
    are copied to dynamic shared memory, cells and values (`SumTables`), batches, M, N and K.
    """
    tables, groups = tables_of(unit), len(_in_shared(unit)) // 16
    block_m, block_n, height, width, deep = tile
    across, threads = block_n // width, block_m // height * block_n // width
    row_a, row_b, outputs = block_m + _PAD, block_n + _PAD, height * width
    size_a, size_b = deep * row_a, deep * row_b
    f = _cuda.bind(_look_ups(*(f.bits for f in (*unit.operand, unit.accumulator)), height, width))
    mads, copy = f.mads, f.copy
    zeros = tuple(map(zero_code, (*unit.operand, unit.outer)))
    load_a, load_b, load_c = (loader(x, "uint8", z) for x, z in zip(layouts, zeros, strict=False))
    at_out, chunk = index_of(layouts[3]), unit.chunk or 0
    value = _value(unit, tables, None if tables.results_at >= 0 else _cuda.bind(_definition(unit)))
    outer = _outer(unit, tables, None)
    zero, outer_zero = _U32(zero_code(unit.accumulator)), _U32(zero_code(unit.outer))
    totals = outputs if chunk else 1
    no_word, no_code, byte = _U32(0), _U8(0), _cuda.scalar_type(_U8)

    @_cuda.jit_for(threads, 1)
    def kernel(
        a, b, c, geometry_a, geometry_b, geometry_c, out, geometry_out, bytes_of_tables, cells, values, batches, rows,
        columns, depth,
    ):  # fmt: skip
        look_up = cuda.shared.array(0, byte)
        tile_a = cuda.shared.array(size_a, _U8)
        tile_b = cuda.shared.array(size_b, _U8)
        acc = cuda.local.array(outputs, _U32)
        total = cuda.local.array(totals, _U32)
        state = cuda.local.array(1, _U64)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        thread = y * across + x
        copy(ffi.from_buffer(bytes_of_tables), ffi.from_buffer(look_up), thread, groups, threads)
        blocks = (columns + block_n - 1) // block_n
        first_m = cuda.blockIdx.x // blocks * block_m
        first_n = cuda.blockIdx.x % blocks * block_n
        state[0] = 0
        for batch in range(cuda.blockIdx.y, batches, cuda.gridDim.y):
            for i in range(outputs):
                m, n = first_m + y * height + i // width, first_n + x * width + i % width
                start = outer_zero
                if has_c and m < rows and n < columns:
                    start = _U32(load_c(c, geometry_c, batch, m, n))
                if chunk > 0:
                    total[i] = start
                    acc[i] = zero
                else:
                    acc[i] = start
            left = chunk
            for begin in range(0, depth, deep):
                cuda.syncthreads()
                for i in range(thread, block_m * deep, threads):
                    m, k = i // deep, i % deep
                    code = no_code  # beyond the matrix: one that tables have, for outputs that are not there
                    if first_m + m < rows and begin + k < depth:
                        code = load_a(a, geometry_a, batch, first_m + m, begin + k)
                    tile_a[k * row_a + m] = code
                for i in range(thread, block_n * deep, threads):
                    k, n = i // block_n, i % block_n
                    code = no_code
                    if first_n + n < columns and begin + k < depth:
                        code = load_b(b, geometry_b, batch, begin + k, first_n + n)
                    tile_b[k * row_b + n] = code
                cuda.syncthreads()
                for k in range(min(deep, depth - begin)):
                    mads(
                        ffi.from_buffer(look_up), ffi.from_buffer(tile_a), k * row_a + y * height,
                        ffi.from_buffer(tile_b), k * row_b + x * width, ffi.from_buffer(acc),
                    )  # fmt: skip
                    if chunk > 0:
                        left -= 1
                        if left == 0 or begin + k == depth - 1:
                            for i in range(outputs):
                                total[i] = _U32(outer(0, cells, values, _U64(total[i]), _U64(acc[i]), no_word, state))
                                acc[i] = zero
                            left = chunk
            for i in range(outputs):
                m, n = first_m + y * height + i // width, first_n + x * width + i % width
                if m < rows and n < columns:
                    found = total[i] if chunk > 0 else acc[i]
                    out[at_out(geometry_out, batch, m, n)] = value(0, cells, values, _U64(found), state)

    return kernel


# ---- the engine ------------------------------------------------------------------------------------------------------


@_cuda.kept
def _on_device(unit) -> Tables:
    tables, none = tables_of(unit), Tables.none()
    return Tables(
        _cuda.to_device(tables.rows.ravel()),
        _cuda.to_device(tables.cells) if tables.cells.size else none.cells,
        _cuda.to_device(tables.values) if tables.values.size else none.values,
    )


@_cuda.kept
def _bytes_on_device(unit):
    return _cuda.to_device(_in_shared(unit))


def _fits_in_shared(unit, most: int) -> bool:
    """Whether tables and tiles fit in so many bytes of shared memory."""
    tables = _in_shared(unit)
    height, width, _, _, deep = _TILES[0]
    return tables is not None and len(tables) + deep * (height + width + 2 * _PAD) <= most


def kernels_of(unit):
    """(name, kernel, types of its arguments[, whether it is fast]) of what computes contiguous matrices without c."""
    codes = [f.storage_dtype for f in formats_of(unit)]
    bits = {"float32": "u4", "float64": "u8"}[_carrier(unit)]
    if not _fits_in_shared(unit, 227 * 1024):
        yield f"tables {unit}", _kernel(unit, False, _ROWS), kernel_types(*codes, bits)
        return
    array, i64 = _cuda.array_type, _cuda.scalar_type(np.int64)
    types = (
        *map(array, codes), *[array(np.int64)] * 3, array(bits), array(np.int64), array(np.uint8), array(np.int16),
        array(np.uint64), i64, i64, i64, i64,
    )  # fmt: skip
    for tile in _TILES:
        yield (
            f"tables in shared memory {unit}, {tile[0]} x {tile[1]}",
            shared_kernel(unit, False, _ROWS, tile),
            types,
            True,
        )


class TableEngine:
    """Computes any problem of a MadUnit in custom formats that has tables; TypeError for others, when it is made."""

    kernels_of, tells = staticmethod(kernels_of), True

    def __init__(self, unit) -> None:
        tables_of(unit)
        self.unit = unit

    def run(self, problem: Problem) -> None:
        """Compute it; ValueError for an operand that is no value of its format, and for a step that has no result."""
        p, unit, operands = problem, self.unit, coded_operands(problem)
        layouts = p.layouts(operands)
        if _fits_in_shared(unit, _cuda.most_shared()):
            tile, tables = p.first_of(_TILES), _on_device(unit)
            block_m, block_n, height, width, _ = tile
            _cuda.launch(
                shared_kernel(unit, p.c is not None, layouts, tile), p.grid(block_m, block_n),
                (block_n // width, block_m // height), *(x.flat for x in operands), *(x.geometry for x in operands),
                _cuda.bits(p.out.flat), p.out.geometry, _bytes_on_device(unit), tables.cells, tables.values, *p.sizes,
                shared=len(_in_shared(unit)),
            )  # fmt: skip
            return
        run_sums(p, _kernel(unit, p.c is not None, layouts), operands, _on_device(unit))
        tables = tables_of(unit)
        may_fail = (tables.rows == NO_ROW).any() or (tables.cells < 0).any()
        lost = _cuda.to_host(p.status) if may_fail else ()
        for seen, fmt in zip(lost, unit.rounded_to, strict=False):
            if seen:
                raise ValueError(
                    f"matmul: a step has no result in {fmt}: it is NaN, and there is no code for it, or a function of "
                    "the user's fails; arrays of the host have the error that names the operands"
                )


def examples():
    """`kernels_of` representative units, which are linked without a GPU."""
    powers = [2.0 ** (i / 8) for i in range(127)]
    eight = CustomFormat.from_table([0.0, *powers, -(2.0**20), *(-x for x in powers)], name="log8")
    yield from kernels_of(MadUnit(eight, operand=eight, product=eight))
    yield next(kernels_of(MadUnit(eight, operand=eight, product=eight, chunk=16)))
    yield from kernels_of(MadUnit("binary32", operand="e4m3fn", product=eight, lanes=4))

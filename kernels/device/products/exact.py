"""ExactDotUnit on CUDA arrays: sums that nothing is lost of, rounded once.

Operands with a narrow range are integers of one or two pieces (device/exact_steps.h), whose products are summed
in 64 bits, a block of 4 x 4 outputs to a thread; a second kernel rounds. All others: by the definition on codes, with
an accumulator as wide as the formats ask for in each thread's memory.
"""

# Instructions a product of the machine code for sm_90, and what 132 multiprocessors at 1.98 GHz (H100 SXM, H200) issue
# of them at most; multiplications of 32 bits into 64, 1 or 4 of them, would limit at 32 lanes a clock. Predicted, not
# measured.
#
#   operands    instructions a product   by issue      by multiplications
#   e4m3fn      3.5                      9.5 TMAC/s    8.4
#   binary16    8.7                      3.8           2.1

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from softnum.formats.c_text import environment_text, format_text, source_text
from softnum.formats.facts import fits
from softnum.formats.modes import ROUNDING_MODES
from softnum.kernels.device.elementwise.conversion import FROM_ARRAY, FROM_KEY, NO_WORDS
from softnum.kernels.device.products.fused_text import value_entry
from softnum.kernels.device.products.layouts import index_of, loader
from softnum.kernels.device.products.problem import Problem, coded_operands, formats_of
from softnum.kernels.device.products.tiles import ALIGNMENT, BLOCK, SIDE, stager
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import cuda, ffi
from softnum.kernels.device.runtime.source import Entry, Library
from softnum.mac.exact import ExactDotUnit
from softnum.runtime.gateway import NoKernel

__all__ = [
    "ExactEngine", "Pieces", "examples", "exact_library", "kernels_of", "pieces_library", "pieces_of",
    "rounding_kernel", "sums_kernel",
]  # fmt: skip

TILE = 4 if _cuda.SIMULATOR else 16  # outputs of a block of the rounding kernel, a side
SUMS_TILES = (8, 4) if _cuda.SIMULATOR else (64, 32)  # of the sums' kernel: of large results, and of small ones
DEPTH = 16
_STATE = 82  # words of 64 bits of an sn_kulisch
_LOST = np.int64(-(2**63))  # what stands for a sum of an output that the definition computes
_DOWN = ROUNDING_MODES["down"]


@dataclass(frozen=True)
class Pieces:
    """How a and b are cut: the exponents of their last places; bits of their low pieces, 0 where there is but one."""

    last: tuple[int, int]
    widths: tuple[int, int]

    @property
    def sums(self) -> int:
        """Number of sums of an output."""
        return 1 + sum(w > 0 for w in self.widths)

    @property
    def grid(self) -> tuple[int, ...]:
        """The exponents of their last places."""
        last, width = sum(self.last), max(self.widths)
        return tuple(last + i * width for i in range(self.sums))


def pieces_of(unit: ExactDotUnit, k: int) -> Pieces | None:
    """The pieces that sums of k products are computed by, or None: then the definition computes them."""
    given = [fmt.codec.core_format(fmt).span for fmt in unit.operand]
    spans, lasts = [top - last for last, top in given], tuple(last for last, _ in given)
    for count in ((1, 1), (1, 2), (2, 1), (2, 2)):
        sizes = [-(-s // n) for s, n in zip(spans, count, strict=True)]
        if count == (2, 2):  # mixed products have one grid
            sizes = [max(sizes)] * 2
        if max(sizes) <= 30 and sum(sizes) + k.bit_length() + (count == (2, 2)) <= 62:
            return Pieces(lasts, tuple(size if n == 2 else 0 for size, n in zip(sizes, count, strict=True)))
    return None


# ---- C text ----------------------------------------------------------------------------------------------------------

_S = ("uint64*", "state")
_TERMS = (("uint64", "a"), ("uint64", "b"))


@lru_cache(maxsize=256)
def exact_library(unit: ExactDotUnit, carrier: str, pieces: Pieces | None) -> Library:
    """The unit's accumulator (units/kulisch.h): ``clear(state)``, ``addend(state, c)``, ``product(state, a, b)``
    and ``count(state, n, i)`` of codes and of integers in units of the i-th grid; ``zero(state)``; ``round(state,
    word)``, the code, after which ``lost(state)`` says whether there was none; ``value(code)``; ``word(...)``, an
    output's random word."""
    a, b, _ = formats_of(unit)
    value_constants, value = value_entry(carrier, "_sum")
    constants = (
        format_text("_a", a) + format_text("_b", b) + format_text("_sum", unit.accumulator)
        + environment_text("_env", unit.environment) + source_text("_source", unit.random_source) + value_constants
        + f"typedef char _fits[sizeof(sn_kulisch) <= {8 * _STATE} ? 1 : -1];\n"
    )  # fmt: skip
    here = "sn_kulisch *k = (sn_kulisch *)state;\n"
    rounding = here + (
        "const sn_format f = _sum();\nconst sn_env env = _env();\nsn_u32 flags = 0;\n"
        "const sn_u64 code = sn_kulisch_round(k, &f, &env, word, &flags);\nk->met = (flags & SN_NO_CODE) != 0;\n"
        "return code;"
    )
    product = here + (
        "const sn_format fa = _a(), fb = _b();\nconst sn_number x = sn_unpack(&fa, a), y = sn_unpack(&fb, b);\n"
        "sn_kulisch_add_product(k, &x, &y);"
    )
    addend = here + "const sn_format f = _sum();\nconst sn_number x = sn_unpack(&f, c);\nsn_kulisch_add(k, &x);"
    counter = (
        ("int64", "n"), ("int64", "m"), ("int64", "batch"), ("uint32", "key0"), ("uint32", "key1"),
    )  # fmt: skip
    entries = [
        Entry("clear", "void", (_S,), f"sn_kulisch_clear((sn_kulisch *)state, {unit.bottom}, {unit.words});"),
        Entry("addend", "void", (_S, ("uint64", "c")), addend),
        Entry("product", "void", (_S, *_TERMS), product),
        Entry(
            "zero", "uint32", (_S,),
            here + f"return !sn_kulisch_low_bits(k, {64 * unit.words}) && !(k->met & ~(sn_i32)(SN_MET_PLUS_ZERO | "
            "SN_MET_MINUS_ZERO | SN_MET_NUMBER));",
        ),
        Entry("round", "uint64", (_S, ("uint32", "word")), rounding),
        Entry("lost", "uint32", (_S,), "return (sn_u32)((sn_kulisch *)state)->met;"),
        Entry(
            "word", "uint32", counter,
            "const sn_source s = _source();\nconst sn_source_step first = sn_source_at(&s, 0);\n"
            "const sn_u32 key[2] = {key0, key1};\nsn_u32 words[2];\n"
            "sn_source_draw(&s, &first, (sn_u32)n, (sn_u32)m, (sn_u32)batch, key, key, 0, 0, words);\n"
            "return words[1];",
        ),
        value,
    ]  # fmt: skip
    if pieces is not None:
        grid = "".join(f"if (i == {i}) grid = {g};\n" for i, g in enumerate(pieces.grid))
        entries.append(
            Entry(
                "count", "void", (_S, ("int64", "n"), ("int32", "i")),
                here + f"sn_i32 grid = 0;\n{grid}if (n == 0) return;\nk->met |= SN_MET_NUMBER;\n"
                "sn_kulisch_add_exact(k, sn_u128_make(0, n < 0 ? 0 - (sn_u64)n : (sn_u64)n), grid, n < 0);",
            )
        )  # fmt: skip
    return Library(constants, tuple(entries), "softnum/device/device.h softnum/word/source.h")


@lru_cache(maxsize=256)
def pieces_library(operands: tuple, pieces: Pieces, stride: int) -> Library:
    """A block's sums: ``low_a(code)``, ``high_a(code)``, ``special_a(code)`` and the same of b prepare a tile's
    elements; ``steps`` adds a tile's products to ``sums``, a block of each of `Pieces.grid`."""
    constants, entries = "", []
    for fmt, last, width, name in zip(operands, pieces.last, pieces.widths, "ab", strict=True):
        constants += format_text(f"_{name}", fmt)
        here = f"const sn_format f = _{name}();\n"
        code = (("uint64", "code"),)
        entries += [
            Entry(f"low_{name}", "int32", code, f"{here}return sn_exact64_low(&f, code, {last}, {width});"),
            Entry(f"high_{name}", "int32", code, f"{here}return sn_exact64_high(&f, code, {last}, {width});"),
            Entry(f"special_{name}", "int32", code, f"{here}return sn_exact64_special(&f, code);"),
        ]
    tile = (
        ("int32*", "a"), ("int32*", "high_a"), ("int32*", "b"), ("int32*", "high_b"), ("int32", "row"),
        ("int32", "column"), ("int32", "depth"), ("int64*", "sums"),
    )  # fmt: skip
    two_a, two_b = (int(w > 0) for w in pieces.widths)
    if pieces.sums == 1:
        body = f"(void)high_a;\n(void)high_b;\nsn_exact64_add(a + row, b + column, {stride}, depth, sums);"
    else:
        body = (
            "sn_exact64_add_pieces(a + row, high_a + row, b + column, high_b + column, "
            f"{two_a}, {two_b}, {stride}, depth, sums, sums + SN_BLOCK, sums + {pieces.sums - 1} * SN_BLOCK);"
        )
    entries.append(Entry("steps", "void", tile, body))
    return Library(constants, tuple(entries), "softnum/device/exact_steps.h")


# ---- kernels ---------------------------------------------------------------------------------------------------------


def _stage(f, name: str, fmt, two: bool):
    """(put, clear) of a tile's elements (`stager`)."""
    low, high, special = (getattr(f, f"{part}_{name}") for part in ("low", "high", "special"))
    specials = fmt.has_nan or fmt.infinities

    @cuda.jit(device=True)
    def put(lows, highs, marks, at, r, x):
        lows[at] = low(x)
        if two:
            highs[at] = high(x)
        if specials and special(x) != 0:
            cuda.atomic.max(marks, r, 1)

    @cuda.jit(device=True)
    def clear(lows, highs, at):
        lows[at] = np.int32(0)
        if two:
            highs[at] = np.int32(0)

    return put, clear


@lru_cache(maxsize=256)
def sums_kernel(operands: tuple, pieces: Pieces, layouts, tile: int, depth_of_tile: int):
    """The kernel ``(a, b, geometry_a, geometry_b, sums, batches, M, N, K)``: codes in, int64 sums out, of shape
    (`Pieces.sums`, batches, M, N) as one dimension; the lowest integer where an operand is infinite or NaN."""
    stride = tile + 4
    f = _cuda.bind(pieces_library(operands, pieces, stride))
    steps = f.steps
    across, block, side, alignment = tile // SIDE, BLOCK, SIDE, ALIGNMENT
    threads, room = across * across, stride * depth_of_tile
    two_a, two_b = (w > 0 for w in pieces.widths)
    room_a, room_b = (room if two else 4 for two in (two_a, two_b))
    count = pieces.sums
    all_sums = count * block
    stage_a, stage_b = (
        stager(layout, fmt.storage_dtype.name, name == "a", tile, depth_of_tile, threads, *_stage(f, name, fmt, two))
        for layout, fmt, name, two in zip(layouts, operands, "ab", (two_a, two_b), strict=True)
    )
    lost = _LOST

    @_cuda.jit_for(threads, 1 if count == 3 else 512 // max(threads, 32))
    def kernel(a, b, geometry_a, geometry_b, sums, batches, rows, columns, depth):
        low_a = cuda.shared.array(room, np.int32, alignment)
        low_b = cuda.shared.array(room, np.int32, alignment)
        high_a = cuda.shared.array(room_a, np.int32, alignment)
        high_b = cuda.shared.array(room_b, np.int32, alignment)
        marks_a = cuda.shared.array(tile, np.int32)
        marks_b = cuda.shared.array(tile, np.int32)
        own = cuda.local.array(all_sums, np.int64)
        thread = cuda.threadIdx.x
        blocks_across = (columns + tile - 1) // tile
        m0, n0 = cuda.blockIdx.x // blocks_across * tile, cuda.blockIdx.x % blocks_across * tile
        row, column = thread // across * side, thread % across * side
        size = np.int64(batches) * rows * columns
        for batch in range(cuda.blockIdx.y, batches, cuda.gridDim.y):
            for i in range(all_sums):
                own[i] = np.int64(0)
            for i in range(thread, tile, threads):
                marks_a[i] = marks_b[i] = np.int32(0)
            cuda.syncthreads()
            for start in range(0, depth, depth_of_tile):
                stage_a(a, geometry_a, geometry_a, batch, m0, rows - m0, start, depth, low_a, high_a, marks_a)
                stage_b(b, geometry_b, geometry_b, batch, n0, columns - n0, start, depth, low_b, high_b, marks_b)
                cuda.syncthreads()
                steps(
                    ffi.from_buffer(low_a), ffi.from_buffer(high_a), ffi.from_buffer(low_b), ffi.from_buffer(high_b),
                    row, column, min(depth_of_tile, depth - start), ffi.from_buffer(own),
                )  # fmt: skip
                cuda.syncthreads()
            for i in range(block):
                m, n = m0 + row + i // side, n0 + column + i % side
                if m < rows and n < columns:
                    at = (np.int64(batch) * rows + m) * columns + n
                    bad = marks_a[row + i // side] | marks_b[column + i % side]
                    for j in range(count):
                        sums[at + j * size] = lost if bad != 0 else own[j * block + i]
            cuda.syncthreads()

    return kernel


@lru_cache(maxsize=256)
def rounding_kernel(unit: ExactDotUnit, carrier: str, layouts, words: int, has_c: bool, pieces: Pieces | None):
    """The kernel that rounds sums: those of `sums_kernel`, or, without pieces, of the products themselves.

    Its arguments: codes a, b, c and their geometries; sums; counters; random words; the key of domain 1; out, bits of
    the carrier, and its geometry; status; batches, M, N, K.
    """
    f = _cuda.bind(exact_library(unit, carrier, pieces))
    clear, addend, product, zero, rounded = f.clear, f.addend, f.product, f.zero, f.round
    lost_of, word_of, value = f.lost, f.word, f.value
    count = f.count if pieces is not None else None
    formats = formats_of(unit)
    load_a, load_b, load_c = (loader(x, g.storage_dtype.name) for x, g in zip(layouts, formats, strict=False))
    at_out = index_of(layouts[3])
    tile, state_words, kinds = TILE, _STATE, pieces.sums if pieces else 0
    signed_zero, lost = has_c or unit.environment[0] == _DOWN, _LOST

    @cuda.jit
    def kernel(
        a, b, c, geometry_a, geometry_b, geometry_c, sums, counters, random, key0, key1, out, geometry_out, status,
        batches, rows, columns, depth,
    ):  # fmt: skip
        blocks_across = (columns + tile - 1) // tile
        m = cuda.blockIdx.x // blocks_across * tile + cuda.threadIdx.y
        n = cuda.blockIdx.x % blocks_across * tile + cuda.threadIdx.x
        state = cuda.local.array(state_words, np.uint64)
        if m < rows and n < columns:
            size = np.int64(batches) * rows * columns
            for batch in range(cuda.blockIdx.y, batches, cuda.gridDim.y):
                at = (np.int64(batch) * rows + m) * columns + n
                code = np.uint64(0)
                if has_c:
                    code = np.uint64(load_c(c, geometry_c, batch, m, n))
                if depth > 0:
                    clear(ffi.from_buffer(state))
                    addend(ffi.from_buffer(state), code)
                    whole = kinds == 0
                    if kinds > 0:
                        whole = sums[at] == lost
                        if not whole:
                            for i in range(kinds):
                                count(ffi.from_buffer(state), sums[at + i * size], np.int32(i))
                            # the sign of a zero is asked of the products
                            whole = signed_zero and zero(ffi.from_buffer(state)) != 0
                        if whole:
                            clear(ffi.from_buffer(state))
                            addend(ffi.from_buffer(state), code)
                    if whole:
                        for k in range(depth):
                            x = np.uint64(load_a(a, geometry_a, batch, m, k))
                            y = np.uint64(load_b(b, geometry_b, batch, k, n))
                            product(ffi.from_buffer(state), x, y)
                    word = np.uint32(0)
                    if words == FROM_KEY:
                        word = word_of(counters[batch, 1] + n, counters[batch, 0] + m, counters[batch, 2], key0, key1)
                    elif words == FROM_ARRAY:
                        word = random[batch, m, n, 0, 1]
                    code = rounded(ffi.from_buffer(state), word)
                    if lost_of(ffi.from_buffer(state)) != 0:
                        status[0] = 1
                out[at_out(geometry_out, batch, m, n)] = value(code)

    return kernel


def kernels_of(unit):
    """(name, kernel, types of its arguments[, fast]) of what computes float32 matrices without c, words from a key."""
    array, i64, u32 = _cuda.array_type, _cuda.scalar_type(np.int64), _cuda.scalar_type(np.uint32)
    codes = tuple(array(f.storage_dtype) for f in formats_of(unit))
    numbers, sizes = array(np.int64), (i64,) * 4
    pieces = pieces_of(unit, 4096)
    if pieces is not None:
        for side in (64, 32):
            kernel = sums_kernel(unit.operand, pieces, ("rows", "rows"), side, DEPTH)
            yield f"exact sums in tiles of {side} {unit}", kernel, (*codes[:2], *[numbers] * 3, *sizes), True
    carrier = "float32" if fits(unit.result, np.float32) else "float64"
    words = FROM_KEY if unit.stochastic else NO_WORDS
    kernel = rounding_kernel(unit, carrier, ("rows", "rows", "matrix", "rows"), words, False, pieces)
    bits = array(carrier.replace("float", "uint"))
    yield (
        f"exact {unit}", kernel,
        (*codes, *[numbers] * 4, array(np.int64, 2), array(np.uint32, 5), u32, u32, bits, numbers, array(np.uint32),
         *sizes),
    )  # fmt: skip


class ExactEngine:
    """Computes any problem of an ExactDotUnit."""

    kernels_of, tells = staticmethod(kernels_of), False

    def __init__(self, unit: ExactDotUnit) -> None:
        if unit.accumulator.codec.core_format(unit.accumulator) is not unit.accumulator:
            raise NoKernel(f"matmul: no CUDA kernel sums in {unit.accumulator}; copy the CUDA arrays to the host first")
        self.unit = unit

    def run(self, problem: Problem) -> None:
        """Compute it; ValueError for an operand that is no value of its format."""
        p, unit, operands = problem, self.unit, coded_operands(problem)
        a, b, _ = operands
        pieces = pieces_of(unit, p.k) if p.k else None
        sums = _cuda.empty(p.batches * p.m * p.n * pieces.sums if pieces else 1, np.int64)
        if pieces is not None:
            tile, _ = p.first_of([(side, side) for side in SUMS_TILES])
            _cuda.launch(
                sums_kernel(unit.operand, pieces, (a.layout, b.layout), tile, DEPTH), p.grid(tile, tile),
                (tile // SIDE) ** 2, a.flat, b.flat, a.geometry, b.geometry, sums, *p.sizes,
            )  # fmt: skip
        kernel = rounding_kernel(unit, p.out.flat.dtype.name, p.layouts(operands), p.words, p.c is not None, pieces)
        _cuda.launch(
            kernel, p.grid(TILE, TILE), (TILE, TILE), *(x.flat for x in operands), *(x.geometry for x in operands),
            sums, p.counters, p.random, *map(np.uint32, p.keys[:2]), _cuda.bits(p.out.flat), p.out.geometry, p.status,
            *p.sizes,
        )  # fmt: skip


def examples():
    """`kernels_of` representative units, which are linked without a GPU."""
    yield from kernels_of(ExactDotUnit("e6m9", operand="e4m3fn", rounding="stochastic", stochastic_bits=12))
    yield from kernels_of(ExactDotUnit("binary32", operand="binary16"))
    yield from kernels_of(ExactDotUnit("binary32", operand="bfloat16"))

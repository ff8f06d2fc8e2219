"""BlockDotUnits by the definition: products of block arrays whose codes and scales lie on the device.

Sums of blocks that are exact are made in a thread's own fixed-point accumulator; those of another unit by that unit's
engine, block by block. Then a kernel scales each, and adds it to the outer sum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from softnum.formats.c_text import environment_text, format_text
from softnum.formats.names import format
from softnum.kernels.device.elementwise.conversion import FROM_KEY, NO_WORDS
from softnum.kernels.device.products.engines import engine_of
from softnum.kernels.device.products.entries import value_body
from softnum.kernels.device.products.layouts import index_of, loader
from softnum.kernels.device.products.order import DRAWN, words_of
from softnum.kernels.device.products.problem import Operand, Problem, carrier_of, matrices, stand_in, to_codes
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import cuda, ffi
from softnum.kernels.device.runtime.source import Entry, Library
from softnum.mac.blocks import BlockDotUnit
from softnum.mac.family import register
from softnum.mac.products.blocks.matrices import block_operands
from softnum.runtime.gateway import NoKernel

__all__ = ["BlockEngine", "BlockOperand", "block_operands", "examples", "kernels_of", "with_scales"]

_THREADS = 32 if _cuda.SIMULATOR else 64
_STATE = 87  # words of 64 bits: an sn_block_sum, and what is lost
_BITS = {"float32": "uint32", "float64": "uint64"}
_CARRIERS = {"float32": "binary32", "float64": "binary64"}


@dataclass(frozen=True, eq=False)
class BlockOperand(Operand):
    """An operand of codes of elements, with its scales' codes, and the scale of the whole array."""

    scales: Operand | None = None
    tensor_scale: float = 1.0


def with_scales(operand: Operand, array, lead) -> BlockOperand:
    """The operand of a BlockArray's codes with its scales."""
    scales = matrices(array.scales, f"{operand.name}.scales", lead, array.format.scale)
    tensor = 1.0 if array.tensor_scale is None else float(array.tensor_scale)
    return BlockOperand(**vars(operand), scales=scales, tensor_scale=tensor)


def _carrier(unit) -> str:
    return carrier_of(unit).name


# ---- the steps -------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _library(unit, inner: str | None) -> Library:
    """Entries over a state of _STATE words, of which the last tells which formats lacked a code.

    For exact sums ``begin(x, y, state)`` of two scales, ``product(a, b, state)`` of two elements and ``end(acc, first,
    second, state)``; for those of an inner unit, as bits of its carrier, ``add(acc, sum, x, y, first, second, state)``.
    ``finish(acc, c, has_c, x, y, word, state)`` for scales of the arrays, which are binary32; and ``value(code)``.
    """
    (a, b), acc = unit.operand, unit.accumulator
    product_env, sum_env = unit.environments
    kind, u64, u32, state = _BITS[_carrier(unit)], "uint64", "uint32", ("uint64*", "state")
    constants = (
        format_text("_a", a.element) + format_text("_b", b.element) + format_text("_x", a.scale)
        + format_text("_y", b.scale) + format_text("_out", acc) + environment_text("_sum_env", sum_env)
        + format_text("_carrier", format(_CARRIERS[_carrier(unit)])) + format_text("_tensor", format("binary32"))
        + ("" if inner is None else format_text("_inner", format(_CARRIERS[inner])))
        + f"typedef char _fits[sizeof(sn_block_sum) <= {8 * (_STATE - 1)} ? 1 : -1];\n"
    )  # fmt: skip
    told = (
        "const sn_format fo = _out();\nconst sn_env sum_env = _sum_env();\n"
        "sn_told told = sn_told_nothing(0), of_products = told;\n"
    )
    rounding = told + "const sn_u32 words[2] = {first, second};\n"
    if unit.product is None:
        rounding += "const sn_block_rounding r = {0, &fo, 0, &sum_env, &of_products, &told};\n"
    else:
        constants += format_text("_scaled", unit.product) + environment_text("_scaled_env", product_env)
        rounding += (
            "const sn_format fp = _scaled();\nconst sn_env product_env = _scaled_env();\n"
            "const sn_block_rounding r = {&fp, &fo, &product_env, &sum_env, &of_products, &told};\n"
        )
    lost = f"state[{_STATE - 1}] |= sn_told_no_code(&of_products) | sn_told_no_code(&told) << 1;\nreturn code;"
    scales = "const sn_format fx = {}(), fy = {}();\nconst sn_number p = sn_unpack(&fx, x), q = sn_unpack(&fy, y);\n"
    words = ((u32, "first"), (u32, "second"))
    exact = (
        Entry(
            "begin", "void", ((u64, "x"), (u64, "y"), state),
            scales.format("_x", "_y")
            + f"sn_block_begin((sn_block_sum *)state, &p, &q, {unit.bottom}, {unit.plain}, {unit.words});",
        ),
        Entry(
            "product", "void", ((u64, "x"), (u64, "y"), state),
            scales.format("_a", "_b") + "sn_block_product((sn_block_sum *)state, &p, &q);",
        ),
        Entry(
            "end", u64, ((u64, "acc"), *words, state),
            rounding + "const sn_u64 code = sn_block_end((sn_block_sum *)state, &r, acc, words);\n" + lost,
        ),
    )  # fmt: skip
    of_sums = () if inner is None else (
        Entry(
            "add", u64, ((u64, "acc"), (_BITS[inner], "sum"), (u64, "x"), (u64, "y"), *words, state),
            rounding + scales.format("_x", "_y")
            + "const sn_format fi = _inner();\nconst sn_number s = sn_unpack(&fi, sum);\n"
            "const sn_u64 code = sn_block_scaled(&r, &s, &p, &q, acc, words);\n" + lost,
        ),
    )  # fmt: skip
    finish = (
        told + scales.format("_tensor", "_tensor")
        + "const sn_u64 code = sn_tensor_scaled(&fo, &sum_env, acc, &p, &q, has_c ? &c : 0, word, &told);\n" + lost
    )  # fmt: skip
    last = ((u64, "acc"), (u64, "c"), (u32, "has_c"), (u64, "x"), (u64, "y"), (u32, "word"), state)
    entries = (exact if inner is None else of_sums) + (
        Entry("finish", u64, last, finish),
        Entry("value", kind, ((u64, "code"),), value_body(kind)),
    )
    return Library(constants, entries, "softnum/device/device.h softnum/units/block_steps.h")


def _one_block(unit, inner: str | None, layouts):
    """The device function of one block's step: ``(total, a, b, geometry_a, geometry_b, batch, m, n, x, y, its first
    product, the next block's, first, second, state)``."""
    f = _cuda.bind(_library(unit, inner))
    if inner is not None:
        add, load_sum = f.add, loader(layouts[0], _BITS[inner])

        @cuda.jit(device=True)
        def add_sum(total, a, b, geometry_a, geometry_b, batch, m, n, x, y, begins, ends, first, second, state):
            found = load_sum(a, geometry_a, batch, m, n)
            return add(total, found, x, y, first, second, ffi.from_buffer(state))

        return add_sum
    begin, product, end = f.begin, f.product, f.end
    load_a, load_b = (
        loader(layout, fmt.element.storage_dtype.name) for layout, fmt in zip(layouts, unit.operand, strict=False)
    )

    @cuda.jit(device=True)
    def add_products(total, a, b, geometry_a, geometry_b, batch, m, n, x, y, begins, ends, first, second, state):
        begin(x, y, ffi.from_buffer(state))
        for k in range(begins, ends):
            product(
                load_a(a, geometry_a, batch, m, k), load_b(b, geometry_b, batch, k, n), ffi.from_buffer(state)
            )  # fmt: skip
        return end(total, first, second, ffi.from_buffer(state))

    return add_products


@lru_cache(maxsize=64)
def block_kernel(unit, inner: str | None, words: int, has_c: bool, layouts):
    """The kernel of a unit.

    Of exact sums (inner None) it makes the whole product; else it adds one block, whose sums are bits of the carrier
    `inner`. layouts: of a, b, their scales, c and out. Its arguments: codes a and b, or the sums twice; scales' codes;
    c; the geometries of these five; counters; random words; keys; totals between launches (codes); out and its
    geometry; status; both tensor scales in binary32; the first block, the last and how many there are; the length of a
    block; batches, M, N and K.
    """
    f = _cuda.bind(_library(unit, inner))
    value, finish, one_block = f.value, f.finish, _one_block(unit, inner, layouts)
    words_of_step = words_of(unit, words if unit.own_stochastic else NO_WORDS)
    formats = (unit.operand[0].scale, unit.operand[1].scale, unit.accumulator)
    load_x, load_y, load_c = (
        loader(layout, fmt.storage_dtype.name) for layout, fmt in zip(layouts[2:5], formats, strict=True)
    )
    at_out, tensor_scales = index_of(layouts[5]), unit.tensor_scales
    starts_from_c, state_words = has_c and not unit.tensor_scales, _STATE
    u32, u64 = np.uint32, np.uint64

    @cuda.jit
    def kernel(
        a, b, x, y, c, geometry_a, geometry_b, geometry_x, geometry_y, geometry_c, counters, random, key0, key1, key2,
        key3, totals, out, geometry_out, status, tensor_a, tensor_b, first_block, last_block, blocks, length, batches,
        height, width, depth,
    ):  # fmt: skip
        at = cuda.grid(1)
        if at < height * width:
            m = at // width
            n = at - m * width
            state = cuda.local.array(state_words, u64)
            drawn = cuda.local.array(DRAWN, u32)
            for batch in range(cuda.blockIdx.y, batches, cuda.gridDim.y):
                counter_m, counter_n, counter_batch = counters[batch, 0] + m, counters[batch, 1] + n, counters[batch, 2]
                state[state_words - 1] = 0
                drawn[DRAWN - 1] = 0
                index = (batch * height + m) * width + n
                total = start = u64(0)
                if has_c:
                    start = u64(load_c(c, geometry_c, batch, m, n))
                    if starts_from_c or depth == 0:
                        total = start
                if first_block > 0:
                    total = totals[index]
                for j in range(first_block, last_block):
                    first, second = words_of_step(
                        random, drawn, batch, m, n, depth + j, counter_n, counter_m, counter_batch, key0, key1, key2,
                        key3,
                    )  # fmt: skip
                    p, q = load_x(x, geometry_x, batch, m, j), load_y(y, geometry_y, batch, j, n)
                    begins, ends = j * length, min(j * length + length, depth)
                    total = one_block(
                        total, a, b, geometry_a, geometry_b, batch, m, n, p, q, begins, ends, first, second, state
                    )
                if last_block < blocks:
                    totals[index] = total
                else:
                    if tensor_scales and depth > 0:
                        _, second = words_of_step(
                            random, drawn, batch, m, n, depth + blocks, counter_n, counter_m, counter_batch, key0, key1,
                            key2, key3,
                        )  # fmt: skip
                        total = finish(total, start, u32(has_c), tensor_a, tensor_b, second, ffi.from_buffer(state))
                    out[at_out(geometry_out, batch, m, n)] = value(total)
                for i in range(2):
                    if (state[state_words - 1] >> u64(i)) & u64(1) != u64(0):
                        status[i] = 1

    return kernel


# ---- the engine ------------------------------------------------------------------------------------------------------


def _from(operand: Operand, first: int, by_rows: bool) -> Operand:
    """An operand from its row, or column, `first` on."""
    numbers = operand.numbers.copy()
    numbers[2:] += first * numbers[0 if by_rows else 1]
    return replace(
        Operand(**{name: getattr(operand, name) for name in Operand.__dataclass_fields__}),
        numbers=numbers, geometry=_cuda.to_device(numbers),
    )  # fmt: skip


def kernels_of(unit):
    """(name, kernel, types of its arguments) of what computes contiguous arrays without c, words from a key."""
    inner = None if unit.inner is None else carrier_of(unit.inner).name
    if inner is not None:
        yield from engine_of(unit.inner, NO_WORDS).kernels_of(unit.inner)
    words = FROM_KEY if unit.own_stochastic else NO_WORDS
    kernel = block_kernel(unit, inner, words, False, ("rows", "rows", "rows", "rows", "matrix", "rows"))

    array, (a, b) = _cuda.array_type, unit.operand
    elements = [f.element.storage_dtype for f in (a, b)] if inner is None else [_BITS[inner]] * 2
    codes = [*elements, a.scale.storage_dtype, b.scale.storage_dtype, unit.accumulator.storage_dtype]
    i64, u32, u64 = map(_cuda.scalar_type, (np.int64, np.uint32, np.uint64))
    yield f"blocks {unit}", kernel, (
        *map(array, codes), *[array(np.int64)] * 5, array(np.int64, 2), array(np.uint32, 5), u32, u32, u32, u32,
        array(np.uint64), array(_BITS[_carrier(unit)]), array(np.int64), array(np.uint32), u64, u64,
        *[i64] * 8,
    )  # fmt: skip


class BlockEngine:
    """Computes problems of a BlockDotUnit over BlockOperands; NoKernel for a unit whose inner one is stochastic."""

    kernels_of, tells = staticmethod(kernels_of), False

    def __init__(self, unit: BlockDotUnit) -> None:
        if unit.inner is not None and unit.inner.stochastic:
            raise NoKernel(
                f"matmul: no CUDA kernel computes blocks by a unit that rounds stochastically ({unit.inner}); copy the "
                "CUDA arrays to the host first"
            )
        self.unit = unit

    def run(self, problem: Problem) -> None:
        """Compute it; ValueError if a block's sum has no code in the inner unit's formats."""
        p, unit = problem, self.unit
        blocks, size = len(unit.lengths(p.k)), unit.operand[0].size(p.k) if p.k else 1
        none = _cuda.filled(1, np.uint64, 0)
        if unit.inner is None:
            self._add(p, p.a, p.b, None, none, 0, blocks, blocks, size)
            return
        inner, carrier = unit.inner, carrier_of(unit.inner)
        totals = _cuda.empty(p.batches * p.m * p.n, np.uint64)
        sums = matrices(_cuda.empty((p.batches, p.m, p.n), carrier), "sums", (p.batches,))
        status, random = _cuda.filled(len(inner.rounded_to), np.uint32, 0), _cuda.filled((1,) * 5, np.uint32, 0)
        engine, bits = engine_of(inner, NO_WORDS), replace(sums, flat=_cuda.bits(sums.flat))
        for j, length in enumerate(unit.lengths(p.k)):
            a, b = _from(p.a, j * size, False), _from(p.b, j * size, True)
            engine.run(
                Problem(
                    inner, a, b, None, p.m, p.n, length, p.batches, NO_WORDS, (0, 0, 0, 0), p.counters, random, sums,
                    status,
                )
            )  # fmt: skip
            self._add(p, bits, bits, carrier.name, totals, j, j + 1, blocks, size)
        if not blocks:
            self._add(p, bits, bits, carrier.name, totals, 0, 0, 0, size)
        for seen, fmt in zip(_cuda.to_host(status), inner.rounded_to, strict=True):
            if seen and fmt is not None and not fmt.has_nan:
                raise ValueError(f"matmul: the result is NaN or infinite, and {fmt} has no code for it")

    def _add(self, p: Problem, a, b, inner, totals, first: int, last: int, blocks: int, size: int) -> None:
        unit = self.unit
        x, y = p.a.scales, p.b.scales
        c = stand_in(unit.accumulator.storage_dtype) if p.c is None else to_codes(p.c, unit.accumulator)
        operands = a, b, x, y, c
        tensor = [int(np.float32(operand.tensor_scale).view(np.uint32)) for operand in (p.a, p.b)]
        kernel = block_kernel(
            unit, inner, p.words if unit.own_stochastic else NO_WORDS, p.c is not None, p.layouts(operands)
        )
        _cuda.launch(
            kernel, p.grid_of(_THREADS), _THREADS, *(operand.flat for operand in operands),
            *(operand.geometry for operand in operands), p.counters, p.random, *map(np.uint32, p.keys), totals,
            _cuda.bits(p.out.flat), p.out.geometry, p.status, *map(np.uint64, tensor), first, last, blocks, size,
            *p.sizes,
        )  # fmt: skip


register(BlockDotUnit, device=lambda unit, words: BlockEngine(unit))


def examples():
    """`kernels_of` representative units, which are linked without a GPU."""
    yield from kernels_of(BlockDotUnit("binary32", operand="mxfp8_e4m3"))
    yield from kernels_of(BlockDotUnit("binary32", operand="nvfp4", rounding="stochastic", stochastic_bits=8))

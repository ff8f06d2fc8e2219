"""The order of sums, whatever their steps are: chunks, lanes and the reduction of lanes; one thread to an output.

It is for the definition and for units of the user's: lanes are summed one after another, each to its end, and a stack
of a few numbers holds what waits for its reduction, which then makes the additions of the unit, of the same numbers
and with the same random words as in the unit's own order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from softnum.arrays.sources import RandomSource
from softnum.formats.c_text import source_text
from softnum.kernels.device.elementwise.conversion import FROM_ARRAY, FROM_KEY, NO_WORDS
from softnum.kernels.device.products.layouts import index_of, loader
from softnum.kernels.device.products.problem import Problem
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import cuda, ffi
from softnum.kernels.device.runtime.source import Entry, Library
from softnum.mac.order import reduction_order

__all__ = ["DRAWN", "STATE", "Steps", "Tables", "kernel_types", "run_sums", "sums_kernel", "words_of"]

STATE = 3  # of a sum besides itself: which formats lacked a code, the compensations of a lane and of the outer sum

_THREADS = 32 if _cuda.SIMULATOR else 128
_U32, _U64 = np.uint32, np.uint64
DRAWN = 10  # of `words_of`: words of four steps, products' and sums'; an LFSR's state after them; which four they are


@dataclass(frozen=True)
class Steps:
    """What sums are made of, as device functions. Their numbers are codes or floats of one type.

    Parameters
    ----------
    number : type
        NumPy's type of the numbers.
    zero, outer_zero : number
        What lanes start from, and the sum if there is no C.
    step : ``(tables..., acc, a, b, first, second, state)``
        One product more: a and b as they were loaded, the product's and the sum's random word.
    join : ``(tables..., x, y, word, state)``
        The sum of two lanes.
    outer : ``(tables..., outer, part, word, state)``
        A chunk added to the outer sum.
    start : ``(c)``
        C as a number.
    value : ``(tables..., number, state)``
        What is written.
    draws : bool
        Whether additions of lanes and chunks take random words of their own, as a MadUnit's do.
    """

    number: type
    zero: object
    outer_zero: object
    step: object
    join: object
    outer: object
    start: object
    value: object
    draws: bool = True


@dataclass(frozen=True, eq=False)
class Tables:
    """Arrays on the device that steps look up: rows (uint32), cells (int16) and values (uint64)."""

    rows: object
    cells: object
    values: object

    @classmethod
    def none(cls) -> Tables:
        """What steps without tables are given."""
        return cls(*(_cuda.constant(np.zeros(1, kind)) for kind in (np.uint32, np.int16, np.uint64)))


_BY_DEFAULT = """const sn_step_words w = sn_words_of_steps(four, (sn_u32)n, (sn_u32)m, (sn_u32)batch, key, key + 2,
                                          {two}, {wide});
"""
_BY_PHILOX = """const sn_source s = _source();
sn_step_words w;
w.product = w.sum = sn_source_philox(&s, four, (sn_u32)n, (sn_u32)m, (sn_u32)batch, key);
"""
_BY_LFSR = """const sn_source s = _source();
sn_step_words w;
if (four == 0 || drawn[9] != four)
    drawn[8] = sn_lfsr_product(&s, sn_lfsr_power(&s, (sn_u64)four * 4),
                               sn_lfsr_start(&s, (sn_u32)n, (sn_u32)m, (sn_u32)batch, key));
for (sn_i32 i = 0; i < 4; i++)
    w.product.w[i] = w.sum.w[i] = sn_lfsr_step(&s, &drawn[8]);
"""


@lru_cache(maxsize=32)
def _words_library(source: RandomSource, two_roundings: bool, wide: bool) -> Library:
    """The entry ``draw(step, n, m, batch, keys..., drawn)``: a step's random words into drawn, four steps at a time.

    drawn: those of products, of sums, an LFSR's state after them, and 1 more than step div 4. two_roundings: they share
    a word, of which the sum gets the upper half; or it has one of a second key, if they are wide.
    """
    how = _BY_DEFAULT if source.is_default else _BY_LFSR if source.kind == "lfsr" else _BY_PHILOX
    how = how.format(two=int(two_roundings), wide=int(wide)) if source.is_default else how
    shift = source.half if two_roundings and not source.is_default else 0
    body = f"""
const sn_u32 four = (sn_u32)(step / 4), key[4] = {{key0, key1, key2, key3}};
if (drawn[9] == four + 1) return;
{how}for (sn_i32 i = 0; i < 4; i++) {{
    drawn[i] = w.product.w[i];
    drawn[4 + i] = w.sum.w[i] >> {shift};
}}
drawn[9] = four + 1;
"""
    arguments = (
        *((("int64", name)) for name in ("step", "n", "m", "batch")),
        *((("uint32", f"key{i}")) for i in range(4)), ("uint32*", "drawn"),
    )  # fmt: skip
    return Library(source_text("_source", source), (Entry("draw", "void", arguments, body),), "softnum/word/source.h")


def words_of(unit, words: int):
    """The device function ``(random, drawn, batch, m, n, step, counter_n, counter_m, counter_batch, keys...)``: the
    random words of a step, the product's and the sum's. words: where from; drawn: a local array of DRAWN."""
    two = unit.two_roundings
    return _words_of(unit.random_source, two, two and unit.stochastic_bits > 16, words)


@lru_cache(maxsize=64)
def _words_of(source: RandomSource, two_roundings: bool, wide: bool, words: int):
    draw, none = _cuda.bind(_words_library(source, two_roundings, wide)).draw, _U32(0)

    @cuda.jit(device=True)
    def from_key(random, drawn, batch, m, n, step, counter_n, counter_m, counter_batch, key0, key1, key2, key3):
        draw(step, counter_n, counter_m, counter_batch, key0, key1, key2, key3, ffi.from_buffer(drawn))
        return drawn[step & 3], drawn[4 + (step & 3)]

    @cuda.jit(device=True)
    def from_array(random, drawn, batch, m, n, step, counter_n, counter_m, counter_batch, key0, key1, key2, key3):
        return random[batch, m, n, step, 0], random[batch, m, n, step, 1]

    @cuda.jit(device=True)
    def no_words(random, drawn, batch, m, n, step, counter_n, counter_m, counter_batch, key0, key1, key2, key3):
        return none, none

    return {FROM_KEY: from_key, FROM_ARRAY: from_array}.get(words, no_words)


@dataclass(frozen=True)
class _Schedule:
    """When lanes are added: after slot i, `counts[i]` times the two numbers on top of the stack become one.

    steps: of these additions in turn, their place in the unit's own order. depth: of the stack.
    """

    counts: tuple[int, ...]
    steps: tuple[int, ...]
    depth: int

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, slots: int, reduction: str) -> _Schedule:
        trees = list(range(slots))
        for place, (i, j) in enumerate(reduction_order(slots, reduction)):
            trees[i] = (place, trees[i], trees[j])
        counts, steps, height, depth = [], [], 0, 0
        pending = [trees[0]]
        while pending:
            node = pending.pop()
            if isinstance(node, tuple):
                pending += [("add", node[0]), node[2], node[1]] if node[0] != "add" else []
                if node[0] == "add":
                    steps.append(node[1])
                    counts[-1] += 1
                    height -= 1
            else:
                counts.append(0)
                height += 1
                depth = max(depth, height)
        return cls(tuple(counts), tuple(steps), depth)

    @property
    def numbers(self) -> np.ndarray:
        """For the kernel: where each slot's additions begin in what follows, and their places."""
        ends = np.cumsum([0, *self.counts])
        return np.array([*ends, *self.steps], np.int64)


def sums_kernel(steps: Steps, unit, words: int, has_c: bool, layouts, types, zeros=(0, 0, 0)):
    """The kernel of a unit's sums.

    layouts: of a, b, c and out; types: of the elements of a, b and c, of which zeros stand for 0. The arguments are
    those of `Problem` (a, b, c; their geometries; counters; random; keys; out and its geometry; status), tables, the
    schedule of the reduction, and batches, M, N and K.
    """
    step, join, outer_add, start, value = steps.step, steps.join, steps.outer, steps.start, steps.value
    number, zero, outer_zero = _cuda.scalar_type(steps.number), steps.zero, steps.outer_zero
    words_of_step = words_of(unit, words)
    words_of_addition = words_of(unit, words if steps.draws else NO_WORDS)
    taken = zip(layouts, types, zeros, strict=False)
    load_a, load_b, load_c = (loader(x, np.dtype(kind).name, zero) for x, kind, zero in taken)
    at_out = index_of(layouts[3])
    lanes, chunk, formats = unit.lanes, unit.chunk or 0, len(unit.rounded_to)
    joined = has_c and lanes > 1 and not chunk  # C is one of the numbers that are reduced
    slots = lanes + joined
    depth_of_stack = _Schedule.of(slots, unit.reduction).depth

    @cuda.jit
    def kernel(
        a, b, c, geometry_a, geometry_b, geometry_c, counters, random, key0, key1, key2, key3, out, geometry_out,
        status, rows, cells, values, schedule, batches, height, width, depth,
    ):  # fmt: skip
        at = cuda.grid(1)
        if at < height * width:
            m = at // width
            n = at - m * width
            stack = cuda.local.array(depth_of_stack, number)
            state = cuda.local.array(STATE, _U64)
            drawn = cuda.local.array(DRAWN, _U32)
            for batch in range(cuda.blockIdx.y, batches, cuda.gridDim.y):
                counter_m, counter_n, counter_batch = counters[batch, 0] + m, counters[batch, 1] + n, counters[batch, 2]
                for i in range(STATE):
                    state[i] = 0
                drawn[DRAWN - 1] = 0
                total = outer_zero
                if has_c:
                    total = start(load_c(c, geometry_c, batch, m, n))
                reduction = depth
                begin = 0
                while begin < depth:
                    end = depth
                    if chunk > 0 and chunk < depth - begin:
                        end = begin + chunk
                    top = 0
                    acc = zero
                    for slot in range(slots):
                        acc = zero
                        if chunk == 0 and (lanes == 1 or (joined and slot == 0)):
                            acc = total
                        if not (joined and slot == 0):
                            state[1] = 0
                            for k in range(begin + slot - joined, end, lanes):
                                first, second = words_of_step(
                                    random, drawn, batch, m, n, k, counter_n, counter_m, counter_batch, key0, key1,
                                    key2, key3,
                                )  # fmt: skip
                                x, y = load_a(a, geometry_a, batch, m, k), load_b(b, geometry_b, batch, k, n)
                                acc = step(rows, cells, values, acc, x, y, first, second, state)
                        if slots > 1:
                            stack[top] = acc
                            top += 1
                            for i in range(schedule[slot], schedule[slot + 1]):
                                k = reduction + schedule[slots + 1 + i]
                                _, word = words_of_addition(
                                    random, drawn, batch, m, n, k, counter_n, counter_m, counter_batch, key0, key1,
                                    key2, key3,
                                )  # fmt: skip
                                top -= 1
                                stack[top - 1] = join(rows, cells, values, stack[top - 1], stack[top], word, state)
                    if slots > 1:
                        acc = stack[0]
                        reduction += slots - 1
                    if chunk > 0:
                        _, word = words_of_addition(
                            random, drawn, batch, m, n, reduction, counter_n, counter_m, counter_batch, key0, key1,
                            key2, key3,
                        )  # fmt: skip
                        total = outer_add(rows, cells, values, total, acc, word, state)
                        reduction += 1
                    else:
                        total = acc
                    begin = end
                out[at_out(geometry_out, batch, m, n)] = value(rows, cells, values, total, state)
                for i in range(formats):
                    if (state[0] >> _U64(i)) & _U64(1) != _U64(0):
                        status[i] = 1

    return kernel


def run_sums(problem: Problem, kernel, operands, tables: Tables | None = None) -> None:
    """Launch such a kernel; operands: a, b and c as it takes them."""
    p, tables = problem, tables or Tables.none()
    joined = p.c is not None and p.unit.lanes > 1 and not p.unit.chunk
    schedule = _cuda.constant(_Schedule.of(p.unit.lanes + joined, p.unit.reduction).numbers)
    _cuda.launch(
        kernel, p.grid_of(_THREADS), _THREADS, *(x.flat for x in operands), *(x.geometry for x in operands),
        p.counters, p.random, *map(_U32, p.keys), _cuda.bits(p.out.flat), p.out.geometry, p.status, tables.rows,
        tables.cells, tables.values, schedule, *p.sizes,
    )  # fmt: skip


def kernel_types(a, b, c, out) -> tuple:
    """The types of the kernel's arguments, for operands and results of these types of elements."""
    array, i64, u32 = _cuda.array_type, _cuda.scalar_type(np.int64), _cuda.scalar_type(_U32)
    return (
        array(a), array(b), array(c), *[array(np.int64)] * 3, array(np.int64, 2), array(np.uint32, 5), u32, u32, u32,
        u32, array(out), array(np.int64), array(np.uint32), array(np.uint32), array(np.int16), array(np.uint64),
        array(np.int64), i64, i64, i64, i64,
    )  # fmt: skip

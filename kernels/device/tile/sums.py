"""Sums of operators on the device: products of matrices, and sums, of the unit, in layouts of the indices.

A sum of products is one problem for the unit's engine (`gemm`): an operand is read in place where indices lead, zeros
where they lead outside, so that transposed and broadcast tensors, convolutions and their gradients take no memory.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from math import prod

import numpy as np

from softnum.kernels.device.elementwise.conversion import NO_WORDS
from softnum.kernels.device.products.conv import divisor
from softnum.kernels.device.products.gemm import batch_counters, compute, engine_of, new_status, random_words
from softnum.kernels.device.products.layouts import add_layout
from softnum.kernels.device.products.mad import fast
from softnum.kernels.device.products.mad.steps import steps_of
from softnum.kernels.device.products.problem import Operand, Problem, carrier_of, lined
from softnum.kernels.device.products.reduce import sum as add
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import ffi
from softnum.kernels.device.runtime.source import Entry, Library
from softnum.kernels.device.tile.steps import Tensor, array_of, new, reshaped
from softnum.kernels.device.tile.terms import axes_of, limits_of, materialised
from softnum.mac.mad import MadUnit
from softnum.mac.products.engines import fast_of
from softnum.runtime.gateway import NoKernel
from softnum.tile.arithmetic import has_zero, key_of
from softnum.tile.contract import is_product, sides
from softnum.tile.loops import Line, everywhere, reading
from softnum.tile.syntax import Access

__all__ = ["examples", "sum_of_axes", "sums"]

_BOUNDS = (False, False), (False, True), (False, True)  # of an image: where to read, and two lines with bounds
_MOST_STARTS = 1 << 20  # matrices of which each has its start in the geometry


# -- layouts -----------------------------------------------------------------------------------------------------------
class _Reading:
    """Elements of a flat array over axes: where they lie (a `Line`), and the lines that say whether they exist."""

    def __init__(self, offset: Line, limits=(), axes=()) -> None:
        self.offset, self.limits, self.axes = offset, tuple(limits), set(axes)

    @classmethod
    def dense(cls, lengths, axes) -> _Reading:
        """Over some axes in the order given, in C order."""
        coefficients = [0] * len(lengths)
        for place, a in enumerate(axes):
            coefficients[a] = prod(lengths[b] for b in axes[place + 1 :])
        return cls(Line(tuple(coefficients), 0), (), (a for a in axes if lengths[a] != 1))


def _stride(offset: Line, axes, lengths) -> int | None:
    """The step from one place of axes to the next, if there is one for all; 1 if there is but one place."""
    steps = [(offset.coefficients[a], lengths[a]) for a in axes if lengths[a] != 1]
    if any(c != after * n for (c, _), (after, n) in pairwise(steps)):
        return None
    return steps[-1][0] if steps else 1


def _operand(flat, found: _Reading, lengths, sides, shape, name: str, format=None, base: str = "") -> Operand:
    """An array read as matrices; sides: the axes of the batches, the rows and the columns. base: what errors name."""
    batch, rows, columns = sides
    facts = shape or (1,), name, format, (), base
    offset = found.offset
    strides = [_stride(offset, axes, lengths) for axes in (rows, columns)]
    many = prod(lengths[a] for a in batch)
    if not found.limits and offset.scale == 1 and None not in strides and many <= _MOST_STARTS:
        starts = np.array([offset.constant], np.int64)
        for a in batch:
            starts = (starts[:, None] + offset.coefficients[a] * np.arange(lengths[a])).reshape(-1)
        return lined(flat, *strides, starts, *facts)
    groups = [[a for a in axes if lengths[a] != 1] for axes in (batch, rows, columns)]
    axes = [a for group in groups for a in group]
    lines = [offset, *found.limits]
    used = tuple(tuple(line.coefficients[a] != 0 for a in axes) for line in lines)
    bounded = tuple((line.scale != 1, line.bound is not None) for line in lines)
    numbers = [part for a in axes for part in divisor(lengths[a])]
    for line in lines:
        numbers += [line.constant, *(line.coefficients[a] for a in axes if line.coefficients[a])]
        numbers += [line.scale] * (line.scale != 1) + ([] if line.bound is None else [line.bound])
    layout = _indexed(tuple(len(group) for group in groups), used, bounded)
    return Operand(flat, layout, _cuda.constant(np.array(numbers or [0], np.int64)), *facts)


@cache
def _indexed(counts: tuple[int, ...], used: tuple, bounded: tuple) -> str:
    """The layout of indices that are sums of multiples of the places in axes; it is made known at the first use.

    counts: of the axes of the batches, the rows and the columns, places in which are below 2**31 (`conv.divisor`).
    used: which of the axes each line depends on, the first line giving the place, the others whether there is an
    element; bounded: whether they have a scale and a bound.
    """
    body, number, axis = ["(void)batch, (void)row, (void)column;"], 3 * sum(counts), 0
    for name, count in zip(("batch", "row", "column"), counts, strict=True):
        for a in reversed(range(axis + 1, axis + count)):
            quotient = f"{name}{a}"
            body.append(f"const sn_i64 {quotient} = {name} * p[{3 * a + 1}] >> p[{3 * a + 2}];")
            body.append(f"const sn_i64 x{a} = {name} - {quotient} * p[{3 * a}];\n{name} = {quotient};")
        body.append(f"const sn_i64 x{axis} = {name};" if count else "")
        axis += count
    tests, place = [], "0"
    for i, (axes, (scaled, limited)) in enumerate(zip(used, bounded, strict=True)):
        terms = [f"p[{number}]"]
        number += 1
        for a in (a for a, is_used in enumerate(axes) if is_used):
            terms.append(f"p[{number}] * x{a}")
            number += 1
        body.append(f"const sn_i64 l{i} = {' + '.join(terms)};")
        scale = f"p[{number}]"
        number += scaled
        if i == 0:
            place = f"l0 / {scale}" if scaled else "l0"
        elif scaled:
            tests.append(f"l{i} % {scale} != 0")
        if limited:
            tests.append(f"l{i} < 0 || l{i} >= p[{number}]")
            number += 1
    outside = f"({' || '.join(tests)}) ? -1 : " if tests else ""
    body.append(f"return {outside}{place};")
    arguments = (("int64*", "p"), ("int64", "batch"), ("int64", "row"), ("int64", "column"))
    entry = Entry("at", "int64", arguments, "\n".join(line for line in body if line))
    library = Library("", (entry,), "softnum/word/base.h")
    at = _cuda.bind(library).at

    def index(geometry, batch, row, column):
        return at(ffi.from_buffer(geometry), batch, row, column)

    name = f"indices {library.symbol(entry)}"
    add_layout(name, index, padded=bool(tests))
    return name


# -- contractions ------------------------------------------------------------------------------------------------------
def sums(run, space, number: int) -> Tensor:
    """A contraction that adds."""
    step, unit = space.step, run.settings.unit(space.step.base)
    key = key_of(run.key, number) if unit.stochastic else None
    if not is_product(step.body):
        terms = _whole_tensor(run, space)
        if terms is None:
            ((terms, _),) = materialised(run, space, number, [(step.body, unit.result, True, range(space.ndim))])
        free = tuple(range(len(space.shape), space.ndim))
        if not free:  # one term for each element, to which +0 is added
            terms, free = terms.moved((*terms.shape, 1)), (space.ndim,)
        return sum_of_axes(terms, unit, free, key, step.base)
    parts = [step.body.left, step.body.right]
    in_place = [_is_read_in_place(run, space, x, fmt) for x, fmt in zip(parts, unit.operand, strict=True)]
    asked = [
        None if there else (x, fmt, first, ())
        for x, fmt, there, first in zip(parts, unit.operand, in_place, (True, False), strict=True)
    ]  # fmt: skip
    made = materialised(run, space, number, asked) if None in in_place or not all(in_place) else [None, None]
    tensors, readings = [], []
    for x, found, first in zip(parts, made, (True, False), strict=True):
        if found is not None:
            tensor, axes = found
            readings.append(_Reading.dense(space.lengths, axes))
        else:
            tensor = run.values[x.name]
            readings.append(_read_in_place(space, x, tensor, first))
        tensors.append(tensor)
    names = [x.name if isinstance(x, Access) else "" for x in parts]
    return _product(space, unit, tensors, readings, names, key)


def _whole_tensor(run, space) -> Tensor | None:
    """The terms of a sum, if they are a tensor's elements in their own order."""
    x = space.step.body
    if not isinstance(x, Access) or limits_of(everywhere(space), space.lengths):
        return None
    tensor = run.values[x.name]
    offset, lines = reading(x, tensor.shape, space)
    dense = _Reading.dense(space.lengths, range(space.ndim)).offset
    steps = zip(offset.coefficients, dense.coefficients, space.lengths, strict=True)
    straight = offset.scale == 1 and not offset.constant and all(n == 1 or c == d for c, d, n in steps)
    return tensor.moved(space.lengths) if straight and not limits_of(lines, space.lengths) else None


def _is_read_in_place(run, space, x, fmt) -> bool:
    """Whether an engine may read a factor where it lies, and check all of it."""
    if not isinstance(x, Access):
        return False
    tensor = run.values[x.name]
    return tensor.format == fmt or (space.is_straight(x) and _is_read_whole(space, x, tensor))


def _is_read_whole(space, x, tensor) -> bool:
    """Whether an access that takes each element once takes them all."""
    offset, lines = reading(x, tensor.shape, space)
    many = prod(space.lengths[a] for a in axes_of([offset], space.lengths))
    return offset.scale == 1 and many == tensor.size and not limits_of(lines, space.lengths)


def _read_in_place(space, x, tensor, first: bool) -> _Reading:
    offset, lines = reading(x, tensor.shape, space)
    limits, axes = limits_of(lines, space.lengths), axes_of([offset], space.lengths)
    if limits:
        axes |= axes_of(lines, space.lengths)
    everywhere_ = everywhere(space) if first else []
    outside = limits_of(everywhere_, space.lengths)
    if outside:
        axes |= axes_of(everywhere_, space.lengths)
    if (limits or outside) and not has_zero(tensor.format):
        raise space.no_zero(tensor.format, x.at if limits else space.step.body.at)
    return _Reading(offset, [*limits, *outside], axes)


def _product(space, unit, tensors, readings, names, key) -> Tensor:
    """The sum of products of two readings of the space's axes."""
    lengths, ndim = space.lengths, len(space.shape)
    batch, rows, columns = sides(ndim, *(found.axes for found in readings))
    free = list(range(ndim, space.ndim))
    batches, m, n, k = (prod(lengths[a] for a in axes) for axes in (batch, rows, columns, free))
    out = new(prod(space.shape), _carrier(unit, space.step.base))
    if prod(space.shape):
        if max(m, n, batches, unit.steps(k)) >= 2**31:
            raise ValueError(f"no dimension of CUDA arrays may reach 2**31, got {batches} products of {m, k, n}")
        base, sides_of = space.step.base, ((batch, rows, free), (batch, free, columns), (batch, rows, columns))
        a, b = (
            _operand(flat, found, lengths, axes, tensor.shape, name, fmt, base)
            for (flat, fmt), tensor, found, axes, name in zip(
                map(_given, tensors), tensors, readings, sides_of, names, strict=False
            )
        )  # fmt: skip
        target = _operand(out, _Reading.dense(lengths, range(ndim)), lengths, sides_of[2], space.shape, "out")
        whole = (*((batches,) if batch else ()), m, n)
        words, keys, random = random_words(unit, key, None, whole, unit.steps(k), base)
        counters, status = batch_counters(batches), new_status(unit)
        compute(Problem(unit, a, b, None, m, n, k, batches, words, keys, counters, random, target, status), base)
    return Tensor(unit.result, space.shape, values=out)


def _given(tensor: Tensor) -> tuple:
    """(elements, their format): carriers of no format, or codes where no carrier holds the format."""
    return (tensor.codes, tensor.format) if tensor.values is None else (tensor.values, None)


def _carrier(unit, base: str):
    """The type of a unit's results; NoKernel if no engine computes them."""
    try:
        engine_of(unit, NO_WORDS)
        return carrier_of(unit, base)
    except TypeError as error:
        raise NoKernel(str(error)) from None


# -- sums alone --------------------------------------------------------------------------------------------------------
def sum_of_axes(tensor: Tensor, unit, axes, key, base: str) -> Tensor:
    """`softnum.sum` of a tensor over some of its axes."""
    shape = tuple(n for a, n in enumerate(tensor.shape) if a not in axes)
    dtype = _carrier(unit, base)
    if not prod(shape):
        return Tensor(unit.result, shape, values=new(0, dtype))
    if not tensor.size:  # sums of nothing
        return Tensor(unit.result, shape, values=_cuda.filled(prod(shape), dtype, 0))
    by_codes = tensor.values is None or "float64" not in tensor.format.arithmetic.carriers
    x = array_of(tensor) if by_codes else reshaped(tensor.values, tensor.shape)
    result = add(x, unit, axes, key=key)
    return Tensor(unit.result, shape, values=result.reshape(result.size))


def examples():
    """Kernels for the link check: a convolution that is read in place, and fast."""
    unit = MadUnit("e6m9", operand="e5m2")
    steps = steps_of(unit, fast_of(unit).levels[0])
    _, _, types, _ = next(fast.kernels_of(unit))
    image = _indexed((0, 3, 3), ((True,) * 6, (False, True, False) * 2, (False, False, True) * 2), _BOUNDS)
    layouts = image, "columns", "matrix", _indexed((0, 3, 1), ((True,) * 4,), _BOUNDS[:1])
    block = fast.block_of(steps, 64, 64, 1)
    kernel = fast.blocks_kernel(steps, block, layouts, ("float32",) * 3, (False, False), "float32", False)
    yield f"a convolution as Tile has it, on {unit}", kernel, types, True

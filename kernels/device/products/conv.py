"""softnum.conv2d and its gradients for CUDA arrays: products whose operands are read out of the images in place.

The matrices are those of softnum/conv.py, of which nothing is laid out: a layout's index says where in the image an
element of the matrix lies, or that it is a padded zero. The batches of the product are the convolution's groups.
Indices are below 2**31, so that a quotient by d is a multiplication: with l = ceil(log2 d) and m = floor(2**(31 + l) /
d) + 1 it is n * m >> 31 + l (Granlund and Montgomery, "Division by Invariant Integers using Multiplication", 1994), in
64 bits.

In machine code for sm_90 the inner loop is that of matrices (9.3 instructions for each multiply-add of e5m2 into e6m9,
one rounding, bounds unknown), and to read a tile takes 1700 instructions of a thread (the gradient by the input 2100,
that by the weights 1900) where a matrix takes 310, for 512 multiply-adds: a predicted 78 % (73 %, 76 %) of matmul's
rate, 2.6e12 a second on an H200 by the issue of instructions. Not measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np

from softnum.kernels.device.products.gemm import (
    array_and_format,
    check_broadcasts,
    compute,
    given_words,
    new_status,
    random_words,
)
from softnum.kernels.device.products.layouts import add_layout
from softnum.kernels.device.products.mad import fast
from softnum.kernels.device.products.mad.steps import steps_of
from softnum.kernels.device.products.problem import Operand, Problem, carrier_of, lined
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import cuda
from softnum.kernels.device.runtime.strides import contiguous, dense, one_step, transposed
from softnum.mac.mad import MadUnit
from softnum.mac.products.engines import fast_of
from softnum.mac.products.operands import refuse_blocks
from softnum.mac.products.unfold import Shape, backward_data_shape, backward_weight_shape, forward_shape
from softnum.runtime.gateway import is_device_array

__all__ = ["conv2d", "conv2d_backward_data", "conv2d_backward_weight", "divisor", "examples"]

_BITS = 31  # of numbers that are divided


# ---- layouts ---------------------------------------------------------------------------------------------------------
# A divisor takes three numbers of a geometry: itself, m and 31 + l.
@cuda.jit(device=True)
def _quotient(geometry, at, n):
    return n * geometry[at + 1] >> geometry[at + 2]


def divisor(d: int) -> tuple[int, int, int]:
    """The three numbers of a divisor."""
    d = max(d, 1)  # of an empty array, in which nothing is divided
    shift = _BITS + (d - 1).bit_length()
    return d, (1 << shift) // d + 1, shift


@cuda.jit(device=True)
def _six(geometry, row, column):
    """(image, y, x) of a row, and (channel, ky, kx) of a column."""
    image = _quotient(geometry, 14, row)
    left = row - image * geometry[14]
    y = _quotient(geometry, 17, left)
    x = left - y * geometry[17]
    channel = _quotient(geometry, 20, column)
    left = column - channel * geometry[20]
    ky = _quotient(geometry, 23, left)
    kx = left - ky * geometry[23]
    return image, y, x, channel, ky, kx


def _patches(geometry, batch, row, column):
    """Row: (image, y, x) of the result, column: (channel, ky, kx) of the input, padded."""
    image, y, x, channel, ky, kx = _six(geometry, row, column)
    y = y * geometry[6] + ky * geometry[8] - geometry[10]
    x = x * geometry[7] + kx * geometry[9] - geometry[11]
    if y < 0 or x < 0 or y >= geometry[12] or x >= geometry[13]:
        return np.int64(-1)
    at = geometry[0] + batch * geometry[1] + image * geometry[2]
    return at + channel * geometry[3] + y * geometry[4] + x * geometry[5]


def _sources(geometry, batch, row, column):
    """Row: (image, y, x) of the input, column: (channel of the result, ky, kx); 0 where these two never met."""
    image, y, x, channel, ky, kx = _six(geometry, row, column)
    y += geometry[10] - ky * geometry[8]
    x += geometry[11] - kx * geometry[9]
    if y < 0 or x < 0:
        return np.int64(-1)
    to_y, to_x = _quotient(geometry, 26, y), _quotient(geometry, 29, x)
    if to_y * geometry[6] != y or to_x * geometry[7] != x or to_y >= geometry[12] or to_x >= geometry[13]:
        return np.int64(-1)
    at = geometry[0] + batch * geometry[1] + image * geometry[2]
    return at + channel * geometry[3] + to_y * geometry[4] + to_x * geometry[5]


def _triples(geometry, batch, row, column):
    """Row: three indices, of a stride each; column: one."""
    first = _quotient(geometry, 6, row)
    left = row - first * geometry[6]
    second = _quotient(geometry, 9, left)
    third = left - second * geometry[9]
    at = geometry[0] + batch * geometry[1] + column * geometry[5]
    return at + first * geometry[2] + second * geometry[3] + third * geometry[4]


_patches_at = cuda.jit(device=True)(_patches)


def _turned_patches(geometry, batch, row, column):
    return _patches_at(geometry, batch, column, row)


add_layout("patches", _patches, padded=True, along_rows=True)
add_layout("turned patches", _turned_patches, padded=True)
add_layout("sources", _sources, padded=True, along_rows=True)
add_layout("triples", _triples, along_rows=True)


# ---- operands --------------------------------------------------------------------------------------------------------
class _Given:
    """An array as a caller gave it."""

    def __init__(self, caller: str, name: str, x) -> None:
        self.caller, self.name = caller, name
        self.array, self.format = array_and_format(x, name, caller)
        self.shape = tuple(int(n) for n in self.array.shape)

    def checked(self):
        """Itself, of four dimensions."""
        if len(self.shape) != 4:
            raise ValueError(f"{self.caller}: {self.name} has four dimensions, got shape {self.shape}")
        return self

    @property
    def facts(self) -> tuple:
        """Of an `Operand`."""
        return self.shape, self.name, self.format


def _images(given: _Given, s: Shape, layout: str) -> Operand:
    """An operand that is unfolded: of x "patches" or "turned patches", of dy "sources"."""
    flat, first, (n, c, y, x) = dense(given.array)
    backward = layout == "sources"
    rows, size, channels = (s.size, s.result, s.per_group[1]) if backward else (s.result, s.size, s.per_group[0])
    numbers = [first, channels * c, n, c, y, x, *s.stride, *s.dilation, *s.padding, *size]
    for d in (prod(rows), rows[1], prod(s.kernel), s.kernel[1], *s.stride):
        numbers += divisor(d)
    geometry = _cuda.constant(np.array(numbers, np.int64))
    return Operand(flat, layout, geometry, *given.facts, (n, c, y, x), given.caller)


def _triple(given: _Given, shape, rows, column: int, by: int, groups: int) -> Operand:
    """An operand, broadcast to a shape, whose rows are the three axes `rows`, and whose columns are the axis `column`;
    a group has its part of the axis `by`."""
    flat, first, own = dense(given.array)
    strides = (0,) * (len(shape) - len(own)) + tuple(0 if n == 1 else s for s, n in zip(own, given.shape, strict=True))
    inner, across, group = [strides[i] for i in rows], strides[column], shape[by] // groups * strides[by]
    sizes = [shape[i] // (groups if i == by else 1) for i in rows]
    step = one_step(sizes, inner)
    if step is not None:
        starts = first + np.arange(groups, dtype=np.int64) * group
        return lined(flat, step, across, starts, *given.facts, own, given.caller)
    numbers = [first, group, *inner, across, *divisor(sizes[1] * sizes[2]), *divisor(sizes[2])]
    return Operand(flat, "triples", _cuda.constant(np.array(numbers, np.int64)), *given.facts, own, given.caller)


def _words(caller, unit, key, random_bits, shape, axes, groups: int, steps: int):
    """`random_words`, of which those in an array are put in the order (group, rows, columns of the group, steps, 2)."""
    if random_bits is None or not unit.stochastic:
        return random_words(unit, key, None, (), steps, caller)
    random_bits = given_words(random_bits, (*shape, steps, 2), caller)
    sizes = [shape[i] for i in axes]
    order = (3, 0, 1, 2, 4, 5, 6)
    split = (*sizes[:3], groups, sizes[3] // groups, steps, 2)
    if is_device_array(random_bits):
        words = contiguous(transposed(random_bits, (*axes, 4, 5))).reshape(split)
        words = contiguous(transposed(words, order))
    else:
        words = np.ascontiguousarray(random_bits.transpose(*axes, 4, 5).reshape(split).transpose(order))
    matrix = (groups, prod(sizes[:3]), sizes[3] // groups)
    return random_words(unit, key, words.reshape((*matrix, steps, 2)), matrix, steps, caller)


# ---- products --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Kind:
    """How a convolution is a product of matrices.

    Parameters
    ----------
    names : of its two arrays, the first of which is unfolded
    shape : ``(caller, the arrays' shapes, what gradients are told, first operand's format, options)`` -> Shape
    result : ``(Shape)`` -> the result's shape
    layout : of the first array
    rows, column, by : axes of the second array
        Those along k, that of columns, and that of which each group has a part.
    axes : of the result
        Those of its rows, then that of its columns.
    """

    names: tuple[str, str]
    shape: Callable
    result: Callable
    layout: str
    rows: tuple[int, int, int]
    column: int
    by: int
    axes: tuple[int, int, int, int]


_KINDS = {
    "conv2d": _Kind(
        ("x", "w"), forward_shape, lambda s: (s.images, s.filters, *s.result), "patches", (1, 2, 3), 0, 0, (0, 2, 3, 1)
    ),
    "conv2d_backward_data": _Kind(
        ("dy", "w"), backward_data_shape, lambda s: (s.images, s.channels, *s.size), "sources", (0, 2, 3), 1, 0,
        (0, 2, 3, 1),
    ),
    "conv2d_backward_weight": _Kind(
        ("x", "dy"), backward_weight_shape, lambda s: (s.filters, s.per_group[0], *s.kernel), "turned patches",
        (0, 2, 3), 1, 1, (1, 2, 3, 0),
    ),
}  # fmt: skip


def _convolution(caller: str, arrays, unit, told, c, options, key, random_bits):
    """The result: a product for each group. told: the size or kernel of gradients; options: stride and so on."""
    kind, dtype = _KINDS[caller], carrier_of(unit, caller)
    refuse_blocks(unit.operand[0], caller)
    x, y = (_Given(caller, name, x).checked() for name, x in zip(kind.names, arrays, strict=True))
    s = kind.shape(caller, x.shape, y.shape, *told, unit.operand[0], *options)
    shape, axes = kind.result(s), kind.axes
    m, n = prod(shape[i] for i in axes[:3]), shape[axes[3]] // s.groups
    k = prod(y.shape[i] // (s.groups if i == kind.by else 1) for i in kind.rows)
    steps = unit.steps(k) if c is None else unit.steps_with_c(k)
    if max(m, n, s.groups, k, steps, *(n + 2 * p for n, p in zip(s.size, s.padding, strict=True))) >= 1 << _BITS:
        raise ValueError(f"{caller}: no dimension of CUDA arrays may reach 2**31, got {shape} and K = {k}")
    a, b = _images(x, s, kind.layout), _triple(y, y.shape, kind.rows, kind.column, kind.by, s.groups)
    if c is not None:
        given = _Given(caller, "c", c)
        check_broadcasts(given.array, shape, caller)
        c = _triple(given, shape, axes[:3], axes[3], axes[3], s.groups)
    words, keys, random = _words(caller, unit, key, random_bits, shape, axes, s.groups, steps)
    out = _cuda.empty(shape, dtype)
    target = _triple(_Given(caller, "out", out), shape, axes[:3], axes[3], axes[3], s.groups)
    counters = np.zeros((s.groups, 3), np.int64)
    counters[:, 1] = np.arange(s.groups) * n
    compute(
        Problem(
            unit, a, b, c, m, n, k, s.groups, words, keys, _cuda.constant(counters), random, target, new_status(unit)
        ),
        caller,
    )
    return out


def conv2d(x, w, unit, c, *options, key=None, random_bits=None):
    """`softnum.conv2d` of device arrays, or of Arrays of device codes: the bits of the CPU.

    options: stride, padding, dilation and groups.
    """
    return _convolution("conv2d", (x, w), unit, (), c, options, key, random_bits)


def conv2d_backward_data(dy, w, unit, size, c, *options, key=None, random_bits=None):
    """`softnum.mac.products.conv2d_backward_data`, likewise."""
    return _convolution("conv2d_backward_data", (dy, w), unit, (size,), c, options, key, random_bits)


def conv2d_backward_weight(x, dy, unit, kernel, c, *options, key=None, random_bits=None):
    """`softnum.mac.products.conv2d_backward_weight`, likewise."""
    return _convolution("conv2d_backward_weight", (x, dy), unit, (kernel,), c, options, key, random_bits)


def examples():
    """Kernels for the link check: a fast unit's, over each layout."""
    unit = MadUnit("e6m9", operand="e5m2")
    _, _, arguments, _ = next(fast.kernels_of(unit))
    steps = steps_of(unit, fast_of(unit).levels[0])
    block = fast.block_of(steps, 4096, 256, 1)
    for layouts in (
        ("patches", "columns", "triples", "triples"),
        ("sources", "triples", "triples", "triples"),
        ("turned patches", "triples", "triples", "columns"),
    ):
        kernel = fast.blocks_kernel(steps, block, layouts, ("float32",) * 3, (False, False), "float32", True)
        yield f"convolution of {layouts[0]}", kernel, arguments, True

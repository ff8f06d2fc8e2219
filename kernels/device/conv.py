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

from math import prod

import numpy as np

from softnum.array import Array
from softnum.backend import is_device_array
from softnum.kernels.device import _cuda, gemm_blocks
from softnum.kernels.device._cuda import cuda
from softnum.kernels.device.bounds import levels_of
from softnum.kernels.device.gemm import carrier_of, compute, new_status, random_words
from softnum.kernels.device.layouts import add_layout
from softnum.kernels.device.problem import Operand, Problem, lined
from softnum.kernels.device.steps import steps_of
from softnum.kernels.device.strides import contiguous, dense, one_step, transposed
from softnum.plan import plan_of
from softnum.unfold import Shape, backward_data_shape, backward_weight_shape, forward_shape
from softnum.units import MadUnit

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


def _patches(geometry, batch, row, column):
    """Row: (image, y, x) of the result, column: (channel, ky, kx) of the input, padded."""
    image = _quotient(geometry, 14, row)
    left = row - image * geometry[14]
    y = _quotient(geometry, 17, left)
    x = left - y * geometry[17]
    channel = _quotient(geometry, 20, column)
    left = column - channel * geometry[20]
    ky = _quotient(geometry, 23, left)
    kx = left - ky * geometry[23]
    y = y * geometry[6] + ky * geometry[8] - geometry[10]
    x = x * geometry[7] + kx * geometry[9] - geometry[11]
    if y < 0 or x < 0 or y >= geometry[12] or x >= geometry[13]:
        return np.int64(-1)
    at = geometry[0] + batch * geometry[1] + image * geometry[2]
    return at + channel * geometry[3] + y * geometry[4] + x * geometry[5]


def _sources(geometry, batch, row, column):
    """Row: (image, y, x) of the input, column: (channel of the result, ky, kx); 0 where these two never met."""
    image = _quotient(geometry, 14, row)
    left = row - image * geometry[14]
    y = _quotient(geometry, 17, left)
    x = left - y * geometry[17]
    channel = _quotient(geometry, 20, column)
    left = column - channel * geometry[20]
    ky = _quotient(geometry, 23, left)
    kx = left - ky * geometry[23]
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
    """An array of four dimensions as a caller gave it."""

    def __init__(self, caller: str, name: str, x) -> None:
        self.caller, self.name = caller, name
        self.format = x.format if isinstance(x, Array) else None
        if isinstance(x, Array):
            x = x.codes
        elif is_device_array(x):
            x = _cuda.device_array(x, f"{caller}: {name}")
        else:
            raise TypeError(f"{caller}: {name} lies on the host and another operand on the device; copy one of them")
        self.array, self.shape = x, tuple(int(n) for n in x.shape)

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
    random_bits = random_bits if is_device_array(random_bits) else np.asarray(random_bits)
    want = (*shape, steps, 2)
    if tuple(random_bits.shape) != want or np.dtype(random_bits.dtype) != np.uint32:
        raise ValueError(
            f"{caller}: random_bits must be uint32 of shape {want}, "
            f"got {random_bits.dtype} of shape {tuple(random_bits.shape)}"
        )
    on_device = is_device_array(random_bits)
    sizes = [shape[i] for i in axes]
    order = (3, 0, 1, 2, 4, 5, 6)
    split = (*sizes[:3], groups, sizes[3] // groups, steps, 2)
    if on_device:
        words = contiguous(transposed(random_bits, (*axes, 4, 5))).reshape(split)
        words = contiguous(transposed(words, order))
    else:
        words = np.ascontiguousarray(random_bits.transpose(*axes, 4, 5).reshape(split).transpose(order))
    matrix = (groups, prod(sizes[:3]), sizes[3] // groups)
    return random_words(unit, key, words.reshape((*matrix, steps, 2)), matrix, steps, caller)


# ---- products --------------------------------------------------------------------------------------------------------
def _product(caller, unit, s: Shape, k: int, a, b, c, shape, axes, key, random_bits):
    """The result: a product for each group. shape: the result's, axes: those of its rows, then that of its columns."""
    dtype = carrier_of(unit, caller)
    m, n = prod(shape[i] for i in axes[:3]), shape[axes[3]] // s.groups
    steps = unit.steps(k) if c is None else unit.steps_with_c(k)
    if max(m, n, s.groups, k, steps, *(n + 2 * p for n, p in zip(s.size, s.padding, strict=True))) >= 1 << _BITS:
        raise ValueError(f"{caller}: no dimension of CUDA arrays may reach 2**31, got {shape} and K = {k}")
    if c is not None:
        given = _Given(caller, "c", c)
        own = given.shape
        if len(own) > 4 or any(d not in (1, want) for d, want in zip(own[::-1], shape[::-1], strict=False)):
            raise ValueError(f"{caller}: c of shape {own} does not broadcast to {tuple(shape)}")
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


def conv2d(x, w, unit, c=None, stride=1, padding=0, dilation=1, groups=1, *, key=None, random_bits=None):
    """`softnum.conv2d` of device arrays, or of Arrays of device codes: the bits of the CPU."""
    me = "conv2d"
    x, w = _Given(me, "x", x).checked(), _Given(me, "w", w).checked()
    s = forward_shape(me, x.shape, w.shape, unit.operand[0], stride, padding, dilation, groups)
    k = s.per_group[0] * prod(s.kernel)
    return _product(
        me, unit, s, k, _images(x, s, "patches"), _triple(w, w.shape, (1, 2, 3), 0, 0, s.groups), c,
        (s.images, s.filters, *s.result), (0, 2, 3, 1), key, random_bits,
    )  # fmt: skip


def conv2d_backward_data(
    dy, w, unit, size, c=None, stride=1, padding=0, dilation=1, groups=1, *, key=None, random_bits=None
):
    """`softnum.conv2d_backward_data` of device arrays, or of Arrays of device codes: the bits of the CPU."""
    me = "conv2d_backward_data"
    dy, w = _Given(me, "dy", dy).checked(), _Given(me, "w", w).checked()
    s = backward_data_shape(me, dy.shape, w.shape, size, unit.operand[0], stride, padding, dilation, groups)
    k = s.per_group[1] * prod(s.kernel)
    return _product(
        me, unit, s, k, _images(dy, s, "sources"), _triple(w, w.shape, (0, 2, 3), 1, 0, s.groups), c,
        (s.images, s.channels, *s.size), (0, 2, 3, 1), key, random_bits,
    )  # fmt: skip


def conv2d_backward_weight(
    x, dy, unit, kernel, c=None, stride=1, padding=0, dilation=1, groups=1, *, key=None, random_bits=None
):
    """`softnum.conv2d_backward_weight` of device arrays, or of Arrays of device codes: the bits of the CPU."""
    me = "conv2d_backward_weight"
    x, dy = _Given(me, "x", x).checked(), _Given(me, "dy", dy).checked()
    s = backward_weight_shape(me, x.shape, dy.shape, kernel, unit.operand[0], stride, padding, dilation, groups)
    k = s.images * prod(s.result)
    return _product(
        me, unit, s, k, _images(x, s, "turned patches"), _triple(dy, dy.shape, (0, 2, 3), 1, 1, s.groups), c,
        (s.filters, s.per_group[0], *s.kernel), (1, 2, 3, 0), key, random_bits,
    )  # fmt: skip


def examples():
    """Kernels for the link check: a fast unit's, over each layout."""
    unit = MadUnit("e6m9", operand="e5m2")
    _, _, arguments, _ = next(gemm_blocks.kernels_of(unit))
    steps = steps_of(unit, levels_of(plan_of(unit))[0])
    block = gemm_blocks.block_of(steps, 4096, 256, 1)
    for layouts in (
        ("patches", "columns", "triples", "triples"),
        ("sources", "triples", "triples", "triples"),
        ("turned patches", "triples", "triples", "columns"),
    ):
        kernel = gemm_blocks.blocks_kernel(steps, block, layouts, ("float32",) * 3, (False, False), "float32", True)
        yield f"convolution of {layouts[0]}", kernel, arguments, True

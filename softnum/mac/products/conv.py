"""Two-dimensional convolutions and their gradients under a unit, by blocks of unfolded operands.

Each is one matrix product: of a matrix that is never there as a whole, whose rows are laid out a block at a time, with
the weights (or the gradient of the output). What a block is never changes a bit: the sum over k runs in one go for
each result, and random words are numbered by the result's own indices.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from math import prod
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softnum.arrays.container import Array
from softnum.arrays.conversion import decode
from softnum.arrays.ufuncs import raise_no_code
from softnum.formats.annotations import Key
from softnum.formats.facts import fits
from softnum.mac import _gemm
from softnum.mac.mad import MadUnit, Unit
from softnum.mac.products.engines import coded, counting_of, definition_of, fast_of
from softnum.mac.products.operands import blocks_of, carried, checked_operand, codes_of, padded, random_words_of
from softnum.mac.products.unfold import (
    backward_data_shape,
    backward_weight_shape,
    forward_shape,
    lay_out,
    patches,
    sources,
)
from softnum.mac.statistics import Tallies
from softnum.runtime import _core, gateway
from softnum.runtime.threads import for_each

__all__ = ["conv2d", "conv2d_backward_data", "conv2d_backward_weight"]

WORKSPACE = 1 << 25  # bytes
_AT_ONCE = 1 << 20  # bytes that are unfolded at a time, if they are lines enough: they stay in the cache
_LINES = 64  # enough of them for a product that reads all of its other operand


def _four(x, what: str, caller: str):
    """x, of four dimensions."""
    if not isinstance(x, (Array, np.ndarray)):
        x = np.asarray(x)
    if x.ndim != 4:
        raise ValueError(f"{caller}: {what} has four dimensions, got shape {x.shape}")
    return x


# -- the matrices that the products are of -----------------------------------------------------------------------------
def _operands(caller, unit, **given):
    """The two operands by name, of four dimensions, as values of the unit's operand formats."""
    arrays = [_four(x, what, caller) for what, x in given.items()]
    taken = zip(arrays, unit.operand, given, strict=True)
    return [checked_operand(x, f, what, caller, unit.on_codes) for x, f, what in taken]


# -- products of them --------------------------------------------------------------------------------------------------
@functools.lru_cache(maxsize=64)
def _turned(unit):
    """The engine of a unit with its operands exchanged, where that changes no bit and pays; else None.

    A product of numbers is the same either way round, and a NaN is the canonical one; random words are numbered by row
    and column.
    """
    if type(unit) is not MadUnit or unit.stochastic:  # a class derived from it may be made of other arguments
        return None
    engine = fast_of(replace(unit, operand=unit.operand[::-1]))
    return engine if type(engine) is _gemm.FastGemm else None


class _Work:
    """How a unit's engine takes its operands, and what it makes of them."""

    def __init__(self, caller, unit, operands, c, key, random_bits, shape, k, threads, workspace, tallies):
        self.caller, self.unit, self.threads, self.k, self.tallies = caller, unit, threads, k, tallies
        if isinstance(workspace, bool) or index(workspace) < 1:
            raise ValueError(f"{caller}: workspace must be a positive number of bytes, got {workspace!r}")
        self.workspace = index(workspace)
        self.shape = shape  # of the result as a matrix, (M, N)
        if max(*shape, k, unit.steps_with_c(k)) >= 2**32:
            raise ValueError(f"{caller}: no dimension of the product may reach 2**32, got {shape} and K = {k}")
        self.result = next((d for d in (np.float32, np.float64) if fits(unit.result, d)), None)
        options = {"caller": caller, "with_c": c is not None}
        self.keys, self.words, self.numbers = random_words_of(unit, key, random_bits, shape, k, **options)
        if len(self.numbers.rows) > 1:
            raise ValueError(f"{caller}: images lie along the leading axis, and so do the parts of a larger result")
        fast = fast_of(unit) if tallies is None else counting_of(unit)
        of_codes = self.words is not None or self.result is None or any(isinstance(x, Array) for x in (*operands, c))
        if of_codes:
            fast = None
        self.fast = fast is not None
        self.engine = fast or definition_of(unit)
        self.turned = _turned(unit) if self.fast and tallies is None else None
        self.dtype = np.dtype(np.uint64) if not self.fast else np.dtype(np.float64 if fast.wide else np.float32)
        self.lost = 0

    def taken(self, x, fmt) -> np.ndarray:
        """x as carriers of the fast engine, or as codes."""
        return carried(x, self.dtype) if self.fast else codes_of(x, coded(fmt, self.unit), x.shape)

    def zero(self, fmt):
        """What stands for 0 among `taken` elements of a format, if that has one."""
        return self.taken(np.zeros(1), fmt)[0] if fmt.has_zero else 0

    def is_turned(self, view, dims) -> bool:
        """Whether the transposed product of a view is computed: runs of k are short, against those of rows."""
        short = view.shape[dims - 1] > view.shape[-1] and self.k
        return bool(self.turned is not None and short and self.workspace >= self.k * self.dtype.itemsize * _gemm.LANES)

    def run(self, view, dims, b, c, out, columns) -> None:
        """out[:, columns] = the unit's product of the rows of a view with b [K, its columns], from c [M, N] or +0."""
        rows, width = self.shape[0], columns.stop - columns.start
        if self.is_turned(view, dims):
            self._run_turned(view, dims, b, c, out, columns)
            return
        line = self.k * self.dtype.itemsize
        most = rows if line == 0 else min(rows, self.workspace // line)
        if rows and most == 0:
            raise ValueError(
                f"{self.caller}: a sum of K = {self.k} terms takes {line} bytes unfolded, and workspace is "
                f"{self.workspace}; give workspace={line} or more"
            )
        most = min(most, max(_LINES, _AT_ONCE // max(line, 1)))
        b = padded(b, self.dtype) if self.fast else np.ascontiguousarray(b)
        block = np.empty((most, self.k), self.dtype)
        for first in range(0, rows if width else 0, max(most, 1)):
            last = min(first + most, rows)
            part = slice(first, last)
            if self.k:
                lay_out(view, dims, first, last, block)
            target = np.empty((last - first, width), self.dtype)
            start = None if c is None else np.ascontiguousarray(c[part, columns])
            words = None if self.words is None else np.ascontiguousarray(self.words[0, part, columns])
            self._run_block(block[: last - first], b, start, target, words, first, columns.start)
            out[part, columns] = target

    def _run_turned(self, view, dims, b, c, out, columns) -> None:
        """`run` of the transposed product: its operand lies in memory as the images do, in runs of their rows."""
        rows, width = self.shape[0], columns.stop - columns.start
        line, lanes = self.k * self.dtype.itemsize, _gemm.LANES
        most = min(self.workspace // line, max(_LINES, _AT_ONCE // line), rows + lanes - 1) // lanes * lanes
        a, room = _core.contiguous(b.T), np.empty((self.k, most), self.dtype)
        for first in range(0, rows if width else 0, max(most, 1)):
            last = min(first + most, rows)
            block = room[:, : -(-(last - first) // lanes) * lanes]
            block[:, last - first :] = 0
            lay_out(view, dims, first, last, block.T[: last - first])
            target = np.empty((width, last - first), self.dtype)
            start = None if c is None else _core.contiguous(c[first:last, columns].T)
            threads, blocks = blocks_of(*target.shape, self.k, 1, self.threads)

            def work(_, *limits, given=(a, block, start, target)):
                return self.turned.run(*given, self.keys, 0, *limits)

            self.lost |= for_each(blocks, work, threads)
            out[first:last, columns] = target.T

    def _run_block(self, a, b, c, out, words, row, column) -> None:
        # the numbers of the whole product are for the random words: without any, the block's own do
        options = {}
        if self.unit.stochastic:
            _, row = self.numbers.of(0, row)
            options = {"first": (row, column)}
        else:
            row = column = 0
        threads, blocks = blocks_of(*out.shape, self.k, 1, self.threads, defined=not self.fast)

        def work(_, m0, m1, n0, n1):
            limits = (m0 + row, m1 + row, n0 + column, n1 + column)
            given = (a, b, c, out) if self.fast else (a, b, c, out, words)
            counts = {} if self.tallies is None else {"tallies": self.tallies.part(self.unit)}
            return self.engine.run(*given, self.keys, 0, *limits, **options, **counts)

        self.lost |= for_each(blocks, work, threads)

    def delivered(self, out: np.ndarray, shape, row_axes: int, axes):
        """The result, given as a matrix: values or an Array, in the given shape, its axes then permuted.

        row_axes: how many of the shape's axes are the matrix's rows.
        """
        for i, fmt in enumerate(self.unit.rounded_to):
            if self.lost & 1 << i:
                raise_no_code(fmt, self.caller)
        if out.flags.c_contiguous:
            out = out.reshape(shape)
        else:  # computed transposed: NumPy would copy it to reshape it
            columns = len(shape) - row_axes
            out = out.T.reshape(*shape[row_axes:], *shape[:row_axes])
            out = out.transpose(*range(columns, len(shape)), *range(columns))
        out = _core.contiguous(out.transpose(axes))
        if self.fast:
            return out
        codes = out.astype(self.unit.result.storage_dtype)
        return Array(codes, self.unit.result) if self.result is None else decode(codes, self.unit.result, self.result)

    def empty(self, turned: bool) -> np.ndarray:
        """A matrix for the result, in the order in which it is computed."""
        dtype = self.result if self.fast else np.uint64
        return np.empty(self.shape[::-1], dtype).T if turned else np.empty(self.shape, dtype)


def _as_matrix(x, shape, axes, what, caller):
    """x, broadcast to the shape of the result, its axes permuted, those of k (if any) last, as a matrix."""
    if x is None:
        return None
    data = x.codes if isinstance(x, Array) else x
    if data.ndim > len(shape) or any(d not in (1, n) for d, n in zip(data.shape[::-1], shape[::-1], strict=False)):
        raise ValueError(f"{caller}: {what} of shape {data.shape} does not broadcast to {tuple(shape)}")
    data = np.broadcast_to(data, shape).transpose(axes)
    return Array(data, x.format) if isinstance(x, Array) else data


def _start(caller, c, unit, shape, axes):
    """C, checked, with its axes in the order of the matrix."""
    if c is None:
        return None
    return _as_matrix(checked_operand(c, unit.c_format, "c", caller, unit.on_codes), shape, axes, "c", caller)


def _words(caller, unit, random_bits, shape, axes, k, with_c):
    """random_bits, whose leading axes are the result's, in the order of the matrix."""
    if random_bits is None or not unit.stochastic:
        return None
    words, want = np.asarray(random_bits), (*shape, unit.steps_with_c(k) if with_c else unit.steps(k), 2)
    if words.dtype != np.uint32 or words.shape != want:
        raise ValueError(
            f"{caller}: random_bits must be uint32 of shape {want}, got {words.dtype} of shape {words.shape}"
        )
    return words.transpose(*axes, 4, 5)


def _product(caller, unit, shape, k, operands, c, options, order, view, b_of, dims):
    """The result of a convolution. order: its shape, its axes in the matrix's order, how many of them are rows'."""
    key, random_bits, threads, workspace, tallies = options
    full, axes, row_axes = order
    rows, columns = prod(full[i] for i in axes[:row_axes]), prod(full[i] for i in axes[row_axes:])
    start = _start(caller, c, unit, full, axes)
    words = _words(caller, unit, random_bits, full, axes, k, c is not None)
    if words is not None:
        words = words.reshape(rows, columns, *words.shape[-2:])
    work = _Work(caller, unit, operands, start, key, words, (rows, columns), k, threads, workspace, tallies)
    if start is not None:
        start = work.taken(start, unit.c_format).reshape(rows, columns)
    first, second = (work.taken(x, fmt) for x, fmt in zip(operands, unit.operand, strict=True))
    whole = view(shape, first, work.zero(unit.operand[0]))
    views, per_group = [dims(whole, g) for g in range(shape.groups)], columns // shape.groups
    out = work.empty(work.is_turned(views[0], 3))
    for g, part_of in enumerate(views):
        part = slice(g * per_group, (g + 1) * per_group)
        work.run(part_of, 3, b_of(second, g), start, out, part)
    matrix = [full[i] for i in axes]
    return work.delivered(out, matrix, row_axes, np.argsort(axes))


def _run(caller, compute, arrays, unit, extent, c, shape, options, return_stats):
    """compute, on the host, or the function of the caller's name where the arrays lie on a GPU.

    extent: the size or kernel that gradients are told, in a tuple; shape: stride, padding, dilation, groups; options:
    key, random_bits, threads, workspace.
    """
    if not isinstance(unit, Unit):
        raise TypeError(f"{caller}: the unit must be one of softnum's (MadUnit ..., or sn.unit(name)), got {unit!r}")
    if any(gateway.is_device_array(x) for x in (*arrays, c)):
        key, random_bits, threads, _ = options
        gateway.check_host_only(caller, threads, return_stats)
        return gateway.on_device(caller, *arrays, unit, *extent, c, *shape, key=key, random_bits=random_bits)
    tallies = Tallies() if return_stats else None
    with _core.PlainEnvironment():
        result = compute(*arrays, unit, *extent, c, *shape, (*options, tallies))
    return result if tallies is None else (result, tallies.stats(unit))


def conv2d(
    x: ArrayLike,
    w: ArrayLike,
    unit: Unit,
    c: ArrayLike | None = None,
    *,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
    key: Key | None = None,
    random_bits: ArrayLike | None = None,
    threads: int | None = None,
    workspace: int = WORKSPACE,
    return_stats: bool = False,
) -> Any:
    """A two-dimensional convolution (cross-correlation) with every product, sum and rounding as the unit defines them.

    ``out[i, f, y, x] = c + sum over (ch, ky, kx) of x[i, ch, y * stride + ky * dilation - padding, ...] * w[f, ch, ky,
    kx]``: the matrix product of the unfolded input with the weights, in which row m is the flat (image, y, x), column n
    the output channel, and k, the order of summation, the flat (channel, ky, kx) within the output channel's group.

    Parameters
    ----------
    x : ndarray of float32 or float64, or Array, shape (images, channels, height, width)
        Values of the unit's first operand format (checked). CUDA arrays (all operands) are convolved on their device,
        to the same bits.
    w : the same, shape (output channels, channels / groups, kernel height, kernel width)
        Values of the second operand format.
    unit : Unit
    c : optional, shape broadcast to the result's
        The initial accumulator, values of the result's format: a bias is ``bias[:, None, None]``. Default +0.
    stride, padding, dilation : int or (int, int)
        Rows, columns. Padding goes on both sides. Padded zeros are ordinary operands: they are multiplied and added,
        and numbered among the k.
    groups : int
        Output channels f of group f // (output channels / groups) see that group's input channels only.
    key : int, (int, int) or Stream, optional
        Seed, or (seed, stream); needed if and only if the unit rounds stochastically. The words are those of `matmul`
        with the m, n and k above, and batch 0.
    random_bits : ndarray of uint32, shape (the result's, steps, 2), optional
        The random words themselves, [product, sum], instead of a key; ``steps = unit.steps(K)``, with C
        ``unit.steps_with_c(K)``.
    threads : int, optional
        Default: as many as are worthwhile. The result does not depend on it.
    workspace : int
        The largest size in bytes of unfolded input at a time (default 32 MiB); at least that of one sum. Padded copies
        of the operands come on top. The result does not depend on it. CUDA arrays are unfolded as they are read and
        need no workspace.
    return_stats : bool
        As in `matmul`: whether to return (result, stats). Padded zeros are counted as the operands they are.

    Returns
    -------
    ndarray (or the library's array that x is), shape (images, output channels, rows, columns); with `return_stats`, a
    pair
        float32 if that holds every value of the result's format, else float64, else an Array.

    Raises
    ------
    ValueError
        If shapes do not fit, an element is no value of its format, a key is missing, a result has no code, the format
        padded with zeros has none, or one sum does not fit the workspace.
    TypeError
        If an operand is no float array, some lie on a GPU and others do not, or those there are to be counted or meet
        a unit without a kernel.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    >>> sn.conv2d(image, np.ones((1, 1, 3, 3), np.float32), sn.MadUnit("e6m9", operand="e5m10"))
    array([[[[45., 54.],
             [81., 90.]]]], dtype=float32)
    """
    shape, options = (stride, padding, dilation, groups), (key, random_bits, threads, workspace)
    return _run("conv2d", _forward, (x, w), unit, (), c, shape, options, return_stats)


def _forward(x, w, unit, c, stride, padding, dilation, groups, options):
    me = "conv2d"
    x, w = _operands(me, unit, x=x, w=w)
    s = forward_shape(me, x.shape, w.shape, unit.operand[0], stride, padding, dilation, groups)
    per_group, filters = s.per_group
    k = per_group * prod(s.kernel)
    return _product(
        me, unit, s, k, (x, w), c, options, ((s.images, s.filters, *s.result), (0, 2, 3, 1), 3),
        patches,
        lambda w, g: w[g * filters : (g + 1) * filters].reshape(filters, k).T,
        lambda view, g: view[:, :, :, g * per_group : (g + 1) * per_group],
    )  # fmt: skip


def conv2d_backward_data(
    dy: ArrayLike,
    w: ArrayLike,
    unit: Unit,
    size: tuple[int, int],
    c: ArrayLike | None = None,
    *,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
    key: Key | None = None,
    random_bits: ArrayLike | None = None,
    threads: int | None = None,
    workspace: int = WORKSPACE,
    return_stats: bool = False,
) -> Any:
    """The gradient of `conv2d` with respect to its input.

    Row m of the product is the flat (image, y, x) of the input, column n the input channel, and k, the order of
    summation, the flat (output channel, ky, kx) within the input channel's group. Where input element (y, x) met kernel
    element (ky, kx) in no element of the result (outside it, or between two strides) stands a zero, an ordinary
    operand.

    Parameters
    ----------
    dy : ndarray of float32 or float64, or Array, shape (images, output channels, rows, columns)
        The gradient of the result: values of the unit's first operand format.
    w : the same, shape (output channels, channels / groups, kernel height, kernel width)
        Values of the second operand format.
    unit : Unit
    size : (int, int)
        Height and width of the input, which the result does not determine if stride > 1.
    c, stride, padding, dilation, groups, key, random_bits, threads, workspace, return_stats
        As in `conv2d`.

    Returns
    -------
    ndarray, shape (images, channels, height, width), or an Array

    Raises
    ------
    ValueError, TypeError
        As `conv2d`; also if dy does not have the shape of a result of such a convolution.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> ones = np.ones((1, 1, 2, 2), np.float32)
    >>> sn.mac.products.conv2d_backward_data(ones, ones, sn.MadUnit("e6m9", operand="e5m2"), (3, 3))
    array([[[[1., 2., 1.],
             [2., 4., 2.],
             [1., 2., 1.]]]], dtype=float32)
    """
    shape, options = (stride, padding, dilation, groups), (key, random_bits, threads, workspace)
    return _run("conv2d_backward_data", _backward_data, (dy, w), unit, (size,), c, shape, options, return_stats)


def _backward_data(dy, w, unit, size, c, stride, padding, dilation, groups, options):
    me = "conv2d_backward_data"
    dy, w = _operands(me, unit, dy=dy, w=w)
    s = backward_data_shape(me, dy.shape, w.shape, size, unit.operand[0], stride, padding, dilation, groups)
    per_group, filters = s.per_group
    k = filters * prod(s.kernel)

    def weights(w, g):
        part = w[g * filters : (g + 1) * filters].transpose(0, 2, 3, 1)
        return part.reshape(k, per_group)

    return _product(
        me, unit, s, k, (dy, w), c, options, ((s.images, s.channels, *s.size), (0, 2, 3, 1), 3),
        sources, weights,
        lambda view, g: view[:, :, :, g * filters : (g + 1) * filters],
    )  # fmt: skip


def conv2d_backward_weight(
    x: ArrayLike,
    dy: ArrayLike,
    unit: Unit,
    kernel: tuple[int, int],
    c: ArrayLike | None = None,
    *,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
    key: Key | None = None,
    random_bits: ArrayLike | None = None,
    threads: int | None = None,
    workspace: int = WORKSPACE,
    return_stats: bool = False,
) -> Any:
    """The gradient of `conv2d` with respect to its weights.

    Row m of the product is the flat (channel, ky, kx) within the group, column n the output channel, and k, the order
    of summation, the flat (image, y, x) of the result. Padded zeros are ordinary operands.

    Parameters
    ----------
    x : ndarray of float32 or float64, or Array, shape (images, channels, height, width)
        The input: values of the unit's first operand format.
    dy : the same, shape (images, output channels, rows, columns)
        The gradient of the result: values of the second operand format.
    unit : Unit
    kernel : (int, int)
        Height and width of the kernel.
    c, stride, padding, dilation, groups, key, random_bits, threads, workspace, return_stats
        As in `conv2d`. One sum has images * rows * columns terms here.

    Returns
    -------
    ndarray, shape (output channels, channels / groups, kernel height, kernel width), or an Array

    Raises
    ------
    ValueError, TypeError
        As `conv2d`; also if dy does not have the shape of a result of such a convolution.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> image = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    >>> ones = np.ones((1, 1, 2, 2), np.float32)
    >>> sn.mac.products.conv2d_backward_weight(image, ones, sn.MadUnit("e6m9", operand="e4m3"), (2, 2))
    array([[[[ 8., 12.],
             [20., 24.]]]], dtype=float32)
    """
    shape, options = (stride, padding, dilation, groups), (key, random_bits, threads, workspace)
    return _run("conv2d_backward_weight", _backward_weight, (x, dy), unit, (kernel,), c, shape, options, return_stats)


def _backward_weight(x, dy, unit, kernel, c, stride, padding, dilation, groups, options):
    me = "conv2d_backward_weight"
    x, dy = _operands(me, unit, x=x, dy=dy)
    s = backward_weight_shape(me, x.shape, dy.shape, kernel, unit.operand[0], stride, padding, dilation, groups)
    per_group, filters = s.per_group
    k = s.images * prod(s.result)

    def rows(view, g):
        part = view[:, :, :, g * per_group : (g + 1) * per_group]
        return part.transpose(3, 4, 5, 0, 1, 2)

    def gradients(dy, g):
        part = dy[:, g * filters : (g + 1) * filters].transpose(0, 2, 3, 1)
        return _core.contiguous(part).reshape(k, filters)

    return _product(
        me, unit, s, k, (x, dy), c, options, ((s.filters, per_group, *s.kernel), (1, 2, 3, 0), 3),
        patches,
        gradients, rows,
    )  # fmt: skip

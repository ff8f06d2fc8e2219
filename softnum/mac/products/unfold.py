"""Images unfolded for a convolution: the matrix whose rows are what each result is made of, laid out in parts."""

from __future__ import annotations

from math import prod
from operator import index
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from softnum.runtime import _core

__all__ = [
    "Shape", "backward_data_shape", "backward_weight_shape", "forward_shape", "lay_out", "pair_of", "patches",
    "sources",
]  # fmt: skip


class Shape(NamedTuple):
    """A convolution: (rows, columns) of the image, the result, the kernel and so on."""

    images: int
    channels: int  # of the input
    filters: int
    groups: int
    size: tuple[int, int]
    result: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]

    @property
    def per_group(self) -> tuple[int, int]:
        """Input channels and output channels of a group."""
        return self.channels // self.groups, self.filters // self.groups


def pair_of(value, what: str, caller: str, least: int) -> tuple[int, int]:
    """An integer of at least `least`, twice, or a pair of them; ValueError names the caller."""
    given = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    try:
        pair = tuple(index(v) for v in given)
    except TypeError:
        pair = ()
    if len(pair) != 2 or min(pair) < least or any(isinstance(v, bool) for v in given):
        raise ValueError(f"{caller}: {what} must be an integer of at least {least}, or a pair of them, got {value!r}")
    return pair


def shape_of(caller, images, channels, filters, size, kernel, stride, padding, dilation, groups) -> Shape:
    """A convolution's sizes, checked; ValueError names the caller."""
    stride, dilation = pair_of(stride, "stride", caller, 1), pair_of(dilation, "dilation", caller, 1)
    padding = pair_of(padding, "padding", caller, 0)
    if isinstance(groups, bool) or index(groups) < 1 or channels % groups or filters % groups:
        raise ValueError(
            f"{caller}: groups={groups!r} must be positive and divide the {channels} input channels and the "
            f"{filters} output channels"
        )
    spread = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    padded = [n + 2 * p for n, p in zip(size, padding, strict=True)]
    if min(kernel) < 1 or any(s > n for s, n in zip(spread, padded, strict=True)):
        raise ValueError(
            f"{caller}: a kernel of {tuple(kernel)} with dilation {dilation} does not fit an image of {tuple(size)} "
            f"with padding {padding}"
        )
    result = tuple((n - s) // t + 1 for n, s, t in zip(padded, spread, stride, strict=True))
    return Shape(
        images, channels, filters, index(groups), tuple(size), result, tuple(kernel), stride, padding, dilation
    )


def _check_zero(caller, fmt, what: str) -> None:
    """ValueError where zeros are multiplied and the format has none."""
    if not fmt.has_zero:
        raise ValueError(f"{caller}: {what} is filled up with zeros, and {fmt} has none; use padding=0 and stride=1")


def _check_gradient(caller, s: Shape, dy) -> None:
    if tuple(dy) != (s.images, s.filters, *s.result):
        raise ValueError(
            f"{caller}: dy of shape {tuple(dy)} is no gradient of a result of shape "
            f"{(s.images, s.filters, *s.result)}, which {s.size} images and a kernel of {s.kernel} have"
        )


def forward_shape(caller, x, w, operand, *options) -> Shape:
    """The convolution of arrays of shapes x and w; operand: x's format, options: stride, padding, dilation, groups."""
    s = shape_of(caller, *x[:2], w[0], x[2:], w[2:], *options)
    if w[1] * s.groups != s.channels:
        raise ValueError(
            f"{caller}: w of shape {tuple(w)} takes {w[1]} channels in each of {s.groups} groups, x has {s.channels}"
        )
    if s.padding != (0, 0):
        _check_zero(caller, operand, "x")
    return s


def backward_data_shape(caller, dy, w, size, operand, *options) -> Shape:
    """The convolution whose result's gradient has shape dy, of images of a size."""
    size = pair_of(size, "size", caller, 0)
    s = shape_of(caller, dy[0], w[1] * index(options[-1]), w[0], size, w[2:], *options)
    _check_gradient(caller, s, dy)
    if s.kernel != (1, 1) or s.stride != (1, 1):
        _check_zero(caller, operand, "dy")
    return s


def backward_weight_shape(caller, x, dy, kernel, operand, *options) -> Shape:
    """The convolution of images of shape x by a kernel, whose result's gradient has shape dy."""
    s = shape_of(caller, *x[:2], dy[1], x[2:], pair_of(kernel, "kernel", caller, 1), *options)
    _check_gradient(caller, s, dy)
    if s.padding != (0, 0):
        _check_zero(caller, operand, "x")
    return s


def _spread_out(x, zero, before, step, length, *, mirrored=False) -> np.ndarray:
    """Zeros of the given length in the last two axes, with x's elements `step` apart from `before` on; mirrored: with
    both axes reversed in memory. zero: what stands for 0 among the elements."""
    turn = (..., *[slice(None, None, -1 if mirrored else 1)] * 2)
    if tuple(before) == (0, 0) and tuple(step) == (1, 1) and tuple(length) == x.shape[2:]:
        return np.ascontiguousarray(x[turn])
    out = np.full((*x.shape[:2], *length), zero, x.dtype)
    (y, z), (dy, dz), (h, w) = before, step, x.shape[2:]
    if h and w:
        out[turn][:, :, y : y + dy * (h - 1) + 1 : dy, z : z + dz * (w - 1) + 1 : dz] = x
    return out


def patches(s: Shape, x: np.ndarray, zero=0) -> np.ndarray:
    """View [image, y, x, channel, ky, kx] of the padded input: what each element of the result is made of.

    zero: what stands for 0 among the elements, which may be codes.
    """
    length = [n + 2 * p for n, p in zip(s.size, s.padding, strict=True)]
    padded = _spread_out(x, zero, s.padding, (1, 1), length)
    n, c, y, z = padded.strides
    strides = (n, y * s.stride[0], z * s.stride[1], c, y * s.dilation[0], z * s.dilation[1])
    return as_strided(padded, (s.images, *s.result, s.channels, *s.kernel), strides, writeable=False)


def sources(s: Shape, dy: np.ndarray, zero=0) -> np.ndarray:
    """View [image, y, x, filter, ky, kx] of the gradient of the result: where each element of the input went.

    Element (y, x) met kernel element (ky, kx) in the result at (y + padding - ky * dilation) / stride; zeros stand
    where that is no integer, or outside.
    """
    start = [max(0, d * (k - 1) - p) for d, k, p in zip(s.dilation, s.kernel, s.padding, strict=True)]
    ends = [
        b + max((m - 1) * t + 1, n + p)
        for b, m, t, n, p in zip(start, s.result, s.stride, s.size, s.padding, strict=True)
    ]
    # mirrored, so that kx rises in memory: `lay_out` copies whole runs of it
    spread = _spread_out(dy, zero, start, s.stride, ends, mirrored=True)
    n, c, y, z = spread.strides
    top, left = (e - 1 - b - p for e, b, p in zip(ends, start, s.padding, strict=True))
    first = spread[:, :, top:, left:]
    strides = (n, -y, -z, c, y * s.dilation[0], z * s.dilation[1])
    return as_strided(first, (s.images, *s.size, s.filters, *s.kernel), strides, writeable=False)


def lay_out(view: np.ndarray, dims: int, first: int, last: int, out: np.ndarray) -> None:
    """Rows first..last, counted in C order over the first `dims` axes of the view, into the rows of out."""
    inner = prod(view.shape[1:dims])
    while first < last:
        i, rest = divmod(first, inner)
        if rest == 0 and last - first >= inner:
            whole = (last - first) // inner
            _copy(view[i : i + whole], out[: whole * inner].reshape(whole, *view.shape[1:]))
            done = whole * inner
        else:
            done = min(inner - rest, last - first)
            lay_out(view[i], dims - 1, rest, rest + done, out[:done])
        first, out = first + done, out[done:]


def _copy(view: np.ndarray, out: np.ndarray) -> None:
    """out[...] = view."""
    if not _core.copy_view(view, out):
        out[...] = view

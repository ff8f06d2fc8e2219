"""What convolutions by transforms have in common: units of values, tiles of images, products of rounded operands."""

from __future__ import annotations

import numpy as np

from softnum.arrays.conversion import quantize
from softnum.formats.facts import fits
from softnum.mac.family import family_of
from softnum.mac.mad import Unit, shown
from softnum.mac.presets import unit_of
from softnum.mac.products.matrices import matmul
from softnum.mac.products.unfold import pair_of

__all__ = ["TransformError", "checked_operands", "checked_units", "product", "start_of", "tiles_of"]


class TransformError(ValueError):
    """What a transform has no convolution for, of kernels, strides and units that `softnum.conv2d` takes."""


def checked_units(caller: str, unit, transform, output) -> tuple[Unit, Unit, Unit]:
    """The units of the products, of the transforms before them and of those after, by default the first."""
    given = {"unit": unit, "transform": transform, "output": output}
    return tuple(_unit(caller, unit if one is None else one, what) for what, one in given.items())


def _unit(caller: str, given, what: str) -> Unit:
    unit = unit_of(given)
    if family_of(unit).of_blocks or unit.stochastic:
        raise TransformError(
            f"{caller}: {what}={shown(unit)} takes blocks or rounds stochastically; state a unit of values with "
            "deterministic roundings"
        )
    formats = (*unit.operand, unit.c_format, unit.result)
    for fmt in formats:
        if not fits(fmt, np.float64):
            raise TransformError(f"{caller}: {what} has numbers of {fmt}, which float64 does not hold; state others")
    return unit


def checked_operands(caller: str, x, w, padding, plain: dict, kernel=None):
    """Images, kernels and the pair of paddings; plain: what must be 1, by name; kernel: the one size there is."""
    x, w = np.asarray(x), np.asarray(w)
    for what, value in plain.items():
        if value not in (1, (1, 1)):
            raise TransformError(f"{caller}: {what} must be 1, got {value!r}; softnum.conv2d takes others")
    rows, columns = padding = pair_of(padding, "padding", caller, 0)
    if x.ndim != 4 or w.ndim != 4:
        raise ValueError(f"{caller}: x and w have four dimensions, got shapes {x.shape} and {w.shape}")
    if kernel not in (None, w.shape[2:]):
        size, got = (f"{down} x {across}" for down, across in (kernel, w.shape[2:]))
        raise TransformError(f"{caller}: kernels are {size}, got {got}; softnum.conv2d takes others")
    if x.shape[1] != w.shape[1]:
        raise ValueError(f"{caller}: images of {x.shape[1]} channels, and kernels of {w.shape[1]}")
    if not (x.size and w.size):
        raise ValueError(f"{caller}: nothing to convolve, of shapes {x.shape} and {w.shape}")
    if x.shape[2] + 2 * rows < w.shape[2] or x.shape[3] + 2 * columns < w.shape[3]:
        raise ValueError(
            f"{caller}: images of {x.shape[2]} x {x.shape[3]} with padding {rows}, {columns} hold no "
            f"{w.shape[2]} x {w.shape[3]} kernel"
        )
    return x, w, padding


def tiles_of(x, padding: tuple[int, int], side: tuple[int, int], step: tuple[int, int], count: tuple[int, int]):
    """Tiles (images, channels, down, across, *side) of padded images, step apart; zeros fill the last ones."""
    extents = [max((n - 1) * by + size, p + have) for n, by, size, p, have in
               zip(count, step, side, padding, x.shape[2:], strict=True)]  # fmt: skip
    room = np.zeros((*x.shape[:2], *extents), np.float64)
    (top, left), (height, width) = padding, x.shape[2:]
    room[:, :, top : top + height, left : left + width] = x
    every = np.lib.stride_tricks.sliding_window_view(room, side, (2, 3))
    return every[:, :, :: step[0], :: step[1]][:, :, : count[0], : count[1]]


def start_of(caller: str, c, shape: tuple[int, ...]) -> np.ndarray:
    """The initial accumulator of results, in their shape."""
    c = np.asarray(c)
    try:
        c = np.broadcast_to(c, shape)
    except ValueError:
        raise ValueError(f"{caller}: c of shape {c.shape} does not broadcast to {shape}") from None
    return c.astype(np.float64)


def product(a, b, unit: Unit, c=None) -> np.ndarray:
    """A matrix product a @ b in a unit, of values rounded to what it takes, from c, which it holds."""
    a, b = (quantize(np.ascontiguousarray(x), fmt) for x, fmt in zip((a, b), unit.operand, strict=True))
    return np.asarray(matmul(a, b, unit, None if c is None else np.ascontiguousarray(c)))

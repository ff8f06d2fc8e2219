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

__all__ = ["check_shapes", "checked_units", "product", "real_array", "start_of", "tiles_of"]


def checked_units(caller: str, unit, transform, output) -> tuple[Unit, Unit, Unit]:
    """The units of the products, of the transforms before them and of those after, by default the first."""
    given = {"unit": unit, "transform": transform, "output": output}
    return tuple(_unit(caller, unit if one is None else one, what) for what, one in given.items())


def _unit(caller: str, given, what: str) -> Unit:
    unit = unit_of(given)
    if family_of(unit).of_blocks or unit.stochastic or family_of(unit).whole is not None:
        raise ValueError(
            f"{caller}: {what}={shown(unit)} takes blocks, rounds stochastically or divides K among ranks; state a "
            "unit of values with deterministic roundings"
        )
    formats = (*unit.operand, unit.c_format, unit.result)
    for fmt in formats:
        if not fits(fmt, np.float64):
            raise ValueError(f"{caller}: {what} has numbers of {fmt}, which float64 does not hold; state others")
    return unit


def real_array(caller: str, x, what: str) -> np.ndarray:
    """An operand as an array of numbers."""
    x = np.asarray(x)
    if x.dtype.kind not in "fiub":
        raise TypeError(f"{caller}: {what} must be an array of real numbers, got {x.dtype}")
    return x


def check_shapes(caller: str, x: tuple, w: tuple, padding, plain: dict, kernel=None) -> tuple[int, int]:
    """The pair of paddings of images and kernels of these shapes; plain: what must be 1; kernel: the one size."""
    for what, value in plain.items():
        if value not in (1, (1, 1), [1, 1]):
            raise ValueError(f"{caller}: {what} must be 1, got {value!r}; softnum.conv2d takes others")
    rows, columns = pair_of(padding, "padding", caller, 0)
    if len(x) != 4 or len(w) != 4:
        raise ValueError(f"{caller}: x and w have four dimensions, got shapes {x} and {w}")
    if kernel not in (None, w[2:]):
        size, got = (f"{down} x {across}" for down, across in (kernel, w[2:]))
        raise ValueError(f"{caller}: kernels are {size}, got {got}; softnum.conv2d takes others")
    if x[1] != w[1]:
        raise ValueError(f"{caller}: images of {x[1]} channels, and kernels of {w[1]}")
    if not all((*x, *w)):
        raise ValueError(f"{caller}: nothing to convolve, of shapes {x} and {w}")
    if x[2] + 2 * rows < w[2] or x[3] + 2 * columns < w[3]:
        raise ValueError(
            f"{caller}: images of {x[2]} x {x[3]} with padding {rows}, {columns} hold no {w[2]} x {w[3]} kernel"
        )
    return rows, columns


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
    c = real_array(caller, c, "c")
    try:
        c = np.broadcast_to(c, shape)
    except ValueError:
        raise ValueError(f"{caller}: c of shape {c.shape} does not broadcast to {shape}") from None
    return c.astype(np.float64)


def product(a, b, unit: Unit, c=None) -> np.ndarray:
    """A matrix product a @ b in a unit, of values rounded to what it takes, from c, which it holds."""
    a, b = (quantize(np.ascontiguousarray(x), fmt) for x, fmt in zip((a, b), unit.operand, strict=True))
    return np.asarray(matmul(a, b, unit, None if c is None else np.ascontiguousarray(c)))

"""Convolutions of 3 x 3 kernels by Winograd's minimal filtering, with the roundings that its transforms have.

The same sums as `softnum.conv2d`, by fewer products: and so by other roundings, of which this states every one.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from softnum.arrays.conversion import quantize
from softnum.mac.family import family_of
from softnum.mac.mad import Unit, shown
from softnum.mac.presets import unit_of
from softnum.mac.products.matrices import matmul

__all__ = ["conv2d_winograd"]

_F = Fraction
#: results of a tile along an axis -> (transform of the input, of the kernel, of the output), as sums along rows
_TRANSFORMS = {
    2: (
        ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
        ((1, 0, 0), (_F(1, 2), _F(1, 2), _F(1, 2)), (_F(1, 2), _F(-1, 2), _F(1, 2)), (0, 0, 1)),
        ((1, 1, 1, 0), (0, 1, -1, -1)),
    ),
    4: (
        ((4, 0, -5, 0, 1, 0), (0, -4, -4, 1, 1, 0), (0, 4, -4, -1, 1, 0), (0, -2, -1, 2, 1, 0), (0, 2, -1, -2, 1, 0),
         (0, 4, 0, -5, 0, 1)),
        ((_F(1, 4), 0, 0), (_F(-1, 6), _F(-1, 6), _F(-1, 6)), (_F(-1, 6), _F(1, 6), _F(-1, 6)),
         (_F(1, 24), _F(1, 12), _F(1, 6)), (_F(1, 24), _F(-1, 12), _F(1, 6)), (0, 0, 1)),
        ((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1)),
    ),
}  # fmt: skip


def conv2d_winograd(
    x: ArrayLike,
    w: ArrayLike,
    unit: Unit | str,
    *,
    tile: int = 2,
    transform: Unit | str | None = None,
    output: Unit | str | None = None,
    padding: int | tuple[int, int] = 0,
    stride: int | tuple[int, int] = 1,
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
) -> np.ndarray:
    """Convolution (cross-correlation) of images with 3 x 3 kernels by F(tile x tile, 3 x 3), under units.

    With B, G and A of Lavin and Gray, of each tile d of an image and each kernel g::

        V = (B' d) B      U = (G g) G'      Y = (A' M) A,   M[i, j] = sum over channels of V[i, j] U[i, j]

    Each bracket, and each product with what follows, is a matrix product in the transform's unit: sums along K in its
    order, with its roundings; coefficients (1/6 of tile = 4 is no binary number) and what it multiplies are rounded to
    its operands' formats, to nearest even. V and U are rounded to the operands of `unit`, which sums over channels from
    the first to the last. M is rounded to the operands of the unit of the output, whose result is returned.

    Parameters
    ----------
    x : float32 or float64 array (images, channels, height, width)
    w : float32 or float64 array (filters, channels, 3, 3)
        Both values of the operand formats of `transform`, or rounded to them.
    unit : Unit or str
        Of the products and their sums over channels.
    tile : {2, 4}
        Results of a tile along each axis. Of images that it does not divide, the last tiles are filled with zeros.
    transform, output : Unit or str, optional
        Of the transforms of input and kernels, and of that of the output. Default: `unit`.
    padding : int or (int, int)
        Zeros on both sides, along height and width.
    stride, dilation, groups
        1: there is no such transform of others.

    Returns
    -------
    float array (images, filters, height + 2 padding - 2, width + 2 padding - 2)
        Values of the output unit's result.

    Raises
    ------
    ValueError
        If kernels are not 3 x 3, stride, dilation or groups are not 1, tile is neither 2 nor 4, shapes do not fit, or a
        unit takes blocks or rounds stochastically.

    References
    ----------
    A. Lavin and S. Gray, "Fast algorithms for convolutional neural networks", CVPR 2016, section 4: the matrices;
    S. Winograd, "Arithmetic complexity of computations", 1980.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> x, w = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4), np.ones((1, 1, 3, 3), np.float32)
    >>> half = sn.MadUnit("binary16", operand="binary16")
    >>> sn.conv2d_winograd(x, w, half)
    array([[[[45., 54.],
             [81., 90.]]]], dtype=float32)
    """
    product, before = _unit(unit, "unit"), _unit(unit if transform is None else transform, "transform")
    after = _unit(unit if output is None else output, "output")
    x, w = np.asarray(x), np.asarray(w)
    rows, columns = _pair(padding)
    _check(x, w, tile, {"stride": stride, "dilation": dilation, "groups": groups})
    height, width = x.shape[2] + 2 * rows - 2, x.shape[3] + 2 * columns - 2
    if min(height, width) < 1:
        raise ValueError(
            f"conv2d_winograd: images of {x.shape[2]} x {x.shape[3]} with padding {rows}, {columns} hold no 3 x 3 "
            "kernel"
        )
    of_input, of_kernel, of_output = _TRANSFORMS[tile]
    down, across, side = -(-height // tile), -(-width // tile), tile + 2
    room = np.zeros((*x.shape[:2], down * tile + 2, across * tile + 2), np.float64)
    room[:, :, rows : rows + x.shape[2], columns : columns + x.shape[3]] = x
    tiles = np.lib.stride_tricks.sliding_window_view(room, (side, side), (2, 3))[:, :, ::tile, ::tile]
    v, u = _transformed(tiles, of_input, before), _transformed(w, of_kernel, before)
    # (i, j, images and tiles, channels) @ (i, j, channels, filters)
    v = np.moveaxis(v, (-2, -1), (0, 1)).transpose(0, 1, 2, 4, 5, 3).reshape(side, side, -1, x.shape[1])
    u = np.moveaxis(u, (-2, -1), (0, 1)).swapaxes(-2, -1)
    m = _product(v, u, product).reshape(side, side, len(x), down, across, len(w))
    y = _transformed(m.transpose(2, 5, 3, 4, 0, 1), of_output, after)
    y = y.swapaxes(3, 4).reshape(len(x), len(w), down * tile, across * tile)
    return np.ascontiguousarray(y[:, :, :height, :width])


def _transformed(x, matrix, unit: Unit) -> np.ndarray:
    """(T x) T' of matrices along the last axes."""
    t = np.array([[float(value) for value in row] for row in matrix])
    return _product(_product(t, x, unit), t.T, unit)


def _product(a, b, unit: Unit) -> np.ndarray:
    """a @ b in a unit, of values rounded to what it takes."""
    a, b = (quantize(np.ascontiguousarray(x), fmt) for x, fmt in zip((a, b), unit.operand, strict=True))
    return np.asarray(matmul(a, b, unit))


def _unit(given, what: str) -> Unit:
    unit = unit_of(given)
    if family_of(unit).of_blocks or unit.stochastic:
        raise ValueError(
            f"conv2d_winograd: {what}={shown(unit)} takes blocks or rounds stochastically; state a unit of values with "
            "deterministic roundings"
        )
    return unit


def _pair(padding) -> tuple[int, int]:
    pair = (padding, padding) if isinstance(padding, int) else tuple(padding)
    if len(pair) != 2 or not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in pair):
        raise ValueError(f"conv2d_winograd: padding must be one or two integers from 0 on, got {padding!r}")
    return pair


def _check(x, w, tile, plain: dict) -> None:
    for what, value in plain.items():
        if value not in (1, (1, 1)):
            raise ValueError(f"conv2d_winograd: {what} must be 1, got {value!r}; softnum.conv2d takes others")
    if tile not in _TRANSFORMS:
        raise ValueError(f"conv2d_winograd: tile must be 2 or 4, got {tile!r}")
    if x.ndim != 4 or w.ndim != 4:
        raise ValueError(f"conv2d_winograd: x and w have four dimensions, got shapes {x.shape} and {w.shape}")
    if w.shape[2:] != (3, 3):
        raise ValueError(
            f"conv2d_winograd: kernels are 3 x 3, got {w.shape[2]} x {w.shape[3]}; softnum.conv2d takes others"
        )
    if x.shape[1] != w.shape[1]:
        raise ValueError(f"conv2d_winograd: images of {x.shape[1]} channels, and kernels of {w.shape[1]}")
    if not (x.size and w.size):
        raise ValueError(f"conv2d_winograd: nothing to convolve, of shapes {x.shape} and {w.shape}")

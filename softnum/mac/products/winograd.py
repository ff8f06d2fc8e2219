"""Convolutions of 3 x 3 kernels by Winograd's minimal filtering, with the roundings that its transforms have.

The same sums as `softnum.conv2d`, by fewer products: and so by other roundings, of which this states every one.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from softnum.mac.mad import Unit
from softnum.mac.products.transformed import check_shapes, checked_units, product, real_array, start_of, tiles_of

__all__ = ["check_winograd", "conv2d_winograd"]

_F = Fraction
_NAME = "conv2d_winograd"
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
    c: ArrayLike | None = None,
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
        The unit of the products and their sums over channels.
    c : float array, optional
        Broadcast to the result's shape, values of the output unit's accumulator: of each result the initial value of
        the sum by which it is made, the last one, along K of (A' M) A. A bias is ``bias[:, None, None]``. Default +0.
    tile : {2, 4}
        Results of a tile along each axis. If it does not divide the image, the last tiles are padded with zeros.
    transform, output : Unit or str, optional
        The units of the transforms of input and kernels, and of the transform of the output. Default: `unit`.
    padding : int or (int, int)
        Zeros on both sides, along height and width.
    stride, dilation, groups
        Must be 1.

    Returns
    -------
    float array (images, filters, height + 2 padding - 2, width + 2 padding - 2)
        Values of the output unit's result.

    Raises
    ------
    ValueError
        If kernels are not 3 x 3, stride, dilation or groups are not 1, tile is neither 2 nor 4, shapes do not fit, c is
        no value of its format, or a unit takes blocks, rounds stochastically, divides K among ranks, or has numbers
        that float64 does not hold.

    References
    ----------
    A. Lavin and S. Gray, "Fast algorithms for convolutional neural networks", CVPR 2016, section 4: the matrices;
    S. Winograd, "Arithmetic complexity of computations", 1980.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> x, w = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4), np.ones((1, 1, 3, 3), np.float32)
    >>> half = sn.MadUnit("binary16", operand="binary16")
    >>> sn.mac.products.conv2d_winograd(x, w, half)
    array([[[[45., 54.],
             [81., 90.]]]], dtype=float32)
    """
    x, w = real_array(_NAME, x, "x"), real_array(_NAME, w, "w")
    plain = {"stride": stride, "dilation": dilation, "groups": groups}
    units, padding = check_winograd(x.shape, w.shape, unit, tile, transform, output, padding=padding, **plain)
    product_unit, before, after = units
    height, width = (n + 2 * p - 2 for n, p in zip(x.shape[2:], padding, strict=True))
    of_input, of_kernel, of_output = _TRANSFORMS[tile]
    down, across, side = -(-height // tile), -(-width // tile), tile + 2
    tiles = tiles_of(x, padding, (side, side), (tile, tile), (down, across))
    v, u = _transformed(tiles, of_input, before), _transformed(w, of_kernel, before)
    # (i, j, images and tiles, channels) @ (i, j, channels, filters)
    v = np.moveaxis(v, (-2, -1), (0, 1)).transpose(0, 1, 2, 4, 5, 3).reshape(side, side, -1, x.shape[1])
    u = np.moveaxis(u, (-2, -1), (0, 1)).swapaxes(-2, -1)
    m = product(v, u, product_unit).reshape(side, side, len(x), down, across, len(w))
    shape = (len(x), len(w), height, width)
    if c is not None:
        c = tiles_of(start_of(_NAME, c, shape), (0, 0), (tile, tile), (tile, tile), (down, across))
    y = _transformed(m.transpose(2, 5, 3, 4, 0, 1), of_output, after, c)
    y = y.swapaxes(3, 4).reshape(len(x), len(w), down * tile, across * tile)
    return np.ascontiguousarray(y[:, :, :height, :width])


def check_winograd(x: tuple, w: tuple, unit, tile=2, transform=None, output=None, *, padding=0, **plain):
    """The units and the pair of paddings of a convolution of arrays of such shapes; ValueError where there is none.

    Parameters are those of `conv2d_winograd`; plain: stride, dilation, groups.

    >>> check_winograd((1, 1, 4, 4), (1, 1, 3, 3), "nvidia_v100_fp16", padding=1)[1]
    (1, 1)
    """
    units = checked_units(_NAME, unit, transform, output)
    padding = check_shapes(_NAME, x, w, padding, plain, kernel=(3, 3))
    if not isinstance(tile, int) or tile not in _TRANSFORMS:
        raise ValueError(f"{_NAME}: tile must be 2 or 4, got {tile!r}")
    return units, padding


def _transformed(x, matrix, unit: Unit, start=None) -> np.ndarray:
    """(T x) T' of matrices along the last axes; start: the initial accumulator of the latter product."""
    t = np.array([[float(value) for value in row] for row in matrix])
    lead, (rows, columns) = x.shape[:-2], x.shape[-2:]
    first = product(t, np.moveaxis(x, -2, 0).reshape(rows, -1), unit)  # of all matrices side by side
    first = first.reshape(len(t), -1, columns).swapaxes(0, 1).reshape(-1, columns)
    start = None if start is None else start.reshape(-1, len(t))
    return product(first, t.T, unit, start).reshape(*lead, len(t), len(t))

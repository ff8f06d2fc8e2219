"""Convolutions by Fourier transforms of images and kernels, with the roundings that these transforms have.

The same sums as `softnum.conv2d`, by products of spectra: and so by other roundings, of which this states every one.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from softnum.arrays.container import array
from softnum.arrays.conversion import decode, quantize
from softnum.formats.annotations import FormatLike
from softnum.formats.blocks import format
from softnum.formats.facts import fits
from softnum.mac.mad import Unit
from softnum.mac.products.transformed import check_shapes, checked_units, product, real_array, start_of, tiles_of
from softnum.mac.products.unfold import pair_of
from softnum.ops.elementary import cospi, sinpi

__all__ = ["check_fft", "conv2d_fft"]

_NAME = "conv2d_fft"
_LARGEST = 1 << 12
_SCALINGS = ("last", "stage")


def conv2d_fft(
    x: ArrayLike,
    w: ArrayLike,
    unit: Unit | str,
    c: ArrayLike | None = None,
    *,
    size: int | None = None,
    transform: Unit | str | None = None,
    output: Unit | str | None = None,
    twiddle: FormatLike | None = None,
    scaling: Literal["last", "stage"] = "last",
    padding: int | tuple[int, int] = 0,
    stride: int | tuple[int, int] = 1,
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
) -> np.ndarray:
    """Convolution (cross-correlation) of images with kernels by fast Fourier transforms, under units.

    Tiles of images, as many results apart as one of them gives (size - kernel + 1 along an axis: overlap-save), and
    kernels, followed by zeros, are transformed; the spectrum of a tile is multiplied by the conjugate of the kernel's
    and summed over channels; that is transformed back, of which the real parts of the first results are kept. All
    transforms are of complex numbers, of radix 2, decimated in time, along the width first, then along the height: in
    stages of 1, 2, 4, ... size / 2 butterflies a block, on elements in the order of their reversed bits. A butterfly of
    a and b with the twiddle t = exp(-2 pi i j / length) of its stage (its conjugate on the way back) is four sums of a
    unit, each of two products, from an accumulator that starts as a::

        Re a + Re t Re b + (-Im t) Im b       Im a + Im t Re b + Re t Im b
        Re a + (-Re t) Re b + Im t Im b       Im a + (-Im t) Re b + (-Re t) Im b

    Twiddles are the first operand, 1 and i like all others; b is rounded to the second operand and a to the
    accumulator, where they are no values of them, to nearest even. Spectra are rounded to the operands of `unit`, and
    what it delivers is the sum along k = 2 channel + part, from +0::

        Re: Re X Re W, Im X Im W          Im: Re X (-Im W), Im X Re W

    Parameters
    ----------
    x : float32 or float64 array (images, channels, height, width)
    w : float32 or float64 array (filters, channels, kernel height, kernel width)
        Both values of the second operand format of `transform`, or rounded to it.
    unit : Unit or str
        The unit of the products of spectra and their sums over channels.
    c : float array, optional
        Broadcast to the result's shape, values of the output unit's accumulator, to which that unit adds 1 times what
        came back, its second operand. A bias is ``bias[:, None, None]``. Default: nothing is added.
    size : int or (int, int), optional
        Of a transform, along height and width: a power of two from 2 to 4096, at least the kernel's size. Default: the
        least that holds the padded image.
    transform, output : Unit or str, optional
        The units of the forward transforms of images and kernels, and of the inverse transforms. Default: `unit`.
    twiddle : str or Format, optional
        A format within the first operands of `transform` and `output`, to which the exact cosines and sines are
        rounded, to nearest even. Default: these operands.
    scaling : {"last", "stage"}
        Where the inverse transform divides by the size: once at its end, by the exact power of two; or by 2 after every
        stage, as fixed point needs it. Quotients are rounded to the result of `output`, to nearest even.
    padding : int or (int, int)
        Zeros on both sides, along height and width.
    stride, dilation, groups
        1.

    Returns
    -------
    float array (images, filters, height + 2 padding - kernel + 1, width + 2 padding - kernel + 1)
        Values of the output unit's result.

    Raises
    ------
    ValueError
        If a size is no such power of two, stride, dilation or groups are not 1, shapes do not fit, an operand does not
        hold the twiddles' format, c is no value of its format, or a unit takes blocks, rounds stochastically, divides
        K among ranks, or has numbers that float64 does not hold.

    References
    ----------
    J. W. Cooley and J. W. Tukey, "An algorithm for the machine calculation of complex Fourier series", Mathematics of
    Computation 19, 1965; M. Mathieu, M. Henaff and Y. LeCun, "Fast training of convolutional networks through FFTs",
    ICLR 2014.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> x, w = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4), np.ones((1, 1, 3, 3), np.float32)
    >>> half = sn.MadUnit("binary16", operand="binary16")
    >>> sn.mac.products.conv2d_fft(x, w, half)
    array([[[[45., 54.],
             [81., 90.]]]], dtype=float32)
    """
    x, w = real_array(_NAME, x, "x"), real_array(_NAME, w, "w")
    plain = {"stride": stride, "dilation": dilation, "groups": groups}
    options = {"twiddle": twiddle, "scaling": scaling, "padding": padding, **plain}
    units, padding, side, twiddles = check_fft(x.shape, w.shape, unit, size, transform, output, **options)
    of_spectra, before, after = units
    kernel, padded = w.shape[2:], tuple(n + 2 * p for n, p in zip(x.shape[2:], padding, strict=True))
    step, results = ([s - k + 1 for s, k in zip(n, kernel, strict=True)] for n in (side, padded))
    down, across = count = tuple(-(-n // by) for n, by in zip(results, step, strict=True))
    (images, channels), filters = x.shape[:2], len(w)
    tiles = tiles_of(x, padding, side, step, count).transpose(4, 5, 0, 2, 3, 1)
    kernels = np.zeros((*side, channels, filters))
    kernels[: kernel[0], : kernel[1]] = w.transpose(2, 3, 1, 0)
    first, second = (_spectrum(part, before, twiddles[0]) for part in (tiles, kernels))
    # (height, width, images and tiles, channels and parts) @ (height, width, channels and parts, parts and filters)
    first = first.reshape(*side, 2, -1, channels).transpose(0, 1, 3, 4, 2).reshape(*side, -1, 2 * channels)
    real, imaginary = np.moveaxis(second.reshape(*side, 2, channels, filters), 2, 0)
    columns = [np.stack(pair, 3).reshape(*side, 2 * channels, filters)
               for pair in ((real, imaginary), (-imaginary, real))]  # fmt: skip
    m = product(first, np.concatenate(columns, -1), of_spectra).astype(np.float64)
    m = m.reshape(*side, -1, 2, filters).swapaxes(2, 3).reshape(*side, 2, -1)
    y = _transformed(m, after, twiddles[1], back=True, halved=scaling == "stage")[: step[0], : step[1], 0]
    if scaling == "last":
        y = quantize(y / (side[0] * side[1]), after.result)
    y = y.reshape(*step, images, down, across, filters).transpose(2, 5, 3, 0, 4, 1)
    y = y.reshape(images, filters, down * step[0], across * step[1])[:, :, : results[0], : results[1]]
    if c is not None:
        start = start_of(_NAME, c, y.shape).reshape(1, -1)
        y = product(np.ones((1, 1)), y.reshape(1, -1), after, start).reshape(y.shape)
    return np.ascontiguousarray(y, np.float32 if fits(after.result, np.float32) else np.float64)


def check_fft(
    x: tuple, w: tuple, unit, size=None, transform=None, output=None, *, twiddle=None, scaling="last", padding=0,
    **plain,
):  # fmt: skip
    """Units, paddings, sizes and twiddles' formats of a convolution of such shapes; ValueError where there is none.

    Parameters are those of `conv2d_fft`; plain: stride, dilation, groups.

    >>> check_fft((1, 1, 4, 5), (1, 1, 3, 3), "nvidia_v100_fp16", padding=1)[1:3]
    ((1, 1), (8, 8))
    """
    units = checked_units(_NAME, unit, transform, output)
    padding = check_shapes(_NAME, x, w, padding, plain)
    if scaling not in _SCALINGS:
        raise ValueError(f"{_NAME}: scaling must be {' or '.join(map(repr, _SCALINGS))}, got {scaling!r}")
    side = _side(size, w[2:], tuple(n + 2 * p for n, p in zip(x[2:], padding, strict=True)))
    return units, padding, side, [_twiddle_format(twiddle, one) for one in units[1:]]


def _side(size, kernel, padded) -> tuple[int, int]:
    """The lengths of the transforms along height and width."""
    if size is None:
        side = tuple(max(2, 1 << (n - 1).bit_length()) for n in padded)
    else:
        side = pair_of(size, "size", _NAME, 2)
    for n, k in zip(side, kernel, strict=True):
        if n & (n - 1) or not max(2, k) <= n <= _LARGEST:
            raise ValueError(
                f"{_NAME}: size must be a power of two from 2 to {_LARGEST} that holds a kernel of {kernel[0]} x "
                f"{kernel[1]}, got {n}" + ("; state a smaller size, of tiles" if size is None else "")
            )
    return side


def _twiddle_format(given, unit: Unit):
    """The format of the twiddles of a unit's transforms."""
    operand = unit.operand[0]
    fmt = operand if given is None else format(given)
    if fmt != operand and not operand.contains(fmt):
        raise ValueError(f"{_NAME}: twiddle={fmt} is not within {operand}, the first operand that multiplies by it")
    return fmt


def _spectrum(x, unit: Unit, fmt) -> np.ndarray:
    """(height, width, 2, columns): the transform of real numbers (height, width, ...), rounded to what a unit takes."""
    x = quantize(x.reshape(*x.shape[:2], 1, -1), unit.operand[1])
    return _transformed(np.concatenate([x, np.zeros_like(x)], 2), unit, fmt)


def _transformed(x, unit: Unit, fmt, *, back: bool = False, halved: bool = False) -> np.ndarray:
    """The transform of complex numbers (height, width, parts, columns) along the width, then along the height."""
    for axes in ((1, 2, 0, 3), (2, 1, 0, 3)):  # (width, parts, height, columns), then (height, parts, width, columns)
        x = x.transpose(axes)
        x = _line(x.reshape(*x.shape[:2], -1), unit, fmt, back, halved).reshape(x.shape)
    return x.swapaxes(1, 2)


def _line(x, unit: Unit, fmt, back: bool, halved: bool) -> np.ndarray:
    """The transform of complex numbers (length, parts, columns) along the first axis."""
    length, _, columns = x.shape
    bits = length.bit_length() - 1
    x = x[[int(f"{i:0{bits}b}"[::-1], 2) for i in range(length)]]
    half = 1
    while half < length:
        a, b = x.reshape(-1, 2, half, 2, columns).transpose(1, 2, 3, 0, 4).reshape(2, half, 2, -1)
        a = quantize(a, unit.c_format)
        y = product(_butterflies(half, fmt, back), b, unit, np.concatenate([a, a], 1)).astype(np.float64)
        if halved:
            y = quantize(y / 2, unit.result)
        x = y.reshape(half, 2, 2, -1, columns).transpose(3, 1, 0, 2, 4).reshape(length, 2, columns)
        half *= 2
    return x


def _butterflies(half: int, fmt, back: bool) -> np.ndarray:
    """(half, 4, 2): of each twiddle of a stage what b is multiplied by, for the parts of its sum and difference."""
    turns = array(np.arange(half) / half, "binary64")  # in half turns: exact, as half is a power of two
    real, imaginary = (decode(f(turns, out_fmt=fmt).codes, fmt, np.float64) for f in (cospi, sinpi))
    if not back:
        imaginary = -imaginary
    rows = np.array([[real, -imaginary], [imaginary, real], [-real, imaginary], [-imaginary, -real]])
    return rows.transpose(2, 0, 1)

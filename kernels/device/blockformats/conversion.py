"""softnum.quantize, encode and decode of block formats, for CUDA arrays."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from softnum.arrays.codecs.blocks import axis_of, blocked, tensor_scale_of
from softnum.arrays.environment import environment
from softnum.formats.blocks import BlockFormat
from softnum.formats.modes import rounding_name
from softnum.kernels.device.blockformats.kernels import (
    GROUP,
    TILE,
    elements_kernel,
    factors_kernel,
    finite_kernel,
    largest_kernel,
    scales_kernel,
    tile_kernel,
)
from softnum.kernels.device.blockformats.text import INEXACT, NO_FLOAT32, NO_SCALE
from softnum.kernels.device.elementwise.computations import NO_WORDS
from softnum.kernels.device.elementwise.conversion import check_out, floats
from softnum.kernels.device.elementwise.launch import Words, words_of
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime.copies import grid
from softnum.kernels.device.runtime.strides import contiguous, copy

__all__ = ["decode_blocks", "encode_blocks", "quantize_blocks"]

_PART = 32  # elements of a block that a thread looks at


class Layout(NamedTuple):
    """An array in C order as (outer, length, inner), the middle one of which is blocked: so many blocks of a size."""

    outer: int
    length: int
    inner: int
    size: int
    blocks: int

    @classmethod
    def of(cls, shape, fmt: BlockFormat, axis: int) -> Layout:
        """The layout of an array that is blocked along an axis, counted from the first."""
        n = int(shape[axis])
        return cls(prod(shape[:axis]), n, prod(shape[axis + 1 :]), fmt.size(n), fmt.blocks(n))


# ---- launches --------------------------------------------------------------------------------------------------------


def _line(x):
    """The bits of an array in C order, in one dimension."""
    return _cuda.bits(x if x.ndim == 1 else x.reshape((x.size,)))


def _aligned(x) -> bool:
    return _cuda.address_of(x) % min(GROUP * x.dtype.itemsize, 16) == 0


def _bits_of(x) -> np.uint64:
    return np.float64(x).view(np.uint64)


def _largest(x, layout: Layout):
    """The largest magnitude of each block."""
    parts, blocks = -(-layout.size // _PART), layout.outer * layout.blocks * layout.inner
    largest = _cuda.empty(blocks, x.dtype) if parts == 1 else _cuda.filled(blocks, x.dtype, 0)
    count = blocks * parts
    kernel = largest_kernel(f"float{8 * x.dtype.itemsize}")
    _cuda.launch(kernel, *grid(count), x, largest, count, parts, *layout[1:])
    return largest


def _launch_fours(kernel, count: int, *arguments, whole: bool = False) -> None:
    """Launch a kernel of threads of four elements; whole: in thread blocks that are all of one size."""
    groups = -(-count // GROUP)
    threads = _cuda.THREADS if whole else min(_cuda.THREADS, groups)  # the simulator's are slow to start
    _cuda.launch(kernel, -(-groups // threads), threads, *arguments)


class _Rounding:
    """One rounding of packed bits, of one dimension, to a block format: into `to`, and scales."""

    def __init__(self, x, fmt, env, carrier, layout, rule, words: Words, symmetric: bool, to, scales) -> None:
        self.x, self.fmt, self.env, self.carrier, self.layout, self.rule = x, fmt, env, carrier, layout, rule
        self.words, self.symmetric, self.to, self.scales = words, symmetric, to, scales
        self.given = [x, _line(to), *([] if words.array is None else [_line(words.array)])]
        self.result = carrier if to.dtype == carrier else to.dtype.name
        self.wide = all(map(_aligned, self.given))
        size = layout.size
        tiles = size % GROUP == 0 and TILE % size == 0 and layout.length % size == 0
        self.tiled = tiles and layout.inner == 1
        self.largest = None if self.tiled else _largest(x, layout)
        self.factors = _cuda.empty(scales.size, np.uint64)
        self.tells = self.result == carrier or not fmt.scale.has_nan  # else nothing is written to its status
        none = np.zeros(1, np.uint32)
        self.status = _cuda.to_device(none) if self.tells else _cuda.constant(none)

    def found(self) -> np.ndarray:
        """The largest magnitude of the blocks that are finite, an array of one number."""
        found = _cuda.filled(1, self.x.dtype, 0)
        if self.tiled:
            self._tiles(None, found, _bits_of(0), _bits_of(0))
        else:
            _cuda.launch(finite_kernel(self.carrier), *grid(self.largest.size), self.largest, found)
        return _cuda.to_host(found).view(self.carrier).astype(np.float64)

    def run(self, tensor) -> int:
        """Round by the array's scale, or None; what was met."""
        each = np.float64(1 if tensor is None else tensor)
        beyond = tensor is None and self.fmt.element_exponent > 1000  # binary64, and nothing divides by it there
        numbers = _bits_of(each), _bits_of(0 if beyond else np.float64(self.fmt.element.max) * each)
        if self.tiled:
            self._tiles(self.result, self.x, *numbers)
        else:
            kernel, blocks = scales_kernel(self.fmt, self.rule, self.carrier), self.scales.size
            scales = _line(self.scales)
            _cuda.launch(kernel, *grid(blocks), self.largest, scales, self.factors, *numbers, self.status)
            where = "last" if self.layout.inner == 1 else "any"
            what = self.fmt, self.env, self.carrier, self.result, self.words.kind, self.wide, where, self.symmetric
            _elements(self.given, self.factors, self.status, self.layout, what, self.words)
        return int(_cuda.to_host(self.status)[0]) if self.tells else 0

    def _tiles(self, result, found, tensor, divisor) -> None:
        """Launch the kernel of blocks side by side; tensor, divisor: as `scale_library` takes them."""
        how = self.words.kind, self.wide, self.symmetric
        kernel = tile_kernel(self.rule, result, self.fmt, self.layout.size, self.env, self.carrier, *how)
        to = self.given[1] if result else self.x
        random = self.status if self.words.array is None else self.given[2]
        _launch_fours(
            kernel, self.x.size, self.x, found, _line(self.scales), self.factors, to, random,
            *map(np.uint32, self.words.key), self.status, self.x.size, tensor, divisor, whole=True,
        )  # fmt: skip


def _elements(given, factors, status, layout: Layout, what: tuple, words: Words) -> None:
    """Codes or values of packed bits, or codes: given is x, to and random words if there are some."""
    x, to, *random = given
    _launch_fours(
        elements_kernel(*what), x.size, x, factors, to, *(random or [status]), *map(np.uint32, words.key), status,
        x.size, *layout[1:],
    )  # fmt: skip


def _delivered(values, met: int, fmt: BlockFormat, dtype: np.dtype, out):
    """Values of a type, in out if there is one; ValueError if one is not exact."""
    if met & INEXACT:
        raise ValueError(f"a value of {fmt} is not exact in {dtype} (copy the codes to the host, and use dtype=object)")
    if met & NO_FLOAT32:
        way = "give float64" + ("" if fmt.tensor_scale is None else ", or tensor_scale= a power of two")
        raise ValueError(f"a value of {fmt} is not exact in {dtype} ({way})")
    if out is None:
        return values
    copy(values, out)
    return out


# ---- the functions ---------------------------------------------------------------------------------------------------


def _rounded(
    x, what: str, fmt, axis, rule, symmetric, tensor_scale, rounding, overflow, key, random_bits, stochastic_bits
):
    """(values of "quantize", or codes of "encode", scales, the array's scale or None, what was met)."""
    x, axis = contiguous(floats(x, what)), axis_of(axis, x.ndim, what)
    shape, layout = tuple(x.shape), Layout.of(x.shape, fmt, axis)
    env = environment(fmt.element, rounding, "saturate" if overflow is None else overflow, stochastic_bits)
    words = words_of(rounding_name(rounding).startswith("stochastic"), key, random_bits, shape)
    to = _cuda.empty(shape, x.dtype if what == "quantize" else fmt.element.storage_dtype)
    scales = _cuda.empty(blocked(shape, fmt, axis), fmt.scale.storage_dtype)
    if not x.size:
        return to, scales, tensor_scale_of(np.zeros(0), fmt, tensor_scale), 0
    rounds = _Rounding(_line(x), fmt, env, x.dtype.name, layout, rule, words, symmetric, to, scales)
    searches = fmt.tensor_scale is not None and tensor_scale is None
    tensor = tensor_scale_of(rounds.found() if searches else np.zeros(0), fmt, tensor_scale)
    met = rounds.run(tensor)
    if met & NO_SCALE:
        raise ValueError(
            f"encode: a block contains an infinity or a NaN, and the scale format {fmt.scale} cannot encode NaN"
        )
    return to, scales, tensor, met


def encode_blocks(
    x, fmt, *, axis=-1, rule, symmetric=False, tensor_scale=None, rounding="nearest_even", overflow=None, key=None,
    random_bits=None, stochastic_bits=32,
):  # fmt: skip
    """Codes of a CUDA array in a block format, on the device: what `softnum.encode` gives on the CPU.

    Parameters
    ----------
    x : Numba CUDA array of float32 or float64, any shape and strides
    rule : str
        One of `softnum.formats.blocks.SCALE_RULES`.
    fmt, axis, symmetric, tensor_scale, rounding, overflow, key, random_bits, stochastic_bits
        As in `softnum.encode`.

    Returns
    -------
    tuple
        Numba CUDA arrays of the elements' codes and of the scales'; and the scale of the array (numpy.float32) in
        formats that have one, which is read on the host.

    Raises
    ------
    ValueError, TypeError
        As `softnum.encode`.
    """
    codes, scales, tensor, _ = _rounded(
        x, "encode", fmt, axis, rule, symmetric, tensor_scale, rounding, overflow, key, random_bits, stochastic_bits
    )
    return (codes, scales) if tensor is None else (codes, scales, tensor)


def quantize_blocks(
    x, fmt, *, axis=-1, rule, symmetric=False, tensor_scale=None, rounding="nearest_even", overflow=None, key=None,
    random_bits=None, stochastic_bits=32, out=None,
):  # fmt: skip
    """Values of a CUDA array rounded to a block format, on the device: what `softnum.quantize` gives on the CPU.

    Parameters
    ----------
    out : Numba CUDA array, optional
        x's shape and dtype; may be x, but must not overlap it otherwise.
    x, fmt, axis, rule, symmetric, tensor_scale, rounding, overflow, key, random_bits, stochastic_bits
        As in `encode_blocks`.

    Returns
    -------
    Numba CUDA array of x's dtype

    Raises
    ------
    ValueError, TypeError
        As `softnum.quantize`.
    """
    check_out("quantize", out, x.shape, x.dtype)
    values, _, _, met = _rounded(
        x, "quantize", fmt, axis, rule, symmetric, tensor_scale, rounding, overflow, key, random_bits, stochastic_bits
    )
    return _delivered(values, met, fmt, x.dtype, out)


def decode_blocks(codes, scales, tensor_scale, fmt, dtype=np.float64, *, axis, out=None):
    """The values of a block format's codes, on the device.

    Parameters
    ----------
    codes, scales : Numba CUDA arrays of the formats' storage types, any strides
        Checked to be codes.
    tensor_scale : float or None
    fmt : BlockFormat
    dtype : float32 or float64
    axis : int
        The axis that is blocked.
    out : Numba CUDA array of dtype, optional
        Of codes' shape; must not overlap codes.

    Returns
    -------
    Numba CUDA array of dtype

    Raises
    ------
    ValueError
        If a value is not exact in `dtype`.
    TypeError
        For another dtype.
    """
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise TypeError(
            f"decode gives CUDA arrays of float32 or float64, not {dtype}; copy the codes to the host first"
        )
    check_out("decode", out, codes.shape, dtype)
    values, met = _cuda.empty(tuple(codes.shape), dtype), 0
    if codes.size:
        layout = Layout.of(codes.shape, fmt, axis % codes.ndim)
        given, scales = [_line(contiguous(codes)), _line(values)], _line(contiguous(scales))
        factors, status = _cuda.empty(scales.size, np.uint64), _cuda.filled(1, np.uint32, 0)
        tensor = _bits_of(1 if tensor_scale is None else tensor_scale)
        _cuda.launch(factors_kernel(fmt), *grid(scales.size), scales, factors, tensor)
        wide, where = all(map(_aligned, given)), "last" if layout.inner == 1 else "any"
        what = (fmt, None, codes.dtype.name, dtype.name, NO_WORDS, wide, where, False)
        _elements(given, factors, status, layout, what, Words())
        met = int(_cuda.to_host(status)[0])
    return _delivered(values, met, fmt, dtype, out)


for _function, _name in ((encode_blocks, "encode"), (quantize_blocks, "quantize"), (decode_blocks, "decode")):
    _function.__name__ = _name  # as users called it, in errors

"""softnum.quantize, encode and decode of block formats, for CUDA arrays.

Three kernels: the largest magnitude of each block; its scale, by a thread; and the elements, four neighbours by a
thread, each by its block's factor. A maximum does not depend on the order in which it is found.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from softnum.block_codes import axis_of, blocked, tensor_scale_of
from softnum.blocks import BlockFormat, format
from softnum.environment import environment
from softnum.kernels.device import _cuda
from softnum.kernels.device._cuda import cuda, ffi
from softnum.kernels.device.block_entries import INEXACT, NO_FLOAT32, elements_library, scale_library
from softnum.kernels.device.computations import CARRIERS, FROM_KEY, NO_WORDS
from softnum.kernels.device.elementwise import Words, words_of
from softnum.kernels.device.movement import grid
from softnum.kernels.device.quantize import check_out, floats
from softnum.kernels.device.strides import contiguous, copy
from softnum.modes import rounding_name

__all__ = ["decode_blocks", "encode_blocks", "examples", "quantize_blocks"]

_PART = 32  # elements of a block that a thread looks at
_GROUP = 4  # elements of a thread: those of one Philox counter
_INFINITY = {"float32": np.uint32(0x7F800000), "float64": np.uint64(0x7FF0000000000000)}


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


# ---- kernels ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def largest_kernel(carrier: str):
    """The kernel ``(x, largest, count, parts, length, inner, size, blocks)``: the largest magnitude of each block, as
    the carrier's bits, where NaN is above all.

    A thread looks at every parts-th element; of more than one part, largest starts from 0.
    """
    word = np.dtype(CARRIERS[carrier][1]).type
    magnitude = word((1 << (8 * word(0).itemsize - 1)) - 1)

    @cuda.jit
    def kernel(x, largest, count, parts, length, inner, size, blocks):
        for item in range(cuda.grid(1), count, cuda.gridsize(1)):
            rest = item // inner
            i = item - rest * inner
            block = rest // parts
            outer = block // blocks
            begins = (block - outer * blocks) * size
            at = (outer * length + begins + rest - block * parts) * inner + i
            top = word(0)
            for _ in range(begins + rest - block * parts, min(begins + size, length), parts):
                top = max(top, x[at] & magnitude)
                at += parts * inner
            if parts == 1:
                largest[item] = top
            elif top > 0:
                cuda.atomic.max(largest, block * inner + i, top)

    return kernel


@lru_cache(maxsize=4)
def finite_kernel(carrier: str):
    """The kernel ``(largest, found)``: the largest finite one of magnitudes, in found[0], which starts from 0."""
    infinity = _INFINITY[carrier]
    word = type(infinity)

    @cuda.jit
    def kernel(largest, found):
        top = word(0)
        for i in range(cuda.grid(1), largest.shape[0], cuda.gridsize(1)):
            if largest[i] < infinity:
                top = max(top, largest[i])
        if top > found[0]:  # few of many threads need the atomic operation
            cuda.atomic.max(found, 0, top)

    return kernel


@lru_cache(maxsize=64)
def scales_kernel(fmt: BlockFormat, rule: str, carrier: str):
    """The kernel ``(largest, scales, factors, tensor, divisor, status)``: codes of scales, and factors; status[0]
    becomes 1 where a block is not finite, in formats whose scale has no NaN."""
    f = _cuda.bind(scale_library(fmt, rule, carrier))
    code, factor, infinity, tells = f.code, f.factor, _INFINITY[carrier], not fmt.scale.has_nan

    @cuda.jit
    def kernel(largest, scales, factors, tensor, divisor, status):
        for i in range(cuda.grid(1), largest.shape[0], cuda.gridsize(1)):
            if tells and largest[i] >= infinity:
                status[0] = 1
            scale = code(largest[i], divisor)
            scales[i] = scale
            factors[i] = factor(scale, tensor)

    return kernel


@lru_cache(maxsize=16)
def factors_kernel(fmt: BlockFormat):
    """The kernel ``(scales, factors, tensor)``."""
    factor = _cuda.bind(scale_library(fmt, "max", "float64")).factor

    @cuda.jit
    def kernel(scales, factors, tensor):
        for i in range(cuda.grid(1), scales.shape[0], cuda.gridsize(1)):
            factors[i] = factor(scales[i], tensor)

    return kernel


@lru_cache(maxsize=256)
def elements_kernel(*what):
    """The kernel ``(x, factors, to, random, key0, key1, status, count, length, inner, size, blocks)``, of four elements
    a thread; what: as `elements_library`."""
    group = _cuda.bind(elements_library(*what)).run

    @cuda.jit
    def kernel(x, factors, to, random, key0, key1, status, count, length, inner, size, blocks):
        at = np.int64(cuda.grid(1)) * np.int64(_GROUP)
        if at < count:
            met = group(
                ffi.from_buffer(x), ffi.from_buffer(factors), ffi.from_buffer(to), ffi.from_buffer(random), at,
                np.int32(min(np.int64(_GROUP), count - at)), key0, key1, length, inner, size, blocks,
            )  # fmt: skip
            if met != 0:
                cuda.atomic.or_(status, 0, met)

    return kernel


# ---- launches --------------------------------------------------------------------------------------------------------


def _line(x):
    """The bits of an array in C order, in one dimension."""
    return _cuda.bits(x if x.ndim == 1 else x.reshape((x.size,)))


def _largest(x, layout: Layout, carrier: str):
    """The largest magnitude of each block."""
    parts = -(-layout.size // _PART)
    shape, word = layout.outer * layout.blocks * layout.inner, CARRIERS[carrier][1]
    largest = _cuda.empty(shape, word) if parts == 1 else _cuda.filled(shape, word, 0)
    count = shape * parts
    _cuda.launch(largest_kernel(carrier), *grid(count), x, largest, count, parts, *layout[1:])
    return largest


def _tensor_scale(largest, fmt: BlockFormat, given, carrier: str):
    """The scale of the whole array, as `softnum.encode` chooses it; None for formats without one."""
    amax = np.zeros(0)
    if fmt.tensor_scale is not None and given is None and largest is not None:
        found = _cuda.filled(1, largest.dtype, 0)
        _cuda.launch(finite_kernel(carrier), *grid(largest.size), largest, found)
        amax = _cuda.to_host(found).view(carrier).astype(np.float64)
    return tensor_scale_of(amax, fmt, given)


def _bits_of(x) -> np.uint64:
    return np.float64(x).view(np.uint64)


def _scales(x, fmt: BlockFormat, layout: Layout, shape, rule: str, tensor_scale, carrier: str):
    """(codes of scales, their factors, the tensor's scale or None) of packed bits of a carrier."""
    scales = _cuda.empty(shape, fmt.scale.storage_dtype)
    if not x.size:
        return scales, None, _tensor_scale(None, fmt, tensor_scale, carrier)
    largest = _largest(x, layout, carrier)
    tensor = _tensor_scale(largest, fmt, tensor_scale, carrier)
    factors, status = _cuda.empty(largest.size, np.uint64), _cuda.filled(1, np.uint32, 0)
    each = np.float64(1 if tensor is None else tensor)
    divisor = _bits_of(0 if tensor is None else np.float64(fmt.element.max) * each)
    _cuda.launch(
        scales_kernel(fmt, rule, carrier), *grid(largest.size), largest, _line(scales), factors, _bits_of(each),
        divisor, status,
    )  # fmt: skip
    if not fmt.scale.has_nan and _cuda.to_host(status)[0]:
        raise ValueError(f"encode: a block holds an infinity or a NaN, and scale={fmt.scale} has no NaN to say so")
    return scales, factors, tensor


def _aligned(x) -> bool:
    return _cuda.address_of(x) % min(_GROUP * x.dtype.itemsize, 16) == 0


def _elements(x, factors, out, layout: Layout, what: tuple, words: Words | None = None, symmetric: bool = False) -> int:
    """Codes or values of packed bits, or codes, into out; what was met. what: fmt, env, given, result."""
    words = words or Words()
    arrays = [_line(x), _line(out), *([] if words.array is None else [_line(words.array)])]
    wide = all(map(_aligned, arrays))
    kernel = elements_kernel(*what, words.kind, wide, layout.inner == 1, symmetric)
    status = _cuda.filled(1, np.uint32, 0)
    groups = -(-x.size // _GROUP)
    threads = min(_cuda.THREADS, groups)
    _cuda.launch(
        kernel, -(-groups // threads), threads, arrays[0], factors, arrays[1],
        status if words.array is None else arrays[2], *map(np.uint32, words.key), status, x.size, *layout[1:],
    )  # fmt: skip
    return int(_cuda.to_host(status)[0]) if what[3] in CARRIERS else 0


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


def _prepared(x, what: str, fmt, axis, rounding, overflow, key, random_bits, stochastic_bits):
    """(packed x, format, shape of scales, layout, environment of elements, words)."""
    fmt, x = format(fmt), floats(x, what)
    axis = axis_of(axis, x.ndim, what)
    env = environment(fmt.element, rounding, "saturate" if overflow is None else overflow, stochastic_bits)
    words = words_of(rounding_name(rounding).startswith("stochastic"), key, random_bits, x.shape)
    return contiguous(x), fmt, blocked(tuple(x.shape), fmt, axis), Layout.of(x.shape, fmt, axis), env, words


def encode_blocks(
    x, fmt, *, axis=-1, rule, symmetric=False, tensor_scale=None, rounding="nearest_even", overflow=None, key=None,
    random_bits=None, stochastic_bits=32,
):  # fmt: skip
    """Codes of a CUDA array in a block format, on the device: what `softnum.encode` gives on the CPU.

    Parameters
    ----------
    x : Numba CUDA array of float32 or float64, any shape and strides
    rule : str
        One of `softnum.blocks.SCALE_RULES`.
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
    x, fmt, shape, layout, env, words = _prepared(
        x, "encode", fmt, axis, rounding, overflow, key, random_bits, stochastic_bits
    )
    carrier, given = x.dtype.name, _line(x)
    scales, factors, tensor = _scales(given, fmt, layout, shape, rule, tensor_scale, carrier)
    codes = _cuda.empty(tuple(x.shape), fmt.element.storage_dtype)
    if x.size:
        _elements(given, factors, codes, layout, (fmt, env, carrier, codes.dtype.name), words, symmetric)
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
    x, fmt, shape, layout, env, words = _prepared(
        x, "quantize", fmt, axis, rounding, overflow, key, random_bits, stochastic_bits
    )
    carrier, given = x.dtype.name, _line(x)
    _, factors, _ = _scales(given, fmt, layout, shape, rule, tensor_scale, carrier)
    values, met = _cuda.empty(tuple(x.shape), x.dtype), 0
    if x.size:
        met = _elements(given, factors, values, layout, (fmt, env, carrier, carrier), words, symmetric)
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
        codes, scales = contiguous(codes), _line(contiguous(scales))
        factors = _cuda.empty(scales.size, np.uint64)
        tensor = _bits_of(1 if tensor_scale is None else tensor_scale)
        _cuda.launch(factors_kernel(fmt), *grid(scales.size), scales, factors, tensor)
        met = _elements(_line(codes), factors, values, layout, (fmt, None, codes.dtype.name, dtype.name))
    return _delivered(values, met, fmt, dtype, out)


for _function, _name in ((encode_blocks, "encode"), (quantize_blocks, "quantize"), (decode_blocks, "decode")):
    _function.__name__ = _name  # as users called it, in errors


# ---- for the link check ----------------------------------------------------------------------------------------------


def kernels_of(fmt, *, rule, rounding="nearest_even", carrier="float32", last=True):
    """The kernels that quantize, encode and decode launch for a block format, from and to contiguous arrays.

    (name, kernel, types of its arguments, whether it promises no local memory) of each.
    """
    from numba import types

    def array(kind):
        return types.Array(_cuda.scalar_type(CARRIERS[kind][1] if kind in CARRIERS else kind), 1, "C")

    fmt = format(fmt)
    i64, u32, u64, element = types.int64, types.uint32, types.uint64, fmt.element.storage_dtype.name
    values, scales, factors, status = map(array, (carrier, fmt.scale.storage_dtype.name, "uint64", "uint32"))
    geometry, env = (i64,) * 4, environment(fmt.element, rounding, "saturate", 16)
    words = FROM_KEY if rounding_name(rounding).startswith("stochastic") else NO_WORDS
    yield f"largest of {carrier}", largest_kernel(carrier), (values, values, i64, i64, *geometry), True
    yield f"largest finite one of {carrier}", finite_kernel(carrier), (values, values), True
    kernel = scales_kernel(fmt, rule, carrier)
    yield f"scales of {fmt} by {rule}", kernel, (values, scales, factors, u64, u64, status)
    yield f"factors of {fmt}", factors_kernel(fmt), (scales, factors, u64)
    for name, own_env, given, result in (
        ("quantize", env, carrier, carrier), ("encode", env, carrier, element), ("decode", None, element, carrier)
    ):  # fmt: skip
        kernel = elements_kernel(fmt, own_env, given, result, words if own_env else NO_WORDS, True, last, False)
        kinds = (array(given), factors, array(result), status, u32, u32, status, i64, *geometry)
        yield f"{name} {fmt} {rounding} of {carrier}", kernel, kinds


def examples():
    """Kernels for the link check: by powers of two, by quotients, and by the definition."""
    mx = list(kernels_of("mxfp8_e4m3", rule="floor"))
    yield mx[4]
    yield from mx[:4]
    yield from list(kernels_of("nvfp4", rule="max", last=False))[2:]
    yield list(kernels_of("nvfp4", rule="rceil", rounding="stochastic", carrier="float64"))[5]
    yield list(kernels_of(BlockFormat("binary32", "binary32", 16, tensor_scale="e5m2"), rule="max"))[4]

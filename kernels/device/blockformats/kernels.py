"""The kernels of block formats: the largest magnitude of each block, its scale, and its elements.

Elements are made by threads of four neighbours. Short blocks that fill the last axis take one kernel: a thread block
shares the largest magnitudes of its fours. Others take three. A maximum does not depend on the order in which it is
found.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softnum.arrays.environment import environment
from softnum.formats.blocks import BlockFormat, format
from softnum.formats.modes import rounding_name
from softnum.kernels.device.blockformats.text import NO_SCALE, elements_library, largest_library, scale_library
from softnum.kernels.device.elementwise.computations import CARRIERS, FROM_KEY, NO_WORDS
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import cuda, ffi

__all__ = [
    "GROUP", "TILE", "elements_kernel", "examples", "factors_kernel", "finite_kernel", "kernels_of", "largest_kernel",
    "scales_kernel", "tile_kernel",
]  # fmt: skip

GROUP = 4  # elements of a thread: those of one Philox counter
TILE = GROUP * _cuda.THREADS  # elements of a thread block

_INFINITY = {"float32": np.uint32(0x7F800000), "float64": np.uint64(0x7FF0000000000000)}


@lru_cache(maxsize=4)
def largest_kernel(carrier: str):
    """The kernel ``(x, largest, count, parts, length, inner, size, blocks)``: the largest magnitude of each block, as
    the carrier's bits, where NaN is above all.

    A thread looks at every parts-th element of a block; if parts is not 1, largest starts from 0.
    """
    word = np.dtype(CARRIERS[carrier][1]).type
    magnitude = word((1 << (8 * word(0).itemsize - 1)) - 1)

    @cuda.jit
    def kernel(x, largest, count, parts, length, inner, size, blocks):
        for item in range(cuda.grid(1), count, cuda.gridsize(1)):
            rest = item // inner
            i = item - rest * inner
            block = rest // parts
            part = rest - block * parts
            outer = block // blocks
            begins = (block - outer * blocks) * size
            at = (outer * length + begins + part) * inner + i
            top = word(0)
            for _ in range(begins + part, min(begins + size, length), parts):
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
    """The kernel ``(largest, scales, factors, tensor, divisor, status)``: codes of scales, and factors."""
    f = _cuda.bind(scale_library(fmt, rule, carrier))
    code, factor, infinity, tells = f.code, f.factor, _INFINITY[carrier], not fmt.scale.has_nan
    no_scale = np.uint32(NO_SCALE)

    @cuda.jit
    def kernel(largest, scales, factors, tensor, divisor, status):
        for i in range(cuda.grid(1), largest.shape[0], cuda.gridsize(1)):
            if tells and largest[i] >= infinity:
                cuda.atomic.or_(status, 0, no_scale)
            scale = code(largest[i], divisor)
            scales[i] = scale
            factors[i] = factor(scale, tensor)

    return kernel


@lru_cache(maxsize=64)
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
    """The kernel ``(x, factors, to, random, key0, key1, status, count, length, inner, size, blocks)``; what: as
    `elements_library`."""
    group = _cuda.bind(elements_library(*what)).run

    @cuda.jit
    def kernel(x, factors, to, random, key0, key1, status, count, length, inner, size, blocks):
        at = np.int64(cuda.grid(1)) * np.int64(GROUP)
        if at < count:
            met = group(
                ffi.from_buffer(x), ffi.from_buffer(factors), ffi.from_buffer(to), ffi.from_buffer(random), at,
                np.int32(min(np.int64(GROUP), count - at)), key0, key1, length, inner, size, blocks,
            )  # fmt: skip
            if met != 0:
                cuda.atomic.or_(status, 0, met)

    return kernel


@lru_cache(maxsize=64)
def tile_kernel(rule: str, result: str | None, fmt: BlockFormat, size: int, env, carrier: str, *how):
    """The kernel ``(x, found, scales, factors, to, random, key0, key1, status, count, tensor, divisor)`` of blocks of
    `size` elements side by side, which divides TILE and the number of elements, and is a multiple of GROUP; in thread
    blocks of TILE elements.

    how: words, wide and symmetric, as in `elements_library`. result None: the largest finite magnitude of a block, in
    found[0], which starts from 0, and nothing else.
    """
    words, wide, symmetric = how
    fours = _cuda.bind(largest_library(carrier, wide)).largest
    f = _cuda.bind(scale_library(fmt, rule, carrier))
    code, factor, infinity, tells = f.code, f.factor, _INFINITY[carrier], not fmt.scale.has_nan
    word, no_scale, threads, searches = type(infinity), np.uint32(NO_SCALE), _cuda.THREADS, result is None
    kind, none = CARRIERS[carrier][1], np.int64(0)
    group = _cuda.bind(elements_library(fmt, env, carrier, result or kind, words, wide, "one", symmetric)).run
    whole, own, four = np.int64(size), size // GROUP, np.int32(GROUP)

    @cuda.jit
    def kernel(x, found, scales, factors, to, random, key0, key1, status, count, tensor, divisor):
        shared = cuda.shared.array(threads, kind)
        thread = cuda.threadIdx.x
        at = np.int64(cuda.grid(1)) * np.int64(GROUP)
        block = at // whole
        shared[thread] = fours(ffi.from_buffer(x), at) if at < count else word(0)
        cuda.syncthreads()
        if at < count and thread % own == 0:
            top = word(0)
            for i in range(own):
                top = max(top, shared[thread + i])
            if searches:
                if top < infinity and top > found[0]:
                    cuda.atomic.max(found, 0, top)
            else:
                if tells and top >= infinity:
                    cuda.atomic.or_(status, 0, no_scale)
                scale = code(top, divisor)
                scales[block] = scale
                factors[block] = factor(scale, tensor)
        if not searches:
            cuda.syncthreads()
            if at < count:
                met = group(
                    ffi.from_buffer(x), ffi.from_buffer(factors), ffi.from_buffer(to), ffi.from_buffer(random), at,
                    four, key0, key1, none, none, none, block,
                )  # fmt: skip
                if met != 0:
                    cuda.atomic.or_(status, 0, met)

    return kernel


# ---- for the link check ----------------------------------------------------------------------------------------------


def kernels_of(fmt, *, rule, rounding="nearest_even", carrier="float32", where="last"):
    """The kernels that quantize, encode and decode launch for a block format, from and to contiguous arrays.

    (name, kernel, types of its arguments, whether it promises no local memory) of each.
    """
    from numba import types

    def array(kind):
        return _cuda.array_type(CARRIERS[kind][1] if kind in CARRIERS else kind)

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
        kernel = elements_kernel(fmt, own_env, given, result, words if own_env else NO_WORDS, True, where, False)
        kinds = (array(given), factors, array(result), status, u32, u32, status, i64, *geometry)
        yield f"{name} {fmt} {rounding} of {carrier}", kernel, kinds
    for result in (carrier, element, None):
        kernel = tile_kernel(rule, result, fmt, fmt.block_size, env, carrier, words, True, False)
        to = array(result or carrier)
        kinds = (values, values, scales, factors, to, status, u32, u32, status, i64, u64, u64)
        yield f"tiles of {fmt} {rounding} of {carrier} to {result}", kernel, kinds


def examples():
    """Kernels for the link check: by powers of two, by quotients, and by the definition."""
    first, *mx = kernels_of("mxfp8_e4m3", rule="floor")
    yield mx[-3]
    yield first
    yield from mx[:4]
    nv = list(kernels_of("nvfp4", rule="max", where="any"))
    yield from nv[2:7]
    yield nv[-1]
    yield list(kernels_of("nvfp4", rule="rceil", rounding="stochastic", carrier="float64"))[-2]
    yield list(kernels_of(BlockFormat("binary32", "binary32", 16, tensor_scale="e5m2"), rule="max"))[4]

"""Element by element on the device, exact or rounded to the carrier: choosing, comparing, and finding the largest.

Elements are bits. What is computed with them is C text over word/machine.h, whose every operation names its
rounding; of a NaN the bits are those of an x86 processor (the first operand's, made quiet).
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from softnum.kernels.device.elementwise.deferred import example
from softnum.kernels.device.elementwise.maps import CARRIER_TEXT, HEADER, map_computation
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import cuda
from softnum.kernels.device.runtime.copies import run
from softnum.kernels.device.runtime.movement import DeviceArray, empty
from softnum.kernels.device.runtime.source import Entry, Library

__all__ = ["all_finite", "drawn", "examples", "largest", "largest_of_all", "largest_of_groups"]

_FINITE = {"uint32": 0x7F800000, "uint64": 0x7FF0000000000000}
_BITS = {"uint32": (32, 23), "uint64": (64, 52)}

# ---- what there is in an array ---------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def finite_kernel(kind: str):
    """The kernel ``(bits, count, found)``: found[0] = 1 if there is an infinity or a NaN."""
    exponent = np.dtype(kind).type(_FINITE[kind])

    @cuda.jit
    def kernel(x, count, found):
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            if (x[i] & exponent) == exponent:
                found[0] = 1

    return kernel


def all_finite(x: DeviceArray) -> bool:
    """Whether no element is infinite or NaN."""
    found, bits = _cuda.filled(1, np.uint32, 0), _cuda.bits(x.flat)
    run(finite_kernel(bits.dtype.name), x.size, bits, x.size, found)
    return not _cuda.to_host(found)[0]


def _functions(width: int):
    """size(bits), a magnitude in the order of integers; larger(bits, bits)."""
    kind = f"uint{width}"
    entries = (
        Entry("size", "uint64", ((kind, "x"),), f"return _size{width}(x);"),
        Entry("larger", "uint32", ((kind, "x"), (kind, "y")), f"return (sn_u32)_larger{width}(x, y);"),
    )
    return _cuda.bind(Library(CARRIER_TEXT, entries, HEADER))


@lru_cache(maxsize=4)
def largest_kernel(width: int):
    """The kernel ``(parts, best, chosen, count, places)``: of places arrays, one after the other."""
    larger = _functions(width).larger

    @cuda.jit
    def kernel(parts, best, chosen, count, places):
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            found = parts[i]
            which = 0
            for place in range(1, places):
                other = parts[place * count + i]
                if larger(found, other) != 0:
                    found = other
                    which = place
            best[i] = found
            chosen[i] = which

    return kernel


def largest(parts: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """The largest along the first axis (NaN if there is one), and which it is: the first among equals."""
    shape, places = parts.shape[1:], parts.shape[0]
    best, chosen = empty(shape, parts.dtype), empty(shape, np.min_scalar_type(places - 1))
    run(
        largest_kernel(8 * parts.dtype.itemsize), best.size, _cuda.bits(parts.flat), _cuda.bits(best.flat), chosen.flat,
        best.size, places,
    )  # fmt: skip
    return best, chosen


@lru_cache(maxsize=4)
def group_kernel(width: int):
    """The kernel ``(x, kept, count, keep, size, length, inner)``; x is (outer, length, inner) in C order."""
    magnitude = _functions(width).size

    @cuda.jit
    def kernel(x, kept, count, keep, size, length, inner):
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            row = i // inner
            place = row - row // length * length
            first = place // size * size
            mine = magnitude(x[i])
            before = 0
            for other in range(first, min(first + size, length)):
                theirs = magnitude(x[i + (other - place) * inner])
                if theirs > mine or (theirs == mine and other < place):
                    before += 1
            kept[i] = 1 if before < keep else 0

    return kernel


def largest_of_groups(x: DeviceArray, count: int, size: int, axis: int) -> DeviceArray:
    """A mask of the ``count`` largest magnitudes of each ``size`` along an axis, the first among equals."""
    kept, axis = empty(x.shape, np.bool_), axis % x.ndim
    run(
        group_kernel(8 * x.dtype.itemsize), x.size, _cuda.bits(x.flat), _cuda.bits(kept.flat), x.size, count, size,
        x.shape[axis], prod(x.shape[axis + 1 :]),
    )  # fmt: skip
    return kept


_DIGIT = 8  # bits of a key that one pass over the elements looks at


@lru_cache(maxsize=4)
def digit_kernel(width: int, by_place: bool):
    """The kernel ``(x, count, counts, shift, above, size)``: how often each digit occurs among those that are left.

    The keys are magnitudes, or with by_place the places of those whose magnitude is ``size``. Left are those whose
    bits above the digit's are ``above``.
    """
    magnitude = _functions(width).size
    base = 1 << _DIGIT

    @cuda.jit
    def kernel(x, count, counts, shift, above, size):
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            key = np.int64(magnitude(x[i]))
            counts_too = True
            if by_place:
                counts_too = key == size
                key = np.int64(i)
            digits = key >> shift
            if counts_too and digits // base == above:
                cuda.atomic.add(counts, digits % base, 1)

    return kernel


@lru_cache(maxsize=4)
def kept_kernel(width: int):
    """The kernel ``(x, kept, count, size, place)``: larger magnitudes than size, and that size up to a place."""
    magnitude = _functions(width).size

    @cuda.jit
    def kernel(x, kept, count, size, place):
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            key = np.int64(magnitude(x[i]))
            kept[i] = 1 if key > size or (key == size and i <= place) else 0

    return kernel


def largest_of_all(x: DeviceArray, count: int) -> DeviceArray:
    """A mask of the so many largest magnitudes of an array, of 1 to x.size, the first in C order among equals.

    The smallest magnitude that is kept is found digit by digit from the top: a pass counts how often each digit occurs
    among those that begin alike. Among equals the last place is found in the same way.
    """
    if x.size >= 2**31:
        raise ValueError(f"the largest elements are found in arrays of fewer than 2**31, got {x.size}")
    width, bits = 8 * x.dtype.itemsize, _cuda.bits(x.flat)

    def digits_of(by_place: bool, size: int, shift: int, above: int) -> np.ndarray:
        counts = _cuda.filled(1 << _DIGIT, np.uint32, 0)
        run(digit_kernel(width, by_place), x.size, bits, x.size, counts, shift, above, size)
        return _cuda.to_host(counts).astype(np.int64)

    size = place = 0
    left = count
    for shift in range(width - _DIGIT, -1, -_DIGIT):
        counts = digits_of(False, 0, shift, size)[::-1]
        digit = int(np.searchsorted(np.cumsum(counts), left))
        left -= int(counts[:digit].sum())
        equals = int(counts[digit])
        size = (size << _DIGIT) + (1 << _DIGIT) - 1 - digit
    if left == equals:
        place = x.size
    else:
        for shift in range((x.size.bit_length() - 1) // _DIGIT * _DIGIT, -1, -_DIGIT):
            counts = digits_of(True, size, shift, place)
            digit = int(np.searchsorted(np.cumsum(counts), left))
            left -= int(counts[:digit].sum())
            place = (place << _DIGIT) + digit
    kept = empty(x.shape, np.bool_)
    run(kept_kernel(width), x.size, bits, _cuda.bits(kept.flat), x.size, size, place)
    return kept


# ---- masks drawn at random -------------------------------------------------------------------------------------------

_PHILOX = Entry(
    "words", "void", (("uint64", "block"), ("uint64", "stream"), ("uint64", "key0"), ("uint64", "key1"),
                      ("uint64*", "out")),
    """
sn_u64 c0 = block + 1, c1 = stream + !c0, c2 = 0, c3 = 0; /* NumPy counts before it draws */
if (!c0 && !c1) c2 = 1;
for (sn_i32 round = 0; round < 10; round++) {
    const sn_u128 a = sn_u128_mul(0xd2e7470ee14c6c93u, c0), b = sn_u128_mul(0xca5a826395121157u, c2);
    c0 = b.hi ^ c1 ^ key0;
    c1 = b.lo;
    c2 = a.hi ^ c3 ^ key1;
    c3 = a.lo;
    key0 += 0x9e3779b97f4a7c15u;
    key1 += 0xbb67ae8584caa73bu;
}
out[0] = c0;
out[1] = c1;
out[2] = c2;
out[3] = c3;
""",
)  # fmt: skip


@lru_cache(maxsize=2)
def draw_kernel():
    """The kernel ``(kept, count, stream, key0, key1, least)``: whether each element's word is at least ``least``."""
    words, ffi = _cuda.bind(Library("", (_PHILOX,), HEADER)).words, _cuda.ffi

    @cuda.jit
    def kernel(kept, count, stream, key0, key1, least):
        drawn = cuda.local.array(4, np.uint64)
        for block in range(cuda.grid(1), (count + 3) // 4, cuda.gridsize(1)):
            words(np.uint64(block), stream, key0, key1, ffi.from_buffer(drawn))
            for i in range(min(4, count - block * 4)):
                kept[block * 4 + i] = 1 if drawn[i] >= least else 0

    return kernel


def drawn(shape, stream: int, keys: tuple[int, int], least: int) -> DeviceArray:
    """A mask of the elements whose word is at least ``least``.

    Element i, in C order, has word i of NumPy's Philox4x64-10 with these keys and a counter of stream * 2**64.
    """
    kept = empty(shape, np.bool_)
    run(
        draw_kernel(), kept.size, _cuda.bits(kept.flat), kept.size, np.uint64(stream), np.uint64(keys[0]),
        np.uint64(keys[1]), np.uint64(least),
    )  # fmt: skip
    return kept


def examples():
    """(name, kernel, types of its arguments) of some kernels."""
    from numba import types

    u8, u32, u64, i64 = types.uint8, types.uint32, types.uint64, types.int64

    def flat(kind):
        return types.Array(kind, 1, "C")

    for operation, width in (("add", 32), ("choose", 64), ("divide", 32)):
        computation = map_computation(operation, width)
        loads = tuple(
            (kind, "number" if i and operation == "divide" else "whole") for i, kind in enumerate(computation.inputs)
        )
        yield example(f"{operation} of {width} bits", ((computation, False, tuple(range(len(loads)))),), loads)
    yield "finite", finite_kernel("uint32"), (flat(u32), i64, flat(u32))
    yield "largest", largest_kernel(32), (flat(u32), flat(u32), flat(u8), i64, i64)
    yield "groups", group_kernel(32), (flat(u32), flat(u8), i64, i64, i64, i64, i64)
    yield "digits", digit_kernel(32, True), (flat(u32), i64, flat(u32), i64, i64, i64)
    yield "kept", kept_kernel(32), (flat(u32), flat(u8), i64, i64, i64)
    yield "drawn", draw_kernel(), (flat(u8), i64, u64, u64, u64, u64)
    product = map_computation("multiply", 32)
    yield example("multiply of 32 bits", ((product, False, (0, 1)),), (("uint32", "whole"),) * 2)

"""Element by element on the device, exact or rounded to the carrier: choosing, comparing, and finding the largest.

Elements are bits. What is computed with them is C text over csrc/softnum/machine.h, whose every operation names its
rounding; of a NaN the bits are those of an x86 processor (the first operand's, made quiet).
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod

import numpy as np

from softnum.kernels.device import _cuda
from softnum.kernels.device._cuda import cuda
from softnum.kernels.device.computations import Computation
from softnum.kernels.device.deferred import example
from softnum.kernels.device.movement import DeviceArray, deferred, empty, run
from softnum.kernels.device.source import Entry, Library

__all__ = ["all_finite", "drawn", "examples", "largest", "largest_of_all", "largest_of_groups", "mapped"]

_HEADER = "softnum/machine.h"
_FINITE = {"uint32": 0x7F800000, "uint64": 0x7FF0000000000000}
_BITS = {"uint32": (32, 23), "uint64": (64, 52)}

#: what bits of 32 and 64 have in common: NaN made quiet, the exponent's bits
_CONSTANTS = """
SN_FN sn_i32 _is_nan32(sn_u32 x) { return (x & 0x7fffffffu) > 0x7f800000u; }
SN_FN sn_i32 _is_nan64(sn_u64 x) { return (x & 0x7fffffffffffffffu) > 0x7ff0000000000000u; }
SN_FN sn_u32 _quiet32(sn_u32 x) { return x | 0x00400000u; }
SN_FN sn_u64 _quiet64(sn_u64 x) { return x | 0x0008000000000000u; }
/* x + y; a NaN that no operand brings is x86's, which has a sign */
SN_FN sn_u32 _sum32(sn_u32 x, sn_u32 y) {
    if (_is_nan32(x)) return _quiet32(x);
    if (_is_nan32(y)) return _quiet32(y);
    const sn_u32 s = sn_bits32(sn_add32(sn_float32(x), sn_float32(y)));
    return _is_nan32(s) ? 0xffc00000u : s;
}
SN_FN sn_u64 _sum64(sn_u64 x, sn_u64 y) {
    if (_is_nan64(x)) return _quiet64(x);
    if (_is_nan64(y)) return _quiet64(y);
    const sn_u64 s = sn_bits64(sn_add64(sn_float64(x), sn_float64(y)));
    return _is_nan64(s) ? 0xfff8000000000000u : s;
}
SN_FN sn_u64 _wide32(sn_u32 x) {
    if (_is_nan32(x)) return (sn_u64)(x >> 31) << 63 | 0x7ff8000000000000u | (sn_u64)(x & 0x7fffffu) << 29;
    return sn_bits64(sn_widen(sn_float32(x)));
}
SN_FN sn_u64 _wide64(sn_u64 x) { return x; }
SN_FN sn_u32 _narrow64(sn_u64 x) {
    if (_is_nan64(x)) return (sn_u32)(x >> 63) << 31 | 0x7fc00000u | ((sn_u32)(x >> 29) & 0x7fffffu);
    return sn_bits32(sn_narrow(sn_float64(x)));
}
/* x / y in binary64, for a finite y that is not 0 */
SN_FN sn_u64 _quotient(sn_u64 x, sn_u64 y) {
    if (_is_nan64(x)) return _quiet64(x);
    return sn_bits64(sn_divide64(sn_float64(x), sn_float64(y)));
}
/* Magnitudes as integers in their order; that of a NaN is infinite. */
SN_FN sn_u64 _size32(sn_u32 x) { return _is_nan32(x) ? 0x7f800000u : x & 0x7fffffffu; }
SN_FN sn_u64 _size64(sn_u64 x) { return _is_nan64(x) ? 0x7ff0000000000000u : x & 0x7fffffffffffffffu; }
/* Whether y takes x's place as the largest: the first of equals stays, and the first NaN. */
SN_FN sn_i32 _larger32(sn_u32 x, sn_u32 y) {
    return !_is_nan32(x) && !(sn_float32(y) <= sn_float32(x));
}
SN_FN sn_i32 _larger64(sn_u64 x, sn_u64 y) {
    return !_is_nan64(x) && !(sn_float64(y) <= sn_float64(x));
}
"""

_SIGN = {32: "0x80000000u", 64: "0x8000000000000000u"}

#: operation -> (kinds of the arrays, kind of the result, C expression of their elements x, y, z and the scalars s, t).
#: Kinds: "c" the carrier's bits, "w" those of binary64, "n" those of binary32, "m" a mask, "i" a number.
#: {w} is the carrier's width.
_MAPS: dict[str, tuple[str, str, str]] = {
    "add": ("cc", "c", "_sum{w}(x, y)"),
    "clamp": (
        "c", "c", "sn_float{w}(x) < sn_float{w}((c)s) ? (c)s : sn_float{w}(x) > sn_float{w}((c)t) ? (c)t : x",
    ),
    "choose": ("mcc", "c", "x ? y : z"),
    "choose_or": ("mc", "c", "x ? y : (c)s"),
    "divide": ("c", "w", "_quotient(_wide{w}(x), s)"),
    "narrow": ("c", "n", "_narrow64(x)"),
    "negate": ("c", "c", "x ^ {sign}"),
    "not": ("m", "m", "!x"),
    "positive_part": ("c", "c", "sn_float{w}(x) > 0 ? x : _is_nan{w}(x) ? _quiet{w}(x) : 0"),
    "where_equal": ("ic", "c", "x == s ? y : 0"),
    "where_positive": ("cc", "c", "sn_float{w}(x) > 0 ? y : 0"),
    "widen": ("c", "w", "_wide{w}(x)"),
}  # fmt: skip


@lru_cache(maxsize=64)
def map_computation(operation: str, width: int, numbers: int = 64) -> Computation:
    """What an operation makes of carriers of a width, of numbers of another, and of s and t where it takes them."""
    kinds, result, text = _MAPS[operation]
    carrier = f"uint{width}"
    types = {"c": carrier, "w": "uint64", "n": "uint32", "m": "uint8", "i": f"uint{numbers}", "s": "uint64"}
    inputs, body = [], ""
    for name, kind in (*zip("xyz", kinds, strict=False), *((name, "s") for name in _numbers(operation))):
        body += f"const sn_u{types[kind][4:]} {name} = (sn_u{types[kind][4:]})in{len(inputs)};\n"
        inputs.append(types[kind])
    text = text.format(w=width, sign=_SIGN[width]).replace("(c)", f"(sn_u{width})")
    return Computation(tuple(inputs), types[result], f"{body}out = {text};\n", _CONSTANTS, _HEADER)


def _numbers(operation: str) -> str:
    """Which of s and t an operation takes."""
    return "".join(name for name in "st" if re.search(rf"\b{name}\b", _MAPS[operation][2]))


def _scalar(x) -> int:
    """A number of a NumPy type as its bits, a Python integer as it is."""
    return x if isinstance(x, int) else int(np.asarray(x).reshape(1).view(f"u{np.asarray(x).itemsize}")[0])


def mapped(operation: str, *arrays: DeviceArray, s=0, t=0) -> DeviceArray:
    """An operation on every element, when it is read.

    Parameters
    ----------
    operation : str
        "add" (rounded to the carrier), "negate", "positive_part" (+0 for what is not above 0; NaN stays), "clamp" (to
        s..t), "where_positive" (y where x is above 0, else +0), "where_equal" (y where the number x is s, else +0),
        "choose" (y where x, else z), "choose_or" (y where x, else s), "not" of a mask; "widen" and "narrow" between
        binary32 and binary64; "divide" by s, in binary64.
    *arrays : DeviceArray
        Of one shape, or that broadcast to one; masks are of type bool.
    s, t : int or NumPy scalar
        Of the carrier's type (of "divide", binary64), or an integer.

    Returns
    -------
    DeviceArray
    """
    kinds, result, _ = _MAPS[operation]
    shape = np.broadcast_shapes(*(x.shape for x in arrays))
    carriers = {x.dtype for x, kind in zip(arrays, kinds, strict=True) if kind == "c"} or {np.dtype(np.float32)}
    if len(carriers) > 1 or not carriers <= {np.dtype(np.float32), np.dtype(np.float64)}:
        raise TypeError(f"{operation} takes arrays of one carrier, float32 or float64, got {arrays}")
    (carrier,) = carriers
    dtype = {"c": carrier, "w": np.float64, "n": np.float32, "m": np.bool_}[result]
    numbers = ({"s": s, "t": t}[name] for name in _numbers(operation))
    widths = [8 * x.dtype.itemsize for x, kind in zip(arrays, kinds, strict=True) if kind == "i"]
    computation = map_computation(operation, 8 * carrier.itemsize, *widths)
    return deferred(computation, (*arrays, *map(_scalar, numbers)), shape, dtype)


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
    return _cuda.bind(Library(_CONSTANTS, entries, _HEADER))


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
    words, ffi = _cuda.bind(Library("", (_PHILOX,), _HEADER)).words, _cuda.ffi

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

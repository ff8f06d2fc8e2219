"""Codes of any width packed into bytes, and back: 4- and 6-bit formats take half and three quarters of a byte.

Along the last axis, element 0 lies in the least significant bits of byte 0, each element follows the one before, bit 0
first, and runs over into the next byte where it must; the bits that are left in the last byte of a row are zero. Two
4-bit codes make a byte with the even one low (as in PyTorch's float4_e2m1fn_x2), four 6-bit codes make three bytes, and
an OCP MX block, whose size is a multiple of 8, always ends on a byte. ml_dtypes does not pack: `Array.to_numpy` gives
its layout of one element a byte. Of a BlockArray `a` blocked along its last axis, ``pack(a.codes, a.format.element)``
packs the elements; the scales lie apart (`softnum.formats.tile_scales`: as matrix units read them).
"""

from __future__ import annotations

from math import gcd

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from softnum.arrays.blocks import BlockArray
from softnum.arrays.checks import check_codes
from softnum.arrays.container import Array
from softnum.formats.annotations import FormatLike, Formats
from softnum.formats.names import format
from softnum.formats.wide import TWO_WORDS

__all__ = ["pack", "pack_bits", "unpack", "unpack_bits"]


def _pieces(bits: int):
    """How the codes of a group lie in its bytes: (code, byte, shift): the byte takes the code >> shift."""
    for code in range(_codes_of_group(bits)):
        first, last = code * bits // 8, ((code + 1) * bits - 1) // 8
        for byte in range(first, last + 1):
            yield code, byte, 8 * byte - code * bits


def _codes_of_group(bits: int) -> int:
    """The fewest codes that fill whole bytes."""
    return 8 // gcd(bits, 8)


def _padded(array: np.ndarray, multiple: int) -> np.ndarray:
    """The array in groups of `multiple` along its last axis, the last one filled with zeros: shape (..., groups, n)."""
    groups = -(-array.shape[-1] // multiple)
    if groups * multiple != array.shape[-1]:
        filled = np.zeros((*array.shape[:-1], groups * multiple), array.dtype)
        filled[..., : array.shape[-1]] = array
        array = filled
    return array.reshape(*array.shape[:-1], groups, multiple)


def pack(codes: ArrayLike, fmt: Formats | None = None) -> np.ndarray:
    """Pack codes into bytes along the last axis.

    Parameters
    ----------
    codes : Array, or array_like of codes (then with `fmt`), shape (..., n)
    fmt : format or str

    Returns
    -------
    ndarray of uint8, shape (..., ceil(n * bits / 8))
        Each row starts on a byte; its last byte's unused high bits are zero.

    Raises
    ------
    ValueError
        If a code does not fit the format's bits, or there is no axis.

    Examples
    --------
    >>> import softnum as sn
    >>> sn.arrays.pack([0x1, 0x2, 0xf], "e2m1fn")
    array([33, 15], dtype=uint8)
    >>> sn.arrays.pack(sn.array([1.0, -1.0, 2.0, 0.0], "e3m2fn")).shape
    (3,)
    """
    if isinstance(codes, BlockArray):
        raise TypeError(
            "pack: elements and scales of a BlockArray are packed separately: pack(a.codes, a.format.element), a.scales"
        )
    if isinstance(codes, Array):
        if fmt is not None:
            raise ValueError("pack: an Array carries its format; leave fmt= out")
        codes, fmt = codes.codes, codes.format
    elif fmt is None:
        raise ValueError("pack: plain encodings do not carry a format; give fmt=, or an Array")
    fmt = format(fmt)
    codes = check_codes(codes, fmt)
    if codes.ndim == 0:
        raise ValueError("pack: a scalar has no axis to pack along; reshape it to (1,)")
    return pack_bits(codes, fmt.bits)


def pack_bits(codes: np.ndarray, bits: int) -> np.ndarray:
    """`pack` for unsigned codes of so many bits, unchecked."""
    if codes.dtype == TWO_WORDS:
        octets = np.stack([codes["low"], codes["high"]], -1).astype("<u8").view(np.uint8)
        each = np.unpackbits(octets, axis=-1, count=bits, bitorder="little")
        return np.packbits(each.reshape(*codes.shape[:-1], codes.shape[-1] * bits), axis=-1, bitorder="little")
    if bits == 8 * codes.itemsize:
        return codes.astype(codes.dtype.newbyteorder("<"), order="C").view(np.uint8)
    groups = _padded(codes, _codes_of_group(bits))
    out = np.zeros((*groups.shape[:-1], groups.shape[-1] * bits // 8), np.uint8)
    for code, byte, shift in _pieces(bits):
        part = groups[..., code]
        out[..., byte] |= (part >> shift).astype(np.uint8) if shift >= 0 else part.astype(np.uint8) << -shift
    out = out.reshape(*codes.shape[:-1], out.shape[-2] * out.shape[-1])
    return out[..., : _bytes_of_row(codes.shape[-1], bits)]


def _bytes_of_row(n: int, bits: int) -> int:
    return -(-n * bits // 8)


def unpack(packed: ArrayLike, fmt: FormatLike, count: int) -> np.ndarray:
    """Unpack what `pack` packed.

    Parameters
    ----------
    packed : array_like of uint8, shape (..., bytes), or bytes
    fmt : format or str
    count : int
        n, the length of the last axis: bytes = ceil(n * bits / 8).

    Returns
    -------
    ndarray of codes, shape (..., n)

    Raises
    ------
    ValueError
        If the rows have another length than `count` codes take, or a bit behind the last code is not zero.

    Examples
    --------
    >>> import softnum as sn
    >>> sn.arrays.unpack([33, 15], "e2m1fn", 3)
    array([ 1,  2, 15], dtype=uint8)
    >>> sn.Array(sn.arrays.unpack(b"\\x21\\x0f", "e2m1fn", 3), "e2m1fn")
    Array([ 0.5,  1. , -6. ], e2m1fn)
    """
    fmt = format(fmt)
    if isinstance(packed, (bytes, bytearray, memoryview)):
        packed = np.frombuffer(packed, np.uint8)
    packed = np.asarray(packed)
    if packed.dtype != np.uint8:
        if packed.dtype.kind not in "iu" or (packed.size and not 0 <= packed.min() <= packed.max() <= 255):
            raise TypeError(f"unpack needs bytes (uint8), got an array of {packed.dtype}")
        packed = packed.astype(np.uint8)
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 0:
        raise ValueError(f"unpack: count must be the number of encodings in a row, got {count!r}")
    expected = _bytes_of_row(count, fmt.bits)
    if packed.ndim == 0 or packed.shape[-1] != expected:
        raise ValueError(
            f"unpack: rows of {count} encodings of {fmt} have {expected} bytes, got an array of shape {packed.shape}"
        )
    used = count * fmt.bits % 8
    if used and packed.size and int(packed[..., -1].max()) >> used:
        raise ValueError(f"unpack: padding bits after the last of {count} encodings are not zero")
    return unpack_bits(packed, fmt.bits, count, fmt.storage_dtype)


def unpack_bits(packed: np.ndarray, bits: int, count: int, dtype: DTypeLike) -> np.ndarray:
    """`unpack` for bytes, unchecked, into codes of that type."""
    dtype = np.dtype(dtype)
    if dtype == TWO_WORDS:
        each = np.unpackbits(packed, axis=-1, count=count * bits, bitorder="little")
        octets = np.packbits(each.reshape(*packed.shape[:-1], count, bits), axis=-1, bitorder="little")
        words = np.zeros((*octets.shape[:-1], dtype.itemsize), np.uint8)
        words[..., : octets.shape[-1]] = octets
        low, high = np.moveaxis(words.view("<u8"), -1, 0)
        codes = np.empty(low.shape, TWO_WORDS)
        codes["low"], codes["high"] = low, high
        return codes
    if bits == 8 * dtype.itemsize:
        return np.ascontiguousarray(packed).view(dtype.newbyteorder("<")).astype(dtype)
    group = _codes_of_group(bits)
    groups = _padded(packed, group * bits // 8)
    out = np.zeros((*groups.shape[:-1], group), dtype)
    for code, byte, shift in _pieces(bits):
        part = groups[..., byte].astype(dtype)
        out[..., code] |= part << shift if shift >= 0 else part >> -shift
    out = out.reshape(*packed.shape[:-1], out.shape[-2] * group)[..., :count]
    return out & dtype.type((1 << bits) - 1)

"""Codes and planes of bits: many patterns at a time through a graph of gates."""

from __future__ import annotations

import sys

import numpy as np

__all__ = ["codes_of", "planes_of"]


def planes_of(codes: np.ndarray, bits: int) -> list[np.ndarray]:
    """Each bit of an array of codes, packed 64 to a word, the first in the lowest bit; the last word is filled with 0.

    >>> planes_of(np.array([1, 3, 2], np.uint8), 2)
    [array([3], dtype=uint64), array([6], dtype=uint64)]
    """
    codes = np.ascontiguousarray(codes)
    spare = -len(codes) % 64
    if spare:
        codes = np.concatenate([codes, np.zeros(spare, codes.dtype)])
    one = codes.dtype.type(1)
    packed = (np.packbits((codes >> codes.dtype.type(i)) & one, bitorder="little") for i in range(bits))
    return [octets.view("<u8").astype(np.uint64, copy=False) for octets in packed]


def codes_of(planes: list[np.ndarray], dtype: np.dtype, count: int) -> np.ndarray:
    """The inverse of `planes_of`.

    >>> codes_of([np.array([3], np.uint64), np.array([6], np.uint64)], np.uint8, 3)
    array([1, 3, 2], dtype=uint8)
    """
    dtype = np.dtype(dtype)
    codes = np.zeros(count, dtype)
    for i, plane in enumerate(planes):
        if sys.byteorder == "big":
            plane = plane.byteswap()
        bits = np.unpackbits(np.ascontiguousarray(plane).view(np.uint8), bitorder="little", count=count)
        codes |= bits.astype(dtype, copy=False) << dtype.type(i)
    return codes

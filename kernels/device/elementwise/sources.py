"""Random words of elements that come of another source than the default: a kernel makes them, and rounding takes them
as words that are given."""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from softnum.arrays.environment import SourceKey
from softnum.arrays.sources import RandomSource, offset_of, random_source
from softnum.formats.c_text import source_text
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import cuda, ffi
from softnum.kernels.device.runtime.source import Entry, Library

__all__ = ["examples", "words_of_source"]

_RUN = 64  # elements of a thread, beside which an LFSR's way to the first of them is short
_NEIGHBOURS = 16  # elements of a thread of Transformer Engine's casts
_HEADER = "softnum/word/source_words.h"


@lru_cache(maxsize=64)
def _elements_kernel(source: RandomSource):
    """The kernel ``(out, start, stop, shift, key0, key1)``: words of elements start..stop - 1, by number + shift."""
    body = (
        "const sn_source s = _source();\nconst sn_u32 key[2] = {key0, key1};\n"
        "sn_source_words(&s, key, (sn_u64)(at + shift), out + at, (sn_u64)count);"
    )
    names = ("at", "count", "shift")
    arguments = (("uint32*", "out"), *(("int64", name) for name in names), ("uint32", "key0"), ("uint32", "key1"))
    make = _cuda.bind(Library(source_text("_source", source), (Entry("make", "void", arguments, body),), _HEADER)).make

    @cuda.jit
    def kernel(out, start, stop, shift, key0, key1):
        at = start + np.int64(cuda.grid(1)) * np.int64(_RUN)
        if at < stop:
            make(ffi.from_buffer(out), at, min(np.int64(_RUN), stop - at), shift, key0, key1)

    return kernel


@lru_cache(maxsize=16)
def _casts_kernel(rounds: int):
    """The kernel ``(out, rows, columns, seed, offset)``: words of a matrix that Transformer Engine casts."""
    body = f"sn_cast_words({rounds}, seed, offset, (sn_u64)row, (sn_u64)start, (sn_u64)columns, out + at);"
    names = ("at", "row", "start", "columns")
    arguments = (("uint32*", "out"), *(("int64", name) for name in names), ("uint64", "seed"), ("uint64", "offset"))
    make = _cuda.bind(Library("", (Entry("make", "void", arguments, body),), _HEADER)).make

    @cuda.jit
    def kernel(out, rows, columns, seed, offset):
        across = (columns + _NEIGHBOURS - 1) // _NEIGHBOURS
        thread = np.int64(cuda.grid(1))
        if thread < rows * across:
            row = thread // across
            start = (thread - row * across) * _NEIGHBOURS
            make(ffi.from_buffer(out), row * columns + start, row, start, columns, seed, offset)

    return kernel


def words_of_source(key: SourceKey, shape):
    """The words of `SourceKey.words` on the device, of that shape."""
    pair, words, runs = key.parts(shape)
    size, source = prod(shape), key.source
    out = _cuda.empty(size, np.uint32)
    if source.casts and size:
        columns = shape[-1] if shape else 1
        rows = size // columns
        _launch(
            _casts_kernel(source.rounds), rows * -(-columns // _NEIGHBOURS), out, rows, columns, np.uint64(pair[0]),
            np.uint64(offset_of(pair[1])),
        )  # fmt: skip
    for start, stop, shift in runs if size and not source.casts else ():
        _launch(_elements_kernel(source), -(-(stop - start) // _RUN), out, start, stop, shift, *map(np.uint32, words))
    return out.reshape(tuple(shape))


def _launch(kernel, count: int, *arguments) -> None:
    threads = min(_cuda.THREADS, max(count, 1))
    _cuda.launch(kernel, -(-count // threads), threads, *arguments)


def examples():
    """Kernels for the link check: of an LFSR, of Philox, and of casts."""
    array, i64, u32, u64 = _cuda.array_type(np.uint32), *map(_cuda.scalar_type, (np.int64, np.uint32, np.uint64))
    for name in ("lfsr32", "philox4x32-7/4"):
        yield f"words of {name}", _elements_kernel(random_source(name)), (array, i64, i64, i64, u32, u32)
    yield "words of casts", _casts_kernel(3), (array, i64, i64, u64, u64)

"""Elementwise kernels: a thread computes four neighbouring elements, those of one Philox counter, by one C function.

What is read and written lies in C order, so that a thread moves four elements at once where they are aligned. Arrays of
other strides, and those that are broadcast, are packed first; single elements are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from softnum.arrays.environment import SourceKey, seed_and_stream
from softnum.kernels.device.elementwise.computations import FROM_ARRAY, FROM_KEY, INPUTS, NO_WORDS, TABLES, Computation
from softnum.kernels.device.elementwise.sources import words_of_source
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import cuda, ffi
from softnum.kernels.device.runtime.strides import contiguous, copy, packed
from softnum.runtime import _core

__all__ = ["Words", "elementwise_kernel", "example", "examples", "run", "words_of", "words_of_key"]

_GROUP = 4  # elements of a thread: those of one Philox counter


@lru_cache(maxsize=512)
def elementwise_kernel(computation: Computation, words: int, single: tuple[bool, ...], wide: bool):
    """The kernel ``(x0, x1, x2, to, flags, random, table0, table1, table2, key0, key1, status, size)``.

    Arrays are of one dimension, packed; stand-ins are given for those that the computation has not.
    """
    group = _cuda.bind(computation.library(words, single, wide)).run
    may_fail = computation.may_fail

    @cuda.jit
    def kernel(x0, x1, x2, to, flags, random, table0, table1, table2, key0, key1, status, size):
        at = np.int64(cuda.grid(1)) * np.int64(_GROUP)
        if at < size:
            met = group(
                ffi.from_buffer(x0), ffi.from_buffer(x1), ffi.from_buffer(x2), ffi.from_buffer(to),
                ffi.from_buffer(flags), ffi.from_buffer(random), ffi.from_buffer(table0), ffi.from_buffer(table1),
                ffi.from_buffer(table2), at, np.int32(min(np.int64(_GROUP), size - at)), key0, key1,
            )  # fmt: skip
            if may_fail and met != 0:
                cuda.atomic.or_(status, 0, met)

    return kernel


def example(name: str, computation: Computation, words: int = NO_WORDS, fast: bool = False) -> tuple:
    """A kernel for the link check: (name, kernel, types of its arguments, whether it promises no local memory)."""
    from numba import types

    def array(kind):
        return types.Array(_cuda.scalar_type(kind), 1, "C")

    inputs = (*computation.inputs, *["uint8"] * (INPUTS - len(computation.inputs)))
    tables = (*computation.tables, *["uint8"] * (TABLES - len(computation.tables)))
    kinds = (*inputs, computation.output, "uint8", "uint32", *tables)
    kernel = elementwise_kernel(computation, words, (False,) * len(computation.inputs), True)
    u32 = types.uint32
    return name, kernel, (*map(array, kinds), u32, u32, array("uint32"), types.int64), fast


@dataclass(frozen=True)
class Words:
    """Random words: none, those of a key, or an array of the results' shape."""

    kind: int = NO_WORDS
    key: tuple[int, int] = (0, 0)
    array: object = None


def words_of(stochastic: bool, key, random_bits, shape) -> Words:
    """The random words of an elementwise operation, as `softnum.arrays.environment.random_words` takes them."""
    if not stochastic:
        return Words()
    if random_bits is not None:
        return Words(FROM_ARRAY, array=_random_array(random_bits, tuple(shape)))
    if isinstance(key, SourceKey):
        return Words(FROM_ARRAY, array=words_of_source(key, tuple(shape)))
    return words_of_key(stochastic, key)


def words_of_key(stochastic: bool, key) -> Words:
    """The same where there is no array yet, of what is put off: of the default source alone, of which a key is enough;
    ValueError of others."""
    if stochastic and key is None:
        raise ValueError("stochastic rounding needs key=seed, key=(seed, stream) or random_bits=array")
    return Words(FROM_KEY, _core.philox_key(*seed_and_stream(key), 0)) if stochastic else Words()


def _random_array(random_bits, shape):
    if hasattr(random_bits, "__cuda_ndarray__"):
        if np.dtype(random_bits.dtype) != np.uint32:
            raise ValueError(f"random_bits on the device must be uint32, got {random_bits.dtype}")
    else:
        words = np.asarray(random_bits)
        if words.dtype.kind not in "iu" or (words.size and (words.min() < 0 or words.max() >= 2**32)):
            raise ValueError(f"random_bits must be integers in 0..2**32-1, got an array of {words.dtype}")
        random_bits = _cuda.to_device(words.astype(np.uint32))
    given = tuple(random_bits.shape)
    if len(given) > len(shape) or any(d not in (1, n) for d, n in zip(given[::-1], shape[::-1], strict=False)):
        raise ValueError(f"random_bits of shape {given} do not broadcast to {shape}")
    return packed(random_bits, shape)


# ---- arrays --------------------------------------------------------------------------------------------------------


def _line(x):
    """A packed array in one dimension."""
    return x.reshape((x.size,)) if x.ndim != 1 else x


def _aligned(x) -> bool:
    return _cuda.address_of(x) % min(_GROUP * x.dtype.itemsize, 16) == 0


@lru_cache(maxsize=8)
def _stand_ins(device: int):
    """Arrays for arguments that a computation has not; nothing reads or writes them."""
    none = _cuda.filled(1, np.uint32, 0)
    return none, none.view(np.uint8)


# ---- the launch ----------------------------------------------------------------------------------------------------


def run(computation: Computation, inputs, shape, words: Words | None = None, out=None, tables=()):
    """A computation over arrays that are broadcast to a shape: (results, flags or None, what was met).

    out: where to put the results, of that shape and of any strides; it may be an input, but must not overlap one
    otherwise. tables: packed arrays of one dimension.
    """
    size, words = prod(shape), words or Words()
    # not straight into out where an element may fail: out stays as it was then
    aside = out is None or computation.may_fail or not _cuda.is_contiguous(out)
    result = _cuda.empty(shape, computation.output) if aside else out
    flags = _cuda.empty(shape, np.uint8) if computation.with_flags else None
    if not size:
        return (result if out is None else out), flags, 0
    single = tuple(x.size == 1 for x in inputs) if size > 1 else (False,) * len(inputs)
    given = [_line(contiguous(x) if one else packed(x, shape)) for x, one in zip(inputs, single, strict=True)]
    given = [_cuda.bits(x) for x in given]
    arrays = [x for x, one in zip(given, single, strict=True) if not one]
    arrays += [x for x in (result, flags, words.array) if x is not None]
    kernel = elementwise_kernel(computation, words.kind, single, all(map(_aligned, arrays)))
    none, none8 = _stand_ins(_cuda.device_index())
    status = _cuda.filled(1, np.uint32, 0) if computation.may_fail else none
    given += [none8] * (INPUTS - len(given))
    tables = [*map(_cuda.bits, tables), *[none8] * (TABLES - len(tables))]
    groups = -(-size // _GROUP)
    threads = min(_cuda.THREADS, groups)  # the simulator's are slow to start
    _cuda.launch(
        kernel, -(-groups // threads), threads, *given, _line(_cuda.bits(result)),
        none8 if flags is None else _line(flags),
        none if words.array is None else _line(words.array), *tables, np.uint32(words.key[0]), np.uint32(words.key[1]),
        status, np.int64(size),
    )  # fmt: skip
    met = int(_cuda.to_host(status)[0]) if computation.may_fail else 0
    if out is not None and aside and not met:
        copy(result, out)
    return (result if out is None else out), flags, met


def examples():
    """Kernels for the link check: the random words alone, of a key and of an array."""
    computation = Computation(("uint64",), "uint32", "out = in0 ^ word;")
    for words in (FROM_KEY, FROM_ARRAY):
        yield example(f"words {'of a key' if words == FROM_KEY else 'of an array'}", computation, words, True)

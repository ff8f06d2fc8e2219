"""Values to values and codes, and codes to values, through the vector kernels (csrc/lanes/round.h states their domain).

Every function returns None, or says so by `ok`, where the kernels do not apply; the definition computes the rest.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from softnum.runtime import _core
from softnum.runtime.threads import for_ranges

__all__ = ["decode_lanes", "decoder", "rounder", "words_of_key"]

_GRAIN = _core.GRAIN  # elements for each thread: below, to wake another costs more than it brings
_OPERATION_GRAIN = 1 << 18
_TABLE_BITS = 16
_SLICE_GRAINS = 16  # of arrays in other layouts

LEAST_TABLE = 256  # elements, from which a look-up table may be worth its making
LEAST_THREADED = 2 * _OPERATION_GRAIN
_EVALUATION_GRAIN = 1 << 9  # elements that take a microsecond or more
LEAST_THREADED_EVALUATED = 2 * _EVALUATION_GRAIN


@lru_cache(maxsize=512)
def rounder(fmt, env, carrier_bits: int) -> _core.Rounder:
    """The kernel that rounds float32 or float64 to the format in an environment."""
    return _core.Rounder(fmt, env, carrier_bits)


@lru_cache(maxsize=256)
def decoder(fmt, carrier_bits: int) -> _core.Decoder:
    """The kernel that decodes the format to float32 or float64."""
    return _core.Decoder(fmt, carrier_bits)


def words_of_key(key: tuple[int, int], n: int, first: int = 0) -> np.ndarray:
    """The random words of n elements of an elementwise operation, from one on; key: the two words of (seed, stream)."""
    before = first % _core.WORD_BLOCK
    out = np.empty(before + n, np.uint32)
    base = first - before
    for_ranges(
        out.size, lambda start, stop: _core.elementwise_words(key, out, start, stop, base), None, _OPERATION_GRAIN
    )
    return out[before:]


def round_values(kernel, x, target, words, key, threads) -> bool:
    """Contiguous x into target, of its type; whether an element had no result."""
    return bool(
        for_ranges(x.size, lambda i, j: kernel.quantize(x, target, words, key, i, j), threads, _GRAIN)
    )  # fmt: skip


def encode_values(kernel, x, codes, words, key, threads) -> bool:
    """Contiguous x into codes; whether an element had no code."""
    return bool(for_ranges(x.size, lambda i, j: kernel.encode(x, codes, words, key, i, j), threads, _GRAIN))


@lru_cache(maxsize=64)
def _values_of_all_codes(fmt, dtype, define) -> np.ndarray | None:
    try:
        return define(np.arange(1 << fmt.bits).astype(fmt.storage_dtype), fmt, dtype)
    except ValueError:  # a value is not exact in dtype; perhaps not one of those asked for
        return None


def decode_lanes(codes, fmt, out, threads, define) -> bool:
    """Contiguous codes into out, float32 or float64; False where neither kernel nor a table of all codes applies.

    define(codes, fmt, dtype) is the definition.
    """
    kernel = decoder(fmt, 8 * out.dtype.itemsize)
    if kernel.ok:
        for_ranges(codes.size, lambda i, j: kernel.decode(codes, out, i, j), threads, _GRAIN)
        return True
    if fmt.bits > _TABLE_BITS or codes.size < 1 << fmt.bits:
        return False
    table = _values_of_all_codes(fmt, out.dtype, define)
    if table is None:
        return False
    for_ranges(codes.size, lambda i, j: _core.look_up(table, codes, out, i, j), threads, _GRAIN)
    return True


def run_ufunc(ufunc, codes, words, handle, slow=False):
    """The core's ufunc over long arrays, in ranges where all operands are single numbers or contiguous arrays.

    slow: elements are evaluated.
    """
    shape = np.broadcast_shapes(*(c.shape for c in codes))
    inputs = [*codes, words]
    if not all(x.size == 1 or (x.shape == shape and x.flags.c_contiguous) for x in inputs):
        return _in_slices(ufunc, inputs, handle, shape, _EVALUATION_GRAIN if slow else _OPERATION_GRAIN)
    flat = [x.reshape(-1) for x in inputs]
    outs = [np.empty(shape, codes[0].dtype), np.empty(shape, np.uint8)][: ufunc.nout]

    def work(start, stop):
        pieces = [x if x.size == 1 else x[start:stop] for x in flat]
        ufunc(*pieces, handle, out=tuple(out.reshape(-1)[start:stop] for out in outs))

    for_ranges(outs[0].size, work, None, _EVALUATION_GRAIN if slow else _OPERATION_GRAIN)
    return outs[0] if ufunc.nout == 1 else tuple(outs)


def _in_slices(ufunc, inputs, handle, shape, grain: int):
    """A ufunc over arrays in any layout, by slices of the longest axis where it takes long: Ctrl-C is heard between."""
    axis = max(range(len(shape)), key=shape.__getitem__)
    step = max(1, shape[axis] * grain * _SLICE_GRAINS // max(1, prod(shape)))
    if step >= shape[axis]:
        return ufunc(*inputs, handle)
    like = next((x for x in inputs[:-1] if x.shape == shape), np.empty(0))  # whose layout a ufunc's results have
    types = inputs[0].dtype, np.uint8
    outs = tuple(np.empty_like(like, dtype, shape=shape) for dtype in types[: ufunc.nout])
    at = axis - len(shape)
    moved = [np.moveaxis(x, at, 0) if x.ndim >= -at and x.shape[at] > 1 else None for x in (*inputs, *outs)]
    for i in range(0, shape[axis], step):
        parts = [
            x if m is None else np.moveaxis(m[i : i + step], 0, at)
            for x, m in zip((*inputs, *outs), moved, strict=True)
        ]
        ufunc(*parts[: len(inputs)], handle, out=tuple(parts[len(inputs) :]))
    return outs[0] if ufunc.nout == 1 else outs

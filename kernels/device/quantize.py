"""softnum.quantize for CUDA arrays."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softnum import _core
from softnum.custom import CustomFormat
from softnum.environment import environment, seed_and_stream
from softnum.kernels.device import _cuda
from softnum.kernels.device._cuda import cuda
from softnum.kernels.device.entries import NO_CODE, NOT_EXACT, quantize_library
from softnum.modes import rounding_name
from softnum.names import format
from softnum.plan import fits
from softnum.values import invalid_code

__all__ = ["quantize"]

_GROUP = 4  # elements of a thread: those of one Philox counter

NO_WORDS, FROM_KEY, FROM_ARRAY = range(3)


@lru_cache(maxsize=256)
def quantize_kernel(fmt, env, carrier: str, words: int, may_fail: bool, one_row: bool):
    """The kernel ``(x, out, random, key0, key1, status)`` for one format and mode, compiled at its first launch.

    x, out: bits of the carrier as matrices; random: uint32 words in the same shape if words is FROM_ARRAY.
    """
    f = _cuda.bind(quantize_library(fmt, env, carrier))
    value, value_status, half0, half1, word = f.value, f.status, f.half0, f.half1, f.word

    @cuda.jit
    def kernel(x, out, random, key0, key1, status):
        columns = x.shape[1]
        size = x.shape[0] * columns
        start = cuda.grid(1) * _GROUP
        if start < size:
            low = high = np.uint64(0)
            if words == FROM_KEY:
                low = half0(start // _GROUP, key0, key1)
                high = half1(start // _GROUP, key0, key1)
            for i in range(start, min(start + _GROUP, size)):
                row = 0 if one_row else i // columns
                column = i if one_row else i - row * columns
                bits = x[row, column]
                w = np.uint32(0)
                if words == FROM_KEY:
                    w = word(low, high, i)
                elif words == FROM_ARRAY:
                    w = random[row, column]
                if may_fail:
                    failed = value_status(bits, w)
                    if failed != 0:
                        cuda.atomic.max(status, failed - 1, 1)
                out[row, column] = value(bits, w)

    return kernel


def quantize(
    x, fmt, *, rounding="nearest_even", overflow=None, key=None, random_bits=None, stochastic_bits=32, invalid="raise",
    out=None,
):  # fmt: skip
    """Round the values of a CUDA array to a format, on the device; the bits are those of `softnum.quantize` on the CPU.

    Parameters
    ----------
    x : CUDA array of float32 or float64
        Contiguous, or a matrix of any strides.
    out : CUDA array, optional
        x's shape and dtype; may be x, but must not overlap it otherwise.
    random_bits : array of uint32, optional
        Of the host (broadcast to x's shape), or a CUDA array of x's shape.
    fmt, rounding, overflow, key, stochastic_bits, invalid
        As in `softnum.quantize`.

    Returns
    -------
    Numba CUDA array
        CuPy and PyTorch take it without a copy.

    Raises
    ------
    ValueError, TypeError
        As `softnum.quantize`; also for a value table (`CustomFormat`), which has no kernel.
    """
    fmt = format(fmt)
    if isinstance(fmt, CustomFormat):
        raise TypeError(f"quantize: no kernel takes the value table {fmt}; copy the CUDA array to the host first")
    x = _cuda.device_array(x)
    env = environment(fmt, rounding, overflow, stochastic_bits, invalid_code=invalid_code(invalid, fmt))
    result = out
    if out is None:
        result = out = _cuda.empty(x.shape, x.dtype)
    else:
        out = _cuda.device_array(out, "out")
        if out.shape != x.shape or out.dtype != x.dtype:
            raise ValueError(f"out must be a CUDA array of shape {tuple(x.shape)} and type {x.dtype}")
    words, keys, random = NO_WORDS, (0, 0), _cuda.filled((1, 1), np.uint32, 0)
    if rounding_name(rounding).startswith("stochastic"):
        if random_bits is not None:
            words, random = FROM_ARRAY, _random_array(random_bits, x.shape)
        elif key is None:
            raise ValueError("stochastic rounding needs key=seed, key=(seed, stream) or random_bits=array")
        else:
            words, keys = FROM_KEY, _core.philox_key(*seed_and_stream(key), 0)
    if x.size == 0:
        return result
    matrices = [x, out] + ([random] if words == FROM_ARRAY else [])
    one_row = all(_cuda.is_contiguous(m) for m in matrices)
    if one_row:
        matrices = [m.reshape((1, x.size)) for m in matrices]
    elif x.ndim != 2:
        raise ValueError(f"quantize: CUDA arrays of {x.ndim} dimensions must be contiguous (copy them first)")
    raises = isinstance(invalid, str) and not fmt.has_nan
    may_fail = raises or not fits(fmt, x.dtype)
    status = _cuda.filled(3, np.uint32, 0)
    kernel = quantize_kernel(fmt, env, x.dtype.name, words, may_fail, one_row)
    groups = -(-x.size // _GROUP)
    _cuda.launch(
        kernel, -(-groups // _cuda.THREADS), _cuda.THREADS, _cuda.bits(matrices[0]), _cuda.bits(matrices[1]),
        matrices[2] if words == FROM_ARRAY else random, np.uint32(keys[0]), np.uint32(keys[1]), status,
    )  # fmt: skip
    if may_fail:
        seen = status.copy_to_host()
        if raises and (seen[NO_CODE - 1] or seen[(NO_CODE | NOT_EXACT) - 1]):
            raise ValueError(f"quantize: a value is NaN or infinite, and {fmt} has no code for it")
        if seen[NOT_EXACT - 1] or seen[(NO_CODE | NOT_EXACT) - 1]:
            raise ValueError(f"quantize: a value of {fmt} is not exact in {x.dtype} (use a wider type)")
    return result


def _random_array(random_bits, shape):
    if hasattr(random_bits, "__cuda_array_interface__") or hasattr(random_bits, "__cuda_ndarray__"):
        if tuple(random_bits.shape) != tuple(shape) or np.dtype(random_bits.dtype) != np.uint32:
            raise ValueError(f"random_bits on the device must be uint32 of shape {tuple(shape)}")
        return random_bits if hasattr(random_bits, "__cuda_ndarray__") else cuda.as_cuda_array(random_bits)
    words = np.asarray(random_bits)
    if words.dtype.kind not in "iu" or (words.size and (words.min() < 0 or words.max() >= 2**32)):
        raise ValueError(f"random_bits must be integers in 0..2**32-1, got an array of {words.dtype}")
    return cuda.to_device(np.ascontiguousarray(np.broadcast_to(words.astype(np.uint32), tuple(shape))))


def kernels_of(fmt, *, rounding="nearest_even", carrier="float32"):
    """(name, kernel, types of its arguments) of what quantize runs for contiguous arrays: for kernels/check.py."""
    from numba import types

    fmt = format(fmt)
    words = FROM_KEY if rounding_name(rounding).startswith("stochastic") else NO_WORDS
    bits = types.Array(_cuda.scalar_type(f"u{np.dtype(carrier).itemsize}"), 2, "C")
    kernel = quantize_kernel(
        fmt, environment(fmt, rounding, None, 32), carrier, words, not fits(fmt, np.dtype(carrier)), True
    )
    words_of = types.Array(types.uint32, 2, "C")
    status = types.Array(types.uint32, 1, "C")
    yield f"quantize {carrier} -> {fmt}, {rounding}", kernel, (bits, bits, words_of, types.uint32, types.uint32, status)


def examples():
    """The kernels that are linked for the chips."""
    for name, carrier in (("e5m2", "float32"), ("e4m3fn", "float32"), ("q4.4", "float32"), ("binary32", "float64")):
        for rounding in ("nearest_even", "stochastic"):
            yield from kernels_of(name, rounding=rounding, carrier=carrier)

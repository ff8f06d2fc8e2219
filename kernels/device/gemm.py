"""softnum.matmul for CUDA arrays: any MadUnit, by the definition, one thread to an output element."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softnum import _core
from softnum.array import Array
from softnum.custom import CustomFormat
from softnum.environment import seed_and_stream
from softnum.kernels.device import _cuda
from softnum.kernels.device._cuda import cuda
from softnum.kernels.device.entries import operand_library, shares_word, two_roundings, unit_library
from softnum.kernels.device.quantize import FROM_ARRAY, FROM_KEY, NO_WORDS
from softnum.plan import fits

__all__ = ["gemm_kernel", "matmul", "operand_kernel"]

# side of a block's tile of outputs, a multiple of 4 (of the steps of a Philox counter)
TILE = 4 if _cuda.SIMULATOR else 16
_MAX_GRID_Y = 65535
_NONE = np.iinfo(np.int64).max


@lru_cache(maxsize=256)
def operand_kernel(fmt, carrier: str, one_row: bool):
    """The kernel ``(x, codes, first_bad)``: codes of a matrix of carriers' bits; the least index of what has none."""
    f = _cuda.bind(operand_library(fmt, carrier))
    code, status = f.code, f.status

    @cuda.jit
    def kernel(x, codes, first_bad):
        columns = x.shape[1]
        i = cuda.grid(1)
        if i < x.shape[0] * columns:
            row = 0 if one_row else i // columns
            bits = x[row, i if one_row else i - row * columns]
            if status(bits) != 0:
                cuda.atomic.min(first_bad, 0, i)
            codes[i] = code(bits)

    return kernel


@lru_cache(maxsize=256)
def gemm_kernel(unit, carrier: str, words: int, has_c: bool, may_fail: bool, tile: int):
    """The kernel of one unit: the sum over k in order, tiles of a and b in shared memory.

    Its arguments: codes a (.., M, K), b (.., K, N), c (.., M, N); index (3, batches), which of a's, b's and c's
    matrices belong to a batch; random words (batches, M, N, steps, 2) if words is FROM_ARRAY; the Philox keys of
    domains 1 and 2; out (batches, M, N), bits of the carrier; status (1,), set to 1 if INVALID was raised; M, N, K.
    """
    f = _cuda.bind(unit_library(unit, carrier))
    step, step_invalid, outer_add, outer_invalid, value = f.step, f.step_invalid, f.outer, f.outer_invalid, f.value
    half0, half1, first_of, second_of = f.half0, f.half1, f.first, f.second
    second_key = two_roundings(unit) and not shares_word(unit)
    chunk = unit.chunk or 0
    type_a, type_b = (_cuda.scalar_type(o.storage_dtype) for o in unit.operand)

    @cuda.jit
    def kernel(a, b, c, index, random, key0, key1, key2, key3, out, status, rows, columns, depth):
        tile_a = cuda.shared.array((tile, tile), type_a)
        tile_b = cuda.shared.array((tile, tile), type_b)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        across = (columns + tile - 1) // tile
        m = cuda.blockIdx.x // across * tile + y
        n = cuda.blockIdx.x % across * tile + x
        inside = m < rows and n < columns
        for batch in range(cuda.blockIdx.y, out.shape[0], cuda.gridDim.y):
            in_a, in_b = index[0, batch], index[1, batch]
            outer = np.uint64(0)
            if has_c and inside:
                outer = np.uint64(c[index[2, batch], m, n])
            acc = np.uint64(0)
            if chunk == 0:
                acc = outer
            left = chunk
            reduction = depth
            bad = False
            for start in range(0, depth, tile):
                if m < rows and start + x < depth:
                    tile_a[y, x] = a[in_a, m, start + x]
                if start + y < depth and n < columns:
                    tile_b[y, x] = b[in_b, start + y, n]
                cuda.syncthreads()
                if inside:
                    low = high = low2 = high2 = np.uint64(0)
                    for i in range(min(tile, depth - start)):
                        k = start + i
                        first = second = np.uint32(0)
                        if words == FROM_KEY:
                            if i % 4 == 0:
                                low = half0(k // 4, n, m, batch, key0, key1)
                                high = half1(k // 4, n, m, batch, key0, key1)
                                low2, high2 = low, high
                                if second_key:
                                    low2 = half0(k // 4, n, m, batch, key2, key3)
                                    high2 = half1(k // 4, n, m, batch, key2, key3)
                            first = first_of(low, high, k)
                            second = second_of(low2, high2, k)
                        elif words == FROM_ARRAY:
                            first = random[batch, m, n, k, 0]
                            second = random[batch, m, n, k, 1]
                        code_a, code_b = tile_a[y, i], tile_b[i, x]
                        if may_fail and step_invalid(acc, code_a, code_b, first, second) != 0:
                            bad = True
                        acc = step(acc, code_a, code_b, first, second)
                        if chunk > 0:
                            left -= 1
                            if left == 0 or k == depth - 1:
                                w = np.uint32(0)
                                if words == FROM_KEY:
                                    r0, r1 = key0, key1
                                    if second_key:
                                        r0, r1 = key2, key3
                                    w = second_of(
                                        half0(reduction // 4, n, m, batch, r0, r1),
                                        half1(reduction // 4, n, m, batch, r0, r1),
                                        reduction,
                                    )
                                elif words == FROM_ARRAY:
                                    w = random[batch, m, n, reduction, 1]
                                if may_fail and outer_invalid(outer, acc, w) != 0:
                                    bad = True
                                outer = outer_add(outer, acc, w)
                                acc = np.uint64(0)
                                left = chunk
                                reduction += 1
                cuda.syncthreads()
            if inside:
                out[batch, m, n] = value(outer if chunk > 0 else acc)
                if bad:
                    status[0] = 1

    return kernel


def _codes(x, fmt, what: str):
    """The operand's codes, contiguous, of shape (matrices, rows, columns), checked to be values of the format."""
    if isinstance(fmt, CustomFormat):
        raise TypeError(f"matmul: no kernel takes the value table {fmt}; copy the CUDA arrays to the host first")
    matrix, one_row = _cuda.rows(x, f"matmul: {what}")
    codes = _cuda.empty(max(x.size, 1), fmt.storage_dtype)
    if x.size:
        first_bad = _cuda.filled(1, np.int64, _NONE)
        kernel = operand_kernel(fmt, x.dtype.name, one_row)
        blocks = -(-x.size // _cuda.THREADS)
        _cuda.launch(kernel, blocks, _cuda.THREADS, _cuda.bits(matrix), codes, first_bad)
        at = int(first_bad.copy_to_host()[0])
        if at != _NONE:
            where = np.unravel_index(at, tuple(x.shape))
            row, column = (0, at) if one_row else where
            found = matrix[row : row + 1, column : column + 1].copy_to_host()[0, 0]
            raise ValueError(
                f"matmul: {what}{[int(i) for i in where]} = {found!r} is no value of {fmt}; "
                f"round it first: softnum.quantize({what}, {str(fmt)!r})"
            )
    shape = tuple(x.shape)
    if x.size == 0:
        return codes.reshape((1, 1, 1))
    return codes.reshape((-1, *shape[-2:]))


def _broadcasts(lead_x, lead) -> bool:
    return len(lead_x) <= len(lead) and all(x in (1, y) for x, y in zip(lead_x[::-1], lead[::-1], strict=False))


def _which(lead_x, lead) -> np.ndarray:
    """For each matrix of the result, which of the operand's matrices belongs to it."""
    count = int(np.prod(lead_x, dtype=np.int64))
    return np.broadcast_to(np.arange(count).reshape(lead_x), lead).reshape(-1)


def _operand(x, what: str):
    if isinstance(x, (np.ndarray, Array)) or not _is_device(x):
        raise TypeError(f"matmul: {what} lies on the host and another operand on the device; copy one of them")
    return _cuda.device_array(x, f"matmul: {what}")


def _is_device(x) -> bool:
    return hasattr(x, "__cuda_array_interface__") or hasattr(x, "__cuda_ndarray__")


def matmul(a, b, unit, c=None, *, key=None, random_bits=None, threads=None, out=None):
    """The matrix product of CUDA arrays under a unit, on the device; the bits are those of `softnum.matmul` on the CPU.

    Parameters
    ----------
    a, b, c : CUDA arrays of float32 or float64
        As in `softnum.matmul`; contiguous, or matrices of any strides.
    unit : MadUnit
    key
        As in `softnum.matmul`.
    random_bits : array of uint32, shape (..., M, N, steps, 2), optional
        Of the host or the device.
    threads
        Must be None: it is for the CPU.
    out : CUDA array, contiguous, optional

    Returns
    -------
    Numba CUDA array
        float32 if that holds every value of the result's format, else float64. CuPy and PyTorch take it without a copy.

    Raises
    ------
    ValueError, TypeError
        As `softnum.matmul`; also for operands of a value table (`CustomFormat`), for a result that float64 does not
        hold, for units of several lanes or with compensation, and if some operands lie on the host.
    """
    if unit.on_codes:
        raise ValueError(
            "matmul: no CUDA kernel computes in custom formats; copy the arrays to the host first, which does"
        )
    if unit.lanes > 1 or unit.compensated:
        raise ValueError(
            f"matmul: no CUDA kernel computes lanes={unit.lanes}, compensated={unit.compensated!r}; copy the arrays to "
            f"the host first, where every MadUnit is computed"
        )
    if threads is not None:
        raise ValueError(f"matmul: threads={threads!r} is for arrays of the host; CUDA arrays take none")
    a, b = _operand(a, "a"), _operand(b, "b")
    c = None if c is None else _operand(c, "c")
    if a.ndim < 2 or b.ndim < 2:
        raise ValueError(f"matmul takes (..., M, K) @ (..., K, N), got shapes {tuple(a.shape)} and {tuple(b.shape)}")
    (m, k), n = tuple(a.shape)[-2:], int(b.shape[b.ndim - 1])
    if int(b.shape[b.ndim - 2]) != k:
        raise ValueError(f"matmul: a has K = {k} columns, b has {int(b.shape[b.ndim - 2])} rows")
    lead_a, lead_b = tuple(a.shape)[:-2], tuple(b.shape)[:-2]
    lead = np.broadcast_shapes(lead_a, lead_b)
    shape = (*lead, m, n)
    batches = int(np.prod(lead, dtype=np.int64))
    if max(m, n, batches, unit.steps(k)) >= 2**31:
        raise ValueError(f"matmul: no dimension of CUDA arrays may reach 2**31, got {shape} and K = {k}")
    dtype = next((np.dtype(d) for d in (np.float32, np.float64) if fits(unit.outer, d)), None)
    if dtype is None:
        raise TypeError(f"matmul: neither float32 nor float64 holds {unit.outer}; CUDA arrays need one that does")
    result = out
    if out is None:
        result = out = _cuda.empty(shape, dtype)
    else:
        out = _operand(out, "out")
        if tuple(out.shape) != shape or out.dtype != dtype or not _cuda.is_contiguous(out):
            raise ValueError(f"matmul: out must be a contiguous CUDA array of shape {shape} and type {dtype}")

    words, keys, random = _random(unit, key, random_bits, shape, k)
    which = [_which(lead_a, lead), _which(lead_b, lead), np.zeros(batches, np.int64)]
    codes_c = _cuda.filled((1, 1, 1), unit.outer.storage_dtype, 0)
    if c is not None:
        lead_c = tuple(c.shape)[:-2]
        if c.ndim < 2 or tuple(c.shape)[-2:] != (m, n) or not _broadcasts(lead_c, lead):
            raise ValueError(f"matmul: c of shape {tuple(c.shape)} does not broadcast to {shape} by whole matrices")
        codes_c = _codes(c, unit.outer, "c")
        which[2] = _which(lead_c, lead)
    codes_a, codes_b = _codes(a, unit.operand[0], "a"), _codes(b, unit.operand[1], "b")
    if out.size == 0:
        return result
    may_fail = _may_fail(unit)
    status = _cuda.filled(1, np.uint32, 0)
    kernel = gemm_kernel(unit, dtype.name, words, c is not None, may_fail, TILE)
    grid = (-(-m // TILE) * -(-n // TILE), min(batches, _MAX_GRID_Y))
    _cuda.launch(
        kernel, grid, (TILE, TILE), codes_a, codes_b, codes_c, cuda.to_device(np.stack(which)), random,
        *(np.uint32(v) for v in keys), _cuda.bits(out).reshape((batches, m, n)), status, m, n, k,
    )  # fmt: skip
    if may_fail and status.copy_to_host()[0]:
        bad = next(f for f in (unit.product, unit.accumulator, unit.outer) if f is not None and not f.has_nan)
        raise ValueError(f"matmul: the result is NaN or infinite, and {bad} has no code for it")
    return result


def _may_fail(unit) -> bool:
    """Whether a sum can meet a NaN or an infinity that one of the unit's formats has no code for."""
    formats = [f for f in (unit.product, unit.accumulator, unit.outer) if f is not None]
    special = any(f.has_nan or getattr(f, "infinities", False) for f in (*unit.operand, *formats))
    return special and not all(f.has_nan for f in formats)


def _random(unit, key, random_bits, shape, k):
    """(where the words come from, key words of domains 1 and 2, the array of words or a stand-in)"""
    none = np.zeros((1, 1, 1, 1, 1), np.uint32)
    if not unit.stochastic:
        return NO_WORDS, (0, 0, 0, 0), cuda.to_device(none)
    if random_bits is not None:
        want = (*shape, unit.steps(k), 2)
        if tuple(random_bits.shape) != want or np.dtype(random_bits.dtype) != np.uint32:
            raise ValueError(
                f"matmul: random_bits must be uint32 of shape {want}, "
                f"got {random_bits.dtype} of shape {tuple(random_bits.shape)}"
            )
        if not _is_device(random_bits):
            random_bits = cuda.to_device(np.ascontiguousarray(random_bits))
        elif not hasattr(random_bits, "__cuda_ndarray__"):
            random_bits = cuda.as_cuda_array(random_bits)
        if not _cuda.is_contiguous(random_bits):
            raise ValueError("matmul: random_bits on the device must be contiguous")
        if random_bits.size == 0:
            return FROM_ARRAY, (0, 0, 0, 0), cuda.to_device(none)
        return FROM_ARRAY, (0, 0, 0, 0), random_bits.reshape((-1, *want[-4:]))
    if key is None:
        raise ValueError("matmul: the unit rounds stochastically; give key=seed, key=(seed, stream) or random_bits=")
    pair = seed_and_stream(key)
    return FROM_KEY, (*_core.philox_key(*pair, 1), *_core.philox_key(*pair, 2)), cuda.to_device(none)

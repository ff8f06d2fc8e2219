"""matmul and dot under a unit: the bits are the unit's, whatever the path, tile, thread count or instruction set."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softnum.arrays.blocks import BlockArray
from softnum.arrays.checks import check_out, float_array
from softnum.arrays.container import Array
from softnum.arrays.conversion import decode, encode
from softnum.arrays.ufuncs import raise_no_code
from softnum.formats.annotations import Key
from softnum.formats.facts import fits
from softnum.mac import _gemm
from softnum.mac.family import family_of
from softnum.mac.fused import FusedDotUnit
from softnum.mac.grouped import GroupedDotUnit
from softnum.mac.mad import MadUnit, Unit
from softnum.mac.products.blocks.matrices import block_matmul
from softnum.mac.products.engines import coded, counting_of, definition_of, fast_of
from softnum.mac.products.mad import narrowed
from softnum.mac.products.operands import (
    MACS_AT_ONCE,
    MACS_PER_THREAD,
    PLAIN,
    PackedWords,
    blocks_of,
    carried,
    checked_operand,
    codes_of,
    kernels_of,
    padded,
    random_words_of,
    runs_of,
)
from softnum.mac.statistics import Tallies
from softnum.runtime import _core, gateway
from softnum.runtime.identity import by_identity
from softnum.runtime.threads import for_each

__all__ = ["dot", "matmul", "matmul_by_unit"]

_MATRICES = (np.ndarray, Array)
_STARTS = (*_MATRICES, type(None))


def _run_fast(gemm, a, b, c, out, keys, numbers, threads, k, words=None, counts=None) -> int:
    """counts: what makes an array for one piece of work to count in, or None. Returns what engines on codes do."""
    dtype = np.float64 if gemm.wide else np.float32
    if not getattr(gemm, "converts", False):  # those that do take floats of either width, in any layout
        a, b = np.ascontiguousarray(carried(a, dtype)), padded(b, dtype)
    c = None if c is None else np.ascontiguousarray(carried(c, dtype))
    target = out if out.dtype == dtype and out.flags.c_contiguous else np.empty(out.shape, dtype)
    batches, m, n = out.shape
    threads, blocks = blocks_of(m, n, k, batches, threads)

    def work(i, m0, m1, *columns):
        product, row = numbers.of(i, m0)
        first, shift = None if c is None else c[i], row - m0
        options = {} if words is None else {"words": words.of(i)}
        if counts is not None:
            options["tallies"] = counts()
        return gemm.run(a[i], b[i], first, target[i], keys, product, row, m1 + shift, *columns, (shift, 0), **options)

    def products(first, last):
        return gemm.run_products(a, b, c, target, keys, first, last, n)

    plain = words is None and counts is None and numbers is PLAIN
    if batches > 1 and len(blocks) == batches and plain and hasattr(gemm, "run_products"):
        lost = for_each(runs_of(batches, threads, m * n * k), products, threads)
    else:
        lost = for_each(numbers.split(blocks), work, threads)
    if target is not out:
        out[...] = target
    return lost


def _check_codes(unit, lost: int, caller: str) -> None:
    """ValueError if a result was a NaN that one of the unit's formats lacks."""
    for i, fmt in enumerate(unit.rounded_to):
        if lost & 1 << i:
            raise_no_code(fmt, caller)


@by_identity
def _kernels_at_once(unit) -> tuple | None:
    """What checks the operands and C of a unit whose engine computes many products in one call; None for others."""
    formats, gemm = (*unit.operand, unit.c_format), fast_of(unit)
    if not hasattr(gemm, "run_products") or unit.stochastic:
        return None
    carrier = np.float64 if gemm.wide else np.float32
    kernels = tuple(map(kernels_of, formats))
    fitting = all(fits(f, carrier) for f in (*formats, unit.result)) and gemm.wide != fits(unit.result, np.float32)
    return kernels if fitting and None not in kernels else None


def _values_at_once(x, fmt, kernels, wide: bool):
    """An operand on the unit's carrier, if it can be told at once that it has the format's values; else None."""
    carrier = np.float64 if wide else np.float32
    if type(x) is Array:
        return decode(x.codes, fmt, carrier) if x.format is fmt and type(x.codes) is np.ndarray else None
    values = kernels.unchanged(_core.contiguous(x))
    return None if values is None else carried(values, carrier)


def _at_once(a, b, unit, c, threads):
    """`matmul` of plain matrices, or of stacks; None where the general way looks closer."""
    if type(a) not in _MATRICES or type(b) not in _MATRICES or type(c) not in _STARTS:
        return None
    if not 2 <= a.ndim == b.ndim or a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2]:
        return None
    shape = (*a.shape[:-1], b.shape[-1])
    if c is not None and c.shape != shape:
        return None
    if threads is not None and (type(threads) is not int or threads < 1):
        return None
    macs = a.size * b.shape[-1]
    alone = macs < 2 * MACS_PER_THREAD if threads is None else threads == 1 and macs < MACS_AT_ONCE
    gemm = fast_of(unit)
    kernels = None if gemm is None else _kernels_at_once(unit)
    if kernels is None:
        return None
    a = _values_at_once(a, unit.operand[0], kernels[0], gemm.wide)
    b = None if a is None else _values_at_once(b, unit.operand[1], kernels[1], gemm.wide)
    if b is None:
        return None
    if c is not None and (c := _values_at_once(c, unit.c_format, kernels[2], gemm.wide)) is None:
        return None
    if alone and a.ndim == 2 and isinstance(gemm, _gemm.FastGemm):
        return gemm.product(a, b, c)
    if not a.size * b.size:
        return None
    out = np.empty(shape, a.dtype)
    if not alone:
        stacks = [None if x is None else x.reshape(-1, *x.shape[-2:]) for x in (a, b, c, out)]
        lost = _run_fast(gemm, *stacks, (0, 0, 0, 0), PLAIN, threads, a.shape[-1])
        return None if lost else out
    # what `_run_fast` does with one thread, without its accounts, with which a small call takes half as long again
    whole = np.ascontiguousarray(a), padded(b, b.dtype), None if c is None else np.ascontiguousarray(c), out
    stacks = [None if x is None else x.reshape(-1, *x.shape[-2:]) for x in whole]
    return None if gemm.run_products(*stacks, (0, 0, 0, 0), 0, len(stacks[0]), shape[-1]) else out


def matmul(
    a: ArrayLike,
    b: ArrayLike,
    unit: Unit,
    c: ArrayLike | None = None,
    *,
    key: Key | None = None,
    random_bits: ArrayLike | None = None,
    threads: int | None = None,
    out: np.ndarray | None = None,
    return_stats: bool = False,
) -> Any:
    """The matrix product with every multiplication, addition and rounding as the unit defines them.

    Parameters
    ----------
    a : ndarray of float32 or float64, or Array, shape (..., M, K)
        Values of the unit's first operand format (checked). Leading dimensions broadcast, as in `numpy.matmul`.
        CUDA arrays (CuPy, PyTorch, JAX, Numba; all operands, and Arrays of such codes) are multiplied on their device,
        to the same bits, and the result is an array of the same library. Custom formats must have tables there (of
        products up to 20 bits of both codes, of sums up to 8), and functions of CustomMadUnits must be in Python, or in
        C on codes of 16 bits together.
    b : the same, shape (..., K, N)
        Values of the second operand format.
    unit : MadUnit, FusedDotUnit, FmaChainUnit, GroupedDotUnit, ExactDotUnit, ChunkedDotUnit or SplitDotUnit
        Or a BlockDotUnit, which takes BlockArrays of its formats, blocked along K: a along axis -1, b along axis -2.
    c : optional, shape broadcast to (..., M, N)
        The initial accumulator (of the outer sum under chunk): values of the result's format. Default +0.
    key : int, (int, int) or Stream, optional
        Seed, or (seed, stream); needed if and only if the unit rounds stochastically. Step k of output (m, n) takes
        word ``k mod 4`` of Philox counter (k div 4, n, m, batch), or what a MadUnit's `random` says.
    random_bits : ndarray, shape (..., M, N, steps, 2) or, in fast paths too, (..., M, steps, N), optional
        The random bits themselves instead of a key; ``steps = unit.steps(K)``, with C ``unit.steps_with_c(K)``. With a
        last axis [product, sum]: words, uint32. Without: the bits of a step, uint8, uint16 or uint32, of which a
        product takes the low ones, and the sum too, or, if both round stochastically, those from the middle on;
        columns lie side by side, and the axes before the steps broadcast. On the host alone.
    threads : int, optional
        Default: as many as are worthwhile. The result does not depend on it.
    out : ndarray, optional
        The array to write the result to.
    return_stats : bool
        Whether to return (result, stats): a `RoundingStats` with how many roundings of each kind were inexact,
        underflowed, overflowed, saturated or invalid. Counting uses the definition of the unit, whose results equal
        those of the fast paths: in SIMD lanes for most multiply-add units, at about a fifth of the speed, for others at
        a hundredth. The counts do not depend on the number of threads.

    Returns
    -------
    ndarray, shape (..., M, N); with `return_stats`, a pair
        float32 if that holds every value of the result's format, else float64, else an Array. K = 0 gives C, or +0.

    Raises
    ------
    ValueError
        If shapes do not fit, an element is not a value of its format, a key is missing, or the format cannot encode a
        result.
    TypeError
        If it is not a unit, operands have a type that it does not accept, or CUDA arrays are given for a unit without a
        kernel or with return_stats.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> unit = sn.MadUnit("e6m3", operand="e5m2")
    >>> a = np.full((1, 40), 1, np.float32)
    >>> sn.matmul(a, a.T, unit)  # the sum of forty ones sticks at 16: 16 + 1 rounds back
    array([[16.]], dtype=float32)
    """
    if isinstance(unit, (MadUnit, FusedDotUnit, GroupedDotUnit)) and out is None and not return_stats:
        with _core.PlainEnvironment():
            result = _at_once(a, b, unit, c, threads)
        if result is not None:
            return result
    tallies = Tallies() if return_stats else None
    if any(gateway.is_device_array(x) for x in (a, b, c, out)):
        gateway.check_host_only("matmul", threads, return_stats)
        return gateway.on_device("matmul", a, b, unit, c, key=key, random_bits=random_bits, out=out)
    if family_of(unit).of_blocks or BlockArray in (type(a), type(b)):
        with _core.PlainEnvironment():
            result = block_matmul(a, b, unit, c, key, random_bits, threads, out, tallies)
    elif family_of(unit).whole is not None:
        result = _whole(a, b, unit, c, key, random_bits, threads, out, return_stats)
    else:
        with _core.PlainEnvironment():
            result = matmul_by_unit(a, b, unit, c, key, random_bits, threads, out, tallies=tallies)
    return result if tallies is None else (result, tallies.stats(unit))


def _whole(a, b, unit, c, key, random_bits, threads, out, return_stats):
    """`matmul` under a unit whose family makes the whole product (`softnum.mac.family.Family.whole`)."""
    me = type(unit).__name__
    if random_bits is not None or return_stats:
        what = "takes no random_bits; state key=" if random_bits is not None else "counts no roundings; leave it out"
        raise ValueError(f"matmul: {me} {what}, or multiply in the units that it is made of")
    result = family_of(unit).whole(unit, a, b, c, key, threads)
    if out is None:
        return result
    check_out("matmul", out, result.shape, result.dtype)
    out[...] = result
    return out


def matmul_by_unit(
    a: ArrayLike,
    b: ArrayLike,
    unit: Unit,
    c: ArrayLike,
    key: Key | None,
    random_bits: ArrayLike | None,
    threads: int | None,
    out: np.ndarray | None,
    domains=(1, 2),
    caller="matmul",
    tallies=None,
):
    """matmul on the host, in a plain floating-point environment; domains: of the two random words of a step."""
    if not isinstance(unit, Unit):
        raise TypeError(f"matmul: the unit must be one of softnum's (MadUnit ..., or sn.unit(name)), got {unit!r}")
    result = unit.result
    taken = [(x, fmt, what) for x, fmt, what in zip((a, b), unit.operand, "ab", strict=True)]
    a, b = (checked_operand(*x, on_codes=unit.on_codes) for x in taken)
    if a.ndim < 2 or b.ndim < 2:
        raise ValueError(
            f"matmul takes (..., M, K) @ (..., K, N), got shapes {a.shape} and {b.shape}; for vectors use dot"
        )
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"matmul: a has K = {a.shape[-1]} columns, b has {b.shape[-2]} rows")
    (m, k), n = a.shape[-2:], b.shape[-1]
    lead = a.shape[:-2] if a.shape[:-2] == b.shape[:-2] else np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*lead, m, n)
    batches = math.prod(lead)
    if max(m, n, k, batches, unit.steps_with_c(k)) >= 2**32:
        raise ValueError(f"{caller}: no dimension may reach 2**32, got {shape} and K = {k}")
    if c is not None:
        c = checked_operand(c, unit.c_format, "c", on_codes=unit.on_codes)
        if c.ndim > len(shape) or any(d not in (1, want) for d, want in zip(c.shape[::-1], shape[::-1], strict=False)):
            raise ValueError(f"matmul: c of shape {c.shape} does not broadcast to {shape}")
    options = {"with_c": c is not None, "packed": True}
    keys, words, numbers = random_words_of(unit, key, random_bits, shape, k, domains, **options)
    dtype = next((d for d in (np.float32, np.float64) if fits(result, d)), None)
    if out is not None and dtype is None:
        raise ValueError(f"matmul: the result is an Array of {result}; out= is for float32 and float64 results")
    check_out("matmul", out, shape, dtype)

    gemm = fast_of(unit) if tallies is None else counting_of(unit) if words is None else None
    if gemm is None and c is None and words is None and (narrow := narrowed(unit)) is not None:
        values = matmul_by_unit(a, b, narrow, None, None, None, threads, out, caller=caller, tallies=tallies)
        return Array(encode(values, result), result) if dtype is None else values
    of_words = words is not None and (isinstance(words, np.ndarray) or not getattr(gemm, "takes_words", False))
    if gemm is None or of_words or dtype is None or Array in (type(a), type(b), type(c)):
        words = words.unpacked(unit) if isinstance(words, PackedWords) else words
        codes = _by_definition(unit, a, b, c, (batches, m, n), lead, k, keys, words, numbers, threads, caller, tallies)
        values = Array(codes.reshape(shape), result) if dtype is None else decode(codes.reshape(shape), result, dtype)
        if out is None:
            return values
        out[...] = values
        return out
    # an engine may read operands again after it wrote results: out gets those that lie in it at the end
    direct = (
        out is not None
        and out.flags.c_contiguous
        and not any(x is not None and np.may_share_memory(out, x) for x in (a, b, c))
    )
    flat = out.reshape(batches, m, n) if direct else np.empty((batches, m, n), dtype)
    a = np.broadcast_to(a, (*lead, m, k)).reshape(batches, m, k)
    b = np.broadcast_to(b, (*lead, k, n)).reshape(batches, k, n)
    c = None if c is None else np.broadcast_to(c, shape).reshape(batches, m, n)
    counts = None if tallies is None else partial(tallies.part, unit)
    _check_codes(unit, _run_fast(gemm, a, b, c, flat, keys, numbers, threads, k, words, counts), caller)
    if out is None:
        return flat.reshape(shape)
    if not direct:
        out[...] = flat.reshape(shape)
    return out


def _by_definition(unit, a, b, c, shape, lead, k, keys, words, numbers, threads, caller, tallies) -> np.ndarray:
    batches, m, n = shape
    a = codes_of(a, coded(unit.operand[0], unit), (*lead, m, k)).reshape(batches, m, k)
    b = codes_of(b, coded(unit.operand[1], unit), (*lead, k, n)).reshape(batches, k, n)
    c = None if c is None else codes_of(c, unit.c_format, (*lead, m, n)).reshape(batches, m, n)
    out = np.empty(shape, np.uint64)
    gemm = definition_of(unit)
    threads, blocks = blocks_of(m, n, k, batches, threads, defined=getattr(gemm, "one_by_one", True))

    def work(i, m0, m1, *columns):
        w, counts = None if words is None else words[i], None if tallies is None else tallies.part(unit)
        given, (product, row) = (a[i], b[i], None if c is None else c[i], out[i], w, keys), numbers.of(i, m0)
        return gemm.run(*given, product, row, m1 + row - m0, *columns, (row - m0, 0), tallies=counts)

    lost = for_each(numbers.split(blocks), work, threads)
    _check_codes(unit, lost, caller)
    return out.astype(unit.result.storage_dtype)


def as_matrix(x: ArrayLike, axis: int):
    """A vector as a matrix of one row (axis 0) or column (1)."""
    if isinstance(x, BlockArray):
        codes, scales = np.expand_dims(x.codes, axis), np.expand_dims(x.scales, axis)
        return BlockArray(codes, scales, x.format, -1 - axis, x.tensor_scale)
    return np.expand_dims(x, axis)


def dot(a: ArrayLike, b: ArrayLike, unit: Unit, c: ArrayLike | None = None, **options: Any) -> Any:
    """The dot product of two vectors under a unit.

    Parameters
    ----------
    a, b : array_like of float32 or float64, or Array or BlockArray, shape (K,)
        CUDA arrays as in `matmul`: the result is one of no dimensions.
    unit : as `matmul` takes
    c : float, optional
        The initial accumulator.
    **options
        As in `matmul`.

    Returns
    -------
    numpy scalar, or an Array without dimensions; with `return_stats`, a pair

    Raises
    ------
    ValueError
        As `matmul`.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> x = np.full(40, 1, np.float32)
    >>> sn.dot(x, x, sn.MadUnit("e6m3", operand="e5m2", chunk=16))
    np.float32(40.0)
    """
    if any(gateway.is_device_array(x) for x in (a, b, c)):
        gateway.check_host_only("dot", options.pop("threads", None), options.pop("return_stats", False))
        return gateway.on_device("dot", a, b, unit, c, **options)
    a, b = (x if isinstance(x, (Array, BlockArray)) else np.asarray(x) for x in (a, b))
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError(f"dot takes two vectors, got shapes {a.shape} and {b.shape}; for matrices use matmul")
    row = Array(a.codes[None, :], a.format) if isinstance(a, Array) else as_matrix(a, 0)
    column = Array(b.codes[:, None], b.format) if isinstance(b, Array) else as_matrix(b, 1)
    if c is not None and not isinstance(c, Array):
        c = float_array(c, "dot").reshape(1, 1)
    result = matmul(row, column, unit, c, **options)
    return (result[0][0, 0], result[1]) if isinstance(result, tuple) else result[0, 0]

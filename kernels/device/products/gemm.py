"""softnum.matmul for CUDA arrays: what is asked is checked here, and an engine is found that computes it."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import prod

import numpy as np

from softnum.arrays.blocks import BlockArray
from softnum.arrays.checks import float_array
from softnum.arrays.container import Array
from softnum.arrays.environment import source_keys
from softnum.kernels.device.elementwise.conversion import FROM_ARRAY, FROM_KEY, NO_WORDS, check_out
from softnum.kernels.device.products.blocks import block_operands, with_scales
from softnum.kernels.device.products.engines import engine_of
from softnum.kernels.device.products.problem import Problem, carrier_of, matrices
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime.strides import broadcast, contiguous, copy, flat, is_dense, overlap, strided
from softnum.mac.family import family_of
from softnum.mac.mad import Unit
from softnum.mac.products.operands import check_key
from softnum.runtime.gateway import is_device_array

__all__ = [
    "array_and_format", "batch_counters", "check_broadcasts", "compute", "dot", "engine_of", "given_words", "matmul",
    "new_status", "random_words",
]  # fmt: skip


def compute(problem: Problem, caller: str = "matmul") -> None:
    """Let the unit's engine compute a problem.

    Raises ValueError for an operand that is no value of its format, and for a NaN in a format without one.
    """
    if 0 in (problem.m, problem.n, problem.batches):
        return
    engine, formats = engine_of(problem.unit, problem.words), problem.unit.rounded_to
    engine.run(problem)
    if engine.tells or all(f is None or f.has_nan for f in formats):
        return
    for seen, fmt in zip(_cuda.to_host(problem.status), formats, strict=True):
        if seen and fmt is not None:
            raise ValueError(f"{caller}: the result is NaN or infinite, and {fmt} has no code for it")


def new_status(unit):
    """The status of a problem (`Problem`), all zero."""
    return _cuda.filled(len(unit.rounded_to), np.uint32, 0)


def batch_counters(batches: int):
    """Counters of a problem whose batches are numbered from 0, as those of matmul are."""
    return _cuda.constant(_counters(batches))


@lru_cache(maxsize=64)
def _counters(batches: int) -> np.ndarray:
    counters = np.zeros((batches, 3), np.int64)
    counters[:, 2] = np.arange(batches)
    return counters


def _check_device(x, what: str, caller: str) -> None:
    """TypeError for a number, a list or an Array of one number."""
    if not is_device_array(x):
        raise TypeError(f"{caller}: {what} lies on the host and another operand on the device; copy one of them")


def array_and_format(x, what: str, caller: str):
    """(device array, format): codes of an Array, or carriers, whose format is None."""
    _check_device(x, what, caller)
    if isinstance(x, Array):
        return x.codes, x.format
    if isinstance(x, BlockArray):
        raise TypeError(f"{caller}: {what} is a BlockArray, which only matmul and dot accept; decode it first")
    return _cuda.device_array(x, f"{caller}: {what}"), None


def check_broadcasts(c, shape, caller: str) -> None:
    """ValueError for a C of another shape than broadcasts to the result's."""
    own = tuple(int(n) for n in c.shape)
    if len(own) > len(shape) or any(d not in (1, want) for d, want in zip(own[::-1], shape[::-1], strict=False)):
        raise ValueError(f"{caller}: c of shape {own} does not broadcast to {tuple(shape)}")


def matmul(a, b, unit, c=None, *, key=None, random_bits=None, out=None):
    """The matrix product of CUDA arrays under a unit, on the device; the bits are those of `softnum.matmul` on the CPU.

    Parameters
    ----------
    a, b, c : device arrays of float32 or float64, or Arrays of device codes; a and b BlockArrays of device codes
        As in `softnum.matmul`, of any strides.
    unit : any that `softnum.matmul` takes
    key
        As in `softnum.matmul`.
    random_bits : array of uint32, shape (..., M, N, steps, 2), optional
        Of the host or the device.
    out : device array, optional
        May be an operand, or overlap one.

    Returns
    -------
    device array
        float32 if that holds every value of the result's format, else float64.

    Raises
    ------
    ValueError, TypeError
        As `softnum.matmul`; also for a result that float64 does not hold, and for units in custom formats or of users'
        functions that kernels do not take.
    """
    if not isinstance(unit, Unit):
        raise TypeError(f"matmul: the unit must be one of softnum's (MadUnit ..., or sn.unit(name)), got {unit!r}")
    dtype, sure, of_blocks = _facts(unit)
    blocks = None
    if of_blocks or BlockArray in (type(a), type(b)):
        blocks = block_operands(a, b, unit)
        a, b = (Array._of(x.codes, x.format.element) for x in blocks)
    (a, format_a), (b, format_b) = array_and_format(a, "a", "matmul"), array_and_format(b, "b", "matmul")
    c, format_c = (None, None) if c is None else array_and_format(c, "c", "matmul")
    if a.ndim < 2 or b.ndim < 2:
        raise ValueError(
            f"matmul takes (..., M, K) @ (..., K, N), got shapes {tuple(a.shape)} and {tuple(b.shape)}; "
            "for vectors use dot"
        )
    (m, k), n = tuple(a.shape)[-2:], int(b.shape[b.ndim - 1])
    if int(b.shape[b.ndim - 2]) != k:
        raise ValueError(f"matmul: a has K = {k} columns, b has {int(b.shape[b.ndim - 2])} rows")
    lead = np.broadcast_shapes(tuple(a.shape)[:-2], tuple(b.shape)[:-2])
    shape = (*lead, m, n)
    batches = prod(lead)
    steps = unit.steps(k) if c is None else unit.steps_with_c(k)
    if max(m, n, k, batches, steps) >= 2**31:
        raise ValueError(f"matmul: no dimension of CUDA arrays may reach 2**31, got {shape} and K = {k}")
    check_out("matmul", out, shape, dtype)
    words, keys, random = random_words(unit, key, random_bits, shape, steps)
    given = [matrices(x, what, lead, fmt) for x, what, fmt in ((a, "a", format_a), (b, "b", format_b))]
    if blocks is not None:
        given = [with_scales(g, x, lead) for g, x in zip(given, blocks, strict=True)]
    given.append(None if c is None else _start(c, shape, format_c))
    # not straight into out where it is read from, or the result may lack a code: out stays as it was then
    read = [x for x in (a, b, c) if x is not None]
    straight = out is not None and sure and _cuda.is_contiguous(out) and not any(overlap(out, x) for x in read)
    result = out if straight else _cuda.empty(shape, dtype)
    target = matrices(result, "out", lead)
    status = _no_status(len(unit.rounded_to), _cuda.device_index()) if sure else new_status(unit)
    compute(Problem(unit, *given, m, n, k, batches, words, keys, batch_counters(batches), random, target, status))
    if out is None or straight:
        return result
    copy(result, out)
    return out


@lru_cache(maxsize=256)
def _facts(unit) -> tuple[np.dtype, bool, bool]:
    """(the results' type, whether each has a code, whether operands have blocks); NoKernel of a unit without one."""
    engine = engine_of(unit, NO_WORDS)
    sure = not engine.tells and all(f is None or f.has_nan for f in unit.rounded_to)
    return carrier_of(unit), sure, family_of(unit).of_blocks


@lru_cache(maxsize=16)
def _no_status(count: int, device: int):
    """The status of all problems whose results have codes: kernels write into none of it."""
    return _cuda.filled(count, np.uint32, 0)


def _start(c, shape, fmt):
    """C, broadcast to the shape of the result."""
    check_broadcasts(c, shape, "matmul")
    c = c if is_dense(c) else contiguous(c)
    operand = matrices(broadcast(c, shape), "c", shape[:-2], fmt)
    return replace(operand, shape=tuple(int(n) for n in c.shape), strides=flat(c)[2])


def dot(a, b, unit, c=None, *, key=None, random_bits=None, out=None):
    """The dot product of two vectors: `matmul` of a row with a column. The result has no dimensions."""
    for x, what in ((a, "a"), (b, "b")):
        _check_device(x, what, "dot")
    if any(len(x.shape) != 1 for x in (a, b)):
        raise ValueError(
            f"dot takes two vectors, got shapes {tuple(a.shape)} and {tuple(b.shape)}; for matrices use matmul"
        )
    if isinstance(c, Array):
        _check_device(c, "c", "dot")
    if c is not None and not is_device_array(c):
        c = _cuda.to_device(np.float64(float_array(c, "dot")).reshape(1, 1))
    elif c is not None:
        if c.size != 1:
            raise ValueError(f"dot: c is one number, got shape {tuple(c.shape)}")
        c = _as_matrix(c, 0)
    result = matmul(_as_matrix(a, 0), _as_matrix(b, 1), unit, c, key=key, random_bits=random_bits, out=out)
    return result.reshape(()) if out is None else out


def _as_matrix(x, axis: int):
    """A vector, or what has one element, as a matrix of one row (axis 0) or column (1)."""
    if isinstance(x, Array):
        return Array._of(_as_matrix(x.codes, axis), x.format)
    if isinstance(x, BlockArray):
        codes, scales = _as_matrix(x.codes, axis), _as_matrix(x.scales, axis)
        return BlockArray._of(codes, scales, x.format, -1 - axis, x.tensor_scale)
    n, step = (1, x.dtype.itemsize) if x.size == 1 else (x.shape[0], x.strides[0])
    return strided(x, ((1, n), (n, 1))[axis], ((n * step, step), (step, n * step))[axis])


def given_words(random_bits, shape, caller: str):
    """The words that a caller gave, on the host or the device; ValueError unless they are uint32 of the shape."""
    random_bits = random_bits if is_device_array(random_bits) else np.asarray(random_bits)
    if tuple(random_bits.shape) != tuple(shape) or np.dtype(random_bits.dtype) != np.uint32:
        raise ValueError(
            f"{caller}: random_bits must be uint32 of shape {tuple(shape)}, "
            f"got {random_bits.dtype} of shape {tuple(random_bits.shape)}"
        )
    return random_bits


def random_words(unit, key, random_bits, shape, steps: int, caller: str = "matmul", domains=(1, 2)):
    """(where the words come from, key words of both domains, the array of words or a stand-in)"""
    none = np.zeros((1, 1, 1, 1, 1), np.uint32)
    if not unit.stochastic:
        return NO_WORDS, (0, 0, 0, 0), _cuda.constant(none)
    if random_bits is not None:
        want = (*shape, steps, 2)
        random_bits = given_words(random_bits, want, caller)
        random_bits = contiguous(random_bits) if is_device_array(random_bits) else _cuda.to_device(random_bits)
        if random_bits.size == 0:
            return FROM_ARRAY, (0, 0, 0, 0), _cuda.constant(none)
        return FROM_ARRAY, (0, 0, 0, 0), random_bits.reshape((-1, *want[-4:]))
    if key is None and unit.random != "given":
        raise ValueError(f"{caller}: the unit rounds stochastically; give key=seed, key=(seed, stream) or random_bits=")
    check_key(unit, key, caller)
    return FROM_KEY, source_keys(unit.random_source, key, domains, caller), _cuda.constant(none)

"""softnum.sum for CUDA arrays: in the unit's order, as products of ones with the addends."""

from __future__ import annotations

from math import prod

import numpy as np

from softnum.kernels.device.products.gemm import array_and_format, compute, given_words, new_status, random_words
from softnum.kernels.device.products.mad import fast
from softnum.kernels.device.products.mad.steps import steps_of
from softnum.kernels.device.products.problem import Operand, Problem, carrier_of, check, lined
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime.strides import contiguous, dense, one_step, strided, transposed
from softnum.mac.mad import MadUnit
from softnum.mac.products.engines import fast_of
from softnum.mac.products.sums import addend_formats, adder_of, axes_of, no_format
from softnum.runtime.gateway import is_device_array

__all__ = ["examples", "sum"]

_DOMAIN = 3  # of the random words


def sum(x, unit, axis=None, *, keepdims=False, key=None, random_bits=None):
    """`softnum.sum` of a device array, or of an Array of device codes: the bits of the CPU, an array on the device."""
    array, fmt = array_and_format(x, "x", "sum")
    shape = tuple(int(n) for n in array.shape)
    axes = axes_of(axis, len(shape))
    kept = tuple(a for a in range(len(shape)) if a not in axes)
    addends = _columns(array, axes, kept, fmt)
    found = _format(addends, unit)
    adder = adder_of(unit, found)
    dtype = carrier_of(adder, "sum")
    k, n = (prod(shape[a] for a in part) for part in (axes, kept))
    result = tuple(shape[a] for a in kept)
    steps = adder.steps(k)
    if max(n, k, steps) >= 2**31:
        raise ValueError(f"sum: no dimension of CUDA arrays may reach 2**31, got {n} sums of {k}")
    words, keys, random = _words(adder, key, random_bits, result, steps)
    out = _cuda.empty(result, dtype)
    ones = lined(_cuda.constant(np.ones(1, np.float32)), 0, 0, [0], (1, 1), "ones", None, (), "sum")
    target = lined(out.reshape(out.size), n, 1, [0], (1, n), "out")
    counters = _cuda.constant(np.zeros((1, 3), np.int64))
    compute(
        Problem(adder, ones, addends, None, 1, n, k, 1, words, keys, counters, random, target, new_status(adder)),
        "sum",
    )
    return out.reshape(tuple(1 if a in axes else shape[a] for a in range(len(shape)))) if keepdims else out


def _columns(array, axes, kept, fmt) -> Operand:
    """The addends as a matrix, a sum in each column: in place if one stride goes through each part of the axes."""
    shape = tuple(int(n) for n in array.shape)
    flat, first, strides = dense(array)
    down, across = (one_step([shape[a] for a in part], [strides[a] for a in part]) for part in (axes, kept))
    if down is None or across is None:
        n = prod(shape[a] for a in kept)
        packed = contiguous(transposed(array, (*axes, *kept)))
        flat, first, down, across = packed.reshape(packed.size), 0, n, 1
        sizes = [shape[a] for a in (*axes, *kept)]
        places = dict(zip((*axes, *kept), dense(packed)[2], strict=True))
        strides = tuple(places[a] for a in range(len(sizes)))
    return lined(flat, down, across, [first], shape, "x", fmt, strides, "sum")


def _format(addends: Operand, unit):
    """The first of the unit's formats that has all the values."""
    formats, reason = addend_formats(unit), None
    if addends.format is not None:
        if addends.format not in formats:
            raise no_format(unit, addends.format)
        return addends.format
    for fmt in formats:
        try:
            check(fmt, addends)
            return fmt
        except ValueError as error:
            reason = reason or error
    raise no_format(unit, reason)


def _words(adder, key, random_bits, result, steps: int):
    """As `random_words`: addition i of output n takes the word of (i, n) in the domain of sums."""
    n = prod(result)
    if adder.stochastic and random_bits is not None:
        random_bits = given_words(random_bits, (*result, steps), "sum")
        given = contiguous(random_bits) if is_device_array(random_bits) else _cuda.to_device(random_bits)
        item = given.dtype.itemsize  # the product's word and the sum's are one
        words = strided(given, (1, n, steps, 2), (0, steps * item, item, 0))
        return random_words(adder, key, words, (1, n), steps, "sum")
    return random_words(adder, key, None, (1, n), steps, "sum", (_DOMAIN, _DOMAIN))


def examples():
    """Kernels for the link check: a fast unit's, one thread to a sum."""
    unit = MadUnit("e6m9", operand="e5m2")
    _, _, arguments, _ = next(fast.kernels_of(unit))
    steps = steps_of(unit, fast_of(unit).levels[0])
    block = fast.block_of(steps, 1, 4096, 1)
    for layout in ("rows", "columns"):
        layouts = ("matrix", layout, "matrix", "rows")
        kernel = fast.blocks_kernel(steps, block, layouts, ("float32",) * 3, (False, False), "float32", False)
        yield f"sums of {layout}", kernel, arguments, True

"""The loops of a CustomMadUnit's kernel, made of pieces that are compiled into one function.

The loop over columns is the inner one, so that LLVM makes vectors of it and each sum keeps its order. Indices are
unsigned: of signed ones Numba asks first whether they count from the end, and then no vectors are made.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

from softnum.kernels.host.jit import compiled, step_words
from softnum.kernels.host.make_scalar import scalar
from softnum.kernels.host.rounding import inlined
from softnum.kernels.host.scalars import Scalar
from softnum.mac.products.custom.steps import zero_of

__all__ = ["TILE", "is_single", "kernel_of"]

TILE = 128  # columns: sums and a row of b stay in the nearest cache

_U = np.uintp


def is_single(unit) -> bool:
    """Whether there is one lane and one chunk."""
    return unit.lanes == 1 and unit.chunk is None


def _checks(unit):
    """(number -> whether it is a value of the accumulator's format; number -> it, +0 where the format has no -0)"""
    fmt = unit.accumulator
    if unit.carrier == "codes":
        codes = np.int64(1) << np.int64(fmt.bits)
        return inlined(lambda x: 0 <= x < codes), inlined(lambda x: np.int64(x))
    rounded = compiled(scalar(fmt, carrier=unit.carrier), "round")  # in which every value is itself
    nan, zero = fmt.has_nan, np.dtype(unit.carrier).type(0)

    @inlined
    def is_value(x):
        return rounded(x) == x or (nan and x != x)

    return is_value, inlined(lambda x: x) if fmt.negative_zero else inlined(lambda x: x + zero)


def _lost(unit):
    """Whether a sum is what stands for a code that the format lacks: an operation on it gives it again."""
    if unit.carrier == "codes":
        return inlined(lambda x: x < 0)
    return inlined(lambda x: False) if unit.accumulator.has_nan else inlined(lambda x: x != x)


def _step(unit, function, adder: Scalar):
    """(acc, a, b, word) -> (new acc, whether it is a value)"""
    if unit.adds:
        is_value, plain = _checks(unit)
        if unit.stochastic:

            @inlined
            def step(acc, a, b, word):
                x = function(acc, a, b, word)
                return plain(x), is_value(x)

        else:

            @inlined
            def step(acc, a, b, word):
                x = function(acc, a, b)
                return plain(x), is_value(x)

        return step
    add = compiled(adder, "add")
    if unit.stochastic:
        return inlined(lambda acc, a, b, word: (add(acc, function(a, b, word)), True))
    return inlined(lambda acc, a, b, word: (add(acc, function(a, b)), True))


def _lane(unit, step):
    """The sum of every so many products, for a tile of columns: whether all were values."""
    one, three, no_word = _U(1), _U(3), np.uint32(0)
    if unit.stochastic:

        @inlined
        def lane(acc, a, b, first, last, stride, column, width, words, at, room):
            wrong = False
            for k in range(first, last, stride):
                x, row, word = a[k], b[k], k & three
                if word == 0 or stride > one or k == first:
                    step_words(k >> _U(2), at, column, words, width)
                for j in range(width):
                    acc[j], good = step(acc[j], x, row[column + j], words[word * width + j])
                    wrong |= not good
            return wrong

        return lane

    @inlined
    def lane(acc, a, b, first, last, stride, column, width, words, at, room):
        wrong = False
        for k in range(first, last, stride):
            x, row = a[k], b[k]
            for j in range(width):
                acc[j], good = step(acc[j], x, row[column + j], no_word)
                wrong |= not good
        return wrong

    return lane


def _lane_of_calls(unit, products, adder: Scalar):
    """`_lane` of a function in C, which takes a row of columns at a time."""
    one, is_value, plain, add, adds = _U(1), *_checks(unit), compiled(adder, "add"), unit.adds

    @inlined
    def lane(acc, a, b, first, last, stride, column, width, words, at, room):
        wrong = False
        for k in range(first, last, stride):
            x, y, p = a[k:], b[k, column:], room[0]
            if adds:
                products(acc.ctypes, x.ctypes, y.ctypes, one, acc.ctypes, one, one, width)
                for j in range(width):
                    wrong |= not is_value(acc[j])
                    acc[j] = plain(acc[j])
            else:
                products(acc.ctypes, x.ctypes, y.ctypes, one, p.ctypes, one, one, width)
                for j in range(width):
                    acc[j] = add(acc[j], p[j])
        return wrong

    return lane


def _lanes_of_vectors(unit, products, adder: Scalar):
    """The sums of all lanes, of a function in C that takes as many products at a time."""
    one, tile, is_value, plain, add, adds = _U(1), _U(TILE), *_checks(unit), compiled(adder, "add"), unit.adds

    @inlined
    def all_lanes(sums, a, b, first, last, lanes, column, width, words, at, room):
        wrong, below = False, _U(b.shape[1])
        for k in range(first, last, lanes):
            count = lanes if lanes < last - k else last - k
            acc, x, y = sums[one:], a[k:], b[k, column:]
            target = acc if adds else room
            products(acc.ctypes, x.ctypes, y.ctypes, below, target.ctypes, tile, count, width)
            for i in range(count):
                total, p = acc[i], room[i]
                for j in range(width):
                    if adds:
                        wrong |= not is_value(total[j])
                        total[j] = plain(total[j])
                    else:
                        total[j] = add(total[j], p[j])
        return wrong

    return all_lanes


def kernel_of(unit, function, adder: Scalar):
    """(a, b, c, out, order, lanes, chunk, limits, at, sums, words) -> whether a result was no value.

    c has no rows where sums start from +0; chunk is 0 where there is one. limits: of rows and columns in these arrays.
    at: the row and column that stand first in them, the batch and two key words. sums and words are room to work in.
    function: compiled by Numba, or the call of one in C (`softnum.mac.compiled.CMad`).
    """
    zero, single = zero_of(unit), is_single(unit)
    none, one, tile, lost, add = _U(0), _U(1), _U(TILE), _lost(unit), compiled(adder, "add")
    called = isinstance(function, types.ExternalFunction)
    lane = _lane_of_calls(unit, function, adder) if called else _lane(unit, _step(unit, function, adder))

    @inlined
    def one_by_one(sums, a, b, first, last, lanes, column, width, words, at, room):
        """The sums of all lanes: their products do not meet, so that they may go in any order."""
        wrong = False
        for i in range(lanes):
            wrong |= lane(sums[i + one], a, b, first + i, last, lanes, column, width, words, at, room)
        return wrong

    all_lanes = _lanes_of_vectors(unit, function, adder) if called and unit.function.lanes > 1 else one_by_one

    @inlined
    def in_parts(sums, a, b, lanes, chunk, order, starts, column, width, words, at, room):
        """Lanes and chunks, for a tile of columns; sums[0] holds what they start from, and then the result."""
        wrong, start, length, total, first = False, none, _U(a.shape[0]), sums[0], sums[1]
        while start < length:
            stop = start + chunk if chunk > none and chunk < length - start else length
            for i in range(one, lanes + one):
                acc = sums[i]
                for j in range(width):
                    acc[j] = zero
            wrong |= all_lanes(sums, a, b, start, stop, lanes, column, width, words, at, room)
            for p in range(_U(order.shape[0])):
                x, y = sums[order[p, 0]], sums[order[p, 1]]
                for j in range(width):
                    x[j] = add(x[j], y[j])
            for j in range(width):
                if chunk > none:
                    total[j] = add(total[j], first[j])
                elif not starts:
                    total[j] = first[j]
            start = stop
        return wrong

    @njit(nogil=True, error_model="numpy")
    def kernel(a, b, c, out, order, lanes, chunk, m0, m1, n0, n1, at, sums, words):
        wrong, starts, row, length = False, c.shape[0] > 0, at[0], _U(a.shape[1])
        room = sums[lanes + one :]
        for column in range(n0, n1, tile):
            width = tile if tile < n1 - column else n1 - column
            for i in range(m0, m1):
                at[0], total = row + i, sums[0]
                for j in range(width):
                    total[j] = c[i, column + j] if starts else zero
                if single:
                    wrong |= lane(total, a[i], b, none, length, one, column, width, words, at, room)
                else:
                    wrong |= in_parts(sums, a[i], b, lanes, chunk, order, starts, column, width, words, at, room)
                for j in range(width):
                    out[i, column + j] = total[j]
                    wrong |= lost(total[j])
        return wrong

    return kernel

"""Matrix products under a CustomMadUnit: the user's function compiled into the loop over K.

The loop over columns is the inner one, so that LLVM makes vectors of it and each sum keeps its order. Indices are
unsigned: of signed ones Numba asks first whether they count from the end, and then no vectors are made.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import njit, types
from numba.core.errors import NumbaError

from softnum import _core
from softnum.custom_steps import DefinitionCustom, numbers_of, try_out
from softnum.custom_unit import place_of
from softnum.kernels.cache import DiskCache, fingerprint
from softnum.kernels.jit import compiled, number_type, step_words
from softnum.kernels.rounding import inlined
from softnum.kernels.scalars import Scalar, scalar
from softnum.plan import fits
from softnum.reference.units import reduction_order
from softnum.values import decode, encode

__all__ = ["CustomGemm", "engine_of"]

_U = np.uintp
_TILE = 128  # columns: sums and a row of b stay in the nearest cache


def _checks(unit, adder: Scalar):
    """(number -> whether it is a value of the accumulator's format; number -> it, +0 where the format has no -0)"""
    fmt = unit.accumulator
    if unit.carrier == "codes":
        codes = np.int64(1) << np.int64(fmt.bits)
        return inlined(lambda x: 0 <= x < codes), inlined(lambda x: np.int64(x))
    rounded, nan, zero = compiled(adder, "round"), fmt.has_nan, np.dtype(unit.carrier).type(0)

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
        is_value, plain = _checks(unit, adder)
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
        def lane(acc, a, b, first, last, stride, column, width, words, at):
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
    def lane(acc, a, b, first, last, stride, column, width, words, at):
        wrong = False
        for k in range(first, last, stride):
            x, row = a[k], b[k]
            for j in range(width):
                acc[j], good = step(acc[j], x, row[column + j], no_word)
                wrong |= not good
        return wrong

    return lane


def _kernel(unit, lane, add):
    """(a, b, c, out, order, lanes, chunk, limits, at, sums, words) -> whether a result was no value.

    c has no rows where sums start from +0; chunk is 0 where there is one. limits: of rows and columns in these arrays.
    at: the row and column that stand first in them, the batch and two key words. sums and words are room to work in.
    """
    zero, single = np.dtype("int64" if unit.carrier == "codes" else unit.carrier).type(0), _single(unit)
    none, one, tile, lost = _U(0), _U(1), _U(_TILE), _lost(unit)

    @inlined
    def in_parts(sums, a, b, lanes, chunk, order, starts, column, width, words, at):
        """Lanes and chunks, for a tile of columns; sums[0] holds what they start from, and then the result."""
        wrong, start, length, total = False, none, _U(a.shape[0]), sums[0]
        while start < length:
            stop = start + chunk if chunk > none and chunk < length - start else length
            for i in range(lanes):
                acc = sums[i + one]
                for j in range(width):
                    acc[j] = zero
                wrong |= lane(acc, a, b, start + i, stop, lanes, column, width, words, at)
            for p in range(_U(order.shape[0])):
                x, y = sums[order[p, 0]], sums[order[p, 1]]
                for j in range(width):
                    x[j] = add(x[j], y[j])
            first = sums[one]
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
        for column in range(n0, n1, tile):
            width = tile if tile < n1 - column else n1 - column
            for i in range(m0, m1):
                at[0], total = row + i, sums[0]
                for j in range(width):
                    total[j] = c[i, column + j] if starts else zero
                if single:
                    wrong |= lane(total, a[i], b, none, length, one, column, width, words, at)
                else:
                    wrong |= in_parts(sums, a[i], b, lanes, chunk, order, starts, column, width, words, at)
                for j in range(width):
                    out[i, column + j] = total[j]
                    wrong |= lost(total[j])
        return wrong

    return kernel


def _single(unit) -> bool:
    """Whether there is one lane and one chunk."""
    return unit.lanes == 1 and unit.chunk is None


def _signature(carrier: str) -> tuple:
    number, size = number_type(carrier), types.uintp
    given, matrix = (types.Array(number, 2, "C", readonly=readonly) for readonly in (True, False))
    at, words = types.Array(types.uint64, 1, "C"), types.Array(types.uint32, 1, "C")
    order = types.Array(size, 2, "C")
    return given, given, given, matrix, order, size, size, size, size, size, size, at, matrix, words


def _check_result(unit, function) -> None:
    """TypeError unless Numba compiles the function, and its result is a number of the carrier."""
    number = number_type(unit.carrier)
    arguments = tuple(types.uint32 if name == "word" else number for name in unit.parameters)
    me = f"{unit.name} ({place_of(unit.function)})"
    try:
        function.compile(arguments)
    except NumbaError as error:
        raise TypeError(f"CustomMadUnit: Numba cannot compile {me}: {_said(error)}") from None
    result = types.unliteral(function.overloads[arguments].signature.return_type)
    if result == number or (unit.carrier == "codes" and isinstance(result, types.Integer)):
        return
    wanted = "an integer, a code" if unit.carrier == "codes" else f"a {number}"
    hint = f"; write numpy.{number}(...)" if isinstance(result, (types.Float, types.Integer)) else ""
    raise TypeError(f"CustomMadUnit: {me} returns {result} where Numba compiles it, and not {wanted}{hint}")


def _compiled_kernel(unit, adder: Scalar):
    """The unit's kernel, compiled or from the disk; units that differ in lanes and chunks share one."""
    function = unit.function
    if not hasattr(function, "py_func"):
        function = njit(function, error_model="numpy", forceinline=True)
    signature = _signature(unit.carrier)
    key = fingerprint(function, adder, unit.parameters, _single(unit))
    cache = None if key is None else DiskCache(key)
    if cache is None or not cache.holds(signature):
        _check_result(unit, function)
    kernel = _kernel(unit, _lane(unit, _step(unit, function, adder)), compiled(adder, "add"))
    if cache is not None:
        kernel._cache = cache
    kernel.compile(signature)
    kernel.disable_compile()  # what is given is converted, not compiled for anew
    return kernel


class CustomGemm:
    """The engine of a CustomMadUnit on carriers, ``run`` as every engine's (`softnum.engines`)."""

    def __init__(self, unit) -> None:
        self.unit = unit
        formats = (*unit.operand, unit.accumulator)
        self.wide = unit.carrier == "float64" or not all(fits(f, np.float32) for f in formats)
        self.dtype = np.dtype("int64" if unit.carrier == "codes" else unit.carrier)
        adder = scalar(unit.accumulator, rounding=unit.rounding, overflow=unit.overflow, carrier=unit.carrier)
        self.kernel = _compiled_kernel(unit, adder)
        try_out(unit, self._on_codes)

    def run(self, a, b, c, out, keys, batch, m0, m1, n0, n1, first=(0, 0)) -> None:
        """out[m0:m1, n0:n1] of carriers; ValueError if a step has no result."""
        (row, column), unit = first, self.unit
        if unit.carrier != "codes":
            self._run(a, b, c, out, keys, batch, m0, m1, n0, n1, first)
            part = out[m0 - row : m1 - row, n0 - column : n1 - column]
            part[np.isnan(part)] = np.nan  # the one NaN that is written
            return
        rows, columns = slice(m0 - row, m1 - row), slice(n0 - column, n1 - column)
        x, y = self._codes(a[rows], unit.operand[0]), self._codes(b[:, columns], unit.operand[1])
        z = None if c is None else self._codes(c[rows, columns], unit.accumulator)
        codes = np.empty((m1 - m0, n1 - n0), np.int64)
        self._run(x, y, z, codes, keys, batch, m0, m1, n0, n1, (m0, n0))
        out[rows, columns] = decode(codes.astype(unit.accumulator.storage_dtype), unit.accumulator, out.dtype)

    @staticmethod
    def _codes(x, fmt) -> np.ndarray:
        return encode(x, fmt).astype(np.int64)

    def _run(self, a, b, c, out, keys, batch, m0, m1, n0, n1, first) -> None:
        """The same on what the function takes, in every array."""
        (row, column), unit = first, self.unit
        limits = [_U(x) for x in (m0 - row, m1 - row, n0 - column, n1 - column)]
        at = np.array([row, column, batch, *keys[:2]], np.uint64)
        start = np.empty((0, 0), self.dtype) if c is None else c
        joined = c is not None and not unit.chunk
        with _core.PlainEnvironment():
            if self._call(a, b, start, out, joined, limits, at):
                self._explain(a, b, c, out, keys, batch, limits, at)

    def _call(self, a, b, c, out, joined, limits, at) -> bool:
        """Whether a result was no value; joined: C is one of the numbers that are reduced."""
        sums, words = np.empty((self.unit.lanes + 1, _TILE), self.dtype), np.empty(4 * _TILE, np.uint32)
        parts = _U(self.unit.lanes), _U(self.unit.chunk or 0)
        return self.kernel(a, b, c, out, _order(self.unit, joined), *parts, *limits, at.copy(), sums, words)

    def _explain(self, a, b, c, out, keys, batch, limits, at):
        """Raise what the definition raises of the first output that has no result."""
        unit, start = self.unit, np.empty((0, 0), self.dtype) if c is None else c
        definition, joined = DefinitionCustom(unit, unit.operand), c is not None and not unit.chunk
        m0, m1, n0, n1 = limits
        for m in range(int(m0), int(m1)):
            if not self._call(a, b, start, out, joined, [_U(m), _U(m + 1), n0, n1], at):
                continue
            for n in range(int(n0), int(n1)):
                place = int(at[0]) + m, int(at[1]) + n
                word = definition.words(None, keys, batch, *place) if unit.stochastic else None
                definition.dot(a[row][0], b[:, n], None if c is None else c[m, n], word, f" of output {place}")
        raise ValueError(
            f"{unit.name} ({place_of(unit.function)}): a result is no value of {unit.accumulator}, but not where Python "
            "computes it"
        )

    def _on_codes(self, a, b, c, out, words, keys, batch, m0, m1, n0, n1) -> int:
        """`run` on codes of the operands, as a definition has it."""
        unit = self.unit
        x, y, z = (
            np.ascontiguousarray(numbers_of(codes, fmt, fmt, unit.carrier))
            for codes, fmt in ((a, unit.operand[0]), (b, unit.operand[1]), (c, unit.accumulator))
        )
        result = np.empty(out.shape, self.dtype)
        self._run(x, y, z, result, keys, batch, m0, m1, n0, n1, (0, 0))
        out[...] = result if unit.carrier == "codes" else encode(result, unit.accumulator)
        return 0


def _said(error: NumbaError) -> str:
    """Of Numba's message the parts that are about the user's code."""
    lines = [line.rstrip() for line in str(error).splitlines() if line.strip()]
    skipped = (
        "Failed in nopython",
        "During: Pass",
        "- Resolution failure",
        "raised from",
        "None",
        "There are",
        "- Of which",
    )
    return "\n".join(line for line in lines if not line.strip().startswith(skipped))


@lru_cache(maxsize=256)
def _order(unit, joined: bool) -> np.ndarray:
    """The additions of lanes as pairs of rows of sums; joined: C, in row 0, is one of them."""
    if unit.lanes == 1 and not joined:
        return np.empty((0, 2), _U)
    pairs = reduction_order(unit.lanes + joined, unit.reduction)
    return np.array(pairs, _U).reshape(-1, 2) + _U(not joined)


@lru_cache(maxsize=64)
def engine_of(unit) -> CustomGemm:
    """The compiled engine of a CustomMadUnit."""
    return CustomGemm(unit)

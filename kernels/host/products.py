"""Matrix products under a CustomMadUnit: the user's function compiled into the loop over K."""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
from numba import types
from numba.core.errors import NumbaError, UnsupportedBytecodeError

from softnum.arrays.conversion import encode
from softnum.formats.custom.primitives import place_of
from softnum.kernels.host.cache import cache_of
from softnum.kernels.host.jit import TABLE_BITS, jitted, looked_up, number_type, products_of, refuse_recursion
from softnum.kernels.host.loops import TILE, is_single, kernel_of
from softnum.kernels.host.make_scalar import scalar
from softnum.kernels.host.scalars import Scalar
from softnum.mac.compiled import CMad
from softnum.mac.order import reduction_order
from softnum.mac.products.custom.steps import DefinitionCustom, numbers_of, try_out
from softnum.runtime import _core

__all__ = ["CodesGemm", "FunctionGemm", "engine_of"]

_U = np.uintp


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
    except (NumbaError, UnsupportedBytecodeError) as error:
        raise TypeError(f"CustomMadUnit: Numba cannot compile {me}: {_said(error)}") from None
    result = types.unliteral(function.overloads[arguments].signature.return_type)
    if result == number or (unit.carrier == "codes" and isinstance(result, types.Integer)):
        return
    wanted = "an integer, a code" if unit.carrier == "codes" else f"a {number}"
    hint = f"; write numpy.{number}(...)" if isinstance(result, (types.Float, types.Integer)) else ""
    raise TypeError(f"CustomMadUnit: {me} returns {result} where Numba compiles it, and not {wanted}{hint}")


def _compiled_kernel(unit, adder: Scalar):
    """The unit's kernel, compiled or from the disk; units that differ in lanes and chunks share one."""
    function, signature = unit.function, _signature(unit.carrier)
    told = ()
    if isinstance(function, CMad):
        told = function.symbol, function.lanes
        function = products_of(function) if function.table is None else looked_up(function.table)
    else:
        refuse_recursion(function, f"CustomMadUnit: {unit.name} ({place_of(function)})")
        function = jitted(function, "python" if unit.carrier == "codes" else "numpy")  # as single numbers behave there
    cache = cache_of(*(told or (function,)), adder, unit.parameters, is_single(unit))
    if not told and not cache.holds(signature):
        _check_result(unit, function)
    kernel = kernel_of(unit, function, adder)
    kernel._cache = cache
    kernel.compile(signature)
    kernel.disable_compile()  # what is given is converted, not compiled for anew
    return kernel


class FunctionGemm:
    """The engine of a CustomMadUnit on carriers, ``run`` as every engine's (`softnum.mac.products.engines`)."""

    def __init__(self, unit) -> None:
        self.unit = unit
        self.wide = unit.carrier == "float64"
        self.dtype = np.dtype("int64" if unit.on_codes else unit.carrier)
        adder = scalar(unit.accumulator, rounding=unit.rounding, overflow=unit.overflow, carrier=unit.carrier)
        self.kernel = _compiled_kernel(unit, adder)
        try_out(unit, self._run_on_codes)

    def run(self, a, b, c, out, keys, batch, m0, m1, n0, n1, first=(0, 0)) -> None:
        """out[m0:m1, n0:n1] of carriers; ValueError if a step has no result."""
        row, column = first
        self._run(a, b, c, out, keys, batch, m0, m1, n0, n1, first)
        part = out[m0 - row : m1 - row, n0 - column : n1 - column]
        part[np.isnan(part)] = np.nan  # the one NaN that is written

    def _run_on_codes(self, a, b, c, out, words, keys, batch, m0, m1, n0, n1, first=(0, 0)) -> int:
        """The same on codes of the operands, as a definition has it."""
        unit, (row, column) = self.unit, first
        x, y, z = (
            None if codes is None else np.ascontiguousarray(numbers_of(codes, fmt, fmt, unit.carrier))
            for codes, fmt in zip((a, b, c), (*unit.operand, unit.accumulator), strict=True)
        )
        result = np.empty(out.shape, self.dtype)
        self._run(x, y, z, result, keys, batch, m0, m1, n0, n1, first)
        part = slice(m0 - row, m1 - row), slice(n0 - column, n1 - column)
        out[part] = result[part] if unit.on_codes else encode(result[part], unit.accumulator)
        return 0

    def _run(self, a, b, c, out, keys, batch, m0, m1, n0, n1, first) -> None:
        """The same on what the function takes, in every array."""
        (row, column), unit = first, self.unit
        limits = [_U(x) for x in (m0 - row, m1 - row, n0 - column, n1 - column)]
        at = np.array([row, column, batch, *keys[:2]], np.uint64)
        start = np.empty((0, 0), self.dtype) if c is None else c
        joined = c is not None and not unit.chunk
        with _core.PlainEnvironment():
            if self._fails(a, b, start, out, joined, limits, at):
                self._explain(a, b, c, out, keys, batch, limits, at)

    def _fails(self, a, b, c, out, joined, limits, at) -> bool:
        """Whether a result was no value, or the function raised; joined: C is one of the numbers that are reduced."""
        sums, words = np.empty((2 * self.unit.lanes + 1, TILE), self.dtype), np.empty(4 * TILE, np.uint32)
        parts = _U(self.unit.lanes), _U(self.unit.chunk or 0)
        try:
            return self.kernel(a, b, c, out, _order(self.unit, joined), *parts, *limits, at.copy(), sums, words)
        except Exception:  # whatever users raise: the definition raises it again, and says where
            return True

    def _explain(self, a, b, c, out, keys, batch, limits, at):
        """Raise what the definition raises of the first output that has no result."""
        unit, start = self.unit, np.empty((0, 0), self.dtype) if c is None else c
        definition, joined = DefinitionCustom(unit, unit.operand), c is not None and not unit.chunk
        m0, m1, n0, n1 = limits
        for m in range(int(m0), int(m1)):
            if not self._fails(a, b, start, out, joined, [_U(m), _U(m + 1), n0, n1], at):
                continue
            for n in range(int(n0), int(n1)):
                place = int(at[0]) + m, int(at[1]) + n
                word = definition.words(None, keys, batch, *place) if unit.stochastic else None
                definition.dot(a[m], b[:, n], None if c is None else c[m, n], word, f" of output {place}")
        raise ValueError(
            f"{unit.name} ({place_of(unit.function)}): a result is no value of {unit.accumulator}, but not where "
            "Python computes it"
        )


class CodesGemm(FunctionGemm):
    """The same as the definition of a unit on codes."""

    def run(self, a, b, c, out, words, keys, batch, m0, m1, n0, n1, first=(0, 0), tallies=None) -> int:
        """out[m0:m1, n0:n1] of codes; random words that are given go to the steps in Python."""
        if words is not None or tallies is not None:  # the steps refuse to count
            steps = DefinitionCustom(self.unit, self.unit.operand)
            return steps.run(a, b, c, out, words, keys, batch, m0, m1, n0, n1, first, tallies)
        return self._run_on_codes(a, b, c, out, words, keys, batch, m0, m1, n0, n1, first)


def _said(error: Exception) -> str:
    """What Numba's message says of the user's code: the cause, and the line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line.removeprefix("TypingError: ") for line in lines if line.startswith("TypingError: scalar(")]
    noise = ("Failed in ", "During: Pass", "- Resolution failure")
    said = ours[:1] or [line for line in lines if not line.startswith(noise)][:1]
    places = re.findall(r"^During: typing of .* at (.+) \((\d+)\)$", "\n".join(lines), re.M)
    return said[0] + (f" ({places[-1][0]}:{places[-1][1]})" if places else "")


@lru_cache(maxsize=256)
def _order(unit, joined: bool) -> np.ndarray:
    """The additions of lanes as pairs of rows of sums; joined: C, in row 0, is one of them."""
    if unit.lanes == 1 and not joined:
        return np.empty((0, 2), _U)
    pairs = reduction_order(unit.lanes + joined, unit.reduction)
    return np.array(pairs, _U).reshape(-1, 2) + _U(not joined)


@lru_cache(maxsize=64)
def engine_of(unit) -> FunctionGemm | None:
    """The compiled engine of a CustomMadUnit; None where the sum's format is the user's own and has no table."""
    if unit.accumulator.arithmetic.carriers == ("codes",) and unit.accumulator.bits > TABLE_BITS:
        return None
    return (CodesGemm if unit.on_codes else FunctionGemm)(unit)

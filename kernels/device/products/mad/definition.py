"""Any MadUnit by the definition, on codes: what no fast path takes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softnum.kernels.device.elementwise.conversion import FROM_KEY, NO_WORDS
from softnum.kernels.device.products.entries import unit_library
from softnum.kernels.device.products.order import Steps, kernel_types, run_sums, sums_kernel
from softnum.kernels.device.products.problem import Problem, carrier_of, coded_operands, formats_of
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import cuda, ffi
from softnum.mac.mad import MadUnit

__all__ = ["DefinitionEngine", "examples", "kernels_of"]

_ROWS = ("rows",) * 4


@lru_cache(maxsize=256)
def _steps(unit, carrier: str) -> Steps:
    f = _cuda.bind(unit_library(unit, carrier))
    of_codes, of_lanes, of_chunks, of_result = f.step, f.join, f.outer, f.value

    @cuda.jit(device=True)
    def step(rows, cells, values, acc, a, b, first, second, state):
        return of_codes(acc, a, b, first, second, ffi.from_buffer(state))

    @cuda.jit(device=True)
    def join(rows, cells, values, x, y, word, state):
        return of_lanes(x, y, word, ffi.from_buffer(state))

    @cuda.jit(device=True)
    def outer(rows, cells, values, total, part, word, state):
        return of_chunks(total, part, word, ffi.from_buffer(state))

    @cuda.jit(device=True)
    def start(code):
        return np.uint64(code)

    @cuda.jit(device=True)
    def value(rows, cells, values, code, state):
        return of_result(code)

    return Steps(np.uint64, np.uint64(0), np.uint64(0), step, join, outer, start, value)


@lru_cache(maxsize=256)
def _kernel(unit, carrier: str, words: int, has_c: bool, layouts):
    types = tuple(f.storage_dtype.name for f in formats_of(unit))
    return sums_kernel(_steps(unit, carrier), unit, words, has_c, layouts, types)


def kernels_of(unit):
    """(name, kernel, types of its arguments) of what computes matrices without c, words from a key."""
    carrier = carrier_of(unit)
    kernel = _kernel(unit, carrier.name, FROM_KEY if unit.stochastic else NO_WORDS, False, _ROWS)
    codes = [f.storage_dtype for f in formats_of(unit)]
    yield f"definition {unit}", kernel, kernel_types(*codes, f"u{carrier.itemsize}")


class DefinitionEngine:
    """Computes any problem of a MadUnit in softnum's own formats."""

    kernels_of, tells = staticmethod(kernels_of), False

    def __init__(self, unit) -> None:
        self.unit = unit

    def run(self, problem: Problem) -> None:
        """Compute it; ValueError for an operand that is no value of its format."""
        p, operands = problem, coded_operands(problem)
        kernel = _kernel(self.unit, p.out.flat.dtype.name, p.words, p.c is not None, p.layouts(operands))
        run_sums(p, kernel, operands)


def examples():
    """`kernels_of` representative units, which are linked without a GPU."""
    for unit in (
        MadUnit("e6m9", operand="e5m2", chunk=64),
        MadUnit("e6m9", operand="e5m2", product="e5m2", rounding="stochastic", stochastic_bits=12),
        MadUnit("e5m10", operand="e4m3fn", product="e5m10", lanes=8, reduction="tree", compensated="kahan", chunk=64),
    ):
        yield from kernels_of(unit)

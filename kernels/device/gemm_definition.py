"""Any MadUnit by the definition, on codes: what no fast path takes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from softnum.custom import CustomFormat
from softnum.kernels.device import _cuda
from softnum.kernels.device._cuda import cuda, ffi
from softnum.kernels.device.entries import unit_library
from softnum.kernels.device.problem import Problem, stand_in, to_codes
from softnum.kernels.device.quantize import FROM_KEY, NO_WORDS
from softnum.kernels.device.sums import Steps, kernel_types, run_sums, sums_kernel
from softnum.kernels.device.value_tables import decoded
from softnum.names import format
from softnum.units import MadUnit

__all__ = ["DefinitionEngine", "examples", "kernels_of"]

_ROWS = ("rows",) * 4


def _formats(unit) -> tuple:
    """Those whose codes the kernel takes; of a custom format's values, binary64's."""
    return tuple(format("binary64") if isinstance(f, CustomFormat) else f for f in (*unit.operand, unit.c_format))


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
    types = tuple(f.storage_dtype.name for f in _formats(unit))
    return sums_kernel(_steps(unit, carrier), unit, words, has_c, layouts, types)


class DefinitionEngine:
    """Computes any problem of a MadUnit in softnum's own formats."""

    def __init__(self, unit) -> None:
        self.unit = unit

    @staticmethod
    def kernels_of(unit):
        """`kernels_of` this module."""
        return kernels_of(unit)

    def run(self, problem: Problem) -> None:
        """Compute it; ValueError for an operand that is no value of its format."""
        p, unit = problem, self.unit
        taken = zip((p.a, p.b), unit.operand, _formats(unit), strict=False)
        a, b = (_coded(x, fmt, wanted) for x, fmt, wanted in taken)
        c = stand_in(unit.c_format.storage_dtype) if p.c is None else to_codes(p.c, unit.c_format)
        layouts = (a.layout, b.layout, c.layout, p.out.layout)
        kernel = _kernel(unit, p.out.flat.dtype.name, p.words, p.c is not None, layouts)
        run_sums(p, kernel, a, b, c, _cuda.bits(p.out.flat))


def _coded(operand, fmt, wanted):
    """The operand as codes of the format that is wanted, checked to be values of its own."""
    codes = to_codes(operand, fmt)
    return codes if wanted == fmt else decoded(codes, fmt)


def kernels_of(unit):
    """(name, kernel, types of its arguments) of what computes matrices without c, words from a key."""
    from softnum.kernels.device.gemm import carrier_of

    carrier = carrier_of(unit)
    kernel = _kernel(unit, carrier.name, FROM_KEY if unit.stochastic else NO_WORDS, False, _ROWS)
    codes = [f.storage_dtype for f in _formats(unit)]
    yield f"definition {unit}", kernel, kernel_types(*codes, f"u{carrier.itemsize}")


def examples():
    """`kernels_of` representative units, which are linked without a GPU."""
    for unit in (
        MadUnit("e6m9", operand="e5m2", chunk=64),
        MadUnit("e6m9", operand="e5m2", product="e5m2", rounding="stochastic", stochastic_bits=12),
        MadUnit("e5m10", operand="e4m3fn", product="e5m10", lanes=8, reduction="tree", compensated="kahan", chunk=64),
    ):
        yield from kernels_of(unit)

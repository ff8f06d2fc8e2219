"""CustomMadUnits: the user's function becomes a function of the device, and the step of sums in the unit's order.

A function in Python is compiled with the methods of its Scalars in C (scalar_functions.py); one in C is looked up in a
table of all its products. Before a unit computes anything it does a sample of products, which must have the bits that
the function has in Python.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from softnum.arrays.conversion import decode, encode
from softnum.arrays.environment import environment
from softnum.formats.c_text import environment_text, format_text
from softnum.formats.custom.primitives import place_of
from softnum.formats.dispatch import of_format
from softnum.formats.facts import fits
from softnum.formats.names import format
from softnum.kernels.device.elementwise.conversion import FROM_KEY, NO_WORDS
from softnum.kernels.device.elementwise.value_tables import gather_kernel
from softnum.kernels.device.products.entries import value_body
from softnum.kernels.device.products.order import Steps, Tables, kernel_types, run_sums, sums_kernel
from softnum.kernels.device.products.problem import Problem, all_codes, matrices, stand_in, value_kernel
from softnum.kernels.device.products.scalar_functions import device_function, may_contract, methods_of
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import cuda, ffi
from softnum.kernels.device.runtime.source import Entry, Library
from softnum.kernels.host.make_scalar import scalar
from softnum.mac.compiled import CMad
from softnum.mac.custom import CustomMadUnit
from softnum.mac.products.custom.steps import try_out, zero_of
from softnum.runtime import gateway

__all__ = ["CustomEngine", "engine_of", "examples", "kernels_of"]

_ROWS = ("rows",) * 4
_WIDE = {"float32": "binary32", "float64": "binary64"}
_BITS = {"float32": "uint32", "float64": "uint64"}
_TABLE_BITS = 16


def _result(unit) -> str:
    """The type of results, as `softnum.matmul` has it."""
    return next(c for c in _WIDE if fits(unit.accumulator, c))


# ---- numbers and codes -----------------------------------------------------------------------------------------------


@of_format
def _value_entries(fmt, result: str) -> tuple[str, tuple[Entry, ...]]:
    """(constants, the entry ``value(x, lost)`` of a sum on codes) by the format's text"""
    constants = format_text("_out", fmt) + format_text("_carrier", format(_WIDE[result]))
    body = "if (x < 0) *lost |= 1;\nconst sn_u64 code = x < 0 ? 0 : (sn_u64)x;\n" + value_body(_BITS[result])
    return constants, (Entry("value", _BITS[result], (("int64", "x"), ("uint64*", "lost")), body),)


@_value_entries.custom
def _no_entries(fmt, result: str) -> tuple[str, tuple[Entry, ...]]:
    return "", ()


@lru_cache(maxsize=64)
def _numbers_library(unit) -> Library:
    """The entries ``settle(x, lost)``, a step's result if it is a value of the accumulator's format, and, where that is
    one of softnum's, ``value(x, lost)``, a sum as bits of the result."""
    fmt, carrier, result = unit.accumulator, unit.carrier, _result(unit)
    kind, lost = "int64" if unit.on_codes else carrier, ("uint64*", "lost")
    if unit.on_codes:
        settle = f"if ((sn_u64)x >= (sn_u64)1 << {fmt.bits}) {{\n    *lost |= 1;\n    return 0;\n}}\nreturn x;"
        entries = [Entry("settle", kind, ((kind, "x"), lost), settle)]
        constants, more = _value_entries(fmt, result)
        return Library(constants, (*entries, *more), "softnum/device/scalar.h")
    width = 32 if carrier == "float32" else 64
    constants = (
        format_text("_wide", format(_WIDE[carrier])) + format_text("_out", fmt)
        + environment_text("_plain", environment(fmt, "nearest_even", None, 32))
    )  # fmt: skip
    nearest = (
        "const sn_format g = _wide(), f = _out();\nconst sn_env env = _plain();\nsn_u32 flags = 0, status = 0;\n"
        f"const sn_u64 code = sn_convert(&g, sn_bits{width}(x), &f, &env, 0, &flags);\n"
        f"const {'float' if width == 32 else 'double'} y = "
        f"sn_float{width}({'(sn_u32)' if width == 32 else ''}sn_carrier_of(&f, code, &g, &status));\n"
    )
    same = "y == x || x != x" if fmt.has_nan else "y == x"
    settle = nearest + f"if (!({same})) *lost |= 1;\nreturn y;"
    value = "(void)lost;\n" if fmt.has_nan else "if (x != x) *lost |= 1;\n"
    wide = "sn_widen(x)" if (width == 32 and result == "float64") else "x"
    if result == "float32":
        number = "sn_narrow(x)" if width == 64 else "x"
        value += f"return x != x ? 0x7fc00000u : sn_bits32({number});"
    else:
        value += f"return x != x ? 0x7ff8000000000000u : sn_bits64({wide});"
    entries = (
        Entry("settle", kind, ((kind, "x"), lost), settle),
        Entry("value", _BITS[result], ((kind, "x"), lost), value),
    )
    return Library(constants, entries, "softnum/device/scalar.h")


@_cuda.kept
def _values(fmt, carrier: str):
    """The values of all codes of a custom format on the device, as bits of a carrier."""
    codes = np.arange(1 << fmt.bits).astype(fmt.storage_dtype)
    return _cuda.to_device(np.ascontiguousarray(decode(codes, fmt, np.dtype(carrier))).view(_BITS[carrier]))


@of_format
def _put_values(fmt, carrier: str, grid, codes, out) -> None:
    """out[i] becomes the value of codes[i], as bits of a carrier."""
    _cuda.launch(value_kernel(fmt, carrier), *grid, codes, out)


@_put_values.custom
def _gather_values(fmt, carrier: str, grid, codes, out) -> None:
    _cuda.launch(gather_kernel(), *grid, codes, _values(fmt, carrier), out)


def _types(unit) -> tuple[str, ...]:
    """Of the elements of a, b and c."""
    formats = (*unit.operand, unit.c_format)
    return tuple(f.storage_dtype.name if unit.on_codes else unit.carrier for f in formats)


def _numbers(codes, unit):
    """An operand's codes as what the function takes: themselves, or floats of the carrier."""
    if unit.on_codes:
        return codes
    fmt, size = codes.format, codes.flat.shape[0]
    out = _cuda.empty(size, _BITS[unit.carrier])
    if size:
        grid = -(-size // _cuda.THREADS), _cuda.THREADS
        _put_values(fmt, unit.carrier, grid, codes.flat, out)
    return replace(codes, flat=out.view(np.dtype(unit.carrier)), format=None)


def _zero(fmt, unit) -> int:
    return int(encode(np.zeros(1), fmt)[0]) if unit.on_codes else 0


# ---- steps -----------------------------------------------------------------------------------------------------------


def _in_c(unit):
    """The device function of a function in C: its products are looked up in values."""
    function = unit.function
    if function.table is None:
        raise TypeError(
            f"matmul: {unit.name} ({place_of(function)}) takes ({', '.join(unit.parameters)}), {unit.carrier}; kernels "
            f"look up functions in C of two codes, of {_TABLE_BITS} bits together at most: write it in Python "
            "(softnum.kernels.scalar), or copy the CUDA arrays to the host first"
        )
    bits = np.uint64(unit.operand[1].bits)

    @cuda.jit(device=True)
    def product(values, a, b):
        return np.int64(values[np.uint64(a) << bits | np.uint64(b)])

    return product


def _step(unit, adder, settle):
    """The device function of a step."""
    number = np.int64 if unit.on_codes else np.dtype(unit.carrier).type
    if isinstance(unit.function, CMad):
        product, add = _in_c(unit), adder

        @cuda.jit(device=True)
        def step(rows, cells, values, acc, a, b, first, second, state):
            return add(acc, product(values, a, b))

        return step
    function = device_function(unit.function, unit.name, unit.on_codes)
    if unit.adds and unit.stochastic:

        @cuda.jit(device=True)
        def step(rows, cells, values, acc, a, b, first, second, state):
            return settle(number(function(acc, number(a), number(b), second)), ffi.from_buffer(state))

    elif unit.adds:

        @cuda.jit(device=True)
        def step(rows, cells, values, acc, a, b, first, second, state):
            return settle(number(function(acc, number(a), number(b))), ffi.from_buffer(state))

    elif unit.stochastic:

        @cuda.jit(device=True)
        def step(rows, cells, values, acc, a, b, first, second, state):
            return adder(acc, number(function(number(a), number(b), second)))

    else:

        @cuda.jit(device=True)
        def step(rows, cells, values, acc, a, b, first, second, state):
            return adder(acc, number(function(number(a), number(b))))

    return step


@of_format
def _value(fmt, unit, f):
    """The device function that makes a result's bits of a sum of a format."""
    of_number = f.value
    return cuda.jit(device=True)(lambda rows, cells, values, x, state: of_number(x, ffi.from_buffer(state)))


@_value.custom
def _value_by_table(fmt, unit, f):
    at = np.uint64(len(_products(unit)))
    kind = np.dtype(_BITS[_result(unit)]).type

    @cuda.jit(device=True)
    def value(rows, cells, values, x, state):
        if x < 0:
            state[0] |= np.uint64(1)
            return kind(0)
        return kind(values[at + np.uint64(x)])

    return value


@lru_cache(maxsize=64)
def _steps(unit) -> Steps:
    f = _cuda.bind(_numbers_library(unit))
    add = methods_of(
        scalar(unit.accumulator, rounding=unit.rounding, overflow=unit.overflow, carrier=unit.carrier), ("add",)
    ).add
    number = np.int64 if unit.on_codes else np.dtype(unit.carrier).type

    @cuda.jit(device=True)
    def join(rows, cells, values, x, y, word, state):
        return add(x, y)

    start, zero = cuda.jit(device=True)(lambda c: number(c)), number(zero_of(unit))
    value = _value(unit.accumulator, unit, f)
    return Steps(number, zero, zero, _step(unit, add, f.settle), join, join, start, value, False)


@lru_cache(maxsize=64)
def _kernel(unit, words: int, has_c: bool, layouts):
    zeros = tuple(_zero(f, unit) for f in (*unit.operand, unit.c_format))
    return sums_kernel(_steps(unit), unit, words, has_c, layouts, _types(unit), zeros)


@lru_cache(maxsize=64)
def _products(unit) -> np.ndarray:
    """All products of a function in C, as codes."""
    if isinstance(unit.function, CMad) and unit.function.table is not None:
        return unit.function.table.ravel().astype(np.uint64)
    return np.zeros(0, np.uint64)


@of_format
def _result_bits(fmt, result: str) -> np.ndarray:
    """What results are looked up in: nothing."""
    return np.zeros(0, np.uint64)


@_result_bits.custom
def _all_result_bits(fmt, result: str) -> np.ndarray:
    """The bits of all values."""
    codes = np.arange(1 << fmt.bits).astype(fmt.storage_dtype)
    return np.ascontiguousarray(decode(codes, fmt, np.dtype(result))).view(_BITS[result]).astype(np.uint64)


@_cuda.kept
def _tables(unit) -> Tables:
    none, values = Tables.none(), _products(unit)
    values = np.concatenate([values, _result_bits(unit.accumulator, _result(unit))])
    return Tables(none.rows, none.cells, _cuda.to_device(values)) if len(values) else none


# ---- the engine ------------------------------------------------------------------------------------------------------


def kernels_of(unit):
    """(name, kernel, types of its arguments) of what computes contiguous matrices without c."""
    kernel = _kernel(unit, FROM_KEY if unit.stochastic else NO_WORDS, False, _ROWS)
    yield f"custom {unit}", kernel, kernel_types(*_types(unit), _BITS[_result(unit)])


class CustomEngine:
    """Computes any problem of a CustomMadUnit whose function becomes one of the device; TypeError for others.

    It is made without a GPU, and tried out at its first problem.
    """

    kernels_of, tells = staticmethod(kernels_of), True

    def __init__(self, unit: CustomMadUnit) -> None:
        if gateway.custom_engine(unit) is None:  # which also checks the function's types
            raise TypeError(
                f"matmul: sums in {unit.accumulator}, of {unit.accumulator.bits} bits, have no table for kernels to "
                "look up; copy the CUDA arrays to the host first"
            )
        self.unit, self._tried = unit, False
        _steps(unit)

    def try_once(self) -> None:
        """Before the first product: TypeError if the function does not compile for the device, ValueError if it is not
        the same there as in Python."""
        if not self._tried:
            self._compiles()
            self._check_contractions()
            try_out(self.unit, self._run_on_codes)
            self._tried = True

    def _compiles(self) -> None:
        """TypeError where Numba does not compile for the device what it compiles for the host."""
        from numba.core.errors import NumbaError

        a = encode(np.zeros((1, 1)), self.unit.operand[0]).astype(np.uint64)
        b = encode(np.zeros((1, 1)), self.unit.operand[1]).astype(np.uint64)
        try:
            self._run_on_codes(a, b, None, np.zeros((1, 1), np.uint64), None, (0, 0, 0, 0), 0, 0, 1, 0, 1)
        except NumbaError as error:
            raise TypeError(
                f"matmul: Numba cannot compile {self.unit.name} ({place_of(self.unit.function)}) for the device: "
                f"{error}; copy the CUDA arrays to the host first"
            ) from None
        except ValueError:  # of these operands, which are not the user's, there is no result
            return

    def _check_contractions(self) -> None:
        """ValueError if the compiler has made one operation, rounded once, of a product and a sum of the function's."""
        unit = self.unit
        if _cuda.SIMULATOR or isinstance(unit.function, CMad) or not may_contract(unit.function):
            return
        from softnum.kernels.check.link import examine

        major, minor = cuda.get_current_device().compute_capability
        for name, kernel, types in kernels_of(unit):
            if examine(name, kernel, types, f"sm_{major}{minor}", loops=False).contracted:
                raise ValueError(
                    f"matmul: {unit.name} ({place_of(unit.function)}) multiplies and adds floats by Python's "
                    "operators, which the device's compiler makes one operation that rounds once; take multiply, add "
                    "or fma of softnum.kernels.scalar, or copy the CUDA arrays to the host first"
                )

    def run(self, problem: Problem) -> None:
        """Compute it; ValueError for an operand that is no value of its format, and for a step that has no result."""
        self.try_once()
        if self._fails(problem):
            raise ValueError(
                f"{self.unit.name} ({place_of(self.unit.function)}): a result is no value of {self.unit.accumulator}, "
                "or a NaN that it lacks; arrays of the host have the error that names the step and its operands"
            )

    def _fails(self, p: Problem) -> bool:
        unit = self.unit
        operands = [_numbers(codes, unit) for codes in all_codes(p.given)]
        operands += [stand_in(_types(unit)[2])] if p.c is None else []
        run_sums(p, _kernel(unit, p.words, p.c is not None, p.layouts(operands)), operands, _tables(unit))
        return bool(_cuda.to_host(p.status)[0])

    def _run_on_codes(self, a, b, c, out, words, keys, batch, m0, m1, n0, n1) -> int:
        """As an engine of the host does it on codes, for the trial."""
        unit = self.unit
        given = zip("abc", (a[m0:m1], b[:, n0:n1], None if c is None else c[m0:m1, n0:n1]),
                    (*unit.operand, unit.c_format), strict=True)  # fmt: skip
        a, b, c = (
            None if codes is None else matrices(
                _cuda.to_device(np.ascontiguousarray(codes, fmt.storage_dtype)), name, (), fmt
            )
            for name, codes, fmt in given
        )  # fmt: skip
        m, n, k, result = m1 - m0, n1 - n0, a.shape[1], _result(unit)
        found, status = _cuda.empty((m, n), result), _cuda.filled(1, np.uint32, 0)
        random = _cuda.filled((1, 1, 1, 1, 1), np.uint32, 0)
        counters = _cuda.to_device(np.array([[m0, n0, batch]], np.int64))
        words = FROM_KEY if unit.stochastic else NO_WORDS
        target = matrices(found, "out", ())
        if self._fails(Problem(unit, a, b, c, m, n, k, 1, words, keys, counters, random, target, status)):
            raise ValueError(f"{unit.name}: a result is no value of {unit.accumulator}")
        out[m0:m1, n0:n1] = encode(_cuda.to_host(found), unit.accumulator)
        return 0


@lru_cache(maxsize=64)
def engine_of(unit) -> CustomEngine:
    """The unit's engine, which is tried out once."""
    return CustomEngine(unit)


def examples():
    """`kernels_of` representative units, which are linked without a GPU."""
    e5m2, e6m9, word9 = scalar("e5m2"), scalar("e6m9"), scalar("e6m9", rounding="stochastic", stochastic_bits=9)
    codes = scalar("e4m3fn", carrier="codes")

    def step(acc, a, b):
        return e6m9.add(acc, e5m2.multiply(a, b))

    def by_words(acc, a, b, word):
        return word9.fma(a, b, acc, word)

    def of_codes(a, b):
        return codes.multiply(a, b) & 0xFE

    yield from kernels_of(CustomMadUnit(step, operand="e5m2", accumulator="e6m9", chunk=64))
    yield from kernels_of(CustomMadUnit(by_words, operand="e5m2", accumulator="e6m9", lanes=2))
    yield from kernels_of(CustomMadUnit(of_codes, operand="e4m3fn", carrier="codes"))

"""Numba's CPU target: what a Scalar is to it, and how compiled code reaches the C core."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from functools import lru_cache
from types import CellType, CodeType, FunctionType

import llvmlite.binding as llvm
import numpy as np
from numba import njit, types
from numba.core.errors import TypingError
from numba.core.imputils import lower_constant
from numba.extending import models, overload_method, register_model, typeof_impl

from softnum.formats.custom.primitives import place_of
from softnum.kernels.host.rounding import (
    bits_of_float32,
    bits_of_float64,
    body_of,
    float32_of_bits,
    float64_of_bits,
    inlined,
)
from softnum.kernels.host.scalars import OPERANDS, TABLE_BITS, Scalar, carrier_format, plain
from softnum.runtime import _core

__all__ = [
    "TABLE_BITS", "ScalarType", "compiled", "jitted", "looked_up", "number_type", "products_of", "refuse_recursion",
    "step_words",
]  # fmt: skip

#: No code: what an operation on codes returns where the format has none for the result.
_INVALID = 2**64 - 1

llvm.add_symbol("softnum_scalar", _core.SCALAR_ADDRESS)  # by name, so that compiled code can be kept on disk
_core_call = types.ExternalFunction(
    "softnum_scalar",
    types.uint64(types.CPointer(types.uint64), types.uint64, types.uint64, types.uint64, types.uint32),
)

llvm.add_symbol("softnum_words", _core.WORDS_ADDRESS)
_words_call = types.ExternalFunction(
    "softnum_words",
    types.void(
        types.uint64, types.uint64, types.uint64, types.uint64, types.uint32, types.uint32,
        types.CPointer(types.uint32), types.uint64,
    ),
)  # fmt: skip


@njit
def step_words(block, at, column, words, count):
    """Random words of a block of four steps: word i of output column + j in words[i * count + j].

    at: row, first column, batch, two key words.
    """
    _words_call(block, at[1] + column, at[0], at[2], np.uint32(at[3]), np.uint32(at[4]), words.ctypes, count)


def products_of(function):
    """A function in C (`softnum.mac.compiled.CMad`) as compiled code calls it, by a name of its own."""
    llvm.add_symbol(function.symbol, function.address)
    pointer, size = types.CPointer(number_type(function.carrier)), types.uintp
    return types.ExternalFunction(
        function.symbol, types.void(pointer, pointer, pointer, size, pointer, size, size, size)
    )


def jitted(function, error_model: str, seen: dict | None = None):
    """A Python function, and the plain ones of the user's that it calls, for Numba; as it is if Numba has it already.

    error_model: "python", where a division by zero raises as Python's numbers do, or "numpy", where it makes an
    infinity as NumPy's do.
    """
    seen = {} if seen is None else seen
    if not isinstance(function, FunctionType):
        return function if hasattr(function, "py_func") else njit(function)
    if function not in seen:
        seen[function] = None  # one that calls itself stays as it is
        code, names = function.__code__, {}
        for name in code.co_names:
            if _is_plain(function.__globals__.get(name), seen):
                names[name] = jitted(function.__globals__[name], error_model, seen)
        cells = function.__closure__ and tuple(
            CellType(jitted(cell.cell_contents, error_model, seen)) if _is_plain(cell.cell_contents, seen) else cell
            for cell in function.__closure__
        )
        copy = FunctionType(code, function.__globals__ | names, function.__name__, function.__defaults__, cells)
        copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
        seen[function] = njit(copy, error_model=error_model, forceinline=True)
    return seen[function]


def _is_plain(x, seen: dict) -> bool:
    """Whether x is a Python function of the user's, and none that Numba knows."""
    return _is_users(x) and seen.get(x, x) is not None


def _is_users(x) -> bool:
    known = ("numpy", "numba", "math", "softnum")
    return isinstance(x, FunctionType) and x.__module__.partition(".")[0] not in known


def refuse_recursion(function, what: str, callers: tuple = (), settled: set | None = None) -> None:
    """TypeError if a function of the user's calls itself, or one that does, by way of others or not.

    In compiled code nothing limits that: the process would end with the stack. what: what the error begins with.
    """
    settled = set() if settled is None else settled
    plain = getattr(function, "py_func", function)
    if not _is_users(plain) or plain in settled:
        return
    if plain in callers:
        raise TypeError(
            f"{what}: {plain.__name__} ({place_of(plain)}) calls itself, and compiled code has no limit to that: "
            "the process would end with the stack; write a loop"
        )
    for called in _mentioned(plain):
        refuse_recursion(called, what, (*callers, plain), settled)
    settled.add(plain)


def _mentioned(function) -> Iterator:
    """The global and enclosed objects that a function's code loads."""
    for name in _globals_of(function.__code__):
        yield function.__globals__.get(name)
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it is empty yet
            continue


def _globals_of(code: CodeType) -> Iterator[str]:
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield step.argval
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _globals_of(inner)


def number_type(carrier: str):
    """Numba's type of the carrier's numbers."""
    return {"float32": types.float32, "float64": types.float64}.get(carrier, types.int64)


class ScalarType(types.Opaque):
    """The type of one Scalar: it has no value at run time."""

    def __init__(self, scalar: Scalar) -> None:
        self.scalar = scalar
        super().__init__(name=repr(scalar))

    @property
    def key(self) -> Scalar:
        """What types are compared by."""
        return self.scalar


register_model(ScalarType)(models.OpaqueModel)


@typeof_impl.register(Scalar)
def _(scalar, context):
    return ScalarType(scalar)


@lower_constant(ScalarType)
def _(context, builder, kind, scalar):
    return context.get_dummy_value()


# -- calls of the core -------------------------------------------------------------------------------------------------
def _carried(carrier: str):
    """(number -> code, code -> number) of compiled code."""
    u32, i32, u64, i64 = np.uint32, np.int32, np.uint64, np.int64
    if carrier == "float32":
        return inlined(lambda x: u64(u32(bits_of_float32(x)))), inlined(lambda code: float32_of_bits(i32(u32(code))))
    if carrier == "float64":
        return inlined(lambda x: u64(bits_of_float64(x))), inlined(lambda code: float64_of_bits(i64(code)))
    return inlined(lambda x: u64(x)), inlined(lambda code: i64(code))


def _called(scalar: Scalar, name: str):
    """An operation as a call of the core: of (a, b, c, random word)."""
    operation, operands = OPERANDS[name]
    carrier, codes = carrier_format(scalar), scalar.carrier == "codes"
    nan = _INVALID if codes else carrier.nan_code
    words = _core.scalar_words(
        operation, (carrier,) * operands, scalar.format, scalar.environment, None if codes else carrier, plain(carrier),
        nan,
    )  # fmt: skip
    to, back = _carried(scalar.carrier)

    if codes:
        most = np.uint64(1) << np.uint64(scalar.format.bits)

        @inlined
        def call(a, b, c, word):
            x, y, z = to(a), to(b), to(c)
            return back(_core_call(words.ctypes, x, y, z, word)) if x < most and y < most and z < most else -1

    else:

        @inlined
        def call(a, b, c, word):
            return back(_core_call(words.ctypes, to(a), to(b), to(c), word))

    return call


def looked_up(table: np.ndarray):
    """A compiled function of two codes by its table: -1 where that is so, and of what is no code."""
    (m, n), flat = (np.uint64(x) for x in table.shape), np.ascontiguousarray(table).reshape(-1)

    @inlined
    def look_up(a, b):
        known = np.uint64(a) < m and np.uint64(b) < n
        index = np.uint64(a) * n + np.uint64(b)
        return np.int64(flat[index if known else np.uint64(0)]) if known else np.int64(-1)

    return look_up


@lru_cache(maxsize=1024)
def compiled(scalar: Scalar, name: str):
    """An operation for compiled code: of its operands, and of a random word in stochastic modes."""
    try:
        scalar._check_compiled(name)
    except TypeError as error:
        raise TypingError(str(error)) from None
    body = body_of(scalar, name)
    if body is not None:
        return body
    table = scalar._table(name)
    if table is not None:
        return looked_up(table)
    call, operands, zero = _called(scalar, name), OPERANDS[name][1], np.uint32(0)
    if scalar.stochastic:
        return {
            1: inlined(lambda a, word: call(a, a, a, word)),
            2: inlined(lambda a, b, word: call(a, b, a, word)),
            3: inlined(lambda a, b, c, word: call(a, b, c, word)),
        }[operands]
    return {
        1: inlined(lambda a: call(a, a, a, zero)),
        2: inlined(lambda a, b: call(a, b, a, zero)),
        3: inlined(lambda a, b, c: call(a, b, c, zero)),
    }[operands]


def _operation(kind: ScalarType, name: str, arguments):
    """The compiled operation, where the types of the arguments are those it takes; else TypingError."""
    scalar, given = kind.scalar, list(arguments)
    try:
        scalar.check(name, len(given))
    except TypeError as error:
        raise TypingError(str(error)) from None
    number = number_type(scalar.carrier)
    if scalar.stochastic and not isinstance(given.pop(), types.Integer):
        raise TypingError(f"{scalar}.{name}: the random word is an integer (numpy.uint32)")
    for t in given:
        if scalar.carrier == "codes" and isinstance(t, types.Integer):
            continue
        if types.unliteral(t) != number:
            hint = f"; write numpy.{number}(...)" if isinstance(t, (types.Float, types.Integer)) else ""
            raise TypingError(
                f"{scalar}.{name} takes {number} numbers in compiled code, got {types.unliteral(t)}{hint}"
            )
    return compiled(scalar, name)


def _given(x) -> bool:
    return x is not None and not isinstance(x, (types.Omitted, types.NoneType))


def _register(name: str) -> None:
    """A method of as many parameters as the operation has, and of a random word in stochastic modes."""

    @overload_method(ScalarType, name)
    def method(self, a, b=None, c=None, word=None):
        given = [x for x in (a, b, c, word) if _given(x)]
        operation = _operation(self, name, given)
        return (
            lambda self, a, b=None, c=None, word=None: operation(a),
            lambda self, a, b=None, c=None, word=None: operation(a, b),
            lambda self, a, b=None, c=None, word=None: operation(a, b, c),
            lambda self, a, b=None, c=None, word=None: operation(a, b, c, word),
        )[len(given) - 1]


for _name in OPERANDS:
    _register(_name)

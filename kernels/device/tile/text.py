"""C text for the kernels of operators: a function that makes one element, by the core's operations on codes.

The function is given the number of its element and an array of numbers: sizes and strides, codes of constants, Philox
keys, the addresses of arrays. What a step or a contraction of the same form but other sizes takes are other numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from softnum.arrays.container import Array
from softnum.arrays.environment import environment, seed_and_stream
from softnum.formats.c_text import environment_text, format_text
from softnum.formats.dispatch import of_format
from softnum.formats.names import format
from softnum.kernels.device.elementwise.value_tables import values_of
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import cuda, ffi
from softnum.kernels.device.runtime.source import TYPES, Entry, Library
from softnum.kernels.device.tile.tables import NO_CODE, TABLE_BITS, UNDECIDED, custom_results, results
from softnum.runtime import _core
from softnum.runtime.gateway import NoKernel
from softnum.tile import arithmetic
from softnum.tile.arithmetic import as_constant, key_of

__all__ = ["Failure", "Made", "Text", "Value", "element_kernel", "examples", "in_c", "kernel_types"]

_HEADER, _WITH_FUNCTIONS = "softnum/device/elements.h", "softnum/device/elements.h softnum/device/functions.h"
_TO_INTEGRAL = {"floor": "down", "ceil": "up", "trunc": "toward_zero", "round": "nearest_even"}
_ORDERS = {
    "less": "{} == SN_LESS", "less_equal": "{} <= SN_EQUAL", "greater": "{} == SN_GREATER", "equal": "{} == SN_EQUAL",
    "greater_equal": "({0} == SN_EQUAL || {0} == SN_GREATER)", "not_equal": "{} != SN_EQUAL",
}  # fmt: skip
_CALLS = {
    "convert": "sn_convert({f}, {x}, {end}", "sqrt": "sn_sqrt({f}, {x}, {end}",
    "round_to_integral": "sn_round_to_integral({f}, {x}, {end}",
    "add": "sn_add({f}, {x}, {g}, {y}, {end}", "subtract": "sn_subtract({f}, {x}, {g}, {y}, {end}",
    "multiply": "sn_multiply({f}, {x}, {g}, {y}, {end}", "divide": "sn_divide({f}, {x}, {g}, {y}, {end}",
    "fma": "sn_fma({f}, {x}, {g}, {y}, {h}, {z}, {end}",
    "minimum": "sn_extremum({f}, {x}, {g}, {y}, {o}, {e}, 0, 0, {end}",
    "maximum": "sn_extremum({f}, {x}, {g}, {y}, {o}, {e}, 1, 0, {end}",
    "negate": "sn_set_sign({f}, {x}, !sn_sign({f}, {x}), {e}, {end}", "absolute": "sn_set_sign({f}, {x}, 0, {e}, {end}",
}  # fmt: skip
_HAVE_RESULT = ("minimum", "maximum", "negate", "absolute")  # those that take it before the rest, or not at all


class Value(NamedTuple):
    """A variable of the C text: a code of a format, or of None a condition, 0 or 1."""

    name: str
    format: object


class Failure(NamedTuple):
    """What a kernel reports of an element: which step of the program, and what its error says.

    error: of the element's number makes the whole error, where it is more than a step's place and a message.
    """

    step: object
    message: str
    error: object = None


def in_c(dtype) -> str:
    """The C type of unsigned integers as wide as the elements of a NumPy type."""
    return TYPES[f"uint{8 * np.dtype(dtype).itemsize}"]


@dataclass
class Made:
    """A finished text: its library, its numbers, and which of them are filled in at each launch."""

    library: Library
    numbers: list[int]
    arrays: dict[int, str]
    keys: dict[int, tuple]
    failures: list[Failure]
    kept: list = field(default_factory=list)

    def launch(self, size: int, arrays: dict, key):
        """Run the kernel for `size` elements over these arrays by name.

        Returns
        -------
        (Failure, int) or None
            What went wrong of the first step that failed, and for the first of which elements.
        """
        numbers, tables = np.array(self.numbers, np.int64), {}
        for at, name in self.arrays.items():
            numbers[at] = _cuda.address_of(arrays[name])
        for at, (step, part, *several) in self.keys.items():
            words = _key_words(key, step, range(part, part + (several[0] if several else 1)))
            if several:
                words = tables[at] = _cuda.to_device(words)
            numbers[at] = _cuda.address_of(words) if several else words[0]
        if not size:
            return None
        none = np.iinfo(np.int64).max
        first_bad = _cuda.filled(max(1, len(self.failures)), np.int64, none)
        given = _cuda.to_device(numbers if numbers.size else np.zeros(1, np.int64))
        blocks = -(-size // _cuda.THREADS)
        _cuda.launch(element_kernel(self.library), blocks, _cuda.THREADS, given, size, first_bad)
        if not self.failures:
            return None
        found = _cuda.to_host(first_bad)
        return next(((f, int(at)) for f, at in zip(self.failures, found, strict=True) if at != none), None)


@lru_cache(maxsize=512)
def element_kernel(library: Library):
    """The kernel ``(numbers, size, first_bad)``: the entry ``element`` for each of so many elements.

    first_bad: for each failure that the entry may return (its number and 1) the least element of which it did.
    """
    element = _cuda.bind(library).element

    @cuda.jit
    def kernel(numbers, size, first_bad):
        i = cuda.grid(1)
        if i < size:
            failed = element(ffi.from_buffer(numbers), i)
            if failed != 0:
                cuda.atomic.min(first_bad, np.int64(failed) - 1, np.int64(i))

    return kernel


def kernel_types():
    """Numba's types of the arguments of `element_kernel`."""
    from numba import types

    numbers = types.Array(types.int64, 1, "C")
    return numbers, types.int64, numbers


class Text:
    """The body of ``element(p, i)`` under construction.

    Parameters
    ----------
    key : as of the operator
        It is looked at where something rounds stochastically; the numbers are filled in when the kernel is launched.
    """

    def __init__(self, key=None) -> None:
        self.key = key
        self.lines: list[str] = []
        self.depth = 0
        self._numbers: list[int] = []
        self._arrays: dict[int, str] = {}
        self._keys: dict[int, tuple] = {}
        self._kept: list = []
        self._constants: dict[str, str] = {}  # text of a function that gives a constant -> its name
        self._failures: list[Failure] = []
        self._variables = 0
        self._header = _HEADER

    # -- the text ------------------------------------------------------------------------------------------------------
    def add(self, *lines: str) -> None:
        """Lines at the depth of now."""
        self.lines += ["    " * self.depth + line for line in lines]

    def open(self, line: str) -> None:
        """A line and a brace; what is added from now on lies deeper."""
        self.add(line + " {")
        self.depth += 1

    def close(self) -> None:
        """The brace."""
        self.depth -= 1
        self.add("}")

    def number(self, value: int) -> str:
        """What the text calls a number."""
        self._numbers.append(int(value))
        return f"p[{len(self._numbers) - 1}]"

    def array(self, name: str, dtype) -> str:
        """A pointer to the array that is given under a name at each launch."""
        at = self.number(0)
        self._arrays[len(self._numbers) - 1] = name
        return f"(({in_c(dtype)} *){at})"

    def store(self, name: str, dtype, at: str, value: str) -> None:
        """Write an element of the array of a name."""
        self.add(f"{self.array(name, dtype)}[{at}] = ({in_c(dtype)}){value};")

    def table(self, table) -> str:
        """A pointer to an array of int64 of its own."""
        self._kept.append(table)
        return f"((const sn_i64 *){self.number(_cuda.address_of(table))})"

    def variable(self, kind: str = "sn_u64", value: str = "0") -> str:
        """A new variable."""
        self._variables += 1
        self.add(f"{kind} v{self._variables} = {value};")
        return f"v{self._variables}"

    def fail(self, condition: str, step, message: str) -> None:
        """Report an element as failed where a condition holds, by the first failure of all."""
        self._fail(condition, Failure(step, message))

    def fail_with(self, condition: str, error) -> None:
        """The same, with error(number of the element) for the error."""
        self._fail(condition, Failure(None, "", error))

    def _fail(self, condition: str, failure: Failure) -> None:
        self._failures.append(failure)
        number = len(self._failures)
        self.add(f"if (({condition}) && (!bad || bad > {number})) bad = {number};")

    def _constant(self, stem: str, text) -> str:
        """A pointer to a constant; text(name) is the function that gives it."""
        name = self._constants.setdefault(text("_x"), f"{stem}{len(self._constants)}")
        return f"&{name}"

    def format(self, fmt) -> str:
        """A pointer to the facts of a float or fixed-point format."""
        return self._constant("f", lambda name: format_text(name, fmt))

    def environment(self, env) -> str:
        """A pointer to an environment."""
        return self._constant("e", lambda name: environment_text(name, env))

    def made(self) -> Made:
        """The text, finished."""
        functions, locals_ = [], []
        for text, name in self._constants.items():
            functions.append(text.replace("_x(", f"_{name}(", 1))
            kind = "sn_format" if name[0] == "f" else "sn_env"
            locals_.append(f"const {kind} {name} = _{name}();\n(void){name};")
        body = "\n".join([*locals_, "sn_u32 bad = 0;\n(void)p;", *self.lines, "return bad;"])
        entry = Entry("element", "uint32", (("int64*", "p"), ("int64", "i")), body)
        return Made(
            Library("".join(functions), (entry,), self._header), self._numbers, self._arrays, self._keys,
            self._failures, self._kept,
        )  # fmt: skip

    # -- operations ----------------------------------------------------------------------------------------------------
    def constant(self, value: Fraction, fmt) -> Value:
        """An exact number, rounded to a format."""
        code = as_constant(value, fmt).codes
        return self.code(int(code), fmt)

    def code(self, code: int, fmt) -> Value:
        """A code that is known."""
        return Value(f"(sn_u64){self.number(np.uint64(code).view(np.int64))}", fmt)

    def compare(self, function: str, left, right) -> Value:
        """Where a comparison of Values and exact numbers holds."""
        if isinstance(left, Fraction):
            left = self._beside(left, right.format)
        if isinstance(right, Fraction):
            right = self._beside(right, left.format)
        left, right = self.widened(left), self.widened(right)
        env = self.environment(environment(left.format, "nearest_even", None, 32))
        order = self.variable("sn_u32")
        x, y = (f"{self.format(v.format)}, {v.name}" for v in (left, right))
        self.add(f"{{ sn_u32 flags = 0; {order} = (sn_u32)sn_compare({x}, {y}, {env}, 0, &flags); }}")
        return Value(self.variable("sn_u32", _ORDERS[function].format(order)), None)

    def _beside(self, value: Fraction, fmt) -> Value:
        beside = arithmetic.beside(value, fmt)
        return self.code(int(beside.codes), beside.format)

    def apply(self, function: str, operands, fmt, options: dict, site: tuple, index: str, where, step) -> Value:
        """An operation on Values and exact numbers, rounded to a format: `softnum.tile.arithmetic.apply` of an element.

        Parameters
        ----------
        site : (int, int) or (int, int, int, str)
            The step's number, and the rounding's in it; of several roundings also how many there are, and which it is.
        index : str
            The element's place in the C order of the operation's shape.
        where : str or None
            The condition under which it is computed; elsewhere the result is of no meaning.
        step
            Of the program, for errors.
        """
        empty = [x if isinstance(x, Fraction) else _nothing(x.format) for x in operands]
        arithmetic.apply(function, empty, fmt, options, key_of(self.key, *site[:2]))  # what is wrong with the options
        given = [self.constant(x, fmt) if isinstance(x, Fraction) else x for x in operands]
        word = None
        if "stochastic_bits" in options:
            word = f"sn_element_word({index}, {self._key(site)})"
        first = given[0]
        if function in _TO_INTEGRAL:
            mode = {"rounding": _TO_INTEGRAL[function]}
            first = self._call("round_to_integral", [first], first.format, mode, None, where, step)
            function = "copy"
        if function == "copy":
            return first if first.format == fmt else self._call("convert", [first], fmt, options, word, where, step)
        if function in ("negate", "absolute"):
            if first.format == fmt:
                return self._call(function, given, fmt, {}, None, where, step)
            first = self.widened(first)
            minus, plus = (int(c) for c in arithmetic.SIGNS)
            sign = f"(sn_unpack({self.format(first.format)}, {first.name}).sign ? {minus}u : {plus}u)"
            sign = f"{minus}u" if function == "negate" else sign
            given, function = [first, Value(sign, arithmetic.sign_format())], "multiply"
        return self._call(function, given, fmt, options, word, where, step)

    def widened(self, value: Value) -> Value:
        """A value of a custom format in binary64, and others as they are."""
        return _widened(value.format, value, self)

    def _into_custom(self, name: str, operands, fmt, options: dict, where, step) -> Value:
        formats = tuple(v.format for v in operands)
        table, all_there = custom_results(
            name, formats, fmt, options.get("rounding", "nearest_even"), options.get("overflow")
        )
        at = operands[0].name
        if len(operands) == 2:
            at = f"({at}) << {formats[1].bits} | {operands[1].name}"
        result = self.variable()
        self.open("" if where is None else f"if ({where})")
        self.add(f"const sn_i64 known = {self.table(table)}[{at}];", f"{result} = known < 0 ? 0 : (sn_u64)known;")
        if not all_there:
            self.fail("known < 0", step, f"{name}: the result is NaN or infinite, and {fmt} has no code for it")
        self.close()
        return Value(result, fmt)

    def _call(self, name: str, operands, fmt, options: dict, word: str | None, where, step) -> Value:
        return _called(fmt, self, name, operands, options, word, where, step)

    def _into_core(self, name: str, operands, fmt, options: dict, word: str | None, where, step) -> Value:
        operands = [self.widened(v) for v in operands]
        env = environment(
            fmt, options.get("rounding", "nearest_even"), options.get("overflow"), options.get("stochastic_bits", 32)
        )
        elementary = name in _core.ELEMENTARY
        result = self.variable()
        self.open("" if where is None else f"if ({where})")
        tabled = elementary and len(operands) == 1 and word is None and operands[0].format.bits <= TABLE_BITS
        if tabled and fmt.bits < 63:
            table = self.table(results(name, operands[0].format, fmt, tuple(sorted(options.items()))))
            self.add(f"const sn_i64 known = {table}[{operands[0].name}];", f"{result} = known < 0 ? 0 : (sn_u64)known;")
            undecided, lost = f"known == {UNDECIDED}", f"known == {NO_CODE}"
        else:
            second = "{g}, {y}" if len(operands) == 2 else "{f}, 0"
            call = _CALLS.get(name, f"sn_elementary(SN_ELEMENTARY_{name}, {{f}}, {{x}}, {second}, {{end}}")
            if elementary:
                self._header = _WITH_FUNCTIONS
            formats = dict(zip("fgh", (self.format(v.format) for v in operands), strict=False))
            names = dict(zip("xyz", (v.name for v in operands), strict=False))
            o, e = self.format(fmt), self.environment(env)
            end = f"{word or '0'}, &flags)" if name in _HAVE_RESULT else f"{o}, {e}, {word or '0'}, &flags)"
            self.add("sn_u32 flags = 0;", f"{result} = {call.format(**formats, **names, o=o, e=e, end=end)};")
            undecided, lost = "flags & SN_UNDECIDED", "flags & SN_NO_CODE"
        if elementary:
            self.fail(undecided, step, _undecided(name, fmt))
        if not fmt.has_nan:
            self.fail(lost, step, f"{name}: the result is NaN or infinite, and {fmt} has no code for it")
        self.close()
        return Value(result, fmt)

    def _key(self, site: tuple) -> str:
        at = self.number(0)
        self._keys[len(self._numbers) - 1] = site[:3]
        return at if len(site) == 2 else f"((const sn_i64 *){at})[{site[3]}]"

    def logic(self, function: str, operands) -> Value:
        """Of conditions: and, or, not."""
        names = [v.name for v in operands]
        text = f"!{names[0]}" if function == "not" else f"{names[0]} {'&' if function == 'and' else '|'} {names[1]}"
        return Value(self.variable("sn_u32", text), None)


@of_format
def _widened(fmt, value: Value, text: Text) -> Value:
    return value


@_widened.custom
def _looked_up(fmt, value: Value, text: Text) -> Value:
    if fmt.bits > TABLE_BITS:
        raise NoKernel(f"no CUDA kernel looks up {fmt}, which has more than {TABLE_BITS} bits")
    found = text.variable("const sn_u64", f"(sn_u64){text.table(values_of(fmt))}[{value.name}]")
    return Value(found, format("binary64"))


@of_format
def _called(fmt, text: Text, name: str, operands, options: dict, word: str | None, where, step) -> Value:
    """An operation whose result is of a format."""
    return text._into_core(name, operands, fmt, options, word, where, step)


@_called.custom
def _called_by_table(fmt, text: Text, name: str, operands, options: dict, word: str | None, where, step) -> Value:
    return text._into_custom(name, operands, fmt, options, where, step)


def _key_words(key, step: int, parts) -> np.ndarray:
    """The Philox keys of roundings of a step, the first word low."""
    pairs = (_core.philox_key(*seed_and_stream(key_of(key, step, part)), 0) for part in parts)
    return np.array([low | high << 32 for low, high in pairs], np.uint64).view(np.int64)


def _undecided(name: str, fmt) -> str:
    return (
        f"{name}: a result has more than 126 bits before it wraps around in {fmt}, which cannot be rounded exactly; "
        "saturate, or go through a wider format"
    )


def _nothing(fmt) -> Array:
    return Array._of(np.zeros(0, fmt.storage_dtype), fmt)


def examples():
    """A kernel for the link check, of a stochastic operation: (name, kernel, types of the arguments)."""
    text, fmt, options = Text(0), format("binary32"), {"rounding": "stochastic", "stochastic_bits": 8}
    x = Value(text.variable("sn_u64", f"{text.array('x', fmt.storage_dtype)}[i]"), fmt)
    result = text.apply("fma", [x, x, Fraction(1)], fmt, options, (0, 0), "i", None, None)
    text.store("out", fmt.storage_dtype, "i", result.name)
    yield "fma, stochastic", element_kernel(text.made().library), kernel_types()

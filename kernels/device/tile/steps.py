"""An operator's tensors on the device, and its steps on elements: as many as have one shape by one kernel."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from softnum.arrays.container import Array
from softnum.formats.dispatch import of_format
from softnum.formats.names import format
from softnum.kernels.device.elementwise.value_tables import find_codes
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.tile.text import Made, Text, Value
from softnum.runtime.gateway import check_exact_values
from softnum.tile.affine import exact_value
from softnum.tile.arithmetic import carrier_of
from softnum.tile.program import COMPARISONS, Constant
from softnum.tile.tables import is_elementwise

__all__ = ["Group", "Tensor", "array_of", "group_of", "new", "reshaped"]

MOST = 24  # steps of a kernel: a longer one is compiled too long
_LOGIC = ("and", "or", "not")


class Tensor:
    """Values of a format on the device as codes or carriers, each made of the other when it is first asked for.

    Both are arrays of one dimension, in C order. Of the format None: conditions, 0 or 1, as uint8.
    """

    __slots__ = ("_codes", "_values", "format", "shape")

    def __init__(self, fmt, shape, codes=None, values=None) -> None:
        check_exact_values("operator", fmt)
        self.format, self.shape, self._codes, self._values = fmt, tuple(shape), codes, values

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def codes(self):
        """The codes, or the conditions."""
        if self._codes is None:
            self._codes = _codes_of(self.format, self)
        return self._codes

    @property
    def values(self):
        """The values in float32, or float64 if that does not hold the format; None if neither does."""
        dtype = carrier_of(self.format)
        if dtype is not None and self._values is None:
            self._values = self._converted(self._codes, np.dtype(dtype), False)
        return self._values

    def _converted(self, x, carrier, to_codes: bool):
        made = _conversion(self.format, carrier.name, to_codes, _cuda.device_index())
        out = new(self.size, self.format.storage_dtype if to_codes else carrier)
        made.launch(self.size, {"x": x, "out": out}, None)
        return out

    def moved(self, shape) -> Tensor:
        """The same elements in another shape."""
        return Tensor(self.format, shape, self._codes, self._values)


def new(size: int, dtype):
    """An array of one dimension on the device, of one element at least, which is zero."""
    return _cuda.empty(size, dtype) if size else _cuda.filled(1, dtype, 0)


def reshaped(flat, shape):
    """The array of a shape over a flat one from `new`."""
    size = prod(shape)
    if not size:
        return _cuda.empty(shape, flat.dtype)
    return flat.reshape(tuple(shape))


def array_of(tensor: Tensor) -> Array:
    """An Array of the codes."""
    return Array._of(reshaped(tensor.codes, tensor.shape), tensor.format)


@of_format
def _codes_of(fmt, tensor: Tensor):
    """Codes of a tensor's values."""
    return tensor._converted(tensor._values, tensor._values.dtype, True)


@_codes_of.custom
def _found_codes(fmt, tensor: Tensor):
    codes = new(tensor.size, fmt.storage_dtype)
    find_codes(fmt, tensor._values, codes, new(0, np.int64), "operator")
    return codes


@lru_cache(maxsize=256)
def _conversion(fmt, carrier: str, to_codes: bool, device: int) -> Made:
    """Carriers of values to codes, or back; on one device, where its tables lie."""
    text = Text()
    kinds = np.dtype(f"uint{8 * np.dtype(carrier).itemsize}"), fmt.storage_dtype
    read, write = kinds if to_codes else kinds[::-1]
    wide = text.format(format("binary32" if carrier == "float32" else "binary64"))
    x = Value(text.variable("sn_u64", f"{text.array('x', read)}[i]"), fmt)
    x, fmt = x if to_codes else text.widened(x)
    call = "sn_carrier_code({1}, {0}, {2}" if to_codes else "sn_carrier_of({2}, {0}, {1}"
    text.add("sn_u32 status = 0;")
    text.store("out", write, "i", call.format(x, wide, text.format(fmt)) + ", &status)")
    text.add("(void)status;")
    return text.made()


class Group(NamedTuple):
    """Steps of one shape that follow one another, as one kernel."""

    members: frozenset
    made: Made
    reads: tuple[str, ...]
    outputs: dict
    shape: tuple[int, ...]

    def run(self, values: dict, key):
        """(the outputs by name, or None; what went wrong: (Failure, place))"""
        size = prod(self.shape)
        results = {
            name: new(size, np.uint8 if fmt is None else fmt.storage_dtype) for name, fmt in self.outputs.items()
        }
        arrays = {name: values[name].codes for name in self.reads}
        failed = self.made.launch(size, arrays | {f"{name}.out": x for name, x in results.items()}, key)
        if failed is not None:
            return None, failed
        return {name: Tensor(fmt, self.shape, codes=results[name]) for name, fmt in self.outputs.items()}, None


def group_of(run, numbers) -> Group:
    """A group of the first of these steps, and of as many as possible that follow it.

    Where one that follows cannot be, as its constant is no value of its format, the group ends before it, so that what
    goes wrong in earlier ones comes first.
    """
    planned = _Planned(run)
    for place, number in enumerate(numbers):
        step = run.program.steps[number]
        if run.is_there(step):
            continue
        if len(planned.members) >= MOST or not planned.can_take(step):
            break
        try:
            planned.take(number, step)
        except (ArithmeticError, TypeError, ValueError):
            if not planned.members:
                raise
            return group_of(run, numbers[:place])
    return planned.group()


class _Planned:
    """A group under construction."""

    def __init__(self, run) -> None:
        self.run, self.text = run, Text(run.key)
        self.values: dict[str, Value] = {}
        self.members: list[str] = []
        self.reads: list[str] = []
        self.shape: tuple | None = None
        self.digits: list[str] = []

    def can_take(self, step) -> bool:
        if not is_elementwise(step):
            return False
        shape = self.run.shape(step.name)
        there = all(name in self.members or name in self.run.values for name in step.reads)
        return there and self.shape in (None, shape)

    def index(self, shape) -> str:
        """The place in a shape that broadcasts to the group's of what belongs to element i."""
        shape = (1,) * (len(self.shape) - len(shape)) + tuple(shape)
        if shape == self.shape:
            return "i"
        if prod(shape) == 1:
            return "0"
        if not self.digits:
            rest = self.text.variable("sn_i64", "i")
            for n in reversed(self.shape):
                length = self.text.number(n)
                self.digits.insert(0, self.text.variable("sn_i64", f"{rest} % {length}"))
                self.text.add(f"{rest} /= {length};")
        strides = [prod(shape[a + 1 :]) for a in range(len(shape))]
        parts = zip(self.digits, shape, strides, strict=True)
        return " + ".join(f"{d} * {self.text.number(s)}" for d, n, s in parts if n != 1)

    def argument(self, argument):
        """A Value, or an exact number."""
        if isinstance(argument, Constant):
            return exact_value(argument.expression, self.run.sizes)
        if argument not in self.values:
            tensor = self.run.values[argument]
            at, dtype = self.index(tensor.shape), np.uint8 if tensor.format is None else tensor.format.storage_dtype
            loaded = self.text.variable("sn_u64", f"{self.text.array(argument, dtype)}[{at}]")
            self.values[argument] = Value(loaded, tensor.format)
            self.reads.append(argument)
        return self.values[argument]

    def take(self, number: int, step) -> None:
        """Append a step."""
        self.shape = self.run.shape(step.name) if self.shape is None else self.shape
        operands = [self.argument(a) for a in step.arguments]
        guards = [(self.argument(name).name, value) for name, value in step.guard]
        where = " && ".join(name if value else f"!{name}" for name, value in guards) or None
        self.values[step.name] = self._made(number, step, operands, where)
        self.members.append(step.name)

    def _made(self, number: int, step, operands, where) -> Value:
        text, settings = self.text, self.run.settings
        if step.function in _LOGIC:
            return text.logic(step.function, operands)
        if step.function in COMPARISONS.values():
            return text.compare(step.function, *operands)
        if step.function == "select" and isinstance(operands[1], Value) and operands[1].format is None:
            condition, yes, no = (v.name for v in operands)
            return Value(text.variable("sn_u32", f"(sn_u32)({condition} ? {yes} : {no})"), None)
        fmt, options = settings.format(step.base), settings.rounding(step.base)
        if step.function != "select":
            return text.apply(step.function, operands, fmt, options, (number, 0), "i", where, step)
        condition, *sides = operands
        asked = [step.arguments[0], *(name for name, _ in step.guard)]
        parts = []
        for part, side in enumerate(sides):
            chosen = f"{'!' * part}{condition.name}" + (f" && {where}" if where else "")
            exact = not isinstance(side, Value) or side.format == fmt
            shapes = (self.run.shape(name) for name in (*asked, step.arguments[1 + part]) if isinstance(name, str))
            index = "i" if exact else self.index(np.broadcast_shapes(*shapes))
            parts.append(text.apply("copy", [side], fmt, {} if exact else options, (number, part), index, chosen, step))
        return Value(text.variable("sn_u64", f"{condition.name} ? {parts[0].name} : {parts[1].name}"), fmt)

    def group(self) -> Group:
        run = self.run
        wanted = set(run.program.outputs)
        for number in run.program.needed:
            if run.program.steps[number].name not in self.members:
                wanted.update(run.program.steps[number].values_read)
        outputs = {name: self.values[name].format for name in self.members if name in wanted}
        for name, fmt in outputs.items():
            dtype = np.uint8 if fmt is None else fmt.storage_dtype
            self.text.store(f"{name}.out", dtype, "i", self.values[name].name)
        return Group(frozenset(self.members), self.text.made(), tuple(self.reads), outputs, self.shape)

"""Steps of several tensors, element by element, as one loop over carriers that Numba compiles.

The domain, in which a loop gives the bits of the steps: float and fixed-point formats that binary64 holds, one
deterministic mode, operations that are a few instructions in compiled code (`softnum.kernels.host.rounding`), exact
ones (signs in formats with -0, comparisons, choices), and no NaN among operands and results: where one occurs, and
where a format has no code for a result, the steps are carried out one by one. Compiling takes a second or so, which is
paid once the steps have cost about as much.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from softnum.formats.modes import rounding_name
from softnum.runtime import gateway
from softnum.tile.affine import exact_value
from softnum.tile.arithmetic import Tensor, as_constant, carrier_of
from softnum.tile.program import COMPARISONS

__all__ = ["ENOUGH", "Loop", "Loops", "Operation", "Plan"]

#: What steps have cost, in elements of one operation, when they are compiled: about a second.
ENOUGH = 1 << 28
_CALL = 1 << 14  # what a step costs besides its elements
_MOST = 64  # loops of one operator that are kept, the last used
_SIGNS = ("negate", "absolute")
_ROUNDED = ("add", "subtract", "multiply", "divide", "fma", "sqrt")
_CHOSEN = ("minimum", "maximum")
_LOGIC = ("and", "or", "not")


class Operation(NamedTuple):
    """``target = function(operands)`` in a loop; operands: names of numbers or conditions, or places in its constants.

    carrier: of the operands. kind: of the result, "float32", "float64" or "bool". rounding: (format, mode, overflow
    rule) of a result that is rounded. guard: the conditions under which the result has a meaning.
    """

    target: str
    function: str
    operands: tuple[str | int, ...]
    carrier: str
    kind: str
    rounding: tuple | None
    guard: tuple[tuple[str, bool], ...]


class _OutsideError(Exception):
    """A step that is not in the domain."""


def _plain(fmt) -> bool:
    """Whether a format's operations may be a loop's: the user's own formats have operations of their own."""
    return fmt is not None and fmt.codec.core_format(fmt) is fmt and carrier_of(fmt) is not None


class Plan:
    """Steps of one shape that follow one another, as operations of a loop.

    Parameters
    ----------
    values : dict
        Name -> Tensor or truth array, of all that the steps may read.
    settings, sizes
        As of the evaluation.
    """

    def __init__(self, values: dict, settings, sizes: dict[str, int]) -> None:
        self.values, self.settings, self.sizes = values, settings, sizes
        self.formats: dict[str, object] = {}  # of the results, None of conditions
        self.operations: list[Operation] = []
        self.inputs: dict[str, str] = {}  # name -> kind
        self.constants: list[float] = []

    def takes(self, step) -> bool:
        """Append a step, if it is in the domain."""
        before = len(self.operations), len(self.constants), dict(self.inputs)
        try:
            self._take(step)
        except _OutsideError:
            del self.operations[before[0] :], self.constants[before[1] :]
            self.inputs = before[2]
            return False
        return True

    def _format(self, name: str):
        """The format of something read, None of a condition; it is an input from now on."""
        if name in self.formats:
            return self.formats[name]
        value = self.values.get(name)
        if value is None:
            raise _OutsideError
        if not isinstance(value, Tensor):
            self.inputs[name] = "bool"
            return None
        if not _plain(value.format):
            raise _OutsideError
        self.inputs[name] = _kind(value.format)
        return value.format

    def _constant(self, value: float) -> int:
        self.constants.append(value)
        return len(self.constants) - 1

    def _take(self, step) -> None:
        for condition, _ in step.guard:
            self._format(condition)
        if step.function in COMPARISONS.values():
            self._compare(step)
        elif step.function in _LOGIC or (step.function == "select" and self._format_of_sides(step) is None):
            for name in step.arguments:
                self._format(name)
            self._append(step.name, step.function, step.arguments, "bool", None, None, step.guard)
        else:
            self._number(step)

    def _format_of_sides(self, step):
        side = step.arguments[1]
        return self._format(side) if isinstance(side, str) else self.settings.format(step.base)

    def _compare(self, step) -> None:
        operands, carriers = [], set()
        for argument in step.arguments:
            if isinstance(argument, str):
                carriers.add(_kind(self._format(argument)))
                operands.append(argument)
            else:
                value = exact_value(argument.expression, self.sizes)
                if abs(value) >= 2**1024:
                    raise _OutsideError
                carriers.add("float64")
                operands.append(self._constant(float(value)))
        self._append(step.name, step.function, operands, max(carriers), None, None, step.guard)

    def _number(self, step) -> None:
        try:
            fmt, options = self.settings.format(step.base), self.settings.rounding(step.base)
        except ValueError:  # the step says so
            raise _OutsideError from None
        mode = rounding_name(options.get("rounding", "nearest_even"))
        if not _plain(fmt) or mode != "nearest_even":
            raise _OutsideError
        rounding = fmt, mode, options.get("overflow")
        function, guard = step.function, step.guard
        if function == "select":
            condition, *sides = step.arguments
            self._format(condition)
            chosen = [
                self._side(step, side, part, rounding, (*guard, (condition, part == 0)))
                for part, side in enumerate(sides)
            ]
            self._append(step.name, "select", (condition, *chosen), _kind(fmt), fmt, None, guard)
            return
        operands, formats = [], []
        for argument in step.arguments:
            if isinstance(argument, str):
                operands.append(argument)
                formats.append(self._format(argument))
            else:
                operands.append(self._constant(self._rounded_constant(argument, fmt)))
                formats.append(fmt)
        carrier = max(_kind(f) for f in (*formats, fmt))
        same = all(f == fmt for f in formats)
        if function == "copy":
            self._append(
                step.name, "copy" if same else "round", operands, carrier, fmt, None if same else rounding, guard
            )
        elif function in _ROUNDED:
            self._append(step.name, function, operands, carrier, fmt, rounding, guard)
        elif same and fmt.negative_zero and function in (*_SIGNS, *_CHOSEN):
            self._append(step.name, function, operands, carrier, fmt, None, guard)
        else:
            raise _OutsideError

    def _side(self, step, side, part: int, rounding, guard):
        """An operand of a choice, in the format of the result."""
        fmt = rounding[0]
        if not isinstance(side, str):
            return self._constant(self._rounded_constant(side, fmt))
        own = self._format(side)
        if own == fmt:
            return side
        target = f"{step.name}.{part}"
        self._append(target, "round", (side,), max(_kind(own), _kind(fmt)), fmt, rounding, guard)
        return target

    def _rounded_constant(self, argument, fmt) -> float:
        try:
            return float(np.asarray(as_constant(exact_value(argument.expression, self.sizes), fmt)))
        except (ValueError, ZeroDivisionError):  # the step says so
            raise _OutsideError from None

    def _append(self, target, function, operands, carrier, fmt, rounding, guard) -> None:
        kind = "bool" if fmt is None else _kind(fmt)
        self.operations.append(Operation(target, function, tuple(operands), carrier, kind, rounding, guard))
        self.formats[target] = fmt


@lru_cache(maxsize=256)
def _kind(fmt) -> str:
    return np.dtype(carrier_of(fmt)).name


class Loop:
    """Steps that are planned as one loop: what they have cost so far, and the compiled loop once that pays.

    Parameters
    ----------
    plan : Plan
    members : iterable of str
        The steps' names.
    outputs : tuple of str
        Those that are wanted elsewhere.
    shape : tuple of int
        Of every result.
    """

    def __init__(self, plan: Plan, members, outputs: tuple[str, ...], shape: tuple[int, ...]) -> None:
        self.members, self.outputs, self.shape = frozenset(members), outputs, shape
        self._inputs, self._operations = plan.inputs, tuple(plan.operations)
        self._read = {name: getattr(plan.values[name], "format", None) for name in plan.inputs}
        self._formats = [plan.formats[name] for name in outputs]
        self._constants = np.array(plan.constants, np.float64)
        # one number for all elements; a loop of nothing else would take LLVM minutes
        self._ones = [prod(plan.values[name].shape) == 1 != prod(shape) for name in plan.inputs]
        self._cost, self._loop = 0, None

    @property
    def reads(self) -> tuple[str, ...]:
        """What it reads from outside."""
        return tuple(self._inputs)

    def run(self, values: dict) -> dict | None:
        """The outputs by name, Tensors or truth arrays; None if the steps are to be carried out one by one."""
        if any(getattr(values[name], "format", None) != fmt for name, fmt in self._read.items()):
            return None
        size = prod(self.shape)
        if self._loop is None:
            self._cost += len(self._operations) * (size + _CALL)
            if self._cost < ENOUGH:
                return None
            inputs = tuple(zip(self._inputs.values(), self._ones, strict=True))
            try:
                self._loop = gateway.elementwise_loop(self._operations, self.reads, inputs, self.outputs) or False
            except ValueError:  # a rounding that its format does not have: the step says so, and where
                self._loop = False
        if not self._loop:
            return None
        arrays = []
        for (name, kind), one in zip(self._inputs.items(), self._ones, strict=True):
            x = values[name] if kind == "bool" else values[name].values
            whole = x.reshape(1) if one else x if x.shape == self.shape else np.broadcast_to(x, self.shape)
            arrays.append(np.ascontiguousarray(whole).reshape(-1))
        results = [np.empty(size, bool if fmt is None else carrier_of(fmt)) for fmt in self._formats]
        if self._loop(size, self._constants, *arrays, *results):
            return None  # of a NaN
        return {
            name: x.reshape(self.shape) if fmt is None else Tensor(fmt, values=x.reshape(self.shape))
            for name, fmt, x in zip(self.outputs, self._formats, results, strict=True)
        }


class Loops:
    """The loops of a program, by the step that they begin with and all that they depend on; the last used are kept."""

    def __init__(self) -> None:
        self._kept: OrderedDict = OrderedDict()

    def get(self, key, plan) -> Loop | None:
        """The loop of a key, None where there is none; plan() makes one."""
        loop = self._kept.pop(key) if key in self._kept else plan()
        while len(self._kept) >= _MOST:
            self._kept.popitem(last=False)
        self._kept[key] = loop
        return loop

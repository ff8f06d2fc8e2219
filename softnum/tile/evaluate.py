"""The steps of a program, carried out in order."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np

from softnum.arrays.container import Array
from softnum.mac.products.sums import sum as sum_by
from softnum.ops.numpy_functions import isnan
from softnum.tile.affine import exact_value, size_value
from softnum.tile.arithmetic import Tensor, apply, as_constant, compare, key_of
from softnum.tile.contract import contract
from softnum.tile.elementwise import Loop, Plan
from softnum.tile.program import PREDICATES, Constant, Contraction
from softnum.tile.space import Space
from softnum.tile.syntax import Like, TileError
from softnum.tile.tables import MOST_BITS, is_elementwise

__all__ = ["Run", "evaluate", "first_nan", "shapes_of"]

_LOGIC = {"and": np.logical_and, "or": np.logical_or, "not": np.logical_not}


def evaluate(program, inputs: dict, sizes: dict[str, int], settings, key, threads, tables) -> list[Tensor]:
    """The outputs, of inputs by name; steps that they do not need are left out. tables: the program's, or None."""
    if tables is not None:
        try:
            return Run(program, inputs, sizes, settings, key, threads, tables).outputs()
        except TileError:  # where several steps fail, the first one says so
            tables = None
    return Run(program, inputs, sizes, settings, key, threads, tables).outputs()


def first_nan(program, inputs: dict, sizes: dict[str, int], settings, key, threads) -> TileError | None:
    """Where the first NaN arises of tensors that have none, as an error that is not raised; None if nowhere."""
    run = Run(program, inputs, sizes, settings, key, threads, None)
    run.outputs()
    for step in (program.steps[number] for number in program.needed):
        made = run.values[step.name]
        if not isinstance(made, Tensor):
            continue
        nan, mask = isnan(made.array), run._mask(step.guard)
        nan = nan if mask is None else nan & mask
        read = {name: run.values[name] for name in step.values_read if isinstance(run.values[name], Tensor)}
        if not nan.any() or any(isnan(tensor.array).any() for tensor in read.values()):
            continue
        place = tuple(int(i) for i in np.argwhere(nan)[0])
        operands = [
            f"{name} is {np.broadcast_to(np.asarray(tensor.array), nan.shape)[place]:g}"
            for name, tensor in read.items() if not isinstance(step, Contraction)
        ]  # fmt: skip
        there = f" where {' and '.join(operands)}" if operands else ""
        return program.source.error(step.at, f"{step.base}{list(place) if place else ''} is NaN{there}")
    return None


def shapes_of(program, inputs: dict, sizes: dict[str, int], tables) -> dict[str, tuple[int, ...]]:
    """The outputs' shapes by name, of which nothing is computed."""
    run = Run(program, inputs, sizes, None, None, None, tables)
    return {name: run.shape(name) for name in program.outputs}


class Run:
    """One evaluation: the values that are there, and how those of the other steps are made, on the host.

    Another place's (`softnum.kernels.device.tile.operators`) has its own way with steps and contractions.
    """

    def __init__(self, program, inputs, sizes, settings, key, threads, tables) -> None:
        self.program, self.sizes, self.settings = program, sizes, settings
        self.key, self.threads, self.tables = key, threads, tables
        self.skipped: set[str] = set()  # steps inside loops, whose values are not wanted
        self.done: set[str] = set()  # roots of groups of which all that is wanted is there
        self.refused: set[str] = set()  # roots of groups that are not looked up, and steps that are not looped
        self.values: dict = dict(inputs)
        self.shapes: dict[str, tuple[int, ...]] = {}  # of tensors whose values are not there
        self.steps = {step.name: step for step in program.steps}
        given = tuple((name, getattr(x, "format", None), x.shape) for name, x in inputs.items())
        self.situation = None if settings is None else (settings.key, given)  # all that plans depend on

    def outputs(self) -> list[Tensor]:
        self.carry_out(self.program.needed)
        self._need_constants(self.program.outputs)
        return [self.values[name] for name in self.program.outputs]

    def carry_out(self, numbers) -> None:
        """Carry out the steps of these numbers whose values are not there."""
        for place, number in enumerate(numbers):
            step = self.program.steps[number]
            if self.is_there(step) or self._is_looked_up(step):
                continue
            if self._is_looped(step, numbers[place:]):
                continue
            self._need_constants(step.reads)
            with self.placed(step):
                make = self._contract if isinstance(step, Contraction) else self._step
                self.values[step.name] = make(number, step)

    @contextmanager
    def placed(self, step):
        """Errors by a step's place in the source."""
        try:
            yield
        except TileError:
            raise
        except ZeroDivisionError:
            raise self.program.source.error(step.at, f"{step.base}: division by zero among constants") from None
        except MemoryError as error:
            message = f"{step.base}, of shape {self.shape(step.name)}, takes more memory than there is: {error}"
            raise self.program.source.error(step.at, message) from error
        except OverflowError as error:
            message = f"{step.base}, of shape {self.shape(step.name)}, has numbers beyond 64 bits: {error}"
            raise self.program.source.error(step.at, message) from error
        except (TypeError, ValueError) as error:
            message = str(error).removeprefix(f"{self.program.source.name}: ").removeprefix(f"{step.base}: ")
            raise self.program.source.error(step.at, f"{step.base}: {message}") from error

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor, whether or not its values were needed."""
        if self.tables is not None and name in self.tables.groups:
            name = self.tables.groups[name].root  # whose elements it follows place by place
        pending = [name]
        while pending:  # chains of steps may be long
            last = pending[-1]
            unknown = () if self._has_shape(last) else self.steps[last].shaped_by
            unknown = [part for part in unknown if not self._has_shape(part)]
            pending += unknown
            if not unknown:
                pending.pop()
                if not self._has_shape(last):
                    self.shapes[last] = self._shape_of(self.steps[last])
        return self.values[name].shape if name in self.values else self.shapes[name]

    def _has_shape(self, name: str) -> bool:
        return name in self.values or name in self.shapes

    def _shape_of(self, step) -> tuple[int, ...]:
        shapes = {part: self.shape(part) for part in step.shaped_by}
        if isinstance(step, Contraction):
            if isinstance(step.sizes, Like):
                return shapes[step.sizes.name]
            return tuple(size_value(size, self.sizes, shapes, self.program.source) for size in step.sizes)
        if step.function == "vector":
            return (len(step.arguments),)
        if step.function in ("reduce_like", "scatter"):
            return shapes[step.arguments[-1]]
        if step.function == "gather":
            table, places = (shapes[part] for part in step.arguments)
            return *places, *table[1:]
        try:
            return np.broadcast_shapes(*shapes.values())
        except ValueError:
            some = ", ".join(f"{part} of shape {shape}" for part, shape in shapes.items())
            raise self.program.source.error(step.at, f"{step.base}: {some} do not broadcast to one shape") from None

    def is_there(self, step) -> bool:
        """Whether the values of a step need not be computed now, or not at all."""
        return step.name in self.values or step.name in self.skipped or self._waits(step)

    # -- look-ups ------------------------------------------------------------------------------------------------------
    def _waits(self, step) -> bool:
        """Whether a step is one of constants alone, which may be read by nothing but look-ups."""
        return self.tables is not None and step.name in self.tables.constants

    def _need_constants(self, names) -> None:
        if any(self._waits(self.steps[name]) for name in names if name not in self.values):
            tables, self.tables = self.tables, None
            self.carry_out([n for n in self.program.needed if self.program.steps[n].name in tables.constants])
            self.tables = tables

    def _is_looked_up(self, step) -> bool:
        """Whether the values of a step, or what is wanted of its group, are there now by a table."""
        group = None if self.tables is None else self.tables.groups.get(step.name)
        if group is None or group.root in self.refused or group.root not in self.values:
            return False  # the root may lie inside a loop, and what this step reads then does not
        if group.root not in self.done:
            facts = self._facts(group)
            found = None if facts is None else self._looked_up(group, facts)
            if found is None:
                self.refused.add(group.root)
                return False
            self.values |= found
            self.done.add(group.root)
        return True

    def _facts(self, group) -> tuple | None:
        """All that the elements of a group depend on besides the codes of its root; None if there is no table."""
        root = self.values[group.root]
        if not isinstance(root, Tensor) or root.format.bits > MOST_BITS:
            return None
        if self.settings.is_stochastic(group.bases):
            return None
        return root.format, self.settings.key, tuple(sorted(self.sizes.items()))

    def _looked_up(self, group, facts) -> dict | None:
        root = self.values[group.root]

        def compute(codes):
            one = {group.root: Tensor(root.format, codes=codes.astype(root.format.storage_dtype))}
            run = Run(self.program, one, self.sizes, self.settings, None, self.threads, None)
            run.carry_out(group.numbers)
            found = {name: run.values[name] for name in group.outputs}
            return {name: x.codes if isinstance(x, Tensor) else x for name, x in found.items()}

        try:
            found = self.tables.of(group, facts).look_up(root.codes, compute)
        except TileError:  # one of these elements: the steps themselves say which
            return None
        steps, settings = self.steps, self.settings
        return {
            name: x if x.dtype == bool else Tensor(settings.format(steps[name].base), codes=x)
            for name, x in found.items()
        }

    # -- loops ---------------------------------------------------------------------------------------------------------
    def _is_looped(self, first, numbers) -> bool:
        """Whether the values of a step, and of as many as possible that follow it, are there now by a compiled loop."""
        if self.tables is None or first.name in self.refused or not is_elementwise(first):
            return False
        loop = self.tables.loops.get((first.name, self.situation), lambda: self._planned(first, numbers))
        if loop is None:
            return False
        for name in loop.reads:
            if name not in self.values and not self._is_looked_up(self.steps[name]):
                return False
        found = loop.run(self.values)
        if found is None:
            self.refused |= loop.members
            return False
        self.values |= found
        self.skipped |= loop.members
        return True

    def _planned(self, first, numbers) -> Loop | None:
        """A loop of a step and as many as possible that follow it, or None."""
        plan, members = Plan(self.values, self.settings, self.sizes), []
        shape = self._shape_in(plan, first, None)
        for number in numbers:
            step = self.program.steps[number]
            if self.is_there(step):
                continue
            if self._is_looked_up(step):
                continue
            if not is_elementwise(step) or self._shape_in(plan, step, shape) != shape or not plan.takes(step):
                break
            members.append(step.name)
        wanted = set(self.program.outputs)
        for number in self.program.needed:
            if self.program.steps[number].name not in members:
                wanted.update(self.program.steps[number].reads)
        outputs = tuple(name for name in members if name in wanted)
        return Loop(plan, members, outputs, shape) if members else None

    def _shape_in(self, plan, step, shape) -> tuple[int, ...]:
        """The shape of a step, where the plan's steps have a shape."""
        shapes = {shape if name in plan.formats else self.shape(name) for name in step.reads}
        return shapes.pop() if len(shapes) == 1 else self.shape(step.name)

    # -- contractions --------------------------------------------------------------------------------------------------
    def _contract(self, number: int, step: Contraction) -> Tensor:
        settings, base = self.settings, step.base
        tensors = {name: self.values[name] for name in step.values_read}
        space = Space.of(step, self.program.source, self.sizes, {name: self.shape(name) for name in step.reads})
        result = contract(
            space, tensors, unit_of=lambda: settings.unit(base),
            format_of=lambda fmt: settings.stated_format(base) or fmt or settings.format(base),
            options=settings.rounding(base), keys=lambda part: key_of(self.key, number, part), threads=self.threads,
        )  # fmt: skip
        return self._stated(result, number, base)

    def _stated(self, tensor: Tensor, number: int, base: str) -> Tensor:
        """A sum in the format that is stated for its tensor, if one is."""
        fmt = self.settings.stated_format(base)
        if fmt is None or fmt == tensor.format:
            return tensor
        key = key_of(self.key, number, (1 << 16) - 1)
        return Tensor.of(apply("copy", (tensor.array,), fmt, self.settings.rounding(base), key))

    # -- elementwise ---------------------------------------------------------------------------------------------------
    def _mask(self, guard):
        """Where a guard holds; None for everywhere."""
        mask = None
        for name, value in guard:
            condition = self.values[name] if value else ~self.values[name]
            mask = condition if mask is None else mask & condition
        return mask

    def _argument(self, argument):
        """An Array, a truth array, or an exact number."""
        if isinstance(argument, Constant):
            return exact_value(argument.expression, self.sizes)
        value = self.values[argument]
        return value.array if isinstance(value, Tensor) else value

    def _step(self, number: int, step):
        if step.function in ("gather", "reduce_like", "scatter"):
            return getattr(self, f"_{step.function}")(number, step)
        operands = [self._argument(a) for a in step.arguments]
        if step.function in _LOGIC:
            return _LOGIC[step.function](*operands)
        mask = self._mask(step.guard)
        if step.function in PREDICATES:
            return compare(step.function, *operands)
        if step.function == "select" and not any(isinstance(x, Array) for x in operands[1:]) and (
            isinstance(operands[1], np.ndarray)
        ):  # fmt: skip
            return np.where(*operands)
        fmt, options = self.settings.format(step.base), self.settings.rounding(step.base)
        if step.function == "vector":
            codes = [as_constant(x, fmt).codes for x in operands]
            return Tensor.of(Array(np.array(codes, fmt.storage_dtype), fmt))
        key = key_of(self.key, number)
        if step.function != "select":
            return Tensor.of(apply(step.function, operands, fmt, options, key, mask))
        condition, *sides = operands
        parts = []
        for part, side, chosen in zip((0, 1), sides, (condition, ~condition), strict=True):
            where = chosen if mask is None else mask & chosen
            exact = not isinstance(side, Array) or side.format == fmt
            key = None if exact else key_of(self.key, number, part)
            parts.append(apply("copy", (side,), fmt, {} if exact else options, key, None if exact else where))
        return Tensor.of(Array(np.where(condition, *(p.codes for p in parts)), fmt))

    # -- whole tensors -------------------------------------------------------------------------------------------------
    def _places(self, tensor: Tensor, length: int, step) -> np.ndarray:
        """The values of a tensor as places in an axis of a length."""
        values = np.asarray(tensor.values if not isinstance(tensor.values, Array) else np.asarray(tensor.values))
        whole = np.floor(values) == values
        with np.errstate(invalid="ignore"):
            bad = ~(whole & (values >= 0) & (values < length))
        if bad.any():
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            raise self.no_place(step, where, values[where], length)
        return values.astype(np.int64)

    def no_place(self, step, where, value, length: int) -> TileError:
        """The error that a value is none."""
        return self.program.source.error(
            step.at, f"{step.arguments[1]}{list(where)} = {float(value):g} is no place in a table of {length}: places "
            f"are whole, from 0 to {length - 1} (floor, min and max make them)",
        )  # fmt: skip

    def length_of(self, step, name: str) -> int:
        """The number of a table's places."""
        if not self.shape(name):
            raise self.program.source.error(step.at, f"{name} is a single number, not a table")
        return self.shape(name)[0]

    def _gather(self, number: int, step) -> Tensor:
        table, places = (self.values[a] for a in step.arguments)
        self.length_of(step, step.arguments[0])
        found = table.array[self._places(places, table.shape[0], step)]
        options = self.settings.rounding(step.base)
        return Tensor.of(apply("copy", (found,), self.settings.format(step.base), options, key_of(self.key, number)))

    def _scatter(self, number: int, step) -> Tensor:
        """For each place of a table, the sum of the elements that go there, in their order, then zeros to the most."""
        elements, places = (self.values[a] for a in step.arguments[:2])
        table = self.scattered_shape(step)
        unit = self.settings.unit(step.base)
        flat = self._places(places, table[0], step).reshape(-1)
        order = np.argsort(flat, kind="stable")
        counts = np.bincount(flat, minlength=table[0])
        most = int(counts.max()) if flat.size else 0
        data, zero = elements.data
        rest = table[1:]
        terms = np.full((table[0], most, *rest), zero, data.dtype)
        within = np.arange(flat.size) - np.repeat(np.cumsum(counts) - counts, counts)
        terms[flat[order], within] = data.reshape(flat.size, *rest)[order]
        key = key_of(self.key, number) if unit.stochastic else None
        result = sum_by(elements.with_data(terms).values, unit, 1, key=key, threads=self.threads)
        return self._stated(Tensor.of(result, unit.result), number, step.base)

    def scattered_shape(self, step) -> tuple[int, ...]:
        """The shape of a scatter's table, which that of the elements has to fit."""
        e, i, t = step.arguments
        elements, places, table = (self.shape(name) for name in step.arguments)
        self.length_of(step, t)
        if elements != (*places, *table[1:]):
            raise self.program.source.error(
                step.at, f"{e} has shape {elements}, and for the places {i} of shape {places} in {t} of shape {table} "
                f"it must have {(*places, *table[1:])}",
            )  # fmt: skip
        return table

    def reduced_axes(self, step) -> tuple[int, ...]:
        """The axes along which one tensor of a reduce_like was broadcast to the other's shape."""
        shape, like = (self.shape(name) for name in step.arguments)
        ahead = len(shape) - len(like)
        if ahead < 0 or any(n not in (1, m) for n, m in zip(like, shape[ahead:], strict=True)):
            message = f"{step.arguments[1]} of shape {like} does not broadcast to {shape}"
            raise self.program.source.error(step.at, message)
        return tuple(a for a, m in enumerate(shape) if a < ahead or like[a - ahead] != m)

    def _reduce_like(self, number: int, step) -> Tensor:
        """The sum over the axes along which the other tensor was broadcast to this one's shape."""
        tensor, like = self.values[step.arguments[0]], self.shape(step.arguments[1])
        options = self.settings.rounding(step.base)
        if tensor.shape == like:
            fmt = self.settings.format(step.base)
            return Tensor.of(apply("copy", (tensor.array,), fmt, options, key_of(self.key, number)))
        axes = self.reduced_axes(step)
        unit = self.settings.unit(step.base)
        key = key_of(self.key, number) if unit.stochastic else None
        result = sum_by(tensor.values, unit, axes, key=key, threads=self.threads)
        result = Tensor.of(result, unit.result)
        return self._stated(result.with_data(result.data[0].reshape(like)), number, step.base)

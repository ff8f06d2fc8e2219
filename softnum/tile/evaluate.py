"""The steps of a program, carried out in order."""

from __future__ import annotations

import numpy as np

from softnum.array import Array
from softnum.sums import sum as sum_by
from softnum.tile.affine import exact_value, size_value
from softnum.tile.arithmetic import Tensor, apply, as_constant, compare, key_of
from softnum.tile.contract import contract
from softnum.tile.program import PREDICATES, Constant, Contraction
from softnum.tile.space import Space
from softnum.tile.syntax import Like, TileError

__all__ = ["evaluate", "shapes_of"]

_LOGIC = {"and": np.logical_and, "or": np.logical_or, "not": np.logical_not}


def evaluate(program, inputs: dict, sizes: dict[str, int], settings, key, threads) -> list[Tensor]:
    """The outputs, of inputs by name; steps that they do not need are left out."""
    return _Run(program, inputs, sizes, settings, key, threads).outputs()


def shapes_of(program, inputs: dict, sizes: dict[str, int]) -> dict[str, tuple[int, ...]]:
    """The outputs' shapes by name, of which nothing is computed."""
    run = _Run(program, inputs, sizes, None, None, None)
    return {name: run.shape(name) for name in program.outputs}


class _Run:
    def __init__(self, program, inputs, sizes, settings, key, threads) -> None:
        self.program, self.sizes, self.settings = program, sizes, settings
        self.key, self.threads = key, threads
        self.values: dict = dict(inputs)
        self.shapes: dict[str, tuple[int, ...]] = {}  # of tensors whose values are not there
        self.steps = {step.name: step for step in program.steps}

    def outputs(self) -> list[Tensor]:
        for number in self.program.needed:
            step = self.program.steps[number]
            try:
                make = self._contract if isinstance(step, Contraction) else self._step
                self.values[step.name] = make(number, step)
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
        return [self.values[name] for name in self.program.outputs]

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor, whether or not its values were needed."""
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

    # -- contractions --------------------------------------------------------------------------------------------------
    def _contract(self, number: int, step: Contraction) -> Tensor:
        settings, base = self.settings, step.base
        tensors = {name: self.values[name] for name in step.values_read}
        space = Space(step, self.program.source, self.sizes, {name: self.shape(name) for name in step.reads})
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
            raise self.program.source.error(
                step.at, f"{step.arguments[1]}{list(where)} = {float(values[where]):g} is no place in a table of "
                f"{length}: places are whole, from 0 to {length - 1} (floor, min and max make them)",
            )  # fmt: skip
        return values.astype(np.int64)

    def _gather(self, number: int, step) -> Tensor:
        table, places = (self.values[a] for a in step.arguments)
        if not table.shape:
            raise self.program.source.error(step.at, f"{step.arguments[0]} is a single number, no table")
        found = table.array[self._places(places, table.shape[0], step)]
        options = self.settings.rounding(step.base)
        return Tensor.of(apply("copy", (found,), self.settings.format(step.base), options, key_of(self.key, number)))

    def _scatter(self, number: int, step) -> Tensor:
        """For each place of a table, the sum of the elements that go there, in their order, then zeros to the most."""
        elements, places = (self.values[a] for a in step.arguments[:2])
        table = self.shape(step.arguments[2])
        if not table:
            raise self.program.source.error(step.at, f"{step.arguments[2]} is a single number, no table")
        if elements.shape != (*places.shape, *table[1:]):
            e, i, t = step.arguments
            raise self.program.source.error(
                step.at, f"{e} has shape {elements.shape}, and for the places {i} of shape {places.shape} in {t} of "
                f"shape {table} it must have {(*places.shape, *table[1:])}",
            )  # fmt: skip
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

    def _reduce_like(self, number: int, step) -> Tensor:
        """The sum over the axes along which the other tensor was broadcast to this one's shape."""
        tensor, like = self.values[step.arguments[0]], self.shape(step.arguments[1])
        options = self.settings.rounding(step.base)
        if tensor.shape == like:
            fmt = self.settings.format(step.base)
            return Tensor.of(apply("copy", (tensor.array,), fmt, options, key_of(self.key, number)))
        ahead = len(tensor.shape) - len(like)
        if ahead < 0 or any(n not in (1, m) for n, m in zip(like, tensor.shape[ahead:], strict=True)):
            message = f"{step.arguments[1]} of shape {like} does not broadcast to {tensor.shape}"
            raise self.program.source.error(step.at, message)
        axes = tuple(a for a, m in enumerate(tensor.shape) if a < ahead or like[a - ahead] != m)
        unit = self.settings.unit(step.base)
        key = key_of(self.key, number) if unit.stochastic else None
        result = sum_by(tensor.values, unit, axes, key=key, threads=self.threads)
        result = Tensor.of(result, unit.result)
        return self._stated(result.with_data(result.data[0].reshape(like)), number, step.base)

"""The space of a contraction: its axes, the place of every element that a term takes, and where there is none.

The space has an axis for each dimension of the output and one for each index variable that the output's place leaves
free; the free ones are summed over as nested loops, the first outermost.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property, lru_cache
from math import lcm, prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from softnum.tile.affine import Form, affine, ranges_of, size_value, solve
from softnum.tile.arithmetic import Tensor
from softnum.tile.syntax import Access, Like, walk

__all__ = ["Space", "both"]

LARGEST = 1 << 62  # of whole numbers on the way to an index: int64 holds them
MARGIN = 1 << 14  # zeros that may stand around a tensor, whatever its size


def both(a, b):
    """Where both masks hold; None holds everywhere."""
    if a is None or b is None:
        return a if b is None else b
    return a & b


class Space:
    """The axes of a contraction for given sizes, and every index as whole numbers over them.

    Attributes
    ----------
    shape : tuple
        The output's.
    free : list of (variable, lowest, length)
        The axes that are summed over, in order.
    solved : dict
        The other variables, as forms of the places in the output (numbers) and of the free variables.
    conditions, constraints : lists
        Forms that are to be 0; (form, bound) of the step's own.
    """

    def __init__(self, step, source, sizes: dict[str, int], shapes: dict[str, tuple]) -> None:
        self.step, self.source = step, source
        number = lambda e: size_value(e, sizes, shapes, source)  # noqa: E731
        if isinstance(step.sizes, Like):
            self.shape = shapes[step.sizes.name]
        else:
            self.shape = tuple(number(e) for e in step.sizes)
        for i, size in enumerate(self.shape):
            if size < 0:
                raise source.error(step.at, f"{step.base} would have a size of {size} in dimension {i}")
        if len(self.shape) != len(step.indices):
            message = f"{step.base} has {len(step.indices)} indices, and the sizes are {self.shape}"
            raise source.error(step.at, message)
        self.number, self.sizes = number, sizes
        form = lambda e: affine(e, step.variables, number)  # noqa: E731
        outputs = [form(e) for e in step.indices]
        self.forms = {}
        limits = list(zip(outputs, self.shape, strict=True))
        for access in (p for p in walk(step.body) if isinstance(p, Access)):
            shape = shapes[access.name]
            if len(shape) != len(access.indices):
                message = f"{access.name} has shape {shape}, got {len(access.indices)} indices"
                raise source.error(access.at, message)
            self.forms[access] = [form(e) for e in access.indices]
            limits += zip(self.forms[access], shape, strict=True)
        constraints = [(form(e), number(bound)) for e, bound in step.constraints]
        limits += constraints
        ranges = ranges_of(step.variables, limits)
        self.empty = any(r is not None and r[0] > r[1] for r in ranges.values())
        for variable, limit in ranges.items():
            if limit is None and not self.empty:
                raise source.error(
                    step.at, f"nothing bounds the index variable {variable!r}: use it in an index of its own, or give "
                    f"a constraint, as in ', {variable} < 3'",
                )  # fmt: skip
        self.solved, conditions = solve(step.variables, outputs)
        self.conditions, self.constraints = conditions, constraints
        free = [v for v in step.variables if v not in self.solved]
        self.free = [(v, 0, 0) if self.empty else (v, ranges[v][0], ranges[v][1] - ranges[v][0] + 1) for v in free]
        self.ndim = len(self.shape) + len(self.free)
        self.lengths = (*self.shape, *(length for _, _, length in self.free))
        inside = [f for forms in self.forms.values() for f in forms] + [f for f, _ in constraints]
        inside = [form.substituted(self.solved) for form in inside]
        self._check_numbers([*inside, *conditions, *self.solved.values()])
        self.axes = {i: (i, np.arange(n)) for i, n in enumerate(self.shape)}
        self.axes |= {
            v: (len(self.shape) + i, np.arange(low, low + n)) for i, (v, low, n) in enumerate(self.free)
        }  # fmt: skip
        self.first = [0] * len(self.shape)  # the place in the whole of the first element, in a part
        self.memo: dict = {}  # what others make of it once, for all copies

    @classmethod
    def of(cls, step, source, sizes: dict[str, int], shapes: dict[str, tuple]) -> Space:
        """The space; made anew for other sizes alone, as its fractions take longer than a small contraction."""
        return copy(_made(cls, step, source, tuple(sizes.items()), tuple(shapes.items())))  # masks are not kept

    def _check_numbers(self, forms) -> None:
        """TileError unless the axes, and every number on the way to an index, are within `LARGEST`."""
        most = dict(enumerate(self.shape)) | {v: max(abs(low), abs(low + n)) for v, low, n in self.free}
        for name, number in most.items():
            if number >= LARGEST:
                what = f"dimension {name}" if isinstance(name, int) else f"the index variable {name!r}"
                message = f"{what} of {self.step.base} goes to {number}; sizes and indices must be less than 2**62"
                raise self.source.error(self.step.at, message)
        for form in forms:
            scale = lcm(form.constant.denominator, *(v.denominator for v in form.coefficients.values()))
            numbers = [form.constant, *(v * max(1, most[name]) for name, v in form.coefficients.items())]
            if scale * sum(map(abs, numbers)) >= LARGEST:
                largest = int(max(abs(n) for n in (form.constant, *form.coefficients.values())))
                raise self.source.error(
                    self.step.at, f"the index arithmetic of {self.step.base} takes numbers of 2**62 and more (with the "
                    f"number {largest}); the numbers in indices and constraints times the sizes must be less",
                )  # fmt: skip

    @cached_property
    def residual(self) -> np.ndarray | None:
        """Where the terms exist as far as no access tells."""
        mask = None
        for form in self.conditions:
            value, whole = form.on(self.axes, self.ndim)
            mask = both(mask, both(value == 0, whole))
        for form, bound in self.constraints:
            value, whole = self.place(form)
            mask = both(mask, both((value >= 0) & (value < bound), whole))
        told = {name for forms in self.forms.values() for form in forms for name in form.coefficients}
        for variable, form in self.solved.items():
            if variable not in told:
                mask = both(mask, form.on(self.axes, self.ndim)[1])
        return None if mask is None or mask.all() else mask

    def place(self, form: Form):
        """(whole values over the axes, where all its variables are whole or None)"""
        total, mask = form.substituted(self.solved).on(self.axes, self.ndim)
        for variable in form.coefficients:
            if variable in self.solved:
                mask = both(mask, self.solved[variable].on(self.axes, self.ndim)[1])
        return total, mask

    def composed(self, access: Access) -> list[Form]:
        """The access's indices as forms of the places in the output and of the free variables."""
        return [form.substituted(self.solved) for form in self.forms[access]]

    def gather(self, access: Access, tensor: Tensor, fill: bool = True) -> tuple[Tensor, np.ndarray | None]:
        """(the elements that an access meets, where they exist or None for everywhere): arrays over the axes.

        The length of an axis that the access does not depend on is 1; elements that do not exist are zeros, or without
        fill any.
        """
        view = self._view(access, tensor, fill=False)
        if view is not None:
            return view, None
        data, _ = tensor.data
        forms = self.forms[access]
        flat, mask = np.zeros((1,) * self.ndim, np.int64), None
        for form, size in zip(forms, data.shape, strict=True):
            value, whole = self.place(form)
            inside = (value >= 0) & (value < size)
            mask = both(mask, whole if inside.all() else both(inside, whole))
            flat = flat * size + value
        if mask is not None and mask.all():
            mask = None
        if mask is None:
            return tensor.with_data(data.reshape(-1)[flat] if data.size else np.zeros(flat.shape, data.dtype)), None
        flat = np.where(mask, flat, 0)
        found = data.reshape(-1)[flat] if data.size else np.zeros(flat.shape, data.dtype)
        found = tensor.with_data(found)
        return self.kept(found, mask, access.at) if fill else found, mask

    def filled(self, access: Access, tensor: Tensor) -> Tensor:
        """The elements alone, as `gather` gives them."""
        view = self._view(access, tensor, fill=True)
        return self.gather(access, tensor)[0] if view is None else view

    def _view(self, access: Access, tensor: Tensor, fill: bool) -> Tensor | None:
        """The elements without a copy, by strides through the tensor; fill: through one with zeros around it.

        None where strides do not do: indices that are not whole everywhere, more zeros than elements, elements missing
        without fill.
        """
        (data, zero), forms = tensor.data, self.composed(access)
        solved = [self.solved[name] for form in self.forms[access] for name in form.coefficients if name in self.solved]
        numbers = [n for form in (*forms, *solved) for n in (form.constant, *form.coefficients.values())]
        if not data.size or 0 in self.lengths or any(n.denominator != 1 for n in numbers):
            return None
        starts, before, after = [], [], []
        for form, size in zip(forms, data.shape, strict=True):
            ends = [(int(f * self.axes[n][1][0]), int(f * self.axes[n][1][-1])) for n, f in form.coefficients.items()]
            low, high = (int(form.constant) + sum(map(end, ends)) for end in (min, max))
            before.append(max(0, -low))
            after.append(max(0, high - size + 1))
            starts.append(int(form.constant) + sum(first for first, _ in ends) + before[-1])
        if any(before) or any(after):
            shape = [b + n + a for b, n, a in zip(before, data.shape, after, strict=True)]
            if not fill or zero is None or prod(shape) > 2 * data.size + MARGIN:
                return None
            inner, data = data, np.full(shape, zero, data.dtype)
            data[tuple(slice(b, b + n) for b, n in zip(before, inner.shape, strict=True))] = inner
        strides = [0] * self.ndim
        for form, stride in zip(forms, data.strides, strict=True):
            for name, factor in form.coefficients.items():
                strides[self.axes[name][0]] += int(factor) * stride
        depends = self.axes_of(access)
        shape = [n if a in depends else 1 for a, n in enumerate(self.lengths)]
        first = data[tuple(slice(start, None) for start in starts)]
        return tensor.with_data(as_strided(first, shape, strides, writeable=False))

    def kept(self, tensor: Tensor, mask, at) -> Tensor:
        """The tensor, with zeros where the mask does not hold."""
        if mask is None:
            return tensor
        data, zero = tensor.data
        if zero is None:
            raise self.no_zero(tensor.format, at)
        return tensor.with_data(np.where(mask, data, zero))

    def no_zero(self, fmt, at):
        """The error that a format has none for what does not exist."""
        return self.source.error(
            at, f"where an index lies outside its tensor or a constraint is not met stands a zero, and {fmt} has none"
        )

    # -- parts ---------------------------------------------------------------------------------------------------------
    def axes_of(self, expression) -> set[int]:
        """The axes on which the elements that an expression takes depend."""
        accesses = [p for p in walk(expression) if isinstance(p, Access)]
        names = {name for access in accesses for form in self.composed(access) for name in form.coefficients}
        return {self.axes[name][0] for name in names}

    def is_straight(self, expression) -> bool:
        """Whether an expression is an access that takes each element of its tensor once."""
        if not isinstance(expression, Access):
            return False
        one = [next(iter(f.coefficients)) for f in self.composed(expression) if len(f.coefficients) == 1]
        return len(set(one)) == len(self.forms[expression])

    def part(self, axis: int, first: int, last: int) -> Space:
        """The space of the output's places first..last along an axis."""
        new = object.__new__(Space)
        new.__dict__.update(self.__dict__)
        cut = lambda lengths: (*lengths[:axis], last - first, *lengths[axis + 1 :])  # noqa: E731
        new.shape, new.lengths = cut(self.shape), cut(self.lengths)
        new.axes = self.axes | {axis: (axis, self.axes[axis][1][first:last])}
        if self.residual is not None and self.residual.shape[axis] > 1:
            new.residual = self.residual[(slice(None),) * axis + (slice(first, last),)]
        new.first = [*self.first[:axis], self.first[axis] + first, *self.first[axis + 1 :]]
        return new

    def place_in_words(self, mask) -> str:
        """The first element of the output where a mask holds, as ``Y[0, 3]``."""
        return self.named([int(i) + f for i, f in zip(np.argwhere(mask)[0], self.first, strict=True)])

    def named(self, index) -> str:
        """An element of the output."""
        return f"{self.step.base}[{', '.join(map(str, index))}]"


@lru_cache(maxsize=64)
def _made(kind, step, source, sizes, shapes) -> Space:
    return kind(step, source, dict(sizes), dict(shapes))

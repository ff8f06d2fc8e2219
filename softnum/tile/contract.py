"""Contractions: which elements meet, in which order, and the unit that adds them up.

Terms that do not exist for an output (an index outside its tensor, a constraint not met) are zeros that the unit
multiplies and adds, as the padding of a convolution is; maxima, minima and products leave them out. Products of two
factors are laid out as the two matrices of `softnum.matmul`; what takes more memory than `TERMS` goes part by part, of
the output, which changes no bit. This is the definition, also of convolutions and of `softnum.tile.loops`.
"""

from __future__ import annotations

from contextlib import contextmanager
from fractions import Fraction
from math import prod

import numpy as np

from softnum.arrays.container import Array
from softnum.arrays.conversion import encode
from softnum.mac.family import family_of
from softnum.mac.products.matrices import matmul
from softnum.mac.products.operands import checked_operand
from softnum.mac.products.sums import sum as sum_by
from softnum.tile import convolutions
from softnum.tile.affine import exact_value
from softnum.tile.arithmetic import Tensor, apply, as_constant, compare, lifted
from softnum.tile.functions import FUNCTIONS, OPERATORS
from softnum.tile.loops import by_loops
from softnum.tile.program import COMPARISONS
from softnum.tile.space import Space, both
from softnum.tile.syntax import Access, Binary, Call, Choose, Name, Number, Unary, walk

__all__ = ["TERMS", "check_extreme", "contract", "is_product", "of_nothing", "sides", "too_many"]

TERMS = 1 << 22  # the most elements that are laid out at a time, but for one place of an axis


class _Body:
    """The evaluation of a contraction's body: each access gathered once, operations in the format asked for.

    What does not exist is zero in sums, which take it in; elsewhere it is of no meaning, and no format needs a zero.
    """

    def __init__(self, space: Space, tensors: dict[str, Tensor], options: dict, keys) -> None:
        self.space, self.tensors, self.options, self.keys = space, tensors, options, keys
        self.part, self.gathered, self.fill = 0, {}, space.step.aggregation == "+"

    def gather(self, access: Access) -> tuple[Tensor, np.ndarray | None]:
        """`Space.gather`, once for each access."""
        if access not in self.gathered:
            self.gathered[access] = self.space.gather(access, self.tensors[access.name], self.fill)
        return self.gathered[access]

    def operand(self, expression, fmt) -> Tensor:
        """Values of a part of a sum's body, zeros where they do not exist."""
        if isinstance(expression, Access):
            return self.space.filled(expression, self.tensors[expression.name].as_carriers())
        return self.factor(expression, fmt)[0]

    def factor(self, expression, fmt, mask=None) -> tuple[Tensor, np.ndarray | None]:
        """(values, where they exist) of a part of the body; operations round to fmt where the mask holds."""
        if isinstance(expression, Access):
            return self.gather(expression)
        exists = None
        for access in (p for p in walk(expression) if isinstance(p, Access)):
            exists = both(exists, self.gather(access)[1])
        value = self.value(expression, fmt, both(mask, exists))
        if isinstance(value, Fraction):
            value = apply("copy", (value,), fmt, {})
            value = Array._of(value.codes.reshape((1,) * self.space.ndim), fmt)
        value = Tensor.of(value)
        return self.space.kept(value, exists, expression.at) if self.fill else value, exists

    def value(self, expression, fmt, mask):
        """An Array over the axes, or an exact number."""
        match expression:
            case Access():
                return self.gather(expression)[0].array
            case Number() | Name():
                return exact_value(expression, self.space.sizes)
            case Choose():
                condition = self.condition(expression.condition, fmt, mask)
                yes, no = (
                    self.as_array(part, fmt, both(mask, chosen))
                    for part, chosen in ((expression.yes, condition), (expression.no, ~condition))
                )
                return Array._of(np.where(condition, yes.codes, no.codes), fmt)
            case Unary():
                function, parts = OPERATORS["negate"], (expression.operand,)
                if expression.operator == "+":
                    return self.value(expression.operand, fmt, mask)
            case Binary():
                function, parts = OPERATORS[expression.operator], (expression.left, expression.right)
            case Call():
                function, parts = FUNCTIONS[expression.function], expression.arguments
        operands = [self.value(part, fmt, mask) for part in parts]
        if all(isinstance(x, Fraction) for x in operands) and isinstance(expression, (Unary, Binary)):
            return exact_value(expression, self.space.sizes)
        return self._apply(function.operation, operands, fmt, mask)

    def as_array(self, expression, fmt, mask) -> Array:
        """The value in exactly this format."""
        return self._apply("copy", [self.value(expression, fmt, mask)], fmt, mask)

    def _apply(self, operation, operands, fmt, mask) -> Array:
        self.part += 1
        return apply(operation, operands, fmt, self.options, self.keys(self.part), mask)

    def condition(self, expression, fmt, mask) -> np.ndarray:
        """Where an expression holds."""
        match expression:
            case Unary():
                return ~self.condition(expression.operand, fmt, mask)
            case Choose():
                parts = expression.condition, expression.yes, expression.no
                return np.where(*(self.condition(part, fmt, mask) for part in parts))
            case Binary(operator="&&"):
                return self.condition(expression.left, fmt, mask) & self.condition(expression.right, fmt, mask)
            case Binary(operator="||"):
                return self.condition(expression.left, fmt, mask) | self.condition(expression.right, fmt, mask)
        sides = [self.value(part, fmt, mask) for part in (expression.left, expression.right)]
        return compare(COMPARISONS[expression.operator], *sides)


# -- the aggregations --------------------------------------------------------------------------------------------------
def contract(space: Space, tensors, *, unit_of, format_of, options, keys, threads) -> Tensor:
    """The tensor that a contraction makes, in the format of its sum, or of its terms where nothing is added.

    unit_of(): the unit of its sums; format_of(fmt): the format of the tensor, where none is stated fmt unless that is
    None. options: of roundings outside the unit. keys(part): the key of its rounding of that number, 0 for the unit's.
    """
    step = space.step
    unit = unit_of() if step.aggregation == "+" else None

    def run(part: Space) -> Tensor:
        body = _Body(part, tensors, options, keys)
        return _others(part, body, format_of) if unit is None else _sums(part, body, unit, keys, threads)

    if unit is not None and is_product(step.body) and not space.empty:
        operands = step.body.left, step.body.right
        if all(isinstance(x, Access) for x in operands):
            factors = [tensors[x.name] for x in operands]
            found = convolutions.recognised(space, *operands, *(t.shape for t in factors))
            if found is not None:
                with _checked(step, operands, factors, unit):
                    key = keys(0) if unit.stochastic else None
                    return Tensor.of(
                        convolutions.run(found, *(t.values for t in factors), unit, key, threads), unit.result
                    )
    found = by_loops(space, tensors, unit, format_of, options)
    if found is not None:
        return found
    # random words are numbered in the whole
    random = options.get("rounding", "").startswith("stochastic") or (unit is not None and unit.stochastic)
    axis, most = (None, 0) if random else _split(space)
    if axis is None:
        return run(space)
    length = space.shape[axis]
    parts = [run(space.part(axis, first, min(first + most, length))) for first in range(0, length, most)]
    return parts[0].with_data(np.concatenate([part.data[0] for part in parts], axis=axis))


def is_product(expression) -> bool:
    """Whether a sum of it goes as a product of matrices."""
    return isinstance(expression, Binary) and expression.operator == "*"


def _split(space: Space) -> tuple[int | None, int]:
    """(axis of the output, how many of its places go at a time) where the terms are too many; else (None, 0)."""
    free = set(range(len(space.shape), space.ndim))
    body = space.step.body
    if space.step.aggregation == "+" and is_product(body):
        laid_out = [space.axes_of(x) | free for x in (body.left, body.right) if not space.is_straight(x)]
    else:
        laid_out = [] if space.is_straight(body) and not free else [set(range(space.ndim))]
    worst = max(laid_out, key=lambda axes: prod(space.lengths[a] for a in axes), default=set())
    axes = sorted(worst - free, key=lambda a: -space.lengths[a])
    total = prod(space.lengths[a] for a in worst)
    if total <= TERMS or not axes or space.lengths[axes[0]] < 2:
        return None, 0
    return axes[0], max(1, TERMS * space.lengths[axes[0]] // total)


@contextmanager
def _checked(step, operands, tensors, unit):
    """Errors about operands by the tensors' own names and places."""
    try:
        yield
    except ValueError:
        for x, tensor, fmt in zip(operands, tensors, unit.operand, strict=True):
            if tensor is not None:
                checked_operand(tensor.values, fmt, x.name, step.base)
        raise


def _others(space: Space, body: _Body, format_of) -> Tensor:
    """Extremes, products and assignments."""
    step, tensors = space.step, body.tensors
    own = tensors[step.body.name].format if isinstance(step.body, Access) else None
    fmt = format_of(own)
    check_extreme(space, own, fmt)
    value, exists = body.factor(step.body, fmt)
    shape = space.lengths
    exists = both(exists, space.residual)
    if space.empty:
        exists = np.zeros(shape, bool)
    terms = Array._of(np.broadcast_to(value.codes, shape), value.format)
    red = tuple(range(len(space.shape), space.ndim))
    count = prod(shape[a] for a in red)
    mask = np.ones((), bool) if exists is None else exists
    mask = lifted(mask, shape).reshape(*space.shape, count)
    terms = terms.reshape(*space.shape, count)
    return Tensor.of({"=": _assigned, "*": _product}.get(step.aggregation, _extreme)(space, terms, mask, fmt, body))


def _sums(space: Space, body: _Body, unit, keys, threads) -> Tensor:
    if family_of(unit).whole is not None:
        raise TypeError(
            f"{type(unit).__name__}: its results depend on their places in a matrix product, and sums of operators are "
            "computed in parts; multiply matrices by softnum.matmul"
        )
    root = space.step.body
    key = keys(0) if unit.stochastic else None
    if is_product(root):
        operands = root.left, root.right
        tensors = [body.tensors[x.name] if isinstance(x, Access) else None for x in operands]
        with _checked(space.step, operands, tensors, unit):
            left, right = (body.operand(x, fmt) for x, fmt in zip(operands, unit.operand, strict=True))
            return _products(space, space.kept(left, space.residual, root.at), right, unit, key, threads)
    terms = space.kept(body.operand(root, unit.result), space.residual, root.at)
    # an axis of length 1 at the end, so that there is one to sum over
    terms = terms.with_data(np.broadcast_to(terms.data[0], space.lengths)[..., None])
    red = tuple(range(len(space.shape), space.ndim + 1))
    result = sum_by(terms.values, unit, red, key=key, threads=threads)
    return Tensor.of(result, unit.result)


def sides(ndim: int, left: set, right: set) -> tuple[list[int], list[int], list[int]]:
    """The output's axes as batches, rows and columns of a matrix product of factors that depend on these axes.

    Rows are the axes that the second factor lacks, columns those that the first lacks.
    """
    rows = [a for a in range(ndim) if a not in right]
    columns = [a for a in range(ndim) if a not in left and a in right]
    return [a for a in range(ndim) if a in left and a in right], rows, columns


def _products(space: Space, left: Tensor, right: Tensor, unit, key, threads) -> Tensor:
    ndim = len(space.shape)
    batch, rows, columns = sides(ndim, *({a for a in range(ndim) if t.shape[a] != 1} for t in (left, right)))
    free = list(range(ndim, space.ndim))
    k = prod(space.lengths[a] for a in free)
    sizes = {name: prod(space.lengths[a] for a in axes) for name, axes in (("b", batch), ("m", rows), ("n", columns))}

    def laid_out(tensor, outer, inner, shape):
        data = tensor.data[0]
        order = [*outer, *inner]
        rest = [a for a in range(space.ndim) if a not in order]
        data = data.transpose(*order, *rest).reshape([data.shape[a] for a in order])
        full = np.broadcast_to(data, [space.lengths[a] for a in order])
        return tensor.with_data(np.ascontiguousarray(full).reshape(shape)).values

    a = laid_out(left, [*batch, *rows], free, (sizes["b"], sizes["m"], k))
    b = laid_out(right, [*batch, *free], columns, (sizes["b"], k, sizes["n"]))
    if not batch:
        a, b = a[0], b[0]
    result = matmul(a, b, unit, key=key, threads=threads)
    axes = [*batch, *rows, *columns]
    shape = [space.lengths[x] for x in axes]
    return Tensor.of(result.reshape(shape).transpose(np.argsort(axes)), unit.result)


def _extreme(space: Space, terms: Array, mask, fmt, body: _Body) -> Array:
    _check_some(space, mask)
    if not terms.size:
        return Array._of(np.empty(terms.shape[:-1], fmt.storage_dtype), fmt)
    largest = space.step.aggregation == ">"
    if not mask.all():
        own = terms.format
        end = float("-inf" if largest else "inf") if own.infinities else (own.min if largest else own.max)
        terms = Array._of(np.where(mask, terms.codes, encode(np.array(end, object), own)), own)
    return apply("copy", ((np.max if largest else np.min)(terms, axis=-1),), fmt, body.options, body.keys(0))


def _check_some(space: Space, mask) -> None:
    if not mask.any(axis=-1).all():
        raise of_nothing(space, space.place_in_words(~mask.any(axis=-1)))


def of_nothing(space: Space, place: str):
    """The error that an extreme has no term."""
    return space.source.error(
        space.step.at, f"{place} would be the extreme of nothing: no valuation of the index variables gives it a term"
    )


def check_extreme(space: Space, own, fmt) -> None:
    """TileError unless an extreme has the format of its terms; own: theirs, None if it is the extreme's."""
    if space.step.aggregation in "<>" and own not in (None, fmt):
        raise space.source.error(
            space.step.at, f"an extreme is one of its terms, which are of {own}, and {space.step.base} has the format "
            f"{fmt}; leave that out, and assign the extreme to a tensor of that format",
        )  # fmt: skip


def too_many(space: Space, place: str, count: int):
    """The error that an element has several terms."""
    return space.source.error(
        space.step.at, f"{place} would be assigned {count} times; = takes one term for each element (+ adds them, > "
        "takes the largest)",
    )  # fmt: skip


def _product(space: Space, terms: Array, mask, fmt, body: _Body) -> Array:
    """((1 * t0) * t1) * ..., rounded after each; terms that do not exist are left out."""
    product = Array._of(np.broadcast_to(as_constant(Fraction(1), fmt).codes, space.shape), fmt)
    for k in range(mask.shape[-1]):
        here = mask[..., k]
        new = apply("multiply", (product, terms[..., k]), fmt, body.options, body.keys(body.part + 1 + k), here)
        product = Array._of(np.where(here, new.codes, product.codes), fmt)
    return product


def _assigned(space: Space, terms: Array, mask, fmt, body: _Body) -> Array:
    """The only term, or +0 where there is none."""
    counts = mask.sum(axis=-1)
    if (counts > 1).any():
        raise too_many(space, space.place_in_words(counts > 1), counts[counts > 1][0])
    if not mask.shape[-1]:
        return Array._of(np.broadcast_to(as_constant(Fraction(0), fmt).codes, space.shape), fmt)
    chosen = np.take_along_axis(terms.codes, np.argmax(mask, axis=-1)[..., None], -1)[..., 0]
    found = apply("copy", (Array._of(chosen, terms.format),), fmt, body.options, body.keys(0), counts > 0)
    if (counts > 0).all():
        return found
    return Array._of(np.where(counts > 0, found.codes, as_constant(Fraction(0), fmt).codes), fmt)

"""Contractions: which elements meet, in which order, and the unit that adds them up.

The space of a contraction has an axis for each dimension of the output and one for each index variable that the
output's place leaves free; the free ones are summed over as nested loops, the first outermost. Terms that do not exist
for an output (an index outside its tensor, a constraint not met) are zeros that the unit multiplies and adds, as the
padding of a convolution is; maxima, minima and products leave them out.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod

import numpy as np

from softnum.array import Array
from softnum.matmul import matmul
from softnum.operands import checked_operand
from softnum.sums import sum as sum_by
from softnum.tile import convolutions
from softnum.tile.affine import Form, affine, exact_value, ranges_of, size_value, solve
from softnum.tile.arithmetic import Tensor, apply, as_constant, compare, lifted
from softnum.tile.functions import FUNCTIONS, OPERATORS
from softnum.tile.syntax import Access, Binary, Call, Choose, Like, Name, Number, Unary, walk
from softnum.values import encode

__all__ = ["Space", "contract"]

_COMPARISONS = {
    "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal", "==": "equal", "!=": "not_equal",
}  # fmt: skip


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
    """

    def __init__(self, step, source, sizes: dict[str, int], shapes: dict[str, tuple]) -> None:
        self.step, self.source, self.shapes = step, source, shapes
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
        free = [v for v in step.variables if v not in self.solved]
        self.free = [(v, 0, 0) if self.empty else (v, ranges[v][0], ranges[v][1] - ranges[v][0] + 1) for v in free]
        self.ndim = len(self.shape) + len(self.free)
        self.lengths = (*self.shape, *(length for _, _, length in self.free))
        self.axes = {i: (i, np.arange(n)) for i, n in enumerate(self.shape)}
        self.axes |= {
            v: (len(self.shape) + i, np.arange(low, low + n)) for i, (v, low, n) in enumerate(self.free)
        }  # fmt: skip
        self.residual = self._residual(conditions, constraints)

    def _residual(self, conditions, constraints) -> np.ndarray | None:
        """Where the terms exist as far as no access tells."""
        mask = None
        for form in conditions:
            value, whole = form.on(self.axes, self.ndim)
            mask = _both(mask, _both(value == 0, whole))
        for form, bound in constraints:
            value, whole = self.place(form)
            mask = _both(mask, _both((value >= 0) & (value < bound), whole))
        told = {name for forms in self.forms.values() for form in forms for name in form.coefficients}
        for variable, form in self.solved.items():
            if variable not in told:
                mask = _both(mask, form.on(self.axes, self.ndim)[1])
        return None if mask is None or mask.all() else mask

    def place(self, form: Form):
        """(whole values over the axes, where all its variables are whole or None)"""
        total, mask = form.substituted(self.solved).on(self.axes, self.ndim)
        for variable in form.coefficients:
            if variable in self.solved:
                mask = _both(mask, self.solved[variable].on(self.axes, self.ndim)[1])
        return total, mask

    def composed(self, access: Access) -> list[Form]:
        """The access's indices as forms of the places in the output and of the free variables."""
        return [form.substituted(self.solved) for form in self.forms[access]]

    def gather(self, access: Access, tensor: Tensor) -> tuple[Tensor, np.ndarray | None]:
        """(the elements that an access meets, where they exist or None for everywhere): arrays over the axes.

        The length of an axis that the access does not depend on is 1; elements that do not exist are zeros.
        """
        data, _ = tensor.data
        forms = self.forms[access]
        straight = self._straight(access, data.shape)
        if straight is not None:
            order, shape = straight
            return tensor.with_data(data.transpose(order).reshape(shape)), None
        flat, mask = np.zeros((1,) * self.ndim, np.int64), None
        for form, size in zip(forms, data.shape, strict=True):
            value, whole = self.place(form)
            inside = (value >= 0) & (value < size)
            mask = _both(mask, whole if inside.all() else _both(inside, whole))
            flat = flat * size + value
        if mask is not None and mask.all():
            mask = None
        if mask is None:
            return tensor.with_data(data.reshape(-1)[flat] if data.size else np.zeros(flat.shape, data.dtype)), None
        flat = np.where(mask, flat, 0)
        found = data.reshape(-1)[flat] if data.size else np.zeros(flat.shape, data.dtype)
        return self.kept(tensor.with_data(found), mask, access.at), mask

    def kept(self, tensor: Tensor, mask, at) -> Tensor:
        """The tensor, with zeros where the mask does not hold."""
        if mask is None:
            return tensor
        data, zero = tensor.data
        if zero is None:
            raise self.source.error(
                at, f"where an index lies outside its tensor or a constraint is not met stands a zero, and "
                f"{tensor.format} has none",
            )  # fmt: skip
        return tensor.with_data(np.where(mask, data, zero))

    def _straight(self, access, shape):
        """(order of the tensor's axes, shape over the space's axes) where an access goes through a tensor as it is."""
        found = []
        for form, size in zip(self.composed(access), shape, strict=True):
            if form.constant or len(form.coefficients) != 1:
                return None
            ((name, factor),) = form.coefficients.items()
            axis, numbers = self.axes[name]
            if factor != 1 or len(numbers) != size or (size and numbers[0]):
                return None
            found.append(axis)
        if len(set(found)) != len(found):
            return None
        order = np.argsort(found)
        return order, [self.lengths[a] if a in found else 1 for a in range(self.ndim)]


def _both(a, b):
    """Where both masks hold; None holds everywhere."""
    if a is None or b is None:
        return a if b is None else b
    return a & b


class _Body:
    """The evaluation of a contraction's body: each access gathered once, operations in the format asked for."""

    def __init__(self, space: Space, tensors: dict[str, Tensor], options: dict, keys) -> None:
        self.space, self.tensors, self.options, self.keys = space, tensors, options, keys
        self.part, self.gathered = 0, {}

    def gather(self, access: Access) -> tuple[Tensor, np.ndarray | None]:
        """`Space.gather`, once for each access."""
        if access not in self.gathered:
            self.gathered[access] = self.space.gather(access, self.tensors[access.name])
        return self.gathered[access]

    def factor(self, expression, fmt, mask=None) -> tuple[Tensor, np.ndarray | None]:
        """(values, where they exist) of a part of the body; operations round to fmt where the mask holds."""
        if isinstance(expression, Access):
            return self.gather(expression)
        exists = None
        for access in (p for p in walk(expression) if isinstance(p, Access)):
            exists = _both(exists, self.gather(access)[1])
        value = self.value(expression, fmt, _both(mask, exists))
        if isinstance(value, Fraction):
            value = apply("copy", (value,), fmt, {})
            value = Array._of(value.codes.reshape((1,) * self.space.ndim), fmt)
        return self.space.kept(Tensor.of(value), exists, expression.at), exists

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
                    self.as_array(part, fmt, _both(mask, chosen))
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
        return compare(_COMPARISONS[expression.operator], *sides)


# -- the aggregations --------------------------------------------------------------------------------------------------
def contract(space: Space, tensors, *, unit_of, format_of, options, keys, threads) -> Tensor:
    """The tensor that a contraction makes, in the format of its sum, or of its terms where nothing is added.

    unit_of(): the unit of its sums; format_of(fmt): the format of the tensor, where none is stated fmt unless that is
    None. options: of
    roundings outside the unit. keys(part): the key of its rounding of that number, 0 for the unit's.
    """
    step, source = space.step, space.source
    body = _Body(space, tensors, options, keys)
    if step.aggregation == "+":
        return _sums(space, body, unit_of(), keys, threads)
    own = tensors[step.body.name].format if isinstance(step.body, Access) else None
    fmt = format_of(own)
    if step.aggregation in "<>" and own not in (None, fmt):
        raise source.error(
            step.at, f"an extreme is one of its terms, which are of {own}, and {step.base} has the format {fmt}; leave "
            "that out, and assign the extreme to a tensor of that format",
        )  # fmt: skip
    value, exists = body.factor(step.body, fmt)
    shape = space.lengths
    exists = _both(exists, space.residual)
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
    root = space.step.body
    key = keys(0) if unit.stochastic else None
    if isinstance(root, Binary) and root.operator == "*":
        operands = root.left, root.right
        try:
            return _sums_of_products(space, body, operands, unit, key, threads)
        except ValueError:
            for x, fmt in zip(operands, unit.operand, strict=True):  # by the tensor's own name and places
                if isinstance(x, Access):
                    checked_operand(body.tensors[x.name].values, fmt, x.name, space.step.base)
            raise
    terms = space.kept(body.factor(root, unit.result)[0], space.residual, root.at)
    # an axis of length 1 at the end, so that there is one to sum over
    terms = terms.with_data(np.broadcast_to(terms.data[0], space.lengths)[..., None])
    red = tuple(range(len(space.shape), space.ndim + 1))
    result = sum_by(terms.values, unit, red, key=key, threads=threads)
    return Tensor.of(result, unit.result)


def _sums_of_products(space: Space, body: _Body, operands, unit, key, threads) -> Tensor:
    if all(isinstance(x, Access) for x in operands) and not space.empty:
        tensors = [body.tensors[x.name] for x in operands]
        options = convolutions.recognised(space, *operands, *(t.shape for t in tensors))
        if options is not None:
            result = convolutions.run(options, *(t.values for t in tensors), unit, key, threads)
            return Tensor.of(result, unit.result)
    left, right = (body.factor(x, fmt)[0] for x, fmt in zip(operands, unit.operand, strict=True))
    return _products(space, space.kept(left, space.residual, space.step.at), right, unit, key, threads)


def _products(space: Space, left: Tensor, right: Tensor, unit, key, threads) -> Tensor:
    """The sum of products: rows are the output's axes that the second factor lacks, columns those the first lacks."""
    ndim = len(space.shape)
    parts = [t.data[0] for t in (left, right)]
    rows = [a for a in range(ndim) if parts[1].shape[a] == 1]
    columns = [a for a in range(ndim) if parts[0].shape[a] == 1 and a not in rows]
    batch = [a for a in range(ndim) if a not in rows and a not in columns]
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
    largest = space.step.aggregation == ">"
    if not mask.all():
        own = terms.format
        end = float("-inf" if largest else "inf") if own.infinities else (own.min if largest else own.max)
        terms = Array._of(np.where(mask, terms.codes, encode(np.array(end, object), own)), own)
    return apply("copy", ((np.max if largest else np.min)(terms, axis=-1),), fmt, body.options, body.keys(0))


def _check_some(space: Space, mask) -> None:
    if not mask.any(axis=-1).all():
        where = ", ".join(str(int(i)) for i in np.argwhere(~mask.any(axis=-1))[0])
        raise space.source.error(
            space.step.at, f"{space.step.base}[{where}] would be the extreme of nothing: no valuation of the index "
            "variables gives it a term",
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
        where = ", ".join(str(int(i)) for i in np.argwhere(counts > 1)[0])
        raise space.source.error(
            space.step.at, f"{space.step.base}[{where}] would be assigned {int(counts.max())} times; = takes one "
            "term for each element (+ adds them, > takes the largest)",
        )  # fmt: skip
    if not mask.shape[-1]:
        return Array._of(np.broadcast_to(as_constant(Fraction(0), fmt).codes, space.shape), fmt)
    chosen = np.take_along_axis(terms.codes, np.argmax(mask, axis=-1)[..., None], -1)[..., 0]
    found = apply("copy", (Array._of(chosen, terms.format),), fmt, body.options, body.keys(0), counts > 0)
    if (counts > 0).all():
        return found
    return Array._of(np.where(counts > 0, found.codes, as_constant(Fraction(0), fmt).codes), fmt)

"""Contractions of operators on the device as loops over their terms, a thread to an element of the result.

The terms meet in the order that the contraction states, and indices are whole numbers on the way, so that the result is
that of `softnum.tile.contract`, the definition. Sums go to their unit (`operator_sums`); of them only the terms, or the
factors, are computed here, where they are more than elements of a tensor.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import prod

import numpy as np

from softnum.arrays.container import as_operand
from softnum.arrays.conversion import encode
from softnum.formats.dispatch import of_format
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.tile.steps import Tensor, new
from softnum.kernels.device.tile.tables import NAN, order_of
from softnum.kernels.device.tile.text import Text, Value
from softnum.runtime.gateway import NoKernel
from softnum.tile.affine import exact_value
from softnum.tile.arithmetic import carrier_of, has_zero, key_of
from softnum.tile.contract import check_extreme, of_nothing, too_many
from softnum.tile.functions import FUNCTIONS, OPERATORS
from softnum.tile.loops import everywhere, needed, reading
from softnum.tile.program import COMPARISONS
from softnum.tile.syntax import Access, Binary, Call, Choose, Name, Number, Unary, walk

__all__ = ["axes_of", "gathered", "limits_of", "looped", "materialised", "others", "scattered", "single"]


# -- indices -----------------------------------------------------------------------------------------------------------
def limits_of(lines, lengths) -> list:
    """The lines that do not hold everywhere, without what always holds."""
    straight = [replace(x, coefficients=tuple(c if n != 1 else 0 for c, n in zip(x.coefficients, lengths, strict=True)))
                for x in lines]  # fmt: skip
    return [limit for limit in (needed(line, lengths) for line in straight) if limit is not None]


def axes_of(lines, lengths) -> set[int]:
    """The axes of more or less than one place that lines depend on."""
    return {a for line in lines for a, c in enumerate(line.coefficients) if c and lengths[a] != 1}


class _Terms:
    """The text of a contraction's body at one place of its axes, and the axes that each part of it depends on."""

    def __init__(self, run, space, number: int) -> None:
        self.run, self.space, self.number = run, space, number
        self.text, self.lengths = Text(run.key), space.lengths
        self.part, self.loaded, self.reads = 0, {}, []
        self.fill = space.step.aggregation == "+"  # else it is read where it exists alone
        self.options = run.settings.rounding(space.step.base)
        self.names = [f"x{a}" for a in range(space.ndim)]

    # -- places --------------------------------------------------------------------------------------------------------
    def declare(self, axes) -> None:
        """The places of element i in axes, in C order."""
        rest = self.text.variable("sn_i64", "i")
        for a in reversed(axes):
            if self.lengths[a] == 1:
                continue
            length = self.text.number(self.lengths[a])
            self.text.add(f"const sn_i64 x{a} = {rest} % {length};", f"{rest} /= {length};", f"(void)x{a};")
        self.text.add(f"(void){rest};")

    def line(self, line) -> str:
        """A line at these places, times its scale."""
        parts = [self.text.number(line.constant)]
        for a, c in enumerate(line.coefficients):
            if c and self.lengths[a] != 1:
                parts.append(self.names[a] if c == 1 else f"{self.text.number(c)} * {self.names[a]}")
        return f"({' + '.join(parts)})"

    def holds(self, limits) -> str | None:
        """That all of these limits do; None if there are none."""
        conditions = []
        for limit in limits:
            at = self.text.variable("const sn_i64", self.line(limit))
            if limit.bound is not None:
                conditions.append(f"{at} >= 0 && {at} < {self.text.number(limit.bound)}")
            if limit.scale != 1:
                conditions.append(f"{at} % {self.text.number(limit.scale)} == 0")
        return " && ".join(conditions) or None

    def index(self, axes) -> str:
        """The place in the C order of some axes."""
        at = "0"
        for a in sorted(axes):
            if self.lengths[a] != 1:
                at = self.names[a] if at == "0" else f"({at}) * {self.text.number(self.lengths[a])} + {self.names[a]}"
        return at

    # -- elements ------------------------------------------------------------------------------------------------------
    def load(self, access: Access) -> tuple[Value, str | None, set, set]:
        """(the element of an access, the condition that it exists, the axes of both, of the condition), read once."""
        if access in self.loaded:
            return self.loaded[access]
        tensor = self.run.values[access.name]
        offset, lines = reading(access, tensor.shape, self.space)
        limits, axes = limits_of(lines, self.lengths), axes_of([offset], self.lengths)
        at = self.line(offset) + (f" / {self.text.number(offset.scale)}" if offset.scale != 1 else "")
        element = f"{self.text.array(access.name, tensor.format.storage_dtype)}[{at}]"
        self.reads.append(access.name)
        exists = None
        asked = axes | axes_of(lines, self.lengths) if limits else set()
        if limits and self.fill:
            exists = self.text.variable("const sn_u32", f"({self.holds(limits)})")
            element = f"{exists} ? {element} : {self.zero(tensor.format, access.at)}"
        value = Value(self.text.variable("const sn_u64", element), tensor.format)
        self.loaded[access] = value, exists, axes | asked, asked
        return self.loaded[access]

    def zero(self, fmt, at) -> str:
        """The code of what stands for elements that do not exist."""
        if not has_zero(fmt):
            raise self.space.no_zero(fmt, at)
        return self.text.code(int(encode(0.0, fmt)), fmt).name

    def existing(self, expression) -> tuple[str | None, set]:
        """(the condition that all elements of an expression exist, its axes)"""
        found = [self.load(p) for p in dict.fromkeys(p for p in walk(expression) if isinstance(p, Access))]
        conditions = dict.fromkeys(exists for _, exists, _, _ in found if exists is not None)
        return " && ".join(conditions) or None, set().union(*(asked for *_, asked in found))

    # -- the body ------------------------------------------------------------------------------------------------------
    def factor(self, expression, fmt) -> Value:
        """A part of the body; operations round to fmt."""
        if isinstance(expression, Access):
            return self.load(expression)[0]
        value, _ = self.value(expression, fmt, self.existing(expression))
        return self.text.constant(value, fmt) if isinstance(value, Fraction) else value

    def value(self, expression, fmt, where) -> tuple:
        """(a Value or an exact number, its axes); where: (the condition under which it is wanted, its axes)."""
        match expression:
            case Access():
                value, _, axes, _ = self.load(expression)
                return value, axes
            case Number() | Name():
                return exact_value(expression, self.space.sizes), set()
            case Choose():
                return self._choose(expression, fmt, where)
            case Unary():
                function, parts = OPERATORS["negate"], (expression.operand,)
                if expression.operator == "+":
                    return self.value(expression.operand, fmt, where)
            case Binary():
                function, parts = OPERATORS[expression.operator], (expression.left, expression.right)
            case Call():
                function, parts = FUNCTIONS[expression.function], expression.arguments
        operands = [self.value(part, fmt, where) for part in parts]
        if all(isinstance(x, Fraction) for x, _ in operands) and isinstance(expression, (Unary, Binary)):
            return exact_value(expression, self.space.sizes), set()
        return self.apply(function.operation, operands, fmt, where)

    def _choose(self, expression: Choose, fmt, where) -> tuple:
        condition, axes = self.condition(expression.condition, fmt, where)
        sides = []
        for part, sign in ((expression.yes, ""), (expression.no, "!")):
            chosen = f"{sign}{condition.name}" + (f" && {where[0]}" if where[0] else "")
            chosen = chosen, where[1] | axes
            sides.append(self.apply("copy", [self.value(part, fmt, chosen)], fmt, chosen))
        (yes, axes_yes), (no, axes_no) = sides
        found = self.text.variable("const sn_u64", f"{condition.name} ? {yes.name} : {no.name}")
        return Value(found, fmt), axes | axes_yes | axes_no

    def apply(self, operation: str, operands, fmt, where) -> tuple:
        """An operation, numbered as the next of the body's roundings."""
        self.part += 1
        axes = set(where[1]).union(*(own for _, own in operands))
        site = self.number, self.part
        index = self.index(axes) if "stochastic_bits" in self.options else "0"
        values = [x for x, _ in operands]
        return self.text.apply(operation, values, fmt, self.options, site, index, where[0], self.space.step), axes

    def condition(self, expression, fmt, where) -> tuple[Value, set]:
        """(where an expression holds, its axes)"""
        text = self.text
        match expression:
            case Unary():
                inner, axes = self.condition(expression.operand, fmt, where)
                return text.logic("not", [inner]), axes
            case Choose():
                asked = expression.condition, expression.yes, expression.no
                parts = [self.condition(part, fmt, where) for part in asked]
                names = [part.name for part, _ in parts]
                found = text.variable("const sn_u32", f"{names[0]} ? {names[1]} : {names[2]}")
                return Value(found, None), set().union(*(axes for _, axes in parts))
            case Binary(operator="&&" | "||"):
                parts = [self.condition(part, fmt, where) for part in (expression.left, expression.right)]
                name = "and" if expression.operator == "&&" else "or"
                return text.logic(name, [part for part, _ in parts]), parts[0][1] | parts[1][1]
        sides = [self.value(part, fmt, where) for part in (expression.left, expression.right)]
        found = text.compare(COMPARISONS[expression.operator], *(side for side, _ in sides))
        return found, sides[0][1] | sides[1][1]


def _run(run, made, size: int, arrays: dict, reads) -> None:
    """Launch a kernel over the codes of tensors, and raise what went wrong."""
    failed = made.launch(size, arrays | {name: run.values[name].codes for name in reads}, run.key)
    if failed is not None:
        run.raise_for(failed)


# -- extremes, products and assignments --------------------------------------------------------------------------------
def others(run, space, number: int) -> Tensor:
    """A contraction that is no sum."""
    made, reads, fmt = run.plan((space.step.name, "others"), lambda: looped(run, space, number))
    out = new(prod(space.shape), fmt.storage_dtype)
    _run(run, made, prod(space.shape), {"out": out}, reads)
    return Tensor(fmt, space.shape, codes=out)


def looped(run, space, number: int) -> tuple:
    """(the kernel's text, what it reads, the format of the result) of a contraction that is no sum."""
    step, settings, body = space.step, run.settings, _Terms(run, space, number)
    text, ndim = body.text, len(space.shape)
    own = run.values[step.body.name].format if isinstance(step.body, Access) else None
    fmt = settings.stated_format(step.base) or own or settings.format(step.base)
    check_extreme(space, own, fmt)
    body.declare(range(ndim))
    start = text.constant(Fraction(1), fmt).name if step.aggregation == "*" else "0"
    total, met = text.variable("sn_u64", start), text.variable("sn_u64")
    free = [a for a in range(ndim, space.ndim) if space.lengths[a] != 1]
    for a in free:
        text.open(f"for (sn_i64 x{a} = 0; x{a} < {text.number(space.lengths[a])}; x{a}++)")
    limits = limits_of(everywhere(space), space.lengths)
    text.open(f"if ({'0' if space.empty else body.holds(limits) or '1'})")
    for access in dict.fromkeys(p for p in walk(step.body) if isinstance(p, Access)):
        lines = reading(access, run.values[access.name].shape, space)[1]
        inside = body.holds(limits_of(lines, space.lengths))
        text.open(f"if ({inside or '1'})")
    value = body.factor(step.body, fmt)
    if step.aggregation == "*":
        random = "stochastic_bits" in body.options
        first, count = body.part + 1, prod(space.lengths[ndim:])
        if random and count:
            key_of(run.key, number, first + count - 1)  # whether there are so many numbers
        site = number, first, count, body.index(range(ndim, space.ndim))
        new_total = text.apply(
            "multiply", [Value(total, fmt), value], fmt, body.options, site, body.index(range(ndim)), None, step
        )
        text.add(f"{total} = {new_total.name};")
    else:
        text.add(f"{total} = {_brought_in(step.aggregation, total, met, value, text)};", f"{met}++;")
    while text.depth:
        text.close()
    result = Value(total, value.format)
    if step.aggregation in "<>":
        text.fail_with(f"!{met}", lambda place: of_nothing(space, _named(space, place)))
        where = met
    elif step.aggregation == "=":
        shapes = {name: run.values[name].shape for name in step.values_read}
        text.fail_with(f"{met} > 1", lambda place: _counted(shapes, space, place))
        where = met
    if step.aggregation != "*":
        result = text.apply("copy", [result], fmt, body.options, (number, 0), "i", where, step)
    if step.aggregation == "=" and (free or limits or space.empty or _partial(run, space)):
        result = _or_zero(text, result, met, fmt, step)
    text.store("out", fmt.storage_dtype, "i", result.name)
    return text.made(), tuple(dict.fromkeys(body.reads)), fmt


def _brought_in(aggregation: str, total: str, met: str, value: Value, text: Text) -> str:
    """The total with one more term."""
    if aggregation == "=":
        return value.name
    return _extreme(value.format, aggregation, total, met, value, text)


@of_format
def _extreme(fmt, aggregation: str, total: str, met: str, value: Value, text: Text) -> str:
    """The extreme of the total and one more term."""
    f = text.format(value.format)
    nan = f"(sn_is_nan({f}, {value.name}) ? ({f})->nan_code : {value.name})"
    return f"{met} ? sn_extreme_of({f}, {total}, {value.name}, {int(aggregation == '>')}) : {nan}"


@_extreme.custom
def _extreme_by_order(fmt, aggregation: str, total: str, met: str, value: Value, text: Text) -> str:
    """The extreme of a custom format's values, by their places in its order."""
    order = text.table(order_of(fmt))
    nan = f"{int(as_operand(float('nan'), fmt).codes)}u" if fmt.has_nan else "0"
    term, sign = f"({order}[{value.name}] >= {NAN} ? {nan} : {value.name})", ">" if aggregation == ">" else "<"
    numbers = f"{order}[{value.name}] {sign} {order}[{total}] ? {value.name} : {total}"
    known = f"{order}[{total}] >= {NAN} ? {total} : {order}[{value.name}] >= {NAN} ? {nan} : {numbers}"
    return f"!{met} ? {term} : {known}"


def _partial(run, space) -> bool:
    accesses = [p for p in walk(space.step.body) if isinstance(p, Access)]
    return any(limits_of(reading(x, run.values[x.name].shape, space)[1], space.lengths) for x in accesses)


def _or_zero(text: Text, result: Value, met: str, fmt, step) -> Value:
    """The only term, or +0 where there is none."""
    try:
        zero = text.constant(Fraction(0), fmt).name
    except ValueError as error:  # the format has none
        text.fail(f"!{met}", step, str(error))
        return result
    return Value(text.variable("sn_u64", f"{met} ? {result.name} : {zero}"), fmt)


def _named(space, place: int) -> str:
    return space.named([int(i) for i in np.unravel_index(place, space.shape)])


def _counted(shapes, space, place: int):
    """The error that an element has several terms, which are counted here."""
    index = np.unravel_index(place, space.shape)
    accesses = [p for p in walk(space.step.body) if isinstance(p, Access)]
    lines = [*everywhere(space), *(x for a in accesses for x in reading(a, shapes[a.name], space)[1])]
    free = np.indices(space.lengths[len(space.shape) :])
    exists = np.ones(free.shape[1:], bool)
    for line in lines:
        at = line.constant + sum(c * n for c, n in zip(line.coefficients, [*index, *free], strict=True))
        exists &= (at % line.scale == 0) & ((line.bound is None) | ((at >= 0) & (at < (line.bound or 0))))
    return too_many(space, _named(space, place), int(exists.sum()))


# -- the terms of sums -------------------------------------------------------------------------------------------------
def materialised(run, space, number: int, expressions) -> list[tuple[Tensor, list[int]] | None]:
    """Parts of a sum's body over their axes: (the tensor, its axes) of each.

    expressions: (expression, format that its operations round to, whether it is zero where a term does not exist, the
    axes at least), or None for what is not wanted; the roundings of the parts are numbered one after the other.
    """
    plans = run.plan((space.step.name, "terms"), lambda: _terms(run, space, number, expressions))
    results = []
    for plan in plans:
        if plan is None:
            results.append(None)
            continue
        made, reads, fmt, axes = plan
        shape = tuple(space.lengths[a] for a in axes)
        out = new(prod(shape), fmt.storage_dtype)
        _run(run, made, prod(shape), {"out": out}, reads)
        results.append((Tensor(fmt, shape, codes=out), axes))
    return results


def _terms(run, space, number: int, expressions) -> list:
    plans, part = [], 0
    for asked in expressions:
        if asked is None:
            plans.append(None)
            continue
        expression, fmt, limited, least = asked
        axes = _axes(run, space, expression) | set(least)
        lines = everywhere(space) if limited else []
        limits = limits_of(lines, space.lengths)
        axes = sorted(axes | (axes_of(lines, space.lengths) if limits else set()))
        body = _Terms(run, space, number)
        body.part = part
        body.declare(axes)
        value = body.factor(expression, fmt)
        conditions = [c for c in (body.existing(expression)[0], body.holds(limits)) if c]
        found = value.name
        if conditions:
            found = f"({' && '.join(conditions)}) ? {found} : {body.zero(value.format, expression.at)}"
        body.text.store("out", value.format.storage_dtype, "i", f"({found})")
        plans.append((body.text.made(), tuple(dict.fromkeys(body.reads)), value.format, axes))
        part = body.part
    return plans


def _axes(run, space, expression) -> set[int]:
    """The axes that an expression depends on."""
    found = set()
    for access in (p for p in walk(expression) if isinstance(p, Access)):
        offset, lines = reading(access, run.values[access.name].shape, space)
        found |= axes_of([offset, *(lines if limits_of(lines, space.lengths) else ())], space.lengths)
    return found


# -- single tensors ----------------------------------------------------------------------------------------------------
def single(run, tensor: Tensor, fmt, options, site, step) -> Tensor:
    """A tensor rounded to another format."""

    def make():
        text = Text(run.key)
        x = Value(text.variable("sn_u64", f"{text.array('x', tensor.format.storage_dtype)}[i]"), tensor.format)
        text.store("out", fmt.storage_dtype, "i", text.apply("copy", [x], fmt, options, site, "i", None, step).name)
        return text.made()

    made = run.plan((step.name, "rounded", tensor.format, fmt, site), make)
    out = new(tensor.size, fmt.storage_dtype)
    _run(run, made, tensor.size, {"x": tensor.codes, "out": out}, ())
    return Tensor(fmt, tensor.shape, codes=out)


# -- places in tables --------------------------------------------------------------------------------------------------
def _places(run, step, length: int):
    """The values of a step's second tensor as places in a table, int64 on the device."""
    name = step.arguments[1]
    places = run.values[name]
    if carrier_of(places.format) is None:
        raise NoKernel(f"{name} is of {places.format}, which float64 does not hold, and places are read there")

    def error(place: int):
        value = np.asarray(_cuda.to_host(places.values))[place]
        return run.no_place(step, tuple(int(i) for i in np.unravel_index(place, places.shape)), value, length)

    text = Text()
    code = text.variable("const sn_u64", f"{text.array('x', places.format.storage_dtype)}[i]")
    code, fmt = text.widened(Value(code, places.format))
    at = text.variable("const sn_i64", f"sn_place_of({text.format(fmt)}, {code}, {text.number(length)})")
    text.fail_with(f"{at} < 0", error)
    text.store("out", np.int64, "i", at)
    out = new(places.size, np.int64)
    _run(run, text.made(), places.size, {"x": places.codes, "out": out}, ())
    return out


def gathered(run, step, length: int) -> Tensor:
    """The rows of a table at the places that another tensor holds."""
    table, places = (run.values[name] for name in step.arguments)
    row, dtype, shape = prod(table.shape[1:]), table.format.storage_dtype, (*places.shape, *table.shape[1:])
    at, text = _places(run, step, length), Text()
    width, from_, to = text.number(row), text.array("table", dtype), text.array("places", np.int64)
    text.store("out", dtype, "i", f"{from_}[(sn_i64){to}[i / {width}] * {width} + i % {width}]")
    out = new(prod(shape), dtype)
    _run(run, text.made(), prod(shape), {"table": table.codes, "places": at, "out": out}, ())
    return Tensor(table.format, shape, codes=out)


def scattered(run, step, table: tuple[int, ...]) -> Tensor:
    """For each place of a table the elements that go there, in their order, then zeros to the most of all.

    How many there are of each is counted on the device and read on the host, as it is a size.
    """
    elements, places = (run.values[name] for name in step.arguments[:2])
    at, rows, count, dtype = _places(run, step, table[0]), table[0], places.size, elements.format.storage_dtype
    text = Text()
    found = text.variable("sn_i64")
    size, to = text.number(count), text.array("places", np.int64)
    text.add(f"for (sn_i64 k = 0; k < {size}; k++) {found} += {to}[k] == (sn_u64)i;")
    text.store("out", np.int64, "i", found)
    counts = new(rows, np.int64)
    _run(run, text.made(), rows, {"places": at, "out": counts}, ())
    most = int(_cuda.to_host(counts)[:rows].max(initial=0))
    row = prod(table[1:])
    terms, order = new(rows * most * row, dtype), new(rows * most, np.int64)
    text = Text()
    size, width, to = text.number(count), text.number(most), text.array("places", np.int64)
    found, out = text.variable("sn_i64"), text.array("order", np.int64)
    text.open(f"for (sn_i64 k = 0; k < {size}; k++)")
    text.add(f"if ({to}[k] == (sn_u64)i) {out}[i * {width} + {found}++] = (sn_u64)k;")
    text.close()
    _run(run, text.made(), rows if most else 0, {"places": at, "order": order}, ())
    text = Text()
    width, deep = text.number(row), text.number(most)
    zero, fmt = "0", elements.format
    if most and rows * most > count:
        if not has_zero(fmt):
            raise ValueError(f"places get different numbers of elements; zeros fill them, and {fmt} has none")
        zero = text.code(int(encode(0.0, fmt)), fmt).name
    text.add(f"const sn_i64 at = i / {width}, t = at / {deep};")
    there = f"at % {deep} < (sn_i64){text.array('counts', np.int64)}[t]"
    element = f"{text.array('x', dtype)}[(sn_i64){text.array('order', np.int64)}[at] * {width} + i % {width}]"
    text.store("out", dtype, "i", f"({there} ? {element} : {zero})")
    arrays = {"counts": counts, "order": order, "x": elements.codes, "out": terms}
    _run(run, text.made(), rows * most * row, arrays, ())
    return Tensor(fmt, (rows, most, *table[1:]), codes=terms)

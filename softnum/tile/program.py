"""A program as steps: each one operation and its rounding, or one contraction; branches as guards on steps.

A step's `base` is the tensor whose format it rounds to: ``Y = X * X + 1`` has the steps ``Y_1 = X * X`` and ``Y = Y_1 +
1``, both of base Y. A guard is the chain of conditions under which a step is computed, element by element.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from softnum.tile import syntax
from softnum.tile.syntax import NOWHERE, Place, Source

__all__ = ["COMPARISONS", "PREDICATES", "Builder", "Constant", "Contraction", "Program", "Step", "renamed"]

#: comparison of the language -> function
COMPARISONS = {
    "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal", "==": "equal", "!=": "not_equal",
}  # fmt: skip
#: what makes a condition
PREDICATES = (*COMPARISONS.values(), "and", "or", "not")


@dataclass(frozen=True)
class Constant:
    """A number made of literals and sizes; it is computed exactly and rounded once."""

    expression: object


@dataclass(frozen=True)
class Step:
    """``name = function(arguments)``, an operation on elements, where the guard holds."""

    name: str
    base: str
    function: str
    arguments: tuple
    guard: tuple[tuple[str, bool], ...] = ()
    at: Place = field(default=NOWHERE, compare=False, repr=False)

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The tensors and conditions it names."""
        return (*(a for a in self.arguments if isinstance(a, str)), *(condition for condition, _ in self.guard))

    @cached_property
    def values_read(self) -> tuple[str, ...]:
        """Those of them whose values it needs, and not only their shape."""
        return self.reads[:-1] if self.function in ("reduce_like", "scatter") else self.reads

    @cached_property
    def shaped_by(self) -> tuple[str, ...]:
        """Those that the shape of its result follows from."""
        return self.arguments[-1:] if self.function in ("reduce_like", "scatter") else self.reads


@dataclass(frozen=True)
class Contraction:
    """A contraction; the names in body, sizes and constraints are steps'. variables: in the order of their loops."""

    name: str
    base: str
    aggregation: str
    indices: tuple
    sizes: object
    body: object
    constraints: tuple
    variables: tuple[str, ...]
    at: Place = field(default=NOWHERE, compare=False, repr=False)

    guard = ()

    @cached_property
    def values_read(self) -> tuple[str, ...]:
        """The tensors whose values it needs."""
        return tuple(dict.fromkeys(part.name for part in syntax.walk(self.body) if isinstance(part, syntax.Access)))

    @cached_property
    def shaped_by(self) -> tuple[str, ...]:
        """The tensors that its sizes name."""
        return (self.sizes.name,) if isinstance(self.sizes, syntax.Like) else _sized(self.sizes)

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The tensors it names, those among them of which it needs the shape alone."""
        places = [part for part in syntax.walk(self.body) if isinstance(part, syntax.Access)]
        expressions = [*self.indices, *(p for pair in self.constraints for p in pair)]
        expressions += [index for place in places for index in place.indices]
        return tuple(dict.fromkeys((*self.values_read, *self.shaped_by, *_sized(expressions))))


def _sized(expressions) -> tuple[str, ...]:
    """The tensors of ``size(tensor, axis)`` in expressions."""
    return tuple(p.arguments[0].name for e in expressions for p in syntax.walk(e) if isinstance(p, syntax.Call))


@dataclass(frozen=True)
class Program:
    """What is computed: inputs (name, sizes), steps in order, outputs by name; tensors' formats where it states them.

    gradients: the tensors that are gradients.
    """

    source: Source
    inputs: tuple[tuple[str, tuple | None], ...]
    outputs: tuple[str, ...]
    steps: tuple
    formats: dict[str, str]
    gradients: frozenset = frozenset()

    @cached_property
    def needed(self) -> tuple[int, ...]:
        """The numbers of the steps whose values the outputs depend on, in order."""
        return self._behind(lambda step: step.values_read)

    @cached_property
    def named(self) -> tuple[int, ...]:
        """The numbers of the steps that the outputs' text takes, those of whose shape alone is asked among them."""
        return self._behind(lambda step: step.reads)

    def _behind(self, reads) -> tuple[int, ...]:
        wanted, found = set(self.outputs), []
        given = {name for name, _ in self.inputs}
        for number in range(len(self.steps) - 1, -1, -1):
            step = self.steps[number]
            if step.name in wanted and step.name not in given:
                found.append(number)
                wanted.update(reads(step))
        return tuple(found[::-1])


# -- making one --------------------------------------------------------------------------------------------------------
class Builder:
    """Steps under construction: what each is (number, condition), the tensor it rounds to, and its shape by name.

    Two equal shapes are equal tuples; the shape of numbers alone is (). Names are provisional: ``Y.3`` is the third
    version of Y, until `finish` gives the last one the name itself.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.steps: list = []
        self.kinds: dict[str, str] = {}
        self.bases: dict[str, str] = {}
        self.shapes: dict[str, tuple] = {}
        self.guards: dict[str, tuple] = {}
        self._versions: dict[str, int] = {}

    def known(self, name: str, base: str, kind: str, shape: tuple, guard: tuple = ()) -> None:
        """A name that there is from now on."""
        self.kinds[name], self.bases[name], self.shapes[name], self.guards[name] = kind, base, shape, guard

    def version(self, base: str) -> str:
        """A new provisional name."""
        self._versions[base] = self._versions.get(base, 0) + 1
        return f"{base}.{self._versions[base]}"

    def emit(self, function: str, arguments: tuple, base: str, guard: tuple, at: Place) -> str:
        """Append a step; its name."""
        name = self.version(base)
        self.enter(Step(name, base, function, tuple(arguments), guard, at))
        return name

    def kind(self, argument) -> str:
        """Of an argument of a step."""
        return self.kinds[argument] if isinstance(argument, str) else "number"

    def contract(self, contraction: Contraction) -> str:
        """Append a contraction; its name."""
        self.enter(contraction)
        return contraction.name

    def enter(self, step) -> None:
        """Append a step or contraction that has its name."""
        self.steps.append(step)
        if isinstance(step, Contraction):
            shape = self.shapes[step.sizes.name] if isinstance(step.sizes, syntax.Like) else tuple(step.sizes)
            self.known(step.name, step.base, "number", shape)
            return
        kind = "condition" if step.function in PREDICATES else "number"
        if step.function == "select":
            kind = self.kind(step.arguments[1])
        self.known(step.name, step.base, kind, self._shape(step), step.guard)

    def _shape(self, step: Step) -> tuple:
        if step.function == "reduce_like":
            return self.shapes[step.arguments[1]]
        if step.function == "scatter":
            return self.shapes[step.arguments[2]]
        if step.function == "vector":
            return (syntax.Number(Fraction(len(step.arguments))),)
        if step.function == "gather":
            table, places = (self.shapes[a] for a in step.arguments)
            return places if len(table) == 1 and table[0] != "joint" else ("gathered", table, places)
        return self.joint(step.reads)

    def joint(self, names) -> tuple:
        """The shape that these broadcast to."""
        parts: dict = {}
        for shape in (self.shapes[name] for name in names):
            parts |= dict.fromkeys(shape[1] if shape[:1] == ("joint",) else [shape] if shape else [])
        if len(parts) > 1:
            return "joint", frozenset(parts)
        return next(iter(parts), ())

    def finish(self, last: dict[str, str], taken: set[str]) -> dict[str, str]:
        """Provisional name -> final one. last: the name of each tensor -> its last version."""
        final = {version: name for name, version in last.items()}
        taken = set(taken) | set(last)
        numbers: dict[str, int] = {}
        for step in self.steps:
            if "." not in step.name or step.name in final:
                continue
            stem = step.base
            while True:
                numbers[stem] = numbers.get(stem, 0) + 1
                name = f"{stem}_{numbers[stem]}"
                if name not in taken:
                    break
            final[step.name] = name
        return final


def renamed(part, names: dict[str, str]):
    """A step, contraction or expression with tensors renamed."""
    put = lambda p: renamed(p, names)  # noqa: E731
    match part:
        case str():
            return names.get(part, part)
        case Constant() | syntax.Number() | syntax.Vector() | syntax.Name():
            return part
        case Step():
            guard = tuple((put(condition), value) for condition, value in part.guard)
            return replace(part, name=put(part.name), arguments=tuple(map(put, part.arguments)), guard=guard)
        case Contraction():
            sizes = put(part.sizes) if isinstance(part.sizes, syntax.Like) else tuple(map(put, part.sizes))
            return replace(
                part, name=put(part.name), indices=tuple(map(put, part.indices)), sizes=sizes, body=put(part.body),
                constraints=tuple(tuple(map(put, pair)) for pair in part.constraints),
            )  # fmt: skip
        case syntax.Like():
            return replace(part, name=put(part.name))
        case syntax.Access():
            return replace(part, name=put(part.name), indices=tuple(map(put, part.indices)))
        case syntax.Call(function="size"):
            tensor, axis = part.arguments
            return replace(part, arguments=(replace(tensor, name=put(tensor.name)), axis))
        case syntax.Call():
            return replace(part, arguments=tuple(map(put, part.arguments)))
        case syntax.Unary():
            return replace(part, operand=put(part.operand))
        case syntax.Binary():
            return replace(part, left=put(part.left), right=put(part.right))
        case syntax.Choose():
            return replace(part, condition=put(part.condition), yes=put(part.yes), no=put(part.no))
    raise TypeError(f"{part!r} is no part of a program")

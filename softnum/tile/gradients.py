"""Gradients by the source: reverse-mode differentiation of a program's steps, into further steps.

A gradient is in the same language: operations by the rules of `functions`, contractions by contractions over
the same index variables. Branches stay branches: what a branch reads gets its gradient under the branch's guard.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from difflib import get_close_matches
from fractions import Fraction

from softnum.tile import syntax
from softnum.tile.functions import FUNCTIONS, OPERATORS, rules_of
from softnum.tile.lower import Lowering
from softnum.tile.program import Constant, Contraction, Program, renamed
from softnum.tile.syntax import NOWHERE, Access, Binary, Call, Choose, Like, Name, Number, Unary, walk

__all__ = ["differentiate"]

_ZERO = Constant(Number(Fraction(0)))
_LETTERS = "abc"


def differentiate(program: Program, stated, scope: dict[str, str]) -> Program:
    """The program of the gradients: (inputs, outputs, their gradients) -> gradients of the inputs.

    stated: the statements of ``gradient { }``, or None; scope: what the tensors they name are called in the program.
    """
    return _Gradient(program, scope).finished(stated or ())


class _Gradient(Lowering):
    def __init__(self, program: Program, scope: dict[str, str]) -> None:
        super().__init__(program.source)
        self.program, self.forward_scope = program, scope
        self.formats = dict(program.formats)
        build = self.builder
        for name, sizes in program.inputs:
            self.sizes += [s.name for s in sizes or () if isinstance(s, Name) and s.name not in self.sizes]
            build.known(name, name, "number", ("of", name) if sizes is None else sizes)
        for step in program.steps:
            build.enter(step)
        names = {name for name, _ in program.inputs} | {step.base for step in program.steps}
        places = {step.base: step.at for step in program.steps}
        for name in sorted(names):
            if f"d{name}" in names | {step.name for step in program.steps} | set(self.sizes):
                at = places.get(f"d{name}", NOWHERE)
                raise self.error(at, f"'d{name}' is what the gradient of {name} is called; rename that tensor")
        for name in program.outputs:
            build.known(f"d{name}", f"d{name}", "number", build.shapes[name])
        self.contributions: dict[str, list] = {name: [((), f"d{name}")] for name in program.outputs}
        self.at = NOWHERE  # the place of the step whose gradient is made

    def finished(self, stated) -> Program:
        given = tuple((name, None) for name in self.program.outputs)
        inputs = (*self.program.inputs, *given, *((f"d{name}", None) for name in self.program.outputs))
        last = self._stated(stated)
        active = {name for name, _ in self.program.inputs if f"d{name}" not in last}
        for step in self.program.steps:
            if active & set(step.reads if isinstance(step, Contraction) else step.arguments):
                active.add(step.name)
        for step in reversed(self.program.steps):
            if step.name in active and step.name in self.contributions:
                if self.builder.kinds[step.name] == "condition":
                    continue
                self.at = step.at
                total = self.total(step.name)
                if step.name == step.base and step.name not in self.program.outputs:
                    last.setdefault(f"d{step.name}", total)
                (self._contraction if isinstance(step, Contraction) else self._operation_of)(step, total, active)
        for name, _ in self.program.inputs:
            if name in active and name in self.contributions:
                last[f"d{name}"] = self.total(name)
        outputs = [f"d{name}" for name, _ in self.program.inputs if f"d{name}" in last]
        taken = {name for name, _ in inputs} | {s.name for s in self.builder.steps} | set(self.sizes)
        final = self.builder.finish(last, taken)
        steps = tuple(renamed(step, final) for step in self.builder.steps)
        gradients = {step.base for step in self.builder.steps[len(self.program.steps) :]}
        gradients |= {f"d{name}" for name in self.program.outputs}
        outputs = tuple(final.get(last[name], name) for name in outputs)
        return Program(self.source, inputs, outputs, steps, self.formats, frozenset(gradients))

    def _stated(self, statements) -> dict[str, str]:
        """Lower a ``gradient { }``; the tensors it assigns."""
        self.scope = self.forward_scope | {f"d{name}": f"d{name}" for name in self.program.outputs}
        self.fixed = set(self.scope)
        self.statements(statements)
        self._check_used(statements)
        found = {name: version for name, version in self.scope.items() if name not in self.fixed}
        for name, _ in self.program.inputs:
            version = found.get(f"d{name}")
            if version is not None and self.builder.kind(version) == "condition":
                at = next(step.at for step in self.builder.steps if step.name == version)
                raise self.error(at, f"'d{name}' is a condition, not a number; write 'd{name}' ? 1 : 0")
        return found

    def _check_used(self, statements) -> None:
        """TileError if a ``gradient { }`` assigns what no gradient of an input depends on."""
        behind: dict[str, set[str]] = {}
        places = {}
        for name, at, reads in _assignments(statements):
            behind.setdefault(name, set()).update(reads)
            places.setdefault(name, at)
        gradients = [f"d{name}" for name, _ in self.program.inputs]
        used, pending = set(), list(gradients)
        while pending:
            name = pending.pop()
            if name not in used:
                used.add(name)
                pending += behind.get(name, ())
        unused = [name for name in places if name not in used]
        last = [name for name in unused if not any(name in behind[u] for u in unused if u != name)]
        for name in last or unused:
            by_lower = {gradient.lower(): gradient for gradient in gradients}
            near = get_close_matches(name.lower(), by_lower, 1)
            hint = f"did you mean {by_lower[near[0]]!r}?" if near else f"those are {', '.join(gradients)}"
            raise self.error(places[name], f"{name!r} is no gradient of an input, and none depends on it; {hint}")

    # -- sums of contributions -----------------------------------------------------------------------------------------
    def contribute(self, name: str, guard, value) -> None:
        """Add a part to the gradient of a tensor; it counts where the guard holds."""
        self.contributions.setdefault(name, []).append((guard, value))

    def total(self, name: str) -> str:
        """The gradient of a tensor: its contributions, added in their order, in its shape and format."""
        build, base, guard = self.builder, f"d{self.builder.bases[name]}", self.builder.guards[name]
        alike, others = [], []
        for at, value in self.contributions[name]:
            shape = build.joint([value, *(condition for condition, _ in at[len(guard) :])])
            (alike if shape == build.shapes[name] else others).append((at, value))
        parts = [self._merged(alike, guard, base)] if alike else []
        for at, value in others:
            lifted = self._merged([(at, value)], (), base)  # zero where the guard does not hold: all of it is summed
            parts.append(build.emit("reduce_like", (lifted, name), base, (), self.at))
        total = self._sum(parts, base, guard)
        if build.bases[total] != base:
            total = build.emit("copy", (total,), base, guard, self.at)
        return total

    def _sum(self, parts, base, guard) -> str:
        total = parts[0]
        for part in parts[1:]:
            total = self.builder.emit("add", (total, part), base, guard, self.at)
        return total

    def _merged(self, contributions, prefix, base) -> str:
        """One value under the guard `prefix` of contributions under guards that extend it."""
        depth = len(prefix)
        parts = [value for guard, value in contributions if len(guard) == depth]
        for condition in dict.fromkeys(guard[depth][0] for guard, _ in contributions if len(guard) > depth):
            sides = []
            for value in (True, False):
                inside = (*prefix, (condition, value))
                chosen = [c for c in contributions if c[0][: depth + 1] == inside]
                sides.append(self._merged(chosen, inside, base) if chosen else _ZERO)
            parts.append(self.builder.emit("select", (condition, *sides), base, prefix, self.at))
        return self._sum(parts, base, prefix)

    # -- steps ---------------------------------------------------------------------------------------------------------
    def _operation_of(self, step, gradient: str, active) -> None:
        if step.function == "select":
            condition, *sides = step.arguments
            for side, value in zip(sides, (True, False), strict=True):
                if side in active:
                    self.contribute(side, (*step.guard, (condition, value)), gradient)
            return
        if step.function == "vector":
            return
        if step.function == "reduce_like":
            raise self.error(step.at, "reduce_like has no derived gradient; state it in gradient { }")
        self.guard = step.guard
        letters = dict(zip(_LETTERS, step.arguments, strict=False))
        for argument, rule in zip(step.arguments, rules_of(step.function), strict=True):
            if argument in active and rule is not None:
                self.scope, first = letters | {"g": gradient, "y": step.name}, len(self.builder.steps)
                value = self.value(rule, f"d{self.builder.bases[argument]}")
                steps = self.builder.steps[first:]
                self.builder.steps[first:] = [replace(new, at=step.at) for new in steps]  # not the rule's own
                self.contribute(argument, step.guard, value)
        self.guard = ()

    # -- contractions --------------------------------------------------------------------------------------------------
    def _contraction(self, step: Contraction, gradient: str, active) -> None:
        above = Access(gradient, step.indices)
        if step.aggregation in "<>":
            if not isinstance(step.body, Access):
                raise self.error(
                    step.body.at, f"the gradient of a {'maximum' if step.aggregation == '>' else 'minimum'} is derived "
                    "of a tensor's elements; assign this expression to a tensor first, or state gradient { }",
                )  # fmt: skip
            chosen = Binary("==", step.body, Access(step.name, step.indices))
            above = Choose(chosen, above, Number(Fraction(0)))
        if step.aggregation == "*":
            above = Binary("*", above, self._others(step))
        for access, expression in _through(step.body, above):
            if access.name in active:
                self.contribute(access.name, (), self._contract_for(step, access, expression))

    def _contract_for(self, step: Contraction, access: Access, expression) -> str:
        """The part of a tensor's gradient that comes by one of its accesses in a body."""
        kept = {part for part in walk(expression) if isinstance(part, Access)} | {access}
        constraints = list(step.constraints)
        for lost in (p for p in walk(step.body) if isinstance(p, Access) and p not in kept):
            for axis, index in enumerate(lost.indices):
                constraints.append((index, Call("size", (Name(lost.name), Number(Fraction(axis))))))
        variables = self._variables([expression, *access.indices, *(part for part, _ in constraints)])
        plain = {index.name for index in access.indices if isinstance(index, Name)}
        product = isinstance(expression, Binary) and expression.operator == "*"
        base = f"d{self.builder.bases[access.name]}"
        contraction = Contraction(
            self.builder.version(base), base, "=" if set(variables) <= plain and not product else "+", access.indices,
            Like(access.name), expression, tuple(constraints), variables, step.at,
        )  # fmt: skip
        return self.builder.contract(contraction)

    def _variables(self, expressions) -> tuple[str, ...]:
        """The index variables of expressions, in the order of their first appearance."""
        found: dict[str, None] = {}

        def look(expression, inside):
            match expression:
                case Access():
                    for index in expression.indices:
                        look(index, True)
                case Name() if inside and expression.name not in self.sizes:
                    found[expression.name] = None
                case Call(function="size"):
                    pass
                case _:
                    for part in syntax.parts_of(expression):
                        look(part, inside)

        look(expressions[0], False)
        for expression in expressions[1:]:
            look(expression, True)
        return tuple(found)

    def _others(self, step: Contraction) -> Access:
        """A tensor of the product of all other terms, over a product's index variables: those before, those after."""
        if not isinstance(step.body, Access):
            raise self.error(
                step.body.at, "the gradient of a product is derived of a tensor's elements; assign this expression to "
                "a tensor first, or state gradient { }",
            )  # fmt: skip
        tensor, indices = step.body.name, step.body.indices
        plain = {index.name: axis for axis, index in enumerate(indices) if isinstance(index, Name)}
        if len(plain) != len(indices) or set(step.variables) != set(plain) or step.constraints:
            raise self.error(
                step.at, "the gradient of a product is derived where each index of its tensor is an index variable of "
                "its own and nothing else constrains them; state gradient { }",
            )  # fmt: skip
        outer = {index.name for index in step.indices if isinstance(index, Name)}
        free = [v for v in step.variables if v not in outer]
        base, parts = f"d{self.builder.bases[tensor]}", []
        for before in (True, False):
            for at, variable in enumerate(free):
                # of the variables in the order of their loops: equal up to here, less (or more) here, then any
                moved = {v: Name(f"{v}_other") for v in free[at:]}
                inside = Access(tensor, tuple(moved.get(i.name, i) for i in indices))
                here, there = Name(variable), moved[variable]
                pair = (here, there) if before else (there, here)
                distance = Binary("-", Binary("-", *pair), Number(Fraction(1)))
                bound = Call("size", (Name(tensor), Number(Fraction(plain[variable]))))
                constraints = ((distance, bound),)
                contraction = Contraction(
                    self.builder.version(base), base, "*", indices, Like(tensor), inside, constraints,
                    self._variables([inside, *indices]), step.at,
                )  # fmt: skip
                parts.append(self.builder.contract(contraction))
        product = parts[0]
        for part in parts[1:]:
            product = self.builder.emit("multiply", (product, part), base, (), step.at)
        return Access(product, indices)


def _through(expression, above):
    """(access, its gradient) for each access of a body; above: the gradient of the expression."""
    match expression:
        case Access():
            yield expression, above
            return
        case Choose():
            yield from _through(expression.yes, Choose(expression.condition, above, Number(Fraction(0))))
            yield from _through(expression.no, Choose(expression.condition, Number(Fraction(0)), above))
            return
        case Unary(operator="+"):
            yield from _through(expression.operand, above)
            return
        case Unary():
            operation = OPERATORS["negate"].operation
        case Binary():
            operation = OPERATORS[expression.operator].operation
        case Call():
            operation = FUNCTIONS[expression.function].operation
        case _:
            return
    parts = syntax.parts_of(expression)
    names = dict(zip(_LETTERS, parts, strict=False)) | {"g": above, "y": expression}
    for part, rule in zip(parts, rules_of(operation), strict=True):
        if rule is not None and any(isinstance(p, Access) for p in walk(part)):
            yield from _through(part, _filled(rule, names))


def _assignments(statements, conditions=frozenset()):
    """(name, its place, the names that it depends on) of all assignments in statements."""
    for statement in statements or ():
        match statement:
            case syntax.Assign() | syntax.Contract():
                yield statement.name, statement.at, conditions | _names_in(statement)
            case syntax.If():
                inside = conditions | _names_in(statement.condition)
                yield from _assignments((*statement.then, *(statement.otherwise or ())), inside)
            case syntax.Switch():
                inside = conditions | _names_in(statement.subject)
                bodies = (*(case.body for case in statement.cases), statement.default)
                for body in bodies:
                    yield from _assignments(body, inside)


def _names_in(part) -> frozenset[str]:
    """The names that an expression, or a statement's expressions, read."""
    found, pending = set(), [part]
    while pending:  # expressions may be deep
        part = pending.pop()
        if isinstance(part, (Access, Like, Name)):
            found.add(part.name)
        if isinstance(part, tuple):
            pending += part
        elif is_dataclass(part):
            pending += [getattr(part, f.name) for f in fields(part)]
    return frozenset(found)


def _filled(rule, names: dict):
    """A rule with expressions in the place of its letters."""
    if isinstance(rule, Name):
        return names[rule.name]
    match rule:
        case Call():
            return replace(rule, arguments=tuple(_filled(part, names) for part in rule.arguments))
        case Unary():
            return replace(rule, operand=_filled(rule.operand, names))
        case Binary():
            return replace(rule, left=_filled(rule.left, names), right=_filled(rule.right, names))
        case Choose():
            return Choose(*(_filled(part, names) for part in (rule.condition, rule.yes, rule.no)))
    return rule

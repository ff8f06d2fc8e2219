"""Syntax to steps: every name, type and index is checked here, and branches become guards."""

from __future__ import annotations

from difflib import get_close_matches

from softnum.formats.names import format
from softnum.tile import syntax
from softnum.tile.functions import FUNCTIONS, OPERATORS, WHOLE
from softnum.tile.indices import LOGIC, Contractions
from softnum.tile.parser import parse
from softnum.tile.program import COMPARISONS, Builder, Constant, Program, renamed
from softnum.tile.syntax import Access, Assign, Binary, Call, Choose, Name, Number, Source, Unary, Vector, shown_number

__all__ = ["Lowering", "lower"]


class Lowering(Contractions):
    """A program under construction: the scope of names, and where it is in branches."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.builder = Builder(source)
        self.scope: dict[str, str] = {}
        self.sizes: list[str] = []
        self.inputs: tuple = ()
        self.fixed: set[str] = set()  # names that are not assigned: inputs
        self.partial: dict[str, str] = {}  # a version that has a value where its guard holds
        self.formats: dict[str, str] = {}
        self.declared: list[Name] = []
        self.guard: tuple = ()

    def error(self, at, message):
        """The error at a place."""
        return self.source.error(at, message)

    # -- names ---------------------------------------------------------------------------------------------------------
    def take_inputs(self, parameters) -> None:
        """Enter the inputs and the sizes they name."""
        names = [p.name for p in parameters]
        for parameter in parameters:
            if names.count(parameter.name) > 1:
                raise self.error(parameter.at, f"two inputs are named {parameter.name!r}")
            for size in parameter.sizes or ():
                if isinstance(size, Name) and size.name not in names:
                    self.sizes += [] if size.name in self.sizes else [size.name]
                elif not isinstance(size, Number) or size.value.denominator != 1:
                    raise self.error(size.at, "a size of an input is a name of its own or a whole number")
            shape = ("of", parameter.name) if parameter.sizes is None else parameter.sizes
            self.builder.known(parameter.name, parameter.name, "number", shape)
            self.scope[parameter.name] = parameter.name
            self.fixed.add(parameter.name)
        self.inputs = tuple((p.name, p.sizes) for p in parameters)

    def tensor(self, name: str, at) -> str:
        """The current version of a tensor."""
        if name in self.scope:
            return self.scope[name]
        if name in self.partial:
            guard = self.builder.guards[self.partial[name]]
            if self.guard[: len(guard)] == guard:
                return self.partial[name]
            raise self.error(
                at, f"{name!r} has a value in some branches only; assign it before them, or in every branch (else, "
                "default)",
            )  # fmt: skip
        known = [n for n in self.scope if "." not in n]
        near = get_close_matches(name, [*known, *self.sizes], 1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(known) or 'none'}"
        raise self.error(at, f"{name!r} is no tensor{' or size' if self.sizes else ''} here{hint}")

    def assigned(self, name: str, at) -> None:
        """ValueError unless the name may be given a value."""
        if name in self.fixed or name in self.sizes:
            raise self.error(at, f"{name!r} is {'a size' if name in self.sizes else 'an input'} and cannot be assigned")
        if name in FUNCTIONS or name == "size":
            raise self.error(at, f"{name!r} is a function; choose another name")

    # -- statements ----------------------------------------------------------------------------------------------------
    def statements(self, body) -> None:
        """Lower statements in order."""
        for statement in body:
            getattr(self, f"_{type(statement).__name__.lower()}")(statement)

    def _declare(self, statement) -> None:
        self.declared += statement.names
        try:
            format(statement.format)
        except (TypeError, ValueError) as error:
            raise self.error(statement.at, str(error)) from None
        for name in statement.names:
            if self.formats.setdefault(name.name, statement.format) != statement.format:
                raise self.error(name.at, f"{name.name!r} has the format {self.formats[name.name]!r} already")

    def _assign(self, statement: Assign) -> None:
        self.assigned(statement.name, statement.at)
        before = len(self.builder.steps)
        value = self.value(statement.value, statement.name)
        if len(self.builder.steps) == before and self.builder.kind(value) == "number":  # a constant, or X, or +X
            value = self.builder.emit("copy", (value,), statement.name, self.guard, statement.at)
        self.scope[statement.name] = value
        self.partial.pop(statement.name, None)

    def _if(self, statement) -> None:
        condition = self.condition(statement.condition, None)
        before, guard = self.scope, self.guard
        scopes = []
        for value, body in ((True, statement.then), (False, statement.otherwise or ())):
            self.scope, self.guard = dict(before), (*guard, (condition, value))
            self.statements(body)
            scopes.append(self.scope)
        self.scope, self.guard = before, guard
        for name in dict.fromkeys((*scopes[0], *scopes[1])):
            then, other = (scope.get(name) for scope in scopes)
            if then is None or other is None:
                self.scope.pop(name, None)
                self.partial[name] = other if then is None else then
            elif then != other:
                if self.builder.kind(then) != self.builder.kind(other):
                    raise self.error(statement.at, f"{name!r} is a number in one branch and a condition in the other")
                chosen = (condition, then, other)
                self.scope[name] = self.builder.emit("select", chosen, name, guard, statement.at)
                self.partial.pop(name, None)

    def _switch(self, statement) -> None:
        if not isinstance(statement.subject, Name):
            raise self.error(
                statement.subject.at, "switch takes a tensor by name: an operation here would round to no tensor's "
                "format; assign it first",
            )  # fmt: skip
        chain = statement.default
        for case in reversed(statement.cases):
            low, high = case.low, case.high
            if low is not None and high is not None and low.value >= high.value and not case.point:
                ends = f"{shown_number(low.value)} .. {shown_number(high.value)}"
                raise self.error(
                    case.at, f"no value lies in {ends}: the lower end belongs to a range, the upper does not"
                )  # fmt: skip
            limits = [Binary("==", statement.subject, low, case.at)] if case.point else []
            if not case.point:
                limits += [] if low is None else [Binary(">=", statement.subject, low, case.at)]
                limits += [] if high is None else [Binary("<", statement.subject, high, case.at)]
            condition = limits[0] if len(limits) == 1 else Binary("&&", *limits, case.at)
            chain = (syntax.If(condition, case.body, chain, case.at),)
        self.statements(chain or ())

    # -- elementwise expressions ---------------------------------------------------------------------------------------
    def condition(self, expression, base: str | None) -> str:
        """An expression that is true or false."""
        value = self.value(expression, base)
        if self.builder.kind(value) != "condition":
            raise self.error(expression.at, "a condition is needed here: compare it, as in x > 0")
        return value

    def number(self, expression, base: str | None):
        """An expression that is a number: a step's name or a Constant."""
        value = self.value(expression, base)
        if self.builder.kind(value) == "condition":
            raise self.error(expression.at, "this is a condition, not a number; write condition ? 1 : 0")
        return value

    def is_constant(self, expression) -> bool:
        """Whether it is made of literals and sizes alone."""
        match expression:
            case Number():
                return True
            case Name():
                return expression.name in self.sizes and expression.name not in self.scope
            case Unary():
                return expression.operator in "+-" and self.is_constant(expression.operand)
            case Binary():
                both = self.is_constant(expression.left) and self.is_constant(expression.right)
                return expression.operator in "+-*/" and both
        return False

    def value(self, expression, base: str | None):
        """Lower an expression; operations round to the base's format."""
        if self.is_constant(expression):
            return Constant(expression)
        at = expression.at
        match expression:
            case Name():
                return self.tensor(expression.name, at)
            case Access():
                raise self.error(
                    at, f"{expression.name}[...] stands in a contraction only, as in Y[i: N] = =(X[i]); a whole "
                    "tensor is written without indices",
                )  # fmt: skip
            case Unary(operator="+"):
                return self.number(expression.operand, base)
            case Unary(operator="!"):
                return self._emit("not", (self.condition(expression.operand, base),), base or "condition", at)
            case Unary():
                return self._operation(OPERATORS["negate"], (expression.operand,), base, at)
            case Binary() if expression.operator in COMPARISONS:
                sides = tuple(self.number(part, base) for part in (expression.left, expression.right))
                if not any(isinstance(side, str) for side in sides):
                    raise self.error(at, "both sides are constants: the comparison needs a tensor")
                return self._emit(COMPARISONS[expression.operator], sides, base or "condition", at)
            case Binary() if expression.operator in LOGIC:
                sides = tuple(self.condition(part, base) for part in (expression.left, expression.right))
                return self._emit(LOGIC[expression.operator], sides, base or "condition", at)
            case Binary():
                return self._operation(OPERATORS[expression.operator], (expression.left, expression.right), base, at)
            case Choose():
                return self._choose(expression, base)
            case Call():
                function = self.function(expression)
                if function.operation in WHOLE:
                    return self._whole(function, expression, base)
                return self._operation(function, expression.arguments, base, at)
            case Vector():
                self._needs_base(base, at)
                return self._emit("vector", tuple(Constant(Number(v, at)) for v in expression.values), base, at)
        raise TypeError(f"{expression!r} is no expression")

    def function(self, call: Call):
        """The function of a call, with as many operands as it takes."""
        if call.function not in FUNCTIONS:
            near = get_close_matches(call.function, FUNCTIONS, 2)
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(FUNCTIONS)}"
            raise self.error(call.at, f"there is no function {call.function!r}; {hint}")
        function = FUNCTIONS[call.function]
        if len(call.arguments) != function.operands:
            takes = f"{function.operands} operand{'s' if function.operands > 1 else ''}"
            raise self.error(call.at, f"{call.function} takes {takes}, got {len(call.arguments)}")
        return function

    def _emit(self, function, arguments, base, at):
        return self.builder.emit(function, arguments, base, self.guard, at)

    def _needs_base(self, base, at) -> None:
        if base is None:
            raise self.error(
                at, "an operation in the condition of an if or switch would round to no tensor's format; assign it to "
                "a tensor first, and test that",
            )  # fmt: skip

    def _operation(self, function, operands, base, at):
        values = tuple(self.number(o, base) for o in operands)
        if function in OPERATORS.values() and all(isinstance(v, Constant) for v in values):
            sign = next(sign for sign, f in OPERATORS.items() if f is function)
            parts = [v.expression for v in values]
            return Constant(Unary("-", *parts, at) if len(parts) == 1 else Binary(sign, *parts, at))
        self._needs_base(base, at)
        return self._emit(function.operation, values, base, at)

    def _whole(self, function, call, base):
        self._needs_base(base, call.at)
        if self.guard:
            raise self.error(call.at, f"{call.function} takes whole tensors, not elements in a branch; move it out")
        for operand in call.arguments:
            if not isinstance(operand, Name):
                raise self.error(operand.at, f"{call.function} takes tensors by name; assign this to one first")
        *operands, last = call.arguments
        values = [self.number(operand, base) for operand in operands]
        if function.operation != "gather" and last.name in self.partial:  # its shape is meant
            values.append(self.partial[last.name])
        else:
            values.append(self.number(last, base))
        return self._emit(function.operation, tuple(values), base, call.at)

    def _choose(self, expression: Choose, base):
        condition = self.condition(expression.condition, base)
        guard, parts = self.guard, []
        for value, part in ((True, expression.yes), (False, expression.no)):
            self.guard = (*guard, (condition, value))
            parts.append(self.value(part, base))
        self.guard = guard
        if self.builder.kind(parts[0]) != self.builder.kind(parts[1]):
            raise self.error(expression.at, "one side is a number, the other a condition")
        if self.builder.kind(parts[0]) == "number":
            self._needs_base(base, expression.at)
        return self._emit("select", (condition, *parts), base or "condition", expression.at)


def lower(source: Source) -> tuple[Program, tuple | None, dict[str, str]]:
    """(the program of a text, the statements of its ``gradient { }`` or None, tensor -> its name in the program).

    Raises
    ------
    TileError
        If the text is no program.
    """
    function = parse(source)
    lowering = Lowering(source)
    lowering.take_inputs(function.inputs)
    lowering.statements(function.body)
    last, final = {}, {}
    for name, version in lowering.scope.items():
        if "." in version and lowering.builder.bases[version] == name:
            last[name] = version
    reserved = {p.name for p in function.inputs} | set(lowering.sizes) | set(lowering.partial)
    final = lowering.builder.finish(last, reserved)
    outputs = []
    for output in function.outputs:
        if output.name not in lowering.scope or output.name in lowering.fixed:
            lowering.tensor(output.name, output.at)
            raise source.error(output.at, f"{output.name!r} is an input; assign an output: {output.name}_out = ...")
        version = lowering.scope[output.name]
        if lowering.builder.kind(version) == "condition":
            raise source.error(output.at, f"{output.name!r} is a condition, not a number; write {output.name} ? 1 : 0")
        if output.name in outputs:
            raise source.error(output.at, f"{output.name!r} is an output already")
        outputs.append(final.get(version, version))
    known = set(lowering.builder.bases.values())
    for declared in lowering.declared:
        if declared.name not in known and not (declared.name[:1] == "d" and declared.name[1:] in known):
            raise source.error(declared.at, f"{declared.name!r} is declared with a format but never assigned")
    steps = tuple(renamed(step, final) for step in lowering.builder.steps)
    program = Program(source, lowering.inputs, tuple(outputs), steps, lowering.formats)
    scope = {name: final.get(version, version) for name, version in lowering.scope.items()}
    return program, function.gradient, scope

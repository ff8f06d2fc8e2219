"""A program as text in the language."""

from __future__ import annotations

from fractions import Fraction

from softnum.tile.functions import FUNCTIONS, OPERATORS
from softnum.tile.indices import LOGIC
from softnum.tile.program import COMPARISONS, PREDICATES, Constant, Contraction, Program
from softnum.tile.syntax import Access, Binary, Call, Choose, Like, Name, Number, Unary

__all__ = ["expression_text", "text_of"]

_INFIX = {f.operation: sign for sign, f in OPERATORS.items() if sign != "negate"}
_INFIX |= {function: sign for sign, function in (COMPARISONS | LOGIC).items()}
_CALLS = {f.operation: name for name, f in FUNCTIONS.items()}
_LEVELS = {"||": 1, "&&": 2, "+": 4, "-": 4, "*": 5, "/": 5}  # comparisons 3


def expression_text(expression, above: int = 0) -> str:
    """An expression, in parentheses where it binds less than what is above it."""
    text, level = _text(expression)
    return f"({text})" if level < above else text


def _text(expression) -> tuple[str, int]:
    listed = lambda parts: ", ".join(map(expression_text, parts))  # noqa: E731
    match expression:
        case Number():
            return _number(expression.value), 7 if expression.value >= 0 else 6
        case Name():
            return expression.name, 7
        case Access():
            return f"{expression.name}[{listed(expression.indices)}]", 7
        case Call():
            return f"{expression.function}({listed(expression.arguments)})", 7
        case Unary():
            return f"{expression.operator}{expression_text(expression.operand, 6)}", 6
        case Choose():
            parts = expression_text(expression.condition, 1), expression_text(expression.yes), expression.no
            return f"{parts[0]} ? {parts[1]} : {expression_text(parts[2])}", 0
        case Binary():
            level = _LEVELS.get(expression.operator, 3)
            left = expression_text(expression.left, level + (level == 3))
            return f"{left} {expression.operator} {expression_text(expression.right, level + 1)}", level
    raise TypeError(f"{expression!r} is no expression")


def _number(value: Fraction) -> str:
    """A literal: all are decimal fractions of few digits."""
    sign, value, digits = "-" if value < 0 else "", abs(value), 0
    while value.denominator != 1:
        value, digits = value * 10, digits + 1
    text = str(value.numerator).rjust(digits + 1, "0")
    return f"{sign}{text[:-digits]}.{text[-digits:]}" if digits else sign + text


def _argument(argument, above: int = 0) -> str:
    return expression_text(argument.expression, above) if isinstance(argument, Constant) else argument


def _value(step) -> str:
    """The right side of an assignment."""
    arguments = step.arguments
    match step.function:
        case "copy":
            return _argument(arguments[0])
        case "negate":
            return f"-{_argument(arguments[0], 6)}"
        case "not":
            return f"!{arguments[0]}"
        case "select":
            return f"{arguments[0]} ? {_argument(arguments[1])} : {_argument(arguments[2])}"
        case "vector":
            return f"[{', '.join(map(_argument, arguments))}]"
    if step.function in _INFIX:
        left, right = (_argument(a, 6) for a in arguments)
        return f"{left} {_INFIX[step.function]} {right}"
    return f"{_CALLS[step.function]}({', '.join(map(_argument, arguments))})"


def _statement(step) -> str:
    if not isinstance(step, Contraction):
        return f"{step.name} = {_value(step)};"
    listed = lambda parts: ", ".join(map(expression_text, parts))  # noqa: E731
    sizes = f"like {step.sizes.name}" if isinstance(step.sizes, Like) else listed(step.sizes)
    place = f"{listed(step.indices)}: {sizes}" if step.indices else ""
    limits = "".join(f", {expression_text(e, 4)} < {expression_text(bound, 4)}" for e, bound in step.constraints)
    return f"{step.name}[{place}] = {step.aggregation}({expression_text(step.body)}){limits};"


def text_of(program: Program) -> str:
    """The steps that the outputs need, a statement each; guards are branches."""
    inputs = [
        name if sizes is None else f"{name}[{', '.join(map(expression_text, sizes))}]" for name, sizes in program.inputs
    ]
    lines = [f"function ({', '.join(inputs)}) -> ({', '.join(program.outputs)}) {{"]
    steps = [program.steps[number] for number in program.named]
    for name, fmt in program.formats.items():
        parts = [given for given, _ in program.inputs if given == name]
        parts += [step.name for step in steps if step.base == name and getattr(step, "function", "") not in PREDICATES]
        lines += [f'    format {", ".join(parts)}: "{fmt}";'] if parts else []
    open_guard: tuple = ()
    for step in steps:
        common = 0
        while common < min(len(open_guard), len(step.guard)) and open_guard[common] == step.guard[common]:
            common += 1
        while len(open_guard) > common:
            condition, value = open_guard[-1]
            depth, open_guard = len(open_guard), open_guard[:-1]
            turn = len(step.guard) >= depth and step.guard[: depth - 1] == open_guard
            if turn and value and step.guard[depth - 1] == (condition, False):
                lines.append(f"{'    ' * depth}}} else {{")
                open_guard, common = step.guard[:depth], depth
            else:
                lines.append(f"{'    ' * depth}}}")
        for condition, value in step.guard[common:]:
            lines.append(f"{'    ' * (len(open_guard) + 1)}if ({condition}) {{{'' if value else ' } else {'}")
            open_guard = (*open_guard, (condition, value))
        lines.append("    " * (len(open_guard) + 1) + _statement(step))
    lines += ["    " * depth + "}" for depth in range(len(open_guard), 0, -1)]
    return "\n".join([*lines, "}"])

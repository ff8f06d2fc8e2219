"""The functions of the language: how many operands each takes, and its derivative in the language itself.

In a rule g is the gradient of the result, y the result, a, b and c the operands; there is one rule for each operand,
None where it has no gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from softnum.ops.elementary import GRADIENTS
from softnum.tile.parser import parse_expression

__all__ = ["FUNCTIONS", "Function", "OPERATORS", "rules_of"]


@dataclass(frozen=True)
class Function:
    """A function: the operation that computes it (of `softnum.ops.OPERATIONS`, or the evaluation's own) and rules."""

    operation: str
    rules: tuple[str | None, ...]

    @property
    def operands(self) -> int:
        """How many it takes."""
        return len(self.rules)


def _f(operation: str, *rules) -> Function:
    return Function(operation, rules)


#: operator of the language -> function
OPERATORS = {
    "+": _f("add", "g", "g"),
    "-": _f("subtract", "g", "-g"),
    "*": _f("multiply", "g * b", "a * g"),
    "/": _f("divide", "g / b", "-(g * y / b)"),
    "negate": _f("negate", "-g"),
}

_ARITHMETIC = {
    "abs": _f("absolute", "a < 0 ? -g : g"),
    "ceil": _f("ceil", None),
    "floor": _f("floor", None),
    "fma": _f("fma", "g * b", "a * g", "g"),
    "gather": _f("gather", "scatter(g, b, a)", None),
    "max": _f("maximum", "a >= b ? g : 0", "a >= b ? 0 : g"),
    "min": _f("minimum", "a <= b ? g : 0", "a <= b ? 0 : g"),
    "reduce_like": _f("reduce_like", None, None),  # differentiation refuses it
    "round": _f("round", None),
    "scatter": _f("scatter", "gather(g, b)", None, None),
    "sqrt": _f("sqrt", "g * 0.5 / y"),
    "trunc": _f("trunc", None),
}
_ELEMENTARY = {name: _f(name, *gradients) for name, gradients in GRADIENTS.items()}

#: name -> function
FUNCTIONS = dict(sorted((_ARITHMETIC | _ELEMENTARY).items()))

_BY_OPERATION = {f.operation: f for f in (*OPERATORS.values(), *FUNCTIONS.values())}
_BY_OPERATION["copy"] = _f("copy", "g")

#: those that take and give whole tensors: not for the body of a contraction
WHOLE = ("gather", "reduce_like", "scatter")


@cache
def rules_of(operation: str) -> tuple:
    """The parsed rules of an operation of a step, one for each operand."""
    return tuple(None if rule is None else parse_expression(rule) for rule in _BY_OPERATION[operation].rules)

"""The functions of the language: how many operands each takes, and its derivative in the language itself.

In a rule g is the gradient of the result, y the result, a, b and c the operands; there is one rule for each operand,
None where it has no gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from softnum.tile.parser import parse_expression

__all__ = ["FUNCTIONS", "Function", "OPERATORS", "rules_of"]

LN2 = "0.69314718055994530941723212145817656807550013436026"
LOG2_E = "1.44269504088896340735992468100189213742664595415299"
LOG10_E = "0.43429448190325182765112891891660508229439700580367"
TWO_OVER_ROOT_PI = "1.12837916709551257389615890312154517168810125865800"
ROOT_HALF = "0.70710678118654752440084436210484903928483593768847"
ONE_OVER_ROOT_TWO_PI = "0.39894228040143267793994605993438186847585863116493"


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

#: name -> function
FUNCTIONS = {
    "abs": _f("absolute", "a < 0 ? -g : g"),
    "acos": _f("acos", "-(g * rsqrt(1 - a * a))"),
    "asin": _f("asin", "g * rsqrt(1 - a * a)"),
    "atan": _f("atan", "g / (1 + a * a)"),
    "cbrt": _f("cbrt", "g / (3 * (y * y))"),
    "ceil": _f("ceil", None),
    "cos": _f("cos", "-(g * sin(a))"),
    "cosh": _f("cosh", "g * sinh(a)"),
    "erf": _f("erf", f"g * ({TWO_OVER_ROOT_PI} * exp(-(a * a)))"),
    "exp": _f("exp", "g * y"),
    "exp2": _f("exp2", f"g * (y * {LN2})"),
    "expm1": _f("expm1", "g * exp(a)"),
    "floor": _f("floor", None),
    "fma": _f("fma", "g * b", "a * g", "g"),
    "gather": _f("gather", "scatter(g, b, a)", None),
    "gelu": _f(
        "gelu",
        f"g * (0.5 * (1 + erf(a * {ROOT_HALF})) + a * ({ONE_OVER_ROOT_TWO_PI} * exp(-0.5 * (a * a))))",
    ),
    "hypot": _f("hypot", "g * (a / y)", "g * (b / y)"),
    "log": _f("log", "g / a"),
    "log10": _f("log10", f"g * {LOG10_E} / a"),
    "log1p": _f("log1p", "g / (1 + a)"),
    "log2": _f("log2", f"g * {LOG2_E} / a"),
    "max": _f("maximum", "a >= b ? g : 0", "a >= b ? 0 : g"),
    "min": _f("minimum", "a <= b ? g : 0", "a <= b ? 0 : g"),
    "pow": _f("pow", "g * (b * pow(a, b - 1))", "g * (y * log(a))"),
    "reciprocal": _f("reciprocal", "-(g * (y * y))"),
    "reduce_like": _f("reduce_like", None, None),  # differentiation refuses it
    "round": _f("round", None),
    "rsqrt": _f("rsqrt", "-0.5 * g * (y / a)"),
    "scatter": _f("scatter", "gather(g, b)", None, None),
    "sigmoid": _f("sigmoid", "g * (y * (1 - y))"),
    "silu": _f("silu", "g * (sigmoid(a) * (1 + a * (1 - sigmoid(a))))"),
    "sin": _f("sin", "g * cos(a)"),
    "sinh": _f("sinh", "g * cosh(a)"),
    "softplus": _f("softplus", "g * sigmoid(a)"),
    "sqrt": _f("sqrt", "g * 0.5 / y"),
    "tan": _f("tan", "g * (1 + y * y)"),
    "tanh": _f("tanh", "g * (1 - y * y)"),
    "trunc": _f("trunc", None),
}

_BY_OPERATION = {f.operation: f for f in (*OPERATORS.values(), *FUNCTIONS.values())}
_BY_OPERATION["copy"] = _f("copy", "g")

#: those that take and give whole tensors: not for the body of a contraction
WHOLE = ("gather", "reduce_like", "scatter")


@cache
def rules_of(operation: str) -> tuple:
    """The parsed rules of an operation of a step, one for each operand."""
    return tuple(None if rule is None else parse_expression(rule) for rule in _BY_OPERATION[operation].rules)

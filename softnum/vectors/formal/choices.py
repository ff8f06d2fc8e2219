"""Which of several results an operation delivers: the first whose condition holds, and which operand's NaN."""

from __future__ import annotations

from softnum.reference.facts import Format
from softnum.vectors.formal.circuit import Bits, Circuit
from softnum.vectors.formal.numbers import Number
from softnum.vectors.formal.rounding import Environment, Result, quiet

__all__ = ["chosen_nan", "first_of", "nan_case"]


def first_of(c: Circuit, cases: list[tuple[Bits, Result]], otherwise: Result) -> Result:
    """The result of the first condition that holds.

    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> c = Circuit()
    >>> a, results = c.input("a", 2), [Result(c.const(i, 3), c.const(0, 5)) for i in range(3)]
    >>> c.output("code", first_of(c, [(a[1], results[2]), (a[0], results[1])], results[0]).code)
    >>> evaluate(c, {"a": [0, 1, 2, 3]})["code"].tolist()
    [0, 1, 2, 2]
    """
    for condition, found in reversed(cases):
        otherwise = Result(c.ite(condition, found.code, otherwise.code), c.ite(condition, found.flags, otherwise.flags))
    return otherwise


def chosen_nan(c: Circuit, x: Number, y: Number, env: Environment) -> Number:
    """The operand whose NaN is delivered, where one of them is a NaN: its sign and payload."""
    second = ~x.nan
    if env.nan == "arm":
        second |= y.signaling & ~x.signaling
    width = max(x.payload.width, y.payload.width)  # payloads begin with the quiet bit
    payloads = [n.payload.placed(width - n.payload.width) for n in (x, y)]
    return x._replace(
        nan=x.nan | y.nan,
        signaling=c.ite(second, y.signaling, x.signaling),
        sign=c.ite(second, y.sign, x.sign),
        payload=c.ite(second, payloads[1], payloads[0]),
    )


def nan_case(c: Circuit, x: Number, y: Number, out: Format, env: Environment) -> tuple[Bits, Result]:
    """Where one of two operands is a NaN, and what is delivered there."""
    return x.nan | y.nan, quiet(c, chosen_nan(c, x, y, env), x.signaling | y.signaling, out, env)

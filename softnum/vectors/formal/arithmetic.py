"""Arithmetic of numbers as circuits: what an operation is by IEEE 754-2019, clauses 5 to 7, rounded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from softnum.vectors.formal.choices import chosen_nan, first_of, nan_case
from softnum.vectors.formal.circuit import Bits, Circuit
from softnum.vectors.formal.numbers import Exact, Number, exact_product, exact_sum, exact_value
from softnum.vectors.formal.quotients import exact_quotient, exact_remainder, exact_root
from softnum.vectors.formal.rounding import DIVIDE_BY_ZERO, Environment, Result, infinity, invalid, quiet, rounded

if TYPE_CHECKING:
    from softnum.formats.scalar import Format

__all__ = ["ARITHMETIC", "add", "fma", "multiply", "plus", "subtract"]


def convert(c: Circuit, numbers: list[Number], out: Format, env: Environment) -> Result:
    """x in another format."""
    (x,) = numbers
    cases = [(x.nan, quiet(c, x, x.signaling, out, env)), (x.infinite, infinity(c, x.sign, out, env))]
    return first_of(c, cases, rounded(c, exact_value(c, x), out, env))


def plus(c: Circuit, x: Exact, x_infinite: Bits, y: Number, out: Format, env: Environment) -> Result:
    """x + y, neither a NaN."""
    cases = [
        (x_infinite & y.infinite & (x.sign ^ y.sign), invalid(c, out, env)),
        (x_infinite, infinity(c, x.sign, out, env)),
        (y.infinite, infinity(c, y.sign, out, env)),
    ]
    return first_of(c, cases, rounded(c, exact_sum(c, x, exact_value(c, y), env.rounding == "down"), out, env))


def add(c: Circuit, numbers: list[Number], out: Format, env: Environment) -> Result:
    """x + y.

    >>> from softnum.reference.facts import format_of
    >>> from softnum.vectors.formal.decoding import decode
    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> c, fmt = Circuit(), format_of("e2m1fn")
    >>> numbers = [decode(c, c.input(name, 4), fmt) for name in "ab"]
    >>> c.output("sum", add(c, numbers, fmt, Environment("nearest_even", "saturate", "after", "canonical")).code)
    >>> evaluate(c, {"a": [2, 7], "b": [2, 1]})["sum"].tolist()  # 1 + 1 and 6 + 0.5
    [4, 7]
    """
    x, y = numbers
    return first_of(c, [nan_case(c, x, y, out, env)], plus(c, exact_value(c, x), x.infinite, y, out, env))


def subtract(c: Circuit, numbers: list[Number], out: Format, env: Environment) -> Result:
    """x - y; a NaN keeps its sign."""
    x, y = numbers
    return add(c, [x, y._replace(sign=y.sign ^ ~y.nan)], out, env)


def multiply(c: Circuit, numbers: list[Number], out: Format, env: Environment) -> Result:
    """x * y."""
    x, y = numbers
    infinite = x.infinite | y.infinite
    cases = [
        nan_case(c, x, y, out, env),
        (infinite & (x.zero | y.zero), invalid(c, out, env)),
        (infinite, infinity(c, x.sign ^ y.sign, out, env)),
    ]
    return first_of(c, cases, rounded(c, exact_product(c, x, y), out, env))


def fma(c: Circuit, numbers: list[Number], out: Format, env: Environment) -> Result:
    """x * y + z."""
    x, y, z = numbers
    infinite = x.infinite | y.infinite
    undefined = infinite & (x.zero | y.zero)
    pair = chosen_nan(c, x, y, env)
    chosen = chosen_nan(c, z, pair, env) if env.nan == "arm" else chosen_nan(c, pair, z, env)
    nan = quiet(c, chosen, x.signaling | y.signaling | z.signaling, out, env)
    if env.nan != "x86":
        nan = first_of(c, [(undefined & z.nan & ~z.signaling, invalid(c, out, env))], nan)
    cases = [(x.nan | y.nan | z.nan, nan), (undefined, invalid(c, out, env))]
    return first_of(c, cases, plus(c, exact_product(c, x, y), infinite, z, out, env))


def divide(c: Circuit, numbers: list[Number], out: Format, env: Environment) -> Result:
    """x / y; of P3109's formats x / 0 is NaN."""
    x, y = numbers
    sign = x.sign ^ y.sign
    endless = infinity(c, sign, out, env)
    undefined = (x.zero & y.zero) | (x.infinite & y.infinite)
    cases = [
        nan_case(c, x, y, out, env),
        (undefined | y.zero if out.p3109 else undefined, invalid(c, out, env)),
        (x.finite & y.zero, endless._replace(flags=endless.flags | DIVIDE_BY_ZERO)),
        (x.infinite | y.zero, endless),
        (y.infinite, rounded(c, Exact(sign, c.const(0, 1), 0), out, env)),
    ]
    return first_of(c, cases, rounded(c, exact_quotient(c, x, y, out, env), out, env))


def sqrt(c: Circuit, numbers: list[Number], out: Format, env: Environment) -> Result:
    """The square root."""
    (x,) = numbers
    cases = [
        (x.nan, quiet(c, x, x.signaling, out, env)),
        (x.sign & ~x.zero, invalid(c, out, env)),
        (x.infinite, infinity(c, c.const(0, 1), out, env)),
    ]
    return first_of(c, cases, rounded(c, exact_root(c, x, out, env), out, env))


def remainder(c: Circuit, numbers: list[Number], out: Format, env: Environment) -> Result:
    """x - n * y, n the integer nearest to x / y."""
    x, y = numbers
    cases = [
        nan_case(c, x, y, out, env),
        (x.infinite | y.zero, invalid(c, out, env)),
        (y.infinite, rounded(c, exact_value(c, x), out, env)),
    ]
    return first_of(c, cases, rounded(c, exact_remainder(c, x, y), out, env))


#: name -> what makes the circuit of numbers
ARITHMETIC: dict[str, Callable[..., Any]] = {
    "convert": convert, "add": add, "subtract": subtract, "multiply": multiply, "fma": fma, "divide": divide,
    "remainder": remainder, "sqrt": sqrt,
}  # fmt: skip

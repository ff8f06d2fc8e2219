"""Integers out of floats, and exponents, as circuits: IEEE 754-2019, clauses 5.8, 5.9 and 5.3.3."""

from __future__ import annotations

from softnum.reference.facts import FixedFacts, Format
from softnum.vectors.formal.choices import first_of
from softnum.vectors.formal.circuit import Bits, Circuit
from softnum.vectors.formal.numbers import Exact, Number, exact_value, leading_one
from softnum.vectors.formal.quotients import integral
from softnum.vectors.formal.rounding import (
    DIVIDE_BY_ZERO,
    INEXACT,
    INVALID,
    Environment,
    Result,
    goes_up,
    infinity,
    quiet,
    rounded,
)

__all__ = ["exponent_of", "round_to_integral", "to_integer"]


def _whole(c: Circuit, x: Number, env: Environment) -> tuple[Exact, Bits]:
    """A finite number rounded to an integer, and whether it was another."""
    value, lost = integral(c, x)
    up = goes_up(c, env, x.sign, value.magnitude[0], lost)
    magnitude = value.magnitude.extended(value.magnitude.width + 1)
    return value._replace(magnitude=magnitude + up.extended(magnitude.width)), lost.any


def round_to_integral(c: Circuit, x: Number, out: Format, env: Environment, exact: bool) -> Result:
    """A number rounded to an integer; ``exact``: INEXACT is raised where it was none."""
    value, changed = _whole(c, x, env)
    found = rounded(c, value, out, env)
    flags = found.flags | c.ite(changed, c.const(INEXACT, 5), 0)
    cases = [(x.nan, quiet(c, x, x.signaling, out, env)), (x.infinite, infinity(c, x.sign, out, env))]
    result = first_of(c, cases, found._replace(flags=flags))
    return result if exact else result._replace(flags=result.flags & ~INEXACT & 31)


def to_integer(c: Circuit, x: Number, out: FixedFacts, env: Environment, exact: bool, of_nan: int | None) -> Result:
    """A number as an integer of a type; ``env.nan``: whose results stand for what has none there; ``of_nan``: what does
    for a NaN, if the rule does not say it.

    >>> from softnum.reference.facts import format_of
    >>> from softnum.vectors.formal.decoding import decode
    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> c, env = Circuit(), Environment("nearest_even", "saturate", "after", "riscv")
    >>> found = to_integer(c, decode(c, c.input("a", 8), format_of("e5m2")), format_of("q8.0"), env, True, None)
    >>> c.output("code", found.code)
    >>> c.output("flags", found.flags)
    >>> [codes.tolist() for codes in evaluate(c, {"a": [0x41, 0xFB, 0x7E]}).values()]  # 2.5, -57344 and NaN
    [[2, 128, 127], [1, 16, 16]]
    """
    lowest, highest = out.lowest, out.max_code
    nan, low, high = {
        "riscv": (highest, lowest, highest), "arm": (0, lowest, highest),
        "x86": (lowest if out.signed else highest,) * 3,
    }[env.nan]  # fmt: skip
    nan = nan if of_nan is None else of_nan
    value, changed = _whole(c, x, env)
    magnitude = value.magnitude.placed(value.unit)
    magnitude = magnitude.extended(max(magnitude.width, out.bits) + 1)
    beyond = x.infinite | c.ite(x.sign, magnitude > -lowest, magnitude > highest)
    code = magnitude[: out.bits]
    code = c.ite(x.sign, c.const(0, out.bits) - code, code)
    code = c.ite(beyond, c.ite(x.sign, c.const(low, out.bits), high), code)
    inexact = c.ite(changed, c.const(INEXACT if exact else 0, 5), 0)
    flags = c.ite(x.nan | beyond, c.const(INVALID, 5), inexact)
    return Result(c.ite(x.nan, c.const(nan, out.bits), code), flags)


def exponent_of(c: Circuit, numbers: list[Number], out: Format, env: Environment) -> Result:
    """logb: the exponent of a number, as a value."""
    (x,) = numbers
    value = exact_value(c, x)
    top = leading_one(c, value.magnitude)
    width = max(top.width, value.unit.bit_length()) + 2
    exponent = top.extended(width) + value.unit
    sign = exponent[width - 1]
    found = rounded(c, Exact(sign, c.ite(sign, c.const(0, width) - exponent, exponent), 0), out, env)
    below = infinity(c, c.const(1, 1), out, env)
    cases = [
        (x.nan, quiet(c, x, x.signaling, out, env)),
        (x.infinite, infinity(c, c.const(0, 1), out, env)),
        (x.zero, below._replace(flags=below.flags | DIVIDE_BY_ZERO)),
    ]
    return first_of(c, cases, found)

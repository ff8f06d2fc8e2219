"""Comparisons, minima and maxima as circuits: IEEE 754-2019, clauses 5.11 and 9.6, and others' rules of these.

`softnum.vectors.plans.fpu` names the sources of the rules.
"""

from __future__ import annotations

from softnum.reference.facts import Format, TaperedFacts
from softnum.vectors.formal.choices import first_of, nan_case
from softnum.vectors.formal.circuit import Bits, Circuit
from softnum.vectors.formal.numbers import Number, exact_value
from softnum.vectors.formal.rounding import INVALID, Environment, Result, infinity, rounded
from softnum.vectors.formal.value_tables import ValueFacts
from softnum.vectors.plans.operations import COMPARISONS

__all__ = ["compared", "extremum", "orders"]


def orders(c: Circuit, x: Number, y: Number) -> tuple[Bits, Bits]:
    """Whether x < y, and whether x == y, of two numbers that are not NaN; -0 equals +0."""
    a, b = exact_value(c, x), exact_value(c, y)
    unit = min(a.unit, b.unit)
    left, right = a.magnitude.placed(a.unit - unit), b.magnitude.placed(b.unit - unit)
    width = max(left.width, right.width) + 1
    endless = c.const(1 << (width - 1), width)
    left = c.ite(x.infinite, endless, left.extended(width))
    right = c.ite(y.infinite, endless, right.extended(width))
    zeros = x.zero & y.zero
    equal = zeros | (~(x.sign ^ y.sign) & (left == right))
    less = c.ite(x.sign ^ y.sign, x.sign & ~zeros, c.ite(x.sign, right < left, left < right))
    return less, equal


def compared(c: Circuit, op: str, numbers: list[Number], formats: list[Format]) -> Result:
    """One of ``COMPARISONS``, as one bit; between posits and takums, NaR is the least.

    >>> from softnum.reference.facts import format_of
    >>> from softnum.vectors.formal.decoding import decode
    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> c, fmt = Circuit(), format_of("e2m1fn")
    >>> x, y = (decode(c, c.input(name, 4), fmt) for name in "ab")
    >>> c.output("less", compared(c, "compare_quiet_less", [x, y], [fmt, fmt]).code)
    >>> evaluate(c, {"a": [1, 8, 9], "b": [2, 0, 8]})["less"].tolist()  # 0.5 < 1, -0 < 0, -0.5 < -0
    [1, 0, 1]
    """
    x, y = numbers
    signaling, wanted = COMPARISONS[op]
    less, equal = orders(c, x, y)
    unordered, raised = x.nan | y.nan, x.signaling | y.signaling
    if all(isinstance(fmt, TaperedFacts) for fmt in formats):
        less, equal = (x.nan & ~y.nan) | (less & ~unordered), (x.nan & y.nan) | (equal & ~unordered)
        unordered = c.const(0, 1)
    elif signaling:
        raised = unordered
    holds = c.const(0, 1)
    for order, condition in ((-1, less), (0, equal)):
        holds = holds | condition if order in wanted else holds
    return Result(holds & ~unordered, c.ite(raised, c.const(INVALID, 5), 0))


def extremum(
    c: Circuit, op: str, rule: str, numbers: list[Number], codes: list[Bits], formats: list[Format], out: Format,
    env: Environment,
) -> Result:  # fmt: skip
    """minimum, maximum, minimum_number or maximum_number by a rule of ``MINMAX_RULES``."""
    side = op.removesuffix("_number")
    x, y = numbers
    if rule == "x86":
        less, equal = orders(c, x, y)
        unordered = x.nan | y.nan
        first = ~unordered & (less if side == "minimum" else ~less & ~equal)
        return Result(c.ite(first, codes[0], codes[1]), c.ite(unordered, c.const(INVALID, 5), 0))
    if rule in ("riscv", "cuda"):
        return _extremum(c, f"{side}_number", numbers, out, env)
    if rule == "ieee2019" or (rule == "arm" and op == side):
        found = _extremum(c, op, numbers, out, env)
        if isinstance(out, ValueFacts) and all(fmt == out for fmt in formats):  # a NaN is an operand's, as it stands
            number = op.endswith("_number")
            nan = x.nan & y.nan if number else x.nan | y.nan
            kept = c.ite(y.nan if number else ~x.nan, codes[1], codes[0])
            found = found._replace(code=c.ite(nan, kept, found.code))
        return found
    number, propagated = (_extremum(c, name, numbers, out, env) for name in (f"{side}_number", side))
    return first_of(c, [(x.signaling | y.signaling, propagated)], number)


def _extremum(c: Circuit, op: str, numbers: list[Number], out: Format, env: Environment) -> Result:
    """Of IEEE 754-2019, 9.6: -0 lies below +0; of ..._number, a NaN gives way to a number."""
    x, y = numbers
    less, equal = orders(c, x, y)
    less |= equal & x.sign & ~y.sign
    greater = ~less & ~(equal & ~(x.sign ^ y.sign))
    first = y.nan | (~x.nan & (~less if op.startswith("maximum") else ~greater))
    nan, propagated = nan_case(c, x, y, out, env)
    raised = c.ite(x.signaling | y.signaling, c.const(INVALID, 5), 0)
    results = [first_of(c, [(n.infinite, infinity(c, n.sign, out, env))], rounded(c, exact_value(c, n), out, env))
               for n in (x, y)]  # fmt: skip
    chosen = first_of(c, [(first, results[0])], results[1])
    chosen = chosen._replace(flags=chosen.flags | raised)
    return first_of(c, [((x.nan & y.nan) if op.endswith("_number") else nan, propagated)], chosen)

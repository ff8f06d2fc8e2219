"""Sums that round at every step, as circuits: multiply-add units with lanes, chunks, compensation, and fma chains."""

from __future__ import annotations

from typing import Any

from softnum.mac.fused import FmaChainUnit
from softnum.mac.mad import MadUnit
from softnum.reference.facts import Format
from softnum.reference.mac import reduction_order
from softnum.reference.rounding import environment_of
from softnum.reference.rules import rule_for
from softnum.vectors.formal.arithmetic import add, fma, multiply, subtract
from softnum.vectors.formal.circuit import Bits, Circuit
from softnum.vectors.formal.decoding import decode, facts_of
from softnum.vectors.formal.numbers import Number
from softnum.vectors.formal.rounding import Environment

__all__ = ["chained", "rounds", "stepwise"]


def rounds(
    fmt: Format, rounding: str, overflow: str | None, *others: Format, flush_results: str | None = None
) -> Environment:
    """How a unit rounds to a format: an overflow rule that only others of its formats know leaves it its default.

    >>> from softnum.reference.facts import format_of
    >>> rounds(format_of("q4.4"), "down", "infinity", format_of("e5m2"))[:2]
    ('down', 'saturate')
    """
    env = environment_of(fmt, rounding, rule_for(overflow, fmt, *others))
    return Environment(env.rounding, env.overflow, "after", "canonical", flush_results)


class _Steps:
    """The steps of a `MadUnit`, in a circuit."""

    def __init__(self, c: Circuit, unit: MadUnit) -> None:
        self.c, self.unit = c, unit
        self.operands = [facts_of(fmt) for fmt in unit.operand]
        self.accumulator = facts_of(unit.accumulator)
        self.outer = facts_of(unit.result)
        self.product = None if unit.product is None else facts_of(unit.product)
        self.formats = [f for f in (self.accumulator, self.outer, self.product) if f is not None]

    def read(self, code: Bits, fmt: Format, operand: bool = False) -> Number:
        flushes = self.unit.flush_inputs
        return decode(self.c, code, fmt, flushes is True or (flushes == "sums" and not operand))

    def env(self, fmt: Format, rounding: str | None = None) -> Environment:
        unit = self.unit
        return rounds(fmt, rounding or unit.rounding, unit.overflow, *self.formats, flush_results=unit.flush_results)

    def two(self, operation, x: Number, y: Number, fmt: Format) -> Bits:
        return operation(self.c, [x, y], fmt, self.env(fmt)).code

    def plus(self, total: Bits, error: Bits, term, fmt: Format) -> tuple[Bits, Bits]:
        """A running sum and its compensation one term later; term(z): the code of z + term, rounded."""
        acc = self.read(total, fmt)
        if not self.unit.compensated:
            return term(acc), error
        e = self.read(error, fmt)
        y = self.read(term(e._replace(sign=e.sign ^ ~e.nan)), fmt)
        t = self.two(add, acc, y, fmt)
        moved = self.two(subtract, self.read(t, fmt), acc, fmt)
        return t, self.two(subtract, self.read(moved, fmt), y, fmt)

    def term_of(self, pair: tuple[Bits, Bits]):
        """What adds a product to a number."""
        c, fmt, env = self.c, self.accumulator, self.env(self.accumulator)
        factors = [self.read(code, f, True) for code, f in zip(pair, self.operands, strict=True)]
        if self.product is None:
            return lambda z: fma(c, [*factors, z], fmt, env).code
        rounded = multiply(c, factors, self.product, self.env(self.product, self.unit.product_mode)).code
        p = self.read(rounded, self.product)
        return lambda z: add(c, [z, p], fmt, env).code

    def chunk(self, pairs: list[Any], start: Bits | None) -> Bits:
        """The sum of a chunk's lanes; start: where the only lane starts, or what their reduction begins with."""
        lanes, fmt, zero = self.unit.lanes, self.accumulator, self.c.const(0, self.accumulator.bits)
        sums, errors = [zero] * lanes, [zero] * lanes
        if lanes == 1 and start is not None:
            sums = [start]
        for k, pair in enumerate(pairs):
            lane = k % lanes
            sums[lane], errors[lane] = self.plus(sums[lane], errors[lane], self.term_of(pair), fmt)
        if lanes > 1 and start is not None:
            sums = [start, *sums]
        for i, j in reduction_order(len(sums), self.unit.reduction):
            sums[i] = self.two(add, self.read(sums[i], fmt), self.read(sums[j], fmt), fmt)
        return sums[0]


def stepwise(c: Circuit, unit: MadUnit, pairs: list[tuple[Bits, Bits]], start: Bits | None) -> Bits:
    """The code of a `MadUnit`'s sum.

    Parameters
    ----------
    c : Circuit
    unit : MadUnit
    pairs : list of (Bits, Bits)
        The codes of each product's factors.
    start : Bits or None
        The code of C.

    Raises
    ------
    ValueError
        If a format has no circuit.

    Examples
    --------
    Three products in two lanes: 1 + 6 and 1, then 8 of a format that ends at 7.

    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> c = Circuit()
    >>> pairs = [(c.input(f"a{k}", 4), c.const(2, 4)) for k in range(3)]
    >>> unit = MadUnit("e3m2fn", operand="e2m1fn", lanes=2, rounding="down")
    >>> c.output("sum", stepwise(c, unit, pairs, None))
    >>> evaluate(c, {"a0": [2], "a1": [2], "a2": [7]})["sum"].tolist()
    [24]
    """
    steps = _Steps(c, unit)
    if unit.flush_inputs == "positive":
        pairs = [tuple(_positive(c, code, f) for code, f in zip(pair, steps.operands, strict=True)) for pair in pairs]
        start = None if start is None else _positive(c, start, steps.outer)
    if unit.chunk is None:
        return steps.chunk(pairs, start)
    fmt = steps.outer
    total, error = (c.const(0, fmt.bits) if start is None else start), c.const(0, fmt.bits)
    for first in range(0, len(pairs), unit.chunk):
        part = steps.read(steps.chunk(pairs[first : first + unit.chunk], None), steps.accumulator)
        total, error = steps.plus(total, error, lambda z, part=part: steps.two(add, z, part, fmt), fmt)
    return total


def _positive(c: Circuit, code: Bits, fmt: Format) -> Bits:
    """+0 in place of a zero or a subnormal number."""
    return c.ite(decode(c, code, fmt, True).zero, 0, code)


def chained(c: Circuit, unit: FmaChainUnit, pairs: list[tuple[Bits, Bits]], start: Bits | None) -> Bits:
    """The code of a `FmaChainUnit`'s sum, the last period of its order filled up with products that are +0.

    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> c = Circuit()
    >>> pairs = [(c.input(f"a{k}", 6), c.const(12, 6)) for k in range(2)]
    >>> c.output("sum", chained(c, FmaChainUnit("e3m2fn", operand="e3m2fn"), pairs, None))
    >>> evaluate(c, {"a0": [12], "a1": [16]})["sum"].tolist()  # 1 + 2
    [18]
    """
    operands, fmt = [facts_of(f) for f in unit.operand], facts_of(unit.accumulator)
    env = rounds(fmt, unit.rounding, unit.overflow, flush_results=unit.flush_results)
    nothing = tuple(c.const(0, f.bits) for f in operands)
    order = unit.k_order or (0,)
    total = c.const(0, fmt.bits) if start is None else start
    for k in (first + k for first in range(0, len(pairs), len(order)) for k in order):
        codes = zip((*(pairs[k] if k < len(pairs) else nothing), total), (*operands, fmt), strict=True)
        total = fma(c, [decode(c, code, f, unit.flush_inputs) for code, f in codes], fmt, env).code
    return total

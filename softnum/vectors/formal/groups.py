"""Sums of groups of products as circuits: exact, bulk-normalized or product by product, and added to an accumulator.

Sources: those of `softnum.GroupedDotUnit`.
"""

from __future__ import annotations

from softnum.mac.grouped import GroupedDotUnit
from softnum.reference.facts import Format
from softnum.vectors.formal.aligned import Kinds, Signed, aligned, kinds_of, largest_of, placed_at, product_term, sum_of
from softnum.vectors.formal.arithmetic import add, multiply
from softnum.vectors.formal.circuit import Bits, Circuit
from softnum.vectors.formal.decoding import decode, facts_of
from softnum.vectors.formal.numbers import Exact, Number, exact_product, exact_sum, exact_value
from softnum.vectors.formal.rounding import Environment, Result, infinity, rounded
from softnum.vectors.formal.running import rounds

__all__ = ["exact_terms", "grouped"]

_OVERFLOW = 2  # the bit of the flags


def exact_terms(
    c: Circuit, pairs: list[tuple[Number, Number]], start: Number | None, down: bool
) -> tuple[Kinds, Exact]:
    """The exact sum of products and of a number that it starts from, and which of them are no numbers.

    >>> from softnum.reference.facts import format_of
    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> c, fmt = Circuit(), format_of("e2m1fn")
    >>> x = decode(c, c.input("a", 4), fmt)
    >>> kinds, total = exact_terms(c, [(x, x), (x, x)], x, False)
    >>> c.output("magnitude", total.magnitude)
    >>> int(evaluate(c, {"a": [7]})["magnitude"][0]) * 2.0**total.unit  # 36 + 36 + 6
    78.0
    """
    none = c.const(0, 1)
    nan = invalid = plus = minus = none
    total = None
    if start is not None:
        nan, plus, minus = start.nan, start.infinite & ~start.sign, start.infinite & start.sign
        total = exact_value(c, start)
    for x, y in pairs:
        infinite, sign = x.infinite | y.infinite, x.sign ^ y.sign
        nan |= x.nan | y.nan
        invalid |= infinite & (x.zero | y.zero)
        plus, minus = plus | (infinite & ~sign), minus | (infinite & sign)
        term = exact_product(c, x, y)
        total = term if total is None else exact_sum(c, total, term, down)
    return Kinds(nan, invalid, plus, minus), total


class _Group:
    """How a `GroupedDotUnit` sums, in a circuit."""

    def __init__(self, c: Circuit, unit: GroupedDotUnit) -> None:
        self.c, self.unit = c, unit
        self.operands = [facts_of(f) for f in unit.operand]
        self.accumulator, self.partial = facts_of(unit.accumulator), facts_of(unit.partial_format)
        self.sum_env = self.env(self.accumulator, unit.rounding)
        self.partial_env = None if unit.partial_rounding is None else self.env(self.partial, unit.partial_rounding)

    def env(self, fmt: Format, rounding: str) -> Environment:
        return rounds(fmt, rounding, self.unit.overflow, flush_results=self.unit.flush_results)

    def limited(self, found: Result, fmt: Format, env: Environment) -> Bits:
        """The code; infinity where a rounding to odd overflows and nothing saturates."""
        if env.rounding != "to_odd" or env.overflow != "infinity" or not fmt.infinities:
            return found.code
        endless = infinity(self.c, found.code[fmt.bits - 1], fmt, env).code
        return self.c.ite(found.flags[_OVERFLOW], endless, found.code)

    def read(self, code: Bits, fmt: Format) -> Number:
        return decode(self.c, code, fmt, self.unit.flush_inputs)

    def added(self, kinds: Kinds, total: Exact, acc: Number) -> Bits:
        """A sum, exact as it is, added to the accumulator."""
        c, env, fmt = self.c, self.sum_env, self.accumulator
        exact = exact_sum(c, total, exact_value(c, acc), env.rounding == "down")
        every = Kinds(
            kinds.nan | acc.nan, kinds.invalid, kinds.plus | (acc.infinite & ~acc.sign),
            kinds.minus | (acc.infinite & acc.sign),
        )  # fmt: skip
        return self.limited(every.decide(c, fmt, env, rounded(c, exact, fmt, env)), fmt, env)

    def bulk(self, pairs: list[tuple[Number, Number]]) -> tuple[Kinds, Exact]:
        """Products brought to multiples of one unit, rounded to odd, and added."""
        c, kept = self.c, self.unit.fraction_bits
        terms = [product_term(c, x, y, self.operands) for x, y in pairs]
        largest, base, most = largest_of(c, terms)
        jammed = []
        for term in terms:
            cut, lost = aligned(c, term, largest, base, kept)
            jammed.append(Signed(cut.sign, cut.magnitude | lost.extended(cut.magnitude.width)))
        total = placed_at(sum_of(c, jammed), largest, most, base - kept + self.unit.scale)
        return kinds_of(c, terms), total

    def steps(self, pairs: list[tuple[Number, Number]], short: bool) -> Bits:
        """Each product rounded, and each sum; short: a +0 is added at the end."""
        c, fmt, env = self.c, self.partial, self.partial_env
        code = c.const(0, fmt.bits)

        def plus(code: Bits, y: Number) -> Bits:
            return self.limited(add(c, [self.read(code, fmt), y], fmt, env), fmt, env)

        for i, (x, y) in enumerate(pairs):
            product = self.limited(multiply(c, [x._replace(unit=x.unit + self.unit.scale), y], fmt, env), fmt, env)
            first = i == 0 and self.unit.zeros == "signed"
            code = product if first else plus(code, self.read(product, fmt))
        return plus(code, self.read(c.const(0, fmt.bits), fmt)) if short else code

    def step(self, pairs: list[tuple[Number, Number]], acc: Bits) -> Bits:
        """The accumulator after one more group."""
        c, unit, before = self.c, self.unit, self.read(acc, self.accumulator)
        short = len(pairs) < unit.terms
        if unit.reduction == "rounded":
            code = self.steps(pairs, short)
        else:
            if unit.reduction == "bulk":
                kinds, total = self.bulk(pairs)
            else:
                down = (unit.partial_rounding or unit.rounding) == "down"
                kinds, total = self.exact(pairs, unit.zeros == "positive" or short, down)
            if self.partial_env is None:
                return self.added(kinds, total, before)
            env = self.partial_env
            found = kinds.decide(c, self.partial, env, rounded(c, total, self.partial, env))
            code = self.limited(found, self.partial, env)
        s = self.read(code, self.partial)
        return self.limited(add(c, [s, before], self.accumulator, self.sum_env), self.accumulator, self.sum_env)

    def exact(self, pairs: list[tuple[Number, Number]], from_zero: bool, down: bool) -> tuple[Kinds, Exact]:
        """The exact sum of products times their power of two."""
        scaled = [(x._replace(unit=x.unit + self.unit.scale), y) for x, y in pairs]
        start = decode(self.c, self.c.const(0, self.accumulator.bits), self.accumulator) if from_zero else None
        return exact_terms(self.c, scaled, start, down)


def grouped(c: Circuit, unit: GroupedDotUnit, pairs: list[tuple[Bits, Bits]], start: Bits | None) -> Bits:
    """The code of a `GroupedDotUnit`'s sum; pairs: the codes of each product's factors, start: the code of C.

    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> c = Circuit()
    >>> pairs = [(c.input(f"a{k}", 4), c.const(2, 4)) for k in range(2)]
    >>> c.output("sum", grouped(c, GroupedDotUnit(2, "e3m2", operand="e2m1fn"), pairs, None))
    >>> evaluate(c, {"a0": [7], "a1": [1]})["sum"].tolist()  # 6 + 0.5, and to odd: 7
    [23]
    """
    group = _Group(c, unit)
    acc = start if start is not None else c.const(0, group.accumulator.bits)
    for first in range(0, len(pairs), unit.terms):
        numbers = [
            tuple(group.read(code, f) for code, f in zip(pair, group.operands, strict=True))
            for pair in pairs[first : first + unit.terms]
        ]
        acc = group.step(numbers, acc)
    return acc

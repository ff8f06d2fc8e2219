"""Single operations of a specification: everything that one product, or one addition of two numbers, may give.

All of it is `softnum.reference`'s arithmetic. A number that was rounded to the accumulator is its code, an int; every
other operand is a `Term`. What made a number is kept beside it, as nested tuples of the forms of
`softnum.inspect.permitted.witness`.
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

from softnum.inspect.permitted.freedom import Freedom
from softnum.reference.facts import format_of
from softnum.reference.operations import exact_product, exact_sum
from softnum.reference.rounding import deliver, environment_of
from softnum.reference.values import Value, decode, flushed, is_subnormal

__all__ = ["Exceeded", "Machine", "NAN", "Term", "plain_value"]

NAN = Value("nan", 0, 1, 2)


class Exceeded(Exception):
    """More would have to be looked at than was allowed."""


class Term(NamedTuple):
    """A number that is no code of the accumulator's; `raw`: a product that only a number may be added to."""

    value: Value
    raw: bool = False


def plain_value(x: Value) -> Value:
    """A value so that equal ones are equal: reduced, and one NaN for all."""
    if x.kind == "finite":
        common = gcd(x.numerator, x.denominator)
        return Value("finite", x.sign, x.numerator // common, x.denominator // common)
    return Value("inf", x.sign) if x.kind == "inf" else NAN


class Machine:
    """The operations of a specification; `effort` limits how many additions are looked at."""

    def __init__(self, freedom: Freedom, effort: int | None = None) -> None:
        self.freedom = freedom
        self.operands = tuple(map(format_of, freedom.operand))
        self.accumulator, self.product, self.output = (
            format_of(f) for f in (freedom.accumulator, freedom.product, freedom.output)
        )
        self.ways = self._environments(freedom.accumulator)
        self.product_ways = self._environments(freedom.product)
        self.output_ways = self._environments(freedom.output)
        self.reads = freedom.reads
        self.flushing = freedom.flush_inputs is not False or freedom.flush_results != (None,)
        self.unrounded = freedom.intermediate != "rounded"
        self.rounded = freedom.intermediate != "exact"
        self.left = effort
        self._sums: dict = {}
        self._read: dict = {}

    def _environments(self, fmt) -> list:
        f = self.freedom
        return [environment_of(format_of(fmt), m, f.overflow_of(fmt), flush_results=how) for m, how in f.ways]

    # -- single operations ---------------------------------------------------------------------------------------------
    def delivered(self, x: Value, fmt, env) -> int:
        """The code of an exact result; ValueError where the format has none."""
        if x.kind in ("nan", "invalid") and not fmt.has_nan:
            raise ValueError(f"permitted: a result is NaN, and {fmt} has no code for it")
        code, _ = deliver(x if x.kind in ("finite", "inf") else NAN, fmt, env)
        return code

    def read(self, item, flush: bool) -> Value:
        """The value of an operand, as an addition reads it."""
        if not isinstance(item, int):
            return item.value
        key = item, flush
        value = self._read.get(key)
        if value is None:
            value = decode(item, self.accumulator)
            value = flushed(value, item, self.accumulator) if flush else value
            self._read[key] = value = plain_value(value)
        return value

    def readings(self, item) -> tuple[bool, ...]:
        """In which ways an operand can be read, those alone that differ."""
        if self.reads == (False,) or not isinstance(item, int) or not is_subnormal(item, self.accumulator):
            return (False,)
        return self.reads

    def sums(self, x, y) -> dict:
        """Everything that the addition of two operands may give: {item: (op, way, (read x, read y))}.

        Of op "sum" it is not rounded, and the way says the sign of an exact zero.
        """
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Exceeded
        found = self._sums.get((x, y))
        if found is not None:
            return found
        found = {}
        if not (isinstance(x, Term) and x.raw and isinstance(y, Term) and y.raw):
            for fx in self.readings(x):
                for fy in self.readings(y):
                    for way, env in enumerate(self.ways):
                        exact = exact_sum(self.read(x, fx), self.read(y, fy), env)
                        if self.rounded:
                            code = self.delivered(exact, self.accumulator, env)
                            found.setdefault(code, ("add", way, (fx, fy)))
                        if self.unrounded:
                            found.setdefault(Term(plain_value(exact)), ("sum", way, (fx, fy)))
        self._sums[x, y] = found
        return found

    # -- leaves --------------------------------------------------------------------------------------------------------
    def leaf(self, a: int, b: int, bare: bool = False) -> dict:
        """Everything that a product may be as an operand: {item: what made it}.

        bare: as the next term of a running sum, which nothing was added to before.
        """
        found: dict = {}
        products = {}
        for fa in self._factor_readings(a, 0):
            for fb in self._factor_readings(b, 1):
                x, y = (
                    flushed(decode(code, fmt), code, fmt) if flush else decode(code, fmt)
                    for code, fmt, flush in zip((a, b), self.operands, (fa, fb), strict=True)
                )
                products.setdefault(plain_value(exact_product(x, y, self.ways[0])), (fa, fb))
        for exact, reads in products.items():
            made = ("exact", 0, reads)
            if "rounded" in self.freedom.products:
                for way, env in enumerate(self.product_ways):
                    code = self.delivered(exact, self.product, env)
                    for item, flush in self._rounded_product(code):
                        found.setdefault(item, ("product", 0, reads, way, flush))
            if "exact" in self.freedom.products:
                found.setdefault(Term(exact), made)
            elif "fused" in self.freedom.products:
                found.setdefault(Term(exact, True), made)
            if "fused" in self.freedom.products and not bare:
                for item, (op, way, read) in self.sums(Term(exact, True), 0).items():
                    found.setdefault(item, (op, made, ("zero",), way, read))
        return found if bare else self.closed(found)

    def _factor_readings(self, code: int, which: int) -> tuple[bool, ...]:
        return self.reads if is_subnormal(code, self.operands[which]) else (False,)

    def _rounded_product(self, code: int):
        """The operands that a rounded product can be, with whether it was flushed when it was read."""
        if self.freedom.product == self.freedom.accumulator:
            yield code, False
            return
        flushes = self.reads if is_subnormal(code, self.product) else (False,)
        for flush in flushes:
            value = decode(code, self.product)
            yield Term(plain_value(flushed(value, code, self.product) if flush else value)), flush

    def closed(self, found: dict) -> dict:
        """With what becomes of numbers that +0 is added to, or whose zeros may have either sign."""
        if self.freedom.zeros == "ieee":
            return found
        fresh = list(found)
        while fresh:
            more = []
            for item in fresh:
                if isinstance(item, Term) and item.raw:
                    continue
                for new, made in self._touched(item, found[item]):
                    if new not in found:
                        found[new] = made
                        more.append(new)
            fresh = more
        return found

    def _touched(self, item, made):
        value = self.read(item, False)
        zero = value.kind == "finite" and not value.numerator
        if self.freedom.zeros == "either" and zero and self.accumulator.negative_zero:
            other = value._replace(sign=1 - value.sign)
            code = self.delivered(other, self.accumulator, self.ways[0])
            yield (code if isinstance(item, int) else Term(other)), ("sign", made)
        small = isinstance(item, int) and self.flushing and is_subnormal(item, self.accumulator)
        if zero or small or not isinstance(item, int) or value.kind == "inf":  # which saturation makes a number
            for new, (op, way, reads) in self.sums(item, 0).items():
                yield new, (op, made, ("zero",), way, reads)

    # -- results -------------------------------------------------------------------------------------------------------
    def results(self, sums: dict) -> dict[int, tuple]:
        """The codes of the output that finished sums become: {code: what made it}."""
        finished: dict[int, tuple] = {}
        for item, made in sums.items():
            if isinstance(item, int):
                finished.setdefault(item, made)
            elif not item.raw:
                for way, env in enumerate(self.ways):
                    code = self.delivered(item.value, self.accumulator, env)
                    finished.setdefault(code, ("deliver", made, way))
        if self.freedom.output == self.freedom.accumulator:
            return finished
        out: dict[int, tuple] = {}
        for item, made in finished.items():
            for flush in self.readings(item):
                for way, env in enumerate(self.output_ways):
                    code = self.delivered(self.read(item, flush), self.output, env)
                    out.setdefault(code, ("output", made, way, flush))
        return out

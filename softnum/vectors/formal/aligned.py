"""Sums of aligned terms as circuits: what tensor cores do, in one stage or in two.

A term has the exponent that hardware gives it: of a product the sum of its factors', which is not normalised, of a
subnormal number its format's lowest. It is cut at so many bits below the largest, and what is left is added exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from softnum.mac.fused import FusedDotUnit
from softnum.mac.two_stage import TwoStageDotUnit
from softnum.reference.facts import Format
from softnum.vectors.formal.arithmetic import add
from softnum.vectors.formal.choices import first_of
from softnum.vectors.formal.circuit import Bits, Circuit
from softnum.vectors.formal.decoding import decode, facts_of
from softnum.vectors.formal.numbers import Exact, Number, leading_one
from softnum.vectors.formal.rounding import Environment, Result, infinity, invalid, rounded
from softnum.vectors.formal.running import rounds

if TYPE_CHECKING:
    from softnum.mac.mad import Unit

__all__ = [
    "Kinds", "Signed", "Term", "aligned", "fused", "fused_step", "kinds_of", "largest_of", "placed_at", "product_term",
    "sum_of", "term_of", "times", "two_stage",
]  # fmt: skip

_OVERFLOW = 2  # the bit of the flags
_MOST_SPAN = 1 << 13  # places that a sum may be shifted by


class Term(NamedTuple):
    """(-1)**sign * significand * 2**(exponent + base - fraction), unless a factor is NaN or infinite; ``most`` is the
    largest exponent there can be. ``counts``: whether its exponent takes part in the largest."""

    nan: Bits
    invalid: Bits  # infinity times zero
    infinite: Bits
    sign: Bits
    significand: Bits
    fraction: int
    exponent: Bits
    base: int
    most: int
    counts: Bits


class Kinds(NamedTuple):
    """Of some terms: whether one is a NaN, infinity times zero, an infinity of either sign."""

    nan: Bits
    invalid: Bits
    plus: Bits
    minus: Bits

    @property
    def undefined(self) -> Bits:
        """Whether the sum is a NaN."""
        return self.nan | self.invalid | (self.plus & self.minus)

    def decide(self, c: Circuit, out: Format, env: Environment, otherwise: Result) -> Result:
        """The result where one of them decides, else another."""
        endless = infinity(c, self.minus, out, env)
        return first_of(c, [(self.undefined, invalid(c, out, env)), (self.plus | self.minus, endless)], otherwise)


class Signed(NamedTuple):
    """A sign and a magnitude."""

    sign: Bits
    magnitude: Bits


def _any(c: Circuit, bits: Sequence[Bits]) -> Bits:
    found = c.const(0, 1)
    for bit in bits:
        found |= bit
    return found


def kinds_of(c: Circuit, terms: Sequence[Term]) -> Kinds:
    """What the terms are that are no numbers."""
    infinite = [t.infinite & ~t.nan & ~t.invalid for t in terms]
    return Kinds(
        _any(c, [t.nan for t in terms]), _any(c, [t.invalid for t in terms]),
        _any(c, [i & ~t.sign for i, t in zip(infinite, terms, strict=True)]),
        _any(c, [i & t.sign for i, t in zip(infinite, terms, strict=True)]),
    )  # fmt: skip


def term_of(c: Circuit, x: Number, fmt: Format, of_zero: int | None) -> Term:
    """A number as a term; ``of_zero``: the exponent of a zero, which else does not count."""
    none, lowest = c.const(0, 1), x.unit + fmt.mantissa_bits
    base = lowest if of_zero is None else min(lowest, of_zero)
    most = x.most + lowest - base
    size = max(most if of_zero is None else max(most, of_zero - base), 1).bit_length()
    exponent = x.shift.extended(size).sized(size) + (lowest - base)
    if of_zero is not None:
        exponent = c.ite(x.zero, of_zero - base, exponent)
    number = ~x.nan & ~x.infinite
    counts = number if of_zero is not None else x.finite
    return Term(x.nan, none, x.infinite, x.sign, x.significand, fmt.mantissa_bits, exponent, base,
                most if of_zero is None else max(most, of_zero - base), counts)  # fmt: skip


def product_term(c: Circuit, x: Number, y: Number, formats: Sequence[Format], of_zero: int | None = None) -> Term:
    """The exact product of two numbers as a term.

    >>> from softnum.reference.facts import format_of
    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> c, fmt = Circuit(), format_of("e2m1fn")
    >>> term = product_term(c, *(decode(c, c.input(name, 4), fmt) for name in "ab"), (fmt, fmt))
    >>> c.output("significand", term.significand)
    >>> c.output("exponent", term.exponent)
    >>> [int(v[0]) for v in evaluate(c, {"a": [7], "b": [7]}).values()], term.base  # 6 * 6 = 9/4 * 2**(4 + 0)
    ([9, 4], 0)
    """
    return times(c, *(term_of(c, v, f, of_zero) for v, f in zip((x, y), formats, strict=True)))


def times(c: Circuit, p: Term, q: Term) -> Term:
    """The exact product of two terms."""
    width, size = p.significand.width + q.significand.width, max(p.most + q.most, 1).bit_length()
    nan, infinite = p.nan | q.nan, p.infinite | q.infinite
    zero = [~t.infinite & ~t.significand.any() for t in (p, q)]
    undefined = ~nan & (p.invalid | q.invalid | (infinite & (zero[0] | zero[1])))
    return Term(
        nan, undefined, infinite, p.sign ^ q.sign, p.significand.extended(width) * q.significand.extended(width),
        p.fraction + q.fraction, p.exponent.extended(size).sized(size) + q.exponent.extended(size).sized(size),
        p.base + q.base, p.most + q.most, p.counts & q.counts,
    )  # fmt: skip


def largest_of(c: Circuit, terms: Sequence[Term], floor: int | None = None) -> tuple[Bits, int, int]:
    """(the largest exponent of the terms that count, what it counts from, the most it can be); at least a floor."""
    base = min(t.base for t in terms)
    floor = base if floor is None else max(floor, base)
    most = max(floor - base, *(t.base - base + t.most for t in terms))
    if most > _MOST_SPAN:
        raise ValueError(
            f"no circuit: the terms' exponents span {most} binades, from {base}; circuits of aligned sums have at most "
            f"{_MOST_SPAN}: state min_exponent or zero_exponent nearer to the formats' own, or prove it by exhaustion"
        )
    size = max(most, 1).bit_length()
    largest = c.const(floor - base, size)
    for t in terms:
        exponent = t.exponent.extended(size).sized(size) + (t.base - base)
        largest = c.ite(t.counts & (largest < exponent), exponent, largest)
    return largest, base, most


def shifted_right(c: Circuit, x: Bits, places: Bits) -> tuple[Bits, Bits]:
    """A number shifted right by any number of places, and whether anything is lost."""
    x = x.extended(places.width)
    return x >> places, (x & ((c.const(1, x.width) << places) - 1)).any()


def _in_units(c: Circuit, significand: Bits, kept: int, fraction: int, below: Bits) -> tuple[Bits, Bits]:
    """A significand in units of ``kept`` fraction bits, ``below`` binades lower down: cut off, and whether it lost."""
    drop = max(fraction - kept, 0)
    magnitude = significand.placed(max(kept - fraction, 0))
    lost = c.const(0, 1)
    if drop:
        magnitude = magnitude.extended(drop + 1)
        lost = magnitude[:drop].any()
        magnitude = magnitude[drop:]
    magnitude, more = shifted_right(c, magnitude, below)
    return magnitude, lost | more


def aligned(c: Circuit, term: Term, largest: Bits, base: int, kept: int) -> tuple[Signed, Bits]:
    """A term in units of 2**(largest + base - kept), cut off toward zero, and whether that lost anything."""
    size = largest.width
    below = largest - (term.exponent.extended(size).sized(size) + (term.base - base))
    magnitude, lost = _in_units(c, term.significand, kept, term.fraction, below)
    zero = ~term.significand.any()  # which has no exponent to subtract
    most = kept + 1 + max(term.significand.width - term.fraction - 1, 0)
    return Signed(term.sign, c.ite(zero, 0, magnitude).sized(max(most, 1))), lost & ~zero


def sum_of(c: Circuit, terms: Sequence[Signed]) -> Signed:
    """The exact sum; a zero is +0."""
    width = max(t.magnitude.width for t in terms) + len(terms).bit_length()
    zero = c.const(0, width)
    plus = minus = zero
    for t in terms:
        wide = t.magnitude.extended(width)
        plus += c.ite(t.sign, zero, wide)
        minus += c.ite(t.sign, wide, zero)
    less = plus < minus
    return Signed(less, c.ite(less, minus - plus, plus - minus))


def placed_at(x: Signed, largest: Bits, most: int, unit: int) -> Exact:
    """A sum in units of 2**(largest + unit) as a number of a fixed unit."""
    magnitude = x.magnitude.extended(x.magnitude.width + most)
    return Exact(x.sign, magnitude << largest.sized(min(largest.width, magnitude.width)), unit)


def _delivered(c: Circuit, x: Exact, out: Format, env: Environment, to_infinity: bool) -> Bits:
    """A sum rounded: what rounds to zero is +0, and what overflows may be infinite in every mode."""
    found = rounded(c, x, out, env)
    code = found.code
    if out.negative_zero:
        code = c.ite(code[: out.bits - 1].any(), code, 0)
    if to_infinity and out.infinities:
        code = c.ite(found.flags[_OVERFLOW], infinity(c, x.sign, out, env).code, code)
    return code


def fused(c: Circuit, unit: FusedDotUnit, pairs: list[tuple[Bits, Bits]], start: Bits | None) -> Bits:
    """The code of a `FusedDotUnit`'s sum; pairs: the codes of each product's factors, start: the code of C.

    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> c = Circuit()
    >>> pairs = [(c.input(f"a{k}", 4), c.const(2, 4)) for k in range(2)]
    >>> c.output("sum", fused(c, FusedDotUnit(2, 2, "e3m2fn", operand="e2m1fn"), pairs, None))
    >>> evaluate(c, {"a0": [7], "a1": [1]})["sum"].tolist()  # 6 + 0.5, of which two bits below 4 keep 6
    [22]
    """
    operands, acc = [facts_of(f) for f in unit.operand], facts_of(unit.accumulator)
    result = facts_of(unit.result)
    always = unit.overflow == "always_infinity"
    envs = [rounds(f, unit.output_rounding, None if always else unit.overflow, acc, result) for f in (acc, result)]
    length, fused_c = len(pairs), unit.c == "fused"
    order = unit.k_order or tuple(range(unit.terms))
    places = [first + k for first in range(0, length, len(order)) for k in order]
    given = start if start is not None else c.const(0, facts_of(unit.c_format).bits)
    total = given if fused_c else c.const(0, acc.bits)
    for first in range(0, len(places), unit.terms):
        last = fused_c and first + unit.terms >= len(places)
        terms = [
            product_term(c, *(decode(c, code, f) for code, f in zip(pairs[k], operands, strict=True)), operands,
                         unit.zero_exponent)
            for k in places[first : first + unit.terms] if k < length
        ]  # fmt: skip
        terms.append(term_of(c, decode(c, total, acc), acc, unit.zero_exponent))
        out, env = (result, envs[1]) if last else (acc, envs[0])
        total = fused_step(c, unit, terms, out, env, always)
    if fused_c:
        return total
    env = rounds(result, "nearest_even", None if always else unit.overflow, acc, result)
    return add(c, [decode(c, total, acc), decode(c, given, result)], result, env).code


def fused_step(
    c: Circuit,
    unit: Unit,
    terms: list[Term],
    out: Format,
    env: Environment,
    always: bool,
    own: list[Term] | None = None,
) -> Bits:
    """The terms, aligned as a unit says it, added and rounded; ``own``: what says where one is no number, if not they.
    ``always``: what overflows is infinite in every mode."""
    largest, base, most = largest_of(c, terms, unit.min_exponent)
    total = sum_of(c, [aligned(c, t, largest, base, unit.fraction_bits)[0] for t in terms])
    if unit.truncate_fraction is not None:
        magnitude, top = total.magnitude, leading_one(c, total.magnitude)
        places = c.ite(top < unit.truncate_fraction, 0, top - unit.truncate_fraction) if (
            unit.truncate_fraction < 1 << top.width
        ) else c.const(0, top.width)  # fmt: skip
        total = Signed(total.sign, magnitude >> places << places)
    exact = placed_at(total, largest, most, base - unit.fraction_bits)
    code = _delivered(c, exact, out, env, always)
    return kinds_of(c, terms if own is None else own).decide(c, out, env, Result(code, c.const(0, 5))).code


def _down(c: Circuit, x: Signed, drop: int, below: Bits, down: bool) -> Signed:
    """A signed number without its last places: rounded down, or cut off."""
    magnitude, lost = _in_units(c, x.magnitude, 0, drop, below)
    if down:
        magnitude = magnitude.extended(magnitude.width + 1)
        magnitude += (x.sign & lost).extended(magnitude.width)
    return Signed(x.sign, magnitude)


def two_stage(c: Circuit, unit: TwoStageDotUnit, pairs: list[tuple[Bits, Bits]], start: Bits | None) -> Bits:
    """The code of a `TwoStageDotUnit`'s sum; as of `fused`.

    >>> from softnum.vectors.formal.evaluation import evaluate
    >>> c = Circuit()
    >>> pairs = [(c.input(f"a{k}", 4), c.const(2, 4)) for k in range(2)]
    >>> unit = TwoStageDotUnit(2, 2, 4, 2, "e3m2fn", operand="e2m1fn")
    >>> c.output("sum", two_stage(c, unit, pairs, None))
    >>> evaluate(c, {"a0": [7], "a1": [1]})["sum"].tolist()
    [22]
    """
    operands, acc = [facts_of(f) for f in unit.operand], facts_of(unit.accumulator)
    env = rounds(acc, unit.output_rounding, unit.overflow)
    total = start if start is not None else c.const(0, acc.bits)
    for first in range(0, len(pairs), unit.terms):
        terms = [
            product_term(c, *(decode(c, code, f) for code, f in zip(pair, operands, strict=True)), operands,
                         unit.zero_exponent)
            for pair in pairs[first : first + unit.terms]
        ]  # fmt: skip
        total = _two_stage_step(c, unit, terms, term_of(c, decode(c, total, acc), acc, unit.zero_exponent), acc, env)
    return total


def _two_stage_step(c: Circuit, unit: TwoStageDotUnit, terms: list[Term], own: Term, acc: Format, env) -> Bits:
    kept, down, streams = unit.fraction_bits, unit.alignment == "down", unit.interleave
    largest, base, most = largest_of(c, [*terms, own])
    size = largest.width

    def based(terms: list[Term]) -> Bits:  # the largest exponent, in the count of all
        found, first, _ = largest_of(c, terms)
        return found.extended(size).sized(size) + (first - base)

    products = based(terms)
    sums = []
    for stream in range(min(streams, len(terms))):
        mine = terms[stream::streams]
        top = based(mine)
        there = sum_of(c, [aligned(c, t, top, base, kept)[0] for t in mine])
        there = Signed(there.sign, c.ite(_any(c, [t.counts for t in mine]), there.magnitude, 0))
        sums.append(_down(c, there, 0, products - top, down))
    added = sum_of(c, sums)
    any_product = _any(c, [t.counts for t in terms])
    added = Signed(added.sign, c.ite(any_product, added.magnitude, 0))
    finer = max(unit.sum_fraction_bits - kept, 0)
    added = Signed(added.sign, added.magnitude.placed(finer))
    added = _down(c, added, max(kept - unit.sum_fraction_bits, 0), largest - products, down)
    below = largest - (own.exponent.extended(size).sized(size) + (own.base - base))
    cut = own.fraction - unit.c_fraction_bits
    mine = _down(c, Signed(own.sign, own.significand.placed(max(-cut, 0))), max(cut, 0), below, down)
    reached = own.counts & own.significand.any()
    if unit.c_reach is not None and unit.c_reach < 1 << size:
        reached &= ~(below > unit.c_reach)
    mine = Signed(mine.sign, c.ite(reached, mine.magnitude, 0))
    unit_bits = max(unit.sum_fraction_bits, unit.c_fraction_bits)
    both = sum_of(c, [
        Signed(added.sign, added.magnitude.placed(unit_bits - unit.sum_fraction_bits)),
        Signed(mine.sign, mine.magnitude.placed(unit_bits - unit.c_fraction_bits)),
    ])  # fmt: skip
    found = rounded(c, placed_at(both, largest, most, base - unit_bits), acc, env)
    kinds = kinds_of(c, [*terms, own])
    if unit.product_limit is not None:
        beyond = [_beyond(c, t, unit.product_limit) for t in terms]
        far = Kinds(
            c.const(0, 1), c.const(0, 1), _any(c, [b & ~t.sign for b, t in zip(beyond, terms, strict=True)]),
            _any(c, [b & t.sign for b, t in zip(beyond, terms, strict=True)]),
        )  # fmt: skip
        found = far.decide(c, acc, env, found)
    return kinds.decide(c, acc, env, found).code


def _beyond(c: Circuit, term: Term, limit: int) -> Bits:
    """Whether a product is a number of 2**limit or more."""
    top = leading_one(c, term.significand)
    size = max(term.exponent.width, top.width) + 1
    place = term.exponent.extended(size) + top.extended(size)
    least = limit - term.base + term.fraction
    number = ~term.nan & ~term.invalid & ~term.infinite & term.significand.any()
    if least <= 0:
        return number
    return number & ~(place < least) if least < 1 << size else c.const(0, 1)

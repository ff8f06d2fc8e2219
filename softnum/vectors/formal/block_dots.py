"""Circuits of dot products of block formats. Operands are codes of elements and of scales."""

from __future__ import annotations

from typing import Any

from softnum.mac.block_fused import BlockFusedDotUnit
from softnum.mac.blocks import BlockDotUnit
from softnum.reference.facts import Format
from softnum.vectors.formal.aligned import Term, fused_step, term_of, times
from softnum.vectors.formal.arithmetic import add, convert, plus
from softnum.vectors.formal.choices import first_of
from softnum.vectors.formal.circuit import Bits, Circuit
from softnum.vectors.formal.decoding import decode, facts_of
from softnum.vectors.formal.groups import exact_terms
from softnum.vectors.formal.numbers import Number, exact_value
from softnum.vectors.formal.rounding import invalid
from softnum.vectors.formal.running import rounds
from softnum.vectors.plans.unit_spec import UnitSpec

__all__ = ["block_sum"]

_LONGEST = 64


def _check(spec: UnitSpec) -> None:
    """ValueError unless the sum has a circuit."""
    unit, length = spec.unit, spec.shape[2]
    if unit.stochastic:
        raise ValueError(f"{unit} has no circuit: it rounds by random bits; state another mode")
    if whole := [f for f in unit.operand if f.tensor_scale is not None]:
        raise ValueError(
            f"{unit} has no circuit: {whole[0]} has a scale of the whole array; state a format without, as "
            f"BlockFormat({whole[0].element.name!r}, {whole[0].scale.name!r}, {whole[0].block_size})"
        )
    if length > _LONGEST:
        raise ValueError(f"a dot product of blocks has a circuit of 1 to {_LONGEST} products, got {length}: --length")


def block_sum(c: Circuit, spec: UnitSpec, words: dict[str, Bits], inner_sum: Any) -> Bits:
    """The code of the sum.

    Parameters
    ----------
    c : Circuit
    spec : UnitSpec
        A dot product of a BlockDotUnit or BlockFusedDotUnit.
    words : dict of str to Bits
        Its columns of operands.
    inner_sum : callable
        The sum of a unit on elements: of the circuit, the unit, codes of pairs and no start (``formal.sums``).

    Examples
    --------
    >>> from softnum.vectors import UnitSpec
    >>> from softnum.vectors.formal import define, evaluate
    >>> spec = UnitSpec.make("dot", "BlockDotUnit('e5m2', operand='mxfp4')", length=2)
    >>> evaluate(define(spec), {"a": [0x42], "b": [0x22], "scale_a": [128], "scale_b": [127]})  # (1 + 2) * 2
    {'result': array([70], dtype=object)}
    """
    _check(spec)
    elements = [[words[name][k * f.bits : (k + 1) * f.bits] for k in range(spec.shape[2])]
                for name, f in zip("ab", (f.element for f in spec.unit.operand), strict=True)]  # fmt: skip
    scales = [[words[f"scale_{name}"][j * f.bits : (j + 1) * f.bits] for j in range(spec.blocks)]
              for name, f in zip("ab", (f.scale for f in spec.unit.operand), strict=True)]  # fmt: skip
    pairs, factors = list(zip(*elements, strict=True)), list(zip(*scales, strict=True))
    made = _fused if isinstance(spec.unit, BlockFusedDotUnit) else _outer
    return made(c, spec.unit, pairs, factors, words.get("c"), inner_sum)


def _outer(c: Circuit, unit: BlockDotUnit, pairs: list[Any], factors: list[Any], start: Bits | None, inner_sum) -> Bits:
    """Block after block: its sum times its scales, rounded where the unit says it, and added."""
    elements, scales = ([facts_of(getattr(f, part)) for f in unit.operand] for part in ("element", "scale"))
    acc = facts_of(unit.accumulator)
    product = None if unit.product is None else facts_of(unit.product)
    others = [f for f in (acc, product) if f is not None]
    env = rounds(acc, unit.rounding, unit.overflow, *others)
    size = unit.operand[0].size(len(pairs))
    total = c.const(0, acc.bits) if start is None else start
    for j, first in enumerate(range(0, len(pairs), size)):
        block = pairs[first : first + size]
        if unit.inner is None:
            numbers = [tuple(decode(c, code, f) for code, f in zip(pair, elements, strict=True)) for pair in block]
            s = _exact(c, numbers)
        else:
            s = decode(c, inner_sum(c, unit.inner, block, None), facts_of(unit.inner.result))
        scaled = _scaled(c, s, [decode(c, code, f) for code, f in zip(factors[j], scales, strict=True)])
        held = decode(c, total, acc)
        if product is None:
            total = _added(c, scaled, held, acc, env)
        else:
            rule = rounds(product, unit.product_mode, unit.overflow, *others)
            term = convert(c, [scaled], product, rule).code
            total = add(c, [held, decode(c, term, product)], acc, env).code
    return total


def _exact(c: Circuit, numbers: list[tuple[Number, Number]]) -> Number:
    """The exact sum of products as a number; a zero is +0."""
    kinds, total = exact_terms(c, numbers, None, False)
    nan, none = kinds.undefined, c.const(0, 1)
    infinite = (kinds.plus | kinds.minus) & ~nan
    sign = c.ite(infinite, kinds.minus, total.sign & total.magnitude.any()) & ~nan
    return Number(nan, none, infinite, sign, total.magnitude, none, 0, total.unit, c.const(1, 1))


def _scaled(c: Circuit, s: Number, scales: list[Number]) -> Number:
    """A number times scales, exactly; a NaN makes NaN, and so does infinity times zero."""
    for x in scales:
        nan, infinite = s.nan | x.nan, s.infinite | x.infinite
        undefined = infinite & (s.zero | x.zero)
        width = s.significand.width + x.significand.width
        places = max(s.shift.width, x.shift.width) + 1
        s = Number(
            nan | undefined, c.const(0, 1), infinite & ~nan & ~undefined, s.sign ^ x.sign,
            s.significand.extended(width) * x.significand.extended(width),
            s.shift.extended(places) + x.shift.extended(places), s.most + x.most, s.unit + x.unit, c.const(1, 1),
        )  # fmt: skip
    return s


def _added(c: Circuit, x: Number, held: Number, out: Format, env) -> Bits:
    """The sum of an exact number and the accumulator."""
    nan = invalid(c, out, env)
    return first_of(c, [(x.nan | held.nan, nan)], plus(c, exact_value(c, x), x.infinite, held, out, env)).code


def _fused(
    c: Circuit, unit: BlockFusedDotUnit, pairs: list[Any], factors: list[Any], start: Bits | None, inner_sum
) -> Bits:
    """Step after step: products, or exact sums of groups of them, times the scales, aligned as terms of their own."""
    elements, scales = ([facts_of(getattr(f, part)) for f in unit.operand] for part in ("element", "scale"))
    acc, of_zero = facts_of(unit.accumulator), unit.zero_exponent
    always = unit.overflow == "always_infinity"
    env = rounds(acc, unit.output_rounding, None if always else unit.overflow)
    size = unit.operand[0].block_size
    none = c.const(0, 1)
    total = c.const(0, acc.bits) if start is None else start
    for first in range(0, len(pairs), unit.terms):
        terms, own = [], []
        last = min(first + unit.terms, len(pairs))
        for k in range(first, last, unit.group):
            block = factors[k // size]
            both = [decode(c, code, f)._replace(sign=none) for code, f in zip(block, scales, strict=True)]
            scale = times(c, *(term_of(c, x, f, of_zero) for x, f in zip(both, scales, strict=True)))
            numbers = [
                tuple(decode(c, code, f) for code, f in zip(pair, elements, strict=True))
                for pair in pairs[k : min(k + unit.group, last)]
            ]
            products = [times(c, *(_plain(c, x) for x in pair)) for pair in numbers]
            own += [times(c, p, scale) for p in products]
            if unit.group == 1:
                factor = times(c, *(term_of(c, x, f, of_zero) for x, f in zip(numbers[0], elements, strict=True)))
                terms.append(times(c, factor, scale))
            else:
                s = _exact(c, numbers)
                terms.append(times(c, _plain(c, s), scale)._replace(counts=scale.counts))
        held = term_of(c, decode(c, total, acc), acc, of_zero)
        total = fused_step(c, unit, [*terms, held], acc, env, always, [*own, held])
    return total


def _plain(c: Circuit, x: Number) -> Term:
    """A number as a term whose exponent is 0, all of it being its significand."""
    value = exact_value(c, x)
    none = c.const(0, 1)
    return Term(x.nan, none, x.infinite, x.sign, value.magnitude, -value.unit, none, 0, 0, c.const(1, 1))

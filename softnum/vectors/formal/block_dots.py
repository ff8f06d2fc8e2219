"""Dot products of block formats: what a proof is of, and its circuit. Operands are codes of elements and of scales.

Files of vectors state no such products; a proof shows its counterexample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softnum.arrays.blocks import BlockArray
from softnum.arrays.container import Array
from softnum.mac.block_fused import BlockFusedDotUnit
from softnum.mac.blocks import BlockDotUnit
from softnum.mac.presets import unit_of
from softnum.mac.products.matrices import matmul
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
from softnum.vectors.plans.spec import Block, Column
from softnum.vectors.plans.unit_spec import UnitSpec

__all__ = ["BlockDotSpec", "block_sum"]

_LONGEST = 64


@dataclass(frozen=True)
class BlockDotSpec(UnitSpec):
    """A dot product of a BlockDotUnit or BlockFusedDotUnit, for `define`, `export` and `prove`.

    >>> spec = BlockDotSpec.make("dot", "BlockDotUnit('binary32', operand='mxfp4')", length=2, with_c=True)
    >>> [(c.name, c.bits, c.count) for c in spec.columns]
    [('a', 4, 2), ('b', 4, 2), ('scale_a', 8, 1), ('scale_b', 8, 1), ('c', 32, 1), ('result', 32, 1)]
    >>> two, one = np.uint8([128]), np.uint8([127])
    >>> block = spec.evaluate([np.uint8([[2, 4]]), np.uint8([[2, 2]]), two, one, np.uint32([0])])
    >>> block.result.view(np.float32)  # (1 * 1 + 2 * 1) * 2
    array([6.], dtype=float32)
    """

    @classmethod
    def make(cls, op, unit, *, length=None, shape=None, with_c=False) -> BlockDotSpec:
        """Check the parts: the unit takes no random bits, its formats have no scale of a whole array; 1 to 64 products.

        Raises
        ------
        ValueError
        """
        unit = unit_of(unit)
        if not isinstance(unit, (BlockDotUnit, BlockFusedDotUnit)):
            raise ValueError(f"{unit} is no unit of block formats; state a UnitSpec")
        if op != "dot" or shape is not None:
            raise ValueError(f"{op}: of a unit of block formats a dot product is proved, --op dot --length K")
        if unit.stochastic:
            raise ValueError(f"{unit} has no circuit: it rounds by random bits; state another mode")
        if whole := [f for f in unit.operand if f.tensor_scale is not None]:
            raise ValueError(
                f"{whole[0]} has a scale of the whole array, which is no operand of a dot product: state a format "
                f"without, as BlockFormat({whole[0].element.name!r}, {whole[0].scale.name!r}, {whole[0].block_size})"
            )
        length = 2 if length is None else length
        if isinstance(length, bool) or not isinstance(length, int) or not 1 <= length <= _LONGEST:
            raise ValueError(f"a dot product of blocks is proved of 1 to {_LONGEST} products, got {length!r}")
        return cls(op, unit, (1, 1, length), bool(with_c))

    @property
    def blocks(self) -> int:
        """Scales of an operand."""
        return self.unit.operand[0].blocks(self.shape[2])

    @property
    def formats(self) -> tuple:
        """The formats of the columns of operands."""
        a, b = self.unit.operand
        return (a.element, b.element, a.scale, b.scale, *([self.unit.accumulator] if self.with_c else []))

    @property
    def columns(self) -> tuple[Column, ...]:
        """a, b, scale_a, scale_b, [c], result."""
        counts = (self.shape[2],) * 2 + (self.blocks,) * 2 + (1,)
        names = ("a", "b", "scale_a", "scale_b", "c")
        operands = [Column(n, f.bits, f, k) for n, f, k in zip(names, self.formats, counts, strict=False)]
        return (*operands, Column("result", self.out_fmt.bits, self.out_fmt))

    def evaluate(self, operands, random_bits=None) -> Block:
        """The results, by the core in C: `softnum.matmul` of blocks."""
        n, k = len(operands[0]), self.shape[2]
        codes = [x.reshape(n, -1) for x in operands[:4]]
        fa, fb = self.unit.operand
        a = BlockArray(codes[0].reshape(n, 1, k), codes[2].reshape(n, 1, -1), fa, axis=-1)
        b = BlockArray(codes[1].reshape(n, k, 1), codes[3].reshape(n, -1, 1), fb, axis=-2)
        c = Array(operands[4].reshape(n, 1, 1), self.out_fmt) if self.with_c else None
        found = matmul(a, b, self.unit, c)
        result = found.codes if isinstance(found, Array) else self.out_fmt.codec.encode(found, self.out_fmt)
        return Block(tuple(operands), None, np.asarray(result).reshape(n).astype(self.out_fmt.storage_dtype), None)


def block_sum(c: Circuit, spec: BlockDotSpec, words: dict[str, Bits], inner_sum) -> Bits:
    """The code of the sum.

    Parameters
    ----------
    c : Circuit
    spec : BlockDotSpec
    words : dict of str to Bits
        Its columns of operands.
    inner_sum : callable
        The sum of a unit on elements: of the circuit, the unit, codes of pairs and no start (``formal.sums``).

    Examples
    --------
    >>> from softnum.vectors.formal import define, evaluate
    >>> spec = BlockDotSpec.make("dot", "BlockDotUnit('e5m2', operand='mxfp4')", length=2)
    >>> evaluate(define(spec), {"a": [0x42], "b": [0x22], "scale_a": [128], "scale_b": [127]})  # (1 + 2) * 2
    {'result': array([70], dtype=object)}
    """
    elements = [[words[name][k * f.bits : (k + 1) * f.bits] for k in range(spec.shape[2])]
                for name, f in zip("ab", (f.element for f in spec.unit.operand), strict=True)]  # fmt: skip
    scales = [[words[f"scale_{name}"][j * f.bits : (j + 1) * f.bits] for j in range(spec.blocks)]
              for name, f in zip("ab", (f.scale for f in spec.unit.operand), strict=True)]  # fmt: skip
    pairs, factors = list(zip(*elements, strict=True)), list(zip(*scales, strict=True))
    made = _fused if isinstance(spec.unit, BlockFusedDotUnit) else _outer
    return made(c, spec.unit, pairs, factors, words.get("c"), inner_sum)


def _outer(c: Circuit, unit: BlockDotUnit, pairs: list, factors: list, start: Bits | None, inner_sum) -> Bits:
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


def _fused(c: Circuit, unit: BlockFusedDotUnit, pairs: list, factors: list, start: Bits | None, inner_sum) -> Bits:
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

"""Dot products of units as circuits, each kind of unit by its definition.

A step of a multiply-accumulate unit is a sum of one product that starts from C.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from softnum.mac.chunked import ChunkedDotUnit
from softnum.mac.exact import ExactDotUnit
from softnum.mac.fused import FmaChainUnit, FusedDotUnit
from softnum.mac.grouped import GroupedDotUnit
from softnum.mac.mad import MadUnit, Unit
from softnum.mac.two_stage import TwoStageDotUnit
from softnum.vectors.formal.aligned import fused, two_stage
from softnum.vectors.formal.arithmetic import add
from softnum.vectors.formal.circuit import Bits, Circuit
from softnum.vectors.formal.decoding import decode, facts_of
from softnum.vectors.formal.groups import exact_terms, grouped
from softnum.vectors.formal.rounding import rounded
from softnum.vectors.formal.running import chained, rounds, stepwise
from softnum.vectors.plans.unit_spec import UnitSpec

__all__ = ["SUMS", "sum_of", "sum_of_products"]

#: of products, lanes and chunks
_MOST_ADDITIONS = 1024

_WAY_OUT = "prove it by exhaustion (--method exhaustion), which compares with the core in C, or in smaller formats"


def sum_of_products(c: Circuit, spec: UnitSpec, words: dict[str, Bits]) -> Bits:
    """The code of a unit's sum.

    Parameters
    ----------
    c : Circuit
    spec : UnitSpec
        Of op dot; its unit of a kind in ``SUMS``.
    words : dict of str to Bits
        The columns a, b and, where there is one, c.

    Raises
    ------
    ValueError
        If the unit takes random bits, or a format has no circuit.

    Examples
    --------
    >>> from softnum.vectors.formal import define, evaluate
    >>> circuit = define(UnitSpec.make("dot", "ExactDotUnit('e5m2', operand='e2m1fn')", length=2))
    >>> evaluate(circuit, {"a": [0x22], "b": [0x24]})  # 1 * 2 + 1 * 1
    {'result': array([66], dtype=object)}
    """
    unit = spec.unit
    if unit.stochastic:
        raise ValueError(f"{unit} has no circuit: it rounds by random bits; {_WAY_OUT}, or state another mode")
    length = spec.shape[2]
    chunks = -(-length // (getattr(unit, "chunk", None) or length))
    count = length + getattr(unit, "lanes", 1) * chunks
    if count > _MOST_ADDITIONS:
        raise ValueError(
            f"{unit} has no circuit of length {length}: it would have {count} additions, and circuits at most "
            f"{_MOST_ADDITIONS}; state a smaller --length"
        )
    bits = [fmt.bits for fmt in unit.operand]
    columns = list(zip((words["a"], words["b"]), bits, strict=True))
    pairs = [tuple(word[i * n : (i + 1) * n] for word, n in columns) for i in range(length)]
    return sum_of(c, unit, pairs, words.get("c"))


def sum_of(c: Circuit, unit: Unit, pairs: list[tuple[Bits, Bits]], start: Bits | None) -> Bits:
    """The code of a unit's sum of products, of the codes of their factors and of C."""
    if type(unit) not in SUMS:
        known = ", ".join(kind.__name__ for kind in SUMS)
        raise ValueError(f"{unit} has no circuit: units that have are of the kinds {known}; {_WAY_OUT}")
    return SUMS[type(unit)](c, unit, pairs, start)


def _exact(c: Circuit, unit: ExactDotUnit, pairs: list[tuple[Bits, Bits]], start: Bits | None) -> Bits:
    """All at once: the exact sum of C, or +0, and the products, rounded once."""
    operands, out = [facts_of(f) for f in unit.operand], facts_of(unit.accumulator)
    env = rounds(out, unit.rounding, unit.overflow)
    numbers = [tuple(decode(c, code, f) for code, f in zip(pair, operands, strict=True)) for pair in pairs]
    first = decode(c, c.const(0, out.bits) if start is None else start, out)
    kinds, total = exact_terms(c, numbers, first, env.rounding == "down")
    return kinds.decide(c, out, env, rounded(c, total, out, env)).code


def _chunked(c: Circuit, unit: ChunkedDotUnit, pairs: list[tuple[Bits, Bits]], start: Bits | None) -> Bits:
    """The sums of chunks, each from +0, added in order."""
    out, inner = facts_of(unit.accumulator), facts_of(unit.inner.result)
    env = rounds(out, unit.rounding, unit.overflow)
    total = c.const(0, out.bits) if start is None else start
    for first in range(0, len(pairs), unit.chunk):
        part = sum_of(c, unit.inner, pairs[first : first + unit.chunk], None)
        total = add(c, [decode(c, total, out), decode(c, part, inner)], out, env).code
    return total


#: kind of unit -> what makes the circuit of its sum, of the codes of pairs of factors and of C
SUMS: dict[type[Unit], Callable[[Circuit, Unit, list[Any], Bits | None], Bits]] = {
    MadUnit: stepwise, FmaChainUnit: chained, FusedDotUnit: fused, TwoStageDotUnit: two_stage, GroupedDotUnit: grouped,
    ExactDotUnit: _exact, ChunkedDotUnit: _chunked,
}  # fmt: skip

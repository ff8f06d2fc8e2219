"""Vectors out: exhaustive where it fits, else edge cases crossed with each other and then seeded random ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import TYPE_CHECKING

from softnum.vectors.plans.plan import Plan
from softnum.vectors.plans.restricted import restricted_plan
from softnum.vectors.plans.spec import Block, Spec, VectorSpec
from softnum.vectors.plans.unit_spec import UNIT_OPERATIONS, UnitSpec

if TYPE_CHECKING:
    from softnum.formats.annotations import FormatLike
    from softnum.mac.mad import Unit
    from softnum.vectors.plans.space import Space

__all__ = ["DEFAULT_COUNT", "EXHAUSTIVE_LIMIT", "Plan", "generate", "plan"]

#: Without a count, all combinations of operands and random bits are made if there are at most this many,
EXHAUSTIVE_LIMIT = 1 << 16
#: and this many vectors otherwise.
DEFAULT_COUNT = 1 << 18


def plan(spec: Spec, *, count: int | None = None, seed: int = 0) -> Plan:
    """Choose which vectors to make, by the rules of `generate`.

    Raises ValueError for a count below 1, a seed outside 0..2**64-1, and an empty space.
    """
    for what, value, low, high in (("count", count, 1, 1 << 62), ("seed", seed, 0, (1 << 64) - 1)):
        if what == "count" and value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise TypeError(f"{what} must be an integer, got {value!r}")
        if not low <= value <= high:
            raise ValueError(f"{what} must lie in {low}..{high}, got {value}")
    if spec.op == "mac" or (isinstance(spec, UnitSpec) and spec.space):
        return Plan(spec, "random", DEFAULT_COUNT if count is None else int(count), int(seed))
    operand_bits = sum(c.width for c in spec.operand_columns)
    all_bits = operand_bits + sum(c.width for c in spec.columns if c.name == "random")
    limit = EXHAUSTIVE_LIMIT if count is None else int(count)
    if isinstance(spec, VectorSpec) and spec.space:
        return restricted_plan(spec, None if count is None else int(count), int(seed), limit, DEFAULT_COUNT)
    if 1 << all_bits <= limit:
        return Plan(spec, "exhaustive", 1 << all_bits, int(seed))
    if spec.stochastic_bits is not None and 1 << operand_bits <= limit:
        return Plan(spec, "exhaustive operands", 1 << operand_bits if count is None else int(count), int(seed))
    method = "random" if isinstance(spec, UnitSpec) else "edges and random"
    return Plan(spec, method, DEFAULT_COUNT if count is None else int(count), int(seed))


def generate(
    op: str,
    fmt: FormatLike | Sequence[FormatLike] | None = None,
    *,
    out_fmt: FormatLike | None = None,
    rounding: str | None = None,
    overflow: str | None = None,
    tininess: str | None = None,
    stochastic_bits: int = 32,
    nan: str | None = None,
    exact: bool | None = None,
    flush_inputs: bool | None = None,
    flush_results: str | None = None,
    minmax: str | None = None,
    profile: str | None = None,
    space: Space | None = None,
    unit: Unit | str | None = None,
    length: int | None = None,
    shape: tuple[int, int, int] | None = None,
    with_c: bool = False,
    count: int | None = None,
    seed: int = 0,
) -> Iterator[Block]:
    """Make test vectors: operands, random bits, correctly rounded results and flags.

    All combinations of operands (and random bits) are made, in order, if `count` allows it; without a count, if there
    are at most 2**16 (two operands of 8 bits). If only the operands' combinations fit, each comes in turn with drawn
    random bits. Otherwise half of the vectors (2**18 without a count) are the format's edge cases crossed with each
    other, and the rest is drawn in strata: uniform codes, edge cases, significands that end in long runs, sums that
    cancel, results at the limits (``softnum.vectors.plans.strata``). A unit's vectors are all drawn so.

    Parameters
    ----------
    op : str
        An operation, as in `VectorSpec.make`, or, of a unit, "dot", "mac" or "gemm".
    fmt : format or str, or a tuple of them
        The operands' format(s) of an operation; the name of a function of TestFloat's states them itself.
    out_fmt, rounding, overflow, tininess, stochastic_bits, nan, exact
        As in `VectorSpec.make`, of an operation.
    flush_inputs, flush_results, minmax, profile, space
        As there, too; space of a unit as in `UnitSpec.make`.
    unit, length, shape, with_c
        As in `UnitSpec.make`, of a unit.
    count : int, optional
        How many vectors; fewer are made only if no more exist.
    seed : int
        0 to 2**64 - 1. The same arguments give the same vectors on every machine.

    Returns
    -------
    iterator of Block
        At most 2**16 vectors each; memory does not grow with `count`.

    Raises
    ------
    ValueError
        If a name is unknown, formats are incompatible, or a number is out of range.

    Notes
    -----
    The idea of crossed edge cases follows Berkeley TestFloat. Random numbers: SplitMix64 (Steele, Lea and Flood 2014).

    Examples
    --------
    >>> from softnum.vectors import generate
    >>> blocks = list(generate("multiply", "e5m2"))
    >>> len(blocks), len(blocks[0])
    (1, 65536)
    >>> blocks[0].operands[0][-1], blocks[0].result[-1]  # NaN times NaN
    (np.uint8(255), np.uint8(126))
    """
    if op in UNIT_OPERATIONS:
        if unit is None or fmt is not None:
            raise ValueError(f"{op} is of a unit, which says the formats: give unit=, and no format")
        spec = UnitSpec.make(op, unit, length=length, shape=shape, with_c=with_c, space=space)
    else:
        for name, value in (("unit", unit), ("length", length), ("shape", shape)):
            if value is not None:
                raise ValueError(f"{op} is an operation, not a unit's: leave {name}= out (dot, mac and gemm take it)")
        spec = VectorSpec.make(
            op, fmt, out_fmt=out_fmt, rounding=rounding, overflow=overflow, tininess=tininess,
            stochastic_bits=stochastic_bits, nan=nan, exact=exact, flush_inputs=flush_inputs,
            flush_results=flush_results, minmax=minmax, profile=profile, space=space,
        )  # fmt: skip
    return plan(spec, count=count, seed=seed).blocks()

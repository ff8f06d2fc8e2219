"""Statistics of roundings: what ``return_stats=True`` of matrix products, convolutions and sums returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np

from softnum.runtime.columns import text_table

if TYPE_CHECKING:
    from softnum.mac.mad import Unit

__all__ = ["RoundingCounts", "RoundingStats", "Tallies"]


@dataclass(frozen=True)
class RoundingCounts:
    """How many roundings there were, and what came of them; the fields are those of sn_tally (units/tally.h).

    Attributes
    ----------
    roundings : int
        Results brought to a format: infinities, NaNs and exact results too.
    inexact, underflowed, overflowed, invalid : int
        Those that raised the exception of IEEE 754-2019 clause 7 (formats of P3109, which raise none: would have).
    saturated : int
        Those whose exact value overflowed, or was infinite, and whose result is a number all the same: the end of the
        format's range on that side. Whatever the reason: the overflow rule, the mode, or a format without infinity and
        NaN. What wraps around has overflowed, not saturated.
    """

    roundings: int = 0
    inexact: int = 0
    underflowed: int = 0
    overflowed: int = 0
    saturated: int = 0
    invalid: int = 0

    def __add__(self, other: RoundingCounts) -> RoundingCounts:
        if not isinstance(other, RoundingCounts):
            return NotImplemented
        return RoundingCounts(*(x + y for x, y in zip(astuple(self), astuple(other), strict=True)))

    def to_dict(self) -> dict[str, int]:
        """The counts by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


_COUNTS = tuple(f.name for f in fields(RoundingCounts))


@dataclass(frozen=True, repr=False)
class RoundingStats:
    """Counts of roundings by their kind, of one call or, added by ``+``, of several.

    Attributes
    ----------
    kinds : mapping of str to RoundingCounts
        One entry for each kind of rounding that the unit has; ``stats["sum"]`` is ``stats.kinds["sum"]``.

    Notes
    -----
    MadUnit: "product" (if products are rounded), "sum" (``R(acc + p)``), "compensation" (the three roundings more of a
    compensated sum), "lanes" (additions of partial accumulators), "outer sum" (additions of chunks). FusedDotUnit:
    "sum" (of each step), "output" (of the last one, where the output is another format than the accumulator), "C added"
    (where C comes after); only the rounding counts: bits that the alignment cuts off, or `truncate_fraction`, make no
    rounding inexact. FmaChainUnit: "sum", with the zeros that fill up the last period. ExactDotUnit: "sum", one an
    output. GroupedDotUnit: "partial sum" (if it is rounded; with reduction="rounded" each product and sum of a group),
    "sum" (additions of groups); products that are aligned make no rounding inexact. ChunkedDotUnit: "outer sum"
    (additions of chunks), and "inner ..." for each kind of the inner unit. BlockFusedDotUnit: "sum" (of each step, as
    of FusedDotUnit), "tensor scales" (as of BlockDotUnit). BlockDotUnit: "scaled sum" (if it is rounded), "sum"
    (additions of blocks), "tensor scales" (the last step of operands that have them), and "inner ..." for each kind of
    the inner unit.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> unit = sn.MadUnit("e4m3", product="e4m3", operand="e4m3", overflow="saturate")
    >>> a = np.full((1, 40), 6, np.float32)
    >>> result, stats = sn.matmul(a, a.T, unit, return_stats=True)
    >>> result
    array([[240.]], dtype=float32)
    >>> print(stats)
             roundings  inexact  underflowed  overflowed  saturated  invalid
    product         40        0            0           0          0        0
    sum             40       38            0          33         33        0
    total           80       38            0          33         33        0
    >>> stats["sum"].saturated, (stats + stats).saturated
    (33, 66)
    """

    kinds: Mapping[str, RoundingCounts] = field(default_factory=dict)

    @property
    def total(self) -> RoundingCounts:
        """All kinds together; ``stats.overflowed`` is ``stats.total.overflowed``, and so on."""
        return sum(self.kinds.values(), RoundingCounts())

    def __getattr__(self, name: str) -> int:
        if name in _COUNTS:
            return getattr(self.total, name)
        raise AttributeError(f"RoundingStats has no {name!r}; the counts are {', '.join(_COUNTS)}, kinds and total")

    def __getitem__(self, kind: str) -> RoundingCounts:
        if kind not in self.kinds:
            raise KeyError(f"no roundings of kind {kind!r}; there are {', '.join(self.kinds) or 'none'}")
        return self.kinds[kind]

    def __add__(self, other: RoundingStats) -> RoundingStats:
        if not isinstance(other, RoundingStats):
            return NotImplemented
        names = dict.fromkeys([*self.kinds, *other.kinds])
        none = RoundingCounts()
        return RoundingStats({name: self.kinds.get(name, none) + other.kinds.get(name, none) for name in names})

    def to_dict(self) -> dict[str, dict[str, int]]:
        """The counts of each kind and, last, of "total", as plain dictionaries."""
        return {name: counts.to_dict() for name, counts in (*self.kinds.items(), ("total", self.total))}

    def __repr__(self) -> str:
        shown = []
        for name, counts in self.kinds.items():
            some = [f"{n} {what}" for what, n in counts.to_dict().items() if n or what == "roundings"]
            shown.append(f"{name}: {', '.join(some)}")
        return f"RoundingStats({'; '.join(shown)})"

    def __str__(self) -> str:
        rows = [(name, *map(str, counts.values())) for name, counts in self.to_dict().items()]
        return text_table([("", *_COUNTS), *rows], numbers=len(_COUNTS))


class Tallies:
    """What the engines of one call count, in whatever threads: their sum does not depend on how the work was split."""

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []

    def part(self, unit: Unit) -> np.ndarray:
        """An array for one piece of work to add to, a row for each of ``unit.roundings``."""
        counts = np.zeros((len(unit.roundings), len(_COUNTS)), np.uint64)
        self._parts.append(counts)  # a list's append is atomic
        return counts

    def stats(self, unit: Unit) -> RoundingStats:
        """The counts of all parts, of the kinds of rounding that the unit has."""
        names = unit.roundings
        counts = [[0] * len(_COUNTS) for _ in names]
        for part in self._parts:
            counts = [[x + y for x, y in zip(*rows, strict=True)] for rows in zip(counts, part.tolist(), strict=True)]
        return RoundingStats({n: RoundingCounts(*row) for n, row in zip(names, counts, strict=True) if n is not None})

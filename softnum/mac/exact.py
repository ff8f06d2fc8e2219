"""ExactDotUnit: the exact sum of products, rounded once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from softnum.arrays.environment import environment
from softnum.arrays.sources import DEFAULT_SOURCE
from softnum.formats.checks import check_exact, check_narrow
from softnum.formats.facts import facts
from softnum.formats.modes import rounding_name
from softnum.formats.names import format
from softnum.mac import _exact
from softnum.mac.family import register
from softnum.mac.mad import ONE, Unit, check_sum_formats, put_source, shown_source

__all__ = ["ExactDotUnit", "exact"]

_EXPONENT_BITS = 11
_TERMS = 32  # matmul takes sums of fewer than 2**32 products, and C


@dataclass(frozen=True, repr=False)
class ExactDotUnit(Unit):
    """A unit with an exact accumulator: ``round(c + a[0] * b[0] + ... + a[K-1] * b[K-1])``, rounded once.

    Nothing is lost before the final rounding, so the order of summation does not matter. The accumulator is a
    fixed-point register as wide as the formats require (`width`), which is the hardware cost of such a unit.

    Parameters
    ----------
    accumulator : format or str
        The format of C and of the result: a float of up to 11 exponent bits, fixed point, a posit or a linear takum.
    operand : format or str, or a pair of them
        The format of a and b: any of those kinds, or a value table.
    rounding : str
        The mode of the one rounding. A stochastic one takes the word of step 0 of its output: word 0 of Philox counter
        (0, n, m, batch), or what `random` says; of ``random_bits`` the sum's.
    overflow : str, optional
        The overflow rule; by default that of the format.
    stochastic_bits : int
        r of the stochastic modes, 1 to 32.
    random : str
        The source of the bits of a stochastic rounding, as in `MadUnit`: those of step 0. An LFSR has not moved before.

    Raises
    ------
    ValueError
        If a name or number is out of range, a format has more than 11 exponent bits, or the accumulator is a value
        table or another custom format, or has no zero.

    Notes
    -----
    Special values are those of a chain of fused multiply-adds that never rounds: a NaN among the operands, infinity
    times zero, and infinities of both signs give NaN; an infinity else gives itself (as the format and its overflow
    rule deliver it). A zero sum has the sign that all its terms have, if they are zeros of one sign, and else is +0, or
    -0 in the mode "down" (IEEE 754-2019 clause 6.3). Without C, the sum starts from +0, which is a term. K = 0 returns
    C. With a posit as accumulator the unit is the Posit Standard's quire: its exact sum, rounded to a posit once; the
    quire's own limit, 2**31 - 1 products, is left to the caller.

    Source: Kulisch and Miranker 1981, "Computer Arithmetic in Theory and Practice".

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> unit = sn.ExactDotUnit("e6m3", operand="e5m2")
    >>> print(unit)
    round(c + sum of a * b): e5m2 x e5m2 -> e6m3, one rounding of the exact sum (nearest_even), 98-bit accumulator
    >>> a = np.full((1, 40), 1, np.float32)
    >>> sn.matmul(a, a.T, unit)
    array([[40.]], dtype=float32)
    """

    accumulator: object
    operand: object = None
    rounding: str = "nearest_even"
    overflow: str | None = None
    stochastic_bits: int = 32
    random: str = DEFAULT_SOURCE

    def __post_init__(self) -> None:
        if self.operand is None:
            raise ValueError("ExactDotUnit: state operand=, the format (or pair of formats) of the factors")
        pair = self.operand if isinstance(self.operand, tuple) else (self.operand, self.operand)
        if len(pair) != 2:
            raise ValueError(f"ExactDotUnit: operand is one format or a pair, got {len(pair)}")
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        put("operand", tuple(format(f) for f in pair))
        put("accumulator", format(self.accumulator))
        for fmt in self.operand:
            check_narrow(fmt, "ExactDotUnit: operand={}")
        for fmt in (*self.operand, self.accumulator):
            check_exact(
                fmt,
                "ExactDotUnit: values of {} are irrational, and sums of them no number of any accumulator; a MadUnit "
                "rounds each step, into any format",
            )
        check_sum_formats(self, "accumulator", custom=self.accumulator.rounds_as_odd)
        self.accumulator.arithmetic.check_modes(self.accumulator, self.rounding, self.overflow)
        for what, fmt in (
            ("operand", self.operand[0]),
            ("operand", self.operand[1]),
            ("accumulator", self.accumulator),
        ):
            if fmt.exponent_bits > _EXPONENT_BITS:
                raise ValueError(
                    f"ExactDotUnit: {what}={fmt} has {fmt.exponent_bits} exponent bits; an exact accumulator takes at "
                    f"most {_EXPONENT_BITS}: use a MadUnit, or a narrower format"
                )
        put("rounding", rounding_name(self.rounding))
        self.environment  # noqa: B018 - checks the rule and r
        put_source(self, self.stochastic)
        if self.words > _exact.MOST_WORDS:
            raise ValueError(
                f"ExactDotUnit: {self} would be wider than {64 * _exact.MOST_WORDS} bits; choose biases closer together"
            )

    @cached_property
    def environment(self) -> tuple[int, ...]:
        """The one rounding, in the core's numbers."""
        return environment(self.accumulator, self.rounding, self.overflow, self.stochastic_bits)

    @cached_property
    def bottom(self) -> int:
        """Exponent of the accumulator's last bit."""
        (last_a, _), (last_b, _), (last_c, _) = (f.span for f in (*self.operand, self.accumulator))
        return min(last_a + last_b, last_c)

    @cached_property
    def width(self) -> int:
        """Bits of the accumulator, sign included: holds C and any 2**32 - 1 products exactly."""
        (_, top_a), (_, top_b), (_, top_c) = (f.span for f in (*self.operand, self.accumulator))
        return max(top_a + top_b, top_c) + _TERMS - self.bottom + 1

    @property
    def words(self) -> int:
        """The same in words of 64 bits."""
        return -(-self.width // 64)

    @property
    def stochastic(self) -> bool:
        """Whether a random key is needed."""
        return self.rounding.startswith("stochastic")

    def steps(self, k: int) -> int:
        """Number of random words of a sum: 1, for there is one rounding."""
        return 1

    def __str__(self) -> str:
        a, b = self.operand
        mode = self._mode(self.rounding)
        return (
            f"round(c + sum of a * b): {a} x {b} -> {self.accumulator}, one rounding of the exact sum ({mode})"
            + (f", overflow {self.overflow}" if self.overflow else "")
            + shown_source(self)
            + f", {self.width}-bit accumulator"
        )


class _Exact:
    """The exact sum, rounded once to the format of the operands; an argument for `softnum.unit_of_sums` in place of a
    unit.

    It stands for ``ExactDotUnit(fmt, operand=fmt)`` with the operands' format.
    """

    def __repr__(self) -> str:
        return "softnum.exact"

    def __reduce__(self) -> str:
        return "exact"


exact: _Exact = _Exact()


def _adder(unit: ExactDotUnit, fmt) -> ExactDotUnit:
    return replace(unit, operand=(ONE, fmt))


def _operands(unit: ExactDotUnit) -> tuple:
    return tuple(f.codec.core_format(f) for f in unit.operand)


class _ByBinary64:
    """The engine of a unit whose accumulator is none of the core's: its sums, rounded to odd in binary64, say all."""

    def __init__(self, unit: ExactDotUnit) -> None:
        self.fmt, self.wide = unit.accumulator, format("binary64")
        inner = ExactDotUnit(self.wide, operand=unit.operand, rounding="to_odd")
        self.engine = _exact.DefinitionExact(inner, _operands(unit))

    def run(self, a, b, c, out, words, keys, batch, m0, m1, n0, n1, first=(0, 0), tallies=None) -> int:
        """As every engine (`softnum.mac.products.engines`); ValueError of counts (`tallies`)."""
        if tallies is not None:
            raise ValueError(
                f"return_stats=True is not defined for sums in {self.fmt}: it has values, but no exceptions to be "
                "counted (leave return_stats out)"
            )
        sums = np.empty(out.shape, np.uint64)
        lost = self.engine.run(a, b, self._start(c), sums, None, keys, batch, m0, m1, n0, n1, first=first)
        part = slice(m0 - first[0], m1 - first[0]), slice(n0 - first[1], n1 - first[1])
        out[part] = self._rounded(sums[part])
        return lost

    def run_each(self, a, b, c, out, words) -> int:
        """Many short sums, a row of a and b for each."""
        sums = np.empty(out.shape, np.uint64)
        lost = self.engine.run_each(a, b, self._start(c), sums, None)
        out[...] = self._rounded(sums)
        return lost

    def _start(self, c):
        if c is None:
            return None
        return np.ascontiguousarray(self.fmt.codec.for_core(c.astype(self.fmt.storage_dtype), self.fmt))

    def _rounded(self, sums) -> np.ndarray:
        return self.fmt.encode(np.ascontiguousarray(sums).view(np.float64))


def _is_of_core(unit: ExactDotUnit) -> bool:
    return unit.accumulator.codec.core_format(unit.accumulator) is unit.accumulator


def _definition(unit: ExactDotUnit):
    return _exact.DefinitionExact(unit, _operands(unit)) if _is_of_core(unit) else _ByBinary64(unit)


def _fast(unit: ExactDotUnit):
    if not _is_of_core(unit):
        return None
    return _exact.fast(unit, _operands(unit), tuple(map(facts, unit.operand)))


register(ExactDotUnit, kind="exact", adder=_adder, definition=_definition, fast=_fast)

"""GroupedDotUnit: partial sums of groups, exact or bulk-normalized, each added to the accumulator (RISC-V's units)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from softnum.arrays.environment import environment
from softnum.formats.names import format
from softnum.mac import _fused
from softnum.mac.exact import ExactDotUnit
from softnum.mac.family import register
from softnum.mac.fused import checked_float, checked_integer, deterministic, float_pair
from softnum.mac.mad import Unit

__all__ = ["GroupedDotUnit", "ime_unit"]

_REDUCTIONS = ("bulk", "exact")


@dataclass(frozen=True, repr=False)
class GroupedDotUnit(Unit):
    """Each group of products becomes a partial sum S, and ``acc = R(acc + S)``: RISC-V's dot products.

    S is exact, or bulk-normalized as the RISC-V Bulk Normalization Algorithm (RVBNA) has it: products are exact and not
    normalised; M is the largest exponent among those that are not zero, a subnormal factor counting with its format's
    lowest; each product is brought to a multiple of 2^(M - `fraction_bits`), its magnitude rounded to odd; what is left
    is added exactly. S is then rounded to `partial`, or added as it is. The last group is filled up with zeros.

    Parameters
    ----------
    terms : int
        Products of a group: RVBNA's n; of RISC-V's matrix extension G * W.
    accumulator : format or str
        The format of C, of the running sum and of the result: a signed float.
    operand : format or str, or a pair of them
        The format of a and b, floats.
    reduction : {"bulk", "exact"}
        How S is formed.
    partial : format or str, optional
        The format that S is rounded to, RVBNA's q and f; None means `accumulator`.
    partial_rounding : str or None
        The mode of that rounding; None: S is not rounded, and the addition is the one rounding of a group.
    rounding : str
        The mode of the addition.
    guard_bits : int, optional
        RVBNA's g, of "bulk" alone; None means what it mandates, ceil(log2(terms)).

    Raises
    ------
    ValueError
        If a name or number is out of range, or the parts do not fit together.

    Notes
    -----
    A rounding to odd that overflows gives an infinity, as RVBNA has it, and not the largest number, as the mode has it
    elsewhere in softnum. A bulk-normalized sum of zero is +0, and so is an exact one but in the mode "down". A NaN
    operand, inf * 0 and inf - inf give NaN, any other infinity wins. K = 0 gives C. Products of more bits than
    ``fraction_bits`` + 2, which RVBNA's pseudocode has no shift for, are rounded to odd like the others.

    Source: RISC-V Instruction Set Manual, volume I, "RISC-V Bulk Normalization Algorithm": its words. The masks of its
    pseudocode (as of August 2026) do not do what these say, which its pull request 3244 corrects:
    docs/hardware-units.md.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> unit = sn.GroupedDotUnit(4, "binary32", operand="bfloat16")
    >>> print(unit)
    acc = to_odd(acc + to_odd(a0*b0 + ... + a3*b3)): bfloat16 x bfloat16 -> binary32, products rounded to odd at 25
    fraction bits below the largest exponent, then added; what overflows is infinite
    >>> a = np.array([1, 2.0**-30, 0, 0], np.float32)
    >>> float(sn.dot(a, np.ones(4, np.float32), unit)) == 1 + 2.0**-23  # the last bit says that something was lost
    True
    """

    terms: int
    accumulator: object
    operand: object = None
    reduction: str = "bulk"
    partial: object = None
    partial_rounding: str | None = "to_odd"
    rounding: str = "to_odd"
    guard_bits: int | None = None

    def __post_init__(self) -> None:
        name = "GroupedDotUnit"
        put = lambda field, value: object.__setattr__(self, field, value)  # noqa: E731
        put("terms", checked_integer(name, "terms", self.terms, 1, _fused.MOST_TERMS))
        put("operand", float_pair(name, self.operand))
        put("accumulator", checked_float(name, "accumulator", self.accumulator))
        put("partial", None if self.partial is None else checked_float(name, "partial", self.partial))
        if self.reduction not in _REDUCTIONS:
            raise ValueError(f"{name}: reduction must be one of {', '.join(_REDUCTIONS)}, got {self.reduction!r}")
        for what, fmt in (("accumulator", self.accumulator), ("partial", self.partial_format)):
            if not fmt.signed:
                raise ValueError(f"{name}: {what}={fmt} has no negative numbers; take a signed format")
        put("rounding", deterministic(name, "rounding", self.rounding))
        if self.partial_rounding is not None:
            put("partial_rounding", deterministic(name, "partial_rounding", self.partial_rounding))
        if self.reduction == "exact":
            if self.guard_bits is not None:
                raise ValueError(f"{name}: guard_bits={self.guard_bits} are of reduction='bulk'; exact sums need none")
            self.exact  # noqa: B018  checks the width
        elif self.guard_bits is not None:
            most = _fused.MOST_FRACTION_BITS - self.partial_format.mantissa_bits
            put("guard_bits", checked_integer(name, "guard_bits", self.guard_bits, 0, most))

    @property
    def partial_format(self):
        """The format of S where it is rounded, and of RVBNA's output precision."""
        return self.accumulator if self.partial is None else self.partial

    @property
    def fraction_bits(self) -> int | None:
        """Bits kept below M, RVBNA's q - 1 + g; None of exact sums."""
        if self.reduction == "exact":
            return None
        guard = (self.terms - 1).bit_length() if self.guard_bits is None else self.guard_bits
        return self.partial_format.mantissa_bits + guard

    @cached_property
    def exact(self) -> ExactDotUnit:
        """What sums a group exactly, C among its terms."""
        return ExactDotUnit(self.accumulator, operand=self.operand)

    @property
    def bottom(self) -> int:
        """Exponent of the last bit of the exact sum."""
        return self.exact.bottom if self.reduction == "exact" else 0

    @property
    def words(self) -> int:
        """The exact sum's width in words of 64 bits."""
        return self.exact.words if self.reduction == "exact" else 0

    @property
    def rounded_to(self) -> tuple:
        """The formats of the sum and of partial sums."""
        return self.accumulator, self.partial_format

    @property
    def roundings(self) -> tuple[str | None, ...]:
        """The kinds of roundings, in the order of csrc/softnum/units/grouped.h."""
        return None if self.partial_rounding is None else "partial sum", "sum"

    @cached_property
    def environments(self) -> tuple[tuple, tuple]:
        """(accumulator, partial): the core's numbers of each rounding."""
        return (
            environment(self.accumulator, self.rounding, None, 32),
            environment(self.partial_format, self.partial_rounding or "nearest_even", None, 32),
        )

    def steps(self, k: int) -> int:
        """Number of groups of a sum of length k."""
        return -(-k // self.terms)

    def __str__(self) -> str:
        a, b = self.operand
        products = " + ".join(f"a{t}*b{t}" for t in range(self.terms))
        if self.terms > 2:
            products = f"a0*b0 + ... + a{self.terms - 1}*b{self.terms - 1}"
        if self.partial_rounding is not None:
            products = f"{self.partial_rounding}({products})"
        text = f"acc = {self.rounding}(acc + {products}): {a} x {b} -> {self.accumulator}"
        if self.partial is not None and self.partial != self.accumulator:
            text += f", partial sums in {self.partial}" if self.partial_rounding else f", as for {self.partial}"
        if self.reduction == "exact":
            text += ", partial sums exact before that" if self.partial_rounding else ", partial sums exact"
        else:
            text += f", products rounded to odd at {self.fraction_bits} fraction bits below the largest exponent, then added"
        return text + ("; what overflows is infinite" if "to_odd" in (self.rounding, self.partial_rounding) else "")


def ime_unit(g: int, psm: int, rnd: str, *, w: int, operand, accumulator="binary32", frm="nearest_even"):
    """The unit that a disclosure of RISC-V's integrated matrix extension (IME, Zvvm) states: (G, psm, rnd).

    Parameters
    ----------
    g : int
        G: sub-dot-products of a group, a power of two.
    psm : {0, 1}
        0: partial sums are exact. 1: bulk-normalized, RVBNA at its standard parameters, n = G * W. An implementation
        may publish any other algorithm for psm = 1; that is another unit.
    rnd : {"frm", "rto", "xct"}
        How a partial sum is rounded to the accumulator's format: in the mode `frm`, to odd, or not at all.
    w : int
        W: products of a sub-dot-product, the accumulator's width over the operands', a power of two.
    operand, accumulator : formats
        As of `GroupedDotUnit`.
    frm : str
        The dynamic rounding mode, of the accumulation.

    Returns
    -------
    GroupedDotUnit
        Groups of G * W products. What the text (draft of August 2026) leaves open: rnd = "rto" of a sum that overflows,
        which is infinite here, as RVBNA has it.

    Raises
    ------
    ValueError
        If a number or name is none of these.

    Examples
    --------
    >>> import softnum as sn
    >>> unit = sn.ime_unit(2, 1, "rto", w=2, operand="bfloat16")
    >>> print(unit.expression)
    GroupedDotUnit(4, 'binary32', operand='bfloat16', rounding='nearest_even')
    >>> sn.ime_unit(1, 0, "xct", w=4, operand="e4m3fn").partial_rounding is None
    True
    """
    modes = {"frm": frm, "rto": "to_odd", "xct": None}
    for what, number in (("g", g), ("w", w)):
        checked_integer("ime_unit", what, number, 1, _fused.MOST_TERMS)
        if number & (number - 1):
            raise ValueError(f"ime_unit: {what} must be a power of two, got {number}")
    if psm not in (0, 1):
        raise ValueError(f"ime_unit: psm must be 0 (exact) or 1 (bulk-normalized), got {psm!r}")
    if rnd not in modes:
        raise ValueError(f"ime_unit: rnd must be 'frm', 'rto' or 'xct', got {rnd!r}")
    return GroupedDotUnit(
        g * w, accumulator, operand=operand, reduction="bulk" if psm else "exact", partial_rounding=modes[rnd],
        rounding=frm,
    )  # fmt: skip


def _adder(unit: GroupedDotUnit, fmt) -> GroupedDotUnit:
    return replace(unit, operand=(format("e2m1fn"), fmt))


register(
    GroupedDotUnit, kind="grouped", formats=("accumulator", "partial"), adder=_adder, adds_operands=True,
    definition=_fused.DefinitionGrouped, fast=_fused.fast_grouped,
)  # fmt: skip

"""GroupedDotUnit: partial sums of groups, each added to the accumulator (RISC-V's and Arm's dot products)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from softnum.arrays.environment import environment
from softnum.formats.annotations import FormatLike
from softnum.formats.modes import overflow_name
from softnum.formats.names import format
from softnum.mac import _exact, _fused
from softnum.mac.exact import ExactDotUnit
from softnum.mac.family import register
from softnum.mac.fused import checked_float, checked_integer, deterministic, float_pair
from softnum.mac.mad import Unit, shown_flushes

__all__ = ["GroupedDotUnit", "ime_unit"]

_REDUCTIONS = ("bulk", "exact", "rounded")
_ZEROS = ("positive", "signed")
_MOST_SCALE = 256
_TERMS = 32  # matmul takes sums of fewer than 2**32 products


@dataclass(frozen=True, repr=False)
class GroupedDotUnit(Unit):
    """Each group of products is summed to a partial sum S, and ``acc = R(acc + S)``: the dot products of RISC-V and
    Arm.

    S is exact; or each product is rounded, and then each addition of one to those before it; or S is bulk-normalized as
    the RISC-V Bulk Normalization Algorithm (RVBNA) has it: products are exact and not normalised; M is the largest
    exponent among those that are not zero, a subnormal factor counting with its format's lowest; each product is
    rounded to a multiple of 2^(M - `fraction_bits`), its magnitude to odd; the rounded products are added exactly. S is
    then rounded to `partial`, or added unrounded. The last group is padded with products of +0.

    Parameters
    ----------
    terms : int
        Products per group: n of RVBNA, G * W of RISC-V's matrix extension, 2 of BFDOT.
    accumulator : format or str
        The format of C, of the running sum and of the result: a signed float.
    operand : format or str, or a pair of them
        The format of a and b, floats.
    reduction : {"bulk", "exact", "rounded"}
        How S is computed. "rounded": each product and each sum is rounded to `partial`.
    partial : format or str, optional
        The format that S is rounded to, RVBNA's q and f; None means `accumulator`.
    partial_rounding : str or None
        The mode of that rounding; None: S is not rounded, and each group is rounded once, in its addition.
    rounding : str
        The mode of the addition.
    guard_bits : int, optional
        g of RVBNA, for "bulk" only; None means the mandated ceil(log2(terms)).
    zeros : {"positive", "signed"}
        The start of a group's sum. "positive": +0, so that the sum is never -0 (except in the mode "down").
        "signed": from the first product, so that a sum of products that are all -0 is -0; not of "bulk".
    scale : int
        Products are multiplied by 2^scale; from -256 to 256. Arm's FP8 instructions have -UInt(FPMR.LSCALE).
    flush_inputs : bool
        Read subnormal operands, partial sums and C as zeros of their sign.
    flush_results : {None, "before", "after", "subnormal"}
        Every rounding gives a zero of the same sign if the result is tiny before, or after, rounding with unbounded
        exponent, or is subnormal once it is rounded.
    overflow : str, optional
        The overflow rule of all roundings; None: "infinity", by which a rounding to odd gives an infinity too.

    Raises
    ------
    ValueError
        If a name is unknown, a number is out of range, or parameters contradict each other.

    Notes
    -----
    A rounding to odd that overflows gives an infinity, as RVBNA and Arm have it, and not the largest number, as the
    mode has it elsewhere in softnum; with an `overflow` that saturates, that. A bulk-normalized sum of zero is +0. An
    exact sum of zero is +0 too, and in the mode "down" -0, unless all its terms are zeros of one sign. A NaN operand,
    inf * 0 and inf - inf give NaN, any other infinity wins. K = 0 gives C. Products of more bits than ``fraction_bits``
    + 2, which RVBNA's pseudocode has no shift for, are rounded to odd like the others.

    Sources: RISC-V Instruction Set Manual, volume I, "RISC-V Bulk Normalization Algorithm": its words. The masks of its
    pseudocode (as of August 2026) do not do what these say, which its pull request 3244 corrects:
    docs/hardware-units.md. Arm Architecture Reference Manual (DDI 0487), J1.3.3: BFDotAdd, FPDot, FP8DotAddFP.

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
    >>> unit = sn.GroupedDotUnit(2, "binary32", operand="bfloat16", reduction="rounded", zeros="signed")
    >>> zeros = np.zeros(2, np.float32)
    >>> sn.dot(-zeros, zeros + 1, unit, -0.0)
    np.float32(-0.0)
    """

    terms: int
    accumulator: object
    operand: object = None
    reduction: str = "bulk"
    partial: object = None
    partial_rounding: str | None = "to_odd"
    rounding: str = "to_odd"
    guard_bits: int | None = None
    zeros: str = "positive"
    scale: int = 0
    flush_inputs: bool = False
    flush_results: str | None = None
    overflow: str | None = None

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
        elif self.reduction == "rounded":
            raise ValueError(f"{name}: reduction='rounded' rounds products; state partial_rounding=, the mode")
        if self.zeros not in _ZEROS:
            raise ValueError(f"{name}: zeros must be {' or '.join(map(repr, _ZEROS))}, got {self.zeros!r}")
        if self.reduction == "bulk" and self.zeros != "positive":
            raise ValueError(
                f"{name}: zeros={self.zeros!r} is for reduction='exact' or 'rounded'; bulk-normalized sums of 0 are +0"
            )
        put("scale", checked_integer(name, "scale", self.scale, -_MOST_SCALE, _MOST_SCALE))
        put("flush_inputs", bool(self.flush_inputs))
        if self.overflow is not None:
            put("overflow", overflow_name(self.overflow, self.accumulator))
        self.environments  # noqa: B018  checks flush_results, and the rule of partial
        if self.reduction != "bulk" and self.guard_bits is not None:
            raise ValueError(f"{name}: guard_bits={self.guard_bits} are of reduction='bulk'; other sums need none")
        if self.reduction == "exact":
            self.exact  # noqa: B018  checks the formats
            if self.words > _exact.MOST_WORDS:
                raise ValueError(
                    f"{name}: exact sums would be wider than {64 * _exact.MOST_WORDS} bits; take a scale nearer to 0"
                )
        elif self.guard_bits is not None:
            most = _fused.MOST_FRACTION_BITS - self.partial_format.mantissa_bits
            put("guard_bits", checked_integer(name, "guard_bits", self.guard_bits, 0, most))

    @property
    def partial_format(self) -> Any:
        """The format of S where it is rounded, and of RVBNA's output precision."""
        return self.accumulator if self.partial is None else self.partial

    @property
    def fraction_bits(self) -> int | None:
        """Bits kept below M, RVBNA's q - 1 + g; None of sums without M."""
        if self.reduction != "bulk":
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
        return self._span[0]

    @property
    def words(self) -> int:
        """The exact sum's width in words of 64 bits."""
        return self._span[1]

    @cached_property
    def _span(self) -> tuple[int, int]:
        if self.reduction != "exact":
            return 0, 0
        (last_a, top_a), (last_b, top_b), (last_c, top_c) = (f.span for f in (*self.operand, self.accumulator))
        bottom = min(last_a + last_b + self.scale, last_c)
        width = max(top_a + top_b + self.scale, top_c) + _TERMS - bottom + 1
        return bottom, -(-width // 64)

    @property
    def rounded_to(self) -> tuple[Any, ...]:
        """The formats of the sum and of partial sums."""
        return self.accumulator, self.partial_format

    @property
    def roundings(self) -> tuple[str | None, ...]:
        """The kinds of roundings, in the order of csrc/softnum/units/grouped.h."""
        return None if self.partial_rounding is None else "partial sum", "sum"

    @cached_property
    def environments(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """(accumulator, partial): the core's numbers of each rounding."""
        return (
            self._environment(self.accumulator, self.rounding),
            self._environment(self.partial_format, self.partial_rounding or "nearest_even"),
        )

    def _environment(self, fmt, rounding: str) -> tuple:
        return environment(
            fmt, rounding, self.overflow, 32, flush_inputs=self.flush_inputs, flush_results=self.flush_results
        )

    @property
    def flushes(self) -> bool:
        """Whether subnormal operands or results are flushed."""
        return self.flush_inputs or self.flush_results is not None

    def steps(self, k: int) -> int:
        """Number of groups of a sum of length k."""
        return -(-k // self.terms)

    def __str__(self) -> str:
        a, b = self.operand
        odd = "to_odd" in (self.rounding, self.partial_rounding)
        text = f"acc = {self.rounding}(acc + {self._shown_sum()}): {a} x {b} -> {self.accumulator}"
        if self.partial is not None and self.partial != self.accumulator:
            text += f", partial sums in {self.partial}" if self.partial_rounding else f", as for {self.partial}"
        if self.reduction == "exact":
            text += ", partial sums exact before that" if self.partial_rounding else ", partial sums exact"
        elif self.reduction == "rounded":
            text += f", each product and sum of a group rounded ({self.partial_rounding})"
        else:
            text += f", products rounded to odd at {self.fraction_bits} fraction bits below the largest exponent"
            text += ", then added"
        text += ", groups of zeros of one sign keep it" if self.zeros == "signed" else ""
        text += shown_flushes(self)
        if self.overflow:
            text += f", overflow {self.overflow}"
        return text + ("; what overflows is infinite" if odd and self.overflow in (None, "infinity") else "")

    def _shown_sum(self) -> str:
        """The partial sum, as a formula."""
        mode = self.partial_rounding
        terms = [f"a{t}*b{t}" for t in range(self.terms)]
        if self.terms > 2:
            terms = [terms[0], "...", terms[-1]]
        if self.reduction == "rounded":
            scale = f"2^{self.scale}*" if self.scale else ""
            terms = [t if t == "..." else f"{mode}({scale}{t})" for t in terms]
        products = " + ".join(terms)
        if self.scale and self.reduction != "rounded":
            products = f"2^{self.scale} * ({products})"
        if mode is None or (self.reduction == "rounded" and self.terms == 1):
            return products
        return f"{mode}({products})"


def ime_unit(
    g: int,
    psm: int,
    rnd: str,
    *,
    w: int,
    operand: FormatLike | tuple[FormatLike, FormatLike],
    accumulator: FormatLike = "binary32",
    frm: str = "nearest_even",
) -> GroupedDotUnit:
    """The unit of an implementation of RISC-V's integrated matrix extension (IME, Zvvm) that discloses (G, psm, rnd).

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
        If an argument is not one of these.

    Examples
    --------
    >>> import softnum as sn
    >>> unit = sn.mac.ime_unit(2, 1, "rto", w=2, operand="bfloat16")
    >>> print(unit.expression)
    GroupedDotUnit(4, 'binary32', operand='bfloat16', rounding='nearest_even')
    >>> sn.mac.ime_unit(1, 0, "xct", w=4, operand="e4m3fn").partial_rounding is None
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

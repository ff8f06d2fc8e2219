"""TwoStageDotUnit: products aligned and added first, then their sum and C, as AMD's CDNA3 does it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from softnum.arrays.environment import environment
from softnum.formats.modes import overflow_name
from softnum.formats.names import format
from softnum.mac import _fused
from softnum.mac.family import register
from softnum.mac.fused import checked_float, checked_integer, deterministic, float_pair
from softnum.mac.mad import Unit

__all__ = ["TwoStageDotUnit"]

_ALIGNMENTS = ("down", "toward_zero")
_MOST_EXPONENT = 1 << 16


@dataclass(frozen=True, repr=False)
class TwoStageDotUnit(Unit):
    """A dot-product-add in two stages: the products are aligned and added, then their sum is aligned with C and added
    to it.

    One step takes `terms` products and the running sum C. Products are exact and not normalised; M is the largest
    exponent among them; each is cut off, toward zero, at `fraction_bits` bits below M, and what is left is added
    exactly: S. N is the larger of M and C's exponent. S is aligned to `sum_fraction_bits` bits below N, C to
    `c_fraction_bits`, and their sum is rounded once. Longer sums chain steps: a step's result is the next one's C.

    Parameters
    ----------
    terms : int
        Products per step.
    fraction_bits : int
        Bits of a product kept below M, 0 to 100.
    sum_fraction_bits, c_fraction_bits : int
        Bits of S and of C kept below N, 0 to 100.
    accumulator : format or str
        The format of C, of what passes from step to step, and of the result.
    operand : format or str, or a pair of them
        The format of a and b, floats.
    interleave : int
        The streams of a step, 1 to 8, a divisor of `terms`: product k belongs to stream k mod `interleave`. Each stream
        has an M and a sum of its own; these sums are aligned to `fraction_bits` below the largest M and added: S.
    alignment : {"down", "toward_zero"}
        How S, C and the sums of streams are aligned: rounded toward minus infinity, or truncated toward zero.
    c_reach : int, optional
        C is treated as 0 if its exponent is below N - ``c_reach``. None: C is always added.
    product_limit : int, optional
        A finite product of 2**product_limit or more, in magnitude, makes the result infinite (NaN if there are such of
        both signs), unless a NaN or an infinity decides. None: products have no such limit.
    output_rounding : str
        The mode of each step's rounding.
    overflow : str, optional
        As of `MadUnit`.
    zero_exponent : int, optional
        As of `FusedDotUnit`. None: an operand or a C of zero takes no part in M and N.

    Notes
    -----
    A sum of zero is +0; what rounds to zero keeps its sign. NaN, infinities, and K = 0 are as in `FusedDotUnit`.
    Source: MMA-Sim, arXiv 2511.10909.

    Raises
    ------
    ValueError
        If a name is unknown, a number is out of range, or parameters contradict each other.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> unit = sn.TwoStageDotUnit(8, 24, 31, 24, "binary32", operand="binary16")
    >>> print(unit)
    acc = nearest_even(acc + (a0*b0 + ... + a7*b7)): binary16 x binary16 -> binary32, exact products cut to 24 fraction
    bits below their largest exponent and added, then the sum rounded down to 31 and acc to 24 below the larger one's
    >>> sn.dot(np.float32([1]), np.float32([1]), unit, -(2.0**-60))  # C rounded down to -2**-24
    np.float32(0.99999994)
    """

    terms: int
    fraction_bits: int
    sum_fraction_bits: int
    c_fraction_bits: int
    accumulator: object
    operand: object = None
    interleave: int = 1
    alignment: str = "down"
    c_reach: int | None = None
    product_limit: int | None = None
    output_rounding: str = "nearest_even"
    overflow: str | None = None
    zero_exponent: int | None = None

    def __post_init__(self) -> None:
        name = "TwoStageDotUnit"
        put = lambda field, value: object.__setattr__(self, field, value)  # noqa: E731
        put("terms", checked_integer(name, "terms", self.terms, 1, _fused.MOST_TERMS))
        for what in ("fraction_bits", "sum_fraction_bits", "c_fraction_bits"):
            put(what, checked_integer(name, what, getattr(self, what), 0, _fused.MOST_FRACTION_BITS))
        put("operand", float_pair(name, self.operand))
        put("accumulator", checked_float(name, "accumulator", self.accumulator))
        put("interleave", checked_integer(name, "interleave", self.interleave, 1, _fused.MOST_STREAMS))
        if self.terms % self.interleave:
            raise ValueError(
                f"{name}: interleave must divide terms, got interleave={self.interleave}, terms={self.terms}"
            )
        if self.alignment not in _ALIGNMENTS:
            raise ValueError(f"{name}: alignment must be {' or '.join(_ALIGNMENTS)}, got {self.alignment!r}")
        if self.c_reach is not None:
            put("c_reach", checked_integer(name, "c_reach", self.c_reach, 0, _MOST_EXPONENT))
        if self.product_limit is not None:
            limits = -_MOST_EXPONENT, _MOST_EXPONENT
            put("product_limit", checked_integer(name, "product_limit", self.product_limit, *limits))
        if self.zero_exponent is not None:
            most = min(0, self.accumulator.emin)
            put("zero_exponent", checked_integer(name, "zero_exponent", self.zero_exponent, -_MOST_EXPONENT, most))
        put("output_rounding", deterministic(name, "output_rounding", self.output_rounding))
        if self.overflow is not None:
            put("overflow", overflow_name(self.overflow, self.accumulator))

    @cached_property
    def environment(self) -> tuple[Any, ...]:
        """The core's numbers of each rounding."""
        return environment(self.accumulator, self.output_rounding, self.overflow, 32)

    def steps(self, k: int) -> int:
        """Number of steps of a sum of length k."""
        return -(-k // self.terms)

    def __str__(self) -> str:
        a, b = self.operand
        products = "a0*b0" if self.terms == 1 else "a0*b0 + a1*b1"
        if self.terms > 2:
            products = f"a0*b0 + ... + a{self.terms - 1}*b{self.terms - 1}"
        how = "rounded down" if self.alignment == "down" else "cut"
        text = f"acc = {self.output_rounding}(acc + ({products})): {a} x {b} -> {self.accumulator}, exact products cut "
        if self.interleave > 1:
            text += f"to {self.fraction_bits} fraction bits below the largest exponent of those with equal k mod "
            text += f"{self.interleave} and added, these sums {how} to {self.fraction_bits} below the largest and added"
        else:
            text += f"to {self.fraction_bits} fraction bits below their largest exponent and added"
        text += f", then the sum {how} to {self.sum_fraction_bits} and acc to {self.c_fraction_bits} below the larger "
        text += "one's" + ("" if self.zero_exponent is None else f" (a zero's exponent being {self.zero_exponent})")
        if self.c_reach is not None:
            text += f", acc no part of it below that by more than {self.c_reach}"
        if self.product_limit is not None:
            text += f", products of 2**{self.product_limit} infinite"
        return text + (f", overflow {self.overflow}" if self.overflow else "")


def _adder(unit: TwoStageDotUnit, fmt):
    return replace(unit, operand=(format("e2m1fn"), fmt))


register(
    TwoStageDotUnit, kind="two_stage", adder=_adder, adds_operands=True, definition=_fused.DefinitionTwoStage,
    fast=_fused.fast_two_stage,
)  # fmt: skip

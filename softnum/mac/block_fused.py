"""BlockFusedDotUnit: tensor cores of blocks with scales. Hardware's: softnum.mac.machines.block_scaled."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

from softnum.arrays.environment import environment
from softnum.formats.blocks import format
from softnum.formats.checks import check_block, check_float
from softnum.formats.facts import facts
from softnum.mac import _block_fused
from softnum.mac.family import register
from softnum.mac.fused import put_step, shown_cut
from softnum.mac.mad import Unit

__all__ = ["BlockFusedDotUnit"]

_SUM_BITS = 124  # of the 126 of an aligned sum, what terms may take
_FACTOR_BITS = 64


def _log2(n: int) -> int:
    """The least power of two that is not below n."""
    return (n - 1).bit_length()


@dataclass(frozen=True, repr=False)
class BlockFusedDotUnit(Unit):
    """A fused dot-product-add on block formats, as in Blackwell's tensor cores.

    One step takes `terms` products of elements, the scales of their blocks, and the running sum C, and does with them
    what a step of `FusedDotUnit` does: each term is truncated toward zero at `fraction_bits` bits below M, the largest
    exponent among them; the truncated terms are added exactly and the sum is rounded once; the result of a step is the
    C of the next.

    With ``group=1`` a term is a product of two elements and two scales, whose exponent is the sum of the four. With a
    larger one it is the exact sum S of so many products, times the scales: it counts with the exponents of the two
    scales alone, whatever S is, zero too; S is part of its significand.

    Parameters
    ----------
    terms : int
        Products per step, a multiple of `group`.
    fraction_bits : int
        F: bits kept below M, 0 to 100.
    accumulator : format or str
        The format of C, of what passes from step to step, and of the result: a float.
    operand : BlockFormat or str, or a pair of them
        The formats of a and b, of one block size, a multiple of `group`. Scales are floats without infinities, elements
        floats, or of groups of several fixed point too. `matmul` takes BlockArrays of them, blocked along K.
    group : int
        Number of products that are summed exactly into one term; 1 or more.
    min_exponent, output_rounding, truncate_fraction, overflow, zero_exponent
        As of `FusedDotUnit`; a scale of zero counts as zeros do.

    Notes
    -----
    The sign of a scale is ignored (as the sign bit of ue4m3 is). A NaN among scales, elements and C gives NaN,
    infinity times zero too, also of a scale, and infinities of both signs; one sign of them wins. Zero sums and sums
    that round to zero are +0. The padding of the last step has no effect. K = 0 gives C.

    Formats with a scale of the whole array (nvfp4): the hardware has no such scale, and software applies it. It is
    applied as `BlockDotUnit` does: the steps start from +0, and last comes ``R(acc * (T_a * T_b))``, or ``R(C + acc *
    (T_a * T_b))`` with C, R to nearest even, T exact. For C as a term of the first step take a format without one, as
    ``BlockFormat("e2m1fn", "e4m3fn", 16)``.

    Source: MMA-Sim, arXiv 2511.10909.

    Raises
    ------
    ValueError
        If a name is unknown, a number is out of range, or parameters contradict each other.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> unit = sn.BlockFusedDotUnit(64, 35, "binary32", operand="mxfp4", group=16)
    >>> print(unit)
    acc = toward_zero(acc + S0*(X*Y) + ... + S3*(X*Y)), S = a0*b0 + ... + a15*b15, blocks of 32: mxfp4_e2m1 x mxfp4_e2m1
    -> binary32, exact terms of the exponents of X*Y, and acc cut to 35 fraction bits below the largest exponent, then
    added
    >>> a = sn.array(np.full((1, 64), 3.0), "mxfp4", axis=-1)
    >>> sn.matmul(a, a.T, unit)
    array([[576.]], dtype=float32)
    """

    terms: int
    fraction_bits: int
    accumulator: object
    operand: object = None
    group: int = 1
    min_exponent: int | None = None
    output_rounding: str = "toward_zero"
    truncate_fraction: int | None = None
    overflow: str | None = None
    zero_exponent: int | None = None

    def __post_init__(self) -> None:
        me = "BlockFusedDotUnit"
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        if self.operand is None:
            raise ValueError(f"{me}: state operand=, the block format (or pair of them) of the factors")
        pair = self.operand if isinstance(self.operand, tuple) else (self.operand, self.operand)
        if len(pair) != 2:
            raise ValueError(f"{me}: operand is one block format or a pair, got {len(pair)}")
        put("operand", tuple(format(f) for f in pair))
        put_step(self)
        if isinstance(self.group, bool) or not isinstance(self.group, Integral) or not 1 <= self.group <= self.terms:
            raise ValueError(f"{me}: group must be an integer in 1..{self.terms}, the terms, got {self.group!r}")
        put("group", int(self.group))
        self._check_blocks(me)
        self._check_widths(me)

    def _check_blocks(self, me: str) -> None:
        for fmt in self.operand:
            check_block(fmt, f"{me}: operand={{}} is no block format; use a FusedDotUnit")
            check_float(fmt.scale, f"{me}: operand={fmt} has scales of {{}}, which is no float format")
            if fmt.scale.infinities:
                raise ValueError(f"{me}: operand={fmt} has scales of {fmt.scale}, which has infinities; take another")
            if self.group == 1:
                check_float(
                    fmt.element, f"{me}: operand={fmt} has elements of {{}}, no floats, and group=1 takes those"
                )
        a, b = self.operand
        if a.block_size != b.block_size:
            raise ValueError(f"{me}: blocks of {a.block_size} ({a}) and of {b.block_size} ({b}) do not meet")
        if a.block_size is None:
            raise ValueError(f"{me}: operand={a} has one block whatever K is; state a block_size")
        for what, size in (("terms", self.terms), ("the block size", a.block_size)):
            if size % self.group:
                raise ValueError(f"{me}: {what} must be a multiple of group = {self.group}, got {size}")

    def _check_widths(self, me: str) -> None:
        a, b = self.operand
        for what in ("element", "scale"):
            x, y = (getattr(f, what) for f in self.operand)
            if facts(x).precision + facts(y).precision > _FACTOR_BITS:
                raise ValueError(f"{me}: products of {what}s {x} and {y} have more than {_FACTOR_BITS} bits")
        if self.group == 1:
            return
        top = a.element.span[1] + b.element.span[1] + _log2(self.group)
        scales = facts(a.scale).precision + facts(b.scale).precision
        exact, aligned = top - self.plain + scales, top + 2 + self.fraction_bits + _log2(self.terms // self.group)
        if max(exact, aligned) > _SUM_BITS:
            raise ValueError(
                f"{me}: sums of {self.group} products of {a.element} and {b.element} would take {max(exact, aligned)} "
                f"bits of {_SUM_BITS} that there are; take a smaller group or fraction_bits, or other formats"
            )

    @property
    def plain(self) -> int:
        """Exponent of the last bit of products of elements."""
        return sum(f.element.span[0] for f in self.operand)

    @property
    def block_size(self) -> int:
        """Elements of a block."""
        return self.operand[0].block_size

    @property
    def tensor_scales(self) -> bool:
        """Whether an operand has a scale of the whole array, which makes a last step."""
        return any(f.tensor_scale is not None for f in self.operand)

    @property
    def roundings(self) -> tuple[str | None, ...]:
        """The kinds of roundings, in the order of csrc/products/blocks/block_fused.h."""
        return "sum", "tensor scales" if self.tensor_scales else None

    @cached_property
    def environments(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """(sum, tensor scales): the core's numbers of each rounding."""
        rule = None if self.overflow == "always_infinity" else self.overflow
        return tuple(environment(self.accumulator, mode, rule, 32) for mode in (self.output_rounding, "nearest_even"))

    def steps(self, k: int) -> int:
        """Number of steps of a sum of length k, that of the arrays' scales among them."""
        return -(-k // self.terms) + (1 if k and self.tensor_scales else 0)

    def __str__(self) -> str:
        def total(first: str, count: int) -> str:
            numbered = [first.format(i) for i in range(count)]
            return " + ".join(numbered if count < 3 else [numbered[0], "...", numbered[-1]])

        a, b = self.operand
        one = self.group == 1
        terms = total("a{0}*b{0}*(X*Y)" if one else "S{0}*(X*Y)", self.terms // self.group)
        text = f"acc = {self.output_rounding}(acc + {terms})"
        if not one:
            text += f", S = {total('a{0}*b{0}', self.group)}"
        text += f", blocks of {self.block_size}: {a} x {b} -> {self.accumulator}, exact terms"
        text += ("" if one else " of the exponents of X*Y,") + f" and acc {shown_cut(self)}"
        if self.tensor_scales:
            text += ", then nearest_even(acc * (Ta * Tb) + C)"
        return text + (f", overflow {self.overflow}" if self.overflow else "")


register(
    BlockFusedDotUnit, kind="block_fused", of_blocks=True, definition=_block_fused.DefinitionBlockFused,
    fast=_block_fused.fast,
)  # fmt: skip

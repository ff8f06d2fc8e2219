"""BlockDotUnit: dot products of block formats."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from softnum.arrays.environment import environment
from softnum.arrays.sources import DEFAULT_SOURCE
from softnum.formats.base import AnyFormat
from softnum.formats.blocks import format
from softnum.formats.checks import check_block
from softnum.formats.facts import facts
from softnum.formats.modes import overflow_of_formats, rounding_name
from softnum.formats.names import format as plain_format
from softnum.mac import _blocks
from softnum.mac.family import family_of, register
from softnum.mac.mad import Unit, check_sum_formats, put_source, shown_source

__all__ = ["BlockDotUnit"]


_TERMS = 32  # matmul takes sums of fewer than 2**32 products, and C


@dataclass(frozen=True, repr=False)
class BlockDotUnit(Unit):
    """A unit for block formats: ``acc = R(acc + S_j * (X_j * Y_j))`` over the blocks j along K, from +0 or C.

    S_j is the sum of block j's products of elements, X_j and Y_j are the scales of the two operands' blocks. OCP MX
    v1.0 (clauses 6.1, 6.2) leaves the order of summation and the precision in between to the implementation; here each
    is stated.

    Parameters
    ----------
    accumulator : format or str
        The format of the outer sum, of C and of the result.
    operand : BlockFormat or str, or a pair of them
        The formats of a and b, of one block size. `matmul` takes BlockArrays of them, blocked along K.
    inner : Unit, optional
        The unit that computes S_j, from +0: a MadUnit, FusedDotUnit, FmaChainUnit or ExactDotUnit on the formats of the
        elements. None: S_j is exact and not rounded before it is scaled.
    product : format or str, optional
        The format that S_j * (X_j * Y_j) is rounded to before it is added. None: it stays exact, and each block is
        rounded once, in its addition. The product of the two scales is always exact.
    rounding : str
        The mode of the outer sum.
    product_rounding : str, optional
        The mode of the scaled sum; None means `rounding`.
    overflow : str, optional
        The overflow rule of accumulator and product; by default that of each format.
    stochastic_bits : int
        r of the stochastic modes, for the roundings outside `inner`; 1 to 32.
    random : str
        The source of the bits of stochastic roundings, as in `MadUnit`; that of `inner`, too, if it rounds
        stochastically: the steps of a product are of one source. Step k has the bits of an LFSR that has moved k
        times, whether the steps before round or not.

    Notes
    -----
    Operands with a tensor scale (nvfp4) give one more step: ``R(acc * (T_a * T_b))``, T the exact scales of the arrays
    (1 for an operand without one), or ``R(C + acc * (T_a * T_b))`` with C, which is then added in this step instead of
    starting the sum.

    Special values are those of IEEE 754: a NaN scale makes the sum NaN, infinity times a zero scale too. An exact S_j
    of zero is +0. A short last block is not padded: `inner` sums only its products. K = 0 gives C, or +0.

    Random words: product k's step within `inner` is step k; what steps `inner` has beyond its products (additions of
    lanes and chunks), the additions of the blocks and the last step of tensor scales are steps K, K + 1, ... in the
    order of their execution. An addition takes the sum's word of its step, the rounding of S_j * (X_j * Y_j) the
    product's.

    Raises
    ------
    ValueError
        If a name is unknown, a number is out of range, or parameters contradict each other.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> unit = sn.BlockDotUnit("binary32", operand="mxfp8_e4m3")
    >>> print(unit)
    acc = round(acc + sum(a * b) * (X * Y)), blocks of 32: mxfp8_e4m3 x mxfp8_e4m3 -> binary32, one rounding a block
    (nearest_even); sum(a * b): exact
    >>> a = sn.array(np.full((1, 40), 3.3, np.float32), "mxfp8_e4m3", axis=-1)
    >>> sn.matmul(a, a.T, unit)
    array([[422.5]], dtype=float32)
    """

    accumulator: object
    operand: object = None
    inner: Unit | None = None
    product: object = None
    rounding: str = "nearest_even"
    product_rounding: str | None = None
    overflow: str | None = None
    stochastic_bits: int = 32
    random: str = DEFAULT_SOURCE

    def __post_init__(self) -> None:
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        if self.operand is None:
            raise ValueError("BlockDotUnit: state operand=, the block format (or pair of them) of the factors")
        pair = self.operand if isinstance(self.operand, tuple) else (self.operand, self.operand)
        if len(pair) != 2:
            raise ValueError(f"BlockDotUnit: operand is one block format or a pair, got {len(pair)}")
        put("operand", tuple(format(f) for f in pair))
        for fmt in self.operand:
            check_block(fmt, "BlockDotUnit: operand={} is no block format; use a MadUnit or another of its kind")
        a, b = self.operand
        if a.block_size != b.block_size:
            raise ValueError(f"BlockDotUnit: blocks of {a.block_size} ({a}) and of {b.block_size} ({b}) do not meet")
        put("accumulator", plain_format(self.accumulator))
        put("product", None if self.product is None else plain_format(self.product))
        check_sum_formats(self, "accumulator", "product")
        put("rounding", rounding_name(self.rounding))
        if self.product_rounding is not None:
            if self.product is None:
                raise ValueError("BlockDotUnit: product_rounding needs product=, the format to round a scaled sum to")
            put("product_rounding", rounding_name(self.product_rounding))
        self.environments  # noqa: B018  checks the rule and r
        put_source(self, self.own_stochastic)
        self._check_inner()
        if facts(a.scale).precision + facts(b.scale).precision > 64:
            raise ValueError(f"BlockDotUnit: products of scales {a.scale} and {b.scale} have more than 64 bits")

    def _check_inner(self) -> None:
        a, b = self.operand
        if self.inner is not None:
            if not isinstance(self.inner, Unit) or family_of(self.inner).of_blocks:
                raise ValueError(f"BlockDotUnit: inner must be a unit on elements, got {self.inner!r}")
            if self.inner.operand != (a.element, b.element):
                got = " x ".join(map(str, self.inner.operand))
                raise ValueError(
                    f"BlockDotUnit: inner multiplies {got}, but the elements of {a} and {b} are "
                    f"{a.element} x {b.element}"
                )
            if self.inner.stochastic and self.inner.random != self.random:
                raise ValueError(
                    f"BlockDotUnit: inner takes its random bits of {self.inner.random!r}, the unit of {self.random!r}, "
                    "but the steps of a product of blocks are of one source; state the same random= in both"
                )
            return
        if facts(a.element).precision + facts(b.element).precision > 64:
            raise ValueError(
                f"BlockDotUnit: products of {a.element} and {b.element} have more than 64 bits; state inner="
            )
        if self.words > _blocks.MOST_WORDS:
            raise ValueError(
                f"BlockDotUnit: an exact sum would take {64 * self.words} bits of {64 * _blocks.MOST_WORDS} that there "
                "are; state inner=, or take formats of fewer exponents"
            )

    # -- the accumulator of exact sums -------------------------------------------------------------------------------
    @cached_property
    def _spans(self) -> tuple:
        """(last, top) of products of elements, of these times scales, and of the accumulator."""
        a, b = self.operand
        (la, ta), (lb, tb), (lx, tx), (ly, ty) = (f.span for f in (a.element, b.element, a.scale, b.scale))
        return (la + lb, ta + tb), (la + lb + lx + ly, ta + tb + tx + ty), self.accumulator.span

    @property
    def bottom(self) -> int:
        """Exponent of the last bit that an exact sum, scaled, or the accumulator has."""
        _, (scaled, _), (last, _) = self._spans
        return min(scaled, last)

    @property
    def plain(self) -> int:
        """Exponent of the last bit of products of elements."""
        return self._spans[0][0]

    @property
    def words(self) -> int:
        """Words of 64 bits that hold the accumulator and any scaled sum of fewer than 2**32 products."""
        (plain, most), (_, scaled), (_, top) = self._spans
        return -(-max(max(scaled, top) + _TERMS - self.bottom + 2, most + _TERMS - plain + 2) // 64)

    # -- what every unit has -----------------------------------------------------------------------------------------
    @property
    def block_size(self) -> int | None:
        """Elements of a block; None: all of K."""
        return self.operand[0].block_size

    @property
    def tensor_scales(self) -> bool:
        """Whether an operand has a scale of the whole array, which makes a last step."""
        return any(f.tensor_scale is not None for f in self.operand)

    @property
    def product_mode(self) -> str:
        """The mode that scaled sums round in."""
        return self.product_rounding or self.rounding

    @cached_property
    def environments(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """(scaled sum, outer sum): the core's numbers of each rounding."""
        return tuple(
            environment(fmt, mode, self.rule_for(fmt), self.stochastic_bits)
            for fmt, mode in ((self.product or self.accumulator, self.product_mode), (self.accumulator, self.rounding))
        )

    def rule_for(self, fmt: AnyFormat) -> str | None:
        """The overflow rule, where a format knows it; its default where only the other one does."""
        return overflow_of_formats(self.overflow, fmt, self.accumulator, self.product or self.accumulator)

    @property
    def rounded_to(self) -> tuple[Any, ...]:
        """The formats of scaled sums and of the outer sum, and those of `inner`."""
        return (self.product, self.accumulator, *(() if self.inner is None else self.inner.rounded_to))

    @property
    def roundings(self) -> tuple[str | None, ...]:
        """The kinds of roundings, in the order of csrc/products/blocks/block.h, and those of `inner`."""
        inner = () if self.inner is None else self.inner.roundings
        own = None if self.product is None else "scaled sum", "sum", "tensor scales" if self.tensor_scales else None
        return (*own, *(None if name is None else f"inner {name}" for name in inner))

    @property
    def two_roundings(self) -> bool:
        """Whether both the scaled sum and the outer sum round stochastically."""
        return self.product is not None and all(m.startswith("stochastic") for m in (self.product_mode, self.rounding))

    @property
    def own_stochastic(self) -> bool:
        """Whether a rounding outside `inner` is stochastic."""
        scaled = self.product is not None and self.product_mode.startswith("stochastic")
        return scaled or self.rounding.startswith("stochastic")

    @property
    def stochastic(self) -> bool:
        """Whether a random key is needed."""
        return self.own_stochastic or (self.inner is not None and self.inner.stochastic)

    def lengths(self, k: int) -> list[int]:
        """The lengths of the blocks of a sum of length k."""
        size = self.operand[0].size(k)
        return [min(size, k - first) for first in range(0, k, size)]

    def numbering(self, k: int) -> tuple[list[tuple[list[int], int]], int]:
        """((steps of `inner`, step of the addition) of each block, the step of tensor scales)."""
        blocks, first, counter = [], 0, k
        for length in self.lengths(k):
            steps = 0 if self.inner is None or not self.inner.stochastic else self.inner.steps(length)
            extra = max(0, steps - length)
            inner = [*range(first, first + min(steps, length)), *range(counter, counter + extra)]
            blocks.append((inner, counter + extra))
            counter += extra + 1
            first += length
        return blocks, counter

    def steps(self, k: int) -> int:
        """Number of steps: K, and one for each further addition, of `inner` and of blocks, and for tensor scales."""
        size = self.operand[0].size(k)
        whole, rest = divmod(k, size)
        own = lambda n: max(0, self.inner.steps(n) - n) if self.inner is not None and self.inner.stochastic else 0  # noqa: E731
        return k + whole * (own(size) + 1) + (own(rest) + 1 if rest else 0) + (1 if k and self.tensor_scales else 0)

    def __str__(self) -> str:
        a, b = self.operand
        scaled = "sum(a * b) * (X * Y)"
        size = "one block" if self.block_size is None else f"blocks of {self.block_size}"
        if self.product is None:
            text = f"acc = round(acc + {scaled}), {size}: {a} x {b} -> {self.accumulator}, one rounding a block "
            text += f"({self._mode(self.rounding)})"
        else:
            text = (
                f"acc = round(acc + round({scaled})), {size}: {a} x {b} -> {self.product} "
                f"({self._mode(self.product_mode)}) -> {self.accumulator} ({self._mode(self.rounding)})"
            )
        if self.tensor_scales:
            text += ", then round(acc * (Ta * Tb) + C)"
        if self.overflow:
            text += f", overflow {self.overflow}"
        text += shown_source(self)
        return text + f"; sum(a * b): {'exact' if self.inner is None else self.inner}"


register(
    BlockDotUnit, kind="block_dot", formats=("accumulator", "product"), of_blocks=True,
    options=("rounding", "product_rounding", "overflow", "stochastic_bits", "random", "inner"),
)  # fmt: skip

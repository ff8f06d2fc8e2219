"""SplitDotUnit: products whose K is divided among ranks, and a collective that adds the partial products."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from softnum.arrays.conversion import decode, encode
from softnum.collectives.collective import Collective
from softnum.collectives.make import collective as collective_from
from softnum.collectives.split import split_matmul
from softnum.formats.base import AnyFormat
from softnum.formats.facts import fits
from softnum.mac.family import family_of, register
from softnum.mac.mad import Unit
from softnum.mac.presets import unit_of
from softnum.mac.products.operands import checked_operand
from softnum.ops.arithmetic import add

__all__ = ["SplitDotUnit"]


@dataclass(frozen=True, repr=False)
class SplitDotUnit(Unit):
    """A product whose K is divided among ranks, each of which multiplies its part; a collective adds what they have.

    What `softnum.collectives.split_matmul` computes, as a unit: of matrices that tensor parallelism splits by their
    input features (in the forward pass a "row-parallel" layer, in the gradient of its input a "column-parallel" one,
    Megatron-LM). Rank r multiplies part r of K in `inner`, from +0, and rounds it to the collective's ``format``, to
    nearest even; then the collective adds. C is added last, to nearest even, as a bias is after the all-reduce.

    A result depends on its place: chunks of a ring start at different ranks, and are parts of the whole product, its
    elements in C order. So it is a unit of `softnum.matmul` alone, and a part of a product has other bits than the same
    part of the whole; stacked matrices are one array.

    Parameters
    ----------
    inner : Unit or str
        Of each rank's product; not one of block formats.
    collective : Collective or str
        Its ranks divide K. Not one of averages, and all ranks have the same result.
    sections : sequence of int, optional
        K consists of parts of these lengths, each of which is divided among the ranks: rank r has part r of each, one
        after the other. Default: K itself. Of a layer that makes queries, keys and values at once: the columns of each.

    Raises
    ------
    ValueError
        If ranks may have different results, the collective averages, or the parts do not fit together; in a product, if
        the ranks do not divide K, or sections are not K.

    References
    ----------
    M. Shoeybi et al., "Megatron-LM: Training Multi-Billion Parameter Language Models Using Model Parallelism", 2019,
    section 3.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> wide = sn.MadUnit("binary32", operand="bfloat16")
    >>> unit = sn.SplitDotUnit(wide, sn.collective("ring", 4, unit="bfloat16"))
    >>> a, b = np.full((1, 8), 1, np.float32), np.full((8, 4), 1, np.float32)
    >>> a[0, :2], b[2:] = 128, 0.5  # rank 0 has 256 and the others 1 each, which bfloat16 adds to it only as 2 or 3
    >>> sn.matmul(a, b, wide)
    array([[259., 259., 259., 259.]], dtype=float32)
    >>> sn.matmul(a, b, unit)  # each column is a chunk: it begins at another rank
    array([[260., 260., 256., 256.]], dtype=float32)
    """

    inner: Unit
    collective: Collective
    sections: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        put("inner", unit_of(self.inner))
        put("collective", collective_from(self.collective))
        c, family = self.collective, family_of(self.inner)
        if family.of_blocks or family.whole is not None:
            what = "multiplies blocks, which are not divided here" if family.of_blocks else "is divided already"
            raise ValueError(f"SplitDotUnit: inner={self.inner.expression} {what}; state a unit of single numbers")
        if not fits(self.inner.result, np.float64):
            raise ValueError(f"SplitDotUnit: inner's result, {self.inner.result}, has values that binary64 lacks")
        if c.differs:
            raise ValueError(
                f"SplitDotUnit: ranks may have different results of {c}, and a product has one; leave out "
                f"own={c.own!r}" + ("" if c.start != "own" else " and start='own'") + ", or take split_matmul"
            )
        if c.average is not None:
            raise ValueError(f"SplitDotUnit: parts of a product are added, and {c} averages; leave out average=")
        if self.sections is not None:
            if not isinstance(self.sections, Iterable):
                raise ValueError(f"SplitDotUnit: sections are the lengths of K's parts, got {self.sections!r}")
            put("sections", tuple(self.sections))
            for size in self.sections:
                whole = isinstance(size, Integral) and not isinstance(size, bool)
                if not whole or size < 1 or size % c.ranks:
                    raise ValueError(
                        f"SplitDotUnit: sections are multiples of the {c.ranks} ranks, which divide each of them, got "
                        f"{size!r}; leave sections out to divide K as a whole"
                    )
            put("sections", tuple(map(int, self.sections)))

    @property
    def operand(self) -> tuple:
        """The formats of a and b: those of `inner`."""
        return self.inner.operand

    @property
    def ranks(self) -> int:
        """How many have a part of K."""
        return self.collective.ranks

    @property
    def result(self) -> AnyFormat:
        """The format of the result: the collective's."""
        return self.collective.format

    @property
    def rounded_to(self) -> tuple:
        """The format of the result."""
        return (self.result,)

    @property
    def stochastic(self) -> bool:
        """Whether `inner`, the adder or the wire rounds stochastically."""
        return self.inner.stochastic or self.collective.stochastic

    def check_length(self, k: int) -> None:
        """ValueError unless ranks can share a K.

        >>> import softnum as sn
        >>> unit = sn.SplitDotUnit(sn.MadUnit("binary32", operand="bfloat16"), "ring(ranks=4)", sections=[8, 4])
        >>> unit.check_length(12)
        """
        if self.sections is not None and sum(self.sections) != k:
            raise ValueError(
                f"SplitDotUnit: K = {k}, and sections={list(self.sections)} are {sum(self.sections)} together"
            )
        if k % self.ranks:
            raise ValueError(
                f"SplitDotUnit: K = {k} has no equal parts for {self.ranks} ranks; take a number that "
                "divides it, or an undivided unit here"
            )

    def __str__(self) -> str:
        of = "" if self.sections is None else f" of sections of {', '.join(map(str, self.sections))}"
        return (
            f"K{of} in {self.ranks} parts, rounded to {self.result} and added by {self.collective}; parts: {self.inner}"
        )


def _product(unit: SplitDotUnit, a, b, c, key, threads) -> np.ndarray:
    a, b = (checked_operand(x, fmt, what) for x, fmt, what in zip((a, b), unit.operand, "ab", strict=True))
    if min(a.ndim, b.ndim) >= 2 and a.shape[-1] == b.shape[-2]:  # else split_matmul says what is wrong
        unit.check_length(a.shape[-1])
        if unit.sections is not None:
            order = _order(unit)
            a, b = a[..., order], b[..., order, :]
    result = split_matmul(a, b, unit.inner, unit.collective, key=key, threads=threads)[0]
    if c is not None:
        c = checked_operand(c, unit.result, "c")
        if c.ndim > result.ndim or any(
            size not in (1, want) for size, want in zip(c.shape[::-1], result.shape[::-1], strict=False)
        ):
            raise ValueError(f"matmul: c of shape {c.shape} does not broadcast to {result.shape}")
        codes = (encode(x, unit.result) for x in (result, np.ascontiguousarray(np.broadcast_to(c, result.shape))))
        result = decode(add(*codes, (unit.result, unit.result), out_fmt=unit.result), unit.result)
    return np.array(result, np.float32 if fits(unit.result, np.float32) else np.float64)


def _order(unit: SplitDotUnit) -> np.ndarray:
    """Which k are rank 0's, rank 1's and so on."""
    firsts = np.cumsum((0, *unit.sections[:-1]))
    parts = [np.arange(size).reshape(unit.ranks, -1) + first for first, size in zip(firsts, unit.sections, strict=True)]
    return np.concatenate(parts, axis=1).reshape(-1)


register(SplitDotUnit, kind="split", formats=(), needed=("inner", "collective"), options=("ranks", "sections"),
         from_text=False, whole=_product)  # fmt: skip

"""Vectors out: exhaustive where it fits, else edge cases crossed with each other and then seeded random ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import gcd, prod
from numbers import Integral

import numpy as np

from softnum.vectors.operands import RANDOM_BLOCK, core_codes, edge_codes, random_bits_block, random_block
from softnum.vectors.spec import Block, VectorSpec

__all__ = ["DEFAULT_COUNT", "EXHAUSTIVE_LIMIT", "Plan", "generate", "plan"]

#: Without a count, all combinations of operands and random bits are made if there are at most this many,
EXHAUSTIVE_LIMIT = 1 << 16
#: and this many vectors otherwise.
DEFAULT_COUNT = 1 << 18


@dataclass(frozen=True)
class Plan:
    """Which vectors will be made, and how many, before any is.

    ``method`` is "exhaustive" (every combination of operands, and of random bits), "exhaustive operands" (stochastic
    rounding: every combination of operands, the random bits drawn) or "edges and random".
    """

    spec: VectorSpec
    method: str
    count: int
    seed: int

    @cached_property
    def _tables(self) -> list[np.ndarray]:
        codes = core_codes if len(self.spec.formats) > 2 else edge_codes
        return [codes(f) for f in self.spec.formats]

    @cached_property
    def edges(self) -> int:
        """How many of the vectors are crossed edge cases: all there are, but at most half of the count (rounded up)."""
        if self.method != "edges and random":
            return 0
        return min(prod(len(t) for t in self._tables), -(-self.count // 2))

    def blocks(self) -> Iterator[Block]:
        """The vectors, at most 2**16 at a time; memory does not grow with the count."""
        done = 0
        while done < self.count:
            if self.method != "edges and random":
                n = min(RANDOM_BLOCK, self.count - done)
                operands, drawn = self._enumerated(done, n)
            elif done < self.edges:
                n = min(RANDOM_BLOCK, self.edges - done)
                operands, drawn = self._crossed(done, n), None
            else:
                number, start = divmod(done - self.edges, RANDOM_BLOCK)
                n = min(RANDOM_BLOCK - start, self.count - done)
                operands, drawn = (
                    tuple(c[start : start + n] for c in random_block(self.spec, self.seed, number)),
                    None,
                )
            if drawn is None and self.spec.stochastic_bits is not None:
                drawn = self._random_bits(done, n)
            yield self.spec.evaluate(operands, drawn)
            done += n

    def _enumerated(self, start: int, n: int):
        """Vectors start .. start+n-1 of all combinations: the last column counts fastest."""
        index = np.arange(start, start + n, dtype=np.uint64)
        widths = [f.bits for f in self.spec.formats]
        with_random = self.method == "exhaustive" and self.spec.stochastic_bits is not None
        if with_random:
            widths.append(self.spec.stochastic_bits)
        parts = []
        for bits in reversed(widths):
            parts.append(index & np.uint64((1 << bits) - 1))
            index = index >> np.uint64(bits)
        parts.reverse()
        drawn = parts.pop().astype(np.uint32) if with_random else None
        return tuple(p.astype(f.storage_dtype) for p, f in zip(parts, self.spec.formats, strict=True)), drawn

    def _crossed(self, start: int, n: int):
        """Vectors of the crossed tables, by a stride near the golden section, so that any beginning is spread."""
        total = prod(len(t) for t in self._tables)
        stride = max(1, round(total * 0.6180339887))
        while gcd(stride, total) != 1:
            stride += 1
        index = np.arange(start, start + n, dtype=np.uint64) * np.uint64(stride) % np.uint64(total)
        parts = []
        for table in reversed(self._tables):
            parts.append(table[(index % np.uint64(len(table))).astype(np.int64)])
            index = index // np.uint64(len(table))
        parts.reverse()
        return tuple(p.astype(f.storage_dtype) for p, f in zip(parts, self.spec.formats, strict=True))

    def _random_bits(self, start: int, n: int) -> np.ndarray:
        """The random words of vectors start .. start+n-1: they depend on the vector's number alone."""
        parts = []
        while n:
            number, first = divmod(start, RANDOM_BLOCK)
            words = random_bits_block(self.spec.stochastic_bits, self.seed, number)[first : first + n]
            parts.append(words)
            start, n = start + len(words), n - len(words)
        return np.concatenate(parts)


def plan(spec: VectorSpec, *, count: int | None = None, seed: int = 0) -> Plan:
    """Decide which vectors to make (the rule stands at `generate`).

    Raises ValueError for a count below 1 and a seed outside 0..2**64-1.
    """
    for what, value, low, high in (("count", count, 1, 1 << 62), ("seed", seed, 0, (1 << 64) - 1)):
        if what == "count" and value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise TypeError(f"{what} must be an integer, got {value!r}")
        if not low <= value <= high:
            raise ValueError(f"{what} must lie in {low}..{high}, got {value}")
    operand_bits = sum(f.bits for f in spec.formats)
    all_bits = operand_bits + (spec.stochastic_bits or 0)
    limit = EXHAUSTIVE_LIMIT if count is None else int(count)
    if 1 << all_bits <= limit:
        return Plan(spec, "exhaustive", 1 << all_bits, int(seed))
    if spec.stochastic_bits is not None and 1 << operand_bits <= limit:
        return Plan(spec, "exhaustive operands", 1 << operand_bits if count is None else int(count), int(seed))
    return Plan(spec, "edges and random", DEFAULT_COUNT if count is None else int(count), int(seed))


def generate(
    op, fmt, *, out_fmt=None, rounding="nearest_even", overflow=None, tininess="after", stochastic_bits=32, count=None,
    seed=0,
) -> Iterator[Block]:  # fmt: skip
    """Make test vectors: operands, random bits, correctly rounded results and flags.

    All combinations of operands (and random bits) are made, in order, where `count` admits them: without a count, where
    there are at most 2**16 (two operands of 8 bits). If only the operands' combinations fit, each comes in turn with
    drawn random bits. Otherwise half of the vectors (2**18 without a count) are the format's edge cases crossed with
    each other, and the rest is drawn: uniform codes, edge cases, significands that end in long runs, sums that cancel,
    results at the format's limits.

    Parameters
    ----------
    op : {"convert", "add", "subtract", "multiply", "fma"}
    fmt : format or str, or a tuple of them
        The operands' format(s).
    out_fmt, rounding, overflow, tininess, stochastic_bits
        As in `softnum.multiply`.
    count : int, optional
        How many vectors; fewer are made only where these are all there are.
    seed : int
        0 to 2**64 - 1. Same arguments, same vectors, on every machine.

    Returns
    -------
    iterator of Block
        At most 2**16 vectors each; memory does not grow with `count`.

    Raises
    ------
    ValueError
        At the call, if a name is unknown, formats do not fit each other, or a number is out of range.

    Notes
    -----
    The idea of crossed edge cases follows Berkeley TestFloat. Random numbers: Philox (Salmon et al. 2011), by counter.

    Examples
    --------
    >>> from softnum.vectors import generate
    >>> blocks = list(generate("multiply", "e5m2"))
    >>> len(blocks), len(blocks[0])
    (1, 65536)
    >>> blocks[0].operands[0][-1], blocks[0].result[-1]  # NaN times NaN
    (np.uint8(255), np.uint8(126))
    """
    spec = VectorSpec.make(
        op, fmt, out_fmt=out_fmt, rounding=rounding, overflow=overflow, tininess=tininess,
        stochastic_bits=stochastic_bits,
    )  # fmt: skip
    return plan(spec, count=count, seed=seed).blocks()

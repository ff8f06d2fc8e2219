"""Vectors out: exhaustive where it fits, else edge cases crossed with each other and then seeded random ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import gcd, prod
from numbers import Integral

import numpy as np

from softnum.vectors.plans._draw import crossed
from softnum.vectors.plans.operands import class_codes, core_codes, edge_codes
from softnum.vectors.plans.spec import Block, Spec, VectorSpec
from softnum.vectors.plans.strata import block_size, random_block, random_words
from softnum.vectors.plans.unit_spec import UNIT_OPERATIONS, UnitSpec

__all__ = ["DEFAULT_COUNT", "EXHAUSTIVE_LIMIT", "Plan", "generate", "plan"]

#: Without a count, all combinations of operands and random bits are made if there are at most this many,
EXHAUSTIVE_LIMIT = 1 << 16
#: and this many vectors otherwise.
DEFAULT_COUNT = 1 << 18
_ROWS = 1 << 16
_CROSSED_ROWS = 1 << 15
_PIECE = 1 << 13  # combinations whose 64-bit codes stay near the core


@dataclass(frozen=True)
class Plan:
    """Which vectors will be made, and how many, before any is.

    ``method`` is "exhaustive" (every combination of operands, and of random bits), "exhaustive operands" (stochastic
    rounding: every combination of operands, the random bits drawn), "edges and random", or, of units, "random".
    """

    spec: Spec
    method: str
    count: int
    seed: int

    @cached_property
    def _tables(self) -> list[list[np.ndarray]]:
        """Two sets of tables to cross: codes of every class, then all edge cases."""
        formats = self.spec.formats
        codes = core_codes if len(formats) > 2 else edge_codes
        few = 1 if len(formats) > 2 else 2
        return [[class_codes(f, few) for f in formats], [codes(f) for f in formats]]

    @cached_property
    def edges(self) -> int:
        """How many of the vectors are crossed edge cases: all there are, but at most half of the count (rounded up)."""
        if self.method != "edges and random":
            return 0
        return min(sum(prod(len(t) for t in tables) for tables in self._tables), -(-self.count // 2))

    def blocks(self) -> Iterator[Block]:
        """The vectors, at most 2**16 at a time; memory does not grow with the count."""
        size, done = block_size(self.spec), 0
        while done < self.count:
            if self.method.startswith("exhaustive"):
                n = min(_ROWS, self.count - done)
                operands, drawn = self._enumerated(done, n)
            elif done < self.edges:
                n = min(_CROSSED_ROWS, self.edges - done)
                operands, drawn = self._crossed(done, n), None
            else:
                number, first = divmod(done - self.edges, size)
                n = min(size - first, self.count - done)
                operands = tuple(c[first : first + n] for c in random_block(self.spec, self.seed, number))
                drawn = None
            if drawn is None and self.spec.stochastic_bits is not None:
                drawn = random_words(self.spec, self.seed, done, n)
            yield self.spec.evaluate(operands, drawn)
            done += n

    def _enumerated(self, start: int, n: int):
        """Vectors start .. start+n-1 of all combinations: the last column counts fastest."""
        index = np.arange(start, start + n, dtype=np.uint64)
        columns = list(self.spec.operand_columns)
        if self.method == "exhaustive" and self.spec.stochastic_bits is not None:
            columns.append(next(c for c in self.spec.columns if c.name == "random"))
        parts = []
        for column in reversed(columns):
            elements = []
            for _ in range(column.count):
                elements.append((index & np.uint64((1 << column.bits) - 1)).astype(column.dtype))
                index = index >> np.uint64(column.bits)
            parts.append(np.stack(elements, 1) if column.count > 1 else elements[0])
        parts.reverse()
        operands = len(self.spec.operand_columns)
        return tuple(parts[:operands]), parts[operands] if len(parts) > operands else None

    def _crossed(self, start: int, n: int):
        """Vectors start .. start+n-1 of the crossed tables, one set after the other."""
        out = tuple(np.empty(n, f.storage_dtype) for f in self.spec.formats)
        first = 0
        for tables in self._tables:
            total = prod(len(t) for t in tables)
            # of codes of two words their places are crossed
            stored = [f.stored(t) if f.leads else None for t, f in zip(tables, self.spec.formats, strict=True)]
            tables = [t if s is None else np.arange(len(t)) for t, s in zip(tables, stored, strict=True)]
            for i in range(max(start - first, 0), min(start + n - first, total), _PIECE):
                size = min(_PIECE, start + n - first - i, total - i)
                at = first + i - start
                for column, codes, words in zip(out, _cross(tables, i, size), stored, strict=True):
                    column[at : at + size] = codes if words is None else words[codes]
            first += total
        return out


def _cross(tables: list[np.ndarray], start: int, n: int) -> list[np.ndarray]:
    """Combinations start .. start+n-1, by a stride near the golden section, so that any beginning is spread."""
    sizes = [len(t) for t in tables]
    total = prod(sizes)
    stride = max(1, round(total * 0.6180339887))
    while gcd(stride, total) != 1:
        stride += 1
    return crossed(tables, _digits(start * stride % total, sizes), _digits(stride % total, sizes), n)


def _digits(number: int, sizes: list[int]) -> list[int]:
    """A combination's entries: the last table counts fastest."""
    digits = []
    for size in reversed(sizes):
        number, digit = divmod(number, size)
        digits.append(digit)
    return digits[::-1]


def plan(spec: Spec, *, count: int | None = None, seed: int = 0) -> Plan:
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
    if spec.op == "mac":
        return Plan(spec, "random", DEFAULT_COUNT if count is None else int(count), int(seed))
    operand_bits = sum(c.width for c in spec.operand_columns)
    all_bits = operand_bits + sum(c.width for c in spec.columns if c.name == "random")
    limit = EXHAUSTIVE_LIMIT if count is None else int(count)
    if 1 << all_bits <= limit:
        return Plan(spec, "exhaustive", 1 << all_bits, int(seed))
    if spec.stochastic_bits is not None and 1 << operand_bits <= limit:
        return Plan(spec, "exhaustive operands", 1 << operand_bits if count is None else int(count), int(seed))
    method = "random" if isinstance(spec, UnitSpec) else "edges and random"
    return Plan(spec, method, DEFAULT_COUNT if count is None else int(count), int(seed))


def generate(
    op, fmt=None, *, out_fmt=None, rounding=None, overflow=None, tininess="after", stochastic_bits=32, nan=None,
    exact=None, unit=None, length=None, shape=None, with_c=False, count=None, seed=0,
) -> Iterator[Block]:  # fmt: skip
    """Make test vectors: operands, random bits, correctly rounded results and flags.

    All combinations of operands (and random bits) are made, in order, where `count` admits them: without a count, where
    there are at most 2**16 (two operands of 8 bits). If only the operands' combinations fit, each comes in turn with
    drawn random bits. Otherwise half of the vectors (2**18 without a count) are the format's edge cases crossed with
    each other, and the rest is drawn in strata: uniform codes, edge cases, significands that end in long runs, sums
    that cancel, results at the limits (``softnum.vectors.plans.strata``). A unit's vectors are all drawn so.

    Parameters
    ----------
    op : str
        An operation, as in `VectorSpec.make`, or, of a unit, "dot", "mac" or "gemm".
    fmt : format or str, or a tuple of them
        The operands' format(s) of an operation; the name of a function of TestFloat's states them itself.
    out_fmt, rounding, overflow, tininess, stochastic_bits, nan, exact
        As in `VectorSpec.make`, of an operation.
    unit, length, shape, with_c
        As in `UnitSpec.make`, of a unit.
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
        spec = UnitSpec.make(op, unit, length=length, shape=shape, with_c=with_c)
    else:
        for name, value in (("unit", unit), ("length", length), ("shape", shape)):
            if value is not None:
                raise ValueError(f"{op} is an operation, not a unit's: leave {name}= out (dot, mac and gemm take it)")
        spec = VectorSpec.make(
            op, fmt, out_fmt=out_fmt, rounding=rounding, overflow=overflow, tininess=tininess,
            stochastic_bits=stochastic_bits, nan=nan, exact=exact,
        )  # fmt: skip
    return plan(spec, count=count, seed=seed).blocks()

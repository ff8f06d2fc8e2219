"""Which vectors are made, before any is: all combinations, or crossed edge cases and random ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import gcd, prod

import numpy as np

from softnum.vectors.plans._draw import crossed
from softnum.vectors.plans.operands import class_codes, core_codes, edge_codes
from softnum.vectors.plans.spec import Block, Spec
from softnum.vectors.plans.strata import block_size, random_block, random_words

__all__ = ["Plan"]

_ROWS = 1 << 16
_CROSSED_ROWS = 1 << 15
_PIECE = 1 << 13  # combinations whose 64-bit codes stay near the core


@dataclass(frozen=True)
class Plan:
    """The choice and number of vectors, before they are computed.

    ``method`` is "exhaustive" (every combination of operands, and of random bits), "exhaustive operands" (stochastic
    rounding: every combination of operands, the random bits drawn), "edges and random", or, of units, "random".

    >>> from softnum.vectors import VectorSpec, plan
    >>> plan(VectorSpec.make("multiply", "binary16"), count=1000).edges
    500
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
                operands = tuple(c[first : first + n] for c in self._drawn(number))
                drawn = None
            if drawn is None and self.spec.stochastic_bits is not None:
                drawn = random_words(self.spec, self.seed, done, n)
            yield self.spec.evaluate(operands, drawn)
            done += n

    def _drawn(self, number: int) -> tuple[np.ndarray, ...]:
        """The operands of a random block."""
        operands = random_block(self.spec, self.seed, number)
        if self.method == "random" and self.spec.space:
            return self.spec.space.moved([c.format for c in self.spec.operand_columns], operands)
        return operands

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

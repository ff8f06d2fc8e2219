"""Vectors of a space: enumerated where it is small, else drawn inside it; results that are asked for, solved for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import gcd, prod
from typing import Any

import numpy as np

from softnum.vectors.plans.conditions import check_conditions, meets
from softnum.vectors.plans.plan import Plan
from softnum.vectors.plans.solve import PROPOSALS, proposed
from softnum.vectors.plans.space import admitted_codes
from softnum.vectors.plans.spec import Block, VectorSpec
from softnum.vectors.plans.strata import block_size, random_block, random_words

__all__ = ["RestrictedPlan", "restricted_plan"]

#: So many combinations of operands are looked at one by one for those that meet a condition;
_ALL_TRIED = 1 << 20
_ROWS = 1 << 16
#: of more, so many blocks are made without one that does before the space is called empty,
_PATIENCE = 64
#: and of so many blocks one is of operands in strata, not made for the condition.
_DRAWN = 8


@dataclass(frozen=True)
class RestrictedPlan(Plan):
    """A plan of vectors of ``spec.space``.

    ``method`` is "exhaustive", "exhaustive operands", "edges and random", or, where results are asked for, "exhaustive"
    (all that meet it), "spread" (some of these, evenly), "solved" or "searched".
    """

    matches: np.ndarray | None = None

    @property
    def _sets(self) -> list[Any]:
        space = self.spec.space.of_operands
        return [admitted_codes(f, space) for f in self.spec.formats]

    @cached_property
    def _tables(self) -> list[list[np.ndarray]]:
        """As of every plan, those codes that are admitted; a few of these where there is no edge case among them."""
        out = []
        for tables in super()._tables:
            kept = []
            for table, codes in zip(tables, self._sets, strict=True):
                here = table if codes is None else table[codes.has(table)]
                if not len(here):
                    numbers = [i * (codes.count - 1) // 7 for i in range(8)]
                    here = codes.codes(np.array(sorted(set(numbers)), np.uint64))
                kept.append(here)
            out.append(kept)
        return out

    def blocks(self) -> Iterator[Block]:
        """The vectors, at most 2**16 at a time."""
        if self.spec.space.only and self.matches is None:
            yield from self._found()
        elif self.matches is not None:
            for start in range(0, self.count, _ROWS):
                numbers = self.matches[start : start + _ROWS]
                operands, random = _combination(self.spec, numbers)
                if self.spec.stochastic_bits is not None:
                    random = random_words(self.spec, self.seed, start, len(numbers))
                yield self.spec.evaluate(operands, random)
        else:
            yield from super().blocks()

    def _enumerated(self, start: int, n: int):
        numbers = np.arange(start, start + n, dtype=np.uint64)
        return _combination(self.spec, numbers, self.method == "exhaustive")

    def _drawn(self, number: int) -> tuple[np.ndarray, ...]:
        return self.spec.space.moved(self.spec.formats, random_block(self.spec, self.seed, number))

    def _found(self) -> Iterator[Block]:
        """Vectors that meet the conditions, one block after the other."""
        done = number = empty = 0
        while done < self.count:
            block = _meeting(self.spec, self.seed, number)
            empty = 0 if len(block) else empty + 1
            if empty > _PATIENCE:
                raise _no_more(self.spec, done)
            if len(block) > self.count - done:
                block = _rows(block, slice(self.count - done))
            if len(block):
                yield block
            done, number = done + len(block), number + 1


def _rows(block: Block, rows) -> Block:
    random = None if block.random_bits is None else block.random_bits[rows]
    return Block(tuple(x[rows] for x in block.operands), random, block.result[rows], block.flags[rows])


def _meeting(spec: VectorSpec, seed: int, number: int) -> Block:
    """The vectors of block `number` that meet the conditions."""
    operands = proposed(spec, seed, number) if number % _DRAWN else None
    if operands is None:
        operands = spec.space.moved(spec.formats, random_block(spec, seed, number))
    else:
        inside = spec.space.admits(spec.formats, operands)
        operands = tuple(x[inside] for x in operands)
    n = len(operands[0])
    random = None
    if spec.stochastic_bits is not None:
        random = random_words(spec, seed, number * max(PROPOSALS, block_size(spec)), n)
    block = spec.evaluate(operands, random)
    return _rows(block, meets(spec, block))


def _no_more(spec: VectorSpec, done: int) -> ValueError:
    tried = _PATIENCE * PROPOSALS
    what = f"{spec.op}{spec.space.options()}"
    return ValueError(
        f"{what}: after {done} vectors, none of {tried} more that were made for it meets it: the space is empty or all "
        "but empty; state less (--only, --exponents), or a smaller --count"
    )


def _combination(spec: VectorSpec, numbers: np.ndarray, with_random: bool = False):
    """(operands, random bits or None) of combinations of the space by their numbers: the last column counts fastest."""
    random = None
    if with_random and spec.stochastic_bits is not None:
        mask = np.uint64((1 << spec.stochastic_bits) - 1)
        random, numbers = (numbers & mask).astype(np.uint32), numbers >> np.uint64(spec.stochastic_bits)
    out = []
    for fmt in reversed(spec.formats):
        codes = admitted_codes(fmt, spec.space.of_operands)
        size = np.uint64(1 << fmt.bits if codes is None else codes.count)
        here = numbers % size
        out.append((here if codes is None else codes.codes(here)).astype(fmt.storage_dtype))
        numbers = numbers // size
    return tuple(reversed(out)), random


def _matches(spec: VectorSpec, total: int) -> np.ndarray:
    """The numbers of all combinations whose results meet the conditions."""
    found = []
    for start in range(0, total, _ROWS):
        numbers = np.arange(start, min(start + _ROWS, total), dtype=np.uint64)
        found.append(numbers[meets(spec, spec.evaluate(_combination(spec, numbers)[0]))])
    return np.concatenate(found)


def restricted_plan(spec: VectorSpec, count: int | None, seed: int, limit: int, default: int) -> RestrictedPlan:
    """Which vectors of a space to make; ValueError if there are none.

    >>> from softnum.vectors import Space, VectorSpec
    >>> plan = restricted_plan(VectorSpec.make("add", "e5m2", space=Space.make(only="ties")), None, 0, 1 << 16, 1 << 18)
    >>> plan.method, plan.count
    ('exhaustive', 3208)
    """
    sets = [admitted_codes(f, spec.space.of_operands) for f in spec.formats]
    total = prod(1 << f.bits if s is None else s.count for f, s in zip(spec.formats, sets, strict=True))
    wanted = default if count is None else count
    if not spec.space.only:
        drawn = spec.stochastic_bits or 0
        if total << drawn <= limit:
            return RestrictedPlan(spec, "exhaustive", total << drawn, seed)
        if drawn and total <= limit:
            return RestrictedPlan(spec, "exhaustive operands", total if count is None else count, seed)
        return RestrictedPlan(spec, "edges and random", wanted, seed)
    check_conditions(spec)
    random = spec.stochastic_bits is not None and any(k in ("overflow", "underflow", "subnormal-result") for k in
                                                      spec.space.only)  # fmt: skip
    if total <= _ALL_TRIED and not random:
        found = _matches(spec, total)
        if not len(found):
            why = f"the space is empty: none of all {total} combinations of operands meets it"
            raise ValueError(f"{spec.op}{spec.space.options()}: {why}")
        if len(found) <= (limit if count is None else count):
            return RestrictedPlan(spec, "exhaustive", len(found), seed, found)
        kept = min(wanted, limit) if count is None else count
        stride = max(1, round(len(found) * 0.6180339887))
        while gcd(stride, len(found)) != 1:
            stride += 1
        return RestrictedPlan(spec, "spread", kept, seed, found[np.arange(kept) * stride % len(found)])
    for number in range(_PATIENCE):
        if len(_meeting(spec, seed, number)):
            solved = proposed(spec, seed, 1) is not None
            return RestrictedPlan(spec, "solved" if solved else "searched", wanted, seed)
    raise ValueError(f"{spec.op}{spec.space.options()}: the space is empty or all but empty: none of "
                     f"{_PATIENCE * PROPOSALS} vectors that were made for it meets it")  # fmt: skip

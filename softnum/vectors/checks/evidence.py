"""What is kept of a file for a diagnosis: vectors that fail and vectors that agree, spread over all of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softnum.vectors.plans.spec import Block

__all__ = ["Evidence", "Keeper", "ShiftedRows", "block_of", "halves", "joined_blocks", "with_operands"]

#: How many vectors of each kind are kept at most,
MOST_FAILING = 20_000
MOST_AGREEING = 100_000
#: in as many elements at most.
MOST_ELEMENTS = 1 << 23
#: Latencies that are tried.
SHIFTS = tuple(n for k in range(1, 17) for n in (k, -k))


@dataclass(frozen=True)
class Evidence:
    """Some vectors of a file, with what is right: arrays of one entry a vector.

    ``got`` is the design's block, ``want`` softnum's; ``wrong`` says where results differ, ``wrong_flags`` where flags
    do (all False where they are ignored), ``unknown`` where the design's result holds an x or a z. ``index`` counts the
    file's vectors from 0, ``lines`` its lines from 1.
    """

    lines: np.ndarray
    index: np.ndarray
    got: Block
    want: Block
    wrong: np.ndarray
    wrong_flags: np.ndarray
    unknown: np.ndarray

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def failing(self) -> np.ndarray:
        """Which vectors fail."""
        return self.wrong | self.wrong_flags

    def take(self, rows: np.ndarray) -> Evidence:
        """These rows (a mask, numbers or a slice)."""
        got, want = (block_of(block, rows) for block in (self.got, self.want))
        names = ("lines", "index", "wrong", "wrong_flags", "unknown")
        return replace(self, got=got, want=want, **{name: getattr(self, name)[rows] for name in names})

    def joined(self, other: Evidence) -> Evidence:
        """These vectors and then those."""
        names = ("lines", "index", "wrong", "wrong_flags", "unknown")
        parts = {name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in names}
        return Evidence(got=joined_blocks(self.got, other.got), want=joined_blocks(self.want, other.want), **parts)


def block_of(block: Block, rows: np.ndarray) -> Block:
    """The rows of a block."""
    random, flags = (None if v is None else v[rows] for v in (block.random_bits, block.flags))
    return Block(tuple(c[rows] for c in block.operands), random, block.result[rows], flags)


def joined_blocks(x: Block, y: Block) -> Block:
    """The rows of a block and those of another."""
    join = lambda u, v: None if u is None else np.concatenate([u, v])  # noqa: E731
    operands = tuple(join(u, v) for u, v in zip(x.operands, y.operands, strict=True))
    return Block(operands, join(x.random_bits, y.random_bits), join(x.result, y.result), join(x.flags, y.flags))


def with_operands(evidence: Evidence, operands: tuple[Any, ...]) -> Evidence:
    """The same vectors with other operands."""
    got, want = (Block(operands, b.random_bits, b.result, b.flags) for b in (evidence.got, evidence.want))
    return replace(evidence, got=got, want=want)


def halves(evidence: Evidence) -> np.ndarray:
    """Which vectors causes are fitted on: half of those that fail and half of the others, drawn by their place in the
    file; what is found is judged on the others."""
    drawn = evidence.index.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)
    fitted = np.zeros(len(evidence), bool)
    for kind in (evidence.failing, ~evidence.failing):
        rows = np.flatnonzero(kind)
        fitted[rows[np.argsort(drawn[rows], kind="stable")][::2]] = True
    return fitted


class Spread:
    """Every k-th of the vectors that come, k doubled whenever there would be too many."""

    def __init__(self, most: int) -> None:
        self.most, self.stride, self.seen = most, 1, 0
        self.parts: list[Evidence] = []
        self.kept = 0

    def add(self, evidence: Evidence) -> None:
        if not len(evidence):
            return
        first = -self.seen % self.stride
        self.seen += len(evidence)
        if first >= len(evidence):
            return
        # what is stored is a copy: a view would keep the whole block alive
        part = evidence.take(np.arange(first, len(evidence), self.stride))
        self.parts.append(part)
        self.kept += len(part)
        while self.kept > self.most:
            whole = self.all()
            self.parts = [whole.take(np.arange(0, len(whole), 2))]
            self.kept = len(self.parts[0])
            self.stride *= 2

    def all(self) -> Evidence | None:
        """The vectors kept, in the file's order; None if there are none."""
        while len(self.parts) > 1:  # pairwise: each vector is copied log(parts) times
            pairs = [self.parts[i : i + 2] for i in range(0, len(self.parts), 2)]
            self.parts = [p[0].joined(p[1]) if len(p) == 2 else p[0] for p in pairs]
        return self.parts[0] if self.parts else None


class Keeper:
    """Takes evidence in, block by block, in constant memory.

    Parameters
    ----------
    elements : int
        Numbers in a vector: the more there are, the fewer vectors are kept.
    """

    def __init__(self, elements: int) -> None:
        most = max(64, MOST_ELEMENTS // max(1, elements))
        self.failing = Spread(min(MOST_FAILING, most))
        self.agreeing = Spread(min(MOST_AGREEING, most))

    def add(self, evidence: Evidence) -> None:
        failing = evidence.failing | evidence.unknown
        if failing.any():
            self.failing.add(evidence.take(failing))
            evidence = evidence.take(~failing)
        self.agreeing.add(evidence)

    @property
    def complete(self) -> bool:
        """Whether every vector is kept."""
        return self.failing.stride == self.agreeing.stride == 1

    def all(self) -> Evidence | None:
        """Failing vectors, then agreeing ones."""
        failing, agreeing = self.failing.all(), self.agreeing.all()
        if failing is None or agreeing is None:
            return agreeing if failing is None else failing
        return failing.joined(agreeing)


class ShiftedRows:
    """Counts, over a whole stream, how many rows hold the right result of the row n before.

    >>> import numpy as np
    >>> from softnum.vectors.checks.evidence import ShiftedRows
    >>> rows, right = ShiftedRows(), np.arange(100)
    >>> rows.add(np.append([0, 0], right[:-2]), right, True)
    >>> rows.best()  # two rows late, in all of the rows that can tell
    (2, 98, 98)
    """

    def __init__(self) -> None:
        self.right = dict.fromkeys(SHIFTS, 0)
        self.compared = dict.fromkeys(SHIFTS, 0)
        self._got = self._want = None

    def add(self, got: np.ndarray, want: np.ndarray, failed: bool) -> None:
        """The results of the next rows. Those of blocks in which nothing differs speak against a shift, and are not
        looked at."""
        old = 0 if self._got is None else len(self._got)
        rows = old + len(got)
        if failed and old:
            got, want = np.concatenate([self._got, got]), np.concatenate([self._want, want])
        for n in SHIFTS:
            first, last = max(n, old + min(n, 0), 0), rows + min(n, 0)  # pairs that reach into the new rows
            if last > first:
                self.compared[n] += last - first
                if failed:
                    same = got[first:last] == want[first - n : last - n]
                    self.right[n] += int(np.count_nonzero(same if same.ndim == 1 else same.all(1)))
        self._got, self._want = got[-16:].copy(), want[-16:].copy()

    def best(self) -> tuple[int, int, int] | None:
        """(n, rows that fit, rows compared) of the latency that fits best."""
        tried = [n for n in SHIFTS if self.compared[n] >= 2]
        if not tried:
            return None
        n = max(tried, key=lambda n: (self.right[n] / self.compared[n], -abs(n)))
        return n, self.right[n], self.compared[n]

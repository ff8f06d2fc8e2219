"""And-inverter graphs, and their evaluation for 64 patterns at a time.

A literal is twice the number of a node, and one more where it is inverted; node 0 is constant, so that 0 is false and
1 is true, as in AIGER.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

__all__ = ["Aig", "index_planes"]

FALSE, TRUE = 0, 1
_LOW = [
    0xAAAAAAAAAAAAAAAA, 0xCCCCCCCCCCCCCCCC, 0xF0F0F0F0F0F0F0F0, 0xFF00FF00FF00FF00, 0xFFFF0000FFFF0000,
    0xFFFFFFFF00000000,
]  # fmt: skip


class Aig:
    """A graph of AND gates with inverters; equal gates are one, and constants are folded.

    ``inputs`` are the names of the inputs in order, nodes 1 to len(inputs) where all were made before any gate.

    Examples
    --------
    >>> g = Aig()
    >>> a, b = g.input("a"), g.input("b")
    >>> g.xor(a, b), g.xor(a, a), len(g)
    (10, 0, 6)
    """

    def __init__(self) -> None:
        self.left: list[int] = [0]
        self.right: list[int] = [0]
        self.inputs: list[str] = []
        self.input_nodes: list[int] = []
        self._known: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self.left)

    def input(self, name: str) -> int:
        """The literal of a new input."""
        node = len(self.left)
        self.left.append(-1)
        self.right.append(-1)
        self.inputs.append(name)
        self.input_nodes.append(node)
        return 2 * node

    def is_input(self, literal: int) -> bool:
        """Whether a literal is an input as it stands or inverted."""
        return self.left[literal >> 1] < 0

    def land(self, a: int, b: int) -> int:
        """a and b."""
        if a > b:
            a, b = b, a
        if a == FALSE or a == b ^ 1:
            return FALSE
        if a in (TRUE, b):
            return b
        found = self._known.get((a, b))
        if found is None:
            found = self._known[a, b] = 2 * len(self.left)
            self.left.append(b)
            self.right.append(a)
        return found

    def lor(self, a: int, b: int) -> int:
        """a or b."""
        return self.land(a ^ 1, b ^ 1) ^ 1

    def xor(self, a: int, b: int) -> int:
        """Whether a and b differ."""
        if a < 2 or b < 2:
            return b ^ a if a < 2 else a ^ b
        invert = (a ^ b) & 1
        a, b = a & ~1, b & ~1
        return self.land(self.land(a, b) ^ 1, self.land(a ^ 1, b ^ 1) ^ 1) ^ invert

    def mux(self, condition: int, then: int, other: int) -> int:
        """``then`` where the condition holds, else ``other``."""
        if condition < 2 or then == other:
            return then if condition == TRUE or then == other else other
        if then == other ^ 1:
            return self.xor(condition, other)
        return self.land(self.land(condition, then) ^ 1, self.land(condition ^ 1, other) ^ 1) ^ 1

    def any(self, literals: Iterable[int]) -> int:
        """Whether one of them holds: a balanced tree."""
        row = list(literals)
        while len(row) > 1:
            row = [self.lor(*row[i : i + 2]) if i + 1 < len(row) else row[i] for i in range(0, len(row), 2)]
        return row[0] if row else FALSE

    def copy_into(self, other: Aig, inputs: Sequence[int], roots: Iterable[int]) -> list[int]:
        """The literals of ``roots`` in another graph, where this one's inputs are the given literals of that one."""
        roots = list(roots)
        place: list[int] = [0] * len(self)
        for node, literal in zip(self.input_nodes, inputs, strict=True):
            place[node] = literal
        left, right = self.left, self.right
        for node in self.cone(roots):
            a, b = left[node], right[node]
            place[node] = other.land(place[a >> 1] ^ (a & 1), place[b >> 1] ^ (b & 1))
        return [place[r >> 1] ^ (r & 1) for r in roots]

    def cone(self, roots: Iterable[int]) -> list[int]:
        """The gates that literals depend on, in order."""
        wanted = bytearray(len(self))
        for root in roots:
            wanted[root >> 1] = 1
        left, right = self.left, self.right
        for node in range(len(self) - 1, 0, -1):
            if wanted[node] and left[node] >= 0:
                wanted[left[node] >> 1] = 1
                wanted[right[node] >> 1] = 1
        return [node for node in range(1, len(self)) if wanted[node] and left[node] >= 0]

    def support(self, roots: Iterable[int]) -> list[int]:
        """The places in ``inputs`` of those that literals depend on."""
        roots = list(roots)
        seen = {r >> 1 for r in roots}
        for node in self.cone(roots):
            seen |= {self.left[node] >> 1, self.right[node] >> 1}
        return [i for i, node in enumerate(self.input_nodes) if node in seen]

    def evaluate(self, planes: Sequence[np.ndarray | None], roots: Sequence[int]) -> list[np.ndarray]:
        """What literals are, bit by bit.

        Parameters
        ----------
        planes : sequence of uint64 arrays of shape (words,)
            One for each input, a pattern a bit; None for one that nothing depends on.
        roots : sequence of int

        Returns
        -------
        list of uint64 arrays of shape (words,)
        """
        return next(self.evaluations(iter([planes]), roots))

    def evaluations(self, chunks: Iterable[Sequence[np.ndarray | None]], roots: Sequence[int]) -> Iterator[list[Any]]:
        """`evaluate` for one set of planes after the other; what can be prepared once is. Buffers are used again, so
        take from one answer what is needed before the next."""
        program, where, registers = self._program(roots)
        buffers: list[np.ndarray] = []
        for planes in chunks:
            words = next(len(p) for p in planes if p is not None)
            if not buffers or len(buffers[0]) != words:
                buffers = [np.empty(words, np.uint64) for _ in range(registers)]
            values = {0: np.zeros(words, np.uint64)}
            values.update((n, p) for n, p in zip(self.input_nodes, planes, strict=True) if p is not None)
            for a, invert_a, b, invert_b, out in program:
                x = buffers[a] if a >= 0 else values[-a - 1]
                y = buffers[b] if b >= 0 else values[-b - 1]
                o = buffers[out]
                if invert_a and invert_b:
                    np.bitwise_or(x, y, out=o)
                    np.invert(o, out=o)
                elif invert_a or invert_b:
                    s = buffers[0]
                    np.invert(x if invert_a else y, out=s)
                    np.bitwise_and(s, y if invert_a else x, out=o)
                else:
                    np.bitwise_and(x, y, out=o)
            found = [buffers[where[r >> 1]] if r >> 1 in where else values[r >> 1] for r in roots]
            yield [~plane if r & 1 else plane for r, plane in zip(roots, found, strict=True)]

    def _program(self, roots: Sequence[int]) -> tuple[list[tuple[Any, ...]], dict[int, int], int]:
        """Gates as (left, inverted, right, inverted, where to); what is needed no more gives its place up. A
        negative place is that of an input or the constant."""
        cone = self.cone(roots)
        last: dict[int, int] = {}
        for node in cone:
            last[self.left[node] >> 1] = last[self.right[node] >> 1] = node
        kept = {r >> 1 for r in roots}
        free: list[int] = []
        where: dict[int, int] = {}
        count, program = 1, []  # place 0 is scratch
        for node in cone:
            sources = []
            for literal in (self.left[node], self.right[node]):
                source = literal >> 1
                sources += [where.get(source, -source - 1), literal & 1]
            for source in {self.left[node] >> 1, self.right[node] >> 1}:
                if last[source] == node and source in where and source not in kept:
                    free.append(where[source])
            if free:
                out = free.pop()
            else:
                out, count = count, count + 1
            where[node] = out
            program.append((*sources, out))
        return program, where, count


def index_planes(first_bit: int, bits: int, start: int, words: int) -> list[np.ndarray]:
    """The bits of the numbers start, start + 1, ... (64 * words of them, start a multiple of 64) from a bit on, each as
    a plane.

    >>> [hex(p[0]) for p in index_planes(0, 2, 0, 1)]
    ['0xaaaaaaaaaaaaaaaa', '0xcccccccccccccccc']
    """
    number = np.arange(words, dtype=np.uint64) + np.uint64(start // 64)
    planes = []
    for bit in range(first_bit, first_bit + bits):
        if bit < 6:
            planes.append(np.full(words, _LOW[bit], np.uint64))
        else:
            planes.append(np.uint64(0) - ((number >> np.uint64(bit - 6)) & np.uint64(1)))
    return planes

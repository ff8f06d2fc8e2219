"""Who adds to whom: rings, trees and chunks of the algorithms of `softnum.collective`, as integers alone.

Sources: NCCL, src/device/all_reduce.h (ring and tree kernels), src/graph/trees.cc (binary trees), src/graph/connect.cc
(chains within a node, two trees); Gloo, gloo/allreduce.cc (ring, segments); Thakur, Rabenseifner and Gropp 2005,
"Optimization of Collective Communication Operations in MPICH" (halving and doubling, ranks beyond a power of two).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

__all__ = ["Chunks", "Tree", "chunks_of", "folded", "owners_of_halves", "parts_of", "tree_of"]


@dataclass(frozen=True)
class Chunks:
    """Parts of an array that an algorithm treats apart: chunk i is starts[i] to stops[i], and has the number labels[i].

    Of a ring, halving and two-shot the number says which rank ends up with the sum, of trees which tree makes it.
    """

    starts: np.ndarray
    stops: np.ndarray
    labels: np.ndarray

    @classmethod
    def of(cls, runs: list[tuple[int, int, int]]) -> Chunks:
        """Of (start, stop, label); empty ones are left out."""
        table = np.array([run for run in runs if run[1] > run[0]], np.int64).reshape(-1, 3)
        return cls(*table.T)


def _ceil(n: int, by: int) -> int:
    return -(-n // by)


def _aligned(n: int, align: int) -> int:
    return _ceil(n, align) * align


def _split(first: int, n: int, into: int, size: int) -> list[tuple[int, int, int]]:
    """Parts of `size` elements each of n elements from `first`: the last ones shorter or empty."""
    edge = lambda i: first + min(n, i * size)  # noqa: E731
    return [(edge(i), edge(i + 1), i) for i in range(into)]


def chunks_of(c, n: int) -> Chunks:
    """The chunks of n elements in an all-reduce of a collective."""
    return Chunks.of([run for channel in range(c.channels or 1) for run in _of_channel(c, n, channel)])


def _of_channel(c, n: int, channel: int) -> list[tuple[int, int, int]]:
    channels = c.channels or 1
    size = _ceil(n, channels)
    first, n = min(n, channel * size), max(0, min(size, n - channel * size))
    if c.name in ("tree", "double_tree"):
        tree = channel // max(1, channels // 2) if c.name == "double_tree" else 0
        size = c.chunk or max(n, 1)
        return [(start, stop, tree) for start, stop, _ in _split(first, n, _ceil(n, size), size)]
    if c.name in ("doubling", "in_network", "one_shot"):
        return [(first, first + n, 0)]
    into = folded(c.ranks)[0] if c.name == "halving_doubling" else c.ranks
    if c.chunk is None:
        most = _ceil(_ceil(n, c.segment), into) if c.segment else 1
        segments = max(c.segments or 1, most)
        size = segments * _ceil(n, segments * into)
        return _split(first, n, into, _aligned(size, c.align or 1))
    runs, loop = [], into * c.chunk
    for at in range(0, n, loop):
        left = n - at
        size = c.chunk if left >= loop else _aligned(_ceil(left, into), c.align or 1)
        runs += _split(first + at, min(left, loop), into, size)
    return runs


def parts_of(c, n: int) -> Chunks:
    """The chunks of n elements in a reduce-scatter of a collective: the part of each rank, which ends up there."""
    each = n // c.ranks
    if c.name == "ring":
        places = {rank: place for place, rank in enumerate(c.order or range(c.ranks))}
        labels = [(places[r] - c.direction * (c.start - 1)) % c.ranks for r in range(c.ranks)]
    elif c.name == "halving_doubling":
        owners = owners_of_halves(c.ranks, c.distance)
        labels = np.argsort(owners).tolist()
    else:
        labels = list(range(c.ranks))
    return Chunks.of([(r * each, (r + 1) * each, label) for r, label in enumerate(labels)])


def folded(ranks: int) -> tuple[int, int]:
    """(p, f): the largest power of two of ranks, and how many ranks give what they have to a neighbour before.

    Of the first 2 f ranks the even ones send to the odd ones, which stand for both (MPICH's way with other counts).

    >>> folded(8), folded(11)
    ((8, 0), (8, 3))
    """
    power = 1 << (ranks.bit_length() - 1)
    return power, ranks - power


def owners_of_halves(power: int, distance: str) -> np.ndarray:
    """The rank that has the sum of chunk i after halving: the chunk's own, or with its bits in the other order.

    >>> owners_of_halves(8, "near").tolist()
    [0, 4, 2, 6, 1, 5, 3, 7]
    """
    owners = np.arange(power)
    if distance == "far":
        return owners
    bits = power.bit_length() - 1
    return sum(((owners >> i) & 1) << (bits - 1 - i) for i in range(bits)) + np.zeros(power, np.int64)


@dataclass(frozen=True)
class Tree:
    """A tree of ranks: the root, and additions from the leaves up, level by level.

    A level is a run of (parents, children, j) for each j: each parent adds what its child j sends to what it has.
    """

    root: int
    levels: tuple[tuple[tuple[np.ndarray, np.ndarray, int], ...], ...]


def _parents(nodes: int) -> list[int]:
    """Of NCCL's binary tree: the parent of each node, -1 of the root, which is 0 and has one child."""
    found = [-1]
    for node in range(1, nodes):
        bit = node & -node
        up = (node ^ bit) | (bit << 1)
        found.append(up if up < nodes else node ^ bit)
    return found


@lru_cache(maxsize=16)
def tree_of(ranks: int, node: int, second: bool) -> Tree:
    """NCCL's binary tree over nodes, each a chain of `node` ranks; second: the other one of the double tree.

    A rank adds what its successor in the chain sends, then the tree's children, the lower one first.

    >>> tree = tree_of(4, 1, False)
    >>> tree.root, [[(p.tolist(), c.tolist()) for p, c, _ in level] for level in tree.levels]
    (0, [[([2], [1]), ([2], [3])], [([0], [2])]])
    """
    nodes = ranks // node
    up = _parents(nodes)
    if second and nodes % 2:
        up = [-1 if up[i - 1] < 0 else (up[i - 1] + 1) % nodes for i in range(nodes)]
        rank_of = lambda i: i - 1 if i else nodes - 1  # noqa: E731  the node that it stands for in the first tree
    elif second:
        up = [-1 if up[nodes - 1 - i] < 0 else nodes - 1 - up[nodes - 1 - i] for i in range(nodes)]
        rank_of = lambda i: nodes - 1 - i  # noqa: E731
    else:
        rank_of = lambda i: i  # noqa: E731
    children: list[list[int]] = [[] for _ in range(ranks)]
    for first in range(0, ranks, node):
        for i in range(first, first + node - 1):
            children[i].append(i + 1)
    for i in sorted(range(nodes), key=rank_of):  # a first child is the lower one in the first tree's numbers
        if up[i] >= 0:
            children[up[i] * node].append(i * node)
    root = up.index(-1) * node
    levels, at = [], [root]
    while at:
        below = [(parent, child, j) for parent in at for j, child in enumerate(children[parent])]
        levels.append(below)
        at = [child for _, child, _ in below]
    grouped = []
    for below in reversed(levels[:-1]):
        runs = []
        for j in range(3):
            pairs = [(p, c) for p, c, k in below if k == j]
            if pairs:
                runs.append((*np.array(pairs).T, j))
        grouped.append(tuple(runs))
    return Tree(root, tuple(grouped))

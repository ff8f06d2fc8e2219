"""The algorithms of `softnum.collective`, on a run of elements of all ranks at once: which sums meet, in what order.

Each takes what the ranks put in, shape (ranks, n), and returns an `Outcome`. That they are what ranks compute that send
messages to one another is tested against `softnum.reference.collectives`, which plays these ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from softnum.collectives.arithmetic import Arithmetic, Columns
from softnum.collectives.orders import folded, owners_of_halves, tree_of

__all__ = ["ALGORITHMS", "Outcome"]


class Outcome(NamedTuple):
    """Sums of a run of elements before they are delivered, values of the sum's format."""

    sums: np.ndarray  # of shape (n,), or (ranks, n) where each rank has its own
    number: int | np.ndarray = 0  # of the rounding before they are sent; of rows, one each
    owners: np.ndarray | None = None  # the rank that sends an element to all, -1: a switch; None: nothing is sent
    receivers: np.ndarray | None = None  # of rows of its own: ranks that are sent theirs


def _ring(c, do: Arithmetic, x: np.ndarray, columns: Columns) -> Outcome:
    order = np.asarray(c.order or range(c.ranks))
    places = columns.labels + c.direction * c.start
    sums = columns.picked(x, order[places % c.ranks])
    for step in range(1, c.ranks):
        arrived = do.sent(sums, columns, step - 1)
        ranks = order[(places + c.direction * step) % c.ranks]
        sums = do.add(columns.picked(x, ranks), arrived, columns, step)
    return Outcome(sums, c.ranks - 1, columns.each(ranks))


def _tree(c, do: Arithmetic, x: np.ndarray, columns: Columns) -> Outcome:
    tree = tree_of(c.ranks, c.node or 1, bool(columns.labels[0]))
    sums = x.copy()
    for level in tree.levels:
        for parents, children, j in level:
            arrived = do.sent(sums[children], columns, children)
            sums[parents] = do.add(sums[parents], arrived, columns, 4 * parents + j)
    return Outcome(sums[tree.root], tree.root, np.full(columns.count, tree.root))


def _fold(c, do: Arithmetic, x: np.ndarray, columns: Columns) -> np.ndarray:
    """What a power of two of ranks go on with."""
    extra = folded(c.ranks)[1]
    if not extra:
        return x
    even, odd = np.arange(0, 2 * extra, 2), np.arange(1, 2 * extra, 2)
    sums = do.add(x[odd], do.sent(x[even], columns, even), columns, odd)
    return np.concatenate([sums, x[2 * extra :]])


def _ranks_of_power(c) -> np.ndarray:
    """The ranks that go on after `_fold`."""
    extra = folded(c.ranks)[1]
    return np.concatenate([np.arange(1, 2 * extra, 2), np.arange(2 * extra, c.ranks)])


def _pairs(sums: np.ndarray, distance: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose ranks have a 0, and those of their partners, at the distance of a step."""
    if distance == "near":
        return sums[0::2], sums[1::2]
    half = len(sums) // 2
    return sums[:half], sums[half:]


def _halving(c, do: Arithmetic, x: np.ndarray, columns: Columns) -> Outcome:
    sums = _fold(c, do, x, columns)
    power = len(sums)
    bits = power.bit_length() - 1
    for step in range(bits):
        numbers = c.ranks * (1 + step) + np.arange(len(sums))
        low, high = _pairs(sums, c.distance)
        u_low, u_high = _pairs(numbers, c.distance)
        upper = columns.each((columns.labels >> (bits - 1 - step)) & 1 == 1)  # whose sums the partner with a 1 has
        from_low, from_high = do.sent(low, columns, u_low), do.sent(high, columns, u_high)
        own, arrived = np.where(upper, high, low), np.where(upper, from_low, from_high)
        sums = do.add(own, arrived, columns, c.ranks * (1 + step) + np.arange(len(own)))
    owners = _ranks_of_power(c)[owners_of_halves(power, c.distance)[columns.labels]]
    return Outcome(sums[0], c.ranks * (1 + bits), columns.each(owners))


def _doubling(c, do: Arithmetic, x: np.ndarray, columns: Columns) -> Outcome:
    sums = _fold(c, do, x, columns)
    power = len(sums)
    bits = power.bit_length() - 1
    ranks, groups = np.arange(power), np.arange(power)
    for step in range(bits):
        first = c.ranks * (1 + step)
        if c.own == "sent":
            low, high = _pairs(do.sent(sums, columns, first + np.arange(len(sums))), c.distance)
            sums = do.add(low, high, columns, first + np.arange(len(low)))
            continue
        sent = do.sent(sums, columns, first + groups)
        groups = groups >> 1 if c.distance == "near" else groups % (power >> (step + 1))
        partners = ranks ^ (1 << step if c.distance == "near" else power >> (step + 1))
        sums = do.add(sums, sent[partners], columns, first + groups)
    last, extra = c.ranks * (1 + bits), folded(c.ranks)[1]
    if c.own == "sent":
        return Outcome(sums[0], last, np.full(columns.count, 1) if extra else None)
    rows = np.concatenate([np.arange(extra).repeat(2), np.arange(extra, power)])  # of each rank
    return Outcome(sums[rows], last + rows, receivers=np.arange(0, 2 * extra, 2))


def _rotated(c, start, rank: int) -> np.ndarray:
    """The order in which a rank adds what ranks put in."""
    return (np.arange(c.ranks) + (rank if start == "own" else start)) % c.ranks


def _one_shot(c, do: Arithmetic, x: np.ndarray, columns: Columns) -> Outcome:
    sent = do.sent(x, columns, np.arange(c.ranks), c.format)
    if c.own == "sent" and c.start != "own":
        return Outcome(do.total(sent[_rotated(c, c.start, 0)], columns))
    sums = []
    for rank in range(c.ranks):
        terms = sent.copy() if c.own == "kept" else sent
        if c.own == "kept":
            terms[rank] = x[rank]
        sums.append(do.total(terms[_rotated(c, c.start, rank)], columns))
    return Outcome(np.stack(sums))


def _two_shot(c, do: Arithmetic, x: np.ndarray, columns: Columns) -> Outcome:
    terms = do.sent(x, columns, np.arange(c.ranks), c.format)
    owners, at = columns.each(columns.labels), np.arange(columns.count)
    if c.own == "kept":
        terms = terms.copy()
        terms[owners, at] = x[owners, at]
    if c.start == "own":
        terms = np.stack([columns.picked(terms, (columns.labels + i) % c.ranks) for i in range(c.ranks)])
    else:
        terms = terms[_rotated(c, c.start, 0)]
    return Outcome(do.total(terms, columns), c.ranks, owners)


def _in_network(c, do: Arithmetic, x: np.ndarray, columns: Columns) -> Outcome:
    sent = do.sent(x, columns, np.arange(c.ranks), c.format)
    return Outcome(do.total(sent, columns), c.ranks, np.full(columns.count, -1))  # no rank's, but the switch's


ALGORITHMS: dict[str, Callable[..., Outcome]] = {
    "ring": _ring,
    "tree": _tree,
    "double_tree": _tree,
    "halving_doubling": _halving,
    "doubling": _doubling,
    "in_network": _in_network,
    "one_shot": _one_shot,
    "two_shot": _two_shot,
}

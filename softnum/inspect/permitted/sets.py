"""Every result that a specification permits: dynamic programming over the terms that were added.

Where the order is free, what can come of some of the terms depends on which they are, not on their order; equal
products are counted, not told apart. Where it is given, terms are neighbours. C is one more term, at its place.
"""

from __future__ import annotations

from itertools import product as every

from softnum.inspect.permitted.arithmetic import Machine

__all__ = ["SetsOfItems", "folded", "reachable", "splits"]


class SetsOfItems:
    """What sums can be, as sets of items with what made each."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def leaf(self, pair: tuple[int, int], index: int, bare: bool = False) -> dict:
        return {item: _named(made, index) for item, made in self.machine.leaf(*pair, bare).items()}

    def start(self, code: int, bare: bool = False) -> dict:
        made: dict = {code: ("c",)}
        return made if bare else self.machine.closed(made)

    def begun(self, leaf: dict) -> dict:
        """A running sum of one term: no product that a number has to be added to."""
        return {item: made for item, made in leaf.items() if isinstance(item, int) or not item.raw}

    def zero(self) -> dict:
        return self.machine.closed({0: ("zero",)})

    def new(self) -> dict:
        return {}

    def join(self, target: dict, left: dict, right: dict) -> None:
        """Add what comes of additions of one of each to the target."""
        sums = self.machine.sums
        for x, made_x in left.items():
            for y, made_y in right.items():
                for item, (op, way, reads) in sums(x, y).items():
                    if item not in target:
                        target[item] = (op, made_x, made_y, way, reads)

    def merged(self, left: dict, right: dict) -> dict:
        """What is one or the other."""
        return {**right, **left}

    def closed(self, target: dict) -> dict:
        return self.machine.closed(target)


def _named(made: tuple, index: int) -> tuple:
    """What made a leaf's item, with the leaf's number put in."""
    if made[0] in ("exact", "product"):
        return (made[0], index, *made[2:])
    return tuple(_named(part, index) if isinstance(part, tuple) and part and isinstance(part[0], str) else part
                 for part in made)  # fmt: skip


def reachable(machine: Machine, pairs, c: int | None) -> dict[int, tuple]:
    """The codes of all results, with what makes each; raises `Exceeded`.

    The leaves that are named are those of the first product that has these factors (`witness.assigned` tells equal
    ones apart).
    """
    return machine.results(folded(SetsOfItems(machine), machine.freedom, pairs, c))


def folded(algebra, freedom, pairs, c: int | None):
    """The finished sum in an algebra: `SetsOfItems`, or that of enclosures."""
    if not pairs:
        return algebra.zero() if c is None else algebra.start(c)
    last = c is not None and freedom.c == "last"
    inner = None if last else c
    how = {
        ("any", "any"): _any_tree, ("any", "sequential"): _any_running, ("given", "any"): _neighbours,
        ("given", "sequential"): _running,
    }[freedom.order, freedom.grouping]  # fmt: skip
    total = how(algebra, freedom, pairs, inner)
    if not last:
        return total
    target = algebra.new()
    algebra.join(target, total, algebra.start(c, freedom.grouping == "sequential"))
    return algebra.closed(target)


def _kinds(pairs) -> tuple[list, list[int], list[int]]:
    """The different pairs, how often each is there, and where first."""
    counts: dict = {}
    first: dict = {}
    for i, pair in enumerate(pairs):
        counts[pair] = counts.get(pair, 0) + 1
        first.setdefault(pair, i)
    return list(counts), list(counts.values()), list(first.values())


def splits(counts) -> int:
    """How many pairs of parts there are of all multisets of terms: what any order of any tree goes through."""
    total = 1
    for n in counts:
        total *= (n + 1) * (n + 2) // 2
    return total // 2


def _any_tree(algebra, freedom, pairs, c):
    kinds, counts, first = _kinds(pairs)
    leaves = [algebra.leaf(kind, at) for kind, at in zip(kinds, first, strict=True)]
    if c is not None:
        leaves.append(algebra.start(c))
        counts = [*counts, 1]
    found = {}
    for i, leaf in enumerate(leaves):
        found[tuple(int(j == i) for j in range(len(leaves)))] = leaf
    states = sorted(every(*(range(n + 1) for n in counts)), key=lambda s: (sum(s), s))
    for state in states:
        if sum(state) < 2:
            continue
        target = algebra.new()
        for part in every(*(range(n + 1) for n in state)):
            rest = tuple(n - m for n, m in zip(state, part, strict=True))
            if part > rest or not any(part):
                continue
            algebra.join(target, found[part], found[rest])
        found[state] = algebra.closed(target)
    return found[tuple(counts)]


def _any_running(algebra, freedom, pairs, c):
    kinds, counts, first = _kinds(pairs)
    starts = [algebra.begun(algebra.leaf(kind, at)) for kind, at in zip(kinds, first, strict=True)]
    terms = [algebra.leaf(kind, at, True) for kind, at in zip(kinds, first, strict=True)]
    start = None
    if c is not None and freedom.c == "first":
        start = algebra.start(c)
    elif c is not None:
        starts.append(algebra.start(c))
        terms.append(algebra.start(c, True))
        counts = [*counts, 1]
    found = {}
    for state in sorted(every(*(range(n + 1) for n in counts)), key=lambda s: (sum(s), s)):
        if not any(state):
            found[state] = start
            continue
        if start is None and sum(state) == 1:
            found[state] = starts[state.index(1)]
            continue
        target = algebra.new()
        for i, n in enumerate(state):
            if n:
                algebra.join(target, found[tuple(m - (j == i) for j, m in enumerate(state))], terms[i])
        found[state] = algebra.closed(target)
    return found[tuple(counts)]


def _neighbours(algebra, freedom, pairs, c):
    leaves = [algebra.leaf(pair, i) for i, pair in enumerate(pairs)]
    anywhere = c is not None and freedom.c == "any"
    if c is not None and not anywhere:
        leaves.insert(0, algebra.start(c))
    n = len(leaves)
    found = {(i, i + 1, False): leaf for i, leaf in enumerate(leaves)}
    start = algebra.start(c) if anywhere else None
    for length in range(1, n + 1):
        for i in range(n - length + 1):
            j = i + length
            for with_c in (False, True) if anywhere else (False,):
                if (i, j, with_c) in found:
                    continue
                target = algebra.new()
                for k in range(i + 1, j):
                    for left in (False, True) if with_c else (False,):
                        algebra.join(target, found[i, k, left], found[k, j, with_c and not left])
                if with_c:
                    algebra.join(target, found[i, j, False], start)
                found[i, j, with_c] = algebra.closed(target)
    return found[0, n, anywhere]


def _running(algebra, freedom, pairs, c):
    first = algebra.begun(algebra.leaf(pairs[0], 0))
    terms = [algebra.leaf(pair, i, True) for i, pair in enumerate(pairs)]

    def added(total, term):
        target = algebra.new()
        algebra.join(target, total, term)
        return algebra.closed(target)

    if c is None:
        total = first
        for term in terms[1:]:
            total = added(total, term)
        return total
    total = algebra.start(c)
    if freedom.c == "first":
        for term in terms:
            total = added(total, term)
        return total
    with_c, without = added(total, terms[0]), first  # C in front, or after each product
    for i in range(len(terms)):
        if i:
            with_c, without = added(with_c, terms[i]), added(without, terms[i])
        target = algebra.new()
        algebra.join(target, without, algebra.start(c, True))
        with_c = algebra.merged(with_c, algebra.closed(target))
    return with_c

"""The order of a sum of numbers that have no sign, as that of softmax."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softnum.formats.names import format
from softnum.inspect.identify.families import Facts, lanes_of
from softnum.inspect.identify.order import all_pairs, shown_tree, sizes_of
from softnum.mac.mad import MadUnit
from softnum.runtime.plain import plain

__all__ = ["SumOrder", "sum_order"]

_CHECKED = 400  # triples that the tree is checked by


@dataclass(frozen=True)
class SumOrder:
    """The order in which a sum adds its terms.

    Attributes
    ----------
    tree : int or nested list
        A term's number, or what a node adds.
    n : int
        How many terms there are.
    asked : int
        How many sums were asked.
    """

    tree: object
    n: int
    asked: int

    def __str__(self) -> str:
        return shown_tree(self.tree, self.n)

    def units(self, fmt) -> tuple[MadUnit, ...]:
        """Units that add products with 1 in this order, in a format, from a C of 0: lanes, chunks, reductions."""
        fmt = format(fmt)
        pairs = np.array(all_pairs(self.n)).reshape(-1, 2)
        sizes = sizes_of(self.tree, self.n)[pairs[:, 0], pairs[:, 1]]
        facts = Facts((fmt, fmt), (fmt,), (fmt,), False, {self.n: (pairs, sizes)})
        return tuple(
            MadUnit(fmt, operand=fmt, lanes=lanes, chunk=chunk, reduction=reduction)
            for lanes, chunk, reduction in lanes_of(facts)
        )


@plain
def sum_order(f: Callable, n: int, *, large: float = 1.0, small: float = 1.5 * 2.0**-25) -> SumOrder:
    """Find the order in which a function adds n terms that are not negative, by three of them at a time.

    Parameters
    ----------
    f : callable ``f(terms)``
        Takes an array of n float64 numbers, each 0, `small` or `large`, one of them `large`, and gives their sum or a
        number that tells different sums of them apart, as an element of softmax does.
    n : int
        Terms, 1 to 4096.
    large, small : float
        A term and another that is lost beside it, while two of them are not: the defaults are those of binary32.

    Returns
    -------
    SumOrder
        Printed as ``((0 + 1) + 2)``; a node of more than two terms adds them at once.

    Raises
    ------
    ValueError
        If `small` is not lost beside `large`, two of them are lost wherever they stand, or no tree has the answers.

    Notes
    -----
    Of three terms those two meet first beside which the third does not swallow them: ``small`` at both and ``large`` at
    the third give more than ``large`` alone. Three terms of a tree say which of them is outside; all triples say the
    tree. FPRev (arXiv 2411.00442) asks with a number and its negative, which these sums cannot have.

    Examples
    --------
    NumPy's sum of nine terms adds eight in pairs:

    >>> import numpy as np
    >>> from softnum.inspect.identify import sum_order
    >>> order = sum_order(lambda x: x.astype(np.float32).sum(), 9)
    >>> print(order)
    ((((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7))) + 8)
    """
    if not 1 <= n <= 4096:
        raise ValueError(f"sum_order: n must lie in 1..4096, got {n}")
    asker = _Asker(f, n, large, small)
    tree: object = 0
    for leaf in range(1, n):
        tree = asker.with_leaf(tree, leaf)
    rng = np.random.default_rng(n)
    sizes = sizes_of(tree, n)
    for _ in range(_CHECKED if n > 2 else 0):
        i, j, k = rng.choice(n, 3, replace=False).tolist()
        if asker.outside(i, j, k) != _outside(sizes, i, j, k):
            raise ValueError(
                f"sum_order: no tree has all answers; terms {i}, {j} and {k} meet otherwise than others say"
            )
    if n > 2 and not asker.any_kept:
        raise ValueError(
            "sum_order: two small terms are lost beside a large one wherever they stand; take a larger small="
        )
    return SumOrder(tree, n, asker.asked)


def _outside(sizes: np.ndarray, i: int, j: int, k: int) -> int | None:
    """Of three leaves the one that the two others meet before."""
    met = {i: sizes[j, k], j: sizes[i, k], k: sizes[i, j]}
    least = min(met.values())
    return next((leaf for leaf, size in met.items() if size == least), None) if max(met.values()) > least else None


class _Asker:
    """Sums of three terms, each asked once."""

    def __init__(self, f: Callable, n: int, large: float, small: float) -> None:
        self.f, self.n, self.large, self.small = f, n, large, small
        self.asked = 0
        self._alone: dict[int, object] = {}
        self._kept: dict[tuple, bool] = {}
        if n > 1 and self._differs(0, 1):
            raise ValueError(f"sum_order: small={small} is not lost beside large={large}: the sum of both is another")
        if n > 1 and self._value({0: large, 1: large}) == self._value({0: large}):
            raise ValueError("sum_order: the function gives the same for one large term and for two")

    def _value(self, terms: dict[int, float]):
        x = np.zeros(self.n)
        for place, value in terms.items():
            x[place] = value
        self.asked += 1
        return np.asarray(self.f(x)).item()

    def _differs(self, at: int, *small: int) -> bool:
        """Whether small terms change a sum with a large one."""
        if at not in self._alone:
            self._alone[at] = self._value({at: self.large})
        key = (at, *sorted(small))
        if key not in self._kept:
            self._kept[key] = self._value({**dict.fromkeys(small, self.small), at: self.large}) != self._alone[at]
        return self._kept[key]

    @property
    def any_kept(self) -> bool:
        """Whether two small terms ever changed a sum with a large one."""
        return any(kept for (_, *small), kept in self._kept.items() if len(small) == 2)

    def outside(self, i: int, j: int, k: int) -> int | None:
        """Of three terms the one that the two others meet before; None where they meet at once."""
        found = [x for x, *others in ((i, j, k), (j, i, k), (k, i, j)) if self._differs(x, *others)]
        return found[0] if len(found) == 1 else None

    def with_leaf(self, tree, leaf: int):
        """A tree with one leaf more."""
        if not isinstance(tree, list):
            return [tree, leaf]
        leaves = [_first(child) for child in tree]
        outside = self.outside(leaf, leaves[0], leaves[1])
        if outside == leaf:
            return [tree, leaf]
        for at, child in enumerate(tree):
            other = leaves[1] if at == 0 else leaves[0]
            if self.outside(leaf, leaves[at], other) == other:
                return [self.with_leaf(child, leaf) if x is child else x for x in tree]
        return [*tree, leaf]


def _first(tree) -> int:
    while isinstance(tree, list):
        tree = tree[0]
    return tree

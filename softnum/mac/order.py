"""The order of a unit's additions: how many sums, or lanes, become one.

`csrc/products/gemm/gemm.c` adds lanes in this order, and `softnum.reference.mac` defines it; tests compare all three.
"""

from __future__ import annotations

__all__ = ["reduction_order"]


def reduction_order(n: int, how: str) -> list[tuple[int, int]]:
    """The additions that make one number of n, in the order of their execution; (i, j): number i becomes i + j.

    Parameters
    ----------
    n : int
    how : {"sequential", "tree", "pairwise"}
        "sequential": ``((0 + 1) + 2) + ...``. "tree": neighbours, an odd last one passing, and so on with the results;
        level by level. "pairwise": the sum of the first half and that of the second, the first being the larger one of
        an odd count, each made in this way; the first half's additions go first.

    Raises
    ------
    ValueError
        If the order is none of these.

    Examples
    --------
    >>> from softnum.mac.order import reduction_order
    >>> reduction_order(5, "tree"), reduction_order(5, "pairwise")
    ([(0, 1), (2, 3), (0, 2), (0, 4)], [(0, 1), (0, 2), (3, 4), (0, 3)])
    """
    if how == "sequential":
        return [(0, i) for i in range(1, n)]
    if how == "tree":
        return _levels(list(range(n)))
    if how == "pairwise":
        return _halves(list(range(n)))
    raise ValueError(f"reduction must be 'sequential', 'tree' or 'pairwise', got {how!r}")


def _levels(places: list[int]) -> list[tuple[int, int]]:
    """The places of numbers, added in pairs level by level."""
    pairs = []
    while len(places) > 1:
        pairs += zip(places[::2], places[1::2], strict=False)
        places = places[::2]
    return pairs


def _halves(places: list[int]) -> list[tuple[int, int]]:
    """The places of numbers, added by halves."""
    if len(places) < 2:
        return []
    middle = (len(places) + 1) // 2
    first, second = places[:middle], places[middle:]
    return [*_halves(first), *_halves(second), (first[0], second[0])]

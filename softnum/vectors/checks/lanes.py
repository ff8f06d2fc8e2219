"""Elements of packed words in another order: what is tried, and where a wrong design takes or delivers each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from softnum.vectors.plans.unit_spec import UnitSpec

__all__ = ["ORDERS", "lanes_swapped", "order_of", "reordered"]

#: names of orders -> what they are called
ORDERS = {
    "reversed": "from the last element to the first",
    "pairs": "each two elements swapped",
    "halves": "the halves of the word swapped",
}


def lanes_swapped(spec: UnitSpec) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(cause, detail, changes) of the orders in which a word's elements may be swapped: of a or of b alone, and of the
    results of a tile.

    >>> from softnum.vectors.checks.lanes import lanes_swapped
    >>> spec = UnitSpec.make("dot", "MadUnit('e5m2', operand='e5m2')", length=2)
    >>> [detail for _, detail, _ in lanes_swapped(spec)]
    ['of a, from the last element to the first', 'of b, from the last element to the first']
    """
    if spec.op == "mac":
        return
    counts = {"a": spec.operand_columns[0].count, "b": spec.operand_columns[1].count, "result": spec.columns[-1].count}
    seen = set()
    for name, count in counts.items():
        for order, text in ORDERS.items():
            places = order_of(count, order)
            if places is None or (name, places.tobytes()) in seen:
                continue
            seen.add((name, places.tobytes()))
            whose = "the result" if name == "result" else name
            yield "swapped-lanes", f"of {whose}, {text}", {"lane_order": (name, order)}


def reordered(codes: np.ndarray, order: str) -> np.ndarray:
    """The elements of each entry in another order."""
    if codes.ndim < 2:
        return codes
    return np.ascontiguousarray(codes[:, order_of(codes.shape[1], order)])


def order_of(count: int, order: str) -> np.ndarray | None:
    """Which element stands in each place in an order of `ORDERS`; None where so many elements have none.

    >>> from softnum.vectors.checks.lanes import order_of
    >>> order_of(4, "halves").tolist()
    [2, 3, 0, 1]
    """
    places = np.arange(count)
    if count < 2 or (order != "reversed" and count % 2):
        return None
    if order == "reversed":
        return places[::-1].copy()
    return places ^ 1 if order == "pairs" else np.roll(places, count // 2)

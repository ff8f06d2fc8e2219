"""What is known of an object, found by which object it is: the hash of what holds many facts takes longer."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

__all__ = ["by_identity"]

_MOST_KEPT = 256


def by_identity(make: Callable) -> Callable:
    """A function of one immutable object that makes its answer once for each object.

    >>> spelled = by_identity(lambda word: [*word])
    >>> word = "abc"
    >>> spelled(word) is spelled(word)
    True
    """
    known: dict[int, tuple] = {}  # with the object, whose number no other has while it is kept

    @wraps(make)
    def found(x):
        entry = known.get(id(x))
        if entry is None:
            if len(known) >= _MOST_KEPT:
                known.clear()
            entry = known[id(x)] = x, make(x)
        return entry[1]

    return found

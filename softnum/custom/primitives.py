"""Which operations a custom format has: the user's own, and those that are derived from its values."""

from __future__ import annotations

from functools import cache

import numpy as np

__all__ = ["Primitives", "storage_of", "user_operations"]


@cache
def user_operations() -> dict[str, int]:
    """The operations that users may give, codes in and a code out: name -> number of operands."""
    from softnum.ops import CODE_OPERATIONS

    return {name: operands for name, (_, operands) in CODE_OPERATIONS.items() if name != "convert"}


def storage_of(bits: int) -> np.dtype:
    """The NumPy type of codes of so many bits.

    >>> from softnum.custom.primitives import storage_of
    >>> storage_of(12)
    dtype('uint16')
    """
    return np.dtype(next(kind for kind in (np.uint8, np.uint16, np.uint32, np.uint64) if bits <= np.iinfo(kind).bits))


class Primitives(dict):
    """Name of a primitive -> "user" or "derived"; printed, a table of both.

    >>> from softnum.custom.primitives import Primitives
    >>> print(Primitives({"as_float": "user", "add": "user", "multiply": "derived"}))
    user:    as_float, add
    derived: multiply
    """

    def __str__(self) -> str:
        lines = []
        for kind in ("user", "derived"):
            names = ", ".join(name for name, given in self.items() if given == kind)
            lines.append(f"{kind + ':':<8} {names or 'none'}")
        return "\n".join(lines)

"""What users give: operations and their names, functions and where they stand; and what is derived instead."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Primitives", "place_of", "shown_code", "storage_of"]


def place_of(function: Any) -> str:
    """Where a function of the user's stands: file:line; of one without a line, its name.

    >>> from softnum.formats.custom.primitives import place_of
    >>> place_of(place_of).rpartition(":")[0].endswith("primitives.py"), place_of(abs)
    (True, 'abs')
    """
    code = getattr(getattr(function, "py_func", function), "__code__", None)
    if code is not None:
        return f"{code.co_filename}:{code.co_firstlineno}"
    return getattr(function, "where", None) or getattr(function, "__name__", None) or repr(function)


def shown_code(code: int) -> str:
    """A number that was given as a code; one that is negative but for its type, as what it was meant to be, too.

    >>> from softnum.formats.custom.primitives import shown_code
    >>> shown_code(300), shown_code(2**64 - 1)
    ('300', '18446744073709551615 (-1 in unsigned numbers of 64 bits)')
    """
    if abs(code) >= 2**64:
        return f"a number of {code.bit_length()} bits"
    return str(code) if code < 2**63 else f"{code} ({code - 2**64} in unsigned numbers of 64 bits)"


def storage_of(bits: int) -> np.dtype:
    """The NumPy type of codes of so many bits.

    >>> from softnum.formats.custom.primitives import storage_of
    >>> storage_of(12)
    dtype('uint16')
    """
    return np.dtype(next(kind for kind in (np.uint8, np.uint16, np.uint32, np.uint64) if bits <= np.iinfo(kind).bits))


class Primitives(dict[str, str]):
    """Name of a primitive -> "user" or "derived"; printed, a table of both.

    >>> from softnum.formats.custom.primitives import Primitives
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

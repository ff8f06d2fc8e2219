"""The operations on codes by name, with their number of operands: what the tables of `softnum.ops` are made of."""

from __future__ import annotations

from softnum.runtime import _core

__all__ = ["CODE_OPERANDS", "ELEMENTARY", "OPERANDS", "USER_OPERANDS"]

_PARTS = ("to_integer", "compare_signaling")  # of softnum.ops.to_integer and of softnum.compare
_OTHER_RESULTS = ("scalb", "compare", "total_order", "classify")

#: Names of the elementary functions.
ELEMENTARY = tuple(sorted(_core.ELEMENTARY))

#: Name of an operation of the core -> number of operands; the elementary functions come last.
OPERANDS: dict[str, int] = {
    name: _core.OPERATIONS[name][1]
    for name in (*(name for name in _core.OPERATIONS if name not in _core.ELEMENTARY), *ELEMENTARY)
    if name not in _PARTS
}

#: Those of them that take codes alone and give codes: what test vectors are made of.
CODE_OPERANDS = {name: operands for name, operands in OPERANDS.items() if name not in _OTHER_RESULTS}

#: The operations that users may give a format of their own, codes in and a code out.
USER_OPERANDS = {name: operands for name, operands in CODE_OPERANDS.items() if name != "convert"}

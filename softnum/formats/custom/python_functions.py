"""A format's functions in Python, on integers and floats, compiled by Numba."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

import numpy as np

from softnum.formats.aliases import operation_alias
from softnum.formats.custom.primitives import storage_of
from softnum.formats.operation_names import USER_OPERANDS
from softnum.runtime import _core, gateway

__all__ = ["MAX_BITS", "PythonFunctions"]

#: Codes are signed integers of 64 bits in Numba, and one bit is kept for telling results that are no codes.
MAX_BITS = 62


class PythonFunctions:
    """What `CustomFormat` takes from Python functions; the attributes and methods are those of `CFunctions`.

    Raises
    ------
    ValueError
        If an operation is unknown, or takes another number of operands.
    TypeError
        If a function cannot be compiled, or returns another type.
    """

    language = "Python"
    values_are = "double"
    convert_takes = np.dtype(np.float64)

    def __init__(self, bits: int, as_float, convert, operations: dict, what: str) -> None:
        known = USER_OPERANDS
        operations = _named(operations, known, what)
        self.bits, self.what, self.storage = bits, what, storage_of(bits)
        operations = {
            name: operations[name] for name in known if name in operations
        }  # in whatever order they are given
        self._made_of = (bits, as_float, convert, tuple(operations.items()))
        if convert is None:
            self.convert_takes = None
        self.operations = tuple(operations)
        given = {"as_float": (as_float, "codes", "values", 1)}
        if convert is not None:
            given["convert"] = (convert, "values", "codes", 1)
        given |= {name: (operations[name], "codes", "codes", known[name]) for name in self.operations}
        for name, (function, *_) in given.items():
            if not callable(function):
                raise TypeError(f"{what}: {name} must be a function, got {function!r}")
        self._compiled = {
            name: gateway.compile_function(function, name, takes, gives, count, bits, what)
            for name, (function, takes, gives, count) in given.items()
        }
        # what the functions read from outside is a part of them; where that cannot be told, a format equals only itself
        self.key = (*self._made_of, gateway.fingerprint(as_float, convert, *operations.values()) or object())

    def _run(self, name: str, *operands) -> np.ndarray:
        with _core.PlainEnvironment():
            return self._compiled[name](*operands)

    def as_float(self, codes) -> np.ndarray:
        """The values of codes, float64."""
        return self._run("as_float", codes)

    def convert(self, values) -> np.ndarray:
        """The codes that the user's convert gives for float64 values."""
        return self._run("convert", values).astype(self.storage)

    def call(self, name: str, *codes) -> np.ndarray:
        """An operation that the user has given, on codes that broadcast."""
        return self._run(name, *codes).astype(self.storage)

    def partly(self, name: str, *operands) -> tuple[np.ndarray, np.ndarray | None]:
        """(codes that convert or an operation gives, where it gives none or None)"""
        with _core.PlainEnvironment():
            found, lost = self._compiled[name].partly(*operands)
        return found.astype(self.storage), lost

    def rebuilding(self, name: str) -> tuple:
        """What `rebuilt` takes: functions, which pickle knows by module and name."""
        return (*self._made_of, name)

    @classmethod
    def rebuilt(cls, bits: int, as_float, convert, operations: tuple, name: str) -> PythonFunctions:
        """The functions of a format that was pickled."""
        return cls(bits, as_float, convert, dict(operations), f"CustomFormat {name}")


def _named(operations, known, what: str) -> dict:
    """The operations by the names that softnum has for them."""
    if not isinstance(operations, Mapping):
        raise TypeError(f"{what}: ops must be a dict from the name of an operation to its function, got {operations!r}")
    found, told = {}, {}
    for given, function in operations.items():
        name = operation_alias(given) if isinstance(given, str) else given
        if name not in known:
            near = get_close_matches(str(given), known, 3)
            hint = (
                f"did you mean {' or '.join(near)}?"
                if near
                else f"known: {', '.join(known)}; softnum formats --names lists others' names"
            )
            raise ValueError(f"{what}: ops has no operation {given!r} ({hint})")
        if name in found:
            raise ValueError(f"{what}: ops has {name} twice, as {told[name]!r} and {given!r}")
        found[name], told[name] = function, given
    return found

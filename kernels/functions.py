"""Users' Python functions on codes and values, compiled by Numba into loops over arrays."""

from __future__ import annotations

import inspect
import re

import numpy as np

__all__ = ["Compiled"]

_MISSING = "Python functions are compiled by Numba, which is not installed: pip install 'softnum[custom]'"


class Compiled:
    """A user's function over arrays: int64 codes, or float64 values, in; codes or values out.

    Parameters
    ----------
    function : callable
    name : str
        The primitive that it is.
    operands : {"codes", "value"}
    count : int
        Number of operands.
    limit : int or None
        The number of codes that a result may be one of; None: the result is a value.
    what : str
        What errors begin with.

    Raises
    ------
    ImportError
        If Numba is not installed.
    TypeError
        If Numba cannot compile the function, or its result is of another type; the message is Numba's.
    """

    def __init__(self, function, name: str, operands: str, count: int, limit: int | None, what: str) -> None:
        try:
            import numba
        except ImportError:
            raise ImportError(f"{what}: {_MISSING}") from None
        self.function, self.name, self.what, self.limit = function, name, what, limit
        self.where = place_of(function)
        self.result = np.dtype(np.float64 if limit is None else np.int64)
        kind = numba.int64 if operands == "codes" else numba.float64
        self.operand = np.dtype(np.int64 if operands == "codes" else np.float64)
        plain = getattr(function, "py_func", function)
        given = _parameters(plain)
        if given is not None and given != count:
            raise TypeError(f"{what}: {name} ({self.where}) takes {given} arguments, and must take {count}")
        inner = function if plain is not function else numba.njit(function)
        try:
            inner.compile((kind,) * count)
            returned = inner.overloads[(kind,) * count].signature.return_type
        except numba.core.errors.NumbaError as error:
            raise TypeError(f"{what}: Numba cannot compile {name} ({self.where}):\n{_shortened(str(error))}") from None
        wanted = (numba.types.Integer, numba.types.Boolean)
        if limit is None:
            wanted = (*wanted, numba.types.Float)
        if not isinstance(returned, wanted):
            kinds = "a number" if limit is None else "an integer, a code"
            raise TypeError(f"{what}: {name} ({self.where}) must return {kinds}, and returns {returned}")
        self._loop = _loop_over(inner, count, limit)

    def __call__(self, *operands) -> np.ndarray:
        shape = np.broadcast_shapes(*(np.shape(x) for x in operands))
        flat = [np.ascontiguousarray(np.broadcast_to(x, shape), self.operand).ravel() for x in operands]
        out, at = np.empty(int(np.prod(shape, dtype=np.int64)), self.result), np.zeros(1, np.int64)
        try:
            bad = self._loop(*flat, out, at)
        except Exception as error:
            on = self._on(flat, int(at[0]))
            raise ValueError(f"{self.what}: {self.name} {on} raises {type(error).__name__}: {error}") from error
        if bad >= 0:
            got = self.function(*(x[bad].item() for x in flat))
            raise ValueError(
                f"{self.what}: {self.name} {self._on(flat, bad)} returns {got}, and codes lie in 0..{self.limit - 1}"
            )
        return out.reshape(shape)

    def _on(self, operands, index: int) -> str:
        shown = (hex(x[index]) if x.dtype.kind == "i" else repr(x[index].item()) for x in operands)
        return f"({self.where}) of {', '.join(shown)}"


def _loop_over(f, count: int, limit: int | None):
    """A loop that returns the index of the first result that is no code, or -1; at[0]: the index it is at."""
    import numba

    most = -1 if limit is None else limit
    if count == 1:

        def loop(a, out, at):
            for i in range(out.size):
                at[0] = i
                r = f(a[i])
                if most >= 0 and (r < 0 or r >= most):
                    return i
                out[i] = r
            return -1

    elif count == 2:

        def loop(a, b, out, at):
            for i in range(out.size):
                at[0] = i
                r = f(a[i], b[i])
                if r < 0 or r >= most:
                    return i
                out[i] = r
            return -1

    else:

        def loop(a, b, c, out, at):
            for i in range(out.size):
                at[0] = i
                r = f(a[i], b[i], c[i])
                if r < 0 or r >= most:
                    return i
                out[i] = r
            return -1

    return numba.njit(loop)


def place_of(function) -> str:
    """Where a function stands: file:line."""
    code = getattr(getattr(function, "py_func", function), "__code__", None)
    if code is None:
        return getattr(function, "__name__", repr(function))
    return f"{code.co_filename}:{code.co_firstlineno}"


def _parameters(function) -> int | None:
    try:
        return len(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return None


def _shortened(message: str) -> str:
    """Numba's message without the advice and the internals that follow it."""
    message = re.split(r"\n(?:This error may|For more information|This is not usually)", message)[0]
    lines = [line for line in message.splitlines() if line.strip()]
    return "\n".join(lines[:24])

"""Users' Python functions over arrays of codes and values: Numba compiles them into loops.

The Python function on single numbers is the definition. Compiled code stands for it where it gives a number that can be
one of the results; what it cannot do, and what float64 holds but an integer of 64 bits does not (NaN, infinities,
2**53 and more), goes to the Python function, whose errors are the user's. A trial compares both on a sample.
"""

from __future__ import annotations

import inspect
import re
from itertools import product
from numbers import Integral, Real

import numpy as np
from numba import njit, types
from numba.core.errors import NumbaError, UnsupportedBytecodeError

from softnum.formats.custom.primitives import place_of, shown_code
from softnum.kernels.host.cache import cache_of
from softnum.kernels.host.jit import jitted, refuse_recursion
from softnum.kernels.host.rounding import inlined

__all__ = ["Compiled"]

_FAR = 2.0**53  # of this magnitude or more values go to the Python function: int() of many of them is undefined in C


class Compiled:
    """A user's function over arrays: int64 codes, or float64 values, in; codes or values out.

    Parameters
    ----------
    function : callable
    name : str
        The primitive that it is.
    takes, gives : {"codes", "values"}
    count : int
        Number of operands.
    bits : int
        Width of a code.
    what : str
        What errors begin with.

    Raises
    ------
    TypeError
        If Numba cannot compile the function, or its result is of another type; the message is Numba's.
    ValueError
        If the compiled function makes a result of the trial's operands that the Python function does not.
    """

    def __init__(self, function, name: str, takes: str, gives: str, count: int, bits: int, what: str) -> None:
        self.function, self.name, self.what, self.bits = getattr(function, "py_func", function), name, what, bits
        self.where, self.count, self.makes_codes = place_of(function), count, gives == "codes"
        self.operand, self.result = (np.dtype(np.int64 if x == "codes" else np.float64) for x in (takes, gives))
        given = _parameters(self.function)
        if given is not None and given != count:
            plural = "s" if given != 1 else ""
            raise TypeError(f"{what}: {name} ({self.where}) takes {given} argument{plural}, and must take {count}")
        self._loop = self._compiled(function)
        self._try_out()

    def _compiled(self, function):
        """The loop over operands, compiled or from the disk."""
        number, result = (types.int64 if x == np.int64 else types.float64 for x in (self.operand, self.result))
        signature = types.Array(number, 2, "C"), types.Array(result, 1, "C"), types.Array(types.int64, 1, "C")
        cache = cache_of(function, self.count, self.bits, self.makes_codes)
        refuse_recursion(function, f"{self.what}: {self.name} ({self.where})")
        inner = jitted(function, "python")
        if not cache.holds(signature):
            self._check_result(inner, (number,) * self.count)
        loop = _loop_over(inner, self.count, 1 << self.bits if self.makes_codes else None)
        loop._cache = cache
        loop.compile(signature)
        loop.disable_compile()
        return loop

    def _check_result(self, inner, operands: tuple) -> None:
        try:
            inner.compile(operands)
        except (NumbaError, UnsupportedBytecodeError) as error:
            raise TypeError(
                f"{self.what}: Numba cannot compile {self.name} ({self.where}):\n{_shortened(str(error))}"
            ) from None
        returned = inner.overloads[operands].signature.return_type
        wanted = (types.Integer, types.Boolean) if self.makes_codes else (types.Integer, types.Boolean, types.Float)
        if not isinstance(returned, wanted):
            kinds = "an integer, a code" if self.makes_codes else "a number"
            raise TypeError(f"{self.what}: {self.name} ({self.where}) must return {kinds}, and returns {returned}")

    # -- over arrays ---------------------------------------------------------------------------------------------------
    def __call__(self, *operands) -> np.ndarray:
        """The results of operands that broadcast; ValueError where there is none."""
        return self._over(*self._columns(operands), None)

    def partly(self, *operands) -> tuple[np.ndarray, np.ndarray | None]:
        """(results, where there is none, or None): what the call raises is marked, for whoever meets it."""
        shape, x = self._columns(operands)
        lost = np.zeros(x.shape[1], bool)
        out = self._over(shape, x, lost)
        return out, lost.reshape(shape) if lost.any() else None

    def _columns(self, operands) -> tuple[tuple, np.ndarray]:
        shape = np.broadcast_shapes(*(np.shape(x) for x in operands))
        x = np.empty((self.count, *shape), self.operand)
        for i, given in enumerate(operands):
            x[i] = given
        return shape, x.reshape(self.count, -1)

    def _over(self, shape, x, lost) -> np.ndarray:
        """lost: where to note what has no result; None: that raises."""
        far = np.False_ if self.operand == np.int64 else ~(np.abs(x[0]) < _FAR)
        if not far.any():
            return self._run(x, lost).reshape(shape)
        out, near = np.empty(x.shape[1], self.result), ~far
        values, which = np.unique(x[0, far], return_inverse=True)  # NaNs are one
        marks = [None if lost is None else np.zeros(n, bool) for n in (near.sum(), values.size)]
        out[near] = self._run(np.ascontiguousarray(x[:, near]), marks[0])
        out[far] = np.array([self._settled((v,), marks[1], i) for i, v in enumerate(values)], self.result)[which]
        if lost is not None:
            lost[near], lost[far] = marks[0], marks[1][which]
        return out.reshape(shape)

    def _run(self, x, lost) -> np.ndarray:
        out, at = np.zeros(x.shape[1], self.result), np.zeros(1, np.int64)
        while (i := self._stop(x, out, at)) >= 0:
            out[i] = self._settled(x[:, i], lost, i)
            at[0] = i + 1
        return out

    def _stop(self, x, out, at) -> int:
        """The index of the first operands from at[0] on of which compiled code has no result; -1: of none."""
        try:
            return self._loop(x, out, at)
        except Exception:  # whatever users raise: the Python function raises it again
            return int(at[0])

    def _settled(self, numbers, lost, i: int):
        """The Python function's result; where it has none, 0, and that is noted."""
        result, wrong = self._in_python(numbers)
        if wrong and lost is None:
            raise ValueError(f"{self.what}: {self.name} ({self.where}) of {self._shown(numbers)} {wrong}")
        if wrong:
            lost[i] = True
        return result

    def _in_python(self, numbers) -> tuple:
        """(the result by definition, or 0; what is wrong with it, or "")"""
        try:
            with np.errstate(all="ignore"):
                result = self.function(*(x.item() for x in numbers))
        except Exception as error:  # whatever users raise is told with its place
            return 0, f"raises {type(error).__name__}: {error}"
        if not self.makes_codes:
            good = isinstance(result, Real | np.bool_)
            return (float(result), "") if good else (0, f"returns {result!r}, which is no number")
        codes = f"codes lie in 0..{(1 << self.bits) - 1}"
        if not isinstance(result, Integral | np.bool_):
            return 0, f"returns {result!r}, which is no integer, and {codes}"
        if not 0 <= result < 1 << self.bits:
            return 0, f"returns {shown_code(int(result))}, and {codes}"
        return int(result), ""

    def _shown(self, numbers) -> str:
        return ", ".join((hex if self.operand == np.int64 else repr)(x.item()) for x in numbers)

    # -- the trial -----------------------------------------------------------------------------------------------------
    def _try_out(self) -> None:
        """ValueError where compiled code makes a result of a sample of operands, and Python another or none."""
        x = _codes(self.bits, self.count) if self.operand == np.int64 else _values()
        out, lost = self.partly(*x)
        for i in range(out.size) if lost is None else np.flatnonzero(~lost):
            want, wrong = self._in_python(x[:, i])
            got = out[i].item()
            if not wrong and (got == want or (got != got and want != want)):
                continue
            made, meant = (hex(r) if self.makes_codes else repr(r) for r in (got, want))
            raise ValueError(
                f"{self.what}: {self.name} ({self.where}) is not the same compiled and in Python: in a trial, of "
                f"{self._shown(x[:, i])}, compiled code makes {made}, and Python {wrong or f'makes {meant}'}. In Numba "
                "integers are signed, have 64 bits and wrap, int() of a float beyond them is undefined, and what math "
                "refuses is an infinity or a NaN: bring numbers into range first"
            )


def _codes(bits: int, count: int) -> np.ndarray:
    """Operands that are codes, shape (count, n): corners, and a fixed sample."""
    if bits * count <= 8:
        return np.array(list(product(range(1 << bits), repeat=count)), np.int64).T
    top, half = (1 << bits) - 1, 1 << (bits - 1)
    few = sorted({c & top for c in (0, 1, 2, half - 1, half, half + 1, top - 1, top)})
    corners = np.array(list(product(few, repeat=count)), np.int64).T
    drawn = np.random.Generator(np.random.PCG64(20190415)).integers(0, top, (count, 256), np.int64, endpoint=True)
    return np.concatenate([corners, drawn], axis=1)


def _values() -> np.ndarray:
    """Operands that are values, shape (1, n): of every magnitude and sign, and what is no finite number."""
    exponents = [-1074, -1060, -1022, -300, -150, -149, -126, *range(-64, 64), 70, 100, 127, 128, 300, 1023]
    sizes = np.ldexp([[1.0], [1.25], [1.5], [1.75], [2 - 2.0**-52]], exponents).ravel()
    sizes = np.concatenate([sizes, np.arange(0, 40, 0.25), [255, 256, 257, 65535, 65536, 65537, np.inf, np.nan]])
    return np.concatenate([sizes, -sizes])[None]


def _loop_over(f, count: int, limit: int | None):
    """A loop from operands at[0] on that returns the index of the first result that is no code, or -1.

    at[0]: the index that it is at.
    """
    call = {
        1: inlined(lambda x, i: f(x[0, i])),
        2: inlined(lambda x, i: f(x[0, i], x[1, i])),
        3: inlined(lambda x, i: f(x[0, i], x[1, i], x[2, i])),
    }[count]

    @njit
    def loop(x, out, at):
        for i in range(at[0], out.size):
            at[0] = i
            r = call(x, i)
            if limit is not None and (r < 0 or r >= limit):
                return i
            out[i] = r
        return -1

    return loop


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

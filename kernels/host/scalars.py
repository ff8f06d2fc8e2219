"""softnum's arithmetic one number at a time, for users' functions: the same bits in Python and in Numba's code."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral, Real

import numpy as np

from softnum.arrays.environment import environment
from softnum.formats.names import format
from softnum.ops.custom_tables import table_in_part
from softnum.runtime import _core

__all__ = ["CARRIERS", "OPERANDS", "TABLE_BITS", "CustomScalar", "Scalar", "carrier_format", "handle_of", "plain"]

CARRIERS = ("float32", "float64", "codes")
TABLE_BITS = 8  # of each of two operands

#: The methods of a Scalar, the operation that each is, and its number of operands.
OPERANDS = {
    "round": ("convert", 1), "add": ("add", 2), "subtract": ("subtract", 2), "multiply": ("multiply", 2),
    "divide": ("divide", 2), "fma": ("fma", 3), "sqrt": ("sqrt", 1),
}  # fmt: skip

_NO_WORD = np.zeros(1, np.uint32)


@dataclass(frozen=True)
class Scalar:
    """Operations on single numbers, each rounded once to a format; `scalar` makes one.

    ``round(x)``, ``add(a, b)``, ``subtract(a, b)``, ``multiply(a, b)``, ``divide(a, b)``, ``fma(a, b, c)`` (a * b + c)
    and ``sqrt(x)``; in a stochastic mode each takes a random word, an integer below 2**32, as its last argument.

    Operands are any numbers of the carrier, values of the format or not, and the exact result is rounded once. In
    Python each call is one of the C core, the definition. In compiled code (Numba) it is a few instructions where a
    proof says that these give the same bits (``softnum.kernels.host.rounding`` states the domain), else a call of the
    core. Compiled code raises nothing: where the format has no code for a result, a carrier gets a NaN and codes get
    -1, which a unit that meets them refuses; Python raises ValueError.

    Examples
    --------
    >>> from softnum import kernels
    >>> e5m2 = kernels.scalar("e5m2", rounding="stochastic", stochastic_bits=2)
    >>> e5m2.add(1, 0.0625, 0), e5m2.add(1, 0.0625, 3)  # a quarter of an ulp: one of four words rounds up
    (np.float32(1.0), np.float32(1.25))
    """

    format: object
    rounding: str
    overflow: str | None
    stochastic_bits: int
    carrier: str

    def round(self, x, *word):
        """x rounded to the format. Over codes there is nothing to round: TypeError."""
        return self._call("round", x, *word)

    def add(self, a, b, *word):
        """a + b, rounded once."""
        return self._call("add", a, b, *word)

    def subtract(self, a, b, *word):
        """a - b, rounded once."""
        return self._call("subtract", a, b, *word)

    def multiply(self, a, b, *word):
        """a * b, rounded once."""
        return self._call("multiply", a, b, *word)

    def divide(self, a, b, *word):
        """a / b, rounded once."""
        return self._call("divide", a, b, *word)

    def fma(self, a, b, c, *word):
        """a * b + c, rounded once."""
        return self._call("fma", a, b, c, *word)

    def sqrt(self, x, *word):
        """The square root of x, rounded once."""
        return self._call("sqrt", x, *word)

    @property
    def stochastic(self) -> bool:
        """Whether each operation takes a random word."""
        return self.rounding.startswith("stochastic")

    @property
    def environment(self) -> tuple[int, ...]:
        """The core's numbers of the rounding."""
        return environment(self.format, self.rounding, self.overflow, self.stochastic_bits)

    def check(self, name: str, count: int) -> None:
        """TypeError unless operation `name` takes so many arguments."""
        operands = OPERANDS[name][1]
        if name == "round" and self.carrier == "codes":
            raise TypeError(f"{self}.round: codes of {self.format} are rounded already")
        if count != operands + self.stochastic:
            word = " and a random word" if self.stochastic else ""
            raise TypeError(f"{self}.{name} takes {operands} numbers{word}, got {count} arguments")

    def _call(self, name: str, *arguments):
        self.check(name, len(arguments))
        words = _NO_WORD
        if self.stochastic:
            *arguments, word = arguments
            if isinstance(word, bool) or not isinstance(word, Integral) or not 0 <= word < 2**32:
                raise ValueError(f"{self}.{name}: a random word is an integer below 2**32, got {word!r}")
            words = np.array([word], np.uint32)
        return self._computed(name, arguments, np.array([[self._bits(x, name)] for x in arguments], np.uint64), words)

    def _computed(self, name: str, arguments, codes: np.ndarray, words: np.ndarray):
        (code,), (flags,) = _core.define(OPERANDS[name][0], handle_of(self, name), codes, words)
        if flags & _core.NO_CODE:
            raise ValueError(f"{self}.{name}{tuple(arguments)!r}: {self.format} has no code for the result")
        if self.carrier == "codes":
            return int(code)
        (bits,), _ = _core.define("convert", _back(self), [[code]], _NO_WORD)
        return bits.astype(np.uint32).view(np.float32) if self.carrier == "float32" else bits.view(np.float64)

    def _bits(self, x, name: str) -> int:
        if self.carrier == "codes":
            if isinstance(x, bool) or not isinstance(x, Integral) or not 0 <= x < 1 << self.format.bits:
                raise ValueError(
                    f"{self}.{name} takes codes of {self.format}, 0 to {2**self.format.bits - 1}, got {x!r}"
                )
            return int(x)
        if isinstance(x, bool) or not isinstance(x, Real):
            raise TypeError(f"{self}.{name} takes numbers, got {x!r}")
        wide = np.float64(x)
        value = wide.astype(self.carrier)
        if float(value) != x and x == x:  # a NumPy scalar of float32 would round x to compare it
            raise ValueError(f"{self}.{name} takes {self.carrier} numbers, and {x!r} is none; round it first")
        return int(value.view(np.uint32 if self.carrier == "float32" else np.uint64))

    @property
    def _identity(self) -> str | None:
        """A text that no other has; None where there is none."""
        return repr(self)

    def _check_compiled(self, name: str) -> None:
        """TypeError where compiled code does not have the operation."""

    def _table(self, name: str) -> np.ndarray | None:
        """All results of an operation on two codes of up to 8 bits, int16, -1 where there is none; None of others."""
        bits = self.format.bits
        if self.carrier != "codes" or self.stochastic or bits > TABLE_BITS or OPERANDS[name][1] != 2:
            return None
        return self._made_table(name, 1 << bits)

    def _made_table(self, name: str, n: int) -> np.ndarray:
        pairs = np.indices((n, n), np.uint64).reshape(2, -1)
        codes, flags = _core.define(OPERANDS[name][0], handle_of(self, name), pairs, np.zeros(n * n, np.uint32))
        return np.where(flags & _core.NO_CODE, -1, codes.astype(np.int64)).astype(np.int16).reshape(n, n)

    def __str__(self) -> str:
        return f"scalar({str(self.format)!r})"


class CustomScalar(Scalar):
    """A `Scalar` of a `CustomFormat`: the format's own operations, on codes."""

    def _computed(self, name: str, arguments, codes: np.ndarray, words: np.ndarray) -> int:
        codes, modes = codes.astype(self.format.storage_dtype), {"rounding": self.rounding, "overflow": self.overflow}
        return int(self.format.apply(OPERANDS[name][0], *codes, **modes)[0])

    @property
    def _identity(self) -> None:
        """None: the format's name does not say what it is."""

    def _check_compiled(self, name: str) -> None:
        """TypeError unless the operation has a table."""
        if OPERANDS[name][1] != 2 or self.format.bits > TABLE_BITS:
            raise TypeError(
                f"{self}.{name} is not there in compiled code, where formats of the user's own have operations of two "
                f"operands and up to {TABLE_BITS} bits; {self.format} has {self.format.bits}"
            )

    def _made_table(self, name: str, n: int) -> np.ndarray:
        return table_in_part(self.format, OPERANDS[name][0], self.rounding, self.overflow)


def carrier_format(scalar: Scalar):
    """The format that the operands are numbers of."""
    return (
        scalar.format if scalar.carrier == "codes" else format({"float32": "binary32"}.get(scalar.carrier, "binary64"))
    )


def plain(fmt) -> tuple[int, ...]:
    """The environment in which every value of a narrower format is exact."""
    return environment(fmt, "nearest_even", None, 32)


@lru_cache(maxsize=1024)
def handle_of(scalar: Scalar, name: str) -> np.uint64:
    """The core's handle of an operation."""
    operation, operands = OPERANDS[name]
    return _core.intern_context(operation, (carrier_format(scalar),) * operands, scalar.format, scalar.environment)


@lru_cache(maxsize=256)
def _back(scalar: Scalar) -> np.uint64:
    carrier = carrier_format(scalar)
    return _core.intern_context("convert", (scalar.format,), carrier, plain(carrier))

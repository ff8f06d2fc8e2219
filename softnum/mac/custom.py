"""CustomMadUnit: a multiply-add unit that the user writes, in Python or in C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import Any

from softnum.formats.annotations import FormatLike
from softnum.formats.blocks import shown_format
from softnum.formats.custom.primitives import place_of
from softnum.formats.facts import fits
from softnum.formats.modes import rounding_name
from softnum.formats.names import format
from softnum.mac.compiled import CMad
from softnum.mac.family import register
from softnum.mac.mad import Unit, check_sum_formats, in_lanes, operand_pair, put_order, shown
from softnum.runtime import gateway

__all__ = ["CARRIERS", "CustomMadUnit"]

#: What a function's numbers are: floats, or codes of the formats as integers.
CARRIERS = ("float32", "float64", "codes")

_MOST_BITS = 63  # of a code: in compiled code it is a signed 64-bit integer


@dataclass(frozen=True, repr=False, eq=False)
class CustomMadUnit(Unit):
    """A unit whose multiplication, or whole multiply-add, is a user-defined function.

    A function of two numbers, ``mad(a, b)``, is the product: ``acc = R(acc + mad(a, b))``, R the accumulator's own
    addition. One of three, ``mad(acc, a, b)``, is the whole step: ``acc = mad(acc, a, b)``, whose result must be a
    value of the accumulator's format.

    Parameters
    ----------
    function : callable
        ``mad(a, b)`` or ``mad(acc, a, b)`` on single numbers, in the Python that Numba compiles; it becomes part of the
        loop over K. It may call what `softnum.kernels.scalar` gives, and other functions. A last parameter named
        ``word`` is the step's random word, a uint32. For C: `from_c`.
    operand : format or str, or a pair of them
        The format of a and b; operands of `matmul` are checked to be values of it.
    accumulator : format or str, optional
        The format of the running sum, of C and of the result. None: that of the operands, if they have one.
    rounding, overflow : str, optional
        Rounding mode (not a stochastic one) and overflow rule of R. If the function has three parameters, they apply to
        the additions of partial accumulators and chunks.
    lanes : int
        L partial accumulators, as in `MadUnit`. A C function on vectors computes L products at a time.
    chunk : int, optional
        Sum n products at a time, each chunk from +0, then add the chunks' sums in order, as in `MadUnit`.
    reduction : {"sequential", "tree", "pairwise"}
        The order in which partial accumulators are added with R, as in `MadUnit`.
    carrier : {"float32", "float64", "codes"}, optional
        How the function receives numbers: as floats, or as encodings, which are integers (int64 in compiled code).
        Default: float32 if that holds every value of the formats, else float64, else codes; codes if the accumulator is
        a CustomFormat.
    name : str, optional
        The name of the unit in its formula and in errors. Default: the function's name.

    Notes
    -----
    C starts the sum exactly as in `MadUnit`. Each partial accumulator starts from +0. If K is not a multiple of
    ``lanes``, the missing products are not computed. Results do not depend on the number of threads.

    The first product under a unit compiles it (seconds; later processes find the compiled code in the cache folder,
    SOFTNUM_CACHE) and compares it with the plain Python function on a sample of operands: where the two differ, as
    NumPy's types and Numba's sometimes do, there is an error. In Numba a constant such as 0.5 is a float64: write
    ``np.float32(0.5)``.

    A random word is that of `MadUnit` with one stochastic rounding a step: step k of output (m, n) takes word
    ``k mod 4`` of Philox counter (k div 4, n, m, batch).

    Raises
    ------
    TypeError
        If it is not a function, or takes other parameters. In `matmul`: if Numba cannot compile it, or its result is
        no number of the carrier; the message names the line.
    ValueError
        If a name is unknown, a number is out of range, or parameters contradict each other. In `matmul`: if a result is
        no value of the accumulator's format, or a NaN that it lacks; the message names the operands.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> from softnum import kernels
    >>> e5m2, e6m9 = kernels.scalar("e5m2"), kernels.scalar("e6m9")
    >>> def mad(acc, a, b):
    ...     return e6m9.add(acc, e5m2.multiply(a, b))
    >>> unit = sn.CustomMadUnit(mad, operand="e5m2", accumulator="e6m9")
    >>> print(unit)
    acc = mad(acc, a, b): e5m2 x e5m2 -> e6m9
    >>> x = np.full(3, 1.25, np.float32)
    >>> sn.dot(x, x, unit), sn.dot(x, x, sn.MadUnit("e6m9", operand="e5m2", product="e5m2"))
    (np.float32(4.5), np.float32(4.5))
    """

    function: object
    operand: object = None
    accumulator: object = None
    rounding: str = "nearest_even"
    overflow: str | None = None
    lanes: int = 1
    chunk: int | None = None
    reduction: str = "sequential"
    carrier: str | None = None
    name: str | None = None

    stochastic_bits = 32  # of a word, all of which the function gets

    def __post_init__(self) -> None:
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        put("operand", operand_pair(self))
        put("accumulator", self._accumulator())
        self.accumulator.arithmetic.check_modes(self.accumulator, self.rounding, self.overflow)
        check_sum_formats(self, "accumulator", custom=True)
        put_order(self)
        put("rounding", rounding_name(self.rounding))
        if self.rounding.startswith("stochastic"):
            raise ValueError(
                f"CustomMadUnit: rounding={self.rounding!r} is not for the additions of lanes and chunks; a function "
                "with a last parameter named word can round stochastically itself"
            )
        put("name", self.name or getattr(self.function, "__name__", "mad"))
        put("carrier", self._carrier_of(self.carrier))
        self.parameters  # noqa: B018  checks them

    def _accumulator(self):
        a, b = self.operand
        if self.accumulator is None and a != b:
            raise ValueError(f"CustomMadUnit: state accumulator=; the operands have two formats, {a} and {b}")
        return a if self.accumulator is None else format(self.accumulator)

    def _carrier_of(self, carrier: str | None) -> str:
        formats = (*self.operand, self.accumulator)
        adds = self.accumulator.arithmetic.carriers
        held = [c for c in CARRIERS[:2] if c in adds and all(fits(f, c) for f in formats)]
        if carrier is None and held:
            return held[0]
        if carrier is not None and carrier not in CARRIERS:
            raise ValueError(f"CustomMadUnit: carrier must be one of {', '.join(CARRIERS)}, got {carrier!r}")
        if carrier in (None, "codes"):
            wide = [f for f in formats if f.bits > _MOST_BITS]
            if wide:
                raise ValueError(
                    f"CustomMadUnit: codes are signed 64-bit integers in compiled code; {wide[0]} has {wide[0].bits} "
                    f"bits, limit {_MOST_BITS}"
                )
            return "codes"
        if carrier not in adds:
            raise ValueError(
                f"CustomMadUnit: sums in {self.accumulator} are of codes; carrier={carrier!r} is not for it"
            )
        if carrier not in held:
            unfit = next(f for f in formats if not fits(f, carrier))
            raise ValueError(f"CustomMadUnit: {carrier} does not hold every value of {unfit}; take a wider carrier")
        return carrier

    @classmethod
    def from_c(
        cls,
        source: str | Path,
        name: str = "mad",
        *,
        operand: FormatLike | tuple[FormatLike, FormatLike],
        accumulator: FormatLike | None = None,
        lanes: int | None = None,
        cflags: Sequence[str] = (),
        **options: Any,
    ) -> CustomMadUnit:
        """A unit whose function is written in C.

        Parameters
        ----------
        source : str or path
            C text, or the path of a file. softnum's headers can be included.
        name : str
            The function: ``T mad(T a, T b)`` or ``T mad(T acc, T a, T b)``. T is float or double; or a type of codes:
            an unsigned integer (uint8_t ...), or the struct that the source declares for a format, whose fields are
            the code, the first the most significant; or a vector of 2, 4 or 8 of these, ``new_fp4``: the function then
            takes so many products at a time, each element on its own.
        operand, accumulator : as in the class
            Formats whose codes have the width of the struct.
        lanes : int, optional
            Default: the elements of a vector, and no other number for a function of vectors; else 1.
        cflags : sequence of str
            Further options of the compiler.
        **options
            ``rounding``, ``overflow``, ``chunk`` and ``reduction``, as in the class.

        Returns
        -------
        CustomMadUnit

        Raises
        ------
        ValueError
            If there is no compiler, it refuses the source, the function is none that a unit can call, or it crashes,
            hangs or answers differently in the trial: before it is loaded, it is called twice in a child process, on
            all operands of up to 16 bits together, or 10**6.

        Notes
        -----
        Where the products that are left do not fill a vector, the absent elements are zero, and what comes back for
        them is dropped.

        Examples
        --------
        >>> import softnum as sn
        >>> unit = sn.CustomMadUnit.from_c(
        ...     "uint8_t mad(uint8_t a, uint8_t b) { return a & b; }", operand="uq8.0", accumulator="uq8.0"
        ... )
        >>> print(unit)
        acc = round(acc + mad(a, b)): uq8.0 x uq8.0 -> uq8.0 (nearest_even), on codes
        >>> sn.dot([12.0, 3.0], [10.0, 7.0], unit)  # 8 + 3
        np.float32(11.0)
        """
        pair = operand if isinstance(operand, tuple) else (operand, operand)
        formats = tuple(format(f) for f in (accumulator or pair[0], *pair))
        if not isinstance(source, str):
            source = str(Path(source).resolve())
        function = CMad(source, name, formats, tuple(cflags)).fixed()
        function.check()
        if lanes is not None and function.lanes > 1 and lanes != function.lanes:
            raise ValueError(f"CustomMadUnit.from_c: {name} takes vectors of {function.lanes}, and lanes={lanes!r}")
        unit = cls(
            function, operand=operand, accumulator=accumulator, lanes=lanes or function.lanes, carrier=function.carrier,
            **options,
        )  # fmt: skip
        function.address  # noqa: B018  compiles it, and tries it out
        return unit

    @property
    def parameters(self) -> tuple[str, ...]:
        """The function's parameters in their order: those of ("acc", "a", "b", "word") that it has.

        Raises TypeError for other numbers of them.
        """
        if isinstance(self.function, CMad):
            return self.function.parameters
        plain = getattr(self.function, "py_func", self.function)
        if not isinstance(plain, FunctionType):
            raise TypeError(
                "CustomMadUnit: function must be a Python function (def or lambda), mad(a, b) or mad(acc, a, b), or "
                f"one that Numba has compiled; got {self.function!r}"
            )
        import inspect

        names = list(inspect.signature(plain).parameters.values())
        plainly = all(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty for p in names)
        word = bool(names) and names[-1].name == "word"
        count = len(names) - word
        if count not in (2, 3) or not plainly or any(p.name == "word" for p in names[:-1]):
            raise TypeError(
                f"CustomMadUnit: {self.name} ({place_of(self.function)}) takes ({', '.join(map(str, names))}); a unit "
                "is mad(a, b), the product, or mad(acc, a, b), the new accumulator, each with a last parameter named "
                "word if it rounds stochastically, and none with a default"
            )
        return ("acc", "a", "b")[3 - count :] + (("word",) if word else ())

    @cached_property
    def _identity(self) -> tuple:
        """What units are equal by: with a Python function, all that it reads from outside when the unit is first used.

        Where that cannot be told, a unit equals itself alone.
        """
        told = () if isinstance(self.function, CMad) else gateway.fingerprint(self.function) or object()
        return (*(getattr(self, f.name) for f in fields(self)), told)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, CustomMadUnit) and self._identity == other._identity)

    def __hash__(self) -> int:
        return hash(self._identity)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self))

    @property
    def adds(self) -> bool:
        """Whether the function is the whole step, addition and all."""
        return self.parameters[0] == "acc"

    @property
    def stochastic(self) -> bool:
        """Whether a random key is needed."""
        return self.parameters[-1] == "word"

    @property
    def on_codes(self) -> bool:
        """Whether the function takes codes."""
        return self.carrier == "codes"

    @property
    def expression(self) -> str:
        """The Python expression that makes the unit, the function by its name."""
        c, default = isinstance(self.function, CMad), {f.name: f.default for f in fields(self)}
        default |= {"carrier": self._carrier_of(None), "name": getattr(self.function, "__name__", None)}
        if c:
            default |= {"carrier": self.carrier, "lanes": self.function.lanes}
        if self.operand[0] == self.operand[1]:
            default["accumulator"] = self.operand[0]
        stated = [f"{n}={shown(getattr(self, n))}" for n in list(default)[1:] if getattr(self, n) != default[n]]
        if not c:
            return f"CustomMadUnit({', '.join([self.name, *stated])})"
        given = [repr(self.function.source), repr(self.name), *stated]
        flags = f", cflags={self.function.cflags!r}" if self.function.cflags else ""
        return f"CustomMadUnit.from_c({', '.join(given)}{flags})"

    def __str__(self) -> str:
        a, b = self.operand
        call = f"{self.name}({', '.join(self.parameters)})"
        step = f"acc = {call}" if self.adds else f"acc = round(acc + {call})"
        text = f"{step}: {a} x {b} -> {self.accumulator}"
        if not self.adds or self.lanes > 1 or self.chunk:
            text += f" ({self.rounding}{f', overflow {self.overflow}' if self.overflow else ''})"
        if self.carrier == "codes":
            text += ", on codes"
        if self.lanes > 1:
            text += in_lanes(self.lanes, self.reduction)
        return text + (
            f", in chunks of {self.chunk} summed in {shown_format(self.accumulator)[1:-1]}" if self.chunk else ""
        )


register(
    CustomMadUnit, kind="custom", needed=("function",), from_text=False,
    options=("rounding", "overflow", "lanes", "chunk", "reduction", "carrier"),
)  # fmt: skip

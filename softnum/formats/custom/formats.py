"""CustomFormat: a format by a table of its values, by functions in Python, or in C."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from softnum.formats.base import AnyFormat, SingleFormat
from softnum.formats.codec import Rounding
from softnum.formats.codes import ValueCodes
from softnum.formats.custom.primitives import Primitives, storage_of
from softnum.formats.custom.rounding import ValueTable, narrowed
from softnum.formats.modes import FLOAT_OVERFLOW, family, rounding_name
from softnum.formats.names import format
from softnum.formats.operation_names import USER_OPERANDS
from softnum.runtime.plain import plain

__all__ = ["CustomFormat"]

_TO_ODD = Rounding("to_odd")
_TABULATED = 16  # bits, up to which all values are known
_UNKNOWN = "is known for formats of up to 16 bits; {} has {}"


class _Values:
    """The functions of a format that is a table of values: none but the values themselves."""

    convert_takes = None
    operations = ()

    def __init__(self, values: tuple[float, ...]) -> None:
        self.values = values
        self.bits = (len(values) - 1).bit_length()
        self.storage = storage_of(self.bits)
        self.key = np.array(values).tobytes()

    def as_float(self, codes) -> np.ndarray:
        return np.array(self.values)[codes]

    def rebuilding(self, name: str) -> tuple:
        return self.values, name

    @classmethod
    def rebuilt(cls, values: tuple[float, ...], name: str) -> _Values:
        return cls(values)


def _exact_float(value, i: int) -> float:
    """An entry of a table as a float, +0 of any zero; TypeError or ValueError if it is none."""
    if not isinstance(value, (Real, Decimal)):
        raise TypeError(
            f"from_table: values[{i}] is {value!r}; a value must be a real number (int, float, Fraction) or NaN"
        )
    try:
        found = float(value)
    except OverflowError:
        found = float("inf")
    if value == value and value != found:
        raise ValueError(f"from_table: values[{i}] is {value!r}, which is not exact in binary64; round it first")
    return found if found else 0.0


class CustomFormat(ValueCodes, SingleFormat, saved_as="table"):
    """A user-defined format: a posit, a logarithmic format, NF4, or any other set of values.

    It is defined by Python functions (`CustomFormat`), by C functions (`from_c`) or by a table of values
    (`from_table`). It then works like a built-in format in `quantize`, `encode`, `decode` and `Array`, in the
    operations of ``softnum.ops`` and the elementary functions, and in units, as operand, product and accumulator.

    Operations that are not given are derived: the exact result of the operation on the values, rounded to the format.
    Their rounding is that of `convert`; without one, a value rounds to one of its two neighbours among the format's
    values: a tie in nearest_even goes to the upper one if its code is even, else to the lower one; toward_zero takes
    the neighbour on zero's side, away_from_zero the other. Values beyond the largest or lowest one become that one
    (saturation). An infinity, that of 1 / 0 and log(0) among them, stays one where the format has it; else it is NaN
    where the format has that, but the value at its end with ``overflow="saturate"``; else that value. A NaN needs a NaN
    in the format. If several codes have the same value, results use the lowest.

    Parameters
    ----------
    bits : int
        Width of a code, from 1 to 62 (`from_c`: to 64).
    as_float : function of int
        The value of a code, as a float.
    convert : function of float, optional
        The code that a binary64 value rounds to. None: rounding to neighbours as above, for up to 16 bits. An exact
        result comes to it rounded to odd in binary64, which rounds as the exact one would if `convert` looks at no more
        than 51 leading bits.
    ops : dict of str to function
        Operations on codes: "add": function of two ints that returns an int. Names as in `softnum.ops.OPERATIONS`;
        sub, mul, div, neg, abs, min and max are understood.
    name : str

    Raises
    ------
    ImportError
        If Numba, which compiles the functions, is not installed.
    TypeError
        If Numba cannot compile a function (the message is Numba's), or it returns another type.
    ValueError
        If an operation's name is unknown, or a function is not the same compiled and in Python, which a trial on a
        sample of operands finds. Where it is used: if a function raises, or returns what is no code; the message names
        its line and the operands. Only operands that occur are checked.

    Notes
    -----
    Integers in the compiled functions are those of Numba, 64 bits and signed. For a NaN, an infinity or a magnitude of
    2**53 or more, which int() cannot convert in compiled code, `convert` runs in Python, one value at a time.
    Operations of two operands on formats of up to 8 bits are looked up in tables (`table`), of one operand up to 16
    bits. The first process compiles (a second for each function); others find compiled code in SOFTNUM_CACHE.

    Examples
    --------
    >>> import softnum as sn
    >>> def value(code):  # powers of two from 2**-8 to 2**6 with a sign, and zero
    ...     magnitude = code & 15
    ...     return 0.0 if magnitude == 0 else (-1.0) ** (code >> 4) * 2.0 ** (magnitude - 9)
    >>> def product(a, b):
    ...     if a & 15 == 0 or b & 15 == 0:
    ...         return 0
    ...     return (a ^ b) & 16 | min(max((a & 15) + (b & 15) - 9, 1), 15)
    >>> log5 = sn.CustomFormat(5, as_float=value, ops={"multiply": product}, name="log5")
    >>> a = sn.array([0.5, 3.1, -100.0], log5)
    >>> a, a * a
    (Array([  0.5,   4. , -64. ], log5), Array([ 0.25, 16.  , 64.  ], log5))
    """

    overflow_rules = FLOAT_OVERFLOW
    _narrow = "a value of {} is not exact in {} (use a wider type)"
    root_bits = last_place = None  # values may lie anywhere
    exponent_bits = 0
    p3109 = False

    has_exceptions = False

    def __init__(
        self,
        bits: int,
        *,
        as_float: Callable[[Any], Any],
        convert: Callable[..., Any] | None = None,
        ops: Mapping[str, Any] | None = None,
        name: str = "custom",
    ) -> None:
        from softnum.formats.custom.python_functions import MAX_BITS, PythonFunctions

        what = f"CustomFormat {name}"
        if isinstance(bits, bool) or not isinstance(bits, Integral) or not 1 <= bits <= MAX_BITS:
            raise ValueError(f"{what}: bits must be an integer from 1 to {MAX_BITS} (from_c: to 64), got {bits!r}")
        if convert is None and bits > _TABULATED:
            raise ValueError(
                f"{what}: a format of {bits} bits needs convert=; without it, the limit is {_TABULATED} bits"
            )
        self._set(PythonFunctions(int(bits), as_float, convert, {} if ops is None else ops, what), name, "custom")

    @plain
    def _set(self, functions, name: str, kind: str, between: np.ndarray | None = None) -> None:
        self._functions, self._tables = functions, {}
        self.name: str = name
        #: "table" (`from_table`) or "custom" (made of functions).
        self.kind: str = kind
        #: What a value is that `softnum.quantize` finds no code for; None: it says so of the result.
        self.lost = None if kind == "table" else "NaN"
        #: Width of a code in bits.
        self.bits: int = functions.bits
        #: The NumPy type of an array of codes.
        self.storage_dtype: np.dtype = functions.storage
        self._table = None
        if self.bits <= _TABULATED:
            values = np.array(functions.as_float(np.arange(1 << self.bits).astype(self.storage_dtype)))
            if np.isnan(values).all():
                raise ValueError(f"CustomFormat {name}: as_float returns NaN for every code")
            values[np.isnan(values)] = np.nan
            self._table = ValueTable(values, name, self.storage_dtype, between)
            if not len(self._table.codes):
                raise ValueError(f"CustomFormat {name}: no code has a finite value")

    @classmethod
    def _made(cls, functions, name: str, kind: str) -> CustomFormat:
        new = cls.__new__(cls)
        new._set(functions, name, kind)
        return new

    @classmethod
    @plain
    def from_table(cls, values: ArrayLike, *, name: str = "table") -> CustomFormat:
        """The format in which code i stands for ``values[i]``.

        Parameters
        ----------
        values : sequence of float, length 2**bits with 1 <= bits <= 16
            Finite values, each once, in any order; NaN may stand for any number of codes (the first is the canonical).
            At the ends numbers become the largest or the lowest value; infinities, and so 1 / 0, are NaN if there is
            one, as in formats of softnum's without infinities.
        name : str

        Returns
        -------
        CustomFormat

        Raises
        ------
        ValueError
            If the length is no power of two up to 65536, a value is infinite, not exact in binary64 or occurs twice, or
            all are NaN.
        TypeError
            If an entry is no real number.

        Examples
        --------
        >>> import softnum as sn
        >>> ternary = sn.CustomFormat.from_table([0.0, 1.0, float("nan"), -1.0], name="ternary")
        >>> sn.quantize([0.4, 0.6, -7.0], ternary)
        array([ 0.,  1., -1.])
        >>> sn.array([1.0, -1.0], ternary) * sn.array([-1.0, -1.0], ternary)
        Array([-1.,  1.], ternary)
        """
        try:
            given = list(values)
        except TypeError:
            raise TypeError(f"from_table takes a sequence of 2**bits numbers, got {values!r}") from None
        table = tuple(_exact_float(v, i) for i, v in enumerate(given))
        n = len(table)
        if n < 2 or n > 65536 or n & (n - 1):
            raise ValueError(f"from_table needs 2**bits values with 1 <= bits <= 16, got {n}")
        finite = [v for v in table if v == v]
        if not finite:
            raise ValueError("from_table: all values are NaN")
        if any(abs(v) == float("inf") for v in finite):
            raise ValueError("from_table accepts finite values and NaN, and no infinity")
        if len(set(finite)) != len(finite):
            twice = next(v for i, v in enumerate(finite) if v in finite[:i])
            raise ValueError(f"from_table: the value {twice!r} occurs more than once")
        return cls._of_values(tuple(float("nan") if v != v else v for v in table), name)

    @classmethod
    def _of_values(cls, values: tuple[float, ...], name: str) -> CustomFormat:
        return cls._made(_Values(values), name, "table")

    @classmethod
    def from_c(
        cls, source: str | Path, type_name: str = "new_fp", *, name: str | None = None, cflags: Sequence[str] = ()
    ) -> CustomFormat:
        """The format that C code defines: a struct of bit-fields, how it converts, and operations on it.

        Parameters
        ----------
        source : str or path
            C text, or the path of a file. It declares the type, ``float as_float(type)`` and ``type convert(float)``
            (either may be of double), and any of softnum's operations on it: ``type add(type, type)``,
            ``type log(type)`` ... (`softnum.ops.OPERATIONS`; sub, mul, div, neg, abs, min and max are understood).
            Other functions are the source's own.
        type_name : str
            The type: a struct of integers, with widths or without, or an integer type. A code is its fields in the
            order of their declaration, the first the most significant, however the compiler lays them out.
        name : str, optional
            What the format is called; default the type's name.
        cflags : sequence of str
            Further options of the compiler, ``-DWIDTH=5`` or ``-Ipath``.

        Returns
        -------
        CustomFormat

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If there is no C compiler (``CC``, else ``cc``) or it refuses the source (the message is the compiler's,
            with the source's lines); if a function is missing, has no body, or another signature; or if a function
            crashes, hangs, or answers differently when it is asked again.

        Notes
        -----
        The source is compiled once for all processes (the library lies in SOFTNUM_CACHE, else under XDG_CACHE_HOME or
        ~/.cache). Before it is first loaded a child process calls each function twice, on all codes up to 16 bits of
        operands or on 10**6 fixed samples. Unsigned types ``uchar``, ``ushort``, ``uint`` and ``ulong`` and <stdint.h>
        are known; functions may have the names of <math.h>, included or not; softnum's own C headers are found.

        An exact result of a derived operation comes to ``convert(float)`` rounded to odd in binary32: it rounds as the
        exact one would if `convert` looks at no more than 22 leading bits (``convert(double)``: 51).

        Examples
        --------
        >>> import softnum as sn
        >>> half_steps = sn.CustomFormat.from_c('''
        ...     typedef struct { uint sign : 1; uint steps : 3; } fp;
        ...     float as_float(fp a) { return (a.sign ? -0.5f : 0.5f) * a.steps; }
        ...     fp convert(float x) {
        ...         float steps = 2 * (x < 0 ? -x : x);
        ...         return (fp){x < 0, steps < 7 ? (uint)steps : 7};
        ...     }
        ... ''', "fp")
        >>> sn.array([0.7, -9.0], half_steps)
        Array([ 0.5, -3.5], fp)
        """
        from softnum.formats.custom.c_functions import CFunctions

        name = type_name if name is None else name
        return cls._made(CFunctions(source, type_name, cflags, f"CustomFormat {name}"), name, "custom")

    # -- facts ---------------------------------------------------------------------------------------------------------
    @cached_property
    def values(self) -> tuple[float, ...]:
        """All values, of up to 16 bits: code i stands for ``values[i]``."""
        return tuple(self._known("values").values.tolist())

    def _known(self, what: str) -> ValueTable:
        if self._table is None:
            raise ValueError(f"{what} {_UNKNOWN.format(self, self.bits)}")
        return self._table

    @plain
    def _converted(self, value: float) -> float:
        """What a value becomes in a format too wide for a table of its values."""
        return float(self._functions.as_float(self._functions.convert(np.array([value])))[0])

    @cached_property
    def has_nan(self) -> bool:
        """Whether some code is NaN."""
        return bool(np.isnan(self._converted(np.nan))) if self._table is None else self._table.nan_code is not None

    @cached_property
    def infinities(self) -> bool:
        """Whether some code is an infinity."""
        if self._table is None:
            return bool(np.isinf(self._converted(np.inf)))
        return self._table.infinity is not None or self._table.minus_infinity is not None

    @cached_property
    def negative_zero(self) -> bool:
        """Whether some code is -0."""
        if self._table is None:
            return bool(np.signbit(self._converted(-0.0)))
        return self._table.minus_zero is not None

    @cached_property
    @plain
    def has_zero(self) -> bool:
        """Whether some code is zero."""
        return self._converted(0.0) == 0 if self._table is None else 0.0 in self._table.sorted

    @cached_property
    @plain
    def signed(self) -> bool:
        """Whether a value is negative."""
        return self._converted(-1.0) < 0 if self._table is None else self.min < 0

    @property
    def max(self) -> float:
        """Largest finite value, of up to 16 bits."""
        return float(self._known("max").sorted[-1])

    @property
    def min(self) -> float:
        """Lowest finite value, of up to 16 bits."""
        return float(self._known("min").sorted[0])

    @cached_property
    @plain
    def carrier_facts(self) -> tuple[int, int, int]:
        """(precision, lowest exponent of a last bit, highest exponent) that hold for all values."""
        if self._table is not None:
            return self._table.carrier_facts
        return (24, -149, 127) if self._functions.values_are == "float" else (53, -1074, 1023)

    @property
    def span(self) -> tuple[int, int]:
        """(last, top): all values are multiples of ``2**last`` and below ``2**top`` in magnitude."""
        _, last, highest = self.carrier_facts
        return last, highest + 1

    def sign_bits(self, codes: np.ndarray) -> np.ndarray:
        """Where a value is negative, or -0."""
        values = self.decode(codes, np.float64)
        return np.signbit(values) & ~np.isnan(values)

    def sign_text(self, code: str) -> None:
        """No text in C tells the signs of codes."""

    def order_keys(self, codes: np.ndarray) -> np.ndarray:
        """Each code's place in the total order, `order`."""
        return self.order[codes]

    @property
    def order(self) -> np.ndarray:
        """Each code's place in the total order, of up to 16 bits: by value, -0 below +0, NaNs last, then by code."""
        return self._known("the order of codes").order

    def in_order(self, a: ArrayLike, b: ArrayLike) -> np.ndarray:
        """Whether a comes before b or is the same: by value, -0 below +0, NaNs last, and by code among equals."""
        if self._table is not None:
            return self.order[a] <= self.order[b]
        x, y = self.decode(a, np.float64), self.decode(b, np.float64)
        keys = [(np.isnan(x), np.isnan(y)), (x, y), (~np.signbit(x), ~np.signbit(y)), (a, b)]
        before, same = False, True
        for left, right in keys:
            before = before | (same & (left < right))
            same = same & ((left == right) | (np.isnan(left) & np.isnan(right)))
        return before | same

    def stepped(self, codes: np.ndarray, step: int) -> np.ndarray:
        """The codes of the next values above (step 1) or below (-1); the greatest and the least, and NaNs, are their
        own. ValueError of formats of more than 16 bits."""
        values, every = self._known("the next value")._every
        x = self.decode(codes, np.float64)
        at = np.searchsorted(values, np.where(np.isnan(x), 0, x))
        found = every[np.clip(at + step, 0, len(every) - 1)]
        if self.negative_zero and step > 0:  # zero, come to from below
            found = np.where((x < 0) & (self._table.values[found] == 0), self._table.minus_zero, found)
        return np.where(np.isnan(x), codes, found).astype(self.storage_dtype)

    @property
    def has_neighbours(self) -> bool:
        """Whether `stepped` knows the next values: of up to 16 bits."""
        return self._table is not None

    @property
    def primitives(self) -> Primitives:
        """Which primitives are user-defined and which are derived: a dict from name to "user" or "derived", printed as
        a table.

        >>> import softnum as sn
        >>> sn.CustomFormat.from_table([0.0, 1.0, -1.0, 0.5]).primitives["add"]
        'derived'
        """
        found = Primitives(as_float="user" if self.kind == "custom" else "derived")
        found["convert"] = "user" if self._functions.convert_takes is not None else "derived"
        for name in (*USER_OPERANDS, "scalb"):
            own = name in self._functions.operations
            if own or name not in ("next_up", "next_down") or self.has_neighbours:
                found[name] = "user" if own else "derived"
        return found

    def has_own(self, name: str, formats: Sequence[AnyFormat]) -> bool:
        """Whether an operation on operands of these formats is a function on codes, and not derived from values."""
        return name in self._functions.operations and all(f == self for f in formats)

    def own(self, name: str, formats: Sequence[AnyFormat], codes: ArrayLike) -> np.ndarray:
        """The results of such an operation."""
        return self._functions.call(name, *codes)

    # -- arithmetic ----------------------------------------------------------------------------------------------------
    @plain
    def apply(
        self,
        name: str,
        *codes: np.ndarray,
        rounding: str = "nearest_even",
        overflow: str | None = None,
        invalid: str | float = "raise",
    ) -> np.ndarray:
        """An operation on encodings of this format: the user-defined one, or the one derived from the values.

        Parameters
        ----------
        name : str
            An operation of ``softnum.ops`` that gives codes.
        *codes : array_like of unsigned integers
            Broadcast against each other.
        rounding, overflow, invalid
            As in `softnum.add`. User-defined operations and `convert` state their own rounding and accept none of
            these.

        Returns
        -------
        ndarray of codes

        Raises
        ------
        ValueError
            If the format has no such operation, another number of operands, or no code for a NaN that results.

        Examples
        --------
        >>> import softnum as sn
        >>> thirds = sn.CustomFormat.from_table([0.0, 0.25, 0.5, 0.75], name="quarters")
        >>> thirds.apply("add", [1, 2, 3], 1)
        array([2, 3, 3], dtype=uint8)
        """
        return self.arithmetic.run(self, name, codes, rounding, overflow, invalid)

    @plain
    def table(self, name: str) -> np.ndarray:
        """All results of an operation, made at first use: what `apply` and `matmul` look up.

        Parameters
        ----------
        name : str
            An operation of one operand (formats of up to 16 bits) or of two (up to 8 bits).

        Returns
        -------
        ndarray of codes, read-only, shape (2**bits,) or (2**bits, 2**bits)

        Raises
        ------
        ValueError
            If the format is wider, the operation has no table, or the format has no code for a result that is NaN.

        Examples
        --------
        >>> import softnum as sn
        >>> sn.CustomFormat.from_table([0.0, 0.25, 0.5, 0.75], name="quarters").table("add")
        array([[0, 1, 2, 3],
               [1, 2, 3, 3],
               [2, 3, 3, 3],
               [3, 3, 3, 3]], dtype=uint8)
        """
        return self.arithmetic.table(self, name)

    # -- values to codes and back --------------------------------------------------------------------------------------
    def check_modes(self, rounding: str, overflow: str | None) -> None:
        """ValueError unless the format rounds in this mode and under this overflow rule."""
        rounding = rounding_name(rounding)
        if self._functions.convert_takes is not None:
            if rounding != "nearest_even" or overflow is not None:
                raise ValueError(
                    f"{self} rounds as its convert does; leave rounding={rounding!r} and overflow={overflow!r} out"
                )
            return
        if family(rounding) not in ("even", "nearest", "directed"):
            raise ValueError(
                f"rounding={rounding!r} is not defined for {self.described}; use a nearest or a directed mode"
            )
        if overflow not in (None, "saturate", "saturate_finite"):
            raise ValueError(f"{self.described} saturates; overflow={overflow!r} is not defined for it (leave it out)")

    def infinities_saturate(self, overflow: str | None) -> bool:
        """Whether under an overflow rule an infinity that the format lacks is the value at that end, and not NaN."""
        return overflow is not None

    @plain
    def encode(
        self, x: ArrayLike, rounding: str = "nearest_even", overflow: str | None = None, instead: int | None = None
    ) -> np.ndarray:
        """Codes of the values x (numbers of any kind, taken exactly); instead: that of a NaN in a table without one."""
        self.check_modes(rounding, overflow)
        if self._functions.convert_takes is None:
            return self._table.encode(x, rounding, instead, self.infinities_saturate(overflow))
        return self._functions.convert(self.for_convert(x))

    @plain
    def for_convert(self, x: ArrayLike) -> np.ndarray:
        """Numbers in the float type that the user's convert takes, rounded to odd where they are not exact in it."""
        takes, x = self._functions.convert_takes, np.asarray(x)
        if x.dtype in (np.float16, np.float32) and takes == np.float64:
            return x.astype(takes)
        if x.dtype != takes:
            wide = format(f"binary{8 * takes.itemsize}")
            odd = wide.codec.encode(x, wide, _TO_ODD)
            x = np.ascontiguousarray(odd).view(takes).reshape(odd.shape)
        return x

    @plain
    def decode(self, codes: ArrayLike, dtype: DTypeLike) -> np.ndarray:
        """The values of codes, exact in dtype."""
        if self._table is None:
            values, inexact = narrowed(self._functions.as_float(codes), dtype)
        else:
            known, where = self._table.in_type(np.dtype(dtype))
            values, inexact = known[codes], None if where is None else where[codes]
        if inexact is not None and inexact.any():
            raise ValueError(self._narrow.format(self, np.dtype(dtype)))
        return np.asarray(values)

    def core_values(self, codes: ArrayLike) -> np.ndarray:
        """The values of codes in float64, which computing goes by."""
        return self.decode(codes, np.float64)

    def exact_number(self, code: int) -> Fraction | float:
        """The value of a code: a Fraction, or a float for what is none."""
        number = float(self.decode(np.array(code, self.storage_dtype), np.float64))
        minus_zero = number == 0 and np.signbit(number)
        return Fraction(number) if np.isfinite(number) and not minus_zero else number

    def quantize(
        self, x: ArrayLike, rounding: str, overflow: str | None = None, instead: int | None = None
    ) -> np.ndarray:
        """The values that x rounds to, in x's float type."""
        return self.decode(self.encode(x, rounding, overflow, instead), x.dtype)

    @plain
    def find(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(codes of float values that are the format's, where one is not)"""
        if self._table is not None:
            return self._table.find(x)
        codes = self.encode(x)
        values = self._functions.as_float(codes)
        return codes, (values != x) & ~(np.isnan(values) & np.isnan(x))

    @property
    def described(self) -> str:
        """What errors call the format: by its kind and name."""
        return f"the {'value table' if self.kind == 'table' else 'custom format'} {self.name}"

    # -- in records and files ------------------------------------------------------------------------------------------
    def label(self, source: str) -> str:
        """What a record calls it that found it under `source`, a file's object: by the object's name."""
        return source.rpartition(":")[2] or str(self)

    def summary(self, source: str) -> dict[str, Any]:
        """Source, width, and a checksum of all values of up to 16 bits, for a record."""
        facts = {"format": source or str(self), "bits": self.bits}
        if self._table is None:
            return facts
        values = np.array(self.values, "<f8")
        return facts | {"values_sha256": hashlib.sha256(values.tobytes()).hexdigest()}

    def own_widths(self, source: str) -> dict[str, int]:
        """The width by the format's name in the file of `source`, which alone knows it."""
        return {source.rpartition(":")[2]: self.bits}

    def to_data(self) -> dict[str, Any]:
        """All that makes a format by `from_table`, as plain data; TypeError for one made of functions."""
        if self.kind == "custom":
            raise TypeError(f"save: {self} is made of functions, which cannot be saved; keep a.codes with np.save")
        return {"kind": self.kind, "name": self.name, "values": [v.hex() for v in self.values]}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> CustomFormat:
        """The format that `to_data` described, but for its kind."""
        return cls.from_table([float.fromhex(v) for v in data["values"]], name=data["name"])

    # -- identity ------------------------------------------------------------------------------------------------------
    def _key(self) -> tuple:
        return self.kind, self._functions.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CustomFormat) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        if self.kind == "table" and self.bits <= 4:
            return f"CustomFormat.from_table({list(self.values)!r}, name={self.name!r})"
        if self.kind == "table":
            return f"<CustomFormat {self.name}: {len(self.values)} values from {self.min!r} to {self.max!r}>"
        own = ", ".join(("as_float", "convert", *self._functions.operations))
        return f"<CustomFormat {self.name}: {self.bits} bits, {self._functions.language}: {own}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self._functions), self.kind, self.name, self._functions.rebuilding(self.name))


def _rebuilt(functions: type, kind: str, name: str, made_of: tuple) -> CustomFormat:
    return CustomFormat._made(functions.rebuilt(*made_of), name, kind)

"""What one set of vectors is of: an operation, its formats and the modes it rounds in (of units: unit_spec.py)."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from softnum.formats.checks import check_not_own
from softnum.formats.modes import overflow_name, rounding_name
from softnum.formats.names import format
from softnum.formats.scalar import Format
from softnum.ops.arithmetic import CODE_OPERATIONS

__all__ = ["Block", "Column", "Spec", "VectorSpec", "format_name"]

FLAG_BITS = 5
_OPERAND_NAMES = ("a", "b", "c")


class Column(NamedTuple):
    """One column of a vector file: its name, the width of an element in bits, its format if it is a code, and how many
    elements make an entry.

    An entry of several elements is one word, element 0 in its least significant bits.
    """

    name: str
    bits: int
    format: Format | None = None
    count: int = 1

    @property
    def width(self) -> int:
        """Bits of an entry."""
        return self.bits * self.count

    @property
    def digits(self) -> int:
        """Hexadecimal digits of an entry: ceil(width / 4)."""
        return -(-self.width // 4)

    @property
    def dtype(self) -> np.dtype:
        """What holds an element."""
        if self.format is not None:
            return self.format.storage_dtype
        return np.dtype(np.uint8 if self.bits <= 8 and self.name != "random" else np.uint32)


class Block(NamedTuple):
    """Some consecutive vectors, n of them; every member has one entry a vector.

    ``operands`` is a tuple of code arrays of shape (n,), or (n, count) where an entry has several elements (C is the
    last), ``random_bits`` such an array of uint32 where the rounding is stochastic and None elsewhere, ``result`` an
    array of codes, ``flags`` a uint8 array of `softnum.Flags`, or None: units have none.
    """

    operands: tuple[np.ndarray, ...]
    random_bits: np.ndarray | None
    result: np.ndarray
    flags: np.ndarray | None

    def __len__(self) -> int:
        return len(self.result)

    @property
    def columns(self) -> list[np.ndarray]:
        """The arrays in the order of a file's columns."""
        drawn = [] if self.random_bits is None else [self.random_bits]
        return [*self.operands, *drawn, self.result, *([] if self.flags is None else [self.flags])]


class Spec:
    """What a file of vectors is of: `VectorSpec` for an operation, `UnitSpec` for a unit.

    Both have ``columns`` (operands, C last, random bits, result, flags), ``out_fmt`` (the result's element format),
    ``stochastic_bits`` (r or None), ``evaluate(operands, random_bits)``, ``facts()`` and ``options()``.
    """

    columns: tuple[Column, ...]

    @property
    def operand_columns(self) -> tuple[Column, ...]:
        """The columns before random bits, result and flags."""
        return tuple(c for c in self.columns if c.name not in ("random", "result", "flags"))

    @property
    def has_flags(self) -> bool:
        """Whether there is a column of flags."""
        return self.columns[-1].name == "flags"

    def block_of(self, values) -> Block:
        """The block of a list of arrays, one for each column."""
        named = {c.name: v for c, v in zip(self.columns, values, strict=True)}
        operands = tuple(named[c.name] for c in self.operand_columns)
        return Block(operands, named.get("random"), named["result"], named.get("flags"))


def _operation_name(op: str) -> str:
    if op not in CODE_OPERATIONS:
        near = difflib.get_close_matches(str(op), CODE_OPERATIONS, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"unknown operation {op!r}{hint} (known: {', '.join(CODE_OPERATIONS)})")
    return op


def format_name(fmt: Format) -> str:
    """The name that `softnum.format` turns into this format, or its repr without spaces where there is none."""
    plain = repr(fmt).replace(" ", "")
    try:
        found = format(fmt.name)
    except ValueError:
        return plain
    return fmt.name if found == fmt else plain


@dataclass(frozen=True)
class VectorSpec(Spec):
    """An operation with everything its result depends on, as `make` checks and completes it.

    Parameters
    ----------
    op : str
        A name of ``softnum.ops.CODE_OPERATIONS``: add, multiply, fma, divide, sqrt, convert ...
    formats : tuple of formats
        One for each operand.
    out_fmt : format
        The result's.
    rounding, overflow, tininess : str
        Full names.
    stochastic_bits : int or None
        r where the rounding is stochastic, else None.
    """

    op: str
    formats: tuple[Format, ...]
    out_fmt: Format
    rounding: str
    overflow: str
    tininess: str
    stochastic_bits: int | None

    @classmethod
    def make(
        cls, op, fmt, *, out_fmt=None, rounding="nearest_even", overflow=None, tininess="after", stochastic_bits=32
    ) -> VectorSpec:
        """Check the parts against each other and fill in what follows from them.

        Parameters
        ----------
        op : str
        fmt : format or str, or a tuple of them (one for each operand)
        out_fmt : format or str, optional
            Required for convert and where the operands' formats differ.
        rounding, overflow, tininess, stochastic_bits
            As in `softnum.multiply`.

        Returns
        -------
        VectorSpec

        Raises
        ------
        ValueError
            If a name is unknown, formats are missing, or a format is a value table (which has no arithmetic).

        Examples
        --------
        >>> from softnum.vectors import VectorSpec
        >>> [c.name for c in VectorSpec.make("fma", "e5m2", rounding="sr", stochastic_bits=8).columns]
        ['a', 'b', 'c', 'random', 'result', 'flags']
        """
        count = CODE_OPERATIONS[_operation_name(op)][1]
        given = tuple(fmt) if isinstance(fmt, (tuple, list)) else (fmt,) * count
        if len(given) != count:
            raise ValueError(f"{op} has {count} operand(s), got {len(given)} formats")
        formats = tuple(format(f) for f in given)
        if out_fmt is None:
            names = ", ".join(str(f) for f in formats)
            if op == "convert":
                raise ValueError(f"convert from {names}: state the target (out_fmt=, --result-format)")
            if any(f != formats[0] for f in formats):
                raise ValueError(
                    f"{op}: the operands' formats differ ({names}); state the result's (out_fmt=, --result-format)"
                )
            out_fmt = formats[0]
        out_fmt = format(out_fmt)
        for f in (*formats, out_fmt):
            check_not_own(f, "{} is a value table or custom format, of which no vectors are made")
        mode = rounding_name(rounding)
        if op != "round_to_integral":  # whose mode is that of the integer
            out_fmt.arithmetic.check_modes(out_fmt, mode, None)
        if tininess not in ("after", "before"):
            raise ValueError(f"tininess must be 'after' or 'before', got {tininess!r}")
        r = None
        if mode.startswith("stochastic"):
            if isinstance(stochastic_bits, bool) or not isinstance(stochastic_bits, int):
                raise TypeError(f"stochastic_bits must be an integer, got {stochastic_bits!r}")
            if not 1 <= stochastic_bits <= 32:
                raise ValueError(f"stochastic_bits must lie in 1..32, got {stochastic_bits}")
            r = stochastic_bits
        return cls(op, formats, out_fmt, mode, overflow_name(overflow, out_fmt), tininess, r)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of a vector, in order: operands (C last), random bits, result, flags."""
        operands = [Column(n, f.bits, f) for n, f in zip(_OPERAND_NAMES, self.formats, strict=False)]
        drawn = [] if self.stochastic_bits is None else [Column("random", self.stochastic_bits)]
        return (*operands, *drawn, Column("result", self.out_fmt.bits, self.out_fmt), Column("flags", FLAG_BITS))

    def evaluate(self, operands, random_bits=None) -> Block:
        """The vectors of given operands.

        Parameters
        ----------
        operands : sequence of arrays of codes, all of one shape (n,)
        random_bits : uint32 array of shape (n,), optional
            Needed where the rounding is stochastic.

        Returns
        -------
        Block

        Notes
        -----
        Where the result is NaN and the format has no code for it, the result is code 0 and INVALID is raised. Results
        in posits and takums raise no flags.
        """
        options = dict(rounding=self.rounding, invalid=0)
        without_flags = self.out_fmt.nan_is_least
        if not without_flags:
            options |= dict(overflow=self.overflow, tininess=self.tininess, return_flags=True)
        if self.stochastic_bits is not None:
            options.update(random_bits=random_bits, stochastic_bits=self.stochastic_bits)
        function = CODE_OPERATIONS[self.op][0]
        if self.op == "convert":
            found = function(operands[0], self.formats[0], self.out_fmt, **options)
        else:
            found = function(*operands, self.formats, out_fmt=self.out_fmt, **options)
        result, flags = (found, np.zeros(np.shape(found), np.uint8)) if without_flags else found
        return Block(tuple(operands), random_bits if self.stochastic_bits is not None else None, result, flags)

    def facts(self) -> dict[str, str]:
        """What a file's header says of the vectors, as text, in a fixed order."""
        names = [format_name(f) for f in self.formats]
        out = {
            "op": self.op,
            "format": " ".join(names[:1] if len(set(self.formats)) == 1 else names),
            "result_format": format_name(self.out_fmt),
            "rounding": self.rounding,
            "overflow": self.overflow,
            "tininess": self.tininess,
            "nan": "canonical",
            "flush": "none",
        }
        if self.stochastic_bits is not None:
            out["stochastic_bits"] = str(self.stochastic_bits)
        return out

    def options(self) -> str:
        """The command-line options that state this spec."""
        text = f"--op {self.op} --format {','.join(self.facts()['format'].split(' '))}"
        if self.op == "convert" or any(f != self.out_fmt for f in self.formats):
            text += f" --result-format {format_name(self.out_fmt)}"
        text += f" --rounding {self.rounding}"
        if self.overflow != overflow_name(None, self.out_fmt):
            text += f" --overflow {self.overflow}"
        if self.tininess != "after":
            text += f" --tininess {self.tininess}"
        if self.stochastic_bits is not None:
            text += f" --stochastic-bits {self.stochastic_bits}"
        return text

"""What one set of vectors is of: an operation, its formats and the modes it rounds in (of units: unit_spec.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from softnum.formats.checks import check_not_own
from softnum.formats.modes import overflow_name, rounding_name
from softnum.formats.names import format
from softnum.formats.scalar import Format
from softnum.vectors.plans.operations import (
    COMPARISONS,
    check_exact,
    computed,
    expanded,
    nan_of,
    operand_format,
    operands_of,
    result_format,
)  # fmt: skip

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
        A name of ``softnum.ops.CODE_OPERATIONS``: add, multiply, fma, divide, sqrt, convert ...; or to_integer, or a
        comparison: compare_quiet_equal, compare_signaling_less ...
    formats : tuple of formats
        One for each operand.
    out_fmt : format
        The result's; of to_integer, the fixed-point format of the integers' values.
    rounding, overflow, tininess : str
        Full names.
    stochastic_bits : int or None
        r where the rounding is stochastic, else None.
    nan : str
        Which NaN is delivered, "canonical", "x86" or "arm"; of to_integer, whose invalid results: "riscv", "x86" or
        "arm".
    exact : bool
        Whether a number that is no integer raises INEXACT in round_to_integral and to_integer.
    """

    op: str
    formats: tuple[Format, ...]
    out_fmt: Format
    rounding: str
    overflow: str
    tininess: str
    stochastic_bits: int | None
    nan: str = "canonical"
    exact: bool = True

    @classmethod
    def make(
        cls, op, fmt=None, *, out_fmt=None, rounding=None, overflow=None, tininess="after", stochastic_bits=32,
        nan=None, exact=None,
    ) -> VectorSpec:  # fmt: skip
        """Check the parts against each other and fill in what follows from them.

        Parameters
        ----------
        op : str
            An operation, or another name of one (``softnum.formats.aliases``: mulAdd, le_quiet). The name of a function
            of TestFloat's states the formats too: f32_mulAdd, f64_to_i32, f16_roundToInt_r_minMag.
        fmt : format or str, or a tuple of them (one for each operand)
            TestFloat's i32, ui64 ... where integers are converted.
        out_fmt : format or str, optional
            Required for convert, to_integer (i32, ui64 ...) and where the operands' formats differ.
        rounding, overflow, tininess, stochastic_bits
            As in `softnum.multiply`.
        nan : str, optional
            As in `softnum.multiply`; of to_integer, whose invalid results are delivered, as in `softnum.to_integer`
            ("canonical" and "riscv": RISC-V's; "arm_default" and "arm": Arm's).
        exact : bool, optional
            Whether round_to_integral and to_integer raise INEXACT, as TestFloat's -exact (default) and -notexact say.

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
        op, given = expanded(op, {"fmt": fmt, "out_fmt": out_fmt, "rounding": rounding, "exact": exact})
        fmt, out_fmt, rounding, exact = (given[key] for key in ("fmt", "out_fmt", "rounding", "exact"))
        if fmt is None:
            raise ValueError(f"{op}: state the operands' format")
        exact = True if exact is None else bool(exact)
        check_exact(op, exact)
        count = operands_of(op)
        given = tuple(fmt) if isinstance(fmt, (tuple, list)) else (fmt,) * count
        if len(given) != count:
            raise ValueError(f"{op} has {count} operand(s), got {len(given)} formats")
        formats = tuple(operand_format(op, f) for f in given)
        out_fmt = result_format(op, formats, out_fmt)
        for f in (*formats, out_fmt):
            check_not_own(f, "{} is a value table or custom format, of which no vectors are made")
        mode = "nearest_even" if rounding is None else rounding_name(rounding)
        if op != "round_to_integral" and op != "to_integer" and op not in COMPARISONS:  # whose mode is the integer's
            out_fmt.arithmetic.check_modes(out_fmt, mode, None)
        if op in COMPARISONS and mode.startswith("stochastic"):
            raise ValueError(f"{op} rounds nothing; leave rounding={mode!r} out")
        if (op == "to_integer" or op in COMPARISONS) and overflow not in (None, out_fmt.overflow_rules[0]):
            raise ValueError(f"{op} has no overflow; nan= (--nan) says what is delivered where there is no integer")
        if tininess not in ("after", "before"):
            raise ValueError(f"tininess must be 'after' or 'before', got {tininess!r}")
        r = None
        if mode.startswith("stochastic"):
            if isinstance(stochastic_bits, bool) or not isinstance(stochastic_bits, int):
                raise TypeError(f"stochastic_bits must be an integer, got {stochastic_bits!r}")
            if not 1 <= stochastic_bits <= 32:
                raise ValueError(f"stochastic_bits must lie in 1..32, got {stochastic_bits}")
            r = stochastic_bits
        return cls(op, formats, out_fmt, mode, overflow_name(overflow, out_fmt), tininess, r, nan_of(op, nan), exact)

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
        options = dict(
            rounding=self.rounding, overflow=self.overflow, tininess=self.tininess, invalid=0, nan=self.nan,
            exact=self.exact,
        )  # fmt: skip
        if self.stochastic_bits is not None:
            options.update(random_bits=random_bits, stochastic_bits=self.stochastic_bits)
        result, flags = computed(self.op, operands, self.formats, self.out_fmt, options)
        return Block(tuple(operands), random_bits if self.stochastic_bits is not None else None, result, flags)

    def facts(self) -> dict[str, str]:
        """What a file's header says of the vectors, as text, in a fixed order."""
        names = [format_name(f) for f in self.formats]
        out = {
            "op": self.op,
            "format": " ".join(names[:1] if len(set(self.formats)) == 1 else names),
            "result_format": self._result_name,
            "rounding": self.rounding,
            "overflow": self.overflow,
            "tininess": self.tininess,
            "nan": self.nan,
            "flush": "none",
        }
        if self.stochastic_bits is not None:
            out["stochastic_bits"] = str(self.stochastic_bits)
        if not self.exact:
            out["exact"] = "no"
        return out

    @property
    def _result_name(self) -> str:
        if self.op != "to_integer":
            return format_name(self.out_fmt)
        return f"{'' if self.out_fmt.signed else 'u'}i{self.out_fmt.bits}"

    def options(self) -> str:
        """The command-line options that state this spec."""
        text = f"--op {self.op} --format {','.join(self.facts()['format'].split(' '))}"
        stated = self.op in ("convert", "to_integer") or any(f != self.out_fmt for f in self.formats)
        if stated and self.op not in COMPARISONS:
            text += f" --result-format {self._result_name}"
        text += f" --rounding {self.rounding}"
        if self.overflow != overflow_name(None, self.out_fmt):
            text += f" --overflow {self.overflow}"
        if self.tininess != "after":
            text += f" --tininess {self.tininess}"
        if self.stochastic_bits is not None:
            text += f" --stochastic-bits {self.stochastic_bits}"
        if self.nan != nan_of(self.op, None):
            text += f" --nan {self.nan}"
        return text if self.exact else text + " --notexact"

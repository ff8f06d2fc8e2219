"""What one set of vectors is of: an operation, its formats and the modes it rounds in (of units: unit_spec.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softnum.formats.modes import overflow_name, rounding_name
from softnum.formats.names import format
from softnum.formats.scalar import Format
from softnum.vectors.plans.fpu import SIGNS
from softnum.vectors.plans.operations import (
    COMPARISONS,
    check_exact,
    check_flush,
    computed,
    expanded,
    minmax_of,
    nan_of,
    operand_format,
    operands_of,
    result_format,
    stated_meaning,
)  # fmt: skip
from softnum.vectors.plans.own import is_own, own_name, written_as
from softnum.vectors.plans.profiles import with_profile
from softnum.vectors.plans.space import Space

if TYPE_CHECKING:
    from softnum.formats.annotations import FormatLike

__all__ = ["Block", "Column", "Spec", "VectorSpec", "format_name"]

FLAG_BITS = 5
_OPERAND_NAMES = ("a", "b", "c")
_STATE_RESULT = ("convert", "to_integer", "from_integer", "classify")
_EVERYTHING = Space()


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
        if self.bits > 32 and self.count == 1:
            return np.dtype(np.uint64)
        return np.dtype(np.uint8 if self.bits <= 8 and self.name != "random" else np.uint32)


class Block(NamedTuple):
    """A batch of n consecutive vectors; every member has one entry per vector.

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
    space: Space = _EVERYTHING

    @property
    def operand_columns(self) -> tuple[Column, ...]:
        """The columns before random bits, result and flags."""
        return tuple(c for c in self.columns if c.name not in ("random", "result", "flags"))

    @property
    def input_columns(self) -> tuple[Column, ...]:
        """The columns before result and flags: operands, and random bits where there are such."""
        return tuple(c for c in self.columns if c.name not in ("result", "flags"))

    @property
    def has_flags(self) -> bool:
        """Whether there is a column of flags."""
        return self.columns[-1].name == "flags"

    def block_of(self, values: Any) -> Block:
        """The block of a list of arrays, one for each column."""
        named = {c.name: v for c, v in zip(self.columns, values, strict=True)}
        operands = tuple(named[c.name] for c in self.operand_columns)
        return Block(operands, named.get("random"), named["result"], named.get("flags"))


def format_name(fmt: Format) -> str:
    """The name that `softnum.format` turns into this format, or its repr without spaces where there is none."""
    if is_own(fmt):
        return own_name(fmt)
    plain = repr(fmt).replace(" ", "")
    try:
        found = format(fmt.name)
    except ValueError:
        return plain
    return fmt.name if found == fmt else plain


def _integer_name(fmt: Format) -> str:
    return f"{'' if fmt.signed else 'u'}i{fmt.bits}"


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
        Which NaN is delivered, "canonical", "x86", "arm" or "cuda"; of to_integer, whose invalid results: "riscv",
        "x86", "arm" or "cuda".
    exact : bool
        Whether a number that is no integer raises INEXACT in round_to_integral and to_integer.
    flush_inputs : bool
        Whether subnormal operands read as zeros.
    flush_results : {None, "before", "after", "subnormal", "arm"}
        Which results become zeros, as in `softnum.multiply`; "arm": those tiny before rounding, with UNDERFLOW alone.
    minmax : str
        Whose rule minimum and maximum follow: "ieee2019", "ieee2008", "riscv", "arm", "x86" or "cuda".
    space : Space
        What operands and results are restricted to.
    flags : bool
        Whether vectors have a column of flags.
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
    flush_inputs: bool = False
    flush_results: str | None = None
    minmax: str = "ieee2019"
    space: Space = _EVERYTHING
    flags: bool = True

    @classmethod
    def make(
        cls,
        op: str,
        fmt: FormatLike | Sequence[FormatLike] | None = None,
        *,
        out_fmt: FormatLike | None = None,
        rounding: str | None = None,
        overflow: str | None = None,
        tininess: str | None = None,
        stochastic_bits: int = 32,
        nan: str | None = None,
        exact: bool | None = None,
        flush_inputs: bool | None = None,
        flush_results: str | None = None,
        minmax: str | None = None,
        profile: str | None = None,
        space: Space | None = None,
    ) -> VectorSpec:
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
            As in `softnum.multiply`, or "cuda": all ones but the sign; of to_integer, whose invalid results are
            delivered, as in `softnum.ops.to_integer` ("canonical" and "riscv": RISC-V's; "arm_default" and "arm":
            Arm's; "cuda": PTX's).
        exact : bool, optional
            Whether round_to_integral and to_integer raise INEXACT, as TestFloat's -exact (default) and -notexact say.
        flush_inputs, flush_results
            As in `softnum.multiply`: FTZ and DAZ. "arm" is "before" with UNDERFLOW alone (FPRound with FPCR.FZ).
        minmax : str, optional
            Whose rule minimum, maximum, minimum_number and maximum_number follow (``plans.fpu.extremum``).
        profile : {"riscv", "arm", "x86", "ieee", "cuda"}, optional
            A machine whose rules hold where nan, tininess, minmax and the result of classify are not stated.
        space : Space, optional
            What operands and results are restricted to.

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
        told = with_profile(op, dict(profile=profile, nan=nan, tininess=tininess, minmax=minmax, out_fmt=out_fmt))
        nan, tininess, minmax, out_fmt = (told.get(key) for key in ("nan", "tininess", "minmax", "out_fmt"))
        out_fmt = result_format(op, formats, out_fmt)
        mode = "nearest_even" if rounding is None else rounding_name(rounding)
        unrounded = op in COMPARISONS or op in SIGNS or op == "classify"
        if op != "round_to_integral" and op != "to_integer" and not unrounded:  # whose mode is the integer's
            out_fmt.arithmetic.check_modes(out_fmt, mode, None)
        if unrounded and mode.startswith("stochastic"):
            raise ValueError(f"{op} rounds nothing; leave rounding={mode!r} out")
        if op == "round_to_integral" and mode.startswith("stochastic") and not out_fmt.has_exceptions:
            raise ValueError(f"{op} of {out_fmt} takes no random bits; leave rounding={mode!r} out")
        if (op == "to_integer" or unrounded) and overflow not in (None, out_fmt.overflow_rules[0]):
            raise ValueError(f"{op} has no overflow; nan= (--nan) says what is delivered where there is no integer")
        tininess = "after" if tininess is None else tininess
        if tininess not in ("after", "before"):
            raise ValueError(f"tininess must be 'after' or 'before', got {tininess!r}")
        r = None
        if mode.startswith("stochastic"):
            if isinstance(stochastic_bits, bool) or not isinstance(stochastic_bits, int):
                raise TypeError(f"stochastic_bits must be an integer, got {stochastic_bits!r}")
            if not 1 <= stochastic_bits <= 32:
                raise ValueError(f"stochastic_bits must lie in 1..32, got {stochastic_bits}")
            r = stochastic_bits
        flush_inputs = bool(flush_inputs)
        check_flush(op, formats, out_fmt, flush_inputs, flush_results)
        found = minmax_of(op, minmax, formats, out_fmt)
        space = _EVERYTHING if space is None else space
        if space:
            space.check(formats, op)
        return cls(
            op, formats, out_fmt, mode, overflow_name(overflow, out_fmt), tininess, r, nan_of(op, nan, out_fmt), exact,
            flush_inputs, flush_results, found, space,
        )  # fmt: skip

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of a vector, in order: operands (C last), random bits, result, flags."""
        operands = [Column(n, f.bits, f) for n, f in zip(_OPERAND_NAMES, self.formats, strict=False)]
        drawn = [] if self.stochastic_bits is None else [Column("random", self.stochastic_bits)]
        flags = [Column("flags", FLAG_BITS)] if self.flags else []
        return (*operands, *drawn, Column("result", self.out_fmt.bits, self.out_fmt), *flags)

    def evaluate(self, operands: Sequence[np.ndarray], random_bits: np.ndarray | None = None) -> Block:
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
            exact=self.exact, flush_inputs=self.flush_inputs, flush_results=self.flush_results, minmax=self.minmax,
        )  # fmt: skip
        if self.stochastic_bits is not None:
            options.update(random_bits=random_bits, stochastic_bits=self.stochastic_bits)
        result, flags = computed(self.op, operands, self.formats, self.out_fmt, options)
        drawn = random_bits if self.stochastic_bits is not None else None
        return Block(tuple(operands), drawn, result, flags if self.flags else None)

    def facts(self) -> dict[str, str]:
        """What a file's header says of the vectors, as text, in a fixed order."""
        names = self._names
        out = {
            "op": self.op,
            "format": " ".join(names[:1] if len(set(self.formats)) == 1 else names),
            "result_format": self._result_name,
            "rounding": self.rounding,
            "overflow": self.overflow,
            "tininess": self.tininess,
            "nan": self.nan,
            "flush": self._flush,
        }
        if meaning := stated_meaning(self.op):
            out["computes"] = meaning
        if self.minmax != "ieee2019":
            out["minmax"] = self.minmax
        if self.stochastic_bits is not None:
            out["stochastic_bits"] = str(self.stochastic_bits)
        if not self.exact:
            out["exact"] = "no"
        return out | self.space.facts()

    @property
    def _names(self) -> list[str]:
        named = _integer_name if self.op == "from_integer" else format_name
        return [named(f) for f in self.formats]

    @property
    def _flush(self) -> str:
        parts = ["inputs"] * self.flush_inputs + ([f"results_{self.flush_results}"] if self.flush_results else [])
        return " ".join(parts) or "none"

    @property
    def _result_name(self) -> str:
        return _integer_name(self.out_fmt) if self.op == "to_integer" else format_name(self.out_fmt)

    def options(self) -> str:
        """The command-line options that state this spec."""
        names = [written_as(f) if is_own(f) else n for f, n in zip(self.formats, self._names, strict=True)]
        text = f"--op {self.op} --format {','.join(names[:1] if len(set(self.formats)) == 1 else names)}"
        stated = self.op in _STATE_RESULT or any(f != self.out_fmt for f in self.formats)
        if stated and self.op not in COMPARISONS:
            text += f" --result-format {written_as(self.out_fmt) if is_own(self.out_fmt) else self._result_name}"
        text += f" --rounding {self.rounding}"
        if self.overflow != overflow_name(None, self.out_fmt):
            text += f" --overflow {self.overflow}"
        if self.tininess != "after":
            text += f" --tininess {self.tininess}"
        if self.stochastic_bits is not None:
            text += f" --stochastic-bits {self.stochastic_bits}"
        if self.nan != nan_of(self.op, None):
            text += f" --nan {self.nan}"
        if not self.exact:
            text += " --notexact"
        if self.flush_inputs:
            text += " --flush-inputs"
        if self.flush_results:
            text += f" --flush-results {self.flush_results}"
        if self.minmax != "ieee2019":
            text += f" --minmax {self.minmax}"
        return text + self.space.options()

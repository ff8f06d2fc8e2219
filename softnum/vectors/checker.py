"""Vectors in: results of a design under test against softnum."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from softnum import reference
from softnum.modes import Flags
from softnum.names import format
from softnum.vectors.dialects import open_reader
from softnum.vectors.spec import Block, VectorSpec
from softnum.vectors.text import VectorFileError

__all__ = ["CheckReport", "Failure", "check", "open_vectors", "value_text"]


def _flags_text(flags: int) -> str:
    return "|".join(f.name.lower() for f in reversed(Flags) if f & flags) or "none"


def value_text(code: int, fmt) -> str:
    """The value of a code in decimal: exact where binary64 holds it (``repr``), else to its power of two.

    >>> import softnum as sn
    >>> from softnum.vectors.checker import value_text
    >>> value_text(0x3D, sn.format("e5m2")), value_text(0xFC, sn.format("e5m2"))
    ('1.25', '-inf')
    """
    value = reference.decode(int(code), fmt)
    sign = "-" if value.sign else ""
    if value.kind != "finite":
        return ("signaling nan" if value.signaling else "nan") if value.kind == "nan" else f"{sign}inf"
    exact = Fraction(value.numerator, value.denominator)
    with contextlib.suppress(OverflowError):
        if Fraction(float(exact)) == exact:
            return f"{sign}{float(exact)!r}"
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    return f"{sign}~2**{exponent}"


def is_nan(codes: np.ndarray, fmt) -> np.ndarray:
    """Which codes are NaN."""
    if not fmt.has_nan:
        return np.zeros(codes.shape, bool)
    if fmt.nan_codes == "negative_zero":
        return codes == fmt.nan_code
    magnitude = codes & codes.dtype.type((1 << (fmt.bits - fmt.signed)) - 1)
    return magnitude > fmt.inf_code if fmt.nan_codes == "ieee" else magnitude == fmt.nan_code


@dataclass(frozen=True)
class Failure:
    """One vector that differs. Codes are integers; ``line`` counts from 1, ``index`` (of the vector) from 0."""

    line: int
    index: int
    operands: tuple[int, ...]
    random_bits: int | None
    got: int
    want: int
    got_flags: int
    want_flags: int

    def to_dict(self, spec: VectorSpec) -> dict:
        """For JSON: hexadecimal codes with their values."""
        columns = spec.columns

        def shown(code, column):
            return {"hex": f"{code:0{column.digits}X}", "value": value_text(code, column.format)}

        out = {"line": self.line, "index": self.index}
        out["operands"] = {c.name: shown(v, c) for c, v in zip(columns, self.operands, strict=False)}
        if self.random_bits is not None:
            out["random_bits"] = f"{self.random_bits:0{columns[-3].digits}X}"
        out["got"], out["want"] = shown(self.got, columns[-2]), shown(self.want, columns[-2])
        for key in ("got_flags", "want_flags"):
            out[key] = {"hex": f"{getattr(self, key):02X}", "names": _flags_text(getattr(self, key))}
        return out

    def text(self, spec: VectorSpec) -> str:
        """One line: operands, got, want and flags, in hexadecimal with decoded values."""
        facts = self.to_dict(spec)
        parts = [f"{name}={v['hex']} ({v['value']})" for name, v in facts["operands"].items()]
        if "random_bits" in facts:
            parts.append(f"random={facts['random_bits']}")
        for what in ("got", "want"):
            value, flags = facts[what], facts[f"{what}_flags"]
            parts.append(f"{what} {value['hex']} ({value['value']}) flags {flags['hex']} ({flags['names']})")
        return f"line {self.line}: " + "  ".join(parts)


@dataclass
class CheckReport:
    """What `check` found.

    Attributes
    ----------
    source : str
    spec : VectorSpec
        What the vectors were judged by.
    any_nan, ignore_flags : bool
        The rules.
    vectors, failures : int
        How many vectors were read, and how many differ.
    result_failures, flag_failures, nan_failures : int
        How many differ in the result, in the flags, and in the result though it is NaN on both sides.
    first : list of Failure
        The first ones, in the file's order.
    error : str or None
        Why reading ended early, if it did: then the counts speak of the vectors before that place.
    """

    source: str
    spec: VectorSpec
    any_nan: bool = False
    ignore_flags: bool = False
    vectors: int = 0
    failures: int = 0
    result_failures: int = 0
    flag_failures: int = 0
    nan_failures: int = 0
    first: list[Failure] = field(default_factory=list)
    error: str | None = None

    @property
    def ok(self) -> bool:
        """Whether everything was read and nothing differs."""
        return not self.failures and self.error is None

    @property
    def exit_status(self) -> int:
        """0 all equal, 1 differences, 2 unusable input."""
        return 2 if self.error is not None else int(self.failures > 0)

    def to_dict(self) -> dict:
        """For JSON."""
        return {
            "source": self.source,
            **self.spec.facts(),
            "any_nan": self.any_nan,
            "ignore_flags": self.ignore_flags,
            "vectors": self.vectors,
            "failures": self.failures,
            "result_failures": self.result_failures,
            "flag_failures": self.flag_failures,
            "nan_failures": self.nan_failures,
            "error": self.error,
            "first": [f.to_dict(self.spec) for f in self.first],
        }

    def __str__(self) -> str:
        spec = self.spec
        facts = spec.facts()
        what = f"{spec.op} {facts['format']}"
        if facts["result_format"] != facts["format"]:
            what += f" -> {facts['result_format']}"
        what += f", {spec.rounding}" + (f" (r = {spec.stochastic_bits})" if spec.stochastic_bits else "")
        lines = [f.text(spec) for f in self.first]
        if self.failures > len(self.first):
            lines.append(f"... and {self.failures - len(self.first)} more")
        if self.error is None and not self.failures:
            flags = "results" if self.ignore_flags else "results and flags"
            lines.append(f"{self.source}: {what}: {self.vectors} vectors, all {flags} equal")
            return "\n".join(lines)
        kinds = f"{self.result_failures} in the result"
        if not self.ignore_flags:
            kinds += f", {self.flag_failures} in the flags"
        until = "" if self.error is None else " up to the unusable line"
        lines.append(f"{self.source}: {what}: {self.failures} of {self.vectors} vectors differ ({kinds}){until}")
        if self.nan_failures and self.nan_failures == self.failures:
            lines.append("every difference is a NaN in another code than the canonical one: --any-nan accepts them")
        if not self.ignore_flags and self.failures and not self.result_failures:
            lines.append("only flags differ: --ignore-flags compares results alone")
        return "\n".join(lines)


def open_vectors(source) -> tuple[object, str, bool]:
    """(binary stream, its name, whether to close it) of a path, "-" for standard input, or a binary file object."""
    if isinstance(source, (str, os.PathLike)):
        if os.fspath(source) == "-":
            return sys.stdin.buffer, "<stdin>", False
        return open(source, "rb"), os.fspath(source), True
    if not hasattr(source, "read"):
        raise TypeError(f"a path, '-' or a binary file is needed, got {source!r}")
    return source, str(getattr(source, "name", "<stream>")), False


_HEADER_KEYS = ("op", "format", "result_format", "rounding", "overflow", "tininess", "stochastic_bits")


def _told(header: dict, stated: dict, source: str) -> dict:
    """What a header says, as arguments of `VectorSpec.make`. Formats that have no name may be left to the caller."""
    told = {k: v for k, v in header.items() if k in _HEADER_KEYS}
    names = [n for k in ("format", "result_format") for n in told.get(k, "").split()]
    try:
        for name in names:
            format(name)
    except ValueError as error:
        if "fmt" not in stated:
            raise VectorFileError(source, 0, f"the header's format: {error}") from None
        told.pop("format", None)
        told.pop("result_format", None)
    if "format" in told:
        names = told.pop("format").split()
        told["fmt"] = names[0] if len(names) == 1 else tuple(names)
    if "result_format" in told:
        told["out_fmt"] = told.pop("result_format")
    if "stochastic_bits" in told:
        if not told["stochastic_bits"].isdecimal():
            raise VectorFileError(source, 0, f"the header's stochastic_bits is no number: {told['stochastic_bits']!r}")
        told["stochastic_bits"] = int(told["stochastic_bits"])
    return told


def _spec_of(header: dict, given: dict, source: str) -> VectorSpec:
    """The spec that the caller states, completed by the file's header; where both speak they must agree."""
    stated = {k: v for k, v in given.items() if v is not None}
    told = _told(header, stated, source)
    for key, option in (("op", "--op"), ("fmt", "--format")):
        if key not in stated and key not in told:
            raise VectorFileError(source, 0, f"no header says what the vectors are of: state {option}")
    if not {"op", "fmt"} <= told.keys():
        return VectorSpec.make(**{**told, **stated})
    try:
        header_spec = VectorSpec.make(**told)
    except (TypeError, ValueError) as error:
        raise VectorFileError(source, 0, f"the header is unusable: {error}") from None
    # an operation or format of another kind changes what the rest of the header means, so it is compared alone first
    if "op" in stated and stated["op"] != header_spec.op:
        raise _disagree(source, "op", header_spec.op, stated["op"])
    spec = VectorSpec.make(**{**told, **stated})
    ours, theirs = spec.facts(), header_spec.facts()
    if spec != header_spec:
        key = next(k for k in {**theirs, **ours} if ours.get(k) != theirs.get(k))
        raise _disagree(source, key, theirs.get(key), ours.get(key))
    return spec


def _disagree(source: str, key: str, told, stated) -> VectorFileError:
    return VectorFileError(
        source, 0, f"the header says {key} {told}, but {stated} was asked for; to overrule it: --ignore-header"
    )


def _compare(report: CheckReport, lines: np.ndarray, block: Block, max_failures: int) -> None:
    spec = report.spec
    want = spec.evaluate(block.operands, block.random_bits)
    wrong = block.result != want.result
    if wrong.any():
        both_nan = wrong & is_nan(block.result, spec.out_fmt) & is_nan(want.result, spec.out_fmt)
        if report.any_nan:
            wrong &= ~both_nan
        else:
            report.nan_failures += int(np.count_nonzero(both_nan))
    wrong_flags = block.flags != want.flags
    differ = wrong if report.ignore_flags else wrong | wrong_flags
    places = np.flatnonzero(differ)
    for i in places[: max(0, max_failures - len(report.first))].tolist():
        drawn = None if block.random_bits is None else int(block.random_bits[i])
        operands = tuple(int(c[i]) for c in block.operands)
        pairs = [int(v[i]) for v in (block.result, want.result, block.flags, want.flags)]
        report.first.append(Failure(int(lines[i]), report.vectors + i, operands, drawn, *pairs))
    report.vectors += len(block)
    report.failures += len(places)
    report.result_failures += int(np.count_nonzero(wrong))
    if not report.ignore_flags:
        report.flag_failures += int(np.count_nonzero(wrong_flags))


def check(
    source, op=None, fmt=None, *, out_fmt=None, rounding=None, overflow=None, tininess=None, stochastic_bits=None,
    any_nan=False, ignore_flags=False, ignore_header=False, max_failures=20, progress=None, dialect=None,
) -> CheckReport:  # fmt: skip
    """Compare the results and flags of a vector file with softnum's.

    Parameters
    ----------
    source : str, path or binary file
        The vectors, in any dialect of `DIALECTS`, plain or compressed by gzip or xz; "-" is standard input.
    op, fmt, out_fmt, rounding, overflow, tininess, stochastic_bits
        As in `generate`. What is left out is taken from the file's header, else the defaults of `generate` hold; what
        is stated must agree with the header.
    any_nan : bool
        Whether any two NaNs are equal. Off, a NaN result must be the canonical one (sign 0, quiet bit only), where the
        format has several.
    ignore_flags : bool
        Whether to compare results alone. The flags column is there and read all the same.
    ignore_header : bool
        Whether to take the header for a comment.
    max_failures : int
        How many failures the report keeps; all are counted.
    progress : callable, optional
        Called with the number of vectors read so far.
    dialect : str, optional
        A name of `DIALECTS`; by default what the file's name ends in, else what its first bytes look like.

    Returns
    -------
    CheckReport

    Raises
    ------
    VectorFileError
        A ValueError that names file and line, if the input is unusable; its ``report`` holds what was found before
        that line (or is None).
    ValueError
        If the spec is unusable.

    Examples
    --------
    >>> import io
    >>> from softnum.vectors import check
    >>> report = check(io.BytesIO(b"3C 3D 3D 00\\n3D 3D 3E 00\\n"), "multiply", "e5m2")
    >>> print(report)
    line 2: a=3D (1.25) b=3D (1.25)  got 3E (1.5) flags 00 (none)  want 3E (1.5) flags 01 (inexact)
    <stream>: multiply e5m2, nearest_even: 1 of 2 vectors differ (0 in the result, 1 in the flags)
    only flags differ: --ignore-flags compares results alone
    """
    if isinstance(max_failures, bool) or not isinstance(max_failures, int) or max_failures < 0:
        raise ValueError(f"max_failures must be an integer of at least 0, got {max_failures!r}")
    given = dict(
        op=op, fmt=fmt, out_fmt=out_fmt, rounding=rounding, overflow=overflow, tininess=tininess,
        stochastic_bits=stochastic_bits,
    )  # fmt: skip
    stream, name, ours = open_vectors(source)
    report = None
    try:
        reader = open_reader(stream, name, dialect)
        if ignore_header:
            reader.header = {}
        report = CheckReport(name, _spec_of(reader.header, given, name), bool(any_nan), bool(ignore_flags))
        for lines, block, *_ in reader.rows(report.spec):
            _compare(report, lines, block, max_failures)
            if progress is not None:
                progress(report.vectors)
    except VectorFileError as error:
        if report is not None:
            report.error = str(error)
        error.report = report
        raise
    finally:
        if ours:
            stream.close()
    return report

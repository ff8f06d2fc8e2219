"""Files of IBM FPgen's test suite: every line judged by the operation, format and mode that it states.

Source: "Syntax of the Test Cases", as in `softnum.vectors.files.fptest`; IEEE 754-2008, 5.3.1 (minNum and its kin).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from softnum.formats.modes import Flags
from softnum.formats.names import format
from softnum.formats.scalar import Format
from softnum.ops import choices
from softnum.ops.arithmetic import CODE_OPERATIONS, classify
from softnum.runtime.columns import text_table
from softnum.vectors.checks.checker import open_vectors
from softnum.vectors.files import _text
from softnum.vectors.files.dialects import dialect_named, dialect_of_path
from softnum.vectors.files.fptest import (
    MODES,
    OPERATIONS,
    Case,
    FptestLayout,
    case_of,
    is_title,
    letters_of,
    value_of,
    went_to_a_handler,
)
from softnum.vectors.files.text import VectorFileError, VectorReader, refuse_binary, shown
from softnum.vectors.plans.operations import computed

if TYPE_CHECKING:
    from softnum.formats.annotations import PathLike

__all__ = ["SuiteDifference", "SuiteReport", "check_suite", "states_nothing"]

_ROWS = 1 << 15
_ROUNDINGS = {letters: name for name, letters in MODES.items()}
_BINARY = {16: format("binary16"), 32: format("binary32"), 64: format("binary64")}
_CASE = re.compile(r"([bd])(\d+)(?:([bd])(\d+))?(\D.*)\Z")
_SIGNALING, _QUIET = 0, 1  # of `softnum.ops.CLASSES`
#: a class as ``?`` writes it -> its index in `softnum.ops.CLASSES`
_CLASSES = {
    name.lower().encode(): index
    for index, name in enumerate(
        ["sNaN", "qNaN", "-Inf", "-normal", "-subnormal", "-0", "+0", "+subnormal", "+normal", "+Inf"]
    )
}  # fmt: skip
_BOOLEANS = {b"0": 0, b"1": 1, b"0x0": 0, b"0x1": 1}


class _Meaning(NamedTuple):
    """What an operation's letters mean: how many operands it has, (result, flags) of their codes, and how the results
    are written that are no numbers."""

    operands: int
    compute: Callable[..., Any]
    answers: dict[bytes, int] | None = None


def _rounded(name: str) -> _Meaning:
    def compute(codes, fmt, out_fmt, options):
        return computed(name, codes, (fmt,) * len(codes), out_fmt, options)

    return _Meaning(CODE_OPERATIONS[name][1], compute)


def _chosen(name: str) -> _Meaning:
    """As IEEE 754-2008 had it: a signaling NaN is delivered, quiet, where 2019's operations pass it over."""

    def compute(codes, fmt, out_fmt, options):
        function = CODE_OPERATIONS[name][0] if name in CODE_OPERATIONS else getattr(choices, name)
        result, flags = function(*codes, fmt, return_flags=True)
        signaling = np.logical_or(*(classify(c, fmt) == _SIGNALING for c in codes))
        return np.where(signaling, result.dtype.type(fmt.nan_code), result), np.where(signaling, _INVALID, flags)

    return _Meaning(2, compute)


def _asked(*classes: int) -> _Meaning:
    def compute(codes, fmt, out_fmt, options):
        return _answered(np.isin(classify(codes[0], fmt), classes))

    return _Meaning(1, compute, _BOOLEANS)


def _answered(answers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return answers.astype(np.uint64), np.zeros(len(answers), np.uint8)


def _copied(codes, fmt, out_fmt, options):
    return codes[0], np.zeros(len(codes[0]), np.uint8)


_INVALID = np.uint8(Flags.INVALID)
_MEANINGS: dict[str, _Meaning] = {
    **{letters: _rounded(name) for name, letters in OPERATIONS.items()},
    "~": _rounded("negate"),
    "A": _rounded("absolute"),
    "@": _rounded("copysign"),
    "Nu": _rounded("next_up"),
    "Nd": _rounded("next_down"),
    "cp": _Meaning(1, _copied),
    "<C": _chosen("minimum_number"),
    ">C": _chosen("maximum_number"),
    "<A": _chosen("minimum_magnitude_number"),
    ">A": _chosen("maximum_magnitude_number"),
    "?": _Meaning(1, lambda codes, fmt, out_fmt, options: _answered(classify(codes[0], fmt)), _CLASSES),
    "?-": _asked(2, 3, 4, 5),
    "?n": _asked(3, 8),
    "?f": _asked(3, 4, 5, 6, 7, 8),
    "?0": _asked(5, 6),
    "?s": _asked(4, 7),
    "?i": _asked(2, 9),
    "?N": _asked(_SIGNALING, _QUIET),
    "?sN": _asked(_SIGNALING),
}


@dataclass
class _Count:
    """Of an operation in a mode."""

    checked: int = 0
    differ: int = 0
    passed: int = 0


@dataclass(frozen=True)
class SuiteDifference:
    """A line that differs from softnum: its place, its text, the correct line, and whether the result differs (else
    only flags do)."""

    source: str
    line: int
    text: str
    want: str
    result: bool

    def __str__(self) -> str:
        return f"{self.source}, line {self.line}: {self.text}\n  want {self.want}"


@dataclass
class SuiteReport:
    """What `check_suite` found.

    Attributes
    ----------
    sources : list of str
    tininess : str or None
        As stated; None: "before", or what the header of a file says.
    ignore_flags : bool
    counts : dict
        (operation, mode), as lines name them -> counts: ``checked``, ``differ``, ``passed`` (not applicable).
    reasons : dict
        Why lines are not applicable -> how many.
    texts : int
        How many lines between vectors are titles: neither vectors nor comments.
    result_differences : int
        How many differ in the result; the others differ in flags alone.
    first : list of SuiteDifference
        Those that differ, the first of the files.
    """

    sources: list[str]
    tininess: str | None
    ignore_flags: bool
    counts: dict[tuple[str, str], _Count] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    texts: int = 0
    result_differences: int = 0
    first: list[SuiteDifference] = field(default_factory=list)

    def _total(self, name: str) -> int:
        return sum(getattr(count, name) for count in self.counts.values())

    @property
    def checked(self) -> int:
        """Lines whose result and flags were compared."""
        return self._total("checked")

    @property
    def differ(self) -> int:
        """Lines that differ."""
        return self._total("differ")

    @property
    def not_applicable(self) -> int:
        """Lines of vectors that were not compared."""
        return self._total("passed")

    @property
    def exit_status(self) -> int:
        """0 all equal, 1 differences."""
        return int(self.differ > 0)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "sources": self.sources,
            "tininess": self.tininess,
            "ignore_flags": self.ignore_flags,
            "checked": self.checked,
            "differ": self.differ,
            "result_differences": self.result_differences,
            "not_applicable": self.not_applicable,
            "texts": self.texts,
            "reasons": dict(sorted(self.reasons.items())),
            "operations": [
                {"operation": op, "mode": mode, "checked": c.checked, "differ": c.differ, "not_applicable": c.passed}
                for (op, mode), c in sorted(self.counts.items())
            ],
            "first": [vars(difference) for difference in self.first],
        }

    def __str__(self) -> str:
        lines = [str(difference) for difference in self.first]
        if self.differ > len(self.first):
            lines.append(f"... and {self.differ - len(self.first)} more")
        rows = [("operation", "mode", "checked", "differ", "not applicable")]
        rows += [(*key, str(c.checked), str(c.differ), str(c.passed)) for key, c in sorted(self.counts.items())]
        lines.append(text_table(rows, numbers=3))
        lines += [f"not applicable, {why}: {count}" for why, count in sorted(self.reasons.items())]
        if self.texts:
            lines.append(f"titles between vectors: {self.texts}")
        files = self.sources[0] if len(self.sources) == 1 else f"{len(self.sources)} files"
        what = "results" if self.ignore_flags else "results and flags"
        found = f"all {what} equal" if not self.differ else (
            f"{self.differ} differ ({self.result_differences} in the result)"
        )  # fmt: skip
        lines.append(f"{files}: {self.checked} lines checked, {found}; {self.not_applicable} not applicable")
        return "\n".join(lines)


def states_nothing(path: str, dialect: str | None = None) -> bool:
    """Whether a file is of this dialect and has no header that says of what operation all its lines are."""
    found = dialect_of_path(path) if dialect is None else dialect_named(dialect)
    if found is None or found.name != "fptest":
        return False
    with open(path, "rb") as file:
        return "op" not in VectorReader(file, path, FptestLayout).header


def check_suite(
    sources: PathLike | BinaryIO | Sequence[PathLike | BinaryIO],
    *,
    tininess: str | None = None,
    ignore_flags: bool = False,
    ignore_header: bool = False,
    max_failures: int = 20,
    progress: Callable[[int], object] | None = None,
) -> SuiteReport:
    """Compare every line of files in the fptest dialect with softnum: each states its operation, format and mode.

    Lines with operations or formats that softnum does not have, and with results for a trap handler, are counted as not
    applicable, by reason. The suite's minnum and its kin (``<C`` ``>C`` ``<A`` ``>A``) are IEEE 754-2008's: of a
    signaling NaN and a number the result is NaN.

    Parameters
    ----------
    sources : str, path, binary file, or a sequence of them
        Plain, or compressed by gzip or xz; "-" is standard input.
    tininess : {"after", "before"}, optional
        When tininess is detected. By default before rounding, as in the suite that IBM published, unless a file's
        header says otherwise.
    ignore_flags : bool
        Whether to compare results only.
    ignore_header : bool
        Whether to treat headers as comments.
    max_failures : int
        How many differences the report keeps, the first of the files; all are counted.
    progress : callable, optional
        Called with the number of lines judged so far.

    Returns
    -------
    SuiteReport

    Raises
    ------
    VectorFileError
        A ValueError that names file and line, where a line does not fit the syntax, or a file has no vectors.

    Examples
    --------
    >>> import io
    >>> from softnum.vectors import check_suite
    >>> print(check_suite(io.BytesIO(b"Some title\\nb32V > +1.000001P0 -> +1.000001P0 x\\nb32>C =0 Q +Inf -> +Inf\\n")))
    operation  mode  checked  differ  not applicable
    b32>C      =0          1       0               0
    b32V       >           1       0               0
    <stream>: 2 lines checked, all results and flags equal; 0 not applicable
    """
    if isinstance(max_failures, bool) or not isinstance(max_failures, int) or max_failures < 0:
        raise ValueError(f"max_failures must be an integer of at least 0, got {max_failures!r}")
    if isinstance(sources, (list, tuple)):
        sources = list(sources)
        if not sources:
            raise ValueError("no files to check")
    else:
        sources = [sources]
    if tininess not in (None, "after", "before"):
        raise ValueError(f"tininess must be 'after' or 'before', got {tininess!r}")
    report = SuiteReport([], tininess, bool(ignore_flags))
    for source in sources:
        stream, name, ours = open_vectors(source)
        report.sources.append(name)
        try:
            reader = VectorReader(stream, name, FptestLayout)
            told = {} if ignore_header else reader.header
            before = report.checked + report.not_applicable
            for block in _blocks(reader, report):
                _judge(report, name, block, tininess or told.get("tininess", "before"), max_failures)
                if progress is not None:
                    progress(report.checked + report.not_applicable)
            if report.checked + report.not_applicable == before:
                raise VectorFileError(name, 0, "no vectors: there are only comments and blank lines")
        finally:
            if ours:
                stream.close()
    return report


def _blocks(reader: VectorReader, report: SuiteReport) -> Iterable[list[tuple[int, bytes, Case]]]:
    """Some thousand lines of vectors at a time: (number, the line, what it says)."""
    block = []
    for number, line in reader.lines():
        try:
            refuse_binary(line)
            if not line.strip() or line.startswith(FptestLayout.comment):
                continue
            if is_title(line):
                report.texts += 1
                continue
            block.append((number, line, case_of(line)))
        except ValueError as error:
            yield block
            raise reader.error(number, str(error)) from None
        if len(block) == _ROWS:
            yield block
            block = []
    yield block


def _judge(report: SuiteReport, source: str, block, tininess: str, max_failures: int) -> None:
    groups: dict[tuple[str, str], list[Any]] = {}
    for entry in block:
        case = entry[2]
        key = case.operation, case.mode
        why, kept = _not_applicable(case), groups.setdefault(key, [])
        count = report.counts.setdefault(key, _Count())
        if why is None:
            kept.append(entry)
        else:
            count.passed += 1
            report.reasons[why] = report.reasons.get(why, 0) + 1
    found = []
    for key, entries in groups.items():
        if entries:
            differing = _compared(source, key, entries, tininess, report.ignore_flags)
            report.counts[key].checked += len(entries)
            report.counts[key].differ += len(differing)
            report.result_differences += sum(difference.result for difference in differing)
            found += differing
    report.first += sorted(found, key=lambda each: each.line)[: max(0, max_failures - len(report.first))]


def _parts(operation: str) -> tuple[list[tuple[str, int]], str]:
    """The formats, (b or d, bits) each, and the letters of an operation such as b32b64cff."""
    kind, bits, second, more, letters = _CASE.match(operation).groups()
    return [(kind, int(bits)), *([(second, int(more))] if second else [])], letters


def _not_applicable(case: Case) -> str | None:
    formats, letters = _parts(case.operation)
    if any(kind == "d" for kind, _ in formats):
        return "decimal formats"
    unknown = [bits for _, bits in formats if bits not in _BINARY]
    if unknown:
        return f"binary{unknown[0]}"
    if letters not in _MEANINGS or (letters == "cff") != (len(formats) == 2):
        return f"the operation {case.operation}"
    if went_to_a_handler(case):
        return "the result went to a trap handler"
    if letters in ("?-", "@") and case.operands[-1:] in ([b"Q"], [b"S"]):
        return "the sign of a NaN, which is not written"
    return None


def _compared(source: str, key: tuple[str, str], entries, tininess: str, ignore_flags: bool) -> list[SuiteDifference]:
    formats, letters = _parts(key[0])
    fmt, out_fmt, meaning = _BINARY[formats[0][1]], _BINARY[formats[-1][1]], _MEANINGS[letters]
    *codes, result, flags = _read(source, entries, meaning, fmt, out_fmt, tininess)
    codes = [c.astype(fmt.storage_dtype) for c in codes]
    bare = letters in ("~", "A", "@", "cp")  # what only moves bits has no modes
    options = {} if bare else {"rounding": _ROUNDINGS[key[1]], "tininess": tininess}
    want, raised = meaning.compute(codes, fmt, out_fmt, options)
    wrong = result != want
    if meaning.answers is None:  # of a NaN, sign and payload are lost
        classes = [classify(c.astype(out_fmt.storage_dtype), out_fmt) for c in (result, want)]
        wrong &= (classes[0] != classes[1]) | (classes[0] > _QUIET)
    wrong_flags = np.zeros_like(wrong) if ignore_flags else flags != raised
    out = []
    for i in np.flatnonzero(wrong | wrong_flags).tolist():
        number, line, case = entries[i]
        if meaning.answers is None:
            answer = _text.format_floats(
                [want[i : i + 1].astype(np.uint64)], [_field(out_fmt)], b" ", b"", np.zeros(1, np.uint8), [b"\n"], 1
            ).strip()
        else:
            answer = next(name for name, value in meaning.answers.items() if value == want[i])
        right = case._replace(result=answer, raised=letters_of(int(raised[i]), tininess).encode())
        out.append(SuiteDifference(source, number, line.decode().strip(), str(right), bool(wrong[i])))
    return out


def _field(fmt: Format) -> tuple[int, int]:
    return fmt.exponent_bits, fmt.mantissa_bits


def _read(source: str, entries, meaning: _Meaning, fmt: Format, out_fmt: Format, tininess: str) -> list[np.ndarray]:
    """The codes of operands and result, and the flags, of lines of one operation."""
    asked = meaning.answers is not None
    fields = [_field(fmt)] * meaning.operands + ([] if asked else [_field(out_fmt)])
    lines, answers = [], []
    for number, _, case in entries:
        try:
            if len(case.operands) != meaning.operands:
                count = f"{len(case.operands)} operand(s) where {case.operation} takes {meaning.operands}"
                raise ValueError(f"{count}: {shown(bytes(case))}")
            values = [value_of(f"operand {i}", token, *_field(fmt)) for i, token in enumerate(case.operands, 1)]
            if asked:
                if case.result.lower() not in meaning.answers:
                    known = ", ".join(name.decode() for name in meaning.answers)
                    raise ValueError(f"result: {shown(case.result)} is none of {known}")
                answers.append(meaning.answers[case.result.lower()])
            else:
                values.append(value_of("result", case.result, *_field(out_fmt)))
        except ValueError as error:
            raise VectorFileError(source, number, str(error)) from None
        end = b" " + case.raised + b"\n" if case.raised else b"\n"
        lines.append(b" " + b" ".join(values[:-1]) + b" -> " + values[-1] + end)
    *codes, flags = _text.parse_floats(b"".join(lines), fields, b" ", b" -> ", tininess == "after")
    return [*codes, np.array(answers, np.uint64), flags] if asked else [*codes, flags]

"""Vectors of sums against a specification with freedom: each result is permitted, refuted or undecided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from softnum.inspect.permitted.judge import EFFORT, Permitted, judged
from softnum.inspect.permitted.operands import number_of
from softnum.mac.presets import unit_of
from softnum.reference.facts import format_of
from softnum.vectors.checks.checker import open_vectors
from softnum.vectors.files.dialects import open_reader
from softnum.vectors.files.text import VectorFileError
from softnum.vectors.plans.codes import is_nan
from softnum.vectors.plans.freedom_spec import FreedomSpec

if TYPE_CHECKING:
    from softnum.formats.annotations import PathLike

__all__ = ["PermittedReport", "check_permitted"]

_VERDICTS = ("permitted", "refuted", "undecided")


@dataclass
class PermittedReport:
    """What `check_permitted` found.

    Attributes
    ----------
    source : str
    spec : FreedomSpec
    counts : dict of str to int
        How many results are "permitted", "refuted" and "undecided".
    witnesses : dict of str to int
        How many results each order is a witness of.
    first : list of (int, Permitted)
        The first results that are refuted, then those undecided, with their lines.
    """

    source: str
    spec: FreedomSpec
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_VERDICTS, 0))
    witnesses: dict[str, int] = field(default_factory=dict)
    first: list[tuple[int, Permitted]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether every result is permitted."""
        return not self.counts["refuted"] and not self.counts["undecided"]

    @property
    def exit_status(self) -> int:
        """0 all permitted, 1 not."""
        return int(not self.ok)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        first = [{"line": line, **found.to_dict()} for line, found in self.first]
        return {"source": self.source, **self.spec.facts(), **self.counts, "witnesses": self.witnesses, "first": first}

    def __str__(self) -> str:
        lines = []
        for line, found in self.first:
            told = str(found).splitlines()
            lines += [f"line {line}: {told[0]}", *told[1:-1]]
        more = self.counts["refuted"] + self.counts["undecided"] - len(self.first)
        if more > 0:
            lines.append(f"... and {more} more")
        counts = ", ".join(f"{n} {verdict}" for verdict, n in self.counts.items())
        lines.append(f"{self.source}: {sum(self.counts.values())} results: {counts}")
        lines.append(f"of {self.spec.freedom}")
        shown = sorted(self.witnesses.items(), key=lambda pair: (-pair[1], pair[0]))[:8]
        return "\n".join([*lines, *(f"  {n} by {name}" for name, n in shown)])


def check_permitted(
    source: PathLike | BinaryIO,
    spec: Any,
    op: str | None = None,
    *,
    length: int | None = None,
    shape: tuple[int, int, int] | None = None,
    with_c: bool | None = None,
    ignore_header: bool = False,
    max_failures: int = 20,
    effort: int = EFFORT,
    progress: Callable[[int], object] | None = None,
    dialect: str | None = None,
) -> PermittedReport:
    """Check the results of a vector file against a specification that permits several results, without a tolerance.

    Parameters
    ----------
    source : str, path or binary file
        Vectors of dot products or of tiles (op dot, gemm), as `generate` lays them out.
    spec : Freedom or str
    op, length, shape, with_c
        As in `UnitSpec.make`; what is left out is taken from the file's header, which must agree with what is stated.
        If the header names a unit, only its formats are used.
    ignore_header, dialect, progress
        As in `check`.
    max_failures : int
        How many of the results that are not permitted the report keeps; all are counted.
    effort : int
        As in `softnum.permitted`.

    Returns
    -------
    PermittedReport

    Raises
    ------
    VectorFileError
        If the file is unusable, or its header says other formats than the specification.
    ValueError
        If the specification, or what is stated, is unusable.

    Examples
    --------
    >>> import io
    >>> import softnum as sn
    >>> from softnum.vectors import check_permitted
    >>> spec = sn.Freedom("e4m3", products="rounded")
    >>> lines = b"38385C 383838 5C\\n38385C 383838 5D\\n38385C 383838 5E\\n"  # 24, 1, 1: the first in the last digits
    >>> print(check_permitted(io.BytesIO(lines), spec, "dot", length=3))
    line 3: 28.0: refuted
      it is none of the 2 results
    results: 2: 24.0, 26.0
    <stream>: 3 results: 2 permitted, 1 refuted, 0 undecided
    of any tree of additions of e4m3 in any order (nearest_even), products of e4m3 x e4m3 rounded to e4m3, C anywhere, \
+0 added anywhere
      1 by a running sum from the first to the last, rounded products
      1 by a running sum from the last to the first, rounded products
    """
    if isinstance(max_failures, bool) or not isinstance(max_failures, int) or max_failures < 0:
        raise ValueError(f"max_failures must be an integer of at least 0, got {max_failures!r}")
    stream, name, ours = open_vectors(source)
    try:
        reader = open_reader(stream, name, dialect)
        header = {} if ignore_header else reader.header
        made = _spec_of(header, spec, dict(op=op, length=length, shape=shape, with_c=with_c), name)
        report = PermittedReport(name, made)
        done = 0
        kept: dict[str, list[Any]] = {"refuted": [], "undecided": []}
        for rows in reader.rows(made, unknown="mark"):
            a, b, c, results = made.sums(rows.block)
            each = len(results) // max(len(rows.block), 1)
            unknown = np.zeros(len(rows.block), bool) if rows.unknown is None else rows.unknown
            given = _given(results, np.repeat(unknown, each), made)
            for at, found in enumerate(judged(made.freedom, a, b, c, given, effort)):
                report.counts[found.verdict] += 1
                if found.witness is not None:
                    order = found.witness.name or "a tree of its own"
                    report.witnesses[order] = report.witnesses.get(order, 0) + 1
                elif len(kept[found.verdict]) < max_failures:
                    kept[found.verdict].append((int(rows.lines[at // each]), found))
            done += len(rows.block)
            if progress is not None:
                progress(done)
        report.first = [*kept["refuted"], *kept["undecided"]][:max_failures]
        return report
    finally:
        if ours:
            stream.close()


def _given(results: np.ndarray, unknown: np.ndarray, spec: FreedomSpec) -> list[tuple[Any, ...]]:
    """Of each result its code, any NaN as the canonical one, and its value."""
    fmt = spec.freedom.output
    codes = np.where(is_nan(results, fmt), results.dtype.type(format_of(fmt).nan_code or 0), results)
    return [
        (None, "unknown bits") if dark else (code, number_of(code, fmt))
        for code, dark in zip(codes.tolist(), unknown.tolist(), strict=True)
    ]


def _spec_of(header: dict[str, Any], spec, stated: dict[str, Any], source: str) -> FreedomSpec:
    """What the vectors are of: as stated, completed by the header."""
    told: dict[str, Any] = {}
    for key in ("length", "shape"):
        if key in header:
            numbers = header[key].split()
            if not all(n.isdecimal() for n in numbers) or len(numbers) != (1 if key == "length" else 3):
                raise VectorFileError(source, 0, f"the header's {key} is unusable: {header[key]!r}")
            told[key] = int(numbers[0]) if key == "length" else tuple(map(int, numbers))
    if "with_c" in header:
        told["with_c"] = header["with_c"] == "yes"
    if "op" in header:
        told["op"] = header["op"]
    given = {key: value for key, value in stated.items() if value is not None}
    for key, value in given.items():
        if key in told and told[key] != (tuple(value) if key == "shape" else value):
            asked = f"but {value} was asked for; to overrule it: --ignore-header"
            raise VectorFileError(source, 0, f"the header says {key} {told[key]}, {asked}")
    facts = {"op": "dot", **told, **given}
    made = FreedomSpec.make(facts.pop("op"), spec, **facts)
    if "unit" in header:
        _same_formats(header["unit"], made, source)
    return made


def _same_formats(text: str, made: FreedomSpec, source: str) -> None:
    try:
        unit = unit_of(text)
    except ValueError as error:
        raise VectorFileError(source, 0, f"the header is unusable: {error}") from None
    if unit.stochastic:
        raise VectorFileError(
            source, 0, f"the vectors have the random bits of {text}; a specification judges sums without"
        )
    freedom = made.freedom
    pairs = [("operands", tuple(unit.operand), tuple(freedom.operand)), ("results", unit.result, freedom.output)]
    if made.layout.with_c:
        pairs.append(("C", unit.c_format, freedom.accumulator))
    for what, theirs, ours in pairs:
        if theirs != ours:
            raise VectorFileError(source, 0, f"the header's unit has {what} of {_named(theirs)}, the specification of "
                                             f"{_named(ours)}")  # fmt: skip


def _named(formats) -> str:
    return " x ".join(map(str, formats)) if isinstance(formats, tuple) else str(formats)

"""Mixed files in: each line judged by the operation, mode and format that its numbers say."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from softnum.vectors.checks.comparison import comparison_of
from softnum.vectors.checks.report import CheckReport
from softnum.vectors.checks.spaces import SpaceKeeper
from softnum.vectors.files.headers import mixed_spec_of
from softnum.vectors.files.text import Rows, VectorFileError
from softnum.vectors.plans.mixed import MixedSpec

__all__ = ["MixedReport", "check_mixed"]

_SHOWN = 20


@dataclass
class MixedReport:
    """What `check` found in a mixed file.

    Attributes
    ----------
    source : str
    spec : MixedSpec
    parts : list of CheckReport
        One for each operation, mode and format, in the order of the header.
    unfilled : list of int
        Lines of the first results that do not have above their code what the header says, ones or zeros.
    unfilled_count : int
        How many there are.

    Examples
    --------
    >>> import os, tempfile
    >>> from softnum.vectors import VectorSpec, check, mixed_plan, write
    >>> path = os.path.join(tempfile.mkdtemp(), "v.txt")
    >>> write(mixed_plan([VectorSpec.make(op, "e2m1fn") for op in ("add", "multiply")], count=40), path)
    40
    >>> print(str(check(path)).replace(path, "v.txt"))
    operation  mode          format  checked  differ
    add        nearest_even  e2m1fn       20       0
    multiply   nearest_even  e2m1fn       20       0
    v.txt: mixed, 2 kinds: 40 vectors, all results and flags equal
    """

    source: str
    spec: MixedSpec
    parts: list[CheckReport]
    unfilled: list[int] = field(default_factory=list)
    unfilled_count: int = 0
    error: str | None = None

    @property
    def vectors(self) -> int:
        """How many vectors were compared."""
        return sum(part.vectors for part in self.parts)

    @property
    def failures(self) -> int:
        """How many differ, in their code, its flags or what is above it."""
        return sum(part.failures for part in self.parts) + self.unfilled_count

    @property
    def ok(self) -> bool:
        """Whether all are equal."""
        return not self.failures and self.error is None

    @property
    def exit_status(self) -> int:
        """0 all equal, 1 differences."""
        return int(self.failures > 0)

    @property
    def of_words(self) -> list[tuple[str, str, str, list[int]]]:
        """What differs of whole words: (what, the problem, its kind, lines)."""
        if not self.unfilled_count:
            return []
        problem = f"{self.unfilled_count} results differ above their codes"
        return [("bits above codes", problem, "unfilled", self.unfilled)]

    def to_dict(self) -> dict:
        """For JSON: the reports of the parts."""
        return {
            "source": self.source, "vectors": self.vectors, "failures": self.failures, "unfilled": self.unfilled_count,
            "parts": [part.to_dict() for part in self.parts],
        }  # fmt: skip

    def __str__(self) -> str:
        lines = []
        for part in self.parts:
            if part.failures:
                lines.append(str(part))
        if self.unfilled_count:
            above = "ones (NaN boxes) above floats, zeros above integers" if self.spec.nan_box else "zeros above codes"
            first = ", ".join(map(str, self.unfilled))
            lines.append(f"{self.unfilled_count} results lack {above}; lines {first}")
        rows = [("operation", "mode", "format", "checked", "differ")]
        rows += [(*self.spec.key_of(p.spec), str(p.vectors), str(p.failures)) for p in self.parts]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = [c.ljust(w) if i < 3 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
            lines.append("  ".join(cells))
        what = "results" if self.parts[0].ignore_flags else "results and flags"
        found = f"all {what} equal" if not self.failures else f"{self.failures} differ"
        lines.append(f"{self.source}: mixed, {len(self.parts)} kinds: {self.vectors} vectors, {found}")
        return "\n".join(lines)


def check_mixed(
    reader, source: str, *, any_nan, ignore_flags, ulp, max_failures, explain, space, progress
) -> MixedReport:
    """Compare each line with its operation; the header says which there are (`softnum.vectors.check`)."""
    spec = mixed_spec_of(reader.header, source)
    reports = [CheckReport(source, part, bool(any_nan), bool(ignore_flags), ulp) for part in spec.parts]
    out = MixedReport(source, spec, reports)
    comparisons = [comparison_of(report) for report in reports]
    keepers = [SpaceKeeper(source, part, space) for part in spec.parts]
    for rows in reader.rows(spec, unknown="mark"):
        unknown = np.zeros(len(rows.block), bool) if rows.unknown is None else rows.unknown
        if rows.unknown_flags is not None and not ignore_flags:
            unknown = unknown | rows.unknown_flags
        try:
            parts = list(spec.split(rows.block))
        except ValueError as error:
            line = int(rows.lines[error.args[0]])
            entries = [int(x[error.args[0]]) for x in rows.block.operands]
            named = " ".join(f"{c.name}={v:0{c.digits}X}" for c, v in zip(spec.columns, entries, strict=False))
            problem = f"{named} is of no case of the header, or not filled above operands and random bits as it says"
            raise VectorFileError(source, line, problem) from None
        for i, index, block, unfilled in parts:
            here = keepers[i].inside(Rows(rows.lines[index], block, unknown[index]))
            comparisons[i].add(here.lines, here.block, here.unknown)
            bad = rows.lines[index][unfilled & ~unknown[index]]
            out.unfilled_count += len(bad)
            out.unfilled = sorted([*out.unfilled, *bad[:_SHOWN].tolist()])[:_SHOWN]
        if progress is not None:
            progress(out.vectors)
    for comparison, keeper, report in zip(comparisons, keepers, reports, strict=True):
        comparison.end()
        comparison.finish(max_failures, explain)
        report.skipped = keeper.skipped
    return out

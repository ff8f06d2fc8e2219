"""Mixed files in: each line judged by the operation, mode and format that its numbers say."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from softnum.vectors.checks.comparison import comparison_of
from softnum.vectors.checks.mixed_report import MixedReport
from softnum.vectors.checks.packed import PackedJudge
from softnum.vectors.checks.report import CheckReport
from softnum.vectors.checks.spaces import SpaceKeeper
from softnum.vectors.files.headers import mixed_spec_of
from softnum.vectors.files.text import Rows, VectorFileError, VectorReader
from softnum.vectors.plans.packed import PackedSpec

if TYPE_CHECKING:
    from softnum.vectors.files.npz import NpzReader
    from softnum.vectors.plans.space import Space

__all__ = ["check_mixed"]

_SHOWN = 20


def check_mixed(
    reader: VectorReader | NpzReader,
    source: str,
    *,
    any_nan: bool,
    ignore_flags: bool,
    ulp: int,
    max_failures: int,
    explain: bool,
    space: Space | None,
    progress: Callable[[int], object] | None,
) -> MixedReport:
    """Compare each line with its operation; the header says which there are (`softnum.vectors.check`).

    >>> import os, tempfile
    >>> from softnum.vectors import VectorSpec, check, mixed_plan, write
    >>> path = os.path.join(tempfile.mkdtemp(), "v.txt")
    >>> write(mixed_plan([VectorSpec.make(op, "e2m1fn") for op in ("add", "multiply")], count=40), path)
    40
    >>> [part.vectors for part in check(path).parts]
    [20, 20]
    """
    spec = mixed_spec_of(reader.header, source)
    how = dict(any_nan=bool(any_nan), ignore_flags=bool(ignore_flags), ulp=ulp)
    judges = [_judge_of(source, part, space, explain, how) for part in spec.parts]
    out = MixedReport(source, spec, [judge.report for judge in judges])
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
            judges[i].add(Rows(rows.lines[index], block, unknown[index]))
            bad = rows.lines[index][unfilled & ~unknown[index]]
            out.unfilled_count += len(bad)
            out.unfilled = sorted([*out.unfilled, *bad[:_SHOWN].tolist()])[:_SHOWN]
        if progress is not None:
            progress(out.vectors)
    for judge in judges:
        judge.finish(max_failures)
    return out


class _Judge:
    """Judges the vectors of one operation."""

    def __init__(self, source: str, part, space, explain: bool, how: dict[str, Any]) -> None:
        self.report, self.explain = CheckReport(source, part, **how), explain
        self.comparison, self.keeper = comparison_of(self.report), SpaceKeeper(source, part, space)

    def add(self, rows: Rows) -> None:
        """The next vectors."""
        here = self.keeper.inside(rows)
        self.comparison.add(here.lines, here.block, here.unknown)

    def finish(self, max_failures: int) -> None:
        """Put what was found into the report."""
        self.comparison.end()
        self.comparison.finish(max_failures, self.explain)
        self.report.skipped = self.keeper.skipped


def _judge_of(source: str, part, space, explain: bool, how: dict[str, Any]):
    if isinstance(part, PackedSpec):
        return PackedJudge(source, part, space=space, explain=explain, **how)
    return _Judge(source, part, space, explain, how)

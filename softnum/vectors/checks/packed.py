"""Files of SIMD lanes in: each lane judged by itself, then what words as a whole say of the design."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from softnum.runtime.columns import text_table
from softnum.vectors.checks.comparison import comparison_of
from softnum.vectors.checks.lanes import ORDERS, order_of, reordered
from softnum.vectors.checks.mixed_report import MixedReport
from softnum.vectors.checks.report import CheckReport
from softnum.vectors.checks.spaces import SpaceKeeper
from softnum.vectors.files.headers import packed_spec_of
from softnum.vectors.files.text import Rows, VectorFileError, VectorReader
from softnum.vectors.plans.packed import Lanes, PackedSpec
from softnum.vectors.plans.spec import Block

if TYPE_CHECKING:
    from softnum.vectors.files.npz import NpzReader
    from softnum.vectors.plans.space import Space

__all__ = ["PackedJudge", "PackedReport", "check_packed"]

_SHOWN = 20
#: what designs make of masks -> in words
_MASKS = {
    "ignored": "the mask is ignored, every lane computes",
    "inverted": "lanes compute where the mask is 0",
    "reversed": "lane 0 has the mask's highest bit",
    "zero": "lanes whose mask is 0 are zero",
}


@dataclass
class PackedReport(MixedReport):
    """What `check` found in a file of lanes: ``parts`` are the lanes' reports, lane 0 first.

    >>> import io
    >>> from softnum.vectors import check
    >>> report = check(io.BytesIO(b"3C40 3C3C 4042 00\\n"), "add", "e5m2", lanes=Lanes(2), any_nan=True)
    >>> [part.failures for part in report.parts]  # 2 + 1 is 3 = 42, 1 + 1 is 2 = 40
    [0, 0]

    Attributes
    ----------
    words : int
        How many words were compared.
    flag_lines : list of int
        Lines of the first words whose flags, those of all lanes together, differ.
    flag_failures : int
        How many there are.
    causes : list of str
        What explains every word that differs, and contradicts none.
    ignored : bool
        Whether flags were not compared.
    idle_lines : list of int
        Lines of the first words whose lanes that a mask keeps from computing hold something else than they should.
    idle_failures : int
        How many such words there are.
    """

    words: int = 0
    flag_lines: list[int] = field(default_factory=list)
    flag_failures: int = 0
    causes: list[str] = field(default_factory=list)
    ignored: bool = False
    idle_lines: list[int] = field(default_factory=list)
    idle_failures: int = 0

    @property
    def failures(self) -> int:
        """Results of lanes that differ, words whose flags differ, and words that are filled wrongly."""
        return super().failures + self.flag_failures + self.idle_failures

    @property
    def of_words(self) -> list[tuple[str, str, str, list[int]]]:
        """As of mixed files, flags of all lanes together and causes among them."""
        out = super().of_words
        if self.flag_failures:
            out.append(("flags", f"{self.flag_failures} words have wrong flags", "flags-only", self.flag_lines))
        if self.idle_failures:
            out.append(("masked lanes", f"{self.idle_failures} words {self._idle}", "masked-lanes", self.idle_lines))
        return out + [("lanes", cause, cause.partition(":")[0], []) for cause in self.causes]

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the reports of the lanes, and what holds of words."""
        words = {"words": self.words, "flag_failures": self.flag_failures, "word_causes": self.causes}
        words |= {"idle_failures": self.idle_failures} if self.spec.lanes.mask != "none" else {}
        return super().to_dict() | words

    def __str__(self) -> str:
        lines = [str(part) for part in self.parts if part.failures] if not self.causes else []
        lanes = self.spec.lanes
        if self.unfilled_count:
            above = "ones" if lanes.ones and self.spec.out_fmt.exponent_bits else "zeros"
            first = ", ".join(map(str, self.unfilled))
            lines.append(f"{self.unfilled_count} results lack {above} above lane {lanes.count - 1}; lines {first}")
        if self.flag_failures:
            first = ", ".join(map(str, self.flag_lines))
            lines.append(f"{self.flag_failures} words have other flags than their lanes together; lines {first}")
        if self.idle_failures:
            lines.append(f"{self.idle_failures} words {self._idle}; lines {', '.join(map(str, self.idle_lines))}")
        rows = [("lane", "checked", "differ")]
        rows += [(str(i), str(p.vectors), str(p.failures)) for i, p in enumerate(self.parts)]
        lines.append(text_table(rows, numbers=3))
        lines += [f"all {self.words} words: {cause}" for cause in self.causes]
        part = self.spec.part
        of = f"{part.op} {part.facts()['format']}, {part.rounding}, {lanes.count} lanes"
        what = "results" if self.without_flags else "results and flags"
        found = f"all {what} equal" if not self.failures else f"{self.failures} differ"
        lines.append(f"{self.source}: {of}: {self.words} words, {found}")
        return "\n".join(lines)

    @property
    def _idle(self) -> str:
        should = "the old value" if self.spec.lanes.mask == "keep" else "zero"
        return f"have something else than {should} in lanes whose mask is 0"

    @property
    def without_flags(self) -> bool:
        """Whether flags were not compared."""
        return self.parts[0].ignore_flags and not (self.spec.has_flags and not self.ignored)


class _Words:
    """Wrong designs that no word has contradicted yet."""

    def __init__(self, spec: PackedSpec) -> None:
        self.spec = spec
        names = [c.name for c in spec.operand_columns if c.count > 1]
        orders = [order for order in ORDERS if order_of(spec.lanes.count, order) is not None]
        if spec.lanes.count == 2:
            orders = orders[:1]  # which are one
        self.alive = [("results", order) for order in orders] + [(n, order) for n in names for order in orders]
        if spec.lanes.count > 1:
            self.alive += [("results", "first")] + [(n, "first") for n in names]
            if spec.lanes.flags == "or" and spec.has_flags:
                self.alive += [("flags", "first"), ("flags", "last")]
        if spec.lanes.mask != "none":
            self.alive = [("mask", way) for way in _MASKS] + ([("flags", "every")] if spec.has_flags else [])

    def add(self, words: Any, operands: Any, result: Any, flags: Any, got_flags: Any) -> None:
        """The next words: all their operands, and of lanes operands, got results and flags, and the flags that words
        have."""
        if self.alive and self.spec.lanes.mask != "none":
            right = self.spec.lane_results(operands)[0]
            active, idle = self.spec.active(words), self.spec.idle(words).astype(right.dtype)
            made = {
                "ignored": right, "inverted": np.where(active, idle, right),
                "reversed": np.where(active[:, ::-1], right, idle),
                "zero": np.where(active, right, right.dtype.type(0)),
            }  # fmt: skip
            told = None if flags is None else self.spec.together(flags)
            self.alive = [
                (what, way) for what, way in self.alive
                if ((told == got_flags).all() if what == "flags" else (made[way] == result).all())
            ]  # fmt: skip
            return
        self.alive = [kind for kind in self.alive if self._fits(kind, operands, result, flags, got_flags)]

    def _fits(self, kind, operands, result, flags, got_flags) -> bool:
        what, order = kind
        if what == "flags":
            return flags is not None and bool((flags[:, 0 if order == "first" else -1] == got_flags).all())
        move = (lambda x: np.repeat(x[:, :1], x.shape[1], 1)) if order == "first" else (lambda x: reordered(x, order))
        if what == "results":
            return bool((move(self.spec.lane_results(operands)[0]) == result).all())
        at = "abc".index(what)
        wrong = [move(x) if i == at else x for i, x in enumerate(operands)]
        return bool((self.spec.lane_results(wrong)[0] == result).all())

    def causes(self, results: bool, flags: bool) -> list[str]:
        """What is left, of results or flags that differ."""
        out = []
        for what, order in self.alive:
            if what == "mask":
                out += [f"masked-lanes: {_MASKS[order]}"] if results else []
            elif what == "flags" and order == "every":
                out += ["lane-flags: the flags are those of all lanes, of those whose mask is 0 too"] if flags else []
            elif what == "flags" and flags:
                out.append(f"lane-flags: the flags are the {order} lane's alone, not those of all lanes")
            elif what != "flags" and results and order == "first":
                whose = "delivers lane 0's result" if what == "results" else f"takes {what} of lane 0"
                out.append(f"shared-lane: every lane {whose}")
            elif what != "flags" and results:
                whose = "the result" if what == "results" else what
                out.append(f"swapped-lanes: of {whose}, {ORDERS[order]}")
        return out


class PackedJudge:
    """Judges words of lanes.

    >>> import numpy as np
    >>> from softnum.vectors import VectorSpec, packed_plan
    >>> planned = packed_plan(VectorSpec.make("add", "e5m2"), Lanes(2), count=10)
    >>> judge = PackedJudge("v.txt", planned.spec)
    >>> for block in planned.blocks():
    ...     judge.add(Rows(np.arange(len(block)), block))
    >>> judge.finish(20)
    >>> judge.report.words, judge.report.failures
    (10, 0)
    """

    def __init__(
        self,
        source: str,
        spec: PackedSpec,
        *,
        any_nan: bool = False,
        ignore_flags: bool = False,
        ulp: int = 0,
        space: Space | None = None,
        explain: bool = True,
    ) -> None:
        self.spec, self.explain = spec, explain
        self.together = spec.lanes.flags == "or"
        self.judged = spec.has_flags and not ignore_flags
        if space and self.judged and self.together:
            problem = "flags are of all lanes together, no lane can be passed over: leave out"
            raise ValueError(f"{problem}{space.options()}, or state --ignore-flags")
        part = replace(spec.part, flags=False) if self.together else spec.part
        ignored = bool(ignore_flags) or self.together
        reports = [CheckReport(source, part, bool(any_nan), ignored, ulp) for _ in range(spec.lanes.count)]
        self.report = PackedReport(source, spec, reports, ignored=bool(ignore_flags))
        self.comparisons = [comparison_of(report) for report in reports]
        self.keepers = [SpaceKeeper(source, part, space) for _ in reports]
        self.words = _Words(spec)
        self.column = next(c for c in spec.columns if c.name == "result")

    def add(self, rows: Rows) -> None:
        """The next words; VectorFileError where lanes of operands that are not used hold something else."""
        spec, out, block, n = self.spec, self.report, rows.block, len(rows.block)
        unknown = np.zeros(n, bool) if rows.unknown is None else rows.unknown
        if rows.unknown_flags is not None and self.judged:
            unknown = unknown | rows.unknown_flags
        for c, codes in zip(spec.operand_columns, block.operands, strict=True):
            if c.count > 1 and (bad := spec.badly_filled(codes, c)).any():
                above = "ones" if spec.lanes.ones and c.format.exponent_bits else "zeros"
                line, problem = int(rows.lines[bad.argmax()]), f"{c.name} lacks {above} above lane"
                raise VectorFileError(out.source, line, f"{problem} {spec.lanes.count - 1}")
        operands, result = spec.by_lane(block.operands), spec._spread(block.result, self.column)
        active = spec.active(block.operands)
        if spec.lanes.mask != "none":
            bad = rows.lines[(~active & (result != spec.idle(block.operands))).any(1) & ~unknown]
            out.idle_failures += len(bad)
            out.idle_lines = [*out.idle_lines, *bad.tolist()][:_SHOWN]
        each = None if block.flags is None or self.together else block.flags.reshape(n, -1)
        for i, (comparison, keeper) in enumerate(zip(self.comparisons, self.keepers, strict=True)):
            on = active[:, i]
            lane = Block(tuple(x[on, i] for x in operands), None, result[on, i], None if each is None else each[on, i])
            here = keeper.inside(Rows(rows.lines[on], lane, unknown[on]))
            comparison.add(here.lines, here.block, here.unknown)
        bad = rows.lines[spec.badly_filled(block.result, self.column) & ~unknown]
        out.unfilled_count += len(bad)
        out.unfilled = [*out.unfilled, *bad.tolist()][:_SHOWN]
        right = self._check_flags(rows, operands, active, each, unknown)
        if self.explain and not unknown.any():
            self.words.add(block.operands, operands, result, right, block.flags)
        out.words += n

    def _check_flags(self, rows: Rows, operands, active, each, unknown) -> np.ndarray | None:
        """Flags of all lanes together, and of lanes that do not compute; what each lane that computes would raise."""
        if not self.judged:
            return None
        out, flags = self.report, rows.block.flags
        right = self.spec.lane_results(operands)[1] if self.together else None
        if self.together:
            wrong = self.spec.together(np.where(active, right, right.dtype.type(0))) != flags
        else:  # of lanes that compute, the lane's report says it
            wrong = ((each != 0) & ~active).any(1)
        bad = rows.lines[wrong & ~unknown]
        out.flag_failures += len(bad)
        out.flag_lines = [*out.flag_lines, *bad.tolist()][:_SHOWN]
        return right

    def finish(self, max_failures: int) -> None:
        """Put what was found into the report."""
        out = self.report
        for comparison, keeper, report in zip(self.comparisons, self.keepers, out.parts, strict=True):
            comparison.end()
            keeper.end(report.vectors)
            report.skipped = keeper.skipped
        differ = out.idle_failures > 0 or any(report.failures for report in out.parts)
        if self.explain and not any(report.unknown for report in out.parts):
            out.causes = self.words.causes(differ, out.flag_failures > 0)
        for comparison in self.comparisons:
            comparison.finish(max_failures, self.explain and not out.causes)


def check_packed(
    reader: VectorReader | NpzReader,
    source: str,
    given: dict[str, Any],
    lanes: Lanes | None,
    *,
    any_nan: bool,
    ignore_flags: bool,
    ulp: int,
    max_failures: int,
    explain: bool,
    space: Space | None,
    progress: Callable[[int], object] | None,
) -> PackedReport:
    """Compare each lane of each word (`softnum.vectors.check`)."""
    spec = packed_spec_of(reader.header, given, lanes, source)
    if ignore_flags and reader.lacks_flags(spec):
        spec = replace(spec, part=replace(spec.part, flags=False))
    how = dict(any_nan=any_nan, ignore_flags=ignore_flags, ulp=ulp, space=space, explain=explain)
    judge = PackedJudge(source, spec, **how)
    for rows in reader.rows(spec, unknown="mark"):
        judge.add(rows)
        if progress is not None:
            progress(judge.report.words)
    judge.finish(max_failures)
    return judge.report

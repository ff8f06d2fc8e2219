"""Vectors as they come: compared, counted, kept; at the end, the report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from softnum.formats.wide import integers
from softnum.vectors.checks import block_causes  # noqa: F401  registers the causes of its units
from softnum.vectors.checks.causes import Candidate, candidates_of, counted
from softnum.vectors.checks.classes import classes_of
from softnum.vectors.checks.diagnosis import Diagnosis, Finding, Predict, Rules, diagnose
from softnum.vectors.checks.evidence import Evidence, Keeper, ShiftedRows, block_of, joined_blocks, with_operands
from softnum.vectors.checks.failures import Failure, simplicity
from softnum.vectors.checks.models import Model
from softnum.vectors.checks.report import CauseFound, CheckReport
from softnum.vectors.checks.traces import Sequence, trace_of, trace_of_sequence
from softnum.vectors.checks.unit_causes import unit_candidates
from softnum.vectors.checks.unit_models import UnitModels
from softnum.vectors.files.text import VectorFileError
from softnum.vectors.plans.codes import is_nan
from softnum.vectors.plans.spec import Block
from softnum.vectors.plans.unit_spec import LONGEST, UnitSpec, by_steps

__all__ = ["Comparison", "comparison_of"]

#: A latency is named if this share of the rows fits.
_SHIFTED = 0.9
#: Failing vectors among which the simplest is looked for.
_ORDERED = 4000
#: Steps of a unit in chunks on which it is tried whether sequences run on.
_HEAD = 300
#: Above this precision there may be no room for the finer formats of some models in 64 bits;
_WIDE = 40
#: then they are tried on so many failing vectors.
_FEW = 500


def comparison_of(report: CheckReport) -> Comparison:
    """What compares the vectors that the report is to be of.

    >>> import io
    >>> from softnum.vectors import check
    >>> check(io.BytesIO(b"1 3D 3D 3E\\n0 3D 3D 42\\n"), "mac", unit="MadUnit('e5m2', operand='e5m2')", length=2).ok
    True
    """
    return (Sequences if report.spec.op == "mac" else Comparison)(report)


class Comparison:
    """Vectors that have nothing to do with each other."""

    def __init__(self, report: CheckReport) -> None:
        self.report, self.spec = report, report.spec
        self.rules = Rules(report.any_nan, report.ignore_flags or not report.spec.has_flags, report.ulp)
        self.keeper = Keeper(self.elements)
        self.shifted = ShiftedRows()

    @property
    def elements(self) -> int:
        """Numbers in a vector that is kept."""
        return sum(c.count for c in self.spec.columns)

    def add(self, lines: np.ndarray, block: Block, unknown: np.ndarray | None = None) -> None:
        """The next vectors; unknown says where the result has unknown bits."""
        if unknown is None:
            unknown = np.zeros(len(block), bool)
        want = self.spec.evaluate(block.operands, block.random_bits)
        evidence = self._judged(lines, block, want, unknown)
        self._count(evidence)
        self.keeper.add(evidence)

    def end(self) -> None:
        """No more vectors come."""

    def _judged(self, lines, block: Block, want: Block, unknown) -> Evidence:
        wrong = ~self.rules.equal(block.result, want.result, self.spec.out_fmt) | unknown
        wrong_flags = np.zeros(len(block), bool)
        if not self.rules.ignore_flags:
            wrong_flags = (block.flags != want.flags) & ~unknown
        index = np.arange(self.report.vectors, self.report.vectors + len(block))
        return Evidence(lines, index, block, want, wrong, wrong_flags, unknown)

    def _count(self, evidence: Evidence) -> None:
        report, fmt = self.report, self.spec.out_fmt
        got, want, wrong = evidence.got.result, evidence.want.result, evidence.wrong
        if wrong.any() and not report.any_nan:
            both_nan = is_nan(got, fmt) & is_nan(want, fmt)
            differ = both_nan if both_nan.ndim == 1 else (both_nan | (got == want)).all(1)
            report.nan_failures += int(np.count_nonzero(wrong & ~evidence.unknown & differ))
        failures = int(np.count_nonzero(evidence.failing))
        self.shifted.add(got, want, failures > 0)
        report.vectors += len(evidence)
        report.failures += failures
        report.result_failures += int(np.count_nonzero(wrong))
        report.flag_failures += int(np.count_nonzero(evidence.wrong_flags))
        report.unknown += int(np.count_nonzero(evidence.unknown))

    # -- at the end ----------------------------------------------------------------------------------------------------
    def finish(self, max_failures: int, explain: bool) -> None:
        """Put what was found into the report."""
        report = self.report
        evidence = self.keeper.all()
        if not report.failures or evidence is None:
            return
        if not isinstance(self.spec, UnitSpec) and any(f.leads for f in (*self.spec.formats, self.spec.out_fmt)):
            evidence = _few(evidence)  # what is computed in Python integers is tried on few
        diagnosis = self._diagnosis(evidence) if explain else None
        if diagnosis is not None and self._is_wide and {"unexplained", "off-by-one-ulp"} & set(diagnosis.causes):
            # what is left is computed in Python integers, on few vectors
            few = _few(evidence)
            other = self._diagnosis(few, slowly=True)
            if not {"unexplained", "off-by-one-ulp"} & set(other.causes):
                evidence, diagnosis = few, other
        failing = np.flatnonzero(evidence.failing)
        report.first = [self._failure(evidence, i) for i in self._simplest(evidence, failing)[:max_failures]]
        report.kept = (len(failing), len(evidence) - len(failing))
        report.complete = sum(report.kept) == report.vectors or (self.keeper.complete and self.spec.op == "mac")
        report.classes = classes_of(self.spec, evidence, diagnosis)
        if diagnosis is None:
            return
        findings = sorted(diagnosis.findings, key=lambda f: (f.cause == "unexplained", -np.count_nonzero(f.explains)))
        for number, finding in enumerate(findings):
            rows = np.flatnonzero(finding.explains)
            shown = rows[evidence.wrong[rows]] if finding.of == "results" else rows
            simplest = self._simplest(evidence, shown if len(shown) else rows)[:1]
            example = self._failure(evidence, simplest[0]) if simplest else None
            found = CauseFound(
                finding.cause, finding.detail, len(rows), len(failing), finding.also, example,
                confident=finding.confident, held=finding.held, hides=finding.hides,
                changes=finding.changes,
            )  # fmt: skip
            report.causes.append(replace(found, trace=self._trace(example, finding, number)))
        report.contradicted = diagnosis.contradicted
        if diagnosis.closest is not None:
            hits = int(np.count_nonzero(diagnosis.closest.explains & evidence.failing))
            report.closest = (
                f"{diagnosis.closest}: right on {hits} of {len(failing)} failures, "
                f"but wrong on {diagnosis.closest_wrong} other vectors"
            )

    def _trace(self, example: Failure | None, finding: Finding, number: int):
        if example is None or not isinstance(self.spec, UnitSpec):
            return None
        return trace_of(self.spec, example, finding.changes)

    def _simplest(self, evidence: Evidence, failing: np.ndarray) -> list[int]:
        most = max(16, min(_ORDERED, 100_000 // self.elements))
        rows = failing[:: max(1, -(-len(failing) // most))].tolist()
        return sorted(rows, key=lambda i: simplicity(self.spec, self._failure(evidence, i)))

    def _failure(self, evidence: Evidence, i: int) -> Failure:
        got, want = evidence.got, evidence.want
        result = None if evidence.unknown[i] else entry(got.result, i)
        operands = tuple(entry(codes, i) for codes in got.operands)
        return Failure(
            int(evidence.lines[i]), int(evidence.index[i]), operands, entry(got.random_bits, i), result,
            entry(want.result, i), entry(got.flags, i), entry(want.flags, i),
        )  # fmt: skip

    @property
    def _is_wide(self) -> bool:
        """Whether models of the operation need more than the 64 bits of a code."""
        spec = self.spec
        return not isinstance(spec, UnitSpec) and (spec.out_fmt.precision or 0) > _WIDE

    def _diagnosis(self, evidence: Evidence, slowly: bool = False) -> Diagnosis:
        """What the evidence, and the order of the rows, say of the design."""
        found = []
        failing = evidence.failing
        if evidence.unknown.any():
            where = _where_unknown(evidence, self.report.unknown)
            found.append(Finding("unknown-bits", where, evidence.unknown, confident=True))
        best = self.shifted.best()
        if best is not None:
            n, right, compared = best
            if right > _SHIFTED * compared and right > self.report.vectors - self.report.result_failures:
                way = f"{counted(abs(n), 'row')} {'late' if n > 0 else 'early'}"
                share = "" if right == compared else f"; {right} of {compared} rows fit"
                first = evidence.index < max(n, 0)  # what such a design delivers there is nothing of the file's
                if not (evidence.unknown & ~first).any():
                    found = []
                explains = failing & (~evidence.unknown | first)
                shifted = Finding("shifted-rows", f"{n}: {way}{share}", explains, confident=True)
                return Diagnosis((*found, shifted), failing)
        known = ~evidence.unknown
        rows = np.flatnonzero(known)
        part = self._of_values(evidence.take(rows), slowly)
        spread = []
        for finding in part.findings:
            explains = np.zeros(len(evidence), bool)
            explains[rows] = finding.explains
            spread.append(replace(finding, explains=explains & failing))
        explained = np.zeros(len(evidence), bool)
        explained[rows] = part.explained
        return replace(part, findings=(*found, *spread), explained=explained)

    def _of_values(self, evidence: Evidence, slowly: bool) -> Diagnosis:
        candidates = self._candidates()
        other = None
        if candidates and not isinstance(self.spec, UnitSpec):
            other = {"after": "before", "before": "after"}[self.spec.tininess]
        predict = self.predictions(slowly) if candidates else _as_it_is
        return diagnose(evidence, predict, candidates, self.rules, self.spec, other)

    def _candidates(self) -> list[Candidate]:
        return unit_candidates(self.spec) if isinstance(self.spec, UnitSpec) else candidates_of(self.spec)

    def predictions(self, slowly: bool = False) -> Predict:
        """What gives the results and flags of a wrong design: of its changes and some evidence."""
        spec = self.spec
        if isinstance(spec, UnitSpec):
            return UnitModels(spec).predict
        model = Model(spec, slowly=slowly, known={})
        return lambda changes, evidence: model.changed(**changes).evaluate(
            evidence.got.operands, evidence.got.random_bits
        )


def _as_it_is(changes: dict[str, Any], evidence: Evidence):
    """What is right, where no wrong design is known."""
    return evidence.want.result, evidence.want.flags


def _few(evidence: Evidence) -> Evidence:
    """Some of the vectors: all the failing ones up to a number, and twice as many others."""
    parts = []
    for mask, most in ((evidence.failing, _FEW), (~evidence.failing, 2 * _FEW)):
        rows = np.flatnonzero(mask)
        parts.append(rows[:: max(1, -(-len(rows) // most))])
    return evidence.take(np.concatenate(parts))


def entry(codes: np.ndarray | None, i: int) -> Any:
    """Entry i as an integer, or a tuple of them; None of None."""
    if codes is None:
        return None
    if codes.dtype.names is not None:
        return int(integers(codes[i : i + 1])[0])
    return codes[i].item() if codes.ndim == 1 else tuple(codes[i].tolist())


def _where_unknown(evidence: Evidence, count: int) -> str:
    index = evidence.index[evidence.unknown]
    if len(index) == count and index[-1] == count - 1:
        return f"in the first {counted(count, 'row')} alone"
    return f"in {counted(count, 'row')}"


class Sequences(Comparison):
    """Steps of a multiply-add unit, in sequences. A sequence is judged when it is complete.

    A step is kept with what the design's accumulator held before, so that an error is judged where it is made and not
    where it is passed on; of a unit in chunks, whose accumulator cannot be seen, with all products of its sequence.
    """

    def __init__(self, report: CheckReport) -> None:
        super().__init__(report)
        self.models = UnitModels(report.spec)
        self.held: tuple[Any, ...] | None = None
        self.before: tuple[Any, ...] | None = None  # the design's last result, and whether it has unknown bits
        self.sequence: Sequence[Any] | None = None
        self.head: Block | None = None  # of a unit in chunks: where the file begins, as far as it is looked at

    @property
    def _longest(self) -> int:
        return max(self.spec.shape[2], 64)

    @property
    def elements(self) -> int:
        """Numbers in a step that is kept."""
        alone = by_steps(self.spec) or self.spec.unit.chunk is None
        return sum(c.count for c in self.spec.columns) + (1 if alone else 2 * self._longest)

    def add(self, lines: np.ndarray, block: Block, unknown: np.ndarray | None = None) -> None:
        """The next steps; those of the last sequence wait for its end."""
        if unknown is None:
            unknown = np.zeros(len(block), bool)
        if self.held is not None:
            held_lines, held, held_unknown = self.held
            lines = np.concatenate([held_lines, lines])
            block, unknown = joined_blocks(held, block), np.concatenate([held_unknown, unknown])
        first = block.operands[0]
        if not first[0]:
            raise VectorFileError(self.report.source, int(lines[0]), "the first step begins no sequence (first is 0)")
        last = int(np.flatnonzero(first)[-1])
        if len(block) - last > 16 * LONGEST:
            at = int(lines[last])
            raise VectorFileError(self.report.source, at, f"a sequence of more than {16 * LONGEST} steps begins here")
        self.held = (lines[last:].copy(), block_of(block, np.arange(last, len(block))), unknown[last:].copy())
        if last:
            self._take(lines[:last], block_of(block, slice(0, last)), unknown[:last])

    def end(self) -> None:
        """The last sequence is complete."""
        if self.held is not None:
            held, self.held = self.held, None
            self._take(*held)

    def _take(self, lines, block: Block, unknown) -> None:
        want = self.spec.evaluate(block.operands, block.random_bits)
        evidence = self._judged(lines, block, want, unknown)
        self._count(evidence)
        if not self.models.by_steps and (self.head is None or len(self.head) < _HEAD) and not unknown.any():
            part = block_of(block, np.arange(min(len(block), _HEAD)))
            self.head = part if self.head is None else joined_blocks(self.head, part)
        failing = evidence.failing
        if failing.any() and self.sequence is None:
            at = int(np.flatnonzero(failing)[0])
            starts = np.flatnonzero(block.operands[0])
            begin = int(starts[starts <= at][-1])
            end = int(min([*starts[starts > at][:1], len(block), begin + LONGEST]))
            rows = slice(begin, end)
            self.sequence = Sequence(
                lines[rows].copy(), block_of(block, np.arange(begin, end)), want.result[rows], at - begin
            )
        kept = self._by_steps(evidence) if self.models.by_steps else self._by_sums(evidence)
        if kept is not None:
            self.keeper.add(kept)

    def _by_steps(self, evidence: Evidence) -> Evidence:
        got = evidence.got
        result, unseen = (np.zeros_like(got.result[:1]), False) if self.before is None else self.before
        before = np.concatenate([result, got.result[:-1]])
        dark = np.concatenate([[unseen], evidence.unknown[:-1]]) & (got.operands[0] == 0)
        self.before = got.result[-1:].copy(), bool(evidence.unknown[-1])
        evidence = with_operands(evidence, (*got.operands, before))
        if not evidence.failing.any():
            return evidence
        # an unknown accumulator says nothing of the step after it
        evidence = evidence.take(~dark) if dark.any() else evidence
        want, _ = self.models.predict({}, evidence)
        wrong = ~self.rules.equal(evidence.got.result, want, self.spec.out_fmt) | evidence.unknown
        self.report.wrong_steps = (self.report.wrong_steps or 0) + int(np.count_nonzero(wrong))
        got = evidence.got
        return replace(evidence, want=Block(got.operands, got.random_bits, want, None), wrong=wrong)

    def _by_sums(self, evidence: Evidence) -> Evidence | None:
        """Of each sequence one sum: where it goes wrong first, or its last."""
        got = evidence.got
        first, a, b, *c = got.operands
        starts = np.flatnonzero(first)
        ends = np.append(starts[1:], len(first))
        failing = np.flatnonzero(evidence.failing)
        rows = ends - 1
        if len(failing):
            following = failing[np.minimum(np.searchsorted(failing, starts), len(failing) - 1)]
            rows = np.where((following >= starts) & (following < ends), following, rows)
        length = rows - starts + 1
        fits = length <= self._longest
        rows, starts, length = rows[fits], starts[fits], length[fits]
        left = np.concatenate([self._left(got), got.result])[starts]  # at the end of the sequence before
        if not len(rows):
            return None
        inside = np.arange(self._longest) < length[:, None]
        places = np.where(inside, starts[:, None] + np.arange(self._longest), 0)
        padded = [np.where(inside, codes[places], codes.dtype.type(0)) for codes in (a, b)]
        return with_operands(evidence.take(rows), (length, *padded, *(codes[starts] for codes in c), left))

    def _left(self, got: Block) -> np.ndarray:
        """The design's last result before these steps, as an array of one; those of these are the next ones' last."""
        last = np.zeros_like(got.result[:1]) if self.before is None else self.before[0]
        self.before = got.result[-1:].copy(), False
        return last

    def _failure(self, evidence: Evidence, i: int) -> Failure:
        failure = super()._failure(evidence, i)
        if self.models.by_steps:
            *operands, before = failure.operands
            return replace(failure, operands=tuple(operands), before=before)
        length, a, b, *c, _ = failure.operands
        return replace(failure, operands=(int(length == 1), a[length - 1], b[length - 1], *c))

    def _of_values(self, evidence: Evidence, slowly: bool) -> Diagnosis:
        if self.head is not None and self._runs_on():
            found = Finding(
                "accumulator-not-cleared", "one sum from the file's beginning on", evidence.wrong, confident=True
            )
            return Diagnosis((found,), evidence.wrong)
        return super()._of_values(evidence, slowly)

    def _runs_on(self) -> bool:
        """Whether the first vectors are one sequence to the design, whatever they say."""
        first, *rest = (codes[:_HEAD] for codes in self.head.operands)
        got = self.head.result[:_HEAD]
        if np.count_nonzero(first) < 2:
            return False
        alone = np.zeros_like(first)
        alone[0] = 1
        words = None if self.head.random_bits is None else self.head.random_bits[:_HEAD]
        want = self.spec.evaluate((alone, *rest), words)
        return bool(self.rules.equal(got, want.result, self.spec.out_fmt).all())

    def _trace(self, example, finding: Finding, number: int):
        """Of the first cause alone: the first sequence that fails, up to where it leaves the right sums."""
        return trace_of_sequence(self.spec, self.sequence) if not number and self.sequence is not None else None

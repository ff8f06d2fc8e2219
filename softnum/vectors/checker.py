"""Vectors in: results of a design under test against softnum."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import numpy as np

from softnum.vectors.causes import candidates_of
from softnum.vectors.classes import classes_of
from softnum.vectors.codes import is_nan, value_text
from softnum.vectors.diagnosis import Diagnosis, Finding, Rules, diagnose
from softnum.vectors.dialects import open_reader
from softnum.vectors.evidence import Evidence, Keeper, ShiftedRows
from softnum.vectors.failures import Failure, simplicity
from softnum.vectors.headers import spec_of
from softnum.vectors.models import Model
from softnum.vectors.report import CauseFound, CheckReport
from softnum.vectors.text import Rows, VectorFileError

__all__ = ["CheckReport", "Failure", "check", "open_vectors", "value_text"]

#: A latency is named if this share of the rows fits.
_SHIFTED = 0.9


def open_vectors(source) -> tuple[object, str, bool]:
    """(binary stream, its name, whether to close it) of a path, "-" for standard input, or a binary file object."""
    if isinstance(source, (str, os.PathLike)):
        if os.fspath(source) == "-":
            return sys.stdin.buffer, "<stdin>", False
        return open(source, "rb"), os.fspath(source), True
    if not hasattr(source, "read"):
        raise TypeError(f"a path, '-' or a binary file is needed, got {source!r}")
    return source, str(getattr(source, "name", "<stream>")), False


class _Comparison:
    """Vectors as they come, counted and kept."""

    def __init__(self, report: CheckReport) -> None:
        self.report, self.spec = report, report.spec
        self.rules = Rules(report.any_nan, report.ignore_flags or not report.spec.has_flags, report.ulp)
        self.keeper = Keeper(sum(c.count for c in self.spec.columns))
        self.shifted = ShiftedRows()

    def add(self, rows: Rows) -> None:
        """The next vectors."""
        report, spec, lines, block = self.report, self.spec, rows.lines, rows.block
        unknown = rows.unknown
        if rows.unknown_flags is not None and not self.rules.ignore_flags:
            unknown = rows.unknown_flags if unknown is None else unknown | rows.unknown_flags
        want = spec.evaluate(block.operands, block.random_bits)
        wrong = ~self.rules.equal(block.result, want.result, spec.out_fmt)
        if unknown is None:
            unknown = np.zeros(len(block), bool)
        else:
            wrong |= unknown
            report.unknown += int(np.count_nonzero(unknown))
        if wrong.any() and not report.any_nan:
            both_nan = is_nan(block.result, spec.out_fmt) & is_nan(want.result, spec.out_fmt)
            differ = both_nan if both_nan.ndim == 1 else (both_nan | (block.result == want.result)).all(1)
            report.nan_failures += int(np.count_nonzero(wrong & ~unknown & differ))
        wrong_flags = np.zeros(len(block), bool) if self.rules.ignore_flags else (block.flags != want.flags) & ~unknown
        failures = int(np.count_nonzero(wrong | wrong_flags))
        index = np.arange(report.vectors, report.vectors + len(block))
        self.keeper.add(Evidence(lines, index, block, want, wrong, wrong_flags, unknown))
        self.shifted.add(block.result, want.result, failures > 0)
        report.vectors += len(block)
        report.failures += failures
        report.result_failures += int(np.count_nonzero(wrong))
        report.flag_failures += int(np.count_nonzero(wrong_flags))

    # -- at the end ----------------------------------------------------------------------------------------------------
    def finish(self, max_failures: int, explain: bool) -> None:
        """Put what was found into the report."""
        report = self.report
        evidence = self.keeper.all()
        if not report.failures or evidence is None:
            return
        failing = np.flatnonzero(evidence.failing)
        order = self._simplest(evidence, failing)
        report.first = [self._failure(evidence, i) for i in order[:max_failures]]
        report.kept = (len(failing), len(evidence) - len(failing))
        report.complete = self.keeper.complete
        diagnosis = self._diagnosis(evidence) if explain else None
        report.classes = classes_of(self.spec, evidence, diagnosis)
        if diagnosis is None:
            return
        for finding in diagnosis.findings:
            rows = np.flatnonzero(finding.explains)
            example = next((i for i in order if finding.explains[i]), None)
            found = CauseFound(
                finding.cause, finding.detail, len(rows), len(failing), finding.also,
                None if example is None else self._failure(evidence, example),
            )  # fmt: skip
            report.causes.append(found)
        report.causes.sort(key=lambda c: (c.cause == "unexplained", -c.explains))
        if diagnosis.closest is not None:
            hits = int(np.count_nonzero(diagnosis.closest.explains))
            report.closest = (
                f"{diagnosis.closest}: right on {hits} of {len(failing)} failures, "
                f"but wrong on {diagnosis.closest_wrong} other vectors"
            )

    def _simplest(self, evidence: Evidence, failing: np.ndarray) -> list[int]:
        rows = failing[:: max(1, len(failing) // 4000)].tolist()
        return sorted(rows, key=lambda i: simplicity(self.spec, self._failure(evidence, i)))

    def _failure(self, evidence: Evidence, i: int) -> Failure:
        entry = lambda v: None if v is None else v[i].tolist() if v.ndim == 1 else tuple(v[i].tolist())  # noqa: E731
        got, want = evidence.got, evidence.want
        result = None if evidence.unknown[i] else entry(got.result)
        return Failure(
            int(evidence.lines[i]), int(evidence.index[i]), tuple(map(entry, got.operands)), entry(got.random_bits),
            result, entry(want.result), entry(got.flags), entry(want.flags),
        )  # fmt: skip

    def _diagnosis(self, evidence: Evidence) -> Diagnosis:
        """What the evidence, and the order of the rows, say of the design."""
        found = []
        failing = evidence.failing
        if evidence.unknown.any():
            found.append(Finding("unknown-bits", _where_unknown(evidence, self.report.unknown), evidence.unknown))
        best = self.shifted.best()
        if best is not None:
            n, right, compared = best
            if right > _SHIFTED * compared and right > self.report.vectors - self.report.result_failures:
                way = f"{abs(n)} row(s) {'late' if n > 0 else 'early'}"
                share = "" if right == compared else f"; {right} of {compared} rows fit"
                explains = failing & ~evidence.unknown
                return Diagnosis((*found, Finding("shifted-rows", f"{n}: {way}{share}", explains)), failing)
        known = ~evidence.unknown
        rows = np.flatnonzero(known)
        part = self._of_values(evidence.take(rows))
        spread = []
        for finding in part.findings:
            explains = np.zeros(len(evidence), bool)
            explains[rows] = finding.explains
            spread.append(replace(finding, explains=explains & failing))
        explained = np.zeros(len(evidence), bool)
        explained[rows] = part.explained
        return replace(part, findings=(*found, *spread), explained=explained)

    def _of_values(self, evidence: Evidence) -> Diagnosis:
        spec = self.spec

        def predict(changes: dict, evidence: Evidence):
            return Model(spec).changed(**changes).evaluate(evidence.got.operands, evidence.got.random_bits)

        other = {"after": "before", "before": "after"}[spec.tininess]
        return diagnose(evidence, predict, candidates_of(spec), self.rules, spec.out_fmt, other)


def _where_unknown(evidence: Evidence, count: int) -> str:
    index = evidence.index[evidence.unknown]
    if len(index) == count and index[-1] == count - 1:
        return f"in the first {count} row(s) alone"
    return f"in {count} row(s)"


def check(
    source, op=None, fmt=None, *, out_fmt=None, rounding=None, overflow=None, tininess=None, stochastic_bits=None,
    unit=None, length=None, shape=None, with_c=None, any_nan=False, ignore_flags=False, ulp=0, ignore_header=False,
    max_failures=20, explain=True, progress=None, dialect=None,
) -> CheckReport:  # fmt: skip
    """Compare the results and flags of a vector file with softnum's, and name the likeliest causes of differences.

    Parameters
    ----------
    source : str, path or binary file
        The vectors, in any dialect of `DIALECTS`, plain or compressed by gzip or xz; "-" is standard input.
    op, fmt, out_fmt, rounding, overflow, tininess, stochastic_bits
        As in `generate`. What is left out is taken from the file's header, else the defaults of `generate` hold; what
        is stated must agree with the header.
    unit, length, shape, with_c
        Of vectors of a unit (op dot, mac or gemm), as in `UnitSpec.make`.
    any_nan : bool
        Whether any two NaNs are equal. Off, a NaN result must be the canonical one (sign 0, quiet bit only), where the
        format has several.
    ignore_flags : bool
        Whether to compare results alone. The flags column is there and read all the same.
    ulp : int
        How many places a result may lie from the right one in the order of the format's values; +0 and -0 share one.
        0: none, the bits must be right. Flags are compared all the same.
    ignore_header : bool
        Whether to take the header for a comment.
    max_failures : int
        How many failures the report keeps, the simplest; all are counted.
    explain : bool
        Whether to look for causes (``softnum.vectors.causes.CAUSES``). It takes seconds at most, whatever the file's
        size: models of wrong designs are tried on up to 20 000 vectors that differ and 100 000 that do not, spread
        over the file.
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
    cause: flags-only (inexact is never raised): explains all 1 failures
      flags are wrong by themselves
      smallest example, in line 2:
        a      3D  0|01111|01  1.25
        b      3D  0|01111|01  1.25
        got    3E  0|01111|10  1.5   flags 00 (none)
        want   3E  0|01111|10  1.5   flags 01 (inexact)
        exact  1.5625 = 1.5 + 0.25 ulp of 0.25; guard 0, round 1, sticky 0: toward zero
    only flags differ: --ignore-flags compares results alone
    >>> [c.cause for c in report.causes]
    ['flags-only']
    """
    for what, number in (("max_failures", max_failures), ("ulp", ulp)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise ValueError(f"{what} must be an integer of at least 0, got {number!r}")
    given = dict(
        op=op, fmt=fmt, out_fmt=out_fmt, rounding=rounding, overflow=overflow, tininess=tininess,
        stochastic_bits=stochastic_bits, unit=unit, length=length, shape=shape, with_c=with_c,
    )  # fmt: skip
    stream, name, ours = open_vectors(source)
    report = comparison = None
    try:
        reader = open_reader(stream, name, dialect)
        if ignore_header:
            reader.header = {}
        report = CheckReport(name, spec_of(reader.header, given, name), bool(any_nan), bool(ignore_flags), ulp)
        comparison = _Comparison(report)
        for rows in reader.rows(report.spec, unknown="mark"):
            comparison.add(rows)
            if progress is not None:
                progress(report.vectors)
    except VectorFileError as error:
        if report is not None:
            report.error = str(error)
            comparison.finish(max_failures, explain)
        error.report = report
        raise
    finally:
        if ours:
            stream.close()
    comparison.finish(max_failures, explain)
    return report

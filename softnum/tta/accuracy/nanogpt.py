"""Logs of modded-nanogpt: lines of steps with a loss and the clock of training.

``step:125/6200 val_loss:4.7293 train_time:24651ms step_avg:214.36ms``: after 125 updates of 6200 the clock of training
showed 24.651 s; ``train_loss`` on other lines, and seconds (``s``) in place of milliseconds. The clock stands still
during evaluations. Earlier programs set it back after 10 steps, which are not in the times that were published then.
Whatever else such a log holds, the program and what nvidia-smi says, is left alone.

Source: train_gpt.py and records of github.com/KellerJordan/modded-nanogpt. Its goal, a val_loss of 3.28 (2.92 on the
medium track), is not in the log, and neither is the batch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from softnum.tta.accuracy.curves import Given
from softnum.tta.accuracy.labels import split_label
from softnum.tta.accuracy.records import Evaluation, Record, RecordSet
from softnum.tta.accuracy.times import check_times
from softnum.tta.text import lines_with

__all__ = ["is_nanogpt", "nanogpt_curve"]

_LINE = re.compile(
    r"^step:(\d{1,9})/(\d{1,9})[ \t](?:(.*?)[ \t])?"
    r"train_time:(\d{1,15}(?:\.\d{1,9})?)(ms|s)\b(?:[ \t]+step_avg:(\S+?)ms)?",
    re.MULTILINE,
)
_PAIR = re.compile(r"(?<!\S)(\w+):(\S*)")
_VALUE = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)", re.IGNORECASE | re.ASCII)


def is_nanogpt(text: str) -> bool:
    """Whether a text has the lines of such a log.

    >>> is_nanogpt("step:125/6200 val_loss:4.7293 train_time:24651ms step_avg:214.36ms\\n")
    True
    """
    return _LINE.search(text) is not None


def nanogpt_curve(path: Path, text: str, given: Given) -> RecordSet:
    """Read a log: a record for each run in it, or, of an unfinished run, the reason why there is none.

    Raises
    ------
    ValueError
        If steps or times contradict each other, or the metric is not there; the message names the lines.
    """
    if given.design is None:
        raise ValueError(f"{path}: the log does not name its design; name it: NAME=FILE")
    given.unused(path, "iterations_per_epoch", "counts_from", why="a log of modded-nanogpt counts steps itself, from 0")
    runs: list[list[_Row]] = []
    for at, line in lines_with(_LINE, text):
        row = _Row.of(f"{path}, line {at}", line)
        if not runs:
            runs.append([])
        elif row.step < runs[-1][-1].step:  # the next run of a file of several
            if row.step != runs[0][0].step:
                raise ValueError(
                    f"{row.where}: step {row.step} after {runs[-1][-1].step} at {runs[-1][-1].where}; expected a later "
                    f"one, or step {runs[0][0].step}, with which a run begins"
                )
            runs.append([])
        runs[-1].append(row)
    if not runs:
        raise ValueError(f"{path}: no line like step:125/6200 val_loss:4.7 train_time:24651ms, as modded-nanogpt logs")
    first = 1 if given.seed is None else given.seed
    records, excluded = [], []
    for seed, rows in enumerate(runs, start=first):
        if rows[-1].step < rows[-1].total:
            told = f"the last step is {rows[-1].step} of {rows[-1].total}, at {rows[-1].where.rpartition(', ')[2]}"
            excluded.append(f"{path} is not finished and is left out: {told}")
        else:
            records.append(_record(path, rows, seed, given))
    return RecordSet(tuple(records), tuple(excluded))


@dataclass(frozen=True)
class _Row:
    """A line: updates done, of how many, and the clock in seconds; `mean` is the time of a step as it is printed."""

    where: str
    step: int
    total: int
    values: Mapping[str, str]
    clock: Fraction
    mean: float

    @classmethod
    def of(cls, where: str, line: str) -> _Row:
        step, total, values, clock, unit, mean = _LINE.match(line).groups()
        named = [name for name, _ in _PAIR.findall(line)]
        twice = [name for name in ("step", "train_time") if line.count(f"{name}:") > 1]  # a line's end was lost
        twice += [name for name in named if named.count(name) > 1]
        if twice:
            raise ValueError(f"{where}: {twice[0]} is given twice in the line; expected one of each")
        try:
            each = float(mean or "nan") / 1000
        except ValueError:
            each = math.nan
        if int(step) > int(total):
            raise ValueError(f"{where}: step {step} of {total}; the log contradicts itself")
        clock = Fraction(clock) / (1000 if unit == "ms" else 1)
        return cls(where, int(step), int(total), dict(_PAIR.findall(values or "")), clock, each)


def _record(path: Path, rows: list[_Row], seed: int, given: Given) -> Record:
    design, named = split_label(given.design)
    batch = given.batch if named is None else named
    began, back = _set_back(rows)
    if other := next((row for row in rows if row.total != rows[0].total), None):
        raise ValueError(f"{other.where}: of {other.total} steps, where {rows[0].where} has {rows[0].total}")
    _check_mean(rows, began)
    evaluations, lines = [], []
    for at, row in enumerate(rows):
        if given.metric not in row.values:
            continue
        if evaluations and row.step == evaluations[-1].iteration:
            raise ValueError(f"{row.where}: a second {given.metric} at step {row.step}, after {lines[-1]}")
        value, loss = row.values[given.metric], given.metric.endswith("_loss")
        if not _VALUE.fullmatch(value) or (loss and value.startswith("-")):
            kind = "a number from 0 up" if loss else "a number"
            raise ValueError(f"{row.where}: {given.metric} must be {kind}, got {value!r}")
        seconds = None if at < back else float(row.clock)
        evaluations.append(Evaluation(row.step, float(row.values[given.metric]), seconds=seconds))
        lines.append(row.where)
    if not evaluations:
        there = dict.fromkeys(name for row in rows for name in row.values)
        raise ValueError(
            f"{path}: no {given.metric!r} in the lines of its steps; there are {', '.join(there) or 'none'}; name the "
            "metric with --metric"
        )
    late = [at for at, evaluation in enumerate(evaluations) if evaluation.seconds is not None]
    check_times("the run", [evaluations[at] for at in late], [lines[at] for at in late])
    notes = ["modded-nanogpt's clock stands still during evaluations, so that they are in no time"]
    if back:
        line = rows[back].where.rpartition(", ")[2]
        notes.append(f"{path}, {line}: the clock was set back after step {began}: these steps are not in its times")
    return Record(
        design, seed, batch or 1, rows[-1].step, tuple(evaluations), {}, {}, str(path), by_batch=named is not None,
        unit="step" if batch is None else "iteration", began=began, notes=tuple(notes),
    )  # fmt: skip


def _set_back(rows: list[_Row]) -> tuple[int, int]:
    """Steps done when the clock was set to 0, and the first row that it is good for."""
    falls = [at for at in range(1, len(rows)) if rows[at].clock < rows[at - 1].clock]
    if len(falls) > 1:
        raise ValueError(
            f"{rows[falls[1]].where}: the clock is set back to {float(rows[falls[1]].clock):g} s, as it was at "
            f"{rows[falls[0]].where}; once, after the first steps, is expected"
        )
    return (rows[falls[0] - 1].step, falls[0]) if falls else (0, 0)


def _check_mean(rows: list[_Row], began: int) -> None:
    """Compare the last row's time of a step with its clock: the mean of all steps, or of those since the row before."""
    last, digit = rows[-1], 0.000005  # half of the last digit printed
    if not math.isfinite(last.mean) or last.mean <= digit:
        return
    before = next((row for row in reversed(rows) if row.step < last.step), None)
    spans = [(last.clock, last.step - began)]
    if before is not None:
        spans.append((last.clock - before.clock, last.step - before.step))
    if not any(
        float(clock) / (last.mean + digit) - 2 <= count <= float(clock) / (last.mean - digit) + 2
        for clock, count in spans
    ):
        raise ValueError(
            f"{last.where}: {float(last.clock):g} s at {last.mean * 1000:g} ms a step are "
            f"{float(last.clock) / last.mean:.6g} steps, and the clock has run for {last.step - began} of "
            f"{last.step}; the log contradicts itself"
        )

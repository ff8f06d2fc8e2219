"""Learning curves of any framework: CSV, JSON lines and MLPerf logs become records.

A *table*, CSV with a header row or JSON lines with the same keys, has one row for each evaluation::

    design,seed,iteration,batch,accuracy         {"design": "base", "seed": 1, "epoch": 1, "accuracy": 0.91}
    base,1,100,32,0.91                           {"design": "base", "seed": 1, "epoch": 2, "accuracy": 0.94}

``design`` (or ``label``) and ``seed`` (or ``run``) say whose curve it is, ``iteration`` (or ``step``) counts parameter
updates done so far, ``epoch`` passes over the data, ``batch`` samples per iteration. Columns are parted by commas or by
tabs. Other columns than these and the metric are left alone. A row without the metric is a row of training and tells
only how far the run went.

``seconds``, ``minutes`` or ``hours`` is the time since the run began, at each evaluation: then the time to accuracy is
measured, and neither the batch nor the iterations of an epoch have to be known (`softnum.tta.accuracy.times`).

An *MLPerf log* is one run; its evaluations are events such as ``eval_accuracy``, whose metadata say the epoch, the
samples or the step.

What a file does not say has to be given, and is an error where it is needed: the design, the batch size, and the
iterations of an epoch where evaluations are placed by epochs. Nothing of it is guessed.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from softnum.tta.accuracy.labels import split_label
from softnum.tta.accuracy.records import Evaluation, Record, RecordSet
from softnum.tta.accuracy.times import check_times, evaluation_unit, time_of
from softnum.tta.mllog import MLLog, MLLogEvent, read_mllog
from softnum.tta.mlperf.benchmarks import MLPerfRun, MLPerfTarget, known_target, run_seconds, seconds_at
from softnum.tta.mlperf.evaluations import evaluations_of
from softnum.tta.mlperf.logged import check_one_batch
from softnum.tta.mlperf.progress import mlperf_progress
from softnum.tta.text import table_rows

__all__ = ["Given", "csv_curves", "curves_of", "jsonl_curves", "mllog_curve"]

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?|[+-]?inf(inity)?|nan", re.ASCII | re.IGNORECASE)
_NAMES = {
    "design": ("design", "label"),
    "seed": ("seed", "run"),
    "iteration": ("iteration", "step"),
    "epoch": ("epoch",),
    "batch": ("batch", "batch_size"),
}
_FORM = "one row for each evaluation with design, seed, iteration or epoch, batch and the metric"


@dataclass(frozen=True)
class Given:
    """What a user says of curves, where their file does not.

    Parameters
    ----------
    metric : str
    design : str or None
        Label of every row: a name or ``name@batch``.
    seed, batch, iterations_per_epoch : int or None
    counts_from : int or None
        0 if the file calls the first epoch (or step) number 0, so that 1 is to be added; 1 if a 0 means "before
        training". None: a 0 in the file is an error.
    """

    metric: str = "accuracy"
    design: str | None = None
    seed: int | None = None
    batch: int | None = None
    iterations_per_epoch: int | None = None
    counts_from: int | None = None

    def __post_init__(self) -> None:
        for name in ("batch", "iterations_per_epoch"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise ValueError(f"{name} must be an integer of at least 1, got {value!r}")
        if self.counts_from not in (None, 0, 1):
            raise ValueError(f"counts_from must be 0 or 1, got {self.counts_from!r}")

    def unused(self, path: Path, *names: str, why: str) -> None:
        """Raise ValueError for what is given and would be left aside, because of what the file is.

        >>> Given(batch=8).unused("a.log", "batch", why="its batch is known")
        Traceback (most recent call last):
            ...
        ValueError: a.log: its batch is known; leave --batch 8 out, or name only files that need it
        """
        for name in (name for name in names if getattr(self, name) is not None):
            value = getattr(self, name)
            option = f"the name {value}=" if name == "design" else f"--{name.replace('_', '-')} {value}"
            raise ValueError(f"{path}: {why}; leave {option} out, or name only files that need it")

    def position(self, where: str, name: str, number: Fraction) -> Fraction:
        """Epochs or iterations done, of the number that a file gives."""
        if number == 0 and self.counts_from is None:
            raise ValueError(
                f"{where}: {name} 0 is either the first {name} of a log that counts from 0, or an evaluation before "
                "training; state which with --counts-from 0 or --counts-from 1"
            )
        return number + 1 if self.counts_from == 0 else number

    def iteration_of_epoch(self, where: str, epochs: Fraction) -> int:
        """Iterations in so many epochs."""
        if self.iterations_per_epoch is None:
            raise ValueError(
                f"{where}: gives an evaluation by epoch and not by iteration; state the iterations of an epoch: "
                "--iterations-per-epoch N"
            )
        return _whole(
            where,
            f"{float(epochs):g} epochs of {self.iterations_per_epoch} iterations",
            epochs * self.iterations_per_epoch,
        )


def _whole(where: str, what: str, number: Fraction) -> int:
    if number.denominator != 1 or number < 0:
        raise ValueError(f"{where}: {what} must be a whole number of iterations from 0 up, got {float(number):g}")
    return int(number)


def _number(where: str, name: str, value: object) -> float:
    """A cell's number; NaN and infinity are numbers of a metric."""
    if isinstance(value, str):
        value = value.strip()
        number = float(value) if _NUMBER.fullmatch(value) else None
    else:
        try:
            number = None if isinstance(value, bool) or not isinstance(value, (int, float)) else float(value)
        except OverflowError:
            number = math.inf
    if number is None:
        raise ValueError(f"{where}: {name} must be a number, got {value!r}")
    return number


def _exact(where: str, name: str, value: object) -> Fraction:
    number = _number(where, name, value)
    if not math.isfinite(number):
        raise ValueError(f"{where}: {name} must be a finite number, got {value!r}")
    return Fraction(value.strip() if isinstance(value, str) else value) if number else Fraction(0)


def _integer(where: str, name: str, value: object) -> int:
    number = _exact(where, name, value)
    if number.denominator != 1:
        raise ValueError(f"{where}: {name} must be a whole number, got {value!r}")
    return int(number)


# -- tables ------------------------------------------------------------------------------------------------------------
def csv_curves(path: Path, text: str, given: Given) -> RecordSet:
    """Read a CSV table."""
    rows = table_rows(path, text, lambda where, header: _check_header(where, header, given.metric), what=_FORM)
    return curves_of(path, ((where, {name: cell for name, cell in row.items() if cell}) for where, row in rows), given)


def jsonl_curves(path: Path, text: str, given: Given) -> RecordSet:
    """Read JSON lines."""
    return curves_of(path, _json_rows(path, text), given)


def _check_header(where: str, header: list[str], metric: str) -> None:
    if metric not in header:
        raise ValueError(f"{where}: no column {metric!r}{_near(metric, header)}; name the metric with --metric")
    if not any(name in header for key in ("iteration", "epoch") for name in _NAMES[key]):
        raise ValueError(f"{where}: no column iteration, step or epoch; expected {_FORM}")


def _near(name: str, names) -> str:
    names = [str(other) for other in names]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    return (f"; did you mean {near[0]!r}?" if near else "") + f" (there are {', '.join(names) or 'none'})"


def _json_rows(path: Path, text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:  # not JSON, numbers too long, brackets too deep
            cut = " The file ends there: was it cut off?" if number == len(lines) else ""
            raise ValueError(f"{where}: not a row of JSON ({error}); expected {_FORM}.{cut}") from None
        if not isinstance(row, dict):
            raise ValueError(f"{where}: expected an object, got {row!r}; expected {_FORM}")
        yield where, {key: value for key, value in row.items() if value is not None}


@dataclass
class _Curve:
    """A run while its rows are read."""

    where: str
    batch: int | None
    named: bool
    unit: str
    evaluations: list[Evaluation]
    lines: list[str]
    iterations: int = 0
    epoch: Fraction = Fraction(-1)


def _pick(where: str, row: Mapping[str, Any], key: str) -> object:
    """What a row says of a quantity, under whichever of its names; None if nothing."""
    found = [name for name in _NAMES[key] if name in row]
    if len(found) > 1:
        raise ValueError(f"{where}: has both {' and '.join(found)}, which are two names of one column; leave one out")
    return row[found[0]] if found else None


def curves_of(
    path: Path, rows: Iterator[tuple[str, Mapping[str, Any]]], given: Given, unit: str | None = None
) -> RecordSet:
    """The runs of a table's rows, each with where it stands; `unit` is what they count, where the format says so."""
    rows = list(rows)
    unit = _unit(rows, given) if unit is None else unit
    _check_given(path, rows, given, unit)
    curves: dict[tuple[str, int], _Curve] = {}
    columns: dict[str, None] = {}
    for where, row in rows:
        columns.update(dict.fromkeys(row))
        design, batch, named = _whose(where, row, given, unit)
        seed = _pick(where, row, "seed")
        if seed is not None and given.seed is not None:
            raise ValueError(f"{where}: gives a seed, and --seed is given too; leave one of them out")
        seed = _integer(where, "seed", seed) if seed is not None else 1 if given.seed is None else given.seed
        key = (f"{design}@{batch}" if named else design, seed)
        curve = curves.setdefault(key, _Curve(where, batch, named, unit, [], []))
        if batch != curve.batch:
            raise ValueError(
                f"{where}: batch {batch or 'not stated'} of design {design!r}, seed {seed}, which {curve.where} gives "
                f"as {curve.batch or 'not stated'}; a run has one batch size here. Of one that changes it, leave the "
                "column out, and give a column iteration and one of times (seconds): then the time to accuracy is "
                "measured"
            )
        _add(where, row, key, curve, given)
    if not curves:
        raise ValueError(f"{path}: holds no rows; expected {_FORM}")
    for (label, seed), curve in curves.items():
        if not curve.evaluations:
            raise ValueError(
                f"{curve.where}: design {label!r}, seed {seed}, has no value of {given.metric!r}"
                f"{_near(given.metric, columns)}; name the metric with --metric"
            )
        check_times(f"design {label!r}, seed {seed},", curve.evaluations, curve.lines)
    labels = list(dict.fromkeys(label for label, _ in curves))
    first = {label: at for at, label in enumerate(labels)}
    return RecordSet(
        tuple(
            Record(
                split_label(label)[0] if curve.named else label, seed, _counted_batch(curve), curve.iterations,
                tuple(curve.evaluations), {}, {}, str(path), by_batch=curve.named,
                unit="step" if unit == "iteration" and curve.batch is None else unit,
            )
            for (label, seed), curve in sorted(curves.items(), key=lambda item: (first[item[0][0]], item[0][1]))
        )
    )  # fmt: skip


def _check_given(path: Path, rows: list[tuple[str, Mapping[str, Any]]], given: Given, unit: str) -> None:
    """Raise ValueError for options that nothing is made of, because the rows say it, or count something else."""
    if unit != "iteration":
        given.unused(path, "batch", why=f"iterations are not known, and {unit}s are counted (--iterations-per-epoch)")
    if unit == "evaluation":
        given.unused(path, "counts_from", why="evaluations are counted, whatever the first epoch is called")
    if rows and all(_pick(where, row, "iteration") is not None for where, row in rows):
        given.unused(path, "iterations_per_epoch", why="every row says its iteration")


def _unit(rows: list[tuple[str, Mapping[str, Any]]], given: Given) -> str:
    """What the rows count: iterations, or what can be counted without them where times are stated."""
    rows = [(where, row) for where, row in rows if given.metric in row]
    placed = any(_pick(where, row, "iteration") is not None for where, row in rows)
    if not rows or placed or given.iterations_per_epoch or time_of(*rows[0], given.metric) is None:
        return "iteration"
    epochs = [(where, _pick(where, row, "epoch")) for where, row in rows]
    return evaluation_unit(
        [(where, None if epoch is None else _exact(where, "epoch", epoch)) for where, epoch in epochs],
        given.counts_from,
    )


def _counted_batch(curve: _Curve) -> int:
    """Samples in what is counted: where that is no iteration, it is the sample; a label's batch is its name."""
    return curve.batch or 1 if curve.unit == "iteration" or curve.named else 1


def _whose(where: str, row: Mapping[str, Any], given: Given, unit: str) -> tuple[str, int | None, bool]:
    """Design, batch size (None where it is not known and not needed), and whether its label names the batch."""
    label = _pick(where, row, "design")
    if label is None and given.design is None:
        raise ValueError(f"{where}: does not name the design of the curve; add a column design, or name it: NAME=FILE")
    if label is not None and given.design is not None and label != given.design:
        raise ValueError(
            f"{where}: is of design {label!r}, and the file was named {given.design!r}; leave the name out, or the "
            "column"
        )
    label = given.design if label is None else label
    if not isinstance(label, str) or not label:
        raise ValueError(f"{where}: design must be a name, got {label!r}")
    design, named = split_label(label)
    stated = _pick(where, row, "batch")
    sizes = {
        "its label": named,
        "the column batch": None if stated is None else _integer(where, "batch", stated),
        "--batch": given.batch if named is None else None,
    }
    said = {what: size for what, size in sizes.items() if size is not None}
    if len(set(said.values())) > 1:
        told = " and ".join(f"{size} ({what})" for what, size in said.items())
        raise ValueError(f"{where}: the batch size of {label!r} is both {told}; keep one of them")
    if said:
        batch = next(iter(said.values()))
        if batch < 1:
            raise ValueError(f"{where}: batch must be at least 1, got {batch}")
        return design, batch, named is not None
    if unit == "iteration" and time_of(where, row, given.metric) is None:
        raise ValueError(f"{where}: does not say the batch size of {label!r}; add a column batch, or give --batch N")
    return design, None, False


def _add(where: str, row: Mapping[str, Any], key: tuple[str, int], curve: _Curve, given: Given) -> None:
    iteration, epoch = _pick(where, row, "iteration"), _pick(where, row, "epoch")
    epochs = None if epoch is None else _exact(where, "epoch", epoch)
    seconds = time_of(where, row, given.metric)
    if curve.unit != "iteration":
        if given.metric not in row:
            return
        at = _counted(where, epochs, seconds, curve, given)
    elif iteration is not None:
        done = _exact(where, "iteration", iteration)
        # in a row with both, counts_from speaks of the iteration alone: the epoch is only shown
        at = _whole(where, "iteration", given.position(where, "iteration", done) if given.counts_from == 0 else done)
    elif epochs is not None and (given.metric in row or given.iterations_per_epoch is not None):
        epochs = given.position(where, "epoch", epochs)
        at = given.iteration_of_epoch(where, epochs)
    elif given.metric in row:
        raise ValueError(f"{where}: gives no iteration and no epoch; expected {_FORM}")
    else:
        return  # of training, and it does not say how far
    last = curve.evaluations[-1].iteration if curve.evaluations else -1
    if at < curve.iterations or (given.metric in row and at <= last):
        raise ValueError(
            f"{where}: expected an iteration after {max(curve.iterations, last)} of design {key[0]!r}, seed {key[1]}, "
            f"got {at}; rows of a run must be in order, and a column seed tells runs apart"
        )
    curve.iterations = at
    if given.metric in row:
        value = _number(where, given.metric, row[given.metric])
        shown = None if epochs is None else int(epochs) if epochs.denominator == 1 else float(epochs)
        curve.evaluations.append(Evaluation(at, value, shown, None if seconds is None else float(seconds)))
        curve.lines.append(where)


def _counted(where: str, epochs: Fraction | None, seconds: Fraction | None, curve: _Curve, given: Given) -> int:
    """Epochs or evaluations done at an evaluation; one at 0 s was before training. Two may be in one epoch."""
    if epochs is None:
        raise ValueError(f"{where}: gives no epoch, where other rows do")
    if epochs < curve.epoch or (epochs == curve.epoch and curve.unit == "epoch"):
        raise ValueError(
            f"{where}: expected an epoch after {float(curve.epoch):g}, got {float(epochs):g}; rows of a run must be in "
            "order, and a column seed tells runs apart"
        )
    curve.epoch = epochs
    if curve.unit == "epoch":
        return int(given.position(where, "epoch", epochs))
    return len(curve.evaluations) + (curve.evaluations[0].iteration if curve.evaluations else int(seconds != 0))


# -- MLPerf ------------------------------------------------------------------------------------------------------------
def mllog_curve(path: Path, text: str, given: Given) -> RecordSet:
    """Read the log of an MLPerf run: one record, or, of an unfinished run, the reason why there is none."""
    log = read_mllog(path, text=text)
    if given.design is None:
        raise ValueError(f"{path}: an MLPerf log does not name its design; name it: NAME=FILE")
    design, named = split_label(given.design)
    if not log.finished:
        return RecordSet((), (f"{path} is not finished and is left out: {log.end()}",))
    events = evaluations_of(log, given.metric)
    given.unused(path, "counts_from", why="an MLPerf log says itself what it calls its first epoch")
    check_one_batch(log)
    stated = named if named is not None else given.batch
    batch = log.value("global_batch_size")
    if batch is not None:
        where = f"{path}, line {log.of('global_batch_size')[0].line}"
        batch = _integer(where, "global_batch_size", batch)
        if batch < 1:
            raise ValueError(f"{where}: global_batch_size must be above zero, got {batch}")
        if stated not in (None, batch):
            raise ValueError(f"{where}: global_batch_size is {batch}, and {stated} is given; leave one of them out")
    progress = mlperf_progress(log, events, batch=stated, per_epoch=given.iterations_per_epoch)
    if progress.unit != "iteration":
        given.unused(path, "batch", "iterations_per_epoch", why=progress.counted)
    evaluations = []
    for event, at in progress.places:
        where = f"{path}, line {event.line}"
        epoch = event.metadata.get("epoch_num")
        if isinstance(epoch, float) and epoch.is_integer():
            epoch = int(epoch)
        shown = epoch if isinstance(epoch, (int, float)) and not isinstance(epoch, bool) and epoch >= 0 else None
        evaluations.append(Evaluation(at, _number(where, event.key, event.value), shown, seconds_at(log, event)))
    _check_values(path, progress.places, known_target(log, given.metric))
    # of what is no batch, one is a sample; the study's notes say so
    batch = progress.batch if progress.unit == "iteration" or named is not None else 1
    run = MLPerfRun(
        log.benchmark,
        float(run_seconds(log)),
        log.status if isinstance(log.status, str) else None,
        progress.unit,
        known_target(log, given.metric),
        float(log.of("run_start")[0].time_ms),
    )
    record = Record(
        design, _seed(log, given.seed), batch or 1, evaluations[-1].iteration, tuple(evaluations),
        {"network": log.benchmark}, {}, str(path), by_batch=named is not None, mlperf=run,
    )  # fmt: skip
    return RecordSet((record,))


def _check_values(path: Path, places: Sequence[tuple[MLLogEvent, int]], target: MLPerfTarget | None) -> None:
    """Raise ValueError for values that a metric with this target cannot have: shares of 1, of 100, or below 0."""
    if target is None:
        return
    most = math.inf if target.direction == "lower" else 1 if target.value <= 1 else 100
    for event, _ in places:
        value = _number(f"{path}, line {event.line}", event.key, event.value)
        if value < 0 or value > most:
            raise ValueError(
                f"{path}, line {event.line}: {event.key} is {value:g}, where values lie between 0 and {most:g}, as the "
                f"target {target.value:g} does ({target.source}); is it in another unit, or wrong?"
            )


def _seed(log: MLLog, stated: int | None) -> int:
    """The seed that a log says, or of several processes the first that logged one, or what the user says."""
    logged = log.of("seed")
    if not logged:
        return 1 if stated is None else stated
    where, value = f"{log.path}, line {logged[0].line}", logged[0].value
    value = _integer(where, "seed", value)
    if value < 0:
        raise ValueError(f"{where}: seed must not be {value}")
    if stated is not None and stated not in {event.value for event in logged}:
        raise ValueError(f"{where}: seed is {value}, and {stated} is given; leave one of them out")
    return value if stated is None else stated


#: What each reader takes: the path, its text, and what is given.
Reader = Callable[[Path, str, Given], RecordSet]

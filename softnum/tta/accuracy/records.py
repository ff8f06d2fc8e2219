"""Training records: what the emulation phase hands to the simulation phase.

A record is a file of JSON lines, ``<folder>/<design>/seed-<n>.jsonl``: first a row with ``config``, ``seed`` and
``versions``, then rows with ``iteration`` (parameter updates done so far), ``epoch``, ``loss`` and, at evaluations, the
metric; the last row of a finished run carries ``"finished": true``, and ``"diverged": true`` where the loss was not
finite.
"""

from __future__ import annotations

import difflib
import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from softnum.tta.accuracy.labels import label_parts
from softnum.tta.mlperf.benchmarks import MLPerfRun, MLPerfTarget
from softnum.tta.quantities import InputTypeError
from softnum.tta.workloads.hardware import DesignPoint

__all__ = ["Evaluation", "Record", "RecordSet", "design_points", "read_record", "read_records"]

_AGAIN = "remove the file and train that run again"
_ROW_FIELDS = ("iteration", "epoch", "loss", "finished", "diverged")


@dataclass(frozen=True)
class Evaluation:
    """The metric after a number of parameter updates; `value` is NaN if the run had diverged.

    `epoch` is the number of the epoch it was in (a fraction where a framework counts so), or None if it is not known.
    `seconds` is the time since the run's clock began, where the curve states times of its own.

    Examples
    --------
    >>> Evaluation(iteration=45, value=0.9).value
    0.9
    """

    iteration: int
    value: float
    epoch: int | float | None = None
    seconds: float | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Record:
    """One training run.

    Parameters
    ----------
    design : str
        Name of its design.
    seed : int
        Its seed.
    batch : int
        Samples per iteration.
    iterations : int
        Number of parameter updates.
    evaluations : tuple of Evaluation
        The metric over training, in order.
    config, versions : Mapping
        As in the first row.
    path : str
        The file.
    diverged : bool
        Whether training ended early because the loss was not finite.
    by_batch : bool
        Whether the study has the design at several batch sizes, so that its label names the batch.
    mlperf : MLPerfRun or None
        Facts about the whole run in the log of an MLPerf run.
    unit : str
        What is counted as an iteration: "iteration"; "step", an iteration of which the batch is not known; "epoch" or
        "evaluation" where batches cannot be counted. A sample is then one of these, and `batch` 1.
    began : int
        Iterations done when the clock of ``Evaluation.seconds`` began.
    rent : float or None
        Dollars per hour that the run's own file states.
    target : MLPerfTarget or None
        The target of its benchmark, for files other than MLPerf logs.
    notes : tuple of str
        Remarks on how the file was read.
    shared : str
        What its label says of workers, where the study has several numbers of them, or several collectives:
        "@ring@w8".

    Examples
    --------
    >>> run = Record("base", 1, 32, 90, (Evaluation(45, 0.8), Evaluation(90, 0.9)), config={}, versions={})
    >>> run.label, run.evaluations[-1].value
    ('base', 0.9)
    """

    design: str
    seed: int
    batch: int
    iterations: int
    evaluations: tuple[Evaluation, ...]
    config: Mapping[str, Any] = field(repr=False)
    versions: Mapping[str, Any] = field(repr=False)
    path: str = ""
    diverged: bool = False
    by_batch: bool = False
    mlperf: MLPerfRun | None = None
    unit: str = "iteration"
    began: int = 0
    rent: float | None = None
    target: MLPerfTarget | None = None
    notes: tuple[str, ...] = ()
    shared: str = ""

    @property
    def counts(self) -> str:
        """What is counted as an iteration: `unit`, or what the MLPerf log says."""
        return self.unit if self.mlperf is None else self.mlperf.unit

    @property
    def tokens(self) -> int | None:
        """Tokens of a sample, which the config of a language model's run states; else None.

        Raises
        ------
        ValueError
            If that is no positive integer.
        """
        found = self.config.get("tokens_per_sample")
        if found is not None and not (_is_int(found) and found > 0):
            raise ValueError(f"{self.path}: tokens_per_sample of the config must be a positive integer, got {found!r}")
        return found

    @property
    def timed(self) -> bool:
        """Whether the curve states times of its own."""
        return any(evaluation.seconds is not None for evaluation in self.evaluations)

    @property
    def label(self) -> str:
        """Its name in a study: the design's name, or ``name@batch``, with the workers if stated."""
        return (f"{self.design}@{self.batch}" if self.by_batch else self.design) + self.shared

    @property
    def workers(self) -> int:
        """How many shared a batch, as the config states it.

        Raises
        ------
        ValueError
            If that is no positive integer.
        """
        parallel = self.config.get("parallel")
        found = parallel.get("workers") if isinstance(parallel, Mapping) else 1
        if not _is_int(found) or found < 1 or self.batch % found:
            raise ValueError(
                f"{self.path}: workers of the config must be a positive integer that divides the batch, {self.batch}, "
                f"got {found!r}"
            )
        return found

    @property
    def collective(self) -> str | None:
        """How workers summed their gradients, as the config states it; None of one worker."""
        return None if self.workers == 1 else str(self.config["parallel"].get("collective"))


@dataclass(frozen=True)
class RecordSet:
    """Finished runs, and what was left out.

    Parameters
    ----------
    records : tuple of Record
        The finished runs, ordered by design and seed.
    excluded : tuple of str
        One sentence for each run that is not used, saying which and why.

    Examples
    --------
    >>> run = Record("base", 1, 32, 90, (Evaluation(90, 0.9),), config={}, versions={})
    >>> runs = RecordSet((run,), ("base/seed-2.jsonl is not finished and is left out; train on to use it",))
    >>> len(runs.records), len(runs.excluded)
    (1, 1)
    """

    records: tuple[Record, ...]
    excluded: tuple[str, ...] = ()


def keep_record(records: dict[tuple[str, int], Record], record: Record) -> None:
    """Add a run to those of a study, by label and seed.

    MLPerf logs of one submission are repetitions. Where their seeds are equal, or not logged, the runs are told apart
    by their run_start, and the later file gets the next number that is free.

    Raises
    ------
    ValueError
        If the same run is there already.
    """
    other = records.get((record.label, record.seed))
    runs = [run for (label, _), run in records.items() if label == record.label]
    if other is not None and record.mlperf is not None and all(run.mlperf is not None for run in runs):
        same = next((run for run in runs if run.mlperf.started == record.mlperf.started), None)
        if same is None:
            record, other = replace(record, seed=max(run.seed for run in runs) + 1), None
    if other is not None:
        raise ValueError(
            f"{record.path}: design {record.label!r} with seed {record.seed} is already in {other.path}; the runs of "
            "a design need different seeds"
        )
    records[record.label, record.seed] = record


def read_record(path: str | os.PathLike[str], *, metric: str = "accuracy") -> Record | None:
    """Read one record.

    Parameters
    ----------
    path : path-like
        A ``.jsonl`` file.
    metric : str
        Which field of the evaluation rows to read.

    Returns
    -------
    Record or None
        None if the run has not finished; a last line that an interruption cut off is no error then.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a row is malformed, or a finished run never evaluated `metric`; the message names file and line.

    Examples
    --------
    >>> import tempfile
    >>> rows = [{"config": {"design": "base", "batch": 32}, "seed": 1, "versions": {}},
    ...         {"iteration": 45, "epoch": 1, "loss": 0.7, "accuracy": 0.9}, {"finished": True}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "seed-1.jsonl")
    ...     _ = file.write_text("".join(json.dumps(row) + "\\n" for row in rows))
    ...     read_record(file).evaluations
    (Evaluation(iteration=45, value=0.9, epoch=1),)
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no training record {str(path)!r}; train the design first")
    lines = path.read_bytes().split(b"\n")
    cut = lines.pop()  # what follows the last newline: nothing, or a row that was being written
    rows = [_row(f"{path}, line {number}", line) for number, line in enumerate(lines, start=1)]
    if not rows:
        return None
    first = rows[0]
    where = f"{path}, line 1"
    if not all(isinstance(first.get(key), dict) for key in ("config", "versions")) or not _is_int(first.get("seed")):
        raise ValueError(
            f'{where}: expected the row {{"config": {{...}}, "seed": n, "versions": {{...}}}}, got keys '
            f"{', '.join(map(repr, first))}; is this a training record? Else {_AGAIN}"
        )
    evaluations, iteration, seen = [], 0, {}
    for number, row in enumerate(rows[1:], start=2):
        where = f"{path}, line {number}"
        if rows[number - 2].get("finished") is True:
            raise ValueError(f"{where}: a row follows the row that says finished; {_AGAIN}")
        value = row.get("iteration", iteration if "finished" in row else None)
        if not _is_int(value) or value < iteration or (value == iteration and evaluations and metric in row):
            raise ValueError(
                f"{where}: expected an iteration after {iteration}, got {row.get('iteration')!r}; {_AGAIN}"
            )
        iteration = value
        seen.update(dict.fromkeys(key for key in row if key not in _ROW_FIELDS))
        if metric in row:
            try:
                # null is how a record says that a number was not finite
                value = math.nan if row[metric] is None else row[metric]
                number = None if isinstance(value, bool) else 1.0 * value
            except (TypeError, OverflowError):
                number = None
            if not isinstance(number, float):
                raise ValueError(f"{where}: {metric} must be a number, got {row[metric]!r}; {_AGAIN}")
            evaluations.append(Evaluation(iteration, number, _epoch(where, row)))
    if cut or rows[-1].get("finished") is not True:
        return None
    if not evaluations:
        near = difflib.get_close_matches(metric, seen, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"{path}, line {len(rows)}: the run finished without any evaluation of {metric!r}{hint} "
            f"(fields of its rows: {', '.join(seen) or 'none'})"
        )
    config = first["config"]
    design, batch = _design(path, config), _batch(path, config)
    by_batch, shared = _by_label(path, design, batch, config)
    return Record(
        design=design,
        seed=first["seed"],
        batch=batch,
        iterations=iteration,
        evaluations=tuple(evaluations),
        config=config,
        versions=first["versions"],
        path=str(path),
        diverged=rows[-1].get("diverged") is True,
        by_batch=by_batch,
        shared=shared,
    )


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _row(where: str, line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, numbers too long, brackets too deep
        raise ValueError(f"{where}: not a row of JSON ({error}); {_AGAIN}") from None
    if not isinstance(row, dict):
        raise ValueError(f"{where}: expected an object, got {row!r}; {_AGAIN}")
    return row


def _design(path: Path, config: Mapping[str, Any]) -> str:
    design = config.get("design")
    name = design.get("name") if isinstance(design, dict) else design
    if not isinstance(name, str):
        raise ValueError(f"{path}, line 1: config names no design: {design!r}; {_AGAIN}")
    return name


def _epoch(where: str, row: Mapping[str, Any]) -> int | float | None:
    epoch = row.get("epoch")
    number = isinstance(epoch, (int, float)) and not isinstance(epoch, bool)
    if epoch is not None and not (number and 0 <= epoch < math.inf):
        raise ValueError(f"{where}: epoch must be a number of at least 0, got {epoch!r}; {_AGAIN}")
    return epoch


def _by_label(path: Path, design: str, batch: int, config: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether the label, which the folder says, names the batch, and what it says of workers."""
    found = label_parts(path.parent.name, design)
    if found is None:
        return False, ""
    parallel = config.get("parallel")
    workers = parallel.get("workers") if isinstance(parallel, Mapping) else 1
    wrong = [
        (what, named, said)
        for what, named, said in (("batch", found.batch, batch), ("workers", found.workers, workers))
        if named not in (None, said)
    ]
    if found.collective is not None and workers == 1:
        wrong.append(("collective", found.collective, "none"))
    for what, named, said in wrong:
        right = f"{design}@{batch}{found.shared}" if what == "batch" else "whose name says the same"
        raise ValueError(
            f"{path}, line 1: the folder says {what} {named} and config says {said}; move the record to a folder "
            f"{right}, or {_AGAIN}"
        )
    return found.batch is not None, found.shared


def _batch(path: Path, config: Mapping[str, Any]) -> int:
    batch = config.get("batch")
    if not _is_int(batch) or batch < 1:
        raise ValueError(f"{path}, line 1: config batch must be an integer of at least 1, got {batch!r}; {_AGAIN}")
    return batch


def read_records(
    source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    metric: str = "accuracy",
    designs: Iterable[str] | None = None,
) -> RecordSet:
    """Read the records of a study.

    Parameters
    ----------
    source : path-like, or iterable of path-like
        The folder that holds ``<label>/seed-<n>.jsonl``, where the label is a design's name, ``name@batch``, or either
        with a study's workers, ``name@ring@w8``; or the files themselves.
    metric : str
        Which field of the evaluation rows to read.
    designs : iterable of str, optional
        Only the folders of these labels. Default: all.

    Returns
    -------
    RecordSet

    Raises
    ------
    FileNotFoundError
        If there is no record.
    ValueError
        If a record is malformed, or two are of the same design and seed.

    Examples
    --------
    >>> import tempfile
    >>> rows = [{"config": {"design": "base", "batch": 32}, "seed": 1, "versions": {}},
    ...         {"iteration": 45, "epoch": 1, "loss": 0.7, "accuracy": 0.9}, {"finished": True}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "base", "seed-1.jsonl")
    ...     file.parent.mkdir()
    ...     _ = file.write_text("".join(json.dumps(row) + "\\n" for row in rows))
    ...     runs = read_records(folder)
    >>> [(run.design, run.seed, run.batch) for run in runs.records]
    [('base', 1, 32)]
    """
    if isinstance(source, (str, os.PathLike)):
        folder = Path(source)
        paths = sorted(folder.glob("*/seed-*.jsonl"))
        if designs is not None:
            wanted = set(designs)
            paths = [path for path in paths if path.parent.name in wanted]
        if not paths:
            raise FileNotFoundError(
                f"no training records under {str(folder)!r}; expected <design>/seed-<n>.jsonl: train the designs first"
            )
    else:
        paths = [Path(path) for path in source]
    records, excluded = {}, []
    for path in paths:
        record = read_record(path, metric=metric)
        if record is None:
            excluded.append(f"{path} is not finished and is left out; train on to use it")
            continue
        key = (record.label, record.seed)
        if key in records:
            raise ValueError(
                f"{path}: design {key[0]!r} with seed {key[1]} is already in {records[key].path}; remove one of them"
            )
        records[key] = record
    return RecordSet(tuple(records[key] for key in sorted(records)), tuple(excluded))


def design_points(records: RecordSet | Iterable[Record]) -> list[DesignPoint]:
    """The designs as a simulator needs them, read from the ``config`` of their records.

    Records can thus be combined with new times without the designs' files and without training code.

    Parameters
    ----------
    records : RecordSet or iterable of Record
        Runs whose ``config`` holds ``design.hardware`` and ``gemms``.

    Returns
    -------
    list of DesignPoint
        In the order in which designs first appear.

    Raises
    ------
    ValueError
        If a config lacks them, or two runs of a design state different ones.

    Examples
    --------
    >>> from softnum.tta import load_reports
    >>> table = load_reports().designs["a-float32"].to_table()
    >>> config = {"design": {"name": "a-float32", "hardware": table["hardware"]}, "gemms": table["gemms"]}
    >>> run = Record("a-float32", 1, 32, 90, (Evaluation(90, 0.9),), config, versions={})
    >>> design_points([run])[0].hardware.array
    (32, 32)
    """
    points: dict[str, DesignPoint] = {}
    for record in records.records if isinstance(records, RecordSet) else records:
        design = record.config.get("design")
        hardware = design.get("hardware") if isinstance(design, dict) else None
        gemms = record.config.get("gemms")
        if not hardware or not gemms:
            raise ValueError(
                f"{record.path or record.design}: its config states no {'gemms' if hardware else 'hardware'}, so its "
                "iteration cannot be simulated; give a timing file, or state [hardware] in the design and train again"
            )
        table = {"name": record.label, "hardware": hardware, "gemms": gemms}
        point = DesignPoint.from_table(table, f"{record.path}: design")
        if points.setdefault(record.label, point) != point:
            raise ValueError(
                f"{record.path}: hardware or GEMMs of design {record.label!r} differ between its runs; "
                "train one of them again"
            )
    return list(points.values())


def check_target(target: object) -> float:
    """Return the target as a float, or raise an error that says what a target is."""
    if isinstance(target, bool) or not isinstance(target, (int, float)):
        raise InputTypeError(f"target must be a number such as 0.95, got {target!r}")
    if not math.isfinite(target):
        raise ValueError(f"target must be finite, got {target!r}")
    return float(target)

"""One way to read learning curves, whatever wrote them."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from softnum.tta.accuracy.curves import Given, Reader, csv_curves, jsonl_curves, mllog_curve
from softnum.tta.accuracy.dawnbench import dawnbench_curve, dawnbench_files, is_dawnbench
from softnum.tta.accuracy.nanogpt import is_nanogpt, nanogpt_curve
from softnum.tta.accuracy.records import Record, RecordSet, keep_record, read_records
from softnum.tta.mllog import files_of, is_mllog
from softnum.tta.text import read_text

__all__ = ["ACCURACY_FORMATS", "AccuracyFormat", "read_accuracy"]


@dataclass(frozen=True)
class AccuracyFormat:
    """A form of learning curves that can be read.

    Parameters
    ----------
    description : str
        What it is, in a line.
    layout : str
        Where its layout is laid down.
    read : callable
        Takes a path, its text and what is given; returns a `RecordSet`.

    Examples
    --------
    >>> row = '{"design": "a", "iteration": 9, "accuracy": 1}'
    >>> ACCURACY_FORMATS["jsonl"].read(Path("curve.jsonl"), row, Given(batch=8)).records[0].evaluations
    (Evaluation(iteration=9, value=1.0, epoch=None),)
    """

    description: str
    layout: str
    read: Reader


def _records(path: Path, text: str, given: Given) -> RecordSet:
    why = "a record of softnum.train says it all"
    given.unused(path, "seed", "batch", "iterations_per_epoch", "counts_from", why=why)
    found = read_records([path], metric=given.metric)
    label = next((record.label for record in found.records if given.design not in (None, record.label)), None)
    if label is not None:
        raise ValueError(f"{path}: a record of {label!r}, and {given.design!r} is given too; leave it out")
    return found


#: The forms of learning curves, by the name that `read_accuracy` takes.
ACCURACY_FORMATS: Mapping[str, AccuracyFormat] = {
    "softnum": AccuracyFormat("record of softnum.train", "docs/training.md", _records),
    "csv": AccuracyFormat(
        "CSV of any framework, one row for each evaluation, commas or tabs", "softnum.tta.accuracy.curves", csv_curves
    ),
    "jsonl": AccuracyFormat("JSON lines of any framework, the same keys", "softnum.tta.accuracy.curves", jsonl_curves),
    "mllog": AccuracyFormat("log of an MLPerf training run", "github.com/mlcommons/logging, mllog.py", mllog_curve),
    "dawnbench": AccuracyFormat(
        "entry of DAWNBench: .tsv with its .json",
        "github.com/stanford-futuredata/dawn-bench-entries, README.md",
        dawnbench_curve,
    ),
    "nanogpt": AccuracyFormat(
        "log of modded-nanogpt", "github.com/KellerJordan/modded-nanogpt, train_gpt.py", nanogpt_curve
    ),
}


def read_accuracy(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    metric: str = "accuracy",
    design: str | None = None,
    seed: int | None = None,
    batch: int | None = None,
    iterations_per_epoch: int | None = None,
    counts_from: int | None = None,
) -> RecordSet:
    """Read learning curves: a file, or a folder of them.

    Parameters
    ----------
    path : path-like
        A file of one of `ACCURACY_FORMATS`; or a folder: of a comparison (its ``records``), of records
        (``<label>/seed-<n>.jsonl``), or of ``<label>/<file>`` with files of any of the forms, each of that label; or of
        entries of DAWNBench, each a design; or, with `design`, of the MLPerf logs of one submission, or of logs of
        modded-nanogpt, which are its repetitions.
    format : str, optional
        Name of the form. Default: detected. A file with ``:::MLLOG``, ``:::MLL`` or ``:::MLPv0.5.0`` is an
        MLPerf log; a table with tabs, epoch, hours and a metric of DAWNBench, or the JSON of its entry, is that; one
        with lines like ``step:1/9 val_loss:3.2 train_time:9ms`` is of modded-nanogpt; one whose first line is a JSON
        object is a record of softnum.train if it has ``config`` and ``versions``, else JSON lines; every other
        text is CSV.
    metric : str
        Name of the metric: a column, or an event ``eval_<metric>`` of an MLPerf log, or a part of its eval_accuracy,
        such as BBOX or FID.
    design : str, optional
        Label of the curves in a file that names none.
    seed : int, optional
        Seed of a file that names none. Default: 1.
    batch : int, optional
        Samples per iteration of a file that does not say.
    iterations_per_epoch : int, optional
        Needed if evaluations are given by epoch only.
    counts_from : int, optional
        0 if the file's first epoch (or iteration) is number 0, 1 if number 1. Default: 1, and a 0 is an error.

    Returns
    -------
    RecordSet
        By label and seed.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a file is malformed or lacks what is not given; the message names file, line, reason and way out.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "curves.csv")
    ...     _ = file.write_text("design,seed,epoch,val_acc\\nbase,1,1,0.8\\nbase,1,2,0.9\\n")
    ...     runs = read_accuracy(file, metric="val_acc", batch=32, iterations_per_epoch=100)
    >>> [(e.iteration, e.value) for e in runs.records[0].evaluations]
    [(100, 0.8), (200, 0.9)]
    """
    given = Given(metric, design, seed, batch, iterations_per_epoch, counts_from)
    if format is not None and format not in ACCURACY_FORMATS:
        near = difflib.get_close_matches(str(format), ACCURACY_FORMATS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"there is no form of curves {format!r}; forms: {', '.join(ACCURACY_FORMATS)}{hint}")
    path = Path(path)
    if path.is_dir():
        return _folder(path, format, given)
    return _file(path, format, given)


def _file(path: Path, format: str | None, given: Given) -> RecordSet:
    text = read_text(path, f"no learning curves {str(path)!r}; expected a file or a folder of them", mixed=is_mllog)
    if not text.strip():
        raise ValueError(f"{path}: is empty; expected learning curves ({', '.join(ACCURACY_FORMATS)})")
    return ACCURACY_FORMATS[format or _detect(text)].read(path, text, given)


def _detect(text: str) -> str:
    """The form of a text; the rule stands in `read_accuracy`."""
    for name, knows in (("mllog", is_mllog), ("dawnbench", is_dawnbench), ("nanogpt", is_nanogpt)):
        if knows(text):
            return name
    first = text.lstrip().partition("\n")[0]
    if not first.startswith("{"):
        return "csv"
    try:
        row = json.loads(first)
    except (ValueError, RecursionError):
        return "jsonl"
    return "softnum" if isinstance(row, dict) and {"config", "versions"} <= set(row) else "jsonl"


def _folder(folder: Path, format: str | None, given: Given) -> RecordSet:
    records: dict[tuple[str, int], Record] = {}
    if not any(folder.glob("*/seed-*.jsonl")) and (folder / "records").is_dir():
        folder = folder / "records"
    if given.design is None and (folder / "train").is_dir() and dawnbench_files(folder / "train"):
        folder = folder / "train"  # of a task of DAWNBench, beside its inference
    if format in (None, "softnum") and any(folder.glob("*/seed-*.jsonl")):
        why = "records of softnum.train name design and seed, and say the rest"
        given.unused(folder, "design", "seed", "batch", "iterations_per_epoch", "counts_from", why=why)
        return read_records(folder, metric=given.metric)
    files = sorted(file for file in folder.glob("*/*") if file.is_file() and not file.name.startswith("."))
    if not files and (found := _logs(folder, format, given)):
        for record in (record for runs in found for record in runs.records):
            keep_record(records, record)
        return RecordSet(
            tuple(records[key] for key in sorted(records)), tuple(line for runs in found for line in runs.excluded)
        )
    if not files:
        here = files_of(folder)
        there = "it has no files" if not here else f"{', '.join(file.name for file in here[:3])} lie in it without one"
        raise FileNotFoundError(
            f"no learning curves in the folder {str(folder)!r}; expected <label>/seed-<n>.jsonl as softnum writes "
            f"them, or <label>/<file> of another framework; {there}: name the file, or NAME=FOLDER where logs of one "
            "design lie in it"
        )
    if given.design is not None:
        raise ValueError(f"{folder}: its folders name the designs, and {given.design!r} is given too; leave it out")
    excluded: list[str] = []
    for file in files:
        found = _file(file, format, Given(**{**vars(given), "design": file.parent.name}))
        excluded += found.excluded
        for record in found.records:
            keep_record(records, record)
    return RecordSet(tuple(records[key] for key in sorted(records)), tuple(excluded))


def _logs(folder: Path, format: str | None, given: Given) -> list[RecordSet]:
    """What lies in a folder itself: entries of DAWNBench, each a design; or repetitions, by name, of one design."""
    kinds: dict[str, list[Path]] = {}
    for file in files_of(folder):
        if (kind := _kind(read_text(file, "", mixed=lambda text: True))) is not None:
            kinds.setdefault(kind, []).append(file)
    entries = dawnbench_files(folder)
    if given.design is not None and entries:
        raise ValueError(
            f"{folder}: its entries of DAWNBench name the designs ({entries[0].name}, ...), and {given.design!r} is "
            "given too; leave it out, or name one file"
        )
    if len(kinds) > 1 and (given.design is not None or entries):
        told = " and ".join(f"{files[0].name} ({kind})" for kind, files in kinds.items())
        raise ValueError(f"{folder}: holds curves of several kinds: {told}; name the files, or keep one kind in it")
    if given.design is None:
        return [_file(file, format, given) for file in entries]
    if "mllog" in kinds:  # of one submission; their seeds are in them
        return [_file(file, format, given) for file in kinds["mllog"]]
    found, seed = [], 1 if given.seed is None else given.seed
    for file in kinds.get("nanogpt", ()):
        runs = _file(file, format, replace(given, seed=seed))
        seed += len(runs.records)
        found.append(runs)
    return found


def _kind(text: str) -> str | None:
    """The form of a text, as far as it shows without being asked for; None of what is no curve."""
    kind = _detect(text)
    if kind in ("csv", "jsonl"):  # what every other text is taken for
        first = text.lstrip().partition("\n")[0]
        names = set(re.findall(r"\w+", first))
        kind = kind if names & {"iteration", "step", "epoch"} and len(names) > 1 else None
    return kind

"""Entries of DAWNBench as they are published: a table of epochs, hours and metrics, and what ran it beside it.

``NAME.tsv`` has a row for each evaluation: epoch, hours since the start, and top1Accuracy (CIFAR10), both of
top1Accuracy and top5Accuracy (ImageNet), or f1Score (SQuAD). ``NAME.json`` says who, what and on which hardware, and
``costPerHour`` in dollars where it was rented. The figures published are the hours, and the dollars, at the first row
that reaches the target.

Source: README.md of github.com/stanford-futuredata/dawn-bench-entries. How many iterations an epoch has is not in an
entry, and entries call their first epoch 0 or 1; so evaluations are counted, which the rules ask for at the end of
every epoch.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from softnum.tta.accuracy.curves import Given, curves_of
from softnum.tta.accuracy.records import Record, RecordSet
from softnum.tta.mlperf.benchmarks import MLPerfTarget
from softnum.tta.text import delimiter_of, read_text, table_rows

__all__ = ["dawnbench_curve", "dawnbench_files", "is_dawnbench"]

#: by metric: the task, its target, and the column that only another task's entries have
_TASKS = {
    "top1Accuracy": ("CIFAR10", 94.0, "top5Accuracy"),
    "top5Accuracy": ("ImageNet", 93.0, None),
    "f1Score": ("SQuAD", 0.75, None),
}
_FIELDS = {"version", "author", "framework", "hardware", "timestamp"}
_FORM = "epoch, hours and top1Accuracy, top5Accuracy or f1Score, as DAWNBench's entries have them"


def is_dawnbench(text: str) -> bool:
    """Whether a text is an entry of DAWNBench: its table, or what is said of it.

    >>> is_dawnbench("epoch\\thours\\ttop1Accuracy\\n1\\t0.1\\t38.5\\n"), is_dawnbench("epoch,hours,acc\\n")
    (True, False)
    """
    head = text.lstrip()
    if head.startswith("{"):
        try:
            return _is_entry(json.loads(text))
        except (ValueError, RecursionError):
            return False
    line = head.partition("\n")[0]
    columns = {cell.strip() for cell in line.split("\t")}
    return delimiter_of(line) == "\t" and {"epoch", "hours"} <= columns and not columns.isdisjoint(_TASKS)


def _is_entry(value: object) -> bool:
    return isinstance(value, dict) and value.keys() >= _FIELDS


def dawnbench_files(folder: Path) -> list[Path]:
    """The tables of DAWNBench's entries that lie in a folder, by name."""
    files = sorted(file for file in folder.iterdir() if _stem(file, ".tsv") is not None and file.is_file())
    return [file for file in files if is_dawnbench(read_text(file, "", mixed=lambda text: True))]


def _stem(path: Path, ending: str) -> str | None:
    """The name of an entry; None for a file of another kind."""
    name = path.name.removesuffix(".gz")
    return name.removesuffix(ending) if name.endswith(ending) else None


def _beside(path: Path, stem: str, ending: str) -> Path | None:
    files = [path.with_name(f"{stem}{ending}{packed}") for packed in ("", ".gz")]
    return next((file for file in files if file.is_file()), None)


def dawnbench_curve(path: Path, text: str, given: Given) -> RecordSet:
    """Read an entry, from either of its two files.

    Raises
    ------
    ValueError
        If a file is malformed, the table is not beside what is said of it, or the values are not in the unit of the
        task.
    """
    stem = _stem(path, ".tsv") or _stem(path, ".json") or path.name
    if text.lstrip().startswith("{"):
        table = _beside(path, stem, ".tsv")
        if table is None:
            raise ValueError(
                f"{path}: what an entry of DAWNBench says of itself, without its curve; expected {stem}.tsv beside it"
            )
        about, said, path = _about(path, text), path, table
        text = read_text(table, "")
    else:
        said = _beside(path, stem, ".json")
        about = {} if said is None else _about(said, read_text(said, ""))
    given = replace(given, design=stem if given.design is None else given.design)
    rows = table_rows(path, text, lambda where, header: _check_header(where, header, given.metric), what=_FORM)
    rows = [(where, {name: cell for name, cell in row.items() if cell}) for where, row in rows]
    unit = "evaluation" if given.iterations_per_epoch is None else None
    (record,) = curves_of(path, rows, given, unit=unit).records
    return RecordSet((_entry(record, rows, given.metric, about, said),))


def _about(path: Path, text: str) -> Mapping[str, Any]:
    try:
        about = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not readable as JSON ({error}), as an entry of DAWNBench has it") from None
    if not _is_entry(about):
        raise ValueError(f"{path}: not what an entry of DAWNBench says of itself: {', '.join(sorted(_FIELDS))}")
    return about


def _check_header(where: str, header: list[str], metric: str) -> None:
    metrics = [name for name in header if name in _TASKS]
    if {"epoch", "hours"} - set(header) or not metrics:
        raise ValueError(f"{where}: expected {_FORM}, got {', '.join(header)}")
    if metric not in header:
        raise ValueError(
            f"{where}: no column {metric!r}, but {', '.join(metrics)}; say which with --metric {metrics[-1]}"
        )


def _entry(record: Record, rows: list[Any], metric: str, about: Mapping[str, Any], said: Path | None) -> Record:
    """The run with what its benchmark asks for, and what it cost."""
    columns = {name for _, row in rows for name in row}
    task, value, other = _TASKS.get(metric, (None, math.nan, None))
    task = "ImageNet" if "top5Accuracy" in columns else task
    target = None
    if not math.isnan(value) and other not in columns:
        target = MLPerfTarget(value, "higher", f"DAWNBench's {task}")
        values = [evaluation.value for evaluation in record.evaluations if math.isfinite(evaluation.value)]
        if values and (max(values) <= 1) != (value <= 1):
            unit = "a share of 1" if value <= 1 else "per cent"
            raise ValueError(
                f"{record.path}: {metric} of {task} is in {unit}, and the largest value here is {max(values):g}; "
                "write it in that unit"
            )
        most = 1 if value <= 1 else 100
        for evaluation, (where, _) in zip(record.evaluations, [row for row in rows if metric in row[1]], strict=True):
            if not (math.isnan(evaluation.value) or 0 <= evaluation.value <= most):
                raise ValueError(f"{where}: {metric} of {task} lies between 0 and {most}, got {evaluation.value:g}")
    rent = about.get("costPerHour")
    if rent is not None and (isinstance(rent, bool) or not isinstance(rent, (int, float)) or not 0 < rent < math.inf):
        raise ValueError(f"{said}: costPerHour must be a number of dollars above 0, or left out, got {rent!r}")
    return replace(
        record,
        config={"data": f"DAWNBench {task}"} if task else {},
        rent=None if rent is None else float(rent),
        target=target,
    )

"""Measured times of a sweep's models, laid over its roofline: a CSV, or the JSON that ParaDnn's scripts write.

CSV: a column for each hyper-parameter of the kind (`SWEEPS`), by its name there or in ParaDnn's labels, and the time of
an iteration as one or more of ``seconds``, ``steps_per_second`` and ``samples_per_second``, which have to agree.
Optional: ``kind``, ``device``, ``precision``, ``optimiser`` and ``parameters``, which are compared with the sweep's.
Rows of one model are repetitions; their median counts.

ParaDnn's JSON (scripts/get_perf.py of github.com/Emma926/paradnn): lists of one length, ``labels`` such as
"layer_4-node_32-input_2000-output_200-bs_64", ``step_per_sec``, ``example_per_sec``, ``params``, ``flops`` (10^9 a
second) and ``fl`` (10^9 an iteration); ``err_jobs`` and ``states`` of the runs that failed. Its FLOPs are compared with
each other only: of a TPU board they are one core's, an eighth.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from softnum.tta.architectures.paradnn import SWEEPS
from softnum.tta.text import count, number, read_text, table_rows

__all__ = ["AGREE", "STATED", "Measured", "Point", "read_measured"]

#: Names of hyper-parameters in ParaDnn's labels.
_LABELS = {
    "fc": {"layers": "layer", "nodes": "node", "inputs": "input", "outputs": "output", "batch": "bs"},
    "cnn": {"blocks": "block", "filters": "filtersz", "image": "input", "classes": "output", "batch": "batchsize"},
    "rnn": {
        "layers": "layer", "embedding": "embeddingsize", "length": "maxlength", "vocabulary": "vocabsize",
        "batch": "batchsize",
    },
}  # fmt: skip
_ALIASES = {"step_per_sec": "steps_per_second", "example_per_sec": "samples_per_second", "params": "parameters"}
_TIMES = ("seconds", "steps_per_second", "samples_per_second")
#: What a row may state of the sweep, and has to state alike.
STATED = ("precision", "optimiser")
#: How far numbers may differ that say the same: ParaDnn prints parameters to two places of thousands or millions.
AGREE = 0.01
_WHAT = "a CSV with a column for each hyper-parameter, and seconds, steps_per_second or samples_per_second"


@dataclass(frozen=True)
class Point:
    """A measurement: where it stands, the model's hyper-parameters in the order of its sweep, seconds an iteration."""

    where: str
    sizes: tuple[int, ...]
    seconds: float
    parameters: float | None = None
    stated: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Measured:
    """The measurements of one kind in a file.

    Parameters
    ----------
    path : str
    sha256 : str
    kind : str
    points : tuple of Point
    out_of_memory : tuple of tuple of int
        Models whose runs are listed as out of memory.
    unread : tuple of str
        Columns that nothing was made of.
    """

    path: str
    sha256: str
    kind: str
    points: tuple[Point, ...]
    out_of_memory: tuple[tuple[int, ...], ...] = ()
    unread: tuple[str, ...] = ()


def read_measured(path: str | Path, kinds: Sequence[str], device: str | None = None) -> dict[str, Measured]:
    """Read measured times of the models of some sweeps.

    Parameters
    ----------
    path : path-like
        A CSV, or JSON as ParaDnn's scripts write it, plain or in gzip.
    kinds : sequence of str
        Keys of `SWEEPS` that are asked for. A file without a column ``kind`` has to be of one of them alone.
    device : str, optional
        Rows that state another device are left out.

    Returns
    -------
    dict of str to Measured
        Of the kinds that the file has.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is malformed, contradicts itself, or has nothing of these kinds and this device.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "measured.csv")
    ...     _ = file.write_text("layers,nodes,inputs,outputs,batch,steps_per_second\\n4,32,2000,200,64,250\\n")
    ...     read_measured(file, ["fc"])["fc"].points[0].seconds
    0.004
    """
    path = Path(path)
    text = read_text(path, f"no measurements {str(path)!r}; expected {_WHAT}, or ParaDnn's JSON")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if text.lstrip().startswith(("{", "[")):
        kind, points, failed, unread = _paradnn(path, text, kinds)
        return {kind: Measured(str(path), digest, kind, tuple(points), failed, unread)}
    points, unread = _csv(path, text, kinds, device)
    return {kind: Measured(str(path), digest, kind, tuple(found), (), unread) for kind, found in points.items()}


# -- CSV ---------------------------------------------------------------------------------------------------------------
def _names(kind: str) -> dict[str, str]:
    """Name in ParaDnn's labels -> hyper-parameter."""
    group = "fc" if kind == "fc" else "cnn" if kind.startswith("cnn-") else "rnn"
    return {theirs: ours for ours, theirs in _LABELS[group].items()}


def _csv(path: Path, text: str, kinds, device) -> tuple[dict[str, list[Point]], tuple[str, ...]]:
    if "," not in text and "\t" in text:
        text = text.replace("\t", ",")
    header: list[str] = []

    def check(where: str, columns: list[str]) -> None:
        header.extend(columns)
        if {"fits", "compute_bound"} <= set(columns):
            raise ValueError(
                f"{where}: this is the table of a sweep, whose seconds are estimates; give measured times, in {_WHAT}"
            )
        if not {_ALIASES.get(name, name) for name in columns} & set(_TIMES):
            raise ValueError(f"{where}: no column {', '.join(_TIMES)}, but {', '.join(columns)}; expected {_WHAT}")
        if "kind" not in columns:
            _only_kind(where, columns, kinds)

    found: dict[str, list[Point]] = {}
    others: Counter[Any] = Counter()
    for where, row in table_rows(path, text, check, what=_WHAT):
        if device is not None and row.get("device", device) != device:
            others[f"device {row['device']}"] += 1
            continue
        kind = row["kind"] if "kind" in row else _only_kind(where, header, kinds)
        if kind not in SWEEPS:
            raise ValueError(f"{where}: unknown kind {kind!r}; known: {', '.join(SWEEPS)}")
        if kind not in kinds:
            others[f"kind {kind}"] += 1
            continue
        found.setdefault(kind, []).append(_point(where, row, kind))
    if not found:
        why = "; ".join(f"rows of {what}: {rows}" for what, rows in others.items()) or "it has no rows"
        asked = f"{', '.join(kinds)}{'' if device is None else f' on {device}'}"
        raise ValueError(f"{path}: no measurement of {asked}: {why}")
    known = {*_TIMES, *STATED, "kind", "device", "parameters"} | {name for kind in found for name in SWEEPS[kind]}
    theirs = {name for kind in found for name in _names(kind)}
    unread = [name for name in header if _ALIASES.get(name, name) not in known and name not in theirs]
    return found, tuple(unread)


def _only_kind(where: str, columns: Iterable[str], kinds: Sequence[str]) -> str:
    """The one kind that the columns are of."""
    columns = set(columns)
    fitting = [kind for kind in kinds if {_names(kind).get(c, c) for c in columns} >= set(SWEEPS[kind])]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise ValueError(
            f"{where}: the columns are those of {', '.join(fitting)} alike; add a column kind, or sweep one of them"
        )
    lacks = {kind: [n for n in SWEEPS[kind] if n not in {_names(kind).get(c, c) for c in columns}] for kind in kinds}
    nearest = min(lacks, key=lambda kind: len(lacks[kind]))
    raise ValueError(
        f"{where}: no column {', '.join(lacks[nearest])} of {nearest}'s hyper-parameters {', '.join(SWEEPS[nearest])}; "
        f"the columns are {', '.join(sorted(columns))}"
    )


def _point(where: str, row: Mapping[str, str], kind: str) -> Point:
    given: dict[str, str] = {}
    for column, cell in row.items():
        name = _names(kind).get(column, _ALIASES.get(column, column))
        if name in given:
            raise ValueError(f"{where}: column {column!r} says what another column says, {name}; leave one of them out")
        if cell != "":
            given[name] = cell
    missing = [name for name in SWEEPS[kind] if name not in given]
    if missing:
        raise ValueError(f"{where}: no {missing[0]}, which {kind} has; expected {', '.join(SWEEPS[kind])}")
    sizes = tuple(count(where, name, given[name]) for name in SWEEPS[kind])
    seconds = _seconds(
        where, {name: float(number(where, name, given[name])) for name in _TIMES if name in given}, sizes
    )
    parameters = float(number(where, "parameters", given["parameters"])) if "parameters" in given else None
    return Point(where, sizes, seconds, parameters, {name: given[name] for name in STATED if name in given})


def _seconds(where: str, given: Mapping[str, float], sizes: tuple[int, ...]) -> float:
    """Seconds of an iteration; an error if what is given differs, or is no time."""
    if not given:
        raise ValueError(f"{where}: no time; expected {', '.join(_TIMES)}")
    convert: dict[str, Callable[[float], float]] = {
        "seconds": lambda value: value,
        "steps_per_second": lambda value: 1 / value,
        "samples_per_second": lambda value: sizes[-1] / value,
    }
    found = {}
    for name, value in given.items():
        if not 1e-12 <= value <= 1e12:
            raise ValueError(f"{where}: {name} must lie between 1e-12 and 1e12, got {value:g}")
        found[name] = convert[name](value)
    (first, seconds), *rest = found.items()
    for name, other in rest:
        if abs(other - seconds) > AGREE * seconds:
            raise ValueError(
                f"{where}: {first} {given[first]:g} and {name} {given[name]:g} contradict each other at a batch of "
                f"{sizes[-1]}: {seconds:.6g} s and {other:.6g} s for an iteration"
            )
    return seconds


# -- ParaDnn's JSON ----------------------------------------------------------------------------------------------------
def _paradnn(path: Path, text: str, kinds: Sequence[str]):
    try:
        table = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not readable as JSON ({error}); expected {_WHAT}, or ParaDnn's JSON") from None
    read = ("step_per_sec", "example_per_sec", "params", "flops", "fl")
    labels = table.get("labels") if isinstance(table, dict) else None
    if not isinstance(labels, list) or not labels or not {"step_per_sec", "example_per_sec"} & set(table):
        keys = ", ".join(map(repr, table)) if isinstance(table, dict) else type(table).__name__
        raise ValueError(f"{path}: expected ParaDnn's lists labels and step_per_sec or example_per_sec, got {keys}")
    lists = {name: table[name] for name in read if name in table}
    for name, values in lists.items():
        if not isinstance(values, list) or len(values) != len(labels):
            size = len(values) if isinstance(values, list) else "no list"
            raise ValueError(f"{path}: {name} has {size} values and labels {len(labels)}; they belong together")
    kind, points = None, []
    for index, label in enumerate(labels):
        where = f"{path}, labels[{index}]"
        kind, sizes = _label(where, label, kinds if kind is None else [kind])
        value = {name: float(number(where, name, values[index])) for name, values in lists.items()}
        given = {_ALIASES[name]: value[name] for name in ("step_per_sec", "example_per_sec") if name in value}
        if {"fl", "flops", "step_per_sec"} <= set(value):
            rate = value["fl"] * value["step_per_sec"]
            if abs(rate - value["flops"]) > AGREE * rate:
                raise ValueError(
                    f"{where}: flops {value['flops']:g} is not fl {value['fl']:g} times step_per_sec "
                    f"{value['step_per_sec']:g}, which is {rate:g}"
                )
        points.append(Point(where, sizes, _seconds(where, given, sizes), value.get("params")))
    failed = []
    jobs, states = (table.get(name, []) for name in ("err_jobs", "states"))
    if not isinstance(jobs, list) or not isinstance(states, list):
        raise ValueError(f"{path}: err_jobs and states must be lists, of the runs that failed and why, or left out")
    if len(jobs) != len(states):
        raise ValueError(f"{path}: err_jobs has {len(jobs)} values and states {len(states)}; they belong together")
    measured = {label: index for index, label in enumerate(labels)}
    for index, (label, state) in enumerate(zip(jobs, states, strict=True)):
        if isinstance(label, str) and label in measured:
            raise ValueError(
                f"{path}: {label} is measured, labels[{measured[label]}], and failed, err_jobs[{index}] with the state "
                f"{state!r}; a run does one of them: remove the entry that is wrong"
            )
        if state == "OOM":
            failed.append(_label(f"{path}, err_jobs[{index}]", label, [kind])[1])
    unread = tuple(name for name in table if name not in (*read, "labels", "err_jobs", "states"))
    return kind, points, tuple(failed), unread


def _label(where: str, label: object, kinds: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    parts = re.findall(r"([a-z]+)_(\d+)(?:-|$)", label) if isinstance(label, str) else []
    if not parts or "-".join(f"{name}_{value}" for name, value in parts) != label:
        raise ValueError(f"{where}: {label!r} is no label like layer_4-node_32-input_2000-output_200-bs_64")
    kind = _only_kind(where, [name for name, _ in parts], kinds)
    sizes = {_names(kind).get(name): count(where, name, value) for name, value in parts}
    return kind, tuple(sizes[name] for name in SWEEPS[kind])

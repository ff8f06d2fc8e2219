"""Logs of MLPerf training, of every round: lines with a mark, in three forms.

One event a line, with whatever a launcher put before it; all other lines are left alone::

    :::MLLOG {"namespace": "", "time_ms": 1592864409128, "event_type": "INTERVAL_START", "key": "epoch_start",
              "value": null, "metadata": {"file": "train.py", "lineno": 112, "epoch_num": 1}}       since 0.7
    :::MLL 1558420845.819 epoch_start: {"value": null, "metadata": {"epoch_num": 1, "lineno": 681}}       0.6
    :::MLPv0.5.0 resnet 1541720285.246510744 (train.py:49) train_epoch: 1                                 0.5

Events of 0.5 are given the keys and metadata of later rounds where they mean the same (`train_epoch` is `epoch_start`).

Layout: mlperf_logging/mllog/mllog.py of github.com/mlcommons/logging, and compliance_checker/mlp_parser there for the
older forms. What the keys mean: mllog/constants.py.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from softnum.tta.text import read_text

__all__ = ["MLLog", "MLLogEvent", "files_of", "is_mllog", "mllog_files", "read_mllog"]

_MARK = ":::MLLOG"
_MARKS = re.compile(r":::(MLLOG|MLL(?=[ \t])|MLPv\d+\.\d+(?:\.\d+)?(?=[ \t]))")
_ROUND_6 = re.compile(r"\s*(\d+(?:\.\d*)?)\s+(\w+)\s*:\s*(.*)")
_ROUND_5 = re.compile(r"\s*(\w+)\s+(\d+(?:\.\d*)?)\s+\((.*?):(\d+)\)\s+(\w+)\s*(?::\s*(.*?))?\s*")
_KEYS_5 = {"train_epoch": "epoch_start", "run_set_random_seed": "seed", "preproc_num_train_examples": "train_samples"}
_TYPES = ("INTERVAL_START", "INTERVAL_END", "POINT_IN_TIME")
_YEAR_2200 = 7258118400000  # in milliseconds since 1970
_FIELDS = ("namespace", "time_ms", "event_type", "key", "value", "metadata")


def is_mllog(text: str) -> bool:
    """Whether a text has a line of an MLPerf log."""
    return _MARKS.search(text) is not None


def files_of(folder: Path) -> list[Path]:
    """The files that lie in a folder, by name, but for hidden ones."""
    return sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))


def mllog_files(folder: Path) -> list[Path]:
    """The MLPerf logs that lie in a folder, by name."""
    return [file for file in files_of(folder) if is_mllog(read_text(file, "", mixed=lambda text: True))]


@dataclass(frozen=True)
class MLLogEvent:
    """One line of an MLPerf log.

    Parameters
    ----------
    line : int
        Its line in the file, from 1.
    time_ms : int, float or None
        Milliseconds since 1970; None where the line states no time.
    event_type : str
        "INTERVAL_START", "INTERVAL_END" or "POINT_IN_TIME".
    key : str
        What happened: "run_start", "epoch_stop", "eval_accuracy", "global_batch_size", ...
    value : object
        Any JSON value; None for most intervals.
    metadata : Mapping
        "file", "lineno" and what belongs to the key: "epoch_num", "first_epoch_num", "epoch_count", "samples_count",
        "step", "status".
    namespace : str
        As the program set it; empty by default.

    Examples
    --------
    >>> MLLogEvent(7, 1000, "POINT_IN_TIME", "eval_accuracy", 0.9, {"epoch_num": 3}).metadata["epoch_num"]
    3
    """

    line: int
    time_ms: int | float | None
    event_type: str
    key: str
    value: object = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    namespace: str = ""


@dataclass(frozen=True)
class MLLog:
    """An MLPerf log: one run.

    Parameters
    ----------
    path : str
        The file.
    events : tuple of MLLogEvent
        In the order of the file; at least one.
    lines : int
        Lines of the file.
    cut_off : int or None
        The line of an event that the end of the file cut off in the middle.
    form : str
        "MLLOG", "MLL" (round 0.6) or "MLPv0.5.0" and the like.
    benchmark : str or None
        What was trained, as the log says: "resnet", "bert", ...

    Examples
    --------
    >>> log = MLLog("run.log", (MLLogEvent(1, 0, "INTERVAL_START", "run_start"),), 1)
    >>> log.finished, log.value("global_batch_size")
    (False, None)
    """

    path: str
    events: tuple[MLLogEvent, ...]
    lines: int
    cut_off: int | None = None
    form: str = "MLLOG"
    benchmark: str | None = None

    @property
    def finished(self) -> bool:
        """Whether there is a ``run_stop``: the run came to its end, whatever its status."""
        return any(event.key == "run_stop" for event in self.events)

    @property
    def status(self) -> str | None:
        """What ``run_stop`` says: "success" or "aborted"; None where it says nothing or there is none."""
        stops = self.of("run_stop")
        return stops[-1].metadata.get("status") if stops else None

    def of(self, *keys: str) -> list[MLLogEvent]:
        """Return the events with one of these keys, in order.

        Examples
        --------
        >>> log = MLLog("run.log", (MLLogEvent(1, 0, "POINT_IN_TIME", "seed", 5),), 1)
        >>> [event.value for event in log.of("seed")]
        [5]
        """
        return [event for event in self.events if event.key in keys]

    def value(self, key: str, default: object = None) -> object:
        """Return the value of a key that a run logs once, as "global_batch_size"; `default` where it is absent.

        Raises
        ------
        ValueError
            If it is logged again with another value.

        Examples
        --------
        >>> log = MLLog("run.log", (MLLogEvent(1, 0, "POINT_IN_TIME", "global_batch_size", 256),), 1)
        >>> log.value("global_batch_size")
        256
        """
        first, *others = self.of(key) or [None]
        for other in others:
            if other.value != first.value:
                raise ValueError(
                    f"{self.path}, line {other.line}: {key} is {other.value!r}, where line {first.line} gives "
                    f"{first.value!r}; expected one run in the file, with one {key}"
                )
        return default if first is None else first.value

    def end(self) -> str:
        """Return where the log stops, for messages about an unfinished one.

        Examples
        --------
        >>> MLLog("run.log", (MLLogEvent(3, 0, "POINT_IN_TIME", "eval_accuracy", 0.5, {"epoch_num": 2}),), 9).end()
        "the last event is 'eval_accuracy' (epoch_num 2) at line 3 of 9"
        """
        last = self.events[-1]
        told = ", ".join(f"{name} {last.metadata[name]}" for name in last.metadata if name not in ("file", "lineno"))
        cut = "" if self.cut_off is None else f", and line {self.cut_off} is cut off"
        return f"the last event is {last.key!r}{f' ({told})' if told else ''} at line {last.line} of {self.lines}{cut}"


def read_mllog(path: str | os.PathLike[str], *, text: str | None = None) -> MLLog:
    """Read the log of an MLPerf training run.

    Parameters
    ----------
    path : path-like
        The log. Lines without ``:::MLLOG``, ``:::MLL`` or ``:::MLPv0.5.0`` are left alone; what stands before it in a
        line, or after the event, is too.
    text : str, optional
        The log's contents, if they are already in memory; `path` is then only its name in messages.

    Returns
    -------
    MLLog
        Its events. An unfinished run is no error here: see `MLLog.finished` and `MLLog.end`.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a line is malformed, there is none, or the file holds several runs; the message names file and line.

    Examples
    --------
    >>> line = ':::MLLOG {"namespace": "", "time_ms": 5, "event_type": "POINT_IN_TIME", "key": "seed", "value": 1,'
    >>> read_mllog("run.log", text=f'0: {line} "metadata": {{"lineno": 8}}}}').events[0].key
    'seed'
    """
    if text is None:
        missing = f"no MLPerf log {str(path)!r}; expected a file with {_MARK} lines"
        text = read_text(Path(path), missing, mixed=is_mllog)
    events, cut_off, forms, benchmark = [], None, {}, None
    lines = text.split("\n")
    count = len(lines) - (not lines[-1])
    for number, line in enumerate(lines, start=1):
        for mark in _MARKS.finditer(line):
            where, rest = f"{path}, line {number}", line[mark.end() :]
            try:
                if mark[1] == "MLLOG":
                    event = _event(where, number, _decoded(rest))
                elif mark[1] == "MLL":
                    event = _event_6(where, number, rest)
                else:
                    event, benchmark = _event_5(where, number, rest)
            except json.JSONDecodeError as error:
                if number == len(lines):  # no newline after it
                    cut_off = number
                    break
                raise ValueError(_broken(where, mark[0], error)) from None
            except RecursionError as error:
                raise ValueError(_broken(where, mark[0], error)) from None
            if "\ufffd" in f"{event.key}{event.value}":
                raise ValueError(f"{where}: not UTF-8 text in an event ({event.key}); save it as UTF-8")
            events.append(event)
            forms.setdefault(mark[1], number)
    if len(forms) > 1:
        (first, one), (second, other) = list(forms.items())[:2]
        raise ValueError(
            f"{path}, line {other}: an event in the form {second}, where line {one} has the form {first}; expected one "
            "run in the file"
        )
    if not events:
        where = (
            f"line {cut_off} is cut off" if cut_off else f"no {_MARK} line, nor one of older rounds, in {count} lines"
        )
        raise ValueError(f"{path}, line {max(count, 1)}: {where}; expected the log of an MLPerf training run")
    names = [event.value for event in events if event.key == "submission_benchmark" and isinstance(event.value, str)]
    log = MLLog(str(path), tuple(events), count, cut_off, next(iter(forms)), names[0] if names else benchmark)
    for key in ("run_start", "run_stop"):
        if len(again := log.of(key)) > 1:
            raise ValueError(
                f"{path}, line {again[1].line}: a second {key} (the first: line {again[0].line}); expected one run, "
                "logged by one process; split the file"
            )
    return log


def _broken(where: str, mark: str, error: Exception) -> str:
    form = f'{_MARK} {{"namespace": ..., "time_ms": ..., "event_type": ..., "key": ..., "value": ..., "metadata": ...}}'
    return (
        f"{where}: no JSON object after {mark} ({error}); expected {form}, or the form of rounds 0.5 and 0.6; was the "
        "line broken by another process?"
    )


def _decoded(rest: str) -> object:
    """The JSON value that a text begins with; a progress bar may follow it."""
    text = rest.lstrip()
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # numbers too long
        raise json.JSONDecodeError(str(error), text, 0) from None


def _event(where: str, number: int, row: object) -> MLLogEvent:
    if not isinstance(row, dict):
        raise ValueError(f"{where}: expected an object after {_MARK}, got {row!r}")
    if "key" not in row:
        raise ValueError(f"{where}: lacks 'key'; expected {', '.join(_FIELDS)}")
    key, metadata = row["key"], row.get("metadata")
    if not isinstance(key, str) or not key:
        raise ValueError(f"{where}: key must be a name, got {key!r}")
    time, kind = row.get("time_ms"), row.get("event_type", _type_of(key))
    if time is None and row.get("time_s") is not None:
        time = _milliseconds(where, "time_s", row["time_s"])
    metadata = {} if metadata is None else metadata
    if time is not None and (isinstance(time, bool) or not isinstance(time, (int, float)) or not _finite(time)):
        raise ValueError(f"{where}: time_ms must be a number of milliseconds, got {time!r}")
    if time is not None and not 0 <= time < _YEAR_2200:
        raise ValueError(f"{where}: {time:g} ms are no time since 1970, up to the year 2200; is it in another unit?")
    if kind not in _TYPES:
        raise ValueError(f"{where}: event_type must be one of {', '.join(_TYPES)}, got {kind!r}")
    if not isinstance(metadata, dict):
        raise ValueError(f"{where}: metadata must be an object, got {metadata!r}")
    namespace = row.get("namespace")
    return MLLogEvent(number, time, kind, key, row.get("value"), metadata, "" if namespace is None else str(namespace))


def _event_6(where: str, number: int, rest: str) -> MLLogEvent:
    found = _ROUND_6.match(rest)
    if found is None:
        raise json.JSONDecodeError("not '<seconds> <key>: {...}'", rest, 0)
    row = _decoded(found[3])
    if not isinstance(row, dict):
        raise ValueError(f"{where}: expected an object with value and metadata after {found[2]}, got {row!r}")
    time = _milliseconds(where, "the time", float(found[1]))
    return _event(where, number, {**row, "time_ms": time, "key": found[2], "event_type": _type_of(found[2])})


def _event_5(where: str, number: int, rest: str) -> tuple[MLLogEvent, str]:
    found = _ROUND_5.fullmatch(rest)
    if found is None:
        raise json.JSONDecodeError("not '<benchmark> <seconds> (<file>:<line>) <key>: <value>'", rest, 0)
    benchmark, time, file, line, key, value = found.groups()
    metadata = {"file": file, "lineno": int(line)}
    if value is not None:
        with contextlib.suppress(ValueError, RecursionError):  # else a text of the program's own
            value = json.loads(value)
    if isinstance(value, dict) and {"epoch", "value"} >= set(value) and "value" in value:
        metadata |= {} if value.get("epoch") is None else {"epoch_num": value["epoch"]}
        value = value["value"]
    if key in ("train_epoch", "eval_start", "eval_stop") and value is not None:
        metadata["epoch_num"] = value
    if key == "run_stop" and isinstance(value, dict) and isinstance(value.get("success"), bool):
        metadata["status"] = "success" if value["success"] else "aborted"
    key = _KEYS_5.get(key, key)
    row = {"time_ms": _milliseconds(where, "the time", float(time)), "key": key, "value": value, "metadata": metadata}
    return _event(where, number, row), benchmark


def _milliseconds(where: str, name: str, seconds: object) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not _finite(seconds):
        raise ValueError(f"{where}: {name} must be a number of seconds, got {seconds!r}")
    return round(seconds * 1000, 3)  # a microsecond; the seconds since 1970 hold no more in binary64


def _type_of(key: str) -> str:
    """The type of an event that states none."""
    return {"start": "INTERVAL_START", "stop": "INTERVAL_END"}.get(key.rpartition("_")[2], "POINT_IN_TIME")


def _finite(number: float) -> bool:
    try:
        return math.isfinite(float(number))
    except OverflowError:
        return False

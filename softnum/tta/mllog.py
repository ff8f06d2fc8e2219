"""Logs of MLPerf training: lines with ``:::MLLOG`` and a JSON object, as the package mlperf_logging writes them.

One event a line, with whatever a launcher put before it; all other lines are left alone::

    :::MLLOG {"namespace": "", "time_ms": 1592864409128, "event_type": "INTERVAL_START", "key": "epoch_start",
              "value": null, "metadata": {"file": "train.py", "lineno": 112, "epoch_num": 1}}

Layout: mlperf_logging/mllog/mllog.py of github.com/mlcommons/logging. What the keys mean: constants.py beside it.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from softnum.tta.text import read_text

__all__ = ["MLLog", "MLLogEvent", "read_mllog"]

_MARK = ":::MLLOG"
_OLDER = re.compile(r":::(MLPv[\d.]+|MLL) ")  # of MLPerf 0.5 and 0.6
_TYPES = ("INTERVAL_START", "INTERVAL_END", "POINT_IN_TIME")
_FIELDS = ("namespace", "time_ms", "event_type", "key", "value", "metadata")


@dataclass(frozen=True)
class MLLogEvent:
    """One line of an MLPerf log.

    Parameters
    ----------
    line : int
        Its line in the file, from 1.
    time_ms : int or float
        Milliseconds since 1970.
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
    time_ms: int | float
    event_type: str
    key: str
    value: object = None
    metadata: Mapping = field(default_factory=dict)
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


def read_mllog(path: str | os.PathLike, *, text: str | None = None) -> MLLog:
    """Read the log of an MLPerf training run.

    Parameters
    ----------
    path : path-like
        The log. Lines without ``:::MLLOG`` are left alone; what stands before it in a line is too.
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
        text = read_text(Path(path), f"no MLPerf log {str(path)!r}; expected a file with {_MARK} lines")
    events, cut_off = [], None
    lines = text.split("\n")
    count = len(lines) - (not lines[-1])
    for number, line in enumerate(lines, start=1):
        _, mark, rest = line.partition(_MARK)
        if not mark:
            if older := _OLDER.search(line):
                raise ValueError(
                    f"{path}, line {number}: written in the form of MLPerf 0.5 or 0.6 ({older[0].strip()}); expected "
                    f"{_MARK} lines, of mlperf_logging 0.7 and later"
                )
            continue
        try:
            row = json.loads(rest)
        except (ValueError, RecursionError) as error:  # not JSON, numbers too long, brackets too deep
            if number == len(lines) and isinstance(error, json.JSONDecodeError):  # no newline after it
                cut_off = number
                break
            raise ValueError(
                f"{path}, line {number}: no JSON object after {_MARK} ({error}); expected "
                f'{_MARK} {{"namespace": ..., "time_ms": ..., "event_type": ..., "key": ..., "value": ..., '
                '"metadata": ...}; was the line broken by another process?'
            ) from None
        events.append(_event(f"{path}, line {number}", number, row))
    if not events:
        where = f"line {cut_off} is cut off" if cut_off else f"no {_MARK} line in {count} lines"
        raise ValueError(f"{path}, line {max(count, 1)}: {where}; expected the log of an MLPerf training run")
    log = MLLog(str(path), tuple(events), count, cut_off)
    for key in ("run_start", "run_stop"):
        if len(again := log.of(key)) > 1:
            raise ValueError(
                f"{path}, line {again[1].line}: a second {key} (the first: line {again[0].line}); expected one run, "
                "logged by one process; split the file"
            )
    return log


def _event(where: str, number: int, row: object) -> MLLogEvent:
    if not isinstance(row, dict):
        raise ValueError(f"{where}: expected an object after {_MARK}, got {row!r}")
    lacking = [name for name in _FIELDS if name not in row and name not in ("namespace", "value", "metadata")]
    if lacking:
        raise ValueError(f"{where}: lacks {', '.join(map(repr, lacking))}; expected {', '.join(_FIELDS)}")
    time, kind, key, metadata = row["time_ms"], row["event_type"], row["key"], row.get("metadata")
    metadata = {} if metadata is None else metadata
    if isinstance(time, bool) or not isinstance(time, (int, float)) or not _finite(time):
        raise ValueError(f"{where}: time_ms must be a number of milliseconds, got {time!r}")
    if kind not in _TYPES:
        raise ValueError(f"{where}: event_type must be one of {', '.join(_TYPES)}, got {kind!r}")
    if not isinstance(key, str) or not key:
        raise ValueError(f"{where}: key must be a name, got {key!r}")
    if not isinstance(metadata, dict):
        raise ValueError(f"{where}: metadata must be an object, got {metadata!r}")
    namespace = row.get("namespace")
    return MLLogEvent(number, time, kind, key, row.get("value"), metadata, "" if namespace is None else str(namespace))


def _finite(number: float) -> bool:
    try:
        return math.isfinite(float(number))
    except OverflowError:
        return False

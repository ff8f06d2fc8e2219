"""Timelines in Chrome's trace format: ``{"traceEvents": [...]}`` or the list alone, as PyTorch's profiler (Kineto),
TensorFlow, JAX, VizTracer and others write them; also in gzip.

Complete events (``"ph": "X"``, with ``ts`` and ``dur``) are read, and pairs of begin and end (``"B"``, ``"E"``),
nested by process and thread. Times are in microseconds whatever ``displayTimeUnit`` says, which is for viewers. Source:
"Trace Event Format", the document linked from github.com/catapult-project/catapult; PyTorch's names:
libkineto/src/output_json.cpp of github.com/pytorch/kineto.

Iterations are the events that a marker matches; without one PyTorch's ``ProfilerStep#n``, which torch.profiler writes
where a schedule is used. Kineto shows each of them a second time on the GPU's track; that one is left out.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from softnum.tta.text import number
from softnum.tta.timings.ranges import Range, choose_ranges
from softnum.tta.timings.series import Options, Series

__all__ = ["event_seconds", "read_chrome_trace", "trace_events"]

_STEP = re.compile(r"^ProfilerStep#\d+")
_SECOND_SHOWN = "gpu_user_annotation"
_HOW = 'expected {"traceEvents": [...]} or a list of events, as torch.profiler\'s export_chrome_trace writes it'


def read_chrome_trace(path: Path, text: str, options: Options) -> list[Series]:
    """Read the timeline of one design: the seconds of each iteration."""
    events = trace_events(path, text)
    if options.marker is None:
        options = replace(options, marker=_STEP)
        if not any(isinstance(event.get("name"), str) and _STEP.match(event["name"]) for event in events):
            raise ValueError(
                f"{path}: no event 'ProfilerStep#n' of PyTorch's profiler among {len(events)}; say which events are "
                f"iterations with --marker; there are {_kinds(events)}"
            )
    ranges = [
        part
        for part, category in _ranges(path, events, options.marker)
        if category != _SECOND_SHOWN or not _STEP.match(part.name)
    ]
    if not ranges:
        raise ValueError(
            f"{path}: no event with a duration matches '{options.marker.pattern}'; there are {_kinds(events)}"
        )
    chosen, said = choose_ranges(str(path), ranges, options, "event")
    return [
        Series(
            options.design,
            [part.seconds for part in chosen],
            "measured",
            f"trace {path}",
            {"iterations": said.replace("range", "event"), "time": "from the beginning to the end of each event"},
        )
    ]


def trace_events(path: Path, text: str) -> list[dict[str, Any]]:
    """Return the events of a trace, each with its kind "ph"; numbers are left as they are written."""
    try:
        data = json.loads(text, parse_float=str, parse_int=str)  # exact: 1669329643132548.123 is no binary64
    except json.JSONDecodeError as error:
        at_end = not text[error.pos :].strip()
        stop = "the trace stops here, in the middle" if at_end else f"not JSON ({error.msg})"
        raise ValueError(
            f"{path}, line {error.lineno}: {stop}, after {_last_name(text[: error.pos])}; write it again when the "
            "program has ended"
        ) from None
    except (ValueError, RecursionError) as error:  # brackets too deep
        raise ValueError(f"{path}, line 1: not readable as JSON ({error}); {_HOW}") from None
    events = data.get("traceEvents") if isinstance(data, dict) else data
    if not isinstance(events, list):
        raise ValueError(f"{path}, line 1: no list of events; {_HOW}")
    for at, event in enumerate(events, start=1):
        if not isinstance(event, dict) or not isinstance(event.get("ph"), str):
            raise ValueError(f"{path}, event {at}: expected an object with 'ph', got {str(event)[:60]!r}; {_HOW}")
    if not events:
        raise ValueError(f"{path}, line 1: the list of events is empty; was the profiler on?")
    return events


def _last_name(text: str) -> str:
    names = re.findall(r'"name"\s*:\s*"([^"\\]{1,200})"', text[-20000:])
    return f"the event {names[-1]!r}" if names else "no event"


def _kinds(events: list[dict[str, Any]]) -> str:
    names = [event.get("name") for event in events if event["ph"] in "XB"]
    shown = list(dict.fromkeys(re.sub(r"\d+", "#", name) for name in names if isinstance(name, str)))
    return (", ".join(map(repr, shown[:8])) or "none") + (f" and {len(shown) - 8} more" if len(shown) > 8 else "")


def _ranges(path: Path, events: list[dict[str, Any]], marker: re.Pattern) -> list[tuple[Range, object]]:
    """The complete events and pairs whose name the marker matches, with their category."""
    ranges: list[tuple[Range, object]] = []
    open_events: dict[tuple[Any, ...], list[Any]] = {}
    for at, event in enumerate(events, start=1):
        kind, name = event["ph"], event.get("name")
        if kind not in ("X", "B", "E"):
            continue
        where = f"{path}, event {at}"
        track = (str(event.get("pid", "")), str(event.get("tid", "")))
        if kind == "X":
            if isinstance(name, str) and marker.search(name):
                start, seconds = (event_seconds(where, key, event) for key in ("ts", "dur"))
                ranges.append((Range(name, at, start, seconds, track), event.get("cat")))
        elif kind == "B":
            open_events.setdefault(track, []).append((at, name, event))
        else:
            if not open_events.get(track):
                raise ValueError(f"{where}: an end without a beginning on its thread; the first events are missing")
            begun, opened, first = open_events[track].pop()
            if name not in (None, opened):
                raise ValueError(f"{where}: the end of {name!r} where {opened!r}, event {begun}, is to end first")
            if isinstance(opened, str) and marker.search(opened):
                start, end = event_seconds(f"{path}, event {begun}", "ts", first), event_seconds(where, "ts", event)
                if end < start:
                    raise ValueError(f"{where}: {opened!r} ends before it begins, event {begun}")
                ranges.append((Range(opened, begun, start, end - start, track), first.get("cat")))
    for left in open_events.values():
        for at, name, _ in left:
            if isinstance(name, str) and marker.search(name):
                raise ValueError(
                    f"{path}, event {at}: {name!r} begins and does not end in {len(events)} events: the trace stops in "
                    "it; record whole iterations"
                )
    return ranges


#: in seconds since 1970; clocks of computers begin then or later
_YEAR_2200 = 7258118400


def event_seconds(where: str, key: str, event: dict[str, Any]) -> Fraction:
    """Return the seconds of an event's "ts" or "dur", exactly."""
    if key not in event:
        raise ValueError(f"{where}: {event.get('name')!r} lacks {key!r}; {_HOW}")
    seconds = number(where, key, event[key], positive=False) / 10**6
    if seconds > _YEAR_2200:
        raise ValueError(
            f"{where}: {key} {event[key]} of {event.get('name')!r} is later than the year 2200 in microseconds, the "
            "unit of timelines; is it in nanoseconds, or wrong?"
        )
    return seconds

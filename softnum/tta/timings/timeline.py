"""TensorFlow's timelines, one of each `Session.run`, as `Timeline.generate_chrome_trace_format` writes them.

Chrome's trace format. Each device has a process ``<device> Compute``, whose complete events are its operations
(``"cat": "Op"``, the node's name in ``args``); operations of a GPU stand there again by stream. No event is the step
itself, so that a step is what lies between the first operation's beginning and the last one's end. Several runs, merged
into one file by their users, are told apart by the nodes that run once in each. Source:
tensorflow/python/client/timeline.py of github.com/tensorflow/tensorflow.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from softnum.tta.timings.chrome import event_seconds, trace_events
from softnum.tta.timings.series import Options, Series

__all__ = ["is_timeline", "read_timeline"]

_PROCESS = re.compile(r'"name"\s*:\s*"/[^"\\]* Compute"')
_SOURCE = "_SOURCE"  # the node that every executor begins with


def is_timeline(text: str) -> bool:
    """Whether a trace has a process as TensorFlow names them.

    >>> is_timeline('{"name": "process_name", "args": {"name": "/job:localhost/replica:0/task:0/cpu:0 Compute"}}')
    True
    """
    return '"process_name"' in text and _PROCESS.search(text) is not None


_DAY = 86400


@dataclass(frozen=True)
class _Operation:
    at: int  # the number of its event
    process: str
    lane: str
    node: str
    start: Fraction
    end: Fraction


def read_timeline(path: Path, text: str, options: Options) -> list[Series]:
    """Read the timeline of one design: the seconds of its step, or of each of the merged ones."""
    operations = _operations(path, trace_events(path, text))
    steps = _steps(path, operations, options.iterations)
    seconds = [max(part.end for part in step) - min(part.start for part in step) for step in steps]
    for number, (step, length) in enumerate(zip(steps, seconds, strict=True), start=1):
        if not length:
            raise ValueError(f"{path}, event {step[0].at}: step {number} takes no time; is the clock too coarse?")
        if length > _DAY:
            first, last = min(step, key=lambda part: part.start), max(step, key=lambda part: part.end)
            raise ValueError(
                f"{path}, event {last.at}: step {number} takes {float(length):g} s, over a day, from the beginning "
                f"of {first.node!r}, event {first.at}, to the end of {last.node!r}; one of their times is wrong"
            )
    detail = {
        "iterations": "the file is one step, of one Session.run"
        if len(steps) == 1
        else f"{len(steps)} merged steps, as stated, told apart by the nodes that run once in each",
        "time": "from the beginning of the first operation on any device to the end of the last; what the program does "
        "between steps is not in it",
        "operations": len(operations),
    }
    return [Series(options.design, seconds, "measured", f"TensorFlow timeline {path}", detail)]


def _operations(path: Path, events: list[dict[str, Any]]) -> list[_Operation]:
    """The operations of all devices, in the order they began."""
    found = []
    for at, event in enumerate(events, start=1):
        if event["ph"] != "X" or event.get("cat") != "Op":
            continue
        where, arguments = f"{path}, event {at}", event.get("args")
        node = arguments.get("name") if isinstance(arguments, dict) else None
        if not isinstance(node, str):
            raise ValueError(f"{where}: the operation {event.get('name')!r} lacks the node's name in 'args'")
        start = event_seconds(where, "ts", event)
        process, lane = str(event.get("pid")), str(event.get("tid"))
        found.append(_Operation(at, process, lane, node, start, start + event_seconds(where, "dur", event)))
    if not found:
        raise ValueError(
            f"{path}: no operation among {len(events)} events; run with "
            "RunOptions(trace_level=RunOptions.FULL_TRACE) and pass run_metadata"
        )
    found.sort(key=lambda part: (part.start, part.at))
    _check_lanes(path, found)
    return found


def _check_lanes(path: Path, operations: Sequence[_Operation]) -> None:
    """Raise ValueError for an operation during which another one of its lane begins and ends.

    TensorFlow puts an operation into a lane, a thread of the timeline, that is free when it begins.
    """
    longest: dict[tuple[str, str], _Operation] = {}
    for part in operations:
        before = longest.setdefault((part.process, part.lane), part)
        if before.start < part.start and part.end < before.end:
            raise ValueError(
                f"{path}, event {before.at}: {before.node!r} takes {float(before.end - before.start):g} s, and "
                f"{part.node!r}, event {part.at}, begins and ends meanwhile in the same lane; one of the times is wrong"
            )
        if part.end > before.end:
            longest[part.process, part.lane] = part


def _steps(path: Path, operations: Sequence[_Operation], stated: int | None) -> list[list[_Operation]]:
    """The operations of each step; what the file says of the number of steps is compared with what is stated."""
    counts = Counter(part.node for part in operations)
    steps = stated or 1
    once = {node for node, times in counts.items() if times == steps}
    uneven = [node for node, times in counts.items() if times % steps]
    begun = counts[_SOURCE]
    starts = Counter(part.process for part in operations if part.node == _SOURCE)
    again = steps == 1 and min(starts.values(), default=1) > 1  # where runs are merged, processes may change numbers
    # loops run some nodes often, devices that take part show some again, but variables and updates run once a step
    if again or 10 * len(once) < len(counts) or begun % steps or 2 * len(uneven) > len(counts):
        usual, nodes = min(Counter(counts.values()).items(), key=lambda item: (-item[1], item[0]))
        said = "without --iterations a file is one step" if stated is None else f"--iterations says {stated}"
        source = f"; {_SOURCE!r}, with which every device begins a step, runs {begun} times" if begun else ""
        first = next(part for part in operations if counts[part.node] == usual)
        raise ValueError(
            f"{path}, event {first.at}: {said}, but {len(once)} of {len(counts)} nodes run so often, and {nodes} run "
            f"{usual} times, such as {first.node!r}{source}; state with --iterations how many runs were merged "
            "into the file"
        )
    return [list(operations)] if steps == 1 else _divided(path, operations, once, steps)


def _divided(path: Path, operations: Sequence[_Operation], once: set[Any], steps: int) -> list[list[_Operation]]:
    seen: Counter[Any] = Counter()
    last, first = [None] * steps, [None] * steps  # of the operations that run once: what ends last, what begins first
    for part in operations:
        if part.node in once:
            at = seen[part.node]
            seen[part.node] += 1
            if first[at] is None:
                first[at] = part
            if last[at] is None or part.end > last[at].end:
                last[at] = part
    cuts = []
    for number in range(1, steps):
        before, after = last[number - 1], first[number]
        if after.start < before.end:
            raise ValueError(
                f"{path}, event {after.at}: {after.node!r} of step {number + 1} begins before {before.node!r} of "
                f"step {number}, event {before.at}, ends; merged steps do not overlap: is the number of --iterations "
                "right? Else read a file of one step"
            )
        cuts.append(_widest_gap(operations, before.end, after.start))
    parts: list[list[_Operation]] = [[] for _ in range(steps)]
    number = 0
    for part in operations:
        while number < len(cuts) and part.start >= cuts[number]:
            number += 1
        parts[number].append(part)
    return parts


def _widest_gap(operations: Sequence[_Operation], begin: Fraction, end: Fraction) -> Fraction:
    """Where, from `begin` to `end`, the longest time without an operation ends."""
    reached, cut, widest = begin, end, Fraction(-1)
    for part in operations:
        if part.start > end or part.end < begin:
            continue
        if part.start >= begin and part.start - reached > widest:
            widest, cut = part.start - reached, part.start
        reached = max(reached, part.end)
    return cut

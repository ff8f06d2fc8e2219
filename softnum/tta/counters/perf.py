"""What ``perf stat`` counted: cycles, instructions, caches and branches of a processor, and what it did not count.

Its text, ``-x`` (fields without names) and ``-j`` (an object a line). Layouts: "CSV FORMAT" and "JSON FORMAT" in
tools/perf/Documentation/perf-stat.txt of the Linux kernel; util/stat-display.c for the text.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from softnum.runtime.plain import plain
from softnum.tta.text import lines_of, number, read_text

__all__ = ["RATIOS", "PerfEvent", "PerfStat", "read_perf_stat"]

_GAPS = ("<not counted>", "<not supported>")
_UNITS = {"": 1, "msec": Fraction(1, 1000), "ns": Fraction(1, 10**9), "Joules": 1, "Bytes": 1, "MiB": 2**20}
_TEXT = re.compile(
    r"\s+(?P<value><not (?:counted|supported)>|[\d,.]+)\s+(?:(?P<unit>msec|ns|Joules|Bytes|MiB)\s+)?"
    r"(?P<event>[A-Za-z_][\w:./=,-]*|[\w-]+/[^\s]*)\s*"
    r"(?:#(?P<metric>.*?))?(?:\(\s*\+-\s*(?P<spread>[\d.]+)%\s*\))?\s*(?:\((?P<running>[\d.]+)%\))?\s*"
)
_ENDINGS = re.compile(r"\s+([\d.,]+)(?: \+- [\d.]+)? seconds (time elapsed|user|sys)\b.*")
_BEGINS = re.compile(r"\s*Performance counter stats for .*:\s*")
_ENGLISH = re.compile(r"(\d{1,3}(,\d{3})+|\d+)(\.\d+)?", re.ASCII)
_LOCALE = "run perf again with LC_ALL=C"
_MORE = re.compile(r"([^\w<.\-])\1{4}")
_MODIFIERS = re.compile(r"(.+?)((:|(?<=/))[ukhHGDpPSIWe]+)?")
_CORES = re.compile(r"([\w-]+)/([\w-]+)/")  # of processors with two kinds of cores: cpu_core/cycles/

#: ratios of events, by title: over what, and whether it is a share that cannot be above 1
RATIOS = {
    "instructions a cycle": ("instructions", "cycles", False),
    "cache misses": ("cache-misses", "cache-references", True),
    "L1 data misses": ("L1-dcache-load-misses", "L1-dcache-loads", True),
    "last-level misses": ("LLC-load-misses", "LLC-loads", True),
    "branch misses": ("branch-misses", "branches", True),
}


@dataclass(frozen=True)
class PerfEvent:
    """One event.

    Parameters
    ----------
    name : str
        As perf has it, with its modifier.
    value : Fraction or None
        Counted, scaled by perf to the whole time where several events shared a counter; in seconds where the unit is a
        time, else in perf's unit. None where there is no figure.
    unit : str
        "" of a count; "s", "Joules", "byte".
    running : float or None
        Percent of the time in which it was counted; below 100 the value is perf's extrapolation. None where the file
        does not say, which in the text means 100.
    gap : str
        Why there is no figure: "not counted" or "not supported".
    line : int

    Examples
    --------
    >>> PerfEvent("cycles", None, "", 0.0, "not supported", 7).value is None
    True
    """

    name: str
    value: Fraction | None
    unit: str
    running: float | None
    gap: str
    line: int


@dataclass(frozen=True)
class PerfStat:
    """A run of ``perf stat``.

    Parameters
    ----------
    events : Mapping of str to PerfEvent
        By name without modifiers, in the order of the file.
    seconds : Fraction or None
        Wall-clock time; only the text has it.
    source : str

    Examples
    --------
    >>> events = {"cycles": PerfEvent("cycles", Fraction(400), "", 100.0, "", 1),
    ...           "instructions": PerfEvent("instructions", Fraction(900), "", 100.0, "", 2)}
    >>> PerfStat(events, None, "run.csv").ratios()["instructions a cycle"]
    2.25
    """

    events: Mapping[str, PerfEvent] = field(repr=False)
    seconds: Fraction | None
    source: str

    @property
    def multiplexed(self) -> dict[str, float]:
        """Percent of the time that events were counted in, of those that shared a counter."""
        return {name: event.running for name, event in self.events.items()
                if event.value is not None and event.running is not None and event.running < 100}  # fmt: skip

    def ratios(self) -> dict[str, float | str]:
        """Ratios of events by the names of `RATIOS`; where one has no figure, why, and none where neither is there.

        Of processors with several kinds of cores each kind has its own, such as "branch misses, cpu_core".
        """
        found: dict[str, float | str] = {}
        for title, above, below, _ in _ratios_of(self.events):
            parts = [self.events.get(name) for name in (above, below)]
            if not any(parts):
                continue
            lacks = [f"{name}: {'not in the file' if part is None else part.gap}"
                     for name, part in zip((above, below), parts, strict=True) if part is None or part.gap]  # fmt: skip
            if lacks:
                found[title] = "; ".join(lacks)
            elif not parts[1].value:
                found[title] = f"{below}: 0 were counted"
            else:
                found[title] = float(parts[0].value / parts[1].value)
        return found

    def to_table(self) -> dict[str, Any]:
        """Return plain JSON values; what was not counted is null, with the reason."""
        return {
            "source": self.source,
            "seconds": None if self.seconds is None else float(self.seconds),
            "events": [
                {"event": event.name, "value": None if event.value is None else float(event.value),
                 "unit": event.unit, "running_percent": event.running, "gap": event.gap}
                for event in self.events.values()
            ],
            "ratios": {title: value if isinstance(value, float) else None for title, value in self.ratios().items()},
            "gaps": {title: value for title, value in self.ratios().items() if isinstance(value, str)},
        }  # fmt: skip


def _ratios_of(events: Mapping[str, PerfEvent]) -> list[tuple[str, str, str, bool]]:
    """(title, event above, event below, whether it is a share) of every kind of cores that events are of."""
    kinds = dict.fromkeys(found[1] for name in events if (found := _CORES.fullmatch(name)))
    plain_ones = [(title, *ratio) for title, ratio in RATIOS.items()]
    return plain_ones + [
        (f"{title}, {kind}", f"{kind}/{above}/", f"{kind}/{below}/", share)
        for kind in kinds
        for title, above, below, share in plain_ones
    ]


@plain
def read_perf_stat(path: str | os.PathLike[str]) -> PerfStat:
    """Read the output of ``perf stat``: its text, or that of ``-x`` with any separator, or of ``-j``.

    Parameters
    ----------
    path : path-like
        As ``perf stat -o FILE`` writes it: UTF-8, or that in gzip.

    Returns
    -------
    PerfStat
        Events that perf says were not counted or are not supported have no value.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no such output; is of intervals (``-I``) or of single processors (``-A``, ``--per-core``), whose rows
        are parts of a whole; an event comes twice; a number is not English; a share of time is above 100 %; a time
        differs from the run time of its counter; or there are more misses than what they are misses of. The message
        names file and line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "run.csv")
    ...     _ = file.write_text("2000,,cycles,1000,100.00,,\\n<not supported>,,cache-misses,0,100.00,,\\n")
    ...     stat = read_perf_stat(file)
    >>> stat.events["cycles"].value, stat.events["cache-misses"].gap
    (Fraction(2000, 1), 'not supported')
    """
    path = Path(path)
    text = read_text(path, f"no file {str(path)!r}; expected what perf stat -o FILE writes")
    lines = [(at, line) for at, line in lines_of(text) if line.strip() and not line.startswith("#")]
    if not lines:
        raise ValueError(f"{path}: nothing was counted: no line but comments")
    if any(_BEGINS.fullmatch(line) for _, line in lines):
        events, time = _text(path, lines)
    else:
        rows = _json(path, lines) if lines[0][1].lstrip().startswith("{") else _fields(path, lines)
        events, time = _events(path, rows), None
    stat = PerfStat(events, time, str(path))
    ratios = stat.ratios()
    for title, above, below, share in _ratios_of(events):
        ratio = ratios.get(title)
        multiplexed = {above, below} & stat.multiplexed.keys()
        if share and isinstance(ratio, float) and ratio > 1 and not multiplexed:
            line = events[above].line
            raise ValueError(
                f"{path}, line {line}: {above} are {float(events[above].value):g}, more than the "
                f"{float(events[below].value):g} {below} that they are of; one is wrong"
            )
    return stat


def _events(path: Path, rows) -> dict[str, PerfEvent]:
    events: dict[str, PerfEvent] = {}
    for line, name, value, unit, runtime, running in rows:
        where = f"{path}, line {line}"
        key = _MODIFIERS.fullmatch(name)[1]
        if key in events:
            raise ValueError(
                f"{where}: event {name!r} again, at line {events[key].line} before; expected the sums of one run, "
                "without -I, -A, --per-core and the like"
            )
        if unit not in _UNITS:
            raise ValueError(f"{where}: the unit of {name} must be one of {', '.join(filter(None, _UNITS))} or none, "
                             f"got {unit!r}")  # fmt: skip
        share = None if running in (None, "") else float(number(where, "the percentage", running, positive=False))
        if share is not None and share > 100:
            raise ValueError(f"{where}: {name} was counted in {share:g} % of the time; at most 100 % can be")
        if value in _GAPS:
            events[key] = PerfEvent(name, None, "", share, value.strip("<>"), line)
            continue
        if not _ENGLISH.fullmatch(value):
            raise ValueError(f"{where}: {name} must be a number like 1,234.5 or one of {', '.join(_GAPS)}, got "
                             f"{value[:40]!r}; {_LOCALE}")  # fmt: skip
        found = number(where, name, value.replace(",", ""), positive=False)
        if unit == "" and found.denominator != 1:
            raise ValueError(f"{where}: {name} counts and must be a whole number, got {value!r}; {_LOCALE}")
        if share == 0:
            raise ValueError(f"{where}: {name} is {value} and was counted in 0 % of the time; one is wrong")
        found *= _UNITS[unit]
        timed = unit in ("msec", "ns") and key in ("task-clock", "cpu-clock")
        if timed and runtime not in (None, ""):
            ran = number(where, "the run time of the counter", runtime, positive=False) / 10**9
            if abs(ran - found) > Fraction(1, 100) * max(ran, found) + Fraction(1, 10**5):
                raise ValueError(
                    f"{where}: {name} is {float(found):g} s, and its counter ran for {float(ran):g} s; one is wrong"
                )
        kind = "s" if unit in ("msec", "ns") else "byte" if unit in ("Bytes", "MiB") else unit
        events[key] = PerfEvent(name, found, kind, share, "", line)
    if not events:
        raise ValueError(f"{path}: has no event; expected what perf stat -o FILE writes")
    return events


def _fields(path: Path, lines: list[Any]):
    """(line, event, value, unit, run time, percentage) of the rows of -x."""
    marks = "<not supported>", "<not counted>"
    for at, line in lines:
        where = f"{path}, line {at}"
        if line[0] in ",;:|\t" and _MORE.match(line) and line.strip(line[0]):
            continue  # further metrics of the row above
        marked = next((mark for mark in marks if line.startswith(mark)), None)
        head = marked or (found[0] if (found := re.match(r"[0-9.]+", line)) else None)
        if head is None or len(line) == len(head):
            if line.strip(",;:|\t ") == "":
                raise ValueError(f"{where}: a row without fields; leave out --metric-only, whose rows have no counts")
            raise ValueError(
                f"{where}: no row of perf stat -x: {line[:60]!r}; expected counter value, unit, event, run time, "
                "percentage, of one run without -I, -A, --per-core and the like"
            )
        mark = line[len(head)]
        cells = line.split(mark)
        if mark.isalnum() or len(cells) < 5:
            raise ValueError(f"{where}: {len(cells)} fields; expected at least 5 of perf stat -x: is the file cut off?")
        value, unit, event, *rest = cells
        if mark == "," and "/" in event and not event.endswith(("/", "/u", "/k")) and event.count("/") == 1:
            raise ValueError(
                f"{where}: event {event!r} has commas of its own, as the fields do; use another separator: -x ';'"
            )
        if rest and rest[0].endswith("%"):  # the spread of -r
            rest = rest[1:]
        if not event or len(rest) < 2:
            raise ValueError(f"{where}: names no event, or no share of time: {line[:60]!r}; is the file cut off?")
        yield at, event, value, unit, rest[0], rest[1]


def _json(path: Path, lines: list[Any]):
    """The same of -j."""
    for at, line in lines:
        where = f"{path}, line {at}"
        try:
            row = json.loads(line, object_pairs_hook=partial(_once, where), parse_float=str, parse_int=str)
        except RecursionError:
            row = None
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{where}: not JSON ({error}); expected a row of perf stat -j: is the file cut off?"
            ) from None
        if not isinstance(row, dict):
            raise ValueError(f"{where}: no object; expected a row of perf stat -j")
        parts = [key for key in ("interval", "cpu", "core", "die", "socket", "node", "thread") if key in row]
        if parts:
            raise ValueError(f"{where}: is of one {parts[0]}, not of the whole run; leave out -I, -A, --per-core and "
                             "the like")  # fmt: skip
        if "counter-value" not in row and "metric-value" in row:
            continue  # further metrics of the row above
        missing = [key for key in ("counter-value", "event") if not isinstance(row.get(key), str)]
        if missing or not row["event"]:
            raise ValueError(f"{where}: has no {(missing or ['event'])[0]}; expected a row of perf stat -j")
        value = row["counter-value"]
        value = value.removesuffix(".000000") if value.endswith(".000000") else value
        yield at, row["event"], value, str(row.get("unit", "")), row.get("event-runtime"), row.get("pcnt-running")


def _once(where: str, pairs: list[Any]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{where}: {twice[0]!r} comes twice")
    return dict(pairs)


def _text(path: Path, lines: list[Any]) -> tuple[dict[str, PerfEvent], Fraction | None]:
    """Events and wall-clock time of the text."""
    begins = [at for at, line in lines if _BEGINS.fullmatch(line)]
    if len(begins) > 1:
        raise ValueError(
            f"{path}, line {begins[1]}: a second run; expected one in the file (perf stat without --append)"
        )
    rows, times = [], {}
    for at, line in lines:
        if at <= begins[0]:
            continue
        where = f"{path}, line {at}"
        if ending := _ENDINGS.fullmatch(line):
            if ending[2] in times:
                raise ValueError(f"{where}: a second line of seconds {ending[2]}")
            if not _ENGLISH.fullmatch(ending[1]):
                raise ValueError(f"{where}: seconds must be a number like 1,234.5, got {ending[1]!r}; {_LOCALE}")
            times[ending[2]] = number(where, f"seconds {ending[2]}", ending[1].replace(",", ""), positive=False)
            continue
        found = _TEXT.fullmatch(line)
        if found is None:
            if times or (re.match(r"\s+(\S.*)?#", line) and not re.match(r"\s+[\d<]", line)):
                continue  # hints after the end, or further metrics of the row above
            raise ValueError(f"{where}: no line of perf stat: {line.strip()[:60]!r}; expected a count and an event")
        if times:
            raise ValueError(f"{where}: event {found['event']!r} after the seconds, with which perf ends")
        rows.append((at, found["event"], found["value"], found["unit"] or "", None, found["running"]))
    if "time elapsed" not in times:
        raise ValueError(f"{path}: no line of seconds time elapsed, with which perf ends: is the file cut off?")
    return _events(path, rows), times["time elapsed"]

"""Logs of ASTRA-sim: what every rank ("sys") of a job took.

Its workload layer prints a line for each rank when that is done, and its statistics the same time again::

    [2026-11-28 10:00:05.951] [workload] [info] sys[4] finished, 55222 cycles, exposed communication 55222 cycles.
    [2026-11-28 10:00:05.951] [statistics] [info] sys[4], Wall time: 55222

A cycle is a nanosecond, whatever the system (CLOCK_PERIOD in astra-sim/system/Common.hh). The iteration takes as long
as its slowest rank. Sources: Workload::report and Statistics::report in astra-sim/workload of
github.com/astra-sim/astra-sim.
"""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

from softnum.tta.text import lines_with
from softnum.tta.timings.series import Options, Series, spread

__all__ = ["is_astrasim", "read_astrasim"]

_FINISHED = re.compile(r"sys\[(\d+)\] finished, (\d+) cycles, exposed communication (\d+) cycles")
_TOLD = re.compile(
    r"^.*(?:sys\[\d+\] finished,|sys\[\d+\], (?:Wall|Comm|GPU) time:|\[(?:C|critical)\]).*$", re.MULTILINE
)
_SECOND = re.compile(r"sys\[(\d+)\], (Wall|Comm|GPU) time: (\d+)")
_CRITICAL = re.compile(r"\[(?:C|critical)\] (.*)$")
_HERTZ = 10**9
_WHOLE = "keep all that ASTRA-sim printed, of one run"


def is_astrasim(text: str) -> bool:
    """Whether a text has a line of a rank that is done.

    >>> is_astrasim("[workload] [info] sys[3] finished, 50904 cycles, exposed communication 50904 cycles.")
    True
    """
    return _FINISHED.search(text) is not None


def read_astrasim(path: Path, text: str, options: Options) -> list[Series]:
    """Read the log of one design: the cycles of its slowest rank."""
    finished: dict[int, tuple[int, int, int]] = {}  # line, cycles, exposed
    again: dict[str, dict[int, tuple[int, int]]] = {"Wall": {}, "Comm": {}, "GPU": {}}
    for at, line in lines_with(_TOLD, text):
        where = f"{path}, line {at}"
        if found := _FINISHED.search(line):
            rank, cycles, exposed = map(int, found.groups())
            if rank in finished:
                raise ValueError(f"{where}: sys[{rank}] is done again, after line {finished[rank][0]}; {_WHOLE}")
            if not cycles:
                raise ValueError(f"{where}: sys[{rank}] took no time; were its traces empty?")
            finished[rank] = (at, cycles, exposed)
        elif found := _SECOND.search(line):
            again[found[2]][int(found[1])] = (at, int(found[3]))
        elif found := _CRITICAL.search(line):
            raise ValueError(f"{where}: ASTRA-sim ended with an error: {found[1]}")
        else:
            raise ValueError(f"{where}: not as ASTRA-sim writes it: {line.strip()[:80]!r}; {_WHOLE}")
    if not finished:
        raise ValueError(f"{path}, line 1: no rank is done; expected lines of 'sys[0] finished'; {_WHOLE}")
    missing = next((rank for rank in range(max(finished) + 1) if rank not in finished), None)
    if missing is not None:
        raise ValueError(
            f"{path}: sys[{missing}] is not done, and sys[{max(finished)}] is: cut off, or its traces wait for each "
            f"other; {_WHOLE}"
        )
    for rank, (at, wall) in again["Wall"].items():
        done = f"done after {finished[rank][1]}, line {finished[rank][0]}" if rank in finished else "not done"
        if rank not in finished or finished[rank][1] != wall:
            raise ValueError(f"{path}, line {at}: sys[{rank}] has a wall time of {wall} cycles and is {done}; {_WHOLE}")
    slowest = max(finished, key=lambda rank: (finished[rank][1], -rank))
    _, cycles, exposed = finished[slowest]
    least = min(cycles for _, cycles, _ in finished.values())
    parts, each = spread(str(path), [Fraction(cycles, _HERTZ)], options.iterations, "run")
    busy = {kind: again[kind][slowest][1] for kind in ("GPU", "Comm") if slowest in again[kind]}
    taken = f"of {options.iterations} iterations as stated" if options.iterations else "taken for one iteration"
    return [
        Series(
            options.design,
            parts,
            "simulated",
            f"ASTRA-sim log {path}",
            {
                "iterations": f"one run of {len(finished)} ranks, {taken}",
                "column": f"'finished' of the slowest rank, sys[{slowest}]; a cycle is a nanosecond",
                "clock_hz": float(_HERTZ),
                "cycles": cycles,
                "ranks": len(finished),
                "slowest_rank": slowest,
                "fastest_cycles": least,
                "exposed_cycles": exposed,
                **{f"{kind.lower()}_cycles": value for kind, value in busy.items()},
            },
            each=each,
        )
    ]

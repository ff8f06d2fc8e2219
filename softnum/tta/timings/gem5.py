"""gem5's stats.txt, with the names of today (simTicks) and those before gem5 21 (sim_ticks).

Each dump stands between ``---------- Begin Simulation Statistics ----------`` and ``---------- End Simulation
Statistics   ----------``, one statistic a line: name, value, ``#``, description. Sources: src/base/stats/text.cc and
src/sim/root.cc of github.com/gem5/gem5, and "Understanding gem5 statistics and output" at
www.gem5.org/documentation/learning_gem5/part1/gem5_stats.

simTicks counts from the last reset of the statistics, finalTick from the beginning of the simulation and is never
reset. So a dump whose simTicks is no more than what finalTick has grown by since the dump before was preceded by a
reset: it is worth its simTicks. One whose simTicks has grown by as much as finalTick was not: it is worth the growth.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from softnum.tta.text import count, lines_of, number
from softnum.tta.timings.series import Options, Series, spread
from softnum.tta.timings.whose import NO_NAMES

__all__ = ["read_gem5"]

_BEGIN, _END = "---------- Begin Simulation Statistics", "---------- End Simulation Statistics"
_NAMES = {
    "sim_ticks": "simTicks",
    "sim_freq": "simFreq",
    "sim_seconds": "simSeconds",
    "final_tick": "finalTick",
}
_NEEDED = ("simSeconds", "simTicks", "simFreq", "finalTick")


@dataclass
class _Dump:
    begin: int
    values: dict[str, tuple[int, str]] = field(default_factory=dict)
    cycles: dict[str, int] = field(default_factory=dict)


def read_gem5(path: Path, text: str, options: Options) -> list[Series]:
    """Read the dumps of one design: simulated seconds of each."""
    dumps = _dumps(path, text)
    windows, resets, last = [], [], None
    for index, dump in enumerate(dumps, start=1):
        facts = _facts(path, index, dump)
        seconds, was_reset = _window(path, index, dump, facts, last)
        windows.append(seconds)
        resets.append(was_reset)
        last = facts
    said = f"each of {len(windows)} dumps is an iteration" if len(windows) > 1 else "one dump, one iteration"
    if len(windows) > 1 and options.iterations is None:
        said += "; gem5 also dumps at its exit: state --iterations if the last is that one"
    used = windows
    if options.iterations is not None:
        if options.iterations == len(windows) - 1:
            used = windows[:-1]
            said = f"each of the first {len(used)} dumps is an iteration; the last, at gem5's exit, is left out"
        else:
            said = f"{options.iterations} iterations over {len(windows)} dumps, as stated"
    for at, seconds in enumerate(used, start=1):
        if not seconds:
            raise ValueError(
                f"{path}, line {dumps[at - 1].begin}: dump {at} of {len(dumps)} covers no time (simTicks 0); an "
                "iteration takes some; if it is gem5's dump at exit, state --iterations"
            )
    if not options.iterations or len(used) != len(windows):
        parts, each = used, 1
    else:
        parts, each = spread(str(path), used, options.iterations, "dumps")
    return [
        Series(
            options.design,
            parts,
            "simulated",
            f"gem5 statistics {path}",
            {
                "iterations": said,
                "network": NO_NAMES,
                "column": "'simTicks' over 'simFreq'",
                "dumps": len(dumps),
                "dumps_after_a_reset": sum(resets),
                "ticks_per_second": int(last["simFreq"]),
                "cpu_cycles": [dump.cycles for dump in dumps[: len(used)]],
            },
            each,
        )
    ]


def _dumps(path: Path, text: str) -> list[_Dump]:
    dumps: list[_Dump] = []
    current, last, key = None, 0, ""
    for at, line in lines_of(text):
        last = at
        where = f"{path}, line {at}"
        if line.startswith(_BEGIN):
            if current is not None:
                raise ValueError(
                    f"{where}: dump {len(dumps) + 1}, begun at line {current.begin}, has no end before the next "
                    "begins; gem5 was ended in the middle of it; remove it or simulate again"
                )
            current, key = _Dump(at), ""
        elif line.startswith(_END):
            if current is None:
                raise ValueError(f"{where}: the end of a dump that has no beginning; keep the whole file")
            dumps.append(current)
            current = None
        elif current is not None and (words := line.split("#")[0].split()):
            if len(words) < 2:
                raise ValueError(
                    f"{where}: expected a name and a value, got {line!r}; dump {len(dumps) + 1} is damaged or cut off"
                )
            key = words[0]
            name = _NAMES.get(key, key)
            if name in _NEEDED:
                if name in current.values:
                    raise ValueError(f"{where}: {key} again in one dump, after line {current.values[name][0]}")
                current.values[name] = (at, words[1])
            elif name.endswith(".numCycles"):
                current.cycles[name] = count(where, name, words[1], positive=False)
        elif current is None and line.strip():
            raise ValueError(
                f"{where}: expected {_BEGIN!r}, got {line[:60]!r}; is this gem5's stats.txt, and all of it?"
            )
    if current is not None:
        stop = f"its last statistic is {key!r}" if key else "it is empty"
        raise ValueError(
            f"{path}, line {last}: the file stops in dump {len(dumps) + 1}, begun at line {current.begin}: {stop}, and "
            f"no {_END!r} follows; whole dumps before it: {len(dumps)}; let gem5 finish, or remove the last one"
        )
    if not dumps:
        raise ValueError(f"{path}, line {max(last, 1)}: no {_BEGIN!r} in {last} lines; expected gem5's stats.txt")
    return dumps


def _facts(path: Path, index: int, dump: _Dump) -> dict[str, Fraction]:
    facts = {}
    for name in _NEEDED:
        if name not in dump.values:
            old = next(before for before, today in _NAMES.items() if today == name)
            raise ValueError(
                f"{path}, line {dump.begin}: dump {index} lacks {name} ({old} before gem5 21); keep the whole dump"
            )
        line, value = dump.values[name]
        read = number if name == "simSeconds" else count
        facts[name] = read(f"{path}, line {line}", name, value, positive=name == "simFreq")
    seconds, exact = facts["simSeconds"], Fraction(facts["simTicks"]) / facts["simFreq"]
    if abs(seconds - exact) > max(Fraction(1, 10**6), exact / 10**5):  # it is printed with six decimals
        raise ValueError(
            f"{path}, line {dump.values['simSeconds'][0]}: simSeconds is {float(seconds):g} where simTicks / simFreq "
            f"is {float(exact):g}; the dump is of no one run"
        )
    return facts


def _window(
    path: Path, index: int, dump: _Dump, facts: dict[str, Any], last: dict[str, Any] | None
) -> tuple[Fraction, bool]:
    """Seconds since the dump before, or since the reset after it; and whether there was such a reset."""
    frequency, ticks = facts["simFreq"], facts["simTicks"]
    if last is None:
        return Fraction(ticks, frequency), False
    where = f"{path}, line {dump.values['simTicks'][0]}"
    if frequency != last["simFreq"]:
        raise ValueError(f"{where}: dump {index} has {frequency} ticks a second, the one before {last['simFreq']}")
    grown = facts["finalTick"] - last["finalTick"]
    if 0 <= ticks <= grown:
        return Fraction(ticks, frequency), True
    if grown >= 0 and ticks - last["simTicks"] == grown:
        return Fraction(grown, frequency), False
    raise ValueError(
        f"{where}: dump {index} has simTicks {ticks} and finalTick {facts['finalTick']}, after {last['simTicks']} and "
        f"{last['finalTick']}: neither reset nor continued since the dump before; expected the dumps of one simulation"
    )

"""Two builds' speeds, row by row: ``python -m benchmarks.compare --before CHECKOUT PYTHON --after CHECKOUT PYTHON``.

Both run in turn, a section at a time, so that a busy moment of the machine meets both; what a section said is kept in
a file, and a run that was interrupted goes on where it stopped. A row's ratio is the time after over the time before,
of the same round; the interval of its median holds whatever the ratios' distribution: it lies between two of them, in
order (binomial). A row is slower if all of the interval lies above the limit; then the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from math import comb
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

__all__ = ["interval", "ratios", "times"]

SECTIONS = (
    "calls",
    "values",
    "arithmetic",
    "elementary",
    "gemm",
    "exact",
    "units",
    "operators",
    "contractions",
    "vectors",
)

# run in a checkout by its own Python: the times of a section's rows, in any unit, by name
_RUN = """
import json, os, sys, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")
sys.path.insert(0, os.getcwd())
from types import SimpleNamespace
from benchmarks import measure
section, repeats = sys.argv[1], int(sys.argv[2])
measure.best.__defaults__ = (repeats,)
measure.against.__defaults__ = (repeats, time.process_time)
measure._seconds.__defaults__ = (time.process_time,)
from benchmarks.__main__ import SECTIONS
rows = SECTIONS[section](SimpleNamespace(elements=10**6, gemm=256)) if section in SECTIONS else ()
found = {row.name: 1 / row.speed if row.speed_unit.endswith("/s") else row.speed for row in rows if row.speed}
print(json.dumps(found))
"""


def times(checkout: str, python: str, section: str, repeats: int) -> dict[str, float]:
    """The times of a section's rows by a build; RuntimeError with what it said if it fails."""
    command = [python, "-P", "-c", _RUN, section, str(repeats)]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{section} in {checkout}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def interval(values: list[float], level: float = 0.95) -> tuple[float, float]:
    """Two of the values between which the median lies with at least this probability; (-inf, inf) of too few values.

    >>> interval([1.0, 2.0, 3.0]), interval(list(range(15)))
    ((-inf, inf), (3, 11))
    """
    n, ordered = len(values), sorted(values)
    below, rank = 0.0, 0  # the chance that fewer than `rank` values lie below the median
    while rank < n // 2 and 1 - 2 * (below + comb(n, rank) / 2**n) >= level:
        below += comb(n, rank) / 2**n
        rank += 1
    return (ordered[rank - 1], ordered[n - rank]) if rank else (-float("inf"), float("inf"))


def ratios(record: list[dict]) -> dict[str, list[float]]:
    """After over before of each row that both builds have, a ratio for each round."""
    by_round: dict[tuple, dict] = {}
    for entry in record:
        by_round.setdefault((entry["section"], entry["round"]), {})[entry["build"]] = entry["times"]
    found: dict[str, list[float]] = {}
    for both in by_round.values():
        before, after = both.get("before", {}), both.get("after", {})
        for name in before.keys() & after.keys():
            found.setdefault(name, []).append(after[name] / before[name])
    return found


def main() -> int:
    """Run what the record lacks, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__.splitlines()[0])
    for build in ("before", "after"):
        parser.add_argument(f"--{build}", nargs=2, required=True, metavar=("CHECKOUT", "PYTHON"))
    parser.add_argument("--rounds", type=int, default=15, help="times that each build runs each section")
    parser.add_argument(
        "--repeats", type=int, default=3, help="runs of each work in a round, of which the fastest counts"
    )
    parser.add_argument("--only", choices=SECTIONS, action="append", help="sections to run (default: all)")
    parser.add_argument("--limit", type=float, default=1.05, help="above which a row is slower")
    parser.add_argument("--record", type=Path, default=Path("build/compare.jsonl"), help="where the times are kept")
    options = parser.parse_args()
    options.record.parent.mkdir(parents=True, exist_ok=True)
    known = [json.loads(line) for line in options.record.read_text().splitlines()] if options.record.exists() else []
    done = {(entry["section"], entry["round"], entry["build"]) for entry in known}
    todo = [
        (section, number, build)
        for number in range(options.rounds)
        for section in options.only or SECTIONS
        for build in (("before", "after") if number % 2 else ("after", "before"))
        if (section, number, build) not in done
    ]
    console = Console(width=120, stderr=True)
    with options.record.open("a") as record:
        for section, number, build in track(todo, "rounds", console=console):
            found = times(*getattr(options, build), section, options.repeats)
            known.append({"section": section, "round": number, "build": build, "times": found})
            record.write(json.dumps(known[-1]) + "\n")
            record.flush()
    table = Table("row", "median", "95 %", "rounds", "", title="time after / time before")
    slower = 0
    for name, values in sorted(ratios(known).items(), key=lambda item: -statistics.median(item[1])):
        low, high = interval(values)
        slower += low > options.limit
        what = "slower" if low > options.limit else "faster" if high < 1 / options.limit else ""
        table.add_row(name, f"{statistics.median(values):.3f}", f"{low:.3f} to {high:.3f}", str(len(values)), what)
    Console(width=120).print(table)
    return int(slower > 0)


if __name__ == "__main__":
    sys.exit(main())

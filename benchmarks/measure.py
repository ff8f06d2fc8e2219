"""Times of a work and of its baseline, taken in turn, so that a busy moment of the machine meets both."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Row", "against", "best", "commit", "cpu", "one_thread"]


@dataclass(frozen=True)
class Row:
    """A line of the table: `ratio` and `limit` in `ratio_unit`; no limit where the line is a peer or a baseline."""

    name: str
    speed: float
    speed_unit: str
    ratio: float | None = None
    ratio_unit: str = ""
    limit: float | None = None


def _seconds(work, clock=time.perf_counter) -> float:
    start = clock()
    work()
    return clock() - start


def best(work, repeats: int = 7) -> float:
    """Seconds of the fastest of several runs, after one to warm up."""
    work()
    return min(_seconds(work) for _ in range(repeats))


def against(work, baseline, repeats: int = 15, clock=time.perf_counter) -> tuple[float, float]:
    """Seconds of the fastest runs of a work and of its baseline; on one thread, time.process_time counts no others'."""
    work()
    baseline()
    pairs = [(_seconds(work, clock), _seconds(baseline, clock)) for _ in range(repeats)]
    return min(w for w, _ in pairs), min(b for _, b in pairs)


@contextmanager
def one_thread():
    """Keep softnum's own threads at one."""
    before = os.environ.get("SOFTNUM_THREADS")
    os.environ["SOFTNUM_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["SOFTNUM_THREADS"]
        else:
            os.environ["SOFTNUM_THREADS"] = before


def commit() -> str:
    """The checkout's commit, or what to say without one."""
    here = Path(__file__).resolve().parent
    try:
        run = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=here, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "no git checkout"
    return run.stdout.strip()


def cpu() -> str:
    """What this machine calls its CPU, such as "AMD EPYC 9R14"; its architecture where it does not say."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())

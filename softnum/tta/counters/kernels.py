"""Counters of kernels from Nsight Compute: utilisation, occupancy, registers, and what warps waited for."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from softnum.runtime.plain import plain
from softnum.tta.counters.quantities import (
    CYCLES,
    DRAM_BYTES,
    DRAM_RATE,
    FREQUENCY,
    LATENCY,
    REGISTERS,
    SHARES,
    STALLS,
    Quantity,
    unit_of,
)
from softnum.tta.text import read_text
from softnum.tta.timings.ncu_table import Metric, NcuLaunch, english_number, read_ncu_table, seconds

__all__ = ["KernelCounters", "kernel_counters", "read_ncu_counters"]

_NOT_COLLECTED = ("n/a", "nan", "-nan", "no data", "")  # and any with a mark of what failed, "(!) n/a"
#: Two figures of one launch that say the same may differ by this share, since ncu collects them in several replays of
#: the kernel; and times by two microseconds besides.
_APART = Fraction(1, 10)
_SHORT = Fraction(2, 10**6)
#: units of cycles per instruction, which versions of ncu name otherwise
_RATIOS = ("cycle", "inst", "cycle/instruction", "cycle/inst", "warp", "")
_POINTS = 5  # by which an achieved occupancy may lie above the theoretical one
_NUMERIC = re.compile(r"[\d.,]*\d[\d.,]*", re.ASCII)


@dataclass(frozen=True)
class KernelCounters:
    """What was counted of a launch, or of several in the mean.

    Parameters
    ----------
    kernel : str
        Its name as the file has it.
    launches : int
    ids : tuple of int
        The file's numbers of the launches.
    line : int
        Of the file, where the first of them is.
    seconds : Fraction
        Of all launches together, each alone on the device.
    shares : Mapping of str to float
        Percent of what the device can sustain, by quantity: "sm", "tensor", "hmma", "fma", "fp64", "dram", "l2",
        "occupancy", "theoretical"; what was not collected is not in it. Of several launches the mean, weighted by their
        times.
    registers : tuple of int
        Per thread, of each kind of launch.
    stalls : Mapping of str to float
        Share in [0, 1] of the cycles of its warps by reason, "selected" being the issue of an instruction, and "other"
        reasons that were not collected; empty where no reason was.
    metrics : Mapping of str to str
        Which metric a quantity is from.
    gaps : tuple of str
        What the file has no usable figure of, and why.

    Examples
    --------
    >>> one = KernelCounters("gemm", 1, (0,), 7, Fraction(1, 10**5), {"dram": 41.5})
    >>> one.shares.get("dram"), one.shares.get("l2")
    (41.5, None)
    """

    kernel: str
    launches: int
    ids: tuple[int, ...]
    line: int
    seconds: Fraction
    shares: Mapping[str, float] = field(default_factory=dict)
    registers: tuple[int, ...] = ()
    stalls: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict, repr=False)
    gaps: tuple[str, ...] = field(default=(), repr=False)

    def to_table(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "kernel": self.kernel, "launches": self.launches, "ids": list(self.ids), "seconds": float(self.seconds),
            "shares": dict(self.shares), "registers": list(self.registers), "stalls": dict(self.stalls),
            "metrics": dict(self.metrics), "gaps": list(self.gaps),
        }  # fmt: skip


@plain
def read_ncu_counters(path: str | os.PathLike[str]) -> tuple[KernelCounters, ...]:
    """Read the counters of every launch in a table of Nsight Compute.

    Parameters
    ----------
    path : path-like
        What ``ncu --csv`` printed, with ``--page raw``, ``--page details`` or ``--metrics``: UTF-8, or that in gzip.
        Every launch needs gpu__time_duration.sum, of the section SpeedOfLight.

    Returns
    -------
    tuple of KernelCounters
        One for each launch, in the order of the file. A counter that was not collected ("n/a", or not in the file) or
        is out of its range, as replays of short kernels make it, is a gap with its reason and never a number.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no such table; a number is not English, negative, or of another unit than its metric has; or figures of
        one launch contradict each other: cycles over clock and the time, bytes over the time and bytes a second, stalls
        and the latency that they are parts of, achieved and theoretical occupancy. The message names file and line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "run.csv")
    ...     metrics = "gpu__time_duration.sum", "lts__throughput.avg.pct_of_peak_sustained_elapsed"
    ...     _ = file.write_text(f"ID,Kernel Name,{','.join(metrics)}\\n,,us,%\\n0,gemm,11.5,37.25\\n")
    ...     found = read_ncu_counters(file)
    >>> found[0].kernel, found[0].shares
    ('gemm', {'l2': 37.25})
    """
    path = Path(path)
    text = read_text(path, f"no file {str(path)!r}; expected what ncu --csv printed")
    table = read_ncu_table(path, text)
    for launch in table.launches:
        for (_, name), metric in launch.metrics.items():
            if metric.unit and _NUMERIC.fullmatch(metric.text):  # without a unit it may be a version, 12.4.1
                english_number(f"{path}, line {metric.line}", name, metric.text, positive=False)
    return tuple(_counters(path, launch) for launch in table.launches)


def _lacks(metric: Metric) -> bool:
    """Whether ncu says that it has no figure."""
    return metric.text.removeprefix("(!)").strip().lower() in _NOT_COLLECTED


def _find(launch: NcuLaunch, quantity: Quantity) -> tuple[str, Metric] | None:
    for title, wanted in quantity.metrics:
        for (section, name), metric in launch.metrics.items():
            if name == wanted and section.startswith(title):
                return name, metric
    return None


def _value(path: Path, launch: NcuLaunch, quantity: Quantity, unit: str) -> tuple[Fraction, Metric] | None:
    """A figure in its unit without prefixes; None where it was not collected."""
    found = _find(launch, quantity)
    if found is None or _lacks(found[1]):
        return None
    name, metric = found
    where = f"{path}, line {metric.line}"
    told = (unit, Fraction(1)) if unit == "ratio" and metric.unit in _RATIOS else unit_of(metric.unit)
    if told is None or told[0] != unit:
        raise ValueError(f"{where}: {name} must be in {unit}, got {metric.unit!r}")
    return english_number(where, name, metric.text, positive=False) * told[1], metric


def _counters(path: Path, launch: NcuLaunch) -> KernelCounters:
    time = seconds(path, launch)
    shares, metrics, gaps = {}, {}, []
    for quantity in SHARES:
        found = _find(launch, quantity)
        if found is None:
            continue
        name, metric = found
        where = f"{path}, line {metric.line}"
        if _lacks(metric):
            gaps.append(f"{quantity.title}: {name} is {metric.text!r}: not collected on this device")
            continue
        if metric.unit != "%":
            raise ValueError(f"{where}: {name} must be in %, got {metric.unit!r}")
        value = english_number(where, name, metric.text, positive=False)
        if value > 100:
            gaps.append(
                f"{quantity.title}: {name} is {metric.text} %: out of range, as replays of a short kernel make it; "
                "measure a longer one"
            )
            continue
        shares[quantity.key], metrics[quantity.key] = float(value), name
    _check_occupancy(path, launch, shares)
    _check_time(path, launch, time)
    stalls, stall_gaps, family = _stalls(path, launch)
    if family:
        metrics["stalls"] = family
    return KernelCounters(
        launch.kernel, 1, (launch.id,), launch.line, time, shares, _registers(path, launch), stalls, metrics,
        (*gaps, *stall_gaps),
    )  # fmt: skip


def _registers(path: Path, launch: NcuLaunch) -> tuple[int, ...]:
    found = _find(launch, REGISTERS)
    if found is None or _lacks(found[1]):
        return ()
    name, metric = found
    where = f"{path}, line {metric.line}"
    if metric.unit not in ("register/thread", "register/thr", ""):
        raise ValueError(f"{where}: {name} must be in register/thread, got {metric.unit!r}")
    value = english_number(where, name, metric.text, positive=False)
    if value.denominator != 1 or value > 255:
        raise ValueError(f"{where}: {name} must be a whole number of at most 255, got {metric.text!r}")
    return (int(value),)


def _check_occupancy(path: Path, launch: NcuLaunch, shares: Mapping[str, float]) -> None:
    most = shares.get("theoretical")
    if most is not None and shares.get("occupancy", 0) > most + _POINTS:
        raise ValueError(
            f"{path}, line {launch.line}: launch {launch.id} has an achieved occupancy of {shares['occupancy']} % and "
            f"a theoretical one of {most} %; one is wrong: profile it again"
        )


def _check_time(path: Path, launch: NcuLaunch, time: Fraction) -> None:
    """The time against cycles over clock, and bytes over the time against bytes a second."""
    cycles, clock = (_value(path, launch, quantity, unit) for quantity, unit in ((CYCLES, "cycle"), (FREQUENCY, "hz")))
    if cycles and clock and clock[0]:
        own = cycles[0] / clock[0]
        if abs(own - time) > _APART * time + _SHORT:
            raise ValueError(
                f"{path}, line {cycles[1].line}: {cycles[1].text} {cycles[1].unit} at {clock[1].text} {clock[1].unit} "
                f"are {float(own):.4g} s, and launch {launch.id} takes {float(time):.4g} s; one is wrong, or of "
                "another locale: run ncu again with LC_ALL=C"
            )
    moved, rate = (
        _value(path, launch, quantity, unit) for quantity, unit in ((DRAM_BYTES, "byte"), (DRAM_RATE, "byte/second"))
    )
    if moved and rate and abs(moved[0] - rate[0] * time) > (_APART * time + _SHORT) * rate[0]:
        raise ValueError(
            f"{path}, line {moved[1].line}: {moved[1].text} {moved[1].unit} in {float(time):.4g} s are "
            f"{float(moved[0] / time):.4g} byte/second, and launch {launch.id} says {rate[1].text} {rate[1].unit}; one "
            "is wrong: profile it again"
        )


def _stalls(path: Path, launch: NcuLaunch) -> tuple[dict[str, float], list[str], str]:
    """Shares of warps' cycles by reason, what is not known of them, and the metrics they are from."""
    for pattern, kind in STALLS:
        found = {}
        for (_, name), metric in launch.metrics.items():
            matched = pattern.fullmatch(name)
            if matched and not _lacks(metric):
                if matched[1] in found:
                    raise ValueError(f"{path}, line {metric.line}: {name} of launch {launch.id} again, in another "
                                     "section; collect it once")  # fmt: skip
                where = f"{path}, line {metric.line}"
                found[matched[1]] = english_number(where, name, metric.text, positive=False)
                if kind == "percent" and metric.unit != "%":
                    raise ValueError(f"{where}: {name} must be in %, got {metric.unit!r}")
        if found:
            break
    else:
        return {}, [], ""
    family = pattern.pattern.replace("(?!.*_not_issued)", "").replace("(\\w+)", "*").replace("\\.", ".")
    total, gaps = sum(found.values()), []
    whole: Fraction | None = Fraction(100) if kind == "percent" else None
    latency = _value(path, launch, LATENCY, "ratio") if kind == "cycles" else None
    if latency is not None:
        whole = latency[0]
    if whole is not None and total > whole * (1 + _APART):
        what = "100 %" if kind == "percent" else f"the {float(whole):g} cycles between two instructions of a warp"
        raise ValueError(
            f"{path}, line {launch.line}: the stalls of launch {launch.id} add up to {float(total):g}, above {what}; "
            "one of them is wrong: profile it again"
        )
    if whole is None:
        if "selected" not in found:
            gaps.append(f"Stalls: shares of the reasons collected, without those that were not ({family})")
        whole = total
    if not whole:
        return {}, [*gaps, "Stalls: all reasons are 0: no warp was seen to wait"], family
    if whole < total:
        whole = total
    shares = {name: float(value / whole) for name, value in found.items()}
    if total < whole * (1 - _APART):
        shares["other"] = float(1 - total / whole)
    return dict(sorted(shares.items(), key=lambda item: (-item[1], item[0]))), gaps, family


def kernel_counters(launches: Sequence[KernelCounters]) -> tuple[KernelCounters, ...]:
    """Counters by kernel: the launches of one name together, in the order of their first launch.

    Percentages and shares of stalls are means weighted by the launches' times. A quantity that not all launches have is
    a gap, since its mean would be of others than the time is.

    Examples
    --------
    >>> one = KernelCounters("gemm", 1, (0,), 3, Fraction(1, 4), {"dram": 40.0})
    >>> two = KernelCounters("gemm", 1, (1,), 4, Fraction(3, 4), {"dram": 20.0})
    >>> (kernel,) = kernel_counters([one, two])
    >>> kernel.launches, kernel.seconds, kernel.shares
    (2, Fraction(1, 1), {'dram': 25.0})
    """
    by_name: dict[str, list[KernelCounters]] = {}
    for launch in launches:
        by_name.setdefault(launch.kernel, []).append(launch)
    return tuple(together(name, rows) for name, rows in by_name.items())


def together(name: str, rows: Sequence[KernelCounters]) -> KernelCounters:
    """Launches as one, as `kernel_counters` makes it."""
    time = sum((row.seconds for row in rows), Fraction(0))
    gaps = list(dict.fromkeys(gap for row in rows for gap in row.gaps))
    shares, metrics = {}, {}
    for quantity in SHARES:
        key = quantity.key
        have = [row for row in rows if key in row.shares]
        sources = {row.metrics.get(key, "") for row in have}
        if not have:
            continue
        if len(have) < len(rows):
            gaps.append(f"{quantity.title}: {len(rows) - len(have)} of {len(rows)} launches have no figure of it")
        elif len(sources) > 1:
            gaps.append(f"{quantity.title}: of several metrics, {' and '.join(sorted(sources))}: no mean of them")
        else:
            shares[key], metrics[key] = _mean(rows, time, [row.shares[key] for row in rows]), sources.pop()
    stalls: dict[str, float] = {}
    have, sources = [row for row in rows if row.stalls], {row.metrics.get("stalls", "") for row in rows if row.stalls}
    if have and (len(have) < len(rows) or len(sources) > 1):
        gaps.append(f"Stalls: {len(have)} of {len(rows)} launches have some, by {len(sources)} kinds of metrics")
    elif have:
        reasons = {reason for row in rows for reason in row.stalls}
        found = {reason: _mean(rows, time, [row.stalls.get(reason, 0.0) for row in rows]) for reason in reasons}
        stalls = dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))
        metrics["stalls"] = sources.pop()
    registers = tuple(sorted({number for row in rows for number in row.registers}))
    ids = tuple(number for row in rows for number in row.ids)
    launches = sum(row.launches for row in rows)
    return KernelCounters(
        name, launches, ids, rows[0].line, time, shares, registers, stalls, metrics, tuple(dict.fromkeys(gaps))
    )


def _mean(rows: Sequence[KernelCounters], time: Fraction, values: Sequence[float]) -> float:
    return math.fsum(float(row.seconds / time) * value for row, value in zip(rows, values, strict=True))

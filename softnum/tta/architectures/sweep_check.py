"""The analytic model against SCALE-Sim: a sample of a sweep's models, simulated GEMM by GEMM on one array.

What is compared is the matrix products only, which is all that SCALE-Sim knows: their roofline on the array
(`Device.of_hardware`: two operations a cell and cycle, the bandwidth of all three links) with its cycles. The ratio of
both is how far the roofline, a bound, lies below a machine that fills and drains its array and waits for operands.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

from softnum.tta.architectures.lowering import lower
from softnum.tta.architectures.paradnn import SWEEPS, models
from softnum.tta.estimates.device_files import Device
from softnum.tta.estimates.rooflines import roofline
from softnum.tta.quantities import positive_int
from softnum.tta.simulators.simulation import load_reports, scalesim_timings, simulate
from softnum.tta.workloads.hardware import DesignPoint, Hardware
from softnum.tta.workloads.operations import workload_of_gemms

__all__ = ["CHECKED_ARRAY", "LARGEST", "MOST", "check_count", "check_sample", "check_sweeps", "ratios"]

#: Models that are checked at most.
MOST = 50
#: Multiplications of all distinct products of a model, at most: SCALE-Sim takes minutes for the larger ones.
LARGEST = 300_000_000
#: The array: as large and as fast as a TPU v2's core (128 x 128 cells at 700 MHz, 300 GB/s over three links).
CHECKED_ARRAY = Hardware((128, 128), (4 * 2**20,) * 3, Fraction(100 * 10**9), Fraction(700 * 10**6))
#: Batches in place of the sweep's where none of its models is small enough.
_SMALL = {"cnn-residual": {"batch": (1,)}, "cnn-bottleneck": {"batch": (1,)}}


def _point(kind: str, sizes: Mapping[str, int], network) -> DesignPoint:
    # mixed-float16: words of 16 bits, as of bfloat16
    work = lower(network, sizes["batch"], "mixed-float16", fold=True)
    name = "-".join([kind, *(f"{key}{value}" for key, value in sizes.items())])
    return DesignPoint(name, CHECKED_ARRAY, work.gemms)


def check_sample(kind: str, count: int) -> list[tuple[dict[str, Any], DesignPoint]]:
    """Models of a sweep that are small enough to be simulated: every n-th of them, so many at most.

    Of convolutional networks, whose smallest is too large, those of a batch of 1 are taken.

    Parameters
    ----------
    kind : str
        A key of `SWEEPS`.
    count : int

    Returns
    -------
    list of (dict, DesignPoint)
        Hyper-parameters, and the array with the model's products.

    Examples
    --------
    >>> [sizes["nodes"] for sizes, _ in check_sample("fc", 4)]
    [32, 64, 32, 64]
    """
    small = []
    for sizes, network in models(kind, _SMALL.get(kind)):
        if network.macs * sizes["batch"] > LARGEST * len(network.layers):
            continue  # so that one of its products alone is too large
        point = _point(kind, sizes, network)
        distinct = {gemm.shape for gemm in point.gemms}
        if sum(m * n * k for m, n, k in distinct) <= LARGEST:
            small.append((sizes, point))
    step = max(1, -(-len(small) // positive_int(count, "count")))
    return small[::step]


def check_sweeps(
    kinds: Sequence[str],
    count: int,
    out: str | os.PathLike[str],
    *,
    environment: str | os.PathLike[str] | None = None,
    progress: Callable[[str], object] | None = None,
) -> list[dict[str, Any]]:
    """Simulate a sample of the models of some sweeps with SCALE-Sim, and compare with the roofline of their products.

    Parameters
    ----------
    kinds : sequence of str
        Keys of `SWEEPS`.
    count : int
        Models of all kinds together, at most `MOST`.
    out : path-like
        Folder for SCALE-Sim's reports.
    environment, progress
        As of `softnum.tta.simulate`.

    Returns
    -------
    list of dict
        A row for each model: ``kind``, ``model``, ``gemms``, ``macs``, ``cycles`` and ``stall_cycles`` (SCALE-Sim's),
        ``simulated`` and ``estimated`` seconds, and ``ratio``, the first over the second.

    Raises
    ------
    ValueError
        If the number is not between the number of kinds and `MOST`, or a kind is not known.
    RuntimeError
        If SCALE-Sim cannot be installed or fails.

    Examples
    --------
    >>> check_sweeps(["fc"], 8, "reports")[0]["ratio"] > 1  # doctest: +SKIP
    True
    """
    check_count(kinds, count)
    sample = [(kind, *pair) for kind in kinds for pair in check_sample(kind, count // len(kinds))]
    points = [point for _, _, point in sample]
    simulate(points, out, baseline=points[0].name, environment=environment, progress=progress)
    times = scalesim_timings(points, load_reports(Path(out)))
    array = Device.of_hardware(CHECKED_ARRAY, "array")
    rows = []
    for kind, sizes, point in sample:
        work = workload_of_gemms(point, sizes["batch"])
        estimate, simulated = roofline(work, array).seconds, times[point.name]
        rows.append(
            {
                "kind": kind,
                "model": point.name,
                "gemms": sum(gemm.count for gemm in point.gemms),
                "macs": work.flops // 2,
                "cycles": simulated.detail["cycles"],
                "stall_cycles": simulated.detail["stall_cycles"],
                "simulated": simulated.seconds,
                "estimated": estimate,
                "ratio": simulated.seconds / estimate,
            }
        )
    return rows


def check_count(kinds: Sequence[str], count: int) -> None:
    """Raise ValueError unless so many models of some kinds can be checked.

    >>> check_count(["fc", "rnn"], 8)
    """
    if not len(kinds) <= count <= MOST:
        raise ValueError(f"between {len(kinds)} models (one of each kind) and {MOST} can be checked, got {count}")


def ratios(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Least, median and largest ratio of each kind, and of all.

    Examples
    --------
    >>> ratios([{"kind": "fc", "ratio": 2.0}, {"kind": "fc", "ratio": 4.0}])[0]
    {'kind': 'fc', 'models': 2, 'least': 2.0, 'median': 3.0, 'most': 4.0}
    """
    found = []
    for kind in (*(kind for kind in SWEEPS if any(row["kind"] == kind for row in rows)), "all"):
        values = [row["ratio"] for row in rows if kind in (row["kind"], "all")]
        found.append(
            {"kind": kind, "models": len(values), "least": min(values), "median": median(values), "most": max(values)}
        )
    return found

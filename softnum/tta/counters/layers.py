"""Counters by layer, beside the roofline's prediction: what a device reaches of it, and the efficiency that is."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from softnum.tta.counters.kernels import KernelCounters, together
from softnum.tta.estimates.rooflines import Roofline, RooflineRow
from softnum.tta.text import count, read_text, table_rows
from softnum.tta.timings.series import Options
from softnum.tta.timings.whose import named_iterations
from softnum.tta.workloads.operations import STAGES, Workload
from softnum.tta.workloads.products import read_product_name

__all__ = ["MeasuredLayers", "MeasuredPart", "measured_layers", "read_kernel_layers"]

#: which pipe a rate is of; of all narrower formats the tensor cores'
_PIPES = {"fp32": "fma", "fp64": "fp64"}
_COLUMNS = ["id", "layer", "stage"]
_POINTS = 5.0  # percent by which a share of peak from FLOPs may lie above the pipe's counter


@dataclass(frozen=True)
class MeasuredPart:
    """What a layer does in one stage, as counted and as the roofline has it.

    Parameters
    ----------
    layer, stage : str
    counters : KernelCounters
        Of its launches in all iterations together.
    seconds : float
        Measured, of an iteration in the mean.
    least : float
        The roofline's at an efficiency of 1.
    bound : str
        "compute", "memory", or "both" where its operations have different limits.
    rate : str
        The rate of its arithmetic, such as "fp16"; empty where its operations have several.
    of_peak : float
        Its FLOPs at peak over the measured time; of several rates that one which takes longest.
    of_bandwidth : float
        Its bytes at the memory's bandwidth over the measured time; above 1 where caches hold operands.
    notes : tuple of str
        Where counters and the roofline do not fit each other.

    Examples
    --------
    >>> from fractions import Fraction
    >>> one = KernelCounters("gemm", 2, (0, 1), 7, Fraction(1, 10**4), {"tensor": 62.0})
    >>> MeasuredPart("fc1", "forward", one, 5e-5, 3e-5, "compute", "fp16", 0.6, 0.2).efficiency
    0.6
    """

    layer: str
    stage: str
    counters: KernelCounters
    seconds: float
    least: float
    bound: str
    rate: str
    of_peak: float
    of_bandwidth: float
    notes: tuple[str, ...] = ()

    @property
    def efficiency(self) -> float:
        """The roofline's time over the measured one."""
        return self.least / self.seconds

    @property
    def pipe(self) -> str:
        """The counter of the pipe that its rate is of: "tensor", "fma" or "fp64"; empty where there are several."""
        return _PIPES.get(self.rate, "tensor") if self.rate else ""

    def to_table(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "layer": self.layer, "stage": self.stage, "seconds": self.seconds, "roofline_seconds": self.least,
            "efficiency": self.efficiency, "bound": self.bound, "rate": self.rate, "of_peak": self.of_peak,
            "of_bandwidth": self.of_bandwidth, "notes": list(self.notes), "counters": self.counters.to_table(),
        }  # fmt: skip


@dataclass(frozen=True)
class MeasuredLayers:
    """An iteration's parts as measured, and what is left of the file.

    Parameters
    ----------
    network, design, device : str
    iterations : int
        In the file.
    parts : tuple of MeasuredPart
        In the workload's order.
    others : float
        Seconds of an iteration in launches that are of no part.
    compared : str
        Which operations of the workload the launches were compared with.

    Examples
    --------
    >>> from fractions import Fraction
    >>> one = KernelCounters("gemm", 2, (0, 1), 7, Fraction(1, 10**4))
    >>> part = MeasuredPart("fc1", "forward", one, 5e-5, 3e-5, "compute", "fp16", 0.6, 0.2)
    >>> found = MeasuredLayers("mlp", "a", "v100", 2, (part,), 0.0, "matrix products")
    >>> found.efficiency, found.shares
    (0.6, {'fp16': 0.6})
    """

    network: str
    design: str
    device: str
    iterations: int
    parts: tuple[MeasuredPart, ...] = field(repr=False)
    others: float
    compared: str

    @property
    def seconds(self) -> float:
        """Measured seconds of all parts."""
        return math.fsum(part.seconds for part in self.parts)

    @property
    def efficiency(self) -> float:
        """The roofline's time of all parts over the measured one: what `roofline` takes as its efficiency."""
        return math.fsum(part.least for part in self.parts) / self.seconds

    @property
    def shares(self) -> dict[str, float]:
        """The same by limit: of arithmetic by the rate's name, and "memory", as a system's file has them.

        Parts with several limits or rates are left out, and those that caches make faster than memory could be.
        """
        found: dict[str, list[MeasuredPart]] = {}
        for part in self.parts:
            if part.bound != "both" and (part.bound == "memory" or part.rate) and part.efficiency <= 1:
                found.setdefault("memory" if part.bound == "memory" else part.rate, []).append(part)
        return {
            name: math.fsum(part.least for part in parts) / math.fsum(part.seconds for part in parts)
            for name, parts in found.items()
        }

    def to_table(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "network": self.network, "design": self.design, "device": self.device, "iterations": self.iterations,
            "compared": self.compared, "seconds": self.seconds, "other_seconds": self.others,
            "efficiency": self.efficiency, "shares": self.shares, "parts": [part.to_table() for part in self.parts],
        }  # fmt: skip


def read_kernel_layers(path: str | os.PathLike[str]) -> dict[int, tuple[str, str]]:
    """Read which launch is of which layer, from a CSV file with the columns id, layer, stage.

    Parameters
    ----------
    path : path-like
        A row for each launch; ``id`` is ncu's number of it. Launches that are in no row are of no layer.

    Returns
    -------
    dict
        Number of the launch -> (layer, stage).

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, or it is no such table; the message names file and line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "layers.csv")
    ...     _ = file.write_text("id,layer,stage\\n0,fc1,forward\\n1,fc2,forward\\n")
    ...     read_kernel_layers(file)
    {0: ('fc1', 'forward'), 1: ('fc2', 'forward')}
    """
    path = Path(path)
    text = read_text(path, f"no file {str(path)!r} with the layers of launches: columns {', '.join(_COLUMNS)}")
    found: dict[int, tuple[str, str]] = {}
    for where, row in table_rows(path, text, _check_columns, what=f"the columns {','.join(_COLUMNS)}"):
        number = count(where, "id", row["id"], positive=False)
        if number in found:
            raise ValueError(f"{where}: launch {number} again; it is of {' '.join(found[number])}")
        if row["stage"] not in STAGES:
            raise ValueError(f"{where}: the stage must be one of {', '.join(STAGES)}, got {row['stage'][:40]!r}")
        found[number] = row["layer"], row["stage"]
    if not found:
        raise ValueError(f"{path}: names no launch; a row for each, under the first")
    return found


def _check_columns(where: str, header: list[str]) -> None:
    if sorted(header) != sorted(_COLUMNS):
        raise ValueError(f"{where}: the columns must be {','.join(_COLUMNS)}, got {','.join(header)[:80]}")


def measured_layers(
    workload: Workload,
    roof: Roofline,
    launches: Sequence[KernelCounters],
    layers: Mapping[int, tuple[str, str]] | None = None,
    *,
    where: str = "the launches",
) -> MeasuredLayers:
    """Compare the counters of launches with the roofline, layer by layer.

    Parameters
    ----------
    workload : Workload
        The iteration that was profiled.
    roof : Roofline
        Of this workload on the device, at an efficiency of 1.
    launches : sequence of KernelCounters
        Of `read_ncu_counters`.
    layers : mapping of int to (str, str), optional
        Layer and stage of launches by their numbers, for one iteration; they are compared with all operations of the
        layer's stage. Default: kernels are called by the workload's products, as `export_program` calls them, and are
        compared with these.
    where : str
        The file, for messages.

    Returns
    -------
    MeasuredLayers

    Raises
    ------
    ValueError
        If the roofline is of another workload or has another efficiency; no launch is of a layer; names, numbers or
        layers are not the workload's or not the file's; or a part is faster than its arithmetic at peak, which no
        device can be.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from softnum.tta import Operation
    >>> from softnum.tta.estimates import device, roofline
    >>> work = Workload("one", "fp16", 1, (Operation("fc", "forward", "gemm", 2**31, 2**22, 2**21, ("binary16",)),))
    >>> launch = KernelCounters("gemm", 1, (4,), 7, Fraction(25, 10**6), {"tensor": 71.0, "dram": 28.0})
    >>> found = measured_layers(work, roofline(work, device("v100")), [launch], {4: ("fc", "forward")})
    >>> part = found.parts[0]
    >>> part.bound, f"{part.efficiency:.0%} of the roofline, {part.of_peak:.0%} of peak", found.shares.keys()
    ('compute', '69% of the roofline, 69% of peak', dict_keys(['fp16']))
    """
    if [(row.layer, row.flops) for row in roof.rows] != [(each.layer, each.flops) for each in workload.operations]:
        raise ValueError(
            f"the roofline of {roof.network!r}, {roof.design!r} is not of the workload {workload.network!r}"
        )
    if roof.efficiency != 1:
        raise ValueError(f"the roofline must be one of efficiency 1 to be compared with, got {roof.efficiency}")
    if layers is None:
        times, by_part = _by_names(workload, launches, where)
        products = [each.gemm is not None for each in workload.operations]
        rows = [row for row, product in zip(roof.rows, products, strict=True) if product]
        compared = "the matrix products of each layer's stage"
    else:
        times, by_part = 1, _by_numbers(workload, launches, layers, where)
        rows, compared = list(roof.rows), "all operations of each layer's stage"
    predicted: dict[tuple[str, str], list[RooflineRow]] = {}
    for row in rows:
        predicted.setdefault((row.layer, row.stage), []).append(row)
    parts = [_part(key, predicted[key], by_part[key], times, roof, where) for key in predicted if key in by_part]
    used = {number for found in by_part.values() for launch in found for number in launch.ids}
    others = math.fsum(float(each.seconds) for each in launches if not used & set(each.ids)) / times
    return MeasuredLayers(workload.network, workload.design, roof.device.name, times, tuple(parts), others, compared)


def _by_names(workload: Workload, launches: Sequence[KernelCounters], where: str):
    kernels = [(launch.kernel, launch.line) for launch in launches]
    found = named_iterations(where, kernels, Options(workload=workload))
    if found is None:
        raise ValueError(
            f"{where}: no kernel is called by a product of the workload, such as gemm_m64_n10_k128_0123abcd; say which "
            "launch is of which layer: --layers FILE with the columns id,layer,stage"
        )
    products = [launch for launch in launches if read_product_name(launch.kernel) is not None]
    expected = [gemm for gemm in workload.gemms for _ in range(gemm.count)]
    by_part: dict[tuple[str, str], list[KernelCounters]] = {}
    for number, launch in enumerate(products):
        gemm = expected[number % len(expected)]
        by_part.setdefault((gemm.layer, gemm.phase), []).append(launch)
    return found[0], by_part


def _by_numbers(workload: Workload, launches: Sequence[KernelCounters], layers, where: str):
    by_number: dict[int, KernelCounters] = {}
    for launch in launches:
        if launch.ids[0] in by_number:
            raise ValueError(
                f"{where}, line {launch.line}: launch {launch.ids[0]} is of two processes; profile one, so that "
                "numbers tell launches apart"
            )
        by_number[launch.ids[0]] = launch
    known = {(operation.layer, operation.stage) for operation in workload.operations}
    by_part: dict[tuple[str, str], list[KernelCounters]] = {}
    for number, part in layers.items():
        if number not in by_number:
            raise ValueError(
                f"{where}: has no launch {number}, which is said to be of {' '.join(part)}; it has {len(by_number)} "
                f"launches, {min(by_number)} to {max(by_number)}"
            )
        if part not in known:
            raise ValueError(
                f"launch {number} is said to be of {' '.join(part)}, in which {workload.network!r} computes nothing; "
                f"its layers: {', '.join(workload.layers[:12])}{', ...' if len(workload.layers) > 12 else ''}"
            )
        by_part.setdefault(part, []).append(by_number[number])
    return by_part


def _part(key, rows: list[RooflineRow], launches, times: int, roof: Roofline, where: str) -> MeasuredPart:
    counters = together(" ".join(key), launches)
    seconds = float(counters.seconds / times)
    least = math.fsum(row.seconds for row in rows)
    by_rate: dict[str, list[float]] = {}
    for row in rows:
        by_rate.setdefault(row.peak.format, []).append(row.flops / row.peak.flops)
    at_peak = max(math.fsum(each) for each in by_rate.values())  # pipes may work at once
    moved = sum(row.bytes for row in rows) / roof.device.bandwidth
    bounds, rates = {row.bound for row in rows if row.seconds}, {row.peak.format for row in rows if row.flops}
    bound = bounds.pop() if len(bounds) == 1 else "both"
    rate = rates.pop() if len(rates) == 1 else ""
    if at_peak > seconds:
        raise ValueError(
            f"{where}, line {counters.line}: {counters.kernel} takes {seconds:.4g} s, where its arithmetic alone takes "
            f"{at_peak:.4g} s at the peak of {roof.device.title or roof.device.name}; it was measured on another "
            "device, at a higher clock, or is of another batch or format"
        )
    part = MeasuredPart(*key, counters, seconds, least, bound, rate, at_peak / seconds, moved / seconds)
    notes = []
    active = counters.shares.get(part.pipe)
    if active is not None and part.of_peak * 100 > active + _POINTS:
        notes.append(
            f"{counters.kernel}: {part.of_peak:.0%} of the {rate} peak by its FLOPs, and the {part.pipe} pipe is "
            f"active {active:.0f} % of the time: the arithmetic ran elsewhere, or less was computed than the workload "
            "has (sparsity, Winograd)"
        )
    if part.of_bandwidth > 1:
        notes.append(
            f"{counters.kernel}: {part.of_bandwidth:.2f} times the bytes that memory could move in its time: caches "
            "hold operands, and its efficiency is left out of memory's"
        )
    return MeasuredPart(*key, counters, seconds, least, bound, rate, part.of_peak, part.of_bandwidth, tuple(notes))

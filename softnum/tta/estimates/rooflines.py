"""The roofline of an iteration: no operation is faster than its arithmetic at peak, nor than its bytes over the wires.

S. Williams, A. Waterman and D. Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
Architectures", Communications of the ACM 52(4), 2009.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from softnum.runtime.plain import plain
from softnum.tta.estimates.device_files import Device, Money, Peak
from softnum.tta.quantities import frequency, positive_number
from softnum.tta.workloads.iteration import IterationTime
from softnum.tta.workloads.operations import STAGES, Operation, Workload

_GEMM_KEYS = ("layer", "pass", "M", "N", "K")

__all__ = ["Inference", "Roofline", "RooflineRow", "Utilisation", "inference", "roofline", "utilisation"]


@dataclass(frozen=True)
class RooflineRow:
    """One operation under the roofline.

    Parameters
    ----------
    layer, stage, kind : str
        As the operation's.
    flops, bytes : int
        As the operation's.
    seconds : float
        Its least time, divided by the efficiency.
    bound : str
        "compute" or "memory": what sets that time.
    peak : Peak
        The rate that was used, and whether it stands in for another.

    Examples
    --------
    >>> from softnum.tta.estimates import device
    >>> RooflineRow("fc", "forward", "gemm", 10**9, 10**6, 0.5, "compute", device("v100").peak(("binary16",))).achieved
    2000000000.0
    """

    layer: str
    stage: str
    kind: str
    flops: int
    bytes: int
    seconds: float
    bound: str
    peak: Peak

    @property
    def intensity(self) -> float:
        """FLOPs per byte; infinite if nothing is moved."""
        return self.flops / self.bytes if self.bytes else math.inf

    @property
    def achieved(self) -> float:
        """FLOP/s at that time; 0 of an operation that only moves bytes."""
        return self.flops / self.seconds if self.seconds else 0.0

    def to_table(self) -> dict[str, Any]:
        """Return plain JSON values; an infinite intensity is null."""
        return {
            "layer": self.layer,
            "stage": self.stage,
            "kind": self.kind,
            "flops": self.flops,
            "bytes": self.bytes,
            "intensity": self.intensity if self.bytes else None,
            "seconds": self.seconds,
            "achieved": self.achieved,
            "bound": self.bound,
            "format": self.peak.format,
            "peak": self.peak.flops,
            "proxy": self.peak.proxy,
        }


@dataclass(frozen=True)
class Roofline:
    """The least time of an iteration on a device, operation by operation.

    Parameters
    ----------
    network, design : str
        As the workload's.
    batch : int
        Samples of the iteration.
    device : Device
    efficiency : float
        Share of what the roofline allows that is assumed to be reached.
    rows : tuple of RooflineRow
        In the workload's order.

    Examples
    --------
    >>> from softnum.tta import load_reports
    >>> from softnum.tta.estimates import device, roofline
    >>> from softnum.tta.workloads.operations import workload_of_gemms
    >>> roof = roofline(workload_of_gemms(load_reports().designs["a-float32"], 32, "mlp"), device("v100"))
    >>> roof.time.kind, {row.bound for row in roof.rows}, roof.layer_times["fc2"]["forward"] == roof.rows[1].seconds
    ('estimated', {'memory'}, True)
    """

    network: str
    design: str
    batch: int
    device: Device
    efficiency: float
    rows: tuple[RooflineRow, ...] = field(repr=False)

    @property
    def seconds(self) -> float:
        """Seconds of the iteration if its operations run one after another."""
        return math.fsum(row.seconds for row in self.rows)

    @property
    def flops(self) -> int:
        """Operations of the iteration."""
        return sum(row.flops for row in self.rows)

    @property
    def compute_bound(self) -> float:
        """Share of the time in operations whose arithmetic is the limit."""
        return math.fsum(row.seconds for row in self.rows if row.bound == "compute") / self.seconds

    @property
    def share_of_peak(self) -> float:
        """The time all arithmetic would take at peak over the time of the iteration."""
        return math.fsum(row.flops / row.peak.flops for row in self.rows) / self.seconds

    @property
    def samples_per_second(self) -> float:
        """Throughput."""
        return self.batch / self.seconds

    @property
    def proxies(self) -> tuple[str, ...]:
        """Why rates stand in for others, each reason once."""
        return tuple(dict.fromkeys(row.peak.reason for row in self.rows if row.peak.proxy))

    @property
    def layer_times(self) -> dict[str, dict[str, float]]:
        """Seconds of each layer by stage; a stage the layer has no operation in has 0."""
        times: dict[str, dict[str, list[float]]] = {}
        for row in self.rows:
            stages = times.setdefault(row.layer, {stage: [] for stage in STAGES})
            stages[row.stage].append(row.seconds)
        return {layer: {stage: math.fsum(all_) for stage, all_ in stages.items()} for layer, stages in times.items()}

    @property
    def time(self) -> IterationTime:
        """The iteration's time, of the kind "estimated"; its detail holds the rows.

        Raises
        ------
        ValueError
            If no operation takes any time.
        """
        return IterationTime(
            self.design, self.seconds, source=f"roofline of {self.device.title or self.device.name}",
            detail=self.to_table(), kind="estimated",
        )  # fmt: skip

    def to_table(self) -> dict[str, Any]:
        """Return plain JSON values, with what a picture of it needs."""
        return {
            "model": "roofline",
            "network": self.network,
            "design": self.design,
            "batch": self.batch,
            "device": self.device.name,
            "title": self.device.title,
            "source": self.device.source,
            "bandwidth": self.device.bandwidth,
            "peaks": {row.peak.format: row.peak.flops for row in self.rows},
            "ridges": {row.peak.format: row.peak.flops / self.device.bandwidth for row in self.rows},
            "efficiency": self.efficiency,
            "seconds": self.seconds,
            "compute_bound": self.compute_bound,
            "share_of_peak": self.share_of_peak,
            "proxies": list(self.proxies),
            "operations": [row.to_table() for row in self.rows],
        }


def _is_gemm(operation: Operation) -> bool:
    return operation.gemm is not None or operation.kind == "gemm"


@plain
def roofline(workload: Workload, device: Device, efficiency: float = 1.0) -> Roofline:
    """A lower bound of the time of an iteration: each operation at the device's peak or bandwidth, whichever is slower.

    The time of an operation is ``max(flops / peak, bytes / bandwidth) / efficiency``, and operations follow each other.
    With an efficiency of 1 no schedule on the device can be faster, unless operations are fused (then bytes are saved)
    or overlap. Launch overheads, caches and partly filled arrays are not in the model.

    Parameters
    ----------
    workload : Workload
    device : Device
        `device("v100")`, or `Device.of_hardware` of a design's own array.
    efficiency : float
        In (0, 1]: the share of the roofline that operations are assumed to reach.

    Returns
    -------
    Roofline

    Raises
    ------
    ValueError
        If the workload has no operations, the efficiency is out of range, or a format has no rate on the device.

    Examples
    --------
    >>> from softnum.tta import Operation, Workload
    >>> from softnum.tta.estimates import device
    >>> gemm = Operation("fc", "forward", "gemm", 2 * 1024**3, 4 * 1024**2, 2 * 1024**2, ("binary16", "binary16"))
    >>> relu = Operation("fc", "forward", "relu", 1024**2, 2 * 1024**2, 2 * 1024**2, ("binary16",))
    >>> roof = roofline(Workload("one", "fp16", 1024, (gemm, relu)), device("v100"))
    >>> [(row.kind, row.bound, f"{row.seconds:.3g}") for row in roof.rows]
    [('gemm', 'compute', '1.72e-05'), ('relu', 'memory', '4.66e-06')]
    """
    positive_number(efficiency, "efficiency")
    if efficiency > 1:
        raise ValueError(f"efficiency must lie in (0, 1], got {efficiency}; 1 is the roofline itself")
    rows = []
    peaks: dict[tuple[Any, ...], Peak] = {}
    for operation in workload.operations:
        gemm = _is_gemm(operation)
        key = (gemm, operation.formats)
        if key not in peaks:
            peaks[key] = device.peak(operation.formats, gemm=gemm)
        peak = peaks[key]
        compute, memory = operation.flops / peak.flops, operation.bytes / device.bandwidth
        bound = "compute" if compute >= memory and operation.flops else "memory"
        seconds = max(compute, memory) / efficiency
        facts = (operation.layer, operation.stage, operation.kind, operation.flops, operation.bytes)
        rows.append(RooflineRow(*facts, seconds, bound, peak))
    result = Roofline(workload.network, workload.design, workload.batch, device, float(efficiency), tuple(rows))
    if not result.seconds > 0:
        raise ValueError(
            f"workload {workload.network!r} of design {workload.design!r} has no operation that takes time"
        )
    return result


@dataclass(frozen=True)
class Utilisation:
    """How much of a device's peak a part of an iteration reached.

    Parameters
    ----------
    layer, stage : str
        The part; both empty of the whole iteration.
    flops : int
        Operations of its matrix products.
    seconds : float
        The time it took.
    share : float
        The time its matrix products would take at peak over the time it took.

    Examples
    --------
    >>> Utilisation("fc1", "forward", 10**9, 1e-3, 0.1).achieved
    1000000000000.0
    """

    layer: str
    stage: str
    flops: int
    seconds: float
    share: float

    @property
    def achieved(self) -> float:
        """FLOP/s."""
        return self.flops / self.seconds

    def to_table(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "layer": self.layer, "stage": self.stage, "flops": self.flops, "seconds": self.seconds,
            "achieved": self.achieved, "share": self.share,
        }  # fmt: skip


def _part_seconds(time: IterationTime) -> dict[tuple[str, str], float]:
    """Seconds of each layer's stage, as far as the detail of a time knows them."""
    detail = time.detail or {}
    parts: dict[tuple[str, str], list[float]] = {}
    if detail.get("model") == "roofline":
        for row in detail["operations"]:
            if row["kind"] == "gemm":
                parts.setdefault((row["layer"], row["stage"]), []).append(row["seconds"])
        return {key: math.fsum(values) for key, values in parts.items()}
    clock = detail.get("hardware", {}).get("clock")
    hertz = float(frequency(clock)) if clock is not None else detail.get("clock_hz")
    for row in detail.get("gemms", ()):
        if "seconds" in row:
            seconds = row["seconds"]
        elif "cycles" in row and hertz:
            seconds = row["cycles"] / hertz
        else:
            continue
        parts.setdefault((row["layer"], row["pass"]), []).append(row.get("count", 1) * seconds)
    return {key: math.fsum(values) for key, values in parts.items()}


def utilisation(workload: Workload, time: IterationTime, device: Device) -> list[Utilisation]:
    """Achieved over peak, per layer and pass where a time knows them, and of the whole iteration.

    Parameters
    ----------
    workload : Workload
        What was computed.
    time : IterationTime
        Measured, simulated or estimated. A time of SCALE-Sim or of a roofline knows its parts.
    device : Device
        What it was computed on.

    Returns
    -------
    list of Utilisation
        The whole iteration first (empty names), then its parts in the workload's order.

    Raises
    ------
    ValueError
        If the time is of another design, names a part that the workload does not have, or a format has no rate.

    Examples
    --------
    >>> from softnum.tta import load_reports, scalesim_timings
    >>> from softnum.tta.estimates import Device
    >>> from softnum.tta.workloads.operations import workload_of_gemms
    >>> point = load_reports().designs["a-float32"]
    >>> time = scalesim_timings([point])[point.name]
    >>> rows = utilisation(workload_of_gemms(point, 32), time, Device.of_hardware(point.hardware))
    >>> f"{rows[0].share:.1%}", rows[1].layer, f"{rows[1].share:.1%}"
    ('5.3%', 'fc1', '7.2%')
    """
    if time.design != workload.design:
        raise ValueError(f"the time is of design {time.design!r}, the workload of {workload.design!r}")
    flops: dict[tuple[str, str], int] = {}
    ideal: dict[tuple[str, str], list[float]] = {}
    for operation in workload.operations:
        if _is_gemm(operation):
            key = (operation.layer, operation.stage)
            flops[key] = flops.get(key, 0) + operation.flops
            ideal.setdefault(key, []).append(operation.flops / device.peak(operation.formats).flops)
    parts = _part_seconds(time)
    shapes = {(gemm.layer, gemm.phase, *gemm.shape) for gemm in workload.gemms}
    rows = [row for row in (time.detail or {}).get("gemms", ()) if row.keys() >= set(_GEMM_KEYS)]
    strange = [key for key in parts if key not in flops]
    strange += [key for row in rows if (key := tuple(row[name] for name in _GEMM_KEYS)) not in shapes and shapes]
    if strange:
        raise ValueError(
            f"the time of {time.design!r} has a part {' '.join(map(str, strange[0]))} that the workload lacks; "
            "it is of another network or batch"
        )
    rows = [
        Utilisation("", "", sum(flops.values()), time.seconds, math.fsum(map(math.fsum, ideal.values())) / time.seconds)
    ]
    for key in flops:
        if parts.get(key):
            rows.append(Utilisation(*key, flops[key], parts[key], math.fsum(ideal[key]) / parts[key]))
    return rows


@dataclass(frozen=True)
class Inference:
    """Forward pass only: how long one batch takes, how many samples a second, and what a million of them cost.

    Parameters
    ----------
    network, design, device : str
    batch : int
        Samples of a batch.
    latency : float
        Seconds of one batch.
    rent : Money or None
        Of one device for an hour.

    Examples
    --------
    >>> fast = Inference("net", "fp16", "v100", 8, 2e-3, Money(3.06, "2025-01", "a price list"))
    >>> fast.throughput, f"{fast.dollars_per_million:.4f}"
    (4000.0, '0.2125')
    """

    network: str
    design: str
    device: str
    batch: int
    latency: float
    rent: Money | None = None

    @property
    def throughput(self) -> float:
        """Samples per second, one batch after another."""
        return self.batch / self.latency

    @property
    def dollars_per_million(self) -> float | None:
        """US dollars for a million samples on a device that is always busy; None without a rent."""
        return None if self.rent is None else self.rent.dollars / 3600 * 1e6 / self.throughput

    def to_table(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "network": self.network, "design": self.design, "device": self.device, "batch": self.batch,
            "latency": self.latency, "throughput": self.throughput, "dollars_per_million": self.dollars_per_million,
            "rent": None if self.rent is None else self.rent.dollars,
        }  # fmt: skip


def inference(workload: Workload, device: Device, efficiency: float = 1.0, *, rent: Money | None = None) -> Inference:
    """The roofline of the forward pass alone.

    Parameters
    ----------
    workload : Workload
        Of the batch that is asked about: one sample for latency, many for throughput. Everything of its forward stage
        counts, the loss included where it is an operation there.
    device : Device
    efficiency : float
        As of `roofline`.
    rent : Money, optional
        In place of the device's.

    Returns
    -------
    Inference

    Raises
    ------
    ValueError
        If the workload has no forward pass, or as `roofline`.

    Examples
    --------
    >>> from softnum.tta import Operation, Workload
    >>> from softnum.tta.estimates import device
    >>> forward = Operation("fc", "forward", "gemm", 2 * 1024**3, 4 * 1024**2, 2 * 1024**2, ("binary16",))
    >>> backward = Operation("fc", "backward_data", "gemm", 2 * 1024**3, 4 * 1024**2, 2 * 1024**2, ("binary16",))
    >>> result = inference(Workload("one", "fp16", 1024, (forward, backward)), device("v100"))
    >>> f"{result.latency:.4g} s, {result.throughput:.4g}/s, ${result.dollars_per_million:.3g}"
    '1.718e-05 s, 5.96e+07/s, $1.43e-05'
    """
    forward = tuple(operation for operation in workload.operations if operation.stage == "forward")
    if not forward:
        raise ValueError(f"workload {workload.network!r} of design {workload.design!r} has no forward pass")
    roof = roofline(Workload(workload.network, workload.design, workload.batch, forward), device, efficiency)
    return Inference(
        workload.network, workload.design, device.name, workload.batch, roof.seconds, rent or device.rent
    )  # fmt: skip

"""What an iteration holds in memory, and what data-parallel workers make of its time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from softnum.tta.estimates.device_files import Device
from softnum.tta.estimates.rooflines import roofline
from softnum.tta.html import charts, values
from softnum.tta.html.folder import Comparison, iteration_time
from softnum.tta.html.model import Cell, Chart, Note, Row, Table, identifier
from softnum.tta.workloads.exchange import Exchange, gradient_bytes
from softnum.tta.workloads.layer_times import gemm_layer_times
from softnum.tta.workloads.memory import memory_of
from softnum.tta.workloads.network_time import minimum_bandwidth, parallel_sweep
from softnum.tta.workloads.operations import TENSOR_CLASSES, Workload

__all__ = ["memory_blocks", "parallel_blocks"]

#: numbers of workers, and gigabits per second of their links
WORKERS = (2, 4, 8, 16)
GIGABITS = (1, 2, 5, 10, 25, 50, 100, 200, 400, 800, 1600)
_CLASS_WORDS = {name: name.replace("_", " ") for name in TENSOR_CLASSES}
_NO_WORKLOADS = "There is no workloads.json, which says what an iteration consists of; softnum tta writes it."


def _workloads(comparison: Comparison) -> dict[str, Workload]:
    found = {label: comparison.workload_of(label) for label in comparison.designs}
    return {label: workload for label, workload in found.items() if workload is not None}


def memory_blocks(comparison: Comparison, prefix: str) -> list[Chart | Table | Note]:
    """Bytes at the peak by class of tensor, for each design."""
    workloads = {label: work for label, work in _workloads(comparison).items() if work.tensors}
    if not workloads:
        why = "workloads.json lists no tensors." if comparison.workloads else _NO_WORKLOADS
        return [Note((f"No memory: {why}",), quiet=True)]
    memories = {label: memory_of(workload) for label, workload in workloads.items()}
    bars = [
        {"design": label, "class": _CLASS_WORDS[name], "value": size}
        for label, memory in memories.items()
        for name, size in memory.at_peak.items()
        if size
    ]
    parts = [_CLASS_WORDS[name] for name in TENSOR_CLASSES if any(m.at_peak[name] for m in memories.values())]
    chart = charts.bars(
        identifier(prefix, "memory"), "Memory by class of tensor", "Held at the peak of one training iteration.",
        rows=bars, designs=comparison.designs, part="class", parts=parts, axis="bytes at the peak", unit="B", wide=True,
    )  # fmt: skip
    rows, data = [], []
    for label, memory in memories.items():
        largest = [(layer, held) for layer, held in memory.dominant(3) if held]
        most = ", ".join(f"{layer} {values.share(size / memory.peak)}" for layer, size in largest)
        sizes = [memory.at_peak[name] for name in TENSOR_CLASSES]
        rows.append(
            Row.of(
                Cell(label, f"batch {memory.batch}"), Cell(values.size(memory.peak), full=f"{memory.peak} bytes"),
                *(Cell(values.size(size), full=f"{size} bytes") for size in sizes), most, design=label,
            )
        )  # fmt: skip
        data.append(
            {
                "design": label, "batch": memory.batch, "peak_bytes": memory.peak, "allocated_bytes": memory.total,
                **{f"{name}_bytes": memory.at_peak[name] for name in TENSOR_CLASSES}, "largest_layers": dict(largest),
            }
        )  # fmt: skip
    head = ("Design", "Peak", *(_CLASS_WORDS[name].capitalize() for name in TENSOR_CLASSES), "Largest layers")
    caption = "Counted from the tensors of an iteration and when they are held; no allocator is asked."
    table = Table(
        identifier(prefix, "memory-table"), "Memory", head, tuple(rows), tuple(data), caption,
        frozenset({0, len(head) - 1}),
    )  # fmt: skip
    return [chart, table]


def parallel_blocks(
    comparison: Comparison, variant: Mapping[str, Any], prefix: str, device: Device | None
) -> list[Chart | Table | Note]:
    """Speed-up of data-parallel workers over bandwidth, and the bandwidth from which they help."""
    workloads = _workloads(comparison)
    if not workloads:
        return [Note((f"No data-parallel times: {_NO_WORKLOADS}",), quiet=True)]
    points, rows, data, notes = [], [], [], []
    for entry in variant["designs"]:
        label = entry["design"]
        workload = workloads.get(label)
        times, why = (None, "workloads.json does not have it") if workload is None else _times(entry, workload, device)
        if times is not None and not any(tensor.tensor_class == "weight_gradients" for tensor in workload.tensors):
            times, why = None, "workloads.json lists no gradients of its weights"
        if times is None:
            notes.append(f"{label}: {why}")
            continue
        gradients = sum(gradient_bytes(workload).values())
        for time in parallel_sweep(workload, times, WORKERS, [g * 10**9 for g in GIGABITS]):
            points.append(
                {
                    "design": label, "workers": time.workers, "bandwidth": float(time.bandwidth),
                    "speedup": float(time.speedup), "efficiency": float(time.efficiency),
                    "iteration": float(time.seconds), "exposed": float(time.exposed),
                }
            )  # fmt: skip
        least = {count: minimum_bandwidth(workload, times, count) for count in WORKERS}
        cells = [
            Cell(_bits(rate), full="" if rate is None else f"{float(rate)!r} bits per second")
            for rate in least.values()
        ]
        rows.append(Row.of(label, Cell(values.size(gradients), full=f"{gradients} bytes"), *cells, design=label))
        rates = {f"least_bits_per_second_{n}_workers": None if r is None else float(r) for n, r in least.items()}
        data.append({"design": label, "gradient_bytes": gradients, **rates})
    if not points:
        return [Note.of(notes, "No data-parallel times", quiet=True)]
    of = variant["label"] if device is None else f"the roofline of {device.title}"
    caption = (
        f"Each worker computes its design's batch in the time of {of}; gradients, in the format they are "
        f"stored in, are added up in a ring while the backward pass goes on. Latency: {float(Exchange().latency):g} s."
    )
    chart = charts.lines(
        identifier(prefix, "parallel"), "Speed-up of data-parallel workers", caption, rows=points,
        designs=comparison.designs, x=("bandwidth", "bandwidth of a link", "b/s"),
        y=("speedup", "speed-up over one worker", ""), choose=("workers", "Workers", WORKERS, WORKERS[1]),
        tips={
            "workers": ("workers", "d"), "bandwidth": ("bandwidth (b/s)", "~s"), "speedup": ("speed-up", ".2f"),
            "efficiency": ("efficiency", ".1%"), "iteration": ("iteration (s)", ".4~s"),
            "exposed": ("exposed (s)", ".4~s"),
        },
    )  # fmt: skip
    head = ("Design", "Gradients", *(f"{count} workers" for count in WORKERS))
    table = Table(
        identifier(prefix, "parallel-table"), "Bandwidth from which workers are faster than one", head, tuple(rows),
        tuple(data), "Of each link in each direction; gradients are those of one iteration.",
    )  # fmt: skip
    return [chart, table, *([Note.of(notes, "Left out")] if notes else [])]


def _bits(rate) -> str:
    if rate is None:
        return "never"
    return "any" if rate == 0 else values.amount(float(rate), "b/s")


def _times(entry: Mapping[str, Any], workload: Workload, device: Device | None):
    """Seconds of each layer by pass, or None and why there are none."""
    if device is not None:
        return roofline(workload, device).layer_times, ""
    if entry["time"] is None:
        return None, f"no time: {entry['left_out']}"
    rows = (entry["time"]["detail"] or {}).get("gemms")
    if not rows or not all(isinstance(row, Mapping) and {"layer", "pass", "cycles"} <= set(row) for row in rows):
        return None, "its time is of whole iterations; softnum report --device estimates that of each layer"
    return gemm_layer_times(iteration_time(entry["time"])), ""

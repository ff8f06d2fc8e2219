"""What the hardware makes of an iteration: rooflines, utilisation by layer, and where the time goes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from softnum.tta.estimates.device_files import Device
from softnum.tta.estimates.rooflines import roofline, utilisation
from softnum.tta.html import charts, values
from softnum.tta.html.folder import Comparison, iteration_time
from softnum.tta.html.model import Chart, Note, Row, Table, identifier
from softnum.tta.workloads.hardware import Hardware
from softnum.tta.workloads.operations import STAGES

__all__ = ["blocks"]

_STAGE_WORDS = {"forward": "forward", "backward_data": "backward, data", "backward_weight": "backward, weights"}


def blocks(
    comparison: Comparison, variant: Mapping[str, Any], prefix: str, device: Device | None
) -> list[Chart | Table | Note]:
    """The roofline of each design, its utilisation by layer and its seconds by layer."""
    if not comparison.workloads:
        line = "There is no workloads.json, which says what an iteration consists of; softnum tta writes it."
        return [Note((f"No roofline and no utilisation: {line}",), quiet=True)]
    points, parts, summary, notes = [], [], [], []
    machines: dict[tuple[Any, ...], str] = {}
    where = variant["label"] if device is None else device.title
    for entry in variant["designs"]:
        label = entry["design"]
        workload = comparison.workload_of(label)
        time = None if entry["time"] is None else iteration_time(entry["time"])
        own = _hardware(entry["time"])
        place = device or own
        if workload is None or place is None:
            why = "its time names no hardware; softnum report --device names one"
            if workload is None:
                why = "workloads.json does not have it"
            elif entry["time"] is None:
                why = entry["left_out"]
            notes.append(f"{label}: {why}")
            continue
        workload = replace(workload, design=label)
        if device is not None and own is not None:  # one machine's time over another's peak is no utilisation
            time = None
            notes.append(f"{label}: its time is of {own.title}, and does not tell what {device.title} would take")
        roof = roofline(workload, place)
        notes += [f"{label}: {reason}" for reason in roof.proxies]
        used = [] if time is None else utilisation(workload, time, place)
        found = {(part.layer, part.stage): part for part in used[1:]}
        for row in roof.rows:
            machines.setdefault((row.peak.flops, place.bandwidth), f"{place.title}, {row.peak.format}")
        points += _points(label, roof.rows, found)
        parts += [(label, part) for part in used[1:]]
        summary.append((label, place, roof, used[0] if used else None))
    found = []
    if points:
        roofs = [{"roof": words, "peak": peak, "bandwidth": rate} for (peak, rate), words in machines.items()]
        timed = "Matrix products where their simulated or measured time puts them, everything else"
        caption = (
            f"{timed if parts else 'Every operation'} where the roofline would allow it to be; the lines are the peak "
            "rates and the bandwidth."
        )
        name = identifier(prefix, "roofline", variant["label"])
        designs = comparison.designs
        found.append(charts.roofs(name, f"Roofline, {where}", caption, points=points, roofs=roofs, designs=designs))
        found.append(_table(summary, prefix, variant["label"], where))
    if parts:
        found += _by_layer(comparison, parts, prefix, variant["label"])
    elif any(whole is not None for *_, whole in summary):
        line = "The times are of whole iterations, so no layer's utilisation is known."
        found.append(Note((line,), quiet=True))
    return [*found, *([Note.of(notes, "Of the rooflines")] if notes else [])]


def _hardware(time: Mapping[str, Any] | None) -> Device | None:
    """The design's own array, where its time names it."""
    table = ((time or {}).get("detail") or {}).get("hardware")
    return None if table is None else Device.of_hardware(Hardware.from_table(table))


def _points(label: str, rows, found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One point for each pass of a layer's matrix products, and for each other operation that computes."""
    points, done = [], set()
    for row in rows:
        if not row.flops or not row.bytes:
            continue
        known = found.get((row.layer, row.stage)) if row.kind == "gemm" else None
        if known is not None and (row.layer, row.stage) in done:
            continue
        same = [r for r in rows if (r.layer, r.stage, r.kind) == (row.layer, row.stage, "gemm")] if known else [row]
        done.add((row.layer, row.stage) if known else None)
        points.append(
            {
                "design": label,
                "layer": row.layer,
                "stage": row.stage,
                "operation": row.kind,
                "time": "known" if known else "at the roof",
                "bound": row.bound,
                "intensity": sum(r.flops for r in same) / sum(r.bytes for r in same),
                "rate": known.achieved if known else row.achieved,
            }
        )
    return points


def _table(summary, prefix: str, label: str, where: str) -> Table:
    rows, data = [], []
    for design, place, roof, whole in summary:
        products = math.fsum(row.seconds for row in roof.rows if row.kind == "gemm")
        cells = [
            design, place.title, values.amount(place.bandwidth, "B/s"), values.amount(roof.flops, "FLOP"),
            values.seconds(roof.seconds), values.seconds(products), values.share(roof.compute_bound),
            "-" if whole is None else values.seconds(whole.seconds),
            "-" if whole is None else values.share(whole.share),
        ]  # fmt: skip
        rows.append(Row.of(*cells, design=design))
        data.append(
            {
                "design": design, "device": place.title, "bandwidth": place.bandwidth, "flops": roof.flops,
                "roofline_seconds": roof.seconds, "roofline_seconds_gemm": products,
                "compute_bound_share": roof.compute_bound,
                "seconds": None if whole is None else whole.seconds,
                "utilisation": None if whole is None else whole.share,
            }
        )  # fmt: skip
    head = (
        "Design",
        "Hardware",
        "Bandwidth",
        "Operations",
        "Least time",
        "of it products",
        "compute-bound",
        "Time",
        "Utilisation",
    )
    caption = (
        "Of one iteration. Least time: what the roofline allows everything it does, and its matrix products alone, "
        "which are all that a simulated time is of. Utilisation: the time its matrix products would take at peak over "
        "its time."
    )
    name = identifier(prefix, "roofline-table", label)
    return Table(name, f"Iteration, {where}", head, tuple(rows), tuple(data), caption, frozenset({0, 1}))


def _by_layer(comparison: Comparison, parts, prefix: str, label: str) -> list[Chart]:
    stages = [stage for stage in STAGES if any(part.stage == stage for _, part in parts)]
    words = {stage: _STAGE_WORDS.get(stage, stage) for stage in stages}
    order = list(dict.fromkeys(f"{part.layer}, {words[part.stage]}" for _, part in parts))
    rows = [
        {
            "design": design, "part": f"{part.layer}, {words[part.stage]}", "value": part.share,
            "FLOP": part.flops, "seconds": part.seconds,
        }
        for design, part in parts
    ]  # fmt: skip
    caption = "Of each pass of a layer: the time its matrix product would take at peak over the time it takes."
    designs = comparison.designs
    used = charts.heat(
        identifier(prefix, "utilisation", label), f"Utilisation, {label}", caption, rows=rows, designs=designs,
        across=order, measure="utilisation",
    )  # fmt: skip
    layers = list(dict.fromkeys(part.layer for _, part in parts))
    spent: dict[tuple[str, str], float] = {}
    for design, part in parts:
        spent[design, part.layer] = spent.get((design, part.layer), 0.0) + part.seconds
    most = sorted(layers, key=lambda layer: (-max(spent.get((d, layer), 0.0) for d in designs), layer))[:7]
    kept = [layer for layer in layers if layer in most]
    bars, rest = [], {}
    for (design, layer), value in spent.items():
        if layer in kept:
            bars.append({"design": design, "layer": layer, "value": value})
        else:
            rest[design] = rest.get(design, 0.0) + value
    other = f"{len(layers) - len(kept)} other layers"
    bars += [{"design": design, "layer": other, "value": value} for design, value in rest.items()]
    caption = "Time of one iteration in matrix products, forward and backward together."
    return [
        used,
        charts.bars(
            identifier(prefix, "layers", label), f"Time by layer, {label}", caption, rows=bars, designs=designs,
            part="layer", parts=[*kept, *([other] if rest else [])], axis="time per iteration", unit="s", wide=True,
        ),
    ]  # fmt: skip

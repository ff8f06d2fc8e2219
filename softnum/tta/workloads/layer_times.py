"""What the parts of an iteration take, and when a layer's gradients are there: what networks and traces begin from.

A part is what a layer does in one stage; it has a time of its own, and its place is that of its last operation.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from softnum.tta.text import number, read_text, table_rows
from softnum.tta.workloads.hardware import PASSES
from softnum.tta.workloads.iteration import IterationTime
from softnum.tta.workloads.operations import STAGES, Workload

__all__ = ["LayerTimes", "gemm_layer_times", "gradients_made", "layer_seconds", "parts_in_order", "read_layer_times"]

LayerTimes = Mapping[str, Mapping[str, float] | Sequence[float]]


def gemm_layer_times(time: IterationTime) -> dict[str, dict[str, float]]:
    """Seconds of each layer by pass, of a time that a simulator gives GEMM by GEMM.

    Parameters
    ----------
    time : IterationTime
        Its ``detail["gemms"]`` has rows with ``layer``, ``pass`` and ``cycles``; of one product where a row has a
        ``count`` of them, as in `scalesim_timings`.

    Returns
    -------
    dict
        Layer -> pass -> seconds; they add up to the time of the iteration.

    Raises
    ------
    ValueError
        If there are no such rows.

    Examples
    --------
    >>> rows = [{"layer": "lstm", "pass": "forward", "cycles": 100, "count": 8}]
    >>> rows += [{"layer": "fc", "pass": p, "cycles": 100} for p in ("forward", "backward_weight")]
    >>> gemm_layer_times(IterationTime("a", 1e-6, detail={"gemms": rows}))
    {'lstm': {'forward': 8e-07}, 'fc': {'forward': 1e-07, 'backward_weight': 1e-07}}
    """
    rows = (time.detail or {}).get("gemms")
    if not rows or not all({"layer", "pass", "cycles"} <= set(row) for row in rows):
        raise ValueError(
            f"the time of {time.design!r} ({time.source or 'no source'}) does not say what each GEMM takes; take one "
            "of SCALE-Sim, a roofline, or give the times of the layers"
        )
    found: dict[str, dict[str, Fraction]] = {}
    cycles = Fraction(0)
    for row in rows:
        own, together = found.setdefault(row["layer"], {}), row.get("count", 1) * Fraction(row["cycles"])
        own[row["pass"]] = own.get(row["pass"], Fraction(0)) + together
        cycles += together
    scale = Fraction(time.seconds) / cycles
    return {layer: {name: float(own * scale) for name, own in passes.items()} for layer, passes in found.items()}


def read_layer_times(path: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """Read what the layers of an iteration take, from a CSV file.

    Parameters
    ----------
    path : path-like
        Columns ``layer,forward,backward_data,backward_weight`` and perhaps ``update``, in seconds, in any order; a row
        for each layer.

    Returns
    -------
    dict
        Layer -> stage -> seconds, as `parallel_time` takes them.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, or it is no such table; the message names file and line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "layers.csv")
    ...     _ = file.write_text("layer,forward,backward_data,backward_weight\\nfc1,3e-6,0,3e-6\\n")
    ...     read_layer_times(file)
    {'fc1': {'forward': 3e-06, 'backward_data': 0.0, 'backward_weight': 3e-06}}
    """
    path = Path(path)
    text = read_text(path, f"no file {str(path)!r} with the times of layers")
    found: dict[str, dict[str, float]] = {}
    for where, row in table_rows(path, text, _check_stages, what=f"the columns layer,{','.join(PASSES)}"):
        layer = row.pop("layer")
        if layer in found:
            raise ValueError(f"{where}: has layer {layer!r} again; one line for each layer, with its sums")
        found[layer] = {name: float(number(where, name, cell, positive=False)) for name, cell in row.items()}
    if not found:
        raise ValueError(f"{path}: names no layer; a line for each, under the first")
    return found


def _check_stages(where: str, header: list[str]) -> None:
    if sorted(header) not in (sorted(["layer", *PASSES]), sorted(["layer", *STAGES])):
        raise ValueError(
            f"{where}: the columns must be layer,{','.join(PASSES)} and perhaps update, in seconds, got "
            f"{','.join(header)}"
        )


def parts_in_order(workload: Workload) -> list[tuple[int, str, str]]:
    """(number of its last operation, layer, stage) of each part of an iteration that has a time, in order."""
    last = {(operation.layer, operation.stage): number for number, operation in enumerate(workload.operations)}
    return sorted((place, layer, stage) for (layer, stage), place in last.items())


def gradients_made(workload: Workload, layers: Iterable[str]) -> dict[str, int]:
    """The operation after which a layer's gradients are all there; ValueError of a network with several updates."""
    order = [operation.stage for operation in workload.operations]
    if "update" in order and set(order[order.index("update") :]) != {"update"}:
        raise ValueError(
            f"{workload.network!r} is updated several times in an iteration, each time after an exchange of its own; "
            "that is not modelled"
        )
    made: dict[str, int] = {}
    for tensor in workload.tensors:
        if tensor.tensor_class == "weight_gradients" and tensor.live is not None:
            made[tensor.layer] = max(made.get(tensor.layer, 0), tensor.live[0])
    stages: dict[str, dict[str, int]] = {}  # of a layer and its parts, each with its last operation
    for place, operation in enumerate(workload.operations):
        parts = operation.layer.split(".")
        for size in range(1, len(parts) + 1):
            stages.setdefault(".".join(parts[:size]), {})[operation.stage] = place
    for layer in layers:
        last = stages.get(layer, {})
        if layer not in made and not last.keys() & {"backward_weight", "backward_data"}:
            raise ValueError(f"layer {layer!r} of {workload.network!r} has weight gradients and no backward operation")
        if "backward_weight" in last or layer not in made:
            number = last.get("backward_weight", last.get("backward_data"))
            made[layer] = max(made.get(layer, 0), number)
    return made


def layer_seconds(workload: Workload, times: LayerTimes) -> dict[str, dict[str, Fraction]]:
    """Seconds of each layer by stage as exact fractions; ValueError of an unknown layer, or of no time at all."""
    seconds = {layer: _stages(layer, row) for layer, row in times.items()}
    known = set(workload.layers)
    unknown = [layer for layer in seconds if layer not in known]
    if unknown:
        raise ValueError(
            f"times are given of {unknown[0]!r}, which is no layer of {workload.network!r}; its layers: "
            f"{', '.join(workload.layers)}"
        )
    if not any(any(stages.values()) for stages in seconds.values()):
        raise ValueError(f"no layer of {workload.network!r} takes any time")
    return seconds


def _stages(layer: str, row) -> dict[str, Fraction]:
    """Seconds by stage, as exact fractions."""
    if not isinstance(row, Mapping):
        row = tuple(row)
        if len(row) not in (3, 4):
            raise ValueError(
                f"times of layer {layer!r} must be (forward, backward_data, backward_weight[, update]), got {row}"
            )
        row = dict(zip(STAGES, row, strict=False))
    for stage, value in row.items():
        if stage not in STAGES:
            raise ValueError(f"times of layer {layer!r} name the stage {stage!r}; stages: {', '.join(STAGES)}")
        if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)) or not 0 <= value < float("inf"):
            raise ValueError(f"the time of layer {layer!r} in {stage} must be a number of seconds, got {value!r}")
    return {stage: Fraction(value) for stage, value in row.items()}

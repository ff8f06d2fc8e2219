"""Data-parallel training over a network: what exchanging the gradients of an iteration costs, and when it pays.

Every worker computes an iteration of the same batch; then gradients are added over all workers, layer by layer. A
layer's gradient can leave as soon as it is computed, while the backward pass goes on to the layers before it; what is
still on its way when the backward pass ends is *exposed*: nobody computes meanwhile. Everything is computed in exact
fractions from the times and bandwidths that are given.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from pathlib import Path

from softnum.tta.quantities import positive_int
from softnum.tta.text import number, read_text, table_rows
from softnum.tta.workloads.exchange import Exchange, ParallelTime, Transfer, gradient_bytes
from softnum.tta.workloads.hardware import PASSES
from softnum.tta.workloads.iteration import IterationTime
from softnum.tta.workloads.operations import STAGES, Workload

__all__ = ["gemm_layer_times", "minimum_bandwidth", "parallel_sweep", "parallel_time", "read_layer_times"]

_RING = Exchange()
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


def read_layer_times(path: str | os.PathLike) -> dict[str, dict[str, float]]:
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


@dataclass(frozen=True)
class _Backward:
    """What is known of an iteration before any network is: when each layer's gradients are ready, and what they are."""

    compute: Fraction
    end: Fraction  # of the backward pass
    layers: tuple[str, ...]  # in the order in which they are ready
    ready: tuple[Fraction, ...]
    bits: tuple[int, ...]
    back: tuple[int, ...]  # what a server sends back: the weights


def _backward(workload: Workload, times: LayerTimes, compress: str | None) -> _Backward:
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
    sizes = gradient_bytes(workload, compress)
    stages = [operation.stage for operation in workload.operations]
    if "update" in stages and set(stages[stages.index("update") :]) != {"update"}:
        raise ValueError(
            f"{workload.network!r} is updated several times in an iteration, each time after an exchange of its own; "
            "that is not modelled"
        )
    made = _made(workload, sizes)
    forward, update = (
        sum((own.get(stage, 0) for own in seconds.values()), Fraction(0)) for stage in ("forward", "update")
    )
    now, ready = forward, {}
    last = {(operation.layer, operation.stage): number for number, operation in enumerate(workload.operations)}
    slots = sorted((place, layer, stage) for (layer, stage), place in last.items() if stage in PASSES[1:])
    waiting = sorted((place, layer) for layer, place in made.items())
    for place, layer, stage in [*slots, (len(workload.operations), "", "")]:
        while waiting and waiting[0][0] < place:
            ready[waiting.pop(0)[1]] = now
        now += seconds.get(layer, {}).get(stage, 0)
    weights: dict[str, int] = {}
    for tensor in workload.tensors:
        if tensor.tensor_class == "weights":
            weights[tensor.layer] = weights.get(tensor.layer, 0) + tensor.bytes
    layers = tuple(ready)
    return _Backward(
        now + update, now, layers, tuple(ready.values()), tuple(8 * sizes[layer] for layer in layers),
        tuple(8 * weights.get(layer, 0) for layer in layers),
    )  # fmt: skip


def _made(workload: Workload, layers) -> dict[str, int]:
    """The operation after which a layer's gradients are all there."""
    made: dict[str, int] = {}
    for tensor in workload.tensors:
        if tensor.tensor_class == "weight_gradients" and tensor.live is not None:
            made[tensor.layer] = max(made.get(tensor.layer, 0), tensor.live[0])
    for layer in layers:
        own = [
            (operation.stage, number)
            for number, operation in enumerate(workload.operations)
            if operation.layer == layer or operation.layer.startswith(f"{layer}.")  # a part of it
        ]
        last = dict(sorted(own, key=lambda row: row[1]))
        if layer not in made and not last.keys() & {"backward_weight", "backward_data"}:
            raise ValueError(f"layer {layer!r} of {workload.network!r} has weight gradients and no backward operation")
        if "backward_weight" in last or layer not in made:
            number = last.get("backward_weight", last.get("backward_data"))
            made[layer] = max(made.get(layer, 0), number)
    return made


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


def parallel_time(
    workload: Workload,
    times: LayerTimes,
    workers: int,
    bandwidth: Fraction | int,
    exchange: Exchange = _RING,
) -> ParallelTime:
    """The time of an iteration of data-parallel workers, each of which computes the workload's whole batch.

    Gradients of a layer are ready when the last operation that makes them is done. Exchanges are made one after another
    in that order, each as soon as it is ready and the one before it is done, and the update follows the last.

    Parameters
    ----------
    workload : Workload
    times : Mapping
        Layer -> seconds by stage, as ``Roofline.layer_times`` and `gemm_layer_times` give them, or (forward,
        backward_data, backward_weight[, update]). What is not named takes no time.
    workers : int
    bandwidth : Fraction or int
        *Bits* per second of each link, in each direction (`bit_rate`).
    exchange : Exchange

    Returns
    -------
    ParallelTime

    Raises
    ------
    ValueError
        If a number is out of its range, a time is of no layer, the workload lists no weight gradients, or it has
        several updates in an iteration.

    Examples
    --------
    >>> from softnum.train import load_design, workload
    >>> work = workload("mlp", load_design("a-float32"), 32)
    >>> times = {"fc1": (3e-6, 0, 3e-6), "fc2": (1e-6, 1e-6, 1e-6)}
    >>> from softnum.tta import bit_rate
    >>> time = parallel_time(work, times, workers=4, bandwidth=bit_rate("100 Gb/s"))
    >>> [(transfer.layer, transfer.bytes) for transfer in time.transfers], round(float(time.exposed * 10**6), 4)
    ([('fc2', 5160), ('fc1', 33280)], 3.9936)
    """
    return _timed(_backward(workload, times, exchange.compress), workload, workers, _rate(bandwidth), exchange)


def _rate(bandwidth) -> Fraction:
    if isinstance(bandwidth, (str, bool)) or not 0 < bandwidth < inf:
        raise ValueError(f"bandwidth must be a positive number of bits per second, got {bandwidth!r}; see bit_rate")
    return Fraction(bandwidth)


def _timed(known: _Backward, workload: Workload, workers: int, rate: Fraction, exchange: Exchange) -> ParallelTime:
    positive_int(workers, "workers")
    now, transfers = Fraction(0), []
    if workers > 1:
        for layer, ready, bits, back in zip(known.layers, known.ready, known.bits, known.back, strict=True):
            load, wait = exchange.cost(workers, bits, back)
            start = max(now, ready if exchange.overlap else known.end)
            now = start + load / rate + wait
            transfers.append(Transfer(layer, bits // 8, ready, start, now))
    exposed = max(Fraction(0), now - known.end)
    return ParallelTime(workers, workload.batch, rate, exchange, known.compute, tuple(transfers), exposed)


def parallel_sweep(
    workload: Workload,
    times: LayerTimes,
    workers: Iterable[int],
    bandwidths: Iterable[Fraction | int],
    exchange: Exchange = _RING,
) -> list[ParallelTime]:
    """`parallel_time` of every number of workers at every bandwidth.

    Parameters
    ----------
    workload, times, exchange
        As of `parallel_time`.
    workers : iterable of int
    bandwidths : iterable of Fraction or int
        Bits per second.

    Returns
    -------
    list of ParallelTime
        All bandwidths of the first number of workers, then of the next.

    Raises
    ------
    ValueError
        As of `parallel_time`.

    Examples
    --------
    >>> from softnum.train import load_design, workload
    >>> work = workload("mlp", load_design("a-float32"), 32)
    >>> times = {"fc1": (3e-6, 0, 3e-6), "fc2": (1e-6, 1e-6, 1e-6)}
    >>> rows = parallel_sweep(work, times, workers=[2, 4], bandwidths=[10**10, 10**11])
    >>> [(row.workers, int(row.bandwidth), round(float(row.speedup), 2)) for row in rows]
    [(2, 10000000000, 0.49), (2, 100000000000, 1.54), (4, 10000000000, 0.69), (4, 100000000000, 2.77)]
    """
    known = _backward(workload, times, exchange.compress)
    rates = [_rate(bandwidth) for bandwidth in bandwidths]
    return [_timed(known, workload, count, rate, exchange) for count in workers for rate in rates]


def minimum_bandwidth(
    workload: Workload,
    times: LayerTimes,
    workers: int,
    over: int = 1,
    exchange: Exchange = _RING,
) -> Fraction | None:
    """The bandwidth above which some workers have a higher throughput than fewer of them have at the same bandwidth.

    Computed exactly: the exposed time is the largest of some straight lines in 1 / bandwidth, one for each layer that
    may be the first of a run of exchanges without a pause, so that the throughputs cross on one of their pieces.

    Parameters
    ----------
    workload, times, exchange
        As of `parallel_time`.
    workers : int
        How many have to be faster.
    over : int
        Than how many, at least 1 and fewer. One less than workers tells whether the last one helps.

    Returns
    -------
    Fraction or None
        Bits per second: above it they are faster at every bandwidth, at it they are as fast. 0 if they are faster at
        every bandwidth; None if not even at the highest: then latency alone takes too long.

    Raises
    ------
    ValueError
        As of `parallel_time`; if ``over`` is not below ``workers``.

    Examples
    --------
    >>> from softnum.train import load_design, workload
    >>> work = workload("mlp", load_design("a-float32"), 32)
    >>> times = {"fc1": (3e-6, 0, 3e-6), "fc2": (1e-6, 1e-6, 1e-6)}
    >>> least = minimum_bandwidth(work, times, workers=2)
    >>> float(least) / 1e9
    29.58222222222222
    >>> [parallel_time(work, times, 2, least * Fraction(part, 1000)).speedup > 1 for part in (999, 1000, 1001)]
    [False, False, True]
    """
    positive_int(workers, "workers")
    positive_int(over, "over")
    if over >= workers:
        raise ValueError(f"over must be fewer than the {workers} workers, got {over}")
    known = _backward(workload, times, exchange.compress)
    more, fewer = (_envelope(known, exchange, count) for count in (workers, over))
    corners = sorted({x for x, *_ in (*more, *fewer)})
    # workers * t_fewer(x) - over * t_more(x) is a line between two corners; they are faster where it is above 0
    for left, right in zip(corners, [*corners[1:], inf], strict=True):
        (a, b), (c, d) = _line(fewer, left), _line(more, left)
        constant, slope = workers * (known.compute + a) - over * (known.compute + c), workers * b - over * d
        if constant + slope * left <= 0:
            return None if left == 0 else 1 / left
        if slope < 0 and -constant / slope <= right:
            return -slope / constant
    return Fraction(0)


def _envelope(known: _Backward, exchange: Exchange, workers: int) -> list[tuple[Fraction, Fraction, Fraction]]:
    """The exposed time over x = 1 / bandwidth: from which x on a line is the largest, its constant, its slope."""
    best, load, wait = {Fraction(0): Fraction(0)}, Fraction(0), Fraction(0)
    for bits, back, ready in zip(*map(reversed, (known.bits, known.back, known.ready)), strict=True):
        more, seconds = exchange.cost(workers, bits, back)
        load, wait = load + more, wait + seconds
        constant = (ready if exchange.overlap else known.end) + wait - known.end
        best[load] = max(constant, best.get(load, constant))
    found: list[tuple[Fraction, Fraction, Fraction]] = []
    for slope, constant in sorted(best.items()):
        begin = Fraction(0)
        while found:
            x, other, less = found[-1]
            begin = max(Fraction(0), (other - constant) / (slope - less))
            if begin > x:
                break
            found.pop()  # nowhere the largest from here on
            begin = Fraction(0)
        found.append((begin, constant, slope))
    return found


def _line(envelope, x: Fraction) -> tuple[Fraction, Fraction]:
    """Constant and slope of the line that is the largest just right of x."""
    return next((constant, slope) for begin, constant, slope in reversed(envelope) if begin <= x)

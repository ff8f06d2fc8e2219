"""Data-parallel training over a network: what exchanging the gradients of an iteration costs, and when it pays.

Every worker computes an iteration of the same batch; then gradients are added over all workers, layer by layer. A
layer's gradient can leave as soon as it is computed, while the backward pass goes on to the layers before it; what is
still on its way when the backward pass ends is *exposed*: nobody computes meanwhile. Everything is computed in exact
fractions from the times and bandwidths that are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import inf

from softnum.tta.quantities import positive_int
from softnum.tta.workloads.exchange import Exchange, ParallelTime, Transfer, gradient_bytes
from softnum.tta.workloads.hardware import PASSES
from softnum.tta.workloads.layer_times import LayerTimes, gradients_made, layer_seconds, parts_in_order
from softnum.tta.workloads.operations import Workload

__all__ = ["exposed_time", "minimum_bandwidth", "parallel_sweep", "parallel_time"]

_RING = Exchange()


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
    seconds = layer_seconds(workload, times)
    sizes = gradient_bytes(workload, compress)
    made = gradients_made(workload, sizes)
    forward, update = (
        sum((own.get(stage, 0) for own in seconds.values()), Fraction(0)) for stage in ("forward", "update")
    )
    now, ready = forward, {}
    slots = [(place, layer, stage) for place, layer, stage in parts_in_order(workload) if stage in PASSES[1:]]
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
        backward_data, backward_weight[, update]). Layers and stages that are not named take no time.
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
    >>> from softnum.tta.quantities import bit_rate
    >>> time = parallel_time(work, times, workers=4, bandwidth=bit_rate("100 Gb/s"))
    >>> [(transfer.layer, transfer.bytes) for transfer in time.transfers], round(float(time.exposed * 10**6), 4)
    ([('fc2', 5160), ('fc1', 33280)], 3.9936)
    """
    return _timed(_backward(workload, times, exchange.compress), workload, workers, _rate(bandwidth), exchange)


def served_facts(
    workload: Workload, times: LayerTimes, bandwidth: Fraction | int, exchange: Exchange
) -> tuple[Fraction, int, Fraction]:
    """Seconds of an iteration alone, bits of a gradient and of the weights that come back, bits per second.

    >>> from softnum.train import load_design, workload
    >>> work = workload("mlp", load_design("a-float32"), 32)
    >>> served_facts(work, {"fc1": (3, 0, 3), "fc2": (1, 1, 1)}, 10, Exchange(method="server"))[:2]
    (Fraction(9, 1), 615040)
    """
    known = _backward(workload, times, exchange.compress)
    return known.compute, sum(known.bits) + sum(known.back), _rate(bandwidth)


def _rate(bandwidth) -> Fraction:
    if isinstance(bandwidth, (str, bool)) or not 0 < bandwidth < inf:
        raise ValueError(f"bandwidth must be a positive number of bits per second, got {bandwidth!r}; see bit_rate")
    return Fraction(bandwidth)


def _timed(known: _Backward, workload: Workload, workers: int, rate: Fraction, exchange: Exchange) -> ParallelTime:
    positive_int(workers, "workers")

    def cost(number: int) -> Fraction:
        load, wait = exchange.cost(workers, known.bits[number], known.back[number])
        return load / rate + wait

    transfers = _transfers(known, cost, exchange.overlap) if workers > 1 else ()
    exposed = max(Fraction(0), transfers[-1].end - known.end) if transfers else Fraction(0)
    return ParallelTime(workers, workload.batch, rate, exchange, known.compute, transfers, exposed)


def _transfers(known: _Backward, cost: Callable[[int], Fraction], overlap: bool) -> tuple[Transfer, ...]:
    """Exchanges one after another, each as soon as its gradients are ready and the one before it is done."""
    now, found = Fraction(0), []
    for n, (layer, ready, bits) in enumerate(zip(known.layers, known.ready, known.bits, strict=True)):
        start = max(now, ready if overlap else known.end)
        now = start + cost(n)
        found.append(Transfer(layer, bits // 8, ready, start, now))
    return tuple(found)


def exposed_time(
    workload: Workload, times: LayerTimes, cost: Callable[[str, int], Fraction | float], *, overlap: bool = True
) -> Fraction:
    """The seconds in which a worker waits for gradients, where each layer's exchange has a cost of its own.

    Parameters
    ----------
    workload, times
        As of `parallel_time`.
    cost : callable
        Of a layer and the bytes of its gradients: seconds.
    overlap : bool
        Whether gradients leave while the backward pass goes on.

    Returns
    -------
    Fraction

    Raises
    ------
    ValueError
        As of `parallel_time`.

    Examples
    --------
    >>> from softnum.train import load_design, workload
    >>> work = workload("mlp", load_design("a-float32"), 32)
    >>> times = {"fc1": (3e-6, 0, 3e-6), "fc2": (1e-6, 1e-6, 1e-6)}
    >>> ring = parallel_time(work, times, workers=4, bandwidth=10**11)
    >>> exposed_time(work, times, lambda layer, size: Fraction(12 * size, 10**11)) == ring.exposed
    True
    """
    known = _backward(workload, times, None)
    transfers = _transfers(known, lambda n: Fraction(cost(known.layers[n], known.bits[n] // 8)), overlap)
    return max(Fraction(0), transfers[-1].end - known.end)


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

"""The time of training by a parameter server that does not wait: updates in the order that a training states."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any

from softnum.collectives.servers import Server, server
from softnum.tta.quantities import positive_int
from softnum.tta.workloads.exchange import Exchange
from softnum.tta.workloads.layer_times import LayerTimes
from softnum.tta.workloads.network_time import served_facts
from softnum.tta.workloads.operations import Workload

__all__ = ["ServedTime", "served_time"]

_EXCHANGE = Exchange(method="server")


@dataclass(frozen=True)
class ServedTime:
    """Updates of several workers by a server.

    Parameters
    ----------
    workers, batch : int
        Batch of each worker, and of an update.
    server : str
        The order of the updates.
    bandwidth : Fraction
        Bits per second of the server's link, in each direction.
    exchange : Exchange
    compute : Fraction
        Seconds of an iteration of one worker alone, of the fastest.
    updates : int
        How many are timed, from the start.
    total : Fraction
        Seconds until the last of them is applied.
    busy : Fraction
        Seconds in which the link carries something.
    staleness : Fraction
        Updates that the weights of a gradient lack, on average.
    most : int
        The most of them.

    Examples
    --------
    >>> time = ServedTime(4, 32, "asynchronous", Fraction(10**10), _EXCHANGE, Fraction(1), 8, Fraction(4), Fraction(1),
    ...                   Fraction(5, 2), 3)
    >>> time.seconds, time.speedup, time.throughput
    (Fraction(1, 2), Fraction(2, 1), Fraction(64, 1))
    """

    workers: int
    batch: int
    server: str
    bandwidth: Fraction
    exchange: Exchange
    compute: Fraction
    updates: int
    total: Fraction
    busy: Fraction
    staleness: Fraction
    most: int

    @property
    def seconds(self) -> Fraction:
        """Of an update, on average."""
        return self.total / self.updates

    @property
    def speedup(self) -> Fraction:
        """Of the throughput, over the fastest worker alone."""
        return self.compute / self.seconds

    @property
    def throughput(self) -> Fraction:
        """Samples per second."""
        return self.batch / self.seconds

    def to_table(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "workers": self.workers, "batch": self.batch, "server": self.server, "bandwidth": float(self.bandwidth),
            "latency": float(self.exchange.latency), "servers": self.exchange.servers,
            "compress": self.exchange.compress,
            "compute": float(self.compute), "updates": self.updates, "seconds": float(self.seconds),
            "busy": float(self.busy / self.total), "staleness": float(self.staleness), "most": self.most,
            "speedup": float(self.speedup), "throughput": float(self.throughput),
        }  # fmt: skip


def served_time(
    workload: Workload,
    times: LayerTimes,
    workers: int,
    bandwidth: Fraction | int,
    order: str | Server,
    exchange: Exchange = _EXCHANGE,
    updates: int = 1000,
) -> ServedTime:
    """The time of updates in the order in which ``softnum train --server`` makes them.

    A worker begins when the weights that the order says it reads are there, computes for as long as the workload takes
    (times its ticks over the least ones), and sends its gradient. The server applies gradients in the stated order: one
    that comes early waits for those before it. Each occupies the server's link with its gradient and the weights that
    go back. So::

        begin(t) = max(applied(t - 1), latency + applied(version) + compute * ticks / least ticks + latency)
        applied(t) = begin(t) + (bits + bits of the weights) / (servers * bandwidth)

    where the first latency is left out of version 0, which all have. Nothing of a gradient is sent before it is whole.

    Parameters
    ----------
    workload, times, workers, bandwidth
        As of `softnum.tta.parallel_time`.
    order : str or Server
        As of ``softnum.train.Settings(server=...)``.
    exchange : Exchange
        Of the method "server".
    updates : int
        How many to time, from the start.

    Returns
    -------
    ServedTime

    Raises
    ------
    ValueError
        As of `softnum.tta.parallel_time`; if the order is not of so many workers, or gradients are compressed, which a
        training by a server does not do.

    Examples
    --------
    >>> from softnum.train import load_design, workload
    >>> from softnum.tta.quantities import bit_rate
    >>> work = workload("mlp", load_design("a-float32"), 32)
    >>> times = {"fc1": (3e-6, 0, 3e-6), "fc2": (1e-6, 1e-6, 1e-6)}
    >>> time = served_time(work, times, 4, bit_rate("1 Tb/s"), "asynchronous")
    >>> round(float(time.speedup), 2), time.most
    (3.74, 3)
    """
    positive_int(updates, "updates")
    if exchange.method != "server" or exchange.compression is not None:
        raise ValueError(
            f"updates one by one are of the method server and of gradients in a format, got method="
            f"{exchange.method!r}, compress={exchange.compress!r}; state neither another method nor a compression"
        )
    compute, bits, rate = served_facts(workload, times, bandwidth, exchange)
    found = server(order, workers)
    service = Fraction(bits) / (exchange.servers * rate)
    applied, lacking = {0: -exchange.latency}, []
    now, base = Fraction(0), found.base(workers)
    for t, update in enumerate(islice(found.updates(workers), updates), 1):
        arrives = applied[update.version] + 2 * exchange.latency + compute * update.ticks / base
        now = max(now, arrives) + service
        lacking.append(t - 1 - update.version)
        applied = {version: at for version, at in applied.items() if version in update.held} | {t: now}
    return ServedTime(
        workers, workload.batch, str(found), rate, exchange, compute, updates, now, service * updates,
        Fraction(sum(lacking), updates), max(lacking),
    )  # fmt: skip

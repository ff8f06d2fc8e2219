"""The exchange of gradients between data-parallel workers: how it is made, and what an iteration with it takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import inf
from typing import Any

from softnum.collectives.compression import Compression, LowRank, OneBit, compression, is_compression
from softnum.formats.blocks import format
from softnum.tta.quantities import positive_int
from softnum.tta.workloads.operations import Workload

__all__ = ["Exchange", "ParallelTime", "Transfer", "gradient_bytes"]

_METHODS = ("ring", "server")


@dataclass(frozen=True)
class Exchange:
    """How workers add up their gradients.

    An exchange of a layer's gradients between n workers takes::

        ring      2 (n - 1) / n * bits / bandwidth + 2 (n - 1) * latency
        server    n * (bits + bits of the weights) / (servers * bandwidth) + 2 * latency

    In a ring every link carries that share of the data, which is the least that n workers can do with. To a server
    every worker sends its gradients, and from it every worker takes the new weights; the server's own link is what they
    share, and ``servers`` of them share the parameters evenly. One worker exchanges nothing.

    Compressions, as they are stated in training (``softnum.collectives.compression``), have messages that are not added
    on the way: on a ring each goes to all workers, and low_rank sums two factors one after the other::

        gathered  (n - 1) * bits / bandwidth + (n - 1) * latency
        low_rank  2 (n - 1) / n * bits / bandwidth + 4 (n - 1) * latency

    Parameters
    ----------
    latency : Fraction or float
        Seconds that a message takes besides.
    method : str
        "ring" or "server".
    servers : int
        Of the method "server".
    compress : str, optional
        The softnum format in which gradients are sent, of a block format with the shares of its scales; or the text of
        a compression, as "top_k(share=0.01)". What it takes to compress is not counted. Default: the format in which
        they are stored.
    overlap : bool
        Whether gradients leave while the backward pass goes on, or only when it is done.

    Raises
    ------
    ValueError
        If a value is out of its range, there is no such format or compression, or low_rank goes with a server.

    References
    ----------
    P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", Journal of
    Parallel and Distributed Computing 69(2), 2009.

    Examples
    --------
    >>> from softnum.tta.quantities import duration
    >>> Exchange(latency=duration("5 us"), compress="e5m2").cost(4, 1000, 0)  # bits over a link, seconds of latency
    (Fraction(1500, 1), Fraction(3, 100000))
    """

    latency: Fraction | float = Fraction(0)
    method: str = "ring"
    servers: int = 1
    compress: str | None = None
    overlap: bool = True

    def __post_init__(self) -> None:
        if self.method not in _METHODS:
            raise ValueError(f"method must be one of {', '.join(_METHODS)}, got {self.method!r}")
        positive_int(self.servers, "servers")
        if isinstance(self.latency, str) or not 0 <= self.latency < inf:
            raise ValueError(f"latency must be a number of seconds of at least 0, got {self.latency!r}; see duration")
        object.__setattr__(self, "latency", Fraction(self.latency))
        if self.compress is not None and not is_compression(self.compress):
            bits_of(self.compress)
        if isinstance(self.compression, LowRank) and self.method == "server":
            raise ValueError(f"{self.compress} is two all-reduces, one after the other; take the method ring")

    @property
    def compression(self) -> Compression | None:
        """What is sent in place of gradients; None where they are sent in a format."""
        return compression(self.compress) if is_compression(self.compress) else None

    def cost(self, workers: int, bits: int, back: int) -> tuple[Fraction, Fraction]:
        """What one exchange takes: bits over the slowest link, and seconds of latency.

        Parameters
        ----------
        workers : int
        bits, back : int
            Of the gradients; of the weights, which only a server sends back.

        Returns
        -------
        (Fraction, Fraction)
        """
        if workers == 1:
            return Fraction(0), Fraction(0)
        sent = self.compression
        if self.method == "ring" and sent is not None and sent.gathered:
            return Fraction((workers - 1) * bits), (workers - 1) * self.latency
        if self.method == "ring":
            rounds = 1 if sent is None else 2
            return Fraction(2 * (workers - 1) * bits, workers), 2 * rounds * (workers - 1) * self.latency
        return Fraction(workers * (bits + back), self.servers), 2 * self.latency


def bits_of(name: str) -> Fraction:
    fmt = format({"float32": "binary32", "float16": "binary16", "float64": "binary64"}.get(name, name))
    return Fraction(fmt.bits_per_value)


@dataclass(frozen=True)
class Transfer:
    """The exchange of one layer's gradients.

    Parameters
    ----------
    layer : str
    bytes : int
        Of its gradients, in the format in which they are sent.
    ready, start, end : Fraction
        Seconds after the start of the iteration: its gradients are computed; its exchange begins, and is done.

    Examples
    --------
    >>> Transfer("fc", 1000, Fraction(1), Fraction(2), Fraction(3)).to_table()["end"]
    3.0
    """

    layer: str
    bytes: int
    ready: Fraction
    start: Fraction
    end: Fraction

    def to_table(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "layer": self.layer,
            "bytes": self.bytes,
            "ready": float(self.ready),
            "start": float(self.start),
            "end": float(self.end),
        }


@dataclass(frozen=True)
class ParallelTime:
    """An iteration of several workers.

    Parameters
    ----------
    workers, batch : int
        Batch of each worker.
    bandwidth : Fraction
        Bits per second of each worker's link, in each direction.
    exchange : Exchange
    compute : Fraction
        Seconds of the iteration of one worker alone.
    transfers : tuple of Transfer
        In the order in which they are made.
    exposed : Fraction
        Seconds in which every worker waits for gradients.

    Examples
    --------
    >>> time = ParallelTime(4, 32, Fraction(10**10), Exchange(), Fraction(1), (), Fraction(1, 4))
    >>> time.seconds, time.speedup, time.efficiency, time.throughput
    (Fraction(5, 4), Fraction(16, 5), Fraction(4, 5), Fraction(512, 5))
    """

    workers: int
    batch: int
    bandwidth: Fraction
    exchange: Exchange
    compute: Fraction
    transfers: tuple[Transfer, ...] = field(repr=False)
    exposed: Fraction

    @property
    def seconds(self) -> Fraction:
        """Of an iteration."""
        return self.compute + self.exposed

    @property
    def communication(self) -> Fraction:
        """Seconds of all exchanges, hidden or not."""
        return sum((transfer.end - transfer.start for transfer in self.transfers), Fraction(0))

    @property
    def efficiency(self) -> Fraction:
        """Of each worker, from 0 to 1: the time of an iteration alone over that of an iteration together."""
        return self.compute / self.seconds

    @property
    def speedup(self) -> Fraction:
        """Of the throughput, over one worker's."""
        return self.workers * self.efficiency

    @property
    def throughput(self) -> Fraction:
        """Samples per second of all workers."""
        return self.workers * self.batch / self.seconds

    def to_table(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "workers": self.workers,
            "batch": self.batch,
            "bandwidth": float(self.bandwidth),
            "latency": float(self.exchange.latency),
            "method": self.exchange.method,
            **({"servers": self.exchange.servers} if self.exchange.method == "server" else {}),
            "compress": self.exchange.compress,
            "overlap": self.exchange.overlap,
            "compute": float(self.compute),
            "communication": float(self.communication),
            "exposed": float(self.exposed),
            "seconds": float(self.seconds),
            "speedup": float(self.speedup),
            "efficiency": float(self.efficiency),
            "throughput": float(self.throughput),
            "transfers": [transfer.to_table() for transfer in self.transfers],
        }


def _shape(tensor, sent: Compression) -> tuple[int, ...]:
    """The shape by which a compression counts."""
    if tensor.shape is None and isinstance(sent, (LowRank, OneBit)):
        raise ValueError(
            f"{sent} goes by the rows and columns of a gradient, and the workload states no shape of {tensor.name!r} "
            f"of layer {tensor.layer!r}; take a network that is trained, or top_k or sign, which go by elements"
        )
    return tensor.shape or (tensor.elements,)


def gradient_bytes(workload: Workload, compress: str | None = None) -> dict[str, int]:
    """Bytes of each layer's weight gradients, in the order in which the workload lists its layers.

    Parameters
    ----------
    workload : Workload
    compress : str, optional
        A softnum format in which gradients are sent, of a block format with the shares of its scales; or the text of a
        compression. Default: the format in which they are stored.

    Returns
    -------
    dict
        Layer -> bytes; layers without gradients are left out. Of a parameter that is updated several times in an
        iteration, all its gradients.

    Raises
    ------
    ValueError
        If there is no such format, the workload lists no weight gradients, or it does not state the shapes that a
        compression goes by.

    Examples
    --------
    >>> from softnum.train import load_design, workload
    >>> work = workload("mlp", load_design("a-float32"), 32)
    >>> gradient_bytes(work), gradient_bytes(work, "e5m2")
    ({'fc2': 5160, 'fc1': 33280}, {'fc2': 1290, 'fc1': 8320})
    >>> gradient_bytes(work, "top_k(share=0.01)")
    {'fc2': 112, 'fc1': 672}
    """
    sent = compression(compress) if is_compression(compress) else None
    bits = None if compress is None or sent is not None else bits_of(compress)
    sizes: dict[str, int] = {}
    for tensor in workload.tensors:
        if tensor.tensor_class == "weight_gradients":
            if sent is not None:
                own = -(-sent.message_bits(_shape(tensor, sent)) // 8)
            else:
                own = tensor.bytes if bits is None else -int(-tensor.elements * bits // 8)
            sizes[tensor.layer] = sizes.get(tensor.layer, 0) + own
    if not sizes:
        raise ValueError(
            f"workload {workload.network!r} of design {workload.design!r} lists no weight gradients, so that there is "
            "nothing to exchange; make it with softnum.train.workload"
        )
    return sizes

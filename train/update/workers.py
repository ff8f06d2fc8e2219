"""Data-parallel training: a batch shared by workers, whose gradients a collective sums.

Each of W workers takes its part of the batch, in the order of the samples, and passes forwards and backwards as if it
were alone: its loss is the mean over its part. Gradients are laid side by side in buckets, rounded to the collective's
format, and become their averages by an all-reduce of each bucket. The update is then one, by the averages.

Buckets are those that PyTorch's DistributedDataParallel has from its second iteration on where gradients become known
in the reverse order of the parameters: parameters in that order, each flattened in C order; a bucket ends with the
parameter that fills it, the first at 1 MiB, others at 25, or each at a stated number of bytes, as with its
``bucket_cap_mb``.

Workers' random bits: those of worker 0 are those of a run without workers. Worker w takes the bits that worker 0 has at
the same place, of the seed of ``Stream(seed, w).spawn(1)[0]``. So each worker rounds the weights itself; where that is
stochastic, their working copies differ. Statistics of a batch (BatchNorm's) are a worker's own; running ones are those
of worker 0, as in PyTorch. States of delayed scaling take the largest number of all workers.

Where a compression is stated, workers send what `softnum.collectives.compression` makes of their gradients, with the
memories of `softnum.collectives.feedback`, parameter by parameter. An update that is skipped, as averages overflow, has
been sent all the same; gradients that are not finite leave the memories alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from math import prod

import numpy as np

from softnum.arrays.conversion import quantize
from softnum.arrays.streams import Stream
from softnum.collectives.collective import Collective
from softnum.collectives.compression import compression as compression_of
from softnum.collectives.feedback import Feedback, check_compressed
from softnum.collectives.make import collective
from softnum.collectives.servers import server as server_of

__all__ = [
    "BUCKET_BYTES", "Gradients", "Workers", "buckets_of", "check_bucket_bytes", "check_workers", "collective_of",
    "seed_of_worker",
]  # fmt: skip

#: of the first bucket, and of others: PyTorch's defaults
BUCKET_BYTES = (1 << 20, 25 << 20)
_IN_MEMORY = 1 << 26  # bytes of all workers' gradients; more of them lie in a file while they are summed


def collective_of(text: str | Collective, workers: int) -> Collective:
    """The collective that averages gradients of workers: "reciprocal_before", as PyTorch does, if it states no average.

    Raises ValueError if it is none of so many ranks, or leaves ranks with different results.

    >>> str(collective_of("ring(unit='bfloat16')", 4))
    "ring(ranks=4, unit=MadUnit('bfloat16', operand='bfloat16'), average='reciprocal_before')"
    """
    try:
        c = collective(text, ranks=workers)
    except TypeError as error:  # an argument of another type, in text that a user wrote
        raise ValueError(f"{error} (collective = {str(text)!r})") from None
    if c.average is None:
        c = collective(c, average="reciprocal_before")
    if c.differs:
        raise ValueError(
            f"{c} leaves workers with different gradients, and their weights would drift apart; state own='sent' and "
            "start by a number"
        )
    return c


def check_workers(
    workers, collective: str | None, batch: int, compression: str | None = None, server: str | None = None
) -> None:
    """Raise ValueError unless so many workers can share a batch, and a collective is stated iff they are several.

    A compression of gradients has to go with the collective. In its place may stand a server
    (`softnum.train.update.servers`), of which a batch is one worker's.

    >>> check_workers(4, "ring", 32)
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise ValueError(f"workers must be a positive integer, got {workers!r}")
    if server is not None:
        if workers == 1 or collective is not None or compression is not None:
            raise ValueError(
                f"server = {server!r} serves two workers or more, one gradient after the other as it is, got workers = "
                f"{workers}, collective = {collective!r}, compression = {compression!r}; state several workers and "
                "neither of the others"
            )
        server_of(server, workers)
        return
    if (workers > 1) != (collective is not None):
        raise ValueError(
            f"workers = {workers} and collective = {collective!r}: two workers or more sum gradients by a collective "
            "(such as \"ring(unit='bfloat16')\"), or are served one by one by a server "
            "(such as 'asynchronous'), and one does not"
        )
    if batch % workers:
        raise ValueError(
            f"a batch of {batch} samples has no equal parts for {workers} workers; let the batch be a multiple"
        )
    if compression is not None and collective is None:
        raise ValueError(
            f"compression = {compression!r} is of what several workers send each other; state workers and a collective "
            '(such as workers = 4, collective = "one_shot"), or leave it out'
        )
    if collective is not None:
        c = collective_of(collective, workers)
        if compression is not None:
            check_compressed(c, compression_of(compression))


def check_bucket_bytes(size) -> None:
    """Raise ValueError unless it is a number of bytes, or None.

    >>> check_bucket_bytes(1 << 20)
    """
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
        raise ValueError(f"bucket_bytes must be a positive integer, the bytes with which a bucket ends, got {size!r}")


def seed_of_worker(seed: int, worker: int) -> int:
    """The seed of a worker's random bits: that of the run for worker 0.

    >>> seed_of_worker(7, 0), seed_of_worker(7, 1) != seed_of_worker(7, 2)
    (7, True)
    """
    return Stream(seed, worker).spawn(1)[0].seed if worker else seed


def buckets_of(
    sizes: Sequence[int], element_bytes: float, limits: int | tuple[int, int] | None = None
) -> list[list[int]]:
    """Which parameters are in each bucket, from the last parameter to the first.

    Parameters
    ----------
    sizes : sequence of int
        Elements of the parameters.
    element_bytes : float
    limits : int or pair of int, optional
        Bytes with which a bucket ends: each; or the first, and others. Default: `BUCKET_BYTES`.

    Examples
    --------
    >>> buckets_of([10, 20, 30, 40], 4, limits=(100, 200)), buckets_of([10, 20, 30, 40], 4, limits=100)
    ([[3], [2, 1], [0]], [[3], [2], [1, 0]])
    """
    limits = BUCKET_BYTES if limits is None else (limits, limits) if isinstance(limits, int) else limits
    found: list[list[int]] = [[]]
    held = 0.0
    for index in reversed(range(len(sizes))):
        if found[-1] and held >= limits[len(found) > 1]:
            found.append([])
            held = 0.0
        found[-1].append(index)
        held += sizes[index] * element_bytes
    return [bucket for bucket in found if bucket]


class Gradients:
    """The gradients of all workers side by side in buckets: in memory while they are few, else in a file.

    Parameters
    ----------
    c : Collective
    shapes : sequence of tuple of int
        Of the parameters.
    buckets : list of list of int
        The parameters of each bucket.
    compression : softnum.collectives.compression.Compression, optional
        Of what is sent.
    """

    def __init__(
        self, c: Collective, shapes: Sequence[tuple[int, ...]], buckets: list[list[int]], compression=None
    ) -> None:  # fmt: skip
        self.c, self.shapes, self.buckets = c, list(shapes), buckets
        sizes = [prod(shape) for shape in shapes]
        self.places, at, self.edges = {}, 0, [0]
        for bucket in buckets:
            for index in bucket:
                self.places[index] = slice(at, at + sizes[index])
                at += sizes[index]
            self.edges.append(at)
        self._rows = _room((c.ranks, at), c.arithmetic.dtype)
        self.feedback = None if compression is None else Feedback(c, compression, self.shapes, _room)

    def put(self, worker: int, index: int, gradient) -> None:
        """A worker's gradient of a parameter, rounded to the collective's format; None: zeros."""
        place = self.places[index]
        if gradient is None:
            self._rows[worker, place] = 0
            return
        values = np.asarray(gradient).reshape(-1)
        self._rows[worker, place] = quantize(values, self.c.format)

    def reduced(self, keys: Sequence) -> list[np.ndarray]:
        """The averages of all parameters' gradients; keys: of the random words of each bucket, or None."""
        found = {}
        for bucket, first, last, key in zip(self.buckets, self.edges[:-1], self.edges[1:], keys, strict=True):
            rows, key = self._rows[:, first:last], key if self.c.stochastic else None
            if self.feedback is not None:
                found |= self.feedback.averages(bucket, rows, key)
                continue
            sums = self.c.all_reduce(rows, key=key)[0]
            for index in bucket:
                place = self.places[index]
                found[index] = sums[place.start - first : place.stop - first].reshape(self.shapes[index])
        return [found[index] for index in range(len(self.shapes))]


def _room(shape: tuple[int, ...], dtype) -> np.ndarray:
    """An array, in memory or, of more than 64 MiB, in a file."""
    if prod(shape) * np.dtype(dtype).itemsize <= _IN_MEMORY:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile(prefix="softnum-gradients-") as file:  # mapped: it stays until it is dropped
        return np.memmap(file, dtype, "w+", shape=shape)


class Workers:
    """What is the same in each iteration of a run with workers.

    Parameters
    ----------
    count : int
    text : str
        The collective.
    seed : int
        Of the run.
    groups : dict of str to list of (str, shape)
        Names and shapes of the parameters of each group, as they are updated together.
    compression : str, optional
        Of what is sent.
    bucket_bytes : int, optional
        With which a bucket ends. Default: as PyTorch's do.
    """

    def __init__(
        self, count: int, text: str, seed: int, groups: dict, compression: str | None = None,
        bucket_bytes: int | None = None,
    ) -> None:  # fmt: skip
        self.count, self.collective = count, collective_of(text, count)
        self.compression = None if compression is None else compression_of(compression)
        self.seeds = [seed_of_worker(seed, worker) for worker in range(count)]
        self.groups = groups
        element_bytes = self.collective.format.bits / 8
        self.buckets = {
            group: buckets_of([prod(shape) for _, shape in parameters], element_bytes, bucket_bytes)
            for group, parameters in groups.items()
        }
        self._rows: dict[str, Gradients] = {}

    def gradients(self, group: str) -> Gradients:
        """Where the gradients of a group go."""
        if group not in self._rows:
            shapes = [shape for _, shape in self.groups[group]]
            self._rows[group] = Gradients(self.collective, shapes, self.buckets[group], self.compression)
        return self._rows[group]

    def state(self) -> dict:
        """What a checkpoint holds: memories of what was not sent, and factors, by name."""
        if self.compression is None:
            return {}
        found = {}
        for group in self.groups:
            feedback = self.gradients(group).feedback
            if feedback.memories is not None:
                found[f"memory_{group}"] = feedback.memories
            found |= {f"factor_{group}_{index}": factor for index, factor in feedback.factors.items()}
        return found

    def restore(self, state: dict) -> None:
        """Go back to what `state` gave."""
        if self.compression is None:
            return
        for group in self.groups:
            feedback = self.gradients(group).feedback
            if feedback.memories is not None:
                feedback.memories[:] = state[f"memory_{group}"]
            feedback.factors = {index: state[f"factor_{group}_{index}"] for index in feedback.factors}

    def describe(self) -> dict:
        """Them as plain data for a record."""
        named = {
            group: [[self.groups[group][index][0] for index in bucket] for bucket in buckets]
            for group, buckets in self.buckets.items()
        }
        told = {"workers": self.count, "collective": str(self.collective), "buckets": named}
        if self.compression is not None:
            bits = (self.compression.message_bits(shape) for each in self.groups.values() for _, shape in each)
            told |= {"compression": str(self.compression), "message_bytes": sum(-(-size // 8) for size in bits)}
        return told

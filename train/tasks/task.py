"""What tasks have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from softnum.train.datasets.sets import batches
from softnum.train.engine.binary64 import host
from softnum.train.engine.tensor import Tensor

__all__ = ["Task", "Update", "taken"]


def taken(samples, part) -> np.ndarray:
    """Some of the samples; whole numbers as int64.

    >>> taken(np.array([3, 1, 2], np.uint16), np.array([2, 0])).dtype
    dtype('int64')
    """
    rows = samples[part]
    return rows.astype(np.int64, copy=False) if rows.dtype.kind in "iu" else rows


class Update(NamedTuple):
    """A loss, whose gradients one of a network's groups of parameters is updated by.

    Attributes
    ----------
    loss : Tensor
        A single number.
    group : str
        Key of the network's ``groups``.
    name : str
        The key of its value in a record's row. One of an iteration's is called ``loss``.
    """

    loss: Tensor
    group: str = "all"
    name: str = "loss"


class Task:
    """What a network learns from some data, and how well it does.

    Subclasses implement `losses` and `evaluate`. What they change as they go, besides a network's parameters and
    buffers, they give to `state` and take back in `restore`, so that a run resumes to the same bits.

    Parameters
    ----------
    network : Network
    data
        As ``softnum.train.datasets.sets.load_data`` returns it.
    batch : int
        Samples of an iteration.
    seed : int
        Of the run.

    Attributes
    ----------
    per_epoch : int
        Iterations of an epoch.
    samples : int
        That an epoch passes, from which follows how often a run is evaluated.
    trial : object
        What `losses` takes in place of an item of `plan` to try a network out quickly.

    Examples
    --------
    >>> from softnum.train import make_network
    >>> from softnum.train.datasets.sets import load_data
    >>> task = make_network("mlp").make_task(load_data("digits"), batch=64, seed=1)
    >>> type(task).__name__, task.per_epoch
    ('Classification', 21)
    """

    trial: Any = None
    #: whether a run may go on within an epoch: what the iterations that are left take does not depend on those done
    seekable = False

    def __init__(self, network, data, batch: int, seed: int) -> None:
        self.network, self.data, self.batch, self.seed = network, data, batch, seed
        self.samples = len(data.train_y)
        self.per_epoch = len(batches(self.samples, batch, seed, 1))

    def plan(self, epoch: int) -> Iterable:
        """What each iteration of an epoch takes: here the samples' numbers."""
        return batches(self.samples, self.batch, self.seed, epoch)

    def split(self, part, workers: int) -> list:
        """An item of `plan` as equal ones for workers, each of which has one loss.

        Raises
        ------
        ValueError
            If the task has no such parts.
        """
        return np.split(part, workers)

    def losses(self, numerics, part) -> Iterator[Update]:
        """The losses of an iteration, each followed by an update of its group before the next is asked for.

        Parameters
        ----------
        numerics : Numerics
        part
            An item of `plan`.

        Yields
        ------
        Update
        """
        raise NotImplementedError

    def outputs(self, numerics, at_a_time: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The network's outputs for the held-out samples, so many of these at a time, on the host; and their labels."""
        for first in range(0, len(self.data.test_y), at_a_time):
            part = slice(first, first + at_a_time)
            outputs = self.network.forward(Tensor(taken(self.data.test_x, part), numerics.backend))
            yield host(outputs.value), taken(self.data.test_y, part)

    def evaluate(self, numerics) -> dict[str, float]:
        """How good the network is: ``accuracy``, from 0 to 1, and what else a record's row should say."""
        raise NotImplementedError

    def describe(self) -> dict:
        """What a record's config says of the task: here nothing."""
        return {}

    def state(self) -> dict:
        """Arrays and numbers that a checkpoint holds for the task."""
        return {}

    def restore(self, state: dict) -> None:
        """Go back to a checkpoint."""

"""Telling which items a user will rate, from those that users rated before."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from softnum.train.datasets.sets import batches
from softnum.train.engine.binary64 import host
from softnum.train.engine.initial import DOMAIN_NEGATIVES, random_words
from softnum.train.engine.tensor import Tensor
from softnum.train.layers.losses import binary_cross_entropy
from softnum.train.tasks.task import Task, Update

__all__ = ["Recommendation", "ranking"]

_NEGATIVES = 4
_BEST = 10
_PAIRS_AT_A_TIME = 20_000


class Recommendation(Task):
    """Binary cross-entropy of pairs of a user and an item: those rated, and four not rated for each of them.

    In every epoch each rating of the training part is a sample, and for each of them four items are drawn from those
    that the user has not rated in that part. Draw number n takes the item at place floor(w * c / 2**64) of the user's c
    such items in their order, w being word n of `random_words`(seed, `DOMAIN_NEGATIVES`, epoch, ...): places differ in
    probability by less than 2**-64. Then all samples are shuffled.

    ``accuracy`` is the hit rate at 10: the share of users whose held-out item has one of the ten largest outputs among
    it and 99 others, which are the same in all runs. ``ndcg`` is the normalised discounted cumulative gain at 10, the
    mean of 1 / log2(2 + items before it), or 0 where it is not among the ten. Where others have the same output as the
    held-out one, as happens in narrow formats, both are means over all orders of the equals. Outputs that are not
    finite count as a miss. Both are binary64, and the same on every machine.

    Parameters
    ----------
    network, data, batch, seed
        As of `softnum.train.tasks.task.Task`; the data as ``softnum.train.datasets.ratings.read_ratings`` returns them.

    Raises
    ------
    ValueError
        If the batch is larger than all samples, or a user has rated every item.

    References
    ----------
    X. He et al., "Neural Collaborative Filtering", 2017, sections 3.1 and 4.1; K. Jarvelin and J. Kekalainen,
    "Cumulated gain-based evaluation of IR techniques", 2002; as in MLPerf's training benchmark 0.5 to 0.6.

    Examples
    --------
    >>> from softnum.train import make_network
    >>> from softnum.train.datasets.sets import DataSet
    >>> x = np.array([[0, 0], [0, 1], [1, 2]])
    >>> data = DataSet("mine", x, np.ones(3, int), np.array([[0, 2, 3], [1, 3, 0]]), np.zeros(2, int))
    >>> task = make_network("ncf").make_task(data, batch=5, seed=1)
    >>> task.samples, task.per_epoch, task.network.options["items"]
    (15, 3, 4)
    """

    def __init__(self, network, data, batch: int, seed: int) -> None:
        self.network, self.data, self.batch, self.seed = network, data, batch, seed
        self.samples = (1 + _NEGATIVES) * len(data.train_x)
        self.per_epoch = len(batches(self.samples, batch, seed, 1))
        self._count_free()
        self.trial = (data.train_x[:2], np.ones((len(data.train_x[:2]), 1)))

    @staticmethod
    def counts(data) -> tuple[int, int]:
        """How many users and items some data have."""
        users = 1 + max(data.train_x[:, 0].max(), data.test_x[:, 0].max())
        return int(users), int(1 + max(data.train_x[:, 1].max(), data.test_x[:, 1:].max()))

    def _count_free(self) -> None:
        """Note what `_negatives` looks items up in."""
        pairs, (users, self._items) = self.data.train_x, self.counts(self.data)
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        owner, rated = pairs[order, 0], pairs[order, 1]
        counts = np.bincount(owner, minlength=users)
        if (counts >= self._items).any():
            user = int(np.argmax(counts))
            raise ValueError(f"{self.data.name}: user {user} has rated all {self._items} items; none is left to draw")
        self._free = self._items - counts
        self._first = np.cumsum(counts) - counts
        # before a user's rated item of place j there are item - j unrated ones: ascending within a user, and over users
        self._before = owner * self._items + rated - (np.arange(len(rated)) - self._first[owner])

    def _negatives(self, users, words) -> np.ndarray:
        """An item that each of these users has not rated, by a random word each."""
        count = self._free[users].astype(np.uint64)
        low = (words & np.uint64(0xFFFFFFFF)) * count >> np.uint64(32)  # floor(word * count / 2**64) in two halves
        place = ((words >> np.uint64(32)) * count + low >> np.uint64(32)).astype(np.int64)
        passed = np.searchsorted(self._before, users * self._items + place, side="right") - self._first[users]
        return place + passed

    def plan(self, epoch: int) -> Iterator:
        """Pairs of each iteration, and 1 for those rated, 0 for the others."""
        rated = self.data.train_x
        users = np.repeat(rated[:, 0], _NEGATIVES)
        words = random_words(self.seed, DOMAIN_NEGATIVES, epoch, len(users))
        drawn = np.stack([users, self._negatives(users, words)], axis=1)
        pairs = np.concatenate([rated, drawn])
        for part in batches(self.samples, self.batch, self.seed, epoch):
            yield pairs[part], (part < len(rated)).astype(np.float64)[:, None]

    def split(self, part, workers: int) -> list:
        """Equal parts of an iteration's pairs, with their targets."""
        pairs, targets = part
        if len(pairs) % workers:
            raise ValueError(f"an iteration has {len(pairs)} pairs, no equal parts for {workers} workers")
        return list(zip(np.split(pairs, workers), np.split(targets, workers), strict=True))

    def losses(self, numerics, part) -> Iterator[Update]:
        """The mean binary cross-entropy of the batch."""
        pairs, targets = part
        outputs = self.network.forward(Tensor(pairs, numerics.backend), training=True)
        yield Update(binary_cross_entropy(outputs, targets))

    def evaluate(self, numerics) -> dict[str, float]:
        """Hit rate and NDCG at 10 of all held-out items, in the design's arithmetic."""
        backend, rows = numerics.backend, self.data.test_x
        places = rows.shape[1] - 1
        at_a_time, scores = max(1, _PAIRS_AT_A_TIME // places), []
        for first in range(0, len(rows), at_a_time):
            part = rows[first : first + at_a_time]
            pairs = np.stack([np.repeat(part[:, 0], places), part[:, 1:].reshape(-1)], axis=1)
            scores.append(host(self.network.forward(Tensor(pairs, backend)).value).reshape(len(part), places))
        hits, gains = ranking(backend, np.concatenate(scores))
        count = len(rows)
        return {
            "accuracy": float(backend.ordered_sum(hits, axis=0)) / count,
            "ndcg": float(backend.ordered_sum(gains, axis=0)) / count,
        }


def ranking(backend, scores) -> tuple[np.ndarray, np.ndarray]:
    """Hit rate and NDCG at 10 of the first of the scores in each row, as means over the orders of equal scores.

    >>> from softnum.train.engine.backend import NumpyBackend
    >>> first_of_all, among_equals = [3.0] + [1.0] * 19, [1.0] * 20
    >>> hits, gains = ranking(NumpyBackend(), np.array([first_of_all, among_equals]))
    >>> hits.tolist(), gains.round(4).tolist()
    ([1.0, 0.5], [1.0, 0.2272])
    """
    finite = np.isfinite(scores).all(axis=1)
    before = (scores[:, 1:] > scores[:, :1]).sum(axis=1)
    equals = (scores[:, 1:] == scores[:, :1]).sum(axis=1)
    ranks = np.arange(_BEST)
    logarithms = backend.log(np.arange(2.0, _BEST + 2))
    possible = finite[:, None] & (ranks >= before[:, None]) & (ranks <= (before + equals)[:, None])
    hits = possible.sum(axis=1) / (1.0 + equals)
    gains = np.where(possible, logarithms[0] / logarithms, 0.0)
    return hits, backend.ordered_sum(gains, axis=1) / (1.0 + equals)

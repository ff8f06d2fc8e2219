"""Telling classes: of an image, or at each step of a text the byte that comes next."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from softnum.train.engine.tensor import Tensor, softmax_cross_entropy
from softnum.train.tasks.task import Task, Update, taken

__all__ = ["Classification"]

_SAMPLES_AT_A_TIME = 512  # of an evaluation: what a network holds in memory for them


class Classification(Task):
    """Softmax and cross-entropy of a network's outputs; accuracy is the share of held-out labels told right.

    The largest output wins, the first among equals; a sample whose outputs are not all finite counts as wrong. Of text
    every byte is a label, and the mean cross-entropy of the held-out bytes is measured too.

    Parameters
    ----------
    network, data, batch, seed
        As of `softnum.train.tasks.task.Task`.

    Raises
    ------
    ValueError
        If the data do not fit the network, or are fewer than a batch.

    Examples
    --------
    >>> from softnum.train import make_network
    >>> from softnum.train.datasets.sets import load_data
    >>> make_network("mlp").make_task(load_data("digits"), batch=32, seed=1).samples
    1352
    """

    seekable = True

    def __init__(self, network, data, batch: int, seed: int) -> None:
        network.check(data.train_x.shape[1], int(max(data.train_y.max(), data.test_y.max())) + 1)
        super().__init__(network, data, batch, seed)
        self.trial = slice(2)

    def losses(self, numerics, part) -> Iterator[Update]:
        """The mean cross-entropy of the batch."""
        outputs = self.network.forward(Tensor(taken(self.data.train_x, part), numerics.backend), training=True)
        yield Update(softmax_cross_entropy(outputs, taken(self.data.train_y, part).reshape(-1)))

    def evaluate(self, numerics) -> dict[str, float | None]:
        """The accuracy on all held-out samples, in the design's arithmetic.

        Of text also ``held_out_loss``, in binary64 from the design's outputs; None if one of these is not finite.
        """
        right, loss, is_text = 0, 0.0, self.network.kind == "text"
        for outputs, labels in self.outputs(numerics, _SAMPLES_AT_A_TIME):
            labels = labels.reshape(-1)
            found = numerics.backend.argmax(outputs) == labels
            right += int((found & np.isfinite(outputs).all(axis=1)).sum())
            if is_text:
                loss += numerics.backend.softmax_cross_entropy(outputs, labels, len(labels))[0] * len(labels)
        measured: dict[str, float | None] = {"accuracy": right / self.data.test_y.size}
        if is_text:
            measured["held_out_loss"] = loss / self.data.test_y.size if math.isfinite(loss) else None
        return measured

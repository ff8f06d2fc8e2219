"""Telling the next token of a text: loss, and bits a byte, by which vocabularies compare."""

from __future__ import annotations

import math
from collections.abc import Iterator

from softnum.train.layers.losses import total
from softnum.train.tasks.classification import Classification
from softnum.train.tasks.task import Update

__all__ = ["LanguageModelling"]


class LanguageModelling(Classification):
    """Softmax and cross-entropy of the next token, and the losses of experts.

    The first is as `softnum.train.tasks.classification.Classification` of text has it.

    Of held-out text ``held_out_loss`` is the mean cross-entropy of a token, in nats, and ``bits_per_byte`` the sum of
    all of them / (ln 2 * the bytes of the tokens told), whatever the vocabulary; both None where an output is not
    finite. The loss of a training batch has the experts' losses in it (`softnum.train.layers.losses.balance`), these
    have not.

    A record's config says by ``metric`` what the run is judged by, by ``tokens_per_sample`` how many tokens an
    iteration learns from, so many times the batch, and by ``parameters`` how many the network has.

    Parameters
    ----------
    network, data, batch, seed
        As of `softnum.train.tasks.task.Task`; the network with ``penalties``, the data a
        ``softnum.train.datasets.sets.Text``.

    Raises
    ------
    ValueError
        If the data do not fit the network, or are fewer than a batch.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from softnum.train import make_network
    >>> from softnum.train.datasets.sets import load_data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     size = Path(folder, "input.txt").write_bytes(bytes(range(200)))
    ...     task = make_network("gpt", steps=8).make_task(load_data("text", folder, steps=8), batch=4, seed=1)
    >>> task.describe(), task.per_epoch
    ({'metric': 'bits_per_byte', 'tokens_per_sample': 8}, 5)
    """

    def describe(self) -> dict:
        """What a record's config says of the task."""
        facts = {"metric": "bits_per_byte", "tokens_per_sample": self.network.inputs}
        count = sum(parameter.value.size for parameter in self.network.parameters)
        return facts | ({"parameters": count} if count else {})  # before they are made it is not known

    def losses(self, numerics, part) -> Iterator[Update]:
        """The mean cross-entropy of the batch, and the losses of its experts."""
        (update,) = super().losses(numerics, part)
        penalties = self.network.penalties
        yield Update(total([*penalties, update.loss])) if penalties else update

    def evaluate(self, numerics) -> dict[str, float | None]:
        """Accuracy, loss and bits a byte of all held-out tokens, in the design's arithmetic."""
        measured, labels = super().evaluate(numerics), self.data.test_y
        loss, size = measured["held_out_loss"], int(self.data.vocabulary.lengths()[labels].sum())
        bits = None if loss is None else loss * labels.size / (math.log(2.0) * size)
        return {**measured, "bits_per_byte": bits}

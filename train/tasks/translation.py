"""Telling a sentence in another language, word by word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from softnum.train.datasets.sentences import END, PADDING, UNKNOWN
from softnum.train.engine.tensor import Tensor, softmax_cross_entropy
from softnum.train.layers.sequences import take
from softnum.train.tasks.task import Task, Update

__all__ = ["Translation", "bleu"]

_SAMPLES_AT_A_TIME = 512  # of an evaluation: what a network holds in memory for them
_TRANSLATED = 200  # held-out sentences, the first ones
_LONGEST = 4  # words in a row that BLEU compares


class Translation(Task):
    """The cross-entropy of each word, and of the end of a sentence, from the right words before it (teacher forcing).

    The loss is the mean over the words of a batch; padding takes no part. Accuracy is the share of the words of
    held-out sentences, and of their ends, that are told right from the right words before them. The largest output
    wins, the first among equals. A word without a number of its own counts as told wrong, as does one whose outputs are
    not all finite. Beside it, `bleu` of the network's own translations of the first 200 held-out sentences, in which
    each word follows from those that it told before.

    Parameters
    ----------
    network : Network
        With a method ``translate(source, backend)``.
    data : SentencePairs
    batch, seed
        As of `softnum.train.tasks.task.Task`.

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
    ...     size = Path(folder, "pairs.tsv").write_text("".join(f"{n}\\t{n}\\n" for n in range(40)))
    ...     task = make_network("seq2seq").make_task(load_data("de-en", folder), batch=6, seed=1)
    >>> task.samples, task.per_epoch
    (36, 6)
    """

    def __init__(self, network, data, batch: int, seed: int) -> None:
        network.check(data.train_x.shape[1], int(data.train_y.max()) + 1)
        super().__init__(network, data, batch, seed)
        self.trial = slice(2)

    def losses(self, numerics, part) -> Iterator[Update]:
        """The mean cross-entropy of the words of the batch."""
        outputs = self.network.forward(Tensor(self.data.train_x[part], numerics.backend), training=True)
        labels = self.data.train_y[part].reshape(-1)
        words = np.flatnonzero(labels != PADDING)
        yield Update(softmax_cross_entropy(take(outputs, words), labels[words]))

    def evaluate(self, numerics) -> dict[str, float]:
        """The accuracy, and BLEU from 0 to 1, in the design's arithmetic."""
        backend, labels = numerics.backend, self.data.test_y
        right = 0
        for outputs, words in self.outputs(numerics, _SAMPLES_AT_A_TIME):
            wanted = words.reshape(-1)
            found = (backend.argmax(outputs) == wanted) & (wanted != PADDING) & (wanted != UNKNOWN)
            right += int((found & np.isfinite(outputs).all(axis=1)).sum())
        steps = labels.shape[1]
        told = self.network.translate(self.data.test_x[:_TRANSLATED, :steps], backend)
        score = bleu(_sentences(told), _sentences(labels[:_TRANSLATED]), backend)
        return {"accuracy": right / int((labels != PADDING).sum()), "bleu": score}


def _sentences(numbers) -> list[list[int]]:
    """Each row's words, without its end and padding."""
    return [[word for word in row if word not in (END, PADDING)] for row in numbers.tolist()]


def bleu(told: list[list[int]], wanted: list[list[int]], backend) -> float:
    """BLEU of translations, from 0 to 1: how many of their n words in a row, n = 1 to 4, the wanted ones have.

    For all sentences together, with one wanted translation each, and without smoothing: the geometric mean of the four
    shares, times exp(1 - r / c) if the translations have c words and the wanted ones r > c; 0 if one of the shares is
    0. Words in a row with ``UNKNOWN`` among them are not found. Logarithms and the exponential are those of the loss,
    in binary64 and the same on every machine.

    Parameters
    ----------
    told, wanted : list of list of int
        The words of each sentence.
    backend : NumpyBackend

    Returns
    -------
    float

    References
    ----------
    K. Papineni et al., "BLEU: a Method for Automatic Evaluation of Machine Translation", 2002, section 2.3.

    Examples
    --------
    >>> from softnum.train.engine.backend import NumpyBackend
    >>> round(bleu([[4, 5, 6, 7, 8]], [[4, 5, 6, 7, 9]], NumpyBackend()), 4)  # 4/5, 3/4, 2/3, 1/2
    0.6687
    """
    found, made = np.zeros(_LONGEST), np.zeros(_LONGEST)
    for mine, theirs in zip(told, wanted, strict=True):
        for n in range(1, _LONGEST + 1):
            rows = [
                Counter(tuple(words[k : k + n]) for k in range(len(words) - n + 1)) for words in (mine, theirs)
            ]  # fmt: skip
            made[n - 1] += rows[0].total()
            found[n - 1] += sum(count for row, count in (rows[0] & rows[1]).items() if UNKNOWN not in row)
    if not found.all():
        return 0.0
    logarithm = float(backend.ordered_sum(backend.log(found) - backend.log(made), axis=0)) / _LONGEST
    lengths = [sum(map(len, sentences)) for sentences in (told, wanted)]
    return float(backend.exp(np.float64(logarithm + min(0.0, 1.0 - lengths[1] / lengths[0]))))

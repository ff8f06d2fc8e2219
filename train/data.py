"""Data sets. Each is real, fixed, and split by a rule that uses no random numbers."""

from __future__ import annotations

import difflib
import functools
import hashlib
from dataclasses import dataclass

import numpy as np

from softnum.train.initial import DOMAIN_BATCHES, random_words

__all__ = ["DATA_SETS", "DataSet", "batches", "load_data"]


@dataclass(frozen=True)
class DataSet:
    """Samples and labels, split into a part to train on and a held-out part.

    Attributes
    ----------
    train_x, test_x : float64 array (samples, features)
    train_y, test_y : int64 array (samples,)
    """

    name: str
    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray

    def describe(self) -> dict:
        """The data set as plain data for a record, with a checksum of every sample, label and the split."""
        digest = hashlib.sha256()
        for part in (self.train_x, self.train_y, self.test_x, self.test_y):
            digest.update(str(part.shape).encode())
            digest.update(np.ascontiguousarray(part, dtype=part.dtype.newbyteorder("<")).tobytes())
        return {
            "name": self.name,
            "train": len(self.train_y),
            "held_out": len(self.test_y),
            "sha256": digest.hexdigest(),
        }


def _digits() -> DataSet:
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ValueError(
            "the data set 'digits' comes with scikit-learn, which is not installed: pip install 'softnum[train]'"
        ) from error
    pixels, labels = load_digits(return_X_y=True)
    labels = labels.astype(np.int64)
    held_out = np.zeros(len(labels), dtype=bool)
    for digit in range(10):
        held_out[np.flatnonzero(labels == digit)[3::4]] = True
    pixels = pixels.astype(np.float64) / 16.0  # integers 0..16: exact
    return DataSet("digits", pixels[~held_out], labels[~held_out], pixels[held_out], labels[held_out])


DATA_SETS = {"digits": _digits}


@functools.cache
def load_data(name: str) -> DataSet:
    """Return a data set.

    ``digits``: 1797 handwritten digits of 8 x 8 pixels (Alpaydin and Kaynak, "Optical Recognition of Handwritten
    Digits", UCI, 1998; shipped in scikit-learn's wheel). Pixels 0..16 are divided by 16. Of each digit's samples, in
    the file's order, every fourth (the 4th, 8th, ...) is held out.

    Parameters
    ----------
    name : str
        One of `DATA_SETS`.

    Raises
    ------
    ValueError
        If there is no such data set, or the package it comes with is not installed.

    Examples
    --------
    >>> from softnum.train.data import load_data
    >>> data = load_data("digits")
    >>> len(data.train_y), len(data.test_y), float(data.train_x.max())
    (1352, 445, 1.0)
    """
    if name not in DATA_SETS:
        near = difflib.get_close_matches(str(name), DATA_SETS, n=1, cutoff=0.3)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"no data set is called {name!r}{hint} (data sets: {', '.join(DATA_SETS)})")
    return DATA_SETS[name]()


def batches(count: int, batch: int, seed: int, epoch: int) -> np.ndarray:
    """Which samples each iteration of an epoch takes.

    The samples are ordered by the epoch's random words (`softnum.train.initial.random_words`; equal words keep their
    order) and cut into whole batches; the few left over sit this epoch out.

    Parameters
    ----------
    count : int
        Number of samples.
    batch : int
        Samples per iteration, at most ``count``.
    seed, epoch : int

    Returns
    -------
    integer array (iterations, batch)

    Examples
    --------
    >>> batches(5, 2, seed=0, epoch=1).shape
    (2, 2)
    """
    if not 1 <= batch <= count:
        raise ValueError(f"batch must lie in 1..{count}, the number of samples, got {batch}")
    order = np.argsort(random_words(seed, DOMAIN_BATCHES, epoch, count), kind="stable")
    whole = count // batch
    return order[: whole * batch].reshape(whole, batch)

"""Data sets. Each is real, fixed, and split by a rule that uses no random numbers."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from softnum.train.datasets.environments import CartPole
from softnum.train.datasets.image_folder import LOSSLESS, FilePixels, decoder, look_at, read_image_folder
from softnum.train.datasets.image_folder import NAME as IMAGE_FOLDER
from softnum.train.datasets.images import read_cifar10, read_idx_set
from softnum.train.datasets.pixels import Pixels
from softnum.train.datasets.ratings import read_ratings
from softnum.train.datasets.scenes import SIDE, read_scenes
from softnum.train.datasets.sentences import STEPS as SENTENCE_STEPS
from softnum.train.datasets.sentences import WORDS, read_sentences
from softnum.train.datasets.series import FEATURES, SPEAKERS, read_vowels
from softnum.train.datasets.series import STEPS as SERIES_STEPS
from softnum.train.datasets.texts import PACKAGES, STEPS, read_package, read_text
from softnum.train.datasets.vocabulary import BYTES, Vocabulary
from softnum.train.engine.initial import DOMAIN_BATCHES, random_words

__all__ = [
    "DATA_SETS", "KINDS", "DataSet", "FolderSet", "SentencePairs", "Text", "batches", "data_facts", "data_of_kind",
    "load_data",
]  # fmt: skip


@dataclass(frozen=True)
class DataSet:
    """Samples and labels, split into a part to train on and a held-out part.

    Attributes
    ----------
    train_x, test_x : float64 array, or Pixels, (samples, features)
        The features of an image in the order (channel, row, column); of series those of a step after those before it,
        and NaN after the last step; of text int64, a byte for each step; of ratings int64, a user and an item, held out
        more items (`softnum.train.datasets.ratings.read_ratings`).
    train_y, test_y : int64 array (samples,), or of text (samples, steps), or of scenes (samples, things, 5)
    """

    name: str
    train_x: np.ndarray | Pixels
    train_y: np.ndarray
    test_x: np.ndarray | Pixels
    test_y: np.ndarray

    def describe(self) -> dict:
        """The data set as plain data for a record, with a checksum of every sample, label and the split."""
        digest = hashlib.sha256()
        for part in (self.train_x, self.train_y, self.test_x, self.test_y):
            part = part.codes if isinstance(part, Pixels) else part
            digest.update(str(part.shape).encode())
            digest.update(np.ascontiguousarray(part, dtype=part.dtype.newbyteorder("<")).data)
        return {
            "name": self.name,
            "train": len(self.train_y),
            "held_out": len(self.test_y),
            "sha256": digest.hexdigest(),
        }

    def first(self, train: int | None = None, held_out: int | None = None) -> DataSet:
        """The set of the first so many samples of each part; None: all of them.

        >>> len(load_data("digits").first(train=100).train_y)
        100
        """
        parts = []
        for option, what, count, x, y in (
            ("--samples (samples)", "to train on", train, self.train_x, self.train_y),
            ("--held-out (held_out)", "held out", held_out, self.test_x, self.test_y),
        ):
            if count is None:
                count = len(y)
            if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= len(y):
                raise ValueError(f"{option} must lie in 1..{len(y)}, the samples of {self.name} {what}, got {count!r}")
            taken = x.first(count) if isinstance(x, Pixels) else x[:count]
            parts += [taken, y[:count]]
        names = ("train_x", "train_y", "test_x", "test_y")
        return dataclasses.replace(self, **dict(zip(names, parts, strict=True)))


@dataclass(frozen=True)
class SentencePairs(DataSet):
    """Pairs of sentences, as `softnum.train.datasets.sentences.Sentences` describes them.

    Attributes
    ----------
    source_words, target_words : tuple of str
        The words by number.
    """

    source_words: tuple[str, ...]
    target_words: tuple[str, ...]

    def describe(self) -> dict:
        """As of any data set, with how many words have a number and a checksum of them."""
        digest = hashlib.sha256("\n".join([*self.source_words, "", *self.target_words]).encode())
        sizes = [len(self.source_words), len(self.target_words)]
        return super().describe() | {"words": sizes, "words_sha256": digest.hexdigest()}


@dataclass(frozen=True)
class FolderSet(DataSet):
    """Images of the user's own, as `softnum.train.datasets.image_folder` reads them.

    Attributes
    ----------
    classes : tuple of str
        The classes' names by number.
    """

    classes: tuple[str, ...]

    def describe(self) -> dict:
        """As of any data set, with the classes, and before the checksum of the pixels what tells why it may differ: a
        checksum of the files, their formats, and the decoder, where one of them is lossy."""
        facts = super().describe()
        pixels = facts.pop("sha256")
        digests, formats = zip(*(part.describe() for part in (self.train_x, self.test_x)), strict=True)
        formats = sorted(set().union(*formats))
        facts |= {"classes": list(self.classes), "formats": formats}
        facts["files_sha256"] = hashlib.sha256("".join(digests).encode()).hexdigest()
        if not LOSSLESS.issuperset(formats):
            facts["decoder"] = decoder(formats)
        return facts | {"sha256": pixels}


@dataclass(frozen=True)
class Text(DataSet):
    """Sequences of a text's tokens, as `softnum.train.datasets.texts.read_text` describes them.

    Attributes
    ----------
    vocabulary : Vocabulary
    """

    vocabulary: Vocabulary

    def describe(self) -> dict:
        """As of any data set; of tokens that are no bytes also the vocabulary, of a package's text where it is from."""
        facts = super().describe()
        if len(self.vocabulary) > BYTES:
            facts["vocabulary"] = self.vocabulary.describe()
        if self.name in PACKAGES:
            package = PACKAGES[self.name]
            facts["text"] = {"package": package.package, "licence": package.licence, "sha256": package.sha256}
        return facts


def _digits(_: Path | None) -> DataSet:
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


def _text(name: str) -> Callable[..., Text]:
    """A text as a function of its file, the steps of a sequence and the size of the vocabulary."""

    def load(file: Path | None, steps: int = STEPS, vocabulary: int = BYTES) -> Text:
        if name in PACKAGES:
            return Text(name, *read_package(name, file, steps, vocabulary))
        return Text(name, *read_text(file, steps, vocabulary))

    return load


def _sentences(file: Path | None) -> SentencePairs:
    return SentencePairs("de-en", *read_sentences(file))


def _of_bytes(name: str, read: Callable) -> Callable[[Path | None], DataSet]:
    """A data set of images of bytes, as a function of its folder."""

    def load(folder: Path | None) -> DataSet:
        train, train_labels, test, test_labels = read(name, folder)
        return DataSet(name, Pixels(train), train_labels, Pixels(test), test_labels)

    return load


def _vowels(folder: Path | None) -> DataSet:
    return DataSet("japanese-vowels", *read_vowels(folder))


def _ratings(folder: Path | None) -> DataSet:
    return DataSet("movielens", *read_ratings(folder))


def _image_folder(folder: Path | None) -> FolderSet:
    classes, image, train, held_out = read_image_folder(folder)
    pixels = [FilePixels(part.files, image, train.files[0].path) for part in (train, held_out)]
    return FolderSet(IMAGE_FOLDER, pixels[0], train.labels, pixels[1], held_out.labels, classes)


def _scenes(folder: Path | None) -> DataSet:
    train, train_labels, test, test_labels = read_scenes(folder)
    return DataSet("fashion-scenes", Pixels(train), train_labels, Pixels(test), test_labels)


#: kind of data -> what it is, in words; text is sequences of bytes, each with one label more for every byte, sentences
#: are sequences of words, each with the same in another language; an environment has no samples
KINDS = {
    "environment": "an environment to act in",
    "ratings": "users' ratings of items",
    "samples": "samples of numbers",
    "scenes": "scenes with boxes",
    "sentences": "pairs of sentences",
    "series": "series of different lengths",
    "text": "a text",
}
_OWN = {"ratings", "sentences", "text"}  # files without a published checksum, which may change


class DataFacts(NamedTuple):
    """What is known of a data set without its files: (channels, height, width) of a sample, its classes, and its kind,
    which is a key of `KINDS`. The rows of a series are its steps: the most that there are; those of sentences are their
    number, and the columns the words of each. Of an environment: the numbers of an observation, and its actions.
    ``files``: whether it is read from files that the user has, rather than from a package; ``look``: what says image
    and classes of a folder of theirs, which are (0, 0, 0) and 0 without one."""

    image: tuple[int, int, int]
    classes: int
    load: Callable[..., DataSet]
    kind: str = "samples"
    files: bool = True
    look: Callable[[Path | None], tuple] | None = None


DATA_SETS = {
    "cartpole": DataFacts((1, 1, 4), 2, lambda _: CartPole(), kind="environment", files=False),
    "cifar10": DataFacts((3, 32, 32), 10, _of_bytes("cifar10", read_cifar10)),
    "de-en": DataFacts((1, 2, SENTENCE_STEPS), WORDS, _sentences, kind="sentences"),
    "digits": DataFacts((1, 8, 8), 10, _digits, files=False),
    "fashion-mnist": DataFacts((1, 28, 28), 10, _of_bytes("fashion-mnist", read_idx_set)),
    "fashion-scenes": DataFacts((1, SIDE, SIDE), 10, _scenes, kind="scenes"),
    IMAGE_FOLDER: DataFacts((0, 0, 0), 0, _image_folder, look=look_at),
    "japanese-vowels": DataFacts((1, SERIES_STEPS, FEATURES), SPEAKERS, _vowels, kind="series"),
    "mnist": DataFacts((1, 28, 28), 10, _of_bytes("mnist", read_idx_set)),
    "movielens": DataFacts((1, 1, 2), 1, _ratings, kind="ratings"),
    "text": DataFacts((1, 1, STEPS), BYTES, _text("text"), kind="text"),
    **{name: DataFacts((1, 1, STEPS), BYTES, _text(name), kind="text") for name in PACKAGES},
}


def data_facts(name: str, folder: str | Path | None = None) -> DataFacts:
    """What is known of a data set without reading its samples; ValueError if there is none of that name.

    Of ``image-folder`` that is what the folder says, as `load_data` finds it, and ValueError if it is not there.

    >>> data_facts("cifar10").image
    (3, 32, 32)
    """
    if name not in DATA_SETS:
        near = difflib.get_close_matches(str(name), DATA_SETS, n=1, cutoff=0.3)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"no data set is called {name!r}{hint} (data sets: {', '.join(DATA_SETS)})")
    facts = DATA_SETS[name]
    if facts.look is None:
        return facts
    image, classes = facts.look(_place(folder))
    return facts._replace(image=image, classes=classes)


def _place(folder: str | Path | None) -> Path | None:
    """Where to look for files: the folder, or the one that the environment names."""
    folder = folder or os.environ.get("SOFTNUM_DATA")
    return None if folder is None else Path(folder).expanduser()


def data_of_kind(kind: str) -> list[str]:
    """The names of the data sets of a kind.

    >>> data_of_kind("environment")
    ['cartpole']
    """
    return [name for name, facts in DATA_SETS.items() if facts.kind == kind]


def load_data(
    name: str, folder: str | Path | None = None, *, steps: int | None = None, vocabulary: int | None = None
) -> DataSet:  # fmt: skip
    """Return a data set.

    ``digits``: 1797 handwritten digits of 8 x 8 pixels (Alpaydin and Kaynak, "Optical Recognition of Handwritten
    Digits", UCI, 1998; shipped in scikit-learn's wheel). Pixels 0..16 are divided by 16. Of each digit's samples, in
    the file's order, every fourth (the 4th, 8th, ...) is held out.

    ``fashion-mnist`` (Xiao et al., 2017) and ``mnist`` (LeCun et al., 1998): 60,000 images of 28 x 28 to train on and
    10,000 held out, from IDX files. ``cifar10`` (Krizhevsky, 2009): 50,000 colour images of 32 x 32 and 10,000 held
    out, from its binary version. Their bytes are divided by 256, and the uncompressed files must have the published
    checksums.

    ``image-folder``: images of the user's own, in a folder for each class (`softnum.train.datasets.image_folder`).

    ``japanese-vowels``: 640 utterances of two vowels by nine speakers, who are to be told apart, 270 to train on and
    370 held out; series of 7 to 29 frames of 12 LPC cepstrum coefficients
    (`softnum.train.datasets.series.read_vowels`).

    ``fashion-scenes``: scenes of 64 x 64 with one to four garments of ``fashion-mnist``, whose files it takes, with
    classes and boxes; 4000 to train on and 500 held out (`softnum.train.datasets.scenes.compose`).

    ``movielens``: which films users rated; the last of each is held out
    (`softnum.train.datasets.ratings.read_ratings`).

    ``text``: a file of the user's own, as sequences of bytes, each of which is to be told from those before it; the
    last tenth is held out (`softnum.train.datasets.texts.read_text`).

    ``text-gcide``, ``text-jargon``: a dictionary of English of 39,952,321 bytes and the Jargon File of 1,681,817, which
    packages of Debian have (`softnum.train.datasets.texts.PACKAGES`); a tenth is held out
    (`softnum.train.datasets.texts.read_package`).

    ``de-en``: German sentences of at most eleven words and what they are in English, from a dictionary (Debian's
    trans-de-en) or a file of the user's own (`softnum.train.datasets.sentences.read_sentences`).

    ``cartpole``: no samples, but an environment to act in (`softnum.train.datasets.environments.CartPole`).

    Parameters
    ----------
    name : str
        One of `DATA_SETS`.
    folder : path-like, optional
        Where the files of ``fashion-mnist``, ``mnist``, ``cifar10``, ``japanese-vowels`` and ``movielens`` lie: there,
        or in a folder of the set's name in it; the file that is the ``text``, or a folder with a file ``input.txt``;
        that of the sentences, or a folder with a file ``pairs.tsv`` or ``de-en``; that of a package's text. Default:
        what the environment variable SOFTNUM_DATA says, else where Debian's packages or Python's aeon put them.
    steps : int, optional
        Tokens of a sequence of a text. Default: 32.
    vocabulary : int, optional
        Tokens of a text, the 256 bytes among them; others are learned from it. Default: the bytes.

    Raises
    ------
    ValueError
        If there is no such data set, the package it comes with is not installed, its files are not there (the message
        says how to get them) or not the published ones, a folder is given for a set that has no files, or steps for
        one that is no text.

    Examples
    --------
    >>> from softnum.train.datasets.sets import load_data
    >>> data = load_data("digits")
    >>> len(data.train_y), len(data.test_y), float(data.train_x.max())
    (1352, 445, 1.0)
    """
    facts = data_facts(name, folder)
    if folder is not None and not facts.files:
        raise ValueError(
            f"{name} comes with a package and is not read from a folder; leave out --data-dir (data_folder)"
        )
    folder = _place(folder)
    if steps is not None or vocabulary is not None:
        if facts.kind != "text":
            raise ValueError(f"steps= is the length of token sequences, and {name!r} is not a text; leave it out")
        return facts.load(folder, STEPS if steps is None else steps, BYTES if vocabulary is None else vocabulary)
    return facts.load(folder) if facts.kind in _OWN or facts.look else _loaded(name, folder)


@functools.cache
def _loaded(name: str, folder: Path | None) -> DataSet:
    return DATA_SETS[name].load(folder)


def batches(count: int, batch: int, seed: int, epoch: int) -> np.ndarray:
    """Which samples each iteration of an epoch takes.

    The samples are ordered by the epoch's random words (`softnum.train.engine.initial.random_words`; equal words keep
    their order) and cut into whole batches; the few left over sit this epoch out.

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

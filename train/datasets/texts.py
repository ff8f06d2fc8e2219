"""Texts, as sequences of tokens: of the user's own, and those that packages of Debian have."""

from __future__ import annotations

import gzip
import hashlib
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from softnum.train.datasets.vocabulary import BYTES, Vocabulary, learn_vocabulary

__all__ = ["PACKAGES", "STEPS", "Package", "Sequences", "read_package", "read_text", "spread_order"]

#: tokens of a sequence, unless a network has other steps
STEPS = 32
_FILE = "input.txt"
_EVERY = 10  # part that is held out
_BLOCK = 16384  # bytes of a package's text that are held out, or not, together


class Package(NamedTuple):
    """A text that a package of Debian has: where, under which licence, and what it is when it is unpacked."""

    package: str
    file: str
    title: str
    licence: str
    bytes: int
    sha256: str


#: data set: its text
PACKAGES = {
    "text-gcide": Package(
        "dict-gcide", "/usr/share/dictd/gcide.dict.dz",
        "the GNU Collaborative International Dictionary of English, 0.48", "GPL, version 2 or later", 39952321,
        "802beb667e1fb666203e750f1faea60d5c202ac5430c2083c4180494609f10a7",
    ),
    "text-jargon": Package(
        "jargon-text", "/usr/share/doc/jargon-text/jargon.txt.gz", "the Jargon File, 4.4.7", "public domain", 1681817,
        "40dfb4b98191a670a09a183d5798d50f243d23fdbd1495dcc0aca2ce5895ba97",
    ),
}  # fmt: skip


class Sequences(NamedTuple):
    """A text in sequences.

    Attributes
    ----------
    train_x, train_y, test_x, test_y : integer arrays (sequences, steps)
        Numbers of tokens, int64 of the user's own text and uint16 of a package's; y are those that follow the tokens of
        x.
    vocabulary : Vocabulary
    """

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    vocabulary: Vocabulary


def read_text(file: Path | None, steps: int = STEPS, vocabulary: int = BYTES) -> Sequences:
    """Cut a text into sequences, each with the tokens that follow its own, and hold out the last tenth.

    Sequence i of s tokens consists of the tokens s i to s i + s - 1, its labels of those one further on; what is left
    of the text after the last whole sequence is not used. Of n sequences of bytes the last n // 10, at least one, are
    held out. With a vocabulary of more than the bytes, the last tenth of the bytes is held out (n // 10 of n), the
    vocabulary is learned from those before it (`softnum.train.datasets.vocabulary.learn_vocabulary`), and each part is
    cut into sequences for itself.

    Parameters
    ----------
    file : pathlib.Path or None
        The text, in any encoding; or a folder with a file ``input.txt``.
    steps : int
        Tokens of a sequence.
    vocabulary : int
        How many tokens there are, the 256 bytes among them.

    Returns
    -------
    Sequences

    Raises
    ------
    ValueError
        If no file is named, there is none, it has not a token more than two sequences, or the vocabulary cannot be
        learned from it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     size = Path(folder, "input.txt").write_bytes(bytes(range(100)))
    ...     parts = read_text(Path(folder))
    >>> [part.shape for part in parts[:4]], parts.train_y[1][:3].tolist()
    ([(2, 32), (2, 32), (1, 32), (1, 32)], [33, 34, 35])
    """
    if file is None:
        raise ValueError(
            "the data set 'text' is a plain text file of your own: name it with --data-dir FILE (data_folder= in "
            f"Settings), or a folder with a file {_FILE}; networks of text take {' and '.join(PACKAGES)} too, texts "
            "that packages of Debian have"
        )
    file = file / _FILE if file.is_dir() else file
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ValueError(
            f"the text {str(file)!r} cannot be read ({error.strerror}); the data set 'text' is a plain text file of "
            f"your own, or a folder with a file {_FILE}"
        ) from error
    count = (len(content) - 1) // steps
    if count < 2:
        raise ValueError(
            f"the text {str(file)!r} has {len(content)} bytes; at least {2 * steps + 1} are needed, for a sequence of "
            f"{steps} to train on and one to hold out"
        )
    if vocabulary == BYTES:
        x, y = _cut(np.frombuffer(content, np.uint8).astype(np.int64), steps)
        train = count - max(1, count // _EVERY)
        return Sequences(x[:train], y[:train], x[train:], y[train:], Vocabulary())
    edge = len(content) - len(content) // _EVERY
    return _encoded(content[:edge], content[edge:], steps, vocabulary, str(file))


def read_package(name: str, file: Path | None, steps: int = STEPS, vocabulary: int = BYTES) -> Sequences:
    """Read a text that a package of Debian has, cut it into sequences, and hold out a tenth.

    Of the text's blocks of 16,384 bytes every tenth (the 10th, 20th, ...) is held out, and the rest is what is trained
    on, each as if the other were not there; the vocabulary is learned from the rest. Sequences are as of `read_text`,
    in the order of `spread_order`, so that the first so many of them are of all of the text: a dictionary is sorted.

    Parameters
    ----------
    name : str
        One of ``PACKAGES``.
    file : pathlib.Path or None
        The package's file, packed or not, or a folder with it. None: where Debian's package puts it.
    steps, vocabulary
        As of `read_text`.

    Returns
    -------
    Sequences

    Raises
    ------
    ValueError
        If it is not there (the message says how to get it), is not that text, or is too short for sequences of so many
        steps.
    """
    package = PACKAGES[name]
    path = Path(package.file) if file is None else file / Path(package.file).name if file.is_dir() else file
    get = f"on Debian: apt install {package.package}; or name its file with --data-dir (data_folder= in Settings)"
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    except FileNotFoundError:
        raise ValueError(f"the data set {name!r} is not there: there is no {str(path)!r}; {get}") from None
    except (OSError, EOFError) as error:
        raise ValueError(f"{str(path)!r} cannot be read ({error}); {get}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != package.sha256:
        raise ValueError(
            f"{str(path)!r} is not {package.title}: it has {len(content)} bytes with the sha256 {found[:16]}..., and "
            f"that has {package.bytes} with {package.sha256[:16]}...; another text is taken by --data text --data-dir"
        )
    blocks = [content[first : first + _BLOCK] for first in range(0, len(content), _BLOCK)]
    held_out = b"".join(blocks[_EVERY - 1 :: _EVERY])
    del blocks[_EVERY - 1 :: _EVERY]
    parts = _encoded(b"".join(blocks), held_out, steps, vocabulary, f"{name} of {len(content)} bytes")
    orders = [spread_order(len(parts.train_x))] * 2 + [spread_order(len(parts.test_x))] * 2
    small = (part.astype(np.uint16)[order] for part, order in zip(parts[:4], orders, strict=True))
    return Sequences(*small, parts.vocabulary)


def spread_order(count: int) -> np.ndarray:
    """The numbers 0 to count - 1 in an order of which each first part is spread over all of them.

    Number i is i * step mod count, with the first step from floor(0.618 * count) on that shares no divisor with count;
    0.618 is the golden ratio less 1, whose multiples are spread evenly.

    >>> spread_order(8).tolist()
    [0, 5, 2, 7, 4, 1, 6, 3]
    """
    step = max(1, count * 618 // 1000)
    while math.gcd(step, count) != 1:
        step += 1
    return np.arange(count) * step % count


def _encoded(train: bytes, held_out: bytes, steps: int, size: int, what: str) -> Sequences:
    try:
        vocabulary = learn_vocabulary(train, size)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None
    parts = []
    for text, part in ((train, "to train on"), (held_out, "held out")):
        tokens = vocabulary.encode(text)
        if len(tokens) <= steps:
            raise ValueError(
                f"{what}: the part {part} has {len(tokens)} tokens, and a sequence and what follows it has {steps + 1};"
                " take fewer steps or a longer text"
            )
        parts += _cut(tokens, steps)
    return Sequences(*parts, vocabulary)


def _cut(tokens, steps: int) -> list[np.ndarray]:
    """Sequences of so many tokens, and those one further on."""
    count = (len(tokens) - 1) // steps
    return [tokens[first : first + count * steps].reshape(count, steps) for first in (0, 1)]

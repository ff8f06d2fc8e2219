"""Pairs of sentences, German and English: found, cut into words, and numbered."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

__all__ = ["END", "PADDING", "SPECIAL", "START", "STEPS", "UNKNOWN", "WORDS", "Sentences", "read_sentences", "tokens"]

#: words of a sentence, its end among them; longer ones are left out
STEPS = 12
#: numbers of words of a language, those of `SPECIAL` among them
WORDS = 2000
#: what the first numbers stand for
SPECIAL = ("<pad>", "<unk>", "<start>", "<end>")
PADDING, UNKNOWN, START, END = range(len(SPECIAL))

_EVERY = 10  # line that is held out
_DEBIAN = Path("/usr/share/trans/de-en")
_NAMES = ("pairs.tsv", "de-en")
_WORD = re.compile(r"\w+(?:'\w+)*|[^\w\s]")
_MARKS = re.compile(r"[()\[\]{}<>/;|]")  # of a dictionary: remarks and alternatives
_HOW_TO_GET = (
    "on Debian: apt install trans-de-en; or name, with --data-dir (data_folder= in Settings), the file de-en of "
    "dict.tu-chemnitz.de, a text of your own with a German and an English sentence a line and a tab between them "
    "(.tsv), or a folder with a file de-en or pairs.tsv"
)


class Sentences(NamedTuple):
    """What `read_sentences` returns.

    Attributes
    ----------
    train_x, test_x : int64 array (pairs, 2 * STEPS)
        Numbers of German words, and of the English ones that a decoder takes: ``START``, then those of train_y but the
        last.
    train_y, test_y : int64 array (pairs, STEPS)
        Numbers of English words. A sentence ends with ``END``; ``PADDING`` follows.
    source_words, target_words : tuple of str
        The words by number.
    """

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    source_words: tuple[str, ...]
    target_words: tuple[str, ...]


def tokens(sentence: str) -> list[str]:
    """The words of a sentence, in lower case; each punctuation mark is one.

    >>> tokens("Wie geht’s dir, Emil?")
    ['wie', "geht's", 'dir', ',', 'emil', '?']
    """
    return _WORD.findall(unicodedata.normalize("NFC", sentence).replace("\u2019", "'").lower())


def read_sentences(file: Path | None) -> Sentences:
    """Read pairs of sentences, leave the long ones out, hold some out, and number their words.

    Two layouts are read, in UTF-8. A file whose name ends in ``.tsv`` has a pair a line: German, a tab, English; what
    follows another tab is not read. Any other is a dictionary like that of dict.tu-chemnitz.de (Debian's trans-de-en):
    lines ``German | ... :: English | ...`` with as many parts on either side, of which those are pairs of sentences
    that begin with a capital, have a blank, end with one of ``.!?``, and have none of ``()[]{}<>/;|``, on both sides.

    Sentences are cut into words (`tokens`). A pair is left out if a side has no words, or more than ``STEPS - 1``, or
    if its German words are those of an earlier one. Of the lines that give pairs every tenth (the 10th, 20th, ...) is
    held out. Words are numbered by how often they occur in the part to train on, the most frequent first and equals in
    the order of their code points; those for which ``WORDS`` numbers do not reach are ``UNKNOWN``.

    Parameters
    ----------
    file : pathlib.Path or None
        The file, or a folder with a file ``pairs.tsv`` or ``de-en``, or with a folder ``de-en`` of that kind. None:
        where Debian's package puts it.

    Raises
    ------
    ValueError
        If it is not there (the message says how to get one), is not UTF-8, a line of a ``.tsv`` has no tab, or fewer
        than ten lines give pairs.

    References
    ----------
    F. Richter, "Ding: a dictionary lookup program", dict.tu-chemnitz.de (the dictionary; GPL, version 2 or later).

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lines = [f"Das sind {n}.\\tThese are {n}.\\n" for n in range(10)]
    ...     size = Path(folder, "pairs.tsv").write_text("".join(lines))
    ...     pairs = read_sentences(Path(folder))
    >>> len(pairs.train_y), len(pairs.test_y), pairs.target_words[:7]
    (9, 1, ('<pad>', '<unk>', '<start>', '<end>', '.', 'are', 'these'))
    >>> pairs.test_x[0, 12:17].tolist(), pairs.test_y[0, :5].tolist()  # 9 is unknown
    ([2, 6, 5, 1, 4], [6, 5, 1, 4, 3])
    """
    file = _find(file)
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ValueError(f"the pairs of sentences {str(file)!r} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"the pairs of sentences {str(file)!r} are not UTF-8: {error}") from error
    groups = list(_short(_of_table(text, file) if file.suffix == ".tsv" else _of_dictionary(text)))
    if len(groups) < _EVERY:
        raise ValueError(
            f"{str(file)!r} has {len(groups)} lines with pairs of sentences of at most {STEPS - 1} words; at least "
            f"{_EVERY} are needed, of which the last is held out"
        )
    held_out = [pair for group in groups[_EVERY - 1 :: _EVERY] for pair in group]
    del groups[_EVERY - 1 :: _EVERY]
    train = [pair for group in groups for pair in group]
    words = [_numbered(pair[side] for pair in train) for side in (0, 1)]
    numbers = [{word: number for number, word in enumerate(side)} for side in words]
    return Sentences(*_arrays(train, numbers), *_arrays(held_out, numbers), *words)


def _find(given: Path | None) -> Path:
    if given is None:
        places = [_DEBIAN]
    elif given.is_dir():
        places = [folder / name for folder in (given / "de-en", given) for name in _NAMES]
    else:
        places = [given]
    for place in places:
        if place.is_file():
            return place
    if given is None:
        asked = f"no folder was given, and there is no {_DEBIAN}"
    else:
        asked = f"{str(given)!r} has no {' or '.join(_NAMES)}" if given.is_dir() else f"there is no file {str(given)!r}"
    raise ValueError(f"the data set 'de-en' is not there: {asked}; {_HOW_TO_GET}")


def _of_table(text: str, file: Path) -> Iterator[list[tuple[str, str]]]:
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if not line.strip():
            continue
        parts = line.split("\t")
        if len(parts) < 2:
            raise ValueError(f"{file}, line {number}: a German and an English sentence need a tab between them")
        yield [(parts[0], parts[1])]


def _of_dictionary(text: str) -> Iterator[list[tuple[str, str]]]:
    for line in text.split("\n"):
        if line.startswith("#"):
            continue
        german, _, english = line.partition(" :: ")
        sides = [[part.strip() for part in side.split(" | ")] for side in (german, english)]
        if len(sides[0]) == len(sides[1]):
            yield [pair for pair in zip(*sides, strict=True) if all(map(_is_sentence, pair))]


def _is_sentence(part: str) -> bool:
    return part[:1].isupper() and part[-1] in ".!?" and " " in part and not _MARKS.search(part)


def _short(lines) -> Iterator[list[tuple[list[str], list[str]]]]:
    """The pairs of words that each line is left with, of lines that are left with any."""
    seen = set()
    for line in lines:
        kept = []
        for pair in line:
            german, english = words = tokens(pair[0]), tokens(pair[1])
            if all(0 < len(side) < STEPS for side in words) and tuple(german) not in seen:
                seen.add(tuple(german))
                kept.append((german, english))
        if kept:
            yield kept


def _numbered(sentences) -> tuple[str, ...]:
    """The words by number."""
    counts = Counter(word for sentence in sentences for word in sentence)
    return (*SPECIAL, *sorted(counts, key=lambda word: (-counts[word], word))[: WORDS - len(SPECIAL)])


def _arrays(pairs, numbers: list[dict[str, int]]) -> tuple[np.ndarray, np.ndarray]:
    """What a network takes, and the labels."""
    x = np.full((len(pairs), 2 * STEPS), PADDING, np.int64)
    y = np.full((len(pairs), STEPS), PADDING, np.int64)
    for row, pair in enumerate(pairs):
        german, english = (
            [*(known.get(word, UNKNOWN) for word in words), END] for words, known in zip(pair, numbers, strict=True)
        )
        x[row, : len(german)] = german
        x[row, STEPS : STEPS + len(english)] = [START, *english[:-1]]
        y[row, : len(english)] = english
    return x, y

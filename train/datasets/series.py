"""Series of different lengths in their canonical files: found, read and compared with the published ones."""

from __future__ import annotations

import hashlib
import importlib.util
from itertools import groupby
from pathlib import Path

import numpy as np

__all__ = ["FEATURES", "SHA256", "SPEAKERS", "STEPS", "UTTERANCES", "read_vowels"]

#: of Japanese Vowels: numbers of a frame, the most frames of an utterance, speakers
FEATURES, STEPS, SPEAKERS = 12, 29, 9
#: UCI's file -> utterances of each speaker, in their order
UTTERANCES = {"ae.train": (30,) * 9, "ae.test": (31, 35, 88, 44, 29, 24, 40, 50, 29)}
#: of all numbers and labels, as `read_vowels` returns them (little-endian)
SHA256 = "286980a3dfcd4e5525ff287ccdc1155f6735c1a8f7943fa10e00c843a12efdcb"

_NAME = "japanese-vowels"
_UCI, _TS = tuple(UTTERANCES), ("JapaneseVowels_TRAIN.ts", "JapaneseVowels_TEST.ts")
_HOW_TO_GET = (
    "fetch japanese+vowels.zip (ae.train, ae.test) from archive.ics.uci.edu/dataset/128, or pip install aeon, which "
    f"has {_TS[0]} and {_TS[1]} and is found without a folder"
)


def read_vowels(folder: Path | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Japanese Vowels: 270 utterances of /ae/ to train on and 370 held out, of nine speakers who are to be told apart.

    An utterance is a series of 7 to 29 frames of 12 LPC cepstrum coefficients, read as binary64. Two layouts hold the
    same numbers in the same order: UCI's ``ae.train`` and ``ae.test``, where a line is a frame, a blank line ends an
    utterance, and how many each speaker has is known; and ``JapaneseVowels_TRAIN.ts`` and ``..._TEST.ts``, where after
    a line ``@data`` each line is an utterance: coefficient by coefficient, and the speaker, with colons between them.

    Parameters
    ----------
    folder : pathlib.Path or None
        The folder with the files, or with a folder ``japanese-vowels`` or ``JapaneseVowels`` that has them. Default:
        where the package aeon has them, if it is installed.

    Returns
    -------
    train_x, train_y, test_x, test_y : float64 array (utterances, 348), int64 array (utterances,), ...
        The features of frame after frame, and NaN after an utterance's last; speakers from 0.

    Raises
    ------
    ValueError
        If the files are not there, cannot be read, or do not hold the published numbers.

    References
    ----------
    M. Kudo, J. Toyama and M. Shimbo, "Multidimensional curve classification using passing-through regions", Pattern
    Recognition Letters 20, 1999; UCI data set 128.
    """
    place, files = _find(folder)
    read = _read_ts if files == _TS else _read_uci
    parts = [array for file in files for array in read(place / file)]
    digest = hashlib.sha256()
    for array in parts:
        digest.update(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).data)
    if digest.hexdigest() != SHA256:
        raise ValueError(
            f"{str(place)!r} does not hold the published numbers of {_NAME}: the SHA-256 of what was read is "
            f"{digest.hexdigest()}, it should be {SHA256}; {_HOW_TO_GET}"
        )
    return tuple(parts)


def _find(folder: Path | None) -> tuple[Path, tuple[str, str]]:
    """The folder with the files, and their names."""
    if folder is not None:
        places = [folder / _NAME, folder / "JapaneseVowels", folder]
    else:
        spec = importlib.util.find_spec("aeon")
        roots = [] if spec is None else spec.submodule_search_locations or []
        places = [Path(root, "datasets", "data", "JapaneseVowels") for root in roots]
    for place in places:
        for files in (_UCI, _TS):
            if all((place / file).is_file() for file in files):
                return place, files
    asked = "no folder was given, and aeon is not installed or without it" if folder is None else (
        f"{str(folder)!r} has neither {' and '.join(_UCI)} nor {' and '.join(_TS)}, nor has {_NAME} in it"
    )  # fmt: skip
    raise ValueError(
        f"the data set {_NAME!r} is not there ({asked}): {_HOW_TO_GET}; then name the folder with --data-dir, in "
        f"load_data({_NAME!r}, folder), or in the environment variable SOFTNUM_DATA"
    )


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read: {error}") from error


def _read_uci(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The utterances of a file of blocks, and their speakers."""
    lines = enumerate(_lines(path), start=1)
    blocks = [list(block) for filled, block in groupby(lines, key=lambda line: bool(line[1].strip())) if filled]
    counts = UTTERANCES[path.name]
    if len(blocks) != sum(counts):
        raise ValueError(f"{path}: has {len(blocks)} blocks of lines, the published file has {sum(counts)}")
    series = [np.array([_numbers(path, number, line.split()) for number, line in block]) for block in blocks]
    wrong = next((block for block, each in zip(blocks, series, strict=True) if len(each) > STEPS), None)
    if wrong is not None:
        raise ValueError(f"{path}: line {wrong[0][0]}: a block of {len(wrong)} lines, there should be at most {STEPS}")
    return _padded(series), np.repeat(np.arange(len(counts)), counts)


def _read_ts(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The utterances of a file of lines, and their speakers."""
    lines = _lines(path)
    first = next((n for n, line in enumerate(lines, start=1) if line.strip().lower() == "@data"), None)
    if first is None:
        raise ValueError(f"{path}: has no line @data")
    series, labels = [], []
    for number, line in enumerate(lines[first:], start=first + 1):
        *features, label = line.split(":")
        columns = [column.split(",") for column in features]
        steps = {len(column) for column in columns}
        known = label.strip() in map(str, range(1, SPEAKERS + 1))
        if len(columns) != FEATURES or len(steps) != 1 or not known or max(steps) > STEPS:
            raise ValueError(
                f"{path}: line {number}: should be {FEATURES} coefficients, each of equally many numbers (at most "
                f"{STEPS}), and a speaker, 1 to {SPEAKERS}, with colons between them"
            )
        series.append(np.array([_numbers(path, number, frame) for frame in zip(*columns, strict=True)]))
        labels.append(int(label) - 1)
    return _padded(series), np.array(labels, np.int64)


def _numbers(path: Path, line: int, words) -> list[float]:
    """A frame's numbers."""
    try:
        numbers = [float(word) for word in words]
    except ValueError as error:
        raise ValueError(f"{path}: line {line}: {error}") from error
    if len(numbers) != FEATURES or not np.isfinite(numbers).all():
        raise ValueError(f"{path}: line {line}: a frame should be {FEATURES} finite numbers, got {' '.join(words)}")
    return numbers


def _padded(series: list[np.ndarray]) -> np.ndarray:
    """Series of any lengths as rows of equal length, with NaN after the last step of each."""
    result = np.full((len(series), STEPS, FEATURES), np.nan)
    for row, steps in zip(result, series, strict=True):
        row[: len(steps)] = steps
    return result.reshape(len(series), -1)

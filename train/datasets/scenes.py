"""Scenes of garments: images of Fashion-MNIST put together by counted random words, with classes and boxes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from softnum.train.datasets.images import read_idx_set
from softnum.train.engine.initial import DOMAIN_SCENES, random_words

__all__ = ["APART", "GARMENTS", "HELD_OUT", "SIDE", "TRAIN", "compose", "read_scenes"]

#: pixels of a side; the most garments of a scene; pixels between their centres, in a row or a column at least
SIDE, GARMENTS, APART = 64, 4, 16
#: scenes to train on, and held out
TRAIN, HELD_OUT = 4000, 500

_TRIES = 16


def read_scenes(folder: Path | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Compose 4000 scenes of Fashion-MNIST's 60,000 images to train on, and 500 of its 10,000 held-out ones.

    Parameters
    ----------
    folder : pathlib.Path or None
        As of `softnum.train.datasets.images.read_idx_set`.

    Returns
    -------
    train_x, train_y, test_x, test_y
        As `compose` returns them.

    Raises
    ------
    ValueError
        If Fashion-MNIST's files are not there, or are not the published ones.
    """
    train, train_labels, test, test_labels = read_idx_set("fashion-mnist", folder)
    return (*compose(train, train_labels, 0, TRAIN), *compose(test, test_labels, 1, HELD_OUT))


def compose(images, labels, part: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Scenes of one to four garments on black.

    Scene n draws from the words of `random_words`(0, `DOMAIN_SCENES`, part * 2**31 + n, ...); a draw among m things is
    floor(word * m / 2**64). First comes the number of garments; then for each its image, cut to the smallest box that
    holds all its pixels, and places of that box, up to 16 of them, until its centre is 16 pixels from all others in its
    row or in its column; else it is left out. Where boxes overlap, the brighter pixel is seen.

    Parameters
    ----------
    images : uint8 array (n, 784)
    labels : int64 array (n,)
    part, count : int
        0 for scenes to train on, 1 for those held out; how many.

    Returns
    -------
    scenes : uint8 array (count, 64 * 64)
    garments : int64 array (count, 4, 5)
        Class, and the box: its first row and column, and those after its last; -1 where there is no garment.

    Examples
    --------
    >>> images = np.zeros((1, 28, 28), np.uint8)
    >>> images[0, 4:20, 6:26] = 200
    >>> scenes, garments = compose(images.reshape(1, 784), np.array([3]), part=0, count=1)
    >>> garments[0].tolist()
    [[3, 12, 43, 28, 63], [3, 29, 4, 45, 24], [3, 38, 31, 54, 51], [3, 5, 4, 21, 24]]
    >>> int(scenes.reshape(64, 64)[12:28, 43:63].min())
    200
    """
    images = images.reshape(-1, 28, 28)
    scenes = np.zeros((count, SIDE, SIDE), np.uint8)
    garments = np.full((count, GARMENTS, 5), -1, np.int64)
    for number, (scene, rows) in enumerate(zip(scenes, garments, strict=True)):
        words = random_words(0, DOMAIN_SCENES, (part << 31) + number, 1 + GARMENTS * (1 + 2 * _TRIES)).tolist()
        centres: list[tuple[int, int]] = []  # in half pixels
        for garment in range(1 + _draw(words[0], GARMENTS)):
            chosen, *places = words[1 + garment * (1 + 2 * _TRIES) :][: 1 + 2 * _TRIES]
            chosen = _draw(chosen, len(images))
            pixels = images[chosen][_box(images[chosen])]
            height, width = pixels.shape
            for first, second in zip(places[::2], places[1::2], strict=True):
                top, left = _draw(first, SIDE + 1 - height), _draw(second, SIDE + 1 - width)
                centre = 2 * top + height, 2 * left + width
                if all(max(abs(a - b) for a, b in zip(centre, other, strict=True)) >= 2 * APART for other in centres):
                    rows[len(centres)] = labels[chosen], top, left, top + height, left + width
                    place = scene[top : top + height, left : left + width]
                    np.maximum(place, pixels, out=place)
                    centres.append(centre)
                    break
    return scenes.reshape(count, -1), garments


def _draw(word: int, count: int) -> int:
    return word * count >> 64


def _box(image) -> tuple[slice, slice]:
    """The rows and columns of an image that are not black; all of them, if it is."""
    rows, columns = (np.flatnonzero(image.any(axis=axis)) for axis in (1, 0))
    if not len(rows):
        return slice(None), slice(None)
    return slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)

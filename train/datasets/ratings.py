"""MovieLens in its canonical files: who rated what, and each user's last rating held out."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from softnum.train.engine.initial import DOMAIN_RANKED, random_words

__all__ = ["NEGATIVES", "complement", "read_ratings"]

#: items that a held-out one is ranked among
NEGATIVES = 99

_NAME = "movielens"
_SEPARATORS = {"u.data": "\t", "ratings.dat": "::", "ratings.csv": ","}
_FOLDERS = (_NAME, "ml-100k", "ml-1m", "ml-latest-small")
_HOW_TO_GET = (
    "fetch ml-100k.zip, ml-1m.zip or ml-latest-small.zip from files.grouplens.org/datasets/movielens and unpack it; "
    f"then name the folder with --data-dir, in load_data({_NAME!r}, folder), or in the environment variable "
    "SOFTNUM_DATA"
)


def read_ratings(folder: Path | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Read who rated which items, whatever the rating, and hold out the last item of each user.

    A line is a user, an item, a rating and a time, as whole numbers but for the rating; between them are tabs in
    ``u.data``, two colons in ``ratings.dat`` and commas in ``ratings.csv``, which begins with a line of names. Users
    and items are numbered from 0, in the order of their numbers in the file. The held-out item is the one with the
    latest time, the last in the file among equals; who rated one item only has none held out.

    Each held-out item is to be found among 99 that the user rated never, all different: those of the smallest words of
    `random_words`(0, `DOMAIN_RANKED`, user, number of such items). So they are the same in all runs.

    Parameters
    ----------
    folder : pathlib.Path or None
        The folder with one of these files, or with a folder ``movielens``, ``ml-100k``, ``ml-1m`` or
        ``ml-latest-small`` that has one; or the file itself.

    Returns
    -------
    train_x, train_y : int64 arrays (ratings, 2), (ratings,)
        User and item of each rating in the file's order, without those held out; ones.
    test_x, test_y : int64 arrays (users, 101), (users,)
        A user, the held-out item, and 99 others; zeros: the first of the items is the right one.

    Raises
    ------
    ValueError
        If there is no file, it cannot be read, holds a pair twice, or a user has rated nearly all items.

    References
    ----------
    F. M. Harper and J. A. Konstan, "The MovieLens Datasets: History and Context", ACM TiiS 5, 2015; X. He et al.,
    "Neural Collaborative Filtering", 2017, section 4.1 (the split, and 99 others).
    """
    path = _find(folder)
    users, items, times = _columns(path)
    names, users = np.unique(users, return_inverse=True)
    words, items = np.unique(items, return_inverse=True)
    if len(np.unique(users * len(words) + items)) != len(users):
        keys, counts = np.unique(users * len(words) + items, return_counts=True)
        user, item = divmod(int(keys[counts > 1][0]), len(words))
        raise ValueError(f"{path}: user {names[user]} rates item {words[item]} more than once")
    order = np.lexsort((times, users))  # stable: by user, then by time, then as in the file
    counts = np.bincount(users)
    last = order[np.cumsum(counts) - 1]
    held_out = last[counts > 1]
    kept = np.ones(len(users), dtype=bool)
    kept[held_out] = False
    pairs = np.stack([users, items], axis=1)
    if not len(held_out):
        raise ValueError(f"{path}: no user rates more than one item, so that none can be held out")
    rated = items[order]
    first = np.concatenate([[0], np.cumsum(counts)])
    test = np.empty((len(held_out), 2 + NEGATIVES), np.int64)
    test[:, :2] = pairs[held_out]
    for row in test:
        user = int(row[0])
        others = complement(rated[first[user] : first[user + 1]], len(words))
        if len(others) < NEGATIVES:
            raise ValueError(
                f"{path}: user {names[user]} has not rated {len(others)} of {len(words)} items; {NEGATIVES} are "
                "needed, which the held-out one is ranked among"
            )
        row[2:] = others[np.argsort(random_words(0, DOMAIN_RANKED, user, len(others)), kind="stable")[:NEGATIVES]]
    return pairs[kept], np.ones(int(kept.sum()), np.int64), test, np.zeros(len(test), np.int64)


def complement(items, count: int) -> np.ndarray:
    """The numbers from 0 to count - 1 that are not among the given ones, in their order.

    >>> complement(np.array([3, 0]), 5)
    array([1, 2, 4])
    """
    free = np.ones(count, dtype=bool)
    free[items] = False
    return np.flatnonzero(free)


def _find(folder: Path | None) -> Path:
    """The file."""
    if folder is None:
        raise ValueError(f"the data set {_NAME!r} is not there (no folder was given): {_HOW_TO_GET}")
    if folder.is_file() and folder.name in _SEPARATORS:
        return folder
    for place in (folder, *(folder / name for name in _FOLDERS)):
        for file in _SEPARATORS:
            if (place / file).is_file():
                return place / file
    raise ValueError(
        f"the data set {_NAME!r} is not there ({str(folder)!r} has none of {', '.join(_SEPARATORS)}, nor has one of "
        f"{', '.join(_FOLDERS)} in it): {_HOW_TO_GET}"
    )


def _columns(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Users, items and times."""
    separator, rows = _SEPARATORS[path.name], []
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read: {error}") from error
    start = int(path.suffix == ".csv" and bool(lines) and lines[0].startswith("userId"))
    for number, line in enumerate(lines[start:], start=start + 1):
        try:
            user, item, rating, time = line.split(separator)
            float(rating)
            rows.append((int(user), int(item), int(time)))
        except ValueError as error:
            raise ValueError(
                f"{path}: line {number}: should be a user, an item, a rating and a time, with {separator!r} between "
                f"them, got {line!r}"
            ) from error
    if not rows:
        raise ValueError(f"{path}: holds no rating")
    return tuple(np.array(rows, np.int64).T)

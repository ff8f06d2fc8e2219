"""Boxes in images: how much they overlap, which of them to keep, and how well they find what is there."""

from __future__ import annotations

import numpy as np

__all__ = ["average_precision", "mean_average_precision", "overlap", "suppress"]

_OVERLAP = 0.5


def overlap(box, boxes) -> np.ndarray:
    """Intersection over union of a box with others, in binary64; 0 where either has no area.

    Parameters
    ----------
    box : array (4,)
        First row and column, and where rows and columns end.
    boxes : array (n, 4)

    Returns
    -------
    float64 array (n,)

    Examples
    --------
    >>> overlap(np.array([0, 0, 2, 2]), np.array([[0, 0, 2, 2], [1, 0, 3, 2], [2, 2, 4, 4], [1, 1, 1, 3]])).round(3)
    array([1.   , 0.333, 0.   , 0.   ])
    """
    box, boxes = np.asarray(box, np.float64), np.asarray(boxes, np.float64)
    sides = np.minimum(box[2:], boxes[:, 2:]) - np.maximum(box[:2], boxes[:, :2])
    common = np.where((sides > 0.0).all(axis=1), sides[:, 0] * sides[:, 1], 0.0)
    own, others = box[2:] - box[:2], boxes[:, 2:] - boxes[:, :2]
    union = own[0] * own[1] + others[:, 0] * others[:, 1] - common
    return np.divide(common, union, out=np.zeros(len(boxes)), where=common > 0.0)


def suppress(classes, boxes) -> np.ndarray:
    """Which of a scene's boxes stay, the best first: those that none before them of the same class, which stays,
    overlaps by more than 0.5.

    >>> suppress(np.array([1, 1, 2, 1]), np.array([[0, 0, 4, 4], [0, 0, 4, 3], [0, 0, 4, 4], [0, 2, 4, 6]]))
    array([0, 2, 3])
    """
    stays: list[int] = []
    for number, box in enumerate(boxes):
        rivals = [other for other in stays if classes[other] == classes[number]]
        if not (overlap(box, boxes[rivals]) > _OVERLAP).any():
            stays.append(number)
    return np.array(stays, np.int64)


def average_precision(backend, right, things: int) -> float:
    """The area under the curve of precision by recall, made monotonous, of detections from the best to the worst.

    Where a detection is right, recall grows by 1 / things, and the precision that counts is the largest from there on.

    Parameters
    ----------
    backend : NumpyBackend
        Whose sums have an order.
    right : bool array (detections,)
    things : int
        To be found; at least one.

    Returns
    -------
    float

    References
    ----------
    M. Everingham et al., "The PASCAL Visual Object Classes Challenge: A Retrospective", 2015; as of 2010, all points.

    Examples
    --------
    >>> from softnum.train.engine.backend import NumpyBackend
    >>> average_precision(NumpyBackend(), np.array([True, False, True]), things=4)  # (1 + 2 / 3) / 4
    0.41666666666666663
    """
    if not right.any():
        return 0.0
    precision = np.cumsum(right) / np.arange(1.0, len(right) + 1)
    best = np.maximum.accumulate(precision[::-1])[::-1]
    return float(backend.ordered_sum(best[right], axis=0)) / things


def mean_average_precision(backend, detections, labels) -> float:
    """The mean of the average precisions of all classes that there are, at an overlap of 0.5.

    Detections of a class in all scenes are taken from the best score to the worst; equal ones scene by scene, in their
    order. A detection is right if it overlaps, of the things of its class in its scene, the one that it overlaps most
    by at least 0.5, and no better detection was right by the same thing.

    Parameters
    ----------
    backend : NumpyBackend
    detections : list of (classes, scores, boxes)
        For each scene, as `Detection.detections` returns them.
    labels : int64 array (scenes, things, 5)
        Class and box; a class of -1 is no thing.

    Returns
    -------
    float
        0 to 1; 0 if there are no things.

    Examples
    --------
    >>> from softnum.train.engine.backend import NumpyBackend
    >>> labels = np.array([[[0, 0, 0, 8, 8], [1, 0, 8, 8, 16]]])
    >>> boxes = np.array([[0.0, 0, 8, 8], [0, 8, 8, 11]])  # the second overlaps by 3 / 8
    >>> mean_average_precision(NumpyBackend(), [(np.array([0, 1]), np.array([0.9, 0.8]), boxes)], labels)
    0.5
    """
    present = np.unique(labels[:, :, 0])
    precisions = [
        _class_precision(backend, detections, labels, number) for number in present[present >= 0].tolist()
    ]  # fmt: skip
    return float(backend.ordered_sum(np.array(precisions), axis=0)) / len(precisions) if precisions else 0.0


def _class_precision(backend, detections, labels, number: int) -> float:
    """The average precision of a class."""
    candidates, things = [], 0
    for (classes, scores, boxes), rows in zip(detections, labels, strict=True):
        own = rows[rows[:, 0] == number, 1:]
        things += len(own)
        mine = classes == number
        found = set()
        for score, box in zip(scores[mine], boxes[mine], strict=True):  # the best first
            shares = overlap(box, own)
            thing = int(np.argmax(shares)) if len(own) else -1
            hit = thing >= 0 and shares[thing] >= _OVERLAP and thing not in found
            if hit:
                found.add(thing)
            candidates.append((score, hit))
    order = np.argsort(-np.array([score for score, _ in candidates]), kind="stable")
    return average_precision(backend, np.array([hit for _, hit in candidates], dtype=bool)[order], things)

"""Finding things in scenes: what they are, and the boxes they lie in."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from softnum.train.datasets.boxes import mean_average_precision, suppress
from softnum.train.engine.tensor import Tensor, part, softmax_cross_entropy
from softnum.train.layers.losses import binary_cross_entropy, smooth_l1, total
from softnum.train.layers.sequences import take
from softnum.train.tasks.task import Task, Update

__all__ = ["Detection"]

_EMPTY_WEIGHT = 0.5
_LEAST_SCORE = 0.05
_SCENES_AT_A_TIME = 64


class Detection(Task):
    """Objectness, class and box of each cell of a grid over a scene; accuracy is the mean average precision.

    A thing belongs to the cell that its box's centre lies in. A cell's outputs are objectness o, centre (y, x) and size
    (h, w) of the box, and the classes' logits; the box is::

        centre = centre of the cell + 8 * (y, x)         sides = 16 * (1 + (h, w))         in pixels

    The loss of a batch with N things is one over N of the sum of

    - the binary cross-entropy of o, of cells without a thing halved (YOLO's weight for them);
    - the cross-entropy of the classes, in cells with a thing;
    - smooth L1 of y, x, h and w, in cells with a thing.

    It is computed in binary64 in a fixed order: each of the three sums cell by cell, then the three quotients in this
    order. No output is in two of them, so that joining their gradients is exact.

    ``accuracy`` is the mean average precision at an intersection over union of 0.5
    (`softnum.train.datasets.boxes.mean_average_precision`). A cell detects its largest class, with the score sigmoid(o)
    times the class's softmax, if that is at least 0.05; of detections of a class in a scene that overlap by more than
    0.5, only the one with the best score stays. A scene whose outputs are not all finite has no detections. All of it
    is binary64, the same on every machine.

    Parameters
    ----------
    network, data, batch, seed
        As of `softnum.train.tasks.task.Task`; labels as ``softnum.train.datasets.scenes.compose`` returns them.

    Raises
    ------
    ValueError
        If the data do not fit the network, two things have their centres in one cell, or there are fewer scenes than a
        batch.

    References
    ----------
    J. Redmon et al., "You Only Look Once", 2016, section 2; W. Liu et al., "SSD", 2016, equation 1 (a loss over the
    number of things); R. Girshick, "Fast R-CNN", 2015, equation 3 (smooth L1). Boxes are linear in the outputs, where
    YOLO and SSD have squares and exponentials.

    Examples
    --------
    >>> from softnum.train import make_network
    >>> from softnum.train.datasets.sets import DataSet
    >>> labels = np.array([[[3, 40, 8, 56, 28], [-1] * 5]])  # rows 40 to 55, columns 8 to 27: the centre is (48, 18)
    >>> data = DataSet("one", np.zeros((1, 4096)), labels, np.zeros((1, 4096)), labels)
    >>> task = make_network("detector").make_task(data, batch=1, seed=1)
    >>> [targets.tolist() for targets in task.targets(labels)]
    [[50], [3], [[-0.5, -0.25, 0.0, 0.25]]]
    """

    #: pixels of a cell's side; of a box whose outputs are 0; outputs of a cell besides its classes
    CELL, SIDE, CODES = 8, 16, 5

    def __init__(self, network, data, batch: int, seed: int) -> None:
        network.check(data.train_x.shape[1], int(data.train_y[:, :, 0].max()) + 1)
        super().__init__(network, data, batch, seed)
        self.trial = slice(2)
        self.targets(data.train_y)

    def targets(self, labels) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The cells of a batch that hold a thing, and the class and box that each should tell.

        Parameters
        ----------
        labels : int64 array (scenes, things, 5)

        Returns
        -------
        cells, classes, boxes : int64 array (N,), int64 array (N,), float64 array (N, 4)
            In the order of the labels; boxes as the outputs y, x, h, w.
        """
        rows, columns = self.network.grid
        scene, thing = np.nonzero(labels[:, :, 0] >= 0)
        classes, *box = labels[scene, thing].T
        first, last = np.stack(box[:2], axis=1), np.stack(box[2:], axis=1)
        centre = (first + last) / 2.0
        place = np.minimum(centre // self.CELL, (rows - 1, columns - 1)).astype(np.int64)
        cells = (scene * rows + place[:, 0]) * columns + place[:, 1]
        if len(np.unique(cells)) != len(cells):
            values, counts = np.unique(cells, return_counts=True)
            raise ValueError(
                f"{self.data.name}: two things have their centres in one cell of {self.CELL} x {self.CELL} pixels, in "
                f"scene {values[counts > 1][0] // (rows * columns)}; the network tells one thing a cell"
            )
        offset = (centre - (place + 0.5) * self.CELL) / self.CELL
        return cells, classes, np.concatenate([offset, (last - first) / self.SIDE - 1.0], axis=1)

    def losses(self, numerics, samples) -> Iterator[Update]:
        """The loss of a batch of scenes."""
        outputs = self.network.forward(Tensor(self.data.train_x[samples], numerics.backend), training=True)
        yield Update(self.loss(outputs, self.data.train_y[samples]))

    def loss(self, outputs: Tensor, labels) -> Tensor:
        """The loss of a network's outputs for some scenes."""
        cells, classes, boxes = self.targets(labels)
        every, full = slice(None), np.zeros((outputs.value.shape[0], 1))
        full[cells] = 1.0
        weights, things = np.where(full == 1.0, 1.0, _EMPTY_WEIGHT), take(outputs, cells)
        return total(
            [
                binary_cross_entropy(part(outputs, every, slice(0, 1)), full, weights=weights, count=len(cells)),
                softmax_cross_entropy(part(things, every, slice(self.CODES, None)), classes),
                smooth_l1(part(things, every, slice(1, self.CODES)), boxes, count=len(cells)),
            ]
        )

    def evaluate(self, numerics) -> dict[str, float]:
        """The mean average precision on all held-out scenes, in the design's arithmetic."""
        backend, labels = numerics.backend, self.data.test_y
        detections = []
        for outputs, _ in self.outputs(numerics, _SCENES_AT_A_TIME):
            detections += self.detections(backend, outputs)
        return {"accuracy": mean_average_precision(backend, detections, labels)}

    def detections(self, backend, outputs) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """What a network's outputs say is in each scene.

        Returns
        -------
        list of (classes, scores, boxes)
            For each scene, the best score first; int64 array (n,), float64 arrays (n,) and (n, 4).
        """
        (rows, columns), found = self.network.grid, []
        place = np.stack(np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij"), axis=-1).reshape(-1, 2)
        for scene in np.asarray(outputs, np.float64).reshape(-1, rows * columns, outputs.shape[1]):
            if not np.isfinite(scene).all():
                found.append((np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 4))))
                continue
            power = backend.exp(-np.abs(scene[:, 0]))
            score = np.where(scene[:, 0] >= 0.0, 1.0, power) / (1.0 + power)
            classes = backend.argmax(scene[:, self.CODES :])
            _, probabilities = backend.softmax_cross_entropy(scene[:, self.CODES :], classes, len(classes))
            score = score * probabilities[np.arange(len(classes)), classes]
            centre = (place + 0.5) * self.CELL + self.CELL * scene[:, 1:3]
            half = self.SIDE * (1.0 + scene[:, 3:5]) / 2.0
            boxes = np.concatenate([centre - half, centre + half], axis=1)
            best = np.argsort(-score, kind="stable")
            best = best[score[best] >= _LEAST_SCORE]
            stays = suppress(classes[best], boxes[best])
            found.append((classes[best][stays], score[best][stays], boxes[best][stays]))
        return found

"""A one-stage detector: a small convolutional network whose every cell tells what lies there, and its box."""

from __future__ import annotations

from softnum.train.engine.functions import activation
from softnum.train.engine.tensor import Tensor, reshape
from softnum.train.layers.feedforward import BatchNorm, Convolution
from softnum.train.layers.sequences import permute
from softnum.train.layers.sizes import check_data, check_image, check_sizes
from softnum.train.nets.network import Network
from softnum.train.tasks.detection import Detection

__all__ = ["Detector"]


class Detector(Network):
    """3 x 3 convolutions, each normalised and followed by ReLU, and a 1 x 1 convolution on each cell of what is left.

    The first three of the layers conv1, bn1, conv2, bn2, ... halve the image, so that a cell is 8 x 8 pixels of it; the
    others keep its size. Convolutions have no biases, but for the last, ``fc``. One detection comes of each cell.

    Parameters
    ----------
    sizes : sequence of int
        Channels of conv1, conv2, ...; at least three.
    image : (int, int, int)
        Channels, height and width of a scene; sides are multiples of 8.
    classes : int

    Raises
    ------
    ValueError
        If there are fewer than three sizes, one is not positive, or the sides are no multiples of 8.

    References
    ----------
    J. Redmon et al., "You Only Look Once", 2016 (a grid of cells, each with boxes, objectness and classes); W. Liu et
    al., "SSD: Single Shot MultiBox Detector", 2016 (convolutions as predictors). Smaller than either, with one box a
    cell, without anchors; box and loss are those of `Detection`.

    Examples
    --------
    >>> net = Detector()
    >>> net.grid, net.outputs, net.layer_names[-3:]
    ((8, 8), 15, ['conv5', 'bn5', 'fc'])
    """

    name = "detector"
    kind = "scenes"
    task = Detection

    def __init__(self, sizes=(16, 32, 32, 32, 32), image=(1, 64, 64), classes: int = 10) -> None:
        sizes = check_sizes(sizes, least=3)
        maps = self.image = check_image(image, Detection.CELL)
        (classes,) = check_sizes((classes,), "classes", exactly=1)
        if any(side % Detection.CELL for side in image[1:]):
            raise ValueError(
                f"image must have sides that are multiples of {Detection.CELL}, got {image[1]} x {image[2]}"
            )
        self.stages = []
        for number, filters in enumerate(sizes, start=1):
            stride = 2 if number <= 3 else 1
            conv = Convolution(f"conv{number}", maps, filters, 3, stride=stride, padding=1, bias=False)
            self.stages.append((conv, BatchNorm(f"bn{number}", filters)))
            maps = conv.result
        self.grid, self.classes = maps[1:], classes
        self.last = Convolution("fc", maps, Detection.CODES + classes, 1)
        layers = [*(layer for stage in self.stages for layer in stage), self.last]
        options = {"sizes": sizes, "image": self.image, "classes": classes}
        inputs = self.image[0] * self.image[1] * self.image[2]
        super().__init__(layers, options, inputs, Detection.CODES + classes, relu=[norm for _, norm in self.stages])

    def check(self, features: int, classes: int) -> None:
        """Raise ValueError if scenes of so many pixels, and things of so many classes, do not fit the network."""
        check_data(self.inputs, self.classes, features, classes)

    def forward(self, x: Tensor, *, training: bool = False) -> Tensor:
        """The network's output for a batch, rounded to the role ``output`` of the last layer.

        Parameters
        ----------
        x : Tensor (B, channels * height * width)
        training : bool
            Whether to normalise by the batch, and to update the running statistics.

        Returns
        -------
        Tensor (B * cells, 5 + classes)
            A row for each cell, scene by scene and row by row.
        """
        x = reshape(x, (-1, *self.image))
        for conv, norm in self.stages:
            x = activation("relu", norm(conv(x), training=training), norm.numerics)
        return self.output(reshape(permute(self.last(x), (0, 2, 3, 1)), (-1, self.outputs)))

"""A small VGG: pairs of 3 x 3 convolutions with pooling between them, and two linear layers."""

from __future__ import annotations

from softnum.train.engine.functions import activation
from softnum.train.engine.tensor import Tensor, reshape
from softnum.train.layers.feedforward import BatchNorm, Convolution, Linear
from softnum.train.layers.pooling import max_pool2d, pooled_size
from softnum.train.layers.sizes import check_image, check_sizes
from softnum.train.nets.network import Network

__all__ = ["VGGSmall"]


class VGGSmall(Network):
    """Stages of two 3 x 3 convolutions, each normalised and followed by ReLU, then 2 x 2 max pooling; fc1 and fc2.

    The layers of stage n are conv<n>.1, bn<n>.1, conv<n>.2 and bn<n>.2; the convolutions have no biases and keep the
    image's size. The linear layer fc1 has a ReLU.

    Parameters
    ----------
    sizes : sequence of int
        Channels of each stage, then outputs of fc1; at least two.
    image : (int, int, int)
        Channels, height and width of a sample.
    classes : int
        Outputs of fc2.

    Raises
    ------
    ValueError
        If there are fewer than two sizes, one is not positive, or the image is too small for the stages, each of which
        halves it.

    References
    ----------
    K. Simonyan and A. Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition", 2015 (without
    normalisation, which came with S. Ioffe and C. Szegedy, 2015).

    Examples
    --------
    >>> net = VGGSmall(image=(3, 32, 32))
    >>> net.layer_names[:4], net.layers[-2].inputs
    (['conv1.1', 'bn1.1', 'conv1.2', 'bn1.2'], 2048)
    """

    name = "vgg-small"

    def __init__(self, sizes=(32, 64, 128, 128), image=(3, 32, 32), classes: int = 10) -> None:
        sizes = check_sizes(sizes, least=2)
        image = check_image(image, 2 ** (len(sizes) - 1))
        (classes,) = check_sizes((classes,), "classes", exactly=1)
        maps, self.image, self.stages = image, image, []
        for number, filters in enumerate(sizes[:-1], start=1):
            stage = []
            for place in (1, 2):
                conv = Convolution(f"conv{number}.{place}", maps, filters, 3, padding=1, bias=False)
                stage.append((conv, BatchNorm(f"bn{number}.{place}", filters)))
                maps = conv.result
            self.stages.append(stage)
            maps = (filters, *pooled_size(maps[1:], 2, 2))
        self.fc1, self.fc2 = Linear("fc1", maps[0] * maps[1] * maps[2], sizes[-1]), Linear("fc2", sizes[-1], classes)
        layers = [layer for stage in self.stages for pair in stage for layer in pair]
        options = {"sizes": sizes, "image": image, "classes": classes}
        relu = [*(norm for stage in self.stages for _, norm in stage), self.fc1]
        super().__init__(
            [*layers, self.fc1, self.fc2], options, image[0] * image[1] * image[2], classes, relu=relu
        )  # fmt: skip

    def forward(self, x: Tensor, *, training: bool = False) -> Tensor:
        """The network's output for a batch, rounded to the role ``output`` of the last layer.

        Parameters
        ----------
        x : Tensor (B, channels * height * width)
        training : bool
            Whether to normalise by the batch, and to update the running statistics.

        Returns
        -------
        Tensor (B, classes)
        """
        x = reshape(x, (-1, *self.image))
        for stage in self.stages:
            for conv, norm in stage:
                x = activation("relu", norm(conv(x), training=training), norm.numerics)
            x = max_pool2d(x, norm.numerics)
        x = activation("relu", self.fc1(reshape(x, (-1, self.fc1.inputs))), self.fc1.numerics)
        return self.output(self.fc2(x))

"""CIFAR10-CNN: three convolutions with pooling, and one linear layer."""

from __future__ import annotations

from softnum.train.engine.functions import activation
from softnum.train.engine.tensor import Tensor, reshape
from softnum.train.layers.feedforward import Convolution, Linear
from softnum.train.layers.pooling import avg_pool2d, max_pool2d, pooled_size
from softnum.train.layers.sizes import check_image, check_sizes
from softnum.train.nets.network import Network

__all__ = ["CIFAR10CNN"]


class CIFAR10CNN(Network):
    """Three 5 x 5 convolutions that keep the image's size, each with ReLU and pooling, and a linear layer::

        conv1, max pool, ReLU, conv2, ReLU, average pool, conv3, ReLU, average pool, fc

    A pooling window has 3 x 3 pixels (fewer where fewer are left) and moves by 2, so that windows overlap.

    Parameters
    ----------
    sizes : sequence of three int
        Channels of the convolutions.
    image : (int, int, int)
        Channels, height and width of a sample.
    classes : int
        Outputs of fc.

    Raises
    ------
    ValueError
        If there are not three sizes, one is not positive, or the image is smaller than 4 x 4.

    References
    ----------
    The network of three convolutions and one fully connected layer on which N. Wang et al., "Training Deep Neural
    Networks with 8-bit Floating Point Numbers", 2018, report CIFAR10-CNN; its shape is that of A. Krizhevsky's
    cuda-convnet, 2012, which Caffe's "CIFAR-10 full" has too (there with local response normalisation).

    Examples
    --------
    >>> [layer.result for layer in CIFAR10CNN().layers[:3]]
    [(32, 32, 32), (32, 15, 15), (64, 7, 7)]
    """

    name = "cifar10-cnn"

    def __init__(self, sizes=(32, 32, 64), image=(3, 32, 32), classes: int = 10) -> None:
        sizes, image = check_sizes(sizes, exactly=3), check_image(image, 4)
        (classes,) = check_sizes((classes,), "classes", exactly=1)
        maps, self.image, self.windows, layers = image, image, [], []
        for number, filters in enumerate(sizes, start=1):
            layers.append(Convolution(f"conv{number}", maps, filters, 5, padding=2))
            self.windows.append(min(3, *maps[1:]))
            maps = (filters, *pooled_size(maps[1:], self.windows[-1], 2))
        layers.append(Linear("fc", maps[0] * maps[1] * maps[2], classes))
        options = {"sizes": sizes, "image": image, "classes": classes}
        super().__init__(layers, options, image[0] * image[1] * image[2], classes, relu=layers[:-1])

    def forward(self, x: Tensor, *, training: bool = False) -> Tensor:
        """The network's output for a batch, rounded to the role ``output`` of the last layer.

        Parameters
        ----------
        x : Tensor (B, channels * height * width)
        training : bool
            Makes no difference here.

        Returns
        -------
        Tensor (B, classes)
        """
        x = reshape(x, (-1, *self.image))
        *convolutions, last = self.layers
        for conv, window in zip(convolutions, self.windows, strict=True):
            x = conv(x)
            if conv is convolutions[0]:
                x = activation("relu", max_pool2d(x, conv.numerics, window=window, stride=2), conv.numerics)
            else:
                x = avg_pool2d(activation("relu", x, conv.numerics), conv.numerics, window=window, stride=2)
        return self.output(last(reshape(x, (-1, last.inputs))))

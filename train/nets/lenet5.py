"""LeNet-5: three convolutions with pooling between them, and two linear layers."""

from __future__ import annotations

from softnum.train.engine.functions import activation
from softnum.train.engine.tensor import Tensor, reshape
from softnum.train.layers.feedforward import Convolution, Linear
from softnum.train.layers.pooling import max_pool2d, pooled_size
from softnum.train.layers.sizes import check_image, check_sizes
from softnum.train.nets.network import Network

__all__ = ["LeNet5"]

_KERNEL = 5
_IMAGE = 32  # LeCun's; smaller images are padded where they would shrink too far


class LeNet5(Network):
    """LeNet-5, with ReLU, max pooling and fully connected maps::

        conv1 (5 x 5), pool (2 x 2), conv2 (5 x 5), pool (2 x 2), conv3 (all that is left), fc1, fc2

    On 32 x 32 pixels these are LeCun's sizes: conv3 has a kernel of 5 x 5 and leaves one pixel. Smaller images are
    padded by 2 in conv1, and where less than 6 x 6 pixels reach conv2, also there; so an image of 28 x 28 takes the
    same conv2 and conv3, and one of 8 x 8 a conv3 of 2 x 2.

    Parameters
    ----------
    sizes : sequence of four int
        Channels of conv1, conv2 and conv3; outputs of fc1.
    image : (int, int, int)
        Channels, height and width of a sample.
    classes : int
        Outputs of fc2.

    Raises
    ------
    ValueError
        If there are not four sizes, one is not positive, or the image is smaller than 4 x 4.

    References
    ----------
    Y. LeCun et al., "Gradient-Based Learning Applied to Document Recognition", 1998, section II.B. There each map of
    conv2 sees some of the maps only, poolings are scaled averages, functions tanh, the outputs radial basis functions.

    Examples
    --------
    >>> [layer.result for layer in LeNet5(image=(1, 28, 28)).layers[:3]]
    [(6, 28, 28), (16, 10, 10), (120, 1, 1)]
    >>> [layer.result for layer in LeNet5(image=(1, 8, 8)).layers[:3]]
    [(6, 8, 8), (16, 4, 4), (120, 1, 1)]
    """

    name = "lenet5"

    def __init__(self, sizes=(6, 16, 120, 84), image=(1, 28, 28), classes: int = 10) -> None:
        sizes, image = check_sizes(sizes, exactly=4), check_image(image, 4)
        (classes,) = check_sizes((classes,), "classes", exactly=1)
        layers, maps, self.image = [], image, image
        for name, filters, least in (("conv1", sizes[0], _IMAGE), ("conv2", sizes[1], _KERNEL + 1)):
            padding = 0 if min(maps[1:]) >= least else _KERNEL // 2
            layers.append(Convolution(name, maps, filters, _KERNEL, padding=padding))
            maps = (filters, *pooled_size(layers[-1].result[1:], 2, 2))
        layers.append(Convolution("conv3", maps, sizes[2], min(maps[1:])))
        channels, rows, columns = layers[-1].result
        layers += [Linear("fc1", channels * rows * columns, sizes[3]), Linear("fc2", sizes[3], classes)]
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
        *hidden, last = self.layers
        for layer in hidden:
            if layer.name == "fc1":
                x = reshape(x, (-1, layer.inputs))
            x = activation("relu", layer(x), layer.numerics)
            if layer.name in ("conv1", "conv2"):
                x = max_pool2d(x, layer.numerics)
        return self.output(last(x))

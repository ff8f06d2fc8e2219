"""Residual networks for small images."""

from __future__ import annotations

from softnum.train.engine.functions import activation
from softnum.train.engine.tensor import Tensor, add, reshape
from softnum.train.layers.feedforward import BatchNorm, Convolution, GroupNorm, Linear
from softnum.train.layers.pooling import avg_pool2d
from softnum.train.layers.sizes import check_image, check_sizes
from softnum.train.nets.network import Network

__all__ = ["ResNet"]

_EXPANSION = 4  # channels of a bottleneck's result for each of its own
_GROUP_SIZE = 8
_LAYERS = {"basic": 2, "bottleneck": 3}  # convolutions of a block


class _Block:
    """A residual block: its convolutions, each normalised, and what it adds them to."""

    def __init__(self, name: str, image, filters: int, stride: int, kind: str, group_size: int | None) -> None:
        if kind == "basic":
            shapes = ((filters, 3, stride), (filters, 3, 1))
        else:
            shapes = ((filters, 1, 1), (filters, 3, stride), (_EXPANSION * filters, 1, 1))
        maps, self.convolutions = image, []
        for number, (channels, kernel, step) in enumerate(shapes, start=1):
            self.convolutions.append(_normalised(f"{name}.conv{number}", maps, channels, kernel, step, group_size))
            maps = self.convolutions[-1][0].result
        self.shortcut = None
        if maps != image:
            self.shortcut = _normalised(f"{name}.shortcut", image, maps[0], 1, stride, group_size)
        self.result = maps

    @property
    def layers(self) -> list:
        """In the order of `Network`: the shortcut is what is added second."""
        pairs = self.convolutions if self.shortcut is None else [*self.convolutions, self.shortcut]
        return [layer for pair in pairs for layer in pair]

    def __call__(self, x: Tensor, training: bool) -> Tensor:
        y = x
        for conv, norm in self.convolutions:
            y = norm(conv(y), training=training)
            if conv is not self.convolutions[-1][0]:
                y = activation("relu", y, norm.numerics)
        if self.shortcut is not None:
            conv, projected = self.shortcut
            x = projected(conv(x), training=training)
        return activation("relu", add(y, x, norm.numerics), norm.numerics)


def _normalised(name: str, image, filters: int, kernel: int, stride: int, group_size: int | None):
    """A convolution without a bias that keeps the size but for its stride, and the normalisation of its result."""
    conv = Convolution(name, image, filters, kernel, stride=stride, padding=kernel // 2, bias=False)
    return conv, _norm(f"{name}.", "", filters, group_size)


def _norm(before: str, after: str, channels: int, group_size: int | None):
    """A normalisation of so many channels, called bn or gn: of the batch, or of groups."""
    if group_size is None:
        return BatchNorm(f"{before}bn{after}", channels)
    return GroupNorm(f"{before}gn{after}", channels, group_size)


class ResNet(Network):
    """A residual network of three stages, the second and third of which halve the image::

        conv1, bn1, ReLU, stages of blocks, average of each channel, fc

    A basic block is two 3 x 3 convolutions; a bottleneck a 1 x 1, a 3 x 3 and a 1 x 1 convolution, the last of which
    has four times their channels. Each is followed by a batch normalisation and, but for the last, ReLU. The block's
    input is added, and ReLU follows. Where the shapes differ, the input passes a 1 x 1 convolution and a normalisation
    (shortcut). In a stage's first block the 3 x 3 convolution (of a basic block the first) and the shortcut move by 2.
    Convolutions have no biases. The sum is arithmetic of the last normalisation of the block, in its role
    ``elementwise``; so are the average of each channel and the sums of gradients of what goes both ways.

    Layers are called conv1, bn1, stage<s>.<b>.conv<n>, stage<s>.<b>.conv<n>.bn, stage<s>.<b>.shortcut, ....shortcut.bn
    and fc. With norm="group" normalisations are of groups of channels instead, and called gn1 and ....gn.

    Parameters
    ----------
    depth : int, optional
        Convolutions on the longest way, and fc: 6 n + 2 of basic blocks, 9 n + 2 of bottlenecks, with n blocks a stage.
        Default: with one block a stage, 8 or 11.
    block : str
        "basic" or "bottleneck".
    sizes : sequence of three int
        Channels of the stages' convolutions; those of the first are conv1's too.
    image : (int, int, int)
        Channels, height and width of a sample.
    classes : int
        Outputs of fc.
    norm : str
        "batch" or "group".
    group_size : int, optional
        Channels of a group, of norm="group": 8 if it is not stated.

    Raises
    ------
    ValueError
        If there is no such block or normalisation, the depth is not one of its, there are not three sizes or one is not
        positive, groups do not divide the channels, or the image is smaller than 4 x 4.

    References
    ----------
    K. He et al., "Deep Residual Learning for Image Recognition", 2016, section 4.2 (there the shortcuts of CIFAR-10's
    networks are padded with zeros; these are option B of the paper), and figure 5 (bottleneck). Y. Wu and K. He, "Group
    Normalization", 2018 (there 32 groups, or 16 channels each, of networks with more channels).

    Examples
    --------
    >>> len(ResNet(depth=20).layers), ResNet(depth=11, block="bottleneck").layers[-1].inputs
    (43, 256)
    """

    name = "resnet"

    def __init__(
        self, depth: int | None = None, block: str = "basic", sizes=(16, 32, 64), image=(3, 32, 32), classes: int = 10,
        norm: str = "batch", group_size: int | None = None,
    ) -> None:  # fmt: skip
        if block not in _LAYERS:
            raise ValueError(f"block must be basic or bottleneck, got {block!r}")
        if norm not in ("batch", "group"):
            raise ValueError(f"norm must be batch or group, got {norm!r}")
        if norm == "batch" and group_size is not None:
            raise ValueError(f"group_size is for norm='group', got {group_size!r} with norm='batch'; leave it out")
        if norm == "group":
            given = _GROUP_SIZE if group_size is None else group_size
            (group_size,) = check_sizes((given,), "group_size", exactly=1)
        each = 3 * _LAYERS[block]
        (depth,) = check_sizes((each + 2 if depth is None else depth,), "depth", exactly=1)
        blocks, rest = divmod(depth - 2, each)
        if blocks < 1 or rest:
            depths = ", ".join(str(each * n + 2) for n in (1, 2, 3))
            raise ValueError(f"depth of {block} blocks is {each} n + 2 ({depths}, ...), got {depth}")
        sizes, image = check_sizes(sizes, exactly=3), check_image(image, 4)
        (classes,) = check_sizes((classes,), "classes", exactly=1)
        self.image = image
        conv = Convolution("conv1", image, sizes[0], 3, padding=1, bias=False)
        self.first = conv, _norm("", "1", sizes[0], group_size)
        maps, self.blocks = self.first[0].result, []
        for stage, filters in enumerate(sizes, start=1):
            for number in range(1, blocks + 1):
                stride = 2 if stage > 1 and number == 1 else 1
                self.blocks.append(_Block(f"stage{stage}.{number}", maps, filters, stride, block, group_size))
                maps = self.blocks[-1].result
        self.last = Linear("fc", maps[0], classes)
        layers = [*self.first, *(layer for part in self.blocks for layer in part.layers), self.last]
        options = {"depth": depth, "block": block, "sizes": sizes, "image": image, "classes": classes}
        if norm == "group":
            options |= {"norm": norm, "group_size": group_size}
        relu = [self.first[1], *(norm for part in self.blocks for _, norm in part.convolutions)]
        super().__init__(layers, options, image[0] * image[1] * image[2], classes, relu=relu)

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
        conv, norm = self.first
        x = reshape(x, (-1, *self.image))
        x = activation("relu", norm(conv(x), training=training), norm.numerics)
        for block in self.blocks:
            x = block(x, training)
        norm = self.blocks[-1].convolutions[-1][1]
        x = avg_pool2d(x, norm.numerics, window=self.blocks[-1].result[1:])
        return self.output(self.last(reshape(x, (-1, self.last.inputs))))

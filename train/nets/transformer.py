"""A transformer's encoder that classifies images, read as sequences of rows."""

from __future__ import annotations

from softnum.train.engine.tensor import Tensor, add, reshape
from softnum.train.layers.feedforward import Linear
from softnum.train.layers.pooling import avg_pool2d
from softnum.train.layers.sequence_layers import Embedding, LayerNorm
from softnum.train.layers.sequences import dropout as drop
from softnum.train.layers.sequences import permute
from softnum.train.layers.sizes import check_heads, check_image, check_rate, check_sizes
from softnum.train.layers.transformer_blocks import Block
from softnum.train.nets.network import Network

__all__ = ["Transformer"]


class Transformer(Network):
    """An encoder over the rows of an image, each row a step::

        embed(row) + position, dropout, blocks block1, block2, ..., norm, average over the steps, fc

    The features of a step are those of its row: channel by channel, the columns of each. Every step may attend to every
    other (`softnum.train.layers.transformer_blocks.Block`). Positions are learned. The sum with them and the average of
    steps are arithmetic of the layers position and norm, in the role ``elementwise``.

    Parameters
    ----------
    sizes : sequence of two int
        Features of a step in the blocks; those between a block's two linear layers.
    depth, heads : int
        Blocks; heads of each attention, which must divide the features.
    dropout : float
        Of embedded steps, and of each branch of a block.
    image : (int, int, int)
        Channels, height and width of a sample.
    classes : int
        Outputs of fc.

    Raises
    ------
    ValueError
        If there are not two sizes, one of the numbers is not positive, the heads do not divide the features, or the
        dropout is out of range.

    References
    ----------
    A. Vaswani et al., "Attention Is All You Need", 2017. Learned positions and the average over the steps are those of
    A. Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021 (there an option beside a class token).

    Examples
    --------
    >>> net = Transformer(image=(1, 8, 8), depth=1)
    >>> net.layer_names[:4], net.layer_names[-1]
    (['embed', 'position', 'block1.norm1', 'block1.qkv'], 'fc')
    """

    name = "transformer"

    def __init__(
        self, sizes=(32, 64), depth: int = 2, heads: int = 2, dropout: float = 0.0, image=(1, 8, 8), classes: int = 10
    ) -> None:  # fmt: skip
        sizes, image = check_sizes(sizes, exactly=2), check_image(image, 1)
        (depth,), (classes,) = check_sizes((depth,), "depth", exactly=1), check_sizes((classes,), "classes", exactly=1)
        features, hidden = sizes
        heads, self.dropout, self.image = check_heads(heads, features), check_rate(dropout), image
        channels, self.steps, width = image
        self.embed = Linear("embed", channels * width, features, self.steps)
        self.position = Embedding("position", self.steps, features)
        self.blocks = [
            Block(f"block{number}", self.steps, features, hidden, heads, self.dropout)
            for number in range(1, depth + 1)
        ]  # fmt: skip
        self.norm, self.last = LayerNorm("norm", features), Linear("fc", features, classes)
        layers = [self.embed, self.position, *(layer for block in self.blocks for layer in block.layers)]
        options = {
            "sizes": sizes, "depth": depth, "heads": heads, "dropout": self.dropout, "image": image, "classes": classes,
        }  # fmt: skip
        relu = [layer for block in self.blocks for layer in block.relu]
        super().__init__([*layers, self.norm, self.last], options, channels * self.steps * width, classes, relu=relu)

    def forward(self, x: Tensor, *, training: bool = False) -> Tensor:
        """The network's output for a batch, rounded to the role ``output`` of the last layer.

        Parameters
        ----------
        x : Tensor (B, channels * height * width)
        training : bool
            Whether to drop elements.

        Returns
        -------
        Tensor (B, classes)
        """
        samples = x.value.shape[0]
        rows = permute(reshape(x, (-1, *self.image)), (0, 2, 1, 3))
        x = self.embed(reshape(rows, (-1, self.embed.inputs)))
        x = add(x, self.position.positions(samples), self.position.numerics)
        x = drop(x, self.dropout, self.position.numerics, training=training)
        for block in self.blocks:
            x = block(x, batch=samples, training=training)
        x = reshape(self.norm(x), (samples, 1, self.steps, -1))
        x = avg_pool2d(x, self.norm.numerics, window=(self.steps, 1))
        return self.output(self.last(reshape(x, (samples, -1))))

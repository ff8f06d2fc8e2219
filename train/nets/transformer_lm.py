"""A transformer's decoder as a language model: the next byte of a text from those before it."""

from __future__ import annotations

from softnum.train.engine.tensor import Tensor, add
from softnum.train.layers.attention import causal_mask
from softnum.train.layers.feedforward import Linear
from softnum.train.layers.sequence_layers import Block, Embedding, LayerNorm
from softnum.train.layers.sequences import dropout as drop
from softnum.train.layers.sizes import check_heads, check_rate, check_sizes
from softnum.train.nets.network import Network

__all__ = ["TransformerLM"]


class TransformerLM(Network):
    """A byte of the text at each step, which attends to itself and those before it::

        embedding + position, dropout, blocks block1, block2, ..., norm, fc

    Blocks and positions are those of `softnum.train.nets.transformer.Transformer`.

    Parameters
    ----------
    sizes : sequence of two int
        Features of a step in the blocks; those between a block's two linear layers.
    depth, heads : int
        Blocks; heads of each attention, which must divide the features.
    dropout : float
        Of embedded steps, and of each branch of a block.
    steps : int
        Bytes of a sequence.
    words : int
        How many different bytes there are, which are outputs of fc.

    Raises
    ------
    ValueError
        If there are not two sizes, a number is not positive, the heads do not divide the features, or the dropout is
        out of range.

    References
    ----------
    A. Radford et al., "Improving Language Understanding by Generative Pre-Training", 2018 (there a step is normalised
    after each branch, and fc shares the weights of the embedding).

    Examples
    --------
    >>> TransformerLM(depth=1).layer_names[:3]
    ['embedding', 'position', 'block1.norm1']
    """

    name = "transformer-lm"
    kind = "text"

    def __init__(
        self, sizes=(32, 64), depth: int = 2, heads: int = 2, dropout: float = 0.0, steps: int = 32, words: int = 256
    ) -> None:  # fmt: skip
        features, hidden = sizes = check_sizes(sizes, exactly=2)
        (depth,), (self.steps,), (words,) = (
            check_sizes((value,), what, exactly=1)
            for what, value in (("depth", depth), ("steps", steps), ("words", words))
        )
        heads, self.dropout = check_heads(heads, features), check_rate(dropout)
        self.embedding = Embedding("embedding", words, features)
        self.position = Embedding("position", self.steps, features)
        self.blocks = [
            Block(f"block{number}", self.steps, features, hidden, heads, self.dropout)
            for number in range(1, depth + 1)
        ]  # fmt: skip
        self.norm, self.last = LayerNorm("norm", features), Linear("fc", features, words, self.steps)
        layers = [self.embedding, self.position, *(layer for block in self.blocks for layer in block.layers)]
        options = {
            "sizes": sizes, "depth": depth, "heads": heads, "dropout": self.dropout, "steps": self.steps,
            "words": words,
        }  # fmt: skip
        relu = [block.ff1 for block in self.blocks]
        super().__init__([*layers, self.norm, self.last], options, self.steps, words, relu=relu)

    def forward(self, x: Tensor, *, training: bool = False) -> Tensor:
        """The network's output for a batch, rounded to the role ``output`` of the last layer.

        Parameters
        ----------
        x : Tensor of integers (B, steps)
        training : bool
            Whether to drop elements.

        Returns
        -------
        Tensor (B * steps, words)
            Sequence by sequence.
        """
        samples, numerics = x.value.shape[0], self.position.numerics
        x = add(self.embedding(x.value.reshape(-1)), self.position.positions(samples), numerics)
        x = drop(x, self.dropout, numerics, training=training)
        for block in self.blocks:
            x = block(x, batch=samples, training=training, mask=causal_mask(self.steps))
        return self.output(self.last(self.norm(x)))

"""A transformer's decoder as a language model: the next byte of a text from those before it."""

from __future__ import annotations

import math

from softnum.train.engine.tensor import Tensor, add
from softnum.train.layers.attention import causal_mask
from softnum.train.layers.feedforward import Linear
from softnum.train.layers.sequence_layers import NORMS, Embedding, TiedLinear
from softnum.train.layers.sequences import dropout as drop
from softnum.train.layers.sizes import check_choice, check_heads, check_rate, check_sizes
from softnum.train.layers.transformer_blocks import FEEDFORWARDS, Block
from softnum.train.nets.network import Network

__all__ = ["POSITIONS", "TransformerLM", "check_base", "check_kv_heads"]

POSITIONS = ("learned", "rotary")
_ROTARY_BASE = 10000.0


class TransformerLM(Network):
    """A byte of the text at each step, which attends to itself and those before it::

        embedding + position, dropout, blocks block1, block2, ..., norm, fc

    Blocks and positions are those of `softnum.train.nets.transformer.Transformer`, unless options say otherwise:

    - norm="rms": RMS normalisations (`softnum.train.layers.normalisation.rms_norm`) instead of layer normalisations;
    - feedforward="swiglu" or "relu2": gated linear units, or squares of ReLUs, in blocks
      (`softnum.train.layers.transformer_blocks.FeedForward`);
    - positions="rotary": queries and keys are turned (`softnum.train.layers.positions.rotary`), and there is no layer
      position;
    - kv_heads: fewer heads of keys and values (`softnum.train.layers.attention.attention`);
    - tied_embeddings: fc multiplies by the embedding's transpose (`softnum.train.layers.sequence_layers.TiedLinear`)
      and has a bias of its own. The embedding's initial weights are then uniform within sqrt(6 / features), as those of
      fc were.

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
    norm : str
        "layer" or "rms".
    feedforward : str
        "relu", "relu2" or "swiglu"; the second size is that of both linear layers of this one.
    positions : str
        "learned" or "rotary".
    rotary_base : float, optional
        Of rotary positions: 10000 if it is not stated.
    kv_heads : int, optional
        Heads of keys and values, which must divide the heads. Default: as many.
    tied_embeddings : bool

    Raises
    ------
    ValueError
        If there are not two sizes, a number is not positive, the heads do not divide the features, the heads of keys
        and values do not divide the heads, rotary positions get heads of an odd size, the dropout is out of range, or
        an option is none of its choices.

    References
    ----------
    A. Radford et al., "Improving Language Understanding by Generative Pre-Training", 2018 (there a step is normalised
    after each branch, and fc shares the weights of the embedding). The options together are as in H. Touvron et al.,
    "Llama 2: Open Foundation and Fine-Tuned Chat Models", 2023, section 2.2 (there embeddings are not tied, and linear
    layers have no biases).

    Examples
    --------
    >>> TransformerLM(depth=1).layer_names[:3]
    ['embedding', 'position', 'block1.norm1']
    >>> TransformerLM(depth=1, norm="rms", feedforward="swiglu", positions="rotary", kv_heads=1).layer_names[5:]
    ['block1.norm2', 'block1.gate', 'block1.ff1', 'block1.ff2', 'norm', 'fc']
    """

    name = "transformer-lm"
    kind = "text"

    def __init__(
        self, sizes=(32, 64), depth: int = 2, heads: int = 2, dropout: float = 0.0, steps: int = 32, words: int = 256,
        norm: str = "layer", feedforward: str = "relu", positions: str = "learned", rotary_base: float | None = None,
        kv_heads: int | None = None, tied_embeddings: bool = False,
    ) -> None:  # fmt: skip
        sizes = check_sizes(sizes, exactly=2)
        heads, positions = check_heads(heads, sizes[0]), check_choice(positions, "positions", POSITIONS)
        kv_heads = heads if kv_heads is None else check_kv_heads(kv_heads, heads)
        rotary_base = check_base(positions, rotary_base, sizes[0] // heads)
        options = {"sizes": sizes, "depth": depth, "heads": heads, "dropout": dropout, "steps": steps, "words": words}
        changed = {"norm": (norm, "layer"), "feedforward": (feedforward, "relu"), "positions": (positions, "learned"),
                   "rotary_base": (rotary_base, None), "kv_heads": (kv_heads, heads),
                   "tied_embeddings": (tied_embeddings, False)}  # fmt: skip
        options |= {name: value for name, (value, default) in changed.items() if value != default}
        block = {
            "norm": norm, "kv_heads": kv_heads, "rotary_base": rotary_base,
            "feedforward": check_choice(feedforward, "feedforward", FEEDFORWARDS),
        }  # fmt: skip
        self._build(
            options, sizes, depth, heads, dropout=dropout, steps=steps, words=words, tied=tied_embeddings, block=block
        )

    def _build(
        self, options: dict, sizes, depth: int, heads: int, *, dropout: float, steps: int, words: int, tied: bool,
        block: dict,
    ) -> None:  # fmt: skip
        """Make the layers, whose blocks get these keywords."""
        features, hidden = sizes
        (depth,), (self.steps,), (words,) = (
            check_sizes((value,), what, exactly=1)
            for what, value in (("depth", depth), ("steps", steps), ("words", words))
        )
        self.heads = heads
        options["dropout"] = self.dropout = check_rate(dropout)
        norm, bias = check_choice(block["norm"], "norm", NORMS), block.get("bias", True)
        if not isinstance(tied, bool):
            raise ValueError(f"tied_embeddings must be true or false, got {tied!r}")
        limit = math.sqrt(6.0 / features) if tied else 1.0
        self.embedding = Embedding("embedding", words, features, limit)
        self.position = Embedding("position", self.steps, features) if block["rotary_base"] is None else None
        self.blocks = [
            Block(f"block{number}", self.steps, features, hidden, heads, self.dropout, **block)
            for number in range(1, depth + 1)
        ]  # fmt: skip
        self.norm = NORMS[norm]("norm", features)
        if tied:
            self.last = TiedLinear("fc", self.embedding, self.steps, bias=bias)
        else:
            self.last = Linear("fc", features, words, self.steps, bias=bias)
        looked_up = [self.embedding] if self.position is None else [self.embedding, self.position]
        layers = [*looked_up, *(layer for block in self.blocks for layer in block.layers)]
        relu = [layer for block in self.blocks for layer in block.relu]
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
        samples, position = x.value.shape[0], self.position
        count, kept = samples * self.heads * self.steps**2, 2 * (len(self.blocks) if training else 1)
        x.backend.check_room(  # scores and their softmax, which training keeps of all blocks
            kept * count,
            f"{self.name}: {kept} arrays of attention scores, {samples} samples x {self.heads} heads x {self.steps} x "
            f"{self.steps} steps,",
            "take fewer steps (--set steps=N), fewer heads" + (", or a smaller --batch" if training else ""),
        )
        numerics = (position or self.embedding).numerics
        x = self.embedding(x.value.reshape(-1))
        if position is not None:
            x = add(x, position.positions(samples), numerics)
        x = drop(x, self.dropout, numerics, training=training)
        for block in self.blocks:
            x = block(x, batch=samples, training=training, mask=causal_mask(self.steps))
        return self.output(self.last(self.norm(x)))


def check_base(positions: str, base, size: int) -> float | None:
    """The base of rotary positions of heads of a size; None of learned ones.

    >>> check_base("rotary", None, 16)
    10000.0
    """
    if positions == "learned":
        if base is not None:
            raise ValueError(
                f"rotary_base is for positions='rotary', got {base!r} with positions='learned'; leave it out"
            )
        return None
    if size % 2:
        raise ValueError(
            f"rotary positions rotate pairs of features, and a head has {size}; choose heads of an even size"
        )
    base = _ROTARY_BASE if base is None else base
    if isinstance(base, bool) or not isinstance(base, (int, float)) or not 0 < base < math.inf:
        raise ValueError(f"rotary_base must be a positive number, got {base!r}")
    return float(base)


def check_kv_heads(kv_heads, heads: int) -> int:
    """The heads of keys and values, if they divide the heads; else ValueError.

    >>> check_kv_heads(2, 8)
    2
    """
    (kv_heads,) = check_sizes((kv_heads,), "kv_heads", exactly=1)
    if heads % kv_heads:
        raise ValueError(f"kv_heads must divide the {heads} heads that share them, got {kv_heads}")
    return kv_heads

"""A transformer's block: an attention and a feedforward, each normalised first, with what is added around them."""

from __future__ import annotations

from collections.abc import Callable

from softnum.train.engine.functions import activation, power
from softnum.train.engine.tensor import Tensor, add, multiply, part
from softnum.train.layers.feedforward import Layer, Linear
from softnum.train.layers.sequence_layers import NORMS, Attention
from softnum.train.layers.sequences import dropout

__all__ = ["FEEDFORWARDS", "Block", "FeedForward", "Gate"]

#: what lies between the linear layers of a feedforward
FEEDFORWARDS = ("relu", "swiglu", "relu2")


class Gate(Linear):
    """A linear layer whose results pass silu(x) = x * sigmoid(x).

    >>> Gate("gate", 4, 8).functions
    ('silu',)
    """

    functions = ("silu",)

    def __call__(self, x: Tensor) -> Tensor:
        return activation("silu", super().__call__(x), self.numerics)


class FeedForward:
    """The two or three linear layers that follow an attention in a block, of the layers <name>.gate, .ff1 and .ff2::

        relu       relu(x @ ff1) @ ff2
        relu2      relu(x @ ff1) ** 2 @ ff2
        swiglu     (silu(x @ gate) * (x @ ff1)) @ ff2

    The square is one product in the role ``elementwise`` of ff1, and its gradient g * (2 * y), operation by operation
    in that role. silu(x) = x * sigmoid(x) in the role ``elementwise`` of gate, correctly rounded once; the product that
    follows it in that of ff1.

    Parameters
    ----------
    name : str
    features, hidden : int
        Of its input and result; between the linear layers.
    rows : int or callable
        As of `softnum.train.layers.feedforward.Linear`.
    kind : str
        One of ``FEEDFORWARDS``.
    bias : bool
        Whether its linear layers have biases.

    References
    ----------
    N. Shazeer, "GLU Variants Improve Transformer", 2020, equation 6 (there without biases); D. So et al., "Primer:
    Searching for Efficient Transformers for Language Modeling", 2021, section 3 (the squared ReLU).

    Examples
    --------
    >>> [layer.name for layer in FeedForward("block1", 32, 64, 8, "swiglu").layers]
    ['block1.gate', 'block1.ff1', 'block1.ff2']
    """

    def __init__(
        self, name: str, features: int, hidden: int, rows: int | Callable[[int], int], kind: str = "relu", *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        self.kind = kind
        self.gate = Gate(f"{name}.gate", features, hidden, rows, bias=bias) if kind == "swiglu" else None
        self.ff1 = Linear(f"{name}.ff1", features, hidden, rows, bias=bias)
        self.ff2 = self.last = Linear(f"{name}.ff2", hidden, features, rows, bias=bias)
        self.layers = [*(() if self.gate is None else (self.gate,)), self.ff1, self.ff2]

    @property
    def relu(self) -> list[Layer]:
        """The layers whose results pass a ReLU."""
        return [self.ff1] if self.gate is None else []

    def __call__(self, x: Tensor) -> Tensor:
        layer = self.ff1.numerics
        if self.gate is not None:
            return self.ff2(multiply(self.gate(x), self.ff1(x), layer))
        hidden = activation("relu", self.ff1(x), layer)
        return self.ff2(power(hidden, 2.0, layer) if self.kind == "relu2" else hidden)


class Block:
    """A transformer's block, normalised first::

        q, k, v = parts of the columns of norm1(x) @ qkv
        x = x + dropout(attention(q, k, v) @ project)
        x = x + dropout(feedforward(norm2(x)))

    Layers are called <name>.norm1, .qkv, .attention, .project, .norm2, and those of the feedforward follow
    (`FeedForward`, or what takes its place). The sums are arithmetic of project and of the feedforward's last layer, in
    the role ``elementwise``. q has as many columns as x, k and v those of their heads.

    Parameters
    ----------
    name : str
    steps, features, hidden, heads : int
        Steps of a sample; features of a step; those between the linear layers of the feedforward; heads of the
        attention.
    dropout : float
    norm : str
        One of ``NORMS``.
    feedforward : str or callable
        One of ``FEEDFORWARDS``; or what makes a layer in its place of the block's name.
    kv_heads, rotary_base
        As of `softnum.train.layers.sequence_layers.Attention`.
    bias : bool
        Whether linear layers have biases.

    References
    ----------
    A. Vaswani et al., "Attention Is All You Need", 2017, section 3.1; normalised first as in R. Xiong et al., "On Layer
    Normalization in the Transformer Architecture", 2020.

    Examples
    --------
    >>> [layer.name for layer in Block("block1", 8, 32, 64, 2).layers][:3]
    ['block1.norm1', 'block1.qkv', 'block1.attention']
    >>> [layer.name for layer in Block("block1", 8, 32, 64, 2, feedforward="swiglu").layers][5:]
    ['block1.gate', 'block1.ff1', 'block1.ff2']
    """

    def __init__(
        self, name: str, steps: int, features: int, hidden: int, heads: int, dropout: float = 0.0, *,
        norm: str = "layer", feedforward: str | Callable = "relu", kv_heads: int | None = None,
        rotary_base: float | None = None, bias: bool = True,
    ) -> None:  # fmt: skip
        self.dropout = dropout
        self.norm1, self.norm2 = (NORMS[norm](f"{name}.norm{number}", features) for number in (1, 2))
        self.attention = Attention(
            f"{name}.attention", steps, steps, features, heads, kv_heads=kv_heads, rotary_base=rotary_base
        )
        shared = self.attention.kv_heads * self.attention.size
        self.columns = (0, features, features + shared, features + 2 * shared)
        self.qkv = Linear(f"{name}.qkv", features, self.columns[-1], steps, bias=bias)
        self.project = Linear(f"{name}.project", features, features, steps, bias=bias)
        if callable(feedforward):
            self.feedforward = feedforward(name)
        else:
            self.feedforward = FeedForward(name, features, hidden, steps, feedforward, bias=bias)
        self.layers = [
            self.norm1, self.qkv, self.attention, self.project, self.norm2, *self.feedforward.layers
        ]  # fmt: skip

    @property
    def relu(self) -> list[Layer]:
        """The layers whose results pass a ReLU."""
        return self.feedforward.relu

    def __call__(self, x: Tensor, *, batch: int, training: bool, mask=None) -> Tensor:
        joint, every, columns = self.qkv(self.norm1(x)), slice(None), self.columns
        query, key, value = (part(joint, every, slice(*columns[k : k + 2])) for k in range(3))
        attended = self.project(self.attention(query, key, value, batch=batch, mask=mask))
        x = self._add(x, self.project, attended, training)
        return self._add(x, self.feedforward.last, self.feedforward(self.norm2(x)), training)

    def _add(self, x: Tensor, last: Linear, y: Tensor, training: bool) -> Tensor:
        return add(x, dropout(y, self.dropout, last.numerics, training=training), last.numerics)

"""Layers of networks of sequences; their inputs are matrices with a row for each step of each sample."""

from __future__ import annotations

import numpy as np

from softnum.train.engine.functions import activation
from softnum.train.engine.initial import uniform
from softnum.train.engine.tensor import Parameter, Tensor, add, part
from softnum.train.layers.attention import attention
from softnum.train.layers.feedforward import Layer, Linear
from softnum.train.layers.normalisation import layer_norm
from softnum.train.layers.sequences import dropout, embedding

__all__ = ["Attention", "Block", "Embedding", "LayerNorm"]


class LayerNorm(Layer):
    """Layer normalisation of rows.

    Parameters
    ----------
    name : str
    features : int

    Examples
    --------
    >>> LayerNorm("norm", 32).products("forward", batch=8)
    []
    """

    def __init__(self, name: str, features: int) -> None:
        super().__init__(name)
        self.features = features

    def initialise(self, numerics, index: int) -> None:
        """Make the gains of 1 and the biases of 0."""
        layer, backend = numerics.layer(self.name), numerics.backend
        values = {"weight": backend.ones((self.features,)), "bias": backend.zeros((self.features,))}
        self.parameters = [
            Parameter(layer.round("master", value), layer, f"{self.name}.{kind}") for kind, value in values.items()
        ]

    def __call__(self, x: Tensor) -> Tensor:
        return layer_norm(x, *self.parameters, self.numerics)


class Embedding(Layer):
    """A row of weights for each word; also for each position.

    Parameters
    ----------
    name : str
    words, features : int
    limit : float
        Of the initial weights.

    Examples
    --------
    >>> Embedding("embedding", 256, 32).products("forward", batch=8)
    []
    """

    looked_up = True

    def __init__(self, name: str, words: int, features: int, limit: float = 1.0) -> None:
        super().__init__(name)
        self.words, self.features, self.limit = words, features, limit

    def initialise(self, numerics, index: int) -> None:
        """Make the weights, uniform within the limit, from the random numbers of an index."""
        layer = numerics.layer(self.name)
        weight = layer.round("master", uniform(numerics.seed, index, self.words, self.features, self.limit))
        self.parameters = [Parameter(weight, layer, f"{self.name}.weight")]

    def __call__(self, rows) -> Tensor:
        return embedding(rows, *self.parameters, self.numerics)

    def positions(self, samples: int) -> Tensor:
        """All rows in their order, for each sample."""
        return self(np.tile(np.arange(self.words), samples))


class Attention(Layer):
    """Scaled dot-product attention of several heads; it has no parameters.

    Parameters
    ----------
    name : str
    queries, keys : int
        Steps that attend, and are attended to, of a sample.
    features, heads : int

    Examples
    --------
    >>> Attention("attention", 8, 8, 32, 2).products("forward", batch=1)[1:3]
    [('attention', 'forward', 8, 8, 16), ('attention', 'forward', 8, 16, 8)]
    """

    def __init__(self, name: str, queries: int, keys: int, features: int, heads: int) -> None:
        super().__init__(name)
        self.queries, self.keys, self.size, self.heads = queries, keys, features // heads, heads

    def initialise(self, numerics, index: int) -> None:
        """Note the arithmetic: there is nothing to make."""
        self._numerics = numerics.layer(self.name)

    @property
    def numerics(self):
        """The layer's arithmetic."""
        return self._numerics

    def products(self, key: str, batch: int) -> list[tuple]:
        """(layer, pass, M, N, K) of each matrix product of the forward pass, one of each sample and head."""
        if key != "forward":
            raise ValueError(f"{self.name}: the backward products of an attention go by backward_products, got {key!r}")
        scores, result = (self.queries, self.keys, self.size), (self.queries, self.size, self.keys)
        return [(self.name, key, *sizes) for sizes in (scores, result) for _ in range(batch * self.heads)]

    def backward_products(self, batch: int, *, data: bool) -> list[tuple]:
        """Those of P @ V, then those of Q @ K^T; all of them are gradients of its input."""
        queries, keys, size = self.queries, self.keys, self.size
        rows = [
            ("backward_data", queries, keys, size), ("backward_weight", keys, size, queries),
            ("backward_data", queries, size, keys), ("backward_weight", size, keys, queries),
        ]  # fmt: skip
        return [(self.name, *row) for row in rows for _ in range(batch * self.heads)]

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, *, batch: int, mask=None) -> Tensor:
        return attention(query, key, value, self.numerics, batch=batch, heads=self.heads, mask=mask)


class Block:
    """A transformer's block, normalised first::

        q, k, v = thirds of the columns of norm1(x) @ qkv
        x = x + dropout(attention(q, k, v) @ project)
        x = x + dropout(relu(norm2(x) @ ff1) @ ff2)

    Layers are called <name>.norm1, .qkv, .attention, .project, .norm2, .ff1 and .ff2. The sums are arithmetic of
    project and ff2, in the role ``elementwise``.

    Parameters
    ----------
    name : str
    steps, features, hidden, heads : int
        Steps of a sample; features of a step; those between ff1 and ff2; heads of the attention.
    dropout : float

    References
    ----------
    A. Vaswani et al., "Attention Is All You Need", 2017, section 3.1; normalised first as in R. Xiong et al., "On Layer
    Normalization in the Transformer Architecture", 2020.

    Examples
    --------
    >>> [layer.name for layer in Block("block1", 8, 32, 64, 2).layers][:3]
    ['block1.norm1', 'block1.qkv', 'block1.attention']
    """

    def __init__(self, name: str, steps: int, features: int, hidden: int, heads: int, dropout: float = 0.0) -> None:
        self.features, self.dropout = features, dropout
        self.norm1, self.norm2 = (LayerNorm(f"{name}.norm{number}", features) for number in (1, 2))
        self.qkv = Linear(f"{name}.qkv", features, 3 * features, steps)
        self.attention = Attention(f"{name}.attention", steps, steps, features, heads)
        self.project = Linear(f"{name}.project", features, features, steps)
        self.ff1 = Linear(f"{name}.ff1", features, hidden, steps)
        self.ff2 = Linear(f"{name}.ff2", hidden, features, steps)
        self.layers = [self.norm1, self.qkv, self.attention, self.project, self.norm2, self.ff1, self.ff2]

    def __call__(self, x: Tensor, *, batch: int, training: bool, mask=None) -> Tensor:
        joint, n, every = self.qkv(self.norm1(x)), self.features, slice(None)
        query, key, value = (part(joint, every, slice(k * n, (k + 1) * n)) for k in range(3))
        x = self._add(x, self.project, self.attention(query, key, value, batch=batch, mask=mask), training)
        hidden = activation("relu", self.ff1(self.norm2(x)), self.ff1.numerics)
        return self._add(x, self.ff2, hidden, training)

    def _add(self, x: Tensor, last: Linear, y: Tensor, training: bool) -> Tensor:
        return add(x, dropout(last(y), self.dropout, last.numerics, training=training), last.numerics)

"""Layers of networks of sequences; their inputs are matrices with a row for each step of each sample."""

from __future__ import annotations

import numpy as np

from softnum.train.engine.functions import activation
from softnum.train.engine.initial import uniform
from softnum.train.engine.tensor import Parameter, Tensor, add, linear, multiply, part
from softnum.train.layers.attention import attention
from softnum.train.layers.feedforward import Layer, Linear
from softnum.train.layers.normalisation import layer_norm, rms_norm
from softnum.train.layers.positions import rotary
from softnum.train.layers.sequences import dropout, embedding, permute

__all__ = ["NORMS", "Attention", "Block", "Embedding", "Gate", "LayerNorm", "RMSNorm", "TiedLinear"]


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


class RMSNorm(Layer):
    """RMS normalisation of rows: by the root of their mean square.

    Parameters
    ----------
    name : str
    features : int

    Examples
    --------
    >>> RMSNorm("norm", 32).products("forward", batch=8)
    []
    """

    def __init__(self, name: str, features: int) -> None:
        super().__init__(name)
        self.features = features

    def initialise(self, numerics, index: int) -> None:
        """Make the gains of 1."""
        layer = numerics.layer(self.name)
        gains = layer.round("master", numerics.backend.ones((self.features,)))
        self.parameters = [Parameter(gains, layer, f"{self.name}.weight")]

    def __call__(self, x: Tensor) -> Tensor:
        return rms_norm(x, *self.parameters, self.numerics)


#: normalisations of rows by their name as an option
NORMS: dict[str, type[Layer]] = {"layer": LayerNorm, "rms": RMSNorm}


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


class TiedLinear(Linear):
    """x @ E^T + bias, where E are the weights of an embedding.

    E is rounded from its master copy, which is the embedding's, to the layer's own role ``weights``. The gradient of
    this use, rounded to the layer's ``weight_gradients``, is added to that of the rows that were looked up in the
    embedding's role ``weight_gradients``.

    Parameters
    ----------
    name : str
    embedding : Embedding
    rows : int
        Of x, for each sample.

    References
    ----------
    O. Press and L. Wolf, "Using the Output Embedding to Improve Language Models", 2017.

    Examples
    --------
    >>> TiedLinear("fc", Embedding("embedding", 256, 32), 8).products("forward", batch=4)
    [('fc', 'forward', 32, 256, 32)]
    """

    def __init__(self, name: str, embedding: Embedding, rows: int) -> None:
        super().__init__(name, embedding.features, embedding.words, rows)
        self.embedding = embedding

    def initialise(self, numerics, index: int) -> None:
        """Make the bias of 0.

        Raises
        ------
        ValueError
            If the role ``weights`` is sparse here or in the embedding.
        """
        layer = numerics.layer(self.name)
        for each in (layer, numerics.layer(self.embedding.name)):
            sparsity = each.design.roles["weights"].sparsity
            if sparsity is not None:
                raise ValueError(
                    f"layers {self.embedding.name!r} and {self.name!r} share their weights, which cannot be pruned in "
                    f"one of two uses, and role 'weights' of layer {each.name!r} keeps {sparsity}; state it without "
                    "sparsity for both"
                )
        self.parameters = [Parameter(numerics.backend.zeros((self.outputs,)), layer, f"{self.name}.bias")]

    def __call__(self, x: Tensor) -> Tensor:
        (shared,), (bias,), layer = self.embedding.parameters, self.parameters, self.numerics
        weight = permute(
            shared, (1, 0), backend=layer.numerics.backend
        )  # not the parameter's own, which nobody watches
        values, _ = layer.operand("weights", weight.value, of=shared.layer.format("master"))
        return linear(x, weight, bias, layer, weights=values)


class Attention(Layer):
    """Scaled dot-product attention of several heads; it has no parameters.

    Parameters
    ----------
    name : str
    queries, keys : int
        Steps that attend, and are attended to, of a sample.
    features, heads : int
    kv_heads : int, optional
        Heads of keys and values; default: as many.
    rotary_base : float, optional
        Of ``softnum.train.layers.positions.rotary``, which then turns queries and keys, in this layer's arithmetic.

    Examples
    --------
    >>> Attention("attention", 8, 8, 32, 2).products("forward", batch=1)[1:3]
    [('attention', 'forward', 8, 8, 16), ('attention', 'forward', 8, 16, 8)]
    """

    def __init__(
        self, name: str, queries: int, keys: int, features: int, heads: int, *, kv_heads: int | None = None,
        rotary_base: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name)
        self.queries, self.keys, self.size, self.heads = queries, keys, features // heads, heads
        self.kv_heads, self.rotary_base = heads if kv_heads is None else kv_heads, rotary_base

    def initialise(self, numerics, index: int) -> None:
        """Note the arithmetic: there is nothing to make."""
        self._numerics = numerics.layer(self.name)

    @property
    def numerics(self):
        """The layer's arithmetic."""
        return self._numerics

    def products(self, key: str, batch: int) -> list[tuple]:
        """(layer, pass, M, N, K) of each matrix product of the forward pass, one of each sample and head of keys."""
        if key != "forward":
            raise ValueError(f"{self.name}: the backward products of an attention go by backward_products, got {key!r}")
        scores, result = (self._rows, self.keys, self.size), (self._rows, self.size, self.keys)
        return [(self.name, key, *sizes) for sizes in (scores, result) for _ in range(batch * self.kv_heads)]

    def backward_products(self, batch: int, *, data: bool) -> list[tuple]:
        """Those of P @ V, then those of Q @ K^T; all of them are gradients of its input."""
        queries, keys, size = self._rows, self.keys, self.size
        rows = [
            ("backward_data", queries, keys, size), ("backward_weight", keys, size, queries),
            ("backward_data", queries, size, keys), ("backward_weight", size, keys, queries),
        ]  # fmt: skip
        return [(self.name, *row) for row in rows for _ in range(batch * self.kv_heads)]

    @property
    def _rows(self) -> int:
        """Queries of all heads that share one of keys and values."""
        return self.queries * (self.heads // self.kv_heads)

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, *, batch: int, mask=None) -> Tensor:
        layer, heads, kv_heads = self.numerics, self.heads, self.kv_heads
        if self.rotary_base is not None:
            query = rotary(query, layer, batch=batch, heads=heads, base=self.rotary_base)
            key = rotary(key, layer, batch=batch, heads=kv_heads, base=self.rotary_base)
        return attention(query, key, value, layer, batch=batch, heads=heads, kv_heads=kv_heads, mask=mask)


class Gate(Linear):
    """A linear layer whose results pass silu(x) = x * sigmoid(x).

    >>> Gate("gate", 4, 8).functions
    ('silu',)
    """

    functions = ("silu",)

    def __call__(self, x: Tensor) -> Tensor:
        return activation("silu", super().__call__(x), self.numerics)


class Block:
    """A transformer's block, normalised first::

        q, k, v = parts of the columns of norm1(x) @ qkv
        x = x + dropout(attention(q, k, v) @ project)
        x = x + dropout(relu(norm2(x) @ ff1) @ ff2)

    Layers are called <name>.norm1, .qkv, .attention, .project, .norm2, .ff1 and .ff2. The sums are arithmetic of
    project and ff2, in the role ``elementwise``. q has as many columns as x, k and v those of their heads.

    With feedforward="swiglu" the layer <name>.gate comes before ff1, and the last line is::

        y = norm2(x)
        x = x + dropout((silu(y @ gate) * (y @ ff1)) @ ff2)

    with silu(x) = x * sigmoid(x) in the role ``elementwise`` of gate, correctly rounded once, and the product in that
    of ff1. All of these have biases, as all linear layers here do.

    Parameters
    ----------
    name : str
    steps, features, hidden, heads : int
        Steps of a sample; features of a step; those between ff1 and ff2; heads of the attention.
    dropout : float
    norm : str
        One of ``NORMS``.
    feedforward : str
        "relu" or "swiglu".
    kv_heads, rotary_base
        As of `Attention`.

    References
    ----------
    A. Vaswani et al., "Attention Is All You Need", 2017, section 3.1; normalised first as in R. Xiong et al., "On Layer
    Normalization in the Transformer Architecture", 2020; N. Shazeer, "GLU Variants Improve Transformer", 2020, equation
    6 (there without biases).

    Examples
    --------
    >>> [layer.name for layer in Block("block1", 8, 32, 64, 2).layers][:3]
    ['block1.norm1', 'block1.qkv', 'block1.attention']
    >>> [layer.name for layer in Block("block1", 8, 32, 64, 2, feedforward="swiglu").layers][5:]
    ['block1.gate', 'block1.ff1', 'block1.ff2']
    """

    def __init__(
        self, name: str, steps: int, features: int, hidden: int, heads: int, dropout: float = 0.0, *,
        norm: str = "layer", feedforward: str = "relu", kv_heads: int | None = None, rotary_base: float | None = None,
    ) -> None:  # fmt: skip
        self.dropout = dropout
        self.norm1, self.norm2 = (NORMS[norm](f"{name}.norm{number}", features) for number in (1, 2))
        self.attention = Attention(
            f"{name}.attention", steps, steps, features, heads, kv_heads=kv_heads, rotary_base=rotary_base
        )
        shared = self.attention.kv_heads * self.attention.size
        self.columns = (0, features, features + shared, features + 2 * shared)
        self.qkv = Linear(f"{name}.qkv", features, self.columns[-1], steps)
        self.project = Linear(f"{name}.project", features, features, steps)
        self.gate = Gate(f"{name}.gate", features, hidden, steps) if feedforward == "swiglu" else None
        self.ff1 = Linear(f"{name}.ff1", features, hidden, steps)
        self.ff2 = Linear(f"{name}.ff2", hidden, features, steps)
        gate = () if self.gate is None else (self.gate,)
        self.layers = [self.norm1, self.qkv, self.attention, self.project, self.norm2, *gate, self.ff1, self.ff2]

    @property
    def relu(self) -> list[Layer]:
        """The layers whose results pass a ReLU."""
        return [self.ff1] if self.gate is None else []

    def __call__(self, x: Tensor, *, batch: int, training: bool, mask=None) -> Tensor:
        joint, every, columns = self.qkv(self.norm1(x)), slice(None), self.columns
        query, key, value = (part(joint, every, slice(*columns[k : k + 2])) for k in range(3))
        x = self._add(x, self.project, self.attention(query, key, value, batch=batch, mask=mask), training)
        normal, layer = self.norm2(x), self.ff1.numerics
        if self.gate is None:
            hidden = activation("relu", self.ff1(normal), layer)
        else:
            hidden = multiply(self.gate(normal), self.ff1(normal), layer)
        return self._add(x, self.ff2, hidden, training)

    def _add(self, x: Tensor, last: Linear, y: Tensor, training: bool) -> Tensor:
        return add(x, dropout(last(y), self.dropout, last.numerics, training=training), last.numerics)

"""Layers of networks of sequences; their inputs are matrices with a row for each step of each sample."""

from __future__ import annotations

import numpy as np

from softnum.train.engine.initial import uniform
from softnum.train.engine.tensor import Parameter, Tensor, linear
from softnum.train.layers.attention import attention
from softnum.train.layers.feedforward import Layer, Linear
from softnum.train.layers.normalisation import layer_norm, rms_norm
from softnum.train.layers.positions import rotary
from softnum.train.layers.sequences import embedding, permute

__all__ = ["NORMS", "Attention", "Embedding", "LayerNorm", "RMSNorm", "TiedLinear"]


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
    """x @ E^T + bias, where E are the weights of an embedding; the bias may be left out.

    E is rounded from its master copy, which is the embedding's, to the layer's own role ``weights``. The gradient of
    this use, rounded to the layer's ``weight_gradients``, is added to that of the rows that were looked up in the
    embedding's role ``weight_gradients``.

    Parameters
    ----------
    name : str
    embedding : Embedding
    rows : int
        Of x, for each sample.
    bias : bool
        Whether it has one.

    References
    ----------
    O. Press and L. Wolf, "Using the Output Embedding to Improve Language Models", 2017.

    Examples
    --------
    >>> TiedLinear("fc", Embedding("embedding", 256, 32), 8).products("forward", batch=4)
    [('fc', 'forward', 32, 256, 32)]
    """

    def __init__(self, name: str, embedding: Embedding, rows: int, *, bias: bool = True) -> None:
        super().__init__(name, embedding.features, embedding.words, rows, bias=bias)
        self.embedding = embedding

    def initialise(self, numerics, index: int) -> None:
        """Make the bias of 0, if it has one.

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
        self._numerics, self.parameters = layer, self._biases(layer)

    @property
    def numerics(self):
        """The layer's arithmetic."""
        return self._numerics

    def __call__(self, x: Tensor) -> Tensor:
        (shared,), layer = self.embedding.parameters, self.numerics
        (bias,) = self.parameters or (None,)
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

"""Attention, and what stands around it in language models. The table of their work is in `layers`."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from softnum.tta.architectures.layers import Layer, Product, Shape, Work

__all__ = ["Attention", "HeadNorm", "LatentKeys", "RmsNorm", "Rotary", "Slice"]


@dataclass(frozen=True)
class Attention(Layer):
    """Scaled dot products of several heads, without parameters: the products of each sample and head.

    Every step attends to every other: what a mask would leave out is computed, unless the attention is `causal`.

    Parameters
    ----------
    name : str
    heads : int
        Of the queries.
    inputs : tuple of str
        One layer, whose features are queries, keys and values side by side; or one of queries and one of keys and
        values.
    kv_heads : int, optional
        Of keys and values, each of which several heads of queries share; default: as many as heads.
    value : int, optional
        Features of a head's value; default: as many as those of its key.
    causal : bool
        Whether a step attends to itself and those before it only, and nothing else is computed: of n queries and n keys
        n (n + 1) / 2 pairs. Fewer queries than keys are a share of them, spread evenly.
    fused : bool
        Whether the scores never reach memory: of the softmax only a maximum and a sum a query are kept, and the
        backward pass computes the scores again (T. Dao et al., "FlashAttention", 2022).

    Examples
    --------
    >>> layer = Attention("attention", 2)
    >>> layer.result(((8, 96),)), layer.products(((8, 96),), batch=1)[0][:4]
    ((8, 32), ('forward', 8, 8, 16))
    >>> grouped = Attention("attention", 4, kv_heads=1, causal=True, fused=True)
    >>> grouped.products(((8, 96),), 1)[0].macs, 4 * 8 * 8 * 16
    (2304, 4096)
    """

    heads: int
    kv_heads: int | None = None
    value: int | None = None
    causal: bool = False
    fused: bool = False

    saves = "input"

    def _sizes(self, shapes) -> tuple[int, int, int, int, int]:
        """Queries, keys, features of a head's key and value, heads of keys."""
        heads, kv = self.heads, self.kv_heads or self.heads
        if len(shapes) == 1:
            (queries, features), keys = self.of_rank(shapes, (2,), "steps of features"), shapes[0][0]
            rest = features - kv * (self.value or 0)
            size, left = divmod(rest, heads + kv if self.value else heads + 2 * kv)
            value = self.value or size
        else:
            (queries, whole), (keys, both) = shapes
            size, left = divmod(whole, heads)
            value = self.value or size
            left = left or both != kv * (size + value)
        if left or heads % kv or size < 1:
            self.fail(f"{heads} heads do not divide queries, keys and values of the shapes {shapes}")
        return queries, keys, size, value, kv

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """Queries and features."""
        queries, _, _, value, _ = self._sizes(shapes)
        return queries, value * self.heads

    def products(self, shapes: tuple[Shape, ...], batch: int) -> list[Product]:
        """Scores and results; backwards those of the results first."""
        queries, keys, size, value, kv = self._sizes(shapes)
        count, shared = batch * self.heads, batch * kv
        q, k, v = count * queries * size, shared * keys * size, shared * keys * value
        scores, results = 0 if self.fused else count * queries * keys, count * queries * value
        again = ("backward_data", queries, keys, size, q, k, scores)
        rows = (
            ("forward", queries, keys, size, q, k, scores), ("forward", queries, value, keys, scores, v, results),
            *([again] if self.fused else ()),
            ("backward_data", queries, keys, value, results, v, scores),
            ("backward_weight", keys, value, queries, scores, results, v),
            ("backward_data", queries, size, keys, scores, k, q),
            ("backward_weight", size, keys, queries, q, scores, k),
        )  # fmt: skip
        pairs = queries * (keys + 1) // 2
        return [
            Product(*row, count, inner=True, macs=count * pairs * (value if value in row[1:4] else size) * self.causal)
            for row in rows
        ]

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """The softmax of the scores."""
        queries, keys, *_ = self._sizes(shapes)
        pairs = queries * (keys + 1) // 2 if self.causal else queries * keys
        n = batch * self.heads * pairs
        moved = 0 if self.fused else batch * self.heads * queries * keys
        x, errors = ("activations", moved), ("errors", moved)
        return [
            Work("forward", "softmax", 6 * n, (x,), (x,)),
            Work("backward_data", "softmax", (10 if self.fused else 5) * n, (x, errors), (errors,)),
        ]

    def extra(self, shapes: tuple[Shape, ...]) -> dict[str, int]:
        """The softmax; of a fused one a maximum and a sum of each query."""
        queries, keys, *_ = self._sizes(shapes)
        return (
            {"statistics": 2 * self.heads * queries} if self.fused else {"probabilities": self.heads * queries * keys}
        )


@dataclass(frozen=True)
class RmsNorm(Layer):
    """Division of each step by the root of its mean square, with a gain.

    Examples
    --------
    >>> RmsNorm("norm").parameters(((128, 768),))
    {'weight': 768}
    """

    saves = "input"

    def parameters(self, shapes: tuple[Shape, ...]) -> dict[str, int]:
        """The gain."""
        return {"weight": shapes[0][-1]}

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """Of both passes."""
        n, gains = batch * prod(shapes[0]), shapes[0][-1]
        x, errors = ("activations", n), ("errors", n)
        return [
            Work("forward", "rms_norm", 4 * n, (x, ("master", gains)), (x,)),
            Work(
                "backward_data",
                "rms_norm",
                8 * n,
                (x, errors, ("master", gains)),
                (errors, ("weight_gradients", gains)),
            ),
        ]


@dataclass(frozen=True)
class HeadNorm(RmsNorm):
    """`RmsNorm` of each head of queries and keys, with a gain for queries and one for keys; the rest stays.

    Parameters
    ----------
    name : str
    features : int
        Of a head.
    heads : int
        Of queries and keys together, which come first.

    Examples
    --------
    >>> HeadNorm("norm", 128, 36).parameters(((4096, 5120),))
    {'queries.weight': 128, 'keys.weight': 128}
    """

    features: int
    heads: int

    def parameters(self, shapes: tuple[Shape, ...]) -> dict[str, int]:
        """Both gains."""
        return {"queries.weight": self.features, "keys.weight": self.features}

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """Of both passes."""
        return super().work(((shapes[0][0], self.heads * self.features),), batch)


@dataclass(frozen=True)
class Rotary(Layer):
    """Pairs of features turned by an angle that grows with the step (J. Su et al., "RoFormer", 2021).

    Parameters
    ----------
    name : str
    features : int
        How many of a step's features are turned.

    Examples
    --------
    >>> Rotary("rope", 40).work(((8, 48),), batch=1)[0].flops
    960
    """

    features: int

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """Its input's shape."""
        shape = self.of_rank(shapes, (2,), "steps of features")
        if self.features > shape[1]:
            self.fail(f"turns {self.features} of {shape[1]} features")
        return shape

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """Two products and a sum an element, in both passes."""
        n = batch * shapes[0][0] * self.features
        x, errors = ("activations", n), ("errors", n)
        return [
            Work("forward", "rotary", 3 * n, (x,), (x,)),
            Work("backward_data", "rotary", 3 * n, (errors,), (errors,)),
        ]


@dataclass(frozen=True)
class Slice(Layer):
    """Some of a step's features, in the memory in which they are.

    Parameters
    ----------
    name : str
    features : int

    Examples
    --------
    >>> Slice("keys", 512).result(((4096, 576),))
    (4096, 512)
    """

    features: int

    alias = True
    passes_gradient = True

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """Steps and so many features."""
        steps, features = self.of_rank(shapes, (2,), "steps of features")
        if self.features > features:
            self.fail(f"takes {self.features} of {features} features")
        return steps, self.features


@dataclass(frozen=True)
class LatentKeys(Layer):
    """Keys and values of a latent attention: what every head has of its own, and the rotated part that all share.

    Its inputs are the heads' own features (of each head `plain` of the key, then those of the value) and what the
    shared part (`rotary` features) is in.

    Parameters
    ----------
    name : str
    heads, plain, rotary, value : int

    Examples
    --------
    >>> LatentKeys("keys", 128, 128, 64, 128, inputs=("a", "b")).result(((4096, 32768), (4096, 576)))
    (4096, 40960)
    """

    heads: int
    plain: int
    rotary: int
    value: int

    passes_gradient = True

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """Steps, and the features of all heads' keys and values."""
        (steps, own), _ = shapes
        if own != self.heads * (self.plain + self.value):
            self.fail(f"{self.heads} heads of {self.plain} + {self.value} features, got {own}")
        return steps, self.heads * (self.plain + self.rotary + self.value)

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """The rotation of the shared part, and a copy."""
        steps, features = self.result(shapes)
        n, turned = batch * steps * features, 3 * batch * steps * self.rotary
        return [
            Work("forward", "rotary", turned, (("activations", n),), (("activations", n),)),
            Work("backward_data", "rotary", turned + n, (("errors", n),), (("errors", n),)),
        ]

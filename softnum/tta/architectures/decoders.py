"""Decoders of language models: their published sizes, and the layers of a whole one or of a device's part of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

from softnum.tta.architectures.attention_layers import Attention, HeadNorm, LatentKeys, RmsNorm, Rotary, Slice
from softnum.tta.architectures.communication_layers import AllToAll, Gather, Scatter, SumBackward, SumForward
from softnum.tta.architectures.expert_layers import Combine, Dispatch, ExpertDense, Gate, Router
from softnum.tta.architectures.layers import Activation, Add, Concatenate, Dense, Layer, Loss
from softnum.tta.architectures.lowering import Architecture
from softnum.tta.architectures.sequence_layers import Embedding, LayerNorm, Position
from softnum.tta.quantities import check_keys, positive_int

__all__ = ["Decoder", "Latent", "Share"]


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention (DeepSeek-AI, "DeepSeek-V2", arXiv 2405.04434, 2024).

    Parameters
    ----------
    queries, keys : int
        Ranks of the queries' and of the keys' and values' compression.
    plain, rotary, value : int
        Features of a head: of its key without and with position, and of its value.

    Examples
    --------
    >>> Latent(1536, 512, 128, 64, 128).size
    192
    """

    queries: int
    keys: int
    plain: int
    rotary: int
    value: int

    @property
    def size(self) -> int:
        """Features of a head's key."""
        return self.plain + self.rotary


@dataclass(frozen=True)
class Share:
    """A device's part of a layer.

    Parameters
    ----------
    tensor, context, expert : int
        Ways in which weights, steps and experts are shared.
    sequence : bool
        Whether what tensor parallelism does not split is split by steps.
    fused : bool
        Whether attention keeps its scores out of memory.

    Examples
    --------
    >>> Share(tensor=8).tensor
    8
    """

    tensor: int = 1
    context: int = 1
    expert: int = 1
    sequence: bool = False
    fused: bool = True


@dataclass(frozen=True)
class Decoder:
    """The sizes of a decoder; `softnum/tta/models.toml` has those that are published, with sources.

    Parameters
    ----------
    name : str
    layers, hidden, heads, vocabulary, context : int
        `context`: the longest sequence, and the one that is computed where none is named.
    kv_heads, head, inner : int, optional
        Heads of keys and values (default: heads), features of a head (hidden / heads), of the feed-forward layers (4
        hidden).
    norm : str
        "rms" or "layer".
    activation : str
        "swiglu" or "gelu".
    positions : str
        "rotary" or "learned".
    bias, tied, qk_norm, router_bias : bool
        Biases; one table for embedding and last layer; normalised queries and keys; biases of the experts' choice.
    experts, chosen, shared, expert_inner, dense : int
        Experts of a layer, those that a step goes to, those that all steps go to, features of one, layers without any.
    latent : Latent, optional
    extra : int
        Modules that predict a word more each (F. Gloeckle et al., 2024), with the embedding and last layer of the rest.

    Raises
    ------
    ValueError
        If sizes do not fit each other.

    Examples
    --------
    >>> decoder = Decoder("mine", layers=2, hidden=64, heads=4, vocabulary=256, context=128)
    >>> decoder.architecture().parameters
    164160
    """

    name: str
    layers: int
    hidden: int
    heads: int
    vocabulary: int
    context: int
    kv_heads: int = 0
    head: int = 0
    inner: int = 0
    norm: str = "rms"
    activation: str = "swiglu"
    positions: str = "rotary"
    bias: bool = False
    tied: bool = False
    qk_norm: bool = False
    router_bias: bool = False
    experts: int = 0
    chosen: int = 0
    shared: int = 0
    expert_inner: int = 0
    dense: int = 0
    latent: Latent | None = None
    extra: int = 0
    source: str = field(default="", repr=False)
    published: Mapping[str, float] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        where = f"model {self.name!r}"
        for name in ("layers", "hidden", "heads", "vocabulary", "context"):
            positive_int(getattr(self, name), f"{where}: {name}")
        for name, default in (
            ("kv_heads", self.heads),
            ("head", self.hidden // self.heads),
            ("inner", 4 * self.hidden),
        ):
            object.__setattr__(self, name, getattr(self, name) or default)
        object.__setattr__(self, "expert_inner", self.expert_inner or self.inner)
        for name, known in (
            ("norm", ("rms", "layer")),
            ("activation", ("swiglu", "gelu")),
            ("positions", ("rotary", "learned")),
        ):
            if getattr(self, name) not in known:
                raise ValueError(f"{where}: {name} must be {' or '.join(known)}, got {getattr(self, name)!r}")
        if self.heads % self.kv_heads:
            raise ValueError(f"{where}: {self.kv_heads} heads of keys do not divide {self.heads} heads")
        if bool(self.experts) != bool(self.chosen) or self.chosen > self.experts:
            raise ValueError(f"{where}: a step cannot go to {self.chosen} of {self.experts} experts")
        if self.dense > self.layers:
            raise ValueError(f"{where}: {self.dense} of {self.layers} layers cannot be without experts")

    @classmethod
    def from_table(cls, name: str, table: Mapping[str, Any], where: str = "model") -> Decoder:
        """Read one table of a model file.

        Raises
        ------
        TypeError, ValueError
            If a key is missing, unknown, or its value is not of its form.

        Examples
        --------
        >>> sizes = {"layers": 2, "hidden": 64, "heads": 4, "vocabulary": 256, "context": 128}
        >>> Decoder.from_table("mine", sizes).inner
        256
        """
        where = f"{where} {name!r}"
        required = ["layers", "hidden", "heads", "vocabulary", "context"]
        known = [entry.name for entry in fields(cls) if entry.name not in ("name", *required)]
        check_keys(table, required, [*known, "note"], where)
        sizes = {key: value for key, value in table.items() if key not in ("note", "latent")}
        if "latent" in table:
            parts = [entry.name for entry in fields(Latent)]
            check_keys(table["latent"], parts, [], f"{where} latent")
            sizes["latent"] = Latent(*(positive_int(table["latent"][part], f"{where} {part}") for part in parts))
        return cls(name, **sizes)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of each layer: "dense" or "experts"."""
        return tuple("experts" if self.experts and n >= self.dense else "dense" for n in range(self.layers))

    @property
    def active(self) -> int:
        """Parameters that a word meets: all but those of the experts that it does not go to."""
        idle = (self.experts - self.chosen) * 3 * self.hidden * self.expert_inner
        return self.architecture().parameters - idle * self.kinds.count("experts")

    def architecture(self, sequence: int | None = None, *, fused: bool = True) -> Architecture:
        """The whole network for sequences of so many words.

        Parameters
        ----------
        sequence : int, optional
            Default: the context.
        fused : bool
            Whether attention keeps its scores out of memory.

        Returns
        -------
        Architecture

        Raises
        ------
        ValueError
            If positions are learned and the sequence is longer than the context.
        """
        sequence = self.context if sequence is None else positive_int(sequence, "sequence")
        return self._whole(sequence, Share(fused=fused))

    @lru_cache(maxsize=64)  # noqa: B019  # as many as have a name
    def _whole(self, sequence: int, share: Share) -> Architecture:
        layers = self.first(share)
        for number, kind in enumerate(self.kinds, start=1):
            layers += self.block(kind, share, f"layer{number}.", layers[-1].name)
        layers += self.last(share, layers[-1].name)
        for number in range(1, self.extra + 1):
            before = next(layer.name for layer in reversed(layers) if layer.name.endswith("add2"))
            layers += self.more(share, f"extra{number}.", "", before)
        title = f"{self.name}, sequences of {sequence:,} words"
        return Architecture(self.name, (sequence,), tuple(layers), title, self.source, self.published)

    def _norm(self, name: str, **inputs) -> Layer:
        return (RmsNorm if self.norm == "rms" else LayerNorm)(name, **inputs)

    def first(self, share: Share) -> list[Layer]:
        """Embedding, and positions that are learned."""
        layers = self._embedded(share, "embedding", Embedding)
        if self.positions == "learned":
            layers.append(Position("position", self.context))
        return layers

    def last(self, share: Share, x: str = "", *, own: bool = False) -> list[Layer]:
        """Normalisation, the layer of words, the loss; the layer of words has a table of its `own`, even if it is the
        embedding's, on a device that does not hold the embedding."""
        return [self._norm("norm", inputs=(x,) if x else ()), *self._words(share, "", self.tied and not own)]

    def _words(self, share: Share, name: str, tied: bool) -> list[Layer]:
        layers = self._opened(share, f"{name}words")
        words = -(-self.vocabulary // share.tensor)
        return [*layers, Dense(f"{name}words", words, bias=False, tied=tied), Loss(f"{name}loss")]

    def _embedded(self, share: Share, name: str, kind: type[Embedding], **inputs) -> list[Layer]:
        layers: list[Layer] = [kind(name, -(-self.vocabulary // share.tensor), self.hidden, **inputs)]
        if share.tensor > 1:
            layers.append((Scatter if share.sequence else SumForward)(f"{name}.sum", "tensor", share.tensor))
        return layers

    def block(self, kind: str, share: Share, name: str = "", x: str = "") -> list[Layer]:
        """A layer of the decoder: attention, then a feed-forward layer or experts.

        Parameters
        ----------
        kind : str
            "dense" or "experts".
        share : Share
        name : str
            What its layers' names begin with.
        x : str
            The layer whose result it takes; default: the network's input, which it has to be the first of.
        """
        layers: list[Layer] = [Slice(f"{name}input", self.hidden, inputs=(x,) if x else ())]
        x = layers[0].name
        layers.append(self._norm(f"{name}norm1"))
        layers += self._latent(share, name) if self.latent else self._attention(share, name)
        layers += self._closed(share, f"{name}project", self.hidden)
        layers.append(Add(f"{name}add1", inputs=(x, layers[-1].name)))
        x = layers[-1].name
        layers.append(self._norm(f"{name}norm2"))
        if kind == "experts":
            layers += self._experts(share, name, layers[-1].name)
        else:
            layers += self._opened(share, f"{name}up") + self._feed_forward(share, name, self.inner, "")
            layers += self._closed(share, f"{name}down", self.hidden)
        return [*layers, Add(f"{name}add2", inputs=(x, layers[-1].name))]

    def _opened(self, share: Share, name: str, **inputs) -> list[Layer]:
        """What stands before layers whose outputs are shared among devices."""
        if share.tensor == 1:
            return []
        return [(Gather if share.sequence else SumBackward)(f"{name}.copy", "tensor", share.tensor, **inputs)]

    def _closed(self, share: Share, name: str, outputs: int) -> list[Layer]:
        """A layer whose inputs are shared among devices, and the sum of its results."""
        layers: list[Layer] = [Dense(name, outputs, bias=self.bias)]
        if share.tensor > 1:
            layers.append((Scatter if share.sequence else SumForward)(f"{name}.sum", "tensor", share.tensor))
        return layers

    def _attention(self, share: Share, name: str) -> list[Layer]:
        heads, kv = self.heads // share.tensor, max(1, self.kv_heads // share.tensor)
        layers = self._opened(share, f"{name}qkv")
        layers.append(Dense(f"{name}qkv", (heads + 2 * kv) * self.head, bias=self.bias))
        if self.qk_norm:
            layers.append(HeadNorm(f"{name}qk_norm", self.head, heads + kv))
        if self.positions == "rotary":
            layers.append(Rotary(f"{name}rotary", (heads + kv) * self.head))
        whole = layers[-1].name
        inputs: tuple[str, ...] = ()
        if share.context > 1:
            layers.append(Slice(f"{name}queries", heads * self.head))
            layers.append(Slice(f"{name}keys", 2 * kv * self.head, inputs=(whole,)))
            layers.append(Gather(f"{name}keys.gather", "context", share.context))
            inputs = (f"{name}queries", f"{name}keys.gather")
        attention = Attention(f"{name}attention", heads, kv_heads=kv, causal=True, fused=share.fused, inputs=inputs)
        return [*layers, attention]

    def _latent(self, share: Share, name: str) -> list[Layer]:
        sizes, heads, copied = self.latent, self.heads // share.tensor, self._opened(share, f"{name}latent")
        x = copied[0].name if copied else f"{name}norm1"
        keys = f"{name}keys"
        layers = [
            *copied,
            Dense(f"{name}queries.down", sizes.queries, bias=self.bias), RmsNorm(f"{name}queries.norm"),
            Dense(f"{name}queries.up", heads * sizes.size, bias=False),
            Rotary(f"{name}rotary", heads * sizes.rotary),
            Dense(f"{keys}.down", sizes.keys + sizes.rotary, bias=self.bias, inputs=(x,)),
            Slice(f"{keys}.latent", sizes.keys), RmsNorm(f"{keys}.norm"),
            Dense(f"{keys}.up", heads * (sizes.plain + sizes.value), bias=False),
            LatentKeys(keys, heads, sizes.plain, sizes.rotary, sizes.value, inputs=(f"{keys}.up", f"{keys}.down")),
        ]  # fmt: skip
        if share.context > 1:
            layers.append(Gather(f"{keys}.gather", "context", share.context))
        attention = Attention(
            f"{name}attention", heads, value=sizes.value, causal=True, fused=share.fused,
            inputs=(f"{name}rotary", layers[-1].name),
        )  # fmt: skip
        return [*layers, attention]

    def _feed_forward(self, share: Share, name: str, inner: int, part: str, **inputs) -> list[Layer]:
        """Up to what the layer `down` takes."""
        gated, inner = self.activation == "swiglu", inner // share.tensor
        up = Dense(f"{name}{part}up", 2 * inner if gated else inner, bias=self.bias, **inputs)
        return [up, Gate(f"{name}{part}gate") if gated else Activation(f"{name}{part}gelu", "gelu")]

    def _experts(self, share: Share, name: str, x: str) -> list[Layer]:
        """Those of all steps beside those that a router chooses; these are shared whole, not split."""
        if self.activation != "swiglu" or self.bias:
            raise ValueError(f"model {self.name!r}: experts are gated (swiglu) and without biases")
        router, here = f"{name}router", self.experts // share.expert
        layers: list[Layer] = [Router(router, self.experts, self.chosen, self.router_bias, inputs=(x,))]
        layers.append(Dispatch(f"{name}dispatch", self.chosen, inputs=(x,)))
        sent = share.expert > 1
        layers += [AllToAll(f"{name}dispatch.send", "expert", share.expert, self.chosen)] if sent else []
        layers += [ExpertDense(f"{name}experts.up", here, 2 * self.expert_inner)]
        layers += [Gate(f"{name}experts.gate"), ExpertDense(f"{name}experts.down", here, self.hidden)]
        layers += [AllToAll(f"{name}combine.send", "expert", share.expert, self.chosen)] if sent else []
        layers.append(Combine(f"{name}combine", self.chosen, inputs=(layers[-1].name, router)))
        if self.shared:
            copied = self._opened(share, f"{name}shared.up", inputs=(x,))
            inputs = {} if copied else {"inputs": (x,)}
            layers += copied + self._feed_forward(share, name, self.shared * self.expert_inner, "shared.", **inputs)
            layers += self._closed(share, f"{name}shared.down", self.hidden)
            layers.append(Add(f"{name}experts.add", inputs=(f"{name}combine", layers[-1].name)))
        return layers

    def more(self, share: Share, name: str, words: str, before: str) -> list[Layer]:
        """A module that predicts a word more: the next word's embedding beside what the layers made of the last.

        Parameters
        ----------
        share : Share
        name : str
            What its layers' names begin with.
        words, before : str
            The layers whose results it takes: the words, and what the layers made of them.
        """
        found = self._embedded(share, f"{name}embedding", _Again, inputs=(words,))
        found += [
            self._norm(f"{name}norm.word"), self._norm(f"{name}norm.state", inputs=(before,)),
            Concatenate(f"{name}joined", inputs=(f"{name}norm.word", f"{name}norm.state")),
            Dense(f"{name}join", self.hidden, bias=False),
        ]  # fmt: skip
        found += self.block("experts" if self.experts else "dense", share, f"{name}layer.", f"{name}join")
        return [*found, self._norm(f"{name}norm"), *self._words(share, name, True)]


class _Again(Embedding):
    """The network's own embedding of its input, which counts the table.

    >>> _Again("again", 1000, 64).parameters(((50,),))
    {}
    """

    def parameters(self, shapes):
        """None of its own."""
        return {}

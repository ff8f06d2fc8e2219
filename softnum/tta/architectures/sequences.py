"""Networks of sequences, for the catalogue."""

from __future__ import annotations

from softnum.tta.architectures.attention_layers import Attention
from softnum.tta.architectures.image_layers import BatchNorm, Conv2d
from softnum.tta.architectures.layers import Activation, Add, Concatenate, Dense, Flatten, Layer, Loss
from softnum.tta.architectures.layers import Input as Data
from softnum.tta.architectures.lowering import Architecture
from softnum.tta.architectures.sequence_layers import Embedding, LayerNorm, Position, Recurrent

__all__ = ["bert_base", "deepspeech2", "gnmt", "transformer"]


def gnmt() -> Architecture:
    """Google's translation system: an encoder of eight LSTM layers, the first in both directions, and a decoder of
    eight. A dot product stands for its additive attention; its queries are the first decoder layer's results, so that
    the layers after it take these and the context side by side."""
    hidden, words, steps = 1024, 32_000, 50
    layers: list[Layer] = [Embedding("encoder.embedding", words, hidden)]
    layers += [Recurrent("encoder1", hidden, bidirectional=True), Recurrent("encoder2", hidden)]
    x = "encoder2"
    for number in range(3, 9):
        layers.append(Recurrent(f"encoder{number}", hidden, inputs=(x,)))
        x = f"encoder{number}"
        if number < 8:
            layers.append(Add(f"encoder{number}.add", inputs=(x, layers[-2].name)))
            x = f"encoder{number}.add"
    layers += [Dense("attention.keys", 2 * hidden, bias=False), Data("target", (steps,))]
    layers += [Embedding("decoder.embedding", words, hidden), Recurrent("decoder1", hidden)]
    layers += [Dense("attention.queries", hidden, bias=False)]
    layers.append(Attention("attention", 1, inputs=("attention.queries", "attention.keys")))
    x = "decoder1"
    for number in range(2, 9):
        layers.append(Concatenate(f"decoder{number}.joined", inputs=(x, "attention")))
        layers.append(Recurrent(f"decoder{number}", hidden))
        if number > 2:
            layers.append(Add(f"decoder{number}.add", inputs=(f"decoder{number}", x)))
        x = layers[-1].name
    layers += [Dense("words", words), Loss("loss")]
    return Architecture(
        "gnmt", (steps,), tuple(layers), "GNMT, translation of 50 words into 50",
        "Y. Wu et al., arXiv 1609.08144, 2016 (8 + 8 layers of 1024, 32k word pieces); 278 million parameters: "
        "N. Shazeer et al., arXiv 1701.06538, 2017",
        {"parameters": 278e6},
    )  # fmt: skip


def deepspeech2() -> Architecture:
    """Deep Speech 2 as NVIDIA's OpenSeq2Seq trains it: two convolutions and five bidirectional GRU layers of 800, on 15
    seconds of speech in steps of 10 ms with 160 frequencies each. Normalisation follows convolutions only; the loss is
    counted as a softmax."""
    steps, frequencies, hidden = 1500, 160, 800
    layers: list[Layer] = []
    for number, (kernel, stride, padding) in enumerate((((11, 41), 2, (5, 20)), ((11, 21), (1, 2), (5, 10))), start=1):
        name = f"conv{number}"
        layers += [Conv2d(name, 32, kernel, stride, padding, bias=False), BatchNorm(f"{name}.bn")]
        layers.append(Activation(f"{name}.relu"))
    layers.append(Flatten("steps", (steps // 2, 32 * frequencies // 4)))
    layers += [Recurrent(f"gru{number}", hidden, "gru", bidirectional=True) for number in range(1, 6)]
    layers += [Dense("fc", 2 * hidden), Activation("fc.relu"), Dense("letters", 29), Loss("loss")]
    return Architecture(
        "deepspeech2", (1, steps, frequencies), tuple(layers), "Deep Speech 2, 15 seconds of speech",
        "D. Amodei et al., arXiv 1512.02595, 2015; sizes of the example configuration of NVIDIA's OpenSeq2Seq for "
        "LibriSpeech",
    )  # fmt: skip


def transformer(size: str) -> Architecture:
    """The Transformer, base or big; embeddings and the last layer have one table. Without its dropout."""
    model, inner, heads, published = {"base": (512, 2048, 8, 65e6), "big": (1024, 4096, 16, 213e6)}[size]
    words, steps = 37_000, 50
    layers: list[Layer] = [Embedding("embedding", words, model), Position("encoder.position")]
    x = "encoder.position"
    for name in (f"encoder{number}" for number in range(1, 7)):
        more, x = _attention(f"{name}.self", x, model, heads)
        layers += more
        more, x = _feed_forward(name, x, model, inner, "relu")
        layers += more
    encoded = x
    layers += [Data("target", (steps,)), _Tied("target.embedding", words, model), Position("decoder.position")]
    x = "decoder.position"
    for name in (f"decoder{number}" for number in range(1, 7)):
        more, x = _attention(f"{name}.self", x, model, heads)
        layers += more
        more, x = _attention(f"{name}.cross", x, model, heads, encoded)
        layers += more
        more, x = _feed_forward(name, x, model, inner, "relu")
        layers += more
    layers += [Dense("words", words, bias=False, tied=True), Loss("loss")]
    return Architecture(
        f"transformer-{size}", (steps,), tuple(layers), f"Transformer ({size}), translation of 50 words into 50",
        "A. Vaswani et al., \"Attention Is All You Need\", 2017, table 3 (there 65 and 213 million parameters), 37k "
        "byte pairs",
        {"parameters": published},
    )  # fmt: skip


class _Tied(Embedding):
    """An embedding whose table is another's, which counts it.

    >>> _Tied("target.embedding", 1000, 64).parameters(((50,),))
    {}
    """

    def parameters(self, shapes):
        """None of its own."""
        return {}


def _attention(name: str, x: str, model: int, heads: int, memory: str = "") -> tuple[list[Layer], str]:
    """Attention of x to itself, or to a memory; its projections, sum and normalisation; the name of the result."""
    if memory:
        layers: list[Layer] = [Dense(f"{name}.q", model, inputs=(x,)), Dense(f"{name}.kv", 2 * model, inputs=(memory,))]
        layers.append(Attention(name, heads, inputs=(f"{name}.q", f"{name}.kv")))
    else:
        layers = [Dense(f"{name}.qkv", 3 * model, inputs=(x,)), Attention(name, heads)]
    layers += [Dense(f"{name}.project", model), Add(f"{name}.add", inputs=(f"{name}.project", x))]
    return [*layers, LayerNorm(f"{name}.norm")], f"{name}.norm"


def _feed_forward(name: str, x: str, model: int, inner: int, function: str) -> tuple[list[Layer], str]:
    layers = [
        Dense(f"{name}.ff1", inner, inputs=(x,)), Activation(f"{name}.{function}", function),
        Dense(f"{name}.ff2", model), Add(f"{name}.add", inputs=(f"{name}.ff2", x)), LayerNorm(f"{name}.norm"),
    ]  # fmt: skip
    return layers, f"{name}.norm"


def bert_base() -> Architecture:
    """BERT's encoder with its masked-word head left out: what the 110 million parameters are of. Without dropout."""
    model, steps = 768, 128
    layers: list[Layer] = [Embedding("words", 30_522, model), Data("segments", (steps,))]
    layers += [Embedding("segment", 2, model), Add("embedded", inputs=("words", "segment"))]
    layers += [Position("position", 512), LayerNorm("norm")]
    x = "norm"
    for name in (f"layer{number}" for number in range(1, 13)):
        more, x = _attention(f"{name}.attention", x, model, 12)
        layers += more
        more, x = _feed_forward(name, x, model, 4 * model, "gelu")
        layers += more
    # of the first word only; all steps pass here, which is 0.6 % more work
    layers += [Dense("pooler", model), Activation("pooler.tanh", "tanh")]
    return Architecture(
        "bert-base", (steps,), tuple(layers), "BERT base, 128 word pieces",
        "J. Devlin et al., arXiv 1810.04805, 2018 (110 million parameters); the exact count is of the published "
        "bert-base-uncased",
        {"parameters": 109_482_240},
    )  # fmt: skip

"""A diffusion transformer of text and image, after FLUX.1."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from softnum.tta.architectures.attention_layers import Attention, HeadNorm, Rotary
from softnum.tta.architectures.layers import Activation, Add, Concatenate, Dense, Input, Layer, Work
from softnum.tta.architectures.lowering import Architecture
from softnum.tta.quantities import positive_int

__all__ = ["flux"]


@dataclass(frozen=True)
class _Modulate(Layer):
    """Each step normalised over its features, scaled and shifted by numbers of the sample's condition.

    >>> _Modulate("modulate", inputs=("x", "condition")).result(((4096, 3072), (18432,)))
    (4096, 3072)
    """

    saves = "input"

    def work(self, shapes, batch):
        """Of both passes."""
        n, numbers = batch * prod(shapes[0]), 2 * batch * shapes[0][-1]
        x, errors, condition = ("activations", n), ("errors", n), ("activations", numbers)
        return [
            Work("forward", "layer_norm", 7 * n, (x, condition), (x,)),
            Work("backward_data", "layer_norm", 11 * n, (x, errors, condition), (errors, ("errors", numbers))),
        ]


@dataclass(frozen=True)
class _Gated(Layer):
    """x plus what a layer made of it, times numbers of the sample's condition.

    >>> _Gated("sum", inputs=("x", "y", "condition")).result(((8, 64), (8, 64), (384,)))
    (8, 64)
    """

    saves = "input"
    passes_gradient = True

    def work(self, shapes, batch):
        """Of both passes."""
        n = batch * prod(shapes[0])
        x, two, errors = ("activations", n), ("activations", 2 * n), ("errors", n)
        return [
            Work("forward", "add", 2 * n, (two,), (x,)),
            Work("backward_data", "add", 3 * n, (x, errors), (errors,)),
        ]


@dataclass(frozen=True)
class _Steps(Layer):
    """The steps of its inputs one after another; of one input some of its steps, in its memory.

    >>> _Steps("both", inputs=("text", "image")).result(((512, 9216), (4096, 9216)))
    (4608, 9216)
    """

    take: int = 0

    passes_gradient = True

    @property
    def alias(self) -> bool:
        """Of one input."""
        return bool(self.take)

    def result(self, shapes):
        """Steps and features."""
        return self.take or sum(shape[0] for shape in shapes), shapes[0][1]

    def work(self, shapes, batch):
        """A copy of several."""
        n = batch * sum(map(prod, shapes))
        return [] if self.take else [Work("forward", "concatenate", 0, (("activations", n),), (("activations", n),))]


def flux(sequence: int | None = None) -> Architecture:
    """FLUX.1's transformer; its encoders of text and image are not part of it.

    Parameters
    ----------
    sequence : int, optional
        Patches of the image, of 16 x 16 pixels; default: 4096, one of 1024 x 1024. The text has 512 steps.
    """
    image = 4096 if sequence is None else positive_int(sequence, "sequence")
    text, model, inner, heads = 512, 3072, 12288, 24
    layers: list[Layer] = [Dense("image", model)]
    layers += [Input("words", (text, 4096)), Dense("text", model)]
    parts = []
    for name, size in (("time", 256), ("guidance", 256), ("pooled", 768)):
        layers += [Input(name, (size,)), Dense(f"{name}.in", model), Activation(f"{name}.silu", "sigmoid")]
        layers.append(Dense(f"{name}.out", model))
        parts.append(f"{name}.out")
    layers += [Add("condition.sum", inputs=tuple(parts)), Activation("condition", "sigmoid")]
    of = {"image": "image", "text": "text"}
    for number in range(1, 20):
        name = f"double{number}."
        for part in of:
            layers.append(Dense(f"{name}{part}.modulation", 6 * model, inputs=("condition",)))
            layers.append(_Modulate(f"{name}{part}.norm1", inputs=(of[part], layers[-1].name)))
            layers += [Dense(f"{name}{part}.qkv", 3 * model), HeadNorm(f"{name}{part}.qk_norm", 128, 2 * heads)]
        layers.append(_Steps(f"{name}joined", inputs=(f"{name}text.qk_norm", f"{name}image.qk_norm")))
        layers += [Rotary(f"{name}rotary", 2 * model), Attention(f"{name}attention", heads, fused=True)]
        for part, steps in (("image", image), ("text", text)):
            layers.append(_Steps(f"{name}{part}.attention", steps, inputs=(f"{name}attention",)))
            layers.append(Dense(f"{name}{part}.project", model))
            condition = f"{name}{part}.modulation"
            layers.append(_Gated(f"{name}{part}.add1", inputs=(of[part], layers[-1].name, condition)))
            middle = layers[-1].name
            layers.append(_Modulate(f"{name}{part}.norm2", inputs=(middle, condition)))
            layers += [Dense(f"{name}{part}.up", inner), Activation(f"{name}{part}.gelu", "gelu")]
            layers.append(Dense(f"{name}{part}.down", model))
            layers.append(_Gated(f"{name}{part}.add2", inputs=(middle, layers[-1].name, condition)))
            of[part] = layers[-1].name
    layers.append(_Steps("single0.joined", inputs=(of["text"], of["image"])))
    for number in range(1, 39):
        x, name = layers[-1].name, f"single{number}."
        layers.append(Dense(f"{name}modulation", 3 * model, inputs=("condition",)))
        layers.append(_Modulate(f"{name}norm", inputs=(x, layers[-1].name)))
        layers += [Dense(f"{name}qkv", 3 * model), HeadNorm(f"{name}qk_norm", 128, 2 * heads)]
        layers += [Rotary(f"{name}rotary", 2 * model), Attention(f"{name}attention", heads, fused=True)]
        layers.append(Dense(f"{name}up", inner, inputs=(f"{name}norm",)))
        layers.append(Activation(f"{name}gelu", "gelu"))
        layers.append(Concatenate(f"{name}both", inputs=(f"{name}attention", f"{name}gelu")))
        layers.append(Dense(f"{name}project", model))
        layers.append(_Gated(f"{name}add", inputs=(x, layers[-1].name, f"{name}modulation")))
    layers.append(_Steps("result", image))
    layers.append(Dense("modulation", 2 * model, inputs=("condition",)))
    layers += [_Modulate("norm", inputs=("result", "modulation")), Dense("patches", 64)]
    return Architecture(
        "flux1-dev", (image, 64), tuple(layers), f"FLUX.1, an image of {image:,} patches and a text of {text}",
        "Black Forest Labs, FLUX.1-dev, transformer/config.json (19 layers of two streams, 38 of one), "
        "and the parameters of its weights",
        {"parameters": 11_901_408_320},
    )  # fmt: skip

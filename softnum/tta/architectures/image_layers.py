"""Layers of images: convolutions, their normalisation, pooling. The table of their work is in `layers`."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from softnum.tta.architectures.layers import Layer, Product, Shape, Work, bias_gradient, normalisation_work

__all__ = ["BatchNorm", "Conv2d", "GlobalPool", "Pool", "Upsample"]


@dataclass(frozen=True)
class Conv2d(Layer):
    """A two-dimensional convolution, as the product of its unfolded operand (im2col), one a group.

    Sizes are those of `softnum.train`: the product of a strided convolution's backward_data is over errors with zeros
    between them, stride x stride times as large as the forward product. What the pass needs, and what counts as its
    FLOPs, is as much as forwards: libraries leave the zeros out, a simulator of the product does not.

    Parameters
    ----------
    name : str
    filters : int
        Channels of its result.
    kernel, stride, padding : int or (int, int)
        Along height and width.
    groups : int
    bias : bool

    Examples
    --------
    >>> layer = Conv2d("conv1", 64, 7, stride=2, padding=3, bias=False)
    >>> layer.result(((3, 224, 224),)), layer.products(((3, 224, 224),), batch=1)[0][:4]
    ((64, 112, 112), ('forward', 12544, 64, 147))
    """

    filters: int
    kernel: int | tuple[int, int]
    stride: int | tuple[int, int] = 1
    padding: int | tuple[int, int] = 0
    groups: int = 1
    bias: bool = True

    saves = "input"

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """Channels, height and width."""
        image = self.of_rank(shapes, (3,), "an image (channels, height, width)")
        if image[0] % self.groups or self.filters % self.groups:
            self.fail(f"{self.groups} groups do not divide {image[0]} channels and {self.filters} filters")
        return self.filters, *_windows(self, image)

    def parameters(self, shapes: tuple[Shape, ...]) -> dict[str, int]:
        """Weight and bias."""
        weight = {"weight": self.filters * (shapes[0][0] // self.groups) * prod(_pair(self.kernel))}
        return weight | ({"bias": self.filters} if self.bias else {})

    def products(self, shapes: tuple[Shape, ...], batch: int) -> list[Product]:
        """One a pass and group."""
        image, result = shapes[0], self.result(shapes)
        groups, place = self.groups, prod(_pair(self.kernel))
        channels, filters = image[0] // groups, self.filters // groups
        rows, pixels = batch * prod(result[1:]), batch * prod(image[1:])
        needed = groups * rows * filters * channels * place
        x, weight, y = batch * prod(image), groups * filters * channels * place, batch * prod(result)
        return [
            Product("forward", rows, filters, channels * place, x, weight, y, groups),
            Product("backward_data", pixels, channels, filters * place, y, weight, x, groups, macs=needed),
            Product("backward_weight", channels * place, filters, rows, x, y, weight, groups),
        ]

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """The bias's gradient."""
        return bias_gradient(batch * prod(self.result(shapes)[1:]), self.filters) if self.bias else []


def _pair(value: int | tuple[int, int]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value


def _windows(layer, image: Shape) -> tuple[int, int]:
    """How many windows fit an image, down and across; a layer with ``ceil`` rounds up."""
    found = []
    sides = zip(image[1:], *map(_pair, (layer.kernel, layer.stride, layer.padding)), strict=True)
    for length, kernel, stride, padding in sides:
        if length + 2 * padding < kernel:
            layer.fail(f"a kernel of {kernel} does not fit {length} pixels with padding {padding}; take larger images")
        free = length + 2 * padding - kernel
        found.append((-(-free // stride) if getattr(layer, "ceil", False) else free // stride) + 1)
    return tuple(found)


@dataclass(frozen=True)
class BatchNorm(Layer):
    """Normalisation of each channel over the batch, with gain and bias.

    Examples
    --------
    >>> BatchNorm("bn1").parameters(((64, 112, 112),))
    {'weight': 64, 'bias': 64}
    """

    saves = "input"

    def parameters(self, shapes: tuple[Shape, ...]) -> dict[str, int]:
        """Gain and bias."""
        return {"weight": shapes[0][0], "bias": shapes[0][0]}

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """Of both passes."""
        return normalisation_work("batch_norm", batch * prod(shapes[0]), shapes[0][0])


@dataclass(frozen=True)
class Pool(Layer):
    """The maximum or average of windows.

    Parameters
    ----------
    name : str
    kernel, stride, padding : int or (int, int)
    kind : str
        "max" or "average".
    ceil : bool
        Whether a window that begins inside the image counts, though it does not end there.

    Examples
    --------
    >>> Pool("pool1", 3, 2, 1).result(((64, 112, 112),))
    (64, 56, 56)
    """

    kernel: int | tuple[int, int]
    stride: int | tuple[int, int]
    padding: int | tuple[int, int] = 0
    kind: str = "max"
    ceil: bool = False

    @property
    def saves(self) -> str:
        """A maximum's input."""
        return "input" if self.kind == "max" else ""

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """Channels, height and width."""
        image = self.of_rank(shapes, (3,), "an image (channels, height, width)")
        return image[0], *_windows(self, image)

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """Of both passes."""
        n, results = batch * prod(shapes[0]), batch * prod(self.result(shapes))
        x, y = ("activations", n), ("activations", results)
        largest = self.kind == "max"
        reads = (x, y, ("errors", results)) if largest else (("errors", results),)
        return [
            Work("forward", "pooling", results * prod(_pair(self.kernel)), (x,), (y,)),
            Work("backward_data", "pooling", results if largest else n, reads, (("errors", n),)),
        ]


@dataclass(frozen=True)
class GlobalPool(Layer):
    """The average of each channel.

    Examples
    --------
    >>> GlobalPool("pool").result(((2048, 7, 7),))
    (2048,)
    """

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """Channels."""
        return self.of_rank(shapes, (3,), "an image (channels, height, width)")[:1]

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """Of both passes."""
        n, results = batch * prod(shapes[0]), batch * shapes[0][0]
        return [
            Work("forward", "pooling", n, (("activations", n),), (("activations", results),)),
            Work("backward_data", "pooling", n, (("errors", results),), (("errors", n),)),
        ]


@dataclass(frozen=True)
class Upsample(Layer):
    """Each pixel `factor` times down and across; or as many as another image, whose shape is given, has.

    Examples
    --------
    >>> Upsample("up", (50, 76)).result(((256, 25, 38),))
    (256, 50, 76)
    """

    size: tuple[int, int]

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """Channels, height and width."""
        return self.of_rank(shapes, (3,), "an image (channels, height, width)")[0], *self.size

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """Of both passes."""
        n, results = batch * prod(shapes[0]), batch * prod(self.result(shapes))
        return [
            Work("forward", "upsample", 0, (("activations", n),), (("activations", results),)),
            Work("backward_data", "upsample", results, (("errors", results),), (("errors", n),)),
        ]

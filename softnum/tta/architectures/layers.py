"""Layers of networks that are timed and not trained: shapes, parameters, matrix products and elementwise work.

A shape is that of one sample: (features,), (steps, features), (channels, height, width), or (steps,) of words. A layer
takes the result of the layer before it, or of those that `inputs` names.

Work that is no matrix product is counted in operations per element, a function (exp, tanh, sqrt) as one:

===========================  ==========================================  =============================================
layer                        forwards                                    backwards
===========================  ==========================================  =============================================
ReLU, addition               1                                           1 (of an addition none)
sigmoid, tanh                1                                           3
GELU                         2 (x times a function)                      5
normalisation                7 (sum, centre, square and add, scale,      9 (centre and scale again, two sums of
                             gain, bias)                                 products and values, four for the gradient)
RMS normalisation            4 (square and add, scale, gain)             8 (scale again, sums of products for gain and
                                                                         values, three for the gradient)
SwiGLU, a result             3 (a function, two products)                8
rotary positions             3                                           3
pooling                      1 for each element of a window              max 1 a result; average 1 an input
softmax                      5 (maximum, difference, exp, sum, quotient) 4; with cross-entropy 1
bias                         0 (sums start from it)                      1 (its gradient, a sum)
attention, a score           6 (its softmax, and a scale)                5; fused 10 (the softmax again)
router, a score              6 (softmax, choice)                         4
experts' results, added      2                                           3 (of the weight too)
rnn, a step and unit         1                                           4
lstm                         9 (four functions, c, tanh(c), h)           23 (with 3 for each function, 12 of the gates)
gru                          7 (three functions, r * h, the mixture)     18
===========================  ==========================================  =============================================
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import ClassVar, NamedTuple, NoReturn

from softnum.tta.architectures.precision import StoredFormat

__all__ = [
    "Activation",
    "Add",
    "Concatenate",
    "Dense",
    "Flatten",
    "Input",
    "Layer",
    "Loss",
]

Shape = tuple[int, ...]

#: Roles of the operands and the result of each pass's products.
PRODUCT_ROLES = {
    "forward": ("activations", "weights", "activations"),
    "backward_data": ("errors", "weights", "errors"),
    "backward_weight": ("activations", "errors", "weight_gradients"),
}
#: Forward and backward operations per element of functions, and what their gradient is computed from.
FUNCTIONS = {
    "relu": (1, 1, "output"),
    "sigmoid": (1, 3, "output"),
    "tanh": (1, 3, "output"),
    "gelu": (2, 5, "input"),
}


class Product(NamedTuple):
    """`count` matrix products (M, K) @ (K, N) of a pass, and the elements that their tensors have in all.

    `inner` ones of backward_data are computed even where the layer's input needs no gradient: those of a state, or of
    what a layer computed itself. `macs`: the multiplications that the pass needs, where its products have more.
    """

    stage: str
    m: int
    n: int
    k: int
    left: int
    right: int
    result: int
    count: int = 1
    part: str = ""
    inner: bool = False
    macs: int = 0


class Work(NamedTuple):
    """Work that is no matrix product: FLOPs, and elements read and written, by role, or of a format of their own."""

    stage: str
    kind: str
    flops: int
    reads: tuple[tuple[str | StoredFormat, int], ...]
    writes: tuple[tuple[str | StoredFormat, int], ...]
    part: str = ""


@dataclass(frozen=True)
class Layer:
    """What layers have in common.

    Parameters
    ----------
    name : str
    inputs : tuple of str
        Layers whose results it takes; empty: that of the layer before it.

    Examples
    --------
    >>> Layer("identity").result(((8,),))
    (8,)
    """

    name: str
    inputs: tuple[str, ...] = field(default=(), kw_only=True)

    #: whether its result is its input's memory
    alias: ClassVar[bool] = False
    #: which of "input" and "output" its backward pass needs
    saves: ClassVar[str] = ""
    #: whether its gradient is its result's gradient, with no memory of its own
    passes_gradient: ClassVar[bool] = False

    @cached_property
    def spec(self) -> Layer:
        """The layer without its name: equal ones cost the same."""
        return replace(self, name="", inputs=())

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """Shape of its result for those of its inputs."""
        return shapes[0]

    def parameters(self, shapes: tuple[Shape, ...]) -> dict[str, int]:
        """Elements of each of its trained tensors."""
        return {}

    def updated(self, shapes: tuple[Shape, ...], batch: int) -> int:
        """How many of its trained numbers an iteration changes."""
        return sum(self.parameters(shapes).values())

    def products(self, shapes: tuple[Shape, ...], batch: int) -> list[Product]:
        """Matrix products of all passes, in the order in which they run."""
        return []

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """Work of all passes that is no matrix product."""
        return []

    def extra(self, shapes: tuple[Shape, ...]) -> dict[str, int]:
        """Elements of one sample that are kept for the backward pass beside input or output."""
        return {}

    def fail(self, text: str) -> NoReturn:
        """Raise ValueError, naming the layer."""
        raise ValueError(f"layer {self.name!r}: {text}")

    def of_rank(self, shapes: tuple[Shape, ...], ranks: tuple[int, ...], what: str) -> Shape:
        """The shape of its one input, or ValueError that says what it takes."""
        if len(shapes) != 1:
            self.fail(f"takes one input, got {len(shapes)}")
        if len(shapes[0]) not in ranks:
            self.fail(f"takes {what}, got the shape {shapes[0]}")
        return shapes[0]


@dataclass(frozen=True)
class Input(Layer):
    """Data that enter beside the network's input.

    Parameters
    ----------
    name : str
    shape : tuple of int
        Of one sample.

    Examples
    --------
    >>> Input("target", (50,)).result(())
    (50,)
    """

    shape: Shape

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """The shape that is given."""
        return self.shape


@dataclass(frozen=True)
class Dense(Layer):
    """x @ weight + bias, for each row of a sample.

    Parameters
    ----------
    name : str
    outputs : int
    bias : bool
    tied : bool
        Whether its weight is another layer's, such as an embedding's, which counts it.

    Examples
    --------
    >>> layer = Dense("fc1", 128)
    >>> layer.result(((64,),)), layer.parameters(((64,),))
    ((128,), {'weight': 8192, 'bias': 128})
    """

    outputs: int
    bias: bool = True
    tied: bool = False

    saves = "input"

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """The input's shape with `outputs` features."""
        return (*self.of_rank(shapes, (1, 2), "features, or steps of features")[:-1], self.outputs)

    def parameters(self, shapes: tuple[Shape, ...]) -> dict[str, int]:
        """Weight and bias."""
        weight = {} if self.tied else {"weight": shapes[0][-1] * self.outputs}
        return weight | ({"bias": self.outputs} if self.bias else {})

    def products(self, shapes: tuple[Shape, ...], batch: int) -> list[Product]:
        """One a pass."""
        return dense_products(prod(shapes[0][:-1]) * batch, shapes[0][-1], self.outputs)

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """The bias's gradient."""
        return bias_gradient(prod(shapes[0][:-1]) * batch, self.outputs) if self.bias else []


def dense_products(rows: int, inputs: int, outputs: int, part: str = "") -> list[Product]:
    """Those of x @ weight for so many rows: one a pass."""
    x, weight, y = rows * inputs, inputs * outputs, rows * outputs
    return [
        Product("forward", rows, outputs, inputs, x, weight, y, part=part),
        Product("backward_data", rows, inputs, outputs, y, weight, x, part=part),
        Product("backward_weight", inputs, outputs, rows, x, y, weight, part=part),
    ]


def bias_gradient(rows: int, outputs: int, part: str = "") -> list[Work]:
    """The sum over rows that a bias's gradient is."""
    moved = (("errors", rows * outputs),), (("weight_gradients", outputs),)
    return [Work("backward_weight", "bias", rows * outputs, *moved, part)]


def normalisation_work(kind: str, n: int, gains: int) -> list[Work]:
    """Of a normalisation of n elements with so many gains and biases."""
    x, errors, both = ("activations", n), ("errors", n), 2 * gains
    return [
        Work("forward", kind, 7 * n, (x, ("master", both)), (x,)),
        Work("backward_data", kind, 9 * n, (x, errors, ("master", gains)), (errors, ("weight_gradients", both))),
    ]


@dataclass(frozen=True)
class Activation(Layer):
    """A function of each element.

    Parameters
    ----------
    name : str
    function : str
        "relu", "sigmoid", "tanh" or "gelu".

    Raises
    ------
    ValueError
        If the function is not known.

    Examples
    --------
    >>> Activation("relu1").work(((64,),), batch=2)[0].flops
    128
    """

    function: str = "relu"

    def __post_init__(self) -> None:
        if self.function not in FUNCTIONS:
            self.fail(f"unknown function {self.function!r}; known: {', '.join(FUNCTIONS)}")

    @property
    def saves(self) -> str:
        """What the function's gradient is computed from."""
        return FUNCTIONS[self.function][2]

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """Of both passes."""
        n, (forward, backward, _) = batch * prod(shapes[0]), FUNCTIONS[self.function]
        x, errors = ("activations", n), ("errors", n)
        return [
            Work("forward", self.function, forward * n, (x,), (x,)),
            Work("backward_data", self.function, backward * n, (x, errors), (errors,)),
        ]


@dataclass(frozen=True)
class Add(Layer):
    """The sum of its inputs, which have one shape; its gradient is theirs.

    Examples
    --------
    >>> Add("sum", inputs=("a", "b")).work(((8,), (8,)), batch=2)[0].flops
    16
    """

    passes_gradient = True

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """Its inputs' shape."""
        if len(set(shapes)) != 1:
            self.fail(f"adds tensors of one shape, got {', '.join(map(str, shapes))}")
        return shapes[0]

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """Of the forward pass."""
        n, terms = batch * prod(shapes[0]), len(shapes)
        return [Work("forward", "add", (terms - 1) * n, (("activations", terms * n),), (("activations", n),))]


@dataclass(frozen=True)
class Concatenate(Layer):
    """Its inputs' channels, or features, one after another, in memory of their own.

    Examples
    --------
    >>> Concatenate("joined", inputs=("a", "b")).result(((8, 4, 4), (24, 4, 4)))
    (32, 4, 4)
    """

    passes_gradient = True

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """The sum of the channels of images, or of the features of steps."""
        axis = 0 if len(shapes[0]) == 3 else -1
        rest = {tuple(size for i, size in enumerate(shape) if i != axis % len(shape)) for shape in shapes}
        if len(rest) != 1:
            self.fail(f"joins tensors that differ in channels only, got {', '.join(map(str, shapes))}")
        joined = list(shapes[0])
        joined[axis] = sum(shape[axis] for shape in shapes)
        return tuple(joined)

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """A copy."""
        n = batch * sum(map(prod, shapes))
        return [Work("forward", "concatenate", 0, (("activations", n),), (("activations", n),))]


@dataclass(frozen=True)
class Flatten(Layer):
    """The same numbers in another shape: all in a row, or an image's columns as steps.

    Parameters
    ----------
    name : str
    shape : tuple of int, optional
        The shape; default: (all,).

    Examples
    --------
    >>> Flatten("flat").result(((256, 6, 6),)), Flatten("rows", (6, 1536)).result(((256, 6, 6),))
    ((9216,), (6, 1536))
    """

    shape: Shape = ()

    alias = True
    passes_gradient = True

    def result(self, shapes: tuple[Shape, ...]) -> Shape:
        """The shape."""
        shape = self.shape or (prod(shapes[0]),)
        if prod(shape) != prod(shapes[0]):
            self.fail(f"{shapes[0]} has {prod(shapes[0])} elements and {shape} has {prod(shape)}")
        return shape


@dataclass(frozen=True)
class Loss(Layer):
    """Softmax and cross-entropy over the last axis.

    Examples
    --------
    >>> [work.flops for work in Loss("loss").work(((10,),), batch=1)]
    [50, 10]
    """

    saves = "output"

    def work(self, shapes: tuple[Shape, ...], batch: int) -> list[Work]:
        """Of both passes."""
        n = batch * prod(shapes[0])
        x = ("activations", n)
        return [
            Work("forward", "softmax", 5 * n, (x,), (x,)),
            Work("backward_data", "softmax", n, (x,), (("errors", n),)),
        ]

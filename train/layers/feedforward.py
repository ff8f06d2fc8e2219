"""Layers of reference networks: each knows its parameters, their initial values and its matrix products."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from softnum.train.engine.initial import he_uniform
from softnum.train.engine.tensor import Parameter, Tensor, linear
from softnum.train.layers.convolution import conv2d
from softnum.train.layers.normalisation import Buffer, batch_norm, group_norm

__all__ = ["BatchNorm", "Convolution", "GroupNorm", "Layer", "Linear"]


class Layer:
    """What layers have in common.

    Parameters
    ----------
    name : str

    Attributes
    ----------
    parameters, buffers : list of Parameter, of Buffer
        Empty before `initialise`.
    functions : tuple of str
        Those that it asks for by name itself, which a design may replace.
    looked_up : bool
        Whether its weights are rows that are looked up (`softnum.train.Design.layer`).

    Examples
    --------
    >>> Layer("fc1").parameters
    []
    """

    functions: tuple[str, ...] = ()
    #: whether its weights are rows that are looked up, which no product multiplies
    looked_up = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.parameters: list[Parameter] = []
        self.buffers: list[Buffer] = []

    def products(self, key: str, batch: int) -> list[tuple]:
        """(layer, pass, M, N, K) of each matrix product of a pass: here none."""
        return []

    def backward_products(self, batch: int, *, data: bool) -> list[tuple]:
        """Those of the backward passes, in their order; data: whether its input needs a gradient."""
        passes = ("backward_data", "backward_weight") if data else ("backward_weight",)
        return [row for key in passes for row in self.products(key, batch)]

    @property
    def numerics(self):
        """The layer's arithmetic, which its parameters know."""
        return self.parameters[0].layer


class Linear(Layer):
    """x @ weight + bias.

    Parameters
    ----------
    name : str
    inputs, outputs : int
    rows : int or callable
        Of x, for each sample; or a function that makes the rows of a batch from its samples.
    bias : bool
        Whether it has one.

    Examples
    --------
    >>> Linear("fc1", 64, 10).products("forward", batch=32)
    [('fc1', 'forward', 32, 10, 64)]
    """

    def __init__(
        self, name: str, inputs: int, outputs: int, rows: int | Callable[[int], int] = 1, *, bias: bool = True
    ) -> None:  # fmt: skip
        super().__init__(name)
        self.inputs, self.outputs, self.rows, self.bias = inputs, outputs, rows, bias

    def initialise(self, numerics, index: int) -> None:
        """Make the parameters, from the random numbers of an index."""
        layer = numerics.layer(self.name)
        weight = layer.round("master", he_uniform(numerics.seed, index, self.inputs, self.outputs))
        self.parameters = [Parameter(weight, layer, f"{self.name}.weight"), *self._biases(layer)]

    def _biases(self, layer) -> list[Parameter]:
        """The bias of 0, if there is one."""
        zeros = layer.numerics.backend.zeros((self.outputs,)) if self.bias else None
        return [] if zeros is None else [Parameter(zeros, layer, f"{self.name}.bias")]

    def products(self, key: str, batch: int) -> list[tuple]:
        """(layer, pass, M, N, K) of each matrix product of a pass."""
        rows = self.rows(batch) if callable(self.rows) else batch * self.rows
        sizes = {
            "forward": (rows, self.outputs, self.inputs),
            "backward_data": (rows, self.inputs, self.outputs),
            "backward_weight": (self.inputs, self.outputs, rows),
        }
        return [(self.name, key, *sizes[key])]

    def __call__(self, x: Tensor, *, frozen: bool = False) -> Tensor:
        weight, *bias = [parameter.frozen() for parameter in self.parameters] if frozen else self.parameters
        return linear(x, weight, *(bias or (None,)), self.numerics)


class Convolution(Layer):
    """A two-dimensional convolution with square kernels, strides and paddings.

    Parameters
    ----------
    name : str
    image : (int, int, int)
        Channels, height and width of its input.
    filters : int
        Channels of its result.
    kernel : int
        Height and width, in pixels.
    stride, padding, groups : int
    bias : bool
        Whether it has one.

    Attributes
    ----------
    result : (int, int, int)
        Channels, height and width of its result.

    Raises
    ------
    ValueError
        If the kernel is larger than the padded image.

    Examples
    --------
    >>> conv = Convolution("conv1", (3, 32, 32), 16, 3, stride=2, padding=1)
    >>> conv.result, conv.products("forward", batch=10)
    ((16, 16, 16), [('conv1', 'forward', 2560, 16, 27)])
    """

    def __init__(
        self, name: str, image, filters: int, kernel: int, *, stride: int = 1, padding: int = 0, groups: int = 1,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(name)
        self.image, self.kernel, self.groups, self.bias = tuple(image), kernel, groups, bias
        self.geometry = {"stride": stride, "padding": padding, "groups": groups}
        if min(self.image[1:]) + 2 * padding < kernel:
            raise ValueError(
                f"{name}: a kernel of {kernel} x {kernel} does not fit an image of {self.image[1]} x {self.image[2]} "
                f"with padding {padding}; the network needs larger images"
            )
        self.result = (filters, *((n + 2 * padding - kernel) // stride + 1 for n in self.image[1:]))

    @property
    def _shape(self) -> tuple[int, int, int, int]:
        return (self.result[0], self.image[0] // self.groups, self.kernel, self.kernel)

    def initialise(self, numerics, index: int) -> None:
        """Make the parameters, from the random numbers of an index."""
        layer = numerics.layer(self.name)
        weights = he_uniform(numerics.seed, index, prod(self._shape[1:]), self._shape[0])
        weights = layer.round("master", numerics.backend.reshape(weights.T, self._shape))
        self.parameters = [Parameter(weights, layer, f"{self.name}.weight")]
        if self.bias:
            zeros = numerics.backend.zeros((self._shape[0],))
            self.parameters.append(Parameter(zeros, layer, f"{self.name}.bias"))

    def products(self, key: str, batch: int) -> list[tuple]:
        """(layer, pass, M, N, K) of each matrix product of a pass: one a group."""
        filters, channels, *kernel = self._shape
        filters //= self.groups
        place, results, pixels = prod(kernel), batch * prod(self.result[1:]), batch * prod(self.image[1:])
        sizes = {
            "forward": (results, filters, channels * place),
            "backward_data": (pixels, channels, filters * place),
            "backward_weight": (channels * place, filters, results),
        }
        return [(self.name, key, *sizes[key])] * self.groups

    def __call__(self, x: Tensor) -> Tensor:
        weight, bias = self.parameters if self.bias else (*self.parameters, None)
        return conv2d(x, weight, bias, self.numerics, **self.geometry)


class BatchNorm(Layer):
    """Batch normalisation of images, with its running statistics.

    Parameters
    ----------
    name : str
    channels : int

    Examples
    --------
    >>> BatchNorm("bn1", 16).products("forward", batch=32)
    []
    """

    def __init__(self, name: str, channels: int) -> None:
        super().__init__(name)
        self.channels = channels

    def initialise(self, numerics, index: int) -> None:
        """Make the gains of 1, the biases of 0, and running statistics of mean 0 and variance 1."""
        layer, backend = numerics.layer(self.name), numerics.backend
        zeros, ones = backend.zeros((self.channels,)), backend.ones((self.channels,))
        values = {"weight": layer.round("master", ones), "bias": zeros}
        self.parameters = [Parameter(value, layer, f"{self.name}.{kind}") for kind, value in values.items()]
        values = {"mean": zeros, "variance": layer.round("statistics", ones)}
        self.buffers = [Buffer(value, f"{self.name}.{kind}") for kind, value in values.items()]

    def __call__(self, x: Tensor, *, training: bool) -> Tensor:
        return batch_norm(x, *self.parameters, *self.buffers, self.numerics, training=training)


class GroupNorm(Layer):
    """Group normalisation of images.

    Parameters
    ----------
    name : str
    channels : int
    size : int
        Channels of a group.

    Raises
    ------
    ValueError
        If the channels are no whole number of groups.

    Examples
    --------
    >>> GroupNorm("gn1", 16, size=8).groups
    2
    """

    def __init__(self, name: str, channels: int, size: int) -> None:
        super().__init__(name)
        if channels % size:
            raise ValueError(f"{name}: groups of {size} channels do not divide its {channels} channels")
        self.channels, self.groups = channels, channels // size

    def initialise(self, numerics, index: int) -> None:
        """Make the gains of 1 and the biases of 0."""
        layer, backend = numerics.layer(self.name), numerics.backend
        values = {
            "weight": layer.round("master", backend.ones((self.channels,))),
            "bias": backend.zeros((self.channels,)),
        }
        self.parameters = [Parameter(value, layer, f"{self.name}.{kind}") for kind, value in values.items()]

    def __call__(self, x: Tensor, *, training: bool) -> Tensor:
        return group_norm(x, *self.parameters, self.numerics, groups=self.groups)

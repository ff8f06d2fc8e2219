"""Batch and group normalisation of images, layer and RMS normalisation, with every rounding stated."""

from __future__ import annotations

import numpy as np

from softnum.train.engine.tensor import GRADIENTS, Parameter, Tensor

__all__ = ["Buffer", "batch_norm", "group_norm", "layer_norm", "rms_norm"]


class Buffer:
    """What a network keeps besides its parameters: no optimiser updates it, a checkpoint holds it.

    Parameters
    ----------
    value : array of carriers
    name : str

    Examples
    --------
    >>> from softnum.train import Numerics, load_design, make_network
    >>> network = make_network("resnet", image=(1, 8, 8))
    >>> network.initialise(Numerics(load_design("a-float32"), network.layer_names, seed=1))
    >>> network.buffers[0].name, network.buffers[0].value.shape
    ('bn1.mean', (16,))
    """

    __slots__ = ("name", "value")

    def __init__(self, value, name: str) -> None:
        self.value = value
        self.name = name


def batch_norm(
    x: Tensor, gain: Parameter, bias: Parameter, mean: Buffer, variance: Buffer, layer, *, training: bool,
    momentum: float = 0.1, epsilon: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Normalise each channel of a batch of images, then scale and shift it.

    Of the n = images * height * width elements x of a channel, each line rounded to the role that is named::

        m = total(x) / n                  statistics: a tree of sums; the quotient in binary64
        d = x - m                         elementwise
        v = total(d * d) / n              statistics
        r = 1 / sqrt(v + epsilon)         statistics: three operations
        y = (d * r) * gain + bias         elementwise: three operations

    Operands are rounded to the role as they enter; gain and bias from their master copies. `total` adds neighbours in
    the order (image, row, column) in pairs, then the sums in pairs, and so on (an odd last one waits), each sum
    rounded. The running values are stored in ``statistics``::

        running = running + momentum * (new - running)      the difference rounded, then the multiply-add, once

    where new is m, or total(d * d) / (n - 1). In evaluation the running values take the places of m and v.

    Backwards, from the gradient e of y, rounded to ``elementwise``::

        e1, e2 = total(e), total(e * (d * r))     statistics; / loss scale, these are the gradients of bias and gain
        dx = ((e - e1 / n) - (d * r) * (e2 / n)) * (gain * r)

    the quotients as above, the rest in ``elementwise``, operation by operation; in evaluation dx = e * (gain * r).

    Parameters
    ----------
    x : Tensor (images, channels, height, width)
    gain, bias : Parameter (channels,)
    mean, variance : Buffer (channels,)
        The running values; replaced if training.
    layer : LayerNumerics
    training : bool
        Whether to normalise by the batch's own mean and variance.
    momentum : float
        The share of the batch in the running values, rounded to binary32.
    epsilon : float
        Rounded to ``statistics``.

    Returns
    -------
    Tensor (images, channels, height, width)
        Values of the role ``elementwise``.

    Raises
    ------
    ValueError
        If a channel of a training batch has one element only.

    References
    ----------
    S. Ioffe and C. Szegedy, "Batch Normalization", 2015; algorithm 1 and section 3. The running variance takes n - 1,
    momentum and epsilon are as in PyTorch.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import Numerics, Parameter, Tensor, load_design
    >>> layer = Numerics(load_design("a-float32"), ["bn"], seed=1).layer("bn")
    >>> gain, bias = (Parameter(np.float32([value]), layer, "bn") for value in (1, 0))
    >>> mean, variance = Buffer(np.float32([0]), "bn.mean"), Buffer(np.float32([1]), "bn.variance")
    >>> x = Tensor(np.float32([1, 3]).reshape(2, 1, 1, 1), layer.numerics.backend)
    >>> batch_norm(x, gain, bias, mean, variance, layer, training=True).value.ravel()
    array([-0.999995,  0.999995], dtype=float32)
    >>> mean.value, variance.value
    (array([0.2], dtype=float32), array([1.1], dtype=float32))
    """
    backend = x.backend
    images, _, *size = x.value.shape
    count = images * size[0] * size[1]
    entered = layer.enter(x.value)
    if training:
        if count < 2:
            raise ValueError(f"batch_norm: a channel of a training batch of shape {x.value.shape} has {count} element")
        center = layer.quotient("statistics", _total(layer, entered), count)
    else:
        center = mean.value
    centered = layer.elementwise("subtract", entered, _entered(layer, center))
    if training:
        deviations = layer.same("statistics", centered)
        squares = layer.operate("statistics", "multiply", deviations, deviations)
        total = layer.total_of_channels("statistics", squares)
        spread = layer.quotient("statistics", total, count)
        share = float(np.float32(momentum))
        for running, new in ((mean, center), (variance, layer.quotient("statistics", total, count - 1))):
            step = layer.operate("statistics", "subtract", new, running.value)
            running.value = layer.axpy("statistics", share, step, running.value)
    else:
        spread = variance.value
    scale = _entered(layer, _reciprocal_root(layer, spread, epsilon))
    normal = layer.elementwise("multiply", centered, scale)
    gains = _entered(layer, gain.value)
    value = layer.elementwise("add", layer.elementwise("multiply", normal, gains), _entered(layer, bias.value))
    saved = (normal, gains, scale, layer, training)
    return Tensor(value, backend, op="batch_norm", parents=(x, gain, bias), saved=saved, layer=layer)


def _reciprocal_root(layer, variance, epsilon: float):
    """1 / sqrt(variance + epsilon) in the role ``statistics``, operation by operation."""
    backend = layer.numerics.backend
    ones = backend.ones(variance.shape)
    tiny = layer.round("statistics", np.full(variance.shape, epsilon))
    root = layer.operate("statistics", "sqrt", layer.operate("statistics", "add", variance, tiny))
    return layer.operate("statistics", "divide", layer.round("statistics", ones), root)


def _entered(layer, channels):
    """A value for each channel, rounded to ``elementwise``, in the shape that goes with images."""
    return layer.numerics.backend.reshape(layer.enter(channels), (-1, 1, 1))


def _total(layer, x):
    """The sum of each channel, of images of the role ``elementwise``, in the role ``statistics``."""
    if layer.format("statistics") == layer.format("elementwise"):
        return layer.total_of_channels("statistics", layer.same("statistics", x))
    return layer.total("statistics", layer.round("statistics", layer.numerics.backend.pixels(x)))


def _batch_norm_gradient(node: Tensor, gradient) -> tuple:
    normal, gains, scale, layer, training = node.saved
    error = layer.enter(gradient)
    products = _products(layer, error, normal)
    sums = _total(layer, error), layer.total_of_channels("statistics", products)
    data = None
    if node.parents[0].requires_gradient:
        data = error
        if training:
            count = error.shape[0] * error.shape[2] * error.shape[3]
            shift, slope = (_entered(layer, layer.quotient("statistics", total, count)) for total in sums)
            data = layer.elementwise("subtract", data, shift)
            data = layer.elementwise("subtract", data, layer.elementwise("multiply", normal, slope))
        data = layer.elementwise("multiply", data, layer.elementwise("multiply", gains, scale))
    bias, gain = (layer.weight_gradient(total, of=layer.format("statistics")) for total in sums)
    return data, gain, bias


def layer_norm(x: Tensor, gain: Parameter, bias: Parameter, layer, *, epsilon: float = 1e-5) -> Tensor:
    """Normalise each row over its n features, then scale and shift each feature.

    For the features x of a row, each line rounded to the role that is named::

        m = total(x) / n                  statistics: a tree of sums; the quotient in binary64
        d = x - m                         elementwise
        v = total(d * d) / n              statistics
        r = 1 / sqrt(v + epsilon)         statistics: three operations
        y = (d * r) * gain + bias         elementwise: three operations

    Operands are rounded to the role as they enter; gain and bias from their master copies. `total` adds neighbours in
    the order of the features in pairs, then the sums in pairs, and so on (an odd last one waits), each sum rounded.

    Backwards, from the gradient e of y, rounded to ``elementwise``, with f = e * gain::

        total(e), total(e * (d * r))     over the rows, in their order, in statistics; / loss scale, the gradients of
                                         bias and gain
        f1, f2 = total(f) / n, total(f * (d * r)) / n     statistics, over the features
        dx = ((f - f1) - (d * r) * f2) * r                elementwise, operation by operation

    Parameters
    ----------
    x : Tensor (rows, features)
    gain, bias : Parameter (features,)
    layer : LayerNumerics
    epsilon : float
        Rounded to ``statistics``.

    Returns
    -------
    Tensor (rows, features)
        Values of the role ``elementwise``.

    References
    ----------
    J. Ba et al., "Layer Normalization", 2016; epsilon as in PyTorch.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import Numerics, Parameter, Tensor, load_design
    >>> layer = Numerics(load_design("a-float32"), ["norm"], seed=1).layer("norm")
    >>> gain, bias = (Parameter(np.full(2, value, np.float32), layer, "norm") for value in (1, 0))
    >>> layer_norm(Tensor(np.float32([[1, 3], [5, 5]]), layer.numerics.backend), gain, bias, layer).value
    array([[-0.999995,  0.999995],
           [ 0.      ,  0.      ]], dtype=float32)
    """
    normal, scale = _standardised(layer, layer.enter(x.value), epsilon)
    gains = layer.enter(gain.value)
    value = layer.elementwise("add", layer.elementwise("multiply", normal, gains), layer.enter(bias.value))
    saved = (normal, gains, scale, layer)
    return Tensor(value, x.backend, op="layer_norm", parents=(x, gain, bias), saved=saved, layer=layer)


def rms_norm(x: Tensor, gain: Parameter, layer, *, epsilon: float = 1e-5) -> Tensor:
    """Divide each row by the root of the mean square of its n features, then scale each feature.

    For the features x of a row, each line rounded to the role that is named::

        v = total(x * x) / n              statistics: the squares, a tree of sums; the quotient in binary64
        r = 1 / sqrt(v + epsilon)         statistics: three operations
        y = (x * r) * gain                elementwise: two operations

    x is rounded to ``elementwise``, and from there to ``statistics`` for the squares; gain from its master copy, and
    `total` is that of `layer_norm`.

    Backwards, from the gradient e of y, rounded to ``elementwise``, with f = e * gain::

        total(e * (x * r))              over the rows, in their order, in statistics; / loss scale, the gradient of gain
        f2 = total(f * (x * r)) / n     statistics, over the features
        dx = (f - (x * r) * f2) * r     elementwise, operation by operation

    Parameters
    ----------
    x : Tensor (rows, features)
    gain : Parameter (features,)
    layer : LayerNumerics
    epsilon : float
        Rounded to ``statistics``.

    Returns
    -------
    Tensor (rows, features)
        Values of the role ``elementwise``.

    References
    ----------
    B. Zhang and R. Sennrich, "Root Mean Square Layer Normalization", 2019, equation 4 (there without an epsilon; the
    default is that of `layer_norm`).

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import Numerics, Parameter, Tensor, load_design
    >>> layer = Numerics(load_design("a-float32"), ["norm"], seed=1).layer("norm")
    >>> gain = Parameter(np.ones(2, np.float32), layer, "norm.weight")
    >>> rms_norm(Tensor(np.float32([[1, 7], [5, 5]]), layer.numerics.backend), gain, layer).value
    array([[0.19999996, 1.3999997 ],
           [0.99999976, 0.99999976]], dtype=float32)
    """
    entered = layer.enter(x.value)
    total = layer.total("statistics", _products(layer, entered), last=True)
    spread = layer.quotient("statistics", total, entered.shape[-1])
    scale = layer.enter(_reciprocal_root(layer, spread, epsilon))
    normal, gains = layer.elementwise("multiply", entered, scale), layer.enter(gain.value)
    value = layer.elementwise("multiply", normal, gains)
    return Tensor(value, x.backend, op="rms_norm", parents=(x, gain), saved=(normal, gains, scale, layer), layer=layer)


def group_norm(x: Tensor, gain: Parameter, bias: Parameter, layer, *, groups: int, epsilon: float = 1e-5) -> Tensor:
    """Normalise each group of neighbouring channels of each image, then scale and shift each channel.

    The n = channels of a group * height * width elements of a group are a row of `layer_norm`, whose lines and roles
    hold for it: `total` adds them in the order (channel, row, column). So images are normalised alone: nothing depends
    on the batch, and evaluation computes what training does. Gain and bias are those of the channel.

    Backwards, the sums of the gradients of bias and gain run over the images' pixels in the order (image, row, column),
    as those of `batch_norm`; all else is as of `layer_norm`.

    Parameters
    ----------
    x : Tensor (images, channels, height, width)
    gain, bias : Parameter (channels,)
    layer : LayerNumerics
    groups : int
        Divides the channels. 1: the whole image; as many as channels: each of them (instance normalisation).
    epsilon : float
        Rounded to ``statistics``.

    Returns
    -------
    Tensor (images, channels, height, width)
        Values of the role ``elementwise``.

    Raises
    ------
    ValueError
        If the groups do not divide the channels, or have one element only.

    References
    ----------
    Y. Wu and K. He, "Group Normalization", 2018; epsilon as in PyTorch.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import Numerics, Parameter, Tensor, load_design
    >>> layer = Numerics(load_design("a-float32"), ["gn"], seed=1).layer("gn")
    >>> gain, bias = (Parameter(np.full(4, value, np.float32), layer, "gn") for value in (1, 0))
    >>> x = Tensor(np.float32([1, 3, 20, 60]).reshape(1, 4, 1, 1), layer.numerics.backend)
    >>> group_norm(x, gain, bias, layer, groups=2).value.ravel()
    array([-0.999995,  0.999995, -1.      ,  1.      ], dtype=float32)
    """
    backend, shape = x.backend, x.value.shape
    if isinstance(groups, bool) or not isinstance(groups, int) or groups < 1 or shape[1] % groups:
        raise ValueError(
            f"group_norm: groups must be a positive integer that divides {shape[1]} channels, got {groups!r}"
        )
    rows = backend.reshape(layer.enter(x.value), (shape[0] * groups, -1))
    if rows.shape[1] == 1:
        raise ValueError(f"group_norm: a group of images of shape {shape} has 1 element; it needs at least 2")
    normal, scale = _standardised(layer, rows, epsilon)
    gains = _entered(layer, gain.value)
    images = layer.elementwise("multiply", backend.reshape(normal, shape), gains)
    value = layer.elementwise("add", images, _entered(layer, bias.value))
    saved = (normal, gains, scale, layer)
    return Tensor(value, backend, op="group_norm", parents=(x, gain, bias), saved=saved, layer=layer)


def _standardised(layer, rows, epsilon: float):
    """The elements d * r of rows of the role ``elementwise``, as `layer_norm` names them; and r, a column."""
    count = rows.shape[-1]
    center = layer.quotient("statistics", _row_totals(layer, rows), count)
    centered = layer.elementwise("subtract", rows, layer.enter(center))
    spread = layer.quotient("statistics", layer.total("statistics", _products(layer, centered), last=True), count)
    scale = layer.enter(_reciprocal_root(layer, spread, epsilon))
    return layer.elementwise("multiply", centered, scale), scale


def _standardised_gradient(layer, data, normal, scale):
    """The gradient of rows from that of their elements d * r, both of the role ``elementwise``."""
    count = normal.shape[-1]
    totals = _row_totals(layer, data), layer.total("statistics", _products(layer, data, normal), last=True)
    shift, slope = (layer.enter(layer.quotient("statistics", total, count)) for total in totals)
    data = layer.elementwise("subtract", data, shift)
    data = layer.elementwise("subtract", data, layer.elementwise("multiply", normal, slope))
    return layer.elementwise("multiply", data, scale)


def _row_totals(layer, x):
    """The sum of each row in the role ``statistics``, as a column."""
    return layer.total("statistics", layer.same("statistics", x), last=True)


def _products(layer, x, y=None):
    """x * y of numbers of ``elementwise`` in the role ``statistics``; the squares of x, which is rounded once, if there
    is no y."""
    factors = [layer.same("statistics", factor) for factor in ((x,) if y is None else (x, y))]
    return layer.operate("statistics", "multiply", factors[0], factors[-1])


def _layer_norm_gradient(node: Tensor, gradient) -> tuple:
    normal, gains, scale, layer = node.saved
    error = layer.enter(gradient)
    sums = layer.same("statistics", error), _products(layer, error, normal)
    bias, gain = (
        layer.weight_gradient(layer.total("statistics", x), of=layer.format("statistics")) for x in sums
    )  # fmt: skip
    if not node.parents[0].requires_gradient:
        return None, gain, bias
    return _standardised_gradient(layer, layer.elementwise("multiply", error, gains), normal, scale), gain, bias


def _rms_norm_gradient(node: Tensor, gradient) -> tuple:
    normal, gains, scale, layer = node.saved
    error, statistics = layer.enter(gradient), layer.format("statistics")
    gain = layer.weight_gradient(layer.total("statistics", _products(layer, error, normal)), of=statistics)
    if not node.parents[0].requires_gradient:
        return None, gain
    data = layer.elementwise("multiply", error, gains)
    total = layer.total("statistics", _products(layer, data, normal), last=True)
    slope = layer.enter(layer.quotient("statistics", total, normal.shape[-1]))
    data = layer.elementwise("subtract", data, layer.elementwise("multiply", normal, slope))
    return layer.elementwise("multiply", data, scale), gain


def _group_norm_gradient(node: Tensor, gradient) -> tuple:
    normal, gains, scale, layer = node.saved
    backend, error = node.backend, layer.enter(gradient)
    products = _products(layer, error, backend.reshape(normal, error.shape))
    sums = _total(layer, error), layer.total_of_channels("statistics", products)
    bias, gain = (layer.weight_gradient(total, of=layer.format("statistics")) for total in sums)
    if not node.parents[0].requires_gradient:
        return None, gain, bias
    data = backend.reshape(layer.elementwise("multiply", error, gains), normal.shape)
    data = backend.reshape(_standardised_gradient(layer, data, normal, scale), error.shape)
    return data, gain, bias


GRADIENTS["batch_norm"] = _batch_norm_gradient
GRADIENTS["group_norm"] = _group_norm_gradient
GRADIENTS["layer_norm"] = _layer_norm_gradient
GRADIENTS["rms_norm"] = _rms_norm_gradient

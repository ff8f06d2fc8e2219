"""Two-dimensional convolution as a layer: the three products of ``softnum.train.engine.tensor.linear``, of images."""

from __future__ import annotations

from softnum.train.engine.tensor import GRADIENTS, Parameter, Tensor

__all__ = ["conv2d"]


def conv2d(
    x: Tensor, weight: Parameter, bias: Parameter | None, layer, *, stride=1, padding=0, dilation=1, groups=1
) -> Tensor:  # fmt: skip
    """The convolution (cross-correlation) of images with a layer's weights, in the layer's arithmetic.

    Roles and units are those of `linear`: the operands are rounded to ``activations`` (``input`` in the first layer)
    and ``weights``; the bias is rounded to the forward unit's accumulator and is its initial value; the gradient of the
    result is rounded to ``errors``. In what order the units add is what `softnum.conv2d`, `conv2d_backward_data` and
    `conv2d_backward_weight` state; padded zeros are operands. The gradient of the bias is the product of ones with the
    errors in the unit ``backward_weight``, summed in the order (image, row, column), as that of the weights is.

    A design whose ``[convolution]`` states an algorithm has the first two products computed by it
    (``softnum.train.designs.convolutions``): the bias is then the initial value of its output unit's accumulator.

    Parameters
    ----------
    x : Tensor (images, channels, height, width)
    weight : Parameter (filters, channels / groups, kernel height, kernel width)
    bias : Parameter (filters,), optional
        None: sums start from +0.
    layer : LayerNumerics
    stride, padding, dilation : int or (int, int)
        Rows, columns; in pixels. Padding goes on both sides.
    groups : int

    Returns
    -------
    Tensor (images, filters, rows, columns)
        What the forward unit's accumulator holds, or the algorithm's output unit delivers.

    Raises
    ------
    ValueError
        If the shapes do not fit, the images are padded in a format without a zero, or the design's algorithm does not
        have such a convolution.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import Numerics, Parameter, Tensor, load_design
    >>> layer = Numerics(load_design("a-float32"), ["conv1"], seed=1).layer("conv1")
    >>> weight = Parameter(np.ones((1, 1, 3, 3), np.float32), layer, "conv1.weight")
    >>> image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    >>> conv2d(Tensor(image, layer.numerics.backend), weight, None, layer).value
    array([[[[45., 54.],
             [81., 90.]]]], dtype=float32)
    """
    geometry = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    operand, kept = layer.operand(layer.operand_role, x.value, _channels(x.value, groups), use=weight.name)
    weights = layer.working_copy(weight, ((len(weight.value), -1), 1))
    layer.refuse_trust("gradients of a convolution's operands", operand, weights)
    parents, initial = (x, weight), None
    if bias is not None:
        parents = (x, weight, bias)
        by = layer.algorithm("forward", operand, weights, geometry)
        initial = layer.round_start_of(by, bias.value, of=layer.format("master"))
        initial = x.backend.reshape(initial, (*initial.shape, 1, 1))
    value = layer.convolve("forward", operand, weights, initial, **geometry)
    return Tensor(value, x.backend, op="conv2d", parents=parents, saved=(operand, weights, kept, layer, geometry))


def _channels(x, groups: int) -> tuple[tuple[int, ...], int]:
    """The shape of images in which the channels of each group of a convolution lie along an axis, and that axis."""
    return (len(x), groups, x.shape[1] // groups, -1), 2


def _conv2d_gradient(node: Tensor, gradient) -> tuple:
    operand, weights, kept, layer, geometry = node.saved
    error = layer.errors(gradient, _channels(gradient, geometry["groups"]), use=node.parents[1].name)
    data = None
    if node.parents[0].requires_gradient:
        data = layer.convolve("backward_data", error, weights, size=operand.shape[2:], **geometry)
        data = layer.select(layer.operand_role, data, kept)
    product = layer.convolve("backward_weight", operand, error, kernel=weights.shape[2:], **geometry)
    if len(node.parents) == 2:
        return data, layer.weight_gradient(product)
    sums = layer.column_sums(layer.pixels(error, geometry["groups"]))
    bias = node.backend.reshape(layer.weight_gradient(sums), (error.shape[1],))
    return data, layer.weight_gradient(product), bias


GRADIENTS["conv2d"] = _conv2d_gradient

"""Functions element by element, looked up by name: a design's operator of that name, else softnum's exact function.

A network asks for ``activation("tanh", x, layer)`` and never learns which arithmetic answers: where the design states
``operators = { tanh = "plan_tanh.tile" }``, that is what is computed, forwards and backwards; else the correctly
rounded function, in the format of the role ``elementwise``, with the gradient that `EXACT` states.
"""

from __future__ import annotations

from collections.abc import Callable

from softnum.train.engine.binary64 import host
from softnum.train.engine.tensor import GRADIENTS, Parameter, Tensor, relu

__all__ = ["EXACT", "activation", "operate", "raise_first_nan"]


def _tanh_slope(layer, y):
    """1 - y * y"""
    return layer.elementwise("subtract", layer.one(y), layer.elementwise("multiply", y, y))


def _sigmoid_slope(layer, y):
    """y * (1 - y)"""
    return layer.elementwise("multiply", y, layer.elementwise("subtract", layer.one(y), y))


def _silu_slope(layer, y, x):
    """s + y * (1 - s) with s = sigmoid(x)"""
    s = layer.elementwise("sigmoid", x)
    rest = layer.elementwise("multiply", y, layer.elementwise("subtract", layer.one(y), s))
    return layer.elementwise("add", s, rest)


#: function -> slope(layer, result), or slope(layer, result, operand) of those in `_OF_OPERAND`: its derivative, each
#: operation rounded to ``elementwise``
EXACT: dict[str, Callable] = {"sigmoid": _sigmoid_slope, "silu": _silu_slope, "tanh": _tanh_slope}
_OF_OPERAND = ("silu",)


def activation(name: str, x: Tensor, layer) -> Tensor:
    """A function of every element of x, in a layer's element-by-element arithmetic.

    Parameters
    ----------
    name : str
        What the network calls it, and the design's ``operators`` may replace: one of `EXACT`, or "relu".
    x : Tensor
        Rounded to the role ``elementwise`` as it enters (but not by the exact ReLU, which changes no format).
    layer : LayerNumerics

    Returns
    -------
    Tensor
        Of x's shape, values of the role ``elementwise``.

    Raises
    ------
    ValueError
        If there is no exact function of that name and the design replaces it by nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import Numerics, Tensor, load_design
    >>> numerics = Numerics(load_design("c-wang-fp8"), ["fc1", "fc2"], seed=1)
    >>> x = Tensor(np.float32([[0.5, -8.0]]), numerics.backend)
    >>> activation("tanh", x, numerics.layer("fc1")).value
    array([[ 0.46191406, -1.        ]], dtype=float32)
    """
    named = layer.design.operators.get(name)
    if named is not None:
        return operate(named.operator, (x,), layer)
    if name == "relu":
        return relu(x)
    if name not in EXACT:
        raise ValueError(
            f"softnum.train has no exact function {name!r} with a gradient (it has {', '.join(EXACT)} and relu)"
        )
    entered = layer.enter(x.value)
    value = layer.elementwise(name, entered)
    saved = (EXACT[name], *((entered,) if name in _OF_OPERAND else ()))
    return Tensor(value, x.backend, op="function", parents=(x,), saved=saved, layer=layer)


def operate(operator, inputs: tuple[Tensor, ...], layer) -> Tensor:
    """An operator of the user's own as a layer.

    Parameters
    ----------
    operator : Operator
        As `softnum.operator` returns it, with one output.
    inputs : tuple of Tensor
        In the order of its text. An operator that works element by element computes in the role ``elementwise``, to
        which they are rounded as they enter. Of any other, parameters are rounded to ``weights`` and the rest to
        ``activations`` (``input`` in the first layer).
    layer : LayerNumerics

    Returns
    -------
    Tensor
        Each operation on elements is rounded to the role ``elementwise``. Sums are computed in the unit ``forward``,
        and are what its accumulator holds. Backwards, the gradient of the result is rounded to ``elementwise``, or
        with sums to ``errors``; those of parameters are summed in ``backward_weight`` and rounded as any, all others
        summed in ``backward_data``. An input that the result does not depend on smoothly has a gradient of 0.

    Raises
    ------
    ValueError
        If the operator has several outputs, or does not fit its inputs or the design.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> from softnum.train import Numerics, Tensor, load_design
    >>> layer = Numerics(load_design("c-wang-fp8"), ["fc1", "fc2"], seed=1).layer("fc1")
    >>> square = sn.operator("function (X) -> (Y) { Y = X * X; }")
    >>> x = Tensor(np.float32([[0.1, 3.0]]), layer.numerics.backend, requires_gradient=True)
    >>> operate(square, (x,), layer).value  # 0.1 is 0.09997559 in e6m9
    array([[0.00999451, 9.        ]], dtype=float32)
    """
    if len(operator.outputs) != 1:
        raise ValueError(f"{operator.name}: a layer has one output, this operator has {', '.join(operator.outputs)}")
    if not operator.is_elementwise:
        layer.refuse_blocks(f"the operator {operator.name} computes with values")
    options = layer.operator_options(operator, [isinstance(x, Parameter) for x in inputs])
    if operator.is_elementwise:
        values, kept = tuple(layer.enter(x.value) for x in inputs), (None,) * len(inputs)
    else:
        operands = (
            (layer.working_copy(x), None) if isinstance(x, Parameter) else layer.operand(layer.operand_role, x.value)
            for x in inputs
        )
        values, kept = zip(*operands, strict=True)
    result = layer.numerics.backend.run_operator(operator, values, options)
    saved = operator, values, options, kept, layer
    own = layer if operator.is_elementwise else None
    return Tensor(result, inputs[0].backend, op="operator", parents=inputs, saved=saved, layer=own)


def raise_first_nan(result: Tensor) -> None:
    """ValueError if an operator of the user's, on the way to a result, made a NaN of numbers; it shows the place."""
    for node in result._order():
        if node.op == "operator":
            operator, values, options, *_ = node.saved
            error = operator.first_nan(*map(host, values), **options)
            if error is not None:
                raise error


def _operator_gradient(node: Tensor, gradient) -> tuple:
    operator, values, options, kept, layer = node.saved
    gradient = layer.enter(gradient) if operator.is_elementwise else layer.errors(gradient)
    backend = layer.numerics.backend
    parts = backend.run_operator_backward(operator, values, (node.value,), (gradient,), options)
    # of an input that the result does not depend on: where nothing else depends on it either, it has a gradient of 0
    parts = tuple(
        backend.zeros(parent.value.shape) if part is None and parent.gradient is None else part
        for parent, part in zip(node.parents, parts, strict=True)
    )
    return tuple(
        layer.weight_gradient(part)
        if isinstance(parent, Parameter) and part is not None
        else layer.select(layer.operand_role, part, mask)
        for parent, part, mask in zip(node.parents, parts, kept, strict=True)
    )


def _function_gradient(node: Tensor, gradient) -> tuple:
    layer, (slope, *operand) = node.layer, node.saved
    return (layer.elementwise("multiply", layer.enter(gradient), slope(layer, node.value, *operand)),)


GRADIENTS["function"] = _function_gradient
GRADIENTS["operator"] = _operator_gradient

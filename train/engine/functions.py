"""Functions element by element, looked up by name: a design's operator of that name, else softnum's exact function.

A network asks for ``activation("tanh", x, layer)`` and never learns which arithmetic answers: where the design states
``operators = { tanh = "plan_tanh.tile" }``, that is what is computed, forwards and backwards; else the correctly
rounded function, in the format of the role ``elementwise``, with the gradient that `EXACT` states.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable

from softnum.tile.functions import FUNCTIONS, OPERATORS
from softnum.train.engine.binary64 import host
from softnum.train.engine.tensor import GRADIENTS, Parameter, Tensor, relu

__all__ = ["EXACT", "RULES", "activation", "function", "operate", "power", "raise_first_nan"]


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
_SMOOTH = """
add subtract multiply divide sqrt acos asin atan cbrt cos cosh erf exp exp2 expm1 gelu hypot log log10 log1p log2 pow
reciprocal rsqrt sin sinh softplus tan
"""
_BY_OPERATION = {known.operation: known for known in (*OPERATORS.values(), *FUNCTIONS.values())}
#: operation of softnum's -> its gradients by the operands, in the Tile language: g is the gradient of the result, y the
#: result, a and b are the operands
RULES: dict[str, tuple[str, ...]] = {name: _BY_OPERATION[name].rules for name in _SMOOTH.split()}


def activation(name: str, x: Tensor, layer) -> Tensor:
    """A function of every element of x, in a layer's element-by-element arithmetic.

    Parameters
    ----------
    name : str
        The name of the function in the network, which the design's ``operators`` may replace: one of `EXACT`, of
        `RULES` with one operand, or "relu".
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
    if name in RULES and len(RULES[name]) == 1:
        return function(name, (x,), layer)
    if name not in EXACT:
        known = (*EXACT, *(rule for rule, texts in RULES.items() if len(texts) == 1))
        raise ValueError(
            f"softnum.train has no exact function {name!r} with a gradient (it has {', '.join(known)} and relu)"
        )
    entered = layer.enter(x.value)
    value = layer.elementwise(name, entered)
    saved = (EXACT[name], *((entered,) if name in _OF_OPERAND else ()))
    return Tensor(value, x.backend, op="function", parents=(x,), saved=saved, layer=layer)


def function(name: str, inputs: tuple[Tensor, ...], layer) -> Tensor:
    """One of softnum's operations on every element, in a layer's element-by-element arithmetic.

    Parameters
    ----------
    name : str
        One of `RULES`.
    inputs : tuple of Tensor
        Its operands, of one shape; constants may have a single element. Rounded to ``elementwise`` as they enter.
    layer : LayerNumerics

    Returns
    -------
    Tensor
        The exact result, rounded once to ``elementwise``. Backwards, from the gradient g of the result, rounded to the
        role, the gradients are what `RULES` states, each of its operations rounded to ``elementwise``, as are its
        numbers, from binary64.

    Raises
    ------
    ValueError
        If the shapes differ.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import Numerics, Tensor, load_design
    >>> layer = Numerics(load_design("a-float32"), ["fc1"], seed=1).layer("fc1")
    >>> x = Tensor(np.float32([4.0, 2.0]), layer.numerics.backend, requires_gradient=True)
    >>> y = function("rsqrt", (x,), layer)
    >>> y.backward(np.ones(2, np.float32))
    >>> y.value, x.gradient, RULES["rsqrt"]
    (array([0.5       , 0.70710677], dtype=float32),
     array([-0.0625    , -0.17677669], dtype=float32), ('-0.5 * g * (y / a)',))
    """
    shapes = {x.value.shape for x in inputs if x.requires_gradient or x.value.size != 1}
    if len(shapes) > 1:
        raise ValueError(f"{name} needs equal shapes, got {' and '.join(str(x.value.shape) for x in inputs)}")
    entered = tuple(layer.enter(x.value) for x in inputs)
    uses = "y" in _names(RULES[name])
    value = layer.elementwise(name, *entered) if uses else layer.delivered(name, *entered)
    return Tensor(value, inputs[0].backend, op="rule", parents=inputs, saved=(name, entered), layer=layer)


def power(x: Tensor, exponent: float, layer) -> Tensor:
    """x ** exponent of every element, in a layer's element-by-element arithmetic.

    The exact power rounded once to ``elementwise``, as are x and the exponent as they enter. Backwards, from the
    gradient g, rounded to the role: g * (exponent * x ** (exponent - 1)), operation by operation.

    Parameters
    ----------
    x : Tensor
    exponent : float
    layer : LayerNumerics

    Returns
    -------
    Tensor
        Of x's shape.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import Numerics, Tensor, load_design
    >>> layer = Numerics(load_design("a-float32"), ["fc1"], seed=1).layer("fc1")
    >>> power(Tensor(np.float32([1.1, -2.0]), layer.numerics.backend), 3.0, layer).value
    array([ 1.3310001, -8.       ], dtype=float32)
    """
    entered = layer.enter(x.value)
    value = _power(layer.delivered, layer, entered, exponent)
    return Tensor(value, x.backend, op="power", parents=(x,), saved=(entered, float(exponent)), layer=layer)


def _power(compute: Callable, layer, x, exponent: float):
    """x ** exponent: of a square a product, which has the same bits."""
    constant = layer.constant(exponent, x.ndim)
    if exponent == 2.0 and host(constant).item() == 2.0:
        return compute("multiply", x, x)
    return x if exponent == 1.0 and host(constant).item() == 1.0 else compute("pow", x, constant)


@functools.cache
def _parsed(rule: str) -> ast.expr:
    return ast.parse(rule, mode="eval").body


@functools.cache
def _names(rules: tuple[str, ...]) -> frozenset[str]:
    """What rules of gradients use."""
    return frozenset(node.id for rule in rules for node in ast.walk(_parsed(rule)) if isinstance(node, ast.Name))


_OPERATIONS = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide"}


def _follow(rule: ast.expr, layer, values: dict):
    """The value of a rule, each operation rounded to ``elementwise``; values: of its names."""
    if isinstance(rule, ast.Name):
        return values[rule.id]
    if isinstance(rule, ast.Constant):
        return layer.constant(float(rule.value), values["g"].ndim)
    if isinstance(rule, ast.UnaryOp):
        negative = layer.numerics.backend.negate(_follow(rule.operand, layer, values))
        if isinstance(rule.operand, ast.Constant):
            return layer.constant(host(negative).item(), values["g"].ndim)
        return layer.enter(negative)
    if isinstance(rule, ast.Call):
        return layer.elementwise(rule.func.id, *(_follow(part, layer, values) for part in rule.args))
    parts = [_follow(part, layer, values) for part in (rule.left, rule.right)]
    return layer.elementwise(_OPERATIONS[type(rule.op)], *parts)


def operate(operator, inputs: tuple[Tensor, ...], layer) -> Tensor:
    """A user-defined operator as a layer.

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


def _rule_gradient(node: Tensor, gradient) -> tuple:
    layer, (name, entered) = node.layer, node.saved
    values = {"g": layer.enter(gradient), "y": node.value, **dict(zip("ab", entered, strict=False))}
    every = layer.design.roles["elementwise"].stochastic  # random bits follow from places, not from what is needed
    return tuple(
        _follow(_parsed(rule), layer, values) if every or parent.requires_gradient else None
        for rule, parent in zip(RULES[name], node.parents, strict=True)
    )


def _power_gradient(node: Tensor, gradient) -> tuple:
    layer, (entered, exponent) = node.layer, node.saved
    gradient = layer.enter(gradient)
    slope = layer.elementwise(
        "multiply", layer.constant(exponent, entered.ndim), _power(layer.elementwise, layer, entered, exponent - 1.0)
    )
    return (layer.elementwise("multiply", gradient, slope),)


def _function_gradient(node: Tensor, gradient) -> tuple:
    layer, (slope, *operand) = node.layer, node.saved
    return (layer.elementwise("multiply", layer.enter(gradient), slope(layer, node.value, *operand)),)


GRADIENTS["function"] = _function_gradient
GRADIENTS["operator"] = _operator_gradient
GRADIENTS["power"] = _power_gradient
GRADIENTS["rule"] = _rule_gradient

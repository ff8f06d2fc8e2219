"""Reverse-mode differentiation, small and in a fixed order.

A Tensor is a value, the operation that made it and a tuple of parents. `Tensor.backward` walks the graph once,
iteratively, in reverse topological order, and adds up gradients in that order: the same graph gives the same bits. What
each operation does backwards stands in one table, `GRADIENTS`.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = [
    "GRADIENTS",
    "Parameter",
    "Tensor",
    "add",
    "cast",
    "linear",
    "multiply",
    "relu",
    "softmax_cross_entropy",
]


class Tensor:
    """A value in a graph of operations.

    Parameters
    ----------
    value : array
        Carriers (`softnum.train.backend`).
    backend : NumpyBackend
        The object that computes with it.
    op : str, optional
        The operation that made it; None for a leaf.
    parents : tuple of Tensor
        What it was made from.
    saved : tuple
        What the gradient rule needs besides the parents.
    requires_gradient : bool, optional
        Default: whether a parent does.
    name : str
        For error messages.

    Attributes
    ----------
    gradient : array or None
        Set by `backward` on every tensor of the graph that requires one.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import tensor
    >>> from softnum.train.backend import NumpyBackend
    >>> x = tensor.Tensor(np.float32([[1.0, 2.0]]), NumpyBackend(np.float32), requires_gradient=True)
    >>> loss = tensor.softmax_cross_entropy(tensor.relu(x), np.array([1]))
    >>> loss.backward()
    >>> x.gradient.round(4)
    array([[ 0.2689, -0.2689]])
    """

    __slots__ = ("backend", "gradient", "name", "op", "parents", "requires_gradient", "saved", "value")

    def __init__(self, value, backend, *, op=None, parents=(), saved=(), requires_gradient=None, name="") -> None:
        self.value = value
        self.backend = backend
        self.op = op
        self.parents = parents
        self.saved = saved
        self.name = name
        self.gradient = None
        if requires_gradient is None:
            requires_gradient = any(parent.requires_gradient for parent in parents)
        self.requires_gradient = requires_gradient

    def backward(self, seed: float = 1.0) -> None:
        """Set `gradient` on every tensor that this one depends on.

        Parameters
        ----------
        seed : float
            Gradient of this tensor, which must be a single number; the loss scale of a design goes in here.

        Raises
        ------
        NotImplementedError
            If an operation has no rule in `GRADIENTS`.
        """
        order = self._order()
        for node in order:
            node.gradient = None
        self.gradient = seed
        for node in reversed(order):
            if node.op is None or node.gradient is None:
                continue
            if node.op not in GRADIENTS:
                raise NotImplementedError(
                    f"operation {node.op!r} has no gradient rule; add one to softnum.train.tensor.GRADIENTS "
                    f"(rules: {', '.join(GRADIENTS)})"
                )
            parts = GRADIENTS[node.op](node, node.gradient)
            for parent, part in zip(node.parents, parts, strict=True):
                if part is None or not parent.requires_gradient:
                    continue
                parent.gradient = part if parent.gradient is None else self.backend.add(parent.gradient, part)

    def _order(self) -> list[Tensor]:
        """The graph below, each tensor after all its parents; parents in the order of their tuples."""
        order, seen, stack = [], set(), [(self, False)]
        while stack:
            node, done = stack.pop()
            if done:
                order.append(node)
            elif id(node) not in seen and node.requires_gradient:
                seen.add(id(node))
                stack.append((node, True))
                stack.extend((parent, False) for parent in reversed(node.parents))
        return order


class Parameter(Tensor):
    """A leaf that an optimiser updates; `value` is its master copy.

    Parameters
    ----------
    value : array
    layer : LayerNumerics
        Whose roles say how it is stored and updated.
    name : str

    Examples
    --------
    >>> from softnum.train import Numerics, load_design, make_network
    >>> network = make_network("mlp")
    >>> network.initialise(Numerics(load_design("a-float32"), network.layer_names, seed=1))
    >>> [(parameter.name, parameter.value.shape) for parameter in network.parameters[:2]]
    [('fc1.weight', (64, 128)), ('fc1.bias', (128,))]
    """

    __slots__ = ("layer",)

    def __init__(self, value, layer, name: str) -> None:
        super().__init__(value, layer.numerics.backend, requires_gradient=True, name=name)
        self.layer = layer


# -- operations --------------------------------------------------------------------------------------------------------


def linear(x: Tensor, weight: Tensor, bias: Tensor, layer) -> Tensor:
    """x @ weight + bias in a layer's arithmetic.

    The operands are rounded to ``activations`` (``input`` in the first layer) and ``weights``; the bias is rounded to
    the forward unit's accumulator and is its initial value, as in hardware. The result is what the accumulator holds.

    Parameters
    ----------
    x : Tensor (B, inputs)
    weight : Tensor (inputs, outputs)
    bias : Tensor (outputs,)
    layer : LayerNumerics

    Returns
    -------
    Tensor (B, outputs)
    """
    operand = layer.round(layer.operand_role, x.value)
    weights = layer.round("weights", weight.value, of=layer.format("master"))
    start = layer.round_bias(bias.value)
    value = layer.matmul("forward", operand, weights, start)
    return Tensor(value, x.backend, op="linear", parents=(x, weight, bias), saved=(operand, weights, layer))


def relu(x: Tensor) -> Tensor:
    """max(x, 0), exact; its gradient at 0 is 0."""
    return Tensor(x.backend.positive_part(x.value), x.backend, op="relu", parents=(x,))


def cast(x: Tensor, role: str, layer, *, of=None) -> Tensor:
    """x, values of the format of= if given, rounded to a role of a layer; the gradient passes "straight through"."""
    return Tensor(layer.round(role, x.value, of=of), x.backend, op="cast", parents=(x,))


def add(x: Tensor, y: Tensor) -> Tensor:
    """x + y of equal shapes, rounded to the carrier; follow it by a cast to a role."""
    _same_shape("add", x, y)
    return Tensor(x.backend.add(x.value, y.value), x.backend, op="add", parents=(x, y))


def multiply(x: Tensor, y: Tensor) -> Tensor:
    """x * y, element by element, of equal shapes, rounded to the carrier; follow it by a cast to a role."""
    _same_shape("multiply", x, y)
    return Tensor(x.backend.multiply(x.value, y.value), x.backend, op="multiply", parents=(x, y))


def softmax_cross_entropy(logits: Tensor, labels) -> Tensor:
    """Mean over a batch of -log softmax(logits)[label], in binary64.

    Parameters
    ----------
    logits : Tensor (B, C)
    labels : integer array (B,)

    Returns
    -------
    Tensor
        Its value is a float, NaN if a logit is not finite.
    """
    loss, probabilities = logits.backend.softmax_cross_entropy(logits.value, labels)
    saved = (probabilities, labels)
    return Tensor(loss, logits.backend, op="softmax_cross_entropy", parents=(logits,), saved=saved)


def _same_shape(op: str, x: Tensor, y: Tensor) -> None:
    if x.value.shape != y.value.shape:
        raise ValueError(f"{op} needs equal shapes, got {x.value.shape} and {y.value.shape}")


# -- gradient rules ----------------------------------------------------------------------------------------------------


def _linear_gradient(node: Tensor, gradient) -> tuple:
    operand, weights, layer = node.saved
    backend = node.backend
    error = layer.round("errors", gradient)
    data = None
    if node.parents[0].requires_gradient:
        data = layer.matmul("backward_data", error, backend.transpose(weights))
    product = layer.matmul("backward_weight", backend.transpose(operand), error)
    ones = backend.ones((1, error.shape[0]))
    column_sums = layer.matmul("backward_weight", ones, error)
    bias = backend.reshape(layer.weight_gradient(column_sums), (error.shape[1],))
    return data, layer.weight_gradient(product), bias


def _cross_entropy_gradient(node: Tensor, gradient) -> tuple:
    probabilities, labels = node.saved
    return (node.backend.cross_entropy_error(probabilities, labels, gradient),)


def _multiply_gradient(node: Tensor, gradient) -> tuple:
    x, y = node.parents
    return node.backend.multiply(gradient, y.value), node.backend.multiply(gradient, x.value)


#: operation -> rule(node, gradient of the node) -> one gradient per parent (None where there is none)
GRADIENTS: dict[str, Callable[[Tensor, object], tuple]] = {
    "add": lambda node, gradient: (gradient, gradient),
    "cast": lambda node, gradient: (gradient,),
    "linear": _linear_gradient,
    "multiply": _multiply_gradient,
    "relu": lambda node, gradient: (node.backend.where_positive(node.value, gradient),),
    "softmax_cross_entropy": _cross_entropy_gradient,
}

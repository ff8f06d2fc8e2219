"""Reverse-mode differentiation, small and in a fixed order.

A Tensor is a value, the operation that made it and a tuple of parents. `Tensor.backward` walks the graph once,
iteratively, in reverse topological order, and adds up gradients in that order: the same graph gives the same bits. What
each operation does backwards stands in one table, `GRADIENTS`.
"""

from __future__ import annotations

from collections.abc import Callable

from softnum.runtime.plain import check_plain

__all__ = [
    "GRADIENTS",
    "Parameter",
    "Tensor",
    "add",
    "cast",
    "linear",
    "multiply",
    "part",
    "relu",
    "reshape",
    "softmax_cross_entropy",
    "subtract",
]


class Tensor:
    """A value in a graph of operations.

    Parameters
    ----------
    value : array
        Carriers (`softnum.train.engine.backend`).
    backend : NumpyBackend
        The object that computes operations on it.
    op : str, optional
        The operation that made it; None for a leaf.
    parents : tuple of Tensor
        The operands of that operation.
    saved : tuple
        Values that the gradient rule needs besides the parents.
    requires_gradient : bool, optional
        Default: whether a parent does.
    name : str
        For error messages.
    layer : LayerNumerics, optional
        Of a result of the layer's element-by-element arithmetic: that is also what adds up its gradients, where it was
        used more than once. Without one they are added on the carrier.

    Attributes
    ----------
    gradient : array or None
        Set by `backward` on every tensor of the graph that requires one.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train.engine import tensor
    >>> from softnum.train.engine.backend import NumpyBackend
    >>> x = tensor.Tensor(np.float32([[1.0, 2.0]]), NumpyBackend(np.float32), requires_gradient=True)
    >>> loss = tensor.softmax_cross_entropy(tensor.relu(x), np.array([1]))
    >>> loss.backward()
    >>> x.gradient.round(4)
    array([[ 0.2689, -0.2689]])
    """

    __slots__ = ("backend", "gradient", "layer", "name", "op", "parents", "requires_gradient", "saved", "value")

    def __init__(
        self, value, backend, *, op=None, parents=(), saved=(), requires_gradient=None, name="", layer=None
    ) -> None:  # fmt: skip
        self.value = value
        self.backend = backend
        self.op = op
        self.parents = parents
        self.saved = saved
        self.name = name
        self.layer = layer
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
        check_plain("backward")
        order = self._order()
        for node in order:
            node.gradient = None
        self.gradient = seed
        for node in reversed(order):
            if node.op is None or node.gradient is None:
                continue
            if node.op not in GRADIENTS:
                raise NotImplementedError(
                    f"operation {node.op!r} has no gradient rule; add one to softnum.train.engine.tensor.GRADIENTS "
                    f"(rules: {', '.join(GRADIENTS)})"
                )
            parts = GRADIENTS[node.op](node, node.gradient)
            for parent, part in zip(node.parents, parts, strict=True):
                if part is None or not parent.requires_gradient:
                    continue
                parent.gradient = part if parent.gradient is None else parent.sum_gradients(parent.gradient, part)

    def sum_gradients(self, first, second):
        """The sum of two gradients of this tensor: of the use made last and of those before it."""
        if self.layer is None:
            return self.backend.add(first, second)
        return self.layer.elementwise("add", self.layer.enter(first), self.layer.enter(second))

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

    Attributes
    ----------
    kept : bool array or None
        Which elements the working copy made last kept; None: all.

    Examples
    --------
    >>> from softnum.train import Numerics, load_design, make_network
    >>> network = make_network("mlp")
    >>> network.initialise(Numerics(load_design("a-float32"), network.layer_names, seed=1))
    >>> [(parameter.name, parameter.value.shape) for parameter in network.parameters[:2]]
    [('fc1.weight', (64, 128)), ('fc1.bias', (128,))]
    """

    __slots__ = ("kept",)

    def __init__(self, value, layer, name: str) -> None:
        self.kept = None
        super().__init__(value, layer.numerics.backend, requires_gradient=True, name=name, layer=layer)

    def frozen(self) -> Parameter:
        """The same value as a constant: no gradient of it is computed."""
        constant = Parameter(self.value, self.layer, self.name)
        constant.requires_gradient = False
        return constant

    def sum_gradients(self, first, second):
        """The sum of two gradients, of a parameter that was used twice, rounded once to ``weight_gradients``."""
        return self.layer.axpy("weight_gradients", 1.0, second, first)


# -- operations --------------------------------------------------------------------------------------------------------


def linear(x: Tensor, weight: Tensor, start: Tensor | tuple[Tensor, Tensor] | None, layer, *, weights=None) -> Tensor:
    """x @ weight + start in a layer's arithmetic.

    The operands are rounded to ``activations`` (``input`` in the first layer) and ``weights``, and pruned where these
    roles are sparse; start, a bias or the result of another product, is rounded to the forward unit's accumulator and
    is its initial value, as in hardware. Of two biases that is their exact sum, rounded once. The result is what the
    accumulator holds.

    Parameters
    ----------
    x : Tensor (B, inputs)
    weight : Parameter (inputs, outputs)
    start : Parameter (outputs,), two of them, or Tensor (B, outputs), optional
        None: sums start from +0.
    layer : LayerNumerics
    weights : array (inputs, outputs), optional
        The working copy of weight, for a layer that is used more than once in an iteration; default: rounded here.

    Returns
    -------
    Tensor (B, outputs)
    """
    operand, kept = layer.operand(layer.operand_role, x.value, (x.value.shape, 1), use=weight.name)
    if weights is None:
        weights = layer.working_copy(weight, (weight.value.shape, 0))
    parents, initial = (x, weight), None
    if isinstance(start, tuple):
        parents = (x, weight, *start)
        initial = layer.round_sum(*(bias.value for bias in start))
    elif start is not None:
        parents = (x, weight, start)
        initial = layer.round_start(start.value, of=layer.format("master") if isinstance(start, Parameter) else None)
    value = layer.matmul("forward", operand, weights, initial)
    return Tensor(value, x.backend, op="linear", parents=parents, saved=(operand, weights, kept, layer))


def relu(x: Tensor) -> Tensor:
    """max(x, 0), exact; its gradient at 0 is 0."""
    return Tensor(x.backend.positive_part(x.value), x.backend, op="relu", parents=(x,), layer=x.layer)


def cast(x: Tensor, role: str, layer, *, of=None) -> Tensor:
    """x, values of the format of= if given, rounded to a role of a layer; the gradient passes "straight through"."""
    return Tensor(layer.round(role, x.value, of=of), x.backend, op="cast", parents=(x,))


def part(x: Tensor, rows: slice, columns: slice) -> Tensor:
    """x[rows, columns] of a matrix; its gradient is +0 elsewhere, so that those of parts that share nothing add up
    exactly (but for the sign of a zero)."""
    return Tensor(x.backend.part(x.value, rows, columns), x.backend, op="part", parents=(x,), saved=(rows, columns))


def reshape(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The same elements, in C order, in another shape; one of its sizes may be -1."""
    return Tensor(x.backend.reshape(x.value, shape), x.backend, op="reshape", parents=(x,), layer=x.layer)


def add(x: Tensor, y: Tensor, layer) -> Tensor:
    """x + y of equal shapes; operands and sum in the role ``elementwise`` of a layer."""
    return _elementwise("add", x, y, layer)


def subtract(x: Tensor, y: Tensor, layer) -> Tensor:
    """x - y of equal shapes; operands and difference in the role ``elementwise`` of a layer."""
    return _elementwise("subtract", x, y, layer)


def multiply(x: Tensor, y: Tensor, layer) -> Tensor:
    """x * y, element by element, of equal shapes; operands and product in the role ``elementwise`` of a layer."""
    return _elementwise("multiply", x, y, layer)


def _elementwise(op: str, x: Tensor, y: Tensor, layer) -> Tensor:
    if x.value.shape != y.value.shape:
        raise ValueError(f"{op} needs equal shapes, got {x.value.shape} and {y.value.shape}")
    operands = layer.enter(x.value), layer.enter(y.value)
    value = layer.delivered(op, *operands)
    return Tensor(value, x.backend, op=op, parents=(x, y), saved=operands, layer=layer)


def softmax_cross_entropy(logits: Tensor, labels, *, count: int | None = None) -> Tensor:
    """The sum over a batch of -log softmax(logits)[label], divided by a count, in binary64.

    Parameters
    ----------
    logits : Tensor (B, C)
    labels : integer array (B,), or float64 array (B, C)
        Classes; or targets, probabilities of all classes, with which -log softmax(logits) is weighted.
    count : int, optional
        Default: B, so that it is the mean.

    Returns
    -------
    Tensor
        Its value is a float, NaN if a logit is not finite.
    """
    count = len(labels) if count is None else count
    loss, probabilities = logits.backend.softmax_cross_entropy(logits.value, labels, count)
    saved = (probabilities, labels, count)
    return Tensor(loss, logits.backend, op="softmax_cross_entropy", parents=(logits,), saved=saved)


# -- gradient rules ----------------------------------------------------------------------------------------------------


def _linear_gradient(node: Tensor, gradient) -> tuple:
    operand, weights, kept, layer = node.saved
    error = layer.errors(gradient, (gradient.shape, 1), use=node.parents[1].name)
    data = None
    if node.parents[0].requires_gradient:
        data = layer.returned(operand, layer.matmul("backward_data", error, layer.turned(weights)))
        data = layer.select(layer.operand_role, data, kept)
    if not any(parent.requires_gradient for parent in node.parents[1:]):
        return data, *(None for _ in node.parents[1:])
    product = layer.returned(weights, layer.matmul("backward_weight", layer.turned(operand), error))
    if len(node.parents) == 2:
        return data, layer.weight_gradient(product)
    if node.parents[2].value.ndim == 2:  # the result of another product, whose layer rounds its own error
        return data, layer.weight_gradient(product), gradient
    sums = layer.column_sums(error)
    biases = [node.backend.reshape(layer.weight_gradient(sums), (error.shape[1],)) for _ in node.parents[2:]]
    return data, layer.weight_gradient(product), *biases


def _cross_entropy_gradient(node: Tensor, gradient) -> tuple:
    probabilities, labels, count = node.saved
    return (node.backend.cross_entropy_error(probabilities, labels, count, gradient),)


def _multiply_gradient(node: Tensor, gradient) -> tuple:
    gradient = node.layer.enter(gradient)
    return tuple(node.layer.elementwise("multiply", gradient, other) for other in reversed(node.saved))


#: operation -> rule(node, gradient of the node) -> one gradient per parent (None where there is none)
GRADIENTS: dict[str, Callable[[Tensor, object], tuple]] = {
    "add": lambda node, gradient: (gradient, gradient),
    "cast": lambda node, gradient: (gradient,),
    "linear": _linear_gradient,
    "multiply": _multiply_gradient,
    "part": lambda node, gradient: (node.backend.place(gradient, node.parents[0].value.shape, *node.saved),),
    "relu": lambda node, gradient: (node.backend.where_positive(node.value, gradient),),
    "reshape": lambda node, gradient: (node.backend.reshape(gradient, node.parents[0].value.shape),),
    "softmax_cross_entropy": _cross_entropy_gradient,
    "subtract": lambda node, gradient: (gradient, node.backend.negate(gradient)),
}

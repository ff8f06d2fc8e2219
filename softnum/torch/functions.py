"""The functions that have an arithmetic of softnum's, on arrays: each computed by the layer of `softnum.train`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from softnum.torch.calls import Call
from softnum.train.engine.binary64 import host
from softnum.train.engine.functions import EXACT, RULES, activation, function, power
from softnum.train.engine.tensor import (
    GRADIENTS,
    Parameter,
    Tensor,
    add,
    cast,
    linear,
    multiply,
    softmax_cross_entropy,
    subtract,
)  # fmt: skip
from softnum.train.layers.attention import log_softmax, matmul, softmax
from softnum.train.layers.cells import Cell, LSTMCell, RNNCell
from softnum.train.layers.convolution import conv2d
from softnum.train.layers.normalisation import Buffer, batch_norm, group_norm, layer_norm, rms_norm
from softnum.train.layers.pooling import avg_pool2d, max_pool2d
from softnum.train.layers.positions import rotary
from softnum.train.layers.sequences import (
    embedding,
    expand,
    lookup,
    masked,
    running_products,
    running_sums,
    scale,
    scatter_add,
    sums,
    take,
)  # fmt: skip

__all__ = ["ALONG", "FUNCTIONS", "NUMBERED", "UNARY", "Function", "convolved"]


@dataclass(frozen=True)
class Function:
    """A function of tensors that a layer computes.

    Parameters
    ----------
    graph : callable
        (call, arrays, needs, options) -> leaves, result: the tensors of `softnum.train` that stand for the arrays, in
        matrices as its layer takes them, and the layer's result.
    shape : callable
        (shapes of the tensors, options) -> shape of the result.
    rows : callable
        (shapes, options) -> shape of the layer's result, where that is another.
    transposed : tuple of int
        Which leaves are transposes of their arrays.
    looked_up : bool
        Whether its weights are rows that are looked up.
    of : int
        The array whose dtype the result has, where no option says so.
    options : dict
        Name -> how many integers it is; 0: it is one, no tuple; -1: all that are left.
    constants : tuple of str
        The names of its numbers.
    changed : tuple of int
        Which arrays are buffers; their new values are results too.
    loss : bool
        Whether the result is a single number, of binary64.
    product : bool
        Whether it multiplies matrices, or looks up their rows.
    values : bool
        Whether gradients depend on the numbers in the arrays.
    chained : bool
        Whether results of its products enter other operations of it; it then rounds the gradients of its weights.
    batch : str
        What its arrays are on several ranks (`softnum.torch.calls.Call.begin`).
    """

    graph: Callable
    shape: Callable
    rows: Callable | None = None
    transposed: tuple[int, ...] = ()
    looked_up: bool = False
    of: int = 0
    options: dict[str, int] = field(default_factory=dict)
    constants: tuple[str, ...] = ()
    changed: tuple[int, ...] = ()
    loss: bool = False
    product: bool = False
    values: bool = True
    chained: bool = False
    batch: str = "stacked"

    @property
    def elementwise(self) -> bool:
        """Whether its results are of the element-by-element arithmetic, in which their gradients are added."""
        return not (self.product or self.loss)

    def like(self, options: dict) -> int:
        """The array whose dtype the result has."""
        return options.get("of", self.of)

    def named(self, numbers: list[int], constants: list[float]) -> dict:
        """Options by their names, from the numbers that an operation takes."""
        if not (self.options or self.constants):
            return {}
        found, rest = dict(zip(self.constants, constants, strict=True)), list(numbers)
        for name, count in self.options.items():
            taken = len(rest) if count < 0 else max(count, 1)
            found[name] = tuple(rest[:taken]) if count else rest[0]
            rest = rest[taken:]
        return found

    def forward(self, call: Call, arrays: list[np.ndarray], options: dict) -> list[np.ndarray]:
        """The results for some arrays."""
        call.chained = self.chained
        leaves, result = self.graph(call, arrays, [False] * len(arrays), options)
        if self.loss:
            return [np.asarray(result.value)]
        value = result.value.reshape(self.shape([x.shape for x in arrays], options))
        return [value, *(leaves[index].value for index in self.changed)]

    def backward(self, call: Call, gradient, arrays: list[np.ndarray], needs: list[bool], options: dict) -> list:
        """The gradients of those arrays that need one.

        Operands are rounded again from the same numbers, by the same random bits: nothing else is saved of the forward
        pass.
        """
        call.known, call.chained = True, self.chained
        leaves, result = self.graph(call, arrays, needs, options)
        call.begin_backward()
        shapes = [x.shape for x in arrays]
        rows = (self.rows or self.shape)(shapes, options)
        result.backward(float(host(gradient)) if self.loss else gradient.reshape(rows))
        gradients = []
        for index, (leaf, x) in enumerate(zip(leaves, arrays, strict=True)):
            if needs[index]:
                part = call.backend.zeros(leaf.value.shape) if leaf.gradient is None else leaf.gradient
                gradients.append(part.T if index in self.transposed else part.reshape(x.shape))
        return gradients


def _matrix(x):
    """An array with all axes but the last in one."""
    return x.reshape((math.prod(x.shape[:-1]), x.shape[-1]))


def _leaf(call: Call, x, need: bool) -> Tensor:
    return Tensor(x, call.backend, requires_gradient=need)


def _parameter(call: Call, x, need: bool, name: str) -> Parameter:
    parameter = Parameter(x, call, f"{call.name}.{name}")
    parameter.requires_gradient = need
    return parameter


def _linear(call: Call, arrays, needs, options):
    x, weight, *starts = arrays
    leaves = [
        _leaf(call, _matrix(x), needs[0]),
        _parameter(call, weight.T, needs[1], "weight"),
    ]
    call.starts_from_rows = any(start.ndim > 1 for start in starts)
    for start, need in zip(starts, needs[2:], strict=True):
        if start.ndim == 1:
            leaves.append(_parameter(call, start, need, "bias"))
        else:
            leaves.append(_leaf(call, _matrix(start), need))
    start = tuple(leaves[2:]) if len(starts) > 1 else leaves[2] if starts else None
    return leaves, linear(*leaves[:2], start, call)


def convolved(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """How many results a convolution has along an axis.

    >>> convolved(32, 3, stride=2, padding=1, dilation=1)
    16
    """
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def _conv_shape(shapes, options):
    (n, _, *size), (filters, _, *kernel) = shapes[:2]
    keys = ("stride", "padding", "dilation")
    geometry = zip(size, kernel, *(options[key] for key in keys), strict=True)
    return (n, filters, *(convolved(*axis) for axis in geometry))


def _conv2d(call: Call, arrays, needs, options):
    leaves = [
        _leaf(call, arrays[0], needs[0]),
        *(_parameter(call, *part) for part in zip(arrays[1:], needs[1:], ("weight", "bias"), strict=False)),
    ]
    geometry = {key: options[key] for key in ("stride", "padding", "dilation", "groups")}
    return leaves, conv2d(*leaves[:2], leaves[2] if len(leaves) > 2 else None, call, **geometry)


def _matmul(call: Call, arrays, needs, options):
    leaves = [_leaf(call, x, need) for x, need in zip(arrays, needs, strict=True)]
    return leaves, matmul(*leaves, call)


def _output(call: Call, arrays, needs, options):
    leaf = _leaf(call, arrays[0], needs[0])
    return [leaf], cast(leaf, "output", call, of=call.design.delivered)


def _embedding(call: Call, arrays, needs, options):
    rows, weight = arrays
    parameter = _parameter(call, weight, needs[1], "weight")
    return [_leaf(call, rows, False), parameter], embedding(rows.reshape(-1), parameter, call)


# -- step by step ------------------------------------------------------------------------------------------------------


class _ReLUCell(RNNCell):
    """h = relu((x @ W + b) + h @ U)."""

    functions = ("relu",)


def _recurrent(kind: type[Cell], states: int) -> Function:
    """A cell's steps, from what was read, the states before them, and the weights.

    The result has the hidden states of all steps, and then what other states there are after the last one. States
    before the first step that are 0 enter no product, unless a gradient of them is asked for.
    """

    def graph(call: Call, arrays, needs, options):
        read, *before, weight = arrays
        cell = kind(call.name, before[0].shape[-1], len(read))
        leaves = [
            _leaf(call, _matrix(read), needs[0]),
            *(_leaf(call, x, need) for x, need in zip(before, needs[1:-1], strict=True)),
            _parameter(call, weight.T, needs[-1], "weight"),
        ]
        cell.parameters = leaves[-1:]
        given = options["given"] or any(needs[1:-1]) or any(host(x).any() for x in before)
        found = cell.states(leaves[0], len(before[0]), tuple(leaves[1:-1]) if given else None)
        parts, backend = (*(state[0] for state in found), *found[-1][1:]), call.backend
        steps = backend.concatenate([backend.reshape(x.value, (1, *x.value.shape)) for x in parts], 0)
        return leaves, Tensor(steps, backend, op="steps", parents=parts)

    def shape(shapes, options):
        return shapes[0][0] + states - 1, *shapes[1]

    return Function(graph, shape, transposed=(1 + states,), options={"given": 0}, chained=True)


def _of_steps(node: Tensor, gradient) -> tuple:
    """The gradients of the states that something depends on."""
    parts = node.backend.split(gradient, [1] * len(gradient), 0)
    needed = host(gradient).any(axis=tuple(range(1, gradient.ndim)))
    return tuple(part.reshape(part.shape[1:]) if need else None for part, need in zip(parts, needed, strict=True))


GRADIENTS["steps"] = _of_steps


# -- element by element ------------------------------------------------------------------------------------------------


_OF_EQUALS = {"add": add, "multiply": multiply, "subtract": subtract}


def _of_two(name: str) -> Callable:
    def graph(call: Call, arrays, needs, options):
        leaves = [_leaf(call, x, need) for x, need in zip(arrays, needs, strict=True)]
        shape, number = np.broadcast_shapes(*(x.shape for x in arrays)), options["number"]
        parts = [
            leaf if place == number or leaf.value.shape == shape else expand(leaf, shape, call)
            for place, leaf in enumerate(leaves, start=1)
        ]
        if name in _OF_EQUALS and not number:
            return leaves, _OF_EQUALS[name](*parts, call)
        return leaves, function(name, tuple(parts), call)

    return graph


def _broadcast(shapes, options):
    return np.broadcast_shapes(*shapes)


def _power(call: Call, arrays, needs, options):
    leaf = _leaf(call, arrays[0], needs[0])
    return [leaf], power(leaf, options["exponent"], call)


def _of_one(layer: Callable) -> Callable:
    """What a layer of `softnum.train` makes of one array, and options by name."""

    def graph(call: Call, arrays, needs, options):
        leaf = _leaf(call, arrays[0], needs[0])
        return [leaf], layer(leaf, call, **options)

    return graph


def _expand(call: Call, arrays, needs, options):
    leaf = _leaf(call, arrays[0], needs[0])
    return [leaf], expand(leaf, options["shape"], call)


def _lookup(call: Call, arrays, needs, options):
    leaf = _leaf(call, arrays[0], needs[0])
    return [leaf, _leaf(call, arrays[1], False)], lookup(leaf, arrays[1], call)


def _scatter_add(call: Call, arrays, needs, options):
    x, rows, parts = (_leaf(call, array, need) for array, need in zip(arrays, needs, strict=True))
    return [x, rows, parts], scatter_add(x, arrays[1], parts, call)


def _dropout(call: Call, arrays, needs, options):
    leaf = _leaf(call, arrays[0], needs[0])
    kept = call.backend.expand(arrays[1], arrays[0].shape)
    return [leaf, _leaf(call, arrays[1], False)], scale(masked(leaf, kept), 1.0 / (1.0 - options["rate"]), call)


def _named(name: str) -> Callable:
    def graph(call: Call, arrays, needs, options):
        leaf = _leaf(call, arrays[0], needs[0])
        return [leaf], activation(name, leaf, call)

    return graph


def _scale(call: Call, arrays, needs, options):
    leaf = _leaf(call, arrays[0], needs[0])
    return [leaf], scale(leaf, options["factor"], call)


def _rotary(call: Call, arrays, needs, options):
    leaf = _leaf(call, _matrix(arrays[0]), needs[0])
    return [leaf], rotary(leaf, call, batch=options["batch"], heads=options["heads"], base=options["base"])


def _softmax(call: Call, arrays, needs, options):
    leaves = [_leaf(call, x, need) for x, need in zip(arrays, needs, strict=True)]
    how = {name: bool(options[name]) for name in ("infinite", "empty")}
    return leaves, softmax(leaves[0], call, mask=host(arrays[1]) if len(arrays) > 1 else None, **how)


def _normalised(call: Call, arrays, needs) -> list:
    parts = zip(arrays[1:], needs[1:], ("weight", "bias"), strict=True)
    return [_leaf(call, arrays[0], needs[0]), *(_parameter(call, *part) for part in parts)]


def _layer_norm(call: Call, arrays, needs, options):
    x, *rest = arrays
    leaves = _normalised(call, [_matrix(x), *rest], needs)
    return leaves, layer_norm(*leaves, call, epsilon=options["epsilon"])


def _rms_norm(call: Call, arrays, needs, options):
    x, gain = arrays
    leaves = [
        _leaf(call, _matrix(x), needs[0]),
        _parameter(call, gain, needs[1], "weight"),
    ]
    return leaves, rms_norm(*leaves, call, epsilon=options["epsilon"])


def _group_norm(call: Call, arrays, needs, options):
    leaves = _normalised(call, arrays, needs)
    return leaves, group_norm(*leaves, call, groups=options["groups"], epsilon=options["epsilon"])


def _batch_norm(call: Call, arrays, needs, options):
    leaves = [
        *_normalised(call, arrays[:3], needs[:3]),
        *(Buffer(x, f"{call.name}.{name}") for x, name in zip(arrays[3:], ("mean", "variance"), strict=True)),
    ]
    how = {"momentum": options["momentum"], "epsilon": options["epsilon"]}
    return leaves, batch_norm(*leaves, call, training=bool(options["training"]), **how)


def _cross_entropy(call: Call, arrays, needs, options):
    leaves = [_leaf(call, arrays[0], needs[0]), _leaf(call, arrays[1], False)]
    if arrays[1].ndim == 2:
        count = len(arrays[1]) if options["mean"] else 1
        return leaves, softmax_cross_entropy(leaves[0], np.asarray(host(arrays[1]), np.float64), count=count)
    rows = np.flatnonzero(arrays[1] != options["ignored"])
    count, labels = len(rows) if options["mean"] else 1, arrays[1][rows]
    if not len(rows):
        return leaves, Tensor(math.nan if options["mean"] else 0.0, call.backend)
    logits = leaves[0] if len(rows) == len(arrays[1]) else take(leaves[0], rows)
    return leaves, softmax_cross_entropy(logits, labels, count=count)


def _same(shapes, options):
    return shapes[0]


def _rows(shapes, options):
    return math.prod(shapes[0][:-1]), shapes[0][-1]


def _pool_shape(shapes, options):
    axes = zip(shapes[0][2:], options["window"], options["stride"], strict=True)
    return (*shapes[0][:2], *((size - window) // stride + 1 for size, window, stride in axes))


#: functions of one array, element by element, which a design's operators may replace
UNARY = ("relu", *EXACT, *(name for name, rules in RULES.items() if len(rules) == 1))
#: functions whose results are numbered as their operands are, element by element
NUMBERED = {*UNARY, "scale", "power", *(name for name, rules in RULES.items() if len(rules) == 2)}
#: functions along rows or in images: of a sample's own numbers, and parameters; the second ones of the first operand
ALONG = (
    "softmax", "log_softmax", "sums", "layer_norm", "rms_norm", "group_norm", "avg_pool2d", "max_pool2d", "dropout",
)  # fmt: skip
_UNUSED = ("add", "subtract")  # whose gradients use no values
_POOLED = {"options": {"window": 2, "stride": 2}}
#: name -> function
FUNCTIONS: dict[str, Function] = {
    "linear": Function(
        _linear,
        lambda shapes, options: (*shapes[0][:-1], shapes[1][0]),
        lambda shapes, options: (math.prod(shapes[0][:-1]), shapes[1][0]),
        transposed=(1,),
        product=True,
        batch="rows",
    ),
    "conv2d": Function(
        _conv2d,
        _conv_shape,
        options={"groups": 0, "stride": 2, "padding": 2, "dilation": 2},
        product=True,
        batch="rows",
    ),
    "matmul": Function(_matmul, lambda shapes, options: (*shapes[0][:-1], shapes[1][-1]), product=True),
    "embedding": Function(
        _embedding,
        lambda shapes, options: (*shapes[0], shapes[1][1]),
        lambda shapes, options: (math.prod(shapes[0]), shapes[1][1]),
        looked_up=True,
        of=1,
        product=True,
        batch="looked up",
    ),
    "lstm": _recurrent(LSTMCell, 2),
    "rnn_tanh": _recurrent(RNNCell, 1),
    "rnn_relu": _recurrent(_ReLUCell, 1),
    "output": Function(_output, lambda shapes, options: shapes[0], product=True),
    **{
        name: Function(_of_two(name), _broadcast, options={"of": 0, "number": 0}, values=name not in _UNUSED)
        for name, rules in RULES.items()
        if len(rules) == 2
    },
    **{name: Function(_named(name), _same) for name in UNARY},
    "scale": Function(_scale, _same, constants=("factor",), values=False),
    "power": Function(_power, _same, constants=("exponent",)),
    "expand": Function(_expand, lambda shapes, options: options["shape"], options={"shape": -1}, values=False),
    "sums": Function(_of_one(sums), lambda shapes, options: (*shapes[0][:-1], 1), values=False),
    "running_sums": Function(_of_one(running_sums), _same, values=False),
    "running_products": Function(_of_one(running_products), _same),
    "lookup": Function(_lookup, lambda shapes, options: (*shapes[1], *shapes[0][1:])),
    "scatter_add": Function(_scatter_add, _same),
    "dropout": Function(_dropout, _same, constants=("rate",)),
    "softmax": Function(_softmax, _same, options={"infinite": 0, "empty": 0}),
    "log_softmax": Function(_of_one(log_softmax), _same),
    "rotary": Function(_rotary, _same, _rows, options={"batch": 0, "heads": 0}, constants=("base",), values=False),
    "layer_norm": Function(_layer_norm, _same, _rows, constants=("epsilon",), batch="normalised"),
    "rms_norm": Function(_rms_norm, _same, _rows, constants=("epsilon",), batch="normalised"),
    "group_norm": Function(_group_norm, _same, options={"groups": 0}, constants=("epsilon",), batch="normalised"),
    "batch_norm": Function(
        _batch_norm, _same, options={"training": 0}, constants=("momentum", "epsilon"), changed=(3, 4)
    ),
    "avg_pool2d": Function(_of_one(avg_pool2d), _pool_shape, **_POOLED, values=False, batch="windows"),
    "max_pool2d": Function(_of_one(max_pool2d), _pool_shape, **_POOLED),
    "cross_entropy": Function(_cross_entropy, lambda shapes, options: (), options={"ignored": 0, "mean": 0}, loss=True),
}

"""The functions that have an arithmetic of softnum's, on arrays: each computed by the layer of `softnum.train`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from softnum.train.engine.tensor import Parameter, Tensor, cast, linear, reshape
from softnum.train.layers.attention import matmul
from softnum.train.layers.convolution import conv2d
from softnum.train.layers.sequences import embedding
from softnum.torch.arithmetic import Call

__all__ = ["FUNCTIONS", "Function", "convolved"]


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
        The array whose dtype the result has.
    weights : tuple of int
        Which arrays are parameters, where options say that there are any, and have gradients that the layer leaves as
        they are.
    options : dict
        Name -> how many integers it is; 0: it is one, no tuple.
    """

    graph: Callable
    shape: Callable
    rows: Callable | None = None
    transposed: tuple[int, ...] = ()
    looked_up: bool = False
    of: int = 0
    weights: tuple[int, ...] = ()
    options: dict[str, int] = field(default_factory=lambda: {"parameter": 0})

    def named(self, numbers: list[int]) -> dict:
        """Options by their names, from the integers that an operation takes."""
        found, rest = {}, list(numbers)
        for name, count in self.options.items():
            found[name] = tuple(rest[:count]) if count else rest[0]
            rest = rest[max(count, 1) :]
        return found

    def forward(self, call: Call, arrays: list[np.ndarray], options: dict) -> np.ndarray:
        """The result for some arrays."""
        _, result = self.graph(call, arrays, [False] * len(arrays), options)
        return result.value.reshape(self.shape([x.shape for x in arrays], options))

    def backward(self, call: Call, gradient, arrays: list[np.ndarray], needs: list[bool], options: dict) -> list:
        """The gradients of those arrays that need one.

        Operands are rounded again from the same numbers, by the same random bits: nothing else is saved of the forward
        pass.
        """
        call.known = True
        leaves, result = self.graph(call, arrays, needs, options)
        call.begin_backward()
        shapes = [x.shape for x in arrays]
        result.backward(gradient.reshape((self.rows or self.shape)(shapes, options)))
        gradients = []
        for index, (leaf, x) in enumerate(zip(leaves, arrays, strict=True)):
            if needs[index]:
                part = leaf.gradient
                if index in self.weights and options["parameter"]:
                    part = call.weight_gradient(part)
                gradients.append(part.T if index in self.transposed else part.reshape(x.shape))
        return gradients


def _leaf(call: Call, x, need: bool) -> Tensor:
    return Tensor(x, call.backend, requires_gradient=need)


def _parameter(call: Call, x, need: bool, name: str) -> Parameter:
    parameter = Parameter(x, call, f"{call.name}.{name}")
    parameter.requires_gradient = need
    return parameter


def _linear(call: Call, arrays, needs, options):
    x, weight, *bias = arrays
    call.own_weights = options["parameter"]
    leaves = [
        _leaf(call, x.reshape(-1, x.shape[-1]), needs[0]),
        _parameter(call, weight.T, needs[1], "weight"),
        *(_parameter(call, values, needs[2], "bias") for values in bias),
    ]
    return leaves, linear(leaves[0], leaves[1], leaves[2] if bias else None, call)


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
    call.own_weights = options["parameter"]
    leaves = [
        _leaf(call, arrays[0], needs[0]),
        *(_parameter(call, x, need, "weight") for x, need in zip(arrays[1:], needs[1:], strict=True)),
    ]
    geometry = {key: options[key] for key in ("stride", "padding", "dilation", "groups")}
    return leaves, conv2d(*leaves[:2], leaves[2] if len(leaves) > 2 else None, call, **geometry)


def _matmul(call: Call, arrays, needs, options):
    leaves = [_leaf(call, x, need) for x, need in zip(arrays, needs, strict=True)]
    return leaves, matmul(*leaves, call)


def _copy(call: Call, arrays, needs, options):
    leaf = _leaf(call, arrays[0], needs[0])
    return [leaf], reshape(leaf, leaf.value.shape)


def _output(call: Call, arrays, needs, options):
    leaf = _leaf(call, arrays[0], needs[0])
    return [leaf], cast(leaf, "output", call, of=call.design.units["forward"].result)


def _embedding(call: Call, arrays, needs, options):
    rows, weight = arrays
    call.own_weights = options["parameter"]
    parameter = _parameter(call, weight, needs[1], "weight")
    return [_leaf(call, rows, False), parameter], embedding(rows.reshape(-1), parameter, call)


#: name -> function
FUNCTIONS: dict[str, Function] = {
    "linear": Function(
        _linear,
        lambda shapes, options: (*shapes[0][:-1], shapes[1][0]),
        lambda shapes, options: (math.prod(shapes[0][:-1]), shapes[1][0]),
        transposed=(1,),
    ),
    "conv2d": Function(
        _conv2d, _conv_shape, options={"parameter": 0, "groups": 0, "stride": 2, "padding": 2, "dilation": 2}
    ),
    "matmul": Function(_matmul, lambda shapes, options: (*shapes[0][:-1], shapes[1][-1]), weights=(1,)),
    "embedding": Function(
        _embedding,
        lambda shapes, options: (*shapes[0], shapes[1][1]),
        lambda shapes, options: (math.prod(shapes[0]), shapes[1][1]),
        looked_up=True,
        of=1,
    ),
    "output": Function(_output, lambda shapes, options: shapes[0], options={}),
    "parameter": Function(_copy, lambda shapes, options: shapes[0], weights=(0,)),
}

"""Functions of one and of two operands, and of more that are made of these."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from softnum.torch.exact.operands import floating, refused

__all__ = [
    "activation", "add", "addcdiv", "addcmul", "celu", "divide", "elu", "floor_divide", "gelu", "glu", "hardsigmoid",
    "hardswish", "hypot", "leaky_relu", "lerp", "logaddexp", "logsigmoid", "mish", "multiply", "of_one", "outer",
    "power", "prelu", "relu", "replacing", "root", "rrelu", "selu", "silu", "softplus", "softshrink", "softsign",
    "square", "subtract", "swapped", "tanhshrink",
]  # fmt: skip


def _is_number(x) -> bool:
    return not isinstance(x, torch.Tensor)


# -- of two operands ---------------------------------------------------------------------------------------------------


def _of_two(name: str, plain: Callable) -> Callable:
    def handler(mode, x, y, *, alpha=1, out=None, in_place=False):
        if name == "multiply" and any(isinstance(part, torch.Tensor) and part.is_complex() for part in (x, y)):
            return _complex_product(mode, x, y)
        if not floating(x, y):
            return plain(x, y) if alpha == 1 else plain(x, y, alpha=alpha)
        if out is not None:
            refused(mode, name, "without out")
        if alpha != 1:
            y = multiply(mode, y, alpha)
        if name == "multiply" and (_is_number(x) or _is_number(y)):
            x, factor = (y, x) if _is_number(x) else (x, y)
            return mode.apply("scale", [x], constants=(float(factor),))
        number = next((place for place, part in enumerate((x, y), start=1) if _is_number(part)), 0)
        dtype = x.dtype if in_place else _dtype_of(x, y)
        like = y if number == 1 else x
        parts = [_operand(part, like, dtype) for part in (x, y)]
        of = next((place for place, part in enumerate(parts) if part.dtype == dtype and place + 1 != number), None)
        if of is None:  # bfloat16 and float16
            parts[0], of = parts[0].to(dtype), 0
        return mode.apply(name, parts, options=(of, number))

    return handler


def _dtype_of(*operands) -> torch.dtype:
    """The dtype of what is computed of tensors and numbers, one of them of floating point, as PyTorch promotes it."""
    tensors = [x for x in operands if floating(x)]
    dtypes = {x.dtype for x in [x for x in tensors if x.dim()] or tensors}
    return dtypes.pop() if len(dtypes) == 1 else torch.promote_types(*dtypes)


def _operand(x, like, dtype):
    """A number or a tensor as an operand; what is not of floating point, in binary64."""
    if _is_number(x):
        return torch.full((), x, dtype=torch.float64, device=like.device)
    return x if x.is_floating_point() else x.to(dtype if x.dtype is torch.bool else torch.float64)


def _complex_product(mode, x, y):
    """(a + bi) * (c + di) = (ac - bd) + (ad + bc)i, each operation rounded."""
    parts = [
        mode.moved(torch.Tensor.unbind, mode.moved(torch.view_as_real, part), -1)
        if isinstance(part, torch.Tensor) and part.is_complex()
        else (part.real, part.imag) if isinstance(part, complex) else (part, None)
        for part in (x, y)
    ]  # fmt: skip
    (a, b), (c, d) = parts
    real, imaginary = multiply(mode, a, c), None
    if b is not None and d is not None:
        real = subtract(mode, real, multiply(mode, b, d))
        imaginary = add(mode, multiply(mode, a, d), multiply(mode, b, c))
    else:
        imaginary = multiply(mode, b, c) if d is None else multiply(mode, a, d)
    return mode.moved(torch.view_as_complex, mode.moved(torch.stack, [real, imaginary], -1))


def swapped(handler: Callable) -> Callable:
    return lambda mode, x, y: handler(mode, y, x)


def replacing(handler: Callable, **how) -> Callable:
    """A function that replaces its first operand by the result."""
    saved = handler not in (add, subtract)  # of the others, gradients take the operand as it was

    def run(mode, x, *operands, **options):
        before = mode.moved(torch.clone, x) if saved and _need(x, *operands, *options.values()) else x
        return mode.assign(x, handler(mode, before, *operands, **options, **how))

    return run


def _need(*operands) -> bool:
    return torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in operands)


def divide(mode, x, y, *, rounding_mode=None, out=None, in_place=False):
    if not floating(x, y):
        return torch.div(x, y, rounding_mode=rounding_mode)
    quotient = _quotient(mode, x, y, out=out, in_place=in_place)
    if rounding_mode is None:
        return quotient
    return mode.moved({"floor": torch.floor, "trunc": torch.trunc}[rounding_mode], quotient)


def floor_divide(mode, x, y):
    return divide(mode, x, y, rounding_mode="floor")


def power(mode, x, exponent, *, out=None):
    if not floating(x, exponent):
        return torch.pow(x, exponent)
    if out is not None:
        refused(mode, "pow", "without out")
    if _is_number(exponent):
        return mode.apply("power", [x], constants=(float(exponent),))
    return _powers(mode, x, exponent)


add, subtract, multiply, _quotient, _powers, hypot = (
    _of_two(name, plain)
    for name, plain in (
        ("add", torch.add), ("subtract", torch.sub), ("multiply", torch.mul), ("divide", torch.div), ("pow", torch.pow),
        ("hypot", torch.hypot),
    )
)  # fmt: skip


def square(mode, input):
    return power(mode, input, 2.0)


def outer(mode, input, vec2):
    return multiply(mode, input.unsqueeze(-1), vec2)


def root(mode, x):
    """The square root of what is not negative; where that is 0, the gradient is 0, as of PyTorch's norms."""
    empty = x == 0
    found = mode.apply("sqrt", [mode.moved(torch.where, empty, 1.0, x)])
    return mode.moved(torch.where, empty, 0.0, found)


def logaddexp(mode, input, other):
    """The larger one, and log1p(exp(-|x - y|)) more."""
    top = mode.moved(torch.maximum, input, other)
    distance = mode.moved(torch.abs, subtract(mode, input, other))
    return add(mode, top, mode.apply("log1p", [mode.apply("exp", [mode.moved(torch.neg, distance)])]))


def addcmul(mode, input, tensor1, tensor2, *, value=1):
    return add(mode, input, multiply(mode, tensor1, tensor2), alpha=value)


def addcdiv(mode, input, tensor1, tensor2, *, value=1):
    return add(mode, input, divide(mode, tensor1, tensor2), alpha=value)


def lerp(mode, input, end, weight):
    return add(mode, input, multiply(mode, subtract(mode, end, input), weight))


# -- of one operand ----------------------------------------------------------------------------------------------------


def of_one(name: str) -> Callable:
    def handler(mode, input, *, out=None):
        if out is not None:
            refused(mode, name, "without out")
        return mode.apply(name, [input if floating(input) else input.to(torch.get_default_dtype())])

    return handler


def activation(of: Callable) -> Callable:
    """A function of softnum's that may replace its operand."""
    in_place = replacing(of)

    def handler(mode, input, *arguments, inplace=False, **options):
        return (in_place if inplace else of)(mode, input, *arguments, **options)

    return handler


def relu(mode, input, inplace=False):
    if mode.sums or mode.replaces("relu"):
        return _own_relu(mode, input, inplace=inplace)
    return torch.relu_(input) if inplace else torch.relu(input)


_own_relu, silu = (activation(of_one(name)) for name in ("relu", "silu"))


def gelu(mode, input, approximate="none"):
    if approximate == "none":
        return mode.apply("gelu", [input])
    cubes = multiply(mode, power(mode, input, 3.0), 0.044715)
    inner = multiply(mode, add(mode, input, cubes), math.sqrt(2.0 / math.pi))
    return multiply(mode, multiply(mode, input, 0.5), add(mode, mode.apply("tanh", [inner]), 1.0))


def softplus(mode, input, beta=1.0, threshold=20.0):
    if beta == 1:
        return mode.apply("softplus", [input])
    return divide(mode, mode.apply("softplus", [multiply(mode, input, beta)]), beta)


def logsigmoid(mode, input):
    return mode.moved(torch.neg, mode.apply("softplus", [mode.moved(torch.neg, input)]))


def softsign(mode, input):
    return divide(mode, input, add(mode, mode.moved(torch.abs, input), 1.0))


def softshrink(mode, input, lambd=0.5):
    nearer = subtract(mode, input, mode.moved(torch.copysign, torch.full_like(input, lambd), input.detach()))
    return mode.moved(torch.where, mode.moved(torch.abs, input) > lambd, nearer, 0.0)


def tanhshrink(mode, input):
    return subtract(mode, input, mode.apply("tanh", [input]))


@activation
def mish(mode, input):
    return multiply(mode, input, mode.apply("tanh", [mode.apply("softplus", [input])]))


def _ramp(mode, input):
    return mode.moved(torch.clamp, add(mode, input, 3.0), 0.0, 6.0)


@activation
def hardsigmoid(mode, input):
    return divide(mode, _ramp(mode, input), 6.0)


@activation
def hardswish(mode, input):
    return divide(mode, multiply(mode, input, _ramp(mode, input)), 6.0)


@activation
def leaky_relu(mode, input, negative_slope=0.01):
    return _by_sign(mode, input, multiply(mode, input, negative_slope))


def prelu(mode, input, weight):
    shape = [-1 if axis == 1 else 1 for axis in range(input.dim())] if weight.numel() > 1 else [1] * input.dim()
    return _by_sign(mode, input, multiply(mode, input, weight.reshape(shape)))


@activation
def rrelu(mode, input, lower=1.0 / 8, upper=1.0 / 3, training=False):
    if training:
        refused(mode, "rrelu", "in evaluation")
    return leaky_relu(mode, input, (lower + upper) / 2)


@activation
def elu(mode, input, alpha=1.0):
    return _by_sign(mode, input, _exponential(mode, input, alpha))


@activation
def celu(mode, input, alpha=1.0):
    return _by_sign(mode, input, _exponential(mode, input, alpha, alpha))


@activation
def selu(mode, input):
    branches = _by_sign(mode, input, _exponential(mode, input, 1.6732632423543772))
    return multiply(mode, branches, 1.0507009873554805)


def _by_sign(mode, x, below):
    """x where it is above 0, else something instead."""
    return mode.moved(torch.where, x > 0, x, below)


def _exponential(mode, x, alpha: float, scale: float = 1.0):
    """alpha * (exp(x / scale) - 1) of what is below 0."""
    x = mode.moved(torch.clamp, x, max=0.0)
    x = x if scale == 1 else divide(mode, x, scale)
    powers = mode.apply("expm1", [x])
    return powers if alpha == 1 else multiply(mode, powers, alpha)


def glu(mode, input, dim=-1):
    value, gate = mode.moved(torch.chunk, input, 2, dim)
    return multiply(mode, value, mode.apply("sigmoid", [gate]))

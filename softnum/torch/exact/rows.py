"""Functions along rows: sums, means, moments, norms and softmax."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from softnum.torch.exact.elementwise import add, divide, square, subtract
from softnum.torch.exact.operands import floating, refused, shaped

__all__ = [
    "cumsum", "log_softmax", "logsumexp", "mean_along", "moments", "norm", "normalize", "of_tensor", "softmax",
    "softmin", "std", "std_mean", "sum_along", "torch_norm", "var",
]  # fmt: skip


def _wide(mode, name: str, x, dtype):
    """A tensor in the dtype that a function is to compute in, which must hold it."""
    if dtype is None or dtype == x.dtype:
        return x
    if not dtype.is_floating_point or (x.is_floating_point() and torch.promote_types(x.dtype, dtype) != dtype):
        refused(mode, name, f"in a dtype that holds {x.dtype}")
    return x.to(dtype)


def _along(x, dim) -> list[int]:
    """The dimensions that a function is to take, in their order; None or none: all."""
    dims = [dim] if isinstance(dim, int) else list(dim or ())
    return sorted(d % max(x.dim(), 1) for d in dims) or list(range(x.dim()))


def _remaining(x, dims, keepdim: bool) -> list[int]:
    """The shape of a tensor of which some dimensions are reduced."""
    return [1 if d in dims else n for d, n in enumerate(x.shape) if keepdim or d not in dims]


def sum_along(mode, input, dim=None, keepdim=False, *, dtype=None, out=None):
    if not floating(input) and (dtype is None or not dtype.is_floating_point):
        return torch.sum(input, dim, keepdim, dtype=dtype)
    if out is not None:
        refused(mode, "sum", "without out")
    x, dims = _wide(mode, "sum", input, dtype), _along(input, dim)
    rest, size = [d for d in range(x.dim()) if d not in dims], math.prod([x.shape[d] for d in dims])
    shape = _remaining(x, dims, keepdim)
    if size == 0:
        return x.new_zeros(shape)
    rows = x if dims == [x.dim() - 1] else x.permute([*rest, *dims]).reshape(*(x.shape[d] for d in rest), size)
    return shaped(mode.apply("sums", [rows], laid=[(d, x.shape[d]) for d in rest]), shape)


def cumsum(mode, input, dim, *, dtype=None, out=None):
    if floating(input) and (dtype is None or dtype.is_floating_point):
        refused(mode, "cumsum", "of integers, or in a dtype of integers")
    return torch.cumsum(input, dim, dtype=dtype, out=out)


def mean_along(mode, input, dim=None, keepdim=False, *, dtype=None, out=None):
    if out is not None:
        refused(mode, "mean", "without out")
    x, dims = _wide(mode, "mean", input, dtype), _along(input, dim)
    rest, size = [d for d in range(x.dim()) if d not in dims], math.prod([x.shape[d] for d in dims])
    windows = x.permute([*rest, *dims]).reshape(1, -1, size, 1)
    laid = [(d, x.shape[d]) for d in rest]
    result = mode.apply("avg_pool2d", [windows], options=(size, 1, size, 1), laid=laid)
    return shaped(result, _remaining(x, dims, keepdim))


def moments(mode, input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """Variance and mean: the sum of the squares of what is left without the mean, over the number less a correction."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    less = correction if correction is not None else int(unbiased is None or unbiased)
    dims = _along(input, dim)
    mean = mean_along(mode, input, dims, True)
    squares = square(mode, subtract(mode, input, mean))
    count = math.prod([input.shape[d] for d in dims]) - less
    return divide(mode, sum_along(mode, squares, dims, keepdim), float(count)), mean.reshape(
        _remaining(input, dims, keepdim)
    )


def var(mode, *arguments, **options):
    return moments(mode, *arguments, **options)[0]


def std(mode, *arguments, **options):
    return mode.apply("sqrt", [var(mode, *arguments, **options)])


def std_mean(mode, *arguments, **options):
    variance, mean = moments(mode, *arguments, **options)
    return mode.apply("sqrt", [variance]), mean


def norm(mode, x, ord=2, dim=None, keepdim=False, *, dtype=None, out=None):
    if ord not in (1, 2, None, "fro") or out is not None:
        refused(mode, "norm", "of order 1 or 2, without out")
    x = _wide(mode, "norm", x, dtype)
    if ord == 1:
        return sum_along(mode, mode.moved(torch.abs, x), dim, keepdim)
    return mode.apply("sqrt", [sum_along(mode, square(mode, x), dim, keepdim)])


def torch_norm(mode, input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    return norm(mode, input, p, dim, keepdim, dtype=dtype, out=out)


def normalize(mode, input, p=2.0, dim=1, eps=1e-12, out=None):
    size = mode.moved(torch.clamp, norm(mode, input, p, dim, True, out=out), min=eps)
    return divide(mode, input, size)


def _last(x, dim: int, of: Callable):
    """A function along the last dimension, along another; it takes the axes that are left and their lengths, too."""
    laid = [(d, n) for d, n in enumerate(x.shape) if d != dim % x.dim()]
    return of(x, laid) if dim in (-1, x.dim() - 1) else of(x.movedim(dim, -1), laid).movedim(-1, dim)


def softmax(mode, input, dim=None, _stacklevel=3, dtype=None):
    if dim is None:
        refused(mode, "softmax", "along a stated dimension")
    x = _wide(mode, "softmax", input, dtype)
    return _last(x, dim, lambda x, laid: mode.apply("softmax", [x], options=(1, 0), laid=laid))


def softmin(mode, input, dim=None, _stacklevel=3, dtype=None):
    return softmax(mode, mode.moved(torch.neg, input), dim, dtype=dtype)


def log_softmax(mode, input, dim=None, _stacklevel=3, dtype=None):
    if dim is None:
        refused(mode, "log_softmax", "along a stated dimension")
    x = _wide(mode, "log_softmax", input, dtype)
    return _last(x, dim, lambda x, laid: mode.apply("log_softmax", [x], laid=laid))


def of_tensor(handler: Callable) -> Callable:
    """softmax as ``torch.softmax`` and the method have it, whose third argument is a dtype."""
    return lambda mode, input, dim=None, dtype=None: handler(mode, input, dim, dtype=dtype)


def logsumexp(mode, input, dim, keepdim=False, *, out=None):
    dims = _along(input, dim)
    top = input.detach().amax(dims, keepdim=True)
    powers = mode.apply("exp", [subtract(mode, input, top)])
    total = mode.apply("log", [sum_along(mode, powers, dims, True, out=out)])
    return shaped(add(mode, total, top), _remaining(input, dims, keepdim))

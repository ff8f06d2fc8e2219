"""Functions along rows: sums, means, moments, norms and softmax."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from softnum.torch.exact.elementwise import add, divide, multiply, power, root, square, subtract
from softnum.torch.exact.operands import floating, refused, shaped

__all__ = [
    "cosine_similarity", "cumprod", "cumsum", "distances", "linalg_norm", "log_softmax", "logsumexp", "mean_along",
    "moments", "norm", "normalize", "numpy_names", "of_tensor", "pairwise_distance", "product", "softmax", "softmin",
    "std", "std_mean", "sum_along", "torch_norm", "var", "weight_norm",
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


def _running(name: str, function: str) -> Callable:
    """Sums or products so far, one after another along a dimension."""
    plain = getattr(torch, name)

    def handler(mode, input, dim, *, dtype=None, out=None):
        if not (dtype or input.dtype).is_floating_point:
            return plain(input, dim, dtype=dtype, out=out)
        if out is not None:
            refused(mode, name, "without out")
        x = _wide(mode, name, input, dtype)
        return x if x.dim() == 0 else _last(x, dim, lambda x, laid: mode.apply(function, [x], laid=laid))

    return handler


cumsum, cumprod = _running("cumsum", "running_sums"), _running("cumprod", "running_products")


def product(mode, input, dim=None, keepdim=False, *, dtype=None):
    if not (dtype or input.dtype).is_floating_point:
        return torch.prod(input, dtype=dtype) if dim is None else torch.prod(input, dim, keepdim, dtype=dtype)
    x, along = (input.reshape(-1), 0) if dim is None else (input, dim)
    if x.dim() == 0:
        return _wide(mode, "prod", x, dtype)
    if x.shape[along] == 0:
        return torch.prod(x, along, keepdim, dtype=dtype)
    result = mode.moved(torch.select, cumprod(mode, x, along, dtype=dtype), along, -1)
    return result.unsqueeze(along) if keepdim and dim is not None else result


def numpy_names(handler: Callable) -> Callable:
    """A function that takes ``axis`` and ``keepdims`` too."""
    names = {"axis": "dim", "keepdims": "keepdim"}
    return lambda mode, *arguments, **options: handler(
        mode, *arguments, **{names.get(name, name): value for name, value in options.items()}
    )


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
    return root(mode, var(mode, *arguments, **options))


def std_mean(mode, *arguments, **options):
    variance, mean = moments(mode, *arguments, **options)
    return root(mode, variance), mean


def norm(mode, x, ord=2, dim=None, keepdim=False, *, dtype=None, out=None):
    if (isinstance(ord, str) and ord != "fro") or out is not None:
        refused(mode, "norm", "of vectors, without out")
    x = _wide(mode, "norm", x, dtype)
    if ord in (2, None, "fro"):
        return root(mode, sum_along(mode, square(mode, x), dim, keepdim))
    x = mode.moved(torch.abs, x)
    if abs(ord) == math.inf:
        return mode.moved(torch.amax if ord > 0 else torch.amin, x, _along(x, dim), keepdim)
    if ord == 0:
        return sum_along(mode, (x != 0).to(x.dtype), dim, keepdim)
    if ord == 1:
        return sum_along(mode, x, dim, keepdim)
    total = sum_along(mode, power(mode, x, ord), dim, keepdim)
    return power(mode, total, 1.0 / ord)


def linalg_norm(mode, x, ord=None, dim=None, keepdim=False, *, dtype=None, out=None):
    """``torch.linalg.norm``, which is one of matrices where an order and no single dimension are stated."""
    count = x.dim() if dim is None else 1 if isinstance(dim, int) else len(dim)
    if ord not in (None, "fro") and count > 1:
        refused(mode, "norm", "of vectors, and Frobenius's of matrices,")
    return norm(mode, x, 2 if ord is None else ord, dim, keepdim, dtype=dtype, out=out)


def torch_norm(mode, input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    return norm(mode, input, p, dim, keepdim, dtype=dtype, out=out)


def normalize(mode, input, p=2.0, dim=1, eps=1e-12, out=None):
    size = mode.moved(torch.clamp, norm(mode, input, p, dim, True, out=out), min=eps)
    return divide(mode, input, size)


def cosine_similarity(mode, x1, x2, dim=1, eps=1e-8):
    """The sum of the products of both, each divided by its norm, which is eps at least."""
    x1, x2 = (normalize(mode, x, 2.0, dim, eps) for x in (x1, x2))
    return sum_along(mode, multiply(mode, x1, x2), dim)


def pairwise_distance(mode, x1, x2, p=2.0, eps=1e-6, keepdim=False):
    return norm(mode, add(mode, subtract(mode, x1, x2), eps), p, -1, keepdim)


def distances(mode, x1, x2, p=2.0, compute_mode=None):
    """The norm of the difference of each row of the one and each row of the other."""
    return norm(mode, subtract(mode, x1.unsqueeze(-2), x2.unsqueeze(-3)), p, -1)


def weight_norm(mode, v, g, dim=0):
    """v * (g / norm(v)), of each index along a dimension its own norm."""
    others = [d for d in range(v.dim()) if dim == -1 or d != dim % v.dim()]
    return multiply(mode, v, divide(mode, g, norm(mode, v, 2, others, True)))


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

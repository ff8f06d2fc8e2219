"""Functions of PyTorch that compute element by element, or along rows, computed in a design's arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F

from softnum.torch.functions import UNARY

__all__ = ["EXACT", "KEEPING", "MOVING", "OPERATIONS"]


def _refused(mode, name: str, what: str):
    raise NotImplementedError(
        f"{name} in module {mode.running()!r}: softnum.torch computes it exactly {what} alone; write it so, or state "
        "elementwise='torch', which leaves all but products to PyTorch"
    )


def _is_number(x) -> bool:
    return not isinstance(x, torch.Tensor)


def _floating(*parts) -> bool:
    """Whether one is a tensor of floating point."""
    return any(isinstance(x, torch.Tensor) and x.is_floating_point() for x in parts)


def _shaped(x, shape):
    """A result in a shape; itself, which may be changed in place as no view may, where it has that shape."""
    return x if tuple(x.shape) == tuple(shape) else x.reshape(shape)


def _wide(mode, name: str, x, dtype):
    """A tensor in the dtype that a function is to compute in, which must hold it."""
    if dtype is None or dtype == x.dtype:
        return x
    if not dtype.is_floating_point or (x.is_floating_point() and torch.promote_types(x.dtype, dtype) != dtype):
        _refused(mode, name, f"in a dtype that holds {x.dtype}")
    return x.to(dtype)


# -- of two operands ---------------------------------------------------------------------------------------------------


def _of_two(name: str, plain: Callable) -> Callable:
    def handler(mode, x, y, *, alpha=1, out=None, in_place=False):
        if not _floating(x, y):
            return plain(x, y) if alpha == 1 else plain(x, y, alpha=alpha)
        if out is not None:
            _refused(mode, name, "without out")
        if alpha != 1:
            y = _multiply(mode, y, alpha)
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
    tensors = [x for x in operands if _floating(x)]
    dtypes = {x.dtype for x in [x for x in tensors if x.dim()] or tensors}
    return dtypes.pop() if len(dtypes) == 1 else torch.promote_types(*dtypes)


def _operand(x, like, dtype):
    """A number or a tensor as an operand; what is not of floating point, in binary64."""
    if _is_number(x):
        return torch.full((), x, dtype=torch.float64, device=like.device)
    return x if x.is_floating_point() else x.to(dtype if x.dtype is torch.bool else torch.float64)


def _reversed(handler: Callable) -> Callable:
    return lambda mode, x, y: handler(mode, y, x)


def _in_place(handler: Callable, **how) -> Callable:
    """A function that replaces its first operand by the result."""
    saved = handler not in (_add, _subtract)  # of the others, the gradient takes the operand as it was

    def run(mode, x, *operands, **options):
        before = mode.moved(torch.clone, x) if saved and x.requires_grad else x
        return mode.assign(x, handler(mode, before, *operands, **options, **how))

    return run


def _divide(mode, x, y, *, rounding_mode=None, out=None, in_place=False):
    if not _floating(x, y):
        return torch.div(x, y, rounding_mode=rounding_mode)
    if rounding_mode is not None:
        _refused(mode, "division", "without rounding_mode")
    return _quotient(mode, x, y, out=out, in_place=in_place)


def _pow(mode, x, exponent, *, out=None):
    if not _floating(x, exponent):
        return torch.pow(x, exponent)
    if out is not None:
        _refused(mode, "pow", "without out")
    if _is_number(exponent):
        return mode.apply("power", [x], constants=(float(exponent),))
    return _powers(mode, x, exponent)


_add, _subtract, _multiply, _quotient, _powers, _hypot = (
    _of_two(name, plain)
    for name, plain in (
        ("add", torch.add), ("subtract", torch.sub), ("multiply", torch.mul), ("divide", torch.div), ("pow", torch.pow),
        ("hypot", torch.hypot),
    )
)  # fmt: skip


def _square(mode, input):
    return _pow(mode, input, 2.0)


def _addcmul(mode, input, tensor1, tensor2, *, value=1):
    return _add(mode, input, _multiply(mode, tensor1, tensor2), alpha=value)


def _addcdiv(mode, input, tensor1, tensor2, *, value=1):
    return _add(mode, input, _divide(mode, tensor1, tensor2), alpha=value)


def _lerp(mode, input, end, weight):
    return _add(mode, input, _multiply(mode, _subtract(mode, end, input), weight))


# -- of one operand ----------------------------------------------------------------------------------------------------


def _of_one(name: str) -> Callable:
    def handler(mode, input, *, out=None):
        if out is not None:
            _refused(mode, name, "without out")
        return mode.apply(name, [input if _floating(input) else input.to(torch.get_default_dtype())])

    return handler


def _activation(of: Callable) -> Callable:
    """A function of softnum's that may replace its operand."""
    in_place = _in_place(of)

    def handler(mode, input, *arguments, inplace=False, **options):
        return (in_place if inplace else of)(mode, input, *arguments, **options)

    return handler


def _relu(mode, input, inplace=False):
    if mode.sums or mode.replaces("relu"):
        return _own_relu(mode, input, inplace=inplace)
    return torch.relu_(input) if inplace else torch.relu(input)


_own_relu, _silu = (_activation(_of_one(name)) for name in ("relu", "silu"))


def _gelu(mode, input, approximate="none"):
    if approximate == "none":
        return mode.apply("gelu", [input])
    cubes = _multiply(mode, _pow(mode, input, 3.0), 0.044715)
    inner = _multiply(mode, _add(mode, input, cubes), math.sqrt(2.0 / math.pi))
    return _multiply(mode, _multiply(mode, input, 0.5), _add(mode, mode.apply("tanh", [inner]), 1.0))


def _softplus(mode, input, beta=1.0, threshold=20.0):
    if beta == 1:
        return mode.apply("softplus", [input])
    return _divide(mode, mode.apply("softplus", [_multiply(mode, input, beta)]), beta)


def _logsigmoid(mode, input):
    return mode.moved(torch.neg, mode.apply("softplus", [mode.moved(torch.neg, input)]))


def _softsign(mode, input):
    return _divide(mode, input, _add(mode, mode.moved(torch.abs, input), 1.0))


def _tanhshrink(mode, input):
    return _subtract(mode, input, mode.apply("tanh", [input]))


@_activation
def _mish(mode, input):
    return _multiply(mode, input, mode.apply("tanh", [mode.apply("softplus", [input])]))


def _ramp(mode, input):
    return mode.moved(torch.clamp, _add(mode, input, 3.0), 0.0, 6.0)


@_activation
def _hardsigmoid(mode, input):
    return _divide(mode, _ramp(mode, input), 6.0)


@_activation
def _hardswish(mode, input):
    return _divide(mode, _multiply(mode, input, _ramp(mode, input)), 6.0)


@_activation
def _leaky_relu(mode, input, negative_slope=0.01):
    return _by_sign(mode, input, _multiply(mode, input, negative_slope))


def _prelu(mode, input, weight):
    shape = [-1 if axis == 1 else 1 for axis in range(input.dim())] if weight.numel() > 1 else [1] * input.dim()
    return _by_sign(mode, input, _multiply(mode, input, weight.reshape(shape)))


@_activation
def _elu(mode, input, alpha=1.0):
    return _by_sign(mode, input, _exponential(mode, input, alpha))


@_activation
def _celu(mode, input, alpha=1.0):
    return _by_sign(mode, input, _exponential(mode, input, alpha, alpha))


@_activation
def _selu(mode, input):
    branches = _by_sign(mode, input, _exponential(mode, input, 1.6732632423543772))
    return _multiply(mode, branches, 1.0507009873554805)


def _by_sign(mode, x, below):
    """x where it is above 0, else something instead."""
    return mode.moved(torch.where, x > 0, x, below)


def _exponential(mode, x, alpha: float, scale: float = 1.0):
    """alpha * (exp(x / scale) - 1) of what is below 0."""
    x = mode.moved(torch.clamp, x, max=0.0)
    x = x if scale == 1 else _divide(mode, x, scale)
    powers = mode.apply("expm1", [x])
    return powers if alpha == 1 else _multiply(mode, powers, alpha)


def _glu(mode, input, dim=-1):
    value, gate = mode.moved(torch.chunk, input, 2, dim)
    return _multiply(mode, value, mode.apply("sigmoid", [gate]))


# -- along rows --------------------------------------------------------------------------------------------------------


def _along(x, dim) -> list[int]:
    """The dimensions that a function is to take, in their order; None or none: all."""
    dims = [dim] if isinstance(dim, int) else list(dim or ())
    return sorted(d % max(x.dim(), 1) for d in dims) or list(range(x.dim()))


def _remaining(x, dims, keepdim: bool) -> list[int]:
    """The shape of a tensor of which some dimensions are reduced."""
    return [1 if d in dims else n for d, n in enumerate(x.shape) if keepdim or d not in dims]


def _sum(mode, input, dim=None, keepdim=False, *, dtype=None, out=None):
    if not _floating(input) and (dtype is None or not dtype.is_floating_point):
        return torch.sum(input, dim, keepdim, dtype=dtype)
    if out is not None:
        _refused(mode, "sum", "without out")
    x, dims = _wide(mode, "sum", input, dtype), _along(input, dim)
    rest, size = [d for d in range(x.dim()) if d not in dims], math.prod([x.shape[d] for d in dims])
    shape = _remaining(x, dims, keepdim)
    if size == 0:
        return x.new_zeros(shape)
    rows = x if dims == [x.dim() - 1] else x.permute([*rest, *dims]).reshape(*(x.shape[d] for d in rest), size)
    return _shaped(mode.apply("sums", [rows]), shape)


def _cumsum(mode, input, dim, *, dtype=None, out=None):
    if _floating(input) and (dtype is None or dtype.is_floating_point):
        _refused(mode, "cumsum", "of integers, or in a dtype of integers")
    return torch.cumsum(input, dim, dtype=dtype, out=out)


def _mean(mode, input, dim=None, keepdim=False, *, dtype=None, out=None):
    if out is not None:
        _refused(mode, "mean", "without out")
    x, dims = _wide(mode, "mean", input, dtype), _along(input, dim)
    rest, size = [d for d in range(x.dim()) if d not in dims], math.prod([x.shape[d] for d in dims])
    windows = x.permute([*rest, *dims]).reshape(1, -1, size, 1)
    result = mode.apply("avg_pool2d", [windows], options=(size, 1, size, 1))
    return _shaped(result, _remaining(x, dims, keepdim))


def _moments(mode, input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """Variance and mean: the sum of the squares of what is left without the mean, over the number less a correction."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    less = correction if correction is not None else int(unbiased is None or unbiased)
    dims = _along(input, dim)
    mean = _mean(mode, input, dims, True)
    squares = _square(mode, _subtract(mode, input, mean))
    count = math.prod([input.shape[d] for d in dims]) - less
    return _divide(mode, _sum(mode, squares, dims, keepdim), float(count)), mean.reshape(
        _remaining(input, dims, keepdim)
    )


def _var(mode, *arguments, **options):
    return _moments(mode, *arguments, **options)[0]


def _std(mode, *arguments, **options):
    return mode.apply("sqrt", [_var(mode, *arguments, **options)])


def _std_mean(mode, *arguments, **options):
    variance, mean = _moments(mode, *arguments, **options)
    return mode.apply("sqrt", [variance]), mean


def _norm(mode, x, ord=2, dim=None, keepdim=False, *, dtype=None, out=None):
    if ord not in (1, 2, None, "fro") or out is not None:
        _refused(mode, "norm", "of order 1 or 2, without out")
    x = _wide(mode, "norm", x, dtype)
    if ord == 1:
        return _sum(mode, mode.moved(torch.abs, x), dim, keepdim)
    return mode.apply("sqrt", [_sum(mode, _square(mode, x), dim, keepdim)])


def _torch_norm(mode, input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    return _norm(mode, input, p, dim, keepdim, dtype=dtype, out=out)


def _normalize(mode, input, p=2.0, dim=1, eps=1e-12, out=None):
    size = mode.moved(torch.clamp, _norm(mode, input, p, dim, True, out=out), min=eps)
    return _divide(mode, input, size)


def _last(x, dim: int, of: Callable):
    """A function along the last dimension, along another."""
    return of(x) if dim in (-1, x.dim() - 1) else of(x.movedim(dim, -1)).movedim(-1, dim)


def _softmax(mode, input, dim=None, _stacklevel=3, dtype=None):
    if dim is None:
        _refused(mode, "softmax", "along a stated dimension")
    x = _wide(mode, "softmax", input, dtype)
    return _last(x, dim, lambda x: mode.apply("softmax", [x], options=(1, 0)))


def _softmin(mode, input, dim=None, _stacklevel=3, dtype=None):
    return _softmax(mode, mode.moved(torch.neg, input), dim, dtype=dtype)


def _log_softmax(mode, input, dim=None, _stacklevel=3, dtype=None):
    if dim is None:
        _refused(mode, "log_softmax", "along a stated dimension")
    return _last(_wide(mode, "log_softmax", input, dtype), dim, lambda x: mode.apply("log_softmax", [x]))


def _of_tensor(handler: Callable) -> Callable:
    """softmax as ``torch.softmax`` and the method have it, whose third argument is a dtype."""
    return lambda mode, input, dim=None, dtype=None: handler(mode, input, dim, dtype=dtype)


def _logsumexp(mode, input, dim, keepdim=False, *, out=None):
    dims = _along(input, dim)
    top = input.detach().amax(dims, keepdim=True)
    powers = mode.apply("exp", [_subtract(mode, input, top)])
    total = mode.apply("log", [_sum(mode, powers, dims, True, out=out)])
    return _shaped(_add(mode, total, top), _remaining(input, dims, keepdim))


# -- normalisation -----------------------------------------------------------------------------------------------------


def _gain(x, weight, size):
    return x.new_ones(size) if weight is None else _shaped(weight, size)


def _shift(x, bias, size):
    return x.new_zeros(size) if bias is None else _shaped(bias, size)


def _layer_norm(mode, input, normalized_shape, weight=None, bias=None, eps=1e-5):
    size = (math.prod(normalized_shape),)
    rows = _shaped(input, (*input.shape[: input.dim() - len(normalized_shape)], *size))
    inputs = [rows, _gain(input, weight, size), _shift(input, bias, size)]
    return _shaped(mode.apply("layer_norm", inputs, constants=(eps,)), input.shape)


def _rms_norm(mode, input, normalized_shape, weight=None, eps=None):
    size = (math.prod(normalized_shape),)
    rows = _shaped(input, (*input.shape[: input.dim() - len(normalized_shape)], *size))
    eps = torch.finfo(input.dtype).eps if eps is None else eps
    return _shaped(mode.apply("rms_norm", [rows, _gain(input, weight, size)], constants=(eps,)), input.shape)


def _as_images(x):
    """(n, channels, ...) as images, with which batch and group normalisation are computed."""
    return x if x.dim() == 4 else x.reshape(*x.shape[:2], -1, 1)


def _group_norm(mode, input, num_groups, weight=None, bias=None, eps=1e-5):
    size = (input.shape[1],)
    inputs = [_as_images(input), _gain(input, weight, size), _shift(input, bias, size)]
    return _shaped(mode.apply("group_norm", inputs, options=(num_groups,), constants=(eps,)), input.shape)


def _instance_norm(mode, input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True,
                   momentum=0.1, eps=1e-5):  # fmt: skip
    if running_mean is not None or running_var is not None or not use_input_stats:
        _refused(mode, "instance_norm", "without running statistics")
    return _group_norm(mode, input, input.shape[1], weight, bias, eps)


def _batch_norm(mode, input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    size = (input.shape[1],)
    own = running_mean is not None
    running = (running_mean, running_var) if own else (input.new_zeros(size), input.new_ones(size))
    inputs = [_as_images(input), _gain(input, weight, size), _shift(input, bias, size), *(x.clone() for x in running)]
    how = {"options": (int(training or not own),), "constants": (momentum or 0.0, eps)}
    result, *updated = mode.apply("batch_norm", inputs, **how)
    if training and own:
        with torch.no_grad():
            for x, new in zip(running, updated, strict=True):
                x.copy_(new)
    return _shaped(result, input.shape)


# -- pooling -----------------------------------------------------------------------------------------------------------


def _pair(x) -> tuple[int, int]:
    return (x, x) if isinstance(x, int) else tuple(x) * (2 if len(x) == 1 else 1)


def _of_images(pool: Callable) -> Callable:
    """Pooling of images (n, channels, height, width), or of one."""

    def handler(mode, input, *arguments, **options):
        if input.dim() == 3:
            return pool(mode, input[None], *arguments, **options)[0]
        return pool(mode, input, *arguments, **options)

    return handler


@_of_images
def _avg_pool2d(mode, input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
                divisor_override=None):  # fmt: skip
    rows, columns = _pair(padding)
    if ceil_mode or divisor_override is not None or ((rows or columns) and not count_include_pad):
        _refused(mode, "avg_pool2d", "without ceil_mode and divisor_override, with padding counted")
    padded = mode.moved(F.pad, input, (columns, columns, rows, rows)) if rows or columns else input
    window = _pair(kernel_size)
    return mode.apply("avg_pool2d", [padded], options=(*window, *(_pair(stride) if stride else window)))


@_of_images
def _adaptive_avg_pool2d(mode, input, output_size):
    sizes = [n if m is None else m for n, m in zip(input.shape[2:], _pair(output_size), strict=True)]
    if any(n % m for n, m in zip(input.shape[2:], sizes, strict=True)):
        _refused(mode, "adaptive_avg_pool2d", "to sizes that divide the image's")
    window = [n // m for n, m in zip(input.shape[2:], sizes, strict=True)]
    return mode.apply("avg_pool2d", [input], options=(*window, *window))


@_of_images
def _max_pool2d(mode, input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    if _pair(dilation) != (1, 1) or ceil_mode or return_indices:
        _refused(mode, "max_pool2d", "without dilation, ceil_mode and return_indices")
    rows, columns = _pair(padding)
    edges = (columns, columns, rows, rows)
    padded = mode.moved(F.pad, input, edges, value=-math.inf) if rows or columns else input
    window = _pair(kernel_size)
    return mode.apply("max_pool2d", [padded], options=(*window, *(_pair(stride) if stride else window)))


# -- moving, where gradients are added ---------------------------------------------------------------------------------


def _needs(x) -> bool:
    return torch.is_grad_enabled() and isinstance(x, torch.Tensor) and x.requires_grad and x.is_floating_point()


def _expanded(mode, x, shape):
    return x if tuple(x.shape) == tuple(shape) else mode.apply("expand", [x], options=tuple(shape))


def _sizes(sizes) -> list[int]:
    """Sizes as they are given: each as an argument, or all as one."""
    return list(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else list(sizes)


def _expand(mode, x, *sizes, implicit=False):
    shape = _sizes(sizes)
    extra = len(shape) - x.dim()
    if not _needs(x) or extra < 0:
        return x.expand(shape)
    shape = [x.shape[d - extra] if n == -1 and d >= extra else n for d, n in enumerate(shape)]
    if any(n != own != 1 for n, own in zip(shape[extra:], x.shape, strict=True)):
        return x.expand(shape)  # which says what is wrong
    return _expanded(mode, x, shape)


def _repeat(mode, x, *sizes):
    times = _sizes(sizes)
    if not _needs(x) or len(times) < x.dim():
        return x.repeat(times)
    own = [1] * (len(times) - x.dim()) + list(x.shape)
    apart = x.reshape([part for n in own for part in (1, n)])
    wide = _expanded(mode, apart, [part for pair in zip(times, own, strict=True) for part in pair])
    return wide.reshape([m * n for m, n in zip(times, own, strict=True)])


def _repeat_interleave(mode, x, repeats, dim=None, *, output_size=None):
    if not _needs(x):
        return torch.repeat_interleave(x, repeats, dim, output_size=output_size)
    if isinstance(repeats, torch.Tensor):
        _refused(mode, "repeat_interleave", "by a number")
    x, dim = (x.flatten(), 0) if dim is None else (x, dim % x.dim())
    shape = [*x.shape[: dim + 1], repeats, *x.shape[dim + 1 :]]
    return _expanded(mode, x.unsqueeze(dim + 1), shape).flatten(dim, dim + 1)


def _places(x):
    """The number of each element of a tensor."""
    return torch.arange(x.numel(), device=x.device).reshape(x.shape)


def _found(mode, x, places):
    """The elements of those numbers."""
    return mode.apply("lookup", [_shaped(x, (x.numel(),)), places])


def _getitem(mode, x, index):
    parts = index if isinstance(index, tuple) else (index,)
    chosen = [part for part in parts if isinstance(part, (torch.Tensor, list))]
    masks = all(isinstance(part, torch.Tensor) and part.dtype is torch.bool for part in chosen)
    if not _needs(x) or masks:
        return mode.moved(torch.Tensor.__getitem__, x, index)
    if len(parts) == 1 and isinstance(index, torch.Tensor):
        return mode.apply("lookup", [x, torch.where(index < 0, index + x.shape[0], index)])
    return _found(mode, x, _places(x)[index])


def _choosing(name: str) -> Callable:
    """A function that takes elements, one perhaps more than once."""
    plain = getattr(torch.Tensor, name)

    def handler(mode, x, *arguments, sparse_grad=False, **options):
        if not _needs(x):
            return plain(x, *arguments, **options)
        return _found(mode, x, plain(_places(x), *arguments, **options))

    return handler


def _pad(own, /, input, pad, mode="constant", value=None):
    if mode == "constant" or not _needs(input):
        return own.moved(F.pad, input, pad, mode, value)
    return _found(own, input, F.pad(_places(input).double(), pad, mode).long())


def _interpolate(own, /, input, size=None, scale_factor=None, mode="nearest", align_corners=None,
                 recompute_scale_factor=None, antialias=False):  # fmt: skip
    how = size, scale_factor, mode, align_corners, recompute_scale_factor
    if mode in ("nearest", "nearest-exact"):
        if not _needs(input):
            return own.moved(F.interpolate, input, *how)
        return _found(own, input, F.interpolate(_places(input).double(), *how).long())
    if antialias or mode not in ("linear", "bilinear"):
        _refused(own, "interpolate", "by nearest neighbours or (bi)linearly, without antialias,")
    shape = F.interpolate(torch.empty(1, 1, *input.shape[2:], device="meta"), *how).shape[2:]  # and PyTorch's errors
    factors = scale_factor if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * len(shape)
    for axis in reversed(range(2, input.dim())):
        factor = None if recompute_scale_factor else factors[axis - 2]
        low, high, part = _between(input.shape[axis], shape[axis - 2], factor, bool(align_corners))
        above = part.reshape(-1, *(1,) * (input.dim() - 1 - axis)).to(input.device)
        parts = [
            _multiply(own, _choosing("index_select")(own, input, axis, index.to(input.device)), weight.to(input.dtype))
            for index, weight in ((low, 1 - above), (high, above))
        ]
        input = _add(own, *parts)
    return input


def _between(count: int, wanted: int, factor: float | None, align_corners: bool):
    """Where places lie among `count` ones: the one below each, the one above, and how far it is, in binary64."""
    at = torch.arange(wanted, dtype=torch.float64)
    if align_corners:
        at = at * ((count - 1) / max(wanted - 1, 1))
    else:
        at = ((at + 0.5) * (count / wanted if factor is None else 1 / factor) - 0.5).clamp(min=0)
    low = at.long().clamp(max=count - 1)
    return low, (low + 1).clamp(max=count - 1), at - low


def _index_add(mode, input, dim, index, source, *, alpha=1, out=None):
    if not _floating(input):
        return torch.index_add(input, dim, index, source, alpha=alpha)
    if out is not None:
        _refused(mode, "index_add", "without out")
    source = source if alpha == 1 else _multiply(mode, source, alpha)
    if dim % input.dim() == 0:
        return mode.apply("scatter_add", [input, index, source])
    return mode.apply("scatter_add", [input.movedim(dim, 0), index, source.movedim(dim, 0)]).movedim(0, dim)


def _scatter_add(mode, input, dim, index, src):
    if not _floating(input):
        return torch.scatter_add(input, dim, index, src)
    dim = dim % input.dim()
    within = tuple(slice(None) if d == dim else slice(n) for d, n in enumerate(index.shape))
    places = _places(input)[within].gather(dim, index).reshape(-1)
    parts = src[tuple(slice(n) for n in index.shape)].reshape(-1)
    return _shaped(mode.apply("scatter_add", [_shaped(input, (input.numel(),)), places, parts]), input.shape)


# -- dropout -----------------------------------------------------------------------------------------------------------


def _dropout_of(rank: int | None) -> Callable:
    """Dropout of elements, or of channels of so many dimensions; PyTorch draws which stay."""

    @_activation
    def dropped(mode, input, p):
        if p == 1:
            return mode.moved(torch.zeros_like, input)
        first = input.dim() if rank is None else input.dim() - rank  # the dimension after the channels
        shape = [n if d < first else 1 for d, n in enumerate(input.shape)]
        kept = input.detach().new_empty(shape).bernoulli_(1 - p).bool()
        return mode.apply("dropout", [input, kept], constants=(float(p),))

    def handler(mode, input, p=0.5, training=True, inplace=False):
        if not 0 <= p <= 1:
            raise ValueError(f"a dropout's rate must be at least 0 and at most 1, got {p}")
        return dropped(mode, input, p, inplace=inplace) if training and p and _floating(input) else input

    return handler


# -- losses ------------------------------------------------------------------------------------------------------------


def _reduced(mode, name: str, losses, reduction: str):
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{name}: reduction must be 'none', 'mean' or 'sum', got {reduction!r}")
    return losses if reduction == "none" else (_mean if reduction == "mean" else _sum)(mode, losses)


def _cross_entropy(mode, input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
                   reduction="mean", label_smoothing=0.0):  # fmt: skip
    if size_average is not None or reduce is not None:
        _refused(mode, "cross_entropy", "with reduction")
    axis = min(1, input.dim() - 1)
    if target.is_floating_point() or label_smoothing:
        return _soft_cross_entropy(mode, input, target, weight, ignore_index, reduction, label_smoothing)
    if weight is None and reduction in ("mean", "sum"):
        how = ignore_index, int(reduction == "mean")
        return mode.apply("cross_entropy", [_rows_of_classes(input), target.reshape(-1)], options=how)
    logs = _log_softmax(mode, input, axis)
    return _nll_loss(mode, logs, target, weight, ignore_index=ignore_index, reduction=reduction)


def _rows_of_classes(x):
    """Numbers of classes, which lie along the first axis after the batch's, as a matrix of a row for each place."""
    return x[None] if x.dim() == 1 else x if x.dim() == 2 else x.movedim(1, -1).reshape(-1, x.shape[1])


def _soft_cross_entropy(mode, input, target, weight, ignore_index, reduction, smoothing):
    """Of probabilities of classes, or of labels: (1 - smoothing) * target + smoothing / classes, in binary64."""
    if weight is not None:
        _refused(mode, "cross_entropy", "without weights where labels are smoothed, or are probabilities")
    if not 0 <= smoothing <= 1:
        raise ValueError(f"cross_entropy: label_smoothing must lie in 0..1, got {smoothing}")
    if target.requires_grad:
        _refused(mode, "cross_entropy", "of targets that need no gradient")
    axis = min(1, input.dim() - 1)
    soft, stays = target.detach(), None
    if not target.is_floating_point():
        stays = target != ignore_index
        soft = F.one_hot(torch.where(stays, target, 0), input.shape[axis]).movedim(-1, axis)
    soft = soft.double() * (1 - smoothing) + smoothing / input.shape[axis]
    if reduction in ("mean", "sum"):
        logits, soft = _rows_of_classes(input), _rows_of_classes(soft)
        if stays is not None and not stays.all():
            rows = stays.reshape(-1).nonzero()[:, 0]
            logits, soft = mode.moved(torch.index_select, logits, 0, rows), soft[rows]
        return mode.apply("cross_entropy", [logits, soft], options=(ignore_index, int(reduction == "mean")))
    losses = mode.moved(
        torch.neg, _sum(mode, _multiply(mode, _log_softmax(mode, input, axis), soft.to(input.dtype)), axis)
    )
    losses = losses if stays is None else mode.moved(torch.where, stays, losses, 0.0)
    return _reduced(mode, "cross_entropy", losses, reduction)


def _nll_loss(mode, input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    if size_average is not None or reduce is not None:
        _refused(mode, "nll_loss", "with reduction")
    axis, stays = min(1, input.dim() - 1), target != ignore_index
    known = torch.where(stays, target, 0)
    losses = mode.moved(torch.neg, mode.moved(torch.gather, input, axis, known.unsqueeze(axis)).squeeze(axis))
    losses = mode.moved(torch.where, stays, losses, 0.0)
    if weight is not None:
        weight = torch.where(stays, weight[known], 0.0)
        losses = _multiply(mode, losses, weight)
    if reduction != "mean":
        return _reduced(mode, "nll_loss", losses, reduction)
    return _divide(mode, _sum(mode, losses), stays.sum() if weight is None else _sum(mode, weight))


def _of_difference(name: str, of: Callable) -> Callable:
    def handler(mode, input, target, size_average=None, reduce=None, reduction="mean", weight=None):
        if size_average is not None or reduce is not None or weight is not None:
            _refused(mode, name, "with reduction and without weight")
        return _reduced(mode, name, of(mode, _subtract(mode, input, target)), reduction)

    return handler


def _binary_with_logits(mode, input, target, weight=None, size_average=None, reduce=None, reduction="mean",
                        pos_weight=None):  # fmt: skip
    if weight is not None or pos_weight is not None or size_average is not None or reduce is not None:
        _refused(mode, "binary_cross_entropy_with_logits", "with reduction and without weights")
    above = _subtract(mode, mode.moved(torch.clamp, input, min=0.0), _multiply(mode, input, target))
    below = mode.moved(torch.neg, mode.moved(torch.abs, input))
    losses = _add(mode, above, mode.apply("log1p", [mode.apply("exp", [below])]))
    return _reduced(mode, "binary_cross_entropy_with_logits", losses, reduction)


# -- all of them -------------------------------------------------------------------------------------------------------

_T = torch.Tensor
_OF_ONE = {name: _of_one(name) for name in UNARY if name not in ("gelu", "relu", "silu", "softplus")}
_OF_ONE |= {f"arc{name[1:]}": _OF_ONE[name] for name in ("acos", "asin", "atan")}
_OF_TWO = {
    "add": _add, "sub": _subtract, "subtract": _subtract, "mul": _multiply, "multiply": _multiply, "div": _divide,
    "divide": _divide, "true_divide": _divide, "hypot": _hypot,
}  # fmt: skip
_OF_MORE = {"pow": _pow, "square": _square, "addcmul": _addcmul, "addcdiv": _addcdiv, "lerp": _lerp}
_ROWS = {
    "sum": _sum, "cumsum": _cumsum, "mean": _mean, "var": _var, "std": _std, "var_mean": _moments,
    "std_mean": _std_mean, "norm": _torch_norm, "logsumexp": _logsumexp, "softmax": _of_tensor(_softmax),
    "log_softmax": _of_tensor(_log_softmax), "rms_norm": _rms_norm, "rsub": _reversed(_subtract),
}  # fmt: skip
_MOVED = {
    "expand": _expand, "repeat": _repeat, "repeat_interleave": _repeat_interleave, "__getitem__": _getitem,
    "expand_as": lambda mode, x, other: _expand(mode, x, *other.shape),
    "broadcast_to": _expand,
    **{name: _choosing(name) for name in ("gather", "index_select", "take", "take_along_dim", "tile", "unfold")},
    "index_add": _index_add, "scatter_add": _scatter_add,
}  # fmt: skip
_ACTIVATIONS = {
    "celu": _celu, "elu": _elu, "gelu": _gelu, "glu": _glu, "hardsigmoid": _hardsigmoid, "hardswish": _hardswish,
    "leaky_relu": _leaky_relu, "logsigmoid": _logsigmoid, "mish": _mish, "prelu": _prelu, "relu": _relu, "selu": _selu,
    "sigmoid": _OF_ONE["sigmoid"], "silu": _silu, "softplus": _softplus, "softsign": _softsign,
    "tanh": _OF_ONE["tanh"], "tanhshrink": _tanhshrink,
}  # fmt: skip
_LAYERS = {
    "adaptive_avg_pool2d": _adaptive_avg_pool2d, "avg_pool2d": _avg_pool2d, "batch_norm": _batch_norm,
    "group_norm": _group_norm, "instance_norm": _instance_norm, "layer_norm": _layer_norm, "log_softmax": _log_softmax,
    "max_pool2d": _max_pool2d, "_max_pool2d": _max_pool2d, "normalize": _normalize, "rms_norm": _rms_norm,
    "softmax": _softmax, "softmin": _softmin, "dropout": _dropout_of(None),
    **{f"dropout{rank}d": _dropout_of(rank) for rank in (1, 2, 3)}, "pad": _pad, "interpolate": _interpolate,
    "binary_cross_entropy_with_logits": _binary_with_logits, "cross_entropy": _cross_entropy, "nll_loss": _nll_loss,
    "l1_loss": _of_difference("l1_loss", lambda mode, x: mode.moved(torch.abs, x)),
    "mse_loss": _of_difference("mse_loss", _square),
}  # fmt: skip
_SIGNS = {"add": _add, "sub": _subtract, "mul": _multiply, "truediv": _divide, "pow": _pow}


def _named(handlers: dict[str, Callable], *places) -> dict[Callable, Callable]:
    """The functions of those names in some modules -> what computes them."""
    return {getattr(at, name): handler for name, handler in handlers.items() for at in places if hasattr(at, name)}


def _assigning(handlers: dict[str, Callable], name: str = "{}_", **how) -> dict[str, Callable]:
    return {name.format(key): _in_place(handler, **how) for key, handler in handlers.items()}


#: function of PyTorch -> what computes it in the design's arithmetic
EXACT: dict[Callable, Callable] = {
    **_named(_OF_ONE | _OF_TWO | _OF_MORE | _ROWS | _MOVED, torch, _T),
    **_named(_OF_ONE, torch.special),
    **_named(_assigning(_OF_ONE | _OF_MORE), torch, _T),
    **_named(_assigning(_OF_TWO, in_place=True), _T),
    **_named(_assigning({name: _MOVED[name] for name in ("index_add", "scatter_add")}), _T),
    **_named({f"__{name}__": handler for name, handler in _SIGNS.items()}, _T),
    **_named(
        {f"__r{name}__": _reversed(handler) for name, handler in _SIGNS.items()} | {"__rdiv__": _reversed(_divide)}, _T
    ),
    **_named(_assigning({key: of for key, of in _SIGNS.items() if key != "pow"}, "__i{}__", in_place=True), _T),
    **_named(_assigning({"pow": _pow}, "__i{}__"), _T),
    **_named(_ACTIVATIONS | _LAYERS, F),
    **_named({"relu": _relu, "dropout": _dropout_of(None), "prelu": _prelu, "max_pool2d": _max_pool2d}, torch, _T),
    **_named({"vector_norm": _norm, "norm": _norm}, torch.linalg),
}
_MOVING = """
__get__ __set__ __setitem__ __len__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __bool__ __float__ __int__ __neg__
__repr__ __format__ __contains__ __hash__ __invert__ __index__ __and__ __or__ __xor__ __deepcopy__ __reduce_ex__ abs
abs_ absolute adaptive_max_pool2d all allclose amax amin aminmax any arange argmax argmin argsort as_strided
atleast_1d atleast_2d atleast_3d backward bernoulli bernoulli_ bfloat16 bincount block_diag bool boolean_dispatch
broadcast_tensors bucketize can_cast cat ceil ceil_ channel_shuffle chunk clamp clamp_ clamp_max clamp_max_ clamp_min
clamp_min_ clip clip_ clone column_stack concat concatenate contiguous copy_ count_nonzero cpu cuda cummax cummin
data_ptr detach detach_ device diag diag_embed diagonal dim dim_order double dsplit dstack element_size empty_like eq
equal fill_ flatten flip fliplr flipud float floor floor_ fn full_like ge get_device gt half hardshrink hardtanh
hardtanh_ has_names histc hsplit hstack index_copy index_copy_ index_fill index_fill_ int is_complex is_contiguous
is_cuda is_floating_point is_inference is_neg is_nonzero is_same_size is_shared _is_view _is_zerotensor isclose
isfinite isin isinf isnan isneginf isposinf item kthvalue le logical_and logical_not logical_or logical_xor long lt
masked_fill masked_fill_ masked_scatter masked_scatter_ masked_select max max_pool1d _max_pool1d max_pool1d_with_indices
max_pool2d_with_indices maximum median min minimum moveaxis movedim msort nan_to_num nan_to_num_ narrow narrow_copy
ndimension ne neg neg_ negative nelement new_empty new_full new_ones new_tensor new_zeros nonzero normal_ numel numpy
one_hot ones_like _pack_padded_sequence pack_padded_sequence pack_sequence _pad_packed_sequence pad_sequence permute
pixel_shuffle pixel_unshuffle positive rand_like register_hook relu6 relu6_ relu_ requires_grad_ reshape reshape_as
resolve_conj resolve_neg result_type retain_grad roll rot90 round round_ searchsorted select select_scatter sgn sign
sign_ signbit size slice_scatter sort split split_with_sizes squeeze squeeze_ stack storage_offset stride swapaxes
swapdims t t_ tensor_split threshold threshold_ to tolist topk transpose transpose_ tril tril_ triu triu_ trunc trunc_
type type_as unbind unflatten uniform_ unique unique_consecutive unsafe_chunk unsafe_split unsqueeze unsqueeze_
untyped_storage vdsplit _version view view_as vsplit vstack where zero_ zeros_like
"""
#: those of the functions below that keep the arithmetic of the result that they move
KEEPING = (
    "boolean_dispatch", "contiguous", "flatten", "fn", "max_pool1d", "max_pool2d", "movedim", "moveaxis", "permute",
    "relu", "reshape", "squeeze", "swapaxes", "t", "transpose", "unflatten", "unsqueeze", "view", "_max_pool1d",
    "_max_pool2d",
)  # fmt: skip
#: names of functions that move, choose, compare or draw numbers, or tell what they are: exact in PyTorch
MOVING = frozenset(_MOVING.split())
#: those of PyTorch's operations (``torch.ops.aten``), of which compiled models are made, that do so too
OPERATIONS = MOVING | {
    "_reshape_alias", "_to_copy", "_unsafe_view", "alias", "as_strided_scatter", "clone", "constant_pad_nd", "copy",
    "diagonal_scatter", "empty", "empty_strided", "expand", "fill", "full", "gather", "index", "index_put",
    "index_select", "lift_fresh", "lift_fresh_copy", "new_empty_strided", "ones", "repeat", "scalar_tensor", "scatter",
    "slice", "split_with_sizes_copy", "take", "zeros",
}  # fmt: skip

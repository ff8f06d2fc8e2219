"""Functions of PyTorch that compute element by element, or along rows, computed in a design's arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F

from softnum.torch.tensors import array_of, result_dtype, tensor_of

__all__ = ["ELEMENTWISE", "EXACT", "KEEPING", "MOVING", "Final", "Gradients", "final", "summed", "used"]


class Gradients:
    """The gradients of a result that is used more than once, added in the arithmetic of the layer that made it.

    PyTorch adds them itself, in the tensor's dtype. So a result goes through `summed`, and each of its uses through
    `used`, which hands the gradient over to this and nothing on.

    Parameters
    ----------
    mode : softnum.torch.arithmetic
    layer : str
    state : torch.Tensor
        Of the call that made the result.
    """

    def __init__(self, mode, layer: str, state: torch.Tensor) -> None:
        place = f"{layer}, gradients"  # numbered in each forward pass, as calls are
        self._place = mode.calls.get(place, 0)
        mode.calls[place] = self._place + 1
        self.arithmetic, self.state, self.layer = mode.arithmetic, state, layer
        self.total, self.count = None, 0

    def add(self, gradient: torch.Tensor) -> None:
        """Take one more gradient; those of the uses that come last in the forward pass come first."""
        if self.total is None:
            self.total = gradient
            return
        self.count += 1
        call = self.arithmetic.call(self.layer, self.state, f"gradients.{self._place}.{self.count}")
        call.begin("stacked")
        call.begin_backward()
        parts = [call.enter(array_of(part)) for part in (self.total, gradient)]
        total = call.elementwise("add", *parts)
        call.end()
        self.total = tensor_of(total, result_dtype(gradient), gradient.device, parts)


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gradients):
        ctx.gradients = gradients
        ctx.set_materialize_grads(False)
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        gradients = ctx.gradients
        if gradient is not None:  # of a use that softnum.torch did not see, as by a loss outside the model
            gradients.add(gradient)
        total, gradients.total, gradients.count = gradients.total, None, 0
        return total, None


class _Used(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gradients):
        ctx.gradients = gradients
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        ctx.gradients.add(gradient)
        return None, None


def summed(x: torch.Tensor, mode, layer: str, state: torch.Tensor) -> torch.Tensor:
    """A result of a layer, whose gradients are added in the layer's arithmetic."""
    if not (x.requires_grad and x.is_floating_point()):
        return x
    gradients = Gradients(mode, layer, state)
    x = _Summed.apply(x, gradients)
    x.softnum_gradients = gradients
    return x


def used(x):
    """A tensor as one of its uses takes it."""
    gradients = getattr(x, "softnum_gradients", None)
    return x if gradients is None or not torch.is_grad_enabled() else _Used.apply(x, gradients)


class Final:
    """The gradients of a parameter that are rounded to ``weight_gradients`` already, added in that role."""

    def __init__(self) -> None:
        self._pass = self.total = self._plain = None

    def add(self, gradient: torch.Tensor, call) -> None:
        """Take one more gradient, of a backward pass that is running; those of the uses that come last come first."""
        current = torch._C._current_graph_task_id()
        if self._pass != current:  # an interrupted one may have left something
            self._pass, self.total = current, None
        if self.total is None:
            self.total = self._plain = gradient
            return
        self._plain = self._plain + gradient
        parts = [array_of(part) for part in (gradient, self.total)]
        call.begin_backward()
        total = call.axpy("weight_gradients", 1.0, *parts)
        call.end()
        self.total = tensor_of(total, result_dtype(gradient), gradient.device, parts)

    def take(self, gradient: torch.Tensor, name: str) -> torch.Tensor | None:
        """The sum, given what PyTorch makes of it; None if there is none.

        Raises
        ------
        NotImplementedError
            If there are other gradients in that.
        """
        if self._pass != torch._C._current_graph_task_id():
            return None
        total, self._pass = self.total, None
        if bool(((gradient == self._plain) | (gradient.isnan() & self._plain.isnan())).all()):
            return total
        raise NotImplementedError(
            f"parameter {name!r} of a recurrent layer has uses outside of it, whose gradients are not rounded as those "
            "of its steps are; use a copy of it there, or state elementwise='torch'"
        )


class _Final(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, finals, make):
        ctx.finals, ctx.make = finals, make
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        ctx.finals.add(gradient, ctx.make())
        return gradient, None, None


def final(x, mode, layer: str):
    """A parameter as a function takes it that rounds its gradients itself, for a layer."""
    finals = mode.finals(x)
    if finals is None:
        return x
    place = f"{layer}, weights"
    use = mode.calls[place] = mode.calls.get(place, -1) + 1
    bound, state = mode.arithmetic, mode.state
    return _Final.apply(x, finals, lambda: bound.call(layer, state, f"weights.{use}"))


def _refused(mode, name: str, what: str):
    raise NotImplementedError(
        f"{name} in module {mode.running()!r}: softnum.torch computes it exactly {what} alone; write it so, or state "
        "elementwise='torch', which leaves all but products to PyTorch"
    )


def _floating(x) -> bool:
    return not isinstance(x, torch.Tensor) or x.is_floating_point()


def _of_two(name: str, plain: Callable) -> Callable:
    def handler(mode, x, y, *, alpha=1, out=None):
        if not any(isinstance(part, torch.Tensor) and part.is_floating_point() for part in (x, y)):
            return plain(x, y)
        x, y = (part if _floating(part) else part.to(other.dtype) for part, other in ((x, y), (y, x)))
        if alpha != 1 or out is not None:
            _refused(mode, name, "without alpha and out")
        if name == "multiply" and not (isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor)):
            x, factor = (x, y) if isinstance(x, torch.Tensor) else (y, x)
            return mode.apply("scale", [x], constants=(float(factor),))
        like = x if isinstance(x, torch.Tensor) else y
        parts = [
            part if isinstance(part, torch.Tensor) else torch.full_like(like, part, requires_grad=False)
            for part in (x, y)
        ]  # fmt: skip
        shape = torch.broadcast_shapes(*(part.shape for part in parts))
        return mode.apply(name, [part if part.shape == shape else part.expand(shape) for part in parts])

    return handler


def _reversed(handler: Callable) -> Callable:
    return lambda mode, x, y: handler(mode, y, x)


def _divide(mode, x, y, *, rounding_mode=None, out=None):
    if isinstance(y, torch.Tensor) or rounding_mode is not None or out is not None or math.frexp(y)[0] != 0.5:
        if _floating(x) or _floating(y):
            _refused(mode, "division", "by a power of two")
        return torch.div(x, y, rounding_mode=rounding_mode)
    return mode.apply("scale", [x], constants=(1.0 / y,))


def _softmax(mode, input, dim=None, *arguments, dtype=None, **options):
    if dim is None or dtype not in (None, input.dtype):
        _refused(mode, "softmax", "along a stated dimension, in its input's dtype")
    last = input.movedim(dim, -1)
    mask = last != -math.inf
    result = mode.apply("softmax", [last] if bool(mask.all()) else [last, mask])
    return result.movedim(-1, dim)


def _function(name: str) -> Callable:
    return lambda mode, input, *, out=None: mode.apply(name, [input])


def _layer_norm(mode, input, normalized_shape, weight=None, bias=None, eps=1e-5):
    if len(normalized_shape) != 1 or weight is None or bias is None:
        _refused(mode, "layer_norm", "over the last dimension with weight and bias")
    return mode.apply("layer_norm", [input, weight, bias], constants=(eps,))


def _rms_norm(mode, input, normalized_shape, weight=None, eps=None):
    if len(normalized_shape) != 1 or weight is None:
        _refused(mode, "rms_norm", "over the last dimension with weight")
    return mode.apply("rms_norm", [input, weight], constants=(torch.finfo(input.dtype).eps if eps is None else eps,))


def _silu(mode, input, inplace=False):
    return mode.apply("silu", [input])


def _group_norm(mode, input, num_groups, weight=None, bias=None, eps=1e-5):
    if input.dim() != 4 or weight is None or bias is None:
        _refused(mode, "group_norm", "of images (n, channels, height, width) with weight and bias")
    return mode.apply("group_norm", [input, weight, bias], options=(num_groups,), constants=(eps,))


def _batch_norm(mode, input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    if None in (running_mean, running_var, weight, bias, momentum) or input.dim() not in (2, 4):
        _refused(mode, "batch_norm", "of rows or images with weight, bias and running statistics of a fixed momentum")
    images = input if input.dim() == 4 else input[:, :, None, None]
    result, mean, variance = mode.apply(
        "batch_norm", [images, weight, bias, running_mean.clone(), running_var.clone()], options=(int(training),),
        constants=(momentum, eps),
    )  # fmt: skip
    if training:
        with torch.no_grad():
            running_mean.copy_(mean)
            running_var.copy_(variance)
    return result if input.dim() == 4 else result[:, :, 0, 0]


def _pair(x) -> tuple[int, int]:
    return (x, x) if isinstance(x, int) else tuple(x) * (2 if len(x) == 1 else 1)


def _avg_pool2d(mode, input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
                divisor_override=None):  # fmt: skip
    if _pair(padding) != (0, 0) or ceil_mode or divisor_override is not None or input.dim() != 4:
        _refused(mode, "avg_pool2d", "of images without padding, ceil_mode and divisor_override")
    window = _pair(kernel_size)
    return mode.apply("avg_pool2d", [input], options=(*window, *(_pair(stride) if stride else window)))


def _adaptive_avg_pool2d(mode, input, output_size):
    if _pair(output_size) != (1, 1) or input.dim() != 4:
        _refused(mode, "adaptive_avg_pool2d", "of whole images, to one number for each channel")
    return mode.apply("avg_pool2d", [input], options=(*input.shape[2:], *input.shape[2:]))


def _mean(mode, input, dim=None, keepdim=False, *, dtype=None):
    dims = sorted(d % input.dim() for d in ((dim,) if isinstance(dim, int) else dim or ()))
    adjacent = len(dims) in (1, 2) and dims[-1] - dims[0] == len(dims) - 1
    if not adjacent or dtype not in (None, input.dtype):
        _refused(mode, "mean", "over one dimension, or two that follow each other")
    size = math.prod(input.shape[d] for d in dims)
    before, after = math.prod(input.shape[: dims[0]]), math.prod(input.shape[dims[-1] + 1 :])
    windows = input.reshape(1, before, size, after).permute(0, 1, 3, 2).reshape(1, before * after, size, 1)
    result = mode.apply("avg_pool2d", [windows], options=(size, 1, size, 1))
    shape = [1 if d in dims else n for d, n in enumerate(input.shape) if keepdim or d not in dims]
    return result.reshape(shape)


def _cross_entropy(mode, input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
                   reduction="mean", label_smoothing=0.0):  # fmt: skip
    if (
        weight is not None or reduction != "mean" or label_smoothing or target.is_floating_point() or input.dim() != 2
        or bool((target == ignore_index).any())
    ):  # fmt: skip
        _refused(mode, "cross_entropy", "of rows and their classes, as a mean")
    return mode.apply("cross_entropy", [input, target])


_ADD, _SUBTRACT, _MULTIPLY = (
    _of_two(name, plain) for name, plain in (("add", torch.add), ("subtract", torch.sub), ("multiply", torch.mul))
)  # fmt: skip
_T = torch.Tensor
#: function of PyTorch -> what computes it in the design's arithmetic
EXACT: dict[Callable, Callable] = {
    **dict.fromkeys((torch.add, _T.add, _T.__add__, _T.__radd__), _ADD),
    **dict.fromkeys((torch.sub, _T.sub, _T.__sub__), _SUBTRACT),
    _T.__rsub__: _reversed(_SUBTRACT),
    **dict.fromkeys((torch.mul, _T.mul, _T.__mul__, _T.__rmul__), _MULTIPLY),
    **dict.fromkeys((torch.div, _T.div, _T.__truediv__), _divide),
    **dict.fromkeys((torch.softmax, _T.softmax, F.softmax), _softmax),
    **dict.fromkeys((torch.tanh, _T.tanh, F.tanh), _function("tanh")),
    **dict.fromkeys((torch.sigmoid, _T.sigmoid, F.sigmoid), _function("sigmoid")),
    F.silu: _silu,
    F.layer_norm: _layer_norm,
    **dict.fromkeys((F.rms_norm, torch.rms_norm), _rms_norm),
    F.group_norm: _group_norm,
    F.batch_norm: _batch_norm,
    F.avg_pool2d: _avg_pool2d,
    F.adaptive_avg_pool2d: _adaptive_avg_pool2d,
    **dict.fromkeys((torch.mean, _T.mean), _mean),
    F.cross_entropy: _cross_entropy,
}
_MOVING = """
__get__ __set__ __getitem__ __len__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __bool__ __float__ __int__ __neg__
__repr__ __format__ __contains__ __hash__ __invert__ abs all allclose amax amin any arange argmax argmin argsort
backward bool broadcast_tensors broadcast_to cat chunk clamp_min clone concat concatenate contiguous copy_ cpu cuda
data_ptr detach detach_ device diagonal dim double dsplit element_size empty_like eq equal expand expand_as flatten
flip float full_like gather ge get_device gt has_names hsplit index_select int is_complex is_contiguous is_cuda
is_floating_point is_inference is_same_size is_shared isfinite isinf isnan item le long lt masked_fill masked_fill_
masked_select max max_pool1d max_pool2d _max_pool1d _max_pool2d boolean_dispatch fn maximum min minimum movedim
moveaxis narrow ndimension ne neg new_empty new_full new_ones new_tensor new_zeros nelement nonzero numel numpy
ones_like pad permute pixel_shuffle positive register_hook relu relu_ repeat repeat_interleave requires_grad_
reshape reshape_as retain_grad roll select sign size sort split squeeze stack storage_offset stride swapaxes t take
tensor_split tile to tolist topk transpose tril triu type type_as unbind unflatten unfold unsqueeze view view_as
where zero_ zeros_like max_pool1d_with_indices max_pool2d_with_indices result_type can_cast
"""
#: functions whose results' gradients are added in their layer's arithmetic; of others', in the tensor's dtype
ELEMENTWISE = (
    "add", "avg_pool2d", "batch_norm", "group_norm", "layer_norm", "lstm", "multiply", "rms_norm", "rnn_relu",
    "rnn_tanh", "scale", "sigmoid", "silu", "softmax", "subtract", "tanh",
)  # fmt: skip
#: those of the functions below that keep the arithmetic of the result that they move
KEEPING = (
    "boolean_dispatch", "contiguous", "flatten", "fn", "max_pool1d", "max_pool2d", "movedim", "moveaxis", "permute",
    "relu", "reshape", "squeeze", "swapaxes", "t", "transpose", "unflatten", "unsqueeze", "view", "_max_pool1d",
    "_max_pool2d",
)  # fmt: skip
#: names of functions that move, choose or compare numbers, or tell what they are: exact in PyTorch
MOVING = frozenset(_MOVING.split())

"""Normalisation, pooling and dropout."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F

from softnum.torch.exact.elementwise import activation
from softnum.torch.exact.operands import floating, refused, shaped

__all__ = [
    "adaptive_avg_pool2d", "avg_pool2d", "batch_norm", "dropout_of", "group_norm", "instance_norm", "layer_norm",
    "max_pool2d", "rms_norm",
]  # fmt: skip


# -- normalisation -----------------------------------------------------------------------------------------------------


def _gain(x, weight, size):
    return x.new_ones(size) if weight is None else shaped(weight, size)


def _shift(x, bias, size):
    return x.new_zeros(size) if bias is None else shaped(bias, size)


def layer_norm(mode, input, normalized_shape, weight=None, bias=None, eps=1e-5):
    size = (math.prod(normalized_shape),)
    rows = shaped(input, (*input.shape[: input.dim() - len(normalized_shape)], *size))
    inputs = [rows, _gain(input, weight, size), _shift(input, bias, size)]
    return shaped(mode.apply("layer_norm", inputs, constants=(eps,)), input.shape)


def rms_norm(mode, input, normalized_shape, weight=None, eps=None):
    size = (math.prod(normalized_shape),)
    rows = shaped(input, (*input.shape[: input.dim() - len(normalized_shape)], *size))
    eps = torch.finfo(input.dtype).eps if eps is None else eps
    return shaped(mode.apply("rms_norm", [rows, _gain(input, weight, size)], constants=(eps,)), input.shape)


def _as_images(x):
    """(n, channels, ...) as images, with which batch and group normalisation are computed."""
    return x if x.dim() == 4 else x.reshape(*x.shape[:2], -1, 1)


def group_norm(mode, input, num_groups, weight=None, bias=None, eps=1e-5):
    size = (input.shape[1],)
    inputs = [_as_images(input), _gain(input, weight, size), _shift(input, bias, size)]
    return shaped(mode.apply("group_norm", inputs, options=(num_groups,), constants=(eps,)), input.shape)


def instance_norm(mode, input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True,
                  momentum=0.1, eps=1e-5):  # fmt: skip
    if running_mean is not None or running_var is not None or not use_input_stats:
        refused(mode, "instance_norm", "without running statistics")
    return group_norm(mode, input, input.shape[1], weight, bias, eps)


def batch_norm(mode, input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
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
    return shaped(result, input.shape)


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
def avg_pool2d(mode, input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
               divisor_override=None):  # fmt: skip
    rows, columns = _pair(padding)
    if ceil_mode or divisor_override is not None or ((rows or columns) and not count_include_pad):
        refused(mode, "avg_pool2d", "without ceil_mode and divisor_override, with padding counted")
    padded = mode.moved(F.pad, input, (columns, columns, rows, rows)) if rows or columns else input
    window = _pair(kernel_size)
    return mode.apply("avg_pool2d", [padded], options=(*window, *(_pair(stride) if stride else window)))


@_of_images
def adaptive_avg_pool2d(mode, input, output_size):
    sizes = [n if m is None else m for n, m in zip(input.shape[2:], _pair(output_size), strict=True)]
    if any(n % m for n, m in zip(input.shape[2:], sizes, strict=True)):
        refused(mode, "adaptive_avg_pool2d", "to sizes that divide the image's")
    window = [n // m for n, m in zip(input.shape[2:], sizes, strict=True)]
    return mode.apply("avg_pool2d", [input], options=(*window, *window))


@_of_images
def max_pool2d(mode, input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    if _pair(dilation) != (1, 1) or ceil_mode or return_indices:
        refused(mode, "max_pool2d", "without dilation, ceil_mode and return_indices")
    rows, columns = _pair(padding)
    edges = (columns, columns, rows, rows)
    padded = mode.moved(F.pad, input, edges, value=-math.inf) if rows or columns else input
    window = _pair(kernel_size)
    return mode.apply("max_pool2d", [padded], options=(*window, *(_pair(stride) if stride else window)))


# -- dropout -----------------------------------------------------------------------------------------------------------


def dropout_of(rank: int | None) -> Callable:
    """Dropout of elements, or of channels of so many dimensions; PyTorch draws which stay."""

    @activation
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
        return dropped(mode, input, p, inplace=inplace) if training and p and floating(input) else input

    return handler

"""Normalisation, pooling and dropout."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F

from softnum.torch.exact.elementwise import activation, add, divide, multiply, power, square
from softnum.torch.exact.moving import choosing
from softnum.torch.exact.operands import floating, refused, shaped
from softnum.torch.exact.rows import mean_along

__all__ = [
    "adaptive_avg_pool", "avg_pool", "batch_norm", "dropout_of", "group_norm", "instance_norm", "layer_norm",
    "local_response_norm", "max_pool", "rms_norm", "turned",
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


def turned(mode, input, heads=1, base=10000.0):
    if input.dim() != 3 or input.shape[-1] % (2 * heads):
        refused(mode, "rotary", "of (samples, steps, features), an even number of them for each head,")
    return mode.apply("rotary", [input], options=(len(input), heads), constants=(float(base),))


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


def _tuple(x, rank: int) -> tuple[int, ...]:
    return (x,) * rank if isinstance(x, int) else tuple(x) * (rank if len(x) == 1 else 1)


def _of_images(rank: int) -> Callable:
    """Pooling of images (n, channels, size along each of so many axes), or of one."""

    def made(pool: Callable) -> Callable:
        def handler(mode, input, *arguments, **options):
            if input.dim() == rank + 1:
                result = pool(mode, input[None], *arguments, **options)
                return tuple(x[0] for x in result) if isinstance(result, tuple) else result[0]
            return pool(mode, input, *arguments, **options)

        return handler

    return made


def _windows_of(n: int, size: int, step: int, padding: int, ceil: bool, counted: bool) -> list[tuple[int, int]]:
    """Where windows along an axis begin and end; of padding that is counted, in the padded image."""
    count = -(-(n + 2 * padding - size) // step) if ceil else (n + 2 * padding - size) // step
    if ceil and count * step >= n + padding:  # the last one would begin behind the image
        count -= 1
    starts = [i * step for i in range(count + 1)]
    if counted:
        return [(at, min(at + size, n + 2 * padding)) for at in starts]
    return [(max(at - padding, 0), min(at - padding + size, n)) for at in starts]


def _averages(mode, x, windows: list[list[tuple[int, int]]]):
    """The average of each window, given by its bounds along each axis; those of one size are computed together."""
    shape, axes = x.shape[2:], []
    for bounds in windows:
        sizes: dict[int, list[int]] = {}
        for place, (start, end) in enumerate(bounds):
            sizes.setdefault(end - start, []).append(place)
        axes.append((bounds, sizes))
    rows, places, order = x.reshape(*x.shape[:2], -1), torch.arange(shape.numel()).reshape(shape), []
    numbers, found = torch.arange(math.prod(map(len, windows))).reshape([len(bounds) for bounds in windows]), []
    for sizes in itertools.product(*(sizes.items() for _, sizes in axes)):
        at, own = places, numbers
        for axis, ((size, chosen), (bounds, _)) in enumerate(zip(sizes, axes, strict=True)):
            index = torch.tensor([[bounds[place][0] + i for i in range(size)] for place in chosen])
            at = at.movedim(axis, -1)[..., index].movedim(-2, axis)  # the places within a window come last, in order
            own = own.index_select(axis, torch.tensor(chosen))
        count = math.prod(size for size, _ in sizes)
        at = at.reshape(-1, count).to(x.device)
        found.append(mean_along(mode, choosing("__getitem__")(mode, rows, (..., at)), -1))
        order.append(own.reshape(-1))
    result = found[0]
    if len(found) > 1:
        order = torch.cat(order).argsort().to(x.device)
        result = mode.moved(torch.index_select, mode.moved(torch.cat, found, -1), -1, order)
    return shaped(result, (*x.shape[:2], *map(len, windows)))


def avg_pool(rank: int) -> Callable:
    """Averages of windows along so many axes."""

    @_of_images(rank)
    def pool(mode, input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
             divisor_override=None):  # fmt: skip
        if divisor_override is not None:
            refused(mode, f"avg_pool{rank}d", "without divisor_override")
        window, edges = _tuple(kernel_size, rank), _tuple(padding, rank)
        step = window if stride is None or stride == [] else _tuple(stride, rank)
        counted = count_include_pad or not any(edges)
        x = input
        if counted and any(edges):
            x = mode.moved(F.pad, input, [n for edge in reversed(edges) for n in (edge, edge)])
        sizes = zip(input.shape[2:], window, step, edges, strict=True)
        windows = [_windows_of(*size, ceil_mode, counted) for size in sizes]
        return _pooled(mode, x, windows, step)

    return pool


def _pooled(mode, x, windows: list[list[tuple[int, int]]], step: tuple[int, ...]):
    """Averages of windows: as `softnum.train`'s of images where all have one size, and lie in steps."""
    sizes = [{end - start for start, end in bounds} for bounds in windows]
    apart = any(start != i * n for bounds, n in zip(windows, step, strict=True) for i, (start, _) in enumerate(bounds))
    if len(windows) > 2 or apart or any(len(own) != 1 for own in sizes):
        return _averages(mode, x, windows)
    shape = (*x.shape[:2], *map(len, windows))
    window, x = [own.pop() for own in sizes], x if len(windows) == 2 else x.unsqueeze(2)
    one = (1,) * (2 - len(windows))
    return shaped(mode.apply("avg_pool2d", [x], options=(*one, *window, *one, *step)), shape)


def adaptive_avg_pool(rank: int) -> Callable:
    """Averages of as many windows as are asked for along each axis; neighbours may share elements."""

    @_of_images(rank)
    def pool(mode, input, output_size):
        sizes = [n if m is None else m for n, m in zip(input.shape[2:], _tuple(output_size, rank), strict=True)]
        windows = [
            [(i * n // m, -(-(i + 1) * n // m)) for i in range(m)] for n, m in zip(input.shape[2:], sizes, strict=True)
        ]
        if any(n % m for n, m in zip(input.shape[2:], sizes, strict=True)):
            return _averages(mode, input, windows)
        return _pooled(mode, input, windows, tuple(n // m for n, m in zip(input.shape[2:], sizes, strict=True)))

    return pool


def max_pool(rank: int, *, indices: bool = False) -> Callable:
    """The largest elements of windows along so many axes; indices: and where they are, stated or not."""
    with_indices = getattr(F, f"max_pool{rank}d_with_indices")

    @_of_images(rank)
    def pool(mode, input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=indices):
        window, edges = _tuple(kernel_size, rank), _tuple(padding, rank)
        step = window if stride is None or stride == [] else _tuple(stride, rank)
        if rank == 2 and _tuple(dilation, rank) == (1, 1) and not (ceil_mode or return_indices):
            (rows, columns), x = edges, input
            if rows or columns:
                x = mode.moved(F.pad, input, (columns, columns, rows, rows), value=-math.inf)
            return mode.apply("max_pool2d", [x], options=(*window, *step))
        _, places = with_indices(input.detach(), kernel_size, step, padding, dilation, ceil_mode, True)
        found = choosing("gather")(mode, input.flatten(2), 2, places.flatten(2))
        return (shaped(found, places.shape), places) if return_indices else shaped(found, places.shape)

    return pool


def local_response_norm(mode, input, size, alpha=1e-4, beta=0.75, k=1.0):
    """x / (k + alpha * the mean of the squares of neighbouring channels) ** beta; beyond the outer ones are zeros."""
    squares = mode.moved(F.pad, square(mode, input).flatten(2), (0, 0, size // 2, (size - 1) // 2))
    means = avg_pool(2)(mode, squares.unsqueeze(1), (size, 1), 1).squeeze(1)
    spread = power(mode, add(mode, multiply(mode, means, alpha), k), beta)
    return divide(mode, input, shaped(spread, input.shape))


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

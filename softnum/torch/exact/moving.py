"""Functions that move elements, some more than once: backwards, gradients are added."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F

from softnum.torch.exact.elementwise import add, multiply, subtract
from softnum.torch.exact.operands import floating, refused, shaped

__all__ = [
    "choosing", "expand", "fold", "getitem", "grid_sample", "index_add", "interpolate", "meshgrid", "pad", "repeat",
    "repeat_interleave", "roi_align", "scatter_add", "suppressed", "unfold",
]  # fmt: skip


def _needs(x) -> bool:
    return torch.is_grad_enabled() and isinstance(x, torch.Tensor) and x.requires_grad and x.is_floating_point()


def _expanded(mode, x, shape):
    return x if tuple(x.shape) == tuple(shape) else mode.apply("expand", [x], options=tuple(shape))


def _sizes(sizes) -> list[int]:
    """Sizes as they are given: each as an argument, or all as one."""
    return list(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else list(sizes)


def expand(mode, x, *sizes, implicit=False):
    shape = _sizes(sizes)
    extra = len(shape) - x.dim()
    if not _needs(x) or extra < 0:
        return x.expand(shape)
    shape = [x.shape[d - extra] if n == -1 and d >= extra else n for d, n in enumerate(shape)]
    if any(n != own != 1 for n, own in zip(shape[extra:], x.shape, strict=True)):
        return x.expand(shape)  # which says what is wrong
    return _expanded(mode, x, shape)


def meshgrid(mode, *tensors, indexing=None):
    plain = torch.meshgrid(*tensors, **({} if indexing is None else {"indexing": indexing}))
    parts = tensors[0] if isinstance(tensors[0], (tuple, list)) else tensors
    if not any(map(_needs, parts)):
        return plain
    found, order = [], list(range(len(parts)))
    order[:2] = order[:2][::-1] if indexing == "xy" else order[:2]
    for place, x in zip(order, parts, strict=True):
        found.append(_expanded(mode, x.reshape([-1 if d == place else 1 for d in order]), plain[0].shape))
    return tuple(found)


def repeat(mode, x, *sizes):
    times = _sizes(sizes)
    if not _needs(x) or len(times) < x.dim():
        return x.repeat(times)
    own = [1] * (len(times) - x.dim()) + list(x.shape)
    apart = x.reshape([part for n in own for part in (1, n)])
    wide = _expanded(mode, apart, [part for pair in zip(times, own, strict=True) for part in pair])
    return wide.reshape([m * n for m, n in zip(times, own, strict=True)])


def repeat_interleave(mode, x, repeats, dim=None, *, output_size=None):
    if not _needs(x):
        return torch.repeat_interleave(x, repeats, dim, output_size=output_size)
    if isinstance(repeats, torch.Tensor):
        refused(mode, "repeat_interleave", "by a number")
    x, dim = (x.flatten(), 0) if dim is None else (x, dim % x.dim())
    shape = [*x.shape[: dim + 1], repeats, *x.shape[dim + 1 :]]
    return _expanded(mode, x.unsqueeze(dim + 1), shape).flatten(dim, dim + 1)


def _places(x):
    """The number of each element of a tensor."""
    return torch.arange(x.numel(), device=x.device).reshape(x.shape)


def _found(mode, x, places):
    """The elements of those numbers."""
    return mode.apply("lookup", [shaped(x, (x.numel(),)), places])


def getitem(mode, x, index):
    parts = index if isinstance(index, tuple) else (index,)
    chosen = [part for part in parts if isinstance(part, (torch.Tensor, list))]
    masks = all(isinstance(part, torch.Tensor) and part.dtype is torch.bool for part in chosen)
    if not _needs(x) or masks:
        return mode.moved(torch.Tensor.__getitem__, x, index)
    if len(parts) == 1 and isinstance(index, torch.Tensor):
        return mode.apply("lookup", [x, torch.where(index < 0, index + x.shape[0], index)])
    return _found(mode, x, _places(x)[index])


def choosing(name: str) -> Callable:
    """A function that takes elements, one perhaps more than once."""
    plain = getattr(torch.Tensor, name)

    def handler(mode, x, *arguments, sparse_grad=False, **options):
        if not _needs(x):
            return plain(x, *arguments, **options)
        return _found(mode, x, plain(_places(x), *arguments, **options))

    return handler


def pad(own, /, input, pad, mode="constant", value=None):
    if mode == "constant" or not _needs(input):
        return own.moved(F.pad, input, pad, mode, value)
    return _found(own, input, F.pad(_places(input).double(), pad, mode).long())


def interpolate(own, /, input, size=None, scale_factor=None, mode="nearest", align_corners=None,
                recompute_scale_factor=None, antialias=False):  # fmt: skip
    how = size, scale_factor, mode, align_corners, recompute_scale_factor
    if mode in ("nearest", "nearest-exact"):
        if not _needs(input):
            return own.moved(F.interpolate, input, *how)
        return _found(own, input, F.interpolate(_places(input).double(), *how).long())
    if antialias or mode not in ("linear", "bilinear", "bicubic", "trilinear"):
        refused(own, "interpolate", "by nearest neighbours, linearly or cubically, without antialias,")
    shape = F.interpolate(torch.empty(1, 1, *input.shape[2:], device="meta"), *how).shape[2:]  # and PyTorch's errors
    factors = scale_factor if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * len(shape)
    for axis in reversed(range(2, input.dim())):
        factor = None if recompute_scale_factor else factors[axis - 2]
        how = input.shape[axis], shape[axis - 2], factor, bool(align_corners)
        parts = []
        for index, weight in (_among if mode == "bicubic" else _between)(*how):
            weight = weight.reshape(-1, *(1,) * (input.dim() - 1 - axis)).to(input.device, input.dtype)
            parts.append(multiply(own, choosing("index_select")(own, input, axis, index.to(input.device)), weight))
        while len(parts) > 1:
            parts = [add(own, *pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
        (input,) = parts
    return input


def grid_sample(own, input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """What lies at places: four neighbours times two weights each, added in pairs; places are of the design."""
    if input.dim() != 4 or mode == "bicubic" or padding_mode == "reflection":
        refused(own, "grid_sample", "of images, by nearest neighbours or bilinearly, with zeros or the border beyond,")
    ends = []
    for axis, count in ((1, input.shape[2]), (0, input.shape[3])):
        at = add(own, own.moved(torch.select, grid, -1, axis), 1.0)
        if align_corners:
            at = multiply(own, multiply(own, at, 0.5), float(count - 1))
        else:
            at = multiply(own, add(own, multiply(own, at, float(count)), -1.0), 0.5)
        if padding_mode == "border":
            at = own.moved(torch.clamp, at, 0.0, float(count - 1))
        if mode == "nearest":
            ends.append([(at.detach().round(), None)])
            continue
        low = at.detach().floor()
        part = subtract(own, at, low)
        ends.append([(low, subtract(own, torch.ones_like(low), part)), (low + 1, part)])
    parts = []
    for row, high in ends[0]:
        for column, wide in ends[1]:
            found = _at(own, input, row, column)
            if high is not None:
                found = multiply(own, found, multiply(own, high, wide).unsqueeze(1))
            parts.append(found)
    while len(parts) > 1:
        parts = [add(own, *pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _at(own, input, row, column):
    """The elements of images in rows and columns (n, ...), 0 beyond the edges."""
    (n, channels, height, width), shape = input.shape, row.shape[1:]
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    places = torch.where(inside, row * width + column, 0).long().reshape(n, 1, -1).expand(n, channels, -1)
    found = choosing("gather")(own, input.flatten(2), 2, places).reshape(n, channels, *shape)
    return own.moved(torch.where, inside.unsqueeze(1), found, 0.0)


def roi_align(own, input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned=False):
    """Means of samples between pixels in the parts of boxes: weights are rounded from binary64, as places are computed.

    A box is the number of its image, its left, upper, right and lower edge.
    """
    if sampling_ratio <= 0:
        refused(own, "roi_align", "with a sampling_ratio")
    boxes, axes = rois.detach().double(), []
    for axis, (count, bins) in enumerate(((input.shape[2], pooled_height), (input.shape[3], pooled_width))):
        ends = boxes[:, [2 - axis, 4 - axis]] * spatial_scale - (0.5 if aligned else 0.0)
        size = ends[:, 1] - ends[:, 0]
        size = size if aligned else size.clamp(min=1.0)
        samples = (torch.arange(bins * sampling_ratio, device=rois.device).double() + 0.5) / sampling_ratio
        at = ends[:, :1] + samples * (size / bins)[:, None]  # (boxes, samples)
        near = (at >= -1) & (at <= count)
        at = at.clamp(min=0)
        low = at.long().clamp(max=count - 1)
        part = torch.where(low == count - 1, 0.0, at - low)
        shares = [torch.where(near, share, 0.0) for share in (1 - part, part)]
        axes.append(list(zip((low, (low + 1).clamp(max=count - 1)), shares, strict=True)))
    (_, channels, height, width), of, parts = input.shape, boxes[:, 0].long(), []
    numbers = torch.arange(channels, device=rois.device)[:, None, None]
    for row, high in axes[0]:
        for column, wide in axes[1]:
            image = of[:, None, None, None] * channels + numbers
            at = image * (height * width) + (row[:, :, None] * width + column[:, None, :])[:, None]
            weight = (high[:, :, None] * wide[:, None, :])[:, None].to(input.dtype)
            parts.append(multiply(own, own.apply("lookup", [input.reshape(-1), at]), weight))
    while len(parts) > 1:
        parts = [add(own, *pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
    window = (sampling_ratio, sampling_ratio)
    return own.apply("avg_pool2d", parts, options=(*window, *window))


def suppressed(own, boxes, scores, iou_threshold):
    """Boxes in the order of their scores, without those that overlap one before by more; areas are of binary64."""
    x = boxes.detach().double()
    order = scores.detach().sort(stable=True, descending=True).indices
    x = x[order]
    areas = (x[:, 2] - x[:, 0]) * (x[:, 3] - x[:, 1])
    shared = (torch.minimum(x[:, None, 2:], x[:, 2:]) - torch.maximum(x[:, None, :2], x[:, :2])).clamp(min=0).prod(-1)
    over = shared > iou_threshold * (areas[:, None] + areas - shared)
    stays = torch.ones(len(x), dtype=torch.bool, device=x.device)
    for i in range(len(x)):
        if stays[i]:
            stays[i + 1 :] &= ~over[i, i + 1 :]
    return order[stays]


def _positions(count: int, wanted: int, factor: float | None, align_corners: bool):
    """Where places lie among `count` ones, in binary64."""
    at = torch.arange(wanted, dtype=torch.float64)
    if align_corners:
        return at * ((count - 1) / max(wanted - 1, 1))
    return (at + 0.5) * (count / wanted if factor is None else 1 / factor) - 0.5


def _between(count: int, *how) -> list[tuple]:
    """The one below each place, and the one above, each with its weight in binary64."""
    at = _positions(count, *how).clamp(min=0)
    low = at.long().clamp(max=count - 1)
    return [(low, 1 - (at - low)), ((low + 1).clamp(max=count - 1), at - low)]


def _among(count: int, *how) -> list[tuple]:
    """The two below each place, and the two above, each with its weight in binary64: Keys's cubic, a = -0.75."""
    at = _positions(count, *how)
    low, a = at.floor(), -0.75
    part, taps = at - low, []
    for offset in (-1, 0, 1, 2):
        d = (part - offset).abs()
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        taps.append(((low.long() + offset).clamp(0, count - 1), torch.where(d <= 1, near, far)))
    return taps


def unfold(mode, input, kernel_size, dilation=1, padding=0, stride=1):
    how = kernel_size, dilation, padding, stride
    if not _needs(input):
        return F.unfold(input, *how)
    places = F.unfold((_places(input) + 1).double(), *how).long()  # 0: beyond the edges
    found = _found(mode, input, (places - 1).clamp(min=0))
    return mode.moved(torch.where, places > 0, found, 0.0)


def fold(mode, input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """The elements of columns, in their order, added to the places in an image that they come from."""
    columns = input if input.dim() == 3 else input[None]
    window = math.prod((kernel_size,) * 2 if isinstance(kernel_size, int) else kernel_size)
    size = (output_size,) * 2 if isinstance(output_size, int) else tuple(output_size)
    image = torch.empty((len(columns), columns.shape[1] // window, *size), device=input.device)
    places = F.unfold((_places(image) + 1).double(), kernel_size, dilation, padding, stride).long()
    if places.shape != columns.shape:
        return F.fold(input, output_size, kernel_size, dilation, padding, stride)  # which says what is wrong
    inside = places > 0
    parts = mode.moved(torch.masked_select, columns, inside)
    zeros = columns.new_zeros(image.numel())
    found = mode.apply("scatter_add", [zeros, places[inside] - 1, parts]).reshape(image.shape)
    return found if input.dim() == 3 else found[0]


def index_add(mode, input, dim, index, source, *, alpha=1, out=None):
    if not floating(input):
        return torch.index_add(input, dim, index, source, alpha=alpha)
    if out is not None:
        refused(mode, "index_add", "without out")
    source = source if alpha == 1 else multiply(mode, source, alpha)
    if dim % input.dim() == 0:
        return mode.apply("scatter_add", [input, index, source])
    return mode.apply("scatter_add", [input.movedim(dim, 0), index, source.movedim(dim, 0)]).movedim(0, dim)


def scatter_add(mode, input, dim, index, src):
    if not floating(input):
        return torch.scatter_add(input, dim, index, src)
    dim = dim % input.dim()
    within = tuple(slice(None) if d == dim else slice(n) for d, n in enumerate(index.shape))
    places = _places(input)[within].gather(dim, index).reshape(-1)
    parts = src[tuple(slice(n) for n in index.shape)].reshape(-1)
    return shaped(mode.apply("scatter_add", [shaped(input, (input.numel(),)), places, parts]), input.shape)
